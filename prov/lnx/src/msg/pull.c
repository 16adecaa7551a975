/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large messages: the receiver reads them from the sender's memory, piece by piece,
 * into the application's buffer.  Started by msg/deliver.c or rel/recv.c when message
 * and receive have met.  Progress runs it, because a match may happen inside a core's
 * callback.  It ends with msg/rx_done.c and a FIN to the sender.
 *
 * A piece whose read fails is read again: reading changes nothing at the sender, and
 * writing the same data twice is harmless.  Pieces are retried as long as others
 * arrive; if none arrive, until FI_LNX_TRANSACTION_TIMEOUT has passed:
 * FI_LNX_RETRY_COUNT times after the path's usual backoff, then after longer ones.
 * Large reads and writes of remote memory (rma/rkey.c) are moved in the same way; when a
 * piece of these fails and no path is left for it, the peer's keys are requested again.
 * The receive completes only when no read is outstanding, so that nothing is written
 * into a buffer that is the application's again.
 */
#include <stdlib.h>

#include "base/interval.h"
#include "msg/parts.h"
#include "msg/pull.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "obj/counting.h"
#include "policy/errclass.h"
#include "rail/faults.h"
#include "rail/post.h"
#include "rail/rail.h"
#include "rel/rel.h"
#include "rel/rel_piece.h"
#include "rma/rkey.h"
#include "rma/rma.h"

#define PULL_DEPTH	4			/* reads of one message, over one path */
#define REDO_SHIFT_MAX	3u			/* LNX_READ_REDO_NS, up to 8 times */

const size_t lnx_pull_size = sizeof(struct lnx_pull);
const size_t lnx_chunk_size = sizeof(struct lnx_chunk);

struct lnx_rts *lnx_pull_rts_new(void)
{
	struct lnx_pull *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->rts.head = 0;
	p->rts.prefers = false;
	p->came_ns = lnx_clock_ns();
	return &p->rts;
}

/* Advance to the next piece, in the sender's pieces and our iovecs. */
static void skip(struct lnx_pull *p)
{
	const struct lnx_rxe *rxe = p->rxe;
	const struct lnx_rts *rts = &p->rts;

	while (p->iov_off == rxe->iov[p->iov].iov_len) {
		p->iov++;
		p->iov_off = 0;
	}
	if (p->seg_off == rts->seg_len[p->seg]) {
		p->seg++;
		p->seg_off = 0;
	}
}

static void skip_head(struct lnx_pull *p)
{
	size_t left = LNX_MIN(p->rts.head, p->want);

	p->posted = p->done = left;
	while (left) {
		size_t n = left;

		skip(p);
		n = LNX_MIN(n, p->rxe->iov[p->iov].iov_len - p->iov_off);
		n = LNX_MIN(n, p->rts.seg_len[p->seg] - p->seg_off);
		p->iov_off += n;
		p->seg_off += n;
		left -= n;
	}
}

void lnx_pull_start(struct lnx_rxe *rxe)
{
	struct lnx_pull *p = lnx_container_of(rxe->rts, struct lnx_pull, rts);

	memset((char *)p + offsetof(struct lnx_pull, links), 0,
	       sizeof(*p) - offsetof(struct lnx_pull, links));
	p->rxe = rxe;
	p->peer = rxe->peer;
	p->want = LNX_MIN(rxe->len, rxe->room);
	if (rxe->payload_at == LNX_PAYLOAD_RMA) {
		p->err = rxe->refuse;
		p->push = rxe->segment && rxe->segment->kind == LNX_RMA_SEGMENT_WRITE;
	}
	lnx_list_init(&p->redo);
	/* These come by themselves. */
	skip_head(p);
	p->peer->pull.left += p->want - p->posted;
	lnx_pull_join(p);
	lnx_peer_watch(p->peer);
	lnx_pull_due(p);
	rxe->ep->stats.pulls++;
}

/* Cut the next piece, within one of the sender's pieces and one iovec. */
static void cut(struct lnx_pull *p, struct lnx_chunk *c, size_t n)
{
	struct lnx_rxe *rxe = p->rxe;

	n = LNX_MIN(n, rxe->iov[p->iov].iov_len - p->iov_off);
	n = LNX_MIN(n, p->rts.seg_len[p->seg] - p->seg_off);
	c->local = (char *)rxe->iov[p->iov].iov_base + p->iov_off;
	c->len = n;
	c->seg = p->seg;
	c->seg_off = p->seg_off;
	p->posted += n;
	p->iov_off += n;
	p->seg_off += n;
	p->peer->pull.left -= n;
}

