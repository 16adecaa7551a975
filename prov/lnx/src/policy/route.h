/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gateways and routes: which are up, what is charged for a failure, which one the next
 * frame takes.  Does no I/O: facts and the time go in, a decision and its reason come
 * out.
 *
 * A gateway is one process (lnxrtd) with some rails.  Its state is shared by all peers
 * that are reached over it:
 *
 *	UNCHECKED --an info, or an answer from it--> ALIVE
 *	ALIVE --a hello without answer for ping_timeout, or less (least_ns)--> DEAD
 *	DEAD --an info, or an answer from it--> ALIVE
 *
 * What comes in its name without a nonce of ours, as frames do, may be of anyone that knows its
 * id: a dead one is asked then (maybe_anew).
 *
 * A route is a gateway and a net that it leads to (conf/routes.h).  It is up if
 *	- the gateway is alive, or is not checked yet and need not be;
 *	- a rail of the gateway that is on one of our nets is up;
 *	- with avoid_asym, if the route is of one hop: a rail on the remote net is up, too;
 *	- the gateway forwards, and no note of its says that it cannot;
 *	- a rail of it on one of our nets has the health that the sensitivity demands.
 * The last one never takes the last route to a net down: nothing but other routes of the
 * same net would be better.
 *
 * A gateway that will stop soon (draining) has its routes up, but others come first.
 *
 * Locking: none; the owner lock is held.
 */
#ifndef LNX_POLICY_ROUTE_H
#define LNX_POLICY_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "lnx_wire_route.h"
#include "policy/health.h"
#include "policy/rtt.h"

#define LNX_GATEWAY_RAILS	LNX_WIRE_RAILS_MAX

/* Settings. */
struct lnx_route_plan {
	uint64_t alive_ns;		/* between hellos to one that is alive; 0: none */
	uint64_t dead_ns;		/* the same to one that is dead; 0: none */
	uint64_t ping_timeout_ns;	/* without an answer for so long it is dead */
	uint64_t least_ns;		/* not 0: earlier than that if its answers took less before,
					 * but not before this, and after a second hello */
	uint16_t sensitivity;		/* % of LNX_HEALTH_MAX */
	bool avoid_asym;
	bool check_before_use;		/* one that is UNCHECKED has no routes that are up */
};

enum lnx_gateway_state {
	LNX_GATEWAY_UNCHECKED,
	LNX_GATEWAY_ALIVE,
	LNX_GATEWAY_DEAD,
};

/* "unchecked", "alive", "dead". */
const char *lnx_route_gateway_state_name(enum lnx_gateway_state state);

/* A rail of a gateway.  Its health is what all peers found out; told is its own number. */
struct lnx_gateway_rail {
	struct lnx_health health;
	uint16_t told;			/* LNX_HEALTH_MAX until an info says otherwise */
	bool told_down;			/* an info says that it is down */
	uint8_t place;			/* in the gateway's address */
};

struct lnx_gateway {
	uint64_t id;			/* 0: not known */
	uint8_t state;			/* enum lnx_gateway_state */
	bool informed;			/* an info has come since it began */
	bool routing;			/* it forwards; true until it says otherwise */
	bool draining;
	bool asked;			/* a hello is under way, */
	bool again;			/* and left a second time */
	uint16_t account;		/* ours there; 0: none */
	uint64_t hello_ns;		/* when the last hello left; 0: never */
	uint64_t first_hello_ns;		/* when it left for the first time */
	uint64_t again_ns;		/* the second time not before */
	struct {
		struct lnx_rtt rtt;	/* of answers */
		uint64_t given, came_ns;	/* lnx_route_gateway_traffic() */
		uint64_t asked_given;	/* before the last hello */
		uint64_t given_before, before_ns;	/* the same of the last one that was
							 * answered, and when it was */
		uint64_t rate;		/* bytes that it takes per second, at least */
		uint64_t early_ns;	/* dead: what comes until then shows that it was not */
		uint64_t late_ns;	/* when that happened last */
		uint8_t late;		/* the limit is doubled so often */
	} wait;
	uint64_t doubt_ns;		/* a hello is due then, whatever the intervals; 0: none */
	uint64_t heard_ns;		/* when an answer came from it, or news; 0: never */
	uint64_t slow_ns;		/* send it no more than it grants until then */
	uint32_t large, small;		/* grant */
	uint64_t notes[LNX_NOTE_MAX];	/* by reason: frames that they tell of */
	unsigned nrail;
	struct lnx_gateway_rail rail[LNX_GATEWAY_RAILS];
};

/* Bits: what a call has changed. */
enum lnx_gateway_change {
	LNX_GATEWAY_CAME_UP = 1,	/* it is alive */
	LNX_GATEWAY_WENT_DOWN = 2,	/* it is dead */
	LNX_GATEWAY_ROUTES = 4,		/* routes have to be judged again */
	LNX_GATEWAY_RESTARTED = 8,	/* another process: account and notes are void */
};

void lnx_route_gateway_init(struct lnx_gateway *g);

