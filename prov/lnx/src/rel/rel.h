/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reliable channel between two endpoints, seen from above.  Messages, remote memory
 * access and progress use what is declared here; rel/ itself calls up only through
 * ep->up (obj/up.h).
 *
 *	msg/, rma/ -> rel/send.c, rel/short.c -> rail/		frames out
 *	rail/ -> rel/recv.c -> ep->up->deliver			frames in
 *	comp/progress.c -> lnx_rel_run				what is due
 *
 * All functions: owner lock held.
 */
#ifndef LNX_REL_H
#define LNX_REL_H

#include "obj/ep.h"
#include "wire/hdr.h"

/* Most answers that may wait for a peer that does not take them. */
#define LNX_LATER_MAX	4096u
/* No error number from a peer is larger. */
#define LNX_ERR_MAX	4096u

struct lnx_rxe;

/* lnx_txe.keep: may its payload be copied, so that its send completes (rel/keep.c)? */
enum {
	LNX_KEEP_NO,			/* no, or it is a copy that completed at once */
	LNX_KEEP_MAY,
	LNX_KEEP_IS,			/* it is such a copy */
	LNX_KEEP_FAILED,		/* no: its peer was given up before it was
					 * acknowledged */
};

/*
 * A frame in flight, kept until it is acknowledged and the core has released it.  Its
 * peer's chan finds it by its number.
 */
struct lnx_txe {
	struct lnx_op op;		/* first: context of core sends */
	uint8_t cls;			/* pool it came from */
	bool reported;
	uint8_t keep;			/* LNX_KEEP_* */
	/* What happens at its end; also as one word, which is mostly 0. */
	union {
		uint32_t matters;
		struct {
			bool want_comp;	/* report a success */
			bool counts;	/* ends a send or write, and a counter is
					 * bound; cq_flags say which */
			bool tells;	/* report a failure in any case */
			bool part;	/* context is a struct lnx_tx_group */
		};
	};
	struct lnx_frame f;		/* f.len: bytes of frame[] to send; f.link: also
					 * rail->clones */
	struct lnx_peer *peer;
	void *context;			/* the application's */
	uint64_t cq_flags;
	struct lnx_rxe *rxe;		/* FIN: receive to report once it has left */
	struct iovec iov[LNX_IOV_MAX];	/* payload above the copy limit */
	int err;			/* LNX_KEEP_FAILED: FI_E... */
	_Alignas(64) uint8_t frame[];
};

static_assert(offsetof(struct lnx_txe, part) ==
	      offsetof(struct lnx_txe, matters) + 3, "they are one word");

LNX_INLINE struct lnx_txe *lnx_txe_of(struct lnx_frame *f)
{
	return lnx_container_of(f, struct lnx_txe, f);
}

/* Frames of one message, which end as one: ep->up->group_over. */
struct lnx_tx_group {
	uint32_t left;			/* those that may need the application's buffer */
	int err;			/* of the first that failed, or 0 */
	bool rndv;			/* part of a struct lnx_rndv */
};

/* Payload bytes of the frame classes (64 bytes of header on top). */
#define LNX_TXE_SMALL	192
#define LNX_TXE_MEDIUM	1984
#define LNX_TXE_LARGE	LNX_PAYLOAD_MAX
#define LNX_TXE_HUGE	LNX_PAYLOAD_LARGE

/* The counter of an operation with these completion flags. */
static inline enum lnx_cntr_kind lnx_txe_cntr(uint64_t cq_flags)
{
	return cq_flags & FI_SEND ? LNX_CNTR_SEND :
	       cq_flags & FI_READ ? LNX_CNTR_READ : LNX_CNTR_WRITE;
}

static inline struct lnx_wire_hdr *lnx_txe_hdr(struct lnx_txe *txe)
{
	return (struct lnx_wire_hdr *)txe->frame;
}

/* Bytes of the frame, in one place or several. */
LNX_INLINE uint64_t lnx_txe_bytes(const struct lnx_txe *txe)
{
	uint64_t bytes = txe->f.len;
	unsigned i;

	for (i = 0; lnx_unlikely(i < txe->f.niov); i++)
		bytes += txe->iov[i].iov_len;
	return bytes;
}

struct lnx_txe *lnx_txe_get(struct lnx_ep *ep, size_t payload);
/* Return it to its pool.  Nothing may refer to it any more, except a core in error. */
LNX_INLINE void lnx_txe_put(struct lnx_ep *ep, struct lnx_txe *txe)
{
	txe->peer = NULL;
	lnx_pool_put(&ep->txe_pool[txe->cls], txe);
}

/*
 * Number txe and send it, or queue it behind what waits already.  0.  With no_queue it
 * is never queued: -FI_EAGAIN, and txe is still the caller's.
 */
