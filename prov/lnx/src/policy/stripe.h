/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a large transfer is cut over several paths.  Does no I/O; the time is passed in.
 *
 * Pieces are given out one by one, each to the path that would finish it first by its
 * measured rate and delay.  A slow path gets fewer and smaller pieces, and none that the
 * others would have moved before it: no path makes the whole slower than it is without
 * that path.  Pieces get smaller towards the end, so that all paths end at the same time.
 */
#ifndef LNX_STRIPE_H
#define LNX_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Outstanding pieces of one path: one being moved, one behind it.  More while far more
 * than that is left, or if the path needs more to be busy. */
#define LNX_STRIPE_DEPTH	2u
/* The shortest piece, except the rest of a transfer. */
#define LNX_STRIPE_MIN		16384u
/* No path can take a piece now; the end of a piece changes that. */
#define LNX_STRIPE_WAIT		-1

struct lnx_stripe_path {
	uint64_t rate;			/* bytes per second; 0: not known */
	uint64_t nominal;		/* nominal rate; 0: unknown */
	uint64_t delay_ns;		/* of each piece, beside its share of rate */
	uint64_t room;			/* so many bytes may be outstanding in any case
					 * (rel/rate.h) */
	uint64_t deep;			/* and so many while much is left */
	uint64_t out_bytes;		/* outstanding */
	uint32_t out;			/* outstanding pieces */
	bool drain;			/* no more than `room` and two pieces, now */
	bool usable;
};

/*
 * The index of the path for the next piece, or LNX_STRIPE_WAIT.  left: bytes that are
 * not given out yet, of all transfers that share these paths.
 */
int lnx_stripe_pick(const struct lnx_stripe_path *path, unsigned npath,
		    uint64_t left);

/*
 * Bytes of the next piece on a path: at most max, at most rest, which is what is left
 * of the transfer.
 */
size_t lnx_stripe_len(const struct lnx_stripe_path *path, unsigned npath,
		      unsigned which, uint64_t left, size_t rest, size_t max);

/*
 * The path on which a frame arrives first: of the usable ones, the one with the least
 * outstanding for its rate.  LNX_STRIPE_WAIT: none is usable.
 */
int lnx_stripe_shortest(const struct lnx_stripe_path *path, unsigned npath,
			size_t len);

/*
 * The path on which frames stay: of the usable ones, cur, unless another answers much
 * sooner; or one before cur, if it answers about as soon.  ns: how long an answer takes
 * over each path, 0: not known.  away: frames have left the path because they were late
 * there; it is used only if all others answer much later.  Returns cur if none is better.
 */
int lnx_stripe_stay(const uint64_t *ns, const bool *usable, const bool *away,
		    unsigned npath, int cur);

#endif
