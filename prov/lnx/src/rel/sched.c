/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which path is next, for frames and for pieces.  See sched.h.  Called by rel/peer_path.c and
 * rel/piece.c. */
#include "rel/sched.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/interval.h"
#include "policy/health.h"

/* The message with the piece that tries a slow path again waits for it, for at most this
 * share of the time. */
#define RELEARN_SHARE	20u

/* ---- what is known of a path's speed ---- */

void lnx_sched_shares(unsigned *share, unsigned n)
{
	unsigned i, best = 0;

	for (i = 0; i < n; i++)
		best = LNX_MAX(best, share[i]);
	if (lnx_likely(best == LNX_WEIGHT_MAX))
		return;
	for (i = 0; i < n; i++)
		share[i] = best ? share[i] * LNX_WEIGHT_MAX / best : LNX_WEIGHT_MAX;
}

static uint64_t part(uint64_t rate, unsigned share)
{
	if (lnx_likely(share == LNX_WEIGHT_MAX) || !rate)
		return rate;
	return LNX_MAX(rate * share / LNX_WEIGHT_MAX, 1u);
}

static void view_rate(const struct lnx_sched_path *path, struct lnx_stripe_path *view)
{
	view->rate = part(path->rate->rate, path->share);
	view->nominal = part(path->link_bps / 8, path->share);
	view->delay_ns = lnx_rate_latency(path->rate);
	view->room = lnx_rate_room(path->rate);
	view->deep = part(lnx_rate_deep(path->rate), path->share);
	view->drain = path->rate->drain;
	view->out_bytes = path->out_bytes;
}

/* The least time that an answer takes over any path; 0: not known. */
static uint64_t least_latency(const struct lnx_sched *s)
{
	uint64_t least = 0;
	unsigned i;

	for (i = 0; i < s->n; i++) {
		uint64_t ns = s->path[i].latency_ns;

		if (ns && (!least || ns < least))
			least = ns;
	}
	return least;
}

/* Does an answer take far longer over path than that? */
static bool is_far(const struct lnx_sched_path *path, uint64_t least)
{
	return path->latency_ns > 2 * least + LNX_FAR_NS;
}

/* Leave the paths whose bit is set in mask. */
static void only(const struct lnx_sched *s, const struct lnx_stripe_path *view, unsigned mask,
		 struct lnx_stripe_path out[LNX_WIRE_PATHS])
{
	unsigned i;

	for (i = 0; i < s->n; i++) {
		out[i] = view[i];
		out[i].usable = view[i].usable && (mask >> i & 1);
	}
}

/* ---- frames ---- */

/* Of usable, without those paths in bad for which one in good is as good. */
static unsigned leave(const struct lnx_sched *s, unsigned usable, unsigned bad, unsigned good)
{
	unsigned i;

	for (i = 0; lnx_unlikely(bad >> i); i++)
		if ((bad >> i & 1) && (good & lnx_rank_as_good(s->rank, s->n, i)))
			usable &= ~(1u << i);
	return usable;
}

/*
 * The paths that may take a frame, as bits.  Where frames were late they stay away while
 * another path that is as good works: what does not fit on that one waits for it.  A path
 * without credits is left for another that is as good, and so is one whose first frame is not
 * acknowledged: what is behind it would wait for a connection.  But not that of our HELLO.
 */
static unsigned usable_paths(const struct lnx_sched *s)
{
	unsigned i, usable = 0, away = 0, without = 0, opens = 0;

	for (i = 0; i < s->n; i++) {
		const struct lnx_sched_path *path = &s->path[i];
		bool may = path->state == LNX_PATH_UP || path->state == LNX_PATH_IDLE ||
			   (path->state != LNX_PATH_DOWN && s->now >= path->retry_ns);

		usable |= (unsigned)may << i;
		away |= (unsigned)path->away << i;
		without |= (unsigned)!path->credits << i;
		opens |= (unsigned)path->opens << i;
	}
	usable = leave(s, usable, away, usable & ~away);
	if (!s->acked)
		return usable;
	usable = leave(s, usable, opens, usable & ~opens);
	return leave(s, usable, without, usable & ~without);
}

static void view_frames(const struct lnx_sched *s, unsigned usable,
			struct lnx_stripe_path *view)
{
	uint64_t least = least_latency(s);
	unsigned i;

