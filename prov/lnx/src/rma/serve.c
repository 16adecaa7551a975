/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access, target's side.  Called by rel/recv.c with frames that are next
 * in order: checks them against the registrations (core/mr.c), reads or writes the
 * memory, and answers.
 *
 * Runs inside a core's progress on peer rails: answers are queued, and what needs a
 * core is left for lnx_serve_run.
 */
#include <stdlib.h>

#include "rma/serve.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "obj/mr.h"
#include "rail/rail.h"
#include "rma/amo_serve.h"

/* Idle rails of an endpoint whose memory is read are polled every so many passes. */
#define SERVED_IDLE_MASK	7u

/* A peer's request for the keys of a registration. */
struct lnx_ask {
	struct lnx_node link;		/* ep->rma.asks */
	struct lnx_peer *peer;
	uint64_t key;
	uint64_t op;
};

/* Work for a peer needs memory, and then an answer.  A peer may use a lot of both, but
 * not all.  What is not taken now, its sender sends again. */
static bool full(const struct lnx_peer *peer)
{
	return lnx_unlikely(peer->chan.nqueued + peer->rma.n_served >= LNX_LATER_MAX);
}

struct lnx_txe *lnx_serve_answer_get(struct lnx_ep *ep, size_t len, void **data)
{
	struct lnx_txe *txe = lnx_txe_get(ep, len);

	if (txe)
		*data = txe->frame + sizeof(struct lnx_wire_hdr);
	return txe;
}

int lnx_serve_answer(struct lnx_ep *ep, struct lnx_peer *peer,
		     struct lnx_txe *txe, uint64_t op, int err, size_t len)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_RESP, .data = op, .tag = (uint64_t)err,
		.len = len,
	};
	int ret;

	txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + len);
	ret = lnx_rel_send_later(ep, peer, txe, &h);
	if (lnx_unlikely(ret))
		lnx_txe_put(ep, txe);
	/* A peer that was given up gets no answer, and need not ask again. */
	return ret == -FI_EHOSTUNREACH ? 0 : ret;
}

int lnx_serve_status(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t op,
		     int err)
{
	struct lnx_txe *txe = lnx_txe_get(ep, 0);

	if (lnx_unlikely(!txe))
		return -FI_ENOMEM;
	return lnx_serve_answer(ep, peer, txe, op, err, 0);
}

LNX_COLD void lnx_serve_refuse(struct lnx_ep *ep, const struct lnx_peer *peer,
			       const struct lnx_hdr *h, int err)
{
	ep->stats.rma_refused++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "%s of peer %016llx refused: %s (key 0x%llx, %llu bytes at 0x%llx)\n",
		       lnx_wire_kind_name(h->kind), (unsigned long long)peer->eid,
		       err == FI_ENOKEY ? "no such registration" :
		       "outside the registration, or it does not allow that",
		       (unsigned long long)h->key, (unsigned long long)h->len,
		       (unsigned long long)h->tag);
}

void lnx_serve_written(struct lnx_ep *ep, const struct lnx_peer *peer,
		       const struct lnx_hdr *h, size_t len)
{
	lnx_cntr_ok(ep, LNX_CNTR_REMOTE_WRITE);
	if (h->flags & LNX_WIRE_F_DATA)
		lnx_cq_write(ep->rx_cq, NULL, FI_RMA | FI_REMOTE_WRITE |
			     FI_REMOTE_CQ_DATA, len, NULL, h->data, 0,
			     peer->addr);
}

LNX_COLD int lnx_serve_note_key(struct lnx_peer *peer, uint64_t key)
{
	if (!peer->rma.put_keys)
		peer->rma.put_keys = calloc(1, sizeof(*peer->rma.put_keys));
	if (!peer->rma.put_keys)
		return FI_ENOMEM;
	peer->rma.put_keys->n = lnx_mr_key_add(peer->rma.put_keys->key, peer->rma.put_keys->n, key);
	return 0;
}

void lnx_serve_keys_done(struct lnx_peer *peer, bool ok)
{
	struct lnx_put_keys *k = peer->rma.put_keys;

	if (lnx_likely(!k))
		return;
	if (ok && k->n)
		lnx_mr_count(peer->ep->domain, k->key, k->n);
	k->n = 0;
}

