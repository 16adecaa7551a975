/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * policy/board: what is in the file of the health board, whatever was written there; what a
 * process trusts of it, and what it writes; and hearsay in policy/health.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/board.h"
#include "seed.h"

#define S	1000000000ull
#define NOW	(1000 * S)
#define FULL	LNX_HEALTH_MAX
#define NETNS	77u

static const struct lnx_health_plan plan = {
	.step = { [LNX_CLASS_OK] = 100, [LNX_CLASS_LOCAL_ERROR] = 100 },
};
static struct lnx_board board;
static struct lnx_board_news got;

static void put(unsigned slot, const char *name, uint64_t when_ns, uint16_t value)
{
	struct lnx_board_news n = {
		.when_ns = when_ns, .value = value, .pid = 4711, .speed = 5,
	};

	cr_assert(lnx_board_put(&board.slot[slot], slot, name, NETNS, &n));
}

static int find(const char *name)
{
	return lnx_board_find(&board, name, NETNS, NOW, &got);
}

/* ---- the file ---- */

Test(board, a_new_one_is_empty)
{
	unsigned i;

	lnx_board_init(&board);
	cr_expect(lnx_board_valid(&board, sizeof(board)));
	cr_expect(lnx_board_valid(&board, sizeof(board.header)));
	cr_expect_not(lnx_board_valid(&board, sizeof(board.header) - 1));
	for (i = 0; i < LNX_BOARD_SLOTS + 2; i++)
		cr_expect_not(lnx_board_get(&board, i, NOW, &got));
	cr_expect_eq(find("tcp:eth0"), -1);
	cr_expect_not(lnx_board_matters(&board, NOW));
}

Test(board, other_headers_are_none)
{
	uint8_t *p = (uint8_t *)&board.header;
	size_t i;

	for (i = 0; i < sizeof(board.header); i++) {
		lnx_board_init(&board);
		p[i] ^= 1;
		cr_expect_not(lnx_board_valid(&board, sizeof(board)), "byte %zu", i);
	}
}

Test(board, news_are_found_by_name_and_network)
{
	lnx_board_init(&board);
	put(5, "tcp:eth0", NOW - S, 300);
	put(6, "tcp:eth1", NOW - S, 0);
	cr_expect_eq(find("tcp:eth0"), 5);
	cr_expect_eq(got.value, 300u);
	cr_expect_eq(got.pid, 4711u);
	cr_expect_eq(got.speed, 5u);
	cr_expect_eq(got.when_ns, NOW - S);
	cr_expect_eq(find("tcp:eth1"), 6);
	cr_expect_eq(find("tcp:eth"), -1);
	cr_expect_eq(find("tcp:eth01"), -1);
	cr_expect_eq(lnx_board_find(&board, "tcp:eth0", NETNS + 1, NOW, &got), -1);
	/* Two processes took different slots: the newer news counts. */
	put(9, "tcp:eth0", NOW - S / 2, 900);
	cr_expect_eq(find("tcp:eth0"), 9);
	put(2, "tcp:eth0", NOW - 2 * S, 100);
	cr_expect_eq(find("tcp:eth0"), 9);
}

/* A byte that changes, and a slot in the place of another, are no news. */
Test(board, what_was_written_in_part_is_none)
{
	struct lnx_board_slot before, after;
	uint8_t *p = (uint8_t *)&board.slot[3];
	size_t i;

	lnx_board_init(&board);
	put(3, "tcp:eth0", NOW - S, 0);
	before = board.slot[3];
	for (i = 0; i < sizeof(board.slot[3]); i++) {
		p[i] ^= 0x40;
		cr_expect_eq(find("tcp:eth0"), -1, "byte %zu", i);
		p[i] ^= 0x40;
	}
	cr_expect_eq(find("tcp:eth0"), 3);
	board.slot[4] = before;
	memset(&board.slot[3], 0, sizeof(board.slot[3]));
	cr_expect_eq(find("tcp:eth0"), -1);
	/* Two writers, or one that was killed: the front of one and the back of the other. */
	put(3, "tcp:eth0", NOW, 1000);
	after = board.slot[3];
	for (i = 1; i < 8 + 8; i++) {
		memcpy(p, &after, i);
		memcpy(p + i, (uint8_t *)&before + i, sizeof(before) - i);
		cr_expect_eq(find("tcp:eth0"), -1, "cut at %zu", i);
	}
}

