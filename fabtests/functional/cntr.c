/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters: that they count exactly, and waiting for them. */
#include "../common/rma.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEM_BYTES	(1 << 20)
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

enum { SEND, RECV, READ, WRITE, RREAD, RWRITE, NKINDS };
static const uint64_t kind_flags[NKINDS] = {
	FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE
};
static const char *const kind_names[NKINDS] = {
	"FI_SEND", "FI_RECV", "FI_READ", "FI_WRITE", "FI_REMOTE_READ",
	"FI_REMOTE_WRITE"
};

static struct fid_cntr *cntr[NKINDS];	/* NULL: not offered */

static int open_cntr(struct ft *ft, struct ft_objs *o, enum fi_wait_obj wait,
		     struct fid_cntr **c)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait,
	};
	int ret = fi_cntr_open(o->domain, &attr, c, NULL);

	/* For a wait object, bare providers return either of the two. */
	if (ret == -FI_EINVAL && wait != FI_WAIT_NONE &&
	    !ft_is_bare(ft, "lnx"))
		ret = -FI_ENOSYS;
	if (ret)
		ft_fail(ft, "fi_cntr_open: %s (%d)", fi_strerror(-ret), ret);
	else
		o->extra[o->nextra++] = &(*c)->fid;
	return ret;
}

