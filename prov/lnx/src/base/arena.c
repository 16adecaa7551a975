/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of many sizes that goes back.  See arena.h. */
#include "base/arena.h"

#include <stdlib.h>

/* Empty slabs that are kept, in all: two of the large ones. */
#define SPARE_BYTES	(2 * LNX_SLAB_LARGE)

/* Sizes up to 1 << FINE in steps of 8, up to 1 << MIDDLE in 8 steps for each power of two,
 * and above in 16. */
#define FINE		7u
#define MIDDLE		12u
#define N_FINE		((1u << FINE) / 8)
#define N_MIDDLE	(N_FINE + (MIDDLE - FINE) * 8)

/* Class of a size above 0, and the largest size that it has. */
static unsigned class_of(size_t size)
{
	unsigned log;

	if (size <= 1u << FINE)
		return (unsigned)(size - 1) / 8;
	log = 63 - (unsigned)__builtin_clzll(size - 1);
	if (log < MIDDLE)
		return N_FINE + (log - FINE) * 8 +
		       (unsigned)((size - 1) >> (log - 3) & 7);
	return N_MIDDLE + (log - MIDDLE) * 16 + (unsigned)((size - 1) >> (log - 4) & 15);
}

static size_t size_of(unsigned class)
{
	unsigned log;

	if (class < N_FINE)
		return (class + 1) * 8ul;
	if (class < N_MIDDLE) {
		log = FINE + (class - N_FINE) / 8;
		return (1ul << log) + (((class - N_FINE) % 8 + 1ul) << (log - 3));
	}
	log = MIDDLE + (class - N_MIDDLE) / 16;
	return (1ul << log) + (((class - N_MIDDLE) % 16 + 1ul) << (log - 4));
}

void lnx_arena_init(struct lnx_arena *a)
{
	a->class = NULL;
	a->used = 0;
	lnx_slab_spares_init(&a->spares, SPARE_BYTES);
}

void lnx_arena_fini(struct lnx_arena *a)
{
	unsigned i;

	for (i = 0; a->class && i < LNX_ARENA_CLASSES; i++)
		lnx_slabs_fini(&a->class[i]);
	free(a->class);
	a->class = NULL;
	a->used = 0;
}

static LNX_COLD bool begin(struct lnx_arena *a)
{
	unsigned i;

	a->class = malloc(LNX_ARENA_CLASSES * sizeof(*a->class));
	for (i = 0; a->class && i < LNX_ARENA_CLASSES; i++)
		lnx_slabs_init(&a->class[i], size_of(i), &a->spares);
	return a->class != NULL;
}

void *lnx_arena_get(struct lnx_arena *a, size_t size)
{
	struct lnx_slabs *s;
	void *obj;

	if (lnx_unlikely(!a->class) && !begin(a))
		return NULL;
	s = &a->class[class_of(size)];
	obj = lnx_slabs_get(s);
	if (lnx_likely(obj != NULL))
		a->used += s->size;
	return obj;
}

void lnx_arena_put(struct lnx_arena *a, void *obj, size_t size)
{
	struct lnx_slabs *s = &a->class[class_of(size)];

	a->used -= s->size;
	lnx_slabs_put(s, obj);
}
