/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of rules: what is accepted, order, ids, changes, text. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/rules.h"
#include "policy/rules_inside.h"
#include "rules_view.h"

static struct lnx_nets nets;
static struct lnx_rules *rules;
static struct lnx_refusal why;

static void setup(void)
{
	cr_assert_eq(lnx_nets_parse("o2ib=verbs;hs1=cxi", &nets, &why), 0, "%s",
		     why.why);
	rules = lnx_rules_create(&nets);
	cr_assert_not_null(rules);
}

static void teardown(void)
{
	lnx_rules_destroy(rules);
}

TestSuite(rules, .init = setup, .fini = teardown);

#define NO	-1

/* Add a rule; priority or index NO: not given. */
static int add(const char *src, const char *dst, const char *rte, long priority,
	       long index, uint32_t *id)
{
	struct lnx_rule_spec s = {
		.side = { src, dst, rte },
		.has_priority = priority != NO, .priority = (uint32_t)priority,
		.has_index = index != NO, .index = (uint32_t)index,
	};

	memset(&why, 'x', sizeof(why));
	return lnx_rules_add(rules, &s, id, &why);
}

static int del(enum lnx_rules_by by, uint32_t number)
{
	struct lnx_rules_which w = { .by = by, .number = number };

	return rules_del(rules, &w, NULL, &why);
}

/* All rules in their order, a line each. */
static const char *all(void)
{
	static char buf[LNX_RULES_MAX * LNX_RULE_TEXT_MAX];
	struct lnx_rule_info info;
	size_t n = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; !lnx_rules_info(rules, i, &info); i++) {
		cr_assert_eq(info.index, i);
		n += lnx_rule_print(info.rule, buf + n, LNX_RULE_TEXT_MAX);
		n += (size_t)sprintf(buf + n, "\n");
	}
	cr_assert_eq(i, rules_count(rules));
	return buf;
}

static uint32_t id_at(uint32_t index)
{
	struct lnx_rule_info info;

	cr_assert_eq(lnx_rules_info(rules, index, &info), 0);
	return info.rule->id;
}

/* ---- kinds and refusals ---- */

Test(rules, five_kinds)
{
	static const struct {
		const char *src, *dst, *rte;
		long priority;
		enum lnx_rule_kind kind;
		const char *text;
	} cases[] = {
		{ "tcp1", NULL, NULL, NO, LNX_RULE_NET,
		  "src: tcp1, priority: 0" },
		{ NULL, "tcp1", NULL, 5, LNX_RULE_NET,
		  "dst: tcp1, priority: 5" },
		{ "10.0.0.*@tcp", NULL, NULL, NO, LNX_RULE_RAIL,
		  "src: 10.0.0.*@tcp, priority: 0" },
		{ NULL, "10.0.0.7@tcp", NULL, 4294967294, LNX_RULE_REMOTE,
		  "dst: 10.0.0.7@tcp, priority: 4294967294" },
		{ "10.0.0.[1-2]@tcp", "10.0.0.7@tcp", NULL, NO, LNX_RULE_PAIR,
		  "src: 10.0.0.[1-2]@tcp, dst: 10.0.0.7@tcp" },
		{ "tcp1", "o2ib", NULL, NO, LNX_RULE_PAIR,
		  "src: tcp1, dst: o2ib" },
		{ NULL, "o2ib*", "10.0.0.9@tcp", NO, LNX_RULE_GATEWAY,
		  "dst: o2ib*, rte: 10.0.0.9@tcp" },
	};
	struct lnx_rule_info info;
	uint32_t id, last = 0;
	char text[LNX_RULE_TEXT_MAX];
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(add(cases[i].src, cases[i].dst, cases[i].rte,
				 cases[i].priority, NO, &id), 0, "%s: %s",
			     cases[i].text, why.why);
		cr_assert_gt(id, last);
		last = id;
		cr_assert_eq(lnx_rules_info(rules, (uint32_t)i, &info), 0);
		cr_assert_eq(info.rule->id, id);
		cr_assert_eq(info.rule->kind, cases[i].kind);
		lnx_rule_print(info.rule, text, sizeof(text));
		cr_assert_str_eq(text, cases[i].text);
	}
	/* A rule without a priority has the mark for none. */
	cr_assert_eq(info.rule->priority, LNX_RULE_NONE);
}

