/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends of a few KiB more than what the shm core copies: its messages of 4 KiB take them, one
 * after the other.  Called by msg/large.c; they arrive in the peer's msg/parts.c.  The message
 * has left when the core has copied all of it, as one of less than that has, and no answer
 * comes.
 *
 * What the core cannot take at once, because the peer's queue is full, follows from progress.
 * As long as anything of the kind waits, other messages are announced: so no peer has to
 * tell apart two that come at the same time.
 */
#include "msg/push.h"

#include <stdlib.h>
#include <string.h>

#include "msg/confirm.h"
#include "msg/rx.h"
#include "rail/direct.h"

struct push {
	struct lnx_ep *ep;
	fi_addr_t dest;
	const struct iovec *iov;
	size_t niov;
	struct lnx_wire_push w;		/* off: what has left */
	size_t len;
};

static const uint8_t zeros[LNX_PUSH_BYTES];

static ssize_t post(const struct push *p, const struct iovec *iov, size_t niov)
{
	struct lnx_rail *rail = p->ep->shm;
	struct lnx_tx tx = {
		.call = LNX_TSENDMSG, .iov = iov, .niov = niov, .flags = FI_INJECT,
		.tag = LNX_SHM_CTRL_TAG, .context = LNX_QUIET(rail),
	};
	ssize_t ret;

	/* A core may also complete it later. */
	rail->mute |= LNX_MUTE_NOW | LNX_MUTE_SOME;
	ret = lnx_direct_post(rail->core_ep, p->dest, &tx, NULL);
	rail->mute &= (uint8_t)~LNX_MUTE_NOW;
	return ret;
}

/* What comes next. */
static ssize_t send_one(struct push *p)
{
	size_t size = lnx_wire_push_size(p->w.off, p->len);
	size_t n = LNX_MIN(lnx_wire_push_room(size, p->w.off), p->len - p->w.off);
	uint8_t head[sizeof(p->w)], gathered[LNX_PUSH_BYTES];
	struct iovec iov[3] = { { head, lnx_wire_push_put(head, &p->w) }, { gathered, n } };
	ssize_t ret;

	if (lnx_likely(p->niov == 1))
		iov[1].iov_base = (uint8_t *)p->iov->iov_base + p->w.off;
	else
		lnx_msg_iov_get_at(gathered, p->iov, p->w.off, n);
	/* Of one size, which is one of the things that tell what it is. */
	iov[2].iov_base = (void *)(uintptr_t)zeros;
	iov[2].iov_len = size - iov[0].iov_len - n;
	ret = post(p, iov, iov[2].iov_len ? 3 : 2);
	if (lnx_likely(!ret))
		p->w.off += (uint32_t)n;
	return ret;
}

static ssize_t send_all(struct push *p)
{
	ssize_t ret = 0;

	while (!ret && p->w.off < p->len)
		ret = send_one(p);
	return ret;
}

/* The core takes no more now: the rest, from off on, waits in the application's buffer. */
static LNX_COLD void wait(struct lnx_peer *peer, const struct lnx_tx *tx,
			  const struct push *p)
{
	struct lnx_ep *ep = p->ep;
	struct lnx_rndv *rndv = ep->local.spare_rndv;

	ep->local.spare_rndv = NULL;
	rndv->peer = peer;
	rndv->context = tx->context;
	rndv->cq_flags = FI_SEND | (lnx_call_tagged(tx->call) ? FI_TAGGED : FI_MSG);
	rndv->want_comp = (tx->op_flags & FI_COMPLETION) != 0;
	rndv->here = true;
	rndv->pushed = true;
	rndv->niov = (unsigned)tx->niov;
	memcpy(rndv->iov, tx->iov, tx->niov * sizeof(*tx->iov));
	rndv->copy_op = p->w.op;
	rndv->copy_want = p->len;
	rndv->copy_off = p->w.off;
	lnx_list_add_tail(&ep->rndv.announced, &rndv->link);
	lnx_list_init(&rndv->copy_link);
	lnx_list_add_tail(&ep->local.copied, &rndv->copy_link);
	peer->nrndv++;
	ep->work |= LNX_WORK_COPY;
	lnx_ep_watch_local(ep);
}

