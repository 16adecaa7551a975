/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Routes of the user (conf/routes.h): FI_LNX_ROUTES, or else `route` of the configuration.
 * The same text is for all nodes of a cluster, so that an endpoint passes over routes to
 * nets that are local to it, over gateways that none of its rails reaches, and over itself.
 */
#ifndef LNX_CORE_ROUTES_H
#define LNX_CORE_ROUTES_H

#include "conf/routes.h"
#include "obj/ep.h"
#include "policy/route.h"

/* Does the user want routes? */
bool lnx_routes_wanted(const struct lnx_conf *conf);

/* The route key: 0 if there is none.  -FI_EINVAL, after a warning. */
int lnx_routes_user_key(const struct lnx_conf *conf, uint64_t *key);

/* Are they right, as far as that can be told without rails?  0; -FI_EINVAL, after a warning;
 * -FI_ENOMEM.  nets: as read from conf. */
int lnx_routes_user_check(const struct lnx_conf *conf, const struct lnx_nets *nets);

/*
 * The routes for the rails of ep go into t, which is initialised and empty.  Others are
 * passed over.  0; -FI_EINVAL, after a warning; -FI_ENOMEM.  Owner lock held.
 */
int lnx_routes_user_read(const struct lnx_ep *ep, struct lnx_routes *t);

/* Our rails, by which routes are checked (conf/routes.h).  Owner lock held. */
struct lnx_routes_own {
	struct lnx_route_host host;	/* its rail is nid */
	struct lnx_nid nid[LNX_RAILS_MAX];
};
void lnx_routes_own(const struct lnx_ep *ep, struct lnx_routes_own *own);

struct lnx_gw;
/* The gateway of a route in the table of ep, and whether that is up, judged beside the others
 * to its net.  Owner lock held. */
struct lnx_gw *lnx_routes_gateway(const struct lnx_ep *ep, const struct lnx_route *route);
enum lnx_route_why lnx_routes_why(const struct lnx_ep *ep, const struct lnx_route *route,
				  uint64_t now);

/* The route that a path over a leg takes; NULL: it was deleted.  Owner lock held. */
struct lnx_route *lnx_routes_of_path(const struct lnx_path *path);

/* Does a route over gw lead to that rail of a peer, or is it not known which net that is in?
 * Owner lock held. */
bool lnx_routes_lead_back(const struct lnx_gw *gw, const struct lnx_addr_rail *from);
/* The text of the route that would lead back for the last frame for which none does (all->asym);
 * words: hop and priority, with a space before each.  False: there is none, or one leads back
 * by now.  Owner lock held. */
LNX_COLD bool lnx_routes_missing(const struct lnx_gateways *all, const char *words,
				 char text[LNX_ROUTE_TEXT_MAX]);
/* FI_LNX_LEARN_ROUTES: add that route.  True: there is a route more, and paths to peers have to
 * follow.  Owner lock held. */
LNX_COLD bool lnx_routes_learn(struct lnx_gateways *all);

/* What policy/route.h compares of it.  False: its route was deleted; then *out is the worst that
 * there is.  table: what rules say of the peer, or NULL.  Owner lock held. */
struct lnx_rule_peer;
bool lnx_routes_look(const struct lnx_path *path, const struct lnx_rule_peer *table,
		     uint64_t now, struct lnx_route_choice *out);

/*
 * Legs over which the rails of peer, r, are reached: to each rail the best ones
 * (lnx_route_pick), those over routes that are up first, and as many to one rail as to another.
 * Of equal ones those that it has a path over come first.  Writes at most max, and returns how
 * many it wrote.  Owner lock held.
 */
struct lnx_path_choice;
unsigned lnx_routes_choose(const struct lnx_peer *peer, const struct lnx_rails *r,
			   struct lnx_path_choice *out, unsigned max);

#endif
