/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending messages.
 *
 *	api/ -> msg/submit.h -> rail/direct.h => core		(direct)
 *	api/ -> msg/submit.h -> msg/send.c -> rel/send.c -> rail/post.h
 *								(framed)
 *
 * All functions: owner lock held.
 */
#ifndef LNX_TX_H
#define LNX_TX_H

#include "obj/call.h"
#include "rel/rel.h"

struct lnx_rxe;

/* A large send or write: announced by an RTS, read by the peer, ended by its FIN. */
struct lnx_rndv {
	struct lnx_node link;		/* ep->rndv.announced, .revoked, .dead */
	struct lnx_tx_group group;	/* its FIN, frames that the RTS announced, and
					 * what cores do for a peer that was given up */
	int err, prov_errno;		/* what it ends with, once the FIN has come */
	bool ended;			/* it has */
	uint64_t op;			/* its number on the wire, in ep->rndv.ops */
	struct lnx_peer *peer;
	void *context;
	uint64_t cq_flags;
	bool want_comp;
	bool here;			/* announced by a control message, to a peer
					 * on this host; or */
	bool pushed;			/* pushed to that (msg/push_send.c), and it is no
					 * operation for the peer: copy_op to copy_off say
					 * what has left */
	bool asks;			/* its FIN says that what was pushed before it has
					 * come (policy/push.h) */
	size_t len;			/* of the message; 0: none */
	/* `here`, for a peer that asked for copies: */
	struct lnx_node copy_link;	/* ep->local.copied */
	uint64_t copy_op;		/* the peer's number for them */
	uint64_t copy_want;		/* bytes of them to send, */
	uint64_t copy_off;		/* bytes of them sent */
	struct iovec iov[LNX_IOV_MAX];	/* the message */
	unsigned niov;
	unsigned nmr;
	struct fid_mr *mr[];		/* one for each piece and rail */
};

/* msg/send.c.  Slow half of lnx_msg_submit: for every peer without a direct rail, and
 * every failed look-up (NULL).  0, or what fi_send returns. */
ssize_t lnx_msg_send(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_tx *tx);
/* msg/direct.c.  A direct core was busy: make progress, retry a few times, queue. */
LNX_COLD ssize_t lnx_direct_retry(struct lnx_ep *ep, struct lnx_peer *peer,
				     const struct lnx_tx *tx);
/* Queue it, however many wait: 0 or -FI_ENOMEM. */
LNX_COLD int lnx_direct_queue(struct lnx_ep *ep, struct lnx_peer *peer,
				 const struct lnx_tx *tx);
/* Post what was queued. */
void lnx_direct_pump(struct lnx_ep *ep);
/* All queued ones end with an error. */
LNX_COLD void lnx_direct_fail(struct lnx_peer *peer, int err);
/* msg/large.c.  A send that is lnx_msg_is_large to a peer with shm.ctrl: 0, or what
 * fi_send returns. */
ssize_t lnx_large_send(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_tx *tx);
/* peer cannot read the message op, and wants its first `want` bytes as copies under the
 * number name.  Calls no core. */
void lnx_large_copy(struct lnx_peer *peer, uint64_t op, uint64_t name,
		 uint64_t want);
/* Send copies. */
void lnx_large_copies(struct lnx_ep *ep);
/* Request copies from that process of the peer.  0, -FI_EAGAIN, or an error: the sender cannot
 * be reached. */
ssize_t lnx_large_ask_copy(struct lnx_peer *peer, int pid, uint64_t op, uint64_t name,
			uint64_t want);
/* One core call, with a control message or a copy. */
ssize_t lnx_large_ctrl_post(struct lnx_ep *ep, fi_addr_t dest,
			    const struct lnx_tx *tx);
/* Tell the sender of op, that process, that its buffer is free again.  0, -FI_EAGAIN, or an
 * error: the sender cannot be reached. */
ssize_t lnx_large_fin(struct lnx_peer *peer, int pid, uint64_t op, int err);
/* What fits into one frame on every path of a peer. */
struct lnx_frame_room {
	size_t payload;			/* bytes */
	size_t pieces;			/* of an iov */
};

