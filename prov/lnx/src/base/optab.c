/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operation numbers for the wire.  See optab.h. */
#include "base/optab.h"

#include <stdlib.h>

#define MIN_SLOTS	64u

void lnx_optab_fini(struct lnx_optab *t)
{
	free(t->slot);
	t->slot = NULL;
	t->n = t->free = 0;
}

static int grow(struct lnx_optab *t)
{
	uint32_t n = t->n ? t->n * 2 : MIN_SLOTS, i;
	struct lnx_optab_slot *slot;

	if (n <= t->n)
		return -1;
	slot = realloc(t->slot, n * sizeof(*slot));
	if (!slot)
		return -1;
	for (i = t->n; i < n; i++) {
		slot[i].obj = NULL;
		slot[i].gen = 1;
		slot[i].next_free = i + 1 < n ? i + 2 : 0;
	}
	t->free = t->n + 1;
	t->slot = slot;
	t->n = n;
	return 0;
}

uint64_t lnx_optab_add(struct lnx_optab *t, void *obj)
{
	struct lnx_optab_slot *s;
	uint32_t i;

	if (lnx_unlikely(!t->free) && grow(t))
		return 0;
	i = t->free - 1;
	s = &t->slot[i];
	t->free = s->next_free;
	s->obj = obj;
	return (uint64_t)s->gen << 32 | (i + 1);
}

void lnx_optab_del(struct lnx_optab *t, uint64_t id)
{
	uint32_t i = (uint32_t)id - 1;

	if (!lnx_optab_get(t, id))
		return;
	t->slot[i].obj = NULL;
	t->slot[i].gen++;
	t->slot[i].next_free = t->free;
	t->free = i + 1;
}
