/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The upcalls of peer cores into the shared receive queue that we lend them.  Called by
 * a core from inside its progress (or a send, or close) with our owner lock held; calls
 * the matcher, and msg/deliver.c for the rest.
 *
 * Two sets: on the direct rail (shm) the core delivers directly into the application's
 * buffer; on framed rails it only gets frame buffers of ours, so that nothing stays
 * inside the core.
 *
 * get_* must never fail: cores use the entry whatever we return.  If memory is short,
 * framed rails use a drop buffer: a frame in it counts as lost, and its sender still
 * has it.  On the direct rail nothing is sent again; there ep->reserve lasts until the
 * core can be stopped (see end_pass).
 */
#include <stdlib.h>

#include "msg/rx.h"
#include "rail/rail.h"
#include "wire/shm_ctrl.h"

/*
 * The shm core keeps up to 40 KiB for a message that waits, however short it is.  So when
 * that many wait already, it is taken out at once; most programs never have so many.
 */
#define STAY_IN_CORE	16u

static inline struct lnx_rail *srx_rail(struct fid_peer_srx *srx)
{
	return lnx_container_of(srx, struct lnx_rail, peer_srx);
}

static inline struct lnx_rxe *entry_rxe(struct fi_peer_rx_entry *entry)
{
	return lnx_container_of(lnx_peer_entry_in(entry), struct lnx_rxe, pe);
}

/* Set the members that the core reads in an entry that is to receive into iov. */
static inline void entry_arm(struct lnx_rxe *rxe, struct fid_peer_srx *srx,
			     const struct fi_peer_match_attr *attr, bool tagged)
{
	rxe->pe.t.srx = srx;
	rxe->pe.t.addr = attr->addr;
	rxe->pe.t.msg_size = attr->msg_size;
	rxe->pe.t.tag = attr->tag;
	rxe->pe.t.cq_data = 0;
	/* Always request the event; our own report may be suppressed. */
	rxe->pe.t.flags = FI_RECV | FI_COMPLETION |
			  (tagged ? FI_TAGGED : FI_MSG);
	rxe->pe.t.context = rxe;
	rxe->pe.t.count = rxe->niov;
	rxe->pe.t.iov = rxe->iov;
	rxe->pe.t.desc = rxe->desc;
	rxe->core_done = false;
}

static LNX_COLD int lost(struct lnx_rail *rail, size_t len)
{
	rail->ep->stats.lost++;
	LNX_WARN(FI_LOG_EP_DATA,
		 "rail %s: no memory for a message of %zu bytes: it is lost\n",
		 rail->name, len);
	return -FI_ENOMEM;
}

/*
 * Progress finds out which peer it may be, for its later messages, and for this one if
 * it waits.
 */
static LNX_COLD void unknown_source(struct lnx_ep *ep)
{
	ep->local.unknown_source = true;
	ep->work |= LNX_WORK_LEARN;
}

static LNX_COLD int get_unexpected(struct fid_peer_srx *srx, struct lnx_peer *peer,
				   struct fi_peer_match_attr *attr, bool tagged,
				   struct fi_peer_rx_entry **out)
{
	struct lnx_rail *rail = srx_rail(srx);
	struct lnx_rxe *rxe = lnx_rxe_get_last(rail->ep);

	if (!rxe)
		return lost(rail, attr->msg_size);
	rxe->state = LNX_RXE_OFFERED;
	rxe->refused = false;
	rxe->payload_at = LNX_PAYLOAD_CORE;
	rxe->tagged = tagged;
	rxe->peer = peer;
	rxe->tag = attr->tag;
	rxe->len = attr->msg_size;
	rxe->niov = 1;
	entry_arm(rxe, srx, attr, tagged);
	rail->ep->stats.unexpected++;
	*out = lnx_peer_entry_out(&rxe->pe);
	return -FI_ENOENT;
}

/* A core must never truncate: shm can crash or spin doing so. */
static LNX_COLD int get_truncated(struct lnx_rxe *rxe,
				  struct fi_peer_rx_entry **out)
{
	*out = lnx_peer_entry_out(&rxe->pe);
	rxe->waiting = true;
	rxe->more = true;
	rxe->payload = malloc(rxe->len);
	if (!rxe->payload) {
		rxe->state = LNX_RXE_OFFERED;
		return -FI_ENOENT;	/* direct_queue defers it */
	}
	rxe->payload_at = LNX_PAYLOAD_BOUNCE;
	rxe->starting = true;
	lnx_rx_arm_bounce(rxe);
	lnx_rxe_own(rxe);
	return 0;
}

