/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The gateways of an endpoint, and the legs to them.  See gateways.h. */
#include "rail/gateways.h"

#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "core/open.h"
#include "core/policy.h"
#include "core/routes.h"
#include "rail/leg.h"

#define OPS_PER_SLAB	32u
#define PIECES_PER_SLAB	8u

/* ---- one gateway ---- */

static bool same_net(const struct lnx_nid *a, const struct lnx_nid *b)
{
	return a->prov == b->prov && a->number == b->number && !strcmp(a->net, b->net);
}

static bool has_leg(const struct lnx_gw *gw, const struct lnx_rail *rail)
{
	unsigned i;

	for (i = 0; i < gw->nleg; i++)
		if (gw->leg[i]->rail.below == rail)
			return true;
	return false;
}

/* Legs from all our rails that are in its net and have none to it. */
static int add_legs(struct lnx_ep *ep, struct lnx_gw *gw)
{
	struct lnx_addr_rail own, at;
	struct lnx_nid nid;
	unsigned i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		int ret;

		if (has_leg(gw, ep->rail[i]) || !lnx_rail_describe(ep->rail[i], &own) ||
		    lnx_policy_nid(ep, &own, &nid) || !same_net(&nid, &gw->nid))
			continue;
		lnx_nid_where(&gw->nid, own.group, LNX_ROUTE_PORT, &at);
		ret = lnx_leg_open(gw, ep->rail[i], &at, &gw->leg[gw->nleg]);
		if (ret == -FI_ENOMEM)
			return ret;
		if (ret)
			LNX_WARN(FI_LOG_EP_CTRL, "rail %s leads to no gateway: %s\n",
				 ep->rail[i]->name, ret == -FI_ENOSYS ?
				 "its frames have no room for an envelope" : fi_strerror(-ret));
		gw->nleg += !ret;
	}
	return 0;
}

static int add_gateway(struct lnx_gateways *all, const struct lnx_nid *nid)
{
	struct lnx_gw **list, *gw;
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (!memcmp(&all->gw[i]->nid, nid, sizeof(*nid)))
			return add_legs(all->ep, all->gw[i]);
	list = realloc(all->gw, (all->n + 1) * sizeof(*list));
	if (!list)
		return -FI_ENOMEM;
	all->gw = list;
	gw = calloc(1, sizeof(*gw));
	if (!gw)
		return -FI_ENOMEM;
	all->gw[all->n++] = gw;
	gw->all = all;
	gw->nid = *nid;
	gw->process = &gw->own;
	lnx_route_gateway_init(&gw->own.state);
	return add_legs(all->ep, gw);
}

static void free_gateway(struct lnx_gw *gw)
{
	while (gw->nleg)
		lnx_leg_close(gw->leg[--gw->nleg]);
	free(gw);
}

/* ---- NIDs of one gateway ---- */

static struct lnx_gw *with_id(const struct lnx_gateways *all, uint64_t id)
{
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (all->gw[i]->process->state.id == id)
			return all->gw[i];
	return NULL;
}

/* Another NID with that process; NULL: there is none. */
static struct lnx_gw *with_process(const struct lnx_gw *gw, const struct lnx_gw_process *process)
{
	unsigned i;

	for (i = 0; i < gw->all->n; i++)
		if (gw->all->gw[i] != gw && gw->all->gw[i]->process == process)
			return gw->all->gw[i];
	return NULL;
}

/* It shares nothing any more, and nothing is known of it.  If it owned what it shared, another
 * NID owns that now. */
static LNX_COLD void part(struct lnx_gw *gw)
{
	struct lnx_gw *heir = with_process(gw, &gw->own), *other;

	if (heir) {
		heir->own = gw->own;
		while ((other = with_process(gw, &gw->own)))
			other->process = &heir->own;
	}
	gw->process = &gw->own;
	gw->own = (struct lnx_gw_process){ 0 };
	lnx_route_gateway_init(&gw->own.state);
}

