/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of registrations (fi_mr_bind) count the writes and atomics of peers
 * to the memory: each exactly once, over whichever rail it came.  Also counters
 * that are bound to an endpoint after it was enabled.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART		(2 << 20)
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

/* Between nodes frames are lost and delayed: what is retransmitted counts once.  A loss
 * costs half a second, so that one in 31 is enough: some ten losses a case. */
#define FAULTS		"drop kind=put,atomic,put_rts,fin rate=31;" \
			"delay=3ms kind=put,atomic rate=5"

enum { A, B, PLAIN, NMEMS };		/* PLAIN has no counter */
static unsigned char *mem[NMEMS];
static struct ft_mr mr[NMEMS];
static struct fid_cntr *cntr[2];

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static int open_cntr(struct ft *ft, struct fid_cntr **c)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	FT_CALL(ft, fi_cntr_open(ft->o.domain, &attr, c, NULL));
	return FT_PASS;
}

static void shut(struct ft *ft)
{
	int i;

	for (i = 0; i < NMEMS; i++)
		if (mr[i].mr)
			ft_mr_close(ft, &mr[i]);
	for (i = 0; i < 2; i++)
		if (cntr[i])
			fi_close(&cntr[i]->fid);
	memset(mr, 0, sizeof(mr));
	memset(cntr, 0, sizeof(cntr));
}

static int bind_mr(struct ft *ft, struct ft_mr *m, struct fid_cntr *c)
{
	int ret = fi_mr_bind(m->mr, &c->fid, FI_REMOTE_WRITE);

	if (ret == -FI_ENOSYS && !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "no counters of registrations");
	FT_CHECK(ft, !ret, "fi_mr_bind: %s", fi_strerror(-ret));
	return FT_PASS;
}

/* One counter for each of the first two registrations, or one for both. */
static int open_mems(struct ft *ft, bool one)
{
	int i, ret;

	for (i = 0; i < NMEMS; i++) {
		if (!mem[i])
			mem[i] = calloc(1, PART);
		FT_CHECK(ft, mem[i], "no memory");
		if (ft_mr_reg(ft, &mr[i], mem[i], PART, FT_MR_ACCESS))
			return FT_FAIL;
	}
	for (i = 0; i < 2; i++) {
		if (i && one)
			break;
		FT_TRY(open_cntr(ft, &cntr[i]));
	}
	for (i = 0; i < 2; i++) {
		ret = bind_mr(ft, &mr[i], cntr[one ? 0 : i]);
		if (ret)
			return ret;
	}
	for (i = 0; i < NMEMS; i++)
		if (ft_mr_share(ft, &mr[i]))
			return FT_FAIL;
	return FT_PASS;
}

static int reach(struct ft *ft, struct fid_cntr *c, uint64_t want)
{
	double end = ft_now() + ft->run->timeout_s;
	uint64_t v;

	while ((v = fi_cntr_read(c)) < want) {
		ft_progress(ft);
		FT_CHECK(ft, !ft->abandoned && ft_now() < end,
			 "%llu counted, not %llu", (unsigned long long)v,
			 (unsigned long long)want);
	}
	return FT_PASS;
}

/* Both ranks do the same; this much is counted here, and no more a moment later. */
static int exactly(struct ft *ft, const uint64_t want[2])
{
	int i;

	for (i = 0; i < 2; i++)
		if (cntr[i])
			FT_TRY(reach(ft, cntr[i], want[i]));
	FT_TRY(meet(ft));
	ft_linger(ft, 0.05);
	for (i = 0; i < 2; i++) {
		if (!cntr[i])
			continue;
		FT_CHECK(ft, fi_cntr_read(cntr[i]) == want[i],
			 "counter %d: %llu, not %llu", i,
			 (unsigned long long)fi_cntr_read(cntr[i]),
			 (unsigned long long)want[i]);
		FT_CHECK(ft, !fi_cntr_readerr(cntr[i]), "errors");
	}
	return meet(ft);
}

