/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path is next.  Called by rel/send.c for frames and by msg/pull.c for pieces;
 * uses policy/stripe.
 */
#include "rel/sched.h"

#include "base/interval.h"
#include "core/fd_limit.h"
#include "rail/rail.h"
#include "rel/frame.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/recovery.h"
#include "wire/hdr.h"

#define US_PER_S	1e6
#define INFLIGHT_MIN	4096u
/* The message with the piece that tries a slow path again waits for it, for at most this
 * share of the time. */
#define RELEARN_SHARE	20u

LNX_COLD void lnx_sched_blocked(struct lnx_path *path, uint64_t now)
{
	if (path->state == LNX_PATH_DOWN)
		return;			/* only an answer of its peer ends that */
	if (path->state != LNX_PATH_CONNECTING || !path->since_ns) {
		lnx_path_happens(path, LNX_PATH_REFUSED);
		path->since_ns = now;
		path->backoff_ns = LNX_BACKOFF_MIN_NS;
	} else {
		/*
		 * Each try may be a connect that is refused, so the pause grows with
		 * the time that it has taken so far, and adds little to that.  The
		 * backoff may have been reset because the peer's address changed.
		 */
		uint64_t max = LNX_MIN(lnx_ns_since(now, path->since_ns) / 8,
				       LNX_REFUSED_MAX_NS);

		path->backoff_ns = LNX_MAX(LNX_BACKOFF_MIN_NS, path->backoff_ns +
					   path->backoff_ns / 2);
		path->backoff_ns = LNX_MIN(path->backoff_ns,
					   LNX_MAX(max, LNX_BACKOFF_MAX_NS));
		if (path->backoff_ns >= LNX_UNUSUAL_NS)
			lnx_fd_limit_look(path->rail->ep, path->rail->name);
	}
	path->retry_ns = now + path->backoff_ns;
}

LNX_COLD bool lnx_sched_may_try(struct lnx_ep *ep, const struct lnx_path *path,
				uint64_t now)
{
	if (path->state == LNX_PATH_UP)
		return true;
	if (now < path->retry_ns)
		return false;
	/* Nothing was refused yet. */
	if (path->state != LNX_PATH_CONNECTING || !path->backoff_ns)
		return true;
	if (!ep->due.connects)
		return false;
	ep->due.connects--;
	return true;
}

LNX_COLD void lnx_sched_failed(struct lnx_path *path, uint64_t now)
{
	/* All frames in the core fail together: that counts once. */
	if (path->fail_backoff_ns && now < path->retry_ns)
		return;
	path->fail_backoff_ns = LNX_MAX(LNX_FAIL_BACKOFF_MIN_NS,
				     LNX_MIN(path->fail_backoff_ns * 2,
					     LNX_FAIL_BACKOFF_MAX_NS));
	path->retry_ns = now + path->fail_backoff_ns;
	lnx_fd_limit_look(path->rail->ep, path->rail->name);
}

/*
 * The path in use.  Until our hello is acknowledged, the one that took it: a peer that
 * does not know us drops frames that come before it.
 */
static struct lnx_path *first_path(struct lnx_peer *peer)
{
	if (!lnx_peer_acked(peer) && peer->chan.posted) {
		const struct lnx_frame *hello = *lnx_chan_slot(&peer->chan, 0);

		if (hello)
			return peer->path[hello->path];
	}
	return peer->cur;
}

/* FI_LNX_MULTI_RAIL_SELECTION=PER_MSG, LNET: the path of the next message. */
static struct lnx_path *round_robin(struct lnx_peer *peer,
				const struct lnx_stripe_path *view, uint64_t now)
{
	unsigned i, usable = 0;
	int best = -1;

	for (i = 0; i < peer->npath; i++)
		usable |= (unsigned)view[i].usable << i;
	if (peer->ep->conf->multi_rail_selection == LNX_SELECTION_LNET)
		best = lnx_order_next(peer, usable, now);
	for (i = 1; best < 0 && i <= peer->npath; i++) {
		unsigned k = (peer->rr_index + i) % peer->npath;

		if (usable & peer->rr & 1u << k)
			best = (int)k;
	}
	if (best < 0)
		return NULL;
	peer->rr_index = (uint8_t)best;
	return peer->path[best];
}

