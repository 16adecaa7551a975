/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large reads and writes of remote memory.  The keys of a peer's registration, one for
 * each of its rails, are requested once; then the data is transferred (msg/pull.c).
 * Called by rma/rma.c, and by progress for operations that wait.
 */
#include <stdlib.h>

#include "rma/rkey.h"
#include "rail/rail.h"
#include "rma/rma.h"
#include "rma/serve.h"

#define RKEYS_MAX	64u			/* kept in one bucket */

/* The keys of one registration of a peer, for the peer's rails. */
struct lnx_rkey {
	uint8_t kind;				/* LNX_RMA_SEGMENT_KEYS; first */
	struct lnx_rkey *next;			/* ep->rma.rkey */
	struct lnx_rkey *of_peer, **at;		/* peer->rma.rkeys; the pointer to this one */
	struct lnx_peer *peer;
	uint64_t key;
	bool known;
	uint64_t op;				/* of the KEYS frame, until then */
	struct lnx_node waiting;		/* lnx_rma_segment.link: reads */
	struct lnx_keys keys;
};

/* ---- keys of peers ---- */

static struct lnx_rkey **rkey_bucket(struct lnx_ep *ep,
				     const struct lnx_peer *peer, uint64_t key)
{
	uint64_t mix = lnx_mix64(key ^ peer->eid);

	return &ep->rma.rkey[mix & (LNX_RKEYS - 1)];
}

static struct lnx_rkey *rkey_find(struct lnx_ep *ep,
				  const struct lnx_peer *peer, uint64_t key)
{
	struct lnx_rkey *k = *rkey_bucket(ep, peer, key);

	while (k && (k->key != key || k->peer != peer))
		k = k->next;
	return k;
}

static void rkey_drop(struct lnx_ep *ep, struct lnx_rkey *k)
{
	struct lnx_rkey **at = rkey_bucket(ep, k->peer, k->key);

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	*k->at = k->of_peer;
	if (k->of_peer)
		k->of_peer->at = k->at;
	free(k);
}

/* peer->rma.rkeys: what ends with a peer must not depend on the keys of others. */
static void rkey_link(struct lnx_rkey *k, struct lnx_peer *peer)
{
	k->peer = peer;
	k->of_peer = peer->rma.rkeys;
	k->at = &peer->rma.rkeys;
	if (k->of_peer)
		k->of_peer->at = &k->of_peer;
	peer->rma.rkeys = k;
}

static void wait_for(struct lnx_rkey *k, struct lnx_rma_segment *segment)
{
	lnx_list_del(&segment->link);
	lnx_list_add_tail(&k->waiting, &segment->link);
}

/* Request the keys, and let segment, if any, wait for them: 0, or -FI_ENOMEM. */
static int rkey_ask(struct lnx_peer *peer, uint64_t key, struct lnx_rma_segment *segment)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rkey **at = rkey_bucket(ep, peer, key);
	struct lnx_hdr h = { .kind = LNX_KIND_KEYS, .key = key };
	struct lnx_rkey *k = calloc(1, sizeof(*k)), *old;
	struct lnx_txe *txe;
	unsigned n = 0;

	if (!k)
		return -FI_ENOMEM;
	/* Applications may make and close registrations without end. */
	for (old = *at; old; old = old->next)
		if (++n == RKEYS_MAX && old->known) {
			rkey_drop(ep, old);
			break;
		}
	txe = lnx_txe_get(ep, 0);
	k->op = lnx_optab_add(&ep->rma.ops, k);
	if (!txe || !k->op) {
		if (txe)
			lnx_txe_put(ep, txe);
		lnx_optab_del(&ep->rma.ops, k->op);
		free(k);
		return -FI_ENOMEM;
	}
	k->kind = LNX_RMA_SEGMENT_KEYS;
	rkey_link(k, peer);
	k->key = key;
	lnx_list_init(&k->waiting);
	k->next = *at;
	*at = k;
	if (segment) {
		segment->asked = true;
		wait_for(k, segment);
	}
	h.data = k->op;
	txe->f.len = sizeof(struct lnx_wire_hdr);
	/* An answer, even a forged one, may come inside: k and segment may be freed. */
	lnx_rel_send(ep, peer, txe, &h, false);
	return 0;
}

