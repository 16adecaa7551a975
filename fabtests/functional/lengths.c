/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lengths that cannot be meant: pieces whose sum wraps around, reads, writes and atomics
 * whose local and remote pieces differ in length, and more than a message may have.  Each
 * is refused at once, and what is asked for afterwards is done.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <string.h>

#define MEM_BYTES	(64 << 10)
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	return ft_with_mem(ft, c, MEM_BYTES);
}

/* A message to the other rank, and a write, still arrive. */
static int works(struct ft *ft)
{
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .buf = ft_mem.local + 4096,
		.len = 64, .tag = 3,
	};
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);

	FT_CALL(ft, ft_recv(ft, rx, &m));
	ft_barrier(ft);
	m.addr = ft->addr[!ft->rank];
	m.buf = ft_mem.local;
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	ft_barrier(ft);
	return FT_PASS;
}

/* Pieces of these lengths. */
struct lens {
	const char *name;
	size_t n, len[4];
};

static const struct lens wraps[] = {
	{ "to 8", 2, { SIZE_MAX - 91, 100 } },
	{ "to nothing", 2, { SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1 } },
	{ "with the last", 4, { 8, SIZE_MAX - 16, 8, 9 } },
	{ "to 50000", 2, { SIZE_MAX, 50001 } },
};

static void cut(struct iovec *iov, const struct lens *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		iov[i] = (struct iovec){ ft_mem.local, l->len[i] };
}

