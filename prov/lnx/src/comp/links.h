/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The links below the rails of an endpoint, as the kernel reports them; and new
 * interfaces, which become rails (core/hotplug.h).  Owner lock held.
 */
#ifndef LNX_LINKS_WATCH_H
#define LNX_LINKS_WATCH_H

#include "obj/ep.h"

/* Watch them, if there are several rails to choose from, or may be later.  Without a
 * sensor the rest works too, but reacts more slowly. */
void lnx_links_open(struct lnx_ep *ep);
void lnx_links_close(struct lnx_ep *ep);
/* Hellos came: make paths to their senders, and tell those about our rails too. */
LNX_COLD void lnx_links_learn(struct lnx_ep *ep);
/* Pass events on to rel/link_notice.c. */
void lnx_links_poll(struct lnx_ep *ep, uint64_t now);
/* The same from time to time: LNX_DUE_LINKS.  Returns when to call it again. */
uint64_t lnx_links_look(struct lnx_ep *ep, uint64_t now);

#endif
