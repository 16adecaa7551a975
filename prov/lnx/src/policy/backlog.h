/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The backlog of an endpoint: memory of messages that no receive matches yet.  It has a
 * limit.  A peer that nears its share of that is throttled: it is told how many messages it
 * may begin, and no more until it is told another number.  Its own sends wait meanwhile.
 * What it has begun, and frames that are no messages, go on.
 *
 *	share of a peer = LNX_BACKLOG_PART times what is not used yet
 *
 * So a peer alone may use nearly all, n peers the same each, and one that comes later finds
 * something left.  Throttled peers are allowed equal parts of what is left, and all of these
 * together fit.  Each message is taken to be as long as a frame may be, so that what is
 * allowed fits; and each frame that comes, to begin one, so that the receiver need not count
 * them.  The sender knows better: of those that the receiver had not acknowledged when it
 * told the number, it counts what are messages.
 *
 * Messages of a peer come in order.  A receive may wait for one that is behind others which
 * no receive wants, so the limit gives way: while a receive, or a look for a message, waits
 * for something of a peer that may send no more, that peer is allowed one more message, or a
 * few short ones, and then again.  If these find their receives, what is allowed doubles each
 * time.  And a peer with nothing in the backlog may always send one message.
 *
 * What is under way when a peer is told comes all the same: a window of frames.
 *
 * Does no I/O.  Under the owner lock.
 */
#ifndef LNX_BACKLOG_H
#define LNX_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define LNX_BACKLOG_PART	8u
/* By so many bytes the limit gives way at a time, if messages are as long as those before. */
#define LNX_BACKLOG_STEP	4096u

/* Of an endpoint.  Bytes. */
struct lnx_backlog {
	uint64_t limit;			/* at most LNX_BACKLOG_NONE, which is none */
	uint64_t used;
	uint64_t reserve;		/* what a window of frames may bring */
	uint32_t window;		/* frames that a peer may have under way */
	uint32_t n_throttled;		/* peers, */
	uint64_t allowed;		/* and the sum of their n */
};

#define LNX_BACKLOG_NONE	(UINT64_MAX / (2 * LNX_BACKLOG_PART))

/* Of a peer. */
struct lnx_backlog_use {
	uint64_t bytes;
	uint32_t n;			/* messages */
};

/* What a peer may send, as we tell it.  Zero-initialised: everything. */
struct lnx_allowance {
	uint32_t change;		/* grows with each change; odd: throttled */
	uint32_t base;			/* then: in frames with this number and later ones */
	uint32_t n;			/* so many messages may begin */
	uint32_t step;			/* by so many the limit gave way last */
	uint64_t used;			/* bytes of the peer, then */
};

/* The same, as the peer knows it.  Zero-initialised. */
struct lnx_allowed {
	uint32_t change;
	uint32_t left;			/* so many may begin now, while it is throttled */
};

/* ---- the receiver ---- */

LNX_INLINE bool lnx_backlog_allowance_throttles(const struct lnx_allowance *a)
{
	return (a->change & 1) != 0;
}

/* Bytes that a peer which uses `used` may use more. */
LNX_INLINE uint64_t lnx_backlog_left(const struct lnx_backlog *b, uint64_t used)
{
	uint64_t left = b->used < b->limit ? b->limit - b->used : 0;
	uint64_t share = left * LNX_BACKLOG_PART;

	return LNX_MIN(share > used ? share - used : 0, left);
}

/* Might a peer that uses `used` have to be throttled, with all that may be under way? */
LNX_INLINE bool lnx_backlog_near(const struct lnx_backlog *b, uint64_t used)
{
	return lnx_backlog_left(b, used) < b->reserve;
}

/*
 * A look at what a peer is allowed: it uses *use, its next frame has the number `next`, and
 * wanted: something that it has not sent may be waited for.  True: a has changed, and the peer
 * is to be told.  To be called after each message that is stored, and while it is throttled.
 */
bool lnx_backlog_look(struct lnx_backlog *b, struct lnx_allowance *a,
		      const struct lnx_backlog_use *use, uint32_t next, bool wanted);
/* The peer will send no more.  Again: nothing. */
void lnx_backlog_end(struct lnx_backlog *b, struct lnx_allowance *a);

/* What is left of it when all frames before number `next` have come. */
LNX_INLINE uint32_t lnx_backlog_allowance_left(const struct lnx_allowance *a, uint32_t next)
{
	uint32_t came = next - a->base;

	return came < a->n ? a->n - came : 0;
}

/* Has the peer soon nothing left that it may send?  Only then it matters what is wanted. */
LNX_INLINE bool lnx_backlog_allowance_low(const struct lnx_allowance *a, uint32_t next)
{
	return lnx_backlog_allowance_throttles(a) &&
	       lnx_backlog_allowance_left(a, next) <= a->step / 2;
}

/* ---- the sender ---- */

LNX_INLINE bool lnx_backlog_allowed_throttled(const struct lnx_allowed *a)
{
	return (a->change & 1) != 0;
}

/* Has it not heard of that change yet, nor of a later one? */
LNX_INLINE bool lnx_backlog_allowed_news(const struct lnx_allowed *a, uint32_t change)
{
	return (int32_t)(change - a->change) > 0;
}

/* The peer told n, when it had not yet received `begun` messages that have left. */
LNX_INLINE void lnx_backlog_allowed_learn(struct lnx_allowed *a, uint32_t change, uint32_t n,
					  uint32_t begun)
{
	a->change = change;
	a->left = n > begun ? n - begun : 0;
}

/* A message is about to begin.  False: it must wait. */
LNX_INLINE bool lnx_backlog_allowed_begin(struct lnx_allowed *a)
{
	if (!lnx_backlog_allowed_throttled(a))
		return true;
	if (!a->left)
		return false;
	a->left--;
	return true;
}

#endif