	for (i = 0; i < s->n; i++) {
		const struct lnx_sched_path *path = &s->path[i];

		view_rate(path, &view[i]);
		view[i].usable = usable >> i & 1;
		if (is_far(path, least))
			view[i].delay_ns = LNX_MAX(view[i].delay_ns, path->latency_ns);
	}
}

/*
 * The path in use.  Until our HELLO is acknowledged, the one that took it: a peer that
 * does not know us drops frames that come before it.
 */
static unsigned first_path(const struct lnx_sched *s)
{
	return !s->acked && s->hello >= 0 ? (unsigned)s->hello : s->cur;
}

/* By LNet's tables, of the paths in usable; -1: they know none. */
static LNX_COLD int by_lnet(const struct lnx_sched *s, unsigned usable)
{
	unsigned i;
	int next;

	for (i = 0; i < s->n; i++)
		if (!(usable >> i & 1))
			s->lnet[i].state = LNX_RANK_DOWN;
	next = lnx_rank_next(s->lnet, s->n, s->how, NULL);
	return next >= 0 && (usable >> next & 1) ? next : -1;
}

/* The best share of these paths (bits). */
static LNX_COLD unsigned best_share(const struct lnx_sched *s, unsigned mask)
{
	unsigned i, best = 0;

	for (i = 0; i < s->n; i++)
		if (mask >> i & 1)
			best = LNX_MAX(best, s->path[i].share);
	return best;
}

/* Does a path take this turn, if it takes so many as its share says? */
static bool takes_turn(const struct lnx_sched_path *path, unsigned best)
{
	uint64_t before = path->turns;

	return path->share >= best ||
	       (before + 1) * path->share / best != before * path->share / best;
}

/* FI_LNX_MULTI_RAIL_SELECTION=PER_MSG, LNET: the path of the next message. */
static struct lnx_sched_choice round_robin(const struct lnx_sched *s, unsigned usable)
{
	unsigned i, k = s->rr_index, best = 0;
	uint8_t turned = 0;

	if (s->lnet) {
		int next = by_lnet(s, usable);

		if (next >= 0)
			return (struct lnx_sched_choice){ next, LNX_SCHED_LNET, 0 };
	}
	if (lnx_unlikely(s->sick))
		best = best_share(s, usable & s->rr);
	for (i = 0; i < s->n; i++) {
		k = k + 1 < s->n ? k + 1 : 0;
		if (!(usable & s->rr & 1u << k))
			continue;
		if (lnx_unlikely(s->sick) && s->path[k].share < best) {
			turned |= (uint8_t)(1u << k);
			if (!takes_turn(&s->path[k], best))
				continue;
		}
		return (struct lnx_sched_choice){ (int)k, LNX_SCHED_TURN, turned };
	}
	return (struct lnx_sched_choice){ -1, LNX_SCHED_NONE, 0 };
}

/* Our HELLO is not acknowledged, and its path takes nothing now: is that path waited for? */
static bool hello_waits(const struct lnx_sched *s, unsigned first, unsigned usable)
{
	const struct lnx_sched_path *path = &s->path[first];

	return !s->acked && s->posted && !(usable >> first & 1) &&
	       path->state != LNX_PATH_DOWN && path->since_ns &&
	       lnx_ns_since(s->now, path->since_ns) < LNX_ALIVE_NS;
}

/* Another process has said that path's rail is dead: it is not used first just because it
 * connects sooner than another one.  No PROBE can tell before the peer knows us. */
static bool hearsay_waits(const struct lnx_sched *s, unsigned path)
{
	unsigned i;

	if (!s->path[path].hearsay || s->acked)
		return false;
	for (i = 0; i < s->n; i++) {
		const struct lnx_sched_path *other = &s->path[i];

		if (other->state == LNX_PATH_CONNECTING && other->since_ns &&
		    !other->hearsay && lnx_ns_since(s->now, other->since_ns) < s->hearsay_ns)
			return true;
	}
	return false;
}

/* Of those that share the traffic; or else of those of the first class that has a usable
 * one. */
static int shortest(const struct lnx_sched *s, unsigned usable, size_t len)
{
	struct lnx_stripe_path view[LNX_WIRE_PATHS], some[LNX_WIRE_PATHS];
	unsigned mask = s->stripe, class;
	int pick = -1;

	view_frames(s, usable, view);
	for (class = 0; mask && pick < 0; class++) {
		only(s, view, mask, some);
		pick = lnx_stripe_shortest(some, s->n, len);
		mask = lnx_rank_class(s->rank, s->n, class);
	}
	return pick;
}

