/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tx/guard.h"

#include "comp/comp.h"
#include "comp/faults.h"
#include "core/open.h"
#include "rx/rx.h"
#include "tx/path.h"
#include "tx/tx.h"
#include "wire/hdr.h"

#define LOOK_NS		(2 * LNX_NS_PER_MS)	/* between two passes */
#define QUIET_NS	(30 * LNX_NS_PER_MS)	/* without news: ask */
#define ASK_MAX_NS	(500 * LNX_NS_PER_MS)	/* between two questions */
#define PING_MIN_NS	(20 * LNX_NS_PER_MS)
#define PING_MAX_NS	LNX_NS_PER_S
/* A path was left, and its rail is opened anew: when a read hangs in it, and when
 * its pings are not answered.  Then not again for a while. */
#define REOPEN_READ_NS	(50 * LNX_NS_PER_MS)
#define REOPEN_IDLE_NS	(300 * LNX_NS_PER_MS)
#define REOPEN_REST_NS	LNX_NS_PER_S

LNX_COLD void lnx_guard_watch(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (peer->npath < 2 || lnx_list_linked(&peer->guard_link))
		return;
	lnx_list_add_tail(&ep->guard_peers, &peer->guard_link);
	ep->work |= LNX_WORK_GUARD;
}

static bool frames_due(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return peer->tx_una != peer->tx_posted &&
	       lnx_path_in_flight(peer, path);
}

static bool usable(const struct lnx_path *path)
{
	return path->state == LNX_PATH_UP || path->state == LNX_PATH_IDLE;
}

/* ---- is it silent? ---- */

/* Ask the peer over each of the others: one of them may be silent too. */
static LNX_COLD void ask(struct lnx_peer *peer, struct lnx_path *about,
			 uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];
		struct lnx_hdr h = {
			.kind = LNX_KIND_PROBE, .tag = 1u + about->index,
		};

		if (path != about && usable(path))
			lnx_tx_control_on(peer->ep, peer, path, &h);
	}
	about->guard.asked_ns = now;
}

LNX_COLD void lnx_guard_leave(struct lnx_peer *peer, struct lnx_path *path,
			      const char *why, uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;
	unsigned i;

	if (path->state == LNX_PATH_LEFT || peer->npath < 2 || peer->gone)
		return;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: path %u to peer %016llx is left: %s\n",
		       path->rail->name, path->index,
		       (unsigned long long)peer->eid, why);
	path->state = LNX_PATH_LEFT;
	path->since_ns = now;		/* none takes anything: peers are given up */
	g->left_ns = now;
	g->ping_ns = now;
	g->ping_gap_ns = PING_MIN_NS;
	g->pinged = false;
	g->reopened_ns = 0;
	peer->ep->stats.paths_left++;
	if (peer->cur == path->index)
		for (i = 0; i < peer->npath; i++)
			if (usable(&peer->path[i])) {
				peer->cur = (uint8_t)i;
				break;
			}
	lnx_tx_leave(path, peer);
	lnx_pull_leave(path);
	lnx_guard_watch(peer);
}

/* True: there is something to look after. */
static bool look(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;
	uint64_t gap;

	if (!path->nread && !frames_due(peer, path)) {
		g->still_ns = 0;
		return false;
	}
	if (!g->still_ns || g->seen != g->moved) {
		g->seen = g->moved;
		g->still_ns = now;
		g->asked_ns = 0;
		g->answered = false;
		return true;
	}
	if (now - g->still_ns < QUIET_NS)
		return true;
	if (g->answered) {
		lnx_guard_leave(peer, path, "it delivers nothing, and others do",
				now);
		return true;
	}
	gap = LNX_MIN((now - g->still_ns) / 2, ASK_MAX_NS);
	if (!g->asked_ns || now - g->asked_ns >= gap)
		ask(peer, path, now);
	return true;
}

LNX_COLD void lnx_guard_pong(struct lnx_peer *peer, const struct lnx_rail *rail,
			     const struct lnx_hdr *pong)
{
	uint64_t which = pong->tag - 1;
	struct lnx_path_guard *g;
	struct lnx_path *path;

	if (which >= peer->npath)
		return;
	path = &peer->path[which];
	g = &path->guard;
	lnx_path_heard_of(peer, (unsigned)which, pong->key);
	if (path->state != LNX_PATH_LEFT) {
		g->answered = g->asked_ns != 0;
		return;
	}
	/* It came there and back by the path itself. */
	if (path->rail != rail || !g->pinged || pong->data != g->nonce)
		return;
	LNX_INFO(FI_LOG_EP_DATA, "rail %s: path %u to peer %016llx answers\n",
		 path->rail->name, path->index, (unsigned long long)peer->eid);
	path->state = LNX_PATH_UP;
	path->since_ns = 0;
	path->read_retry_ns = 0;
	path->fail_rest_ns = 0;
	g->still_ns = 0;
	g->pinged = false;
	peer->ep->stats.paths_back++;
	lnx_tx_want_pump(peer);
	if (peer->pull_left)
		peer->ep->work |= LNX_WORK_PULL;
}

