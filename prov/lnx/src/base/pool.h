/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool of equal objects, in slabs that stay until the pool is destroyed: the memory of
 * a freed object stays mapped, which protects against core providers that write into an
 * entry after freeing it.  Free objects form a stack, so that the one used last, still
 * in cache, is used next.  The stack is outside of them: such a core cannot break it, and
 * whether an object is in it is one look, at the place that the object names.
 *
 * Locking: none; the caller holds the owner lock of the pool's owner.
 */
#ifndef LNX_POOL_H
#define LNX_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct lnx_pool_slab;

struct lnx_pool {
	void **free;			/* stack; an object in it begins with its place there */
	uint32_t nfree;
	uint32_t used;
	uint32_t size;			/* of one object, multiple of 64 */
	uint32_t per_slab;
	struct lnx_pool_slab *slabs;
	/* Called for each new object, or NULL.  What it writes behind the object's
	 * first eight bytes stays until the object's user overwrites it. */
	void (*make)(void *obj, struct lnx_pool *p);
};

/* Objects are 64-byte aligned.  Allocates nothing yet. */
void lnx_pool_init(struct lnx_pool *p, size_t size, size_t per_slab);
/* Frees the slabs, also those with objects in use. */
void lnx_pool_fini(struct lnx_pool *p);
/* Slow part of lnx_pool_get: one object more than ever before, perhaps of another slab.  NULL
 * when memory is short. */
void *lnx_pool_grow(struct lnx_pool *p);
/* The most objects that were in use at a time. */
size_t lnx_pool_max(const struct lnx_pool *p);
/* Is obj the start of an object of this pool that was in use ever?  For contexts in a core's
 * error, which may be anything. */
bool lnx_pool_owns(const struct lnx_pool *p, const void *obj);
/* The same, and is the object in use?  Of one that is not, a core must not have written the first
 * eight bytes since: then it looks as if it were. */
bool lnx_pool_lent(const struct lnx_pool *p, const void *obj);
/* Calls fn for every object that was in use ever; fn may free it. */
void lnx_pool_each(struct lnx_pool *p, void (*fn)(void *obj, void *arg),
		   void *arg);

/* Contents are undefined.  NULL when memory is short. */
static inline void *lnx_pool_get(struct lnx_pool *p)
{
	if (lnx_unlikely(!p->nfree))
		return lnx_pool_grow(p);
	p->used++;
	return p->free[--p->nfree];
}

static inline void lnx_pool_put(struct lnx_pool *p, void *obj)
{
	*(uint64_t *)obj = p->nfree;
	p->free[p->nfree++] = obj;
	p->used--;
}

#endif
