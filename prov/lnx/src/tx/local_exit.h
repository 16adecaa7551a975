/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local peers whose process has ended: what is outstanding to them ends with an error,
 * and they are unreachable from then on.  The core would let it wait for ever.
 *
 * Nothing of this is on the way of a message.  Who sleeps is woken (core/exit_monitor.h);
 * progress looks while a large send, or one that the core did not take, is outstanding
 * (LNX_WORK_WATCH), and along with a network rail that is idle.
 *
 * Owner lock held, not inside a core's callback.
 */
#ifndef LNX_LOCAL_EXIT_H
#define LNX_LOCAL_EXIT_H

#include "obj/ep.h"

/* Now: one system call. */
void lnx_local_exit_look(struct lnx_ep *ep);
/* The same from time to time, and those that no descriptor tells of. */
void lnx_local_exit_run(struct lnx_ep *ep, uint64_t now);

#endif
