/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of closed shm endpoints that other endpoints of this process still refer to.
 *
 * The cores of two endpoints of one process share one mapping of each region; those of two
 * processes have a mapping each.  The core unmaps a region when its endpoint is closed, and
 * others of the process crash: when they read a message that it sent, or send to it.  So
 * what they have in common is mapped again at once, at the same address, for as long as one
 * of them knows the endpoint: as other processes do.
 *
 * Between the two no other thread may use the region: the locks of the process's other endpoints
 * are held.  Where locks are off, as the application has promised FI_THREAD_DOMAIN, and another
 * thread uses an endpoint of another domain, it may; and any thread may get the region's place.
 * Then it is as it was (PEERS.md).
 *
 * Locking: taken inside (base/lock.h).
 */
#ifndef LNX_KEPT_REGION_H
#define LNX_KEPT_REGION_H

#include "obj/ep.h"

struct lnx_kept_region;

/* ep has a region, and a registry.  Without memory others do not know of it. */
void lnx_kept_region_opened(struct lnx_ep *ep);
/*
 * ep's core endpoint is about to be closed; ep's lock is held.  Others wait until that is done,
 * and what this has returned is given back: NULL if there is nothing to keep.
 */
LNX_COLD struct lnx_kept_region *lnx_kept_region_before(struct lnx_ep *ep);
LNX_COLD void lnx_kept_region_after(struct lnx_ep *ep, struct lnx_kept_region *kept);
/* ep has forgotten the endpoint eid; or, with its own, all: its core endpoint is closed. */
void lnx_kept_region_forget(struct lnx_ep *ep, uint64_t eid);

#endif