void lnx_sched_shares(const struct lnx_peer *peer, unsigned *share)
{
	unsigned i, best = 0;
	uint64_t now = 0;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		const struct lnx_health *remote = &path->remote->health;

		share[i] = LNX_WEIGHT_MAX;
		if (lnx_unlikely(!lnx_health_well(&path->detect.health) ||
				 !lnx_health_well(&path->rail->health) ||
				 !lnx_health_well(remote))) {
			if (!now)
				now = lnx_clock_ns();
			share[i] = lnx_health_weight_of_path(&path->detect.health,
							     &path->rail->health, remote,
							     &peer->ep->plan, now);
		}
		best = LNX_MAX(best, share[i]);
	}
	if (lnx_likely(!now))
		return;
	for (i = 0; i < peer->npath; i++)
		share[i] = best ? share[i] * LNX_WEIGHT_MAX / best : LNX_WEIGHT_MAX;
}

static uint64_t part(uint64_t rate, unsigned share)
{
	if (lnx_likely(share == LNX_WEIGHT_MAX) || !rate)
		return rate;
	return LNX_MAX(rate * share / LNX_WEIGHT_MAX, 1u);
}

static void look_at(const struct lnx_path *path, const struct lnx_rate *r, unsigned share,
		    struct lnx_stripe_path *view)
{
	view->rate = part(r->rate, share);
	view->nominal = part(path->link_bps / 8, share);
	view->delay_ns = lnx_rate_latency(r);
	view->room = lnx_rate_room(r);
	view->drain = r->drain;
}

/* An answer takes far longer over it than over the best path. */
static bool far(const struct lnx_path *path, uint64_t least, uint64_t now)
{
	return lnx_latency_of(path, now) > 2 * least + LNX_FAR_NS;
}

/* The least time that an answer takes over any path. */
static uint64_t least_latency(const struct lnx_peer *peer, uint64_t now)
{
	uint64_t least = 0;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		uint64_t ns = lnx_latency_of(peer->path[i], now);

		if (ns && (!least || ns < least))
			least = ns;
	}
	return least;
}

/* Frames were late on some paths, and stay away from these while another that is as good
 * works: what does not fit on that one waits for it. */
static void keep_away(const struct lnx_peer *peer, uint64_t now,
		      struct lnx_stripe_path *view)
{
	unsigned i, well = 0, away = 0;

	for (i = 0; i < peer->npath; i++) {
		bool over = lnx_pause_over(&peer->path[i]->speed->away, now);

		well |= (unsigned)(view[i].usable && over) << i;
		away |= (unsigned)!over << i;
	}
	for (i = 0; lnx_unlikely(away >> i); i++)
		if ((away >> i & 1) && (well & lnx_order_as_good(peer, peer->path[i])))
			view[i].usable = false;
}

/* Fill the view for policy/stripe. */
static void view_frames(const struct lnx_peer *peer, struct lnx_stripe_path *view,
			uint64_t now)
{
	uint64_t near = least_latency(peer, now);
	unsigned share[LNX_PATHS_MAX], i;

	lnx_sched_shares(peer, share);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		view[i].usable = path->state == LNX_PATH_UP ||
				 path->state == LNX_PATH_IDLE ||
				 (path->state != LNX_PATH_DOWN && now >= path->retry_ns);
		look_at(path, &path->speed->send, share[i], &view[i]);
		view[i].out_bytes = lnx_sched_in_flight(peer, path);
		if (far(path, near, now))
			view[i].delay_ns = LNX_MAX(view[i].delay_ns,
						   lnx_latency_of(path, now));
	}
	keep_away(peer, now, view);
}

/* Our HELLO is not acknowledged, and its path takes nothing now: is that path waited for? */
static bool hello_waits(const struct lnx_peer *peer, const struct lnx_path *cur,
			const struct lnx_stripe_path *view, uint64_t now)
{
	return !lnx_peer_acked(peer) && peer->chan.posted && !view[cur->index].usable &&
	       cur->state != LNX_PATH_DOWN && cur->since_ns &&
	       lnx_ns_since(now, cur->since_ns) < LNX_ALIVE_NS;
}

