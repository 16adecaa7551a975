/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells whether a process has ended.  See pidwatch.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "core/pidwatch.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434		/* the same on all machines */
#endif

static bool ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

/* ---- by number and time ---- */

uint64_t lnx_pidwatch_started(pid_t pid)
{
	uint64_t ticks;

	return lnx_proc_start_time(pid, &ticks) > 0 ? ticks : 0;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

int lnx_pidwatch_open_by_time(struct lnx_pidwatch *w, pid_t pid)
{
	struct lnx_pidwatch new = { .pid = pid, .fd = -1 };
	int ret;

	if (pid <= 0)
		return -EINVAL;
	ret = lnx_proc_start_time(pid, &new.started);
	/*
	 * Other users' processes may be hidden from us (hidepid), and there may be no
	 * /proc.
	 */
	if (ret <= 0)
		return !ret || is_gone(pid) ? -ESRCH : ret;
	*w = new;
	return 0;
}

static bool ended_by_time(const struct lnx_pidwatch *w)
{
	uint64_t started;
	int ret;

	ret = lnx_proc_start_time(w->pid, &started);
	if (ret > 0)
		return started != w->started;
	/*
	 * A file that cannot be read now, for example without free descriptors, tells
	 * nothing.
	 */
	return !ret || is_gone(w->pid);
}

/* ---- both methods ---- */

int lnx_pidwatch_open(struct lnx_pidwatch *w, pid_t pid)
{
	int fd;

	if (pid <= 0)
		return -EINVAL;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0) {
		/*
		 * The kernel does not have it, or a filter that does not know it
		 * forbids it.
		 */
		if (errno == ENOSYS || errno == EPERM)
			return lnx_pidwatch_open_by_time(w, pid);
		/* The number of a thread, not of a process. */
		return errno == EINVAL || errno == ENOENT ? -ESRCH : -errno;
	}
	if (ended(fd)) {
		close(fd);
		return -ESRCH;
	}
	*w = (struct lnx_pidwatch){ .pid = pid, .fd = fd };
	return 0;
}

bool lnx_pidwatch_dead(struct lnx_pidwatch *w)
{
	if (w->pid && !w->dead)
		w->dead = w->fd >= 0 ? ended(w->fd) : ended_by_time(w);
	return w->dead;
}

void lnx_pidwatch_close(struct lnx_pidwatch *w)
{
	if (w->pid && w->fd >= 0)
		close(w->fd);
	*w = (struct lnx_pidwatch){ .fd = -1 };
}
