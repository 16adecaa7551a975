/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which process of a job is this?  From the variables that launchers set. */
#ifndef LNX_RANK_H
#define LNX_RANK_H

#include <stdbool.h>

/*
 * The rank of this process in its job, as the launcher wrote it in env ("NAME=value"
 * strings, NULL-ended; may be NULL): up to ten digits, a pointer into env.  NULL: no
 * launcher says.  Ranks among the processes of one node do not count.
 */
const char *lnx_rank(char *const env[]);

/*
 * Is this the process that speaks for its job?  The first rank; where only a rank
 * among the processes of the node is known, the first of each node; without any, each
 * process.
 */
bool lnx_rank_speaks(char *const env[]);

#endif
