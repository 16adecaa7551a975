/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer from which nothing comes over any path: is it dead, or does it only compute?
 * Its kernels know.  Called by rel/control.c.
 *
 * What a kernel knows is that a process has the sockets.  It is another process if the
 * peer started one that inherited them, and then died: the sockets are close-on-exec
 * (core/half_open.h), but a process that was only forked has them.  So a kernel's
 * answer counts for FI_LNX_STALL_TIMEOUT.
 */
#include "base/interval.h"
#include "core/path_set.h"
#include "rel/detect.h"
#include "rel/recovery.h"
#include "rel/session.h"

/* Was the kernel asked since the peer is silent, and says that nothing listens there? */
static bool refuses(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return lnx_silence_peer_waits(&peer->liveness) &&
	       lnx_recovery_kernel(path) == LNX_PING_REFUSED;
}

static LNX_COLD void ask_kernels(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (path->rail->link_down)
			continue;
		/* Those that are DOWN: rel/recovery.c. */
		if (path->state != LNX_PATH_DOWN && refuses(peer, path))
			lnx_path_set_elsewhere(peer, path);
		lnx_recovery_ping(peer, path);
	}
	lnx_silence_peer_asked(&peer->liveness, now);
}

/*
 * It is not known which path to charge, but over this one nothing is reached.  Once it
 * is DOWN, its end is found out by pings: long before a connection whose packets were
 * lost tries again.
 */
static LNX_COLD void none_there(struct lnx_peer *peer, struct lnx_path *path,
				  uint64_t now)
{
	if (lnx_peer_acked(peer) && peer->ep->plan.step[LNX_CLASS_OK] &&
	    lnx_ns_since(now, peer->liveness.kernels_ns) >= LNX_KERNEL_MUTE_NS)
		lnx_detect_path_down(peer, path, "not even its host answers", now);
}

/* A kernel of which nothing is known.  One that could not be asked is asked now. */
static LNX_COLD void unknown(struct lnx_peer *peer, struct lnx_path *path,
			     struct lnx_liveness_view *v, uint64_t now)
{
	if (!lnx_recovery_unasked(path)) {
		v->unknown++;
		return;
	}
	v->unasked++;
	lnx_recovery_ping(peer, path);
	if (!lnx_recovery_unasked(path))
		lnx_silence_peer_asked_late(&peer->liveness, v, now);
}

/* What the kernels say, and what follows for each path. */
static LNX_COLD enum lnx_liveness_verdict judge(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_liveness_view v = {
		.limit_ns = peer->ep->plan.transaction_ns,
		.stall_limit_ns = peer->ep->conf->stall_timeout * LNX_NS_PER_S,
		.unasked_limit_ns = peer->ep->conf->connect_timeout * LNX_NS_PER_MS,
		.npath = peer->npath,
	};
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		/* The answer came before its link went down. */
		if (peer->path[i]->rail->link_down) {
			v.unasked++;
			continue;
		}
		switch (lnx_recovery_kernel(peer->path[i])) {
		case LNX_PING_ALIVE:
			v.alive++;
			/* An endpoint is there: is it this peer? */
			lnx_session_ask(peer, peer->path[i]);
			break;
		case LNX_PING_REFUSED:
			v.refused++;
			break;
		case LNX_PING_UNKNOWN:
			unknown(peer, peer->path[i], &v, now);
			break;
		default:
			none_there(peer, peer->path[i], now);
			break;
		}
	}
	return lnx_silence_peer_judge(&peer->liveness, &v, now);
}

LNX_COLD void lnx_liveness_connecting(struct lnx_peer *peer, uint64_t now)
{
	enum lnx_ping_result says;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		struct lnx_path_detect *g = &path->detect;

		/* Is another place known? */
		if (path->state != LNX_PATH_CONNECTING ||
		    (!g->previous_port && !peer->address.rails) ||
		    lnx_ns_since(now, g->ping_ns) <
			    LNX_MAX(LNX_PING_REFUSED_NS, lnx_ns_since(now, path->since_ns) / 4))
			continue;
		says = lnx_recovery_kernel(path);
		if (says == LNX_PING_WAITING)
			continue;
		if (says == LNX_PING_REFUSED)
			lnx_path_set_elsewhere(peer, path);
		lnx_recovery_ping(peer, path);
		g->ping_ns = now;
	}
}

LNX_COLD int lnx_liveness_check(struct lnx_peer *peer, uint64_t now)
{
	enum lnx_liveness_verdict verdict;

	verdict = lnx_silence_peer_look(&peer->liveness, now);
	if (!peer->npath)
		return 0;
	if (verdict == LNX_LIVENESS_LOOK)
		verdict = judge(peer, now);
	switch (verdict) {
	case LNX_LIVENESS_ASK_KERNELS:
		lnx_link_notice_standby(peer);
		ask_kernels(peer, now);
		return 0;
	case LNX_LIVENESS_REFUSED:
		return FI_ECONNREFUSED;
	case LNX_LIVENESS_TIMED_OUT:
		return FI_ETIMEDOUT;
	default:
		return 0;
	}
}
