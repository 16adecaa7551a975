/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Framed sends of messages.  Called by msg/submit.h; puts the payload into a frame, or
 * announces it (msg/rndv.c), and hands that to rel/send.c.
 */
#include "base/interval.h"
#include "msg/confirm.h"
#include "msg/rx.h"
#include "msg/submit.h"
#include "msg/tx.h"
#include "rail/direct.h"
#include "rail/leg.h"
#include "rail/routed_read.h"

/* Longer messages to a peer that throttles us are announced, so that it need not store them. */
#define THROTTLED_MAX	4096u

/* The longest one that is sent at once in frames that are not the longest: the core, whose
 * buffers are that short, copies each of them as well, and then it is sooner to read it. */
#define SHORT_FRAMES_MAX	(128u * 1024)
/* So many times FI_LNX_EAGER_LIMIT is the most of an announced one that leaves at once. */
#define HEAD_MOST	4u
/* A faster link brings frames as fast as the receiver copies them. */
#define HEAD_BPS_MAX	10000000000u

/* Passes to wait for credit. */
#define CREDIT_TRIES	64u

/* How long may a frame be that is made for that path?  A gateway that has said nothing yet may have
 * rails that carry no long ones. */
static inline uint32_t frame_max_of(const struct lnx_path *path)
{
	struct lnx_rail *rail = path->rail;
	uint32_t max;

	if (lnx_likely(!lnx_rail_is_leg(rail)))
		return rail->frame_max;
	max = lnx_leg_frame_max(lnx_container_of(rail, struct lnx_leg, rail), path->core_addr);
	return max ? max : LNX_FRAME_MAX;
}

static bool is_routed(const struct lnx_peer *peer)
{
	return lnx_unlikely(peer->npath && lnx_rail_is_leg(peer->path[0]->rail));
}

static bool throttled(const struct lnx_peer *peer)
{
	return lnx_unlikely(peer->chan.flags & LNX_CHAN_THROTTLED);
}

/* Frames fit all paths, since each may have to leave over any of them. */
static struct lnx_frame_room room_of(const struct lnx_peer *peer)
{
	size_t bytes = lnx_likely(peer->npath) ? LNX_FRAME_LARGE : LNX_FRAME_MAX;
	size_t pieces = 1 + LNX_IOV_MAX;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		bytes = LNX_MIN(bytes, frame_max_of(path));
		pieces = LNX_MIN(pieces, path->rail->info->tx_attr->iov_limit);
	}
	return (struct lnx_frame_room){
		.payload = bytes - sizeof(struct lnx_wire_hdr),
		.pieces = pieces ? pieces - 1 : 0,
	};
}

/*
 * A sender that is faster than the receiver has no credit until the next acknowledgement,
 * which is about to come.  If none comes, or it brings none, the receiver stores what came:
 * then there is nothing to wait for until it grants more.
 */
static LNX_COLD bool wait_for_credit(struct lnx_ep *ep, struct lnx_peer *peer, size_t len)
{
	fi_addr_t dest = peer->addr;
	unsigned i;

	if (peer->eager->none_soon)
		return false;
	for (i = 0; i < CREDIT_TRIES && !lnx_chan_idle(&peer->chan); i++) {
		lnx_obj_progress_all(ep);
		/* Its session may have ended meanwhile. */
		if (lnx_peer_get(ep, dest) != peer || lnx_peer_dead(peer))
			return false;
		if (lnx_credit_has(&peer->eager->credit, len))
			return true;
	}
	peer->eager->none_soon = true;
	return false;
}

/*
 * Do several rails share it?  Then it is announced, and read in pieces: that is sooner, and a
 * sick rail holds up what it carries and no more (msg/hedge.c).  Frames come in order: one
 * that is late holds up all behind it.
 */
static bool is_shared(const struct lnx_peer *peer, size_t len)
{
	return lnx_unlikely(peer->npath > 1) && lnx_bits(peer->stripe) > 1 &&
	       len >= peer->ep->conf->stripe_threshold;
}

static size_t most_at_once(const struct lnx_frame_room *room)
{
	size_t most = LNX_PARTS_MAX * room->payload;

	return room->payload < LNX_PAYLOAD_LARGE - LNX_ROUTE_HEAD ?
		LNX_MIN(most, SHORT_FRAMES_MAX) : most;
}

