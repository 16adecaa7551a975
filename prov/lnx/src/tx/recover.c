/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A path that was left: pinged, asked about, opened anew, and used again.  Called by
 * tx/guard.c.
 */
#include <stdlib.h>

#include "core/open.h"
#include "core/ways.h"
#include "rx/rx.h"
#include "tx/guard.h"
#include "tx/heal.h"
#include "tx/path.h"
#include "tx/tx.h"
#include "wire/hdr.h"

#define CONNECT_NS	(5 * LNX_NS_PER_MS)	/* a PROBE waits for a connection */
#define PING_LOST_NS	(300 * LNX_NS_PER_MS)	/* without answer for so long */
/* When a rail is opened anew: when its link is down or something hangs in it; when
 * its peer's kernel answers but the peer does not; when nobody can be asked. */
#define REOPEN_DOWN_NS	(5 * LNX_NS_PER_MS)
#define REOPEN_MUTE_NS	(50 * LNX_NS_PER_MS)
#define REOPEN_BLIND_NS	(300 * LNX_NS_PER_MS)
/* So long a peer is believed that its link is down. */
#define BELIEVE_NS	LNX_NS_PER_S
/* Before what hangs in a path that was left by hand is taken for lost. */
#define SPARED_NS	LNX_NS_PER_S
/* Of two who have no other path, one waits a little longer than the other. */
#define REOPEN_YIELD_NS	(250 * LNX_NS_PER_MS)
/* A peer that is not where it should be is looked for so long if nothing is due. */
#define LOOK_FOR_NS	(60 * LNX_NS_PER_S)
#define REFUSED_PING_NS	(50 * LNX_NS_PER_MS)	/* at least; longer each time */

void lnx_guard_ping(struct lnx_path *path)
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

enum lnx_ping_result lnx_guard_kernel(const struct lnx_path *path)
{
	struct lnx_ping *ping = path->guard.ping;

	if (!ping)
		return LNX_PING_UNKNOWN;
	return ping->result == LNX_PING_WAITING ? lnx_ping_check(ping) :
		(enum lnx_ping_result)ping->result;
}

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
	path->rail->blind = 0;
	/* They are in the order of policy. */
	if (path->index < peer->cur)
		peer->cur = path->index;
	ep->stats.paths_back++;
	lnx_tx_want_pump(peer);
	if (peer->pull_left)
		ep->work |= LNX_WORK_PULL;
}

/* Something that hangs in its core keeps others waiting. */
static bool hangs(struct lnx_peer *peer, const struct lnx_path *path)
{
	return path->nread || !lnx_list_empty(&path->gets) ||
	       lnx_tx_held(path, peer);
}

static bool wants_reopen(struct lnx_peer *peer, const struct lnx_path *path,
			 uint64_t now)
{
	const struct lnx_path_guard *g = &path->guard;
	const struct lnx_rail *rail = path->rail;

	if (!rail->core_ep)
		return false;
	if (hangs(peer, path))
		return lnx_ns_since(now, g->left_ns) >
		       (lnx_guard_link_down(path) ? REOPEN_DOWN_NS :
						    LNX_REOPEN_READ_NS);
	if (g->unanswered_ns)
		return lnx_ns_since(now, g->unanswered_ns) > REOPEN_MUTE_NS;
	/* Nobody but the peer can be asked. */
	return g->ping && g->ping->result == LNX_PING_UNKNOWN &&
	       lnx_ns_since(now, g->left_ns) > REOPEN_BLIND_NS &&
	       rail->reopened_ns < g->left_ns;
}

/*
 * There is no other path.  A connection that hangs is reset for good, and it is enough
 * if one of the two does so; but who is not where the peer looks for him has to go
 * there in any case (tx/told.c).
 */
static bool wants_reopen_blindly(const struct lnx_peer *peer,
				 const struct lnx_path *path, bool due,
				 uint64_t now)
{
	const struct lnx_path_guard *g = &path->guard;
	bool astray = lnx_told_port(path) != lnx_rail_port(path->rail);
	uint64_t wait = astray || peer->ep->eid < peer->eid ?
			REOPEN_MUTE_NS : REOPEN_YIELD_NS;

	if (!path->rail->core_ep)
		return false;
	if (g->unanswered_ns)
		return lnx_ns_since(now, g->unanswered_ns) > wait;
	return astray && g->refused_ns &&
	       lnx_ns_since(now, g->refused_ns) > wait &&
	       (due || lnx_ns_since(now, g->left_ns) < LOOK_FOR_NS);
}

static void start_ping(struct lnx_path *path, uint64_t now)
{
	lnx_guard_ping(path);
	path->guard.ping_ns = now;
	path->guard.moved_away = false;
	path->guard.probe_ns = now;
}

static void probe(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .tag = 1u + path->index,
		.data = g->nonce + 1,
	};
	int ret = -FI_ENOSYS;

	if (!path->rail->core_ep)
		return;
	/* Where it is now, the peer may not have heard, or not yet. */
	if (path->rail->reopened_ns)
		ret = lnx_tx_probe_from(peer, path, &h);
	g->probe_moves = ret == -FI_ENOSYS ? 0 : peer->ep->moves;
	if (ret == -FI_ENOSYS)
		ret = lnx_tx_control_on(peer->ep, peer, path, &h);
	if (ret) {
		g->probe_ns = now + CONNECT_NS;	/* it is connecting, perhaps */
		return;
	}
	g->probe_ns = 0;
	g->nonce++;
	g->pinged = true;
}

