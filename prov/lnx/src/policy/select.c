/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which path a message takes, by LNet's rules.  See select.h. */
#include "policy/select.h"

#include <string.h>

#include "base/compiler.h"

const char *lnx_select_why_text(enum lnx_why why)
{
	static const char *const text[LNX_WHY_COUNT] = {
		[LNX_WHY_BEST] = "none: it is the best",
		[LNX_WHY_ROUTED] = "no net in common",
		[LNX_WHY_PEER_GROUP_HEALTH] = "health of the peer's net",
		[LNX_WHY_PEER_GROUP_RULE] = "rule for the peer's net",
		[LNX_WHY_GROUP_HEALTH] = "health of the local net",
		[LNX_WHY_GROUP_RULE] = "rule for the local net",
		[LNX_WHY_PEER_GROUP_USED] = "last use of the peer's net",
		[LNX_WHY_GROUP_USED] = "last use of the local net",
		[LNX_WHY_LINK_DOWN] = "link of the local rail is down",
		[LNX_WHY_RAIL_HEALTH] = "health of the local rail",
		[LNX_WHY_RAIL_RULE] = "rule for the local rail",
		[LNX_WHY_DEVICE] = "distance from the device",
		[LNX_WHY_NUMA] = "NUMA distance",
		[LNX_WHY_RAIL_CREDITS] = "credits of the local rail",
		[LNX_WHY_RAIL_USED] = "last use of the local rail",
		[LNX_WHY_REMOTE_HEALTH] = "health of the remote rail",
		[LNX_WHY_REMOTE_RULE] = "rule for the remote rail",
		[LNX_WHY_PAIR_RULE] = "rule for the pair of rails",
		[LNX_WHY_REMOTE_CREDITS] = "credits of the remote rail",
		[LNX_WHY_REMOTE_USED] = "last use of the remote rail",
		[LNX_WHY_PATH_DOWN] = "a part of the path is down",
		[LNX_WHY_HELD] = "hold time of the path",
		[LNX_WHY_PATH_HEALTH] = "health of the path",
		[LNX_WHY_SPEED] = "speed of the link",
		[LNX_WHY_SHARED] = "rails that are in use already",
		[LNX_WHY_ORDER] = "order: equal in all else",
	};

	return (unsigned)why < LNX_WHY_COUNT ? text[why] : "unknown";
}

/* ---- criteria ---- */

static uint64_t sick(uint16_t health)
{
	return LNX_HEALTH_MAX - LNX_MIN(health, LNX_HEALTH_MAX);
}

/* Free credits, also negative ones, as a number that grows while they shrink. */
static uint64_t busy(int32_t credits)
{
	return (uint64_t)((int64_t)INT32_MAX - credits);
}

static uint16_t path_health(const struct lnx_select_view *v,
			    const struct lnx_view_path *p)
{
	uint16_t ends = LNX_MIN(v->rail[p->rail].health,
				v->remote[p->remote].health);

	return LNX_MIN(ends, p->health);
}

/* How bad path p is by one criterion: less is better. */
static uint64_t cost(const struct lnx_select_view *v,
		     const struct lnx_view_path *p, enum lnx_why why)
{
	const struct lnx_view_group *g = &v->group[p->group];
	const struct lnx_view_rail *l = &v->rail[p->rail];
	const struct lnx_view_remote *r = &v->remote[p->remote];

	switch (why) {
	case LNX_WHY_ROUTED: return g->routed;
	case LNX_WHY_PEER_GROUP_HEALTH: return sick(g->peer_health);
	case LNX_WHY_PEER_GROUP_RULE: return g->peer_rule;
	case LNX_WHY_GROUP_HEALTH: return sick(g->local_health);
	case LNX_WHY_GROUP_RULE: return g->local_rule;
	case LNX_WHY_PEER_GROUP_USED: return g->peer_used;
	case LNX_WHY_GROUP_USED: return g->local_used;
	case LNX_WHY_LINK_DOWN: return l->fatal;
	case LNX_WHY_RAIL_HEALTH: return sick(l->health);
	case LNX_WHY_RAIL_RULE: return l->rule;
	case LNX_WHY_DEVICE: return v->device ? l->device : 0;
	case LNX_WHY_NUMA:
		return v->device ? l->numa : LNX_MAX(l->numa, v->numa_range);
	case LNX_WHY_RAIL_CREDITS: return busy(l->credits);
	case LNX_WHY_RAIL_USED: return l->used;
	case LNX_WHY_REMOTE_HEALTH: return sick(r->health);
	case LNX_WHY_REMOTE_RULE: return r->rule;
	case LNX_WHY_PAIR_RULE: return !p->preferred;
	case LNX_WHY_REMOTE_CREDITS: return busy(r->credits);
	case LNX_WHY_REMOTE_USED: return r->used;
	case LNX_WHY_PATH_DOWN: return path_health(v, p) == 0;
	case LNX_WHY_PATH_HEALTH: return sick(path_health(v, p));
	case LNX_WHY_SPEED: return UINT64_MAX - l->bps;
	default: return 0;
	}
}

