/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends and remote memory access over native rails (FI_LNX_USE_SRQ=0): one operation is
 * one core operation on the rail that leads to the peer, and ends with it.  Called by
 * api/native_*.c.  What cores cannot do, and do not refuse reliably, is checked here as
 * in msg/submit.h and rma/rma.h.
 *
 *	api/native_msg.c → msg/native.h → core ⇢ rail/native.c
 */
#ifndef LNX_TX_NATIVE_H
#define LNX_TX_NATIVE_H

#include "msg/iov.h"
#include "msg/rx.h"
#include "obj/mr.h"
#include "rail/direct.h"
#include "rail/rail.h"
#include "rma/rma.h"

#define LNX_NATIVE_TRIES	16

/* The rail to a peer, with the peer's address there; NULL: there is none. */
LNX_INLINE struct lnx_rail *lnx_native_path(const struct lnx_peer *peer,
					 fi_addr_t *core_addr)
{
	if (peer->shm_addr != FI_ADDR_NOTAVAIL) {
		*core_addr = peer->shm_addr;
		return peer->ep->shm;
	}
	*core_addr = peer->path[0]->core_addr;
	return peer->npath ? peer->path[0]->rail : NULL;
}

/* The same for an address that the application passes.  0, -FI_EINVAL, -FI_ENOMEM or
 * -FI_EHOSTUNREACH.  Owner lock held. */
LNX_INLINE ssize_t lnx_native_find(struct lnx_ep *ep, fi_addr_t addr,
				 struct lnx_rail **rail, fi_addr_t *core_addr)
{
	struct lnx_peer *peer = lnx_peer_get(ep, addr);
	int err;

	if (lnx_unlikely(!peer)) {
		peer = lnx_peer_make(ep, addr, &err);
		if (!peer)
			return err;
	}
	*rail = lnx_native_path(peer, core_addr);
	return lnx_likely(*rail != NULL) ? 0 : -FI_EHOSTUNREACH;
}

/* The core has an operation of ours: poll for its end. */
LNX_INLINE void lnx_native_busy(struct lnx_rail *rail)
{
	rail->poll_credits = LNX_MAX(1u, rail->ep->poll_credits);
}

/* The descriptors of rail's core for n buffers of the application; NULL: none needed.
 * They matter only with FI_HMEM. */
LNX_INLINE void **lnx_native_desc(const struct lnx_rail *rail, void **desc,
				size_t n, void **core)
{
	if (lnx_likely(!desc || !rail->ep->domain->hmem))
		return NULL;
	lnx_mr_descs(rail, desc, n, core);
	return core;
}

LNX_INLINE ssize_t lnx_native_submit(struct lnx_ep *ep, const struct lnx_tx *tx)
{
	void *core_desc[LNX_IOV_MAX], **desc = NULL;
	struct lnx_rail *rail = NULL;
	fi_addr_t core_addr = FI_ADDR_NOTAVAIL;
	unsigned i;
	ssize_t ret;

	if (lnx_unlikely(tx->niov > 1) && lnx_iov_check("send", tx->iov, tx->niov))
		return -FI_EINVAL;
	if ((lnx_call_inject(tx->call) || (tx->op_flags & FI_INJECT)) &&
	    lnx_unlikely(lnx_msg_iov_len(tx->iov, tx->niov) > ep->inject_size))
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	ret = lnx_native_find(ep, tx->dest, &rail, &core_addr);
	if (lnx_likely(!ret))
		desc = lnx_native_desc(rail, tx->desc, tx->niov, core_desc);
	for (i = 0; lnx_likely(!ret); i++) {
		lnx_native_busy(rail);
		ret = lnx_direct_post(rail->core_ep, core_addr, tx, desc);
		if (lnx_likely(ret != -FI_EAGAIN) || i == LNX_NATIVE_TRIES)
			break;
		/* A connection is being made, or a queue is full: retry. */
		lnx_obj_progress(ep);
		ret = 0;
	}
	lnx_unlock(&ep->lock);
	return ret;
}

LNX_INLINE ssize_t lnx_native_rma(struct lnx_ep *ep, const struct lnx_rma *r,
				void **app_desc)
{
	void *core_desc[LNX_IOV_MAX], **desc = NULL;
	struct lnx_rail *rail = NULL;
	fi_addr_t core_addr = FI_ADDR_NOTAVAIL;
	unsigned i;
	ssize_t ret;

	if (lnx_unlikely(r->niov != 1 || r->nrma != 1 || r->iov->iov_len != r->rma->len) &&
	    lnx_iov_check_rma(r))
		return -FI_EINVAL;
	if (!lnx_rma_read(r->call) &&
	    (lnx_rma_inject(r->call) || (r->op_flags & FI_INJECT)) &&
	    lnx_unlikely(lnx_msg_iov_len(r->iov, r->niov) > ep->inject_size))
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	ret = lnx_native_find(ep, r->dest, &rail, &core_addr);
	if (lnx_likely(!ret))
		desc = lnx_native_desc(rail, app_desc, r->niov, core_desc);
	for (i = 0; lnx_likely(!ret); i++) {
		lnx_native_busy(rail);
		ret = lnx_direct_post_rma(rail->core_ep, core_addr, r, desc);
		if (lnx_likely(ret != -FI_EAGAIN) || i == LNX_NATIVE_TRIES)
			break;
		lnx_obj_progress(ep);
		ret = 0;
	}
	lnx_unlock(&ep->lock);
	return ret;
}

#endif
