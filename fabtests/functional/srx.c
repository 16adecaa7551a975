/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts: several endpoints of rank 0 use the same receives,
 * and each reports the messages sent to it.  Rank 1 sends, from endpoints that
 * share as well.
 */
#include "../common/ft.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPS		3
#define TAG		0x77
#define ROOM		(1u << 20)

static struct {
	struct fid_ep *srx, *ep[EPS];
	struct fid_cq *cq[EPS];
	fi_addr_t addr[EPS][OOB_MAX_RANKS];
	int reading;			/* the queue being read; EPS: the job's own */
} g;

/* ---- objects ---- */

static int open_member(struct ft *ft, int i, enum fi_wait_obj wait,
		       uint64_t flags)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait,
	};
	struct ft_objs o = ft->o;

	FT_CALL(ft, fi_cq_open(o.domain, &attr, &g.cq[i], NULL));
	FT_CALL(ft, fi_endpoint(o.domain, o.info, &g.ep[i], NULL));
	/* Some before and some after the others, because no order is required. */
	if (i & 1)
		FT_CALL(ft, fi_ep_bind(g.ep[i], &g.srx->fid, 0));
	FT_CALL(ft, fi_ep_bind(g.ep[i], &o.av->fid, 0));
	FT_CALL(ft, fi_ep_bind(g.ep[i], &g.cq[i]->fid,
			       FI_TRANSMIT | FI_RECV | flags));
	if (!(i & 1))
		FT_CALL(ft, fi_ep_bind(g.ep[i], &g.srx->fid, 0));
	FT_CALL(ft, fi_enable(g.ep[i]));
	o.name_len = sizeof(o.name);
	FT_CALL(ft, fi_getname(&g.ep[i]->fid, o.name, &o.name_len));
	return ft_exchange(ft, &o, g.addr[i]) ? FT_FAIL : FT_PASS;
}

static int close_one(struct ft *ft, int i)
{
	if (g.ep[i])
		FT_CALL(ft, fi_close(&g.ep[i]->fid));
	g.ep[i] = NULL;
	if (g.cq[i])
		FT_CALL(ft, fi_close(&g.cq[i]->fid));
	g.cq[i] = NULL;
	return FT_PASS;
}

static int close_all(struct ft *ft)
{
	for (int i = 0; i < EPS; i++)
		FT_TRY(close_one(ft, i));
	if (g.srx)
		FT_CALL(ft, fi_close(&g.srx->fid));
	g.srx = NULL;
	return FT_PASS;
}

static int shared(struct ft *ft, const struct ft_case *c)
{
	struct fi_rx_attr attr = *ft->o.info->rx_attr;
	char why[FT_WHY_MAX];
	int i, ret, late;

	if (!ft->o.info->domain_attr->max_ep_srx_ctx)
		return ft_skip(ft, "max_ep_srx_ctx is 0: there are no shared "
			       "receive contexts");
	memset(&g, 0, sizeof(g));
	ret = fi_srx_context(ft->o.domain, &attr, &g.srx, &g);
	FT_CHECK(ft, !ret, "fi_srx_context: %d", ret);
	ret = g.srx->fid.fclass == FI_CLASS_SRX_CTX &&
	      g.srx->fid.context == &g ? FT_PASS :
	      ft_fail(ft, "not what was requested");
	for (i = 0; i < EPS && ret == FT_PASS; i++)
		ret = open_member(ft, i, c->cfg.wait, c->cfg.selective ?
				  FI_SELECTIVE_COMPLETION : 0);
	if (ret == FT_PASS)
		ret = c->body(ft, c);
	memcpy(why, ft->why, sizeof(why));
	if (ret == FT_PASS)
		ret = ft_barrier(ft) ? FT_FAIL : FT_PASS;
	late = close_all(ft);
	if (ret != FT_PASS)
		memcpy(ft->why, why, sizeof(why));
	return ret == FT_PASS ? late : ret;
}

/* ---- operations ---- */

static void poll_all(struct ft *ft)
{
	struct fid_cq *own = ft->o.cq;

	for (g.reading = 0; g.reading < EPS; g.reading++) {
		ft->o.cq = g.cq[g.reading];
		if (ft->o.cq)
			ft_progress(ft);
	}
	ft->o.cq = own;
	ft_progress(ft);
}

