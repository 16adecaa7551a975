/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll sets: queues and counters that are polled together; in these cases only
 * fi_poll makes progress.  Also the descriptors of counters.
 */
#include "../common/ft.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Poll sets are deprecated in libfabric, and are what is tested here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define MAX_BYTES	(1 << 20)
#define TAG		5ULL
#define QUIET		1000		/* polls that must find nothing */

static unsigned char sbuf[MAX_BYTES], rbuf[MAX_BYTES];

/* The contexts of the objects in the set: their addresses differ. */
static int cq_ctx, send_ctx, recv_ctx;
static struct fid_cntr *sends, *recvs;
static struct fid_poll *set;

static int open_set(struct ft *ft, struct ft_objs *o)
{
	struct fi_poll_attr attr = { 0 };
	int ret = fi_poll_open(o->domain, &attr, &set);

	(void)ft;
	if (!ret)
		o->extra[o->nextra++] = &set->fid;
	return ret;
}

static int open_cntrs(struct ft_objs *o, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .wait_obj = wait };
	int ret;

	ret = fi_cntr_open(o->domain, &attr, &sends, &send_ctx);
	if (ret)
		return ret;
	o->extra[o->nextra++] = &sends->fid;
	ret = fi_cntr_open(o->domain, &attr, &recvs, &recv_ctx);
	if (ret)
		return ret;
	o->extra[o->nextra++] = &recvs->fid;
	ret = fi_ep_bind(o->ep, &sends->fid, FI_SEND);
	return ret ? ret : fi_ep_bind(o->ep, &recvs->fid, FI_RECV);
}

/* The set is closed first, because it is opened last. */
static int bind_all(struct ft *ft, struct ft_objs *o)
{
	int ret = open_cntrs(o, FI_WAIT_NONE);

	if (ret)
		return ret;
	o->cq->fid.context = &cq_ctx;
	return open_set(ft, o);
}

static int bind_fd(struct ft *ft, struct ft_objs *o)
{
	(void)ft;
	return open_cntrs(o, FI_WAIT_FD);
}

static int join(struct ft *ft, bool cq, bool cntrs)
{
	if (cq)
		FT_CALL(ft, fi_poll_add(set, &ft->o.cq->fid, 0));
	if (cntrs) {
		FT_CALL(ft, fi_poll_add(set, &sends->fid, 0));
		FT_CALL(ft, fi_poll_add(set, &recvs->fid, 0));
	}
	return FT_PASS;
}

/* Poll until `want` is among the objects with something new, or the time is up. */
static int poll_for(struct ft *ft, const void *want)
{
	double end = ft_now() + ft->run->timeout_s;
	void *ctx[4];
	int i, n;

	do {
		n = fi_poll(set, ctx, 4);
		if (n < 0)
			return ft_fail(ft, "fi_poll: %s", fi_strerror(-n));
		for (i = 0; i < n; i++)
			if (ctx[i] == want)
				return FT_PASS;
	} while (ft_now() < end);
	return ft_fail(ft, "fi_poll never reported it");
}

static void drain_news(void)
{
	void *ctx[4];
	int i;

	for (i = 0; i < QUIET; i++)
		if (!fi_poll(set, ctx, 4))
			return;
}

/* ---- cases ---- */

static int nothing(struct ft *ft, const struct ft_case *c)
{
	void *ctx[4];
	int i, n;

	(void)c;
	n = fi_poll(set, ctx, 4);
	FT_CHECK(ft, n == 0, "an empty set has %d", n);
	FT_TRY(join(ft, true, true));
	for (i = 0; i < QUIET; i++) {
		n = fi_poll(set, ctx, 4);
		FT_CHECK(ft, n == 0, "%d of a set with nothing new", n);
	}
	return FT_PASS;
}

/* Messages of c->a bytes in both directions; only fi_poll makes progress. */
static int queue(struct ft *ft, const struct ft_case *c)
{
	int i, n = ft->run->quick ? 20 : 200;

	FT_TRY(join(ft, true, false));
	for (i = 0; i < n; i++) {
		struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.buf = rbuf, .len = c->a, .tag = TAG,
		};

		FT_CALL(ft, ft_recv(ft, rx, &m));
		m.buf = sbuf;
		pattern_fill(sbuf, c->a, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		if (!ft->rank)
			FT_CALL(ft, ft_send(ft, tx, &m));
		while (!rx->done) {
			FT_TRY(poll_for(ft, &cq_ctx));
			ft_progress(ft);
		}
		if (ft->rank)
			FT_CALL(ft, ft_send(ft, tx, &m));
		while (!tx->done) {
			FT_TRY(poll_for(ft, &cq_ctx));
			ft_progress(ft);
		}
		FT_DONE(ft, rx);
		FT_DONE(ft, tx);
		FT_CHECK(ft, pattern_check(rbuf, c->a, ft->run->seed,
					   !ft->rank, (uint64_t)i) < 0,
			 "round %d: wrong data", i);
	}
	return FT_PASS;
}

