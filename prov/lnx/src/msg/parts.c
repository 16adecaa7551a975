/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that come in several frames: a PART and its MOREs, or the MOREs that follow an
 * RTS.  Called by msg/arrive.c.  The sequence brings them in order with no other message
 * between them, so that a peer has at most one of these, and each MORE begins where the
 * frame before it ended.  What has found its receive goes straight into that; else it is
 * stored, for which the peer has credit (policy/credit.h).
 *
 * Runs inside a core's progress on peer rails: nothing here may call a core.
 */
#include "msg/parts.h"

#include <stdlib.h>

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
		rxe->ep->work |= LNX_WORK_PULL;
		return;
	}
	lnx_list_del(&rxe->link);	/* ep->owned */
	lnx_rx_done(rxe);
}

static void add(struct lnx_peer *peer, const void *data, size_t len)
{
	struct lnx_peer_eager *e = peer->eager;
	struct lnx_rxe *rxe = e->rxe;

	if (rxe && rxe->payload) {
		memcpy((char *)rxe->payload + e->got, data, len);
		lnx_rxe_charge(rxe, len);
	} else {
		if (rxe)
			put_at(rxe->iov, rxe->niov, e->got, data, len);
		lnx_rx_credit_used(peer, len);
	}
	e->got += (uint32_t)len;
	if (e->got < e->len)
		return;
	e->len = 0;
	e->rxe = NULL;
	if (rxe)
		complete(rxe);
}

bool lnx_parts_begin(struct lnx_peer *peer, struct lnx_rxe *rxe, uint64_t len)
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
	/* If the rest does not come, its sender may be gone. */
	if (lnx_unlikely(!peer->watched))
		lnx_peer_watch(peer);
	rxe->incoming = true;
	e->rxe = rxe;
	e->len = (uint32_t)len;
	e->got = 0;
	return true;
}

void lnx_parts_first(struct lnx_peer *peer, const void *data, size_t len)
{
	add(peer, data, len);
}

int lnx_parts_more(struct lnx_peer *peer, const struct lnx_hdr *h, const void *data)
{
	struct lnx_peer_eager *e = peer->eager;

	if (!lnx_parts_expected(peer) || h->tag != e->got || h->len > e->len - e->got) {
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

	lnx_iov_put(rxe->iov, rxe->niov, rxe->payload, got);
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
