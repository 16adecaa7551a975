/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One pass: poll the cores, then do what their callbacks deferred.
 *
 * shm is polled every time; a network rail only while it has poll credits (some
 * hundreds of passes after any activity), while the core has an operation of ours, or
 * every poll_idle-th pass: polling TCP costs a system call, which shm traffic would pay
 * for.  While there is shm traffic, an idle rail is polled only every 50 microseconds.
 */
#include "base/interval.h"
#include "comp/comp.h"
#include "rail/faults.h"
#include "comp/links.h"
#include "msg/confirm_answer.h"
#include "msg/rx.h"
#include "msg/local_exit.h"
#include "rel/rel.h"
#include "rma/rma.h"
#include "msg/tx.h"

#define WATCH_PASSES	65536u		/* with nothing due */

/* An idle rail is due to be polled.  Should it wait a little longer? */
static LNX_COLD bool not_yet(struct lnx_ep *ep, struct lnx_rail *rail)
{
	/* Messages, and everything else that is reported. */
	uint64_t seen = ep->stats.matched + ep->stats.unexpected +
			ep->stats.direct_sends +
			(ep->tx_cq ? lnx_cq_written(ep->tx_cq) : 0);
	uint64_t now;

	if (!ep->shm || !ep->poll.idle_mask)
		return false;
	now = lnx_clock_ns();
	/* A message of some KiB takes longer than the passes from one look to the next. */
	if (seen != rail->idle_seen)
		rail->moved_ns = now;
	rail->idle_seen = seen;
	if (lnx_ns_since(now, rail->moved_ns) < LNX_IDLE_RAIL_NS &&
	    lnx_ns_since(now, rail->idle_ns) < LNX_IDLE_RAIL_NS)
		return true;
	rail->idle_ns = now;
	return false;
}

static LNX_COLD void refill(struct lnx_ep *ep)
{
	bool all = true;
	uint32_t i;

	for (i = 0; i < ep->nrail; i++)
		if (ep->rail[i]->driver->refill(ep->rail[i]))
			all = false;
	if (all)
		ep->work &= ~LNX_WORK_BUFS;
}

/* Work that needs the current time. */
static __attribute__((noinline)) void timed(struct lnx_ep *ep)
{
	uint64_t now = lnx_clock_ns(), gap_ns = lnx_ns_since(now, ep->due.looked_ns);
	uint32_t passes = ep->poll.pass - ep->due.looked_pass;

	if (lnx_unlikely(ep->links.asleep)) {
		ep->links.asleep = false;
		lnx_ep_watch_links(ep);
	}
	lnx_rel_run(ep, now, false);
	if (lnx_unlikely(now >= ep->due.sweep_ns))
		lnx_ep_sweep(ep, now);
	if (ep->work & LNX_WORK_DEFER)
		lnx_rx_deferred_run(ep, now);
	if (lnx_unlikely(ep->work & LNX_WORK_BUFS))
		refill(ep);
	ep->due.looked_pass = ep->poll.pass;
	/* If passes take long, 256 of them are too many to wait for. */
	ep->due.soon_ns = gap_ns / LNX_PASS_SLOW_NS > passes ? LNX_NEVER :
			  now + LNX_PASS_SOON_NS;
}

/* Work that is not done in every pass, and some of it not in each of these. */
static __attribute__((noinline)) void slow(struct lnx_ep *ep)
{
	uint32_t work = ep->work & ~LNX_WORK_TIMER;

	if (work || ep->due.timers.next_ns < ep->due.soon_ns || !(ep->poll.pass & 0xff))
		timed(ep);
}

/* In every LNX_SLOW_PASSES-th pass. */
static __attribute__((noinline)) void now_and_then(struct lnx_ep *ep)
{
	if (ep->work || ep->due.timers.n)
		slow(ep);
	if (lnx_unlikely(lnx_ctl_due(&ep->ctl, ep->poll.pass)))
		ep->ctl.run(ep, lnx_clock_ns());
}

/* Deferred work, which may call cores. */
static __attribute__((noinline)) void deferred(struct lnx_ep *ep)
{
	if (lnx_unlikely(ep->work & LNX_WORK_FAULT))
		lnx_faults_run(ep);
	/* While the paths are there over which a peer that was given up has read. */
	if (lnx_unlikely(ep->work & LNX_WORK_MR))
		lnx_rndv_reap(ep);
	/* Before the rest: what came behind a hello needs the path that the hello makes. */
	if (lnx_unlikely(ep->work & LNX_WORK_LEARN)) {
		lnx_links_learn(ep);
		lnx_rx_ctrl_run(ep);
	}
	if (ep->work & LNX_WORK_FETCH)
		lnx_fetch_run(ep);
	if (lnx_unlikely(ep->work & LNX_WORK_COPY))
		lnx_large_copies(ep);
	if (ep->work & LNX_WORK_CONFIRM)
		lnx_confirm_run(ep);
	if (ep->work & LNX_WORK_PULL)
		lnx_pull_run(ep);
	if (ep->work & LNX_WORK_RMA)
		lnx_rma_run(ep);
	if (ep->work & LNX_WORK_DIRECT)
		lnx_direct_pump(ep);
	if (lnx_unlikely(ep->work & LNX_WORK_MATCH))
		lnx_rx_rematch(ep);
	if (ep->poll.pass & (LNX_SLOW_PASSES - 1))
		slow(ep);
	else
		now_and_then(ep);
}

