/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large sends and writes.  Called by msg/send.c and rma/rma.c; registers the
 * application's buffer with the rails that lead to the peer and announces it with an
 * RTS, which gets a number in the sequence like any message.  The peer reads the data
 * (its msg/pull.c) and ends with a FIN, which comes here through rel/recv.c.  The
 * buffer is only read, so a failed read can safely be repeated.
 */
#include <stdlib.h>

#include "core/half_open.h"
#include "msg/pull.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "obj/mr.h"
#include "rail/rail.h"
#include "rel/rel.h"
#include "rel/rel_view.h"
#include "wire/route.h"

/* Close all but the first `keep`. */
static void close_mrs(struct lnx_rndv *rndv, unsigned keep)
{
	while (rndv->nmr > keep)
		fi_close(&rndv->mr[--rndv->nmr]->fid);
}

/* Paths by which rules of ours want the peer to read (bits); 0: by any. */
static unsigned preferred(struct lnx_peer *peer)
{
	const struct lnx_peer_choice *c = peer->choice;
	struct lnx_path_view view;
	unsigned mask, i;

	if (lnx_likely(!peer->ep->policy.rules) || !c || !peer->npath)
		return 0;
	/* A rule may have come or gone just now. */
	if (lnx_unlikely(c->generation != peer->ep->policy.generation))
		lnx_rel_view(peer, peer->path[0], lnx_clock_ns(), &view);
	if (c->rank.n != peer->npath)
		return 0;
	mask = lnx_rank_preferred(&c->rank);
	/* Over gateways the peer has other rails than we know. */
	for (i = 0; i < peer->npath; i++)
		if ((mask >> i & 1) && lnx_rail_is_leg(peer->path[i]->rail))
			return 0;
	return mask == (1u << peer->npath) - 1 ? 0 : mask;
}

/* Of these the peer's ends of those that begin at rail, by index. */
static uint16_t ends_of(const struct lnx_peer *peer, unsigned paths, const struct lnx_rail *rail)
{
	uint16_t ends = 0;
	unsigned i;

	for (i = 0; paths >> i; i++)
		if ((paths >> i & 1) && peer->path[i]->rail == rail &&
		    peer->path[i]->remote_rail < LNX_WIRE_RAILS_MAX)
			ends |= (uint16_t)(1u << peer->path[i]->remote_rail);
	return ends;
}

/* Register one piece with one rail. */
static int add_key(struct lnx_rndv *rndv, struct lnx_rail *rail,
		   const struct iovec *iov, struct lnx_rts *rts, unsigned seg,
		   unsigned key, uint16_t from)
{
	struct fid_mr *mr;
	int ret;

	ret = lnx_rail_register(rail, iov->iov_base, iov->iov_len,
				FI_REMOTE_READ, &mr);
	if (ret)
		return ret;
	rndv->mr[rndv->nmr++] = mr;
	rts->key[seg][key].rail = rail->wire_index;
	rts->key[seg][key].from = from;
	rts->key[seg][key].key = fi_mr_key(mr);
	rts->key[seg][key].addr = rail->mr_virt ?
				  (uint64_t)(uintptr_t)iov->iov_base : 0;
	return 0;
}

/* Does a path to the peer begin at a rail of the same provider? */
static bool leads_to(const struct lnx_peer *peer, const struct lnx_rail *rail)
{
	unsigned i;

	for (i = 0; i < peer->npath && peer->path[i]->rail->prov != rail->prov; i++)
		;
	return i < peer->npath;
}

/*
 * All rails over which the peer might read: the peer chooses, and may choose another
 * one than we send on.  Where we have fewer paths than there could be, ours do not tell
 * which ones the peer has.
 */
static unsigned peer_rails(const struct lnx_peer *peer,
			   struct lnx_rail *rail[LNX_RTS_KEYS])
{
	const struct lnx_ep *ep = peer->ep;
	bool all = ep->conf->multi_rail_selection == LNX_SELECTION_PER_PEER ||
		   peer->npath >= ep->conf->max_rails;
	unsigned i, n = 0;

	for (i = ep->nrail - ep->nnet; i < ep->nrail && n < LNX_RTS_KEYS; i++)
		if (ep->rail[i]->wire_index != LNX_WIRE_INDEX_NONE &&
		    (all || leads_to(peer, ep->rail[i])))
			rail[n++] = ep->rail[i];
	return n;
}