/* A list of criteria, ended by LNX_WHY_BEST. */
typedef const uint8_t criteria[];

/* Tables A, B and C; the criteria that change with each message come last in each. */
static criteria table_a = {
	LNX_WHY_ROUTED, LNX_WHY_PEER_GROUP_HEALTH, LNX_WHY_PEER_GROUP_RULE,
	LNX_WHY_GROUP_HEALTH, LNX_WHY_GROUP_RULE, LNX_WHY_PEER_GROUP_USED,
	LNX_WHY_GROUP_USED, LNX_WHY_BEST
};
static criteria table_b = {
	LNX_WHY_LINK_DOWN, LNX_WHY_RAIL_HEALTH, LNX_WHY_RAIL_RULE,
	LNX_WHY_DEVICE, LNX_WHY_NUMA, LNX_WHY_RAIL_CREDITS, LNX_WHY_RAIL_USED,
	LNX_WHY_BEST
};
static criteria table_c = {
	LNX_WHY_REMOTE_HEALTH, LNX_WHY_REMOTE_RULE, LNX_WHY_PAIR_RULE,
	LNX_WHY_REMOTE_CREDITS, LNX_WHY_REMOTE_USED, LNX_WHY_BEST
};

/*
 * The criteria that make the classes of an order.  A path that is down comes after a
 * routed one: LNet would never leave a common group, and so never reach a peer whose
 * common group is dead.
 */
static criteria by_worth = {
	LNX_WHY_LINK_DOWN, LNX_WHY_PATH_DOWN, LNX_WHY_ROUTED,
	LNX_WHY_PATH_HEALTH, LNX_WHY_PEER_GROUP_RULE, LNX_WHY_GROUP_RULE,
	LNX_WHY_RAIL_RULE, LNX_WHY_REMOTE_RULE, LNX_WHY_PAIR_RULE, LNX_WHY_BEST
};
static criteria by_rules = {
	LNX_WHY_LINK_DOWN, LNX_WHY_PATH_DOWN, LNX_WHY_ROUTED,
	LNX_WHY_PEER_GROUP_RULE, LNX_WHY_GROUP_RULE, LNX_WHY_RAIL_RULE,
	LNX_WHY_REMOTE_RULE, LNX_WHY_PAIR_RULE, LNX_WHY_BEST
};
static criteria by_health = { LNX_WHY_PATH_HEALTH, LNX_WHY_BEST };
static criteria by_distance = {
	LNX_WHY_DEVICE, LNX_WHY_NUMA, LNX_WHY_BEST
};
static criteria by_speed = { LNX_WHY_SPEED, LNX_WHY_BEST };

static bool momentary(enum lnx_why why)
{
	switch (why) {
	case LNX_WHY_PEER_GROUP_USED:
	case LNX_WHY_GROUP_USED:
	case LNX_WHY_RAIL_CREDITS:
	case LNX_WHY_RAIL_USED:
	case LNX_WHY_REMOTE_CREDITS:
	case LNX_WHY_REMOTE_USED:
		return true;
	default:
		return false;
	}
}

/* The first criterion by which a and b differ: > 0 when a is better, < 0 when b is. */
static int differ(const struct lnx_select_view *v, const struct lnx_view_path *a,
		  const struct lnx_view_path *b, const uint8_t *list)
{
	for (; *list != LNX_WHY_BEST; list++) {
		uint64_t x = cost(v, a, *list), y = cost(v, b, *list);

		if (x != y)
			return x < y ? *list : -(int)*list;
	}
	return 0;
}

