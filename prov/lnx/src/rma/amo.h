/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations, initiator's side.
 *
 *	api/atomic.c → rma/amo.h ⇢ core				(direct rail, no result)
 *	api/atomic.c → rma/amo.h → rma/amo.c → core		(direct rail, with a result)
 *	api/atomic.c → rma/amo.h → rma/amo.c → rel/send.c → core	(ATOMIC)
 *
 * The target's lnx executes a frame (rma/amo_serve.c), only once however often it is
 * sent, and always answers: a completion means that the target memory has changed.
 *
 * On the direct rail it executes what has a result, too, and not the core: the core of shm
 * 2.1 handles the answers of all peers in the order of its questions, so one peer that
 * computes, or has died, would hold up what others have answered.
 */
#ifndef LNX_TX_AMO_H
#define LNX_TX_AMO_H

#include "obj/ep.h"
#include "rail/direct.h"
#include "rma/amo_exec.h"

LNX_INLINE enum lnx_amo_class lnx_amo_class(enum lnx_amo_call call)
{
	return call < LNX_FETCH ? LNX_AMO_BASE :
	       call < LNX_COMPARE ? LNX_AMO_FETCH : LNX_AMO_COMPARE;
}

/* ---- rma/amo_limits.c ---- */

#define LNX_AMO_TYPES	(FI_UINT128 + 1)

/* What all rails of a link can do.  Const once made. */
struct lnx_amo_limits {
	uint32_t ops[LNX_AMO_CLASSES][LNX_AMO_TYPES];	/* bits: enum fi_op */
	size_t bytes[LNX_AMO_CLASSES];	/* most, of one operand */
	size_t count[LNX_AMO_CLASSES][LNX_AMO_TYPES];	/* the same in elements */
};

/* Made at first use; belongs to the domain.  NULL when memory is short. */
const struct lnx_amo_limits *lnx_amo_limits(struct lnx_domain *d);

/* Most elements that one call of that class may have; 0: not supported. */
size_t lnx_amo_count(struct lnx_domain *d, enum fi_op op,
		     enum fi_datatype type, enum lnx_amo_class cls);

/* ---- rma/amo.c ---- */

/*
 * The check is ours, because cores do not check: what they cannot do crashes them or
 * their peers.  0, -FI_EOPNOTSUPP, -FI_EMSGSIZE, -FI_EINVAL.  Any thread.
 */
int lnx_amo_check(const struct lnx_ep *ep, const struct lnx_amo_tx *t);
/* The framed half of lnx_amo_submit: 0, or what fi_atomic returns. */
ssize_t lnx_amo_framed(struct lnx_ep *ep, const struct lnx_amo_tx *t);
/* A direct core was busy: make progress and retry a few times. */
LNX_COLD ssize_t lnx_amo_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				      const struct lnx_amo_tx *t);

/*
 * Would lnx_amo_check find nothing wrong?  For the usual calls only, which name one
 * place: their counts are one number.  False: not known here.
 */
LNX_INLINE bool lnx_amo_sound(const struct lnx_ep *ep, enum lnx_amo_call call,
			      const struct lnx_amo_tx *t)
{
	enum lnx_amo_class cls = lnx_amo_class(call);
	const struct lnx_amo_limits *l =
		__atomic_load_n(&ep->domain->amo, __ATOMIC_ACQUIRE);

	if (call != LNX_ATOMIC && call != LNX_FETCH && call != LNX_COMPARE)
		return false;
	return l && (unsigned)t->type < LNX_AMO_TYPES &&
	       (unsigned)t->op <= FI_DIFF &&
	       (l->ops[cls][t->type] >> t->op & 1) &&
	       t->rma->count - 1 < l->count[cls][t->type] &&
	       !(t->op_flags & FI_INJECT);
}

LNX_INLINE ssize_t lnx_amo_submit(struct lnx_ep *ep, const struct lnx_amo_tx *t)
{
	/* Its address is never taken, so it stays a constant. */
	const enum lnx_amo_call call = t->call;
	struct lnx_peer *peer;
	ssize_t ret;

	if (lnx_unlikely(!lnx_amo_sound(ep, call, t))) {
		ret = lnx_amo_check(ep, t);
		if (ret)
			return ret;
	}
	lnx_lock(&ep->lock);
	peer = lnx_peer_get(ep, t->dest);
	if (call < LNX_FETCH &&
	    lnx_likely(peer && peer->shm.direct_write != FI_ADDR_NOTAVAIL &&
		       !(t->op_flags & FI_DELIVERY_COMPLETE) &&
		       !__atomic_load_n(peer->shm.counts, __ATOMIC_RELAXED))) {
		ret = lnx_direct_post_amo(ep->shm->core_ep, peer->shm.direct_write, call,
					  t);
		if (lnx_unlikely(ret == -FI_EAGAIN))
			ret = lnx_amo_direct_retry(ep, peer, t);
		ep->stats.direct_rma += !ret;
	} else {
		ret = lnx_amo_framed(ep, t);
	}
	lnx_unlock(&ep->lock);
	return ret;
}

#endif
