/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Routes: what is understood and refused, where new ones stand in the table, which are
 * the best; against a naive model, and as YAML.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "conf/config.h"
#include "conf/routes.h"
#include "seed.h"

static struct lnx_nets nets;
static struct lnx_routes table;
static struct lnx_refusal why;
/* This node: 10.1.99.5 in tcp1, 10.2.99.5 in tcp2. */
static struct lnx_nid rails[2];
static struct lnx_route_host host;

static struct lnx_nid nid(const char *text)
{
	struct lnx_refusal r = { .text = text };
	struct lnx_pattern p;
	struct lnx_nid n;

	cr_assert_eq(lnx_nid_pattern_parse(&nets, (struct lnx_span){ text, strlen(text) },
					   &p, &r), 0, "%s", r.why);
	cr_assert(lnx_nid_pattern_one(&p, &n), "%s", text);
	return n;
}

static void begin(void)
{
	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16; tcp2=10.2.0.0/16; "
				    "tcp3=10.3.0.0/16; ib0=verbs/10.9.0.0/16; "
				    "tcp;ofi_rxm1=10.4.0.0/16; tcp;ofi_rxm2=10.5.0.0/16",
				    &nets, &why), 0, "%s", why.why);
	rails[0] = nid("10.1.99.5@tcp1");
	rails[1] = nid("10.2.99.5@tcp2");
	host = (struct lnx_route_host){ .rail = rails, .n = 2 };
	lnx_routes_init(&table, 1);
}

static void end(void)
{
	lnx_routes_fini(&table);
}

TestSuite(routes, .init = begin, .fini = end);

static int parse(const char *text)
{
	memset(&why, 0, sizeof(why));
	return lnx_routes_parse(&table, &nets, text, &host, &why);
}

static const char *print(void)
{
	static char buf[1 << 16];

	cr_assert_lt(lnx_routes_print(&table, buf, sizeof(buf)), sizeof(buf));
	return buf;
}

/* ---- what is understood ---- */

Test(routes, forms)
{
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{ "tcp3 via 10.1.0.1@tcp1", "tcp3 via 10.1.0.1@tcp1" },
		{ " tcp3  via\t10.1.0.1@tcp1 ; ", "tcp3 via 10.1.0.1@tcp1" },
		{ "tcp3 hop=1 via 10.1.0.1@tcp1", "tcp3 hop=1 via 10.1.0.1@tcp1" },
		{ "tcp3 priority=0 hop=255 via 10.1.0.1@tcp1",
		  "tcp3 hop=255 via 10.1.0.1@tcp1" },
		{ "tcp3 HOP=-1 PRIORITY=7 VIA 10.1.0.1@TCP1",
		  "tcp3 priority=7 via 10.1.0.1@tcp1" },
		{ "tcp3 via 10.1.0.1@tcp1,10.2.0.1@tcp2",
		  "tcp3 via 10.1.0.1@tcp1; tcp3 via 10.2.0.1@tcp2" },
		{ "tcp3 via 10.1.0.1@tcp1 , 10.2.0.1@tcp2",
		  "tcp3 via 10.1.0.1@tcp1; tcp3 via 10.2.0.1@tcp2" },
		{ "tcp3 via 10.1.0.[1-3/2]@tcp1",
		  "tcp3 via 10.1.0.1@tcp1; tcp3 via 10.1.0.3@tcp1" },
		{ "tcp3 via 10.1.[0,1].[8, 9]@tcp1",
		  "tcp3 via 10.1.0.8@tcp1; tcp3 via 10.1.0.9@tcp1; "
		  "tcp3 via 10.1.1.8@tcp1; tcp3 via 10.1.1.9@tcp1" },
		{ "tcp3 via 10.1.0.1:9000@tcp1", "tcp3 via 10.1.0.1:9000@tcp1" },
		{ "tcp3 via 10.1.0.1:7988@tcp1", "tcp3 via 10.1.0.1@tcp1" },
		{ "ib via [fd00::1]@tcp1; cxi via 10.1.0.1@tcp1",
		  "ib via [fd00::1]@tcp1; cxi via 10.1.0.1@tcp1" },
		{ "ib0 via 10.1.0.1@tcp1", "ib via 10.1.0.1@tcp1" },
		/* LNet's form */
		{ "tcp3 10.1.0.1@tcp1", "tcp3 via 10.1.0.1@tcp1" },
		{ "tcp3 2 10.1.0.1@tcp1", "tcp3 hop=2 via 10.1.0.1@tcp1" },
		{ "tcp3 -1 10.1.0.1@tcp1", "tcp3 via 10.1.0.1@tcp1" },
		{ "tcp3 2 10.1.0.1@tcp1:5 10.1.0.2@tcp1",
		  "tcp3 hop=2 priority=5 via 10.1.0.1@tcp1; "
		  "tcp3 hop=2 via 10.1.0.2@tcp1" },
		{ "tcp3 10.1.0.[1-2]:99@tcp1:5",
		  "tcp3 priority=5 via 10.1.0.1:99@tcp1; "
		  "tcp3 priority=5 via 10.1.0.2:99@tcp1" },
		{ "tcp3 [fd00::1]@tcp1:4", "tcp3 priority=4 via [fd00::1]@tcp1" },
		{ "tcp3 1 10.1.0.1@tcp1;ib 10.1.0.1@tcp1",
		  "tcp3 hop=1 via 10.1.0.1@tcp1; ib via 10.1.0.1@tcp1" },
		{ "", "" }, { " ; ;", "" },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		char again[1024];

		cr_assert_eq(parse(rows[i].text), 0, "%s: %s", rows[i].text, why.why);
		cr_assert_str_eq(print(), rows[i].canonical, "%s: %s", rows[i].text,
				 print());
		strcpy(again, print());
		lnx_routes_fini(&table);
		cr_assert_eq(parse(again), 0, "%s: %s", again, why.why);
		cr_assert_str_eq(print(), again);
		lnx_routes_fini(&table);
	}
	cr_assert_eq(lnx_routes_parse(&table, &nets, NULL, &host, &why), 0);
	cr_assert_eq(table.n, 0);
}

