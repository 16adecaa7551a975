/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of peer rails: cores write them into the CQs that we lend them.  Called
 * by cores with the owner lock held; routes by kind to rx/done.c, tx/done.c,
 * rx/arrive.c or rx/pull.c.  Nothing here may call a core.
 */
#include <stdlib.h>

#include "comp/comp.h"
#include "rx/rx.h"
#include "tx/confirm.h"
#include "tx/rma.h"
#include "tx/rma_copy.h"
#include "tx/tx.h"

static inline struct lnx_rail *cq_rail(struct fid_peer_cq *cq)
{
	return lnx_container_of(cq, struct lnx_rail, peer_cq);
}

static int peer_fid_close(struct fid *fid)
{
	(void)fid;			/* part of the rail */
	return 0;
}

static int peer_fid_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return -FI_ENOSYS;
}

static int peer_fid_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

static int peer_fid_ops_open(struct fid *fid, const char *name, uint64_t flags,
			     void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

struct fi_ops lnx_peer_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = peer_fid_close,
	.bind = peer_fid_bind,
	.control = peer_fid_control,
	.ops_open = peer_fid_ops_open,
};

/* Some operations in the core are not the application's.  A function of its own, called
 * last, so that the usual case need not save registers for it. */
static __attribute__((noinline)) ssize_t
muted_write(struct lnx_rail *rail, void *context,
				    uint64_t flags)
{
	struct lnx_ep *ep = rail->ep;

	/* All reads are tx/rma_copy.c's. */
	if (lnx_likely((flags & (FI_READ | FI_RMA)) == (FI_READ | FI_RMA))) {
		struct lnx_confirm *c = context;

		lnx_rma_left_core(c, true);
		if (lnx_likely(c->want_comp))
			lnx_cq_write(ep->tx_cq, c->context,
				     flags & ~FI_COMPLETION, 0, NULL, 0, 0,
				     FI_ADDR_NOTAVAIL);
		lnx_pool_put(&ep->local.confirm_pool, c);
		return 0;
	}
	if (!lnx_confirm_core_done(rail, context, flags))
		lnx_cq_write(ep->tx_cq, context, flags & ~FI_COMPLETION,
			     0, NULL, 0, 0, FI_ADDR_NOTAVAIL);
	return 0;
}

/* Direct: receives have our entry as context, sends the application's. */
LNX_HOT
static ssize_t direct_write(struct fid_peer_cq *cq, void *context,
			    uint64_t flags, size_t len, void *buf,
			    uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct lnx_rail *rail = cq_rail(cq);

	(void)len, (void)buf, (void)tag, (void)src;
	lnx_assert_held(&rail->ep->lock);
	if (flags & FI_RECV)
		lnx_rx_core_done(context, flags, data);
	else if (lnx_unlikely(rail->mute) &&
		 (flags & (FI_SEND | FI_WRITE | FI_READ)))
		return muted_write(rail, context, flags);
	else if (lnx_likely(flags & (FI_SEND | FI_WRITE | FI_READ)))
		lnx_cq_write(rail->ep->tx_cq, context, flags & ~FI_COMPLETION,
			     0, NULL, 0, 0, FI_ADDR_NOTAVAIL);
	else if (flags & FI_REMOTE_CQ_DATA)
		/* shm 2.1 gives neither flags nor sender; the context is its own. */
		lnx_cq_write(rail->ep->rx_cq, NULL, FI_RMA | FI_REMOTE_WRITE |
			     FI_REMOTE_CQ_DATA, len, NULL, data, 0,
			     FI_ADDR_NOTAVAIL);
	return 0;
}

static ssize_t direct_writeerr(struct fid_peer_cq *cq,
			       const struct fi_cq_err_entry *err)
{
	struct lnx_rail *rail = cq_rail(cq);
	struct lnx_ep *ep = rail->ep;

	ep->stats.core_errors++;
	if (lnx_pool_owns(&ep->rxe_pool, err->op_context)) {
		if (lnx_pool_lent(&ep->rxe_pool, err->op_context))
			lnx_rx_core_failed(err->op_context, err);
	} else if (ep->shared.owner && lnx_pool_owns(&ep->shared.owner->rxe_pool,
					       err->op_context)) {
		const struct lnx_rxe *rxe = err->op_context;

		if (lnx_pool_lent(&ep->shared.owner->rxe_pool, rxe) && rxe->ep == ep)
			lnx_rx_core_failed(err->op_context, err);
	} else if (lnx_confirm_core_failed(rail, err)) {
		return 0;
	} else if ((err->flags & (FI_SEND | FI_WRITE | FI_READ)) &&
		   ep->tx_cq) {
		struct fi_cq_err_entry e = *err;

		e.flags &= ~FI_COMPLETION;
		e.err_data = NULL;
		e.err_data_size = 0;
		ep->stats.failed++;
		lnx_cq_write_err(ep->tx_cq, &e);
	} else {
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_CQ,
			       "rail %s: error without an operation: %s (provider error %d)\n",
			       rail->name, fi_strerror(err->err),
			       err->prov_errno);
	}
	return 0;
}

