/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A frame has arrived.  Called by rail/ through ep->up; checks it (wire/hdr), ends what
 * it acknowledges (rel/done.c), puts it in order (rel/seq), and hands it up
 * (ep->up->deliver: msg/arrive.c), or handles it if it is one of the channel's own.
 *
 * Runs inside a core's progress on peer rails: nothing here may call a core.
 */
#include "core/path_set.h"
#include "rail/faults.h"
#include "rail/rail.h"
#include "obj/counting.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/recovery.h"
#include "rel/session.h"
#include "rel/throttle.h"
#include "wire/rails.h"
#include "wire/route.h"

/* One peer may use 1/OOO_SHARE of FI_LNX_REORDER_LIMIT. */
#define OOO_SHARE	16

static inline const uint8_t *frame_payload(const struct lnx_rxbuf *buf)
{
	return buf->frame + sizeof(struct lnx_wire_hdr);
}

/* The hello of a sender that is in no AV of ours has the address to answer to.  Also
 * called for a PROBE with an address, whose sender knows the session's id. */
static LNX_COLD int handle_hello(struct lnx_ep *ep, struct lnx_peer *peer,
				 const struct lnx_hdr *h,
				 struct lnx_rxbuf *buf, size_t payload)
{
	const uint8_t *p = frame_payload(buf);
	struct lnx_rails all;
	struct lnx_addr a;
	char why[128];

	if (!lnx_session_proven(ep, h, p, payload)) {
		ep->stats.key_drops++;
		return -FI_EACCES;
	}
	payload -= lnx_wire_proof_size(h);
	if (lnx_addr_unpack(&a, p, LNX_ADDR_BYTES, why, sizeof(why)) ||
	    a.eid != peer->eid || (payload > LNX_ADDR_BYTES &&
				lnx_rails_unpack(&all, p + LNX_ADDR_BYTES,
						 payload - LNX_ADDR_BYTES))) {
		ep->stats.bad_frames++;
		return 0;
	}
	/* A newer one may have overtaken it on another path. */
	if (h->key && h->key < peer->address.epoch)
		return 0;
	if (payload == LNX_ADDR_BYTES)
		lnx_rails_of_addr(&all, &a);
	if (lnx_peer_learn(peer, &a, &all))
		return -FI_ENOMEM;
	peer->address.epoch = LNX_MAX(peer->address.epoch, h->key);
	return 0;
}

/* Handle one frame that is next in order: as ep->up->deliver. */
LNX_INLINE int handle(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_hdr *h, struct lnx_rxbuf *buf,
		      size_t len)
{
	len -= sizeof(struct lnx_wire_hdr);
	if (lnx_unlikely(h->kind == LNX_KIND_HELLO)) {
		int ret = handle_hello(ep, peer, h, buf, len);

		if (ret >= 0)
			lnx_count_received(buf->rail, lnx_count_came(peer, buf->rail, h),
					   h->kind);
		return ret;
	}
	return ep->up->deliver(peer, h, buf, len);
}

/* A frame of the sequence was taken, and its sender may wait for the acknowledgement. */
static inline void ack_as_asked(struct lnx_ep *ep, struct lnx_peer *peer,
				const struct lnx_hdr *h)
{
	lnx_peer_ack_later(peer);
	if (h->flags & LNX_WIRE_F_ACK_NOW) {
		peer->chan.ack_now = true;
		ep->work |= LNX_WORK_ACK;
	}
}

/* Handle frames that came early and are next now. */
static LNX_COLD void ooo_drain(struct lnx_ep *ep, struct lnx_peer *peer)
{
	struct lnx_rxbuf *buf;

	while ((buf = lnx_seq_pop(&peer->chan.rx))) {
		struct lnx_hdr h;
		int ret;

		buf->kept = false;
		ep->ooo_bytes -= lnx_rxbuf_bytes(buf);
		lnx_hdr_get(&h, buf->frame, buf->len);
		ret = handle(ep, peer, &h, buf, buf->len);
		if (ret < 0) {
			/* Treat it as lost: the sender still has it. */
			lnx_count_drop(buf->rail, peer, &h, buf->len);
			lnx_rxbuf_drop(buf);
			return;
		}
		lnx_seq_advance(&peer->chan.rx);
		ack_as_asked(ep, peer, &h);
		if (!ret)
			lnx_rxbuf_drop(buf);
	}
}

/*
 * Queue a frame that is early.  That takes a buffer of some size, however short it is, and
 * only its sender claims that there is a gap.  If it is dropped it counts as lost.
 */
