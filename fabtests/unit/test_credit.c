/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credit for large frames (policy/credit.c): single steps, and many peers at random. */
#include <criterion/criterion.h>

#include "policy/credit.h"
#include "policy/push.h"
#include "seed.h"

static struct lnx_credit_pool pool;
static struct lnx_credit c;

static void open_pool(uint64_t peer, uint64_t total)
{
	pool = (struct lnx_credit_pool) { .peer = peer, .total = total };
	c = (struct lnx_credit) { 0 };
}

Test(credit, a_peer_gets_its_share_and_no_more)
{
	open_pool(1000, 1 << 20);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1000u);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1000u, "nothing came");
	cr_expect_eq(pool.used, 1000u);
	cr_expect(lnx_credit_allows(&c, 1000));
	cr_expect(!lnx_credit_allows(&c, 1001));
	cr_expect(!lnx_credit_allows(&c, UINT64_MAX));
	lnx_credit_came(&c, &pool, 600, false);
	cr_expect_eq(pool.used, 400u);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1600u);
}

Test(credit, what_is_stored_is_not_granted_again)
{
	open_pool(1000, 1 << 20);
	lnx_credit_grant(&c, &pool);
	lnx_credit_came(&c, &pool, 1000, true);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1000u);
	cr_expect_eq(pool.used, 1000u);
	lnx_credit_free(&c, &pool, 400);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1400u);
	cr_expect_eq(pool.used, 1000u);
}

/* The peer is told before it has none, and not for a few bytes. */
Test(credit, urgent_when_half_is_used)
{
	open_pool(1000, 1 << 20);
	cr_expect(lnx_credit_urgent(&c, &pool));
	lnx_credit_grant(&c, &pool);
	cr_expect(!lnx_credit_urgent(&c, &pool));
	lnx_credit_came(&c, &pool, 500, false);
	cr_expect(!lnx_credit_urgent(&c, &pool));
	lnx_credit_came(&c, &pool, 1, false);
	cr_expect(lnx_credit_urgent(&c, &pool));
	lnx_credit_grant(&c, &pool);
	/* Stored: there is nothing to tell. */
	lnx_credit_came(&c, &pool, 900, true);
	cr_expect(!lnx_credit_urgent(&c, &pool));
}

Test(credit, the_end_gives_back_what_did_not_come)
{
	open_pool(1000, 1 << 20);
	lnx_credit_grant(&c, &pool);
	lnx_credit_came(&c, &pool, 300, true);
	lnx_credit_end(&c, &pool);
	cr_expect_eq(pool.used, 300u);
	lnx_credit_end(&c, &pool);
	cr_expect_eq(pool.used, 300u);
	cr_expect(!lnx_credit_allows(&c, 1));
	lnx_credit_free(&c, &pool, 300);
	cr_expect_eq(pool.used, 0u);
}

Test(credit, nothing_for_any_peer)
{
	open_pool(0, 1 << 20);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 0u);
	cr_expect(!lnx_credit_urgent(&c, &pool));
	cr_expect(!lnx_credit_allows(&c, 1));
}

/* With the default limits each of many peers gets so much that it is of use, or nothing. */
Test(credit, many_peers_ask)
{
	static struct lnx_credit peer[400];
	const uint64_t least = 16321;
	unsigned i;

	open_pool(1 << 20, 256 << 20);
	pool.least = least;
	for (i = 0; i < 400; i++) {
		uint64_t got = lnx_credit_grant(&peer[i], &pool);

		cr_expect_geq(got, least, "peer %u: %lu", i, got);
		cr_expect_leq(got, 1u << 20);
	}
	cr_expect_eq(peer[0].granted, 1u << 20);
	/* Until there is not enough of it left. */
	for (i = 0; i < 1000; i++) {
		struct lnx_credit one = { 0 };
		uint64_t got = lnx_credit_grant(&one, &pool);

		cr_expect(!got || got >= least, "%lu", got);
	}
	cr_expect_leq(pool.used, pool.total);
	cr_expect_lt(pool.total - pool.used, least);
	/* The first one that has none has it again when another one ends. */
	c = (struct lnx_credit) { 0 };
	cr_expect_eq(lnx_credit_grant(&c, &pool), 0u);
	lnx_credit_end(&peer[0], &pool);
	cr_expect_geq(lnx_credit_grant(&c, &pool), least);
}

