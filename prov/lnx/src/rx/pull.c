/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large messages: the receiver reads them from the sender's memory, piece by
 * piece, into the application's buffer.  Started by rx/deliver.c or rx/arrive.c
 * once message and receive have met; run by progress, because a match may happen
 * inside a core's callback; ends with rx/done.c and a FIN to the sender.
 *
 * A piece whose read fails is read again: reading changes nothing at the sender.
 * Large reads and writes of remote memory (tx/rkey.c) are moved in the same way.
 * The receive completes only when no read is outstanding, so that nothing lands
 * in a buffer that is the application's again.
 */
#include <stdlib.h>

#include "comp/comp.h"
#include "rx/rx.h"
#include "tx/rma.h"
#include "tx/tx.h"

#define PULL_DEPTH	4			/* reads outstanding of one message */
#define REDO_NS		(20 * LNX_NS_PER_MS)	/* pause after a failed read */

/*
 * Lies where the announcement lies, from its arrival on, so that starting a pull
 * takes no memory.  It goes with rxe, whose rts points to it.
 */
struct lnx_pull {
	struct lnx_rts rts;			/* first */
	struct lnx_node link;			/* ep->pulls */
	struct lnx_rxe *rxe;
	struct lnx_peer *peer;
	bool push;				/* write instead of reading */
	size_t want;				/* bytes to read: fits the receive */
	size_t posted;				/* bytes of which reads were made */
	size_t done;
	unsigned inflight;
	int err;				/* first error that is final */
	uint64_t failing_ns;			/* reads fail since; 0: they do not */
	uint64_t retry_ns;
	struct lnx_node redo;			/* lnx_chunk.link */
	/* Where `posted` is: in the sender's pieces and in our iov. */
	unsigned seg;
	size_t seg_off;
	unsigned iov;
	size_t iov_off;
};

struct lnx_chunk {
	struct lnx_op op;			/* first: context of fi_read */
	struct lnx_node link;
	struct lnx_pull *pull;
	struct lnx_rail *rail;
	void *local;
	size_t len;
	unsigned seg;
	size_t seg_off;
};

const size_t lnx_chunk_size = sizeof(struct lnx_chunk);

struct lnx_rts *lnx_pull_rts_new(void)
{
	struct lnx_pull *p = malloc(sizeof(*p));

	return p ? &p->rts : NULL;
}

void lnx_pull_start(struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = rxe->ep;
	struct lnx_pull *p = lnx_container_of(rxe->rts, struct lnx_pull, rts);

	memset((char *)p + sizeof(p->rts), 0, sizeof(*p) - sizeof(p->rts));
	p->rxe = rxe;
	p->peer = rxe->peer;
	p->want = LNX_MIN(rxe->len, rxe->room);
	if (rxe->held == LNX_HELD_RMA) {
		p->err = rxe->refuse;
		p->push = rxe->part && rxe->part->kind == LNX_PART_WRITE;
	}
	lnx_list_init(&p->redo);
	lnx_list_add_tail(&ep->pulls, &p->link);
	ep->work |= LNX_WORK_PULL;
	ep->stats.pulls++;
}

/* Cut the next piece: inside one of the sender's pieces and one iovec. */
static void cut(struct lnx_pull *p, struct lnx_chunk *c)
{
	struct lnx_rxe *rxe = p->rxe;
	const struct lnx_rts *rts = &p->rts;
	size_t n = p->want - p->posted;

	while (p->iov_off == rxe->iov[p->iov].iov_len) {
		p->iov++;
		p->iov_off = 0;
	}
	if (p->seg_off == rts->seg_len[p->seg]) {
		p->seg++;
		p->seg_off = 0;
	}
	n = LNX_MIN(n, rxe->iov[p->iov].iov_len - p->iov_off);
	n = LNX_MIN(n, rts->seg_len[p->seg] - p->seg_off);
	n = LNX_MIN(n, rxe->ep->conf->chunk);
	c->local = (char *)rxe->iov[p->iov].iov_base + p->iov_off;
	c->len = n;
	c->seg = p->seg;
	c->seg_off = p->seg_off;
	p->posted += n;
	p->iov_off += n;
	p->seg_off += n;
}

