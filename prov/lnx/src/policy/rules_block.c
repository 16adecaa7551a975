/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests about rules as blocks of records.  See rules_block.h. */
#include "policy/rules_block.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "policy/rules_inside.h"

_Static_assert(LNX_POLICY_TEXT == LNX_PATTERN_TEXT_MAX &&
	       LNX_POLICY_UNSET == LNX_RULE_NONE, "as the parser has them");
_Static_assert((int)LNX_POLICY_IN_USE == (int)LNX_RULE_IN_USE &&
	       (int)LNX_POLICY_SHADOWED == (int)LNX_RULE_SHADOWED &&
	       (int)LNX_POLICY_WAITING == (int)LNX_RULE_WAITING &&
	       (int)LNX_POLICY_NO_ROUTING == (int)LNX_RULE_NO_ROUTING &&
	       (int)LNX_POLICY_APART == (int)LNX_RULE_APART,
	       "the states are those of the interface");
_Static_assert(sizeof(struct lnx_policy_block) == 40 &&
	       sizeof(struct lnx_policy_rule) == 48 + 3 * LNX_POLICY_TEXT &&
	       sizeof(struct lnx_policy_id) == 8, "layout of the interface");

struct job {
	struct lnx_rules *rules;
	struct lnx_policy_block in;
	const uint8_t *records;
	uint8_t *reply;
	size_t room;			/* of the reply, behind its head */
	size_t used;
	struct lnx_policy_block out;
	struct lnx_refusal why;
};

static uint32_t type_of(const struct lnx_rule *rule)
{
	switch (rule->kind) {
	case LNX_RULE_NET: return LNX_POLICY_NET;
	case LNX_RULE_PAIR: return LNX_POLICY_PEER;
	case LNX_RULE_GATEWAY: return LNX_POLICY_GATEWAY;
	default: return LNX_POLICY_NID;
	}
}

static bool wanted(const struct job *j, const struct lnx_rule *rule)
{
	return j->in.type == LNX_POLICY_ANY || j->in.type == type_of(rule);
}

static const char *type_text(uint32_t type)
{
	static const char *const text[] = {
		"rules", "rules for nets", "rules for NIDs", "rules for pairs",
		"rules for gateways",
	};

	return text[type];
}

/* ---- the request ---- */

static int check_head(struct job *j, const void *request, size_t len)
{
	const size_t need = sizeof(j->in);
	struct lnx_refusal *r = &j->why;

	memset(&j->in, 0, need);
	if (len < need)
		return lnx_refuse(r, NULL, "the request has %zu bytes, and its "
				  "head alone has %zu", len, need);
	memcpy(&j->in, request, need);
	if (j->in.magic != LNX_POLICY_MAGIC)
		return lnx_refuse(r, NULL, "the request does not begin with "
				  "LNX_POLICY_MAGIC");
	if (j->in.head < need || j->in.head > len)
		return lnx_refuse(r, NULL, "the head of the request is said to "
				  "have %u bytes; it has at least %zu, and the "
				  "request %zu", j->in.head, need, len);
	if (j->in.op < LNX_POLICY_ADD || j->in.op > LNX_POLICY_SHOW)
		return lnx_refuse(r, NULL, "the operation %u is unknown; this "
				  "process knows add (1), del (2), show (3)",
				  j->in.op);
	if (j->in.type > LNX_POLICY_GATEWAY)
		return lnx_refuse(r, NULL, "the type %u is none of rules; these "
				  "are 0 to %d", j->in.type, LNX_POLICY_GATEWAY);
	j->records = (const uint8_t *)request + j->in.head;
	return 0;
}

static int check_records(struct job *j, size_t len)
{
	const size_t need = sizeof(struct lnx_policy_rule);
	uint32_t most = j->in.op == LNX_POLICY_SHOW ? 1 : LNX_RULES_MAX;
	struct lnx_refusal *r = &j->why;

	len -= j->in.head;
	if (j->in.count > most)
		return lnx_refuse(r, NULL, "the request has %u records; it can "
				  "have %u", j->in.count, most);
	if (j->in.count && j->in.size < need)
		return lnx_refuse(r, NULL, "records of %u bytes are too short; "
				  "those of this process have %zu", j->in.size,
				  need);
	if ((uint64_t)j->in.count * j->in.size != len)
		return lnx_refuse(r, NULL, "the request says it has %u records of "
				  "%u bytes, but %zu bytes follow its head",
				  j->in.count, j->in.size, len);
	if (j->in.op == LNX_POLICY_ADD && !j->in.count)
		return lnx_refuse(r, NULL, "there is no rule to add");
	return 0;
}

static bool ended(const char *text)
{
	return memchr(text, '\0', LNX_POLICY_TEXT);
}