/* One counter for each kind of operation that the endpoint has a capability for. */
static int bind_kinds(struct ft *ft, struct ft_objs *o, enum fi_wait_obj wait)
{
	int i, ret;

	memset(cntr, 0, sizeof(cntr));
	for (i = 0; i < NKINDS; i++) {
		if (i >= READ && !(o->info->caps & (FI_RMA | FI_ATOMIC)))
			continue;
		if (i >= RREAD && !(o->info->caps & FI_RMA_EVENT))
			continue;
		ret = open_cntr(ft, o, wait, &cntr[i]);
		if (ret)
			return ret;
		ret = fi_ep_bind(o->ep, &cntr[i]->fid, kind_flags[i]);
		if (ret) {
			ft_fail(ft, "fi_ep_bind(counter, %s): %s",
				kind_names[i], fi_strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static int bind_each(struct ft *ft, struct ft_objs *o)
{
	return bind_kinds(ft, o, FI_WAIT_NONE);
}

static int bind_unspec(struct ft *ft, struct ft_objs *o)
{
	return bind_kinds(ft, o, FI_WAIT_UNSPEC);
}

static int bind_fd(struct ft *ft, struct ft_objs *o)
{
	return bind_kinds(ft, o, FI_WAIT_FD);
}

static int bind_yield(struct ft *ft, struct ft_objs *o)
{
	return bind_kinds(ft, o, FI_WAIT_YIELD);
}

/* One counter for everything. */
static int bind_one(struct ft *ft, struct ft_objs *o)
{
	int ret;

	memset(cntr, 0, sizeof(cntr));
	ret = open_cntr(ft, o, FI_WAIT_NONE, &cntr[0]);
	if (!ret)
		ret = fi_ep_bind(o->ep, &cntr[0]->fid, FI_SEND | FI_RECV |
				 FI_READ | FI_WRITE);
	if (ret && !ft->why[0])
		ft_fail(ft, "fi_ep_bind: %s", fi_strerror(-ret));
	return ret;
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, MEM_BYTES);
}

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static void look(struct ft *ft)
{
	int i;

	ft_progress(ft);
	for (i = 0; i < NKINDS; i++)
		if (cntr[i])
			fi_cntr_read(cntr[i]);
}

/* Long enough for an operation that is on its way to be counted. */
static double time_limit(struct ft *ft)
{
	return ft_now() + ft->run->timeout_s / (ft_is_bare(ft, "lnx") ? 1 : 10);
}

static int reach(struct ft *ft, struct fid_cntr *c, const char *what,
		 uint64_t n)
{
	double end = time_limit(ft);
	uint64_t v;

	while ((v = fi_cntr_read(c)) < n) {
		look(ft);
		FT_CHECK(ft, !ft->abandoned && ft_now() < end, "%s counts "
			 "%llu, not %llu, errors %llu", what,
			 (unsigned long long)v, (unsigned long long)n,
			 (unsigned long long)fi_cntr_readerr(c));
	}
	return FT_PASS;
}

/* The counters of this rank have these values, still have them a moment later,
 * and have no errors. */
static int exactly(struct ft *ft, const uint64_t want[NKINDS])
{
	double end;
	int i;

	for (i = 0; i < NKINDS; i++) {
		if (i == RREAD)
			ft_known(ft, "tcp", "reads by a peer are not counted");
		if (cntr[i])
			FT_TRY(reach(ft, cntr[i], kind_names[i], want[i]));
	}
	ft->todo[0] = '\0';
	FT_TRY(meet(ft));
	end = ft_now() + 0.02;
	while (ft_now() < end)
		look(ft);
	for (i = 0; i < NKINDS; i++) {
		if (!cntr[i])
			continue;
		FT_CHECK(ft, fi_cntr_read(cntr[i]) == want[i], "%s counts "
			 "%llu, not %llu", kind_names[i],
			 (unsigned long long)fi_cntr_read(cntr[i]),
			 (unsigned long long)want[i]);
		FT_CHECK(ft, !fi_cntr_readerr(cntr[i]), "%s has %llu errors",
			 kind_names[i],
			 (unsigned long long)fi_cntr_readerr(cntr[i]));
	}
	return meet(ft);
}

static void zero(void)
{
	int i;

	for (i = 0; i < NKINDS; i++)
		if (cntr[i])
			fi_cntr_set(cntr[i], 0);
}

/* Without a queue no completion frees an operation: it is reused. */
static struct ft_op *op_for(struct ft *ft, bool completes)
{
	struct ft_op *op;

	if (!ft->o.cq)
		return NULL;
	op = ft_op_new(ft);
	op->want = completes ? 1 : 0;
	return op;
}

/* Messages in every form of call and several sizes, in both directions. */
static int messages(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 0, 8, 5000, 100000 };
	size_t inject = ft->o.info->tx_attr->inject_size;
	uint64_t want[NKINDS] = { 0 }, n = 0;
	int call, tagged, s, rep;

	(void)c;
	zero();
	for (rep = 0; rep < 3; rep++)
	for (tagged = 0; tagged < 2; tagged++)
	for (call = 0; call < FT_SEND_CALLS; call++)
	for (s = 0; s < COUNT(sizes); s++) {
		bool inj = call == FT_INJECT || call == FT_INJECTDATA;
		struct ft_op *v = op_for(ft, true);
		struct ft_op *o = inj ? NULL : op_for(ft, true);
		struct ft_msg m = {
			.tagged = tagged, .addr = FI_ADDR_UNSPEC, .tag = 4,
			.buf = ft_mem.target, .len = 100000,
		};

		if (inj && sizes[s] > inject)
			continue;
		FT_CALL(ft, ft_recv(ft, v, &m));
		/* Two operations of a kind must not arrive in the other order. */
		FT_TRY(meet(ft));
		m.call = call;
		m.addr = ft->addr[!ft->rank];
		m.buf = ft_mem.local;
		m.len = sizes[s];
		FT_CALL(ft, ft_send(ft, o, &m));
		n++;
		FT_TRY(reach(ft, cntr[SEND], kind_names[SEND], n));
		FT_TRY(reach(ft, cntr[RECV], kind_names[RECV], n));
		if (v && !ft->cfg.selective)
			FT_DONE(ft, v);
		if (o && !ft->cfg.selective)
			FT_DONE(ft, o);
	}
	want[SEND] = want[RECV] = n;
	return exactly(ft, want);
}

/* One-sided operations in every form of call, in both directions. */
static int one_sided(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 8, 5000, 100000 };
	size_t inject = ft->o.info->tx_attr->inject_size;
	uint64_t want[NKINDS] = { 0 };
	int call, s, rep;
	struct ft_rma r;

	(void)c;
	zero();
	FT_TRY(meet(ft));
	for (rep = 0; rep < 3; rep++)
	for (call = 0; call < FT_RMA_CALLS; call++)
	for (s = 0; s < COUNT(sizes); s++) {
		struct ft_op *op = NULL;

		if (ft_rma_is_inject(call) && sizes[s] > inject)
			continue;
		/* Events of remote data need a queue. */
		if (!ft->o.cq && ft_rma_has_data(call))
			continue;
		if (!ft_rma_is_inject(call))
			op = op_for(ft, true);
		ft_rma_set(ft, &r, call, ft_mem.local, sizes[s], &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, 0);
		r.data = 7;
		FT_CALL(ft, ft_rma(ft, op, &r));
		want[ft_rma_is_read(call) ? READ : WRITE]++;
		want[ft_rma_is_read(call) ? RREAD : RWRITE]++;
		if (op && !ft->cfg.selective)
			FT_DONE(ft, op);
	}
	return exactly(ft, want);
}

/* Base atomics count as writes, the others as reads. */
static int atomics(struct ft *ft, const struct ft_case *c)
{
	uint64_t want[NKINDS] = { 0 };
	struct ft_atomic a;
	int call, rep;

	(void)c;
	zero();
	FT_TRY(meet(ft));
	for (rep = 0; rep < 5; rep++)
	for (call = 0; call < FT_ATOMIC_CALLS; call++) {
		struct ft_op *op = call == FT_INJECT_ATOMIC ? NULL :
				   op_for(ft, true);

		ft_atomic_set(ft, &a, call, FI_UINT64,
			      ft_atomic_compares(call) ? FI_CSWAP : FI_SUM, 8,
			      ft_mem.local, ft_mem.local + 64,
			      ft_mem.local + 128, 1, &ft_mem.lmr, &ft_mem.tmr,
			      !ft->rank, 0);
		FT_CALL(ft, ft_atomic(ft, op, &a));
		want[ft_atomic_fetches(call) ? READ : WRITE]++;
		if (op)
			FT_DONE(ft, op);
	}
	/* Providers differ in whether a fetch counts as a read or as a write at
	 * the target. */
	if (cntr[RREAD] && cntr[RWRITE]) {
		uint64_t sum = want[READ] + want[WRITE];
		double end = ft_now() + ft->run->timeout_s;

		while (fi_cntr_read(cntr[RREAD]) + fi_cntr_read(cntr[RWRITE]) <
		       sum) {
			look(ft);
			FT_CHECK(ft, ft_now() < end, "the target counts %llu "
				 "and %llu of %llu atomics", (unsigned long
				 long)fi_cntr_read(cntr[RREAD]), (unsigned long
				 long)fi_cntr_read(cntr[RWRITE]),
				 (unsigned long long)sum);
		}
		want[RREAD] = fi_cntr_read(cntr[RREAD]);
		want[RWRITE] = fi_cntr_read(cntr[RWRITE]);
		FT_CHECK(ft, want[RREAD] + want[RWRITE] == sum, "the target "
			 "counts too much");
	}
	return exactly(ft, want);
}

/* Messages, reads and writes in one counter. */
static int all_in_one(struct ft *ft, const struct ft_case *c)
{
	uint64_t want[NKINDS] = { 0 };
	struct ft_rma r;
	int i;

	(void)c;
	zero();
	for (i = 0; i < 50; i++) {
		struct ft_op *v = ft_op_new(ft), *s = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4,
			.buf = ft_mem.target, .len = 1000,
		};

		FT_CALL(ft, ft_recv(ft, v, &m));
		FT_TRY(meet(ft));
		m.addr = ft->addr[!ft->rank];
		m.buf = ft_mem.local;
		FT_CALL(ft, ft_send(ft, s, &m));
		ft_rma_set(ft, &r, i & 1 ? FT_READ : FT_WRITE,
			   ft_mem.local + 8192, 500, &ft_mem.lmr, &ft_mem.tmr,
			   !ft->rank, 8192);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		FT_DONE(ft, v);
		FT_DONE(ft, s);
		want[0] += 3;
	}
	return exactly(ft, want);
}

