/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gateways and routes: the life of a gateway, which routes are up, what each note and each
 * failure means, and which one is next.  The charges are told as stories, one for each
 * row of the table.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "policy/route.h"
#include "seed.h"

#define S	1000000000ull
#define MS	1000000ull

static const struct lnx_route_plan plan = {
	.alive_ns = 60 * S, .dead_ns = 60 * S, .ping_timeout_ns = 5 * S,
	.sensitivity = 100, .avoid_asym = true,
};
static const struct lnx_health_plan health_plan = {
	.step = { [LNX_CLASS_OK] = 100, [LNX_CLASS_RESPONSE_TIMEOUT] = 100,
		  [LNX_CLASS_REMOTE_TIMEOUT] = 100 },
};

static struct lnx_gateway g;

/* Two rails: 0 on our net, 1 on the other one. */
static struct lnx_gateway_facts facts(void)
{
	return (struct lnx_gateway_facts){
		.id = 7, .account = 3, .routing = true, .large = 32, .small = 64,
		.nrail = 2, .rail = { { 0, true, 1000 }, { 1, true, 1000 } },
	};
}

static void begin(void)
{
	lnx_route_gateway_init(&g);
}

static void inform(uint64_t now)
{
	struct lnx_gateway_facts f = facts();

	lnx_route_gateway_info(&g, &f, now);
}

TestSuite(route, .init = begin);

/* ---- the life of a gateway ---- */

/* Nothing is asked before the first use; then at once, without waiting. */
Test(route, first_use_asks)
{
	cr_assert_eq(lnx_route_gateway_next(&g, &plan), UINT64_MAX);
	cr_assert_eq(lnx_route_gateway_poll(&g, &plan, false, 100 * S), LNX_GATEWAY_NOTHING);
	cr_assert_eq(lnx_route_gateway_poll(&g, &plan, true, 100 * S), LNX_GATEWAY_HELLO);
	cr_assert_eq(lnx_route_gateway_poll(&g, &plan, true, 100 * S), LNX_GATEWAY_NOTHING);
	cr_assert_eq(lnx_route_gateway_next(&g, &plan), 105 * S);
	inform(101 * S);
	cr_assert_eq(g.state, LNX_GATEWAY_ALIVE);
	cr_assert_eq(g.account, 3);
	/* Soon one with the account. */
	cr_assert_eq(lnx_route_gateway_next(&g, &plan), 101 * S);
	cr_assert_eq(lnx_route_gateway_poll(&g, &plan, true, 101 * S), LNX_GATEWAY_HELLO);
	inform(101 * S);
	/* The next one a minute after the last. */
	cr_assert_eq(lnx_route_gateway_next(&g, &plan), 161 * S);
	cr_assert_eq(lnx_route_gateway_poll(&g, &plan, true, 160 * S), LNX_GATEWAY_NOTHING);
	cr_assert_eq(lnx_route_gateway_poll(&g, &plan, false, 161 * S), LNX_GATEWAY_HELLO);
}

Test(route, silence_is_death)
{
	struct lnx_route_plan p = plan;

	p.dead_ns = 7 * S;
	lnx_route_gateway_poll(&g, &p, true, 100 * S);
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, true, 105 * S - 1), LNX_GATEWAY_NOTHING);
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, true, 105 * S), LNX_GATEWAY_LOST);
	cr_assert_eq(g.state, LNX_GATEWAY_DEAD);
	/* Then with the interval for the dead. */
	cr_assert_eq(lnx_route_gateway_next(&g, &p), 107 * S);
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, false, 107 * S), LNX_GATEWAY_HELLO);
	/* An answer to a question is life. */
	cr_assert_eq(lnx_route_gateway_heard(&g, 108 * S),
		     LNX_GATEWAY_CAME_UP | LNX_GATEWAY_ROUTES);
	cr_assert_eq(lnx_route_gateway_heard(&g, 108 * S), 0);
	cr_assert_eq(g.state, LNX_GATEWAY_ALIVE);
	/* It was heard after the hello left: that one is answered. */
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, false, 112 * S), LNX_GATEWAY_NOTHING);
	cr_assert_eq(g.state, LNX_GATEWAY_ALIVE);
}

Test(route, no_checks)
{
	struct lnx_route_plan p = plan;

	p.alive_ns = p.dead_ns = 0;
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, true, S), LNX_GATEWAY_HELLO);
	inform(S);
	/* But for the one that tells its account. */
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, true, 2 * S), LNX_GATEWAY_HELLO);
	inform(2 * S);
	cr_assert_eq(lnx_route_gateway_next(&g, &p), UINT64_MAX);
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, true, 1000 * S), LNX_GATEWAY_NOTHING);
}

