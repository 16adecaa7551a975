/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A set of timers.  See timer.h. */
#include "base/timer.h"

#include <errno.h>
#include <stdlib.h>

#define WAYS		4u		/* children of a node */
#define ROOM_FIRST	16u

void lnx_timers_init(struct lnx_timers *s)
{
	*s = (struct lnx_timers){ .next_ns = LNX_NEVER };
}

void lnx_timers_fini(struct lnx_timers *s)
{
	free(s->heap);
	lnx_timers_init(s);
}

int lnx_timers_reserve(struct lnx_timers *s, uint32_t n)
{
	uint64_t want = (uint64_t)s->reserved + n, room = LNX_MAX(s->room, ROOM_FIRST);
	struct lnx_timer_slot *heap;

	while (room < want)
		room += room / 2;
	/* A place counts from 1. */
	if (room >= UINT32_MAX)
		return -ENOMEM;
	if (room > s->room) {
		heap = realloc(s->heap, room * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		s->heap = heap;
		s->room = (uint32_t)room;
	}
	s->reserved = (uint32_t)want;
	return 0;
}

void lnx_timers_release(struct lnx_timers *s, uint32_t n)
{
	assert(s->reserved - s->n >= n);
	s->reserved -= n;
}

/* Turns wrap: of two timers, none is armed for so long while others are. */
static bool before(const struct lnx_timer_slot *a, const struct lnx_timer_slot *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	return (int32_t)(a->timer->turn - b->timer->turn) < 0;
}

static void put(struct lnx_timers *s, uint32_t i, struct lnx_timer_slot slot)
{
	s->heap[i] = slot;
	slot.timer->place = i + 1;
}

/* Index i is free: put slot there, or where it belongs on the way to the root. */
static void up(struct lnx_timers *s, uint32_t i, struct lnx_timer_slot slot)
{
	while (i) {
		uint32_t parent = (i - 1) / WAYS;

		if (!before(&slot, &s->heap[parent]))
			break;
		put(s, i, s->heap[parent]);
		i = parent;
	}
	put(s, i, slot);
}

/* The same, away from the root. */
static void down(struct lnx_timers *s, uint32_t i, struct lnx_timer_slot slot)
{
	for (;;) {
		uint64_t child = (uint64_t)i * WAYS + 1, end, best, k;

		if (child >= s->n)
			break;
		end = LNX_MIN(child + WAYS, (uint64_t)s->n);
		for (best = child, k = child + 1; k < end; k++)
			if (before(&s->heap[k], &s->heap[best]))
				best = k;
		if (!before(&s->heap[best], &slot))
			break;
		put(s, i, s->heap[best]);
		i = (uint32_t)best;
	}
	put(s, i, slot);
}

static void settle(struct lnx_timers *s, uint32_t i, struct lnx_timer_slot slot)
{
	if (i && before(&slot, &s->heap[(i - 1) / WAYS]))
		up(s, i, slot);
	else
		down(s, i, slot);
}

static void find_next(struct lnx_timers *s)
{
	s->next_ns = s->n ? s->heap[0].at_ns : LNX_NEVER;
}

void lnx_timer_arm(struct lnx_timers *s, struct lnx_timer *t, uint64_t at_ns)
{
	struct lnx_timer_slot slot = { at_ns, t };

	if (at_ns == LNX_NEVER) {
		lnx_timer_cancel(s, t);
		return;
	}
	t->turn = ++s->turn;
	if (lnx_timer_armed(t)) {
		settle(s, t->place - 1, slot);
	} else {
		assert(s->n < s->reserved);
		up(s, s->n++, slot);
	}
	find_next(s);
}

void lnx_timer_cancel(struct lnx_timers *s, struct lnx_timer *t)
{
	uint32_t i = t->place - 1;

	if (!lnx_timer_armed(t))
		return;
	t->place = 0;
	/* The last one takes its place. */
	if (i != --s->n)
		settle(s, i, s->heap[s->n]);
	find_next(s);
}

unsigned lnx_timers_run(struct lnx_timers *s, uint64_t now, unsigned max)
{
	unsigned n = 0;

	while (n < max && s->n && s->next_ns <= now) {
		struct lnx_timer *t = s->heap[0].timer;

		lnx_timer_cancel(s, t);
		n++;
		t->due(t, now);
	}
	return n;
}
