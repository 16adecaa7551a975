/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access, initiator's side.
 *
 *	api/rma.c → rma/rma.h ⇢ core				(direct rail)
 *	api/rma.c → rma/rma.h → rma/rma.c → rel/send.c → core	(PUT, GET)
 *				        → msg/rndv.c		(the largest writes)
 *				        → rma/rkey.c → msg/pull.c	(large reads, writes)
 *
 * An operation (rma_op) has one segment for each remote piece, or frame, that is
 * answered on its own; it ends with its last segment.  Owner lock held.
 */
#ifndef LNX_TX_RMA_H
#define LNX_TX_RMA_H

#include "msg/iov.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/direct.h"

/* An operation of the application. */
struct lnx_rma_op {
	struct lnx_ep *ep;
	void *context;
	uint64_t cq_flags;
	uint32_t n_segments;		/* not ended; plus one while they are made */
	int err;			/* first error of any segment */
	bool want_comp;
	/* Writes by the core: an empty PUT tells the target when all has arrived. */
	bool tell;
	bool has_data;
	uint8_t ntold;			/* registrations that count the write */
	uint64_t data;
	size_t written;			/* bytes, of segments that ended */
	uint64_t told[LNX_RMA_IOV_MAX];
	uint64_t told_addr[LNX_RMA_IOV_MAX];	/* an address in each of them */
};

enum lnx_rma_segment_kind {
	LNX_RMA_SEGMENT_STATUS,		/* a PUT that is answered */
	LNX_RMA_SEGMENT_DATA,			/* a GET: the answer is the data */
	LNX_RMA_SEGMENT_READ,			/* to be pulled when the keys are
						 * known */
	LNX_RMA_SEGMENT_WRITE,			/* the same, to be pushed */
	LNX_RMA_SEGMENT_CORE,			/* small: the core reads it (rma/read.c) */
	LNX_RMA_SEGMENT_KEYS,			/* no segment: a struct lnx_rkey */
};

struct lnx_rma_segment {
	uint8_t kind;			/* enum lnx_rma_segment_kind; first */
	uint8_t niov;
	bool moved;			/* READ, WRITE: done, peer not yet told */
	bool tell;			/* READ: the peer counts it */
	bool asked;			/* READ, WRITE: it requested keys itself */
	struct lnx_op op;		/* CORE: context of fi_read */
	struct lnx_node all;		/* ep->rma.segments */
	struct lnx_node link;		/* ep->rma.waiting, lnx_rkey.waiting, or
					 * path->gets */
	struct lnx_path *path;		/* CORE */
	struct lnx_rma_op *rma_op;
	struct lnx_peer *peer;
	uint64_t id;			/* in ep->rma.ops */
	uint64_t addr;			/* remote: in the registration */
	uint64_t key;			/* of the registration */
	size_t len;
	struct lnx_rxe *pull;		/* of msg/pull.c, while that works on it; or
					 * NULL */
	struct iovec iov[LNX_IOV_MAX];	/* where the data goes */
};

/* A position in an iov. */
struct lnx_cursor {
	const struct iovec *iov;
	size_t n;			/* iovs left, this one included */
	size_t off;			/* in the first of them */
};

/* Copy the next len bytes out of it. */
void lnx_rma_cursor_get(struct lnx_cursor *c, void *dst, size_t len);
/* The next len bytes as an iov of at most LNX_IOV_MAX; returns its length. */
size_t lnx_rma_cursor_slice(struct lnx_cursor *c, size_t len, struct iovec *out);

/* The framed half of lnx_rma_submit: 0, or what fi_write returns. */
ssize_t lnx_rma_framed(struct lnx_ep *ep, const struct lnx_rma *rma);
/* A direct core was busy: make progress and retry a few times. */
LNX_COLD ssize_t lnx_rma_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				      const struct lnx_rma *rma);

/* May another operation wait for peer?  0; -FI_EAGAIN: as many wait as the tx size
 * allows, even after some progress; -FI_EHOSTUNREACH. */
int lnx_rma_op_admit(struct lnx_ep *ep, struct lnx_peer *peer);
/* Operations and segments, also for atomics.  NULL when memory is short. */
struct lnx_rma_op *lnx_rma_op_get(struct lnx_ep *ep, void *context,
			    uint64_t cq_flags, bool want_comp);
struct lnx_rma_segment *lnx_rma_segment_get(struct lnx_rma_op *rma_op, struct lnx_peer *peer,
			      enum lnx_rma_segment_kind kind);
/* A segment has ended, with 0 or an error number; it is freed. */
void lnx_rma_segment_end(struct lnx_rma_segment *segment, int err);
/* One of the parts that keep it open has ended; the last one reports. */
void lnx_rma_op_done(struct lnx_rma_op *rma_op, int err);
/* Undo it: nothing is reported, all its segments are freed. */
void lnx_rma_op_drop(struct lnx_rma_op *rma_op);

/* Let progress start segment (again); LNX_RMA_SEGMENT_DATA: as a frame. */
void lnx_rma_wait_turn(struct lnx_rma_segment *segment);

/* ---- rma/read.c ---- */

/* Let the core read, if nothing is in the way and the address is known.  0, -FI_EAGAIN;
 * or LNX_READ_BY_FRAME: a GET must do it. */