Test(route, checked_before_use)
{
	struct lnx_route_view v = { .gateway = &g, .hop = 1, .local = 1, .remote = 2 };
	struct lnx_route_plan p = plan;
	uint8_t why;

	cr_assert_eq(lnx_route_judge(&v, 1, &p, S, &why), 1);
	p.check_before_use = true;
	cr_assert_eq(lnx_route_judge(&v, 1, &p, S, &why), 0);
	cr_assert_eq(why, LNX_ROUTE_UNCHECKED);
	/* It is asked without any use. */
	cr_assert_eq(lnx_route_gateway_next(&g, &p), 0);
	cr_assert_eq(lnx_route_gateway_poll(&g, &p, false, S), LNX_GATEWAY_HELLO);
	inform(S);
	cr_assert_eq(lnx_route_judge(&v, 1, &p, S, &why), 1);
	cr_assert_eq(why, LNX_ROUTE_UP);
}

/* ---- how long it may take for an answer ---- */

static const struct lnx_route_plan busy = {
	.alive_ns = 75 * MS, .dead_ns = S, .ping_timeout_ns = S, .least_ns = 200 * MS,
};

/* It is asked when that is due, and answers after so long, when *now is then.  False: it was dead
 * meanwhile. */
static bool lives(uint64_t *now, uint64_t ns)
{
	uint64_t at = g.hello_ns ? LNX_MAX(*now + MS, lnx_route_gateway_next(&g, &busy)) : *now;
	bool lost = false;

	cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, at), LNX_GATEWAY_HELLO);
	*now = at + ns;
	while (!lost && (at = lnx_route_gateway_next(&g, &busy)) < *now)
		lost = lnx_route_gateway_poll(&g, &busy, true, at) == LNX_GATEWAY_LOST;
	lnx_route_gateway_answered(&g, false, *now);
	inform(*now);
	return !lost;
}

/* It answers n hellos in time. */
static void live(uint64_t *now, uint64_t ns, unsigned n)
{
	while (n--)
		cr_assert(lives(now, ns));
}

/* So long after *now it is dead without an answer; again: it is asked again meanwhile. */
static uint64_t dies_after(uint64_t now, bool again)
{
	enum lnx_gateway_todo todo = LNX_GATEWAY_NOTHING;
	uint64_t at = now;

	while (todo != LNX_GATEWAY_LOST) {
		at = lnx_route_gateway_next(&g, &busy);
		cr_assert_lt(at, now + 10 * S);
		todo = lnx_route_gateway_poll(&g, &busy, true, at);
		cr_assert(again || todo != LNX_GATEWAY_AGAIN);
		again &= todo != LNX_GATEWAY_AGAIN;
	}
	cr_assert(!again);
	return at - now;
}

/* Its answers took 2 ms: it is dead soon, but only when a second hello has no answer either. */
Test(route, soon_dead)
{
	uint64_t now = 100 * S;

	live(&now, 2 * MS, 20);
	cr_assert_eq(dies_after(now, true), 273 * MS);
	/* Nothing is known: as long as others have. */
	begin();
	lnx_route_gateway_poll(&g, &busy, true, now);
	cr_assert_eq(dies_after(now, true), S);
}

/* The limit follows the answers, up and down. */
Test(route, slow_answers)
{
	uint64_t now = 100 * S, ns;

	for (ns = 2 * MS; ns < 800 * MS; ns += ns / 4)
		cr_assert(lives(&now, ns), "dead, because answers took %u ms",
			  (unsigned)(ns / MS));
	cr_assert_eq(lnx_route_gateway_limit(&g, &busy), S);
	live(&now, 2 * MS, 60);
	cr_assert_eq(lnx_route_gateway_limit(&g, &busy), 200 * MS);
}

/* Megabytes are in front of a hello all at once: its answer may take as long as they do.  At the
 * rate at which they get there otherwise they are in front of none. */
Test(route, answers_behind_a_full_buffer)
{
	uint64_t now = 100 * S, given = 0;
	unsigned i;

	for (i = 0; i < 20; i++) {
		lnx_route_gateway_traffic(&g, given += 10000, 0);
		live(&now, 2 * MS, 1);
	}
	lnx_route_gateway_traffic(&g, given += 4000000, 0);
	cr_assert(lives(&now, 600 * MS));
	for (i = 0; i < 60; i++) {
		lnx_route_gateway_traffic(&g, given += 1900000, 0);
		live(&now, 2 * MS, 1);
	}
	lnx_route_gateway_traffic(&g, given + 1900000, 0);
	cr_assert_eq(dies_after(now, true), 273 * MS);
}

