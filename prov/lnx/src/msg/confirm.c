/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct operations that a peer's lnx must confirm or count: see confirm.h. */
#include "msg/confirm.h"

#include <string.h>

#include "rail/direct.h"
#include "rail/rail.h"
#include "rma/copy.h"
#include "wire/shm_ctrl.h"

/* ---- operations that wait ---- */

static LNX_COLD bool make_room(struct lnx_ep *ep, struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < LNX_CONFIRM_TRIES && peer->confirm.n >= ep->limits.tx_size; i++)
		lnx_obj_progress_all(ep);
	return peer->confirm.n < ep->limits.tx_size;
}

bool lnx_confirm_room(struct lnx_ep *ep, struct lnx_peer *peer)
{
	return lnx_likely(peer->confirm.n < ep->limits.tx_size) || make_room(ep, peer);
}

struct lnx_confirm *lnx_confirm_get(struct lnx_ep *ep, struct lnx_peer *peer,
				    void *context, uint64_t cq_flags,
				    bool want_comp, bool tells)
{
	struct lnx_confirm *c;

	if (lnx_unlikely(!lnx_confirm_room(ep, peer)))
		return NULL;
	c = lnx_pool_get(&ep->local.confirm_pool);
	if (lnx_unlikely(!c))
		return NULL;
	c->peer = peer;
	c->context = context;
	c->cq_flags = cq_flags;
	c->want_comp = want_comp;
	c->tells = tells;
	c->n_targets = 0;
	c->queued = false;
	lnx_list_init(&c->link);
	return c;
}

void lnx_confirm_put(struct lnx_confirm *c)
{
	lnx_list_del(&c->link);
	lnx_pool_put(&c->peer->ep->local.confirm_pool, c);
}

void lnx_confirm_wait(struct lnx_confirm *c)
{
	struct lnx_peer *peer = c->peer;

	c->op = ++peer->confirm.last_op;
	lnx_list_add_tail(&peer->confirm.list, &c->link);
	peer->confirm.n++;
	if (!peer->ep->local.nconfirm++)
		lnx_ep_watch_local(peer->ep);
}

void lnx_confirm_end(struct lnx_confirm *c, int err)
{
	struct lnx_ep *ep = c->peer->ep;

	c->peer->confirm.n--;
	ep->local.nconfirm--;
	if (lnx_unlikely(c->doubtful)) {
		c->doubtful = false;
		err = err ? err : FI_EIO;
	}
	if (lnx_likely(!err)) {
		if (c->want_comp)
			lnx_cq_write(ep->tx_cq, c->context, c->cq_flags, 0,
				     NULL, 0, 0, FI_ADDR_NOTAVAIL);
		lnx_cntr_ok(ep, lnx_cntr_of_op(c->cq_flags));
	} else if (c->tells) {
		lnx_ep_op_failed(ep, c->context, c->cq_flags, err, err);
	} else {
		lnx_cntr_err(ep, lnx_cntr_of_op(c->cq_flags));
	}
	if (lnx_likely(!c->queued)) {
		lnx_confirm_put(c);
	} else {
		lnx_list_del(&c->link);
		c->over = true;
	}
}

void lnx_confirm_answered(struct lnx_peer *peer, uint64_t op, int err)
{
	struct lnx_node *n, *tmp;

	if (lnx_unlikely(op > peer->confirm.last_op)) {
		peer->ep->stats.bad_frames++;	/* an answer to none that waits */
		return;
	}
	lnx_list_foreach(&peer->confirm.list, n, tmp) {
		struct lnx_confirm *c =
			lnx_list_entry(n, struct lnx_confirm, link);

		if (c->op > op)
			break;
		lnx_confirm_end(c, err);
	}
}

void lnx_confirm_result_came(struct lnx_peer *peer, uint64_t op, const void *data,
			     size_t len)
{
	const uint64_t flags = FI_ATOMIC | FI_READ;
	struct lnx_confirm *c = NULL;

	/* The peer answers in order. */
	if (!lnx_list_empty(&peer->confirm.list))
		c = lnx_list_entry(peer->confirm.list.next, struct lnx_confirm,
				   link);
	if (lnx_unlikely(!c || c->op != op || (c->cq_flags & flags) != flags ||
			 c->len != len)) {
		peer->ep->stats.bad_frames++;
		return;
	}
	lnx_msg_iov_put(c->iov, c->niov, data, len);
	lnx_confirm_end(c, 0);
}

LNX_COLD void lnx_confirm_fail(struct lnx_peer *peer, int err)
{
	struct lnx_node *n, *tmp;

	lnx_rma_repeat(peer, err);
	lnx_list_foreach(&peer->confirm.list, n, tmp)
		lnx_confirm_end(lnx_list_entry(n, struct lnx_confirm, link),
				err);
}

