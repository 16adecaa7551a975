/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains that a link gains while it is open.  A part of FI_LNX_PROV_LINKS that names
 * none means every domain of its provider: also one that is not there yet.
 */
#ifndef LNX_HOTPLUG_H
#define LNX_HOTPLUG_H

#include "obj/ep.h"

/*
 * lr came from the canonical name of a link, which names all domains.  If it is the
 * whole of one that the user wrote, or of the default, the parts that name none there
 * are marked in lr->open.  Any thread.
 */
void lnx_hotplug_mark(struct lnx_link_rails *lr);

/* What has come. */
struct lnx_hotplug_rail {
	struct lnx_rail_spec spec;
	/* The rail of that interface, which now has this address and not the rail's any
	 * more, on the same subnet; NULL: one more rail. */
	struct lnx_rail *was;
};

/*
 * Domains that ep has no rail for, and that carry as much as its rails of the same
 * provider.  How many, at most max; their spec.info is the caller's.  Owner lock held;
 * asks cores, which takes some 0.1 ms.
 */
unsigned lnx_hotplug_find(const struct lnx_ep *ep, struct lnx_hotplug_rail *out,
		       unsigned max);

#endif
