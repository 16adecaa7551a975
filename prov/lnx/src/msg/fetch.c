/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control messages of local peers, and the large messages that they announce.  Called
 * by msg/rx_done.c with a control message, and by msg/deliver.c when a receive has been
 * found for a message announced before.  Progress reads it from the sender's memory
 * directly into the application's buffer; then msg/rx_done.c.
 *
 * If the kernel does not let us read, or a parameter forbids it, we ask for copies (the
 * sender's msg/large.c), which arrive in the same way.
 *
 * A control message may come inside a core's callback.  Reading waits for progress,
 * because the sender has to be told afterwards, and that is a call into the core.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/shm_registry.h"
#include "msg/confirm.h"
#include "msg/confirm_answer.h"
#include "msg/push.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/rail.h"
#include "rma/amo_serve.h"
#include "rma/copy_target.h"
#include "wire/shm_ctrl.h"

static LNX_COLD void lost(struct lnx_ep *ep, uint64_t len)
{
	ep->stats.lost++;
	LNX_WARN(FI_LOG_EP_DATA,
		 "rail %s: no memory for a message of %llu bytes: it is lost\n",
		 ep->shm->name, (unsigned long long)len);
}

static inline void set_message(struct lnx_rxe *rxe, struct lnx_peer *peer,
			       const struct lnx_wire_shm_ctrl *n)
{
	struct lnx_fetch *f = &rxe->fetch;

	rxe->peer = peer;
	rxe->tag = n->tag;
	rxe->len = n->len;
	rxe->payload_at = LNX_PAYLOAD_MEMORY;
	if (n->flags & LNX_WIRE_F_DATA) {
		rxe->data = n->data;
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
	}
	f->op = n->op;
	f->cookie = n->cookie;
	memcpy(f->piece, n->piece, sizeof(f->piece));
	f->npiece = n->npiece;
	f->pid = n->pid;
	f->err = 0;
	f->read = false;
	f->copy = n->flags & LNX_SHM_CTRL_F_COPY;
	f->name = 0;
	f->got = 0;
}

struct lnx_peer *lnx_fetch_ctrl_sender(struct lnx_ep *ep, uint64_t eid)
{
	struct lnx_peer *peer = lnx_peer_by_eid(ep, eid);
	struct lnx_addr a = { .eid = eid };

	return lnx_likely(peer != NULL) ? peer : lnx_peer_unsolicited(ep, &a);
}

bool lnx_fetch_is_for_another(const struct lnx_ep *ep, uint8_t to_low, uint8_t to_high)
{
	unsigned to = to_low | (unsigned)to_high << 8;

	return to && to != lnx_shm_ctrl_process(ep->local.pid);
}

static bool is_for_another(const struct lnx_ep *ep, const struct lnx_wire_shm_ctrl *n)
{
	return lnx_fetch_is_for_another(ep, n->to_low, n->to_high);
}

/* The send fails, if it has not yet: its buffer may be in use again. */
static LNX_COLD void refuse(struct lnx_ep *ep, struct lnx_peer *peer,
			    const struct lnx_wire_shm_ctrl *n)
{
	struct lnx_rxe *rxe = lnx_rxe_get_last(ep);

	ep->stats.stale_frames++;
	if (!rxe)
		return;
	set_message(rxe, peer, n);
	rxe->discard = true;
	rxe->fetch.read = true;
	rxe->fetch.err = FI_ECONNRESET;
	rxe->more = true;
	lnx_rxe_holds(rxe);
	lnx_fetch_start(rxe);
}

static void announced(struct lnx_ep *ep, const struct lnx_wire_shm_ctrl *n)
{
	bool tagged = n->kind == LNX_KIND_RTS_TAG;
	struct lnx_peer *peer = lnx_fetch_ctrl_sender(ep, n->src);
	struct lnx_rxe *rxe;

	if (lnx_unlikely(!peer)) {
		lost(ep, n->len);
		return;
	}
	if (lnx_unlikely(is_for_another(ep, n))) {
		refuse(ep, peer, n);
		return;
	}
	ep->stats.direct_recvs++;
	rxe = lnx_rx_take(ep, tagged, peer->addr, n->tag, n->len);
	if (rxe) {
		ep->stats.matched++;
		rxe->state = LNX_RXE_ACTIVE;
		set_message(rxe, peer, n);
		lnx_fetch_start(rxe);
		return;
	}
	rxe = lnx_rxe_get_last(ep);
	if (lnx_unlikely(!rxe)) {
		lost(ep, n->len);
		return;
	}
	rxe->tagged = tagged;
	set_message(rxe, peer, n);
	rxe->state = LNX_RXE_UNEX;
	rxe->unex.m.src = peer->addr;
	rxe->unex.m.tag = n->tag;
	rxe->more = true;
	lnx_rxe_holds(rxe);
	lnx_rx_store(rxe);
	lnx_rx_defer(rxe);
	ep->stats.unexpected++;
}

/* Address of byte `off` of the message; *room: how many bytes may follow there. */
static char *place_of(const struct lnx_rxe *rxe, size_t off, size_t *room)
{
	const struct iovec *iov = rxe->iov;

	for (; off >= iov->iov_len; iov++)
		off -= iov->iov_len;
	*room = iov->iov_len - off;
	return (char *)iov->iov_base + off;
}

static inline size_t wanted(const struct lnx_rxe *rxe)
{
	return rxe->discard ? 0 : LNX_MIN(rxe->len, rxe->room);
}

/* False: it is no copy, but a message of an application. */
static bool copy_came(struct lnx_ep *ep, const uint8_t *bytes)
{
	const uint8_t *data = bytes + LNX_COPY_HEAD;
	struct lnx_wire_copy c;
	struct lnx_fetch *f;
	struct lnx_rxe *rxe;
	size_t n;

	if (lnx_wire_copy_get(&c, bytes, ep->eid))
		return false;
	rxe = lnx_optab_get(&ep->local.copy_ops, c.op);
	if (!rxe || rxe->peer->eid != c.src || rxe->fetch.got != c.off ||
	    c.len > wanted(rxe) - c.off) {
		ep->stats.bad_frames++;
		return true;
	}
	f = &rxe->fetch;
	for (; c.len; c.len -= n, data += n) {
		char *to = place_of(rxe, f->got, &n);

		n = LNX_MIN(n, c.len);
		memcpy(to, data, n);
		f->got += n;
	}
	if (f->got == wanted(rxe)) {
		ep->stats.direct_recv_length += f->got;
		lnx_optab_del(&ep->local.copy_ops, f->name);
		f->name = 0;
		f->read = true;
		lnx_fetch_start(rxe);	/* send the FIN */
	}
	return true;
}

/* False: it is no such control message. */
static bool confirm(struct lnx_ep *ep, const void *bytes)
{
	struct lnx_wire_shm_put n;
	struct lnx_peer *peer;

	if (lnx_shm_ctrl_put_get(&n, bytes, ep->eid))
		return false;
	if (n.kind != LNX_KIND_RESP && n.kind != LNX_KIND_HELLO) {
		lnx_confirm_ctrl(ep, &n);
		return true;
	}
	peer = lnx_peer_by_eid(ep, n.src);
	if (peer && n.kind == LNX_KIND_HELLO)
		lnx_peer_shm_renew(peer);
	else if (peer)
		lnx_confirm_answered(peer, n.op,
				     (int)LNX_MIN(n.err, LNX_ERR_MAX));
	return true;
}

void lnx_rx_shm_ctrl(struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = rxe->ep;
	struct iovec iov = { ep->shm->ctrl_buf, rxe->iov[0].iov_len };
	struct lnx_wire_shm_ctrl n;

	if (lnx_push_came(ep, iov.iov_base, iov.iov_len))
		return;
	if (lnx_amo_came(ep, iov.iov_base, iov.iov_len))
		return;
	if (iov.iov_len == LNX_COPY_BYTES &&
	    (copy_came(ep, iov.iov_base) ||
	     lnx_rma_copy_came(ep, iov.iov_base)))
		return;
	if (iov.iov_len == LNX_SHM_CTRL_BYTES && confirm(ep, iov.iov_base))
		return;
	if (lnx_unlikely(iov.iov_len != LNX_SHM_CTRL_BYTES ||
			 lnx_shm_ctrl_get(&n, iov.iov_base, ep->eid))) {
		/* An application's message that happens to have this tag and length. */
		ep->stats.direct_recvs++;
		ep->stats.direct_recv_length += iov.iov_len;
		if (lnx_rx_copy(ep, rxe->peer, true, rxe->tag, rxe->data,
				rxe->cq_flags & FI_REMOTE_CQ_DATA ?
				LNX_WIRE_F_DATA : 0, &iov, 1, iov.iov_len))
			lost(ep, iov.iov_len);
	} else if (n.kind != LNX_KIND_RTS_MSG && n.kind != LNX_KIND_RTS_TAG &&
		   lnx_unlikely(is_for_another(ep, &n))) {
		ep->stats.stale_frames++;
	} else if (n.kind == LNX_KIND_FIN) {
		struct lnx_peer *peer = lnx_peer_by_eid(ep, n.src);

		if (peer)
			lnx_rndv_fin(peer, n.op, (int)LNX_MIN(n.len, 4096));
	} else if (n.kind == LNX_KIND_GET) {
		struct lnx_peer *peer = lnx_peer_by_eid(ep, n.src);

		if (peer)
			lnx_large_copy(peer, n.op, n.data, n.len);
	} else {
		announced(ep, &n);
	}
}

void lnx_fetch_start(struct lnx_rxe *rxe)
{
	struct lnx_ep *ep = rxe->ep;

	rxe->more = true;
	lnx_list_del(&rxe->link);	/* it may be deferred */
	lnx_list_add_tail(&ep->local.fetches, &rxe->link);
	ep->work |= LNX_WORK_FETCH;
}

/* The kernel does not allow it, for this process or at all. */
static inline bool may_not(int err)
{
	return err == EPERM || err == EACCES || err == ENOSYS;
}

static void read_memory(struct lnx_rxe *rxe, const struct iovec *iov,
			size_t niov, size_t want)
{
	struct lnx_fetch *f = &rxe->fetch;
	struct lnx_peer *peer = rxe->peer;
	struct lnx_cma_owner owner = {
		.pid = f->pid, .cookie = f->cookie, .eid = peer->eid,
	};
	const struct lnx_shm_registry *registry = NULL;

	f->copy |= peer->ep->conf->disable_cma;
	if (lnx_unlikely(f->copy && want))
		return;
	if (lnx_likely(f->pid == peer->shm.where.pid))
		registry = peer->shm.registry;
	if (lnx_likely(registry != NULL))
		owner.cookie = 0;		/* watching tells the same, and
						 * faster */
	f->err = lnx_cma_read(&owner, f->piece, f->npiece, iov, niov, want);
	if (lnx_unlikely(may_not(f->err))) {
		f->copy = true;
		f->err = 0;
		return;
	}
	f->read = true;
	if (lnx_likely(registry != NULL) && !f->err && !lnx_shm_registry_is_live(registry))
		f->err = ESRCH;
	if (lnx_likely(!f->err))
		rxe->ep->stats.direct_recv_length += want;
	else
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
			       "peer %016llx: %zu bytes cannot be read from process %d: %s\n",
			       (unsigned long long)peer->eid, rxe->len, f->pid,
			       f->err == ESRCH ?
			       "it has ended, or closed its endpoint" :
			       fi_strerror(f->err));
}

