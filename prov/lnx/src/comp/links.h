/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The links that the rails of an endpoint stand on, as the kernel tells of them; and
 * interfaces that come, which become rails (core/hotplug.h).
 * Owner lock held.
 */
#ifndef LNX_LINKS_WATCH_H
#define LNX_LINKS_WATCH_H

#include "obj/ep.h"

/* Watch them, if there are several rails to choose from, or may come to be.  Without
 * a sensor the rest works as well, if more slowly. */
void lnx_links_open(struct lnx_ep *ep);
void lnx_links_close(struct lnx_ep *ep);
/* Hellos came: paths to their senders are made, who need to know of our rails, too. */
LNX_COLD void lnx_links_learn(struct lnx_ep *ep);
/* What has happened: to tx/link_notice.c. */
void lnx_links_poll(struct lnx_ep *ep, uint64_t now);

#endif
