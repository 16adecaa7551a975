/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pools of equal objects.  See pool.h. */
#include "base/pool.h"

#include <stdlib.h>

#define ALIGN	64

struct lnx_pool_slab {
	struct lnx_pool_slab *next;
	char *base;			/* first object */
	uint32_t made;			/* objects that were handed out ever, the first ones */
	uint32_t total;			/* objects of this slab, and of those that are older */
};

static inline size_t slab_bytes(const struct lnx_pool *p)
{
	return (size_t)p->size * p->per_slab;
}

void lnx_pool_init(struct lnx_pool *p, size_t size, size_t per_slab)
{
	p->free = NULL;
	p->size = (uint32_t)(size + ALIGN - 1) & ~(uint32_t)(ALIGN - 1);
	p->per_slab = (uint32_t)per_slab;
	p->nfree = p->used = 0;
	p->slabs = NULL;
	p->make = NULL;
}

void lnx_pool_fini(struct lnx_pool *p)
{
	struct lnx_pool_slab *s;

	while ((s = p->slabs)) {
		p->slabs = s->next;
		free(s->base);
		free(s);
	}
	free(p->free);
	p->free = NULL;
	p->nfree = p->used = 0;
}

static struct lnx_pool_slab *add_slab(struct lnx_pool *p)
{
	uint32_t total = (p->slabs ? p->slabs->total : 0) + p->per_slab;
	struct lnx_pool_slab *s;
	/* Without a place for each object one could not be put back. */
	void **stack = realloc(p->free, total * sizeof(*stack));

	if (!stack)
		return NULL;
	p->free = stack;
	s = malloc(sizeof(*s));
	if (!s)
		return NULL;
	s->base = aligned_alloc(ALIGN, slab_bytes(p));
	if (!s->base) {
		free(s);
		return NULL;
	}
	s->made = 0;
	s->total = total;
	s->next = p->slabs;
	p->slabs = s;
	return s;
}

/* Objects are made one by one, in ascending order, when all others are in use: so their number
 * is the most that there were. */
LNX_COLD void *lnx_pool_grow(struct lnx_pool *p)
{
	struct lnx_pool_slab *s = p->slabs;
	void *obj;

	if (!s || s->made == p->per_slab)
		s = add_slab(p);
	if (!s)
		return NULL;
	obj = s->base + (size_t)s->made++ * p->size;
	*(uint64_t *)obj = 0;
	if (p->make)
		p->make(obj, p);
	p->used++;
	return obj;
}

size_t lnx_pool_max(const struct lnx_pool *p)
{
	const struct lnx_pool_slab *s;
	size_t n = 0;

	for (s = p->slabs; s; s = s->next)
		n += s->made;
	return n;
}

bool lnx_pool_owns(const struct lnx_pool *p, const void *obj)
{
	const struct lnx_pool_slab *s;

	for (s = p->slabs; s; s = s->next) {
		uintptr_t off = (uintptr_t)obj - (uintptr_t)s->base;

		if (off < slab_bytes(p))
			return off % p->size == 0 && off / p->size < s->made;
	}
	return false;
}

bool lnx_pool_lent(const struct lnx_pool *p, const void *obj)
{
	uint64_t at;

	if (!lnx_pool_owns(p, obj))
		return false;
	/* Of one that is in use it is anything. */
	at = *(const uint64_t *)obj;
	return at >= p->nfree || p->free[at] != obj;
}

void lnx_pool_each(struct lnx_pool *p, void (*fn)(void *obj, void *arg),
		   void *arg)
{
	const struct lnx_pool_slab *s;
	size_t i;

	for (s = p->slabs; s; s = s->next)
		for (i = 0; i < s->made; i++)
			fn(s->base + i * p->size, arg);
}
