/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The send path's first step.  Called by api/msg.c and api/tagged.c; looks the
 * peer up and calls rail/direct.h (direct rail), rel/send.c or msg/send.c.  Always
 * inline: with `call` a constant, each API function compiles to its own straight
 * code.
 */
#ifndef LNX_SUBMIT_H
#define LNX_SUBMIT_H

#include "msg/iov.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/direct.h"
#include "rel/rel.h"

/* Longer than what a core copies through its own buffers. */
LNX_INLINE bool lnx_msg_is_large(const struct lnx_tx *tx)
{
	if (lnx_call_inject(tx->call))
		return false;
	if (tx->call == LNX_SEND || tx->call == LNX_SENDDATA ||
	    tx->call == LNX_TSEND || tx->call == LNX_TSENDDATA)
		return tx->iov->iov_len > LNX_INJECT_MAX;
	return lnx_msg_iov_len(tx->iov, tx->niov) > LNX_INJECT_MAX;
}

/* Length of the payload; with a constant number of pieces where the call has one. */
LNX_INLINE size_t lnx_msg_len(const struct lnx_tx *tx)
{
	return lnx_call_single(tx->call) ? tx->iov->iov_len :
					   lnx_msg_iov_len(tx->iov, tx->niov);
}

LNX_INLINE ssize_t lnx_msg_submit(struct lnx_ep *ep, const struct lnx_tx *tx)
{
	/*
	 * The address of `own` is never taken, so `call` stays a constant and nothing
	 * need be in memory; the other copy is made where it is used.
	 */
	const struct lnx_tx own = *tx;
	struct lnx_tx slow;
	struct lnx_peer *peer;
	ssize_t ret;

	/* Cores do not reliably report this. */
	if (lnx_call_inject(tx->call) &&
	    lnx_unlikely(tx->iov->iov_len > ep->inject_size))
		return -FI_EINVAL;
	if ((tx->call == LNX_SENDV || tx->call == LNX_TSENDV ||
	     tx->call == LNX_SENDMSG || tx->call == LNX_TSENDMSG) &&
	    lnx_unlikely(tx->niov > 1) && lnx_iov_check("send", tx->iov, tx->niov))
		return -FI_EINVAL;
	if ((tx->call == LNX_SENDMSG || tx->call == LNX_TSENDMSG) &&
	    lnx_unlikely(tx->flags & FI_INJECT) &&
	    lnx_msg_iov_len(tx->iov, tx->niov) > ep->inject_size)
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	peer = lnx_peer_get(ep, tx->dest);
	if (lnx_likely(peer && peer->direct != FI_ADDR_NOTAVAIL) &&
	    !((tx->call == LNX_SENDMSG || tx->call == LNX_TSENDMSG) &&
	      lnx_unlikely(tx->flags & FI_DELIVERY_COMPLETE))) {
		if (lnx_unlikely(lnx_msg_is_large(&own)) && peer->shm.ctrl) {
			slow = own;
			ret = lnx_large_send(ep, peer, &slow);
		} else {
			ret = lnx_direct_post(ep->shm->core_ep, peer->direct, &own,
					      NULL);
			if (lnx_unlikely(ret == -FI_EAGAIN)) {
				slow = own;
				ret = lnx_direct_retry(ep, peer, &slow);
			}
		}
		if (lnx_likely(!ret)) {
			ep->stats.direct_sends++;
			ep->stats.direct_send_length += lnx_msg_len(&own);
		}
	} else if (lnx_call_single(own.call) &&
		   !(own.op_flags & (FI_INJECT | LNX_LEVELS)) &&
		   lnx_likely(lnx_rel_short(ep, peer, own.iov->iov_base,
					   own.iov->iov_len, own.tag,
					   lnx_short_what(own.call),
					   own.data, own.context))) {
		ret = 0;
	} else {
		slow = own;
		ret = lnx_msg_send(ep, peer, &slow);
	}
	lnx_unlock(&ep->lock);
	return ret;
}

#endif