/* Copy a record, of which the tail may be unknown; spec refers to the copy. */
static int take(struct job *j, uint32_t i, struct lnx_policy_rule *rec,
		struct lnx_rule_spec *spec)
{
	j->out.skip = i;
	memcpy(rec, j->records + (size_t)i * j->in.size, sizeof(*rec));
	if (!ended(rec->src) || !ended(rec->dst) || !ended(rec->rte))
		return lnx_refuse(&j->why, NULL, "a pattern does not end within "
				  "its %d bytes", LNX_POLICY_TEXT);
	*spec = (struct lnx_rule_spec){
		.side = { *rec->src ? rec->src : NULL, *rec->dst ? rec->dst : NULL,
			  *rec->rte ? rec->rte : NULL },
		.has_priority = rec->priority != LNX_POLICY_UNSET,
		.priority = rec->priority,
		.has_index = rec->index != LNX_POLICY_UNSET,
		.index = rec->index,
	};
	return 0;
}

/* ---- add ---- */

static int index_of(const struct rule_list *list, uint32_t id)
{
	unsigned i;

	for (i = 0; i < list->n && list->rule[i]->id != id; i++)
		;
	return (int)i;
}

static int wrong_type(struct job *j, const struct lnx_rule *rule)
{
	return lnx_refuse(&j->why, NULL, "the request is about %s, and this is one "
			  "of the %s", type_text(j->in.type),
			  type_text(type_of(rule)));
}

static int add_one(struct job *j, struct lnx_rules_edit *edit, uint32_t i,
		   uint32_t *id)
{
	struct lnx_policy_rule rec;
	struct lnx_rule_spec spec;
	struct lnx_rule *rule;
	int ret = take(j, i, &rec, &spec);

	if (!ret)
		ret = lnx_rules_edit_add(edit, &spec, id, &j->why);
	if (ret)
		return ret;
	rule = edit->list.rule[index_of(&edit->list, *id)];
	return wanted(j, rule) ? 0 : wrong_type(j, rule);
}

static int add(struct job *j, struct lnx_rules_edit *edit)
{
	uint32_t id[LNX_RULES_MAX], i;
	struct lnx_policy_id rec;
	int ret = 0;

	if (j->room < j->in.count * sizeof(rec))
		return lnx_refuse(&j->why, NULL, "the reply has no room for %u ids",
				  j->in.count);
	for (i = 0; i < j->in.count && !ret; i++)
		ret = add_one(j, edit, i, &id[i]);
	if (ret)
		return ret;
	j->out.skip = 0;
	j->out.type = LNX_POLICY_IDS;
	j->out.size = sizeof(rec);
	j->out.count = j->in.count;
	for (i = 0; i < j->in.count; i++) {
		rec.id = id[i];
		rec.index = (uint32_t)index_of(&edit->list, id[i]);
		memcpy(j->reply + sizeof(j->out) + j->used, &rec, sizeof(rec));
		j->used += sizeof(rec);
	}
	return 0;
}

/* ---- delete ---- */

static int del_one(struct job *j, struct lnx_rules_edit *edit, uint32_t i)
{
	struct lnx_rules_which which = { .by = LNX_RULES_EXACT };
	struct lnx_policy_rule rec;
	int ret = take(j, i, &rec, &which.spec), at;

	if (ret)
		return ret;
	if (rec.id) {
		which.by = LNX_RULES_BY_ID;
		which.number = rec.id;
	} else if (which.spec.has_index) {
		which.by = LNX_RULES_BY_INDEX;
		which.number = rec.index;
	}
	at = lnx_rules_edit_find(edit, &which, &j->why);
	if (at < 0)
		return at;
	if (!wanted(j, edit->list.rule[at])) {
		wrong_type(j, edit->list.rule[at]);
		return -ENOENT;
	}
	which.by = LNX_RULES_BY_INDEX;
	which.number = (uint32_t)at;
	j->out.total++;
	return lnx_rules_edit_del(edit, &which, NULL, &j->why);
}

/* All rules of the type. */
static int del_all(struct job *j, struct lnx_rules_edit *edit)
{
	struct lnx_rules_which which = { .by = LNX_RULES_BY_INDEX };
	unsigned i;
	int ret = 0;

	for (i = edit->list.n; i-- > 0 && !ret;) {
		if (!wanted(j, edit->list.rule[i]))
			continue;
		which.number = i;
		ret = lnx_rules_edit_del(edit, &which, NULL, &j->why);
		j->out.total++;
	}
	return ret;
}

static int del(struct job *j, struct lnx_rules_edit *edit)
{
	uint32_t i;
	int ret = 0;

	if (!j->in.count)
		return del_all(j, edit);
	for (i = 0; i < j->in.count && !ret; i++)
		ret = del_one(j, edit, i);
	j->out.skip = ret ? j->out.skip : 0;
	j->out.total = ret ? 0 : j->out.total;
	return ret;
}

static int change(struct job *j)
{
	struct lnx_rules_edit *edit = lnx_rules_edit(j->rules);
	int ret;

	if (!edit) {
		lnx_refuse(&j->why, NULL, "memory is short; nothing was changed");
		return -ENOMEM;
	}
	ret = j->in.op == LNX_POLICY_ADD ? add(j, edit) : del(j, edit);
	if (ret)
		lnx_rules_abort(edit);
	else
		lnx_rules_commit(edit);
	return ret;
}

