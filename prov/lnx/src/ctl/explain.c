/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Explains choices of paths.  See explain.h.  Called by ctl/request.c. */
#include "ctl/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/interval.h"
#include "core/open.h"
#include "core/policy.h"
#include "core/routes.h"
#include "ctl/ask.h"
#include "ctl/health.h"
#include "ctl/nid.h"
#include "msg/push.h"
#include "rel/rel.h"
#include "rel/rel_view.h"

#define WHY_BYTES	200
/* Of bytes per second. */
#define MBPS(rate)	LNX_MAX((rate) / 125000, UINT64_C(1))

/* ---- which way ---- */

static const char *way(const struct lnx_ep *ep, const struct lnx_peer *peer,
		       const char **why)
{
	if (ep->native) {
		*why = "FI_LNX_PROTOCOL=direct or FI_LNX_USE_SRQ=0: operations are "
		       "the core providers' own";
		return "native";
	}
	if (peer->shm_addr != FI_ADDR_NOTAVAIL) {
		*why = "the peer is on this host; shared memory comes before all "
		       "networks";
		return "direct";
	}
	if (!peer->npath) {
		*why = "no rail of this endpoint reaches one of the peer's";
		return "none";
	}
	if (!ep->shm)
		*why = "this endpoint has no shared memory rail";
	else if (peer->shm.unusable)
		*why = "shared memory has no room for the peer, or it is of another "
		       "user";
	else
		*why = "the peer is on another host";
	return "framed";
}

static void form_direct(const struct lnx_peer *peer, uint64_t size, struct lnx_out *o)
{
	if (size <= LNX_INJECT_MAX || !peer->shm.ctrl)
		lnx_out(o, "form one operation of the shm provider\n");
	else if (size <= LNX_PUSHED_MAX)
		lnx_out(o, "form pushed, in pieces that the shm provider copies; or announced, "
			"where that takes less time, or the peer is behind\n");
	else if (peer->shm.reaches)
		lnx_out(o, "form announced; the receiver reads it from the sender's "
			"memory, in one copy\n");
	else
		lnx_out(o, "form announced; the sender copies it through shared "
			"memory, because its memory cannot be read\n");
}

static void form_framed(const struct lnx_ep *ep, const struct lnx_peer *peer,
			uint64_t size, struct lnx_out *o)
{
	const struct lnx_conf *c = ep->conf;
	bool shared = lnx_bits(peer->stripe) > 1 && size >= c->stripe_threshold;

	if (size <= ep->limits.copy)
		lnx_out(o, "form one frame with a copy of the payload: the send "
			"completes at once\n");
	else if (size <= ep->limits.eager)
		lnx_out(o, "form one frame from the application's buffer: the send "
			"completes when it is acknowledged\n");
	else if (size <= c->eager_limit && c->eager_peer && !shared)
		lnx_out(o, "form frames from the application's buffer, as far as the "
			"receiver has granted credit: the send completes when they are "
			"acknowledged or copied; without credit it is announced\n");
	else if (lnx_bits(peer->stripe) < 2 || (size < c->stripe_threshold && size <= c->chunk))
		lnx_out(o, "form announced; some of it may follow at once, the receiver "
			"reads the rest over %s\n", c->multi_rail_selection ==
			LNX_SELECTION_PER_PEER ? "the path that it has chosen by itself" :
			"one path");
	else
		lnx_out(o, "form announced; the receiver reads pieces over up to %u "
			"paths at once, by its own rules and their measured speed\n", lnx_bits(peer->stripe));
}

/* ---- paths ---- */

struct choice {
	const struct lnx_ep *ep;
	struct lnx_peer *peer;
	uint64_t now;
	uint64_t size;
	struct lnx_path_view view[LNX_PATHS_MAX];
};

/* Why it may not be used at all, or NULL. */
static const char *unusable(const struct lnx_path *path)
{
	if (path->rail->link_down)
		return "the link of the local rail is down";
	if (path->detect.remote_down)
		return "the peer says that the link of its rail is down";
	if (path->detect.withdrawn)
		return lnx_rail_is_leg(path->rail) ?
		       "no route leads over it any more" :
		       "a guess between two networks, and there are routes";
	if (path->detect.drained)
		return "drained: a health of it was set to 0 by hand, here or at the "
		       "peer";
	if (path->state == LNX_PATH_DOWN)
		return "it delivered nothing while others did; it is pinged until it "
		       "answers";
	if (path->state == LNX_PATH_DEAD)
		return "no path to the peer has taken anything until its deadline";
	if (!path->rail->core_ep)
		return "the local rail is closed until a peer can be reached by it";
	return NULL;
}