/* The ';' in a provider's name ends no route. */
Test(routes, nets_of_layered_providers)
{
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{ "tcp;ofi_rxm2 via 10.1.0.1@tcp1;tcp3 via 10.4.0.1@TCP;OFI_RXM1",
		  "tcp;ofi_rxm2 via 10.1.0.1@tcp1; tcp3 via 10.4.0.1@tcp;ofi_rxm1" },
		{ "tcp;ofi_rxm2 hop=2 via 10.4.0.1@tcp;ofi_rxm1,10.1.0.1@tcp1 ;",
		  "tcp;ofi_rxm2 hop=2 via 10.4.0.1@tcp;ofi_rxm1; "
		  "tcp;ofi_rxm2 hop=2 via 10.1.0.1@tcp1" },
		{ "tcp;ofi_rxm2 1 10.4.0.1@tcp;ofi_rxm1:5 10.1.0.1@tcp1",
		  "tcp;ofi_rxm2 hop=1 priority=5 via 10.4.0.1@tcp;ofi_rxm1; "
		  "tcp;ofi_rxm2 hop=1 via 10.1.0.1@tcp1" },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		cr_assert_eq(lnx_routes_parse(&table, &nets, rows[i].text, NULL, &why), 0,
			     "%s: %s", rows[i].text, why.why);
		cr_expect_str_eq(print(), rows[i].canonical);
		lnx_routes_fini(&table);
	}
}

/* ---- what is refused: each row of LNet's table is here ---- */

