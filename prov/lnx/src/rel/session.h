/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which session a frame belongs to, how sessions begin, and how both ends learn that
 * one has ended.  The identity is in lnx_wire.h, the life of a session in obj/peer.h.
 *
 * A frame that belongs to no session here is refused.  Its sender, which would wait for
 * ever otherwise, is told so if it can be reached.  The refusal repeats ids of the frame
 * only, so that a process without a session learns no id of an endpoint.  A refusal ends
 * a session only if it names that session's id, which no other process knows.  A process
 * that knows the ids of both endpoints can begin a session in the name of one, and so
 * end the one before, unless there is a job key.
 *
 * One end may give a session up while the other goes on.  What belongs to that session
 * does not count in the next one: an end refuses the HELLO of a session that it has ended,
 * and one that acknowledges frames of a session that is no more.  If it may be that the
 * sender of a HELLO is in an earlier session with us, our own HELLO names that, and its
 * answer is waited for.  rel/begin.h has these rules.
 *
 * With a job key (core/job_key.h), what begins a session, ends one or changes addresses
 * comes from a process with the key, and is not an old frame sent again:
 *
 * - A HELLO, also a later one, has a hash of all that it says.  Without the right hash it
 *   is dropped, and its sender told so now and then.
 * - A HELLO that begins a session names that session's id at our end or, before the peer
 *   can know that, a nonce.  So does one that ends another one by that.  The id is a random
 *   number of this peer object, which takes one HELLO.  The nonce is one of the endpoint, and
 *   is told by a NO_SESSION to the sender of a
 *   HELLO that lacks it and is right otherwise; that one sends it again.  A recorded
 *   HELLO with the nonce is older than the session that it began, or than a later one, as
 *   long as we remember the session.  When one is forgotten (lnx_peer_detach), the nonce
 *   changes.
 * - BYE, PROBE and all other frames of a session have its id as `src`, and a NO_SESSION
 *   that has an effect has it as `dst`.  It is a random number of 64 bits, told only in
 *   frames to the endpoint with which the session is: a process that cannot read them
 *   does not know it.  So such frames need no hash.  This leaves a process that reads the
 *   network's traffic, which could change or insert frames of a session.
 *
 * Owner lock held.
 */
#ifndef LNX_SESSION_H
#define LNX_SESSION_H

#include "obj/ep.h"

struct lnx_hdr;

/*
 * A frame for this endpoint with an unknown session id.  Returns the peer if the frame
 * begins a session, or NULL: it belongs to none, and is to be dropped.  len bytes of
 * payload.  Calls no core.
 */
LNX_COLD struct lnx_peer *lnx_session_open(struct lnx_rail *rail,
					   const struct lnx_hdr *h,
					   const void *payload, size_t len);
/* A frame that is not for this endpoint.  len bytes of payload.  Calls no core. */
LNX_COLD void lnx_session_misdirected(struct lnx_rail *rail,
				      const struct lnx_hdr *h,
				      const void *payload, size_t len);
/* A frame of a session that has ended here; over rail.  Calls no core. */
LNX_COLD void lnx_session_refuse(struct lnx_peer *peer,
				 const struct lnx_rail *rail,
				 const struct lnx_hdr *h);
/* Tell peer so, which peer->session.refuse asks for.  Calls cores. */
LNX_COLD void lnx_session_say_ended(struct lnx_peer *peer);
/* Tell the senders of frames that belong to no session: LNX_DUE_REFUSALS.  Returns when to
 * call it again.  Calls cores. */
LNX_COLD uint64_t lnx_session_tell(struct lnx_ep *ep, uint64_t now);
/* A NO_SESSION came.  Calls no core. */
LNX_COLD void lnx_session_refused(struct lnx_rail *rail, const struct lnx_hdr *h);
/*
 * Has a HELLO the right hash, or, where no key is set, none?  Its payload follows the
 * header in memory.  True for other kinds.
 */
LNX_COLD bool lnx_session_proven(const struct lnx_ep *ep,
				 const struct lnx_hdr *h, const void *payload,
				 size_t len);
/* Write the proof of txe, a HELLO to peer with its header; again after a change. */
LNX_COLD void lnx_session_prove(const struct lnx_peer *peer,
				struct lnx_txe *txe, uint64_t nonce);
/* peer is the next session with the endpoint of `before`, which has ended here. */
LNX_COLD void lnx_session_follows(struct lnx_peer *peer, const struct lnx_peer *before);
/* If our HELLO to peer has to go out again, it names the session of the peer that we know
 * now.  Calls no core. */
LNX_COLD void lnx_session_answer(struct lnx_peer *peer);
/* Ask whether it is still peer that is at the end of path, if the core takes that now. */
LNX_COLD void lnx_session_ask(struct lnx_peer *peer, struct lnx_path *path);

#endif
