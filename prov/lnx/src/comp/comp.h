/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion side: handling core completions, progress, waiting.  Owner lock held
 * unless said otherwise.
 */
#ifndef LNX_COMP_H
#define LNX_COMP_H

#include "obj/ep.h"
#include "obj/wait.h"

/* comp/cq_owner.c: the CQs that we lend to peer cores. */
extern struct fi_ops_cq_owner lnx_direct_cq_ops;
extern struct fi_ops_cq_owner lnx_framed_cq_ops;
/* The same for the counters that we lend to the direct core. */
extern struct fi_ops_cntr_owner lnx_direct_cntr_ops;
extern struct fi_ops lnx_peer_fid_ops;

/* comp/native.c: handle what ended on a native rail. */
LNX_COLD void lnx_native_poll(struct lnx_rail *rail);

/*
 * comp/plain.c: rails whose CQ we read and whose buffers we post.
 *
 * Cores fill buffers in turn, so each is out of the caches when its turn comes again:
 * with fewer buffers posted, more of them stays in the caches.  A burst that uses all
 * of them doubles their number, up to FI_LNX_RX_BUFFERS; a number of polls in a row
 * that found little halves it.  But a peer that stops in the middle of a frame keeps
 * its buffer: with more peers, the minimum is higher.
 */
#define LNX_PLAIN_POSTED	4u	/* at first, and at least */
#define LNX_PLAIN_PEERS		8u	/* two for each peer, up to this many */
#define LNX_PLAIN_IDLE_POLLS		65536u
int lnx_plain_poll(struct lnx_rail *rail);
int lnx_plain_fill(struct lnx_rail *rail);
LNX_COLD void lnx_plain_recv_failed(struct lnx_rail *rail,
				    struct lnx_rxbuf *buf, int err);
/* Poll a framed rail once. */
LNX_COLD void lnx_rail_poll(struct lnx_rail *rail);
/* The rail's core endpoint is closed: handle what it reported about that, and take back
 * the receive buffers that it did not report. */
LNX_COLD void lnx_rail_drain(struct lnx_rail *rail);
/* Handle an error of a core on a framed rail, of either kind. */
LNX_COLD void lnx_core_error(struct lnx_rail *rail,
			     const struct fi_cq_err_entry *err);
struct lnx_rxbuf *lnx_rxbuf_get(struct lnx_rail *rail);
void lnx_rxbuf_put(struct lnx_rxbuf *buf);
/* Set some buffers aside for peer rails.  0 or -FI_ENOMEM. */
int lnx_rxbuf_reserve(struct lnx_ep *ep);
/* May buf be kept?  Only if there is another for what comes next. */
LNX_COLD bool lnx_rxbuf_may_keep(struct lnx_rxbuf *buf);
/*
 * Keep buf, with its data in it; on a peer rail it is not free until its core releases
 * it too.
 */
LNX_INLINE void lnx_rxbuf_keep(struct lnx_rxbuf *buf)
{
	buf->kept = true;
	lnx_list_del(&buf->link);	/* no longer in the rail's list */
}
/* Let buf, which a core asked for, take a message longer than any frame. */
LNX_COLD void lnx_rxbuf_enlarge(struct lnx_rxbuf *buf, size_t len);
/* Drop what came into an enlarged buffer, or into the drop buffer. */
LNX_COLD void lnx_rxbuf_shrink(struct lnx_rxbuf *buf);
/* Make a peer rail's drop buffer, before the rail is polled.  0 or -FI_ENOMEM. */
int lnx_rxbuf_make_drop_buf(struct lnx_rail *rail);
/* Release a kept buffer. */
void lnx_rxbuf_drop(struct lnx_rxbuf *buf);

/* comp/progress.c: one pass over the endpoint's rails and deferred work. */
void lnx_ep_progress(struct lnx_ep *ep);
/* Poll all rails in the next `passes` passes. */
void lnx_ep_heat(struct lnx_ep *ep, uint32_t passes);
/* Poll everything, even if idle; for waiting and closing. */
void lnx_ep_progress_all(struct lnx_ep *ep);
/* To be called before sleeping on the rails' descriptors.  True: there is, or may soon
 * be, something to do that no descriptor reports; shared memory not counted. */
