/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pieces of large messages that are late on one path are read again over another
 * (rel/hedge.h).  Called by msg/pull.c, which posts them; uses rel/piece.c.
 *
 * Both reads go to the application's buffer: they write the same data there, so that it
 * does not matter which comes first, or whether both come.  But as long as one of them is
 * outstanding the buffer is not the application's again, and the sender's neither.  A
 * buffer of ours would save only the first: a read that the sender has released the
 * memory of is refused by its core, which then closes the connection (PEERS.md).  So the
 * message waits until the read that was overtaken has ended.  If it does not end soon,
 * its connection is cut: then the core reports it as failed.  What else was under way
 * there goes again, and the path connects anew, without what TCP had to wait for.  Where
 * there is no connection to cut, the failure detector ends the wait (rel/detect.h).
 */
#include "base/interval.h"
#include "core/half_open.h"
#include "msg/pull.h"
#include "rel/rel.h"
#include "rel/rel_piece.h"

/* The budget of all paths to a peer. */
static struct lnx_hedge *budget(const struct lnx_peer *peer)
{
	return &peer->path[0]->speed->hedge;
}

static struct lnx_chunk *oldest(const struct lnx_path *path)
{
	return lnx_list_entry(path->reads.next, struct lnx_chunk, out);
}

/* Can it be read over another path, of these (bits)?  From one that the sender wants only
 * over one that it wants, too. */
static bool elsewhere(const struct lnx_peer *peer, const struct lnx_chunk *c, unsigned others)
{
	const struct lnx_rts *rts = &c->pull->rts;
	bool wanted = lnx_unlikely(rts->prefers) && lnx_pull_wanted(rts, c->seg, c->path);
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if ((others >> i & 1) &&
		    lnx_pull_key(rts, c->seg, peer->path[i]) >= 0 &&
		    (!wanted || lnx_pull_wanted(rts, c->seg, peer->path[i])))
			return true;
	return false;
}

/* False: no more now. */
static LNX_COLD bool hedge(struct lnx_peer *peer, struct lnx_chunk *c)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_hedge *b = budget(peer);
	struct lnx_chunk *clone;

	if (!lnx_hedge_take(b, c->len))
		return false;
	clone = lnx_pool_get(&ep->chunk_pool);
	if (!clone) {
		lnx_hedge_put(b);
		return false;
	}
	*clone = *c;
	clone->resent = true;
	lnx_list_init(&clone->link);
	lnx_list_init(&clone->out);
	clone->not_on = (uint8_t)(1 + c->path->index);
	clone->clone = c;
	c->clone = clone;
	lnx_list_add_tail(&c->pull->redo, &clone->link);
	ep->stats.hedges++;
	ep->stats.hedge_length += c->len;
	lnx_pull_due(c->pull);
	return true;
}

/* Connections deliver in order: if the oldest piece is late, those behind it are too.
 * False: there is one that may not be read twice now. */
static LNX_COLD bool hedge_all(struct lnx_peer *peer, struct lnx_path *path, unsigned others)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&path->reads, n, tmp) {
		struct lnx_chunk *c = lnx_list_entry(n, struct lnx_chunk, out);

		/* A late write would overwrite what others wrote since. */
		if (c->stale || c->clone || c->pull->push || c->pull->err ||
		    !elsewhere(peer, c, others))
			continue;
		if (!hedge(peer, c))
			return false;
	}
	return true;
}

static LNX_COLD bool has_writes(const struct lnx_path *path)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&path->reads, n, tmp)
		if (lnx_list_entry(n, struct lnx_chunk, out)->pull->push)
			return true;
	return false;
}

/* Call fn for each path, of whatever peer, whose connections are cut with those of path;
 * until it returns false, which is then returned. */
