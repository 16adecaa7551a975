/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The failure detector: which paths deliver nothing, and what then happens to them.
 * See detect.h.
 */
#include "rel/detect.h"

#include "base/interval.h"
#include "core/health_board.h"
#include "policy/errclass.h"
#include "rail/rail.h"
#include "rail/routed_read.h"
#include "rel/admin.h"
#include "obj/counting.h"
#include "obj/gateway.h"
#include "os/ping.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/peer_path.h"
#include "rel/recovery.h"
#include "rel/report.h"
#include "rel/session.h"
#include "wire/hdr.h"

#define SILENCE_TIMEOUT_MAX	8u			/* times FI_LNX_RAIL_TIMEOUT_MIN */
#define SLOW_BPS	100000000u	/* of a rail whose speed is unknown */

LNX_COLD void lnx_detect_watch(struct lnx_peer *peer)
{
	if (lnx_peer_detects(peer))
		lnx_peer_look_by(peer, 0);
}

static bool frames_due(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return peer->chan.una != peer->chan.posted &&
	       lnx_peer_path_in_flight(peer, path);
}

/* ---- a path goes DOWN ---- */

static unsigned remote_rails(const struct lnx_peer *peer)
{
	unsigned i, n = 0;

	for (i = 0; i < peer->npath; i++)
		n += lnx_path_has_remote(peer->path[i]);
	return n;
}

void lnx_detect_good(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;

	unsigned changed = lnx_health_good(&path->detect.health, plan, now);

	changed |= lnx_health_good(&path->rail->health, plan, now);
	changed |= lnx_health_good(&path->remote->health, plan, now);
	if (lnx_unlikely(lnx_rail_is_leg(path->rail)))
		changed |= lnx_health_good(&path->rail->below->health, plan, now);
	if (lnx_unlikely(changed))
		lnx_policy_stale(peer->ep);
}

/* ---- what a path over a gateway is charged for ---- */

/* The gateway that paths over that rail lead over; NULL: none. */
static const struct lnx_gw_process *gateway_of(const struct lnx_rail *rail)
{
	return lnx_rail_is_leg(rail) ?
	       lnx_container_of(rail, struct lnx_leg, rail)->gw->process : NULL;
}

/* What other paths of the peer tell: do they reach it not over that gateway, and over our
 * rail? */
static void look_at_others(const struct lnx_peer *peer, const struct lnx_path *path,
			   struct lnx_route_evidence *e)
{
	unsigned i;

	e->far_elsewhere = LNX_ANSWERS_NO;
	if (lnx_silence_peer_waits(&peer->liveness))
		return;
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_rail *rail = peer->path[i]->rail;

		if (peer->path[i] == path || !lnx_path_usable(peer->path[i]))
			continue;
		if (gateway_of(rail) != gateway_of(path->rail))
			e->far_elsewhere = LNX_ANSWERS_YES;
		if ((lnx_rail_is_leg(rail) ? rail->below : rail) == path->rail->below)
			e->rail_works = true;
	}
}

/* What the gateway has told since the path is silent (enum lnx_route_tell), or 0. */
static unsigned told_of(const struct lnx_path *path)
{
	const struct lnx_path_detect *g = &path->detect;

	return g->ping && (path->state == LNX_PATH_DOWN || g->silence.kernel_asked) ?
	       g->ping->told : 0;
}

/* What a path over a gateway is charged for beside itself. */
static LNX_COLD unsigned leg_charge(const struct lnx_peer *peer, const struct lnx_path *path,
				    unsigned class, uint64_t now)
{
	struct lnx_route_evidence e = {
		.far_through = LNX_ANSWERS_NO,
		.tell = (uint8_t)told_of(path),
	};
	unsigned charges, charge = LNX_CHARGE_PATH;

	lnx_gateway_evidence(lnx_container_of(path->rail, struct lnx_leg, rail), &e, now);
	look_at_others(peer, path, &e);
	charges = lnx_route_charges(&e);
	if (charges & (LNX_ROUTE_CHARGE_GATEWAY | LNX_ROUTE_CHARGE_GATEWAY_RAIL))
		charge |= LNX_CHARGE_LOCAL;
	/* It is asked until it is well. */
	if (charge & LNX_CHARGE_LOCAL)
		lnx_ep_due(peer->ep, LNX_DUE_GATEWAYS, 0);
	if (charges & LNX_ROUTE_CHARGE_LOCAL_RAIL)
		lnx_health_fail(&path->rail->below->health, &peer->ep->plan, class, now);
	/* As of direct peers, the only rail is not charged. */
	if (charges & LNX_ROUTE_CHARGE_REMOTE_RAIL && remote_rails(peer) > 1)
		charge |= LNX_CHARGE_REMOTE;
	if (charges & LNX_ROUTE_CHARGE_ROUTE_DOWN)
		lnx_gateway_no_way(path, now);
	if (charges & LNX_ROUTE_CHARGE_ASK)
		lnx_gateway_doubted(path, now);
	return charge;
}

