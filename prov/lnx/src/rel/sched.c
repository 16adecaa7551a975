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
#include "rel/recovery.h"
#include "wire/hdr.h"

#define US_PER_S	1e6
#define INFLIGHT_MIN	4096u
/* The message with the piece that tries a slow path again waits for it, for at most this
 * share of the time. */
#define RELEARN_SHARE	20u

LNX_COLD void lnx_path_blocked(struct lnx_path *path, uint64_t now)
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

LNX_COLD void lnx_path_failed(struct lnx_path *path, uint64_t now)
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

/*
 * FI_LNX_MULTI_RAIL_SELECTION=PER_MSG, LNET: round robin; if the load counts, over the
 * paths with the least in flight.
 */
static struct lnx_path *round_robin(struct lnx_peer *peer,
				const struct lnx_stripe_path *view)
{
	bool least = peer->ep->conf->multi_rail_selection == LNX_SELECTION_LNET;
	int best = -1;
	unsigned i;

	for (i = 1; i <= peer->n_rr; i++) {
		unsigned k = (peer->rr_index + i) % peer->n_rr;

		if (!view[k].usable ||
		    (best >= 0 && view[k].out_bytes >= view[best].out_bytes))
			continue;
		best = (int)k;
		if (!least)
			break;
	}
	if (best < 0)
		return NULL;
	peer->rr_index = (uint8_t)best;
	return peer->path[best];
}

void lnx_path_shares(const struct lnx_peer *peer, unsigned *share)
{
	unsigned i, best = 0;
	uint64_t now = 0;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		const struct lnx_health *remote = lnx_detect_remote_health(peer, path);

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

struct lnx_path *lnx_path_choose(struct lnx_peer *peer, size_t len)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	struct lnx_path *cur = first_path(peer);
	unsigned share[LNX_PATHS_MAX], i;
	uint64_t now = 0, near = 0;
	int pick;

	if (!peer->npath)
		return NULL;
	lnx_path_shares(peer, share);
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		view[i].usable = path->state == LNX_PATH_UP ||
				 path->state == LNX_PATH_IDLE;
		if (!view[i].usable && path->state != LNX_PATH_DOWN) {
			if (!now)
				now = lnx_clock_ns();
			view[i].usable = now >= path->retry_ns;
		}
		look_at(path, &path->speed->send, share[i], &view[i]);
		view[i].out_bytes = lnx_path_in_flight(peer, path);
		if (!now)
			now = lnx_clock_ns();
		if (!i)
			near = least_latency(peer, now);
		if (far(path, near, now))
			view[i].delay_ns = LNX_MAX(view[i].delay_ns,
						   lnx_latency_of(path, now));
	}
	if (lnx_unlikely(peer->n_rr > 1 && lnx_peer_acked(peer))) {
		struct lnx_path *next = round_robin(peer, view);

		if (next)
			return next;
	} else if (view[cur->index].usable &&
		   (!lnx_peer_acked(peer) || view[cur->index].out_bytes <= cur->inflight_limit)) {
		return cur;
	}
	/* now is set: since_ns is set only for paths that are blocked or DOWN. */
	if (!lnx_peer_acked(peer) && peer->chan.posted && !view[cur->index].usable &&
	    cur->state != LNX_PATH_DOWN && cur->since_ns &&
	    lnx_ns_since(now, cur->since_ns) < LNX_ALIVE_NS)
		return NULL;
	pick = lnx_stripe_shortest(view, peer->n_stripe, len);
	if (pick < 0)
		pick = lnx_stripe_shortest(view, peer->npath, len);
	return pick < 0 ? NULL : peer->path[pick];
}

struct lnx_path *lnx_path_find_live(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->cur;
	unsigned i;

	if (!peer->npath)
		return NULL;
	/* A path that was not tried yet comes before one that is to be tried again. */
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *other = peer->path[i];

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
		lnx_path_later(peer->ep, &peer->path[i]->since_ns, now);
	lnx_path_later(peer->ep, &peer->failing_ns, now);
}

void lnx_path_look(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;

	if (lnx_unlikely(lnx_ns_since(now, ep->due.looked_ns) > LNX_NS_PER_S)) {
		/* A peer on both lists gets a little more. */
		lnx_list_foreach(&ep->retx_list, n, tmp) {
			struct lnx_peer *peer =
				lnx_list_entry(n, struct lnx_peer, retx_link);

			later(peer, now);
			lnx_path_later(ep, &peer->liveness.since_ns, now);
		}
		lnx_list_foreach(&ep->pump_peers, n, tmp)
			later(lnx_list_entry(n, struct lnx_peer, pump_link),
			      now);
	}
	ep->due.looked_ns = now;
}

bool lnx_path_none_for(const struct lnx_peer *peer, uint64_t now,
		       uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i]->since_ns ||
		    lnx_ns_since(now, peer->path[i]->since_ns) <= limit_ns)
			return false;
	return true;
}

struct lnx_path *lnx_path_back(struct lnx_peer *peer,
			       const struct lnx_rail *rail, uint16_t remote)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->rail == rail &&
		    peer->path[i]->remote_rail == remote)
			return peer->path[i];
	return lnx_path_live(peer);
}

