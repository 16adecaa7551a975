/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A frame that we send, from the pools of its endpoint: messages and RMA fill it, the
 * reliable channel (rel/rel.h) has it from lnx_rel_send until it is acknowledged and the
 * core has released it.  Owner lock held.
 */
#ifndef LNX_TXE_H
#define LNX_TXE_H

#include "obj/ep.h"

struct lnx_rxe;

/* lnx_txe.keep: may its payload be copied, so that its send completes (rel/keep.c)? */
enum {
	LNX_KEEP_NO,			/* no, or it is a copy that completed at once */
	LNX_KEEP_MAY,
	LNX_KEEP_IS,			/* it is such a copy */
	LNX_KEEP_FAILED,		/* no: its peer was given up before it was
					 * acknowledged */
};

/* Its peer's chan finds it by its number. */
struct lnx_txe {
	struct lnx_op op;		/* first: context of core sends */
	uint8_t cls;			/* pool it came from */
	bool reported;
	uint8_t keep;			/* LNX_KEEP_* */
	/* What happens at its end; also as one word, which is mostly 0. */
	union {
		uint32_t matters;
		struct {
			bool want_comp;	/* report a success */
			bool counts;	/* ends a send or write, and a counter is
					 * bound; cq_flags say which */
			bool tells;	/* report a failure in any case */
			bool part;	/* context is a struct lnx_tx_group */
		};
	};
	struct lnx_frame f;		/* f.len: bytes of frame[] to send; f.link: also
					 * rail->clones */
	struct lnx_peer *peer;
	void *context;			/* the application's */
	uint64_t cq_flags;
	struct lnx_rxe *rxe;		/* FIN: receive to report once it has left */
	struct iovec iov[LNX_IOV_MAX];	/* payload above the copy limit */
	int err;			/* LNX_KEEP_FAILED: FI_E... */
	_Alignas(64) uint8_t frame[];
};

static_assert(offsetof(struct lnx_txe, part) ==
	      offsetof(struct lnx_txe, matters) + 3, "they are one word");

/* Frames of one message, which end as one: ep->up->group_over. */
struct lnx_tx_group {
	uint32_t left;			/* those that may need the application's buffer */
	int err;			/* of the first that failed, or 0 */
	bool rndv;			/* part of a struct lnx_rndv */
};

/* Payload bytes of the frame classes (64 bytes of header on top). */
#define LNX_TXE_SMALL	192
#define LNX_TXE_MEDIUM	1984
#define LNX_TXE_LARGE	LNX_PAYLOAD_MAX
#define LNX_TXE_HUGE	LNX_PAYLOAD_LARGE

LNX_INLINE struct lnx_txe *lnx_txe_of(struct lnx_frame *f)
{
	return lnx_container_of(f, struct lnx_txe, f);
}

static inline struct lnx_wire_hdr *lnx_txe_hdr(struct lnx_txe *txe)
{
	return (struct lnx_wire_hdr *)txe->frame;
}

/* Bytes of the frame, in one place or several. */
LNX_INLINE uint64_t lnx_txe_bytes(const struct lnx_txe *txe)
{
	uint64_t bytes = txe->f.len;
	unsigned i;

	for (i = 0; lnx_unlikely(i < txe->f.niov); i++)
		bytes += txe->iov[i].iov_len;
	return bytes;
}

/* Must its end still be reported or counted? */
LNX_INLINE bool lnx_txe_due(const struct lnx_txe *txe)
{
	return txe->matters && !txe->reported;
}

/* A frame with room for so much payload; NULL: memory is short. */
struct lnx_txe *lnx_txe_get(struct lnx_ep *ep, size_t payload);

/* Initialise a frame that was just taken from that pool. */
LNX_INLINE void lnx_txe_init(struct lnx_txe *txe, uint8_t cls)
{
	txe->op.type = LNX_OP_TXE;
	txe->cls = cls;
	txe->f.acked = false;
	txe->reported = false;
	txe->keep = LNX_KEEP_NO;
	txe->matters = 0;
	txe->f.slow_ack = 0;
	txe->rxe = NULL;
	lnx_list_init(&txe->f.link);
}

/* It is a message, all of it.  wanted: its success is reported. */
LNX_INLINE void lnx_txe_message(struct lnx_ep *ep, struct lnx_txe *txe, void *context,
				uint64_t cq_flags, bool inject, bool wanted)
{
	txe->context = context;
	txe->cq_flags = cq_flags;
	txe->counts = ep->cntr[LNX_CNTR_SEND] != NULL;
	if (inject)
		return;
	txe->want_comp = wanted;
	/* Its success may not be reported, but its failure is. */
	txe->tells = true;
}

/* Return it to its pool.  Nothing may refer to it any more, except a core in error. */
LNX_INLINE void lnx_txe_put(struct lnx_ep *ep, struct lnx_txe *txe)
{
	txe->peer = NULL;
	lnx_pool_put(&ep->txe_pool[txe->cls], txe);
}

#endif
