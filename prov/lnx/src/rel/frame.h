/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames in flight: what the files of rel/ share, and what others fill in before they
 * send one.  Owner lock held.
 */
#ifndef LNX_FRAME_H
#define LNX_FRAME_H

#include "obj/ep.h"
#include "rail/post.h"
#include "rel/detect.h"
#include "rel/rel.h"
#include "rel/sched.h"
#include "wire/hdr.h"

/* Retransmit all frames that left over these paths (bits) and are not acknowledged. */
void lnx_send_retransmit(struct lnx_peer *peer, unsigned paths);
/* A path goes DOWN: its frames are sent again over others, also those that its core
 * still has. */
LNX_COLD void lnx_failover_path(struct lnx_path *path, struct lnx_peer *peer);
/* Has its core frames that cannot be sent from elsewhere, or that are over, but sends wait
 * until it lets go of the application's buffer? */
LNX_COLD bool lnx_failover_in_core(const struct lnx_path *path, struct lnx_peer *peer);
/* The peer knows nothing of path yet: its frames, and later ones, go out over next. */
LNX_COLD void lnx_failover_redirect(struct lnx_path *path, struct lnx_peer *peer,
			       const struct lnx_path *next);
/* Its core endpoint is closed; the frames that it did not report are over too. */
LNX_COLD void lnx_failover_cut(struct lnx_path *path, struct lnx_peer *peer);
LNX_COLD void lnx_failover_cut_clones(struct lnx_rail *rail);
/* Send an unsequenced frame over one path.  0, or the core's error. */
int lnx_control_send_on(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_path *path, struct lnx_hdr *h);
/* A PROBE with LNX_WIRE_PROBE_LATENCY was answered over the path that it asks about: what is
 * lost is sent again. */
LNX_COLD void lnx_control_answered(struct lnx_path *path, struct lnx_peer *peer,
			      uint32_t number, uint64_t now);
/* A PROBE that tells our address.  -FI_ENOSYS: the core has no room for that. */
LNX_COLD int lnx_control_probe_from(struct lnx_peer *peer, struct lnx_path *path,
			       struct lnx_hdr *h);
/* Let progress post what waits for peer. */
void lnx_send_want(struct lnx_peer *peer);
/* Post what waits on all peers that have something to post. */
void lnx_send_pump(struct lnx_ep *ep, uint64_t now);
/* A frame outside the sequence: ACK, PROBE, BYE.  May fail silently. */
int lnx_control_send(struct lnx_ep *ep, struct lnx_peer *peer, uint8_t kind);
/* Is an acknowledgement, a report or an answer due to peer? */
LNX_INLINE bool lnx_control_ack_pending(const struct lnx_peer *peer)
{
	return peer->chan.acks_pending || peer->rx.pong_due;
}
/* Nothing is due to peer, or it cannot be told. */
LNX_INLINE void lnx_control_ack_clear(struct lnx_peer *peer)
{
	lnx_list_del(&peer->ack_link);
	peer->chan.ack_threshold = 0;
}
/* Remove peers from the ack list whose acknowledgements were piggybacked. */
LNX_INLINE void lnx_control_acks_piggybacked(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->ack_list, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, ack_link);

		if (!lnx_control_ack_pending(peer))
			lnx_control_ack_clear(peer);
	}
	if (lnx_list_empty(&ep->ack_list))
		ep->work &= ~LNX_WORK_ACK_PENDING;
}
/* From one look at peer to the next, while frames to it are acknowledged. */
uint64_t lnx_look_gap(const struct lnx_peer *peer);
/* Send acknowledgements that are due. */
void lnx_control_acks(struct lnx_ep *ep, uint64_t now, bool all);
/* Check what is due from peer: frames that stay unacknowledged, and whether it lives.
 * Returns when to check again; LNX_NEVER: nothing is due any more.  Calls cores. */
uint64_t lnx_control_look(struct lnx_peer *peer, uint64_t now);

/* rel/recv.c: peer is DEAD: free the frames of it that came early. */
LNX_COLD void lnx_recv_ooo_free(struct lnx_peer *peer);

/* ---- rel/done.c ---- */
void lnx_done_acked(struct lnx_peer *peer, uint32_t ack);
void lnx_done_settled(struct lnx_txe *txe);
/* The application may have its completion, unless it waits for the ack. */
void lnx_done_posted(struct lnx_ep *ep, struct lnx_txe *txe);
/* The frame of that number in peer's window; NULL: it was given away. */
LNX_INLINE struct lnx_txe *lnx_frame_at(const struct lnx_peer *peer, uint32_t seq)
{
	struct lnx_frame *f = *lnx_chan_slot(&peer->chan, seq);

	return f ? lnx_txe_of(f) : NULL;
}

/* ---- rel/keep.c ---- */
/* The core let go of a frame in the application's buffer, which is not acknowledged. */
void lnx_keep_wait(struct lnx_txe *txe);
void lnx_keep_run(struct lnx_ep *ep);
/* The core has, or never will have, sent a frame that is not acknowledged. */
LNX_INLINE void lnx_frame_let_go(struct lnx_txe *txe)
{
	txe->f.in_core = false;
	if (lnx_unlikely(txe->keep == LNX_KEEP_MAY) && lnx_txe_due(txe))
		lnx_keep_wait(txe);
}
/* Frames of the peer, which has `eager`, were acknowledged: those that found no room may find
 * it now. */
