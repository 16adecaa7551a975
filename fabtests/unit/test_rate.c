/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rel/rate: a path whose speed, delay and load are known, and what is said of it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "rel/rate.h"

#define MS	1000000ull
#define MB	1000000ull			/* per second */

/* Pieces of PIECE bytes; as many as its room and `most` allow are outstanding. */
#define PIECE	16384u

struct link {
	struct lnx_rate r;
	uint64_t rate, delay_ns;		/* the truth */
	uint64_t now, free_ns, out;
	uint64_t end[1 << 18];			/* when piece n is delivered */
	unsigned posted, done;
	uint64_t bytes;
};

static struct link *new_link(uint64_t rate, uint64_t delay_ns)
{
	struct link *l = calloc(1, sizeof(*l));

	cr_assert(l);
	l->rate = rate;
	l->delay_ns = delay_ns;
	l->now = 1000 * MS;
	return l;
}

static uint64_t burst_left;		/* bytes that a policer lets pass at 1 GB/s */
static bool much_left;			/* so that more than the room is outstanding */

static uint64_t wanted(const struct link *l)
{
	uint64_t room = lnx_rate_room(&l->r);

	return much_left ? LNX_MAX(room, lnx_rate_deep(&l->r)) : room;
}

static void fill(struct link *l, uint64_t most)
{
	while (l->out < 2 * PIECE || l->out < LNX_MIN(wanted(l), most)) {
		uint64_t rate = burst_left ? 1000 * MB : l->rate;

		burst_left -= LNX_MIN(burst_left, PIECE);
		l->free_ns = LNX_MAX(l->free_ns, l->now) + PIECE * 1000 * MS / rate;
		l->end[l->posted++ % LNX_ARRAY_SIZE(l->end)] = l->free_ns + l->delay_ns;
		cr_assert_lt(l->posted - l->done, LNX_ARRAY_SIZE(l->end));
		l->out += PIECE;
		lnx_rate_posted(&l->r, l->out, l->now);
	}
}

/* All that has come by now. */
static void take(struct link *l)
{
	while (l->done != l->posted &&
	       l->end[l->done % LNX_ARRAY_SIZE(l->end)] <= l->now) {
		l->done++;
		l->out -= PIECE;
		l->bytes += PIECE;
		lnx_rate_delivered(&l->r, PIECE, l->out, l->now);
	}
}

/* Run for ns.  After each piece the process stalls with a probability of 1 / every, for
 * stall_ns; every 0: never.  Returns the rate that was reached. */
static double run(struct link *l, uint64_t ns, uint64_t most, unsigned every,
		  uint64_t stall_ns)
{
	uint64_t from = l->now, bytes = l->bytes;

	while (l->now < from + ns) {
		fill(l, most);
		l->now = LNX_MAX(l->now,
				 l->end[l->done % LNX_ARRAY_SIZE(l->end)]);
		if (every && !((unsigned)rand() % every))
			l->now += stall_ns;
		take(l);
	}
	return (double)(l->bytes - bytes) * 1e9 / (double)(l->now - from);
}

static bool near(uint64_t value, uint64_t wanted, double tolerance)
{
	return (double)value >= (double)wanted * (1 - tolerance) &&
	       (double)value <= (double)wanted * (1 + tolerance);
}

static const struct { uint64_t rate, delay_ns; } kinds[] = {
	{ 6 * MB, MS }, { 125 * MB, MS / 20 }, { 125 * MB, MS }, { 125 * MB, 20 * MS },
	{ 125 * MB, 100 * MS }, { 1250 * MB, MS / 20 }, { 1250 * MB, 10 * MS },
	{ 25000 * MB, MS / 100 }, { 25000 * MB, MS },
};

