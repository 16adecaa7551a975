/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids of operations: late, repeated and invented ones find nothing. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/optab.h"

Test(optab, empty)
{
	struct lnx_optab t = { 0 };

	cr_expect_null(lnx_optab_get(&t, 0));
	cr_expect_null(lnx_optab_get(&t, 1));
	cr_expect_null(lnx_optab_get(&t, UINT64_MAX));
	cr_expect_null(lnx_optab_get(&t, 1ull << 32 | 1));
	lnx_optab_del(&t, 0);
	lnx_optab_del(&t, 1ull << 32 | 1);
	lnx_optab_fini(&t);
	/* Finishing twice is harmless. */
	lnx_optab_fini(&t);
}

Test(optab, a_name_is_good_once)
{
	struct lnx_optab t = { 0 };
	int a, b;
	uint64_t one = lnx_optab_add(&t, &a), two;

	cr_assert_neq(one, 0);
	cr_expect_eq(lnx_optab_get(&t, one), &a);
	lnx_optab_del(&t, one);
	cr_expect_null(lnx_optab_get(&t, one));
	/* Deleting it again does not free another operation's slot. */
	lnx_optab_del(&t, one);
	two = lnx_optab_add(&t, &b);
	cr_expect_neq(one, two);
	cr_expect_eq((uint32_t)one, (uint32_t)two, "the slot is used again");
	lnx_optab_del(&t, one);
	cr_expect_eq(lnx_optab_get(&t, two), &b);
	cr_expect_null(lnx_optab_get(&t, one));
	lnx_optab_fini(&t);
	cr_expect_null(lnx_optab_get(&t, two));
}

/* The next id of a free slot is not valid yet. */
Test(optab, names_cannot_be_guessed_ahead)
{
	struct lnx_optab t = { 0 };
	int a;
	uint64_t id = lnx_optab_add(&t, &a);

	cr_expect_null(lnx_optab_get(&t, id + 1));
	cr_expect_null(lnx_optab_get(&t, id + (1ull << 32)));
	lnx_optab_del(&t, id);
	cr_expect_null(lnx_optab_get(&t, id + (1ull << 32)));
	/* Deleting it does not put a free slot on the free list twice. */
	lnx_optab_del(&t, id + (1ull << 32));
	cr_expect_neq((uint32_t)lnx_optab_add(&t, &a),
		      (uint32_t)lnx_optab_add(&t, &a));
	lnx_optab_fini(&t);
}

/* A generation that wraps around gives no id 0. */
Test(optab, generations_wrap)
{
	struct lnx_optab t = { 0 };
	int a;
	uint64_t id = lnx_optab_add(&t, &a);
	uint32_t i = (uint32_t)id - 1;

	lnx_optab_del(&t, id);
	t.slot[i].gen = UINT32_MAX;
	id = lnx_optab_add(&t, &a);
	cr_expect_eq(id >> 32, UINT32_MAX);
	lnx_optab_del(&t, id);
	id = lnx_optab_add(&t, &a);
	cr_expect_eq(id >> 32, 0);
	cr_expect_neq(id, 0);
	cr_expect_eq(lnx_optab_get(&t, id), &a);
	cr_expect_null(lnx_optab_get(&t, 0));
	lnx_optab_fini(&t);
}

/* Against a plain array, with ids that are kept long after their operation ended. */
Test(optab, random_walk)
{
	enum { LIVE = 300, OLD = 1000, STEPS = 200000 };
	const char *env = getenv("LNX_SEED");
	unsigned long seed = env ? strtoul(env, NULL, 0) :
				   (unsigned long)time(NULL);
	static struct { uint64_t id; int obj; } live[LIVE];
	static uint64_t old[OLD];
	struct lnx_optab t = { 0 };
	unsigned i, k;

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", seed, seed);
	srand48((long)seed);
	for (i = 0; i < STEPS; i++) {
		k = (unsigned)lrand48() % LIVE;
		if (!live[k].id) {
			live[k].id = lnx_optab_add(&t, &live[k].obj);
			cr_assert_neq(live[k].id, 0);
		} else {
			lnx_optab_del(&t, live[k].id);
			old[(unsigned)lrand48() % OLD] = live[k].id;
			live[k].id = 0;
		}
		k = (unsigned)lrand48() % LIVE;
		if (live[k].id)
			cr_assert_eq(lnx_optab_get(&t, live[k].id),
				     &live[k].obj, "step %u", i);
		k = (unsigned)lrand48() % OLD;
		cr_assert_null(lnx_optab_get(&t, old[k]), "step %u", i);
		if (!(i % 7))
			lnx_optab_del(&t, old[k]);
	}
	cr_expect_leq(t.n, 512, "it grows with what is in use: %u", t.n);
	lnx_optab_fini(&t);
}
