/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending frames.  Called by msg/send.c and rma/; numbers a frame and posts it on the
 * peer's path.  Then come the core, rail/ and rel/done.c.  rel/control.c sends frames
 * without a number.
 *
 * A frame that cannot leave (no window, the core says EAGAIN) waits in order on
 * peer->chan.queue; progress pumps it, when the window opens or a path may be tried again.
 * The application sees -FI_EAGAIN when as many frames wait as its tx size allows, and for
 * injects also while the path is connecting.
 */
#include <stdlib.h>

#include "rail/faults.h"
#include "rel/admin.h"
#include "rel/count.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/recovery.h"
#include "rel/session.h"

/*
 * Tries before an application gets -FI_EAGAIN.  Some applications answer it with a
 * progress call inside their completion handler, which is not safe (Open MPI 4.1 then
 * handles entries twice).
 */
#define TRIES		64
/* Peers that are not there must not keep others waiting: tries to connect take one of so
 * many parts of the time. */
#define CONNECT_SHARE		16u

LNX_HOT
struct lnx_txe *lnx_txe_get(struct lnx_ep *ep, size_t payload)
{
	unsigned cls = payload <= LNX_TXE_SMALL ? 0 :
		       payload <= LNX_TXE_MEDIUM ? 1 :
		       payload <= LNX_TXE_LARGE ? 2 : 3;
	struct lnx_txe *txe = lnx_pool_get(&ep->txe_pool[cls]);

	if (lnx_unlikely(!txe))
		return NULL;
	lnx_txe_init(txe, (uint8_t)cls);
	return txe;
}

