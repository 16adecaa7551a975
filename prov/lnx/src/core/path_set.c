/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The network paths that a peer has.  See path_set.h. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "core/health_board.h"
#include "core/open.h"
#include "core/paths.h"
#include "core/path_set.h"
#include "core/policy.h"
#include "core/routes.h"
#include "obj/gateway.h"

/* A second path comes: from now on it matters what the first has delivered. */
static void not_alone(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->path[0];
	uint64_t got = path->sent - LNX_MIN(path->sent, peer->chan.una_bytes);

	path->last_report += got - path->delivered;
	path->delivered = got;
}

/* From now on there is a choice.  False: no memory. */
static bool speeds(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_path *first = peer->path[0];

	if (!first->speed)
		first->speed = calloc(1, sizeof(*first->speed));
	path->speed = calloc(1, sizeof(*path->speed));
	/* Without these there are fewer counters. */
	if (!first->counts)
		first->counts = lnx_path_counts_new(peer, first);
	path->counts = calloc(1, sizeof(*path->counts));
	return first->speed && path->speed && lnx_policy_of(peer);
}

/* The object of path's remote rail. */
static struct lnx_remote_rail *remote_of(const struct lnx_peer *peer, struct lnx_path *path)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->remote_rail == path->remote_rail)
			return peer->path[i]->remote;
	lnx_health_init(&path->own_remote.health);
	path->own_remote.index = path->remote_rail;
	return &path->own_remote;
}

/* Add one path.  False: there is no memory for it, or the core has no room for its
 * address. */
static bool add(struct lnx_peer *peer, const struct lnx_path_choice *way)
{
	struct lnx_path *path = peer->path[peer->npath];
	struct lnx_ep_due *due = &peer->ep->due;

	if (!path) {
		path = lnx_lines_get(sizeof(*path));
		if (!path)
			return false;
		peer->path[peer->npath] = path;
	}
	free(path->speed);
	free(path->counts);
	memset(path, 0, sizeof(*path));
	if (peer->npath && !speeds(peer, path))
		return false;
	path->rail = way->rail;
	path->remote_rail = way->remote;
	path->link_bps = path->rail->link_bps;
	path->index = peer->npath;
	path->inflight_limit = LNX_PATH_INFLIGHT_FIRST;
	lnx_list_init(&path->reads);
	lnx_list_init(&path->gets);
	lnx_list_init(&path->delayed);
	lnx_health_init(&path->detect.health);
	path->remote = remote_of(peer, path);
	if (lnx_rail_meet(path->rail, way->to, &path->core_addr))
		return false;
	path->remote->npath++;
	if (peer->npath == 1) {
		not_alone(peer);
		peer->ep->links.several = true;
		lnx_health_board_due(peer->ep, due->looked_ns + LNX_BOARD_SOON_NS);
	}
	peer->npath++;
	if (peer->choice)
		peer->choice->generation = 0;
	/* A connection will be made. */
	due->sweep_ns = due->sweep_soon_ns;
	due->sweep_gap_ns = 0;
	lnx_ep_due(peer->ep, LNX_DUE_SWEEP, due->sweep_soon_ns);
	return true;
}

/* ---- over gateways ---- */

/* Its rails are in two groups: it is a guess that it leads anywhere. */
static bool is_guess(const struct lnx_path *path, const struct lnx_rails *r)
{
	const struct lnx_addr_rail *to = lnx_rails_find(r, path->remote_rail);

	return !lnx_rail_is_leg(path->rail) && to && to->group != path->rail->group;
}

/* Does a pair of rails within a group lead to peer? */
static bool is_direct(const struct lnx_peer *peer, const struct lnx_rails *r)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!lnx_rail_is_leg(peer->path[i]->rail) && !is_guess(peer->path[i], r))
			return true;
	return false;
}

/* Paths over legs, as bits; routed: only those that a route leads over. */
static unsigned legs_of(const struct lnx_peer *peer, bool routed)
{
	unsigned i, mask = 0;

	for (i = 0; i < peer->npath; i++)
		if (lnx_rail_is_leg(peer->path[i]->rail) &&
		    (!routed || lnx_routes_of_path(peer->path[i])))
			mask |= 1u << i;
	return mask;
}

