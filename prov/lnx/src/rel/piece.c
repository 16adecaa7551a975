/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path the next piece of a large transfer takes, and what is learned from each: see
 * rel_piece.h.  Called by msg/pull.c and msg/hedge.c; uses policy/stripe.
 */
#include "base/interval.h"
#include "rel/detect.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/rel.h"
#include "rel/rel_piece.h"
#include "rel/sched.h"

/* The message with the piece that tries a slow path again waits for it, for at most this
 * share of the time. */
#define RELEARN_SHARE	20u
#define UNKNOWN_BPS	1000000000u	/* of a path whose speed is not known */

/* ---- the path of the next one ---- */

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
	return lnx_sched_far(path, least, now) ? LNX_MAX(ns, lnx_latency_of(path, now)) : ns;
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

		if (!(able >> i & 1) || lnx_hedge_tail_stuck(t))
			continue;
		if (lnx_hedge_pause_over(&t->pause, now))
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
		if (lnx_unlikely(!lnx_hedge_pause_over(&t->pause, now)))
			pauses |= 1u << i;
		if (lnx_unlikely(!lnx_hedge_tail_room(t, view[i].out_bytes)))
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
	uint64_t best = 0, least = lnx_sched_least_latency(peer, now);
	unsigned share[LNX_PATHS_MAX], i, busy = 0;

	lnx_sched_shares(peer, share);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		lnx_sched_rate(path, &path->speed->read, share[i], &view[i]);
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
		    !lnx_sched_far(peer->path[i], least, now))
			view[i].rate = view[i].room = view[i].delay_ns = 0;
	return busy;
}

static struct lnx_path *choose(struct lnx_peer *peer, unsigned able, uint64_t now,
			       bool *line)
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
		lnx_sched_only(peer, view, mask, some);
		pick = lnx_stripe_pick(some, peer->npath, peer->pull.left);
		if (pick >= 0 || (busy & mask))
			break;
		mask = lnx_order_class(peer, class);
	}
	*line = pick < 0 && busy;
	return pick < 0 ? NULL : peer->path[pick];
}

size_t lnx_piece_len(struct lnx_peer *peer, const struct lnx_path *path, size_t rest,
		     unsigned able, uint64_t now)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX], some[LNX_PATHS_MAX];
	const struct lnx_conf *conf = peer->ep->conf;
	unsigned mask = peer->stripe | 1u << path->index;
	size_t max;

	if (rest < conf->stripe_threshold && rest <= conf->chunk &&
	    rest == peer->pull.left)
		return rest;
	max = LNX_MIN(conf->chunk, lnx_hedge_tail_most(&path->speed->tail, path->read_bytes));
	/* LNET */
	if (peer->rr && peer->stripe != peer->rr)
		return LNX_MIN(rest, max);
	view_reads(peer, able, now, view);
	lnx_sched_only(peer, view, mask, some);
	return lnx_stripe_len(some, peer->npath, path->index, peer->pull.left,
			      rest, max);
}

struct lnx_path *lnx_rel_piece(struct lnx_peer *peer, unsigned able, size_t *len,
			       uint64_t now, bool *line)
{
	struct lnx_path *path = choose(peer, able, now, line);

	if (path && len)
		*len = lnx_piece_len(peer, path, *len, able, now);
	return path;
}

/* ---- what becomes of them ---- */

/* How long so many bytes take at the rate of our link. */
static uint64_t nominal_ns(const struct lnx_path *path, size_t len)
{
	uint64_t bps = path->link_bps ? path->link_bps : UNKNOWN_BPS;

	return (uint64_t)((double)len * 8 * LNX_NS_PER_S / (double)bps);
}

/* Pieces were late there, and the one that is being posted is the first one since. */
static bool tries_again(const struct lnx_path *path, uint64_t now)
{
	return lnx_unlikely(path->speed->tail.window) && path->nread == 1 &&
	       lnx_ns_since(now, path->read_done_ns) > LNX_LATE_PAUSE_MAX_NS;
}

uint64_t lnx_rel_piece_posted(struct lnx_path *path, size_t len, uint64_t now)
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

/* The only path is tried again in each pass at first: its core may only be busy. */
static void refused(struct lnx_path *path, size_t len, uint64_t now)
{
	uint64_t pause_ns = path->speed ? LNX_READ_BUSY_NS : 0;

	path->nread--;
	path->read_bytes -= len;
	if (!path->nread && path->speed)
		lnx_rate_forget(&path->speed->read);
	/* What was refused long before was something else. */
	if (!path->read_refused_ms || now > path->read_retry_ns + LNX_REFUSED_MAX_NS)
		path->read_refused_ms = lnx_stamp_ms(now);
	pause_ns = LNX_MAX(pause_ns, lnx_sched_pause_ns(
					lnx_ns_since_stamp(now, path->read_refused_ms)));
	path->read_retry_ns = now + pause_ns;
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
	lnx_hedge_tail_ended(&path->speed->tail, now);
	if (ns)
		lnx_rtt_sample(&path->detect.rtt, ns);
}

static inline void done(struct lnx_path *path, size_t len, bool ok, uint64_t now)
{
	read_ended(path, len, ok ? len : 0, now);
	path->read_done_ns = now;
	path->read_refused_ms = 0;
	if (path->speed)
		path->speed->read_failed = !ok;
	if (!ok)
		path->read_retry_ns = now + LNX_READ_REDO_NS;
}

void lnx_rel_piece_ended(struct lnx_path *path, size_t len, enum lnx_rel_piece how,
			 uint64_t now)
{
	switch (how) {
	case LNX_PIECE_CAME:
	case LNX_PIECE_FAILED:
		done(path, len, how == LNX_PIECE_CAME, now);
		break;
	case LNX_PIECE_REFUSED:
		refused(path, len, now);
		break;
	case LNX_PIECE_CUT:
		read_ended(path, len, 0, now);
		break;
	}
}

LNX_COLD void lnx_rel_piece_charge(struct lnx_peer *peer, struct lnx_path *path,
				   unsigned class, uint64_t now)
{
	if (now >= path->detect.charged_ns + LNX_READ_REDO_NS)
		lnx_detect_charge(peer, path, class, now);
}

/* ---- late ones ---- */

unsigned lnx_rel_piece_late(struct lnx_peer *peer, const struct lnx_path *path,
			    uint64_t due_ns, uint64_t now)
{
	unsigned good = lnx_order_as_good(peer, path), others = 0, i;
	bool overtaken = false;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *other = peer->path[i];

		if (other == path || !lnx_path_usable(other) ||
		    lnx_hedge_tail_stuck(&other->speed->tail) || !(good >> i & 1))
			continue;
		others |= 1u << i;
		overtaken |= other->read_done_ns > due_ns || other->speed->answered_ns > due_ns;
	}
	if (overtaken)
		return others;
	lnx_latency_ask(peer, now);
	return 0;
}

LNX_COLD void lnx_rel_path_cut(struct lnx_path *path, uint64_t now)
{
	struct lnx_path_speed *s = path->speed;

	lnx_detect_we_cut(path, now);
	if (s) {
		s->cut_try_ns = now;
		s->probe_ns = s->unanswered_ns = 0;
	}
}
