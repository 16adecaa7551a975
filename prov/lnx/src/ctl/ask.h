/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that ask a peer: ping, over each of its paths; and discover, for its rails.
 * A peer that is only in the address vector is met first.  Owner lock held; call cores.
 */
#ifndef LNX_CTL_ASK_H
#define LNX_CTL_ASK_H

#include "ctl/request.h"
#include "policy/request.h"

/*
 * Begin PING or DISCOVER, whose text is `text`; as lnx_ctl_carry_out.  The answer has
 * lines:
 *
 *	peer EID
 *	local PID			it is reached over shared memory
 *	path I rail NAME to N nid NID rtt_us T		it answered over it
 *	path I rail NAME to N nid NID error TEXT	it did not
 *	remote N nid NID		(discover) a rail of the peer
 */
int lnx_ctl_ask(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
		struct lnx_ctl_job *job, uint64_t now, struct lnx_out *o);

/* The peer that a request names, or NULL with a sentence in o.  make: also one that is
 * only in the address vector. */
struct lnx_peer *lnx_ctl_find_peer(struct lnx_ep *ep, const char *text,
				   const struct lnx_target *t, bool make,
				   struct lnx_out *o);

#endif
