/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The send descriptor, the frame in flight, and the steps of the send path:
 *
 *	api/ → tx/submit.h → tx/post.h ⇢ core			(direct)
 *	api/ → tx/submit.h → tx/frame.c → core ⇢ comp/cq_owner.c → tx/done.c
 *							(framed)
 *
 * All functions: owner lock held.
 */
#ifndef LNX_TX_H
#define LNX_TX_H

#include "obj/ep.h"
#include "wire/hdr.h"

/* The fi_* call that the application used; direct rails use the same one below. */
enum lnx_call {
	LNX_SEND, LNX_SENDV, LNX_SENDMSG, LNX_INJECT, LNX_SENDDATA,
	LNX_INJECTDATA,
	LNX_SHM_CTRL,			/* ours: tx/large.c; data: its op */
	LNX_RMA_COPY,			/* ours: tx/rma_copy.c; context: what it copies */
	LNX_TSEND, LNX_TSENDV, LNX_TSENDMSG, LNX_TINJECT, LNX_TSENDDATA,
	LNX_TINJECTDATA,
};

#define lnx_call_tagged(call)	((call) >= LNX_TSEND)
#define lnx_call_inject(call) \
	((call) == LNX_INJECT || (call) == LNX_INJECTDATA || \
	 (call) == LNX_SHM_CTRL || \
	 (call) == LNX_TINJECT || (call) == LNX_TINJECTDATA)
#define lnx_call_data(call) \
	((call) == LNX_SENDDATA || (call) == LNX_INJECTDATA || \
	 (call) == LNX_TSENDDATA || (call) == LNX_TINJECTDATA)

/*
 * The arguments of an fi_send-like call, in any of its forms.  An API function only
 * fills it.  With `call` a constant it compiles to straight code.
 */
struct lnx_tx {
	enum lnx_call call;
	const struct iovec *iov;
	size_t niov;
	void **desc;
	fi_addr_t dest;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;			/* as the core call wants them */
	uint64_t op_flags;		/* with the endpoint's defaults added */
	void *context;
};

/* Most answers that may wait for a peer that does not take them. */
#define LNX_LATER_MAX	4096u
/* No error number from a peer is larger. */
#define LNX_ERR_MAX	4096u

struct lnx_rndv;
struct lnx_rxe;

/*
 * A frame in flight, kept until it is acknowledged and the core has released it.  Its
 * peer's chan finds it by its number.
 */
struct lnx_txe {
	struct lnx_op op;		/* first: context of core sends */
	uint8_t cls;			/* pool it came from */
	bool reported;
	/* What happens at its end; also as one word, which is mostly 0. */
	union {
		uint32_t matters;
		struct {
			bool want_comp;	/* report a success */
			bool counts;	/* ends a send or write, and a counter is
					 * bound; cq_flags say which */
			bool tells;	/* report a failure in any case */
			bool unused;
		};
	};
	struct lnx_frame f;		/* f.len: bytes of frame[] to send; f.link: also
					 * rail->clones */
	struct lnx_peer *peer;
	void *context;			/* the application's */
	uint64_t cq_flags;
	struct lnx_rxe *rxe;		/* FIN: receive to report once it has left */
	struct iovec iov[LNX_IOV_MAX];	/* payload above the copy limit */
	_Alignas(64) uint8_t frame[];
};

static_assert(offsetof(struct lnx_txe, unused) ==
	      offsetof(struct lnx_txe, matters) + 3, "they are one word");

LNX_INLINE struct lnx_txe *lnx_txe_of(struct lnx_frame *f)
{
	return lnx_container_of(f, struct lnx_txe, f);
}

/* Payload bytes of the frame classes (64 bytes of header on top). */
#define LNX_TXE_SMALL	192
#define LNX_TXE_MEDIUM	1984
#define LNX_TXE_LARGE	LNX_PAYLOAD_MAX

