/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The name of the file that FI_LNX_STATS_FILE stands for. */
#ifndef LNX_STATS_NAME_H
#define LNX_STATS_NAME_H

#include <limits.h>
#include <sys/types.h>

/* What is there already is replaced if it is a file, and else not, with this reason. */
#define LNX_STATS_NAME_SPECIAL	"it is there, and no regular file, so it is not replaced"

/*
 * Replace %p by the number of a process, %h by its host, %r by its rank ("": none), %% by %.
 * 0, or -EINVAL with the reason, a constant, in *why.
 */
int lnx_stats_name(const char *name, pid_t pid, const char *host, const char *rank,
		   char path[PATH_MAX], const char **why);

#endif