static unsigned class_of(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return peer->choice && path->index < peer->choice->rank.n ?
	       peer->choice->rank.class[path->index] : 0;
}

/* Credits that are left, of the path and of its rail: fewer than 1, and frames wait. */
static int32_t path_credits(const struct lnx_path *path)
{
	return lnx_tx_credits_rank(path->rail->peer_credits_max, path->credits.used);
}

static int32_t rail_credits(const struct lnx_path *path)
{
	const struct lnx_rail *rail = path->rail;

	return lnx_tx_credits_rank(rail->credits_max,
				   (uint64_t)rail->credits.used + rail->n_delayed);
}

/* No further frame leaves over it: why; or NULL. */
static const char *no_credit(const struct lnx_path *path, char *why)
{
	const struct lnx_rail *rail = path->rail;

	if (rail->peer_credits_max && path_credits(path) < 1)
		snprintf(why, WHY_BYTES, "no credit is left: %u frames of the %u that "
			 "FI_LNX_PEER_CREDITS allows are under way over it",
			 path->credits.used, rail->peer_credits_max);
	else if (rail->credits_max && rail_credits(path) < 1)
		snprintf(why, WHY_BYTES, "no credit is left: of the %u that FI_LNX_CREDITS "
			 "gives its rail, frames to all peers use %u, and %u wait for one",
			 rail->credits_max, rail->credits.used, rail->n_delayed);
	else
		return NULL;
	return why;
}

/* By LNet's tables fewer credits lose, of the rail first. */
static bool fewer_credits(const struct choice *c, const struct lnx_path *path,
			  const struct lnx_path *cur, char *why)
{
	int32_t mine = rail_credits(path), its = rail_credits(cur);
	bool of_rail = mine != its;

	if (c->ep->conf->multi_rail_selection != LNX_SELECTION_LNET)
		return false;
	if (!of_rail) {
		mine = path_credits(path);
		its = path_credits(cur);
	}
	if (mine < its)
		snprintf(why, WHY_BYTES, "fewer credits are left %s: %d, of path %u %d",
			 of_rail ? "of its rail" : "to the peer's rail", mine, cur->index, its);
	return mine < its;
}

/* What the route of the current path is better by. */
static enum lnx_route_by lost_by(const struct choice *c, const struct lnx_path *path)
{
	const struct lnx_rule_peer *table = lnx_policy_table(c->peer);
	struct lnx_route_choice of[2];
	uint8_t by[2];

	lnx_routes_look(c->peer->cur, table, c->now, &of[0]);
	lnx_routes_look(path, table, c->now, &of[1]);
	lnx_route_pick(of, 2, by);
	return by[1];
}

/* It is over a gateway, and of a worse class than the current path: why. */
static bool is_standby(const struct choice *c, const struct lnx_path *path, char *why)
{
	const struct lnx_path *cur = c->peer->cur;

	if (!lnx_rail_is_leg(path->rail) || class_of(c->peer, path) <= class_of(c->peer, cur))
		return false;
	if (c->peer->choice->held >> path->index & 1)
		snprintf(why, WHY_BYTES, "its route is down, or its gateway ends soon");
	else if (!lnx_rail_is_leg(cur->rail))
		snprintf(why, WHY_BYTES, "path %u needs no gateway", cur->index);
	else
		snprintf(why, WHY_BYTES, "another route, over path %u, comes before its own: %s",
			 cur->index, lnx_route_by_name(lost_by(c, path)));
	return true;
}

/* Why frames stay on another path than this one, which could be used. */
static void why_not_current(const struct choice *c, const struct lnx_path *path,
			    char *why)
{
	const struct lnx_path *cur = c->peer->cur;
	const struct lnx_path_view *mine = &c->view[path->index];
	const struct lnx_path_view *its = &c->view[cur->index];

	if (is_standby(c, path, why))
		return;
	if (class_of(c->peer, path) > class_of(c->peer, cur))
		snprintf(why, WHY_BYTES, "rank %u, path %u has rank %u, and is better by: %s",
			 class_of(c->peer, path), cur->index, class_of(c->peer, cur),
			 lnx_select_why_text(c->peer->choice->rank.why[path->index]));
	else if (c->ep->admin.any && mine->weight < its->weight)
		snprintf(why, WHY_BYTES, "the weight that was set for it by hand%s, %u, is "
			 "lower than that of path %u, %u", mine->remote_weight == mine->weight ?
			 " at the peer" : "", mine->weight, cur->index, its->weight);
	else if (no_credit(path, why) || fewer_credits(c, path, cur, why))
		return;
	else if (mine->share < its->share)
		snprintf(why, WHY_BYTES, "its health leaves it %u of 1000, path %u "
			 "has %u", mine->share, cur->index, its->share);
	else if (mine->latency_ns && its->latency_ns && mine->latency_ns > its->latency_ns)
		snprintf(why, WHY_BYTES, "an answer takes %" PRIu64 " us over it, "
			 "%" PRIu64 " us over path %u", mine->latency_ns / 1000,
			 its->latency_ns / 1000, cur->index);
	else
		snprintf(why, WHY_BYTES, "as good as path %u, on which frames stay", cur->index);
}

