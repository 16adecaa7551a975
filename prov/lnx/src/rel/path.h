/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The states of a path to a peer, and what changes them.  Does no I/O.
 *
 * Taken by a core is not delivered: a core may take frames for minutes that its
 * connection never delivers.  So nothing that our own core says ends DOWN, only the
 * peer's answer over that path.
 */
#ifndef LNX_REL_PATH_H
#define LNX_REL_PATH_H

#include <stdint.h>

enum lnx_path_state {
	LNX_PATH_IDLE,			/* not used yet */
	LNX_PATH_CONNECTING,		/* the core takes nothing: it is tried again */
	LNX_PATH_UP,
	LNX_PATH_DEAD,			/* its deadline passed, as those of all others */
	LNX_PATH_DOWN,			/* delivers nothing, or may not be used */
	LNX_PATH_NSTATE,
};

enum lnx_path_event {
	LNX_PATH_TOOK,			/* the core took a frame */
	LNX_PATH_REFUSED,		/* it took none: it may be connecting */
	LNX_PATH_BROKE,			/* it failed a frame that it had taken */
	LNX_PATH_EXPIRED,		/* no path has taken anything for too long */
	LNX_PATH_GAVE_UP,		/* what it refused need not be sent any more */
	LNX_PATH_LOST,			/* silent, link down, or drained */
	LNX_PATH_ANSWERED,		/* the peer answered over it, and it may be used */
	LNX_PATH_REOPENED,		/* its rail has another core endpoint */
	LNX_PATH_NEVENT,
};

/* The state after an event, by the state before it. */
extern const uint8_t lnx_path_table[LNX_PATH_NSTATE][LNX_PATH_NEVENT];

#endif