/* Leave the paths whose bit is set in mask. */
static void only(const struct lnx_peer *peer, const struct lnx_stripe_path *view,
		 unsigned mask, struct lnx_stripe_path out[LNX_PATHS_MAX])
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		out[i] = view[i];
		out[i].usable = view[i].usable && (mask >> i & 1);
	}
}

/* Of the paths that share the traffic; or else of those of the first class that has a
 * usable one. */
static int shortest(const struct lnx_peer *peer, const struct lnx_stripe_path *view,
		    size_t len)
{
	struct lnx_stripe_path some[LNX_PATHS_MAX];
	unsigned mask = peer->stripe, class;
	int pick = -1;

	for (class = 0; mask && pick < 0; class++) {
		only(peer, view, mask, some);
		pick = lnx_stripe_shortest(some, peer->npath, len);
		mask = lnx_order_class(peer, class);
	}
	return pick;
}

struct lnx_path *lnx_sched_choose(struct lnx_peer *peer, size_t len)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	uint64_t now = lnx_clock_ns();
	struct lnx_path *cur;
	int pick;

	if (!peer->npath)
		return NULL;
	lnx_order_fresh(peer, now);
	cur = first_path(peer);
	view_frames(peer, view, now);
	if (lnx_unlikely(peer->rr && lnx_peer_acked(peer))) {
		struct lnx_path *next = round_robin(peer, view, now);

		if (next)
			return next;
	} else if (view[cur->index].usable &&
		   (!lnx_peer_acked(peer) || view[cur->index].out_bytes <= cur->inflight_limit)) {
		return cur;
	}
	if (hello_waits(peer, cur, view, now))
		return NULL;
	pick = shortest(peer, view, len);
	return pick < 0 ? NULL : peer->path[pick];
}

struct lnx_path *lnx_sched_find_live(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->cur;
	unsigned i;

	if (!peer->npath)
		return NULL;
	/* A path that was not tried yet comes before one that is to be tried again. */
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *other = peer->path[lnx_order_at(peer, i)];

		if (other->state == LNX_PATH_UP)
			return other;
		if (other->state == LNX_PATH_DOWN)
			continue;
		if (path->state == LNX_PATH_DOWN ||
		    (path->state != LNX_PATH_IDLE &&
		     (other->state == LNX_PATH_IDLE ||
		      other->retry_ns < path->retry_ns)))
			path = other;
	}
	return path;
}

static LNX_COLD void later(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		lnx_sched_later(peer->ep, &peer->path[i]->since_ns, now);
	lnx_sched_later(peer->ep, &peer->failing_ns, now);
	lnx_sched_later(peer->ep, &peer->liveness.since_ns, now);
}

/* Of each peer that something is due from, or that frames wait for. */
static LNX_COLD void all_later(struct lnx_ep *ep, uint64_t now)
{
	const struct lnx_timers *set = &ep->due.timers;
	struct lnx_node *n, *tmp;
	uint32_t i;

	for (i = 0; i < set->n; i++) {
		struct lnx_timer *t = lnx_timers_armed(set, i);
		struct lnx_peer *peer;

		if (t->due == ep->up->peer_look) {
			later(lnx_container_of(t, struct lnx_peer, look), now);
		} else if (t->due == ep->up->peer_retry) {
			peer = lnx_container_of(t, struct lnx_peer, retry);
			if (!lnx_timer_armed(&peer->look))
				later(peer, now);
		}
	}
	lnx_list_foreach(&ep->pump_peers, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, pump_link);

		if (!lnx_timer_armed(&peer->look))
			later(peer, now);
	}
}

void lnx_sched_look(struct lnx_ep *ep, uint64_t now)
{
	uint64_t gap_ns = lnx_ns_since(now, ep->due.looked_ns);

	if (lnx_unlikely(gap_ns > LNX_LATENCY_AWAY_NS))
		ep->due.away_ns = now;
	if (lnx_unlikely(gap_ns > LNX_NS_PER_S))
		all_later(ep, now);
	ep->due.looked_ns = now;
}

