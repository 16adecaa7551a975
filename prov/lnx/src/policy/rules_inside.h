/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The inside of a set of rules: for policy/rules*.c only. */
#ifndef LNX_RULES_INSIDE_H
#define LNX_RULES_INSIDE_H

#include "policy/rules.h"

/* Rules in their order.  A list of an edit shares them with that of the set. */
struct rule_list {
	unsigned n;
	struct lnx_rule *rule[LNX_RULES_MAX];
};

/* What a rule applies to, in the present generation; by index. */
struct rule_use {
	uint32_t local;			/* our rails that match its src, bits */
	uint64_t remote, matched, decides;	/* lnx_rule_info */
	uint64_t joined;		/* of those it decides for, those with a preferred
					 * rail of their net */
};

struct lnx_rules {
	const struct lnx_nets *nets;
	uint32_t generation;
	uint32_t last_id;
	unsigned n_dst;			/* rules that have a dst */
	bool routing;
	uint64_t ops;
	struct rule_list list;
	struct rule_use use[LNX_RULES_MAX];
	unsigned n_rail;
	struct lnx_nid rail[LNX_RULE_RAILS];
	struct lnx_rule_local local[LNX_RULE_RAILS];
};

struct lnx_rules_edit {
	struct lnx_rules *rules;
	bool changed;
	struct rule_list list;
};

/* The index of a rule of the same kind and patterns, or -1. */
int lnx_rules_find_same(const struct rule_list *list, const struct lnx_rule *rule);

/* The index in an edit of the rule that is meant; or an error of lnx_rules_edit_del. */
int lnx_rules_edit_find(const struct lnx_rules_edit *edit,
			const struct lnx_rules_which *which, struct lnx_refusal *r);

/* The rules or our rails have changed: begin the next generation (rules_apply.c). */
void lnx_rules_changed(struct lnx_rules *rules);

#endif
