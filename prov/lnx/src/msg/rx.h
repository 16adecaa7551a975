/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receive entry, from posting (or from an unexpected arrival) to completion,
 * and the steps of the receive path:
 *
 *	core ⇢ msg/srx_owner.c (shm) or rail/lent.c (frames)
 *	     → rel/recv.c → match/ → msg/deliver.c → [msg/pull.c] → msg/rx_done.c
 *	application → api/ → msg/post.h → [msg/rx_post.c] → match/ → msg/deliver.c
 */
#ifndef LNX_RX_H
#define LNX_RX_H

#include "obj/call.h"
#include "msg/backlog.h"
#include "msg/unex.h"
#include "obj/eager.h"
#include "obj/ep.h"
#include "rel/rel.h"
#include "wire/hdr.h"
#include "wire/shm_ctrl.h"

struct lnx_pull;
struct lnx_rma_segment;
struct lnx_mr;

#define LNX_SLAB_RXE		256
#define LNX_MIN_MULTI_RECV	64	/* FI_OPT_MIN_MULTI_RECV, unless set */

/*
 * Entries set aside for when memory is short.  The upper half is for anything.  The
 * lower half is for messages of the direct rail, which cannot be refused: its core must
 * end its pass after each of them, and is not polled at all while less than a quarter
 * is left.
 */
#define LNX_RXE_RESERVE	256
#define LNX_RXE_LOW	(LNX_RXE_RESERVE / 2)
#define LNX_RXE_LAST	(LNX_RXE_RESERVE / 4)

enum lnx_rxe_state {
	LNX_RXE_FREE,
	LNX_RXE_OFFERED,		/* a direct core has it, to queue it */
	LNX_RXE_POSTED,			/* in a matcher, waiting for a message */
	LNX_RXE_UNEX,			/* in a matcher, waiting for a receive */
	LNX_RXE_CLAIMED,		/* FI_CLAIM holds it for the application */
	LNX_RXE_ACTIVE,			/* matched; its data is being transferred */
};

/* Where an arrived message's data is. */
enum lnx_rxe_payload {
	LNX_PAYLOAD_NONE,
	LNX_PAYLOAD_CORE,			/* direct rail: in the core, start_* */
	LNX_PAYLOAD_BOUNCE,		/* direct rail: in the bounce buffer, or
					 * coming to it */
	LNX_PAYLOAD_BUF,			/* framed: in the frame buffer `buf` */
	LNX_PAYLOAD_COPY,			/* framed: in heap memory `payload` */
	LNX_PAYLOAD_KEPT,		/* framed: in `kept`; a claimed message */
	LNX_PAYLOAD_REMOTE,		/* framed: to be pulled, `rts` */
	LNX_PAYLOAD_MEMORY,		/* direct: in its sender's memory, `fetch` */
	LNX_PAYLOAD_SHM_CTRL,			/* no message: a control message, in
						 * rail->ctrl_buf */
	LNX_PAYLOAD_RMA,			/* no message either: a transfer of
						 * remote memory */
};

/* Location of a message that is LNX_PAYLOAD_MEMORY, and the state of reading it. */
struct lnx_fetch {
	uint64_t op;			/* the sender's number of it */
	uint64_t cookie;
	struct lnx_wire_piece piece[LNX_SHM_CTRL_PIECES];
	int32_t pid;
	int err;
	uint8_t npiece;
	bool read;			/* reading has ended, with err; the FIN waits */
	bool copy;			/* copies must be requested: */
	uint64_t name;			/* number in ep->local.copy_ops; 0: not requested
					 * yet */
	uint64_t got;			/* bytes of them that came */
};

/*
 * Members are ordered so that a receive which finds its message, or the reverse, uses
 * four cache lines.  While `more` is not set, payload to parent are as lnx_rxe_make
 * leaves them: it is set before any of them is written.
 */
