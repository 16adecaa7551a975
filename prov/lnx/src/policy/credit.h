/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credit for large eager frames, in both directions of a session (lnx_wire.h).  It bounds
 * what a receiver has to store of messages that no receive matches:
 *
 *	exposure = granted - came + stored
 *
 * is what one peer may make it store.  Their sum over all peers is never more than the
 * total; of what is left of that, a peer gets at most a small part at once, so that many
 * peers get less each and not the last ones nothing; but it gets none if that is so little
 * that no message fits.  What a receive takes at once is not stored and gives the credit
 * back.
 *
 * Does no I/O.  One per peer, under the owner lock.
 */
#ifndef LNX_CREDIT_H
#define LNX_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* What an endpoint grants.  Units: bytes. */
struct lnx_credit_pool {
	uint64_t peer;			/* most for one peer; 0: none for any */
	uint64_t total;			/* most for all */
	uint64_t least;			/* a peer can do nothing with less */
	uint64_t used;			/* sum of their exposures */
};

struct lnx_credit {
	/* Sending. */
	uint64_t sent;			/* bytes sent */
	uint64_t limit;			/* so many may be; 0: the peer grants none */
	/* Receiving. */
	uint64_t came;			/* bytes that came */
	uint64_t granted;		/* so many may come: told, or about to be told */
	uint32_t stored;		/* of those that came, so many wait for receives */
};

/* Most that lnx_credit_pool.peer may be. */
#define LNX_CREDIT_MAX	(1u << 30)

/* ---- sending ---- */

/* May n bytes more be sent? */
LNX_INLINE bool lnx_credit_has(const struct lnx_credit *c, uint64_t n)
{
	return c->sent <= c->limit && n <= c->limit - c->sent;
}

/* How many bytes may be? */
LNX_INLINE uint64_t lnx_credit_left(const struct lnx_credit *c)
{
	return c->sent <= c->limit ? c->limit - c->sent : 0;
}

LNX_INLINE void lnx_credit_spend(struct lnx_credit *c, uint64_t n)
{
	c->sent += n;
}

/* The peer grants that much.  False: that is not more than before; an old number, or 0,
 * changes nothing. */
LNX_INLINE bool lnx_credit_learn(struct lnx_credit *c, uint64_t limit)
{
	if (limit <= c->limit)
		return false;
	c->limit = limit;
	return true;
}

/* ---- receiving ---- */

/* Raise what is granted as far as the pool allows and it is of use; returns it: it must be
 * told now. */
uint64_t lnx_credit_grant(struct lnx_credit *c, struct lnx_credit_pool *pool);

/* Would it be raised by so much that the peer should be told without delay, because soon
 * it has none? */
bool lnx_credit_urgent(const struct lnx_credit *c, const struct lnx_credit_pool *pool);

/* May n bytes more come? */
LNX_INLINE bool lnx_credit_allows(const struct lnx_credit *c, uint64_t n)
{
	return n <= c->granted - c->came;
}

/* n bytes came, which are allowed: into a receive, or stored. */
void lnx_credit_came(struct lnx_credit *c, struct lnx_credit_pool *pool, uint64_t n,
		     bool stored);
/* n bytes that were stored are not any more. */
void lnx_credit_free(struct lnx_credit *c, struct lnx_credit_pool *pool, uint64_t n);
/* The session has ended: no more will come.  Again: nothing. */
void lnx_credit_end(struct lnx_credit *c, struct lnx_credit_pool *pool);

#endif
