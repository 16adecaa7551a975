/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Makes the rules equal to a list, or tells how they differ from it.  See rules.h. */
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "policy/rules_inside.h"

static bool listed(const struct rule_list *list, const struct lnx_rule *rule)
{
	unsigned i;

	for (i = 0; i < list->n; i++)
		if (list->rule[i] == rule)
			return true;
	return false;
}

/* Free a list but for the rules that the set has. */
static void free_list(const struct lnx_rules *rules, struct rule_list *list)
{
	unsigned i;

	for (i = 0; list && i < list->n; i++)
		if (!listed(&rules->list, list->rule[i]))
			free(list->rule[i]);
	free(list);
}

/* One rule for the new list: that of the set if nothing about it changes. */
static int take(const struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		struct rule_list *list, struct lnx_refusal *r)
{
	struct lnx_rule *rule;
	int ret = lnx_rule_make(rules->nets, spec, &rule, r), same;

	if (ret == -ENOMEM)
		lnx_refuse(r, NULL, "memory is short; nothing was changed");
	if (ret)
		return ret;
	same = lnx_rules_find_same(list, rule);
	if (same >= 0) {
		lnx_refuse(r, NULL, "the rule %d has the same patterns; a list of "
			   "rules has each once", same);
		free(rule);
		return -EALREADY;
	}
	same = lnx_rules_find_same(&rules->list, rule);
	if (same >= 0) {
		rule->id = rules->list.rule[same]->id;
		if (rules->list.rule[same]->priority == rule->priority) {
			free(rule);
			rule = rules->list.rule[same];
		}
	}
	list->rule[list->n++] = rule;
	return 0;
}

/* The new list; rules that are not in the set yet have the id 0. */
static int build(const struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		 unsigned n, struct rule_list **out, unsigned *which,
		 struct lnx_refusal *r)
{
	struct rule_list *list = calloc(1, sizeof(*list));
	unsigned i, unused;
	int ret = 0;

	r->text = NULL;
	r->at = 0;
	which = which ? which : &unused;
	*which = 0;
	if (!list) {
		lnx_refuse(r, NULL, "memory is short; nothing was changed");
		return -ENOMEM;
	}
	for (i = 0; i < n && !ret; i++) {
		*which = i;
		if (i == LNX_RULES_MAX) {
			lnx_refuse(r, NULL, "there can be at most %d rules",
				   LNX_RULES_MAX);
			ret = -ENOSPC;
			break;
		}
		ret = take(rules, &spec[i], list, r);
	}
	if (ret)
		free_list(rules, list);
	else
		*out = list;
	return ret;
}

static int give_ids(struct lnx_rules *rules, struct rule_list *list,
		    struct lnx_refusal *r)
{
	unsigned i, need = 0;

	for (i = 0; i < list->n; i++)
		need += !list->rule[i]->id;
	if (need > UINT32_MAX - rules->last_id) {
		lnx_refuse(r, NULL, "all ids of rules are used up; open the "
			   "endpoint anew");
		return -ENOSPC;
	}
	for (i = 0; i < list->n; i++)
		if (!list->rule[i]->id)
			list->rule[i]->id = ++rules->last_id;
	return 0;
}

int lnx_rules_replace(struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		      unsigned n, unsigned *which, struct lnx_refusal *r)
{
	struct lnx_rules_edit *edit;
	struct rule_list *list;
	int ret = build(rules, spec, n, &list, which, r);

	if (ret)
		return ret;
	ret = give_ids(rules, list, r);
	edit = ret ? NULL : lnx_rules_edit(rules);
	if (!edit) {
		free_list(rules, list);
		return ret ? ret : -ENOMEM;
	}
	edit->changed = list->n != rules->list.n ||
			memcmp(list->rule, rules->list.rule,
			       list->n * sizeof(list->rule[0]));
	edit->list = *list;
	free(list);
	lnx_rules_commit(edit);
	return 0;
}

/* ---- differences ---- */

static void line(struct lnx_out *o, char sign, const struct lnx_rule *rule,
		 bool patterns_only)
{
	char text[LNX_RULE_TEXT_MAX];

	if (patterns_only)
		lnx_rule_print_patterns(rule, text, sizeof(text));
	else
		lnx_rule_print(rule, text, sizeof(text));
	lnx_out(o, "%c %s", sign, text);
}

/* Which rules of one list are in the other, and how many of those before each. */
struct common {
	int at[LNX_RULES_MAX];		/* index in the other list, or -1 */
	unsigned rank[LNX_RULES_MAX];
};

static void find_common(const struct rule_list *list, const struct rule_list *other,
			struct common *c)
{
	unsigned i, n = 0;

	for (i = 0; i < list->n; i++) {
		c->at[i] = lnx_rules_find_same(other, list->rule[i]);
		c->rank[i] = n;
		n += c->at[i] >= 0;
	}
}

/* How the rule i of the new list differs from the same one in the old list. */
static void compare(const struct rule_list *old, const struct rule_list *new,
		    unsigned i, const struct common *in_old,
		    const struct common *in_new, struct lnx_out *o)
{
	const struct lnx_rule *rule = new->rule[i];
	int at = in_old->at[i];

	if (at < 0) {
		line(o, '+', rule, false);
		lnx_out(o, "\n");
		return;
	}
	if (old->rule[at]->priority != rule->priority) {
		line(o, '~', rule, true);
		lnx_out(o, ": priority %u -> %u\n", old->rule[at]->priority,
			rule->priority);
	}
	if (in_new->rank[at] != in_old->rank[i]) {
		line(o, '>', rule, true);
		lnx_out(o, ": idx %d -> %u\n", at, i);
	}
}

int lnx_rules_diff(const struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		   unsigned n, char *buf, size_t size, size_t *len, unsigned *which,
		   struct lnx_refusal *r)
{
	struct lnx_out o = { .buf = buf, .size = size };
	struct common in_old, in_new;
	struct rule_list *list;
	unsigned i;
	int ret = build(rules, spec, n, &list, which, r);

	if (ret)
		return ret;
	if (size)
		buf[0] = '\0';
	find_common(list, &rules->list, &in_old);
	find_common(&rules->list, list, &in_new);
	for (i = 0; i < rules->list.n; i++) {
		if (in_new.at[i] >= 0)
			continue;
		line(&o, '-', rules->list.rule[i], false);
		lnx_out(&o, "\n");
	}
	for (i = 0; i < list->n; i++)
		compare(&rules->list, list, i, &in_old, &in_new, &o);
	*len = o.n;
	free_list(rules, list);
	return 0;
}
