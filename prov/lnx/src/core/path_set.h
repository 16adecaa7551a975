/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The network paths of a peer: the first ones, and changes when rails are added or get
 * other addresses, at either end.  Paths keep their numbers and are never removed.
 * Owner lock held; not from a core's callback.
 */
#ifndef LNX_PATH_SET_H
#define LNX_PATH_SET_H

#include "obj/ep.h"

/* Make the first paths, best first, of a peer that has none. */
void lnx_path_set_join(struct lnx_peer *peer, const struct lnx_rails *r);
/*
 * Rails of the peer that were opened anew have an address that we do not know: replace
 * it.
 */
void lnx_path_set_readdress(struct lnx_peer *peer, const struct lnx_rails *r);
/* Nothing listens at the peer's end of path: look for it at its previous port, or at the
 * one in the AV, where the next process of that name is; in turn.  False: no other port is
 * known.  Calls the core's AV. */
LNX_COLD bool lnx_path_set_elsewhere(struct lnx_peer *peer, struct lnx_path *path);
/* The port that frames over path are sent to; 0: its address has none, or is a gateway's.  Calls
 * the core's AV. */
LNX_COLD unsigned lnx_path_set_port(const struct lnx_path *path);
/*
 * Rules have changed: add the pairs of rails that they want most and that peer has no
 * path for, up to FI_LNX_MAX_RAILS.
 */
LNX_COLD void lnx_path_set_wanted(struct lnx_peer *peer);
/*
 * No path to peer is known to work: from now on it has paths over gateways, if there are routes
 * to any of its rails and it has no such path yet.  True: it has more paths.  Calls cores' AVs.
 */
LNX_COLD bool lnx_path_set_standby(struct lnx_peer *peer);
/*
 * Routes have changed: paths that no route leads over are withdrawn, and so is a guess between
 * groups while there are routes.  A peer that no pair of rails within a group leads to, or that
 * has used gateways, gets paths over the best ones.  left and back: paths, as bits, that were
 * withdrawn by that, and that are no longer.  True: it has paths over gateways, which are to be
 * put in order.  Calls cores' AVs.
 */
LNX_COLD bool lnx_path_set_routes(struct lnx_peer *peer, unsigned *left, unsigned *back);
/* Add paths for rails that have none yet, here or there; or make the first ones. */
void lnx_path_set_extend(struct lnx_peer *peer, const struct lnx_rails *r);

#endif
