/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints as OpenMetrics text: what FI_LNX_STATS_FILE and "lnxctl metrics" write.
 * Counters are those since the endpoint was enabled, whatever was reset: a collector
 * expects them to grow.
 */
#ifndef LNX_METRICS_H
#define LNX_METRICS_H

#include <stdbool.h>

#include "base/openmetrics.h"
#include "lnx_state.h"

enum lnx_metrics_life {
	LNX_METRICS_UNKNOWN,		/* of no process: a file */
	LNX_METRICS_LIVES,
	LNX_METRICS_ENDED,		/* these are its last values */
};

/* An endpoint and its process.  Nothing is owned. */
struct lnx_metrics_ep {
	int pid;
	enum lnx_metrics_life life;
	const char *program, *job, *rank;	/* "": not known */
	const struct lnx_state_ep *ep;
	const struct lnx_state_rail *rail;
	unsigned nrail;
	unsigned ncounter;
	const uint64_t *value;		/* ncounter */
	/* Name and help of counter i. */
	const char *(*name)(const void *names, unsigned i, const char **help);
	const void *names;
};

/* Is the rail up? */
static inline bool lnx_metrics_rail_up(const struct lnx_state_rail *r)
{
	return !(r->flags & (LNX_STATE_RAIL_LINK_DOWN | LNX_STATE_RAIL_GONE)) &&
	       !(r->health.flags & LNX_STATE_HEALTH_DOWN);
}

/* All of them, to the end of the text.  The work is proportional to its length, whatever is
 * in them.  False: memory is short. */
bool lnx_metrics_print(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n);

#endif
