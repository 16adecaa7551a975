/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gateways of an endpoint, and the routes over them (conf/routes.h, policy/route.h).  An
 * endpoint that has no routes has none of this.  Owner lock held.
 */
#ifndef LNX_GATEWAY_H
#define LNX_GATEWAY_H

#include "conf/routes.h"

/* ep->policy.gateways. */
struct lnx_gateways {
	struct lnx_routes table;
};

#endif
