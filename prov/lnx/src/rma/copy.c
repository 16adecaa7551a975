/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads and large writes over the direct rail: see copy.h. */
#include "rma/copy.h"

#include <stdlib.h>
#include <string.h>

#include "os/cma.h"
#include "core/shm_registry.h"
#include "msg/rx.h"
#include "rail/direct.h"
#include "rail/rail.h"
#include "wire/shm_ctrl.h"

#define COPIES_AT_ONCE	64u		/* of one write, in one pass */

/* ---- can the peer reach our memory? ---- */

/* Look whether the peer has found that it reaches our memory. */
static bool reaches(struct lnx_peer *peer)
{
	if (lnx_likely(peer->shm.reaches))
		return true;
	if (!peer->shm.reach || !__atomic_load_n(peer->shm.reach, __ATOMIC_ACQUIRE))
		return false;
	peer->shm.reaches = true;
	lnx_peer_set_direct(peer);
	return true;
}

LNX_COLD void lnx_rma_unreached(struct lnx_peer *peer)
{
	if (!peer->shm.reach)
		return;
	__atomic_store_n(peer->shm.reach, 0, __ATOMIC_RELEASE);
	peer->shm.reaches = false;
	peer->shm.direct_read = FI_ADDR_NOTAVAIL;
}

/* ---- one operation ---- */

/* Into the core: it must be possible to repeat it. */
static struct lnx_confirm *prepare(struct lnx_ep *ep, struct lnx_peer *peer,
				   const struct lnx_rma *r)
{
	struct lnx_confirm *c = lnx_pool_get(&ep->local.confirm_pool);

	if (lnx_unlikely(!c))
		return NULL;
	c->peer = peer;
	c->context = r->context;
	c->cq_flags = lnx_rma_read(r->call) ? FI_RMA | FI_READ :
					      FI_RMA | FI_WRITE;
	c->want_comp = (r->op_flags & FI_COMPLETION) != 0;
	c->tells = true;
	c->tell = c->queued = false;
	c->has_data = lnx_rma_data(r->call) ||
		      (r->op_flags & FI_REMOTE_CQ_DATA);
	c->data = r->data;
	c->niov = (uint8_t)r->niov;
	c->iov[0] = *r->iov;
	if (lnx_unlikely(r->niov != 1))
		memcpy(c->iov, r->iov, r->niov * sizeof(*r->iov));
	c->n_targets = (uint8_t)lnx_confirm_places(c->place, r->rma, r->nrma);
	c->begun = peer->shm.nsmall;
	c->sends = ep->stats.direct_sends;
	return c;
}

static bool is_read(const struct lnx_confirm *c)
{
	return c->cq_flags & FI_READ;
}

/* ---- by the core ---- */

static ssize_t post(struct lnx_confirm *c)
{
	struct fi_rma_iov rma[LNX_SHM_CTRL_PIECES];
	const struct lnx_rma r = {
		.call = is_read(c) ? LNX_READMSG : LNX_WRITEMSG,
		.iov = c->iov, .niov = c->niov,
		.rma = rma, .nrma = c->n_targets,
		.context = c, .data = c->data,
		.flags = FI_COMPLETION |
			 (c->has_data && !is_read(c) ? FI_REMOTE_CQ_DATA : 0),
	};
	unsigned i;

	for (i = 0; i < c->n_targets; i++) {
		rma[i].addr = c->place[i].addr;
		rma[i].len = c->place[i].len;
		rma[i].key = c->place[i].key;
	}
	return lnx_direct_post_rma(c->peer->ep->shm->core_ep, c->peer->shm_addr, &r, NULL);
}

static inline void enter_core(struct lnx_ep *ep, struct lnx_peer *peer,
			      struct lnx_confirm *c)
{
	c->in_core = true;
	c->seq = ep->local.rma_seq++;
	ep->local.nrma_core++;
	ep->shm->mute |= LNX_MUTE_RMA;
	/* The core does not tell that the peer's process has ended. */
	lnx_ep_watch_local(ep);
	peer->shm.nflight++;
	peer->shm.direct_write = FI_ADDR_NOTAVAIL;
}

