/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recovery of a path that is DOWN: pings, opening its rail anew, and restoring it.
 * Called by rel/detect.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "rel/recovery.h"
#include "base/interval.h"
#include "core/open.h"
#include "core/path_set.h"
#include "rail/leg.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/order.h"
#include "wire/hdr.h"

/* No kernel answers through a gateway, which can ask it. */
static LNX_COLD void ask_gateway(struct lnx_host_ask *ask, struct lnx_leg *leg, fi_addr_t end)
{
	ssize_t ret = lnx_leg_ask(leg, end);

	ask->ping.fd = -1;
	if (!ret) {
		ask->ping.result = LNX_PING_WAITING;
		lnx_list_del(&ask->link);
		lnx_list_add_tail(&leg->gw->all->asked, &ask->link);
	} else if (ret != -FI_EINVAL) {
		ask->ping.err = EAGAIN;	/* the connection to it is busy, or not there yet */
	}
}

static struct lnx_ping *ping_new(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_host_ask *ask = calloc(1, sizeof(*ask));

	if (!ask)
		return NULL;
	lnx_list_init(&ask->link);
	ask->peer = peer;
	ask->path = path;
	return &ask->ping;
}

void lnx_recovery_ping(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_path_detect *g = &path->detect;
	struct lnx_rail *rail = path->rail;
	uint8_t to[LNX_ADDR_RAW];
	size_t len = sizeof(to);

	if (!g->ping)
		g->ping = ping_new(peer, path);
	if (!g->ping)
		return;
	lnx_ping_stop(g->ping);
	g->ping->result = LNX_PING_UNKNOWN;
	g->ping->err = 0;
	g->ping->told = 0;
	if (lnx_rail_is_leg(rail)) {
		ask_gateway(lnx_container_of(g->ping, struct lnx_host_ask, ping),
			    lnx_container_of(rail, struct lnx_leg, rail), path->core_addr);
		return;
	}
	if (fi_av_lookup(rail->av, path->core_addr, to, &len) ||
	    len > sizeof(to))
		return;
	lnx_ping_start(g->ping, rail->addr, rail->addrlen, to, len, NULL);
}

enum lnx_ping_result lnx_recovery_kernel(const struct lnx_path *path)
{
	struct lnx_ping *ping = path->detect.ping;

	if (!ping)
		return LNX_PING_UNKNOWN;
	/* What the gateway tells is written into it. */
	return ping->result == LNX_PING_WAITING && !lnx_rail_is_leg(path->rail) ?
	       lnx_ping_check(ping) : (enum lnx_ping_result)ping->result;
}

LNX_COLD void lnx_recovery_ask_gateways(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		struct lnx_leg_end *end;

		/* One that is silent is asked about anyway. */
		if (!lnx_rail_is_leg(path->rail) || path->state != LNX_PATH_UP ||
		    path->detect.silence.kernel_asked)
			continue;
		end = &lnx_container_of(path->rail, struct lnx_leg, rail)->end[path->core_addr];
		if (lnx_ns_since(now, end->host_ask_ns) < LNX_GATEWAY_ASK_NS)
			continue;
		end->host_ask_ns = now;
		lnx_recovery_ping(peer, path);
	}
}

LNX_COLD bool lnx_recovery_unasked(const struct lnx_path *path)
{
	return !path->detect.ping || lnx_ping_lacked(path->detect.ping);
}

LNX_COLD void lnx_recovery_restore(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_ep *ep = peer->ep;

	LNX_INFO(FI_LOG_EP_DATA, "rail %s: path %u to peer %016llx is used again\n",
		 path->rail->name, path->index, (unsigned long long)peer->eid);
	if (path->detect.ping)
		lnx_ping_stop(path->detect.ping);
	lnx_path_happens(path, LNX_PATH_ANSWERED);
	path->since_ns = 0;
	path->retry_ns = 0;
	path->read_retry_ns = 0;
	path->read_refused_ms = 0;
	path->fail_backoff_ns = 0;
	path->detect.silence = (struct lnx_silence){ 0 };
	path->rail->unannounced = 0;
	/* Paths are in the order of policy. */
	lnx_order_make(peer, now);
	if (lnx_order_before(peer, path, peer->cur) &&
	    lnx_hedge_pause_over(&path->speed->away, now))
		peer->cur = path;
	ep->stats.paths_restored++;
	lnx_peer_pump(peer);
	lnx_peer_pull(peer);
}

