/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that wait because their receiver has too many already.  See throttle.h.  Called
 * by rel/send.c for a new frame, by rel/recv.c for an ACK, and by rel/pump.c.
 */
#include "rel/throttle.h"

#include "obj/throttle.h"
#include "rel/frame.h"

static struct lnx_frame *first(const struct lnx_peer_throttle *t)
{
	return lnx_list_empty(&t->queue) ? NULL :
	       lnx_list_entry(t->queue.next, struct lnx_frame, link);
}

LNX_COLD int lnx_throttle_frame(struct lnx_ep *ep, struct lnx_peer *peer,
				struct lnx_txe *txe, struct lnx_hdr *h, bool no_queue)
{
	struct lnx_peer_throttle *t = peer->backlog.throttle;

	if (!lnx_kind_message(h->kind))
		return 1;
	/* A MORE is behind its first frame, here or there. */
	if (!t->n && (h->kind == LNX_KIND_MORE ||
		      lnx_allowance_allows(&t->ours, peer->chan.next)))
		return 1;
	if (no_queue)
		return -FI_EAGAIN;
	txe->peer = peer;
	h->seq = h->ack = 0;
	h->src = peer->sid;
	h->dst = peer->eid;
	h->rail = h->path = 0;
	lnx_hdr_put(lnx_txe_hdr(txe), h);
	lnx_list_add_tail(&t->queue, &txe->f.link);
	t->n++;
	ep->stats.throttled_frames++;
	return 0;
}

LNX_COLD void lnx_throttle_learn(struct lnx_peer *peer, uint32_t change, uint32_t end)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle(peer);

	if (!t || !lnx_allowance_learn(&t->ours, change, end))
		return;
	if (lnx_allowance_throttles(&t->ours))
		peer->chan.flags |= LNX_CHAN_THROTTLED;
	else if (!t->n)
		peer->chan.flags &= (uint8_t)~LNX_CHAN_THROTTLED;
	if (t->n)
		lnx_peer_pump(peer);
}

LNX_COLD void lnx_throttle_release(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = peer->backlog.throttle;
	struct lnx_chan *c = &peer->chan;
	struct lnx_txe *txe;
	struct lnx_frame *f;

	while ((f = first(t))) {
		struct lnx_wire_hdr *w = lnx_txe_hdr(lnx_txe_of(f));

		if (lnx_kind_begins(w->kind) && !lnx_allowance_allows(&t->ours, c->next))
			return;
		txe = lnx_throttle_pop(peer);
		lnx_hdr_set_seq(w, lnx_chan_number(c, &txe->f));
		lnx_chan_queue(c, &txe->f, false);
	}
	if (!lnx_allowance_throttles(&t->ours))
		c->flags &= (uint8_t)~LNX_CHAN_THROTTLED;
}

LNX_COLD struct lnx_txe *lnx_throttle_pop(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = peer->backlog.throttle;
	struct lnx_frame *f = t ? first(t) : NULL;

	if (!f)
		return NULL;
	lnx_list_del(&f->link);
	t->n--;
	return lnx_txe_of(f);
}