/* ---- control messages ---- */

/* Send one behind what went to peer before.  0, or -FI_E*: it was not sent. */
static int say(struct lnx_peer *peer, uint64_t op, uint8_t flags,
	       const struct lnx_wire_target *place, unsigned n_targets)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_wire_shm_put n = {
		.src = ep->eid, .dst = peer->eid, .kind = LNX_KIND_PUT,
		.flags = flags, .n_targets = (uint8_t)n_targets, .op = op,
	};
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	ssize_t ret = -FI_EAGAIN;

	if (n_targets)
		memcpy(n.place, place, n_targets * sizeof(*place));
	lnx_shm_ctrl_put_put(bytes, &n);
	if (lnx_likely(!peer->shm.nqueued))
		ret = lnx_large_ctrl_post(ep, peer->shm_addr, &ctrl);
	if (lnx_unlikely(ret == -FI_EAGAIN))
		ret = lnx_direct_queue(ep, peer, &ctrl);
	return (int)ret;
}

LNX_COLD void lnx_confirm_greet(struct lnx_peer *peer)
{
	struct lnx_wire_shm_put n = {
		.src = peer->ep->eid, .dst = peer->eid, .kind = LNX_KIND_HELLO,
	};
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };

	lnx_shm_ctrl_put_put(bytes, &n);
	/* All that is sent later waits for it. */
	if (lnx_direct_queue(peer->ep, peer, &ctrl))
		LNX_WARN(FI_LOG_EP_DATA,
			 "peer %016llx: no memory to tell it that we are here\n",
			 (unsigned long long)peer->eid);
}

void lnx_confirm_ask(struct lnx_confirm *c, uint8_t flags)
{
	int ret;

	lnx_confirm_wait(c);
	ret = say(c->peer, c->op, flags, c->place, c->n_targets);
	if (lnx_unlikely(ret))
		lnx_confirm_end(c, -ret);
}

/*
 * Tell peer of an operation to be counted, which the core has executed, or will execute
 * before all later ones.
 */
static void tell(struct lnx_peer *peer, const struct lnx_wire_target *place,
		 unsigned n_targets)
{
	int ret = say(peer, 0, LNX_SHM_CTRL_F_COUNT, place, n_targets);

	if (lnx_unlikely(ret)) {
		peer->ep->stats.lost++;
		LNX_WARN(FI_LOG_EP_DATA,
			 "peer %016llx: a write to its memory is not counted there: %s\n",
			 (unsigned long long)peer->eid, fi_strerror(-ret));
	}
}

/* ---- the core ---- */

/* Which operation of ours is it?  NULL: none.  Contexts of errors may be anything. */
static struct lnx_confirm *in_core(const struct lnx_ep *ep, void *context)
{
	return (ep->shm->mute & LNX_MUTE_RMA) &&
	       lnx_pool_owns(&ep->local.confirm_pool, context) &&
	       lnx_pool_lent(&ep->local.confirm_pool, context) ? context : NULL;
}

bool lnx_confirm_core_done(struct lnx_rail *rail, void *context,
			   uint64_t flags)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_confirm *c = context;

	if (!(rail->mute & LNX_MUTE_RMA) || !(flags & FI_RMA) ||
	    !lnx_pool_owns(&ep->local.confirm_pool, c))
		return context == LNX_QUIET(rail);
	lnx_rma_left_core(c, true);
	if (c->want_comp)
		lnx_cq_write(ep->tx_cq, c->context, flags & ~FI_COMPLETION, 0,
			     NULL, 0, 0, FI_ADDR_NOTAVAIL);
	if (lnx_likely(!c->tell)) {
		lnx_pool_put(&ep->local.confirm_pool, c);
		return true;
	}
	lnx_list_add_tail(&ep->local.to_tell, &c->link);
	ep->work |= LNX_WORK_CONFIRM;
	return true;
}

LNX_COLD bool lnx_confirm_core_failed(struct lnx_rail *rail,
				      const struct fi_cq_err_entry *err)
{
	struct lnx_confirm *c = in_core(rail->ep, err->op_context);

	if (!c)		/* of those the answer has the reason */
		return err->op_context == LNX_QUIET(rail);
	lnx_rma_left_core(c, false);
	lnx_rma_core_failed(c, err->err, err->prov_errno);
	return true;
}

void lnx_confirm_tell(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->local.to_tell))) {
		struct lnx_confirm *c =
			lnx_list_entry(n, struct lnx_confirm, link);

		if (c->peer->shm_addr != FI_ADDR_NOTAVAIL)
			tell(c->peer, c->place, c->n_targets);
		ep->local.ntell_later--;
		lnx_confirm_put(c);
	}
}

