/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rank of paths: state before rules before health, in each mode of selection. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/rank.h"

#define NONE	LNX_RULE_NONE
#define MAX	LNX_HEALTH_MAX

static struct lnx_rank_path path[LNX_RANK_PATHS];
static unsigned npath;
static struct lnx_rank_how how;
static struct lnx_ranking ranking;

/* One path over a pair of rails of a net: all healthy, no rules. */
static struct lnx_rank_path *add(unsigned net, unsigned rail, unsigned remote)
{
	struct lnx_rank_path *p = &path[npath++];
	struct lnx_rank_rules none;

	*p = (struct lnx_rank_path){
		.prov = LNX_PROV_TCP, .group = (uint16_t)(100 + net),
		.remote_group = (uint16_t)(100 + net), .rail = (uint8_t)rail,
		.remote = (uint8_t)remote, .health = MAX,
		.local_view = { .health = MAX, .numa = 10, .credits = 256,
				.bps = 1000 },
		.remote_view = { .health = MAX, .credits = 8 },
	};
	lnx_rank_no_rules(&none);
	lnx_rank_says(p, &none);
	return p;
}

/* Two nets with two rails each, at both ends: paths 0 and 1, and 2 and 3. */
static void two_nets(void)
{
	npath = 0;
	add(0, 0, 0);
	add(0, 1, 1);
	add(1, 2, 2);
	add(1, 3, 3);
}

static void prefer_net(unsigned net, uint32_t priority)
{
	unsigned i;

	for (i = 0; i < npath; i++)
		if (path[i].group == 100 + net)
			path[i].net_rule = priority;
}

/* "order/stripe/rr", as "2301/c/4". */
static const char *rank(void)
{
	static char buf[32];
	unsigned i, n = 0;

	lnx_rank_make(path, npath, &how, &ranking);
	for (i = 0; i < ranking.n; i++)
		n += (unsigned)sprintf(buf + n, "%u", ranking.order[i]);
	sprintf(buf + n, "/%x/%x", ranking.stripe, ranking.rr);
	return buf;
}

static const char *mode_name(unsigned mode)
{
	static const char *const name[] = {
		[LNX_SELECTION_SPREAD] = "SPREAD",
		[LNX_SELECTION_PER_PEER] = "PER_PEER",
		[LNX_SELECTION_PER_MSG] = "PER_MSG",
		[LNX_SELECTION_LNET] = "LNET",
	};

	return name[mode];
}

Test(rank, nothing_to_rank)
{
	npath = 0;
	cr_assert_str_eq(rank(), "/0/0");
	cr_assert_eq(lnx_rank_next(path, 0, &how, NULL), -1);
	add(0, 0, 0);
	cr_assert_str_eq(rank(), "0/1/1");
	path[0].state = LNX_RANK_DOWN;
	cr_assert_str_eq(rank(), "0/1/1");
	cr_assert_eq(lnx_rank_next(path, 1, &how, NULL), 0);
}

Test(rank, states)
{
	cr_assert_eq(lnx_rank_state(false, LNX_WEIGHT_MAX), LNX_RANK_USABLE);
	cr_assert_eq(lnx_rank_state(false, 1), LNX_RANK_USABLE);
	cr_assert_eq(lnx_rank_state(false, 0), LNX_RANK_HELD);
	cr_assert_eq(lnx_rank_state(true, LNX_WEIGHT_MAX), LNX_RANK_DOWN);
}

/* What shares the traffic, if no rule or state makes a difference. */
Test(rank, masks_by_mode)
{
	static const struct { unsigned mode; const char *want; } cases[] = {
		{ LNX_SELECTION_SPREAD, "0123/f/1" },
		{ LNX_SELECTION_PER_PEER, "0123/1/1" },
		{ LNX_SELECTION_PER_MSG, "0123/f/f" },
		{ LNX_SELECTION_LNET, "0123/1/f" },
	};
	size_t i;

	two_nets();
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		how.mode = cases[i].mode;
		cr_assert_str_eq(rank(), cases[i].want, "%s: %s",
				 mode_name(how.mode), rank());
	}
}

/*
 * A preferred net has all the traffic until none of its paths is usable, and has it
 * again when one is.
 */