/*
 * A control message or copy of ours, going by its tag and length; lnx_rx_shm_ctrl checks
 * whether it is one.  Cores copy such short messages at once, so one buffer is enough.
 *
 * It is handled when the core's pass has ended if it may take an entry itself and there are
 * few; and if its source is unknown: earlier messages of the same sender may be stored without
 * a source, which would be passed over.  Then nothing follows it in this pass.
 */
static LNX_COLD int get_ctrl(struct fid_peer_srx *srx, struct lnx_peer *peer,
			     struct fi_peer_match_attr *attr,
			     struct fi_peer_rx_entry **out)
{
	struct lnx_rail *rail = srx_rail(srx);
	struct lnx_rxe *rxe = lnx_rxe_get_last(rail->ep);

	if (!rxe)
		return lost(rail, attr->msg_size);
	rxe->payload_at = LNX_PAYLOAD_SHM_CTRL;
	rxe->tagged = true;
	rxe->tag = attr->tag;
	rxe->len = attr->msg_size;
	rxe->peer = peer;
	rxe->niov = 1;
	rxe->iov[0].iov_base = rail->ctrl_buf;
	rxe->iov[0].iov_len = attr->msg_size;
	entry_arm(rxe, srx, attr, true);
	*out = lnx_peer_entry_out(&rxe->pe);
	if (lnx_likely(peer && rail->ep->nreserve >= LNX_RXE_LOW))
		return 0;
	rxe->state = LNX_RXE_OFFERED;
	return -FI_ENOENT;
}

LNX_INLINE int direct_get(struct fid_peer_srx *srx,
			  struct fi_peer_match_attr *attr, bool tagged,
			  struct fi_peer_rx_entry **out)
{
	struct lnx_rail *rail = srx_rail(srx);
	struct lnx_ep *ep = rail->ep;
	struct lnx_peer *peer = lnx_rail_peer(rail, attr->addr);
	uint64_t src = peer ? peer->addr : FI_ADDR_UNSPEC;
	struct lnx_rxe *rxe;

	lnx_assert_held(&ep->lock);
	if (lnx_unlikely(!peer))
		unknown_source(ep);
	if (tagged && lnx_unlikely(lnx_shm_ctrl_may_be(attr->tag, attr->msg_size)))
		return get_ctrl(srx, peer, attr, out);
	ep->stats.direct_recvs++;
	ep->stats.direct_recv_length += attr->msg_size;
	rxe = lnx_rx_take(ep, tagged, src, tagged ? attr->tag : 0,
			  attr->msg_size);
	if (lnx_unlikely(!rxe))
		return get_unexpected(srx, peer, attr, tagged, out);

	rxe->state = LNX_RXE_ACTIVE;
	rxe->payload_at = LNX_PAYLOAD_CORE;
	rxe->peer = peer;
	rxe->tag = attr->tag;
	rxe->len = attr->msg_size;
	entry_arm(rxe, srx, attr, tagged);
	ep->stats.matched++;
	if (lnx_unlikely(attr->msg_size > rxe->room))
		return get_truncated(rxe, out);
	*out = lnx_peer_entry_out(&rxe->pe);
	return 0;
}

LNX_HOT
static int direct_get_msg(struct fid_peer_srx *srx,
			  struct fi_peer_match_attr *attr,
			  struct fi_peer_rx_entry **out)
{
	return direct_get(srx, attr, false, out);
}

LNX_HOT
static int direct_get_tag(struct fid_peer_srx *srx,
			  struct fi_peer_match_attr *attr,
			  struct fi_peer_rx_entry **out)
{
	return direct_get(srx, attr, true, out);
}

/*
 * A core goes on as long as there are messages, and each takes an entry from the
 * reserve.  An error ends its pass: shm keeps the message anyway, and only frees the
 * entry, which is ignored.  Other cores may behave differently.
 */
