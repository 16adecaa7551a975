/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The health board: what processes of one user on one node tell each other of the node's
 * rails, so that a new process need not find out again that one is dead.  Does no I/O: the
 * bytes of the file and the time go in, what to trust and what to write comes out.
 *
 *	/dev/shm/lnx-UID/health
 *
 * The file is a header and slots.  A slot is news of one rail: its name, the network name
 * space that the name belongs to, and what the process that wrote it last knew.  It is read
 * and written as a whole, without a lock.  It has a checksum: what was written by two at
 * once, or not to its end, is no news.
 *
 * A board is a hint, and may say anything.  What it says counts as hearsay
 * (policy/health.h): traffic avoids such a rail while another one works, until the first
 * proof of life over it, which PROBEs of that traffic bring.  Nothing is refused because of
 * it.
 *
 * Rules:
 *	- A process tells only what it has found itself, and nothing that was set by hand.
 *	- Bad news is told at once, repeated while it is true, and trusted for a time.
 *	- Good news is told only by a process that has had a proof of life since the bad news.
 *	- Bad news is not trusted about a rail that has a proof of life since the last look,
 *	  and no news is trusted twice.
 */
#ifndef LNX_POLICY_BOARD_H
#define LNX_POLICY_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/interval.h"
#include "policy/health.h"

#define LNX_BOARD_FILE		"health"
#define LNX_BOARD_MAGIC		"LNXBOARD"	/* 8 bytes, without NUL */
#define LNX_BOARD_VERSION	1u
#define LNX_BOARD_ORDER		0x01020304u
#define LNX_BOARD_SLOTS		64u
#define LNX_BOARD_NAME		128u	/* of a rail, with NUL; longer ones are not told */

/* Of a rail, bytes per second; more is not trusted. */
#define LNX_BOARD_SPEED_MAX	(1ull << 40)

struct lnx_board_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint32_t slots;
	uint32_t slot_size;
	uint64_t reserved[5];
};

#define LNX_BOARD_FATAL		1u	/* its link is down */

struct lnx_board_slot {
	uint64_t sum;			/* of all that follows, and of its number */
	uint64_t when_ns;		/* CLOCK_MONOTONIC */
	uint64_t netns;			/* network name space; 0: not known */
	uint64_t speed;			/* the most that was measured, bytes per second; 0:
					 * not known */
	uint32_t pid;			/* that wrote it */
	uint16_t value;			/* of health: 0 to 1000 */
	uint16_t flags;			/* LNX_BOARD_* */
	char name[LNX_BOARD_NAME];	/* "tcp:eth0", and NUL to the end */
};

struct lnx_board {
	struct lnx_board_header header;
	struct lnx_board_slot slot[LNX_BOARD_SLOTS];
};
_Static_assert(sizeof(struct lnx_board_header) == 64 &&
	       sizeof(struct lnx_board_slot) == 168, "no padding");

/* News of a rail, checked. */
struct lnx_board_news {
	uint64_t when_ns;
	uint64_t speed;
	uint32_t pid;
	uint16_t value;
	bool fatal;
};

/* What this process knows of one of its rails, and has told and heard of it. */
struct lnx_board_own {
	uint16_t value;			/* of its health */
	bool fatal;			/* its link is down */
	bool dead;			/* all paths over it are dead, others are not */
	bool pinned;			/* set by hand */
	bool hearsay;			/* value is what a board said */
	bool proven;			/* something came over it since the last look */
	uint64_t speed;
	/* From one look to the next: */
	uint64_t told_ns;		/* when it told of it; 0: never */
	uint64_t heard_ns;		/* when_ns of the last news that it heard */
	uint16_t told;			/* value that it told */
	bool told_fatal;
};

/* An empty board. */
void lnx_board_init(struct lnx_board *board);
/* Is it a board that this release understands?  len: bytes that there are; a short one has
 * empty slots behind its end. */
bool lnx_board_valid(const struct lnx_board *board, size_t len);

/* News in a slot; false: it has none. */
bool lnx_board_get(const struct lnx_board *board, unsigned slot, uint64_t now,
		   struct lnx_board_news *news);
/* The slot of a rail; -1: it has none.  The newest one counts, if there are several. */
int lnx_board_find(const struct lnx_board *board, const char *name, uint64_t netns,
		   uint64_t now, struct lnx_board_news *news);
/* The slot to write news of a rail to: its own, an empty one, or that of the oldest news. */
unsigned lnx_board_place(const struct lnx_board *board, const char *name, uint64_t netns,
			 uint64_t now);
/* Fill a slot.  False: the name is too long. */
bool lnx_board_put(struct lnx_board_slot *slot, unsigned number, const char *name,
		   uint64_t netns, const struct lnx_board_news *news);
/* Is there news that a process may trust? */
bool lnx_board_matters(const struct lnx_board *board, uint64_t now);

/* Is the rail bad, as far as we know ourselves? */
static inline bool lnx_board_bad(const struct lnx_board_own *own)
{
	return own->fatal || own->dead || own->value < LNX_HEALTH_MAX;
}

/* Is it to be told to others now?  heard: what the board says, or NULL. */
bool lnx_board_tells(const struct lnx_board_own *own, const struct lnx_board_news *heard,
		     uint64_t now);
/* What is told. */
struct lnx_board_news lnx_board_said(const struct lnx_board_own *own, uint32_t pid,
				     uint64_t now);
/* The health to take from news (lnx_health_hearsay); -1: none. */
int lnx_board_takes(const struct lnx_board_own *own, const struct lnx_board_news *heard,
		    uint64_t now);
/* Is hearsay over, because no process says so any more? */
bool lnx_board_expires(const struct lnx_board_own *own, const struct lnx_board_news *heard,
		       uint64_t now);

#endif