/* It finds the speed, and asks for enough to reach it, but not for endless queues. */
Test(rate, is_found_and_reached)
{
	unsigned i, k;

	for (i = 0; i < LNX_ARRAY_SIZE(kinds); i++) {
		struct link *l = new_link(kinds[i].rate, kinds[i].delay_ns);
		uint64_t bdp = kinds[i].rate / 1000 * kinds[i].delay_ns / MS;
		double got;

		run(l, 2000 * MS, UINT64_MAX, 0, 0);
		got = run(l, 4000 * MS, UINT64_MAX, 0, 0);
		cr_expect(got >= 0.93 * (double)l->rate, "%u: %.0f of %.0f MB/s", i,
			  got / MB, (double)l->rate / MB);
		cr_expect(near(l->r.rate, l->rate, 0.1), "%u: said to be %llu of %llu",
			  i, (unsigned long long)l->r.rate,
			  (unsigned long long)l->rate);
		for (k = 0; k < 40; k++) {
			run(l, 50 * MS, UINT64_MAX, 0, 0);
			cr_expect(l->out <= 5 * bdp + 8 * PIECE,
				  "%u: %llu bytes are outstanding, rate x delay is %llu",
				  i, (unsigned long long)l->out,
				  (unsigned long long)bdp);
		}
		free(l);
	}
}

/* A process that stalls finds much at once: that says nothing of the path. */
Test(rate, stalls_do_not_count)
{
	unsigned i;

	srand(7);
	for (i = 0; i < LNX_ARRAY_SIZE(kinds); i++) {
		struct link *l = new_link(kinds[i].rate, kinds[i].delay_ns);
		unsigned k;

		run(l, 1000 * MS, UINT64_MAX, 0, 0);
		for (k = 0; k < 50; k++) {
			run(l, 50 * MS, UINT64_MAX, 100, 20 * MS);
			cr_expect(l->r.rate <= 2 * l->rate,
				  "%u: said to be %llu, is %llu", i,
				  (unsigned long long)l->r.rate,
				  (unsigned long long)l->rate);
		}
		/* Each turn of the peer takes long: no collapse. */
		l->delay_ns += 30 * MS;
		run(l, 2000 * MS, UINT64_MAX, 0, 0);
		cr_expect(run(l, 2000 * MS, UINT64_MAX, 0, 0) >= 0.9 * (double)l->rate,
			  "%u: rate %llu, delay %llu", i,
			  (unsigned long long)l->r.rate,
			  (unsigned long long)l->r.delay_ns);
		free(l);
	}
}

/* A path that is used a little keeps the rate that it has shown. */
Test(rate, light_use_says_nothing)
{
	struct link *l = new_link(125 * MB, 10 * MS);

	run(l, 1000 * MS, UINT64_MAX, 0, 0);
	run(l, 5000 * MS, 2 * PIECE, 0, 0);
	cr_expect(near(l->r.rate, 125 * MB, 0.1), "%llu",
		  (unsigned long long)l->r.rate);
	free(l);
}

/* A change is followed in less than a second, a shorter way in less than two. */
Test(rate, changes_are_followed)
{
	struct link *l = new_link(125 * MB, MS / 5);
	unsigned i;

	run(l, 1000 * MS, UINT64_MAX, 0, 0);
	for (i = 0; i < 3; i++) {
		l->rate = 6 * MB;
		run(l, 900 * MS, UINT64_MAX, 0, 0);
		cr_expect(near(l->r.rate, 6 * MB, 0.3), "slow: %llu",
			  (unsigned long long)l->r.rate);
		l->rate = 125 * MB;
		run(l, 900 * MS, UINT64_MAX, 0, 0);
		cr_expect(near(l->r.rate, 125 * MB, 0.3), "fast again: %llu",
			  (unsigned long long)l->r.rate);
		l->delay_ns = 50 * MS;
		run(l, 1000 * MS, UINT64_MAX, 0, 0);
		cr_expect(run(l, 500 * MS, UINT64_MAX, 0, 0) > 100e6,
			  "far: rate %llu, delay %llu",
			  (unsigned long long)l->r.rate,
			  (unsigned long long)l->r.delay_ns);
		l->delay_ns = MS / 5;
		run(l, 1900 * MS, UINT64_MAX, 0, 0);
		cr_expect_leq(l->r.delay_ns, 2 * MS, "near again: %llu ns",
			      (unsigned long long)l->r.delay_ns);
	}
	free(l);
}

