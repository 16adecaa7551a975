/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations on remote memory that wait for an answer: what they are made of, how
 * answers of peers end them, and how their application hears of it.  Called by
 * tx/rma.c, and by rx/arrive.c from inside cores: nothing but lnx_rop_admit calls a
 * core.
 */
#include <stdlib.h>

#include "comp/comp.h"
#include "rx/serve.h"
#include "tx/rkey.h"
#include "tx/rma.h"

/* ---- walking ---- */

void lnx_cursor_get(struct lnx_cursor *c, void *dst, size_t len)
{
	char *p = dst;

	while (len) {
		size_t n = LNX_MIN(len, c->iov->iov_len - c->off);

		if (n)
			memcpy(p, (char *)c->iov->iov_base + c->off, n);
		p += n;
		len -= n;
		c->off += n;
		if (c->off == c->iov->iov_len && c->n > 1) {
			c->iov++;
			c->n--;
			c->off = 0;
		}
	}
}

size_t lnx_cursor_slice(struct lnx_cursor *c, size_t len, struct iovec *out)
{
	size_t i = 0;

	while (len) {
		size_t n = LNX_MIN(len, c->iov->iov_len - c->off);

		if (n) {
			out[i].iov_base = (char *)c->iov->iov_base + c->off;
			out[i++].iov_len = n;
		}
		len -= n;
		c->off += n;
		if (c->off == c->iov->iov_len && c->n > 1) {
			c->iov++;
			c->n--;
			c->off = 0;
		}
	}
	return i;
}

/* ---- operations and their parts ---- */

#define TRIES	64		/* as for frames */

/* Progress calls cores, unlike all else here: only from tx/rma.c, tx/amo.c. */
static LNX_COLD int make_room(struct lnx_ep *ep, struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < TRIES && peer->nparts >= ep->tx_size; i++)
		lnx_ep_progress_all(ep);
	if (peer->gone)
		return -FI_EHOSTUNREACH;
	return peer->nparts < ep->tx_size ? 0 : -FI_EAGAIN;
}

int lnx_rop_admit(struct lnx_ep *ep, struct lnx_peer *peer)
{
	return lnx_likely(peer->nparts < ep->tx_size) ? 0 : make_room(ep, peer);
}

struct lnx_rop *lnx_rop_get(struct lnx_ep *ep, void *context,
			    uint64_t cq_flags, bool want_comp)
{
	struct lnx_rop *rop = lnx_pool_get(&ep->rma.rop_pool);

	if (lnx_unlikely(!rop))
		return NULL;
	rop->ep = ep;
	rop->context = context;
	rop->cq_flags = cq_flags;
	rop->nparts = 1;
	rop->err = 0;
	rop->want_comp = want_comp;
	rop->tell = false;
	rop->has_data = false;
	rop->ntold = 0;
	rop->written = 0;
	return rop;
}

void lnx_rop_done(struct lnx_rop *rop, int err)
{
	struct lnx_ep *ep = rop->ep;

	if (lnx_unlikely(err) && !rop->err)
		rop->err = err;
	if (--rop->nparts)
		return;
	if (lnx_unlikely(rop->err)) {
		lnx_tx_fail(ep, rop->context, rop->cq_flags, rop->err,
			    rop->err);
	} else {
		if (rop->want_comp)
			lnx_cq_write(ep->tx_cq, rop->context, rop->cq_flags, 0,
				     NULL, 0, 0, FI_ADDR_NOTAVAIL);
		lnx_cntr_ok(ep, lnx_tx_cntr(rop->cq_flags));
	}
	lnx_pool_put(&ep->rma.rop_pool, rop);
}

struct lnx_part *lnx_part_get(struct lnx_rop *rop, struct lnx_peer *peer,
			      enum lnx_part_kind kind)
{
	struct lnx_ep *ep = rop->ep;
	struct lnx_part *part = lnx_pool_get(&ep->rma.part_pool);

	if (lnx_unlikely(!part))
		return NULL;
	part->id = lnx_optab_add(&ep->rma.ops, part);
	if (lnx_unlikely(!part->id)) {
		lnx_pool_put(&ep->rma.part_pool, part);
		return NULL;
	}
	part->rop = rop;
	part->peer = peer;
	part->kind = (uint8_t)kind;
	part->niov = 0;
	part->pull = NULL;
	part->moved = false;
	part->tell = false;
	part->asked = false;
	part->len = 0;
	lnx_list_init(&part->link);
	lnx_list_add_tail(&ep->rma.parts, &part->all);
	rop->nparts++;
	/* Until it ends, its peer is looked after. */
	peer->nparts++;
	if (lnx_unlikely(!lnx_list_linked(&peer->una_link)))
		lnx_tx_watch(ep, peer);
	return part;
}

