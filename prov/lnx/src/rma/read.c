/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small reads of remote memory that the core does as one operation, which costs both
 * sides less than a GET and its answer.  Called by rma/rma.c; ends with comp/ and
 * rma/rma_op.c.
 *
 * They are not in the sequence of frames, and could overtake frames or be overtaken.
 * So a core reads only when no frame about memory is in flight, and such frames wait
 * until it has read.  They are used only for a peer with one path: reads on a path that
 * fails end only when its core reports it, which is later than the silence timeout.
 */
#include "rail/post.h"
#include "obj/counting.h"
#include "rel/rel.h"
#include "rma/rkey.h"
#include "rma/rma.h"

#define TRIES	64		/* as for frames */

static bool may_pass(const struct lnx_ep *ep, const struct lnx_peer *peer)
{
	return peer->npath == 1 && peer->path[0]->state == LNX_PATH_UP &&
	       (int32_t)(peer->chan.una - peer->rma.memory_seq) >= 0 &&
	       !lnx_peer_dead(peer) && !ep->fault &&
	       peer->path[0]->rail->core_ep;
}

ssize_t lnx_read_core(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_rma *r)
{
	struct lnx_path *path = peer->path[0];
	struct lnx_rail *rail = path->rail;
	struct lnx_rma_segment *segment;
	struct lnx_rma_op *rma_op;
	uint64_t addr, key;
	ssize_t ret;

	if (!may_pass(ep, peer) || r->nrma != 1 || r->niov != 1 ||
	    !r->rma->len || peer->rma.n_segments >= ep->limits.tx_size ||
	    !lnx_rkey_use(peer, r->rma, path, &addr, &key))
		return LNX_READ_BY_FRAME;
	/* Now it is as good as any older number. */
	peer->rma.memory_seq = peer->chan.una;
	rma_op = lnx_rma_op_get(ep, r->context, FI_RMA | FI_READ,
			  (r->op_flags & FI_COMPLETION) != 0);
	if (lnx_unlikely(!rma_op))
		return -FI_EAGAIN;
	segment = lnx_rma_segment_get(rma_op, peer, LNX_RMA_SEGMENT_CORE);
	if (lnx_unlikely(!segment)) {
		lnx_rma_op_drop(rma_op);
		return -FI_EAGAIN;
	}
	segment->op.type = LNX_OP_READ;
	segment->path = path;
	segment->addr = r->rma->addr;
	segment->key = r->rma->key;
	segment->len = r->rma->len;
	segment->niov = 1;
	segment->iov[0] = r->iov[0];
	lnx_list_add_tail(&path->gets, &segment->link);
	peer->rma.n_reads++;
	/* It may complete inside the call, and segment may be freed. */
	ret = lnx_rail_read(rail, r->iov->iov_base, r->rma->len, path->core_addr, addr, key,
			    &segment->op);
	if (lnx_unlikely(ret)) {
		peer->rma.n_reads--;
		lnx_rma_op_drop(rma_op);
		/*
		 * Frames have deadlines; so use one if no read of ours is to be waited
		 * for.
		 */
		if (ret != -FI_EAGAIN || !peer->rma.n_reads)
			return LNX_READ_BY_FRAME;
		lnx_obj_progress_all(ep);
		return ret;
	}
	rail->poll_credits = ep->poll_credits;
	lnx_count_posted(path, false);
	rail->traffic.reads++;
	lnx_rma_op_done(rma_op, 0);
	return 0;
}

static void ended(struct lnx_rma_segment *segment, int err, int prov_errno)
{
	struct lnx_peer *peer = segment->peer;
	struct lnx_ep *ep = peer->ep;
	struct lnx_rail *rail = segment->path->rail;

	if (lnx_likely(!err)) {
		rail->counts.reads_done++;
		rail->traffic.recv_length += segment->len;
		if (segment->path->counts)
			segment->path->counts->c.reads_done++;
		peer->rma.n_reads--;
		lnx_silence_peer_seen(&peer->liveness);
		lnx_rma_segment_end(segment, 0);
		return;
	}
	ep->stats.core_errors++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: reading %zu bytes failed: %s (provider error %d); again\n",
		       rail->name, segment->len, fi_strerror(err), prov_errno);
	/* Did the connection fail, or the registration?  The peer can tell. */
	lnx_rkey_forget(peer, segment->key);
	if (lnx_peer_dead(peer)) {
		peer->rma.n_reads--;
		lnx_rma_segment_end(segment, lnx_peer_error(peer));
		return;
	}
	/* It still delays frames, until its GET has a number; and reads. */
	peer->rma.memory_seq = peer->chan.next + 1;
	segment->kind = LNX_RMA_SEGMENT_DATA;
	lnx_rma_wait_turn(segment);
}

void lnx_read_done(struct lnx_op *op)
{
	ended(lnx_container_of(op, struct lnx_rma_segment, op), 0, 0);
}

LNX_COLD bool lnx_read_core_error(struct lnx_rail *rail, const struct fi_cq_err_entry *err)
{
	struct lnx_ep *ep = rail->ep;
	/* As a number: it need not be a valid pointer. */
	struct lnx_rma_segment *segment = (void *)
		((uintptr_t)err->op_context - offsetof(struct lnx_rma_segment, op));

	if (!lnx_pool_owns(&ep->rma.segment_pool, segment))
		return false;
	if (lnx_pool_lent(&ep->rma.segment_pool, segment) &&
	    segment->kind == LNX_RMA_SEGMENT_CORE) {
		lnx_rail_op_ended(rail);
		ended(segment, err->err, err->prov_errno);
	}
	return true;
}

LNX_COLD void lnx_read_cut(struct lnx_path *path)
{
	while (!lnx_list_empty(&path->gets)) {
		struct lnx_rma_segment *segment =
			lnx_list_entry(path->gets.next, struct lnx_rma_segment, link);

		ended(segment, FI_ECANCELED, 0);
	}
}

LNX_COLD int lnx_read_wait(struct lnx_ep *ep, struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < TRIES && peer->rma.n_reads; i++)
		lnx_obj_progress_all(ep);
	if (lnx_peer_dead(peer))
		return -FI_EHOSTUNREACH;
	return peer->rma.n_reads ? -FI_EAGAIN : 0;
}

LNX_COLD void lnx_read_by_frame(struct lnx_rma_segment *segment)
{
	struct lnx_peer *peer = segment->peer;
	struct lnx_txe *txe = lnx_txe_get(peer->ep, 0);
	struct lnx_hdr h = {
		.kind = LNX_KIND_GET, .flags = LNX_WIRE_F_LAST,
		.len = segment->len, .tag = segment->addr, .key = segment->key,
		.data = segment->id,
	};

	if (!txe) {
		lnx_rma_wait_turn(segment);
		return;
	}
	lnx_list_del(&segment->link);
	txe->f.len = sizeof(struct lnx_wire_hdr);
	lnx_rel_send(peer->ep, peer, txe, &h, false);
	peer->rma.n_reads--;
	peer->rma.memory_seq = peer->chan.next;
}
