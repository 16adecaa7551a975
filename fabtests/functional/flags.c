/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flags of calls, and default flags of an endpoint.  A flag that a call does
 * not allow, or that is not supported, is refused with -FI_EBADFLAGS and the
 * call does nothing: an ignored flag would promise an effect that does not
 * happen.  FI_INJECT as a default is used for every call without flags.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <string.h>

#define MEM_BYTES	(128 << 10)
#define LEVELS		(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define RESERVED	16

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, MEM_BYTES);
}

/* ---- one flag at a time ---- */

struct call {
	const char *name;
	uint64_t legal;
	ssize_t (*try)(struct ft *ft, struct ft_op *op, uint64_t flags);
};

static ssize_t send_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	struct ft_msg m = {
		.call = FT_SENDMSG, .addr = ft->addr[ft->rank],
		.buf = ft_mem.local, .len = 8, .flags = flags,
	};

	return ft_try_send(ft->o.ep, op, &m);
}

static ssize_t tsend_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_SENDMSG, .addr = ft->addr[ft->rank],
		.buf = ft_mem.local, .len = 8, .tag = 7, .flags = flags,
	};

	return ft_try_send(ft->o.ep, op, &m);
}

static ssize_t recv_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	struct ft_msg m = {
		.call = FT_RECVMSG, .addr = ft_any(ft, ft->rank),
		.buf = ft_mem.local, .len = 64, .flags = flags,
	};

	return ft_try_recv(ft->o.ep, op, &m);
}

static ssize_t trecv_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_RECVMSG,
		.addr = ft_any(ft, ft->rank), .buf = ft_mem.local, .len = 64,
		.tag = 9, .flags = flags,
	};

	return ft_try_recv(ft->o.ep, op, &m);
}

static ssize_t rma_flag(struct ft *ft, struct ft_op *op, int call,
			uint64_t flags)
{
	struct ft_rma r;

	ft_rma_set(ft, &r, call, ft_mem.local, 8, &ft_mem.lmr, &ft_mem.tmr,
		   ft->rank, 0);
	r.flags = flags;
	return ft_try_rma(ft->o.ep, op, &r);
}

static ssize_t write_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	return rma_flag(ft, op, FT_WRITEMSG, flags);
}

static ssize_t read_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	return rma_flag(ft, op, FT_READMSG, flags);
}

static ssize_t atomic_flag(struct ft *ft, struct ft_op *op, int call,
			   uint64_t flags)
{
	struct ft_atomic a;

	ft_atomic_set(ft, &a, call, FI_UINT64, call == FT_COMPAREMSG ?
		      FI_CSWAP : FI_SUM, 8, ft_mem.local, ft_mem.local + 64,
		      ft_mem.local + 128, 1, &ft_mem.lmr, &ft_mem.tmr,
		      ft->rank, 0);
	a.flags = flags;
	return ft_try_atomic(ft->o.ep, op, &a);
}

static ssize_t base_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	return atomic_flag(ft, op, FT_ATOMICMSG, flags);
}

static ssize_t fetch_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	return atomic_flag(ft, op, FT_FETCHMSG, flags);
}

static ssize_t compare_flag(struct ft *ft, struct ft_op *op, uint64_t flags)
{
	return atomic_flag(ft, op, FT_COMPAREMSG, flags);
}

#define SENDS	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_REMOTE_CQ_DATA | \
		 LEVELS)
#define ATOMICS	(FI_COMPLETION | FI_MORE | FI_INJECT | LEVELS)
#define LOOKS	(FI_PEEK | FI_CLAIM | FI_DISCARD)

static const struct call calls[] = {
	{ "sendmsg", SENDS, send_flag },
	{ "tsendmsg", SENDS, tsend_flag },
	{ "recvmsg", FI_COMPLETION | FI_MORE | FI_MULTI_RECV | LOOKS |
		     FI_TRANSMIT_COMPLETE, recv_flag },
	{ "trecvmsg", FI_COMPLETION | FI_MORE | LOOKS, trecv_flag },
	{ "writemsg", SENDS, write_flag },
	{ "readmsg", FI_COMPLETION | FI_MORE | LEVELS, read_flag },
	{ "atomicmsg", ATOMICS, base_flag },
	{ "fetch-atomicmsg", ATOMICS, fetch_flag },
	{ "compare-atomicmsg", ATOMICS, compare_flag },
};