static void part_put(struct lnx_part *part)
{
	struct lnx_ep *ep = part->rop->ep;

	lnx_optab_del(&ep->rma.ops, part->id);
	lnx_list_del(&part->all);
	lnx_list_del(&part->link);
	part->peer->nparts--;
	lnx_pool_put(&ep->rma.part_pool, part);
}

void lnx_part_end(struct lnx_part *part, int err)
{
	struct lnx_rop *rop = part->rop;

	part_put(part);
	lnx_rop_done(rop, err);
}

void lnx_rop_drop(struct lnx_rop *rop)
{
	struct lnx_ep *ep = rop->ep;
	struct lnx_node *n, *tmp;

	/* Its parts are the last ones made. */
	for (n = ep->rma.parts.prev; n != &ep->rma.parts; n = tmp) {
		struct lnx_part *part = lnx_list_entry(n, struct lnx_part, all);

		tmp = n->prev;
		if (part->rop != rop)
			break;
		part_put(part);
	}
	lnx_pool_put(&ep->rma.rop_pool, rop);
}

/* ---- answers ---- */

/* The application has its completion; all that is left is to say so. */
static LNX_COLD void refused(struct lnx_ep *ep, const struct lnx_peer *peer,
			     int err)
{
	ep->stats.rma_refused++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "peer %016llx refused a write or atomic that was complete here: %s; ask for FI_DELIVERY_COMPLETE to have such errors reported\n",
		       (unsigned long long)peer->eid, fi_strerror(err));
}

void lnx_rma_answer(struct lnx_ep *ep, struct lnx_peer *peer,
		    const struct lnx_hdr *h, const uint8_t *payload)
{
	struct lnx_part *part = lnx_optab_get(&ep->rma.ops, h->data);
	int err = (int)LNX_MIN(h->tag, LNX_ERR_MAX);

	if (lnx_unlikely(!part)) {
		/* Or of a write that was over long ago: its target says no. */
		if (!h->data && err)
			refused(ep, peer, err);
		else
			ep->stats.bad_frames++;
		return;
	}
	if (part->kind == LNX_PART_KEYS) {
		lnx_rkey_answer(ep, (struct lnx_rkey *)part, peer, h, payload);
		return;
	}
	if (lnx_unlikely(part->peer != peer ||
			 (part->kind != LNX_PART_DATA &&
			  part->kind != LNX_PART_STATUS))) {
		ep->stats.bad_frames++;
		return;
	}
	if (part->kind == LNX_PART_DATA && !err) {
		if (lnx_unlikely(h->len != part->len)) {
			ep->stats.bad_frames++;
			err = FI_EIO;
		} else {
			lnx_iov_put(part->iov, part->niov, payload, h->len);
		}
	}
	lnx_part_end(part, err);
}

/* ---- beginning and end ---- */

LNX_COLD void lnx_rma_fail_peer(struct lnx_peer *peer, int err)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->rma.parts, n, tmp) {
		struct lnx_part *part = lnx_list_entry(n, struct lnx_part, all);

		/* Cores end theirs, and pulls when no read is outstanding. */
		if (part->peer == peer && !part->pull &&
		    part->kind != LNX_PART_CORE)
			lnx_part_end(part, err);
	}
	lnx_rkeys_forget(peer);
}

void lnx_rma_init(struct lnx_ep *ep)
{
	lnx_pool_init(&ep->rma.rop_pool, sizeof(struct lnx_rop), 64);
	lnx_pool_init(&ep->rma.part_pool, sizeof(struct lnx_part), 64);
	lnx_list_init(&ep->rma.parts);
	lnx_list_init(&ep->rma.waiting);
	lnx_list_init(&ep->rma.asks);
}

void lnx_rma_fini(struct lnx_ep *ep)
{
	lnx_rkeys_free(ep);
	lnx_serve_fini(ep);
	lnx_optab_fini(&ep->rma.ops);
	lnx_pool_fini(&ep->rma.rop_pool);
	lnx_pool_fini(&ep->rma.part_pool);
}
