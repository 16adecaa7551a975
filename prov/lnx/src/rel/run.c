/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the reliable channels of an endpoint have to do now.  Called by comp/progress.c.
 *
 * A peer that something is due from has a timer, peer->look, for all that may have to be
 * done for it: questions about frames that are not acknowledged, paths that deliver
 * nothing, the peer's life.  Each look says when the next one must be.  So a peer costs
 * nothing between two looks, and one that nothing is due from costs nothing at all.
 */
#include "base/interval.h"
#include "core/routes.h"
#include "obj/gateway.h"
#include "rel/admin.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/keepalive.h"
#include "rel/order.h"
#include "rel/recovery.h"
#include "rel/session.h"

/* Of 10 000 peers that are due at once, the last ones wait for 160 passes. */
#define LOOKS_PER_PASS	64u

/* ---- looks at a peer ---- */

uint64_t lnx_run_look_gap(const struct lnx_peer *peer)
{
	return lnx_peer_detects(peer) ? LNX_LOOK_SEVERAL_NS : LNX_LOOK_ONE_NS;
}

/* The last frame that was timed is not acknowledged yet. */
static bool is_timing(const struct lnx_chan *c, const struct lnx_path_counts *counts)
{
	return counts->timed_ns && counts->timed_seq - c->una < c->posted - c->una;
}

/* Is the next frame to be timed?  Where there are several paths, PROBEs tell enough. */
static bool times_next(const struct lnx_peer *peer)
{
	return peer->npath == 1 && peer->path[0]->counts &&
	       !is_timing(&peer->chan, peer->path[0]->counts);
}

LNX_COLD void lnx_frame_watch_on(struct lnx_peer *peer)
{
	lnx_peer_watch(peer);
	peer->watched = !times_next(peer);
}

LNX_COLD void lnx_frame_watch(struct lnx_peer *peer, struct lnx_path *path, struct lnx_txe *txe)
{
	lnx_peer_watch(peer);
	if (!path->counts || is_timing(&peer->chan, path->counts))
		return;
	path->counts->timed_ns = lnx_clock_ns();
	path->counts->timed_seq = txe->f.seq;
	txe->f.timed = true;
}

static void look(struct lnx_timer *t, uint64_t now)
{
	struct lnx_peer *peer = lnx_container_of(t, struct lnx_peer, look);
	struct lnx_timers *set = &peer->ep->due.timers;
	uint64_t next = lnx_detect_look(peer, now);

	if (peer->awaited)
		next = lnx_sooner(next, lnx_control_look(peer, now));
	/* What it changed may have asked for another one. */
	next = lnx_sooner(next, lnx_timer_at(set, t));
	peer->watched = peer->awaited && next <= now + lnx_run_look_gap(peer) && !times_next(peer);
	lnx_timer_cancel(set, t);
	if (next != LNX_NEVER)
		lnx_peer_look_by(peer, LNX_MAX(next, now + LNX_LOOK_MIN_NS));
}

/* Frames may be posted again. */
static void retry(struct lnx_timer *t, uint64_t now)
{
	(void)now;
	lnx_peer_pump(lnx_container_of(t, struct lnx_peer, retry));
}

/* ---- deadlines after a pause ---- */

static LNX_COLD void later(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		lnx_ep_later(peer->ep, &peer->path[i]->since_ns, now);
	lnx_ep_later(peer->ep, &peer->failing_ns, now);
	lnx_ep_later(peer->ep, &peer->liveness.since_ns, now);
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

		if (t->due == ep->due.look) {
			later(lnx_container_of(t, struct lnx_peer, look), now);
		} else if (t->due == ep->due.retry) {
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

/* Deadlines are checked now: move them if they were not for a while. */
static void checked(struct lnx_ep *ep, uint64_t now)
{
	uint64_t gap_ns = lnx_ns_since(now, ep->due.looked_ns);

	if (lnx_unlikely(gap_ns > LNX_LATENCY_AWAY_NS))
		ep->due.away_ns = now;
	if (lnx_unlikely(gap_ns > LNX_LOOK_COUNTS_NS))
		all_later(ep, now);
	ep->due.looked_ns = now;
}

/* ---- a pass ---- */

/* Remove peers from the ack list whose acknowledgements were piggybacked. */
static void drop_piggybacked(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->ack_list, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, ack_link);

		if (!lnx_peer_ack_pending(peer))
			lnx_peer_ack_clear(peer);
	}
	if (lnx_list_empty(&ep->ack_list))
		ep->work &= ~LNX_WORK_ACK_PENDING;
}