/* The same by the tables; only lasting criteria: without credits and use. */
static int judge(const struct lnx_select_view *v, unsigned i, unsigned j,
		 bool lasting)
{
	const struct lnx_view_path *a = &v->path[i], *b = &v->path[j];
	int why = differ(v, a, b, a->group != b->group ? table_a :
				  a->rail != b->rail ? table_b : table_c);

	return lasting && momentary(why < 0 ? -why : why) ? 0 : why;
}

/* ---- the next message ---- */

int lnx_select_choose(const struct lnx_select_view *v, uint8_t *why)
{
	unsigned i, best = 0;

	if (!v->npath)
		return -1;
	/*
	 * One pass is enough for all three tables: the best so far is replaced only by
	 * a strictly better path, so the first of equal groups and rails is kept.
	 */
	for (i = 1; i < v->npath; i++)
		if (judge(v, i, best, false) > 0)
			best = i;
	for (i = 0; why && i < v->npath; i++) {
		int r = judge(v, best, i, false);

		why[i] = i == best ? LNX_WHY_BEST :
			 r > 0 ? (uint8_t)r : LNX_WHY_ORDER;
	}
	return (int)best;
}

/* ---- the order of all paths ---- */

struct order {
	const struct lnx_select_view *v;
	enum lnx_conf_selection mode;
	struct lnx_ranked *at;
	unsigned n;
};

static const struct lnx_view_path *path_at(const struct order *o, unsigned i)
{
	return &o->v->path[o->at[i].path];
}

static int differ_in_class(const struct order *o, unsigned i, unsigned j)
{
	int why = differ(o->v, path_at(o, i), path_at(o, j),
			 o->v->rules_first ? by_rules : by_worth);

	if (!why && o->mode == LNX_SELECTION_PER_PEER)
		why = differ(o->v, path_at(o, i), path_at(o, j), by_distance);
	return why;
}

static int differ_in_place(const struct order *o, unsigned i, unsigned j)
{
	int why = 0;

	if (o->v->rules_first)
		why = differ(o->v, path_at(o, i), path_at(o, j), by_health);
	if (!why)
		why = differ(o->v, path_at(o, i), path_at(o, j), by_distance);
	return why ? why : differ(o->v, path_at(o, i), path_at(o, j),
				  by_speed);
}

/* Does the path at i go before that at j?  There are several ways to compare. */
static bool worthier(const struct order *o, unsigned i, unsigned j)
{
	int why = differ_in_class(o, i, j);

	return (why ? why : differ_in_place(o, i, j)) > 0;
}

static bool fresher(const struct order *o, unsigned i, unsigned j)
{
	return o->at[i].class != o->at[j].class ?
	       o->at[i].class < o->at[j].class :
	       o->at[i].shared < o->at[j].shared;
}

/* Insertion sort, which keeps equal ones in order, and mostly finds nothing to do. */
static void sort(struct order *o,
		 bool (*before)(const struct order *o, unsigned i, unsigned j))
{
	unsigned i, j;

	for (i = 1; i < o->n; i++) {
		for (j = i; j && before(o, j, j - 1); j--) {
			struct lnx_ranked tmp = o->at[j];

			o->at[j] = o->at[j - 1];
			o->at[j - 1] = tmp;
		}
	}
}

static void classify(struct order *o)
{
	unsigned i;

	sort(o, worthier);
	for (i = 1; i < o->n; i++)
		o->at[i].class = (uint8_t)(o->at[i - 1].class +
					   (differ_in_class(o, i - 1, i) != 0));
}

/*
 * Class 0 is what the tables would choose; class 1 what they would choose without it;
 * and so on.
 */
static void classify_by_tables(struct order *o)
{
	bool gone[LNX_SELECT_PATHS_MAX] = { false };
	unsigned i, j, n = 0, from;
	uint8_t class;

	for (class = 0; n < o->n; class++) {
		for (from = n, i = 0; i < o->n; i++) {
			bool beaten = gone[i];

			for (j = 0; j < o->n && !beaten; j++)
				beaten = !gone[j] &&
					 judge(o->v, j, i, true) > 0;
			if (beaten)
				continue;
			o->at[n].path = (uint8_t)i;
			o->at[n++].class = class;
		}
		for (i = from; i < n; i++)
			gone[o->at[i].path] = true;
	}
}

/*
 * In each class, first take pairs of rails that no path uses yet, then paths with one
 * such rail, then the others.
 */
