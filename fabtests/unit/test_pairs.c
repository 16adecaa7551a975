/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The order of pairs of local and remote rails; against tables and random rails. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/pairs.h"

#define MAX	64

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	return s;
}

/*
 * Rails are written "a1": provider a, group 1.  Pairs are written "01": local
 * rail 0, remote rail 1.
 */
static unsigned rails(struct lnx_pair_rail *r, const char *text)
{
	unsigned n = 0;

	for (; text[0] && text[1]; text += text[2] ? 3 : 2, n++) {
		r[n].prov = (uint8_t)text[0];
		r[n].group = (uint16_t)text[1];
	}
	return n;
}

static const struct {
	const char *local, *remote, *pairs;
} cases[] = {
	/* no rails */
	{ "", "", "" },
	{ "", "a1", "" },
	{ "a1", "", "" },
	{ "", "a1 a1", "" },
	/* one pair */
	{ "a1", "a1", "00" },
	{ "a1", "b1", "" },
	{ "a1", "a2", "00" },
	/* a pair of the same group before routed ones, in any order */
	{ "a1 a2", "a2 a1", "10 01 00 11" },
	{ "a1 a2", "a1 a2", "00 11 10 01" },
	{ "a2 a1", "a1", "10 00" },
	{ "a1", "a2 a1", "01 00" },
	/* equal rails: the first pairs use different ones */
	{ "a1 a1", "a1 a1", "00 11 10 01" },
	{ "a1 a1 a1", "a1 a1 a1", "00 11 22 10 21 02 20 01 12" },
	{ "a1", "a1 a1 a1", "00 01 02" },
	{ "a1 a1 a1", "a1", "00 10 20" },
	{ "a1 a1", "a1 a1 a1", "00 11 02 10 01 12" },
	/* other rails between them, in another order there, change nothing */
	{ "a1 b1 a2 b2", "b2 b1 a2 a1", "30 11 22 03 10 31 02 23" },
	{ "a1 b1 a1 b1", "a1 b1 a1 b1", "00 11 22 33 20 31 02 13" },
	{ "a1 b1 a1 b1", "b1 b1 a1 a1", "10 31 02 23 30 11 22 03" },
	{ "a1 b1 a1 b1", "b1 a1 a1 b1", "10 01 22 33 30 21 02 13" },
	{ "b1 a1 a1", "a1 a1", "10 21 20 11" },
	{ "b1 b1 b1 a1", "a1 b1", "30 01 11 21" },
	/* also for routed pairs */
	{ "a1 a1", "a2 a3", "00 11 10 01" },
	{ "a1 b1 a1 b1", "b2 b3 a2 a3", "10 31 02 23 30 11 22 03" },
	{ "a1 a2 a1 a2", "a1 a2 a1 a2",
	  "00 11 22 33 20 31 02 13 10 01 32 23 30 21 12 03" },
	/* different providers never make a pair, whatever their groups */
	{ "a1 b1", "b1 a1", "10 01" },
	{ "a1 b1", "a1 b1", "00 11" },
	{ "a1 b1", "c1 d1", "" },
	{ "a1 b2", "b1 a2", "10 01" },
};

Test(pairs, cases)
{
	for (size_t i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		struct lnx_pair_rail local[8], remote[8];
		struct lnx_pair pair[MAX];
		unsigned nl = rails(local, cases[i].local);
		unsigned nr = rails(remote, cases[i].remote);
		unsigned n = lnx_pairs_find(local, nl, remote, nr, pair, MAX);
		char text[3 * MAX + 1] = "";

		for (unsigned p = 0; p < n; p++)
			sprintf(text + strlen(text), "%s%u%u", p ? " " : "",
				pair[p].local, pair[p].remote);
		cr_expect_str_eq(text, cases[i].pairs, "[%s] to [%s]",
				 cases[i].local, cases[i].remote);
	}
}

/*
 * What striping needs: with n equal rails here and m there, the first min(n, m)
 * pairs use no rail twice.
 */
