/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits for frames in the sequence: how many may be on their way over a rail, and of one
 * peer over a path (core/credits.h has the limits).  A frame uses a credit of the path it was
 * last posted on, and of that path's rail, from then until it is acknowledged and the core has
 * let go of it.
 *
 * A new frame without a credit waits in the peer's queue, in order.  If it lacks one of the
 * peer, the peer's acknowledgements let it go on; if it lacks one of the rail, the path joins
 * rail->delayed, and peers have their turns in the order in which they came.  A peer that has
 * nothing under way over a path may always send one frame there, whatever others have: so one
 * that does not answer takes nothing away from them but speed.  What is sent again is not
 * limited: it had its credit.
 *
 * Owner lock held; calls no core.
 */
#ifndef LNX_REL_TX_CREDITS_H
#define LNX_REL_TX_CREDITS_H

#include "obj/ep.h"

/* Slow half of lnx_path_credits_left. */
LNX_COLD bool lnx_path_credits_ask(const struct lnx_path *path);

/* May one more new frame leave over path? */
LNX_INLINE bool lnx_path_credits_left(const struct lnx_path *path)
{
	const struct lnx_rail *rail = path->rail;

	/* Not as one expression: see lnx_chan_window_open. */
	if (lnx_likely(rail->credits.used < rail->credits_fast))
		return true;
	return lnx_path_credits_ask(path);
}

/* A frame was posted over path, for the first time. */
LNX_INLINE void lnx_path_credits_take(struct lnx_path *path)
{
	lnx_tx_credits_take(&path->credits);
	lnx_tx_credits_take(&path->rail->credits);
}

/* Slow half of lnx_path_credits_give: there never were so many in use, or frames wait. */
LNX_COLD void lnx_rail_credits_note(struct lnx_rail *rail);

/* A frame that was last posted over path is over. */
LNX_INLINE void lnx_path_credits_give(struct lnx_path *path)
{
	struct lnx_rail *rail = path->rail;

	lnx_tx_credits_give(&path->credits);
	if (lnx_unlikely(rail->credits.used > rail->credits_call))
		lnx_rail_credits_note(rail);
	rail->credits.used--;
}

/* It is posted over another path. */
LNX_COLD void lnx_path_credits_move(struct lnx_path *from, struct lnx_path *to);

/* The next frame of peer's queue has no credit of path: it waits for one. */
LNX_COLD void lnx_peer_credits_wait(struct lnx_peer *peer, struct lnx_path *path);
/* A frame was put into peer's queue; the first or the last one has left it. */
LNX_COLD void lnx_peer_credits_queued(struct lnx_peer *peer);
LNX_COLD void lnx_peer_credits_unqueued(struct lnx_peer *peer);
/* Its queue is over: it waits for no credit any more. */
LNX_COLD void lnx_peer_credits_leave(struct lnx_peer *peer);
/* LNX_WORK_CREDITS: some are free again, for peers that wait. */
LNX_COLD void lnx_ep_credits_run(struct lnx_ep *ep);

#endif
