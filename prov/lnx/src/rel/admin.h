/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Administrative weight: the health of our rails, of peers' rails and of paths that was
 * set by hand.  A path has the lowest weight set for its three segments, or 1000 if
 * none is set.  A path of weight 0 is not used while another path to the peer works: it
 * is DOWN like one that delivers nothing, but no check of its delivery brings it there
 * or back.  A weight in between is a share: of large messages, and of what spills from
 * the path in use, which is the one with the highest weight.
 *
 * Peers are told of the weights of our rails (RAIL) and keep to them as well: otherwise
 * their frames would come over such a rail, and pieces of our large messages would be read
 * over it as if nothing was set.
 *
 * An endpoint where nothing was ever set pays one test, each time the paths of its
 * peers are checked.  Owner lock held.
 */
#ifndef LNX_ADMIN_H
#define LNX_ADMIN_H

#include "obj/ep.h"

/* Called now and then for each peer of an endpoint where anything was ever set, because
 * paths come and go.  Calls no core. */
LNX_COLD void lnx_admin_peer(struct lnx_peer *peer, uint64_t now);
/* When time alone changes what that does; LNX_NEVER: it does not. */
LNX_COLD uint64_t lnx_admin_next(const struct lnx_peer *peer, uint64_t now);
/* The same for the endpoint, since peers forget what is not repeated: LNX_DUE_ADMIN.
 * Returns when to call it again.  Calls no core. */
LNX_COLD uint64_t lnx_admin_run(struct lnx_ep *ep, uint64_t now);

/* What a path is worth by what was set, 0 to 1000.  Calls no core. */
unsigned lnx_admin_worth(const struct lnx_path *path, uint64_t now);

/* The data of a RAIL frame about rail (lnx_wire.h). */
LNX_COLD uint64_t lnx_admin_notice(const struct lnx_rail *rail);
/* The weight that is in the data of one, 0 to LNX_HEALTH_MAX. */
unsigned lnx_admin_noticed(uint64_t data);
/* The peer told what its end of path is worth to it. */
LNX_COLD void lnx_admin_remote(struct lnx_peer *peer, struct lnx_path *path,
			       unsigned weight, uint64_t now);
/* What it told; LNX_HEALTH_MAX: nothing, or not lately. */
unsigned lnx_admin_remote_weight(const struct lnx_path *path, uint64_t now);

#endif