LNX_COLD void lnx_keep_acked(struct lnx_peer *peer);
/* The peer's window is empty, and nothing more is sent or comes. */
LNX_COLD void lnx_keep_end(struct lnx_peer *peer);
/* LNX_WIRE_F_*, for the last frame of so many bytes that leave in the application's
 * buffer and may be copied later. */
uint8_t lnx_keep_flags(struct lnx_peer *peer, uint64_t bytes);

/* rel/failover.c: our next frame to peer, a HELLO, and its header.  It must be numbered
 * before any other.  NULL: memory is short. */
LNX_COLD struct lnx_txe *lnx_failover_hello(struct lnx_peer *peer, struct lnx_hdr *h);

/* A frame has left that acknowledges all we have received. */
LNX_INLINE void lnx_frame_ack_piggybacked(struct lnx_peer *peer)
{
	/* It needs reports of its paths too, and only an ACK has those. */
	if (lnx_unlikely(peer->rx.multipath))
		return;
	/* It stays on ack_list: it would be back with the next frame. */
	lnx_chan_ack_sent(&peer->chan);
}

/* Initialise a frame that was just taken from that pool. */
LNX_INLINE void lnx_txe_init(struct lnx_txe *txe, uint8_t cls)
{
	txe->op.type = LNX_OP_TXE;
	txe->cls = cls;
	txe->f.acked = false;
	txe->reported = false;
	txe->keep = LNX_KEEP_NO;
	txe->matters = 0;
	txe->f.slow_ack = 0;
	txe->rxe = NULL;
	lnx_list_init(&txe->f.link);
}

/* A frame has left that acknowledges all we had received when it left. */
LNX_INLINE void lnx_frame_sent(struct lnx_ep *ep, struct lnx_peer *peer,
			    struct lnx_path *path, uint32_t ack, uint64_t bytes)
{
	path->sent += bytes;
	path->n_sent++;
	if (lnx_likely(ack == peer->chan.rx.next))
		lnx_frame_ack_piggybacked(peer);
	path->rail->poll_credits = ep->poll_hot;
}

/* A new frame was posted: put it into the window, and give the application its
 * completion unless that waits for the acknowledgement. */
LNX_INLINE void lnx_frame_in_window(struct lnx_ep *ep, struct lnx_peer *peer,
				 struct lnx_txe *txe, uint64_t bytes)
{
	lnx_chan_posted(&peer->chan, &txe->f, bytes);
	if (lnx_txe_due(txe) && !txe->f.comp_at_ack)
		lnx_done_posted(ep, txe);
	if (lnx_unlikely(!peer->watched))
		lnx_rel_watch(ep, peer);
}

/* Give the frame the next number; path: the one that it takes if it leaves at once, so
 * that nothing is written twice. */
LNX_INLINE void lnx_frame_number(struct lnx_peer *peer, const struct lnx_path *path,
			      struct lnx_txe *txe, struct lnx_hdr *h)
{
	txe->peer = peer;
	h->seq = lnx_chan_number(&peer->chan, &txe->f);
	h->src = peer->sid;
	h->dst = peer->eid;
	h->ack = peer->chan.rx.next;
	h->rail = path ? path->rail->wire_index : 0;
	h->path = path ? path->index : 0;
	lnx_hdr_put(lnx_txe_hdr(txe), h);
}

/*
 * Post a frame that was just numbered for this path, and that its core copies.  No ack can
 * come for it yet, so none is checked for.  0 or the core's error.
 */
LNX_INLINE ssize_t lnx_frame_inject(struct lnx_ep *ep, struct lnx_peer *peer,
				     struct lnx_path *path, struct lnx_txe *txe)
{
	uint32_t ack = peer->chan.rx.next;
	ssize_t ret;

	txe->f.path = path->index;
	ret = lnx_rail_inject(path->rail, txe->frame, txe->f.len, path->core_addr);
	if (lnx_likely(!ret))
		lnx_frame_sent(ep, peer, path, ack, txe->f.len);
	else if (ret != -FI_EAGAIN)
		lnx_detect_refused(peer, path, (int)ret, lnx_clock_ns());
	return ret;
}

/* rel/send.c: the path did not take a frame that has its number, the first one not
 * posted.  The frame waits in the queue. */
LNX_COLD void lnx_send_refused(struct lnx_ep *ep, struct lnx_peer *peer,
			     struct lnx_path *path, struct lnx_txe *txe);

/* The peer acknowledges all frames before number ack. */
LNX_INLINE void lnx_frame_ack(struct lnx_ep *ep, struct lnx_peer *peer, uint32_t ack)
{
	struct lnx_frame *f;

	if (ack == peer->chan.una)
		return;
	f = lnx_chan_ack_one(&peer->chan, ack);
	if (lnx_unlikely(!f)) {
		lnx_done_acked(peer, ack);
		return;
	}
	lnx_txe_put(ep, lnx_txe_of(f));
	if (peer->npath > 1 && lnx_chan_idle(&peer->chan))
		lnx_sched_all_delivered(peer);
}

#endif