static LNX_COLD int end_pass(struct lnx_rxe *rxe)
{
	if (srx_rail(rxe->pe.t.srx)->prov != LNX_PROV_SHM)
		return 0;
	rxe->refused = true;
	return -FI_EAGAIN;
}

/* To be taken out of the core? */
static inline bool crowded(const struct lnx_rxe *rxe)
{
	const struct lnx_match *m = lnx_rx_stored(rxe->ep, rxe->tagged);

	return lnx_unlikely(lnx_match_nunex(m) > STAY_IN_CORE) &&
	       rxe->len <= LNX_INJECT_MAX && rxe->peer &&
	       srx_rail(rxe->pe.t.srx)->prov == LNX_PROV_SHM &&
	       rxe->ep->nreserve >= LNX_RXE_LOW;
}

/* The core keeps the message until we start it; cq_data is valid from here. */
static int direct_queue(struct fi_peer_rx_entry *entry)
{
	struct lnx_rxe *rxe = entry_rxe(entry);
	struct lnx_ep *ep = rxe->ep;

	if (rxe->pe.t.flags & FI_REMOTE_CQ_DATA) {
		rxe->data = rxe->pe.t.cq_data;
		rxe->cq_flags |= FI_REMOTE_CQ_DATA;
	}
	if (lnx_unlikely(rxe->waiting)) {
		rxe->state = LNX_RXE_ACTIVE;
		lnx_rx_defer(rxe);
		return 0;
	}
	rxe->state = LNX_RXE_UNEX;
	if (lnx_unlikely(rxe->payload_at == LNX_PAYLOAD_SHM_CTRL)) {
		/* First of all: others came before, or must not take the memory. */
		rxe->more = true;
		lnx_list_add_head(&ep->deferred, &rxe->link);
		ep->work |= LNX_WORK_DEFER;
		return end_pass(rxe);
	}
	rxe->unex.m.src = rxe->peer ? rxe->peer->addr : FI_ADDR_UNSPEC;
	rxe->unex.m.tag = rxe->tagged ? rxe->tag : 0;
	lnx_rx_store(rxe);
	if (crowded(rxe)) {
		lnx_rx_copy_out(rxe);
		return 0;
	}
	/*
	 * Large messages block the sender's later completions: do not leave them for
	 * long.
	 */
	if (rxe->len > LNX_INJECT_MAX)
		lnx_rx_defer(rxe);
	return lnx_unlikely(ep->nreserve < LNX_RXE_LOW) ? end_pass(rxe) : 0;
}

static void direct_foreach_unspec(struct fid_peer_srx *srx,
				  fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct lnx_rail *rail = srx_rail(srx);
	struct lnx_ep *ep = rail->ep;
	struct lnx_rxe *ctrl = lnx_rx_ctrl_waits(ep);
	struct lnx_node *n, left;

	/* lnx_rx_ctrl_run asks which peer that is. */
	if (ctrl && !ctrl->peer && ctrl->pe.t.srx == srx)
		ctrl->pe.t.addr = get_addr(lnx_peer_entry_out(&ctrl->pe));
	lnx_list_init(&left);
	lnx_list_splice(&left, &ep->local.nameless);
	while ((n = lnx_list_pop(&left))) {
		struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe, unex.of_peer);
		struct lnx_peer *peer;

		lnx_list_add_tail(&ep->local.nameless, n);
		if (rxe->payload_at != LNX_PAYLOAD_CORE || rxe->pe.t.srx != srx)
			continue;
		rxe->pe.t.addr = get_addr(lnx_peer_entry_out(&rxe->pe));
		peer = lnx_rail_peer(rail, rxe->pe.t.addr);
		if (!peer)
			continue;
		lnx_rx_set_peer(rxe, peer);
		/*
		 * Matching it may start it, which is a call into the core: this runs
		 * inside fi_av_insert, where cores allow that.
		 */
		if (peer->addr != FI_ADDR_NOTAVAIL)
			lnx_rx_source_resolved(ep, &rxe->unex, peer->addr);
	}
}

/* The core had no memory to keep the message: it is lost. */
static LNX_COLD void not_queued(struct lnx_rxe *rxe)
{
	rxe->core_done = true;
	lost(srx_rail(rxe->pe.t.srx), rxe->len);
	if (rxe->waiting)
		lnx_rx_fail(rxe, FI_ENOMEM, FI_ENOMEM);
	else
		lnx_rxe_put(rxe);
}

