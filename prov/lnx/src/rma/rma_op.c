/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations on remote memory that wait for an answer: their segments, how answers of
 * peers end them, and how the application is told.  Called by rma/rma.c, and by
 * rel/recv.c from inside cores: only lnx_rma_op_admit calls a core.
 */
#include <stdlib.h>

#include "rail/rail.h"
#include "rma/rkey.h"
#include "rma/rma.h"
#include "rma/serve.h"

/* ---- walking ---- */

void lnx_rma_cursor_get(struct lnx_cursor *c, void *dst, size_t len)
{
	char *p = dst;

	while (len) {
		size_t n = LNX_MIN(len, c->iov->iov_len - c->off);

		if (n)
			memcpy(p, (char *)c->iov->iov_base + c->off, n);
		p += n;
		len -= n;
		c->off += n;
		if (c->off == c->iov->iov_len && c->n > 1) {
			c->iov++;
			c->n--;
			c->off = 0;
		}
	}
}

size_t lnx_rma_cursor_slice(struct lnx_cursor *c, size_t len, struct iovec *out)
{
	size_t i = 0;

	while (len) {
		size_t n = LNX_MIN(len, c->iov->iov_len - c->off);

		if (n) {
			out[i].iov_base = (char *)c->iov->iov_base + c->off;
			out[i++].iov_len = n;
		}
		len -= n;
		c->off += n;
		if (c->off == c->iov->iov_len && c->n > 1) {
			c->iov++;
			c->n--;
			c->off = 0;
		}
	}
	return i;
}

/* ---- operations and their segments ---- */

#define TRIES	64		/* as for frames */

/* Progress calls cores, unlike all else here: call only from rma/rma.c, rma/amo.c. */
static LNX_COLD int make_room(struct lnx_ep *ep, struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < TRIES && peer->rma.n_segments >= ep->limits.tx_size; i++)
		lnx_obj_progress_all(ep);
	if (lnx_peer_dead(peer))
		return -FI_EHOSTUNREACH;
	return peer->rma.n_segments < ep->limits.tx_size ? 0 : -FI_EAGAIN;
}

int lnx_rma_op_admit(struct lnx_ep *ep, struct lnx_peer *peer)
{
	return lnx_likely(peer->rma.n_segments < ep->limits.tx_size) ? 0 : make_room(ep, peer);
}

struct lnx_rma_op *lnx_rma_op_get(struct lnx_ep *ep, void *context,
			    uint64_t cq_flags, bool want_comp)
{
	struct lnx_rma_op *rma_op = lnx_pool_get(&ep->rma.rma_op_pool);

	if (lnx_unlikely(!rma_op))
		return NULL;
	rma_op->ep = ep;
	rma_op->context = context;
	rma_op->cq_flags = cq_flags;
	rma_op->n_segments = 1;
	rma_op->err = 0;
	rma_op->want_comp = want_comp;
	rma_op->tell = false;
	rma_op->has_data = false;
	rma_op->ntold = 0;
	rma_op->written = 0;
	return rma_op;
}

void lnx_rma_op_done(struct lnx_rma_op *rma_op, int err)
{
	struct lnx_ep *ep = rma_op->ep;

	if (lnx_unlikely(err) && !rma_op->err)
		rma_op->err = err;
	if (--rma_op->n_segments)
		return;
	if (lnx_unlikely(rma_op->err)) {
		lnx_ep_op_failed(ep, rma_op->context, rma_op->cq_flags, rma_op->err,
				 rma_op->err);
	} else {
		if (rma_op->want_comp)
			lnx_cq_write(ep->tx_cq, rma_op->context, rma_op->cq_flags, 0,
				     NULL, 0, 0, FI_ADDR_NOTAVAIL);
		lnx_cntr_ok(ep, lnx_cntr_of_op(rma_op->cq_flags));
	}
	lnx_pool_put(&ep->rma.rma_op_pool, rma_op);
}

struct lnx_rma_segment *lnx_rma_segment_get(struct lnx_rma_op *rma_op, struct lnx_peer *peer,
			      enum lnx_rma_segment_kind kind)
{
	struct lnx_ep *ep = rma_op->ep;
	struct lnx_rma_segment *segment = lnx_pool_get(&ep->rma.segment_pool);

	if (lnx_unlikely(!segment))
		return NULL;
	segment->id = lnx_optab_add(&ep->rma.ops, segment);
	if (lnx_unlikely(!segment->id)) {
		lnx_pool_put(&ep->rma.segment_pool, segment);
		return NULL;
	}
	segment->rma_op = rma_op;
	segment->peer = peer;
	segment->kind = (uint8_t)kind;
	segment->niov = 0;
	segment->pull = NULL;
	segment->moved = false;
	segment->tell = false;
	segment->asked = false;
	segment->len = 0;
	lnx_list_init(&segment->link);
	lnx_list_add_tail(&ep->rma.segments, &segment->all);
	rma_op->n_segments++;
	/* Its peer's paths are checked until it ends. */
	peer->rma.n_segments++;
	if (lnx_unlikely(!peer->watched))
		lnx_peer_watch(peer);
	return segment;
}