/* a: index in calls */
static int one_flag(struct ft *ft, const struct ft_case *c)
{
	const struct call *call = &calls[c->a];
	unsigned bit;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	ft->spoiled = true;
	memset(ft_mem.local, 0, 256);
	memset(ft_mem.target, 0, 256);
	for (bit = 0; bit < 64; bit++) {
		uint64_t flag = 1ULL << bit;
		struct ft_op *op = ft_op_new(ft);
		ssize_t ret;

		op->posted = true;
		/* These have cases of their own; they need a message, or a
		 * buffer alone. */
		if (call->legal & flag & (LOOKS | FI_MULTI_RECV))
			continue;
		ret = call->try(ft, op, flag);
		while (ret == -FI_EAGAIN) {
			ft_progress(ft);
			ret = call->try(ft, op, flag);
		}
		if (call->legal & flag)
			FT_CHECK(ft, !ret, "%s with bit %u, a flag that it "
				 "may have: %s", call->name, bit,
				 fi_strerror((int)-ret));
		else
			FT_CHECK(ft, ret == -FI_EBADFLAGS, "%s with bit %u "
				 "returned %zd", call->name, bit, ret);
		/* A bad flag is also found among legal ones. */
		if (!(call->legal & flag)) {
			ret = call->try(ft, op, flag | FI_COMPLETION |
					FI_MORE);
			FT_CHECK(ft, ret == -FI_EBADFLAGS, "%s with bit %u "
				 "and others returned %zd", call->name, bit,
				 ret);
			op->posted = false;
		}
	}
	return FT_PASS;
}

/* FI_DISCARD is for a message that was found or claimed: alone it is refused. */
static int discard_alone(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op = ft_op_new(ft);
	ssize_t ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	ret = trecv_flag(ft, op, FI_DISCARD);
	FT_CHECK(ft, ret == -FI_EBADFLAGS, "fi_trecvmsg returned %zd", ret);
	ret = recv_flag(ft, op, FI_DISCARD | FI_COMPLETION);
	FT_CHECK(ft, ret == -FI_EBADFLAGS, "fi_recvmsg returned %zd", ret);
	return FT_PASS;
}

/* Flags of calls that open and bind. */
static int opening(struct ft *ft, const struct ft_case *c)
{
	uint64_t cq_ok = FI_AFFINITY, eq_ok = FI_WRITE | FI_AFFINITY;
	uint64_t av_ok = FI_EVENT | FI_SYMMETRIC;
	uint64_t mr_ok = FI_RMA_EVENT | FI_RMA_PMEM;
	struct iovec iov = { ft_mem.local, 4096 };
	unsigned bit;
	int ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	for (bit = 0; bit < 64; bit++) {
		uint64_t flag = 1ULL << bit;
		struct fi_cq_attr cq = { .flags = flag };
		struct fi_eq_attr eq = { .flags = flag };
		struct fi_av_attr av = { .flags = flag };
		struct fi_cntr_attr cntr = { .flags = flag };
		struct fi_mr_attr mr = {
			.mr_iov = &iov, .iov_count = 1,
			.access = FI_REMOTE_READ,
			.requested_key = ft_mr_new_key(ft),
		};
		struct { const char *what; uint64_t ok; int ret;
			struct fid *fid; } row[5] = {
			{ "fi_cq_open", cq_ok, 0, NULL },
			{ "fi_eq_open", eq_ok, 0, NULL },
			{ "fi_av_open", av_ok, 0, NULL },
			{ "fi_cntr_open", 0, 0, NULL },
			{ "fi_mr_regattr", mr_ok, 0, NULL },
		};
		struct fid_cq *fcq = NULL;
		struct fid_eq *feq = NULL;
		struct fid_av *fav = NULL;
		struct fid_cntr *fcntr = NULL;
		struct fid_mr *fmr = NULL;
		size_t i;

		row[0].ret = fi_cq_open(ft->o.domain, &cq, &fcq, NULL);
		row[1].ret = fi_eq_open(ft->o.fabric, &eq, &feq, NULL);
		row[2].ret = fi_av_open(ft->o.domain, &av, &fav, NULL);
		row[3].ret = fi_cntr_open(ft->o.domain, &cntr, &fcntr, NULL);
		row[4].ret = fi_mr_regattr(ft->o.domain, &mr, flag, &fmr);
		row[0].fid = row[0].ret ? NULL : &fcq->fid;
		row[1].fid = row[1].ret ? NULL : &feq->fid;
		row[2].fid = row[2].ret ? NULL : &fav->fid;
		row[3].fid = row[3].ret ? NULL : &fcntr->fid;
		row[4].fid = row[4].ret ? NULL : &fmr->fid;
		for (i = 0; i < COUNT(row); i++)
			if (row[i].fid)
				FT_CALL(ft, fi_close(row[i].fid));
		for (i = 0; i < COUNT(row); i++) {
			ret = row[i].ok & flag ? 0 : -FI_EBADFLAGS;
			FT_CHECK(ft, row[i].ret == ret, "%s with bit %u "
				 "returned %d, not %d", row[i].what, bit,
				 row[i].ret, ret);
		}
	}
	return FT_PASS;
}

