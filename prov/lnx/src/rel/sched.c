/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path is next, for frames.  Called by rel/send.c and rel/pump.c; uses policy/stripe.
 * rel/piece.c does the same for pieces.
 */
#include "rel/sched.h"

#include "base/interval.h"
#include "core/fd_limit.h"
#include "core/half_open.h"
#include "rail/rail.h"
#include "rel/frame.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/recovery.h"
#include "wire/hdr.h"

#define US_PER_S	1e6
#define INFLIGHT_MIN	4096u

LNX_COLD void lnx_sched_hangs(const struct lnx_path *path, uint64_t so_long_ns, uint64_t now)
{
	struct lnx_ep_due *due = &path->rail->ep->due;

	/* All descriptors of the process are looked at. */
	if (so_long_ns < LNX_CONNECT_HANGS_NS || now < due->unanswered_ns ||
	    lnx_rail_is_leg(path->rail) || !path->rail->core_ep)
		return;
	due->unanswered_ns = now + LNX_CONNECT_HANGS_NS / 2;
	/* A peer that computes answers late: it is not asked again and again. */
	if (lnx_half_open_unanswered(path->rail, LNX_MAX(LNX_CONNECT_HANGS_NS,
							 so_long_ns / 4)))
		LNX_INFO(FI_LOG_EP_DATA,
			 "rail %s: a connection that was not answered for %u ms is ended\n",
			 path->rail->name, (unsigned)(so_long_ns / LNX_NS_PER_MS));
}

LNX_COLD void lnx_sched_blocked(struct lnx_path *path, uint64_t now)
{
	if (path->state == LNX_PATH_DOWN)
		return;			/* only an answer of its peer ends that */
	if (path->state != LNX_PATH_CONNECTING || !path->since_ns) {
		lnx_path_happens(path, LNX_PATH_REFUSED);
		path->since_ns = now;
		path->backoff_ns = LNX_BACKOFF_MIN_NS;
	} else {
		/* The backoff may have been reset because the peer's address changed. */
		uint64_t so_long_ns = lnx_ns_since(now, path->since_ns);
		uint64_t max = lnx_sched_pause_ns(so_long_ns);

		path->backoff_ns = LNX_MAX(LNX_BACKOFF_MIN_NS, path->backoff_ns +
					   path->backoff_ns / 2);
		path->backoff_ns = LNX_MIN(path->backoff_ns,
					   LNX_MAX(max, LNX_BACKOFF_MAX_NS));
		if (path->backoff_ns >= LNX_UNUSUAL_NS)
			lnx_fd_limit_look(path->rail->ep, path->rail->name);
		/* A peer that has never answered may not be there yet. */
		if (path->n_sent)
			lnx_sched_hangs(path, so_long_ns, now);
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

void lnx_sched_rate(const struct lnx_path *path, const struct lnx_rate *r, unsigned share,
		    struct lnx_stripe_path *view)
{
	view->rate = part(r->rate, share);
	view->nominal = part(path->link_bps / 8, share);
	view->delay_ns = lnx_rate_latency(r);
	view->room = lnx_rate_room(r);
	view->drain = r->drain;
}

bool lnx_sched_far(const struct lnx_path *path, uint64_t least, uint64_t now)
{
	return lnx_latency_of(path, now) > 2 * least + LNX_FAR_NS;
}

uint64_t lnx_sched_least_latency(const struct lnx_peer *peer, uint64_t now)
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
		bool over = lnx_hedge_pause_over(&peer->path[i]->speed->away, now);

		well |= (unsigned)(view[i].usable && over) << i;
		away |= (unsigned)!over << i;
	}
	for (i = 0; lnx_unlikely(away >> i); i++)
		if ((away >> i & 1) && (well & lnx_order_as_good(peer, peer->path[i])))
			view[i].usable = false;
}

