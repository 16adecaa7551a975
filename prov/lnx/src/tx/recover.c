/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A path that was left: pinged, asked about, opened anew, and used again.  Called by
 * tx/guard.c.
 */
#include <stdlib.h>

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
#define STILL_NS	(200 * LNX_NS_PER_MS)	/* a path that may be dead, too */
/* An endpoint that has moved rails of even places blindly moves no odd ones. */
#define KEEP_TO_NS	(10 * LNX_NS_PER_S)

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
	/* They are in the order of policy. */
	if (path->index < peer->cur)
		peer->cur = path->index;
	ep->stats.paths_back++;
	lnx_tx_want_pump(peer);
	if (peer->pull_left)
		ep->work |= LNX_WORK_PULL;
}

/* Is there a path of another rail to tell the new address over? */
static bool has_other(const struct lnx_peer *peer, const struct lnx_path *path,
		      uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *other = &peer->path[i];

		if (other->state == LNX_PATH_UP && other->rail != path->rail &&
		    (!other->guard.still_ns ||
		     lnx_ns_since(now, LNX_MAX(other->guard.still_ns,
					       peer->pong_ns)) <=
			     STILL_NS))
			return true;
	}
	return false;
}

/* Something that hangs in its core keeps others waiting. */
static bool hangs(struct lnx_peer *peer, const struct lnx_path *path)
{
	return path->nread || lnx_tx_held(path, peer);
}

/*
 * There is no path to tell a new address over.  The peer can be told by way of the rail
 * itself, if its own end has not moved at the same time: so one of the two moves its
 * rails of even places, and the other those of odd ones, counted by the one with the
 * lower identity.  Nobody does both within some time, as he might for two peers: then
 * he can be found where he was.
 */
static bool may_move(const struct lnx_peer *peer, const struct lnx_path *path,
		     uint64_t now)
{
	struct lnx_ep *ep = peer->ep;
	bool odd = ep->eid > peer->eid;
	unsigned place = odd ? path->remote_rail : path->rail->wire_index;

	if ((place & 1) != odd ||
	    (ep->moves_ns && ep->moves_odd != odd &&
	     lnx_ns_since(now, ep->moves_ns) < KEEP_TO_NS))
		return false;
	ep->moves_odd = odd;
	ep->moves_ns = now;
	return true;
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
	bool spare = has_other(peer, path, now);
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
	     path->rail->core_ep && g->unanswered_ns &&
	     lnx_ns_since(now, g->unanswered_ns) > REOPEN_MUTE_NS &&
	     may_move(peer, path, now))) {
		lnx_guard_reopen(path->rail, now);
		if (!down && !g->spared)
			start_ping(path, now);
	}
	if (down || g->spared)
		return;
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
	says = lnx_guard_kernel(path);
	if (path->rail->shut && reachable(path, says, now))
		lnx_guard_open(path->rail, now);
	/* It was asked at the peer's old address. */
	if (g->moved_away)
		says = LNX_PING_UNKNOWN;
	switch (says) {
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
