/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is done now and then for an endpoint as a whole: each has a timer in the set that
 * peers have theirs in.  rel/run.c runs it, called by comp/progress.c, and has those of the
 * channels.
 */
#include <errno.h>

#include "base/interval.h"
#include "comp/comp.h"
#include "comp/links.h"
#include "core/half_open.h"
#include "core/health_board.h"
#include "msg/backlog.h"
#include "msg/local_exit.h"
#include "rail/rail.h"
#include "rel/rel.h"

/* A descriptor for each connection that began and ended without a word would be lost. */
static LNX_COLD void drop_ended(struct lnx_rail *rail)
{
	if (!lnx_half_open_ended(rail))
		return;
	errno = 0;
	lnx_rail_poll(rail);
	lnx_half_open_close_ended(rail);
}

/*
 * Sockets that cores have opened must not be inherited by programs that the application
 * starts: a program that outlives it would keep them open, and peers would never know
 * that it is dead.  Cores connect some time after a peer came up, and again at any
 * time.  So this is done a few times then, and later once in a second: where anything
 * may connect at any time, also without traffic, as it may end at once (drop_ended).
 */
uint64_t lnx_ep_sweep(struct lnx_ep *ep, uint64_t now)
{
	uint64_t cost = lnx_clock_thread_ns();
	bool listens = false;
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		listens |= lnx_half_open_listens(ep->rail[i]);
		lnx_half_open_cloexec(ep->rail[i]);
		drop_ended(ep->rail[i]);
	}
	cost = lnx_clock_thread_ns() - cost;
	ep->due.sweep_soon_ns = now + lnx_half_open_pause_short(cost);
	ep->due.sweep_gap_ns = LNX_MIN(LNX_MAX(2 * ep->due.sweep_gap_ns,
					   LNX_SWEEP_FIRST_NS), LNX_SWEEP_LAST_NS);
	ep->due.sweep_ns = now + LNX_MAX(ep->due.sweep_gap_ns,
					  lnx_half_open_pause(cost));
	return listens || ep->due.sweep_gap_ns < LNX_SWEEP_LAST_NS ? ep->due.sweep_ns :
								     LNX_NEVER;
}

LNX_DUE_RUNS(sweep, LNX_DUE_SWEEP, lnx_ep_sweep(ep, now))
LNX_DUE_RUNS(reap, LNX_DUE_REAP, lnx_peers_reap(ep, now))
LNX_DUE_RUNS(links, LNX_DUE_LINKS, lnx_links_look(ep, now))
LNX_DUE_RUNS(local, LNX_DUE_LOCAL, lnx_local_exit_run(ep, now))
LNX_DUE_RUNS(board, LNX_DUE_BOARD, lnx_health_board_run(ep, now))
LNX_DUE_RUNS(backlog, LNX_DUE_BACKLOG, lnx_backlog_run(ep, now))
LNX_DUE_RUNS(posted, LNX_DUE_POSTED, lnx_posted_look(ep, now))

/* The others are of the channels. */
static void (*const due[LNX_DUE_N])(struct lnx_timer *t, uint64_t now) = {
	[LNX_DUE_REAP] = reap,
	[LNX_DUE_LINKS] = links,
	[LNX_DUE_LOCAL] = local,
	[LNX_DUE_BOARD] = board,
	[LNX_DUE_BACKLOG] = backlog,
	[LNX_DUE_POSTED] = posted,
	[LNX_DUE_SWEEP] = sweep,
};

int lnx_ep_timers_open(struct lnx_ep *ep)
{
	unsigned i;

	lnx_timers_init(&ep->due.timers);
	if (lnx_timers_reserve(&ep->due.timers, LNX_DUE_N))
		return -FI_ENOMEM;
	for (i = 0; i < LNX_DUE_N; i++)
		if (due[i])
			lnx_timer_init(&ep->due.own[i], due[i]);
	lnx_rel_open(ep);
	ep->due.sweep_ns = LNX_NEVER;
	lnx_half_open_joins();
	return 0;
}

void lnx_ep_timers_close(struct lnx_ep *ep)
{
	lnx_timers_fini(&ep->due.timers);
	lnx_half_open_leaves();
}
