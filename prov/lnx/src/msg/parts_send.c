/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends that leave at once in several frames: a PART and its MOREs.  Called by
 * msg/send.c; hands the frames to rel/send.c, with numbers that follow each other.  The
 * payload stays in the application's buffer until the peer has it or it is copied
 * (rel/keep.c); when that is so for all frames, the send completes.
 */
#include "msg/tx.h"

struct parts_send {
	struct lnx_tx_group group;	/* first */
	struct lnx_ep *ep;
	void *context;
	uint64_t cq_flags;
	bool want_comp;
};

const size_t lnx_parts_send_size = sizeof(struct parts_send);

/* Where the next frame begins in the message. */
struct cursor {
	const struct iovec *iov;
	size_t off;
};

/* Point at the next len bytes; returns the number of pieces, which out has room for. */
static unsigned cut(struct cursor *c, size_t len, struct iovec out[LNX_IOV_MAX])
{
	unsigned n = 0;

	while (len) {
		size_t k = LNX_MIN(c->iov->iov_len - c->off, len);

		if (k) {
			out[n].iov_base = (char *)c->iov->iov_base + c->off;
			out[n++].iov_len = k;
		}
		len -= k;
		c->off += k;
		if (c->off == c->iov->iov_len) {
			c->iov++;
			c->off = 0;
		}
	}
	return n;
}

/* Let the frame carry the next len bytes: in place, if the rails take so many pieces.
 * Without memory for a copy: false. */
static struct lnx_txe *carry(struct lnx_ep *ep, struct cursor *c, size_t len,
			     size_t pieces)
{
	struct iovec iov[LNX_IOV_MAX];
	unsigned i, n = cut(c, len, iov);
	bool copy = n > pieces || len <= LNX_TXE_SMALL;
	struct lnx_txe *txe = lnx_txe_get(ep, copy ? len : 0);
	uint8_t *to;

	if (!txe)
		return NULL;
	txe->f.len = sizeof(struct lnx_wire_hdr);
	if (!copy) {
		memcpy(txe->iov, iov, n * sizeof(*iov));
		txe->f.niov = (uint8_t)n;
		return txe;
	}
	to = txe->frame + txe->f.len;
	for (i = 0; i < n; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	txe->f.len += (uint32_t)len;
	return txe;
}

/* How a message is cut: n frames, all but the last one of each bytes. */
struct shares {
	unsigned n;
	size_t each;
};

/*
 * Long frames over tcp are as long as what the kernel sends at once, header included: a frame a
 * little longer costs one packet more, which the receiver is woken up for.  The last one has the
 * rest.  And the receiver copies each while the next one comes.
 */
static struct shares whole_packets(size_t len, size_t max)
{
	struct shares s = { .n = 1, .each = LNX_PACKET_PAYLOAD };

	if (len > max)
		s.n += (unsigned)((len - max + s.each - 1) / s.each);
	else
		s.each = len;
	return s;
}

/* Frames of at most max bytes.  Where some are longer than those that all rails take, they are
 * equal, so that the receiver copies each while the next one comes. */
static struct shares share(size_t len, size_t max)
{
	struct shares s = { .n = (unsigned)((len + max - 1) / max), .each = max };

	if (max == LNX_PAYLOAD_LARGE) {
		struct shares packets = whole_packets(len, max);

		if (packets.n <= LNX_HEAD_MAX)
			return packets;
	}
	if (max > LNX_PAYLOAD_MAX)
		s.each = LNX_MIN(((len + s.n - 1) / s.n + 63) / 64 * 64, max);
	return s;
}

void lnx_tx_group_over(struct lnx_tx_group *group)
{
	struct parts_send *s = lnx_container_of(group, struct parts_send, group);
	struct lnx_ep *ep = s->ep;

	if (group->rndv) {
		lnx_rndv_group_over(group);
		return;
	}
	if (group->err) {
		lnx_ep_op_failed(ep, s->context, s->cq_flags, group->err, group->err);
	} else {
		lnx_cntr_ok(ep, LNX_CNTR_SEND);
		if (s->want_comp)
			lnx_cq_write(ep->tx_cq, s->context, s->cq_flags, 0, NULL, 0,
				     0, FI_ADDR_NOTAVAIL);
	}
	lnx_pool_put(&ep->eager.sends, s);
}

unsigned lnx_parts_make(struct lnx_ep *ep, const struct lnx_announce *a, size_t len,
			const struct lnx_frame_room *room, struct lnx_tx_group *group,
			struct lnx_txe **txe)
{
	struct shares s = share(len, room->payload);
	struct cursor at = { .iov = a->iov };
	unsigned i;

	if (s.n > LNX_HEAD_MAX)
		return 0;
	for (i = 0; i < s.n; i++) {
		size_t bytes = i + 1 < s.n ? s.each : len - i * s.each;

		txe[i] = carry(ep, &at, bytes, room->pieces);
		if (!txe[i])
			break;
		txe[i]->context = group;
		txe[i]->part = true;
	}
	if (i == s.n)
		return s.n;
	while (i)
		lnx_txe_put(ep, txe[--i]);
	return 0;
}

void lnx_parts_queue_more(struct lnx_ep *ep, struct lnx_peer *peer, struct lnx_txe **txe,
			  unsigned n, size_t off, uint8_t last)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		struct lnx_hdr h = {
			.kind = LNX_KIND_MORE, .flags = i + 1 == n ? last : 0,
			.tag = off,
			.len = lnx_txe_bytes(txe[i]) - sizeof(struct lnx_wire_hdr),
		};

		off += h.len;
		lnx_rel_send(ep, peer, txe[i], &h, false);
	}
}

ssize_t lnx_tx_parts(struct lnx_ep *ep, struct lnx_peer *peer,
		     const struct lnx_announce *a, const struct lnx_frame_room *room,
		     bool at_ack)
{
	struct lnx_hdr h = {
		.kind = a->kind, .flags = a->flags, .tag = a->tag, .data = a->data,
		.len = a->len,
	};
	struct lnx_txe *txe[LNX_HEAD_MAX];
	struct parts_send *s = lnx_pool_get(&ep->eager.sends);
	size_t first;
	uint8_t last;
	unsigned i, n;

	if (!s)
		return -FI_EAGAIN;
	n = lnx_parts_make(ep, a, a->len, room, &s->group, txe);
	if (!n) {
		lnx_pool_put(&ep->eager.sends, s);
		return -FI_EAGAIN;
	}
	*s = (struct parts_send) {
		.group.left = n, .ep = ep, .context = a->context,
		.cq_flags = a->cq_flags, .want_comp = a->want_comp,
	};
	lnx_credit_spend(&peer->eager->credit, a->len);
	h.key = lnx_eager_grant(peer);
	last = at_ack ? LNX_WIRE_F_ACK_NOW : lnx_eager_ack_flags(peer, a->len);
	for (i = 0; i < n; i++) {
		if (txe[i]->f.niov && !at_ack)
			txe[i]->keep = LNX_KEEP_MAY;
		txe[i]->f.comp_at_ack = at_ack || txe[i]->f.niov;
	}
	first = lnx_txe_bytes(txe[0]) - sizeof(struct lnx_wire_hdr);
	lnx_rel_send(ep, peer, txe[0], &h, false);
	lnx_parts_queue_more(ep, peer, txe + 1, n - 1, first, last);
	return 0;
}
