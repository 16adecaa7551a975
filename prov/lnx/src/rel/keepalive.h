/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are in no address vector, such as clients of a server, and that die while
 * nothing is due from them: no send would ever find that out, and no fi_av_remove frees
 * them.  So each is asked now and then, as TCP's keepalive does: by a PROBE, and its
 * kernels if it does not answer.  One that computes or is stopped stays; one whose kernel
 * says that nothing listens there any more is given up, and freed like any other peer
 * without a session (core/peer_end.c).  A mute host may come back, so that takes many
 * questions in turn.
 *
 * Peers in an address vector are the application's, and local ones are found to be dead
 * by other means (core/exit_monitor.h): neither is asked.  Owner lock held.
 */
#ifndef LNX_KEEPALIVE_H
#define LNX_KEEPALIVE_H

#include "obj/ep.h"

/* LNX_DUE_KEEPALIVE: ask the next few.  Returns when to call it again; LNX_NEVER: there is
 * no such peer.  Calls no core. */
LNX_COLD uint64_t lnx_keepalive_run(struct lnx_ep *ep, uint64_t now);

/* Is a sign of life still due from the peer?  Called when it is looked at, before its
 * liveness is checked. */
bool lnx_keepalive_due(struct lnx_peer *peer);
/* The peer would be given up for err; idle: nothing else was due from it.  True: it is not,
 * and will be asked again. */
LNX_COLD bool lnx_keepalive_stays(struct lnx_peer *peer, bool idle, int err);

#endif