/* Does something hang in its core and keep others waiting? */
static bool hangs(struct lnx_peer *peer, const struct lnx_path *path)
{
	return path->nread || !lnx_list_empty(&path->gets) ||
	       lnx_failover_in_core(path, peer);
}

static bool wants_reopen(struct lnx_peer *peer, const struct lnx_path *path,
			 uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;
	const struct lnx_rail *rail = path->rail;

	if (!rail->core_ep)
		return false;
	if (hangs(peer, path))
		return lnx_ns_since(now, g->down_ns) >
		       (lnx_path_link_down(path) ? LNX_REOPEN_DOWN_NS :
						    LNX_REOPEN_READ_NS);
	if (g->far.state == LNX_FAR_MUTE)
		return lnx_ns_since(now, g->far.since_ns) > LNX_REOPEN_MUTE_NS;
	/* Only the peer can be asked: its kernel cannot. */
	return g->ping && g->ping->result == LNX_PING_UNKNOWN &&
	       lnx_ns_since(now, g->down_ns) > LNX_REOPEN_UNANNOUNCED_NS &&
	       rail->reopened_ns < g->down_ns;
}

/*
 * There is no other path.  Resetting a hanging connection is enough if one of the two
 * ends does it.  But an endpoint that is not where the peer looks for it must go there
 * in any case (rel/address_ack.c).
 */
static bool wants_reopen_unannounced(const struct lnx_peer *peer,
				 const struct lnx_path *path, bool due,
				 uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;
	bool stale_address = lnx_address_ack_port(path) != lnx_rail_port(path->rail);
	uint64_t wait = stale_address || peer->ep->eid < peer->eid ?
			LNX_REOPEN_MUTE_NS : LNX_REOPEN_YIELD_NS;

	if (!path->rail->core_ep)
		return false;
	if (g->far.state == LNX_FAR_MUTE)
		return lnx_ns_since(now, g->far.since_ns) > wait;
	return stale_address && g->far.state == LNX_FAR_REFUSES &&
	       lnx_ns_since(now, g->far.since_ns) > wait &&
	       (due || lnx_ns_since(now, g->down_ns) < LNX_LOOK_FOR_NS);
}

static void start_ping(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	lnx_recovery_ping(peer, path);
	path->detect.ping_ns = now;
	path->detect.moved_away = false;
	path->detect.probe_ns = now;
}

static void probe(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .tag = 1u + path->index,
		.data = g->nonce + 1,
	};
	int ret = -FI_ENOSYS;

	if (!path->rail->core_ep)
		return;
	/* The peer may not know, or not yet know, where the rail is now. */
	if (path->rail->below->reopened_ns)
		ret = lnx_control_probe_from(peer, path, &h);
	g->probe_epoch = ret == -FI_ENOSYS ? 0 : peer->ep->address.epoch;
	if (ret == -FI_ENOSYS)
		ret = lnx_control_send_on(peer->ep, peer, path, &h);
	if (ret) {
		g->probe_ns = now + LNX_PROBE_CONNECT_NS;	/* it may be connecting */
		return;
	}
	g->probe_ns = 0;
	g->nonce++;
	g->pinged = true;
}

LNX_COLD void lnx_recovery_probed(struct lnx_path *path, const struct lnx_rail *rail)
{
	struct lnx_path_detect *g = &path->detect;

	if (path->state != LNX_PATH_DOWN || path->rail != rail ||
	    g->far.state == LNX_FAR_ANSWERED)
		return;
	/* The peer can be reached: the answer of its kernel is out of date. */
	g->moved_away = true;
	g->probe_ns = 1;
	lnx_path_far_happens(&g->far, LNX_FAR_ASKS, lnx_clock_ns());
}

