/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path the next piece of a large transfer takes, and what is learned from each: see
 * rel_piece.h.  Called by msg/pull.c and msg/hedge.c; rel/sched.c decides.
 */
#include "rel/piece.h"

#include "base/interval.h"
#include "policy/health.h"
#include "rel/backoff.h"
#include "rel/detect.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/peer_path.h"
#include "rel/rel.h"
#include "rel/rel_piece.h"
#include "rel/sched.h"

#define UNKNOWN_BPS	1000000000u	/* of a path whose speed is not known */

/* ---- the path of the next one ---- */

void lnx_piece_facts(const struct lnx_peer *peer, unsigned able, uint64_t now,
		     struct lnx_sched *s)
{
	const struct lnx_conf *conf = peer->ep->conf;
	unsigned i;

	lnx_peer_path_facts(peer, now, s);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		struct lnx_sched_path *fact = &s->path[i];

		fact->rate = &path->speed->read;
		fact->retry_ns = path->read_retry_ns;
		fact->out_bytes = path->read_bytes;
		fact->able = able >> i & 1;
		fact->failed = path->speed->read_failed;
		fact->out = path->nread;
		fact->done_ns = path->read_done_ns;
		fact->tail = &path->speed->tail;
	}
	s->left = peer->pull.left;
	s->chunk = conf->chunk;
	s->threshold = conf->stripe_threshold;
}

/* A path takes a piece: what sick ones may take for that. */
static LNX_COLD void share_out(struct lnx_peer *peer, const struct lnx_sched *s, unsigned took,
			       size_t len)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path_speed *speed = peer->path[i]->speed;

		speed->credit = lnx_sched_credit(s, i, took, len);
		if (s->path[i].share < LNX_WEIGHT_MAX)
			lnx_rate_spare(&speed->read);
	}
}

struct lnx_path *lnx_rel_piece(struct lnx_peer *peer, unsigned able, size_t *len,
			       uint64_t now, bool *line)
{
	struct lnx_sched s;
	int path;

	lnx_order_fresh(peer, now);
	lnx_piece_facts(peer, able, now, &s);
	path = lnx_sched_piece(&s, line);
	if (path < 0)
		return NULL;
	if (len)
		*len = lnx_sched_piece_len(&s, (unsigned)path, *len);
	/* Pieces that are moved again change nothing. */
	if (lnx_unlikely(s.sick) && len)
		share_out(peer, &s, (unsigned)path, *len);
	return peer->path[path];
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
	pause_ns = LNX_MAX(pause_ns, lnx_backoff_pause_ns(
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
