/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads of a peer's memory over gateways.  See routed_read.h.  Called by rail/leg.c through
 * ep->up, and by rel/gateway.c; at the peer, its msg/ says where the memory is.
 */
#include "rail/routed_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "obj/counting.h"
#include "rail/leg.h"
#include "rail/post.h"

#define AGAIN_SHIFT_MAX	4u		/* LNX_ROUTED_AGAIN_NS, up to 16 times */
#define SHORT_TRIES	3u		/* then pieces are short */

static struct lnx_gateways *gateways(const struct lnx_routed_read *r)
{
	return r->path->rail->ep->policy.gateways;
}

static struct lnx_leg *leg_of(const struct lnx_path *path)
{
	return lnx_container_of(path->rail, struct lnx_leg, rail);
}

static struct lnx_leg_end *end_of(const struct lnx_routed_read *r)
{
	return &leg_of(r->path)->end[r->path->core_addr];
}

/* One that is dead must not keep others from asking. */
static uint32_t *n_asked(const struct lnx_routed_read *r)
{
	return &leg_of(r->path)->n_asked;
}

/* Do long frames get lost on the way?  It may lead over rails that have none. */
static bool lost_long(const struct lnx_routed_read *r)
{
	return r->tries >= SHORT_TRIES;
}

/* Bytes of its longest pieces, which are whole units.  They may be as long as our frames: those of
 * the other end are if it uses the same provider. */
static uint32_t longest(const struct lnx_routed_read *r)
{
	struct lnx_leg *leg = leg_of(r->path);
	const struct lnx_leg_end *end = end_of(r);
	size_t max = lnx_leg_piece_max(leg, r->path->core_addr);

	if (end->to.prov != leg->rail.prov || end->short_ns || lost_long(r))
		return LNX_ROUTED_UNIT;
	return (uint32_t)(LNX_MIN(max, LNX_ROUTED_LONGEST) / LNX_ROUTED_UNIT * LNX_ROUTED_UNIT);
}

/* While a gateway is away, long pieces get lost as well: after some time they are tried again. */
static void forget_short(const struct lnx_routed_read *r, uint64_t now)
{
	struct lnx_leg_end *end = end_of(r);

	if (lnx_unlikely(end->short_ns) && lnx_ns_since(now, end->short_ns) >= LNX_ROUTED_SHORT_NS)
		end->short_ns = 0;
}

/*
 * Answers to questions over the leg come the usual way, and do come: PIECEs go that way again.
 * Otherwise those of two legs would come over one gateway for as long as that loses nothing, only
 * because they were late once over the other one.
 */
static void usual_way(const struct lnx_routed_read *r, uint64_t now)
{
	struct lnx_leg_end *end = end_of(r);

	if (lnx_likely(!end->way) || !r->path->speed ||
	    r->path->speed->answered_ns < end->way_ns + LNX_LATENCY_ASK_NS ||
	    lnx_ns_since(now, end->way_ns) < end->way_pause_ns)
		return;
	end->way = 0;
	end->way_ns = now;
}

static bool is_long(const struct lnx_routed_read *r)
{
	return longest(r) > LNX_ROUTED_UNIT;
}

/* Units that may be asked for at a time over its leg. */
static uint32_t asked_max(const struct lnx_routed_read *r)
{
	return leg_of(r->path)->asked_max * (longest(r) / (uint32_t)LNX_ROUTED_UNIT);
}

/* So many bytes are in so many units. */
static uint32_t units(uint64_t len)
{
	return (uint32_t)((len + LNX_ROUTED_UNIT - 1) / LNX_ROUTED_UNIT);
}

/* Bytes of unit u. */
static size_t unit_len(const struct lnx_routed_read *r, uint32_t u)
{
	return LNX_MIN(r->len - u * LNX_ROUTED_UNIT, LNX_ROUTED_UNIT);
}

/* ---- the end of a read ---- */

static void drop(struct lnx_routed_read *r)
{
	struct lnx_gateways *all = gateways(r);

	*n_asked(r) -= r->asked;
	lnx_optab_del(&all->read_ids, r->id);
	lnx_list_del(&r->link);
	free(r);
}

static void done(struct lnx_routed_read *r)
{
	struct lnx_rail *leg = r->path->rail;
	struct lnx_op *op = r->op;

	drop(r);
	lnx_rail_op_ended(leg);
	leg->ep->up->op[op->type].done(op);
}