/* Two are enough to stand in for direct paths. */
static unsigned routed_max(const struct lnx_peer *peer, const struct lnx_rails *r)
{
	const struct lnx_conf *conf = peer->ep->conf;

	return conf->multi_rail_selection == LNX_SELECTION_PER_PEER ? 1 :
	       (unsigned)LNX_MIN(is_direct(peer, r) ? 2 : LNX_PATHS_MAX, conf->max_rails);
}

/*
 * Give peer those of its paths over gateways that it does not have yet.  Returns how many were
 * made.  rel/order.c decides which of them is used, and which are for when no better one
 * works; until then the first one is.
 */
static unsigned add_routed(struct lnx_peer *peer, const struct lnx_rails *r)
{
	struct lnx_path_choice way[LNX_PATHS_MAX];
	unsigned i, n, had = peer->npath;

	lnx_policy_peer(peer, r, false);
	n = lnx_routes_choose(peer, r, way, routed_max(peer, r));
	for (i = 0; i < n && peer->npath < LNX_PATHS_MAX; i++) {
		uint8_t bit = (uint8_t)(1u << peer->npath);

		if (!lnx_peer_has_path(peer, way[i].rail, way[i].remote) &&
		    add(peer, &way[i]) && !peer->stripe)
			peer->stripe = bit;
	}
	return peer->npath - had;
}

LNX_COLD bool lnx_path_set_standby(struct lnx_peer *peer)
{
	struct lnx_rails r;
	unsigned n;

	if (lnx_likely(!peer->ep->policy.gateways) || !peer->npath || peer->self ||
	    legs_of(peer, true) || !lnx_peer_rails(peer, &r))
		return false;
	n = add_routed(peer, &r);
	if (n)
		LNX_INFO(FI_LOG_EP_CTRL, "peer %016llx: no path works, so that gateways are "
			 "used: %u paths more\n", (unsigned long long)peer->eid, n);
	return n;
}

/* A leg takes nothing for an end that is withdrawn: so a peer without another path waits, as
 * for a connection. */
static void close_end(const struct lnx_path *path)
{
	struct lnx_leg *leg;

	if (!lnx_rail_is_leg(path->rail))
		return;
	leg = lnx_container_of(path->rail, struct lnx_leg, rail);
	leg->end[path->core_addr].closed = path->detect.withdrawn;
}

LNX_COLD bool lnx_path_set_routes(struct lnx_peer *peer, unsigned *left, unsigned *back)
{
	unsigned i, routed, was = 0, is = 0;
	struct lnx_rails r;

	*left = *back = 0;
	if (!peer->npath || peer->self || !lnx_peer_rails(peer, &r))
		return false;
	/* Direct paths that work need no company. */
	if (legs_of(peer, false) || !is_direct(peer, &r))
		add_routed(peer, &r);
	routed = legs_of(peer, true);
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		was |= (unsigned)path->detect.withdrawn << i;
		path->detect.withdrawn = lnx_rail_is_leg(path->rail) ? !(routed >> i & 1) :
					 routed && is_guess(path, &r);
		is |= (unsigned)path->detect.withdrawn << i;
		close_end(path);
	}
	*left = is & ~was;
	*back = was & ~is;
	return legs_of(peer, false);
}

static bool between_groups(const struct lnx_path_choice *way)
{
	return way->rail->group != way->to->group;
}

void lnx_path_set_join(struct lnx_peer *peer, const struct lnx_rails *r)
{
	struct lnx_path_choice way[LNX_PATHS_MAX];
	struct lnx_select_counts s;
	unsigned i;

	lnx_policy_peer(peer, r, false);
	s = lnx_paths_choose(peer->ep, r, lnx_policy_table(peer), NULL, way,
			     LNX_PATHS_MAX);
	/* A pair between groups is a guess. */
	if (lnx_unlikely(peer->ep->policy.gateways && (!s.n || between_groups(&way[0]))) &&
	    add_routed(peer, r))
		return;
	/* Until rel/order.c makes the order, they are in this one. */
	for (i = 0; i < s.n; i++) {
		uint8_t bit = (uint8_t)(1u << peer->npath);

		if (!add(peer, &way[i]))
			continue;
		peer->stripe |= i < s.n_stripe ? bit : 0;
		peer->rr |= s.n_rr > 1 && i < s.n_rr ? bit : 0;
	}
	/* If all of the best class were refused, the next class is used. */
	if (!peer->stripe)
		peer->stripe = peer->npath != 0;
}