struct lnx_rxe {
	union {
		struct lnx_mrecv post;	/* POSTED */
		struct lnx_peer_entry pe; /* from then on, what a peer core sees */
		struct lnx_fetch fetch;	/* LNX_PAYLOAD_MEMORY: there is no core */
	};
	uint8_t state;			/* enum lnx_rxe_state */
	uint8_t payload_at;			/* enum lnx_rxe_payload */
	bool tagged;
	bool want_comp;			/* a success is reported */
	bool starting;			/* bounce is still being filled */
	bool waiting;			/* a receive waits for the bounce buffer */
	bool discard;			/* drop the data when it has come */
	bool core_done;			/* no core refers to it (any more) */
	bool reported;			/* our part is done; core_done frees it */
	uint8_t niov;
	bool multi;			/* parent of a multi-receive */
	bool retired;			/* parent: takes no more messages */
	bool more;			/* see above; or ep is not its home */
	bool holds;			/* `more`: it is one of peer->nheld */
	bool refused;			/* UNEX: ignore the next free_entry */
	bool incoming;			/* parts of it are still to come (msg/parts.h) */

	_Alignas(64)
	struct lnx_ep *ep;
	void *context;			/* the application's */
	uint64_t cq_flags;		/* of its future completion */
	uint64_t tag;			/* of the message, once known */
	uint64_t data;
	size_t room;			/* bytes the receive can take */
	size_t len;			/* bytes of the message */
	struct lnx_peer *peer;		/* sender; NULL: unknown (direct) */

	void *desc[LNX_IOV_MAX];
	struct iovec iov[LNX_IOV_MAX];
	struct iovec core_iov;		/* what the core fills: the whole bounce
					 * buffer */
	size_t used;			/* parent: bytes handed out */
	size_t min_left;		/* parent: retire below this */

	/* Valid while `more` is set. */
	void *payload;			/* LNX_PAYLOAD_COPY, _BOUNCE: owned memory */
	struct lnx_rxbuf *buf;		/* LNX_PAYLOAD_BUF: owned */
	struct lnx_unex *kept;		/* LNX_PAYLOAD_KEPT: owned; compact */
	struct lnx_rts *rts;		/* LNX_PAYLOAD_REMOTE: owned */
	uint64_t charged;		/* credit of its peer, while the payload is stored */
	uint64_t taken;			/* memory that is counted in its peer's backlog */
	uint64_t since_ns;		/* LNX_PAYLOAD_CORE and large: when it came */
	struct lnx_node link;		/* ep->deferred, or ep->reserve */
	/* Multi-receive: the parent holds the buffer, children the messages. */
	struct lnx_rxe *parent;
	struct lnx_ep *home;		/* the endpoint whose pool it is from; const */

	struct lnx_unex unex;		/* UNEX: an entry */
	uint32_t n_children;			/* parent: messages not yet complete */

	/* LNX_PAYLOAD_RMA only. */
	struct lnx_rma_segment *segment;		/* a large read or write of ours; NULL: */
	struct lnx_mr *mr[LNX_RMA_IOV_MAX]; /* a peer's large write goes to these, */
	int refuse;			/* or is refused with this error */
	uint8_t nmr;			/* registrations in use */
};
static_assert(offsetof(struct lnx_rxe, ep) == 128 &&
	      offsetof(struct lnx_rxe, desc) == 192 &&
	      offsetof(struct lnx_rxe, payload) == 320, "in cache lines");

/* The entry that u is part of. */
static inline struct lnx_rxe *lnx_rxe_of_unex(struct lnx_unex *u)
{
	return lnx_container_of(u, struct lnx_rxe, unex);
}

/* rxe, with `more`, will refer to its peer when the call that makes it is over. */
static inline void lnx_rxe_holds(struct lnx_rxe *rxe)
{
	rxe->holds = true;
	rxe->peer->nheld++;
}

/* n bytes of credit of the peer came, and are not stored. */
static inline void lnx_rx_credit_used(struct lnx_peer *peer, uint64_t n)
{
	lnx_credit_came(&peer->eager->credit, &peer->ep->eager.pool, n, false);
	if (lnx_eager_urgent(peer))
		lnx_peer_tell(peer);
}

/* n bytes of credit of its peer came, and are stored in rxe, which `holds`. */
static inline void lnx_rxe_charge(struct lnx_rxe *rxe, uint64_t n)
{
	rxe->charged += n;
	lnx_credit_came(&rxe->peer->eager->credit, &rxe->peer->ep->eager.pool, n, true);
}

/* rxe, which `holds`, is stored with n bytes beside it. */
static inline void lnx_rxe_take(struct lnx_rxe *rxe, uint64_t n)
{
	n += sizeof(*rxe);
	if (lnx_backlog_take(rxe->peer, n))
		rxe->taken = n;
}

