/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The matcher: order, wildcards, tables and shapes, cancel, claim, lack of memory. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "match/match.h"
#include "match/mtab.h"

#define MANY	100000

static struct lnx_match m;
static bool starve;
static unsigned int allocs;

/* Replaces the matcher's own. */
void *lnx_mtab_alloc(size_t bytes)
{
	allocs++;
	return starve ? NULL : calloc(1, bytes);
}

void *lnx_match_get_side(struct lnx_slabs *s)
{
	return starve ? NULL : lnx_slabs_get(s);
}

static void setup(void)
{
	cr_assert_eq(lnx_match_init(&m), 0);
}

static void teardown(void)
{
	lnx_match_fini(&m);
}

TestSuite(match, .init = setup, .fini = teardown, .timeout = 120);

static void post(struct lnx_mrecv *r, uint64_t src, uint64_t tag,
		 uint64_t ignore)
{
	r->src = src;
	r->tag = tag;
	r->ignore = ignore;
	lnx_match_post(&m, r);
}

static void store(struct lnx_munex *u, uint64_t src, uint64_t tag)
{
	u->src = src;
	u->tag = tag;
	lnx_match_store(&m, u);
}

static bool count(struct lnx_mrecv *r, void *arg)
{
	(void)r;
	++*(size_t *)arg;
	return false;
}

/* Search, and remove what is found. */
static struct lnx_munex *claim(uint64_t src, uint64_t tag, uint64_t ignore)
{
	struct lnx_munex *u = lnx_match_peek(&m, src, tag, ignore);

	if (u)
		lnx_match_drop(&m, u);
	return u;
}

static size_t nposted(void)
{
	size_t n = 0;

	cr_assert_null(lnx_match_each_posted(&m, count, &n));
	return n;
}

#define takes(src, tag, r)	cr_assert_eq(lnx_match_take(&m, src, tag), r)
#define claims(src, tag, ignore, u) \
	cr_assert_eq(claim(src, tag, ignore), u)

Test(match, empty)
{
	takes(1, 2, NULL);
	claims(1, 2, 0, NULL);
	cr_assert_null(lnx_match_find(&m, 1, 2));
	cr_assert_null(lnx_match_peek(&m, 1, 2, 0));
	cr_assert_null(lnx_match_first_unex(&m));
	cr_assert_eq(nposted(), 0);
	cr_assert_eq(lnx_match_nunex(&m), 0);
}

Test(match, source_and_tag_must_be_equal)
{
	struct lnx_mrecv r;

	post(&r, 1, 2, 0);
	takes(2, 2, NULL);
	takes(1, 3, NULL);
	takes(1, 2 | 1ULL << 63, NULL);
	takes(LNX_ANY_SRC, 2, NULL);
	takes(1, 2, &r);
	takes(1, 2, NULL);
}

Test(match, equal_receives_in_order_posted)
{
	struct lnx_mrecv r[4];

	for (int i = 0; i < 4; i++)
		post(&r[i], 1, 2, 0);
	cr_assert_eq(nposted(), 4);
	for (int i = 0; i < 4; i++)
		takes(1, 2, &r[i]);
	cr_assert_eq(nposted(), 0);
}

Test(match, exact_and_wildcard_in_order_posted)
{
	struct lnx_mrecv exact[2], src[2], tag[2], both[2];

	post(&src[0], LNX_ANY_SRC, 2, 0);
	post(&exact[0], 1, 2, 0);
	post(&both[0], LNX_ANY_SRC, 0, UINT64_MAX);
	post(&tag[0], 1, 99, UINT64_MAX);
	post(&exact[1], 1, 2, 0);
	post(&tag[1], 1, 0, UINT64_MAX);
	post(&both[1], LNX_ANY_SRC, 7, UINT64_MAX);
	post(&src[1], LNX_ANY_SRC, 2, 0);
	takes(1, 2, &src[0]);
	takes(1, 2, &exact[0]);
	takes(3, 4, &both[0]);
	takes(1, 2, &tag[0]);
	takes(1, 2, &exact[1]);
	takes(1, 5, &tag[1]);
	takes(1, 2, &both[1]);
	takes(1, 2, &src[1]);
	takes(1, 2, NULL);
}

Test(match, ignored_bits_of_the_receive_do_not_count)
{
	struct lnx_mrecv r;

	post(&r, 1, 0xf005, 0xf000);
	takes(1, 0x0004, NULL);
	takes(1, 0x1f005, NULL);
	takes(1, 0x3005, &r);
}

