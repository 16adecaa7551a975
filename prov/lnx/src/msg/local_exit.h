/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local peers whose process has ended: what is outstanding to them ends with an error,
 * and they are unreachable from then on.  The core would let it wait for ever.
 *
 * Nothing of this is in the path of a message.  Sleeping threads are woken
 * (core/exit_monitor.h).  Progress checks while a large send, or one that the core did
 * not take, is outstanding (LNX_DUE_LOCAL), and together with a network rail that is
 * idle.
 *
 * Owner lock held, not inside a core's callback.
 */
#ifndef LNX_LOCAL_EXIT_H
#define LNX_LOCAL_EXIT_H

#include "obj/ep.h"

/* Check now: one system call. */
void lnx_local_exit_look(struct lnx_ep *ep);
/* Check from time to time, also peers without a descriptor: LNX_DUE_LOCAL.  Returns when
 * to call it again. */
uint64_t lnx_local_exit_run(struct lnx_ep *ep, uint64_t now);

#endif
