/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one case, forked from rank 0 with nothing open: each can change
 * what it is (its user, what may be done to it) before it opens an endpoint, and
 * neither has to change back.
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
 * Fork both, have them run `side`, and wait for them.  FT_PASS if both said so; why
 * one did not is in ft->why.  A process that does not end is killed.
 */
int pair_run(struct ft *ft, const struct ft_case *c,
	     int (*side)(struct pair *p));

/* All below are for `side`, which both processes call in the same order. */

/* Open an endpoint and insert both addresses; opened, unless NULL, is called between. */
int pair_open(struct pair *p, const struct ft_cfg *cfg,
	      int (*opened)(struct pair *p));
/* Give len bytes to the other process and get as many. */
int pair_swap(struct pair *p, const void *mine, void *theirs, size_t len);
/* Both have come here; makes progress meanwhile, once the endpoint is open. */
int pair_meet(struct pair *p);
/* A counter of the endpoint over lnx; UINT64_MAX: there is none of that name. */
uint64_t pair_stat(struct pair *p, const char *name);

#endif