/* Post one frame to the path's core.  0 or the core's error. */
static ssize_t post(struct lnx_ep *ep, struct lnx_peer *peer,
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

/* The same for a frame that was just numbered for this path: nearly all of them can be
 * injected. */
static inline ssize_t post_new(struct lnx_ep *ep, struct lnx_peer *peer,
			       struct lnx_path *path, struct lnx_txe *txe)
{
	struct lnx_rail *rail = path->rail;

	if (lnx_unlikely(txe->f.len > rail->inject_size || txe->f.niov ||
			 !rail->core_ep || ep->fault))
		return post(ep, peer, path, txe);
	return lnx_frame_inject(ep, peer, path, txe);
}

void lnx_send_want(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (!lnx_list_linked(&peer->pump_link))
		lnx_list_add_tail(&ep->pump_peers, &peer->pump_link);
	ep->work |= LNX_WORK_PUMP;
}

void lnx_rel_watch(struct lnx_ep *ep, struct lnx_peer *peer)
{
	if (!peer->awaited)
		lnx_loss_restart(&peer->loss, &peer->chan);
	peer->awaited = peer->watched = true;
	lnx_peer_look_by(peer, ep->due.looked_ns + (lnx_detects(peer) ?
			 LNX_LOOK_MIN_NS : LNX_LOOK_ONE_NS));
}

void lnx_send_retransmit(struct lnx_peer *peer, unsigned paths)
{
	lnx_chan_retransmit(&peer->chan, paths);
	lnx_send_want(peer);
}

/* A message counts on the rail that it first leaves by; the FIN of a large one tells
 * which rails carried it (msg/rndv.c). */
static inline void count_traffic(struct lnx_peer *peer, struct lnx_txe *txe)
{
	struct lnx_path *path = peer->path[txe->f.path];
	struct lnx_rail_traffic *t = &path->rail->traffic;
	const struct lnx_wire_hdr *w = lnx_txe_hdr(txe);

	switch (w->kind) {
	case LNX_KIND_MSG:
	case LNX_KIND_TAG:
		t->send_length += le64toh(w->len);
		t->sends++;
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
		break;
	}
}

static inline void posted_first(struct lnx_ep *ep, struct lnx_peer *peer,
				struct lnx_txe *txe)
{
	count_traffic(peer, txe);
	lnx_frame_in_window(ep, peer, txe, lnx_txe_bytes(txe));
	if (lnx_unlikely(txe->rxe != NULL)) {
		ep->up->sent(txe);
		txe->rxe = NULL;
	}
}

/* What waits cannot leave: from now on peer counts as blocked. */
static void block(struct lnx_ep *ep, struct lnx_peer *peer)
{
	if (!peer->blocked)
		ep->stats.queued += peer->chan.nqueued;
	peer->blocked = peer->chan.nqueued != 0;
}

static void wait_turn(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_txe *txe, bool first)
{
	ep->stats.queued += peer->blocked;
	lnx_chan_queue(&peer->chan, &txe->f, first);
	lnx_send_want(peer);
}

void lnx_send_refused(struct lnx_ep *ep, struct lnx_peer *peer,
		    struct lnx_path *path, struct lnx_txe *txe)
{
	lnx_sched_blocked(path, lnx_clock_ns());
	/*
	 * Put it before what a core's callbacks queued meanwhile: that has later
	 * numbers.
	 */
	wait_turn(ep, peer, txe, true);
	block(ep, peer);
}

/* Put it behind what waits; progress posts it. */
static void line_up(struct lnx_ep *ep, struct lnx_peer *peer,
		    struct lnx_txe *txe, struct lnx_hdr *h)
{
	lnx_frame_number(peer, NULL, txe, h);
	wait_turn(ep, peer, txe, false);
}

/* later: do not send now, this may be a core's callback. */
LNX_COLD static int start_tx(struct lnx_ep *ep, struct lnx_peer *peer,
			     bool later)
{
	struct lnx_txe *txe;
	struct lnx_hdr h;

	if (lnx_chan_open(&peer->chan, ep->limits.window))
		return -FI_ENOMEM;
	if (lnx_unlikely(ep->admin.any))
		lnx_admin_peer(peer, lnx_clock_ns());
	txe = lnx_failover_hello(peer, &h);
	if (!txe)
		return -FI_ENOMEM;
	peer->hello_done = true;
	lnx_address_ack_hello(peer);
	if (later) {
		line_up(ep, peer, txe, &h);
		return 0;
	}
	return lnx_rel_send(ep, peer, txe, &h, false);
}

int lnx_rel_ready(struct lnx_ep *ep, struct lnx_peer *peer)
{
	return lnx_likely(peer->hello_done) ? 0 : start_tx(ep, peer, false);
}

int lnx_rel_send_later(struct lnx_ep *ep, struct lnx_peer *peer,
		       struct lnx_txe *txe, struct lnx_hdr *h)
{
	if (lnx_unlikely(lnx_peer_dead(peer)))
		return -FI_EHOSTUNREACH;
	if (lnx_unlikely(!peer->hello_done) && start_tx(ep, peer, true))
		return -FI_ENOMEM;
	if (lnx_unlikely(peer->chan.nqueued >= LNX_LATER_MAX))
		return -FI_ENOMEM;
	line_up(ep, peer, txe, h);
	return 0;
}

/* May a frame leave with nothing in front of it? */
static inline bool may_leave(struct lnx_peer *peer, const struct lnx_path *path)
{
	return !lnx_chan_retransmits(&peer->chan) && path &&
	       (path->state == LNX_PATH_UP || path->state == LNX_PATH_IDLE) &&
	       lnx_chan_window_open(&peer->chan);
}

static inline bool can_post(struct lnx_peer *peer, const struct lnx_path *path)
{
	return !(peer->chan.flags & LNX_CHAN_QUEUED) && may_leave(peer, path);
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
	    !lnx_chan_window_open(&peer->chan) || now < path->retry_ns)
		return -FI_EAGAIN;
	lnx_frame_number(peer, NULL, txe, h);
	if (!post(ep, peer, path, txe)) {
		lnx_sched_up(path);
		posted_first(ep, peer, txe);
		return 0;
	}
	if (!lnx_chan_unnumber(&peer->chan, &txe->f)) {
		/* A callback queued a frame behind it. */
		lnx_send_refused(ep, peer, path, txe);
		return 0;
	}
	lnx_sched_blocked(path, now);
	if (!lnx_sched_none_for(peer, now,
			       ep->conf->connect_timeout * LNX_NS_PER_MS))
		return -FI_EAGAIN;
	lnx_detect_expired(peer, now);
	lnx_path_happens(path, LNX_PATH_EXPIRED);
	lnx_rel_peer_failed(peer, FI_ETIMEDOUT);
	return -FI_EHOSTUNREACH;
}