Test(match, unknown_sender_matches_wildcard_source_only)
{
	struct lnx_mrecv exact, any;

	post(&exact, LNX_ANY_SRC - 1, 2, 0);
	post(&any, LNX_ANY_SRC, 2, 0);
	takes(LNX_ANY_SRC, 2, &any);
	takes(LNX_ANY_SRC, 2, NULL);
	takes(LNX_ANY_SRC - 1, 2, &exact);
}

Test(match, find_leaves_the_receive)
{
	struct lnx_mrecv r, other;

	post(&r, 1, 2, 0);
	post(&other, LNX_ANY_SRC, 2, 0);
	cr_assert_eq(lnx_match_find(&m, 1, 2), &r);
	cr_assert_eq(lnx_match_find(&m, 1, 2), &r);
	cr_assert_eq(lnx_match_find(&m, 3, 2), &other);
	cr_assert_eq(nposted(), 2);
}

Test(match, unpost_first_middle_last)
{
	static const int order[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct lnx_mrecv r[3];

	for (size_t k = 0; k < LNX_ARRAY_SIZE(order); k++) {
		for (int i = 0; i < 3; i++)
			post(&r[i], 1, 2, 0);
		lnx_match_unpost(&m, &r[order[k][0]]);
		cr_assert_eq(lnx_match_find(&m, 1, 2),
			     &r[order[k][0] == 0]);
		lnx_match_unpost(&m, &r[order[k][1]]);
		cr_assert_eq(lnx_match_find(&m, 1, 2), &r[order[k][2]]);
		lnx_match_unpost(&m, &r[order[k][2]]);
		takes(1, 2, NULL);
		cr_assert_eq(nposted(), 0);
	}
}

Test(match, claim_takes_the_oldest_over_all_keys)
{
	struct lnx_munex u[4];

	store(&u[0], 2, 7);
	store(&u[1], 1, 7);
	store(&u[2], 1, 8);
	store(&u[3], 1, 7);
	cr_assert_eq(lnx_match_nunex(&m), 4);
	claims(1, 8, 0, &u[2]);
	claims(LNX_ANY_SRC, 7, 0, &u[0]);
	claims(1, 0, UINT64_MAX, &u[1]);
	claims(LNX_ANY_SRC, 0, UINT64_MAX, &u[3]);
	claims(LNX_ANY_SRC, 0, UINT64_MAX, NULL);
}

Test(match, peek_leaves_the_message)
{
	struct lnx_munex u;

	store(&u, 1, 2);
	cr_assert_eq(lnx_match_peek(&m, LNX_ANY_SRC, 2, 0), &u);
	cr_assert_eq(lnx_match_peek(&m, 1, 2, 0), &u);
	cr_assert_null(lnx_match_peek(&m, 2, 2, 0));
	claims(1, 2, 0, &u);
}

Test(match, a_new_shape_sees_what_is_stored_already)
{
	struct lnx_munex u[10];

	for (uint64_t i = 0; i < 10; i++)
		store(&u[i], i, 100 + i);
	claims(4, 104, 0, &u[4]);
	claims(LNX_ANY_SRC, 107, 0, &u[7]);
	claims(5, 0, UINT64_MAX, &u[5]);
	claims(LNX_ANY_SRC, 96, 15, &u[0]);
	claims(LNX_ANY_SRC, 96, 15, &u[1]);
}

Test(match, drop_and_walk_in_order)
{
	struct lnx_munex u[5], *at, *next;
	int i;

	claims(1, 0, 0, NULL);
	for (i = 0; i < 5; i++)
		store(&u[i], 1, 7);
	lnx_match_drop(&m, &u[2]);
	lnx_match_drop(&m, &u[0]);
	lnx_match_drop(&m, &u[4]);
	cr_assert_eq(lnx_match_first_unex(&m), &u[1]);
	cr_assert_eq(lnx_match_next_unex(&m, &u[1]), &u[3]);
	cr_assert_null(lnx_match_next_unex(&m, &u[3]));
	claims(1, 7, 0, &u[1]);
	for (at = lnx_match_first_unex(&m); at; at = next) {
		next = lnx_match_next_unex(&m, at);
		lnx_match_drop(&m, at);
	}
	cr_assert_eq(lnx_match_nunex(&m), 0);
	store(&u[0], 1, 7);
	cr_assert_eq(lnx_match_first_unex(&m), &u[0]);
}

static void check_set_src(const int order[3])
{
	struct lnx_munex u[5];

	/* The shape exists before, or is new to all of them after. */
	store(&u[0], LNX_ANY_SRC, 7);
	store(&u[1], 1, 7);
	store(&u[2], LNX_ANY_SRC, 7);
	store(&u[3], 1, 7);
	store(&u[4], LNX_ANY_SRC, 7);
	for (int i = 0; i < 3; i++)
		lnx_match_set_src(&m, &u[order[i]], 1);
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(u[i].src, 1);
		cr_assert_eq(lnx_match_peek(&m, LNX_ANY_SRC, 7, 0), &u[i]);
		claims(1, 7, 0, &u[i]);
	}
	claims(1, 7, 0, NULL);
}

