/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large eager frames to and from a peer: the credit for them (policy/credit.h), and when
 * one asks for its acknowledgement.  Owner lock held; calls no core.
 */
#ifndef LNX_EAGER_H
#define LNX_EAGER_H

#include "obj/ep.h"

/* peer->eager, made if needed; NULL: memory is short. */
LNX_COLD struct lnx_peer_eager *lnx_peer_eager(struct lnx_peer *peer);

/* The peer grants so much; 0, or no more than before: nothing changes. */
void lnx_eager_learn(struct lnx_peer *peer, uint64_t limit);
/* What we grant it: to be told now.  0: none. */
uint64_t lnx_eager_grant(struct lnx_peer *peer);

/* Should it be told of more without delay, because soon it has none?  peer->eager is there. */
bool lnx_eager_urgent(const struct lnx_peer *peer);

/* LNX_WIRE_F_*, for the last frame of so many bytes that leave in the application's
 * buffer and may be copied later (rel/keep.c). */
uint8_t lnx_eager_ack_flags(struct lnx_peer *peer, uint64_t bytes);

#endif
