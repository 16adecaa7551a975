/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the reliable channel (rel.h) thinks of a path, for those that show and explain it, and
 * for those that ask a peer.  Owner lock held. */
#ifndef LNX_REL_VIEW_H
#define LNX_REL_VIEW_H

#include "obj/ep.h"

/* What the channel thinks of a path now. */
struct lnx_path_view {
	unsigned share;			/* that health leaves it of what goes over several
					 * paths, in thousandths of the best one's */
	unsigned weight;		/* the least that was set by hand, 0 to
					 * LNX_HEALTH_MAX */
	unsigned remote_weight;		/* that the peer has set for its end; 0: avoid it */
	bool away;			/* frames were late there, and pause */
	uint8_t instead;		/* the current path is not connected: 1 + index of
					 * the path of the next frame, if it takes none; 0: it
					 * is, or there is no other */
	uint64_t in_flight;		/* bytes of frames that the peer is not known to have */
	uint64_t latency_ns;		/* how long an answer takes, or has taken so far; 0: not
					 * known */
	uint64_t next_ping_ns;		/* while it is DOWN; 0: it is not, or is not pinged */
};
/* The order of its paths (peer->choice) is made anew first, if it is out of date. */
void lnx_rel_view(struct lnx_peer *peer, const struct lnx_path *path, uint64_t now,
		  struct lnx_path_view *v);

/* Ask the peer over one path for an answer over that path, which ep->ctl.ping gets.  0, or
 * the core's error.  Calls a core. */
LNX_COLD int lnx_rel_ping(struct lnx_peer *peer, struct lnx_path *path, uint32_t number);

#endif