/* What an info says, in a form without addresses. */
struct lnx_gateway_facts {
	uint64_t id;
	uint16_t account;
	bool routing, draining;
	uint32_t large, small;
	unsigned nrail;
	struct {
		uint8_t place;
		bool up;
		uint16_t health;
	} rail[LNX_GATEWAY_RAILS];
};

struct lnx_gw_info;
/* What one says that was checked (wire/route.h). */
void lnx_route_gateway_facts(struct lnx_gateway_facts *f, const struct lnx_gw_info *info);

/* An info that was checked has come.  Rails keep their health by their place. */
unsigned lnx_route_gateway_info(struct lnx_gateway *g, const struct lnx_gateway_facts *f,
				uint64_t now);

/* An answer of its has come, with a nonce that only it knows. */
unsigned lnx_route_gateway_heard(struct lnx_gateway *g, uint64_t now);

/*
 * Before poll, with least_ns: so many bytes were given to the core that sends to it, since it began,
 * and something that others could forge came from it then (0: never).  Frames before a hello
 * delay the answer; what comes from it makes it live longer, up to ping_timeout_ns.
 */
static inline void lnx_route_gateway_traffic(struct lnx_gateway *g, uint64_t given,
					     uint64_t came_ns)
{
	g->wait.given = given;
	g->wait.came_ns = came_ns;
}

/* The hello, or with again its second one, has its answer.  Once for both, before the info is handed
 * over. */
void lnx_route_gateway_answered(struct lnx_gateway *g, bool again, uint64_t now);

/* The hello that poll wanted could not be sent: soon again.  It means nothing that it has no
 * answer. */
void lnx_route_gateway_unsent(struct lnx_gateway *g, uint64_t now);

/* How long it may take for an answer now. */
uint64_t lnx_route_gateway_limit(const struct lnx_gateway *g, const struct lnx_route_plan *plan);

/*
 * Two entries are one gateway: a takes over what b knows, and b must not be used any
 * more.  Of a rail that both have the lower health counts.
 */
unsigned lnx_route_gateway_merge(struct lnx_gateway *a, const struct lnx_gateway *b);

enum lnx_gateway_todo {
	LNX_GATEWAY_NOTHING,
	LNX_GATEWAY_HELLO,		/* send a hello; it counts as sent */
	LNX_GATEWAY_AGAIN,		/* and a second one: only with least_ns */
	LNX_GATEWAY_LOST,		/* the last one is not answered: it is dead now */
};

/* What to do; call again until NOTHING.  used: a frame for it is there now. */
enum lnx_gateway_todo lnx_route_gateway_poll(struct lnx_gateway *g,
					     const struct lnx_route_plan *plan, bool used,
					     uint64_t now);

/* When poll has something to do next if nothing happens; UINT64_MAX: never. */
uint64_t lnx_route_gateway_next(const struct lnx_gateway *g, const struct lnx_route_plan *plan);

/* The health of one of its rails: the lower of what was found and what it says. */
static inline uint16_t lnx_route_gateway_rail_health(const struct lnx_gateway_rail *r)
{
	return LNX_MIN(r->health.value, r->told);
}

static inline bool lnx_route_gateway_rail_up(const struct lnx_gateway_rail *r)
{
	return !r->told_down && !r->health.down;
}

/* ---- routes ---- */

/* Why a route is up or down. */
enum lnx_route_why {
	LNX_ROUTE_UP,
	LNX_ROUTE_LAST,			/* up, below the sensitivity: there is no other */
	LNX_ROUTE_UNCHECKED,		/* down, as all below: check_before_use */
	LNX_ROUTE_DEAD,
	LNX_ROUTE_NO_LOCAL_RAIL,	/* none of its rails on our nets is up */
	LNX_ROUTE_NO_REMOTE_RAIL,	/* avoid_asym */
	LNX_ROUTE_NOT_ROUTING,
	LNX_ROUTE_NOTED,		/* a note says that it cannot */
	LNX_ROUTE_SICK,			/* below the sensitivity */
	LNX_ROUTE_WHYS
};

/* "up", "gateway dead": for lnxctl and logs. */
const char *lnx_route_why_name(enum lnx_route_why why);

static inline bool lnx_route_is_up(enum lnx_route_why why)
{
	return why <= LNX_ROUTE_LAST;
}

/* One of the routes to a net. */
struct lnx_route_view {
	const struct lnx_gateway *gateway;
	uint8_t hop;			/* as configured; 0: not given */
	bool learned;			/* of one hop, whatever hop says */
	uint32_t local;			/* rails of the gateway on our nets: bits */
	uint32_t remote;		/* and on the net the route leads to */
	uint16_t sick;			/* by how much the health of the best way to it that we
					 * have is below LNX_HEALTH_MAX */
	uint64_t noted_ns;		/* a note takes it down until then; 0: none */
};

/* Judge all n routes to one net together; why gets one for each.  Returns how many are
 * up. */
unsigned lnx_route_judge(const struct lnx_route_view *v, unsigned n,
			 const struct lnx_route_plan *plan, uint64_t now, uint8_t *why);

/* ---- notes ---- */

