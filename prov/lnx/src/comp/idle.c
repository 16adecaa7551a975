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
	idle->since_ns = 0;
	lnx_yield_done(&idle->yield, LNX_YIELD_KEEP, lnx_clock_ns(), false, 0, cpu_ns);
	idle->left = idle->yield.every;
	lnx_unlock(lock);
}

/* What the kernel knows of a thread. */
struct usage {
	uint32_t switches;
	uint64_t now, cpu_ns;		/* 0: not asked for */
};

/* For how long others had the core each time that the thread lost it, up to `u`, since it gave
 * it up last; 0: not known.  Time in which it waited in other calls counts, too. */
static uint64_t lost_ns(const struct lnx_idle *idle, const struct usage *u)
{
	uint32_t n = u->switches - idle->switches;

	if (!n || !idle->since_ns || !u->cpu_ns)
		return 0;
	return lnx_ns_since(lnx_ns_since(u->now, idle->since_ns),
			    lnx_ns_since(u->cpu_ns, idle->cpu_ns)) / n;
}

void lnx_idle(struct lnx_idle *idle, struct lnx_lock *lock,
	      struct lnx_eps *eps, uint32_t found)
{
	struct timespec nap = { .tv_sec = 0 };
	struct usage before = { 0 };
	uint32_t after, every;
	enum lnx_yield_how how;
	bool known, crowded, taken;

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
		before.switches = switches();
	if (!crowded && how == LNX_YIELD_CORE) {
		before.now = lnx_clock_ns();
		before.cpu_ns = lnx_clock_thread_ns();
	}
	if (how == LNX_YIELD_CORE)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	after = switches();
	lnx_lock(lock);
	known = same_thread(idle);
	if (crowded)
		before.switches = known ? idle->switches : after - 1;
	taken = after != before.switches;
	lnx_yield_done(&idle->yield, how, lnx_clock_ns(), taken,
		       known ? lost_ns(idle, &before) : 0, 0);
	idle->switches = after;
	idle->since_ns = taken ? 0 : before.now;
	idle->cpu_ns = before.cpu_ns;
	idle->left = every = idle->yield.every;
	lnx_unlock(lock);
	/* The number of passes does not tell how much time has passed. */
	if (how == LNX_YIELD_SLEEP || taken)
		lnx_eps_heat(eps, every);
}