Test(routes, refused)
{
	static const struct {
		const char *text;
		int err;
		size_t at;
		const char *why;
	} rows[] = {
		/* the net is any or this node */
		{ "* via 10.1.0.1@tcp1", -EINVAL, 0, "one net" },
		{ "any via 10.1.0.1@tcp1", -EINVAL, 0, "one net" },
		{ "lo via 10.1.0.1@tcp1", -EINVAL, 0, "this node" },
		{ "tcp* via 10.1.0.1@tcp1", -EINVAL, 0, "one net" },
		{ "tcp[3-4] via 10.1.0.1@tcp1", -EINVAL, 0, "one net" },
		{ "tcp:10.3.0.0/16 via 10.1.0.1@tcp1", -EINVAL, 0, "FI_LNX_NETS" },
		{ "10.3.0.1@tcp3 via 10.1.0.1@tcp1", -EINVAL, 0, "one net" },
		{ "shm via 10.1.0.1@tcp1", -EINVAL, 0, "shared memory" },
		{ "eth via 10.1.0.1@tcp1", -EINVAL, 0, "no known net" },
		/* the gateway is any or this node */
		{ "tcp3 via 0@lo", -EINVAL, 9, "another node" },
		{ "tcp3 via 10.1.0.1@*", -EINVAL, 9, "another node" },
		{ "tcp3 via *.*.*.*@tcp1", -EINVAL, 9, "more than 256" },
		{ "tcp3 via 10.1.0.*@tcp1", -EINVAL, 9, "10.0.0.[1-4]@tcp" },
		{ "tcp3 via 10.1.[0-16].[0-16]@tcp1", -EINVAL, 9, "more than 256" },
		{ "tcp3 via tcp1", -EINVAL, 9, "one node" },
		{ "tcp3 via [fd00::/64]@tcp1", -EINVAL, 9, "one node" },
		{ "tcp3 via 10.1.0.1@tcp*", -EINVAL, 9, "one net" },
		{ "tcp3 via 10.1.0.1@tcp:10.1.0.0/16", -EINVAL, 9, "has a name" },
		{ "tcp3 via 127.0.0.1@tcp1", -EINVAL, 9, "one other node" },
		{ "tcp3 via 0.0.0.0@tcp1", -EINVAL, 9, "one other node" },
		{ "tcp3 via 224.0.0.1@tcp1", -EINVAL, 9, "one other node" },
		{ "tcp3 via [::1]@tcp1", -EINVAL, 9, "one other node" },
		{ "tcp3 via 10.1.99.5@tcp1", -EINVAL, 9, "itself" },
		{ "tcp3 via 10.1.0.1:[1-2]@tcp1", -EINVAL, 9, "one port" },
		{ "tcp3 via 10.1.0.1:0@tcp1", -EINVAL, 9, "port 0" },
		/* the gateway is on the same net as the target */
		{ "tcp3 via 10.3.0.1@tcp3", -EINVAL, 9, "itself" },
		{ "tcp1 via 10.1.0.1@tcp1", -EINVAL, 9, "itself" },
		/* hops out of range, and other words */
		{ "tcp3 hop=0 via 10.1.0.1@tcp1", -EINVAL, 9, "1 to 255" },
		{ "tcp3 hop=256 via 10.1.0.1@tcp1", -EINVAL, 9, "1 to 255" },
		{ "tcp3 hop= via 10.1.0.1@tcp1", -EINVAL, 9, "1 to 255" },
		{ "tcp3 hop=1x via 10.1.0.1@tcp1", -EINVAL, 9, "1x" },
		{ "tcp3 hop=1 hop=1 via 10.1.0.1@tcp1", -EINVAL, 11, "once" },
		{ "tcp3 priority=-1 via 10.1.0.1@tcp1", -EINVAL, 14, "0, the best" },
		{ "tcp3 priority=4294967295 via 10.1.0.1@tcp1", -EINVAL, 14,
		  "4294967294" },
		{ "tcp3 weight=1 via 10.1.0.1@tcp1", -EINVAL, 5, "weight=1" },
		{ "tcp3 0 10.1.0.1@tcp1", -EINVAL, 5, "1 to 255" },
		{ "tcp3 999 10.1.0.1@tcp1", -EINVAL, 5, "1 to 255" },
		{ "tcp3 2", -EINVAL, 6, "gateways" },
		{ "tcp3", -EINVAL, 4, "gateways" },
		{ "tcp3 via", -EINVAL, 8, "missing" },
		{ "tcp3 via 10.1.0.1@tcp1,", -EINVAL, 23, "missing" },
		{ "tcp3 10.1.0.1@tcp1:9x", -EINVAL, 19, "9x" },
		{ "tcp3 10.1.0.1@tcp1:", -EINVAL, 19, "0, the best" },
		{ "tcp3 10.1.0.1@tcp1 hop=1", -EINVAL, 19, "in front" },
		/* the net is local */
		{ "tcp2 via 10.1.0.1@tcp1", -EEXIST, 9, "local" },
		/* it is there already, also within the text */
		{ "tcp3 via 10.1.0.1@tcp1, 10.1.0.1@tcp1", -EEXIST, 24, "already" },
		{ "tcp3 1 10.1.0.1@tcp1; tcp3 2 10.1.0.1:7988@tcp1", -EEXIST, 29,
		  "already" },
		/* the gateway's net is not local */
		{ "tcp3 via 10.9.0.1@ib", -EHOSTUNREACH, 9, "tcp1, tcp2" },
		{ "ib via 10.3.0.1@tcp3", -EHOSTUNREACH, 7, "no local net" },
		/* nothing is kept of a text with an error at its end */
		{ "tcp3 via 10.1.0.1@tcp1; ib via lo", -EINVAL, 31, "no known net" },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		int ret = parse(rows[i].text);

		cr_expect_eq(ret, rows[i].err, "%s: %d", rows[i].text, ret);
		cr_expect(strstr(why.why, rows[i].why), "%s: %s", rows[i].text, why.why);
		cr_expect_eq(why.at, rows[i].at, "%s: at %zu", rows[i].text, why.at);
		cr_expect_eq(table.n, 0, "%s", rows[i].text);
	}
}

