/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hellos to gateways, and what is known of them.  See gateway.h.  Called by rel/run.c and
 * rel/detect.c; policy/route.c knows when they are due, rail/leg.c sends.
 */
#include "rel/gateway_inside.h"

#include "base/interval.h"
#include "core/open.h"
#include "core/policy.h"
#include "core/routes.h"
#include "obj/gateway.h"
#include "rail/gateways.h"
#include "rail/leg.h"
#include "rail/routed_read.h"
#include "rel/rel.h"

LNX_COLD void lnx_gateway_order_again(const struct lnx_gw *gw)
{
	struct lnx_ep *ep = gw->all->ep;
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_policy_stale(ep);
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++)
			if (lnx_rail_is_leg(peer->path[i]->rail) &&
			    lnx_container_of(peer->path[i]->rail, struct lnx_leg,
					     rail)->gw->process == gw->process) {
				lnx_peer_look_by(peer, 0);
				break;
			}
	}
}

bool lnx_gateway_leads(const struct lnx_route *route, const struct lnx_gw *gw)
{
	const struct lnx_gw *over = lnx_routes_gateway(gw->all->ep, route);

	return over && over->process == gw->process;
}

static bool heard_since(uint64_t heard_ns, uint64_t silent_ns, uint64_t now)
{
	return heard_ns && lnx_ns_since(now, heard_ns) < silent_ns;
}

LNX_COLD void lnx_gateway_doubted(const struct lnx_path *path, uint64_t now)
{
	struct lnx_leg *leg = lnx_container_of(path->rail, struct lnx_leg, rail);
	struct lnx_gateway *state = &leg->gw->process->state;

	if (heard_since(leg->answered_ns, path->rail->ep->plan.rail_ns, now))
		return;
	lnx_route_gateway_doubt(state, now);
	lnx_ep_due(path->rail->ep, LNX_DUE_GATEWAYS, state->doubt_ns);
}

/* ---- hellos ---- */

/* 0, or an error of the core. */
static ssize_t hello(struct lnx_leg *leg)
{
	const struct lnx_gw *gw = leg->gw;
	struct lnx_ep *ep = gw->all->ep;
	struct lnx_gw_hello h = {
		.oldest = LNX_ROUTE_VERSION, .newest = LNX_ROUTE_NEWEST,
		.account = gw->process->state.account, .id = ep->eid, .key = gw->all->key,
		.nonce = leg->nonce, .rail = leg->rail.wire_index,
		.host = ep->domain->host,
	};
	uint8_t record[LNX_LEG_COPY];
	struct lnx_addr own;
	int len;

	if (lnx_addr_unpack(&own, ep->address.raw, LNX_ADDR_BYTES, NULL, 0))
		return 0;
	lnx_rails_of_addr(&h.rails, &own);
	len = lnx_wire_gw_hello_put(record, sizeof(record), &h);
	/* Without it frames go on the account of all that have said none. */
	return len < 0 ? 0 : lnx_leg_tell(leg, record, (size_t)len);
}

static ssize_t said_hello(struct lnx_leg *leg, uint64_t now)
{
	ssize_t ret = hello(leg);

	if (!ret && !leg->hello_ns)
		leg->hello_ns = now;
	return ret;
}

/* Ask what is due from gw; false: a core could not take it yet. */
static bool hellos(struct lnx_gw *gw, uint64_t now)
{
	bool all = true;
	unsigned i;

	for (i = 0; i < gw->nleg; i++) {
		struct lnx_leg *leg = gw->leg[i];

		if (leg->rail.link_down)
			leg->hello_ns = 0;
		else if (leg->hello_due)
			leg->hello_due = said_hello(leg, now) == -FI_EAGAIN;
		all &= !leg->hello_due;
	}
	return all;
}

/* A frame for the gateway has left, or wants to, to any of its NIDs. */
static bool wanted(const struct lnx_gw *gw)
{
	unsigned i;

	for (i = 0; i < gw->all->n; i++)
		if (gw->all->gw[i]->process == gw->process && gw->all->gw[i]->wanted)
			return true;
	return false;
}

static void ask_by(struct lnx_leg *leg)
{
	leg->nonce = (uint32_t)lnx_host_random_id() | 1u;
	leg->hello_due = true;
}

static void ask_by_each_nid(const struct lnx_gw *gw)
{
	unsigned i, k;

	for (i = 0; i < gw->all->n; i++) {
		struct lnx_gw *by = gw->all->gw[i];

		if (by->process != gw->process)
			continue;
		for (k = 0; k < by->nleg; k++)
			ask_by(by->leg[k]);
	}
}

/* Legs that have failed are asked until they are well, and not charged for that.  Returns when
 * one is to be asked next. */
static uint64_t heal(const struct lnx_gw *gw, uint64_t now)
{
	const struct lnx_health_plan *plan = &gw->all->ep->plan;
	enum lnx_health_todo todo;
	uint64_t next = LNX_NEVER;
	unsigned i;

	for (i = 0; i < gw->nleg; i++) {
		struct lnx_leg *leg = gw->leg[i];

		while ((todo = lnx_health_poll(&leg->rail.health, plan, true, LNX_PING_LOST_NS,
					       now)) != LNX_HEALTH_NOTHING)
			if (todo == LNX_HEALTH_PING)
				ask_by(leg);
		next = lnx_sooner(next, lnx_health_next(&leg->rail.health, plan, true,
							LNX_PING_LOST_NS));
	}
	return next;
}

