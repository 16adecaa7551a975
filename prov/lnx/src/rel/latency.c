/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How soon a peer answers over each path.  See latency.h.  Called by rel/detect.c;
 * policy/stripe decides.
 */
#include "rel/latency.h"

#include "base/interval.h"
#include "rel/admin.h"
#include "rel/backoff.h"
#include "rel/frame.h"
#include "rel/order.h"
#include "rel/peer_path.h"
#include "rel/recovery.h"
#include "rel/report.h"
#include "wire/hdr.h"

/* A path with less than half of the best one's health carries no announcements, if both
 * are of the first class. */
#define SICK_SHARE(best)	((best) / 2)
/* Beside the number in lnx_hdr.data. */
#define MARK		LNX_WIRE_PROBE_LATENCY

uint64_t lnx_latency_of(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_speed *s = path->speed;
	uint64_t waited = s->unanswered_ns ? lnx_ns_since(now, s->unanswered_ns) : 0;

	/* Before the first answer nothing is known to compare with. */
	return s->answer_ns ? LNX_MAX(s->answer_ns, waited) : 0;
}

/* True: since the PROBE left nothing was looked at for so long that its answer may have been
 * there all the time. */
static bool was_away(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_ep_due *due = &path->rail->ep->due;

	return due->away_ns > path->speed->unanswered_ns ||
	       lnx_ns_since(now, due->looked_ns) > LNX_LATENCY_AWAY_NS;
}

/* From the last PROBE to the next. */
static uint64_t pause_ns(const struct lnx_path_speed *s, uint64_t now)
{
	uint64_t waited = s->unanswered_ns ? lnx_ns_since(now, s->unanswered_ns) : 0;

	return LNX_MAX(LNX_LATENCY_ASK_NS, LNX_MIN(waited / 2, LNX_LATENCY_MUTE_NS));
}

/* The core has refused the last one: no other before. */
static uint64_t refused_until(const struct lnx_path_speed *s)
{
	return s->refused_ns ? s->refused_ns + LNX_BACKOFF_MIN_NS +
			       lnx_backoff_pause_ns(lnx_ns_since(s->refused_ns,
							       s->refusing_ns)) : 0;
}

/* When the next PROBE over it is due; LNX_NEVER: none is. */
static uint64_t next_ask(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_speed *s = path->speed;
	uint64_t next = s->probe_ns ? s->probe_ns + pause_ns(s, now) : 0;

	next = LNX_MAX(next, refused_until(s));
	if (lnx_path_usable(path))
		return next;
	/* Nothing else may use it before it has connected again. */
	return path->state == LNX_PATH_CONNECTING ? LNX_MAX(next, path->retry_ns) : LNX_NEVER;
}

static void send_probe(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_speed *s = path->speed;
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .tag = 1u + path->index };

	if (now < refused_until(s))
		return;
	h.data = MARK | (s->probe + 1);
	if (lnx_control_send_on(peer->ep, peer, path, &h)) {
		if (!s->refused_ns)
			s->refusing_ns = now;
		s->refused_ns = now;
		if (s->answered_ns)
			lnx_backoff_hangs(path, lnx_ns_since(now, s->refusing_ns), now);
		if (path->state == LNX_PATH_CONNECTING)
			lnx_backoff_refused(path, now);
		return;
	}
	s->refused_ns = 0;
	lnx_latency_mark(path, s->probe + 1);
	s->probe_ns = now;
	lnx_loss_asked(&peer->loss, &peer->chan, path->index, s->probe, now);
	if (!s->unanswered_ns) {
		s->unanswered_ns = now;
		s->unanswered = s->probe;
	}
}

/* Ask when its turn comes. */
static void ask(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_speed *s = path->speed;

	/* While it is DOWN its PROBEs are the failure detector's. */
	if (s->unanswered_ns && (was_away(path, now) || !lnx_path_usable(path)))
		s->unanswered_ns = 0;
	if (now >= next_ask(path, now))
		send_probe(peer, path, now);
}