static inline struct lnx_match *lnx_rx_match(struct lnx_ep *ep, bool tagged)
{
	return tagged ? &ep->tag : &ep->msg;
}

/*
 * Where messages that came to ep wait for a receive; with a shared context, together
 * with those of other endpoints.
 */
static inline struct lnx_match *lnx_rx_stored(struct lnx_ep *ep, bool tagged)
{
	return lnx_rx_match(lnx_unlikely(ep->srx != NULL) ? ep->srx : ep,
			    tagged);
}

/*
 * Keep a message that no receive matches; unex.m.src and unex.m.tag are set.  It is also
 * in a list of its peer, so that work for one peer need not search the messages of all.
 */
static inline void lnx_rx_store(struct lnx_rxe *rxe)
{
	rxe->unex.entry = true;
	lnx_match_store(lnx_rx_stored(rxe->ep, rxe->tagged), &rxe->unex.m);
	lnx_list_add_tail(rxe->peer ? &rxe->peer->stored : &rxe->ep->local.nameless,
			  &rxe->unex.of_peer);
}

static inline void lnx_rx_unstore(struct lnx_rxe *rxe)
{
	lnx_match_drop(lnx_rx_stored(rxe->ep, rxe->tagged), &rxe->unex.m);
	lnx_list_del(&rxe->unex.of_peer);
}

/* Its source was unknown. */
static inline void lnx_rx_set_peer(struct lnx_rxe *rxe, struct lnx_peer *peer)
{
	rxe->peer = peer;
	lnx_list_del(&rxe->unex.of_peer);
	lnx_list_add_tail(&peer->stored, &rxe->unex.of_peer);
}

static inline bool lnx_ep_is_srx(const struct lnx_ep *ep)
{
	return ep->fid.fid.fclass == FI_CLASS_SRX_CTX;
}

/* msg/rx_post.c.  Owner lock is taken inside. */
/* Any receive, but those of the next one.  msg/post.h does the same for most without a call. */
ssize_t lnx_rx_post_any(struct lnx_ep *ep, const struct lnx_recv *r);
/* FI_PEEK, FI_CLAIM, FI_DISCARD. */
ssize_t lnx_rx_post_special(struct lnx_ep *ep, const struct lnx_recv *r);
ssize_t lnx_rx_cancel(struct lnx_ep *ep, void *context);

/* msg/rx_native.c: the same on native rails, by their cores. */
ssize_t lnx_rx_native_post(struct lnx_ep *ep, const struct lnx_recv *r);
ssize_t lnx_rx_native_cancel(struct lnx_ep *ep, void *context);
/* Set ep->min_multi_recv in the cores.  Owner lock held. */
int lnx_rx_native_min_multi_recv(struct lnx_ep *ep);

/* msg/srx_owner.c */
extern struct fi_ops_srx_owner lnx_direct_srx_ops;
extern struct fi_ops_srx_owner lnx_framed_srx_ops;

/* msg/direct_cq.c: the CQ and the counters that we lend to the direct core. */
extern struct fi_ops_cq_owner lnx_direct_cq_ops;
extern struct fi_ops_cntr_owner lnx_direct_cntr_ops;

/* All below: owner lock held. */

/* msg/arrive.c: ep->up->deliver. */
int lnx_rx_deliver_frame(struct lnx_peer *peer, const struct lnx_hdr *h,
			 struct lnx_rxbuf *buf, size_t len);
void lnx_rx_source_changed(struct lnx_peer *peer);
void lnx_rx_source_resolved(struct lnx_ep *ep, struct lnx_unex *u, uint64_t src);
/* A message that is in memory; it is copied.  peer NULL: unknown.  0 or -FI_EAGAIN. */
int lnx_rx_copy(struct lnx_ep *ep, struct lnx_peer *peer, bool tagged,
		uint64_t tag, uint64_t data, uint8_t flags,
		const struct iovec *iov, size_t niov, size_t len);

/* msg/shared.c: receives of a shared context. */
/* Tagged: a receive of ep->srx for a message that came to ep. */
LNX_COLD struct lnx_rxe *lnx_rx_take_shared(struct lnx_ep *ep, uint64_t src,
					    uint64_t tag);