/* It was taken for dead, and answers then: it has longer from then on, for a time. */
Test(route, dead_too_early)
{
	uint64_t now = 100 * S, began;

	live(&now, 2 * MS, 20);
	cr_assert(!lives(&now, 300 * MS));
	cr_assert_eq(g.state, LNX_GATEWAY_ALIVE);
	live(&now, 2 * MS, 60);
	cr_assert_eq(lnx_route_gateway_limit(&g, &busy), 400 * MS);
	cr_assert(lives(&now, 390 * MS));
	for (began = now; now < began + 61 * S;)
		live(&now, 2 * MS, 1);
	cr_assert_eq(lnx_route_gateway_limit(&g, &busy), 200 * MS);
	/* Not if it was dead for long. */
	cr_assert(!lives(&now, 1500 * MS));
	live(&now, 2 * MS, 60);
	cr_assert_eq(lnx_route_gateway_limit(&g, &busy), 200 * MS);
}

/* Only the second one came there: the first one says nothing of how long it takes. */
Test(route, second_hello_answered)
{
	uint64_t now = 100 * S;

	cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, now), LNX_GATEWAY_HELLO);
	cr_assert_eq(lnx_route_gateway_next(&g, &busy), now + 500 * MS);
	now += 500 * MS;
	cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, now), LNX_GATEWAY_AGAIN);
	cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, now), LNX_GATEWAY_NOTHING);
	now += 2 * MS;
	lnx_route_gateway_answered(&g, true, now);
	inform(now);
	cr_assert_eq(lnx_route_gateway_limit(&g, &busy), 200 * MS);
}

/* What was not sent needs no answer. */
Test(route, hello_unsent)
{
	uint64_t now = 100 * S, at, began;
	unsigned n = 0;

	live(&now, 2 * MS, 20);
	for (at = now; at < now + 3 * S; n++) {
		at = lnx_route_gateway_next(&g, &busy);
		cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, at), LNX_GATEWAY_HELLO);
		lnx_route_gateway_unsent(&g, at);
		cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, at), LNX_GATEWAY_NOTHING);
	}
	cr_assert(n > 100 && n < 500, "%u hellos", n);
	cr_assert_eq(g.state, LNX_GATEWAY_ALIVE);
	/* The first one was, but not the second. */
	began = lnx_route_gateway_next(&g, &busy);
	cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, began), LNX_GATEWAY_HELLO);
	for (at = began; at < began + S - 10 * MS;) {
		at = lnx_route_gateway_next(&g, &busy);
		cr_assert_eq(lnx_route_gateway_poll(&g, &busy, true, at), LNX_GATEWAY_AGAIN);
		lnx_route_gateway_unsent(&g, at);
	}
	cr_assert_eq(dies_after(began, false), S);
}

/* Frames still come from it: it has longer, but not for ever, since others can send such. */
Test(route, frames_are_life)
{
	uint64_t now = 100 * S, at;

	live(&now, 2 * MS, 20);
	at = lnx_route_gateway_next(&g, &busy);
	lnx_route_gateway_poll(&g, &busy, true, at);
	lnx_route_gateway_traffic(&g, 0, at + 150 * MS);
	cr_assert_eq(dies_after(at, true), 350 * MS);
	inform(at + 2 * S);
	at += 3 * S;
	lnx_route_gateway_poll(&g, &busy, true, at);
	lnx_route_gateway_traffic(&g, 0, at + 2 * S);
	cr_assert_eq(dies_after(at, true), S);
}

/* Another id at the same address: account, grant and what it said are void; what failed
 * before is counted still. */
Test(route, restarted)
{
	struct lnx_gateway_facts f = facts();

	inform(S);
	lnx_health_fail(&g.rail[0].health, &health_plan, LNX_CLASS_RESPONSE_TIMEOUT, S);
	lnx_route_gateway_note(&g, LNX_NOTE_NOT_ROUTER, 2, S);
	cr_assert(!g.routing);
	f.account = 9;
	cr_assert(!(lnx_route_gateway_info(&g, &f, 2 * S) & LNX_GATEWAY_RESTARTED));
	cr_assert_eq(g.rail[0].health.value, 900);
	f.id = 8;
	cr_assert(lnx_route_gateway_info(&g, &f, 3 * S) & LNX_GATEWAY_RESTARTED);
	cr_assert_eq(g.account, 9);
	cr_assert_eq(g.rail[0].health.value, 1000);
	cr_assert_eq(g.notes[LNX_NOTE_NOT_ROUTER], 2);
	cr_assert(g.routing);
}

/* Rails keep their health by place when an info lists others. */
Test(route, rails_by_place)
{
	struct lnx_gateway_facts f = facts();

	inform(S);
	lnx_health_fail(&g.rail[1].health, &health_plan, LNX_CLASS_RESPONSE_TIMEOUT, S);
	f.nrail = 3;
	f.rail[0].place = 1;
	f.rail[1].place = 2;
	f.rail[2].place = 5;
	f.rail[2].up = true;
	f.rail[2].health = 300;
	lnx_route_gateway_info(&g, &f, S);
	cr_assert_eq(g.nrail, 3);
	cr_assert_eq(g.rail[0].health.value, 900);
	cr_assert_eq(g.rail[1].health.value, 1000);
	cr_assert_eq(lnx_route_gateway_rail_health(&g.rail[2]), 300);
}

