/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another endpoint has the address of one that is no more: who still sends to that would
 * wait for ever, since everything is taken and nothing acknowledged.  He is told.
 * Owner lock held.
 */
#ifndef LNX_WRONG_ENDPOINT_H
#define LNX_WRONG_ENDPOINT_H

#include "obj/ep.h"

struct lnx_hdr;

/* A frame came that is not for us.  It may carry its sender's address: len bytes of
 * payload.  Calls no core. */
LNX_COLD void lnx_wrong_endpoint_note(struct lnx_rail *rail, const struct lnx_hdr *h,
				const void *payload, size_t len);
/* Tell those who were noted.  Calls cores. */
LNX_COLD void lnx_wrong_endpoint_send(struct lnx_ep *ep, uint64_t now);
/* We are told.  Calls no core. */
LNX_COLD void lnx_wrong_endpoint_rx(struct lnx_rail *rail, const struct lnx_hdr *h);
/* Ask whether it is still peer that is there, if the core takes it now. */
LNX_COLD void lnx_wrong_endpoint_ask(struct lnx_peer *peer, struct lnx_path *path);

#endif
