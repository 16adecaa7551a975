/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths that deliver nothing: found out, left, tried again.
 *
 * A path on which something is due and nothing comes is asked about: the peer, over
 * another path, what came to it by this one (PROBE, PONG).  An answer without
 * news blames the path; no answer blames nobody, because a peer that computes is as
 * silent as one that is gone.  A path that is to blame is left: its frames go out
 * again over the others, and what was to be read by it is read by them; receivers
 * drop what comes twice.  A link that goes down needs no asking.
 *
 * A path that was left is pinged over itself, at growing distances, until it
 * answers.  A connection that hangs may keep a buffer of the application busy, or not
 * notice for minutes that its network is back: then the rail's core endpoint is
 * opened anew, and its peers told the new address.
 *
 * Only peers with several paths have somewhere to go; what a single one delivers late
 * is the core's business.  All functions: owner lock held.
 */
#ifndef LNX_GUARD_H
#define LNX_GUARD_H

#include "obj/ep.h"

struct lnx_hdr;

/* Something is due from peer: look after its paths. */
LNX_COLD void lnx_guard_watch(struct lnx_peer *peer);
/* A pass over those that are looked after.  Calls cores. */
void lnx_guard_run(struct lnx_ep *ep, uint64_t now);
/* A PONG came in over rail.  Calls no core. */
LNX_COLD void lnx_guard_pong(struct lnx_peer *peer, const struct lnx_rail *rail,
			     const struct lnx_hdr *pong);
/* Leave a path, for a reason that stands in the log.  Calls no core. */
LNX_COLD void lnx_guard_leave(struct lnx_peer *peer, struct lnx_path *path,
			      const char *why, uint64_t now);

#endif
