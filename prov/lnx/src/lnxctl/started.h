/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processes that a command starts, and theirs: which of them should have used lnx and did
 * not?  They are looked for in /proc, again and again, so one that lives for less than some
 * milliseconds may be missed.
 *
 * A process counts with its forks, until these execute something, and with the processes
 * behind it that have the rank of it: a script that starts the program of a rank is no
 * process without lnx.
 */
#ifndef LNXCTL_STARTED_H
#define LNXCTL_STARTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lnx_started;

/*
 * From now on.  Orphans of processes that are started later become children of this process,
 * which has to wait for them.  env: what the command gets.  Never NULL.
 */
struct lnx_started *lnx_started_open(char **env);
void lnx_started_close(struct lnx_started *s);

/* Look at what there is now.  Returns the time until the next look, in ns: long enough for
 * the looks to take a small part of one processor. */
uint64_t lnx_started_look(struct lnx_started *s);

/* A process has used lnx, by its number in its own pid name space.  rank: of it, or "".  Then
 * others of that rank that have nothing of libfabric are its scripts and helpers; and one
 * that was missed was of the program of that rank. */
void lnx_started_used(struct lnx_started *s, pid_t pid, const char *rank);

/* A sentence for each program or rank that did not, but for the last ones of many. */
void lnx_started_judge(const struct lnx_started *s,
		       void (*say)(void *arg, const char *sentence), void *arg);

/* Would libfabric hide lnx with FI_PROVIDER set to that? */
bool lnx_started_hides(const char *filter);

#endif
