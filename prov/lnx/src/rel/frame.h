/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames in flight: what the files of rel/ share.  Others include rel/rel*.h.  Owner lock
 * held.
 */
#ifndef LNX_FRAME_H
#define LNX_FRAME_H

#include "obj/counting.h"
#include "obj/ep.h"
#include "rail/post.h"
#include "rel/backoff.h"
#include "rel/detect.h"
#include "rel/peer_path.h"
#include "rel/rel.h"
#include "rel/report.h"
#include "rel/tx_credits.h"
#include "wire/hdr.h"

/* ---- rel/hello.c ---- */

/* Prepare peer for sending, once: its window is made, our HELLO is sent or queued.  later: do
 * not send now, this may be a core's callback.  0 or -FI_ENOMEM. */
LNX_COLD int lnx_hello_start(struct lnx_peer *peer, bool later);
/* Its paths may be others now: the window of one that is reached over gateways is smaller. */
LNX_COLD void lnx_hello_window(struct lnx_peer *peer);

/* ---- rel/send.c ---- */

/* Put a new frame behind what waits; progress posts it. */
void lnx_send_line_up(struct lnx_ep *ep, struct lnx_peer *peer, struct lnx_txe *txe,
		      struct lnx_hdr *h);

/* What waits cannot leave: from now on peer counts as blocked. */
static inline void lnx_frame_block(struct lnx_ep *ep, struct lnx_peer *peer)
{
	if (!peer->blocked)
		ep->stats.queued += peer->chan.nqueued;
	peer->blocked = peer->chan.nqueued != 0;
}

/* ---- rel/pump.c ---- */

/* Post one frame, which has its number, to the path's core.  0 or the core's error. */
ssize_t lnx_frame_post(struct lnx_ep *ep, struct lnx_peer *peer, struct lnx_path *path,
		       struct lnx_txe *txe);
/* Slow half of lnx_frame_path: `chosen` does not carry txe. */
LNX_COLD struct lnx_path *lnx_frame_carrier(const struct lnx_peer *peer,
					    const struct lnx_txe *txe,
					    struct lnx_path *chosen);
/* Retransmit all frames that left over these paths (bits) and are not acknowledged. */
void lnx_pump_retransmit(struct lnx_peer *peer, unsigned paths);
/* Post what waits on all peers that have something to post. */
void lnx_pump_run(struct lnx_ep *ep, uint64_t now);

/* ---- rel/failover.c ---- */

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

/* ---- rel/control.c ---- */

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
/* Is an acknowledgement, a report or an answer due to peer? */
LNX_INLINE bool lnx_peer_ack_pending(const struct lnx_peer *peer)
{
	return peer->chan.acks_pending || peer->rx.pong_due;
}
/* Nothing is due to peer, or it cannot be told. */
LNX_INLINE void lnx_peer_ack_clear(struct lnx_peer *peer)
{
	lnx_list_del(&peer->ack_link);
	peer->chan.ack_threshold = 0;
}
/* Send acknowledgements that are due. */
void lnx_control_acks(struct lnx_ep *ep, uint64_t now, bool all);
/* Check what is due from peer: frames that stay unacknowledged, and whether it lives.
 * Returns when to check again; LNX_NEVER: nothing is due any more.  Calls cores. */
uint64_t lnx_control_look(struct lnx_peer *peer, uint64_t now);

/* ---- rel/run.c ---- */

/* Something came from a peer that is awaited and not watched: lnx_peer_watch, but the next
 * frame that is to be timed still is. */
LNX_COLD void lnx_frame_watch_on(struct lnx_peer *peer);
/* lnx_peer_watch, with a frame that has just left for the first time: if latency over path is
 * counted, that of its acknowledgement is, unless another one's is awaited. */
LNX_COLD void lnx_frame_watch(struct lnx_peer *peer, struct lnx_path *path, struct lnx_txe *txe);
/* From one look at peer to the next, while frames to it are acknowledged. */
uint64_t lnx_run_look_gap(const struct lnx_peer *peer);