struct fi_ops_cq_owner lnx_direct_cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = direct_write,
	.writeerr = direct_writeerr,
};

/* ---- counters of the direct core ---- */

LNX_HOT
static void direct_inc(struct fid_peer_cntr *peer)
{
	struct lnx_rail_cntr *c =
		lnx_container_of(peer, struct lnx_rail_cntr, peer);

	if (!(c->rail->mute & LNX_MUTE_NOW))
		lnx_cntr_add_ok(c->cntr);
}

static void direct_incerr(struct fid_peer_cntr *peer)
{
	lnx_cntr_add_err(lnx_container_of(peer, struct lnx_rail_cntr,
					  peer)->cntr);
}

struct fi_ops_cntr_owner lnx_direct_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr_owner),
	.inc = direct_inc,
	.incerr = direct_incerr,
};

/* A frame has come in over a peer rail. */
LNX_HOT
static void framed_recv(struct lnx_rail *rail, struct lnx_rxbuf *buf,
			size_t len)
{
	rail->poll_credits = rail->ep->poll_hot;
	if (lnx_unlikely(buf->big != NULL)) {
		lnx_rxbuf_shrink(buf);
		return;
	}
	lnx_rx_frame(rail, buf, len);	/* free_entry returns buf unless it is kept */
}

LNX_HOT
static ssize_t framed_write(struct fid_peer_cq *cq, void *context,
			    uint64_t flags, size_t len, void *buf,
			    uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct lnx_rail *rail = cq_rail(cq);
	struct lnx_op *op = context;

	(void)buf, (void)data, (void)tag, (void)src;
	lnx_assert_held(&rail->ep->lock);
	if (flags & FI_RECV) {
		framed_recv(rail, context, len);
	} else if (flags & FI_SEND) {
		rail->busy--;
		lnx_tx_core_done(context);
	} else if ((flags & (FI_READ | FI_WRITE)) && op) {
		if (op->type == LNX_OP_READ)
			lnx_read_done(op, 0, 0);
		else
			lnx_pull_chunk_done(op, 0, 0);
	}
	return 0;
}

static ssize_t framed_writeerr(struct fid_peer_cq *cq,
			       const struct fi_cq_err_entry *err)
{
	struct lnx_rail *rail = cq_rail(cq);

	lnx_core_error(rail, err);
	return 0;
}

/*
 * An error from a core on a framed rail.  Its context may be anything, even something
 * returned long ago, so it is looked up in our pools and never trusted.
 */
LNX_COLD void lnx_core_error(struct lnx_rail *rail,
			     const struct fi_cq_err_entry *err)
{
	struct lnx_ep *ep = rail->ep;
	void *ctx = err->op_context;
	struct lnx_rma_segment *segment;
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(ep->txe_pool); i++) {
		if (lnx_pool_owns(&ep->txe_pool[i], ctx)) {
			struct lnx_txe *txe = ctx;

			if (!lnx_pool_lent(&ep->txe_pool[i], ctx) ||
			    !txe->peer || !txe->f.in_core)
				return;
			rail->busy--;
			lnx_tx_core_failed(txe, err);
			return;
		}
	}
	if (lnx_pool_owns(&ep->chunk_pool, ctx)) {
		if (lnx_pool_lent(&ep->chunk_pool, ctx) &&
		    lnx_pull_chunk_out(ctx))
			lnx_pull_chunk_done(ctx, err->err, err->prov_errno);
		return;
	}
	/* As a number: it need not be a valid pointer. */
	segment = (void *)((uintptr_t)ctx - offsetof(struct lnx_rma_segment, op));
	if (lnx_pool_owns(&ep->rma.segment_pool, segment)) {
		if (lnx_pool_lent(&ep->rma.segment_pool, segment) &&
		    lnx_read_out(&segment->op))
			lnx_read_done(&segment->op, err->err, err->prov_errno);
		return;
	}
	ep->stats.core_errors++;
	if (lnx_pool_owns(&ep->rxbuf_pool, ctx)) {
		struct lnx_rxbuf *buf = ctx;

		if (!lnx_pool_lent(&ep->rxbuf_pool, ctx) || buf->rail != rail)
			return;
		if (rail->kind == LNX_RAIL_PLAIN)
			lnx_plain_recv_failed(rail, buf, err->err);
		else if (buf->big)
			lnx_rxbuf_shrink(buf);
		return;
	}
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_CQ,
		       "rail %s: error without an operation: %s (provider error %d)\n",
		       rail->name, fi_strerror(err->err), err->prov_errno);
}

struct fi_ops_cq_owner lnx_framed_cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = framed_write,
	.writeerr = framed_writeerr,
};