/* Records to which queue the completion went, and counts it. */
static void landed(struct ft *ft, struct ft_op *op)
{
	(void)ft;
	op->arg = (void *)(uintptr_t)(g.reading + 1);
}

static int queue_of(const struct ft_op *op)
{
	return (int)(uintptr_t)op->arg - 1;
}

static int post(struct ft *ft, struct ft_op *op, const struct ft_msg *m)
{
	op->hook = landed;
	op->posted = true;
	FT_CALL(ft, ft_try_recv(g.srx, op, m));
	return FT_PASS;
}

static int await(struct ft *ft, struct ft_op *op)
{
	double end = ft_now() + ft->run->timeout_s;

	while (!op->done) {
		poll_all(ft);
		FT_CHECK(ft, ft_now() < end, "no completion");
	}
	return FT_PASS;
}

static void linger(struct ft *ft)
{
	double end = ft_now() + 0.1;

	while (ft_now() < end)
		poll_all(ft);
}

static struct ft_op *send_from(struct ft *ft, struct fid_ep *ep,
			       const struct ft_msg *m)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op = ft_op_new(ft);
	ssize_t ret;

	op->posted = true;
	do {
		ret = ft_try_send(ep, op, m);
		if (ret == -FI_EAGAIN)
			poll_all(ft);
	} while (ret == -FI_EAGAIN && ft_now() < end);
	if (!ret)
		return op;
	ft_fail(ft, "send: %s", fi_strerror((int)-ret));
	return NULL;
}

/* ---- messages to each endpoint ---- */

static const size_t sizes[] = { 8, 0, 4096, 64, 20000, ROOM };
#define NSIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define MESSAGES (EPS * (int)NSIZES)

static unsigned char room[MESSAGES][ROOM];

static size_t size_of(int seq)
{
	return sizes[seq / EPS % (int)NSIZES];
}

static int send_each(struct ft *ft, bool tagged)
{
	struct ft_op *op[MESSAGES];
	int i;

	for (i = 0; i < MESSAGES; i++) {
		struct ft_msg m = {
			.tagged = tagged, .call = FT_SENDDATA, .tag = TAG,
			.addr = g.addr[i % EPS][0], .buf = room[i],
			.len = size_of(i), .data = (uint64_t)i,
		};

		pattern_fill(m.buf, m.len, ft->run->seed, 1, (uint64_t)i);
		op[i] = send_from(ft, ft->o.ep, &m);
		if (!op[i])
			return FT_FAIL;
	}
	ft_barrier(ft);
	for (i = 0; i < MESSAGES; i++)
		FT_TRY(await(ft, op[i]));
	return FT_PASS;
}

/* Messages of each endpoint use the receives in the order in which they were posted. */
static int check_each(struct ft *ft, struct ft_op **op)
{
	int last[EPS] = { -1, -1, -1 }, i;
	bool seen[MESSAGES] = { false };

	for (i = 0; i < MESSAGES; i++) {
		int seq = (int)op[i]->data, at = queue_of(op[i]);

		FT_CHECK(ft, !op[i]->err, "receive %d: %s", i,
			 fi_strerror(op[i]->err));
		FT_CHECK(ft, seq >= 0 && seq < MESSAGES && !seen[seq],
			 "receive %d: message %d, or twice", i, seq);
		seen[seq] = true;
		FT_CHECK(ft, at == seq % EPS, "message %d to endpoint %d was "
			 "reported by that of %d", seq, seq % EPS, at);
		FT_CHECK(ft, op[i]->len == size_of(seq), "message %d: %zu "
			 "bytes", seq, op[i]->len);
		FT_CHECK(ft, op[i]->src == ft->addr[1], "message %d: source "
			 "%#llx", seq, (unsigned long long)op[i]->src);
		FT_CHECK(ft, pattern_check(room[i], op[i]->len, ft->run->seed,
					   1, (uint64_t)seq) < 0,
			 "message %d: wrong bytes", seq);
		FT_CHECK(ft, seq > last[at], "endpoint %d: message %d before "
			 "%d", at, last[at], seq);
		last[at] = seq;
	}
	return FT_PASS;
}

