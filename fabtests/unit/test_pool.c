/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pools of objects, and lists. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "base/pool.h"

Test(pool, size_is_rounded_up)
{
	static const struct { size_t asked, got; } row[] = {
		{ 1, 64 }, { 8, 64 }, { 63, 64 }, { 64, 64 }, { 65, 128 },
		{ 128, 128 }, { 129, 192 }, { 16384 + 64, 16384 + 64 },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct lnx_pool p;
		char *a, *b;

		lnx_pool_init(&p, row[i].asked, 4);
		cr_expect_null(p.slabs, "nothing is allocated yet");
		cr_expect_eq(p.size, row[i].got);
		a = lnx_pool_get(&p);
		b = lnx_pool_get(&p);
		cr_assert(a && b);
		cr_expect_eq((uintptr_t)a % 64, 0);
		cr_expect_eq((size_t)(b - a), row[i].got,
			     "ascending, one behind the other");
		memset(a, 1, row[i].asked);
		memset(b, 2, row[i].asked);
		lnx_pool_fini(&p);
	}
}

Test(pool, last_put_is_first_got)
{
	struct lnx_pool p;
	void *o[4];

	lnx_pool_init(&p, 64, 4);
	for (int i = 0; i < 4; i++)
		o[i] = lnx_pool_get(&p);
	cr_expect_eq(p.used, 4);
	lnx_pool_put(&p, o[2]);
	lnx_pool_put(&p, o[0]);
	cr_expect_eq(p.used, 2);
	cr_expect_eq(lnx_pool_get(&p), o[0]);
	cr_expect_eq(lnx_pool_get(&p), o[2]);
	cr_expect_eq(p.used, 4);
	lnx_pool_fini(&p);
	cr_expect_eq(p.used, 0);
}

Test(pool, lent_is_what_was_got_and_not_put)
{
	struct lnx_pool p;
	char *o[8], other[64];

	lnx_pool_init(&p, 64, 4);
	cr_expect_not(lnx_pool_lent(&p, NULL));
	o[0] = lnx_pool_get(&p);
	cr_expect_not(lnx_pool_lent(&p, o[0] + 64), "never handed out");
	for (int i = 1; i < 8; i++)
		o[i] = lnx_pool_get(&p);
	for (int i = 0; i < 8; i++) {
		cr_expect(lnx_pool_lent(&p, o[i]));
		cr_expect_not(lnx_pool_lent(&p, o[i] + 8));
	}
	cr_expect_not(lnx_pool_lent(&p, other));
	lnx_pool_put(&p, o[3]);
	lnx_pool_put(&p, o[6]);
	for (int i = 0; i < 8; i++)
		cr_expect_eq(lnx_pool_lent(&p, o[i]), i != 3 && i != 6);
	cr_expect_eq(lnx_pool_get(&p), o[6]);
	cr_expect(lnx_pool_lent(&p, o[6]));
	lnx_pool_fini(&p);
}

/* Whatever it begins with: that may be the place of another one among the free ones. */
Test(pool, lent_does_not_depend_on_contents)
{
	struct lnx_pool p;
	uint64_t *o[8];

	lnx_pool_init(&p, 64, 4);
	for (int i = 0; i < 8; i++)
		o[i] = lnx_pool_get(&p);
	for (int i = 0; i < 4; i++)
		lnx_pool_put(&p, o[i]);
	for (uint64_t at = 0; at < 10; at++) {
		*o[5] = at < 9 ? at : UINT64_MAX;
		for (int i = 0; i < 8; i++)
			cr_expect_eq(lnx_pool_lent(&p, o[i]), i > 3);
	}
	lnx_pool_fini(&p);
}

/* Cores write into what they have given back: no other object depends on it. */
Test(pool, written_after_it_was_put)
{
	struct lnx_pool p;
	void *o[4];

	lnx_pool_init(&p, 64, 4);
	for (int i = 0; i < 4; i++)
		o[i] = lnx_pool_get(&p);
	for (int i = 0; i < 4; i++) {
		lnx_pool_put(&p, o[i]);
		memset(o[i], 0xff, 64);
	}
	for (int i = 4; i-- > 0; )
		cr_expect_eq(lnx_pool_get(&p), o[i]);
	cr_expect_eq(p.used, 4);
	lnx_pool_fini(&p);
}

/* The most that were in use, whatever comes back between. */
Test(pool, max)
{
	struct lnx_pool p;
	void *o[10];

	lnx_pool_init(&p, 64, 4);
	cr_expect_eq(lnx_pool_max(&p), 0);
	for (int i = 0; i < 6; i++)
		o[i] = lnx_pool_get(&p);
	cr_expect_eq(lnx_pool_max(&p), 6);
	for (int i = 0; i < 6; i++)
		lnx_pool_put(&p, o[i]);
	for (int i = 0; i < 5; i++)
		o[i] = lnx_pool_get(&p);
	cr_expect_eq(lnx_pool_max(&p), 6);
	for (int i = 5; i < 9; i++)
		o[i] = lnx_pool_get(&p);
	cr_expect_eq(p.used, 9);
	cr_expect_eq(lnx_pool_max(&p), 9);
	lnx_pool_fini(&p);
}

