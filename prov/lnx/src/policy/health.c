/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Health values, pings and hold times.  See health.h. */
#include "policy/health.h"

/* Share of the traffic, in thousandths, when it is used again. */
#define RAMP_FROM	100u
#define SHIFT_MAX	63u

_Static_assert(sizeof(struct lnx_health) == 24, "paths have one each");

/* unit << shift, but at most max. */
static uint64_t doubled(uint64_t unit, unsigned shift, uint64_t max)
{
	if (!unit)
		return 0;
	return shift > SHIFT_MAX || unit > max >> shift ? max : unit << shift;
}

uint64_t lnx_health_hold_ns(const struct lnx_health_plan *plan, unsigned flaps)
{
	return flaps ? doubled(plan->hold_ns, flaps - 1, plan->hold_max_ns) : 0;
}

/* No sign of life from now on.  If it has been used for long, this is no flap. */
static unsigned go_out(struct lnx_health *h, const struct lnx_health_plan *plan,
		       uint64_t now)
{
	uint64_t idle_polls;

	if (h->out)
		return 0;
	h->out = true;
	if (plan->window_ns && now > h->ready_ns) {
		idle_polls = (now - h->ready_ns) / plan->window_ns;
		h->flaps -= (uint8_t)LNX_MIN(idle_polls, (uint64_t)h->flaps);
	}
	/* Count only as far as matters: what works again must be used again soon. */
	if (!h->flaps || (h->flaps <= SHIFT_MAX &&
			  lnx_health_hold_ns(plan, h->flaps) <
			  plan->hold_max_ns))
		h->flaps++;
	return h->flaps > 1 ? (unsigned)LNX_HEALTH_FLAP : 0;
}

static void restore(struct lnx_health *h, const struct lnx_health_plan *plan,
		      uint64_t now)
{
	if (!h->out)
		return;
	h->out = false;
	h->ready_ns = now + lnx_health_hold_ns(plan, h->flaps);
}

static unsigned go_down(struct lnx_health *h)
{
	if (h->down)
		return 0;
	h->down = true;
	return LNX_HEALTH_DOWN;
}

static unsigned go_up(struct lnx_health *h, uint64_t now)
{
	if (!h->down || h->fatal ||
	    (h->pinned ? !h->value : h->value < LNX_HEALTH_MAX))
		return 0;
	h->down = false;
	/* Its share grows from the time when it may be used. */
	h->ready_ns = LNX_MAX(h->ready_ns, now);
	return LNX_HEALTH_UP;
}

unsigned lnx_health_fail(struct lnx_health *h,
			 const struct lnx_health_plan *plan, unsigned class,
			 uint64_t now)
{
	unsigned change = 0, step;

	if (class == LNX_CLASS_OK || class >= LNX_CLASS_COUNT || h->pinned)
		return 0;
	step = plan->step[class];
	if (!step)
		return 0;
	h->hearsay = false;
	if (h->value == LNX_HEALTH_MAX) {
		h->mark_ns = now;
		change |= LNX_HEALTH_SICK;
	}
	if (h->value) {
		h->value -= (uint16_t)LNX_MIN(step, (unsigned)h->value);
		change |= LNX_HEALTH_VALUE;
	}
	if (!h->value)
		change |= go_down(h);
	if (h->down)
		change |= go_out(h, plan, now);
	else if (now < h->ready_ns)
		/* It did not stay up as long as it had to. */
		h->ready_ns = now + lnx_health_hold_ns(plan, h->flaps);
	return change;
}

LNX_COLD unsigned lnx_health_better(struct lnx_health *h,
				    const struct lnx_health_plan *plan,
				    uint64_t now)
{
	unsigned change = 0, step = plan->step[LNX_CLASS_OK];

	/* A late event from before the link went down. */
	if (h->fatal)
		return 0;
	change |= lnx_health_unhear(h);
	restore(h, plan, now);
	h->npings = 0;
	if (!step || h->value == LNX_HEALTH_MAX || h->pinned)
		return change;
	h->value += (uint16_t)LNX_MIN(step, LNX_HEALTH_MAX - (unsigned)h->value);
	change |= LNX_HEALTH_VALUE;
	if (h->value == LNX_HEALTH_MAX) {
		h->pinging = false;
		h->at_once = false;
		change |= LNX_HEALTH_WELL | go_up(h, now);
	}
	return change;
}

unsigned lnx_health_pong(struct lnx_health *h,
			 const struct lnx_health_plan *plan, uint64_t now)
{
	h->pinging = false;
	return lnx_health_good(h, plan, now);
}

unsigned lnx_health_link(struct lnx_health *h,
			 const struct lnx_health_plan *plan, bool fatal,
			 uint64_t now)
{
	if (h->fatal == fatal)
		return 0;
	h->fatal = fatal;
	h->pinging = false;
	(void)lnx_health_unhear(h);
	if (fatal)
		return go_down(h) | go_out(h, plan, now);
	restore(h, plan, now);
	h->npings = 0;
	h->at_once = h->value < LNX_HEALTH_MAX;
	h->mark_ns = now;
	return go_up(h, now);
}

