/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which process of a job this is, from the variables that launchers set. */
#ifndef LNX_RANK_H
#define LNX_RANK_H

#include <stdbool.h>

/*
 * The rank of this process in its job, as the launcher wrote it in env ("NAME=value"
 * strings, NULL-ended; may be NULL): up to ten digits, a pointer into env.  NULL: no
 * launcher tells it.  Ranks among the processes of one node do not count.
 */
const char *lnx_rank(char *const env[]);

/*
 * Does this process write the messages of its job?  The first rank does; if only a rank
 * among the processes of the node is known, the first of each node; if none is known,
 * each process.
 */
bool lnx_rank_speaks(char *const env[]);

/* The id of the job as its batch system or launcher wrote it in env; NULL: none did. */
const char *lnx_conf_job(char *const env[]);

#endif
