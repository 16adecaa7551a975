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
 * end the one before.
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
/* Tell peer so, which peer->refuse asks for.  Calls cores. */
LNX_COLD void lnx_session_say_ended(struct lnx_peer *peer);
/* Tell the senders of frames that belong to no session.  Calls cores. */
LNX_COLD void lnx_session_tell(struct lnx_ep *ep, uint64_t now);
/* A NO_SESSION came.  Calls no core. */
LNX_COLD void lnx_session_refused(struct lnx_rail *rail, const struct lnx_hdr *h);
/* Ask whether it is still peer that is at the end of path, if the core takes that now. */
LNX_COLD void lnx_session_ask(struct lnx_peer *peer, struct lnx_path *path);

#endif
