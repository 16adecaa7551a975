/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application posts a receive, looks for a message, or cancels a receive.  Called
 * by api/ and msg/post.h; calls the matcher, then msg/deliver.c when a message is waiting.
 */
#include <stdlib.h>

#include "msg/backlog.h"
#include "msg/post.h"
#include "msg/iov.h"
#include "msg/rx.h"
#include "rail/rail.h"

static LNX_COLD ssize_t post_multi(struct lnx_ep *ep, const struct lnx_recv *r)
{
	struct lnx_match *m = &ep->msg;
	uint64_t src = lnx_post_src(ep, r);
	struct lnx_munex *u;
	struct lnx_rxe *rxe;

	if (r->tagged || r->niov != 1 || !r->iov[0].iov_len)
		return -FI_EINVAL;
	rxe = lnx_rxe_get(ep);
	if (!rxe)
		return -FI_EAGAIN;
	lnx_rxe_fill(rxe, r);
	rxe->state = LNX_RXE_POSTED;
	rxe->multi = true;
	rxe->used = 0;
	rxe->n_children = 0;
	rxe->min_left = ep->min_multi_recv;
	rxe->post.src = src;
	rxe->post.tag = 0;
	rxe->post.ignore = 0;
	lnx_match_post(m, &rxe->post);

	/*
	 * Messages that were waiting come first, as long as there is space.  The buffer
	 * may be used up and returned after any of them.
	 */
	while ((u = lnx_match_peek(m, src, 0, 0))) {
		struct lnx_unex *msg = lnx_unex_of(u);
		struct lnx_unex_about about = lnx_unex_about(msg);
		struct lnx_rxe *child = lnx_rx_take_msg(about.ep, u->src, about.len);

		if (!child)
			break;
		lnx_unex_unstore(msg);
		lnx_rx_meets(msg, child);
	}
	return 0;
}

/* A message that waits in m, and the receive of this call. */
static ssize_t receive_stored(struct lnx_ep *ep, struct lnx_match *m, struct lnx_unex *u,
			      const struct lnx_recv *r)
{
	struct lnx_rxe *rxe;

	if (lnx_unlikely(u->entry)) {
		rxe = lnx_rxe_of_unex(u);
		lnx_match_drop(m, &u->m);
		lnx_list_del(&u->of_peer);
		lnx_rxe_fill(rxe, r);
		if (lnx_unlikely(rxe->ep != ep))
			lnx_rx_assign(rxe, rxe->ep);
		lnx_rx_deliver(rxe);
		return 0;
	}
	rxe = lnx_rxe_get(u->peer->ep);
	if (lnx_unlikely(!rxe))
		return -FI_EAGAIN;
	lnx_match_drop(m, &u->m);
	lnx_list_del(&u->of_peer);
	lnx_rxe_fill(rxe, r);
	if (lnx_unlikely(rxe->ep != ep))
		lnx_rx_assign(rxe, rxe->ep);
	lnx_rx_meets(u, rxe);
	return 0;
}

LNX_HOT
ssize_t lnx_rx_post_any(struct lnx_ep *ep, const struct lnx_recv *r)
{
	struct lnx_match *m = lnx_rx_match(ep, r->tagged);
	uint64_t src = lnx_post_src(ep, r);
	struct lnx_rxe *rxe;
	ssize_t ret = 0;

	if (lnx_unlikely(r->niov > 1) && lnx_iov_check("receive", r->iov, r->niov))
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	if (lnx_unlikely(lnx_match_nunex(m))) {
		struct lnx_munex *u;

		/* Some may belong to a receive that was posted before. */
		if (lnx_unlikely(ep->work & LNX_WORK_MATCH) && !r->tagged) {
			lnx_rx_rematch(ep);
			if (ep->work & LNX_WORK_MATCH) {
				ret = -FI_EAGAIN;
				goto out;
			}
		}
		if ((r->flags & FI_MULTI_RECV) && !r->tagged) {
			ret = post_multi(ep, r);
			goto out;
		}
		u = lnx_match_peek(m, src, r->tag, r->ignore);
		if (u) {
			ret = receive_stored(ep, m, lnx_unex_of(u), r);
			goto out;
		}
		/* It may be for a message that is behind these. */
		if (lnx_backlog_throttles(ep))
			lnx_backlog_moved(ep);
	} else if (lnx_unlikely((r->flags & FI_MULTI_RECV) &&
				!r->tagged)) {
		ret = post_multi(ep, r);
		goto out;
	}
	rxe = lnx_rxe_get(ep);
	if (lnx_unlikely(!rxe)) {
		ret = -FI_EAGAIN;
		goto out;
	}
	lnx_rxe_fill(rxe, r);
	lnx_rxe_post(m, rxe, r, src);
out:
	lnx_unlock(&ep->lock);
	return ret;
}

static void report_peek(struct lnx_ep *ep, const struct lnx_recv *r,
			const struct lnx_unex_about *msg)
{
	uint64_t flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG);

	if (!msg) {
		struct fi_cq_err_entry e = {
			.op_context = r->context,
			.flags = flags,
			.tag = r->tag,
			.err = FI_ENOMSG,
			.prov_errno = FI_ENOMSG,
			.src_addr = FI_ADDR_NOTAVAIL,
		};

		lnx_cq_write_err(ep->rx_cq, &e);
		return;
	}
	lnx_cq_write(ep->rx_cq, r->context, flags | msg->flags, msg->len, NULL,
		     msg->data, msg->tag,
		     msg->peer ? msg->peer->addr : FI_ADDR_NOTAVAIL);
}

