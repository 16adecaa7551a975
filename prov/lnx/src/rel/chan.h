/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of the reliable channel between two endpoints: the frames that it sends
 * (numbers, window, retransmission) and the order of those that it receives (rel/seq.h),
 * with the acknowledgements that are due.  Frames may be lost, repeated and overtaken on
 * the way; each is delivered once, in order.
 *
 * This is the state only.  The caller posts frames, carries headers, and has the clock:
 * nothing here calls libfabric, allocates frames, or knows what they contain.  How the
 * two ends work together is driven by fabtests/unit/test_chan_random.c without a network.
 *
 *	una <= posted <= next	(numbers wrap)
 *	[una, posted)	in the window: posted, not acknowledged
 *	[posted, next)	queued: have a number, wait to be posted
 *
 * One per peer, under the owner lock.
 */
#ifndef LNX_CHAN_H
#define LNX_CHAN_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "rel/seq.h"

/* What the channel has to know of a frame.  The owner of the frame keeps it in its own
 * structure until the frame is acknowledged. */
struct lnx_frame {
	uint32_t seq;
	uint32_t len;			/* bytes, without the pieces of niov */
	/* Why its acknowledgement alone does not release it; also as one word. */
	union {
		uint32_t slow_ack;
		struct {
			bool in_core;	/* the core reads the frame */
			bool comp_at_ack; /* report when acknowledged, not before */
			bool retransmitted : 1;	/* it left more than once */
			bool timed : 1;	/* the caller's: it is said when it left */
			uint8_t niov;	/* payload pieces outside the frame */
		};
	};
	uint8_t path;			/* the one it was last posted on */
	bool acked;
	struct lnx_node link;		/* the queue, until posted; then the owner's */
};

static_assert(offsetof(struct lnx_frame, niov) ==
	      offsetof(struct lnx_frame, slow_ack) + 3, "they are one word");

/*
 * Exceptional send states.  While any is set, a new frame may not simply leave, and an
 * acknowledgement does more than release one frame.
 */
#define LNX_CHAN_NO_ACK_YET	0x01u	/* nothing was acknowledged, not even our
					 * hello */
#define LNX_CHAN_QUEUED		0x02u	/* frames wait to be posted */
#define LNX_CHAN_RETRANSMIT	0x04u	/* frames are to be posted again */
#define LNX_CHAN_PROBE		0x08u	/* the oldest was posted again; its ack shows
					 * what is lost */
#define LNX_CHAN_PROBE_DUE	0x10u	/* the oldest is to be posted again */
#define LNX_CHAN_FAILING	0x20u	/* the caller's: posts fail, and an acknowledgement
					 * ends that */
#define LNX_CHAN_THROTTLED	0x40u	/* the caller's: not every message may begin
					 * (rel/throttle.h) */
#define LNX_CHAN_CONFIRMS	0x80u	/* the caller's: a receive waits for an
					 * acknowledgement (msg/pull.c) */

/* The first members are used for every frame: see obj/peer.h for their cache lines. */
struct lnx_chan {
	/* Sending. */
	uint32_t next;			/* number of the next new frame */
	uint32_t posted;		/* number of the next one to be posted */
	uint32_t una;			/* oldest not acknowledged */
	uint8_t flags;			/* LNX_CHAN_*, nearly always 0 */
	uint8_t retx_paths;		/* bits: retransmit what left over these */
	uint8_t lost_paths;		/* bits: what the probe is about */
	bool ack_now;			/* acks_pending are sent without delay */

	struct lnx_frame **slot;	/* [mask + 1], by number; owned */
	uint64_t una_bytes;		/* of frames in the window */
	uint32_t mask;			/* frames that fit into slot[] now, less 1 */
	uint16_t window;		/* most frames in the window; a power of 2 */
	uint16_t retx_left;		/* so many numbers from retx_next on */
	/* Acknowledging. */
	uint64_t ack_since_ns;		/* the caller's; 0: its next pass sets it */
	uint32_t acks_pending;		/* sequenced frames that came and are not yet
					 * acknowledged */
	uint32_t ack_threshold;		/* so many need action */
	/* Exceptional states. */
	uint32_t retx_next;		/* next to be looked at for LNX_CHAN_RETRANSMIT */
	uint32_t nqueued;		/* frames in queue */
	struct lnx_node queue;		/* lnx_frame.link */

	struct lnx_seq rx;		/* receiving */
};

/* ---- life ---- */

void lnx_chan_init(struct lnx_chan *c);
/* Before the first frame is numbered.  window: a power of 2, at most LNX_SEQ_WINDOW.  0
 * or -ENOMEM; again: nothing. */
int lnx_chan_open(struct lnx_chan *c, uint32_t window);
/* No frame is in the window or the queue, and rx is drained. */
void lnx_chan_fini(struct lnx_chan *c);

/* ---- sending ---- */

LNX_INLINE bool lnx_chan_acked_any(const struct lnx_chan *c)
{
	return !(c->flags & LNX_CHAN_NO_ACK_YET);
}

LNX_INLINE bool lnx_chan_retransmits(const struct lnx_chan *c)
{
	return (c->flags & LNX_CHAN_RETRANSMIT) != 0;
}

/* Is everything posted acknowledged? */
LNX_INLINE bool lnx_chan_idle(const struct lnx_chan *c)
{
	return c->una == c->posted;
}

/* Where the frame of that number is, if it is in the window.  May hold NULL: the frame
 * was given away. */
LNX_INLINE struct lnx_frame **lnx_chan_slot(const struct lnx_chan *c, uint32_t seq)
{
	return &c->slot[seq & c->mask];
}

