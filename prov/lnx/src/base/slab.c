/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects of one size, whose memory goes back.  See slab.h. */
#include "base/slab.h"

#include <assert.h>
#include <sys/mman.h>

#define ALIGN	8u

struct lnx_slab {
	struct lnx_node link;		/* slabs->part or ->full */
	struct lnx_node spare;		/* spares->list, while nothing is in use */
	struct lnx_slabs *of;
	void *free;			/* stack, linked through the objects */
	uint32_t used;
	uint32_t fresh;			/* offset of the first object that was not used yet:
					 * pages are touched only when they are needed */
};

#define HEAD	64u
static_assert(sizeof(struct lnx_slab) <= HEAD, "objects follow the head");

/* Aligned to `bytes`, a power of two; or NULL. */
static struct lnx_slab *map(size_t bytes)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p = mmap(NULL, bytes, prot, flags, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	/* Often it is next to the last one. */
	if (!((uintptr_t)p % bytes))
		return (void *)p;
	munmap(p, bytes);
	p = mmap(NULL, 2 * bytes, prot, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	before = bytes - (uintptr_t)p % bytes;
	munmap(p, before);
	munmap(p + before + bytes, bytes - before);
	return (void *)(p + before);
}

static void unmap(struct lnx_slab *b)
{
	size_t bytes = b->of->slab_bytes;

	lnx_list_del(&b->link);
	/* With too many mappings the address is lost, but not the memory. */
	if (munmap(b, bytes))
		madvise(b, bytes, MADV_DONTNEED);
}

void lnx_slab_spares_init(struct lnx_spares *sp, size_t max)
{
	lnx_list_init(&sp->list);
	sp->bytes = 0;
	sp->max = max;
}

void lnx_slabs_init(struct lnx_slabs *s, size_t size, struct lnx_spares *spares)
{
	lnx_list_init(&s->part);
	lnx_list_init(&s->full);
	s->size = (uint32_t)(size + ALIGN - 1) / ALIGN * ALIGN;
	s->slab_bytes = s->size <= LNX_SLAB_SMALL_MAX ? LNX_SLAB_BYTES : LNX_SLAB_LARGE;
	s->per_slab = (uint32_t)((s->slab_bytes - HEAD) / s->size);
	s->spares = spares;
}

static void no_spare(struct lnx_slab *b)
{
	if (!lnx_list_linked(&b->spare))
		return;
	lnx_list_del(&b->spare);
	b->of->spares->bytes -= b->of->slab_bytes;
}

static void unmap_all(struct lnx_node *list)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(list, n, tmp) {
		struct lnx_slab *b = lnx_list_entry(n, struct lnx_slab, link);

		no_spare(b);
		unmap(b);
	}
}

void lnx_slabs_fini(struct lnx_slabs *s)
{
	unmap_all(&s->part);
	unmap_all(&s->full);
}

static LNX_COLD struct lnx_slab *grow(struct lnx_slabs *s)
{
	struct lnx_slab *b = map(s->slab_bytes);

	if (!b)
		return NULL;
	b->of = s;
	b->free = NULL;
	b->used = 0;
	b->fresh = HEAD;
	lnx_list_init(&b->spare);
	lnx_list_add_head(&s->part, &b->link);
	return b;
}

void *lnx_slabs_get(struct lnx_slabs *s)
{
	struct lnx_slab *b = lnx_list_entry(s->part.next, struct lnx_slab, link);
	void *obj;

	if (lnx_unlikely(lnx_list_empty(&s->part))) {
		b = grow(s);
		if (!b)
			return NULL;
	}
	if (!b->used)
		no_spare(b);
	obj = b->free;
	if (obj) {
		b->free = *(void **)obj;
	} else {
		obj = (char *)b + b->fresh;
		b->fresh += s->size;
	}
	if (++b->used == s->per_slab) {
		lnx_list_del(&b->link);
		lnx_list_add_tail(&s->full, &b->link);
	}
	return obj;
}

/* It is used after the others of its size, and goes back once enough others are empty. */
static void emptied(struct lnx_slabs *s, struct lnx_slab *b)
{
	struct lnx_spares *sp = s->spares;

	b->free = NULL;
	b->fresh = HEAD;
	lnx_list_del(&b->link);
	lnx_list_add_tail(&s->part, &b->link);
	lnx_list_add_tail(&sp->list, &b->spare);
	sp->bytes += s->slab_bytes;
	while (sp->bytes > sp->max) {
		b = lnx_list_entry(sp->list.next, struct lnx_slab, spare);
		no_spare(b);
		unmap(b);
	}
}

void lnx_slabs_put(struct lnx_slabs *s, void *obj)
{
	struct lnx_slab *b = (void *)((uintptr_t)obj & ~(uintptr_t)(s->slab_bytes - 1));

	*(void **)obj = b->free;
	b->free = obj;
	if (lnx_unlikely(b->used == s->per_slab)) {
		lnx_list_del(&b->link);
		lnx_list_add_tail(&s->part, &b->link);
	}
	if (lnx_unlikely(!--b->used))
		emptied(s, b);
}
