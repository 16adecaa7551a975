/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access over framed rails.  Called by rma/rma.h.
 *
 * Small writes are PUT frames, in the sequence like messages: ordered, retransmitted,
 * handled once.  Small reads are GET frames, answered by a RESP; or the core reads,
 * where that is as safe (rma/read.c).  For larger ones the peer is asked once for the
 * keys of its registration, and the core reads or writes the data there (rma/rkey.c,
 * msg/pull.c).  The largest writes are announced and read by their target, like large
 * messages.
 *
 * A write without a completion level is complete when it is in frames (the data is
 * copied, and we deliver it).  With FI_TRANSMIT_COMPLETE or FI_DELIVERY_COMPLETE, its
 * own or the endpoint's, each of its frames is answered; the answer to an inject is
 * counted, and is in the CQ if it is an error.
 */
#include <stdlib.h>

#include "rma/rma.h"
#include "msg/confirm.h"
#include "obj/mr.h"
#include "rail/rail.h"
#include "rma/copy.h"
#include "rma/rkey.h"

#define TRIES		16

/* ---- frames of one operation, made before any of them is numbered ---- */

struct batch {
	struct lnx_node txes;
	struct lnx_txe *last;
};

static void batch_init(struct batch *b)
{
	lnx_list_init(&b->txes);
	b->last = NULL;
}

static struct lnx_txe *batch_add(struct lnx_ep *ep, struct batch *b,
				 const struct lnx_hdr *h, size_t payload)
{
	struct lnx_txe *txe = lnx_txe_get(ep, payload);

	if (lnx_unlikely(!txe))
		return NULL;
	/* The fields that differ between them stay here until they are numbered. */
	lnx_hdr_put(lnx_txe_hdr(txe), h);
	txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + payload);
	lnx_list_add_tail(&b->txes, &txe->f.link);
	b->last = txe;
	return txe;
}

static void batch_free(struct lnx_ep *ep, struct batch *b)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&b->txes)))
		lnx_txe_put(ep, lnx_list_entry(n, struct lnx_txe, f.link));
}

/* Send all.  -FI_EAGAIN: the first could not leave, so none was sent; all are freed. */
static int batch_send(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct batch *b, bool no_queue)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&b->txes))) {
		struct lnx_txe *txe = lnx_list_entry(n, struct lnx_txe, f.link);
		struct lnx_wire_hdr *w = lnx_txe_hdr(txe);
		struct lnx_hdr h = {
			.kind = w->kind, .flags = w->flags,
			.tag = le64toh(w->tag), .data = le64toh(w->data),
			.len = le64toh(w->len), .key = le64toh(w->key),
		};
		int ret = lnx_rel_send(ep, peer, txe, &h, no_queue);

		if (lnx_unlikely(ret)) {
			lnx_txe_put(ep, txe);
			batch_free(ep, b);
			return ret;
		}
		no_queue = false;
	}
	return 0;
}

/* ---- writes ---- */

/* rma_op, if not NULL: request an answer for it. */
static int put_head(struct lnx_rma_op *rma_op, struct lnx_peer *peer, size_t total,
		    uint8_t *at)
{
	struct lnx_wire_put w = { .total = htole64(total) };

	if (rma_op) {
		struct lnx_rma_segment *segment = lnx_rma_segment_get(rma_op, peer,
						     LNX_RMA_SEGMENT_STATUS);

		if (!segment)
			return -FI_ENOMEM;
		w.op = htole64(segment->id);
	}
	memcpy(at, &w, sizeof(w));
	return 0;
}

