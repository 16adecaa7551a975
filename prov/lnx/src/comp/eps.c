/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress of endpoints through the queues and counters that they report to, and
 * sleeping until they report.  Called by api/cq.c, api/cntr.c and api/poll.c; calls
 * comp/progress.c.
 */
#include <sched.h>

#include "base/interval.h"
#include "comp/comp.h"

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

static uint32_t found_by(const struct lnx_ep *ep)
{
	uint32_t n = (ep->tx_cq ? lnx_cq_written(ep->tx_cq) : 0) +
		     (ep->rx_cq ? lnx_cq_written(ep->rx_cq) : 0);
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (ep->cntr[i])
			n += (uint32_t)lnx_cntr_ended(ep->cntr[i]);
	return n;
}

uint32_t lnx_eps_found(struct lnx_eps *eps)
{
	struct lnx_node *n, *tmp;
	uint32_t found = 0;

	pthread_mutex_lock(&eps->lock);
	lnx_list_foreach(&eps->list, n, tmp) {
		struct lnx_ep *ep = ep_of(n);

		/* Until then queues and counters may still be bound to it. */
		lnx_lock(&ep->lock);
		if (ep->enabled)
			found += found_by(ep);
		lnx_unlock(&ep->lock);
	}
	pthread_mutex_unlock(&eps->lock);
	return found;
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

uint64_t lnx_eps_look(struct lnx_eps *eps, bool count_shm)
{
	uint64_t until_ns = LNX_NEVER;
	struct lnx_node *n, *tmp;

	pthread_mutex_lock(&eps->lock);
	lnx_list_foreach(&eps->list, n, tmp) {
		uint64_t ns = lnx_ep_look(ep_of(n), count_shm);

		until_ns = LNX_MIN(until_ns, ns);
	}
	pthread_mutex_unlock(&eps->lock);
	return until_ns;
}

uint64_t lnx_ep_look(struct lnx_ep *ep, bool count_shm)
{
	uint64_t until_ns;

	lnx_lock(&ep->lock);
	until_ns = ep->enabled ? lnx_ep_sleep_until(ep) : LNX_NEVER;
	if (until_ns && ep->thread) {
		lnx_thread_wake(ep->thread, until_ns);
		until_ns = LNX_NEVER;
	}
	if ((ep->shm && (count_shm || !ep->thread)) || ep->look_soon)
		until_ns = 0;
	lnx_unlock(&ep->lock);
	return until_ns;
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

uint64_t lnx_domain_look(struct lnx_domain *d, bool count_shm)
{
	uint64_t until_ns = LNX_NEVER;
	struct lnx_node *n, *tmp;

	pthread_mutex_lock(&d->eps_lock);
	lnx_list_foreach(&d->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		/*
		 * Its descriptors wake the threads that wait for what it is bound to.
		 */
		if (!lnx_ep_look(ep, count_shm) || !ep->thread)
			until_ns = 0;
	}
	pthread_mutex_unlock(&d->eps_lock);
	return until_ns;
}

void lnx_comp_nap_init(struct lnx_nap *nap, int timeout)
{
	uint64_t now = lnx_clock_ns();

	nap->timeout = timeout;
	nap->slept = false;
	nap->spin_ns = now + LNX_WAIT_SPIN_NS;
	nap->end_ns = timeout < 0 ? UINT64_MAX :
		      now + (uint64_t)timeout * LNX_NS_PER_MS;
}

bool lnx_comp_nap(struct lnx_nap *nap, struct lnx_wait *wait,
		  bool (*look)(void *obj, uint64_t *until_ns), void *obj)
{
	uint64_t now = lnx_clock_ns(), until_ns, ns;

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
	if (look(obj, &until_ns))
		return true;
	/* Other threads may have what is due sooner than what was so far. */
	ns = until_ns ? LNX_MIN(lnx_ns_since(until_ns, now), LNX_WAIT_MAX_NS) :
	     LNX_WAIT_LOOK_NS;
	ns = LNX_MIN(ns, nap->end_ns - now);
	lnx_wait_block(wait, (int)lnx_ms_up(ns));
	return true;
}