/* May so long a message be sent at once? */
static bool at_once(struct lnx_ep *ep, struct lnx_peer *peer, size_t len,
		    const struct lnx_frame_room *room)
{
	return peer->eager && peer->eager->credit.limit && !throttled(peer) &&
	       !is_shared(peer, len) &&
	       len <= ep->conf->eager_limit && len <= most_at_once(room) &&
	       (lnx_credit_has(&peer->eager->credit, len) ||
		wait_for_credit(ep, peer, len));
}

/*
 * A message to a peer behind gateways that would leave in one frame, but for credit.  It is less
 * work for them, and mostly sooner, to wait for more credit than to announce it: then it goes over
 * them in many steps, of which each takes its turn.  True: it waits, at the caller's.  Not longer
 * than it takes a peer that computes a little: if too little is granted meanwhile, messages are
 * announced until there is enough for the longest that waited.
 */
static LNX_COLD bool waits_for_gateway(const struct lnx_peer *peer, size_t len,
				       const struct lnx_frame_room *room)
{
	struct lnx_peer_eager *e = peer->eager;
	uint64_t now;

	/* One that has never granted more may compute from the start. */
	if (!e || !e->granted_more || throttled(peer) ||
	    is_shared(peer, len) || len > room->payload || len > peer->ep->conf->eager_limit ||
	    lnx_credit_has(&e->credit, len))
		return false;
	now = lnx_clock_ns();
	if (!e->waits_ns)
		e->waits_ns = now;
	e->waits_len = LNX_MAX(e->waits_len, (uint32_t)len);
	return lnx_ns_since(now, e->waits_ns) < LNX_ROUTED_CREDIT_NS;
}

/*
 * Is a byte on its way for no longer than the receiver copies it?  Links whose speed is not
 * known are taken to be slow.
 */
static bool moves_fast(const struct lnx_peer *peer)
{
	return peer->same_host || peer->path[0]->link_bps > HEAD_BPS_MAX;
}

/* How much of a message leaves with its RTS to a peer behind gateways: as much of one frame as there
 * is credit for, since what is read goes over the gateways in more steps.  Not more than one: few
 * frames may be under way there, and messages behind it wait for them.  The last credit is for
 * messages that are sent at once. */
static LNX_COLD size_t routed_head(const struct lnx_peer *peer, size_t len,
				   const struct lnx_frame_room *room)
{
	uint64_t once = peer->ep->conf->eager_limit;
	uint64_t left = lnx_credit_left(&peer->eager->credit);
	size_t head;

	if (len > once && left > once)
		left -= once;
	head = (size_t)LNX_MIN(left, (uint64_t)room->payload);
	if (head >= len)
		return len;
	return head / LNX_ROUTED_UNIT * LNX_ROUTED_UNIT;
}

/* As much as a socket may hold, where frames are long, for as long as there is credit. */
static size_t frames_head(const struct lnx_ep *ep, const struct lnx_peer *peer, size_t len,
			  const struct lnx_frame_room *room)
{
	uint64_t once = ep->conf->eager_limit, left = lnx_credit_left(&peer->eager->credit);
	size_t head = room->payload;

	if (head == LNX_PAYLOAD_LARGE && left >= head + once && !moves_fast(peer))
		head = LNX_MIN(LNX_MIN(left - once, HEAD_MOST * once),
			       LNX_HEAD_MAX * head);
	return head <= left ? LNX_MIN(head, len) : 0;
}

/* No large message of ours is under way to a peer with several paths. */
static bool is_lone(const struct lnx_peer *peer, size_t len)
{
	return peer->choice && !peer->nrndv && is_shared(peer, len);
}

/*
 * How much of a message that is announced leaves with the RTS.  Where frames are long, as much
 * as a socket may hold: the kernels move it while the receiver's program computes, which reads
 * nothing then.  What comes in frames is copied once more than what is read, so not where that
 * copy takes longer than the way.  Else one frame, which is under way while the receiver begins
 * to read.  With several paths none: its pieces go over all of them, unless it is alone and
 * sooner there in frames (policy/lone.h).  The last credit is for messages that are sent at
 * once.
 */
