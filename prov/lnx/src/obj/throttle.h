/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a peer and we have told each other about messages that may not begin yet
 * (policy/backlog.h).  Owner lock held; calls no core.
 */
#ifndef LNX_THROTTLE_OBJ_H
#define LNX_THROTTLE_OBJ_H

#include "obj/ep.h"

/* lnx_peer_throttle_of(peer), made if needed; NULL: memory is short. */
LNX_COLD struct lnx_peer_throttle *lnx_peer_throttle(struct lnx_peer *peer);
/* The peer is throttled no longer, or its session has ended. */
LNX_COLD void lnx_peer_unthrottle(struct lnx_peer *peer);

#endif
