/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A watch whose events and states the test writes.  For its user it is like any
 * other watch (os/netwatch.h): its descriptor is readable while there is an
 * event.
 */
#ifndef FAKE_WATCH_H
#define FAKE_WATCH_H

#include "os/netwatch.h"

/* Closed with lnx_netwatch_close. */
struct lnx_netwatch *fake_watch_open(void);

/* Add an event to those that it will report. */
void fake_watch_event(struct lnx_netwatch *w, const struct lnx_net_event *ev);
/* Report that an interface went up or down; lookups give the same. */
void fake_watch_link(struct lnx_netwatch *w, uint32_t ifindex, const char *name,
		     bool up);
/* The interface went away, for lookups too. */
void fake_watch_gone(struct lnx_netwatch *w, uint32_t ifindex);
/* An interface gained or lost an address (sockaddr): an event, and in lookups. */
void fake_watch_addr(struct lnx_netwatch *w, uint32_t ifindex, const void *addr,
		     size_t len, bool there);
/* Some events were lost. */
void fake_watch_lost(struct lnx_netwatch *w);
/* From now on it returns only this negative errno. */
void fake_watch_break(struct lnx_netwatch *w, int err);
/* Change what lookups give without an event, as if the event was lost. */
void fake_watch_quiet(struct lnx_netwatch *w, bool quiet);

#endif