/* a: tagged; b: the messages arrive before the receives are posted */
static int each(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[MESSAGES];
	int i;

	if (ft->rank) {
		if (!c->b)
			ft_barrier(ft);
		return send_each(ft, c->a);
	}
	if (c->b) {
		ft_barrier(ft);
		linger(ft);
	}
	for (i = 0; i < MESSAGES; i++) {
		struct ft_msg m = {
			.tagged = c->a, .call = i % FT_RECV_CALLS, .tag = TAG,
			.addr = FI_ADDR_UNSPEC, .buf = room[i], .len = ROOM,
			.flags = FI_COMPLETION,
		};

		op[i] = ft_op_new(ft);
		FT_TRY(post(ft, op[i], &m));
	}
	if (!c->b) {
		ft_barrier(ft);
		ft_barrier(ft);
	}
	for (i = 0; i < MESSAGES; i++)
		FT_TRY(await(ft, op[i]));
	return check_each(ft, op);
}

/* ---- sources ---- */

/* A receive with a source waits for that one, through whichever endpoint others
 * arrive. */
static int directed(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = { .tagged = c->a, .tag = TAG, .len = 8 };
	struct ft_op *op[3];
	int i;

	if (ft->rank) {
		/* The receive that was posted last gets its message first. */
		struct fid_ep *from[3] = { g.ep[1], g.ep[0], ft->o.ep };

		ft_barrier(ft);
		for (i = 0; i < 3; i++) {
			m.addr = g.addr[i][0];
			m.buf = room[i];
			memset(m.buf, i, 8);
			op[i] = send_from(ft, from[i], &m);
			if (!op[i])
				return FT_FAIL;
		}
		for (i = 0; i < 3; i++)
			FT_TRY(await(ft, op[i]));
		return FT_PASS;
	}
	for (i = 0; i < 3; i++) {
		m.addr = i == 0 ? ft->addr[1] : g.addr[i - 1][1];
		m.buf = room[i];
		op[i] = ft_op_new(ft);
		FT_TRY(post(ft, op[i], &m));
	}
	ft_barrier(ft);
	for (i = 0; i < 3; i++) {
		FT_TRY(await(ft, op[i]));
		FT_CHECK(ft, !op[i]->err, "error %d", op[i]->err);
		FT_CHECK(ft, queue_of(op[i]) == 2 - i && room[i][0] == 2 - i,
			 "receive %d: the message to endpoint %d, reported by "
			 "that of %d", i, room[i][0], queue_of(op[i]));
		FT_CHECK(ft, op[i]->src == (i == 0 ? ft->addr[1] :
					    g.addr[i - 1][1]), "source of %d "
			 "is %#llx", i, (unsigned long long)op[i]->src);
	}
	return FT_PASS;
}

/* An endpoint that shares nothing uses its own receives and no others. */
static int apart(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = { .tagged = true, .tag = TAG, .len = 8,
			    .addr = FI_ADDR_UNSPEC };
	struct ft_op *one, *two;

	(void)c;
	if (ft->rank) {
		ft_barrier(ft);
		m.addr = ft->addr[0];
		m.buf = room[0];
		one = send_from(ft, ft->o.ep, &m);
		if (!one)
			return FT_FAIL;
		m.addr = g.addr[1][0];
		two = send_from(ft, ft->o.ep, &m);
		if (!two)
			return FT_FAIL;
		FT_TRY(await(ft, one));
		return await(ft, two);
	}
	one = ft_op_new(ft);
	two = ft_op_new(ft);
	m.buf = room[0];
	FT_TRY(post(ft, one, &m));
	m.buf = room[1];
	two->hook = landed;
	FT_CALL(ft, ft_recv(ft, two, &m));
	ft_barrier(ft);
	FT_TRY(await(ft, one));
	FT_TRY(await(ft, two));
	FT_CHECK(ft, queue_of(one) == 1 && queue_of(two) == EPS,
		 "reported by %d and %d", queue_of(one), queue_of(two));
	return FT_PASS;
}

/* ---- multi-receive ---- */

