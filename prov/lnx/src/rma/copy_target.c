/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads and writes of local peers by copies, target's side: see copy.h. */
#include "rma/copy_target.h"

#include <stdlib.h>
#include <string.h>

#include "os/cma.h"
#include "core/shm_registry.h"
#include "msg/rx.h"
#include "obj/mr.h"
#include "rail/rail.h"
#include "rma/copy.h"
#include "rma/serve.h"
#include "wire/shm_ctrl.h"

#define COPIES_AT_ONCE	64u		/* of one read, in one pass */

/* ---- writes ---- */

/* The end of a write, none of whose parts was refused. */
static void written(struct lnx_ep *ep, struct lnx_peer *peer,
		    const struct lnx_wire_rma_copy *w)
{
	struct lnx_hdr h = {
		.data = w->data,
		.flags = w->flags & LNX_RMA_COPY_F_DATA ? LNX_WIRE_F_DATA : 0,
	};

	lnx_serve_written(ep, peer, &h, w->total);
	lnx_serve_keys_done(peer, true);
}

static void write_came(struct lnx_ep *ep, struct lnx_peer *peer,
		       const struct lnx_wire_rma_copy *w, const void *data)
{
	uint8_t *to;
	int err;

	if (w->flags & LNX_RMA_COPY_F_FIRST) {
		peer->rma.put_refused = 0;
		lnx_serve_keys_done(peer, false);
	}
	/* Before any of it is done.  The control message that follows has the
	 * error: msg/confirm_answer.c. */
	err = -lnx_mr_check(ep->domain, w->key, w->addr, w->rest,
			    FI_REMOTE_WRITE, &to, NULL);
	if (!err && lnx_unlikely(lnx_mrs_counted(ep->domain)))
		err = lnx_serve_note_key(peer, w->key);
	if (lnx_unlikely(err))
		peer->rma.put_refused = (uint8_t)err;
	else
		memcpy(to, data, w->len);
	if ((w->flags & LNX_RMA_COPY_F_LAST) && !peer->rma.put_refused)
		written(ep, peer, w);
}

bool lnx_rma_copy_came(struct lnx_ep *ep, const void *bytes)
{
	const uint8_t *data = (const uint8_t *)bytes + LNX_RMA_COPY_HEAD;
	struct lnx_wire_rma_copy w;
	struct lnx_peer *peer;

	if (lnx_wire_rma_copy_get(&w, bytes, ep->eid))
		return false;
	if (w.kind == LNX_KIND_RESP) {
		peer = lnx_peer_by_eid(ep, w.src);
		if (peer)
			lnx_rma_copy_read(peer, &w, data);
		return true;
	}
	peer = lnx_fetch_ctrl_sender(ep, w.src);
	/* Registrations may be closed now without waiting for us. */
	if (lnx_unlikely(!peer || ep->leaving))
		ep->stats.lost++;
	else
		write_came(ep, peer, &w, data);
	return true;
}

/* ---- reads ---- */

/* Bytes from off on, up to the end of a target.  NULL: they may not be read (any more);
 * a->err says why. */
static const uint8_t *find(struct lnx_answer *a, size_t *len)
{
	struct lnx_ep *ep = a->peer->ep;
	const struct lnx_wire_target *p = a->place;
	uint64_t off = a->off;
	uint8_t *at;

	if (a->kept) {
		*len = a->len - off;
		return a->kept + off;
	}
	for (; off >= p->len; p++)
		off -= p->len;
	*len = LNX_MIN(p->len - off, (uint64_t)LNX_RMA_COPY_DATA);
	a->err = ep->leaving ? FI_ENOKEY :
		 -lnx_mr_check(ep->domain, p->key, p->addr + off, *len,
			       FI_REMOTE_READ, &at, NULL);
	return a->err ? NULL : at;
}

/* Keep the data of a short read, as it is now. */
static void keep(struct lnx_answer *a)
{
	uint8_t *to = (uint8_t *)(a + 1);
	const uint8_t *from;
	size_t n;

	for (a->off = 0; a->off < a->len; a->off += n) {
		from = find(a, &n);
		if (!from)
			return;
		memcpy(to + a->off, from, n);
	}
	a->off = 0;
	a->kept = to;
}

struct lnx_answer *lnx_rma_copy_answer(struct lnx_ep *ep,
				       const struct lnx_wire_shm_put *n)
{
	struct lnx_answer *a;
	uint64_t len = 0;
	unsigned i;

	for (i = 0; i < n->n_targets; i++)
		len += n->place[i].len;
	a = malloc(sizeof(*a) + (len <= LNX_RMA_COPY_KEPT ? len : 0));
	if (lnx_unlikely(!a))
		return NULL;
	a->kind = LNX_ANSWER_READ;
	a->kept = NULL;
	a->err = 0;
	a->off = 0;
	a->len = len;
	memcpy(a->place, n->place, sizeof(a->place));
	a->peer = lnx_peer_by_eid(ep, n->src);
	if (len && len <= LNX_RMA_COPY_KEPT)
		keep(a);
	return a;
}

ssize_t lnx_rma_copy_send(struct lnx_answer *a)
{
	struct lnx_peer *peer = a->peer;
	uint8_t bytes[LNX_COPY_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx tx = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };
	struct lnx_wire_rma_copy w;
	const uint8_t *from;
	unsigned i;
	ssize_t ret;
	size_t n;

	for (i = 0; a->off < a->len && !a->err; i++) {
		if (i == COPIES_AT_ONCE)
			return -FI_EAGAIN;
		from = find(a, &n);
		if (!from)
			return 0;
		memset(&w, 0, LNX_RMA_COPY_HEAD);
		w.src = peer->ep->eid;
		w.dst = peer->eid;
		w.kind = LNX_KIND_RESP;
		w.op = a->op;
		w.addr = a->off;
		w.len = (uint32_t)LNX_MIN(n, (size_t)LNX_RMA_COPY_DATA);
		memcpy(lnx_wire_rma_copy_put(bytes, &w), from, w.len);
		ret = lnx_large_ctrl_post(peer->ep, peer->shm.core, &tx);
		if (ret)
			return ret;
		a->off += w.len;
	}
	return 0;
}

/* ---- may we read the peer's memory? ---- */

void lnx_rma_copy_try(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	uint8_t *reach;

	peer->shm.try_reach = false;
	if (!ep->local.registry || !peer->shm.registry || ep->conf->disable_cma)
		return;
	reach = lnx_shm_slot_reach(ep->local.registry, peer->eid);
	if (reach && !__atomic_load_n(reach, __ATOMIC_RELAXED) &&
	    lnx_cma_probe(&peer->shm.where))
		__atomic_store_n(reach, 1, __ATOMIC_RELEASE);
}