Test(rules, what_is_refused_changes_nothing)
{
	static const struct {
		const char *src, *dst, *rte;
		long priority;
		const char *says;
	} cases[] = {
		{ NULL, NULL, NULL, NO, "does not say what it is for" },
		{ NULL, NULL, NULL, 3, "does not say what it is for" },
		{ NULL, NULL, "10.0.0.9@tcp", NO, "rte alone" },
		{ "tcp", NULL, "10.0.0.9@tcp", NO, "src and rte cannot" },
		{ "tcp", "tcp", "10.0.0.9@tcp", NO, "src, dst and rte cannot" },
		{ "tcp", "tcp", NULL, 0, "src and dst has no priority" },
		{ NULL, "tcp", "10.0.0.9@tcp", 0, "dst and rte has no priority" },
		{ "tcp", NULL, NULL, 4294967295, "mark for none" },
		{ "shm", NULL, NULL, NO, "src: \"shm\": shared memory is no net" },
		{ NULL, "x@shm", NULL, NO, "dst: \"shm\": shared memory" },
		{ "foo", NULL, NULL, NO, "src: \"foo\" is no known net" },
		{ "tcp", "10.0.0.1-5@tcp", NULL, NO, "dst: \"1-5\"" },
		{ NULL, "tcp", "10.0.0@tcp", NO, "rte: \"10.0.0\"" },
		{ "10.0.0.[1-5/0]@tcp", NULL, NULL, NO, "stride of 0" },
	};
	uint32_t generation = lnx_rules_generation(rules);
	const char *p;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(add(cases[i].src, cases[i].dst, cases[i].rte,
				 cases[i].priority, NO, NULL), -EINVAL, "%s",
			     cases[i].says);
		cr_assert_not_null(strstr(why.why, cases[i].says), "%s",
				   why.why);
		for (p = why.why; *p; p++)
			cr_assert(isprint((unsigned char)*p));
		cr_assert_eq(rules_count(rules), 0);
		cr_assert_eq(lnx_rules_generation(rules), generation);
	}
	/* where the error is */
	cr_assert_eq(add("tcp", "10.0.0.1-5@tcp", NULL, NO, NO, NULL), -EINVAL);
	cr_assert_str_eq(why.text, "10.0.0.1-5@tcp");
	cr_assert_eq(why.at, 7);
	cr_assert_eq(add("tcp", "tcp", "tcp", NO, NO, NULL), -EINVAL);
	cr_assert_null(why.text);
}

Test(rules, priorities_as_text)
{
	static const struct { const char *text; long v; } cases[] = {
		{ "0", 0 }, { "255", 255 }, { "4294967294", 4294967294 },
		{ "4294967295", NO }, { "-1", NO }, { "", NO }, { "1x", NO },
		{ "99999999999999999999", NO },
	};
	uint32_t v;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		int ret;

		why.text = cases[i].text;
		ret = lnx_rule_priority((struct lnx_span){ cases[i].text,
				strlen(cases[i].text) }, "priority", &v, &why);
		cr_assert_eq(ret, cases[i].v == NO ? -EINVAL : 0);
		if (!ret)
			cr_assert_eq(v, (uint32_t)cases[i].v);
		else
			cr_assert_not_null(strstr(why.why, "4294967294"));
	}
}

/* ---- order ---- */

Test(rules, index_orders_and_id_stays)
{
	uint32_t a, b, c, d, e;

	cr_assert_eq(add("tcp1", NULL, NULL, 1, NO, &a), 0);
	cr_assert_eq(add("tcp2", NULL, NULL, 2, NO, &b), 0);
	cr_assert_eq(add("tcp3", NULL, NULL, 3, 0, &c), 0);
	cr_assert_eq(add("tcp4", NULL, NULL, 4, 2, &d), 0);
	/* beyond the end: behind the others */
	cr_assert_eq(add("tcp5", NULL, NULL, 5, 99, &e), 0);
	cr_assert_str_eq(all(), "src: tcp3, priority: 3\n"
				"src: tcp1, priority: 1\n"
				"src: tcp4, priority: 4\n"
				"src: tcp2, priority: 2\n"
				"src: tcp5, priority: 5\n");
	cr_assert(id_at(0) == c && id_at(1) == a && id_at(2) == d &&
		  id_at(3) == b && id_at(4) == e);
	cr_assert_eq(del(LNX_RULES_BY_INDEX, 1), 0);
	cr_assert(id_at(0) == c && id_at(1) == d && id_at(2) == b &&
		  id_at(3) == e);
}

