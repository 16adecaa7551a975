/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What gateways send us.  See gateway.h.  Called by rel/recv.c; policy/route.c knows what it
 * means.
 */
#include "rel/gateway_inside.h"

#include <string.h>

#include "base/interval.h"
#include "core/open.h"
#include "core/peer.h"
#include "core/policy.h"
#include "core/routes.h"
#include "obj/counting.h"
#include "obj/gateway.h"
#include "os/ping.h"
#include "rail/gateways.h"
#include "rail/leg.h"
#include "rail/routed_read.h"
#include "rel/asym.h"
#include "rel/chan.h"
#include "rel/rel.h"

#define GUESSES		1000u	/* notes with other accounts than ours, in LNX_GATEWAY_GUESS_NS */

static bool bad(struct lnx_rail *rail, size_t len, const char *why)
{
	rail->ep->stats.bad_frames++;
	lnx_counts_drop(&rail->counts, 0, len);
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: %zu bytes from a gateway dropped: %s\n", rail->name, len, why);
	return false;
}

/* ---- frames ---- */

/* The leg to the gateway with that id, by which an answer to what came over rail goes.  Of
 * several rails of the gateway on that net the one that works best. */
static struct lnx_leg *leg_to(const struct lnx_gateways *all, const struct lnx_rail *rail,
			      uint64_t id)
{
	struct lnx_leg *best = NULL;
	unsigned i, k;

	for (i = 0; i < all->n; i++)
		for (k = 0; id && all->gw[i]->process->state.id == id &&
		     k < all->gw[i]->nleg; k++) {
			struct lnx_leg *leg = all->gw[i]->leg[k];

			if (leg->rail.below == rail &&
			    (!best || leg->rail.health.value > best->rail.health.value))
				best = leg;
		}
	return best;
}

/* Of a gateway that has not told its id yet: any that this rail leads to, and whose id is not
 * known either if there is one. */
static struct lnx_leg *leg_over(const struct lnx_gateways *all, const struct lnx_rail *rail)
{
	struct lnx_leg *any = NULL;
	unsigned i, k;

	for (i = 0; i < all->n; i++)
		for (k = 0; k < all->gw[i]->nleg; k++)
			if (all->gw[i]->leg[k]->rail.below == rail &&
			    (!any || (any->gw->process->state.id &&
				      !all->gw[i]->process->state.id)))
				any = all->gw[i]->leg[k];
	return any;
}

/* What was asked over that leg has an answer. */
static void answers(struct lnx_leg *leg, uint64_t now)
{
	leg->answered_ns = now;
	leg->hello_ns = 0;
	if (lnx_unlikely(lnx_health_pong(&leg->rail.health, &leg->rail.ep->plan, now)))
		lnx_gateway_order_again(leg->gw);
}

/* Something came in the name of that gateway, whose id each of its peers knows.  One that is dead
 * is asked whether it is back: only its answer counts. */
static void maybe_heard(const struct lnx_leg *leg)
{
	struct lnx_gateway *state = &leg->gw->process->state;

	if (lnx_likely(state->state != LNX_GATEWAY_DEAD))
		return;
	lnx_route_gateway_maybe_anew(state, lnx_clock_ns());
	lnx_ep_due(leg->gw->all->ep, LNX_DUE_GATEWAYS, state->doubt_ns);
}

/* Something came from the gateway of that leg. */
static void heard(struct lnx_leg *leg, uint64_t now)
{
	leg->gw->heard_ns = now;
	if (lnx_route_gateway_heard(&leg->gw->process->state, now) & LNX_GATEWAY_ROUTES)
		lnx_gateway_order_again(leg->gw);
}

/* So few frames may be under way that their sender must hear of them soon. */
static void acknowledge(struct lnx_ep *ep)
{
	struct lnx_peer *peer = ep->last_from;

	if (!peer || peer->chan.acks_pending < LNX_ROUTED_ACKS)
		return;
	peer->chan.ack_now = true;
	ep->work |= LNX_WORK_ACK;
}