/* Of the NIDs of a gateway gw is the one that owns what is known of it. */
static uint64_t run(struct lnx_gw *gw, uint64_t now)
{
	const struct lnx_route_plan *plan = &gw->all->plan;
	enum lnx_gateway_todo todo;
	uint64_t next = LNX_NEVER;
	bool sent = true;
	unsigned i;

	while ((todo = lnx_route_gateway_poll(&gw->own.state, plan, wanted(gw), now)) !=
	       LNX_GATEWAY_NOTHING) {
		if (todo == LNX_GATEWAY_HELLO) {
			ask_by_each_nid(gw);
			continue;
		}
		lnx_gateway_order_again(gw);
		LNX_INFO(FI_LOG_EP_CTRL, "rail %s: the gateway does not answer\n",
			 gw->nleg ? gw->leg[0]->rail.name : "");
	}
	for (i = 0; i < gw->all->n; i++)
		if (gw->all->gw[i]->process == &gw->own) {
			next = lnx_sooner(next, heal(gw->all->gw[i], now));
			sent &= hellos(gw->all->gw[i], now);
		}
	next = lnx_sooner(next, lnx_route_gateway_next(&gw->own.state, plan));
	return sent ? next : LNX_MIN(now + LNX_GATEWAY_TRY_NS, next);
}

/* When the next note is forgotten; those whose time is over are now. */
static LNX_COLD uint64_t notes_end(struct lnx_gateways *all, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	for (i = 0; i < all->table.n; i++) {
		struct lnx_route *route = &all->table.route[i];
		struct lnx_gw *gw;

		if (!route->noted_ns)
			continue;
		if (now < route->noted_ns) {
			next = lnx_sooner(next, route->noted_ns);
			continue;
		}
		route->noted_ns = 0;
		gw = lnx_routes_gateway(all->ep, route);
		if (gw)
			lnx_gateway_order_again(gw);
	}
	return next;
}

/* Without routes it is asked nothing. */
static bool has_routes(const struct lnx_gw *gw)
{
	const struct lnx_routes *t = &gw->all->table;
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (lnx_gateway_leads(&t->route[i], gw))
			return true;
	return false;
}

LNX_COLD uint64_t lnx_gateways_run(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_gateways *all = ep->policy.gateways;
	uint64_t next = all ? notes_end(all, now) : LNX_NEVER;
	unsigned i;

	for (i = 0; all && i < all->n; i++)
		if (all->gw[i]->process == &all->gw[i]->own && has_routes(all->gw[i]))
			next = lnx_sooner(next, run(all->gw[i], now));
	return all ? lnx_sooner(next, lnx_routed_run(all, now)) : next;
}

/* ---- what is known when a path over a leg delivers nothing ---- */

/* Does another leg work: one to the same gateway, or if below is not NULL, one over that rail? */
static bool another_answers(const struct lnx_leg *leg, const struct lnx_rail *below,
			    uint64_t silent_ns, uint64_t now)
{
	const struct lnx_gateways *all = leg->gw->all;
	unsigned i, k;

	for (i = 0; i < all->n; i++)
		for (k = 0; k < all->gw[i]->nleg; k++) {
			const struct lnx_leg *other = all->gw[i]->leg[k];

			if (other == leg || (below ? other->rail.below != below :
						     other->gw->process != leg->gw->process))
				continue;
			/* Those of one gateway were asked together. */
			if (heard_since(other->answered_ns, silent_ns, now) ||
			    (leg->hello_ns && other->answered_ns >= leg->hello_ns))
				return true;
		}
	return false;
}

LNX_COLD void lnx_gateway_evidence(const struct lnx_leg *leg, struct lnx_route_evidence *e,
				   uint64_t now)
{
	uint64_t silent_ns = leg->rail.ep->plan.rail_ns;
	bool dead = leg->gw->process->state.state == LNX_GATEWAY_DEAD;

	/* One that says nothing is silent if it was asked.  What it says may come over another
	 * leg. */
	if (heard_since(leg->answered_ns, silent_ns, now))
		e->gateway = LNX_ANSWERS_YES;
	else if (dead || (leg->hello_ns && !heard_since(leg->hello_ns, silent_ns, now)))
		e->gateway = LNX_ANSWERS_NO;
	else
		e->gateway = heard_since(leg->gw->heard_ns, silent_ns, now) ? LNX_ANSWERS_YES :
									    LNX_ANSWERS_UNKNOWN;
	e->gateway_elsewhere = another_answers(leg, NULL, silent_ns, now) ? LNX_ANSWERS_YES :
			       dead ? LNX_ANSWERS_NO : LNX_ANSWERS_UNKNOWN;
	e->rail_works = another_answers(leg, leg->rail.below, silent_ns, now);
}

/* ---- legs ---- */

LNX_COLD void lnx_gateways_legs(const struct lnx_rail *below,
				void (*fn)(struct lnx_rail *leg, bool arg, uint64_t now),
				bool arg, uint64_t now)
{
	const struct lnx_gateways *all = below->ep->policy.gateways;
	unsigned i, k;

	for (i = 0; all && i < all->n; i++)
		for (k = 0; k < all->gw[i]->nleg; k++)
			if (all->gw[i]->leg[k]->rail.below == below)
				fn(&all->gw[i]->leg[k]->rail, arg, now);
}