LNX_COLD void lnx_detect_charge(struct lnx_peer *peer, struct lnx_path *path,
			      unsigned class, uint64_t now)
{
	struct lnx_ep *ep = peer->ep;
	unsigned charge;

	if (class == LNX_CLASS_OK)
		return;
	path->detect.charged_ns = now;
	lnx_class_count(&ep->stats, class);
	lnx_count_failed(peer, path, class);
	charge = lnx_unlikely(lnx_rail_is_leg(path->rail)) ? leg_charge(peer, path, class, now) :
		 lnx_class_charges(class, remote_rails(peer), peer->self);
	lnx_health_fail(&path->detect.health, &ep->plan, class, now);
	if (charge & LNX_CHARGE_LOCAL)
		lnx_health_fail(&path->rail->health, &ep->plan, class, now);
	if (charge & LNX_CHARGE_REMOTE)
		lnx_health_fail(&path->remote->health, &ep->plan, class,
				now);
	lnx_policy_stale(ep);
	lnx_health_board_due(ep, 0);
	/* The next pass acts on a number that has reached 0. */
	lnx_detect_watch(peer);
}

LNX_COLD void lnx_detect_refused(struct lnx_peer *peer, struct lnx_path *path, int err,
				 uint64_t now)
{
	/* Until it takes one again it is CONNECTING. */
	if (path->state != LNX_PATH_CONNECTING)
		lnx_detect_charge(peer, path,
				  lnx_errclass(path->rail->prov, LNX_WHILE_POST, err, 0),
				  now);
}

LNX_COLD void lnx_detect_expired(struct lnx_peer *peer, uint64_t now)
{
	enum lnx_while op = lnx_peer_acked(peer) ? LNX_WHILE_POST : LNX_WHILE_CONNECT;
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		lnx_detect_charge(peer, peer->path[i],
				  lnx_errclass(peer->path[i]->rail->prov, op, FI_EAGAIN, 0),
				  now);
}

LNX_COLD void lnx_detect_we_cut(struct lnx_path *path, uint64_t now)
{
	path->detect.charged_ns = now;
	if (path->speed)
		path->speed->cut_ns = now;
}

LNX_COLD void lnx_detect_aborted(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	unsigned i;

	if (!rail->busy)
		return;
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++)
			if (peer->path[i]->rail == rail)
				lnx_detect_we_cut(peer->path[i], now);
	}
	lnx_class_count(&ep->stats, LNX_CLASS_LOCAL_ABORTED);
	rail->counts.failed[LNX_CLASS_LOCAL_ABORTED]++;
	lnx_health_fail(&rail->health, &ep->plan, LNX_CLASS_LOCAL_ABORTED, now);
	lnx_policy_stale(ep);
}

/* Failures have taken its number to 0, and another path can do its work. */
static bool is_spent(const struct lnx_peer *peer, const struct lnx_path *path)
{
	unsigned i;

	if (lnx_likely(!path->detect.health.down) || path->detect.health.pinned)
		return false;
	for (i = 0; i < peer->npath; i++)
		if (peer->path[i] != path && lnx_path_usable(peer->path[i]) &&
		    !peer->path[i]->detect.health.down)
			return true;
	return false;
}

/* If none of its paths works, gateways may lead to it. */
static LNX_COLD void stand_by(struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (lnx_path_usable(peer->path[i]))
			return;
	lnx_link_notice_standby(peer);
}

LNX_COLD void lnx_detect_path_down(struct lnx_peer *peer, struct lnx_path *path,
			   const char *why, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	if (path->state == LNX_PATH_DOWN || peer->npath < 2 ||
	    lnx_peer_dead(peer))
		return;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: path %u to peer %016llx is down: %s\n",
		       path->rail->name, path->index,
		       (unsigned long long)peer->eid, why);
	lnx_path_happens(path, LNX_PATH_LOST);
	path->since_ns = now;		/* deadline of the peer, if no path works */
	g->down_ns = now;
	g->silence.stale_report = false;
	g->pinged = false;
	lnx_path_far_happens(&g->far, LNX_FAR_ANEW, now);
	g->probe_ns = 0;
	peer->ep->stats.paths_down++;
	lnx_health_board_due(peer->ep, 0);
	lnx_order_make(peer, now);
	lnx_failover_path(path, peer);
	peer->ep->up->path_down(path);
	/* No core has what is read over a gateway: it ends at once. */
	if (lnx_rail_is_leg(path->rail)) {
		lnx_routed_fail(path);
		lnx_gateway_doubted(path, now);
	}
	stand_by(peer);
	lnx_detect_watch(peer);
}

