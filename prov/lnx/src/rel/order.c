/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The order of the paths to a peer.  See order.h.  Called by rel/peer_path.c, rel/piece.c,
 * rel/latency.c and rel/detect.c; policy/rank.c decides. */
#include "rel/order.h"

#include "core/path_set.h"
#include "core/routes.h"
#include "rel/admin.h"
#include "rel/frame.h"
#include "rel/recovery.h"

static enum lnx_rank_state state_of(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_health *own = &path->detect.health;
	const struct lnx_health *remote = &path->remote->health;
	bool down = path->state == LNX_PATH_DOWN || lnx_path_link_down(path);
	unsigned weight = LNX_WEIGHT_MAX;

	if (lnx_unlikely(!lnx_health_well(own) || !lnx_health_well(&path->rail->health) ||
			 !lnx_health_well(remote)))
		weight = lnx_health_weight_of_path(own, &path->rail->health, remote,
						   &path->rail->ep->plan, now);
	return lnx_rank_state(down, weight);
}

static uint16_t states_of(const struct lnx_peer *peer, uint64_t now)
{
	unsigned i, all = 0;

	for (i = 0; i < peer->npath; i++) {
		unsigned state = state_of(peer->path[i], now);

		if (lnx_unlikely(peer->choice->held >> i & 1))
			state = LNX_MAX(state, (unsigned)LNX_RANK_HELD);
		all |= state << 2 * i;
	}
	return (uint16_t)all;
}

static struct lnx_rank_how how_of(const struct lnx_ep *ep)
{
	/* Equally good paths stay in the order in which they were added, which is
	 * another one for each peer (core/paths.c). */
	return (struct lnx_rank_how){
		.mode = (enum lnx_conf_selection)ep->conf->multi_rail_selection,
		.health_first = ep->conf->health_first ||
				ep->conf->multi_rail_selection == LNX_SELECTION_LNET,
		.numa_range = (uint32_t)ep->conf->numa_range,
	};
}

/* What rules say of the paths, so that no choice has to look at them again. */
static void ask_rules(const struct lnx_peer *peer, struct lnx_rank_rules *says)
{
	const struct lnx_ep *ep = peer->ep;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		unsigned local = lnx_policy_index(ep, path->rail);

		if (ep->policy.rules && local < LNX_RULE_RAILS)
			lnx_rank_rules(ep->policy.rules, lnx_policy_table(peer), local,
				       path->remote_rail, &says[i]);
		else
			lnx_rank_no_rules(&says[i]);
	}
}

/*
 * Paths over gateways: after those that need none.  What the user says of their routes counts
 * as rules for their legs, each of which is a rail of its own: so equal routes share the
 * traffic, and others are standby.
 */
static LNX_COLD void view_routes(const struct lnx_peer *peer, uint64_t now,
				 struct lnx_rank_path out[LNX_RANK_PATHS])
{
	struct lnx_route_choice c[LNX_RANK_PATHS];
	uint8_t class[LNX_RANK_PATHS];
	unsigned i, k;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		c[i] = (struct lnx_route_choice){ 0 };
		if (lnx_rail_is_leg(path->rail))
			lnx_routes_look(path, lnx_policy_table(peer), now, &c[i]);
	}
	lnx_route_classes(c, peer->npath, class);
	for (i = 0; i < peer->npath; i++) {
		if (!lnx_rail_is_leg(peer->path[i]->rail))
			continue;
		for (k = 0; peer->path[k]->rail != peer->path[i]->rail; k++)
			;
		out[i].rail = (uint8_t)(LNX_RULE_RAILS + k);
		out[i].remote_group = (uint16_t)~out[i].group;
		out[i].local_view.rule = class[i];
	}
}

static bool has_legs(const struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (lnx_rail_is_leg(peer->path[i]->rail))
			return true;
	return false;
}

