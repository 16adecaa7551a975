/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * End of the receive path.  Called by msg/deliver.c, msg/pull.c and, through
 * rail/lent.c, by direct cores; calls lnx_cq_write.  Also gets and frees entries.
 */
#include <stdlib.h>

#include "msg/rx.h"
#include "obj/mr.h"
#include "rail/rail.h"

void lnx_rxe_uncharge(struct lnx_rxe *rxe)
{
	struct lnx_peer *peer = rxe->peer;

	if (lnx_likely(!rxe->charged))
		return;
	lnx_credit_free(&peer->eager->credit, &peer->ep->eager.pool, rxe->charged);
	rxe->charged = 0;
	if (lnx_eager_urgent(peer))
		lnx_peer_tell(peer);
}

void lnx_rxe_make(void *obj, struct lnx_pool *p)
{
	struct lnx_rxe *rxe = obj;

	rxe->home = lnx_container_of(p, struct lnx_ep, rxe_pool);
	rxe->ep = NULL;
	rxe->payload = NULL;
	rxe->buf = NULL;
	rxe->kept = NULL;
	rxe->rts = NULL;
	rxe->charged = 0;
	rxe->taken = 0;
	rxe->since_ns = 0;
	rxe->parent = NULL;
	lnx_list_init(&rxe->link);
	lnx_list_init(&rxe->unex.of_peer);
	rxe->more = false;
	rxe->holds = false;
	rxe->state = LNX_RXE_FREE;
}

/* Reset the entry to its initial state.  Returns the endpoint it belongs to. */
static LNX_COLD struct lnx_ep *clean(struct lnx_rxe *rxe)
{
	struct lnx_rxe *parent = rxe->parent;

	free(rxe->payload);
	free(rxe->rts);
	lnx_rxe_uncharge(rxe);
	if (rxe->taken)
		lnx_backlog_give(rxe->peer, rxe->taken);
	if (rxe->holds)
		rxe->peer->nheld--;
	if (rxe->payload_at == LNX_PAYLOAD_RMA && !rxe->segment)
		rxe->peer->rma.n_served--;
	while (rxe->payload_at == LNX_PAYLOAD_RMA && rxe->nmr)
		lnx_mr_unuse(rxe->mr[--rxe->nmr]);
	if (rxe->buf) {
		lnx_rxbuf_drop(rxe->buf);
		rxe->ep->eager.n_held_bufs--;
	}
	if (rxe->kept)
		lnx_unex_free(rxe->kept);
	lnx_list_del(&rxe->link);
	lnx_rxe_make(rxe, &rxe->home->rxe_pool);
	/* Discarded with its endpoint, before its multi-receive buffer was told:
	 * msg/shared.c does that. */
	if (rxe->home->closing)
		rxe->parent = parent;
	return rxe->home;
}

/* Take one from the reserve, but leave at least `leave`. */
static LNX_COLD struct lnx_rxe *rxe_from_reserve(struct lnx_ep *ep,
						 uint32_t leave)
{
	if (ep->nreserve <= leave)
		return NULL;
	ep->nreserve--;
	return lnx_list_entry(lnx_list_pop(&ep->reserve), struct lnx_rxe,
			      link);
}

LNX_HOT
struct lnx_rxe *lnx_rxe_get(struct lnx_ep *ep)
{
	struct lnx_rxe *rxe = lnx_pool_get(&ep->rxe_pool);

	if (lnx_unlikely(!rxe)) {
		rxe = rxe_from_reserve(ep, LNX_RXE_LOW);
		if (!rxe)
			return NULL;
	}
	lnx_rxe_init(ep, rxe);
	return rxe;
}

struct lnx_rxe *lnx_rxe_get_last(struct lnx_ep *ep)
{
	struct lnx_rxe *rxe = lnx_pool_get(&ep->rxe_pool);

	if (!rxe)
		rxe = rxe_from_reserve(ep, 0);
	if (rxe)
		lnx_rxe_init(ep, rxe);
	return rxe;
}