/* Without a host only the text is checked, as for a node that is not up yet. */
Test(routes, without_host)
{
	cr_assert_eq(lnx_routes_parse(&table, &nets, "tcp2 via 10.9.0.1@ib", NULL, &why),
		     0);
	cr_assert_eq(lnx_routes_parse(&table, &nets, "tcp1 via 10.1.0.1@tcp1", NULL,
				      &why), -EINVAL);
}

/* What "import" uses: text for all nodes of a cluster. */
Test(routes, put)
{
	char skipped[600] = "";
	struct lnx_out o = { .buf = skipped, .size = sizeof(skipped) };
	uint32_t id, changes;

	cr_assert_eq(parse("tcp3 via 10.1.0.1@tcp1; ib via 10.1.0.1@tcp1"), 0);
	changes = table.changes;
	cr_assert_eq(lnx_routes_put(&table, &nets, "tcp3 via 10.1.0.1@tcp1", &host, &o,
				    &why), 0);
	cr_assert_eq(table.changes, changes, "nothing is new");
	id = table.last_id;
	cr_assert_eq(lnx_routes_put(&table, &nets, "tcp3 hop=2 priority=5 via "
				    "10.1.0.1@tcp1; tcp3 via 10.2.0.9@tcp2; "
				    "tcp2 via 10.1.0.1@tcp1; ib via 10.3.0.1@tcp3; "
				    "tcp3 via 10.1.99.5@tcp1", &host, &o, &why), 0, "%s",
		     why.why);
	cr_assert_str_eq(print(), "tcp3 hop=2 priority=5 via 10.1.0.1@tcp1; ib via "
			 "10.1.0.1@tcp1; tcp3 via 10.2.0.9@tcp2");
	cr_assert_eq(table.last_id, id + 1, "the first one keeps its id");
	cr_assert(strstr(skipped, "tcp2 via 10.1.0.1@tcp1: the net tcp2 is local"), "%s",
		  skipped);
	cr_assert(strstr(skipped, "\nib via 10.3.0.1@tcp3: the gateway 10.3.0.1@tcp3 is on no "
			 "local net"), "%s", skipped);
	cr_assert(strstr(skipped, "this node itself"), "%s", skipped);
	/* What is wrong everywhere is refused, with all the rest. */
	changes = table.changes;
	cr_assert_eq(lnx_routes_put(&table, &nets, "tcp3 via 10.1.0.8@tcp1; tcp1 via "
				    "10.1.0.1@tcp1", &host, &o, &why), -EINVAL);
	cr_assert_eq(why.at, 33);
	/* Also behind one that is passed over. */
	cr_assert_eq(lnx_routes_put(&table, &nets, "tcp2 via 10.1.0.1@tcp1; tcp1 via "
				    "10.1.0.1@tcp1", &host, &o, &why), -EINVAL);
	cr_assert_eq(why.at, 33);
	cr_assert_eq(table.changes, changes);
	cr_assert_eq(table.n, 3);
	lnx_routes_clear(&table);
	cr_assert_str_eq(print(), "");
	cr_assert_eq(table.last_id, id + 1, "ids are not used again");
	changes = table.changes;
	lnx_routes_clear(&table);
	cr_assert_eq(table.changes, changes);
}

