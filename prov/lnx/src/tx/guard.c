/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tx/guard.h"

#include <stdlib.h>

#include "comp/comp.h"
#include "comp/faults.h"
#include "comp/links.h"
#include "core/halfway.h"
#include "core/open.h"
#include "core/ping.h"
#include "rx/rx.h"
#include "tx/path.h"
#include "tx/stranger.h"
#include "tx/tx.h"
#include "wire/hdr.h"

#define LOOK_NS		(2 * LNX_NS_PER_MS)	/* between two passes */
#define PATIENCE_MAX	8u			/* times FI_LNX_RAIL_TIMEOUT_MIN */
#define SLOW_BPS	100000000u	/* of a rail whose speed nobody knows */
#define ASK_MAX_NS	(500 * LNX_NS_PER_MS)	/* between two questions */
#define CONNECT_NS	(5 * LNX_NS_PER_MS)	/* a PROBE waits for a connection */
#define PING_LOST_NS	(300 * LNX_NS_PER_MS)	/* without answer for so long */
/* A left path's rail is opened anew: when a read hangs in it, and when its peer's
 * kernel answers but the peer does not.  Then not again for a while. */
#define REOPEN_READ_NS	(20 * LNX_NS_PER_MS)
#define REOPEN_DOWN_NS	(5 * LNX_NS_PER_MS)	/* its link is down */
#define REOPEN_MUTE_NS	(50 * LNX_NS_PER_MS)
#define REOPEN_BLIND_NS	(300 * LNX_NS_PER_MS)
#define HALFWAY_TRIES	8u
#define HALFWAY_POLLS	8u
#define REOPEN_REST_NS	LNX_NS_PER_S
/* A peer is silent: its kernels are asked, again after so long. */
#define SILENT_NS	(500 * LNX_NS_PER_MS)
#define ASK_KERNEL_NS	LNX_NS_PER_S

LNX_COLD void lnx_guard_watch(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (peer->npath < 2 || lnx_list_linked(&peer->guard_link) ||
	    !ep->plan.step[LNX_CLASS_OK])
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

static bool link_down(const struct lnx_path *path)
{
	return path->rail->link_down || path->guard.remote_down;
}

/* ---- leaving ---- */

/* The health of the peer's end: kept in its first path. */
static struct lnx_health *remote_health(struct lnx_peer *peer,
					const struct lnx_path *path)
{
	unsigned i = 0;

	while (peer->path[i].remote_rail != path->remote_rail)
		i++;
	return &peer->path[i].guard.remote;
}

static unsigned remote_rails(const struct lnx_peer *peer)
{
	unsigned i, k, n = 0;

	for (i = 0; i < peer->npath; i++) {
		for (k = 0; k < i; k++)
			if (peer->path[k].remote_rail ==
			    peer->path[i].remote_rail)
				break;
		n += k == i;
	}
	return n;
}

static void good(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;

	lnx_health_good(&path->guard.health, plan, now);
	lnx_health_good(&path->rail->health, plan, now);
	lnx_health_good(remote_health(peer, path), plan, now);
}

LNX_COLD void lnx_guard_blame(struct lnx_peer *peer, struct lnx_path *path,
			      unsigned class, uint64_t now)
{
	struct lnx_ep *ep = peer->ep;
	unsigned who;

	if (class == LNX_CLASS_OK)
		return;
	path->guard.blamed_ns = now;
	lnx_class_count(&ep->stats, class);
	who = lnx_class_pays(class, remote_rails(peer), peer->self);
	lnx_health_fail(&path->guard.health, &ep->plan, class, now);
	if (who & LNX_PAYS_LOCAL)
		lnx_health_fail(&path->rail->health, &ep->plan, class, now);
	if (who & LNX_PAYS_REMOTE)
		lnx_health_fail(remote_health(peer, path), &ep->plan, class,
				now);
}

static LNX_COLD void leave(struct lnx_peer *peer, struct lnx_path *path,
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
	g->pinged = false;
	g->back = false;
	g->unanswered_ns = 0;
	g->probe_ns = 0;
	g->timed_ns = 0;
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

/* ---- is it silent? ---- */

/* Ask the peer over each of the others: one of them may be silent too. */
static LNX_COLD void ask(struct lnx_peer *peer, struct lnx_path *about,
			 uint64_t now)
{
	struct lnx_path_guard *g = &about->guard;
	unsigned i;

	/* What is said of an earlier silence is no answer. */
	if (!g->asked_ns)
		g->nonce++;
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];
		struct lnx_hdr h = {
			.kind = LNX_KIND_PROBE, .tag = 1u + about->index,
			.data = g->nonce,
		};

		if (path != about && usable(path))
			lnx_tx_control_on(peer->ep, peer, path, &h);
	}
	g->asked_ns = now;
}

