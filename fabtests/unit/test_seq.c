/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sequence numbers and the out-of-order queue, across the wrap-around. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rel/seq.h"

#define W	LNX_SEQ_WINDOW

/* First numbers: shortly after a wrap-around, before it, and far from it. */
static const uint32_t starts[] = {
	0, 1, W - 1, W, 0x7fffffffu, 0x80000000u, 0x80000001u,
	0u - W - 1, 0u - W, 0u - W + 1, 0u - 2, 0u - 1,
};

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	return s;
}

/* Frames are only their numbers here; never NULL. */
static void *frame_of(uint32_t seq)
{
	return (void *)((uintptr_t)seq + 1);
}

Test(seq, judged_by_distance)
{
	static const struct {
		uint32_t ahead;
		enum lnx_seq_verdict verdict;
	} row[] = {
		{ 0, LNX_SEQ_NEXT },
		{ 1, LNX_SEQ_AHEAD },
		{ 2, LNX_SEQ_AHEAD },
		{ W - 1, LNX_SEQ_AHEAD },
		{ W, LNX_SEQ_FAR },
		{ W + 1, LNX_SEQ_FAR },
		{ 0x7fffffffu, LNX_SEQ_FAR },
		{ 0x80000000u, LNX_SEQ_OLD },
		{ 0u - W, LNX_SEQ_OLD },
		{ 0u - 2, LNX_SEQ_OLD },
		{ 0u - 1, LNX_SEQ_OLD },
	};

	for (size_t s = 0; s < LNX_ARRAY_SIZE(starts); s++) {
		struct lnx_seq q = { .next = starts[s] };

		for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++)
			cr_expect_eq(lnx_seq_judge(&q, starts[s] +
						   row[i].ahead),
				     row[i].verdict, "next %u, %u ahead",
				     starts[s], row[i].ahead);
	}
}

Test(seq, in_order_needs_no_memory)
{
	struct lnx_seq q = { .next = 0u - 3 };

	for (uint32_t i = 0; i < 10; i++) {
		cr_expect_eq(lnx_seq_judge(&q, 0u - 3 + i), LNX_SEQ_NEXT);
		lnx_seq_advance(&q);
		cr_expect_null(lnx_seq_pop(&q));
	}
	cr_expect_eq(q.next, 7);
	cr_expect_null(q.ooo);
	cr_expect_null(lnx_seq_drain(&q));
	lnx_seq_fini(&q);
}

Test(seq, gap_then_fill)
{
	for (size_t s = 0; s < LNX_ARRAY_SIZE(starts); s++) {
		uint32_t at = starts[s];
		struct lnx_seq q = { .next = at };

		cr_assert_eq(lnx_seq_ooo_add(&q, at + 1, frame_of(1)), 0);
		cr_assert_eq(lnx_seq_ooo_add(&q, at + 3, frame_of(3)), 0);
		cr_expect_eq(q.n_ooo, 2);
		cr_expect_null(lnx_seq_pop(&q), "one before it is missing");

		lnx_seq_advance(&q);
		cr_expect_eq(lnx_seq_pop(&q), frame_of(1));
		lnx_seq_advance(&q);
		cr_expect_null(lnx_seq_pop(&q), "2 is missing");
		lnx_seq_advance(&q);
		cr_expect_eq(lnx_seq_pop(&q), frame_of(3));
		lnx_seq_advance(&q);
		cr_expect_eq(q.n_ooo, 0);
		cr_expect_null(lnx_seq_pop(&q));
		cr_expect_eq(q.next, at + 4);
		lnx_seq_fini(&q);
		cr_expect_null(q.ooo);
	}
}

