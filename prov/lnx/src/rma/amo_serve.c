/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations, target's side.  Called by rma/serve.c with frames that are next in
 * order, by rma/amo.c for ourselves, and by msg/fetch.c for local peers; checks all pieces
 * against the registrations (core/mr.c) before it changes any of them with rma/amo_exec.c.
 *
 * Runs inside a core's progress on peer rails: answers are queued.
 */
#include "rma/amo_serve.h"

#include "msg/confirm.h"
#include "msg/confirm_answer.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "obj/mr.h"
#include "rail/rail.h"
#include "rma/serve.h"
#include "wire/atomic.h"
#include "wire/shm_ctrl.h"

/* A checked operation. */
struct job {
	struct lnx_atomic a;
	uint8_t *at[LNX_ATOMIC_SEGS];
	const uint8_t *operands;
	unsigned bad;			/* index of the piece that was refused */
};

static uint64_t access_of(const struct lnx_atomic *a)
{
	if (a->op == FI_ATOMIC_READ)
		return FI_REMOTE_READ;
	return a->cls == LNX_AMO_BASE ? FI_REMOTE_WRITE :
					FI_REMOTE_WRITE | FI_REMOTE_READ;
}

/* 0 or a positive error. */
static int check(struct lnx_ep *ep, struct job *job, const uint8_t *payload,
		 size_t size)
{
	struct lnx_atomic *a = &job->a;

	if (lnx_atomic_get(a, payload, size))
		return FI_EINVAL;
	if (!lnx_amo_valid((enum fi_op)a->op, (enum fi_datatype)a->type,
			   (enum lnx_amo_class)a->cls) ||
	    a->size != lnx_amo_size((enum fi_datatype)a->type) ||
	    a->noperand != lnx_amo_operands((enum fi_op)a->op,
					    (enum lnx_amo_class)a->cls))
		return FI_EOPNOTSUPP;
	for (job->bad = 0; job->bad < a->nseg; job->bad++) {
		int ret = lnx_mr_check(ep->domain, a->seg[job->bad].key,
				       a->seg[job->bad].addr,
				       (size_t)a->seg[job->bad].count * a->size,
				       access_of(a), &job->at[job->bad], NULL);

		if (ret)
			return -ret;
	}
	job->operands = payload + lnx_atomic_head(a);
	return 0;
}

/* result is written only if the class returns values. */
static void run(const struct job *job, uint8_t *result)
{
	const struct lnx_atomic *a = &job->a;
	enum fi_op op = (enum fi_op)a->op;
	enum fi_datatype type = (enum fi_datatype)a->type;
	size_t off = 0;
	unsigned i;

	for (i = 0; i < a->nseg; i++) {
		const uint8_t *src = a->noperand ? job->operands + off : NULL;
		unsigned n = a->seg[i].count;

		if (a->cls == LNX_AMO_BASE)
			lnx_amo_base(op, type, job->at[i], src, n);
		else if (a->cls == LNX_AMO_FETCH)
			lnx_amo_fetch(op, type, job->at[i], src, result + off,
				      n);
		else
			lnx_amo_compare(op, type, job->at[i], src,
					src + lnx_atomic_bytes(a),
					result + off, n);
		off += (size_t)n * a->size;
	}
}

static void count(struct lnx_ep *ep, const struct lnx_atomic *a)
{
	uint64_t key[LNX_ATOMIC_SEGS];
	unsigned i, n = 0;

	lnx_cntr_ok(ep, a->cls == LNX_AMO_BASE ? LNX_CNTR_REMOTE_WRITE :
						 LNX_CNTR_REMOTE_READ);
	if (!lnx_mrs_counted(ep->domain) || a->op == FI_ATOMIC_READ)
		return;
	for (i = 0; i < a->nseg; i++)
		n = lnx_mr_key_add(key, n, a->seg[i].key);
	lnx_mr_count(ep->domain, key, n);
}

