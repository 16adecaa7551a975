/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * We are throttled by a peer: too many messages wait there for receives (policy/backlog.h).
 * New messages then wait here, in their order and without a number, so that frames of other
 * kinds pass them.  Nothing of it is in the window, so that no path is charged for the wait.
 * An ACK tells when more may begin.  It may be lost: the peer is asked now and then
 * (rel/control.c), which also shows that it lives.
 *
 * While that is so, or messages wait, LNX_CHAN_THROTTLED is set.  Owner lock held.
 */
#ifndef LNX_THROTTLE_H
#define LNX_THROTTLE_H

#include "obj/ep.h"
#include "obj/txe.h"

struct lnx_hdr;

/* A frame that is to leave while LNX_CHAN_THROTTLED is set.  0: it waits, and is ours;
 * 1: it may leave; -FI_EAGAIN: it may not, and with no_queue does not wait either. */
LNX_COLD int lnx_throttle_frame(struct lnx_ep *ep, struct lnx_peer *peer,
				struct lnx_txe *txe, struct lnx_hdr *h, bool no_queue);
/* The peer told that, in an ACK that has been taken into account.  Calls no core. */
LNX_COLD void lnx_throttle_learn(struct lnx_peer *peer, uint32_t change, uint32_t n);
/* Number and queue in chan.queue those that may leave now. */
LNX_COLD void lnx_throttle_release(struct lnx_peer *peer);
/* The first one that waits, which never leaves; NULL: none. */
LNX_COLD struct lnx_txe *lnx_throttle_pop(struct lnx_peer *peer);

#endif
