/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and large writes of local peers whose memory our core may not read or write
 * (rma/copy.h): their bytes come and go in messages.  Called by msg/fetch.c from
 * inside cores, and by msg/confirm_answer.c, which sends the answers.  Owner lock held.
 */
#ifndef LNX_RX_RMA_COPY_H
#define LNX_RX_RMA_COPY_H

#include "msg/confirm_answer.h"

/* A message of LNX_COPY_BYTES.  False: it is none of these.  Calls no core. */
bool lnx_rma_copy_came(struct lnx_ep *ep, const void *bytes);

/*
 * An answer to a read, whose targets were checked.  NULL: memory is short.  It is freed
 * with free().
 */
struct lnx_answer *lnx_rma_copy_answer(struct lnx_ep *ep,
				       const struct lnx_wire_shm_put *n);
/* Send what is left of its data: 0, -FI_EAGAIN, or an error of the core.  If memory may
 * no longer be read, a->err says so. */
ssize_t lnx_rma_copy_send(struct lnx_answer *a);

/* The peer wants to know whether we reach its memory: find out and publish it. */
void lnx_rma_copy_try(struct lnx_peer *peer);

#endif