static LNX_COLD void fail(struct lnx_routed_read *r, int err)
{
	struct fi_cq_err_entry e = { .op_context = r->op, .err = err };
	struct lnx_rail *leg = r->path->rail;
	uint8_t type = r->op->type;

	drop(r);
	leg->ep->up->op[type].failed(leg, &e);
}

LNX_COLD void lnx_routed_fail(struct lnx_path *path)
{
	struct lnx_gateways *all = path->rail->ep->policy.gateways;
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&all->reads, n, tmp) {
		struct lnx_routed_read *r = lnx_list_entry(n, struct lnx_routed_read, link);

		if (r->path == path)
			fail(r, FI_ECANCELED);
	}
}

LNX_COLD void lnx_routed_forget(struct lnx_path *path)
{
	struct lnx_gateways *all = path->rail->ep->policy.gateways;
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&all->reads, n, tmp) {
		struct lnx_routed_read *r = lnx_list_entry(n, struct lnx_routed_read, link);

		if (r->path != path)
			continue;
		drop(r);
		lnx_rail_op_ended(path->rail);
	}
}

/* ---- asking ---- */

/* Write a PULL or PIECE for peer over path. */
static void fill(const struct lnx_peer *peer, const struct lnx_path *path,
		 struct lnx_route_pull *p, struct lnx_wire_hdr *w)
{
	p->src = peer->sid;
	p->dst = peer->eid;
	lnx_route_pull_put(w, p);
	lnx_hdr_set_path(w, path->rail->wire_index, path->index);
}

/* Ask for n units from u on.  False: not now. */
static bool ask_for(struct lnx_routed_read *r, uint32_t u, uint32_t n, bool in_long)
{
	size_t at = u * LNX_ROUTED_UNIT;
	struct lnx_route_pull p = {
		.id = r->id, .key = r->key, .segment = r->segment, .offset = r->offset + at,
		.len = LNX_MIN(r->len - at, n * LNX_ROUTED_UNIT),
		.most = in_long ? longest(r) : 0, .way = end_of(r)->way,
	};
	struct lnx_wire_hdr w;

	fill(r->peer, r->path, &p, &w);
	return !lnx_rail_inject(r->path->rail, &w, sizeof(w), r->path->core_addr);
}

/* Nothing is late before something is waited for. */
static void waits_from(struct lnx_routed_read *r, uint64_t now)
{
	r->waited_ns = 0;
	r->looked_ns = now;
}

/* Time went by since the last look.  The deadline of the whole read is moved as those of peers
 * are (lnx_ep_later). */
static void wait_on(struct lnx_routed_read *r, uint64_t now)
{
	uint64_t gap_ns = lnx_ns_since(now, r->looked_ns);

	r->waited_ns += LNX_MIN(gap_ns, 2 * LNX_ROUTED_LOOK_NS);
	r->looked_ns = now;
	if (lnx_unlikely(gap_ns > LNX_LOOK_COUNTS_NS))
		r->came_ns += gap_ns - LNX_LOOK_COUNTS_NS;
}

/* Units from u on that are in state `from` are in state `to`; so many. */
static uint32_t change(struct lnx_routed_read *r, uint32_t u, uint32_t n,
		       enum lnx_routed_unit from, enum lnx_routed_unit to)
{
	uint32_t changed = 0;

	for (; n; n--, u++) {
		if (r->unit[u] != from)
			continue;
		r->unit[u] = (uint8_t)to;
		changed++;
	}
	return changed;
}

/* Ask for as much as may be asked for.  False: a core was busy.  While it sends, a core may
 * receive what is asked for. */
static bool ask(struct lnx_routed_read *r, uint64_t now)
{
	bool in_long = is_long(r);
	uint32_t run = in_long ? LNX_ROUTED_RUN_LONG : LNX_ROUTED_RUN;
	uint32_t most = asked_max(r);
	uint32_t *asked = n_asked(r);
	uint32_t u, n;

	for (u = 0; u < r->n && *asked < most; u += n) {
		n = 1;
		if (r->unit[u] != LNX_UNIT_WANTED)
			continue;
		while (u + n < r->n && n < run && *asked + n < most &&
		       r->unit[u + n] == LNX_UNIT_WANTED)
			n++;
		change(r, u, n, LNX_UNIT_WANTED, LNX_UNIT_ASKED);
		r->asked += n;
		*asked += n;
		if (!ask_for(r, u, n, in_long)) {
			n = change(r, u, n, LNX_UNIT_ASKED, LNX_UNIT_WANTED);
			r->asked -= n;
			*asked -= n;
			return false;
		}
		waits_from(r, now);
	}
	return true;
}

