/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credit for large eager frames.  See credit.h. */
#include "rel/credit.h"

/* A peer gets at most this part of what the pool has left. */
#define SHARE		4u

/* What the peer may make us store. */
static uint64_t exposure(const struct lnx_credit *c)
{
	return c->granted - c->came + c->stored;
}

/* By how much `granted` can grow. */
static uint64_t more(const struct lnx_credit *c, const struct lnx_credit_pool *pool)
{
	uint64_t now = exposure(c);

	if (now >= pool->peer)
		return 0;
	return LNX_MIN(pool->peer - now, (pool->total - pool->used) / SHARE);
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
	return c->granted - c->came < pool->peer / 2 &&
	       more(c, pool) >= pool->peer / 4;
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
