/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* "import" in steps: the rules are in import_rules.c, the routes in import_routes.c. */
#ifndef LNXCTL_IMPORT_H
#define LNXCTL_IMPORT_H

#include "conf/config.h"
#include "lnxctl/lnxctl.h"

/*
 * Make the rules of an endpoint those of `udsp`, in their order.  Rules that are there
 * already keep their ids, and their effect all the time.  False after lnxctl_fail.
 */
bool lnxctl_import_rules(struct lnxctl *c, struct lnx_proc *p,
			 const struct lnx_snap_ep *e, const struct lnx_config *config);

/*
 * Change the routes of an endpoint from those of old, which it has, to those of new.  Routes
 * that do not fit it are passed over: map, unless NULL, says so.  False after lnxctl_fail.
 */
bool lnxctl_import_routes(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
			  const struct lnx_config *old, const struct lnx_config *new,
			  struct lnx_doc *map);

#endif
