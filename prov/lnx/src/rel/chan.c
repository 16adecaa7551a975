/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The reliable channel's rare steps: growing, queueing, retransmitting.  See chan.h. */
#include "rel/chan.h"

#include <errno.h>
#include <stdlib.h>

/* Most peers never have more than a few frames in flight. */
#define SLOTS_FIRST	8u

void lnx_chan_init(struct lnx_chan *c)
{
	*c = (struct lnx_chan){ .flags = LNX_CHAN_NO_ACK_YET };
	lnx_list_init(&c->queue);
}

int lnx_chan_open(struct lnx_chan *c, uint32_t window)
{
	uint32_t n = window < SLOTS_FIRST ? window : SLOTS_FIRST;

	if (c->slot)
		return 0;
	c->slot = calloc(n, sizeof(struct lnx_frame *));
	if (!c->slot)
		return -ENOMEM;
	c->mask = n - 1;
	c->window = (uint16_t)window;
	return 0;
}

void lnx_chan_fini(struct lnx_chan *c)
{
	free(c->slot);
	c->slot = NULL;
	lnx_seq_fini(&c->rx);
}

/* ---- sending ---- */

LNX_COLD bool lnx_chan_grow(struct lnx_chan *c)
{
	struct lnx_frame **slot;
	uint32_t seq, mask = c->mask * 2 + 1;

	if (mask >= c->window)
		return false;
	slot = calloc(mask + 1ul, sizeof(struct lnx_frame *));
	if (!slot)
		return false;		/* a smaller window until there is memory */
	for (seq = c->una; seq != c->posted; seq++)
		slot[seq & mask] = *lnx_chan_slot(c, seq);
	free(c->slot);
	c->slot = slot;
	c->mask = mask;
	return true;
}

void lnx_chan_queue(struct lnx_chan *c, struct lnx_frame *f, bool first)
{
	c->nqueued++;
	c->flags |= LNX_CHAN_QUEUED;
	if (first)
		lnx_list_add_head(&c->queue, &f->link);
	else
		lnx_list_add_tail(&c->queue, &f->link);
}

struct lnx_frame *lnx_chan_unqueue(struct lnx_chan *c)
{
	struct lnx_node *n = lnx_list_pop(&c->queue);

	if (!n)
		return NULL;
	if (!--c->nqueued)
		c->flags &= (uint8_t)~LNX_CHAN_QUEUED;
	return lnx_list_entry(n, struct lnx_frame, link);
}

struct lnx_frame *lnx_chan_take_back(struct lnx_chan *c)
{
	struct lnx_node *n = c->queue.prev;

	lnx_list_del(n);
	c->next--;
	if (!--c->nqueued)
		c->flags &= (uint8_t)~LNX_CHAN_QUEUED;
	return lnx_list_entry(n, struct lnx_frame, link);
}

void lnx_chan_retransmit_before(struct lnx_chan *c, unsigned paths, uint32_t end)
{
	uint32_t n = end - c->una, before = c->retx_next + c->retx_left - c->una;

	if (n > c->posted - c->una || !n)
		return;
	/* What was to be retransmitted already still is. */
	if (c->retx_left && before <= c->posted - c->una)
		n = LNX_MAX(n, before);
	c->retx_paths |= (uint8_t)paths;
	c->retx_next = c->una;
	c->retx_left = (uint16_t)n;
	c->flags |= LNX_CHAN_RETRANSMIT;
}

static void next_number(struct lnx_chan *c)
{
	c->retx_next++;
	c->retx_left--;
}

/*
 * The next lost frame.  Acknowledged ones have left empty slots, which are not used again
 * meanwhile: no new frame is posted before these.  One that is in the core still waits
 * for the core: its error or completion comes first.
 */
static struct lnx_frame *next_lost(struct lnx_chan *c)
{
	for (; c->retx_left; next_number(c)) {
		struct lnx_frame *f = *lnx_chan_slot(c, c->retx_next);

		if (f && !f->acked && !f->in_core &&
		    (c->retx_paths >> f->path & 1))
			return f;
	}
	c->retx_paths = 0;
	c->flags &= (uint8_t)~LNX_CHAN_RETRANSMIT;
	return NULL;
}

struct lnx_frame *lnx_chan_next_out(struct lnx_chan *c, enum lnx_chan_what *what)
{
	struct lnx_frame *f;

	if (c->flags & LNX_CHAN_PROBE_DUE) {
		f = lnx_chan_idle(c) ? NULL : *lnx_chan_slot(c, c->una);
		if (f && !f->in_core) {
			f->retransmitted = true;
			*what = LNX_CHAN_OUT_PROBE;
			return f;
		}
		c->flags &= (uint8_t)~LNX_CHAN_PROBE_DUE;
	}
	if (c->flags & LNX_CHAN_RETRANSMIT) {
		f = next_lost(c);
		if (f) {
			f->retransmitted = true;
			*what = LNX_CHAN_OUT_AGAIN;
			return f;
		}
	}
	if (!c->nqueued || !lnx_chan_window_open(c))
		return NULL;
	*what = LNX_CHAN_OUT_NEW;
	return lnx_list_entry(c->queue.next, struct lnx_frame, link);
}

void lnx_chan_out(struct lnx_chan *c, enum lnx_chan_what what, uint32_t seq,
		  uint8_t before)
{
	switch (what) {
	case LNX_CHAN_OUT_PROBE:
		c->flags &= (uint8_t)~LNX_CHAN_PROBE_DUE;
		c->flags |= LNX_CHAN_PROBE;
		c->lost_paths = (uint8_t)(1u << before);
		break;
	case LNX_CHAN_OUT_AGAIN:
		/* Unless an ack or error that came meanwhile moved it. */
		if (c->retx_left && c->retx_next == seq)
			next_number(c);
		break;
	case LNX_CHAN_OUT_NEW:
		lnx_chan_unqueue(c);
		break;
	}
}

bool lnx_chan_after_ack(struct lnx_chan *c)
{
	if (lnx_likely(!c->flags))
		return false;
	c->flags &= (uint8_t)~LNX_CHAN_NO_ACK_YET;
	if (c->flags & LNX_CHAN_PROBE) {
		/* The peer lives.  What it still lacks was lost. */
		c->flags &= (uint8_t)~LNX_CHAN_PROBE;
		lnx_chan_retransmit(c, c->lost_paths);
	}
	return (c->flags & (LNX_CHAN_QUEUED | LNX_CHAN_RETRANSMIT)) != 0;
}

void lnx_chan_end(struct lnx_chan *c)
{
	c->una_bytes = 0;
	c->retx_left = 0;
	c->flags &= LNX_CHAN_NO_ACK_YET;
}
