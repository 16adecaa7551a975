/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rel/hedge: what counts as late, how a late path starts again, and the budget. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/interval.h"
#include "rel/hedge.h"

#define MS	LNX_NS_PER_MS
#define PIECE	16384u

static uint64_t now;

static void begin(void)
{
	now = 1000 * MS;
}

/* ---- pauses ---- */

Test(hedge, pauses_double_up_to_a_limit, .init = begin)
{
	struct lnx_pause p = { 0 };
	uint64_t want = 8 * MS;
	unsigned i;

	cr_expect(lnx_hedge_pause_over(&p, now));
	for (i = 0; i < 12; i++) {
		lnx_hedge_pause_begin(&p, 8 * MS, 1000 * MS, now);
		cr_expect_not(lnx_hedge_pause_over(&p, now + want - 1), "pause %u", i);
		cr_expect(lnx_hedge_pause_over(&p, now + want), "pause %u", i);
		/* It fails again, soon after it was used again. */
		now = p.until_ns + 2 * want;
		want = LNX_MIN(2 * want, 1000 * MS);
	}
	cr_expect_eq(p.ns, 1000 * MS);
}

Test(hedge, pauses_are_forgotten, .init = begin)
{
	struct lnx_pause p = { 0 };
	unsigned i;

	for (i = 0; i < 5; i++)
		lnx_hedge_pause_begin(&p, 8 * MS, 1000 * MS, now);
	cr_expect_eq(p.ns, 128 * MS);
	now = p.until_ns + LNX_PAUSE_FORGET * p.ns;
	lnx_hedge_pause_begin(&p, 8 * MS, 1000 * MS, now);
	cr_expect_eq(p.ns, 256 * MS);
	now = p.until_ns + LNX_PAUSE_FORGET * p.ns + 1;
	lnx_hedge_pause_begin(&p, 8 * MS, 1000 * MS, now);
	cr_expect_eq(p.ns, 8 * MS);
}

/* ---- what is late ---- */

/* n pieces in turn, each early or late by one of two times. */
static void pieces(struct lnx_tail *t, unsigned n, uint64_t one, uint64_t other)
{
	while (n--) {
		lnx_hedge_tail_came(t, now, n & 1 ? one : other, PIECE, false);
		now += MS;
	}
}

Test(hedge, the_tail_follows_the_path, .init = begin)
{
	struct lnx_tail t = { 0 };

	/* Nothing is known: two looks. */
	cr_expect_eq(lnx_hedge_tail_ns(&t), LNX_LATE_MIN_NS);
	/* A path that delivers as computed. */
	pieces(&t, 1000, 0, 20000);
	cr_expect_eq(lnx_hedge_tail_ns(&t), LNX_LATE_MIN_NS);
	/* One whose pieces are up to 8 ms late, often. */
	pieces(&t, 1000, 0, 8 * MS);
	cr_expect_gt(lnx_hedge_tail_ns(&t), 8 * MS);
	cr_expect_lt(lnx_hedge_tail_ns(&t), 30 * MS);
	/* One whose pieces are late by the same time, always. */
	pieces(&t, 1000, 8 * MS, 8 * MS);
	cr_expect_geq(lnx_hedge_tail_ns(&t), 8 * MS - 10);
	cr_expect_lt(lnx_hedge_tail_ns(&t), 9 * MS);
	pieces(&t, 1000, 0, 0);
	cr_expect_eq(lnx_hedge_tail_ns(&t), LNX_LATE_MIN_NS);
}

/* A peer that stands still for a second is not a path whose pieces take a second. */
Test(hedge, one_long_time_is_not_the_tail, .init = begin)
{
	struct lnx_tail t = { 0 };

	pieces(&t, 100, 0, 0);
	lnx_hedge_tail_came(&t, now, 1000 * MS, PIECE, false);
	cr_expect_leq(lnx_hedge_tail_ns(&t), 4 * LNX_LATE_MIN_NS);
}

