/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * New frames.  Called by msg/ and rma/; a frame gets its number and is posted on the peer's
 * path (rel/frame.h, lnx_frame_leave).  Then come the core, rail/ and rel/done.c.
 * rel/control.c sends frames without a number.
 *
 * A frame that cannot leave (no window, no credit, the core says EAGAIN) waits in order on
 * peer->chan.queue; rel/pump.c posts it when the window opens, a credit is free or a path may
 * be tried again.
 * New messages to a peer that has no room for them wait elsewhere (rel/throttle.h).
 * The application sees -FI_EAGAIN when as many frames wait as its tx size allows, and for
 * injects also while the path is connecting.
 */
#include "rel/frame.h"
#include "rel/throttle.h"

/*
 * Tries before an application gets -FI_EAGAIN.  Some applications answer it with a
 * progress call inside their completion handler, which is not safe (Open MPI 4.1 then
 * handles entries twice).
 */
#define TRIES		64

/* ---- frames that cannot leave ---- */

static void wait_turn(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_txe *txe, bool first)
{
	ep->stats.queued += peer->blocked;
	lnx_chan_queue(&peer->chan, &txe->f, first);
	lnx_tx_credits_wanted(&peer->cur->credits, peer->chan.nqueued);
	if (lnx_unlikely(ep->policy.limited))
		lnx_peer_credits_queued(peer);
	lnx_peer_pump(peer);
}

static LNX_COLD void refused(struct lnx_ep *ep, struct lnx_peer *peer,
			     struct lnx_path *path, struct lnx_txe *txe)
{
	lnx_backoff_refused(path, lnx_clock_ns());
	/*
	 * Put it before what a core's callbacks queued meanwhile: that has later
	 * numbers.
	 */
	wait_turn(ep, peer, txe, true);
	lnx_frame_block(ep, peer);
}

void lnx_send_line_up(struct lnx_ep *ep, struct lnx_peer *peer, struct lnx_txe *txe,
		      struct lnx_hdr *h)
{
	lnx_frame_number(peer, NULL, txe, h);
	wait_turn(ep, peer, txe, false);
}

/* ---- the fast half ---- */

LNX_HOT
bool lnx_rel_short(struct lnx_ep *ep, struct lnx_peer *peer, const void *buf,
		   size_t len, uint64_t tag, unsigned what, uint64_t data,
		   void *context)
{
	struct lnx_hdr h = {
		.kind = (uint8_t)what, .flags = (uint8_t)(what >> 8),
		.tag = tag, .data = data, .len = len,
	};
	size_t frame_len = sizeof(struct lnx_wire_hdr) + len;
	struct lnx_path *path;
	struct lnx_txe *txe;

	if (lnx_unlikely(!peer || peer->chan.flags || lnx_peer_dead(peer) ||
			 peer->shm_addr != FI_ADDR_NOTAVAIL || ep->fault))
		return false;
	path = lnx_peer_path_usual(peer);
	if (lnx_unlikely(!path || !lnx_chan_window_open(&peer->chan) ||
			 !lnx_path_credits_left(path)))
		return false;
	if (lnx_unlikely(frame_len > path->rail->short_frame))
		return false;
	txe = lnx_pool_get(&ep->txe_pool[0]);
	if (lnx_unlikely(!txe))
		return false;

	lnx_txe_init(txe, 0);
	txe->f.len = (uint32_t)frame_len;
	lnx_txe_message(ep, txe, context,
			FI_SEND | (h.kind == LNX_KIND_TAG ? FI_TAGGED : FI_MSG),
			(what & LNX_SHORT_INJECT) != 0, (ep->tx_flags & FI_COMPLETION) != 0);
	if (lnx_likely(len))
		memcpy(txe->frame + sizeof(struct lnx_wire_hdr), buf, len);
	ep->stats.send_count++;
	ep->stats.send_length += len;
	if (lnx_unlikely(lnx_frame_leave(ep, peer, path, txe, &h, true)))
		refused(ep, peer, path, txe);
	return true;
}

/* ---- any frame ---- */

/* May a frame leave with nothing in front of it? */
static inline bool may_leave(struct lnx_peer *peer, const struct lnx_path *path)
{
	return !lnx_chan_retransmits(&peer->chan) && path &&
	       (path->state == LNX_PATH_UP || path->state == LNX_PATH_IDLE) &&
	       lnx_chan_window_open(&peer->chan) && lnx_path_credits_left(path);
}

static inline bool can_post(struct lnx_peer *peer, const struct lnx_path *path)
{
	return !(peer->chan.flags & (LNX_CHAN_QUEUED | LNX_CHAN_THROTTLED)) &&
	       may_leave(peer, path);
}

/*
 * A frame that must leave at once or not be taken, on a path that is connecting: try
 * when it is due, and give the peer up when its deadline has passed.  Nothing is
 * queued, so progress would not do that.
 */
static LNX_COLD int try_connect(struct lnx_ep *ep, struct lnx_peer *peer,
			  struct lnx_path *path, struct lnx_txe *txe,
			  struct lnx_hdr *h)
{
	uint64_t now = lnx_clock_ns();

