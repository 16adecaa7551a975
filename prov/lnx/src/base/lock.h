/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks, and the only place that explains them.
 *
 *	order	lock		guards
 *	1	av->lock	entries and their index; bound endpoints
 *	1	poll->lock	members of a poll set
 *	2	eps->lock	endpoints bound to a CQ or a counter
 *	2	domain->eps_lock	enabled endpoints of a domain; taken to
 *				register memory, to undo that, and to read
 *				a counter of a registration
 *	3	ep->lock	the owner lock: everything of one endpoint, its
 *				rails, matchers, peers, pools; held around every
 *				call into its core objects.  Endpoints of one
 *				shared receive context have one mutex for it.  What
 *				closes a region of shm tries for those of all others of
 *				the process, too (core/kept_region.c)
 *	-	close_lock	one such closing at a time; taken after ep->lock, before
 *				those of others are tried for
 *	4	cq->lock	ring of one CQ, its count of empty reads
 *	4	cntr->lock	the same count of a counter; its values are atomic
 *	4	av->hash_lock	index of an AV by endpoint id
 *	4	eq->lock	queue of one EQ
 *	4	domain->mr_lock	index of registrations
 *	5	locked		elements that no instruction can change at once
 *				(rma/amo_exec.c)
 *	5	machine_lock	the machine's topology (os/topo.c)
 *	5	segment.lock	the process's state segment (ctl/state.c)
 *	5	all.lock	closed endpoints (ctl/stats_file.c)
 *	5	pool->lock	random numbers for keys (core/key_pool.c)
 *	5	kept_lock	regions that are kept, and endpoints that have one
 *				(core/kept_region.c)
 *	5	left_lock	closed regions of shm (core/shm_registry.c)
 *	5	lib_lock	libsodium, while it is loaded (core/job_key.c)
 *	-	running_lock	helper threads (comp/thread.c); alone
 *
 * A lower number is taken first.  Core providers call us back only from inside calls
 * that we make with ep->lock held (sends, progress, start, AV insert, close).  So
 * callbacks assert that it is held and never take it; they may take cq->lock.  Never
 * call a core send, receive, close or progress from inside a callback: cores hold a
 * non-recursive lock there.  Such work is put on the endpoint's deferred lists, which
 * run when the core's progress has returned.
 *
 * av->lock before ep->lock: inserting an address updates the endpoints bound to the AV.
 * The data path reads the AV without av->lock: entries never move (chunks), and are
 * published with a release store of the count.
 *
 * When the application promised FI_THREAD_DOMAIN and no helper thread of ours may run,
 * ep and cq locks are off and cost one predictable branch.
 */
#ifndef LNX_LOCK_H
#define LNX_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/compiler.h"

struct lnx_mutex {
	pthread_mutex_t mutex;
#ifdef LNX_DEBUG
	bool held;			/* written under the mutex */
#endif
};

struct lnx_lock {
	struct lnx_mutex *use;		/* &own, or the mutex of another lock */
	bool on;			/* const once other threads know the object */
	struct lnx_mutex own;
};

static inline void lnx_lock_init(struct lnx_lock *l, bool on)
{
	pthread_mutex_init(&l->own.mutex, NULL);
	l->use = &l->own;
	l->on = on;
#ifdef LNX_DEBUG
	l->own.held = false;
#endif
}

static inline void lnx_lock_fini(struct lnx_lock *l)
{
	pthread_mutex_destroy(&l->own.mutex);
}

/*
 * From now on both locks are one.  No thread may hold, or wait for, l; `with` must
 * exist longer, and be on.
 */
static inline void lnx_lock_join(struct lnx_lock *l, struct lnx_lock *with)
{
	l->use = with->use;
	l->on = true;
}

static inline void lnx_lock(struct lnx_lock *l)
{
	if (lnx_unlikely(l->on))
		pthread_mutex_lock(&l->use->mutex);
#ifdef LNX_DEBUG
	l->use->held = true;
#endif
}

/* False: another thread holds it. */
static inline bool lnx_trylock(struct lnx_lock *l)
{
	if (l->on && pthread_mutex_trylock(&l->use->mutex))
		return false;
#ifdef LNX_DEBUG
	l->use->held = true;
#endif
	return true;
}

static inline void lnx_unlock(struct lnx_lock *l)
{
#ifdef LNX_DEBUG
	l->use->held = false;
#endif
	if (lnx_unlikely(l->on))
		pthread_mutex_unlock(&l->use->mutex);
}

/*
 * A lock of a whole process, for what is rare.  Another thread may have held it when the
 * process was forked; in the child that thread does not exist, so it begins anew there.
 */
struct lnx_process_lock {
	pthread_mutex_t mutex;
	pid_t pid;			/* 0: not yet used */
};
#define LNX_PROCESS_LOCK_INIT	{ .mutex = PTHREAD_MUTEX_INITIALIZER }

static inline void lnx_process_lock(struct lnx_process_lock *l)
{
	pid_t pid = getpid(), was = __atomic_load_n(&l->pid, __ATOMIC_RELAXED);

	if (lnx_unlikely(was != pid)) {
		/* A child begins with one thread. */
		if (was)
			pthread_mutex_init(&l->mutex, NULL);
		__atomic_store_n(&l->pid, pid, __ATOMIC_RELAXED);
	}
	pthread_mutex_lock(&l->mutex);
}

static inline void lnx_process_unlock(struct lnx_process_lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}

/* For the start of functions that need the lock held; debug builds only. */
#ifdef LNX_DEBUG
#include <assert.h>
#define lnx_assert_held(l)	assert((l)->use->held)
#else
#define lnx_assert_held(l)	do { } while (0)
#endif

#endif