Test(hedge, what_was_hedged_teaches_nothing, .init = begin)
{
	struct lnx_tail t = { 0 };
	uint64_t posted = now;

	now += 20 * MS;
	cr_expect(lnx_hedge_tail_late(&t, posted, 3, now));
	lnx_hedge_tail_came(&t, posted, 200 * MS, PIECE, false);
	lnx_hedge_tail_came(&t, now, 200 * MS, PIECE, false);
	cr_expect_eq(lnx_hedge_tail_ns(&t), LNX_LATE_MIN_NS);
	cr_expect_eq(t.window, PIECE);
	lnx_hedge_tail_came(&t, now + 1, 0, PIECE, false);
	cr_expect_eq(t.window, 2 * PIECE);
}

/* If the other read of it was slower, it was not so late. */
Test(hedge, what_came_first_counts, .init = begin)
{
	struct lnx_tail t = { 0 };
	uint64_t posted = now;

	now += 20 * MS;
	cr_expect(lnx_hedge_tail_late(&t, posted, 1, now));
	lnx_hedge_tail_came(&t, posted, 20 * MS, PIECE, true);
	cr_expect_gt(lnx_hedge_tail_ns(&t), LNX_LATE_MIN_NS);
	/* But it was late: the path still starts slowly. */
	cr_expect_eq(t.window, PIECE);
	cr_expect_eq(t.pause.until_ns, now + LNX_LATE_PAUSE_MIN_NS);
}

/* Then its pauses do not grow either. */
Test(hedge, what_came_first_shortens_the_pause, .init = begin)
{
	struct lnx_tail t = { 0 };
	unsigned i;

	for (i = 0; i < 5; i++) {
		cr_expect(lnx_hedge_tail_late(&t, now, 1, now + MS));
		lnx_hedge_tail_ended(&t, now + MS);
		now = t.pause.until_ns + 1;
	}
	cr_expect_eq(t.pause.ns, 16 * LNX_LATE_PAUSE_MIN_NS);
	cr_expect(lnx_hedge_tail_late(&t, now, 1, now + MS));
	cr_expect_eq(t.pause.ns, 32 * LNX_LATE_PAUSE_MIN_NS);
	lnx_hedge_tail_came(&t, now, 20 * MS, PIECE, true);
	cr_expect_eq(t.pause.ns, LNX_LATE_PAUSE_MIN_NS);
	cr_expect(lnx_hedge_pause_over(&t.pause, now + MS + LNX_LATE_PAUSE_MIN_NS));
}

/* A path that is used in its pause, for want of another, may show that it works. */
Test(hedge, what_works_does_not_pause, .init = begin)
{
	struct lnx_tail t = { 0 };

	lnx_hedge_tail_late(&t, now - 20 * MS, 1, now);
	lnx_hedge_tail_ended(&t, now);
	cr_expect_not(lnx_hedge_pause_over(&t.pause, now));
	now += MS;
	lnx_hedge_tail_came(&t, now, 0, PIECE, false);
	cr_expect(lnx_hedge_pause_over(&t.pause, now));
}

/* ---- the path after that ---- */

Test(hedge, pieces_behind_a_late_one_are_the_same_event, .init = begin)
{
	struct lnx_tail t = { 0 };
	uint64_t posted = now;
	unsigned i;

	now += 20 * MS;
	cr_expect(lnx_hedge_tail_late(&t, posted, 3, now));
	cr_expect(lnx_hedge_tail_stuck(&t));
	for (i = 0; i < 2; i++) {
		now += 2 * MS;
		cr_expect_not(lnx_hedge_tail_late(&t, posted + i, 3, now));
		lnx_hedge_tail_ended(&t, now);
		cr_expect(lnx_hedge_tail_stuck(&t));
	}
	cr_expect_eq(t.pause.ns, LNX_LATE_PAUSE_MIN_NS);
	/* The pause is over, but the path was blocked until now. */
	now += 500 * MS;
	lnx_hedge_tail_ended(&t, now);
	cr_expect_not(lnx_hedge_tail_stuck(&t));
	/* What is late right after that is late again: the pause doubles. */
	posted = now;
	now += 10 * MS;
	cr_expect(lnx_hedge_tail_late(&t, posted, 1, now));
	cr_expect_eq(t.pause.ns, 2 * LNX_LATE_PAUSE_MIN_NS);
}

