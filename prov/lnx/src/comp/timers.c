/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is done now and then for an endpoint as a whole: each has a timer in the set that
 * peers have theirs in.  rel/run.c runs it, called by comp/progress.c.
 */
#include "base/interval.h"
#include "comp/comp.h"
#include "comp/links.h"
#include "core/half_open.h"
#include "core/health_board.h"
#include "msg/backlog.h"
#include "msg/local_exit.h"
#include "rel/rel.h"

#define SWEEP_COST	1000u		/* it may take 1/SWEEP_COST of the time */

/*
 * Sockets that cores have opened must not be inherited by programs that the application
 * starts: a program that outlives it would keep them open, and peers would never know
 * that it is dead.  Cores connect some time after a peer came up, and again at any
 * time.  So this is done a few times then.  Later an endpoint without traffic should
 * have nothing to do: it is done once in a second while there is anything else.
 */
uint64_t lnx_ep_sweep(struct lnx_ep *ep, uint64_t now)
{
	uint64_t cost;
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		lnx_half_open_cloexec(ep->rail[i]);
	cost = lnx_ns_since(lnx_clock_ns(), now);
	ep->due.sweep_gap_ns = LNX_MIN(LNX_MAX(2 * ep->due.sweep_gap_ns,
					   LNX_SWEEP_FIRST_NS), LNX_SWEEP_LAST_NS);
	ep->due.sweep_ns = now + LNX_MAX(ep->due.sweep_gap_ns, SWEEP_COST * cost);
	return ep->due.sweep_gap_ns < LNX_SWEEP_LAST_NS ? ep->due.sweep_ns : LNX_NEVER;
}

/* Each does what is due and returns when it is to be called again. */
#define OWN(name, which, run)						\
	static void name(struct lnx_timer *t, uint64_t now)		\
	{								\
		struct lnx_ep *ep = lnx_container_of(t, struct lnx_ep,	\
						     due.own[which]);	\
									\
		lnx_ep_due(ep, which, run);				\
	}

OWN(sweep, LNX_DUE_SWEEP, lnx_ep_sweep(ep, now))
OWN(reap, LNX_DUE_REAP, lnx_peers_reap(ep, now))
OWN(keepalive, LNX_DUE_KEEPALIVE, lnx_rel_due(ep, LNX_DUE_KEEPALIVE, now))
OWN(links, LNX_DUE_LINKS, lnx_links_look(ep, now))
OWN(admin, LNX_DUE_ADMIN, lnx_rel_due(ep, LNX_DUE_ADMIN, now))
OWN(refusals, LNX_DUE_REFUSALS, lnx_rel_due(ep, LNX_DUE_REFUSALS, now))
OWN(rails, LNX_DUE_RAILS, lnx_rel_due(ep, LNX_DUE_RAILS, now))
OWN(policy, LNX_DUE_POLICY, lnx_rel_due(ep, LNX_DUE_POLICY, now))
OWN(gateways, LNX_DUE_GATEWAYS, lnx_rel_due(ep, LNX_DUE_GATEWAYS, now))
OWN(local, LNX_DUE_LOCAL, lnx_local_exit_run(ep, now))
OWN(board, LNX_DUE_BOARD, lnx_board_run(ep, now))
OWN(backlog, LNX_DUE_BACKLOG, lnx_backlog_run(ep, now))
OWN(posted, LNX_DUE_POSTED, lnx_posted_look(ep, now))

static void (*const due[LNX_DUE_N])(struct lnx_timer *t, uint64_t now) = {
	[LNX_DUE_SWEEP] = sweep,
	[LNX_DUE_REAP] = reap,
	[LNX_DUE_KEEPALIVE] = keepalive,
	[LNX_DUE_LINKS] = links,
	[LNX_DUE_ADMIN] = admin,
	[LNX_DUE_REFUSALS] = refusals,
	[LNX_DUE_RAILS] = rails,
	[LNX_DUE_POLICY] = policy,
	[LNX_DUE_GATEWAYS] = gateways,
	[LNX_DUE_LOCAL] = local,
	[LNX_DUE_BOARD] = board,
	[LNX_DUE_BACKLOG] = backlog,
	[LNX_DUE_POSTED] = posted,
};

int lnx_ep_timers_open(struct lnx_ep *ep)
{
	unsigned i;

	lnx_timers_init(&ep->due.timers);
	if (lnx_timers_reserve(&ep->due.timers, LNX_DUE_N))
		return -FI_ENOMEM;
	for (i = 0; i < LNX_DUE_N; i++)
		lnx_timer_init(&ep->due.own[i], due[i]);
	ep->due.sweep_ns = LNX_NEVER;	/* until there is a path */
	return 0;
}

void lnx_ep_timers_close(struct lnx_ep *ep)
{
	lnx_timers_fini(&ep->due.timers);
}
