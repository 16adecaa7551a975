/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Our endpoint has the address of one that no longer exists.  A sender that still uses
 * that one would wait for ever, since everything is taken and nothing acknowledged.  So
 * it is told.  Owner lock held.
 */
#ifndef LNX_WRONG_ENDPOINT_H
#define LNX_WRONG_ENDPOINT_H

#include "obj/ep.h"

struct lnx_hdr;

/* A frame came that is not for us.  Its payload of len bytes may be its sender's
 * address.  Calls no core. */
LNX_COLD void lnx_wrong_endpoint_note(struct lnx_rail *rail, const struct lnx_hdr *h,
				const void *payload, size_t len);
/* Tell the senders of noted frames.  Calls cores. */
LNX_COLD void lnx_wrong_endpoint_send(struct lnx_ep *ep, uint64_t now);
/* A peer told us that our frame was misdirected.  Calls no core. */
LNX_COLD void lnx_wrong_endpoint_rx(struct lnx_rail *rail, const struct lnx_hdr *h);
/* Ask whether peer is still there, if the core takes the question now. */
LNX_COLD void lnx_wrong_endpoint_ask(struct lnx_peer *peer, struct lnx_path *path);

#endif
