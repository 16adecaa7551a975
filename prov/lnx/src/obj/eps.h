/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoints that a completion queue or a counter is bound to.  Reading the queue or
 * counter makes them progress (comp/eps.c).
 */
#ifndef LNX_EPS_H
#define LNX_EPS_H

#include <pthread.h>

#include "base/list.h"
#include "policy/yield.h"

struct lnx_ep;

/* Reads of a queue or counter that find nothing (comp/idle.c). */
struct lnx_idle {
	uint32_t left;			/* such reads until lnx_idle() is due */
	uint32_t switches;		/* context switches of the last reading
					 * thread, */
	uint64_t cpu_ns;		/* and the time that it had had the CPU */
	uint64_t since_ns;		/* at this time; 0: not known */
	pthread_t thread;
	bool known;			/* there is such a thread */
	struct lnx_yield yield;
};

struct lnx_eps {
	struct lnx_ep *sole;		/* the endpoint when there is just one */
	struct lnx_node list;		/* lnx_ep_link.link */
	pthread_mutex_t lock;		/* of list; taken before any ep->lock */
};

/*
 * Membership of an endpoint.  An endpoint that is bound more than once is in the list
 * once: its other links stay unlinked.
 */
struct lnx_ep_link {
	struct lnx_node link;
	struct lnx_ep *ep;		/* NULL: not bound */
};

#endif
