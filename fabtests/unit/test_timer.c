/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Timers: against a model that searches all of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/timer.h"

#define N	300u

static struct lnx_timers set;
static struct lnx_timer timer[N];

/* Those that ran, in order. */
static unsigned ran[4 * N], nran;
/* What the callback of each does besides. */
static void (*then)(unsigned i, uint64_t now);

static void due(struct lnx_timer *t, uint64_t now)
{
	unsigned i = (unsigned)(t - timer);

	cr_assert_not(lnx_timer_armed(t));
	cr_assert_lt(nran, LNX_ARRAY_SIZE(ran));
	ran[nran++] = i;
	if (then)
		then(i, now);
}

static void make(unsigned n)
{
	unsigned i;

	lnx_timers_init(&set);
	cr_assert_eq(lnx_timers_reserve(&set, n), 0);
	for (i = 0; i < n; i++)
		lnx_timer_init(&timer[i], due);
}

static void arm(unsigned i, uint64_t at_ns)
{
	lnx_timer_arm(&set, &timer[i], at_ns);
}

#define EXPECT_RAN(...)							\
do {									\
	const unsigned want_[] = { __VA_ARGS__ };			\
	unsigned k_;							\
									\
	cr_expect_eq(nran, LNX_ARRAY_SIZE(want_), "%u ran", nran);	\
	for (k_ = 0; k_ < LNX_ARRAY_SIZE(want_) && k_ < nran; k_++)	\
		cr_expect_eq(ran[k_], want_[k_], "at %u: %u", k_, ran[k_]); \
	nran = 0;							\
} while (0)

Test(timer, none)
{
	make(1);
	cr_expect_eq(set.next_ns, LNX_NEVER);
	cr_expect_eq(lnx_timers_run(&set, LNX_NEVER, 10), 0);
	lnx_timer_cancel(&set, &timer[0]);
	arm(0, LNX_NEVER);
	cr_expect_not(lnx_timer_armed(&timer[0]));
	cr_expect_eq(lnx_timer_at(&set, &timer[0]), LNX_NEVER);
	lnx_timers_fini(&set);
	lnx_timers_fini(&set);
}

Test(timer, in_order_of_deadlines)
{
	make(5);
	arm(0, 30);
	arm(1, 10);
	arm(2, 40);
	arm(3, 20);
	arm(4, 50);
	cr_expect_eq(set.next_ns, 10);
	cr_expect_eq(lnx_timers_run(&set, 9, 10), 0);
	cr_expect_eq(lnx_timers_run(&set, 40, 10), 4);
	EXPECT_RAN(1, 3, 0, 2);
	cr_expect_eq(set.next_ns, 50);
	cr_expect(lnx_timer_armed(&timer[4]));
	lnx_timer_cancel(&set, &timer[4]);
	cr_expect_eq(set.next_ns, LNX_NEVER);
	cr_expect_eq(lnx_timers_run(&set, 100, 10), 0);
	lnx_timers_fini(&set);
}

/* First come, first served; arming again is coming again. */
Test(timer, ties)
{
	unsigned i;

	make(9);
	for (i = 0; i < 9; i++)
		arm(i, 7);
	arm(2, 7);
	cr_expect_eq(lnx_timers_run(&set, 7, 20), 9);
	EXPECT_RAN(0, 1, 3, 4, 5, 6, 7, 8, 2);
	lnx_timers_fini(&set);
}

/* Also where the count of armings wraps. */
Test(timer, ties_wrap)
{
	unsigned i;

	make(6);
	set.turn = UINT32_MAX - 2;
	for (i = 0; i < 6; i++)
		arm(i, 7);
	lnx_timers_run(&set, 7, 20);
	EXPECT_RAN(0, 1, 2, 3, 4, 5);
	lnx_timers_fini(&set);
}

Test(timer, changed)
{
	make(3);
	arm(0, 10);
	arm(1, 20);
	arm(2, 30);
	arm(2, 5);
	cr_expect_eq(set.next_ns, 5);
	arm(2, 25);
	cr_expect_eq(set.next_ns, 10);
	cr_expect_eq(lnx_timer_at(&set, &timer[2]), 25);
	cr_expect_eq(set.n, 3);
	lnx_timers_run(&set, 100, 10);
	EXPECT_RAN(0, 1, 2);
	arm(2, 3);
	cr_expect_eq(set.next_ns, 3);
	lnx_timers_fini(&set);
}

/* What is left is due at the next call. */
Test(timer, no_more_than_max)
{
	make(4);
	arm(0, 1);
	arm(1, 2);
	arm(2, 3);
	arm(3, 4);
	cr_expect_eq(lnx_timers_run(&set, 10, 3), 3);
	cr_expect_eq(set.next_ns, 4);
	cr_expect_eq(lnx_timers_run(&set, 10, 3), 1);
	EXPECT_RAN(0, 1, 2, 3);
	lnx_timers_fini(&set);
}

