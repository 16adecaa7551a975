/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large sends over the direct rail.  Called by tx/submit.h and tx/frame.c;
 * announces the message with a note, which takes its place among all other
 * messages to that peer.  The peer reads it (its rx/fetch.c) and ends with a note
 * that comes here, to lnx_tx_fin, through its like.
 *
 * The core has a way of its own for these, but its answers come back in one queue
 * for all peers, in the order of the sends: one peer that computes, or is dead,
 * holds up the completions of all.  Only where processes may not read each other's
 * memory it is used still.
 */
#include <stdlib.h>
#include <string.h>

#include "comp/comp.h"
#include "rx/rx.h"
#include "tx/post.h"
#include "tx/tx.h"
#include "wire/note.h"

/* A note is no operation of the application: nobody counts it. */
ssize_t lnx_note_post(struct lnx_ep *ep, fi_addr_t dest,
		      const struct lnx_tx *tx)
{
	struct lnx_rail *rail = ep->shm;
	ssize_t ret;

	rail->mute = true;
	ret = fi_inject(rail->core_ep, tx->iov->iov_base, LNX_NOTE_BYTES, dest);
	rail->mute = false;
	return ret;
}

static unsigned put_pieces(struct lnx_wire_note *n, const struct lnx_tx *tx)
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
	lnx_list_del(&rndv->link);
	lnx_optab_del(&rndv->peer->ep->rndv_ops, rndv->op);
	rndv->peer->nrndv--;
	free(rndv);
}

ssize_t lnx_tx_large(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_tx *tx)
{
	bool tagged = lnx_call_tagged(tx->call);
	struct lnx_wire_note n = {
		.src = ep->eid, .dst = peer->eid,
		.kind = tagged ? LNX_KIND_RTS_TAG : LNX_KIND_RTS_MSG,
		.pid = ep->pid, .mark = (uint64_t)(uintptr_t)&ep->mark,
		.tag = tagged ? tx->tag : 0,
		.len = lnx_iov_len(tx->iov, tx->niov),
	};
	uint8_t bytes[LNX_NOTE_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx note = { .call = LNX_NOTE, .iov = &iov, .niov = 1 };
	struct lnx_rndv *rndv;
	ssize_t ret;

	if (lnx_unlikely(n.len > ep->max_msg_size))
		return -FI_EMSGSIZE;
	if (lnx_unlikely(tx->op_flags & FI_INJECT))
		return -FI_EINVAL;
	if (lnx_call_data(tx->call) || (tx->op_flags & FI_REMOTE_CQ_DATA)) {
		n.flags = LNX_WIRE_F_DATA;
		n.data = tx->data;
	}
	n.npiece = (uint8_t)put_pieces(&n, tx);
	rndv = calloc(1, sizeof(*rndv));
	if (!rndv)
		return -FI_EAGAIN;
	rndv->op = n.op = note.data = lnx_optab_add(&ep->rndv_ops, rndv);
	if (!rndv->op) {
		free(rndv);
		return -FI_EAGAIN;
	}
	rndv->peer = peer;
	rndv->context = tx->context;
	rndv->cq_flags = FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
	rndv->want_comp = (tx->op_flags & FI_COMPLETION) != 0;
	rndv->here = true;
	lnx_list_add_tail(&ep->rndvs, &rndv->link);
	peer->nrndv++;
	ep->work |= LNX_WORK_WATCH;

	lnx_note_put(bytes, &n);
	ret = peer->ndpend ? -FI_EAGAIN :
	      lnx_note_post(ep, peer->shm_addr, &note);
	if (lnx_unlikely(ret == -FI_EAGAIN))
		ret = lnx_tx_direct_again(ep, peer, &note);
	if (lnx_likely(!ret) || !lnx_optab_get(&ep->rndv_ops, n.op))
		return 0;		/* under way, or failed and reported */
	drop(rndv);
	return ret;
}

ssize_t lnx_tx_note_fin(struct lnx_peer *peer, uint64_t op, int err)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_wire_note n = {
		.src = ep->eid, .dst = peer->eid, .kind = LNX_KIND_FIN,
		.op = op, .len = (uint64_t)err,
	};
	uint8_t bytes[LNX_NOTE_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx note = { .call = LNX_NOTE, .iov = &iov, .niov = 1 };
	ssize_t ret;

	if (!lnx_peer_meet(peer))
		return -FI_EHOSTUNREACH;
	lnx_note_put(bytes, &n);
	ret = lnx_note_post(ep, peer->shm_core, &note);
	/* It may be full for ever. */
	return lnx_unlikely(ret == -FI_EAGAIN) && peer->gone ?
	       -FI_EHOSTUNREACH : ret;
}