static int put(struct lnx_ep *ep, struct lnx_peer *peer,
	       const struct lnx_hdr *h, const uint8_t *payload)
{
	struct lnx_wire_put w = { .total = htole64(h->len) };
	uint8_t *to;
	int err, ret;

	if (h->flags & LNX_WIRE_F_PUT) {
		memcpy(&w, payload, sizeof(w));
		payload += sizeof(w);
	}
	err = -lnx_mr_check(ep->domain, h->key, h->tag, h->len,
			    FI_REMOTE_WRITE, &to, NULL);
	if (!err && lnx_unlikely(lnx_mrs_counted(ep->domain)))
		err = lnx_serve_note_key(peer, h->key);
	/*
	 * The answer is queued first, and leaves later: so nothing is done twice if
	 * there is no room for it.
	 */
	if (w.op) {
		ret = lnx_serve_status(ep, peer, le64toh(w.op), err);
		if (lnx_unlikely(ret))
			return ret;
	} else if (lnx_unlikely(err)) {
		lnx_serve_status(ep, peer, 0, err);
	}
	if (lnx_unlikely(err)) {
		lnx_serve_refuse(ep, peer, h, err);
		peer->rma.put_refused = (uint8_t)err;
	} else if (h->len) {
		memcpy(to, payload, h->len);
	}
	if (h->flags & LNX_WIRE_F_LAST) {
		/* A write is not reported if one of its pieces was refused. */
		if (lnx_likely(!peer->rma.put_refused))
			lnx_serve_written(ep, peer, h, le64toh(w.total));
		lnx_serve_keys_done(peer, !peer->rma.put_refused);
		peer->rma.put_refused = 0;
	}
	return 0;
}

/* Set up a large write to its targets; 0, or the error to refuse it with. */
static int place(struct lnx_ep *ep, struct lnx_rxe *rxe,
		 const struct lnx_rma_target *p, unsigned n)
{
	struct lnx_hdr bad = { .kind = LNX_KIND_PUT_RTS };
	unsigned i;

	for (i = 0; i < n; i++) {
		uint8_t *to;
		int err = -lnx_mr_check(ep->domain, p[i].key, p[i].addr,
					p[i].len, FI_REMOTE_WRITE, &to,
					&rxe->mr[rxe->nmr]);

		if (err) {
			bad.key = p[i].key;
			bad.tag = p[i].addr;
			bad.len = p[i].len;
			lnx_serve_refuse(ep, rxe->peer, &bad, err);
			return err;
		}
		rxe->nmr++;
		if (!p[i].len)
			continue;
		rxe->iov[rxe->niov].iov_base = to;
		rxe->iov[rxe->niov++].iov_len = p[i].len;
	}
	rxe->room = rxe->len;
	return 0;
}

/* A large write: read it from the peer, like a message that has met its receive. */
static int put_large(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_hdr *h, const uint8_t *payload,
		     size_t size)
{
	size_t head = h->tag * sizeof(struct lnx_wire_target);
	struct lnx_rma_target p[LNX_RMA_TARGETS_MAX];
	struct lnx_rts *rts = full(peer) ? NULL : lnx_pull_rts_new();
	struct lnx_rxe *rxe = rts ? lnx_rxe_get(ep) : NULL;
	int err;

	if (!rxe) {
		free(rts);
		return -FI_ENOMEM;
	}
	rxe->more = true;
	rxe->rts = rts;
	if (lnx_wire_targets_get(p, (unsigned)h->tag, payload, h->len) ||
	    lnx_wire_rts_get(rts, payload + head, size - head, h->len)) {
		ep->stats.bad_frames++;
		lnx_rxe_put(rxe);
		return 0;
	}
	rxe->peer = peer;
	rxe->payload_at = LNX_PAYLOAD_RMA;
	peer->rma.n_served++;
	rxe->nmr = 0;
	rxe->segment = NULL;
	rxe->refuse = 0;
	rxe->state = LNX_RXE_ACTIVE;
	rxe->len = h->len;
	rxe->context = NULL;
	rxe->tag = 0;
	rxe->cq_flags = FI_RMA | FI_REMOTE_WRITE;
	if (h->flags & LNX_WIRE_F_DATA) {
		rxe->data = h->data;
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
		rxe->want_comp = true;
	}
	err = place(ep, rxe, p, (unsigned)h->tag);
	if (err) {
		/* Nothing is read; the FIN has the error. */
		rxe->discard = true;
		rxe->refuse = err;
	}
	lnx_pull_start(rxe);
	return 0;
}

static int get(struct lnx_ep *ep, struct lnx_peer *peer,
	       const struct lnx_hdr *h)
{
	struct lnx_txe *txe;
	uint8_t *from;
	void *data;
	int err;

	err = -lnx_mr_check(ep->domain, h->key, h->tag, h->len,
			    FI_REMOTE_READ, &from, NULL);
	if (lnx_unlikely(err)) {
		lnx_serve_refuse(ep, peer, h, err);
		return lnx_serve_status(ep, peer, h->data, err);
	}
	txe = lnx_serve_answer_get(ep, h->len, &data);
	if (lnx_unlikely(!txe))
		return -FI_ENOMEM;
	if (h->len)
		memcpy(data, from, h->len);
	err = lnx_serve_answer(ep, peer, txe, h->data, 0, h->len);
	if (lnx_likely(!err) && (h->flags & LNX_WIRE_F_LAST))
		lnx_cntr_ok(ep, LNX_CNTR_REMOTE_READ);
	return err;
}

