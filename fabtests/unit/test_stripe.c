/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * policy/stripe and rel/rate: simulated paths that move pieces at given speeds, compared
 * with the time that the sum of the speeds would need.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/stripe.h"
#include "rel/rate.h"

#define MS		1000000ull
#define MB		1000000ull		/* per second: 1 Gbit/s is 125 */
#define NPATH_MAX	8

/* A path: moves pieces one after the other, at its speed. */
struct sim_path {
	uint64_t rate;				/* the true rate */
	uint64_t delay_ns;			/* and what each piece takes besides */
	struct lnx_rate meter;
	struct { uint64_t len, end; } q[4096];
	unsigned nq;
	uint64_t bytes, free_ns, total;
	bool down;
};

struct sim {
	struct sim_path *p;
	unsigned n;
	uint64_t now, late_ns;			/* the end of a piece is noticed late */
};

static void sim_init(struct sim *s, unsigned n, const uint64_t *rate)
{
	unsigned i;

	s->p = calloc(n, sizeof(*s->p));
	s->n = n;
	s->now = MS;
	s->late_ns = 0;
	for (i = 0; i < n; i++)
		s->p[i].rate = rate[i];
}

static void view_of(const struct sim *s, struct lnx_stripe_path *v)
{
	unsigned i;

	for (i = 0; i < s->n; i++) {
		v[i].rate = s->p[i].meter.rate;
		v[i].delay_ns = lnx_rate_latency(&s->p[i].meter);
		v[i].room = lnx_rate_room(&s->p[i].meter);
		v[i].deep = lnx_rate_deep(&s->p[i].meter);
		v[i].drain = s->p[i].meter.drain;
		v[i].out = s->p[i].nq;
		v[i].out_bytes = s->p[i].bytes;
		v[i].usable = !s->p[i].down;
	}
}

static void post(struct sim *s, unsigned i, uint64_t len)
{
	struct sim_path *p = &s->p[i];
	uint64_t from = LNX_MAX(p->free_ns, s->now);

	cr_assert_lt(p->nq, LNX_ARRAY_SIZE(p->q));
	p->free_ns = from + (uint64_t)((double)len * 1e9 / (double)p->rate);
	p->q[p->nq].len = len;
	p->q[p->nq++].end = p->free_ns + p->delay_ns + s->late_ns;
	p->bytes += len;
	lnx_rate_posted(&p->meter, p->bytes, s->now);
}

/* Advance to the next end of a piece. */
static bool step(struct sim *s)
{
	struct sim_path *first = NULL;
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (s->p[i].nq && (!first || s->p[i].q[0].end < first->q[0].end))
			first = &s->p[i];
	if (!first)
		return false;
	s->now = LNX_MAX(s->now, first->q[0].end);
	first->bytes -= first->q[0].len;
	first->total += first->q[0].len;
	first->nq--;
	lnx_rate_delivered(&first->meter, first->q[0].len, first->bytes, s->now);
	memmove(&first->q[0], &first->q[1], first->nq * sizeof(first->q[0]));
	return true;
}

/* One transfer; returns its time. */
static uint64_t transfer(struct sim *s, uint64_t len)
{
	struct lnx_stripe_path v[NPATH_MAX] = { 0 };
	uint64_t from = s->now, left = len;

	for (;;) {
		while (left) {
			size_t n;
			int i;

			view_of(s, v);
			i = lnx_stripe_pick(v, s->n, left);
			if (i < 0)
				break;
			cr_assert(v[i].usable);
			n = lnx_stripe_len(v, s->n, (unsigned)i, left, left,
					   1 << 20);
			cr_assert(n > 0 && n <= left && n <= 1 << 20);
			post(s, (unsigned)i, n);
			left -= n;
		}
		if (!step(s)) {
			cr_assert_eq(left, 0, "stuck with %llu bytes left",
				     (unsigned long long)left);
			return s->now - from;
		}
	}
}

static double ideal(const uint64_t *rate, unsigned n, uint64_t len)
{
	double sum = 0;

	while (n--)
		sum += (double)rate[n];
	return (double)len * 1e9 / sum;
}