/* ---- is it silent? ---- */

/* Ask the peer over each of the other paths: one of them may be silent too. */
static LNX_COLD void send_probes(struct lnx_peer *peer, struct lnx_path *about)
{
	struct lnx_path_detect *g = &about->detect;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		struct lnx_hdr h = {
			.kind = LNX_KIND_PROBE, .tag = 1u + about->index,
			.data = g->nonce,
		};

		if (path != about &&
		    (lnx_path_usable(path) || path->detect.drained))
			lnx_control_send_on(peer->ep, peer, path, &h);
	}
}

/*
 * How long may the path be silent?  As long as an answer may take by RFC 6298.  A piece
 * that is being read reports nothing before it ends, and outstanding pieces share the
 * path.
 */
static uint64_t silence_timeout(const struct lnx_path *path,
			 const struct lnx_health_plan *plan)
{
	const struct lnx_path_detect *g = &path->detect;
	uint64_t ns = plan->rail_min_ns, rate = path->speed->read.rate;

	if (g->rtt.srtt_ns)
		ns = lnx_rtt_timeout(&g->rtt, ns, SILENCE_TIMEOUT_MAX * ns);
	if (!rate)
		rate = path->link_bps / 8;
	if (!rate)
		rate = SLOW_BPS / 8;
	if (path->nread && rate)
		ns += 2 * path->read_bytes * 1000 / LNX_MAX(rate / 1000000, 1u);
	return LNX_MIN(ns, LNX_MAX(plan->rail_ns, plan->rail_min_ns));
}

/*
 * A peer that has never answered cannot be asked either: without our hello it does not
 * know us.  Its frames go to the next path in turn, and no path is set DOWN.
 */
static LNX_COLD void elsewhere(struct lnx_peer *peer, struct lnx_path *path)
{
	unsigned i;

	for (i = 1; i < peer->npath; i++) {
		struct lnx_path *next =
			peer->path[(path->index + i) % peer->npath];

		if (next->state == LNX_PATH_DOWN || !next->rail->core_ep)
			continue;
		lnx_failover_redirect(path, peer, next);
		return;
	}
}

/* Packets go both ways over the path, though what is due does not come. */
static bool kernel_answers(const struct lnx_path *path)
{
	enum lnx_ping_result says = lnx_recovery_kernel(path);

	return says == LNX_PING_ALIVE || says == LNX_PING_REFUSED;
}

/* Returns when the path must be checked again, or LNX_NEVER. */
static uint64_t look(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;
	bool kernel = g->silence.kernel_asked, asked = g->silence.probe_sent_ns;
	uint64_t doubt_ns = lnx_latency_doubt_ns(path, LNX_SILENCE_KERNEL_TIMES *
						 peer->ep->plan.rail_min_ns);
	struct lnx_silence_view v = {
		.progress = g->progress, .una = peer->chan.una,
		.frames = frames_due(peer, path),
		.reads = path->nread || now >= doubt_ns,
		.acked = lnx_peer_acked(peer),
		.timeout_ns = silence_timeout(path, &peer->ep->plan),
		.kernel_answers = kernel && kernel_answers(path),
	};
	enum lnx_silence_verdict verdict = lnx_silence_look(&g->silence, &v, now);

	/* Its answer is of no interest any more, unless the peer as a whole is silent, too:
	 * frames that are dropped leave for another path again and again. */
	if (lnx_unlikely(kernel && !g->silence.kernel_asked) && g->ping &&
	    !lnx_silence_peer_waits(&peer->liveness))
		lnx_ping_stop(g->ping);
	switch (verdict) {
	case LNX_SILENCE_PROGRESS:
		lnx_detect_good(peer, path, now);
		break;
	case LNX_SILENCE_ASK_KERNEL:
		lnx_recovery_ping(peer, path);
		break;
	case LNX_SILENCE_ASK:
		/* A report from before this silence is no answer. */
		g->nonce += !asked;
		send_probes(peer, path);
		break;
	case LNX_SILENCE_ELSEWHERE:
		elsewhere(peer, path);
		break;
	case LNX_SILENCE_DOWN:
		lnx_detect_charge(peer, path, LNX_CLASS_NETWORK_TIMEOUT, now);
		lnx_detect_path_down(peer, path, "it delivers nothing, and others do", now);
		break;
	case LNX_SILENCE_NOTHING:
	case LNX_SILENCE_BEGINS:
	case LNX_SILENCE_WAIT:
		break;
	}
	return lnx_next_of(lnx_silence_next(&g->silence, &v, verdict, now), doubt_ns, now);
}

