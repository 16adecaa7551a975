/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes the rules of an endpoint equal to a list.  What has to go is deleted and what is
 * missing is inserted, each in as few requests as have room for it; the longest part of
 * the rules that is in the same order stays.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/import.h"

/* Rules in one request. */
#define BATCH	((unsigned)((LNX_CLIENT_REQUEST - sizeof(struct lnx_policy_block)) / \
			    sizeof(struct lnx_policy_rule)))

struct work {
	struct lnxctl_rules *r;
	const struct lnx_policy_rule *live;
	struct lnx_policy_rule *want;	/* with their indexes */
	unsigned nlive, nwant;
	bool *keep_live, *keep_want;
	struct lnx_policy_rule batch[BATCH];
	unsigned nbatch;
};

static bool same(const struct lnx_policy_rule *a, const struct lnx_policy_rule *b)
{
	return !strcmp(a->src, b->src) && !strcmp(a->dst, b->dst) && !strcmp(a->rte, b->rte);
}

static void take(const struct lnx_rule_spec *spec, unsigned index,
		 struct lnx_policy_rule *rule)
{
	char *const to[LNX_RULE_SIDES] = { rule->src, rule->dst, rule->rte };
	bool prefers = spec->side[LNX_RULE_RTE] ||
		       (spec->side[LNX_RULE_SRC] && spec->side[LNX_RULE_DST]);
	unsigned i;

	*rule = (struct lnx_policy_rule){ .index = index };
	rule->priority = prefers ? LNX_POLICY_UNSET :
			 spec->has_priority ? spec->priority : 0;
	for (i = 0; i < LNX_RULE_SIDES; i++)
		if (spec->side[i])
			snprintf(to[i], LNX_POLICY_TEXT, "%s", spec->side[i]);
}

/* Mark the longest common subsequence. */
static void keep(struct work *w)
{
	unsigned n = w->nlive, m = w->nwant, i, k;
	uint32_t *len = lnx_must(calloc((n + 1ul) * (m + 1ul), sizeof(*len)));

#define LEN(i, k)	len[(size_t)(i) * (m + 1ul) + (k)]
	for (i = n; i-- > 0;)
		for (k = m; k-- > 0;)
			LEN(i, k) = same(&w->live[i], &w->want[k]) ?
				    LEN(i + 1, k + 1) + 1 :
				    LNX_MAX(LEN(i + 1, k), LEN(i, k + 1));
	for (i = k = 0; i < n && k < m;) {
		if (same(&w->live[i], &w->want[k]))
			w->keep_live[i++] = w->keep_want[k++] = true;
		else if (LEN(i + 1, k) >= LEN(i, k + 1))
			i++;
		else
			k++;
	}
#undef LEN
	free(len);
}

static bool flush(struct work *w, bool add)
{
	unsigned n = w->nbatch;
	int ret = 0;

	w->nbatch = 0;
	if (n)
		ret = add ? lnx_policy_add(w->r->policy, w->batch, n, NULL) :
			    lnx_policy_del(w->r->policy, w->batch, n, NULL);
	if (ret)
		lnxctl_rules_fail(w->r, ret);
	return !ret;
}

static bool put(struct work *w, bool add, const struct lnx_policy_rule *rule)
{
	w->batch[w->nbatch++] = *rule;
	return w->nbatch < BATCH || flush(w, add);
}

static bool delete_others(struct work *w)
{
	unsigned i;

	for (i = 0; i < w->nlive; i++) {
		struct lnx_policy_rule rule = { .id = w->live[i].id,
						.index = LNX_POLICY_UNSET,
						.priority = LNX_POLICY_UNSET };

		if (!w->keep_live[i] && !put(w, false, &rule))
			return false;
	}
	return flush(w, false);
}

/* In ascending order each index is the final one. */
static bool insert_missing(struct work *w)
{
	unsigned i, k = 0;

	for (i = 0; i < w->nwant; i++) {
		while (w->keep_want[i] && !w->keep_live[k])
			k++;
		/* To add a rule again is to give it another priority. */
		if (w->keep_want[i] && w->live[k++].priority == w->want[i].priority)
			continue;
		if (!put(w, true, &w->want[i]))
			return false;
	}
	return flush(w, true);
}

static bool check(struct work *w)
{
	struct lnx_policy_rule *now = NULL;
	size_t n = 0, i;
	bool good;
	int ret = lnx_policy_show(w->r->policy, NULL, &now, &n);

	if (ret) {
		lnxctl_rules_fail(w->r, ret);
		return false;
	}
	good = n == w->nwant;
	for (i = 0; good && i < n; i++)
		good = same(&now[i], &w->want[i]) && now[i].priority == w->want[i].priority;
	free(now);
	if (!good)
		lnxctl_fail(w->r->c, w->r->p, LNXCTL_REFUSED, -EAGAIN, "its rules are not those of "
			    "the file: something else changes them at the same time; try "
			    "again");
	return good;
}

static bool replace(struct lnxctl_rules *r, const struct lnx_config *config)
{
	struct lnx_policy_rule *live = NULL;
	struct work *w = lnx_must(calloc(1, sizeof(*w)));
	size_t n = 0;
	unsigned i;
	bool good = false;
	int ret;

	w->r = r;
	ret = lnx_policy_show(r->policy, NULL, &live, &n);
	if (ret) {
		lnxctl_rules_fail(r, ret);
		free(w);
		return false;
	}
	w->live = live;
	w->nlive = (unsigned)n;
	w->nwant = config->n_rule;
	w->want = lnx_must(calloc(w->nwant + 1ul, sizeof(*w->want)));
	w->keep_live = lnx_must(calloc(w->nlive + 1ul, sizeof(*w->keep_live)));
	w->keep_want = lnx_must(calloc(w->nwant + 1ul, sizeof(*w->keep_want)));
	for (i = 0; i < w->nwant; i++)
		take(&config->rule[i].spec, i, &w->want[i]);
	keep(w);
	good = delete_others(w) && insert_missing(w) && check(w);
	free(w->keep_want);
	free(w->keep_live);
	free(w->want);
	free(live);
	free(w);
	return good;
}

bool lnxctl_import_rules(struct lnxctl *c, struct lnx_proc *p,
			 const struct lnx_snap_ep *e, const struct lnx_config *config)
{
	struct lnxctl_rules r;
	bool good;

	if (!lnxctl_rules_open(&r, c, p, e))
		return false;
	good = replace(&r, config);
	lnxctl_rules_close(&r);
	return good;
}
