/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What rules mean for our rails and those of peers, what that costs, and the counts. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/rules.h"
#include "rules_view.h"

#define NONE	LNX_RULE_NONE

static struct lnx_nets nets;
static struct lnx_rules *rules;
static struct lnx_refusal why;

static void setup(void)
{
	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16;tcp2=10.2.0.0/16;"
				    "o2ib=verbs", &nets, &why), 0, "%s", why.why);
	rules = lnx_rules_create(&nets);
}

static void teardown(void)
{
	lnx_rules_destroy(rules);
}

TestSuite(rules_apply, .init = setup, .fini = teardown);

static void add(const char *text)
{
	cr_assert_eq(lnx_rules_add_text(rules, text, &why), 0, "%s: %s", text,
		     why.why);
}

static void del(uint32_t index)
{
	struct lnx_rules_which w = { .by = LNX_RULES_BY_INDEX, .number = index };

	cr_assert_eq(rules_del(rules, &w, NULL, &why), 0, "%s", why.why);
}

/* The rail of tcp with that address: in the net tcp1, tcp2 or tcp. */
static struct lnx_nid nid(const char *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct lnx_addr_rail r = { .prov = LNX_PROV_TCP, .rawlen = sizeof(in) };
	struct lnx_nid out;

	cr_assert_eq(inet_pton(AF_INET, addr, &in.sin_addr), 1, "%s", addr);
	memcpy(r.raw, &in, sizeof(in));
	r.group = (uint16_t)(1 + ntohl(in.sin_addr.s_addr) / 65536 % 200);
	cr_assert_eq(lnx_nid_of(&nets, &r, &out), 0);
	return out;
}

static void rails(const char *a, const char *b, const char *c)
{
	struct lnx_nid n[3];
	unsigned k = 0;

	if (a)
		n[k++] = nid(a);
	if (b)
		n[k++] = nid(b);
	if (c)
		n[k++] = nid(c);
	lnx_rules_rails(rules, n, k);
}

/* "net rail" of our rail i; - for none. */
static const char *local(unsigned i)
{
	const struct lnx_rule_local *l = lnx_rules_local(rules, i);
	static char buf[32];

	sprintf(buf, "%d %d", (int)l->net, (int)l->rail);
	cr_assert_eq(l->net == NONE, l->net_rule == 0);
	cr_assert_eq(l->rail == NONE, l->rail_rule == 0);
	return buf;
}

static struct lnx_rule_peer *peer(struct lnx_rule_peer *t, const char *a,
				  const char *b)
{
	struct lnx_nid n[2];
	unsigned k = 0;

	n[k++] = nid(a);
	if (b)
		n[k++] = nid(b);
	cr_assert_eq(lnx_rules_peer(rules, &t, n, k), 0);
	cr_assert(!lnx_rules_stale(rules, t));
	return t;
}

/* "net remote preferred" of a peer's rail. */
static const char *remote(const struct lnx_rule_peer *t, unsigned i)
{
	static char buf[48];

	cr_assert_not_null(t);
	sprintf(buf, "%d %d %x", (int)t->remote[i].net, (int)t->remote[i].remote,
		t->remote[i].preferred);
	return buf;
}

static const char *applies(uint32_t index)
{
	static char buf[240];
	struct lnx_rule_info info;

	cr_assert_eq(lnx_rules_info(rules, index, &info), 0);
	cr_assert_lt(lnx_rule_applies(&info, buf, sizeof(buf)), sizeof(buf));
	return buf;
}

static enum lnx_rule_state state(uint32_t index)
{
	struct lnx_rule_info info;

	cr_assert_eq(lnx_rules_info(rules, index, &info), 0);
	return info.state;
}

/* ---- our rails ---- */