/* A long stream: its time relative to the sum of all rates. */
static double stream(const uint64_t *rate, unsigned n)
{
	struct sim s;
	uint64_t took;

	sim_init(&s, n, rate);
	transfer(&s, 64 << 20);			/* to learn the rates */
	took = transfer(&s, 256 << 20);
	free(s.p);
	return (double)took / ideal(rate, n, 256 << 20);
}

/* Messages of len, one after the other. */
static double single(const uint64_t *rate, unsigned n, unsigned best,
		     uint64_t len)
{
	struct sim s;
	double worst = 0;
	unsigned i;

	sim_init(&s, n, rate);
	for (i = 0; i < 50; i++) {
		double r = (double)transfer(&s, len) / ideal(rate, best, len);

		s.now += MS;
		if (i >= 10)
			worst = LNX_MAX(worst, r);
	}
	free(s.p);
	return worst;
}

#define RATES(...)	((const uint64_t []){ __VA_ARGS__ })

Test(stripe, streams_reach_the_sum)
{
	cr_expect_leq(stream(RATES(125 * MB), 1), 1.001);
	cr_expect_leq(stream(RATES(125 * MB, 125 * MB), 2), 1.01);
	cr_expect_leq(stream(RATES(125 * MB, 125 * MB, 125 * MB, 125 * MB), 4),
		      1.01);
	cr_expect_leq(stream(RATES(125 * MB, 500 * MB), 2), 1.01);
	cr_expect_leq(stream(RATES(125 * MB, 125 * MB, 6 * MB), 3), 1.01);
	cr_expect_leq(stream(RATES(12500 * MB, 12500 * MB, 25000 * MB), 3),
		      1.01);
}

Test(stripe, one_message_is_shared_evenly)
{
	cr_expect_leq(single(RATES(125 * MB, 125 * MB), 2, 2, 1 << 20), 1.02);
	cr_expect_leq(single(RATES(125 * MB, 125 * MB), 2, 2, 64 << 10), 1.02);
	cr_expect_leq(single(RATES(125 * MB, 125 * MB, 125 * MB, 125 * MB), 4,
			     4, 1 << 20), 1.05);
	cr_expect_leq(single(RATES(500 * MB, 125 * MB), 2, 2, 1 << 20), 1.1);
}

/* Never worse than without the slow path, at any size. */
Test(stripe, a_slow_path_does_no_harm)
{
	uint64_t len;

	for (len = 16 << 10; len <= 16 << 20; len *= 2) {
		double r = single(RATES(125 * MB, 125 * MB, 6 * MB), 3, 2, len);

		cr_expect_leq(r, len < 64 << 10 ? 2.01 : 1.1,
			      "%llu bytes: %.2f", (unsigned long long)len, r);
		cr_expect_leq(single(RATES(125 * MB, 1 * MB), 2, 1, len), 1.11);
	}
}

/* The worst of some messages over n paths with a delay, relative to all of it sent at
 * once over one path. */
static double delayed(unsigned n, uint64_t delay_ns, uint64_t late_ns, uint64_t len)
{
	const uint64_t rate[] = { 125 * MB, 125 * MB, 125 * MB };
	double one = (double)delay_ns + (double)late_ns + ideal(rate, 1, len);
	double worst = 0;
	struct sim s;
	unsigned i;

	sim_init(&s, n, rate);
	s.late_ns = late_ns;
	for (i = 0; i < n; i++)
		s.p[i].delay_ns = delay_ns;
	for (i = 0; i < 60; i++) {
		double r = (double)transfer(&s, len) / one;

		s.now += MS;
		if (i >= 20)
			worst = LNX_MAX(worst, r);
	}
	free(s.p);
	return worst;
}

/* Two rails are not slower than one, at any distance or on busy CPUs. */
Test(stripe, delays_do_no_harm)
{
	static const uint64_t delay[] = { 0, MS / 10, MS, 4 * MS, 20 * MS, 100 * MS };
	uint64_t len;
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(delay); i++) {
		for (len = 64 << 10; len <= 16 << 20; len *= 4) {
			double r = delayed(2, delay[i], 0, len);

			printf("# %llu us, %llu bytes: %.2f\n",
			       (unsigned long long)delay[i] / 1000,
			       (unsigned long long)len, r);
			cr_expect_leq(r, 1.02, "%llu us, %llu bytes: %.2f",
				      (unsigned long long)delay[i] / 1000,
				      (unsigned long long)len, r);
			r = delayed(3, 0, delay[i], len);
			cr_expect_leq(r, 1.02, "noticed after %llu us, %llu "
				      "bytes: %.2f",
				      (unsigned long long)delay[i] / 1000,
				      (unsigned long long)len, r);
		}
	}
}

