/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reliable channel between two endpoints, seen from outside: what other layers call to
 * send and receive.  Beside it are rel_piece.h, for what is moved in pieces and not in frames,
 * and rel_view.h, for what shows and explains.  rel/ itself calls up only through ep->up
 * (obj/up.h).  The other headers of rel/ are for its own files; those of its pure files are
 * also in struct lnx_peer.
 *
 *	msg/, rma/ -> lnx_rel_send -> rail/			frames out
 *	rail/ -> lnx_rel_rx_frame -> ep->up->deliver		frames in
 *	comp/progress.c -> lnx_rel_run				what is due
 *
 * Each end has one session with a peer.  A frame that was taken arrives once, in order, on
 * whatever path works; or its peer is given up, and everything to it fails (life, in
 * obj/peer.h).  The channel finds paths that fail, and restores them, by itself.
 *
 * What only tells progress that a peer has something to do is a verb of the peer (obj/ep.h):
 * lnx_peer_pump, lnx_peer_watch, lnx_peer_tell.
 *
 * All functions: the endpoint's owner lock is held.  Those that may call cores say so, and
 * are not for a core's callbacks.  Times are of lnx_clock_ns(), in ns.
 */
#ifndef LNX_REL_H
#define LNX_REL_H

#include "obj/call.h"
#include "obj/eager.h"
#include "obj/ep.h"
#include "obj/txe.h"
#include "wire/hdr.h"

/* Most answers that may wait for a peer that does not take them. */
#define LNX_LATER_MAX	4096u
/* No error number from a peer is larger. */
#define LNX_ERR_MAX	4096u

/* ---- frames ---- */

/* The peer of that address, made if needed, with a path to it: 0, -FI_EINVAL,
 * -FI_EAGAIN (memory is short), -FI_EHOSTUNREACH or -FI_EACCES (the job keys differ). */
ssize_t lnx_rel_find(struct lnx_ep *ep, fi_addr_t dest, struct lnx_peer **peer);

/*
 * May a frame go to peer now?  Begins the session if there is none.  flags: of the
 * operation; FI_INJECT alone for calls that inject.  For these *no_queue may be set: then
 * the frame may not be queued (lnx_rel_send).  0; -FI_EAGAIN: too many are queued, or
 * memory is short; -FI_EHOSTUNREACH, -FI_EACCES: the peer is given up.  Calls cores.
 */
ssize_t lnx_rel_room(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t flags,
		     bool *no_queue);

/*
 * Number txe, write its header from h and send it, or queue it behind what waits already:
 * 0, and txe is the channel's.  h: kind, flags, tag, data, len and key are the caller's.
 * With no_queue it is never queued: -FI_EAGAIN, -FI_EHOSTUNREACH, and txe is still the
 * caller's.  Calls cores.
 */
int lnx_rel_send(struct lnx_ep *ep, struct lnx_peer *peer, struct lnx_txe *txe,
		 struct lnx_hdr *h, bool no_queue);

/* The same from inside a core's callback: progress sends it.  -FI_ENOMEM,
 * -FI_EHOSTUNREACH: txe is still the caller's. */
int lnx_rel_send_later(struct lnx_ep *ep, struct lnx_peer *peer,
		       struct lnx_txe *txe, struct lnx_hdr *h);

/* What lnx_rel_short is to send, for a call that is lnx_call_single: kind, flags, and
 * LNX_SHORT_INJECT. */
#define LNX_SHORT_INJECT	0x10000u
#define lnx_short_what(call) \
	((lnx_call_tagged(call) ? LNX_KIND_TAG : LNX_KIND_MSG) | \
	 (lnx_call_data(call) ? LNX_WIRE_F_DATA << 8 : 0) | \
	 (lnx_call_inject(call) ? LNX_SHORT_INJECT : 0))

/*
 * The fast half of lnx_rel_send: fill and send a message that fits into a frame which the
 * core copies, to a peer in its usual state (NULL: the peer has yet to be made).  The
 * arguments are in registers, so that no struct lnx_tx is needed.  what: lnx_short_what of
 * a call that is lnx_call_single, while the endpoint's flags have none of FI_INJECT,
 * FI_TRANSMIT_COMPLETE and FI_DELIVERY_COMPLETE.  True: it is sent, or queued with its
 * number; false: nothing was done, call lnx_msg_send.  Calls cores.
 */
bool lnx_rel_short(struct lnx_ep *ep, struct lnx_peer *peer, const void *buf,
		   size_t len, uint64_t tag, unsigned what, uint64_t data,
		   void *context);

/* Begin the session with peer, if it has not begun: its window exists, our HELLO is sent or
 * queued.  again: our address has changed, so another HELLO tells it.  0, or -FI_ENOMEM;
 * again: 0, if it cannot be told it finds the address by itself.  Calls cores. */
LNX_COLD int lnx_rel_hello(struct lnx_peer *peer, bool again);

/* ---- given to the layers below, in ep->up; call no core ---- */

/* A frame of len bytes came in over rail.  True: buf is kept. */
bool lnx_rel_rx_frame(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len);
/* The core has finished with a frame; or failed something that may be a frame: false if it
 * is none.  err->op_context is not trusted. */
void lnx_rel_core_done(struct lnx_op *op);
LNX_COLD bool lnx_rel_core_failed(struct lnx_rail *rail, const struct fi_cq_err_entry *err);

/* ---- progress: call cores ---- */

/* The timers of ep that are the channels' (enum lnx_due), and of its peers.  Calls no core. */
void lnx_rel_open(struct lnx_ep *ep);

/* What is due at that time: timers, also those of the endpoint as a whole, frames and
 * acknowledgements.  sleeps: the application may not call us for a while, so everything is
 * acknowledged.  Returns when something is due next; LNX_NEVER: not before something
 * happens. */
uint64_t lnx_rel_run(struct lnx_ep *ep, uint64_t now, bool sleeps);

/* ---- what happens around it: call cores ---- */

/* The link of a rail went down or came up; or its interface has another address, which is in
 * rail->info.  The peers are told. */
enum lnx_rel_link { LNX_REL_LINK_DOWN, LNX_REL_LINK_UP, LNX_REL_LINK_MOVED };
LNX_COLD void lnx_rel_link(struct lnx_rail *rail, enum lnx_rel_link what, uint64_t now);

/* Something that the order of paths depends on was set by hand: it takes effect. */
enum lnx_rel_set {
	LNX_REL_SET_HEALTH,		/* health, which recovers from there */
	LNX_REL_SET_WEIGHT,		/* health was fixed, or is no longer (rel/admin.h) */
	LNX_REL_SET_RULES,		/* ep->policy.rules */
	LNX_REL_SET_ROUTES,		/* ep->policy.gateways->table */
};
LNX_COLD void lnx_rel_set(struct lnx_ep *ep, enum lnx_rel_set what, uint64_t now);

/* The peer is gone: every operation to it ends with err, an FI_E...; later ones fail at
 * once. */
LNX_COLD void lnx_rel_peer_failed(struct lnx_peer *peer, int err);

/* The endpoint closes, and its cores still work: tell the peers (BYE). */
LNX_COLD void lnx_rel_bye(struct lnx_ep *ep);
/* Its cores are stopped: what never left is dropped, with the receives that it would
 * report (ep->up->sent).  Calls no core. */
LNX_COLD void lnx_rel_close(struct lnx_ep *ep);

#endif