Test(rank, a_preferred_net_is_left_only_when_none_of_it_is_usable)
{
	static const struct {
		unsigned char a, b;	/* states of the preferred paths, 2 and 3 */
		const char *spread, *per_peer, *per_msg, *lnet;
	} cases[] = {
#define U LNX_RANK_USABLE
#define H LNX_RANK_HELD
#define D LNX_RANK_DOWN
		{ U, U, "2301/c/4", "2301/4/4", "2301/c/c", "2301/4/c" },
		{ D, U, "3012/8/8", "3012/8/8", "3012/8/8", "3012/8/8" },
		{ H, U, "3012/8/8", "3012/8/8", "3012/8/8", "3012/8/8" },
		{ U, H, "2013/4/4", "2013/4/4", "2013/4/4", "2013/4/4" },
		{ D, D, "0123/3/1", "0123/1/1", "0123/3/3", "0123/1/3" },
		{ H, D, "0123/3/1", "0123/1/1", "0123/3/3", "0123/1/3" },
		{ H, H, "0123/3/1", "0123/1/1", "0123/3/3", "0123/1/3" },
	};
	size_t i;

	two_nets();
	prefer_net(1, 0);
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		path[2].state = cases[i].a;
		path[3].state = cases[i].b;
		how.mode = LNX_SELECTION_SPREAD;
		cr_assert_str_eq(rank(), cases[i].spread, "%zu: %s", i, rank());
		how.mode = LNX_SELECTION_PER_PEER;
		cr_assert_str_eq(rank(), cases[i].per_peer, "%zu: %s", i, rank());
		how.mode = LNX_SELECTION_PER_MSG;
		cr_assert_str_eq(rank(), cases[i].per_msg, "%zu: %s", i, rank());
		how.mode = LNX_SELECTION_LNET;
		cr_assert_str_eq(rank(), cases[i].lnet, "%zu: %s", i, rank());
	}
	/* All are down: the preferred ones are still before the others. */
	path[0].state = path[1].state = D;
	path[2].state = path[3].state = D;
	cr_assert_str_eq(rank(), "2301/4/c");
	/* and held ones before those */
	path[0].state = H;
	cr_assert_str_eq(rank(), "0231/1/1");
	cr_assert_eq(ranking.why[2], LNX_WHY_PATH_DOWN);
	path[0].state = U;
	path[1].state = H;
	rank();
	cr_assert_eq(ranking.why[1], LNX_WHY_HELD);
	cr_assert_eq(ranking.why[0], LNX_WHY_BEST);
}

/* Health: a weight, or what comes first. */
Test(rank, a_sick_preferred_net)
{
	unsigned mode;

	two_nets();
	prefer_net(1, 0);
	path[2].local_view.health = 900;
	for (mode = 0; mode <= LNX_SELECTION_LNET; mode++) {
		bool lnet = mode == LNX_SELECTION_LNET;

		how = (struct lnx_rank_how){ .mode = mode };
		rank();
		/* it stays in the class of the other preferred one, behind it */
		cr_assert_eq(ranking.order[0], 3, "%s: %s", mode_name(mode), rank());
		if (!lnet && mode != LNX_SELECTION_PER_PEER) {
			cr_assert_eq(ranking.order[1], 2);
			cr_assert_eq(ranking.class[2], 0);
			cr_assert_eq(ranking.stripe, 0xc);
		}
		/* by numbers first it comes behind all others */
		how.health_first = true;
		rank();
		cr_assert_eq(ranking.order[0], 3);
		cr_assert_gt(ranking.class[2], 0);
		cr_assert(!(ranking.stripe >> 2 & 1) && !(ranking.rr >> 2 & 1));
	}
	/* both preferred rails are sick: only then do the ways part */
	path[3].local_view.health = 900;
	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_SPREAD };
	cr_assert_str_eq(rank(), "2301/c/4");
	how.health_first = true;
	cr_assert_str_eq(rank(), "0123/3/1");
	cr_assert_eq(ranking.why[2], LNX_WHY_PATH_HEALTH);
	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_LNET };
	cr_assert_str_eq(rank(), "0123/1/3");
	cr_assert_eq(ranking.why[2], LNX_WHY_GROUP_HEALTH);
}

