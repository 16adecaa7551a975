/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A message and a receive have met.  Called by msg/rx_post.c (the message came first)
 * and by msg/srx_owner.c and rel/recv.c (the receive did); calls the core that
 * holds the message, copies, or hands over to msg/pull.c; then msg/rx_done.c.
 */
#include <stdlib.h>

#include "core/peer.h"
#include "msg/parts.h"
#include "msg/rx.h"
#include "rail/rail.h"

/*
 * Untagged: the receive may be a multi-receive buffer.  If its space is not enough for
 * this message, it is retired and the next receive is tried; only a message that would
 * not fit into an empty buffer is truncated.
 */
LNX_INLINE struct lnx_rxe *take_msg(struct lnx_ep *ep, struct lnx_ep *at,
				    uint64_t src, size_t len)
{
	struct lnx_rxe *rxe, *child;
	struct lnx_mrecv *r;

	while ((r = lnx_match_find(&at->msg, src, 0))) {
		size_t left;

		rxe = lnx_container_of(r, struct lnx_rxe, post);
		if (lnx_likely(!rxe->multi)) {
			lnx_match_unpost(&at->msg, r);
			if (at != ep)
				lnx_rx_assign(rxe, ep);
			return rxe;
		}
		/* Not before one that waits for an entry. */
		if (lnx_unlikely(at->work & LNX_WORK_MATCH)) {
			ep->work |= LNX_WORK_MATCH;
			return NULL;
		}
		left = rxe->room - rxe->used;
		if (len > left && rxe->used) {
			lnx_match_unpost(&at->msg, r);
			lnx_rx_multi_retire(ep, rxe);
			continue;
		}
		child = lnx_rxe_get(ep);
		if (!child) {
			at->work |= LNX_WORK_MATCH;
			ep->work |= LNX_WORK_MATCH;
			return NULL;
		}
		child->tagged = false;
		child->context = rxe->context;
		child->cq_flags = FI_RECV | FI_MSG;
		child->want_comp = rxe->want_comp;
		if (at != ep)
			lnx_rx_assign(child, ep);
		child->niov = 1;
		child->iov[0].iov_base = (char *)rxe->iov[0].iov_base + rxe->used;
		child->iov[0].iov_len = child->room = LNX_MIN(len, left);
		child->desc[0] = rxe->desc[0];
		child->more = true;
		child->parent = rxe;
		rxe->n_children++;
		rxe->used += child->room;
		left -= child->room;
		if (left < rxe->min_left || !left) {
			lnx_match_unpost(&at->msg, r);
			rxe->retired = true;
		}
		return child;
	}
	return NULL;
}

static LNX_COLD struct lnx_rxe *take_msg_shared(struct lnx_ep *ep, uint64_t src,
						size_t len)
{
	return take_msg(ep, ep->srx, src, len);
}

struct lnx_rxe *lnx_rx_take_msg(struct lnx_ep *ep, uint64_t src, size_t len)
{
	struct lnx_rxe *rxe = take_msg(ep, ep, src, len);

	if (lnx_unlikely(!rxe && ep->srx))
		return take_msg_shared(ep, src, len);
	return rxe;
}

void lnx_rx_rematch(struct lnx_ep *ep)
{
	struct lnx_ep *at = ep->srx ? ep->srx : ep;
	struct lnx_munex *u, *next;

	ep->work &= ~LNX_WORK_MATCH;
	at->work &= ~LNX_WORK_MATCH;
	for (u = lnx_match_first_unex(&at->msg); u; u = next) {
		struct lnx_unex *msg = lnx_unex_of(u);
		struct lnx_unex_about about = lnx_unex_about(msg);
		struct lnx_rxe *child = lnx_rx_take_msg(about.ep, u->src, about.len);

		next = lnx_match_next_unex(&at->msg, u);
		if (at->work & LNX_WORK_MATCH) {
			ep->work |= LNX_WORK_MATCH;
			return;		/* memory is short again */
		}
		if (!child)
			continue;
		lnx_unex_unstore(msg);
		lnx_rx_meets(msg, child);
	}
}

void lnx_rx_adopt(struct lnx_rxe *msg, struct lnx_rxe *rxe)
{
	msg->context = rxe->context;
	msg->want_comp = rxe->want_comp;
	msg->cq_flags |= rxe->cq_flags;
	msg->niov = rxe->niov;
	memcpy(msg->iov, rxe->iov, sizeof(msg->iov));
	msg->room = rxe->room;
	if (rxe->parent) {
		msg->more = true;
		msg->parent = rxe->parent;
		rxe->parent = NULL;
	}
	lnx_rxe_put(rxe);
}

