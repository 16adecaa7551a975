/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes, as /proc shows them.  A number and a start time together name one process
 * of this pid name space for ever.  Nothing is kept; any thread.
 */
#ifndef LNX_PROC_H
#define LNX_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * 1, with the time when pid was started, in clock ticks since boot; 0: it has ended,
 * and its parent has not noticed; or a negative errno, -ENOENT if there is no
 * information about it.
 */
int lnx_proc_start_time(pid_t pid, uint64_t *ticks);

/* The pid name space of this process, as an inode number; 0: not known. */
uint64_t lnx_proc_pid_ns(void);

/* Does the process that was started then live?  Yes if that cannot be found out. */
enum lnx_proc_life {
	LNX_PROC_ENDED,
	LNX_PROC_LIVES,
	LNX_PROC_UNKNOWN,		/* /proc hides it */
};
enum lnx_proc_life lnx_proc_life(pid_t pid, uint64_t ticks);

/* Its name, as /proc/PID/comm has it; "" if that is not known.  Printable. */
void lnx_proc_name(pid_t pid, char *buf, size_t size);

#endif