uint64_t lnx_rel_run(struct lnx_ep *ep, uint64_t now, bool sleeps)
{
	/* Often that is all. */
	if ((ep->work & ~LNX_WORK_TIMER) == LNX_WORK_ACK_PENDING)
		drop_piggybacked(ep);
	checked(ep, now);
	ep->due.connects = LNX_CONNECTS_PER_PASS;
	lnx_timers_run(&ep->due.timers, now, LOOKS_PER_PASS);
	if (lnx_unlikely(ep->work & (LNX_WORK_CREDITS | LNX_WORK_KEEP))) {
		if (ep->work & LNX_WORK_CREDITS)
			lnx_ep_credits_run(ep);
		if (ep->work & LNX_WORK_KEEP)
			lnx_keep_run(ep);
	}
	if (ep->work & LNX_WORK_PUMP)
		lnx_pump_run(ep, now);
	if (ep->work & (LNX_WORK_ACK | LNX_WORK_ACK_PENDING))
		lnx_control_acks(ep, now, sleeps);
	if (!lnx_ep_has_due(ep))
		ep->work &= ~LNX_WORK_TIMER;
	return ep->work & (LNX_WORK_PUMP | LNX_WORK_ACK) ? now : ep->due.timers.next_ns;
}

/* ---- timers of the endpoint ---- */

/* FI_LNX_LEARN_ROUTES: a frame has shown a route, and must call no core itself. */
static LNX_COLD void learn(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_gateways *all = ep->policy.gateways;

	if (!all || !all->learn)
		return;
	all->learn = false;
	if (lnx_routes_learn(all))
		lnx_link_notice_routes(ep, now);
}

static LNX_COLD uint64_t run_gateways(struct lnx_ep *ep, uint64_t now)
{
	learn(ep, now);
	return lnx_gateways_run(ep, now);
}

LNX_DUE_RUNS(keepalive, LNX_DUE_KEEPALIVE, lnx_keepalive_run(ep, now))
LNX_DUE_RUNS(admin, LNX_DUE_ADMIN, lnx_admin_run(ep, now))
LNX_DUE_RUNS(refusals, LNX_DUE_REFUSALS, lnx_session_tell(ep, now))
LNX_DUE_RUNS(rails, LNX_DUE_RAILS, lnx_reopen_closed(ep, now))
LNX_DUE_RUNS(policy, LNX_DUE_POLICY, lnx_order_run(ep, now))
LNX_DUE_RUNS(gateways, LNX_DUE_GATEWAYS, run_gateways(ep, now))

void lnx_rel_open(struct lnx_ep *ep)
{
	ep->due.look = look;
	ep->due.retry = retry;
	lnx_timer_init(&ep->due.own[LNX_DUE_KEEPALIVE], keepalive);
	lnx_timer_init(&ep->due.own[LNX_DUE_ADMIN], admin);
	lnx_timer_init(&ep->due.own[LNX_DUE_REFUSALS], refusals);
	lnx_timer_init(&ep->due.own[LNX_DUE_RAILS], rails);
	lnx_timer_init(&ep->due.own[LNX_DUE_POLICY], policy);
	lnx_timer_init(&ep->due.own[LNX_DUE_GATEWAYS], gateways);
}