static bool frame(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_gateways *all = rail->ep->policy.gateways;
	struct lnx_route_env env;
	const char *why = "";
	struct lnx_leg *leg;
	bool kept;

	if (lnx_route_get(&env, buf->frame, len, &why))
		return bad(rail, len, why);
	if (env.key != all->key || !env.hops_done)
		return bad(rail, len, "it has another route key, or comes from no gateway");
	leg = leg_to(all, rail, env.via);
	if (leg) {
		maybe_heard(leg);
		if (lnx_unlikely(!lnx_asym_may_come(leg, &env, buf->frame + LNX_ROUTE_HEAD)))
			return false;
	} else {
		if (lnx_asym_foreign(all, env.via, lnx_clock_ns()))
			return false;
		leg = leg_over(all, rail);
	}
	if (leg) {
		leg->recv_frames++;
		leg->recv_bytes += env.len;
	}
	if (lnx_routed_rx(leg ? &leg->rail : rail, buf->frame + LNX_ROUTE_HEAD, env.len))
		return false;
	/* All that handles frames looks for them at the start of their buffer. */
	memmove(buf->frame, buf->frame + LNX_ROUTE_HEAD, env.len);
	kept = rail->ep->up->frame(leg ? &leg->rail : rail, buf, env.len);
	acknowledge(rail->ep);
	return kept;
}

/* ---- infos ---- */

/* Notes from before are of another time. */
static LNX_COLD void forget_notes(struct lnx_gw *gw)
{
	struct lnx_routes *t = &gw->all->table;
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (t->route[i].noted_ns && lnx_gateway_leads(&t->route[i], gw))
			t->route[i].noted_ns = 0;
}

/* Of its rails, those that it says are down: bits. */
static uint32_t told_down(const struct lnx_gateway *state)
{
	uint32_t bits = 0;
	unsigned i;

	for (i = 0; i < state->nrail; i++)
		bits |= (uint32_t)state->rail[i].told_down << i;
	return bits;
}

/* What it grants may change with each that uses it. */
static LNX_COLD void keep_to_grant(struct lnx_gw *gw)
{
	const struct lnx_gateways *all = gw->all;
	unsigned i, k;

	for (i = 0; i < all->n; i++)
		for (k = 0; all->gw[i]->process == gw->process && k < all->gw[i]->nleg; k++)
			lnx_leg_granted(all->gw[i]->leg[k], gw->process->state.large);
}

static LNX_COLD void informed(struct lnx_gw *gw, const struct lnx_gw_info *info,
			      uint64_t now)
{
	const struct lnx_gateway *state;
	struct lnx_gateway_facts facts;
	bool was_up, was_draining;
	uint32_t were_down;

	lnx_route_gateway_facts(&facts, info);
	/* Frames that fit our rails have to fit those behind it. */
	if (info->frame_max < LNX_ROUTE_HEAD + LNX_FRAME_MAX) {
		facts.routing = false;
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_CTRL,
			       "rail %s: the gateway forwards %u bytes at most, which is too little for frames\n",
			       gw->nleg ? gw->leg[0]->rail.name : "", info->frame_max);
	}
	lnx_gateways_identify(gw, facts.id, now);
	state = &gw->process->state;
	was_up = state->state == LNX_GATEWAY_ALIVE && state->routing;
	was_draining = state->draining;
	were_down = told_down(state);
	lnx_route_gateway_info(&gw->process->state, &facts, now);
	gw->process->rails = info->gw.rails;
	gw->process->frame_max = info->frame_max;
	gw->process->behind = info->behind;
	gw->process->says_behind = info->gw.newest >= LNX_ROUTE_NEWEST;
	forget_notes(gw);
	keep_to_grant(gw);
	lnx_ep_due(gw->all->ep, LNX_DUE_GATEWAYS, 0);
	if (!was_up || was_draining != state->draining || !state->routing ||
	    were_down != told_down(state))
		lnx_gateway_order_again(gw);
}

/* The leg over which the hello with that nonce has left, or NULL.  The one before may be the last
 * that the gateway has. */
