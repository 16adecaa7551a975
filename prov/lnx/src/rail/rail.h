/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rails in use: how each kind is polled, gets its receive buffers, and is emptied when its
 * core endpoint closes.  The calls of cores on the data path are in this directory:
 *
 *	post.h		one frame or piece to a framed rail
 *	direct.h	one descriptor of an operation to a direct or native rail
 *	posted.c	framed, any provider: we post buffers and read its CQ
 *	lent.c		framed, peer provider: it writes our CQ and asks for buffers
 *	native.c	operations and receives are the core's own
 *
 * What a core reports goes up through ep->up.  Owner lock held.
 */
#ifndef LNX_RAIL_RAIL_H
#define LNX_RAIL_RAIL_H

#include "obj/ep.h"

/* One for each kind of rail; rail->driver. */
struct lnx_rail_driver {
	/* Handle what the core has; what it handled, or 0. */
	int (*poll)(struct lnx_rail *rail);
	/* Give the core the receive buffers that it should have.  0; -FI_EAGAIN,
	 * -FI_ENOMEM: try again (LNX_WORK_BUFS). */
	int (*refill)(struct lnx_rail *rail);
	/* The core failed a receive into buf, which is lent out. */
	void (*recv_failed)(struct lnx_rail *rail, struct lnx_rxbuf *buf, int err);
	/* May buf be kept?  Only if there is another for what comes next. */
	bool (*may_keep)(const struct lnx_rail *rail);
	/* Before a thread sleeps: is there more to read, or no buffer to read into? */
	bool (*more)(struct lnx_rail *rail);
	/* Close the core endpoint, in which something hangs: what the core reports about that
	 * is handled, and the receive buffers that it does not report are taken back. */
	void (*close)(struct lnx_rail *rail);
	/* Open another one, at that port; 0: any.  0; or the core's error, and it has none. */
	int (*reopen)(struct lnx_rail *rail, unsigned port);
};

/* The driver of that kind. */
const struct lnx_rail_driver *lnx_rail_driver(enum lnx_rail_kind kind);

/* A rail was opened: it gets what it needs before it is polled.  0 or -FI_ENOMEM. */
int lnx_rail_init(struct lnx_rail *rail);
/* What framed drivers share: their close and reopen. */
LNX_COLD void lnx_rail_close_framed(struct lnx_rail *rail);
LNX_COLD int lnx_rail_reopen_framed(struct lnx_rail *rail, unsigned port);
/* A core failed something on a framed rail, of either kind. */
LNX_COLD void lnx_rail_core_error(struct lnx_rail *rail,
				  const struct fi_cq_err_entry *err);
/* Reset the signal of the core's CQ before a thread sleeps.  True: look again. */
LNX_COLD bool lnx_rail_trywait(struct lnx_rail *rail);

/* Read the CQ that is lent to the shm core; it writes into ours meanwhile. */
LNX_INLINE void lnx_rail_poll_lent(struct lnx_rail *rail)
{
	fi_cq_read(rail->core_cq, NULL, 0);
}

/* Poll rail once. */
LNX_INLINE int lnx_rail_poll(struct lnx_rail *rail)
{
	return rail->driver->poll(rail);
}

extern const struct lnx_rail_driver lnx_posted_driver, lnx_lent_driver, lnx_native_driver;

/* rail/lent.c: what is lent to peer cores on framed rails. */
extern struct fi_ops_cq_owner lnx_framed_cq_ops;
extern struct fi_ops lnx_peer_fid_ops;

/*
 * rail/posted.c: rails whose CQ we read and whose buffers we post.
 *
 * Cores fill buffers in turn, so each is out of the caches when its turn comes again:
 * with fewer buffers posted, more of them stays in the caches.  A burst that uses all
 * of them doubles their number, up to FI_LNX_RX_BUFFERS; a number of polls in a row
 * that found little halves it.
 *
 * But a peer that stops in the middle of a frame keeps its buffer: with more peers, the
 * minimum is higher.  If that is not enough, no frame comes any more, from any peer.  So
 * while none comes twice as many are posted at each look, up to FI_LNX_RX_BUFFERS; and if
 * something is sent all the same, more than there are connections, as each keeps no more than
 * one.  When
 * frames come again those beyond the number that is wanted are not posted again.  Buffers
 * that are found to be held are not counted as posted.
 */