/* Frames were late on it lately, and another one that is as good works. */
static bool is_late(const struct choice *c, const struct lnx_path *path)
{
	const struct lnx_path *cur = c->peer->cur;

	return c->view[path->index].away && !c->view[cur->index].away &&
	       class_of(c->peer, path) >= class_of(c->peer, cur);
}

/* The current path is not connected yet, and others may be sooner. */
static bool connects(const struct choice *c)
{
	return c->view[c->peer->cur->index].instead && !unusable(c->peer->cur);
}

/* Frames for which there is no room on the current path may take it (rel/sched.c). */
static bool takes_spill(const struct choice *c, const struct lnx_path *path)
{
	char why[WHY_BYTES];

	/* A weight set by hand may have made another one the current path than those that
	 * rules prefer: they take what it has no room for all the same. */
	return (c->peer->stripe >> path->index & 1) && !no_credit(path, why);
}

/* A large message is read by the peer.  Our rules go with it; our pins and what we know of
 * health do not. */
static bool read_anyway(const struct choice *c, const struct lnx_path *path)
{
	const struct lnx_peer_choice *choice = c->peer->choice;

	return !choice || choice->rank.n != c->peer->npath || lnx_rail_is_leg(path->rail) ||
	       (lnx_rank_preferred(&choice->rank) >> path->index & 1);
}

/* Messages go over several equal paths: does the next one take this path? */
static void judge_turn(const struct choice *c, const struct lnx_path *path,
		       const char **use, char *why)
{
	const struct lnx_peer *peer = c->peer;
	unsigned i;

	if (no_credit(path, why))
		return;
	for (i = 0; i < peer->npath; i++)
		if ((peer->rr >> i & 1) && fewer_credits(c, path, peer->path[i], why))
			return;
	*use = "frames";
	for (i = 0; i < peer->npath; i++)
		if ((peer->rr >> i & 1) && c->view[path->index].share < c->view[i].share) {
			snprintf(why, WHY_BYTES, "messages alternate between %u paths; its "
				 "health leaves it %u of 1000 of its turns, path %u has %u",
				 lnx_bits(peer->rr), c->view[path->index].share, i,
				 c->view[i].share);
			return;
		}
	if (c->ep->conf->multi_rail_selection == LNX_SELECTION_LNET)
		snprintf(why, WHY_BYTES, "of %u equal paths none has more credits left; of "
			 "several such the one that was used longest ago is next",
			 lnx_bits(peer->rr));
	else
		snprintf(why, WHY_BYTES, "messages alternate between %u equal paths",
			 lnx_bits(peer->rr));
}

/* What speaks against the only path, and cannot be obeyed. */
static const char *though(const struct choice *c, const struct lnx_path *path)
{
	const struct lnx_path_view *view = &c->view[path->index];

	if (!view->remote_weight)
		return ", though the peer asks to avoid its rail";
	if (view->weight)
		return "";
	return c->ep->conf->multi_rail_selection == LNX_SELECTION_PER_PEER ?
	       ", though a health of it was set to 0 by hand: "
	       "FI_LNX_MULTI_RAIL_SELECTION=PER_PEER has one for each peer" :
	       ", though a health of it was set to 0 by hand";
}