static ssize_t put(struct lnx_ep *ep, struct lnx_peer *peer,
		   const struct lnx_rma *r, size_t len, bool no_queue)
{
	bool data = lnx_rma_data(r->call) || (r->op_flags & FI_REMOTE_CQ_DATA);
	bool reply = (r->op_flags & LNX_LEVELS) != 0;
	bool comp = !lnx_rma_inject(r->call) && (r->op_flags & FI_COMPLETION);
	struct lnx_cursor c = { .iov = r->iov, .n = r->niov };
	struct lnx_rma_op *rma_op = NULL;
	struct batch b;
	size_t i, off = 0;
	int ret;

	if (reply) {
		rma_op = lnx_rma_op_get(ep, r->context, FI_RMA | FI_WRITE, comp);
		if (!rma_op)
			return -FI_EAGAIN;
	}
	batch_init(&b);
	/* A frame for each target, or several if it is long (ep->saw). */
	for (i = 0; i < r->nrma;) {
		size_t n = LNX_MIN(r->rma[i].len - off, LNX_PUT_MAX), head = 0;
		bool ends = off + n == r->rma[i].len;
		bool last = ends && i + 1 == r->nrma;
		struct lnx_hdr h = {
			.kind = LNX_KIND_PUT, .len = n,
			.tag = r->rma[i].addr + off, .key = r->rma[i].key,
		};
		struct lnx_txe *txe;
		uint8_t *at;

		if (last)
			h.flags |= LNX_WIRE_F_LAST;
		if (last && data) {
			h.flags |= LNX_WIRE_F_DATA;
			h.data = r->data;
		}
		if (reply || (last && data && n < len)) {
			h.flags |= LNX_WIRE_F_PUT;
			head = sizeof(struct lnx_wire_put);
		}
		txe = batch_add(ep, &b, &h, head + n);
		if (lnx_unlikely(!txe))
			goto again;
		at = txe->frame + sizeof(struct lnx_wire_hdr);
		if (head && put_head(rma_op, peer, len, at))
			goto again;
		lnx_rma_cursor_get(&c, at + head, n);
		off = ends ? 0 : off + n;
		i += ends;
	}
	if (!reply) {
		b.last->want_comp = comp;
		b.last->context = r->context;
		b.last->cq_flags = FI_RMA | FI_WRITE;
		b.last->counts = ep->cntr[LNX_CNTR_WRITE] != NULL;
		b.last->tells = !lnx_rma_inject(r->call);
	}
	ret = batch_send(ep, peer, &b, no_queue);
	if (lnx_unlikely(ret)) {
		if (rma_op)
			lnx_rma_op_drop(rma_op);
		return ret;
	}
	if (rma_op)
		lnx_rma_op_done(rma_op, 0);
	return 0;
again:
	batch_free(ep, &b);
	if (rma_op)
		lnx_rma_op_drop(rma_op);
	return -FI_EAGAIN;
}

/* Large operations: one segment for each remote piece, moved by msg/pull.c. */
static int add_parts(struct lnx_rma_op *rma_op, struct lnx_peer *peer,
		     const struct lnx_rma *r, enum lnx_rma_segment_kind kind)
{
	struct lnx_cursor c = { .iov = r->iov, .n = r->niov };
	size_t i;

	for (i = 0; i < r->nrma; i++) {
		struct lnx_rma_segment *segment = lnx_rma_segment_get(rma_op, peer, kind);

		if (!segment)
			return -FI_ENOMEM;
		segment->addr = r->rma[i].addr;
		segment->key = r->rma[i].key;
		segment->len = r->rma[i].len;
		segment->niov = (uint8_t)lnx_rma_cursor_slice(&c, segment->len,
							      segment->iov);
	}
	return 0;
}

/* Have them started, in any order. */
static void start_parts(struct lnx_ep *ep, struct lnx_rma_op *rma_op)
{
	struct lnx_node *n;

	for (n = ep->rma.segments.prev; n != &ep->rma.segments; n = n->prev) {
		struct lnx_rma_segment *segment = lnx_list_entry(n, struct lnx_rma_segment, all);

		if (segment->rma_op != rma_op)
			break;
		lnx_list_add_head(&ep->rma.waiting, &segment->link);
	}
	lnx_rma_op_done(rma_op, 0);
	lnx_rma_run(ep);
}

/* A write by the core, once the keys are known. */
static ssize_t push(struct lnx_ep *ep, struct lnx_peer *peer,
		    const struct lnx_rma *r)
{
	struct lnx_rma_op *rma_op;

	rma_op = lnx_rma_op_get(ep, r->context, FI_RMA | FI_WRITE,
			  (r->op_flags & FI_COMPLETION) != 0);
	if (!rma_op)
		return -FI_EAGAIN;
	rma_op->has_data = lnx_rma_data(r->call) ||
			(r->op_flags & FI_REMOTE_CQ_DATA);
	rma_op->data = r->data;
	if (add_parts(rma_op, peer, r, LNX_RMA_SEGMENT_WRITE)) {
		lnx_rma_op_drop(rma_op);
		return -FI_EAGAIN;
	}
	start_parts(ep, rma_op);
	return 0;
}

/* No core writes over a gateway, and what a path that is DOWN may still write cannot be
 * called back. */
static bool may_push(const struct lnx_peer *peer)
{
	return peer->npath == 1 && !lnx_rail_is_leg(peer->path[0]->rail);
}

