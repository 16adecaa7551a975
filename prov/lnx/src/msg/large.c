/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large sends over the direct rail.  Called by msg/submit.h and msg/send.c; announces
 * the message with a control message, in order with all other messages to that peer.
 * The peer reads the data (its msg/fetch.c) and ends with a control message that comes
 * here, to lnx_rndv_fin, through its receive path.
 *
 * The core has its own method for these, but its answers come back in one queue for all
 * peers, in the order of the sends: one peer that computes, or is dead, holds up the
 * completions of all.  It also assumes that a process which we may read may read us,
 * and fails where that is not so.  A peer that may not read us says so, and gets
 * copies, each of which goes through the core's own buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "msg/push.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/direct.h"
#include "rail/rail.h"
#include "rma/copy.h"
#include "wire/shm_ctrl.h"

#define COPIES_AT_ONCE	16u		/* of one message, in one pass */

/* A control message is no operation of the application: it is not counted. */
ssize_t lnx_large_ctrl_post(struct lnx_ep *ep, fi_addr_t dest,
			    const struct lnx_tx *tx)
{
	struct lnx_rail *rail = ep->shm;
	ssize_t ret;

	rail->mute |= LNX_MUTE_NOW;
	ret = lnx_direct_post_ctrl(rail->core_ep, dest, tx->iov);
	rail->mute &= (uint8_t)~LNX_MUTE_NOW;
	return ret;
}

/* For that process of the peer's name. */
static void address_to(struct lnx_wire_shm_ctrl *n, int pid)
{
	uint16_t to = lnx_shm_ctrl_process(pid);

	n->to_low = (uint8_t)to;
	n->to_high = (uint8_t)(to >> 8);
}

static unsigned put_pieces(struct lnx_wire_shm_ctrl *n, const struct lnx_tx *tx)
{
	unsigned k = 0;
	size_t i;

	for (i = 0; i < tx->niov; i++) {
		if (!tx->iov[i].iov_len)
			continue;
		n->piece[k].addr = (uint64_t)(uintptr_t)tx->iov[i].iov_base;
		n->piece[k++].len = tx->iov[i].iov_len;
	}
	return k;
}

static void drop(struct lnx_rndv *rndv)
{
	if (rndv->asks)
		lnx_push_unask(&rndv->peer->eager->ahead);
	lnx_list_del(&rndv->link);
	lnx_optab_del(&rndv->peer->ep->rndv.ops, rndv->op);
	rndv->peer->nrndv--;
	free(rndv);
}

ssize_t lnx_large_send(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_tx *tx)
{
	bool tagged = lnx_call_tagged(tx->call);
	struct lnx_wire_shm_ctrl n = {
		.src = ep->eid, .dst = peer->eid,
		.kind = tagged ? LNX_KIND_RTS_TAG : LNX_KIND_RTS_MSG,
		.pid = ep->local.pid, .cookie = (uint64_t)(uintptr_t)&ep->local.cookie,
		.tag = tagged ? tx->tag : 0,
		.len = lnx_msg_iov_len(tx->iov, tx->niov),
		.flags = ep->conf->disable_cma ? LNX_SHM_CTRL_F_COPY : 0,
	};
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	struct lnx_rndv *rndv;
	ssize_t ret;

	if (lnx_unlikely(n.len > ep->limits.max_msg_size))
		return -FI_EMSGSIZE;
	if (lnx_unlikely(tx->op_flags & FI_INJECT))
		return -FI_EINVAL;
	if (n.len <= LNX_PUSHED_MAX && !(tx->op_flags & LNX_LEVELS)) {
		ret = lnx_push_send(ep, peer, tx, n.len);
		if (lnx_likely(!ret))
			return 0;
	}
	if (lnx_call_data(tx->call) || (tx->op_flags & FI_REMOTE_CQ_DATA)) {
		n.flags |= LNX_WIRE_F_DATA;
		n.data = tx->data;
	}
	n.npiece = (uint8_t)put_pieces(&n, tx);
	address_to(&n, peer->shm.where.pid);
	rndv = calloc(1, sizeof(*rndv));
	if (!rndv)
		return -FI_EAGAIN;
	rndv->op = n.op = ctrl.data = lnx_optab_add(&ep->rndv.ops, rndv);
	if (!rndv->op) {
		free(rndv);
		return -FI_EAGAIN;
	}
	rndv->peer = peer;
	rndv->context = tx->context;
	rndv->cq_flags = FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
	rndv->want_comp = (tx->op_flags & FI_COMPLETION) != 0;
	rndv->here = true;
	rndv->niov = (unsigned)tx->niov;
	memcpy(rndv->iov, tx->iov, tx->niov * sizeof(*tx->iov));
	rndv->asks = peer->eager && lnx_push_asks(&peer->eager->ahead);
	if (rndv->asks)
		lnx_push_ask(&peer->eager->ahead);
	lnx_list_init(&rndv->copy_link);
	lnx_list_add_tail(&ep->rndv.announced, &rndv->link);
	peer->nrndv++;
	lnx_ep_watch_local(ep);

	lnx_shm_ctrl_put(bytes, &n);
	ret = peer->shm.nqueued ? -FI_EAGAIN :
	      lnx_large_ctrl_post(ep, peer->shm_addr, &ctrl);
	if (lnx_unlikely(ret == -FI_EAGAIN))
		ret = lnx_direct_retry(ep, peer, &ctrl);
	if (lnx_likely(!ret) || !lnx_optab_get(&ep->rndv.ops, n.op))
		return 0;		/* under way, or failed and reported */
	drop(rndv);
	return ret;
}