static bool ooo_keep(struct lnx_ep *ep, struct lnx_peer *peer, const struct lnx_hdr *h,
		     struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_rxbuf *copy = lnx_rxbuf_small(buf, len), *keep = copy ? copy : buf;
	struct lnx_seq *s = &peer->chan.rx;
	size_t limit = ep->conf->reorder_limit;
	size_t size = lnx_rxbuf_bytes(keep);
	size_t need = size + (s->ooo ? 0 : LNX_SEQ_OOO_BYTES);
	int ret = -ENOMEM;

	keep->len = len;

	if (ep->ooo_bytes + need > limit ||
	    (s->n_ooo + 1ul) * size > limit / OOO_SHARE)
		FI_WARN_ONCE(&lnx_prov, FI_LOG_EP_DATA,
			     "peer %016llx: frames out of order are dropped: %u of it and %zu bytes of all wait already (FI_LNX_REORDER_LIMIT)\n",
			     (unsigned long long)peer->eid, s->n_ooo,
			     ep->ooo_bytes);
	else if (copy || lnx_rxbuf_may_keep(buf))
		ret = lnx_seq_ooo_add(s, h->seq, keep);
	if (ret) {
		if (copy)
			lnx_rxbuf_put(copy);
		if (ret == -EEXIST)
			ep->stats.dup_drops++;
		else
			ep->stats.ooo_drops++;
		lnx_count_drop(buf->rail, peer, h, len);
		return false;
	}
	ep->ooo_bytes += need;
	ep->stats.reorders++;
	lnx_rxbuf_keep(keep);
	return !copy;
}

LNX_COLD void lnx_recv_ooo_free(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rxbuf *buf;

	if (!peer->chan.rx.ooo)
		return;
	while ((buf = lnx_seq_drain(&peer->chan.rx))) {
		ep->ooo_bytes -= lnx_rxbuf_bytes(buf);
		lnx_rxbuf_drop(buf);
	}
	lnx_seq_fini(&peer->chan.rx);
	ep->ooo_bytes -= LNX_SEQ_OOO_BYTES;
}

static LNX_COLD bool not_next(struct lnx_ep *ep, struct lnx_peer *peer,
			      const struct lnx_hdr *h, struct lnx_rxbuf *buf, size_t len)
{
	switch (lnx_seq_judge(&peer->chan.rx, h->seq)) {
	case LNX_SEQ_AHEAD:
		/* This is a gap, unless the missing frame comes over another path. */
		if (peer->rx.multipath)
			lnx_peer_ack_later(peer);
		else
			lnx_peer_ack_at_once(peer);
		return ooo_keep(ep, peer, h, buf, len);
	case LNX_SEQ_OLD:
		ep->stats.dup_drops++;
		lnx_peer_ack_at_once(peer);
		break;
	default:
		ep->stats.bad_frames++;
		break;
	}
	lnx_count_drop(buf->rail, peer, h, len);
	return false;
}

static LNX_COLD void bad_frame(struct lnx_rail *rail,
			       const struct lnx_rxbuf *buf, int err, size_t len)
{
	const struct lnx_wire_hdr *w = (const void *)buf->frame;

	rail->ep->stats.bad_frames++;
	lnx_counts_drop(&rail->counts, 0, len);
	if (err == -EPROTONOSUPPORT)
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
			       "rail %s: frame of wire version %u dropped; this library speaks version %d: run the same lnx release on all nodes\n",
			       rail->name, w->version, LNX_WIRE_VERSION);
	else
		FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
			       "rail %s: %zu bytes dropped that are no lnx frame\n",
			       rail->name, len);
}

/* Several PROBEs may come over one path before any of them is answered. */
static void asked(struct lnx_peer *peer, struct lnx_path *path,
		  const struct lnx_hdr *probe)
{
	unsigned about = (unsigned)probe->tag - 1;

	if (about < peer->npath && !(probe->data & LNX_WIRE_PROBE_LATENCY)) {
		peer->path[about]->detect.pong_data = probe->data;
		path->detect.pong_about |= (uint8_t)(1u << about);
	} else {
		path->detect.other_tag = (uint8_t)probe->tag;
		path->detect.other_data = probe->data;
	}
	peer->rx.pong_due |= (uint8_t)(1u << path->index);
}

