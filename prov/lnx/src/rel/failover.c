/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What happens to the frames of a path that goes DOWN, and of a rail whose core
 * endpoint is closed.  Called by rel/detect.c and rel/recovery.c; lnx_pump_run
 * (rel/pump.c) posts what is sent again.
 */
#include "core/open.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/session.h"

/* A core has the frame and cannot be made to return it: a clone takes its place. */
static LNX_COLD void send_clone(struct lnx_ep *ep, struct lnx_peer *peer,
			       struct lnx_txe *txe)
{
	struct lnx_txe *clone;

	/*
	 * Its payload is in the application's buffer: the core must have released it.
	 */
	if (txe->f.niov)
		return;
	clone = lnx_txe_get(ep, txe->f.len - sizeof(struct lnx_wire_hdr));
	if (!clone)
		return;
	clone->f.comp_at_ack = txe->f.comp_at_ack;
	clone->matters = txe->matters;
	clone->reported = txe->reported;
	/* If it is a copy, its bytes are still kept for that. */
	clone->keep = txe->keep;
	txe->keep = LNX_KEEP_NO;
	clone->f.path = txe->f.path;
	clone->f.len = txe->f.len;
	clone->f.seq = txe->f.seq;
	clone->peer = peer;
	clone->context = txe->context;
	clone->cq_flags = txe->cq_flags;
	memcpy(clone->frame, txe->frame, txe->f.len);
	*lnx_chan_slot(&peer->chan, txe->f.seq) = &clone->f;
	txe->reported = true;
	txe->f.acked = true;		/* free as soon as the core releases it */
	lnx_path_credits_take(peer->path[txe->f.path]);
	peer->n_clones++;
	lnx_list_add_tail(&peer->path[txe->f.path]->rail->clones, &txe->f.link);
}

LNX_COLD void lnx_failover_path(struct lnx_path *path, struct lnx_peer *peer)
{
	uint32_t seq;

	for (seq = peer->chan.una; seq != peer->chan.posted; seq++) {
		struct lnx_txe *txe = lnx_frame_at(peer, seq);

		if (txe && txe->f.path == path->index && txe->f.in_core)
			send_clone(peer->ep, peer, txe);
	}
	/* What still arrives over it is a duplicate. */
	path->delivered = path->sent;
	lnx_pump_retransmit(peer, 1u << path->index);
}

/* Does a send wait until the core lets go of a frame that is over? */
static bool holds_over(const struct lnx_path *path, const struct lnx_peer *peer)
{
	struct lnx_node *n, *tmp;

	if (!peer->n_clones)
		return false;
	lnx_list_foreach(&path->rail->clones, n, tmp) {
		const struct lnx_txe *txe = lnx_list_entry(n, struct lnx_txe, f.link);

		if (txe->peer == peer && txe->f.path == path->index && lnx_txe_due(txe))
			return true;
	}
	return false;
}

LNX_COLD bool lnx_failover_in_core(const struct lnx_path *path, struct lnx_peer *peer)
{
	uint32_t seq;

	for (seq = peer->chan.una; seq != peer->chan.posted; seq++) {
		const struct lnx_txe *txe = lnx_frame_at(peer, seq);

		if (txe && txe->f.path == path->index && txe->f.in_core)
			return true;
	}
	return holds_over(path, peer);
}

LNX_COLD void lnx_failover_redirect(struct lnx_path *path, struct lnx_peer *peer,
			       const struct lnx_path *next)
{
	struct lnx_txe *first;

	lnx_failover_path(path, peer);
	/* The other frames follow on the path of this one (rel/sched.c). */
	first = lnx_frame_at(peer, peer->chan.una);
	if (first) {
		lnx_path_credits_move(peer->path[first->f.path],
				      peer->path[next->index]);
		first->f.path = next->index;
	}
	peer->cur = peer->path[next->index];
	lnx_pump_retransmit(peer, 1u << next->index);
}

LNX_COLD void lnx_failover_cut(struct lnx_path *path, struct lnx_peer *peer)
{
	uint32_t seq;

	for (seq = peer->chan.una; seq != peer->chan.posted; seq++) {
		struct lnx_txe *txe = lnx_frame_at(peer, seq);

		if (txe && txe->f.path == path->index && txe->f.in_core)
			lnx_frame_let_go(txe);
	}
	path->delivered = path->sent;
	lnx_pump_retransmit(peer, 1u << path->index);
}

LNX_COLD void lnx_failover_cut_clones(struct lnx_rail *rail)
{
	while (!lnx_list_empty(&rail->clones)) {
		struct lnx_txe *txe =
			lnx_list_entry(rail->clones.next, struct lnx_txe, f.link);

		txe->f.in_core = false;
		lnx_done_settled(txe);
	}
}
