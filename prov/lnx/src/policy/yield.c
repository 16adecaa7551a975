/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When a polling thread gives up its core.  See yield.h. */
#include "policy/yield.h"

#include "base/compiler.h"
#include "base/interval.h"

/* Reads that find nothing between checks of the clock. */
#define ALONE_READS	64u
#define CROWDED_READS	4u
#define NEVER		UINT32_MAX
/* So many yields in a row that take long: not just one of several that poll, which had much to
 * do once. */
#define LONG_ROW	3u
/* A sleep is this part of the time that was waited before, so that the wait gets no longer than
 * that. */
#define NAP_SHARE	8u
/* Keeping the core beside a thread of the same claim pays so many times, twice as often after
 * each comparison, up to so many doublings, until both ways are compared anew. */
#define PAID_FIRST	4u
#define PAID_DOUBLE_MAX	4u

void lnx_yield_init(struct lnx_yield *y, uint64_t every)
{
	*y = (struct lnx_yield){
		.learns = every == LNX_YIELD_AUTO,
		.spin_ns = LNX_YIELD_SPIN_MAX_NS,
		.sleep_for_ns = LNX_YIELD_SLEEP_MIN_NS,
		.try_after_ns = LNX_YIELD_TRY_MIN_NS,
	};
	if (y->learns)
		y->every = ALONE_READS;
	else
		y->every = every && every < NEVER ? (uint32_t)every : NEVER;
}

enum lnx_yield_how lnx_yield_look(struct lnx_yield *y, uint64_t now,
				  uint32_t found)
{
	bool first = !y->look_ns;
	bool busy = found != y->found ||
		    (y->learns && lnx_ns_since(now, y->look_ns) >
				  y->every * LNX_YIELD_READ_NS);

	y->found = found;
	y->look_ns = now;
	if (first || busy) {
		y->idle_ns = y->gave_ns = now;
		return LNX_YIELD_NOT;
	}
	if (!y->learns)
		return y->every == NEVER ? LNX_YIELD_NOT : LNX_YIELD_CORE;
	if (y->keep_ns)
		return lnx_ns_since(now, y->keep_ns) < y->keep_for_ns ?
		       LNX_YIELD_NOT : LNX_YIELD_KEEP;
	if (now < y->sleep_ns) {
		uint64_t idle_ns = lnx_ns_since(now, y->idle_ns);

		y->nap_ns = (uint32_t)LNX_MIN(idle_ns / NAP_SHARE, LNX_YIELD_NAP_MAX_NS);
		return idle_ns < LNX_YIELD_SLEEP_AFTER_NS ? LNX_YIELD_NOT : LNX_YIELD_SLEEP;
	}
	return lnx_ns_since(now, y->gave_ns) < y->spin_ns ? LNX_YIELD_NOT :
							    LNX_YIELD_CORE;
}

/* Sleep from now on instead of yields, for longer each time that this is found to be needed. */
static void begin_to_sleep(struct lnx_yield *y, uint64_t now)
{
	if (lnx_ns_since(now, y->sleep_ns) > LNX_YIELD_SLEEP_MAX_NS)
		y->sleep_for_ns = LNX_YIELD_SLEEP_MIN_NS;
	y->sleep_ns = now + y->sleep_for_ns;
	y->sleep_for_ns = LNX_MIN(2 * y->sleep_for_ns, LNX_YIELD_SLEEP_MAX_NS);
}

/* The core is shared with another scheduling group. */
static void lost_core(struct lnx_yield *y, uint64_t now)
{
	if (y->lost_ns && lnx_ns_since(now, y->lost_ns) < LNX_YIELD_LOST_NS)
		begin_to_sleep(y, now);
	y->lost_ns = now;
}

/* From now on the core is given up. */
static void begin_to_give(struct lnx_yield *y, uint64_t now)
{
	y->crowded_ns = now;
	y->crowded_found = y->found;
}

static void begin_to_keep(struct lnx_yield *y, uint64_t now)
{
	y->crowded_ns = lnx_ns_since(now, y->crowded_ns);
	y->crowded_found = y->found - y->crowded_found;
	y->keep_ns = now;
	y->keep_for_ns = 0;
	y->every = ALONE_READS;
}