/* ---- messages ---- */

/*
 * Only we report it: it is sent as an inject, with the call that takes all flags.  When
 * the core is too busy it is queued in this form.
 */
static ssize_t send_quiet(struct lnx_ep *ep, struct lnx_peer *peer,
			  const struct lnx_tx *tx)
{
	struct lnx_tx quiet = *tx;
	ssize_t ret = -FI_EAGAIN;

	quiet.call = lnx_call_tagged(tx->call) ? LNX_TSENDMSG : LNX_SENDMSG;
	quiet.flags = FI_INJECT;
	if (lnx_call_data(tx->call) || (tx->op_flags & FI_REMOTE_CQ_DATA))
		quiet.flags |= FI_REMOTE_CQ_DATA;
	quiet.op_flags = quiet.flags | LNX_TX_QUIET;
	quiet.context = LNX_QUIET(ep->shm);
	if (lnx_likely(!peer->shm.nqueued)) {
		ep->shm->mute |= LNX_MUTE_NOW | LNX_MUTE_SOME;
		ret = lnx_direct_post(ep->shm->core_ep, peer->shm_addr, &quiet,
				      NULL);
		ep->shm->mute &= (uint8_t)~LNX_MUTE_NOW;
	}
	return lnx_unlikely(ret == -FI_EAGAIN) ?
	       lnx_direct_retry(ep, peer, &quiet) : ret;
}

/* A send that the core completes when it has been received. */
static ssize_t send_large(struct lnx_ep *ep, struct lnx_peer *peer,
			  const struct lnx_tx *tx)
{
	struct lnx_tx plain = *tx;
	ssize_t ret = -FI_EAGAIN;

	plain.flags &= ~FI_DELIVERY_COMPLETE;
	if (!peer->shm.nqueued)
		ret = lnx_direct_post(ep->shm->core_ep, peer->shm_addr, &plain,
				      NULL);
	return ret == -FI_EAGAIN ? lnx_direct_retry(ep, peer, &plain) : ret;
}

ssize_t lnx_confirm_send(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_tx *tx)
{
	bool inject = lnx_call_inject(tx->call);
	struct lnx_confirm *c;
	ssize_t ret;

	if (lnx_msg_iov_len(tx->iov, tx->niov) > ep->inject_size)
		return send_large(ep, peer, tx);
	c = lnx_confirm_get(ep, peer, tx->context, FI_SEND |
		(lnx_call_tagged(tx->call) ? FI_TAGGED : FI_MSG),
		!inject && (tx->op_flags & FI_COMPLETION), !inject);
	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	lnx_confirm_open(peer);
	ret = send_quiet(ep, peer, tx);
	if (lnx_likely(!ret))
		lnx_confirm_ask(c, 0);
	else
		lnx_confirm_put(c);
	lnx_confirm_close(peer);
	return ret;
}

/* ---- writes ---- */

unsigned lnx_confirm_places(struct lnx_wire_target *place,
			    const struct fi_rma_iov *rma, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		place[i].addr = rma[i].addr;
		place[i].key = rma[i].key;
		place[i].len = rma[i].len;
	}
	return (unsigned)n;
}

/* In order, and only we report it. */
static ssize_t write_quiet(struct lnx_ep *ep, struct lnx_peer *peer,
			   const struct lnx_rma *r)
{
	struct lnx_rail *rail = ep->shm;
	struct lnx_rma quiet = *r;
	ssize_t ret;

	quiet.call = LNX_WRITEMSG;
	quiet.context = LNX_QUIET(rail);
	quiet.flags = FI_INJECT;
	if (lnx_rma_data(r->call) || (r->op_flags & FI_REMOTE_CQ_DATA))
		quiet.flags |= FI_REMOTE_CQ_DATA;
	rail->mute |= LNX_MUTE_NOW | LNX_MUTE_SOME;
	ret = lnx_direct_post_rma(rail->core_ep, peer->shm_addr, &quiet, NULL);
	rail->mute &= (uint8_t)~LNX_MUTE_NOW;
	return ret;
}

/* Unchanged; all that the core reports is the application's. */
static ssize_t write_plain(struct lnx_ep *ep, struct lnx_peer *peer,
			   const struct lnx_rma *r)
{
	struct lnx_rma plain = *r;

	plain.flags &= ~FI_DELIVERY_COMPLETE;
	return lnx_direct_post_rma(ep->shm->core_ep, peer->shm_addr, &plain, NULL);
}