Test(match, set_src_keeps_the_place)
{
	static const int order[][3] = {
		{ 0, 2, 4 }, { 4, 2, 0 }, { 2, 0, 4 }, { 2, 4, 0 },
	};

	for (int twice = 0; twice < 2; twice++)
		for (size_t k = 0; k < LNX_ARRAY_SIZE(order); k++)
			check_set_src(order[k]);
}

Test(match, set_src_makes_it_visible_to_its_receives)
{
	struct lnx_munex u;

	store(&u, LNX_ANY_SRC, 7);
	claims(3, 7, 0, NULL);
	lnx_match_set_src(&m, &u, 3);
	claims(4, 7, 0, NULL);
	claims(3, 7, 0, &u);
}

Test(match, set_src_of_many_is_not_quadratic)
{
	struct lnx_munex *u = calloc(MANY, sizeof(*u));

	cr_assert(u);
	claims(1, 7, 0, NULL);
	for (int back = 0; back < 2; back++) {
		for (int i = 0; i < MANY; i++)
			store(&u[i], LNX_ANY_SRC, 7);
		for (int i = 0; i < MANY; i++)
			lnx_match_set_src(&m, &u[back ? MANY - 1 - i : i], 1);
		for (int i = 0; i < MANY; i++)
			claims(1, 7, 0, &u[i]);
	}
	free(u);
}

Test(match, more_shapes_than_tables_keep_the_order)
{
	enum { N = 3 * LNX_MATCH_SHAPES };
	struct lnx_mrecv r[2 * N];
	struct lnx_munex u[2];

	/* Each ignores a different bit; all match. */
	for (int i = 0; i < 2 * N; i++)
		post(&r[i], 1, 0, 1ULL << i % N);
	cr_assert_eq(nposted(), 2 * N);
	cr_assert_gt(m.nodd, 0);
	takes(1, 1ULL << (N - 1), &r[N - 1]);
	takes(1, 1ULL << 2, &r[2]);
	for (int i = 0; i < 2 * N; i++) {
		if (i == N - 1 || i == 2)
			continue;
		if (i % 2) {
			takes(1, 0, &r[i]);
			continue;
		}
		cr_assert_eq(lnx_match_find(&m, 1, 0), &r[i]);
		lnx_match_unpost(&m, &r[i]);
	}
	cr_assert_eq(nposted(), 0);
	takes(1, 0, NULL);
	/* And a claim of one more shape. */
	store(&u[0], 1, 0);
	store(&u[1], 1, 1ULL << 40);
	claims(1, 1ULL << 41, 1ULL << 41 | 1ULL << 40, &u[0]);
	claims(1, 1ULL << 41, 1ULL << 41 | 1ULL << 40, &u[1]);
}

/* As many receives as the list holds, so that further ones go to the tables. */
static void fill_few(struct lnx_mrecv r[LNX_MATCH_FEW])
{
	for (int i = 0; i < LNX_MATCH_FEW; i++)
		post(&r[i], 77, 77, 0);
}

Test(match, the_first_few_share_the_ordered_list)
{
	struct lnx_mrecv few[LNX_MATCH_FEW], r[3];

	fill_few(few);
	post(&r[0], 1, 5, 0);
	post(&r[1], LNX_ANY_SRC, 0, UINT64_MAX);
	cr_assert_neq(r[0].shape, LNX_MATCH_SHAPES);
	/* A slot of the list is free again, but using it would break the order. */
	takes(77, 77, &few[0]);
	post(&r[2], 1, 5, 0);
	takes(1, 5, &r[0]);
	takes(1, 5, &r[1]);
	takes(1, 5, &r[2]);
}