/*
 * Its host says that it does not listen there, and it has no other path to tell us its
 * address: it may be back at its previous port, or another process has its name.
 */
static void look_elsewhere(struct lnx_peer *peer, struct lnx_path *path,
			   uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	if (lnx_ns_since(now, g->ping_ns) <
	    LNX_MAX(LNX_PING_REFUSED_NS, lnx_ns_since(now, g->far.since_ns) / 4))
		return;
	lnx_path_set_elsewhere(peer, path);
	start_ping(peer, path, now);
}

/* Would an endpoint of ours be of use there? */
static bool reachable(const struct lnx_path *path, enum lnx_ping_result says,
		      uint64_t now)
{
	switch (says) {
	case LNX_PING_ALIVE:
	case LNX_PING_REFUSED:		/* the peer has closed its own too */
		return true;
	case LNX_PING_UNKNOWN:
		return path->detect.moved_away ||
		       lnx_ns_since(now, path->rail->reopened_ns) >
			       LNX_REOPEN_UNANNOUNCED_NS;
	default:
		return false;
	}
}

/* The rail below a leg leads to others as well, so that it is not opened anew: the connection
 * to the gateway is cut. */
static LNX_COLD void cut_if_stuck(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	if (!hangs(peer, path) || lnx_ns_since(now, g->down_ns) <= LNX_REOPEN_READ_NS ||
	    lnx_ns_since(now, path->rail->reopened_ns) < LNX_REOPEN_BACKOFF_NS)
		return;
	path->rail->reopened_ns = now;
	if (lnx_leg_cut(lnx_container_of(path->rail, struct lnx_leg, rail), g->down_ns))
		LNX_INFO(FI_LOG_EP_CTRL, "rail %s: the connection to the gateway is cut\n",
			 path->rail->name);
}

/*
 * Close the rail's endpoint and open another, if something hangs in it.  alternative: the
 * peer can be told over another path.
 */
static void reopen_if_stuck(struct lnx_peer *peer, struct lnx_path *path, bool alternative,
			    uint64_t now)
{
	bool due = peer->awaited;

	if (lnx_unlikely(lnx_rail_is_leg(path->rail))) {
		cut_if_stuck(peer, path, now);
		return;
	}
	/* Registrations that belong to the endpoint would be closed with it. */
	if (path->rail->mr_endpoint ||
	    lnx_ns_since(now, path->rail->reopened_ns) < LNX_REOPEN_BACKOFF_NS)
		return;
	if (!(alternative ? wants_reopen(peer, path, now) :
			    wants_reopen_unannounced(peer, path, due, now)))
		return;
	lnx_reopen_rail(path->rail, now);
	if (!lnx_path_link_down(path) && !path->detect.drained)
		start_ping(peer, path, now);
}

bool lnx_recovery_given_up(const struct lnx_peer *peer, const struct lnx_path *path,
			   bool wanted, uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;
	uint64_t limit_ns = peer->ep->plan.limit_ns;

	/* A sign of life begins a new series of pings. */
	return limit_ns && !wanted && !g->health.at_once && g->health.npings &&
	       lnx_ns_since(now, g->down_ns) > limit_ns;
}

/* Ping as the health of the path says, and because it is DOWN without a reason. */
static void ping_when_due(struct lnx_peer *peer, struct lnx_path *path, bool wanted,
			  uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_path_detect *g = &path->detect;
	enum lnx_health_todo todo;

	while ((todo = lnx_health_poll(&g->health, plan, wanted, LNX_PING_LOST_NS, now)) !=
	       LNX_HEALTH_NOTHING) {
		if (todo == LNX_HEALTH_LOST)
			lnx_detect_charge(peer, path, LNX_CLASS_RESPONSE_TIMEOUT, now);
		else
			start_ping(peer, path, now);
	}
	/* It is DOWN although nothing counts against it. */
	if (g->health.value == LNX_HEALTH_MAX && g->far.state != LNX_FAR_ANSWERED &&
	    lnx_ns_since(now, g->ping_ns) >= plan->first_ns)
		start_ping(peer, path, now);
}