/* ---- show ---- */

void lnx_rules_record(const struct lnx_rule_info *info, struct lnx_policy_rule *rec)
{
	const struct lnx_rule *rule = info->rule;

	memset(rec, 0, sizeof(*rec));
	rec->id = rule->id;
	rec->index = info->index;
	rec->priority = rule->priority;
	rec->type = type_of(rule);
	rec->state = info->state;
	rec->rails = info->rails;
	rec->remote = info->remote;
	rec->matched = info->matched;
	rec->decides = info->decides;
	lnx_rule_print_side(rule, LNX_RULE_SRC, rec->src, sizeof(rec->src));
	lnx_rule_print_side(rule, LNX_RULE_DST, rec->dst, sizeof(rec->dst));
	lnx_rule_print_side(rule, LNX_RULE_RTE, rec->rte, sizeof(rec->rte));
}

/* A selected rule: is it left out, does it go into the reply, or is there no room? */
static void show_one(struct job *j, const struct lnx_rule_info *info)
{
	struct lnx_policy_rule rec;

	if (j->out.total++ < j->in.skip)
		return;
	if (j->room - j->used < sizeof(rec)) {
		j->out.status = -ENOSPC;
		return;
	}
	lnx_rules_record(info, &rec);
	memcpy(j->reply + sizeof(j->out) + j->used, &rec, sizeof(rec));
	j->used += sizeof(rec);
	j->out.count++;
}

static int show_filtered(struct job *j, struct lnx_rules_filter *filter)
{
	struct lnx_policy_rule rec = { .id = 0 };
	struct lnx_rule_spec spec = { .has_index = false };
	struct lnx_rule_info info;
	int i, ret = j->in.count ? take(j, 0, &rec, &spec) : 0;

	if (!ret)
		ret = lnx_rules_filter(lnx_rules_nets(j->rules), &spec, filter,
				       &j->why);
	if (ret)
		return ret;
	j->out.type = j->in.type;
	j->out.size = sizeof(rec);
	for (i = lnx_rules_next(j->rules, filter, 0); i >= 0;
	     i = lnx_rules_next(j->rules, filter, (uint32_t)i + 1)) {
		lnx_rules_info(j->rules, (uint32_t)i, &info);
		if (wanted(j, info.rule) && (!rec.id || rec.id == info.rule->id))
			show_one(j, &info);
	}
	if (j->out.total || (!rec.id && !spec.has_index))
		return 0;
	lnx_refuse(&j->why, NULL, "there is no rule with %s %u that is one of the %s "
		   "selected", rec.id ? "id" : "idx", rec.id ? rec.id : spec.index,
		   type_text(j->in.type));
	return -ENOENT;
}

static int show(struct job *j)
{
	struct lnx_rules_filter *filter = malloc(sizeof(*filter));
	int ret;

	if (!filter) {
		lnx_refuse(&j->why, NULL, "memory is short");
		return -ENOMEM;
	}
	ret = show_filtered(j, filter);
	free(filter);
	return ret;
}

/* ---- the reply ---- */

static void refusal(struct job *j, int ret)
{
	size_t len = strlen(j->why.why) + 1;

	j->out.status = ret;
	j->out.type = LNX_POLICY_SENTENCE;
	j->out.total = 0;
	j->used = LNX_MIN(len, j->room);
	j->out.size = (uint32_t)j->used;
	j->out.count = j->used != 0;
	if (!j->used)
		return;
	memcpy(j->reply + sizeof(j->out), j->why.why, j->used);
	j->reply[sizeof(j->out) + j->used - 1] = '\0';
}

size_t lnx_rules_request(struct lnx_rules *rules, const void *request, size_t len,
			 void *reply, size_t size)
{
	struct job j = { .rules = rules, .reply = reply };
	int ret;

	if (size < sizeof(j.out))
		return 0;
	j.room = size - sizeof(j.out);
	ret = check_head(&j, request, len);
	if (j.in.room)
		j.room = LNX_MIN(j.room, LNX_MAX(j.in.room, sizeof(j.out)) -
					 sizeof(j.out));
	if (!ret)
		ret = check_records(&j, len);
	if (!ret)
		ret = j.in.op == LNX_POLICY_SHOW ? show(&j) : change(&j);
	if (ret)
		refusal(&j, ret);
	j.out.magic = LNX_POLICY_MAGIC;
	j.out.head = sizeof(j.out);
	j.out.op = j.in.op;
	j.out.generation = lnx_rules_generation(rules);
	memcpy(reply, &j.out, sizeof(j.out));
	return sizeof(j.out) + j.used;
}

bool lnx_rules_is_request(const void *request, size_t len)
{
	const uint32_t magic = LNX_POLICY_MAGIC;

	return len >= sizeof(magic) && !memcmp(request, &magic, sizeof(magic));
}
