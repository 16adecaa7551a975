/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A frame that is next in order.  Called by rel/recv.c through ep->up; matches it, and
 * hands message and receive to msg/deliver.c, or keeps the message.
 *
 * Runs inside a core's progress on peer rails: nothing here may call a core.
 */
#include <stdlib.h>

#include "msg/parts.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/rail.h"
#include "obj/counting.h"
#include "rma/rma.h"
#include "rma/serve.h"

/*
 * Payloads of messages without a receive are copied into memory of their size, so that no
 * buffer is held for fewer bytes.  Only the first few of those that are longer than
 * COPY_OUT_MAX stay in their buffers: most programs never have more.
 */
#define COPY_OUT_MAX	4096
#define HELD_BUFS_MAX	16

/* May a payload of that length stay in buf, which can be much larger? */
static bool may_hold(const struct lnx_ep *ep, struct lnx_rxbuf *buf, size_t len)
{
	return len > COPY_OUT_MAX && ep->eager.n_held_bufs < HELD_BUFS_MAX &&
	       !lnx_backlog_near(&ep->backlog.sum, 0) && lnx_rxbuf_may_keep(buf);
}

static inline const uint8_t *frame_payload(const struct lnx_rxbuf *buf)
{
	return buf->frame + sizeof(struct lnx_wire_hdr);
}

static inline void set_message(struct lnx_rxe *rxe, struct lnx_peer *peer,
			       const struct lnx_hdr *h)
{
	rxe->peer = peer;
	rxe->tag = h->tag;
	rxe->len = h->len;
	if (h->flags & LNX_WIRE_F_DATA) {
		rxe->data = h->data;
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
	}
}

/* A large frame: is there credit for it? */
static LNX_COLD bool credit_for(struct lnx_peer *peer, const struct lnx_hdr *h)
{
	lnx_eager_learn(peer, h->key);
	if (peer->eager && lnx_credit_allows(&peer->eager->credit, h->len))
		return true;
	peer->ep->stats.bad_frames++;
	return false;
}

/* An announced message. */
static int store_announced(struct lnx_peer *peer, const struct lnx_hdr *h, bool tagged,
			   struct lnx_rts *rts)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rxe *rxe;

	if (lnx_backlog_refuses(peer))
		return -FI_EACCES;
	rxe = lnx_rxe_get(ep);
	if (!rxe)
		return -FI_ENOMEM;
	rxe->tagged = tagged;
	set_message(rxe, peer, h);
	rxe->more = true;
	rxe->payload_at = LNX_PAYLOAD_REMOTE;
	rxe->state = LNX_RXE_UNEX;
	if (rts->head && !lnx_parts_begin(peer, rxe, rts->head)) {
		rxe->more = false;
		lnx_rxe_put(rxe);
		return -FI_ENOMEM;
	}
	rxe->rts = rts;
	rxe->unex.m.src = peer->addr;
	rxe->unex.m.tag = tagged ? h->tag : 0;
	lnx_rxe_holds(rxe);
	lnx_rx_store(rxe);
	lnx_rxe_take(rxe, lnx_pull_size + rts->head);
	ep->stats.unexpected++;
	return 0;
}

/*
 * A message that stays in its buffer, or is too large to be compact: then the peer has
 * credit for it.  1: it is kept, in buf; 0: in a copy; -FI_ENOMEM: not kept.
 */
static int store_in_entry(struct lnx_peer *peer, const struct lnx_hdr *h,
			  struct lnx_rxbuf *buf, bool tagged)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rxe *rxe = lnx_rxe_get(ep);
	void *copy = NULL;

	if (!rxe)
		return -FI_ENOMEM;
	if (!may_hold(ep, buf, h->len))
		copy = malloc(h->len);
	if (!copy && !lnx_rxbuf_may_keep(buf)) {
		lnx_rxe_put(rxe);
		return -FI_ENOMEM;
	}
	rxe->tagged = tagged;
	set_message(rxe, peer, h);
	rxe->more = true;
	if (copy) {
		memcpy(copy, frame_payload(buf), h->len);
		rxe->payload_at = LNX_PAYLOAD_COPY;
		rxe->payload = copy;
	} else {
		rxe->payload_at = LNX_PAYLOAD_BUF;
		rxe->buf = buf;
		lnx_rxbuf_keep(buf);
		ep->eager.n_held_bufs++;
	}
	rxe->state = LNX_RXE_UNEX;
	rxe->unex.m.src = peer->addr;
	rxe->unex.m.tag = tagged ? h->tag : 0;
	lnx_rxe_holds(rxe);
	if (lnx_unlikely(h->len > LNX_PAYLOAD_MAX))
		lnx_rxe_charge(rxe, h->len);
	lnx_rx_store(rxe);
	lnx_rxe_take(rxe, copy ? h->len : lnx_rxbuf_bytes(buf));
	ep->stats.unexpected++;
	return !copy;
}

