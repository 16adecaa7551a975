/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What frame.c, short.c, control.c and failover.c share: the frames that a peer has not
 * acknowledged, by number.  Owner lock held.
 */
#ifndef LNX_FRAME_H
#define LNX_FRAME_H

#include "obj/ep.h"
#include "tx/path.h"
#include "tx/tx.h"

/* Where the frame of that number is kept until it is acknowledged. */
LNX_INLINE struct lnx_txe **lnx_tx_slot(struct lnx_peer *peer, uint32_t seq)
{
	return &peer->slot[seq & (peer->ep->window - 1)];
}

/* tx/failover.c: a frame that tells our id and address.  NULL: memory is short. */
LNX_COLD struct lnx_txe *lnx_tx_hello(struct lnx_ep *ep);

/* A frame has left that acknowledges all we have received. */
LNX_INLINE void lnx_tx_ack_piggybacked(struct lnx_peer *peer)
{
	/* It needs reports of its paths too, and only an ACK has those. */
	if (lnx_unlikely(peer->multipath))
		return;
	/* It stays on ack_list: it would be back with the next frame. */
	peer->acks_pending = 0;
	peer->ack_since_ns = 0;
	peer->ack_now = false;
}

/* Initialise a frame that was just taken from that pool. */
LNX_INLINE void lnx_txe_init(struct lnx_txe *txe, uint8_t cls)
{
	txe->op.type = LNX_OP_TXE;
	txe->cls = cls;
	txe->acked = false;
	txe->reported = false;
	txe->matters = 0;
	txe->slow_ack = 0;
	txe->rxe = NULL;
	lnx_list_init(&txe->link);
}

/* A frame has left that acknowledges all we had received when it left. */
LNX_INLINE void lnx_tx_sent(struct lnx_ep *ep, struct lnx_peer *peer,
			    struct lnx_path *path, uint32_t ack, uint64_t bytes)
{
	path->sent += bytes;
	if (lnx_likely(ack == peer->seq.next))
		lnx_tx_ack_piggybacked(peer);
	path->rail->poll_credits = ep->poll_hot;
}

LNX_INLINE bool lnx_tx_window_open(const struct lnx_ep *ep,
				   const struct lnx_peer *peer)
{
	return peer->tx_posted - peer->tx_una < ep->window;
}

/* A new frame was posted: put it into the window, and give the application its
 * completion unless that waits for the acknowledgement. */
LNX_INLINE void lnx_tx_in_window(struct lnx_ep *ep, struct lnx_peer *peer,
				 struct lnx_txe *txe, uint64_t bytes)
{
	peer->slot[txe->seq & (ep->window - 1)] = txe;
	peer->tx_posted++;
	peer->una_bytes += bytes;
	if (lnx_txe_due(txe) && !txe->comp_at_ack)
		lnx_tx_posted(ep, txe);
	if (lnx_unlikely(!lnx_list_linked(&peer->retx_link)))
		lnx_tx_watch(ep, peer);
}

/* tx/frame.c: the path did not take a frame that has its number, the first one not
 * posted.  The frame waits in the queue. */
LNX_COLD void lnx_tx_refused(struct lnx_ep *ep, struct lnx_peer *peer,
			     struct lnx_path *path, struct lnx_txe *txe);

/* The peer acknowledges all frames before number ack. */
LNX_INLINE void lnx_tx_ack(struct lnx_ep *ep, struct lnx_peer *peer, uint32_t ack)
{
	uint32_t una = peer->tx_una;
	struct lnx_txe **slot, *txe;

	if (ack == una)
		return;
	if (lnx_unlikely(ack != una + 1 || peer->tx_flags)) {
		lnx_tx_acked(peer, ack);
		return;
	}
	/* The usual case: one frame, no exceptional state.  Or none: its slot is empty
	 * then. */
	slot = &peer->slot[una & (ep->window - 1)];
	txe = *slot;
	if (lnx_unlikely(!txe || txe->slow_ack)) {
		lnx_tx_acked(peer, ack);
		return;
	}
	*slot = NULL;
	peer->tx_una = ack;
	peer->una_bytes -= txe->len;
	lnx_txe_put(ep, txe);
	if (peer->npath > 1 && ack == peer->tx_posted)
		lnx_path_all_delivered(peer);
}

#endif
