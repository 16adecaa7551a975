/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process with an endpoint of its own that peer_dead.c and local_exit.c kill. */
#ifndef VICTIM_H
#define VICTIM_H

#include "hazard.h"

#define VICTIM_FILES	8
#define VICTIM_PATH	200
#define VICTIM_NAP_US	200000

struct victim {
	pid_t pid;			/* 0: none */
	int fd;
	/* Files of shared memory: ours before, and what it leaves behind. */
	char ours[VICTIM_FILES][VICTIM_PATH];
	char theirs[VICTIM_FILES][VICTIM_PATH];
	int ntheirs;
};

/*
 * Fork it and open ft->o, with nothing open before; both have exchanged a message
 * then, as rank 1 (it) and rank 0.  It opens a plain endpoint, does that, unless it is
 * NULL (FT_PASS or it fails), and makes no progress afterwards.
 */
int victim_start(struct ft *ft, struct victim *v, const struct ft_cfg *cfg,
		 int (*does)(struct ft *ft));
/* Until it has done its part; deaf: without progress. */
int victim_ready(struct ft *ft, struct victim *v, bool deaf);
/* It kills itself VICTIM_NAP_US from now: we may be asleep then. */
int victim_dies_soon(struct ft *ft, struct victim *v);
/* Kill it unless it is dead; remove what it leaves behind. */
void victim_kill(struct victim *v);

#endif
