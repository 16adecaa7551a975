/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which rules there are, what they apply to, and how another list differs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "policy/rules_inside.h"

/* ---- one rule ---- */

static enum lnx_rule_state state_of(const struct lnx_rules *rules,
				    const struct lnx_rule *rule,
				    const struct rule_use *use)
{
	if (rule->kind == LNX_RULE_GATEWAY && !rules->routing)
		return LNX_RULE_NO_ROUTING;
	if (!use->matched)
		return LNX_RULE_WAITING;
	if (!use->decides)
		return LNX_RULE_SHADOWED;
	return rule->kind == LNX_RULE_PAIR && !use->joined && !rules->routing ? LNX_RULE_APART :
										LNX_RULE_IN_USE;
}

unsigned lnx_rules_count(const struct lnx_rules *rules)
{
	return rules->list.n;
}

int lnx_rules_info(const struct lnx_rules *rules, uint32_t index,
		   struct lnx_rule_info *info)
{
	const struct rule_use *use;

	if (index >= rules->list.n)
		return -ENOENT;
	use = &rules->use[index];
	*info = (struct lnx_rule_info){
		.rule = rules->list.rule[index],
		.index = index,
		.state = state_of(rules, rules->list.rule[index], use),
		.rails = (uint32_t)__builtin_popcount(use->local),
		.remote = use->remote,
		.matched = use->matched,
		.decides = use->decides,
	};
	return 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Whose rails `matched` counts. */
static const char *owner(const struct lnx_rule *rule)
{
	return rule->n[LNX_RULE_DST] ? "of peers" : "of ours";
}

/* What a rule without effect waits for. */
static void print_waiting(const struct lnx_rule_info *info, struct lnx_out *o)
{
	const struct lnx_rule *rule = info->rule;

	if (rule->kind == LNX_RULE_PAIR && info->remote)
		lnx_out(o, "nothing yet: it waits for a rail of ours; %" PRIu64
			" rail%s of peers match", info->remote,
			plural(info->remote));
	else if (rule->kind == LNX_RULE_PAIR && info->rails)
		lnx_out(o, "nothing yet: it waits for a rail of a peer; %u "
			"rail%s of ours match", info->rails, plural(info->rails));
	else
		lnx_out(o, "nothing yet: it waits for a rail %s",
			rule->n[LNX_RULE_DST] ? "of a peer" : "of ours");
}

size_t lnx_rule_applies(const struct lnx_rule_info *info, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	const struct lnx_rule *rule = info->rule;
	uint64_t rest = info->matched - info->decides;

	if (info->state == LNX_RULE_NO_ROUTING) {
		lnx_out(&o, "nothing yet: it waits until routing is used; %" PRIu64
			" rail%s of peers match", info->remote,
			plural(info->remote));
		return o.n;
	}
	if (info->state == LNX_RULE_WAITING) {
		print_waiting(info, &o);
		return o.n;
	}
	if (info->state == LNX_RULE_SHADOWED) {
		lnx_out(&o, "nothing: rules before it decide for the %" PRIu64
			" rail%s %s that match", info->matched,
			plural(info->matched), owner(rule));
		return o.n;
	}
	if (rule->kind == LNX_RULE_PAIR)
		lnx_out(&o, "%u rail%s of ours, to ", info->rails,
			plural(info->rails));
	lnx_out(&o, "%" PRIu64 " rail%s %s", info->decides, plural(info->decides),
		owner(rule));
	if (info->state == LNX_RULE_APART)
		lnx_out(&o, ", without effect: no two of them are of one net, so there is no "
			"path between them");
	if (rest)
		lnx_out(&o, "; rules before it decide for %" PRIu64 " more", rest);
	return o.n;
}

/* ---- filters ---- */

int lnx_rules_filter(const struct lnx_nets *nets, const struct lnx_rule_spec *spec,
		     struct lnx_rules_filter *out, struct lnx_refusal *r)
{
	unsigned i;
	int ret;

	memset(out, 0, sizeof(*out));
	out->has_index = spec->has_index;
	out->index = spec->index;
	for (i = 0; i < LNX_RULE_SIDES; i++) {
		const char *text = spec->side[i];

		r->text = text;
		r->at = 0;
		if (!text)
			continue;
		ret = lnx_nid_pattern_parse(nets,
					    (struct lnx_span){ text, strlen(text) },
					    &out->side[i], r);
		if (ret)
			return ret;
		out->has[i] = true;
		out->one[i] = lnx_nid_pattern_one(&out->side[i], &out->nid[i]);
	}
	return 0;
}

static bool side_selected(const struct lnx_rule *rule, enum lnx_rule_side side,
			  const struct lnx_rules_filter *f)
{
	const struct lnx_pattern *p = &f->side[side];
	uint64_t ops = 0;

	if (!f->has[side])
		return true;
	if (rule->n[side] == p->n &&
	    !memcmp(lnx_rule_parts(rule, side), p->part,
		    p->n * sizeof(p->part[0])))
		return true;
	return f->one[side] && lnx_rule_has(rule, side, &f->nid[side], &ops);
}

int lnx_rules_next(const struct lnx_rules *rules, const struct lnx_rules_filter *filter,
		   uint32_t from)
{
	unsigned i, side;

	for (i = from; i < rules->list.n; i++) {
		if (filter->has_index && filter->index != i)
			continue;
		for (side = 0; side < LNX_RULE_SIDES; side++)
			if (!side_selected(rules->list.rule[i], side, filter))
				break;
		if (side == LNX_RULE_SIDES)
			return (int)i;
	}
	return -ENOENT;
}
