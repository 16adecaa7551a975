/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does a process of this host still live?  Shared memory tells nothing of a peer's
 * death.  A process is held by a descriptor (pidfd) where the kernel has them (5.3), so
 * that another one which is given the same number later is never taken for it; else
 * by its number together with the time when it was started.
 *
 * A number means a process of the name space of process ids that we are in: one that
 * was told by a peer in another (a container that shares memory with ours) is that of
 * somebody else, or nobody.  That is found out before: lnx_host_identity covers the
 * name space.
 *
 * One user at a time: callers serialise.  Nothing waits.
 */
#ifndef LNX_PIDWATCH_H
#define LNX_PIDWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lnx_pidwatch {
	pid_t pid;			/* 0: nobody is watched */
	bool dead;			/* it stays dead */
	int fd;				/* -1: there are no pidfds here */
	uint64_t started;		/* without one: clock ticks since boot */
};

/*
 * Watch process pid, which may belong to another user.  0; -ESRCH: there is none, or it
 * has ended and its parent has not noticed yet; -EINVAL: no process can have that
 * number; or another negative errno, as -EMFILE: it cannot be watched.
 * Whether it is the process that the caller means, only the caller can find out, and
 * afterwards: if then it is (by a mark in its memory, say), it is watched from before.
 */
int lnx_pidwatch_open(struct lnx_pidwatch *w, pid_t pid);

/*
 * Has it ended?  One poll(2), or without pidfds two to three calls.  A process that is
 * stopped lives; one that has exited is dead although its parent has not noticed.
 */
bool lnx_pidwatch_dead(struct lnx_pidwatch *w);

/*
 * When pid was started, in clock ticks since boot: with its number that names a process
 * of this name space for ever.  0: it has ended, or nothing is told of it.
 */
uint64_t lnx_pidwatch_started(pid_t pid);

/* Readable once it is dead, for epoll; -1: must be asked from time to time. */
static inline int lnx_pidwatch_fd(const struct lnx_pidwatch *w)
{
	return w->pid ? w->fd : -1;
}

/* Nobody is watched afterwards.  A zeroed one may be closed too. */
void lnx_pidwatch_close(struct lnx_pidwatch *w);

/*
 * For tests, the way without pidfds: as lnx_pidwatch_open on a kernel that has none.
 */
int lnx_pidwatch_open_by_time(struct lnx_pidwatch *w, pid_t pid);

#endif
