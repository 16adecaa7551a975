/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and large writes over the direct rail: in the core, or by copies.
 *
 *	rma/rma.c → rma/copy.c → core: the operation
 *				 → msg/direct.c → core: copies, a control message
 *	the peer's rma/copy_target.c → core: copies, a control message
 *	msg/fetch.c → lnx_rma_copy_read, lnx_confirm_answered
 *
 * The core of shm 2.1 has the target read or write our memory, for reads of any size
 * and for writes of more than LNX_INJECT_MAX.  If the kernel forbids that, the operation
 * fails.  So the core gets them only while the peer is known to reach our memory, which
 * it tries when we ask for it (core/shm_registry.h).  Otherwise they are copied into
 * messages.  All this is slower than the core, and both ends have to make progress; but
 * it is never wrong.  So is what the core would move through its own buffers (our own
 * memory, FI_LNX_DISABLE_CMA): if it cannot complete that, because a process has ended
 * and what it was given for that one came before, it takes nothing more for the peer.
 *
 * We learn that this has changed when an operation fails.  It is repeated by copies, and
 * so are those after it, which usually fail too: all together, when the core has none of
 * them any more, so that their order stays.  New ones wait until then.  If one of them
 * did not fail, because the memory can be reached again, those before it whose order is
 * promised fail for good.  What never fails, small writes and atomics,
 * must not overtake what is repeated.  While there is something in the core that may
 * fail, they ask the kernel whether our memory can be read, and otherwise wait.  If it
 * changes even later, an operation whose order is promised fails for good.
 *
 * Owner lock held.
 */
#ifndef LNX_RMA_COPY_H
#define LNX_RMA_COPY_H

#include "msg/confirm.h"

/* The peer cannot reach our memory (any more). */
LNX_COLD void lnx_rma_unreached(struct lnx_peer *peer);

/* From msg/direct.c: its turn has come, or all that is queued ends with an error.  0: it
 * is no longer queued; -FI_EAGAIN, or an error of the core. */
ssize_t lnx_rma_copy_post(struct lnx_confirm *c);
LNX_COLD void lnx_rma_copy_fail(struct lnx_confirm *c, int err);
/* Data of a read has come.  Calls no core. */
void lnx_rma_copy_read(struct lnx_peer *peer,
		       const struct lnx_wire_rma_copy *w, const void *data);

/* Those of peer that failed are repeated now; err: they end with that error instead.
 * Calls no core. */
LNX_COLD void lnx_rma_repeat(struct lnx_peer *peer, int err);
/* The same when the core has none of peer's any more.  ok: a later one was executed. */
LNX_COLD void lnx_rma_repeat_later(struct lnx_peer *peer, bool ok);

/*
 * The process of peer has ended: what the core has for it ends with that error.
 *
 * The core never completes these, nor what it was given after them for other peers,
 * because it handles answers in order.  Of that, writes end when their peer answers a
 * control message, which it gets behind them; reads are repeated by copies, or fail with
 * FI_EIO where that could break a promised order.  All later operations are copied.  May
 * call cores.
 */
LNX_COLD void lnx_rma_peer_died(struct lnx_peer *peer, int err);

/* The core has done with c, or did not take it; ok: it was executed.  Calls no core. */
LNX_INLINE void lnx_rma_left_core(struct lnx_confirm *c, bool ok)
{
	struct lnx_peer *peer = c->peer;
	struct lnx_ep *ep = peer->ep;

	c->in_core = false;
	if (!--ep->local.nrma_core)
		ep->shm->mute &= (uint8_t)~LNX_MUTE_RMA;
	if (!--peer->shm.nflight)
		peer->shm.direct_write = peer->direct;
	if (lnx_unlikely(peer->shm.repeats))
		lnx_rma_repeat_later(peer, ok);
}
/* And it has failed.  Calls no core. */
LNX_COLD void lnx_rma_core_failed(struct lnx_confirm *c, int err,
				  int prov_errno);

#endif
