/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Health of a path, of a local rail and of a peer's rail: each has one struct
 * lnx_health.  Does no I/O: the time is passed in, and the action is returned.
 *
 * A number from 0 to 1000 goes down by a step for each failure and up for each proof of
 * life.  The state has a hysteresis:
 *
 *	UP --value reaches 0, or link down--> DOWN
 *	DOWN --value reaches 1000, and link not down--> UP
 *
 * so that an object that has failed for a while must work for a while.  DOWN does not
 * mean forbidden: if nothing is up, the best object that is DOWN is used.
 *
 * Below 1000 it is sick, and pinged until it is well: first_ns after the failure, then
 * with pauses of 2, 4, 8 ... times that, at most max_ns (spare_ns while other paths to
 * the peer are healthy, because then there is traffic to get back), for ever.  A proof
 * of life starts the series again.  One ping is under way at a time.
 *
 * It is `out` from going DOWN to the first proof of life after that (a link event or
 * something received), and is used again no earlier than a hold time after it came
 * back.  That doubles each time it goes out again before it was usable for window_ns,
 * up to hold_max_ns, and is halved for each such time that it stays.  When it is used
 * again its share of the traffic grows within ramp_ns.
 *
 * How to use it.  Each object (struct lnx_path, struct lnx_rail, a peer's rail) has one
 * by value, set up by lnx_health_init(); all calls are made with the owner lock held.
 * The plan is made once per domain or endpoint by lnx_plan_make.
 *
 *  - Something came back over a path (a frame, an acknowledgement of what went over
 *    it): lnx_health_good on path, rail and remote rail.  Cheap while well.  That a core
 *    says "sent" is no proof: it says so over a dead link, too.
 *  - An operation failed: class = lnx_errclass(...) (policy/errclass.h), or the caller
 *    knows (RESPONSE_TIMEOUT, NETWORK_TIMEOUT); charge = lnx_class_charges(...);
 *    lnx_health_fail on the path and those named in charge; count <class>_count once.
 *    Errors that came in one burst from one broken connection are one failure.
 *  - A link event: lnx_health_link on the rail; a peer's notice of one: on its rail.
 *  - Sick ones are on a list of the caller's.  From progress, not before
 *    lnx_health_next: lnx_health_poll says PING (post one; an error of posting counts
 *    as a ping that is lost) or LOST (count response_timeout, lnx_health_fail with
 *    LNX_CLASS_RESPONSE_TIMEOUT, poll again).  A pong: lnx_health_pong.
 *  - Every call that may change something returns bits of enum lnx_health_change:
 *    SICK and WELL say when to join and to leave that list, DOWN and UP when to tell
 *    peers and the log, VALUE when a ranking is stale.
 *  - lnx_health_weight is the share of traffic; of a path take
 *    lnx_health_weight_of_path.  0: only when all others have 0 as well; then the one
 *    with the highest value.
 *
 * With sensitivity 0 only link events change anything.
 */
#ifndef LNX_HEALTH_H
#define LNX_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "policy/class.h"

#define LNX_HEALTH_MAX		1000
#define LNX_WEIGHT_MAX		1000

/* Settings; policy/plan.h makes them of the parameters. */
struct lnx_health_plan {
	uint16_t step[LNX_CLASS_COUNT];	/* down, by class; [LNX_CLASS_OK]: up */
	uint16_t retries;		/* after the first try */
	uint64_t transaction_ns;	/* deadline of an operation, never renewed */
	uint64_t rail_ns;		/* longest wait for an answer to one try */
	uint64_t rail_min_ns;		/* shortest, however fast the path */
	uint64_t first_ns;		/* pings: before the first, then doubled */
	uint64_t max_ns;		/* up to that; */
	uint64_t limit_ns;		/* DOWN for longer: pinged no more; 0: for
					 * ever */
	uint64_t spare_ns;		/* instead of max_ns while other paths are
					 * healthy */
	uint64_t hold_ns;		/* before it is used again, the first time */
	uint64_t hold_max_ns;
	uint64_t window_ns;		/* used for so long: no flap */
	uint64_t ramp_ns;		/* to its full share */
};

/* Written only by the functions below; may be read anywhere. */
struct lnx_health {
	uint16_t value;			/* 0 to LNX_HEALTH_MAX */
	bool down : 1;			/* the state that peers and logs are told */
	bool fatal : 1;			/* its link is down */
	bool out : 1;			/* no proof of life since it went down */
	bool pinging : 1;		/* a ping is under way */
	bool at_once : 1;		/* the next ping does not wait */
	bool pinned : 1;		/* set by hand: nothing else changes the
					 * number */
	bool hearsay : 1;		/* the number is what another process found: the
					 * first proof of life overrules it */
	uint8_t npings;			/* unanswered; the exponent */
	uint8_t flaps;			/* recent ones; the hold time's exponent + 1 */
	uint64_t mark_ns;		/* last ping, else start of the series */
	uint64_t ready_ns;		/* may be used from then on; 0: always */
};

/* Result of a call: what it has changed; bits. */
enum lnx_health_change {
	LNX_HEALTH_VALUE = 1,		/* the number */
	LNX_HEALTH_DOWN = 2,		/* it has gone down */
	LNX_HEALTH_UP = 4,		/* it is up again */
	LNX_HEALTH_SICK = 8,		/* it has left 1000: poll it from now on */
	LNX_HEALTH_WELL = 16,		/* it has reached 1000: stop polling it */
	LNX_HEALTH_FLAP = 32,		/* it went `out` again (recently) */
};

static inline void lnx_health_init(struct lnx_health *h)
{
	*h = (struct lnx_health){ .value = LNX_HEALTH_MAX };
}

/* A failure of that class.  What else is charged: lnx_class_charges. */
unsigned lnx_health_fail(struct lnx_health *h,
			 const struct lnx_health_plan *plan, unsigned class,
			 uint64_t now);

/* Slow half of lnx_health_good. */
unsigned lnx_health_better(struct lnx_health *h,
			   const struct lnx_health_plan *plan, uint64_t now);

/* A proof of life. */
LNX_INLINE unsigned lnx_health_good(struct lnx_health *h,
				    const struct lnx_health_plan *plan,
				    uint64_t now)
{
	if (lnx_likely(h->value == LNX_HEALTH_MAX))
		return 0;
	return lnx_health_better(h, plan, now);
}

/* The pong of its ping; a late one is a proof of life like others. */
unsigned lnx_health_pong(struct lnx_health *h,
			 const struct lnx_health_plan *plan, uint64_t now);

/*
 * Its link went down (fatal), or came back.  The number stays.  If it comes back with
 * less than 1000 it stays DOWN, and is pinged at once.
 */
unsigned lnx_health_link(struct lnx_health *h,
			 const struct lnx_health_plan *plan, bool fatal,
			 uint64_t now);

/*
 * Set by hand, to LNX_HEALTH_MAX at most.  0: DOWN.  1000: UP unless its link is down,
 * and its failures are forgotten.  Between: the state stays.  Below 1000 it is pinged
 * at once.
 */
unsigned lnx_health_set(struct lnx_health *h,
			const struct lnx_health_plan *plan, unsigned value,
			uint64_t now);

/*
 * Set and fixed: neither failures nor proofs of life change the number, and it is DOWN
 * if that is 0 or its link is down.  Until lnx_health_unpin, which makes it as good as
 * new.
 */
unsigned lnx_health_pin(struct lnx_health *h,
			const struct lnx_health_plan *plan, unsigned value,
			uint64_t now);
unsigned lnx_health_unpin(struct lnx_health *h,
			  const struct lnx_health_plan *plan, uint64_t now);

/*
 * Another process says that it has that number.  Taken only by one that is as good as new,
 * and whose link is not down; its state stays UP.  Until the first proof of life, which makes
 * it as good as new again; a failure or a link event is an experience of our own, and ends
 * that too.
 */
unsigned lnx_health_hearsay(struct lnx_health *h, unsigned value, uint64_t now);
/* No process says so any more. */
unsigned lnx_health_unhear(struct lnx_health *h);

enum lnx_health_todo {
	LNX_HEALTH_NOTHING,
	LNX_HEALTH_PING,		/* send a ping; it counts as sent */
	LNX_HEALTH_LOST,		/* the last one is not answered */
};

/*
 * What to do for a sick one; call again until NOTHING.  spare: other paths to the peer
 * are healthy; timeout_ns: a ping without answer for that long is lost.
 */
enum lnx_health_todo lnx_health_poll(struct lnx_health *h,
				     const struct lnx_health_plan *plan,
				     bool spare, uint64_t timeout_ns,
				     uint64_t now);

/* When poll will have something to do next; UINT64_MAX: not before another function was
 * called. */
uint64_t lnx_health_next(const struct lnx_health *h,
			 const struct lnx_health_plan *plan, bool spare,
			 uint64_t timeout_ns);

/* May it be used like others: up, and not in its hold time? */
LNX_INLINE bool lnx_health_usable(const struct lnx_health *h, uint64_t now)
{
	return !h->down && now >= h->ready_ns;
}

/* Does nothing count against it, now or in the past? */
LNX_INLINE bool lnx_health_well(const struct lnx_health *h)
{
	return h->value == LNX_HEALTH_MAX && !h->ready_ns;
}

/* Its share, 0 to LNX_WEIGHT_MAX.  0: not usable. */
unsigned lnx_health_weight(const struct lnx_health *h,
			   const struct lnx_health_plan *plan, uint64_t now);

/*
 * The share of a path, which is no better than its rails.  These are derived from their
 * paths: they have a number, which counts up with everything that passes.  The hold time
 * of the local rail counts for paths that have been down themselves.  remote may be NULL.
 */
unsigned lnx_health_weight_of_path(const struct lnx_health *path,
				   const struct lnx_health *rail,
				   const struct lnx_health *remote,
				   const struct lnx_health_plan *plan,
				   uint64_t now);

/* The hold time if it comes back now, after so many flaps. */
uint64_t lnx_health_hold_ns(const struct lnx_health_plan *plan, unsigned flaps);

#endif
