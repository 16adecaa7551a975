/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations over framed rails, and those with a result over the direct rail.
 * Called by rma/amo.h; builds one ATOMIC frame, which gets a number in the sequence, and an
 * operation that ends with its answer (rma/rma.c); or one message of the shm rail, and an
 * operation that waits as one with FI_DELIVERY_COMPLETE does (msg/confirm.h).
 */
#include "rma/amo.h"
#include "msg/confirm.h"
#include "msg/tx.h"
#include "rail/rail.h"
#include "rma/amo_serve.h"
#include "rma/rma.h"
#include "wire/atomic.h"
#include "wire/shm_ctrl.h"

#define TRIES	16

/* ---- checks ---- */

/* Does the number of elements of all pieces add up to count? */
static bool adds_up(const struct fi_ioc *ioc, size_t n, size_t count)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (ioc[i].count > count)
			return false;
		count -= ioc[i].count;
	}
	return !count;
}

int lnx_amo_check(const struct lnx_ep *ep, const struct lnx_amo_tx *t)
{
	enum lnx_amo_class cls = lnx_amo_class(t->call);
	size_t max = lnx_amo_count(ep->domain, t->op, t->type, cls);
	size_t i, count = 0, bytes;

	if (lnx_unlikely(!max))
		return -FI_EOPNOTSUPP;
	if (lnx_unlikely(!t->nrma || t->nrma > LNX_ATOMIC_SEGS ||
			 t->niov > LNX_IOV_MAX || t->ncmp > LNX_IOV_MAX ||
			 t->nres > LNX_IOV_MAX))
		return -FI_EINVAL;
	for (i = 0; i < t->nrma; i++) {
		if (lnx_unlikely(t->rma[i].count > max - count))
			return -FI_EMSGSIZE;
		count += t->rma[i].count;
	}
	if (lnx_unlikely(!(t->op == FI_ATOMIC_READ && !t->niov) &&
			 !adds_up(t->iov, t->niov, count)))
		return -FI_EINVAL;
	if (cls != LNX_AMO_BASE &&
	    lnx_unlikely(!adds_up(t->res, t->nres, count)))
		return -FI_EINVAL;
	if (cls == LNX_AMO_COMPARE &&
	    lnx_unlikely(!adds_up(t->cmp, t->ncmp, count)))
		return -FI_EINVAL;
	bytes = count * lnx_amo_size(t->type) * lnx_amo_operands(t->op, cls);
	if (lnx_unlikely(bytes > ep->inject_size &&
			 (lnx_amo_inject(t->call) ||
			  (t->op_flags & FI_INJECT))))
		return -FI_EINVAL;
	return 0;
}

/* ---- the frame ---- */

static void describe(struct lnx_atomic *a, const struct lnx_amo_tx *t)
{
	enum lnx_amo_class cls = lnx_amo_class(t->call);
	size_t i;

	a->op = (uint8_t)t->op;
	a->type = (uint8_t)t->type;
	a->cls = (uint8_t)cls;
	a->noperand = (uint8_t)lnx_amo_operands(t->op, cls);
	a->nseg = (unsigned)t->nrma;
	a->size = (unsigned)lnx_amo_size(t->type);
	a->count = 0;
	for (i = 0; i < t->nrma; i++) {
		a->seg[i].addr = t->rma[i].addr;
		a->seg[i].key = t->rma[i].key;
		a->seg[i].count = (unsigned)t->rma[i].count;
		a->count += a->seg[i].count;
	}
}

static uint8_t *gather(uint8_t *p, const struct fi_ioc *ioc, size_t n,
		       size_t size)
{
	size_t i;

	for (i = 0; i < n; i++) {
		size_t len = ioc[i].count * size;

		if (len)
			memcpy(p, ioc[i].addr, len);
		p += len;
	}
	return p;
}

static void fill(uint8_t *payload, const struct lnx_atomic *a,
		 const struct lnx_amo_tx *t)
{
	uint8_t *p = payload + lnx_atomic_head(a);

	lnx_atomic_put(payload, a);
	if (a->noperand > 0)
		p = gather(p, t->iov, t->niov, a->size);
	if (a->noperand > 1)
		gather(p, t->cmp, t->ncmp, a->size);
}