Test(rules, ids_are_never_used_again)
{
	uint32_t a, b;

	cr_assert_eq(add("tcp1", NULL, NULL, NO, NO, &a), 0);
	cr_assert_gt(a, 0);
	cr_assert_eq(del(LNX_RULES_BY_ID, a), 0);
	cr_assert_eq(add("tcp1", NULL, NULL, NO, NO, &b), 0);
	cr_assert_gt(b, a);
	cr_assert_eq(del(LNX_RULES_ALL, 0), 0);
	cr_assert_eq(add("tcp1", NULL, NULL, NO, NO, &a), 0);
	cr_assert_gt(a, b);
}

Test(rules, same_rule_again)
{
	uint32_t a, b, c, generation;

	cr_assert_eq(add("tcp1", NULL, NULL, 3, NO, &a), 0);
	cr_assert_eq(add("10.0.0.1@tcp", "tcp", NULL, NO, NO, &b), 0);
	generation = lnx_rules_generation(rules);
	/* identical: by whatever spelling */
	cr_assert_eq(add("tcp1", NULL, NULL, 3, NO, &c), -EALREADY);
	cr_assert_eq(c, a);
	cr_assert_eq(add("tcp[1]", NULL, NULL, 3, 1, &c), -EALREADY);
	cr_assert_eq(add("10.0.0.1/32@tcp0", "tcp0", NULL, NO, 0, &c), -EALREADY);
	cr_assert_eq(c, b);
	cr_assert_not_null(strstr(why.why, "idx 1"));
	cr_assert_eq(lnx_rules_generation(rules), generation);
	/* another priority: in place, even if another index is asked for */
	cr_assert_eq(add("tcp1", NULL, NULL, 7, 1, &c), 0);
	cr_assert_eq(c, a);
	cr_assert_neq(lnx_rules_generation(rules), generation);
	/* another kind with the same pattern is another rule */
	cr_assert_eq(add(NULL, "tcp1", NULL, 3, NO, &c), 0);
	cr_assert_gt(c, b);
	cr_assert_str_eq(all(), "src: tcp1, priority: 7\n"
				"src: 10.0.0.1@tcp, dst: tcp\n"
				"dst: tcp1, priority: 3\n");
	cr_assert_eq(id_at(0), a);
}

Test(rules, deleting)
{
	struct lnx_rules_which w = { .by = LNX_RULES_EXACT };
	uint32_t id;
	unsigned n;

	cr_assert_eq(del(LNX_RULES_BY_INDEX, 0), -ENOENT);
	cr_assert_not_null(strstr(why.why, "there are none"));
	cr_assert_eq(rules_del(rules, &(struct lnx_rules_which){ 0 }, &n, &why),
		     0);
	cr_assert_eq(n, 0);
	cr_assert_eq(add("tcp1", NULL, NULL, 1, NO, NULL), 0);
	cr_assert_eq(add("tcp2", NULL, NULL, 2, NO, &id), 0);
	cr_assert_eq(add("tcp3", "tcp*", NULL, NO, NO, NULL), 0);
	cr_assert_eq(del(LNX_RULES_BY_INDEX, 3), -ENOENT);
	cr_assert_not_null(strstr(why.why, "0 to 2"), "%s", why.why);
	cr_assert_eq(del(LNX_RULES_BY_ID, id + 7), -ENOENT);
	cr_assert_eq(del(LNX_RULES_BY_ID, 0), -ENOENT);

	w.spec.side[LNX_RULE_SRC] = "tcp9";
	cr_assert_eq(rules_del(rules, &w, &n, &why), -ENOENT);
	w.spec.side[LNX_RULE_SRC] = "foo";
	cr_assert_eq(rules_del(rules, &w, &n, &why), -EINVAL);
	/* with a priority this has to be the same, too */
	w.spec.side[LNX_RULE_SRC] = "tcp1";
	w.spec.has_priority = true;
	w.spec.priority = 2;
	cr_assert_eq(rules_del(rules, &w, &n, &why), -ENOENT);
	cr_assert_not_null(strstr(why.why, "this priority"));
	cr_assert_eq(rules_count(rules), 3);
	w.spec.has_priority = false;
	cr_assert_eq(rules_del(rules, &w, &n, &why), 0);
	cr_assert_eq(n, 1);
	cr_assert_eq(del(LNX_RULES_BY_ID, id), 0);
	cr_assert_str_eq(all(), "src: tcp3, dst: tcp*\n");
	/* a side less is another rule */
	w.spec = (struct lnx_rule_spec){ .side = { "tcp3" } };
	cr_assert_eq(rules_del(rules, &w, &n, &why), -ENOENT);
	w.spec.side[LNX_RULE_DST] = "tcp*";
	cr_assert_eq(rules_del(rules, &w, &n, &why), 0);
	cr_assert_eq(rules_count(rules), 0);
}