static int binding(struct ft *ft, const struct ft_case *c)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_err_entry ce = { 0 };
	struct fi_eq_err_entry ee = { 0 };
	struct fi_eq_entry entry;
	struct fid_ep *ep;
	struct fid_eq *eq;
	uint32_t event;
	ssize_t ret[7];
	size_t i;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, &ep, NULL));
	FT_CALL(ft, fi_eq_open(ft->o.fabric, &attr, &eq, NULL));
	ret[0] = fi_ep_bind(ep, &ft->o.av->fid, FI_SEND);
	ret[1] = fi_ep_bind(ep, &eq->fid, FI_SEND);
	ret[2] = fi_mr_bind(ft_mem.lmr.mr, &ft->o.ep->fid, FI_SEND);
	ret[3] = fi_eq_read(eq, &event, &entry, sizeof(entry), FI_SEND);
	ret[4] = fi_eq_readerr(eq, &ee, FI_SEND);
	ret[5] = fi_cq_readerr(ft->o.cq, &ce, FI_SEND);
	ret[6] = ft->o.av->fid.ops->bind(&ft->o.av->fid, &eq->fid, FI_SEND);
	FT_CALL(ft, fi_close(&ep->fid));
	FT_CALL(ft, fi_close(&eq->fid));
	for (i = 0; i < COUNT(ret); i++)
		FT_CHECK(ft, ret[i] == -FI_EBADFLAGS, "call %zu returned %zd",
			 i, ret[i]);
	return FT_PASS;
}

/* Default flags that fi_getinfo would have refused, written into its result. */
static int bad_defaults(struct ft *ft, const struct ft_case *c)
{
	static const struct { uint64_t tx, rx; bool ok; } row[] = {
		{ FI_FENCE, 0, false }, { FI_MATCH_COMPLETE, 0, false },
		{ FI_COMMIT_COMPLETE, 0, false }, { FI_MULTICAST, 0, false },
		{ 1ULL << 60, 0, false }, { 0, FI_INJECT, false },
		{ 0, FI_PEEK, false }, { 0, 1ULL << 60, false },
		{ FI_COMPLETION | FI_DELIVERY_COMPLETE,
		  FI_COMPLETION | FI_MULTI_RECV, true },
	};
	size_t i;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	for (i = 0; i < COUNT(row); i++) {
		struct fi_info *info = fi_dupinfo(ft->o.info);
		struct fid_ep *ep = NULL;
		int ret;

		FT_CHECK(ft, info, "fi_dupinfo");
		info->tx_attr->op_flags = row[i].tx;
		info->rx_attr->op_flags = row[i].rx;
		ret = fi_endpoint(ft->o.domain, info, &ep, NULL);
		fi_freeinfo(info);
		if (!ret)
			fi_close(&ep->fid);
		FT_CHECK(ft, ret == (row[i].ok ? 0 : -FI_EBADFLAGS),
			 "row %zu: fi_endpoint returned %d", i, ret);
	}
	return FT_PASS;
}

