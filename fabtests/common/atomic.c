/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of every form of the libfabric atomics. */
#include "rma.h"

#include <string.h>

const char *const ft_atomic_names[] = {
	"atomic", "atomicv", "atomicmsg", "inject-atomic",
	"fetch-atomic", "fetch-atomicv", "fetch-atomicmsg",
	"compare-atomic", "compare-atomicv", "compare-atomicmsg"
};

bool ft_atomic_fetches(int call)
{
	return call >= FT_FETCH;
}

bool ft_atomic_compares(int call)
{
	return call >= FT_COMPARE;
}

static bool is_msg(int call)
{
	return call == FT_ATOMICMSG || call == FT_FETCHMSG ||
	       call == FT_COMPAREMSG;
}

static bool is_vec(int call)
{
	return is_msg(call) || call == FT_ATOMICV || call == FT_FETCHV ||
	       call == FT_COMPAREV;
}

static void cut(struct fi_ioc v[2], void *buf, size_t size, size_t count,
		size_t pieces)
{
	size_t first = pieces == 2 ? count / 2 : count;

	v[0].addr = buf;
	v[0].count = first;
	v[1].addr = buf ? (char *)buf + first * size : NULL;
	v[1].count = count - first;
}

void ft_atomic_set(struct ft *ft, struct ft_atomic *a, int call,
		   enum fi_datatype type, enum fi_op op, size_t size,
		   void *buf, void *cmp, void *res, size_t count,
		   const struct ft_mr *local, const struct ft_mr *remote,
		   int rank, uint64_t off)
{
	const struct ft_target *t = &remote->at[rank];
	struct fi_tx_attr *tx = ft->o.info->tx_attr;
	size_t i;

	memset(a, 0, sizeof(*a));
	a->call = call;
	a->type = type;
	a->op = op;
	a->addr = ft->addr[rank];
	a->niov = is_vec(call) && count > 1 && tx->iov_limit > 1 ? 2 : 1;
	cut(a->iov, buf, size, count, a->niov);
	cut(a->cmp, cmp, size, count, a->niov);
	cut(a->res, res, size, count, a->niov);
	a->nrma = is_msg(call) && count > 2 && tx->rma_iov_limit > 1 ? 2 : 1;
	a->rma[0].addr = t->base + off;
	a->rma[0].key = t->key;
	a->rma[0].count = a->nrma == 2 ? count / 3 : count;
	if (a->nrma == 2) {
		a->rma[1].addr = t->base + off + count / 3 * size;
		a->rma[1].key = t->key;
		a->rma[1].count = count - count / 3;
	}
	for (i = 0; i < a->niov; i++)
		a->desc[i] = a->cmp_desc[i] = a->res_desc[i] =
			ft_mr_desc(ft, local);
}

ssize_t ft_try_atomic(struct fid_ep *ep, void *ctx, const struct ft_atomic *a)
{
	struct ft_atomic c = *a;	/* The calls take pointers to non-const. */
	uint64_t at = a->rma[0].addr, key = a->rma[0].key;
	struct fi_msg_atomic msg = {
		.msg_iov = c.iov, .desc = c.desc, .iov_count = c.niov,
		.addr = c.addr, .rma_iov = c.rma, .rma_iov_count = c.nrma,
		.datatype = c.type, .op = c.op, .context = ctx,
	};

	/* There is no operand, so the number of elements is in rma_iov. */
	if (!c.iov[0].addr && c.call == FT_FETCHMSG) {
		msg.msg_iov = NULL;
		msg.iov_count = 0;
		msg.desc = NULL;
	}
	switch (c.call) {
	case FT_ATOMIC:
		return fi_atomic(ep, c.iov->addr, c.iov->count, c.desc[0],
				 c.addr, at, key, c.type, c.op, ctx);
	case FT_ATOMICV:
		return fi_atomicv(ep, c.iov, c.desc, c.niov, c.addr, at, key,
				  c.type, c.op, ctx);
	case FT_ATOMICMSG:
		return fi_atomicmsg(ep, &msg, c.flags);
	case FT_INJECT_ATOMIC:
		return fi_inject_atomic(ep, c.iov->addr, c.iov->count, c.addr,
					at, key, c.type, c.op);
	case FT_FETCH:
		return fi_fetch_atomic(ep, c.iov->addr, c.iov->count,
				       c.desc[0], c.res->addr, c.res_desc[0],
				       c.addr, at, key, c.type, c.op, ctx);
	case FT_FETCHV:
		return fi_fetch_atomicv(ep, c.iov, c.desc, c.niov, c.res,
					c.res_desc, c.niov, c.addr, at, key,
					c.type, c.op, ctx);
	case FT_FETCHMSG:
		return fi_fetch_atomicmsg(ep, &msg, c.res, c.res_desc, c.niov,
					  c.flags);
	case FT_COMPARE:
		return fi_compare_atomic(ep, c.iov->addr, c.iov->count,
					 c.desc[0], c.cmp->addr, c.cmp_desc[0],
					 c.res->addr, c.res_desc[0], c.addr,
					 at, key, c.type, c.op, ctx);
	case FT_COMPAREV:
		return fi_compare_atomicv(ep, c.iov, c.desc, c.niov, c.cmp,
					  c.cmp_desc, c.niov, c.res,
					  c.res_desc, c.niov, c.addr, at, key,
					  c.type, c.op, ctx);
	default:
		return fi_compare_atomicmsg(ep, &msg, c.cmp, c.cmp_desc,
					    c.niov, c.res, c.res_desc, c.niov,
					    c.flags);
	}
}

static ssize_t attempt(struct fid_ep *ep, void *ctx, const void *a)
{
	return ft_try_atomic(ep, ctx, a);
}

int ft_atomic(struct ft *ft, struct ft_op *op, const struct ft_atomic *a)
{
	return ft_start(ft, op, attempt, a);
}

int ft_atomic_now(struct ft *ft, const struct ft_atomic *a, const char *at)
{
	struct ft_op *op = a->call == FT_INJECT_ATOMIC ? NULL : ft_op_new(ft);
	uint64_t want = ft_atomic_fetches(a->call) ? FI_READ : FI_WRITE;
	int ret = ft_atomic(ft, op, a);

	if (ret)
		return ft_fail(ft, "%sfi_%s: %s (%d)", at,
			       ft_atomic_names[a->call], fi_strerror(-ret),
			       ret);
	if (!op)
		return FT_PASS;
	FT_TRY(ft_must_complete(ft, op, at));
	if ((op->flags & (FI_ATOMIC | want)) != (FI_ATOMIC | want))
		return ft_fail(ft, "%sflags %#llx of a completed fi_%s", at,
			       (unsigned long long)op->flags,
			       ft_atomic_names[a->call]);
	return FT_PASS;
}
