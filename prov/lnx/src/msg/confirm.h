/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct operations that the peer's lnx must confirm or count: those with
 * FI_DELIVERY_COMPLETE, and writes to peers whose memory has counters.
 *
 *	msg/send.c, rma/rma.c, rma/amo.c → msg/confirm.c → core: the operation, and
 *								a control message
 *	the peer's msg/confirm_answer.c → core: a control message with the answer
 *	msg/fetch.c → lnx_confirm_answered
 *
 * The core of shm 2.1 completes an inject when it is in the peer's queue, whatever the
 * endpoint's level is; it returns a buffer twice when an atomic has
 * FI_DELIVERY_COMPLETE; and a message with that level holds up all later completions
 * until it is matched.  So the core gets such operations without a level, as injects,
 * which it executes in the order of its queue: when the control message is received, the
 * operation before it has been executed.  Larger operations complete in the core when they
 * have been executed.
 *
 * Reads and large writes are in rma/copy.c.  Atomics with a result wait here, too: their
 * control message (rma/amo.c) is the operation.
 *
 * Owner lock held.
 */
#ifndef LNX_TX_CONFIRM_H
#define LNX_TX_CONFIRM_H

#include "msg/tx.h"
#include "rma/amo.h"
#include "rma/rma.h"

/*
 * In lnx_tx.op_flags, otherwise unused: the core posts what is queued without a
 * completion.
 */
#define LNX_TX_QUIET	(1ULL << 62)
/* The context of sends that are not the application's: nothing is written for them. */
#define LNX_QUIET(rail)	((void *)(rail))

/* An operation of the application that waits for the peer's answer; or for the core,
 * after which the peer is told. */
struct lnx_confirm {
	struct lnx_node link;		/* peer->confirm.list; in ep->local: to_tell,
					 * rma_failed */
	struct lnx_peer *peer;
	void *context;
	uint64_t cq_flags;
	bool want_comp;
	bool tells;			/* report a failure in any case */
	uint8_t n_targets;
	/* Of rma/copy.c: a read or large write, in the core or copied. */
	uint8_t niov;
	bool has_data;
	bool tell;			/* in the core: then PUT is sent */
	bool queued;			/* it is in peer->shm.queue */
	bool over;			/* it ended while it was queued */
	bool overtaken;			/* it failed, and a later one did not */
	bool in_core;
	bool doubtful;			/* a read: the peer has done it or not, FI_EIO */
	uint32_t seq;			/* number among those in the core */
	uint32_t begun;			/* peer->shm.nsmall, */
	struct lnx_wire_target place[LNX_SHM_CTRL_PIECES];
	struct iovec iov[LNX_IOV_MAX];
	uint64_t sends;			/* and direct sends, before it */
	uint64_t op;			/* its number */
	bool asked;			/* GET or PUT was sent */
	uint8_t at;			/* place of the next byte to be sent, */
	uint64_t at_off;		/* and where in that place */
	uint64_t data;
	uint64_t len;
	uint64_t off;			/* bytes sent, or read */
	struct lnx_cursor cursor;	/* at off in iov */
};

/*
 * Around an operation and the control message that follows it: until both are in its
 * queue, the peer does not close a registration or the endpoint.  Its program may see what
 * the operation did and go on to close, before it gets the message that asks for an answer.
 */
LNX_INLINE void lnx_confirm_open(const struct lnx_peer *peer)
{
	if (peer->shm.unsettled)
		__atomic_store_n(peer->shm.unsettled, 1, __ATOMIC_SEQ_CST);
}
/* Also when what was queued for peer has left. */
LNX_INLINE void lnx_confirm_close(const struct lnx_peer *peer)
{
	if (peer->shm.unsettled && !peer->shm.nqueued)
		__atomic_store_n(peer->shm.unsettled, 0, __ATOMIC_RELEASE);
}

/* Does the peer count writes to its memory? */
LNX_INLINE bool lnx_confirm_counts(const struct lnx_peer *peer)
{
	return __atomic_load_n(peer->shm.counts, __ATOMIC_RELAXED) != 0;
}

/* Try again while the core is busy: a call of core, with its result, a few times. */
#define LNX_CONFIRM_TRIES	64u	/* as for frames: rel/send.c */
#define LNX_CONFIRM_RETRY(ep, peer, ret, call) do {			\
	unsigned try_;							\
									\
	ret = (peer)->shm.nqueued ? -FI_EAGAIN : (call);			\
	for (try_ = 0; lnx_unlikely(ret == -FI_EAGAIN) && 		\
	     try_ < LNX_CONFIRM_TRIES; try_++) {			\
		lnx_obj_progress(ep);					\
		if ((peer)->shm_addr == FI_ADDR_NOTAVAIL)		\
			ret = -FI_EHOSTUNREACH;				\
		else if (!(peer)->shm.nqueued)	/* not before queued sends */ \
			ret = (call);					\
	}								\
} while (0)

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

/*
 * Get one that is on no list yet.  NULL: the most allowed are waiting, after some progress,
 * or memory is short.
 */
struct lnx_confirm *lnx_confirm_get(struct lnx_ep *ep, struct lnx_peer *peer,
				    void *context, uint64_t cq_flags,
				    bool want_comp, bool tells);
/* May one more wait?  If not, after some progress. */
bool lnx_confirm_room(struct lnx_ep *ep, struct lnx_peer *peer);
/* Nothing is reported. */
void lnx_confirm_put(struct lnx_confirm *c);
/* It gets the next number, and waits for the answer. */
void lnx_confirm_wait(struct lnx_confirm *c);
/* The core has c, or had it: from now on c waits for the peer's answer.  flags:
 * LNX_SHM_CTRL_F_*. */
void lnx_confirm_ask(struct lnx_confirm *c, uint8_t flags);
/* One that waits has ended: report it. */
void lnx_confirm_end(struct lnx_confirm *c, int err);
unsigned lnx_confirm_places(struct lnx_wire_target *place,
			    const struct fi_rma_iov *rma, size_t n);

/* Tell a local peer, with the first message, that our endpoint may be the next one of its
 * name (lnx_peer_shm_renew).  Calls no core. */
LNX_COLD void lnx_confirm_greet(struct lnx_peer *peer);
/* The peer has answered all operations up to number op.  Calls no core. */
void lnx_confirm_answered(struct lnx_peer *peer, uint64_t op, int err);
/* The result of an atomic, its number op, has come.  Calls no core. */
void lnx_confirm_result_came(struct lnx_peer *peer, uint64_t op, const void *data,
			     size_t len);
/* All that wait end with an error. */
LNX_COLD void lnx_confirm_fail(struct lnx_peer *peer, int err);

/* The direct core has completed something while rail->mute.  True: do not report it
 * (again). */
bool lnx_confirm_core_done(struct lnx_rail *rail, void *context,
			   uint64_t flags);
/* The same for an error.  False: it is the error of an operation that is not ours. */
LNX_COLD bool lnx_confirm_core_failed(struct lnx_rail *rail,
				      const struct fi_cq_err_entry *err);
/* From progress: tell peers of what the core has done. */
void lnx_confirm_tell(struct lnx_ep *ep);

void lnx_confirm_init(struct lnx_ep *ep);
/* At close: nothing is reported. */
void lnx_confirm_fini(struct lnx_ep *ep);

#endif
