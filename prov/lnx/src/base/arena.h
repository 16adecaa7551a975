/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of many sizes that goes back when it is no longer used: a size is rounded up to
 * that of a class, and each class has its slabs (base/slab.h).  Steps are 8 bytes up to
 * 128, then an eighth of the next lower power of two, and above 4 KiB a sixteenth: above 4
 * KiB at most 6.3 % are lost by that.
 *
 * Its owner knows the size of what it frees: objects have no head.
 *
 * Locking: none; the caller holds the owner lock of the owner.
 */
#ifndef LNX_ARENA_H
#define LNX_ARENA_H

#include "base/slab.h"

/* Largest size: a message that fits into one frame of LNX_FRAME_MAX, with its entry. */
#define LNX_ARENA_MAX	17408
#define LNX_ARENA_CLASSES	89

struct lnx_arena {
	struct lnx_slabs *class;	/* owned; NULL: nothing was needed yet */
	struct lnx_spares spares;
	size_t used;			/* bytes in use, in sizes of classes */
};

/* Allocates nothing yet.  It must not move. */
void lnx_arena_init(struct lnx_arena *a);
/* Frees everything, also what is in use. */
void lnx_arena_fini(struct lnx_arena *a);

/* size: 1 to LNX_ARENA_MAX.  Aligned to 8 bytes; contents are undefined.  NULL when
 * memory is short. */
void *lnx_arena_get(struct lnx_arena *a, size_t size);
/* The size that it was got with. */
void lnx_arena_put(struct lnx_arena *a, void *obj, size_t size);

#endif