/* What a note means for the sender of the frame. */
struct lnx_route_effect {
	bool again;			/* send the frame again, over another path if there
					 * is one */
	bool route_down;		/* the route is down for LNX_ROUTE_NOTED_NS, or
					 * until the gateway's next info */
	bool remote;			/* charge the remote rail (REMOTE_DROPPED) */
	bool ask;			/* GW_ASK whether the far end answers */
	bool slow;			/* keep to the grant */
	bool draining;			/* others first */
	bool not_routing;		/* all its routes are down until its next info */
	bool error;			/* no path of this kind carries the frame */
};

/* NULL: there is no such reason. */
const struct lnx_route_effect *lnx_route_effect(unsigned reason);

/* A path over it delivers nothing: the next hello is due now, unless one left a moment ago. */
void lnx_route_gateway_doubt(struct lnx_gateway *g, uint64_t now);
/* Something came from a gateway with an unknown id, which may be this one, begun anew, or in the
 * name of this one: the same, also if it is dead. */
void lnx_route_gateway_maybe_anew(struct lnx_gateway *g, uint64_t now);

/* A note from the gateway that was checked: count frames are lost.  Returns bits of enum
 * lnx_gateway_change; no note charges the gateway's health. */
unsigned lnx_route_gateway_note(struct lnx_gateway *g, unsigned reason, uint32_t count,
				uint64_t now);

/* ---- charges ---- */

enum lnx_answers { LNX_ANSWERS_UNKNOWN, LNX_ANSWERS_NO, LNX_ANSWERS_YES };

/* What is known when a routed path delivers nothing. */
struct lnx_route_evidence {
	uint8_t gateway;		/* it answers on this rail; enum lnx_answers */
	uint8_t gateway_elsewhere;	/* by another rail of its */
	uint8_t far_through;		/* the far end answers through it */
	uint8_t far_elsewhere;		/* by other gateways, or directly */
	uint8_t tell;			/* enum lnx_route_tell; 0: it was not asked */
	bool all_refused;		/* every rail of the peer is refused */
	bool rail_works;		/* our rail reaches other gateways, or other rails of
					 * this one */
};

/* Bits: what is charged, and what to do. */
enum lnx_route_charge {
	LNX_ROUTE_CHARGE_PATH = 1,
	LNX_ROUTE_CHARGE_LOCAL_RAIL = 2,
	LNX_ROUTE_CHARGE_GATEWAY_RAIL = 4,	/* the one that the path uses */
	LNX_ROUTE_CHARGE_GATEWAY = 8,		/* all its rails: its routes go down */
	LNX_ROUTE_CHARGE_LEG = 16,		/* this path behind the gateway, nothing else */
	LNX_ROUTE_CHARGE_REMOTE_RAIL = 32,
	LNX_ROUTE_CHARGE_PEER = 64,
	LNX_ROUTE_CHARGE_ROUTE_DOWN = 128,	/* the gateway has no way there */
	LNX_ROUTE_CHARGE_ASK = 256,		/* ask the gateway before anything is charged */
};

/* 0: nothing is to be charged, the far end computes. */
unsigned lnx_route_charges(const struct lnx_route_evidence *e);

/* ---- selection ---- */

/* In the order in which they are compared. */
enum lnx_route_by {
	LNX_ROUTE_BY_ONLY,		/* there is one */
	LNX_ROUTE_BY_PREFERRED,		/* by a rule with rte */
	LNX_ROUTE_BY_PRIORITY,		/* lower */
	LNX_ROUTE_BY_HOPS,		/* lower */
	LNX_ROUTE_BY_STATE,		/* usable, held or draining, down */
	LNX_ROUTE_BY_HEALTH,		/* higher */
	LNX_ROUTE_BY_QUEUED,		/* fewer bytes */
	LNX_ROUTE_BY_CREDITS,		/* more */
	LNX_ROUTE_BY_TURN,		/* longer ago */
	LNX_ROUTE_BY_ORDER,		/* the first */
	LNX_ROUTE_BYS
};

const char *lnx_route_by_name(enum lnx_route_by by);

/* A rail of a gateway of one of the routes to a net. */
struct lnx_route_choice {
	bool preferred;
	uint32_t priority;
	uint8_t hop;			/* 0: compared as 1 */
	uint8_t state;			/* 0: usable, 1: held or draining, 2: down */
	uint16_t health;
	uint64_t queued;		/* bytes under way over it */
	int32_t credits;
	uint64_t used;			/* stamp of the last use, 0: never */
};

/*
 * The classes of n choices by what the user says of them: preference, priority, hops.  class[i]
 * becomes the number of choices that are better by these: equal ones share the traffic.
 */
void lnx_route_classes(const struct lnx_route_choice *c, unsigned n, uint8_t *class);

/*
 * Choices are those of the routes that are up; of all routes if none is.  The best of n:
 * its index, or -1 if n is 0.  Unless by is NULL, by[i] becomes the
 * criterion by which choice i lost, and that of the best one the criterion that it won
 * by against the second best.
 */
int lnx_route_pick(const struct lnx_route_choice *c, unsigned n, uint8_t *by);

#endif