Test(hedge, it_starts_slowly, .init = begin)
{
	struct lnx_tail t = { 0 };
	unsigned n, rounds = 0;

	cr_expect(lnx_hedge_tail_room(&t, UINT64_MAX / 2));
	cr_expect_eq(lnx_hedge_tail_most(&t, 1 << 20), UINT64_MAX);
	lnx_hedge_tail_late(&t, now - 20 * MS, 1, now);
	cr_expect(lnx_hedge_tail_room(&t, 0));
	cr_expect_not(lnx_hedge_tail_room(&t, 1));
	cr_expect_not(lnx_hedge_tail_room(&t, PIECE));
	cr_expect_eq(lnx_hedge_tail_most(&t, 0), PIECE);
	/* Each round trip twice as much. */
	for (; t.window; rounds++) {
		for (n = 0; lnx_hedge_tail_room(&t, n * PIECE); n++)
			cr_assert_lt(n, 1u << 10);
		cr_expect_eq(n, 1u << rounds);
		cr_expect_eq(lnx_hedge_tail_most(&t, n * PIECE), 0u);
		now += MS;
		while (n--)
			lnx_hedge_tail_came(&t, now, 0, PIECE, false);
	}
	cr_expect_eq(rounds, 6u);
	cr_expect(lnx_hedge_tail_room(&t, UINT64_MAX / 2));
}

/* ---- the budget ---- */

Test(hedge, a_share_of_what_is_read)
{
	struct lnx_hedge h = { 0 };
	uint64_t first = 0, more = 0, i;

	/* Some without having read anything: all that a path had under way. */
	while (lnx_hedge_take(&h, PIECE)) {
		first += PIECE;
		lnx_hedge_put(&h);
	}
	cr_expect_eq(first, LNX_HEDGE_AHEAD);
	for (i = 0; i < 10000; i++) {
		lnx_hedge_earn(&h, PIECE);
		while (lnx_hedge_take(&h, PIECE)) {
			more += PIECE;
			lnx_hedge_put(&h);
		}
	}
	cr_expect_leq(more, 10000ull * PIECE / LNX_HEDGE_SHARE + PIECE);
	cr_expect_geq(more, 10000ull * PIECE / LNX_HEDGE_SHARE - PIECE);
	/* What is not used is not saved for ever. */
	for (i = 0; i < 100000; i++)
		lnx_hedge_earn(&h, PIECE);
	for (more = 0; lnx_hedge_take(&h, PIECE); more += PIECE)
		lnx_hedge_put(&h);
	cr_expect_eq(more, LNX_HEDGE_AHEAD);
}

Test(hedge, a_piece_of_any_size)
{
	struct lnx_hedge h = { 0 };

	cr_expect(lnx_hedge_take(&h, 1ull << 30));
	cr_expect_not(lnx_hedge_take(&h, 1));
	lnx_hedge_put(&h);
	cr_expect_not(lnx_hedge_take(&h, 1));
	lnx_hedge_earn(&h, UINT64_MAX);
	cr_expect(lnx_hedge_take(&h, 1));
}

Test(hedge, a_few_at_a_time)
{
	struct lnx_hedge h = { 0 };
	unsigned n = 0;

	while (lnx_hedge_take(&h, 1))
		n++;
	cr_expect_eq(n, LNX_HEDGE_MAX);
	lnx_hedge_put(&h);
	cr_expect(lnx_hedge_take(&h, 1));
	cr_expect_not(lnx_hedge_take(&h, 1));
}
