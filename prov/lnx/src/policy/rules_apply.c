/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the rules mean for our rails and for those of a peer.  See rules.h.
 *
 * A rule counts what it applies to.  The counts of peers' rails belong to one
 * generation: a table of an older one is not counted any more, and one that is renewed
 * or freed is taken off first if it is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "policy/rules_inside.h"

static bool is_local(const struct lnx_rule *rule)
{
	return rule->n[LNX_RULE_SRC] && !rule->n[LNX_RULE_DST];
}

/* ---- our rails ---- */

static void apply_local(struct lnx_rules *rules, unsigned index)
{
	const struct lnx_rule *rule = rules->list.rule[index];
	struct rule_use *use = &rules->use[index];
	unsigned i;

	for (i = 0; i < rules->n_rail; i++) {
		struct lnx_rule_local *l = &rules->local[i];
		bool net = rule->kind == LNX_RULE_NET;
		uint32_t *by = net ? &l->net_rule : &l->rail_rule;

		if (!lnx_rule_has(rule, LNX_RULE_SRC, &rules->rail[i], &rules->ops))
			continue;
		use->local |= 1u << i;
		if (!is_local(rule))
			continue;
		use->matched++;
		if (*by)
			continue;	/* a rule before it decides */
		use->decides++;
		*by = rule->id;
		*(net ? &l->net : &l->rail) = rule->priority;
	}
}

void lnx_rules_changed(struct lnx_rules *rules)
{
	unsigned i;

	if (!++rules->generation)
		rules->generation = 1;
	rules->n_dst = 0;
	memset(rules->use, 0, sizeof(rules->use));
	for (i = 0; i < rules->n_rail; i++)
		rules->local[i] = (struct lnx_rule_local){
			.net = LNX_RULE_NONE, .rail = LNX_RULE_NONE,
		};
	for (i = 0; i < rules->list.n; i++) {
		rules->n_dst += rules->list.rule[i]->n[LNX_RULE_DST] != 0;
		if (rules->list.rule[i]->n[LNX_RULE_SRC])
			apply_local(rules, i);
	}
}

/* Does any rule say something of ports of ours? */
static bool ports_count(const struct lnx_rules *rules)
{
	const struct lnx_nid_part *part;
	unsigned i, k;

	for (i = 0; i < rules->list.n; i++) {
		part = lnx_rule_parts(rules->list.rule[i], LNX_RULE_SRC);
		for (k = 0; k < rules->list.rule[i]->n[LNX_RULE_SRC]; k++)
			if (!lnx_expr_any(&part[k].port))
				return true;
	}
	return false;
}

static bool same_rail(struct lnx_nid a, const struct lnx_nid *b, bool ports)
{
	if (!ports)
		a.port = b->port;
	return !memcmp(&a, b, sizeof(a));
}

void lnx_rules_rails(struct lnx_rules *rules, const struct lnx_nid *nid, unsigned n)
{
	bool ports = ports_count(rules), same;
	unsigned i;

	n = LNX_MIN(n, (unsigned)LNX_RULE_RAILS);
	same = n == rules->n_rail;
	for (i = 0; i < n; i++) {
		same = same && same_rail(rules->rail[i], &nid[i], ports);
		rules->rail[i] = nid[i];
	}
	rules->n_rail = n;
	if (!same)
		lnx_rules_changed(rules);
}

void lnx_rules_routing(struct lnx_rules *rules, bool routing)
{
	if (routing == rules->routing)
		return;
	rules->routing = routing;
	lnx_rules_changed(rules);
}

const struct lnx_rule_local *lnx_rules_local(const struct lnx_rules *rules,
					     unsigned rail)
{
	return &rules->local[rail];
}

uint64_t lnx_rules_ops(const struct lnx_rules *rules)
{
	return rules->ops;
}

/* ---- rails of peers ---- */

bool lnx_rules_stale(const struct lnx_rules *rules, const struct lnx_rule_peer *table)
{
	return table ? table->generation != rules->generation : rules->n_dst != 0;
}

static void set_matched(struct lnx_rule_remote *remote, unsigned index)
{
	remote->matched[index / 64] |= 1ULL << index % 64;
}