/* A large send or write: announced by an RTS, read by the peer, ended by its FIN. */
struct lnx_rndv {
	struct lnx_node link;		/* ep->rndvs */
	uint64_t op;			/* its number on the wire, in ep->rndv_ops */
	struct lnx_peer *peer;
	void *context;
	uint64_t cq_flags;
	bool want_comp;
	bool here;			/* announced by a control message, to a peer
					 * on this host */
	size_t len;			/* of the message; 0: none */
	/* `here`, for a peer that asked for copies: */
	struct lnx_node copy_link;	/* ep->copied */
	uint64_t copy_op;		/* the peer's number for them */
	uint64_t copy_want;		/* bytes of them to send, */
	uint64_t copy_off;		/* bytes of them sent */
	struct iovec iov[LNX_IOV_MAX];	/* the message */
	unsigned niov;
	unsigned nmr;
	struct fid_mr *mr[];		/* one for each piece and rail */
};

/* The counter of an operation with these completion flags. */
static inline enum lnx_cntr_kind lnx_tx_cntr(uint64_t cq_flags)
{
	return cq_flags & FI_SEND ? LNX_CNTR_SEND :
	       cq_flags & FI_READ ? LNX_CNTR_READ : LNX_CNTR_WRITE;
}

static inline struct lnx_wire_hdr *lnx_txe_hdr(struct lnx_txe *txe)
{
	return (struct lnx_wire_hdr *)txe->frame;
}

/* Bytes of the frame, in one place or several. */
LNX_INLINE uint64_t lnx_txe_bytes(struct lnx_txe *txe)
{
	return lnx_likely(!txe->f.niov) ? txe->f.len :
	       txe->f.len + le64toh(lnx_txe_hdr(txe)->len);
}

/* tx/frame.c.  Slow half of lnx_tx_submit: for every peer without a direct rail, and
 * every failed look-up (NULL).  0, or what fi_send returns. */
ssize_t lnx_tx_framed(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_tx *tx);
/* Prepare peer for sending: its window exists, our hello is sent or queued. */
int lnx_tx_ready(struct lnx_ep *ep, struct lnx_peer *peer);
/* tx/direct.c.  A direct core was busy: make progress, retry a few times, queue. */
LNX_COLD ssize_t lnx_tx_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				     const struct lnx_tx *tx);
/* Queue it, however many wait: 0 or -FI_ENOMEM. */
LNX_COLD int lnx_tx_direct_queue(struct lnx_ep *ep, struct lnx_peer *peer,
				 const struct lnx_tx *tx);
/* Post what was queued. */
void lnx_tx_direct_pump(struct lnx_ep *ep);
/* All queued ones end with an error. */
LNX_COLD void lnx_tx_direct_fail(struct lnx_peer *peer, int err);
/* tx/large.c.  A send that is lnx_tx_is_large to a peer with `notes`: 0, or what
 * fi_send returns. */
ssize_t lnx_tx_large(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_tx *tx);
/* peer cannot read the message op, and wants its first `want` bytes as copies under the
 * number name.  Calls no core. */
void lnx_tx_copy(struct lnx_peer *peer, uint64_t op, uint64_t name,
		 uint64_t want);
/* Send copies. */
void lnx_tx_copies(struct lnx_ep *ep);
/* Request copies.  0, -FI_EAGAIN, or an error: the sender cannot be reached. */
ssize_t lnx_tx_note_get(struct lnx_peer *peer, uint64_t op, uint64_t name,
			uint64_t want);
/* One core call, with a control message or a copy. */
ssize_t lnx_shm_ctrl_post(struct lnx_ep *ep, fi_addr_t dest,
		      const struct lnx_tx *tx);
/* Tell the sender of op that its buffer is free again.  0, -FI_EAGAIN, or an error: the
 * sender cannot be reached. */
ssize_t lnx_tx_shm_fin(struct lnx_peer *peer, uint64_t op, int err);
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
int lnx_tx_queue(struct lnx_ep *ep, struct lnx_peer *peer,
		 struct lnx_txe *txe, struct lnx_hdr *h, bool no_queue);
