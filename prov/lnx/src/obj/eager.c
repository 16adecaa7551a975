/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Large eager frames to and from a peer.  See eager.h. */
#include "obj/eager.h"

#include <stdlib.h>

LNX_COLD struct lnx_peer_eager *lnx_peer_eager(struct lnx_peer *peer)
{
	struct lnx_peer_eager *e = peer->eager;

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->throttle.peer = peer;
	lnx_list_init(&e->throttle.link);
	lnx_list_init(&e->throttle.queue);
	return peer->eager = e;
}

void lnx_eager_learn(struct lnx_peer *peer, uint64_t limit)
{
	struct lnx_peer_eager *e = limit ? lnx_peer_eager(peer) : NULL;

	if (!e || !lnx_credit_learn(&e->credit, limit))
		return;
	if (lnx_credit_has(&e->credit, LNX_PAYLOAD_MAX + 1)) {
		e->none_soon = false;
		e->granted_more |= e->credit.sent != 0;
	}
	/* One that never grants so much is not waited for again. */
	if (lnx_unlikely(e->waits_len) && lnx_credit_has(&e->credit, e->waits_len)) {
		e->waits_ns = 0;
		e->waits_len = 0;
	}
}

/* While too many of its messages wait for receives it gets no more. */
static bool is_throttled(const struct lnx_peer *peer)
{
	const struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);

	return lnx_unlikely(t != NULL) && lnx_backlog_allowance_throttles(&t->its);
}

bool lnx_eager_urgent(const struct lnx_peer *peer)
{
	return !is_throttled(peer) &&
	       lnx_credit_urgent(&peer->eager->credit, &peer->ep->eager.pool);
}

uint64_t lnx_eager_grant(struct lnx_peer *peer)
{
	struct lnx_credit_pool *pool = &peer->ep->eager.pool;

	if (is_throttled(peer))
		return peer->eager ? peer->eager->credit.granted : 0;
	if (!pool->peer || !lnx_peer_eager(peer))
		return 0;
	return lnx_credit_grant(&peer->eager->credit, pool);
}

/* Over gateways each acknowledgement costs as much as a frame: there it is for as much as finds
 * room, not for half of that. */
static bool waits_for_more(const struct lnx_peer *peer, uint64_t bytes)
{
	return peer->npath && lnx_unlikely(lnx_rail_is_leg(peer->path[0]->rail)) &&
	       bytes <= peer->ep->conf->send_buffer;
}

uint8_t lnx_eager_ack_flags(struct lnx_peer *peer, uint64_t bytes)
{
	struct lnx_peer_eager *e = lnx_peer_eager(peer);
	uint64_t room = peer->ep->conf->send_buffer;

	/* One message alone finds room. */
	if (!e)
		return LNX_WIRE_F_ACK_NOW;
	if ((e->unasked ? e->unasked + bytes > room / 2 : bytes > room) &&
	    !waits_for_more(peer, e->unasked + bytes)) {
		e->unasked = 0;
		return LNX_WIRE_F_ACK_NOW;
	}
	e->unasked += (uint32_t)bytes;
	return 0;
}
