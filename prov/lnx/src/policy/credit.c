/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credit for large eager frames.  See credit.h. */
#include "policy/credit.h"

/* A peer gets at most this part of what the pool has left: with the default limits 192
 * peers get all that they may have, and the 300 after them less and less. */
#define SHARE		64u

/* What the peer may make us store. */
static uint64_t exposure(const struct lnx_credit *c)
{
	return c->granted - c->came + c->stored;
}

/* What a peer may get now. */
static uint64_t share(const struct lnx_credit_pool *pool)
{
	uint64_t left = pool->total - pool->used;

	return LNX_MIN(LNX_MAX(left / SHARE, pool->least), left);
}

/* By how much `granted` can grow; 0 also if that would be of no use. */
static uint64_t more(const struct lnx_credit *c, const struct lnx_credit_pool *pool)
{
	uint64_t now = exposure(c), n;

	if (now >= pool->peer)
		return 0;
	n = LNX_MIN(pool->peer - now, share(pool));
	return c->granted - c->came + n < pool->least ? 0 : n;
}

uint64_t lnx_credit_grant(struct lnx_credit *c, struct lnx_credit_pool *pool)
{
	uint64_t n = more(c, pool);

	c->granted += n;
	pool->used += n;
	return c->granted;
}

bool lnx_credit_urgent(const struct lnx_credit *c, const struct lnx_credit_pool *pool)
{
	uint64_t n = more(c, pool);

	return c->granted - c->came < pool->peer / 2 && n &&
	       n >= LNX_MIN(pool->peer / 4, share(pool));
}

void lnx_credit_came(struct lnx_credit *c, struct lnx_credit_pool *pool, uint64_t n,
		     bool stored)
{
	c->came += n;
	if (stored)
		c->stored += (uint32_t)n;
	else
		pool->used -= n;
}

void lnx_credit_free(struct lnx_credit *c, struct lnx_credit_pool *pool, uint64_t n)
{
	c->stored -= (uint32_t)n;
	pool->used -= n;
}

void lnx_credit_end(struct lnx_credit *c, struct lnx_credit_pool *pool)
{
	pool->used -= c->granted - c->came;
	c->granted = c->came;
}