static size_t head_of(const struct lnx_ep *ep, const struct lnx_peer *peer, size_t len,
		      const struct lnx_frame_room *room)
{
	if (!peer->eager || throttled(peer) || room->payload > ep->conf->eager_limit)
		return 0;
	if (peer->npath != 1 && (!is_lone(peer, len) ||
				 lnx_lone_next(&peer->choice->lone, len) != LNX_LONE_FRAMES))
		return 0;
	if (is_routed(peer) && room->payload > LNX_PAYLOAD_MAX)
		return routed_head(peer, len, room);
	return frames_head(ep, peer, len, room);
}

/* A message that is more than one frame. */
static ssize_t send_long(struct lnx_ep *ep, struct lnx_peer *peer,
			 const struct lnx_tx *tx, size_t len, uint64_t cq_flags,
			 bool data, const struct lnx_frame_room *room, bool eager)
{
	bool tagged = lnx_call_tagged(tx->call);
	struct lnx_announce a = {
		.flags = data ? LNX_WIRE_F_DATA : 0, .tag = tx->tag,
		.data = tx->data, .iov = tx->iov, .niov = tx->niov,
		.len = len, .context = tx->context, .cq_flags = cq_flags,
		.want_comp = (tx->op_flags & FI_COMPLETION) != 0,
	};
	ssize_t ret;

	if (eager) {
		a.kind = tagged ? LNX_KIND_PART_TAG : LNX_KIND_PART_MSG;
		ret = lnx_tx_parts(ep, peer, &a, room,
				   (tx->op_flags & LNX_LEVELS) != 0);
	} else {
		a.kind = tagged ? LNX_KIND_RTS_TAG : LNX_KIND_RTS_MSG;
		a.head = head_of(ep, peer, len, room);
		a.lone = is_lone(peer, len);
		a.room = *room;
		ret = lnx_rndv_announce(ep, peer, &a);
	}
	if (!ret) {
		ep->stats.send_count++;
		ep->stats.send_length += len;
	}
	return ret;
}

/* The payload stays where it is, until the peer has it or it is copied. */
static void refer(struct lnx_peer *peer, struct lnx_txe *txe, const struct lnx_tx *tx,
		  size_t len, struct lnx_hdr *h)
{
	memcpy(txe->iov, tx->iov, tx->niov * sizeof(*tx->iov));
	txe->f.niov = (uint8_t)tx->niov;
	txe->f.len = sizeof(struct lnx_wire_hdr);
	if (!txe->f.comp_at_ack) {
		h->flags |= lnx_eager_ack_flags(peer, len);
		/* Without memory to note copies in, there is none. */
		txe->keep = peer->eager ? LNX_KEEP_MAY : LNX_KEEP_NO;
	}
	txe->f.comp_at_ack = true;
}

