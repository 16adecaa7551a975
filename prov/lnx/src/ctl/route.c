/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shows routes and their gateways.  See route.h.  Called by ctl/request.c. */
#include "ctl/route.h"

#include <inttypes.h>

#include "core/routes.h"
#include "obj/gateway.h"

void lnx_ctl_routes(const struct lnx_ep *ep, uint64_t now, struct lnx_out *o)
{
	const struct lnx_gateways *all = ep->policy.gateways;
	char text[LNX_ROUTE_TEXT_MAX];
	unsigned i;

	for (i = 0; all && i < all->table.n; i++) {
		const struct lnx_route *route = &all->table.route[i];
		const struct lnx_gw *gw = lnx_routes_gateway(ep, route);

		if (!gw)
			continue;
		lnx_route_print(&route->spec, text, sizeof(text));
		lnx_out(o, "route %s: %s; gateway %s, id %016" PRIx64 "\n", text,
			lnx_route_why_name(lnx_routes_why(ep, route, now)),
			lnx_gateway_state_name((enum lnx_gateway_state)gw->state.state),
			gw->state.id);
	}
}