static void judge(const struct choice *c, const struct lnx_path *path,
		  const char **use, char *why)
{
	const struct lnx_peer *peer = c->peer;
	const char *bad = unusable(path);
	bool large = c->size > c->ep->limits.eager;

	*use = "no";
	if (bad) {
		snprintf(why, WHY_BYTES, "%s", bad);
		return;
	}
	if (lnx_bits(peer->rr) > 1 && (peer->rr >> path->index & 1)) {
		judge_turn(c, path, use, why);
		return;
	}
	if (peer->cur == path) {
		*use = "frames";
		if (no_credit(path, why))
			snprintf(why + strlen(why), WHY_BYTES - strlen(why), peer->npath == 1 ?
				 "; further frames wait" :
				 "; further frames take another path, or wait");
		else if (peer->npath == 1)
			snprintf(why, WHY_BYTES, "the only path%s", though(c, path));
		else if (connects(c))
			snprintf(why, WHY_BYTES, "preferred, but not connected yet: what it does "
				 "not take until it is goes over path %u, the first message, "
				 "too", c->view[path->index].instead - 1u);
		else if (c->view[path->index].in_flight > path->inflight_limit)
			snprintf(why, WHY_BYTES, "backed up: further frames take the "
				 "path over which they arrive first");
		else
			snprintf(why, WHY_BYTES, "the best one by rank, health and "
				 "latency%s", though(c, path));
		return;
	}
	if (large && (peer->stripe >> path->index & 1)) {
		*use = "pieces";
		snprintf(why, WHY_BYTES, "of equal rank: shares large messages by its "
			 "measured speed and its health, here and at the peer, which reads "
			 "them");
		return;
	}
	if (is_late(c, path)) {
		snprintf(why, WHY_BYTES, "frames were late on it, and stay away from it for a "
			 "while");
		return;
	}
	why_not_current(c, path, why);
	if (large && read_anyway(c, path)) {
		*use = "pieces";
		snprintf(why + strlen(why), WHY_BYTES - strlen(why), "; but the peer reads what "
			 "is large in an order of its own, which may have it");
	} else if (connects(c)) {
		*use = "spill";
		snprintf(why + strlen(why), WHY_BYTES - strlen(why), "; takes frames until path "
			 "%u is connected", peer->cur->index);
	} else if (takes_spill(c, path)) {
		*use = "spill";
		snprintf(why + strlen(why), WHY_BYTES - strlen(why), "; takes those for which "
			 "path %u has no room, if they arrive sooner so", peer->cur->index);
	}
}

/* ---- rules ---- */

static void put_id(struct lnx_out *o, uint32_t id, unsigned *n)
{
	if (id)
		lnx_out(o, "%s%" PRIu32, (*n)++ ? "," : " rules ", id);
}

/* The ids of the rules that decide for the rails of a path, of each kind one. */
static void put_rules(const struct choice *c, const struct lnx_path *path,
		      struct lnx_out *o)
{
	const struct lnx_rules *rules = c->ep->policy.rules;
	const struct lnx_rule_peer *table = lnx_policy_table(c->peer);
	unsigned i, n = 0, local = lnx_policy_index(c->ep, path->rail);
	const struct lnx_rule_local *l;
	struct lnx_rule_info info;

	if (!rules || local >= LNX_RULE_RAILS)
		return;
	l = lnx_rules_local(rules, local);
	put_id(o, l->net_rule, &n);
	put_id(o, l->rail_rule, &n);
	if (!table || lnx_rules_stale(rules, table) || path->remote_rail >= table->n)
		return;
	for (i = 0; i < LNX_RULE_KINDS; i++)
		if (table->remote[path->remote_rail].by[i] &&
		    !lnx_rules_info(rules, table->remote[path->remote_rail].by[i] - 1u, &info))
			put_id(o, info.rule->id, &n);
}

/*
 * What was measured of it; nothing is said of what was not, because 0 would look like a
 * speed.  Frames that we send and pieces that we read are measured apart.  What of our large
 * messages the peer reads is measured there.
 */
static void put_speed(const struct lnx_path *path, struct lnx_out *o)
{
	const struct lnx_path_speed *s = path->speed;

	if (s && s->send.rate)
		lnx_out(o, " send_rate_mbps %" PRIu64, MBPS(s->send.rate));
	if (s && s->read.rate)
		lnx_out(o, " read_rate_mbps %" PRIu64, MBPS(s->read.rate));
}

static void put_path(const struct choice *c, const struct lnx_path *path,
		     struct lnx_out *o)
{
	const struct lnx_path_view *view = &c->view[path->index];
	char nid[LNX_NAME_MAX * 2], why[WHY_BYTES];
	const char *use;

