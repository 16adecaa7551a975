/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* policy/yield: a thread that polls in vain, on cores that other threads need
 * or not. */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/interval.h"
#include "policy/yield.h"

#define US		LNX_NS_PER_US
#define MS		LNX_NS_PER_MS
#define SLEEP_NS	(55 * US)
#define YIELD_NS	500ull
#define TAKEN_NS	(3 * US)
#define SLICE_NS	(3 * MS)

/* A thread, and what happens to its core. */
struct sim {
	struct lnx_yield y;
	uint64_t now, read_ns;
	uint32_t found, left;
	bool taken;			/* another thread takes the core at a yield */
	uint64_t lost_ns;		/* another thread takes it at other times, for so long */
	uint64_t taken_ns;		/* for so long */
	uint64_t slice_ns;		/* and after so long without a yield; 0: not */
	uint64_t ran_ns;		/* since it had the core last */
	uint64_t cpu_ns;		/* CPU time */
	uint64_t others_ns;		/* time of the thread that takes the core */
	unsigned looks, yields, sleeps;
	uint64_t first_ns;		/* when it first yielded */
};

static struct sim start(uint64_t every)
{
	struct sim s = { .now = MS, .read_ns = 500, .taken_ns = TAKEN_NS };

	lnx_yield_init(&s.y, every);
	s.left = s.y.every;
	return s;
}

/* Reads that find nothing, for this long. */
static void wait_for(struct sim *s, uint64_t ns)
{
	uint64_t end = s->now + ns;

	s->yields = s->sleeps = s->looks = 0;
	s->first_ns = 0;
	while (s->now < end) {
		enum lnx_yield_how how;

		s->now += s->read_ns;
		s->ran_ns += s->read_ns;
		s->cpu_ns += s->read_ns;
		if (s->slice_ns && s->ran_ns >= s->slice_ns) {
			s->now += s->taken_ns;
			s->others_ns += s->taken_ns;
			s->ran_ns = 0;
		}
		if (--s->left)
			continue;
		s->looks++;
		how = lnx_yield_look(&s->y, s->now, s->found);
		if (how != LNX_YIELD_NOT) {
			if (!s->first_ns)
				s->first_ns = s->now;
			if (how == LNX_YIELD_SLEEP) {
				s->sleeps++;
				s->now += s->y.nap_ns + SLEEP_NS;
				s->others_ns += s->taken ? s->y.nap_ns + SLEEP_NS : 0;
				s->ran_ns = 0;
			} else if (how == LNX_YIELD_CORE) {
				s->yields++;
				s->now += s->taken ? s->taken_ns : YIELD_NS;
				s->others_ns += s->taken ? s->taken_ns : 0;
				s->ran_ns = s->taken ? 0 : s->ran_ns;
			}
			lnx_yield_done(&s->y, how, s->now, s->taken &&
				       how == LNX_YIELD_CORE, s->lost_ns, s->cpu_ns);
		}
		s->left = s->y.every;
	}
}

/* The same, with something found at each interval. */
static unsigned talk_for(struct sim *s, uint64_t ns, uint64_t every)
{
	uint64_t end = s->now + ns;
	unsigned n = 0;

	while (s->now < end) {
		wait_for(s, every);
		n += s->yields + s->sleeps;
		s->found++;
	}
	return n;
}

static void make_crowded(struct sim *s)
{
	s->taken = true;
	wait_for(s, MS);
	cr_assert(lnx_yield_crowded(&s->y));
}

Test(yield, zero_is_never)
{
	struct sim s = start(0);

	s.taken = true;
	s.lost_ns = SLICE_NS;
	wait_for(&s, 100 * MS);
	cr_assert_eq(s.yields + s.sleeps + s.looks, 0);
	/* The read counter may be billions. */
	lnx_yield_look(&s.y, s.now, 0);
	cr_assert_eq(lnx_yield_look(&s.y, s.now + 1, 0), LNX_YIELD_NOT);
}

Test(yield, number_is_kept)
{
	struct sim s = start(10);

	wait_for(&s, 10 * MS);
	cr_assert_geq(s.yields, s.looks - 1);
	s.taken = true;
	s.lost_ns = SLICE_NS;
	wait_for(&s, 10 * MS);
	cr_assert_eq(s.yields, s.looks);
	cr_assert_eq(s.y.every, 10);
	cr_assert_eq(s.sleeps, 0);
	cr_assert(!lnx_yield_crowded(&s.y));
	/* Reads in a row are counted. */
	s.read_ns = 1000;
	s.found++;
	cr_assert_leq(talk_for(&s, 10 * MS, 9 * US), 1);
	/* Also the largest number, and one that does not fit. */
	s = start(1);
	cr_assert_eq(s.y.every, 1);
	s = start(UINT64_MAX - 1);
	cr_assert_eq(s.y.every, UINT32_MAX);
}