static int keys(struct lnx_ep *ep, struct lnx_peer *peer,
		const struct lnx_hdr *h)
{
	struct lnx_ask *ask;

	ask = full(peer) ? NULL : malloc(sizeof(*ask));
	if (!ask)
		return -FI_ENOMEM;
	peer->rma.n_served++;
	ask->peer = peer;
	ask->key = h->key;
	ask->op = h->data;
	lnx_list_add_tail(&ep->rma.asks, &ask->link);
	ep->work |= LNX_WORK_RMA;
	return 0;
}

int lnx_serve(struct lnx_ep *ep, struct lnx_peer *peer,
	      const struct lnx_hdr *h, const uint8_t *payload, size_t size)
{
	/* Registrations may be closed now without waiting for us. */
	if (lnx_unlikely(ep->leaving))
		return -FI_ENOMEM;
	switch (h->kind) {
	case LNX_KIND_PUT:
		return put(ep, peer, h, payload);
	case LNX_KIND_PUT_RTS:
		return put_large(ep, peer, h, payload, size);
	case LNX_KIND_GET:
		return get(ep, peer, h);
	case LNX_KIND_KEYS:
		return keys(ep, peer, h);
	case LNX_KIND_ATOMIC:
		return lnx_amo_serve(ep, peer, h, payload, size);
	default:
		return 0;
	}
}

/* Register with the rails that the peer may use, and send it the keys. */
static int answer_keys(struct lnx_ep *ep, const struct lnx_ask *ask)
{
	struct lnx_hdr h = { .kind = LNX_KIND_KEYS, .key = ask->key };
	struct lnx_mr *mr = lnx_mr_find(ep->domain, ask->key);
	struct lnx_keys k = { .nkey = 0 };
	struct lnx_txe *txe;
	void *data;
	uint32_t i;
	int err = 0, ret;

	if (!mr || !(mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE))) {
		err = mr ? FI_EACCES : FI_ENOKEY;
		ret = lnx_serve_status(ep, ask->peer, ask->op, err);
		if (!ret)
			lnx_serve_refuse(ep, ask->peer, &h, err);
		return ret;
	}
	k.len = mr->len;
	k.origin = mr->origin;
	if (mr->access & FI_REMOTE_READ)
		k.access |= LNX_WIRE_KEYS_READ;
	if (mr->access & FI_REMOTE_WRITE)
		k.access |= LNX_WIRE_KEYS_WRITE;
	if (lnx_mr_give(mr) || ep->cntr[LNX_CNTR_REMOTE_WRITE])
		k.access |= LNX_WIRE_KEYS_TELL;
	if (ep->cntr[LNX_CNTR_REMOTE_READ])
		k.access |= LNX_WIRE_KEYS_TELL_READ;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];
		struct lnx_mr_reg *reg;

		if (rail->wire_index == LNX_WIRE_INDEX_NONE ||
		    k.nkey == LNX_RTS_KEYS)
			continue;
		err = -lnx_mr_register(mr, rail, &reg);
		if (err == FI_EAGAIN)
			return -FI_ENOMEM;
		if (err)
			break;
		k.key[k.nkey].rail = rail->wire_index;
		k.key[k.nkey].key = reg->key;
		k.key[k.nkey++].addr = reg->addr;
	}
	if (err || !k.nkey)
		return lnx_serve_status(ep, ask->peer, ask->op,
					err ? err : FI_ENOKEY);
	/*
	 * From now on cores serve it without reporting it: a rail that is not polled is
	 * late.
	 */
	ep->poll.idle_mask &= SERVED_IDLE_MASK;
	txe = lnx_serve_answer_get(ep, lnx_wire_keys_size(k.nkey), &data);
	if (!txe)
		return -FI_ENOMEM;
	lnx_wire_keys_put(data, &k);
	return lnx_serve_answer(ep, ask->peer, txe, ask->op, 0,
				lnx_wire_keys_size(k.nkey));
}

static void ask_free(struct lnx_ask *ask)
{
	lnx_list_del(&ask->link);
	ask->peer->rma.n_served--;
	free(ask);
}

void lnx_serve_run(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->rma.asks, n, tmp) {
		struct lnx_ask *ask = lnx_list_entry(n, struct lnx_ask, link);

		if (ep->leaving || !answer_keys(ep, ask))
			ask_free(ask);
		else
			ep->work |= LNX_WORK_RMA;	/* memory is short */
	}
}

/* Its peers are freed already. */
void lnx_serve_fini(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->rma.asks)))
		free(lnx_list_entry(n, struct lnx_ask, link));
}
