/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters: operations of one or more endpoints that have ended, well or not, whether
 * or not a completion was reported.  Each operation is counted once, where it ends: on
 * the direct rail by the core, into counters that we lend to it; receives, and
 * everything on framed rails, by us.
 *
 * Events and what the application adds are counted apart: a wait must tell a change by
 * an event from one by fi_cntr_add or fi_cntr_set.
 */
#ifndef LNX_CNTR_H
#define LNX_CNTR_H

#include "base/list.h"
#include "base/lock.h"
#include "fi.h"
#include "obj/eps.h"

struct lnx_domain;
struct lnx_wait;

/* What an endpoint counts; order of lnx_ep.cntr. */
enum lnx_cntr_kind {
	LNX_CNTR_RECV,
	LNX_CNTR_SEND,
	LNX_CNTR_WRITE,			/* atomics without a result too */
	LNX_CNTR_READ,			/* atomics with a result too */
	LNX_CNTR_REMOTE_WRITE,		/* of peers, to our memory */
	LNX_CNTR_REMOTE_READ,
	LNX_CNTR_KINDS
};

struct lnx_cntr {
	struct fid_cntr fid;
	/* Ended so far; only grow.  Atomic. */
	uint64_t ok;
	uint64_t err;
	bool threads;			/* several may count at once */
	bool yield;			/* FI_WAIT_YIELD */
	struct lnx_wait *wait;		/* NULL: no thread can sleep on it */
	struct lnx_eps eps;
	struct lnx_lock lock;		/* of idle */
	struct lnx_idle idle;
	/* What the application added, modulo 2^64.  Atomic. */
	uint64_t ok_base;
	uint64_t err_base;
	/*
	 * Events that the application knows of, because it read the value or set it.
	 * Atomic.
	 */
	uint64_t ok_read;
	uint64_t err_read;
	uint64_t ok_set;
	uint64_t err_set;
	struct lnx_domain *domain;
	int refs;			/* endpoints, registrations, poll sets */
	int nmr;			/* registrations: all endpoints of the domain
					 * may count; atomic */
};

/* Wake the threads that sleep on it. */
LNX_COLD void lnx_cntr_wake(struct lnx_cntr *cntr);

LNX_INLINE void lnx_cntr_bump(struct lnx_cntr *cntr, uint64_t *events)
{
	if (lnx_likely(!cntr->threads))
		__atomic_store_n(events, *events + 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(events, 1, __ATOMIC_RELEASE);
	if (lnx_unlikely(cntr->wait != NULL))
		lnx_cntr_wake(cntr);
}

/* Operations that have ended so far.  Any thread. */
LNX_INLINE uint64_t lnx_cntr_ended(const struct lnx_cntr *cntr)
{
	return __atomic_load_n(&cntr->ok, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(&cntr->err, __ATOMIC_ACQUIRE);
}

/*
 * One more operation has ended, well or in error.  For a counter that is bound to
 * something other than an endpoint; obj/ep.h has lnx_cntr_ok(ep, kind).  NULL is fine.
 * Any thread.
 */
LNX_INLINE void lnx_cntr_add_ok(struct lnx_cntr *cntr)
{
	if (lnx_unlikely(cntr != NULL))
		lnx_cntr_bump(cntr, &cntr->ok);
}

LNX_INLINE void lnx_cntr_add_err(struct lnx_cntr *cntr)
{
	if (lnx_unlikely(cntr != NULL))
		lnx_cntr_bump(cntr, &cntr->err);
}

/*
 * Reference that an object bound to a counter holds: the counter cannot be closed.
 * ref: the counter of a fid of class FI_CLASS_CNTR.  Any thread.
 */
struct lnx_cntr *lnx_cntr_ref(struct fid *fid);
void lnx_cntr_unref(struct lnx_cntr *cntr);
/* The same for a registration: reading the counter makes all endpoints of the domain
 * progress. */
struct lnx_cntr *lnx_cntr_ref_mr(struct fid *fid);
void lnx_cntr_unref_mr(struct lnx_cntr *cntr);

#endif