static const size_t sizes[] = { 8, 200, 4096, 5000, 8192, 16384, 100000,
				600000, PART };

static int write_all(struct ft *ft, uint64_t flags, uint64_t want[2])
{
	size_t inject = ft->o.info->tx_attr->inject_size;
	static struct ft_mr from;
	int call, s, at;
	struct ft_rma r;

	(void)flags;
	for (call = 0; call <= FT_INJECT_WRITEDATA; call++)
	for (s = 0; s < COUNT(sizes); s++)
	for (at = 0; at < NMEMS; at++) {
		if (ft_rma_is_inject(call) && sizes[s] > inject)
			continue;
		if (ft->run->quick && sizes[s] > 100000 && call)
			continue;
		ft_rma_set(ft, &r, call, mem[PLAIN], sizes[s],
			   &from, &mr[at], !ft->rank, 0);
		r.flags = call == FT_WRITEMSG ? flags : 0;
		r.data = 5;
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		if (at < 2)
			want[at]++;
	}
	return FT_PASS;
}

/* a: flags of fi_writemsg; b: one counter for both */
static int writes(struct ft *ft, const struct ft_case *c)
{
	uint64_t want[2] = { 0 };
	int rep;

	FT_TRY(open_mems(ft, c->b));
	for (rep = 0; rep < (ft->run->quick ? 1 : 3); rep++)
		FT_TRY(write_all(ft, c->a, want));
	if (c->b) {
		want[0] += want[1];
		want[1] = 0;
	}
	return exactly(ft, want);
}

/* One write to three pieces of memory in two registrations counts once in each. */
static int two_at_once(struct ft *ft, const struct ft_case *c)
{
	static const size_t parts[] = { 16, 3000, 40000, 400000 };
	uint64_t want[2] = { 0 };
	struct ft_mr none = { 0 };
	struct ft_rma r;
	int s, i;

	FT_TRY(open_mems(ft, false));
	if (ft->o.info->tx_attr->rma_iov_limit < 3)
		return ft_skip(ft, "rma_iov_limit is %zu",
			       ft->o.info->tx_attr->rma_iov_limit);
	for (s = 0; s < COUNT(parts); s++) {
		ft_rma_set(ft, &r, FT_WRITEMSG, mem[PLAIN], 3 * parts[s],
			   &none, &mr[A], !ft->rank, 0);
		r.nrma = 3;
		for (i = 0; i < 3; i++) {
			const struct ft_target *t =
				&mr[i == 1 ? B : A].at[!ft->rank];

			r.rma[i].addr = t->base + (uint64_t)i * parts[s];
			r.rma[i].key = t->key;
			r.rma[i].len = parts[s];
		}
		r.flags = c->a;
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		want[0]++;
		want[1]++;
	}
	return exactly(ft, want);
}

/* All of them change memory, except FI_ATOMIC_READ. */
static int atomics(struct ft *ft, const struct ft_case *c)
{
	uint64_t want[2] = { 0 };
	struct ft_mr none = { 0 };
	struct ft_atomic a;
	int call, rep, at;

	FT_TRY(open_mems(ft, false));
	for (rep = 0; rep < 10; rep++)
	for (call = 0; call < FT_ATOMIC_CALLS; call++)
	for (at = 0; at < NMEMS; at++) {
		ft_atomic_set(ft, &a, call, FI_UINT64,
			      ft_atomic_compares(call) ? FI_CSWAP : FI_SUM, 8,
			      mem[PLAIN], mem[PLAIN] + 64, mem[PLAIN] + 128,
			      call == FT_ATOMIC ? 5 : 1, &none, &mr[at],
			      !ft->rank, 0);
		a.flags = call == FT_ATOMICMSG ? c->a : 0;
		FT_TRY(ft_atomic_now(ft, &a, FT_AT));
		if (at < 2)
			want[at]++;
	}
	ft_atomic_set(ft, &a, FT_FETCH, FI_UINT64, FI_ATOMIC_READ, 8,
		      mem[PLAIN], NULL, mem[PLAIN] + 128, 1, &none, &mr[A],
		      !ft->rank, 0);
	FT_TRY(ft_atomic_now(ft, &a, FT_AT));
	return exactly(ft, want);
}