static ssize_t peek(struct lnx_ep *ep, const struct lnx_recv *r)
{
	struct lnx_match *m = lnx_rx_match(ep, r->tagged);
	struct fi_context *ctx = r->context;
	uint64_t src = lnx_post_src(ep, r);
	struct lnx_munex *u = lnx_match_peek(m, src, r->tag, r->ignore);
	struct lnx_unex_about msg;
	struct lnx_rxe *rxe;

	if (!u) {
		/* Callers loop on FI_PEEK alone: make progress. */
		if (lnx_backlog_throttles(ep))
			lnx_backlog_peeked(ep, src);
		lnx_obj_progress(ep);
		u = lnx_match_peek(m, src, r->tag, r->ignore);
	}
	if (!u) {
		report_peek(ep, r, NULL);
		return 0;
	}
	msg = lnx_unex_about(lnx_unex_of(u));
	if (r->flags & (FI_CLAIM | FI_DISCARD)) {
		rxe = lnx_rx_entry(lnx_unex_of(u));
		if (!rxe)
			return -FI_EAGAIN;
		report_peek(ep, r, &msg);
		if (rxe->state == LNX_RXE_UNEX)
			lnx_rx_unstore(rxe);
		if (r->flags & FI_DISCARD) {
			lnx_rx_discard(rxe);
			return 0;
		}
		rxe->state = LNX_RXE_CLAIMED;
		lnx_rxe_own(rxe);
		ctx->internal[0] = rxe;
		return 0;
	}
	report_peek(ep, r, &msg);
	return 0;
}

/*
 * FI_PEEK looks for a waiting message and always reports: what it found, or FI_ENOMSG.
 * With FI_CLAIM the message found is set aside under the context, which then is a
 * struct fi_context; with FI_DISCARD it is discarded.  FI_CLAIM alone receives the
 * message set aside, FI_CLAIM with FI_DISCARD discards it.
 *
 * Not on a shared context: a claimed message would be freed with the endpoint it came
 * to.
 */
ssize_t lnx_rx_post_special(struct lnx_ep *ep, const struct lnx_recv *r)
{
	struct fi_context *ctx = r->context;
	struct lnx_rxe *rxe;
	ssize_t ret = 0;

	if (lnx_ep_is_srx(ep))
		return -FI_EOPNOTSUPP;
	if (lnx_iov_check("receive", r->iov, r->niov))
		return -FI_EINVAL;
	if ((r->flags & FI_CLAIM) && !ctx)
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	if (r->flags & FI_PEEK) {
		ret = peek(ep, r);
		goto out;
	}

	rxe = ctx ? ctx->internal[0] : NULL;
	if (!rxe || !lnx_pool_owns(&ep->rxe_pool, rxe) ||
	    rxe->state != LNX_RXE_CLAIMED) {
		ret = -FI_EINVAL;
		goto out;
	}
	ctx->internal[0] = NULL;
	lnx_list_del(&rxe->link);
	if (r->flags & FI_DISCARD) {
		struct lnx_rxe copy = *rxe;

		lnx_rx_discard(rxe);
		if (r->flags & FI_COMPLETION)
			lnx_cq_write(ep->rx_cq, r->context, copy.cq_flags |
				     FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG),
				     0, NULL, copy.data, copy.tag,
				     FI_ADDR_NOTAVAIL);
	} else {
		lnx_rxe_fill(rxe, r);
		lnx_rx_deliver(rxe);
	}
out:
	lnx_unlock(&ep->lock);
	return ret;
}

struct cancel_arg {
	void *context;
};

static bool cancel_match(struct lnx_mrecv *post, void *arg)
{
	struct lnx_rxe *rxe = lnx_container_of(post, struct lnx_rxe, post);

	return rxe->context == ((struct cancel_arg *)arg)->context;
}

/*
 * Receives only.  -FI_ENOENT when no receive with that context waits (any more): a
 * caller that gets 0 expects an FI_ECANCELED completion.
 */
ssize_t lnx_rx_cancel(struct lnx_ep *ep, void *context)
{
	struct cancel_arg arg = { .context = context };
	struct lnx_match *m[2] = { &ep->tag, &ep->msg };
	ssize_t ret = -FI_ENOENT;
	unsigned i;

	lnx_lock(&ep->lock);
	for (i = 0; i < 2; i++) {
		struct lnx_mrecv *post =
			lnx_match_each_posted(m[i], cancel_match, &arg);
		struct lnx_rxe *rxe;

		if (!post)
			continue;
		rxe = lnx_container_of(post, struct lnx_rxe, post);
		lnx_match_unpost(m[i], post);
		ret = 0;
		if (rxe->multi) {
			rxe->cq_flags |= FI_MULTI_RECV;
			if (rxe->n_children) {
				/*
				 * Messages are still coming in: the last of them ends
				 * it.
				 */
				rxe->retired = true;
				break;
			}
		}
		if (lnx_unlikely(lnx_ep_is_srx(ep)))
			lnx_rx_cancel_shared(ep, rxe);
		else
			lnx_rx_fail(rxe, FI_ECANCELED, FI_ECANCELED);
		break;
	}
	lnx_unlock(&ep->lock);
	return ret;
}