static void change_others(unsigned i, uint64_t now)
{
	switch (i) {
	case 0:
		lnx_timer_cancel(&set, &timer[1]);	/* due, and does not run */
		arm(2, now + 100);			/* due, and runs later */
		arm(3, now);				/* was not due */
		arm(0, now + 50);			/* itself */
		break;
	case 3:
		if (nran < 4)
			arm(3, now - 1);		/* again in this call */
		break;
	}
}

Test(timer, changes_inside_a_callback)
{
	make(5);
	then = change_others;
	arm(0, 10);
	arm(1, 11);
	arm(2, 12);
	arm(3, 1000);
	arm(4, 13);
	cr_expect_eq(lnx_timers_run(&set, 20, 50), 4);
	EXPECT_RAN(0, 4, 3, 3);
	cr_expect_eq(set.next_ns, 70);
	cr_expect_eq(set.n, 2);
	cr_expect_eq(lnx_timer_at(&set, &timer[2]), 120);
	lnx_timers_fini(&set);
}

static void for_ever(unsigned i, uint64_t now)
{
	arm(i, now);
}

Test(timer, one_that_is_always_due_ends)
{
	make(1);
	then = for_ever;
	arm(0, 1);
	cr_expect_eq(lnx_timers_run(&set, 5, 20), 20);
	lnx_timers_fini(&set);
}

/* ---- places ---- */

Test(timer, reserved)
{
	unsigned i;

	make(2);
	for (i = 2; i < N; i++) {
		cr_assert_eq(lnx_timers_reserve(&set, 1), 0);
		lnx_timer_init(&timer[i], due);
	}
	for (i = 0; i < N; i++)
		arm(i, N - i);
	cr_expect_eq(set.n, N);
	for (i = 0; i < N; i++)
		cr_expect_eq(lnx_timers_armed(&set, timer[i].place - 1), &timer[i]);
	/* There cannot be so many. */
	cr_expect_eq(lnx_timers_reserve(&set, UINT32_MAX), -ENOMEM);
	cr_expect_eq(set.reserved, N);
	cr_expect_eq(lnx_timers_run(&set, N, N), N);
	cr_expect_eq(ran[0], N - 1);
	cr_expect_eq(ran[N - 1], 0);
	lnx_timers_release(&set, N);
	cr_expect_eq(set.reserved, 0);
	lnx_timers_fini(&set);
}

/* ---- against a model ---- */

static uint64_t model_at[N], model_order[N], order;
static uint32_t state;
static uint64_t clock_ns;

static unsigned rnd(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static void model_arm(unsigned i, uint64_t at_ns)
{
	model_at[i] = at_ns;
	model_order[i] = ++order;
}

/* The one that is due next: of all, the earliest, and of these the one armed first. */
static unsigned model_next(void)
{
	unsigned i, best = 0;

	for (i = 1; i < N; i++)
		if (model_at[i] < model_at[best] ||
		    (model_at[i] == model_at[best] && model_order[i] < model_order[best]))
			best = i;
	return best;
}

/* Few different times, so that many are the same. */
static void change_one(unsigned i)
{
	uint64_t at_ns = clock_ns + rnd(40);

	if (rnd(8) == 0)
		at_ns = clock_ns - LNX_MIN(clock_ns, (uint64_t)rnd(20));
	if (rnd(6) == 0) {
		lnx_timer_cancel(&set, &timer[i]);
		model_at[i] = LNX_NEVER;
	} else {
		arm(i, at_ns);
		model_arm(i, at_ns);
	}
}

static void check_one(unsigned i, uint64_t now)
{
	unsigned left = rnd(4);

	cr_assert_leq(model_at[i], now, "%u is not due", i);
	cr_assert_eq(model_next(), i, "%u ran, %u is next", i, model_next());
	model_at[i] = LNX_NEVER;
	nran = 0;
	while (left--)
		change_one(rnd(3) ? rnd(N) : i);
}

Test(timer_random, as_the_model)
{
	const char *given = getenv("LNX_SEED");
	unsigned long seed = given ? strtoul(given, NULL, 0) : (unsigned long)time(NULL);
	unsigned i, step, armed;

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", seed, seed);
	state = (uint32_t)seed * 2654435761u | 1;
	make(N);
	set.turn = rnd(2) ? UINT32_MAX - rnd(2000) : 0;
	then = check_one;
	for (i = 0; i < N; i++)
		model_at[i] = LNX_NEVER;
	for (step = 0; step < 20000; step++) {
		unsigned max = rnd(30), n, early;

		change_one(rnd(N));
		if (rnd(4))
			continue;
		clock_ns += rnd(10);
		n = lnx_timers_run(&set, clock_ns, max);
		cr_assert_leq(n, max);
		for (armed = early = i = 0; i < N; i++) {
			cr_assert_eq(lnx_timer_at(&set, &timer[i]), model_at[i]);
			armed += model_at[i] != LNX_NEVER;
			early += model_at[i] <= clock_ns;
		}
		cr_assert_eq(set.n, armed);
		cr_assert_eq(set.next_ns, model_at[model_next()]);
		cr_assert(n == max || !early, "%u are due and did not run", early);
	}
	lnx_timers_fini(&set);
}