/* Unless the core has got stuck meanwhile.  A record that it does not have must not be
 * found by lnx_rma_peer_died. */
static ssize_t enter(struct lnx_confirm *c)
{
	ssize_t ret;

	if (lnx_unlikely(c->peer->ep->local.lost.shm.nflight))
		return -FI_EAGAIN;
	c->in_core = true;
	ret = post(c);
	if (lnx_unlikely(ret))
		c->in_core = false;
	return ret;
}

static void ready_to_tell(struct lnx_ep *ep, struct lnx_confirm *c)
{
	/* A large operation completes in the core when it has been executed: then the
	 * peer is told. */
	c->tell = !is_read(c) && lnx_confirm_counts(c->peer);
	ep->local.ntell_later += c->tell;
}

LNX_COLD int lnx_rma_follow(struct lnx_ep *ep, struct lnx_peer *peer)
{
	unsigned i;

	if (!peer->shm.nflight)
		return 0;
	if (!peer->shm.reach || lnx_likely(lnx_cma_readable())) {
		peer->shm.nsmall++;
		return 0;
	}
	for (i = 0; i < LNX_CONFIRM_TRIES && peer->shm.nflight; i++)
		lnx_obj_progress(ep);
	return peer->shm.nflight ? -FI_EAGAIN : 0;
}

static ssize_t by_core(struct lnx_ep *ep, struct lnx_peer *peer,
		       const struct lnx_rma *r)
{
	struct lnx_confirm *c = prepare(ep, peer, r);
	ssize_t ret;

	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	enter_core(ep, peer, c);
	c->in_core = false;
	ready_to_tell(ep, c);
	LNX_CONFIRM_RETRY(ep, peer, ret, enter(c));
	if (lnx_likely(!ret))
		return 0;
	lnx_rma_left_core(c, false);
	ep->local.ntell_later -= c->tell;
	lnx_pool_put(&ep->local.confirm_pool, c);
	return ret;
}

static ssize_t by_copies(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_rma *r);

/* The same for a read of one piece that completes by default, with less work. */
LNX_HOT ssize_t lnx_rma_read_one(struct lnx_ep *ep, struct lnx_peer *peer,
				 const struct lnx_rma *r)
{
	struct lnx_rma own = { .call = LNX_READ, .iov = r->iov, .rma = r->rma };
	struct lnx_confirm *c;
	ssize_t ret;

	if (lnx_unlikely(!lnx_shm_key_allows(peer->shm.registry, r->rma->key,
					     r->rma->addr, r->iov->iov_len,
					     FI_REMOTE_READ)))
		return by_copies(ep, peer, r);
	c = lnx_pool_get(&ep->local.confirm_pool);
	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	c->peer = peer;
	c->context = r->context;
	c->cq_flags = FI_RMA | FI_READ;
	c->want_comp = true;
	c->tells = true;
	c->n_targets = 1;
	c->niov = 1;
	c->has_data = false;
	c->tell = false;
	c->queued = false;
	c->begun = peer->shm.nsmall;
	c->place[0].addr = r->rma->addr;
	c->place[0].key = r->rma->key;
	c->place[0].len = r->iov->iov_len;
	c->iov[0] = *r->iov;
	enter_core(ep, peer, c);
	own.context = c;
	ret = lnx_direct_post_rma(ep->shm->core_ep, peer->shm.direct_read, &own, NULL);
	if (lnx_likely(!ret))
		return 0;
	lnx_rma_left_core(c, false);
	lnx_pool_put(&ep->local.confirm_pool, c);
	return ret == -FI_EAGAIN ? by_core(ep, peer, r) : ret;
}

/* ---- by copies ---- */

