/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The list of rules, and changes of it.  See rules.h.
 *
 * Every change is an edit: it works on a copy of the list, and the list is only
 * replaced when all of it has worked.  Rules themselves never change, so that both
 * lists can share them.
 */
#include "policy/rules.h"

#include <stdlib.h>
#include <string.h>

#include "policy/rules_inside.h"

struct lnx_rules *lnx_rules_create(const struct lnx_nets *nets)
{
	struct lnx_rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return NULL;
	rules->nets = nets;
	lnx_rules_changed(rules);
	return rules;
}

void lnx_rules_destroy(struct lnx_rules *rules)
{
	unsigned i;

	if (!rules)
		return;
	for (i = 0; i < rules->list.n; i++)
		free(rules->list.rule[i]);
	free(rules);
}

uint32_t lnx_rules_generation(const struct lnx_rules *rules)
{
	return rules->generation;
}

const struct lnx_nets *lnx_rules_nets(const struct lnx_rules *rules)
{
	return rules->nets;
}

int lnx_rules_find_same(const struct rule_list *list, const struct lnx_rule *rule)
{
	unsigned i;

	for (i = 0; i < list->n; i++)
		if (lnx_rule_same(list->rule[i], rule))
			return (int)i;
	return -1;
}

/* ---- edits ---- */

struct lnx_rules_edit *lnx_rules_edit(struct lnx_rules *rules)
{
	struct lnx_rules_edit *edit = malloc(sizeof(*edit));

	if (!edit)
		return NULL;
	edit->rules = rules;
	edit->changed = false;
	edit->list = rules->list;
	return edit;
}

static bool listed(const struct rule_list *list, const struct lnx_rule *rule)
{
	unsigned i;

	for (i = 0; i < list->n; i++)
		if (list->rule[i] == rule)
			return true;
	return false;
}

/* Free the rules of one list that are not in the other. */
static void free_beside(const struct rule_list *list, const struct rule_list *kept)
{
	unsigned i;

	for (i = 0; i < list->n; i++)
		if (!listed(kept, list->rule[i]))
			free(list->rule[i]);
}

/* A rule that leaves the list of an edit stays in that of the set, if it is there. */
static void drop(struct lnx_rules_edit *edit, struct lnx_rule *rule)
{
	if (!listed(&edit->rules->list, rule))
		free(rule);
}

void lnx_rules_commit(struct lnx_rules_edit *edit)
{
	struct lnx_rules *rules = edit->rules;

	free_beside(&rules->list, &edit->list);
	rules->list = edit->list;
	if (edit->changed)
		lnx_rules_changed(rules);
	free(edit);
}

void lnx_rules_abort(struct lnx_rules_edit *edit)
{
	free_beside(&edit->list, &edit->rules->list);
	free(edit);
}

static int no_memory(struct lnx_refusal *r)
{
	lnx_refuse(r, NULL, "memory is short; nothing was changed");
	return -ENOMEM;
}

/* Make a rule of a spec; every error has a sentence. */
static int make(const struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		struct lnx_rule **rule, struct lnx_refusal *r)
{
	int ret = lnx_rule_make(rules->nets, spec, rule, r);

	return ret == -ENOMEM ? no_memory(r) : ret;
}

/* ---- add ---- */

/* The rule at index i, which is in both lists, is replaced by one with its own id. */
static int update(struct lnx_rules_edit *edit, unsigned i, struct lnx_rule *rule,
		  uint32_t *id, struct lnx_refusal *r)
{
	struct lnx_rule *old = edit->list.rule[i];

	*id = old->id;
	if (old->priority == rule->priority) {
		lnx_refuse(r, NULL, "the rule is there already, with idx %u and "
			   "id %u%s", i, old->id,
			   rule->priority == LNX_RULE_NONE ? "" :
			   " and the same priority");
		free(rule);
		return -EALREADY;
	}
	rule->id = old->id;
	edit->list.rule[i] = rule;
	drop(edit, old);
	edit->changed = true;
	return 0;
}

static int insert(struct lnx_rules_edit *edit, uint32_t at, struct lnx_rule *rule,
		  uint32_t *id, struct lnx_refusal *r)
{
	struct rule_list *list = &edit->list;

	if (list->n == LNX_RULES_MAX || edit->rules->last_id == UINT32_MAX) {
		if (list->n == LNX_RULES_MAX)
			lnx_refuse(r, NULL, "there are %d rules, and there can be "
				   "no more; delete one, or let one pattern "
				   "cover several", LNX_RULES_MAX);
		else
			lnx_refuse(r, NULL, "all ids of rules are used up; open "
				   "the endpoint anew");
		free(rule);
		return -ENOSPC;
	}
	rule->id = *id = ++edit->rules->last_id;
	at = LNX_MIN(at, list->n);
	memmove(list->rule + at + 1, list->rule + at,
		(list->n - at) * sizeof(list->rule[0]));
	list->rule[at] = rule;
	list->n++;
	edit->changed = true;
	return 0;
}