struct lnx_sched_choice lnx_sched_frame(const struct lnx_sched *s, size_t len)
{
	unsigned first = first_path(s), usable = usable_paths(s);
	const struct lnx_sched_path *path = &s->path[first];
	int pick;

	if (lnx_unlikely(s->rr && s->acked)) {
		struct lnx_sched_choice next = round_robin(s, usable);

		if (next.path >= 0)
			return next;
	} else if ((usable >> first & 1) &&
		   (!s->acked || path->out_bytes <= path->inflight_limit)) {
		return (struct lnx_sched_choice){ (int)first, LNX_SCHED_USUAL, 0 };
	}
	if (hello_waits(s, first, usable))
		return (struct lnx_sched_choice){ -1, LNX_SCHED_HELLO, 0 };
	pick = shortest(s, usable, len);
	if (pick < 0)
		return (struct lnx_sched_choice){ -1, LNX_SCHED_NONE, 0 };
	if (lnx_unlikely(hearsay_waits(s, (unsigned)pick)))
		return (struct lnx_sched_choice){ -1, LNX_SCHED_HEARSAY, 0 };
	return (struct lnx_sched_choice){ pick, LNX_SCHED_SHORTEST, 0 };
}

int lnx_sched_instead(const struct lnx_sched *s)
{
	return shortest(s, usable_paths(s) & ~(1u << s->cur), 0);
}

unsigned lnx_sched_live(const struct lnx_sched *s)
{
	unsigned best = s->cur, i;

	/* A path that was not tried yet comes before one that is to be tried again. */
	for (i = 0; i < s->n; i++) {
		unsigned k = lnx_rank_at(s->rank, i);
		const struct lnx_sched_path *path = &s->path[best], *other = &s->path[k];

		if (other->state == LNX_PATH_UP)
			return k;
		if (other->state == LNX_PATH_DOWN)
			continue;
		if (path->state == LNX_PATH_DOWN ||
		    (path->state != LNX_PATH_IDLE &&
		     (other->state == LNX_PATH_IDLE || other->retry_ns < path->retry_ns)))
			best = k;
	}
	return best;
}

/* ---- pieces ---- */

/*
 * Its pieces, or the answer to a PROBE, should have come long ago: it may take as long
 * again until they do.
 */