/* A frame outside the sequence, which came over rail: a leg, if a gateway forwarded it. */
static void control(struct lnx_rail *rail, struct lnx_rxbuf *buf, struct lnx_peer *peer,
		    const struct lnx_hdr *h, size_t len)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_path *path;
	uint32_t i, change, n;

	/* The peer lives, whatever else is wrong. */
	lnx_silence_peer_seen(&peer->liveness);
	if (lnx_unlikely(!peer->watched) && peer->awaited)
		lnx_frame_watch_on(peer);
	lnx_count_received(rail, lnx_count_came(peer, rail, h), h->kind);
	switch (h->kind) {
	case LNX_KIND_ACK:
		ep->stats.acks_recv++;
		lnx_report_read(peer, h);
		lnx_eager_learn(peer, lnx_wire_credit_get(frame_payload(buf), len));
		if (lnx_unlikely(lnx_wire_allowance_get(frame_payload(buf), len, &change, &n)))
			lnx_throttle_learn(peer, change, n);
		break;
	case LNX_KIND_PROBE:
		if (lnx_unlikely(h->key))
			handle_hello(ep, peer, h, buf, LNX_ADDR_BYTES);
		path = lnx_peer_path_back(peer, rail, h->rail);
		if (h->tag && h->tag <= LNX_PATHS_MAX && path) {
			asked(peer, path, h);
			lnx_recovery_probed(path, rail);
			if (path->state == LNX_PATH_DOWN)
				lnx_detect_watch(peer);
			/*
			 * What it asks about may be waiting in a rail without poll
			 * credits.
			 */
			for (i = 0; i < ep->nrail; i++)
				ep->rail[i]->poll_credits = ep->poll_credits;
		}
		/* Its messages may be waiting for that. */
		if (lnx_unlikely(lnx_peer_throttle_of(peer) != NULL))
			lnx_ep_due(ep, LNX_DUE_BACKLOG, 0);
		lnx_peer_ack_at_once(peer);
		break;
	case LNX_KIND_PONG:
		lnx_detect_pong(peer, rail, h);
		break;
	case LNX_KIND_RAIL:
		lnx_link_notice_rx(peer, h);
		break;
	case LNX_KIND_BYE:
		if (h->seq == peer->chan.rx.next)
			lnx_done_peer_ended(peer);
		break;
	default:
		break;
	}
}

LNX_HOT
bool lnx_rel_rx_frame(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_peer *peer;
	struct lnx_hdr h;
	int ret;

	lnx_assert_held(&ep->lock);
	ret = lnx_hdr_get(&h, buf->frame, len);
	if (lnx_unlikely(ret)) {
		if (lnx_route_kind(buf->frame, len))
			return lnx_gateway_rx(rail, buf, len);
		bad_frame(rail, buf, ret, len);
		return false;
	}
	if (lnx_unlikely(ep->fault != NULL)) {
		enum lnx_faults_rx f = lnx_faults_rx(rail, buf, &h, len);

		if (f != LNX_FAULTS_GO)
			return f == LNX_FAULTS_HELD;
	}
	if (lnx_unlikely(h.kind == LNX_KIND_NO_SESSION)) {
		lnx_session_refused(rail, &h);
		return false;
	}
	if (lnx_unlikely(h.dst != ep->eid)) {
		/* Meant for the endpoint that had this address before. */
		lnx_session_misdirected(rail, &h, frame_payload(buf),
					len - sizeof(struct lnx_wire_hdr));
		lnx_count_drop(rail, NULL, &h, len);
		return false;
	}
	peer = lnx_peer_from(ep, h.src);
	if (lnx_unlikely(!peer)) {
		peer = lnx_session_open(rail, &h, frame_payload(buf),
					len - sizeof(struct lnx_wire_hdr));
		if (!peer) {
			lnx_count_drop(rail, NULL, &h, len);
			return false;
		}
	}
	if (lnx_unlikely(lnx_peer_dead(peer))) {
		lnx_session_refuse(peer, rail, &h);
		lnx_count_drop(rail, NULL, &h, len);
		return false;
	}
	lnx_frame_ack(ep, peer, h.ack);
	if (lnx_unlikely(!lnx_wire_kind_sequenced(h.kind))) {
		control(rail, buf, peer, &h, len - sizeof(struct lnx_wire_hdr));
		return false;
	}
	peer->rx.bytes[h.path] += len;
	if (lnx_unlikely(h.path != peer->rx.last_path)) {
		struct lnx_path *back = lnx_peer_path_back(peer, rail, h.rail);

		lnx_count_switch(peer, len);
		peer->rx.last_path = h.path;
		peer->rx.multipath = true;
		peer->rx.path_back = back ? back->index : 0;
	}
	if (lnx_unlikely(h.seq != peer->chan.rx.next))
		return not_next(ep, peer, &h, buf, len);
	ret = handle(ep, peer, &h, buf, len);
	if (lnx_unlikely(ret < 0)) {
		lnx_count_drop(rail, peer, &h, len);
		return false;
	}
	lnx_seq_advance(&peer->chan.rx);
	ack_as_asked(ep, peer, &h);
	if (lnx_unlikely(peer->chan.rx.n_ooo))
		ooo_drain(ep, peer);
	return ret;
}