Test(rules_apply, the_lowest_index_counts_for_our_rails)
{
	rails("10.1.0.1", "10.1.0.2", "10.9.0.1");
	cr_assert_str_eq(local(0), "-1 -1");
	add("src: tcp1, priority: 4");
	cr_assert_str_eq(local(0), "4 -1");
	cr_assert_str_eq(local(1), "4 -1");
	cr_assert_str_eq(local(2), "-1 -1");
	add("src: 10.1.0.*@tcp1, priority: 7");
	add("src: 10.1.0.2@tcp1, priority: 2");
	cr_assert_str_eq(local(1), "4 7");
	/* before the other: now it counts */
	del(2);
	add("src: 10.1.0.2@tcp1, priority: 2, idx: 0");
	cr_assert_str_eq(local(0), "4 7");
	cr_assert_str_eq(local(1), "4 2");
	/* deleted: what it hid counts again */
	del(0);
	cr_assert_str_eq(local(1), "4 7");
	/* updated in place */
	add("src: tcp1, priority: 5");
	cr_assert_str_eq(local(1), "5 7");
	/* a wider rule behind it for the rest */
	add("src: tcp*, priority: 9");
	cr_assert_str_eq(local(0), "5 7");
	cr_assert_str_eq(local(2), "9 -1");
	/* The priority 0 is one, too. */
	add("src: 10.9.0.1@tcp");
	cr_assert_str_eq(local(2), "9 0");
	rules_del(rules, &(struct lnx_rules_which){ 0 }, NULL, &why);
	cr_assert_str_eq(local(0), "-1 -1");
	cr_assert_str_eq(local(2), "-1 -1");
}

Test(rules_apply, rules_before_our_rails)
{
	struct lnx_nid ours;
	uint32_t generation;

	add("src: tcp1, priority: 1; src: 10.2.0.9@tcp2, priority: 2");
	cr_assert_eq(state(0), LNX_RULE_WAITING);
	rails("10.1.0.1", NULL, NULL);
	cr_assert_str_eq(local(0), "1 -1");
	cr_assert_eq(state(0), LNX_RULE_IN_USE);
	cr_assert_eq(state(1), LNX_RULE_WAITING);
	generation = lnx_rules_generation(rules);
	rails("10.1.0.1", NULL, NULL);
	cr_assert_eq(lnx_rules_generation(rules), generation);
	/* a rail that was opened anew has another port */
	ours = nid("10.1.0.1");
	ours.port++;
	lnx_rules_rails(rules, &ours, 1);
	cr_assert_eq(lnx_rules_generation(rules), generation);
	add("src: 10.1.0.1:4713@tcp1, priority: 6");
	generation = lnx_rules_generation(rules);
	cr_assert_str_eq(local(0), "1 -1");
	ours.port++;
	lnx_rules_rails(rules, &ours, 1);
	cr_assert_neq(lnx_rules_generation(rules), generation);
	cr_assert_str_eq(local(0), "1 6");
	del(2);
	generation = lnx_rules_generation(rules);
	/* a NIC appears */
	rails("10.1.0.1", "10.2.0.9", NULL);
	cr_assert_neq(lnx_rules_generation(rules), generation);
	cr_assert_str_eq(local(1), "-1 2");
	cr_assert_eq(state(1), LNX_RULE_IN_USE);
	rails(NULL, NULL, NULL);
	cr_assert_eq(state(0), LNX_RULE_WAITING);
}

/* ---- rails of peers ---- */

/* LNet's tests 400 to 404: nets without a number, rules before the peer is known, rules
 * for nets that are absent, what is left after a rule is deleted. */
Test(rules_apply, rules_of_peers)
{
	struct lnx_rule_peer *p = NULL;

	rails("10.1.0.1", "10.2.0.1", NULL);
	/* without a rule for peers nothing is kept for them */
	add("src: tcp1");
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_null(p);
	add("dst: tcp1, priority: 1");
	cr_assert(lnx_rules_stale(rules, p));
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_str_eq(remote(p, 0), "1 -1 0");
	cr_assert_str_eq(remote(p, 1), "-1 -1 0");
	add("dst: 10.2.0.7@tcp2, priority: 3; dst: 10.2.0.0/16@tcp2, priority: 4");
	cr_assert(lnx_rules_stale(rules, p));
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_str_eq(remote(p, 1), "-1 3 0");
	del(2);
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_str_eq(remote(p, 1), "-1 4 0");
	/* the peer has another rail now */
	p = peer(p, "10.1.0.7", NULL);
	cr_assert_eq(p->n, 1);
	lnx_rules_leave(rules, p);
	/* rules for nets that no rail is in are harmless */
	add("dst: o2ib, priority: 1; src: o2ib5; dst: tcp77");
	p = peer(NULL, "10.1.0.8", NULL);
	cr_assert_str_eq(remote(p, 0), "1 -1 0");
	/* the last rule for peers goes */
	rules_del(rules, &(struct lnx_rules_which){ 0 }, NULL, &why);
	cr_assert(lnx_rules_stale(rules, p));
	p = peer(p, "10.1.0.8", NULL);
	cr_assert_null(p);
}

