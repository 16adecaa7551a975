/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths that deliver nothing: found out, left, tried again; and peers to whom no path
 * is left.
 *
 * A path on which something is due and nothing comes is asked about: the peer, over
 * another path, what came to it by this one (PROBE, PONG).  An answer without
 * news blames the path; no answer blames nobody, because a peer that computes is as
 * silent as one that is gone.  A path that is to blame is left: its frames go out
 * again over the others, and what was to be read by it is read by them; receivers
 * drop what comes twice.  A link that goes down, here or at the peer who then says so
 * (RAIL), needs no asking.
 *
 * A path that was left is pinged as policy/health.h says: the kernel at its other end
 * (core/ping.h), and the peer over the path itself.  If the peer answers, it is used
 * again.  If its kernel does and the peer does not, a connection hangs that would not
 * notice for minutes that its network is back; and while it hangs it may keep a buffer
 * of the application busy.  Then the rail's core endpoint is opened anew, and its peers
 * told the new address.
 *
 * If nothing comes by any path and no kernel answers, all are left; that they answer
 * again is known long before hanging connections find out.  Then connections are reset
 * and endpoints opened anew, too, but where peers know them, since there is no path to
 * tell of another place (tx/address_ack.c).
 *
 * A peer of whom nothing comes at all is given up after FI_LNX_TRANSACTION_TIMEOUT if
 * no kernel answers for it either; while one does, it only computes, until
 * FI_LNX_STALL_TIMEOUT.
 *
 * Only peers with several paths have somewhere to go; what a single one delivers late
 * is the core's business.  All functions: owner lock held.
 */
#ifndef LNX_DETECT_H
#define LNX_DETECT_H

#include "obj/ep.h"

struct lnx_hdr;

/* Something is due from peer: look after its paths. */
LNX_COLD void lnx_detect_watch(struct lnx_peer *peer);
/* A pass over those that are looked after.  Calls cores. */
void lnx_detect_run(struct lnx_ep *ep, uint64_t now);
/* A PONG came in over rail; a RAIL.  Call no core. */
LNX_COLD void lnx_detect_pong(struct lnx_peer *peer, const struct lnx_rail *rail,
			     const struct lnx_hdr *pong);
LNX_COLD void lnx_link_notice_rx(struct lnx_peer *peer, const struct lnx_hdr *h);
/* A PROBE came in over rail, which path leads back from.  Calls no core. */
LNX_COLD void lnx_recovery_probed(struct lnx_path *path, const struct lnx_rail *rail);
/* Our HELLO gets the next number. */
LNX_COLD void lnx_address_ack_hello(struct lnx_peer *peer);
/* Something failed on a path: its health, its rail's, and the counters know.  Not for
 * each of the errors that one broken connection gives.  Calls no core. */
LNX_COLD void lnx_detect_charge(struct lnx_peer *peer, struct lnx_path *path,
			      unsigned class, uint64_t now);
/* The link of a rail is down, or up again.  Calls cores: peers are told. */
LNX_COLD void lnx_link_notice_local(struct lnx_rail *rail, bool up, uint64_t now);
/*
 * Nothing came of peer, of whom something is due, for a while: is it to be given up?
 * 0, or the error that its operations end with.  To be asked again and again while
 * peer->silent_ns is set.
 */
LNX_COLD int lnx_liveness_check(struct lnx_peer *peer, uint64_t now);

#endif
