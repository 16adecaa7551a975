/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that come through the state segment (lnx_state.h).  All that is read from
 * there may change at any time, and is copied before it is checked.  Owner lock held.
 */
#ifndef LNX_MAILBOX_H
#define LNX_MAILBOX_H

#include "ctl/request.h"
#include "lnx_state.h"
#include "obj/ep.h"

/* Of one endpoint; zero-initialised. */
struct lnx_mailbox_side {
	uint32_t seen;			/* number of the last request looked at */
	struct lnx_ctl_job job;		/* a request that is not finished */
	uint32_t number;		/* its number; 0: there is none */
	char *job_buf;			/* for its reply; owned */
	char *reply;			/* the last one, if it has more parts; owned */
	size_t reply_len;
};

/* Look for a request to this endpoint, carry it out, or go on with one.  True: that took
 * time.  Calls cores. */
LNX_COLD bool lnx_mailbox_run(struct lnx_mailbox_side *side, struct lnx_ep *ep,
			      struct lnx_state_mailbox *m, uint64_t now);
/* Is a request under way?  Then run should be called again soon. */
static inline bool lnx_mailbox_busy(const struct lnx_mailbox_side *side)
{
	return side->number != 0;
}
void lnx_mailbox_fini(struct lnx_mailbox_side *side);

#endif