/* Have as many completions come in the last `ns`, or more, as in the same time with yields? */
static bool keeping_pays(const struct lnx_yield *y, uint64_t ns)
{
	uint32_t n = y->found - y->keep_found;

	return n && y->crowded_ns >= LNX_YIELD_COMPARE_MIN_NS &&
	       (double)n * (double)y->crowded_ns >= (double)y->crowded_found * (double)ns;
}

/* The core is given up again, and not kept on trial for so long. */
static void end_trial(struct lnx_yield *y, uint64_t pause_ns, uint64_t now)
{
	begin_to_give(y, now);
	y->sleep_ns = now + LNX_MIN(pause_ns, y->sleep_for_ns);
	y->keep_ns = 0;
	y->paid = 0;
	y->try_ns = now + pause_ns;
	y->every = y->spin_ns ? ALONE_READS : CROWDED_READS;
}

/* The core is shared, and has been kept for the last `ns`.  True: that has ended. */
static bool kept_shared(struct lnx_yield *y, uint64_t ns, uint64_t now)
{
	if (!keeping_pays(y, ns)) {
		end_trial(y, y->try_after_ns, now);
		y->try_after_ns = LNX_MIN(2 * y->try_after_ns, LNX_YIELD_TRY_MAX_NS);
		y->paid_often = 0;
		return true;
	}
	if (++y->paid < PAID_FIRST << y->paid_often)
		return false;
	end_trial(y, LNX_YIELD_COMPARE_MIN_NS, now);
	y->paid_often = (uint8_t)LNX_MIN(y->paid_often + 1u, PAID_DOUBLE_MAX);
	return true;
}

static void kept(struct lnx_yield *y, uint64_t now, uint64_t cpu_ns)
{
	uint64_t ran_ns = lnx_ns_since(cpu_ns, y->keep_cpu_ns);
	uint64_t ns = lnx_ns_since(now, y->keep_ns);
	bool begins = !y->keep_for_ns || !cpu_ns;

	if (!begins && ran_ns < ns / 4 * 3 && kept_shared(y, ns, now))
		return;
	y->keep_ns = now;
	y->keep_cpu_ns = cpu_ns;
	y->keep_found = y->found;
	if (begins)
		y->keep_for_ns = cpu_ns ? (uint32_t)LNX_YIELD_KEEP_MIN_NS : 0;
	else if (y->keep_for_ns < LNX_YIELD_KEEP_MAX_NS)
		y->keep_for_ns *= 2;
	else
		y->try_after_ns = LNX_YIELD_TRY_MIN_NS;
}

void lnx_yield_done(struct lnx_yield *y, enum lnx_yield_how how, uint64_t now,
		    bool taken, uint64_t lost_ns, uint64_t cpu_ns)
{
	uint64_t away_ns = lnx_ns_since(now, y->look_ns);

	y->look_ns = y->gave_ns = now;
	if (!y->learns || how == LNX_YIELD_SLEEP)
		return;
	if (how == LNX_YIELD_KEEP) {
		kept(y, now, cpu_ns);
		return;
	}
	if (taken) {
		if (y->spin_ns)
			begin_to_give(y, now);
		y->spin_ns = 0;
	} else {
		y->spin_ns = LNX_MIN(LNX_MAX(2 * y->spin_ns, LNX_YIELD_SPIN_MIN_NS),
				     LNX_YIELD_SPIN_MAX_NS);
		if (lost_ns >= LNX_YIELD_LONG_NS)
			lost_core(y, now);
	}
	y->every = y->spin_ns ? ALONE_READS : CROWDED_READS;
	if (!taken)
		return;
	y->nlong = away_ns < LNX_YIELD_LONG_NS ? 0 : (uint8_t)LNX_MIN(y->nlong + 1u, LONG_ROW);
	if (y->nlong < LONG_ROW)
		return;
	if (now >= y->try_ns)
		begin_to_keep(y, now);
	else
		begin_to_sleep(y, now);
}
