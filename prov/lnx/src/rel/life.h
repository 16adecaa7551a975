/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The life of a peer: of one session with it, as this end sees it.  Does no I/O.
 *
 * A session ends once.  The next one with the same endpoint is another peer, and both
 * may exist for a while: what the old one still has ends first.  Two things are to be
 * known of a peer.  May anything still be sent to it (OPEN)?  And has all that was
 * outstanding failed (DEAD and later)?  Between the two is what a progress pass does:
 * the end may be noticed inside a send, where nothing may be reported.
 */
#ifndef LNX_REL_LIFE_H
#define LNX_REL_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* The order matters: see the predicates. */
enum lnx_life {
	LNX_LIFE_OPEN,			/* messages flow, or nothing was sent yet */
	LNX_LIFE_CLOSING,		/* the peer ended the session; what is outstanding
					 * fails in the next pass */
	LNX_LIFE_DETACHED,		/* the same, and neither an id nor an address leads
					 * to it */
	LNX_LIFE_DEAD,			/* given up: all has failed, sends fail at once; the
					 * peer may not know, and is told */
	LNX_LIFE_CLOSED,		/* the peer ended it, and all has failed */
	LNX_LIFE_GONE,			/* all has failed, and nothing leads to it: freed
					 * when nothing refers to it */
	LNX_LIFE_NSTATE,
};

enum lnx_life_event {
	LNX_LIFE_ENDED,			/* the peer ended the session, or has another */
	LNX_LIFE_FAILED,		/* all that is outstanding fails now */
	LNX_LIFE_DETACH,		/* ids and the address are for the next session */
	LNX_LIFE_NEVENT,
};

/* The state after an event, by the state before it. */
extern const uint8_t lnx_life_table[LNX_LIFE_NSTATE][LNX_LIFE_NEVENT];

static inline bool lnx_life_dead(uint8_t life)
{
	return life >= LNX_LIFE_DEAD;
}

static inline bool lnx_life_detached(uint8_t life)
{
	return life == LNX_LIFE_DETACHED || life == LNX_LIFE_GONE;
}

/* This end gave it up, and the peer did not: it has to be told. */
static inline bool lnx_life_given_up(uint8_t life)
{
	return life == LNX_LIFE_DEAD;
}

#endif