/* ---- FI_INJECT by default ---- */

static size_t lengths(struct ft *ft, size_t *len)
{
	size_t n = 0;

	len[n++] = 0;
	len[n++] = 1;
	len[n++] = 64;
	len[n++] = ft->o.info->tx_attr->inject_size;
	return n;
}

/* a: tagged */
static int inject_sends(struct ft *ft, const struct ft_case *c)
{
	size_t len[RESERVED], n = lengths(ft, len), i;
	uint64_t seq = 0;
	int call;

	for (call = 0; call < FT_SEND_CALLS; call++)
	for (i = 0; i < n; i++) {
		struct ft_op *tx = ft_op_new(ft), *rx = ft_op_new(ft);
		bool inj = call == FT_INJECT || call == FT_INJECTDATA;
		struct ft_msg m = {
			.tagged = c->a, .call = call, .tag = ++seq,
			.addr = ft->addr[!ft->rank], .buf = ft_mem.local,
			.len = len[i], .data = 0x77,
			.flags = FI_INJECT | FI_COMPLETION,
		};
		struct ft_msg r = {
			.tagged = c->a, .tag = seq, .addr = ft_any(ft, !ft->rank),
			.buf = ft_mem.target, .len = MEM_BYTES,
			.call = FT_RECVMSG, .flags = FI_COMPLETION,
		};

		pattern_fill(ft_mem.local, len[i], ft->run->seed,
			     (unsigned)ft->rank, seq);
		FT_CALL(ft, ft_send(ft, inj ? NULL : tx, &m));
		/* The buffer is ours again. */
		memset(ft_mem.local, 0xee, len[i]);
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
		FT_CALL(ft, ft_recv(ft, rx, &r));
		FT_DONE(ft, rx);
		FT_CHECK(ft, rx->len == len[i], "%zu bytes of %zu", rx->len,
			 len[i]);
		FT_CHECK(ft, pattern_check(ft_mem.target, len[i],
					   ft->run->seed, (unsigned)!ft->rank,
					   seq) < 0, "%s of %zu bytes is not "
			 "what was sent", ft_send_names[call], len[i]);
		if (!inj && (!ft->cfg.selective || call == FT_SENDMSG ||
			     (ft->cfg.tx_op_flags & FI_COMPLETION)))
			FT_DONE(ft, tx);
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
	}
	return FT_PASS;
}

static int inject_writes(struct ft *ft, const struct ft_case *c)
{
	size_t len[RESERVED], n = lengths(ft, len), i;
	uint64_t seq = 0;
	int call;

	(void)c;
	for (call = 0; !ft_rma_is_read(call); call++)
	for (i = 0; i < n; i++) {
		struct ft_op *op = ft_op_new(ft);
		struct ft_rma r;

		seq++;
		pattern_fill(ft_mem.local, len[i], ft->run->seed,
			     (unsigned)ft->rank, seq);
		ft_rma_set(ft, &r, call, ft_mem.local, len[i], &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, 0);
		r.flags = FI_INJECT | FI_COMPLETION;
		FT_CALL(ft, ft_rma(ft, ft_rma_is_inject(call) ? NULL : op,
				   &r));
		memset(ft_mem.local, 0xee, len[i]);
		FT_TRY(ft_await_pattern(ft, ft_mem.target, len[i],
					(unsigned)!ft->rank, seq, FT_AT));
		if (!ft_rma_is_inject(call))
			FT_DONE(ft, op);
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
	}
	/* Reads have no buffer to return, so their length is not limited. */
	for (call = FT_READ; call < FT_RMA_CALLS; call++) {
		struct ft_rma r;

		pattern_fill(ft_mem.target, 60000, ft->run->seed,
			     (unsigned)ft->rank, 1000);
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
		ft_rma_set(ft, &r, call, ft_mem.local, 60000, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, 0);
		r.flags = FI_COMPLETION;
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		FT_CHECK(ft, pattern_check(ft_mem.local, 60000, ft->run->seed,
					   (unsigned)!ft->rank, 1000) < 0,
			 "%s read something else", ft_rma_names[call]);
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
	}
	return FT_PASS;
}