Test(match, messages_are_indexed_when_they_are_many)
{
	struct lnx_munex u[LNX_MATCH_FEW + 2];
	unsigned int i;

	for (i = 0; i < LNX_MATCH_FEW; i++)
		store(&u[i], 1, i);
	cr_assert_not(m.indexed);
	claims(1, 2, 0, &u[2]);
	store(&u[2], 1, 2);
	for (; i < LNX_MATCH_FEW + 2; i++)
		store(&u[i], 1, i);
	cr_assert(m.indexed);
	claims(1, 0, UINT64_MAX, &u[0]);
	claims(1, 2, 0, &u[2]);
	claims(1, LNX_MATCH_FEW + 1, 0, &u[LNX_MATCH_FEW + 1]);
	while (lnx_match_first_unex(&m))
		lnx_match_drop(&m, lnx_match_first_unex(&m));
	cr_assert_not(m.indexed);
}

/* What a second shape needs for each message, and that it goes back. */
Test(match, other_shapes_take_memory_only_when_used)
{
	struct lnx_munex *u = calloc(MANY, sizeof(*u));
	struct lnx_mrecv few[LNX_MATCH_FEW], r[2];

	cr_assert(u);
	fill_few(few);
	post(&r[0], 2, 5, 0);
	for (int i = 0; i < MANY; i++)
		store(&u[i], 1, (uint64_t)i);
	cr_expect_eq(m.nshapes, 1);
	cr_expect(lnx_list_empty(&m.sides.part) && lnx_list_empty(&m.sides.full));
	post(&r[1], LNX_ANY_SRC, 1ULL << 40, 0);
	cr_expect_eq(m.nshapes, 2);
	cr_expect_not(lnx_list_empty(&m.sides.full));
	for (int i = MANY; i-- > 0;)
		claims(i % 2 ? 1 : LNX_ANY_SRC, (uint64_t)i, 0, &u[i]);
	cr_expect(lnx_list_empty(&m.sides.full));
	cr_expect_leq(m.spares.bytes, LNX_SLAB_BYTES);
	free(u);
}

/* Without memory for them, messages are found all the same, and in order. */
Test(match, no_memory_for_other_shapes)
{
	struct lnx_mrecv few[LNX_MATCH_FEW], r[2];
	struct lnx_munex u[40];
	int i;

	fill_few(few);
	post(&r[0], 2, 5, 0);
	post(&r[1], LNX_ANY_SRC, 1ULL << 40, 0);
	for (i = 0; i < 40; i++) {
		/* Some find memory. */
		starve = i % 3 == 0;
		store(&u[i], 1, (uint64_t)i % 10);
	}
	starve = false;
	cr_assert_gt(m.nbare, 0);
	for (i = 0; i < 20; i++)
		claims(LNX_ANY_SRC, (uint64_t)i % 10, 0, &u[i]);
	lnx_match_set_src(&m, &u[23], 9);
	claims(1, 3, 0, &u[33]);
	claims(LNX_ANY_SRC, 3, 0, &u[23]);
	for (i = 20; i < 40; i++)
		if (i % 10 != 3)
			claims(i % 2 ? LNX_ANY_SRC : 1, (uint64_t)i % 10, 0, &u[i]);
	cr_expect_eq(m.nbare, 0);
	cr_expect_eq(lnx_match_nunex(&m), 0);
}

Test(match, an_idle_shape_gives_way)
{
	struct lnx_mrecv few[LNX_MATCH_FEW], r[LNX_MATCH_SHAPES + 1];
	int i;

	fill_few(few);
	for (i = 0; i < LNX_MATCH_SHAPES; i++)
		post(&r[i], 1, 0, 1ULL << i);
	post(&r[i], 1, 0, 1ULL << i);
	cr_assert_eq(r[i].shape, LNX_MATCH_SHAPES);
	lnx_match_unpost(&m, &r[i]);
	lnx_match_unpost(&m, &r[3]);
	post(&r[i], 1, 0, 1ULL << i);
	cr_assert_eq(r[i].shape, r[3].shape);
	/* Its predecessor has no shape now. */
	post(&r[3], 1, 0, 1ULL << 3);
	cr_assert_eq(r[3].shape, LNX_MATCH_SHAPES);
	takes(1, 1ULL << i, &r[i]);
	takes(1, 1ULL << 3, &r[3]);
}

