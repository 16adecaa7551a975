/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The health board of this node and user: its file.  policy/board.h has what is in it and
 * what is trusted of it.
 *
 * Nothing is mapped and no descriptor is kept: the file is opened, read or written in one
 * piece, and closed, in passes in which the endpoint does nothing else.  What cannot be
 * opened, or is not as it should be, is as if it were not there; what is in its place is
 * replaced with the next news.  The file is made when there is bad news, and removed, by
 * processes that begin or end, when there is none any more.
 */
#ifndef LNX_HEALTH_BOARD_H
#define LNX_HEALTH_BOARD_H

#include "obj/ep.h"

/* Where the directories of users are: LNX_STATE_DIR; tests change it. */
extern const char *lnx_board_root;

/* A rail was opened: what do others say of it?  Owner lock held, or no other thread has it. */
LNX_COLD void lnx_health_board_rail(struct lnx_rail *rail, uint64_t now);

/* Read the board and write what is news: LNX_DUE_BOARD.  Returns when to call it again;
 * LNX_NEVER: when something has happened. */
LNX_COLD uint64_t lnx_health_board_run(struct lnx_ep *ep, uint64_t now);

/* Something has happened that may be news.  Owner lock held; calls nothing. */
LNX_INLINE void lnx_health_board_due(struct lnx_ep *ep, uint64_t at_ns)
{
	if (ep->conf->health_board)
		lnx_ep_due(ep, LNX_DUE_BOARD, at_ns);
}

/* Remove the file from that directory of the user if no process would trust it. */
LNX_COLD void lnx_health_board_clean(int dir, uid_t uid, uint64_t now);

#endif
