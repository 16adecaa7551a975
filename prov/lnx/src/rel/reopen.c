/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rail's core endpoint is closed, because something hangs in it, and a new one
 * opened.  Called by rel/detect.c and rel/recovery.c; calls core/open.c, and tells peers.
 */
#include <stdlib.h>

#include "base/interval.h"
#include "core/half_open.h"
#include "core/open.h"
#include "core/policy.h"
#include "rail/faults.h"
#include "rail/leg.h"
#include "rail/rail.h"
#include "rail/routed_read.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/recovery.h"

#define HALF_OPEN_TRIES	8u
#define HALF_OPEN_POLLS	8u

static LNX_COLD void retry_now(struct lnx_rail *rail)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_list_foreach(&rail->ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = peer->path[i];

			if (path->rail->below != rail)
				continue;
			path->retry_ns = 0;
			lnx_path_happens(path, LNX_PATH_REOPENED);
			lnx_peer_retry_now(peer);
			if (path->state == LNX_PATH_DOWN)
				lnx_detect_watch(peer);
		}
	}
}

/*
 * Wait until no connection to the rail is half open: closing the rail would leave it
 * behind.  False: they do not come to an end.
 */
static LNX_COLD bool half_open_none(struct lnx_rail *rail)
{
	unsigned i, k;

	for (i = 0; rail->core_ep && lnx_half_open_end(rail); i++) {
		if (i == HALF_OPEN_TRIES)
			return false;
		for (k = 0; k < HALF_OPEN_POLLS; k++)
			lnx_rail_poll(rail);
	}
	return true;
}

/*
 * Does a path over the rail work?  If no peer has a path over it, one may still come.
 */
static LNX_COLD bool in_use(const struct lnx_rail *rail)
{
	struct lnx_node *n, *tmp;
	bool down = false;
	unsigned i;

	lnx_list_foreach(&rail->ep->peers.all, n, tmp) {
		const struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		if (!lnx_peer_open(peer))
			continue;
		for (i = 0; i < peer->npath; i++) {
			if (peer->path[i]->rail->below != rail)
				continue;
			if (peer->path[i]->state != LNX_PATH_DOWN)
				return true;
			down = true;
		}
	}
	return !down && !rail->link_down;
}

static LNX_COLD void cut_clones(struct lnx_rail *leg, bool arg, uint64_t now)
{
	(void)arg, (void)now;
	lnx_failover_cut_clones(leg);
}

LNX_COLD void lnx_reopen_rail(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	unsigned i, port;
	bool cut_off;

	rail->reopened_ns = now;
	if (!half_open_none(rail))
		return;
	ep->stats.reopened++;
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: closed\n", rail->name);
	/* No peer may go on using an old connection. */
	cut_off = lnx_address_ack_keep(rail, now, &port);
	if (cut_off)
		lnx_half_open_reset(rail);
	lnx_detect_aborted(rail, now);
	rail->driver->close(rail);
	lnx_faults_forget_rail(rail);
	lnx_legs_cut(rail);
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = peer->path[i];

			if (path->rail->below != rail)
				continue;
			path->detect.pinged = false;
			lnx_path_far_happens(&path->detect.far, LNX_FAR_REOPENED, now);
			lnx_failover_cut(path, peer);
			if (lnx_rail_is_leg(path->rail))
				lnx_routed_forget(path);
			ep->up->path_cut(path);
			if (path->state == LNX_PATH_DOWN)
				lnx_detect_watch(peer);
		}
	}
	lnx_failover_cut_clones(rail);
	lnx_gateways_legs(rail, cut_clones, false, now);
	rail->closed = true;
	lnx_ep_due(ep, LNX_DUE_RAILS, now + LNX_LOOK_MIN_NS);
	if (in_use(rail) || (cut_off && !rail->link_down))
		lnx_reopen_open(rail, now);
}

LNX_COLD void lnx_reopen_open(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	uint8_t was[sizeof(rail->addr)];
	size_t was_len = rail->addrlen;
	unsigned port;

	rail->closed = false;
	rail->reopened_ns = now;
	retry_now(rail);
	memcpy(was, rail->addr, sizeof(was));
	rail->unannounced = lnx_address_ack_keep(rail, now, &port) ?
		      (uint8_t)(rail->unannounced + 1) : 0;
	/* Another process may have taken that port meanwhile. */
	if ((!port || rail->driver->reopen(rail, port)) && rail->driver->reopen(rail, 0)) {
		/* Until then it takes nothing. */
		lnx_ep_due(ep, LNX_DUE_RAILS, now + LNX_REOPEN_BACKOFF_NS);
		return;
	}
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: opened anew, port %u\n", rail->name,
		 lnx_rail_port(rail));
	ep->work |= LNX_WORK_BUFS;
	if (rail->addrlen == was_len && !memcmp(was, rail->addr, was_len))
		return;
	if (lnx_ep_address(ep))
		return;
	lnx_policy_rails(ep);
	rail->moved_epoch = ep->address.epoch;
	lnx_list_foreach(&ep->peers.all, n, tmp)
		lnx_rel_hello(lnx_list_entry(n, struct lnx_peer, all_link), true);
}

static bool may_reopen(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return lnx_peer_detects(peer) && !path->rail->mr_endpoint;
}