/* A receive that fails counts as an error and not as a success.  a: truncated,
 * cancelled */
static int errors(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4,
		.buf = ft_mem.target, .len = 50,
	};
	double end;

	zero();
	ft_known(ft, NULL, "errors are not counted");
	if (ft->rank) {
		FT_TRY(meet(ft));
		m.addr = ft->addr[0];
		m.len = 150;
		if (!c->a) {
			FT_CALL(ft, ft_send(ft, op, &m));
			FT_CHECK(ft, !ft_wait(ft, op), "the send does not "
				 "complete");
		}
		return meet(ft);
	}
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_TRY(meet(ft));
	if (c->a)
		FT_CALL(ft, fi_cancel(&ft->o.ep->fid, op));
	FT_CHECK(ft, !ft_wait(ft, op) && op->err, "no error completion");
	end = time_limit(ft);
	while (fi_cntr_readerr(cntr[RECV]) < 1) {
		look(ft);
		FT_CHECK(ft, ft_now() < end, "the error was not counted");
	}
	ft_linger(ft, 0.01);
	FT_CHECK(ft, fi_cntr_readerr(cntr[RECV]) == 1, "%llu errors counted",
		 (unsigned long long)fi_cntr_readerr(cntr[RECV]));
	FT_CHECK(ft, !fi_cntr_read(cntr[RECV]), "an error counts as success");
	FT_CALL(ft, fi_cntr_seterr(cntr[RECV], 0));
	return meet(ft);
}

