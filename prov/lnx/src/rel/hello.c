/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Our end of the beginning of a session: the peer is found or made, and our HELLO is its
 * first frame.  Later HELLOs tell it that our address has changed.  rel/session.c has the
 * peer's end.
 */
#include "core/open.h"
#include "rel/admin.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/session.h"

/* ---- the peer ---- */

/* Peers to which no path works, and look-ups that failed. */
static LNX_COLD ssize_t find_cold(struct lnx_ep *ep, fi_addr_t dest,
				  struct lnx_peer **peer)
{
	struct lnx_peer *before = NULL;
	int err;

	*peer = lnx_peer_get(ep, dest);
	if (*peer && lnx_peer_dead(*peer)) {
		if (!lnx_peer_may_begin(*peer, lnx_clock_ns()))
			return (*peer)->session.key_refused ? -FI_EACCES :
						      -FI_EHOSTUNREACH;
		before = *peer;
		lnx_peer_detach(before);
	}
	*peer = lnx_peer_make(ep, dest, &err);
	if (!*peer)
		return err == -FI_ENOMEM ? -FI_EAGAIN : err;
	if (before) {
		lnx_session_follows(*peer, before);
		lnx_peer_inherit(*peer, before);
	}
	if ((*peer)->shm_addr != FI_ADDR_NOTAVAIL || (*peer)->self)
		return 0;
	if (!(*peer)->npath)
		return -FI_EHOSTUNREACH;
	return 0;
}

ssize_t lnx_rel_find(struct lnx_ep *ep, fi_addr_t dest, struct lnx_peer **peer)
{
	*peer = lnx_peer_get(ep, dest);
	if (lnx_likely(*peer && (*peer)->npath && !lnx_peer_dead(*peer)))
		return 0;
	return find_cold(ep, dest, peer);
}

/* ---- HELLO ---- */

/* Our next frame to peer, a HELLO, and its header.  It must be numbered before any other.
 * NULL: memory is short. */
static LNX_COLD struct lnx_txe *make(struct lnx_peer *peer, struct lnx_hdr *h)
{
	struct lnx_ep *ep = peer->ep;
	uint8_t what[LNX_HELLO_BYTES];
	size_t len = lnx_ep_hello(ep, what), proof;
	struct lnx_txe *txe;

	*h = (struct lnx_hdr){
		.kind = LNX_KIND_HELLO, .key = ep->address.epoch,
		.flags = ep->domain->job_key ? LNX_WIRE_F_KEYED : 0,
		.tag = peer->session.stamp, .src = peer->sid,
		.data = peer->rx_sid ? peer->rx_sid : peer->session.named,
		.dst = peer->eid, .seq = peer->chan.next,
	};
	proof = lnx_wire_proof_size(h);
	txe = lnx_txe_get(ep, len + proof);
	if (!txe)
		return NULL;
	memcpy(txe->frame + sizeof(struct lnx_wire_hdr), what, len);
	txe->f.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + len + proof);
	if (proof) {
		lnx_hdr_put(lnx_txe_hdr(txe), h);
		lnx_session_prove(peer, txe, 0);
	}
	return txe;
}

/* How many frames may be under way: a gateway stores no more of them than it grants. */
static uint32_t window_of(const struct lnx_peer *peer)
{
	uint32_t window = peer->ep->limits.window;
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (lnx_rail_is_leg(peer->path[i]->rail))
			return LNX_MIN(window, LNX_ROUTED_WINDOW);
	return window;
}

LNX_COLD void lnx_hello_window(struct lnx_peer *peer)
{
	/* Not above what it has been: the table of frames may be as large as that. */
	peer->chan.window = (uint16_t)LNX_MIN(peer->chan.window, window_of(peer));
}

LNX_COLD int lnx_hello_start(struct lnx_peer *peer, bool later)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_txe *txe;
	struct lnx_hdr h;

	if (lnx_chan_open(&peer->chan, window_of(peer)))
		return -FI_ENOMEM;
	if (lnx_unlikely(ep->admin.any))
		lnx_admin_peer(peer, lnx_clock_ns());
	txe = make(peer, &h);
	if (!txe)
		return -FI_ENOMEM;
	peer->hello_done = true;
	lnx_address_ack_hello(peer);
	if (later) {
		lnx_send_line_up(ep, peer, txe, &h);
		return 0;
	}
	return lnx_rel_send(ep, peer, txe, &h, false);
}

static LNX_COLD void tell_again(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_txe *txe;
	struct lnx_hdr h;

	if (!lnx_peer_open(peer) || peer->self || !peer->npath)
		return;
	/* For a peer that only sends to us it is the first one. */
	if (!peer->hello_done) {
		lnx_hello_start(peer, false);
		return;
	}
	txe = make(peer, &h);
	if (!txe)
		return;			/* they find out that the old one is dead */
	lnx_address_ack_hello(peer);
	if (lnx_rel_send(ep, peer, txe, &h, false))
		lnx_txe_put(ep, txe);
}

LNX_COLD int lnx_rel_hello(struct lnx_peer *peer, bool again)
{
	if (again)
		tell_again(peer);
	else if (!peer->hello_done)
		return lnx_hello_start(peer, false);
	return 0;
}
