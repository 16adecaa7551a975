/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Routes: which are up, what a failure charges, which is next.  See route.h. */
#include "policy/route.h"

#include <stddef.h>

#include "base/compiler.h"

/* ---- up or down ---- */

const char *lnx_route_why_name(enum lnx_route_why why)
{
	static const char *const names[LNX_ROUTE_WHYS] = {
		[LNX_ROUTE_UP] = "up",
		[LNX_ROUTE_LAST] = "up, the last one",
		[LNX_ROUTE_UNCHECKED] = "gateway not checked yet",
		[LNX_ROUTE_DEAD] = "gateway dead",
		[LNX_ROUTE_NO_LOCAL_RAIL] = "no rail of the gateway is up here",
		[LNX_ROUTE_NO_REMOTE_RAIL] = "no rail of the gateway is up there",
		[LNX_ROUTE_NOT_ROUTING] = "gateway does not forward",
		[LNX_ROUTE_NOTED] = "gateway says it has no way",
		[LNX_ROUTE_SICK] = "below the sensitivity",
	};

	return why < LNX_ROUTE_WHYS ? names[why] : "unknown";
}

/* Is one of these rails up?  Without any info there are none to look at. */
static bool any_up(const struct lnx_gateway *g, uint32_t rails)
{
	unsigned i;

	for (i = 0; i < g->nrail; i++)
		if (rails >> i & 1 && lnx_route_gateway_rail_up(&g->rail[i]))
			return true;
	return false;
}

/* The highest health of those that are up. */
static uint16_t health_of(const struct lnx_gateway *g, uint32_t rails)
{
	uint16_t best = 0;
	unsigned i;

	if (!g->nrail)
		return LNX_HEALTH_MAX;
	for (i = 0; i < g->nrail; i++)
		if (rails >> i & 1 && lnx_route_gateway_rail_up(&g->rail[i]))
			best = LNX_MAX(best, lnx_route_gateway_rail_health(&g->rail[i]));
	return best;
}

static enum lnx_route_why judge(const struct lnx_route_view *v,
				const struct lnx_route_plan *plan, uint64_t now)
{
	const struct lnx_gateway *g = v->gateway;
	/* With no hops given it is of one if the gateway has a rail there. */
	bool single = v->hop == 1 || v->learned || (!v->hop && v->remote);

	if (g->state == LNX_GATEWAY_DEAD)
		return LNX_ROUTE_DEAD;
	if (g->state == LNX_GATEWAY_UNCHECKED && plan->check_before_use)
		return LNX_ROUTE_UNCHECKED;
	if (!g->routing)
		return LNX_ROUTE_NOT_ROUTING;
	if (g->nrail && !any_up(g, v->local))
		return LNX_ROUTE_NO_LOCAL_RAIL;
	if (g->informed && single && plan->avoid_asym && !any_up(g, v->remote))
		return LNX_ROUTE_NO_REMOTE_RAIL;
	if (now < v->noted_ns)
		return LNX_ROUTE_NOTED;
	if (health_of(g, v->local) < LNX_HEALTH_MAX * plan->sensitivity / 100)
		return LNX_ROUTE_SICK;
	return LNX_ROUTE_UP;
}

unsigned lnx_route_judge(const struct lnx_route_view *v, unsigned n,
			 const struct lnx_route_plan *plan, uint64_t now, uint8_t *why)
{
	unsigned i, up = 0, best = 0;

	for (i = 0; i < n; i++) {
		why[i] = judge(&v[i], plan, now);
		up += lnx_route_is_up(why[i]);
		if (why[i] == LNX_ROUTE_SICK)
			best = LNX_MAX(best, health_of(v[i].gateway, v[i].local));
	}
	/* The healthiest of those that only the sensitivity took down. */
	for (i = 0; !up && i < n; i++)
		if (why[i] == LNX_ROUTE_SICK &&
		    health_of(v[i].gateway, v[i].local) == best)
			why[i] = LNX_ROUTE_LAST;
	for (i = up = 0; i < n; i++)
		up += lnx_route_is_up(why[i]);
	return up;
}

