/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path a message takes, and in which order the paths to a peer are used.  Does no
 * I/O: numbers in, a decision and its reason out.
 *
 * A path is a local rail and a remote rail that it reaches.  Both belong to a group:
 * rails that certainly reach each other.  A pair whose ends are of different groups
 * makes a group of its own, which is `routed`.
 *
 * lnx_select_choose follows LNet's tables exactly: first a group (A), then a local rail
 * of it (B), then a remote rail (C).  In each the criteria are compared in the order
 * below, and the first difference decides, however small.  Health comes before the
 * user's rules, and nothing is ever left out: the worst path is taken if there is no
 * other.
 *
 * lnx_select_order sorts all paths once, for a new peer.  There a path is as healthy as
 * its worst part, and criteria that change with each message (credits, last use) do not
 * count.
 */
#ifndef LNX_SELECT_H
#define LNX_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "policy/health.h"		/* LNX_HEALTH_MAX */

#define LNX_RULE_NONE		UINT32_MAX	/* priority without a rule */
#define LNX_SELECT_PATHS_MAX	256

/*
 * Why a path was not chosen, in the order in which the criteria are compared.  "Higher"
 * and "lower": what is better.
 */
enum lnx_why {
	LNX_WHY_BEST,			/* it was chosen */
	/* A, of groups */
	LNX_WHY_ROUTED,			/* a common group before a routed one */
	LNX_WHY_PEER_GROUP_HEALTH,	/* higher */
	LNX_WHY_PEER_GROUP_RULE,	/* lower */
	LNX_WHY_GROUP_HEALTH,		/* higher; of our own end */
	LNX_WHY_GROUP_RULE,		/* lower */
	LNX_WHY_PEER_GROUP_USED,	/* lower: longer ago */
	LNX_WHY_GROUP_USED,		/* lower */
	/* B, of local rails */
	LNX_WHY_LINK_DOWN,		/* link up before link down */
	LNX_WHY_RAIL_HEALTH,		/* higher */
	LNX_WHY_RAIL_RULE,		/* lower */
	LNX_WHY_DEVICE,			/* lower; only for memory of a device */
	LNX_WHY_NUMA,			/* lower */
	LNX_WHY_RAIL_CREDITS,		/* higher */
	LNX_WHY_RAIL_USED,		/* lower */
	/* C, of remote rails */
	LNX_WHY_REMOTE_HEALTH,		/* higher */
	LNX_WHY_REMOTE_RULE,		/* lower */
	LNX_WHY_PAIR_RULE,		/* preferred before not */
	LNX_WHY_REMOTE_CREDITS,		/* higher */
	LNX_WHY_REMOTE_USED,		/* lower */
	/* of whole paths; lnx_select_order only */
	LNX_WHY_PATH_DOWN,		/* a part has no health left, or it does not
					 * deliver (policy/rank.h) */
	LNX_WHY_HELD,			/* it is back, and must work for a while first */
	LNX_WHY_PATH_HEALTH,		/* higher; of the worst part */
	LNX_WHY_SPEED,			/* higher */
	LNX_WHY_SHARED,			/* fewer rails that earlier paths use */
	/* equal in everything: the first one is better */
	LNX_WHY_ORDER,
	LNX_WHY_COUNT
};

/* The compared criterion, in words: "health of the local rail".  Static text. */
const char *lnx_select_why_text(enum lnx_why why);

/* Health is 0 to LNX_HEALTH_MAX; used: stamp of the last use, 0 for never. */
struct lnx_view_group {
	bool routed;
	uint16_t peer_health;		/* highest of the peer's rails in it */
	uint16_t local_health;		/* of ours whose link is up */
	uint32_t peer_rule;
	uint32_t local_rule;
	uint64_t peer_used;
	uint64_t local_used;
};

struct lnx_view_rail {
	bool fatal;			/* its link is down */
	uint16_t health;
	uint32_t rule;
	uint32_t device;		/* distance from the buffer's device */
	uint32_t numa;			/* distance from the buffer or thread */
	int32_t credits;		/* negative: so many messages wait */
	uint64_t used;
	uint64_t bps;			/* link speed, 0 when unknown */
};

struct lnx_view_remote {
	uint16_t health;
	uint32_t rule;
	int32_t credits;
	uint64_t used;
};

struct lnx_view_path {
	uint8_t group, rail, remote;	/* indices below */
	uint16_t health;		/* of the pair; lnx_select_order only */
	bool preferred;			/* by a rule for pairs */
};

/* Everything that a choice depends on.  Paths that cannot work are not in it. */
struct lnx_select_view {
	const struct lnx_view_group *group;
	const struct lnx_view_rail *rail;
	const struct lnx_view_remote *remote;
	const struct lnx_view_path *path;
	unsigned npath;			/* <= LNX_SELECT_PATHS_MAX */
	/* NUMA distances below it count as equal; not for device memory. */
	uint32_t numa_range;
	bool device;			/* the buffer is device memory */
	/* lnx_select_order, not with LNET: rules come before health, which only sorts
	 * paths of one class. */
	bool rules_first;
};

/*
 * The path that the next message takes, as an index, or -1 when there is none.  Unless
 * why is NULL, why[i] becomes the reason why path i was not chosen.
 */
int lnx_select_choose(const struct lnx_select_view *v, uint8_t *why);

/* A path in the order. */
struct lnx_ranked {
	uint8_t path;			/* index in v->path */
	/*
	 * 0 for the best.  Paths of one class are equal in health and rules; with
	 * PER_PEER in distance as well; with LNET in everything except credits and use,
	 * so that class 0 has the paths that lnx_select_choose alternates.
	 */
	uint8_t class;
	/* How many of its two rails are used by paths before it; paths that `turn`
	 * moved keep their number. */
	uint8_t shared;
	uint8_t why;			/* why it is not the first; enum lnx_why */
};

struct lnx_select_counts {
	unsigned n;			/* paths in the order */
	/* The first n, which pieces of one message may use at the same time. */
	unsigned n_stripe;
	/*
	 * The first n, which messages use round robin; 1: all messages use the first.
	 */
	unsigned n_rr;
};

/*
 * Sort all paths best first.  Within a class those that share no rail come before those
 * that do, so that the leading ones use all rails and nothing twice; and nearer ones
 * before others, then faster ones.  `turn` is a number that counts up with the peers of
 * an endpoint: if several paths are equally good as the first, it decides which is.
 *
 * out has room for v->npath.  At most max paths are kept, those with a rail of their
 * own before the others.
 */
struct lnx_select_counts lnx_select_order(const struct lnx_select_view *v,
				    enum lnx_conf_selection mode,
				    unsigned turn, struct lnx_ranked *out,
				    unsigned max);

#endif
