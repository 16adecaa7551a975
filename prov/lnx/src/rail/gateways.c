/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The gateways of an endpoint.  See gateways.h. */
#include "rail/gateways.h"

#include <stdlib.h>

#include "core/open.h"
#include "core/routes.h"
#include "obj/gateway.h"

int lnx_gateways_open(struct lnx_ep *ep)
{
	struct lnx_gateways *g;
	int ret;

	if (ep->native || !lnx_routes_wanted(ep->conf))
		return 0;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -FI_ENOMEM;
	/* Nodes with the same routes begin with different gateways. */
	lnx_routes_init(&g->table, lnx_random_id());
	ep->policy.gateways = g;
	ret = lnx_routes_user_read(ep, &g->table);
	if (ret || !g->table.n)
		lnx_gateways_close(ep);
	return ret;
}

void lnx_gateways_close(struct lnx_ep *ep)
{
	struct lnx_gateways *g = ep->policy.gateways;

	if (!g)
		return;
	ep->policy.gateways = NULL;
	lnx_routes_fini(&g->table);
	free(g);
}
