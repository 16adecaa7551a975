/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What progress knows of the state segment (ctl/): when it is to be called, and how.
 * In every LNX_SLOW_PASSES-th pass this costs one load from the segment.
 */
#ifndef LNX_CTL_GATE_H
#define LNX_CTL_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct lnx_ctl;
struct lnx_ep;
struct lnx_settings;

/* A ping of a peer over each of its paths (ctl/ask.c). */
#define LNX_CTL_PING_PATHS	8u
struct lnx_ctl_ping {
	uint64_t eid;
	uint32_t number;
	uint64_t sent_ns[LNX_CTL_PING_PATHS];	/* 0: not sent */
	uint64_t took_ns[LNX_CTL_PING_PATHS];	/* 0: no answer */
};

struct lnx_ctl_gate {
	const uint32_t *look;		/* readers add to it (lnx_state.h); NULL: there
					 * is no segment */
	uint32_t seen;			/* its value when run was called last */
	uint32_t pass;			/* run is due with that pass in any case */
	/* lnx_ctl_pass.  Owner lock held; calls cores. */
	void (*run)(struct lnx_ep *ep, uint64_t now);
	struct lnx_ctl *ctl;
	struct lnx_ctl_ping *ping;	/* under way; NULL: none is */
	uint32_t nset;			/* parameters that were set so far */
	struct lnx_settings *settings;	/* what ep->conf is then; NULL: it is the
					 * process's (ctl/settings.h) */
};

/* Is run due?  pass: ep->poll.pass. */
LNX_INLINE bool lnx_ctl_due(const struct lnx_ctl_gate *g, uint32_t pass)
{
	return g->look && (__atomic_load_n(g->look, __ATOMIC_ACQUIRE) != g->seen ||
			   (int32_t)(pass - g->pass) >= 0);
}

/* A PONG with LNX_WIRE_PROBE_PING came from that peer over that path: how long it took;
 * 0: none was asked for. */
static inline uint64_t lnx_ctl_pong(const struct lnx_ctl_gate *g, uint64_t eid,
				unsigned path, uint32_t number, uint64_t now)
{
	struct lnx_ctl_ping *p = g->ping;

	if (!p || p->eid != eid || p->number != number ||
	    path >= LNX_CTL_PING_PATHS || !p->sent_ns[path] || p->took_ns[path])
		return 0;
	p->took_ns[path] = now > p->sent_ns[path] ? now - p->sent_ns[path] : 1;
	return p->took_ns[path];
}

#endif
