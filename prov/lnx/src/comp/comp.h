/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress and waiting.  Owner lock held
 * unless said otherwise.
 */
#ifndef LNX_COMP_H
#define LNX_COMP_H

#include "obj/ep.h"
#include "rail/rail.h"
#include "obj/wait.h"

/* comp/up.c: for every endpoint. */
extern const struct lnx_up lnx_up;

/* comp/progress.c: one pass over the endpoint's rails and deferred work. */
void lnx_ep_progress(struct lnx_ep *ep);
/* Poll all rails in the next `passes` passes. */
void lnx_ep_heat(struct lnx_ep *ep, uint32_t passes);
/* Poll everything, even if idle; for waiting and closing. */
void lnx_ep_progress_all(struct lnx_ep *ep);
/* To be called before sleeping on the rails' descriptors.  Until when that is possible:
 * LNX_NEVER: until a descriptor is ready.  0: there is, or may soon be, something to do
 * that no descriptor reports and that has no deadline; shared memory not counted. */
uint64_t lnx_ep_sleep_until(struct lnx_ep *ep);

/* comp/timers.c: the timers of the endpoint as a whole.  0 or -FI_ENOMEM. */
int lnx_ep_timers_open(struct lnx_ep *ep);
void lnx_ep_timers_close(struct lnx_ep *ep);
/* Close sockets of cores on exec: LNX_DUE_SWEEP.  Returns when to call it again. */
uint64_t lnx_ep_sweep(struct lnx_ep *ep, uint64_t now);

/*
 * comp/eps.c: the endpoints behind a CQ or a counter.  No lock is held; adding and
 * removing take eps->lock.
 */
void lnx_eps_init(struct lnx_eps *eps);
void lnx_eps_fini(struct lnx_eps *eps);
void lnx_eps_add(struct lnx_eps *eps, struct lnx_ep_link *link,
		 struct lnx_ep *ep);
void lnx_eps_del(struct lnx_eps *eps, struct lnx_ep_link *link);
void lnx_eps_progress_all(struct lnx_eps *eps, bool threads);
/* How much all queues and counters of these endpoints have been told so far, modulo 2^32: one of
 * them may be read in vain for ever while the others are busy. */
uint32_t lnx_eps_found(struct lnx_eps *eps);
/* Time has passed: poll all rails in the next `passes` passes. */
void lnx_eps_heat(struct lnx_eps *eps, uint32_t passes);
/*
 * Poll everything.  Until when may the caller sleep on the descriptors?  LNX_NEVER: until
 * one is ready.  0: something may come that no descriptor reports, as from shared memory
 * (with count_shm false only if no helper thread polls that).  Deadlines of endpoints with
 * a helper thread are left to it.
 */
uint64_t lnx_eps_look(struct lnx_eps *eps, bool count_shm);
uint64_t lnx_ep_look(struct lnx_ep *ep, bool count_shm);
/* The same for all enabled endpoints of a domain; take eps_lock. */
void lnx_domain_progress(struct lnx_domain *d);
uint64_t lnx_domain_look(struct lnx_domain *d, bool count_shm);

/* One pass; threads: others may bind or close endpoints meanwhile. */
LNX_INLINE void lnx_eps_progress(struct lnx_eps *eps, bool threads)
{
	struct lnx_ep *ep = eps->sole;

	if (lnx_likely(ep && !threads)) {
		lnx_lock(&ep->lock);
		if (lnx_likely(ep->enabled))
			lnx_ep_progress(ep);
		lnx_unlock(&ep->lock);
		return;
	}
	lnx_eps_progress_all(eps, threads);
}

/*
 * comp/idle.c: idle->left reads found nothing; perhaps the thread gives up its core.
 * found counts what this queue or counter was told so far, modulo 2^32.  lock guards idle and
 * must not be held, nor any other lock.
 */
void lnx_idle_init(struct lnx_idle *idle);
LNX_COLD void lnx_idle(struct lnx_idle *idle, struct lnx_lock *lock,
		       struct lnx_eps *eps, uint32_t found);

/* A blocking call.  Its time limit is in ms from now, negative: none. */
struct lnx_nap {
	uint64_t spin_ns;
	uint64_t end_ns;
	int timeout;
	bool slept;			/* it may have consumed signals, perhaps
					 * meant for other threads */
};
void lnx_comp_nap_init(struct lnx_nap *nap, int timeout);
/*
 * Nothing was found: spin, or sleep on wait (NULL: give up the processor).  False when
 * the time is over, else the caller checks again.  look is the last check before sleeping.
 * True: what was waited for is there; else *until_ns is as of lnx_eps_look.
 */
bool lnx_comp_nap(struct lnx_nap *nap, struct lnx_wait *wait,
		  bool (*look)(void *obj, uint64_t *until_ns), void *obj);

/* comp/thread.c: the helper thread of an endpoint. */
int lnx_thread_start(struct lnx_ep *ep);
void lnx_thread_stop(struct lnx_ep *ep);
/* Something is due at that time: the thread must not sleep for longer.  Owner lock held. */
void lnx_thread_wake(struct lnx_thread *t, uint64_t at_ns);
/* Let a descriptor wake the thread, or stop that; the thread may be asleep.  Owner lock
 * held.  0 or a negative errno. */
int lnx_thread_watch(struct lnx_thread *t, int fd);
void lnx_thread_unwatch(struct lnx_thread *t, int fd);
/* Stop every helper thread; when the library is unloaded. */
void lnx_threads_stop(void);

#endif
