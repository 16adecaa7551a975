/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers of outstanding operations that are sent over the wire and come back: an index
 * and a generation, so that a late, repeated or forged answer finds nothing.
 *
 * Locking: none; the caller holds the owner lock of the table's owner.
 */
#ifndef LNX_OPTAB_H
#define LNX_OPTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct lnx_optab_slot {
	void *obj;			/* NULL: free */
	uint32_t gen;
	uint32_t next_free;		/* index + 1 */
};

struct lnx_optab {
	struct lnx_optab_slot *slot;
	uint32_t n;			/* number of slots */
	uint32_t free;			/* index + 1; 0: none */
};

/* An all-zero table is empty.  Frees the slots, not the objects. */
void lnx_optab_fini(struct lnx_optab *t);
/* A number for obj, never 0; 0 when memory is short. */
uint64_t lnx_optab_add(struct lnx_optab *t, void *obj);
void lnx_optab_del(struct lnx_optab *t, uint64_t id);

/* NULL: nothing has that number (any more). */
LNX_INLINE void *lnx_optab_get(const struct lnx_optab *t, uint64_t id)
{
	uint32_t i = (uint32_t)id - 1;

	if (lnx_unlikely(i >= t->n || t->slot[i].gen != (uint32_t)(id >> 32)))
		return NULL;
	return t->slot[i].obj;
}

#endif
