/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Renews the tables of all peers after a change, a few at a time.  See rules.h. */
#include "policy/rules.h"

#define NIDS_MAX	32		/* rails of a peer that count */
#define RANK_OPS	32u		/* a ranking takes as long as so many comparisons */

/* True: renewed was called. */
static bool renew(struct lnx_rules *rules, const struct lnx_rules_peers *peers,
		  void *peer)
{
	struct lnx_rule_peer **table = peers->table(peers->arg, peer);
	struct lnx_nid nid[NIDS_MAX];
	unsigned n;

	if (lnx_rules_stale(rules, *table)) {
		n = peers->nids(peers->arg, peer, nid, NIDS_MAX);
		/* Without memory it stays stale: its next use tries again. */
		if (!n || lnx_rules_peer(rules, table, nid, n))
			return false;
	}
	peers->renewed(peers->arg, peer);
	return true;
}

bool lnx_rules_sweep(struct lnx_rules *rules, struct lnx_rules_sweep *sweep,
		     const struct lnx_rules_peers *peers, uint64_t ops)
{
	uint64_t end = lnx_rules_ops(rules) + ops, seen = 0;

	if (sweep->generation != lnx_rules_generation(rules)) {
		sweep->generation = lnx_rules_generation(rules);
		sweep->at = peers->next(peers->arg, NULL);
	}
	while (sweep->at) {
		seen += renew(rules, peers, sweep->at) ? RANK_OPS : 0;
		sweep->at = peers->next(peers->arg, sweep->at);
		if (lnx_rules_ops(rules) + ++seen >= end)
			break;
	}
	return !sweep->at;
}

void lnx_rules_sweep_forget(struct lnx_rules_sweep *sweep,
			    const struct lnx_rules_peers *peers, void *peer)
{
	if (sweep->at == peer)
		sweep->at = peers->next(peers->arg, peer);
}
