/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a large transfer is cut over several paths.  Pure; the time is passed in.
 *
 * Pieces are handed out one by one, to the path that would finish its piece first by
 * what it was measured to move.  A slow path takes fewer and smaller ones, and none
 * that the others would have moved before it: no path makes the whole slower than it
 * is without.  Pieces shrink towards the end, so that all paths end together.
 */
#ifndef LNX_STRIPE_H
#define LNX_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pieces that one path may have outstanding: one moving, one behind it.  More while
 * far more than that is left. */
#define LNX_STRIPE_DEPTH	2u
/* The shortest piece, but for the rest of a transfer. */
#define LNX_STRIPE_MIN		16384u
/* Nothing can take a piece now; one that ends changes that. */
#define LNX_STRIPE_WAIT		-1

/*
 * The speed of a path, learned while it has something to do.  Zero-initialised: not
 * known.
 */
struct lnx_bandwidth {
	uint64_t rate;			/* bytes per second; 0: not known */
	uint64_t bytes, ns;		/* of the sample that is being taken */
	uint64_t mark_ns;		/* measured up to here; 0: idle */
};

/* The path gets something to do.  Only the first call after it was idle counts. */
void lnx_bandwidth_start(struct lnx_bandwidth *m, uint64_t now);
/* It has moved bytes; busy: it has more to do. */
void lnx_bandwidth_sample(struct lnx_bandwidth *m, uint64_t bytes, bool busy,
		     uint64_t now);

struct lnx_stripe_path {
	uint64_t rate;			/* bytes per second; 0: not known */
	uint64_t nominal;		/* what it is said to do; 0: nothing is */
	uint64_t out_bytes;		/* outstanding */
	uint32_t out;			/* pieces of it */
	bool usable;
};

/*
 * The index of the path for the next piece, or LNX_STRIPE_WAIT.  left: bytes that
 * are not handed out, of all transfers that share these paths.  A path whose rate is
 * not known gets one piece, to find out.
 */
int lnx_stripe_pick(const struct lnx_stripe_path *path, unsigned npath,
		    uint64_t left);

/*
 * Bytes of the next piece on a path: at most max, at most rest, which is what the
 * transfer has left.
 */
size_t lnx_stripe_len(const struct lnx_stripe_path *path, unsigned npath,
		      unsigned which, uint64_t left, size_t rest, size_t max);

/*
 * The path on which a frame arrives first: of those usable the one with the least
 * outstanding for its rate.  LNX_STRIPE_WAIT: none is usable.
 */
int lnx_stripe_shortest(const struct lnx_stripe_path *path, unsigned npath,
			size_t len);

#endif