/*
 * Write one piece.  With FI_DELIVERY_COMPLETE, since an ordinary completion only
 * says that the core has copied it.
 */
static ssize_t post_write(struct lnx_chunk *c, const struct lnx_path *path,
			  uint64_t addr, uint64_t key)
{
	struct iovec iov = { .iov_base = c->local, .iov_len = c->len };
	struct fi_rma_iov rma = { .addr = addr, .len = c->len, .key = key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = path->core_addr,
		.rma_iov = &rma, .rma_iov_count = 1, .context = c,
	};

	return fi_writemsg(path->rail->core_ep, &msg,
			   FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* Move one piece over the peer's current path. */
static ssize_t move_chunk(struct lnx_pull *p, struct lnx_chunk *c)
{
	struct lnx_peer *peer = p->peer;
	const struct lnx_rts *rts = &p->rts;
	struct lnx_path *path;
	struct lnx_rail *rail;
	uint64_t addr, key;
	unsigned k;
	ssize_t ret;

	if (!peer->npath || peer->gone)
		return -FI_EHOSTUNREACH;
	path = &peer->path[peer->cur];
	for (k = 0; k < rts->nkey; k++)
		if (rts->key[c->seg][k].rail == path->remote_rail)
			break;
	if (k == rts->nkey)
		return -FI_ENOKEY;
	addr = rts->key[c->seg][k].addr + c->seg_off;
	key = rts->key[c->seg][k].key;
	/* It may complete inside the call, and c be gone. */
	c->rail = rail = path->rail;
	rail->busy++;
	p->inflight++;
	ret = p->push ? post_write(c, path, addr, key) :
	      fi_read(rail->core_ep, c->local, c->len, NULL,
		      path->core_addr, addr, key, c);
	if (ret) {
		rail->busy--;
		p->inflight--;
		return ret;
	}
	rail->hot = p->rxe->ep->conf->poll_hot;
	return 0;
}

/* There is no memory for a piece: of ours, unlike what a core says. */
#define NO_CHUNK	1

/* Post reads.  -FI_EAGAIN, NO_CHUNK: come back; else 0, or a final error. */
static ssize_t feed(struct lnx_pull *p, uint64_t now)
{
	struct lnx_ep *ep = p->rxe->ep;
	struct lnx_chunk *c;
	ssize_t ret;

	if (p->retry_ns > now)
		return -FI_EAGAIN;
	while (p->inflight < PULL_DEPTH) {
		struct lnx_node *n = lnx_list_pop(&p->redo);

		if (n) {
			c = lnx_list_entry(n, struct lnx_chunk, link);
		} else if (p->posted < p->want) {
			c = lnx_pool_get(&ep->chunk_pool);
			if (!c)
				return NO_CHUNK;
			c->op.type = LNX_OP_CHUNK;
			c->pull = p;
			lnx_list_init(&c->link);
			cut(p, c);
		} else {
			return 0;
		}
		ret = move_chunk(p, c);
		if (ret) {
			lnx_list_add_head(&p->redo, &c->link);
			return ret;
		}
	}
	return 0;
}

static void drop_redo(struct lnx_pull *p)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&p->redo)))
		lnx_pool_put(&p->rxe->ep->chunk_pool,
			     lnx_list_entry(n, struct lnx_chunk, link));
}

