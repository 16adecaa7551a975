/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* policy/lone: messages of which each takes as long as its way takes then. */
#include <criterion/criterion.h>

#include "policy/lone.h"

#define US		1000ull
#define KB		1024u
#define MANY		20000u

struct script {
	struct lnx_lone lone;
	uint64_t now, op;
};

/* So many messages; returns how many went in frames.  read_us, frames_us: that one takes. */
static unsigned run(struct script *s, unsigned n, size_t len, uint64_t read_us,
		    uint64_t frames_us)
{
	unsigned frames = 0;

	while (n--) {
		enum lnx_lone_way way = lnx_lone_next(&s->lone, len);

		lnx_lone_began(&s->lone, ++s->op, len, way, s->now);
		s->now += (way == LNX_LONE_FRAMES ? frames_us : read_us) * US;
		lnx_lone_ended(&s->lone, s->op, s->now);
		frames += way == LNX_LONE_FRAMES;
	}
	return frames;
}

Test(lone, what_is_read_fast_is_always_read)
{
	struct script s = { .now = 1 };

	/* Frames would be faster still: not worth to find out. */
	cr_assert_eq(run(&s, MANY, 64 * KB, 300, 100), 0);
	cr_assert_eq(run(&s, MANY, 1024 * KB, 10000, 5000), 0);
}

Test(lone, where_steps_take_long_frames_are_found)
{
	struct script s = { .now = 1 };
	unsigned frames;

	cr_assert_gt(run(&s, 100, 64 * KB, 12000, 4000), 90);
	frames = run(&s, MANY, 64 * KB, 12000, 4000);
	cr_assert_gt(frames, MANY / 100 * 99, "%u of %u", frames, MANY);
}

Test(lone, a_slow_network_is_read_but_for_few)
{
	struct script s = { .now = 1 };
	unsigned frames = run(&s, MANY, 1024 * KB, 45000, 90000);

	cr_assert_gt(frames, 0);
	cr_assert_lt(frames, MANY / 100, "%u of %u", frames, MANY);
}

/* Of the trials of a way that is far worse one message is enough. */
Test(lone, trials_of_what_is_far_worse_are_short)
{
	struct script s = { .now = 1 };
	unsigned frames;

	run(&s, 10, 256 * KB, 62000, 21000);
	frames = run(&s, 1000, 256 * KB, 62000, 21000);
	cr_assert_gt(frames, 993, "%u", frames);
}

Test(lone, it_changes_back_and_forth)
{
	struct script s = { .now = 1 };
	unsigned i;

	for (i = 0; i < 10; i++) {
		/* Busy cores for a while, then none. */
		run(&s, 2000, 256 * KB, 14000, 5000);
		cr_assert_gt(run(&s, 100, 256 * KB, 14000, 5000), 90);
		run(&s, 2000, 256 * KB, 600, 2000);
		cr_assert_lt(run(&s, 100, 256 * KB, 600, 2000), 10);
	}
}

Test(lone, times_of_all_sizes_are_apart)
{
	struct script s = { .now = 1 };
	unsigned small = 0, large = 0, i;

	for (i = 0; i < 1000; i++) {
		small += run(&s, 1, 64 * KB, 12000, 4000);
		large += run(&s, 1, 2048 * KB, 21000, 42000);
	}
	cr_assert_gt(small, 900);
	cr_assert_lt(large, 100);
}

Test(lone, the_longest_are_read)
{
	struct script s = { .now = 1 };

	cr_assert_eq(run(&s, MANY, LNX_LONE_MIN << LNX_LONE_SIZES, 1000000, 1), 0);
	cr_assert_eq(run(&s, MANY, SIZE_MAX / 2, 1000000, 1), 0);
}

Test(lone, one_with_others_under_way_is_not_measured)
{
	struct script s = { .now = 1 };
	unsigned i;

	/* What takes so long is the other one. */
	for (i = 0; i < MANY; i++) {
		enum lnx_lone_way way = lnx_lone_next(&s.lone, 64 * KB);

		cr_assert_eq(way, LNX_LONE_READ);
		lnx_lone_began(&s.lone, ++s.op, 64 * KB, way, s.now);
		lnx_lone_began(&s.lone, 0, 1024 * KB, LNX_LONE_READ, 0);
		s.now += 50000 * US;
		lnx_lone_ended(&s.lone, s.op, s.now);
	}
	/* Nor what has ended before, or was never announced. */
	lnx_lone_began(&s.lone, ++s.op, 64 * KB, LNX_LONE_READ, s.now);
	s.now += 50000 * US;
	lnx_lone_ended(&s.lone, s.op - 1, s.now);
	lnx_lone_ended(&s.lone, 0, s.now);
	for (i = 0; i < LNX_LONE_SIZES; i++)
		cr_assert_eq(s.lone.size[i].us[LNX_LONE_READ], 0);
}