/* ---- rel/recv.c ---- */

/* peer is DEAD: free the frames of it that came early. */
LNX_COLD void lnx_recv_ooo_free(struct lnx_peer *peer);

/* ---- rel/done.c ---- */

void lnx_done_acked(struct lnx_peer *peer, uint32_t ack);
void lnx_done_settled(struct lnx_txe *txe);
/* The application may have its completion, unless it waits for the ack. */
void lnx_done_posted(struct lnx_ep *ep, struct lnx_txe *txe);
/* The peer has ended the session; what is outstanding fails in the next pass. */
void lnx_done_peer_ended(struct lnx_peer *peer);
/* The frame of that number in peer's window; NULL: it was given away. */
LNX_INLINE struct lnx_txe *lnx_frame_at(const struct lnx_peer *peer, uint32_t seq)
{
	struct lnx_frame *f = *lnx_chan_slot(&peer->chan, seq);

	return f ? lnx_txe_of(f) : NULL;
}

/* ---- rel/keep.c ---- */

/* The core let go of a frame in the application's buffer, which is not acknowledged. */
void lnx_keep_wait(struct lnx_txe *txe);
/* LNX_WORK_KEEP: of those, perhaps the next one is copied. */
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

/* ---- a frame leaves ---- */

/* Does its core carry so long a frame, of so many pieces? */
LNX_INLINE bool lnx_frame_carried(const struct lnx_path *path, const struct lnx_txe *txe)
{
	const struct lnx_rail *rail = path->rail;

	return lnx_txe_bytes(txe) <= rail->frame_max &&
	       (!txe->f.niov || txe->f.niov < rail->info->tx_attr->iov_limit);
}

/* The path of txe: see lnx_peer_path_next. */
LNX_INLINE struct lnx_path *lnx_frame_path(struct lnx_peer *peer, const struct lnx_txe *txe)
{
	struct lnx_path *path = lnx_peer_path_next(peer, lnx_txe_bytes(txe));

	if (lnx_likely(peer->npath == 1) || !path ||
	    lnx_likely(lnx_frame_carried(path, txe)))
		return path;
	return lnx_frame_carrier(peer, txe, path);
}

/* A frame has left that acknowledges all we have received. */
LNX_INLINE void lnx_frame_ack_piggybacked(struct lnx_peer *peer)
{
	/* It needs reports of its paths too, and only an ACK has those. */
	if (lnx_unlikely(peer->rx.multipath))
		return;
	/* It stays on ack_list: it would be back with the next frame. */
	lnx_chan_ack_sent(&peer->chan);
}

/* A frame has left that acknowledges all we had received when it left. */
LNX_INLINE void lnx_frame_sent(struct lnx_ep *ep, struct lnx_peer *peer,
			    struct lnx_path *path, uint32_t ack, uint64_t bytes)
{
	path->sent += bytes;
	path->n_sent++;
	if (lnx_likely(ack == peer->chan.rx.next))
		lnx_frame_ack_piggybacked(peer);
	path->rail->poll_credits = ep->poll_credits;
}

/* A new frame was posted over path: put it into the window, and give the application its
 * completion unless that waits for the acknowledgement. */
LNX_INLINE void lnx_frame_in_window(struct lnx_ep *ep, struct lnx_peer *peer,
				    struct lnx_path *path, struct lnx_txe *txe,
				    uint64_t bytes)
{
	lnx_chan_posted(&peer->chan, &txe->f, bytes);
	lnx_path_credits_take(path);
	if (lnx_txe_due(txe) && !txe->f.comp_at_ack)
		lnx_done_posted(ep, txe);
	if (lnx_unlikely(!peer->watched))
		lnx_frame_watch(peer, path, txe);
}

/* A message of len bytes, all in one frame, first leaves by that rail, on which it counts. */
LNX_INLINE void lnx_frame_count_message(struct lnx_rail *rail, uint64_t len)
{
	rail->traffic.sends++;
	rail->traffic.send_length += len;
}