bool lnx_ep_trywait(struct lnx_ep *ep);

/*
 * comp/eps.c: the endpoints behind a CQ or a counter.  No lock is held; adding and
 * removing take eps->lock.
 */
void lnx_eps_init(struct lnx_eps *eps);
void lnx_eps_fini(struct lnx_eps *eps);
void lnx_eps_add(struct lnx_eps *eps, struct lnx_ep_link *link,
		 struct lnx_ep *ep);
void lnx_eps_del(struct lnx_eps *eps, struct lnx_ep_link *link);
void lnx_eps_progress_all(struct lnx_eps *eps, bool threads);
/* Time has passed: poll all rails in the next `passes` passes. */
void lnx_eps_heat(struct lnx_eps *eps, uint32_t passes);
/*
 * Poll everything.  True when something may come that no descriptor reports: work of
 * ours that waits for its time, or shared memory (with count_shm false only if no
 * helper thread polls that).
 */
bool lnx_eps_look(struct lnx_eps *eps, bool count_shm);
bool lnx_ep_look(struct lnx_ep *ep, bool count_shm);
/* The same for all enabled endpoints of a domain; take eps_lock. */
void lnx_domain_progress(struct lnx_domain *d);
bool lnx_domain_look(struct lnx_domain *d, bool count_shm);

/* One pass; threads: others may bind or close endpoints meanwhile. */
LNX_INLINE void lnx_eps_progress(struct lnx_eps *eps, bool threads)
{
	struct lnx_ep *ep = eps->sole;

	if (lnx_likely(ep && !threads)) {
		lnx_lock(&ep->lock);
		if (lnx_likely(ep->enabled))
			lnx_ep_progress(ep);
		lnx_unlock(&ep->lock);
		return;
	}
	lnx_eps_progress_all(eps, threads);
}

/*
 * comp/idle.c: idle->left reads found nothing; perhaps the thread gives up its core.
 * found counts everything found so far, modulo 2^32.  lock guards idle and must not be
 * held, nor any other lock.
 */
void lnx_idle_init(struct lnx_idle *idle);
LNX_COLD void lnx_idle(struct lnx_idle *idle, struct lnx_lock *lock,
		       struct lnx_eps *eps, uint32_t found);

/* Result of the last check before sleeping. */
enum lnx_look {
	LNX_LOOK_QUIET,
	LNX_LOOK_SOON,			/* check again soon: lnx_eps_look() */
	LNX_LOOK_READY,			/* what was waited for is there */
};

/* A blocking call.  Its time limit is in ms from now, negative: none. */
struct lnx_nap {
	uint64_t spin_ns;
	uint64_t end_ns;
	int timeout;
	bool slept;			/* it may have consumed signals, perhaps
					 * meant for other threads */
};
void lnx_nap_init(struct lnx_nap *nap, int timeout);
/*
 * Nothing was found: spin, or sleep on wait (NULL: give up the processor).  False when
 * the time is over, else the caller checks again.
 */
bool lnx_nap(struct lnx_nap *nap, struct lnx_wait *wait,
	     enum lnx_look (*look)(void *), void *obj);

/* comp/thread.c: the helper thread of an endpoint. */
int lnx_thread_start(struct lnx_ep *ep);
void lnx_thread_stop(struct lnx_ep *ep);
/* Paths must be checked (tx/detect.h): the thread must not sleep for long now.  Owner
 * lock held. */
void lnx_thread_wake(struct lnx_thread *t);
/* Let a descriptor wake the thread, or stop that; the thread may be asleep.  Owner lock
 * held.  0 or a negative errno. */
int lnx_thread_watch(struct lnx_thread *t, int fd);
void lnx_thread_unwatch(struct lnx_thread *t, int fd);
/* Stop every helper thread; when the library is unloaded. */
void lnx_threads_stop(void);

#endif