Test(pairs, equal_rails_are_shared_out)
{
	unsigned long s = seed();

	srand48((long)s);
	for (int round = 0; round < 2000; round++) {
		struct lnx_pair_rail local[8], remote[8];
		struct lnx_pair pair[MAX];
		unsigned nl = 1 + (unsigned)(lrand48() % 8);
		unsigned nr = 1 + (unsigned)(lrand48() % 8), n;

		for (unsigned i = 0; i < 8; i++) {
			local[i].prov = (uint8_t)(lrand48() % 2);
			local[i].group = (uint16_t)(lrand48() % 2);
			remote[i].prov = (uint8_t)(lrand48() % 2);
			remote[i].group = (uint16_t)(lrand48() % 2);
		}
		n = lnx_pairs_find(local, nl, remote, nr, pair, MAX);
		for (unsigned kind = 0; kind < 4; kind++) {
			struct lnx_pair_rail is = {
				.prov = kind & 1, .group = kind >> 1,
			};
			unsigned here = 0, there = 0, left;
			unsigned used_l = 0, used_r = 0;

			for (unsigned i = 0; i < nl; i++)
				here += local[i].prov == is.prov &&
					local[i].group == is.group;
			for (unsigned i = 0; i < nr; i++)
				there += remote[i].prov == is.prov &&
					 remote[i].group == is.group;
			left = LNX_MIN(here, there);
			for (unsigned i = 0; i < n && left; i++) {
				unsigned l = 1u << pair[i].local;
				unsigned r = 1u << pair[i].remote;

				if (local[pair[i].local].prov != is.prov ||
				    local[pair[i].local].group != is.group ||
				    remote[pair[i].remote].group != is.group)
					continue;
				cr_assert_not((used_l & l) || (used_r & r),
					      "seed %lu round %d", s, round);
				used_l |= l;
				used_r |= r;
				left--;
			}
			cr_assert_eq(left, 0, "seed %lu round %d", s, round);
		}
	}
}

/* With a smaller maximum the same pairs from the front, and no write after the end. */
Test(pairs, at_most_max)
{
	struct lnx_pair_rail local[8], remote[8];
	struct lnx_pair all[MAX], some[MAX];
	unsigned nl = rails(local, "a1 a2 b1 a1");
	unsigned nr = rails(remote, "a1 b1 a3 b2");
	unsigned n = lnx_pairs_find(local, nl, remote, nr, all, MAX);

	cr_assert_eq(n, 8);
	for (unsigned max = 0; max <= n + 2; max++) {
		unsigned want = LNX_MIN(max, n);

		memset(some, 0x77, sizeof(some));
		cr_assert_eq(lnx_pairs_find(local, nl, remote, nr, some,
					      max), want);
		for (unsigned i = 0; i < want; i++) {
			cr_expect_eq(some[i].local, all[i].local);
			cr_expect_eq(some[i].remote, all[i].remote);
		}
		cr_expect_eq(some[want].local, 0x77777777u);
		cr_expect_eq(some[want].remote, 0x77777777u);
	}
}

/* Every possible pair once, no impossible one, and pairs of the same group first. */
Test(pairs, complete_and_sorted)
{
	unsigned long s = seed();

	srand48((long)s);
	for (int round = 0; round < 2000; round++) {
		struct lnx_pair_rail local[8], remote[8];
		struct lnx_pair pair[MAX];
		unsigned nl = (unsigned)(lrand48() % 9);
		unsigned nr = (unsigned)(lrand48() % 9);
		unsigned seen[8][8] = { { 0 } }, n, possible = 0;
		bool router = false;

		for (unsigned i = 0; i < 8; i++) {
			local[i].prov = (uint8_t)(lrand48() % 3);
			local[i].group = (uint16_t)(lrand48() % 3);
			remote[i].prov = (uint8_t)(lrand48() % 3);
			remote[i].group = (uint16_t)(lrand48() % 3);
		}
		for (unsigned l = 0; l < nl; l++)
			for (unsigned r = 0; r < nr; r++)
				possible += local[l].prov == remote[r].prov;
		n = lnx_pairs_find(local, nl, remote, nr, pair, MAX);
		cr_assert_eq(n, possible, "seed %lu", s);
		for (unsigned i = 0; i < n; i++) {
			unsigned l = pair[i].local, r = pair[i].remote;

			cr_assert(l < nl && r < nr, "seed %lu", s);
			cr_assert_eq(seen[l][r]++, 0, "seed %lu", s);
			cr_assert_eq(local[l].prov, remote[r].prov, "seed %lu",
				     s);
			if (local[l].group != remote[r].group)
				router = true;
			else
				cr_assert_not(router, "seed %lu", s);
		}
	}
}
