/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writing a completion queue, slow half (obj/cq.h): growing it, errors, waking threads. */
#include "obj/cq.h"

#include <stdlib.h>

#include "obj/wait.h"

static void put_bare(struct lnx_cqe *e, const struct fi_cq_err_entry *err)
{
	e->context = err->op_context;
	e->flags = err->flags;
	e->len = err->len;
	e->buf = err->buf;
	e->data = err->data;
	e->tag = err->tag;
	e->src = err->olen;
	e->err = (void *)((uintptr_t)err->err << 1 | 1);
}

LNX_COLD void lnx_cq_drop(struct lnx_cq *cq)
{
	for (; cq->head != cq->tail; cq->head++) {
		struct fi_cq_err_entry *err =
			cq->ring[cq->head & cq->mask].err;

		if (!lnx_cq_err_bare(err))
			free(err);
	}
}

LNX_COLD void lnx_cq_free_ring(struct lnx_cq *cq)
{
	if (cq->ring != cq->own)
		free(cq->ring);
}

LNX_COLD int lnx_cq_grow(struct lnx_cq *cq)
{
	uint32_t n = cq->mask + 1, i, used = cq->tail - cq->head;
	struct lnx_cqe *ring = NULL;

	if (cq->is_null) {
		lnx_cq_drop(cq);
		return 0;
	}
	if (cq->overrun)
		return -FI_ENOMEM;
	if (n < LNX_CQ_MAX)
		ring = aligned_alloc(64, 2ul * n * sizeof(*ring));
	if (!ring) {
		static const struct fi_cq_err_entry lost = {
			.err = FI_EOVERRUN, .src_addr = FI_ADDR_NOTAVAIL,
		};

		LNX_WARN(FI_LOG_CQ,
			 "completion queue overrun: no memory for more than %u entries\n",
			 n);
		/*
		 * It comes after all that were kept, in the entry reserved for it, and
		 * stays.
		 */
		cq->overrun = true;
		put_bare(&cq->ring[cq->tail & cq->mask], &lost);
		lnx_cq_move(&cq->tail, cq->tail + 1);
		return -FI_ENOMEM;
	}
	for (i = 0; i < used; i++)
		ring[i] = cq->ring[(cq->head + i) & cq->mask];
	lnx_cq_free_ring(cq);
	cq->ring = ring;
	lnx_cq_move(&cq->before, cq->before + cq->head);
	lnx_cq_move(&cq->head, 0);
	lnx_cq_move(&cq->tail, used);
	cq->mask = 2 * n - 1;
	return 0;
}

void lnx_cq_write_slow(struct lnx_cq *cq, void *context, uint64_t flags, size_t len,
		       void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
	bool lost;

	lnx_lock(&cq->lock);
	lost = lnx_unlikely(!lnx_cq_room(cq)) && lnx_cq_grow(cq);
	if (!lost)
		lnx_cq_put(cq, context, flags, len, buf, data, tag, src);
	lnx_unlock(&cq->lock);
	if (!lost && lnx_unlikely(cq->wait != NULL))
		lnx_cq_wake(cq);
}

LNX_COLD void lnx_cq_write_err(struct lnx_cq *cq,
			       const struct fi_cq_err_entry *err)
{
	struct fi_cq_err_entry *copy = malloc(sizeof(*copy));
	struct lnx_cqe *e;

	if (copy) {
		*copy = *err;
		copy->err_data = NULL;
		copy->err_data_size = 0;
	}
	lnx_lock(&cq->lock);
	if (cq->tail - cq->head >= cq->mask && lnx_cq_grow(cq)) {
		lnx_unlock(&cq->lock);
		free(copy);
		return;
	}
	e = &cq->ring[cq->tail & cq->mask];
	if (copy)
		e->err = copy;
	else
		put_bare(e, err);
	lnx_cq_move(&cq->tail, cq->tail + 1);
	lnx_unlock(&cq->lock);
	if (cq->wait)
		lnx_cq_wake(cq);
}

LNX_COLD void lnx_cq_wake(struct lnx_cq *cq)
{
	lnx_wait_signal(cq->wait);
}