/* Two NIDs of one gateway, whichever is the primary: the lower health of each rail. */
Test(route, merged)
{
	struct lnx_gateway a = g, b = g;
	unsigned order;

	for (order = 0; order < 2; order++) {
		struct lnx_gateway_facts f = facts();
		struct lnx_gateway *x = order ? &a : &b, *y = order ? &b : &a;

		lnx_route_gateway_init(&a);
		lnx_route_gateway_init(&b);
		lnx_route_gateway_info(&a, &f, 2 * S);
		f.rail[0].place = 1;
		f.rail[1].place = 2;
		f.rail[0].health = 700;
		lnx_route_gateway_info(&b, &f, 3 * S);
		lnx_health_fail(&a.rail[1].health, &health_plan,
				LNX_CLASS_RESPONSE_TIMEOUT, S);
		b.notes[LNX_NOTE_TTL] = 2;
		a.notes[LNX_NOTE_TTL] = 3;
		lnx_route_gateway_merge(x, y);
		cr_assert_eq(x->nrail, 3);
		for (unsigned i = 0; i < 3; i++) {
			const struct lnx_gateway_rail *r = &x->rail[i];

			cr_assert_eq(r->health.value, r->place == 1 ? 900 : 1000,
				     "place %u: %u", r->place, r->health.value);
			cr_assert_eq(lnx_route_gateway_rail_health(r),
				     r->place == 1 ? 700 : 1000);
		}
		cr_assert_eq(x->heard_ns, 3 * S);
		cr_assert_eq(x->state, LNX_GATEWAY_ALIVE);
		cr_assert_eq(x->notes[LNX_NOTE_TTL], 5);
		cr_assert_eq(x->id, 7);
	}
	/* One that was found dead later than the other was heard: dead. */
	lnx_route_gateway_init(&a);
	lnx_route_gateway_init(&b);
	lnx_route_gateway_poll(&b, &plan, true, S);
	lnx_route_gateway_poll(&b, &plan, true, 7 * S);
	cr_assert_eq(b.state, LNX_GATEWAY_DEAD);
	lnx_route_gateway_merge(&a, &b);
	cr_assert_eq(a.state, LNX_GATEWAY_DEAD);
}

/* ---- up and down ---- */

struct row {
	const char *name;
	void (*change)(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		       struct lnx_route_plan *p);
	enum lnx_route_why why;
};

static void as_it_is(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		     struct lnx_route_plan *p)
{
	(void)f, (void)v, (void)p;
}

static void no_routing(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		       struct lnx_route_plan *p)
{
	(void)v, (void)p;
	f->routing = false;
}

static void draining(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		     struct lnx_route_plan *p)
{
	(void)v, (void)p;
	f->draining = true;
}

static void near_down(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		      struct lnx_route_plan *p)
{
	(void)v, (void)p;
	f->rail[0].up = false;
}

static void far_down(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		     struct lnx_route_plan *p)
{
	(void)v, (void)p;
	f->rail[1].up = false;
}

static void far_down_symmetric(struct lnx_gateway_facts *f, struct lnx_route_view *v,
			       struct lnx_route_plan *p)
{
	far_down(f, v, p);
	p->avoid_asym = false;
}

static void far_down_two_hops(struct lnx_gateway_facts *f, struct lnx_route_view *v,
			      struct lnx_route_plan *p)
{
	far_down(f, v, p);
	v->hop = 2;
}

static void far_down_no_hops(struct lnx_gateway_facts *f, struct lnx_route_view *v,
			     struct lnx_route_plan *p)
{
	far_down(f, v, p);
	v->hop = 0;
}

static void far_down_learned(struct lnx_gateway_facts *f, struct lnx_route_view *v,
			     struct lnx_route_plan *p)
{
	far_down(f, v, p);
	v->hop = 0;
	v->learned = true;
}

static void no_far_rail(struct lnx_gateway_facts *f, struct lnx_route_view *v,
			struct lnx_route_plan *p)
{
	(void)f, (void)p;
	v->remote = 0;
}

static void no_far_rail_no_hops(struct lnx_gateway_facts *f, struct lnx_route_view *v,
				struct lnx_route_plan *p)
{
	no_far_rail(f, v, p);
	v->hop = 0;
}

static void noted(struct lnx_gateway_facts *f, struct lnx_route_view *v,
		  struct lnx_route_plan *p)
{
	(void)f, (void)p;
	v->noted_ns = 2 * S + 1;
}

static void noted_before(struct lnx_gateway_facts *f, struct lnx_route_view *v,
			 struct lnx_route_plan *p)
{
	(void)f, (void)p;
	v->noted_ns = 2 * S;
}