Test(rules_apply, pairs_come_from_the_lowest_index_alone)
{
	struct lnx_rule_peer *p = NULL;

	rails("10.1.0.1", "10.1.0.2", "10.2.0.1");
	/* two of ours for one of the peer's */
	add("src: 10.1.0.[1-2]@tcp1, dst: 10.1.0.7@tcp1");
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_str_eq(remote(p, 0), "-1 -1 3");
	cr_assert_str_eq(remote(p, 1), "-1 -1 0");
	/* a second rule is not added to the first */
	add("src: 10.2.0.1@tcp2, dst: 10.1.0.*@tcp1");
	p = peer(p, "10.1.0.7", "10.1.0.8");
	cr_assert_str_eq(remote(p, 0), "-1 -1 3");
	cr_assert_str_eq(remote(p, 1), "-1 -1 4");
	/* before the first, it counts alone */
	del(1);
	add("src: 10.2.0.1@tcp2, dst: 10.1.0.*@tcp1, idx: 0");
	p = peer(p, "10.1.0.7", "10.1.0.8");
	cr_assert_str_eq(remote(p, 0), "-1 -1 4");
	cr_assert_eq(state(0), LNX_RULE_APART);
	cr_assert_eq(state(1), LNX_RULE_SHADOWED);
	cr_assert_str_eq(applies(1), "nothing: rules before it decide for the 1 "
				     "rail of peers that match");
	/* without it, the other is as before */
	del(0);
	p = peer(p, "10.1.0.7", "10.1.0.8");
	cr_assert_str_eq(remote(p, 0), "-1 -1 3");
	cr_assert_str_eq(applies(0), "2 rails of ours, to 1 rail of peers");
	/* several at once, of different nets */
	del(0);
	add("src: 10.1.0.2@tcp1,10.2.0.1@tcp2, dst: 10.1.0.7@tcp1");
	p = peer(p, "10.1.0.7", "10.1.0.8");
	cr_assert_str_eq(remote(p, 0), "-1 -1 6");
	lnx_rules_leave(rules, p);
}

Test(rules_apply, pairs_with_a_net_apply_to_later_peers)
{
	struct lnx_rule_peer *p, *q;

	rails("10.1.0.1", "10.1.0.2", NULL);
	p = peer(NULL, "10.1.0.7", NULL);
	add("src: 10.1.0.2@tcp1, dst: tcp1");
	q = peer(NULL, "10.1.0.8", "10.2.0.8");
	cr_assert_str_eq(remote(q, 0), "-1 -1 2");
	cr_assert_str_eq(remote(q, 1), "-1 -1 0");
	cr_assert(lnx_rules_stale(rules, p));
	p = peer(p, "10.1.0.7", NULL);
	cr_assert_str_eq(remote(p, 0), "-1 -1 2");
	lnx_rules_leave(rules, p);
	lnx_rules_leave(rules, q);
}