Test(rules, as_many_as_there_can_be)
{
	char text[16];
	unsigned i, n;

	for (i = 0; i < LNX_RULES_MAX; i++) {
		sprintf(text, "tcp%u", i);
		cr_assert_eq(add(text, NULL, NULL, NO, NO, NULL), 0, "%s", why.why);
	}
	cr_assert_eq(add("tcp9999", NULL, NULL, NO, NO, NULL), -ENOSPC);
	cr_assert_not_null(strstr(why.why, "256"));
	/* updates still fit */
	cr_assert_eq(add("tcp5", NULL, NULL, 9, NO, NULL), 0);
	cr_assert_eq(rules_del(rules, &(struct lnx_rules_which){ 0 }, &n, &why),
		     0);
	cr_assert_eq(n, LNX_RULES_MAX);
	cr_assert_str_eq(all(), "");
}

Test(rules, numbers_that_are_used_up)
{
	uint32_t id;

	rules->last_id = UINT32_MAX - 1;
	rules->generation = UINT32_MAX - 1;
	cr_assert_eq(add("tcp1", NULL, NULL, NO, NO, &id), 0);
	cr_assert_eq(id, UINT32_MAX);
	cr_assert_eq(lnx_rules_generation(rules), UINT32_MAX);
	cr_assert_eq(add("tcp2", NULL, NULL, NO, NO, &id), -ENOSPC);
	cr_assert_not_null(strstr(why.why, "ids"));
	/* the generation is never 0 */
	cr_assert_eq(add("tcp1", NULL, NULL, 5, NO, &id), 0);
	cr_assert_eq(lnx_rules_generation(rules), 1);
	cr_assert_eq(rules_count(rules), 1);
}

/* ---- several changes at once ---- */

Test(rules, an_edit_counts_as_a_whole_or_not_at_all)
{
	struct lnx_rule_spec one = { .side = { "tcp1" } };
	struct lnx_rule_spec two = { .side = { "tcp2" }, .has_priority = true,
				     .priority = 5 };
	struct lnx_rules_which w = { .by = LNX_RULES_BY_INDEX, .number = 0 };
	struct lnx_rules_edit *edit;
	uint32_t a, generation;

	cr_assert_eq(add("tcp1", NULL, NULL, 4, NO, &a), 0);
	cr_assert_eq(add("tcp2", NULL, NULL, 4, NO, NULL), 0);
	generation = lnx_rules_generation(rules);

	edit = lnx_rules_edit(rules);
	cr_assert_eq(lnx_rules_edit_add(edit, &one, NULL, &why), 0);
	cr_assert_eq(lnx_rules_edit_del(edit, &w, NULL, &why), 0);
	cr_assert_eq(lnx_rules_edit_add(edit, &two, NULL, &why), 0);
	two.priority = 6;
	cr_assert_eq(lnx_rules_edit_add(edit, &two, NULL, &why), 0);
	cr_assert_eq(lnx_rules_edit_add(edit, &one, NULL, &why), 0);
	/* until then nothing is changed */
	cr_assert_str_eq(all(), "src: tcp1, priority: 4\nsrc: tcp2, priority: 4\n");
	lnx_rules_abort(edit);
	cr_assert_str_eq(all(), "src: tcp1, priority: 4\nsrc: tcp2, priority: 4\n");
	cr_assert_eq(lnx_rules_generation(rules), generation);

	edit = lnx_rules_edit(rules);
	cr_assert_eq(lnx_rules_edit_add(edit, &two, NULL, &why), 0);
	cr_assert_eq(lnx_rules_edit_del(edit, &w, NULL, &why), 0);
	cr_assert_eq(lnx_rules_edit_add(edit, &one, NULL, &why), 0);
	lnx_rules_commit(edit);
	cr_assert_str_eq(all(), "src: tcp2, priority: 6\nsrc: tcp1, priority: 0\n");
	cr_assert_gt(id_at(1), a);
	cr_assert_neq(lnx_rules_generation(rules), generation);
}

