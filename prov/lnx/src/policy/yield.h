/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a thread that polls and finds nothing should give up its core.  Does no I/O.
 *
 * Applications spin in fi_cq_read.  With more ranks than cores, a spinning rank holds
 * the core that the rank it waits for needs, until the scheduler takes it away:
 * milliseconds for what takes microseconds.  With a core for each rank, giving it up is
 * a wasted system call.  This learns which of the two is the case, from whether another
 * thread ran when the core was given up.
 *
 * ALONE: no other thread wants the core.  A yield every 200 us without a completion.
 * CROWDED: another thread took it.  A yield after a few reads that found nothing.  A
 * yield that no other thread uses doubles the time until the next one, from 2 us up to
 * that of ALONE.
 *
 * A thread that computes takes a whole time slice at a yield: milliseconds in which nothing
 * is looked at.  So when some yields in a row take long, the thread sleeps instead: others run
 * meanwhile, and the kernel gives it the core as soon as it wakes, since it has used less than
 * its share.  It sleeps once it has waited as long as the shortest sleep takes, and then for a
 * part of what it has waited: no wait gets much longer by that, and what computes is not
 * disturbed often.  Now and then a yield shows whether that is still so.
 *
 * sched_yield(2) only lets threads of the same scheduling group run: a cgroup, or a
 * session where the kernel makes groups of sessions.  If a thread loses its core for long twice
 * within 20 ms, although no thread takes it at a yield, it shares the core with another
 * group.  Then it sleeps, too, for a while.  Threads of the kernel take the core for some
 * microseconds, often, where packets wait for a limit of the rate: that is no reason to sleep.
 *
 * A thread of less claim to the core (of the idle class, or with a higher nice value) would
 * hardly ever take it.  So the core is also kept as a trial.  While it gets nearly all of the
 * time the core is kept.  Beside a thread of the same claim it gets about half.  That thread
 * may compute what is waited for, or have nothing to do with it: so what counts then is how
 * many completions come in the same time, with the core given up and without.  More of them may
 * also have another reason, such as a network that is well again: so both are compared anew,
 * soon at first, then ever more rarely while the core is kept with right.
 */
#ifndef LNX_YIELD_H
#define LNX_YIELD_H

#include <stdbool.h>
#include <stdint.h>

#define LNX_YIELD_AUTO	UINT64_MAX

enum lnx_yield_how {
	LNX_YIELD_NOT,
	LNX_YIELD_CORE,			/* sched_yield */
	LNX_YIELD_SLEEP,		/* for nap_ns */
	LNX_YIELD_KEEP,			/* keep it, and see how much of the time it had it */
};

/* State of a queue or counter that a thread polls; lnx_yield_init first. */
struct lnx_yield {
	uint32_t every;			/* reads that find nothing, between two
					 * checks */
	bool learns;			/* LNX_YIELD_AUTO */
	uint8_t paid;			/* times in a row that keeping the core paid; */
	uint8_t paid_often;		/* comparisons with that result, up to a limit */
	uint8_t nlong;			/* yields in a row that took long, up to a limit */
	uint32_t found;			/* completions at the last check */
	uint32_t keep_for_ns;		/* until the share of the core is looked at next; 0:
					 * measuring begins with that */
	uint64_t look_ns;		/* when that was; 0: never */
	uint64_t idle_ns;		/* nothing was found since then */
	uint64_t gave_ns;		/* when the core was given up last */
	uint64_t spin_ns;		/* how long to keep it; 0: crowded */
	uint64_t lost_ns;		/* when it was last taken away */
	uint64_t sleep_ns;		/* sleep, and do not yield, until then */
	uint64_t sleep_for_ns;		/* how long that lasts next time */
	uint32_t nap_ns;		/* how long one sleep is, at least */
	uint64_t keep_ns;		/* the core is kept, and its share is measured from
					 * then on; 0: it is not */
	uint64_t keep_cpu_ns;		/* CPU time of the thread then */
	uint64_t try_ns;		/* no trial before that */
	uint64_t try_after_ns;		/* pause after the next trial that fails */
	uint64_t crowded_ns;		/* the core is given up since then; of a trial: so
					 * long before it */
	uint32_t crowded_found;		/* completions until then; of a trial: in that time */
	uint32_t keep_found;		/* completions when its share was measured */
};

/* every: LNX_YIELD_AUTO, 0 (never), or yield after so many reads that found nothing. */
void lnx_yield_init(struct lnx_yield *y, uint64_t every);

/*
 * y->every reads have found nothing, perhaps not all in a row.  found counts
 * completions, modulo 2^32.  If the answer is not LNX_YIELD_NOT, call lnx_yield_done
 * after doing what it says.  Both may change y->every.
 */
enum lnx_yield_how lnx_yield_look(struct lnx_yield *y, uint64_t now,
				  uint32_t found);

/*
 * The core was given up, or kept.  taken: another thread ran then.  lost_ns: for how long
 * others had the core when it was taken away, since the last time it was given up; 0: it was
 * not.  cpu_ns, if it was kept: CPU time of the thread until now; 0: another thread called
 * before.
 */
void lnx_yield_done(struct lnx_yield *y, enum lnx_yield_how how, uint64_t now,
		    bool taken, uint64_t lost_ns, uint64_t cpu_ns);

/* Did other threads take the core last time? */
static inline bool lnx_yield_crowded(const struct lnx_yield *y)
{
	return y->learns && !y->spin_ns;
}

#endif
