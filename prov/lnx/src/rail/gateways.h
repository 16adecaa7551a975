/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The gateways of an endpoint, from its routes.  Owner lock held. */
#ifndef LNX_GATEWAYS_H
#define LNX_GATEWAYS_H

#include "obj/ep.h"

/* The rails are open: make ep->policy.gateways of the routes of the user, if there are any.
 * 0; -FI_EINVAL, after a warning; -FI_ENOMEM. */
int lnx_gateways_open(struct lnx_ep *ep);
/* All peers are gone. */
void lnx_gateways_close(struct lnx_ep *ep);

#endif