Test(rules, text_of_several)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "", "" },
		{ " \n", "" },
		{ "src: tcp1", "src: tcp1, priority: 0\n" },
		/* Nothing between two rules, or behind the last one, is no mistake. */
		{ ";", "" },
		{ "src: tcp1;", "src: tcp1, priority: 0\n" },
		{ " ; src: tcp1 ;; dst: tcp ; \n;", "src: tcp1, priority: 0\n"
		  "dst: tcp, priority: 0\n" },
		{ "src:tcp1,priority:3", "src: tcp1, priority: 3\n" },
		{ " SRC : tcp1 , Priority : 3 ; dst: 10.0.0.[1,4-6,9]@tcp1 ",
		  "src: tcp1, priority: 3\n"
		  "dst: 10.0.0.[1,4-6,9]@tcp1, priority: 0\n" },
		{ "src: 10.0.0.1@tcp,10.0.0.2@tcp, dst: verbs;ofi_rxm; dst: tcp",
		  "src: 10.0.0.1@tcp,10.0.0.2@tcp, dst: verbs\n"
		  "dst: tcp, priority: 0\n" },
		{ "src: [fd00::1]:5@tcp, dst: tcp:10.0.0.0/8",
		  "src: [fd00::1]:5@tcp, dst: tcp:10.0.0.0/8\n" },
		{ "dst: hs1, rte: 10.0.0.9@tcp",
		  "dst: hs1, rte: 10.0.0.9@tcp\n" },
		{ "src: tcp1; src: tcp2, idx: 0",
		  "src: tcp2, priority: 0\nsrc: tcp1, priority: 0\n" },
		{ "src: tcp1; src: tcp1, priority: 2", "src: tcp1, priority: 2\n" },
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(lnx_rules_add_text(rules, cases[i].text, &why), 0,
			     "%s: %s", cases[i].text, why.why);
		cr_assert_str_eq(all(), cases[i].want);
		del(LNX_RULES_ALL, 0);
	}
}

Test(rules, mistakes_in_text_are_located)
{
	static const struct { const char *text; int ret; size_t at;
			      const char *says; } cases[] = {
		{ "tcp1", -EINVAL, 0, "a rule has src:" },
		{ "src tcp1", -EINVAL, 0, "a rule has src:" },
		{ "src: tcp1;; tcp1;", -EINVAL, 12, "a rule has src:" },
		{ "src: tcp1,", -EINVAL, 5, "name of a net is missing" },
		{ "src: tcp1; color: 3", -EINVAL, 11, "color" },
		{ "src: tcp1, src: tcp2", -EINVAL, 15, "once is enough" },
		{ "src: tcp1, priority: x", -EINVAL, 21, "whole number" },
		{ "src: tcp1, priority: -1", -EINVAL, 21, "whole number" },
		{ "src: tcp1, idx: x", -EINVAL, 16, "idx" },
		{ "src: foo", -EINVAL, 5, "no known net" },
		{ "dst: tcp1; dst: 10.0.0@tcp", -EINVAL, 16, "four numbers" },
		{ "dst: tcp1; src: tcp, dst: 10.0.0.[5-1]@tcp", -EINVAL, 34,
		  "counts down" },
		{ "dst: tcp1; rte: tcp", -EINVAL, 11, "rte alone" },
		{ "dst: tcp1;   src: tcp, dst: tcp, priority: 1", -EINVAL, 13,
		  "no priority" },
		{ "dst: tcp1; dst: tcp1", -EALREADY, 11, "there already" },
	};
	char text[1200];
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(lnx_rules_add_text(rules, cases[i].text, &why),
			     cases[i].ret, "%s", cases[i].text);
		cr_assert_str_eq(why.text, cases[i].text);
		cr_assert_not_null(strstr(why.why, cases[i].says), "%s: %s",
				   cases[i].text, why.why);
		if (i == 3)	/* behind the comma */
			cr_assert_geq(why.at, cases[i].at);
		else
			cr_assert_eq(why.at, cases[i].at, "%s: at %zu: %s",
				     cases[i].text, why.at, why.why);
		cr_assert_str_eq(all(), "");
	}
	memset(text, 'x', sizeof(text));
	memcpy(text, "src: ", 5);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(lnx_rules_add_text(rules, text, &why), -EINVAL);
	cr_assert_not_null(strstr(why.why, "at most"));
}