/* After so long what is in a path to a dead peer hangs; 0: nothing is. */
static LNX_COLD uint64_t hangs_after_ns(struct lnx_peer *peer, const struct lnx_path *path)
{
	bool reads = path->nread || !lnx_list_empty(&path->gets);

	if (!reads && !lnx_failover_in_core(path, peer))
		return 0;
	return reads && lnx_peer_detects(peer) ? LNX_REOPEN_READ_NS : LNX_HANGS_NS;
}

/* Does something hang there, too, or will it before the next look? */
static LNX_COLD bool cut_with(struct lnx_peer *peer, const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;
	uint64_t wait_ns;

	if (g->cut || !g->silence.since_ns || g->silence.progress != g->progress)
		return false;
	wait_ns = hangs_after_ns(peer, path);
	return wait_ns && lnx_ns_since(now, g->silence.since_ns) > wait_ns - wait_ns / 4;
}

/* Paths of dead peers over rail, cut by one look through its connections: they are many when a
 * node dies. */
struct ending {
	struct lnx_cut *cut;
	unsigned n;
};

static LNX_COLD void note(struct ending *e, struct lnx_path *path)
{
	if (e->cut)
		e->cut[e->n] = (struct lnx_cut){ .path = path };
	e->n++;
}

/* All that are to be cut with path, which is the first one. */
static LNX_COLD void note_all(struct ending *e, struct lnx_path *path, uint64_t now)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	e->n = 0;
	note(e, path);
	lnx_list_foreach(&path->rail->ep->peers.ended, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, session.ended_link);

		for (i = 0; i < peer->npath; i++)
			if (peer->path[i] != path && peer->path[i]->rail == path->rail &&
			    cut_with(peer, peer->path[i], now))
				note(e, peer->path[i]);
	}
}

/* Those in which nothing was found, as it was early, are looked at again, each by its peer. */
static LNX_COLD bool cut_all(struct lnx_path *path, uint64_t now)
{
	struct ending e = { .cut = NULL };
	bool found = false;
	unsigned i;

	note_all(&e, path, now);
	e.cut = e.n > 1 ? malloc(e.n * sizeof(*e.cut)) : NULL;
	if (!e.cut)
		return lnx_half_open_cut(path->rail, path->core_addr) != 0;
	note_all(&e, path, now);
	lnx_half_open_sort(e.cut, e.n);
	lnx_half_open_cut_all(path->rail, e.cut, e.n);
	for (i = 0; i < e.n; i++) {
		struct lnx_path_detect *g = &e.cut[i].path->detect;

		g->cut = e.cut[i].ncut || e.cut[i].path == path ||
			 lnx_ns_since(now, g->silence.since_ns) > LNX_HANGS_NS;
		if (e.cut[i].ncut)
			g->silence.since_ns = now;
		if (e.cut[i].path == path)
			found = e.cut[i].ncut != 0;
	}
	free(e.cut);
	return found;
}

/*
 * Something hangs in a path to a dead peer.  Its connection is cut.  If that does not help,
 * the rail's endpoint is opened anew, at another port; but not if it is the only path: then
 * other peers could not be told where it is.
 */
static void end_held(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;
	bool cut = g->cut;

	g->cut = true;
	g->silence.since_ns = now;
	if (!cut && (lnx_rail_is_leg(path->rail) ?
		     lnx_leg_cut(lnx_container_of(path->rail, struct lnx_leg, rail),
				 now - LNX_HANGS_NS) : cut_all(path, now)))
		return;
	if (may_reopen(peer, path) &&
	    lnx_ns_since(now, path->rail->reopened_ns) >= LNX_REOPEN_BACKOFF_NS)
		lnx_reopen_rail(path->rail, now);
}

LNX_COLD uint64_t lnx_reopen_end_held(struct lnx_peer *peer, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		struct lnx_path_detect *g = &path->detect;
		uint64_t wait_ns = hangs_after_ns(peer, path);

		if (!wait_ns || (g->cut && !may_reopen(peer, path)))
			continue;
		next = lnx_sooner(next, now + wait_ns / 4);
		if (!g->silence.since_ns || g->silence.progress != g->progress) {
			g->silence.progress = g->progress;
			g->silence.since_ns = now;
		}
		if (lnx_ns_since(now, g->silence.since_ns) > wait_ns)
			end_held(peer, path, now);
	}
	return next;
}

LNX_COLD uint64_t lnx_reopen_closed(struct lnx_ep *ep, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (lnx_likely(rail->core_ep != NULL))
			continue;
		if (rail->closed ? in_use(rail) : lnx_ns_since(now, rail->reopened_ns) >=
						LNX_REOPEN_BACKOFF_NS)
			lnx_reopen_open(rail, now);
		if (rail->core_ep)
			continue;
		/* Or when a frame is to take it. */
		next = lnx_sooner(next, rail->closed ?
			       now + LNX_MIN(lnx_ns_since(now, rail->reopened_ns) / 2,
					     LNX_RECOVERY_LOOK_NS) :
			       rail->reopened_ns + LNX_REOPEN_BACKOFF_NS);
	}
	return next == LNX_NEVER ? next : LNX_MAX(next, now + LNX_LOOK_MIN_NS);
}
