/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Short framed sends in the usual state of a peer.  Called by msg/submit.h before
 * rel/send.c, which takes everything else: rel/send.c does the same steps, for every
 * message and every state of the peer.
 */
#include "rel/short.h"
#include "rail/rail.h"
#include "rel/detect.h"
#include "rel/frame.h"

LNX_HOT
bool lnx_rel_short(struct lnx_ep *ep, struct lnx_peer *peer, const void *buf,
		  size_t len, uint64_t tag, unsigned what, uint64_t data,
		  void *context)
{
	struct lnx_hdr h = {
		.kind = (uint8_t)what, .flags = (uint8_t)(what >> 8),
		.tag = tag, .data = data, .len = len,
	};
	size_t frame_len = sizeof(struct lnx_wire_hdr) + len;
	struct lnx_path *path;
	struct lnx_rail *rail;
	struct lnx_txe *txe;

	if (lnx_unlikely(!peer || peer->chan.flags || lnx_peer_dead(peer) ||
			 peer->shm_addr != FI_ADDR_NOTAVAIL || ep->fault))
		return false;
	path = lnx_sched_usual(peer);
	if (lnx_unlikely(!path || !lnx_chan_window_open(&peer->chan)))
		return false;
	rail = path->rail;
	if (lnx_unlikely(!rail->core_ep || len > ep->limits.short_max ||
			 frame_len > rail->inject_size))
		return false;
	txe = lnx_pool_get(&ep->txe_pool[0]);
	if (lnx_unlikely(!txe))
		return false;

	lnx_txe_init(txe, 0);
	txe->f.len = (uint32_t)frame_len;
	txe->counts = ep->cntr[LNX_CNTR_SEND] != NULL;
	txe->context = context;
	txe->cq_flags = FI_SEND | (h.kind == LNX_KIND_TAG ? FI_TAGGED : FI_MSG);
	if (!(what & LNX_SHORT_INJECT)) {
		txe->want_comp = (ep->tx_flags & FI_COMPLETION) != 0;
		txe->tells = true;
	}
	lnx_frame_number(peer, path, txe, &h);
	if (lnx_likely(len))
		memcpy(txe->frame + sizeof(struct lnx_wire_hdr), buf, len);
	ep->stats.send_count++;
	ep->stats.send_length += len;
	if (lnx_unlikely(lnx_frame_inject(ep, peer, path, txe))) {
		lnx_send_refused(ep, peer, path, txe);
		return true;
	}
	rail->traffic.sends++;
	rail->traffic.send_length += len;
	lnx_frame_in_window(ep, peer, txe, frame_len);
	return true;
}
