/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which way a message to a peer takes, and why no other one.  Owner lock held; calls
 * cores.
 */
#ifndef LNX_CTL_EXPLAIN_H
#define LNX_CTL_EXPLAIN_H

#include "base/out.h"
#include "obj/ep.h"
#include "policy/request.h"

/*
 * EXPLAIN, whose text is `text`: 0, or -FI_EINVAL and a sentence.  The answer has lines:
 *
 *	peer EID addr N
 *	way direct|framed|native|none
 *	because TEXT			why that way
 *	size N				if one was asked for
 *	form TEXT			how a message of that size travels
 *	path I rail NAME to N nid NID use frames|spill|pieces|no state S health H share W
 *		in_flight B limit B rate R latency_us L because TEXT (one line each)
 *	pair NAME to N because TEXT	rails at both ends without a path
 */
int lnx_ctl_explain(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
		    uint64_t now, struct lnx_out *o);

#endif
