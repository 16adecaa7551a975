/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl udsp: rules about the nets and rails that an endpoint prefers (lnx_udsp(5)). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"
#include "policy/rules.h"

/* ---- options ---- */

static int take_pattern(const struct lnxctl *c, const char *name,
			char to[LNX_POLICY_TEXT])
{
	const char *text = lnxctl_value(c, name);

	if (!text)
		return LNXCTL_OK;
	if (!*text)
		return lnxctl_usage(c, "--%s \"\": must be a pattern for nets, such as "
				    "tcp1, or for NIDs, such as 10.0.0.*@tcp1", name);
	if (strlen(text) >= LNX_POLICY_TEXT)
		return lnxctl_usage(c, "--%s \"%.40s...\": a pattern can have %d letters",
				    name, text, LNX_POLICY_TEXT - 1);
	memcpy(to, text, strlen(text) + 1);
	return LNXCTL_OK;
}

/* A number from min that is not LNX_POLICY_UNSET. */
static int take_number(const struct lnxctl *c, const char *name, const char *what,
		       uint32_t min, uint32_t *out)
{
	const char *text = lnxctl_value(c, name);
	uint64_t v;

	if (!text)
		return LNXCTL_OK;
	if (!lnxctl_number(text, LNX_POLICY_UNSET - 1, &v) || v < min)
		return lnxctl_usage(c, "--%s \"%s\": must be %s, a whole number from %u to "
				    "%u", name, text, what, min, LNX_POLICY_UNSET - 1);
	*out = (uint32_t)v;
	return LNXCTL_OK;
}

/* The rule that the options describe, as lnx_policy_add and others take it. */
static int take_rule(const struct lnxctl *c, struct lnx_policy_rule *rule)
{
	int ret;

	*rule = (struct lnx_policy_rule){ .index = LNX_POLICY_UNSET,
					  .priority = LNX_POLICY_UNSET };
	ret = take_pattern(c, "src", rule->src);
	if (!ret)
		ret = take_pattern(c, "dst", rule->dst);
	if (!ret)
		ret = take_pattern(c, "rte", rule->rte);
	if (!ret)
		ret = take_number(c, "priority", "a priority (0 is the best)", 0,
				  &rule->priority);
	if (!ret)
		ret = take_number(c, "idx", "the index of a rule", 0, &rule->index);
	if (!ret)
		ret = take_number(c, "id", "the id of a rule", 1, &rule->id);
	return ret;
}

static bool has_pattern(const struct lnxctl *c)
{
	return lnxctl_value(c, "src") || lnxctl_value(c, "dst") || lnxctl_value(c, "rte");
}

/* In how many of the ways that exclude each other is a rule named? */
static unsigned ways(const struct lnxctl *c)
{
	return (lnxctl_value(c, "idx") != NULL) + (lnxctl_value(c, "id") != NULL) +
	       (lnxctl_value(c, "all") != NULL) + has_pattern(c);
}

/* ---- add ---- */

static void warn_native(const struct lnx_proc *p, const struct lnx_snap_ep *e)
{
	if (e->ep.flags & LNX_STATE_EP_NATIVE)
		fprintf(stderr, "lnxctl: process %d: with FI_LNX_USE_SRQ=0 or "
			"FI_LNX_PROTOCOL=direct rules have no effect\n", (int)p->file.pid);
}

static void add(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	struct lnx_policy_rule rule;
	struct lnx_policy_id id;
	struct lnxctl_rules r;
	struct lnx_doc *m;
	int ret;

	if (take_rule(c, &rule) || !lnxctl_rules_open(&r, c, p, e))
		return;
	ret = lnx_policy_add(r.policy, &rule, 1, &id);
	if (ret) {
		lnxctl_rules_fail(&r, ret);
	} else {
		m = lnx_doc_map(lnx_doc_list(map, "udsp"), NULL);
		lnx_doc_uint(m, "idx", id.index);
		lnx_doc_uint(m, "id", id.id);
		warn_native(p, e);
	}
	lnxctl_rules_close(&r);
}