static uint16_t *port_in(uint8_t raw[LNX_ADDR_RAW], size_t len)
{
	struct sockaddr_in *in = (void *)raw;
	struct sockaddr_in6 *in6 = (void *)raw;

	if (len >= sizeof(*in) && in->sin_family == AF_INET)
		return &in->sin_port;
	if (len >= sizeof(*in6) && in6->sin6_family == AF_INET6)
		return &in6->sin6_port;
	return NULL;
}

static uint16_t port_of(uint8_t raw[LNX_ADDR_RAW], size_t len)
{
	uint16_t *port = port_in(raw, len);

	return port ? ntohs(*port) : 0;
}

/* The port of the peer's end of path in the AV; 0: it is not there, or has another address
 * than raw but for the port. */
static uint16_t av_port(const struct lnx_peer *peer, const struct lnx_path *path,
			const uint8_t raw[LNX_ADDR_RAW], size_t len)
{
	_Alignas(struct sockaddr_in6) uint8_t there[LNX_ADDR_RAW], here[LNX_ADDR_RAW];
	const struct lnx_addr_rail *to;
	uint16_t *port, found;
	struct lnx_rails av;

	if (!lnx_peer_av_rails(peer, &av))
		return 0;
	to = lnx_rails_find(&av, path->remote_rail);
	if (!to || to->prov != path->rail->prov)
		return 0;
	memcpy(there, to->raw, sizeof(there));
	memcpy(here, raw, sizeof(here));
	found = port_of(there, len);
	port = port_in(here, len);
	if (!found || !port)
		return 0;
	*port = htons(found);
	return memcmp(there, here, len) ? 0 : found;
}

/* Later sessions begin where this one looks. */
static void remember(struct lnx_peer *peer, const struct lnx_path *path,
		     const uint8_t raw[LNX_ADDR_RAW])
{
	struct lnx_rails *known = peer->address.rails;
	unsigned i;

	for (i = 0; known && i < known->n; i++)
		if (known->place[i] == path->remote_rail &&
		    known->rail[i].prov == path->rail->prov)
			memcpy(known->rail[i].raw, raw, sizeof(known->rail[i].raw));
}

LNX_COLD bool lnx_path_set_elsewhere(struct lnx_peer *peer, struct lnx_path *path)
{
	_Alignas(struct sockaddr_in6) uint8_t raw[LNX_ADDR_RAW] = { 0 };
	struct lnx_path_detect *g = &path->detect;
	uint16_t *port, now, av, after;
	size_t len = sizeof(raw);
	fi_addr_t core_addr;

	if (fi_av_lookup(path->rail->av, path->core_addr, raw, &len) || len > sizeof(raw))
		return false;
	port = port_in(raw, len);
	if (!port)
		return false;
	now = ntohs(*port);
	av = av_port(peer, path, raw, len);
	if (!g->previous_port && av != now)
		g->previous_port = av;
	else if (av != now && av != g->previous_port)
		g->further_port = av;
	if (!g->previous_port)
		return false;
	*port = htons(g->previous_port);
	if (lnx_rail_insert(path->rail, raw, &core_addr))
		return false;
	lnx_rail_remove(path->rail, path->core_addr);
	path->core_addr = core_addr;
	/* One after the other. */
	after = g->further_port;
	g->previous_port = after ? after : now;
	g->further_port = after ? now : 0;
	peer->session.wrong_endpoint &= (uint8_t)~(1u << path->index);
	remember(peer, path, raw);
	return true;
}

LNX_COLD unsigned lnx_path_set_port(const struct lnx_path *path)
{
	_Alignas(struct sockaddr_in6) uint8_t raw[LNX_ADDR_RAW] = { 0 };
	size_t len = sizeof(raw);

	if (lnx_rail_is_leg(path->rail) ||
	    fi_av_lookup(path->rail->av, path->core_addr, raw, &len) || len > sizeof(raw))
		return 0;
	return port_of(raw, len);
}

