/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Places of peers in the shm core.
 *
 * The core keeps, for each of its 256 places, by which number the peer there knows us, and
 * whether it was told our name.  When an address is removed it sets these back in the
 * region of the peer, but not in its own: the next peer at that place is then taken for
 * connected, and the first send to it crashes, as its region is not mapped.  So they are
 * set back here.
 *
 * Where they are is found in the region and the address vector of the core, and checked
 * against what is known of both.  No pointer that is found there is followed: the vector is
 * copied by the kernel, and the entry is written through the region's file.
 *
 * Locking: the owner lock of ep is held.
 */
#ifndef LNX_SHM_PLACE_H
#define LNX_SHM_PLACE_H

#include "obj/ep.h"

#define LNX_SHM_PLACES	256u

/* Are they found in this core?  If not, no place may be used again. */
LNX_COLD bool lnx_shm_places_found(const struct lnx_ep *ep);

/* What to set back. */
struct lnx_shm_place {
	int fd;				/* of ep's own region; -1: it was not found */
	uint64_t entry;			/* offset in that */
};

/* The place of the address that the core knows as core.  To be called before that is
 * removed, which it must not be if its place is not found; vacate afterwards, which closes
 * the descriptor. */
LNX_COLD struct lnx_shm_place lnx_shm_place_of(const struct lnx_ep *ep, fi_addr_t core);
LNX_COLD void lnx_shm_place_vacate(struct lnx_shm_place place);

#endif
