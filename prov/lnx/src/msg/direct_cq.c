/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions and counters of the direct rail: the shm core writes them into what we
 * lend it, with the owner lock held.  Receives have our entry as context (msg/rx_done.c),
 * sends the application's.  Nothing here may call a core.
 */
#include "msg/confirm.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/rail.h"
#include "rma/copy.h"
#include "rma/rma.h"

static inline struct lnx_rail *cq_rail(struct fid_peer_cq *cq)
{
	return lnx_container_of(cq, struct lnx_rail, peer_cq);
}

/* Some operations in the core are not the application's.  A function of its own, called
 * last, so that the usual case need not save registers for it. */
static __attribute__((noinline)) ssize_t
muted_write(struct lnx_rail *rail, void *context,
				    uint64_t flags)
{
	struct lnx_ep *ep = rail->ep;

	/* All reads are rma/copy.c's. */
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
