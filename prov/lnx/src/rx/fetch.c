/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes of local peers, and large messages that they announce.  Called by
 * rx/done.c with a note, and by rx/deliver.c when a receive has been found for a
 * message announced before; progress reads it from the sender's memory straight
 * into the application's buffer, then rx/done.c.
 *
 * A note may come inside a core's callback: reading waits for progress because the
 * sender has to be told, and that is a call into the core.
 */
#include <stdlib.h>

#include "comp/comp.h"
#include "core/book.h"
#include "rx/rx.h"
#include "tx/tx.h"
#include "wire/note.h"

static LNX_COLD void lost(struct lnx_ep *ep, uint64_t len)
{
	ep->stats.lost++;
	LNX_WARN(FI_LOG_EP_DATA,
		 "rail %s: no memory for a message of %llu bytes: it is lost\n",
		 ep->shm->name, (unsigned long long)len);
}

static inline void set_message(struct lnx_rxe *rxe, struct lnx_peer *peer,
			       const struct lnx_wire_note *n)
{
	struct lnx_fetch *f = &rxe->fetch;

	rxe->peer = peer;
	rxe->tag = n->tag;
	rxe->len = n->len;
	rxe->held = LNX_HELD_MEMORY;
	if (n->flags & LNX_WIRE_F_DATA) {
		rxe->data = n->data;
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
	}
	f->op = n->op;
	f->mark = n->mark;
	memcpy(f->piece, n->piece, sizeof(f->piece));
	f->npiece = n->npiece;
	f->pid = n->pid;
	f->err = 0;
	f->read = false;
}

static struct lnx_peer *sender(struct lnx_ep *ep, uint64_t eid)
{
	struct lnx_peer *peer = lnx_peer_by_eid(ep, eid);
	struct lnx_addr a = { .eid = eid };

	return lnx_likely(peer != NULL) ? peer : lnx_peer_stranger(ep, &a);
}

static void announced(struct lnx_ep *ep, const struct lnx_wire_note *n)
{
	bool tagged = n->kind == LNX_KIND_RTS_TAG;
	struct lnx_peer *peer = sender(ep, n->src);
	struct lnx_rxe *rxe;

	if (lnx_unlikely(!peer)) {
		lost(ep, n->len);
		return;
	}
	ep->stats.direct_recvs++;
	rxe = lnx_rx_take(ep, tagged, peer->addr, n->tag, n->len);
	if (rxe) {
		ep->stats.matched++;
		rxe->state = LNX_RXE_ACTIVE;
		set_message(rxe, peer, n);
		lnx_fetch_start(rxe);
		return;
	}
	rxe = lnx_rxe_get_last(ep);
	if (lnx_unlikely(!rxe)) {
		lost(ep, n->len);
		return;
	}
	rxe->tagged = tagged;
	set_message(rxe, peer, n);
	rxe->state = LNX_RXE_UNEX;
	rxe->unex.src = peer->addr;
	rxe->unex.tag = n->tag;
	lnx_match_store(lnx_rx_stored(ep, tagged), &rxe->unex);
	lnx_rx_park(rxe);
	ep->stats.unexpected++;
}

void lnx_rx_note(struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = rxe->ep;
	struct iovec iov = { ep->shm->note, LNX_NOTE_BYTES };
	struct lnx_wire_note n;

	if (lnx_unlikely(lnx_note_get(&n, iov.iov_base, ep->eid))) {
		/* An application's message that happens to be as long. */
		ep->stats.direct_recvs++;
		ep->stats.direct_recv_length += iov.iov_len;
		if (lnx_rx_copy(ep, rxe->peer, false, 0, rxe->data,
				rxe->cq_flags & FI_REMOTE_CQ_DATA ?
				LNX_WIRE_F_DATA : 0, &iov, 1, iov.iov_len))
			lost(ep, iov.iov_len);
	} else if (n.kind == LNX_KIND_FIN) {
		struct lnx_peer *peer = lnx_peer_by_eid(ep, n.src);

		if (peer)
			lnx_tx_fin(peer, n.op, (int)LNX_MIN(n.len, 4096));
	} else {
		announced(ep, &n);
	}
}

