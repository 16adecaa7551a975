/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The limits of credits for frames (policy/tx_credits.h); rel/tx_credits.h keeps to them.
 * Owner lock held. */
#ifndef LNX_CORE_CREDITS_H
#define LNX_CORE_CREDITS_H

#include "obj/ep.h"

/* Give rail, whose name is known, its limits: those of FI_LNX_CREDITS and
 * FI_LNX_PEER_CREDITS, or what was set for the rail, or what the configuration file says of
 * its interface. */
void lnx_credits_rail(struct lnx_rail *rail);
/* The parameters have changed: what waits may go on.  Calls no core. */
LNX_COLD void lnx_credits_changed(struct lnx_ep *ep);

/* What was set for rail, or what the configuration file says of its interface in its net;
 * LNX_CONFIG_UNSET where that is nothing. */
LNX_COLD struct lnx_rail_credits lnx_credits_own(const struct lnx_rail *rail);
/* Set them, at any time; lnx_credits_changed must follow. */
LNX_COLD void lnx_credits_tune(struct lnx_rail *rail, struct lnx_rail_credits own);
/* With fewer than that in use, one more frame may leave over rail without asking. */
LNX_INLINE uint32_t lnx_credits_fast(const struct lnx_rail *rail)
{
	if (rail->peer_credits_max || !lnx_list_empty(&rail->delayed))
		return 0;
	return rail->credits_max ? rail->credits_max : UINT32_MAX;
}

#endif