#define MULTI_BYTES	10000
#define MULTI_EACH	900
#define MULTI_FITS	11		/* then less than 1000 bytes are left */

static struct {
	int n, released, bad;
	bool used[MULTI_FITS];
} multi;

static void multi_hook(struct ft *ft, struct ft_op *op)
{
	int seq = (int)op->data;
	unsigned char *at = op->buf;

	/* Queues are read one by one: another message may be reported after the
	 * release. */
	if (op->err || (multi.released && (op->flags & FI_MULTI_RECV)))
		multi.bad = 1;
	if (op->flags & FI_MULTI_RECV)
		multi.released++;
	if (!(op->flags & FI_RECV) || !op->len)
		return;
	if (seq < 0 || seq >= MULTI_FITS || multi.used[seq] ||
	    g.reading != seq % EPS || op->len != MULTI_EACH ||
	    at < room[0] || at + op->len > room[0] + MULTI_BYTES ||
	    pattern_check(at, op->len, ft->run->seed, 1, (uint64_t)seq) >= 0) {
		multi.bad = 2;
		return;
	}
	multi.used[seq] = true;
	multi.n++;
}

/* b: the messages arrive first */
static int multi_recv(struct ft *ft, const struct ft_case *c)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_msg m = {
		.call = FT_RECVMSG, .addr = FI_ADDR_UNSPEC, .buf = room[0],
		.len = MULTI_BYTES, .flags = FI_MULTI_RECV | FI_COMPLETION,
	};
	struct iovec iov = { .iov_base = m.buf, .iov_len = m.len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = m.addr };
	size_t min = 1000, got = 0, len = sizeof(got);
	struct ft_op *op;
	int i;

	if (ft->rank) {
		struct ft_op *ops[MULTI_FITS];

		if (!c->b)
			ft_barrier(ft);
		for (i = 0; i < MULTI_FITS; i++) {
			m = (struct ft_msg){
				.call = FT_SENDDATA, .addr = g.addr[i % EPS][0],
				.buf = room[i], .len = MULTI_EACH,
				.data = (uint64_t)i,
			};
			pattern_fill(m.buf, m.len, ft->run->seed, 1,
				     (uint64_t)i);
			ops[i] = send_from(ft, ft->o.ep, &m);
			if (!ops[i])
				return FT_FAIL;
		}
		if (c->b)
			ft_barrier(ft);
		for (i = 0; i < MULTI_FITS; i++)
			FT_TRY(await(ft, ops[i]));
		return FT_PASS;
	}
	memset(&multi, 0, sizeof(multi));
	FT_CALL(ft, fi_setopt(&g.srx->fid, FI_OPT_ENDPOINT,
			      FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	FT_CALL(ft, fi_getopt(&g.srx->fid, FI_OPT_ENDPOINT,
			      FI_OPT_MIN_MULTI_RECV, &got, &len));
	FT_CHECK(ft, got == min, "set %zu, got %zu", min, got);
	if (c->b) {
		ft_barrier(ft);
		linger(ft);
	}
	op = ft_op_new(ft);
	op->want = 0;
	op->hook = multi_hook;
	op->posted = true;
	msg.context = op;
	FT_CALL(ft, fi_recvmsg(g.srx, &msg, m.flags));
	if (!c->b)
		ft_barrier(ft);
	while (multi.n < MULTI_FITS || !multi.released) {
		poll_all(ft);
		FT_CHECK(ft, !multi.bad, "%s, after %d messages",
			 multi.bad == 1 ? "an error, or released twice" :
			 "a wrong message", multi.n);
		FT_CHECK(ft, ft_now() < end, "%d of %d messages, released: "
			 "%d", multi.n, MULTI_FITS, multi.released);
	}
	return FT_PASS;
}

/* ---- cancel, refusals ---- */

/* A context has no queue: the queue of its first endpoint reports that a
 * receive was cancelled. */
static int cancel(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = c->a, .addr = FI_ADDR_UNSPEC, .tag = TAG,
		.buf = room[0], .len = 8,
	};
	ssize_t ret;

	if (ft->rank)
		return FT_PASS;
	FT_TRY(post(ft, op, &m));
	ret = fi_cancel(&g.ep[1]->fid, op);
	FT_CHECK(ft, ret == -FI_ENOENT, "an endpoint cancelled it: %zd", ret);
	FT_CALL(ft, fi_cancel(&g.srx->fid, op));
	FT_TRY(await(ft, op));
	FT_CHECK(ft, op->err == FI_ECANCELED && queue_of(op) == 0, "error %d "
		 "from the queue of %d", op->err, queue_of(op));
	ret = fi_cancel(&g.srx->fid, op);
	FT_CHECK(ft, ret == -FI_ENOENT, "cancelled twice: %zd", ret);
	return FT_PASS;
}

