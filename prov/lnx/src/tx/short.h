/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef LNX_SHORT_H
#define LNX_SHORT_H

#include "obj/ep.h"
#include "tx/tx.h"

/*
 * Calls with one buffer, whose flags are the endpoint's own.  Others have descriptors
 * that say more than lnx_tx_short takes.
 */
#define lnx_call_single(call) \
	(lnx_call_inject(call) || (call) == LNX_SEND || \
	 (call) == LNX_SENDDATA || (call) == LNX_TSEND || \
	 (call) == LNX_TSENDDATA)

/* What lnx_tx_short is to send, for such a call: kind, flags, and this. */
#define LNX_SHORT_INJECT	0x10000u
#define lnx_short_what(call) \
	((lnx_call_tagged(call) ? LNX_KIND_TAG : LNX_KIND_MSG) | \
	 (lnx_call_data(call) ? LNX_WIRE_F_DATA << 8 : 0) | \
	 (lnx_call_inject(call) ? LNX_SHORT_INJECT : 0))

/*
 * Send a message that fits into a frame that the core copies, to a peer (NULL is one
 * that has to be made) with which all is as usual.  Arguments in registers rather
 * than in a struct lnx_tx, which then need not exist.  what: lnx_short_what of a call
 * that is lnx_call_single, while the endpoint's flags have none of FI_INJECT,
 * FI_TRANSMIT_COMPLETE and FI_DELIVERY_COMPLETE.  Owner lock held.  True: it is sent,
 * or queued with its number; false: it is lnx_tx_framed's, and nothing was done.
 */
bool lnx_tx_short(struct lnx_ep *ep, struct lnx_peer *peer, const void *buf,
		  size_t len, uint64_t tag, unsigned what, uint64_t data,
		  void *context);

#endif
