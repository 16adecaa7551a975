/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The path of the next frame to a peer.  See peer_path.h.  Called by rel/send.c, rel/pump.c,
 * rel/control.c and rel/view.c; rel/sched.c decides. */
#include "rel/peer_path.h"

#include "rel/admin.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/sched.h"

/* ---- what is known ---- */

static bool is_well(const struct lnx_path *path)
{
	return lnx_health_well(&path->detect.health) && lnx_health_well(&path->rail->health) &&
	       lnx_health_well(&path->remote->health);
}

void lnx_peer_path_shares(const struct lnx_peer *peer, uint64_t now, unsigned *share)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		share[i] = LNX_WEIGHT_MAX;
		if (lnx_unlikely(!is_well(path)))
			share[i] = lnx_health_weight_of_path(&path->detect.health,
							     &path->rail->health,
							     &path->remote->health,
							     &peer->ep->plan, now);
		if (lnx_unlikely(peer->ep->admin.any))
			share[i] = LNX_MIN(share[i], lnx_admin_remote_weight(path, now));
	}
	lnx_sched_shares(share, peer->npath);
}

static LNX_COLD void sick_shares(const struct lnx_peer *peer, uint64_t now,
				 struct lnx_sched *s)
{
	unsigned share[LNX_PATHS_MAX], i;

	lnx_peer_path_shares(peer, now, share);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_rail *rail = peer->path[i]->rail;

		/* Until something comes over it, a rail that another process has found to be
		 * sick is as fast as it was there. */
		if (rail->health.hearsay && rail->board.heard_speed)
			s->path[i].link_bps = 8 * rail->board.heard_speed;
		s->path[i].share = (uint16_t)share[i];
		s->path[i].turns = peer->path[i]->speed->turns;
		s->path[i].credit = peer->path[i]->speed->credit;
	}
}

/* Sick paths have had a turn. */
static LNX_COLD void count_turns(struct lnx_peer *peer, unsigned turned)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		peer->path[i]->speed->turns += turned >> i & 1;
}

void lnx_peer_path_facts(const struct lnx_peer *peer, uint64_t now, struct lnx_sched *s)
{
	bool sick = peer->ep->admin.any;
	unsigned i;

	s->now = now;
	s->rank = lnx_order_of(peer);
	s->n = peer->npath;
	s->cur = peer->cur->index;
	s->stripe = peer->stripe;
	s->rr = peer->rr;
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		struct lnx_sched_path *fact = &s->path[i];

		fact->state = path->state;
		fact->share = LNX_WEIGHT_MAX;
		fact->link_bps = path->link_bps;
		fact->latency_ns = lnx_latency_of(path, now);
		sick |= !is_well(path);
	}
	s->sick = sick;
	if (lnx_unlikely(sick))
		sick_shares(peer, now, s);
}

static void frame_facts(const struct lnx_peer *peer, uint64_t now, struct lnx_sched *s)
{
	unsigned i;

	lnx_peer_path_facts(peer, now, s);
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		struct lnx_sched_path *fact = &s->path[i];

		fact->rate = &path->speed->send;
		fact->retry_ns = path->retry_ns;
		fact->out_bytes = lnx_peer_path_in_flight(peer, path);
		fact->inflight_limit = path->inflight_limit;
		fact->since_ns = path->since_ns;
		fact->credits = lnx_path_credits_left(path);
		/* Bytes that were lost may count as in flight for long. */
		fact->opens = !path->proven && path->state == LNX_PATH_UP &&
			      path->credits.used;
		fact->away = !lnx_hedge_pause_over(&path->speed->away, now);
		fact->hearsay = path->rail->health.hearsay;
	}
	s->acked = lnx_peer_acked(peer);
	s->posted = peer->chan.posted;
	s->hello = -1;
	s->rr_index = peer->rr_index;
	s->hearsay_ns = peer->ep->plan.rail_min_ns;
	s->lnet = NULL;
	if (lnx_unlikely(!s->acked && s->posted)) {
		const struct lnx_frame *hello = *lnx_chan_slot(&peer->chan, 0);

		if (hello)
			s->hello = (int8_t)hello->path;
	}
}

/* ---- the choice ---- */

struct lnx_path *lnx_peer_path_choose(struct lnx_peer *peer, size_t len)
{
	struct lnx_rank_path lnet[LNX_RANK_PATHS];
	uint64_t now = lnx_clock_ns();
	struct lnx_sched_choice next;
	struct lnx_rank_how how;
	struct lnx_sched s;

	if (!peer->npath)
		return NULL;
	lnx_order_fresh(peer, now);
	frame_facts(peer, now, &s);
	if (lnx_unlikely(s.rr && s.acked) &&
	    peer->ep->conf->multi_rail_selection == LNX_SELECTION_LNET &&
	    lnx_order_lnet(peer, now, lnet, &how)) {
		s.lnet = lnet;
		s.how = &how;
	}
	next = lnx_sched_frame(&s, len);
	if (next.path < 0)
		return NULL;
	if (next.why == LNX_SCHED_TURN || next.why == LNX_SCHED_LNET)
		peer->rr_index = (uint8_t)next.path;
	if (lnx_unlikely(next.turned))
		count_turns(peer, next.turned);
	if (next.why == LNX_SCHED_LNET)
		lnx_order_used(peer, peer->path[next.path]);
	return peer->path[next.path];
}

struct lnx_path *lnx_peer_path_instead(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_sched s;
	int pick;

	if (peer->npath < 2 || peer->cur->state == LNX_PATH_UP)
		return NULL;
	frame_facts(peer, now, &s);
	pick = lnx_sched_instead(&s);
	return pick < 0 ? NULL : peer->path[pick];
}

struct lnx_path *lnx_peer_path_find_live(struct lnx_peer *peer)
{
	struct lnx_sched s;
	unsigned i;

	if (!peer->npath)
		return NULL;
	s.rank = lnx_order_of(peer);
	s.n = peer->npath;
	s.cur = peer->cur->index;
	for (i = 0; i < peer->npath; i++) {
		s.path[i].state = peer->path[i]->state;
		s.path[i].retry_ns = peer->path[i]->retry_ns;
	}
	return peer->path[lnx_sched_live(&s)];
}

struct lnx_path *lnx_peer_path_back(struct lnx_peer *peer,
				    const struct lnx_rail *rail, uint16_t remote)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->rail == rail &&
		    peer->path[i]->remote_rail == remote)
			return peer->path[i];
	return lnx_peer_path_live(peer);
}
