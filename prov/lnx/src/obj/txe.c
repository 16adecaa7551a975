/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames that we send, slow half (txe.h); and operations that fail (obj/ep.h). */
#include "obj/txe.h"

LNX_HOT
struct lnx_txe *lnx_txe_get(struct lnx_ep *ep, size_t payload)
{
	unsigned cls = payload <= LNX_TXE_SMALL ? 0 :
		       payload <= LNX_TXE_MEDIUM ? 1 :
		       payload <= LNX_TXE_LARGE ? 2 : 3;
	struct lnx_txe *txe = lnx_pool_get(&ep->txe_pool[cls]);

	if (lnx_unlikely(!txe))
		return NULL;
	lnx_txe_init(txe, (uint8_t)cls);
	return txe;
}

LNX_COLD void lnx_ep_op_failed(struct lnx_ep *ep, void *context, uint64_t cq_flags,
			       int err, int prov_errno)
{
	struct fi_cq_err_entry e = {
		.op_context = context,
		.flags = cq_flags,
		.err = err,
		.prov_errno = prov_errno,
		.src_addr = FI_ADDR_NOTAVAIL,
	};

	ep->stats.failed++;
	lnx_cntr_err(ep, lnx_cntr_of_op(cq_flags));
	if (ep->tx_cq)
		lnx_cq_write_err(ep->tx_cq, &e);
}
