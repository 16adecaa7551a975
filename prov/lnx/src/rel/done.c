/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of framed sends.  Called by rail/lent.c (the core released a frame) and
 * rel/recv.c (the peer acknowledged it); calls lnx_cq_write.  A frame is free when
 * both have happened, in either order.
 */
#include "base/interval.h"
#include "policy/errclass.h"
#include "rail/post.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/throttle.h"
#include "obj/throttle.h"

static LNX_COLD void part_over(struct lnx_ep *ep, struct lnx_txe *txe, int err)
{
	struct lnx_tx_group *g = txe->context;

	if (!g->err)
		g->err = err;
	if (!--g->left)
		ep->up->group_over(g);
}

/* What is rare of a success; true: that is all. */
static LNX_COLD bool posted_rare(struct lnx_ep *ep, struct lnx_txe *txe)
{
	if (txe->part) {
		part_over(ep, txe, 0);
		return true;
	}
	lnx_cntr_ok(ep, lnx_cntr_of_op(txe->cq_flags));
	return false;
}

LNX_HOT
void lnx_done_posted(struct lnx_ep *ep, struct lnx_txe *txe)
{
	txe->reported = true;
	if (lnx_unlikely(txe->counts | txe->part) && posted_rare(ep, txe))
		return;
	if (lnx_likely(txe->want_comp))
		lnx_cq_write(ep->tx_cq, txe->context, txe->cq_flags, 0, NULL,
			     0, 0, FI_ADDR_NOTAVAIL);
}

/* The send of a frame has failed. */
static LNX_COLD void txe_failed(struct lnx_ep *ep, struct lnx_txe *txe, int err)
{
	txe->reported = true;
	if (txe->part)
		part_over(ep, txe, err);
	else if (txe->want_comp || txe->tells)
		lnx_ep_op_failed(ep, txe->context, txe->cq_flags, err, err);
	else
		lnx_cntr_err(ep, lnx_cntr_of_op(txe->cq_flags));
}

/* It is over, but the core still has it; only the rail's list can find it. */
static inline void core_has(struct lnx_txe *txe)
{
	struct lnx_rail *rail = txe->peer->path[txe->f.path]->rail;

	txe->peer->n_clones++;
	lnx_list_add_tail(&rail->clones, &txe->f.link);
}

/* An acknowledged frame that waits for a copy does so no longer; or it was one. */
static LNX_COLD void keep_over(struct lnx_txe *txe)
{
	if (txe->keep == LNX_KEEP_IS)
		txe->peer->eager->kept -= txe->f.len -
					  (uint32_t)sizeof(struct lnx_wire_hdr);
	else
		lnx_list_del(&txe->f.link);
	txe->keep = LNX_KEEP_NO;
}

/* What left once and was timed tells how long an acknowledgement takes. */
static LNX_COLD void acked_rare(struct lnx_ep *ep, const struct lnx_txe *txe)
{
	struct lnx_path_counts *c = txe->peer->path[txe->f.path]->counts;

	ep->stats.successful_resends += txe->f.retransmitted;
	if (txe->f.timed && !txe->f.retransmitted && c && c->timed_seq == txe->f.seq)
		lnx_counts_latency(&c->ack, lnx_ns_since(lnx_clock_ns(), c->timed_ns));
}

static inline void txe_acked(struct lnx_ep *ep, struct lnx_txe *txe)
{
	struct lnx_path *path = txe->peer->path[txe->f.path];

	txe->f.acked = true;
	if (lnx_unlikely(txe->f.retransmitted | txe->f.timed))
		acked_rare(ep, txe);
	if (lnx_likely(!txe->f.retransmitted))
		path->proven = path->state == LNX_PATH_UP;
	if (lnx_unlikely(txe->keep))
		keep_over(txe);
	/*
	 * A core that still has it, perhaps as a retransmission, may read the payload.
	 */
	if (lnx_unlikely(txe->f.comp_at_ack && lnx_txe_due(txe)) &&
	    (!txe->f.in_core || !txe->f.niov))
		lnx_done_posted(ep, txe);
	if (lnx_unlikely(txe->f.in_core)) {
		core_has(txe);
		return;
	}
	lnx_path_credits_give(path);
	lnx_txe_put(ep, txe);
}

