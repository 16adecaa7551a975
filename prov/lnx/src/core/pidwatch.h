/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does a process of this host still live?  Shared memory does not report a peer's
 * death.  Where the kernel has pidfds (5.3) a descriptor holds the process, so that
 * another one which gets the same number later is never taken for it.  Otherwise the
 * process is known by its number and its start time.
 *
 * The number is one of our own name space of process ids.  A number from a peer in
 * another name space (a container that shares memory with ours) means another process
 * here, or none.  That case is excluded before: lnx_host_identity covers the name
 * space.
 *
 * One user at a time: callers serialise.  Nothing waits.
 */
#ifndef LNX_PIDWATCH_H
#define LNX_PIDWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lnx_pidwatch {
	pid_t pid;			/* 0: no process is watched */
	bool dead;			/* final */
	int fd;				/* -1: no pidfds here */
	uint64_t started;		/* without pidfds: clock ticks since boot */
};

/*
 * Watch process pid, which may belong to another user.  0; -ESRCH: there is none, or it
 * has ended and its parent has not noticed yet; -EINVAL: no process can have that
 * number; or another negative errno, like -EMFILE: it cannot be watched.  Only the
 * caller can find out whether it is the process that was meant, and must do so
 * afterwards: if it is then (by a cookie in its memory, for example), it has been
 * watched since before that check.
 */
int lnx_pidwatch_open(struct lnx_pidwatch *w, pid_t pid);

/*
 * Has it ended?  One poll(2), or without pidfds two to three calls.  A process that is
 * stopped lives; one that has exited is dead, even if its parent has not noticed.
 */
bool lnx_pidwatch_dead(struct lnx_pidwatch *w);

/*
 * Start time of pid, in clock ticks since boot.  Together with the number it names one
 * process of this name space for ever.  0: it has ended, or there is no information
 * about it.
 */
uint64_t lnx_pidwatch_started(pid_t pid);

/* Readable once it is dead, for epoll; -1: must be polled from time to time. */
static inline int lnx_pidwatch_fd(const struct lnx_pidwatch *w)
{
	return w->pid ? w->fd : -1;
}

/* No process is watched afterwards.  A zeroed one may be closed too. */
void lnx_pidwatch_close(struct lnx_pidwatch *w);

/*
 * For tests, the method without pidfds: as lnx_pidwatch_open on a kernel that has none.
 */
int lnx_pidwatch_open_by_time(struct lnx_pidwatch *w, pid_t pid);

#endif
