/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that come in several frames: a PART and its MOREs, or the MOREs that follow an
 * RTS.  Called by msg/arrive.c.  The sequence brings them in order with no other message
 * between them, so that a peer has at most one of these, and each MORE begins where the
 * frame before it ended.  What has found its receive goes straight into that; else it is
 * stored, for which the peer has credit (policy/credit.h).
 *
 * And messages that are pushed through shared memory, in pieces that the core copies
 * (msg/push_send.c).  Called by msg/fetch.c.  They come in order as well, one of a peer at a
 * time, but need no credit.
 *
 * Runs inside a core's progress on peer rails: nothing here may call a core.
 */
#include "msg/parts.h"

#include <stdlib.h>

#include "msg/pull.h"
#include "msg/push.h"
#include "rail/rail.h"

/* Copy into an iov, from offset off on. */
static void put_at(const struct iovec *iov, size_t niov, size_t off, const void *src,
		   size_t len)
{
	const char *p = src;
	size_t i;

	for (i = 0; i < niov && len; i++) {
		size_t n;

		if (off >= iov[i].iov_len) {
			off -= iov[i].iov_len;
			continue;
		}
		n = LNX_MIN(iov[i].iov_len - off, len);
		memcpy((char *)iov[i].iov_base + off, p, n);
		p += n;
		len -= n;
		off = 0;
	}
}

/* All parts have come. */
static void complete(struct lnx_rxe *rxe)
{
	rxe->incoming = false;
	/* What is stored waits for its receive, or for FI_CLAIM. */
	if (rxe->state != LNX_RXE_ACTIVE)
		return;
	if (rxe->payload_at == LNX_PAYLOAD_REMOTE) {
		lnx_pull_due(lnx_container_of(rxe->rts, struct lnx_pull, rts));
		return;
	}
	lnx_list_del(&rxe->link);	/* ep->owned */
	lnx_rx_done(rxe);
}

/* The message is no longer expected. */
static void over(struct lnx_peer *peer)
{
	struct lnx_peer_eager *e = peer->eager;

	peer->ep->local.npushed -= e->pushed;
	e->pushed = false;
	e->len = 0;
	e->rxe = NULL;
}

static void add(struct lnx_peer *peer, const void *data, size_t len)
{
	struct lnx_peer_eager *e = peer->eager;
	struct lnx_rxe *rxe = e->rxe;

	if (rxe && rxe->payload) {
		memcpy((char *)rxe->payload + e->got, data, len);
		if (!e->pushed)
			lnx_rxe_charge(rxe, len);
	} else {
		if (rxe)
			put_at(rxe->iov, rxe->niov, e->got, data, len);
		if (!e->pushed)
			lnx_rx_credit_used(peer, len);
	}
	e->got += (uint32_t)len;
	if (e->got < e->len)
		return;
	over(peer);
	if (rxe)
		complete(rxe);
}

static bool begin(struct lnx_peer *peer, struct lnx_rxe *rxe, uint64_t len)
{
	struct lnx_peer_eager *e = peer->eager;

	if (rxe->state == LNX_RXE_UNEX) {
		rxe->payload = malloc(len);
		if (!rxe->payload)
			return false;
	} else if (rxe->payload_at != LNX_PAYLOAD_REMOTE) {
		/* Until all have come nothing else has it. */
		lnx_rxe_own(rxe);
	}
	rxe->incoming = true;
	e->rxe = rxe;
	e->len = (uint32_t)len;
	e->got = 0;
	return true;
}

bool lnx_parts_begin(struct lnx_peer *peer, struct lnx_rxe *rxe, uint64_t len)
{
	if (!begin(peer, rxe, len))
		return false;
	/* If the rest does not come, its sender may be gone. */
	if (lnx_unlikely(!peer->watched))
		lnx_peer_watch(peer);
	return true;
}

void lnx_parts_first(struct lnx_peer *peer, const void *data, size_t len)
{
	add(peer, data, len);
}

int lnx_parts_more(struct lnx_peer *peer, const struct lnx_hdr *h, const void *data)
{
	struct lnx_peer_eager *e = peer->eager;

	if (!lnx_parts_expected(peer) || e->pushed || h->tag != e->got ||
	    h->len > e->len - e->got) {
		peer->ep->stats.bad_frames++;
		return 0;
	}
	if (!lnx_credit_allows(&e->credit, h->len)) {
		peer->ep->stats.bad_frames++;
		return -FI_EACCES;
	}
	add(peer, data, h->len);
	return 0;
}

void lnx_parts_matched(struct lnx_rxe *rxe)
{
	uint64_t got = rxe->incoming ? rxe->peer->eager->got : rxe->charged;

	lnx_msg_iov_put(rxe->iov, rxe->niov, rxe->payload, got);
	free(rxe->payload);
	rxe->payload = NULL;
	lnx_rxe_uncharge(rxe);
	if (rxe->payload_at == LNX_PAYLOAD_REMOTE)
		return;
	rxe->payload_at = LNX_PAYLOAD_NONE;
	lnx_rxe_own(rxe);
}

void lnx_parts_drop(struct lnx_rxe *rxe)
{
	if (!rxe->incoming)
		return;
	rxe->incoming = false;
	rxe->peer->eager->rxe = NULL;
}

