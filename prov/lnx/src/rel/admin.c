/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See admin.h.  Called by ctl/health.c when a health is set, by rel/detect.c and by a
 * timer, and by rel/link_notice.c for what peers tell.
 */
#include "rel/admin.h"

#include "base/interval.h"
#include "core/policy.h"
#include "lnx_wire.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/order.h"
#include "rel/recovery.h"

static unsigned least(unsigned worth, const struct lnx_health *h)
{
	return h->pinned ? LNX_MIN(worth, (unsigned)h->value) : worth;
}

unsigned lnx_admin_remote_weight(const struct lnx_path *path, uint64_t now)
{
	uint64_t told_ns = path->detect.told_ns;

	return told_ns && lnx_ns_since(now, told_ns) < LNX_DRAIN_TRUST_NS ?
	       path->detect.told_weight : LNX_HEALTH_MAX;
}

unsigned lnx_admin_worth(const struct lnx_path *path, uint64_t now)
{
	unsigned w = least(lnx_admin_remote_weight(path, now), &path->detect.health);

	w = least(w, &path->rail->health);
	return least(w, &path->remote->health);
}

/* Connecting for longer than that, a path does not work. */
static uint64_t connecting_ns(const struct lnx_path *path)
{
	return LNX_MIN(LNX_CONNECTING_NS,
		       path->rail->ep->conf->connect_timeout * LNX_NS_PER_MS / 2);
}

static bool works(const struct lnx_path *path, uint64_t now)
{
	switch (path->state) {
	case LNX_PATH_UP:
	case LNX_PATH_IDLE:
		return !lnx_path_link_down(path) && path->rail->core_ep;
	case LNX_PATH_CONNECTING:
		return path->rail->core_ep && path->since_ns &&
		       lnx_ns_since(now, path->since_ns) < connecting_ns(path);
	default:
		return false;
	}
}

/* The path may be used again, once it has answered. */
static void take_back(struct lnx_peer *peer, struct lnx_path *path,
		      uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	g->drained = false;
	if (path->state != LNX_PATH_DOWN)
		return;
	/* For its timers it has been DOWN since now. */
	path->since_ns = now;
	g->down_ns = now;
	g->ping_ns = 0;
	g->pinged = false;
	lnx_path_far_happens(&g->far, LNX_FAR_ANEW, now);
	lnx_detect_watch(peer);
}

void lnx_admin_peer(struct lnx_peer *peer, uint64_t now)
{
	unsigned w[LNX_PATHS_MAX], best = 0, i;
	int first = -1;

	if (peer->npath < 2 || lnx_peer_dead(peer))
		return;
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		w[i] = lnx_admin_worth(path, now);
		if (w[i] > best && works(path, now)) {
			best = w[i];
			first = (int)i;
		}
		/* From then on rel/sched.c asks for its share. */
		if (w[i] < LNX_HEALTH_MAX && !path->detect.health.ready_ns)
			path->detect.health.ready_ns = 1;
	}
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		bool drain = !w[i] && best;

		if (drain && path->state != LNX_PATH_DOWN)
			lnx_detect_path_down(peer, path, "its health was set to 0",
					now);
		if (drain)
			path->detect.drained = true;
		else if (path->detect.drained)
			take_back(peer, path, now);
	}
	if (first >= 0 && w[peer->cur->index] < best)
		peer->cur = peer->path[first];
}

uint64_t lnx_admin_next(const struct lnx_peer *peer, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		next = lnx_next_of(next, path->detect.told_ns + LNX_DRAIN_TRUST_NS, now);
		if (path->state == LNX_PATH_CONNECTING)
			next = lnx_next_of(next, path->since_ns + connecting_ns(path), now);
	}
	return next;
}

/* ---- peers are told ---- */

static bool is_weighted(const struct lnx_rail *rail)
{
	return rail->health.pinned && rail->health.value < LNX_HEALTH_MAX;
}

uint64_t lnx_admin_notice(const struct lnx_rail *rail)
{
	if (rail->link_down)
		return LNX_WIRE_RAIL_DOWN;
	if (!is_weighted(rail))
		return LNX_WIRE_RAIL_UP;
	return rail->health.value ? LNX_WIRE_RAIL_WEIGHT + rail->health.value :
				    LNX_WIRE_RAIL_DRAIN;
}

unsigned lnx_admin_noticed(uint64_t data)
{
	if (data == LNX_WIRE_RAIL_DRAIN)
		return 0;
	return data > LNX_WIRE_RAIL_WEIGHT && data < LNX_WIRE_RAIL_WEIGHT + LNX_HEALTH_MAX ?
	       (unsigned)(data - LNX_WIRE_RAIL_WEIGHT) : LNX_HEALTH_MAX;
}

/*
 * Bits of rails that peers are to use less; also, once, of those they were last told of.
 */
static uint32_t to_tell(struct lnx_ep *ep)
{
	uint32_t now = 0, before = ep->admin.told;
	unsigned i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (is_weighted(ep->rail[i]))
			now |= 1u << i;
	ep->admin.told = now;
	return now | before;
}

static void tell_all(struct lnx_ep *ep, uint32_t rails, uint64_t now)
{
	struct lnx_node *n, *tmp;

	if (ep->admin.told)
		lnx_ep_due(ep, LNX_DUE_ADMIN, now + LNX_DRAIN_REPEAT_NS);
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		/* Other peers do not know us yet. */
		if (peer->npath < 2 || !lnx_peer_open(peer) ||
		    (!lnx_peer_acked(peer) && !peer->chan.rx.next))
			continue;
		peer->address.tell |= rails;
		lnx_detect_watch(peer);
	}
}

uint64_t lnx_admin_run(struct lnx_ep *ep, uint64_t now)
{
	if (!ep->admin.told)
		return LNX_NEVER;
	tell_all(ep, to_tell(ep), now);
	return ep->admin.told ? now + LNX_DRAIN_REPEAT_NS : LNX_NEVER;
}

void lnx_admin_remote(struct lnx_peer *peer, struct lnx_path *path, unsigned weight,
		      uint64_t now)
{
	unsigned was = lnx_admin_remote_weight(path, now);

	path->detect.told_ns = weight < LNX_HEALTH_MAX ? now : 0;
	path->detect.told_weight = weight & 1023;
	if (weight == was)
		return;
	peer->ep->admin.any = true;
	lnx_admin_peer(peer, now);
	lnx_detect_watch(peer);
}

/* ---- what was set by hand ---- */

static LNX_COLD void apply_weights(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;
	uint32_t rails = to_tell(ep);

	if (rails)
		tell_all(ep, rails, now);
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		lnx_admin_peer(peer, now);
		if (peer->address.tell)
			lnx_link_notice_send(peer, now);
	}
}

/* What became DOWN is left, and pinged. */
static LNX_COLD void check_paths(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->peers.all, n, tmp)
		lnx_detect_watch(lnx_list_entry(n, struct lnx_peer, all_link));
}

LNX_COLD void lnx_rel_set(struct lnx_ep *ep, enum lnx_rel_set what, uint64_t now)
{
	switch (what) {
	case LNX_REL_SET_HEALTH:
		lnx_policy_stale(ep);
		check_paths(ep);
		break;
	case LNX_REL_SET_WEIGHT:
		lnx_policy_stale(ep);
		ep->admin.any = true;
		apply_weights(ep, now);
		break;
	case LNX_REL_SET_RULES:
		lnx_order_rules(ep, now);
		break;
	case LNX_REL_SET_ROUTES:
		lnx_link_notice_routes(ep, now);
		break;
	}
}