/* The core of path takes no read, and not because it is busy: other paths may.  -FI_EAGAIN. */
static LNX_COLD ssize_t rejected(struct lnx_pull *p, const struct lnx_chunk *c, int err,
				 uint64_t now)
{
	struct lnx_path *path = c->path;
	unsigned class = lnx_errclass(path->rail->prov, LNX_WHILE_POST, err, 0);

	path->read_retry_ns = now + LNX_READ_REDO_NS;
	lnx_rel_piece_charge(p->peer, path, class, now);
	lnx_pull_failed(p, c->seg, err, false, now);
	return -FI_EAGAIN;
}

/* Start the transfer of one piece over a path.  0, -FI_EAGAIN, -FI_ENOMEM, or -FI_ENOKEY. */
static ssize_t move_chunk(struct lnx_pull *p, struct lnx_chunk *c,
			  struct lnx_path *path, uint64_t now)
{
	int k = lnx_pull_key(&p->rts, c->seg, path);
	struct lnx_rail *rail = path->rail;
	size_t len = c->len;
	uint64_t addr, key;
	ssize_t ret;

	if (k < 0)
		return -FI_ENOKEY;
	addr = p->rts.key[c->seg][k].addr + c->seg_off;
	key = p->rts.key[c->seg][k].key;
	/* It may complete inside the call, and c be freed. */
	c->path = path;
	c->posted_ns = now;
	p->inflight++;
	lnx_list_add_tail(&path->reads, &c->out);
	c->expect_ns = lnx_rel_piece_posted(path, len, now);
	if (path->speed)
		lnx_hedge_posted(p->peer, c);
	/* No endpoint: it could not be opened again. */
	ret = lnx_unlikely(!rail->core_ep) ? -FI_EAGAIN :
	      lnx_unlikely(p->rxe->ep->fault != NULL) &&
	      lnx_faults_piece(p->peer, path, c, p->push) ? 0 :
	      p->push ? lnx_rail_write(rail, c->local, len, path->core_addr, addr, key,
				       &c->op) :
	      lnx_rail_read(rail, c->local, len, path->core_addr, addr, key, &c->op);
	if (ret) {
		p->inflight--;
		lnx_list_del(&c->out);
		lnx_rel_piece_ended(path, len, LNX_PIECE_REFUSED, now);
		return lnx_likely(ret == -FI_EAGAIN || ret == -FI_ENOMEM) ? ret :
		       rejected(p, c, (int)-ret, now);
	}
	rail->poll_credits = p->rxe->ep->poll_credits;
	lnx_count_posted(path, p->push);
	if (lnx_unlikely(!p->peer->watched))
		lnx_peer_watch(p->peer);
	return 0;
}

/*
 * There is no memory for a piece.  Ours is short; the core has its own error for that.
 */
#define NO_CHUNK	1
/* All paths have enough to do: the end of a piece resumes this. */
#define IN_LINE		2

static struct lnx_chunk *new_chunk(struct lnx_pull *p, size_t n)
{
	struct lnx_chunk *c = lnx_pool_get(&p->rxe->ep->chunk_pool);

	if (!c)
		return NULL;
	c->op.type = LNX_OP_CHUNK;
	c->stale = c->resent = false;
	c->not_on = 0;
	c->clone = NULL;
	c->pull = p;
	lnx_list_init(&c->link);
	lnx_list_init(&c->out);
	cut(p, c, n);
	return c;
}

static struct lnx_chunk *redo_chunk(struct lnx_pull *p)
{
	struct lnx_node *n = lnx_list_pop(&p->redo);

	return n ? lnx_list_entry(n, struct lnx_chunk, link) : NULL;
}