/* 0: copies were requested, or the sender is dead and that is noted; or -FI_EAGAIN. */
static LNX_COLD int ask_for_copies(struct lnx_rxe *rxe)
{
	struct lnx_fetch *f = &rxe->fetch;
	struct lnx_ep *ep = rxe->ep;
	ssize_t ret;

	if (!f->name)
		f->name = lnx_optab_add(&ep->local.copy_ops, rxe);
	if (!f->name)
		return -FI_EAGAIN;
	lnx_list_add_tail(&ep->local.copies, &rxe->link);
	ret = lnx_large_ask_copy(rxe->peer, f->pid, f->op, f->name, wanted(rxe));
	if (!ret) {
		lnx_ep_watch_local(ep);	/* the sender's process may end */
		return 0;
	}
	lnx_list_del(&rxe->link);
	if (ret != -FI_EAGAIN) {
		lnx_optab_del(&ep->local.copy_ops, f->name);
		f->name = 0;
		f->err = ESRCH;
		f->read = true;
	}
	return -FI_EAGAIN;
}

static void finish(struct lnx_rxe *rxe)
{
	int err = rxe->fetch.err;

	if (rxe->discard)
		lnx_rx_release(rxe);
	else if (lnx_unlikely(err))
		lnx_rx_fail(rxe, FI_EIO, err);
	else
		lnx_rx_done(rxe);
}

