/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread of the application polls and finds nothing: should it give up its core?
 * policy/yield.h decides.  Called by api/cq.c and api/cntr.c.
 */
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "comp/comp.h"
#include "prov.h"

void lnx_idle_init(struct lnx_idle *idle)
{
	lnx_yield_init(&idle->yield, lnx_global_config()->yield);
	idle->left = idle->yield.every;
	idle->known = false;
}

/* How often this thread lost its core, also by giving it up. */
static uint32_t switches(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) ? 0 : (uint32_t)u.ru_nivcsw;
}

/* The counts belong to one thread: those of another tell nothing. */
static bool same_thread(struct lnx_idle *idle)
{
	pthread_t self = pthread_self();
	bool same = idle->known && pthread_equal(idle->thread, self);

	idle->thread = self;
	idle->known = true;
	return same;
}

/* How much of the time does the thread have its core, while it keeps that? */
static void measure_share(struct lnx_idle *idle, struct lnx_lock *lock)
{
	uint64_t cpu_ns = lnx_clock_thread_ns();

	lnx_lock(lock);
	if (!same_thread(idle))
		cpu_ns = 0;
	idle->switches = switches();
	lnx_yield_done(&idle->yield, LNX_YIELD_KEEP, lnx_clock_ns(), false, false, cpu_ns);
	idle->left = idle->yield.every;
	lnx_unlock(lock);
}

void lnx_idle(struct lnx_idle *idle, struct lnx_lock *lock,
	      struct lnx_eps *eps, uint32_t found)
{
	struct timespec nap = { .tv_sec = 0 };
	uint32_t before = 0, after, every;
	enum lnx_yield_how how;
	bool known, crowded;

	found += lnx_eps_found(eps);
	lnx_lock(lock);
	how = lnx_yield_look(&idle->yield, lnx_clock_ns(), found);
	idle->left = idle->yield.every;
	crowded = lnx_yield_crowded(&idle->yield);
	nap.tv_nsec = idle->yield.nap_ns;
	lnx_unlock(lock);
	if (how == LNX_YIELD_NOT)
		return;
	if (how == LNX_YIELD_KEEP) {
		measure_share(idle, lock);
		return;
	}
	/* With many threads the last time was just now: that is exact enough. */
	if (!crowded)
		before = switches();
	if (how == LNX_YIELD_CORE)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	after = switches();
	lnx_lock(lock);
	known = same_thread(idle);
	if (crowded)
		before = known ? idle->switches : after - 1;
	lnx_yield_done(&idle->yield, how, lnx_clock_ns(), after != before,
		       known && before != idle->switches, 0);
	idle->switches = after;
	idle->left = every = idle->yield.every;
	lnx_unlock(lock);
	/* The number of passes does not tell how much time has passed. */
	if (how == LNX_YIELD_SLEEP || after != before)
		lnx_eps_heat(eps, every);
}