static struct lnx_leg *leg_with_nonce(const struct lnx_gateways *all, uint32_t nonce)
{
	unsigned i, k;

	for (i = 0; i < all->n; i++)
		for (k = 0; k < all->gw[i]->nleg; k++)
			if (all->gw[i]->leg[k]->nonce == nonce ||
			    all->gw[i]->leg[k]->answered_nonce == nonce)
				return all->gw[i]->leg[k];
	return NULL;
}

static void info(struct lnx_rail *rail, const struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_gateways *all = rail->ep->policy.gateways;
	uint64_t now = lnx_clock_ns();
	struct lnx_gw_info info;
	const char *why = "";
	struct lnx_leg *leg;

	if (lnx_wire_gw_info_get(&info, buf->frame, len, &why) || info.gw.key != all->key) {
		bad(rail, len, why);
		return;
	}
	leg = leg_with_nonce(all, info.gw.nonce);
	if (!leg) {
		bad(rail, len, "its sender does not know our last hello");
		return;
	}
	/* The first one with it is the answer; others are news, which show nothing of the leg. */
	if (leg->answered_nonce != info.gw.nonce) {
		leg->answered_nonce = info.gw.nonce;
		answers(leg, now);
	}
	informed(leg->gw, &info, now);
	leg = leg_to(all, rail, info.gw.id);
	if (leg)
		leg->gw->heard_ns = now;
}

/* ---- notes ---- */

/* Of the paths over the gateway to the end that a note names the one that the frame took;
 * any, if that has been acknowledged meanwhile. */
static LNX_COLD struct lnx_path *path_of_frame(const struct lnx_peer *peer,
					       const struct lnx_gw *gw,
					       const struct lnx_route_note *note)
{
	const struct lnx_frame *f = *lnx_chan_slot(&peer->chan, note->seq);
	struct lnx_path *any = NULL;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		const struct lnx_leg *leg = lnx_container_of(path->rail, struct lnx_leg, rail);

		if (!lnx_rail_is_leg(path->rail) || leg->gw->process != gw->process ||
		    path->core_addr >= leg->nend ||
		    memcmp(&leg->end[path->core_addr].to, &note->rail, sizeof(note->rail)))
			continue;
		any = path;
		if (f && f->seq == note->seq && f->path == i)
			break;
	}
	return any;
}

/* The path of the frame that a note is about; NULL: it is of no session of ours. */
static LNX_COLD struct lnx_path *path_of_note(const struct lnx_leg *leg,
					      const struct lnx_route_note *note,
					      struct lnx_peer **of)
{
	struct lnx_peer *peer = lnx_peer_known(leg->rail.ep, note->dst);

	if (!peer || peer->sid != note->src || !lnx_peer_open(peer) || !peer->chan.slot)
		return NULL;
	*of = peer;
	return path_of_frame(peer, leg->gw, note);
}

/*
 * The path takes no more for a time, which grows with each note that comes soon after the
 * pause before it: what left then was dropped as well.  Without that all that waits for a peer
 * that is gone would be sent to the gateway in each round trip.
 */
static LNX_COLD void pause_path(struct lnx_path *path, uint32_t wait_ms, uint64_t now)
{
	const struct lnx_leg *leg = lnx_container_of(path->rail, struct lnx_leg, rail);
	struct lnx_leg_end *end = &leg->end[path->core_addr];
	uint64_t most = LNX_MAX(LNX_MIN(wait_ms * LNX_NS_PER_MS, LNX_GATEWAY_NOTED_MAX_NS),
				LNX_BACKOFF_MAX_NS);
	bool again = lnx_ns_since(now, end->noted_ns) < 4 * end->noted_pause_ns;

	if (path->state == LNX_PATH_DOWN)
		return;
	if (path->state != LNX_PATH_CONNECTING || !path->since_ns) {
		lnx_path_happens(path, LNX_PATH_REFUSED);
		path->since_ns = now;
	} else if (now < path->retry_ns) {
		return;			/* of a frame that left before the pause */
	}
	end->noted_pause_ns = LNX_MIN(again ? 2 * end->noted_pause_ns : LNX_GATEWAY_NOTED_NS, most);
	end->noted_ns = now;
	path->backoff_ns = end->noted_pause_ns;
	path->retry_ns = now + path->backoff_ns;
}