bool lnx_sched_none_for(const struct lnx_peer *peer, uint64_t now,
		       uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i]->since_ns ||
		    lnx_ns_since(now, peer->path[i]->since_ns) <= limit_ns)
			return false;
	return true;
}

struct lnx_path *lnx_sched_back(struct lnx_peer *peer,
			       const struct lnx_rail *rail, uint16_t remote)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->rail == rail &&
		    peer->path[i]->remote_rail == remote)
			return peer->path[i];
	return lnx_sched_live(peer);
}

void lnx_sched_report_one(struct lnx_peer *peer, unsigned which, uint64_t total)
{
	struct lnx_path_speed *speed;
	struct lnx_path *path;
	uint64_t more, flight;

	if (which >= peer->npath || peer->npath < 2)
		return;
	path = peer->path[which];
	more = total - path->last_report;
	flight = path->sent - path->delivered;
	/* Nothing is in flight: what is missing was lost, and what is too much was sent
	 * twice. */
	if (!flight && peer->chan.una == peer->chan.posted) {
		path->last_report = total;
		return;
	}
	/* An old report, or a forged one. */
	if (more > INT64_MAX)
		return;
	path->last_report = total;
	if (more) {
		path->fail_backoff_ns = 0;
		path->speed->doubt_ns = 0;
	}
	path->detect.progress += more;
	more = LNX_MIN(more, flight);
	speed = path->speed;
	/* All that was in flight has arrived meanwhile; it is not known when. */
	if (speed->delivered != path->delivered)
		lnx_rate_forget(&speed->send);
	path->delivered += more;
	speed->delivered = path->delivered;
	lnx_rate_delivered(&speed->send, more, flight - more, lnx_clock_ns());
	path->inflight_limit = (uint64_t)((double)speed->send.rate *
				(double)peer->ep->conf->spill / US_PER_S);
	path->inflight_limit = LNX_MAX(path->inflight_limit, INFLIGHT_MIN);
}

void lnx_sched_report(struct lnx_peer *peer, const struct lnx_hdr *ack)
{
	if (peer->npath < 2)
		return;
	if (ack->tag && ack->tag <= LNX_PATHS_MAX)
		lnx_sched_report_one(peer, (unsigned)ack->tag - 1, ack->data);
	if (ack->len && ack->len <= LNX_PATHS_MAX)
		lnx_sched_report_one(peer, (unsigned)ack->len - 1, ack->key);
}

void lnx_sched_report_put(const struct lnx_peer *peer, struct lnx_hdr *ack)
{
	unsigned i, p = peer->rx.reported_path;

	for (i = 0; i < LNX_PATHS_MAX && !ack->len; i++) {
		p = (p + 1) % LNX_PATHS_MAX;
		if ((uint32_t)peer->rx.bytes[p] == peer->rx_reported[p])
			continue;
		if (ack->tag) {
			ack->len = 1 + p;
			ack->key = peer->rx.bytes[p];
		} else {
			ack->tag = 1 + p;
			ack->data = peer->rx.bytes[p];
		}
	}
}

static void report_sent_one(struct lnx_peer *peer, unsigned which, uint64_t total)
{
	peer->rx_reported[which] = (uint32_t)total;
	peer->rx.reported_path = (uint8_t)which;
}

void lnx_sched_report_sent(struct lnx_peer *peer, const struct lnx_hdr *ack)
{
	if (ack->tag)
		report_sent_one(peer, (unsigned)ack->tag - 1, ack->data);
	if (ack->len)
		report_sent_one(peer, (unsigned)ack->len - 1, ack->key);
	peer->rx.multipath = false;
}

/* ---- pieces of large messages ---- */

/*
 * Its pieces, or the answer to a PROBE, should have come long ago: it may take as long
 * again until they do.
 */
static uint64_t stuck(const struct lnx_path *path, uint64_t least, uint64_t now)
{
	const struct lnx_rate *r = &path->speed->read;
	uint64_t ns = 0;

	if (path->nread)
		ns = lnx_ns_since(now, LNX_MAX(path->read_done_ns, r->round_ns));
	if (ns < 2 * r->delay_ns + LNX_FAR_NS)
		ns = 0;
	return far(path, least, now) ? LNX_MAX(ns, lnx_latency_of(path, now)) : ns;
}