/*
 * The sender is told first: the application may stop calling us once it has its
 * message.
 */
void lnx_fetch_run(struct lnx_ep *ep)
{
	struct lnx_node stuck, *n;

	lnx_list_init(&stuck);
	ep->work &= ~LNX_WORK_FETCH;
	while ((n = lnx_list_pop(&ep->local.fetches))) {
		struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe, link);
		struct lnx_fetch *f = &rxe->fetch;

		if (!f->read)
			read_memory(rxe, rxe->iov, rxe->niov, wanted(rxe));
		if (lnx_unlikely(!f->read)) {
			if (ask_for_copies(rxe))
				lnx_list_add_tail(&stuck, &rxe->link);
			continue;
		}
		if (lnx_large_fin(rxe->peer, f->pid, f->op, f->err) == -FI_EAGAIN)
			lnx_list_add_tail(&stuck, &rxe->link);
		else
			finish(rxe);
	}
	while ((n = lnx_list_pop(&stuck))) {
		lnx_list_add_tail(&ep->local.fetches, n);
		ep->work |= LNX_WORK_FETCH;
	}
}

/*
 * No receive wants it yet: its sender must not wait for one, and may end.  If it can no
 * longer be read, the receive that comes for it fails.
 */
bool lnx_fetch_keep(struct lnx_rxe *rxe)
{
	struct lnx_fetch *f = &rxe->fetch;
	struct iovec iov = { NULL, rxe->len };

	/* Inserting the sender into the core may find a receive for this. */
	lnx_peer_meet(rxe->peer);
	if (rxe->state != LNX_RXE_UNEX)
		return true;
	rxe->more = true;
	iov.iov_base = malloc(rxe->len);
	if (!iov.iov_base)
		return false;
	read_memory(rxe, &iov, 1, rxe->len);
	/*
	 * A message that needs copies is copied when it is received; its sender waits.
	 */
	if (!f->read || f->err) {
		lnx_list_del(&rxe->link);
		free(iov.iov_base);
		return true;
	}
	if (lnx_large_fin(rxe->peer, f->pid, f->op, 0) == -FI_EAGAIN) {
		f->read = false;
		rxe->since_ns = 0;	/* after another delay */
		free(iov.iov_base);
		return true;
	}
	lnx_list_del(&rxe->link);
	rxe->payload = iov.iov_base;
	rxe->payload_at = LNX_PAYLOAD_COPY;
	rxe->ep->stats.deferred++;
	return true;
}

void lnx_fetch_fail_peer(struct lnx_peer *peer)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&peer->ep->local.copies, n, tmp) {
		struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe, link);

		if (rxe->peer != peer)
			continue;
		lnx_list_del(&rxe->link);
		lnx_optab_del(&peer->ep->local.copy_ops, rxe->fetch.name);
		lnx_rx_fail(rxe, FI_EIO, FI_ECONNRESET);
	}
}

/* The message is discarded with the endpoint. */
void lnx_fetch_refuse(struct lnx_rxe *rxe)
{
	lnx_large_fin(rxe->peer, rxe->fetch.pid, rxe->fetch.op, FI_ECONNABORTED);
}

void lnx_fetch_destroy_all(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->local.fetches)) ||
	       (n = lnx_list_pop(&ep->local.copies)))
		lnx_rxe_put(lnx_list_entry(n, struct lnx_rxe, link));
}