/* Does its core carry so long a frame, of so many pieces? */
static inline bool carries(const struct lnx_path *path, const struct lnx_txe *txe)
{
	const struct lnx_rail *rail = path->rail;

	return lnx_txe_bytes(txe) <= rail->frame_max &&
	       (!txe->f.niov || txe->f.niov < rail->info->tx_attr->iov_limit);
}

/*
 * `chosen` was added after the frame was made, and does not carry it: it waits for a path
 * that does.  If each of these is DOWN, or has taken nothing for as long as a peer has, the
 * core of `chosen` must do what it can.
 */
static LNX_COLD struct lnx_path *carrier(const struct lnx_peer *peer,
					 const struct lnx_txe *txe,
					 struct lnx_path *chosen)
{
	uint64_t now = lnx_clock_ns();
	uint64_t give_up_ns = peer->ep->conf->connect_timeout * LNX_NS_PER_MS;
	struct lnx_path *waits = NULL;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (path->state == LNX_PATH_DOWN || !carries(path, txe))
			continue;
		if (lnx_path_usable(path))
			return path;
		if (!path->since_ns || lnx_ns_since(now, path->since_ns) <= give_up_ns)
			waits = path;
	}
	return waits ? waits : chosen;
}

/* The path of txe: see lnx_sched_next. */
static inline struct lnx_path *next_path(struct lnx_peer *peer, const struct lnx_txe *txe)
{
	struct lnx_path *path = lnx_sched_next(peer, lnx_txe_bytes(txe));

	if (lnx_likely(peer->npath == 1) || !path || lnx_likely(carries(path, txe)))
		return path;
	return carrier(peer, txe, path);
}

LNX_HOT
int lnx_rel_send(struct lnx_ep *ep, struct lnx_peer *peer,
		 struct lnx_txe *txe, struct lnx_hdr *h, bool no_queue)
{
	struct lnx_path *path = next_path(peer, txe);

	if (lnx_likely(can_post(peer, path))) {
		lnx_frame_number(peer, path, txe, h);
		if (lnx_likely(!post_new(ep, peer, path, txe))) {
			lnx_sched_up(path);
			posted_first(ep, peer, txe);
			return 0;
		}
		if (lnx_likely(!no_queue ||
			       !lnx_chan_unnumber(&peer->chan, &txe->f))) {
			lnx_send_refused(ep, peer, path, txe);
			return 0;
		}
		lnx_sched_blocked(path, lnx_clock_ns());
		return -FI_EAGAIN;
	}
	if (no_queue)
		return try_connect(ep, peer, path, txe, h);
	line_up(ep, peer, txe, h);
	/* Else it is only behind what a callback has queued for the next pass. */
	if (!may_leave(peer, path))
		block(ep, peer);
	return 0;
}

/* Post on the next path.  False: all are blocked. */
static bool post_next(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_txe *txe, uint64_t now)
{
	struct lnx_path *path;
	unsigned tries = peer->npath;

	/* now may be old, and backoffs that count from it over. */
	while (tries-- && (path = next_path(peer, txe))) {
		if (path->state != LNX_PATH_UP && now < path->retry_ns)
			return false;
		if (!post(ep, peer, path, txe)) {
			lnx_sched_up(path);
			return true;
		}
		lnx_sched_blocked(path, now);
	}
	return false;
}

