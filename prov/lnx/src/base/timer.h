/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A set of timers: what is due next, and what is due now.
 *
 * A heap with four children for each node, in an array.  Arming, moving and cancelling a
 * timer take O(log n) steps, asking for the next deadline one.  A timing wheel would do
 * all of it in O(1), but expires in the order of its slots, not of deadlines, and has to
 * search for its next deadline; a pairing heap needs three pointers in each timer.  The
 * array has the deadlines beside each other, so that moving a timer does not touch the
 * objects that the others are part of; an object has 16 bytes for a timer that is not
 * armed.
 *
 * An object reserves the place of its timer when it is made: only that can fail.  So
 * arming always succeeds, and no deadline is lost when memory is short.
 *
 * Reads no clock: the caller passes the time.  Locking: none; the owner lock of the set's
 * owner is held.
 */
#ifndef LNX_TIMER_H
#define LNX_TIMER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* A deadline that never comes.  To arm a timer for it is to cancel it. */
#define LNX_NEVER	UINT64_MAX

struct lnx_timer {
	/* Its deadline has come; it is not armed any more.  May arm or cancel this and
	 * any other timer of the set, and free the object. */
	void (*due)(struct lnx_timer *t, uint64_t now);
	uint32_t place;			/* 1 + its index in the heap; 0: not armed */
	uint32_t turn;			/* order of timers with the same deadline */
};
static_assert(sizeof(struct lnx_timer) <= 24, "every peer has some");

/* A place in the heap. */
struct lnx_timer_slot {
	uint64_t at_ns;
	struct lnx_timer *timer;
};

struct lnx_timers {
	uint64_t next_ns;		/* the nearest deadline, or LNX_NEVER */
	struct lnx_timer_slot *heap;	/* owned */
	uint32_t n;			/* timers that are armed */
	uint32_t reserved;		/* timers that there are */
	uint32_t room;			/* allocated */
	uint32_t turn;			/* of the timer that was armed last */
};

/* Allocates nothing yet. */
void lnx_timers_init(struct lnx_timers *s);
/* Timers that are still armed must not be used any more. */
void lnx_timers_fini(struct lnx_timers *s);

/* There are n more timers.  0, or -ENOMEM: there are as many as before. */
int lnx_timers_reserve(struct lnx_timers *s, uint32_t n);
/* There are n less; none of these is armed. */
void lnx_timers_release(struct lnx_timers *s, uint32_t n);

static inline void lnx_timer_init(struct lnx_timer *t,
				  void (*due)(struct lnx_timer *t, uint64_t now))
{
	*t = (struct lnx_timer){ .due = due };
}

LNX_INLINE bool lnx_timer_armed(const struct lnx_timer *t)
{
	return t->place != 0;
}

/* Its deadline, or LNX_NEVER. */
LNX_INLINE uint64_t lnx_timer_at(const struct lnx_timers *s, const struct lnx_timer *t)
{
	return lnx_timer_armed(t) ? s->heap[t->place - 1].at_ns : LNX_NEVER;
}

/* Arm it, or change its deadline; it comes after those with the same deadline. */
void lnx_timer_arm(struct lnx_timers *s, struct lnx_timer *t, uint64_t at_ns);
void lnx_timer_cancel(struct lnx_timers *s, struct lnx_timer *t);

/*
 * Run the timers that are due, the earliest deadline first, no more than max of them:
 * those that are left are due at the next call.  A timer that is armed again meanwhile,
 * for a time that has come, runs again.  Returns how many ran.
 */
unsigned lnx_timers_run(struct lnx_timers *s, uint64_t now, unsigned max);

/* The earlier deadline. */
LNX_INLINE uint64_t lnx_sooner(uint64_t a_ns, uint64_t b_ns)
{
	return LNX_MIN(a_ns, b_ns);
}

/* The earlier one of next, and of at_ns if that is still to come. */
LNX_INLINE uint64_t lnx_next_of(uint64_t next, uint64_t at_ns, uint64_t now)
{
	return at_ns > now ? LNX_MIN(next, at_ns) : next;
}

/* All armed timers, in no order: i is 0 to s->n - 1, while none is armed or cancelled. */
LNX_INLINE struct lnx_timer *lnx_timers_armed(const struct lnx_timers *s, uint32_t i)
{
	return s->heap[i].timer;
}

#endif