static const struct row rows[] = {
	{ "all is well", as_it_is, LNX_ROUTE_UP },
	{ "it does not forward", no_routing, LNX_ROUTE_NOT_ROUTING },
	{ "it is draining", draining, LNX_ROUTE_UP },
	{ "its rail here is down", near_down, LNX_ROUTE_NO_LOCAL_RAIL },
	{ "its rail there is down, one hop", far_down, LNX_ROUTE_NO_REMOTE_RAIL },
	{ "the same without avoid_asym", far_down_symmetric, LNX_ROUTE_UP },
	{ "the same with two hops", far_down_two_hops, LNX_ROUTE_UP },
	{ "the same with no hops given", far_down_no_hops, LNX_ROUTE_NO_REMOTE_RAIL },
	{ "it has no rail there, no hops given", no_far_rail_no_hops, LNX_ROUTE_UP },
	{ "the same, learned", far_down_learned, LNX_ROUTE_NO_REMOTE_RAIL },
	{ "it has no rail there, one hop", no_far_rail, LNX_ROUTE_NO_REMOTE_RAIL },
	{ "a note is valid", noted, LNX_ROUTE_NOTED },
	{ "a note was valid", noted_before, LNX_ROUTE_UP },
};

Test(route, up_and_down)
{
	for (size_t i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		struct lnx_route_view v = { .gateway = &g, .hop = 1, .local = 1,
					    .remote = 2 };
		struct lnx_gateway_facts f = facts();
		struct lnx_route_plan p = plan;
		uint8_t why = 99;
		unsigned up;

		lnx_route_gateway_init(&g);
		rows[i].change(&f, &v, &p);
		lnx_route_gateway_info(&g, &f, S);
		up = lnx_route_judge(&v, 1, &p, 2 * S, &why);
		cr_expect_eq(why, rows[i].why, "%s: %s", rows[i].name,
			     lnx_route_why_name(why));
		cr_expect_eq(up, lnx_route_is_up(rows[i].why));
	}
	lnx_route_gateway_init(&g);
	g.state = LNX_GATEWAY_DEAD;
	cr_assert_eq(lnx_route_judge(&(struct lnx_route_view){ .gateway = &g }, 1, &plan,
				     S, (uint8_t[1]){ 0 }), 0);
	for (unsigned i = 0; i < LNX_ROUTE_WHYS; i++)
		cr_assert_str_neq(lnx_route_why_name(i), "unknown");
}

static void sicken(struct lnx_gateway *gw, unsigned times)
{
	while (times--)
		lnx_health_fail(&gw->rail[0].health, &health_plan,
				LNX_CLASS_RESPONSE_TIMEOUT, S);
}

/* Below the sensitivity a route is down, but not the last one. */
Test(route, sensitivity)
{
	struct lnx_gateway other;
	struct lnx_gateway_facts f = facts();
	struct lnx_route_view v[2] = {
		{ .gateway = &g, .hop = 1, .local = 1, .remote = 2 },
		{ .gateway = &other, .hop = 1, .local = 1, .remote = 2 },
	};
	struct lnx_route_plan p = plan;
	uint8_t why[2];

	lnx_route_gateway_init(&other);
	inform(S);
	lnx_route_gateway_info(&other, &f, S);
	sicken(&g, 1);
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[0], LNX_ROUTE_SICK);
	cr_assert_eq(why[1], LNX_ROUTE_UP);
	/* Both are sick: the healthier one, or both if they are equal. */
	sicken(&other, 2);
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[0], LNX_ROUTE_LAST);
	cr_assert_eq(why[1], LNX_ROUTE_SICK);
	sicken(&g, 1);
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 2);
	/* What takes the other down is no sensitivity: the sick one is the last. */
	sicken(&g, 3);
	lnx_route_gateway_note(&other, LNX_NOTE_NOT_ROUTER, 1, S);
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[0], LNX_ROUTE_LAST);
	cr_assert_eq(why[1], LNX_ROUTE_NOT_ROUTING);
	/* 80 % is enough for 800, and 0 % for anything. */
	lnx_route_gateway_info(&other, &f, S);
	p.sensitivity = 80;
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[1], LNX_ROUTE_UP);
	p.sensitivity = 0;
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 2);
	/* Its own number counts as well. */
	p.sensitivity = 100;
	f.rail[0].health = 999;
	lnx_route_gateway_init(&other);
	lnx_route_gateway_info(&other, &f, S);
	lnx_route_gateway_init(&g);
	inform(S);
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[1], LNX_ROUTE_SICK);
	/* So does what is found of the way to it. */
	f.rail[0].health = 1000;
	lnx_route_gateway_info(&other, &f, S);
	v[0].sick = 100;
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[0], LNX_ROUTE_SICK);
	v[1].sick = 200;
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 1);
	cr_assert_eq(why[0], LNX_ROUTE_LAST);
	p.sensitivity = 80;
	cr_assert_eq(lnx_route_judge(v, 2, &p, S, why), 2);
}

/* ---- notes ---- */