void lnx_rma_wait_turn(struct lnx_rma_segment *segment)
{
	struct lnx_ep *ep = segment->rma_op->ep;

	lnx_list_del(&segment->link);
	lnx_list_add_tail(&ep->rma.waiting, &segment->link);
	ep->work |= LNX_WORK_RMA;
}

/*
 * One use of a key is no reason to request it.  The number is odd, for programs that
 * alternate.
 */
#define ASK_EVERY	5u

bool lnx_rkey_use(struct lnx_peer *peer, const struct fi_rma_iov *rma,
		  const struct lnx_path *path, uint64_t *addr, uint64_t *key)
{
	struct lnx_rkey *k = rkey_find(peer->ep, peer, rma->key);
	unsigned i;

	if (lnx_likely(k && k->known)) {
		const struct lnx_keys *keys = &k->keys;
		uint64_t off = rma->addr - keys->origin;

		bool there = off <= keys->len && rma->len <= keys->len - off;

		if (!there || (keys->access & (LNX_WIRE_KEYS_READ |
					       LNX_WIRE_KEYS_TELL_READ)) !=
			      LNX_WIRE_KEYS_READ) {
			/* Only the peer may refuse: the key may have been registered
			 * again. */
			if (!there || !(keys->access & LNX_WIRE_KEYS_READ))
				rkey_drop(peer->ep, k);
			return false;
		}
		for (i = 0; i < keys->nkey; i++)
			if (keys->key[i].rail == path->remote_rail) {
				*addr = keys->key[i].addr + off;
				*key = keys->key[i].key;
				return true;
			}
		return false;
	}
	if (!k && !(++peer->rma.n_unknown % ASK_EVERY))
		rkey_ask(peer, rma->key, NULL);
	return false;
}

LNX_COLD void lnx_rkey_forget(struct lnx_peer *peer, uint64_t key)
{
	struct lnx_rkey *k = rkey_find(peer->ep, peer, key);

	if (k && k->known)
		rkey_drop(peer->ep, k);
}

static void told_add(struct lnx_rma_op *rma_op, uint64_t key, uint64_t addr)
{
	unsigned i;

	rma_op->tell = true;
	for (i = 0; i < rma_op->ntold; i++)
		if (rma_op->told[i] == key)
			return;
	if (rma_op->ntold < LNX_RMA_IOV_MAX) {
		rma_op->told_addr[rma_op->ntold] = addr;
		rma_op->told[rma_op->ntold++] = key;
	}
}

/* Can the data be reached?  0: rts (if not NULL) gets its address; else an error. */
static int aim(struct lnx_rma_segment *segment, const struct lnx_keys *keys,
	       struct lnx_rts *rts)
{
	uint64_t off = segment->addr - keys->origin;
	unsigned i;

	if (off > keys->len || segment->len > keys->len - off ||
	    !(keys->access & (segment->kind == LNX_RMA_SEGMENT_WRITE ?
			      LNX_WIRE_KEYS_WRITE : LNX_WIRE_KEYS_READ)))
		return FI_EACCES;
	if ((keys->access & LNX_WIRE_KEYS_TELL) && segment->kind == LNX_RMA_SEGMENT_WRITE)
		told_add(segment->rma_op, segment->key, segment->addr);
	segment->tell = (keys->access & LNX_WIRE_KEYS_TELL_READ) != 0;
	if (!rts)
		return 0;
	rts->nkey = keys->nkey;
	for (i = 0; i < keys->nkey; i++) {
		rts->key[0][i].rail = keys->key[i].rail;
		rts->key[0][i].key = keys->key[i].key;
		rts->key[0][i].addr = keys->key[i].addr + off;
	}
	return 0;
}

/* Calls no core: msg/pull.c posts the reads later. */
static int pull(struct lnx_rma_segment *segment, const struct lnx_keys *keys)
{
	struct lnx_rxe *rxe;
	struct lnx_rts *rts;
	int err = aim(segment, keys, NULL);

	if (err)
		return err;
	rxe = lnx_rxe_get(segment->rma_op->ep);
	if (!rxe)
		return FI_EAGAIN;
	rxe->more = true;
	rxe->rts = rts = lnx_pull_rts_new();
	if (!rts) {
		lnx_rxe_put(rxe);
		return FI_EAGAIN;
	}
	rts->op = 0;
	rts->flags = 0;
	rts->nseg = 1;
	rts->seg_len[0] = segment->len;
	aim(segment, keys, rts);
	/* For msg/pull.c it is a message that has met its receive. */
	rxe->nmr = 0;
	rxe->segment = segment;
	rxe->refuse = 0;
	rxe->payload_at = LNX_PAYLOAD_RMA;
	rxe->peer = segment->peer;
	rxe->len = rxe->room = segment->len;
	rxe->niov = segment->niov;
	memcpy(rxe->iov, segment->iov, segment->niov * sizeof(*segment->iov));
	lnx_pull_start(rxe);
	segment->pull = rxe;
	return 0;
}

