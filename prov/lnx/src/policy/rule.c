/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One rule.  See rule.h. */
#include "policy/rule.h"

#include <stdlib.h>
#include <string.h>

#include "base/out.h"

const char *lnx_rule_kind_name(enum lnx_rule_kind kind)
{
	static const char *const name[LNX_RULE_KINDS] = {
		[LNX_RULE_NET] = "net",
		[LNX_RULE_RAIL] = "rail",
		[LNX_RULE_REMOTE] = "remote rail",
		[LNX_RULE_PAIR] = "pair",
		[LNX_RULE_GATEWAY] = "gateway",
	};

	return (unsigned)kind < LNX_RULE_KINDS ? name[kind] : "unknown";
}

const char *lnx_rule_side_name(enum lnx_rule_side side)
{
	static const char *const name[LNX_RULE_SIDES] = { "src", "dst", "rte" };

	return (unsigned)side < LNX_RULE_SIDES ? name[side] : "unknown";
}

int lnx_rule_priority(struct lnx_span w, const char *what, uint32_t *out,
		      struct lnx_refusal *r)
{
	uint64_t v;

	if (!lnx_span_uint(w, &v) || v > LNX_RULE_PRIORITY_MAX)
		return lnx_refuse(r, w.s, "%s: \"%.*s\": must be a whole number "
				  "from 0, the best, to %u", what, LNX_QUOTE(w),
				  LNX_RULE_PRIORITY_MAX);
	*out = (uint32_t)v;
	return 0;
}

/* ---- which sides may be combined ---- */

static int check_sides(const struct lnx_rule_spec *s, struct lnx_refusal *r)
{
	bool src = s->side[LNX_RULE_SRC], dst = s->side[LNX_RULE_DST];
	bool rte = s->side[LNX_RULE_RTE];

	if (src && dst && rte)
		return lnx_refuse(r, NULL, "src, dst and rte cannot be combined; "
				  "write one rule with src and dst, which "
				  "prefers rails, and one with dst and rte, "
				  "which prefers gateways");
	if (src && rte)
		return lnx_refuse(r, NULL, "src and rte cannot be combined; a rule "
				  "prefers gateways for rails of peers, with "
				  "dst and rte");
	if (rte && !dst)
		return lnx_refuse(r, NULL, "rte alone says only which gateways are "
				  "preferred; dst has to say for which rails of "
				  "peers, * with a net for all");
	if (!src && !dst)
		return lnx_refuse(r, NULL, "the rule does not say what it is for; "
				  "give src for rails of ours, dst for those of "
				  "peers, or both");
	if (s->has_priority && src && dst)
		return lnx_refuse(r, NULL, "a rule with src and dst has no "
				  "priority: it prefers some rails of ours to "
				  "the others; leave the priority or one of the "
				  "two out");
	if (s->has_priority && rte)
		return lnx_refuse(r, NULL, "a rule with dst and rte has no "
				  "priority: it prefers some gateways to the "
				  "others; leave the priority out");
	if (s->has_priority && s->priority > LNX_RULE_PRIORITY_MAX)
		return lnx_refuse(r, NULL, "the priority %u is the mark for none; "
				  "it must be from 0, the best, to %u",
				  s->priority, LNX_RULE_PRIORITY_MAX);
	return 0;
}

static uint8_t kind_of(const struct lnx_rule_spec *s, const struct lnx_pattern *p)
{
	if (s->side[LNX_RULE_RTE])
		return LNX_RULE_GATEWAY;
	if (s->side[LNX_RULE_SRC] && s->side[LNX_RULE_DST])
		return LNX_RULE_PAIR;
	if (lnx_nid_pattern_nets(&p[s->side[LNX_RULE_SRC] ? LNX_RULE_SRC :
							LNX_RULE_DST]))
		return LNX_RULE_NET;
	return s->side[LNX_RULE_SRC] ? LNX_RULE_RAIL : LNX_RULE_REMOTE;
}