Test(route, notes)
{
	static const char *const effects[LNX_NOTE_MAX] = {
		[LNX_NOTE_NO_ROUTE] = "again route",
		[LNX_NOTE_REFUSED] = "again remote",
		[LNX_NOTE_UNREACHABLE] = "again ask",
		[LNX_NOTE_UNKNOWN_DST] = "again route",
		[LNX_NOTE_TTL] = "again route",
		[LNX_NOTE_FORBIDDEN] = "again route",
		[LNX_NOTE_OVER_QUOTA] = "again slow",
		[LNX_NOTE_DRAINING] = "again draining",
		[LNX_NOTE_TOO_BIG] = "error",
		[LNX_NOTE_NOT_ROUTER] = "again not_routing",
	};
	unsigned i;

	cr_assert_null(lnx_route_effect(0));
	cr_assert_null(lnx_route_effect(LNX_NOTE_MAX));
	cr_assert_eq(lnx_route_gateway_note(&g, 0, 1, S), 0);
	for (i = 1; i < LNX_NOTE_MAX; i++) {
		const struct lnx_route_effect *e = lnx_route_effect(i);
		unsigned change;
		char text[64];

		snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s", e->again ? "again" : "",
			 e->route_down ? " route" : "", e->remote ? " remote" : "",
			 e->ask ? " ask" : "", e->slow ? " slow" : "",
			 e->draining ? " draining" : "",
			 e->not_routing ? " not_routing" : "", e->error ? "error" : "");
		cr_expect_str_eq(text, effects[i], "%u: %s", i, text);

		lnx_route_gateway_init(&g);
		inform(S);
		change = lnx_route_gateway_note(&g, i, 5, 2 * S);
		cr_expect_eq(g.notes[i], 5);
		cr_expect_eq(g.heard_ns, S, "anyone may have sent it");
		cr_expect_eq(g.draining, i == LNX_NOTE_DRAINING);
		cr_expect_eq(g.routing, i != LNX_NOTE_NOT_ROUTER);
		cr_expect_eq(g.slow_ns > 2 * S, i == LNX_NOTE_OVER_QUOTA);
		cr_expect_eq(!!(change & LNX_GATEWAY_ROUTES),
			     e->route_down || e->draining || e->not_routing);
		/* No note costs a gateway its health. */
		cr_expect_eq(g.rail[0].health.value, 1000);
		cr_expect_eq(g.rail[1].health.value, 1000);
	}
	/* An info ends what notes began. */
	inform(3 * S);
	cr_assert(g.routing && !g.draining && !g.slow_ns);
}

/* ---- charges: one story for each row ---- */

#define N	LNX_ANSWERS_NO
#define Y	LNX_ANSWERS_YES
#define U	LNX_ANSWERS_UNKNOWN
#define C(x)	LNX_ROUTE_CHARGE_##x

static const struct {
	const char *story;
	struct lnx_route_evidence e;
	unsigned charge;
} stories[] = {
	{ "the cable of our rail to g is cut; g answers over our other rail",
	  { N, Y, N, Y, 0, false, false }, C(PATH) | C(LOCAL_RAIL) | C(GATEWAY_RAIL) },
	{ "the same, and nothing is known of the far end",
	  { N, Y, U, U, 0, false, false }, C(PATH) | C(LOCAL_RAIL) | C(GATEWAY_RAIL) },
	{ "the cable of that rail of g is cut; our rail reaches another one of it",
	  { N, Y, N, Y, 0, false, true }, C(PATH) | C(GATEWAY_RAIL) },
	{ "g is killed; the far end answers over g2",
	  { N, N, N, Y, 0, false, false }, C(GATEWAY) },
	{ "g, with one rail, is killed; the far end answers over g2",
	  { N, U, N, Y, 0, false, false }, C(GATEWAY) },
	{ "our own switch is off: all is silent",
	  { N, N, N, N, 0, false, false }, C(PATH) },
	{ "nothing is known of g yet",
	  { U, U, N, N, 0, false, false }, C(ASK) },
	{ "frames arrive: a late question",
	  { Y, U, Y, U, 0, false, false }, 0 },
	{ "the cable behind g is cut; the far end answers over g2",
	  { Y, U, N, Y, 0, false, false }, C(LEG) | C(ASK) },
	{ "the same: g says that its rail there is down",
	  { Y, U, N, Y, LNX_TELL_RAIL_DOWN, false, false }, C(LEG) | C(ROUTE_DOWN) },
	{ "the same: g gets no answer from there",
	  { Y, U, N, Y, LNX_TELL_SILENT, false, false }, C(LEG) },
	{ "the same: its kernel has no way there",
	  { Y, U, N, Y, LNX_TELL_UNREACHABLE, false, false }, C(LEG) },
	{ "the far end lost that rail only: its kernel refuses",
	  { Y, U, N, Y, LNX_TELL_REFUSED, false, false }, C(REMOTE_RAIL) },
	{ "g reaches the far end, but what we send does not arrive",
	  { Y, U, N, Y, LNX_TELL_ALIVE, false, false }, C(LEG) },
	{ "the far end is silent everywhere: ask before anything is charged",
	  { Y, U, N, N, 0, false, false }, C(ASK) },
	{ "the far end is killed: its kernel refuses",
	  { Y, U, N, N, LNX_TELL_REFUSED, false, false }, C(REMOTE_RAIL) },
	{ "the same on all its rails",
	  { Y, U, N, N, LNX_TELL_REFUSED, true, false }, C(REMOTE_RAIL) | C(PEER) },
	{ "the far node has lost its power",
	  { Y, U, N, N, LNX_TELL_SILENT, false, false }, C(REMOTE_RAIL) },
	{ "the far end computes for 60 s: its kernel answers",
	  { Y, U, N, N, LNX_TELL_ALIVE, false, false }, 0 },
	{ "the same, and other gateways have not been tried",
	  { Y, U, N, U, LNX_TELL_ALIVE, false, false }, 0 },
	{ "the only gateway lost its far rail",
	  { Y, U, N, N, LNX_TELL_RAIL_DOWN, false, false }, C(LEG) | C(ROUTE_DOWN) },
	{ "the only gateway has no route any more",
	  { Y, U, N, N, LNX_TELL_NO_ROUTE, false, false }, C(LEG) | C(ROUTE_DOWN) },
	{ "g cannot ask on such a net",
	  { Y, U, N, N, LNX_TELL_UNKNOWN, false, false }, C(LEG) },
};

