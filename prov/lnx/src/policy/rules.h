/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rules of an endpoint: an ordered list, and what it means for each rail.  Does no
 * I/O.
 *
 * A rule has an index, its place in the order, and an id.  The index counts from 0 and
 * changes when rules are inserted or deleted before it; the id is above 0, never
 * changes, and is never used again.  Of the rules that apply to a rail, the one with
 * the lowest index counts, each kind for itself.
 *
 * Rules say something of what is there now and of what comes later.  All that they say
 * is computed anew after a change, so that nothing is left of a deleted rule:
 *
 *	of our rails		at once, by the call that changes rules or rails
 *	of a peer's rails	by lnx_rules_peer, when the peer joins and whenever
 *				lnx_rules_stale says so
 *
 * Each peer that is in use has a struct lnx_rule_peer, unless no rule has a dst.  What
 * that costs is rules times rails of the peer; nothing is looked up per message.  After
 * a change lnx_rules_sweep renews the tables of all peers a few at a time, so that no
 * pass takes long; a peer that is used before its turn is renewed on its own.
 *
 * The owner lock of the endpoint is held in all calls.  Each change adds one to the
 * generation, except those that change nothing.
 */
#ifndef LNX_RULES_H
#define LNX_RULES_H

#include "policy/rule.h"

#define LNX_RULES_MAX	256
#define LNX_RULE_RAILS	32		/* of one node, at most */
/* Comparisons in one call of lnx_rules_sweep that are well below 1 ms. */
#define LNX_RULES_SWEEP	8192u

struct lnx_rules;

/* nets must outlive the rules.  NULL: no memory. */
struct lnx_rules *lnx_rules_create(const struct lnx_nets *nets);
/* Tables of peers are freed before.  NULL is fine. */
void lnx_rules_destroy(struct lnx_rules *rules);

/* Never 0; changes with the rules and our rails. */
uint32_t lnx_rules_generation(const struct lnx_rules *rules);
const struct lnx_nets *lnx_rules_nets(const struct lnx_rules *rules);

/* ---- changes ---- */

/*
 * Add a rule: before the one with spec->index, or behind all others.  *id (may be NULL)
 * becomes its id.  If there is one of the same kind with the same patterns and another
 * priority, this only gets the new priority, and keeps its index and id.
 *
 *	-EALREADY	it is there already; *id is the id of that one
 *	-EINVAL		as lnx_rule_make
 *	-ENOSPC		LNX_RULES_MAX are there, or ids are used up
 *	-ENOMEM
 *
 * After an error nothing has changed, and r->why has a sentence.
 */
int lnx_rules_add(struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		  uint32_t *id, struct lnx_refusal *r);

enum lnx_rules_by { LNX_RULES_ALL, LNX_RULES_BY_INDEX, LNX_RULES_BY_ID,
		    LNX_RULES_EXACT };

/* Which rule is meant. */
struct lnx_rules_which {
	enum lnx_rules_by by;
	uint32_t number;		/* BY_INDEX, BY_ID */
	struct lnx_rule_spec spec;	/* EXACT: its patterns, and its priority if one
					 * is given */
};

/*
 * Several changes that are made together or not at all.  One edit at a time; until it
 * ends, the rules are as before.  ids that an aborted edit gave out are not used again.
 */
struct lnx_rules_edit;
struct lnx_rules_edit *lnx_rules_edit(struct lnx_rules *rules);	/* NULL: no memory */
int lnx_rules_edit_add(struct lnx_rules_edit *edit, const struct lnx_rule_spec *spec,
		       uint32_t *id, struct lnx_refusal *r);
/* Delete a rule, or all; of these *n (may be NULL) becomes the number.  -ENOENT: there is
 * none; that is no error for ALL.  -EINVAL, -ENOMEM: as lnx_rule_make.  r as above. */
int lnx_rules_edit_del(struct lnx_rules_edit *edit,
		       const struct lnx_rules_which *which, unsigned *n,
		       struct lnx_refusal *r);