static void share_out(struct order *o)
{
	bool rail[UINT8_MAX + 1] = { false }, remote[UINT8_MAX + 1] = { false };
	unsigned start, end, i, want;

	for (i = 0; i < o->n; i++)
		o->at[i].shared = 2;
	for (start = 0; start < o->n; start = end) {
		for (end = start; end < o->n &&
		     o->at[end].class == o->at[start].class;)
			end++;
		for (want = 0; want < 2; want++) {
			for (i = start; i < end; i++) {
				const struct lnx_view_path *p = path_at(o, i);

				if (o->at[i].shared != 2 ||
				    (unsigned)rail[p->rail] +
				    (unsigned)remote[p->remote] != want)
					continue;
				o->at[i].shared = (uint8_t)want;
				rail[p->rail] = remote[p->remote] = true;
			}
		}
	}
	sort(o, fresher);
}

static bool spare(const struct lnx_ranked *r)
{
	return r->shared == 2;
}

/* How many of the first are so equal that they could be exchanged. */
static unsigned leaders(const struct order *o, bool in_place)
{
	unsigned n = 0;

	while (n < o->n && !o->at[n].class && !spare(&o->at[n]) &&
	       (!in_place || !differ_in_place(o, 0, n)))
		n++;
	return n;
}

static void rotate(struct lnx_ranked *at, unsigned n, unsigned by)
{
	struct lnx_ranked tmp[LNX_SELECT_PATHS_MAX];
	unsigned i;

	for (i = 0; i < n; i++)
		tmp[i] = at[(i + by) % n];
	memcpy(at, tmp, n * sizeof(*at));
}

static void cut(struct order *o, unsigned max)
{
	unsigned i, n, own = 0, spares;

	for (i = 0; i < o->n; i++)
		own += !spare(&o->at[i]);
	own = LNX_MIN(own, max);
	spares = max - own;
	for (i = n = 0; i < o->n; i++) {
		unsigned *left = spare(&o->at[i]) ? &spares : &own;

		if (!*left)
			continue;
		(*left)--;
		o->at[n++] = o->at[i];
	}
	o->n = n;
}

static uint8_t reason(const struct order *o, unsigned i)
{
	bool tables = o->mode == LNX_SELECTION_LNET;
	int why = 0;
	unsigned j;

	if (!i)
		return LNX_WHY_BEST;
	/*
	 * The tables do not compare each with each: find the path that was preferred to
	 * it.
	 */
	for (j = 0; tables && j < i && why <= 0; j++)
		why = judge(o->v, o->at[j].path, o->at[i].path, true);
	if (!tables)
		why = differ_in_class(o, 0, i);
	if (why > 0)
		return (uint8_t)why;
	if (o->at[i].shared > o->at[0].shared)
		return LNX_WHY_SHARED;
	why = tables ? 0 : differ_in_place(o, 0, i);
	return why > 0 ? (uint8_t)why : LNX_WHY_ORDER;
}

struct lnx_select_counts lnx_select_order(const struct lnx_select_view *v,
				    enum lnx_conf_selection mode,
				    unsigned turn, struct lnx_ranked *out,
				    unsigned max)
{
	struct order o = { .v = v, .mode = mode, .at = out, .n = v->npath };
	bool alternate = mode == LNX_SELECTION_PER_MSG ||
			 mode == LNX_SELECTION_LNET;
	struct lnx_select_counts s;
	unsigned i, n;

	for (i = 0; i < o.n; i++)
		out[i] = (struct lnx_ranked){ .path = (uint8_t)i };
	if (mode == LNX_SELECTION_LNET)
		classify_by_tables(&o);
	else
		classify(&o);
	share_out(&o);
	/* Alternating messages use all of them anyway. */
	n = leaders(&o, mode == LNX_SELECTION_SPREAD);
	if (n && !alternate)
		rotate(out, n, turn % n);
	cut(&o, max);
	for (i = 0; i < o.n; i++)
		out[i].why = reason(&o, i);
	n = leaders(&o, false);
	s.n = o.n;
	s.n_stripe = mode == LNX_SELECTION_SPREAD ||
		    mode == LNX_SELECTION_PER_MSG ? n : LNX_MIN(n, 1u);
	s.n_rr = alternate ? n : LNX_MIN(n, 1u);
	return s;
}
