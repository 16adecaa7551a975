/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plain rails: we post the receive buffers and read the core's CQ ourselves.
 * Called by comp/progress.c; routes to rx/arrive.c, tx/done.c and rx/pull.c.
 * Also the frame buffers of all framed rails.
 */
#include <stdlib.h>

#include "comp/comp.h"
#include "rx/rx.h"
#include "tx/rma.h"
#include "tx/tx.h"

#define READ_BATCH	16

/* Frame buffers set aside for peer rails, which must always be given one. */
#define BUF_RESERVE	128

/*
 * Used when those are used up too: one buffer that any number of arrivals may be given
 * at once, because what they leave in it is dropped.  No frame of ours is longer than
 * LNX_FRAME_MAX; tcp;ofi_rxm sends in segments of 128 KiB, which it must not have to
 * truncate.
 */
#define SCRATCH_BYTES	(128 * 1024)

struct sink {
	struct lnx_rxbuf buf;		/* first */
	uint8_t scratch[SCRATCH_BYTES];
};

LNX_HOT
struct lnx_rxbuf *lnx_rxbuf_get(struct lnx_rail *rail)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_rxbuf *buf = lnx_pool_get(&ep->rxbuf_pool);

	if (lnx_unlikely(!buf)) {
		struct lnx_node *n = NULL;

		if (rail->kind == LNX_RAIL_PEER)
			n = lnx_list_pop(&ep->buf_reserve);
		if (!n)
			return rail->drop_buf;	/* plain: NULL */
		ep->nbuf_reserve--;
		buf = lnx_list_entry(n, struct lnx_rxbuf, link);
	}
	buf->op.type = LNX_OP_RXBUF;
	buf->rail = rail;
	buf->posted = false;
	buf->in_core = false;
	buf->kept = false;
	buf->big = NULL;
	buf->desc[0] = NULL;
	lnx_list_init(&buf->link);
	return buf;
}

LNX_HOT
void lnx_rxbuf_put(struct lnx_rxbuf *buf)
{
	struct lnx_ep *ep = buf->rail->ep;

	if (lnx_unlikely(ep->nbuf_reserve < 2 * ep->buf_reserve_min)) {
		lnx_list_add_tail(&ep->buf_reserve, &buf->link);
		ep->nbuf_reserve++;
		return;
	}
	lnx_pool_put(&ep->rxbuf_pool, buf);
}

int lnx_rxbuf_reserve(struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < ep->nrail; i++)
		if (ep->rail[i]->kind == LNX_RAIL_PEER)
			ep->buf_reserve_min = BUF_RESERVE / 2;
	while (ep->nbuf_reserve < 2 * ep->buf_reserve_min) {
		struct lnx_rxbuf *buf = lnx_pool_get(&ep->rxbuf_pool);

		if (!buf)
			return -FI_ENOMEM;
		lnx_list_add_tail(&ep->buf_reserve, &buf->link);
		ep->nbuf_reserve++;
	}
	return 0;
}

int lnx_rxbuf_make_drop_buf(struct lnx_rail *rail)
{
	struct sink *s = aligned_alloc(64, sizeof(*s));

	if (!s)
		return -FI_ENOMEM;
	memset(&s->buf, 0, offsetof(struct lnx_rxbuf, frame));
	s->buf.op.type = LNX_OP_RXBUF;
	s->buf.rail = rail;
	s->buf.kept = true;		/* never to be freed */
	s->buf.big = s->scratch;	/* always to be dropped */
	lnx_list_init(&s->buf.link);
	rail->drop_buf = &s->buf;
	return 0;
}

static uint8_t *scratch(const struct lnx_rail *rail)
{
	return lnx_container_of(rail->drop_buf, struct sink, buf)->scratch;
}

void lnx_rxbuf_enlarge(struct lnx_rxbuf *buf, size_t len)
{
	if (!buf->big)
		buf->big = malloc(len);
	if (!buf->big) {
		buf->big = scratch(buf->rail);
		len = LNX_MIN(len, SCRATCH_BYTES);
	}
	buf->iov.iov_base = buf->big;
	buf->iov.iov_len = len;
}

void lnx_rxbuf_shrink(struct lnx_rxbuf *buf)
{
	struct lnx_rail *rail = buf->rail;

	if (buf == rail->drop_buf) {
		rail->ep->stats.mem_drops++;
		return;
	}
	if (buf->big != scratch(rail))
		free(buf->big);
	buf->big = NULL;
	rail->ep->stats.bad_frames++;
}

/*
 * Messages that no receive matches must not take all buffers, which frames that
 * complete receives, and acknowledgements, need: some buffers are always reposted at
 * once.
 */
bool lnx_rxbuf_may_keep(struct lnx_rxbuf *buf)
{
	struct lnx_rail *rail = buf->rail;
	struct lnx_ep *ep = rail->ep;
	void *spare;

	if (rail->kind == LNX_RAIL_PEER)
		return ep->nbuf_reserve >= ep->buf_reserve_min;
	if (rail->nposted >= rail->want_posted / 2)
		return true;
	spare = lnx_pool_get(&ep->rxbuf_pool);
	if (!spare)
		return false;
	lnx_pool_put(&ep->rxbuf_pool, spare);
	return true;
}

void lnx_rxbuf_drop(struct lnx_rxbuf *buf)
{
	buf->kept = false;
	if (!buf->in_core)
		lnx_rxbuf_put(buf);
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
		ret = fi_recv(rail->core_ep, buf->frame, LNX_FRAME_MAX, NULL,
			      FI_ADDR_UNSPEC, buf);
	if (lnx_likely(!ret)) {
		buf->posted = true;
		rail->nposted++;
		return;
	}
	give_up(buf);
	rail->ep->work |= LNX_WORK_BUFS;
}

