/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How soon a peer answers over each path.  See latency.h.  Called by rel/detect.c;
 * policy/stripe decides.
 */
#include "rel/latency.h"

#include "base/interval.h"
#include "rel/admin.h"
#include "rel/frame.h"
#include "rel/order.h"
#include "rel/recovery.h"
#include "rel/sched.h"
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

static void ask(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_speed *s = path->speed;
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .tag = 1u + path->index };

	/* While it is DOWN its PROBEs are the failure detector's. */
	if (s->unanswered_ns && (was_away(path, now) || !lnx_path_usable(path)))
		s->unanswered_ns = 0;
	if (!lnx_path_usable(path) || lnx_ns_since(now, s->probe_ns) < pause_ns(s, now))
		return;
	h.data = MARK | (s->probe + 1);
	if (lnx_control_send_on(peer->ep, peer, path, &h))
		return;
	s->probe++;
	s->probe_ns = now;
	lnx_loss_asked(&peer->loss, &peer->chan, path->index, s->probe, now);
	if (!s->unanswered_ns) {
		s->unanswered_ns = now;
		s->unanswered = s->probe;
	}
}

/* While it is not answered, its path gets slower and slower. */
static uint64_t next_look(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_speed *s = path->speed;
	uint64_t next = s->probe_ns + pause_ns(s, now);

	if (!lnx_path_usable(path))
		return LNX_NEVER;
	if (s->unanswered_ns)
		next = lnx_sooner(next, now + lnx_ns_since(now, s->unanswered_ns) / 2);
	return LNX_MAX(next, now);
}

uint64_t lnx_latency_run(struct lnx_peer *peer, uint64_t now)
{
	unsigned share[LNX_PATHS_MAX], i, cur = 0, most = 0, least = 0, first;
	uint64_t ns[LNX_PATHS_MAX], next = LNX_NEVER;
	bool usable[LNX_PATHS_MAX];

	if (!lnx_peer_acked(peer))
		return LNX_NEVER;
	/* What was set by hand counts more. */
	if (lnx_unlikely(peer->ep->admin.any))
		least = lnx_admin_worth(peer->cur, now);
	lnx_sched_shares(peer, share);
	first = lnx_order_class(peer, 0);
	for (i = 0; i < peer->npath; i++)
		if (first >> i & 1)
			most = LNX_MAX(most, share[i]);
	for (i = 0; i < peer->npath; i++) {
		unsigned k = lnx_order_at(peer, i);
		struct lnx_path *path = peer->path[k];

		ask(peer, path, now);
		if (path == peer->cur)
			cur = i;
		usable[i] = (first >> k & 1) && lnx_path_usable(path) &&
			    share[k] >= SICK_SHARE(most) &&
			    (!least || lnx_admin_worth(path, now) >= least);
		ns[i] = lnx_latency_of(path, now);
		next = lnx_sooner(next, next_look(path, now));
	}
	cur = (unsigned)lnx_stripe_stay(ns, usable, peer->npath, (int)cur);
	peer->cur = peer->path[lnx_order_at(peer, cur)];
	return next;
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
	lnx_rtt_sample(&path->detect.rtt, s->answer_ns);
	s->unanswered_ns = later == s->probe - s->unanswered ? 0 :
			   s->unanswered_ns + (later + 1) * LNX_LATENCY_ASK_NS;
	s->unanswered += later + 1;
	return true;
}