static LNX_COLD bool each_beside(struct lnx_path *path,
				 bool (*fn)(struct lnx_path *beside, uint64_t now), uint64_t now)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_list_foreach(&path->rail->ep->peers.all, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *beside = peer->path[i];

			if (beside->rail == path->rail &&
			    (beside == path ||
			     lnx_half_open_same_host(path->rail, path->core_addr,
						     beside->core_addr)) &&
			    !fn(beside, now))
				return false;
		}
	}
	return true;
}

/* How often it is cut is limited by the path's pauses, too.  Writes are left alone: what of
 * them is in the network may come after they are repeated. */
static LNX_COLD bool may_cut(struct lnx_path *path, uint64_t now)
{
	return !has_writes(path) &&
	       (!path->speed || lnx_ns_since(now, path->speed->cut_try_ns) >= LNX_CUT_AGAIN_NS);
}

static LNX_COLD bool was_cut(struct lnx_path *path, uint64_t now)
{
	lnx_rel_path_cut(path, now);
	return true;
}

LNX_COLD void lnx_hedge_find_writes(struct lnx_ep *ep, struct lnx_cut *cut, unsigned n)
{
	struct lnx_node *node, *tmp;
	unsigned i;

	for (i = 0; i < n; i++)
		cut[i].first->writes |= has_writes(cut[i].path);
	lnx_list_foreach(&ep->peers.all, node, tmp) {
		struct lnx_peer *peer = lnx_list_entry(node, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = peer->path[i];
			struct lnx_cut *first;

			/* Few have any: only these are looked up. */
			if (path->rail != cut->path->rail || !has_writes(path))
				continue;
			first = lnx_half_open_beside(cut, n, path);
			if (first)
				first->writes = true;
		}
	}
}

LNX_COLD void lnx_hedge_were_cut(struct lnx_ep *ep, struct lnx_cut *cut, unsigned n, uint64_t now)
{
	struct lnx_node *node, *tmp;
	bool any = false;
	unsigned i;

	for (i = 0; i < n; i++) {
		cut[i].first->was_cut |= cut[i].ncut != 0;
		any |= cut[i].ncut != 0;
	}
	if (!any)
		return;
	lnx_list_foreach(&ep->peers.all, node, tmp) {
		struct lnx_peer *peer = lnx_list_entry(node, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = peer->path[i];
			const struct lnx_cut *first = path->rail == cut->path->rail ?
						      lnx_half_open_beside(cut, n, path) : NULL;

			if (first && first->was_cut)
				lnx_rel_path_cut(path, now);
		}
	}
}

/* End what is under way over path, and over all that go to the same host. */
static LNX_COLD void cut(struct lnx_ep *ep, struct lnx_path *path, uint64_t now)
{
	bool may;

	/* Most calls end here: the walk over all peers is as rare as the cut. */
	if (!may_cut(path, now))
		return;
	may = each_beside(path, may_cut, now);
	path->speed->cut_try_ns = now;
	if (!may || !lnx_half_open_cut(path->rail, path->core_addr))
		return;
	ep->stats.cuts++;
	each_beside(path, was_cut, now);
}

/* Returns when to look again. */
static uint64_t look_at(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	struct lnx_tail *t = &path->speed->tail;
	struct lnx_chunk *c = oldest(path);
	uint64_t late_ns = lnx_pull_chunk_since(c) + c->expect_ns + lnx_hedge_tail_ns(t);
	unsigned others;

	/* Of those behind it that may be known. */
	if (!c->expect_ns)
		return now + LNX_LOOK_SEVERAL_NS;
	if (now < late_ns)
		return late_ns;
	others = lnx_rel_piece_late(peer, path, late_ns, now);
	if (!others)
		return now + LNX_MIN(lnx_ns_since(now, late_ns) / 2, LNX_LOOK_SEVERAL_NS);
	if (lnx_hedge_tail_late(t, c->posted_ns, path->nread, now)) {
		path->speed->doubt_ns = now;
		peer->ep->stats.late_reads++;
	}
	/* Too much was read twice: without the connection nothing has to be. */
	if (!hedge_all(peer, path, others) && lnx_ns_since(now, t->late_ns) >= LNX_CUT_NS)
		cut(peer->ep, path, now);
	return now;
}