/* The set has only counters: each step of one is reported, and reported once. */
static int counters(struct ft *ft, const struct ft_case *c)
{
	int i, j, n = ft->run->quick ? 10 : 50;
	void *ctx[4];

	FT_TRY(join(ft, false, true));
	for (i = 0; i < n; i++) {
		struct ft_op *op = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.buf = rbuf, .len = c->a, .tag = TAG,
		};
		struct fid_cntr *cntr = ft->rank ? recvs : sends;
		uint64_t v;

		if (ft->rank) {
			FT_CALL(ft, ft_recv(ft, op, &m));
		} else {
			m.buf = sbuf;
			FT_CALL(ft, ft_send(ft, op, &m));
		}
		FT_TRY(poll_for(ft, ft->rank ? &recv_ctx : &send_ctx));
		v = fi_cntr_read(cntr);
		FT_CHECK(ft, v == (uint64_t)i + 1, "%llu after message %d",
			 (unsigned long long)v, i);
		FT_CHECK(ft, fi_cntr_readerr(cntr) == 0, "errors are counted");
		drain_news();
		for (j = 0; j < 10; j++) {
			int k = fi_poll(set, ctx, 4);

			FT_CHECK(ft, k == 0, "round %d: reported again", i);
		}
		FT_DONE(ft, op);
		FT_CALL(ft, ft_barrier(ft));
	}
	return FT_PASS;
}

/* More objects have something new than the array has room for: each is reported
 * in the end. */
static int small_array(struct ft *ft, const struct ft_case *c)
{
	/* Bare providers never report all. */
	double end = ft_now() + (ft_is_bare(ft, "lnx") ?
				 ft->run->timeout_s : 1);
	struct ft_op *tx = ft_op_new(ft), *rx = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[!ft->rank],
		.buf = rbuf, .len = 64, .tag = TAG,
	};
	bool cq = false, send = false, recv = false;
	void *ctx;
	int n;

	(void)c;
	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.buf = sbuf;
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	/* The counters have changed, and the queue will have a completion soon. */
	FT_TRY(join(ft, true, true));
	n = fi_poll(set, &ctx, 0);
	FT_CHECK(ft, n == 0, "%d fit into nothing", n);
	ft_op_reset(rx);
	ft_op_reset(tx);
	m.buf = rbuf;
	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.buf = sbuf;
	FT_CALL(ft, ft_send(ft, tx, &m));
	while (!(cq && send && recv) && ft_now() < end) {
		n = fi_poll(set, &ctx, 1);
		FT_CHECK(ft, n == 0 || n == 1, "%d in an array of one", n);
		cq |= n && ctx == &cq_ctx;
		send |= n && ctx == &send_ctx;
		recv |= n && ctx == &recv_ctx;
		/* As the manual requires: read what was reported. */
		if (n && ctx == &send_ctx)
			fi_cntr_read(sends);
		if (n && ctx == &recv_ctx)
			fi_cntr_read(recvs);
	}
	if (!(cq && send && recv)) {
		ft_known(ft, NULL, "the first objects of a set hide the others");
		return ft_fail(ft, "never reported:%s%s%s", cq ? "" : " cq",
			       send ? "" : " send", recv ? "" : " recv");
	}
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	return FT_PASS;
}

/* A change that the application makes to a counter is not reported. */
static int own_changes(struct ft *ft, const struct ft_case *c)
{
	void *ctx[4];
	int n;

	(void)c;
	FT_TRY(join(ft, false, true));
	drain_news();
	FT_CALL(ft, fi_cntr_set(sends, 7));
	FT_CALL(ft, fi_cntr_add(sends, 3));
	FT_CALL(ft, fi_cntr_seterr(sends, 2));
	FT_CALL(ft, fi_cntr_adderr(sends, 2));
	n = fi_poll(set, ctx, 4);
	if (n) {
		ft_known(ft, NULL, "reports the application's own changes");
		return ft_fail(ft, "%d reported after fi_cntr_set and fi_cntr_add",
			       n);
	}
	FT_CHECK(ft, fi_cntr_read(sends) == 10, "7 and 3 are %llu",
		 (unsigned long long)fi_cntr_read(sends));
	FT_CHECK(ft, fi_cntr_readerr(sends) == 4, "2 and 2 are %llu",
		 (unsigned long long)fi_cntr_readerr(sends));
	return FT_PASS;
}

static int members(struct ft *ft, const struct ft_case *c)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *other;
	int ret;

	(void)c;
	ft_known(ft, NULL, "members of a set can be closed");
	FT_CALL(ft, fi_cntr_open(ft->o.domain, &attr, &other, NULL));
	FT_CALL(ft, fi_poll_add(set, &other->fid, 0));
	FT_CALL(ft, fi_poll_add(set, &ft->o.cq->fid, 0));
	ret = fi_close(&other->fid);
	FT_CHECK(ft, ret == -FI_EBUSY, "a member could be closed: %d", ret);
	FT_CALL(ft, fi_poll_del(set, &other->fid, 0));
	FT_CALL(ft, fi_close(&other->fid));
	FT_CALL(ft, fi_poll_del(set, &ft->o.cq->fid, 0));
	/* A set that has members is closed with the case's objects. */
	FT_CALL(ft, fi_poll_add(set, &ft->o.cq->fid, 0));
	FT_CALL(ft, fi_poll_add(set, &recvs->fid, 0));
	ret = fi_close(&ft->o.domain->fid);
	FT_CHECK(ft, ret == -FI_EBUSY, "the domain could be closed: %d", ret);
	return FT_PASS;
}