/* Refill the reserves.  True: too little for a core that does not wait.  Without
 * receive entries shm is deferred like other rails. */
static LNX_COLD bool low(struct lnx_ep *ep)
{
	if (ep->native)
		return true;
	lnx_rxbuf_reserve(ep);
	lnx_rxe_reserve(ep);
	return ep->nreserve < LNX_RXE_LAST;
}

/* Peers may die also while nothing is due. */
static LNX_COLD void look_at_peers(struct lnx_ep *ep)
{
	ep->poll.watch_pass = ep->poll.pass;
	if (ep->poll.watch_idle)
		lnx_ep_watch_local(ep);
}

void lnx_ep_heat(struct lnx_ep *ep, uint32_t passes)
{
	uint32_t i;

	for (i = 0; i < ep->nrail; i++)
		ep->rail[i]->poll_credits = LNX_MAX(ep->rail[i]->poll_credits, passes);
}

/* The next pass polls every rail and runs every timer that is due. */
static LNX_COLD void do_all(struct lnx_ep *ep)
{
	lnx_ep_heat(ep, 1);
	ep->poll.pass |= 0xff;
}

/*
 * What is done in every n-th pass must not be late because the program calls rarely: then a
 * pass does all.  Traffic that only goes through shared memory, with nothing due from other
 * nodes, does not pay for that.
 */
static inline bool after_pause(struct lnx_ep *ep)
{
	uint64_t ticks, before = ep->poll.ticks;

	if (ep->shm && lnx_likely(!ep->work))
		return false;
	ticks = lnx_clock_ticks();
	ep->poll.ticks = ticks;
	return lnx_unlikely(ticks - before > LNX_PASS_PAUSE_TICKS);
}

LNX_HOT
void lnx_ep_progress(struct lnx_ep *ep)
{
	struct lnx_rail *shm = ep->shm;
	uint32_t i;

	lnx_assert_held(&ep->lock);
	if (after_pause(ep))
		do_all(ep);
	if (lnx_rxe_low(ep) && low(ep))
		shm = NULL;
	ep->poll.pass++;
	if (shm)
		lnx_rail_poll_lent(shm);
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (rail->poll_credits)
			rail->poll_credits--;
		else if (!rail->busy && !ep->nread_here) {
			if ((ep->poll.pass & ep->poll.idle_mask) || not_yet(ep, rail))
				continue;
			if (lnx_unlikely(ep->poll.pass - ep->poll.watch_pass >
					 WATCH_PASSES))
				look_at_peers(ep);
		}
		lnx_rail_poll(rail);
	}
	if (lnx_unlikely(ep->work & ~LNX_WORK_SLOW))
		deferred(ep);
	else if (lnx_unlikely(!(ep->poll.pass & (LNX_SLOW_PASSES - 1))))
		now_and_then(ep);
}

void lnx_ep_progress_all(struct lnx_ep *ep)
{
	do_all(ep);
	lnx_ep_progress(ep);
}

uint64_t lnx_ep_sleep_until(struct lnx_ep *ep)
{
	bool more = false;
	uint64_t now;
	uint32_t i;

	lnx_ep_progress_all(ep);
	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (rail->wait_fd >= 0 && lnx_rail_trywait(rail))
			more = true;
	}
	/* If nothing is due, no pass polls them. */
	if (ep->links.netwatch)
		lnx_links_poll(ep, lnx_clock_ns());
	/* Its descriptor wakes sleepers until that is done. */
	if (ep->local.exit_monitor)
		lnx_local_exit_look(ep);
	/* Handle what came before the reset. */
	lnx_ep_progress_all(ep);
	for (i = 0; i < ep->nrail; i++)
		more |= ep->rail[i]->driver->more(ep->rail[i]);
	now = lnx_clock_ns();
	/* Sleepers may sleep often: later its timer wakes them. */
	if (lnx_timer_armed(&ep->due.own[LNX_DUE_SWEEP]) &&
	    ep->due.sweep_gap_ns < LNX_SWEEP_LAST_NS && now >= ep->due.sweep_soon_ns)
		lnx_timer_arm(&ep->due.timers, &ep->due.own[LNX_DUE_SWEEP],
			      lnx_ep_sweep(ep, now));
	/* That would be due at once. */
	if (ep->work & LNX_WORK_ACK_PENDING)
		lnx_rel_run(ep, now, true);
	/* Link events wake sleepers. */
	ep->links.watch_until_ns = 0;
	if (lnx_timer_armed(&ep->due.own[LNX_DUE_LINKS])) {
		lnx_timer_cancel(&ep->due.timers, &ep->due.own[LNX_DUE_LINKS]);
		ep->links.asleep = true;
	}
	return more || (ep->work & ~LNX_WORK_TIMER) ? 0 : ep->due.timers.next_ns;
}
