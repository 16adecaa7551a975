/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rel/sched.h decides the next piece of a large transfer from.  The others include
 * rel_piece.h.  Owner lock held.
 */
#ifndef LNX_PIECE_H
#define LNX_PIECE_H

#include "obj/ep.h"

struct lnx_sched;

/* All that it needs.  able: the paths, as bits, that may be asked for the transfer. */
void lnx_piece_facts(const struct lnx_peer *peer, unsigned able, uint64_t now,
		     struct lnx_sched *s);

#endif
