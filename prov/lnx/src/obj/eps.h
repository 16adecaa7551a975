/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoints that a completion queue or a counter is bound to, and that reading
 * it moves along (comp/eps.c).
 */
#ifndef LNX_EPS_H
#define LNX_EPS_H

#include <pthread.h>

#include "base/list.h"
#include "policy/yield.h"

struct lnx_ep;

/* Of a queue or counter: reads that find nothing (comp/idle.c). */
struct lnx_idle {
	uint32_t left;			/* of them, until lnx_idle() is due */
	uint32_t switches;		/* of the thread that came last */
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
 * Membership of an endpoint.  It is in the list once, though bound more than once:
 * the other links stay unlinked.
 */
struct lnx_ep_link {
	struct lnx_node link;
	struct lnx_ep *ep;		/* NULL: not bound */
};

#endif