/* Calls by which the application changes a counter.  a: wait object */
static int values(struct ft *ft, const struct ft_case *c)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.wait_obj = (enum fi_wait_obj)c->a,
	};
	struct fid_cntr *f;
	double t0;
	int ret;

	ret = fi_cntr_open(ft->o.domain, &attr, &f, &attr);
	if ((ret == -FI_ENOSYS || ret == -FI_EINVAL) &&
	    !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "no such wait object");
	FT_CHECK(ft, !ret, "fi_cntr_open: %d", ret);
	FT_CHECK(ft, f->fid.fclass == FI_CLASS_CNTR && f->fid.context == &attr,
		 "fclass or context is wrong");
	FT_CHECK(ft, fi_cntr_read(f) == 0 && fi_cntr_readerr(f) == 0,
		 "a new counter is not 0");
	FT_CALL(ft, fi_cntr_set(f, 10));
	FT_CALL(ft, fi_cntr_add(f, 5));
	FT_CHECK(ft, fi_cntr_read(f) == 15, "10 + 5 is %llu",
		 (unsigned long long)fi_cntr_read(f));
	FT_CALL(ft, fi_cntr_seterr(f, 3));
	FT_CALL(ft, fi_cntr_adderr(f, 4));
	FT_CHECK(ft, fi_cntr_readerr(f) == 7 && fi_cntr_read(f) == 15,
		 "errors 3 + 4 are %llu", (unsigned long long)
		 fi_cntr_readerr(f));
	FT_CALL(ft, fi_cntr_seterr(f, 0));
	FT_CALL(ft, fi_cntr_set(f, UINT64_MAX - 1));
	FT_CALL(ft, fi_cntr_add(f, 3));
	FT_CHECK(ft, fi_cntr_read(f) == 1, "it does not wrap: %llu",
		 (unsigned long long)fi_cntr_read(f));
	if (c->a != FI_WAIT_NONE) {
		FT_CALL(ft, fi_cntr_set(f, 15));
		ret = fi_cntr_wait(f, 15, 5000);
		FT_CHECK(ft, !ret, "waiting for a value that was reached: %d", ret);
		ret = fi_cntr_wait(f, 3, -1);
		FT_CHECK(ft, !ret, "waiting for less: %d", ret);
		t0 = ft_now();
		ret = fi_cntr_wait(f, 16, 100);
		FT_CHECK(ft, ret == -FI_ETIMEDOUT, "waiting in vain: %d", ret);
		FT_CHECK(ft, ft_now() - t0 > 0.09, "waiting ended early, "
			 "after %.0f ms", (ft_now() - t0) * 1e3);
		ret = fi_cntr_wait(f, 16, 0);
		FT_CHECK(ft, ret == -FI_ETIMEDOUT, "not waiting: %d", ret);
	}
	FT_CALL(ft, fi_close(&f->fid));
	return FT_PASS;
}

/* Sleeps until the other rank has sent enough; an error ends the wait as well. */
static int wait_recv(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4,
		.buf = ft_mem.target, .len = 100,
	};
	int i, ret, n = 5;
	struct timespec cpu0, cpu1;
	double t0, used, took;

	(void)c;
	zero();
	for (i = 0; i < n; i++) {
		struct ft_op *op = ft_op_new(ft);

		if (!ft->rank)
			FT_CALL(ft, ft_recv(ft, op, &m));
	}
	FT_TRY(meet(ft));
	if (ft->rank) {
		m.addr = ft->addr[0];
		for (i = 0; i < n; i++) {
			usleep(60 * 1000);
			FT_CALL(ft, ft_send(ft, ft_op_new(ft), &m));
			ft_linger(ft, 0.005);
		}
		FT_TRY(reach(ft, cntr[SEND], kind_names[SEND], (uint64_t)n));
	} else {
		t0 = ft_now();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu0);
		ret = fi_cntr_wait(cntr[RECV], (uint64_t)n, (int)
				   (ft->run->timeout_s * 1000));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu1);
		took = ft_now() - t0;
		used = (double)(cpu1.tv_sec - cpu0.tv_sec) +
		       (double)(cpu1.tv_nsec - cpu0.tv_nsec) * 1e-9;
		FT_CHECK(ft, !ret, "fi_cntr_wait: %d (%s)", ret,
			 fi_strerror(-ret));
		FT_CHECK(ft, fi_cntr_read(cntr[RECV]) >= (uint64_t)n,
			 "it returned at %llu of %d", (unsigned long long)
			 fi_cntr_read(cntr[RECV]), n);
		FT_CHECK(ft, took > 0.2, "it returned after %.0f ms",
			 took * 1e3);
		if (c->a) {
			ft_known(ft, "shm", "waiting uses the processor");
			FT_CHECK(ft, used < took / 2, "waiting %.0f ms used "
				 "%.0f ms of processor time", took * 1e3,
				 used * 1e3);
			ft->todo[0] = '\0';
		}
	}
	FT_TRY(meet(ft));
	return FT_PASS;
}

