/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's completion queue.  It is a plain ring: a lock and a list walk would
 * cost what we gain over a bare provider.  It grows instead of overrunning, because
 * core providers cannot be told to wait.
 */
#ifndef LNX_CQ_H
#define LNX_CQ_H

#include <assert.h>

#include "base/list.h"
#include "base/lock.h"
#include "fi.h"
#include "obj/eps.h"

struct lnx_domain;
struct lnx_wait;

/* Most entries of a queue. */
#define LNX_CQ_MAX	(1u << 26)

/* One completion, one cache line. */
struct lnx_cqe {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	struct fi_cq_err_entry *err;	/* owned (see lnx_cq_err_bare); NULL: success */
};
static_assert(sizeof(struct lnx_cqe) == 64, "one cache line");

struct lnx_cq {
	_Alignas(64)
	struct fid_cq fid;
	/* Ring; guarded by lock.  head is read, tail written; free-running until the
	 * ring is empty. */
	uint32_t head;
	uint32_t tail;
	uint32_t mask;
	uint32_t before;		/* entries written before those */
	uint32_t unasked;		/* reads since the cores were last polled */
	bool overrun;			/* memory was short: a FI_EOVERRUN entry is
					 * in the ring */
	bool is_null;		/* never read: entries are dropped */
	struct lnx_cqe *ring;		/* own until it grows */
	struct lnx_wait *wait;		/* NULL for FI_WAIT_NONE */
	struct lnx_eps eps;
	struct lnx_lock lock;
	enum fi_cq_format format;
	uint32_t entry_size;		/* of that format */
	struct lnx_idle idle;
	struct lnx_domain *domain;
	int refs;			/* endpoints bound */
	/* Mostly in the page of the other members: only the start of it is used. */
	_Alignas(64)
	struct lnx_cqe own[];
};

/*
 * head and tail change under the lock only.  They are also read without it, as a cheap
 * test for an empty queue: such a read may be late, but not wrong for long.
 */
LNX_INLINE void lnx_cq_move(uint32_t *at, uint32_t to)
{
	__atomic_store_n(at, to, __ATOMIC_RELAXED);
}

/* Entries so far, modulo 2^32. */
LNX_INLINE uint32_t lnx_cq_written(const struct lnx_cq *cq)
{
	return __atomic_load_n(&cq->before, __ATOMIC_RELAXED) +
	       __atomic_load_n(&cq->tail, __ATOMIC_RELAXED);
}

/*
 * The ring is empty: go back to its start, so that a program which keeps up uses the
 * same few cache lines.
 */
LNX_INLINE void lnx_cq_restart(struct lnx_cq *cq)
{
	lnx_cq_move(&cq->before, cq->before + cq->tail);
	lnx_cq_move(&cq->head, 0);
	lnx_cq_move(&cq->tail, 0);
}

LNX_INLINE bool lnx_cq_empty(const struct lnx_cq *cq)
{
	return __atomic_load_n(&cq->head, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&cq->tail, __ATOMIC_RELAXED);
}

/* ---- obj/cq.c; cq->lock held, except for lnx_cq_wake and those that write ---- */

/* Room for more entries.  0 or -FI_ENOMEM: then FI_EOVERRUN is the last entry. */
LNX_COLD int lnx_cq_grow(struct lnx_cq *cq);
/* Wake the threads that sleep on it. */
LNX_COLD void lnx_cq_wake(struct lnx_cq *cq);
/* Forget all entries. */
LNX_COLD void lnx_cq_drop(struct lnx_cq *cq);
/* At close. */
LNX_COLD void lnx_cq_free_ring(struct lnx_cq *cq);

/*
 * An error for which there was no memory: then e->err is no pointer but the error code,
 * and the entry itself has the other values; in place of the source it has the excess
 * length.
 */
static inline bool lnx_cq_err_bare(const struct fi_cq_err_entry *err)
{
	return (uintptr_t)err & 1;
}

/* Is there an entry for one more?  The last one is kept for FI_EOVERRUN. */
LNX_INLINE bool lnx_cq_room(const struct lnx_cq *cq)
{
	return cq->tail - cq->head < cq->mask;
}

/* Fill the next entry, for which there is room.  cq->lock held. */
LNX_INLINE void lnx_cq_put(struct lnx_cq *cq, void *context, uint64_t flags, size_t len,
			   void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct lnx_cqe *e = &cq->ring[cq->tail & cq->mask];

	e->context = context;
	e->flags = flags;
	e->len = len;
	e->buf = buf;
	e->data = data;
	e->tag = tag;
	e->src = src;
	e->err = NULL;
	lnx_cq_move(&cq->tail, cq->tail + 1);
}

/* lnx_cq_write where other threads use the queue or sleep on it, or it has to grow. */
void lnx_cq_write_slow(struct lnx_cq *cq, void *context, uint64_t flags, size_t len,
		       void *buf, uint64_t data, uint64_t tag, fi_addr_t src);

/*
 * Add one completion.  Any thread that holds the owner lock of a bound endpoint.  Never
 * fails: when memory is exhausted the CQ ends with FI_EOVERRUN.
 */
LNX_INLINE void lnx_cq_write(struct lnx_cq *cq, void *context, uint64_t flags,
			     size_t len, void *buf, uint64_t data,
			     uint64_t tag, fi_addr_t src)
{
	/* All calls are here, so that the usual case need not save registers for them. */
	if (lnx_unlikely(cq->lock.on || cq->wait || !lnx_cq_room(cq)))
		lnx_cq_write_slow(cq, context, flags, len, buf, data, tag, src);
	else
		lnx_cq_put(cq, context, flags, len, buf, data, tag, src);
}

/* Add an error completion.  It is copied; err_data stays the caller's. */
LNX_COLD void lnx_cq_write_err(struct lnx_cq *cq,
			       const struct fi_cq_err_entry *err);

#endif