/* Reads, messages and refused operations do not count. */
static int nothing(struct ft *ft, const struct ft_case *c)
{
	uint64_t want[2] = { 0 };
	struct ft_mr none = { 0 };
	struct ft_rma r;
	int s;

	(void)c;
	FT_TRY(open_mems(ft, false));
	for (s = 0; s < COUNT(sizes); s++) {
		ft_rma_set(ft, &r, FT_READ, mem[PLAIN], sizes[s], &none,
			   &mr[A], !ft->rank, 0);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
	}
	if (ft_is_bare(ft, "lnx")) {
		uint64_t v = 1;

		ft_rma_set(ft, &r, FT_INJECT_WRITE, &v, 8, &none, &mr[A],
			   !ft->rank, PART - 4);
		FT_CALL(ft, ft_rma(ft, NULL, &r));
	}
	ft_rma_set(ft, &r, FT_WRITE, mem[PLAIN], 8, &none, &mr[A], !ft->rank,
		   0);
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	want[0] = 1;
	return exactly(ft, want);
}

/* A wait ends with the write that it is for, though only the wait makes progress. */
static int waits(struct ft *ft, const struct ft_case *c)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.wait_obj = (enum fi_wait_obj)c->a,
	};
	struct ft_mr none = { 0 };
	struct ft_rma r;
	uint64_t i;
	int ret;

	mem[A] = mem[A] ? mem[A] : calloc(1, PART);
	FT_CHECK(ft, mem[A], "no memory");
	if (ft_mr_reg(ft, &mr[A], mem[A], PART, FT_MR_ACCESS))
		return FT_FAIL;
	ret = fi_cntr_open(ft->o.domain, &attr, &cntr[0], NULL);
	if (ret && !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "no such wait object");
	FT_CHECK(ft, !ret, "fi_cntr_open: %d", ret);
	FT_TRY(bind_mr(ft, &mr[A], cntr[0]));
	if (ft_mr_share(ft, &mr[A]))
		return FT_FAIL;
	FT_TRY(meet(ft));
	for (i = 1; i <= 20; i++) {
		if (ft->rank) {
			ft_rma_set(ft, &r, FT_INJECT_WRITE, &i, 8, &none,
				   &mr[A], 0, 0);
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
		} else {
			ret = fi_cntr_wait(cntr[0], i,
					   (int)(ft->run->timeout_s * 1000));
			FT_CHECK(ft, !ret, "fi_cntr_wait for %llu: %s",
				 (unsigned long long)i, fi_strerror(-ret));
			FT_CHECK(ft, *(volatile uint64_t *)mem[A] == i,
				 "counted before the data arrived");
		}
		FT_TRY(meet(ft));
	}
	return FT_PASS;
}

/* A bind or close that is not possible returns an error. */
static int bad(struct ft *ft, const struct ft_case *c)
{
	struct fid_cntr *more;
	int ret;

	(void)c;
	FT_TRY(open_mems(ft, false));
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers refuse in different ways");
	FT_TRY(open_cntr(ft, &more));
	ret = fi_mr_bind(mr[A].mr, &more->fid, FI_REMOTE_WRITE);
	FT_CHECK(ft, ret == -FI_EBUSY, "a second counter: %d", ret);
	ret = fi_mr_bind(mr[PLAIN].mr, &more->fid, FI_REMOTE_READ);
	FT_CHECK(ft, ret == -FI_EBADFLAGS, "FI_REMOTE_READ: %d", ret);
	ret = fi_mr_bind(mr[PLAIN].mr, &more->fid, 0);
	FT_CHECK(ft, ret == -FI_EBADFLAGS, "no flags: %d", ret);
	ret = fi_mr_bind(mr[PLAIN].mr, &ft->o.cq->fid, FI_REMOTE_WRITE);
	FT_CHECK(ft, ret == -FI_ENOSYS, "a queue: %d", ret);
	ret = fi_close(&cntr[0]->fid);
	FT_CHECK(ft, ret == -FI_EBUSY, "closed in use: %d", ret);
	FT_CALL(ft, fi_close(&more->fid));
	return meet(ft);
}