/* Paths whose route is down, or whose gateway will end: bits. */
static unsigned held_routes(const struct lnx_peer *peer, uint64_t now)
{
	struct lnx_route_choice c;
	unsigned i, held = 0;

	if (lnx_likely(!peer->ep->policy.gateways))
		return 0;
	for (i = 0; i < peer->npath; i++)
		if (lnx_rail_is_leg(peer->path[i]->rail)) {
			lnx_routes_look(peer->path[i], NULL, now, &c);
			held |= (unsigned)(c.state != 0) << i;
		}
	return held;
}

/* A pair of rails of two groups is the last resort, and the only path; so all paths but those
 * over gateways are within a group.  peer->choice is there, with what rules say. */
static void view(const struct lnx_peer *peer, uint16_t states, uint64_t now,
		 struct lnx_rank_path out[LNX_RANK_PATHS])
{
	const struct lnx_ep *ep = peer->ep;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		const struct lnx_rail *rail = path->rail;

		out[i] = (struct lnx_rank_path){
			.state = (uint8_t)(states >> 2 * i & 3),
			.prov = rail->prov, .group = rail->group,
			.remote_group = rail->group,
			.rail = (uint8_t)lnx_policy_index(ep, rail),
			.remote = (uint8_t)path->remote_rail,
			.health = path->detect.health.value,
			.local_view = {
				.fatal = rail->link_down, .health = rail->health.value,
				.numa = rail->numa, .bps = rail->link_bps,
			},
			.remote_view = { .health = path->remote->health.value },
		};
		lnx_rank_says(&out[i], &peer->choice->rules[i]);
	}
	if (lnx_unlikely(peer->choice->routed))
		view_routes(peer, now, out);
}

static void say(const struct lnx_peer *peer)
{
	const struct lnx_ranking *r = &peer->choice->rank;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		const struct lnx_path *path = peer->path[r->order[i]];

		LNX_INFO(FI_LOG_EP_DATA,
			 "peer %016llx: path %u over %s is number %u of class %u (%s)\n",
			 (unsigned long long)peer->eid, path->index, path->rail->name,
			 i, r->class[path->index],
			 lnx_select_why_text((enum lnx_why)r->why[path->index]));
	}
}

static bool may_take(const struct lnx_peer *peer, const struct lnx_path *path, uint64_t now)
{
	/* What was set by hand counts more. */
	return lnx_path_usable(path) &&
	       (lnx_likely(!peer->ep->admin.any) || !lnx_path_usable(peer->cur) ||
		lnx_admin_worth(path, now) >= lnx_admin_worth(peer->cur, now));
}

/* Frames leave a path that is DOWN or of a worse class at once. */
static void settle(struct lnx_peer *peer, uint64_t now)
{
	const struct lnx_ranking *r = &peer->choice->rank;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		struct lnx_path *path = peer->path[r->order[i]];

		if (r->class[path->index] >= r->class[peer->cur->index] &&
		    peer->cur->state != LNX_PATH_DOWN)
			return;
		if (may_take(peer, path, now)) {
			peer->cur = path;
			return;
		}
	}
}

void lnx_order_make(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_rank_path path[LNX_RANK_PATHS];
	struct lnx_peer_choice *choice = peer->choice;
	struct lnx_rank_how how = how_of(peer->ep);
	struct lnx_ranking was;

	if (!choice || !peer->npath)
		return;
	lnx_policy_peer(peer, NULL, false);
	was = choice->rank;
	choice->held = (uint8_t)held_routes(peer, now);
	choice->routed = has_legs(peer);
	choice->states = states_of(peer, now);
	ask_rules(peer, choice->rules);
	view(peer, choice->states, now, path);
	lnx_rank_make(path, peer->npath, &how, &choice->rank);
	choice->generation = peer->ep->policy.generation;
	peer->stripe = choice->rank.stripe;
	peer->rr = choice->rank.rr & (choice->rank.rr - 1) ? choice->rank.rr : 0;
	if (memcmp(&was, &choice->rank, sizeof(was)))
		say(peer);
	settle(peer, now);
}

/* When its state may change although nothing happens. */
static uint64_t ready_at(const struct lnx_path *path, uint64_t now)
{
	uint64_t at_ns = lnx_next_of(LNX_NEVER, path->detect.health.ready_ns, now);

	at_ns = lnx_next_of(at_ns, path->rail->health.ready_ns, now);
	return lnx_next_of(at_ns, path->remote->health.ready_ns, now);
}