Test(rules_apply, a_pair_without_a_rail_of_ours_waits_and_hides_nothing)
{
	struct lnx_rule_peer *p;

	rails("10.1.0.1", NULL, NULL);
	add("src: 10.1.0.9@tcp1, dst: tcp1; src: 10.1.0.1@tcp1, dst: tcp1");
	p = peer(NULL, "10.1.0.7", NULL);
	cr_assert_str_eq(remote(p, 0), "-1 -1 1");
	cr_assert_eq(state(0), LNX_RULE_WAITING);
	cr_assert_str_eq(applies(0), "nothing yet: it waits for a rail of ours; 1 "
				     "rail of peers match");
	rails("10.1.0.1", "10.1.0.9", NULL);
	cr_assert(lnx_rules_stale(rules, p));
	p = peer(p, "10.1.0.7", NULL);
	cr_assert_str_eq(remote(p, 0), "-1 -1 2");
	cr_assert_eq(state(0), LNX_RULE_IN_USE);
	cr_assert_eq(state(1), LNX_RULE_SHADOWED);
	lnx_rules_leave(rules, p);
	cr_assert_str_eq(applies(0), "nothing yet: it waits for a rail of a peer; "
				     "1 rail of ours match");
}

Test(rules_apply, gateways_wait_for_routing)
{
	struct lnx_nid first = nid("10.1.0.9"), other = nid("10.1.0.10");
	struct lnx_rule_peer *p;

	add("dst: tcp2, rte: 10.1.0.9@tcp1; dst: *.*.*.*@tcp2, rte: tcp1");
	p = peer(NULL, "10.2.0.7", "10.1.0.7");
	cr_assert_eq(state(0), LNX_RULE_NO_ROUTING);
	cr_assert_str_eq(applies(0), "nothing yet: it waits until routing is used; "
				     "1 rail of peers match");
	cr_assert(!lnx_rules_gateway(rules, &p->remote[0], &first));
	lnx_rules_routing(rules, true);
	p = peer(p, "10.2.0.7", "10.1.0.7");
	cr_assert_eq(state(0), LNX_RULE_IN_USE);
	cr_assert_eq(state(1), LNX_RULE_SHADOWED);
	cr_assert(lnx_rules_gateway(rules, &p->remote[0], &first));
	cr_assert(!lnx_rules_gateway(rules, &p->remote[0], &other));
	cr_assert(!lnx_rules_gateway(rules, &p->remote[1], &first));
	del(0);
	p = peer(p, "10.2.0.7", "10.1.0.7");
	cr_assert(lnx_rules_gateway(rules, &p->remote[0], &other));
	lnx_rules_leave(rules, p);
}

Test(rules_apply, what_a_rule_applies_to)
{
	struct lnx_rule_peer *p;

	rails("10.1.0.1", "10.1.0.2", NULL);
	add("src: 10.1.0.1@tcp1; src: 10.1.0.*@tcp1; dst: 10.1.0.7@tcp1;"
	    "dst: tcp1; src: tcp9; dst: tcp9");
	p = peer(NULL, "10.1.0.7", "10.1.0.8");
	cr_assert_str_eq(applies(0), "1 rail of ours");
	cr_assert_str_eq(applies(1), "1 rail of ours; rules before it decide for 1 "
				     "more");
	cr_assert_str_eq(applies(2), "1 rail of peers");
	cr_assert_str_eq(applies(3), "2 rails of peers");
	cr_assert_str_eq(applies(4), "nothing yet: it waits for a rail of ours");
	cr_assert_str_eq(applies(5), "nothing yet: it waits for a rail of a peer");
	lnx_rules_leave(rules, p);
	cr_assert_str_eq(applies(3), "nothing yet: it waits for a rail of a peer");
}

/* Its rails are there, and no path. */
Test(rules_apply, a_pair_of_two_nets)
{
	struct lnx_rule_peer *p;

	rails("10.1.0.1", "10.2.0.1", NULL);
	add("src: 10.1.0.1@tcp1, dst: 10.2.0.7@tcp2; src: 10.2.0.*@tcp2, dst: *.*.*.*@tcp*");
	p = peer(NULL, "10.1.0.7", "10.2.0.7");
	cr_assert_eq(state(0), LNX_RULE_APART);
	cr_assert_str_eq(applies(0), "1 rail of ours, to 1 rail of peers, without effect: no two "
			 "of them are of one net, so there is no path between them");
	/* It decides all the same: the lowest index does. */
	cr_assert_eq(state(1), LNX_RULE_APART);
	cr_assert_str_eq(applies(1), "1 rail of ours, to 1 rail of peers, without effect: no two "
			 "of them are of one net, so there is no path between them; rules "
			 "before it decide for 1 more");
	/* Over gateways there may be paths. */
	lnx_rules_routing(rules, true);
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_eq(state(0), LNX_RULE_IN_USE);
	lnx_rules_routing(rules, false);
	rails("10.1.0.1", "10.2.0.1", "10.2.0.2");
	del(0);
	p = peer(p, "10.1.0.7", "10.2.0.7");
	cr_assert_eq(state(0), LNX_RULE_IN_USE);
	cr_assert_str_eq(applies(0), "2 rails of ours, to 2 rails of peers");
	lnx_rules_leave(rules, p);
}