/* The same for any frame; the FIN of a large message tells which rails carried it
 * (msg/rndv.c). */
LNX_INLINE void lnx_frame_count(struct lnx_peer *peer, struct lnx_txe *txe)
{
	struct lnx_path *path = peer->path[txe->f.path];
	struct lnx_rail_traffic *t = &path->rail->traffic;
	const struct lnx_wire_hdr *w = lnx_txe_hdr(txe);

	switch (w->kind) {
	case LNX_KIND_MSG:
	case LNX_KIND_TAG:
		lnx_frame_count_message(path->rail, le64toh(w->len));
		break;
	case LNX_KIND_PART_MSG:
	case LNX_KIND_PART_TAG:
		t->sends++;		/* fall through */
	case LNX_KIND_MORE:
		t->send_length += lnx_txe_bytes(txe) - sizeof(*w);
		break;
	case LNX_KIND_RTS_MSG:
	case LNX_KIND_RTS_TAG:
		t->sends++;
		break;
	default:
		lnx_count_sent(path, w->kind);
		lnx_count_memory(w, &t->sends, &t->send_length);
		break;
	}
}

/* Any frame was posted for the first time. */
LNX_INLINE void lnx_frame_first(struct lnx_ep *ep, struct lnx_peer *peer,
				struct lnx_txe *txe)
{
	struct lnx_path *path = peer->path[txe->f.path];

	lnx_frame_count(peer, txe);
	/* The application may not call us for long after its completion: it has that when
	 * the frame cannot be lost with the connection any more. */
	if (lnx_unlikely(lnx_peer_path_opens(peer, path)))
		txe->f.comp_at_ack |= lnx_txe_due(txe);
	lnx_frame_in_window(ep, peer, path, txe, lnx_txe_bytes(txe));
	if (lnx_unlikely(txe->rxe != NULL)) {
		ep->up->sent(txe, LNX_SENT_LEFT);
		txe->rxe = NULL;
	}
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

/* Nearly all new frames are such. */
LNX_INLINE bool lnx_frame_injectable(const struct lnx_ep *ep, const struct lnx_rail *rail,
				     const struct lnx_txe *txe)
{
	return txe->f.len <= rail->inject_size && !txe->f.niov && rail->core_ep &&
	       !ep->fault;
}

/*
 * A new frame leaves over path, with nothing before it: it gets its number, is posted and
 * comes into the window.  All new frames do so here, but those that have to wait.  0; or the
 * core's error: then the frame has its number, and is the caller's to queue or to unnumber.
 *
 * short_msg, a constant: it is a message in one frame that is injectable, and path is UP.
 * Then half of the steps have nothing to do.
 */
LNX_INLINE ssize_t lnx_frame_leave(struct lnx_ep *ep, struct lnx_peer *peer,
				   struct lnx_path *path, struct lnx_txe *txe,
				   struct lnx_hdr *h, bool short_msg)
{
	ssize_t ret;

	lnx_frame_number(peer, path, txe, h);
	ret = short_msg || lnx_likely(lnx_frame_injectable(ep, path->rail, txe)) ?
	      lnx_frame_inject(ep, peer, path, txe) : lnx_frame_post(ep, peer, path, txe);
	if (lnx_unlikely(ret))
		return ret;
	if (short_msg) {
		lnx_frame_count_message(path->rail, h->len);
		lnx_frame_in_window(ep, peer, path, txe, txe->f.len);
	} else {
		lnx_backoff_over(peer, path);
		lnx_frame_first(ep, peer, txe);
	}
	return 0;
}

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
	if (lnx_likely(peer->npath == 1)) {
		lnx_path_credits_give(peer->cur);
	} else {
		struct lnx_path *path = peer->path[f->path];

		path->proven = path->state == LNX_PATH_UP;
		lnx_path_credits_give(path);
		if (lnx_chan_idle(&peer->chan))
			lnx_report_all(peer);
	}
	lnx_txe_put(ep, lnx_txe_of(f));
}

#endif
