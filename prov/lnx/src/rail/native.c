/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of native rails.  They are the application's own operations, so their
 * contexts are passed on unchanged; only sources are translated from the core's
 * addresses.  Called by comp/progress.c; owner lock held.
 */
#include "rail/rail.h"

#define READ_BATCH	16

#define TX_FLAGS	(FI_SEND | FI_WRITE | FI_READ)

static fi_addr_t source(const struct lnx_rail *rail, fi_addr_t core_addr)
{
	const struct lnx_peer *peer = lnx_rail_peer(rail, core_addr);

	return peer ? peer->addr : FI_ADDR_NOTAVAIL;
}

static void ended(struct lnx_rail *rail, void *context, uint64_t flags,
		  size_t len, void *buf, uint64_t data, uint64_t tag,
		  fi_addr_t src)
{
	struct lnx_ep *ep = rail->ep;

	rail->poll_credits = LNX_MAX(1u, ep->poll_credits);
	flags &= ~FI_COMPLETION;
	if ((flags & TX_FLAGS) && !(flags & FI_RECV))
		lnx_cq_write(ep->tx_cq, context, flags, 0, NULL, 0, 0,
			     FI_ADDR_NOTAVAIL);
	else if ((flags & FI_REMOTE_CQ_DATA) && !(flags & FI_RECV))
		/* A write by a peer; shm's context is its own. */
		lnx_cq_write(ep->rx_cq, NULL, FI_RMA | FI_REMOTE_WRITE |
			     FI_REMOTE_CQ_DATA, len, NULL, data, 0,
			     FI_ADDR_NOTAVAIL);
	else
		lnx_cq_write(ep->rx_cq, context, flags, len, buf, data, tag,
			     source(rail, src));
}

static LNX_COLD void failed(struct lnx_rail *rail,
			    const struct fi_cq_err_entry *err)
{
	struct lnx_ep *ep = rail->ep;
	struct fi_cq_err_entry e = *err;

	rail->poll_credits = LNX_MAX(1u, ep->poll_credits);
	ep->stats.core_errors++;
	if (!e.op_context && !e.flags) {
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_CQ,
			       "rail %s: error without an operation: %s (provider error %d)\n",
			       rail->name, fi_strerror(err->err),
			       err->prov_errno);
		return;
	}
	e.flags &= ~FI_COMPLETION;
	e.err_data = NULL;
	e.err_data_size = 0;
	e.src_addr = source(rail, err->src_addr);
	ep->stats.failed++;
	lnx_cq_write_err((e.flags & TX_FLAGS) && !(e.flags & FI_RECV) ?
			 ep->tx_cq : ep->rx_cq, &e);
}

/* Add the growth of the core's counter to ours. */
static void count(struct lnx_rail_cntr *c)
{
	uint64_t ok = fi_cntr_read(c->core), err = fi_cntr_readerr(c->core);

	for (; c->ok != ok; c->ok++)
		lnx_cntr_add_ok(c->cntr);
	for (; c->err != err; c->err++)
		lnx_cntr_add_err(c->cntr);
}

static LNX_COLD int poll_core(struct lnx_rail *rail)
{
	struct fi_cq_tagged_entry e[READ_BATCH];
	fi_addr_t src[READ_BATCH];
	ssize_t n;
	unsigned i;

	/* Shared memory is polled in every pass. */
	if (rail->kind == LNX_RAIL_NATIVE_LOCAL)
		rail->poll_credits = 1;
	n = fi_cq_readfrom(rail->core_cq, e, READ_BATCH, src);
	for (i = 0; n > 0 && i < (size_t)n; i++)
		ended(rail, e[i].op_context, e[i].flags, e[i].len, e[i].buf,
		      e[i].data, e[i].tag, src[i]);
	if (lnx_unlikely(n == -FI_EAVAIL)) {
		struct fi_cq_err_entry err = { 0 };

		if (fi_cq_readerr(rail->core_cq, &err, 0) == 1)
			failed(rail, &err);
	}
	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (rail->cntr[i].core)
			count(&rail->cntr[i]);
	return n > 0;
}

/* Receives are the core's own. */
static int refill(struct lnx_rail *rail)
{
	(void)rail;
	return 0;
}

static bool more(struct lnx_rail *rail)
{
	(void)rail;
	return false;
}

/* Its operations are the application's: there is no path to fail over to, and only the core
 * knows when they end. */
static LNX_COLD void close_core(struct lnx_rail *rail)
{
	(void)rail;
}

static LNX_COLD int reopen(struct lnx_rail *rail, unsigned port)
{
	(void)rail, (void)port;
	return -FI_ENOSYS;
}

const struct lnx_rail_driver lnx_native_driver = {
	.poll = poll_core,
	.refill = refill,
	.more = more,
	.close = close_core,
	.reopen = reopen,
};