int lnx_rules_edit_add(struct lnx_rules_edit *edit, const struct lnx_rule_spec *spec,
		       uint32_t *id, struct lnx_refusal *r)
{
	uint32_t unused;
	struct lnx_rule *rule;
	int ret = make(edit->rules, spec, &rule, r), same;

	if (ret)
		return ret;
	id = id ? id : &unused;
	same = lnx_rules_find_same(&edit->list, rule);
	if (same >= 0)
		return update(edit, (unsigned)same, rule, id, r);
	return insert(edit, spec->has_index ? spec->index : UINT32_MAX, rule, id, r);
}

int lnx_rules_add(struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		  uint32_t *id, struct lnx_refusal *r)
{
	struct lnx_rules_edit *edit = lnx_rules_edit(rules);
	int ret;

	if (!edit)
		return no_memory(r);
	ret = lnx_rules_edit_add(edit, spec, id, r);
	if (ret)
		lnx_rules_abort(edit);
	else
		lnx_rules_commit(edit);
	return ret;
}

int lnx_rules_add_text(struct lnx_rules *rules, const char *text,
		       struct lnx_refusal *r)
{
	struct lnx_rule_reader *reader = calloc(1, sizeof(*reader));
	struct lnx_rules_edit *edit = lnx_rules_edit(rules);
	uint32_t before = rules->last_id, id = 0;
	int ret = -ENOMEM;

	if (reader && edit) {
		reader->text = text;
		while ((ret = lnx_rule_read(reader, r)) > 0) {
			ret = lnx_rules_edit_add(edit, &reader->spec, &id, r);
			/* It is not the text that has it twice. */
			if (ret == -EALREADY && id <= before)
				ret = 0;
			if (ret) {
				lnx_rule_locate(reader, r);
				break;
			}
		}
	} else {
		no_memory(r);
	}
	free(reader);
	if (edit && ret)
		lnx_rules_abort(edit);
	else if (edit)
		lnx_rules_commit(edit);
	return ret;
}

/* ---- delete ---- */

static int missing(const struct rule_list *list, const struct lnx_rules_which *which,
		   struct lnx_refusal *r)
{
	if (which->by == LNX_RULES_BY_INDEX && list->n)
		lnx_refuse(r, NULL, "there is no rule with idx %u; there are 0 to "
			   "%u", which->number, list->n - 1);
	else if (which->by == LNX_RULES_BY_INDEX)
		lnx_refuse(r, NULL, "there is no rule with idx %u; there are none",
			   which->number);
	else if (which->by == LNX_RULES_BY_ID)
		lnx_refuse(r, NULL, "there is no rule with id %u", which->number);
	else
		lnx_refuse(r, NULL, "there is no rule with just these patterns%s",
			   which->spec.has_priority ? " and this priority" : "");
	return -ENOENT;
}

static int find_exact(const struct lnx_rules_edit *edit,
		      const struct lnx_rule_spec *spec, struct lnx_refusal *r)
{
	struct lnx_rule *rule;
	int ret = make(edit->rules, spec, &rule, r);

	if (ret)
		return ret;
	ret = lnx_rules_find_same(&edit->list, rule);
	if (ret >= 0 && spec->has_priority &&
	    edit->list.rule[ret]->priority != spec->priority)
		ret = -1;
	free(rule);
	return ret < 0 ? -ENOENT : ret;
}

/* The index of the rule that is meant, or an error, without a sentence if -ENOENT. */
static int find(const struct lnx_rules_edit *edit, const struct lnx_rules_which *which,
		struct lnx_refusal *r)
{
	const struct rule_list *list = &edit->list;
	unsigned i;

	switch (which->by) {
	case LNX_RULES_BY_INDEX:
		return which->number < list->n ? (int)which->number : -ENOENT;
	case LNX_RULES_BY_ID:
		for (i = 0; i < list->n; i++)
			if (list->rule[i]->id == which->number)
				return (int)i;
		return -ENOENT;
	default:
		return find_exact(edit, &which->spec, r);
	}
}

int lnx_rules_edit_find(const struct lnx_rules_edit *edit,
			const struct lnx_rules_which *which, struct lnx_refusal *r)
{
	int at;

	r->text = NULL;
	r->at = 0;
	at = find(edit, which, r);
	return at == -ENOENT ? missing(&edit->list, which, r) : at;
}

static void remove_at(struct lnx_rules_edit *edit, unsigned at)
{
	struct rule_list *list = &edit->list;

	drop(edit, list->rule[at]);
	list->n--;
	memmove(list->rule + at, list->rule + at + 1,
		(list->n - at) * sizeof(list->rule[0]));
	edit->changed = true;
}

int lnx_rules_edit_del(struct lnx_rules_edit *edit,
		       const struct lnx_rules_which *which, unsigned *n,
		       struct lnx_refusal *r)
{
	unsigned unused;
	int at;

	n = n ? n : &unused;
	if (which->by == LNX_RULES_ALL) {
		for (*n = 0; edit->list.n; ++*n)
			remove_at(edit, edit->list.n - 1);
		return 0;
	}
	at = lnx_rules_edit_find(edit, which, r);
	if (at < 0)
		return at;
	remove_at(edit, (unsigned)at);
	*n = 1;
	return 0;
}