/* ---- counters bound after fi_enable ---- */

static const uint64_t kind_flags[] = {
	FI_SEND, FI_RECV, FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ
};

/* a: wait object */
static int late(struct ft *ft, const struct ft_case *c)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.wait_obj = (enum fi_wait_obj)c->a,
	};
	struct fid_cntr *k[COUNT(kind_flags)], *more;
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4, .len = 100,
	};
	struct ft_rma r;
	int i, n, ret;

	ft->spoiled = true;
	for (i = 0; i < COUNT(k); i++) {
		ret = fi_cntr_open(ft->o.domain, &attr, &k[i], NULL);
		if (ret && !ft_is_bare(ft, "lnx"))
			return ft_skip(ft, "fi_cntr_open: %d", ret);
		FT_CHECK(ft, !ret, "fi_cntr_open: %d", ret);
		ft->o.extra[ft->o.nextra++] = &k[i]->fid;
		ret = fi_ep_bind(ft->o.ep, &k[i]->fid, kind_flags[i]);
		if (ret && !ft_is_bare(ft, "lnx"))
			return ft_skip(ft, "fi_ep_bind: %d", ret);
		FT_CHECK(ft, !ret, "fi_ep_bind of kind %d after fi_enable: %s",
			 i, fi_strerror(-ret));
	}
	ret = fi_ep_bind(ft->o.ep, &k[0]->fid, FI_SEND);
	if (ft_is_bare(ft, "lnx"))
		FT_CHECK(ft, ret == -FI_EBUSY, "a second one: %d", ret);
	m.buf = ft_mem.target + 8192;
	FT_CALL(ft, ft_recv(ft, rx, &m));
	FT_TRY(meet(ft));
	m.addr = ft->addr[!ft->rank];
	m.buf = ft_mem.local;
	FT_CALL(ft, ft_send(ft, tx, &m));
	for (i = 0; i < 2; i++) {
		ft_rma_set(ft, &r, i ? FT_READ : FT_WRITE, ft_mem.local, 100,
			   &ft_mem.lmr, &ft_mem.tmr, !ft->rank, 0);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
	}
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	n = ft_is_bare(ft, "lnx") ? COUNT(k) : 4;
	for (i = 0; i < n; i++) {
		if (c->a == FI_WAIT_NONE)
			FT_TRY(reach(ft, k[i], 1));
		else
			FT_CALL(ft, fi_cntr_wait(k[i], 1, (int)
						 (ft->run->timeout_s * 1000)));
	}
	FT_TRY(meet(ft));
	ft_linger(ft, 0.02);
	for (i = 0; i < n; i++)
		FT_CHECK(ft, fi_cntr_read(k[i]) == 1 && !fi_cntr_readerr(k[i]),
			 "kind %d: %llu", i,
			 (unsigned long long)fi_cntr_read(k[i]));
	if (!ft_is_bare(ft, "lnx"))
		return FT_PASS;
	/* From here on there has been traffic. */
	FT_CALL(ft, fi_cntr_open(ft->o.domain, &attr, &more, NULL));
	ret = fi_ep_bind(ft->o.ep, &more->fid, FI_SEND);
	FT_CALL(ft, fi_close(&more->fid));
	FT_CHECK(ft, ret == -FI_EOPBADSTATE || ret == -FI_EBUSY,
		 "bound after traffic: %d", ret);
	return meet(ft);
}

