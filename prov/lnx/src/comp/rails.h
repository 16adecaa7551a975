/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rails of an endpoint, when it is enabled and later.  Owner lock held. */
#ifndef LNX_RAILS_ADD_H
#define LNX_RAILS_ADD_H

#include "obj/ep.h"

struct lnx_wait;

/*
 * Open one more rail, at the core address src unless that is NULL, and use it.  0, or a
 * negative code after a warning, and then nothing was added.
 */
int lnx_rails_add(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
		  const struct lnx_addr_rail *src);

/* Counters were bound after the rails were opened: lend them to the cores.  0, or the
 * core's error. */
LNX_COLD int lnx_rails_lend(struct lnx_ep *ep);
/* The wait object of one of them is to be woken too: 0 or a negative errno. */
LNX_COLD int lnx_rails_wake(struct lnx_ep *ep, struct lnx_wait *wait);

/* Descriptors that become ready when there is something to do: of rails, links, devices
 * and peers.  Returns their number; those of rails, whose failure is an error, come
 * first: *nrail. */
#define LNX_FDS_MAX	(2 * LNX_RAILS_MAX + 2)
unsigned lnx_rails_fds(const struct lnx_ep *ep, int fd[LNX_FDS_MAX],
		       unsigned *nrail);

/*
 * All wait objects of the queues and counters of ep; some may be there more than once.
 */
#define LNX_WAITS_MAX	(2 + LNX_CNTR_KINDS)
unsigned lnx_rails_waits(const struct lnx_ep *ep, struct lnx_wait **wait);
/* Let a descriptor wake the threads that sleep on these objects, and the helper thread
 * if it runs; or stop that; -1: no descriptor.  0 or a negative errno. */
int lnx_rails_wait_add(const struct lnx_ep *ep, int fd);
void lnx_rails_wait_del(const struct lnx_ep *ep, int fd);

#endif
