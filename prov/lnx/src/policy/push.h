/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which messages are pushed to a peer on this node (msg/push_send.c).
 *
 * How long a piece takes depends on where the two processes run: each line of memory moves
 * twice between their caches, which takes five times as long where these are far apart.  To
 * read the message moves it once, with a call of the kernel.  So pieces are timed now and
 * then.
 *
 * No more than so much is pushed before the peer has said that it receives at all: where it is
 * slower than the sender, pieces would fill its queue, which is larger than the caches; and
 * what no receive matches would fill its memory.
 *
 * A message that is announced has an answer, and messages arrive in order: so after half of
 * that one is announced, and its answer says that what was pushed before has come.  Pure.
 */
#ifndef LNX_POLICY_PUSH_H
#define LNX_POLICY_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/interval.h"

/* Bytes. */
#define LNX_PUSH_AHEAD	131072u

/* Reading takes LNX_PUSH_READ_NS, and so many bytes take a nanosecond more. */
#define LNX_PUSH_READ_BYTES_PER_NS 12u
/* A piece takes so many times as long as its sender needs for it. */
#define LNX_PUSH_BOTH_ENDS	2u
/* So many are pushed and timed at first, which takes some time to be as fast as it gets; then
 * one of so many is timed; and one of so many that are not worth it is pushed. */
#define LNX_PUSH_FIRST		16u
#define LNX_PUSH_TIME_EVERY	8u
#define LNX_PUSH_TRY_EVERY	256u

/* Zero: nothing is known. */
struct lnx_push_cost {
	uint32_t piece_ns;		/* of one piece, at its sender; 0: not known */
	uint16_t n;			/* of messages since one was timed or tried */
	uint8_t first;			/* so many of the first ones were timed */
};

/* Is one of len bytes, in so many full pieces, to be pushed and not read?  Counts it. */
static inline bool lnx_push_worth(struct lnx_push_cost *c, uint32_t len, uint32_t pieces)
{
	if (pieces < 2 || c->first < LNX_PUSH_FIRST ||
	    LNX_PUSH_BOTH_ENDS * (uint64_t)c->piece_ns * pieces <
	    LNX_PUSH_READ_NS + len / LNX_PUSH_READ_BYTES_PER_NS)
		return true;
	if (++c->n % LNX_PUSH_TRY_EVERY)
		return false;
	/* To be timed. */
	c->n = LNX_PUSH_TIME_EVERY - 1;
	return true;
}

/* Is the one that is pushed now to be timed?  Counts it. */
static inline bool lnx_push_timed(struct lnx_push_cost *c)
{
	return c->first < LNX_PUSH_FIRST || ++c->n % LNX_PUSH_TIME_EVERY == 0;
}

/* Its pieces took so long. */
static inline void lnx_push_took(struct lnx_push_cost *c, uint64_t ns, uint32_t pieces)
{
	uint32_t one = (uint32_t)(ns / pieces);

	c->first += c->first < LNX_PUSH_FIRST;
	if (ns > (uint64_t)LNX_PUSH_MAX_NS * pieces)
		return;
	/* The first ones were slow, and some are disturbed: shorter ones say more. */
	if (!c->piece_ns || one < c->piece_ns)
		c->piece_ns = (c->piece_ns + one) / (c->piece_ns ? 2 : 1);
	else
		c->piece_ns = (c->piece_ns * 7 + one) / 8;
	if (!c->piece_ns)
		c->piece_ns = 1;
}

/* Zero: nothing was pushed. */
struct lnx_push_ahead {
	uint32_t bytes;			/* pushed, and not known to have come; */
	uint32_t asked;			/* of these, before the message that asks; */
	bool asking;			/* whose answer has not come */
};

/* Is the next message to be announced, to ask? */
static inline bool lnx_push_asks(const struct lnx_push_ahead *a)
{
	return !a->asking && a->bytes > LNX_PUSH_AHEAD / 2;
}

/* May one of len bytes be pushed? */
static inline bool lnx_push_may(const struct lnx_push_ahead *a, uint32_t len)
{
	return !lnx_push_asks(a) && a->bytes + len <= LNX_PUSH_AHEAD;
}

static inline void lnx_push_did(struct lnx_push_ahead *a, uint32_t len)
{
	a->bytes += len;
}

/* One that asks is announced. */
static inline void lnx_push_ask(struct lnx_push_ahead *a)
{
	a->asked = a->bytes;
	a->asking = true;
}

/* It could not be announced after all. */
static inline void lnx_push_unask(struct lnx_push_ahead *a)
{
	a->asked = 0;
	a->asking = false;
}

/* Its answer has come. */
static inline void lnx_push_answer(struct lnx_push_ahead *a)
{
	a->bytes -= a->asked;
	a->asked = 0;
	a->asking = false;
}

#endif
