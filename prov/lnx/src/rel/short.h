/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A fast path for short framed sends: see short.c. */
#ifndef LNX_SHORT_H
#define LNX_SHORT_H

#include "obj/ep.h"
#include "obj/call.h"

/*
 * Calls with one buffer and the endpoint's own flags.  The descriptors of other calls
 * have more than lnx_rel_short takes.
 */
#define lnx_call_single(call) \
	(lnx_call_inject(call) || (call) == LNX_SEND || \
	 (call) == LNX_SENDDATA || (call) == LNX_TSEND || \
	 (call) == LNX_TSENDDATA)

/* What lnx_rel_short is to send, for such a call: kind, flags, and LNX_SHORT_INJECT. */
#define LNX_SHORT_INJECT	0x10000u
#define lnx_short_what(call) \
	((lnx_call_tagged(call) ? LNX_KIND_TAG : LNX_KIND_MSG) | \
	 (lnx_call_data(call) ? LNX_WIRE_F_DATA << 8 : 0) | \
	 (lnx_call_inject(call) ? LNX_SHORT_INJECT : 0))

/*
 * Send a message that fits into a frame that the core copies, to a peer in its usual
 * state (NULL: the peer has yet to be made).  The arguments are in registers, so that
 * no struct lnx_tx is needed.  what: lnx_short_what of a call that is lnx_call_single,
 * while the endpoint's flags have none of FI_INJECT, FI_TRANSMIT_COMPLETE and
 * FI_DELIVERY_COMPLETE.  Owner lock held.  True: it is sent, or queued with its number;
 * false: nothing was done, call lnx_msg_send.
 */
bool lnx_rel_short(struct lnx_ep *ep, struct lnx_peer *peer, const void *buf,
		  size_t len, uint64_t tag, unsigned what, uint64_t data,
		  void *context);

#endif