ssize_t lnx_confirm_rma(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_rma *r)
{
	uint8_t count = lnx_confirm_counts(peer) ? LNX_SHM_CTRL_F_COUNT : 0;
	struct lnx_wire_target place[LNX_SHM_CTRL_PIECES];
	bool inject = lnx_rma_inject(r->call);
	struct lnx_confirm *c;
	ssize_t ret;

	if (!(r->op_flags & FI_DELIVERY_COMPLETE)) {
		lnx_confirm_open(peer);
		LNX_CONFIRM_RETRY(ep, peer, ret, write_plain(ep, peer, r));
		if (lnx_likely(!ret))
			tell(peer, place,
			     lnx_confirm_places(place, r->rma, r->nrma));
		lnx_confirm_close(peer);
		return ret;
	}
	c = lnx_confirm_get(ep, peer, r->context, FI_RMA | FI_WRITE,
		!inject && (r->op_flags & FI_COMPLETION), true);
	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	c->n_targets = (uint8_t)lnx_confirm_places(c->place, r->rma, r->nrma);
	lnx_confirm_open(peer);
	LNX_CONFIRM_RETRY(ep, peer, ret, write_quiet(ep, peer, r));
	if (lnx_likely(!ret))
		lnx_confirm_ask(c, count);
	else
		lnx_confirm_put(c);
	lnx_confirm_close(peer);
	return ret;
}

/* ---- atomics ---- */

static unsigned atomic_places(struct lnx_wire_target *place,
			      const struct lnx_amo_tx *t)
{
	size_t i, size = lnx_amo_size(t->type);

	for (i = 0; i < t->nrma; i++) {
		place[i].addr = t->rma[i].addr;
		place[i].key = t->rma[i].key;
		place[i].len = t->rma[i].count * size;
	}
	return (unsigned)t->nrma;
}

static ssize_t amo_quiet(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_amo_tx *t)
{
	struct lnx_rail *rail = ep->shm;
	struct lnx_amo_tx quiet = *t;
	ssize_t ret;

	quiet.call = LNX_ATOMICMSG;
	quiet.context = LNX_QUIET(rail);
	quiet.flags = FI_INJECT;
	rail->mute |= LNX_MUTE_NOW | LNX_MUTE_SOME;
	ret = lnx_direct_post_amo(rail->core_ep, peer->shm_addr, quiet.call, &quiet);
	rail->mute &= (uint8_t)~LNX_MUTE_NOW;
	return ret;
}

/* Without its completion level; all that the core reports is the application's. */
static ssize_t amo_plain(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_amo_tx *t)
{
	struct lnx_amo_tx plain = *t;

	plain.flags &= ~FI_DELIVERY_COMPLETE;
	return lnx_direct_post_amo(ep->shm->core_ep, peer->shm_addr, t->call, &plain);
}

ssize_t lnx_confirm_amo(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_amo_tx *t)
{
	uint8_t count = lnx_confirm_counts(peer) ? LNX_SHM_CTRL_F_COUNT : 0;
	struct lnx_wire_target place[LNX_SHM_CTRL_PIECES];
	struct lnx_confirm *c;
	ssize_t ret;

	if (!(t->op_flags & FI_DELIVERY_COMPLETE)) {
		lnx_confirm_open(peer);
		LNX_CONFIRM_RETRY(ep, peer, ret, amo_plain(ep, peer, t));
		if (lnx_likely(!ret))
			tell(peer, place, atomic_places(place, t));
		lnx_confirm_close(peer);
		return ret;
	}
	c = lnx_confirm_get(ep, peer, t->context, FI_ATOMIC | FI_WRITE,
		!lnx_amo_inject(t->call) && (t->op_flags & FI_COMPLETION), true);
	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	c->n_targets = (uint8_t)atomic_places(c->place, t);
	lnx_confirm_open(peer);
	LNX_CONFIRM_RETRY(ep, peer, ret, amo_quiet(ep, peer, t));
	if (lnx_likely(!ret))
		lnx_confirm_ask(c, count);
	else
		lnx_confirm_put(c);
	lnx_confirm_close(peer);
	return ret;
}

/* ---- beginning and end ---- */

static void make(void *obj, struct lnx_pool *p)
{
	struct lnx_confirm *c = obj;

	(void)p;
	c->in_core = c->doubtful = false;
}

void lnx_confirm_init(struct lnx_ep *ep)
{
	lnx_pool_init(&ep->local.confirm_pool, sizeof(struct lnx_confirm), 64);
	ep->local.confirm_pool.make = make;
	ep->local.lost.ep = ep;
	lnx_peer_clear_direct(&ep->local.lost);
	lnx_list_init(&ep->local.to_tell);
	lnx_list_init(&ep->local.rma_failed);
}

void lnx_confirm_fini(struct lnx_ep *ep)
{
	lnx_pool_fini(&ep->local.confirm_pool);
}