Test(yield, alone_it_costs_less_than_a_percent)
{
	uint64_t read_ns[] = { 40, 500, 3000 };
	unsigned i;

	for (i = 0; i < 3; i++) {
		struct sim s = start(LNX_YIELD_AUTO);

		s.read_ns = read_ns[i];
		wait_for(&s, 100 * MS);
		cr_assert_gt(s.yields, 200);
		cr_assert_leq(s.yields * YIELD_NS, MS, "%u yields", s.yields);
		cr_assert_eq(s.sleeps, 0);
	}
}

Test(yield, not_while_messages_come)
{
	struct sim s = start(LNX_YIELD_AUTO);

	cr_assert_eq(talk_for(&s, 100 * MS, 150 * US), 0);
	/* Modulo 2^32. */
	s.found = UINT32_MAX - 3;
	cr_assert_eq(talk_for(&s, MS, 150 * US), 0);
}

Test(yield, crowd_is_learnt_at_once)
{
	struct sim s = start(LNX_YIELD_AUTO);
	uint64_t began = s.now;

	s.taken = true;
	wait_for(&s, MS);
	cr_assert_lt(s.first_ns - began, 300 * US);
	began = s.now;
	wait_for(&s, MS);
	cr_assert_lt(s.first_ns - began, 5 * US);
	cr_assert_gt(s.yields, 150);
	cr_assert_eq(s.sleeps, 0);
	/* The state is kept between messages. */
	cr_assert_gt(talk_for(&s, 10 * MS, 20 * US), 1000);
}

Test(yield, not_taken_any_more)
{
	struct sim s = start(LNX_YIELD_AUTO);

	make_crowded(&s);
	s.taken = false;
	wait_for(&s, MS);
	/* 2, 4, ... 128, 200 us. */
	cr_assert_leq(s.yields, 12, "%u yields", s.yields);
	cr_assert(!lnx_yield_crowded(&s.y));
	wait_for(&s, 10 * MS);
	cr_assert_leq(s.yields, 50);
	/* Short waits alone do not get that far, but cost little then. */
	make_crowded(&s);
	s.taken = false;
	cr_assert_leq(talk_for(&s, 10 * MS, 20 * US), 20);
}

Test(yield, a_thread_that_computes_keeps_its_core)
{
	struct sim s = start(LNX_YIELD_AUTO);

	make_crowded(&s);
	s.read_ns = 50 * US;		/* with work in between */
	wait_for(&s, 100 * MS);
	cr_assert_leq(s.yields, 1);
	cr_assert_eq(s.sleeps, 0);
	s.read_ns = 500;
	wait_for(&s, MS);
	cr_assert_gt(s.yields, 100);
}

Test(yield, another_group_gets_the_core_by_sleep)
{
	struct sim s = start(LNX_YIELD_AUTO);

	s.lost_ns = SLICE_NS;
	wait_for(&s, 2 * MS);
	cr_assert_gt(s.sleeps, 5);
	/* But not where the wait is short. */
	cr_assert_eq(s.y.sleep_ns > s.now, true);
	wait_for(&s, MS / 2);
	s.found++;
	wait_for(&s, 120 * US);
	cr_assert_gt(s.first_ns, 0);
	cr_assert_eq(s.sleeps, 1);
	s.found++;
	s.read_ns = 50;
	cr_assert_geq(s.y.sleep_ns, s.now + 10 * MS);
	cr_assert_eq(talk_for(&s, MS, 50 * US), 0);
}

/* Threads of the kernel that serve the network: each has it for some microseconds. */
Test(yield, short_losses_are_no_reason_to_sleep)
{
	struct sim s = start(LNX_YIELD_AUTO);

	s.lost_ns = 50 * US;
	wait_for(&s, 50 * MS);
	cr_assert_gt(s.yields, 100);
	cr_assert_eq(s.sleeps, 0);
	s.lost_ns = SLICE_NS;
	s.found++;
	wait_for(&s, 2 * MS);
	cr_assert_gt(s.sleeps, 5);
}

Test(yield, one_loss_is_an_accident)
{
	struct sim s = start(LNX_YIELD_AUTO);
	unsigned i;

	for (i = 0; i < 10; i++) {
		s.lost_ns = SLICE_NS;
		wait_for(&s, 220 * US);
		cr_assert_leq(s.yields, 1);
		s.lost_ns = 0;
		wait_for(&s, 30 * MS);
		cr_assert_eq(s.sleeps, 0, "round %u", i);
	}
}