/* A write whose target reads the data. */
static ssize_t put_large(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_rma *r, size_t len)
{
	bool data = lnx_rma_data(r->call) || (r->op_flags & FI_REMOTE_CQ_DATA);
	struct lnx_rma_target place[LNX_RMA_TARGETS_MAX];
	struct lnx_announce a = {
		.kind = LNX_KIND_PUT_RTS, .flags = data ? LNX_WIRE_F_DATA : 0,
		.data = r->data, .iov = r->iov, .niov = r->niov, .len = len,
		.place = place, .n_targets = (unsigned)r->nrma,
		.context = r->context, .cq_flags = FI_RMA | FI_WRITE,
		.want_comp = (r->op_flags & FI_COMPLETION) != 0,
	};
	size_t i;

	for (i = 0; i < r->nrma; i++) {
		place[i].addr = r->rma[i].addr;
		place[i].key = r->rma[i].key;
		place[i].len = r->rma[i].len;
	}
	return lnx_rndv_announce(ep, peer, &a);
}

/* ---- reads ---- */

static ssize_t get(struct lnx_ep *ep, struct lnx_peer *peer,
		   const struct lnx_rma *r, bool no_queue)
{
	struct lnx_node *n;
	struct lnx_rma_op *rma_op;
	struct batch b;
	int ret = -FI_EAGAIN;
	size_t i;

	rma_op = lnx_rma_op_get(ep, r->context, FI_RMA | FI_READ,
			  (r->op_flags & FI_COMPLETION) != 0);
	if (!rma_op)
		return -FI_EAGAIN;
	batch_init(&b);
	if (add_parts(rma_op, peer, r, LNX_RMA_SEGMENT_DATA))
		goto again;
	n = ep->rma.segments.prev;
	for (i = 0; i < r->nrma; i++, n = n->prev) {
		const struct lnx_rma_segment *segment =
			lnx_list_entry(n, struct lnx_rma_segment, all);
		struct lnx_hdr h = {
			.kind = LNX_KIND_GET, .len = segment->len,
			.tag = segment->addr, .key = segment->key, .data = segment->id,
			.flags = i ? 0 : LNX_WIRE_F_LAST,
		};

		if (!batch_add(ep, &b, &h, 0)) {
			batch_free(ep, &b);
			goto again;
		}
	}
	ret = batch_send(ep, peer, &b, no_queue);
	if (lnx_unlikely(ret))
		goto again;
	lnx_rma_op_done(rma_op, 0);
	return 0;
again:
	lnx_rma_op_drop(rma_op);
	return ret;
}

static ssize_t get_large(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_rma *r)
{
	struct lnx_rma_op *rma_op;

	rma_op = lnx_rma_op_get(ep, r->context, FI_RMA | FI_READ,
			  (r->op_flags & FI_COMPLETION) != 0);
	if (!rma_op)
		return -FI_EAGAIN;
	if (add_parts(rma_op, peer, r, LNX_RMA_SEGMENT_READ)) {
		lnx_rma_op_drop(rma_op);
		return -FI_EAGAIN;
	}
	start_parts(ep, rma_op);
	return 0;
}

/* ---- complete operations ---- */

/* To ourselves, on a link without shared memory. */
static ssize_t self(struct lnx_ep *ep, struct lnx_peer *peer,
		    const struct lnx_rma *r)
{
	bool read = lnx_rma_read(r->call);
	bool comp = !lnx_rma_inject(r->call) && (r->op_flags & FI_COMPLETION);
	struct lnx_cursor c = { .iov = r->iov, .n = r->niov };
	struct lnx_rma_op *rma_op;
	size_t i, total = 0;
	int err = 0;

	rma_op = lnx_rma_op_get(ep, r->context, FI_RMA | (read ? FI_READ : FI_WRITE),
			  comp);
	if (!rma_op)
		return -FI_EAGAIN;
	for (i = 0; i < r->nrma && !err; i++) {
		struct iovec iov[LNX_IOV_MAX];
		size_t n = lnx_rma_cursor_slice(&c, r->rma[i].len, iov);
		uint8_t *ptr;

		err = -lnx_mr_check(ep->domain, r->rma[i].key, r->rma[i].addr,
				    r->rma[i].len, read ? FI_REMOTE_READ :
							  FI_REMOTE_WRITE,
				    &ptr, NULL);
		if (err)
			break;
		if (read)
			lnx_msg_iov_put(iov, n, ptr, r->rma[i].len);
		else
			lnx_msg_iov_get(ptr, iov, n);
		total += r->rma[i].len;
	}
	if (!err && !read && lnx_mrs_counted(ep->domain)) {
		uint64_t key[LNX_RMA_TARGETS_MAX];
		unsigned n = 0;

		for (i = 0; i < r->nrma; i++)
			n = lnx_mr_key_add(key, n, r->rma[i].key);
		lnx_mr_count(ep->domain, key, n);
	}
	if (!err) {
		bool data = lnx_rma_data(r->call) ||
			    (r->op_flags & FI_REMOTE_CQ_DATA);

		lnx_cntr_ok(ep, read ? LNX_CNTR_REMOTE_READ :
				       LNX_CNTR_REMOTE_WRITE);
		if (!read && data)
			lnx_cq_write(ep->rx_cq, NULL, FI_RMA |
				     FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
				     total, NULL, r->data, 0, peer->addr);
	}
	lnx_rma_op_done(rma_op, err);
	return 0;
}

