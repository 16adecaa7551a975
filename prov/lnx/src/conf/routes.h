/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Routes: which gateways lead to nets that no rail of ours is in.  Does no I/O.
 *
 *	routes  ::= route (';' route)*
 *	route   ::= net word* 'via' NID (',' NID)*
 *	word    ::= 'hop=' 1..255 | 'priority=' N
 *	route   ::= net [hops] NID [':' priority] (NID [':' priority])*		LNet's form
 *
 * As in "ib1 hop=2 priority=1 via 10.0.0.1@tcp,10.0.0.2@tcp; ib2 via 10.0.0.[1-4]@tcp",
 * or "ib1 2 10.0.0.1@tcp:1 10.0.0.2@tcp:1".  Net and NIDs are those of conf/nid.h; sets of
 * numbers in a NID stand for several gateways, at most LNX_ROUTE_EXPAND.  Each gateway
 * makes a route of its own.
 *
 * hop: how many gateways the way leads over; not given it is shown as -1 and compared
 * as 1.  priority: 0, the best and the default, to LNX_RULE_PRIORITY_MAX.
 *
 * A table keeps its routes in an order in which new ones are inserted at random places,
 * so that the nodes of a cluster, which all have the same configuration, begin with
 * different gateways.  Which places, a seed decides.
 */
#ifndef LNX_ROUTES_H
#define LNX_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refuse.h"
#include "conf/nets.h"
#include "conf/nid.h"

#define LNX_ROUTES_MAX		4096	/* of a table */
#define LNX_ROUTE_EXPAND	256	/* gateways that one pattern stands for */
#define LNX_ROUTE_HOP_MAX	255
#define LNX_ROUTE_TEXT_MAX	320	/* canonical text of one route, with NUL */
/* The port of gateways whose NID has none. */
#define LNX_ROUTE_PORT		7988

/* What a user says of one route. */
struct lnx_route_spec {
	struct lnx_nid_part net;	/* one net, without address */
	struct lnx_nid gateway;		/* one NID; group 0; port 0: LNX_ROUTE_PORT */
	uint8_t hop;			/* 0: not given */
	uint32_t priority;
};

struct lnx_route {
	struct lnx_route_spec spec;
	uint32_t id;			/* > 0, never used again in this table */
	bool learned;			/* from a frame, and not set by the user */
	/* A note of the gateway takes it down until then (policy/route.h); 0: none does.  For
	 * the user of the table. */
	uint64_t noted_ns;
};

/* Set up by lnx_routes_init; read-only for others. */
struct lnx_routes {
	struct lnx_route *route;	/* owned */
	unsigned n, room;
	uint32_t last_id;
	uint32_t changes;		/* counts up with each change */
	uint64_t random;
};

/* The rails of this node, which decide what is local. */
struct lnx_route_host {
	const struct lnx_nid *rail;
	unsigned n;
};

void lnx_routes_init(struct lnx_routes *t, uint64_t seed);
void lnx_routes_fini(struct lnx_routes *t);

/* Hops as they are compared. */
static inline unsigned lnx_route_hops(const struct lnx_route_spec *s)
{
	return s->hop ? s->hop : 1;
}

/*
 * Check one route by itself.  host may be NULL: nothing is known of this node, and the
 * checks that need it are left out.  0, or with a sentence in r, r->text NULL and r->at 0:
 *	-EINVAL		the net or the gateway is none that can be; the gateway is on the
 *			net itself, or is this node; the priority is out of range
 *	-EEXIST		the net is local
 *	-EHOSTUNREACH	the gateway is on no local net
 */
int lnx_route_check(const struct lnx_route_spec *spec, const struct lnx_route_host *host,
		    struct lnx_refusal *r);

/*
 * Add one route: as lnx_route_check, and
 *	-EEXIST		that gateway has a route to the net already, which was not learned
 *	-ENOSPC		there are LNX_ROUTES_MAX
 *	-ENOMEM
 * The table is unchanged after an error.
 */
int lnx_routes_add(struct lnx_routes *t, const struct lnx_route_spec *spec,
		   const struct lnx_route_host *host, struct lnx_refusal *r);

/*
 * Add all routes of text (FI_LNX_ROUTES), or none.  nets: names that are known beside
 * those of providers; may be NULL.  Errors as of lnx_routes_add; r->text is text, and
 * r->at where in it.  NULL and blanks are no routes.
 */
int lnx_routes_parse(struct lnx_routes *t, const struct lnx_nets *nets, const char *text,
		     const struct lnx_route_host *host, struct lnx_refusal *r);

/*
 * The same for text that is for all nodes of a cluster: routes that are there get the hops and
 * the priority of the text, in their places, and those that do not fit this node are passed
 * over, each with a line "ROUTE: WHY" in skipped.
 */
struct lnx_out;
int lnx_routes_put(struct lnx_routes *t, const struct lnx_nets *nets, const char *text,
		   const struct lnx_route_host *host, struct lnx_out *skipped,
		   struct lnx_refusal *r);

/*
 * Read text without a table: each gets every route, in the order of the text, and may
 * return an error, which ends it.  w is where the gateway stands, for messages.
 */
typedef int lnx_route_each(void *arg, const struct lnx_route_spec *spec,
			   struct lnx_span w, struct lnx_refusal *r);
int lnx_routes_read(const struct lnx_nets *nets, const char *text, lnx_route_each *each,
		    void *arg, struct lnx_refusal *r);

/* The same from a net and a list of gateways, both part of r->text: for YAML. */
int lnx_routes_expand(const struct lnx_nets *nets, struct lnx_span net,
		      struct lnx_span gateways, uint8_t hop, uint32_t priority,
		      lnx_route_each *each, void *arg, struct lnx_refusal *r);

/* An lnx_route_each that adds each route to a table; arg is a struct lnx_routes_adding. */
struct lnx_routes_adding {
	struct lnx_routes *to;
	const struct lnx_route_host *host;	/* as of lnx_routes_add */
	/* Not NULL: those that do not fit the host are passed over, as by lnx_routes_put. */
	struct lnx_out *skipped;
};
int lnx_routes_add_one(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		       struct lnx_refusal *r);

/*
 * Delete routes: text is "NET", all to that net, or "NET via NID[,NID]", what else a route
 * has is not compared.  All that are named, or none.  0; -EINVAL; -ENOENT: there is no
 * such route.
 */
int lnx_routes_del(struct lnx_routes *t, const struct lnx_nets *nets, const char *text,
		   struct lnx_refusal *r);

/* Delete all. */
void lnx_routes_clear(struct lnx_routes *t);

/*
 * The best routes to a remote rail, in the order of the table: of those that usable (may
 * be NULL) takes, the ones with the lowest priority, of these the ones with the fewest
 * hops.  Writes at most max and returns how many it wrote.
 */
unsigned lnx_routes_best(const struct lnx_routes *t, const struct lnx_nid *to,
			 bool (*usable)(void *arg, const struct lnx_route *route),
			 void *arg, const struct lnx_route **out, unsigned max);

/* "ib1 hop=2 priority=1 via 10.0.0.1@tcp", which parses to the same.  Length without NUL,
 * as snprintf. */
size_t lnx_route_print(const struct lnx_route_spec *spec, char *buf, size_t size);

/* All of them, in the order in which they were added, with "; " between.  As snprintf. */
size_t lnx_routes_print(const struct lnx_routes *t, char *buf, size_t size);

/* Do the two specs have the same net and gateway? */
bool lnx_route_same(const struct lnx_route_spec *a, const struct lnx_route_spec *b);

#endif
