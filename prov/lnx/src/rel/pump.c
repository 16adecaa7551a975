/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames that could not leave when they were made, and frames that leave again: what
 * progress posts, called by rel/run.c.  rel/send.c puts them in the queue, rel/chan.h has
 * their order.  A peer whose paths are blocked waits for its timer, lnx_peer.retry, and is
 * given up after a while.
 */
#include "base/interval.h"
#include "rail/faults.h"
#include "rel/frame.h"
#include "rel/throttle.h"

ssize_t lnx_frame_post(struct lnx_ep *ep, struct lnx_peer *peer,
		       struct lnx_path *path, struct lnx_txe *txe)
{
	struct lnx_rail *rail = path->rail;
	struct lnx_wire_hdr *w = lnx_txe_hdr(txe);
	uint32_t ack = peer->chan.rx.next;
	uint64_t bytes = lnx_txe_bytes(txe);
	uint8_t before = txe->f.path;
	struct iovec iov[1 + LNX_IOV_MAX];
	ssize_t ret;

	if (lnx_unlikely(!rail->core_ep)) {
		lnx_ep_due(ep, LNX_DUE_RAILS, 0);
		return -FI_EAGAIN;
	}
	lnx_hdr_set_path(w, rail->wire_index, path->index);
	lnx_hdr_set_ack(w, ack);
	txe->f.path = path->index;
	/* It is one that leaves again: its credit goes with it. */
	if (lnx_unlikely(txe->f.retransmitted) && before != path->index)
		lnx_path_credits_move(peer->path[before], path);
	/* A frame that is acknowledged inside the call stays until the call returns. */
	txe->f.in_core = true;
	if (lnx_unlikely(ep->fault != NULL) && lnx_faults_tx(peer, path, txe, w->kind))
		goto left;
	if (lnx_likely(txe->f.len <= rail->inject_size && !txe->f.niov)) {
		/* The core copies it: no completion to handle. */
		ret = lnx_rail_inject(rail, txe->frame, txe->f.len,
				      path->core_addr);
		if (lnx_unlikely(ret))
			goto refused;
		txe->f.in_core = false;
		if (lnx_unlikely(txe->f.acked))
			lnx_done_settled(txe);
		goto left;
	}
	iov[0].iov_base = txe->frame;
	iov[0].iov_len = txe->f.len;
	if (lnx_unlikely(txe->f.niov))
		memcpy(&iov[1], txe->iov, txe->f.niov * sizeof(*iov));
	ret = lnx_rail_send(rail, iov, 1u + txe->f.niov, path->core_addr, &txe->op);
	if (lnx_unlikely(ret))
		goto refused;
left:
	lnx_frame_sent(ep, peer, path, ack, bytes);
	return 0;

refused:
	txe->f.in_core = false;
	if (lnx_unlikely(txe->f.retransmitted) && before != path->index)
		lnx_path_credits_move(path, peer->path[before]);
	txe->f.path = before;
	/*
	 * While a core was busy sending, it may have received the ack of this frame
	 * too.
	 */
	if (txe->f.acked) {
		lnx_done_settled(txe);
		return 0;
	}
	if (ret != -FI_EAGAIN)
		lnx_detect_refused(peer, path, (int)ret, lnx_clock_ns());
	return ret;
}

void lnx_pump_retransmit(struct lnx_peer *peer, unsigned paths)
{
	lnx_chan_retransmit(&peer->chan, paths);
	lnx_peer_pump(peer);
}

/*
 * `chosen` was added after the frame was made, and does not carry it: it waits for a path
 * that does.  If each of these is DOWN, or has taken nothing for as long as a peer has, the
 * core of `chosen` must do what it can.
 */
LNX_COLD struct lnx_path *lnx_frame_carrier(const struct lnx_peer *peer,
					    const struct lnx_txe *txe,
					    struct lnx_path *chosen)
{
	uint64_t now = lnx_clock_ns();
	uint64_t give_up_ns = peer->ep->conf->connect_timeout * LNX_NS_PER_MS;
	struct lnx_path *waits = NULL;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (path->state == LNX_PATH_DOWN || !lnx_frame_carried(path, txe))
			continue;
		if (lnx_path_usable(path))
			return path;
		if (!path->since_ns || lnx_ns_since(now, path->since_ns) <= give_up_ns)
			waits = path;
	}
	return waits ? waits : chosen;
}

