/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gateways: what is known of them.  See route.h; choices are in route_pick.c. */
#include "policy/route.h"

#include <string.h>

#include "base/compiler.h"
#include "base/interval.h"
#include "wire/route.h"

#define LATE_MAX	5u		/* doublings of the limit */

static const char *const states[] = { "unchecked", "alive", "dead" };

const char *lnx_route_gateway_state_name(enum lnx_gateway_state state)
{
	return state < LNX_ARRAY_SIZE(states) ? states[state] : "unknown";
}

void lnx_route_gateway_init(struct lnx_gateway *g)
{
	*g = (struct lnx_gateway){ .routing = true };
}

static uint64_t after(uint64_t then, uint64_t ns)
{
	return then > UINT64_MAX - ns ? UINT64_MAX : then + ns;
}

static unsigned came_up(struct lnx_gateway *g, uint64_t now)
{
	if (g->state == LNX_GATEWAY_ALIVE)
		return 0;
	if (g->state == LNX_GATEWAY_DEAD && now < g->wait.early_ns) {
		g->wait.late = (uint8_t)LNX_MIN(g->wait.late + 1u, LATE_MAX);
		g->wait.late_ns = now;
	}
	g->state = LNX_GATEWAY_ALIVE;
	return LNX_GATEWAY_CAME_UP | LNX_GATEWAY_ROUTES;
}

unsigned lnx_route_gateway_heard(struct lnx_gateway *g, uint64_t now)
{
	g->heard_ns = now;
	return came_up(g, now);
}

static struct lnx_gateway_rail *find_rail(struct lnx_gateway *g, uint8_t place)
{
	unsigned i;

	for (i = 0; i < g->nrail; i++)
		if (g->rail[i].place == place)
			return &g->rail[i];
	return NULL;
}

/* The rails are those of the info, in its order; known ones keep their health. */
static void take_rails(struct lnx_gateway *g, const struct lnx_gateway_facts *f)
{
	struct lnx_gateway_rail rail[LNX_GATEWAY_RAILS];
	unsigned i, n = LNX_MIN(f->nrail, (unsigned)LNX_GATEWAY_RAILS);

	for (i = 0; i < n; i++) {
		const struct lnx_gateway_rail *known = find_rail(g, f->rail[i].place);

		if (known)
			rail[i] = *known;
		else
			lnx_health_init(&rail[i].health);
		rail[i].place = f->rail[i].place;
		rail[i].told_down = !f->rail[i].up;
		rail[i].told = f->rail[i].health;
	}
	memcpy(g->rail, rail, n * sizeof(*rail));
	g->nrail = n;
}

/* Another process has the address: what was known is of the one before. */
static void restart(struct lnx_gateway *g)
{
	uint64_t notes[LNX_NOTE_MAX];
	uint8_t state = g->state;

	memcpy(notes, g->notes, sizeof(notes));
	lnx_route_gateway_init(g);
	memcpy(g->notes, notes, sizeof(notes));
	g->state = state;
}

void lnx_route_gateway_facts(struct lnx_gateway_facts *f, const struct lnx_gw_info *info)
{
	unsigned i;

	*f = (struct lnx_gateway_facts){
		.id = info->gw.id,
		.account = info->gw.account,
		.routing = info->gw.flags & LNX_GW_F_ROUTING,
		.draining = info->gw.flags & LNX_GW_F_DRAINING,
		.large = info->large,
		.small = info->small,
		.nrail = info->gw.rails.n,
	};
	for (i = 0; i < f->nrail; i++) {
		f->rail[i].place = info->gw.rails.place[i];
		f->rail[i].up = info->state[i].up;
		f->rail[i].health = info->state[i].health;
	}
}

unsigned lnx_route_gateway_info(struct lnx_gateway *g, const struct lnx_gateway_facts *f,
				uint64_t now)
{
	/* Also if all is as before: a note that took routes down is older than this. */
	unsigned change = LNX_GATEWAY_ROUTES;

	if (g->id && g->id != f->id) {
		restart(g);
		change |= LNX_GATEWAY_RESTARTED;
	}
	/* A hello with it shows the gateway that its info has come to where it thinks. */
	if (g->account != f->account)
		g->doubt_ns = LNX_MAX(now, after(g->hello_ns, LNX_GATEWAY_DOUBT_NS));
	take_rails(g, f);
	g->id = f->id;
	g->account = f->account;
	g->routing = f->routing;
	g->draining = f->draining;
	g->large = f->large;
	g->small = f->small;
	g->informed = true;
	g->asked = false;
	g->slow_ns = 0;
	return change | lnx_route_gateway_heard(g, now);
}