/* Post again what may be lost, then what waits.  False: the paths are blocked. */
static bool pump_peer(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t now)
{
	struct lnx_chan *c = &peer->chan;
	enum lnx_chan_what what;
	struct lnx_frame *f;

	while ((f = lnx_chan_next_out(c, &what))) {
		struct lnx_txe *txe = lnx_txe_of(f);
		uint32_t seq = f->seq;
		uint8_t before = f->path;

		if (!post_next(ep, peer, txe, now))
			return false;
		lnx_chan_out(c, what, seq, before);
		if (what != LNX_CHAN_OUT_NEW) {
			ep->stats.resend_count++;
			continue;
		}
		if (!c->nqueued)
			peer->blocked = false;
		posted_first(ep, peer, txe);
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

	ns = LNX_MIN(ns * CONNECT_SHARE, LNX_CONNECT_GAP_MAX_NS);
	*gap_ns = *gap_ns ? (3 * *gap_ns + ns) / 4 : ns;
}

/* All its paths are blocked: when may a frame leave, or is the peer to be given up? */
static uint64_t retry_at(const struct lnx_peer *peer, uint64_t now, uint64_t give_up_ns)
{
	uint64_t at_ns = LNX_NEVER, last_ns = 0;
	bool all = true;
	unsigned i;

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

void lnx_peer_retry(struct lnx_timer *retry, uint64_t now)
{
	(void)now;
	lnx_send_want(lnx_container_of(retry, struct lnx_peer, retry));
}

void lnx_send_pump(struct lnx_ep *ep, uint64_t now)
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
		done = pump_peer(ep, peer, now);
		if (lnx_unlikely(start_ns))
			connect_tried(ep, !done, start_ns);
		if (done) {
			/* The rest waits for the window: acks resume it. */
			lnx_list_del(&peer->pump_link);
			block(ep, peer);
		} else if (lnx_sched_none_for(peer, now, give_up_ns)) {
			lnx_list_del(&peer->pump_link);
			lnx_detect_expired(peer, now);
			lnx_rel_peer_failed(peer, FI_ETIMEDOUT);
		} else {
			block(ep, peer);
			pause_until(peer, retry_at(peer, now, give_up_ns));
		}
	}
	if (lnx_list_empty(&ep->pump_peers) && !more)
		ep->work &= ~LNX_WORK_PUMP;
}

/* Peers to which no path works, and look-ups that failed. */
LNX_COLD ssize_t lnx_rel_find_cold(struct lnx_ep *ep, fi_addr_t dest,
				  struct lnx_peer **peer)
{
	struct lnx_peer *before = NULL;
	int err;

	*peer = lnx_peer_get(ep, dest);
	if (*peer && lnx_peer_dead(*peer)) {
		if (!lnx_peer_may_begin(*peer, lnx_clock_ns()))
			return (*peer)->session.key_refused ? -FI_EACCES :
						      -FI_EHOSTUNREACH;
		before = *peer;
		lnx_peer_detach(before);
	}
	*peer = lnx_peer_make(ep, dest, &err);
	if (!*peer)
		return err == -FI_ENOMEM ? -FI_EAGAIN : err;
	if (before) {
		lnx_session_follows(*peer, before);
		lnx_peer_inherit(*peer, before);
	}
	if ((*peer)->shm_addr != FI_ADDR_NOTAVAIL || (*peer)->self)
		return 0;
	if (!(*peer)->npath)
		return -FI_EHOSTUNREACH;
	return 0;
}

/* Wait a little until at most max frames are queued.  False: there are still more. */
static LNX_COLD bool drain_to(struct lnx_ep *ep, struct lnx_peer *peer,
			      uint32_t max)
{
	unsigned i;

	for (i = 0; i < TRIES && peer->chan.nqueued > max; i++)
		lnx_progress_all(ep);
	return peer->chan.nqueued <= max;
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
	if (lnx_rel_ready(ep, peer))
		return -FI_EAGAIN;
	flags &= FI_INJECT | FI_COMPLETION;
	*no_queue = flags == FI_INJECT &&
		      lnx_sched_live(peer)->state != LNX_PATH_UP;
	if (lnx_likely(!(peer->chan.flags & LNX_CHAN_QUEUED)))
		return 0;
	max = *no_queue ? 0 : lnx_rel_queue_max(ep, flags) - 1;
	if (peer->chan.nqueued > max && !drain_to(ep, peer, max))
		return !lnx_peer_dead(peer) ? -FI_EAGAIN :
		       peer->session.key_refused ? -FI_EACCES : -FI_EHOSTUNREACH;
	return 0;
}

ssize_t lnx_rel_find(struct lnx_ep *ep, fi_addr_t dest, struct lnx_peer **peer)
{
	*peer = lnx_peer_get(ep, dest);
	if (lnx_likely(*peer && (*peer)->npath && !lnx_peer_dead(*peer)))
		return 0;
	return lnx_rel_find_cold(ep, dest, peer);
}