/* Full ones. */
static uint32_t pieces_of(size_t len)
{
	return (uint32_t)((len + LNX_PUSH_BYTES - LNX_PUSH_REST_BYTES) / LNX_PUSH_BYTES);
}

static bool may_push(struct lnx_ep *ep, struct lnx_peer *peer, size_t len)
{
	if (peer->shm.nqueued || !lnx_list_empty(&ep->local.copied) ||
	    lnx_unlikely(!lnx_peer_eager(peer)) ||
	    !lnx_push_may(&peer->eager->ahead, (uint32_t)len) ||
	    !lnx_push_worth(&peer->eager->push_cost, (uint32_t)len, pieces_of(len)))
		return false;
	if (lnx_unlikely(!ep->local.spare_rndv))
		ep->local.spare_rndv = calloc(1, sizeof(*ep->local.spare_rndv));
	return ep->local.spare_rndv != NULL;
}

ssize_t lnx_push_send(struct lnx_ep *ep, struct lnx_peer *peer, const struct lnx_tx *tx,
		      size_t len)
{
	bool tagged = lnx_call_tagged(tx->call);
	uint16_t to = lnx_shm_ctrl_process(peer->shm.where.pid);
	struct push p = {
		.ep = ep, .dest = peer->shm_addr, .iov = tx->iov, .niov = tx->niov,
		.len = len,
		.w = {
			.src = ep->eid, .dst = peer->eid, .len = (uint32_t)len,
			.kind = tagged ? LNX_KIND_PART_TAG : LNX_KIND_PART_MSG,
			.tag = tagged ? tx->tag : 0,
			.to_low = (uint8_t)to, .to_high = (uint8_t)(to >> 8),
		},
	};
	uint64_t start = 0;
	ssize_t ret;

	if (lnx_unlikely(!may_push(ep, peer, len)))
		return -FI_EAGAIN;
	if (lnx_call_data(tx->call) || (tx->op_flags & FI_REMOTE_CQ_DATA)) {
		p.w.flags = LNX_WIRE_F_DATA;
		p.w.data = tx->data;
	}
	p.w.op = ++peer->eager->last_push;
	if (lnx_push_timed(&peer->eager->push_cost))
		start = lnx_clock_ns();
	ret = send_all(&p);
	if (lnx_unlikely(ret && !p.w.off))
		return -FI_EAGAIN;
	if (start && !ret)
		lnx_push_took(&peer->eager->push_cost, lnx_clock_ns() - start,
			      pieces_of(len));
	lnx_push_did(&peer->eager->ahead, (uint32_t)len);
	ep->stats.pushed_sends++;
	/* Progress finds out what an error is. */
	if (lnx_unlikely(ret)) {
		wait(peer, tx, &p);
		return 0;
	}
	lnx_cntr_ok(ep, LNX_CNTR_SEND);
	if (tx->op_flags & FI_COMPLETION)
		lnx_cq_write(ep->tx_cq, tx->context,
			     FI_SEND | (tagged ? FI_TAGGED : FI_MSG), 0, NULL, 0, 0,
			     FI_ADDR_NOTAVAIL);
	return 0;
}

ssize_t lnx_push_rest(struct lnx_ep *ep, struct lnx_rndv *rndv)
{
	struct push p = {
		.ep = ep, .dest = rndv->peer->shm.core, .iov = rndv->iov,
		.niov = rndv->niov, .len = rndv->copy_want,
		.w = {
			.src = ep->eid, .dst = rndv->peer->eid,
			.op = (uint32_t)rndv->copy_op, .off = (uint32_t)rndv->copy_off,
		},
	};
	ssize_t ret;

	/* Another process has its name. */
	if (lnx_unlikely(p.dest == FI_ADDR_NOTAVAIL))
		return -FI_ECONNRESET;
	ret = send_all(&p);
	rndv->copy_off = p.w.off;
	return ret;
}