/* rxe is of a receive posted to a shared context: ep completes it. */
LNX_COLD void lnx_rx_assign(struct lnx_rxe *rxe, struct lnx_ep *ep);
/* rxe is out of its matcher, and reported as cancelled. */
LNX_COLD void lnx_rx_cancel_shared(struct lnx_ep *srx, struct lnx_rxe *rxe);
/* ep begins to close: from now on it takes no receives of ep->srx. */
LNX_COLD void lnx_rx_detach(struct lnx_ep *ep);
/* Its rails are closed: return its entries, and forget ep->shared.owner. */
LNX_COLD void lnx_rx_give_back(struct lnx_ep *ep);

/* msg/deliver.c */
/* Match stored messages again for which their receive had no free entry. */
LNX_COLD void lnx_rx_rematch(struct lnx_ep *ep);
/* msg is a stored message, rxe the receive that it matches: copy the receive's
 * arguments into msg and free rxe. */
void lnx_rx_adopt(struct lnx_rxe *msg, struct lnx_rxe *rxe);
/* Take the posted receive for an arrived message out of its matcher; from a
 * multi-receive buffer, a child for this message.  NULL: none, or no memory for a child
 * (then LNX_WORK_MATCH is set). */
LNX_INLINE struct lnx_rxe *lnx_rx_take(struct lnx_ep *ep, bool tagged,
				       uint64_t src, uint64_t tag, size_t len);
struct lnx_rxe *lnx_rx_take_msg(struct lnx_ep *ep, uint64_t src, size_t len);
/* u, which is no longer stored, has found the receive rxe: transfer its data. */
void lnx_rx_meets(struct lnx_unex *u, struct lnx_rxe *rxe);
/*
 * u as an entry: a compact one, which then is no longer stored, gets a new one,
 * LNX_PAYLOAD_KEPT.  NULL: there is no memory, and nothing was done.
 */
struct lnx_rxe *lnx_rx_entry(struct lnx_unex *u);
/* rxe is a stored message whose receive has been filled in: transfer its data. */
void lnx_rx_deliver(struct lnx_rxe *rxe);
/* Let the core of a direct rail put its message into rxe->payload. */
void lnx_rx_arm_bounce(struct lnx_rxe *rxe);
/* Take a message that a direct core has just queued, and that is stored, out of it: in as
 * little memory as there can be.  For one that the core copies at once. */
LNX_COLD void lnx_rx_copy_out(struct lnx_rxe *rxe);
/* The control message that is to be handled before the direct core is polled again, or NULL. */
static inline struct lnx_rxe *lnx_rx_ctrl_waits(struct lnx_ep *ep)
{
	struct lnx_rxe *rxe = lnx_list_entry(ep->deferred.next, struct lnx_rxe, link);

	return !lnx_list_empty(&ep->deferred) && rxe->payload_at == LNX_PAYLOAD_SHM_CTRL ?
	       rxe : NULL;
}
/* Handle it.  Not from a callback of a core. */
LNX_COLD void lnx_rx_ctrl_run(struct lnx_ep *ep);
/* Poll the direct core outside of a pass of progress.  In that its place is fixed: then
 * comes LNX_WORK_LEARN, and lnx_rx_ctrl_run. */
LNX_COLD void lnx_rx_poll_direct(struct lnx_ep *ep);
/* Leave a message in its core until there is memory or time to take it out. */
void lnx_rx_defer(struct lnx_rxe *rxe);
/* Take deferred messages that waited too long out of their core. */
void lnx_rx_deferred_run(struct lnx_ep *ep, uint64_t now);
/* Discard a stored message that is out of its matcher. */
void lnx_rx_discard(struct lnx_rxe *rxe);

/* msg/pull.c */
extern const size_t lnx_chunk_size;
extern const size_t lnx_pull_size;	/* of what lnx_pull_rts_new allocates */
/* Memory for rxe->rts, with room for what a pull needs later.  free() it. */
struct lnx_rts *lnx_pull_rts_new(void);
/* Cannot fail: if memory is short the pull waits. */
void lnx_pull_start(struct lnx_rxe *rxe);
void lnx_pull_run(struct lnx_ep *ep);
/* A piece has come; or the core failed something that may be one: see struct lnx_op_up. */
void lnx_pull_chunk_done(struct lnx_op *op);
/* ep->up->routed_what: what a piece reads of which peer's memory, and by which path; false: it
 * is no piece that is read. */
