/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Publishes the state of endpoints in the process's state segment (lnx_state.h,
 * ctl/state.h), and takes requests from there (ctl/mailbox.h).
 *
 * Counters are copied from the endpoint every 100 ms while it makes progress, everything
 * else each second; and all of it as soon as possible while a reader is there.  The data
 * path pays nothing for it, and progress one load in each 16th pass.  A pass handles
 * some peers at a time, so that thousands of them delay no message by more than 50 us.
 *
 * Endpoints that only lend receives (FI_CLASS_SRX_CTX) are not published.
 */
#ifndef LNX_CTL_H
#define LNX_CTL_H

#include "base/out.h"
#include "obj/ep.h"

/* The endpoint is enabled: publish it, if there is a segment.  Owner lock held. */
void lnx_ctl_open(struct lnx_ep *ep);
/* It is being closed, but still has its rails and peers.  Owner lock held. */
void lnx_ctl_close(struct lnx_ep *ep);
/*
 * To be called from progress, when lnx_ctl_due says so, with the present time, as
 * ep->ctl.run.  Owner lock held; calls cores, so not from inside their callbacks.
 */
LNX_COLD void lnx_ctl_pass(struct lnx_ep *ep, uint64_t now);
/*
 * `stats reset`: readers of the segment show counters and latencies from now on.  0; or
 * -FI_EOPNOTSUPP and a sentence: there is no segment.  Owner lock held.
 */
int lnx_ctl_reset(struct lnx_ep *ep, uint64_t now, struct lnx_out *o);

#endif