int lnx_rxe_reserve(struct lnx_ep *ep)
{
	while (ep->nreserve < LNX_RXE_RESERVE) {
		struct lnx_rxe *rxe = lnx_pool_get(&ep->rxe_pool);

		if (!rxe)
			return -FI_ENOMEM;
		rxe->state = LNX_RXE_FREE;
		lnx_list_add_tail(&ep->reserve, &rxe->link);
		ep->nreserve++;
	}
	return 0;
}

LNX_HOT
void lnx_rxe_put(struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = rxe->ep;

	if (lnx_unlikely(rxe->more))
		ep = clean(rxe);
#ifdef LNX_DEBUG
	assert(!rxe->payload && !rxe->buf && !rxe->kept && !rxe->rts && !rxe->since_ns &&
	       !lnx_list_linked(&rxe->link) && ep == rxe->home);
#endif
	rxe->state = LNX_RXE_FREE;
	if (lnx_unlikely(ep->nreserve < LNX_RXE_RESERVE)) {
		lnx_list_add_tail(&ep->reserve, &rxe->link);
		ep->nreserve++;
		return;
	}
	lnx_pool_put(&ep->rxe_pool, rxe);
}

/* Keep track of entries that hold memory while neither matcher nor pull has them. */
void lnx_rxe_own(struct lnx_rxe *rxe)
{
	rxe->more = true;
	lnx_list_del(&rxe->link);
	lnx_list_add_tail(&rxe->ep->owned, &rxe->link);
}

void lnx_rxe_free_owned(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->owned)))
		lnx_rxe_put(lnx_list_entry(n, struct lnx_rxe, link));
}

/* Our part is done; the entry is freed now, or when its core releases it. */
LNX_HOT
void lnx_rx_release(struct lnx_rxe *rxe)
{
	rxe->reported = true;
	if (rxe->core_done)
		lnx_rxe_put(rxe);
}

/*
 * A message into a multi-receive buffer is complete.  The buffer returns to the
 * application when it takes no more messages and the last one is complete: the
 * completion of that one tells it.
 */
static uint64_t multi_child_done(struct lnx_rxe *child)
{
	struct lnx_rxe *parent = child->parent;

	child->parent = NULL;
	if (--parent->n_children || !parent->retired)
		return 0;
	lnx_rxe_put(parent);
	return FI_MULTI_RECV;
}

void lnx_rx_multi_retire(struct lnx_ep *ep, struct lnx_rxe *parent)
{
	parent->retired = true;
	if (parent->n_children)
		return;
	lnx_cq_write(ep->rx_cq, parent->context,
		     FI_RECV | FI_MSG | FI_MULTI_RECV, 0, NULL, 0, 0,
		     FI_ADDR_NOTAVAIL);
	lnx_rxe_put(parent);
}

/* Count a peer's large write at the registrations that it went to, once each. */
static LNX_COLD void count_memory(const struct lnx_rxe *rxe)
{
	unsigned i, k;

	for (i = 0; i < rxe->nmr; i++) {
		for (k = 0; k < i && rxe->mr[k] != rxe->mr[i]; k++)
			;
		if (k == i)
			lnx_cntr_add_ok(rxe->mr[i]->cntr);
	}
}

/* A peer's large write is a receive entry without a posted receive. */
static inline enum lnx_cntr_kind kind_of(const struct lnx_rxe *rxe)
{
	return lnx_likely(rxe->payload_at != LNX_PAYLOAD_RMA) ? LNX_CNTR_RECV :
						       LNX_CNTR_REMOTE_WRITE;
}

static LNX_COLD void report_err(struct lnx_rxe *rxe, int err, int prov_errno,
				uint64_t flags, size_t len, size_t olen)
{
	struct fi_cq_err_entry e = {
		.op_context = rxe->context,
		.flags = flags,
		.len = len,
		.buf = rxe->niov ? rxe->iov[0].iov_base : NULL,
		.data = rxe->data,
		.tag = rxe->tag,
		.olen = olen,
		.err = err,
		.prov_errno = prov_errno,
		.src_addr = rxe->peer ? rxe->peer->addr : FI_ADDR_NOTAVAIL,
	};

	rxe->ep->stats.failed++;
	lnx_cntr_err(rxe->ep, kind_of(rxe));
	if (rxe->ep->rx_cq)
		lnx_cq_write_err(rxe->ep->rx_cq, &e);
}

