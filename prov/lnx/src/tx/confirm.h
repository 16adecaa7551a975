/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct operations that the peer's lnx must confirm or count: those with
 * FI_DELIVERY_COMPLETE, and writes to peers whose memory has counters.
 *
 *	tx/frame.c, tx/rma.c, tx/amo.c → tx/confirm.c → core: the operation, a note
 *	the peer's rx/confirm.c → core: a note with the answer
 *	rx/fetch.c → lnx_confirm_answered
 *
 * The core of shm 2.1 completes an inject when it is in the peer's queue, whatever the
 * endpoint's level is; it returns a buffer twice when an atomic has
 * FI_DELIVERY_COMPLETE; and a message with that level holds up all later completions
 * until it is matched.  So the core gets such operations without a level, as injects,
 * which it executes in the order of its queue: when the note is received, the operation
 * before it has been executed.  Larger operations complete in the core when they have
 * been executed.
 *
 * Owner lock held.
 */
#ifndef LNX_TX_CONFIRM_H
#define LNX_TX_CONFIRM_H

#include "tx/amo.h"
#include "tx/rma.h"
#include "tx/tx.h"

/*
 * In lnx_tx.op_flags, otherwise unused: the core posts what is queued without a
 * completion.
 */
#define LNX_TX_QUIET	(1ULL << 62)

/* An operation of the application that waits for the peer's answer; or for the core,
 * after which the peer is told. */
struct lnx_confirm {
	struct lnx_node link;		/* peer->confirms or ep->to_tell */
	struct lnx_peer *peer;
	uint64_t op;			/* its number */
	void *context;
	uint64_t cq_flags;
	bool want_comp;
	bool tells;			/* report a failure in any case */
	uint8_t n_targets;
	struct lnx_wire_target place[LNX_SHM_CTRL_PIECES];
};

/*
 * Around an operation and the note that follows it: until both are in its queue, the
 * peer does not close a registration or the endpoint.  Its program may see what the
 * operation did and go on to close, before it gets the note that asks for an answer.
 */
LNX_INLINE void lnx_confirm_open(const struct lnx_peer *peer)
{
	if (peer->unsettled)
		__atomic_store_n(peer->unsettled, 1, __ATOMIC_SEQ_CST);
}
/* Also when what was queued for peer has left. */
LNX_INLINE void lnx_confirm_shut(const struct lnx_peer *peer)
{
	if (peer->unsettled && !peer->ndpend)
		__atomic_store_n(peer->unsettled, 0, __ATOMIC_RELEASE);
}

/* Does the peer count writes to its memory? */
LNX_INLINE bool lnx_confirm_counts(const struct lnx_peer *peer)
{
	return __atomic_load_n(peer->counts, __ATOMIC_RELAXED) != 0;
}

/*
 * One operation to a peer with a shm_addr; returns what the application's call returns:
 * 0, -FI_EAGAIN, ... Used with FI_DELIVERY_COMPLETE in op_flags; and, while
 * lnx_confirm_counts, for operations that change memory.
 */
ssize_t lnx_confirm_send(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_tx *tx);
ssize_t lnx_confirm_rma(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_rma *r);
ssize_t lnx_confirm_amo(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_amo_tx *t);

/* The peer has answered all operations up to number op.  Calls no core. */
void lnx_confirm_answered(struct lnx_peer *peer, uint64_t op, int err);
/* All that wait end with an error. */
LNX_COLD void lnx_confirm_fail(struct lnx_peer *peer, int err);

/* The direct core has completed something while rail->mute.  True: do not report it
 * (again). */
bool lnx_confirm_core_done(struct lnx_rail *rail, void *context,
			   uint64_t flags);
/* The same for an error.  False: *context is the application's. */
LNX_COLD bool lnx_confirm_core_failed(struct lnx_rail *rail, void **context);
/* From progress: tell peers of what the core has done. */
void lnx_confirm_tell(struct lnx_ep *ep);

void lnx_confirm_init(struct lnx_ep *ep);
/* At close: nothing is reported. */
void lnx_confirm_fini(struct lnx_ep *ep);

#endif