/* Queue c, which gets its number now: numbers are in the order of the queue. */
static int queue(struct lnx_confirm *c)
{
	struct lnx_tx tx = { .call = LNX_RMA_COPY, .context = c };
	struct lnx_peer *peer = c->peer;
	int ret;

	lnx_list_init(&c->link);
	c->len = lnx_msg_iov_len(c->iov, c->niov);
	c->off = c->at_off = 0;
	c->at = 0;
	c->asked = c->over = false;
	c->cursor = (struct lnx_cursor) { .iov = c->iov, .n = c->niov };
	ret = lnx_direct_queue(peer->ep, peer, &tx);
	if (lnx_unlikely(ret))
		return ret;
	c->queued = true;
	lnx_confirm_open(peer);
	lnx_confirm_wait(c);
	peer->ep->stats.copied_rma++;
	return 0;
}

static ssize_t by_copies(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_rma *r)
{
	struct lnx_confirm *c;
	unsigned i;

	if (lnx_unlikely(lnx_msg_iov_len(r->iov, r->niov) > ep->limits.max_msg_size))
		return -FI_EMSGSIZE;
	if (lnx_unlikely(peer->shm.nqueued >= lnx_ep_queue_max(ep, r->op_flags)))
		return -FI_EAGAIN;
	if (lnx_unlikely(!lnx_confirm_room(ep, peer)))
		return -FI_EAGAIN;
	/* Behind those that are to be repeated. */
	for (i = 0; i < LNX_CONFIRM_TRIES && peer->shm.repeats; i++)
		lnx_obj_progress(ep);
	if (lnx_unlikely(peer->shm.repeats))
		return -FI_EAGAIN;
	c = prepare(ep, peer, r);
	if (lnx_unlikely(!c))
		return -FI_EAGAIN;
	if (lnx_unlikely(peer->shm_addr == FI_ADDR_NOTAVAIL || queue(c))) {
		bool gone = peer->shm_addr == FI_ADDR_NOTAVAIL;

		lnx_pool_put(&ep->local.confirm_pool, c);
		return gone ? -FI_EHOSTUNREACH : -FI_EAGAIN;
	}
	lnx_direct_pump(ep);
	return 0;
}

