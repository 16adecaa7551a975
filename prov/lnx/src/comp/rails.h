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

/* All wait objects of what ep reports to; some perhaps more than once. */
#define LNX_WAITS_MAX	(2 + LNX_CNTR_KINDS)
unsigned lnx_rails_waits(const struct lnx_ep *ep, struct lnx_wait **wait);
/* Who waits for these is woken by that descriptor, or no more; -1: there is none.  0 or a
 * negative errno. */
int lnx_rails_wait_add(const struct lnx_ep *ep, int fd);
void lnx_rails_wait_del(const struct lnx_ep *ep, int fd);

#endif
