/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the reliable channels of an endpoint have to do now; called by comp/progress.c. */
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/order.h"

void lnx_rel_run(struct lnx_ep *ep, uint64_t now)
{
	if (lnx_unlikely(ep->policy.sweeping))
		lnx_order_run(ep, now);
	if (ep->work & LNX_WORK_DETECT)
		lnx_detect_run(ep, now);
	if (ep->work & LNX_WORK_PUMP)
		lnx_tx_pump(ep, now);
	if (ep->work & (LNX_WORK_ACK | LNX_WORK_ACK_PENDING))
		lnx_tx_acks(ep, now, false);
	if (ep->work & LNX_WORK_RETX)
		lnx_tx_timers(ep, now);
}

void lnx_rel_ack_all(struct lnx_ep *ep, uint64_t now)
{
	lnx_tx_acks(ep, now, true);
}
