/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One send descriptor to exactly one core call, the one that the application used.
 * Last step of a direct send; the completion goes straight from the core to
 * rail/lent.c.
 *
 * desc has the core's descriptors of the application's buffers, or is NULL: the direct
 * rail needs none for host memory.
 */
#ifndef LNX_POST_H
#define LNX_POST_H

#include "obj/tx.h"

LNX_INLINE ssize_t lnx_core_post(struct fid_ep *core, fi_addr_t dest,
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
		break;			/* lnx_shm_ctrl_post, rma/copy.c */
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

#endif