unsigned lnx_health_set(struct lnx_health *h,
			const struct lnx_health_plan *plan, unsigned value,
			uint64_t now)
{
	unsigned change = 0;

	value = LNX_MIN(value, (unsigned)LNX_HEALTH_MAX);
	h->hearsay = false;
	if (value != h->value)
		change |= LNX_HEALTH_VALUE;
	if (value < LNX_HEALTH_MAX && h->value == LNX_HEALTH_MAX)
		change |= LNX_HEALTH_SICK;
	if (value == LNX_HEALTH_MAX && h->value < LNX_HEALTH_MAX)
		change |= LNX_HEALTH_WELL;
	h->value = (uint16_t)value;
	h->pinging = false;
	h->npings = 0;
	h->at_once = value < LNX_HEALTH_MAX;
	h->mark_ns = now;
	if (!value) {
		change |= go_down(h) | go_out(h, plan, now);
	} else if (value == LNX_HEALTH_MAX && !h->fatal) {
		change |= go_up(h, now);
		h->out = false;
		h->flaps = 0;
		h->ready_ns = 0;
	}
	return change;
}

unsigned lnx_health_pin(struct lnx_health *h,
			const struct lnx_health_plan *plan, unsigned value,
			uint64_t now)
{
	unsigned change;

	h->pinned = true;
	change = lnx_health_set(h, plan, value, now);
	if (!value || h->fatal)
		return change;
	h->out = false;
	/* A value set by hand is valid at once. */
	h->flaps = 0;
	h->ready_ns = LNX_MIN(h->ready_ns, now);
	return change | go_up(h, now);
}

unsigned lnx_health_unpin(struct lnx_health *h,
			  const struct lnx_health_plan *plan, uint64_t now)
{
	h->pinned = false;
	return lnx_health_set(h, plan, LNX_HEALTH_MAX, now);
}

unsigned lnx_health_hearsay(struct lnx_health *h, unsigned value, uint64_t now)
{
	if (h->value != LNX_HEALTH_MAX || h->down || h->fatal || h->pinned ||
	    value >= LNX_HEALTH_MAX)
		return 0;
	h->value = (uint16_t)value;
	h->hearsay = true;
	h->mark_ns = now;
	return LNX_HEALTH_VALUE | LNX_HEALTH_SICK;
}

unsigned lnx_health_unhear(struct lnx_health *h)
{
	if (!h->hearsay)
		return 0;
	h->hearsay = false;
	h->value = LNX_HEALTH_MAX;
	return LNX_HEALTH_VALUE | LNX_HEALTH_WELL;
}

/* When the next ping is due, if none is under way. */
static uint64_t due_ns(const struct lnx_health *h,
		       const struct lnx_health_plan *plan, bool spare)
{
	uint64_t max = plan->max_ns;

	if (h->at_once)
		return h->mark_ns;
	if (spare)
		max = LNX_MIN(max, plan->spare_ns);
	return h->mark_ns + doubled(plan->first_ns, h->npings, max);
}

enum lnx_health_todo lnx_health_poll(struct lnx_health *h,
				     const struct lnx_health_plan *plan,
				     bool spare, uint64_t timeout_ns,
				     uint64_t now)
{
	if (now < lnx_health_next(h, plan, spare, timeout_ns))
		return LNX_HEALTH_NOTHING;
	if (h->pinging) {
		h->pinging = false;
		return LNX_HEALTH_LOST;
	}
	h->pinging = true;
	h->at_once = false;
	h->mark_ns = now;
	if (h->npings < SHIFT_MAX)
		h->npings++;
	return LNX_HEALTH_PING;
}

uint64_t lnx_health_next(const struct lnx_health *h,
			 const struct lnx_health_plan *plan, bool spare,
			 uint64_t timeout_ns)
{
	/* Pings over a link that is down tell nothing. */
	if (h->value == LNX_HEALTH_MAX || h->fatal)
		return UINT64_MAX;
	if (h->pinging)
		return h->mark_ns + timeout_ns;
	return due_ns(h, plan, spare);
}

unsigned lnx_health_weight(const struct lnx_health *h,
			   const struct lnx_health_plan *plan, uint64_t now)
{
	uint64_t w = (uint64_t)h->value * LNX_WEIGHT_MAX / LNX_HEALTH_MAX, t;

	if (!lnx_health_usable(h, now))
		return 0;
	t = now - h->ready_ns;
	if (h->ready_ns && t < plan->ramp_ns)
		w = w * (RAMP_FROM + (1000 - RAMP_FROM) * t / plan->ramp_ns) /
		    1000;
	return (unsigned)LNX_MAX(w, (uint64_t)1);
}

/* Of a rail only the number counts, for paths that have not failed themselves. */
static unsigned weight_of_end(const struct lnx_health *h)
{
	return h->fatal ? 0 : h->value * LNX_WEIGHT_MAX / LNX_HEALTH_MAX;
}

unsigned lnx_health_weight_of_path(const struct lnx_health *path,
				   const struct lnx_health *rail,
				   const struct lnx_health *remote,
				   const struct lnx_health_plan *plan,
				   uint64_t now)
{
	unsigned w = LNX_MIN(lnx_health_weight(path, plan, now),
			     path->ready_ns ? lnx_health_weight(rail, plan, now) :
					      weight_of_end(rail));

	return remote ? LNX_MIN(w, weight_of_end(remote)) : w;
}
