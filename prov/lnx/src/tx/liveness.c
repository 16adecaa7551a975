/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer from which nothing comes over any path: is it dead, or does it only compute?
 * Its kernels know.  Called by tx/control.c.
 *
 * What a kernel knows is that a process has the sockets.  It is another process if the
 * peer started one that inherited them, and then died: the sockets are close-on-exec
 * (core/half_open.h), but a process that was only forked has them.  So a kernel's
 * answer counts for FI_LNX_STALL_TIMEOUT.
 */
#include "tx/detect.h"
#include "tx/recovery.h"
#include "tx/session.h"

/* A silent peer's kernels are asked, again after so long. */
#define SILENT_NS	(500 * LNX_NS_PER_MS)
#define ASK_KERNEL_NS	LNX_NS_PER_S
/* Paths whose kernel has not answered for so long go DOWN. */
#define KERNEL_MUTE_NS	(200 * LNX_NS_PER_MS)

static LNX_COLD void ask_kernels(struct lnx_peer *peer, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i]->rail->link_down)
			lnx_recovery_ping(peer->path[i]);
	peer->alive_ns = now;
	peer->asking = true;
}

/*
 * It is not known which path to charge, but over this one nothing is reached.  Once it
 * is DOWN, its end is found out by pings: long before a connection whose packets were
 * lost tries again.
 */
static LNX_COLD void none_there(struct lnx_peer *peer, struct lnx_path *path,
				  uint64_t now)
{
	if (peer->asking && lnx_peer_acked(peer) && peer->ep->plan.step[LNX_CLASS_OK] &&
	    lnx_ns_since(now, peer->alive_ns) >= KERNEL_MUTE_NS)
		lnx_detect_path_down(peer, path, "not even its host answers", now);
}

/*
 * A kernel has answered for a peer that did not.  False: the peer has stalled for too
 * long.
 */
static LNX_COLD bool may_stall(struct lnx_peer *peer, uint64_t now)
{
	uint64_t limit = peer->ep->conf->stall_timeout * LNX_NS_PER_S;

	/* Time in which we did not check does not count. */
	peer->stalled_ns += LNX_MIN(lnx_ns_since(now, peer->silent_ns),
				    2 * LNX_NS_PER_S);
	peer->silent_ns = now;
	peer->asking = false;
	return !limit || peer->stalled_ns < limit;
}

LNX_COLD int lnx_liveness_check(struct lnx_peer *peer, uint64_t now)
{
	uint64_t limit = peer->ep->plan.transaction_ns;
	unsigned i, refused = 0, unknown = 0, alive = 0;

	if (lnx_ns_since(now, peer->silent_ns) < SILENT_NS || !peer->npath)
		return 0;
	if (!peer->asking) {
		ask_kernels(peer, now);
		return 0;
	}
	for (i = 0; i < peer->npath; i++) {
		/* The answer came before its link went down. */
		if (peer->path[i]->rail->link_down) {
			unknown++;
			continue;
		}
		switch (lnx_recovery_kernel(peer->path[i])) {
		case LNX_PING_ALIVE:
			alive++;
			/* An endpoint is there: is it this peer? */
			lnx_session_ask(peer, peer->path[i]);
			break;
		case LNX_PING_REFUSED:
			refused++;
			break;
		case LNX_PING_UNKNOWN:
			unknown++;
			break;
		default:
			none_there(peer, peer->path[i], now);
			break;
		}
	}
	if (alive)
		return may_stall(peer, now) ? 0 : FI_ETIMEDOUT;
	/* They had no time to answer: perhaps we did not check for long. */
	if (lnx_ns_since(now, peer->alive_ns) < SILENT_NS)
		return 0;
	/* FI_LNX_CONNECT_TIMEOUT is for peers that are unknown. */
	if (lnx_ns_since(now, peer->silent_ns) < limit || unknown) {
		if (lnx_ns_since(now, peer->alive_ns) >= ASK_KERNEL_NS)
			ask_kernels(peer, now);
		return 0;
	}
	return refused == peer->npath ? FI_ECONNREFUSED : FI_ETIMEDOUT;
}
