/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rank of paths.  See rank.h.  policy/select.c compares them; here they are divided
 * by state first, because no other criterion may outweigh that.
 */
#include "policy/rank.h"

#include <string.h>

#include "base/compiler.h"

/* The paths of one state as policy/select.c wants to see them. */
struct view {
	struct lnx_select_view v;
	struct lnx_view_group group[LNX_RANK_PATHS];
	struct lnx_view_rail rail[LNX_RANK_PATHS];
	struct lnx_view_remote remote[LNX_RANK_PATHS];
	struct lnx_view_path path[LNX_RANK_PATHS];
	uint8_t index[LNX_RANK_PATHS];	/* of path[i] among all paths */
};

void lnx_rank_rules(const struct lnx_rules *rules, const struct lnx_rule_peer *table,
		    unsigned local, unsigned remote, struct lnx_rank_rules *says)
{
	const struct lnx_rule_local *l = lnx_rules_local(rules, local);
	const struct lnx_rule_remote *r;

	lnx_rank_no_rules(says);
	says->net = l->net;
	says->rail = l->rail;
	if (!table || remote >= table->n)
		return;
	r = &table->remote[remote];
	says->peer_net = r->net;
	says->remote = r->remote;
	says->preferred = local < 32 && (r->preferred >> local & 1);
}

static bool same_group(const struct lnx_rank_path *a, const struct lnx_rank_path *b)
{
	return a->prov == b->prov && a->group == b->group &&
	       a->remote_group == b->remote_group;
}

/* A group is as healthy as its best rail, at either end. */
static void add_to_group(struct lnx_view_group *g, const struct lnx_rank_path *p)
{
	if (!p->local_view.fatal)
		g->local_health = LNX_MAX(g->local_health, p->local_view.health);
	g->peer_health = LNX_MAX(g->peer_health, p->remote_view.health);
	g->local_rule = LNX_MIN(g->local_rule, p->net_rule);
	g->peer_rule = LNX_MIN(g->peer_rule, p->peer_net_rule);
	g->local_used = LNX_MAX(g->local_used, p->net_used);
	g->peer_used = LNX_MAX(g->peer_used, p->peer_net_used);
}

/*
 * Paths that share a group or rail get the same index of it, which is that of the first
 * of these paths in the view.
 */
static void add_path(struct view *w, const struct lnx_rank_path *all, unsigned i)
{
	const struct lnx_rank_path *p = &all[i];
	unsigned n = w->v.npath++, group = n, rail = n, remote = n, k;

	for (k = n; k-- > 0;) {
		const struct lnx_rank_path *q = &all[w->index[k]];

		group = same_group(p, q) ? k : group;
		rail = p->rail == q->rail ? k : rail;
		remote = p->remote == q->remote ? k : remote;
	}
	if (group == n)
		w->group[n] = (struct lnx_view_group){
			.routed = p->group != p->remote_group,
			.peer_rule = LNX_RULE_NONE, .local_rule = LNX_RULE_NONE,
		};
	add_to_group(&w->group[group], p);
	if (rail == n)
		w->rail[n] = p->local_view;
	if (remote == n)
		w->remote[n] = p->remote_view;
	w->path[n] = (struct lnx_view_path){
		.group = (uint8_t)group, .rail = (uint8_t)rail,
		.remote = (uint8_t)remote, .health = p->health,
		.preferred = p->preferred,
	};
	w->index[n] = (uint8_t)i;
}

static void look_at(struct view *w, const struct lnx_rank_path *path, unsigned n,
		    unsigned state, const struct lnx_rank_how *how)
{
	unsigned i;

	w->v = (struct lnx_select_view){
		.group = w->group, .rail = w->rail, .remote = w->remote,
		.path = w->path, .numa_range = how->numa_range,
		.device = how->device,
		.rules_first = !how->health_first,
	};
	for (i = 0; i < n; i++)
		if (LNX_MIN(path[i].state, LNX_RANK_DOWN) == state)
			add_path(w, path, i);
}