#define LNX_PLAIN_POSTED	4u	/* at first, and at least */
#define LNX_PLAIN_PEERS		8u	/* two for each peer, up to this many */
#define LNX_PLAIN_LARGE		4u	/* and up to this many for bursts of large frames */
#define LNX_PLAIN_IDLE_POLLS		65536u

/* Look at the buffers that plain rails of ep have posted: LNX_DUE_POSTED.  Calls cores.
 * Returns when to call it again: rarely once all are posted that may be, and nothing comes. */
uint64_t lnx_posted_look(struct lnx_ep *ep, uint64_t now);

/*
 * ---- rail/prime.c: a rail that stands by has its core's buffers before they are needed.
 *
 * ofi_rxm makes the buffers of what it cannot inject when it is first given such a thing:
 * 1024 at once, 34 MB, and clears them.  That takes more than 100 ms, and for a rail that
 * stands by it is in the moment when the other one has died.  So a frame about the state of
 * the path, which is rare and for which nothing waits, is once sent instead of injected.
 */

/* Should the next such frame do that?  Where other rails carry what is not injected, and
 * this one has not carried any; otherwise the memory would be for nothing. */
LNX_COLD bool lnx_rail_prime_due(const struct lnx_rail *rail);
/* Send it: len bytes, at most sizeof(rail->prime.frame), are copied.  0 or the core's error. */
LNX_COLD ssize_t lnx_rail_prime_send(struct lnx_rail *rail, const void *frame, size_t len,
				     fi_addr_t dest);
/* Its core endpoint is closed, and the next one has no buffers. */
LNX_COLD void lnx_rail_prime_forget(struct lnx_rail *rail);
/* For ep->up: the core has reported it. */
void lnx_rail_prime_done(struct lnx_op *op);
LNX_COLD bool lnx_rail_prime_failed(struct lnx_rail *rail, const struct fi_cq_err_entry *err);

/* ---- rail/buffers.c: buffers of frames, for all framed rails ---- */

struct lnx_rxbuf *lnx_rxbuf_get(struct lnx_rail *rail);
void lnx_rxbuf_put(struct lnx_rxbuf *buf);
/* Set some buffers aside for peer rails.  0 or -FI_ENOMEM. */
int lnx_rxbuf_reserve(struct lnx_ep *ep);
/* May buf be kept?  Only if there is another for what comes next. */
LNX_INLINE bool lnx_rxbuf_may_keep(struct lnx_rxbuf *buf)
{
	return buf->rail->driver->may_keep(buf->rail);
}
/*
 * Keep buf, with its data in it; on a peer rail it is not free until its core releases
 * it too.
 */
LNX_INLINE void lnx_rxbuf_keep(struct lnx_rxbuf *buf)
{
	buf->kept = true;
	lnx_list_del(&buf->link);	/* no longer in the rail's list */
}
/* A copy of its frame, of len bytes, in a buffer that is no larger than it must be; NULL:
 * there is none, keep buf itself. */
LNX_COLD struct lnx_rxbuf *lnx_rxbuf_small(const struct lnx_rxbuf *buf, size_t len);
/* Memory that buf takes. */
size_t lnx_rxbuf_bytes(const struct lnx_rxbuf *buf);
/* Let buf, which a core asked for, take a message longer than any frame. */
LNX_COLD void lnx_rxbuf_enlarge(struct lnx_rxbuf *buf, size_t len);
/* Drop what came into an enlarged buffer, or into the drop buffer. */
LNX_COLD void lnx_rxbuf_shrink(struct lnx_rxbuf *buf);
/* Make a lent rail's drop buffer, before the rail is polled.  0 or -FI_ENOMEM. */
int lnx_rxbuf_make_drop_buf(struct lnx_rail *rail);
/* Release a kept buffer. */
void lnx_rxbuf_drop(struct lnx_rxbuf *buf);

#endif