Test(board, impossible_content_is_none)
{
	static const char *const names[] = { "", " ", "tcp:\x7f", "tcp:\n" };
	struct lnx_board_news n = { .when_ns = NOW, .value = 1001 };
	char longest[LNX_BOARD_NAME + 1];
	struct lnx_board_slot s;
	unsigned i;

	lnx_board_init(&board);
	/* Its sum is right. */
	lnx_board_put(&board.slot[0], 0, "tcp:eth0", NETNS, &n);
	cr_expect_not(lnx_board_get(&board, 0, NOW, &got), "value 1001");
	put(0, "tcp:eth0", NOW + LNX_BOARD_SLACK_NS + 1, 0);
	cr_expect_not(lnx_board_get(&board, 0, NOW, &got), "from the future");
	put(0, "tcp:eth0", UINT64_MAX, 0);
	cr_expect_not(lnx_board_get(&board, 0, NOW, &got), "from the end of time");
	put(0, "tcp:eth0", NOW + LNX_BOARD_SLACK_NS, 0);
	cr_expect(lnx_board_get(&board, 0, NOW, &got), "another CPU's clock");
	n.value = 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cr_assert(lnx_board_put(&board.slot[0], 0, names[i], NETNS, &n));
		cr_expect_not(lnx_board_get(&board, 0, NOW, &got), "name %u", i);
	}
	memset(longest, 'x', sizeof(longest));
	longest[LNX_BOARD_NAME] = '\0';
	cr_expect_not(lnx_board_put(&s, 0, longest, NETNS, &n));
	longest[LNX_BOARD_NAME - 1] = '\0';
	cr_expect(lnx_board_put(&board.slot[1], 1, longest, NETNS, &n));
	cr_expect(lnx_board_get(&board, 1, NOW, &got));
	n.speed = UINT64_MAX;
	cr_expect(lnx_board_put(&board.slot[1], 1, "tcp:eth0", NETNS, &n));
	cr_expect(lnx_board_get(&board, 1, NOW, &got));
	cr_expect_eq(got.speed, LNX_BOARD_SPEED_MAX);
}

Test(board, places)
{
	char name[16];
	unsigned i;

	lnx_board_init(&board);
	cr_expect_eq(lnx_board_place(&board, "tcp:eth0", NETNS, NOW), 0u);
	for (i = 0; i < LNX_BOARD_SLOTS; i++) {
		snprintf(name, sizeof(name), "tcp:eth%u", i);
		cr_expect_eq(lnx_board_place(&board, name, NETNS, NOW), i);
		put(i, name, NOW - (i == 17 ? 9 : 3) * S, 0);
	}
	cr_expect_eq(lnx_board_place(&board, "tcp:eth40", NETNS, NOW), 40u, "its own");
	cr_expect_eq(lnx_board_place(&board, "tcp:new0", NETNS, NOW), 17u, "the oldest");
	board.slot[30].value ^= 1;
	cr_expect_eq(lnx_board_place(&board, "tcp:new0", NETNS, NOW), 30u, "no news");
}

Test(board, matters)
{
	lnx_board_init(&board);
	put(0, "tcp:eth0", NOW - S, FULL);
	cr_expect_not(lnx_board_matters(&board, NOW), "good news");
	put(1, "tcp:eth1", NOW - LNX_BOARD_TRUST_NS - 1, 0);
	cr_expect_not(lnx_board_matters(&board, NOW), "old news");
	put(1, "tcp:eth1", NOW - LNX_BOARD_TRUST_NS, 0);
	cr_expect(lnx_board_matters(&board, NOW));
}

/* ---- what to trust, and what to tell ---- */

static struct lnx_board_own well(void)
{
	return (struct lnx_board_own){ .value = FULL };
}

static struct lnx_board_news bad(uint64_t when_ns)
{
	return (struct lnx_board_news){ .when_ns = when_ns, .value = 0, .pid = 5 };
}