/* True when the pull is over and gone. */
static bool run_one(struct lnx_pull *p, uint64_t now)
{
	struct lnx_rxe *rxe = p->rxe;
	struct lnx_ep *ep = rxe->ep;
	struct lnx_node *next;
	int err;
	bool ok;

	if (!p->err && p->done < p->want) {
		ssize_t ret = feed(p, now);

		if (ret == -FI_EAGAIN || ret == -FI_ENOMEM) {
			/* A read that cannot start for long has nobody there. */
			if (!p->inflight && !p->failing_ns)
				p->failing_ns = now;
			if (!p->inflight && now - p->failing_ns >
			    ep->conf->connect_timeout * LNX_NS_PER_MS)
				p->err = FI_ETIMEDOUT;
		} else if (ret < 0) {
			p->err = (int)-ret;
		}
	}
	if (p->inflight || (!p->err && p->done < p->want))
		return false;
	drop_redo(p);
	err = p->err;
	if (rxe->held == LNX_HELD_RMA && rxe->part) {
		struct lnx_part *part = rxe->part;

		lnx_list_del(&p->link);
		lnx_rxe_put(rxe);
		lnx_rma_pulled(part, err);
		return true;
	}
	ok = !err && !rxe->discard;
	/* The receive may complete inside the call, and takes p with it. */
	next = p->link.next;
	lnx_list_del(&p->link);
	if (lnx_tx_send_fin(ep, p->peer, p->rts.op, err, ok ? rxe : NULL)) {
		lnx_list_insert_before(next, &p->link);
		return false;
	}
	/* A peer's write has no receive to fail. */
	if (rxe->discard || (!ok && rxe->held == LNX_HELD_RMA))
		lnx_rx_release(rxe);
	else if (!ok)
		lnx_rx_fail(rxe, err, err);
	return true;
}

void lnx_pull_run(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;
	uint64_t now = lnx_clock_ns();
	bool stuck = false;

	/* Before the loop: posting may run callbacks that set it again. */
	ep->work &= ~LNX_WORK_PULL;
	lnx_list_foreach(&ep->pulls, n, tmp) {
		struct lnx_pull *p = lnx_list_entry(n, struct lnx_pull, link);

		/* Reads outstanding and no room for more: completions wake us. */
		if (!run_one(p, now) &&
		    (p->inflight < PULL_DEPTH &&
		     (p->posted < p->want || !lnx_list_empty(&p->redo) ||
		      !p->inflight)))
			stuck = true;
	}
	if (stuck)
		ep->work |= LNX_WORK_PULL;
}

void lnx_pull_chunk_done(void *chunk, int err, int prov_errno)
{
	struct lnx_chunk *c = chunk;
	struct lnx_pull *p = c->pull;
	struct lnx_ep *ep = p->rxe->ep;

	c->rail->busy--;
	p->inflight--;
	ep->work |= LNX_WORK_PULL;
	if (lnx_likely(!err)) {
		p->done += c->len;
		p->failing_ns = 0;
		lnx_pool_put(&ep->chunk_pool, c);
		return;
	}
	ep->stats.core_errors++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: %s %zu bytes failed: %s (provider error %d); again\n",
		       c->rail->name, p->push ? "writing" : "reading", c->len,
		       fi_strerror(err), prov_errno);
	lnx_list_add_tail(&p->redo, &c->link);
	/* An RMA of ours begins again, with keys asked for anew. */
	if (p->rxe->held == LNX_HELD_RMA && p->rxe->part && !p->err)
		p->err = err;
	if (!p->failing_ns)
		p->failing_ns = lnx_clock_ns();
	p->retry_ns = lnx_clock_ns() + REDO_NS;
	if (p->retry_ns - p->failing_ns >
	    ep->conf->connect_timeout * LNX_NS_PER_MS)
		p->err = err;
}

void lnx_pull_fail_peer(struct lnx_peer *peer, int err)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&peer->ep->pulls, n, tmp) {
		struct lnx_pull *p = lnx_list_entry(n, struct lnx_pull, link);

		if (p->peer == peer && !p->err) {
			p->err = err;
			peer->ep->work |= LNX_WORK_PULL;
		}
	}
}

/* The endpoint closes; its cores are closed already. */
void lnx_pulls_destroy(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->pulls))) {
		struct lnx_pull *p = lnx_list_entry(n, struct lnx_pull, link);

		lnx_rxe_put(p->rxe);
	}
}
