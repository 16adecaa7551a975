/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress of endpoints through the queues and counters that they report to, and
 * sleeping until they report.  Called by api/cq.c, api/cntr.c and api/poll.c; calls
 * comp/progress.c.
 */
#include <sched.h>

#include "base/interval.h"
#include "comp/comp.h"

/* shm has no descriptor to wait for: check it that often. */
#define SHM_LOOK_MS	1
/* Deadlines have none either. */
#define TIMER_LOOK_MS	100

void lnx_eps_init(struct lnx_eps *eps)
{
	pthread_mutex_init(&eps->lock, NULL);
	lnx_list_init(&eps->list);
	eps->sole = NULL;
}

void lnx_eps_fini(struct lnx_eps *eps)
{
	pthread_mutex_destroy(&eps->lock);
}

static inline struct lnx_ep *ep_of(struct lnx_node *n)
{
	return lnx_list_entry(n, struct lnx_ep_link, link)->ep;
}

static void find_sole(struct lnx_eps *eps)
{
	struct lnx_node *first = eps->list.next;

	eps->sole = !lnx_list_empty(&eps->list) && first->next == &eps->list ?
		    ep_of(first) : NULL;
}

void lnx_eps_add(struct lnx_eps *eps, struct lnx_ep_link *link,
		 struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;
	bool present = false;

	link->ep = ep;
	lnx_list_init(&link->link);
	pthread_mutex_lock(&eps->lock);
	lnx_list_foreach(&eps->list, n, tmp)
		if (ep_of(n) == ep)
			present = true;
	if (!present)
		lnx_list_add_tail(&eps->list, &link->link);
	find_sole(eps);
	pthread_mutex_unlock(&eps->lock);
}

void lnx_eps_del(struct lnx_eps *eps, struct lnx_ep_link *link)
{
	pthread_mutex_lock(&eps->lock);
	lnx_list_del(&link->link);
	find_sole(eps);
	pthread_mutex_unlock(&eps->lock);
	link->ep = NULL;
}

void lnx_eps_progress_all(struct lnx_eps *eps, bool threads)
{
	struct lnx_node *n, *tmp;

	if (threads)
		pthread_mutex_lock(&eps->lock);
	lnx_list_foreach(&eps->list, n, tmp) {
		struct lnx_ep *ep = ep_of(n);

		lnx_lock(&ep->lock);
		if (ep->enabled)
			lnx_ep_progress(ep);
		lnx_unlock(&ep->lock);
	}
	if (threads)
		pthread_mutex_unlock(&eps->lock);
}

void lnx_eps_heat(struct lnx_eps *eps, uint32_t passes)
{
	struct lnx_node *n, *tmp;

	pthread_mutex_lock(&eps->lock);
	lnx_list_foreach(&eps->list, n, tmp) {
		struct lnx_ep *ep = ep_of(n);

		lnx_lock(&ep->lock);
		if (ep->enabled)
			lnx_ep_heat(ep, passes);
		lnx_unlock(&ep->lock);
	}
	pthread_mutex_unlock(&eps->lock);
}

bool lnx_eps_look(struct lnx_eps *eps, bool count_shm)
{
	struct lnx_node *n, *tmp;
	bool more = false;

	pthread_mutex_lock(&eps->lock);
	lnx_list_foreach(&eps->list, n, tmp)
		if (lnx_ep_look(ep_of(n), count_shm))
			more = true;
	pthread_mutex_unlock(&eps->lock);
	return more;
}

bool lnx_ep_look(struct lnx_ep *ep, bool count_shm)
{
	bool more;

	lnx_lock(&ep->lock);
	more = ep->enabled && lnx_ep_trywait(ep);
	if ((ep->shm && (count_shm || !ep->thread)) || ep->look_soon)
		more = true;
	lnx_unlock(&ep->lock);
	return more;
}

void lnx_domain_progress(struct lnx_domain *d)
{
	struct lnx_node *n, *tmp;

	pthread_mutex_lock(&d->eps_lock);
	lnx_list_foreach(&d->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		lnx_lock(&ep->lock);
		if (ep->enabled)
			lnx_ep_progress(ep);
		lnx_unlock(&ep->lock);
	}
	pthread_mutex_unlock(&d->eps_lock);
}

bool lnx_domain_look(struct lnx_domain *d, bool count_shm)
{
	struct lnx_node *n, *tmp;
	bool more = false;

	pthread_mutex_lock(&d->eps_lock);
	lnx_list_foreach(&d->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		/*
		 * Its descriptors wake the threads that wait for what it is bound to.
		 */
		if (lnx_ep_look(ep, count_shm) || !ep->thread)
			more = true;
	}
	pthread_mutex_unlock(&d->eps_lock);
	return more;
}

void lnx_nap_init(struct lnx_nap *nap, int timeout)
{
	uint64_t now = lnx_clock_ns();

	nap->timeout = timeout;
	nap->slept = false;
	nap->spin_ns = now + LNX_WAIT_SPIN_NS;
	nap->end_ns = timeout < 0 ? UINT64_MAX :
		      now + (uint64_t)timeout * LNX_NS_PER_MS;
}

bool lnx_nap(struct lnx_nap *nap, struct lnx_wait *wait,
	     enum lnx_look (*look)(void *), void *obj)
{
	uint64_t now = lnx_clock_ns();
	enum lnx_look found;
	int ms = TIMER_LOOK_MS;

	if (now >= nap->end_ns)
		return false;
	if (now < nap->spin_ns)
		return true;
	if (!wait) {
		sched_yield();
		return true;
	}
	/* Arm, check everything once more, then sleep. */
	nap->slept = true;
	lnx_wait_arm(wait);
	found = look(obj);
	if (found == LNX_LOOK_READY)
		return true;
	if (found == LNX_LOOK_SOON)
		ms = SHM_LOOK_MS;
	if (nap->timeout >= 0) {
		uint64_t left = (nap->end_ns - now + LNX_NS_PER_MS - 1) /
				LNX_NS_PER_MS;

		if (left < (uint64_t)ms)
			ms = (int)left;
	}
	lnx_wait_block(wait, ms);
	return true;
}