/* As those of FI_LNX_UDSP may be in the configuration file, too. */
Test(rules, a_text_with_rules_that_are_there)
{
	cr_assert_eq(lnx_rules_add_text(rules, "src: tcp1; dst: tcp1", &why), 0);
	cr_assert_eq(lnx_rules_add_text(rules, "dst: tcp1; src: tcp2; src: tcp1, priority: 3",
					&why), 0, "%s", why.why);
	cr_assert_str_eq(all(), "src: tcp1, priority: 3\ndst: tcp1, priority: 0\n"
			 "src: tcp2, priority: 0\n");
	/* Twice in one text is a mistake still. */
	cr_assert_eq(lnx_rules_add_text(rules, "src: tcp3; src: tcp3", &why), -EALREADY);
}

/* ---- a whole list ---- */

static const char *diff(const struct lnx_rule_spec *spec, unsigned n)
{
	static char buf[4096];
	size_t len;

	cr_assert_eq(lnx_rules_diff(rules, spec, n, buf, sizeof(buf), &len, NULL,
				    &why), 0, "%s", why.why);
	cr_assert_eq(len, strlen(buf));
	return buf;
}

Test(rules, replace_keeps_what_is_the_same)
{
	const struct lnx_rule_spec want[] = {
		{ .side = { "tcp3" } },
		{ .side = { "tcp1" }, .has_priority = true, .priority = 9 },
		{ .side = { "tcp4" } },
		{ .side = { "tcp2" } },
	};
	uint32_t a, b, c, d, generation;

	add("tcp1", NULL, NULL, 1, NO, &a);
	add("tcp2", NULL, NULL, 0, NO, &b);
	add("tcp3", NULL, NULL, 0, NO, &c);
	add("tcp5", NULL, NULL, 0, NO, &d);
	cr_assert_str_eq(diff(want, 4),
			 "- src: tcp5, priority: 0\n"
			 "> src: tcp3: idx 2 -> 0\n"
			 "~ src: tcp1: priority 1 -> 9\n"
			 "> src: tcp1: idx 0 -> 1\n"
			 "+ src: tcp4, priority: 0\n"
			 "> src: tcp2: idx 1 -> 3\n");
	cr_assert_eq(lnx_rules_replace(rules, want, 4, NULL, &why), 0, "%s",
		     why.why);
	cr_assert_str_eq(all(), "src: tcp3, priority: 0\nsrc: tcp1, priority: 9\n"
				"src: tcp4, priority: 0\nsrc: tcp2, priority: 0\n");
	cr_assert(id_at(0) == c && id_at(1) == a && id_at(2) > d && id_at(3) == b);
	/* again: nothing changes */
	generation = lnx_rules_generation(rules);
	cr_assert_str_eq(diff(want, 4), "");
	cr_assert_eq(lnx_rules_replace(rules, want, 4, NULL, &why), 0);
	cr_assert_eq(lnx_rules_generation(rules), generation);
	/* Without the first one, the others have another index and the same order. */
	cr_assert_str_eq(diff(want + 1, 3), "- src: tcp3, priority: 0\n");
	cr_assert_eq(lnx_rules_replace(rules, NULL, 0, NULL, &why), 0);
	cr_assert_str_eq(all(), "");
}

