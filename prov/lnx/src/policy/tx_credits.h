/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits for frames, of a rail or of a path, as LNet's ni_tx_credits and lpni_txcredits:
 * a frame uses one from when it is posted until it is acknowledged and its core has let go
 * of it.  Only what is used is counted, so that a limit can change at any time.  What is
 * left may be negative: then so many frames wait, or so many more are under way than a
 * lowered limit allows.
 *
 * Does no I/O.  Credit for bytes that a receiver stores is policy/credit.h.
 */
#ifndef LNX_TX_CREDITS_H
#define LNX_TX_CREDITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct lnx_tx_credits {
	uint32_t used;			/* frames */
	/* The most that were used or waited for at one time, until one was last given back:
	 * lnx_tx_credits_most. */
	uint32_t most;
};

LNX_INLINE void lnx_tx_credits_take(struct lnx_tx_credits *c)
{
	c->used++;
}

/* So many frames wait now. */
LNX_INLINE void lnx_tx_credits_wanted(struct lnx_tx_credits *c, uint32_t waiting)
{
	c->most = LNX_MAX(c->most, c->used + waiting);
}

/* One is free again.  Before that there were the most: so a frame that leaves need not
 * look. */
LNX_INLINE void lnx_tx_credits_give(struct lnx_tx_credits *c)
{
	if (lnx_unlikely(c->used > c->most))
		c->most = c->used;
	c->used--;
}

/* May one more be used?  limit 0: there is none. */
LNX_INLINE bool lnx_tx_credits_left(const struct lnx_tx_credits *c, uint32_t limit)
{
	return !limit || c->used < limit;
}

/* The most that were used or waited for at one time. */
static inline uint32_t lnx_tx_credits_most(const struct lnx_tx_credits *c)
{
	return LNX_MAX(c->most, c->used);
}

/* What is left for the order of paths: without a limit only differences count. */
LNX_INLINE int32_t lnx_tx_credits_rank(uint32_t limit, uint64_t used)
{
	int64_t left = (int64_t)limit - (int64_t)used;

	return left < INT32_MIN ? INT32_MIN : (int32_t)left;
}

#endif
