/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is the same for all kinds of rails (rail/rail.h). */
#include "core/open.h"
#include "rail/post.h"
#include "rail/rail.h"

const struct lnx_rail_driver *lnx_rail_driver(enum lnx_rail_kind kind)
{
	switch (kind) {
	case LNX_RAIL_PLAIN:
		return &lnx_posted_driver;
	case LNX_RAIL_NATIVE:
	case LNX_RAIL_NATIVE_LOCAL:
		return &lnx_native_driver;
	case LNX_RAIL_DIRECT:
	case LNX_RAIL_PEER:
		break;
	}
	return &lnx_lent_driver;
}

int lnx_rail_init(struct lnx_rail *rail)
{
	return rail->kind == LNX_RAIL_PEER ? lnx_rxbuf_make_drop_buf(rail) : 0;
}

LNX_COLD void lnx_rail_close_framed(struct lnx_rail *rail)
{
	struct lnx_node *n;

	lnx_rail_close_ep(rail);
	while (lnx_rail_poll(rail))
		;
	rail->unposted = NULL;
	while ((n = lnx_list_pop(&rail->bufs))) {
		struct lnx_rxbuf *buf = lnx_list_entry(n, struct lnx_rxbuf, link);

		buf->posted = 0;
		lnx_rxbuf_put(buf);
	}
	/* What it did not report is over, too: ep->up->path_cut. */
	lnx_rail_op_none(rail);
	lnx_rail_prime_forget(rail);
}

LNX_COLD int lnx_rail_reopen_framed(struct lnx_rail *rail, unsigned port)
{
	return lnx_rail_open_ep(rail, port);
}

LNX_COLD bool lnx_rail_trywait(struct lnx_rail *rail)
{
	struct fid *fid = &rail->core_cq->fid;

	/* A lent CQ always says "look again". */
	return fi_trywait(rail->fabric, &fid, 1) == -FI_EAGAIN &&
	       lnx_rail_kind_plain(rail->kind);
}

/*
 * The context may be anything, even something returned long ago, so it is looked up in
 * the pools of those that may own it, and never trusted.
 */
LNX_COLD void lnx_rail_core_error(struct lnx_rail *rail,
				  const struct fi_cq_err_entry *err)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_rxbuf *buf = err->op_context;
	unsigned i;

	for (i = 0; i < LNX_OP_NTYPE; i++)
		if (ep->up->op[i].failed && ep->up->op[i].failed(rail, err))
			return;
	ep->stats.core_errors++;
	if (lnx_pool_owns(&ep->rxbuf_pool, buf)) {
		if (lnx_pool_lent(&ep->rxbuf_pool, buf) && buf->rail == rail)
			rail->driver->recv_failed(rail, buf, err->err);
		return;
	}
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_CQ,
		       "rail %s: error without an operation: %s (provider error %d)\n",
		       rail->name, fi_strerror(err->err), err->prov_errno);
}