void lnx_rx_arm_bounce(struct lnx_rxe *rxe)
{
	rxe->core_iov.iov_base = rxe->payload;
	rxe->core_iov.iov_len = rxe->len;
	rxe->pe.t.iov = &rxe->core_iov;
	rxe->pe.t.count = 1;
	rxe->pe.t.msg_size = rxe->len;
	/* Our buffer is plain memory, whatever the application's is. */
	memset(rxe->desc, 0, sizeof(rxe->desc));
	rxe->pe.t.desc = rxe->desc;
}

static int start_core(struct lnx_rxe *rxe)
{
	struct fid_peer_srx *srx = rxe->pe.t.srx;
	struct fi_peer_rx_entry *entry = lnx_peer_entry_out(&rxe->pe);
	int ret;

	rxe->pe.t.context = rxe;
	rxe->pe.t.flags |= FI_COMPLETION;
	lnx_list_del(&rxe->link);
	ret = rxe->tagged ? srx->peer_ops->start_tag(entry) :
			    srx->peer_ops->start_msg(entry);
	return ret == -FI_EINPROGRESS ? 0 : ret;
}

static LNX_COLD void start_failed(struct lnx_rxe *rxe, int ret)
{
	struct fi_cq_err_entry err = { .err = -ret, .prov_errno = -ret };

	rxe->core_done = true;
	lnx_rx_core_failed(rxe, &err);
}

void lnx_rx_defer(struct lnx_rxe *rxe)
{
	rxe->more = true;
	lnx_list_del(&rxe->link);
	lnx_list_add_tail(&rxe->ep->deferred, &rxe->link);
	rxe->ep->work |= LNX_WORK_DEFER;
}

/* False when memory is short; then the message stays where it is. */
static bool start_bounce(struct lnx_rxe *rxe)
{
	int ret;

	rxe->more = true;
	rxe->payload = malloc(rxe->len ? rxe->len : 1);
	if (!rxe->payload)
		return false;
	rxe->payload_at = LNX_PAYLOAD_BOUNCE;
	rxe->starting = true;
	lnx_rx_arm_bounce(rxe);
	ret = start_core(rxe);
	if (ret)
		start_failed(rxe, ret);
	else if (rxe->state != LNX_RXE_FREE && rxe->starting)
		lnx_rxe_own(rxe);
	return true;
}

LNX_COLD void lnx_rx_copy_out(struct lnx_rxe *rxe)
{
	struct lnx_hdr h = {
		.flags = rxe->cq_flags & FI_REMOTE_CQ_DATA ? LNX_WIRE_F_DATA : 0,
		.tag = rxe->tag, .data = rxe->data, .len = rxe->len,
	};

	if (!start_bounce(rxe) || rxe->state != LNX_RXE_UNEX || rxe->starting ||
	    !rxe->core_done)
		return;
	/* It is the last one that was stored, and so the order stays. */
	lnx_rx_unstore(rxe);
	if (lnx_unex_keep(rxe->peer, &h, rxe->payload, rxe->tagged, true))
		lnx_rxe_put(rxe);
	else
		lnx_rx_store(rxe);
}

static void deliver_core(struct lnx_rxe *rxe)
{
	int ret;

	if (lnx_likely(rxe->len <= rxe->room)) {
		rxe->pe.t.iov = rxe->iov;
		rxe->pe.t.count = rxe->niov;
		rxe->pe.t.desc = rxe->desc;
		rxe->pe.t.msg_size = rxe->len;
		ret = start_core(rxe);
		if (lnx_unlikely(ret))
			start_failed(rxe, ret);
		return;
	}
	/* Too long for the receive; but a core must never truncate. */
	rxe->waiting = true;
	if (!start_bounce(rxe))
		lnx_rx_defer(rxe);
}

void lnx_rx_deliver(struct lnx_rxe *rxe)
{
	rxe->state = LNX_RXE_ACTIVE;
	switch (rxe->payload_at) {
	case LNX_PAYLOAD_CORE:
		deliver_core(rxe);
		return;
	case LNX_PAYLOAD_BOUNCE:
		if (rxe->starting) {
			rxe->waiting = true;
			return;
		}
		lnx_msg_iov_put(rxe->iov, rxe->niov, rxe->payload, rxe->len);
		break;
	case LNX_PAYLOAD_COPY:
		if (lnx_unlikely(rxe->incoming)) {
			lnx_parts_matched(rxe);
			return;
		}
		lnx_msg_iov_put(rxe->iov, rxe->niov, rxe->payload, rxe->len);
		break;
	case LNX_PAYLOAD_BUF:
		lnx_msg_iov_put(rxe->iov, rxe->niov,
				rxe->buf->frame + sizeof(struct lnx_wire_hdr),
				rxe->len);
		break;
	case LNX_PAYLOAD_REMOTE:
		if (rxe->payload)
			lnx_parts_matched(rxe);
		lnx_pull_start(rxe);
		return;
	case LNX_PAYLOAD_KEPT:
		lnx_msg_iov_put(rxe->iov, rxe->niov, lnx_unex_payload(rxe->kept), rxe->len);
		break;
	case LNX_PAYLOAD_MEMORY:
		lnx_fetch_start(rxe);
		return;
	default:
		/* The core lost it while it was claimed. */
		lnx_rx_fail(rxe, FI_EIO, FI_EIO);
		return;
	}
	lnx_rx_done(rxe);
}

