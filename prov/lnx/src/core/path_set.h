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
/* The peer's end of path is back at its previous port: exchange the two.  False: no
 * previous port is known.  Calls the core's AV. */
LNX_COLD bool lnx_path_set_previous(struct lnx_peer *peer, struct lnx_path *path);
/*
 * Rules have changed: add the pairs of rails that they want most and that peer has no
 * path for, up to FI_LNX_MAX_RAILS.
 */
LNX_COLD void lnx_path_set_wanted(struct lnx_peer *peer);
/* No path to peer is known to work: from now on it has paths over gateways, if there are routes
 * to any of its rails and it has no such path yet.  Calls cores' AVs. */
LNX_COLD void lnx_path_set_standby(struct lnx_peer *peer);
/* Add paths for rails that have none yet, here or there; or make the first ones. */
void lnx_path_set_extend(struct lnx_peer *peer, const struct lnx_rails *r);

#endif