Test(yield, sleeping_ends)
{
	struct sim s = start(LNX_YIELD_AUTO);
	uint64_t slept, last = 0;
	unsigned i;

	/* Longer each time, up to a limit. */
	for (i = 0; i < 8; i++) {
		s.lost_ns = SLICE_NS;
		do
			wait_for(&s, 100 * US);
		while (!s.sleeps);
		s.lost_ns = 0;
		slept = s.y.sleep_ns - s.now;
		cr_assert(slept > last || slept > 300 * MS);
		cr_assert_leq(slept, 320 * MS);
		last = slept;
		wait_for(&s, slept + MS);
		cr_assert_gt(s.sleeps, 10);
		wait_for(&s, 10 * MS);
		cr_assert_eq(s.sleeps, 0);
	}
	/* After a long quiet time it starts again. */
	wait_for(&s, 1000 * MS);
	s.lost_ns = SLICE_NS;
	wait_for(&s, 220 * US);
	s.lost_ns = 0;
	wait_for(&s, 100 * MS);
	s.lost_ns = SLICE_NS;
	do
		wait_for(&s, 100 * US);
	while (!s.sleeps);
	cr_assert_leq(s.y.sleep_ns - s.now, 20 * MS);
}

/* ---- threads that have the core for long after a yield ---- */

static struct sim beside(uint64_t taken_ns, uint64_t slice_ns)
{
	struct sim s = start(LNX_YIELD_AUTO);

	s.taken = true;
	s.taken_ns = taken_ns;
	s.slice_ns = slice_ns;
	return s;
}

/* So many messages, before each of which the other thread computes for need_ns.  Time for
 * each. */
static uint64_t served(struct sim *s, unsigned messages, uint64_t need_ns)
{
	uint64_t began = s->now;
	unsigned i;

	for (i = 0; i < messages; i++) {
		uint64_t had = s->others_ns;

		while (s->others_ns - had < need_ns)
			wait_for(s, 10 * US);
		s->found++;
	}
	return (s->now - began) / messages;
}

/* So much of that time the other thread has the core while nothing comes, in a hundred. */
static uint64_t left_to_it(struct sim *s, uint64_t ns)
{
	uint64_t had = s->others_ns, began = s->now;

	wait_for(s, ns);
	return (s->others_ns - had) * 100 / (s->now - began);
}

/* Of the idle class: it never takes the core. */
Test(yield, less_claim_gets_no_slices)
{
	struct sim s = beside(4 * MS, 0);

	wait_for(&s, 1000 * MS);
	cr_expect_leq(s.yields, 4, "%u yields", s.yields);
	cr_expect_eq(s.sleeps, 0);
	/* Nor while messages come. */
	cr_expect_eq(talk_for(&s, 1000 * MS, 300 * US), 0);
}

/* With a nice value: now and then. */
Test(yield, little_claim_gets_few_slices)
{
	struct sim s = beside(4 * MS, 270 * MS);

	wait_for(&s, 4000 * MS);
	cr_expect_leq(s.yields, 20, "%u yields", s.yields);
	cr_expect_eq(s.sleeps, 0);
}

/* What computes on the same core has nearly all of it while nothing comes. */
Test(yield, same_claim_has_the_core_meanwhile)
{
	struct sim s = beside(3 * MS, 4 * MS);

	cr_expect_geq(left_to_it(&s, 4000 * MS), 95);
	/* And soon again when it comes later. */
	s = beside(4 * MS, 0);
	wait_for(&s, 4000 * MS);
	s.slice_ns = 4 * MS;
	wait_for(&s, 170 * MS);
	cr_expect_geq(left_to_it(&s, 100 * MS), 50);
}

/* Messages come from elsewhere, each some time after the answer to the one before.  How many? */
static unsigned exchange_for(struct sim *s, uint64_t ns, uint64_t after_ns)
{
	uint64_t end = s->now + ns;
	unsigned n;

	for (n = 0; s->now < end; n++) {
		wait_for(s, after_ns);
		s->found++;
	}
	return n;
}

/* A yield for each would cost a slice of the other thread.  A thread that sleeps has the core
 * when it wakes. */
Test(yield, no_slice_for_a_message_from_elsewhere)
{
	struct sim s = beside(3 * MS, 4 * MS);

	wait_for(&s, 100 * MS);
	cr_expect_gt(exchange_for(&s, 2000 * MS, 100 * US), 2000 * 1000 / (2 * 100) * 9 / 10);
	cr_expect_geq(left_to_it(&s, 1000 * MS), 95);
}

