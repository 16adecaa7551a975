/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is late on a path, and what the path may carry after that.  A rail may be sick but
 * not dead: it loses packets, stands still for a second, or has become slow.  What is
 * under way there is late while the other paths deliver.  Then it goes again over one of
 * these, and the first to come counts: a hedged request, as in Dean and Barroso, "The
 * Tail at Scale".  Does no I/O; the time is passed in.  Owner lock held.
 *
 * When is a piece late?  The rate of the path (rel/rate.h) says when it should come, after
 * the one before it.  How much later pieces usually come is learned from those that others
 * did not overtake, as RFC 6298 learns its timeout: a piece is late if it needs longer than
 * the mean and four times the deviation.  That is true for all paths when the peer has no
 * CPU, so the caller hedges only if another path has delivered or answered meanwhile.
 *
 * After that the path starts slowly, as TCP does: one piece may be under way, then twice
 * as much for each that comes in time.  Before that it pauses, twice as long each time, so
 * that a rail that stays sick costs little, and one that is well again is used soon.  The
 * pause is short again when a late piece still came before its second read.
 *
 * What is read twice is at most a share of what is read at all.
 */
#ifndef LNX_HEDGE_H
#define LNX_HEDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a pause that doubles ---- */

/* Zero-initialised: there was none. */
struct lnx_pause {
	uint64_t until_ns;
	uint64_t ns;			/* length of the last one */
};

/* A pause begins, or begins again.  It is twice as long as the last one, from min_ns to
 * max_ns; but min_ns if all was well for longer than LNX_PAUSE_FORGET such pauses. */
#define LNX_PAUSE_FORGET	4u
void lnx_hedge_pause_begin(struct lnx_pause *p, uint64_t min_ns, uint64_t max_ns, uint64_t now);

static inline bool lnx_hedge_pause_over(const struct lnx_pause *p, uint64_t now)
{
	return now >= p->until_ns;
}

/* ---- pieces that are read over a path ---- */

/* Zero-initialised: no piece was late. */
struct lnx_tail {
	uint64_t mean_ns, dev_ns;	/* of how much later than computed pieces come */
	uint64_t window;		/* bytes that may be under way; 0: no limit */
	uint64_t late_ns;		/* when one was last found late; 0: never */
	uint32_t behind;		/* pieces still under way that were so then */
	struct lnx_pause pause;
};

/* How much later than computed a piece may come before it is late. */
uint64_t lnx_hedge_tail_ns(const struct lnx_tail *t);

/* A piece that was posted at posted_ns is late; n are under way.  False: so are all that
 * were posted before the last one that was late: nothing has changed. */
bool lnx_hedge_tail_late(struct lnx_tail *t, uint64_t posted_ns, uint32_t n, uint64_t now);

/* A piece of so many bytes that was posted at posted_ns came late_by_ns later than
 * computed.  first: it was read twice, and came before the other read of it. */
void lnx_hedge_tail_came(struct lnx_tail *t, uint64_t posted_ns, uint64_t late_by_ns,
			 uint64_t bytes, bool first);

/* A piece has ended, in any way. */
void lnx_hedge_tail_ended(struct lnx_tail *t, uint64_t now);

/* Do pieces that were late still block the path? */
static inline bool lnx_hedge_tail_stuck(const struct lnx_tail *t)
{
	return t->behind != 0;
}

/* May one more piece be posted while out bytes are under way?  The pause is apart. */
bool lnx_hedge_tail_room(const struct lnx_tail *t, uint64_t out);

/* At most so many bytes, of which out are under way, may be under way. */
static inline uint64_t lnx_hedge_tail_most(const struct lnx_tail *t, uint64_t out)
{
	return !t->window ? UINT64_MAX : t->window > out ? t->window - out : 0;
}

/* ---- how much is read twice, of a peer ---- */

/* Zero-initialised. */
struct lnx_hedge {
	uint64_t twice;			/* bytes that were read twice, less the share that
					 * is allowed of those that were read */
	uint32_t n;			/* hedges that wait or are under way */
};

/* One of so many bytes may be read twice ... */
#define LNX_HEDGE_SHARE		20u
/* ... and so many bytes ahead of that, */
#define LNX_HEDGE_AHEAD		(512u * 1024)
/* in so many hedges at a time. */
#define LNX_HEDGE_MAX		8u

/* Bytes were read for the first time. */
void lnx_hedge_earn(struct lnx_hedge *h, uint64_t bytes);
/* May so many bytes be read twice?  True: they are taken off, and n counts one more. */
bool lnx_hedge_take(struct lnx_hedge *h, uint64_t bytes);
/* One has ended. */
static inline void lnx_hedge_put(struct lnx_hedge *h)
{
	h->n--;
}

#endif