/*
 * Register all pieces with the rails.  A rail that cannot register them is left out if
 * there is another.  0, or the last error.
 */
static int add_keys(struct lnx_rndv *rndv, struct lnx_peer *peer,
		    const struct lnx_announce *a, struct lnx_rts *rts)
{
	struct lnx_rail *rail[LNX_RTS_KEYS];
	const struct iovec *piece[LNX_RTS_SEGS];
	unsigned k, seg, nrail = peer_rails(peer, rail), paths = preferred(peer);
	int ret = -FI_EHOSTUNREACH;
	size_t i;

	/* Whatever becomes of the rails. */
	for (i = 0, rts->nseg = 0; i < a->niov; i++) {
		if (!a->iov[i].iov_len)
			continue;
		piece[rts->nseg] = &a->iov[i];
		rts->seg_len[rts->nseg++] = a->iov[i].iov_len;
	}
	/* For a peer that reads over a gateway. */
	for (i = 0; i < rts->nseg; i++)
		rndv->iov[i] = *piece[i];
	rndv->niov = rts->nseg;
	rts->nkey = 0;
	for (k = 0; k < nrail; k++) {
		uint16_t from = ends_of(peer, paths, rail[k]);
		unsigned before = rndv->nmr;

		for (seg = 0, ret = 0; !ret && seg < rts->nseg; seg++)
			ret = add_key(rndv, rail[k], piece[seg], rts, seg, rts->nkey, from);
		if (!ret) {
			rts->nkey++;
			continue;
		}
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
			       "rail %s: a send buffer of %zu bytes cannot be registered: %s\n",
			       rail[k]->name, a->len, fi_strerror(-ret));
		close_mrs(rndv, before);
	}
	return rts->nkey ? 0 : ret;
}

/* Does anything show over which rails messages went? */
static inline bool counts_rails(const struct lnx_ep *ep)
{
	return ep->conf->state || ep->conf->summary || ep->conf->stats_file;
}

ssize_t lnx_rndv_announce(struct lnx_ep *ep, struct lnx_peer *peer,
			const struct lnx_announce *a)
{
	size_t head = a->n_targets * sizeof(struct lnx_wire_target);
	struct lnx_hdr h = {
		.kind = a->kind, .flags = a->flags, .tag = a->tag,
		.data = a->data, .len = a->len,
	};
	struct lnx_txe *txe, *more[LNX_HEAD_MAX];
	unsigned nmore = 0;
	struct lnx_rndv *rndv;
	struct lnx_rts rts;
	uint8_t *at;
	unsigned i;
	int ret;

	rndv = calloc(1, sizeof(*rndv) +
		      LNX_RTS_SEGS * LNX_RTS_KEYS * sizeof(*rndv->mr));
	if (!rndv)
		return -FI_EAGAIN;
	rts.op = rndv->op = lnx_optab_add(&ep->rndv.ops, rndv);
	if (!rts.op) {
		free(rndv);
		return -FI_EAGAIN;
	}
	/* Only the receiver knows over which rails it came. */
	rts.flags = counts_rails(ep) ? LNX_RTS_F_MOVED : 0;
	ret = add_keys(rndv, peer, a, &rts);
	if (ret)
		goto err;
	txe = lnx_txe_get(ep, head + lnx_wire_rts_size(&rts));
	if (!txe) {
		ret = -FI_EAGAIN;
		goto err;
	}
	if (a->head)
		nmore = lnx_parts_make(ep, a, a->head, &a->room, &rndv->group, more);
	if (nmore) {
		h.key = a->head;
		lnx_credit_spend(&peer->eager->credit, a->head);
	}
	rndv->group.rndv = true;
	rndv->group.left = 1 + nmore;
	rndv->peer = peer;
	rndv->context = a->context;
	rndv->cq_flags = a->cq_flags;
	rndv->want_comp = a->want_comp;
	rndv->len = a->len;
	lnx_list_init(&rndv->copy_link);
	lnx_list_add_tail(&ep->rndv.announced, &rndv->link);
	peer->nrndv++;
	if (peer->choice)
		lnx_lone_began(&peer->choice->lone, a->lone ? rndv->op : 0, a->len,
			       nmore ? LNX_LONE_FRAMES : LNX_LONE_READ,
			       a->lone ? lnx_clock_ns() : 0);
	/* Cores answer reads when they are polled, and do not report them. */
	ep->nread_here++;

	at = txe->frame + sizeof(struct lnx_wire_hdr);
	if (a->n_targets) {
		lnx_wire_targets_put(at, a->place, a->n_targets);
		h.tag = a->n_targets;
	}
	lnx_wire_rts_put(at + head, &rts);
	txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + head +
				lnx_wire_rts_size(&rts));
	ep->stats.rndv_sends++;
	lnx_rel_send(ep, peer, txe, &h, false);
	for (i = 0; i < nmore; i++)
		more[i]->f.comp_at_ack = true;
	lnx_parts_queue_more(ep, peer, more, nmore, 0, 0);
	return 0;