LNX_HOT
ssize_t lnx_msg_send(struct lnx_ep *ep, struct lnx_peer *peer,
		      const struct lnx_tx *tx)
{
	bool tagged = lnx_call_tagged(tx->call);
	bool data = lnx_call_data(tx->call) ||
		    (tx->op_flags & FI_REMOTE_CQ_DATA);
	uint64_t cq_flags = FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
	bool no_queue, inject, copied, large = false;
	struct lnx_frame_room room;
	struct lnx_hdr h;
	struct lnx_txe *txe;
	ssize_t ret;
	size_t len;

	if (lnx_unlikely(!peer || !peer->npath || lnx_peer_dead(peer))) {
		ret = lnx_rel_find(ep, tx->dest, &peer);
		if (ret)
			return ret;
	}
	/* A local peer that was made only now, or has sends queued. */
	if (lnx_unlikely(peer->shm_addr != FI_ADDR_NOTAVAIL)) {
		if (peer->shm.ctrl && lnx_msg_is_large(tx)) {
			ret = lnx_large_send(ep, peer, tx);
		} else if ((tx->op_flags & FI_DELIVERY_COMPLETE) &&
			   (!lnx_call_inject(tx->call) ||
			    ep->cntr[LNX_CNTR_SEND])) {
			ret = lnx_confirm_send(ep, peer, tx);
		} else {
			ret = peer->shm.nqueued ? -FI_EAGAIN :
			      lnx_direct_post(ep->shm->core_ep, peer->shm_addr,
					      tx, NULL);
			if (ret == -FI_EAGAIN)
				ret = lnx_direct_retry(ep, peer, tx);
		}
		if (!ret) {
			ep->stats.direct_sends++;
			ep->stats.direct_send_length +=
				lnx_msg_iov_len(tx->iov, tx->niov);
		}
		return ret;
	}
	len = lnx_msg_iov_len(tx->iov, tx->niov);
	if (lnx_unlikely(len > ep->limits.max_msg_size))
		return -FI_EMSGSIZE;
	if (lnx_unlikely((tx->op_flags & FI_INJECT) && len > ep->inject_size))
		return -FI_EINVAL;
	if (lnx_unlikely(peer->self)) {
		ret = lnx_rx_copy(ep, peer, tagged, tx->tag, tx->data,
				  data ? LNX_WIRE_F_DATA : 0, tx->iov,
				  tx->niov, len);
		if (ret)
			return ret;
		lnx_cntr_ok(ep, LNX_CNTR_SEND);
		if (tx->op_flags & FI_COMPLETION)
			lnx_cq_write(ep->tx_cq, tx->context, cq_flags, 0, NULL,
				     0, 0, FI_ADDR_NOTAVAIL);
		return 0;
	}
	ret = lnx_rel_room(ep, peer, lnx_call_inject(tx->call) ? FI_INJECT :
							  tx->op_flags,
		    &no_queue);
	if (lnx_unlikely(ret))
		return ret;
	inject = lnx_call_inject(tx->call) || (tx->op_flags & FI_INJECT);
	if (lnx_unlikely((len > ep->limits.eager ||
			  (throttled(peer) && len > THROTTLED_MAX)) && !inject)) {
		room = room_of(peer);
		large = at_once(ep, peer, len, &room);
		if (lnx_unlikely(lnx_peer_get(ep, tx->dest) != peer || lnx_peer_dead(peer)))
			return -FI_EAGAIN;
		/* A path may have been added meanwhile. */
		room = room_of(peer);
		if (!large && is_routed(peer) && waits_for_gateway(peer, len, &room))
			return -FI_EAGAIN;
		if (!large || len > room.payload)
			return send_long(ep, peer, tx, len, cq_flags, data, &room,
					 large);
	}
	copied = lnx_likely(len <= ep->limits.copy) || inject;
	if (lnx_unlikely(!copied))
		copied = tx->niov > room_of(peer).pieces;
	txe = lnx_txe_get(ep, copied ? len : 0);
	if (lnx_unlikely(!txe))
		return -FI_EAGAIN;
	lnx_txe_message(ep, txe, tx->context, cq_flags, lnx_call_inject(tx->call),
			(tx->op_flags & FI_COMPLETION) != 0);
	/* An inject that is not counted ends unseen, at any time. */
	txe->f.comp_at_ack = (tx->op_flags & LNX_LEVELS) && txe->matters;
	h.flags = (data ? LNX_WIRE_F_DATA : 0) |
		  (txe->f.comp_at_ack ? LNX_WIRE_F_ACK_NOW : 0);
	h.key = 0;
	if (copied) {
		lnx_msg_iov_get(txe->frame + sizeof(struct lnx_wire_hdr), tx->iov,
				tx->niov);
		txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + len);
	} else {
		refer(peer, txe, tx, len, &h);
	}
	h.kind = tagged ? LNX_KIND_TAG : LNX_KIND_MSG;
	h.tag = tx->tag;
	h.data = tx->data;
	h.len = len;
	if (lnx_unlikely(large))
		h.key = lnx_eager_grant(peer);
	ret = lnx_rel_send(ep, peer, txe, &h, no_queue);
	if (lnx_unlikely(ret)) {
		lnx_txe_put(ep, txe);
		return ret;
	}
	if (lnx_unlikely(large))
		lnx_credit_spend(&peer->eager->credit, len);
	ep->stats.send_count++;
	ep->stats.send_length += len;
	return 0;
}
