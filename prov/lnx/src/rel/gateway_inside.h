/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rel/gateway.c, which hears of gateways, and rel/gateway_ask.c, which asks them, share.
 * Owner lock held.
 */
#ifndef LNX_GATEWAY_INSIDE_H
#define LNX_GATEWAY_INSIDE_H

#include "rel/gateway.h"

struct lnx_gw;
struct lnx_route;

/* What it can do has changed: paths over its legs are put in order anew.  Calls no core. */
LNX_COLD void lnx_gateway_order_again(const struct lnx_gw *gw);

/* Does the route lead over that gateway, by whichever NID? */
bool lnx_gateway_leads(const struct lnx_route *route, const struct lnx_gw *gw);

#endif
