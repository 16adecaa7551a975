/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives that several endpoints share (fi_srx_context).  They wait in the matchers of
 * the context, and so do messages of its endpoints that found no receive; an endpoint's
 * own matchers stay empty.  An endpoint without a context pays nothing for this: only
 * messages without a receive of the endpoint's own come here.
 *
 * One mutex guards all of it (lnx_lock_join), since a receive may start a message in a
 * core of any of the endpoints.
 */
#include "msg/rx.h"

/* The endpoint's binding decides whether a success is reported. */
void lnx_rx_assign(struct lnx_rxe *rxe, struct lnx_ep *ep)
{
	rxe->more = true;		/* ep is not its home */
	rxe->ep = ep;
	if (ep->rx_msg_flags & FI_COMPLETION)
		rxe->want_comp = true;
}

struct lnx_rxe *lnx_rx_take_shared(struct lnx_ep *ep, uint64_t src,
				   uint64_t tag)
{
	struct lnx_mrecv *r = lnx_match_take(&ep->srx->tag, src, tag);
	struct lnx_rxe *rxe;

	if (!r)
		return NULL;
	rxe = lnx_container_of(r, struct lnx_rxe, post);
	lnx_rx_assign(rxe, ep);
	return rxe;
}

/* The endpoint that reports for the context, which has no CQ; NULL: there is none. */
static struct lnx_ep *first_srx_user(struct lnx_ep *srx)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&srx->shared.users, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep, shared.link);

		if (ep->rx_cq)
			return ep;
	}
	return NULL;
}

void lnx_rx_cancel_shared(struct lnx_ep *srx, struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = first_srx_user(srx);

	if (!ep) {
		lnx_rx_release(rxe);
		return;
	}
	rxe->more = true;		/* ep is not its home */
	rxe->ep = ep;
	lnx_rx_fail(rxe, FI_ECANCELED, FI_ECANCELED);
}

/*
 * Messages that came to ep wait in ep from now on, as if it had never shared receives.
 */
static void take_along(struct lnx_match *from, struct lnx_match *to,
		       const struct lnx_ep *ep)
{
	struct lnx_munex *u, *next;

	for (u = lnx_match_first_unex(from); u; u = next) {
		next = lnx_match_next_unex(from, u);
		if (lnx_unex_about(lnx_unex_of(u)).ep != ep)
			continue;
		lnx_match_drop(from, u);
		lnx_match_store(to, u);
	}
}

void lnx_rx_detach(struct lnx_ep *ep)
{
	if (!ep->srx)
		return;
	take_along(&ep->srx->tag, &ep->tag, ep);
	take_along(&ep->srx->msg, &ep->msg, ep);
	lnx_list_del(&ep->shared.link);
	ep->srx = NULL;
}

/*
 * A message for a multi-receive buffer is freed with its endpoint, and may have been
 * discarded already.  Perhaps the buffer waited only for that message.
 */
static void drop_child(void *obj, void *arg)
{
	struct lnx_rxe *child = obj, *parent;
	struct lnx_ep *srx = arg, *ep;

	if (!child->parent)
		return;
	parent = child->parent;
	child->parent = NULL;
	if (--parent->n_children || !parent->retired)
		return;
	ep = first_srx_user(srx);
	if (ep)
		lnx_rx_multi_retire(ep, parent);
	else
		lnx_rxe_put(parent);
}

static void drop_taken(void *obj, void *arg)
{
	struct lnx_rxe *rxe = obj;

	if (rxe->state != LNX_RXE_FREE && rxe->ep == arg)
		lnx_rxe_put(rxe);
}

void lnx_rx_give_back(struct lnx_ep *ep)
{
	if (!ep->shared.owner)
		return;
	lnx_pool_each(&ep->rxe_pool, drop_child, ep->shared.owner);
	lnx_pool_each(&ep->shared.owner->rxe_pool, drop_taken, ep);
	ep->shared.owner->shared.n_users--;
	ep->shared.owner = NULL;
}