/* ---- charges ---- */

#define NO	(1u << LNX_ANSWERS_NO)
#define YES	(1u << LNX_ANSWERS_YES)
#define OPEN	(1u << LNX_ANSWERS_UNKNOWN)
#define ANY	(NO | YES | OPEN)
#define NOT_YES	(NO | OPEN)
#define TELL(t)	(1u << LNX_TELL_##t)
#define UNTOLD	1u
#define ANY_TELL (UNTOLD | TELL(ALIVE) | TELL(REFUSED) | TELL(UNREACHABLE) | \
		  TELL(SILENT) | TELL(RAIL_DOWN) | TELL(NO_ROUTE) | TELL(UNKNOWN))

/*
 * The first row that fits decides.  A gateway is charged only if it does not answer
 * itself, so that a peer that dies, or computes, never costs a gateway its health.
 */
static const struct {
	uint8_t gateway, gateway_elsewhere, far_through, far_elsewhere, tell;
	uint16_t charge;
} charges[] = {
	/* The gateway is there, and this rail does not reach it. */
	{ NO, YES, ANY, ANY, ANY_TELL,
	  LNX_ROUTE_CHARGE_PATH | LNX_ROUTE_CHARGE_LOCAL_RAIL |
	  LNX_ROUTE_CHARGE_GATEWAY_RAIL },
	/* The gateway is silent, and the far end is not. */
	{ NO, NOT_YES, ANY, YES, ANY_TELL, LNX_ROUTE_CHARGE_GATEWAY },
	/* All is silent, which may be due to this node. */
	{ NO, NOT_YES, ANY, NOT_YES, ANY_TELL, LNX_ROUTE_CHARGE_PATH },
	/* Not known whether the gateway answers: ask it. */
	{ OPEN, ANY, ANY, ANY, ANY_TELL, LNX_ROUTE_CHARGE_ASK },
	/* It delivers. */
	{ YES, ANY, YES, ANY, ANY_TELL, 0 },
	/* The gateway says that its way there is gone. */
	{ YES, ANY, NOT_YES, ANY, TELL(RAIL_DOWN) | TELL(NO_ROUTE),
	  LNX_ROUTE_CHARGE_LEG | LNX_ROUTE_CHARGE_ROUTE_DOWN },
	/* The far end lives: it is this leg. */
	{ YES, ANY, NOT_YES, YES, UNTOLD,
	  LNX_ROUTE_CHARGE_LEG | LNX_ROUTE_CHARGE_ASK },
	{ YES, ANY, NOT_YES, YES, TELL(REFUSED), LNX_ROUTE_CHARGE_REMOTE_RAIL },
	/* Others in that net may well be reached. */
	{ YES, ANY, NOT_YES, YES,
	  TELL(ALIVE) | TELL(UNREACHABLE) | TELL(SILENT) | TELL(UNKNOWN),
	  LNX_ROUTE_CHARGE_LEG },
	/* The far end is silent on all ways. */
	{ YES, ANY, NOT_YES, NOT_YES, UNTOLD, LNX_ROUTE_CHARGE_ASK },
	{ YES, ANY, NOT_YES, NOT_YES, TELL(ALIVE), 0 },
	{ YES, ANY, NOT_YES, NOT_YES,
	  TELL(REFUSED) | TELL(UNREACHABLE) | TELL(SILENT),
	  LNX_ROUTE_CHARGE_REMOTE_RAIL },
	{ YES, ANY, NOT_YES, NOT_YES, TELL(UNKNOWN), LNX_ROUTE_CHARGE_LEG },
};