LNX_COLD void lnx_gateways_identify(struct lnx_gw *gw, uint64_t id, uint64_t now)
{
	struct lnx_gw *same, *other;

	if (gw->process->state.id == id)
		return;
	same = with_id(gw->all, id);
	other = with_process(gw, gw->process);
	/* Another process has the address: what was known is of the one before, which other NIDs
	 * may not lead to any more either. */
	if (gw->process->state.id && (same || other))
		part(gw);
	if (other)
		lnx_route_gateway_doubt(&other->process->state, now);
	if (!same)
		return;
	lnx_route_gateway_merge(&same->process->state, &gw->own.state);
	gw->process = same->process;
}

/* ---- all of them ---- */

static int add_gateways(struct lnx_gateways *all)
{
	unsigned i;
	int ret = 0;

	for (i = 0; !ret && i < all->table.n; i++)
		ret = add_gateway(all, &all->table.route[i].spec.gateway);
	return ret;
}

/* ep->policy.gateways, without routes.  -FI_ENOMEM; -FI_EINVAL, after a warning. */
static int make(struct lnx_ep *ep)
{
	struct lnx_gateways *all = calloc(1, sizeof(*all));
	const struct lnx_conf *conf = ep->conf;

	if (!all)
		return -FI_ENOMEM;
	all->ep = ep;
	all->secret = lnx_host_random_id();
	all->plan = (struct lnx_route_plan){
		.alive_ns = conf->alive_router_check_interval * LNX_NS_PER_S,
		.dead_ns = conf->dead_router_check_interval * LNX_NS_PER_S,
		.ping_timeout_ns = conf->router_ping_timeout * LNX_NS_PER_S,
		.sensitivity = (uint16_t)conf->router_sensitivity,
		.avoid_asym = conf->avoid_asym_router_failure,
		.check_before_use = conf->check_routers_before_use,
	};
	all->hops = (uint8_t)conf->route_hops;
	/* Nodes with the same routes begin with different gateways. */
	lnx_routes_init(&all->table, lnx_host_random_id());
	lnx_pool_init(&all->op_pool, lnx_leg_op_size(false), OPS_PER_SLAB);
	lnx_pool_init(&all->piece_pool, lnx_leg_op_size(true), PIECES_PER_SLAB);
	lnx_list_init(&all->ops);
	lnx_list_init(&all->reads);
	lnx_list_init(&all->asked);
	lnx_list_init(&all->pulls);
	ep->policy.gateways = all;
	if (ep->policy.rules)
		lnx_rules_routing(ep->policy.rules, true);
	return lnx_routes_user_key(ep->conf, &all->key);
}

int lnx_gateways_open(struct lnx_ep *ep)
{
	int ret;

	if (ep->native || !lnx_routes_wanted(ep->conf))
		return 0;
	ret = make(ep);
	if (!ret)
		ret = lnx_routes_user_read(ep, &ep->policy.gateways->table);
	if (!ret)
		ret = add_gateways(ep->policy.gateways);
	if (!ret && ep->conf->check_routers_before_use)
		lnx_ep_due(ep, LNX_DUE_GATEWAYS, 0);
	if (ret || !ep->policy.gateways->n)
		lnx_gateways_close(ep);
	return ret;
}

LNX_COLD int lnx_gateways_add(struct lnx_ep *ep, const struct lnx_nid *nid)
{
	int ret = ep->policy.gateways ? 0 : make(ep);

	if (ret)
		lnx_gateways_close(ep);
	return ret ? ret : add_gateway(ep->policy.gateways, nid);
}

void lnx_gateways_close(struct lnx_ep *ep)
{
	struct lnx_gateways *all = ep->policy.gateways;
	struct lnx_node *n;

	if (!all)
		return;
	while (all->n)
		free_gateway(all->gw[--all->n]);
	free(all->gw);
	while ((n = lnx_list_pop(&all->reads)))
		free(lnx_list_entry(n, struct lnx_routed_read, link));
	while ((n = lnx_list_pop(&all->pulls)))
		free(lnx_list_entry(n, struct lnx_routed_pull, link));
	lnx_optab_fini(&all->read_ids);
	lnx_pool_fini(&all->op_pool);
	lnx_pool_fini(&all->piece_pool);
	lnx_routes_fini(&all->table);
	free(all);
	ep->policy.gateways = NULL;
	if (ep->policy.rules)
		lnx_rules_routing(ep->policy.rules, false);
}
