/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requests "route ...".  Owner lock held. */
#ifndef LNX_CTL_ROUTE_H
#define LNX_CTL_ROUTE_H

#include "base/out.h"
#include "obj/ep.h"
#include "policy/request.h"

/* A line for each route: "route NET ... via NID: UP-OR-WHY-NOT; TYPE; gateway STATE, id ID",
 * where TYPE is single-hop or multi-hop. */
void lnx_ctl_routes(const struct lnx_ep *ep, uint64_t now, struct lnx_out *o);

/*
 * "route add", "put" and "del": all of its routes, or none.  The paths of peers change before
 * it returns.  0, and for "put" a line in o for each route that was passed over; or with a
 * sentence in o: -FI_EINVAL, -EEXIST, -FI_EHOSTUNREACH, -FI_ENOENT and -FI_ENOSPC as in
 * conf/routes.h, -FI_EOPNOTSUPP: the endpoint sends no frames; -FI_ENOMEM.  Calls cores.
 */
int lnx_ctl_route_change(struct lnx_ep *ep, const struct lnx_request *r, uint64_t now,
			 struct lnx_out *o);

#endif