/* Memory is too short to tell the peer what its core did: try later. */
static int not_told(struct lnx_rma_segment *segment)
{
	segment->moved = true;
	lnx_rma_wait_turn(segment);
	return -FI_ENOMEM;
}

/*
 * The last segment of a write: sent after the data, which is known to be delivered.
 * Each registration that counts writes gets an empty piece.  They leave together, else
 * a piece of another write would come between.
 */
static int tell_written(struct lnx_rma_segment *segment)
{
	const struct lnx_rma_op *rma_op = segment->rma_op;
	struct lnx_ep *ep = rma_op->ep;
	struct lnx_wire_put w = { .total = htole64(rma_op->written + segment->len) };
	struct lnx_txe *txe[LNX_RMA_IOV_MAX];
	unsigned i, n = LNX_MAX(rma_op->ntold, 1u);

	for (i = 0; i < n; i++) {
		txe[i] = lnx_txe_get(ep, sizeof(w));
		if (txe[i])
			continue;
		while (i--)
			lnx_txe_put(ep, txe[i]);
		return not_told(segment);
	}
	for (i = 0; i < n; i++) {
		struct lnx_hdr h = {
			.kind = LNX_KIND_PUT, .flags = LNX_WIRE_F_PUT,
			.tag = segment->addr, .key = segment->key, .data = rma_op->data,
		};

		if (rma_op->ntold) {
			h.key = rma_op->told[i];
			h.tag = rma_op->told_addr[i];
		}
		if (i + 1 == n) {
			h.flags |= LNX_WIRE_F_LAST;
			if (rma_op->has_data)
				h.flags |= LNX_WIRE_F_DATA;
		}
		memcpy(txe[i]->frame + sizeof(struct lnx_wire_hdr), &w,
		       sizeof(w));
		txe[i]->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) +
					 sizeof(w));
		lnx_rel_send(ep, segment->peer, txe[i], &h, false);
	}
	return 0;
}

/* A large read is complete. */
static int tell_read(struct lnx_rma_segment *segment)
{
	struct lnx_ep *ep = segment->rma_op->ep;
	struct lnx_txe *txe = lnx_txe_get(ep, 0);
	struct lnx_hdr h = {
		.kind = LNX_KIND_GET, .data = segment->id, .tag = segment->addr,
		.key = segment->key, .flags = LNX_WIRE_F_LAST,
	};

	if (!txe)
		return not_told(segment);
	txe->f.len = sizeof(struct lnx_wire_hdr);
	lnx_rel_send(ep, segment->peer, txe, &h, false);
	return 0;
}

/* All bytes of a segment have been transferred. */
static void finish(struct lnx_rma_segment *segment)
{
	struct lnx_rma_op *rma_op = segment->rma_op;
	bool last = rma_op->n_segments == 1 && !rma_op->err &&
		    !lnx_peer_dead(segment->peer);

	if (segment->kind == LNX_RMA_SEGMENT_WRITE) {
		bool tell = rma_op->tell || rma_op->has_data;

		if (last && tell && tell_written(segment))
			return;
		/* What tells of it is counted as it. */
		if (last && !tell)
			segment->peer->cur->rail->traffic.sends++;
		rma_op->written += segment->len;
	} else if (segment->tell && last) {
		/* Its answer ends the segment, and may come inside the call. */
		segment->kind = LNX_RMA_SEGMENT_DATA;
		segment->len = 0;
		if (tell_read(segment))
			segment->kind = LNX_RMA_SEGMENT_READ;
		return;
	}
	lnx_rma_segment_end(segment, 0);
}

