/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells when a process of this host has ended, which shared memory does not.  A pidfd
 * (Linux 5.3) holds the process, so that another one which gets the same number later is
 * never taken for it.  Where there is none, a process is known by its number and its start
 * time (core/exit_monitor.c, msg/local_exit.c).
 *
 * The number is one of our own name space of process ids.  A number from a peer in
 * another name space (a container that shares memory with ours) means another process
 * here, or none.  That case is excluded before: lnx_host_identity covers the name
 * space.
 *
 * Any thread.  Nothing waits.
 */
#ifndef LNX_PIDWATCH_H
#define LNX_PIDWATCH_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A descriptor of process pid, which may belong to another user.  It is the caller's,
 * closed on exec, and readable (poll, epoll) once the process has ended, even if its
 * parent has not noticed; one that is stopped lives.  -ESRCH: there is none, or it has
 * ended and its parent has not noticed yet; -EINVAL: no process can have that number;
 * -ENOSYS or -EPERM: this kernel has no pidfds, or a filter does not know them; or another
 * negative errno, like -EMFILE: it cannot be watched.
 *
 * Only the caller can find out whether it is the process that was meant, and must do so
 * afterwards: if it is then (by a cookie in its memory, for example), it has been
 * watched since before that check.
 */
int lnx_pidwatch_open(pid_t pid);

/*
 * Start time of pid, in clock ticks since boot.  Together with the number it names one
 * process of this name space for ever.  0: it has ended, or there is no information
 * about it (no /proc, or another user's process is hidden there).
 */
uint64_t lnx_pidwatch_started(pid_t pid);

#endif