bool lnx_pull_what(struct lnx_op *op, struct lnx_path **path, struct lnx_peer **peer,
		   struct lnx_route_pull *what);
LNX_COLD bool lnx_pull_core_error(struct lnx_rail *rail,
				  const struct fi_cq_err_entry *err);
/*
 * The keys that it requested (rma/rkey.h) are in rxe->rts; or err has the reason why
 * not.
 */
void lnx_pull_renewed(struct lnx_rxe *rxe, int err);
/* A path is given up for now; its core endpoint is closed (rel/detect.h). */
void lnx_pull_fail_over(struct lnx_path *path);
void lnx_pull_cut(struct lnx_path *path);
void lnx_pull_fail_peer(struct lnx_peer *peer, int err);
void lnx_pulls_destroy(struct lnx_ep *ep);

/* msg/fetch.c */
/* The core has put a control message into rail->ctrl_buf. */
void lnx_rx_shm_ctrl(struct lnx_rxe *rxe);
/* The peer of that id, made if needed; NULL: there is no memory, or too many
 * unsolicited peers. */
struct lnx_peer *lnx_fetch_ctrl_sender(struct lnx_ep *ep, uint64_t eid);
/* Is what has these to_low and to_high for the process that had our name before? */
bool lnx_fetch_is_for_another(const struct lnx_ep *ep, uint8_t to_low, uint8_t to_high);
/* Read the message of rxe, which is LNX_PAYLOAD_MEMORY. */
void lnx_fetch_start(struct lnx_rxe *rxe);
void lnx_fetch_run(struct lnx_ep *ep);
/* Copy a stored message into memory of ours.  False: there is none. */
bool lnx_fetch_keep(struct lnx_rxe *rxe);
/* Tell the sender that it will not be read. */
LNX_COLD void lnx_fetch_refuse(struct lnx_rxe *rxe);
/* The peer's memory can no longer be read. */
LNX_COLD void lnx_fetch_fail_peer(struct lnx_peer *peer);
void lnx_fetch_destroy_all(struct lnx_ep *ep);

/* Initialise one that was just taken from ep->rxe_pool. */
LNX_INLINE void lnx_rxe_init(struct lnx_ep *ep, struct lnx_rxe *rxe)
{
	/* Set all of them, in order: that compiles to two stores. */
	rxe->state = LNX_RXE_ACTIVE;
	rxe->payload_at = LNX_PAYLOAD_NONE;
	rxe->tagged = false;
	rxe->want_comp = false;
	rxe->starting = false;
	rxe->waiting = false;
	rxe->discard = false;
	rxe->core_done = true;
	rxe->reported = false;
	rxe->niov = 0;
	rxe->multi = false;
	rxe->retired = false;
	rxe->more = false;
	rxe->refused = false;
	rxe->incoming = false;
	rxe->ep = ep;
	rxe->cq_flags = 0;
	rxe->data = 0;
	rxe->room = 0;
	rxe->peer = NULL;
	rxe->iov[0].iov_base = NULL;
	rxe->iov[0].iov_len = 0;
	rxe->desc[0] = rxe->desc[1] = rxe->desc[2] = rxe->desc[3] = NULL;
}

/* msg/rx_done.c */
/* NULL when memory is short. */
struct lnx_rxe *lnx_rxe_get(struct lnx_ep *ep);
/* Initialises an entry of ep->rxe_pool. */
void lnx_rxe_make(void *obj, struct lnx_pool *p);
/* The same for what cannot be refused: may use the last of the reserve. */
LNX_COLD struct lnx_rxe *lnx_rxe_get_last(struct lnx_ep *ep);
void lnx_rxe_put(struct lnx_rxe *rxe);
/* Its payload is no longer stored. */
void lnx_rxe_uncharge(struct lnx_rxe *rxe);
int lnx_rxe_reserve(struct lnx_ep *ep);
void lnx_rxe_own(struct lnx_rxe *rxe);
/* At close, when all cores are closed: free what still holds memory. */
void lnx_rxe_free_owned(struct lnx_ep *ep);
/*
 * End a receive.  done: the message is rxe->len long and min(len, room) bytes are in
 * place; longer than room is reported as FI_ETRUNC.  fail: err and prov_errno as in
 * fi_cq_err_entry.  The entry is freed now, or when its core releases it.
 */