/* The state of one of them is later knowledge than that of the other. */
static void merge_state(struct lnx_gateway *a, const struct lnx_gateway *b)
{
	if (b->heard_ns > a->heard_ns) {
		a->heard_ns = b->heard_ns;
		a->state = b->state;
	} else if (a->state == LNX_GATEWAY_UNCHECKED) {
		a->state = b->state;
	}
	if (b->hello_ns > a->hello_ns) {
		a->hello_ns = b->hello_ns;
		a->asked = b->asked;
		a->first_hello_ns = b->first_hello_ns;
		a->again = b->again;
	}
	a->slow_ns = LNX_MAX(a->slow_ns, b->slow_ns);
}

unsigned lnx_route_gateway_merge(struct lnx_gateway *a, const struct lnx_gateway *b)
{
	unsigned i;

	merge_state(a, b);
	if (!a->id)
		a->id = b->id;
	if (!a->informed && b->informed) {
		a->account = b->account;
		a->routing = b->routing;
		a->draining = b->draining;
		a->large = b->large;
		a->small = b->small;
		a->informed = true;
	}
	for (i = 0; i < LNX_NOTE_MAX; i++)
		a->notes[i] += b->notes[i];
	for (i = 0; i < b->nrail; i++) {
		struct lnx_gateway_rail *r = find_rail(a, b->rail[i].place);

		if (!r && a->nrail < LNX_GATEWAY_RAILS) {
			a->rail[a->nrail++] = b->rail[i];
			continue;
		}
		if (!r)
			continue;
		if (b->rail[i].health.value < r->health.value)
			r->health = b->rail[i].health;
		r->told = LNX_MIN(r->told, b->rail[i].told);
		r->told_down |= b->rail[i].told_down;
	}
	return LNX_GATEWAY_ROUTES;
}

/* ---- when to ask ---- */

static uint64_t interval(const struct lnx_gateway *g, const struct lnx_route_plan *plan)
{
	return g->state == LNX_GATEWAY_ALIVE ? plan->alive_ns : plan->dead_ns;
}

/* How long the frames before the hello that is under way take. */
static uint64_t before_hello_ns(const struct lnx_gateway *g)
{
	uint64_t bytes = g->wait.asked_given - g->wait.given_before;

	return bytes * 1000 / LNX_MAX(g->wait.rate, LNX_GATEWAY_RATE_MIN) * LNX_NS_PER_MS;
}

uint64_t lnx_route_gateway_limit(const struct lnx_gateway *g, const struct lnx_route_plan *plan)
{
	uint64_t most = plan->ping_timeout_ns, ns;

	if (!plan->least_ns)
		return most;
	/* What is in front of hellos all the time is in the time of answers already. */
	ns = g->wait.rtt.srtt_ns + LNX_MIN(before_hello_ns(g), most);
	ns = LNX_MAX(ns, lnx_rtt_timeout(&g->wait.rtt, plan->least_ns, most));
	return LNX_MIN(ns << g->wait.late, most);
}

/* When the second hello is due, and when it is dead without an answer. */
static uint64_t again_ns(const struct lnx_gateway *g, const struct lnx_route_plan *plan)
{
	return LNX_MAX(after(g->first_hello_ns, lnx_route_gateway_limit(g, plan) / 2), g->again_ns);
}

static uint64_t dead_ns(const struct lnx_gateway *g, const struct lnx_route_plan *plan)
{
	uint64_t limit = lnx_route_gateway_limit(g, plan);
	uint64_t most = after(g->first_hello_ns, plan->ping_timeout_ns);
	uint64_t ns = after(LNX_MAX(g->first_hello_ns, g->wait.came_ns), limit);

	/* It may have been asked when there was time. */
	if (plan->least_ns)
		ns = g->again ? LNX_MAX(ns, after(g->hello_ns, limit / 2)) : most;
	return LNX_MIN(ns, most);
}

uint64_t lnx_route_gateway_next(const struct lnx_gateway *g, const struct lnx_route_plan *plan)
{
	uint64_t ns = interval(g, plan);

	if (g->asked)
		return plan->least_ns && !g->again ?
			LNX_MIN(again_ns(g, plan), dead_ns(g, plan)) : dead_ns(g, plan);
	if (g->doubt_ns)
		return g->doubt_ns;
	/* The first hello leaves with the first frame, or before any. */
	if (!g->hello_ns && !g->informed)
		return plan->check_before_use ? 0 : UINT64_MAX;
	return ns ? after(g->hello_ns, ns) : UINT64_MAX;
}

