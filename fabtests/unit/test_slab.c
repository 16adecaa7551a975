/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that goes back: slabs of objects of one size, and of many. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "seed.h"

#define MANY	40000

static size_t slabs_of(const struct lnx_slabs *s)
{
	const struct lnx_node *heads[] = { &s->part, &s->full }, *n;
	size_t count = 0;
	unsigned i;

	for (i = 0; i < 2; i++)
		for (n = heads[i]->next; n != heads[i]; n = n->next)
			count++;
	return count;
}

static size_t bytes_of(const struct lnx_arena *a)
{
	size_t bytes = 0;
	unsigned i;

	for (i = 0; a->class && i < LNX_ARENA_CLASSES; i++)
		bytes += slabs_of(&a->class[i]) * a->class[i].slab_bytes;
	return bytes;
}

Test(slab, objects_do_not_overlap_and_cost_their_size)
{
	static char *o[MANY];
	struct lnx_spares spares;
	struct lnx_slabs s;

	lnx_slab_spares_init(&spares, 0);
	lnx_slabs_init(&s, 101, &spares);
	cr_expect_eq(s.size, 104);
	cr_expect_eq(slabs_of(&s), 0, "nothing is allocated yet");
	for (int i = 0; i < MANY; i++) {
		o[i] = lnx_slabs_get(&s);
		cr_assert(o[i]);
		cr_assert_eq((uintptr_t)o[i] % 8, 0);
		memset(o[i], i, 104);
	}
	for (int i = 0; i < MANY; i++) {
		int k = 0;

		while (k < 104 && o[i][k] == (char)i)
			k++;
		cr_assert_eq(k, 104);
	}
	/* Less than 1 % beside the objects, but for the last slab. */
	cr_expect_leq(slabs_of(&s) * LNX_SLAB_BYTES,
		      MANY * 104ul / 100 * 101 + LNX_SLAB_BYTES);
	lnx_slabs_fini(&s);
}

Test(slab, what_is_empty_goes_back)
{
	static void *o[MANY];
	struct lnx_spares spares;
	struct lnx_slabs s;

	lnx_slab_spares_init(&spares, 2 * LNX_SLAB_BYTES);
	lnx_slabs_init(&s, 104, &spares);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			o[i] = lnx_slabs_get(&s);
		cr_expect_gt(slabs_of(&s), 60);
		cr_expect_eq(spares.bytes, 0);
		/* In the order of arrival, the reverse, and in between. */
		for (int i = 0; i < MANY; i++) {
			int k = round == 0 ? i : round == 1 ? MANY - 1 - i :
				(int)(i * 7919L % MANY);

			lnx_slabs_put(&s, o[k]);
		}
		cr_expect_eq(slabs_of(&s), 2, "two spare ones are kept");
		cr_expect_eq(spares.bytes, 2 * LNX_SLAB_BYTES);
	}
	lnx_slabs_fini(&s);
	cr_expect_eq(spares.bytes, 0);
}

/* One object now and then needs no call of the system. */
Test(slab, one_after_the_other_uses_one_slab)
{
	struct lnx_spares spares;
	struct lnx_slabs s;
	void *first;

	lnx_slab_spares_init(&spares, LNX_SLAB_BYTES);
	lnx_slabs_init(&s, 200, &spares);
	first = lnx_slabs_get(&s);
	for (int i = 0; i < 1000; i++) {
		lnx_slabs_put(&s, first);
		cr_assert_eq(spares.bytes, LNX_SLAB_BYTES);
		cr_assert_eq(lnx_slabs_get(&s), first);
		cr_assert_eq(spares.bytes, 0);
	}
	lnx_slabs_fini(&s);
}

/* Sizes share the spare slabs: those that became empty first go. */
Test(slab, spares_are_shared)
{
	struct lnx_spares spares;
	struct lnx_slabs s[3];
	void *o;

	lnx_slab_spares_init(&spares, 2 * LNX_SLAB_BYTES);
	for (int i = 0; i < 3; i++) {
		lnx_slabs_init(&s[i], 64 + 64 * (size_t)i, &spares);
		o = lnx_slabs_get(&s[i]);
		lnx_slabs_put(&s[i], o);
	}
	cr_expect_eq(slabs_of(&s[0]), 0);
	cr_expect_eq(slabs_of(&s[1]), 1);
	cr_expect_eq(slabs_of(&s[2]), 1);
	for (int i = 0; i < 3; i++)
		lnx_slabs_fini(&s[i]);
	cr_expect_eq(spares.bytes, 0);
}

Test(arena, each_size_has_room_and_little_more)
{
	struct lnx_arena a;

	lnx_arena_init(&a);
	for (size_t size = 1; size <= LNX_ARENA_MAX; size++) {
		unsigned char *o = lnx_arena_get(&a, size);
		size_t used = a.used;

		cr_assert(o);
		o[0] = 1;
		o[size - 1] = 2;
		cr_assert_geq(used, size);
		/* 7 bytes, an eighth, a sixteenth. */
		cr_assert_leq(used, size <= 128 ? size + 7 :
			      size <= 4096 ? size + size / 8 :
			      size + size / 16 + 1, "size %zu takes %zu", size, used);
		lnx_arena_put(&a, o, size);
		cr_assert_eq(a.used, 0);
	}
	lnx_arena_fini(&a);
}

struct object {
	unsigned char *at;
	size_t size;
	unsigned char fill;
};

static void check(const struct object *o)
{
	size_t i;

	for (i = 0; i < o->size && o->at[i] == o->fill; i++)
		;
	cr_assert_eq(i, o->size, "byte %zu of %zu is overwritten", i, o->size);
}

Test(arena, random_sizes_come_and_go)
{
	static struct object o[2000];
	struct lnx_arena a;
	size_t n = 0, most = 0;

	rnd_begin();
	lnx_arena_init(&a);
	for (int op = 0; op < 200000; op++) {
		/* It grows, then shrinks, again and again. */
		bool more = op / 20000 % 2 ? !rnd(3) : rnd(3);
		size_t i;

		if (more && n < LNX_ARRAY_SIZE(o)) {
			unsigned bits = (unsigned)rnd(15);

			o[n].size = 1 + rnd(1u << bits);
			o[n].fill = (unsigned char)rnd(256);
			o[n].at = lnx_arena_get(&a, o[n].size);
			cr_assert(o[n].at);
			memset(o[n].at, o[n].fill, o[n].size);
			n++;
			most = LNX_MAX(most, n);
		} else if (!more && n) {
			i = rnd(n);
			check(&o[i]);
			lnx_arena_put(&a, o[i].at, o[i].size);
			o[i] = o[--n];
		}
	}
	cr_expect_gt(most, 1000);
	while (n) {
		check(&o[--n]);
		lnx_arena_put(&a, o[n].at, o[n].size);
	}
	cr_expect_eq(a.used, 0);
	cr_expect_leq(bytes_of(&a), 2 * LNX_SLAB_LARGE, "only spare slabs are left");
	cr_expect_eq(bytes_of(&a), a.spares.bytes);
	lnx_arena_fini(&a);
	cr_expect_eq(a.spares.bytes, 0);
}