unsigned lnx_route_charges(const struct lnx_route_evidence *e)
{
	unsigned i, charge;

	if (e->gateway > LNX_ANSWERS_YES || e->gateway_elsewhere > LNX_ANSWERS_YES ||
	    e->far_through > LNX_ANSWERS_YES || e->far_elsewhere > LNX_ANSWERS_YES ||
	    e->tell >= LNX_TELL_MAX)
		return 0;
	for (i = 0; i < LNX_ARRAY_SIZE(charges); i++)
		if (charges[i].gateway >> e->gateway & 1 &&
		    charges[i].gateway_elsewhere >> e->gateway_elsewhere & 1 &&
		    charges[i].far_through >> e->far_through & 1 &&
		    charges[i].far_elsewhere >> e->far_elsewhere & 1 &&
		    charges[i].tell >> e->tell & 1)
			break;
	charge = i < LNX_ARRAY_SIZE(charges) ? charges[i].charge : 0;
	if (charge & LNX_ROUTE_CHARGE_REMOTE_RAIL && e->all_refused)
		charge |= LNX_ROUTE_CHARGE_PEER;
	if (e->rail_works)
		charge &= ~(unsigned)LNX_ROUTE_CHARGE_LOCAL_RAIL;
	return charge;
}

/* ---- selection ---- */

const char *lnx_route_by_name(enum lnx_route_by by)
{
	static const char *const names[LNX_ROUTE_BYS] = {
		[LNX_ROUTE_BY_ONLY] = "there is one",
		[LNX_ROUTE_BY_PREFERRED] = "preferred gateway",
		[LNX_ROUTE_BY_PRIORITY] = "priority of the route",
		[LNX_ROUTE_BY_HOPS] = "hops",
		[LNX_ROUTE_BY_STATE] = "state",
		[LNX_ROUTE_BY_HEALTH] = "health of the gateway's rail",
		[LNX_ROUTE_BY_QUEUED] = "bytes under way",
		[LNX_ROUTE_BY_CREDITS] = "credits",
		[LNX_ROUTE_BY_TURN] = "last use",
		[LNX_ROUTE_BY_ORDER] = "order",
	};

	return by < LNX_ROUTE_BYS ? names[by] : "unknown";
}

static unsigned hops_of(const struct lnx_route_choice *c)
{
	return c->hop ? c->hop : 1;
}

/* Is a better than b (> 0), or worse (< 0), and by what?  Never 0: a comes first. */
static int compare(const struct lnx_route_choice *a, const struct lnx_route_choice *b,
		   enum lnx_route_by *by)
{
#define BY(name, x, y) \
	do { \
		if ((x) != (y)) { \
			*by = LNX_ROUTE_BY_##name; \
			return (x) > (y) ? 1 : -1; \
		} \
	} while (0)
	BY(PREFERRED, a->preferred, b->preferred);
	BY(PRIORITY, b->priority, a->priority);
	BY(HOPS, hops_of(b), hops_of(a));
	BY(STATE, b->state, a->state);
	BY(HEALTH, a->health, b->health);
	BY(QUEUED, b->queued, a->queued);
	BY(CREDITS, a->credits, b->credits);
	BY(TURN, b->used, a->used);
#undef BY
	*by = LNX_ROUTE_BY_ORDER;
	return 1;
}

void lnx_route_classes(const struct lnx_route_choice *c, unsigned n, uint8_t *class)
{
	enum lnx_route_by why;
	unsigned i, k;

	for (i = 0; i < n; i++)
		for (k = class[i] = 0; k < n; k++)
			class[i] += k != i && compare(&c[k], &c[i], &why) > 0 &&
				    why <= LNX_ROUTE_BY_HOPS;
}

int lnx_route_pick(const struct lnx_route_choice *c, unsigned n, uint8_t *by)
{
	enum lnx_route_by why, second = LNX_ROUTE_BY_ONLY;
	unsigned best = 0, i;

	if (!n)
		return -1;
	for (i = 1; i < n; i++)
		if (compare(&c[best], &c[i], &why) < 0)
			best = i;
	if (!by)
		return (int)best;
	for (i = 0; i < n; i++) {
		if (i == best)
			continue;
		/* The order of two that are equal is that of the list. */
		if (compare(&c[best], &c[i], &why) < 0)
			why = LNX_ROUTE_BY_ORDER;
		by[i] = (uint8_t)why;
		/* The one that lost by the last criterion is the second best. */
		second = LNX_MAX(second, why);
	}
	by[best] = (uint8_t)second;
	return (int)best;
}