Test(rules, replace_refuses_as_a_whole)
{
	struct lnx_rule_spec want[] = {
		{ .side = { "tcp3" } }, { .side = { "tcp4" } },
		{ .side = { "tcp[3]" }, .has_priority = true, .priority = 2 },
	};
	struct lnx_rule_spec many[LNX_RULES_MAX + 1] = { { .side = { NULL } } };
	char text[LNX_RULES_MAX + 1][8], buf[64];
	unsigned which, i;
	size_t len;

	add("tcp1", NULL, NULL, 1, NO, NULL);
	cr_assert_eq(lnx_rules_replace(rules, want, 3, &which, &why), -EALREADY);
	cr_assert_eq(which, 2);
	cr_assert_not_null(strstr(why.why, "rule 0"));
	want[2].side[LNX_RULE_SRC] = "foo";
	cr_assert_eq(lnx_rules_replace(rules, want, 3, &which, &why), -EINVAL);
	cr_assert_eq(which, 2);
	cr_assert_eq(lnx_rules_diff(rules, want, 3, buf, sizeof(buf), &len, &which,
				    &why), -EINVAL);
	for (i = 0; i <= LNX_RULES_MAX; i++) {
		sprintf(text[i], "tcp%u", i);
		many[i].side[LNX_RULE_SRC] = text[i];
	}
	cr_assert_eq(lnx_rules_replace(rules, many, i, &which, &why), -ENOSPC);
	cr_assert_eq(which, LNX_RULES_MAX);
	cr_assert_str_eq(all(), "src: tcp1, priority: 1\n");
	cr_assert_eq(lnx_rules_replace(rules, many, i - 1, &which, &why), 0);
	cr_assert_eq(rules_count(rules), LNX_RULES_MAX);
}

/* ---- show ---- */

static const char *shown(const char *src, const char *dst, const char *rte,
			 long index)
{
	static char buf[256];
	struct lnx_rule_spec s = { .side = { src, dst, rte },
				   .has_index = index != NO,
				   .index = (uint32_t)index };
	struct lnx_rules_filter f;
	size_t n = 0;
	int i;

	buf[0] = '\0';
	cr_assert_eq(lnx_rules_filter(&nets, &s, &f, &why), 0, "%s", why.why);
	for (i = lnx_rules_next(rules, &f, 0); i >= 0;
	     i = lnx_rules_next(rules, &f, (uint32_t)i + 1))
		n += (size_t)sprintf(buf + n, "%d ", i);
	cr_assert_eq(i, -ENOENT);
	return buf;
}

Test(rules, what_is_shown)
{
	struct lnx_rule_spec bad = { .side = { NULL, "foo" } };
	struct lnx_rules_filter f;

	add("10.0.0.*@tcp", NULL, NULL, NO, NO, NULL);
	add(NULL, "10.0.0.*@tcp", NULL, NO, NO, NULL);
	add("10.0.0.7@tcp", "10.1.0.0/16@tcp", NULL, NO, NO, NULL);
	add("tcp*", NULL, NULL, NO, NO, NULL);
	add(NULL, "tcp", "10.9.0.1@tcp", NO, NO, NULL);
	cr_assert_str_eq(shown(NULL, NULL, NULL, NO), "0 1 2 3 4 ");
	cr_assert_str_eq(shown(NULL, NULL, NULL, 2), "2 ");
	cr_assert_str_eq(shown(NULL, NULL, NULL, 5), "");
	/* equal patterns in whatever spelling */
	cr_assert_str_eq(shown("10.0.0.0/24@tcp0", NULL, NULL, NO), "0 ");
	cr_assert_str_eq(shown(NULL, "10.0.0.0/24@tcp0", NULL, NO), "1 ");
	cr_assert_str_eq(shown("tcp*", NULL, NULL, NO), "3 ");
	/* one rail: all patterns that have it */
	cr_assert_str_eq(shown("10.0.0.7@tcp", NULL, NULL, NO), "0 2 3 ");
	cr_assert_str_eq(shown(NULL, "10.1.2.3@tcp", NULL, NO), "2 4 ");
	cr_assert_str_eq(shown("10.0.0.7@tcp", "10.1.2.3@tcp", NULL, NO), "2 ");
	cr_assert_str_eq(shown(NULL, NULL, "10.9.0.1@tcp", NO), "4 ");
	cr_assert_str_eq(shown("10.0.0.7@tcp", NULL, NULL, 3), "3 ");
	cr_assert_eq(lnx_rules_filter(&nets, &bad, &f, &why), -EINVAL);
}

/* ---- against a model: an array of texts ---- */

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

