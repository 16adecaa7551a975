/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains that a link gains while it is open.  A part of FI_LNX_PROV_LINKS that names
 * no domain means every domain of its provider, also later ones.
 */
#ifndef LNX_HOTPLUG_H
#define LNX_HOTPLUG_H

#include "obj/ep.h"

/*
 * lr came from the canonical name of a link, which names all domains.  If it has all
 * rails of a link that the user wrote, or of the default link, mark in lr->open the
 * parts that named no domain there.  Any thread.
 */
void lnx_hotplug_mark(struct lnx_link_rails *lr);

/* A new rail. */
struct lnx_hotplug_rail {
	struct lnx_rail_spec spec;
	/* The rail on that interface, whose address is replaced by this one, on the
	 * same subnet; NULL: it is an additional rail. */
	struct lnx_rail *was;
};

/*
 * Find domains that ep has no rail for, and that carry as much as its rails of the same
 * provider.  Returns how many, at most max; their spec.info is the caller's.  Owner
 * lock held; queries cores, which takes some 0.1 ms.
 */
unsigned lnx_hotplug_find(const struct lnx_ep *ep, struct lnx_hotplug_rail *out,
		       unsigned max);

#endif
