/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How fast a path delivers.  See rate.h. */
#include "rel/rate.h"

#include "base/compiler.h"
#include "base/interval.h"

/* A window is LNX_RATE_WINDOW_NS, and as many rounds. */
#define WINDOW_ROUNDS	16u
/* Rounds with enough outstanding before a lower rate counts. */
#define ENOUGH_ROUNDS	4u
/* A path that has become much slower is noticed before its window ends: after so many
 * rounds in a row that took SLOW_TIMES the expected time. */
#define SLOW_ROUNDS	3u
#define SLOW_TIMES	3u
#define GAIN		2u

static uint64_t bytes_in(uint64_t rate, uint64_t ns)
{
	return (uint64_t)((double)rate * (double)ns / LNX_NS_PER_S);
}

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((double)bytes * LNX_NS_PER_S / (double)rate);
}

static uint64_t rate_of(uint64_t bytes, uint64_t ns)
{
	return (uint64_t)((double)bytes * LNX_NS_PER_S / (double)ns);
}

/* due: what is outstanding, and the first byte after it; or only what was posted now. */
static void begin_round(struct lnx_rate *r, uint64_t out, uint64_t due,
			uint64_t before_ns, uint64_t now)
{
	r->round_ns = now;
	r->due = due;
	r->got = 0;
	r->most = out;
	r->before_ns = before_ns;
}

static void begin_window(struct lnx_rate *r, uint64_t now)
{
	r->window_ns = now;
	r->best = r->low_ns = 0;
	r->deep_best = 0;
	r->rounds = 0;
	r->slow = 0;
	r->drain = false;
}

void lnx_rate_posted(struct lnx_rate *r, uint64_t out, uint64_t now)
{
	if (!r->round_ns)
		begin_round(r, out, out, 0, now);
	else
		r->most = LNX_MAX(r->most, out);
}

/* The round could have shown a higher rate than it did, if there was one. */
static bool was_full(const struct lnx_rate *r)
{
	return r->most >= bytes_in(r->rate, r->delay_ns);
}

static void end_window(struct lnx_rate *r, uint64_t now)
{
	r->rate = r->best;
	/* With short transfers now and then it was not busy for so long. */
	if (r->deep_best)
		r->deep = r->deep_best;
	if (r->low_ns) {
		r->delay_ns = r->low_ns;
		r->delay_bytes = r->low_bytes;
	}
	begin_window(r, now);
}

/* whole: something was posted after it began, and has been delivered. */
static void sample(struct lnx_rate *r, uint64_t ns, bool whole, uint64_t now)
{
	uint64_t rate = rate_of(r->got, LNX_MAX(ns, r->before_ns));
	bool full = was_full(r);
	/* A queue got much shorter: there may be more of it. */
	bool shorter = whole && ns < r->delay_ns / 4 * 3;

	rate = LNX_MAX(rate, 1ull);
	if (!r->window_ns)
		begin_window(r, now);
	if (whole && (!r->low_ns || ns < r->low_ns)) {
		r->low_ns = ns;
		r->low_bytes = r->due;
	}
	if (whole && (!r->delay_ns || ns < r->delay_ns)) {
		r->delay_ns = ns;
		r->delay_bytes = r->due;
	}
	r->best = LNX_MAX(r->best, rate);
	if (rate >= r->rate) {
		r->rate = rate;
		r->slow = 0;
	} else if (whole &&
		   ns > SLOW_TIMES * (r->delay_ns +
				      time_of(r->got, r->rate))) {
		/* Also with little under way: then this much was expected. */
		r->slow++;
	} else if (whole) {
		r->slow = 0;
	}
	r->rounds += full && whole;
	if (r->slow >= SLOW_ROUNDS) {
		/* All that was known is out of date, this round is not. */
		r->best = rate;
		r->low_ns = ns;
		r->low_bytes = r->due;
		end_window(r, now);
	} else if (r->rounds >= ENOUGH_ROUNDS &&
		   now - r->window_ns >= LNX_MAX(LNX_RATE_WINDOW_NS, WINDOW_ROUNDS *
						 r->delay_ns)) {
		if (!r->drain)
			r->drain = true;
		else if (!shorter)
			end_window(r, now);
	}
}

/* A round of so many ns has ended. */
static void sum_up(struct lnx_rate *r, uint64_t ns)
{
	r->deep_ns += ns;
	r->deep_got += r->got;
	if (r->deep_ns < LNX_STRIPE_DEEP_NS)
		return;
	r->deep_best = LNX_MAX(r->deep_best, bytes_in(rate_of(r->deep_got, r->deep_ns),
						      LNX_STRIPE_DEEP_NS));
	r->deep = LNX_MAX(r->deep, r->deep_best);
	r->deep_ns = r->deep_got = 0;
}

uint64_t lnx_rate_delivered(struct lnx_rate *r, uint64_t bytes, uint64_t out,
			    uint64_t now)
{
	uint64_t ns = 0, whole_ns = 0;

	if (r->round_ns) {
		r->got += bytes;
		r->most = LNX_MAX(r->most, out);
		if (r->got < r->due && out)
			return 0;
		/* Clocks of different CPUs may differ a little. */
		ns = now > r->round_ns ? now - r->round_ns : 1;
		if (r->got) {
			sum_up(r, ns);
			sample(r, ns, r->got >= r->due, now);
		}
		whole_ns = r->got >= r->due ? ns : 0;
	}
	r->round_ns = 0;
	if (out)
		begin_round(r, out, out + 1, ns, now);
	return whole_ns;
}

void lnx_rate_forget(struct lnx_rate *r)
{
	r->round_ns = 0;
}

uint64_t lnx_rate_latency(const struct lnx_rate *r)
{
	uint64_t ns = r->rate ? time_of(r->delay_bytes, r->rate) : 0;

	return r->delay_ns > ns ? r->delay_ns - ns : 0;
}

uint64_t lnx_rate_expect(const struct lnx_rate *r, uint64_t bytes)
{
	return r->rate ? lnx_rate_latency(r) + time_of(bytes, r->rate) + 1 : 0;
}

uint64_t lnx_rate_room(const struct lnx_rate *r)
{
	uint64_t bytes = bytes_in(r->rate, r->delay_ns);

	if (!r->rate)
		return LNX_RATE_FIRST;
	return r->drain ? bytes / 2 : GAIN * bytes;
}

uint64_t lnx_rate_deep(const struct lnx_rate *r)
{
	return LNX_MIN(bytes_in(r->rate, LNX_STRIPE_DEEP_NS), 2 * r->deep);
}