/* Slabs are kept: freed objects are used again, and no slab is added meanwhile. */
Test(pool, grows_by_whole_slabs)
{
	struct lnx_pool p;
	void *o[100], *slabs;

	lnx_pool_init(&p, 100, 7);
	for (int i = 0; i < 100; i++) {
		o[i] = lnx_pool_get(&p);
		cr_assert_not_null(o[i]);
		memset(o[i], i, 100);
		for (int j = 0; j < i; j++)
			cr_assert_neq(o[i], o[j]);
	}
	for (int i = 0; i < 100; i++)
		for (int j = 0; j < 100; j++)
			cr_assert_eq(((uint8_t *)o[i])[j], i);
	slabs = p.slabs;
	for (int i = 0; i < 100; i++)
		lnx_pool_put(&p, o[i]);
	cr_expect_eq(p.used, 0);
	for (int i = 0; i < 105; i++)
		cr_assert_not_null(lnx_pool_get(&p));
	cr_expect_eq(p.slabs, slabs, "105 = 15 slabs of 7");
	cr_assert_not_null(lnx_pool_get(&p));
	cr_expect_neq(p.slabs, slabs);
	lnx_pool_fini(&p);
}

Test(pool, knows_its_own)
{
	struct lnx_pool p, q;
	char *o[20], *other;
	int local;

	lnx_pool_init(&p, 100, 6);
	lnx_pool_init(&q, 100, 6);
	cr_expect_not(lnx_pool_owns(&p, &local), "an empty pool owns nothing");
	cr_expect_not(lnx_pool_owns(&p, NULL));
	for (int i = 0; i < 20; i++)
		o[i] = lnx_pool_get(&p);
	other = lnx_pool_get(&q);
	for (int i = 0; i < 20; i++) {
		cr_expect(lnx_pool_owns(&p, o[i]));
		cr_expect_not(lnx_pool_owns(&q, o[i]));
		for (size_t at = 1; at < p.size; at++)
			cr_expect_not(lnx_pool_owns(&p, o[i] + at));
	}
	cr_expect_not(lnx_pool_owns(&p, other));
	cr_expect_not(lnx_pool_owns(&p, NULL));
	cr_expect_not(lnx_pool_owns(&p, &local));
	cr_expect_not(lnx_pool_owns(&p, (void *)UINTPTR_MAX));
	lnx_pool_put(&p, o[3]);
	cr_expect(lnx_pool_owns(&p, o[3]), "freed, its memory stays in the pool");
	lnx_pool_fini(&p);
	cr_expect_not(lnx_pool_owns(&p, o[0]));
	lnx_pool_fini(&q);
	lnx_pool_fini(&q);
}

/* ---- list: three lines each, and everything depends on them ---- */

struct item {
	int n;
	struct lnx_node link;
};

static void expect_order(struct lnx_node *h, const char *want)
{
	char text[32] = "", *p = text;
	struct lnx_node *n, *tmp;

	lnx_list_foreach(h, n, tmp) {
		cr_expect_eq(n->next->prev, n);
		cr_expect_eq(n->prev->next, n);
		*p++ = (char)('0' + lnx_list_entry(n, struct item, link)->n);
	}
	*p = '\0';
	cr_expect_str_eq(text, want);
}

Test(list, order)
{
	struct item i[6];
	struct lnx_node a, b, *n, *tmp;

	lnx_list_init(&a);
	lnx_list_init(&b);
	for (int k = 0; k < 6; k++) {
		i[k].n = k;
		lnx_list_init(&i[k].link);
		cr_expect_not(lnx_list_linked(&i[k].link));
	}
	cr_expect(lnx_list_empty(&a));
	cr_expect_null(lnx_list_pop(&a));
	lnx_list_add_tail(&a, &i[1].link);
	lnx_list_add_tail(&a, &i[2].link);
	lnx_list_add_head(&a, &i[0].link);
	lnx_list_insert_before(&i[2].link, &i[5].link);
	cr_expect(lnx_list_linked(&i[0].link));
	expect_order(&a, "0152");

	lnx_list_splice(&a, &b);
	expect_order(&a, "0152");
	lnx_list_splice(&b, &a);
	cr_expect(lnx_list_empty(&a));
	expect_order(&b, "0152");
	lnx_list_add_tail(&a, &i[3].link);
	lnx_list_add_tail(&a, &i[4].link);
	lnx_list_splice(&b, &a);
	expect_order(&b, "015234");

	lnx_list_del(&i[5].link);
	cr_expect_not(lnx_list_linked(&i[5].link));
	lnx_list_del(&i[5].link);	/* twice is harmless */
	expect_order(&b, "01234");
	cr_expect_eq(lnx_list_pop(&b), &i[0].link);
	lnx_list_foreach(&b, n, tmp)
		lnx_list_del(n);	/* the current one may be deleted */
	cr_expect(lnx_list_empty(&b));
}