static int takes(const struct lnx_board_own *own, struct lnx_board_news n)
{
	return lnx_board_takes(own, &n, NOW);
}

Test(board, bad_news_is_trusted)
{
	struct lnx_board_news some = bad(NOW - S), down = bad(NOW - S), good = bad(NOW - S);
	struct lnx_board_own own = well();

	some.value = 600;
	down.fatal = true;
	down.value = 900;
	good.value = FULL;
	cr_expect_eq(lnx_board_takes(&own, NULL, NOW), -1);
	cr_expect_eq(takes(&own, bad(NOW - S)), 0);
	cr_expect_eq(takes(&own, some), 600);
	cr_expect_eq(takes(&own, down), 0);
	cr_expect_eq(takes(&own, good), -1);
	cr_expect_eq(takes(&own, bad(NOW - LNX_BOARD_TRUST_NS)), 0);
	cr_expect_eq(takes(&own, bad(NOW - LNX_BOARD_TRUST_NS - 1)), -1, "it is old");
}

Test(board, what_is_known_better_is_not)
{
	struct lnx_board_own own = well();

	own.proven = true;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "something came over it");
	own = well();
	own.value = 900;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "it has an own number");
	own = well();
	own.fatal = true;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "its link is down");
	own = well();
	own.dead = true;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "it is dead");
	own = well();
	own.pinned = true;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "set by hand");
	own = well();
	own.heard_ns = NOW - S;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "not twice");
	cr_expect_eq(takes(&own, bad(NOW - S + 1)), 0, "it was said again");
	own = well();
	own.told_ns = NOW - S;
	cr_expect_eq(takes(&own, bad(NOW - S)), -1, "its own words");
}

Test(board, bad_news_is_told_once_and_repeated)
{
	struct lnx_board_own own = well();
	struct lnx_board_news say;

	cr_expect_not(lnx_board_tells(&own, NULL, NOW), "all is well");
	own.dead = true;
	cr_assert(lnx_board_tells(&own, NULL, NOW));
	say = lnx_board_said(&own, 99, NOW);
	cr_expect(say.value == 0 && say.pid == 99 && say.when_ns == NOW && !say.fatal);
	own.told_ns = NOW;
	own.told = 0;
	cr_expect_not(lnx_board_tells(&own, NULL, NOW + 1));
	cr_expect_not(lnx_board_tells(&own, NULL, NOW + LNX_BOARD_REPEAT_NS - 1));
	cr_expect(lnx_board_tells(&own, NULL, NOW + LNX_BOARD_REPEAT_NS));
	cr_expect_lt(LNX_BOARD_REPEAT_NS * 2, LNX_BOARD_TRUST_NS, "one may be missed");
	own.fatal = true;
	cr_expect(lnx_board_tells(&own, NULL, NOW + 1), "it got worse");
	own = well();
	own.value = 700;
	own.told_ns = NOW;
	own.told = 600;
	cr_expect(lnx_board_tells(&own, NULL, NOW + 1), "another number");
	own.pinned = true;
	cr_expect_not(lnx_board_tells(&own, NULL, NOW + 1), "set by hand");
	own.pinned = false;
	own.hearsay = true;
	cr_expect_not(lnx_board_tells(&own, NULL, NOW + 1), "it is only hearsay");
}

Test(board, good_news_needs_a_proof)
{
	struct lnx_board_news n = bad(NOW - S), old = bad(NOW - LNX_BOARD_TRUST_NS - 1);
	struct lnx_board_own own = well();

	cr_expect_not(lnx_board_tells(&own, &n, NOW), "nothing has come over it");
	own.proven = true;
	cr_expect(lnx_board_tells(&own, &n, NOW));
	cr_expect_eq(lnx_board_said(&own, 1, NOW).value, FULL);
	cr_expect_not(lnx_board_tells(&own, &old, NOW), "it is too old to count");
	n.value = FULL;
	cr_expect_not(lnx_board_tells(&own, &n, NOW), "it is known");
	n.value = 0;
	own.proven = false;
	own.told_ns = n.when_ns;
	cr_expect(lnx_board_tells(&own, &n, NOW), "it has said so itself");
}