void lnx_path_set_readdress(struct lnx_peer *peer, const struct lnx_rails *r)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		const struct lnx_addr_rail *to =
			lnx_rails_find(r, path->remote_rail);
		_Alignas(struct sockaddr_in6) uint8_t old[LNX_ADDR_RAW] = { 0 };
		size_t len = sizeof(old);
		fi_addr_t core_addr;

		if (!to || to->prov != path->rail->prov ||
		    fi_av_lookup(path->rail->av, path->core_addr, old, &len) ||
		    len > sizeof(old) || !memcmp(old, to->raw, len))
			continue;
		if (lnx_rail_meet(path->rail, to, &core_addr))
			continue;	/* it keeps the old address, where nothing
					 * listens */
		lnx_rail_remove(path->rail, path->core_addr);
		path->core_addr = core_addr;
		close_end(path);
		path->detect.previous_port = port_of(old, len);
		path->detect.further_port = 0;
		peer->session.wrong_endpoint &= (uint8_t)~(1u << i);
		path->retry_ns = 0;
		path->backoff_ns = 0;
		lnx_peer_retry_now(peer);
		path->detect.probe_ns = 1;	/* at once */
		path->detect.moved_away = true;
		lnx_peer_look_by(peer, 0);
	}
}

/* The rails that have a path, at both ends. */
static struct lnx_paths_but in_use(const struct lnx_peer *peer)
{
	const struct lnx_ep *ep = peer->ep;
	struct lnx_rail *const *rail = ep->rail + (ep->nrail - ep->nnet);
	struct lnx_paths_but but = { .routed = true };
	unsigned i, k;

	for (i = 0; i < peer->npath; i++) {
		but.remote |= 1u << peer->path[i]->remote_rail;
		for (k = 0; k < ep->nnet; k++)
			if (rail[k] == peer->path[i]->rail)
				but.local |= 1u << k;
	}
	return but;
}

/* Add the paths that are possible beside those rails. */
static unsigned add_beside(struct lnx_peer *peer, const struct lnx_rails *r,
			   const struct lnx_paths_but *but)
{
	struct lnx_path_choice way[LNX_PATHS_MAX];
	unsigned max = (unsigned)LNX_MIN(LNX_PATHS_MAX,
					 peer->ep->conf->max_rails);
	unsigned i, n = 0;
	struct lnx_select_counts s;

	if (peer->npath >= max)
		return 0;
	s = lnx_paths_choose(peer->ep, r, lnx_policy_table(peer), but, way,
			     max - peer->npath);
	for (i = 0; i < s.n; i++)
		n += add(peer, &way[i]);
	return n;
}

LNX_COLD void lnx_path_set_wanted(struct lnx_peer *peer)
{
	struct lnx_path_choice way[LNX_PATHS_MAX];
	struct lnx_ep *ep = peer->ep;
	bool one = ep->conf->multi_rail_selection == LNX_SELECTION_PER_PEER, any = false;
	unsigned max = (unsigned)LNX_MIN(LNX_PATHS_MAX, ep->conf->max_rails), i, n;
	struct lnx_rails r;

	if (!peer->npath || peer->self || !lnx_peer_rails(peer, &r))
		return;
	n = lnx_paths_best(ep, &r, lnx_policy_table(peer), way, LNX_PATHS_MAX);
	for (i = 0; i < n; i++)
		any |= lnx_peer_has_path(peer, way[i].rail, way[i].remote);
	/* One path is enough there, and the rules want it. */
	if (one && any)
		return;
	max = one ? LNX_PATHS_MAX : max;
	for (i = 0; i < n && peer->npath < max; i++)
		if (!lnx_peer_has_path(peer, way[i].rail, way[i].remote) &&
		    add(peer, &way[i]) && one)
			return;
}

void lnx_path_set_extend(struct lnx_peer *peer, const struct lnx_rails *r)
{
	struct lnx_paths_but used, but;
	unsigned n;

	lnx_policy_peer(peer, r, false);
	if (!peer->npath) {
		lnx_path_set_join(peer, r);
		return;
	}
	if (peer->ep->conf->multi_rail_selection == LNX_SELECTION_PER_PEER)
		return;
	/* Best are paths of which both ends are new. */
	but = used = in_use(peer);
	n = add_beside(peer, r, &but);
	if (n)
		used = in_use(peer);
	but.local = used.local;
	but.remote = 0;
	n += add_beside(peer, r, &but);
	if (n)
		used = in_use(peer);
	but.local = 0;
	but.remote = used.remote;
	n += add_beside(peer, r, &but);
	if (n)
		LNX_INFO(FI_LOG_EP_CTRL, "peer %016llx: %u more paths, %u now\n",
			 (unsigned long long)peer->eid, n, peer->npath);
}