#define REFUSED(expr, want)							\
	do {									\
		ssize_t ret_ = (expr);						\
										\
		FT_CHECK(ft, ret_ == (want), "%s, %s: %zd", #expr, l->name, ret_);	\
	} while (0)

static int wrap_to(struct ft *ft, const struct lens *l, fi_addr_t to, int rank)
{
	const struct ft_target *at = &ft_mem.tmr.at[rank];
	struct fi_rma_iov rma = { at->base, 8, at->key };
	struct fid_ep *ep = ft->o.ep;
	struct fi_context2 ctx;
	struct iovec iov[4];
	struct fi_msg m = {
		.msg_iov = iov, .iov_count = l->n, .addr = to, .context = &ctx,
	};
	struct fi_msg_tagged t = {
		.msg_iov = iov, .iov_count = l->n, .addr = to, .context = &ctx, .tag = 1,
	};
	struct fi_msg_rma r = {
		.msg_iov = iov, .iov_count = l->n, .addr = to, .context = &ctx,
		.rma_iov = &rma, .rma_iov_count = 1,
	};

	cut(iov, l);
	REFUSED(fi_sendv(ep, iov, NULL, l->n, to, &ctx), -FI_EINVAL);
	REFUSED(fi_sendmsg(ep, &m, 0), -FI_EINVAL);
	REFUSED(fi_sendmsg(ep, &m, FI_INJECT), -FI_EINVAL);
	REFUSED(fi_sendmsg(ep, &m, FI_DELIVERY_COMPLETE), -FI_EINVAL);
	REFUSED(fi_tsendv(ep, iov, NULL, l->n, to, 1, &ctx), -FI_EINVAL);
	REFUSED(fi_tsendmsg(ep, &t, 0), -FI_EINVAL);
	REFUSED(fi_recvv(ep, iov, NULL, l->n, FI_ADDR_UNSPEC, &ctx), -FI_EINVAL);
	REFUSED(fi_recvmsg(ep, &m, 0), -FI_EINVAL);
	REFUSED(fi_trecvv(ep, iov, NULL, l->n, FI_ADDR_UNSPEC, 1, 0, &ctx), -FI_EINVAL);
	REFUSED(fi_trecvmsg(ep, &t, 0), -FI_EINVAL);
	REFUSED(fi_writev(ep, iov, NULL, l->n, to, at->base, at->key, &ctx), -FI_EINVAL);
	REFUSED(fi_writemsg(ep, &r, 0), -FI_EINVAL);
	REFUSED(fi_readv(ep, iov, NULL, l->n, to, at->base, at->key, &ctx), -FI_EINVAL);
	REFUSED(fi_readmsg(ep, &r, 0), -FI_EINVAL);
	return FT_PASS;
}

static int wrap(struct ft *ft, const struct ft_case *c)
{
	size_t i;
	int k;

	(void)c;
	for (k = 0; k < 2; k++)
		for (i = 0; i < COUNT(wraps); i++)
			FT_TRY(wrap_to(ft, &wraps[i], ft->addr[k], k));
	return works(ft);
}

/* Local and remote pieces. */
static const struct {
	struct lens here, there;
} unequal[] = {
	{ { "too little there", 1, { 8 } }, { "", 1, { 4 } } },
	{ { "too much there", 1, { 8 } }, { "", 1, { 16 } } },
	{ { "nothing there", 1, { 8 } }, { "", 1, { 0 } } },
	{ { "nothing here", 0, { 0 } }, { "", 1, { 8 } } },
	{ { "two here", 2, { 8, 8 } }, { "", 1, { 8 } } },
	{ { "two there", 1, { 8 } }, { "", 2, { 8, 8 } } },
	{ { "large", 1, { 40000 } }, { "", 1, { 39999 } } },
	{ { "large, two there", 1, { 40000 } }, { "", 2, { 40000, 1 } } },
	{ { "wraps there", 1, { 8 } }, { "", 2, { SIZE_MAX - 7, 16 } } },
};

static int differ_to(struct ft *ft, const struct lens *l, const struct lens *there,
		     fi_addr_t to, int rank)
{
	const struct ft_target *at = &ft_mem.tmr.at[rank];
	struct fi_rma_iov rma[2];
	struct fi_context2 ctx;
	struct iovec iov[4];
	struct fi_msg_rma r = {
		.msg_iov = iov, .iov_count = l->n, .addr = to, .context = &ctx,
		.rma_iov = rma, .rma_iov_count = there->n,
	};
	size_t i;

	cut(iov, l);
	for (i = 0; i < there->n; i++)
		rma[i] = (struct fi_rma_iov){ at->base, there->len[i], at->key };
	REFUSED(fi_writemsg(ft->o.ep, &r, 0), -FI_EINVAL);
	REFUSED(fi_writemsg(ft->o.ep, &r, FI_DELIVERY_COMPLETE), -FI_EINVAL);
	REFUSED(fi_readmsg(ft->o.ep, &r, 0), -FI_EINVAL);
	return FT_PASS;
}

static int differ(struct ft *ft, const struct ft_case *c)
{
	size_t i, k;
	int rank;

	(void)c;
	memset(ft_mem.local, 0xee, MEM_BYTES);
	memset(ft_mem.target, 0x11, MEM_BYTES);
	ft_barrier(ft);
	for (rank = 0; rank < 2; rank++)
		for (i = 0; i < COUNT(unequal); i++)
			FT_TRY(differ_to(ft, &unequal[i].here, &unequal[i].there,
					 ft->addr[rank], rank));
	FT_TRY(works(ft));
	for (k = 0; k < MEM_BYTES; k++)
		FT_CHECK(ft, ft_mem.target[k] == 0x11, "byte %zu was written", k);
	return FT_PASS;
}

static int differ_atomic(struct ft *ft, const struct ft_case *c)
{
	static const size_t count[][2] = { { 1, 2 }, { 2, 1 }, { 0, 1 }, { SIZE_MAX, 1 } };
	uint64_t result[2];
	size_t i;
	int rank;

	(void)c;
	for (rank = 0; rank < 2; rank++)
	for (i = 0; i < COUNT(count); i++) {
		const struct ft_target *at = &ft_mem.tmr.at[rank];
		struct fi_ioc here = { ft_mem.local, count[i][0] };
		struct fi_ioc res = { result, count[i][1] };
		struct fi_rma_ioc there = { at->base, count[i][1], at->key };
		struct lens named = { "atomic", 0, { 0 } }, *l = &named;
		struct fi_context2 ctx;
		struct fi_msg_atomic a = {
			.msg_iov = &here, .iov_count = 1, .addr = ft->addr[rank],
			.rma_iov = &there, .rma_iov_count = 1, .datatype = FI_UINT64,
			.op = FI_SUM, .context = &ctx,
		};

		REFUSED(fi_atomicmsg(ft->o.ep, &a, 0), -FI_EINVAL);
		REFUSED(fi_fetch_atomicmsg(ft->o.ep, &a, &res, NULL, 1, 0), -FI_EINVAL);
		a.op = FI_CSWAP;
		REFUSED(fi_compare_atomicmsg(ft->o.ep, &a, &here, NULL, 1, &res, NULL, 1, 0),
			-FI_EINVAL);
	}
	return works(ft);
}

/* More than max_msg_size, in one piece. */
static int long_to(struct ft *ft, fi_addr_t to, int rank, size_t len)
{
	const struct ft_target *at = &ft_mem.tmr.at[rank];
	struct lens named = { "too long", 0, { 0 } }, *l = &named;
	unsigned char *buf = ft_mem.local;
	struct fid_ep *ep = ft->o.ep;
	struct fi_context2 ctx;

	REFUSED(fi_send(ep, buf, len, NULL, to, &ctx), -FI_EMSGSIZE);
	REFUSED(fi_tsend(ep, buf, len, NULL, to, 1, &ctx), -FI_EMSGSIZE);
	REFUSED(fi_senddata(ep, buf, len, NULL, 7, to, &ctx), -FI_EMSGSIZE);
	REFUSED(fi_write(ep, buf, len, NULL, to, at->base, at->key, &ctx), -FI_EMSGSIZE);
	REFUSED(fi_read(ep, buf, len, NULL, to, at->base, at->key, &ctx), -FI_EMSGSIZE);
	REFUSED(fi_inject(ep, buf, len, to), -FI_EINVAL);
	REFUSED(fi_inject_write(ep, buf, len, to, at->base, at->key), -FI_EINVAL);
	return FT_PASS;
}

static int too_long(struct ft *ft, const struct ft_case *c)
{
	int k;

	(void)c;
	for (k = 0; k < 2; k++) {
		FT_TRY(long_to(ft, ft->addr[k], k, ft->o.info->ep_attr->max_msg_size + 1));
		FT_TRY(long_to(ft, ft->addr[k], k, SIZE_MAX));
	}
	return works(ft);
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "sum-wraps", .fn = with_mem, .body = wrap,
		  .cfg = { .caps = FT_RMA_CAPS } },
		{ .name = "lengths-differ", .fn = with_mem, .body = differ,
		  .cfg = { .caps = FT_RMA_CAPS } },
		{ .name = "atomic-counts-differ", .fn = with_mem, .body = differ_atomic,
		  .cfg = { .caps = FT_ATOMIC_CAPS } },
		{ .name = "too-long", .fn = with_mem, .body = too_long,
		  .cfg = { .caps = FT_RMA_CAPS } },
	};

	return ft_main(argc, argv, "lengths that cannot be meant", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