Test(routes, deleted)
{
	uint32_t changes;

	cr_assert_eq(parse("tcp3 via 10.1.0.[1-3]@tcp1; ib via 10.1.0.1@tcp1"), 0);
	changes = table.changes;
	cr_assert_eq(lnx_routes_del(&table, &nets, "cxi", &why), -ENOENT);
	cr_assert(strstr(why.why, "no route to cxi"));
	cr_assert_eq(lnx_routes_del(&table, &nets, "tcp3 via 10.1.0.9@tcp1", &why),
		     -ENOENT);
	cr_assert(strstr(why.why, "tcp3 over 10.1.0.9@tcp1"));
	/* The second one is not there: the first stays. */
	cr_assert_eq(lnx_routes_del(&table, &nets, "tcp3 via 10.1.0.1@tcp1,10.1.0.9@tcp1",
				    &why), -ENOENT);
	cr_assert_eq(table.n, 4);
	cr_assert_eq(table.changes, changes);
	cr_assert_eq(lnx_routes_del(&table, &nets, "tcp3 via 10.1.0.2@tcp1", &why), 0);
	cr_assert_str_eq(print(), "tcp3 via 10.1.0.1@tcp1; tcp3 via 10.1.0.3@tcp1; "
				  "ib via 10.1.0.1@tcp1");
	cr_assert_neq(table.changes, changes);
	cr_assert_eq(lnx_routes_del(&table, &nets, "tcp3", &why), 0);
	cr_assert_str_eq(print(), "ib via 10.1.0.1@tcp1");
	cr_assert_eq(lnx_routes_del(&table, &nets, "tcp3", &why), -ENOENT);
	cr_assert_eq(lnx_routes_del(&table, &nets, " ", &why), -EINVAL);
	cr_assert_eq(lnx_routes_del(&table, &nets, "tcp[1-2]", &why), -EINVAL);
	/* An id is not used again. */
	cr_assert_eq(parse("tcp3 via 10.1.0.1@tcp1"), 0);
	cr_assert_eq(table.route[0].id + table.route[1].id, 4 + 5);
}

Test(routes, full)
{
	struct lnx_route_spec spec;
	unsigned i;

	cr_assert_eq(parse("tcp3 via 10.1.0.1@tcp1"), 0);
	spec = table.route[0].spec;
	for (i = 1; i < LNX_ROUTES_MAX; i++) {
		spec.gateway.addr[2] = (uint8_t)(i >> 8);
		spec.gateway.addr[3] = (uint8_t)i;
		spec.gateway.port = 1;
		cr_assert_eq(lnx_routes_add(&table, &spec, &host, &why), 0);
	}
	spec.gateway.port = 2;
	cr_assert_eq(lnx_routes_add(&table, &spec, &host, &why), -ENOSPC);
	cr_assert(strstr(why.why, "4096"));
	cr_assert_eq(table.n, LNX_ROUTES_MAX);
}

/* ---- which is first ---- */

static bool not_down(void *arg, const struct lnx_route *route)
{
	return route->spec.gateway.addr[3] != *(uint8_t *)arg;
}

static unsigned best(const char *to, uint8_t down, uint8_t last[8])
{
	const struct lnx_route *out[8];
	struct lnx_nid n = nid(to);
	unsigned i, k = lnx_routes_best(&table, &n, not_down, &down, out, 8);

	for (i = 0; i < k; i++)
		last[i] = out[i]->spec.gateway.addr[3];
	return k;
}

Test(routes, best_first)
{
	uint8_t got[8];

	/* Priority before hops, and no hops are one. */
	cr_assert_eq(parse("tcp3 hop=1 priority=1 via 10.1.0.1@tcp1;"
			   "tcp3 hop=5 via 10.1.0.2@tcp1;"
			   "tcp3 hop=2 via 10.1.0.3@tcp1;"
			   "ib via 10.1.0.9@tcp1"), 0);
	cr_assert_eq(best("10.3.0.7@tcp3", 0, got), 1);
	cr_assert_eq(got[0], 3);
	cr_assert_eq(best("10.3.0.7@tcp3", 3, got), 1);
	cr_assert_eq(got[0], 2);
	cr_assert_eq(best("10.9.0.7@ib", 0, got), 1);
	cr_assert_eq(got[0], 9);
	cr_assert_eq(best("10.9.0.7@ib", 9, got), 0);
	cr_assert_eq(best("0x01@cxi", 0, got), 0);
	cr_assert_eq(parse("tcp3 via 10.1.0.4@tcp1; tcp3 1 10.1.0.5@tcp1"), 0);
	cr_assert_eq(best("10.3.0.7@tcp3", 0, got), 2);
	cr_assert_eq(got[0] + got[1], 4 + 5);
}

