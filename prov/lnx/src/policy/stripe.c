/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How a large transfer is cut over several paths.  See stripe.h. */
#include "policy/stripe.h"

#include "base/compiler.h"
#include "base/interval.h"

#define GRAIN		4096u
/* The rate assumed if none is known. */
#define UNKNOWN_BYTES_PER_S 1000000000u
/* A path may finish so much later than the others, because rates are estimates. */
#define SLACK_NUM	11
#define SLACK_DEN	10

static uint64_t time_ns(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((double)bytes * LNX_NS_PER_S / (double)rate);
}

/* The rate assumed for paths whose rate is not known. */
static uint64_t typical(const struct lnx_stripe_path *path, unsigned npath)
{
	uint64_t rate = 0;
	unsigned i;

	for (i = 0; i < npath; i++)
		if (path[i].usable)
			rate = LNX_MAX(rate, path[i].rate);
	return rate ? rate : UNKNOWN_BYTES_PER_S;
}

/* The measured rate, else the nominal one, else a guess. */
static uint64_t rate_of(const struct lnx_stripe_path *path, uint64_t guess)
{
	return path->rate ? path->rate : path->nominal ? path->nominal : guess;
}

static size_t piece(const struct lnx_stripe_path *path, unsigned npath,
		    unsigned which, uint64_t left)
{
	uint64_t n = LNX_STRIPE_MIN;
	unsigned i, usable = 0;

	if (!path[which].rate)
		return LNX_STRIPE_MIN;
	for (i = 0; i < npath; i++)
		usable += path[i].usable;
	n = (uint64_t)((double)path[which].rate * LNX_STRIPE_PIECE_NS / LNX_NS_PER_S);
	n = LNX_MIN(n, left / (2 * LNX_MAX(usable, 1u)));
	return LNX_MAX(n, (uint64_t)LNX_STRIPE_MIN);
}

size_t lnx_stripe_len(const struct lnx_stripe_path *path, unsigned npath,
		      unsigned which, uint64_t left, size_t rest, size_t max)
{
	size_t n = LNX_MIN(piece(path, npath, which, left), max), count;

	if (rest <= n)
		return rest;
	/* Pieces of equal size, without a small rest. */
	count = (rest + n - 1) / n;
	n = ((rest + count - 1) / count + GRAIN - 1) / GRAIN * GRAIN;
	return LNX_MIN(LNX_MIN(n, rest), LNX_MAX(max, (size_t)1));
}

/* May the path have one more piece? */
static bool has_room(const struct lnx_stripe_path *path, unsigned npath,
		     unsigned which, uint64_t left)
{
	const struct lnx_stripe_path *p = &path[which];
	unsigned i, usable = 0;

	if (!p->rate)
		return !p->out || p->out_bytes < p->room;
	if (p->out < LNX_STRIPE_DEPTH ||
	    p->out_bytes + piece(path, npath, which, left) <= p->room)
		return true;
	if (p->drain)
		return false;
	for (i = 0; i < npath; i++)
		usable += path[i].usable;
	return p->out_bytes < left / (4 * usable) && p->out_bytes < p->deep;
}

int lnx_stripe_pick(const struct lnx_stripe_path *path, unsigned npath,
		    uint64_t left)
{
	uint64_t guess = typical(path, npath);
	uint64_t rate = 0, out = 0, best_ns = UINT64_MAX, full_ns = UINT64_MAX;
	uint64_t full_delay_ns = 0, rest_ns;
	int best = LNX_STRIPE_WAIT;
	unsigned i;

	for (i = 0; i < npath; i++) {
		uint64_t r = rate_of(&path[i], guess), t;

		if (!path[i].usable)
			continue;
		rate += r;
		out += path[i].out_bytes;
		t = path[i].delay_ns +
		    time_ns(path[i].out_bytes +
			    LNX_MIN(piece(path, npath, i, left), left), r);
		if (!has_room(path, npath, i, left)) {
			if (t < full_ns)
				full_delay_ns = path[i].delay_ns;
			full_ns = LNX_MIN(full_ns, t);
		} else if (t < best_ns) {
			best_ns = t;
			best = (int)i;
		}
	}
	/* The paths that are full would not finish it sooner. */
	if (best < 0 || best_ns <= full_ns)
		return best;
	/* They would: but could they also finish all the rest by then? */
	rate -= rate_of(&path[best], guess);
	out -= path[best].out_bytes;
	rest_ns = LNX_MAX(full_delay_ns + time_ns(left + out, rate), full_ns);
	if (best_ns > rest_ns / SLACK_DEN * SLACK_NUM)
		return LNX_STRIPE_WAIT;
	return best;
}

int lnx_stripe_shortest(const struct lnx_stripe_path *path, unsigned npath,
			size_t len)
{
	uint64_t guess = typical(path, npath), best_ns = UINT64_MAX;
	int best = LNX_STRIPE_WAIT;
	unsigned i;

	for (i = 0; i < npath; i++) {
		uint64_t t;

		if (!path[i].usable)
			continue;
		t = path[i].delay_ns +
		    time_ns(path[i].out_bytes + len, rate_of(&path[i], guess));
		if (t < best_ns) {
			best_ns = t;
			best = (int)i;
		}
	}
	return best;
}

static bool much_later(uint64_t ns, uint64_t best_ns)
{
	return ns > 2 * best_ns + LNX_STRIPE_MUCH_NS;
}

int lnx_stripe_stay(const uint64_t *ns, const bool *usable, const bool *away,
		    unsigned npath, int cur)
{
	int best = -1, near = -1;
	unsigned i;

	for (i = 0; i < npath; i++) {
		if (!usable[i] || !ns[i])
			continue;
		if (best < 0 || ns[i] < ns[best])
			best = (int)i;
		if (!away[i] && (near < 0 || ns[i] < ns[near]))
			near = (int)i;
	}
	if (best < 0 || !ns[cur])
		return cur;
	if (near >= 0 && !much_later(ns[near], ns[best]))
		best = near;
	if (usable[cur] && (!away[cur] || best == cur) &&
	    !much_later(ns[cur], ns[best]))
		best = cur;
	for (i = 0; (int)i < best; i++)
		if (usable[i] && ns[i] && !away[i] &&
		    ns[i] <= ns[best] + LNX_MAX(ns[best] / 4, LNX_STRIPE_LITTLE_NS))
			return (int)i;
	return best;
}
