/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One descriptor (obj/call.h) to exactly one call of a direct or native core, the one
 * that the descriptor names, which is in most cases the application's own.  With a
 * constant there, nothing but that call is left.  Owner lock held; 0 or the core's error.
 * Completions go from the core to msg/direct_cq.c or rail/native.c.
 *
 * desc has the core's descriptors of the application's buffers, or is NULL: the direct
 * rail needs none for host memory.
 */
#ifndef LNX_DIRECT_H
#define LNX_DIRECT_H

#include "base/compiler.h"
#include "lnx_wire_shm.h"
#include "obj/call.h"

/* Messages. */
LNX_INLINE ssize_t lnx_direct_post(struct fid_ep *core, fi_addr_t dest,
				   const struct lnx_tx *tx, void **desc)
{
	const struct iovec *iov = tx->iov;
	void *one = desc ? desc[0] : NULL;

	switch (tx->call) {
	case LNX_SEND:
		return fi_send(core, iov->iov_base, iov->iov_len, one, dest,
			       tx->context);
	case LNX_SENDV:
		return fi_sendv(core, iov, desc, tx->niov, dest, tx->context);
	case LNX_SENDMSG: {
		struct fi_msg msg = {
			.msg_iov = iov, .desc = desc, .iov_count = tx->niov,
			.addr = dest,
			.context = tx->context, .data = tx->data,
		};

		return fi_sendmsg(core, &msg, tx->flags);
	}
	case LNX_INJECT:
		return fi_inject(core, iov->iov_base, iov->iov_len, dest);
	case LNX_SHM_CTRL:
	case LNX_RMA_COPY:
		break;			/* lnx_large_ctrl_post, rma/copy.c */
	case LNX_SENDDATA:
		return fi_senddata(core, iov->iov_base, iov->iov_len, one,
				   tx->data, dest, tx->context);
	case LNX_INJECTDATA:
		return fi_injectdata(core, iov->iov_base, iov->iov_len,
				     tx->data, dest);
	case LNX_TSEND:
		return fi_tsend(core, iov->iov_base, iov->iov_len, one, dest,
				tx->tag, tx->context);
	case LNX_TSENDV:
		return fi_tsendv(core, iov, desc, tx->niov, dest, tx->tag,
				 tx->context);
	case LNX_TSENDMSG: {
		struct fi_msg_tagged msg = {
			.msg_iov = iov, .desc = desc, .iov_count = tx->niov,
			.addr = dest,
			.tag = tx->tag, .context = tx->context,
			.data = tx->data,
		};

		return fi_tsendmsg(core, &msg, tx->flags);
	}
	case LNX_TINJECT:
		return fi_tinject(core, iov->iov_base, iov->iov_len, dest,
				  tx->tag);
	case LNX_TSENDDATA:
		return fi_tsenddata(core, iov->iov_base, iov->iov_len, one,
				    tx->data, dest, tx->tag, tx->context);
	case LNX_TINJECTDATA:
		return fi_tinjectdata(core, iov->iov_base, iov->iov_len,
				      tx->data, dest, tx->tag);
	}
	__builtin_unreachable();
}

/* A control message, copy or push (lnx_wire_shm.h), which the core copies; no completion. */
LNX_INLINE ssize_t lnx_direct_post_ctrl(struct fid_ep *core, fi_addr_t dest,
					const struct iovec *iov)
{
	return fi_tinject(core, iov->iov_base, iov->iov_len, dest, LNX_SHM_CTRL_TAG);
}

/* A receive of a native rail, whose source is src at the core.  Flags that the core does
 * not take are not set. */