/* ---- many peers ---- */

#define PEERS	10000u

struct crowd {
	struct one {
		struct lnx_nid nid[2];
		unsigned n;
		struct lnx_rule_peer *table;
		unsigned renewed;
		bool gone;
	} *one;
	unsigned looked;
};

static void *crowd_next(void *arg, void *peer)
{
	struct crowd *c = arg;
	struct one *o = peer ? (struct one *)peer + 1 : c->one;

	while (o < c->one + PEERS && o->gone)
		o++;
	return o < c->one + PEERS ? o : NULL;
}

static unsigned crowd_nids(void *arg, void *peer, struct lnx_nid *out, unsigned max)
{
	struct one *o = peer;

	((struct crowd *)arg)->looked++;
	cr_assert_geq(max, o->n);
	memcpy(out, o->nid, o->n * sizeof(o->nid[0]));
	return o->n;
}

static struct lnx_rule_peer **crowd_table(void *arg, void *peer)
{
	(void)arg;
	return &((struct one *)peer)->table;
}

static void crowd_renewed(void *arg, void *peer)
{
	(void)arg;
	((struct one *)peer)->renewed++;
}

static struct crowd crowd;
static const struct lnx_rules_peers peers = {
	.arg = &crowd, .next = crowd_next, .nids = crowd_nids,
	.table = crowd_table, .renewed = crowd_renewed,
};

static void crowd_begin(void)
{
	char addr[24];
	unsigned i;

	crowd.one = calloc(PEERS, sizeof(*crowd.one));
	for (i = 0; i < PEERS; i++) {
		struct one *o = &crowd.one[i];

		o->n = 2;
		sprintf(addr, "10.1.%u.%u", i / 250, 1 + i % 250);
		o->nid[0] = nid(addr);
		addr[3] = '2';
		o->nid[1] = nid(addr);
	}
}

static void crowd_end(void)
{
	unsigned i;

	for (i = 0; i < PEERS; i++)
		if (!crowd.one[i].gone)
			lnx_rules_leave(rules, crowd.one[i].table);
	free(crowd.one);
}

/* 64 rules, of which peers match a few. */
static void many_rules(void)
{
	char text[80];
	unsigned i;

	for (i = 0; i < 64; i++) {
		sprintf(text, "dst: 10.1.%u.[1-99]@tcp1, priority: %u", i, i);
		add(text);
	}
}