/* As store_in_entry, for any.  Not part of its caller, whose usual way is short. */
static __attribute__((noinline)) int store_unexpected(struct lnx_peer *peer, const struct lnx_hdr *h,
			    struct lnx_rxbuf *buf, bool tagged)
{
	if (lnx_backlog_refuses(peer))
		return -FI_EACCES;
	if (lnx_unlikely(h->len > LNX_PAYLOAD_MAX) || may_hold(peer->ep, buf, h->len))
		return store_in_entry(peer, h, buf, tagged);
	if (lnx_likely(lnx_unex_keep(peer, h, frame_payload(buf), tagged, false))) {
		peer->ep->stats.unexpected++;
		return 0;
	}
	if (h->len <= COPY_OUT_MAX)
		return -FI_ENOMEM;
	return store_in_entry(peer, h, buf, tagged);
}

/* A message came over rail, and so many bytes of it. */
static inline void count(struct lnx_ep *ep, struct lnx_rail *rail, uint64_t len, uint64_t here)
{
	ep->stats.recv_count++;
	ep->stats.recv_length += len;
	rail->traffic.recvs++;
	rail->traffic.recv_length += here;
}

/* Into a receive of several pieces.  Not part of its caller, whose usual way is short. */
static __attribute__((noinline)) void scatter(const struct lnx_rxe *rxe, const void *payload,
					      size_t len)
{
	lnx_msg_iov_put(rxe->iov, rxe->niov, payload, len);
}

/* A message, all of it in one frame, is for the receive rxe. */
LNX_INLINE void receive(struct lnx_peer *peer, const struct lnx_hdr *h,
			struct lnx_rxbuf *buf, struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = peer->ep;

	count(ep, buf->rail, h->len, h->len);
	ep->stats.matched++;
	set_message(rxe, peer, h);
	if (lnx_likely(rxe->niov == 1))
		lnx_msg_iov_put(rxe->iov, 1, frame_payload(buf), h->len);
	else
		scatter(rxe, frame_payload(buf), h->len);
}

/* Not part of its caller, whose usual way is short. */
static __attribute__((noinline)) int handle_eager(struct lnx_peer *peer,
						  const struct lnx_hdr *h,
						  struct lnx_rxbuf *buf, bool tagged)
{
	bool large = lnx_unlikely(h->len > LNX_PAYLOAD_MAX);
	struct lnx_ep *ep = peer->ep;
	struct lnx_rxe *rxe;
	int ret;

	if (large && !credit_for(peer, h))
		return -FI_EACCES;
	rxe = lnx_rx_take(ep, tagged, peer->addr, h->tag, h->len);
	if (lnx_unlikely(!rxe)) {
		ret = store_unexpected(peer, h, buf, tagged);
		/* Else it will come again. */
		if (ret >= 0)
			count(ep, buf->rail, h->len, h->len);
		return ret;
	}
	receive(peer, h, buf, rxe);
	if (large)
		lnx_rx_credit_used(peer, h->len);
	lnx_rx_done(rxe);
	return 0;
}

/* The first frame of several. */
static int handle_part(struct lnx_ep *ep, struct lnx_peer *peer, const struct lnx_hdr *h,
		       struct lnx_rxbuf *buf, size_t len, bool tagged)
{
	struct lnx_rxe *rxe;

