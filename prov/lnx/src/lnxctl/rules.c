/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of lnx_policy.h, with blocks that go through the mailbox of an endpoint, and rules
 * as they are in its state segment.  For "udsp" and "import".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/nets.h"
#include "lnxctl/lnxctl.h"
#include "policy/rules.h"

static ssize_t call(void *arg, const void *request, size_t len, void *reply, size_t size)
{
	struct lnxctl_rules *r = arg;

	return lnx_client_call(r->p, r->e->ep.eid, request, len,
			       r->c->wait_ms ? r->c->wait_ms : LNXCTL_REQUEST_WAIT_MS, reply,
			       size, &r->failed);
}

bool lnxctl_rules_open(struct lnxctl_rules *r, struct lnxctl *c, struct lnx_proc *p,
		       const struct lnx_snap_ep *e)
{
	*r = (struct lnxctl_rules){ .c = c, .p = p, .e = e };
	if (c->file) {
		lnxctl_fail(c, NULL, LNXCTL_REFUSED, -EROFS, "%s: it is a copy, which "
			    "answers nothing", c->file);
		return false;
	}
	r->policy = lnx_must(lnx_policy_open(call, r));
	return true;
}

void lnxctl_rules_close(struct lnxctl_rules *r)
{
	lnx_policy_close(r->policy);
	r->policy = NULL;
}

void lnxctl_rules_fail(const struct lnxctl_rules *r, int err)
{
	char why[600];

	/* It comes from the process. */
	snprintf(why, sizeof(why), "%s", lnx_policy_error(r->policy));
	lnx_client_printable(why, strlen(why));
	if (r->failed)
		lnxctl_fail(r->c, r->p, r->failed == -EACCES || r->failed == -E2BIG ?
			    LNXCTL_REFUSED : LNXCTL_NO_ANSWER, r->failed, "%s",
			    lnx_client_error(r->failed));
	else
		lnxctl_fail(r->c, r->p, LNXCTL_REFUSED, err, "%s", why);
}

/* ---- in the state segment ---- */

/* One side of a filter. */
struct side {
	const char *text;		/* NULL: it selects all */
	bool parsed, one;
	struct lnx_pattern pattern;
	struct lnx_nid nid;		/* one: the only rail that it has */
};

static void parse(const struct lnx_nets *nets, const char *text, struct side *s)
{
	struct lnx_refusal r = { .text = text };

	*s = (struct side){ .text = *text ? text : NULL };
	if (!*text)
		return;
	s->parsed = !lnx_nid_pattern_parse(nets, (struct lnx_span){ text, strlen(text) },
					   &s->pattern, &r);
	s->one = s->parsed && lnx_nid_pattern_one(&s->pattern, &s->nid);
}

static bool selects(const struct lnx_nets *nets, const struct side *s, const char *text)
{
	struct side rule;
	unsigned i;

	if (!s->text || !strcmp(s->text, text))
		return true;
	parse(nets, text, &rule);
	if (!s->parsed || !rule.parsed)
		return false;
	if (rule.pattern.n == s->pattern.n &&
	    !memcmp(rule.pattern.part, s->pattern.part,
		    s->pattern.n * sizeof(s->pattern.part[0])))
		return true;
	for (i = 0; s->one && i < rule.pattern.n; i++)
		if (lnx_nid_part_has(&rule.pattern.part[i], &s->nid))
			return true;
	return false;
}

static void read_nets(const struct lnx_snap_ep *e, struct lnx_nets *nets)
{
	const struct lnx_state_param *p = lnx_snap_param(e, "nets");
	struct lnx_refusal r = { .text = p ? p->value : "" };

	if (!p || (p->flags & LNX_STATE_PARAM_CUT) || lnx_nets_parse(p->value, nets, &r))
		memset(nets, 0, sizeof(*nets));
}

static void copy(const struct lnx_state_rule *s, struct lnx_policy_rule *rule)
{
	*rule = (struct lnx_policy_rule){
		.id = s->id, .index = s->index, .priority = s->priority, .type = s->type,
		.state = s->state, .rails = s->rails, .remote = s->remote,
		.matched = s->matched, .decides = s->decides,
	};
	memcpy(rule->src, s->src, sizeof(rule->src));
	memcpy(rule->dst, s->dst, sizeof(rule->dst));
	memcpy(rule->rte, s->rte, sizeof(rule->rte));
}

int lnxctl_rules_published(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
			   const struct lnx_policy_rule *filter,
			   struct lnx_policy_rule **rules, size_t *n)
{
	struct lnx_nets *nets = lnx_must(malloc(sizeof(*nets)));
	struct side *side = lnx_must(calloc(LNX_RULE_SIDES, sizeof(*side)));
	unsigned i;

	read_nets(e, nets);
	if (filter) {
		parse(nets, filter->src, &side[LNX_RULE_SRC]);
		parse(nets, filter->dst, &side[LNX_RULE_DST]);
		parse(nets, filter->rte, &side[LNX_RULE_RTE]);
	}
	*rules = lnx_must(calloc(e->nrule + 1, sizeof(**rules)));
	for (*n = 0, i = 0; i < e->nrule; i++) {
		const struct lnx_state_rule *s = &e->rule[i];

		if (filter && ((filter->id && filter->id != s->id) ||
			       (filter->index != LNX_POLICY_UNSET && filter->index != s->index)))
			continue;
		if (selects(nets, &side[LNX_RULE_SRC], s->src) &&
		    selects(nets, &side[LNX_RULE_DST], s->dst) &&
		    selects(nets, &side[LNX_RULE_RTE], s->rte))
			copy(s, &(*rules)[(*n)++]);
	}
	free(side);
	free(nets);
	if (*n || !filter || (!filter->id && filter->index == LNX_POLICY_UNSET))
		return 0;
	lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "there is no rule with %s %u that is one of "
		    "the rules selected", filter->id ? "id" : "idx",
		    filter->id ? filter->id : filter->index);
	return -ENOENT;
}