Test(rules_apply, no_pass_is_long_with_many_peers_and_rules)
{
	struct lnx_rules_sweep sweep = { 0 };
	uint64_t before, most = 0, total;
	unsigned calls = 0, i;
	bool done;

	rails("10.1.0.1", "10.2.0.1", NULL);
	crowd_begin();
	/* peers that are not in use cost nothing */
	cr_assert(lnx_rules_sweep(rules, &sweep, &peers, UINT64_MAX / 2));
	cr_assert_eq(lnx_rules_ops(rules), 0);
	cr_assert_eq(crowd.looked, 0);
	many_rules();
	total = lnx_rules_ops(rules);
	do {
		before = lnx_rules_ops(rules);
		done = lnx_rules_sweep(rules, &sweep, &peers, LNX_RULES_SWEEP);
		most = LNX_MAX(most, lnx_rules_ops(rules) - before);
		calls++;
	} while (!done && calls < 100000);
	total = lnx_rules_ops(rules) - total;
	cr_assert(done);
	/* rules times rails, and no more; in calls of a limited length */
	cr_assert_eq(total, 64u * 2 * PEERS);
	cr_assert_leq(most, LNX_RULES_SWEEP + 64 * 2);
	cr_assert_geq(calls, total / (LNX_RULES_SWEEP + 64 * 2));
	cr_assert_leq(calls, 2 * total / LNX_RULES_SWEEP);
	for (i = 0; i < PEERS; i++) {
		bool match = i / 250 < 64 && i % 250 < 99;

		cr_assert(!lnx_rules_stale(rules, crowd.one[i].table));
		/* a ranking is made anew without a table, too */
		cr_assert_eq(crowd.one[i].renewed, 2);
		cr_assert_eq(crowd.one[i].table->remote[0].remote,
			     match ? i / 250 : NONE);
	}
	/* nothing to do: nothing is done */
	before = lnx_rules_ops(rules);
	crowd.looked = 0;
	cr_assert(lnx_rules_sweep(rules, &sweep, &peers, LNX_RULES_SWEEP));
	cr_assert_eq(lnx_rules_ops(rules), before);
	cr_assert_eq(crowd.looked, 0);
	/* a change of one rule of our own rails only needs the same again */
	cr_assert_eq(state(39), LNX_RULE_IN_USE);
	cr_assert_str_eq(applies(39), "99 rails of peers");
	crowd_end();
}

Test(rules_apply, a_sweep_that_is_overtaken)
{
	struct lnx_rules_sweep sweep = { 0 };
	struct one *o;
	unsigned i, calls;

	crowd_begin();
	many_rules();
	for (calls = 0; calls < 20; calls++)
		cr_assert(!lnx_rules_sweep(rules, &sweep, &peers, LNX_RULES_SWEEP));
	/* one is used before its turn, and renewed once */
	o = &crowd.one[PEERS - 1];
	cr_assert(lnx_rules_stale(rules, o->table));
	cr_assert_eq(lnx_rules_peer(rules, &o->table, o->nid, o->n), 0);
	cr_assert_eq(o->table->remote[0].remote, 39 < 64 && 249 < 99 ? 39 : NONE);
	/* the next one to look at goes away, and the one behind it */
	for (i = 0; i < 2; i++) {
		o = sweep.at;
		lnx_rules_sweep_forget(&sweep, &peers, o);
		lnx_rules_leave(rules, o->table);
		o->table = NULL;
		o->gone = true;
		cr_assert_neq(sweep.at, o);
	}
	/* rules change meanwhile: from the beginning again */
	add("dst: tcp2, priority: 3");
	while (!lnx_rules_sweep(rules, &sweep, &peers, LNX_RULES_SWEEP))
		;
	for (i = 0; i < PEERS; i++) {
		o = &crowd.one[i];
		if (o->gone)
			continue;
		cr_assert(!lnx_rules_stale(rules, o->table));
		cr_assert_eq(o->table->remote[1].net, 3);
	}
	cr_assert_str_eq(applies(64), "9998 rails of peers");
	cr_assert_eq(crowd.one[PEERS - 1].renewed, 1);
	crowd_end();
}

/* ---- against a model: each rule tried on each rail ---- */

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

/* A pattern, and which of the addresses 10.[1-3].0.[1-6] it is for. */
struct model_pattern {
	char text[64];
	bool nets;
	bool has[4][7];
};

static void random_pattern(struct model_pattern *p)
{
	unsigned net = 1 + roll(3), lo = 1 + roll(6), hi = lo + roll(7 - lo), i;
	char name[8];

	memset(p, 0, sizeof(*p));
	sprintf(name, net == 3 ? "tcp" : "tcp%u", net);
	p->nets = !roll(3);
	if (p->nets && !roll(3)) {
		strcpy(p->text, "tcp*");
		memset(p->has, 1, sizeof(p->has));
		return;
	}
	if (p->nets) {
		strcpy(p->text, name);
		memset(p->has[net], 1, sizeof(p->has[net]));
		return;
	}
	sprintf(p->text, "10.%u.0.[%u-%u]@%s", net, lo, hi, name);
	for (i = lo; i <= hi; i++)
		p->has[net][i] = true;
}