err:
	lnx_optab_del(&ep->rndv.ops, rndv->op);
	close_mrs(rndv, 0);
	free(rndv);
	return ret;
}

/*
 * No core reads the buffer any more.  Its registrations are not closed here: this may run
 * inside a core's callback.
 */
static void finish(struct lnx_rndv *rndv)
{
	struct lnx_ep *ep = rndv->peer->ep;

	lnx_list_del(&rndv->link);
	rndv->peer->nrndv--;
	if (rndv->err) {
		lnx_ep_op_failed(ep, rndv->context, rndv->cq_flags, rndv->err,
				 rndv->prov_errno);
	} else {
		lnx_cntr_ok(ep, lnx_cntr_of_op(rndv->cq_flags));
		if (rndv->want_comp)
			lnx_cq_write(ep->tx_cq, rndv->context, rndv->cq_flags,
				     0, NULL, 0, 0, FI_ADDR_NOTAVAIL);
	}
	if (!rndv->nmr) {
		free(rndv);
		return;
	}
	lnx_list_add_tail(&ep->rndv.dead, &rndv->link);
	ep->work |= LNX_WORK_MR;
}

void lnx_rndv_end(struct lnx_rndv *rndv, int err, int prov_errno)
{
	struct lnx_ep *ep = rndv->peer->ep;

	if (rndv->ended)
		return;
	rndv->ended = true;
	rndv->err = err;
	rndv->prov_errno = prov_errno;
	lnx_list_del(&rndv->copy_link);
	lnx_optab_del(&ep->rndv.ops, rndv->op);
	if (rndv->asks)
		lnx_push_answer(&rndv->peer->eager->ahead);
	ep->nread_here -= !rndv->here;
	/* A frame of it may have been sent again, and still be in a core. */
	if (rndv->here || !--rndv->group.left)
		finish(rndv);
}

void lnx_rndv_group_over(struct lnx_tx_group *group)
{
	finish(lnx_container_of(group, struct lnx_rndv, group));
}

/* The paths of peers that were given up, over one rail. */
struct ending {
	struct lnx_cut *cut, one;
	unsigned n, room;
	bool used;			/* some path is over the rail */
	struct lnx_ep *ep;
	const struct lnx_rail *rail;
	uint64_t now;
};

static LNX_COLD void end_reads_over(struct ending *e)
{
	unsigned i;

	if (!e->n)
		return;
	lnx_half_open_sort(e->cut, e->n);
	lnx_hedge_find_writes(e->ep, e->cut, e->n);
	for (i = 0; i < e->n; i++)
		if (!e->cut[i].first->writes)
			e->cut[i].silent_ns = 0;
	lnx_half_open_cut_all(e->rail, e->cut, e->n);
	lnx_hedge_were_cut(e->ep, e->cut, e->n, e->now);
	e->n = 0;
}

/*
 * While others of its host are written to, only connections are cut over which nothing came since
 * the peer is silent: a write is repeated, and what its old connection still brings must not come
 * after that.  Half of the time, as the kernel's clock and ours are read apart.
 */
static LNX_COLD void add_peer(struct ending *e, const struct lnx_peer *peer)
{
	uint64_t since_ns = peer->liveness.since_ns;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		if (peer->path[i]->rail != e->rail)
			continue;
		if (e->n == e->room)
			end_reads_over(e);
		e->cut[e->n++] = (struct lnx_cut){
			.path = peer->path[i], .reads = true,
			.silent_ns = since_ns ? lnx_ns_since(e->now, since_ns) / 2 : 0,
		};
	}
}