void lnx_rx_discard(struct lnx_rxe *rxe)
{
	rxe->state = LNX_RXE_ACTIVE;
	rxe->discard = true;
	switch (rxe->payload_at) {
	case LNX_PAYLOAD_CORE:
		/*
		 * Never call a core's discard_*: start it into a scratch buffer and
		 * drop it.
		 */
		if (!start_bounce(rxe))
			lnx_rx_defer(rxe);
		return;
	case LNX_PAYLOAD_BOUNCE:
		if (rxe->starting)
			return;
		break;
	case LNX_PAYLOAD_REMOTE:
		/* Nothing to read: the sender only needs its FIN. */
		lnx_parts_drop(rxe);
		rxe->room = 0;
		lnx_pull_start(rxe);
		return;
	case LNX_PAYLOAD_MEMORY:
		lnx_fetch_start(rxe);
		return;
	default:
		lnx_parts_drop(rxe);
		break;
	}
	lnx_rx_release(rxe);
}

LNX_COLD void lnx_rx_ctrl_run(struct lnx_ep *ep)
{
	struct lnx_rxe *rxe;
	int ret;

	while ((rxe = lnx_rx_ctrl_waits(ep))) {
		if (!rxe->peer)
			rxe->peer = lnx_rail_peer(ep->shm, rxe->pe.t.addr);
		rxe->state = LNX_RXE_ACTIVE;
		ret = start_core(rxe);
		if (ret)
			start_failed(rxe, ret);
	}
}

LNX_COLD void lnx_rx_poll_direct(struct lnx_ep *ep)
{
	lnx_rx_ctrl_run(ep);
	lnx_rail_poll_lent(ep->shm);
	if (ep->local.unknown_source)
		lnx_peer_shm_sources(ep);
	lnx_rx_ctrl_run(ep);
}

void lnx_rx_deferred_run(struct lnx_ep *ep, uint64_t now)
{
	uint64_t defer_ns = ep->conf->defer * LNX_NS_PER_US;
	struct lnx_node *n, *tmp;

	lnx_rx_ctrl_run(ep);
	lnx_list_foreach(&ep->deferred, n, tmp) {
		struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe, link);

		if (!rxe->since_ns)
			rxe->since_ns = now;
		if (!rxe->discard && !rxe->waiting &&
		    now - rxe->since_ns < defer_ns)
			continue;
		if (rxe->payload_at == LNX_PAYLOAD_MEMORY) {
			if (!lnx_fetch_keep(rxe))
				break;
			tmp = ep->deferred.next;
			continue;
		}
		/* Only the core can tell which peer an unknown source is, and when. */
		if (!rxe->peer && rxe->state == LNX_RXE_UNEX && ep->directed)
			continue;
		if (!start_bounce(rxe))
			break;		/* memory is short: later */
		ep->stats.deferred++;
		/* Starting ran core code, which may have changed the list. */
		tmp = ep->deferred.next;
	}
	if (lnx_list_empty(&ep->deferred))
		ep->work &= ~LNX_WORK_DEFER;
}

/* ---- compact messages ---- */

static void set_message(struct lnx_rxe *rxe, const struct lnx_unex *u)
{
	rxe->peer = u->peer;
	rxe->tag = u->m.tag;
	rxe->len = u->len;
	if (u->has_data) {
		rxe->data = lnx_unex_data(u);
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
	}
}

void lnx_rx_meets(struct lnx_unex *u, struct lnx_rxe *rxe)
{
	if (lnx_unlikely(u->entry)) {
		struct lnx_rxe *msg = lnx_rxe_of_unex(u);

		lnx_rx_adopt(msg, rxe);
		lnx_rx_deliver(msg);
		return;
	}
	set_message(rxe, u);
	lnx_msg_iov_put(rxe->iov, rxe->niov, lnx_unex_payload(u), u->len);
	lnx_unex_free(u);
	lnx_rx_done(rxe);
}

struct lnx_rxe *lnx_rx_entry(struct lnx_unex *u)
{
	struct lnx_rxe *rxe;

	if (u->entry)
		return lnx_rxe_of_unex(u);
	rxe = lnx_rxe_get(u->peer->ep);
	if (!rxe)
		return NULL;
	lnx_unex_unstore(u);
	rxe->tagged = u->tagged;
	set_message(rxe, u);
	rxe->more = true;
	rxe->payload_at = LNX_PAYLOAD_KEPT;
	rxe->kept = u;
	lnx_rxe_holds(rxe);
	return rxe;
}