struct model_rule {
	bool src, dst;
	struct model_pattern s, d;
	uint32_t priority;
};

#define MODEL_RULES	12
#define MODEL_PEERS	8

static struct model_rule model[MODEL_RULES];
static unsigned nmodel;

struct model_peer {
	bool there;
	unsigned n, net[2], host[2];
	struct lnx_nid nid[2];
	struct lnx_rule_peer *table;
};

static struct model_peer mpeer[MODEL_PEERS];
static unsigned nours, our_net[3], our_host[3];

static bool try_add(void)
{
	struct lnx_rule_spec spec = { .side = { NULL } };
	struct model_rule *m = &model[nmodel];
	unsigned at = roll(nmodel + 1);
	struct model_rule tmp;

	if (nmodel == MODEL_RULES)
		return false;
	m->src = roll(2);
	m->dst = !m->src || roll(2);
	random_pattern(&m->s);
	random_pattern(&m->d);
	m->priority = m->src && m->dst ? NONE : roll(50);
	spec.side[LNX_RULE_SRC] = m->src ? m->s.text : NULL;
	spec.side[LNX_RULE_DST] = m->dst ? m->d.text : NULL;
	spec.has_priority = m->priority != NONE;
	spec.priority = m->priority;
	spec.has_index = true;
	spec.index = at;
	/* one of the same patterns is there: another test's matter */
	for (unsigned i = 0; i < nmodel; i++)
		if (model[i].src == m->src && model[i].dst == m->dst &&
		    (!m->src || !strcmp(model[i].s.text, m->s.text)) &&
		    (!m->dst || !strcmp(model[i].d.text, m->d.text)))
			return false;
	cr_assert_eq(lnx_rules_add(rules, &spec, NULL, &why), 0, "%s", why.why);
	tmp = *m;
	memmove(&model[at + 1], &model[at], (nmodel - at) * sizeof(*m));
	model[at] = tmp;
	nmodel++;
	return true;
}

static void model_change(void)
{
	unsigned i, k;
	struct lnx_nid n[3];
	char addr[24];

	switch (roll(6)) {
	case 0:
	case 1:
		try_add();
		return;
	case 2:
		if (!nmodel)
			return;
		i = roll(nmodel);
		del(i);
		nmodel--;
		memmove(&model[i], &model[i + 1], (nmodel - i) * sizeof(model[0]));
		return;
	case 3:
		nours = roll(4);
		for (i = 0; i < nours; i++) {
			our_net[i] = 1 + roll(3);
			our_host[i] = 1 + roll(6);
			sprintf(addr, "10.%u.0.%u", our_net[i], our_host[i]);
			n[i] = nid(addr);
		}
		lnx_rules_rails(rules, n, nours);
		return;
	default:
		i = roll(MODEL_PEERS);
		if (mpeer[i].there) {
			lnx_rules_leave(rules, mpeer[i].table);
			mpeer[i].table = NULL;
			mpeer[i].there = false;
			return;
		}
		mpeer[i].there = true;
		mpeer[i].n = 1 + roll(2);
		for (k = 0; k < mpeer[i].n; k++) {
			mpeer[i].net[k] = 1 + roll(3);
			mpeer[i].host[k] = 1 + roll(6);
			sprintf(addr, "10.%u.0.%u", mpeer[i].net[k],
				mpeer[i].host[k]);
			mpeer[i].nid[k] = nid(addr);
		}
	}
}

static uint32_t model_mask(const struct model_rule *m)
{
	uint32_t mask = 0;
	unsigned i;

	for (i = 0; i < nours; i++)
		if (m->s.has[our_net[i]][our_host[i]])
			mask |= 1u << i;
	return mask;
}

struct expected { uint32_t net, rail, preferred; int by[3]; };

/* What counts for one rail: of ours (src only), or of a peer. */
static struct expected expect(bool ours, unsigned net, unsigned host)
{
	struct expected e = { NONE, NONE, 0, { -1, -1, -1 } };
	unsigned i;