static ssize_t send_part(struct lnx_confirm *c)
{
	struct lnx_peer *peer = c->peer;
	struct lnx_cursor cursor = c->cursor;
	const struct lnx_wire_target *to;
	uint8_t bytes[LNX_COPY_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx tx = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	struct lnx_wire_rma_copy w;
	ssize_t ret;

	while (c->at_off == c->place[c->at].len) {
		c->at++;
		c->at_off = 0;
	}
	to = &c->place[c->at];
	memset(&w, 0, LNX_RMA_COPY_HEAD);
	w.src = peer->ep->eid;
	w.dst = peer->eid;
	w.op = c->op;
	w.kind = LNX_KIND_PUT;
	w.addr = to->addr + c->at_off;
	w.key = to->key;
	w.total = c->len;
	w.rest = to->len - c->at_off;
	w.data = c->data;
	w.len = (uint32_t)LNX_MIN(to->len - c->at_off,
				  (uint64_t)LNX_RMA_COPY_DATA);
	if (!c->off)
		w.flags |= LNX_RMA_COPY_F_FIRST;
	if (c->off + w.len == c->len)
		w.flags |= LNX_RMA_COPY_F_LAST;
	if (c->has_data)
		w.flags |= LNX_RMA_COPY_F_DATA;
	lnx_rma_cursor_get(&cursor, lnx_wire_rma_copy_put(bytes, &w), w.len);
	ret = lnx_large_ctrl_post(peer->ep, peer->shm_addr, &tx);
	if (ret)
		return ret;
	c->cursor = cursor;
	c->off += w.len;
	c->at_off += w.len;
	return 0;
}

static ssize_t ask(struct lnx_confirm *c)
{
	struct lnx_peer *peer = c->peer;
	struct lnx_wire_shm_put n = {
		.src = peer->ep->eid, .dst = peer->eid,
		.kind = is_read(c) ? LNX_KIND_GET : LNX_KIND_PUT,
		.flags = LNX_SHM_CTRL_F_TRY, .n_targets = c->n_targets,
		.op = c->op,
	};
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	ssize_t ret;

	memcpy(n.place, c->place, c->n_targets * sizeof(*c->place));
	lnx_shm_ctrl_put_put(bytes, &n);
	ret = lnx_large_ctrl_post(peer->ep, peer->shm_addr, &ctrl);
	c->asked = !ret;
	return ret;
}

ssize_t lnx_rma_copy_post(struct lnx_confirm *c)
{
	unsigned i;
	ssize_t ret;

	if (lnx_unlikely(c->over)) {
		lnx_confirm_put(c);
		return 0;
	}
	if (!c->asked) {
		for (i = 0; !is_read(c) && c->off < c->len; i++) {
			ret = i < COPIES_AT_ONCE ? send_part(c) : -FI_EAGAIN;
			if (ret)
				return ret;
		}
		ret = ask(c);
		if (ret)
			return ret;
	}
	if (is_read(c) && c->len > LNX_RMA_COPY_KEPT)
		return -FI_EAGAIN;	/* until it is over, nothing follows it */
	c->queued = false;
	return 0;
}

LNX_COLD void lnx_rma_copy_fail(struct lnx_confirm *c, int err)
{
	c->queued = false;
	if (c->over)
		lnx_confirm_put(c);
	else
		lnx_confirm_end(c, err);
}

void lnx_rma_copy_read(struct lnx_peer *peer,
		       const struct lnx_wire_rma_copy *w, const void *data)
{
	struct lnx_confirm *c = NULL;
	struct iovec iov[LNX_IOV_MAX];
	size_t n;

	/* The peer answers in order. */
	if (!lnx_list_empty(&peer->confirm.list))
		c = lnx_list_entry(peer->confirm.list.next, struct lnx_confirm,
				   link);
	if (!c || c->op != w->op || !is_read(c) || !c->asked ||
	    w->addr != c->off || w->len > c->len - c->off) {
		peer->ep->stats.bad_frames++;
		return;
	}
	n = lnx_rma_cursor_slice(&c->cursor, w->len, iov);
	lnx_msg_iov_put(iov, n, data, w->len);
	c->off += w->len;
}

/* ---- what the core could not do ---- */

/* Can c be repeated now, without harm to the order that was promised? */
static bool repeatable(const struct lnx_confirm *c)
{
	const struct lnx_ep *ep = c->peer->ep;
	size_t ordered = is_read(c) ? LNX_GET_MAX : LNX_PUT_MAX;

	if (!c->peer->shm.reach || lnx_peer_dead(c->peer) ||
	    c->peer->shm_addr == FI_ADDR_NOTAVAIL)
		return false;
	if (ep->saw && !is_read(c) && ep->stats.direct_sends != c->sends)
		return false;
	return lnx_msg_iov_len(c->iov, c->niov) > ordered ||
	       (!c->overtaken && c->peer->shm.nsmall == c->begun);
}

static void fail(struct lnx_confirm *c, int err, int prov_errno)
{
	struct lnx_ep *ep = c->peer->ep;

	lnx_ep_op_failed(ep, c->context, c->cq_flags, err, prov_errno);
	lnx_pool_put(&ep->local.confirm_pool, c);
}

/* Take the next one of peer from ep->local.rma_failed. */
static struct lnx_confirm *next_failed(struct lnx_peer *peer)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&peer->ep->local.rma_failed, n, tmp) {
		struct lnx_confirm *c =
			lnx_list_entry(n, struct lnx_confirm, link);

		if (c->peer == peer) {
			lnx_list_del(n);
			return c;
		}
	}
	return NULL;
}

