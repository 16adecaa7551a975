/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process with an endpoint of its own that peer_dead.c and local_exit.c kill. */
#ifndef VICTIM_H
#define VICTIM_H

#include "hazard.h"
#include "shm_files.h"

#define VICTIM_NAP_US	200000

struct victim {
	pid_t pid;			/* 0: none */
	int fd;
	/* Files of shared memory: ours before the fork, and those that it
	 * leaves behind. */
	struct shm_files ours, theirs;
};

/*
 * Fork it and open ft->o; nothing may be open before.  Afterwards it (as rank
 * 1) and rank 0 have exchanged a message.  It opens a plain endpoint with the caps of
 * cfg, calls `does` unless that is NULL (which returns FT_PASS, or the start fails), and
 * makes no progress afterwards.
 */
int victim_start(struct ft *ft, struct victim *v, const struct ft_cfg *cfg,
		 int (*does)(struct ft *ft));
/* Wait until it has done its part; deaf: without making progress. */
int victim_ready(struct ft *ft, struct victim *v, bool deaf);
/* It kills itself in VICTIM_NAP_US: meanwhile we may fall asleep. */
int victim_dies_soon(struct ft *ft, struct victim *v);
/* Kill it unless it is dead, and reap it: its files stay until victim_kill. */
void victim_leave(struct victim *v);
/* Kill it unless it is dead; remove the files that it leaves behind. */
void victim_kill(struct victim *v);

#endif