/* Post on the next path, and return that.  NULL: all are blocked; or, of a new frame, it has no
 * credit: then *no_credit. */
static struct lnx_path *post_next(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_txe *txe, bool new, uint64_t now, bool *no_credit)
{
	struct lnx_path *path;
	unsigned tries = peer->npath;

	/* now may be old, and backoffs that count from it over. */
	while (tries-- && (path = lnx_frame_path(peer, txe))) {
		if (path->state != LNX_PATH_UP && now < path->retry_ns)
			return NULL;
		if (new && lnx_unlikely(!lnx_path_credits_left(path))) {
			lnx_peer_credits_wait(peer, path);
			*no_credit = true;
			return NULL;
		}
		if (!lnx_frame_post(ep, peer, path, txe)) {
			lnx_backoff_over(peer, path);
			return path;
		}
		lnx_backoff_refused(path, now);
	}
	return NULL;
}

/* Post again what may be lost, then what waits: for the window, or for credits.  False: the
 * paths are blocked. */
static bool pump_peer(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t now)
{
	struct lnx_chan *c = &peer->chan;
	enum lnx_chan_what what;
	struct lnx_frame *f;

	if (lnx_unlikely(c->flags & LNX_CHAN_THROTTLED))
		lnx_throttle_release(peer);
	while ((f = lnx_chan_next_out(c, &what))) {
		struct lnx_txe *txe = lnx_txe_of(f);
		uint8_t before = f->path, kind = lnx_txe_hdr(txe)->kind;
		struct lnx_path *path;
		uint32_t seq = f->seq;
		bool no_credit = false;

		path = post_next(ep, peer, txe, what == LNX_CHAN_OUT_NEW, now, &no_credit);
		if (!path)
			return no_credit;
		lnx_chan_out(c, what, seq, before);
		if (what != LNX_CHAN_OUT_NEW) {
			lnx_count_resent(path, kind);
			ep->stats.resend_count++;
			continue;
		}
		if (!c->nqueued)
			peer->blocked = false;
		if (lnx_unlikely(ep->policy.limited))
			lnx_peer_credits_unqueued(peer);
		lnx_frame_first(ep, peer, txe);
	}
	return true;
}

/* Will its next frame be a try to connect? */
static bool connects(const struct lnx_peer *peer, uint64_t now)
{
	const struct lnx_path *path = peer->cur;

	return peer->npath && path->state == LNX_PATH_CONNECTING &&
	       path->backoff_ns && now >= path->retry_ns;
}

/*
 * Is there time for it?  A try that is refused at once costs a socket, so what it takes is
 * measured, and the next one waits for many times as long.  Other peers that are due
 * meanwhile reserve the times after that, each its own: so none is looked at in vain.
 */
static bool may_connect(struct lnx_ep *ep, struct lnx_path *path, uint64_t now)
{
	struct lnx_ep_due *due = &ep->due;

	if (path->reserved) {
		path->reserved = false;
		return true;
	}
	if (due->connect_ns <= now) {
		due->connect_ns = now + due->connect_gap_ns;
		return true;
	}
	path->reserved = true;
	path->retry_ns = due->connect_ns;
	due->connect_ns += due->connect_gap_ns;
	return false;
}

/* A try that began then was refused; or the peer is there. */
static void connect_tried(struct lnx_ep *ep, bool refused, uint64_t start_ns)
{
	uint64_t ns = refused ? lnx_ns_since(lnx_clock_ns(), start_ns) : 0;
	uint64_t *gap_ns = &ep->due.connect_gap_ns;

	ns = LNX_MIN(ns * LNX_CONNECT_SHARE, LNX_CONNECT_GAP_MAX_NS);
	*gap_ns = *gap_ns ? (3 * *gap_ns + ns) / 4 : ns;
}