LNX_COLD void lnx_parts_fail_peer(struct lnx_peer *peer, int err)
{
	struct lnx_rxe *rxe = peer->eager ? peer->eager->rxe : NULL;

	if (lnx_parts_expected(peer) && peer->eager->pushed)
		over(peer);
	if (!rxe)
		return;
	lnx_parts_drop(rxe);
	switch (rxe->state) {
	case LNX_RXE_UNEX:
		lnx_rx_unstore(rxe);
		lnx_rxe_put(rxe);
		break;
	case LNX_RXE_CLAIMED:
		/* It fails when the application asks for it. */
		rxe->payload_at = LNX_PAYLOAD_NONE;
		break;
	default:
		/* The pull of a message that is read fails by itself. */
		if (rxe->payload_at == LNX_PAYLOAD_REMOTE)
			break;
		lnx_list_del(&rxe->link);
		lnx_rx_fail(rxe, err, err);
	}
}

/* ---- pushed through shared memory ---- */

static bool begin_push(struct lnx_peer *peer, struct lnx_rxe *rxe, uint64_t len)
{
	if (!begin(peer, rxe, len))
		return false;
	lnx_ep_watch_local(peer->ep);
	peer->eager->pushed = true;
	peer->ep->local.npushed++;
	return true;
}

static LNX_COLD void lost(struct lnx_ep *ep, const struct lnx_wire_push *w)
{
	ep->stats.lost++;
	LNX_WARN(FI_LOG_EP_DATA,
		 "rail %s: no memory for a message of %u bytes: it is lost\n",
		 ep->shm->name, (unsigned)w->len);
}

static void set_push(struct lnx_rxe *rxe, struct lnx_peer *peer,
		     const struct lnx_wire_push *w)
{
	rxe->peer = peer;
	rxe->tag = w->tag;
	rxe->len = w->len;
	if (w->flags & LNX_WIRE_F_DATA) {
		rxe->data = w->data;
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
	}
	rxe->more = true;
	lnx_rxe_holds(rxe);
}

/* Without a receive.  If there is no memory for its bytes, the receive that comes for it
 * fails. */
static LNX_COLD void store_push(struct lnx_ep *ep, struct lnx_peer *peer,
				const struct lnx_wire_push *w)
{
	struct lnx_rxe *rxe = lnx_rxe_get_last(ep);

	if (!rxe) {
		lost(ep, w);
		return;
	}
	rxe->tagged = w->kind == LNX_KIND_PART_TAG;
	rxe->state = LNX_RXE_UNEX;
	set_push(rxe, peer, w);
	if (lnx_peer_eager(peer) && begin_push(peer, rxe, w->len))
		rxe->payload_at = LNX_PAYLOAD_COPY;
	rxe->unex.m.src = peer->addr;
	rxe->unex.m.tag = rxe->tagged ? w->tag : 0;
	lnx_rx_store(rxe);
	ep->stats.unexpected++;
}

/* Another one begins before all of a push has come: its sender has reported it as failed, or
 * is the next endpoint of that name.  False: what has begun is no push. */
static LNX_COLD bool given_up(struct lnx_peer *peer)
{
	if (!peer->eager->pushed)
		return false;
	lnx_parts_fail_peer(peer, FI_ECONNRESET);
	return true;
}

static bool push_begins(struct lnx_ep *ep, const struct lnx_wire_push *w,
			struct lnx_peer **peer)
{
	bool tagged = w->kind == LNX_KIND_PART_TAG;
	struct lnx_rxe *rxe;

	*peer = lnx_fetch_ctrl_sender(ep, w->src);
	if (lnx_unlikely(!*peer)) {
		lost(ep, w);
		return false;
	}
	if (lnx_unlikely(lnx_fetch_is_for_another(ep, w->to_low, w->to_high))) {
		ep->stats.stale_frames++;
		return false;
	}
	if (lnx_unlikely(lnx_parts_expected(*peer)) && !given_up(*peer)) {
		ep->stats.bad_frames++;
		return false;
	}
	ep->stats.direct_recvs++;
	ep->stats.direct_recv_length += w->len;
	rxe = lnx_rx_take(ep, tagged, (*peer)->addr, w->tag, w->len);
	if (lnx_unlikely(!rxe)) {
		store_push(ep, *peer, w);
	} else {
		ep->stats.matched++;
		rxe->state = LNX_RXE_ACTIVE;
		set_push(rxe, *peer, w);
		if (lnx_unlikely(!lnx_peer_eager(*peer))) {
			lnx_rx_fail(rxe, FI_ENOMEM, FI_ENOMEM);
			return false;
		}
		begin_push(*peer, rxe, w->len);
	}
	if (lnx_unlikely(!lnx_parts_expected(*peer)))
		return false;
	(*peer)->eager->op = w->op;
	return true;
}

/* Is it what comes next of the message that peer pushes? */
static bool is_next(const struct lnx_peer *peer, const struct lnx_wire_push *w)
{
	return peer && lnx_parts_expected(peer) && peer->eager->pushed &&
	       peer->eager->op == w->op && peer->eager->got == w->off;
}

bool lnx_push_came(struct lnx_ep *ep, const uint8_t *bytes, size_t size)
{
	struct lnx_wire_push w;
	struct lnx_peer *peer;
	size_t room;

	if (lnx_wire_push_get(&w, bytes, size, ep->eid))
		return false;
	if (!w.off) {
		if (!push_begins(ep, &w, &peer))
			return true;
	} else {
		peer = lnx_peer_by_eid(ep, w.src);
		if (lnx_unlikely(!is_next(peer, &w))) {
			ep->stats.bad_frames++;
			return true;
		}
	}
	room = lnx_wire_push_room(size, w.off);
	add(peer, bytes + size - room, LNX_MIN(room, peer->eager->len - peer->eager->got));
	return true;
}