LNX_INLINE ssize_t lnx_direct_post_recv(struct fid_ep *core, fi_addr_t src,
					const struct lnx_recv *r, void **desc,
					uint64_t flags)
{
	if (r->tagged) {
		struct fi_msg_tagged msg = {
			.msg_iov = r->iov, .desc = desc,
			.iov_count = r->niov,
			.addr = src, .tag = r->tag, .ignore = r->ignore,
			.context = r->context,
		};

		return fi_trecvmsg(core, &msg, flags);
	} else {
		struct fi_msg msg = {
			.msg_iov = r->iov, .desc = desc,
			.iov_count = r->niov,
			.addr = src, .context = r->context,
		};

		return fi_recvmsg(core, &msg, flags);
	}
}

/* Remote memory. */
LNX_INLINE ssize_t lnx_direct_post_rma(struct fid_ep *core, fi_addr_t dest,
				       const struct lnx_rma *r, void **desc)
{
	void *one = desc ? desc[0] : NULL;

	switch (r->call) {
	case LNX_READ:
		return fi_read(core, r->iov->iov_base, r->iov->iov_len, one,
			       dest, r->rma->addr, r->rma->key, r->context);
	case LNX_READV:
		return fi_readv(core, r->iov, desc, r->niov, dest,
				r->rma->addr, r->rma->key, r->context);
	case LNX_WRITE:
		return fi_write(core, r->iov->iov_base, r->iov->iov_len, one,
				dest, r->rma->addr, r->rma->key, r->context);
	case LNX_WRITEV:
		return fi_writev(core, r->iov, desc, r->niov, dest,
				 r->rma->addr, r->rma->key, r->context);
	case LNX_READMSG:
	case LNX_WRITEMSG: {
		struct fi_msg_rma msg = {
			.msg_iov = r->iov, .desc = desc, .iov_count = r->niov,
			.addr = dest,
			.rma_iov = r->rma, .rma_iov_count = r->nrma,
			.context = r->context, .data = r->data,
		};

		return r->call == LNX_READMSG ?
		       fi_readmsg(core, &msg, r->flags) :
		       fi_writemsg(core, &msg, r->flags);
	}
	case LNX_INJECT_WRITE:
		return fi_inject_write(core, r->iov->iov_base, r->iov->iov_len,
				       dest, r->rma->addr, r->rma->key);
	case LNX_WRITEDATA:
		return fi_writedata(core, r->iov->iov_base, r->iov->iov_len,
				    one, r->data, dest, r->rma->addr,
				    r->rma->key, r->context);
	case LNX_INJECT_WRITEDATA:
		return fi_inject_writedata(core, r->iov->iov_base,
					   r->iov->iov_len, r->data, dest,
					   r->rma->addr, r->rma->key);
	}
	__builtin_unreachable();
}

/* Atomics without a result; call is t->call.  Not with FI_DELIVERY_COMPLETE: see
 * msg/confirm.h.  With a result: rma/amo.c. */
LNX_INLINE ssize_t lnx_direct_post_amo(struct fid_ep *core, fi_addr_t dest,
				       enum lnx_amo_call call,
				       const struct lnx_amo_tx *t)
{
	const struct fi_ioc *iov = t->iov;
	struct fi_msg_atomic msg;

	if (call == LNX_ATOMIC)
		return fi_atomic(core, iov->addr, iov->count, NULL, dest,
				 t->rma->addr, t->rma->key, t->type, t->op,
				 t->context);
	if (call == LNX_ATOMICV)
		return fi_atomicv(core, iov, NULL, t->niov, dest, t->rma->addr,
				  t->rma->key, t->type, t->op, t->context);
	if (call == LNX_INJECT_ATOMIC)
		return fi_inject_atomic(core, iov->addr, iov->count, dest,
					t->rma->addr, t->rma->key, t->type,
					t->op);
	msg = (struct fi_msg_atomic) {
		.msg_iov = iov, .iov_count = t->niov, .addr = dest,
		.rma_iov = t->rma, .rma_iov_count = t->nrma,
		.datatype = t->type, .op = t->op, .context = t->context,
		.data = t->data,
	};
	return fi_atomicmsg(core, &msg, t->flags);
}

#endif