enum lnx_gateway_todo lnx_route_gateway_poll(struct lnx_gateway *g,
					     const struct lnx_route_plan *plan, bool used,
					     uint64_t now)
{
	bool first = used && !g->hello_ns && !g->informed;

	if (g->asked) {
		uint64_t ns = dead_ns(g, plan);

		if (now < ns && plan->least_ns && !g->again && now >= again_ns(g, plan)) {
			g->again = true;
			g->hello_ns = now;
			return LNX_GATEWAY_AGAIN;
		}
		if (now < ns)
			return LNX_GATEWAY_NOTHING;
		g->asked = false;
		/* What came meanwhile is an answer, too. */
		if (g->heard_ns >= g->first_hello_ns)
			return LNX_GATEWAY_NOTHING;
		if (g->state == LNX_GATEWAY_ALIVE)
			g->wait.early_ns = after(g->first_hello_ns, plan->ping_timeout_ns);
		g->state = LNX_GATEWAY_DEAD;
		g->account = 0;
		return LNX_GATEWAY_LOST;
	}
	if (!first && now < lnx_route_gateway_next(g, plan))
		return LNX_GATEWAY_NOTHING;
	g->asked = true;
	g->again = false;
	g->hello_ns = g->first_hello_ns = now;
	g->again_ns = g->doubt_ns = 0;
	g->wait.asked_given = g->wait.given;
	return LNX_GATEWAY_HELLO;
}

void lnx_route_gateway_answered(struct lnx_gateway *g, bool again, uint64_t now)
{
	uint64_t ns = lnx_ns_since(now, g->wait.before_ns), bytes, rate;

	lnx_rtt_sample(&g->wait.rtt, lnx_ns_since(now, again ? g->hello_ns : g->first_hello_ns));
	/* All that left before the hello has come there. */
	bytes = g->wait.asked_given - g->wait.given_before;
	rate = bytes * 1000 / LNX_MAX(ns / LNX_NS_PER_MS, 1ull);
	g->wait.rate = LNX_MAX(rate, g->wait.rate - g->wait.rate / 8);
	g->wait.given_before = g->wait.asked_given;
	g->wait.before_ns = now;
	if (g->wait.late && lnx_ns_since(now, g->wait.late_ns) >= LNX_GATEWAY_LATE_NS) {
		g->wait.late--;
		g->wait.late_ns = now;
	}
}

void lnx_route_gateway_unsent(struct lnx_gateway *g, uint64_t now)
{
	uint64_t ns = after(now, LNX_GATEWAY_TRY_NS);

	if (g->again) {
		g->again = false;
		g->again_ns = ns;
	} else {
		g->asked = false;
		g->doubt_ns = ns;
	}
}

void lnx_route_gateway_doubt(struct lnx_gateway *g, uint64_t now)
{
	if (g->state != LNX_GATEWAY_DEAD)
		lnx_route_gateway_maybe_anew(g, now);
}

void lnx_route_gateway_maybe_anew(struct lnx_gateway *g, uint64_t now)
{
	if (!g->asked && !g->doubt_ns)
		g->doubt_ns = LNX_MAX(now, after(g->hello_ns, LNX_GATEWAY_DOUBT_NS));
}

/* ---- notes ---- */

static const struct lnx_route_effect effects[LNX_NOTE_MAX] = {
	[LNX_NOTE_NO_ROUTE] = { .again = true, .route_down = true },
	[LNX_NOTE_REFUSED] = { .again = true, .remote = true },
	[LNX_NOTE_UNREACHABLE] = { .again = true, .ask = true },
	[LNX_NOTE_UNKNOWN_DST] = { .again = true, .route_down = true },
	[LNX_NOTE_TTL] = { .again = true, .route_down = true },
	[LNX_NOTE_FORBIDDEN] = { .again = true, .route_down = true },
	[LNX_NOTE_OVER_QUOTA] = { .again = true, .slow = true },
	[LNX_NOTE_DRAINING] = { .again = true, .draining = true },
	[LNX_NOTE_TOO_BIG] = { .error = true },
	[LNX_NOTE_NOT_ROUTER] = { .again = true, .not_routing = true },
};

const struct lnx_route_effect *lnx_route_effect(unsigned reason)
{
	return reason && reason < LNX_NOTE_MAX ? &effects[reason] : NULL;
}

unsigned lnx_route_gateway_note(struct lnx_gateway *g, unsigned reason, uint32_t count,
				uint64_t now)
{
	const struct lnx_route_effect *e = lnx_route_effect(reason);
	unsigned change = 0;

	if (!e)
		return 0;
	g->notes[reason] += count;
	if (e->slow)
		g->slow_ns = now + LNX_GATEWAY_SLOW_NS;
	if (e->draining && !g->draining) {
		g->draining = true;
		change |= LNX_GATEWAY_ROUTES;
	}
	if (e->not_routing && g->routing) {
		g->routing = false;
		change |= LNX_GATEWAY_ROUTES;
	}
	if (e->route_down)
		change |= LNX_GATEWAY_ROUTES;
	return change;
}