/* There is only one path, which takes everything. */
static ssize_t feed_one(struct lnx_pull *p, uint64_t now)
{
	struct lnx_path *path = p->peer->path[0];
	struct lnx_chunk *c;
	ssize_t ret;

	if (lnx_unlikely(path->read_refused_ms && now < path->read_retry_ns))
		return -FI_EAGAIN;
	while (p->inflight < PULL_DEPTH) {
		c = redo_chunk(p);
		if (!c) {
			if (p->posted == p->want)
				return 0;
			skip(p);
			c = new_chunk(p, LNX_MIN(p->want - p->posted,
						 p->rxe->ep->conf->chunk));
			if (!c)
				return NO_CHUNK;
		}
		ret = move_chunk(p, c, path, now);
		if (ret) {
			lnx_list_add_head(&p->redo, &c->link);
			return ret;
		}
	}
	return IN_LINE;
}

/* Bits of paths over which the peer's memory can be reached. */
static unsigned able(const struct lnx_pull *p, unsigned seg)
{
	const struct lnx_peer *peer = p->peer;
	unsigned i, set = 0;

	for (i = 0; i < peer->npath; i++)
		if (lnx_pull_key(&p->rts, seg, peer->path[i]) >= 0)
			set |= 1u << i;
	return set;
}

/* Of those the ones that rules of the sender prefer; 0: it has none. */
static LNX_COLD unsigned wanted(const struct lnx_pull *p, unsigned seg, unsigned ways)
{
	const struct lnx_peer *peer = p->peer;
	unsigned i, set = 0;

	for (i = 0; i < peer->npath; i++)
		if ((ways >> i & 1) && lnx_pull_wanted(&p->rts, seg, peer->path[i]))
			set |= 1u << i;
	return set;
}

/* The path of a piece, of these; as lnx_rel_piece.  The sender's rules come before ours,
 * as for what it sends in frames. */
static struct lnx_path *path_of(struct lnx_pull *p, unsigned seg, unsigned ways, size_t *len,
				uint64_t now, bool *line)
{
	unsigned first = lnx_unlikely(p->rts.prefers) ? wanted(p, seg, ways) : 0;
	struct lnx_path *path = NULL;

	*line = false;
	if (lnx_unlikely(first))
		path = lnx_rel_piece(p->peer, first, len, now, line);
	return path || *line ? path : lnx_rel_piece(p->peer, ways, len, now, line);
}

/* The next piece that is to be moved again, and the paths that may take it (bits). */
static struct lnx_chunk *redo_elsewhere(struct lnx_pull *p, unsigned *ways)
{
	struct lnx_chunk *c;

	while ((c = redo_chunk(p))) {
		*ways = able(p, c->seg);
		if (lnx_likely(!c->not_on))
			return c;
		*ways &= ~(1u << (c->not_on - 1));
		if (*ways)
			return c;
		/* There is no other way for it any more. */
		lnx_hedge_lost(c);
		lnx_pool_put(&p->rxe->ep->chunk_pool, c);
	}
	return NULL;
}

/* Paths that pause are tried again when that is over, whatever others do until then: pieces of
 * other peers may have kept a core busy, and their ends resume nothing here. */
static LNX_COLD void look_after_pause(struct lnx_peer *peer, unsigned ways, uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if ((ways >> i & 1) && peer->path[i]->read_retry_ns > now)
			lnx_peer_look_by(peer, peer->path[i]->read_retry_ns);
}

/* Each piece goes on the path that rel/piece.c chooses for it. */
static ssize_t feed_all(struct lnx_pull *p, uint64_t now)
{
	struct lnx_chunk *c;
	struct lnx_path *path;
	unsigned ways = 0;
	size_t len;
	bool line;
	ssize_t ret;

	for (;;) {
		c = redo_elsewhere(p, &ways);
		if (!c && p->posted == p->want)
			return 0;
		if (!c) {
			skip(p);
			ways = able(p, p->seg);
		}
		len = p->want - p->posted;
		path = path_of(p, c ? c->seg : p->seg, ways, c ? NULL : &len, now, &line);
		ret = !ways ? -FI_ENOKEY : line ? IN_LINE : -FI_EAGAIN;
		if (path && !c) {
			c = new_chunk(p, len);
			ret = NO_CHUNK;
		}
		if (!path || !c)
			break;
		ret = move_chunk(p, c, path, now);
		/* That path pauses now: use the others meanwhile. */
		if (ret == -FI_EAGAIN || ret == -FI_ENOMEM)
			lnx_list_add_head(&p->redo, &c->link);
		else if (ret)
			break;
	}
	if (c)
		lnx_list_add_head(&p->redo, &c->link);
	if (ret == IN_LINE) {
		look_after_pause(p->peer, ways, now);
		p->peer->pull.waits = true;
		/* Other pulls may have keys for paths that this one has none for. */
		p->peer->pull.full = ways == (1u << p->peer->npath) - 1 && !p->rts.prefers;
	}
	return ret;
}