#define LNX_READ_BY_FRAME	1
ssize_t lnx_read_core(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_rma *rma);
/* The core has read; or failed something that may be a read, and a GET does it: see struct
 * lnx_op_up. */
void lnx_read_done(struct lnx_op *op);
LNX_COLD bool lnx_read_core_error(struct lnx_rail *rail,
				  const struct fi_cq_err_entry *err);
/* The core endpoint of path is closed: the reads that it did not report have failed. */
LNX_COLD void lnx_read_cut(struct lnx_path *path);
/* A frame about memory is to leave: wait a little for reads in the core, which it could
 * overtake.  0, -FI_EAGAIN, -FI_EHOSTUNREACH. */
LNX_COLD int lnx_read_wait(struct lnx_ep *ep, struct lnx_peer *peer);
/* A LNX_RMA_SEGMENT_DATA for which no frame has left. */
LNX_COLD void lnx_read_by_frame(struct lnx_rma_segment *segment);

/* Answers of peers, from rel/recv.c: nothing here calls a core.  Returns the bytes that a
 * read or an atomic of ours got. */
size_t lnx_rma_answer(struct lnx_ep *ep, struct lnx_peer *peer,
		    const struct lnx_hdr *h, const uint8_t *payload);
/* The pull of a large read or write is over (msg/pull.c). */
void lnx_rma_pulled(struct lnx_rma_segment *segment, int err);
/* Start the segments that wait: their keys came, or must be requested. */
void lnx_rma_run(struct lnx_ep *ep);
LNX_COLD void lnx_rma_fail_peer(struct lnx_peer *peer, int err);
void lnx_rma_init(struct lnx_ep *ep);
/* At close: cores are closed; nothing is reported. */
void lnx_rma_fini(struct lnx_ep *ep);

/* rma/copy.c.  A read or large write to a peer with a shm_addr: 0, or what fi_write
 * returns. */
ssize_t lnx_rma_large(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_rma *r);
ssize_t lnx_rma_read_one(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_rma *r);
/* A small write or an atomic is to follow: do these allow it?  0 or -FI_EAGAIN. */
LNX_COLD int lnx_rma_follow(struct lnx_ep *ep, struct lnx_peer *peer);

/* With a constant number of pieces where the call has one. */
LNX_INLINE size_t lnx_rma_len(const struct lnx_rma *r)
{
	return r->call == LNX_READ || r->call == LNX_WRITE ||
	       r->call == LNX_WRITEDATA ? r->iov->iov_len :
					  lnx_msg_iov_len(r->iov, r->niov);
}

LNX_INLINE ssize_t lnx_rma_submit(struct lnx_ep *ep, const struct lnx_rma *r)
{
	/* Its address is never taken, so `call` stays a constant. */
	const struct lnx_rma own = *r;
	struct lnx_peer *peer;
	ssize_t ret;

	/* Cores do not reliably report this. */
	if (lnx_rma_inject(r->call) &&
	    lnx_unlikely(r->iov->iov_len > ep->inject_size))
		return -FI_EINVAL;
	if ((r->call == LNX_READV || r->call == LNX_WRITEV) && lnx_unlikely(r->niov > 1) &&
	    lnx_iov_check_rma(r))
		return -FI_EINVAL;
	if ((r->call == LNX_READMSG || r->call == LNX_WRITEMSG) &&
	    lnx_unlikely(r->niov != 1 || r->nrma != 1 || r->iov->iov_len != r->rma->len) &&
	    lnx_iov_check_rma(r))
		return -FI_EINVAL;
	if (r->call == LNX_WRITEMSG && lnx_unlikely(r->flags & FI_INJECT) &&
	    lnx_msg_iov_len(r->iov, r->niov) > ep->inject_size)
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	peer = lnx_peer_get(ep, r->dest);
	if (lnx_rma_read(own.call) &&
	    lnx_likely(peer && peer->shm.direct_read != FI_ADDR_NOTAVAIL)) {
		ret = own.call == LNX_READ &&
		      lnx_likely(own.op_flags & FI_COMPLETION) ?
		      lnx_rma_read_one(ep, peer, r) :
		      lnx_rma_large(ep, peer, r);
		ep->stats.direct_rma += !ret;
	} else if (!lnx_rma_read(own.call) &&
		   lnx_likely(peer && peer->shm.direct_write != FI_ADDR_NOTAVAIL) &&
		   (lnx_rma_inject(own.call) ||
		    lnx_likely(lnx_rma_len(&own) <= LNX_INJECT_MAX)) &&
		   !(own.call == LNX_WRITEMSG &&
		     lnx_unlikely(own.flags & FI_DELIVERY_COMPLETE)) &&
		   lnx_likely(!__atomic_load_n(peer->shm.counts,
					       __ATOMIC_RELAXED))) {
		ret = lnx_direct_post_rma(ep->shm->core_ep, peer->shm.direct_write, &own,
					  NULL);
		if (lnx_unlikely(ret == -FI_EAGAIN))
			ret = lnx_rma_direct_retry(ep, peer, r);
		ep->stats.direct_rma += !ret;
	} else {
		ret = lnx_rma_framed(ep, r);
	}
	lnx_unlock(&ep->lock);
	return ret;
}

#endif