static uint64_t stuck(const struct lnx_sched_path *path, uint64_t least, uint64_t now)
{
	const struct lnx_rate *r = path->rate;
	uint64_t ns = 0;

	if (path->out)
		ns = lnx_ns_since(now, LNX_MAX(path->done_ns, r->round_ns));
	if (ns < 2 * r->delay_ns + LNX_FAR_NS)
		ns = 0;
	return is_far(path, least) ? LNX_MAX(ns, path->latency_ns) : ns;
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
static bool may_pause(const struct lnx_sched *s, unsigned path, unsigned able)
{
	uint64_t first_ns = UINT64_MAX;
	unsigned i;

	able &= lnx_rank_as_good(s->rank, s->n, path);
	for (i = 0; i < s->n; i++) {
		const struct lnx_tail *t = s->path[i].tail;

		if (!(able >> i & 1) || lnx_hedge_tail_stuck(t))
			continue;
		if (lnx_hedge_pause_over(&t->pause, s->now))
			return true;
		first_ns = LNX_MIN(first_ns, t->late_ns);
	}
	return s->path[path].tail->late_ns > first_ns;
}

/* Pieces were late on some paths: these pause, and then have few pieces under way. */
static void keep_off_late(const struct lnx_sched *s, struct lnx_stripe_path *view)
{
	unsigned i, able = 0, pauses = 0;

	for (i = 0; i < s->n; i++) {
		const struct lnx_tail *t = s->path[i].tail;

		able |= (unsigned)view[i].usable << i;
		if (lnx_unlikely(!lnx_hedge_pause_over(&t->pause, s->now)))
			pauses |= 1u << i;
		if (lnx_unlikely(!lnx_hedge_tail_room(t, view[i].out_bytes)))
			view[i].usable = false;
	}
	for (i = 0; lnx_unlikely(pauses >> i); i++)
		if ((pauses >> i & 1) && may_pause(s, i, able))
			view[i].usable = false;
}

/* Returns which of the paths that are able have pieces under way (bits). */
static unsigned view_pieces(const struct lnx_sched *s, struct lnx_stripe_path *view)
{
	uint64_t best = 0, least = least_latency(s);
	unsigned i, busy = 0;

	for (i = 0; i < s->n; i++) {
		const struct lnx_sched_path *path = &s->path[i];
		bool able = path->able && path->state != LNX_PATH_DOWN;

		view_rate(path, &view[i]);
		view[i].delay_ns = LNX_MAX(view[i].delay_ns, stuck(path, least, s->now));
		if (lnx_unlikely(path->failed))
			view[i].rate = view[i].room = 0;
		view[i].out = path->out;
		view[i].usable = able && s->now >= path->retry_ns;
		if (path->out && able)
			busy |= 1u << i;
		best = LNX_MAX(best, view[i].rate);
	}
	keep_off_late(s, view);
	/* Slow ones may have become faster; not if even a PROBE takes much longer. */
	for (i = 0; i < s->n; i++)
		if (!view[i].out &&
		    s->path[i].share > LNX_WEIGHT_MAX / 2 &&
		    (view[i].rate < best / 2 || view[i].delay_ns > LNX_FAR_NS) &&
		    lnx_ns_since(s->now, s->path[i].done_ns) >
			    relearn_ns(&view[i], s->path[i].tail) &&
		    !is_far(&s->path[i], least))
			view[i].rate = view[i].room = view[i].delay_ns = 0;
	return busy;
}

/* Sick paths without credit take no piece while a better one takes some. */
static LNX_COLD void keep_to_shares(const struct lnx_sched *s, struct lnx_stripe_path *some)
{
	unsigned i, mask = 0, best;

	for (i = 0; i < s->n; i++)
		mask |= (unsigned)some[i].usable << i;
	best = best_share(s, mask);
	for (i = 0; i < s->n; i++)
		if (s->path[i].share < best && s->path[i].credit <= 0)
			some[i].usable = false;
}

LNX_COLD int64_t lnx_sched_credit(const struct lnx_sched *s, unsigned path, unsigned took,
				  size_t len)
{
	const struct lnx_sched_path *p = &s->path[path], *t = &s->path[took];
	double rate = (double)part(p->rate->rate, p->share), more = 0;
	/* Two pieces. */
	double most = LNX_MAX(2 * rate * LNX_STRIPE_PIECE_NS / LNX_NS_PER_S,
			      4.0 * LNX_STRIPE_MIN);

	if (path == took) {
		more = -(double)len;
	} else if (p->share < t->share) {
		more = (double)len * p->share / t->share;
		/* What is not known may be equally fast. */
		if (p->rate->rate && t->rate->rate)
			more *= (double)p->rate->rate / (double)t->rate->rate;
	}
	return (int64_t)LNX_MAX(LNX_MIN((double)p->credit + more, most), -most);
}

int lnx_sched_piece(const struct lnx_sched *s, bool *line)
{
	struct lnx_stripe_path view[LNX_WIRE_PATHS], some[LNX_WIRE_PATHS];
	unsigned busy = view_pieces(s, view), mask, class;
	int pick = -1;

	/* With LNET a message uses one path, and each message its own. */
	mask = s->stripe | s->rr;
	/* The second-best paths, when the best do not work. */
	for (class = 0; mask; class++) {
		only(s, view, mask, some);
		if (lnx_unlikely(s->sick))
			keep_to_shares(s, some);
		pick = lnx_stripe_pick(some, s->n, s->left);
		if (pick >= 0 || (busy & mask))
			break;
		mask = lnx_rank_class(s->rank, s->n, class);
	}
	*line = pick < 0 && busy;
	return pick;
}

size_t lnx_sched_piece_len(const struct lnx_sched *s, unsigned path, size_t rest)
{
	struct lnx_stripe_path view[LNX_WIRE_PATHS], some[LNX_WIRE_PATHS];
	size_t max;

	if (rest < s->threshold && rest <= s->chunk && rest == s->left)
		return rest;
	max = LNX_MIN(s->chunk, lnx_hedge_tail_most(s->path[path].tail,
						    s->path[path].out_bytes));
	/* LNET */
	if (s->rr && s->stripe != s->rr)
		return LNX_MIN(rest, max);
	view_pieces(s, view);
	only(s, view, s->stripe | 1u << path, some);
	return lnx_stripe_len(some, s->n, path, s->left, rest, max);
}