/* Does a rule that matches the dst apply, so that it hides those behind it? */
static bool applies(const struct lnx_rules *rules, unsigned index)
{
	const struct lnx_rule *rule = rules->list.rule[index];

	/* A pair without a rail of ours waits for one, and hides nothing. */
	return rule->kind != LNX_RULE_PAIR || rules->use[index].local;
}

/* Is one of these rails of ours (bits) of its net? */
static bool is_joined(const struct lnx_rules *rules, uint32_t local, const struct lnx_nid *nid)
{
	unsigned i;

	for (i = 0; i < rules->n_rail; i++)
		if ((local >> i & 1) && rules->rail[i].prov == nid->prov &&
		    rules->rail[i].group == nid->group)
			return true;
	return false;
}

static void apply_remote(struct lnx_rules *rules, unsigned index,
			 const struct lnx_nid *nid, struct lnx_rule_remote *remote)
{
	const struct lnx_rule *rule = rules->list.rule[index];

	if (!lnx_rule_has(rule, LNX_RULE_DST, nid, &rules->ops))
		return;
	set_matched(remote, index);
	if (!applies(rules, index) || remote->by[rule->kind])
		return;
	remote->by[rule->kind] = (uint16_t)(index + 1);
	if (rule->kind == LNX_RULE_NET)
		remote->net = rule->priority;
	else if (rule->kind == LNX_RULE_REMOTE)
		remote->remote = rule->priority;
	if (rule->kind != LNX_RULE_PAIR)
		return;
	remote->preferred = rules->use[index].local;
	remote->joined = is_joined(rules, remote->preferred, nid);
}

/* Add what a table says to the counts of rules, or take it off (add: -1). */
static void count(struct lnx_rules *rules, const struct lnx_rule_peer *table, int add)
{
	unsigned i, k;

	for (i = 0; i < table->n; i++) {
		const struct lnx_rule_remote *r = &table->remote[i];

		for (k = 0; k < rules->list.n; k++) {
			struct rule_use *use = &rules->use[k];

			if (!(r->matched[k / 64] >> k % 64 & 1))
				continue;
			use->remote += (uint64_t)add;
			if (applies(rules, k))
				use->matched += (uint64_t)add;
			if (r->by[rules->list.rule[k]->kind] != k + 1)
				continue;
			use->decides += (uint64_t)add;
			if (r->joined)
				use->joined += (uint64_t)add;
		}
	}
}

static void uncount(struct lnx_rules *rules, const struct lnx_rule_peer *table)
{
	if (table && table->generation == rules->generation)
		count(rules, table, -1);
}

int lnx_rules_peer(struct lnx_rules *rules, struct lnx_rule_peer **table,
		   const struct lnx_nid *nid, unsigned n)
{
	struct lnx_rule_peer *t = *table;
	unsigned i, k;

	uncount(rules, t);
	if (!rules->n_dst || !t || t->n != n) {
		free(t);
		*table = NULL;
		if (!rules->n_dst)
			return 0;
		t = malloc(sizeof(*t) + n * sizeof(t->remote[0]));
		if (!t)
			return -ENOMEM;
	}
	t->generation = rules->generation;
	t->n = n;
	memset(t->remote, 0, n * sizeof(t->remote[0]));
	for (i = 0; i < n; i++) {
		t->remote[i].net = t->remote[i].remote = LNX_RULE_NONE;
		for (k = 0; k < rules->list.n; k++)
			if (rules->list.rule[k]->n[LNX_RULE_DST])
				apply_remote(rules, k, &nid[i], &t->remote[i]);
	}
	count(rules, t, 1);
	*table = t;
	return 0;
}

void lnx_rules_leave(struct lnx_rules *rules, struct lnx_rule_peer *table)
{
	uncount(rules, table);
	free(table);
}

bool lnx_rules_gateway(const struct lnx_rules *rules,
		       const struct lnx_rule_remote *remote,
		       const struct lnx_nid *gateway)
{
	unsigned by = remote->by[LNX_RULE_GATEWAY];
	uint64_t ops = 0;

	return rules->routing && by && by <= rules->list.n &&
	       lnx_rule_has(rules->list.rule[by - 1], LNX_RULE_RTE, gateway, &ops);
}