/* Arguments of lnx_rndv_announce. */
struct lnx_announce {
	uint8_t kind;			/* LNX_KIND_RTS_MSG, ... */
	uint8_t flags;			/* LNX_WIRE_F_* */
	uint64_t tag;
	uint64_t data;
	const struct iovec *iov;
	size_t niov;
	size_t len;
	size_t head;			/* bytes that follow the RTS in frames, if there
					 * is memory for those */
	struct lnx_frame_room room;	/* if head is not 0 */
	bool lone;			/* it is timed (policy/lone.h) */
	const struct lnx_rma_target *place;	/* PUT_RTS: its target */
	unsigned n_targets;
	void *context;
	uint64_t cq_flags;
	bool want_comp;
};

/* ---- msg/parts_send.c ---- */

/* A message that is sent at once is no longer than so many of the longest frames.  Where more are
 * needed, because the rails carry short ones only, it is announced: to be read takes less time. */
#define LNX_PARTS_MAX	8u
/* Frames that follow an RTS, at most: 1 MiB in long ones. */
#define LNX_HEAD_MAX	11u
/* Bytes of a message in a long frame that is no more than one packet for tcp, with the headers of
 * lnx (64 bytes) and of the core (up to 24): the kernel makes packets of 65483 bytes on the
 * loopback device (MTU 65536), and hands 45 of 1448 bytes at once to a network with an MTU of
 * 1500.  A multiple of 64, which copies are faster for. */
#define LNX_PACKET_PAYLOAD	65024u

/* Of an object of ep->eager.sends. */
extern const size_t lnx_parts_send_size;

/* Send a message that peer has credit for in several frames.  at_ack: it completes when
 * it is acknowledged.  0, or -FI_EAGAIN. */
ssize_t lnx_tx_parts(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_announce *a, const struct lnx_frame_room *room,
		     bool at_ack);
/* Make the frames of the first len bytes, which belong to group; queue MOREs that begin at
 * off, the last one with those flags. */
unsigned lnx_parts_make(struct lnx_ep *ep, const struct lnx_announce *a, size_t len,
			const struct lnx_frame_room *room, struct lnx_tx_group *group,
			struct lnx_txe **txe);
void lnx_parts_queue_more(struct lnx_ep *ep, struct lnx_peer *peer, struct lnx_txe **txe,
			  unsigned n, size_t off, uint8_t last);
/* ep->up->group_over. */
void lnx_tx_group_over(struct lnx_tx_group *group);

/* msg/rndv.c.  0, -FI_EAGAIN, or the core's error from registering. */
ssize_t lnx_rndv_announce(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_announce *a);
void lnx_rndv_end(struct lnx_rndv *rndv, int err, int prov_errno);
void lnx_rndv_group_over(struct lnx_tx_group *group);
/* Close the registrations of large sends that have ended. */
void lnx_rndv_reap(struct lnx_ep *ep);
void lnx_rndv_fail_peer(struct lnx_peer *peer, int err);
void lnx_rndv_fin(struct lnx_peer *peer, uint64_t op, int err);
/* ep->up->routed_source: the memory that peer asks for over a gateway, while the owner lock is
 * held; NULL: it may not have that. */
const void *lnx_rndv_source(struct lnx_peer *peer, const struct lnx_route_pull *what);
/* Before that, for a FIN from the network: which rails carried the message. */
void lnx_rndv_fin_moved(struct lnx_peer *peer, uint64_t op, const void *payload,
		      size_t size);
/*
 * Tell the sender of op that its buffer is free again.  rxe, if not NULL, is reported
 * as done when the FIN has left, and not before: the application may stop calling us
 * once it has its message.  moved: bytes per rail, if the sender asked for them.
 * 0, or -FI_EAGAIN.
 */
int lnx_rndv_send_fin(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t op,
		    int err, const struct lnx_moved *moved, unsigned nmoved,
		    struct lnx_rxe *rxe);
/* Send a FIN of no operation, for its acknowledgement: the peer has not given us up when it
 * gives that.  *seq: the number of the frame.  0, or -FI_EAGAIN. */
LNX_COLD int lnx_rndv_ask(struct lnx_peer *peer, uint32_t *seq);

#endif