static int refused(struct ft *ft, const struct ft_case *c)
{
	struct fi_rx_attr attr = *ft->o.info->rx_attr;
	struct fi_av_attr ava = { .type = FI_AV_TABLE };
	struct fid_ep *srx, *ep;
	struct fi_context2 ctx;
	struct fid_av *av;
	ssize_t ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	ret = fi_close(&g.srx->fid);
	FT_CHECK(ft, ret == -FI_EBUSY, "closing it in use: %zd", ret);
	ret = fi_trecv(g.ep[0], room[0], 8, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx);
	FT_CHECK(ft, ret == -FI_EOPBADSTATE, "fi_trecv on an endpoint: %zd",
		 ret);
	ret = fi_recv(g.ep[0], room[0], 8, NULL, FI_ADDR_UNSPEC, &ctx);
	FT_CHECK(ft, ret == -FI_EOPBADSTATE, "fi_recv on an endpoint: %zd",
		 ret);
	ret = fi_send(g.srx, room[0], 8, NULL, ft->addr[0], &ctx);
	FT_CHECK(ft, ret == -FI_EOPBADSTATE, "fi_send on the context: %zd",
		 ret);
	ret = fi_trecvmsg(g.srx, &(struct fi_msg_tagged){ .context = &ctx,
			  .addr = FI_ADDR_UNSPEC }, FI_PEEK);
	FT_CHECK(ft, ret == -FI_EOPNOTSUPP, "FI_PEEK: %zd", ret);
	attr.op_flags = FI_PEER;
	ret = fi_srx_context(ft->o.domain, &attr, &srx, NULL);
	FT_CHECK(ft, ret == -FI_EBADFLAGS, "FI_PEER: %zd", ret);

	attr.op_flags = 0;
	FT_CALL(ft, fi_srx_context(ft->o.domain, &attr, &srx, NULL));
	FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, &ep, NULL));
	FT_CALL(ft, fi_ep_bind(ep, &g.srx->fid, 0));
	ret = fi_ep_bind(ep, &srx->fid, 0);
	FT_CHECK(ft, ret == -FI_EBUSY, "a second context: %zd", ret);
	FT_CALL(ft, fi_close(&srx->fid));
	/* Sources are addresses in the AV that all endpoints use. */
	FT_CALL(ft, fi_av_open(ft->o.domain, &ava, &av, NULL));
	FT_CALL(ft, fi_ep_bind(ep, &av->fid, 0));
	FT_CALL(ft, fi_ep_bind(ep, &ft->o.cq->fid, FI_TRANSMIT | FI_RECV));
	ret = fi_enable(ep);
	FT_CALL(ft, fi_close(&ep->fid));
	FT_CALL(ft, fi_close(&av->fid));
	FT_CHECK(ft, ret == -FI_EINVAL, "another AV: %zd", ret);
	return FT_PASS;
}

/* With selective completion the flags of the receive decide whether it is reported. */
static int selective(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_RECVMSG, .addr = FI_ADDR_UNSPEC,
		.tag = TAG, .len = 8,
	};
	struct ft_op *op[2];
	int i;

	(void)c;
	for (i = 0; i < 2; i++) {
		m.buf = room[i];
		if (ft->rank) {
			if (!i)
				ft_barrier(ft);
			m.addr = g.addr[1][0];
			m.call = FT_SENDMSG;
			m.flags = FI_COMPLETION;
			op[i] = send_from(ft, ft->o.ep, &m);
			if (!op[i])
				return FT_FAIL;
			continue;
		}
		m.flags = i ? FI_COMPLETION : 0;
		op[i] = ft_op_new(ft);
		FT_TRY(post(ft, op[i], &m));
	}
	if (!ft->rank)
		ft_barrier(ft);
	else
		FT_TRY(await(ft, op[0]));
	FT_TRY(await(ft, op[1]));
	FT_CHECK(ft, ft->rank || !op[0]->done, "reported unasked");
	return FT_PASS;
}

