/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of messages without a receive, and what peers may send.  See backlog.h. */
#include "policy/backlog.h"

/* Messages that fit into what a peer may use more; it may always send one first message. */
static uint32_t room_of(const struct lnx_backlog *b, uint64_t used)
{
	uint64_t n = lnx_backlog_left(b, used) / (b->reserve / b->window);

	if (!n && !used)
		return 1;
	return (uint32_t)LNX_MIN(n, 2ul * b->window);
}

/* By how many messages the limit gives way: more if the last ones have found receives. */
static uint32_t step_of(const struct lnx_backlog *b, const struct lnx_allowance *a,
			uint64_t used)
{
	return a->step && used <= a->used ? LNX_MIN(2 * a->step, b->window) : 1;
}

/* Throttled from now on, or allowed more. */
static bool allow(struct lnx_allowance *a, uint32_t next, uint32_t n, uint32_t step,
		  uint64_t used)
{
	a->change += lnx_allowance_throttles(a) ? 2 : 1;
	a->base = next;
	a->n = n;
	a->step = step;
	a->used = used;
	return true;
}

bool lnx_backlog_look(const struct lnx_backlog *b, struct lnx_allowance *a, uint64_t used,
		      uint32_t next, bool wanted)
{
	uint32_t room = room_of(b, used), step = 0;
	uint32_t left = lnx_allowance_left(a, next);

	if (!lnx_allowance_throttles(a)) {
		if (!lnx_backlog_near(b, used))
			return false;
		return allow(a, next, room, 0, used);
	}
	/* Half of this is in use before it is throttled again. */
	if (room >= 2 * b->window) {
		a->change++;
		return true;
	}
	if (!room && wanted)
		room = step = step_of(b, a, used);
	/* Not each time that something is received; but before it has nothing left. */
	if (left > room / 2 || left >= room)
		return false;
	return allow(a, next, room, step, used);
}