static int run_add(struct lnxctl *c)
{
	struct lnx_policy_rule rule;
	int ret = take_rule(c, &rule);

	if (!ret && !has_pattern(c))
		ret = lnxctl_usage(c, "\"udsp add\" needs --src, --dst or both, or --dst "
				   "and --rte, which say what the rule is about");
	return ret ? ret : lnxctl_each(c, false, add);
}

const struct lnxctl_verb lnxctl_udsp_add = {
	.name = "udsp add",
	.args = "[--src S] [--dst D] [--rte R] [--priority N] [--idx N]",
	.help = "add a rule about preferred nets, rails or pairs, or change its priority",
	.option = {
		{ "src", "S", "nets or NIDs of the process: tcp1, 10.0.0.*@tcp1" },
		{ "dst", "D", "nets or NIDs of its peers" },
		{ "rte", "R", "NIDs of gateways that are preferred to reach --dst" },
		{ "priority", "N", "0, the best and the default, to 4294967294; not with "
		  "both --src and --dst, nor with --rte" },
		{ "idx", "N", "before the rule with that index; else behind all" },
	},
	.asks = true, .run = run_add,
};

/* ---- del ---- */

static void del(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	struct lnx_policy_rule rule;
	struct lnxctl_rules r;
	int ret;

	(void)map;
	if (take_rule(c, &rule) || !lnxctl_rules_open(&r, c, p, e))
		return;
	ret = lnx_policy_del(r.policy, &rule, lnxctl_value(c, "all") ? 0 : 1, NULL);
	if (ret)
		lnxctl_rules_fail(&r, ret);
	lnxctl_rules_close(&r);
}

static int run_del(struct lnxctl *c)
{
	struct lnx_policy_rule rule;
	int ret = take_rule(c, &rule);

	if (ret)
		return ret;
	if (!ways(c))
		return lnxctl_usage(c, "\"udsp del\" needs --idx, --id, the patterns of a "
				    "rule, or --all, which is all rules");
	if (ways(c) > 1)
		return lnxctl_usage(c, "\"udsp del\" takes only one of --idx, --id, patterns "
				    "and --all%s", lnxctl_value(c, "all") ? "; for all "
				    "processes, --all stands before \"udsp\"" : "");
	if (lnxctl_value(c, "priority") && !has_pattern(c))
		return lnxctl_usage(c, "--priority goes with the patterns of a rule only");
	return lnxctl_each(c, false, del);
}

const struct lnxctl_verb lnxctl_udsp_del = {
	.name = "udsp del",
	.args = "--idx N|--id N|--all|{[--src S] [--dst D] [--rte R] [--priority N]}",
	.help = "delete a rule, or all rules",
	.option = {
		{ "idx", "N", "the rule with that index" },
		{ "id", "N", "the rule with that id" },
		{ "all", NULL, "all rules; before \"udsp\" it means all processes" },
		{ "src", "S", "the rule with just these patterns" },
		{ "dst", "D", "the same" },
		{ "rte", "R", "the same" },
		{ "priority", "N", "only if it has that priority" },
	},
	.asks = true, .run = run_del,
};

/* ---- show ---- */

static enum lnx_rule_kind kind_of(const struct lnx_policy_rule *rule)
{
	switch (rule->type) {
	case LNX_POLICY_NET:
		return LNX_RULE_NET;
	case LNX_POLICY_PEER:
		return LNX_RULE_PAIR;
	case LNX_POLICY_GATEWAY:
		return LNX_RULE_GATEWAY;
	default:
		return *rule->dst ? LNX_RULE_REMOTE : LNX_RULE_RAIL;
	}
}