/* Without any counter bound, after each kind of traffic.  a: which */
static int too_late(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
	struct fid_cntr *k;
	int ret;

	ft->spoiled = true;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not mind");
	FT_TRY(meet(ft));
	if (!c->a) {
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4,
			.len = 100, .buf = ft_mem.target,
		};

		FT_CALL(ft, ft_recv(ft, rx, &m));
		m.addr = ft->addr[!ft->rank];
		FT_CALL(ft, ft_send(ft, tx, &m));
		FT_DONE(ft, tx);
		FT_DONE(ft, rx);
	} else {
		struct ft_rma r;

		ft_rma_set(ft, &r, c->a == 1 ? FT_WRITE : FT_READ,
			   ft_mem.local, 100, &ft_mem.lmr, &ft_mem.tmr,
			   !ft->rank, 0);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
	}
	FT_TRY(open_cntr(ft, &k));
	ret = fi_ep_bind(ft->o.ep, &k->fid, FI_WRITE);
	FT_CALL(ft, fi_close(&k->fid));
	FT_CHECK(ft, ret == -FI_EOPBADSTATE, "bound after traffic: %d", ret);
	return meet(ft);
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, 1 << 16);
}

/* Memory of the case is closed even after an error. */
static int run(struct ft *ft, const struct ft_case *c)
{
	int ret = c->body(ft, c);

	if (ret != FT_FAIL && ft_barrier(ft))
		ret = ft_fail(ft, "another rank left the case");
	if (!ft->run->quick || ret != FT_FAIL)
		shut(ft);
	return ret;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[48];
	struct ft_case *c = cases;
	uint64_t level;
	int i;

#define CASE(fn_, body_, ...) do {					\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = (fn_);							\
	c->body = (body_);						\
	c->cfg.caps = FT_ATOMIC_CAPS | FI_RMA_EVENT;			\
	c++;								\
} while (0)

	setenv("FI_LNX_FAULT", FAULTS, 0);
	for (i = 0; i < 2; i++) {
		level = i ? FI_DELIVERY_COMPLETE : 0;
		c->cfg.tx_op_flags = level;
		CASE(run, writes, "writes%s", i ? "-delivery-complete" : "");
		c->cfg.tx_op_flags = level;
		CASE(run, atomics, "atomics%s", i ? "-delivery-complete" : "");
		c->cfg.tx_op_flags = level;
		CASE(run, two_at_once, "two-at-once%s",
		     i ? "-delivery-complete" : "");
	}
	c->a = FI_DELIVERY_COMPLETE;
	CASE(run, writes, "writes-with-flag");
	c->a = FI_DELIVERY_COMPLETE;
	CASE(run, atomics, "atomics-with-flag");
	c->b = 1;
	CASE(run, writes, "one-for-both");
	c->cfg.automatic = true;
	CASE(run, writes, "writes-auto");
	CASE(run, nothing, "nothing-else");
	c->a = FI_WAIT_UNSPEC;
	CASE(run, waits, "wait");
	c->a = FI_WAIT_YIELD;
	CASE(run, waits, "wait-yield");
	c->a = FI_WAIT_UNSPEC;
	c->cfg.automatic = true;
	CASE(run, waits, "wait-auto");
	CASE(run, bad, "refused");
	c->a = FI_WAIT_NONE;
	CASE(with_mem, late, "bound-late");
	c->a = FI_WAIT_UNSPEC;
	CASE(with_mem, late, "bound-late-wait");
	for (i = 0; i < 3; i++) {
		c->a = (uint64_t)i;
		CASE(with_mem, too_late, "bound-too-late-%s", i == 0 ? "send" :
		     i == 1 ? "write" : "read");
	}
	return ft_main(argc, argv, "counters of memory", cases,
		       (int)(c - cases));
}
