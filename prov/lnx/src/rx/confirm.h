/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes of local peers about what their core did here (tx/confirm.h): to be counted,
 * to be answered, or both.  Called by rx/fetch.c from inside cores, so that answers
 * wait for progress.  One answer is for all operations since the last one that ended in
 * the same way.  Owner lock held.
 */
#ifndef LNX_RX_CONFIRM_H
#define LNX_RX_CONFIRM_H

#include "obj/ep.h"
#include "lnx_wire_shm.h"

/* An answer that is to leave. */
struct lnx_answer {
	struct lnx_node link;		/* ep->answers */
	struct lnx_peer *peer;
	uint64_t op;			/* up to this */
	int err;
};

/* A PUT that came out of the core's queue.  Calls no core. */
void lnx_confirm_note(struct lnx_ep *ep, const struct lnx_wire_note_put *n);
/* From progress: let answers leave, and tell peers. */
void lnx_confirm_run(struct lnx_ep *ep);
/* At close. */
void lnx_answers_drop(struct lnx_ep *ep);

#endif