/* Clocks that go backwards, no bytes, and what was forgotten. */
Test(rate, odd_calls)
{
	struct lnx_rate r = { 0 };

	cr_assert_eq(lnx_rate_room(&r), LNX_RATE_FIRST);
	cr_assert_eq(lnx_rate_delivered(&r, 1000, 0, 5 * MS), 0);
	lnx_rate_posted(&r, 1000, 5 * MS);
	cr_assert_gt(lnx_rate_delivered(&r, 1000, 0, 4 * MS), 0);
	cr_assert_gt(r.rate, 0);
	lnx_rate_posted(&r, 1000, 6 * MS);
	lnx_rate_delivered(&r, 0, 0, 7 * MS);		/* it failed */
	lnx_rate_posted(&r, 1000, 8 * MS);
	lnx_rate_forget(&r);
	cr_assert_eq(lnx_rate_delivered(&r, 1000, 0, 9 * MS), 0);
	lnx_rate_posted(&r, UINT64_MAX, 10 * MS);
	lnx_rate_delivered(&r, UINT64_MAX, 0, 10 * MS);
	lnx_rate_room(&r);
	lnx_rate_latency(&r);
}

/* One message of 64 KiB at a time, far less than the path could have under way. */
static uint64_t small_messages(struct link *l, unsigned n)
{
	uint64_t from = l->now;
	unsigned i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < 4; k++) {
			l->free_ns = LNX_MAX(l->free_ns, l->now) +
				     PIECE * 1000 * MS / l->rate;
			l->end[l->posted++ % LNX_ARRAY_SIZE(l->end)] =
				l->free_ns + l->delay_ns;
			l->out += PIECE;
			lnx_rate_posted(&l->r, l->out, l->now);
		}
		while (l->out) {
			l->now = l->end[l->done % LNX_ARRAY_SIZE(l->end)];
			take(l);
		}
		l->now += 1000;
	}
	return l->now - from;
}

/* A path that becomes slow is known to be, though no message fills it. */
Test(rate, slow_under_small_messages)
{
	struct link *l = new_link(1250 * MB, MS / 5);

	run(l, 100 * MS, UINT64_MAX, 0, 0);
	cr_assert(near(l->r.rate, l->rate, 0.2));
	while (l->posted != l->done) {
		l->now = l->end[l->done % LNX_ARRAY_SIZE(l->end)];
		take(l);
	}
	l->rate = 12 * MB;
	small_messages(l, 60);
	cr_expect_leq(l->r.rate, 2 * l->rate, "%llu", (unsigned long long)l->r.rate);
	free(l);
}

/*
 * A policer lets the first bytes pass at 40 times its rate.  What is outstanding then waits in
 * front of it, and in front of all that is sent later: not for so long that the peer seems to be
 * far away, or dead.
 */
Test(rate, a_burst_is_no_rate)
{
	struct link *l = new_link(25 * MB, MS / 10);
	uint64_t most = 0, end;

	much_left = true;
	burst_left = 65536;
	for (end = l->now + 300 * MS; l->now < end; ) {
		run(l, MS, UINT64_MAX, 0, 0);
		most = LNX_MAX(most, l->out);
	}
	burst_left = 0;
	/* 20 ms of what it lets pass, and not 67. */
	cr_expect_lt(most, 25 * MB / 50, "%lu bytes were outstanding", most);
	cr_expect(near(l->r.rate, 25 * MB, 0.2), "%lu", l->r.rate);
	free(l);
}

/* A path that is busy has as much outstanding as moves in some ms, and stalls do not change
 * that. */
Test(rate, deep)
{
	struct link *l = new_link(1000 * MB, MS / 10);

	much_left = true;
	cr_expect_eq(lnx_rate_deep(&l->r), 0u);
	run(l, 50 * MS, UINT64_MAX, 0, 0);
	cr_expect(near(lnx_rate_deep(&l->r), 1000 * MB * 4 / 1000, 0.1), "%lu",
		  lnx_rate_deep(&l->r));
	run(l, 50 * MS, UINT64_MAX, 100, 5 * MS);
	cr_expect(near(lnx_rate_deep(&l->r), 1000 * MB * 4 / 1000, 0.1), "%lu",
		  lnx_rate_deep(&l->r));
	free(l);
}
