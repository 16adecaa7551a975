/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomic operations of peers, and of ourselves, on our memory.  Owner lock held. */
#ifndef LNX_AMO_SERVE_H
#define LNX_AMO_SERVE_H

#include "obj/ep.h"
#include "rma/amo_exec.h"
#include "wire/hdr.h"

/* Number of operand arrays of a valid operation of that class. */
static inline unsigned lnx_amo_operands(enum fi_op op, enum lnx_amo_class cls)
{
	return op == FI_ATOMIC_READ ? 0 : cls == LNX_AMO_COMPARE ? 2 : 1;
}

/*
 * Execute and answer one ATOMIC that is next in order.  0, or -FI_ENOMEM: nothing was
 * done, and it must count as not received.  Calls no core.
 */
int lnx_amo_serve(struct lnx_ep *ep, struct lnx_peer *peer,
		  const struct lnx_hdr *h, const uint8_t *payload,
		  size_t size);
/*
 * A message of the shm rail: execute it, or take the result of ours.  False: it is neither.
 * Calls no core.
 */
bool lnx_amo_came(struct lnx_ep *ep, const void *bytes, size_t size);
/* The same for a payload of our own on our own memory.  result has room for the answer,
 * and is not written for the base class.  0 or a positive error. */
int lnx_amo_local(struct lnx_ep *ep, const uint8_t *payload, size_t size,
		  uint8_t *result);

#endif
