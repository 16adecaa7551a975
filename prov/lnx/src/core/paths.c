/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asks policy/ which paths lead to a peer.  See paths.h. */
#include "core/paths.h"

#include "policy/pairs.h"
#include "policy/rank.h"

#define PAIRS_MAX	(LNX_RAILS_MAX * LNX_WIRE_RAILS_MAX)
static_assert(PAIRS_MAX <= LNX_SELECT_PATHS_MAX, "places in an order");

/* Groups of the two ends, which may be the same one. */
struct ends {
	uint8_t prov;
	uint16_t local, remote;
};

struct view {
	struct lnx_pair_rail end[2][LNX_RAILS_MAX];	/* local, remote */
	struct lnx_pair pair[PAIRS_MAX];
	struct ends ends[PAIRS_MAX];
	unsigned ngroup;
	struct lnx_view_group group[PAIRS_MAX];
	struct lnx_view_rail rail[LNX_RAILS_MAX];
	struct lnx_view_remote remote[LNX_WIRE_RAILS_MAX];
	uint8_t mine[LNX_RAILS_MAX];		/* index of end[0] among the rails of
						 * ep */
	uint8_t theirs[LNX_WIRE_RAILS_MAX];	/* index of end[1] among the rails of
						 * the peer */
	unsigned nmine, ntheirs;
	struct lnx_view_path path[PAIRS_MAX];
	struct lnx_ranked at[PAIRS_MAX];
};

/* Health and use are not counted yet: all groups are as good as new. */
static uint8_t group_of(struct view *v, const struct lnx_pair *pair)
{
	const struct lnx_pair_rail *l = &v->end[0][pair->local];
	const struct lnx_pair_rail *r = &v->end[1][pair->remote];
	unsigned g;

	for (g = 0; g < v->ngroup; g++)
		if (v->ends[g].prov == l->prov &&
		    v->ends[g].local == l->group &&
		    v->ends[g].remote == r->group)
			return (uint8_t)g;
	v->ends[g] = (struct ends){ l->prov, l->group, r->group };
	v->group[g] = (struct lnx_view_group){
		.routed = l->group != r->group,
		.peer_health = LNX_HEALTH_MAX,
		.local_health = LNX_HEALTH_MAX,
		.peer_rule = LNX_RULE_NONE,
		.local_rule = LNX_RULE_NONE,
	};
	v->ngroup++;
	return (uint8_t)g;
}

/* A group has the best rule of any of its rails. */
static void rules_of_group(struct view *v, const struct lnx_rules *rules,
			   const struct lnx_rule_peer *table, const struct lnx_rails *a,
			   struct lnx_view_path *p)
{
	struct lnx_view_group *g = &v->group[p->group];
	struct lnx_rank_rules says;

	lnx_rank_rules(rules, table, v->mine[p->rail], a->place[v->theirs[p->remote]],
		       &says);
	g->local_rule = LNX_MIN(g->local_rule, says.net);
	g->peer_rule = LNX_MIN(g->peer_rule, says.peer_net);
	v->rail[p->rail].rule = says.rail;
	v->remote[p->remote].rule = says.remote;
	p->preferred = says.preferred;
}

static void view_rails(struct view *v, struct lnx_rail *const *rail,
		       unsigned n, uint32_t but)
{
	unsigned i, k = 0;

	for (i = 0; i < n; i++) {
		if (but >> i & 1)
			continue;
		v->end[0][k].prov = rail[i]->prov;
		v->end[0][k].group = rail[i]->group;
		v->rail[k] = (struct lnx_view_rail){
			.health = LNX_HEALTH_MAX,
			.rule = LNX_RULE_NONE,
			.numa = rail[i]->numa,
			.bps = rail[i]->link_bps,
		};
		v->mine[k++] = (uint8_t)i;
	}
	v->nmine = k;
}

static void view_remotes(struct view *v, const struct lnx_rails *a,
			 uint32_t but)
{
	unsigned i, k = 0;

	for (i = 0; i < a->n; i++) {
		if (but >> a->place[i] & 1)
			continue;
		v->end[1][k].prov = a->rail[i].prov;
		v->end[1][k].group = a->rail[i].group;
		v->remote[k] = (struct lnx_view_remote){
			.health = LNX_HEALTH_MAX,
			.rule = LNX_RULE_NONE,
		};
		v->theirs[k++] = (uint8_t)i;
	}
	v->ntheirs = k;
}