/* How long a path as slow as that rests.  Not longer if pieces were late there: what is
 * known is of that time, and the piece that tries it again goes elsewhere if it is late. */
static uint64_t relearn_ns(const struct lnx_stripe_path *slow, const struct lnx_tail *t)
{
	uint64_t rate = LNX_MAX(slow->rate, 1ull);

	if (t->window)
		return LNX_LATE_PAUSE_MAX_NS;
	return LNX_MAX(LNX_RELEARN_NS, RELEARN_SHARE *
		       (slow->delay_ns + LNX_STRIPE_MIN * LNX_NS_PER_S / rate));
}

/* Pieces were late on path: do others that are as good work, of those in able (bits)?  If
 * pieces hang on all others, the one where that was longest ago does not pause. */
static bool may_pause(const struct lnx_peer *peer, const struct lnx_path *path, unsigned able,
		      uint64_t now)
{
	uint64_t first_ns = UINT64_MAX;
	unsigned i;

	able &= lnx_order_as_good(peer, path);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_tail *t = &peer->path[i]->speed->tail;

		if (!(able >> i & 1) || lnx_tail_stuck(t))
			continue;
		if (lnx_pause_over(&t->pause, now))
			return true;
		first_ns = LNX_MIN(first_ns, t->late_ns);
	}
	return path->speed->tail.late_ns > first_ns;
}

/* Pieces were late on some paths: these pause, and then have few pieces under way. */
static void keep_off_late(const struct lnx_peer *peer, uint64_t now,
			  struct lnx_stripe_path *view)
{
	unsigned i, able = 0, pauses = 0;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_tail *t = &peer->path[i]->speed->tail;

		able |= (unsigned)view[i].usable << i;
		if (lnx_unlikely(!lnx_pause_over(&t->pause, now)))
			pauses |= 1u << i;
		if (lnx_unlikely(!lnx_tail_room(t, view[i].out_bytes)))
			view[i].usable = false;
	}
	for (i = 0; lnx_unlikely(pauses >> i); i++)
		if ((pauses >> i & 1) && may_pause(peer, peer->path[i], able, now))
			view[i].usable = false;
}

/* Fill the view for policy/stripe; returns which of the paths in able are in use (bits). */
static unsigned view_reads(const struct lnx_peer *peer, unsigned able,
			   uint64_t now, struct lnx_stripe_path *view)
{
	uint64_t best = 0, least = least_latency(peer, now);
	unsigned share[LNX_PATHS_MAX], i, busy = 0;

	lnx_sched_shares(peer, share);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		look_at(path, &path->speed->read, share[i], &view[i]);
		view[i].delay_ns = LNX_MAX(view[i].delay_ns, stuck(path, least, now));
		if (lnx_unlikely(path->speed->read_failed))
			view[i].rate = view[i].room = 0;
		view[i].out = path->nread;
		view[i].out_bytes = path->read_bytes;
		view[i].usable = (able >> i & 1) && now >= path->read_retry_ns &&
				 path->state != LNX_PATH_DOWN;
		if (path->nread && (able >> i & 1) &&
		    path->state != LNX_PATH_DOWN)
			busy |= 1u << i;
		best = LNX_MAX(best, view[i].rate);
	}
	keep_off_late(peer, now, view);
	/* Slow ones may have become faster; not if even a PROBE takes much longer. */
	for (i = 0; i < peer->npath; i++)
		if (!view[i].out &&
		    share[i] > LNX_WEIGHT_MAX / 2 &&
		    (view[i].rate < best / 2 || view[i].delay_ns > LNX_FAR_NS) &&
		    lnx_ns_since(now, peer->path[i]->read_done_ns) >
			    relearn_ns(&view[i], &peer->path[i]->speed->tail) &&
		    !far(peer->path[i], least, now))
			view[i].rate = view[i].room = view[i].delay_ns = 0;
	return busy;
}

