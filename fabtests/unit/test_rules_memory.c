/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rules and configurations while memory runs out: all is as before, and said so. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf/config.h"
#include "fake_memory.h"
#include "policy/rules_block.h"
#include "rules_view.h"

static struct lnx_nets nets;
static struct lnx_rules *rules;
static struct lnx_refusal why;
static struct lnx_config *config, *other;
static struct lnx_rule_peer *table;

/* All rules in their order, a line each. */
static const char *all(void)
{
	static char buf[4096];
	struct lnx_rule_info info;
	size_t n = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; !lnx_rules_info(rules, i, &info); i++) {
		n += lnx_rule_print(info.rule, buf + n, sizeof(buf) - n);
		n += (size_t)sprintf(buf + n, "\n");
	}
	return buf;
}

/*
 * Let each allocation of call fail, one after the other: it must return -ENOMEM and
 * change no rules.  Then it must work.  Returns how many there are.
 */
static unsigned each_fails(int (*call)(void))
{
	char before[4096];
	uint32_t generation = lnx_rules_generation(rules);
	unsigned n;
	int ret;

	strcpy(before, all());
	for (n = 0; n < 10000; n++) {
		memset(&why, 0, sizeof(why));
		nalloc = 0;
		fail_from = n;
		fail_to = n + 1;
		fail_armed = true;
		ret = call();
		fail_armed = false;
		if (nalloc <= n)
			break;
		cr_assert_eq(ret, -ENOMEM, "allocation %u: %d", n, ret);
		cr_assert_str_eq(all(), before, "allocation %u", n);
		cr_assert_eq(lnx_rules_generation(rules), generation);
	}
	cr_assert_eq(ret, 0, "%d %s", ret, why.why);
	cr_assert_gt(n, 0);
	return n;
}

static void setup(void)
{
	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16", &nets, &why), 0);
	rules = lnx_rules_create(&nets);
	cr_assert_eq(lnx_rules_add_text(rules, "src: tcp1; dst: tcp1; src: tcp, "
					"dst: 10.0.0.1@tcp", &why), 0);
}

static void teardown(void)
{
	lnx_rules_leave(rules, table);
	lnx_rules_destroy(rules);
	lnx_config_destroy(config);
	lnx_config_destroy(other);
}

TestSuite(rules_memory, .init = setup, .fini = teardown);

static int add_text(void)
{
	return lnx_rules_add_text(rules, "src: tcp1, priority: 3; dst: tcp*", &why);
}

static int add_one(void)
{
	struct lnx_rule_spec spec = { .side = { "10.1.0.1@tcp1" } };

	return lnx_rules_add(rules, &spec, NULL, &why);
}

static int del_one(void)
{
	struct lnx_rules_which which = { .by = LNX_RULES_EXACT,
					 .spec = { .side = { "tcp1" } } };

	return rules_del(rules, &which, NULL, &why);
}

static int replace(void)
{
	const struct lnx_rule_spec spec[] = {
		{ .side = { NULL, "tcp1" } }, { .side = { "tcp9" } },
		{ .side = { "tcp1" }, .has_priority = true, .priority = 8 },
	};

	return lnx_rules_replace(rules, spec, 3, NULL, &why);
}

Test(rules_memory, changes)
{
	cr_assert_eq(lnx_rules_create(&nets) == NULL, false);
	no_memory = true;
	cr_assert_null(lnx_rules_create(&nets));
	no_memory = false;
	cr_assert_geq(each_fails(add_text), 6);
	cr_assert_geq(each_fails(add_one), 3);
	cr_assert_geq(each_fails(del_one), 3);
	cr_assert_geq(each_fails(replace), 7);
	cr_assert_str_eq(all(), "dst: tcp1, priority: 0\nsrc: tcp9, priority: 0\n"
				"src: tcp1, priority: 8\n");
}

static int request(void)
{
	static struct {
		struct lnx_policy_block head;
		struct lnx_policy_rule rec[2];
		uint8_t reply[4096];
	} q;
	struct lnx_policy_block head;

	q.head = (struct lnx_policy_block){
		.magic = LNX_POLICY_MAGIC, .head = sizeof(q.head),
		.op = LNX_POLICY_ADD, .size = sizeof(q.rec[0]), .count = 2,
	};
	q.rec[0].index = q.rec[1].index = LNX_POLICY_UNSET;
	strcpy(q.rec[0].src, "tcp5");
	strcpy(q.rec[1].src, "tcp6");
	cr_assert_geq(lnx_rules_request(rules, &q, sizeof(q.head) + sizeof(q.rec),
					q.reply, sizeof(q.reply)), sizeof(head));
	memcpy(&head, q.reply, sizeof(head));
	if (head.status)
		cr_assert_eq(head.type, LNX_POLICY_SENTENCE);
	return head.status;
}

static int make_table(void)
{
	struct lnx_nid nid = { .net = "tcp", .number = 1, .prov = LNX_PROV_TCP };
	int ret = lnx_rules_peer(rules, &table, &nid, 1);

	/* without it no rule counts, and the peer stays stale */
	cr_assert_eq(ret == 0, table != NULL);
	cr_assert_eq(lnx_rules_stale(rules, table), ret != 0);
	return ret;
}

Test(rules_memory, requests_and_peers)
{
	struct lnx_rule_info info;

	cr_assert_geq(each_fails(request), 5);
	cr_assert_eq(each_fails(make_table), 1);
	lnx_rules_info(rules, 1, &info);
	cr_assert_eq(info.decides, 1);
}

static int read_config(void)
{
	static const char text[] =
		"nets: {tcp1: 10.1.0.0/16}\n"
		"net: [{net type: tcp1, local NI(s): [{interfaces: [a], CPT: 1}]}]\n"
		"route: [{net: cxi, gateway: 10.1.0.9@tcp1}]\n"
		"peer: [{primary nid: 10.1.0.7@tcp1}]\n"
		"global: {retry_count: 3}\nnuma: {range: 2}\n"
		"udsp: [{src: tcp1}, {src: tcp, dst: tcp1}]\n";
	struct lnx_config_error e;
	int ret;

	lnx_config_destroy(config);
	config = NULL;
	ret = lnx_config_read(text, strlen(text), NULL, &config, &e);
	cr_assert_eq(ret == 0, config != NULL);
	if (ret == -ENOMEM)
		cr_assert_not_null(strstr(e.why, "memory"), "%s", e.why);
	return ret;
}

static int apply_config(void)
{
	return lnx_config_rules(config, rules, &why);
}

static int diff_config(void)
{
	char buf[4096];
	size_t len;

	return lnx_config_diff(other, config, buf, sizeof(buf), &len);
}

static int export_config(void)
{
	int ret;

	lnx_config_destroy(other);
	other = lnx_config_create();
	ret = other ? lnx_config_set_rules(other, rules) : -ENOMEM;
	return ret ? ret : lnx_config_set_global(other, "retry_count", "5");
}

Test(rules_memory, configurations)
{
#ifdef HAVE_LIBYAML
	cr_assert_geq(each_fails(read_config), 25);
	cr_assert_geq(each_fails(apply_config), 4);
	cr_assert_geq(each_fails(export_config), 6);
	cr_assert_geq(each_fails(diff_config), 4);
#else
	(void)read_config;
	(void)apply_config;
	(void)diff_config;
	cr_assert_geq(each_fails(export_config), 6);
	cr_skip_test("the rest needs libyaml");
#endif
}