Test(rank, whose_health_counts)
{
	unsigned i;

	for (i = 0; i < 3; i++) {
		two_nets();
		*(i == 0 ? &path[0].health : i == 1 ? &path[0].local_view.health :
		  &path[0].remote_view.health) = 500;
		how = (struct lnx_rank_how){ .mode = LNX_SELECTION_SPREAD };
		cr_assert_str_eq(rank(), "1230/f/2", "%u: %s", i, rank());
		how.health_first = true;
		cr_assert_str_eq(rank(), "1230/e/2", "%u: %s", i, rank());
	}
}

/* A common group before a routed one; a routed one before one that is down. */
Test(rank, routed_paths)
{
	npath = 0;
	add(0, 0, 0)->remote_group = 777;
	add(1, 1, 1);
	path[0].net_rule = 0;
	cr_assert_str_eq(rank(), "10/2/2");
	cr_assert_eq(ranking.why[0], LNX_WHY_ROUTED);
	path[1].state = LNX_RANK_DOWN;
	cr_assert_str_eq(rank(), "01/1/1");
}

/* Each kind of rule, one against the other, in the order in which they count. */
Test(rank, rules_in_their_order)
{
	static const enum lnx_why kinds[] = {
		LNX_WHY_PEER_GROUP_RULE, LNX_WHY_GROUP_RULE, LNX_WHY_RAIL_RULE,
		LNX_WHY_REMOTE_RULE, LNX_WHY_PAIR_RULE,
	};
	unsigned a, b, i;

	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_SPREAD };
	for (a = 0; a < LNX_ARRAY_SIZE(kinds); a++) {
		for (b = a; b < LNX_ARRAY_SIZE(kinds); b++) {
			npath = 0;
			add(0, 0, 0);
			add(1, 1, 1);
			for (i = 0; i < 2; i++) {
				struct lnx_rank_path *p = &path[i];

				/* path 1 is better by kind a, 0 by b */
				switch (kinds[i ? a : b]) {
				case LNX_WHY_PEER_GROUP_RULE:
					p->peer_net_rule = 7;
					break;
				case LNX_WHY_GROUP_RULE:
					p->net_rule = 7;
					break;
				case LNX_WHY_RAIL_RULE:
					p->local_view.rule = 7;
					break;
				case LNX_WHY_REMOTE_RULE:
					p->remote_view.rule = 7;
					break;
				default:
					p->preferred = true;
				}
			}
			if (a == b) {
				cr_assert_str_eq(rank(), "01/3/1");
				continue;
			}
			cr_assert_str_eq(rank(), "10/2/2", "%u %u", a, b);
			cr_assert_eq(ranking.why[0], kinds[a], "%u %u", a, b);
		}
	}
}

/* What a sender asks its receiver for: no more than rules say. */
Test(rank, what_only_rules_put_behind)
{
	two_nets();
	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_SPREAD };
	path[1].local_view.numa = 40;
	path[2].local_view.health = path[2].health = 500;
	path[3].state = LNX_RANK_DOWN;
	rank();
	cr_expect_eq(lnx_rank_preferred(&ranking), 0xfu);
	prefer_net(0, 1);
	rank();
	/* Path 3 is down, which its net has nothing to do with. */
	cr_expect_eq(lnx_rank_preferred(&ranking), 0xbu);
	path[3].state = LNX_RANK_USABLE;
	rank();
	cr_expect_eq(lnx_rank_preferred(&ranking), 0x3u);
	/* None of the net is left: now it is the state that counts. */
	path[0].state = path[1].state = LNX_RANK_DOWN;
	rank();
	cr_expect_eq(lnx_rank_preferred(&ranking), 0xfu);
	npath = 0;
	add(0, 0, 0);
	add(0, 1, 0)->preferred = true;
	rank();
	cr_expect_eq(lnx_rank_preferred(&ranking), 0x2u);
	npath = 0;
	rank();
	cr_expect_eq(lnx_rank_preferred(&ranking), 0u);
}