void lnx_rkey_start(struct lnx_ep *ep, struct lnx_rma_segment *segment)
{
	struct lnx_rkey *k = rkey_find(ep, segment->peer, segment->key);
	int err;

	if (lnx_unlikely(segment->kind == LNX_RMA_SEGMENT_DATA)) {
		lnx_read_by_frame(segment);
		return;
	}
	if (segment->moved) {
		finish(segment);
		return;
	}
	/* Its pull ends it. */
	if (lnx_unlikely(segment->pull && lnx_peer_dead(segment->peer)))
		return;
	/*
	 * The known keys do not allow it.  The key may have been registered again
	 * since, so only an answer to this operation's own request refuses it.
	 */
	if (k && k->known && !segment->asked &&
	    lnx_unlikely(aim(segment, &k->keys, NULL))) {
		rkey_drop(ep, k);
		k = NULL;
	}
	if (k && k->known) {
		lnx_list_del(&segment->link);
		if (lnx_unlikely(segment->pull != NULL)) {
			lnx_pull_renewed(segment->pull,
					 aim(segment, &k->keys, segment->pull->rts));
			return;
		}
		err = pull(segment, &k->keys);
		if (err == FI_EAGAIN)
			lnx_rma_wait_turn(segment);
		else if (err)
			lnx_rma_segment_end(segment, err);
		return;
	}
	if (k)
		wait_for(k, segment);
	else if (rkey_ask(segment->peer, segment->key, segment))
		lnx_rma_wait_turn(segment);	/* memory is short: later */
}

void lnx_rkey_answer(struct lnx_ep *ep, struct lnx_rkey *k,
		     const struct lnx_peer *peer, const struct lnx_hdr *h,
		     const uint8_t *payload)
{
	struct lnx_node *n;
	int err = (int)LNX_MIN(h->tag, LNX_ERR_MAX);

	if (k->peer != peer) {
		ep->stats.bad_frames++;
		return;
	}
	if (!err && lnx_wire_keys_get(&k->keys, payload, h->len)) {
		ep->stats.bad_frames++;
		err = FI_EIO;
	}
	lnx_optab_del(&ep->rma.ops, k->op);
	k->known = !err;
	while ((n = lnx_list_pop(&k->waiting))) {
		struct lnx_rma_segment *segment = lnx_list_entry(n, struct lnx_rma_segment, link);

		if (!err)
			lnx_rma_wait_turn(segment);
		else if (segment->pull)
			lnx_pull_renewed(segment->pull, err);
		else
			lnx_rma_segment_end(segment, err);
	}
	if (err)
		rkey_drop(ep, k);
}

LNX_COLD void lnx_rkey_renew(struct lnx_rma_segment *segment)
{
	lnx_rkey_forget(segment->peer, segment->key);
	lnx_rma_wait_turn(segment);
}

void lnx_rma_pulled(struct lnx_rma_segment *segment, int err)
{
	segment->pull = NULL;
	lnx_list_del(&segment->link);
	if (lnx_likely(!err)) {
		finish(segment);
		return;
	}
	/* The next operation requests the keys again. */
	lnx_rkey_forget(segment->peer, segment->key);
	lnx_rma_segment_end(segment, err);
}

void lnx_rma_run(struct lnx_ep *ep)
{
	struct lnx_node todo, *n;

	lnx_list_init(&todo);
	lnx_list_splice(&todo, &ep->rma.waiting);
	ep->work &= ~LNX_WORK_RMA;
	while ((n = lnx_list_pop(&todo)))
		lnx_rkey_start(ep, lnx_list_entry(n, struct lnx_rma_segment, link));
	lnx_serve_run(ep);
}

void lnx_rkeys_outdate(struct lnx_peer *peer)
{
	struct lnx_rkey *k, *next;

	for (k = peer->rma.rkeys; k; k = next) {
		next = k->of_peer;
		if (k->known)
			rkey_drop(peer->ep, k);
	}
}

void lnx_rkeys_forget(struct lnx_peer *peer)
{
	struct lnx_rkey *k;

	while ((k = peer->rma.rkeys)) {
		/* Pulls end their own segments. */
		while (lnx_list_pop(&k->waiting))
			;
		lnx_optab_del(&peer->ep->rma.ops, k->op);
		rkey_drop(peer->ep, k);
	}
}

void lnx_rkeys_free(struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < LNX_RKEYS; i++) {
		struct lnx_rkey *k, *next;

		for (k = ep->rma.rkey[i]; k; k = next) {
			next = k->next;
			free(k);
		}
	}
}
