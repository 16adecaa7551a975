/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order in which the paths to a peer are used, and which of them share the traffic:
 * policy/rank.h with what is known of the paths now.
 *
 * A path keeps its index; peer->stripe, peer->rr and peer->choice->rank say the rest.
 * They are made anew when ep->policy.generation has moved (core/policy.h), which each
 * change of a health number, a state, a rule or a rail does: in passes of the failure
 * detector, and before a path is chosen where there is a choice to make.  A frame for
 * peer->cur looks at none of it, so that a change of rules also visits all peers, some in
 * each pass.
 *
 * For peers with several paths.  All functions: owner lock held.
 */
#ifndef LNX_ORDER_H
#define LNX_ORDER_H

#include "core/policy.h"
#include "obj/ep.h"

/* Make the order, and put peer->cur on a path of the first class if it is on another
 * one.  Calls no core. */
void lnx_order_make(struct lnx_peer *peer, uint64_t now);

/* Before a choice: is the order out of date? */
LNX_INLINE void lnx_order_fresh(struct lnx_peer *peer, uint64_t now)
{
	if (lnx_unlikely(peer->choice &&
			 peer->choice->generation != peer->ep->policy.generation))
		lnx_order_make(peer, now);
}

/* The same in looks, where a path may also be usable again because time has passed.
 * Returns when that may be; LNX_NEVER: it depends on no time. */
uint64_t lnx_order_look(struct lnx_peer *peer, uint64_t now);

/* The order of all its paths, as policy/rank.h takes it; NULL: it is not made yet. */
LNX_INLINE const struct lnx_ranking *lnx_order_of(const struct lnx_peer *peer)
{
	return peer->choice && peer->choice->rank.n == peer->npath ? &peer->choice->rank : NULL;
}

/* Does path a come before path b? */
bool lnx_order_before(const struct lnx_peer *peer, const struct lnx_path *a,
		      const struct lnx_path *b);

/* The paths of its class and of better ones, as bits. */
LNX_INLINE unsigned lnx_order_as_good(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return lnx_rank_as_good(lnx_order_of(peer), peer->npath, path->index);
}

/*
 * FI_LNX_MULTI_RAIL_SELECTION=LNET: what LNet's tables compare the paths by, for
 * lnx_rank_next.  False: there is no memory for what is known of them.
 */
LNX_COLD bool lnx_order_lnet(const struct lnx_peer *peer, uint64_t now,
			     struct lnx_rank_path path[LNX_RANK_PATHS],
			     struct lnx_rank_how *how);
/* They have chosen path: it was used last. */
LNX_COLD void lnx_order_used(struct lnx_peer *peer, struct lnx_path *path);

/* The rules of ep, or its rails, have changed: the peers are told, a few at once, the
 * others by the next passes.  Calls cores: peers may get paths. */
LNX_COLD void lnx_order_rules(struct lnx_ep *ep, uint64_t now);
/* Go on with that, while ep->policy.sweeping: LNX_DUE_POLICY.  Returns when to call it
 * again. */
LNX_COLD uint64_t lnx_order_run(struct lnx_ep *ep, uint64_t now);

#endif