/* Why a path of a worse state comes after one of a better state. */
static uint8_t worse_state(unsigned state)
{
	return state == LNX_RANK_HELD ? LNX_WHY_HELD : LNX_WHY_PATH_DOWN;
}

/* Put the paths of a state behind those that are in the ranking. */
static void append(struct lnx_ranking *out, const struct view *w, unsigned state,
		   const struct lnx_rank_how *how)
{
	struct lnx_ranked at[LNX_RANK_PATHS];
	struct lnx_select_counts s;
	unsigned i, class = 0;

	s = lnx_select_order(&w->v, how->mode, how->turn, at, LNX_RANK_PATHS);
	if (out->n)
		class = out->class[out->order[out->n - 1]] + 1u;
	for (i = 0; i < s.n; i++) {
		unsigned p = w->index[at[i].path];

		if (!class && i < s.n_stripe)
			out->stripe |= (uint8_t)(1u << p);
		if (!class && i < s.n_rr)
			out->rr |= (uint8_t)(1u << p);
		out->class[p] = (uint8_t)(class + at[i].class);
		out->why[p] = class ? worse_state(state) : at[i].why;
		out->order[out->n + i] = (uint8_t)p;
	}
	out->n = (uint8_t)(out->n + s.n);
}

void lnx_rank_make(const struct lnx_rank_path *path, unsigned n,
		   const struct lnx_rank_how *how, struct lnx_ranking *out)
{
	struct view w;
	unsigned state;

	n = LNX_MIN(n, (unsigned)LNX_RANK_PATHS);
	memset(out, 0, sizeof(*out));
	for (state = 0; state < LNX_RANK_STATES; state++) {
		look_at(&w, path, n, state, how);
		if (w.v.npath)
			append(out, &w, state, how);
	}
}

static bool is_rule(unsigned why)
{
	return why == LNX_WHY_PEER_GROUP_RULE || why == LNX_WHY_GROUP_RULE ||
	       why == LNX_WHY_RAIL_RULE || why == LNX_WHY_REMOTE_RULE ||
	       why == LNX_WHY_PAIR_RULE;
}

unsigned lnx_rank_class(const struct lnx_ranking *r, unsigned n, unsigned class)
{
	unsigned i, mask = 0;

	if (!r)
		return class ? 0 : (1u << n) - 1;
	for (i = 0; i < n; i++)
		mask |= (unsigned)(r->class[i] == class) << i;
	return mask;
}

unsigned lnx_rank_as_good(const struct lnx_ranking *r, unsigned n, unsigned path)
{
	unsigned class = 0, mask = 0, of = 1;

	while (of && !(mask >> path & 1)) {
		of = lnx_rank_class(r, n, class++);
		mask |= of;
	}
	return mask;
}

unsigned lnx_rank_preferred(const struct lnx_ranking *r)
{
	unsigned i, mask = 0;

	for (i = 0; i < r->n; i++)
		mask |= (unsigned)!is_rule(r->why[i]) << i;
	return mask;
}

int lnx_rank_next(const struct lnx_rank_path *path, unsigned n,
		  const struct lnx_rank_how *how, uint8_t *why)
{
	uint8_t reason[LNX_RANK_PATHS];
	struct view w;
	unsigned state, i;
	int best;

	n = LNX_MIN(n, (unsigned)LNX_RANK_PATHS);
	for (state = 0; state < LNX_RANK_STATES; state++) {
		look_at(&w, path, n, state, how);
		if (w.v.npath)
			break;
	}
	if (state == LNX_RANK_STATES)
		return -1;
	best = lnx_select_choose(&w.v, reason);
	for (i = 0; why && i < n; i++)
		why[i] = worse_state(path[i].state);
	for (i = 0; why && i < w.v.npath; i++)
		why[w.index[i]] = reason[i];
	return w.index[best];
}