Test(match, a_shape_gives_way_when_scans_cost_more)
{
	struct lnx_munex u[1000], *got;
	struct lnx_mrecv few[LNX_MATCH_FEW], r[LNX_MATCH_SHAPES];
	unsigned int i;

	fill_few(few);
	for (i = 0; i < LNX_MATCH_SHAPES; i++) {
		post(&r[i], 1, 0, 1ULL << i);
		lnx_match_unpost(&m, &r[i]);
	}
	for (i = 0; i < 1000; i++)
		store(&u[i], 1, (uint64_t)i << 20);
	/* The first search scans 1000 entries and finds nothing. */
	cr_assert_null(lnx_match_peek(&m, 2, 0, 1ULL << 60));
	cr_assert_eq(m.scanned, 1000);
	got = lnx_match_peek(&m, 1, 999 << 20, 1ULL << 60);
	cr_assert_eq(got, &u[999]);
	cr_assert_eq(m.scanned, 0);
	for (i = 0; i < LNX_MATCH_SHAPES; i++)
		if (m.shape[i].keep == ~(1ULL << 60))
			break;
	cr_assert_lt(i, LNX_MATCH_SHAPES);
	for (i = 0; i < 1000; i++)
		claims(1, (uint64_t)i << 20, 1ULL << 60, &u[i]);
}

Test(match, growing_keeps_everything)
{
	struct lnx_mrecv *r = calloc(MANY, sizeof(*r));
	struct lnx_munex *u = calloc(MANY, sizeof(*u));

	cr_assert(r && u);
	for (uint64_t i = 0; i < MANY; i++) {
		post(&r[i], i % 7, i, 0);
		store(&u[i], i % 5, i * 64);
		/* Also while entries are being moved. */
		cr_assert_eq(lnx_match_find(&m, i / 2 % 7, i / 2), &r[i / 2]);
	}
	cr_assert_gt(lnx_mtab_lines(m.shape[0].posted.shift), MANY / 8);
	for (uint64_t i = MANY; i-- > 0;) {
		takes(i % 7, i, &r[i]);
		claims(i % 5, i * 64, 0, &u[i]);
	}
	cr_assert_eq(nposted(), 0);
	cr_assert_eq(lnx_match_nunex(&m), 0);
	free(r);
	free(u);
}

Test(match, many_of_one_key_stay_one_entry_of_the_table)
{
	struct lnx_mrecv *r = calloc(MANY, sizeof(*r)), other;

	cr_assert(r);
	for (int i = 0; i < MANY; i++)
		post(&r[i], 1, 2, 0);
	post(&other, 1, 3, 0);
	cr_assert_eq(m.shape[0].posted.heads, 2);
	cr_assert_eq(m.shape[0].posted.shift,
		     64 - __builtin_ctz(LNX_MTAB_FIRST_LINES));
	takes(1, 3, &other);
	for (int i = 1; i < MANY; i += 2)
		lnx_match_unpost(&m, &r[i]);
	for (int i = 0; i < MANY; i += 2)
		takes(1, 2, &r[i]);
	free(r);
}

/* How many of n keys, with src and tag in these steps, found their line full. */
static size_t chained(struct lnx_mrecv *r, size_t n, uint64_t src, uint64_t tag)
{
	size_t i, num = 0;

	for (i = 0; i < n; i++)
		post(&r[i], i * src, i * tag, 0);
	for (i = 0; i < n; i++)
		num += lnx_mlink_is_head(&r[i].link) && r[i].link.chain;
	for (i = 0; i < n; i++)
		lnx_match_unpost(&m, &r[i]);
	return num;
}

/* Common families of keys must not crowd into few lines.  The table is as full
 * as it can get; random keys give 2 %, some families up to 10 %. */
Test(match, keys_at_equal_distances_spread)
{
	enum { N = 4096 };
	struct lnx_mrecv *r = calloc(N, sizeof(*r));
	size_t num;
	uint64_t d;

	cr_assert(r);
	for (unsigned int bit = 0; bit <= 52; bit++) {
		num = chained(r, N, 0, 1ULL << bit);
		cr_assert_lt(num, N / 5, "tags 2^%u apart: %zu", bit, num);
	}
	for (d = 1; d < 300; d++) {
		num = chained(r, N, 0, d);
		cr_assert_lt(num, N / 5, "tags %d apart: %zu", (int)d, num);
		num = chained(r, N, d, 0);
		cr_assert_lt(num, N / 5, "sources %d apart: %zu", (int)d, num);
		num = chained(r, N, 1, d);
		cr_assert_lt(num, N / 5, "both, tags %d apart: %zu", (int)d,
			     num);
	}
	free(r);
}