	if (lnx_parts_expected(peer)) {
		ep->stats.bad_frames++;
		return 0;
	}
	/* For all of it. */
	if (!credit_for(peer, h))
		return -FI_EACCES;
	rxe = lnx_rx_take(ep, tagged, peer->addr, h->tag, h->len);
	if (!rxe) {
		if (lnx_backlog_refuses(peer))
			return -FI_EACCES;
		rxe = lnx_rxe_get(ep);
		if (!rxe)
			return -FI_ENOMEM;
		rxe->state = LNX_RXE_UNEX;
		rxe->tagged = tagged;
		rxe->payload_at = LNX_PAYLOAD_COPY;
	}
	set_message(rxe, peer, h);
	rxe->more = true;
	lnx_rxe_holds(rxe);
	if (!lnx_parts_begin(peer, rxe, h->len)) {
		lnx_rxe_put(rxe);
		return -FI_ENOMEM;
	}
	count(ep, buf->rail, h->len, len);
	if (rxe->state == LNX_RXE_UNEX) {
		rxe->unex.m.src = peer->addr;
		rxe->unex.m.tag = tagged ? h->tag : 0;
		lnx_rx_store(rxe);
		lnx_rxe_take(rxe, h->len);
		ep->stats.unexpected++;
	} else {
		rxe->state = LNX_RXE_ACTIVE;
		ep->stats.matched++;
	}
	lnx_parts_first(peer, frame_payload(buf), len);
	return 0;
}

static int handle_rts(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_hdr *h, struct lnx_rxbuf *buf,
		      size_t payload, bool tagged)
{
	struct lnx_rts *rts = lnx_pull_rts_new();
	struct lnx_rxe *rxe;
	int ret;

	if (!rts)
		return -FI_ENOMEM;
	if (lnx_wire_rts_get(rts, frame_payload(buf), payload, h->len) ||
	    (h->key && lnx_parts_expected(peer))) {
		ep->stats.bad_frames++;
		free(rts);
		return 0;
	}
	if (h->key && !(peer->eager &&
			lnx_credit_allows(&peer->eager->credit, h->key))) {
		ep->stats.bad_frames++;
		free(rts);
		return -FI_EACCES;
	}
	rts->head = h->key;
	rxe = lnx_rx_take(ep, tagged, peer->addr, h->tag, h->len);
	if (!rxe) {
		ret = store_announced(peer, h, tagged, rts);
		if (ret < 0)
			free(rts);
		else
			count(ep, buf->rail, h->len, 0);
		return ret;
	}
	count(ep, buf->rail, h->len, 0);
	ep->stats.matched++;
	set_message(rxe, peer, h);
	rxe->payload_at = LNX_PAYLOAD_REMOTE;
	rxe->more = true;
	lnx_rxe_holds(rxe);
	rxe->rts = rts;
	rxe->state = LNX_RXE_ACTIVE;
	if (rts->head)
		lnx_parts_begin(peer, rxe, rts->head);
	lnx_pull_start(rxe);
	return 0;
}

/* A frame that is part of no message. */
static int no_message(struct lnx_ep *ep, struct lnx_peer *peer, const struct lnx_hdr *h,
		      struct lnx_rxbuf *buf, size_t len)
{
	switch (h->kind) {
	case LNX_KIND_FIN:
		lnx_eager_learn(peer, h->key);
		lnx_rndv_fin_moved(peer, h->data, frame_payload(buf), len);
		lnx_rndv_fin(peer, h->data, (int)LNX_MIN(h->len, LNX_ERR_MAX));
		return 0;
	case LNX_KIND_RESP:
		buf->rail->traffic.recv_length +=
			lnx_rma_answer(ep, peer, h, frame_payload(buf));
		return 0;
	default:
		return lnx_serve(ep, peer, h, frame_payload(buf), len);
	}
}

/* All but messages in one frame. */
static __attribute__((noinline)) int deliver_other(struct lnx_peer *peer, const struct lnx_hdr *h,
						   struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_rail_traffic *t = &buf->rail->traffic;
	struct lnx_ep *ep = peer->ep;
	int ret;

	switch (h->kind) {
	case LNX_KIND_RTS_TAG:
	case LNX_KIND_RTS_MSG:
		return handle_rts(ep, peer, h, buf, len,
				  h->kind == LNX_KIND_RTS_TAG);
	case LNX_KIND_PART_TAG:
	case LNX_KIND_PART_MSG:
		return handle_part(ep, peer, h, buf, len,
				   h->kind == LNX_KIND_PART_TAG);
	case LNX_KIND_MORE:
		ret = lnx_parts_more(peer, h, frame_payload(buf));
		if (ret >= 0)
			buf->rail->traffic.recv_length += len;
		return ret;
	}
	ret = no_message(ep, peer, h, buf, len);
	if (ret >= 0) {
		lnx_count_received(buf->rail, lnx_count_came(peer, buf->rail, h), h->kind);
		lnx_count_memory((const void *)buf->frame, &t->recvs, &t->recv_length);
	}
	return ret;
}