static int inject_atomics(struct ft *ft, const struct ft_case *c)
{
	uint64_t *one = (uint64_t *)(void *)ft_mem.local, *cmp = one + 8;
	uint64_t *res = one + 16, *at = (uint64_t *)(void *)ft_mem.target;
	uint64_t is = 0;
	int call;

	(void)c;
	*at = 0;
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	for (call = 0; call < FT_ATOMIC_CALLS; call++) {
		struct ft_op *op = ft_op_new(ft);
		double end = ft_now() + ft->run->timeout_s;
		struct ft_atomic a;

		*one = ft_atomic_compares(call) ? is + 5 : 5;
		*cmp = is;
		*res = 99;
		ft_atomic_set(ft, &a, call, FI_UINT64, ft_atomic_compares(call)
			      ? FI_CSWAP : FI_SUM, 8, one, cmp, res, 1,
			      &ft_mem.lmr, &ft_mem.tmr, !ft->rank, 0);
		a.flags = FI_INJECT | FI_COMPLETION;
		FT_CALL(ft, ft_atomic(ft, call == FT_INJECT_ATOMIC ? NULL : op,
				      &a));
		*one = *cmp = 0xeeee;
		if (call != FT_INJECT_ATOMIC)
			FT_DONE(ft, op);
		if (ft_atomic_fetches(call))
			FT_CHECK(ft, *res == is, "%s brought %llu, not %llu",
				 ft_atomic_names[call],
				 (unsigned long long)*res,
				 (unsigned long long)is);
		is += 5;
		while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != is) {
			ft_progress(ft);
			FT_CHECK(ft, ft_now() < end, "%s: there is %llu, not "
				 "%llu", ft_atomic_names[call],
				 (unsigned long long)*at,
				 (unsigned long long)is);
		}
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
	}
	return FT_PASS;
}

/* Longer than inject_size: refused at once, and nothing is done. */
static int inject_too_much(struct ft *ft, const struct ft_case *c)
{
	size_t len = ft->o.info->tx_attr->inject_size + 1;
	struct ft_op *op = ft_op_new(ft);
	int call, tagged;
	ssize_t ret;

	(void)c;
	ft_known(ft, NULL, "more than inject_size is accepted");
	memset(ft_mem.target, 0, len);
	for (tagged = 0; tagged < 2; tagged++)
	for (call = 0; call < FT_SEND_CALLS; call++) {
		struct ft_msg m = {
			.tagged = tagged, .call = call, .len = len,
			.addr = ft->addr[!ft->rank], .buf = ft_mem.local,
			.flags = FI_INJECT,
		};

		ret = ft_try_send(ft->o.ep, op, &m);
		FT_CHECK(ft, ret == -FI_EINVAL, "%s of %zu bytes returned %zd",
			 ft_send_names[call], len, ret);
	}
	for (call = 0; !ft_rma_is_read(call); call++) {
		struct ft_rma r;

		memset(ft_mem.local, 0x5a, len);
		ft_rma_set(ft, &r, call, ft_mem.local, len, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, 0);
		r.flags = FI_INJECT;
		ret = ft_try_rma(ft->o.ep, op, &r);
		FT_CHECK(ft, ret == -FI_EINVAL, "%s of %zu bytes returned %zd",
			 ft_rma_names[call], len, ret);
	}
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	FT_CHECK(ft, pattern_is_filled(ft_mem.target, len, 0) < 0,
		 "something was written");
	/* Flags of a call replace the defaults. */
	{
		struct ft_op *tx = ft_op_new(ft), *rx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .call = FT_SENDMSG, .len = len,
			.addr = ft->addr[!ft->rank], .buf = ft_mem.local,
			.flags = FI_COMPLETION, .tag = 5,
		};
		struct ft_msg r = {
			.tagged = true, .addr = ft_any(ft, !ft->rank), .tag = 5,
			.buf = ft_mem.target, .len = MEM_BYTES,
			.call = FT_RECVMSG, .flags = FI_COMPLETION,
		};

		FT_CALL(ft, ft_recv(ft, rx, &r));
		FT_CALL(ft, ft_send(ft, tx, &m));
		FT_DONE(ft, rx);
		FT_DONE(ft, tx);
	}
	return FT_PASS;
}

