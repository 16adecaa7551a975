/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What hazards.c, deaf.c and peer_dead.c share: contents, receives and sends by rank
 * and tag, and waiting that gives up.
 */
#ifndef HAZARD_H
#define HAZARD_H

#include <sys/types.h>

#include "../common/ft.h"

#define SLOT		(1 << 20)	/* largest message */
#define SLOTS		8

/*
 * Contents of message seq are outs[seq % SLOTS]: there are only so many
 * different ones, so that a buffer may be under way many times at once.
 */
extern unsigned char *outs[SLOTS];
/* To receive into, as large as the last prepare() asked for. */
extern unsigned char *ins;

void *need(void *p);			/* exits when there is no memory */
/* Fill outs for this rank; clear in_bytes of ins. */
void prepare(struct ft *ft, size_t in_bytes);
/* FT_PASS if op received message seq of sender, len bytes, into buf. */
int check(struct ft *ft, const struct ft_op *op, const void *buf, size_t len,
	  int sender, uint64_t seq);

/* Seconds to wait: few for a provider by itself, and where ft_known() tells
 * what will happen. */
double patience(const struct ft *ft);
/* Make progress until all n are complete or seconds have passed.  The number of
 * those that are not. */
int missing(struct ft *ft, struct ft_op *const *op, int n, double seconds);
/* FT_PASS if all complete within the time of one wait; what names them. */
int all_done(struct ft *ft, struct ft_op *const *op, int n, const char *what);

/* A receive from a rank (-1: anybody), a send of message seq to one.  NULL when
 * it was not taken. */
struct ft_op *post(struct ft *ft, bool tagged, int from, uint64_t tag,
		   void *buf, size_t len);
struct ft_op *put(struct ft *ft, bool tagged, int to, uint64_t tag,
		  uint64_t seq, size_t len);

/* May the memory of that process, at the address of `at` there, be read from here?
 * If not, shared memory moves large messages in pieces, for which both have to live
 * and to make progress. */
bool reads_memory(pid_t pid, const void *at);
/* May all ranks read each other's?  All ranks ask at once. */
bool all_read_memory(struct ft *ft);

#endif