/* The gateway has no way to the net of that route until then, by whichever NID. */
static LNX_COLD void routes_down(struct lnx_gw *gw, const struct lnx_route *route,
				 uint64_t until_ns)
{
	struct lnx_routes *t = &gw->all->table;
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (lnx_gateway_leads(&t->route[i], gw) &&
		    !memcmp(&t->route[i].spec.net, &route->spec.net, sizeof(route->spec.net)))
			t->route[i].noted_ns = until_ns;
	lnx_ep_due(gw->all->ep, LNX_DUE_GATEWAYS, until_ns);
}

LNX_COLD void lnx_gateway_no_way(const struct lnx_path *path, uint64_t now)
{
	struct lnx_gw *gw = lnx_container_of(path->rail, struct lnx_leg, rail)->gw;
	const struct lnx_route *route = lnx_routes_of_path(path);
	bool known = route && now < route->noted_ns;

	if (!route)
		return;
	routes_down(gw, route, now + LNX_ROUTE_NOTED_NS);
	/* Each of many peers may find that out. */
	if (!known)
		lnx_gateway_order_again(gw);
}

/* What it means for the path of peer that the frame took.  No note charges a gateway: it has told
 * what it could not do.  Calls no core. */
static LNX_COLD void act(struct lnx_leg *leg, struct lnx_peer *peer, struct lnx_path *path,
			 const struct lnx_route_note *note, uint64_t now)
{
	const struct lnx_route_effect *e = lnx_route_effect(note->reason);

	if (!e)
		return;
	if (e->route_down)
		lnx_gateway_no_way(path, now);
	if (e->remote) {
		lnx_class_count(&leg->rail.ep->stats, LNX_CLASS_REMOTE_DROPPED);
		lnx_count_failed(peer, path, LNX_CLASS_REMOTE_DROPPED);
		lnx_health_fail(&path->remote->health, &leg->rail.ep->plan,
				LNX_CLASS_REMOTE_DROPPED, now);
		lnx_policy_stale(leg->rail.ep);
	}
	if (!e->again)
		return;
	/* At once over another path; over this one, for which there may be no other, after a
	 * pause.  The look puts paths in order before that. */
	pause_path(path, note->wait_ms, now);
	lnx_chan_retransmit(&peer->chan, 1u << path->index);
	lnx_peer_pump(peer);
	lnx_peer_look_by(peer, 0);
}

/* Is it ours?  It must not be found by trying: after many wrong ones none is right for a moment. */
static LNX_COLD bool has_account(const struct lnx_gw *gw, uint16_t account, uint64_t now)
{
	struct lnx_gateways *all = gw->all;

	if (lnx_ns_since(now, all->guess_ns) >= LNX_GATEWAY_GUESS_NS) {
		all->guess_ns = now;
		all->n_guesses = 0;
	}
	if (account != gw->process->state.account)
		all->n_guesses++;
	return account == gw->process->state.account && all->n_guesses <= GUESSES;
}

static void note(struct lnx_rail *rail, const struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_gateways *all = rail->ep->policy.gateways;
	uint64_t now = lnx_clock_ns();
	struct lnx_route_note note;
	struct lnx_peer *peer = NULL;
	const char *why = "";
	struct lnx_path *path;
	struct lnx_leg *leg;

	if (lnx_route_note_get(&note, buf->frame, len, &why) || note.key != all->key) {
		bad(rail, len, why);
		return;
	}
	leg = leg_to(all, rail, note.id);
	if (!leg) {
		bad(rail, len, "it is from no gateway of ours");
		return;
	}
	/* The id of the gateway is in each frame that it forwards, so that any of its peers can
	 * send this: the frame that it names must be of a session of ours; and so that the peer
	 * of that cannot, it must have our account there. */
	path = has_account(leg->gw, note.account, now) ? path_of_note(leg, &note, &peer) : NULL;
	if (!path) {
		rail->ep->stats.stale_frames++;
		return;
	}
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA, "rail %s: frames were dropped: %s\n",
		       leg->rail.name, lnx_route_reason_name(note.reason));
	maybe_heard(leg);
	if (lnx_route_gateway_note(&leg->gw->process->state, note.reason, note.count, now) &
	    LNX_GATEWAY_ROUTES)
		lnx_gateway_order_again(leg->gw);
	act(leg, peer, path, &note, now);
}

