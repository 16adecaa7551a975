/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pools of equal objects.  See pool.h. */
#include "base/pool.h"

#include <stdlib.h>

#define ALIGN	64

struct lnx_pool_slab {
	struct lnx_pool_slab *next;
	char *base;			/* first object */
	uint32_t made;			/* objects that were handed out ever, the first ones */
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
	p->used = 0;
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
	p->free = NULL;
	p->used = 0;
}

static struct lnx_pool_slab *add_slab(struct lnx_pool *p)
{
	struct lnx_pool_slab *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	s->base = aligned_alloc(ALIGN, slab_bytes(p));
	if (!s->base) {
		free(s);
		return NULL;
	}
	s->made = 0;
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
	const void *o;

	if (!lnx_pool_owns(p, obj))
		return false;
	for (o = p->free; o; o = *(void *const *)o)
		if (o == obj)
			return false;
	return true;
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