/* Where the answer goes. */
static unsigned results(struct iovec *iov, const struct lnx_amo_tx *t,
			size_t size)
{
	unsigned i;

	for (i = 0; i < t->nres; i++) {
		iov[i].iov_base = t->res[i].addr;
		iov[i].iov_len = t->res[i].count * size;
	}
	return i;
}

/* ---- submitting ---- */

/* To ourselves, on a link without shared memory: as if it had arrived. */
static ssize_t self(struct lnx_ep *ep, const struct lnx_atomic *a,
		    const struct lnx_amo_tx *t, struct lnx_rma_op *rma_op)
{
	struct lnx_txe *in = lnx_txe_get(ep, lnx_atomic_size(a));
	struct lnx_txe *out = lnx_txe_get(ep, lnx_atomic_bytes(a));
	struct iovec iov[LNX_IOV_MAX];
	int err = -FI_EAGAIN;

	if (in && out) {
		fill(in->frame, a, t);
		err = lnx_amo_local(ep, in->frame, lnx_atomic_size(a),
				    out->frame);
		if (!err)
			lnx_msg_iov_put(iov, results(iov, t, a->size), out->frame,
					lnx_atomic_bytes(a));
	}
	if (in)
		lnx_txe_put(ep, in);
	if (out)
		lnx_txe_put(ep, out);
	if (err == -FI_EAGAIN)
		return err;
	lnx_rma_op_done(rma_op, err);
	return 0;
}

static ssize_t send_frame(struct lnx_ep *ep, struct lnx_peer *peer,
			  const struct lnx_atomic *a,
			  const struct lnx_amo_tx *t, struct lnx_rma_op *rma_op,
			  bool no_queue)
{
	bool fetch = lnx_amo_class(t->call) != LNX_AMO_BASE;
	size_t len = lnx_atomic_size(a);
	struct lnx_rma_segment *segment;
	struct lnx_txe *txe;
	struct lnx_hdr h = { .kind = LNX_KIND_ATOMIC, .len = len };
	ssize_t ret;

	segment = lnx_rma_segment_get(rma_op, peer, fetch ? LNX_RMA_SEGMENT_DATA :
					       LNX_RMA_SEGMENT_STATUS);
	if (lnx_unlikely(!segment))
		return -FI_EAGAIN;
	txe = lnx_txe_get(ep, len);
	if (lnx_unlikely(!txe))
		return -FI_EAGAIN;
	if (fetch) {
		segment->len = lnx_atomic_bytes(a);
		segment->niov = (uint8_t)results(segment->iov, t, a->size);
	}
	fill(txe->frame + sizeof(struct lnx_wire_hdr), a, t);
	txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + len);
	h.data = segment->id;
	ret = lnx_rel_send(ep, peer, txe, &h, no_queue);
	if (lnx_unlikely(ret)) {
		lnx_txe_put(ep, txe);
		return ret;
	}
	peer->rma.memory_seq = peer->chan.next;
	lnx_rma_op_done(rma_op, 0);
	return 0;
}

/* Have the lnx of a local peer execute one with a result. */
static ssize_t ask(struct lnx_ep *ep, struct lnx_peer *peer, const struct lnx_amo_tx *t)
{
	uint8_t bytes[LNX_COPY_BYTES];
	struct iovec iov = { .iov_base = bytes };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	struct lnx_wire_shm_amo w;
	struct lnx_confirm *c;
	struct lnx_atomic a;
	ssize_t ret = -FI_EAGAIN;

	if (lnx_unlikely(peer->shm.nqueued >= lnx_ep_queue_max(ep, t->op_flags)))
		return -FI_EAGAIN;
	c = lnx_confirm_get(ep, peer, t->context, FI_ATOMIC | FI_READ,
			    (t->op_flags & FI_COMPLETION) != 0, true);
	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	if (lnx_unlikely(peer->shm_addr == FI_ADDR_NOTAVAIL)) {
		lnx_confirm_put(c);
		return -FI_EHOSTUNREACH;
	}
	describe(&a, t);
	c->niov = (uint8_t)results(c->iov, t, a.size);
	c->len = lnx_atomic_bytes(&a);
	c->asked = false;
	lnx_confirm_wait(c);
	memset(&w, 0, LNX_SHM_AMO_HEAD);
	w.src = ep->eid;
	w.dst = peer->eid;
	w.op = c->op;
	w.len = (uint32_t)lnx_atomic_size(&a);
	w.kind = LNX_KIND_ATOMIC;
	fill(lnx_shm_amo_put(bytes, &w), &a, t);
	iov.iov_len = lnx_shm_amo_size(w.len);
	if (lnx_likely(!peer->shm.nqueued))
		ret = lnx_large_ctrl_post(ep, peer->shm_addr, &ctrl);
	if (lnx_unlikely(ret == -FI_EAGAIN))
		ret = lnx_direct_queue(ep, peer, &ctrl);
	if (lnx_unlikely(ret))
		lnx_confirm_end(c, (int)-ret);
	return 0;
}