Test(board, hearsay_expires)
{
	struct lnx_board_own own = { .value = 0, .hearsay = true };
	struct lnx_board_news n = bad(NOW - S), old = bad(NOW - LNX_BOARD_TRUST_NS - 1);

	cr_expect_not(lnx_board_expires(&own, &n, NOW));
	cr_expect(lnx_board_expires(&own, &old, NOW));
	cr_expect(lnx_board_expires(&own, NULL, NOW));
	n.value = FULL;
	cr_expect(lnx_board_expires(&own, &n, NOW));
	own.hearsay = false;
	cr_expect_not(lnx_board_expires(&own, NULL, NOW), "own experience stays");
}

/* Whatever the board says, it is one of these numbers, and a proof ends it. */
Test(board, random_content)
{
	unsigned i;
	uint64_t k;

	rnd_begin();
	for (i = 0; i < 2000; i++) {
		struct lnx_board_own own = well();
		struct lnx_health h;
		int value;

		lnx_board_init(&board);
		put((unsigned)rnd(LNX_BOARD_SLOTS), "tcp:eth0", NOW - 5, 400);
		for (k = rnd(40); k; k--)
			((uint8_t *)board.slot)[rnd(sizeof(board.slot))] = (uint8_t)rnd(256);
		memset(&got, 0, sizeof(got));
		if (find("tcp:eth0") < 0)
			continue;
		value = takes(&own, got);
		cr_assert(value >= -1 && value < FULL);
		lnx_health_init(&h);
		if (value >= 0)
			lnx_health_hearsay(&h, (unsigned)value, NOW);
		lnx_health_good(&h, &plan, NOW);
		cr_assert(h.value == FULL && !h.hearsay && !h.down);
	}
}

/* ---- hearsay ---- */

Test(board, a_proof_of_life_overrules_hearsay)
{
	struct lnx_health h;

	lnx_health_init(&h);
	cr_expect(lnx_health_hearsay(&h, 0, NOW) & LNX_HEALTH_VALUE);
	cr_expect(h.value == 0 && h.hearsay && !h.down);
	cr_expect_eq(lnx_health_weight_of_path(&(struct lnx_health){ .value = FULL }, &h, NULL,
					       &plan, NOW), 0u);
	cr_expect(lnx_health_good(&h, &plan, NOW) & LNX_HEALTH_WELL);
	cr_expect(h.value == FULL && !h.hearsay);
	lnx_health_hearsay(&h, 300, NOW);
	cr_expect(lnx_health_unhear(&h) & LNX_HEALTH_WELL);
	cr_expect_eq(h.value, FULL);
	cr_expect_eq(lnx_health_unhear(&h), 0u);
}

Test(board, own_experience_counts_more_than_hearsay)
{
	struct lnx_health h;

	lnx_health_init(&h);
	lnx_health_fail(&h, &plan, LNX_CLASS_LOCAL_ERROR, NOW);
	cr_expect_eq(lnx_health_hearsay(&h, 0, NOW), 0u);
	cr_expect_eq(h.value, 900u);
	lnx_health_init(&h);
	lnx_health_hearsay(&h, 0, NOW);
	lnx_health_fail(&h, &plan, LNX_CLASS_LOCAL_ERROR, NOW);
	cr_expect(!h.hearsay && h.value == 0, "it is confirmed");
	lnx_health_good(&h, &plan, NOW);
	cr_expect_eq(h.value, 100u, "and then recovers as usual");
	lnx_health_init(&h);
	lnx_health_pin(&h, &plan, 400, NOW);
	cr_expect_eq(lnx_health_hearsay(&h, 0, NOW), 0u);
	lnx_health_init(&h);
	lnx_health_link(&h, &plan, true, NOW);
	cr_expect_eq(lnx_health_hearsay(&h, 0, NOW), 0u, "its link is down");
	lnx_health_init(&h);
	lnx_health_hearsay(&h, 0, NOW);
	lnx_health_set(&h, &plan, 500, NOW);
	cr_expect(!h.hearsay && h.value == 500);
}
