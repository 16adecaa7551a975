/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_INJECT in tx_attr->op_flags: in calls without flags, the buffer is the
 * application's again when the call returns.  Such an endpoint gets tables in which
 * these calls are the ones with flags, so that no other endpoint pays for it.  Called
 * by ep_enable.c.
 */
#include <stdlib.h>

#include "api/ep.h"
#include "msg/rx.h"

struct lnx_inject_ops {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
};

static inline uint64_t flags_of(const struct fid_ep *fid)
{
	return FI_INJECT |
	       lnx_container_of(fid, const struct lnx_ep, fid)->tx_flags;
}

/* ---- fi_msg(3) ---- */

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dest,
			 void *context)
{
	struct fi_msg m = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.context = context,
	};

	return fi_sendmsg(fid, &m, flags_of(fid));
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, fi_addr_t dest, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return msg_sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_msg m = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest,
		.context = context, .data = data,
	};

	return fi_sendmsg(fid, &m, flags_of(fid) | FI_REMOTE_CQ_DATA);
}

/* ---- fi_tagged(3) ---- */

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t dest,
			    uint64_t tag, void *context)
{
	struct fi_msg_tagged m = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.tag = tag, .context = context,
	};

	return fi_tsendmsg(fid, &m, flags_of(fid));
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len,
			   void *desc, fi_addr_t dest, uint64_t tag,
			   void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return tagged_sendv(fid, &iov, &desc, 1, dest, tag, context);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len,
			       void *desc, uint64_t data, fi_addr_t dest,
			       uint64_t tag, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest,
		.tag = tag, .context = context, .data = data,
	};

	return fi_tsendmsg(fid, &m, flags_of(fid) | FI_REMOTE_CQ_DATA);
}

/* ---- fi_rma(3): writes; a read has no such buffer ---- */

static ssize_t rma_writem(struct fid_ep *fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, uint64_t data,
			  uint64_t flags, void *context)
{
	struct fi_rma_iov rma = {
		.addr = addr, .len = lnx_msg_iov_len(iov, count), .key = key,
	};
	struct fi_msg_rma m = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &rma, .rma_iov_count = 1, .context = context,
		.data = data,
	};

	return fi_writemsg(fid, &m, flags_of(fid) | flags);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	return rma_writem(fid, iov, desc, count, dest, addr, key, 0, 0,
			  context);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rma_writem(fid, &iov, &desc, 1, dest, addr, key, 0, 0, context);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rma_writem(fid, &iov, &desc, 1, dest, addr, key, data,
			  FI_REMOTE_CQ_DATA, context);
}

/* ---- fi_atomic(3) ---- */

/* The elements of all pieces; too many of either are refused below. */
static size_t sum(const struct fi_ioc *ioc, size_t n)
{
	size_t i, count = 0;

	for (i = 0; i < LNX_MIN(n, (size_t)LNX_IOV_MAX); i++)
		if (__builtin_add_overflow(count, ioc[i].count, &count))
			return SIZE_MAX;
	return count;
}

#define ATOMIC_MSG(name, there)						\
	struct fi_rma_ioc there_ = {					\
		.addr = addr, .count = (there), .key = key,		\
	};								\
	struct fi_msg_atomic name = {					\
		.msg_iov = iov, .desc = desc, .iov_count = count,	\
		.addr = dest, .rma_iov = &there_, .rma_iov_count = 1,	\
		.datatype = type, .op = op, .context = context,		\
	}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op,
			     void *context)
{
	ATOMIC_MSG(m, sum(iov, count));

	return fi_atomicmsg(fid, &m, flags_of(fid));
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype type, enum fi_op op,
			    void *context)
{
	struct fi_ioc ioc = { .addr = (void *)buf, .count = count };

	return atomic_writev(fid, &ioc, &desc, 1, dest, addr, key, type, op,
			     context);
}

static ssize_t atomic_fetchv(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t count, struct fi_ioc *res,
			     void **res_desc, size_t nres, fi_addr_t dest,
			     uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op,
			     void *context)
{
	ATOMIC_MSG(m, sum(res, nres));

	return fi_fetch_atomicmsg(fid, &m, res, res_desc, nres, flags_of(fid));
}

static ssize_t atomic_fetch(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, void *result, void *res_desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype type, enum fi_op op,
			    void *context)
{
	struct fi_ioc ioc = { .addr = (void *)buf, .count = count };
	struct fi_ioc res = { .addr = result, .count = count };

	return atomic_fetchv(fid, &ioc, &desc, 1, &res, &res_desc, 1, dest,
			     addr, key, type, op, context);
}

static ssize_t atomic_comparev(struct fid_ep *fid, const struct fi_ioc *iov,
			       void **desc, size_t count,
			       const struct fi_ioc *cmp, void **cmp_desc,
			       size_t ncmp, struct fi_ioc *res,
			       void **res_desc, size_t nres, fi_addr_t dest,
			       uint64_t addr, uint64_t key,
			       enum fi_datatype type, enum fi_op op,
			       void *context)
{
	ATOMIC_MSG(m, sum(iov, count));

	return fi_compare_atomicmsg(fid, &m, cmp, cmp_desc, ncmp, res,
				    res_desc, nres, flags_of(fid));
}

static ssize_t atomic_compare(struct fid_ep *fid, const void *buf,
			      size_t count, void *desc, const void *compare,
			      void *cmp_desc, void *result, void *res_desc,
			      fi_addr_t dest, uint64_t addr, uint64_t key,
			      enum fi_datatype type, enum fi_op op,
			      void *context)
{
	struct fi_ioc ioc = { .addr = (void *)buf, .count = count };
	struct fi_ioc cmp = { .addr = (void *)compare, .count = count };
	struct fi_ioc res = { .addr = result, .count = count };

	return atomic_comparev(fid, &ioc, &desc, 1, &cmp, &cmp_desc, 1, &res,
			       &res_desc, 1, dest, addr, key, type, op,
			       context);
}

/* ---- tables ---- */

int lnx_inject_new(struct lnx_ep *ep)
{
	if (!ep->bound.inject)
		ep->bound.inject = calloc(1, sizeof(*ep->bound.inject));
	return ep->bound.inject ? 0 : -FI_ENOMEM;
}

void lnx_inject_set(struct lnx_ep *ep)
{
	struct lnx_inject_ops *in = ep->bound.inject;

	in->msg = *ep->fid.msg;
	in->msg.send = msg_send;
	in->msg.sendv = msg_sendv;
	in->msg.senddata = msg_senddata;
	ep->fid.msg = &in->msg;
	in->tagged = *ep->fid.tagged;
	in->tagged.send = tagged_send;
	in->tagged.sendv = tagged_sendv;
	in->tagged.senddata = tagged_senddata;
	ep->fid.tagged = &in->tagged;
	in->rma = *ep->fid.rma;
	in->rma.write = rma_write;
	in->rma.writev = rma_writev;
	in->rma.writedata = rma_writedata;
	ep->fid.rma = &in->rma;
	in->atomic = *ep->fid.atomic;
	in->atomic.write = atomic_write;
	in->atomic.writev = atomic_writev;
	in->atomic.readwrite = atomic_fetch;
	in->atomic.readwritev = atomic_fetchv;
	in->atomic.compwrite = atomic_compare;
	in->atomic.compwritev = atomic_comparev;
	ep->fid.atomic = &in->atomic;
}