/*
 * Post reads.  -FI_EAGAIN, NO_CHUNK: try again later; IN_LINE, 0: the end of a piece
 * resumes it, or the keys that it asks for; else a final error.
 */
static ssize_t feed(struct lnx_pull *p, uint64_t now)
{
	const struct lnx_peer *peer = p->peer;

	if (lnx_unlikely(p->asking))
		return IN_LINE;
	if (p->retry_ns > now)
		return -FI_EAGAIN;
	if (!peer->npath || lnx_peer_dead(peer))
		return -FI_EHOSTUNREACH;
	return lnx_likely(peer->npath == 1) ? feed_one(p, now) :
					      feed_all(p, now);
}

static void drop_redo(struct lnx_pull *p)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&p->redo))) {
		struct lnx_chunk *c = lnx_list_entry(n, struct lnx_chunk, link);

		if (lnx_unlikely(c->clone != NULL))
			lnx_hedge_lost(c);
		lnx_pool_put(&p->rxe->ep->chunk_pool, c);
	}
}

/* A path that has not failed, for a piece that failed on another one. */
static LNX_COLD bool other_way(const struct lnx_pull *p, unsigned seg,
			       uint64_t now)
{
	unsigned i, ways = able(p, seg);

	for (i = 0; i < p->peer->npath; i++)
		if ((ways >> i & 1) && now >= p->peer->path[i]->read_retry_ns)
			return true;
	return false;
}

static LNX_COLD void begin_failing(struct lnx_pull *p, uint64_t now)
{
	p->failing_ns = now;
	p->tries = 0;
	p->why = FI_ETIMEDOUT;
	p->asked = false;
}

LNX_COLD void lnx_pull_failed(struct lnx_pull *p, unsigned seg, int err, bool hopeless,
			      uint64_t now)
{
	const struct lnx_conf *conf = p->rxe->ep->conf;
	struct lnx_rma_segment *segment = lnx_pull_part_of(p);
	unsigned more;

	if (p->err)
		return;
	/* By a core, whose connection broke; the application has cancelled nothing. */
	if (err == FI_ECANCELED)
		err = FI_ECONNRESET;
	if (!p->failing_ns)
		begin_failing(p, now);
	lnx_ep_later(p->rxe->ep, &p->failing_ns, now);
	p->why = err;
	/* Pieces that fail at the same time are one failure. */
	if (!p->tries || lnx_ns_since(now, p->tried_ns) >= LNX_READ_REDO_NS) {
		p->tried_ns = now;
		p->tries++;
	}
	if ((hopeless && (!segment || p->asked)) ||
	    (p->tries > conf->retry_count && lnx_ns_since(now, p->failing_ns) >
	     conf->transaction_timeout * LNX_NS_PER_MS)) {
		p->err = err;
		return;
	}
	more = p->tries > conf->retry_count ? p->tries - conf->retry_count : 0;
	/* With several paths, only the one that failed pauses. */
	if (p->peer->npath == 1 || more)
		p->retry_ns = now + (LNX_READ_REDO_NS << LNX_MIN(more, REDO_SHIFT_MAX));
	/* A broken connection looks like a closed registration. */
	if (segment && !p->asking && !other_way(p, seg, now)) {
		p->asking = true;
		lnx_rkey_renew(segment);
	}
}

void lnx_pull_renewed(struct lnx_rxe *rxe, int err)
{
	struct lnx_pull *p = lnx_container_of(rxe->rts, struct lnx_pull, rts);

	p->asking = false;
	p->asked = true;
	if (!p->err)
		p->err = err;
	lnx_pull_due(p);
}

/* List which of the sender's rails carried it, if the sender asked for that. */
static unsigned tell_moved(const struct lnx_pull *p,
			   struct lnx_moved moved[LNX_PATHS_MAX])
{
	const struct lnx_peer *peer = p->peer;
	unsigned i, n = 0;

	if (!(p->rts.flags & LNX_RTS_F_MOVED))
		return 0;
	for (i = 0; i < peer->npath; i++) {
		if (!p->moved[i])
			continue;
		moved[n].rail = peer->path[i]->remote_rail;
		moved[n++].bytes = p->moved[i];
	}
	return n;
}