	judge(c, path, &use, why);
	lnx_nid_remote(path, nid, sizeof(nid));
	lnx_out(o, "path %u rail %s to %u nid %s use %s state %s rank %u health %u "
		"rail_health %u remote_health %u share %u in_flight %" PRIu64
		" limit %" PRIu64,
		path->index, path->rail->name, path->remote_rail,
		nid, use, lnx_ctl_path_state(path), class_of(c->peer, path), path->detect.health.value,
		path->rail->health.value,
		path->remote->health.value,
		view->share, view->in_flight,
		c->peer->npath > 1 ? path->inflight_limit : 0);
	put_speed(path, o);
	lnx_out(o, " latency_us %" PRIu64 " credits_used %u credits_max %u "
		"rail_credits_used %u rail_credits_max %u", view->latency_ns / 1000,
		path->credits.used, path->rail->peer_credits_max,
		path->rail->credits.used, path->rail->credits_max);
	put_rules(c, path, o);
	lnx_out(o, " because %s\n", why);
}

/* ---- pairs of rails without a path ---- */

static const char *why_no_pair(const struct lnx_ep *ep, const struct lnx_rail *rail,
			       const struct lnx_addr_rail *to, bool listed,
			       const struct lnx_peer *peer)
{
	if (!listed)
		return "FI_LNX_DISCOVERY=0: the peer's address does not list the rail";
	if (rail->prov != to->prov)
		return "different providers";
	if (rail->group != to->group)
		return "different networks: used only if no pair is on one";
	if (peer->npath >= ep->conf->max_rails)
		return "FI_LNX_MAX_RAILS paths are used already";
	if (ep->conf->multi_rail_selection == LNX_SELECTION_PER_PEER)
		return "FI_LNX_MULTI_RAIL_SELECTION=PER_PEER uses one path for each "
		       "peer";
	return "both rails have other paths to use";
}

/* What is large is read by the peer, over paths that it has chosen by itself. */
static const char *read_by_peer(const struct choice *c, const struct lnx_rail *rail,
				const struct lnx_addr_rail *to)
{
	return c->size > c->ep->limits.eager && rail->prov == to->prov ?
	       "; but the peer reads what is large over paths of its own, which may be this one" :
	       "";
}

static void put_pairs(const struct choice *c, struct lnx_out *o)
{
	const struct lnx_ep *ep = c->ep;
	const struct lnx_peer *peer = c->peer;
	const struct lnx_rails *r = peer->address.rails;
	bool all = ep->conf->discovery || peer->addr == FI_ADDR_NOTAVAIL;
	struct lnx_rails av = { 0 };
	struct lnx_av_entry *e;
	struct lnx_addr a;
	unsigned i, k;
	char why[64];

	e = ep->av && peer->addr != FI_ADDR_NOTAVAIL ?
	    lnx_av_entry(ep->av, peer->addr) : NULL;
	if (e && !lnx_addr_unpack(&a, e->blob, sizeof(e->blob), why, sizeof(why)))
		lnx_rails_of_addr(&av, &a);
	if (!r)
		r = &av;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		for (k = 0; k < r->n; k++)
			if (!lnx_peer_has_path(peer, ep->rail[i], r->place[k]))
				lnx_out(o, "pair %s to %u because %s%s\n",
					ep->rail[i]->name, r->place[k],
					why_no_pair(ep, ep->rail[i], &r->rail[k],
						    all || lnx_rails_find(&av,
								r->place[k]),
						    peer),
					read_by_peer(c, ep->rail[i], &r->rail[k]));
}

int lnx_ctl_explain(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
		    uint64_t now, struct lnx_out *o)
{
	struct choice c = { .ep = ep, .now = now, .size = r->number };
	struct lnx_peer *peer;
	const char *why, *how;
	unsigned i;

	peer = lnx_ctl_find_peer(ep, text, &r->target[0], true, o);
	if (!peer)
		return -FI_EINVAL;
	c.peer = peer;
	for (i = 0; i < peer->npath; i++)
		lnx_rel_view(peer, peer->path[i], now, &c.view[i]);
	how = way(ep, peer, &why);
	lnx_out(o, "peer %016llx", (unsigned long long)peer->eid);
	if (peer->addr != FI_ADDR_NOTAVAIL)
		lnx_out(o, " addr %llu", (unsigned long long)peer->addr);
	lnx_out(o, "\nway %s\nbecause %s\n", how, why);
	if (r->sized)
		lnx_out(o, "size %" PRIu64 "\n", r->number);
	if (ep->native)
		return 0;
	if (r->sized && peer->shm_addr != FI_ADDR_NOTAVAIL)
		form_direct(peer, r->number, o);
	else if (r->sized && peer->npath)
		form_framed(ep, peer, r->number, o);
	for (i = 0; i < peer->npath; i++)
		put_path(&c, peer->path[i], o);
	if (!peer->self && peer->shm_addr == FI_ADDR_NOTAVAIL)
		put_pairs(&c, o);
	return 0;
}