LNX_COLD static void refuse(struct lnx_ep *ep, const struct lnx_peer *peer,
			    const struct lnx_hdr *h, const struct job *job,
			    int err)
{
	struct lnx_hdr piece = *h;

	if (err == FI_EINVAL || err == FI_EOPNOTSUPP) {
		ep->stats.bad_frames++;
		return;
	}
	piece.key = job->a.seg[job->bad].key;
	piece.tag = job->a.seg[job->bad].addr;
	piece.len = (uint64_t)job->a.seg[job->bad].count * job->a.size;
	lnx_serve_refuse(ep, peer, &piece, err);
}

int lnx_amo_serve(struct lnx_ep *ep, struct lnx_peer *peer,
		  const struct lnx_hdr *h, const uint8_t *payload, size_t size)
{
	struct job job;
	struct lnx_txe *txe;
	void *result;
	size_t len = 0;
	int err, ret;

	/* A peer that gets no answer reports the operation as failed. */
	if (lnx_unlikely(lnx_peer_dead(peer)))
		return 0;
	err = check(ep, &job, payload, size);
	if (lnx_unlikely(err))
		refuse(ep, peer, h, &job, err);
	else if (job.a.cls != LNX_AMO_BASE)
		len = lnx_atomic_bytes(&job.a);
	txe = lnx_serve_answer_get(ep, len, &result);
	if (lnx_unlikely(!txe))
		return -FI_ENOMEM;
	/*
	 * The answer is queued first, so that nothing is executed twice when memory is
	 * short.  Progress sends it, after its payload has been filled.
	 */
	ret = lnx_serve_answer(ep, peer, txe, h->data, err, len);
	if (lnx_unlikely(ret || err))
		return ret;
	run(&job, result);
	count(ep, &job.a);
	return 0;
}

/* ---- of local peers ---- */

/* The answer is queued, for progress to send it. */
static void serve_local(struct lnx_peer *peer, const struct lnx_wire_shm_amo *w,
			const uint8_t *payload)
{
	struct lnx_hdr h = { .kind = LNX_KIND_ATOMIC };
	struct lnx_ep *ep = peer->ep;
	uint8_t *result;
	struct job job;
	int err = check(ep, &job, payload, w->len);

	if (!err && lnx_unlikely(job.a.cls == LNX_AMO_BASE ||
				 lnx_atomic_bytes(&job.a) > LNX_SHM_AMO_BYTES))
		err = FI_EINVAL;
	if (lnx_unlikely(err)) {
		refuse(ep, peer, &h, &job, err);
		lnx_confirm_answer(peer, w->op, err);
		return;
	}
	result = lnx_confirm_result(peer, w->op, lnx_atomic_bytes(&job.a));
	if (lnx_unlikely(!result))
		return;
	run(&job, result);
	count(ep, &job.a);
}

bool lnx_amo_came(struct lnx_ep *ep, const void *bytes, size_t size)
{
	const uint8_t *data = (const uint8_t *)bytes + LNX_SHM_AMO_HEAD;
	struct lnx_wire_shm_amo w;
	struct lnx_peer *peer;

	if (lnx_shm_amo_get(&w, bytes, size, ep->eid))
		return false;
	if (w.kind == LNX_KIND_RESP) {
		peer = lnx_peer_by_eid(ep, w.src);
		if (peer)
			lnx_confirm_result_came(peer, w.op, data, w.len);
		return true;
	}
	peer = lnx_fetch_ctrl_sender(ep, w.src);
	if (lnx_unlikely(!peer)) {
		ep->stats.lost++;
	} else if (lnx_unlikely(ep->leaving)) {
		/* Registrations may be closed now without waiting for us. */
		lnx_confirm_answer(peer, w.op, FI_ENOKEY);
	} else {
		ep->stats.confirms++;
		serve_local(peer, &w, data);
	}
	return true;
}

/* ---- of ourselves ---- */

int lnx_amo_local(struct lnx_ep *ep, const uint8_t *payload, size_t size,
		  uint8_t *result)
{
	struct job job;
	int err = check(ep, &job, payload, size);

	if (err)
		return err;
	run(&job, result);
	count(ep, &job.a);
	return 0;
}