/* What is left of an earlier grant counts. */
Test(credit, little_is_added_to_what_there_is)
{
	open_pool(1000, 1 << 20);
	pool.least = 400;
	lnx_credit_grant(&c, &pool);
	lnx_credit_came(&c, &pool, 500, true);
	lnx_credit_free(&c, &pool, 100);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1100u, "600 may come");
	lnx_credit_came(&c, &pool, 600, true);
	lnx_credit_free(&c, &pool, 399);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1100u, "399 are of no use");
	lnx_credit_free(&c, &pool, 1);
	cr_expect_eq(lnx_credit_grant(&c, &pool), 1500u);
}

/* Little is left for all: then that is told without delay, too. */
Test(credit, urgent_when_the_pool_is_small)
{
	struct lnx_credit other = { 0 };

	open_pool(1000, 6400);
	lnx_credit_grant(&c, &pool);
	cr_expect_lt(c.granted, 250u);
	lnx_credit_came(&c, &pool, c.granted, false);
	cr_expect(lnx_credit_urgent(&c, &pool));
	pool.total = pool.used;
	cr_expect(!lnx_credit_urgent(&other, &pool), "there is none");
}

Test(credit, the_sender_keeps_the_larger_number)
{
	open_pool(1, 1);
	cr_expect(!lnx_credit_has(&c, 1));
	cr_expect(lnx_credit_learn(&c, 500));
	cr_expect(!lnx_credit_learn(&c, 400));
	cr_expect(!lnx_credit_learn(&c, 0));
	cr_expect(lnx_credit_has(&c, 500));
	cr_expect(!lnx_credit_has(&c, 501));
	lnx_credit_spend(&c, 500);
	cr_expect(lnx_credit_has(&c, 0));
	cr_expect(!lnx_credit_has(&c, 1));
	cr_expect(!lnx_credit_has(&c, UINT64_MAX));
}

/* ---- many peers, whose frames and grants are late ---- */

#define PEERS	20u

struct end {
	struct lnx_credit tx, rx;	/* the peer's end and ours */
	uint64_t told;			/* a grant that is on its way */
	uint64_t flying;		/* bytes on their way */
	uint64_t stored;
};

static void step(struct end *e)
{
	uint64_t n = 1 + rnd(100000);

	switch (rnd(6)) {
	case 0:
		e->told = lnx_credit_grant(&e->rx, &pool);
		break;
	case 1:
		lnx_credit_learn(&e->tx, e->told);
		break;
	case 2:
	case 3:
		if (!lnx_credit_has(&e->tx, n))
			break;
		lnx_credit_spend(&e->tx, n);
		e->flying += n;
		break;
	case 4:
		n = LNX_MIN(n, e->flying);
		if (!n)
			break;
		/* What its sender had credit for is allowed. */
		cr_assert(lnx_credit_allows(&e->rx, n));
		e->flying -= n;
		if (rnd(2)) {
			lnx_credit_came(&e->rx, &pool, n, true);
			e->stored += n;
		} else {
			lnx_credit_came(&e->rx, &pool, n, false);
		}
		break;
	default:
		n = LNX_MIN(n, e->stored);
		lnx_credit_free(&e->rx, &pool, n);
		e->stored -= n;
	}
}

Test(credit, at_random)
{
	static struct end end[PEERS];
	unsigned r, i;

	rnd_begin();
	open_pool(1 + rnd(1 << 20), 1 + rnd(1 << 24));
	pool.least = rnd(2) ? rnd(1 << 15) : 0;
	for (r = 0; r < 200000; r++) {
		struct end *e = &end[rnd(PEERS)];
		uint64_t stored = 0, sum = 0;

		if (!rnd(2000)) {
			/* Its session ends, what is stored goes, and the next begins. */
			lnx_credit_end(&e->rx, &pool);
			lnx_credit_free(&e->rx, &pool, e->stored);
			*e = (struct end) { 0 };
		}
		step(e);
		for (i = 0; i < PEERS; i++) {
			uint64_t one = end[i].rx.granted - end[i].rx.came + end[i].stored;

			stored += end[i].stored;
			sum += one;
			cr_assert_leq(one, pool.peer);
			cr_assert_eq(end[i].rx.stored, end[i].stored);
		}
		cr_assert_eq(pool.used, sum);
		cr_assert_leq(sum, pool.total);
		cr_assert_leq(stored, sum);
	}
	for (i = 0; i < PEERS; i++) {
		lnx_credit_end(&end[i].rx, &pool);
		lnx_credit_free(&end[i].rx, &pool, end[i].stored);
	}
	cr_expect_eq(pool.used, 0u);
}