	for (i = 0; i < nmodel; i++) {
		const struct model_rule *m = &model[i];
		const struct model_pattern *p = ours ? &m->s : &m->d;
		bool pair = m->src && m->dst;

		if ((ours && (!m->src || pair)) || (!ours && !m->dst) ||
		    !p->has[net][host])
			continue;
		if (pair) {
			if (e.by[2] < 0 && model_mask(m)) {
				e.by[2] = (int)i;
				e.preferred = model_mask(m);
			}
		} else if (p->nets) {
			if (e.by[0] < 0) {
				e.by[0] = (int)i;
				e.net = m->priority;
			}
		} else if (e.by[1] < 0) {
			e.by[1] = (int)i;
			e.rail = m->priority;
		}
	}
	return e;
}

static void check_counts(unsigned long s)
{
	uint64_t decides[MODEL_RULES] = { 0 };
	struct lnx_rule_info info;
	struct expected e;
	unsigned i, k, b;

	for (i = 0; i < nours; i++) {
		e = expect(true, our_net[i], our_host[i]);
		for (b = 0; b < 2; b++)
			if (e.by[b] >= 0)
				decides[e.by[b]]++;
	}
	for (i = 0; i < MODEL_PEERS; i++)
		for (k = 0; mpeer[i].there && k < mpeer[i].n; k++) {
			e = expect(false, mpeer[i].net[k], mpeer[i].host[k]);
			for (b = 0; b < 3; b++)
				if (e.by[b] >= 0)
					decides[e.by[b]]++;
		}
	for (i = 0; i < nmodel; i++) {
		uint64_t all = 0, mine = 0;

		for (k = 0; k < nours; k++)
			mine += model[i].src &&
				model[i].s.has[our_net[k]][our_host[k]];
		for (k = 0; k < 2 * MODEL_PEERS; k++) {
			struct model_peer *p = &mpeer[k / 2];

			all += p->there && k % 2 < p->n && model[i].dst &&
			       model[i].d.has[p->net[k % 2]][p->host[k % 2]];
		}
		cr_assert_eq(lnx_rules_info(rules, i, &info), 0);
		cr_assert_eq(info.decides, decides[i], "seed %lu: rule %u", s, i);
		cr_assert_eq(info.rails, mine, "seed %lu: rule %u", s, i);
		cr_assert_eq(info.remote, all, "seed %lu: rule %u", s, i);
		cr_assert_eq(info.matched, !model[i].dst ? mine :
			     model[i].src && !mine ? 0 : all);
	}
}

Test(rules_apply, random_rules_rails_and_peers_against_a_model)
{
	unsigned long s = seed();
	unsigned round, i, k;
	struct expected e;

	for (round = 0; round < 3000; round++) {
		model_change();
		/* sometimes peers are renewed late, after several changes */
		if (roll(3))
			continue;
		for (i = 0; i < nours; i++) {
			const struct lnx_rule_local *l = lnx_rules_local(rules, i);

			e = expect(true, our_net[i], our_host[i]);
			cr_assert_eq(l->net, e.net, "seed %lu", s);
			cr_assert_eq(l->rail, e.rail, "seed %lu", s);
		}
		for (i = 0; i < MODEL_PEERS; i++) {
			struct model_peer *p = &mpeer[i];

			if (!p->there)
				continue;
			if (lnx_rules_stale(rules, p->table) || !roll(3))
				lnx_rules_peer(rules, &p->table, p->nid, p->n);
			for (k = 0; p->table && k < p->n; k++) {
				struct lnx_rule_remote *r = &p->table->remote[k];

				e = expect(false, p->net[k], p->host[k]);
				cr_assert_eq(r->net, e.net, "seed %lu", s);
				cr_assert_eq(r->remote, e.rail, "seed %lu", s);
				cr_assert_eq(r->preferred, e.preferred,
					     "seed %lu", s);
			}
		}
		check_counts(s);
	}
	for (i = 0; i < MODEL_PEERS; i++)
		lnx_rules_leave(rules, mpeer[i].table);
}
