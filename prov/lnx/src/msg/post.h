/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receive path's first step.  Called by api/msg.c and api/tagged.c; queues a receive in
 * the matcher, or calls msg/rx_post.c where there is more to do.  Always inline: with
 * `tagged` and `niov` constants, each API function compiles to its own straight code.
 */
#ifndef LNX_MSG_POST_H
#define LNX_MSG_POST_H

#include "msg/rx.h"

/* Copy the call's arguments into an entry. */
LNX_INLINE void lnx_rxe_fill(struct lnx_rxe *rxe, const struct lnx_recv *r)
{
	size_t i;

	rxe->context = r->context;
	rxe->want_comp = (r->flags & FI_COMPLETION) != 0;
	rxe->tagged = r->tagged;
	rxe->cq_flags |= FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG);
	rxe->niov = 1;
	if (lnx_likely(r->niov == 1)) {
		rxe->iov[0] = r->iov[0];
		rxe->room = r->iov[0].iov_len;
		return;
	}
	for (i = 0; i < r->niov; i++) {
		rxe->iov[i] = r->iov[i];
		rxe->room += r->iov[i].iov_len;
	}
	if (r->niov)
		rxe->niov = (uint8_t)r->niov;
}

/* The sender whose messages it takes. */
LNX_INLINE uint64_t lnx_post_src(const struct lnx_ep *ep, const struct lnx_recv *r)
{
	return ep->directed ? r->src : FI_ADDR_UNSPEC;
}

/* Queue the entry in m. */
LNX_INLINE void lnx_rxe_post(struct lnx_match *m, struct lnx_rxe *rxe,
			     const struct lnx_recv *r, uint64_t src)
{
	rxe->state = LNX_RXE_POSTED;
	rxe->post.src = src;
	rxe->post.tag = r->tag;
	rxe->post.ignore = r->ignore;
	lnx_match_post(m, &rxe->post);
}

/* Nothing to do but to queue it, with no lock and no memory that has to be allocated? */
LNX_INLINE bool lnx_post_simple(const struct lnx_ep *ep, const struct lnx_match *m,
				const struct lnx_recv *r)
{
	return r->niov == 1 && (r->tagged || !(r->flags & FI_MULTI_RECV)) &&
	       !ep->lock.on && !lnx_match_nunex(m) && ep->rxe_pool.free;
}

/* Post any receive.  The owner lock is taken inside.  0 or -FI_E... */
LNX_INLINE ssize_t lnx_post_recv(struct lnx_ep *ep, const struct lnx_recv *r)
{
	struct lnx_match *m = lnx_rx_match(ep, r->tagged);
	struct lnx_recv other;
	struct lnx_rxe *rxe;

	if (lnx_unlikely(!lnx_post_simple(ep, m, r))) {
		/* A copy, so that nothing of r need be in memory before. */
		other = *r;
		return lnx_rx_post_any(ep, &other);
	}
	rxe = lnx_pool_get(&ep->rxe_pool);
	lnx_rxe_init(ep, rxe);
	lnx_rxe_fill(rxe, r);
	lnx_rxe_post(m, rxe, r, lnx_post_src(ep, r));
	return 0;
}

#endif