static void part_put(struct lnx_rma_segment *segment)
{
	struct lnx_ep *ep = segment->rma_op->ep;

	lnx_optab_del(&ep->rma.ops, segment->id);
	lnx_list_del(&segment->all);
	lnx_list_del(&segment->link);
	segment->peer->rma.n_segments--;
	lnx_pool_put(&ep->rma.segment_pool, segment);
}

void lnx_rma_segment_end(struct lnx_rma_segment *segment, int err)
{
	struct lnx_rma_op *rma_op = segment->rma_op;

	part_put(segment);
	lnx_rma_op_done(rma_op, err);
}

void lnx_rma_op_drop(struct lnx_rma_op *rma_op)
{
	struct lnx_ep *ep = rma_op->ep;
	struct lnx_node *n, *tmp;

	/* Its segments are the last ones made. */
	for (n = ep->rma.segments.prev; n != &ep->rma.segments; n = tmp) {
		struct lnx_rma_segment *segment = lnx_list_entry(n, struct lnx_rma_segment, all);

		tmp = n->prev;
		if (segment->rma_op != rma_op)
			break;
		part_put(segment);
	}
	lnx_pool_put(&ep->rma.rma_op_pool, rma_op);
}

/* ---- answers ---- */

/* The application has its completion already: only a log message is possible. */
static LNX_COLD void refused(struct lnx_ep *ep, const struct lnx_peer *peer,
			     int err)
{
	ep->stats.rma_refused++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "peer %016llx refused a write or atomic that was complete here: %s; ask for FI_DELIVERY_COMPLETE to have such errors reported\n",
		       (unsigned long long)peer->eid, fi_strerror(err));
}

size_t lnx_rma_answer(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_hdr *h, const uint8_t *payload)
{
	struct lnx_rma_segment *segment = lnx_optab_get(&ep->rma.ops, h->data);
	int err = (int)LNX_MIN(h->tag, LNX_ERR_MAX);
	size_t taken = 0;

	if (lnx_unlikely(!segment)) {
		/* Or of a write that ended long ago: its target refused it. */
		if (!h->data && err)
			refused(ep, peer, err);
		else
			ep->stats.bad_frames++;
		return 0;
	}
	if (segment->kind == LNX_RMA_SEGMENT_KEYS) {
		lnx_rkey_answer(ep, (struct lnx_rkey *)segment, peer, h, payload);
		return 0;
	}
	if (lnx_unlikely(segment->peer != peer ||
			 (segment->kind != LNX_RMA_SEGMENT_DATA &&
			  segment->kind != LNX_RMA_SEGMENT_STATUS))) {
		ep->stats.bad_frames++;
		return 0;
	}
	if (segment->kind == LNX_RMA_SEGMENT_DATA && !err) {
		if (lnx_unlikely(h->len != segment->len)) {
			ep->stats.bad_frames++;
			err = FI_EIO;
		} else {
			lnx_msg_iov_put(segment->iov, segment->niov, payload, h->len);
			taken = h->len;
		}
	}
	lnx_rma_segment_end(segment, err);
	return taken;
}

/* ---- beginning and end ---- */

static LNX_COLD void end_segments(struct lnx_peer *peer, int err)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->rma.segments, n, tmp) {
		struct lnx_rma_segment *segment = lnx_list_entry(n, struct lnx_rma_segment, all);

		/* Cores end their own, and pulls end when no read is outstanding. */
		if (segment->peer == peer && !segment->pull &&
		    segment->kind != LNX_RMA_SEGMENT_CORE)
			lnx_rma_segment_end(segment, err);
	}
}

LNX_COLD void lnx_rma_fail_peer(struct lnx_peer *peer, int err)
{
	if (peer->rma.n_segments)
		end_segments(peer, err);
	lnx_rkeys_forget(peer);
}

void lnx_rma_init(struct lnx_ep *ep)
{
	lnx_pool_init(&ep->rma.rma_op_pool, sizeof(struct lnx_rma_op), 64);
	lnx_pool_init(&ep->rma.segment_pool, sizeof(struct lnx_rma_segment), 64);
	lnx_list_init(&ep->rma.segments);
	lnx_list_init(&ep->rma.waiting);
	lnx_list_init(&ep->rma.asks);
}

void lnx_rma_fini(struct lnx_ep *ep)
{
	lnx_rkeys_free(ep);
	lnx_serve_fini(ep);
	lnx_optab_fini(&ep->rma.ops);
	lnx_pool_fini(&ep->rma.rma_op_pool);
	lnx_pool_fini(&ep->rma.segment_pool);
}