int lnx_rel_send(struct lnx_ep *ep, struct lnx_peer *peer,
		 struct lnx_txe *txe, struct lnx_hdr *h, bool no_queue);
/* The same from inside a core's callback: progress sends it.  -FI_ENOMEM,
 * -FI_EHOSTUNREACH: txe is still the caller's. */
int lnx_rel_send_later(struct lnx_ep *ep, struct lnx_peer *peer,
		       struct lnx_txe *txe, struct lnx_hdr *h);
/* The peer of that address, made if needed, with a path to it: 0, -FI_EINVAL,
 * -FI_EAGAIN (memory is short) or -FI_EHOSTUNREACH. */
ssize_t lnx_rel_find(struct lnx_ep *ep, fi_addr_t dest, struct lnx_peer **peer);
/* The same where it is known that the peer has yet to be made, or is dead. */
LNX_COLD ssize_t lnx_rel_find_cold(struct lnx_ep *ep, fi_addr_t dest,
				  struct lnx_peer **peer);
/*
 * May a frame go to peer now?  0, -FI_EAGAIN, -FI_EHOSTUNREACH.  flags: of the
 * operation; FI_INJECT alone for calls that inject.  For these *no_queue may be set:
 * then the frame may not be queued (lnx_rel_send).
 */
ssize_t lnx_rel_room(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t flags,
		     bool *no_queue);
/* How many sends with these flags may be queued for a peer. */
static inline uint32_t lnx_rel_queue_max(const struct lnx_ep *ep, uint64_t flags)
{
	return flags & (FI_INJECT | FI_COMPLETION) ? ep->limits.tx_size :
						     2 * ep->limits.tx_size;
}

/* Prepare peer for sending: its window exists, our hello is sent or queued. */
int lnx_rel_ready(struct lnx_ep *ep, struct lnx_peer *peer);
/* Look at peer from now on: an acknowledgement or an answer from it is due.  To be called
 * if it is not peer->watched. */
void lnx_rel_watch(struct lnx_ep *ep, struct lnx_peer *peer);
/* Must the end of txe still be reported or counted? */
LNX_INLINE bool lnx_txe_due(const struct lnx_txe *txe)
{
	return txe->matters && !txe->reported;
}
/* A frame came in over rail.  True: buf is kept.  Calls no core. */
bool lnx_rel_rx_frame(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len);
/* ---- rel/keep.c: credit (rel/credit.h) ---- */

/* The peer grants so much. */
void lnx_tx_credit(struct lnx_peer *peer, uint64_t limit);
/* What we grant it: to be told now.  0: none. */
uint64_t lnx_rx_grant(struct lnx_peer *peer);
/* Of the peer's credit some is free again: tell it, if it may soon have none. */
void lnx_rx_credit(struct lnx_peer *peer);
/* The core has finished with a frame; or failed something that may be a frame: false if it
 * is none.  err->op_context is not trusted.  Call no core. */
void lnx_rel_core_done(struct lnx_op *op);
LNX_COLD bool lnx_rel_core_failed(struct lnx_rail *rail,
				const struct fi_cq_err_entry *err);

/* What is due at that time: timers, also those of the endpoint as a whole, frames and
 * acknowledgements.  Returns when something is due next; LNX_NEVER: not before something
 * happens.  Calls cores. */
uint64_t lnx_rel_run(struct lnx_ep *ep, uint64_t now);
/* The timers of a peer; called by lnx_rel_run. */
void lnx_peer_look(struct lnx_timer *look, uint64_t now);
void lnx_peer_retry(struct lnx_timer *retry, uint64_t now);
/* Acknowledge everything now: the application may not call us for a while.  Calls cores. */
void lnx_rel_ack_all(struct lnx_ep *ep, uint64_t now);

/* The link of a rail went down or came up.  Calls cores: peers are told. */
LNX_COLD void lnx_link_notice_local(struct lnx_rail *rail, bool up, uint64_t now);
/* Our address has changed: tell peer. */
LNX_COLD void lnx_rel_hello_again(struct lnx_peer *peer);
/* The peer has ended the session; what is outstanding fails in the next pass. */
void lnx_rel_peer_ended(struct lnx_peer *peer);
/* Every operation to peer ends with an error; later ones fail at once. */
LNX_COLD void lnx_rel_peer_failed(struct lnx_peer *peer, int err);
/* At close: FINs that never left still hold receives that they would report. */
void lnx_rel_close(struct lnx_ep *ep);

/* ---- completions ---- */

/* An error entry, and one more failed send if cq_flags has FI_SEND. */
void lnx_rel_op_failed(struct lnx_ep *ep, void *context, uint64_t cq_flags, int err,
		 int prov_errno);

#endif