Test(route, charges)
{
	for (size_t i = 0; i < LNX_ARRAY_SIZE(stories); i++)
		cr_expect_eq(lnx_route_charges(&stories[i].e), stories[i].charge,
			     "%s: %#x, not %#x", stories[i].story,
			     lnx_route_charges(&stories[i].e), stories[i].charge);
}

/* Whatever is known: a gateway that answers is never charged, and one rail of it only if
 * the gateway answers elsewhere; the peer never without an answer about it. */
Test(route, innocents)
{
	struct lnx_route_evidence e;
	unsigned n, rest, charge;

	for (n = 0; n < 81 * LNX_TELL_MAX * 4; n++) {
		rest = n;
		e.gateway = rest % 3, rest /= 3;
		e.gateway_elsewhere = rest % 3, rest /= 3;
		e.far_through = rest % 3, rest /= 3;
		e.far_elsewhere = rest % 3, rest /= 3;
		e.tell = (uint8_t)(rest % LNX_TELL_MAX), rest /= LNX_TELL_MAX;
		e.all_refused = rest % 2, rest /= 2;
		e.rail_works = rest;
		charge = lnx_route_charges(&e);
		if (e.gateway == Y)
			cr_assert(!(charge & (C(GATEWAY) | C(GATEWAY_RAIL) | C(PATH) |
					      C(LOCAL_RAIL))));
		if (e.rail_works)
			cr_assert(!(charge & C(LOCAL_RAIL)));
		if (e.gateway_elsewhere == Y || e.gateway != N || e.far_elsewhere != Y)
			cr_assert(!(charge & C(GATEWAY)));
		if (charge & (C(REMOTE_RAIL) | C(PEER)))
			cr_assert(e.gateway == Y && e.tell && e.tell != LNX_TELL_ALIVE);
		if (e.far_through == Y && e.gateway == Y)
			cr_assert_eq(charge, 0);
		if (e.far_elsewhere == Y)
			cr_assert(!(charge & C(PEER)) || e.tell == LNX_TELL_REFUSED);
		/* Every case of a path that is certainly silent leads to something. */
		if (e.far_through == N && e.gateway != U && e.tell != LNX_TELL_ALIVE)
			cr_assert_neq(charge, 0, "%u", n);
	}
	e = (struct lnx_route_evidence){ .gateway = 3 };
	cr_assert_eq(lnx_route_charges(&e), 0);
}

/* ---- selection ---- */

