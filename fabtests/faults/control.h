/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two processes of lives.c hear from each other besides the traffic, over the
 * control network, and from fabtests/faults/run, in lines of one character on standard
 * input.  Nothing here blocks progress.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "../common/ft.h"

/* The kinds of blocks that the two exchange. */
enum {
	CONTROL_ROUND,			/* a barrier of a round */
	CONTROL_MORE,			/* another round? */
	CONTROL_AGAIN,			/* something has been hit: we have to meet again */
	CONTROL_NAME,
	CONTROL_READY,
	CONTROL_REACHED,
	CONTROL_CHECKED,
	CONTROL_FILLED,
	CONTROL_QUIET,
};

/* What is known; both are in the same order for both processes. */
struct control {
	bool lost;			/* the other process has ended */
	bool again;			/* it has sent a CONTROL_AGAIN */
	/* Told by fabtests/faults/run. */
	bool cut;			/* 'c': it cuts the two off from each other */
	bool silent;			/* 's': now nothing passes */
	bool healed;			/* 'h': and has ended that */
	bool end;			/* 'e': end at once, but in an orderly way */
	bool quit;			/* 'q': no more rounds */
};

extern struct control control;

/* Instead of the idle function of ft->oob. */
void control_begin(struct ft *ft);
/* Notices what has changed; sets ft->abandoned if a round cannot go on. */
void control_look(struct ft *ft);
/* The same, and see whether the other process has ended although there is more to read from
 * it: what it sent before. */
void control_look_behind(struct ft *ft);
/*
 * Send a block of this kind and receive the other's.  FT_PASS; FT_FAIL; or SOAK_HIT if the
 * other one has ended, or is at CONTROL_AGAIN, or this process is to end.
 */
int control_swap(struct ft *ft, unsigned kind, const void *mine, void *theirs,
		 size_t len);
/* Wait for the process that takes the place of one that has ended.  FT_PASS or FT_FAIL. */
int control_rejoin(struct ft *ft);

#endif
