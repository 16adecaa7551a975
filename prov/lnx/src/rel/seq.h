/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive side of the sequence: which frame is next, which came early, which is a
 * duplicate.  32-bit numbers wrap; the window is far smaller than half of them.  Does
 * no I/O.  One per peer, under the owner lock.
 */
#ifndef LNX_SEQ_H
#define LNX_SEQ_H

#include <assert.h>
#include <stdint.h>

#include "base/compiler.h"

/* Most frames in the out-of-order queue; also the largest window a sender may use. */
#define LNX_SEQ_WINDOW	4096
/* Size of the array that lnx_seq_ooo_add allocates for the first of them. */
#define LNX_SEQ_OOO_BYTES	(LNX_SEQ_WINDOW * sizeof(void *))

struct lnx_seq {
	uint32_t next;			/* the next number to handle */
	uint16_t wraps;			/* how often that was 0 again */
	uint16_t n_ooo;			/* frames in ooo[] */
	void **ooo;			/* [LNX_SEQ_WINDOW], NULL until a gap */
};
static_assert(LNX_SEQ_WINDOW <= UINT16_MAX, "n_ooo has room for all");

enum lnx_seq_verdict {
	LNX_SEQ_NEXT,			/* handle it, then lnx_seq_pop */
	LNX_SEQ_AHEAD,			/* inside the window: lnx_seq_ooo_add */
	LNX_SEQ_OLD,			/* handled before: drop, acknowledge */
	LNX_SEQ_FAR,			/* beyond the window: drop */
};

LNX_INLINE enum lnx_seq_verdict lnx_seq_judge(const struct lnx_seq *s,
					      uint32_t seq)
{
	uint32_t ahead = seq - s->next;

	if (lnx_likely(ahead == 0))
		return LNX_SEQ_NEXT;
	if (ahead < LNX_SEQ_WINDOW)
		return LNX_SEQ_AHEAD;
	return ahead > UINT32_MAX / 2 ? LNX_SEQ_OLD : LNX_SEQ_FAR;
}

/* Queue an early frame.  0; -EEXIST when that number is queued already; -ENOMEM. */
int lnx_seq_ooo_add(struct lnx_seq *s, uint32_t seq, void *frame);

/* Count the frame at `next` as handled. */
LNX_INLINE void lnx_seq_advance(struct lnx_seq *s)
{
	if (lnx_unlikely(!++s->next))
		s->wraps++;
}

/* The queued frame that is next now, removed, or NULL. */
void *lnx_seq_pop_slow(struct lnx_seq *s);

LNX_INLINE void *lnx_seq_pop(struct lnx_seq *s)
{
	return lnx_likely(!s->n_ooo) ? NULL : lnx_seq_pop_slow(s);
}

/* Any queued frame, removed, or NULL; for closing. */
void *lnx_seq_drain(struct lnx_seq *s);
/* Frees ooo[], which must have been drained. */
void lnx_seq_fini(struct lnx_seq *s);

#endif
