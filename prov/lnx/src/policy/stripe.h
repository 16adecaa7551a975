/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a large transfer is cut over several paths.  Does no I/O; the time is passed in.
 *
 * Pieces are given out one by one, each to the path that would finish it first by its
 * measured rate.  A slow path gets fewer and smaller pieces, and none that the others
 * would have moved before it: no path makes the whole slower than it is without that
 * path.  Pieces get smaller towards the end, so that all paths end at the same time.
 */
#ifndef LNX_STRIPE_H
#define LNX_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Outstanding pieces of one path: one being moved, one behind it.  More while far more
 * than that is left. */
#define LNX_STRIPE_DEPTH	2u
/* The shortest piece, except the rest of a transfer. */
#define LNX_STRIPE_MIN		16384u
/* No path can take a piece now; the end of a piece changes that. */
#define LNX_STRIPE_WAIT		-1

/* The speed of a path, measured while it is busy.  Zero-initialised: not known. */
struct lnx_bandwidth {
	uint64_t rate;			/* bytes per second; 0: not known */
	uint64_t bytes, ns;		/* of the present sample */
	uint64_t mark_ns;		/* measured up to here; 0: idle */
};

/* The path becomes busy.  Only the first call after it was idle has an effect. */
void lnx_bandwidth_start(struct lnx_bandwidth *m, uint64_t now);
/* The path has moved bytes; busy: it has more to do. */
void lnx_bandwidth_sample(struct lnx_bandwidth *m, uint64_t bytes, bool busy,
		     uint64_t now);

struct lnx_stripe_path {
	uint64_t rate;			/* bytes per second; 0: not known */
	uint64_t nominal;		/* nominal rate; 0: unknown */
	uint64_t out_bytes;		/* outstanding */
	uint32_t out;			/* outstanding pieces */
	bool usable;
};

/*
 * The index of the path for the next piece, or LNX_STRIPE_WAIT.  left: bytes that are
 * not given out yet, of all transfers that share these paths.  A path whose rate is not
 * known gets one piece, to measure it.
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

#endif
