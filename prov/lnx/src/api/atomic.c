/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_atomic(3): each call fills a descriptor; rma/amo.h does the rest. */
#include "api/api.h"
#include "api/flags.h"
#include "rma/amo.h"

static inline struct lnx_ep *ep_of(struct fid_ep *fid)
{
	return lnx_container_of(fid, struct lnx_ep, fid);
}

/* The local piece of calls that have only one. */
#define ONE(buf, n)	(&(struct fi_ioc) { .addr = (void *)(buf), .count = (n) })

/* The remote piece of calls that have only one. */
#define THERE(at, k, n) \
	(&(struct fi_rma_ioc) { .addr = (at), .count = (n), .key = (k) })

/*
 * The elements of all pieces; or a number that is certainly too large, if the sum does
 * not fit or there are too many pieces to be read.
 */
static size_t sum(const struct fi_ioc *ioc, size_t n)
{
	size_t i, count = 0;

	if (n > LNX_IOV_MAX)
		return SIZE_MAX;
	for (i = 0; i < n; i++)
		if (__builtin_add_overflow(count, ioc[i].count, &count))
			return SIZE_MAX;
	return count;
}

/* In the usual calls every member is set: for the unset members of large objects,
 * compilers use an instruction that is slow. */

/* ---- base ---- */

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype type, enum fi_op op,
			    void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_ATOMIC, .op = op, .type = type,
		.iov = ONE(buf, count), .niov = 1,
		.cmp = NULL, .ncmp = 0, .res = NULL, .nres = 0,
		.data = 0, .flags = 0,
		.rma = THERE(addr, key, count), .nrma = 1, .dest = dest,
		.op_flags = ep->tx_flags, .context = context,
	};

	(void)desc;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op,
			     void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_ATOMICV, .op = op, .type = type,
		.iov = iov, .niov = count,
		.rma = THERE(addr, key, sum(iov, count)), .nrma = 1,
		.dest = dest, .op_flags = ep->tx_flags, .context = context,
	};

	(void)desc;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_writemsg(struct fid_ep *fid,
			       const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_ATOMICMSG, .op = msg->op, .type = msg->datatype,
		.iov = msg->msg_iov, .niov = msg->iov_count,
		.rma = msg->rma_iov, .nrma = msg->rma_iov_count,
		.dest = msg->addr, .data = msg->data, .flags = flags,
		.op_flags = flags | ep->tx_msg_flags, .context = msg->context,
	};
	ssize_t ret = lnx_flags_check("fi_atomicmsg", flags,
				      LNX_AMO_FLAGS);

	if (lnx_unlikely(ret))
		return ret;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count,
			     fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_INJECT_ATOMIC, .op = op, .type = type,
		.iov = ONE(buf, count), .niov = 1,
		.rma = THERE(addr, key, count), .nrma = 1, .dest = dest,
		.op_flags = ep->tx_flags & LNX_LEVELS,
	};

	return lnx_amo_submit(ep, &t);
}

/* ---- fetch ---- */

static ssize_t atomic_fetch(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, void *result, void *result_desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype type, enum fi_op op,
			    void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_FETCH, .op = op, .type = type,
		.iov = ONE(buf, count), .niov = 1,
		.cmp = NULL, .ncmp = 0, .data = 0, .flags = 0,
		.res = ONE(result, count), .nres = 1,
		.rma = THERE(addr, key, count), .nrma = 1, .dest = dest,
		.op_flags = ep->tx_flags, .context = context,
	};

	(void)desc, (void)result_desc;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_fetchv(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t count, struct fi_ioc *res,
			     void **result_desc, size_t nres, fi_addr_t dest,
			     uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op,
			     void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_FETCHV, .op = op, .type = type,
		.iov = iov, .niov = count, .res = res, .nres = nres,
		.rma = THERE(addr, key, sum(res, nres)), .nrma = 1,
		.dest = dest, .op_flags = ep->tx_flags, .context = context,
	};

	(void)desc, (void)result_desc;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_fetchmsg(struct fid_ep *fid,
			       const struct fi_msg_atomic *msg,
			       struct fi_ioc *res, void **result_desc,
			       size_t nres, uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_FETCHMSG, .op = msg->op, .type = msg->datatype,
		.iov = msg->msg_iov, .niov = msg->iov_count,
		.res = res, .nres = nres,
		.rma = msg->rma_iov, .nrma = msg->rma_iov_count,
		.dest = msg->addr, .data = msg->data, .flags = flags,
		.op_flags = flags | ep->tx_msg_flags, .context = msg->context,
	};
	ssize_t ret = lnx_flags_check("fi_fetch_atomicmsg", flags,
				      LNX_AMO_FLAGS);

	(void)result_desc;
	if (lnx_unlikely(ret))
		return ret;
	return lnx_amo_submit(ep, &t);
}

