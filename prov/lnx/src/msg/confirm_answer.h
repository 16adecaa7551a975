/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control messages from local peers about what their core did here (msg/confirm.h): to be
 * counted, answered, or both.  Called by msg/fetch.c from inside cores, so answers wait for
 * progress.  One answer covers all operations since the last one with the same result.
 * Owner lock held.
 */
#ifndef LNX_RX_CONFIRM_H
#define LNX_RX_CONFIRM_H

#include "lnx_wire_shm.h"
#include "obj/ep.h"

enum lnx_answer_kind {
	LNX_ANSWER_STATUS,		/* there is no more than err */
	LNX_ANSWER_READ,		/* of a read, whose data goes first:
					 * rma/copy_target.c */
	LNX_ANSWER_RESULT,		/* of an atomic, unless there is an error */
};

/* An answer to be sent. */
struct lnx_answer {
	struct lnx_node link;		/* ep->local.answers */
	struct lnx_peer *peer;
	uint64_t op;			/* covers operations up to this */
	int err;
	enum lnx_answer_kind kind;
	/* READ and RESULT: */
	const uint8_t *kept;		/* a copy of the data; NULL: it is in place */
	uint64_t len;
	uint64_t off;			/* bytes sent */
	struct lnx_wire_target place[LNX_SHM_CTRL_PIECES];
};

/* A PUT or GET came out of the core's queue.  Calls no core. */
void lnx_confirm_ctrl(struct lnx_ep *ep, const struct lnx_wire_shm_put *n);
/* The answer to operation op of peer: err, or 0.  Calls no core. */
void lnx_confirm_answer(struct lnx_peer *peer, uint64_t op, int err);
/*
 * The answer to an atomic is a result of len bytes; returns where it goes, for as long as no
 * progress is made.  NULL: it must not be executed, and an error is the answer.  Calls no
 * core.
 */
uint8_t *lnx_confirm_result(struct lnx_peer *peer, uint64_t op, size_t len);
/*
 * A registration or ep is about to be closed: take the control messages of the operations
 * that the core has executed so far.  Waits for peers that have sent the operation only; a
 * second at most.  Calls the core.
 */
LNX_COLD void lnx_confirm_settle(struct lnx_ep *ep);
/* From progress: send answers, and tell peers. */
void lnx_confirm_run(struct lnx_ep *ep);
/* At close. */
void lnx_confirm_answers_drop(struct lnx_ep *ep);

#endif
