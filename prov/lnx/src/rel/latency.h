/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How soon a peer answers over each of its paths, and on which one its frames therefore
 * stay.  While there is traffic, a PROBE goes over each path now and then and asks about
 * that path; its PONG comes back by the same path.  Announcements and acknowledgements
 * are few bytes, but all else waits for them: on a path with a delay of 50 ms they would
 * hold up what the other paths could carry.
 *
 * On a path that loses packets an answer may come soon, and the next frame late.  So a
 * frame that waits much longer than answers take makes us ask over all paths at once.  If
 * the peer answers over another one that it still lacks the frame, the frame is late: it
 * and those behind it go again over a better path (rel/hedge.h), and frames stay away from
 * theirs for a while, longer each time.
 *
 * For peers with several paths.  All functions: owner lock held.
 */
#ifndef LNX_LATENCY_H
#define LNX_LATENCY_H

#include "obj/ep.h"

/* A look at the paths of a peer that something is due from: send PROBEs, choose peer->cur.
 * Returns when to look again.  Calls cores. */
uint64_t lnx_latency_run(struct lnx_peer *peer, uint64_t now);

/* A PONG came over rail, with that number, about path.  False: it answers nothing that was
 * asked.  Calls no core. */
bool lnx_latency_pong(struct lnx_path *path, const struct lnx_rail *rail,
		      uint32_t number, uint64_t now);

/* A PROBE with that number left over path, of several. */
LNX_COLD void lnx_latency_mark(struct lnx_path *path, uint32_t number);
/* It, or a later one, was answered over path; total: the bytes that the peer has received
 * over it.  Calls no core. */
LNX_COLD void lnx_latency_settle(struct lnx_peer *peer, struct lnx_path *path,
				 uint32_t number, uint64_t total);

/* Something is late: ask over each path now, not only when its turn comes.  Calls cores. */
void lnx_latency_ask(struct lnx_peer *peer, uint64_t now);

/* How long an answer over the path takes, or has taken so far, in ns; 0: not known. */
uint64_t lnx_latency_of(const struct lnx_path *path, uint64_t now);

/*
 * Something was late there, and the path has neither delivered nor answered since: that is
 * due, though what was late may have gone over other paths meanwhile.  When that has been so
 * for limit_ns; LNX_NEVER: it is not so.
 *
 * The same if its core has refused all PROBEs for so long, though the peer has answered before:
 * the connection is lost, and cannot be made anew.
 */
static inline uint64_t lnx_latency_doubt_ns(const struct lnx_path *path, uint64_t limit_ns)
{
	const struct lnx_path_speed *s = path->speed;

	if (s && s->answered_ns && s->refused_ns)
		return s->refusing_ns + limit_ns;
	return s && s->doubt_ns > s->answered_ns && s->unanswered_ns ?
	       s->unanswered_ns + limit_ns : LNX_NEVER;
}

#endif