void lnx_path_report_one(struct lnx_peer *peer, unsigned which, uint64_t total)
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

void lnx_path_report(struct lnx_peer *peer, const struct lnx_hdr *ack)
{
	if (peer->npath < 2)
		return;
	if (ack->tag && ack->tag <= LNX_PATHS_MAX)
		lnx_path_report_one(peer, (unsigned)ack->tag - 1, ack->data);
	if (ack->len && ack->len <= LNX_PATHS_MAX)
		lnx_path_report_one(peer, (unsigned)ack->len - 1, ack->key);
}

void lnx_path_report_put(const struct lnx_peer *peer, struct lnx_hdr *ack)
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

void lnx_path_report_sent(struct lnx_peer *peer, const struct lnx_hdr *ack)
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

/* How long a path as slow as that rests. */
static uint64_t relearn_ns(const struct lnx_stripe_path *slow)
{
	uint64_t rate = LNX_MAX(slow->rate, 1ull);

	return LNX_MAX(LNX_RELEARN_NS, RELEARN_SHARE *
		       (slow->delay_ns + LNX_STRIPE_MIN * LNX_NS_PER_S / rate));
}

/*
 * Pieces were late on some paths: these pause, and then have few pieces under way.  If
 * pieces hang on all others, the one where that was longest ago does not pause.
 */
static void keep_off_late(const struct lnx_peer *peer, uint64_t now,
			  struct lnx_stripe_path *view)
{
	uint64_t first_ns = UINT64_MAX;
	unsigned i, pauses = 0;
	bool works = false;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_tail *t = &peer->path[i]->speed->tail;

		if (!view[i].usable)
			continue;
		if (!lnx_pause_over(&t->pause, now))
			pauses |= 1u << i;
		else
			works |= !lnx_tail_stuck(t);
		if (!lnx_tail_stuck(t))
			first_ns = LNX_MIN(first_ns, t->late_ns);
		if (lnx_unlikely(!lnx_tail_room(t, view[i].out_bytes)))
			view[i].usable = false;
	}
	if (lnx_likely(!pauses))
		return;
	for (i = 0; i < peer->npath; i++)
		if ((pauses >> i & 1) &&
		    (works || peer->path[i]->speed->tail.late_ns > first_ns))
			view[i].usable = false;
}

/* Fill the view for policy/stripe; returns which of the paths in able are in use (bits). */
static unsigned view_reads(const struct lnx_peer *peer, unsigned able,
			   uint64_t now, struct lnx_stripe_path *view)
{
	uint64_t best = 0, least = least_latency(peer, now);
	unsigned share[LNX_PATHS_MAX], i, busy = 0;

	lnx_path_shares(peer, share);
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
			    relearn_ns(&view[i]) &&
		    !far(peer->path[i], least, now))
			view[i].rate = view[i].room = view[i].delay_ns = 0;
	return busy;
}

struct lnx_path *lnx_path_for_read(struct lnx_peer *peer, unsigned able,
				   uint64_t now, bool *line)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	unsigned busy = view_reads(peer, able, now, view);
	/* With LNET a message uses one path, and each message its own. */
	unsigned n = LNX_MAX(peer->n_stripe, peer->n_rr);
	int pick = lnx_stripe_pick(view, n, peer->pull.left);

	/* The second-best paths, when the best do not work. */
	if (pick < 0 && !(busy & ((1u << n) - 1)))
		pick = lnx_stripe_pick(view, peer->npath, peer->pull.left);
	*line = pick < 0 && busy;
	return pick < 0 ? NULL : peer->path[pick];
}

size_t lnx_path_read_len(struct lnx_peer *peer, const struct lnx_path *path,
			 size_t rest, unsigned able, uint64_t now)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	const struct lnx_conf *conf = peer->ep->conf;
	size_t max;

	if (rest < conf->stripe_threshold && rest <= conf->chunk &&
	    rest == peer->pull.left)
		return rest;
	max = LNX_MIN(conf->chunk, lnx_tail_most(&path->speed->tail, path->read_bytes));
	if (peer->n_stripe < peer->n_rr)
		return LNX_MIN(rest, max);
	view_reads(peer, able, now, view);
	return lnx_stripe_len(view, peer->n_stripe, path->index, peer->pull.left,
			      rest, max);
}

uint64_t lnx_path_read_posted(struct lnx_path *path, size_t len, uint64_t now)
{
	struct lnx_rate *r;

	path->nread++;
	path->read_bytes += len;
	if (!path->speed)
		return 0;
	r = &path->speed->read;
	lnx_rate_posted(r, path->read_bytes, now);
	return lnx_rate_expect(r, len);
}

void lnx_path_read_refused(struct lnx_path *path, size_t len, uint64_t now)
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

void lnx_path_read_done(struct lnx_path *path, size_t len, bool ok,
			uint64_t now)
{
	read_ended(path, len, ok ? len : 0, now);
	path->read_done_ns = now;
	if (path->speed)
		path->speed->read_failed = !ok;
	if (!ok)
		path->read_retry_ns = now + LNX_READ_REDO_NS;
}

LNX_COLD void lnx_path_read_cut(struct lnx_path *path, size_t len, uint64_t now)
{
	read_ended(path, len, 0, now);
}
