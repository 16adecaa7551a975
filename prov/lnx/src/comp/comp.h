/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion side: core completions in, progress, waiting.  Owner lock held
 * unless said otherwise.
 */
#ifndef LNX_COMP_H
#define LNX_COMP_H

#include "obj/ep.h"

/* comp/cq_owner.c: the CQs that we lend to peer cores. */
extern struct fi_ops_cq_owner lnx_direct_cq_ops;
extern struct fi_ops_cq_owner lnx_framed_cq_ops;
/* The same for counters of the direct core. */
extern struct fi_ops_cntr_owner lnx_direct_cntr_ops;
extern struct fi_ops lnx_peer_fid_ops;

/* comp/native.c: what ended on a bare rail. */
LNX_COLD void lnx_native_poll(struct lnx_rail *rail);

/*
 * comp/plain.c: rails whose CQ we read and whose buffers we post.
 *
 * Cores fill buffers in turn, so each of them is cold when its turn comes again: the
 * fewer are posted, the more stays in the caches.  A burst that takes all of them
 * doubles their number, up to FI_LNX_RX_BUFFERS; so many polls in a row that found
 * little halve it.  But a peer that stops in the middle of a frame keeps the buffer:
 * the more peers, the more are posted at least.
 */
#define LNX_PLAIN_POSTED	4u	/* to begin with, and at least */
#define LNX_PLAIN_PEERS		8u	/* two for each of so many peers */
#define LNX_PLAIN_IDLE_POLLS		65536u
int lnx_plain_poll(struct lnx_rail *rail);
int lnx_plain_fill(struct lnx_rail *rail);
LNX_COLD void lnx_plain_recv_failed(struct lnx_rail *rail,
				    struct lnx_rxbuf *buf, int err);
/* One look at a framed rail. */
LNX_COLD void lnx_rail_poll(struct lnx_rail *rail);
/* The rail's core endpoint is closed: handle what it said of that, and take back the
 * receive buffers that it said nothing of. */
LNX_COLD void lnx_rail_drain(struct lnx_rail *rail);
/* An error of a core on a framed rail, of either kind. */
LNX_COLD void lnx_core_error(struct lnx_rail *rail,
			     const struct fi_cq_err_entry *err);
struct lnx_rxbuf *lnx_rxbuf_get(struct lnx_rail *rail);
void lnx_rxbuf_put(struct lnx_rxbuf *buf);
/* Set some aside for peer rails.  0 or -FI_ENOMEM. */
int lnx_rxbuf_reserve(struct lnx_ep *ep);
/* May buf be kept, and is there another for what comes next? */
LNX_COLD bool lnx_rxbuf_may_keep(struct lnx_rxbuf *buf);
/* buf stays here, its data in it; on a peer rail until its core lets go too. */
LNX_INLINE void lnx_rxbuf_keep(struct lnx_rxbuf *buf)
{
	buf->kept = true;
	lnx_list_del(&buf->link);	/* no longer its rail's */
}
/* Let buf, which a core asked for, take a message longer than any frame. */
LNX_COLD void lnx_rxbuf_enlarge(struct lnx_rxbuf *buf, size_t len);
/* What came into an enlarged buffer, or into the sink, is dropped. */
LNX_COLD void lnx_rxbuf_shrink(struct lnx_rxbuf *buf);
/* A peer rail's sink: made before the rail is polled.  0 or -FI_ENOMEM. */
int lnx_rxbuf_make_drop_buf(struct lnx_rail *rail);
/* A kept buffer is not needed any more. */
void lnx_rxbuf_drop(struct lnx_rxbuf *buf);

/* comp/progress.c: one pass over the endpoint's rails and deferred work. */
void lnx_ep_progress(struct lnx_ep *ep);
/* Poll all rails in the next passes, so many. */
void lnx_ep_heat(struct lnx_ep *ep, uint32_t passes);
/* Poll everything, whatever activity says; for waiting and closing. */
void lnx_ep_progress_all(struct lnx_ep *ep);
/* Before sleeping on the rails' descriptors.  True: there is, or may soon be,
 * something to do that no descriptor tells of; shared memory not counted. */
