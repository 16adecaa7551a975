/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The backlog of an endpoint: memory of messages that no receive matches yet.  It has a
 * limit.  A peer that nears its share of that is throttled: it is told an end, and may begin
 * no message in a frame with that number or a later one, until it is told another.  Its own
 * sends wait meanwhile.  What it has begun, and frames that are no messages, go on.
 *
 *	share of a peer = LNX_BACKLOG_PART times what is not used yet
 *
 * So a peer alone may use nearly all, n peers the same each, and one that comes later finds
 * something left.  What a throttled peer may send is counted in frames, each of which is
 * taken to be as long as it may be: so that what it is allowed fits.
 *
 * Messages of a peer come in order.  A receive may wait for one that is behind others which
 * no receive wants, so the limit gives way: while a receive, or a look for a message, waits
 * for something of a peer that may send no more, that peer is allowed one more frame, and
 * then one more.  If these find their receives, what is allowed doubles each time.  And a
 * peer with nothing in the backlog may always send one message.
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

/* Of an endpoint.  Bytes. */
struct lnx_backlog {
	uint64_t limit;			/* at most LNX_BACKLOG_NONE, which is none */
	uint64_t used;
	uint64_t reserve;		/* what a window of frames may bring */
	uint32_t window;		/* frames that a peer may have under way */
};

#define LNX_BACKLOG_NONE	(UINT64_MAX / (2 * LNX_BACKLOG_PART))

/* What a peer may send, as we tell it.  Zero-initialised: everything. */
struct lnx_allowance {
	uint32_t change;		/* grows with each change; odd: throttled */
	uint32_t end;			/* then: number of the first frame that may begin no
					 * message */
	uint32_t step;			/* frames by which the limit gave way last */
	uint64_t used;			/* by the peer, then */
};

/* ---- the receiver ---- */

LNX_INLINE bool lnx_allowance_throttles(const struct lnx_allowance *a)
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
 * A look at what a peer is allowed: it uses `used`, its next frame has the number `next`, and
 * wanted: something that it has not sent may be waited for.  True: a has changed, and the peer
 * is to be told.  To be called after each message that is stored, and while it is throttled.
 */
bool lnx_backlog_look(const struct lnx_backlog *b, struct lnx_allowance *a, uint64_t used,
		      uint32_t next, bool wanted);

/* Has the peer soon nothing left that it may send?  Only then it matters what is wanted. */
LNX_INLINE bool lnx_allowance_low(const struct lnx_allowance *a, uint32_t next)
{
	return lnx_allowance_throttles(a) &&
	       (int32_t)(a->end - next) <= (int32_t)(a->step / 2);
}

/* ---- the sender ---- */

/* It was told that.  False: it has heard of this, or of a later change. */
LNX_INLINE bool lnx_allowance_learn(struct lnx_allowance *a, uint32_t change, uint32_t end)
{
	if ((int32_t)(change - a->change) <= 0)
		return false;
	a->change = change;
	a->end = end;
	return true;
}

/* May a message begin in a frame with that number? */
LNX_INLINE bool lnx_allowance_allows(const struct lnx_allowance *a, uint32_t seq)
{
	return !lnx_allowance_throttles(a) || (int32_t)(a->end - seq) > 0;
}

#endif