/* Several rails of ours are preferred for one of the peer's. */
Test(rank, preferred_pairs_share_the_traffic)
{
	npath = 0;
	add(0, 0, 0);
	add(0, 1, 0)->preferred = true;
	add(0, 2, 0)->preferred = true;
	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_PER_MSG };
	cr_assert_str_eq(rank(), "120/6/6");
	cr_assert_eq(ranking.class[0], 1);
	how.mode = LNX_SELECTION_SPREAD;
	cr_assert_str_eq(rank(), "120/6/2");
	path[1].state = LNX_RANK_DOWN;
	cr_assert_str_eq(rank(), "201/4/4");
	path[2].state = LNX_RANK_DOWN;
	cr_assert_str_eq(rank(), "012/1/1");
}

/* Distance, speed and the turn order what is equal in rules and health. */
Test(rank, equal_paths)
{
	two_nets();
	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_SPREAD };
	path[2].local_view.bps = 4000;
	cr_assert_str_eq(rank(), "2013/f/4");
	path[3].local_view.numa = 5;
	cr_assert_str_eq(rank(), "3201/f/8");
	how.numa_range = 20;
	cr_assert_str_eq(rank(), "2013/f/4");
	path[0].remote_view.health = 999;
	cr_assert_str_eq(rank(), "2130/f/4");
	/* for memory of a device its distance counts before all that */
	path[1].local_view.device = path[2].local_view.device = 3;
	path[3].local_view.device = 4;
	cr_assert_str_eq(rank(), "2130/f/4");
	how.device = true;
	path[0].remote_view.health = MAX;
	cr_assert_str_eq(rank(), "0213/f/1");
	how.device = false;
	two_nets();
	for (how.turn = 0; how.turn < 8; how.turn++) {
		rank();
		cr_assert_eq(ranking.order[0], how.turn % 4);
		cr_assert_eq(ranking.stripe, 0xf);
	}
	/* Paths whose rails are all used before share nothing. */
	how.turn = 0;
	npath = 0;
	add(0, 0, 0);
	add(0, 0, 1);
	add(0, 1, 1);
	add(0, 1, 0);
	cr_assert_str_eq(rank(), "0213/5/1");
}

/* ---- LNet's order ---- */

Test(rank, next_message_by_lnets_tables)
{
	uint8_t reason[LNX_RANK_PATHS];
	unsigned i, count[4] = { 0 };

	two_nets();
	how = (struct lnx_rank_how){ .mode = LNX_SELECTION_LNET };
	/* the least recently used one: all in turn */
	for (i = 1; i <= 40; i++) {
		int p = lnx_rank_next(path, npath, &how, reason);

		cr_assert(p >= 0 && p < 4);
		count[p]++;
		cr_assert_eq(reason[p], LNX_WHY_BEST);
		path[p].local_view.used = path[p].remote_view.used = i;
		path[p ^ 1].net_used = path[p].net_used = i;
		path[p ^ 1].peer_net_used = path[p].peer_net_used = i;
	}
	for (i = 0; i < 4; i++)
		cr_assert_eq(count[i], 10);
	/* credits count before use, rules before credits, health before rules */
	path[3].local_view.credits = 257;
	path[0].net_used = path[0].peer_net_used = 100;
	path[1].net_used = path[1].peer_net_used = 100;
	cr_assert_eq(lnx_rank_next(path, npath, &how, reason), 3);
	cr_assert_eq(reason[2], LNX_WHY_RAIL_CREDITS);
	path[2].local_view.rule = 0;
	cr_assert_eq(lnx_rank_next(path, npath, &how, reason), 2);
	cr_assert_eq(reason[3], LNX_WHY_RAIL_RULE);
	path[2].local_view.health = 999;
	cr_assert_eq(lnx_rank_next(path, npath, &how, reason), 3);
	cr_assert_eq(reason[2], LNX_WHY_RAIL_HEALTH);
	/* a path that is held, or down, whatever its numbers */
	path[3].state = LNX_RANK_HELD;
	path[2].local_view.health = MAX;
	cr_assert_eq(lnx_rank_next(path, npath, &how, reason), 2);
	cr_assert_eq(reason[3], LNX_WHY_HELD);
	path[2].state = path[3].state = LNX_RANK_DOWN;
	cr_assert_lt(lnx_rank_next(path, npath, &how, reason), 2);
	cr_assert_eq(reason[3], LNX_WHY_PATH_DOWN);
	/* a net is not as healthy as a rail whose link is down */
	two_nets();
	for (i = 0; i < 4; i++)
		path[i].state = LNX_RANK_DOWN;
	path[0].local_view.fatal = path[1].local_view.fatal = true;
	path[2].local_view.health = path[3].local_view.health = 500;
	cr_assert_eq(lnx_rank_next(path, npath, &how, reason), 2);
	cr_assert_eq(reason[0], LNX_WHY_GROUP_HEALTH);
}