/* What the peer's kernel says.  True: ask the peer itself, when that is due. */
static bool kernel_says(struct lnx_peer *peer, struct lnx_path *path,
			enum lnx_ping_result says, bool alternative, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	switch (says) {
	case LNX_PING_ALIVE:
		if (lnx_path_far_happens(&g->far, LNX_FAR_KERNEL_ANSWERS, now))
			g->probe_ns = now;
		return true;
	case LNX_PING_REFUSED:
		g->probe_ns = 0;
		lnx_path_far_happens(&g->far, LNX_FAR_KERNEL_REFUSES, now);
		if (!alternative)
			look_elsewhere(peer, path, now);
		return false;
	case LNX_PING_BROKEN:
		g->probe_ns = 0;
		lnx_path_far_happens(&g->far, LNX_FAR_KERNEL_SILENT, now);
		return false;
	default:
		return true;
	}
}

/* May it be used again?  What hangs in an old connection would hang for long. */
static bool may_restore(const struct lnx_path *path, bool alternative, uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;

	return g->far.state == LNX_FAR_ANSWERED && (!alternative || !path->nread) &&
	       (g->health.pinned || lnx_health_usable(&g->health, now));
}

/* It stays DOWN as long as its link is, or it is drained, and nothing hangs in it. */
static bool nothing_to_do(struct lnx_peer *peer, const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;

	/* What hangs does so whether the link is up or down. */
	if (lnx_path_link_down(path) && !hangs(peer, path))
		return true;
	/* As far as we know it delivers: what is in it will complete. */
	return lnx_unlikely(g->drained) &&
	       (!hangs(peer, path) || lnx_ns_since(now, g->down_ns) < LNX_DRAINED_NS);
}

static LNX_COLD void recover(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;
	bool alternative = lnx_path_alternative(peer, path, now);
	bool due = peer->awaited;
	enum lnx_ping_result says;
	bool down;

	if (g->remote_down && lnx_ns_since(now, g->down_ns) >= LNX_LINK_TRUST_NS)
		lnx_link_notice_trust(peer, path, true, now);
	down = lnx_path_link_down(path);
	if (nothing_to_do(peer, path, now))
		return;
	if (!down && may_restore(path, alternative, now)) {
		lnx_recovery_restore(peer, path, now);
		return;
	}
	reopen_if_stuck(peer, path, alternative, now);
	if (down || g->drained)
		return;
	/* Use the last answer before asking again: it may have come long after the last
	 * check. */
	says = g->moved_away ? LNX_PING_WAITING : lnx_recovery_kernel(path);
	if (!lnx_recovery_given_up(peer, path, due && !alternative, now))
		ping_when_due(peer, path, alternative || due, now);
	if (says != LNX_PING_ALIVE && says != LNX_PING_REFUSED)
		says = lnx_recovery_kernel(path);
	if (path->rail->closed && reachable(path, says, now))
		lnx_reopen_open(path->rail, now);
	/* The ping went to the peer's old address. */
	if (g->moved_away)
		says = LNX_PING_UNKNOWN;
	if (kernel_says(peer, path, says, alternative, now) && g->probe_ns &&
	    now >= g->probe_ns)
		probe(peer, path, now);
}

/* ---- when to look again ---- */

/* When time alone makes another path as good as none (lnx_path_alternative). */
static uint64_t alternative_ends(const struct lnx_peer *peer, const struct lnx_path *path,
			   uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *other = peer->path[i];
		uint64_t since_ns = other->detect.silence.since_ns;

		if (other->rail != path->rail && other->state == LNX_PATH_UP && since_ns)
			next = lnx_next_of(next, LNX_MAX(since_ns, peer->choice->pong_ns) +
					   LNX_ADDRESS_STALLED_NS + 1, now);
	}
	return next;
}

/* When its rail may be opened anew: see wants_reopen, wants_reopen_unannounced and
 * reachable. */
