/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plain rails: we post the receive buffers and read the core's CQ ourselves.
 * Called through the driver of the rail; what came goes up through ep->up.
 */
#include <string.h>

#include "base/interval.h"
#include "core/half_open.h"
#include "rail/post.h"
#include "rail/rail.h"

#define READ_BATCH	16

/* Of a buffer that the core has: for how many looks (lnx_posted_look). */
enum posted {
	POSTED_NOT,
	POSTED_NEW,			/* since the last one */
	POSTED_SEEN,			/* one */
	POSTED_OLD,			/* more */
	POSTED_HELD,			/* more, and younger ones came: a message has begun
					 * in it that does not end */
};

/* Look at what is posted, from now on. */
static LNX_COLD void watch(struct lnx_ep *ep)
{
	const struct lnx_timer *t = &ep->due.own[LNX_DUE_POSTED];

	/* While nothing came it was looked at rarely. */
	if (lnx_timer_at(&ep->due.timers, t) > ep->due.looked_ns + 2 * LNX_POSTED_LOOK_NS)
		lnx_ep_due(ep, LNX_DUE_POSTED, lnx_clock_ns() + LNX_POSTED_LOOK_NS);
}

/* Return buf to the pool of all rails. */
static void give_up(struct lnx_rxbuf *buf)
{
	lnx_list_del(&buf->link);
	lnx_rxbuf_put(buf);
}

/* Post buf, which is in rail->bufs.  If the core is full, progress tries again later. */
static inline void post_buf(struct lnx_rail *rail, struct lnx_rxbuf *buf)
{
	ssize_t ret = -FI_EAGAIN;

	if (lnx_likely(rail->core_ep != NULL))
		ret = fi_recv(rail->core_ep, buf->frame, rail->ep->limits.rx_frame,
			      NULL, FI_ADDR_UNSPEC, buf);
	if (lnx_likely(!ret)) {
		buf->posted = POSTED_NEW;
		rail->nposted++;
		return;
	}
	give_up(buf);
	rail->ep->work |= LNX_WORK_BUFS;
}

/* Are fewer than n posted? */
static inline bool fewer(const struct lnx_rail *rail, uint32_t n)
{
	return rail->nposted < (int32_t)n;
}

/* Post the buffers that were read again, unless enough are posted. */
LNX_HOT
static void post_spare(struct lnx_rail *rail)
{
	struct lnx_rxbuf *buf;

	while ((buf = rail->unposted)) {
		rail->unposted = buf->unposted;
		if (lnx_likely(fewer(rail, rail->want_posted))) {
			post_buf(rail, buf);
			continue;
		}
		give_up(buf);
		watch(rail->ep);
	}
}

static uint32_t least_posted(const struct lnx_ep *ep)
{
	uint32_t n = 2 * LNX_MIN(ep->peers.n, LNX_PLAIN_PEERS);

	return LNX_MIN(LNX_MAX(n, LNX_PLAIN_POSTED), ep->conf->rx_buffers);
}

/* If messages that do not end have kept all of them, there are more than connections, each of
 * which may keep one.  Those that are held count too. */
static uint32_t most_posted(const struct lnx_rail *rail)
{
	uint32_t max = LNX_MAX((uint32_t)rail->ep->conf->rx_buffers,
			       rail->connections + LNX_PLAIN_POSTED);

	return max - LNX_MIN(rail->held, max);
}

/* Until n are posted.  0, -FI_ENOMEM, or -FI_EAGAIN: the core is full. */
static int post_more(struct lnx_rail *rail, uint32_t n)
{
	while (fewer(rail, n)) {
		struct lnx_rxbuf *buf = lnx_rxbuf_get(rail);
		int32_t before = rail->nposted;

		if (!buf)
			return -FI_ENOMEM;
		lnx_list_add_tail(&rail->bufs, &buf->link);
		post_buf(rail, buf);
		if (rail->nposted == before)
			return -FI_EAGAIN;
	}
	return 0;
}

static int fill(struct lnx_rail *rail)
{
	/*
	 * The rail is closed, perhaps for hours; its buffers are posted when it is
	 * opened.
	 */
	if (lnx_unlikely(!rail->core_ep))
		return 0;
	rail->want_posted = LNX_MAX(rail->want_posted, least_posted(rail->ep));
	/* While each poll finds something, no poll posts them. */
	post_spare(rail);
	watch(rail->ep);
	return post_more(rail, LNX_MIN(rail->want_posted, most_posted(rail)));
}

/* How many are in each state of enum posted. */
static LNX_COLD void count(const struct lnx_rail *rail, uint32_t n[POSTED_HELD + 1])
{
	const struct lnx_node *node, *next;

	memset(n, 0, (POSTED_HELD + 1) * sizeof(n[0]));
	lnx_list_foreach(&rail->bufs, node, next)
		n[lnx_list_entry(node, struct lnx_rxbuf, link)->posted]++;
}