/* Frames stay where they are, unless another path answers much sooner. */
Test(stripe, frames_stay)
{
	static const struct {
		uint64_t ns[3];
		bool usable[3];
		int cur, want;
		bool away[3];
	} rows[] = {
		{ { MS, MS, MS }, { 1, 1, 1 }, 0, 0, { 0 } },
		{ { 6 * MS, MS, MS }, { 1, 1, 1 }, 0, 0, { 0 } },	/* not much later */
		{ { 50 * MS, MS, MS }, { 1, 1, 1 }, 0, 1, { 0 } },
		{ { 50 * MS, 9 * MS, MS }, { 1, 1, 1 }, 0, 2, { 0 } },
		{ { 50 * MS, 0, MS }, { 1, 1, 1 }, 0, 2, { 0 } },	/* not known */
		{ { 0, MS, MS }, { 1, 1, 1 }, 0, 0, { 0 } },
		{ { 50 * MS, MS, 2 * MS }, { 1, 0, 1 }, 0, 2, { 0 } },	/* not usable */
		{ { MS, MS, MS }, { 1, 1, 1 }, 2, 0, { 0 } },		/* back, in order */
		{ { 5 * MS, MS, MS }, { 1, 1, 1 }, 2, 1, { 0 } },
		{ { 40 * MS, 90 * MS, 41 * MS }, { 1, 1, 1 }, 2, 0, { 0 } },
		{ { MS, MS, 2 * MS }, { 0, 0, 1 }, 0, 2, { 0 } },
		{ { MS, MS, MS }, { 0, 0, 0 }, 1, 1, { 0 } },
		{ { 0, 0, 0 }, { 1, 1, 1 }, 1, 1, { 0 } },
		/* Frames were late on some, whatever these answer now. */
		{ { MS, MS, MS }, { 1, 1, 1 }, 0, 1, { 1 } },
		{ { MS, MS, MS }, { 1, 1, 1 }, 1, 1, { 1 } },
		{ { MS, MS, MS }, { 1, 1, 1 }, 2, 1, { 1 } },
		{ { MS, 6 * MS, 4 * MS }, { 1, 1, 1 }, 0, 2, { 1 } },
		{ { MS, 50 * MS, 60 * MS }, { 1, 1, 1 }, 1, 0, { 1 } },
		{ { MS, 50 * MS, 60 * MS }, { 1, 1, 1 }, 0, 0, { 1 } },
		{ { MS, MS, MS }, { 1, 1, 0 }, 1, 0, { 0, 1 } },
		{ { 2 * MS, MS, 3 * MS }, { 1, 1, 1 }, 2, 1, { 1, 1, 1 } },
		{ { 2 * MS, MS, 3 * MS }, { 1, 1, 1 }, 1, 1, { 1, 1, 1 } },
		{ { MS, MS, MS }, { 1, 0, 0 }, 0, 0, { 1 } },
	};
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++)
		cr_expect_eq(lnx_stripe_stay(rows[i].ns, rows[i].usable, rows[i].away, 3,
					     rows[i].cur), rows[i].want, "row %u", i);
}

/* If nothing is outstanding, there is always a path for a piece. */
Test(stripe, never_stuck)
{
	unsigned seed = (unsigned)time(NULL), k, i;
	const char *given = getenv("LNX_SEED");

	if (given)
		seed = (unsigned)strtoul(given, NULL, 0);
	printf("LNX_SEED=%u\n", seed);
	srand(seed);
	for (k = 0; k < 300; k++) {
		unsigned n = 1 + (unsigned)rand() % NPATH_MAX;
		uint64_t rate[NPATH_MAX];
		struct sim s;

		for (i = 0; i < n; i++)
			rate[i] = 1000ull << rand() % 24;
		sim_init(&s, n, rate);
		s.late_ns = (uint64_t)rand() % MS;
		for (i = 0; i < 5; i++) {
			/* One path fails or recovers; one always works. */
			s.p[(unsigned)rand() % n].down ^= 1;
			s.p[(unsigned)rand() % n].down = false;
			transfer(&s, 1 + (uint64_t)rand() % (1 << 20));
		}
		free(s.p);
	}
}

