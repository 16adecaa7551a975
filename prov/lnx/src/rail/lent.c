/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Framed rails of peer providers: they write their completions into the CQ that we lend
 * them, with the owner lock held, and are given buffers by our SRX (msg/srx_owner.c).
 * What came goes up through ep->up.  Nothing here may call a core, except to poll.
 */
#include "rail/post.h"
#include "rail/rail.h"

static inline struct lnx_rail *cq_rail(struct fid_peer_cq *cq)
{
	return lnx_container_of(cq, struct lnx_rail, peer_cq);
}

static int peer_fid_close(struct fid *fid)
{
	(void)fid;			/* part of the rail */
	return 0;
}

static int peer_fid_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return -FI_ENOSYS;
}

static int peer_fid_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

static int peer_fid_ops_open(struct fid *fid, const char *name, uint64_t flags,
			     void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

struct fi_ops lnx_peer_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = peer_fid_close,
	.bind = peer_fid_bind,
	.control = peer_fid_control,
	.ops_open = peer_fid_ops_open,
};

/* A frame has come in over a peer rail. */
LNX_HOT
static void framed_recv(struct lnx_rail *rail, struct lnx_rxbuf *buf,
			size_t len)
{
	rail->poll_credits = rail->ep->poll_credits;
	if (lnx_unlikely(buf->big != NULL)) {
		lnx_rxbuf_shrink(buf);
		return;
	}
	rail->ep->up->frame(rail, buf, len);	/* free_entry returns buf unless it is kept */
}

LNX_HOT
static ssize_t framed_write(struct fid_peer_cq *cq, void *context,
			    uint64_t flags, size_t len, void *buf,
			    uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct lnx_rail *rail = cq_rail(cq);
	struct lnx_op *op = context;

	(void)buf, (void)data, (void)tag, (void)src;
	lnx_assert_held(&rail->ep->lock);
	if (flags & FI_RECV) {
		framed_recv(rail, context, len);
	} else if ((flags & (FI_SEND | FI_READ | FI_WRITE)) && op) {
		lnx_rail_op_ended(rail);
		rail->ep->up->op[op->type].done(op);
	}
	return 0;
}

static ssize_t framed_writeerr(struct fid_peer_cq *cq,
			       const struct fi_cq_err_entry *err)
{
	struct lnx_rail *rail = cq_rail(cq);

	lnx_rail_core_error(rail, err);
	return 0;
}

struct fi_ops_cq_owner lnx_framed_cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = framed_write,
	.writeerr = framed_writeerr,
};

static int poll_core(struct lnx_rail *rail)
{
	lnx_rail_poll_lent(rail);
	return 0;
}

/* It asks for buffers. */
static int refill(struct lnx_rail *rail)
{
	(void)rail;
	return 0;
}

static void recv_failed(struct lnx_rail *rail, struct lnx_rxbuf *buf, int err)
{
	(void)rail, (void)err;
	if (buf->big)
		lnx_rxbuf_shrink(buf);
}

/* The reserve is for what must be received. */
static bool may_keep(const struct lnx_rail *rail)
{
	return rail->ep->nbuf_reserve >= rail->ep->buf_reserve_min;
}

static bool more(struct lnx_rail *rail)
{
	(void)rail;
	return false;
}

const struct lnx_rail_driver lnx_lent_driver = {
	.poll = poll_core,
	.refill = refill,
	.recv_failed = recv_failed,
	.may_keep = may_keep,
	.more = more,
	.close = lnx_rail_close_framed,
	.reopen = lnx_rail_reopen_framed,
};
