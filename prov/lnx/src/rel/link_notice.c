/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links that go down and come up: this host's, reported by comp/links.c, and the
 * peer's, reported by its RAIL.  No PROBE is needed: paths go DOWN, or are tried again,
 * at once.  Routes that the user changes do the same to the paths over them.
 */
#include "core/path_set.h"
#include "core/policy.h"
#include "rail/rail.h"
#include "rel/admin.h"
#include "rel/backoff.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/order.h"
#include "rel/recovery.h"
#include "wire/hdr.h"

static LNX_COLD void link_of(struct lnx_peer *peer, struct lnx_path *path,
			     bool up, const char *why, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	lnx_health_link(&g->health, &peer->ep->plan, !up, now);
	lnx_policy_stale(peer->ep);
	if (!up)
		lnx_detect_path_down(peer, path, why, now);
	else
		g->probe_ns = now;
}

/* Tell the present state of a rail's link.  True: a core took the frame. */
static LNX_COLD bool tell(struct lnx_peer *peer, const struct lnx_rail *rail,
			  uint64_t now)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_RAIL, .tag = rail->wire_index,
		.data = lnx_admin_notice(rail),
	};
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path =
			peer->path[(peer->cur->index + i) % peer->npath];

		if (path->state == LNX_PATH_DOWN ||
		    (path->state == LNX_PATH_CONNECTING &&
		     now < path->retry_ns))
			continue;
		if (!lnx_control_send_on(peer->ep, peer, path, &h))
			return true;
		lnx_backoff_refused(path, now);
	}
	return false;
}

LNX_COLD void lnx_link_notice_send(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_ep *ep = peer->ep;
	unsigned i;

	for (i = 0; i < ep->nrail; i++)
		if ((peer->address.tell >> i & 1) && tell(peer, ep->rail[i], now))
			peer->address.tell &= ~(1u << i);
}

LNX_COLD uint64_t lnx_link_notice_next(const struct lnx_peer *peer, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	if (!peer->address.tell)
		return LNX_NEVER;
	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->state != LNX_PATH_DOWN)
			next = lnx_sooner(next, LNX_MAX(now, peer->path[i]->retry_ns));
	return next;
}

static LNX_COLD void link_changed(struct lnx_rail *rail, bool up, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	unsigned i;

	if (rail->link_down == !up)
		return;
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: its link is %s\n", rail->name,
		 up ? "up" : "down");
	rail->link_down = !up;
	ep->stats.link_downs += !up;
	lnx_health_link(&rail->health, &ep->plan, !up, now);
	if (!ep->plan.step[LNX_CLASS_OK])
		return;
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		if (!up && peer->npath == 1 && peer->path[0]->rail == rail)
			lnx_link_notice_standby(peer);
		if (peer->npath < 2)
			continue;
		for (i = 0; i < peer->npath; i++)
			if (peer->path[i]->rail == rail)
				link_of(peer, peer->path[i], up,
					"its link is down", now);
		/* Other peers do not know us yet. */
		if (!lnx_peer_acked(peer) && !peer->chan.rx.next)
			continue;
		for (i = 0; i < ep->nrail; i++)
			if (ep->rail[i] == rail)
				peer->address.tell |= 1u << i;
		lnx_link_notice_send(peer, now);
		lnx_detect_watch(peer);
	}
}

LNX_COLD void lnx_rel_link(struct lnx_rail *rail, enum lnx_rel_link what, uint64_t now)
{
	if (what == LNX_REL_LINK_MOVED)
		lnx_reopen_rail(rail, now);
	else
		link_changed(rail, what == LNX_REL_LINK_UP, now);
	/* The address of a leg is that of its gateway. */
	if (what != LNX_REL_LINK_MOVED)
		lnx_gateways_legs(rail, link_changed, what == LNX_REL_LINK_UP, now);
}

LNX_COLD void lnx_link_notice_standby(struct lnx_peer *peer)
{
	if (lnx_path_set_standby(peer))
		lnx_hello_window(peer);
}

/* Paths that routes lead over again are used without being asked first: nothing is known against
 * them.  A guess between groups is asked. */
static LNX_COLD void take_back(struct lnx_peer *peer, unsigned back, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (!(back >> i & 1))
			continue;
		path->retry_ns = path->backoff_ns = 0;
		path->detect.probe_ns = now;
		if (path->state == LNX_PATH_DOWN && lnx_rail_is_leg(path->rail))
			lnx_recovery_restore(peer, path, now);
	}
	lnx_peer_retry_now(peer);
}

static LNX_COLD void routes_of(struct lnx_peer *peer, uint64_t now)
{
	unsigned left, back, i;

	if (!lnx_peer_open(peer) || !lnx_path_set_routes(peer, &left, &back))
		return;
	lnx_hello_window(peer);
	lnx_order_make(peer, now);
	/* First those that are there: there the others' frames go. */
	take_back(peer, back, now);
	/* A leg that is the only path takes nothing more, and that is all (rail/leg.c). */
	for (i = 0; i < peer->npath && lnx_peer_detects(peer); i++)
		if ((left >> i & 1) && peer->path[i]->state != LNX_PATH_DOWN)
			lnx_detect_path_down(peer, peer->path[i],
					     lnx_rail_is_leg(peer->path[i]->rail) ?
					     "no route leads over it any more" :
					     "routes lead to the peer", now);
	lnx_detect_watch(peer);
}

LNX_COLD void lnx_link_notice_routes(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;

	lnx_policy_stale(ep);
	lnx_list_foreach(&ep->peers.all, n, tmp)
		routes_of(lnx_list_entry(n, struct lnx_peer, all_link), now);
}

LNX_COLD void lnx_link_notice_trust(struct lnx_peer *peer, struct lnx_path *path,
				bool up, uint64_t now)
{
	path->detect.remote_down = !up;
	lnx_health_link(&path->remote->health, &peer->ep->plan,
			!up, now);
	link_of(peer, path, up, "the peer's link is down", now);
}

LNX_COLD void lnx_link_notice_rx(struct lnx_peer *peer, const struct lnx_hdr *h)
{
	bool up = h->data != LNX_WIRE_RAIL_DOWN;
	uint64_t now = lnx_clock_ns();
	unsigned i;

	if (!peer->ep->plan.step[LNX_CLASS_OK])
		return;
	if (!up && peer->npath == 1 && peer->path[0]->remote_rail == h->tag)
		lnx_link_notice_standby(peer);
	if (peer->npath < 2)
		return;
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (path->remote_rail != h->tag)
			continue;
		if (path->detect.remote_down == up)
			lnx_link_notice_trust(peer, path, up, now);
		lnx_admin_remote(peer, path, lnx_admin_noticed(h->data), now);
		lnx_detect_watch(peer);
	}
}