/* ---- closing one of them ---- */

/*
 * Waiting messages are freed with the endpoint they were sent to, and only
 * those; waiting receives stay for the other endpoints.
 */
static int close_member(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_SENDDATA, .tag = TAG, .len = 64,
	};
	struct ft_op *op[4];
	int i;

	(void)c;
	if (ft->rank) {
		/* Two messages to the endpoint that will close, large and
		 * small, and one to each other. */
		for (i = 0; i < 4; i++) {
			m.addr = g.addr[i < 2 ? 0 : i - 1][0];
			m.buf = room[i];
			m.len = i ? 64 : 20000;
			m.data = (uint64_t)i;
			op[i] = send_from(ft, ft->o.ep, &m);
			if (!op[i])
				return FT_FAIL;
		}
		ft_barrier(ft);
		for (i = 2; i < 4; i++)
			FT_TRY(await(ft, op[i]));
		ft_barrier(ft);
		m.addr = g.addr[2][0];
		m.tag = TAG + 1;
		op[2] = send_from(ft, ft->o.ep, &m);
		if (!op[2])
			return FT_FAIL;
		/* Sends that were not received end too, with or without an error. */
		for (i = 0; i < 3; i++)
			FT_TRY(await(ft, op[i]));
		return FT_PASS;
	}
	ft_barrier(ft);
	linger(ft);
	m.call = FT_RECV;
	m.addr = FI_ADDR_UNSPEC;
	m.tag = TAG + 1;
	m.buf = room[3];
	op[3] = ft_op_new(ft);
	FT_TRY(post(ft, op[3], &m));
	FT_TRY(close_one(ft, 0));
	m.tag = TAG;
	for (i = 0; i < 2; i++) {
		op[i] = ft_op_new(ft);
		m.buf = room[i];
		FT_TRY(post(ft, op[i], &m));
	}
	for (i = 0; i < 2; i++) {
		FT_TRY(await(ft, op[i]));
		FT_CHECK(ft, !op[i]->err && op[i]->data >= 2, "message %d to a "
			 "closed endpoint was given out", (int)op[i]->data);
		FT_CHECK(ft, queue_of(op[i]) == (int)op[i]->data - 1,
			 "message %d was reported by %d", (int)op[i]->data,
			 queue_of(op[i]));
	}
	ft_barrier(ft);
	FT_TRY(await(ft, op[3]));
	FT_CHECK(ft, !op[3]->err && queue_of(op[3]) == 2, "error %d",
		 op[3]->err);
	return FT_PASS;
}

/* ---- threads ---- */

#define SLOTS	16
#define SLOT_BYTES 65536

static struct slot {
	struct fi_context2 ctx;
	unsigned char *buf;
} slots[SLOTS];

static struct {
	struct ft *ft;
	uint64_t n;			/* messages in all */
	uint64_t got;			/* atomic */
	int bad;			/* atomic */
} work;

static size_t work_len(uint64_t seq)
{
	return seq % 17 == 5 ? 40000 : seq * 37 % 3000;
}

static void post_slot(struct slot *s)
{
	ssize_t ret;

	do {
		ret = fi_trecv(g.srx, s->buf, SLOT_BYTES, NULL, FI_ADDR_UNSPEC,
			       TAG, 0, &s->ctx);
	} while (ret == -FI_EAGAIN);
	if (ret)
		__atomic_store_n(&work.bad, 1, __ATOMIC_RELAXED);
}