/* ---- back again ---- */

/* No frame is to be handed to a rail that could not be opened again. */
static LNX_COLD void set_retry(struct lnx_rail *rail, uint64_t at)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_list_foreach(&rail->ep->peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = &peer->path[i];

			if (path->rail != rail)
				continue;
			path->retry_ns = at;
			if (path->state != LNX_PATH_LEFT)
				path->state = LNX_PATH_CONNECTING;
		}
	}
}

/*
 * Close the rail's core endpoint, and with it all connections, and open another.
 * What was on its way goes out again; registrations stay as they are.
 */
static LNX_COLD void reopen(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	unsigned i;

	rail->reopened_ns = now;
	ep->stats.reopened++;
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: opened anew\n", rail->name);
	lnx_rail_shut_ep(rail);
	lnx_rail_drain(rail);
	lnx_faults_forget_rail(rail);
	lnx_list_foreach(&ep->peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = &peer->path[i];

			if (path->rail != rail)
				continue;
			path->guard.reopened_ns = now;
			lnx_tx_cut(path, peer);
			lnx_pull_cut(path);
		}
	}
	lnx_tx_cut_twins(rail);
	rail->busy = 0;
	if (lnx_rail_open_ep(rail)) {
		set_retry(rail, UINT64_MAX);
		return;
	}
	set_retry(rail, 0);
	if (lnx_ep_address(ep))
		return;
	ep->work |= LNX_WORK_BUFS;
	lnx_list_foreach(&ep->peers, n, tmp)
		lnx_tx_hello_again(lnx_list_entry(n, struct lnx_peer,
						  all_link));
}

static bool may_reopen(const struct lnx_peer *peer, const struct lnx_path *path,
		       uint64_t now)
{
	const struct lnx_rail *rail = path->rail;
	unsigned i;

	/* Registrations that belong to the endpoint would go with it. */
	if (rail->mr_endpoint ||
	    (rail->reopened_ns && now - rail->reopened_ns < REOPEN_REST_NS))
		return false;
	/* The new address has to be told over another path. */
	for (i = 0; i < peer->npath; i++)
		if (peer->path[i].state == LNX_PATH_UP &&
		    peer->path[i].rail != rail)
			return true;
	return false;
}

static LNX_COLD void try_again(struct lnx_peer *peer, struct lnx_path *path,
			       uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .tag = 1u + path->index,
	};

	if (!path->rail->core_ep ||
	    ((path->nread ? now - g->left_ns > REOPEN_READ_NS :
			    now - g->left_ns > REOPEN_IDLE_NS) &&
	     !g->reopened_ns)) {
		if (may_reopen(peer, path, now)) {
			reopen(path->rail, now);
			g->ping_ns = now;
			g->ping_gap_ns = PING_MIN_NS;
		}
	}
	if (now < g->ping_ns || !path->rail->core_ep)
		return;
	h.data = ++g->nonce;
	g->pinged = true;
	if (lnx_tx_control_on(peer->ep, peer, path, &h)) {
		/* It is connecting, perhaps. */
		g->ping_ns = now + PING_MIN_NS;
		return;
	}
	g->ping_ns = now + g->ping_gap_ns;
	g->ping_gap_ns = LNX_MIN(g->ping_gap_ns * 2, PING_MAX_NS);
}

/* True: peer is to be looked at again.  It is put here when it is put on una_peers. */
static bool run_peer(struct lnx_peer *peer, uint64_t now)
{
	bool more = lnx_list_linked(&peer->una_link);
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];

		if (lnx_unlikely(path->state == LNX_PATH_LEFT)) {
			try_again(peer, path, now);
			more = true;
		} else {
			more |= look(peer, path, now);
		}
	}
	return more && !peer->gone && !peer->bye;
}

void lnx_guard_run(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;

	if (now < ep->guard_ns)
		return;
	ep->guard_ns = now + LOOK_NS;
	lnx_list_foreach(&ep->guard_peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, guard_link);

		if (!run_peer(peer, now))
			lnx_list_del(&peer->guard_link);
	}
	if (lnx_list_empty(&ep->guard_peers))
		ep->work &= ~LNX_WORK_GUARD;
}
