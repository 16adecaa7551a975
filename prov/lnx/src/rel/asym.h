/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What comes over a gateway by which nothing can go back: no route over it leads to the net of
 * the sender, or it is none of ours.  FI_LNX_DROP_ASYM_ROUTE drops it, and
 * FI_LNX_LEARN_ROUTES takes a route from it.  Called by rel/gateway.c; calls core/routes.c.
 * Owner lock held.
 */
#ifndef LNX_REL_ASYM_H
#define LNX_REL_ASYM_H

#include "obj/ep.h"
#include "obj/gateway.h"

/* May a frame be taken that came over that leg in that envelope?  What it shows is noted in the
 * gateways of the endpoint, and LNX_DUE_GATEWAYS due.  Calls no core. */
bool lnx_asym_may_come(struct lnx_leg *leg, const struct lnx_route_env *env,
		       const uint8_t *frame);

/* A frame came over a gateway with that id, which none of ours has said: they are asked.  True:
 * the frame is dropped.  Calls no core. */
LNX_COLD bool lnx_asym_foreign(struct lnx_gateways *all, uint64_t id, uint64_t now);

#endif