/* ---- compare ---- */

static ssize_t atomic_compare(struct fid_ep *fid, const void *buf,
			      size_t count, void *desc, const void *compare,
			      void *compare_desc, void *result,
			      void *result_desc, fi_addr_t dest,
			      uint64_t addr, uint64_t key,
			      enum fi_datatype type, enum fi_op op,
			      void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_COMPARE, .op = op, .type = type,
		.iov = ONE(buf, count), .niov = 1,
		.cmp = ONE(compare, count), .ncmp = 1,
		.res = ONE(result, count), .nres = 1,
		.data = 0, .flags = 0,
		.rma = THERE(addr, key, count), .nrma = 1, .dest = dest,
		.op_flags = ep->tx_flags, .context = context,
	};

	(void)desc, (void)compare_desc, (void)result_desc;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_comparev(struct fid_ep *fid, const struct fi_ioc *iov,
			       void **desc, size_t count,
			       const struct fi_ioc *cmp, void **compare_desc,
			       size_t ncmp, struct fi_ioc *res,
			       void **result_desc, size_t nres, fi_addr_t dest,
			       uint64_t addr, uint64_t key,
			       enum fi_datatype type, enum fi_op op,
			       void *context)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_COMPAREV, .op = op, .type = type,
		.iov = iov, .niov = count, .cmp = cmp, .ncmp = ncmp,
		.res = res, .nres = nres,
		.rma = THERE(addr, key, sum(iov, count)), .nrma = 1,
		.dest = dest, .op_flags = ep->tx_flags, .context = context,
	};

	(void)desc, (void)compare_desc, (void)result_desc;
	return lnx_amo_submit(ep, &t);
}

static ssize_t atomic_comparemsg(struct fid_ep *fid,
				 const struct fi_msg_atomic *msg,
				 const struct fi_ioc *cmp,
				 void **compare_desc, size_t ncmp,
				 struct fi_ioc *res, void **result_desc,
				 size_t nres, uint64_t flags)
{
	struct lnx_ep *ep = ep_of(fid);
	struct lnx_amo_tx t = {
		.call = LNX_COMPAREMSG, .op = msg->op, .type = msg->datatype,
		.iov = msg->msg_iov, .niov = msg->iov_count,
		.cmp = cmp, .ncmp = ncmp, .res = res, .nres = nres,
		.rma = msg->rma_iov, .nrma = msg->rma_iov_count,
		.dest = msg->addr, .data = msg->data, .flags = flags,
		.op_flags = flags | ep->tx_msg_flags, .context = msg->context,
	};
	ssize_t ret = lnx_flags_check("fi_compare_atomicmsg", flags,
				      LNX_AMO_FLAGS);

	(void)compare_desc, (void)result_desc;
	if (lnx_unlikely(ret))
		return ret;
	return lnx_amo_submit(ep, &t);
}

/* ---- queries ---- */

static int valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
		 size_t *count, enum lnx_amo_class cls)
{
	size_t max = lnx_amo_count(ep_of(fid)->domain, op, type, cls);

	if (!max)
		return -FI_EOPNOTSUPP;
	if (count)
		*count = max;
	return 0;
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype type,
			     enum fi_op op, size_t *count)
{
	return valid(fid, type, op, count, LNX_AMO_BASE);
}

static int atomic_fetchvalid(struct fid_ep *fid, enum fi_datatype type,
			     enum fi_op op, size_t *count)
{
	return valid(fid, type, op, count, LNX_AMO_FETCH);
}

static int atomic_comparevalid(struct fid_ep *fid, enum fi_datatype type,
			       enum fi_op op, size_t *count)
{
	return valid(fid, type, op, count, LNX_AMO_COMPARE);
}

int lnx_atomic_query(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	enum lnx_amo_class cls;
	size_t max;

	switch (flags) {
	case 0:
		cls = LNX_AMO_BASE;
		break;
	case FI_FETCH_ATOMIC:
		cls = LNX_AMO_FETCH;
		break;
	case FI_COMPARE_ATOMIC:
		cls = LNX_AMO_COMPARE;
		break;
	case FI_TAGGED:			/* atomics on tags */
		return -FI_EOPNOTSUPP;
	default:
		return -FI_EBADFLAGS;
	}
	if (!attr)
		return -FI_EINVAL;
	max = lnx_amo_count(d, op, type, cls);
	if (!max)
		return -FI_EOPNOTSUPP;
	attr->count = max;
	attr->size = lnx_amo_size(type);
	return 0;
}

struct fi_ops_atomic lnx_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_fetch,
	.readwritev = atomic_fetchv,
	.readwritemsg = atomic_fetchmsg,
	.compwrite = atomic_compare,
	.compwritev = atomic_comparev,
	.compwritemsg = atomic_comparemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_fetchvalid,
	.compwritevalid = atomic_comparevalid,
};