/* Post the buffers that were read again, unless enough are posted. */
LNX_HOT
static void post_spare(struct lnx_rail *rail)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&rail->unposted))) {
		struct lnx_rxbuf *buf = lnx_list_entry(n, struct lnx_rxbuf, unposted);

		if (lnx_likely(rail->nposted < rail->want_posted))
			post_buf(rail, buf);
		else
			give_up(buf);
	}
}

static uint32_t least_posted(const struct lnx_ep *ep)
{
	uint32_t n = 2 * LNX_MIN(ep->peers.n, LNX_PLAIN_PEERS);

	return LNX_MIN(LNX_MAX(n, LNX_PLAIN_POSTED), ep->conf->rx_buffers);
}

int lnx_plain_fill(struct lnx_rail *rail)
{
	/*
	 * The rail is closed, perhaps for hours; its buffers are posted when it is
	 * opened.
	 */
	if (lnx_unlikely(!rail->core_ep))
		return 0;
	rail->want_posted = LNX_MAX(rail->want_posted, least_posted(rail->ep));
	while (rail->nposted < rail->want_posted) {
		struct lnx_rxbuf *buf = lnx_rxbuf_get(rail);
		uint32_t before = rail->nposted;

		if (!buf)
			return -FI_ENOMEM;
		lnx_list_add_tail(&rail->bufs, &buf->link);
		post_buf(rail, buf);
		if (rail->nposted == before)
			return -FI_EAGAIN;
	}
	return 0;
}

static inline void plain_recv(struct lnx_rail *rail, struct lnx_rxbuf *buf,
			      size_t len)
{
	buf->posted = false;
	rail->nposted--;
	if (lnx_unlikely(lnx_rx_frame(rail, buf, len))) {
		buf = lnx_rxbuf_get(rail);
		if (!buf) {
			rail->ep->work |= LNX_WORK_BUFS;
			return;
		}
		lnx_list_add_tail(&rail->bufs, &buf->link);
	}
	/* Not now: the application waits for what came, and may answer it. */
	lnx_list_add_tail(&rail->unposted, &buf->unposted);
}

/* Too long for a frame, or flushed at close. */
LNX_COLD void lnx_plain_recv_failed(struct lnx_rail *rail,
				    struct lnx_rxbuf *buf, int err)
{
	if (!buf->posted)
		return;
	buf->posted = false;
	rail->nposted--;
	if (err == FI_ECANCELED || rail->ep->closing) {
		give_up(buf);
		if (!rail->ep->closing)
			rail->ep->work |= LNX_WORK_BUFS;
		return;
	}
	rail->ep->stats.bad_frames++;
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
		lnx_core_error(rail, &err);
	}
}

LNX_COLD void lnx_rail_poll(struct lnx_rail *rail)
{
	if (rail->kind == LNX_RAIL_PLAIN)
		lnx_plain_poll(rail);
	else
		fi_cq_read(rail->core_cq, NULL, 0);
}

LNX_COLD void lnx_rail_drain(struct lnx_rail *rail)
{
	struct lnx_node *n;

	if (rail->kind == LNX_RAIL_PLAIN)
		while (lnx_plain_poll(rail))
			;
	else
		lnx_rail_poll(rail);
	lnx_list_init(&rail->unposted);
	while ((n = lnx_list_pop(&rail->bufs))) {
		struct lnx_rxbuf *buf = lnx_list_entry(n, struct lnx_rxbuf, link);

		buf->posted = false;
		lnx_rxbuf_put(buf);
	}
	rail->nposted = 0;
}

static LNX_COLD void want_fewer(struct lnx_rail *rail)
{
	rail->idle_polls = 0;
	rail->want_posted = LNX_MAX(rail->want_posted / 2,
				    least_posted(rail->ep));
}

/* A poll found n.  The next burst may take as many buffers as this one. */
static inline void adapt(struct lnx_rail *rail, ssize_t n)
{
	if (lnx_unlikely(!rail->nposted)) {
		rail->idle_polls = 0;
		if (rail->want_posted >= rail->ep->conf->rx_buffers)
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

/* Number of completions handled. */
LNX_HOT
int lnx_plain_poll(struct lnx_rail *rail)
{
	struct fi_cq_msg_entry e[READ_BATCH];
	ssize_t n, i;

	n = read_core(rail, e);
	if (lnx_likely(n == -FI_EAGAIN)) {
		if (!lnx_list_empty(&rail->unposted))
			post_spare(rail);
		return 0;
	}
	if (lnx_unlikely(n < 0)) {
		if (n == -FI_EAVAIL)
			read_errors(rail);
		return 1;
	}
	for (i = 0; i < n; i++) {
		struct lnx_op *op = e[i].op_context;

		if (e[i].flags & FI_RECV) {
			plain_recv(rail, (struct lnx_rxbuf *)op, e[i].len);
		} else if (e[i].flags & FI_SEND) {
			rail->busy--;
			lnx_tx_core_done((struct lnx_txe *)op);
		} else if (e[i].flags & (FI_READ | FI_WRITE)) {
			if (op->type == LNX_OP_READ)
				lnx_read_done(op, 0, 0);
			else
				lnx_pull_chunk_done(op, 0, 0);
		}
	}
	adapt(rail, n);
	if (rail->nposted < rail->want_posted / 2)
		post_spare(rail);
	return (int)n;
}
