/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Framed sends of messages.  Called by msg/submit.h; puts the payload into a frame, or
 * announces it (msg/rndv.c), and hands that to rel/send.c.
 */
#include "msg/confirm.h"
#include "msg/rx.h"
#include "msg/submit.h"
#include "msg/tx.h"
#include "rail/direct.h"

LNX_HOT
ssize_t lnx_msg_send(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_tx *tx)
{
	bool tagged = lnx_call_tagged(tx->call);
	bool data = lnx_call_data(tx->call) ||
		    (tx->op_flags & FI_REMOTE_CQ_DATA);
	uint64_t cq_flags = FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
	bool no_queue;
	struct lnx_hdr h;
	struct lnx_txe *txe;
	ssize_t ret;
	size_t len;

	if (lnx_unlikely(!peer || !peer->npath || lnx_peer_dead(peer))) {
		ret = lnx_rel_find_cold(ep, tx->dest, &peer);
		if (ret)
			return ret;
	}
	/* A local peer that was made only now, or has sends queued. */
	if (lnx_unlikely(peer->shm_addr != FI_ADDR_NOTAVAIL)) {
		if (peer->shm.notes && lnx_msg_is_large(tx)) {
			ret = lnx_large_send(ep, peer, tx);
		} else if ((tx->op_flags & FI_DELIVERY_COMPLETE) &&
			   (!lnx_call_inject(tx->call) ||
			    ep->cntr[LNX_CNTR_SEND])) {
			ret = lnx_confirm_send(ep, peer, tx);
		} else {
			ret = peer->shm.nqueued ? -FI_EAGAIN :
			      lnx_core_post(ep->shm->core_ep, peer->shm_addr,
					    tx, NULL);
			if (ret == -FI_EAGAIN)
				ret = lnx_direct_retry(ep, peer, tx);
		}
		if (!ret) {
			ep->stats.direct_sends++;
			ep->stats.direct_send_length +=
				lnx_iov_len(tx->iov, tx->niov);
		}
		return ret;
	}
	len = lnx_iov_len(tx->iov, tx->niov);
	if (lnx_unlikely(len > ep->limits.max_msg_size))
		return -FI_EMSGSIZE;
	if (lnx_unlikely((tx->op_flags & FI_INJECT) && len > ep->inject_size))
		return -FI_EINVAL;
	if (lnx_unlikely(peer->self)) {
		ret = lnx_rx_copy(ep, peer, tagged, tx->tag, tx->data,
				  data ? LNX_WIRE_F_DATA : 0, tx->iov,
				  tx->niov, len);
		if (ret)
			return ret;
		lnx_cntr_ok(ep, LNX_CNTR_SEND);
		if (tx->op_flags & FI_COMPLETION)
			lnx_cq_write(ep->tx_cq, tx->context, cq_flags, 0, NULL,
				     0, 0, FI_ADDR_NOTAVAIL);
		return 0;
	}
	ret = lnx_rel_room(ep, peer, lnx_call_inject(tx->call) ? FI_INJECT :
							  tx->op_flags,
		    &no_queue);
	if (lnx_unlikely(ret))
		return ret;
	if (lnx_unlikely(len > ep->limits.eager && !lnx_call_inject(tx->call) &&
			 !(tx->op_flags & FI_INJECT))) {
		struct lnx_announce a = {
			.kind = tagged ? LNX_KIND_RTS_TAG : LNX_KIND_RTS_MSG,
			.flags = data ? LNX_WIRE_F_DATA : 0, .tag = tx->tag,
			.data = tx->data, .iov = tx->iov, .niov = tx->niov,
			.len = len, .context = tx->context,
			.cq_flags = cq_flags,
			.want_comp = (tx->op_flags & FI_COMPLETION) != 0,
		};

		ret = lnx_rndv_announce(ep, peer, &a);
		if (!ret) {
			ep->stats.send_count++;
			ep->stats.send_length += len;
		}
		return ret;
	}

	txe = lnx_txe_get(ep, len > ep->limits.copy ? 0 : len);
	if (lnx_unlikely(!txe))
		return -FI_EAGAIN;
	txe->context = tx->context;
	txe->cq_flags = cq_flags;
	txe->want_comp = !lnx_call_inject(tx->call) &&
			 (tx->op_flags & FI_COMPLETION);
	txe->counts = ep->cntr[LNX_CNTR_SEND] != NULL;
	/* Its success may not be reported, but its failure is. */
	txe->tells = !lnx_call_inject(tx->call);
	/* An inject that is not counted ends unseen, at any time. */
	txe->f.comp_at_ack = (tx->op_flags & LNX_LEVELS) && txe->matters;
	if (lnx_likely(len <= ep->limits.copy ||
		       (tx->op_flags & FI_INJECT) ||
		       lnx_call_inject(tx->call))) {
		if (lnx_unlikely(len > ep->limits.copy)) {
			/* An injected payload is always copied. */
			struct lnx_txe *big = lnx_txe_get(ep, len);

			if (!big) {
				lnx_txe_put(ep, txe);
				return -FI_EAGAIN;
			}
			big->context = txe->context;
			big->cq_flags = txe->cq_flags;
			big->want_comp = txe->want_comp;
			big->counts = txe->counts;
			big->tells = txe->tells;
			big->f.comp_at_ack = txe->f.comp_at_ack;
			lnx_txe_put(ep, txe);
			txe = big;
		}
		lnx_iov_get(txe->frame + sizeof(struct lnx_wire_hdr), tx->iov,
			    tx->niov);
		txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + len);
	} else {
		memcpy(txe->iov, tx->iov, tx->niov * sizeof(*tx->iov));
		txe->f.niov = (uint8_t)tx->niov;
		txe->f.comp_at_ack = true;
		txe->f.len = sizeof(struct lnx_wire_hdr);
	}
	h.kind = tagged ? LNX_KIND_TAG : LNX_KIND_MSG;
	h.flags = (data ? LNX_WIRE_F_DATA : 0) |
		  (txe->f.comp_at_ack ? LNX_WIRE_F_ACK_NOW : 0);
	h.tag = tx->tag;
	h.data = tx->data;
	h.len = len;
	h.key = 0;
	ret = lnx_rel_send(ep, peer, txe, &h, no_queue);
	if (lnx_unlikely(ret)) {
		lnx_txe_put(ep, txe);
		return ret;
	}
	ep->stats.send_count++;
	ep->stats.send_length += len;
	return 0;
}