/* How long what leaves takes to be acknowledged, as often as we look. */
static void take_time(const struct lnx_peer *peer, struct lnx_path *path,
		      uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;

	if (!g->timed_ns) {
		g->timed_seq = peer->tx_posted;
		g->timed_ns = now;
	} else if ((int32_t)(peer->tx_una - g->timed_seq) >= 0) {
		lnx_rtt_sample(&g->rtt, now - g->timed_ns);
		g->timed_ns = 0;
	}
}

/*
 * Nothing came of it since the last look?  Acknowledgements that ride on other frames
 * say nothing of paths, but as long as the oldest frame is not always the same one, no
 * path keeps it back.
 */
static bool still(const struct lnx_peer *peer, const struct lnx_path *path)
{
	const struct lnx_path_guard *g = &path->guard;

	return g->seen == g->moved &&
	       (path->nread || g->seen_seq == peer->tx_una);
}

/*
 * How long may it be silent?  Twice the time that an answer takes: to be wrong costs
 * some frames that arrive twice, so that a machine that stalls now and then should
 * not make this long, as the usual estimate with its variance would.  A piece that is
 * read says nothing before it has ended, and those outstanding share the path.
 */
static uint64_t patience(const struct lnx_path *path,
			 const struct lnx_health_plan *plan)
{
	const struct lnx_path_guard *g = &path->guard;
	uint64_t ns = plan->rail_min_ns, rate = path->read.rate;

	ns = LNX_MAX(ns, LNX_MIN(2 * g->rtt.srtt_ns, PATIENCE_MAX * ns));
	if (!rate)
		rate = path->link_bps / 8;
	if (!rate)
		rate = SLOW_BPS / 8;
	if (path->nread && rate)
		ns += 2 * path->read_bytes * 1000 / LNX_MAX(rate / 1000000, 1u);
	return LNX_MIN(ns, LNX_MAX(plan->rail_ns, plan->rail_min_ns));
}

/*
 * A peer that has never said anything cannot be asked either: to who does not have our
 * hello, we are nobody.  Its frames go to the next path in turn, and no path is left.
 */
static LNX_COLD void elsewhere(struct lnx_peer *peer, struct lnx_path *path)
{
	unsigned i;

	for (i = 1; i < peer->npath; i++) {
		struct lnx_path *next =
			&peer->path[(path->index + i) % peer->npath];

		if (next->state == LNX_PATH_LEFT || !next->rail->core_ep)
			continue;
		lnx_tx_elsewhere(path, peer, next);
		return;
	}
}

/* True: there is something to look after. */
static bool look(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_path_guard *g = &path->guard;
	bool frames = frames_due(peer, path);
	uint64_t gap;

	if (!path->nread && !frames) {
		g->still_ns = 0;
		g->timed_ns = 0;
		return false;
	}
	if (frames)
		take_time(peer, path, now);
	if (!g->still_ns || !still(peer, path)) {
		if (g->still_ns)
			good(peer, path, now);
		g->seen = g->moved;
		g->seen_seq = peer->tx_una;
		g->still_ns = now;
		g->asked_ns = 0;
		g->answered = false;
		return true;
	}
	if (now - g->still_ns < patience(path, plan))
		return true;
	if (g->answered) {
		lnx_guard_blame(peer, path, LNX_CLASS_NETWORK_TIMEOUT, now);
		leave(peer, path, "it delivers nothing, and others do", now);
		return true;
	}
	if (!peer->heard && frames) {
		if (now - g->still_ns >= 2 * patience(path, plan)) {
			elsewhere(peer, path);
			g->still_ns = 0;
		}
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
	uint64_t now;

	if (which >= peer->npath)
		return;
	path = &peer->path[which];
	g = &path->guard;
	now = lnx_clock_ns();
	peer->pong_ns = now;
	lnx_path_heard_of(peer, (unsigned)which, pong->key);
	if (path->state != LNX_PATH_LEFT) {
		g->answered |= g->asked_ns && pong->data == g->nonce;
		return;
	}
	/* It came there and back by the path itself. */
	if (path->rail != rail || !g->pinged || pong->data != g->nonce)
		return;
	g->pinged = false;
	g->back = true;
	g->unanswered_ns = 0;
	lnx_health_pong(&g->health, &peer->ep->plan, now);
	good(peer, path, now);
}

/* ---- back again ---- */

static LNX_COLD void come_back(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_ep *ep = peer->ep;

	LNX_INFO(FI_LOG_EP_DATA, "rail %s: path %u to peer %016llx answers\n",
		 path->rail->name, path->index, (unsigned long long)peer->eid);
	if (path->guard.ping)
		lnx_ping_stop(path->guard.ping);
	path->state = LNX_PATH_UP;
	path->since_ns = 0;
	path->retry_ns = 0;
	path->read_retry_ns = 0;
	path->fail_rest_ns = 0;
	path->guard.still_ns = 0;
	path->guard.asked_ns = 0;
	path->guard.answered = false;
	/* They are in the order of policy. */
	if (path->index < peer->cur)
		peer->cur = path->index;
	ep->stats.paths_back++;
	lnx_tx_want_pump(peer);
	if (peer->pull_left)
		ep->work |= LNX_WORK_PULL;
}

static LNX_COLD void retry_now(struct lnx_rail *rail)
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
			path->retry_ns = 0;
			if (path->state != LNX_PATH_LEFT)
				path->state = LNX_PATH_CONNECTING;
		}
	}
}