LNX_HOT
int lnx_rx_deliver_frame(struct lnx_peer *peer, const struct lnx_hdr *h,
			 struct lnx_rxbuf *buf, size_t len)
{
	if (lnx_likely(h->kind == LNX_KIND_TAG)) {
		struct lnx_rxe *rxe = h->len <= LNX_PAYLOAD_MAX ?
			lnx_rx_take_few(peer->ep, peer->addr, h->tag) : NULL;

		if (lnx_unlikely(!rxe))
			return handle_eager(peer, h, buf, true);
		receive(peer, h, buf, rxe);
		lnx_rx_done(rxe);
		return 0;
	}
	if (lnx_likely(h->kind == LNX_KIND_MSG))
		return handle_eager(peer, h, buf, false);
	return deliver_other(peer, h, buf, len);
}

int lnx_rx_copy(struct lnx_ep *ep, struct lnx_peer *peer, bool tagged,
		uint64_t tag, uint64_t data, uint8_t flags,
		const struct iovec *iov, size_t niov, size_t len)
{
	struct lnx_hdr h = {
		.flags = flags, .tag = tag, .data = data, .len = len,
	};
	uint64_t src = peer ? peer->addr : FI_ADDR_UNSPEC;
	struct lnx_rxe *rxe;
	void *payload;

	payload = malloc(len ? len : 1);
	if (!payload)
		return -FI_EAGAIN;
	rxe = lnx_rx_take(ep, tagged, src, tag, len);
	if (!rxe) {
		rxe = lnx_rxe_get(ep);
		if (!rxe) {
			free(payload);
			return -FI_EAGAIN;
		}
		rxe->state = LNX_RXE_UNEX;
	}
	rxe->tagged = tagged;
	set_message(rxe, peer, &h);
	lnx_msg_iov_get(payload, iov, niov);
	rxe->more = true;
	rxe->payload = payload;
	rxe->payload_at = LNX_PAYLOAD_COPY;
	if (rxe->state == LNX_RXE_UNEX) {
		rxe->unex.m.src = src;
		rxe->unex.m.tag = tagged ? tag : 0;
		lnx_rx_store(rxe);
		ep->stats.unexpected++;
	} else {
		ep->stats.matched++;
		lnx_rx_deliver(rxe);
	}
	return 0;
}

/*
 * The source of a stored message was resolved: a receive that names it may be waiting.
 * u stays stored when there is none.
 */
void lnx_rx_source_resolved(struct lnx_ep *ep, struct lnx_unex *u, uint64_t src)
{
	struct lnx_unex_about msg = lnx_unex_about(u);
	struct lnx_rxe *rxe;

	lnx_match_set_src(lnx_rx_stored(ep, msg.tagged), &u->m, src);
	if (src == FI_ADDR_UNSPEC)
		return;
	rxe = lnx_rx_take(ep, msg.tagged, src, u->m.tag, msg.len);
	if (!rxe)
		return;
	lnx_unex_unstore(u);
	lnx_rx_meets(u, rxe);
}

/*
 * Match again the stored messages of a sender whose address became known, changed, or
 * was removed.  Delivering one may call a core, which may change the list: so always
 * take the first.
 */
void lnx_rx_source_changed(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_node *n, *tmp, left;

	if (peer->shm.core != FI_ADDR_NOTAVAIL)
		lnx_list_foreach(&ep->local.nameless, n, tmp) {
			struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe,
							     unex.of_peer);

			if (rxe->payload_at == LNX_PAYLOAD_CORE &&
			    rxe->pe.t.addr == peer->shm.core)
				lnx_rx_set_peer(rxe, peer);
		}
	lnx_list_init(&left);
	lnx_list_splice(&left, &peer->stored);
	while ((n = lnx_list_pop(&left))) {
		lnx_list_add_tail(&peer->stored, n);
		lnx_rx_source_resolved(ep, lnx_list_entry(n, struct lnx_unex, of_peer),
				       peer->addr);
	}
}