uint64_t lnx_order_look(struct lnx_peer *peer, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	if (!peer->choice)
		return LNX_NEVER;
	if (peer->choice->generation != peer->ep->policy.generation ||
	    peer->choice->states != states_of(peer, now))
		lnx_order_make(peer, now);
	else
		settle(peer, now);
	for (i = 0; i < peer->npath; i++)
		next = lnx_sooner(next, ready_at(peer->path[i], now));
	return next;
}

bool lnx_order_before(const struct lnx_peer *peer, const struct lnx_path *a,
		      const struct lnx_path *b)
{
	const struct lnx_ranking *rank = lnx_order_of(peer);
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[lnx_rank_at(rank, i)];

		if (path == a || path == b)
			return path == a && a != b;
	}
	return false;
}

/* ---- LNET ---- */

/* Credits that are left of a rail: of all peers. */
static int32_t rail_credits(const struct lnx_rail *rail)
{
	return lnx_tx_credits_rank(rail->credits_max,
				   (uint64_t)rail->credits.used + rail->n_delayed);
}

/* Of all paths to a remote rail. */
static int32_t remote_credits(const struct lnx_peer *peer, const struct lnx_path *path)
{
	uint64_t max = 0, used = 0;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *p = peer->path[i];

		if (p->remote != path->remote)
			continue;
		max += p->rail->peer_credits_max;
		used += p->credits.used;
	}
	return lnx_tx_credits_rank((uint32_t)max, used);
}

static uint64_t last_use(const struct lnx_peer *peer, const struct lnx_path *path, bool local)
{
	uint64_t used = 0;
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (local ? peer->path[i]->rail == path->rail :
			    peer->path[i]->remote == path->remote)
			used = LNX_MAX(used, peer->path[i]->speed->used);
	return used;
}

LNX_COLD bool lnx_order_lnet(const struct lnx_peer *peer, uint64_t now,
			     struct lnx_rank_path path[LNX_RANK_PATHS],
			     struct lnx_rank_how *how)
{
	unsigned i;

	if (!peer->choice)
		return false;
	*how = how_of(peer->ep);
	view(peer, states_of(peer, now), now, path);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *p = peer->path[i];

		path[i].local_view.credits = rail_credits(p->rail);
		path[i].remote_view.credits = remote_credits(peer, p);
		path[i].net_used = path[i].local_view.used = last_use(peer, p, true);
		path[i].peer_net_used = path[i].remote_view.used = last_use(peer, p, false);
	}
	return true;
}

LNX_COLD void lnx_order_used(struct lnx_peer *peer, struct lnx_path *path)
{
	uint64_t stamp = 0;
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		stamp = LNX_MAX(stamp, peer->path[i]->speed->used);
	path->speed->used = stamp + 1;
}

/* ---- all peers ---- */

static void renewed(void *arg, void *at)
{
	struct lnx_peer *peer = at;

	(void)arg;
	if (!peer->npath || !lnx_peer_open(peer) || !lnx_policy_of(peer))
		return;
	lnx_path_set_wanted(peer);
	if (peer->npath < 2)
		return;
	lnx_order_make(peer, lnx_clock_ns());
	lnx_peer_pull(peer);
}

LNX_COLD uint64_t lnx_order_run(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_rules_peers peers = lnx_policy_peers(ep);

	peers.renewed = renewed;
	if (!ep->policy.rules ||
	    lnx_rules_sweep(ep->policy.rules, &ep->policy.sweep, &peers, LNX_RULES_SWEEP))
		ep->policy.sweeping = false;
	/* Not in this pass. */
	return ep->policy.sweeping ? now + 1 : LNX_NEVER;
}

LNX_COLD void lnx_order_rules(struct lnx_ep *ep, uint64_t now)
{
	lnx_policy_stale(ep);
	ep->policy.sweeping = true;
	lnx_ep_due(ep, LNX_DUE_POLICY, lnx_order_run(ep, now));
}