/* All its paths are blocked: when may a frame leave, or is the peer to be given up? */
static uint64_t retry_at(const struct lnx_peer *peer, uint64_t now, uint64_t give_up_ns)
{
	uint64_t at_ns = LNX_NEVER, last_ns = 0;
	bool all = true;
	unsigned i;

	/* What its address or its HELLO says is applied in the next passes. */
	if (!peer->npath)
		return now + LNX_BACKOFF_MAX_NS;
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		/* The end of that is not a matter of time (rel/recovery.c). */
		if (path->state != LNX_PATH_DOWN)
			at_ns = lnx_sooner(at_ns, path->retry_ns);
		all &= path->since_ns != 0;
		last_ns = LNX_MAX(last_ns, path->since_ns);
	}
	if (all)
		at_ns = lnx_sooner(at_ns, last_ns + give_up_ns + 1);
	if (peer->failing_ns)
		at_ns = lnx_sooner(at_ns, peer->failing_ns + give_up_ns + 1);
	/* Other paths wait for that of the HELLO, but not for ever. */
	if (peer->npath > 1 && !lnx_peer_acked(peer))
		at_ns = lnx_sooner(at_ns, peer->cur->since_ns + LNX_ALIVE_NS);
	return LNX_MAX(at_ns, now + LNX_BACKOFF_MIN_NS);
}

/* Until then nothing can be posted for it. */
static void pause_until(struct lnx_peer *peer, uint64_t at_ns)
{
	lnx_list_del(&peer->pump_link);
	lnx_ep_arm_by(peer->ep, &peer->retry, at_ns);
}

/*
 * No core takes the frames of a peer that was there: do all its hosts say that no process
 * listens, as long as they would have to if frames were under way (rel/control.c looks only
 * then)?  A peer that never answered may be about to start.
 */
static bool is_refused(struct lnx_peer *peer, uint64_t now)
{
	return lnx_peer_acked(peer) && lnx_chan_idle(&peer->chan) &&
	       lnx_liveness_check(peer, now) == FI_ECONNREFUSED;
}

/* The silence of a peer begins with its first frame that is under way. */
static bool pump_from_idle(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t now)
{
	bool idle = lnx_chan_idle(&peer->chan), done = pump_peer(ep, peer, now);

	if (idle && !lnx_chan_idle(&peer->chan))
		lnx_silence_peer_seen(&peer->liveness);
	return done;
}

void lnx_pump_run(struct lnx_ep *ep, uint64_t now)
{
	uint64_t give_up_ns = ep->conf->connect_timeout * LNX_NS_PER_MS;
	struct lnx_node *n, *tmp;
	bool more = false, done;

	lnx_list_foreach(&ep->pump_peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, pump_link);
		uint64_t start_ns = 0;

		lnx_timer_cancel(&ep->due.timers, &peer->retry);
		if (lnx_peer_ending(peer)) {
			lnx_list_del(&peer->pump_link);
			lnx_rel_peer_failed(peer, peer->session.key_refused ?
					   FI_EACCES : FI_ECONNRESET);
			continue;
		}
		if (peer->failing_ns && now > peer->failing_ns + give_up_ns) {
			lnx_list_del(&peer->pump_link);
			lnx_rel_peer_failed(peer, FI_ETIMEDOUT);
			continue;
		}
		if (connects(peer, now)) {
			if (!ep->due.connects) {
				pause_until(peer, now);
				more = true;	/* in the next pass */
				continue;
			}
			if (!may_connect(ep, peer->cur, now)) {
				pause_until(peer, retry_at(peer, now, give_up_ns));
				continue;
			}
			ep->due.connects--;
			start_ns = lnx_clock_ns();
		}
		done = pump_from_idle(ep, peer, now);
		if (lnx_unlikely(start_ns))
			connect_tried(ep, !done, start_ns);
		if (done) {
			/* The rest waits for the window or credits: acks resume it. */
			lnx_list_del(&peer->pump_link);
			lnx_frame_block(ep, peer);
		} else if (lnx_backoff_all_for(peer, now, give_up_ns)) {
			lnx_list_del(&peer->pump_link);
			lnx_detect_expired(peer, now);
			lnx_rel_peer_failed(peer, FI_ETIMEDOUT);
		} else if (is_refused(peer, now)) {
			lnx_list_del(&peer->pump_link);
			lnx_rel_peer_failed(peer, FI_ECONNREFUSED);
		} else {
			if (lnx_unlikely(!peer->npath && !peer->failing_ns)) {
				peer->failing_ns = now;
				peer->chan.flags |= LNX_CHAN_FAILING;
			}
			lnx_liveness_connecting(peer, now);
			lnx_frame_block(ep, peer);
			pause_until(peer, retry_at(peer, now, give_up_ns));
		}
	}
	if (lnx_list_empty(&ep->pump_peers) && !more)
		ep->work &= ~LNX_WORK_PUMP;
}