/*
 * Nobody is halfway through connecting to the rail, whom closing it would leave behind.
 * False: they do not come to an end.
 */
static LNX_COLD bool at_rest(struct lnx_rail *rail)
{
	unsigned i, k;

	for (i = 0; rail->core_ep && lnx_halfway_end(rail); i++) {
		if (i == HALFWAY_TRIES)
			return false;
		for (k = 0; k < HALFWAY_POLLS; k++)
			lnx_rail_poll(rail);
	}
	return true;
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
	if (!at_rest(rail))
		return;
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
			path->guard.pinged = false;
			path->guard.unanswered_ns = 0;
			lnx_tx_cut(path, peer);
			lnx_pull_cut(path);
		}
	}
	lnx_tx_cut_twins(rail);
	rail->busy = 0;
	retry_now(rail);
	if (lnx_rail_open_ep(rail))
		return;			/* again later, and meanwhile it takes nothing */
	if (lnx_ep_address(ep))
		return;
	ep->work |= LNX_WORK_BUFS;
	lnx_list_foreach(&ep->peers, n, tmp)
		lnx_tx_hello_again(lnx_list_entry(n, struct lnx_peer,
						  all_link));
}

/* Is there a path of another rail to tell the new address over? */
static bool has_other(const struct lnx_peer *peer, const struct lnx_path *path)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i].state == LNX_PATH_UP &&
		    peer->path[i].rail != path->rail)
			return true;
	return false;
}

/* Something that hangs in its core keeps others waiting. */
static bool hangs(struct lnx_peer *peer, const struct lnx_path *path)
{
	return path->nread || lnx_tx_held(path, peer);
}

static bool wants_reopen(struct lnx_peer *peer, const struct lnx_path *path,
			 uint64_t now)
{
	const struct lnx_path_guard *g = &path->guard;
	const struct lnx_rail *rail = path->rail;

	if (!rail->core_ep)
		return true;
	if (hangs(peer, path))
		return now - g->left_ns > (link_down(path) ? REOPEN_DOWN_NS :
						     REOPEN_READ_NS);
	if (g->unanswered_ns)
		return now - g->unanswered_ns > REOPEN_MUTE_NS;
	/* Nobody but the peer can be asked. */
	return g->ping && g->ping->result == LNX_PING_UNKNOWN &&
	       now - g->left_ns > REOPEN_BLIND_NS &&
	       rail->reopened_ns < g->left_ns;
}

static void ping_kernel(struct lnx_path *path)
{
	struct lnx_path_guard *g = &path->guard;
	struct lnx_rail *rail = path->rail;
	uint8_t to[LNX_ADDR_RAW];
	size_t len = sizeof(to);

	if (!g->ping)
		g->ping = calloc(1, sizeof(*g->ping));
	if (!g->ping)
		return;
	lnx_ping_stop(g->ping);
	g->ping->result = LNX_PING_UNKNOWN;
	if (fi_av_lookup(rail->av, path->core_addr, to, &len) ||
	    len > sizeof(to))
		return;
	lnx_ping_start(g->ping, rail->addr, rail->addrlen, to, len, NULL);
}

static void start_ping(struct lnx_path *path, uint64_t now)
{
	ping_kernel(path);
	path->guard.ping_ns = now;
	path->guard.probe_ns = now;
}

static enum lnx_ping_result kernel_says(const struct lnx_path *path)
{
	struct lnx_ping *ping = path->guard.ping;

	if (!ping)
		return LNX_PING_UNKNOWN;
	return ping->result == LNX_PING_WAITING ? lnx_ping_check(ping) :
		(enum lnx_ping_result)ping->result;
}

