/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Health, looked at and set by hand.  Owner lock held. */
#ifndef LNX_CTL_HEALTH_H
#define LNX_CTL_HEALTH_H

#include "base/out.h"
#include "obj/ep.h"
#include "policy/request.h"

/* A line for each network rail, and each rail of a peer and path to it. */
void lnx_ctl_health_list(struct lnx_ep *ep, struct lnx_out *o);
/* HEALTH_SET and HEALTH_AUTO, which text spells.  0; or a negative errno and a
 * sentence: nothing has changed.  Calls cores. */
int lnx_ctl_health_set(struct lnx_ep *ep, const char *text,
		       const struct lnx_request *r, struct lnx_out *o);

#endif
