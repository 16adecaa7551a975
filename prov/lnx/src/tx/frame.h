/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What frame.c, control.c and leave.c share: the frames that a peer has not
 * acknowledged, by number.  Owner lock held.
 */
#ifndef LNX_FRAME_H
#define LNX_FRAME_H

#include "obj/ep.h"
#include "tx/tx.h"

/* Where the frame of that number is kept until it is acknowledged. */
LNX_INLINE struct lnx_txe **lnx_tx_slot(struct lnx_peer *peer, uint32_t seq)
{
	return &peer->slot[seq & (peer->ep->window - 1)];
}

/* tx/leave.c: a frame that says who we are, and where.  NULL: memory is short. */
LNX_COLD struct lnx_txe *lnx_tx_hello(struct lnx_ep *ep);

/* A frame left that carries all we have received. */
LNX_INLINE void lnx_tx_ack_rode(struct lnx_ep *ep, struct lnx_peer *peer)
{
	/* It wants to hear of its paths too, and only an ACK says that. */
	if (lnx_unlikely(peer->spread))
		return;
	peer->owed = 0;
	peer->ack_now = false;
	if (lnx_list_linked(&peer->ack_link)) {
		lnx_list_del(&peer->ack_link);
		if (lnx_list_empty(&ep->ack_peers))
			ep->work &= ~(LNX_WORK_ACK | LNX_WORK_OWE);
	}
}

#endif
