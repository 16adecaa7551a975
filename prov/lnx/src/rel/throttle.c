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
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);

	if (!lnx_wire_kind_message(h->kind))
		return 1;
	/* A MORE is behind its first frame, here or there. */
	if (!t->n && h->kind == LNX_KIND_MORE)
		return 1;
	/* It may not leave after all: then it must not count. */
	if (no_queue)
		return -FI_EAGAIN;
	if (!t->n && !t->take_back && lnx_backlog_allowed_begin(&t->ours))
		return 1;
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

static uint8_t kind_of(const struct lnx_frame *f)
{
	const struct lnx_txe *txe = lnx_container_of(f, struct lnx_txe, f);

	return ((const struct lnx_wire_hdr *)txe->frame)->kind;
}

static bool begins(const struct lnx_frame *f)
{
	return lnx_wire_kind_begins(kind_of(f));
}

/* Messages in frames that have left and are not acknowledged. */
static uint32_t begun(const struct lnx_chan *c)
{
	uint32_t seq, n = 0;

	for (seq = c->una; seq != c->posted; seq++) {
		const struct lnx_frame *f = *lnx_chan_slot(c, seq);

		n += f && begins(f);
	}
	return n;
}

LNX_COLD void lnx_throttle_learn(struct lnx_peer *peer, uint32_t change, uint32_t n)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle(peer);

	if (!t || !lnx_backlog_allowed_news(&t->ours, change))
		return;
	lnx_backlog_allowed_learn(&t->ours, change, n, begun(&peer->chan));
	/* Not now: one of the queue may be about to be posted. */
	t->take_back = lnx_backlog_allowed_throttled(&t->ours) && peer->chan.nqueued;
	if (lnx_backlog_allowed_throttled(&t->ours))
		peer->chan.flags |= LNX_CHAN_THROTTLED;
	else if (!t->n)
		peer->chan.flags &= (uint8_t)~LNX_CHAN_THROTTLED;
	if (t->n || t->take_back)
		lnx_peer_pump(peer);
}

/*
 * Messages at the end of chan.queue, whole ones, are to wait here again, before the others.
 * Those that are before a frame of another kind stay, and count as begun.
 */
static void take_back(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	struct lnx_chan *c = &peer->chan;
	const struct lnx_node *node;
	uint32_t n = 0, whole = 0, stay = 0;

	t->take_back = false;
	for (node = c->queue.prev; node != &c->queue; node = node->prev) {
		const struct lnx_frame *f = lnx_container_of(node, struct lnx_frame, link);

		if (!lnx_wire_kind_message(kind_of(f)))
			break;
		n++;
		if (begins(f))
			whole = n;
	}
	for (; node != &c->queue; node = node->prev)
		stay += begins(lnx_container_of(node, struct lnx_frame, link));
	peer->ep->stats.throttled_frames += whole;
	for (; whole; whole--, t->n++) {
		lnx_list_add_head(&t->queue, &lnx_chan_take_back(c)->link);
		if (lnx_unlikely(peer->ep->policy.limited))
			lnx_peer_credits_unqueued(peer);
	}
	t->ours.left -= LNX_MIN(stay, t->ours.left);
}

LNX_COLD void lnx_throttle_release(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	struct lnx_chan *c = &peer->chan;
	struct lnx_frame *f;

	if (t->take_back)
		take_back(peer);
	while ((f = first(t))) {
		if (begins(f) && !lnx_backlog_allowed_begin(&t->ours))
			return;
		lnx_throttle_pop(peer);
		lnx_hdr_set_seq(lnx_txe_hdr(lnx_txe_of(f)), lnx_chan_number(c, f));
		lnx_chan_queue(c, f, false);
		if (lnx_unlikely(peer->ep->policy.limited))
			lnx_peer_credits_queued(peer);
	}
	if (!lnx_backlog_allowed_throttled(&t->ours))
		c->flags &= (uint8_t)~LNX_CHAN_THROTTLED;
}

LNX_COLD struct lnx_txe *lnx_throttle_pop(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	struct lnx_frame *f = t ? first(t) : NULL;

	if (!f)
		return NULL;
	lnx_list_del(&f->link);
	t->n--;
	return lnx_txe_of(f);
}