/* Slow half of lnx_chan_window_open. */
LNX_COLD bool lnx_chan_grow(struct lnx_chan *c);

/* May one more frame be posted? */
LNX_INLINE bool lnx_chan_window_open(struct lnx_chan *c)
{
	/* Not as one expression: then gcc takes all that follows in its callers to be as rare
	 * as the call. */
	if (lnx_likely(c->posted - c->una <= c->mask))
		return true;
	return lnx_chan_grow(c);
}

/* The next number, for a frame that is to be posted or queued now. */
LNX_INLINE uint32_t lnx_chan_number(struct lnx_chan *c, struct lnx_frame *f)
{
	return f->seq = c->next++;
}

/* f could not be posted, and is not to be queued.  False: too late, there is a later
 * number. */
LNX_INLINE bool lnx_chan_unnumber(struct lnx_chan *c, const struct lnx_frame *f)
{
	if (c->next != f->seq + 1)
		return false;
	c->next--;
	return true;
}

/* f, which is the next in order, was posted for the first time. */
LNX_INLINE void lnx_chan_posted(struct lnx_chan *c, struct lnx_frame *f,
				uint64_t bytes)
{
	*lnx_chan_slot(c, f->seq) = f;
	c->posted++;
	c->una_bytes += bytes;
}

/* f, which has its number, waits behind what is queued; first: before it, since its
 * number is lower. */
void lnx_chan_queue(struct lnx_chan *c, struct lnx_frame *f, bool first);

/*
 * What should be posted now, or NULL.  In this order: the oldest frame as a probe for
 * what is lost, frames that are lost, queued frames that the window has room for.  After
 * it was posted, lnx_chan_out with that *what.  Nothing is missed if it cannot be posted:
 * the next call returns the same frame, unless it was acknowledged meanwhile.
 */
enum lnx_chan_what {
	LNX_CHAN_OUT_PROBE,
	LNX_CHAN_OUT_AGAIN,
	LNX_CHAN_OUT_NEW,		/* then lnx_chan_posted, too */
};
struct lnx_frame *lnx_chan_next_out(struct lnx_chan *c, enum lnx_chan_what *what);
/*
 * The frame of that number, which was last posted on path `before`, was posted.  It may
 * be acknowledged by now, and gone; a new frame is not.
 */
void lnx_chan_out(struct lnx_chan *c, enum lnx_chan_what what, uint32_t seq,
		  uint8_t before);

/* Retransmit what left over these paths (bits): of the window, those before number end. */
void lnx_chan_retransmit_before(struct lnx_chan *c, unsigned paths, uint32_t end);
/* All in the window. */
LNX_INLINE void lnx_chan_retransmit(struct lnx_chan *c, unsigned paths)
{
	lnx_chan_retransmit_before(c, paths, c->posted);
}
/* Post the oldest frame again.  Its acknowledgement tells that the peer lives, and then
 * all that left over the same path before is retransmitted. */
LNX_INLINE void lnx_chan_probe(struct lnx_chan *c)
{
	c->flags |= LNX_CHAN_PROBE_DUE;
}

/*
 * The peer acknowledges all before number ack: how many frames lnx_chan_pop_una has to
 * be called for, and lnx_chan_after_ack then.  0 for an old acknowledgement, and for one
 * of frames that were never posted.
 */
LNX_INLINE uint32_t lnx_chan_ackable(const struct lnx_chan *c, uint32_t ack)
{
	uint32_t n = ack - c->una;

	return lnx_likely(n <= c->posted - c->una) ? n : 0;
}

/* The oldest frame in the window leaves it; the caller lowers una_bytes.  NULL: it was
 * given away. */
LNX_INLINE struct lnx_frame *lnx_chan_pop_una(struct lnx_chan *c)
{
	struct lnx_frame **slot = lnx_chan_slot(c, c->una++);
	struct lnx_frame *f = *slot;

	*slot = NULL;
	return f;
}

/* True: lnx_chan_next_out may have something now. */
bool lnx_chan_after_ack(struct lnx_chan *c);

/*
 * The same in one step for the usual case: one frame is acknowledged, no exceptional
 * state, and nothing else keeps the frame.  NULL: take the long way.
 */
LNX_INLINE struct lnx_frame *lnx_chan_ack_one(struct lnx_chan *c, uint32_t ack)
{
	struct lnx_frame **slot, *f;

	if (lnx_unlikely(ack != c->una + 1 || c->flags))
		return NULL;
	/* Empty if that number was never posted. */
	slot = lnx_chan_slot(c, c->una);
	f = *slot;
	if (lnx_unlikely(!f || f->slow_ack))
		return NULL;
	*slot = NULL;
	c->una = ack;
	c->una_bytes -= f->len;
	return f;
}

/* The first frame of the queue leaves it, without being posted; or NULL. */
struct lnx_frame *lnx_chan_unqueue(struct lnx_chan *c);
/* The last frame of the queue, which is not empty, leaves it without its number. */
struct lnx_frame *lnx_chan_take_back(struct lnx_chan *c);
/* Window and queue are empty, and nothing will be sent any more. */
void lnx_chan_end(struct lnx_chan *c);

/* ---- acknowledging ---- */

/* A sequenced frame came.  True: ack_threshold is reached. */
LNX_INLINE bool lnx_chan_owe_ack(struct lnx_chan *c)
{
	return ++c->acks_pending >= c->ack_threshold;
}

/* What left acknowledges all that has come. */
LNX_INLINE void lnx_chan_ack_sent(struct lnx_chan *c)
{
	c->acks_pending = 0;
	c->ack_since_ns = 0;
	c->ack_now = false;
}

#endif
