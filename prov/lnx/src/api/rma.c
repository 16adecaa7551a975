/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rma(3): each call fills a descriptor; rma/rma.h does the rest. */
#include "api/api.h"
#include "api/flags.h"
#include "rma/rma.h"

#ifdef LNX_NATIVE
#include "msg/native.h"
#define SUBMIT(ep, r, desc) lnx_native_rma(ep, r, desc)
#define OPS		lnx_native_rma_ops
#else
/* Only used by cores whose operations are the application's own. */
#define SUBMIT(ep, r, desc) ((void)(desc), lnx_rma_submit(ep, r))
#define OPS		lnx_rma_ops
#endif

static inline struct lnx_ep *ep_of(struct fid_ep *fid)
{
	return lnx_container_of(fid, struct lnx_ep, fid);
}

/* The remote piece of calls with only one: as long as the local one. */
static inline struct fi_rma_iov piece(uint64_t addr, uint64_t key, size_t len)
{
	return (struct fi_rma_iov) { .addr = addr, .len = len, .key = key };
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct fi_rma_iov rma = piece(addr, key, len);
	struct lnx_rma r = {
		.call = LNX_READ, .iov = &iov, .niov = 1, .rma = &rma,
		.nrma = 1, .dest = src, .context = context,
		.op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &r, &desc);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct fi_rma_iov rma = piece(addr, key, lnx_msg_iov_len(iov, count));
	struct lnx_rma r = {
		.call = LNX_READV, .iov = iov, .niov = count, .rma = &rma,
		.nrma = 1, .dest = src, .context = context,
		.op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &r, desc);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_rma r = {
		.call = LNX_READMSG, .iov = msg->msg_iov,
		.niov = msg->iov_count, .rma = msg->rma_iov,
		.nrma = msg->rma_iov_count, .dest = msg->addr,
		.context = msg->context, .flags = flags,
		.op_flags = flags | ep->tx_msg_flags,
	};
	ssize_t ret = lnx_flags_check("fi_readmsg", flags, LNX_READ_FLAGS);

	if (lnx_unlikely(ret))
		return ret;
	return SUBMIT(ep, &r, msg->desc);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_rma_iov rma = piece(addr, key, len);
	struct lnx_rma r = {
		.call = LNX_WRITE, .iov = &iov, .niov = 1, .rma = &rma,
		.nrma = 1, .dest = dest, .context = context,
		.op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &r, &desc);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct fi_rma_iov rma = piece(addr, key, lnx_msg_iov_len(iov, count));
	struct lnx_rma r = {
		.call = LNX_WRITEV, .iov = iov, .niov = count, .rma = &rma,
		.nrma = 1, .dest = dest, .context = context,
		.op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &r, desc);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_rma r = {
		.call = LNX_WRITEMSG, .iov = msg->msg_iov,
		.niov = msg->iov_count, .rma = msg->rma_iov,
		.nrma = msg->rma_iov_count, .dest = msg->addr,
		.data = msg->data, .context = msg->context, .flags = flags,
		.op_flags = flags | ep->tx_msg_flags,
	};
	ssize_t ret = lnx_flags_check("fi_writemsg", flags, LNX_WRITE_FLAGS);

	if (lnx_unlikely(ret))
		return ret;
	return SUBMIT(ep, &r, msg->desc);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_rma_iov rma = piece(addr, key, len);
	struct lnx_rma r = {
		.call = LNX_INJECT_WRITE, .iov = &iov, .niov = 1, .rma = &rma,
		.nrma = 1, .dest = dest,
		.op_flags = ep->tx_flags & LNX_LEVELS,
	};

	return SUBMIT(ep, &r, NULL);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_rma_iov rma = piece(addr, key, len);
	struct lnx_rma r = {
		.call = LNX_WRITEDATA, .iov = &iov, .niov = 1, .rma = &rma,
		.nrma = 1, .dest = dest, .data = data, .context = context,
		.op_flags = ep->tx_flags,
	};

	return SUBMIT(ep, &r, &desc);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr,
			      uint64_t key)
{
	struct lnx_ep *ep = ep_of(fid);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_rma_iov rma = piece(addr, key, len);
	struct lnx_rma r = {
		.call = LNX_INJECT_WRITEDATA, .iov = &iov, .niov = 1,
		.rma = &rma, .nrma = 1, .dest = dest, .data = data,
		.op_flags = ep->tx_flags & LNX_LEVELS,
	};

	return SUBMIT(ep, &r, NULL);
}

struct fi_ops_rma OPS = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