/* While it is not answered, its path gets slower and slower. */
static uint64_t next_look(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_speed *s = path->speed;
	uint64_t next = next_ask(path, now);

	if (lnx_path_usable(path) && s->unanswered_ns)
		next = lnx_sooner(next, now + lnx_ns_since(now, s->unanswered_ns) / 2);
	if (!lnx_hedge_pause_over(&s->away, now))
		next = lnx_sooner(next, s->away.until_ns);
	return LNX_MAX(next, now);
}

void lnx_latency_ask(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	/* One that is under way will say no less. */
	for (i = 0; i < peer->npath; i++)
		if (lnx_path_usable(peer->path[i]) &&
		    !peer->path[i]->speed->unanswered_ns)
			send_probe(peer, peer->path[i], now);
}

/* ---- frames that are late ---- */

/* When the peer last answered over another path; 0: not yet. */
static uint64_t heard_elsewhere(const struct lnx_peer *peer, const struct lnx_path *path)
{
	uint64_t ns = 0;
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i] != path)
			ns = LNX_MAX(ns, peer->path[i]->speed->answered_ns);
	return ns;
}

/* The path on which the oldest frame is late; NULL: it is not, as far as is known.  *next:
 * when to look again. */
static struct lnx_path *late_path(struct lnx_peer *peer, uint64_t now, uint64_t *next)
{
	int which = lnx_loss_path(&peer->chan);
	enum lnx_loss_todo todo;
	struct lnx_path_speed *s;
	uint64_t limit_ns;

	*next = LNX_NEVER;
	if (which < 0 || which >= peer->npath)
		return NULL;
	s = peer->path[which]->speed;
	limit_ns = 2 * s->answer_ns + LNX_LATE_MIN_NS;
	if (s->oldest.since_ns <= peer->ep->due.away_ns)
		s->oldest.since_ns = 0;
	todo = lnx_loss_late(&s->oldest, &peer->chan, limit_ns,
			     heard_elsewhere(peer, peer->path[which]), now);
	/* Or when it is answered: next_look. */
	*next = lnx_loss_late_next(&s->oldest, limit_ns, now);
	if (todo == LNX_LOSS_ASK)
		lnx_latency_ask(peer, now);
	return todo == LNX_LOSS_LATE ? peer->path[which] : NULL;
}

static LNX_COLD void leave(struct lnx_path *path, uint64_t now)
{
	path->speed->doubt_ns = now;
	lnx_hedge_pause_begin(&path->speed->away, LNX_AWAY_MIN_NS, LNX_AWAY_MAX_NS, now);
}

/* What left over path goes again, over others. */
static LNX_COLD void send_again(struct lnx_peer *peer, struct lnx_path *path)
{
	lnx_loss_late_again(&path->speed->oldest, &peer->chan, path->index);
	peer->ep->stats.late_frames++;
	lnx_peer_pump(peer);
}

/* ---- the path of frames ---- */

/* The path on which they stay from now on. */
static struct lnx_path *choose(const struct lnx_peer *peer, uint64_t now)
{
	unsigned share[LNX_PATHS_MAX], i, cur = 0, most = 0, least = 0, first;
	bool usable[LNX_PATHS_MAX], away[LNX_PATHS_MAX];
	const struct lnx_ranking *rank = lnx_order_of(peer);
	uint64_t ns[LNX_PATHS_MAX];