/* Those in state from are in the next one. */
static LNX_COLD void grow_older(struct lnx_rail *rail, enum posted from)
{
	struct lnx_node *node, *next;

	lnx_list_foreach(&rail->bufs, node, next) {
		struct lnx_rxbuf *buf = lnx_list_entry(node, struct lnx_rxbuf, link);

		if (buf->posted == from)
			buf->posted++;
	}
}

/*
 * Nothing came since the last look: all that was sent may be in messages that do not end,
 * so more are posted.  The core takes buffers in the order in which they were posted: when
 * one came that had been seen once, those that had been seen before it are held.  True:
 * look again.
 */
static LNX_COLD bool look(struct lnx_rail *rail)
{
	uint32_t seen = rail->seen + rail->seen_new, n[POSTED_HELD + 1];
	bool idle;

	count(rail, n);
	idle = seen && n[POSTED_SEEN] + n[POSTED_OLD] == seen;
	if (n[POSTED_SEEN] < rail->seen_new) {
		grow_older(rail, POSTED_OLD);
		count(rail, n);
	}
	rail->held = n[POSTED_HELD];
	rail->nposted = (int32_t)(n[POSTED_NEW] + n[POSTED_SEEN] + n[POSTED_OLD]);
	post_more(rail, LNX_MIN(idle ? 2 * (uint32_t)rail->nposted : rail->want_posted,
				most_posted(rail)));
	grow_older(rail, POSTED_SEEN);
	grow_older(rail, POSTED_NEW);
	rail->seen = n[POSTED_SEEN] + n[POSTED_OLD];
	rail->seen_new = (uint32_t)rail->nposted - rail->seen;
	return !idle || fewer(rail, most_posted(rail));
}

/*
 * All are posted that may be, and nothing comes: most likely nothing is sent.  But if there
 * is something that the core does not read, messages that do not end keep all buffers.
 */
static LNX_COLD uint64_t rest(struct lnx_ep *ep, uint64_t now)
{
	uint64_t start_ns = lnx_clock_thread_ns(), pause_ns;
	bool more = false, plain = false;
	uint32_t i, n;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (!lnx_rail_kind_plain(rail->kind) || !rail->core_ep)
			continue;
		plain = true;
		n = lnx_half_open_unread(rail);
		/* What is held may be of connections that have nothing unread now. */
		if (n || !rail->held)
			rail->connections = n;
		more |= fewer(rail, most_posted(rail));
	}
	if (!plain)
		return LNX_NEVER;
	if (more)
		return now + LNX_POSTED_LOOK_NS;
	pause_ns = lnx_half_open_pause(lnx_clock_thread_ns() - start_ns);
	return now + LNX_MAX(pause_ns, LNX_POSTED_REST_NS);
}

uint64_t lnx_posted_look(struct lnx_ep *ep, uint64_t now)
{
	bool again = false;
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (lnx_rail_kind_plain(ep->rail[i]->kind) && ep->rail[i]->core_ep)
			again |= look(ep->rail[i]);
	return again ? now + LNX_POSTED_LOOK_NS : rest(ep, now);
}

static inline void plain_recv(struct lnx_rail *rail, struct lnx_rxbuf *buf,
			      size_t len)
{
	buf->posted = POSTED_NOT;
	rail->nposted--;
	if (lnx_unlikely(rail->ep->up->frame(rail, buf, len))) {
		buf = lnx_rxbuf_get(rail);
		if (!buf) {
			rail->ep->work |= LNX_WORK_BUFS;
			return;
		}
		lnx_list_add_tail(&rail->bufs, &buf->link);
	}
	/* Not now: the application waits for what came, and may answer it. */
	buf->unposted = rail->unposted;
	rail->unposted = buf;
}

/* Too long for a frame, or flushed at close. */
static LNX_COLD void recv_failed(struct lnx_rail *rail, struct lnx_rxbuf *buf, int err)
{
	if (!buf->posted)
		return;
	buf->posted = POSTED_NOT;
	rail->nposted--;
	if (err == FI_ECANCELED || rail->ep->closing) {
		give_up(buf);
		if (!rail->ep->closing)
			rail->ep->work |= LNX_WORK_BUFS;
		return;
	}
	rail->ep->stats.bad_frames++;
	lnx_counts_drop(&rail->counts, 0, 0);
	post_buf(rail, buf);
}