void lnx_rx_done(struct lnx_rxe *rxe);
LNX_COLD void lnx_rx_fail(struct lnx_rxe *rxe, int err, int prov_errno);
void lnx_rx_release(struct lnx_rxe *rxe);
/* parent is out of its matcher and takes no more messages; report that in ep's CQ. */
void lnx_rx_multi_retire(struct lnx_ep *ep, struct lnx_rxe *parent);
/* A direct core reported one of its entries. */
void lnx_rx_core_done(struct lnx_rxe *rxe, uint64_t flags, uint64_t data);
LNX_COLD void lnx_rx_core_failed(struct lnx_rxe *rxe,
				 const struct fi_cq_err_entry *err);

static inline bool lnx_rxe_low(const struct lnx_ep *ep)
{
	return lnx_unlikely(ep->nreserve < LNX_RXE_LOW ||
			    ep->nbuf_reserve < ep->buf_reserve_min);
}

LNX_INLINE struct lnx_rxe *lnx_rx_take(struct lnx_ep *ep, bool tagged,
				       uint64_t src, uint64_t tag, size_t len)
{
	struct lnx_mrecv *r;

	if (!tagged)
		return lnx_rx_take_msg(ep, src, len);
	r = lnx_match_take(&ep->tag, src, tag);
	if (lnx_likely(r != NULL))
		return lnx_container_of(r, struct lnx_rxe, post);
	return lnx_unlikely(ep->srx != NULL) ?
	       lnx_rx_take_shared(ep, src, tag) : NULL;
}

/* The same for a tagged message, if the matcher finds it without a call; NULL: ask
 * lnx_rx_take. */
LNX_INLINE struct lnx_rxe *lnx_rx_take_few(struct lnx_ep *ep, uint64_t src, uint64_t tag)
{
	struct lnx_mrecv *r = lnx_likely(lnx_match_few(&ep->tag)) ?
			      lnx_match_take_few(&ep->tag, src, tag) : NULL;

	return r ? lnx_container_of(r, struct lnx_rxe, post) : NULL;
}

/* Copy len bytes into an iov; returns bytes copied. */
static inline size_t lnx_msg_iov_put(const struct iovec *iov, size_t niov,
				     const void *src, size_t len)
{
	const char *p = src;
	size_t i, done = 0;

	if (lnx_likely(niov == 1)) {
		done = LNX_MIN(iov->iov_len, len);
		if (lnx_likely(done))
			memcpy(iov->iov_base, p, done);
		return done;
	}
	for (i = 0; i < niov && done < len; i++) {
		size_t n = LNX_MIN(iov[i].iov_len, len - done);

		if (n)
			memcpy(iov[i].iov_base, p + done, n);
		done += n;
	}
	return done;
}

static inline size_t lnx_msg_iov_get(void *dst, const struct iovec *iov,
				     size_t niov)
{
	char *p = dst;
	size_t i, done = 0;

	if (lnx_likely(niov == 1)) {
		if (lnx_likely(iov->iov_len))
			memcpy(p, iov->iov_base, iov->iov_len);
		return iov->iov_len;
	}
	for (i = 0; i < niov; i++) {
		if (iov[i].iov_len)
			memcpy(p + done, iov[i].iov_base, iov[i].iov_len);
		done += iov[i].iov_len;
	}
	return done;
}

/* len bytes of the pieces, from off on; they have at least so many, and one at least. */
static inline void lnx_msg_iov_get_at(void *dst, const struct iovec *iov, uint64_t off,
				      size_t len)
{
	char *p = dst;

	for (; off >= iov->iov_len; iov++)
		off -= iov->iov_len;
	for (; len; iov++, off = 0) {
		size_t n = LNX_MIN(len, iov->iov_len - off);

		if (n)
			memcpy(p, (const char *)iov->iov_base + off, n);
		p += n;
		len -= n;
	}
}

static inline size_t lnx_msg_iov_len(const struct iovec *iov, size_t niov)
{
	size_t i, len = 0;

	if (lnx_likely(niov == 1))
		return iov->iov_len;
	for (i = 0; i < niov; i++)
		len += iov[i].iov_len;
	return len;
}

#endif
