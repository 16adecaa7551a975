/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Path failure detection, failover and recovery; declares a peer dead when no path
 * works.
 *
 * When something is due on a path and nothing comes, the peer is asked over another
 * path what it received by this one (PROBE, PONG).  If the answer reports nothing new,
 * the path is charged and set DOWN: its frames go out again over the others, and what
 * was to be read by it is read by them; receivers drop duplicates.  If no answer comes,
 * no path is charged, because a peer that computes is as silent as a dead one.  A link
 * that goes down, here or at the peer, which then reports it (RAIL), needs no PROBE.
 *
 * A path that is DOWN is pinged as policy/health.h says: the kernel at its other end
 * (os/ping.h), and the peer over the path itself.  If the peer answers, the path is
 * used again.  If its kernel answers and the peer does not, a connection hangs, which
 * would need minutes to notice that its network works again; while it hangs it may keep
 * a buffer of the application busy.  Then the rail's core endpoint is opened anew, and
 * its peers are told the new address.
 *
 * If nothing comes by any path and no kernel answers, all paths are DOWN.  The pings
 * find out that they work again long before hanging connections do.  Then too
 * connections are reset and endpoints opened anew, but at the ports that peers know,
 * since no path is left to announce others (rel/address_ack.c).
 *
 * A peer from which nothing comes at all is given up after FI_LNX_TRANSACTION_TIMEOUT,
 * if no kernel answers for it either.  While a kernel answers, the peer counts as
 * computing, until FI_LNX_STALL_TIMEOUT.
 *
 * Only peers with several paths can fail over; late delivery on a single path is the
 * core's business.  All functions: owner lock held.
 */
#ifndef LNX_DETECT_H
#define LNX_DETECT_H

#include "obj/ep.h"

struct lnx_hdr;

/* Something has changed: check them in the next pass. */
LNX_COLD void lnx_detect_watch(struct lnx_peer *peer);
/* Check them.  Returns when to do so again, or LNX_NEVER.  Calls cores. */
uint64_t lnx_detect_look(struct lnx_peer *peer, uint64_t now);
/* A PONG, or a RAIL, came in over rail.  Call no core. */
LNX_COLD void lnx_detect_pong(struct lnx_peer *peer, const struct lnx_rail *rail,
			     const struct lnx_hdr *pong);
LNX_COLD void lnx_link_notice_rx(struct lnx_peer *peer, const struct lnx_hdr *h);
/* A PROBE came in over rail, over which path leads back.  Calls no core. */
LNX_COLD void lnx_recovery_probed(struct lnx_path *path, const struct lnx_rail *rail);
/* Our HELLO is about to get its number. */
LNX_COLD void lnx_address_ack_hello(struct lnx_peer *peer);
/* A failure on a path: charge its health and its rail's, and count it.  The many errors
 * of one broken connection count once.  Calls no core. */
LNX_COLD void lnx_detect_charge(struct lnx_peer *peer, struct lnx_path *path,
			      unsigned class, uint64_t now);
/* The core refused a frame, with an error that is not -FI_EAGAIN: charged once for each
 * time that it begins to. */
LNX_COLD void lnx_detect_refused(struct lnx_peer *peer, struct lnx_path *path, int err,
				 uint64_t now);
/* No path of peer has taken anything until its deadline. */
LNX_COLD void lnx_detect_expired(struct lnx_peer *peer, uint64_t now);
/* We have cut what is under way over path: what of that fails is charged to nothing. */
LNX_COLD void lnx_detect_we_cut(struct lnx_path *path, uint64_t now);
/* We close rail's endpoint while it has operations of ours: no peer is charged. */
LNX_COLD void lnx_detect_aborted(struct lnx_rail *rail, uint64_t now);
/*
 * Something is due from peer, and nothing came for a while: is it to be given up?  0,
 * or the error that its operations end with.  To be called again and again while
 * something is due.
 */
LNX_COLD int lnx_liveness_check(struct lnx_peer *peer, uint64_t now);
/* Tries to connect to peer fail: where its host says that nothing listens the next one is
 * made elsewhere.  Calls the core's AV. */
LNX_COLD void lnx_liveness_connecting(struct lnx_peer *peer, uint64_t now);

#endif
