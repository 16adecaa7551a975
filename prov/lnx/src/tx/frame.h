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

/* The frame of that number in peer's window; NULL: it was given away. */
LNX_INLINE struct lnx_txe *lnx_tx_at(const struct lnx_peer *peer, uint32_t seq)
{
	struct lnx_frame *f = *lnx_chan_slot(&peer->chan, seq);

	return f ? lnx_txe_of(f) : NULL;
}

/* tx/failover.c: our next frame to peer, a HELLO, and its header.  It must be numbered
 * before any other.  NULL: memory is short. */
LNX_COLD struct lnx_txe *lnx_tx_hello(struct lnx_peer *peer, struct lnx_hdr *h);

/* A frame has left that acknowledges all we have received. */
LNX_INLINE void lnx_tx_ack_piggybacked(struct lnx_peer *peer)
{
	/* It needs reports of its paths too, and only an ACK has those. */
	if (lnx_unlikely(peer->rx.multipath))
		return;
	/* It stays on ack_list: it would be back with the next frame. */
	lnx_chan_ack_sent(&peer->chan);
}

/* Initialise a frame that was just taken from that pool. */
LNX_INLINE void lnx_txe_init(struct lnx_txe *txe, uint8_t cls)
{
	txe->op.type = LNX_OP_TXE;
	txe->cls = cls;
	txe->f.acked = false;
	txe->reported = false;
	txe->matters = 0;
	txe->f.slow_ack = 0;
	txe->rxe = NULL;
	lnx_list_init(&txe->f.link);
}

/* A frame has left that acknowledges all we had received when it left. */
LNX_INLINE void lnx_tx_sent(struct lnx_ep *ep, struct lnx_peer *peer,
			    struct lnx_path *path, uint32_t ack, uint64_t bytes)
{
	path->sent += bytes;
	if (lnx_likely(ack == peer->chan.rx.next))
		lnx_tx_ack_piggybacked(peer);
	path->rail->poll_credits = ep->poll_hot;
}

/* A new frame was posted: put it into the window, and give the application its
 * completion unless that waits for the acknowledgement. */
LNX_INLINE void lnx_tx_in_window(struct lnx_ep *ep, struct lnx_peer *peer,
				 struct lnx_txe *txe, uint64_t bytes)
{
	lnx_chan_posted(&peer->chan, &txe->f, bytes);
	if (lnx_txe_due(txe) && !txe->f.comp_at_ack)
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
	struct lnx_frame *f;

	if (ack == peer->chan.una)
		return;
	f = lnx_chan_ack_one(&peer->chan, ack);
	if (lnx_unlikely(!f)) {
		lnx_tx_acked(peer, ack);
		return;
	}
	lnx_txe_put(ep, lnx_txe_of(f));
	if (peer->npath > 1 && lnx_chan_idle(&peer->chan))
		lnx_path_all_delivered(peer);
}

#endif
