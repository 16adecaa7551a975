/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is published of an endpoint: fills records of lnx_state.h from its objects.  The
 * only place that knows both.  Owner lock held.
 */
#ifndef LNX_PUBLISH_H
#define LNX_PUBLISH_H

#include "lnx_state.h"
#include "obj/ep.h"

void lnx_publish_ep(const struct lnx_ep *ep, struct lnx_state_ep *s);
/* With what went over legs that begin with it.  Does not touch the members `base` and `failed_base`. */
void lnx_publish_rail(const struct lnx_ep *ep, unsigned i, struct lnx_state_rail *s);
/* What one rail, or one leg of a gateway, has carried by itself. */
void lnx_publish_traffic(const struct lnx_rail *rail, struct lnx_state_traffic *t);
/* The parameter of row i of conf/params.def. */
void lnx_publish_param(const struct lnx_ep *ep, size_t i, struct lnx_state_param *s);
/* All but first_path. */
void lnx_publish_peer(const struct lnx_peer *peer, struct lnx_state_peer *s);
/* Path i.  Calls the core. */
void lnx_publish_path(struct lnx_peer *peer, unsigned i, uint64_t now,
		      struct lnx_state_path *s);
/* Rule index, which exists; all: also what changes only with the rules, as its texts.  False:
 * s says that already. */
bool lnx_publish_rule(const struct lnx_ep *ep, uint32_t index, bool all,
		      struct lnx_state_rule *s);
/* Counters of its paths begin anew. */
void lnx_publish_reset(const struct lnx_peer *peer);

#endif
