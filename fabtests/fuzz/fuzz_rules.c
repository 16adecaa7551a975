/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Either a request in blocks (lnx_policy.h), or text of rules.  Any request gets a
 * reply in the right form, and changes all or nothing.  Any text is refused with an
 * offset inside it and a reason, or makes rules whose text makes the same ones.
 *
 * Sources: policy/rule.c
 * Sources: policy/rule_text.c
 * Sources: policy/rules.c
 * Sources: policy/rules_apply.c
 * Sources: policy/rules_block.c
 * Sources: policy/rules_replace.c
 * Sources: policy/rules_show.c
 * Sources: conf/nets.c
 * Sources: conf/nid.c
 * Sources: conf/cidr.c
 * Sources: conf/expr.c
 * Sources: wire/addr.c
 */
#define LNX_FUZZ_NAME "rules"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "policy/rules_block.h"
#include "../unit/rules_view.h"

#define TEXT_BYTES	(LNX_RULES_MAX * LNX_RULE_TEXT_MAX)

static struct lnx_nets nets;

static struct lnx_rules *make(void)
{
	struct lnx_refusal why;
	struct lnx_rules *rules;

	FUZZ_CHECK(!lnx_nets_parse("o2ib=verbs;hs1=cxi/left", &nets, &why));
	rules = lnx_rules_create(&nets);
	if (!rules)
		abort();
	return rules;
}

/* All rules as text that can be read again. */
static size_t print(const struct lnx_rules *rules, char *buf)
{
	struct lnx_rule_info info;
	size_t n = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; !lnx_rules_info(rules, i, &info); i++) {
		if (i)
			buf[n++] = ';';
		FUZZ_CHECK(info.rule->id && info.index == i);
		n += lnx_rule_print(info.rule, buf + n, LNX_RULE_TEXT_MAX);
		FUZZ_CHECK(strlen(buf) == n);
	}
	FUZZ_CHECK(i == rules_count(rules));
	return n;
}

/* What is shown, read by another set, is the same. */
static void check_identity(const struct lnx_rules *rules)
{
	static char once[TEXT_BYTES], twice[TEXT_BYTES];
	struct lnx_rules *again = make();
	struct lnx_refusal why;

	print(rules, once);
	FUZZ_CHECK(!lnx_rules_add_text(again, once, &why));
	print(again, twice);
	FUZZ_CHECK(!strcmp(once, twice));
	lnx_rules_destroy(again);
}

static void check_text(const char *text)
{
	struct lnx_rules *rules = make();
	struct lnx_refusal why;
	const char *p;
	int ret = lnx_rules_add_text(rules, text, &why);

	if (ret) {
		FUZZ_CHECK(ret == -EINVAL || ret == -EALREADY || ret == -ENOSPC);
		FUZZ_CHECK(why.text == text && why.at <= strlen(text));
		FUZZ_CHECK(strlen(why.why) > 10);
		for (p = why.why; *p; p++)
			FUZZ_CHECK(*p >= ' ' && *p <= '~');
		FUZZ_CHECK(!rules_count(rules));
	}
	check_identity(rules);
	lnx_rules_destroy(rules);
}

static void check_request(const uint8_t *data, size_t size)
{
	static char before[TEXT_BYTES], after[TEXT_BYTES];
	struct lnx_rules *rules = make();
	struct lnx_policy_block head;
	struct lnx_refusal why;
	static uint8_t reply[65536];
	uint32_t generation;
	size_t n;

	FUZZ_CHECK(!lnx_rules_add_text(rules, "src: tcp1; dst: 10.0.0.*@tcp;"
				       "src: tcp, dst: o2ib, idx: 0", &why));
	print(rules, before);
	generation = lnx_rules_generation(rules);
	n = lnx_rules_request(rules, data, size, reply, 4096);
	FUZZ_CHECK(n >= sizeof(head) && n <= 4096);
	memcpy(&head, reply, sizeof(head));
	FUZZ_CHECK(head.magic == LNX_POLICY_MAGIC && head.head == sizeof(head));
	FUZZ_CHECK((uint64_t)head.count * head.size == n - sizeof(head));
	FUZZ_CHECK(head.status <= 0);
	print(rules, after);
	if (head.status)
		FUZZ_CHECK(!strcmp(before, after) &&
			   generation == lnx_rules_generation(rules));
	if (head.status && head.status != -ENOSPC)
		FUZZ_CHECK(head.type == LNX_POLICY_SENTENCE && !reply[n - 1]);
	check_identity(rules);
	lnx_rules_destroy(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (lnx_rules_is_request(data, size)) {
		check_request(data, size);
		return 0;
	}
	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_text(text);
	free(text);
	return 0;
}
