/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that no receive matches yet: keeping them, and what is known of them.  Called by
 * msg/arrive.c, which keeps them, and by msg/deliver.c when their receive has come; calls
 * the matcher.
 */
#include "msg/unex.h"

#include "msg/backlog.h"
#include "msg/rx.h"

static inline char *behind(const struct lnx_unex *u)
{
	return (char *)u + LNX_UNEX_HEAD;
}

static inline size_t bytes_of(const struct lnx_unex *u)
{
	return LNX_UNEX_HEAD + (u->has_data ? sizeof(uint64_t) : 0) + u->len;
}

uint64_t lnx_unex_data(const struct lnx_unex *u)
{
	uint64_t data = 0;

	if (u->has_data)
		memcpy(&data, behind(u), sizeof(data));
	return data;
}

const void *lnx_unex_payload(const struct lnx_unex *u)
{
	return behind(u) + (u->has_data ? sizeof(uint64_t) : 0);
}

struct lnx_unex_about lnx_unex_about(const struct lnx_unex *u)
{
	const struct lnx_rxe *rxe;

	if (lnx_likely(!u->entry))
		return (struct lnx_unex_about){
			.ep = u->peer->ep, .peer = u->peer, .len = u->len,
			.tag = u->m.tag, .data = lnx_unex_data(u),
			.flags = u->has_data ? FI_REMOTE_CQ_DATA : 0,
			.tagged = u->tagged,
		};
	rxe = lnx_container_of(u, struct lnx_rxe, unex);
	return (struct lnx_unex_about){
		.ep = rxe->ep, .peer = rxe->peer, .len = rxe->len, .tag = rxe->tag,
		.data = rxe->data, .flags = rxe->cq_flags & FI_REMOTE_CQ_DATA,
		.tagged = rxe->tagged,
	};
}

bool lnx_unex_keep(struct lnx_peer *peer, const struct lnx_hdr *h, const void *payload,
		   bool tagged, bool direct)
{
	struct lnx_ep *ep = peer->ep;
	bool has_data = (h->flags & LNX_WIRE_F_DATA) != 0;
	struct lnx_unex *u = lnx_arena_get(&ep->backlog.kept, LNX_UNEX_HEAD + h->len +
					   (has_data ? sizeof(h->data) : 0));

	if (lnx_unlikely(!u))
		return false;
	u->peer = peer;
	u->len = (uint32_t)h->len;
	u->entry = false;
	u->tagged = tagged;
	u->has_data = has_data;
	u->direct = direct;
	if (lnx_likely(!direct) && lnx_unlikely(!lnx_backlog_take(peer, bytes_of(u)))) {
		lnx_arena_put(&ep->backlog.kept, u, bytes_of(u));
		return false;
	}
	if (has_data)
		memcpy(behind(u), &h->data, sizeof(h->data));
	memcpy((char *)lnx_unex_payload(u), payload, h->len);
	u->m.src = peer->addr;
	u->m.tag = tagged ? h->tag : 0;
	lnx_match_store(lnx_rx_stored(ep, tagged), &u->m);
	lnx_list_add_tail(&peer->stored, &u->of_peer);
	return true;
}

void lnx_unex_unstore(struct lnx_unex *u)
{
	if (u->entry) {
		lnx_rx_unstore(lnx_rxe_of_unex(u));
		return;
	}
	lnx_match_drop(lnx_rx_stored(u->peer->ep, u->tagged), &u->m);
	lnx_list_del(&u->of_peer);
}

void lnx_unex_free(struct lnx_unex *u)
{
	if (lnx_likely(!u->direct))
		lnx_backlog_give(u->peer, bytes_of(u));
	lnx_arena_put(&u->peer->ep->backlog.kept, u, bytes_of(u));
}
