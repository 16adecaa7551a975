/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends of large frames that complete before the peer has acknowledged them.  Called by
 * rel/done.c (the core let go of a frame) and rel/run.c.
 *
 * Such a frame leaves from the application's buffer, and may have to leave again until it
 * is acknowledged.  A copy of its payload ends that: the copy takes its place, and the send
 * completes, whatever the peer's program does.  The copy is made after the frame has left,
 * while the peer receives it, and in a pass that found nothing else to do: often the
 * acknowledgement comes before, with what the peer answers, and then none is made.
 *
 * One peer's copies have at most FI_LNX_SEND_BUFFER bytes.  For every half of that one frame
 * asks for its acknowledgement: so what was sent after the last such frame finds room as soon
 * as that one is acknowledged, even if the peer's program says nothing more.
 */
#include "obj/eager.h"
#include "rel/frame.h"

/* Passes that find something to do while a send waits. */
#define BUSY_PASSES	16u

/* Anything that came or left in this pass. */
static bool idle(const struct lnx_ep *ep)
{
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i]->poll_credits >= ep->poll_credits && ep->poll_credits)
			return false;
	return true;
}

void lnx_keep_wait(struct lnx_txe *txe)
{
	struct lnx_ep *ep = txe->peer->ep;

	if (lnx_list_linked(&txe->f.link))
		return;
	if (lnx_list_empty(&ep->eager.keep))
		ep->eager.keep_pass = ep->poll.pass;
	lnx_list_add_tail(&ep->eager.keep, &txe->f.link);
	ep->work |= LNX_WORK_KEEP;
}

/* Those that found no room before. */
static LNX_COLD void keep_again(struct lnx_peer *peer)
{
	uint64_t left = peer->ep->conf->send_buffer - peer->eager->kept;
	uint32_t seq;

	peer->eager->full = false;
	for (seq = peer->chan.una; seq != peer->chan.posted; seq++) {
		struct lnx_txe *txe = lnx_frame_at(peer, seq);
		uint64_t bytes;

		if (!txe || txe->keep != LNX_KEEP_MAY || txe->f.in_core ||
		    !lnx_txe_due(txe))
			continue;
		bytes = lnx_txe_bytes(txe) - sizeof(struct lnx_wire_hdr);
		if (bytes > left) {
			peer->eager->full = true;
			return;
		}
		left -= bytes;
		lnx_keep_wait(txe);
	}
}

LNX_COLD void lnx_keep_acked(struct lnx_peer *peer)
{
	if (peer->eager->full)
		keep_again(peer);
	if (lnx_chan_idle(&peer->chan))
		peer->eager->unasked = 0;
}

LNX_COLD void lnx_keep_end(struct lnx_peer *peer)
{
	struct lnx_peer_eager *e = peer->eager;

	if (!e)
		return;
	e->kept = 0;
	e->full = false;
	lnx_credit_end(&e->credit, &peer->ep->eager.pool);
}

/* The copy takes the frame's place in the window, and the send completes.  Without memory
 * or room it waits for the next acknowledgement. */
static void keep(struct lnx_ep *ep, struct lnx_txe *txe)
{
	struct lnx_peer *peer = txe->peer;
	uint64_t payload = lnx_txe_bytes(txe) - sizeof(struct lnx_wire_hdr);
	struct lnx_peer_eager *e = peer->eager;	/* lnx_eager_ack_flags made it */
	struct lnx_txe *copy;
	uint8_t *to;
	unsigned i;

	copy = e->kept + payload > ep->conf->send_buffer ? NULL :
							   lnx_txe_get(ep, payload);
	if (!copy) {
		e->full = true;
		return;
	}
	memcpy(copy->frame, txe->frame, sizeof(struct lnx_wire_hdr));
	to = copy->frame + sizeof(struct lnx_wire_hdr);
	for (i = 0; i < txe->f.niov; i++) {
		memcpy(to, txe->iov[i].iov_base, txe->iov[i].iov_len);
		to += txe->iov[i].iov_len;
	}
	copy->matters = txe->matters;
	copy->keep = LNX_KEEP_IS;
	copy->peer = peer;
	copy->context = txe->context;
	copy->cq_flags = txe->cq_flags;
	copy->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + payload);
	copy->f.seq = txe->f.seq;
	copy->f.path = txe->f.path;
	copy->f.retransmitted = txe->f.retransmitted;
	/* Its acknowledgement does more than release it. */
	copy->f.comp_at_ack = true;
	*lnx_chan_slot(&peer->chan, txe->f.seq) = &copy->f;
	e->kept += (uint32_t)payload;
	ep->stats.send_copies++;
	lnx_txe_put(ep, txe);
	lnx_done_posted(ep, copy);
}

void lnx_keep_run(struct lnx_ep *ep)
{
	struct lnx_node *n;

	if (!idle(ep) && ep->poll.pass - ep->eager.keep_pass < BUSY_PASSES)
		return;
	n = lnx_list_pop(&ep->eager.keep);
	if (n) {
		struct lnx_txe *txe = lnx_list_entry(n, struct lnx_txe, f.link);

		/* Sent again meanwhile: when the core has let go of it. */
		if (!txe->f.in_core)
			keep(ep, txe);
		ep->eager.keep_pass = ep->poll.pass;
	}
	if (lnx_list_empty(&ep->eager.keep))
		ep->work &= ~LNX_WORK_KEEP;
}