LNX_HOT
void lnx_rx_done(struct lnx_rxe *rxe)
{
	enum lnx_cntr_kind kind = LNX_CNTR_RECV;
	uint64_t flags = rxe->cq_flags;

	/* All that is no plain message has `more`. */
	if (lnx_unlikely(rxe->more)) {
		if (rxe->parent)
			flags |= multi_child_done(rxe);
		if (rxe->payload_at == LNX_PAYLOAD_RMA) {
			count_memory(rxe);
			kind = LNX_CNTR_REMOTE_WRITE;
		}
	}
	if (lnx_unlikely(rxe->len > rxe->room)) {
		rxe->ep->stats.truncated++;
		report_err(rxe, FI_ETRUNC, FI_ETRUNC, flags, rxe->room,
			   rxe->len - rxe->room);
	} else {
		lnx_cntr_ok(rxe->ep, kind);
		if (lnx_likely(rxe->want_comp) || (flags & FI_MULTI_RECV))
			lnx_cq_write(rxe->ep->rx_cq, rxe->context, flags,
				     rxe->len, rxe->iov[0].iov_base, rxe->data,
				     rxe->tag, rxe->peer ? rxe->peer->addr :
				     FI_ADDR_NOTAVAIL);
	}
	lnx_rx_release(rxe);
}

LNX_COLD void lnx_rx_fail(struct lnx_rxe *rxe, int err, int prov_errno)
{
	uint64_t flags = rxe->cq_flags;

	if (rxe->parent)
		flags |= multi_child_done(rxe);
	report_err(rxe, err, prov_errno, flags, 0, 0);
	lnx_rx_release(rxe);
}

/* The core's copy into the application's buffer, or into the bounce buffer, is done. */
void lnx_rx_core_done(struct lnx_rxe *rxe, uint64_t flags, uint64_t data)
{
	if (flags & FI_REMOTE_CQ_DATA) {
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
		rxe->data = data;
	}
	if (lnx_likely(rxe->payload_at == LNX_PAYLOAD_CORE)) {
		lnx_rx_done(rxe);
		return;
	}
	if (rxe->payload_at == LNX_PAYLOAD_SHM_CTRL) {
		lnx_rx_shm_ctrl(rxe);
		lnx_rx_release(rxe);
		return;
	}
	rxe->starting = false;
	if (rxe->discard) {
		lnx_rx_release(rxe);
	} else if (rxe->waiting) {
		lnx_msg_iov_put(rxe->iov, rxe->niov, rxe->payload, rxe->len);
		lnx_rx_done(rxe);
	}
}

/*
 * The core failed to transfer a message (its sender died, for example).  It may or may
 * not call free_entry.  Both are safe: the pool keeps the memory valid, and in the
 * state FREE free_entry does nothing.
 */
LNX_COLD void lnx_rx_core_failed(struct lnx_rxe *rxe,
				 const struct fi_cq_err_entry *err)
{
	bool wanted = rxe->state == LNX_RXE_ACTIVE && !rxe->discard &&
		      rxe->payload_at != LNX_PAYLOAD_SHM_CTRL;

	if (rxe->state == LNX_RXE_FREE || rxe->reported)
		return;
	rxe->starting = false;
	if (rxe->state == LNX_RXE_UNEX)
		lnx_rx_unstore(rxe);
	lnx_list_del(&rxe->link);
	if (wanted)
		lnx_rx_fail(rxe, err->err, err->prov_errno);
	else if (rxe->state != LNX_RXE_CLAIMED)
		lnx_rx_release(rxe);
	/* A claimed message fails when the application asks for it. */
	else
		rxe->payload_at = LNX_PAYLOAD_NONE;
}