void lnx_fetch_start(struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = rxe->ep;

	rxe->more = true;
	lnx_list_del(&rxe->link);	/* it may be parked */
	lnx_list_add_tail(&ep->fetches, &rxe->link);
	ep->work |= LNX_WORK_FETCH;
}

static void read_memory(struct lnx_rxe *rxe, const struct iovec *iov,
			size_t niov, size_t want)
{
	struct lnx_fetch *f = &rxe->fetch;
	struct lnx_peer *peer = rxe->peer;
	struct lnx_cma_owner owner = {
		.pid = f->pid, .mark = f->mark, .eid = peer->eid,
	};
	const struct lnx_book *book = NULL;

	if (lnx_likely(f->pid == peer->where.pid))
		book = peer->book;
	if (lnx_likely(book != NULL))
		owner.mark = 0;		/* it says the same, and faster */
	f->read = true;
	f->err = lnx_cma_read(&owner, f->piece, f->npiece, iov, niov, want);
	if (lnx_likely(book != NULL) && !f->err && !lnx_book_is_open(book))
		f->err = ESRCH;
	if (lnx_likely(!f->err))
		rxe->ep->stats.direct_recv_length += want;
	else
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
			       "peer %016llx: %zu bytes cannot be read from process %d: %s\n",
			       (unsigned long long)peer->eid, rxe->len, f->pid,
			       f->err == ESRCH ?
			       "it has ended, or closed its endpoint" :
			       fi_strerror(f->err));
}

static void finish(struct lnx_rxe *rxe)
{
	int err = rxe->fetch.err;

	if (rxe->discard)
		lnx_rx_release(rxe);
	else if (lnx_unlikely(err))
		lnx_rx_fail(rxe, FI_EIO, err);
	else
		lnx_rx_done(rxe);
}

/*
 * The sender is told first: the application may stop calling us once it has its
 * message.
 */
void lnx_fetch_run(struct lnx_ep *ep)
{
	struct lnx_node stuck, *n;

	lnx_list_init(&stuck);
	ep->work &= ~LNX_WORK_FETCH;
	while ((n = lnx_list_pop(&ep->fetches))) {
		struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe, link);
		struct lnx_fetch *f = &rxe->fetch;

		if (!f->read)
			read_memory(rxe, rxe->iov, rxe->niov, rxe->discard ?
				    0 : LNX_MIN(rxe->len, rxe->room));
		if (lnx_tx_note_fin(rxe->peer, f->op, f->err) == -FI_EAGAIN)
			lnx_list_add_tail(&stuck, &rxe->link);
		else
			finish(rxe);
	}
	while ((n = lnx_list_pop(&stuck))) {
		lnx_list_add_tail(&ep->fetches, n);
		ep->work |= LNX_WORK_FETCH;
	}
}

/*
 * Nobody receives it: its sender shall not wait for that, and may end.  What can
 * no more be read fails the receive that comes for it.
 */
bool lnx_fetch_keep(struct lnx_rxe *rxe)
{
	struct lnx_fetch *f = &rxe->fetch;
	struct iovec iov = { NULL, rxe->len };

	/* Inserting it into the core may find a receive for this. */
	lnx_peer_meet(rxe->peer);
	if (rxe->state != LNX_RXE_UNEX)
		return true;
	rxe->more = true;
	iov.iov_base = malloc(rxe->len);
	if (!iov.iov_base)
		return false;
	read_memory(rxe, &iov, 1, rxe->len);
	if (f->err) {
		lnx_list_del(&rxe->link);
		free(iov.iov_base);
		return true;
	}
	if (lnx_tx_note_fin(rxe->peer, f->op, 0) == -FI_EAGAIN) {
		f->read = false;
		rxe->since_ns = 0;	/* after another while */
		free(iov.iov_base);
		return true;
	}
	lnx_list_del(&rxe->link);
	rxe->payload = iov.iov_base;
	rxe->held = LNX_HELD_COPY;
	rxe->ep->stats.parked++;
	return true;
}

/* The message is thrown away with the endpoint. */
void lnx_fetch_refuse(struct lnx_rxe *rxe)
{
	lnx_tx_note_fin(rxe->peer, rxe->fetch.op, FI_ECONNABORTED);
}

void lnx_fetches_destroy(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->fetches)))
		lnx_rxe_put(lnx_list_entry(n, struct lnx_rxe, link));
}
