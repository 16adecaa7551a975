/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control requests to an endpoint, as text (lnx_ext.h, policy/request.h): for programs
 * through fi_open_ops, and for lnxctl through the mailbox of the state segment.
 */
#ifndef LNX_CTL_REQUEST_H
#define LNX_CTL_REQUEST_H

#include <sys/types.h>

#include "base/out.h"
#include "obj/ep.h"

/* As lnx_control_ops.request.  Takes the owner lock; calls cores: peers may be told. */
ssize_t lnx_ctl_request(struct lnx_ep *ep, const char *text, char *reply,
			size_t size);

/*
 * A request that waits for a peer.  run is to be called in later passes until it returns
 * something else than -FI_EINPROGRESS: 0, with the whole answer in o, or a negative
 * errno with a sentence.  To give it up, call lnx_ctl_drop.
 */
struct lnx_ctl_job {
	int (*run)(struct lnx_ctl_job *job, struct lnx_ep *ep, uint64_t now,
		   struct lnx_out *o);
	uint64_t eid;			/* of the peer */
	uint64_t end_ns;
	uint64_t epoch;			/* discover: of the peer's address at first */
	bool forced;			/* discover: a HELLO was sent, */
	uint32_t behind;		/* and the number of the frame behind it */
	struct lnx_ctl_ping ping;
};

/*
 * Carry out the request in text on an endpoint that is enabled.  0, with the answer in
 * o; a negative errno with a sentence in o; or -FI_EINPROGRESS: job goes on.  job NULL:
 * what would have to wait is refused.  Owner lock held; calls cores.
 */
int lnx_ctl_carry_out(struct lnx_ep *ep, const char *text, struct lnx_ctl_job *job,
		      uint64_t now, struct lnx_out *o);
void lnx_ctl_drop(struct lnx_ctl_job *job, struct lnx_ep *ep);

#endif
