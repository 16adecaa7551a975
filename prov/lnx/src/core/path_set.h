/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The paths over networks that a peer has: its first ones, and what becomes of them when
 * rails are added or get other addresses, at either end.  Paths keep their numbers and
 * are never taken away.  Owner lock held; not from a core's callback.
 */
#ifndef LNX_PATH_SET_H
#define LNX_PATH_SET_H

#include "obj/ep.h"

/* The first paths, best first.  The peer has none. */
void lnx_path_set_join(struct lnx_peer *peer, const struct lnx_rails *r);
/* Rails of the peer that were opened anew have another address than we know. */
void lnx_path_set_readdress(struct lnx_peer *peer, const struct lnx_rails *r);
/* The peer's end of path is where it was before, and was where it is.  False: nothing
 * is known of that.  Calls the core's AV. */
LNX_COLD bool lnx_path_set_previous(struct lnx_peer *peer, struct lnx_path *path);
/* Paths of rails that none has yet, here or there; or the first ones. */
void lnx_path_set_extend(struct lnx_peer *peer, const struct lnx_rails *r);

#endif