bool lnx_ep_trywait(struct lnx_ep *ep);

/*
 * comp/wait.c: what a thread of the application sleeps on.  One epoll descriptor
 * over an eventfd of ours and the descriptors of the rails.  Any thread, no lock.
 */
struct lnx_wait;
/*
 * What the wait_obj of an attribute asks for.  *wait is NULL for FI_WAIT_NONE;
 * FI_WAIT_UNSPEC is FI_WAIT_FD.  0, -FI_ENOSYS for other kinds, -FI_ENOMEM, or why
 * there is no descriptor.
 */
int lnx_wait_open(enum fi_wait_obj obj, struct lnx_wait **wait);
void lnx_wait_close(struct lnx_wait *wait);
/* fi_control of what has wait (or NULL): FI_GETWAIT, FI_GETWAITOBJ. */
int lnx_wait_control(const struct lnx_wait *wait, int command, void *arg);
/* Something was written: wake whoever sleeps. */
void lnx_wait_signal(struct lnx_wait *wait);
/* The same, asked for or not. */
void lnx_wait_wake(struct lnx_wait *wait);
/* fi_cq_signal: end one blocking read, or the next one, without an entry. */
void lnx_wait_kick(struct lnx_wait *wait);
/* Was there a kick?  Asking takes it. */
bool lnx_wait_signalled(struct lnx_wait *wait);
/* The same without taking it. */
bool lnx_wait_kicked(const struct lnx_wait *wait);
/* Ask to be signalled from now on; then look again before sleeping. */
void lnx_wait_arm(struct lnx_wait *wait);
/* Have the descriptor of a rail wake the sleeper, or not any more. */
int lnx_wait_add_fd(struct lnx_wait *wait, int fd);
void lnx_wait_del_fd(struct lnx_wait *wait, int fd);
/* Sleep until signalled, a rail's descriptor is ready, or max_ms (-1: no end)
 * have passed. */
void lnx_wait_block(struct lnx_wait *wait, int max_ms);

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
/* Time has passed: poll all rails in the next passes, so many. */
void lnx_eps_heat(struct lnx_eps *eps, uint32_t passes);
/*
 * Look at everything.  True when something may come that no descriptor tells of:
 * work of ours that waits for its time, or shared memory (with count_shm false
 * only if no helper thread looks after that).
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
 * found counts what was ever found, modulo 2^32.  lock guards idle and must not be
 * held, nor any other lock.
 */
void lnx_idle_init(struct lnx_idle *idle);
LNX_COLD void lnx_idle(struct lnx_idle *idle, struct lnx_lock *lock,
		       struct lnx_eps *eps, uint32_t found);

/* What a last look before sleeping found. */
enum lnx_look {
	LNX_LOOK_QUIET,
	LNX_LOOK_SOON,			/* look again soon: lnx_eps_look() */
	LNX_LOOK_READY,			/* what is waited for */
};

/* A call that blocks: until when, in ms from now, negative: for ever. */
struct lnx_nap {
	uint64_t spin_ns;
	uint64_t end_ns;
	int timeout;
	bool slept;			/* took signals, of others too perhaps */
};
void lnx_nap_init(struct lnx_nap *nap, int timeout);
/*
 * Nothing was found: spin, or sleep on wait (NULL: give up the processor).  False
 * when the time is up, else the caller looks again.
 */
bool lnx_nap(struct lnx_nap *nap, struct lnx_wait *wait,
	     enum lnx_look (*look)(void *), void *obj);

/* comp/thread.c: the helper thread of an endpoint. */
int lnx_thread_start(struct lnx_ep *ep);
void lnx_thread_stop(struct lnx_ep *ep);
/* There are paths to look after (tx/detect.h): it must not sleep for long now.  Owner
 * lock held. */
void lnx_thread_wake(struct lnx_thread *t);
/* Have a descriptor wake it, or no more; it may be asleep meanwhile.  Owner lock held.
 * 0 or a negative errno. */
int lnx_thread_watch(struct lnx_thread *t, int fd);
void lnx_thread_unwatch(struct lnx_thread *t, int fd);
/* Stop every helper thread; when the library is unloaded. */
void lnx_threads_stop(void);

#endif