/* A path without credits is left for another that is as good; but not that of our HELLO. */
static void keep_credits(const struct lnx_peer *peer, struct lnx_stripe_path *view)
{
	unsigned i, with = 0, without = 0;

	for (i = 0; lnx_peer_acked(peer) && i < peer->npath; i++) {
		bool left = lnx_path_credits_left(peer->path[i]);

		with |= (unsigned)(view[i].usable && left) << i;
		without |= (unsigned)!left << i;
	}
	for (i = 0; lnx_unlikely(without >> i); i++)
		if ((without >> i & 1) && (with & lnx_order_as_good(peer, peer->path[i])))
			view[i].usable = false;
}

/* Fill the view for policy/stripe. */
static void view_frames(const struct lnx_peer *peer, struct lnx_stripe_path *view,
			uint64_t now)
{
	uint64_t near = lnx_sched_least_latency(peer, now);
	unsigned share[LNX_PATHS_MAX], i;

	lnx_sched_shares(peer, share);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		view[i].usable = path->state == LNX_PATH_UP ||
				 path->state == LNX_PATH_IDLE ||
				 (path->state != LNX_PATH_DOWN && now >= path->retry_ns);
		lnx_sched_rate(path, &path->speed->send, share[i], &view[i]);
		view[i].out_bytes = lnx_sched_in_flight(peer, path);
		if (lnx_sched_far(path, near, now))
			view[i].delay_ns = LNX_MAX(view[i].delay_ns,
						   lnx_latency_of(path, now));
	}
	keep_away(peer, now, view);
	keep_credits(peer, view);
}

/* Our HELLO is not acknowledged, and its path takes nothing now: is that path waited for? */
static bool hello_waits(const struct lnx_peer *peer, const struct lnx_path *cur,
			const struct lnx_stripe_path *view, uint64_t now)
{
	return !lnx_peer_acked(peer) && peer->chan.posted && !view[cur->index].usable &&
	       cur->state != LNX_PATH_DOWN && cur->since_ns &&
	       lnx_ns_since(now, cur->since_ns) < LNX_ALIVE_NS;
}

/* Another process has said that path's rail is dead: it is not used first just because it
 * connects sooner than another one.  No PROBE can tell before the peer knows us. */
static bool hearsay_waits(const struct lnx_peer *peer, const struct lnx_path *path,
			  uint64_t now)
{
	unsigned i;

	if (!path->rail->health.hearsay || lnx_peer_acked(peer))
		return false;
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *other = peer->path[i];

		if (other->state == LNX_PATH_CONNECTING && other->since_ns &&
		    !other->rail->health.hearsay &&
		    lnx_ns_since(now, other->since_ns) < peer->ep->plan.rail_min_ns)
			return true;
	}
	return false;
}

void lnx_sched_only(const struct lnx_peer *peer, const struct lnx_stripe_path *view,
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
		lnx_sched_only(peer, view, mask, some);
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
	if (pick < 0 || lnx_unlikely(hearsay_waits(peer, peer->path[pick], now)))
		return NULL;
	return peer->path[pick];
}

struct lnx_path *lnx_sched_instead(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	int pick;

	if (peer->npath < 2 || peer->cur->state == LNX_PATH_UP)
		return NULL;
	view_frames(peer, view, now);
	view[peer->cur->index].usable = false;
	pick = shortest(peer, view, 0);
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

bool lnx_sched_none_for(const struct lnx_peer *peer, uint64_t now,
		       uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i]->since_ns ||
		    lnx_ns_since(now, peer->path[i]->since_ns) <= limit_ns)
			return false;
	/* It may be about to get its first one. */
	return peer->npath != 0;
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
	/* Of a peer that has one path: it ignores what it hears too often. */
	static const uint32_t nothing[LNX_PATHS_MAX];
	const uint32_t *reported = peer->choice ? peer->choice->rx_reported : nothing;
	unsigned i, p = peer->rx.reported_path;

	for (i = 0; i < LNX_PATHS_MAX && !ack->len; i++) {
		p = (p + 1) % LNX_PATHS_MAX;
		if ((uint32_t)peer->rx.bytes[p] == reported[p])
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
	if (peer->choice)
		peer->choice->rx_reported[which] = (uint32_t)total;
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