/* What fi_getinfo accepts, fi_enable must accept. */
static int inject_opens(struct ft *ft, const struct ft_case *c)
{
	struct ft_cfg cfg = { .tx_op_flags = c->a };
	struct fi_info *info;
	struct ft_objs o;
	int ret;

	ret = ft_getinfo(ft, &cfg, &info);
	if (ret == -FI_ENODATA)
		return ft_skip(ft, "fi_getinfo refuses FI_INJECT");
	FT_CALL(ft, ret);
	fi_freeinfo(info);
	if (ft_objs_open(ft, &cfg, &o))
		return FT_FAIL;
	FT_CHECK(ft, o.info->tx_attr->op_flags == c->a, "op_flags are %#llx",
		 (unsigned long long)o.info->tx_attr->op_flags);
	return ft_objs_close(ft, &o) ? FT_FAIL : FT_PASS;
}

/* Only an operation that asks for a completion has one, also when it is injected. */
static int inject_quiet(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *tx = ft_op_new(ft), *rx = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .len = 8, .addr = ft->addr[!ft->rank],
		.buf = ft_mem.local, .tag = 5,
	};
	struct ft_msg r = {
		.tagged = true, .call = FT_RECVMSG, .tag = 5, .len = 64,
		.addr = ft_any(ft, !ft->rank), .buf = ft_mem.target,
		.flags = FI_COMPLETION,
	};

	(void)c;
	FT_CALL(ft, ft_recv(ft, rx, &r));
	FT_CALL(ft, ft_send(ft, tx, &m));
	tx->posted = false;
	FT_DONE(ft, rx);
	ft_linger(ft, 0.02);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; uint64_t flags; bool quiet; }
	defaults[] = {
		{ "inject", FI_INJECT, false },
		{ "inject-delivered", FI_INJECT | FI_DELIVERY_COMPLETE, false },
		{ "inject-selective", FI_INJECT | FI_COMPLETION, true },
	};
	static struct ft_case cases[40];
	struct ft_case *c = cases;
	size_t i;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_mem;						\
	c->body = (body_);						\
	if (!c->cfg.caps)						\
		c->cfg.caps = FT_RMA_CAPS;				\
	c++;								\
} while (0)

	for (i = 0; i < COUNT(calls); i++) {
		c->a = i;
		c->cfg.caps = i < 6 ? FT_RMA_CAPS : FT_ATOMIC_CAPS;
		CASE(one_flag, "%s", calls[i].name);
	}
	CASE(discard_alone, "discard-alone");
	CASE(opening, "opening");
	CASE(binding, "binding");
	CASE(bad_defaults, "bad-defaults");
	for (i = 0; i < COUNT(defaults); i++) {
		c->a = defaults[i].flags;
		c->fn = inject_opens;
		c->ranks = 1;
		c->cfg.alone = true;
		snprintf(c->name, sizeof(c->name), "%s-opens",
			 defaults[i].name);
		c++;
	}
	for (i = 0; i < COUNT(defaults); i++) {
		struct ft_cfg cfg = {
			.caps = FT_RMA_CAPS, .tx_op_flags = defaults[i].flags,
			.selective = defaults[i].quiet,
		};
		int tagged;

		for (tagged = 0; tagged < 2; tagged++) {
			c->cfg = cfg;
			c->a = (uint64_t)tagged;
			CASE(inject_sends, "%s-%ssend", defaults[i].name,
			     tagged ? "t" : "");
		}
		c->cfg = cfg;
		CASE(inject_writes, "%s-write", defaults[i].name);
		c->cfg = cfg;
		c->cfg.caps = FT_ATOMIC_CAPS;
		CASE(inject_atomics, "%s-atomic", defaults[i].name);
		c->cfg = cfg;
		CASE(inject_too_much, "%s-too-much", defaults[i].name);
	}
	c->cfg.tx_op_flags = FI_INJECT;
	c->cfg.selective = true;
	CASE(inject_quiet, "inject-quiet");
	return ft_main(argc, argv, "flags of calls, and default ones", cases,
		       (int)(c - cases));
}
