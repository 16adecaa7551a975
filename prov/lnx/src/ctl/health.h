/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Listing health, and setting it by hand.  Owner lock held. */
#ifndef LNX_CTL_HEALTH_H
#define LNX_CTL_HEALTH_H

#include "base/out.h"
#include "obj/ep.h"
#include "policy/request.h"

/* "up", "down"; "drained": not used because of a health that was set by hand. */
const char *lnx_ctl_path_state(const struct lnx_path *path);

/* A line for each network rail, and for each rail of a peer and path to it. */
void lnx_ctl_health_list(struct lnx_ep *ep, struct lnx_out *o);
/* HEALTH_SET, HEALTH_ONCE and HEALTH_AUTO, whose text is `text`.  0; or a negative errno and a
 * sentence, and nothing has changed.  Calls cores. */
int lnx_ctl_health_set(struct lnx_ep *ep, const char *text,
		       const struct lnx_request *r, struct lnx_out *o);

#endif