	/* What was set by hand counts more. */
	if (lnx_unlikely(peer->ep->admin.any))
		least = lnx_admin_worth(peer->cur, now);
	lnx_peer_path_shares(peer, now, share);
	first = lnx_rank_class(rank, peer->npath, 0);
	for (i = 0; i < peer->npath; i++)
		if (first >> i & 1)
			most = LNX_MAX(most, share[i]);
	for (i = 0; i < peer->npath; i++) {
		unsigned k = lnx_rank_at(rank, i);
		const struct lnx_path *path = peer->path[k];

		if (path == peer->cur)
			cur = i;
		usable[i] = (first >> k & 1) && lnx_path_usable(path) &&
			    share[k] >= SICK_SHARE(most) &&
			    (!least || lnx_admin_worth(path, now) >= least);
		ns[i] = lnx_latency_of(path, now);
		away[i] = !lnx_hedge_pause_over(&path->speed->away, now);
	}
	i = (unsigned)lnx_stripe_stay(ns, usable, away, peer->npath, (int)cur);
	/* It is left, and not only for one that is to be preferred. */
	if (lnx_unlikely(i > cur) && usable[cur] && !away[cur])
		leave(peer->cur, now);
	return peer->path[lnx_rank_at(rank, i)];
}

uint64_t lnx_latency_run(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_path *late;
	uint64_t next;
	unsigned i;

	if (!lnx_peer_acked(peer))
		return LNX_NEVER;
	for (i = 0; i < peer->npath; i++)
		ask(peer, peer->path[i], now);
	late = late_path(peer, now, &next);
	if (lnx_unlikely(late != NULL) && lnx_hedge_pause_over(&late->speed->away, now))
		leave(late, now);
	peer->cur = choose(peer, now);
	if (lnx_unlikely(late != NULL) && late != peer->cur)
		send_again(peer, late);
	for (i = 0; i < peer->npath; i++)
		next = lnx_sooner(next, next_look(peer->path[i], now));
	return next;
}

LNX_COLD void lnx_latency_mark(struct lnx_path *path, uint32_t number)
{
	struct lnx_path_speed *s = path->speed;

	s->probe = number;
	if (s->mark_sent)
		return;
	s->mark = number;
	s->mark_sent = path->sent;
	s->mark_report = path->last_report;
}

/*
 * An answer also reports.  And the PROBE could not overtake what was sent before, so of that
 * the peer has what it reports, and no more will come.  The rest is lost with a connection:
 * it is not under way any more, and must not count as if it were.
 */
LNX_COLD void lnx_latency_settle(struct lnx_peer *peer, struct lnx_path *path,
				 uint32_t number, uint64_t total)
{
	struct lnx_path_speed *s = path->speed;
	bool marked;

	if (!s)
		return;
	marked = s->mark_sent && number - s->mark <= s->probe - s->mark;
	/* What was lost, and acknowledged after it came over another path, is in last_report,
	 * but never in a report. */
	if (marked && path->last_report == s->mark_report &&
	    (int64_t)(total - path->last_report) < 0)
		path->last_report = total;
	lnx_report_one(peer, path->index, total);
	if (!marked)
		return;
	path->delivered = LNX_MAX(path->delivered, s->mark_sent);
	s->mark_sent = 0;
}

bool lnx_latency_pong(struct lnx_path *path, const struct lnx_rail *rail,
		      uint32_t number, uint64_t now)
{
	struct lnx_path_speed *s = path->speed;
	uint32_t later;
	uint64_t ns;

	/* Latency is asked for only where there is a choice. */
	if (!s)
		return false;
	later = number - s->unanswered;
	if (path->rail != rail || !s->unanswered_ns || was_away(path, now) ||
	    later > s->probe - s->unanswered)
		return false;
	/* They leave LNX_LATENCY_ASK_NS apart, or more. */
	ns = lnx_ns_since(now, s->unanswered_ns);
	ns -= LNX_MIN(ns, later * LNX_LATENCY_ASK_NS);
	s->answer_ns = LNX_MAX(ns, 1ull);
	s->answered_ns = now;
	lnx_rtt_sample(&path->detect.rtt, s->answer_ns);
	s->unanswered_ns = later == s->probe - s->unanswered ? 0 :
			   s->unanswered_ns + (later + 1) * LNX_LATENCY_ASK_NS;
	s->unanswered += later + 1;
	return true;
}