/* Call fn for the peer of each of these; those of one peer are side by side. */
static LNX_COLD void each_peer(const struct lnx_node *revoked,
			       void (*fn)(struct ending *e, const struct lnx_peer *peer),
			       struct ending *e)
{
	const struct lnx_peer *last = NULL;
	struct lnx_node *n, *tmp;

	lnx_list_foreach(revoked, n, tmp) {
		const struct lnx_peer *peer = lnx_container_of(n, struct lnx_rndv, link)->peer;

		if (peer != last)
			fn(e, peer);
		last = peer;
	}
}

static LNX_COLD void count_paths(struct ending *e, const struct lnx_peer *peer)
{
	e->room += peer->npath;
}

static LNX_COLD void uses(struct ending *e, const struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		e->used |= peer->path[i]->rail == e->rail;
}

/*
 * A core that sends to a peer what it read goes on with that, from the application's buffer, when
 * the peer reads its connection again.  What it has in hand leaves now, as far as the kernel
 * takes it; then the connection ends.  Of many peers, such as all those of a node, one look
 * through the connections of a rail has to be enough: a poll may change paths, so that all
 * are polled before these are noted.  Pieces are copied for gateways, so that legs need
 * nothing.
 */
static LNX_COLD void end_reads(struct lnx_ep *ep, const struct lnx_node *revoked)
{
	struct ending e = { .ep = ep, .now = lnx_clock_ns() };
	unsigned i;

	for (i = 0; i < ep->nrail; i++) {
		e.rail = ep->rail[i];
		e.used = false;
		each_peer(revoked, uses, &e);
		if (e.used && e.rail->core_ep)
			lnx_rail_poll(ep->rail[i]);
	}
	each_peer(revoked, count_paths, &e);
	e.cut = malloc(e.room * sizeof(*e.cut));
	/* Then one by one. */
	if (!e.cut) {
		e.cut = &e.one;
		e.room = 1;
	}
	for (i = 0; i < ep->nrail; i++) {
		e.rail = ep->rail[i];
		if (e.rail->core_ep && lnx_half_open_listens(e.rail))
			each_peer(revoked, add_peer, &e);
		end_reads_over(&e);
	}
	if (e.cut != &e.one)
		free(e.cut);
}

/* First no read can begin, then none goes on; only then operations end. */
static LNX_COLD void revoke_all(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp, all;

	/* A poll may fail another peer. */
	lnx_list_init(&all);
	while ((n = lnx_list_pop(&ep->rndv.revoked)))
		lnx_list_add_tail(&all, n);
	lnx_list_foreach(&all, n, tmp)
		close_mrs(lnx_container_of(n, struct lnx_rndv, link), 0);
	end_reads(ep, &all);
	while ((n = lnx_list_pop(&all))) {
		struct lnx_rndv *rndv = lnx_list_entry(n, struct lnx_rndv, link);

		lnx_list_add_tail(&ep->rndv.announced, &rndv->link);
		if (!--rndv->group.left)
			finish(rndv);
	}
}

void lnx_rndv_reap(struct lnx_ep *ep)
{
	struct lnx_node *n;

	if (lnx_unlikely(!lnx_list_empty(&ep->rndv.revoked)))
		revoke_all(ep);
	while ((n = lnx_list_pop(&ep->rndv.dead))) {
		struct lnx_rndv *rndv = lnx_list_entry(n, struct lnx_rndv, link);

		close_mrs(rndv, 0);
		free(rndv);
	}
	if (lnx_list_empty(&ep->rndv.revoked))
		ep->work &= ~LNX_WORK_MR;
}

/* What its cores may read ends with that, in lnx_rndv_reap: this may run inside a core. */
void lnx_rndv_fail_peer(struct lnx_peer *peer, int err)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_node *n, *tmp;

	if (!peer->nrndv)
		return;
	lnx_list_foreach(&ep->rndv.announced, n, tmp) {
		struct lnx_rndv *rndv = lnx_list_entry(n, struct lnx_rndv, link);

		if (rndv->peer != peer || rndv->ended)
			continue;
		if (rndv->nmr) {
			rndv->group.left++;
			lnx_list_del(&rndv->link);
			lnx_list_add_tail(&ep->rndv.revoked, &rndv->link);
			ep->work |= LNX_WORK_MR;
		}
		lnx_rndv_end(rndv, err, err);
	}
}

