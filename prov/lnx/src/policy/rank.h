/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The order in which the paths to a peer are used, and which of them share the traffic.
 * Does no I/O.
 *
 * A path keeps its index, which is on the wire; its rank is a separate array, made anew
 * when something that it depends on has changed: a state, a health number, a rule, a
 * rail.  Nothing of it is computed per message.
 *
 * Paths are compared by
 *
 *	1. their state: usable, then held, then down
 *	2. rules: a net that is preferred is left only when none of its paths is usable
 *	3. health, distance and speed, which order paths of one class and give them
 *	   shares of the traffic, but take none of them out
 *
 * With health_first, or FI_LNX_MULTI_RAIL_SELECTION=LNET, numbers are compared before
 * rules, as LNet does: then the least difference decides.
 */
#ifndef LNX_POLICY_RANK_H
#define LNX_POLICY_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "lnx_wire.h"
#include "policy/rules.h"
#include "policy/select.h"

#define LNX_RANK_PATHS	LNX_WIRE_PATHS

enum lnx_rank_state {
	LNX_RANK_USABLE,
	LNX_RANK_HELD,			/* has no share yet, or no health left */
	LNX_RANK_DOWN,			/* delivers nothing, or its link is down */
	LNX_RANK_STATES
};

/*
 * The state of a path.  down: its state is DOWN, or the link of one of its rails is;
 * weight: lnx_health_weight_of_path.
 */
static inline enum lnx_rank_state lnx_rank_state(bool down, unsigned weight)
{
	return down ? LNX_RANK_DOWN : weight ? LNX_RANK_USABLE : LNX_RANK_HELD;
}

/* What rules say of a path: priorities, or LNX_RULE_NONE. */
struct lnx_rank_rules {
	uint32_t net, peer_net;
	uint32_t rail, remote;
	bool preferred;			/* by a pair rule */
};

/* All that a path is compared by. */
struct lnx_rank_path {
	uint8_t state;			/* enum lnx_rank_state */
	uint8_t prov;			/* enum lnx_prov_id */
	uint16_t group, remote_group;	/* of its rails */
	uint8_t rail, remote;		/* their indexes: equal if paths share them */
	uint16_t health;		/* of the path itself */
	struct lnx_view_rail local_view;
	struct lnx_view_remote remote_view;
	uint32_t net_rule, peer_net_rule;	/* priorities, or LNX_RULE_NONE */
	bool preferred;			/* by a pair rule */
	uint64_t net_used, peer_net_used;	/* stamps; lnx_rank_next only */
};

/* No rule says anything. */
static inline void lnx_rank_no_rules(struct lnx_rank_rules *says)
{
	says->net = says->peer_net = says->rail = says->remote = LNX_RULE_NONE;
	says->preferred = false;
}

/*
 * What rules say of a path: local is the index of its rail for lnx_rules_rails, remote
 * the index of the other one in the peer's table, which may be NULL.
 */
void lnx_rank_rules(const struct lnx_rules *rules, const struct lnx_rule_peer *table,
		    unsigned local, unsigned remote, struct lnx_rank_rules *says);

/* They say that of path. */
static inline void lnx_rank_says(struct lnx_rank_path *path,
				 const struct lnx_rank_rules *says)
{
	path->net_rule = says->net;
	path->peer_net_rule = says->peer_net;
	path->local_view.rule = says->rail;
	path->remote_view.rule = says->remote;
	path->preferred = says->preferred;
}

struct lnx_rank_how {
	enum lnx_conf_selection mode;
	bool health_first;		/* numbers before rules */
	bool device;			/* for memory of a device */
	uint32_t numa_range;
	/* A number of the peer, always the same one: it decides which path is the
	 * first, if several are equally good. */
	unsigned turn;
};

struct lnx_ranking {
	uint8_t n;
	uint8_t order[LNX_RANK_PATHS];	/* indexes of paths, best first */
	/* By index of a path. */
	uint8_t class[LNX_RANK_PATHS];	/* 0: the best; as lnx_ranked.class */
	uint8_t why[LNX_RANK_PATHS];	/* why it is not the first; enum lnx_why */
	/* Paths, as bits, that share */
	uint8_t stripe;			/* pieces of a message, frames that spill */
	uint8_t rr;			/* messages, round robin; one bit: no other */
};
static_assert(LNX_RANK_PATHS <= 8, "a path is a bit of a byte");

/*
 * Rank n paths, at most LNX_RANK_PATHS.  All are in the order.  The masks have paths of
 * the best state and class only, and none whose rails others before it use already.
 */
void lnx_rank_make(const struct lnx_rank_path *path, unsigned n,
		   const struct lnx_rank_how *how, struct lnx_ranking *out);

/* The paths of a class, of n, as bits; 0: there is no such class.  r NULL: there is no order yet,
 * and all are of class 0. */
unsigned lnx_rank_class(const struct lnx_ranking *r, unsigned n, unsigned class);

/* The paths of the class of that path and of better ones, as bits. */
unsigned lnx_rank_as_good(const struct lnx_ranking *r, unsigned n, unsigned path);

/* The index of the i-th path in the order. */
static inline unsigned lnx_rank_at(const struct lnx_ranking *r, unsigned i)
{
	return r ? r->order[i] : i;
}

/* The paths that no rule puts behind another one, as bits.  What else does, as health, the
 * peer knows as well. */
unsigned lnx_rank_preferred(const struct lnx_ranking *r);

/*
 * The path of the next message by LNet's tables, with credits and last use: of those in
 * the best state; -1 if n is 0.  It is of class 0 in a ranking that was made with the
 * mode LNET and the same facts.  why, unless NULL, gets a reason (enum lnx_why) for
 * each path.
 */
int lnx_rank_next(const struct lnx_rank_path *path, unsigned n,
		  const struct lnx_rank_how *how, uint8_t *why);

#endif
