/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells which processes of local peers have ended; shared memory does not.  All are
 * behind one descriptor: asking is one system call however many they are, and sleepers
 * can be woken.
 *
 * A peer is watched only if its process is known for certain: the kernel lets us read
 * its memory, and the liveness cookie of its endpoint is there; or it was started at
 * the time that its endpoint says, and its number is from our own name space.  A text
 * that stands for the host (FI_LNX_HOST_ID) may join name spaces of process ids, where
 * one number means different processes.  For all other peers, and without pidfds,
 * msg/local_exit.c checks from time to time while something is due.
 *
 * Owner lock held.
 */
#ifndef LNX_EXIT_MONITOR_H
#define LNX_EXIT_MONITOR_H

#include "obj/ep.h"

/* For an endpoint with shared memory.  If this fails, the endpoint has no monitor. */
void lnx_exit_monitor_open(struct lnx_ep *ep);
/* Forgets the peers too. */
void lnx_exit_monitor_close(struct lnx_ep *ep);

/* Watch the process of peer->shm.where.  True: it is certainly the peer's process, even if
 * it could not be watched. */
bool lnx_exit_monitor_watch(struct lnx_peer *peer);
void lnx_exit_monitor_forget(struct lnx_peer *peer);

/* A peer whose process has ended, and which is no longer watched; or NULL. */
struct lnx_peer *lnx_exit_monitor_next(struct lnx_ep *ep);
/* Readable while there is such a peer; -1: it never is. */
int lnx_exit_monitor_fd(const struct lnx_ep *ep);

#endif
