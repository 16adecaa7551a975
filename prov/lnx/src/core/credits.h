/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The limits of credits for frames (policy/tx_credits.h); rel/tx_credits.h keeps to them.
 * Owner lock held. */
#ifndef LNX_CORE_CREDITS_H
#define LNX_CORE_CREDITS_H

#include "obj/ep.h"

struct lnx_config_ni;

/* Give rail, whose name is known, its limits: those of FI_LNX_CREDITS and
 * FI_LNX_PEER_CREDITS, or what the configuration file says of its interface. */
void lnx_credits_rail(struct lnx_rail *rail);
/* The parameters have changed: what waits may go on.  Calls no core. */
LNX_COLD void lnx_credits_changed(struct lnx_ep *ep);

/* What the configuration file says of rail's interface in its net; NULL: nothing. */
LNX_COLD const struct lnx_config_ni *lnx_credits_tunables(const struct lnx_rail *rail);
/* With fewer than that in use, one more frame may leave over rail without asking. */
LNX_INLINE uint32_t lnx_credits_fast(const struct lnx_rail *rail)
{
	if (rail->peer_credits_max || !lnx_list_empty(&rail->delayed))
		return 0;
	return rail->credits_max ? rail->credits_max : UINT32_MAX;
}

#endif