/* Answer the sender of a message. */
static ssize_t answer(struct lnx_peer *peer, const struct lnx_wire_shm_ctrl *n)
{
	struct lnx_ep *ep = peer->ep;
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	ssize_t ret;

	if (!lnx_peer_meet(peer))
		return -FI_EHOSTUNREACH;
	lnx_shm_ctrl_put(bytes, n);
	ret = lnx_large_ctrl_post(ep, peer->shm.core, &ctrl);
	/* The queue may be full for ever. */
	return lnx_unlikely(ret == -FI_EAGAIN) && lnx_peer_dead(peer) ?
	       -FI_EHOSTUNREACH : ret;
}

ssize_t lnx_large_fin(struct lnx_peer *peer, int pid, uint64_t op, int err)
{
	struct lnx_wire_shm_ctrl n = {
		.src = peer->ep->eid, .dst = peer->eid, .kind = LNX_KIND_FIN,
		.op = op, .len = (uint64_t)err,
	};

	address_to(&n, pid);
	return answer(peer, &n);
}

ssize_t lnx_large_ask_copy(struct lnx_peer *peer, int pid, uint64_t op, uint64_t name,
			uint64_t want)
{
	struct lnx_wire_shm_ctrl n = {
		.src = peer->ep->eid, .dst = peer->eid, .kind = LNX_KIND_GET,
		.op = op, .data = name, .len = want,
	};

	address_to(&n, pid);
	return answer(peer, &n);
}

/* ---- copies ---- */

void lnx_large_copy(struct lnx_peer *peer, uint64_t op, uint64_t name,
		 uint64_t want)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rndv *rndv = lnx_optab_get(&ep->rndv.ops, op);

	if (!rndv || rndv->peer != peer || !rndv->here ||
	    want > lnx_msg_iov_len(rndv->iov, rndv->niov) ||
	    lnx_list_linked(&rndv->copy_link)) {
		ep->stats.bad_frames++;	/* an operation that we do not have */
		return;
	}
	lnx_rma_unreached(peer);
	rndv->copy_op = name;
	rndv->copy_want = want;
	rndv->copy_off = 0;
	lnx_list_add_tail(&ep->local.copied, &rndv->copy_link);
	ep->work |= LNX_WORK_COPY;
	ep->stats.copied_sends++;
}

static ssize_t send_copy(struct lnx_ep *ep, struct lnx_rndv *rndv)
{
	struct lnx_peer *peer = rndv->peer;
	struct lnx_wire_copy c;
	uint8_t bytes[LNX_COPY_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx tx = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	void *data;
	ssize_t ret;

	/* Another process has its name; this pass fails what it still has. */
	if (lnx_unlikely(peer->shm.core == FI_ADDR_NOTAVAIL))
		return -FI_ECONNRESET;
	c.src = ep->eid;
	c.dst = peer->eid;
	c.op = rndv->copy_op;
	c.off = rndv->copy_off;
	c.len = LNX_MIN(rndv->copy_want - c.off, (uint64_t)LNX_COPY_DATA);
	data = lnx_wire_copy_put(bytes, &c);
	lnx_msg_iov_get_at(data, rndv->iov, c.off, c.len);
	ret = lnx_large_ctrl_post(ep, peer->shm.core, &tx);
	if (!ret)
		rndv->copy_off += c.len;
	return ret;
}

/* One turn for each, so that a long message does not delay others. */
void lnx_large_copies(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_list_foreach(&ep->local.copied, n, tmp) {
		struct lnx_rndv *rndv =
			lnx_list_entry(n, struct lnx_rndv, copy_link);
		ssize_t ret = 0;

		if (rndv->pushed)
			ret = lnx_push_rest(ep, rndv);
		for (i = 0; i < COPIES_AT_ONCE && !ret &&
		     rndv->copy_off < rndv->copy_want; i++)
			ret = send_copy(ep, rndv);
		if (ret && ret != -FI_EAGAIN)
			lnx_rndv_end(rndv, (int)-ret, (int)-ret);
		else if (rndv->copy_off == rndv->copy_want && rndv->pushed)
			lnx_rndv_end(rndv, 0, 0);
		else if (rndv->copy_off == rndv->copy_want)
			lnx_list_del(&rndv->copy_link);
	}
	if (lnx_list_empty(&ep->local.copied))
		ep->work &= ~LNX_WORK_COPY;
}