LNX_COLD void lnx_guard_asked(struct lnx_path *path, const struct lnx_rail *rail)
{
	struct lnx_path_guard *g = &path->guard;

	if (path->state != LNX_PATH_LEFT || path->rail != rail || g->back)
		return;
	/* The peer can be reached: what is known of its kernel is old. */
	g->moved_away = true;
	g->probe_ns = 1;
	if (g->unanswered_ns)
		g->unanswered_ns = lnx_clock_ns();
}

/*
 * Its host says that nobody is there, and there is no other path for it to tell where
 * it is: it may be back where it was before.
 */
static void look_elsewhere(struct lnx_peer *peer, struct lnx_path *path,
			   uint64_t now)
{
	struct lnx_path_guard *g = &path->guard;

	if (lnx_ns_since(now, g->ping_ns) <
	    LNX_MAX(REFUSED_PING_NS, lnx_ns_since(now, g->refused_ns) / 4))
		return;
	lnx_ways_before(peer, path);
	start_ping(path, now);
}

/* Would an endpoint of ours be of use there? */
static bool reachable(const struct lnx_path *path, enum lnx_ping_result says,
		      uint64_t now)
{
	switch (says) {
	case LNX_PING_ALIVE:
	case LNX_PING_REFUSED:		/* the peer has closed its own as well */
		return true;
	case LNX_PING_UNKNOWN:
		return path->guard.moved_away ||
		       lnx_ns_since(now, path->rail->reopened_ns) >
			       REOPEN_BLIND_NS;
	default:
		return false;
	}
}

LNX_COLD void lnx_guard_try(struct lnx_peer *peer, struct lnx_path *path,
			       uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_path_guard *g = &path->guard;
	bool spare = lnx_guard_other(peer, path, now);
	bool due = lnx_list_linked(&peer->una_link);
	enum lnx_ping_result says;
	enum lnx_health_todo todo;
	bool down;

	if (g->remote_down && lnx_ns_since(now, g->left_ns) >= BELIEVE_NS)
		lnx_guard_believe(peer, path, true, now);
	down = lnx_guard_link_down(path);
	/* What hangs in it does so be the link up or down. */
	if (down && !hangs(peer, path))
		return;
	/* It delivers, for all we know: what is in it comes to an end. */
	if (lnx_unlikely(g->spared) &&
	    (!hangs(peer, path) || lnx_ns_since(now, g->left_ns) < SPARED_NS))
		return;
	/* What hangs in a connection of before would do so for long. */
	if (!down && g->back &&
	    (g->health.pinned || lnx_health_usable(&g->health, now)) &&
	    (!spare || !path->nread)) {
		come_back(peer, path);
		return;
	}
	/* Registrations that belong to the endpoint would go with it. */
	if (!path->rail->mr_endpoint &&
	    lnx_ns_since(now, path->rail->reopened_ns) >= LNX_REOPEN_REST_NS &&
	    (spare ? wants_reopen(peer, path, now) :
		     wants_reopen_blindly(peer, path, due, now))) {
		lnx_guard_reopen(path->rail, now);
		if (!down && !g->spared)
			start_ping(path, now);
	}
	if (down || g->spared)
		return;
	/* What has come is looked at before it is asked for again: that may be long
	 * after the last time. */
	says = g->moved_away ? LNX_PING_WAITING : lnx_guard_kernel(path);
	while ((todo = lnx_health_poll(&g->health, plan, spare || due,
				       PING_LOST_NS, now)) != LNX_HEALTH_NOTHING) {
		if (todo == LNX_HEALTH_LOST) {
			lnx_guard_blame(peer, path,
					LNX_CLASS_RESPONSE_TIMEOUT, now);
			continue;
		}
		start_ping(path, now);
	}
	/* It was left although nothing counts against it. */
	if (g->health.value == LNX_HEALTH_MAX && !g->back &&
	    lnx_ns_since(now, g->ping_ns) >= plan->first_ns)
		start_ping(path, now);
	if (says != LNX_PING_ALIVE && says != LNX_PING_REFUSED)
		says = lnx_guard_kernel(path);
	if (path->rail->shut && reachable(path, says, now))
		lnx_guard_open(path->rail, now);
	/* It was asked at the peer's old address. */
	if (g->moved_away)
		says = LNX_PING_UNKNOWN;
	switch (says) {
	case LNX_PING_ALIVE:
		g->refused_ns = 0;
		if (!g->unanswered_ns && !g->back) {
			g->unanswered_ns = now;
			g->probe_ns = now;
		}
		break;
	case LNX_PING_REFUSED:
		g->probe_ns = 0;
		g->unanswered_ns = 0;
		if (!g->refused_ns)
			g->refused_ns = now;
		if (!spare)
			look_elsewhere(peer, path, now);
		return;
	case LNX_PING_BROKEN:
		g->probe_ns = 0;
		g->unanswered_ns = 0;
		g->refused_ns = 0;
		return;
	default:
		break;
	}
	if (g->probe_ns && now >= g->probe_ns)
		probe(peer, path, now);
}