Test(seq, duplicate_of_an_early_frame_is_refused)
{
	struct lnx_seq q = { .next = 0u - 1 };

	cr_assert_eq(lnx_seq_ooo_add(&q, 5, frame_of(5)), 0);
	cr_expect_eq(lnx_seq_ooo_add(&q, 5, frame_of(50)), -EEXIST);
	cr_expect_eq(q.n_ooo, 1);
	cr_expect_eq(lnx_seq_drain(&q), frame_of(5), "the first one was kept");
	cr_expect_null(lnx_seq_drain(&q));
	/* After that there is room for it again. */
	cr_expect_eq(lnx_seq_ooo_add(&q, 5, frame_of(5)), 0);
	cr_expect_eq(lnx_seq_drain(&q), frame_of(5));
	lnx_seq_fini(&q);
}

Test(seq, whole_window_is_kept)
{
	for (size_t s = 0; s < LNX_ARRAY_SIZE(starts); s++) {
		struct lnx_seq q = { .next = starts[s] };
		uint32_t i;

		/* In reverse order. */
		for (i = W - 1; i > 0; i--) {
			cr_assert_eq(lnx_seq_judge(&q, starts[s] + i),
				     LNX_SEQ_AHEAD);
			cr_assert_eq(lnx_seq_ooo_add(&q, starts[s] + i,
						  frame_of(i)), 0);
		}
		cr_expect_eq(q.n_ooo, W - 1);
		for (i = 0; i < W; i++) {
			void *frame = lnx_seq_pop(&q);

			cr_assert_eq(frame, i ? frame_of(i) : NULL, "%u", i);
			lnx_seq_advance(&q);
		}
		cr_expect_eq(q.n_ooo, 0);
		lnx_seq_fini(&q);
	}
}

Test(seq, drained_of_everything)
{
	struct lnx_seq q = { .next = 0u - 7 };
	unsigned n = 0;

	for (uint32_t i = 1; i < W; i += 13)
		cr_assert_eq(lnx_seq_ooo_add(&q, q.next + i, frame_of(i)), 0);
	n = q.n_ooo;
	while (lnx_seq_drain(&q))
		n--;
	cr_expect_eq(n, 0);
	cr_expect_eq(q.n_ooo, 0);
	lnx_seq_fini(&q);
	lnx_seq_fini(&q);
}

/*
 * A network that swaps, repeats and loses frames within the window: each number
 * comes out exactly once and in order, across the wrap-around.
 */
Test(seq, any_order_comes_out_in_order)
{
	unsigned long s = seed();
	uint32_t first = 0u - 20000, out = first, sent = first;
	struct lnx_seq q = { .next = first };
	unsigned kept = 0, old = 0;

	srand48((long)s);
	/* Several may come out at once, so it may end later. */
	while (out - first < 40000) {
		uint32_t seq = sent - 50 + (uint32_t)(lrand48() % 400);
		void *frame;

		/* Missing frames are retransmitted now and then. */
		if (lrand48() % 3 == 0)
			seq = q.next;
		if ((int32_t)(seq - first) < 0)
			continue;
		switch (lnx_seq_judge(&q, seq)) {
		case LNX_SEQ_NEXT:
			cr_assert_eq(seq, out, "seed %lu", s);
			out++;
			lnx_seq_advance(&q);
			while ((frame = lnx_seq_pop(&q))) {
				cr_assert_eq(frame, frame_of(out), "seed %lu",
					     s);
				out++;
				lnx_seq_advance(&q);
			}
			break;
		case LNX_SEQ_AHEAD:
			if (!lnx_seq_ooo_add(&q, seq, frame_of(seq)))
				kept++;
			break;
		case LNX_SEQ_OLD:
			cr_assert_lt((int32_t)(seq - out), 0, "seed %lu", s);
			old++;
			break;
		case LNX_SEQ_FAR:
			cr_assert(seq - out >= W, "seed %lu", s);
			break;
		}
		sent = q.next;
		cr_assert_eq(q.next, out, "seed %lu", s);
	}
	cr_expect_gt(kept, 1000, "seed %lu", s);
	cr_expect_gt(old, 1000, "seed %lu", s);
	while (lnx_seq_drain(&q))
		;
	lnx_seq_fini(&q);
}
