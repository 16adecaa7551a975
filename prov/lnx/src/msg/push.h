/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that are pushed through shared memory: see push_send.c and parts.c.  Owner lock
 * held. */
#ifndef LNX_PUSH_H
#define LNX_PUSH_H

#include "msg/rx.h"
#include "msg/tx.h"

/* Up to so many bytes to copy them twice may take less time than to announce the message,
 * which is read with a call of the kernel, and to answer (policy/push.h). */
#define LNX_PUSHED_MAX	36864u

/*
 * Send a message of len bytes, more than LNX_INJECT_MAX and no more than LNX_PUSHED_MAX, to a
 * peer with shm.ctrl.  0: it is sent, and its completion written, or comes later; -FI_EAGAIN:
 * nothing was done, announce it.
 */
ssize_t lnx_push_send(struct lnx_ep *ep, struct lnx_peer *peer, const struct lnx_tx *tx,
		      size_t len);
/* Send what is left of one that the core could not take all of: lnx_large_copies.  0: all has
 * left; -FI_EAGAIN; or the core's error. */
ssize_t lnx_push_rest(struct lnx_ep *ep, struct lnx_rndv *rndv);

/* The core has put size bytes there.  False: they are no push, but a message of an
 * application. */
bool lnx_push_came(struct lnx_ep *ep, const uint8_t *bytes, size_t size);

#endif
