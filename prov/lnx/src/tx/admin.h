/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Health that somebody has set: of our rails, of peers' rails, of paths.  A path is
 * worth what the least of its three segments is set to, and 1000 if none is.  What is
 * worth nothing is not used while another path to the peer works: it is left like one
 * that delivers nothing, but nobody looks whether it does.  In between the number is a
 * share: of large messages, and of what spills from the path in use, which is the one
 * that is worth most.
 *
 * A rail of ours that is worth nothing is made known to peers, who leave it as well
 * (RAIL): their frames would come over it, and pieces of our large messages be read.
 *
 * An endpoint where nothing was ever set pays a test for it, each time that the paths
 * of its peers are looked after.  Owner lock held.
 */
#ifndef LNX_ADMIN_H
#define LNX_ADMIN_H

#include "obj/ep.h"

#define LNX_ADMIN_AUTO	(-1)

/* Set the health of a segment, or LNX_ADMIN_AUTO.  Nothing comes of it before
 * lnx_admin_apply. */
LNX_COLD void lnx_admin_set(struct lnx_ep *ep, struct lnx_health *h,
			      int value, uint64_t now);
/* Something was set: what follows for all peers, who are told.  Calls cores. */
LNX_COLD void lnx_admin_apply(struct lnx_ep *ep, uint64_t now);

/* Now and then for each peer of an endpoint where anything was ever set: paths come
 * and go.  Calls no core. */
LNX_COLD void lnx_admin_peer(struct lnx_peer *peer, uint64_t now);
/* And for the endpoint: peers forget what they are not told again.  True: there is
 * something to tell.  Calls no core. */
LNX_COLD bool lnx_admin_run(struct lnx_ep *ep, uint64_t now);

/* What the RAIL of a rail says in data (lnx_wire.h). */
LNX_COLD uint64_t lnx_admin_notice(const struct lnx_rail *rail);
/* The peer said so of its end of path, or no longer. */
LNX_COLD void lnx_admin_remote(struct lnx_peer *peer, struct lnx_path *path,
			       bool spare, uint64_t now);
/* Does the peer say so? */
bool lnx_admin_remote_drains(const struct lnx_path *path, uint64_t now);

#endif