void lnx_rndv_fin(struct lnx_peer *peer, uint64_t op, int err)
{
	struct lnx_rndv *rndv = lnx_optab_get(&peer->ep->rndv.ops, op);

	if (!op)
		return;			/* it wants the acknowledgement only */
	if (!rndv || rndv->peer != peer) {
		peer->ep->stats.bad_frames++;	/* an operation that we do not have */
		return;
	}
	if (peer->choice && peer->choice->lone.op == op && !err)
		lnx_lone_ended(&peer->choice->lone, op, lnx_clock_ns());
	lnx_rndv_end(rndv, err, err);
}

const void *lnx_rndv_source(struct lnx_peer *peer, const struct lnx_route_pull *what)
{
	const struct lnx_rndv *rndv = lnx_optab_get(&peer->ep->rndv.ops, what->key);
	const struct iovec *iov;
	uint8_t *at;

	if (what->segment == LNX_PULL_MEMORY)
		return lnx_mr_check(peer->ep->domain, what->key, what->offset, what->len,
				    FI_REMOTE_READ, &at, NULL) ? NULL : at;
	if (!rndv || rndv->peer != peer || rndv->here || what->segment >= rndv->niov)
		return NULL;
	iov = &rndv->iov[what->segment];
	return what->offset > iov->iov_len || what->len > iov->iov_len - what->offset ?
	       NULL : (const uint8_t *)iov->iov_base + what->offset;
}

static struct lnx_rail *rail_at(const struct lnx_ep *ep, uint16_t place)
{
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i]->wire_index == place)
			return ep->rail[i];
	return NULL;
}

void lnx_rndv_fin_moved(struct lnx_peer *peer, uint64_t op, const void *payload,
		      size_t size)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rndv *rndv;
	struct lnx_moved m[LNX_WIRE_PATHS];
	unsigned i, n = lnx_wire_moved_get(m, payload, size);
	uint64_t left;

	if (lnx_likely(!counts_rails(ep)))
		return;
	rndv = lnx_optab_get(&ep->rndv.ops, op);
	if (!rndv || rndv->peer != peer || rndv->here)
		return;
	left = rndv->len;
	for (i = 0; i < n; i++) {
		struct lnx_rail *rail = rail_at(ep, m[i].rail);
		uint64_t bytes = LNX_MIN(m[i].bytes, left);

		if (!rail)
			continue;
		left -= bytes;
		rail->traffic.send_length += bytes;
	}
}

int lnx_rndv_send_fin(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t op,
		    int err, const struct lnx_moved *moved, unsigned nmoved,
		    struct lnx_rxe *rxe)
{
	struct lnx_hdr h = { .kind = LNX_KIND_FIN, .data = op,
			     .len = (uint64_t)err };
	struct lnx_txe *txe;

	if (lnx_peer_dead(peer) || !peer->npath) {
		/* No sender to tell. */
		if (rxe)
			lnx_rx_done(rxe);
		return 0;
	}
	if (lnx_rel_hello(peer, false))
		return -FI_EAGAIN;
	txe = lnx_txe_get(ep, nmoved * sizeof(struct lnx_wire_moved));
	if (!txe)
		return -FI_EAGAIN;
	txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) +
			      nmoved * sizeof(struct lnx_wire_moved));
	lnx_wire_moved_put(txe->frame + sizeof(struct lnx_wire_hdr), moved, nmoved);
	/* The next message may come at once. */
	if (rxe && rxe->payload_at == LNX_PAYLOAD_REMOTE)
		h.key = lnx_eager_grant(peer);
	txe->rxe = rxe;
	return lnx_rel_send(ep, peer, txe, &h, false);
}

LNX_COLD int lnx_rndv_ask(struct lnx_peer *peer, uint32_t *seq)
{
	struct lnx_hdr h = { .kind = LNX_KIND_FIN, .flags = LNX_WIRE_F_ACK_NOW };
	struct lnx_txe *txe;
	int ret;

	if (lnx_rel_hello(peer, false))
		return -FI_EAGAIN;
	txe = lnx_txe_get(peer->ep, 0);
	if (!txe)
		return -FI_EAGAIN;
	txe->f.len = (uint32_t)sizeof(struct lnx_wire_hdr);
	ret = lnx_rel_send(peer->ep, peer, txe, &h, false);
	*seq = h.seq;
	return ret;
}
