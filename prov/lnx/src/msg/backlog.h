/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of messages without a receive (policy/backlog.h): what takes it is counted
 * here, and peers are throttled and allowed more.  Messages over shared memory, and those
 * that an endpoint sends itself, are not counted.  Owner lock held; calls no core.
 */
#ifndef LNX_MSG_BACKLOG_H
#define LNX_MSG_BACKLOG_H

#include "obj/ep.h"
#include "obj/throttle.h"

/* A message of peer was stored, and the limit is near. */
LNX_COLD void lnx_backlog_judge(struct lnx_peer *peer);
/* Throttled peers may be allowed more: memory is free, or something is waited for. */
LNX_COLD void lnx_backlog_moved(struct lnx_ep *ep);
/* FI_PEEK looks for a message from src, or LNX_ANY_SRC, and it is not there. */
LNX_COLD void lnx_backlog_peeked(struct lnx_ep *ep, uint64_t src);
/* LNX_DUE_BACKLOG: looks at peers that are throttled.  Returns when to do so again. */
LNX_COLD uint64_t lnx_backlog_run(struct lnx_ep *ep, uint64_t now);

/*
 * Has peer been throttled for so long, and sends all the same, that it does not keep to what
 * it is told?  Its messages that no receive wants are lost then.
 */
LNX_INLINE bool lnx_backlog_refuses(const struct lnx_peer *peer)
{
	const struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);

	return lnx_unlikely(t != NULL) && t->beyond > LNX_SEQ_WINDOW &&
	       lnx_backlog_allowance_throttles(&t->its);
}

LNX_INLINE bool lnx_backlog_throttles(const struct lnx_ep *ep)
{
	return lnx_unlikely(!lnx_list_empty(&ep->backlog.throttled));
}

/* A message of peer takes n bytes.  False: memory is short, and it is not counted. */
LNX_INLINE bool lnx_backlog_take(struct lnx_peer *peer, uint64_t n)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	struct lnx_ep *ep = peer->ep;
	struct lnx_backlog *b = &ep->backlog.sum;

	if (lnx_unlikely(!t)) {
		t = lnx_peer_throttle(peer);
		if (!t)
			return false;
	}
	t->use.bytes += n;
	t->use.n++;
	b->used += n;
	if (b->used > ep->stats.unexpected_peak)
		ep->stats.unexpected_peak = b->used;
	if (lnx_unlikely(lnx_backlog_near(b, t->use.bytes)))
		lnx_backlog_judge(peer);
	return true;
}

/* And no longer does. */
LNX_INLINE void lnx_backlog_give(struct lnx_peer *peer, uint64_t n)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	struct lnx_ep *ep = peer->ep;

	t->use.bytes -= n;
	t->use.n--;
	ep->backlog.sum.used -= n;
	if (lnx_backlog_throttles(ep))
		lnx_backlog_moved(ep);
}

#endif