	if (!path || (peer->chan.flags & (LNX_CHAN_QUEUED | LNX_CHAN_RETRANSMIT)) ||
	    !lnx_chan_window_open(&peer->chan) || !lnx_path_credits_left(path) ||
	    now < path->retry_ns)
		return -FI_EAGAIN;
	if (!lnx_frame_leave(ep, peer, path, txe, h, false))
		return 0;
	if (!lnx_chan_unnumber(&peer->chan, &txe->f)) {
		/* A callback queued a frame behind it. */
		refused(ep, peer, path, txe);
		return 0;
	}
	lnx_backoff_refused(path, now);
	if (!lnx_backoff_all_for(peer, now,
			       ep->conf->connect_timeout * LNX_NS_PER_MS))
		return -FI_EAGAIN;
	lnx_detect_expired(peer, now);
	lnx_path_happens(path, LNX_PATH_EXPIRED);
	lnx_rel_peer_failed(peer, FI_ETIMEDOUT);
	return -FI_EHOSTUNREACH;
}

LNX_HOT
int lnx_rel_send(struct lnx_ep *ep, struct lnx_peer *peer,
		 struct lnx_txe *txe, struct lnx_hdr *h, bool no_queue)
{
	struct lnx_path *path = lnx_frame_path(peer, txe);

	if (lnx_likely(can_post(peer, path))) {
		if (lnx_likely(!lnx_frame_leave(ep, peer, path, txe, h, false)))
			return 0;
		if (lnx_likely(!no_queue ||
			       !lnx_chan_unnumber(&peer->chan, &txe->f))) {
			refused(ep, peer, path, txe);
			return 0;
		}
		lnx_backoff_refused(path, lnx_clock_ns());
		return -FI_EAGAIN;
	}
	if (lnx_unlikely(peer->chan.flags & LNX_CHAN_THROTTLED)) {
		int ret = lnx_throttle_frame(ep, peer, txe, h, no_queue);

		/* The peer may die meanwhile. */
		if (!ret && !peer->watched)
			lnx_peer_watch(peer);
		if (ret <= 0)
			return ret;
	}
	if (no_queue)
		return try_connect(ep, peer, path, txe, h);
	lnx_send_line_up(ep, peer, txe, h);
	/* Else it is only behind what a callback has queued for the next pass. */
	if (!may_leave(peer, path))
		lnx_frame_block(ep, peer);
	return 0;
}

int lnx_rel_send_later(struct lnx_ep *ep, struct lnx_peer *peer,
		       struct lnx_txe *txe, struct lnx_hdr *h)
{
	if (lnx_unlikely(lnx_peer_dead(peer)))
		return -FI_EHOSTUNREACH;
	if (lnx_unlikely(!peer->hello_done) && lnx_hello_start(peer, true))
		return -FI_ENOMEM;
	if (lnx_unlikely(peer->chan.nqueued >= LNX_LATER_MAX))
		return -FI_ENOMEM;
	lnx_send_line_up(ep, peer, txe, h);
	return 0;
}

/* ---- room ---- */

/* Frames that wait to leave. */
static uint32_t waiting(const struct lnx_peer *peer)
{
	return peer->chan.nqueued + lnx_peer_nthrottled(peer);
}

/* Wait a little until at most max frames are queued.  False: there are still more. */
static LNX_COLD bool drain_to(struct lnx_ep *ep, struct lnx_peer *peer,
			      uint32_t max)
{
	unsigned i;

	for (i = 0; i < TRIES && waiting(peer) > max; i++)
		lnx_obj_progress_all(ep);
	return waiting(peer) <= max;
}

/*
 * May another frame go to peer, or be queued?  With no_queue it may not be queued:
 * while connecting, an injected message must have left before we report success, since
 * the application may not call us again for long.  The same is true of sends whose end
 * is not reported.  But their buffers are ours until the application learns of the end
 * in some other way, and returning -FI_EAGAIN is worse (TRIES): acknowledgements that
 * an application sends from its completion handlers are such sends.  So they may be
 * queued even when the queue is full for others.
 */
ssize_t lnx_rel_room(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t flags,
		     bool *no_queue)
{
	uint32_t max;

	if (lnx_unlikely(lnx_peer_dead(peer)))
		return peer->session.key_refused ? -FI_EACCES : -FI_EHOSTUNREACH;
	if (lnx_unlikely(!peer->hello_done) && lnx_hello_start(peer, false))
		return -FI_EAGAIN;
	flags &= FI_INJECT | FI_COMPLETION;
	*no_queue = flags == FI_INJECT &&
		      lnx_peer_path_live(peer)->state != LNX_PATH_UP;
	if (lnx_likely(!(peer->chan.flags & (LNX_CHAN_QUEUED | LNX_CHAN_THROTTLED))))
		return 0;
	max = *no_queue ? 0 : lnx_ep_queue_max(ep, flags) - 1;
	/* If it ends meanwhile, nothing waits any more.  The next call finds what is at its address
	 * then: perhaps another session. */
	if (waiting(peer) > max && (!drain_to(ep, peer, max) || lnx_peer_dead(peer)))
		return -FI_EAGAIN;
	return 0;
}