/* Reads that became whole while others, or they themselves, asked. */
static LNX_COLD void end_whole(struct lnx_gateways *all)
{
	struct lnx_node *n, *tmp;

	all->asks = false;
	if (lnx_likely(!all->whole))
		return;
	all->whole = false;
	lnx_list_foreach(&all->reads, n, tmp) {
		struct lnx_routed_read *r = lnx_list_entry(n, struct lnx_routed_read, link);

		if (!r->left)
			done(r);
	}
}

ssize_t lnx_routed_read(struct lnx_rail *leg, void *buf, size_t len, struct lnx_op *op)
{
	struct lnx_gateways *all = leg->ep->policy.gateways;
	struct lnx_route_pull what = { .id = 0 };
	uint32_t n = units(len);
	struct lnx_routed_read *r;
	struct lnx_peer *peer;
	struct lnx_path *path;
	uint64_t now;

	if (!len || !leg->ep->up->routed_what(op, &path, &peer, &what))
		return -FI_ENOSYS;
	r = calloc(1, sizeof(*r) + n);
	if (!r)
		return -FI_ENOMEM;
	r->id = lnx_optab_add(&all->read_ids, r);
	if (!r->id) {
		free(r);
		return -FI_ENOMEM;
	}
	now = lnx_clock_ns();
	r->op = op;
	r->peer = peer;
	r->path = path;
	r->key = what.key;
	r->segment = what.segment;
	r->offset = what.offset;
	r->buf = buf;
	r->len = len;
	r->came_ns = now;
	waits_from(r, now);
	r->n = r->left = n;
	lnx_list_init(&r->link);
	lnx_list_add_tail(&all->reads, &r->link);
	forget_short(r, now);
	usual_way(r, now);
	all->asks = true;
	ask(r, now);
	end_whole(all);
	lnx_ep_due(leg->ep, LNX_DUE_GATEWAYS, now + LNX_ROUTED_AGAIN_MIN_NS);
	return 0;
}

/* ---- what comes ---- */

/* Copy those of n units from u on that have not come yet; so many. */
static uint32_t take(struct lnx_routed_read *r, uint32_t u, uint32_t n, const uint8_t *payload)
{
	uint32_t taken = 0;

	for (; n; n--, u++, payload += LNX_ROUTED_UNIT) {
		if (r->unit[u] == LNX_UNIT_CAME)
			continue;
		memcpy(r->buf + u * LNX_ROUTED_UNIT, payload, unit_len(r, u));
		if (r->unit[u] == LNX_UNIT_ASKED) {
			r->asked--;
			(*n_asked(r))--;
		}
		r->unit[u] = LNX_UNIT_CAME;
		taken++;
	}
	r->left -= taken;
	return taken;
}

static bool piece(struct lnx_gateways *all, struct lnx_peer *peer,
		  const struct lnx_route_pull *p, const uint8_t *payload)
{
	struct lnx_routed_read *r = lnx_optab_get(&all->read_ids, p->id);
	uint64_t at;
	bool more;

	if (!r || r->peer != peer || p->offset < r->offset)
		return false;
	at = p->offset - r->offset;
	/* Whole units, of which the last one may be shorter. */
	if (at % LNX_ROUTED_UNIT || at >= r->len || p->len > r->len - at ||
	    (p->len % LNX_ROUTED_UNIT && p->len != r->len - at) ||
	    !take(r, (uint32_t)(at / LNX_ROUTED_UNIT), units(p->len), payload))
		return false;
	r->came_ns = lnx_clock_ns();
	waits_from(r, r->came_ns);
	if (lnx_unlikely(lost_long(r)) && p->len == LNX_ROUTED_UNIT)
		end_of(r)->short_ns = r->came_ns;
	r->tries = 0;
	r->path->detect.progress++;
	r->path->rail->below->poll_credits = all->ep->poll_credits;
	lnx_silence_peer_seen(&peer->liveness);
	more = *n_asked(r) <= asked_max(r) / 2;
	if (!r->left && lnx_unlikely(all->asks))
		all->whole = true;	/* end_whole */
	else if (!r->left)
		done(r);
	if (more)
		lnx_ep_due(all->ep, LNX_DUE_GATEWAYS, 0);
	return true;
}