static void put_side(struct lnx_doc *m, const char *key, const char *text)
{
	char shown[LNX_POLICY_TEXT];

	snprintf(shown, sizeof(shown), "%s", text);
	lnx_client_printable(shown, strlen(shown));
	if (*shown)
		lnx_doc_text(m, key, shown);
}

static void put_applies(struct lnx_doc *m, const struct lnx_policy_rule *rule)
{
	const struct lnx_rule own = {
		.kind = kind_of(rule),
		.n = { *rule->src != 0, *rule->dst != 0, *rule->rte != 0 },
	};
	const struct lnx_rule_info info = {
		.rule = &own, .index = rule->index,
		.state = (enum lnx_rule_state)rule->state, .rails = rule->rails,
		.remote = rule->remote, .decides = rule->decides,
		.matched = LNX_MAX(rule->matched, rule->decides),
	};
	char text[256];

	lnx_rule_applies(&info, text, sizeof(text));
	lnx_doc_text(m, "applies to", text);
}

static void put_rule(const struct lnxctl *c, struct lnx_doc *list,
		     const struct lnx_policy_rule *rule)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_uint(m, "idx", rule->index);
	lnx_doc_uint(m, "id", rule->id);
	lnx_doc_text(m, "kind", lnx_rule_kind_name(kind_of(rule)));
	put_side(m, "src", rule->src);
	put_side(m, "dst", rule->dst);
	put_side(m, "rte", rule->rte);
	if (rule->priority != LNX_POLICY_UNSET)
		lnx_doc_uint(lnx_doc_map(m, "action"), "priority", rule->priority);
	put_applies(m, rule);
	if (!c->verbose)
		return;
	lnx_doc_uint(m, "rails", rule->rails);
	lnx_doc_uint(m, "rails of peers", rule->remote);
	lnx_doc_uint(m, "matched", rule->matched);
	lnx_doc_uint(m, "decides", rule->decides);
}

/* The process knows the names of its nets, which patterns have. */
static int asked(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 const struct lnx_policy_rule *filter, struct lnx_policy_rule **rules, size_t *n)
{
	struct lnxctl_rules r;
	int ret;

	if (!lnxctl_rules_open(&r, c, p, e))
		return -EROFS;
	ret = lnx_policy_show(r.policy, filter, rules, n);
	if (ret)
		lnxctl_rules_fail(&r, ret);
	lnxctl_rules_close(&r);
	return ret;
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_policy_rule filter, *rules = NULL;
	struct lnx_doc *list;
	bool silent;
	size_t n = 0, i;
	int ret;

	if (take_rule(c, &filter))
		return;
	silent = e->rules && lnxctl_put_silent(c, p, e, map);
	ret = !e->rules || (has_pattern(c) && !silent) ?
	      asked(c, p, e, ways(c) ? &filter : NULL, &rules, &n) :
	      lnxctl_rules_published(c, p, e, ways(c) ? &filter : NULL, &rules, &n);
	if (!ret) {
		list = lnx_doc_list(map, "udsp");
		for (i = 0; i < n; i++)
			put_rule(c, list, &rules[i]);
	}
	free(rules);
}

static int run_show(struct lnxctl *c)
{
	struct lnx_policy_rule rule;
	int ret = take_rule(c, &rule);

	if (ret)
		return ret;
	/* As long as for an answer. */
	if (!c->wait_ms)
		c->wait_ms = LNXCTL_REQUEST_WAIT_MS;
	return lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_udsp_show = {
	.name = "udsp show",
	.args = "[--idx N] [--id N] [--src S] [--dst D] [--rte R] [-v]",
	.help = "the rules, and what they apply to",
	.option = {
		{ "idx", "N", "only the rule with that index" },
		{ "id", "N", "only the rule with that id" },
		{ "src", "S", "only rules with an equal pattern, or whose pattern has that one NID" },
		{ "dst", "D", "the same" },
		{ "rte", "R", "the same" },
	},
	.run = run_show,
};