static void probe(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .tag = 1u + path->index,
		.data = g->nonce + 1,
	};

	if (!path->rail->core_ep)
		return;
	if (lnx_tx_control_on(peer->ep, peer, path, &h)) {
		g->probe_ns = now + CONNECT_NS;	/* it is connecting, perhaps */
		return;
	}
	g->probe_ns = 0;
	g->nonce++;
	g->pinged = true;
}

static LNX_COLD void try_again(struct lnx_peer *peer, struct lnx_path *path,
			       uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_path_guard *g = &path->guard;
	bool spare = has_other(peer, path);
	bool down = link_down(path);
	enum lnx_health_todo todo;

	/* What hangs in it does so be the link up or down. */
	if (down && !hangs(peer, path))
		return;
	if (!down && g->back && lnx_health_usable(&g->health, now)) {
		come_back(peer, path);
		return;
	}
	/* The new address has to be told over another path, and registrations that
	 * belong to the endpoint would go with it. */
	if (spare && !path->rail->mr_endpoint &&
	    wants_reopen(peer, path, now) &&
	    now - path->rail->reopened_ns >= REOPEN_REST_NS) {
		reopen(path->rail, now);
		g->probe_ns = now;
	}
	if (down)
		return;
	while ((todo = lnx_health_poll(&g->health, plan, spare, PING_LOST_NS,
				       now)) != LNX_HEALTH_NOTHING) {
		if (todo == LNX_HEALTH_LOST) {
			lnx_guard_blame(peer, path,
					LNX_CLASS_RESPONSE_TIMEOUT, now);
			continue;
		}
		start_ping(path, now);
	}
	/* It was left although nothing counts against it. */
	if (g->health.value == LNX_HEALTH_MAX && !g->back &&
	    now - g->ping_ns >= plan->first_ns)
		start_ping(path, now);
	switch (kernel_says(path)) {
	case LNX_PING_ALIVE:
		if (!g->unanswered_ns && !g->back) {
			g->unanswered_ns = now;
			g->probe_ns = now;
		}
		break;
	case LNX_PING_REFUSED:
	case LNX_PING_BROKEN:
		g->probe_ns = 0;
		g->unanswered_ns = 0;
		return;
	default:
		break;
	}
	if (g->probe_ns && now >= g->probe_ns)
		probe(peer, path, now);
}

/* ---- links ---- */

static LNX_COLD void link_of(struct lnx_peer *peer, struct lnx_path *path,
			     bool up, const char *why, uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;

	lnx_health_link(&g->health, &peer->ep->plan, !up, now);
	if (!up)
		leave(peer, path, why, now);
	else
		g->probe_ns = now;
}

LNX_COLD void lnx_guard_link(struct lnx_rail *rail, bool up, uint64_t now)
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
	lnx_list_foreach(&ep->peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);
		struct lnx_hdr h = {
			.kind = LNX_KIND_RAIL, .tag = rail->wire_index,
			.data = up,
		};
		struct lnx_path *path;

		if (peer->npath < 2)
			continue;
		for (i = 0; i < peer->npath; i++)
			if (peer->path[i].rail == rail)
				link_of(peer, &peer->path[i], up,
					"its link is down", now);
		path = lnx_path_live(peer);
		/* Who does not hear of it finds out by silence. */
		if (peer->heard && path && usable(path))
			lnx_tx_control_on(ep, peer, path, &h);
	}
}

LNX_COLD void lnx_guard_remote(struct lnx_peer *peer, const struct lnx_hdr *h)
{
	bool up = h->data != 0;
	uint64_t now = lnx_clock_ns();
	unsigned i;

	if (peer->npath < 2 || !peer->ep->plan.step[LNX_CLASS_OK])
		return;
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];

		if (path->remote_rail != h->tag ||
		    path->guard.remote_down == !up)
			continue;
		path->guard.remote_down = !up;
		lnx_health_link(remote_health(peer, path), &peer->ep->plan,
				!up, now);
		link_of(peer, path, up, "the peer's link is down", now);
	}
}

/* ---- a peer of whom nothing comes ---- */

static LNX_COLD void ask_kernels(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i].rail->link_down)
			ping_kernel(&peer->path[i]);
	peer->alive_ns = now;
	peer->asking = true;
}