static int refused(struct ft *ft, const struct ft_case *c)
{
	struct fi_poll_attr attr = { .flags = FI_PEER };
	struct fid_poll *bad = NULL;
	int ret;

	(void)c;
	ft_known(ft, NULL, "flags and classes are not checked");
	ret = fi_poll_open(ft->o.domain, &attr, &bad);
	if (!ret)
		fi_close(&bad->fid);
	FT_CHECK(ft, ret < 0, "a set was opened with flags");
	FT_CHECK(ft, fi_poll_add(set, &ft->o.av->fid, 0) < 0,
		 "an AV became a member");
	FT_CHECK(ft, fi_poll_add(set, &ft->o.cq->fid, FI_PEER) < 0,
		 "added with flags");
	FT_CHECK(ft, fi_poll_del(set, &ft->o.cq->fid, 0) < 0,
		 "removed an object that is not a member");
	FT_CALL(ft, fi_poll_add(set, &ft->o.cq->fid, 0));
	FT_CHECK(ft, fi_poll_add(set, &ft->o.cq->fid, 0) < 0, "added twice");
	return FT_PASS;
}

/* Sleep on the descriptor of a counter until all messages have arrived. */
static int counter_fd(struct ft *ft, const struct ft_case *c)
{
	int i, fd = -1, n = ft->run->quick ? 10 : 50;
	struct fid *fids[1] = { &recvs->fid };
	double end = ft_now() + ft->run->timeout_s;
	enum fi_wait_obj obj = FI_WAIT_NONE;

	ft_known(ft, NULL, "its counters have no descriptor");
	FT_CALL(ft, fi_control(&recvs->fid, FI_GETWAIT, &fd));
	FT_CALL(ft, fi_control(&recvs->fid, FI_GETWAITOBJ, &obj));
	FT_CHECK(ft, fd >= 0 && obj == FI_WAIT_FD, "descriptor %d, object %d",
		 fd, (int)obj);
	for (i = 0; i < n; i++) {
		struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.buf = rbuf, .len = c->a, .tag = TAG,
		};

		FT_CALL(ft, ft_recv(ft, rx, &m));
		m.buf = sbuf;
		if (!ft->rank)
			FT_CALL(ft, ft_send(ft, tx, &m));
		while (fi_cntr_read(recvs) < (uint64_t)i + 1) {
			struct pollfd pfd = { .fd = fd, .events = POLLIN };
			int ret = fi_trywait(ft->o.fabric, fids, 1);

			FT_CHECK(ft, ft_now() < end, "round %d: nothing came",
				 i);
			if (ret == -FI_EAGAIN)
				continue;
			FT_CALL(ft, ret);
			poll(&pfd, 1, 1000);
		}
		if (ft->rank)
			FT_CALL(ft, ft_send(ft, tx, &m));
		FT_DONE(ft, rx);
		FT_DONE(ft, tx);
	}
	return FT_PASS;
}

/* Counters and sets keep their state between cases, so each case opens its own. */
static int fresh(struct ft *ft, const struct ft_case *c)
{
	ft->spoiled = true;
	return c->body(ft, c);
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "nothing", .fn = fresh, .body = nothing,
		  .cfg.bind = bind_all },
		{ .name = "queue-8", .fn = fresh, .body = queue,
		  .cfg.bind = bind_all, .a = 8 },
		{ .name = "queue-20000", .fn = fresh, .body = queue,
		  .cfg.bind = bind_all, .a = 20000 },
		{ .name = "queue-1048576", .fn = fresh, .body = queue,
		  .cfg.bind = bind_all, .a = MAX_BYTES },
		{ .name = "counters-8", .fn = fresh, .body = counters,
		  .cfg.bind = bind_all, .a = 8 },
		{ .name = "counters-20000", .fn = fresh, .body = counters,
		  .cfg.bind = bind_all, .a = 20000 },
		{ .name = "small-array", .fn = fresh, .body = small_array,
		  .cfg.bind = bind_all },
		{ .name = "own-changes", .fn = fresh, .body = own_changes,
		  .cfg.bind = bind_all },
		{ .name = "members", .fn = fresh, .body = members,
		  .cfg.bind = bind_all },
		{ .name = "refused", .fn = fresh, .body = refused,
		  .cfg.bind = bind_all },
		{ .name = "counter-fd-8", .fn = fresh, .body = counter_fd,
		  .cfg.bind = bind_fd, .a = 8 },
		{ .name = "counter-fd-20000", .fn = fresh, .body = counter_fd,
		  .cfg.bind = bind_fd, .a = 20000 },
	};

	return ft_main(argc, argv, "poll sets and descriptors of counters",
		       cases, sizeof(cases) / sizeof(cases[0]));
}
