/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells whether a process has ended.  See pidwatch.h. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "os/pidwatch.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434		/* the same on all machines */
#endif

static bool ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

int lnx_pidwatch_open(pid_t pid)
{
	int fd;

	if (pid <= 0)
		return -EINVAL;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		/* The number of a thread, not of a process. */
		return errno == EINVAL || errno == ENOENT ? -ESRCH : -errno;
	if (ended(fd)) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}

uint64_t lnx_pidwatch_started(pid_t pid)
{
	uint64_t ticks;

	return lnx_proc_start_time(pid, &ticks) > 0 ? ticks : 0;
}