/* The core releases a message that no receive was waiting for. */
static LNX_COLD void free_waiting(struct lnx_rxe *rxe)
{
	switch (rxe->state) {
	case LNX_RXE_OFFERED:
		not_queued(rxe);
		break;
	case LNX_RXE_UNEX:
		if (rxe->refused) {
			rxe->refused = false;
			break;
		}
		rxe->core_done = true;
		/* Closing, or lost inside the core: nothing can start it now. */
		if (rxe->payload_at == LNX_PAYLOAD_CORE) {
			lnx_rx_unstore(rxe);
			lnx_list_del(&rxe->link);
			lnx_rxe_put(rxe);
		}
		break;
	case LNX_RXE_CLAIMED:
		rxe->core_done = true;
		if (rxe->payload_at == LNX_PAYLOAD_CORE)
			rxe->payload_at = LNX_PAYLOAD_NONE;
		break;
	default:
		break;
	}
}

/*
 * The core has finished with the entry.  Called at most once for a good message, at any
 * time for bad ones; the state tells what is left to do.
 */
LNX_HOT
static void direct_free(struct fi_peer_rx_entry *entry)
{
	struct lnx_rxe *rxe = entry_rxe(entry);

	if (lnx_unlikely(rxe->state != LNX_RXE_ACTIVE)) {
		free_waiting(rxe);
		return;
	}
	rxe->core_done = true;
	if (rxe->reported)
		lnx_rxe_put(rxe);
}

struct fi_ops_srx_owner lnx_direct_srx_ops = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = direct_get_msg,
	.get_tag = direct_get_tag,
	.queue_msg = direct_queue,
	.queue_tag = direct_queue,
	.foreach_unspec_addr = direct_foreach_unspec,
	.free_entry = direct_free,
};

/*
 * Framed rails: everything that comes gets a frame buffer.  A message longer than any
 * frame is not ours: it gets scratch memory, so that the core need not truncate, and is
 * dropped on arrival.
 */
LNX_HOT
static int framed_get(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		      struct fi_peer_rx_entry **out)
{
	struct lnx_rail *rail = srx_rail(srx);
	struct lnx_rxbuf *buf = lnx_rxbuf_get(rail);

	lnx_assert_held(&rail->ep->lock);
	buf->iov.iov_base = buf->frame;
	buf->iov.iov_len = rail->ep->limits.rx_frame;
	if (lnx_unlikely(attr->msg_size > rail->ep->limits.rx_frame))
		lnx_rxbuf_enlarge(buf, attr->msg_size);
	buf->pe.t.srx = srx;
	buf->pe.t.addr = attr->addr;
	buf->pe.t.msg_size = LNX_MIN(attr->msg_size, buf->iov.iov_len);
	buf->pe.t.tag = attr->tag;
	buf->pe.t.cq_data = 0;
	buf->pe.t.flags = FI_RECV | FI_MSG | FI_COMPLETION;
	buf->pe.t.context = buf;
	buf->pe.t.count = 1;
	buf->pe.t.iov = &buf->iov;
	buf->pe.t.desc = buf->desc;
	buf->in_core = true;
	*out = lnx_peer_entry_out(&buf->pe);
	return 0;
}

static int framed_queue(struct fi_peer_rx_entry *entry)
{
	(void)entry;			/* get_* always finds a match */
	return 0;
}

static void framed_foreach_unspec(struct fid_peer_srx *srx,
				  fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	(void)srx;			/* the header has the sender */
	(void)get_addr;
}

static void framed_free(struct fi_peer_rx_entry *entry)
{
	struct lnx_rxbuf *buf = lnx_container_of(lnx_peer_entry_in(entry),
						 struct lnx_rxbuf, pe);

	buf->in_core = false;
	if (!buf->kept)
		lnx_rxbuf_put(buf);
}

struct fi_ops_srx_owner lnx_framed_srx_ops = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = framed_get,
	.get_tag = framed_get,
	.queue_msg = framed_queue,
	.queue_tag = framed_queue,
	.foreach_unspec_addr = framed_foreach_unspec,
	.free_entry = framed_free,
};