/* The path over which pieces go that shall come that way: of those over gateways that are UP. */
static const struct lnx_path *path_of_way(const struct lnx_peer *peer, const struct lnx_path *back,
					  uint8_t way)
{
	const struct lnx_path *up[LNX_PATHS_MAX];
	unsigned i, n = 0, at = 0;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		if (path != back && (path->state != LNX_PATH_UP || !lnx_rail_is_leg(path->rail)))
			continue;
		if (path == back)
			at = n;
		up[n++] = path;
	}
	return up[(at + way) % n];
}

static bool pull(struct lnx_gateways *all, struct lnx_peer *peer, const struct lnx_rail *rail,
		 uint16_t remote, const struct lnx_route_pull *p)
{
	const struct lnx_path *back = lnx_count_came(peer, rail, &(struct lnx_hdr){
							     .rail = remote });
	const struct lnx_path *path;
	struct lnx_routed_pull *q;

	if (!back || !lnx_rail_is_leg(back->rail) || all->n_pulls == LNX_ROUTED_PULLS)
		return false;
	q = calloc(1, sizeof(*q));
	if (!q)
		return false;
	q->sid = peer->rx_sid;
	path = path_of_way(peer, back, p->way);
	q->path = path->index;
	q->id = p->id;
	q->key = p->key;
	q->segment = p->segment;
	q->offset = p->offset;
	q->len = p->len;
	q->most = (uint32_t)(LNX_MAX(LNX_MIN(p->most, lnx_leg_piece_max(leg_of(path),
									   path->core_addr)),
				     LNX_ROUTED_UNIT) / LNX_ROUTED_UNIT * LNX_ROUTED_UNIT);
	q->moved_ns = lnx_clock_ns();
	lnx_list_init(&q->link);
	lnx_list_add_tail(&all->pulls, &q->link);
	all->n_pulls++;
	lnx_silence_peer_seen(&peer->liveness);
	lnx_ep_due(all->ep, LNX_DUE_GATEWAYS, 0);
	return true;
}

LNX_COLD bool lnx_routed_rx(struct lnx_rail *rail, const void *frame, size_t len)
{
	struct lnx_gateways *all = rail->ep->policy.gateways;
	const struct lnx_wire_hdr *w = frame;
	struct lnx_route_pull p;
	struct lnx_peer *peer;

	if (len < sizeof(*w) || (w->kind != LNX_KIND_PULL && w->kind != LNX_KIND_PIECE))
		return false;
	peer = lnx_route_pull_get(&p, frame, len, NULL) || p.dst != rail->ep->eid ?
	       NULL : lnx_peer_by_sid(rail->ep, p.src);
	if (!peer || lnx_peer_dead(peer) ||
	    !(p.piece ? piece(all, peer, &p, (const uint8_t *)(w + 1)) :
			pull(all, peer, rail, le16toh(w->rail), &p)))
		rail->ep->stats.stale_frames++;
	return true;
}

/* ---- answering ---- */

/* Send the next piece of q.  0; -FI_EAGAIN: not now; -FI_EBUSY: not before a piece has left;
 * another error: no more. */
static ssize_t answer(struct lnx_gateways *all, struct lnx_routed_pull *q, uint64_t now)
{
	struct lnx_peer *peer = lnx_peer_by_sid(all->ep, q->sid);
	struct lnx_route_pull p = {
		.id = q->id, .key = q->key, .segment = q->segment, .offset = q->offset,
		.len = LNX_MIN(q->len, (uint64_t)q->most),
	};
	struct lnx_wire_hdr w;
	struct lnx_path *path;
	struct lnx_leg *leg;
	const void *memory;
	ssize_t ret;

	if (!peer || lnx_peer_dead(peer) || q->path >= peer->npath)
		return -FI_EINVAL;
	path = peer->path[q->path];
	leg = leg_of(path);
	if (leg->n_pieces == LNX_ROUTED_PIECES)
		return -FI_EBUSY;
	if (leg->busy_ns == now)
		return -FI_EAGAIN;
	memory = all->ep->up->routed_source(peer, &p);
	if (!memory)
		return -FI_ENOKEY;
	p.piece = true;
	p.key = p.segment = 0;
	fill(peer, path, &p, &w);
	ret = lnx_leg_piece(leg, path->core_addr, &w, memory, p.len);
	if (ret == -FI_EAGAIN)
		leg->busy_ns = now;
	if (ret)
		return ret;
	q->offset += p.len;
	q->len -= p.len;
	q->moved_ns = now;
	return 0;
}

/* Peers take turns, piece by piece.  What has to wait, perhaps for a gateway that takes nothing,
 * keeps no others from theirs.  Returns when to call it again. */
