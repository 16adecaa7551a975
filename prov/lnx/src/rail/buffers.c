/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frame buffers of all framed rails: one pool, a reserve for cores that must always
 * be given a buffer, and one for what must be dropped when that is used up.
 */
#include <stdlib.h>

#include "rail/rail.h"

/* Frame buffers set aside for peer rails, which must always be given one. */
#define BUF_RESERVE	128

/*
 * Used when those are used up too: one buffer that any number of arrivals may be given
 * at once, because what they leave in it is dropped.  No frame of ours is longer than
 * LNX_FRAME_MAX; tcp;ofi_rxm sends in segments of 128 KiB, which it must not have to
 * truncate.
 */
#define SCRATCH_BYTES	(128 * 1024)

LNX_HOT
struct lnx_rxbuf *lnx_rxbuf_get(struct lnx_rail *rail)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_rxbuf *buf = lnx_pool_get(&ep->rxbuf_pool);

	if (lnx_unlikely(!buf)) {
		struct lnx_node *n = NULL;

		if (rail->drop_buf)	/* a core asks, and must be given one */
			n = lnx_list_pop(&ep->buf_reserve);
		if (!n)
			return rail->drop_buf;	/* plain: NULL */
		ep->nbuf_reserve--;
		buf = lnx_list_entry(n, struct lnx_rxbuf, link);
	}
	buf->op.type = LNX_OP_RXBUF;
	buf->rail = rail;
	buf->posted = 0;
	buf->in_core = false;
	buf->kept = false;
	buf->small = false;
	buf->big = NULL;
	buf->desc[0] = NULL;
	lnx_list_init(&buf->link);
	return buf;
}

LNX_HOT
void lnx_rxbuf_put(struct lnx_rxbuf *buf)
{
	struct lnx_ep *ep = buf->rail->ep;

	if (lnx_unlikely(buf->small)) {
		lnx_pool_put(&ep->eager.small_bufs, buf);
		return;
	}
	if (lnx_unlikely(ep->nbuf_reserve < 2 * ep->buf_reserve_min)) {
		lnx_list_add_tail(&ep->buf_reserve, &buf->link);
		ep->nbuf_reserve++;
		return;
	}
	lnx_pool_put(&ep->rxbuf_pool, buf);
}

struct lnx_rxbuf *lnx_rxbuf_small(const struct lnx_rxbuf *buf, size_t len)
{
	struct lnx_ep *ep = buf->rail->ep;
	struct lnx_rxbuf *copy;

	if (ep->limits.rx_frame == LNX_FRAME_MAX || len > LNX_FRAME_MAX)
		return NULL;
	copy = lnx_pool_get(&ep->eager.small_bufs);
	if (!copy)
		return NULL;
	memset(copy, 0, sizeof(*copy));
	copy->op.type = LNX_OP_RXBUF;
	copy->rail = buf->rail;
	copy->small = true;
	lnx_list_init(&copy->link);
	memcpy(copy->frame, buf->frame, len);
	return copy;
}

size_t lnx_rxbuf_bytes(const struct lnx_rxbuf *buf)
{
	const struct lnx_ep *ep = buf->rail->ep;

	return buf->small ? ep->eager.small_bufs.size : ep->rxbuf_pool.size;
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
	struct lnx_rxbuf *buf = aligned_alloc(64, sizeof(*buf) + SCRATCH_BYTES);

	if (!buf)
		return -FI_ENOMEM;
	memset(buf, 0, sizeof(*buf));
	buf->op.type = LNX_OP_RXBUF;
	buf->rail = rail;
	buf->kept = true;		/* never to be freed */
	buf->big = buf->frame;		/* always to be dropped */
	lnx_list_init(&buf->link);
	rail->drop_buf = buf;
	return 0;
}

static uint8_t *scratch(const struct lnx_rail *rail)
{
	return rail->drop_buf->frame;
}

void lnx_rxbuf_enlarge(struct lnx_rxbuf *buf, size_t len)
{
	if (!buf->big)
		buf->big = malloc(len);
	if (!buf->big)
		buf->big = scratch(buf->rail);
	/* Also if buf is the drop buffer. */
	if (buf->big == scratch(buf->rail))
		len = LNX_MIN(len, SCRATCH_BYTES);
	buf->iov.iov_base = buf->big;
	buf->iov.iov_len = len;
}

void lnx_rxbuf_shrink(struct lnx_rxbuf *buf)
{
	struct lnx_rail *rail = buf->rail;

	if (buf == rail->drop_buf) {
		rail->ep->stats.mem_drops++;
		lnx_counts_drop(&rail->counts, 0, 0);
		return;
	}
	if (buf->big != scratch(rail))
		free(buf->big);
	buf->big = NULL;
	rail->ep->stats.bad_frames++;
	lnx_counts_drop(&rail->counts, 0, buf->iov.iov_len);
}

void lnx_rxbuf_drop(struct lnx_rxbuf *buf)
{
	buf->kept = false;
	if (!buf->in_core)
		lnx_rxbuf_put(buf);
}