/* The same from inside a core's callback: progress sends it.  -FI_ENOMEM,
 * -FI_EHOSTUNREACH: txe is still the caller's. */
int lnx_tx_queue_later(struct lnx_ep *ep, struct lnx_peer *peer,
		       struct lnx_txe *txe, struct lnx_hdr *h);
/* The peer of that address, made if needed, with a path to it: 0, -FI_EINVAL,
 * -FI_EAGAIN (memory is short) or -FI_EHOSTUNREACH. */
ssize_t lnx_tx_find(struct lnx_ep *ep, fi_addr_t dest, struct lnx_peer **peer);
/*
 * May a frame go to peer now?  0, -FI_EAGAIN, -FI_EHOSTUNREACH.  flags: of the
 * operation; FI_INJECT alone for calls that inject.  For these *no_queue may be set:
 * then the frame may not be queued (lnx_tx_queue).
 */
ssize_t lnx_tx_admit(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t flags,
		     bool *no_queue);
/* How many sends with these flags may be queued for a peer. */
static inline uint32_t lnx_tx_queue_max(const struct lnx_ep *ep, uint64_t flags)
{
	return flags & (FI_INJECT | FI_COMPLETION) ? ep->limits.tx_size :
						     2 * ep->limits.tx_size;
}

/* Let the slow timers check peer: an acknowledgement or an answer from it is due. */
void lnx_tx_watch(struct lnx_ep *ep, struct lnx_peer *peer);
/* Retransmit all frames that left over these paths (bits) and are not acknowledged. */
void lnx_tx_retransmit(struct lnx_peer *peer, unsigned paths);
/* A path goes DOWN: its frames are sent again over others, also those that its core
 * still has. */
LNX_COLD void lnx_tx_fail_over(struct lnx_path *path, struct lnx_peer *peer);
/* Has its core frames that cannot be sent from elsewhere? */
LNX_COLD bool lnx_tx_in_core(const struct lnx_path *path, struct lnx_peer *peer);
/* The peer knows nothing of path yet: its frames, and later ones, go out over next. */
LNX_COLD void lnx_tx_redirect(struct lnx_path *path, struct lnx_peer *peer,
			       const struct lnx_path *next);
/* Its core endpoint is closed; the frames that it did not report are over too. */
LNX_COLD void lnx_tx_cut(struct lnx_path *path, struct lnx_peer *peer);
LNX_COLD void lnx_tx_cut_clones(struct lnx_rail *rail);
/* Our address has changed: tell peer. */
LNX_COLD void lnx_tx_hello_again(struct lnx_peer *peer);
/* Send an unsequenced frame over one path.  0, or the core's error. */
int lnx_tx_control_on(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_path *path, struct lnx_hdr *h);
/* A PROBE with LNX_WIRE_PROBE_LATENCY was answered over the path that it asks about: what is
 * lost is sent again. */
LNX_COLD void lnx_tx_answered(struct lnx_path *path, struct lnx_peer *peer,
			      uint32_t number, uint64_t now);
/* A PROBE that tells our address.  -FI_ENOSYS: the core has no room for that. */
LNX_COLD int lnx_tx_probe_from(struct lnx_peer *peer, struct lnx_path *path,
			       struct lnx_hdr *h);
