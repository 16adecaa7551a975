/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One frame, or one piece of a large transfer, to a framed rail: one call of its core.
 * The only file that counts what the core has (rail->busy): the end of an operation is
 * told with lnx_rail_op_ended by posted.c and lent.c, and by those that own it if the core
 * failed it.  The rail's core endpoint exists, and the owner lock is held.  0 or the
 * core's error.  What is posted may complete inside the call.
 */
#ifndef LNX_RAIL_POST_H
#define LNX_RAIL_POST_H

#include "obj/ep.h"

/* The core, or what stands for it, has one more operation of ours. */
LNX_INLINE void lnx_rail_op_began(struct lnx_rail *rail)
{
	rail->busy++;
}

/* The core has reported it, as done or as failed. */
LNX_INLINE void lnx_rail_op_ended(struct lnx_rail *rail)
{
	rail->busy--;
}

/* The core endpoint is closed: it has none. */
LNX_INLINE void lnx_rail_op_none(struct lnx_rail *rail)
{
	rail->busy = 0;
}

/* len bytes, at most rail->inject_size, which the core copies. */
LNX_INLINE ssize_t lnx_rail_inject(struct lnx_rail *rail, const void *frame, size_t len,
				   fi_addr_t dest)
{
	return fi_inject(rail->core_ep, frame, len, dest);
}

/* A frame in niov pieces; op is its first member, and the context. */
LNX_INLINE ssize_t lnx_rail_send(struct lnx_rail *rail, const struct iovec *iov,
				 size_t niov, fi_addr_t dest, struct lnx_op *op)
{
	ssize_t ret;

	lnx_rail_op_began(rail);
	ret = lnx_likely(niov == 1) ?
	      fi_send(rail->core_ep, iov->iov_base, iov->iov_len, NULL, dest, op) :
	      fi_sendv(rail->core_ep, iov, NULL, niov, dest, op);
	if (lnx_unlikely(ret))
		lnx_rail_op_ended(rail);
	return ret;
}

/* Read len bytes of remote memory. */
LNX_INLINE ssize_t lnx_rail_read(struct lnx_rail *rail, void *local, size_t len,
				 fi_addr_t from, uint64_t addr, uint64_t key,
				 struct lnx_op *op)
{
	ssize_t ret;

	lnx_rail_op_began(rail);
	ret = fi_read(rail->core_ep, local, len, NULL, from, addr, key, op);
	if (lnx_unlikely(ret))
		lnx_rail_op_ended(rail);
	return ret;
}

/* Write them.  It is complete when they are in the memory of the other side: without that
 * level it means no more than that the core has copied them. */
LNX_INLINE ssize_t lnx_rail_write(struct lnx_rail *rail, void *local, size_t len,
				  fi_addr_t to, uint64_t addr, uint64_t key,
				  struct lnx_op *op)
{
	struct iovec iov = { .iov_base = local, .iov_len = len };
	struct fi_rma_iov rma = { .addr = addr, .len = len, .key = key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .rma_iov = &rma,
		.rma_iov_count = 1, .context = op,
	};
	ssize_t ret;

	lnx_rail_op_began(rail);
	ret = fi_writemsg(rail->core_ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	if (lnx_unlikely(ret))
		lnx_rail_op_ended(rail);
	return ret;
}

#endif