/* And no wait gets much longer by that. */
Test(yield, sleeps_are_part_of_a_wait)
{
	static const uint64_t ns[] = { 100 * US, 300 * US, MS, 3 * MS, 10 * MS };
	struct sim s = beside(3 * MS, 0);
	unsigned i, k;

	for (i = 0; i < LNX_ARRAY_SIZE(ns); i++) {
		/* Sleeping, and no trial is due. */
		s.y.sleep_ns = s.now + 10000 * MS;
		for (k = 0; k < 20; k++) {
			uint64_t end = s.now + ns[i];

			wait_for(&s, ns[i]);
			cr_expect_leq(s.now - end, ns[i] / 8 + SLEEP_NS, "%u of %u", k, i);
			cr_expect_eq(s.yields, 0);
			cr_expect_gt(s.sleeps, 0);
			s.found++;
		}
	}
	cr_expect_leq(s.y.nap_ns, LNX_YIELD_NAP_MAX_NS);
}

/* The other thread is gone: that is found out. */
Test(yield, sleeps_end_with_their_reason)
{
	struct sim s = beside(3 * MS, 4 * MS);

	wait_for(&s, 3000 * MS);
	s.taken = false;
	s.slice_ns = 0;
	wait_for(&s, LNX_YIELD_SLEEP_MAX_NS + MS);
	wait_for(&s, 100 * MS);
	cr_expect_eq(s.sleeps, 0);
	cr_expect(!lnx_yield_crowded(&s.y));
	/* Now it takes turns: yields, not sleeps. */
	s.taken = true;
	s.taken_ns = 100 * US;
	wait_for(&s, 100 * MS);
	cr_expect_eq(s.sleeps, 0);
	cr_expect_gt(s.yields, 800);
}

/* The other thread computes for 3 ms, and then there is a message: with the core kept that
 * takes twice as long. */
Test(yield, same_claim_that_is_waited_for)
{
	struct sim s = beside(3 * MS, 4 * MS);
	uint64_t ns = served(&s, 2000, 3 * MS);

	cr_expect_leq(ns, 3 * MS * 115 / 100, "%llu us for each", ns / US);
}

/* The other thread needs less time for each message from some moment on, by chance while the
 * core is kept as a trial.  That the core is kept is not the reason, and is found out. */
Test(yield, faster_during_a_trial)
{
	struct sim s = beside(3 * MS, 4 * MS);
	uint64_t ns;

	served(&s, 100, 24 * MS);
	while (!s.y.keep_ns || !s.y.keep_for_ns)
		wait_for(&s, 100 * US);
	served(&s, 300, 3 * MS);
	ns = served(&s, 1000, 3 * MS);
	cr_expect_leq(ns, 3 * MS * 115 / 100, "%llu us for each", ns / US);
}

/* Of several that poll one may have much to do, once. */
Test(yield, a_long_turn_is_an_accident)
{
	struct sim s = beside(100 * US, 4 * MS);
	unsigned i;

	wait_for(&s, 10 * MS);
	for (i = 0; i < 100; i++) {
		s.taken_ns = i % 3 ? 2 * MS : 100 * US;
		wait_for(&s, s.taken_ns);
		cr_expect_eq(s.sleeps, 0);
		cr_expect_gt(s.yields, 0);
	}
}

/* What polls gives it back at once: there is no trial, and no sleep. */
Test(yield, those_that_poll_take_turns)
{
	struct sim s = beside(100 * US, 4 * MS);

	wait_for(&s, 1000 * MS);
	cr_expect_gt(s.yields, 8000, "%u yields", s.yields);
	cr_expect_eq(s.sleeps, 0);
}

/* What counts is the share of the time, also while the thread computes. */
Test(yield, share_while_computing)
{
	struct sim s = beside(4 * MS, 0);

	wait_for(&s, 100 * MS);
	cr_expect_leq(s.yields, 4);
	s.now += 1000 * MS;
	s.cpu_ns += 960 * MS;
	wait_for(&s, 1000 * MS);
	cr_expect_eq(s.yields, 0, "%u yields", s.yields);
	s.now += 1000 * MS;
	s.cpu_ns += 500 * MS;
	wait_for(&s, 20 * MS);
	cr_expect_gt(s.sleeps, 0);
}

/* A daemon that runs twice within a trial is no reason to end it. */
Test(yield, trial_beside_daemons)
{
	struct sim s = beside(4 * MS, 0);
	unsigned i, yields = 0;

	for (i = 0; i < 100; i++) {
		wait_for(&s, 7 * MS);
		yields += s.yields;
		s.now += MS / 5;
	}
	cr_expect_leq(yields, 4, "%u yields", yields);
}
