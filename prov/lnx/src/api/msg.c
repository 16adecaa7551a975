/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_msg(3): each call fills a descriptor; msg/submit.h and msg/post.h do the rest. */
#include "api/api.h"
#include "api/flags.h"
#include "msg/post.h"
#include "msg/rx.h"
#include "msg/submit.h"

#ifdef LNX_NATIVE
#include "msg/native.h"
#define SUBMIT		lnx_native_submit
#define POST		lnx_rx_native_post
#define POST_SPECIAL	lnx_rx_native_post
#define OPS		lnx_native_msg_ops
#else
#define SUBMIT		lnx_msg_submit
#define POST		lnx_post_recv
#define POST_SPECIAL	lnx_rx_post_special
#define OPS		lnx_msg_ops
#endif

static inline struct lnx_ep *ep_of(struct fid_ep *fid)
{
	return lnx_container_of(fid, struct lnx_ep, fid);
}

LNX_HOT
static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t src, void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct lnx_recv r = {
		.iov = &iov, .desc = &desc, .niov = 1, .src = src,
		.context = context, .flags = ep->rx_flags,
	};

	return POST(ep, &r);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_recv r = {
		.iov = iov, .desc = desc, .niov = count, .src = src,
		.context = context, .flags = ep->rx_flags,
	};

	return POST(ep, &r);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_recv r = {
		.iov = msg->msg_iov, .desc = msg->desc, .niov = msg->iov_count,
		.src = msg->addr, .context = msg->context,
		.flags = flags | ep->rx_msg_flags,
	};
	ssize_t ret = lnx_flags_check("fi_recvmsg", flags, LNX_RECV_FLAGS);

	if (lnx_unlikely(ret))
		return ret;
	if (lnx_unlikely(flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))) {
		/* Discard which message? */
		if (!(flags & (FI_PEEK | FI_CLAIM)))
			return lnx_api_bad_flags("fi_recvmsg", flags);
		return POST_SPECIAL(ep, &r);
	}
	return POST(ep, &r);
}

LNX_HOT
static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, fi_addr_t dest, void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct lnx_tx tx = {
		.call = LNX_SEND, .iov = &iov, .niov = 1, .desc = &desc,
		.dest = dest, .context = context, .op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &tx);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dest,
			 void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_tx tx = {
		.call = LNX_SENDV, .iov = iov, .niov = count, .desc = desc,
		.dest = dest, .context = context, .op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &tx);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_tx tx = {
		.call = LNX_SENDMSG, .iov = msg->msg_iov,
		.niov = msg->iov_count, .desc = msg->desc, .dest = msg->addr,
		.data = msg->data, .context = msg->context, .flags = flags,
		.op_flags = flags | ep->tx_msg_flags,
	};
	ssize_t ret = lnx_flags_check("fi_sendmsg", flags, LNX_SEND_FLAGS);

	if (lnx_unlikely(ret))
		return ret;
	return SUBMIT(ep, &tx);
}

LNX_HOT
static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t dest)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct lnx_tx tx = {
		.call = LNX_INJECT, .iov = &iov, .niov = 1, .dest = dest,
		.op_flags = ep->tx_flags & LNX_LEVELS,
	};

	return SUBMIT(ep, &tx);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct lnx_tx tx = {
		.call = LNX_SENDDATA, .iov = &iov, .niov = 1, .desc = &desc,
		.dest = dest, .data = data, .context = context,
		.op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &tx);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct lnx_tx tx = {
		.call = LNX_INJECTDATA, .iov = &iov, .niov = 1, .dest = dest,
		.data = data, .op_flags = ep->tx_flags & LNX_LEVELS,
	};

	return SUBMIT(ep, &tx);
}

struct fi_ops_msg OPS = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