/* All paths in their order: v->at. */
static struct lnx_select_counts order(struct lnx_ep *ep, const struct lnx_rails *a,
				      const struct lnx_rule_peer *table,
				      const struct lnx_paths_but *but, struct view *v,
				      unsigned max)
{
	struct lnx_select_view ways = {
		.numa_range = (uint32_t)ep->conf->numa_range,
		.rules_first = !ep->conf->health_first,
		.group = v->group, .rail = v->rail, .remote = v->remote, .path = v->path,
	};
	unsigned i;

	lnx_assert_held(&ep->lock);
	v->ngroup = 0;
	view_rails(v, ep->rail + (ep->nrail - ep->nnet), ep->nnet, but ? but->local : 0);
	view_remotes(v, a, but ? but->remote : 0);
	ways.npath = lnx_pairs_find(v->end[0], v->nmine, v->end[1], v->ntheirs,
				    v->pair, PAIRS_MAX);
	for (i = 0; i < ways.npath; i++) {
		v->path[i] = (struct lnx_view_path){
			.group = group_of(v, &v->pair[i]),
			.rail = (uint8_t)v->pair[i].local,
			.remote = (uint8_t)v->pair[i].remote,
			.health = LNX_HEALTH_MAX,
		};
		if (lnx_unlikely(ep->policy.rules != NULL))
			rules_of_group(v, ep->policy.rules, table, a, &v->path[i]);
	}
	return lnx_select_order(&ways, (enum lnx_conf_selection)
				ep->conf->multi_rail_selection, ep->peers.rr_seed,
				v->at, max);
}

static struct lnx_path_choice choice(const struct lnx_ep *ep, const struct lnx_rails *a,
				     const struct view *v, unsigned i)
{
	const struct lnx_view_path *p = &v->path[v->at[i].path];

	return (struct lnx_path_choice){
		.rail = ep->rail[ep->nrail - ep->nnet + v->mine[p->rail]],
		.to = &a->rail[v->theirs[p->remote]],
		.remote = a->place[v->theirs[p->remote]],
		.class = v->at[i].class,
	};
}

struct lnx_select_counts lnx_paths_choose(struct lnx_ep *ep, const struct lnx_rails *a,
				   const struct lnx_rule_peer *table,
				   const struct lnx_paths_but *but,
				   struct lnx_path_choice *out, unsigned max)
{
	struct lnx_select_counts s;
	struct view v;
	unsigned i, n;

	/* One rail for each peer. */
	max = ep->conf->multi_rail_selection == LNX_SELECTION_PER_PEER ?
	      LNX_MIN(max, 1u) : (unsigned)LNX_MIN(max, ep->conf->max_rails);
	s = order(ep, a, table, but, &v, max);
	ep->peers.rr_seed += s.n != 0;
	for (i = n = 0; i < s.n; i++) {
		/* No rail of its own, or it may be out of reach. */
		if (v.at[i].shared == 2 || (v.group[v.path[v.at[i].path].group].routed &&
					    (n || (but && but->routed))))
			continue;
		out[n++] = choice(ep, a, &v, i);
	}
	s.n = n;
	s.n_stripe = LNX_MIN(s.n_stripe, n);
	s.n_rr = LNX_MIN(s.n_rr, n);
	return s;
}

unsigned lnx_paths_best(struct lnx_ep *ep, const struct lnx_rails *a,
			const struct lnx_rule_peer *table, struct lnx_path_choice *out,
			unsigned max)
{
	struct lnx_select_counts s;
	struct view v;
	unsigned i, n = 0;

	s = order(ep, a, table, NULL, &v, PAIRS_MAX);
	for (i = 0; i < s.n && n < max; i++)
		if (!v.at[i].class && v.at[i].shared != 2 &&
		    !v.group[v.path[v.at[i].path].group].routed)
			out[n++] = choice(ep, a, &v, i);
	return n;
}
