/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What hazards.c, deaf.c and peer_dead.c share: contents, receives and sends by
 * rank and tag, and waiting with a time limit.
 */
#ifndef HAZARD_H
#define HAZARD_H

#include <sys/types.h>

#include "../common/ft.h"

#define SLOT		(1 << 20)	/* largest message */
#define SLOTS		8

/*
 * Contents of message seq are outs[seq % SLOTS].  There are only SLOTS
 * different ones, so the same buffer may be in many sends at once.
 */
extern unsigned char *outs[SLOTS];
/* The buffer for receives, as large as the last prepare() required. */
extern unsigned char *ins;

void *need(void *p);			/* exits when p is NULL: no memory */
/* Fill outs for this rank; clear in_bytes of ins. */
void prepare(struct ft *ft, size_t in_bytes);
/* FT_PASS if op received message seq of sender, len bytes, into buf. */
int check(struct ft *ft, const struct ft_op *op, const void *buf, size_t len,
	  int sender, uint64_t seq);

/* Seconds to wait: few over a bare provider for which ft_known() expects a failure. */
double time_limit(const struct ft *ft);
/* Make progress until all n are complete or the seconds have passed.  Returns
 * how many are not complete. */
int missing(struct ft *ft, struct ft_op *const *op, int n, double seconds);
/* FT_PASS if all complete within the time of one wait; `what` names them in
 * messages. */
int all_done(struct ft *ft, struct ft_op *const *op, int n, const char *what);

/* A receive from a rank (-1: any source), or a send of message seq to one.
 * NULL when it was refused. */
struct ft_op *post(struct ft *ft, bool tagged, int from, uint64_t tag,
		   void *buf, size_t len);
struct ft_op *put(struct ft *ft, bool tagged, int to, uint64_t tag,
		  uint64_t seq, size_t len);

/* Resident memory of this process. */
double resident_bytes(void);
/* From now on memory becomes resident by small pages, also where the kernel would take huge ones
 * (transparent_hugepage "always"), with which 13 to 15 MiB were resident that nothing had asked
 * for.  Processes that this one starts inherit it. */
void count_each_page(void);

/* Can the memory of that process, at its address `at`, be read from here?  If
 * not, shared memory moves large messages in pieces, and for these both
 * processes have to live and to make progress. */
bool reads_memory(pid_t pid, const void *at);
/* Can all ranks read each other's memory?  All ranks call this at once. */
bool all_read_memory(struct ft *ft);

#endif
