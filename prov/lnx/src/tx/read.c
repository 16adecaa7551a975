/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small reads of remote memory that the core does as one operation of its own, which
 * costs the two sides less than a GET and its answer.  Called by tx/rma.c; ends with
 * comp/ and tx/rop.c.
 *
 * Not in the sequence of frames, they could overtake frames and be overtaken.  So a
 * core reads only when no frame about memory is on its way, and such frames wait
 * until it has read.  And only where a peer has one path: what a path that dies has
 * of these comes back when its core says so, and not when its silence does.
 */
#include "comp/comp.h"
#include "tx/path.h"
#include "tx/rkey.h"
#include "tx/rma.h"

#define TRIES	64		/* as for frames */

static bool may_pass(const struct lnx_ep *ep, const struct lnx_peer *peer)
{
	return peer->npath == 1 && peer->path[0].state == LNX_PATH_UP &&
	       (int32_t)(peer->tx_una - peer->memory_seq) >= 0 &&
	       !peer->gone && !ep->fault && peer->path[0].rail->core_ep;
}

ssize_t lnx_read_core(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_rma *r)
{
	struct lnx_path *path = &peer->path[0];
	struct lnx_rail *rail = path->rail;
	struct lnx_part *part;
	struct lnx_rop *rop;
	uint64_t addr, key;
	ssize_t ret;

	if (!may_pass(ep, peer) || r->nrma != 1 || r->niov != 1 ||
	    !r->rma->len || peer->nparts >= ep->tx_size ||
	    !lnx_rkey_use(peer, r->rma, path, &addr, &key))
		return LNX_READ_BY_FRAME;
	/* Now it is as good as any older one. */
	peer->memory_seq = peer->tx_una;
	rop = lnx_rop_get(ep, r->context, FI_RMA | FI_READ,
			  (r->op_flags & FI_COMPLETION) != 0);
	if (lnx_unlikely(!rop))
		return -FI_EAGAIN;
	part = lnx_part_get(rop, peer, LNX_PART_CORE);
	if (lnx_unlikely(!part)) {
		lnx_rop_drop(rop);
		return -FI_EAGAIN;
	}
	part->op.type = LNX_OP_READ;
	part->path = path;
	part->addr = r->rma->addr;
	part->key = r->rma->key;
	part->len = r->rma->len;
	part->niov = 1;
	part->iov[0] = r->iov[0];
	lnx_list_add_tail(&path->gets, &part->link);
	peer->nreads++;
	rail->busy++;
	/* It may complete inside the call, and part be gone. */
	ret = fi_read(rail->core_ep, r->iov->iov_base, r->rma->len, NULL,
		      path->core_addr, addr, key, &part->op);
	if (lnx_unlikely(ret)) {
		rail->busy--;
		peer->nreads--;
		lnx_rop_drop(rop);
		/* Frames have deadlines, if there is nothing of ours to wait for. */
		if (ret != -FI_EAGAIN || !peer->nreads)
			return LNX_READ_BY_FRAME;
		lnx_ep_progress_all(ep);
		return ret;
	}
	rail->hot = ep->poll_hot;
	lnx_rop_done(rop, 0);
	return 0;
}

void lnx_read_done(struct lnx_op *op, int err, int prov_errno)
{
	struct lnx_part *part = lnx_container_of(op, struct lnx_part, op);
	struct lnx_peer *peer = part->peer;
	struct lnx_ep *ep = peer->ep;
	struct lnx_rail *rail = part->path->rail;

	rail->busy--;
	if (lnx_likely(!err)) {
		peer->nreads--;
		peer->silent_ns = 0;
		lnx_part_end(part, 0);
		return;
	}
	ep->stats.core_errors++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: reading %zu bytes failed: %s (provider error %d); again\n",
		       rail->name, part->len, fi_strerror(err), prov_errno);
	/* The connection, or the registration?  The peer can tell. */
	lnx_rkey_forget(peer, part->key);
	if (peer->gone) {
		peer->nreads--;
		lnx_part_end(part, err);
		return;
	}
	/* Still in the way of frames, until its own has a number; and of reads. */
	peer->memory_seq = peer->tx_next + 1;
	part->kind = LNX_PART_DATA;
	lnx_rma_wait_turn(part);
}

bool lnx_read_out(const struct lnx_op *op)
{
	const struct lnx_part *part =
		lnx_container_of(op, const struct lnx_part, op);

	return part->kind == LNX_PART_CORE;
}

LNX_COLD void lnx_read_cut(struct lnx_path *path)
{
	while (!lnx_list_empty(&path->gets)) {
		struct lnx_part *part =
			lnx_list_entry(path->gets.next, struct lnx_part, link);

		lnx_read_done(&part->op, FI_ECANCELED, 0);
	}
}

LNX_COLD int lnx_read_wait(struct lnx_ep *ep, struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < TRIES && peer->nreads; i++)
		lnx_ep_progress_all(ep);
	if (peer->gone)
		return -FI_EHOSTUNREACH;
	return peer->nreads ? -FI_EAGAIN : 0;
}

LNX_COLD void lnx_read_by_frame(struct lnx_part *part)
{
	struct lnx_peer *peer = part->peer;
	struct lnx_txe *txe = lnx_txe_get(peer->ep, 0);
	struct lnx_hdr h = {
		.kind = LNX_KIND_GET, .flags = LNX_WIRE_F_LAST,
		.len = part->len, .tag = part->addr, .key = part->key,
		.data = part->id,
	};

	if (!txe) {
		lnx_rma_wait_turn(part);
		return;
	}
	lnx_list_del(&part->link);
	txe->len = sizeof(struct lnx_wire_hdr);
	lnx_tx_queue(peer->ep, peer, txe, &h, false);
	peer->nreads--;
	peer->memory_seq = peer->tx_next;
}