/* ---- policy/push.h ---- */

Test(push, asks_after_half_and_stops_at_all)
{
	struct lnx_push_ahead a = { 0 };
	uint32_t before;

	while (!lnx_push_asks(&a)) {
		cr_assert(lnx_push_may(&a, 8192));
		lnx_push_did(&a, 8192);
		cr_assert_leq(a.bytes, LNX_PUSH_AHEAD);
	}
	cr_expect_gt(a.bytes, LNX_PUSH_AHEAD / 2);
	cr_expect(!lnx_push_may(&a, 1), "the next one asks");
	before = a.bytes;
	lnx_push_ask(&a);
	cr_expect(!lnx_push_asks(&a), "one at a time");
	lnx_push_unask(&a);
	cr_expect(lnx_push_asks(&a), "it was not announced: the next one asks");
	cr_expect(!lnx_push_may(&a, 1));
	lnx_push_ask(&a);
	while (lnx_push_may(&a, 8192))
		lnx_push_did(&a, 8192);
	cr_expect_gt(a.bytes + 8192, LNX_PUSH_AHEAD);
	cr_expect(!lnx_push_asks(&a));
	/* What was pushed after the question may not have come. */
	lnx_push_answer(&a);
	cr_expect_eq(a.bytes, LNX_PUSH_AHEAD - before);
	cr_expect(lnx_push_may(&a, 8192));
}

Test(push, an_answer_gives_all_back)
{
	struct lnx_push_ahead a = { 0 };
	unsigned i;

	for (i = 0; i < 100000; i++) {
		uint32_t len = 4097 + i % 30000;

		if (lnx_push_may(&a, len)) {
			lnx_push_did(&a, len);
		} else if (lnx_push_asks(&a)) {
			lnx_push_ask(&a);
			if (i % 3)
				lnx_push_answer(&a);
		} else {
			cr_assert(a.asking, "nothing will come");
			lnx_push_answer(&a);
		}
		cr_assert_leq(a.asked, a.bytes);
		cr_assert_leq(a.bytes, LNX_PUSH_AHEAD);
	}
}

/* Messages of n that are pushed where a piece takes so long. */
static unsigned pushed_of(struct lnx_push_cost *c, unsigned n, uint32_t len, uint32_t pieces,
			  uint64_t ns)
{
	unsigned i, pushed = 0;

	for (i = 0; i < n; i++) {
		if (!lnx_push_worth(c, len, pieces))
			continue;
		pushed++;
		if (lnx_push_timed(c))
			lnx_push_took(c, ns * pieces, pieces);
	}
	return pushed;
}

Test(push, what_pieces_cost_decides)
{
	struct lnx_push_cost c = { 0 };

	cr_expect_eq(pushed_of(&c, 1000, 16384, 4, 150), 1000, "caches are near");
	cr_expect_leq(pushed_of(&c, 2000, 16384, 4, 800), 400, "and now far");
	cr_expect_leq(pushed_of(&c, 8000, 16384, 4, 800), 40, "it is tried now and then");
	cr_expect_geq(pushed_of(&c, 8000, 16384, 4, 800), 25);
	cr_expect_eq(pushed_of(&c, 100, 4160, 1, 800), 100, "one piece is always worth it");
	cr_expect_geq(pushed_of(&c, 4000, 16384, 4, 150), 2000, "near again");
	cr_expect_eq(pushed_of(&c, 100, 16384, 4, 150), 100);
}

/* A process that did not run for some time, or a first one that had to fill the caches. */
Test(push, what_disturbs_is_forgotten)
{
	struct lnx_push_cost c = { 0 };

	lnx_push_took(&c, 6000 * 4, 4);
	cr_expect_eq(pushed_of(&c, 2000, 16384, 4, 150), 2000);
	lnx_push_took(&c, 100000000, 4);
	cr_expect_eq(pushed_of(&c, 100, 16384, 4, 150), 100);
	lnx_push_took(&c, 0, 4);
	cr_expect_neq(c.piece_ns, 0);
}
