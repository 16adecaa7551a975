/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pieces of large transfers, once a core has them: their end, whatever it is, and what of them
 * goes over other paths.  Called by what reads the cores' completions, and when a path goes DOWN
 * or its core endpoint is closed.  Nothing here calls a core: msg/pull.c moves them again.
 */
#include "msg/pull.h"
#include "obj/counting.h"
#include "policy/errclass.h"
#include "rail/post.h"
#include "rail/rail.h"
#include "rel/rel.h"
#include "rel/rel_piece.h"
#include "rma/rma.h"
#include "wire/route.h"

/*
 * The path is DOWN: what it was to bring is read again over others.  Late data from it
 * is the same, but the buffer stays ours until its reads have ended.
 */
void lnx_pull_fail_over(struct lnx_path *path)
{
	struct lnx_node *n, *tmp;

	/* Those in line wait for it no more. */
	if (!lnx_list_empty(&path->reads))
		lnx_peer_pull(lnx_list_entry(path->reads.next, struct lnx_chunk, out)->pull->peer);
	lnx_list_foreach(&path->reads, n, tmp) {
		struct lnx_chunk *c = lnx_list_entry(n, struct lnx_chunk, out);
		struct lnx_ep *ep = c->pull->rxe->ep;
		struct lnx_chunk *again;

		/* A late write would overwrite what others wrote since. */
		if (c->stale || c->pull->push)
			continue;
		if (lnx_unlikely(c->clone != NULL)) {
			lnx_hedge_lost(c);
			c->stale = true;
			continue;
		}
		again = lnx_pool_get(&ep->chunk_pool);
		if (!again)
			return;		/* read again when it has failed */
		*again = *c;
		again->resent = true;
		lnx_list_init(&again->link);
		lnx_list_init(&again->out);
		c->stale = true;
		lnx_list_add_tail(&c->pull->redo, &again->link);
		ep->stats.resend_count++;
		lnx_pull_due(c->pull);
	}
}

/* We have cut the connection under it: it is moved again, unless its clone is left. */
static LNX_COLD void cut_off(struct lnx_chunk *c)
{
	bool over = c->stale || c->clone;

	if (c->clone)
		lnx_hedge_lost(c);
	if (over) {
		lnx_pool_put(&c->pull->rxe->ep->chunk_pool, c);
		return;
	}
	c->resent = true;
	lnx_list_add_head(&c->pull->redo, &c->link);
}

static void chunk_ended(struct lnx_chunk *c, int err, int prov_errno)
{
	struct lnx_pull *p = c->pull;
	struct lnx_ep *ep = p->rxe->ep;
	struct lnx_rail *rail = c->path->rail;
	uint64_t now = lnx_clock_ns();
	uint64_t since_ns = lnx_pull_chunk_since(c);
	unsigned class;

	p->inflight--;
	lnx_list_del(&c->out);
	lnx_pull_due(p);
	if (lnx_unlikely(err && lnx_pull_was_cut(c))) {
		lnx_rel_piece_ended(c->path, c->len, LNX_PIECE_CUT, now);
		cut_off(c);
		return;
	}
	lnx_rel_piece_ended(c->path, c->len, err ? LNX_PIECE_FAILED : LNX_PIECE_CAME, now);
	if (lnx_unlikely(c->stale)) {
		lnx_pool_put(&ep->chunk_pool, c);
		return;
	}
	if (lnx_likely(!err)) {
		if (c->path->speed)
			lnx_hedge_learn(c, since_ns, now);
		if (!p->push)
			lnx_count_read_done(c->path, lnx_ns_since(now, c->posted_ns),
					    !c->resent && !c->clone);
		if (lnx_unlikely(c->clone != NULL))
			lnx_hedge_won(c);
		lnx_silence_peer_seen(&p->peer->liveness);
		p->done += c->len;
		p->moved[c->path->index] += c->len;
		if (p->push)
			rail->traffic.send_length += c->len;
		else
			rail->traffic.recv_length += c->len;
		p->failing_ns = 0;
		lnx_pool_put(&ep->chunk_pool, c);
		return;
	}
	ep->stats.core_errors++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: %s %zu bytes failed: %s (provider error %d); again\n",
		       rail->name, p->push ? "writing" : "reading", c->len,
		       fi_strerror(err), prov_errno);
	class = lnx_errclass(rail->prov, p->push ? LNX_WHILE_WRITE :
						   LNX_WHILE_READ,
			     err, prov_errno);
	lnx_rel_piece_charge(p->peer, c->path, class, now);
	if (lnx_unlikely(c->clone != NULL)) {
		lnx_hedge_lost(c);
		lnx_pool_put(&ep->chunk_pool, c);
		return;
	}
	c->resent = true;
	lnx_list_add_tail(&p->redo, &c->link);
	lnx_pull_failed(p, c->seg, err, class == LNX_CLASS_OK, now);
}

bool lnx_pull_what(struct lnx_op *op, struct lnx_path **path, struct lnx_peer **peer,
		   struct lnx_route_pull *what)
{
	const struct lnx_chunk *c = lnx_container_of(op, struct lnx_chunk, op);
	const struct lnx_rma_segment *segment;

	if (op->type != LNX_OP_CHUNK || c->pull->push)
		return false;
	*path = c->path;
	*peer = c->pull->peer;
	segment = lnx_pull_part_of(c->pull);
	what->segment = segment ? LNX_PULL_MEMORY : c->seg;
	what->key = segment ? segment->key : c->pull->rts.op;
	what->offset = segment ? segment->addr + c->seg_off : c->seg_off;
	return true;
}

void lnx_pull_chunk_done(struct lnx_op *op)
{
	chunk_ended(lnx_container_of(op, struct lnx_chunk, op), 0, 0);
}

LNX_COLD bool lnx_pull_core_error(struct lnx_rail *rail, const struct fi_cq_err_entry *err)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_chunk *c = err->op_context;

	if (!lnx_pool_owns(&ep->chunk_pool, c))
		return false;
	if (lnx_pool_lent(&ep->chunk_pool, c) && lnx_list_linked(&c->out)) {
		lnx_rail_op_ended(rail);
		chunk_ended(c, err->err, err->prov_errno);
	}
	return true;
}

/* Its core endpoint is closed: the reads that it did not report are over too. */
void lnx_pull_cut(struct lnx_path *path)
{
	struct lnx_node *n;

	while (!lnx_list_empty(&path->reads)) {
		n = path->reads.next;
		chunk_ended(lnx_list_entry(n, struct lnx_chunk, out), FI_ECANCELED, 0);
	}
}