/* One difference after the other decides, whatever follows. */
Test(route, picked_by)
{
	/* Better in all that follows the criterion, and worse in none before. */
	static const struct lnx_route_choice worse = {
		.preferred = false, .priority = 9, .hop = 9, .state = 2, .health = 1,
		.queued = 9, .credits = -9, .used = 9,
	}, better = {
		.preferred = true, .priority = 0, .hop = 1, .state = 0, .health = 1000,
		.queued = 0, .credits = 9, .used = 1,
	};
	unsigned i;

	for (i = LNX_ROUTE_BY_PREFERRED; i < LNX_ROUTE_BY_ORDER; i++) {
		struct lnx_route_choice c[2] = { better, worse };
		uint8_t by[2];

		/* Equal before i; at i choice 1 is better; behind, choice 0. */
		if (i > LNX_ROUTE_BY_PREFERRED)
			c[1].preferred = c[0].preferred;
		if (i > LNX_ROUTE_BY_PRIORITY)
			c[1].priority = c[0].priority;
		if (i > LNX_ROUTE_BY_HOPS)
			c[1].hop = 0;	/* not given: compared as 1 */
		if (i > LNX_ROUTE_BY_STATE)
			c[1].state = c[0].state;
		if (i > LNX_ROUTE_BY_HEALTH)
			c[1].health = c[0].health;
		if (i > LNX_ROUTE_BY_QUEUED)
			c[1].queued = c[0].queued;
		if (i > LNX_ROUTE_BY_CREDITS)
			c[1].credits = c[0].credits;
		switch (i) {
		case LNX_ROUTE_BY_PREFERRED:
			c[0].preferred = false, c[1].preferred = true;
			break;
		case LNX_ROUTE_BY_PRIORITY:
			c[0].priority = 2, c[1].priority = 1;
			break;
		case LNX_ROUTE_BY_HOPS:
			c[0].hop = 3, c[1].hop = 2;
			break;
		case LNX_ROUTE_BY_STATE:
			c[0].state = 1, c[1].state = 0;
			break;
		case LNX_ROUTE_BY_HEALTH:
			c[0].health = 999, c[1].health = 1000;
			break;
		case LNX_ROUTE_BY_QUEUED:
			c[0].queued = 1, c[1].queued = 0;
			break;
		case LNX_ROUTE_BY_CREDITS:
			c[0].credits = 0, c[1].credits = 1;
			break;
		case LNX_ROUTE_BY_TURN:
			c[0].used = 5, c[1].used = 4;
			break;
		}
		cr_expect_eq(lnx_route_pick(c, 2, by), 1, "%s", lnx_route_by_name(i));
		cr_expect_eq(by[0], i, "%s: %s", lnx_route_by_name(i),
			     lnx_route_by_name(by[0]));
		cr_expect_eq(by[1], i);
	}
	cr_assert_eq(lnx_route_pick(NULL, 0, NULL), -1);
	for (i = 0; i < LNX_ROUTE_BYS; i++)
		cr_assert_str_neq(lnx_route_by_name(i), "unknown");
}

Test(route, picked_equal)
{
	struct lnx_route_choice c[3] = { { .health = 1000 }, { .health = 1000 },
					 { .health = 1000 } };
	uint8_t by[3];
	unsigned used[3] = { 0 }, i;

	cr_assert_eq(lnx_route_pick(c, 1, by), 0);
	cr_assert_eq(by[0], LNX_ROUTE_BY_ONLY);
	cr_assert_eq(lnx_route_pick(c, 3, by), 0);
	cr_assert(by[0] == LNX_ROUTE_BY_ORDER && by[1] == LNX_ROUTE_BY_ORDER &&
		  by[2] == LNX_ROUTE_BY_ORDER);
	/* Each gets its turn. */
	for (i = 1; i <= 300; i++) {
		int n = lnx_route_pick(c, 3, NULL);

		c[n].used = i;
		used[n]++;
	}
	cr_assert(used[0] == 100 && used[1] == 100 && used[2] == 100);
}

/* Against a sort by one key after the other. */
Test(route, picked_random)
{
	unsigned round, i, k;

	rnd_begin();
	for (round = 0; round < 20000; round++) {
		struct lnx_route_choice c[6];
		unsigned n = 1 + (unsigned)rnd(6);
		bool in[6];
		int best;

		for (i = 0; i < n; i++) {
			c[i] = (struct lnx_route_choice){
				.preferred = rnd(2), .priority = (uint32_t)rnd(2),
				.hop = (uint8_t)rnd(3), .state = (uint8_t)rnd(3),
				.health = (uint16_t)rnd(2), .queued = rnd(2),
				.credits = (int32_t)rnd(3) - 1, .used = rnd(2),
			};
			in[i] = true;
		}
		/* Strike out all that are worse than the best in one key. */
#define STRIKE(key) \
		do { \
			int64_t top = INT64_MIN; \
			for (k = 0; k < n; k++) \
				if (in[k] && (int64_t)(key) > top) \
					top = (int64_t)(key); \
			for (k = 0; k < n; k++) \
				in[k] = in[k] && (int64_t)(key) == top; \
		} while (0)
		STRIKE(c[k].preferred);
		STRIKE(-(int64_t)c[k].priority);
		STRIKE(-(c[k].hop ? c[k].hop : 1));
		STRIKE(-c[k].state);
		STRIKE(c[k].health);
		STRIKE(-(int64_t)c[k].queued);
		STRIKE(c[k].credits);
		STRIKE(-(int64_t)c[k].used);
		best = lnx_route_pick(c, n, NULL);
		for (k = 0; !in[k]; k++)
			;
		cr_assert_eq(best, (int)k, "round %u: %d, not %u", round, best, k);
	}
}