/* ---- where new ones stand ---- */

Test(routes, places)
{
	unsigned first[4] = { 0 }, seed, i;
	char before[4][512];

	for (seed = 1; seed <= 400; seed++) {
		lnx_routes_init(&table, seed);
		cr_assert_eq(parse("tcp3 via 10.1.0.[0-3]@tcp1"), 0);
		first[table.route[0].spec.gateway.addr[3]]++;
		lnx_routes_fini(&table);
	}
	/* About 100 each: far from 0, and far from all. */
	for (i = 0; i < 4; i++)
		cr_assert(first[i] > 50 && first[i] < 150, "%u: %u", i, first[i]);
	/* The same seed makes the same order. */
	for (i = 0; i < 2; i++) {
		unsigned k;

		lnx_routes_init(&table, 7);
		cr_assert_eq(parse("tcp3 via 10.1.0.[1-20]@tcp1"), 0);
		before[i][0] = '\0';
		for (k = 0; k < table.n; k++)
			sprintf(before[i] + strlen(before[i]), "%u ",
				table.route[k].spec.gateway.addr[3]);
		lnx_routes_fini(&table);
	}
	cr_assert_str_eq(before[0], before[1]);
}

/* ---- against a model ---- */

struct row {
	unsigned net, gw, hop, priority;
};

static struct row model[256];
static unsigned nmodel;

static int model_find(unsigned net, unsigned gw)
{
	unsigned i;

	for (i = 0; i < nmodel; i++)
		if (model[i].net == net && model[i].gw == gw)
			return (int)i;
	return -1;
}

static void model_check(void)
{
	unsigned net, i;
	char to[64];

	cr_assert_eq(table.n, nmodel);
	for (net = 3; net < 7; net++) {
		const struct lnx_route *out[64];
		unsigned best_p = UINT32_MAX, best_h = UINT32_MAX, n = 0, k;
		struct lnx_nid at;

		snprintf(to, sizeof(to), "10.%u.0.9@tcp%u", net, net);
		at = nid(to);
		for (i = 0; i < nmodel; i++) {
			unsigned h = model[i].hop ? model[i].hop : 1;

			if (model[i].net != net)
				continue;
			if (model[i].priority < best_p ||
			    (model[i].priority == best_p && h < best_h)) {
				best_p = model[i].priority;
				best_h = h;
				n = 0;
			}
			n += model[i].priority == best_p && h == best_h;
		}
		k = lnx_routes_best(&table, &at, NULL, NULL, out, 64);
		cr_assert_eq(k, n, "tcp%u: %u, not %u", net, k, n);
		for (i = 0; i < k; i++) {
			cr_assert_eq(out[i]->spec.priority, best_p);
			cr_assert_eq(lnx_route_hops(&out[i]->spec), best_h);
			cr_assert_geq(model_find(net, out[i]->spec.gateway.addr[3]), 0);
		}
	}
}

Test(routes, random_model)
{
	unsigned i, done[4] = { 0 };
	char text[128];

	rnd_begin();
	lnx_routes_init(&table, rnd(UINT32_MAX));
	for (i = 0; i < 3000; i++) {
		struct row row = { .net = 3 + (unsigned)rnd(4),
				   .gw = 1 + (unsigned)rnd(20),
				   .hop = (unsigned)rnd(4),
				   .priority = (unsigned)rnd(3) };
		int at = model_find(row.net, row.gw), ret;

		if (rnd(5) < 3) {
			sprintf(text, "tcp%u ", row.net);
			if (row.hop)
				sprintf(text + strlen(text), "hop=%u ", row.hop);
			sprintf(text + strlen(text), "priority=%u via 10.1.0.%u@tcp1",
				row.priority, row.gw);
			ret = parse(text);
			cr_assert_eq(ret, at < 0 ? 0 : -EEXIST, "%s: %s", text, why.why);
			if (!ret)
				model[nmodel++] = row;
			done[!ret]++;
		} else if (rnd(40)) {
			sprintf(text, "tcp%u via 10.1.0.%u@tcp1", row.net, row.gw);
			ret = lnx_routes_del(&table, &nets, text, &why);
			cr_assert_eq(ret, at < 0 ? -ENOENT : 0, "%s: %s", text, why.why);
			if (!ret)
				model[at] = model[--nmodel];
			done[2 + !ret]++;
		} else {
			unsigned k, before = nmodel;

			sprintf(text, "tcp%u", row.net);
			ret = lnx_routes_del(&table, &nets, text, &why);
			for (k = nmodel; k--;)
				if (model[k].net == row.net)
					model[k] = model[--nmodel];
			cr_assert_eq(ret, before == nmodel ? -ENOENT : 0);
		}
		if (i % 10 == 0)
			model_check();
		/* The text of all of them makes the same table. */
		if (i % 100 == 0) {
			struct lnx_routes other;
			char again[1 << 14];

			lnx_routes_init(&other, i);
			cr_assert_eq(lnx_routes_parse(&other, &nets, print(), &host,
						      &why), 0, "%s", why.why);
			cr_assert_eq(other.n, table.n);
			lnx_routes_print(&other, again, sizeof(again));
			cr_assert_str_eq(again, print());
			lnx_routes_fini(&other);
		}
	}
	for (i = 0; i < 4; i++)
		cr_assert_gt(done[i], 100, "%u", i);
}

