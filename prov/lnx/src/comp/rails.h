/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rails of an endpoint, when it is enabled and later.  Owner lock held. */
#ifndef LNX_RAILS_ADD_H
#define LNX_RAILS_ADD_H

#include "obj/ep.h"

struct lnx_wait;

/*
 * Open one more rail, at the core address src unless that is NULL, and take it into use.
 * 0, or a negative code after a warning, and then there is none.
 */
int lnx_rails_add(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
		  const struct lnx_addr_rail *src);

/* Counters were bound since the rails were opened: have cores count for them.  0, or what a
 * core says. */
LNX_COLD int lnx_rails_lend(struct lnx_ep *ep);
/* And wait, which is of one of them, is to be woken: 0 or a negative errno. */
LNX_COLD int lnx_rails_wake(struct lnx_ep *ep, struct lnx_wait *wait);

/* Descriptors that become ready when there is something to do: of rails, links,
 * devices and peers.  Their number; those of rails, which are worth an error, come first: *nrail. */
#define LNX_FDS_MAX	(2 * LNX_RAILS_MAX + 2)
unsigned lnx_rails_fds(const struct lnx_ep *ep, int fd[LNX_FDS_MAX],
		       unsigned *nrail);

/* All wait objects of what ep reports to; some perhaps more than once. */
#define LNX_WAITS_MAX	(2 + LNX_CNTR_KINDS)
unsigned lnx_rails_waits(const struct lnx_ep *ep, struct lnx_wait **wait);
/* Who waits for these, and the helper thread if it runs, is woken by that descriptor, or
 * no more; -1: there is none.  0 or a negative errno. */
int lnx_rails_wait_add(const struct lnx_ep *ep, int fd);
void lnx_rails_wait_del(const struct lnx_ep *ep, int fd);

#endif
