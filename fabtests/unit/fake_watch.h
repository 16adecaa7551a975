/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A watch that says what the test has written down for it.  To its user it is like
 * any other (core/netwatch.h): its descriptor is readable while there is an event.
 */
#ifndef FAKE_WATCH_H
#define FAKE_WATCH_H

#include "core/netwatch.h"

/* Closed with lnx_netwatch_close. */
struct lnx_netwatch *fake_watch_open(void);

/* The next event that it will tell. */
void fake_watch_event(struct lnx_netwatch *w, const struct lnx_net_event *ev);
/* Say that an interface went up or down, and let looks at it see so. */
void fake_watch_link(struct lnx_netwatch *w, uint32_t ifindex, const char *name,
		     bool up);
/* It went, for looks too. */
void fake_watch_gone(struct lnx_netwatch *w, uint32_t ifindex);
/* An interface gained or lost an address (sockaddr): event and looks. */
void fake_watch_addr(struct lnx_netwatch *w, uint32_t ifindex, const void *addr,
		     size_t len, bool there);
/* Some events were lost. */
void fake_watch_lost(struct lnx_netwatch *w);
/* From now on there are none but this negative errno. */
void fake_watch_break(struct lnx_netwatch *w, int err);
/* Change what looks see without an event: one that was lost. */
void fake_watch_quiet(struct lnx_netwatch *w, bool quiet);

#endif