/*
 * All has come.  But did the sender still hold its buffer for us then?  If it has given us up,
 * what a core of it sent late is whatever was in the buffer by then.  It gives up after
 * silence only, so this matters only long after the announcement, which showed that it lived.
 */
static bool must_confirm(const struct lnx_pull *p, uint64_t now)
{
	return lnx_unlikely(lnx_ns_since(now, p->came_ns) > LNX_READ_CONFIRM_NS);
}

/*
 * Its session was alive after all had come, or it is over.  Only then is the sender told: its
 * send must not end well if the receive does not.
 */
static bool confirmed(const struct lnx_pull *p)
{
	struct lnx_peer *peer = p->peer;

	if (p->err || lnx_peer_dead(peer) ||
	    (int32_t)(peer->chan.una - p->asked_seq) > 0)
		return true;
	peer->chan.flags |= LNX_CHAN_CONFIRMS;
	return false;
}

bool lnx_pull_one(struct lnx_pull *p, uint64_t now)
{
	struct lnx_rxe *rxe = p->rxe;
	struct lnx_ep *ep = rxe->ep;
	struct lnx_peer *peer = p->peer;
	struct lnx_moved moved[LNX_PATHS_MAX];
	struct lnx_node *next;
	unsigned nmoved;
	int err;
	bool ok;

	p->again = false;
	if (lnx_unlikely(p->confirms)) {
		if (!confirmed(p))
			return false;
		if (!p->err && lnx_peer_dead(peer))
			p->err = lnx_peer_error(peer);
	}
	if (!p->err && p->done < p->want) {
		ssize_t ret = feed(p, now);

		p->again = ret == -FI_EAGAIN || ret == -FI_ENOMEM ||
			   ret == NO_CHUNK;
		if (ret == -FI_EAGAIN || ret == -FI_ENOMEM) {
			/* If no read could start for long, the peer is dead. */
			if (!p->inflight && !p->failing_ns)
				begin_failing(p, now);
			lnx_ep_later(ep, &p->failing_ns, now);
			if (!p->inflight && lnx_ns_since(now, p->failing_ns) >
			    ep->conf->connect_timeout * LNX_NS_PER_MS)
				p->err = p->why;
		} else if (ret == -FI_EHOSTUNREACH) {
			p->err = lnx_peer_error(p->peer);
		} else if (ret < 0) {
			lnx_pull_failed(p, p->seg, (int)-ret, !lnx_pull_part_of(p), now);
			p->again = !p->asking;
		}
	}
	if (p->inflight || (!p->err && (p->done < p->want || rxe->incoming))) {
		if (lnx_unlikely(p->inflight && p->done == p->want))
			lnx_hedge_wait(p, now);
		return false;
	}
	lnx_parts_drop(rxe);
	drop_redo(p);
	p->peer->pull.left -= p->want - p->posted;
	p->posted = p->want;
	err = p->err;
	if (rxe->payload_at == LNX_PAYLOAD_RMA && rxe->segment) {
		struct lnx_rma_segment *segment = rxe->segment;

		lnx_pull_leave(p);
		lnx_rxe_put(rxe);
		lnx_rma_pulled(segment, err);
		return true;
	}
	ok = !err && !rxe->discard;
	if (ok && lnx_unlikely(!p->confirms && must_confirm(p, now))) {
		p->confirms = lnx_peer_dead(peer) || !peer->npath ||
			      !lnx_rndv_ask(peer, &p->asked_seq);
		p->again = true;
		return false;
	}
	nmoved = tell_moved(p, moved);
	/* The receive may complete inside the call, which frees p. */
	next = p->links.of_peer.next;
	lnx_pull_leave(p);
	if (lnx_rndv_send_fin(ep, peer, p->rts.op, err, moved, nmoved,
			    ok ? rxe : NULL)) {
		peer->pull.n++;
		lnx_list_insert_before(next, &p->links.of_peer);
		p->again = true;
		return false;
	}
	/* A peer's write has no receive that could fail. */
	if (rxe->discard || (!ok && rxe->payload_at == LNX_PAYLOAD_RMA))
		lnx_rx_release(rxe);
	else if (!ok)
		lnx_rx_fail(rxe, err, err);
	return true;
}
