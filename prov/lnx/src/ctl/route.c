/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shows routes and their gateways, and changes them.  See route.h.  Called by ctl/request.c. */
#include "ctl/route.h"

#include <inttypes.h>

#include "core/policy.h"
#include "core/routes.h"
#include "ctl/publish.h"
#include "obj/gateway.h"
#include "rail/gateways.h"
#include "rel/rel.h"

/* ---- show ---- */

/* As lnetctl's: of one hop as configured, and as far as the gateway has told its rails. */
static bool single_hop(const struct lnx_ep *ep, const struct lnx_gw *gw,
		       const struct lnx_route *route)
{
	struct lnx_nid nid;
	unsigned i;

	if (route->spec.hop > 1 || !gw->process->rails.n)
		return route->spec.hop <= 1;
	for (i = 0; i < gw->process->rails.n; i++)
		if (!lnx_policy_nid(ep, &gw->process->rails.rail[i], &nid) &&
		    lnx_nid_part_has(&route->spec.net, &nid))
			return true;
	return false;
}

/* Frames that the gateway said that it dropped, by reason. */
static void show_notes(const struct lnx_gateway *state, struct lnx_out *o)
{
	const char *between = "notes ";
	unsigned i;

	for (i = 0; i < LNX_NOTE_MAX; i++) {
		if (!state->notes[i])
			continue;
		lnx_out(o, "%s%s=%" PRIu64, between, lnx_route_reason_name(i),
			state->notes[i]);
		between = " ";
	}
	lnx_out(o, *between == ' ' ? "\n" : "");
}

static void show_leg(const struct lnx_leg *leg, struct lnx_out *o)
{
	struct lnx_state_traffic t;

	lnx_publish_traffic(&leg->rail, &t);
	lnx_out(o, "leg %s health %u; sent_frames=%" PRIu64 " sent_bytes=%" PRIu64
		" recv_frames=%" PRIu64 " recv_bytes=%" PRIu64 " asym_frames=%" PRIu64
		" drop_count=%" PRIu64 " drop_length=%" PRIu64 "\n", leg->rail.name,
		leg->rail.health.value, leg->sent_frames, leg->sent_bytes, leg->recv_frames,
		leg->recv_bytes, leg->asym_frames, t.drop_count, t.drop_length);
}

void lnx_ctl_routes(const struct lnx_ep *ep, uint64_t now, struct lnx_out *o)
{
	const struct lnx_gateways *all = ep->policy.gateways;
	char text[LNX_ROUTE_TEXT_MAX];
	unsigned i, k;

	for (i = 0; all && i < all->table.n; i++) {
		const struct lnx_route *route = &all->table.route[i];
		const struct lnx_gw *gw = lnx_routes_gateway(ep, route);

		if (!gw)
			continue;
		lnx_route_print(&route->spec, text, sizeof(text));
		lnx_out(o, "route %s: %s; %s; gateway %s, id %016" PRIx64 "\n", text,
			lnx_route_why_name(lnx_routes_why(ep, route, now)),
			!single_hop(ep, gw, route) ? "multi-hop" :
			route->learned ? "single-hop, learned" : "single-hop",
			lnx_route_gateway_state_name(
				(enum lnx_gateway_state)gw->process->state.state),
			gw->process->state.id);
		show_notes(&gw->process->state, o);
		for (k = 0; k < gw->nleg; k++)
			show_leg(gw->leg[k], o);
	}
}

/* ---- changes ---- */

struct making {
	struct lnx_ep *ep;
	const struct lnx_route_host *host;
	bool put;
};

/* An lnx_route_each that makes the gateway of a route that is right. */
static int make_gateway(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
			struct lnx_refusal *r)
{
	struct making *m = arg;
	int ret = lnx_route_check(spec, m->host, r);

	(void)w;
	/* What is for other nodes is passed over later. */
	if (ret)
		return m->put && !lnx_route_check(spec, NULL, r) ? 0 : ret;
	ret = lnx_gateways_add(m->ep, &spec->gateway);
	if (ret == -FI_EINVAL)
		lnx_refuse(r, NULL, "FI_LNX_ROUTE_KEY_FILE: the file cannot be used");
	else if (ret)
		lnx_refuse(r, NULL, "memory is short; nothing was changed");
	return ret;
}

/* The gateways first: nothing is to be taken back then. */
static int add(struct lnx_ep *ep, const struct lnx_request *rq, struct lnx_out *o,
	       struct lnx_refusal *r)
{
	bool put = rq->kind == LNX_REQUEST_ROUTE_PUT;
	const struct lnx_nets *nets = ep->policy.nets;
	struct lnx_routes_own own;
	struct making m = { .ep = ep, .host = &own.host, .put = put };
	struct lnx_routes *table, none;
	int ret;

	lnx_routes_own(ep, &own);
	ret = lnx_routes_read(nets, rq->rules, make_gateway, &m, r);
	if (ret)
		return ret;
	/* Without gateways all are passed over. */
	lnx_routes_init(&none, 0);
	table = ep->policy.gateways ? &ep->policy.gateways->table : &none;
	return put ? lnx_routes_put(table, nets, rq->rules, &own.host, o, r) :
		     lnx_routes_parse(table, nets, rq->rules, &own.host, r);
}

static int del(struct lnx_ep *ep, const struct lnx_request *rq, struct lnx_refusal *r)
{
	struct lnx_gateways *all = ep->policy.gateways;
	struct lnx_routes none;

	lnx_routes_init(&none, 0);
	if (!rq->all)
		return lnx_routes_del(all ? &all->table : &none, ep->policy.nets, rq->rules,
				      r);
	if (all)
		lnx_routes_clear(&all->table);
	return 0;
}

/* New gateways are asked at once, and not only when a frame is for them. */
static void ask(struct lnx_ep *ep)
{
	struct lnx_gateways *all = ep->policy.gateways;
	unsigned i;

	for (i = 0; all && i < all->n; i++)
		all->gw[i]->wanted = true;
	if (all)
		lnx_ep_due(ep, LNX_DUE_GATEWAYS, 0);
}

LNX_COLD int lnx_ctl_route_change(struct lnx_ep *ep, const struct lnx_request *rq,
				  uint64_t now, struct lnx_out *o)
{
	struct lnx_refusal r = { .text = rq->rules };
	int ret;

	if (ep->native) {
		lnx_out(o, "with FI_LNX_USE_SRQ=0 or FI_LNX_PROTOCOL=direct routes have no "
			"effect: gateways forward frames only");
		return -FI_EOPNOTSUPP;
	}
	ret = rq->kind == LNX_REQUEST_ROUTE_DEL ? del(ep, rq, &r) : add(ep, rq, o, &r);
	if (!ret) {
		lnx_rel_set(ep, LNX_REL_SET_ROUTES, now);
		ask(ep);
	} else {
		o->n = 0;
		lnx_out(o, "%s", r.why);
	}
	return ret;
}
