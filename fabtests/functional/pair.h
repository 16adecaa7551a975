/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one case, forked from rank 0 with nothing open.  Each can
 * change its own state (its user, its permissions) before it opens an endpoint,
 * and need not change it back.
 */
#ifndef PAIR_H
#define PAIR_H

#include "hazard.h"

struct pair {
	struct ft *ft;			/* rank 0 or 1; not open yet */
	const struct ft_case *c;
	int fd;				/* to the other process */
};

/*
 * Fork both, run `side` in them, and wait for them.  FT_PASS if both returned
 * it; otherwise ft->why has the reason.  A process that does not end is killed.
 */
int pair_run(struct ft *ft, const struct ft_case *c,
	     int (*side)(struct pair *p));

/* All functions below are for `side`; both processes call them in the same order. */

/* Open an endpoint and insert both addresses; `opened`, unless NULL, is called
 * between. */
int pair_open(struct pair *p, const struct ft_cfg *cfg,
	      int (*opened)(struct pair *p));
/* Send len bytes to the other process and receive as many. */
int pair_swap(struct pair *p, const void *mine, void *theirs, size_t len);
/* A barrier of both processes; it makes progress once the endpoint is open. */
int pair_meet(struct pair *p);
/* A counter of the endpoint over lnx; UINT64_MAX: there is none of that name. */
uint64_t pair_stat(struct pair *p, const char *name);

#endif