static uint64_t reopens(const struct lnx_path *path, uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;
	const struct lnx_rail *rail = path->rail;
	uint64_t first_ns = rail->reopened_ns ? rail->reopened_ns + LNX_REOPEN_BACKOFF_NS : 0;
	uint64_t mute_ns = lnx_path_far_since(&g->far, LNX_FAR_MUTE);
	uint64_t refuses_ns = lnx_path_far_since(&g->far, LNX_FAR_REFUSES);
	const uint64_t at_ns[] = {
		g->down_ns + LNX_REOPEN_DOWN_NS, g->down_ns + LNX_REOPEN_READ_NS,
		g->down_ns + LNX_REOPEN_UNANNOUNCED_NS,
		mute_ns ? mute_ns + LNX_REOPEN_MUTE_NS : 0,
		mute_ns ? mute_ns + LNX_REOPEN_YIELD_NS : 0,
		refuses_ns ? refuses_ns + LNX_REOPEN_MUTE_NS : 0,
		refuses_ns ? refuses_ns + LNX_REOPEN_YIELD_NS : 0,
	};
	uint64_t next = lnx_next_of(LNX_NEVER, rail->reopened_ns +
				    LNX_REOPEN_UNANNOUNCED_NS + 1, now);
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(at_ns); i++)
		next = lnx_next_of(next, LNX_MAX(at_ns[i] + 1, first_ns), now);
	return next;
}

/* When the next ping or PROBE is due, or the answer to the last one should be looked for. */
static uint64_t asks(const struct lnx_peer *peer, const struct lnx_path *path,
		     bool alternative, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	const struct lnx_path_detect *g = &path->detect;
	uint64_t next = LNX_NEVER;

	if (!lnx_recovery_given_up(peer, path, peer->awaited && !alternative, now)) {
		next = lnx_health_next(&g->health, plan, alternative || peer->awaited,
				       LNX_PING_LOST_NS);
		if (g->health.value == LNX_HEALTH_MAX && g->far.state != LNX_FAR_ANSWERED)
			next = lnx_sooner(next, g->ping_ns + plan->first_ns);
	}
	if (g->ping && g->ping->result == LNX_PING_WAITING)
		next = lnx_sooner(next, now + LNX_MIN(lnx_ns_since(now, g->ping_ns) / 2,
						   LNX_RECOVERY_ANSWER_NS));
	if (g->probe_ns && path->rail->core_ep)
		next = lnx_sooner(next, g->probe_ns);
	if (g->far.state == LNX_FAR_REFUSES && !alternative)
		next = lnx_sooner(next, g->ping_ns +
			       LNX_MAX(LNX_PING_REFUSED_NS,
				       lnx_ns_since(now, g->far.since_ns) / 4));
	return LNX_MAX(next, now);
}

LNX_COLD uint64_t lnx_recovery_run(struct lnx_peer *peer, struct lnx_path *path,
				   uint64_t now)
{
	const struct lnx_path_detect *g = &path->detect;
	uint64_t next = LNX_NEVER;
	bool down, hung;

	recover(peer, path, now);
	/* It is restored: others may have waited for that. */
	if (path->state != LNX_PATH_DOWN)
		return now;
	down = lnx_path_link_down(path);
	hung = hangs(peer, path);
	if (g->remote_down)
		next = lnx_next_of(next, g->down_ns + LNX_LINK_TRUST_NS, now);
	if ((down || g->drained) && !hung)
		return next;
	if (hung)
		next = lnx_next_of(next, g->down_ns + LNX_DRAINED_NS, now);
	next = lnx_sooner(next, reopens(path, now));
	if (!down && !g->drained) {
		next = lnx_next_of(next, g->health.ready_ns, now);
		next = lnx_sooner(next, alternative_ends(peer, path, now));
		next = lnx_sooner(next, asks(peer, path, lnx_path_alternative(peer, path, now),
					  now));
	}
	/* What other peers of its rail change is not listed here. */
	return LNX_MIN(next, now + LNX_MIN(LNX_MAX(lnx_ns_since(now, g->down_ns) / 4,
						   LNX_LOOK_MIN_NS), LNX_RECOVERY_LOOK_NS));
}
