/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The request "route show".  Owner lock held. */
#ifndef LNX_CTL_ROUTE_H
#define LNX_CTL_ROUTE_H

#include "base/out.h"
#include "obj/ep.h"

/* A line for each route: "route NET ... via NID: UP-OR-WHY-NOT; gateway STATE, ID ID". */
void lnx_ctl_routes(const struct lnx_ep *ep, uint64_t now, struct lnx_out *o);

#endif