static void look_by(struct lnx_peer *peer, uint64_t at_ns)
{
	peer->path[0]->speed->look_ns = at_ns;
	if (at_ns != LNX_NEVER)
		lnx_peer_look_by(peer, at_ns);
}

/* What came while nothing was looked at has perhaps not been read yet. */
static bool was_away(const struct lnx_ep_due *due, uint64_t now)
{
	return lnx_ns_since(now, due->looked_ns) > LNX_LATENCY_AWAY_NS ||
	       lnx_ns_since(now, due->away_ns) < LNX_LOOK_MIN_NS;
}

void lnx_hedge_run(struct lnx_peer *peer, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	if (lnx_likely(now < peer->path[0]->speed->look_ns))
		return;
	if (was_away(&peer->ep->due, now)) {
		look_by(peer, now + LNX_LOOK_MIN_NS);
		return;
	}
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (!lnx_list_empty(&path->reads) && path->state != LNX_PATH_DOWN)
			next = lnx_sooner(next, look_at(peer, path, now));
	}
	look_by(peer, next == LNX_NEVER ? next : LNX_MAX(next, now + LNX_LOOK_MIN_NS));
}

void lnx_hedge_posted(struct lnx_peer *peer, const struct lnx_chunk *c)
{
	uint64_t at_ns = c->posted_ns + c->expect_ns + lnx_hedge_tail_ns(&c->path->speed->tail);

	/* Before the first look there is none that this one would be sooner than. */
	if (c->expect_ns && at_ns < peer->path[0]->speed->look_ns)
		look_by(peer, at_ns);
}

LNX_COLD void lnx_hedge_won(struct lnx_chunk *c)
{
	struct lnx_ep *ep = c->pull->rxe->ep;
	struct lnx_chunk *clone = c->clone;

	ep->stats.hedges_won += c->not_on != 0;
	lnx_hedge_lost(c);
	if (lnx_list_linked(&clone->link)) {
		lnx_list_del(&clone->link);
		lnx_pool_put(&ep->chunk_pool, clone);
	} else {
		clone->stale = true;
	}
}

LNX_COLD void lnx_hedge_lost(struct lnx_chunk *c)
{
	struct lnx_chunk *clone = c->clone;

	lnx_hedge_put(budget(c->pull->peer));
	clone->clone = c->clone = NULL;
	clone->not_on = 0;
}

void lnx_hedge_learn(const struct lnx_chunk *c, uint64_t since_ns, uint64_t now)
{
	struct lnx_path_speed *s = c->path->speed;

	lnx_hedge_earn(budget(c->pull->peer), c->len);
	s->doubt_ns = 0;
	if (c->expect_ns)
		lnx_hedge_tail_came(&s->tail, c->posted_ns,
				    lnx_ns_since(now, since_ns + c->expect_ns), c->len,
				    c->clone && !c->not_on);
}

LNX_COLD void lnx_hedge_wait(struct lnx_pull *p, uint64_t now)
{
	struct lnx_peer *peer = p->peer;
	unsigned i;

	if (!p->waits_ns)
		p->waits_ns = now;
	if (lnx_ns_since(now, p->waits_ns) < LNX_CUT_NS) {
		lnx_peer_look_by(peer, p->waits_ns + LNX_CUT_NS);
		return;
	}
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		struct lnx_node *n, *tmp;

		lnx_list_foreach(&path->reads, n, tmp)
			if (lnx_list_entry(n, struct lnx_chunk, out)->pull == p) {
				cut(p->rxe->ep, path, now);
				break;
			}
	}
	lnx_peer_look_by(peer, now + LNX_CUT_AGAIN_NS);
}