LNX_COLD void lnx_rma_repeat(struct lnx_peer *peer, int err)
{
	struct lnx_confirm *c;

	while (peer->shm.repeats && (c = next_failed(peer))) {
		if (err) {
			fail(c, err, err);
			continue;
		}
		if (repeatable(c) && !queue(c))
			continue;
		FI_WARN_ONCE(&lnx_prov, FI_LOG_EP_DATA,
			     "rail %s: a %s failed that had begun while its target was able to reach the memory of this process: was that forbidden meanwhile, by PR_SET_DUMPABLE or otherwise?  Later ones are copied\n",
			     peer->ep->shm->name, is_read(c) ? "read" : "write");
		fail(c, FI_EIO, FI_EIO);
	}
	peer->shm.repeats = false;
}

LNX_COLD void lnx_rma_repeat_later(struct lnx_peer *peer, bool ok)
{
	struct lnx_node *n, *tmp;

	if (ok)
		lnx_list_foreach(&peer->ep->local.rma_failed, n, tmp) {
			struct lnx_confirm *c =
				lnx_list_entry(n, struct lnx_confirm, link);

			c->overtaken |= c->peer == peer;
		}
	if (!peer->shm.nflight)
		lnx_rma_repeat(peer, 0);
}

LNX_COLD void lnx_rma_core_failed(struct lnx_confirm *c, int err,
				  int prov_errno)
{
	struct lnx_peer *peer = c->peer;
	struct lnx_ep *ep = peer->ep;

	if (peer == &ep->local.lost) {
		lnx_pool_put(&ep->local.confirm_pool, c);
		return;
	}
	ep->local.ntell_later -= c->tell;
	c->tell = false;
	lnx_rma_unreached(peer);
	if (err != FI_EIO) {
		fail(c, err, prov_errno);
	} else {
		c->overtaken = false;
		lnx_list_init(&c->link);
		lnx_list_add_tail(&ep->local.rma_failed, &c->link);
		peer->shm.repeats = true;
	}
	if (peer->shm.repeats && !peer->shm.nflight)
		lnx_rma_repeat(peer, 0);
}

/* ---- what the core will not complete ---- */

struct in_core {
	struct lnx_confirm **at;
	size_t n;
};

static void collect(void *obj, void *arg)
{
	struct lnx_confirm *c = obj;
	struct in_core *all = arg;

	if (c->in_core && c->peer != &c->peer->ep->local.lost)
		all->at[all->n++] = c;
}

static int by_seq(const void *a, const void *b)
{
	const struct lnx_confirm *const *x = a, *const *y = b;
	int32_t d = (int32_t)((*x)->seq - (*y)->seq);

	return d < 0 ? -1 : d > 0;
}

/* If the core completes c after all, nothing is reported. */
static void lose(struct lnx_confirm *c)
{
	struct lnx_peer *peer = c->peer;
	struct lnx_ep *ep = peer->ep;

	ep->local.ntell_later -= c->tell;
	c->tell = c->want_comp = false;
	c->peer = &ep->local.lost;
	ep->local.lost.shm.nflight++;
	if (!--peer->shm.nflight)
		peer->shm.direct_write = peer->direct;
}

/* Is there a write to the same peer behind all->at[i]? */
static bool write_follows(const struct in_core *all, size_t i,
			  const struct lnx_peer *peer)
{
	while (++i < all->n)
		if (all->at[i]->peer == peer && !is_read(all->at[i]))
			return true;
	return false;
}

/*
 * A read that is not repeated.  Its peer may execute it later, and the buffer must not be the
 * application's by then: so it ends when the peer answers what follows it.
 */
static void end_read(struct lnx_confirm *c)
{
	struct lnx_peer *peer = c->peer;

	if (!peer->shm.ctrl || lnx_peer_dead(peer) || peer->shm_addr == FI_ADDR_NOTAVAIL) {
		fail(c, FI_EIO, FI_EIO);
		return;
	}
	c->doubtful = true;
	c->n_targets = 0;
	lnx_confirm_open(peer);
	lnx_confirm_ask(c, 0);
	lnx_confirm_close(peer);
}

