/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large reads and writes of remote memory: the keys under which a peer's rails know its
 * registration, asked for once, and then the transfer (rx/pull.c).  Called by
 * tx/rma.c, and by progress for those that wait.
 */
#include <stdlib.h>

#include "comp/comp.h"
#include "rx/serve.h"
#include "tx/rkey.h"
#include "tx/rma.h"

#define RKEYS_MAX	64u			/* kept in one bucket */

/* How a peer's rails know one of its registrations. */
struct lnx_rkey {
	uint8_t kind;				/* LNX_PART_KEYS; first */
	struct lnx_rkey *next;			/* ep->rma.rkey */
	struct lnx_peer *peer;
	uint64_t key;
	bool known;
	uint64_t op;				/* of the KEYS frame, until then */
	struct lnx_node waiting;		/* lnx_part.link: reads */
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
	free(k);
}

static void wait_for(struct lnx_rkey *k, struct lnx_part *part)
{
	lnx_list_del(&part->link);
	lnx_list_add_tail(&k->waiting, &part->link);
}

/* Ask for the keys that part, if any, waits for: 0, or -FI_ENOMEM. */
static int rkey_ask(struct lnx_peer *peer, uint64_t key, struct lnx_part *part)
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
	k->kind = LNX_PART_KEYS;
	k->peer = peer;
	k->key = key;
	lnx_list_init(&k->waiting);
	k->next = *at;
	*at = k;
	if (part) {
		part->asked = true;
		wait_for(k, part);
	}
	h.data = k->op;
	txe->len = sizeof(struct lnx_wire_hdr);
	/* An answer, be it invented, may come inside: k and part may be gone. */
	lnx_tx_queue(ep, peer, txe, &h, false);
	return 0;
}

void lnx_rma_wait_turn(struct lnx_part *part)
{
	struct lnx_ep *ep = part->rop->ep;

	lnx_list_del(&part->link);
	lnx_list_add_tail(&ep->rma.waiting, &part->link);
	ep->work |= LNX_WORK_RMA;
}

/* One use of a key is no reason to ask; an odd number, for programs that take turns. */
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
			/* To refuse it is the peer's business: the key may have
			 * been registered again. */
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
	if (!k && !(++peer->nunknown % ASK_EVERY))
		rkey_ask(peer, rma->key, NULL);
	return false;
}

LNX_COLD void lnx_rkey_forget(struct lnx_peer *peer, uint64_t key)
{
	struct lnx_rkey *k = rkey_find(peer->ep, peer, key);

	if (k && k->known)
		rkey_drop(peer->ep, k);
}

static void told_add(struct lnx_rop *rop, uint64_t key, uint64_t addr)
{
	unsigned i;

	rop->tell = true;
	for (i = 0; i < rop->ntold; i++)
		if (rop->told[i] == key)
			return;
	if (rop->ntold < LNX_RMA_IOV_MAX) {
		rop->told_addr[rop->ntold] = addr;
		rop->told[rop->ntold++] = key;
	}
}

/* Is the data in reach?  0: rts says where, if it is not NULL; or why not. */
static int aim(struct lnx_part *part, const struct lnx_keys *keys,
	       struct lnx_rts *rts)
{
	uint64_t off = part->addr - keys->origin;
	unsigned i;

