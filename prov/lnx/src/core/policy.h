/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rules of the user (policy/rules.h) of one endpoint: where they come from, and the
 * names of rails that they are applied to.  rel/order.h makes the order of paths of them.
 *
 * Our rails have in rules the index that they have among the network rails, those of
 * a peer the index that they have in its address.
 *
 * All functions that get an endpoint or peer: owner lock held.
 */
#ifndef LNX_CORE_POLICY_H
#define LNX_CORE_POLICY_H

#include "obj/ep.h"

/* Are the nets, rules and routes of the user right?  Then 0; otherwise it warns of the first
 * error, once, and returns -FI_EINVAL, or -FI_ENOMEM. */
int lnx_policy_check(const struct lnx_conf *conf);

/* Give ep its nets, and its rules if there are any.  -FI_EINVAL, with a warning;
 * -FI_ENOMEM. */
int lnx_ep_policy_open(struct lnx_ep *ep);
/* All peers are gone. */
void lnx_ep_policy_close(struct lnx_ep *ep);

/* The rules, which are made if there are none yet, with our rails; NULL: no memory. */
struct lnx_rules *lnx_policy_rules(struct lnx_ep *ep);

/*
 * The rails of ep have changed: they were opened, opened anew, or there are more.  They get
 * their credits (core/credits.h).
 * -FI_EINVAL, with a warning: they do not fit the nets of the user.  Then rules are not
 * applied to those that do not.
 */
int lnx_policy_rails(struct lnx_ep *ep);

/* Something has changed that the order of paths depends on. */
LNX_INLINE void lnx_policy_stale(struct lnx_ep *ep)
{
	if (!++ep->policy.generation)
		ep->policy.generation = 1;
}

/*
 * Apply the rules to the rails of peer, which are r; NULL: those that lnx_peer_rails
 * knows.  Does nothing if there are no rules for it; again: although no rule changed.
 */
void lnx_policy_peer(struct lnx_peer *peer, const struct lnx_rails *r, bool again);
/* peer->choice, which is made if needed; NULL: no memory. */
struct lnx_peer_choice *lnx_policy_of(struct lnx_peer *peer);
/* What rules say of peer's rails, or NULL. */
LNX_INLINE const struct lnx_rule_peer *lnx_policy_table(const struct lnx_peer *peer)
{
	return peer->choice ? peer->choice->table : NULL;
}

/* The names of peer's rails by their index in its address; how many places of nid are
 * used.  0: it has no paths. */
unsigned lnx_policy_nids(const struct lnx_peer *peer, const struct lnx_rails *r,
			 struct lnx_nid nid[LNX_WIRE_RAILS_MAX]);

/* The name of a rail, with the nets of the user.  -EINVAL: it is malformed. */
int lnx_policy_nid(const struct lnx_ep *ep, const struct lnx_addr_rail *rail,
		   struct lnx_nid *nid);

/* The name of its net ("tcp1"), and of the interface of a network rail.  False: it has no address
 * of its provider. */
bool lnx_policy_net(const struct lnx_rail *rail, char *buf, size_t size);
const char *lnx_policy_interface(const struct lnx_rail *rail);

/* Which of the network rails is it, or does the leg send over? */
unsigned lnx_policy_index(const struct lnx_ep *ep, const struct lnx_rail *rail);

/* The peers of ep for lnx_rules_sweep, without `renewed`. */
struct lnx_rules_peers lnx_policy_peers(struct lnx_ep *ep);
/* The peer is about to be freed. */
void lnx_policy_leave(struct lnx_peer *peer);

#endif
