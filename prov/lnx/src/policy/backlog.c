/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of messages without a receive, and what peers may send.  See backlog.h. */
#include "policy/backlog.h"

/* Messages that fit into what a peer may use more; it may always send one first message. */
static uint32_t room_of(const struct lnx_backlog *b, const struct lnx_allowance *a,
			uint64_t used)
{
	uint64_t frame = b->reserve / b->window, others = (b->allowed - a->n) * frame;
	uint64_t left = b->used < b->limit ? b->limit - b->used : 0;
	uint64_t n = LNX_MIN(lnx_backlog_left(b, used), left / LNX_MAX(b->n_throttled, 1u));

	n = LNX_MIN(n, left > others ? left - others : 0) / frame;
	return n || used ? (uint32_t)LNX_MIN(n, 2ul * b->window) : 1;
}

/* By how many messages the limit gives way: more if the last ones have found receives. */
static uint32_t step_of(const struct lnx_backlog *b, const struct lnx_allowance *a,
			const struct lnx_backlog_use *use)
{
	uint64_t n = (uint64_t)LNX_BACKLOG_STEP * use->n / LNX_MAX(use->bytes, 1u);

	if (a->step && use->bytes <= a->used)
		n = LNX_MAX(n, 2ul * a->step);
	return (uint32_t)LNX_MIN(LNX_MAX(n, 1u), b->window);
}

/* It may begin n messages from that frame on. */
static void set(struct lnx_backlog *b, struct lnx_allowance *a, uint32_t next, uint32_t n)
{
	b->allowed += n;
	b->allowed -= a->n;
	a->base = next;
	a->n = n;
}

static bool allow(struct lnx_backlog *b, struct lnx_allowance *a, uint32_t next, uint32_t n,
		  uint64_t used)
{
	a->change += 2;
	set(b, a, next, n);
	a->used = used;
	return true;
}

void lnx_backlog_end(struct lnx_backlog *b, struct lnx_allowance *a)
{
	if (!lnx_backlog_allowance_throttles(a))
		return;
	a->change++;
	b->n_throttled--;
	set(b, a, a->base, 0);
}

bool lnx_backlog_look(struct lnx_backlog *b, struct lnx_allowance *a,
		      const struct lnx_backlog_use *use, uint32_t next, bool wanted)
{
	uint64_t used = use->bytes;
	uint32_t room, left;

	if (!lnx_backlog_allowance_throttles(a)) {
		if (!lnx_backlog_near(b, used))
			return false;
		b->n_throttled++;
		a->change--;
		a->step = 0;
		return allow(b, a, next, room_of(b, a, used), used);
	}
	/* Half of this is in use before it is throttled again. */
	if (lnx_backlog_left(b, used) >= 2 * b->reserve) {
		lnx_backlog_end(b, a);
		return true;
	}
	/* What has come is not allowed any more. */
	left = lnx_backlog_allowance_left(a, next);
	set(b, a, next, left);
	room = room_of(b, a, used);
	if (room) {
		/* Not each time that something is received; but before it has nothing
		 * left. */
		if (left > room / 2 || left >= room)
			return false;
		a->step = 0;
		return allow(b, a, next, room, used);
	}
	if (!wanted || !lnx_backlog_allowance_low(a, next))
		return false;
	a->step = step_of(b, a, use);
	return allow(b, a, next, a->step, used);
}