/* Its peer lives.  What it was to do may have been done. */
static void end_otherwise(const struct in_core *all, size_t i)
{
	struct lnx_confirm *c = all->at[i], *n;
	struct lnx_peer *peer = c->peer;
	struct lnx_ep *ep = peer->ep;
	bool last = !write_follows(all, i, peer);

	n = lnx_pool_get(&ep->local.confirm_pool);
	if (!n) {
		lnx_ep_op_failed(ep, c->context, c->cq_flags, FI_ENOMEM, FI_ENOMEM);
		lose(c);
		return;
	}
	*n = *c;
	n->in_core = n->tell = false;
	lnx_list_init(&n->link);
	n->overtaken = !last;
	lose(c);
	if (!is_read(n)) {
		lnx_confirm_open(peer);
		lnx_confirm_ask(n, lnx_confirm_counts(peer) ?
				   LNX_SHM_CTRL_F_COUNT : 0);
		lnx_confirm_close(peer);
	} else if (!repeatable(n) || queue(n)) {
		end_read(n);
	}
}

LNX_COLD void lnx_rma_peer_died(struct lnx_peer *dead, int err)
{
	struct lnx_ep *ep = dead->ep;
	struct in_core all = { 0 };
	struct lnx_node *n, *tmp;
	bool stuck = false;
	size_t i;

	if (!dead->shm.nflight)
		return;
	all.at = malloc(ep->local.nrma_core * sizeof(struct lnx_confirm *));
	if (!all.at) {
		LNX_WARN(FI_LOG_EP_DATA,
			 "peer %016llx: memory is short: operations on the memory of its process, which has ended, do not end\n",
			 (unsigned long long)dead->eid);
		return;
	}
	lnx_pool_each(&ep->local.confirm_pool, collect, &all);
	qsort(all.at, all.n, sizeof(struct lnx_confirm *), by_seq);
	for (i = 0; i < all.n; i++) {
		struct lnx_confirm *c = all.at[i];

		if (c->peer == dead) {
			stuck = true;
			lnx_ep_op_failed(ep, c->context, c->cq_flags, err, err);
			lose(c);
		} else if (stuck) {
			end_otherwise(&all, i);
		}
	}
	free(all.at);
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		peer->shm.direct_read = FI_ADDR_NOTAVAIL;
		if (peer->shm.repeats && !peer->shm.nflight)
			lnx_rma_repeat(peer, 0);
	}
	FI_WARN_ONCE(&lnx_prov, FI_LOG_EP_DATA,
		     "rail %s: a process ended while there were operations on its memory: from now on, others on this node are copied\n",
		     ep->shm->name);
}

/* ---- any of them ---- */

ssize_t lnx_rma_large(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_rma *r)
{
	uint64_t len = lnx_msg_iov_len(r->iov, r->niov);
	uint64_t access = lnx_rma_read(r->call) ? FI_REMOTE_READ :
						  FI_REMOTE_WRITE;
	bool allowed = true;
	size_t i;

	if (lnx_unlikely(len > ep->limits.max_msg_size))
		return -FI_EMSGSIZE;
	/* Cores do not report this. */
	for (i = 0; i < r->nrma; i++)
		allowed &= lnx_shm_key_allows(peer->shm.registry, r->rma[i].key,
					      r->rma[i].addr, r->rma[i].len,
					      access);
	if (lnx_unlikely(!allowed || ep->local.lost.shm.nflight || !reaches(peer)))
		return by_copies(ep, peer, r);
	/* Messages that follow the write would not wait for it to be repeated. */
	if (lnx_unlikely(ep->saw) && peer->shm.reach && !lnx_rma_read(r->call) &&
	    !lnx_cma_readable())
		return by_copies(ep, peer, r);
	return by_core(ep, peer, r);
}