/* ---- YAML ---- */

static struct lnx_config *read_yaml(const char *text, struct lnx_config_error *e)
{
	struct lnx_config *c = NULL;

	if (lnx_config_read(text, strlen(text), &nets, &c, e))
		return NULL;
	return c;
}

#ifdef HAVE_LIBYAML
#define NEEDS_YAML
#else
#define NEEDS_YAML	cr_skip_test("lnx was built without libyaml")
#endif

Test(routes, from_yaml)
{
	struct lnx_config_error e;
	struct lnx_config *c;
	uint32_t changes;

	NEEDS_YAML;
	cr_assert_eq(parse("cxi via 10.1.0.8@tcp1"), 0);
	changes = table.changes;
	c = read_yaml("global: {retry_count: 2}", &e);
	cr_assert_not_null(c, "%s", e.why);
	/* Without the section nothing changes. */
	cr_assert_eq(lnx_config_routes(c, &nets, &table, &host, NULL, &why), 0);
	cr_assert_str_eq(print(), "cxi via 10.1.0.8@tcp1");
	cr_assert_eq(table.changes, changes);
	lnx_config_destroy(c);

	c = read_yaml("route: [{net: tcp3, gateway: '10.1.0.[1-2]@tcp1', hop: 1},"
		      " {net: ib, gateway: 10.2.0.1@tcp2, hop: -1, priority: 4}]", &e);
	cr_assert_not_null(c, "%s", e.why);
	cr_assert_eq(lnx_config_routes(c, &nets, &table, &host, NULL, &why), 0, "%s", why.why);
	cr_assert_str_eq(print(), "tcp3 hop=1 via 10.1.0.1@tcp1; "
				  "tcp3 hop=1 via 10.1.0.2@tcp1; "
				  "ib priority=4 via 10.2.0.1@tcp2");
	cr_assert_neq(table.changes, changes);
	lnx_config_destroy(c);

	/* What only the node can know is wrong: nothing changes. */
	c = read_yaml("route: [{net: cxi, gateway: 10.1.0.1@tcp1},"
		      " {net: cxi, gateway: 10.9.0.1@ib}]", &e);
	cr_assert_not_null(c, "%s", e.why);
	cr_assert_eq(lnx_config_routes(c, &nets, &table, &host, NULL, &why), -EHOSTUNREACH);
	cr_assert(strstr(why.why, "route[1]"), "%s", why.why);
	cr_assert(strstr(print(), "tcp3 hop=1"));
	lnx_config_destroy(c);
	c = read_yaml("route: []", &e);
	cr_assert_eq(lnx_config_routes(c, &nets, &table, &host, NULL, &why), 0);
	cr_assert_eq(table.n, 0);
	lnx_config_destroy(c);
}

/* The file of a cluster: what is for other nodes is passed over; what is wrong everywhere, or
 * there twice, is refused. */