Test(stripe, a_rate_that_changes_is_learned)
{
	const uint64_t rate[] = { 125 * MB, 125 * MB };
	struct sim s;
	uint64_t took;

	sim_init(&s, 2, rate);
	transfer(&s, 64 << 20);
	s.p[1].rate = 12 * MB;
	transfer(&s, 64 << 20);
	took = transfer(&s, 256 << 20);
	cr_expect_leq((double)took, 1.02 * ideal(RATES(125 * MB, 12 * MB), 2,
						 256 << 20));
	s.p[1].rate = 125 * MB;
	transfer(&s, 64 << 20);
	took = transfer(&s, 256 << 20);
	cr_expect_leq((double)took, 1.02 * ideal(rate, 2, 256 << 20));
	free(s.p);
}

Test(stripe, pieces)
{
	struct lnx_stripe_path v[2] = {
		{ .rate = 125 * MB, .usable = true },
		{ .rate = 0, .usable = true },
	};

	/* Unknown speed: a short piece.  Known speed: what it moves in less
	 * than a millisecond. */
	cr_assert_eq(lnx_stripe_len(v, 2, 1, 1 << 20, 1 << 20, 1 << 20), 16384);
	cr_assert_geq(lnx_stripe_len(v, 2, 0, 8 << 20, 8 << 20, 1 << 20), 65536);
	cr_assert_leq(lnx_stripe_len(v, 2, 0, 8 << 20, 8 << 20, 1 << 20),
		      125000);
	/* Not more than allowed or than is left, and no tiny rest. */
	cr_assert_eq(lnx_stripe_len(v, 2, 0, 8 << 20, 8 << 20, 4096), 4096);
	cr_assert_eq(lnx_stripe_len(v, 2, 0, 8 << 20, 5000, 1 << 20), 5000);
	cr_assert_eq(lnx_stripe_len(v, 2, 1, 1 << 20, 16384 + 1, 1 << 20), 12288);
}

Test(stripe, frames_take_the_shortest_queue)
{
	struct lnx_stripe_path v[3] = {
		{ .rate = 100 * MB, .out_bytes = 50000, .usable = true },
		{ .rate = 400 * MB, .out_bytes = 100000, .usable = true },
		{ .rate = 400 * MB, .out_bytes = 0, .usable = false },
	};

	cr_assert_eq(lnx_stripe_shortest(v, 3, 64), 1);
	v[1].out_bytes = 300000;
	cr_assert_eq(lnx_stripe_shortest(v, 3, 64), 0);
	/* A path of unknown speed is assumed to be as fast as the best. */
	v[2].usable = true;
	v[2].rate = 0;
	cr_assert_eq(lnx_stripe_shortest(v, 3, 64), 2);
	v[0].usable = v[1].usable = v[2].usable = false;
	cr_assert_eq(lnx_stripe_shortest(v, 3, 64), LNX_STRIPE_WAIT);
}

/* The nominal speed is used until it has been measured. */
Test(stripe, nominal_speed)
{
	struct lnx_stripe_path v[2] = {
		{ .nominal = 125 * MB, .usable = true },
		{ .nominal = 1250 * MB, .usable = true },
	};

	cr_assert_eq(lnx_stripe_pick(v, 2, 1 << 20), 1);
	cr_assert_eq(lnx_stripe_shortest(v, 2, 64), 1);
	/* A short piece is still used to measure it. */
	cr_assert_eq(lnx_stripe_len(v, 2, 1, 1 << 20, 1 << 20, 1 << 20),
		     LNX_STRIPE_MIN);
	v[1].out = 1;
	v[1].out_bytes = LNX_STRIPE_MIN;
	cr_assert_eq(lnx_stripe_pick(v, 2, 1 << 20), 0);
	v[1].rate = 10 * MB;
	cr_assert_eq(lnx_stripe_shortest(v, 2, 64), 0);
}