/* An answer must have come by the path itself.  Behind several gateways the others choose over which
 * of ours it comes back: it shows all the same that the PROBE went through. */
static bool by_itself(const struct lnx_path *path, const struct lnx_rail *rail)
{
	return path->rail == rail || (lnx_rail_is_leg(path->rail) && lnx_rail_is_leg(rail) &&
				      path->rail->below == rail->below);
}

LNX_COLD void lnx_detect_pong(struct lnx_peer *peer, const struct lnx_rail *rail,
			     const struct lnx_hdr *pong)
{
	uint64_t which = pong->tag - 1;
	struct lnx_path_detect *g;
	struct lnx_path *path;
	uint64_t now, moved;

	if (which >= peer->npath)
		return;
	path = peer->path[which];
	g = &path->detect;
	now = lnx_clock_ns();
	if (lnx_unlikely(pong->data & LNX_WIRE_PROBE_PING)) {
		if (path->rail == rail) {
			uint64_t ns = lnx_ctl_pong(&peer->ep->ctl, peer->eid, path->index,
						   (uint32_t)pong->data, now);

			if (ns)
				lnx_count_answer(peer, path, ns);
		}
		return;
	}
	if (pong->data & LNX_WIRE_PROBE_LATENCY) {
		if (path->rail == rail)
			lnx_latency_settle(peer, path, (uint32_t)pong->data, pong->key);
		if (lnx_latency_pong(path, rail, (uint32_t)pong->data, now)) {
			lnx_count_answer(peer, path, path->speed->answer_ns);
			lnx_detect_good(peer, path, now);
			/* It is there, whatever was told before. */
			peer->session.wrong_endpoint &= (uint8_t)~(1u << path->index);
		}
		if (path->rail == rail)
			lnx_control_answered(path, peer, (uint32_t)pong->data, now);
		return;
	}
	/* Answers about latency come all the time, and were not asked for because something
	 * was missing. */
	if (peer->choice)
		peer->choice->pong_ns = now;
	lnx_detect_watch(peer);
	moved = g->progress;
	lnx_report_one(peer, (unsigned)which, pong->key);
	if (path->state != LNX_PATH_DOWN) {
		lnx_silence_answered(&g->silence, g->progress != moved,
				     pong->data == g->nonce);
		return;
	}
	if (!by_itself(path, rail) || !g->pinged || pong->data != g->nonce)
		return;
	g->pinged = false;
	lnx_path_far_happens(&g->far, LNX_FAR_PONG, now);
	lnx_address_ack_all(peer, g->probe_epoch);
	lnx_health_pong(&g->health, &peer->ep->plan, now);
	lnx_detect_good(peer, path, now);
}

/* ---- looks ---- */

/* What is due from the peer does not matter for these. */
static uint64_t look_at_peer(struct lnx_peer *peer, uint64_t now)
{
	uint64_t next = LNX_NEVER;

	if (lnx_unlikely(peer->ep->admin.any)) {
		lnx_admin_peer(peer, now);
		next = lnx_admin_next(peer, now);
	}
	if (lnx_unlikely(peer->address.hello_epoch))
		lnx_address_ack_look(peer);
	if (lnx_unlikely(peer->address.tell)) {
		lnx_link_notice_send(peer, now);
		next = lnx_sooner(next, lnx_link_notice_next(peer, now));
	}
	return next;
}

static uint64_t look_at_path(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	if (lnx_unlikely(path->state == LNX_PATH_DOWN))
		return lnx_recovery_run(peer, path, now);
	if (lnx_unlikely(is_spent(peer, path))) {
		lnx_detect_path_down(peer, path, "its health is 0", now);
		return now;
	}
	return look(peer, path, now);
}

uint64_t lnx_detect_look(struct lnx_peer *peer, uint64_t now)
{
	uint64_t next, order_ns;
	unsigned i;

	if (lnx_unlikely(!lnx_peer_open(peer)))
		return lnx_reopen_end_held(peer, now);
	if (!lnx_peer_detects(peer)) {
		/* Of those in line one waited for the end of a path's pause. */
		if (peer->npath > 1)
			lnx_peer_pull(peer);
		return LNX_NEVER;
	}
	next = look_at_peer(peer, now);
	for (i = 0; i < peer->npath; i++)
		next = lnx_sooner(next, look_at_path(peer, peer->path[i], now));
	order_ns = lnx_order_look(peer, now);
	if (!peer->awaited)
		return next;
	next = lnx_sooner(next, order_ns);
	next = lnx_sooner(next, lnx_latency_run(peer, now));
	/* Time alone changes which path may take a piece, and makes pieces late: msg/hedge.c
	 * says when. */
	lnx_peer_pull(peer);
	return peer->pull.left ? now : next;
}