Test(routes, yaml_for_all_nodes)
{
	char text[1024] = "";
	struct lnx_out skipped = { .buf = text, .size = sizeof(text) };
	struct lnx_config_error e;
	struct lnx_config *c;

	NEEDS_YAML;
	c = read_yaml("route: [{net: tcp2, gateway: 10.1.0.1@tcp1},"
		      " {net: cxi, gateway: '10.1.0.1@tcp1'},"
		      " {net: tcp3, gateway: '10.1.99.[5-6]@tcp1'},"
		      " {net: cxi, gateway: 10.9.0.1@ib}]", &e);
	cr_assert_not_null(c, "%s", e.why);
	cr_assert_eq(lnx_config_routes(c, &nets, &table, &host, &skipped, &why), 0, "%s",
		     why.why);
	cr_assert_str_eq(print(), "cxi via 10.1.0.1@tcp1; tcp3 via 10.1.99.6@tcp1");
	cr_assert(strstr(text, "tcp2 via 10.1.0.1@tcp1: the net tcp2 is local"), "%s", text);
	cr_assert(strstr(text, "\ntcp3 via 10.1.99.5@tcp1: the gateway 10.1.99.5@tcp1 is this "
			       "node itself"), "%s", text);
	cr_assert(strstr(text, "\ncxi via 10.9.0.1@ib: the gateway 10.9.0.1@ib is on no local "
			       "net"), "%s", text);
	lnx_config_destroy(c);
	c = read_yaml("route: [{net: cxi, gateway: 10.1.0.1@tcp1},"
		      " {net: cxi, gateway: 10.1.0.1@tcp1, hop: 2}]", &e);
	if (c)
		cr_assert_eq(lnx_config_routes(c, &nets, &table, &host, &skipped, &why),
			     -EEXIST);
	lnx_config_destroy(c);
}

Test(routes, yaml_refused)
{
	static const char *const rows[][2] = {
		{ "{net: tcp3, gateway: '10.1.0.*@tcp1'}", "more than 256" },
		{ "{net: tcp3, gateway: 127.0.0.1@tcp1}", "one other node" },
		{ "{net: tcp3, gateway: '10.1.0.1@tcp[1-2]'}", "has a name" },
		{ "{net: tcp3, gateway: 10.3.0.1@tcp3}", "itself" },
		{ "{net: tcp3, gateway: '10.1.0.1,10.1.0.1@tcp1'}", "" },
		{ "{net: tcp3, gateway: '10.1.0.[1-2]@tcp1'},"
		  "{net: tcp3, gateway: 10.1.0.2@tcp1}", "already" },
		{ "{net: tcp3, gateway: 10.1.0.1@tcp1, hop: 0}", "1 to 255" },
	};
	struct lnx_config_error e;
	char text[256];

	NEEDS_YAML;
	for (size_t i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), "route: [%s]", rows[i][0]);
		cr_expect_null(read_yaml(text, &e), "%s", text);
		cr_expect(strstr(e.why, rows[i][1]), "%s: %s", text, e.why);
		cr_expect(!strncmp(e.key, "route[", 6), "%s", e.key);
	}
}

/* Table, YAML, table: the same. */
Test(routes, to_yaml)
{
	struct lnx_config *c = lnx_config_create();
	struct lnx_config_error e;
	struct lnx_routes other;
	char text[4096], again[4096];

	NEEDS_YAML;
	cr_assert_eq(parse("ib priority=9 via [fd00::1]@tcp2; "
			   "tcp3 hop=3 via 10.1.0.[1-3]:900@tcp1"), 0);
	cr_assert_eq(lnx_config_set_routes(c, &table), 0);
	cr_assert_lt(lnx_config_print(c, text, sizeof(text)), sizeof(text));
	lnx_config_destroy(c);
	c = read_yaml(text, &e);
	cr_assert_not_null(c, "%s: %s", text, e.why);
	lnx_routes_init(&other, 99);
	cr_assert_eq(lnx_config_routes(c, &nets, &other, &host, NULL, &why), 0, "%s", why.why);
	lnx_routes_print(&other, again, sizeof(again));
	cr_assert_str_eq(again, print());
	lnx_routes_fini(&other);
	lnx_config_destroy(c);
	/* The same, although they were made in another order. */
	lnx_routes_fini(&table);
	cr_assert_eq(parse("tcp3 hop=3 via 10.1.0.[2-3]:900@tcp1; "
			   "ib priority=9 via [fd00::1]@tcp2; "
			   "tcp3 hop=3 via 10.1.0.1:900@tcp1"), 0);
	c = lnx_config_create();
	cr_assert_eq(lnx_config_set_routes(c, &table), 0);
	cr_assert_lt(lnx_config_print(c, again, sizeof(again)), sizeof(again));
	cr_expect_str_eq(again, text);
	lnx_config_destroy(c);
}
