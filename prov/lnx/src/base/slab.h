/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of one size, in slabs that go back to the system when nothing in them is in
 * use.  For what there can be a great deal of for some time, such as messages that no
 * receive matches yet.  What a core provider has an address of is in a pool instead
 * (base/pool.h), whose memory stays.
 *
 * A slab is aligned to its size, so that an object's address leads to its slab: an object
 * costs its size, and a slab of some hundred objects 64 bytes.
 *
 * Some empty slabs are kept, those that became empty last, so that a message now and then
 * needs no call of the system.  Several sizes may share these (base/arena.h).
 *
 * Locking: none; the caller holds the owner lock of the owner.
 */
#ifndef LNX_SLAB_H
#define LNX_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define LNX_SLAB_BYTES		((size_t)64 << 10)	/* for small objects, */
#define LNX_SLAB_LARGE		((size_t)1 << 20)	/* and for those above */
#define LNX_SLAB_SMALL_MAX	1024			/* this size */

/* Empty slabs that are kept.  It must not move. */
struct lnx_spares {
	struct lnx_node list;		/* lnx_slab.spare, the oldest first */
	size_t bytes;
	size_t max;			/* so many bytes are kept at most */
};

/* Objects of one size.  It must not move. */
struct lnx_slabs {
	struct lnx_node part;		/* lnx_slab.link: with free objects, */
	struct lnx_node full;		/* and without */
	uint32_t size;			/* of an object; a multiple of 8 */
	uint32_t per_slab;
	size_t slab_bytes;
	struct lnx_spares *spares;
};

void lnx_slab_spares_init(struct lnx_spares *sp, size_t max);

/* size: at most a quarter of LNX_SLAB_LARGE.  Allocates nothing yet. */
void lnx_slabs_init(struct lnx_slabs *s, size_t size, struct lnx_spares *spares);
/* Gives all slabs back, also those with objects in use. */
void lnx_slabs_fini(struct lnx_slabs *s);

/* Aligned to 8 bytes; contents are undefined.  NULL when memory is short. */
void *lnx_slabs_get(struct lnx_slabs *s);
void lnx_slabs_put(struct lnx_slabs *s, void *obj);

#endif
