/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which paths lead to a peer, best first: the interface to policy/. */
#ifndef LNX_PATHS_H
#define LNX_PATHS_H

#include "obj/ep.h"
#include "policy/select.h"

struct lnx_path_choice {
	struct lnx_rail *rail;
	const struct lnx_addr_rail *to;
	uint16_t remote;		/* index of the rail in the peer's address */
	uint8_t class;			/* 0: the best (policy/select.h) */
};

/* Rails to leave out, as bits: ours by their index among the network rails, the peer's
 * by their index in its address. */
struct lnx_paths_but {
	uint32_t local, remote;
	bool routed;			/* leave out pairs between groups too */
};

/*
 * Write at most max paths from ep to the peer with the rails of a, and at most
 * FI_LNX_MAX_RAILS, in the order that FI_LNX_MULTI_RAIL_SELECTION asks for.  If several
 * are equally good as the first, each call takes another one.  Each path has at least
 * one end that no path before it has.  A path between groups, which may be out of
 * reach, is returned only if there is no other, and alone.  table: what rules say of the
 * peer's rails, by their index in its address, or NULL.  Owner lock held; but may be
 * NULL.
 */
struct lnx_select_counts lnx_paths_choose(struct lnx_ep *ep, const struct lnx_rails *a,
				   const struct lnx_rule_peer *table,
				   const struct lnx_paths_but *but,
				   struct lnx_path_choice *out, unsigned max);

/*
 * Write at most max of the paths that are of the best class by rules, whatever
 * FI_LNX_MULTI_RAIL_SELECTION and FI_LNX_MAX_RAILS are; none of them between groups.
 * Returns their number.
 */
unsigned lnx_paths_best(struct lnx_ep *ep, const struct lnx_rails *a,
			const struct lnx_rule_peer *table, struct lnx_path_choice *out,
			unsigned max);

#endif
