/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large transfers are no frames: the caller reads or writes them in pieces, and posts these
 * to rail/.  The channel (rel.h) knows the paths, so it says which one the next piece takes,
 * and learns from each how fast its path is.  Owner lock held.  None of these but
 * lnx_rel_piece_late calls cores.
 */
#ifndef LNX_REL_PIECE_H
#define LNX_REL_PIECE_H

#include "obj/ep.h"

/*
 * Several paths: the one for the next piece, of those whose bit is set in able.  *len: bytes
 * of the transfer that are not yet requested; becomes the length of the piece; NULL: it has
 * one.  NULL: no path now; *line: because all have enough, so that the end of a piece allows
 * the next one.
 */
struct lnx_path *lnx_rel_piece(struct lnx_peer *peer, unsigned able, size_t *len,
			       uint64_t now, bool *line);
/* Called before a core gets a piece of len bytes, since that may end inside the call.
 * Returns how long it should take when its turn has come; 0: not known. */
uint64_t lnx_rel_piece_posted(struct lnx_path *path, size_t len, uint64_t now);
/* And once for each of these. */
enum lnx_rel_piece {
	LNX_PIECE_CAME,
	LNX_PIECE_FAILED,
	LNX_PIECE_REFUSED,		/* the core did not take it */
	LNX_PIECE_CUT,			/* failed because we have cut its connection: that
					 * says nothing of the path */
};
void lnx_rel_piece_ended(struct lnx_path *path, size_t len, enum lnx_rel_piece how,
			 uint64_t now);
/* It failed, or was refused, with an error of that class: the path is charged, once for all
 * that fail at the same time. */
LNX_COLD void lnx_rel_piece_charge(struct lnx_peer *peer, struct lnx_path *path,
				   unsigned class, uint64_t now);
/* We have cut its connection: no path is charged for that, and what was asked over it is asked
 * again. */
LNX_COLD void lnx_rel_path_cut(struct lnx_path *path, uint64_t now);
/*
 * The oldest piece on `path` should have come at due_ns.  Is it late: has another path, as
 * good by the user's order, delivered or answered since?  Returns the paths as good that work
 * (bits); 0: none has, perhaps because the peer has no CPU, and it is asked over each path.
 */
unsigned lnx_rel_piece_late(struct lnx_peer *peer, const struct lnx_path *path,
			    uint64_t due_ns, uint64_t now);

#endif