/* Do now what lnx_amo_submit would do, and did not. */
static ssize_t direct(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_amo_tx *t)
{
	ssize_t ret = lnx_rma_follow(ep, peer);

	if (lnx_unlikely(ret))
		return ret;
	if (lnx_amo_class(t->call) != LNX_AMO_BASE)
		return ask(ep, peer, t);
	ret = -FI_EAGAIN;
	if ((t->op_flags & FI_DELIVERY_COMPLETE) || lnx_confirm_counts(peer))
		return lnx_confirm_amo(ep, peer, t);
	if (!peer->shm.nqueued)
		ret = lnx_direct_post_amo(ep->shm->core_ep, peer->shm_addr, t->call,
					  t);
	return ret == -FI_EAGAIN ? lnx_amo_direct_retry(ep, peer, t) : ret;
}

ssize_t lnx_amo_framed(struct lnx_ep *ep, const struct lnx_amo_tx *t)
{
	bool fetch = lnx_amo_class(t->call) != LNX_AMO_BASE;
	bool comp = !lnx_amo_inject(t->call) && (t->op_flags & FI_COMPLETION);
	struct lnx_atomic a;
	struct lnx_peer *peer;
	struct lnx_rma_op *rma_op;
	bool no_queue = false;
	ssize_t ret;

	ret = lnx_rel_find(ep, t->dest, &peer);
	if (lnx_unlikely(ret))
		return ret;
	/* With a result; or a local peer that was made only now, or has sends queued. */
	if (lnx_unlikely(peer->shm_addr != FI_ADDR_NOTAVAIL)) {
		ret = direct(ep, peer, t);
		ep->stats.direct_rma += !ret;
		return ret;
	}
	if (lnx_likely(!peer->self)) {
		if (lnx_unlikely(peer->rma.n_reads)) {
			ret = lnx_read_wait(ep, peer);
			if (ret)
				return ret;
		}
		ret = lnx_rel_room(ep, peer, lnx_amo_inject(t->call) ?
				   FI_INJECT : t->op_flags, &no_queue);
		if (lnx_likely(!ret))
			ret = lnx_rma_op_admit(ep, peer);
		if (lnx_unlikely(ret))
			return ret;
	}
	rma_op = lnx_rma_op_get(ep, t->context,
			  FI_ATOMIC | (fetch ? FI_READ : FI_WRITE), comp);
	if (lnx_unlikely(!rma_op))
		return -FI_EAGAIN;
	describe(&a, t);
	ret = lnx_unlikely(peer->self) ? self(ep, &a, t, rma_op) :
	      send_frame(ep, peer, &a, t, rma_op, no_queue);
	if (lnx_unlikely(ret))
		lnx_rma_op_drop(rma_op);
	else
		ep->stats.atomics++;
	return ret;
}

LNX_COLD ssize_t lnx_amo_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				      const struct lnx_amo_tx *t)
{
	unsigned i;

	for (i = 0; i < TRIES; i++) {
		ssize_t ret;

		lnx_obj_progress(ep);
		if (peer->shm_addr == FI_ADDR_NOTAVAIL)
			return -FI_EHOSTUNREACH;
		if (peer->shm.nqueued)
			continue;	/* not before queued sends */
		ret = lnx_direct_post_amo(ep->shm->core_ep, peer->shm_addr, t->call,
					  t);
		if (ret != -FI_EAGAIN)
			return ret;
	}
	return -FI_EAGAIN;
}
