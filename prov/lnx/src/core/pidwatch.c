/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells whether a process has ended.  See pidwatch.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/pidwatch.h"

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
	char path[40], text[1024], state, *p;
	unsigned long long ticks;
	long threads;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* "17 (name) S ...": the name may contain anything, so the last ')' counts. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			 "%*u %*u %*d %*d %*d %*d %ld %*d %llu",
			 &state, &threads, &ticks) != 3)
		return 0;
	/* The first thread may end before the others. */
	return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : ticks;
}