void lnx_rules_commit(struct lnx_rules_edit *edit);
void lnx_rules_abort(struct lnx_rules_edit *edit);

/* Add all rules of a text (policy/rule.h), or none: as lnx_rules_add, with r->text the
 * text; but a rule that was there before the text, with that priority, is no error. */
int lnx_rules_add_text(struct lnx_rules *rules, const char *text,
		       struct lnx_refusal *r);

/*
 * Make the list equal to spec[0..n-1], whose has_index does not count.  A rule with the
 * same kind and patterns as before keeps its id.  An error is one of lnx_rules_add, and
 * *which (may be NULL) is the index of the spec that it is about; nothing has changed.
 */
int lnx_rules_replace(struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		      unsigned n, unsigned *which, struct lnx_refusal *r);

/*
 * What lnx_rules_replace would change, a line each, or nothing:
 *
 *	"- TEXT"	it would be deleted
 *	"+ TEXT"	it would be added
 *	"~ TEXT: priority A -> B"
 *	"> TEXT: idx A -> B"	the order would change
 *
 * *len becomes the length without NUL, as snprintf.  Errors as lnx_rules_replace.
 */
int lnx_rules_diff(const struct lnx_rules *rules, const struct lnx_rule_spec *spec,
		   unsigned n, char *buf, size_t size, size_t *len, unsigned *which,
		   struct lnx_refusal *r);

/* ---- what there is ---- */

enum lnx_rule_state {
	LNX_RULE_IN_USE,		/* something is as it says */
	LNX_RULE_SHADOWED,		/* rules before it decide for all it matches */
	LNX_RULE_WAITING,		/* it matches nothing yet */
	LNX_RULE_NO_ROUTING,		/* it waits until routing is used */
	LNX_RULE_APART,			/* it prefers pairs between which there is no path: no
					 * two are of one net, and there is no routing */
};

struct lnx_rule_info {
	const struct lnx_rule *rule;	/* until the next change */
	uint32_t index;
	enum lnx_rule_state state;
	uint32_t rails;			/* of ours that match its src */
	uint64_t remote;		/* rails of peers in use that match its dst */
	uint64_t matched;		/* for which it could decide */
	uint64_t decides;		/* of these, those it decides for */
};

unsigned lnx_rules_count(const struct lnx_rules *rules);
/* -ENOENT: there is no such index. */
int lnx_rules_info(const struct lnx_rules *rules, uint32_t index,
		   struct lnx_rule_info *info);

/*
 * What it applies to, as "2 rails of ours", "3 of 5 rails of peers: rules before it
 * decide for the others" or "nothing yet: it waits".  Length without NUL, as snprintf.
 */
size_t lnx_rule_applies(const struct lnx_rule_info *info, char *buf, size_t size);

/*
 * Rules to show.  A pattern selects those with an equal one; one that names a single
 * rail also those whose pattern has that rail.
 */
struct lnx_rules_filter {
	bool has_index;
	uint32_t index;
	bool has[LNX_RULE_SIDES];
	bool one[LNX_RULE_SIDES];
	struct lnx_pattern side[LNX_RULE_SIDES];
	struct lnx_nid nid[LNX_RULE_SIDES];
};

/* From a spec without priority.  0, or -EINVAL with r filled as lnx_rule_make does. */
int lnx_rules_filter(const struct lnx_nets *nets, const struct lnx_rule_spec *spec,
		     struct lnx_rules_filter *out, struct lnx_refusal *r);

/* Index of the first rule, from the given one on, that it selects; or -ENOENT. */
int lnx_rules_next(const struct lnx_rules *rules, const struct lnx_rules_filter *filter,
		   uint32_t from);

/* ---- our rails (policy/rules_apply.c) ---- */

/*
 * These are our rails now; their index is that of bits.  n is at most LNX_RULE_RAILS.
 * The same ones again change nothing, nor do other ports, unless a rule has ports.
 */