/* ---- from rules ---- */

static struct lnx_nid nid(const struct lnx_nets *nets, const char *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct lnx_addr_rail r = { .prov = LNX_PROV_TCP, .group = 1,
				   .rawlen = sizeof(in) };
	struct lnx_nid out;

	inet_pton(AF_INET, addr, &in.sin_addr);
	memcpy(r.raw, &in, sizeof(in));
	cr_assert_eq(lnx_nid_of(nets, &r, &out), 0);
	return out;
}

Test(rank, what_rules_say_of_a_path)
{
	struct lnx_rule_peer *table = NULL;
	struct lnx_refusal why;
	struct lnx_rules *rules;
	struct lnx_nid ours[2], theirs[2];
	struct lnx_rank_rules p;
	struct lnx_nets nets;

	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16", &nets, &why), 0);
	rules = lnx_rules_create(&nets);
	ours[0] = nid(&nets, "10.1.0.1");
	ours[1] = nid(&nets, "10.2.0.1");
	theirs[0] = nid(&nets, "10.1.0.7");
	theirs[1] = nid(&nets, "10.2.0.7");
	lnx_rules_rails(rules, ours, 2);
	cr_assert_eq(lnx_rules_add_text(rules, "src: tcp1, priority: 1;"
		"src: 10.2.0.1@tcp, priority: 2; dst: tcp, priority: 3;"
		"dst: 10.1.0.7@tcp1, priority: 4;"
		"src: 10.2.0.1@tcp, dst: tcp", &why), 0, "%s", why.why);
	cr_assert_eq(lnx_rules_peer(rules, &table, theirs, 2), 0);
	lnx_rank_rules(rules, table, 0, 0, &p);
	cr_assert(p.net == 1 && p.rail == NONE && p.peer_net == NONE && p.remote == 4 &&
		  !p.preferred);
	lnx_rank_rules(rules, table, 1, 1, &p);
	cr_assert(p.net == NONE && p.rail == 2 && p.peer_net == 3 && p.remote == NONE &&
		  p.preferred);
	lnx_rank_rules(rules, table, 0, 1, &p);
	cr_assert(!p.preferred);
	/* a peer without a table, or a rail that is not in it yet */
	lnx_rank_rules(rules, NULL, 0, 0, &p);
	cr_assert(p.net == 1 && p.remote == NONE);
	lnx_rank_rules(rules, table, 1, 2, &p);
	cr_assert(p.peer_net == NONE && !p.preferred);
	lnx_rules_leave(rules, table);
	lnx_rules_destroy(rules);
}

/* ---- random paths: what is true of every ranking ---- */

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	srand48((long)s);
	return s;
}

static unsigned roll(unsigned n)
{
	return (unsigned)(lrand48() % n);
}

static uint32_t random_rule(void)
{
	return roll(2) ? NONE : roll(3);
}

static uint16_t random_health(void)
{
	return (uint16_t)(roll(2) ? MAX : 100 * roll(11));
}