Test(match, keys_of_one_line_are_all_found)
{
	enum { N = 60 };
	struct lnx_mrecv r[N];
	uint64_t tag[N], t = 0, x = 1;

	for (int i = 0; i < N; i++) {
		do {
			x = x * 6364136223846793005ULL + 1;
			t = x ^ x >> 33;
		} while (lnx_mtab_index(lnx_mtab_hash(1, t), 64 - 9));
		tag[i] = t;
		post(&r[i], 1, t, 0);
	}
	/* Holes in the line and in the chain after it. */
	for (int i = 0; i < N; i += 3)
		lnx_match_unpost(&m, &r[i]);
	for (int i = 0; i < N; i++)
		cr_assert_eq(lnx_match_find(&m, 1, tag[i]),
			     i % 3 ? &r[i] : NULL);
	for (int i = 0; i < N; i += 3)
		post(&r[i], 1, tag[i], 0);
	for (int i = N; i-- > 0;)
		takes(1, tag[i], &r[i]);
	cr_assert_eq(nposted(), 0);
}

Test(match, no_memory_to_grow)
{
	enum { N = 3000 };
	struct lnx_mrecv *r = calloc(N, sizeof(*r));
	unsigned int before = allocs;
	uint64_t i;

	cr_assert(r);
	starve = true;
	for (i = 0; i < N / 2; i++)
		post(&r[i], 1, i, 0);
	cr_assert_gt(allocs, before);
	cr_assert_lt(allocs, before + 100, "allocates at every post");
	for (i = 0; i < N / 2; i++)
		cr_assert_eq(lnx_match_find(&m, 1, i), &r[i]);
	/* Memory is available again: the table catches up. */
	starve = false;
	for (; i < N; i++)
		post(&r[i], 1, i, 0);
	cr_assert_geq(lnx_mtab_lines(m.shape[0].posted.shift) *
		      LNX_MTAB_LINE_HEADS, N);
	for (i = 0; i < N; i++)
		takes(1, i, &r[i]);
	free(r);
}

Test(match_alone, no_memory_to_start)
{
	starve = true;
	cr_assert_eq(lnx_match_init(&m), -ENOMEM);
	starve = false;
	cr_assert_eq(lnx_match_init(&m), 0);
	lnx_match_fini(&m);
}

struct visits {
	unsigned int n;
	const struct lnx_mrecv *stop;
	bool unpost;
};

static bool claim_slot(struct lnx_mrecv *r, void *arg)
{
	struct visits *v = arg;

	v->n++;
	if (v->unpost) {
		lnx_match_unpost(&m, r);
		/* As if freed and used for something else. */
		*r = (struct lnx_mrecv){0};
	}
	return r == v->stop;
}

Test(match, each_posted_visits_all_or_stops)
{
	enum { N = 1000 };
	struct lnx_mrecv *r = calloc(N, sizeof(*r));
	struct visits v = {0};

	cr_assert(r);
	cr_assert_null(lnx_match_each_posted(&m, claim_slot, &v));
	for (uint64_t i = 0; i < N; i++)
		post(&r[i], 1, i / 3, i % 50 ? 0 : 1ULL << i / 50);
	cr_assert_gt(m.nodd, 0);
	cr_assert_null(lnx_match_each_posted(&m, claim_slot, &v));
	cr_assert_eq(v.n, N);
	for (int i = 0; i < N; i += 37) {
		v = (struct visits){ .stop = &r[i] };
		cr_assert_eq(lnx_match_each_posted(&m, claim_slot, &v), &r[i]);
		cr_assert_leq(v.n, N);
	}
	cr_assert_eq(nposted(), N);
	free(r);
}

Test(match, each_posted_may_remove_what_it_is_shown)
{
	enum { N = 5000 };
	struct lnx_mrecv *r = calloc(N, sizeof(*r));
	struct visits v = { .unpost = true };

	cr_assert(r);
	for (uint64_t i = 0; i < N; i++)
		post(&r[i], 1, i / 3, i % 100 ? 0 : 1ULL << i / 100);
	cr_assert_null(lnx_match_each_posted(&m, claim_slot, &v));
	cr_assert_eq(v.n, N);
	cr_assert_eq(nposted(), 0);
	free(r);
}
