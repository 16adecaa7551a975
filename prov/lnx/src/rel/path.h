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

#include <stdbool.h>
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

/* ---- while it is DOWN: what is known of its far end ---- */

/*
 * The kernel there is pinged, and the peer is asked over the path itself (rel/recovery.h).
 * What the kernel says never takes back what the peer has answered.
 */
enum lnx_far_state {
	LNX_FAR_UNKNOWN,		/* nothing came from there */
	LNX_FAR_MUTE,			/* the kernel answers, and the peer does not: a
					 * connection may hang */
	LNX_FAR_REFUSES,		/* the kernel says that nothing listens there */
	LNX_FAR_ANSWERED,		/* the peer has answered over the path */
	LNX_FAR_NSTATE,
};

enum lnx_far_event {
	LNX_FAR_ANEW,			/* the path is DOWN since now */
	LNX_FAR_KERNEL_ANSWERS,
	LNX_FAR_KERNEL_REFUSES,
	LNX_FAR_KERNEL_SILENT,		/* the network there is broken, or this host's */
	LNX_FAR_ASKS,			/* the peer asks us over the path */
	LNX_FAR_REOPENED,		/* our rail's core endpoint is closed: what was known
					 * is of the connection before */
	LNX_FAR_PONG,			/* the peer answers */
	LNX_FAR_NEVENT,
};

extern const uint8_t lnx_far_table[LNX_FAR_NSTATE][LNX_FAR_NEVENT];

/* Zero-initialised: unknown. */
struct lnx_far {
	uint64_t since_ns;		/* when that state began */
	uint8_t state;			/* enum lnx_far_state; lnx_path_far_happens */
};

/* True: the state is another one than before. */
static inline bool lnx_path_far_happens(struct lnx_far *f, enum lnx_far_event event, uint64_t now)
{
	uint8_t before = f->state;

	f->state = lnx_far_table[before][event];
	if (f->state != before || event == LNX_FAR_ANEW)
		f->since_ns = now;
	return f->state != before;
}

/* Since when it is in that state; 0: it is not. */
static inline uint64_t lnx_path_far_since(const struct lnx_far *f, enum lnx_far_state state)
{
	return f->state == state ? f->since_ns : 0;
}

#endif
