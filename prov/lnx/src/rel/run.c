/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the reliable channels of an endpoint have to do now.  Called by comp/progress.c.
 *
 * A peer that something is due from has a timer, peer->look, for all that may have to be
 * done for it: questions about frames that are not acknowledged, paths that deliver
 * nothing, the peer's life.  Each look says when the next one must be.  So a peer costs
 * nothing between two looks, and one that nothing is due from costs nothing at all.
 */
#include "base/interval.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/order.h"

/* Of 10 000 peers that are due at once, the last ones wait for 160 passes. */
#define LOOKS_PER_PASS	64u

uint64_t lnx_look_gap(const struct lnx_peer *peer)
{
	return lnx_detects(peer) ? LNX_LOOK_SEVERAL_NS : LNX_LOOK_ONE_NS;
}

void lnx_peer_look(struct lnx_timer *look, uint64_t now)
{
	struct lnx_peer *peer = lnx_container_of(look, struct lnx_peer, look);
	struct lnx_timers *set = &peer->ep->due.timers;
	uint64_t next = lnx_detect_look(peer, now);

	if (peer->awaited)
		next = lnx_sooner(next, lnx_control_look(peer, now));
	/* What it changed may have asked for another one. */
	next = lnx_sooner(next, lnx_timer_at(set, look));
	peer->watched = peer->awaited && next <= now + lnx_look_gap(peer);
	lnx_timer_cancel(set, look);
	if (next != LNX_NEVER)
		lnx_peer_look_by(peer, LNX_MAX(next, now + LNX_LOOK_MIN_NS));
}

uint64_t lnx_rel_run(struct lnx_ep *ep, uint64_t now)
{
	lnx_sched_look(ep, now);
	ep->due.connects = LNX_CONNECTS_PER_PASS;
	lnx_timers_run(&ep->due.timers, now, LOOKS_PER_PASS);
	if (ep->work & LNX_WORK_PUMP)
		lnx_send_pump(ep, now);
	if (ep->work & (LNX_WORK_ACK | LNX_WORK_ACK_PENDING))
		lnx_control_acks(ep, now, false);
	if (!ep->due.timers.n)
		ep->work &= ~LNX_WORK_TIMER;
	return ep->work & (LNX_WORK_PUMP | LNX_WORK_ACK) ? now : ep->due.timers.next_ns;
}

void lnx_rel_ack_all(struct lnx_ep *ep, uint64_t now)
{
	lnx_control_acks(ep, now, true);
}