	if (off > keys->len || part->len > keys->len - off ||
	    !(keys->access & (part->kind == LNX_PART_WRITE ?
			      LNX_WIRE_KEYS_WRITE : LNX_WIRE_KEYS_READ)))
		return FI_EACCES;
	if ((keys->access & LNX_WIRE_KEYS_TELL) && part->kind == LNX_PART_WRITE)
		told_add(part->rop, part->key, part->addr);
	part->tell = (keys->access & LNX_WIRE_KEYS_TELL_READ) != 0;
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

/* Calls no core: rx/pull.c posts the reads later. */
static int pull(struct lnx_part *part, const struct lnx_keys *keys)
{
	struct lnx_rxe *rxe;
	struct lnx_rts *rts;
	int err = aim(part, keys, NULL);

	if (err)
		return err;
	rxe = lnx_rxe_get(part->rop->ep);
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
	rts->seg_len[0] = part->len;
	aim(part, keys, rts);
	/* To rx/pull.c it is a message that has met its receive. */
	rxe->nmr = 0;
	rxe->part = part;
	rxe->refuse = 0;
	rxe->held = LNX_HELD_RMA;
	rxe->peer = part->peer;
	rxe->len = rxe->room = part->len;
	rxe->niov = part->niov;
	memcpy(rxe->iov, part->iov, part->niov * sizeof(*part->iov));
	lnx_pull_start(rxe);
	part->pull = rxe;
	return 0;
}

/* There is no memory to tell the peer of what its core did alone: later. */
static int not_told(struct lnx_part *part)
{
	part->moved = true;
	lnx_rma_wait_turn(part);
	return -FI_ENOMEM;
}

/*
 * The last part of a write: after the data, which was seen to be delivered.  Each
 * registration that wants to hear of it gets an empty piece; they leave together, or a
 * piece of another write would come between.
 */
static int tell_written(struct lnx_part *part)
{
	const struct lnx_rop *rop = part->rop;
	struct lnx_ep *ep = rop->ep;
	struct lnx_wire_put w = { .total = htole64(rop->written + part->len) };
	struct lnx_txe *txe[LNX_RMA_IOV_MAX];
	unsigned i, n = LNX_MAX(rop->ntold, 1u);

	for (i = 0; i < n; i++) {
		txe[i] = lnx_txe_get(ep, sizeof(w));
		if (txe[i])
			continue;
		while (i--)
			lnx_txe_put(ep, txe[i]);
		return not_told(part);
	}
	for (i = 0; i < n; i++) {
		struct lnx_hdr h = {
			.kind = LNX_KIND_PUT, .flags = LNX_WIRE_F_PUT,
			.tag = part->addr, .key = part->key, .data = rop->data,
		};

		if (rop->ntold) {
			h.key = rop->told[i];
			h.tag = rop->told_addr[i];
		}
		if (i + 1 == n) {
			h.flags |= LNX_WIRE_F_LAST;
			if (rop->has_data)
				h.flags |= LNX_WIRE_F_DATA;
		}
		memcpy(txe[i]->frame + sizeof(struct lnx_wire_hdr), &w,
		       sizeof(w));
		txe[i]->len = (uint32_t)(sizeof(struct lnx_wire_hdr) +
					 sizeof(w));
		lnx_tx_queue(ep, part->peer, txe[i], &h, false);
	}
	return 0;
}

/* A large read is over. */
static int tell_read(struct lnx_part *part)
{
	struct lnx_ep *ep = part->rop->ep;
	struct lnx_txe *txe = lnx_txe_get(ep, 0);
	struct lnx_hdr h = {
		.kind = LNX_KIND_GET, .data = part->id, .tag = part->addr,
		.key = part->key, .flags = LNX_WIRE_F_LAST,
	};

	if (!txe)
		return not_told(part);
	txe->len = sizeof(struct lnx_wire_hdr);
	lnx_tx_queue(ep, part->peer, txe, &h, false);
	return 0;
}

/* All bytes of a part are where they belong. */
static void finish(struct lnx_part *part)
{
	struct lnx_rop *rop = part->rop;
	bool last = rop->nparts == 1 && !rop->err && !part->peer->gone;

	if (part->kind == LNX_PART_WRITE) {
		if (last && (rop->tell || rop->has_data) && tell_written(part))
			return;
		rop->written += part->len;
	} else if (part->tell && last) {
		/* Its answer ends the part, and may come inside the call. */
		part->kind = LNX_PART_DATA;
		part->len = 0;
		if (tell_read(part))
			part->kind = LNX_PART_READ;
		return;
	}
	lnx_part_end(part, 0);
}

void lnx_rkey_start(struct lnx_ep *ep, struct lnx_part *part)
{
	struct lnx_rkey *k = rkey_find(ep, part->peer, part->key);
	int err;

	if (lnx_unlikely(part->kind == LNX_PART_DATA)) {
		lnx_read_by_frame(part);
		return;
	}
	if (part->moved) {
		finish(part);
		return;
	}
	/* Its pull ends it. */
	if (lnx_unlikely(part->pull && part->peer->gone))
		return;
	/*
	 * What is known does not allow it.  The key may have been registered again since:
	 * only an answer to this operation's own question refuses it.
	 */
	if (k && k->known && !part->asked &&
	    lnx_unlikely(aim(part, &k->keys, NULL))) {
		rkey_drop(ep, k);
		k = NULL;
	}
	if (k && k->known) {
		lnx_list_del(&part->link);
		if (lnx_unlikely(part->pull != NULL)) {
			lnx_pull_renewed(part->pull,
					 aim(part, &k->keys, part->pull->rts));
			return;
		}
		err = pull(part, &k->keys);
		if (err == FI_EAGAIN)
			lnx_rma_wait_turn(part);
		else if (err)
			lnx_part_end(part, err);
		return;
	}
	if (k)
		wait_for(k, part);
	else if (rkey_ask(part->peer, part->key, part))
		lnx_rma_wait_turn(part);	/* memory is short: later */
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
	if (!err && lnx_keys_get(&k->keys, payload, h->len)) {
		ep->stats.bad_frames++;
		err = FI_EIO;
	}
	lnx_optab_del(&ep->rma.ops, k->op);
	k->known = !err;
	while ((n = lnx_list_pop(&k->waiting))) {
		struct lnx_part *part = lnx_list_entry(n, struct lnx_part, link);

		if (!err)
			lnx_rma_wait_turn(part);
		else if (part->pull)
			lnx_pull_renewed(part->pull, err);
		else
			lnx_part_end(part, err);
	}
	if (err)
		rkey_drop(ep, k);
}

LNX_COLD void lnx_rkey_renew(struct lnx_part *part)
{
	lnx_rkey_forget(part->peer, part->key);
	lnx_rma_wait_turn(part);
}

void lnx_rma_pulled(struct lnx_part *part, int err)
{
	part->pull = NULL;
	lnx_list_del(&part->link);
	if (lnx_likely(!err)) {
		finish(part);
		return;
	}
	/* The next one asks anew. */
	lnx_rkey_forget(part->peer, part->key);
	lnx_part_end(part, err);
}

void lnx_rma_run(struct lnx_ep *ep)
{
	struct lnx_node todo, *n;

	lnx_list_init(&todo);
	lnx_list_splice(&todo, &ep->rma.waiting);
	ep->work &= ~LNX_WORK_RMA;
	while ((n = lnx_list_pop(&todo)))
		lnx_rkey_start(ep, lnx_list_entry(n, struct lnx_part, link));
	lnx_serve_run(ep);
}

void lnx_rkeys_outdate(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	unsigned i;

	for (i = 0; i < LNX_RKEYS; i++) {
		struct lnx_rkey *k, *next;

		for (k = ep->rma.rkey[i]; k; k = next) {
			next = k->next;
			if (k->peer == peer && k->known)
				rkey_drop(ep, k);
		}
	}
}

void lnx_rkeys_forget(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	unsigned i;

	for (i = 0; i < LNX_RKEYS; i++) {
		struct lnx_rkey *k, *next;

		for (k = ep->rma.rkey[i]; k; k = next) {
			next = k->next;
			if (k->peer != peer)
				continue;
			/* Pulls end theirs. */
			while (lnx_list_pop(&k->waiting))
				;
			lnx_optab_del(&ep->rma.ops, k->op);
			rkey_drop(ep, k);
		}
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
