/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processes of local peers: which of them have ended?  Shared memory tells nothing
 * of that.  All are behind one descriptor, so that asking is one system call however
 * many they are, and who sleeps can be woken.
 *
 * A peer is there only if it is certain whose process it is: the kernel lets us read
 * its memory, and the mark of its endpoint is in it; or it was started when its endpoint
 * says, and the number is of our own name space.  A text that stands for the host
 * (FI_LNX_HOST_ID) may join name spaces of process ids, where the number of one
 * process is that of another.  For all others, and without pidfds, tx/local_exit.c asks
 * from time to time while something is due.
 *
 * Owner lock held.
 */
#ifndef LNX_EXIT_MONITOR_H
#define LNX_EXIT_MONITOR_H

#include "obj/ep.h"

/* For an endpoint with shared memory.  What fails here leaves it without. */
void lnx_exit_monitor_open(struct lnx_ep *ep);
/* Its peers are forgotten, too. */
void lnx_exit_monitor_close(struct lnx_ep *ep);

/* Watch the process of peer->where.  True: it is the one meant; it may not be watched
 * all the same. */
bool lnx_exit_monitor_watch(struct lnx_peer *peer);
void lnx_exit_monitor_forget(struct lnx_peer *peer);

/* One whose process has ended, and who is watched no more; or NULL. */
struct lnx_peer *lnx_exit_monitor_next(struct lnx_ep *ep);
/* Readable while there is one; -1: it never is. */
int lnx_exit_monitor_fd(const struct lnx_ep *ep);

#endif