static int parse_sides(const struct lnx_nets *nets, const struct lnx_rule_spec *s,
		       struct lnx_pattern *p, struct lnx_refusal *r)
{
	char why[LNX_REFUSAL_BYTES];
	unsigned i;

	for (i = 0; i < LNX_RULE_SIDES; i++) {
		struct lnx_span w = { s->side[i], 0 };

		p[i].n = 0;
		if (!s->side[i])
			continue;
		w.len = strlen(w.s);
		r->text = w.s;
		if (!lnx_nid_pattern_parse(nets, w, &p[i], r))
			continue;
		memcpy(why, r->why, sizeof(why));
		return lnx_refuse(r, NULL, "%s: %s", lnx_rule_side_name(i), why);
	}
	return 0;
}

int lnx_rule_make(const struct lnx_nets *nets, const struct lnx_rule_spec *spec,
		  struct lnx_rule **out, struct lnx_refusal *r)
{
	struct lnx_pattern *p;
	struct lnx_rule *rule;
	unsigned i, n = 0;
	int ret;

	r->text = NULL;
	r->at = 0;
	ret = check_sides(spec, r);
	if (ret)
		return ret;
	p = malloc(LNX_RULE_SIDES * sizeof(*p));
	if (!p)
		return -ENOMEM;
	ret = parse_sides(nets, spec, p, r);
	for (i = 0; i < LNX_RULE_SIDES; i++)
		n += ret ? 0 : p[i].n;
	rule = ret ? NULL : calloc(1, sizeof(*rule) + n * sizeof(rule->part[0]));
	if (!rule) {
		free(p);
		return ret ? ret : -ENOMEM;
	}
	rule->kind = kind_of(spec, p);
	rule->priority = rule->kind == LNX_RULE_PAIR ||
			 rule->kind == LNX_RULE_GATEWAY ? LNX_RULE_NONE :
			 spec->has_priority ? spec->priority : 0;
	for (i = n = 0; i < LNX_RULE_SIDES; i++) {
		rule->n[i] = (uint8_t)p[i].n;
		memcpy(rule->part + n, p[i].part, p[i].n * sizeof(p[i].part[0]));
		n += p[i].n;
	}
	free(p);
	r->text = NULL;
	r->at = 0;
	*out = rule;
	return 0;
}

bool lnx_rule_same(const struct lnx_rule *a, const struct lnx_rule *b)
{
	unsigned n = a->n[0] + a->n[1] + a->n[2];

	return a->kind == b->kind && !memcmp(a->n, b->n, sizeof(a->n)) &&
	       !memcmp(a->part, b->part, n * sizeof(a->part[0]));
}

bool lnx_rule_has(const struct lnx_rule *rule, enum lnx_rule_side side,
		  const struct lnx_nid *nid, uint64_t *ops)
{
	const struct lnx_nid_part *part = lnx_rule_parts(rule, side);
	unsigned i;

	for (i = 0; i < rule->n[side]; i++) {
		++*ops;
		if (lnx_nid_part_has(&part[i], nid))
			return true;
	}
	return false;
}

size_t lnx_rule_print_side(const struct lnx_rule *rule, enum lnx_rule_side side,
			   char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	return lnx_nid_pattern_print(lnx_rule_parts(rule, side), rule->n[side], buf,
				     size);
}

static void print_patterns(const struct lnx_rule *rule, struct lnx_out *o)
{
	char text[LNX_PATTERN_TEXT_MAX];
	unsigned i;

	for (i = 0; i < LNX_RULE_SIDES; i++) {
		if (!rule->n[i])
			continue;
		lnx_rule_print_side(rule, i, text, sizeof(text));
		lnx_out(o, "%s%s: %s", o->n ? ", " : "", lnx_rule_side_name(i),
			text);
	}
}

size_t lnx_rule_print_patterns(const struct lnx_rule *rule, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	print_patterns(rule, &o);
	return o.n;
}

size_t lnx_rule_print(const struct lnx_rule *rule, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	print_patterns(rule, &o);
	if (rule->priority != LNX_RULE_NONE)
		lnx_out(&o, ", priority: %u", rule->priority);
	return o.n;
}