/* It was acknowledged (or given up) before, and now the core released it too. */
void lnx_done_settled(struct lnx_txe *txe)
{
	struct lnx_ep *ep = txe->peer->ep;

	/* It was acknowledged inside the call that posts it, or it is a clone. */
	if (lnx_list_linked(&txe->f.link)) {
		lnx_list_del(&txe->f.link);
		txe->peer->n_clones--;
	}
	if (lnx_txe_due(txe)) {
		if (lnx_unlikely(txe->keep == LNX_KEEP_FAILED))
			txe_failed(ep, txe, txe->err);
		else
			lnx_done_posted(ep, txe);
	}
	lnx_path_credits_give(txe->peer->path[txe->f.path]);
	if (lnx_unlikely(txe->peer->chan.nqueued))
		lnx_peer_pump(txe->peer);
	lnx_txe_put(ep, txe);
}

/* Sends to the peer work, and a receive may be waiting for that. */
static LNX_COLD void works(struct lnx_peer *peer)
{
	if (peer->chan.flags & LNX_CHAN_CONFIRMS)
		lnx_peer_pull(peer);
	peer->chan.flags &= (uint8_t)~(LNX_CHAN_FAILING | LNX_CHAN_CONFIRMS);
	peer->failing_ns = 0;
}

/* Slow half of lnx_frame_ack (rel/frame.h). */
void lnx_done_acked(struct lnx_peer *peer, uint32_t ack)
{
	struct lnx_chan *c = &peer->chan;
	uint32_t n = lnx_chan_ackable(c, ack);

	if (lnx_unlikely(!n))
		return;
	/* What cores copy has no completion. */
	if (lnx_unlikely(c->flags & (LNX_CHAN_FAILING | LNX_CHAN_CONFIRMS)))
		works(peer);
	while (n--) {
		struct lnx_frame *f = lnx_chan_pop_una(c);

		if (lnx_likely(f != NULL)) {
			struct lnx_txe *txe = lnx_txe_of(f);

			c->una_bytes -= lnx_txe_bytes(txe);
			txe_acked(peer->ep, txe);
		}
	}
	if (peer->eager)
		lnx_keep_acked(peer);
	if (lnx_chan_idle(c))
		lnx_report_all(peer);
	if (lnx_chan_after_ack(c))
		lnx_peer_pump(peer);
	/* The next look is far away: other frames are the oldest from now on. */
	if (lnx_unlikely(!peer->watched) && peer->awaited)
		lnx_frame_watch_on(peer);
}

/* The core has finished with the frame: sent, as far as it can tell. */
void lnx_rel_core_done(struct lnx_op *op)
{
	struct lnx_txe *txe = lnx_container_of(op, struct lnx_txe, op);
	struct lnx_peer *peer = txe->peer;

	txe->f.in_core = false;
	if (lnx_unlikely(!peer))
		return;
	if (lnx_unlikely(peer->failing_ns))
		works(peer);
	if (lnx_unlikely(txe->f.acked))
		lnx_done_settled(txe);
	else
		lnx_frame_let_go(txe);
}

/* Frames that fail at the same time are one failure; and it is none if we have cut what was
 * under way. */
static bool is_charged(const struct lnx_path *path, uint64_t now)
{
	if (path->speed)
		return path->speed->cut_ns &&
		       lnx_ns_since(now, path->speed->cut_ns) < LNX_CUT_AGAIN_NS;
	return path->detect.charged_ns &&
	       lnx_ns_since(now, path->detect.charged_ns) < LNX_READ_REDO_NS;
}

/*
 * The core failed to send.  Frames behind it on the same connection may be lost too,
 * although their sends succeeded: retransmit all that is not acknowledged.  The
 * receiver drops duplicates.
 */
static LNX_COLD void core_failed(struct lnx_txe *txe, const struct fi_cq_err_entry *err)
{
	struct lnx_peer *peer = txe->peer;
	struct lnx_path *path;
	uint64_t now;

	txe->f.in_core = false;
	if (!peer)
		return;
	peer->ep->stats.core_errors++;
	if (txe->f.acked) {
		lnx_done_settled(txe);
		return;
	}
	lnx_frame_let_go(txe);
	path = peer->path[txe->f.path];
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: a send failed: %s (provider error %d); sending again\n",
		       path->rail->name, fi_strerror(err->err),
		       err->prov_errno);
	if (path->state == LNX_PATH_UP) {
		/* The deadline runs until a frame is taken again. */
		lnx_path_happens(path, LNX_PATH_BROKE);
		path->since_ns = 0;
		path->retry_ns = 0;
	}
	/* At once the first time; backoff for a core that fails everything it takes. */
	now = lnx_clock_ns();
	if (!peer->failing_ns) {
		peer->failing_ns = now;
		peer->chan.flags |= LNX_CHAN_FAILING;
	} else if (lnx_ns_since(now, peer->failing_ns) > LNX_FAIL_BACKOFF_MIN_NS)
		path->retry_ns = now + LNX_FAIL_BACKOFF_MIN_NS;
	if ((!path->fail_backoff_ns || now >= path->retry_ns) && !is_charged(path, now))
		lnx_detect_charge(peer, path,
				lnx_errclass(path->rail->prov, LNX_WHILE_SEND,
					     err->err, err->prov_errno), now);
	/* If there are other paths, they send the frames meanwhile. */
	if (peer->npath > 1)
		lnx_backoff_failed(path, now);
	lnx_pump_retransmit(peer, 1u << path->index);
}