void lnx_rules_rails(struct lnx_rules *rules, const struct lnx_nid *nid, unsigned n);

/* Is there routing, so that gateway rules apply?  Initially not. */
void lnx_rules_routing(struct lnx_rules *rules, bool routing);

struct lnx_rule_local {
	uint32_t net, rail;		/* priorities, or LNX_RULE_NONE */
	uint32_t net_rule, rail_rule;	/* ids of the rules that say so; 0: none */
};

/* Of our rail with that index, which must exist; valid until the next change. */
const struct lnx_rule_local *lnx_rules_local(const struct lnx_rules *rules,
					     unsigned rail);

/* ---- rails of peers ---- */

struct lnx_rule_remote {
	uint32_t net, remote;		/* priorities, or LNX_RULE_NONE */
	uint32_t preferred;		/* our rails that a pair rule prefers, bits */
	/* 1 + index of the rule that decides, by kind; 0: none. */
	uint16_t by[LNX_RULE_KINDS];
	bool joined;			/* one of those preferred is of its net */
	uint64_t matched[LNX_RULES_MAX / 64];	/* by index */
};

/* All rails of one peer. */
struct lnx_rule_peer {
	uint32_t generation;		/* 0: not computed yet */
	uint32_t n;
	struct lnx_rule_remote remote[];
};

/* Does the table of a peer (NULL: it has none) need lnx_rules_peer? */
bool lnx_rules_stale(const struct lnx_rules *rules, const struct lnx_rule_peer *table);

/*
 * Make or renew the table of a peer with these rails; *table is NULL or a former
 * result. It becomes NULL if no rule has a dst.  0; -ENOMEM: no rule counts for the
 * peer, and it stays stale.
 */
int lnx_rules_peer(struct lnx_rules *rules, struct lnx_rule_peer **table,
		   const struct lnx_nid *nid, unsigned n);

/* The peer is gone: free its table, which may be NULL. */
void lnx_rules_leave(struct lnx_rules *rules, struct lnx_rule_peer *table);

/* Does a rule prefer that gateway for the rail of a peer?  False without routing. */
bool lnx_rules_gateway(const struct lnx_rules *rules,
		       const struct lnx_rule_remote *remote,
		       const struct lnx_nid *gateway);

/* Comparisons of a pattern with a rail that were made so far. */
uint64_t lnx_rules_ops(const struct lnx_rules *rules);

/* ---- all peers, a few at a time (policy/rules_sweep.c) ---- */

/* The caller's peers, for a sweep. */
struct lnx_rules_peers {
	void *arg;
	/* The first peer (NULL), or the one behind peer; NULL: there are no more. */
	void *(*next)(void *arg, void *peer);
	/* Write at most max rails of the peer; returns how many.  0: it is not in use,
	 * and gets no table. */
	unsigned (*nids)(void *arg, void *peer, struct lnx_nid *nid, unsigned max);
	struct lnx_rule_peer **(*table)(void *arg, void *peer);
	/* Its table says what the rules say now, or it needs none: its ranking must be
	 * made anew. */
	void (*renewed)(void *arg, void *peer);
};

/* Set up with { 0 }. */
struct lnx_rules_sweep {
	uint32_t generation;		/* that it is for; 0: it has not begun */
	void *at;			/* the next peer; NULL: it is done */
};

/*
 * Go on with renewing tables, until about so many comparisons were made or peers looked
 * at, but at least one peer.  True when all are renewed.  Begins again after a change;
 * cheap while there is nothing to do.
 */
bool lnx_rules_sweep(struct lnx_rules *rules, struct lnx_rules_sweep *sweep,
		     const struct lnx_rules_peers *peers, uint64_t ops);

/* A peer will be taken out of the list: call it before that. */
void lnx_rules_sweep_forget(struct lnx_rules_sweep *sweep,
			    const struct lnx_rules_peers *peers, void *peer);

#endif