/* Waiting with a descriptor, for poll(2). */
static int wait_fd(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4,
		.buf = ft_mem.target, .len = 100,
	};
	struct ft_op *op = ft_op_new(ft);
	struct fid *fids[1];
	struct pollfd p = { .events = POLLIN };
	double end = ft_now() + ft->run->timeout_s;
	int ret;

	(void)c;
	zero();
	if (ft->rank) {
		FT_TRY(meet(ft));
		usleep(100 * 1000);
		m.addr = ft->addr[0];
		FT_CALL(ft, ft_send(ft, op, &m));
		FT_TRY(reach(ft, cntr[SEND], kind_names[SEND], 1));
		return meet(ft);
	}
	FT_CALL(ft, ft_recv(ft, op, &m));
	ret = fi_control(&cntr[RECV]->fid, FI_GETWAIT, &p.fd);
	if (ret == -FI_ENOSYS && !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "FI_GETWAIT: %s", fi_strerror(-ret));
	FT_CALL(ft, ret);
	FT_CHECK(ft, p.fd >= 0, "descriptor %d", p.fd);
	FT_TRY(meet(ft));
	fids[0] = &cntr[RECV]->fid;
	while (fi_cntr_read(cntr[RECV]) < 1) {
		FT_CHECK(ft, ft_now() < end, "nothing was counted");
		ret = fi_trywait(ft->o.fabric, fids, 1);
		if (ret == -FI_EAGAIN)
			continue;
		FT_CHECK(ft, !ret, "fi_trywait: %d", ret);
		poll(&p, 1, 1000);
	}
	return meet(ft);
}

/* A counter that an endpoint uses cannot be closed; afterwards it can. */
static int busy(struct ft *ft, const struct ft_case *c)
{
	int ret;

	(void)c;
	ret = fi_close(&cntr[SEND]->fid);
	if (!ret)
		ft->o.extra[0] = ft->o.extra[--ft->o.nextra];
	FT_CHECK(ft, ret == -FI_EBUSY, "a counter in use was closed: %d", ret);
	return FT_PASS;
}

static struct fid_ep *second_ep;
static struct fid_cq *second_cq;
static struct fid_av *second_av;