LNX_COLD bool lnx_rel_core_failed(struct lnx_rail *rail, const struct fi_cq_err_entry *err)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_txe *txe = err->op_context;
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(ep->txe_pool); i++) {
		if (!lnx_pool_owns(&ep->txe_pool[i], txe))
			continue;
		if (!lnx_pool_lent(&ep->txe_pool[i], txe) || !txe->peer || !txe->f.in_core)
			return true;
		lnx_rail_op_ended(rail);
		core_failed(txe, err);
		return true;
	}
	return false;
}

/* It never left. */
static LNX_COLD void waiting_failed(struct lnx_ep *ep, struct lnx_txe *txe, int err)
{
	if (lnx_txe_due(txe))
		txe_failed(ep, txe, err);
	if (txe->rxe)
		ep->up->sent(txe, LNX_SENT_FAILED);
	lnx_txe_put(ep, txe);
}

LNX_COLD void lnx_rel_peer_failed(struct lnx_peer *peer, int err)
{
	struct lnx_chan *c = &peer->chan;
	struct lnx_ep *ep = peer->ep;
	struct lnx_frame *f;
	struct lnx_txe *txe;

	if (c->next != c->una || peer->nrndv || peer->rma.n_segments)
		LNX_WARN(FI_LOG_EP_DATA,
			 "peer %016llx: not reachable: %u frames and all large sends to it fail: %s\n",
			 (unsigned long long)peer->eid,
			 c->next - c->una, fi_strerror(err));
	if (!peer->session.err)
		peer->session.err = (uint8_t)err;
	lnx_peer_happens(peer, LNX_LIFE_FAILED);
	while (!lnx_chan_idle(c)) {
		f = lnx_chan_pop_una(c);
		if (!f)
			continue;
		txe = lnx_txe_of(f);
		ep->stats.failed_resends += f->retransmitted;
		if (txe->keep)
			keep_over(txe);
		if (lnx_txe_due(txe) && (!f->in_core || !f->niov))
			txe_failed(ep, txe, err);
		f->acked = true;
		txe->keep = LNX_KEEP_FAILED;
		txe->err = err;
		if (!f->in_core) {
			lnx_path_credits_give(peer->path[f->path]);
			lnx_txe_put(ep, txe);
		} else {
			core_has(txe);
		}
	}
	lnx_peer_credits_leave(peer);
	lnx_keep_end(peer);
	lnx_report_all(peer);
	while ((f = lnx_chan_unqueue(c)))
		waiting_failed(ep, lnx_txe_of(f), err);
	while ((txe = lnx_throttle_pop(peer)))
		waiting_failed(ep, txe, err);
	lnx_peer_unthrottle(peer);
	peer->blocked = false;
	lnx_chan_end(c);
	ep->up->peer_failed(peer, err);
	peer->awaited = peer->watched = false;
	lnx_timer_cancel(&ep->due.timers, &peer->retry);
	/* Reads of its memory may not have ended, and a core may have frames to it. */
	lnx_peer_look_by(peer, 0);
	lnx_peer_ack_clear(peer);
	lnx_recv_ooo_free(peer);
	lnx_peer_ended(peer);
}

/* It is closing: what is not acknowledged by now never will be. */
void lnx_done_peer_ended(struct lnx_peer *peer)
{
	lnx_peer_happens(peer, LNX_LIFE_ENDED);
	lnx_peer_ended(peer);
	/* Progress fails what is outstanding: this may be inside a send to that same
	 * peer.  A peer without anything outstanding becomes DEAD too, so that the next
	 * send begins another session. */
	lnx_peer_pump(peer);
}

void lnx_rel_close(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);
		struct lnx_frame *f;

		while ((f = lnx_chan_unqueue(&peer->chan))) {
			struct lnx_txe *txe = lnx_txe_of(f);

			if (txe->rxe)
				ep->up->sent(txe, LNX_SENT_CLOSED);
		}
	}
}