/* ---- does the host of a peer answer? ---- */

static enum lnx_ping_result result_of(unsigned tell)
{
	switch (tell) {
	case LNX_TELL_ALIVE:
		return LNX_PING_ALIVE;
	case LNX_TELL_REFUSED:
		return LNX_PING_REFUSED;
	case LNX_TELL_UNREACHABLE:
	case LNX_TELL_RAIL_DOWN:
	case LNX_TELL_NO_ROUTE:
		return LNX_PING_BROKEN;
	case LNX_TELL_SILENT:
		return LNX_PING_WAITING;	/* as from a ping without an answer */
	default:
		return LNX_PING_UNKNOWN;
	}
}

/* The path over that gateway that asks with that nonce has its answer, by whichever of its rails
 * that came.  False: none asks so. */
static bool answered(const struct lnx_gw *gw, const struct lnx_gw_ask *a, uint64_t now)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&gw->all->asked, n, tmp) {
		struct lnx_host_ask *ask = lnx_list_entry(n, struct lnx_host_ask, link);
		const struct lnx_path *path = ask->path;
		struct lnx_leg *leg = lnx_container_of(path->rail, struct lnx_leg, rail);

		/* Its answer is of no interest any more. */
		if (ask->ping.result != LNX_PING_WAITING) {
			lnx_list_del(&ask->link);
			continue;
		}
		if (leg->gw->process != gw->process || path->core_addr >= leg->nend ||
		    leg->end[path->core_addr].nonce != a->nonce)
			continue;
		leg->end[path->core_addr].nonce = 0;
		answers(leg, now);
		ask->ping.result = (uint8_t)result_of(a->tell);
		ask->ping.told = a->tell;
		lnx_list_del(&ask->link);
		lnx_peer_look_by(ask->peer, 0);
		return true;
	}
	return false;
}

static void told(struct lnx_rail *rail, const struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_gateways *all = rail->ep->policy.gateways;
	uint64_t now = lnx_clock_ns();
	const char *why = "";
	struct lnx_gw_ask a;
	struct lnx_leg *leg;

	if (lnx_wire_gw_ask_get(&a, buf->frame, len, &why) || a.key != all->key || !a.tell) {
		bad(rail, len, why);
		return;
	}
	leg = leg_to(all, rail, a.id);
	if (!leg) {
		bad(rail, len, "it is from no gateway of ours");
		return;
	}
	/* Only the nonce shows that it is from there: each peer of the gateway knows its id. */
	if (!answered(leg->gw, &a, now)) {
		rail->ep->stats.stale_frames++;
		return;
	}
	/* What its far end does not answer is not its fault. */
	heard(leg, now);
	LNX_INFO(FI_LOG_EP_DATA, "rail %s: of the host that it was asked about it tells \"%s\"\n",
		 leg->rail.name, lnx_route_tell_name(a.tell));
}

LNX_COLD bool lnx_gateway_rx(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len)
{
	if (!rail->ep->policy.gateways)
		return bad(rail, len, "there are no routes here");
	switch (lnx_route_kind(buf->frame, len)) {
	case LNX_ROUTE_FRAME:
		return frame(rail, buf, len);
	case LNX_ROUTE_GW_INFO:
		info(rail, buf, len);
		return false;
	case LNX_ROUTE_NOTE:
		note(rail, buf, len);
		return false;
	case LNX_ROUTE_GW_TELL:
		told(rail, buf, len);
		return false;
	default:
		return bad(rail, len, "it is nothing that a gateway sends to an endpoint");
	}
}