struct model_rule {
	char match[64];
	long priority;
	uint32_t id;
};

static struct model_rule model[LNX_RULES_MAX];
static unsigned nmodel;
static uint32_t model_id;

static const char *model_all(void)
{
	static char buf[LNX_RULES_MAX * 128];
	size_t n = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; i < nmodel; i++) {
		n += (size_t)sprintf(buf + n, "%s", model[i].match);
		if (model[i].priority != NO)
			n += (size_t)sprintf(buf + n, ", priority: %ld",
					     model[i].priority);
		n += (size_t)sprintf(buf + n, "\n");
	}
	return buf;
}

static void model_add(const char *match, long priority, long index, int *want,
		      uint32_t *id)
{
	unsigned i;

	for (i = 0; i < nmodel && strcmp(model[i].match, match); i++)
		;
	*want = 0;
	if (i < nmodel) {
		*id = model[i].id;
		*want = model[i].priority == priority ? -EALREADY : 0;
		model[i].priority = priority;
		return;
	}
	i = index == NO || index > (long)nmodel ? nmodel : (unsigned)index;
	memmove(&model[i + 1], &model[i], (nmodel - i) * sizeof(model[0]));
	nmodel++;
	strcpy(model[i].match, match);
	model[i].priority = priority;
	model[i].id = *id = ++model_id;
}

static void model_del(unsigned i)
{
	nmodel--;
	memmove(&model[i], &model[i + 1], (nmodel - i) * sizeof(model[0]));
}

static void random_add(unsigned long s)
{
	char src[24], dst[24], match[64];
	bool has_src = roll(3), has_dst = !has_src || !roll(2);
	bool pair = has_src && has_dst;
	long priority = pair ? NO : (long)roll(3), index = roll(2) ? NO :
			(long)roll(40);
	uint32_t id = 0, want_id = 0;
	int ret, want;

	sprintf(src, roll(2) ? "tcp%u" : "10.0.0.%u@tcp", 1 + roll(5));
	sprintf(dst, roll(2) ? "tcp%u" : "10.0.0.%u@tcp", 1 + roll(5));
	sprintf(match, "%s%s%s%s%s", has_src ? "src: " : "", has_src ? src : "",
		pair ? ", " : "", has_dst ? "dst: " : "", has_dst ? dst : "");
	model_add(match, priority, index, &want, &want_id);
	ret = add(has_src ? src : NULL, has_dst ? dst : NULL, NULL, priority,
		  index, &id);
	cr_assert_eq(ret, want, "seed %lu: %s", s, match);
	cr_assert_eq(id, want_id, "seed %lu: %s", s, match);
}

static void random_del(void)
{
	unsigned i = roll(nmodel + 2);
	bool there = i < nmodel;

	if (!roll(200)) {
		cr_assert_eq(del(LNX_RULES_ALL, 0), 0);
		nmodel = 0;
		return;
	}
	if (roll(2))
		cr_assert_eq(del(LNX_RULES_BY_INDEX, i), there ? 0 : -ENOENT);
	else
		cr_assert_eq(del(LNX_RULES_BY_ID, there ? model[i].id :
						  model_id + 1 + i),
			     there ? 0 : -ENOENT);
	if (there)
		model_del(i);
}

Test(rules, random_changes_against_a_model)
{
	unsigned long s = seed();
	char text[sizeof(model)];
	struct lnx_rules *copy;
	unsigned round, i;
	char *p;

	for (round = 0; round < 4000; round++) {
		if (nmodel > 30 || !roll(3))
			random_del();
		else
			random_add(s);
		cr_assert_str_eq(all(), model_all(), "seed %lu", s);
		for (i = 0; i < nmodel; i++)
			cr_assert_eq(id_at(i), model[i].id);
		if (round % 50)
			continue;
		/* What is shown, read again, gives the same rules. */
		strcpy(text, all());
		for (p = text; (p = strchr(p, '\n')); p++)
			*p = p[1] ? ';' : '\0';
		copy = rules;
		rules = lnx_rules_create(&nets);
		cr_assert_eq(lnx_rules_add_text(rules, text, &why), 0, "%s: %s",
			     text, why.why);
		cr_assert_str_eq(all(), model_all());
		lnx_rules_destroy(rules);
		rules = copy;
	}
}