static uint64_t answer_all(struct lnx_gateways *all, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	struct lnx_node waits, *n;

	lnx_list_init(&waits);
	while ((n = lnx_list_pop(&all->pulls))) {
		struct lnx_routed_pull *q = lnx_list_entry(n, struct lnx_routed_pull, link);
		ssize_t ret = answer(all, q, now);

		if (!ret && q->len) {
			lnx_list_add_tail(&all->pulls, n);
		} else if ((ret == -FI_EAGAIN || ret == -FI_EBUSY) &&
			   lnx_ns_since(now, q->moved_ns) < LNX_ROUTED_PULL_NS) {
			lnx_list_add_tail(&waits, n);
			next = lnx_sooner(next, now + (ret == -FI_EAGAIN ?
						       LNX_ROUTED_TRY_NS :
						       LNX_ROUTED_PULL_NS));
		} else {
			free(q);
			all->n_pulls--;
		}
	}
	lnx_list_splice(&all->pulls, &waits);
	return next;
}

/* ---- when it is due ---- */

/* First when answers over the path take no longer.  The second time soon after that: a gateway finds
 * within that time that the next one is dead, and what was asked for until then is lost, too. */
static uint64_t again_ns(const struct lnx_routed_read *r)
{
	if (!r->tries)
		return lnx_rtt_timeout(&r->path->detect.rtt, LNX_ROUTED_AGAIN_MIN_NS,
				       LNX_ROUTED_AGAIN_NS);
	return LNX_ROUTED_AGAIN_NS / 2 << LNX_MIN(r->tries - 1u, AGAIN_SHIFT_MAX + 1);
}

/* All of the next PULLs ask for their PIECEs over another gateway.  What several reads find out at
 * once is one loss. */
static void another_way(struct lnx_leg_end *end, uint64_t now)
{
	uint64_t since_ns = lnx_ns_since(now, end->way_ns);

	if (end->way && since_ns < LNX_ROUTED_AGAIN_NS / 2)
		return;
	/* Was it tried in vain just now? */
	if (!end->way && end->way_pause_ns && since_ns < 4 * end->way_pause_ns)
		end->way_pause_ns = LNX_MIN(2 * end->way_pause_ns, LNX_ROUTED_WAY_MAX_NS);
	else if (!end->way)
		end->way_pause_ns = LNX_ROUTED_WAY_NS;
	end->way++;
	end->way_ns = now;
}

/* What was asked for and did not come for so long is lost. */
static void ask_again(struct lnx_routed_read *r, uint64_t now)
{
	uint32_t u;

	if (!r->asked || r->waited_ns < again_ns(r))
		return;
	*n_asked(r) -= r->asked;
	r->asked = 0;
	r->tries++;
	another_way(end_of(r), now);
	for (u = 0; u < r->n; u++)
		if (r->unit[u] == LNX_UNIT_ASKED)
			r->unit[u] = LNX_UNIT_WANTED;
}

/* From the peer nothing comes at all: it computes, or is dead, which is decided elsewhere. */
static bool silent(const struct lnx_peer *peer, uint64_t now)
{
	const struct lnx_liveness *l = &peer->liveness;

	return l->since_ns &&
	       l->stalled_ns + lnx_ns_since(now, l->since_ns) > LNX_ROUTED_SILENT_NS;
}

/* Returns false if a core was busy. */
static bool go_on(struct lnx_routed_read *r, uint64_t now)
{
	uint64_t limit_ns = r->peer->ep->conf->transaction_timeout * LNX_NS_PER_MS;

	if (lnx_unlikely(!r->left))
		return true;
	wait_on(r, now);
	if (silent(r->peer, now))
		r->silent_ns = now;
	if (lnx_peer_dead(r->peer) ||
	    lnx_ns_since(now, LNX_MAX(r->came_ns, r->silent_ns)) > limit_ns) {
		fail(r, FI_ETIMEDOUT);
		return true;
	}
	ask_again(r, now);
	return ask(r, now);
}

uint64_t lnx_routed_run(struct lnx_gateways *all, uint64_t now)
{
	uint64_t next = answer_all(all, now);
	struct lnx_node *n, *tmp;
	bool busy = false;

	all->asks = true;
	lnx_list_foreach(&all->reads, n, tmp) {
		busy |= !go_on(lnx_list_entry(n, struct lnx_routed_read, link), now);
		next = lnx_sooner(next, now + LNX_ROUTED_LOOK_NS);
	}
	end_whole(all);
	return busy ? lnx_sooner(next, now + LNX_ROUTED_TRY_NS) : next;
}
