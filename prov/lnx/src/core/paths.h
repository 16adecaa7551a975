/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which paths lead to a peer, best first: what policy/ is asked, and told. */
#ifndef LNX_PATHS_H
#define LNX_PATHS_H

#include "obj/ep.h"
#include "policy/select.h"

struct lnx_path_choice {
	struct lnx_rail *rail;
	const struct lnx_addr_rail *to;
	uint16_t remote;		/* its place in the peer's address */
	uint8_t class;			/* 0: the best (policy/select.h) */
};

/* Rails not to be looked at: bits, of ours by their index among the network rails, of
 * the peer's by their places. */
struct lnx_paths_but {
	uint32_t local, remote;
	bool routed;			/* nor pairs between groups */
};

/*
 * Write at most max paths from ep to the peer with the rails of a, and at most
 * FI_LNX_MAX_RAILS, in the order that FI_LNX_MULTI_RAIL_SELECTION asks for.  Where
 * several could be the first with equal right, the next call takes the next one.
 * Each path has a rail that those before it have not, at one end at least.  One
 * between groups, which may be out of reach, comes alone, where there is no other.
 * Owner lock held; but may be NULL.
 */
struct lnx_select_counts lnx_paths_choose(struct lnx_ep *ep, const struct lnx_rails *a,
				   const struct lnx_paths_but *but,
				   struct lnx_path_choice *out, unsigned max);

#endif
