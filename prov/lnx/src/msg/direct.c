/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct sends that the core cannot take now.  Called by msg/submit.h and msg/large.c;
 * retries a few times, then queues a copy of the descriptor, which progress posts in
 * order.
 *
 * Returning -FI_EAGAIN instead would be simpler.  But some applications answer it with
 * a progress call inside their completion handler, which is not safe: Open MPI 4.1 then
 * handles entries twice (synchronous sends under load).
 */
#include <stdlib.h>
#include <string.h>

#include "msg/confirm.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/direct.h"
#include "rail/rail.h"
#include "rma/copy.h"

#define TRIES	16

/* link is first: core/peer.c frees what is left and knows only that. */
struct lnx_dtx {
	struct lnx_node link;		/* peer->shm.queue */
	struct lnx_tx tx;
	struct iovec iov[LNX_IOV_MAX];
	char copy[];			/* payload of injects */
};

static ssize_t post(struct lnx_ep *ep, struct lnx_peer *peer,
		    const struct lnx_tx *tx)
{
	ssize_t ret;

	if (tx->call == LNX_SHM_CTRL)
		return lnx_large_ctrl_post(ep, peer->shm_addr, tx);
	if (tx->call == LNX_RMA_COPY)
		return lnx_rma_copy_post(tx->context);
	if (tx->op_flags & LNX_TX_QUIET)
		ep->shm->mute |= LNX_MUTE_NOW;
	ret = lnx_direct_post(ep->shm->core_ep, peer->shm_addr, tx, NULL);
	ep->shm->mute &= (uint8_t)~LNX_MUTE_NOW;
	return ret;
}

int lnx_direct_queue(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_tx *tx)
{
	bool copy = lnx_call_inject(tx->call) || (tx->op_flags & FI_INJECT);
	size_t len = copy ? lnx_msg_iov_len(tx->iov, tx->niov) : 0;
	struct lnx_dtx *d;

	d = malloc(sizeof(*d) + len);
	if (!d)
		return -FI_ENOMEM;
	d->tx = *tx;
	d->tx.iov = d->iov;
	d->tx.desc = NULL;
	memset(d->iov, 0, sizeof(d->iov));
	if (copy) {
		lnx_msg_iov_get(d->copy, tx->iov, tx->niov);
		d->tx.niov = 1;
		d->iov[0].iov_base = d->copy;
		d->iov[0].iov_len = len;
	} else if (tx->niov) {
		memcpy(d->iov, tx->iov, tx->niov * sizeof(*tx->iov));
	}
	lnx_list_add_tail(&peer->shm.queue, &d->link);
	if (!peer->shm.nqueued++) {
		lnx_peer_clear_direct(peer);
		lnx_list_add_tail(&ep->local.queued_peers, &peer->shm.queue_link);
		/* The core does not tell that the peer's process has ended. */
		lnx_ep_watch_local(ep);
		ep->work |= LNX_WORK_DIRECT;
	}
	ep->stats.direct_queued++;
	return 0;
}

static int queue(struct lnx_ep *ep, struct lnx_peer *peer,
		 const struct lnx_tx *tx)
{
	if (peer->shm.nqueued >= lnx_ep_queue_max(ep, lnx_call_inject(tx->call) ?
					     FI_INJECT : tx->op_flags) ||
	    lnx_direct_queue(ep, peer, tx))
		return -FI_EAGAIN;
	return 0;
}

LNX_COLD ssize_t lnx_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				     const struct lnx_tx *tx)
{
	unsigned i;

	for (i = 0; i < TRIES; i++) {
		ssize_t ret;

		lnx_obj_progress(ep);
		if (peer->shm_addr == FI_ADDR_NOTAVAIL)
			return -FI_EHOSTUNREACH;
		if (peer->shm.nqueued)
			continue;	/* not before queued sends */
		ret = post(ep, peer, tx);
		if (ret != -FI_EAGAIN)
			return ret;
	}
	return queue(ep, peer, tx);
}

static void fail(struct lnx_peer *peer, const struct lnx_tx *tx, int err)
{
	struct lnx_ep *ep = peer->ep;

	if (tx->call == LNX_RMA_COPY) {
		lnx_rma_copy_fail(tx->context, err);
	} else if (tx->call == LNX_SHM_CTRL) {
		/* It may have ended with all others of its peer. */
		if (lnx_optab_get(&ep->rndv.ops, tx->data))
			lnx_rndv_fin(peer, tx->data, err);
		lnx_confirm_fail(peer, err);
	} else if (tx->op_flags & LNX_TX_QUIET) {
		lnx_confirm_fail(peer, err);
	} else if (lnx_call_inject(tx->call)) {
		lnx_cntr_err(ep, LNX_CNTR_SEND);
	} else {
		lnx_ep_op_failed(ep, tx->context, FI_SEND |
				 (lnx_call_tagged(tx->call) ? FI_TAGGED : FI_MSG),
			    err, err);
	}
}

LNX_COLD void lnx_direct_fail(struct lnx_peer *peer, int err)
{
	while (peer->shm.nqueued) {
		struct lnx_dtx *d = lnx_list_entry(peer->shm.queue.next,
						   struct lnx_dtx, link);

		lnx_list_del(&d->link);
		peer->shm.nqueued--;
		fail(peer, &d->tx, err);
		free(d);
	}
	lnx_confirm_close(peer);
	lnx_list_del(&peer->shm.queue_link);
}

void lnx_direct_pump(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->local.queued_peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, shm.queue_link);

		while (peer->shm.nqueued) {
			struct lnx_dtx *d = lnx_list_entry(peer->shm.queue.next,
							   struct lnx_dtx, link);
			ssize_t ret = -FI_EHOSTUNREACH;

			if (peer->shm_addr != FI_ADDR_NOTAVAIL)
				ret = post(ep, peer, &d->tx);
			if (ret == -FI_EAGAIN)
				break;
			lnx_list_del(&d->link);
			peer->shm.nqueued--;
			if (ret)
				fail(peer, &d->tx, (int)-ret);
			free(d);
		}
		if (!peer->shm.nqueued) {
			lnx_confirm_close(peer);
			lnx_peer_set_direct(peer);
			lnx_list_del(&peer->shm.queue_link);
		}
	}
	if (lnx_list_empty(&ep->local.queued_peers))
		ep->work &= ~LNX_WORK_DIRECT;
}