/* Two endpoints of a domain use the same counters. */
static int shared(struct ft *ft, const struct ft_case *c)
{
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr ava = { .type = FI_AV_TABLE };
	struct ft_objs o = ft->o, main_o = ft->o;
	fi_addr_t addr[OOB_MAX_RANKS], main_addr[OOB_MAX_RANKS];
	uint64_t want[NKINDS] = { 0 };
	int i, ret;

	(void)c;
	ft->spoiled = true;
	zero();
	FT_CALL(ft, fi_av_open(o.domain, &ava, &second_av, NULL));
	FT_CALL(ft, fi_cq_open(o.domain, &cqa, &second_cq, NULL));
	FT_CALL(ft, fi_endpoint(o.domain, o.info, &second_ep, NULL));
	o.av = second_av;
	o.cq = second_cq;
	o.ep = second_ep;
	FT_CALL(ft, fi_ep_bind(o.ep, &o.av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(ft, fi_ep_bind(o.ep, &cntr[SEND]->fid, FI_SEND));
	FT_CALL(ft, fi_ep_bind(o.ep, &cntr[RECV]->fid, FI_RECV));
	FT_CALL(ft, fi_enable(o.ep));
	o.name_len = sizeof(o.name);
	FT_CALL(ft, fi_getname(&o.ep->fid, o.name, &o.name_len));
	if (ft_exchange(ft, &o, addr))
		return FT_FAIL;
	memcpy(main_addr, ft->addr, sizeof(addr));
	ret = FT_PASS;
	for (i = 0; i < 40 && ret == FT_PASS; i++) {
		struct ft_op *v = ft_op_new(ft), *s = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 4,
			.buf = ft_mem.target, .len = 1000,
		};

		ft->o = i & 1 ? o : main_o;
		memcpy(ft->addr, i & 1 ? addr : main_addr, sizeof(addr));
		ret = ft_recv(ft, v, &m);
		if (!ret && ft_barrier(ft))
			ret = FT_FAIL;
		m.addr = ft->addr[!ft->rank];
		m.buf = ft_mem.local;
		if (!ret)
			ret = ft_send(ft, s, &m);
		if (!ret)
			ret = ft_must_complete(ft, v, FT_AT);
		if (!ret)
			ret = ft_must_complete(ft, s, FT_AT);
		if (ret)
			ret = ft_fail(ft, "message %d", i);
		want[SEND]++;
		want[RECV]++;
		if (!ret && ft_barrier(ft))
			ret = FT_FAIL;
	}
	ft->o = main_o;
	memcpy(ft->addr, main_addr, sizeof(main_addr));
	if (ret == FT_PASS)
		ret = exactly(ft, want);
	fi_close(&o.ep->fid);
	fi_close(&o.cq->fid);
	fi_close(&o.av->fid);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; enum fi_wait_obj obj;
		int (*bind)(struct ft *ft, struct ft_objs *o); } waits[] = {
		{ "none", FI_WAIT_NONE, bind_each },
		{ "unspec", FI_WAIT_UNSPEC, bind_unspec },
		{ "fd", FI_WAIT_FD, bind_fd },
		{ "yield", FI_WAIT_YIELD, bind_yield },
	};
	const uint64_t ev = FT_RMA_CAPS | FI_RMA_EVENT;
	static struct ft_case cases[64];
	struct ft_case *c = cases;
	int i;

#define CASE(body_, caps_, bind_, ...) do {				\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_mem;						\
	c->body = (body_);						\
	c->cfg.caps = (caps_);						\
	c->cfg.bind = (bind_);						\
	c++;								\
} while (0)

	for (i = 0; i < COUNT(waits); i++) {
		c->a = waits[i].obj;
		CASE(values, FT_RMA_CAPS, NULL, "values-wait-%s",
		     waits[i].name);
	}
	CASE(messages, FT_RMA_CAPS, bind_each, "messages");
	c->cfg.selective = true;
	CASE(messages, FT_RMA_CAPS, bind_each, "messages-selective");
	c->cfg.no_cq = true;
	CASE(messages, FT_RMA_CAPS, bind_each, "messages-without-queue");
	CASE(one_sided, FT_RMA_CAPS, bind_each, "rma");
	c->cfg.selective = true;
	CASE(one_sided, FT_RMA_CAPS, bind_each, "rma-selective");
	c->cfg.no_cq = true;
	CASE(one_sided, FT_RMA_CAPS, bind_each, "rma-without-queue");
	CASE(one_sided, ev, bind_each, "rma-event");
	CASE(atomics, FT_ATOMIC_CAPS, bind_each, "atomics");
	CASE(atomics, FT_ATOMIC_CAPS | FI_RMA_EVENT, bind_each,
	     "atomics-event");
	CASE(all_in_one, FT_RMA_CAPS, bind_one, "one-for-all");
	CASE(errors, FT_RMA_CAPS, bind_each, "truncated-receive");
	c->a = 1;
	CASE(errors, FT_RMA_CAPS, bind_each, "cancelled-receive");
	for (i = 1; i < COUNT(waits); i++) {
		c->a = waits[i].obj != FI_WAIT_YIELD;
		CASE(wait_recv, FT_RMA_CAPS, waits[i].bind, "wait-%s",
		     waits[i].name);
	}
	CASE(wait_fd, FT_RMA_CAPS, bind_fd, "descriptor");
	CASE(shared, FT_RMA_CAPS, bind_each, "two-endpoints");
	CASE(busy, FT_RMA_CAPS, bind_each, "close-in-use");
	return ft_main(argc, argv, "counters", cases, (int)(c - cases));
}