/* Let progress post what waits for peer. */
void lnx_tx_want_pump(struct lnx_peer *peer);
/* Post what waits on all peers that have something to post. */
void lnx_tx_pump(struct lnx_ep *ep, uint64_t now);
/* A frame outside the sequence: ACK, PROBE, BYE.  May fail silently. */
int lnx_tx_control(struct lnx_ep *ep, struct lnx_peer *peer, uint8_t kind);
/* Is an acknowledgement, a report or an answer due to peer? */
LNX_INLINE bool lnx_tx_ack_pending(const struct lnx_peer *peer)
{
	return peer->chan.acks_pending || peer->rx.pong_due;
}
/* Nothing is due to peer, or it cannot be told. */
LNX_INLINE void lnx_tx_ack_clear(struct lnx_peer *peer)
{
	lnx_list_del(&peer->ack_link);
	peer->chan.ack_threshold = 0;
}
/* Remove peers from the ack list whose acknowledgements were piggybacked. */
LNX_INLINE void lnx_tx_acks_piggybacked(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->ack_list, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, ack_link);

		if (!lnx_tx_ack_pending(peer))
			lnx_tx_ack_clear(peer);
	}
	if (lnx_list_empty(&ep->ack_list))
		ep->work &= ~LNX_WORK_ACK_PENDING;
}
/* Send acknowledgements that are due. */
void lnx_tx_acks(struct lnx_ep *ep, uint64_t now, bool all);
/* Check frames that stay unacknowledged. */
void lnx_tx_timers(struct lnx_ep *ep, uint64_t now);

/* Arguments of lnx_tx_announce. */
struct lnx_announce {
	uint8_t kind;			/* LNX_KIND_RTS_MSG, ... */
	uint8_t flags;			/* LNX_WIRE_F_* */
	uint64_t tag;
	uint64_t data;
	const struct iovec *iov;
	size_t niov;
	size_t len;
	const struct lnx_rma_target *place;	/* PUT_RTS: its target */
	unsigned n_targets;
	void *context;
	uint64_t cq_flags;
	bool want_comp;
};

/* tx/rndv.c.  0, -FI_EAGAIN, or the core's error from registering. */
ssize_t lnx_tx_announce(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_announce *a);
void lnx_rndv_end(struct lnx_rndv *rndv, int err, int prov_errno);
/* Close the registrations of large sends that have ended. */
void lnx_rndv_reap(struct lnx_ep *ep);
void lnx_rndv_fail_peer(struct lnx_peer *peer, int err);
void lnx_tx_fin(struct lnx_peer *peer, uint64_t op, int err);
/* Before that, for a FIN from the network: which rails carried the message. */
void lnx_tx_fin_moved(struct lnx_peer *peer, uint64_t op, const void *payload,
		      size_t size);
/*
 * Tell the sender of op that its buffer is free again.  rxe, if not NULL, is reported
 * as done when the FIN has left, and not before: the application may stop calling us
 * once it has its message.  moved: bytes per rail, if the sender asked for them.  0, or
 * -FI_EAGAIN.
 */
int lnx_tx_send_fin(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t op,
		    int err, const struct lnx_moved *moved, unsigned nmoved,
		    struct lnx_rxe *rxe);

/* tx/done.c */
void lnx_tx_acked(struct lnx_peer *peer, uint32_t ack);
void lnx_tx_core_done(struct lnx_txe *txe);
void lnx_txe_settled(struct lnx_txe *txe);
LNX_COLD void lnx_tx_core_failed(struct lnx_txe *txe,
				 const struct fi_cq_err_entry *err);
/* At close: FINs that never left still hold receives that they would report. */
void lnx_tx_drop_pending(struct lnx_ep *ep);
void lnx_tx_bye(struct lnx_peer *peer);
/* Every operation to peer ends with an error; later ones fail at once. */
LNX_COLD void lnx_tx_peer_failed(struct lnx_peer *peer, int err);
/* The application may have its completion, unless it waits for the ack. */
void lnx_tx_posted(struct lnx_ep *ep, struct lnx_txe *txe);
/* Must the end of txe still be reported or counted? */
LNX_INLINE bool lnx_txe_due(const struct lnx_txe *txe)
{
	return txe->matters && !txe->reported;
}
/* An error entry, and one more failed send if cq_flags has FI_SEND. */
void lnx_tx_fail(struct lnx_ep *ep, void *context, uint64_t cq_flags, int err,
		 int prov_errno);

#endif