/* A connection that breaks fails all of its operations: several errors may wait. */
static LNX_COLD void read_errors(struct lnx_rail *rail)
{
	unsigned i;

	for (i = 0; i < READ_BATCH; i++) {
		struct fi_cq_err_entry err = { 0 };

		if (fi_cq_readerr(rail->core_cq, &err, 0) != 1)
			return;
		lnx_rail_core_error(rail, &err);
	}
}

static LNX_COLD void want_fewer(struct lnx_rail *rail)
{
	rail->idle_polls = 0;
	rail->want_posted = LNX_MAX(rail->want_posted / 2,
				    least_posted(rail->ep));
}

/* Bytes of the frames that came: those of large ones need more of the caches than a wait
 * for a buffer costs. */
static LNX_COLD bool large_burst(const struct lnx_rail *rail,
				 const struct fi_cq_msg_entry *e, ssize_t n)
{
	size_t bytes = 0;
	ssize_t i;

	for (i = 0; i < n; i++)
		bytes += e[i].flags & FI_RECV ? e[i].len : 0;
	return bytes > LNX_FRAME_LARGE && rail->want_posted >= LNX_PLAIN_LARGE;
}

/* A poll found n.  The next burst may take as many buffers as this one. */
static inline void adapt(struct lnx_rail *rail, const struct fi_cq_msg_entry *e,
			 ssize_t n)
{
	if (lnx_unlikely(rail->nposted <= 0)) {
		rail->idle_polls = 0;
		if (rail->want_posted >= rail->ep->conf->rx_buffers ||
		    large_burst(rail, e, n))
			return;
		rail->want_posted = LNX_MIN(2 * rail->want_posted,
					    rail->ep->conf->rx_buffers);
		rail->ep->work |= LNX_WORK_BUFS;
	} else if (lnx_unlikely(n >= READ_BATCH / 2)) {
		rail->idle_polls = 0;
	} else if (lnx_unlikely(++rail->idle_polls == LNX_PLAIN_IDLE_POLLS)) {
		want_fewer(rail);
	}
}

/* tcp's fi_cq_read only calls the other one, through a pointer: that costs time after a
 * system call, and each poll is one.  Other cores need not have both. */
static inline ssize_t read_core(const struct lnx_rail *rail,
				struct fi_cq_msg_entry *e)
{
	if (lnx_likely(rail->prov == LNX_PROV_TCP))
		return fi_cq_readfrom(rail->core_cq, e, READ_BATCH, NULL);
	return fi_cq_read(rail->core_cq, e, READ_BATCH);
}

LNX_HOT
static int read_all(struct lnx_rail *rail)
{
	struct fi_cq_msg_entry e[READ_BATCH];
	ssize_t n, i;

	n = read_core(rail, e);
	if (lnx_likely(n == -FI_EAGAIN)) {
		if (rail->unposted)
			post_spare(rail);
		return 0;
	}
	if (lnx_unlikely(n < 0)) {
		if (n == -FI_EAVAIL)
			read_errors(rail);
		rail->poll_credits = rail->ep->poll_credits;
		return 1;
	}
	for (i = 0; i < n; i++) {
		struct lnx_op *op = e[i].op_context;

		if (e[i].flags & FI_RECV) {
			plain_recv(rail, (struct lnx_rxbuf *)op, e[i].len);
		} else if (e[i].flags & (FI_SEND | FI_READ | FI_WRITE)) {
			lnx_rail_op_ended(rail);
			rail->ep->up->op[op->type].done(op);
		}
	}
	adapt(rail, e, n);
	if (fewer(rail, rail->want_posted / 2))
		post_spare(rail);
	rail->poll_credits = rail->ep->poll_credits;
	return (int)n;
}

/*
 * Messages that no receive matches must not take all buffers, which frames that
 * complete receives, and acknowledgements, need: some buffers are always reposted at
 * once.
 */
static bool may_keep(const struct lnx_rail *rail)
{
	struct lnx_ep *ep = rail->ep;
	void *another;

	if (!fewer(rail, rail->want_posted / 2))
		return true;
	another = lnx_pool_get(&ep->rxbuf_pool);
	if (!another)
		return false;
	lnx_pool_put(&ep->rxbuf_pool, another);
	return true;
}

/* No descriptor reports what a core has no buffer for. */
static bool more(struct lnx_rail *rail)
{
	return rail->unposted != NULL;
}

static LNX_COLD void close_core(struct lnx_rail *rail)
{
	lnx_rail_close_framed(rail);
	rail->nposted = 0;
	rail->held = rail->seen = rail->seen_new = rail->connections = 0;
}

const struct lnx_rail_driver lnx_posted_driver = {
	.poll = read_all,
	.refill = fill,
	.recv_failed = recv_failed,
	.may_keep = may_keep,
	.more = more,
	.close = close_core,
	.reopen = lnx_rail_reopen_framed,
};