static void random_paths(void)
{
	struct lnx_view_rail rail[4];
	struct lnx_view_remote remote[4];
	uint32_t net[4], peer_net[4];
	unsigned i, n = 1 + roll(LNX_RANK_PATHS);

	for (i = 0; i < 4; i++) {
		rail[i] = (struct lnx_view_rail){
			.fatal = !roll(8), .health = random_health(),
			.rule = random_rule(), .numa = roll(3),
			.credits = (int32_t)roll(3), .used = roll(3),
			.bps = roll(3),
		};
		remote[i] = (struct lnx_view_remote){
			.health = random_health(), .rule = random_rule(),
			.credits = (int32_t)roll(3), .used = roll(3),
		};
		net[i] = random_rule();
		peer_net[i] = random_rule();
	}
	npath = 0;
	for (i = 0; i < n; i++) {
		unsigned g = roll(2), l = 2 * g + roll(2), r = 2 * g + roll(2);
		struct lnx_rank_path *p = add(g, l, r);

		p->local_view = rail[l];
		p->remote_view = remote[r];
		p->net_rule = net[g];
		p->peer_net_rule = peer_net[g];
		p->preferred = roll(2);
		p->health = random_health();
		p->state = p->local_view.fatal ? LNX_RANK_DOWN :
			   (uint8_t)roll(LNX_RANK_STATES);
	}
}

/* < 0: a has the better rules. */
static int by_rules(const struct lnx_rank_path *a, const struct lnx_rank_path *b)
{
	const uint32_t x[] = { a->peer_net_rule, a->net_rule, a->local_view.rule,
			       a->remote_view.rule, !a->preferred };
	const uint32_t y[] = { b->peer_net_rule, b->net_rule, b->local_view.rule,
			       b->remote_view.rule, !b->preferred };
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static unsigned health(const struct lnx_rank_path *p)
{
	return LNX_MIN(p->health, LNX_MIN(p->local_view.health,
					  p->remote_view.health));
}

static void check_two(const struct lnx_rank_path *a, const struct lnx_rank_path *b,
		      bool same_class, unsigned long s)
{
	int rules = by_rules(a, b);

	cr_assert_leq(a->state, b->state, "seed %lu", s);
	if (a->state != b->state || how.mode == LNX_SELECTION_LNET)
		return;
	/* links that are up before those that are down */
	if (a->local_view.fatal != b->local_view.fatal) {
		cr_assert(!a->local_view.fatal, "seed %lu", s);
		return;
	}
	/* no health left at all is below every other number */
	if ((health(a) == 0) != (health(b) == 0)) {
		cr_assert_neq(health(a), 0, "seed %lu", s);
		return;
	}
	if (how.health_first && health(a) != health(b)) {
		cr_assert_gt(health(a), health(b), "seed %lu", s);
		return;
	}
	cr_assert_leq(rules, 0, "seed %lu", s);
	if (how.mode != LNX_SELECTION_PER_PEER)
		cr_assert_eq(rules == 0, same_class, "seed %lu", s);
}

Test(rank, random_paths_have_a_right_order)
{
	unsigned long s = seed();
	unsigned round, i, j, seen, first;

	for (round = 0; round < 20000; round++) {
		random_paths();
		how = (struct lnx_rank_how){
			.mode = roll(4), .health_first = roll(2),
			.turn = roll(9), .numa_range = roll(3),
		};
		rank();
		cr_assert_eq(ranking.n, npath);
		for (i = seen = 0; i < ranking.n; i++)
			seen |= 1u << ranking.order[i];
		cr_assert_eq(seen, (1u << npath) - 1);
		first = ranking.order[0];
		cr_assert_eq(ranking.class[first], 0);
		cr_assert(ranking.stripe >> first & 1);
		cr_assert(ranking.rr >> first & 1);
		for (i = 0; i < npath; i++) {
			const struct lnx_rank_path *p = &path[i];

			/* shares are for the best class, and so the best state */
			if ((ranking.stripe | ranking.rr) >> i & 1) {
				cr_assert_eq(ranking.class[i], 0, "seed %lu", s);
				cr_assert_eq(p->state, path[first].state);
			}
		}
		for (i = 0; i < ranking.n; i++)
			for (j = i + 1; j < ranking.n; j++) {
				unsigned a = ranking.order[i];
				unsigned b = ranking.order[j];

				cr_assert_leq(ranking.class[a], ranking.class[b]);
				check_two(&path[a], &path[b],
					  ranking.class[a] == ranking.class[b],
					  s);
			}
		if (how.mode == LNX_SELECTION_LNET) {
			int next = lnx_rank_next(path, npath, &how, NULL);

			cr_assert_eq(ranking.class[next], 0, "seed %lu", s);
		}
	}
}