/* Do now what lnx_rma_submit would do, and did not. */
static ssize_t direct(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_rma *r)
{
	ssize_t ret;

	if (lnx_rma_read(r->call) ||
	    lnx_msg_iov_len(r->iov, r->niov) > LNX_INJECT_MAX)
		return lnx_rma_large(ep, peer, r);
	ret = lnx_rma_follow(ep, peer);
	if (lnx_unlikely(ret))
		return ret;
	ret = -FI_EAGAIN;
	if ((r->op_flags & FI_DELIVERY_COMPLETE) || lnx_confirm_counts(peer))
		return lnx_confirm_rma(ep, peer, r);
	if (!peer->shm.nqueued)
		ret = lnx_direct_post_rma(ep->shm->core_ep, peer->shm_addr, r, NULL);
	return ret == -FI_EAGAIN ? lnx_rma_direct_retry(ep, peer, r) : ret;
}

ssize_t lnx_rma_framed(struct lnx_ep *ep, const struct lnx_rma *r)
{
	struct lnx_peer *peer;
	bool no_queue;
	size_t len;
	ssize_t ret;

	ret = lnx_rel_find(ep, r->dest, &peer);
	if (lnx_unlikely(ret))
		return ret;
	/* A local peer that was made only now, or has sends queued. */
	if (lnx_unlikely(peer->shm_addr != FI_ADDR_NOTAVAIL)) {
		ret = direct(ep, peer, r);
		ep->stats.direct_rma += !ret;
		return ret;
	}
	len = lnx_msg_iov_len(r->iov, r->niov);
	if (lnx_unlikely(len > ep->limits.max_msg_size))
		return -FI_EMSGSIZE;
	if (lnx_unlikely((r->op_flags & FI_INJECT) && len > ep->inject_size &&
			 !lnx_rma_read(r->call)))
		return -FI_EINVAL;
	if (lnx_unlikely(peer->self))
		return self(ep, peer, r);
	if (lnx_rma_read(r->call) && len <= LNX_GET_MAX) {
		ret = lnx_read_core(ep, peer, r);
		if (ret != LNX_READ_BY_FRAME) {
			ep->stats.reads += !ret;
			return ret;
		}
	}
	if (lnx_unlikely(peer->rma.n_reads)) {
		ret = lnx_read_wait(ep, peer);
		if (ret)
			return ret;
	}
	ret = lnx_rel_room(ep, peer, lnx_rma_inject(r->call) ? FI_INJECT :
							       r->op_flags,
			   &no_queue);
	if (lnx_unlikely(ret))
		return ret;
	ret = lnx_rma_op_admit(ep, peer);
	if (lnx_unlikely(ret))
		return ret;
	if (lnx_rma_read(r->call)) {
		ret = len <= LNX_GET_MAX ? get(ep, peer, r, no_queue) :
					   get_large(ep, peer, r);
		ep->stats.reads += !ret;
		peer->cur->rail->traffic.reads += !ret;
		peer->rma.memory_seq = peer->chan.next;
		return ret;
	}
	/* Frames are ordered; what cores write is not. */
	if (lnx_likely(len <= LNX_PUT_MAX || ep->saw))
		ret = put(ep, peer, r, len, no_queue);
	else
		ret = len <= LNX_PUSH_MAX && may_push(peer) ?
			push(ep, peer, r) : put_large(ep, peer, r, len);
	ep->stats.writes += !ret;
	peer->rma.memory_seq = peer->chan.next;
	return ret;
}

LNX_COLD ssize_t lnx_rma_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				      const struct lnx_rma *r)
{
	unsigned i;

	for (i = 0; i < TRIES; i++) {
		ssize_t ret;

		lnx_obj_progress(ep);
		if (peer->shm_addr == FI_ADDR_NOTAVAIL)
			return -FI_EHOSTUNREACH;
		if (peer->shm.nqueued)
			continue;	/* not before queued sends */
		ret = lnx_direct_post_rma(ep->shm->core_ep, peer->shm_addr, r, NULL);
		if (ret != -FI_EAGAIN)
			return ret;
	}
	return -FI_EAGAIN;
}