/* Reads the queue of one endpoint; receives of any endpoint may be in it. */
static void *serve(void *arg)
{
	int i = (int)(uintptr_t)arg;
	double end = ft_now() + work.ft->run->timeout_s;

	while (__atomic_load_n(&work.got, __ATOMIC_ACQUIRE) < work.n &&
	       !__atomic_load_n(&work.bad, __ATOMIC_RELAXED)) {
		struct fi_cq_tagged_entry e;
		struct slot *s;
		ssize_t n = fi_cq_sread(g.cq[i], &e, 1, NULL, 20);

		if (n == -FI_EAGAIN && ft_now() < end)
			continue;
		if (n != 1) {
			__atomic_store_n(&work.bad, 2, __ATOMIC_RELAXED);
			break;
		}
		s = e.op_context;
		if (e.data % EPS != (uint64_t)i || e.data >= work.n ||
		    e.len != work_len(e.data) ||
		    pattern_check(s->buf, e.len, work.ft->run->seed, 1,
				  e.data) >= 0)
			__atomic_store_n(&work.bad, 3, __ATOMIC_RELAXED);
		__atomic_add_fetch(&work.got, 1, __ATOMIC_RELEASE);
		post_slot(s);
	}
	return NULL;
}

static int send_work(struct ft *ft)
{
	static unsigned char out[32][SLOT_BYTES];
	struct ft_op *op[32] = { NULL };
	uint64_t i;

	for (i = 0; i < work.n + 32; i++) {
		struct ft_op **at = &op[i % 32];
		struct ft_msg m = {
			.tagged = true, .call = FT_SENDDATA, .tag = TAG,
			.addr = g.addr[i % EPS][0], .buf = out[i % 32],
			.len = work_len(i), .data = i,
		};

		if (*at)
			FT_TRY(await(ft, *at));
		*at = NULL;
		if (i >= work.n)
			continue;
		pattern_fill(m.buf, m.len, ft->run->seed, 1, i);
		*at = send_from(ft, ft->o.ep, &m);
		if (!*at)
			return FT_FAIL;
	}
	return FT_PASS;
}

static int threads(struct ft *ft, const struct ft_case *c)
{
	pthread_t t[EPS];
	int i, n;

	memset(&work, 0, sizeof(work));
	work.ft = ft;
	work.n = ft->run->quick ? 1500 : 6000;
	(void)c;
	if (ft->rank) {
		ft_barrier(ft);
		return send_work(ft);
	}
	for (i = 0; i < SLOTS; i++) {
		slots[i].buf = room[i];
		post_slot(&slots[i]);
	}
	for (n = 0; n < EPS; n++)
		if (pthread_create(&t[n], NULL, serve,
				   (void *)(uintptr_t)n))
			break;
	ft_barrier(ft);
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	FT_CHECK(ft, n == EPS, "pthread_create failed");
	FT_CHECK(ft, !work.bad && work.got == work.n, "%llu of %llu messages%s",
		 (unsigned long long)work.got, (unsigned long long)work.n,
		 work.bad == 1 ? "; fi_trecv failed" :
		 work.bad == 3 ? "; a wrong one" : "");
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[32];
	struct ft_case *c = cases;
	int i;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = shared;							\
	c->body = (body_);						\
	c++;								\
} while (0)

	for (i = 0; i < 4; i++) {
		c->a = !(i & 1);
		c->b = (uint64_t)i / 2;
		CASE(each, "%s-%s", i & 1 ? "messages" : "tagged",
		     i / 2 ? "unexpected" : "posted");
	}
	for (i = 0; i < 2; i++) {
		c->a = !i;
		CASE(directed, "source-%s", i ? "messages" : "tagged");
	}
	CASE(apart, "one-without");
	for (i = 0; i < 2; i++) {
		c->b = (uint64_t)i;
		CASE(multi_recv, "multi-recv-%s", i ? "unexpected" : "posted");
	}
	for (i = 0; i < 2; i++) {
		c->a = !i;
		CASE(cancel, "cancel-%s", i ? "messages" : "tagged");
	}
	CASE(refused, "refused");
	c->cfg.selective = true;
	CASE(selective, "selective");
	CASE(close_member, "close-one");
	c->a = 1;
	c->cfg.wait = FI_WAIT_FD;
	CASE(each, "tagged-waiting");
	c->cfg.wait = FI_WAIT_FD;
	c->cfg.threading = FI_THREAD_SAFE;
	CASE(threads, "threads");
	return ft_main(argc, argv, "shared receive contexts", cases,
		       (int)(c - cases));
}