struct lnx_path *lnx_sched_for_read(struct lnx_peer *peer, unsigned able,
				   uint64_t now, bool *line)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX], some[LNX_PATHS_MAX];
	unsigned busy, mask, class;
	int pick = -1;

	lnx_order_fresh(peer, now);
	busy = view_reads(peer, able, now, view);
	/* With LNET a message uses one path, and each message its own. */
	mask = peer->stripe | peer->rr;
	/* The second-best paths, when the best do not work. */
	for (class = 0; mask; class++) {
		only(peer, view, mask, some);
		pick = lnx_stripe_pick(some, peer->npath, peer->pull.left);
		if (pick >= 0 || (busy & mask))
			break;
		mask = lnx_order_class(peer, class);
	}
	*line = pick < 0 && busy;
	return pick < 0 ? NULL : peer->path[pick];
}

size_t lnx_sched_read_len(struct lnx_peer *peer, const struct lnx_path *path,
			 size_t rest, unsigned able, uint64_t now)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX], some[LNX_PATHS_MAX];
	const struct lnx_conf *conf = peer->ep->conf;
	unsigned mask = peer->stripe | 1u << path->index;
	size_t max;

	if (rest < conf->stripe_threshold && rest <= conf->chunk &&
	    rest == peer->pull.left)
		return rest;
	max = LNX_MIN(conf->chunk, lnx_tail_most(&path->speed->tail, path->read_bytes));
	/* LNET */
	if (peer->rr && peer->stripe != peer->rr)
		return LNX_MIN(rest, max);
	view_reads(peer, able, now, view);
	only(peer, view, mask, some);
	return lnx_stripe_len(some, peer->npath, path->index, peer->pull.left,
			      rest, max);
}

/* How long so many bytes take at the rate of our link. */
static uint64_t nominal_ns(const struct lnx_path *path, size_t len)
{
	uint64_t bps = path->link_bps ? path->link_bps : LNX_NS_PER_S;

	return (uint64_t)((double)len * 8 * LNX_NS_PER_S / (double)bps);
}

/* Pieces were late there, and the one that is being posted is the first one since. */
static bool tries_again(const struct lnx_path *path, uint64_t now)
{
	return lnx_unlikely(path->speed->tail.window) && path->nread == 1 &&
	       lnx_ns_since(now, path->read_done_ns) > LNX_LATE_PAUSE_MAX_NS;
}

uint64_t lnx_sched_read_posted(struct lnx_path *path, size_t len, uint64_t now)
{
	struct lnx_rate *r;
	uint64_t ns;

	path->nread++;
	path->read_bytes += len;
	if (!path->speed)
		return 0;
	r = &path->speed->read;
	lnx_rate_posted(r, path->read_bytes, now);
	ns = lnx_rate_expect(r, len);
	return tries_again(path, now) ? LNX_MIN(ns, LNX_FAR_NS + nominal_ns(path, len)) : ns;
}

void lnx_sched_read_refused(struct lnx_path *path, size_t len, uint64_t now)
{
	path->nread--;
	path->read_bytes -= len;
	if (!path->nread && path->speed)
		lnx_rate_forget(&path->speed->read);
	path->read_retry_ns = now + LNX_READ_BUSY_NS;
}

/* A piece has ended, with so many bytes. */
static inline void read_ended(struct lnx_path *path, size_t len, size_t got, uint64_t now)
{
	uint64_t ns;

	path->nread--;
	path->read_bytes -= len;
	path->detect.progress += got;
	if (!path->speed)
		return;
	ns = lnx_rate_delivered(&path->speed->read, got, path->read_bytes, now);
	lnx_tail_ended(&path->speed->tail, now);
	if (ns)
		lnx_rtt_sample(&path->detect.rtt, ns);
}

void lnx_sched_read_done(struct lnx_path *path, size_t len, bool ok,
			uint64_t now)
{
	read_ended(path, len, ok ? len : 0, now);
	path->read_done_ns = now;
	if (path->speed)
		path->speed->read_failed = !ok;
	if (!ok)
		path->read_retry_ns = now + LNX_READ_REDO_NS;
}

LNX_COLD void lnx_sched_read_cut(struct lnx_path *path, size_t len, uint64_t now)
{
	read_ended(path, len, 0, now);
}
