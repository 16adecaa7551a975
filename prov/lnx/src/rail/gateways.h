/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The gateways of an endpoint, from its routes.  Owner lock held. */
#ifndef LNX_GATEWAYS_H
#define LNX_GATEWAYS_H

#include "obj/ep.h"

/* The rails are open: make ep->policy.gateways of the routes of the user, if there are any.
 * 0; -FI_EINVAL, after a warning; -FI_ENOMEM. */
int lnx_gateways_open(struct lnx_ep *ep);
/*
 * A route over the gateway with that NID is about to be added to the table: make it, with legs
 * from all our rails in its net, and ep->policy.gateways if there is none.  One that is there
 * already gets the legs that it lacks.  It stays until the endpoint closes, and is asked
 * nothing while no route leads over it.  0; -FI_EINVAL, after a warning; -FI_ENOMEM.  Calls
 * cores' AVs.
 */
LNX_COLD int lnx_gateways_add(struct lnx_ep *ep, const struct lnx_nid *nid);
/*
 * An answer to the hello to gw has that id: from now on it shares what is known with other NIDs
 * of that gateway, and with no others.
 */
struct lnx_gw;
LNX_COLD void lnx_gateways_identify(struct lnx_gw *gw, uint64_t id, uint64_t now);
/* All peers are gone. */
void lnx_gateways_close(struct lnx_ep *ep);

#endif