LNX_COLD int lnx_guard_silent(struct lnx_peer *peer, uint64_t now)
{
	uint64_t limit = peer->ep->plan.transaction_ns;
	unsigned i, refused = 0, unknown = 0, alive = 0;

	if (now - peer->silent_ns < SILENT_NS || !peer->npath)
		return 0;
	if (!peer->asking || now - peer->alive_ns >= ASK_KERNEL_NS)
		ask_kernels(peer, now);
	for (i = 0; i < peer->npath; i++) {
		switch (kernel_says(&peer->path[i])) {
		case LNX_PING_ALIVE:
			alive++;
			/* Somebody is there; who? */
			if (peer->asking)
				lnx_stranger_ask(peer, &peer->path[i]);
			break;
		case LNX_PING_REFUSED:
			refused++;
			break;
		case LNX_PING_UNKNOWN:
			unknown++;
			break;
		default:
			break;
		}
	}
	if (alive) {
		peer->silent_ns = now;	/* it only computes */
		peer->asking = false;
		return 0;
	}
	if (now - peer->silent_ns < limit)
		return 0;
	if (unknown)
		return 0;		/* FI_LNX_CONNECT_TIMEOUT is for those */
	return refused == peer->npath ? FI_ECONNREFUSED : FI_ETIMEDOUT;
}

/* ---- a frame that was lost ---- */

/*
 * A connection that breaks and is made again loses frames that its core had called
 * sent, and delivers the next ones: the path is not silent.  The peer, who answers,
 * lacks the oldest frame for too long: send that again; if it was missing, tx/done.c
 * sends again what left over the same path.
 */
static void look_for_gap(struct lnx_peer *peer, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_txe *txe;
	struct lnx_path *path;

	if (peer->tx_una == peer->tx_posted || peer->tx_una != peer->gap_seq ||
	    !peer->gap_ns) {
		peer->gap_seq = peer->tx_una;
		peer->gap_ns = now;
		return;
	}
	txe = peer->slot[peer->tx_una & (peer->ep->window - 1)];
	if (!txe || txe->path >= peer->npath)
		return;
	path = &peer->path[txe->path];
	if (now - peer->gap_ns < patience(path, plan))
		return;
	if (peer->pong_ns > peer->gap_ns) {
		peer->probe = true;
		peer->gap_ns = now;
		lnx_tx_want_pump(peer);
	} else if (now - path->guard.asked_ns > plan->rail_min_ns) {
		ask(peer, path, now);
	}
}

/* ---- passes ---- */

/*
 * A peer that is no more, and reads of its memory that do not end: until they do, they
 * keep buffers of the application busy.  True: there are some.
 */
static LNX_COLD bool end_reads(struct lnx_peer *peer, uint64_t now)
{
	bool more = false;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];
		struct lnx_path_guard *g = &path->guard;

		if (!path->nread || path->rail->mr_endpoint)
			continue;
		more = true;
		if (!g->still_ns || g->seen != g->moved) {
			g->seen = g->moved;
			g->still_ns = now;
		}
		if (now - g->still_ns > REOPEN_READ_NS &&
		    now - path->rail->reopened_ns >= REOPEN_REST_NS)
			reopen(path->rail, now);
	}
	return more;
}

/* True: peer is to be looked at again.  It is put here when it is put on una_peers. */
static bool run_peer(struct lnx_peer *peer, uint64_t now)
{
	bool more = lnx_list_linked(&peer->una_link);
	unsigned i;

	if (lnx_unlikely(peer->gone || peer->bye))
		return end_reads(peer, now);
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];

		if (lnx_unlikely(path->state == LNX_PATH_LEFT)) {
			try_again(peer, path, now);
			more = true;
		} else {
			more |= look(peer, path, now);
		}
	}
	look_for_gap(peer, now);
	return more;
}

/*
 * A rail that could not be opened anew is nobody's but ours: whom it was closed for
 * may have gone.  True: there is one.
 */
static LNX_COLD bool reopen_closed(struct lnx_ep *ep, uint64_t now)
{
	bool closed = false;
	unsigned i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (lnx_likely(rail->core_ep != NULL))
			continue;
		if (now - rail->reopened_ns >= REOPEN_REST_NS)
			reopen(rail, now);
		closed |= !rail->core_ep;
	}
	return closed;
}

void lnx_guard_run(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;
	bool closed;

	if (now < ep->guard_ns)
		return;
	ep->guard_ns = now + LOOK_NS;
	closed = reopen_closed(ep, now);
	if (ep->netwatch)
		lnx_links_poll(ep, now);
	if (lnx_unlikely(ep->nstray))
		lnx_stranger_tell(ep, now);
	lnx_list_foreach(&ep->guard_peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, guard_link);

		if (!run_peer(peer, now))
			lnx_list_del(&peer->guard_link);
	}
	if (lnx_list_empty(&ep->guard_peers) && !closed && !ep->nstray)
		ep->work &= ~LNX_WORK_GUARD;
}
