/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_LNX_USE_SRQ=0 (native): receives are posted to the core providers, so they
 * need a source if there are several rails.  All cases skip without that
 * variable.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	20000

static unsigned char in[3][BYTES], out[BYTES];

static bool several_rails(const struct ft *ft)
{
	return strchr(ft->o.info->domain_attr->name, '+') != NULL;
}

static int only_native(struct ft *ft, const struct ft_case *c)
{
	const char *srq = getenv("FI_LNX_USE_SRQ");
	uint64_t i;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "of lnx only");
	if (!srq || strcmp(srq, "0"))
		return ft_skip(ft, "FI_LNX_USE_SRQ is not 0");
	if (ft->rank >= (int)c->b) {
		/* A rank that takes no part only comes to the barriers. */
		for (i = 0; i < c->c; i++)
			ft_barrier(ft);
		return FT_PASS;
	}
	return c->body(ft, c);
}

/* Refused over several rails, in every form of call; otherwise it gets its message. */
static int any_source(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.addr = FI_ADDR_UNSPEC, .buf = in[0], .len = BYTES, .tag = 5,
	};
	ssize_t should = several_rails(ft) ? -FI_EOPNOTSUPP : 0, ret;
	struct ft_op *rx[2 * FT_RECV_CALLS], *op;
	int i, n = 2 * FT_RECV_CALLS;

	(void)c;
	for (i = 0; i < n; i++) {
		rx[i] = ft_op_new(ft);
		m.tagged = i & 1;
		m.call = i / 2;
		m.len = 8;
		ret = ft_try_recv(ft->o.ep, rx[i], &m);
		FT_CHECK(ft, ret == should, "%s%s from any source: %zd",
			 m.tagged ? "t" : "", ft_recv_names[m.call], ret);
		rx[i]->posted = !ret;
	}
	ft_barrier(ft);
	for (i = 0; !should && i < n; i++) {
		m = (struct ft_msg) {
			.tagged = i & 1, .addr = ft->addr[!ft->rank],
			.buf = out, .len = 8, .tag = 5,
		};
		op = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, op, &m));
		FT_DONE(ft, op);
	}
	for (i = 0; !should && i < n; i++) {
		FT_DONE(ft, rx[i]);
		FT_CHECK(ft, rx[i]->src == ft->addr[!ft->rank], "source %llx",
			 (unsigned long long)rx[i]->src);
	}
	return FT_PASS;
}

/* A receive with a source that is in no AV. */
static int bad_source(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .addr = 4711, .buf = in[0], .len = 8,
	};
	struct ft_op *op = ft_op_new(ft);
	ssize_t ret = ft_try_recv(ft->o.ep, op, &m);

	(void)c;
	FT_CHECK(ft, ret == -FI_EINVAL, "receive from no address: %zd", ret);
	ret = ft_try_send(ft->o.ep, op, &m);
	FT_CHECK(ft, ret == -FI_EINVAL, "send to no address: %zd", ret);
	return FT_PASS;
}

/* Three ranks: each receive gets a message of its own source, whichever comes first. */
static int sources(struct ft *ft, const struct ft_case *c)
{
	static const size_t size[] = { 8, 4096, BYTES };
	struct ft_op *rx[3], *tx;
	unsigned i;
	int r;

	(void)c;
	for (i = 0; i < 3; i++) {
		struct ft_msg m = { .tagged = true, .len = size[i], .tag = 9 };

		for (r = 0; r < ft->n; r++) {
			m.addr = ft->addr[r];
			m.buf = in[r];
			rx[r] = ft_op_new(ft);
			if (r != ft->rank)
				FT_CALL(ft, ft_recv(ft, rx[r], &m));
		}
		pattern_fill(out, size[i], ft->run->seed, (unsigned)ft->rank,
			     i);
		m.buf = out;
		for (r = ft->n - 1; r >= 0; r--) {
			if (r == ft->rank)
				continue;
			m.addr = ft->addr[r];
			tx = ft_op_new(ft);
			FT_CALL(ft, ft_send(ft, tx, &m));
			FT_DONE(ft, tx);
		}
		for (r = 0; r < ft->n; r++) {
			if (r == ft->rank)
				continue;
			FT_DONE(ft, rx[r]);
			FT_CHECK(ft, rx[r]->src == ft->addr[r], "source %llx",
				 (unsigned long long)rx[r]->src);
			FT_CHECK(ft, pattern_check(in[r], size[i],
						   ft->run->seed, (unsigned)r,
						   i) < 0,
				 "%zu bytes are not those of rank %d", size[i],
				 r);
		}
		ft_barrier(ft);
	}
	return FT_PASS;
}

/* To and from ourselves. */
static int self(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[ft->rank], .buf = in[0],
		.len = 100, .tag = 2,
	};
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);

	(void)c;
	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.buf = out;
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	FT_CHECK(ft, rx->src == ft->addr[ft->rank], "source %llx",
		 (unsigned long long)rx->src);
	return FT_PASS;
}

/*
 * The core cancels a receive, and the next one gets the message.  Where the
 * core cannot cancel (untagged, with a source), the cancel is refused and the
 * first receive gets it.
 */
static int cancel(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = c->a, .addr = ft->addr[!ft->rank], .buf = in[0],
		.len = 100, .tag = 3,
	};
	struct ft_op *rx[2], *tx;
	ssize_t ret;
	int i;

	for (i = 0; i < 2; i++) {
		rx[i] = ft_op_new(ft);
		m.buf = in[i];
		FT_CALL(ft, ft_recv(ft, rx[i], &m));
	}
	ret = fi_cancel(&ft->o.ep->fid, rx[0]);
	FT_CHECK(ft, !ret || (ret == -FI_EOPNOTSUPP && !c->a), "fi_cancel: %zd",
		 ret);
	if (!ret)
		FT_CHECK(ft, !ft_wait(ft, rx[0]) &&
			 rx[0]->err == FI_ECANCELED,
			 "cancelled receive: error %d", rx[0]->err);
	ft_barrier(ft);
	m.buf = out;
	/* As many messages as the peer sends: both know whether the cancel was
	 * refused. */
	for (i = ret ? 0 : 1; i < 2; i++) {
		tx = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, tx, &m));
		FT_DONE(ft, tx);
		FT_DONE(ft, rx[i]);
	}
	return FT_PASS;
}

/* The core's own peek: it finds nothing, then a message, which is then received. */
static int peek(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[!ft->rank], .buf = in[0],
		.len = 100, .tag = 4, .call = FT_RECVMSG, .flags = FI_PEEK,
	};
	struct ft_op *op, *tx = ft_op_new(ft);
	double end = ft_now() + ft->run->timeout_s;

	(void)c;
	op = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_CHECK(ft, !ft_wait(ft, op) && op->err == FI_ENOMSG,
		 "peek at nothing: error %d", op->err);
	ft_barrier(ft);
	m.call = FT_SEND;
	m.flags = 0;
	m.buf = out;
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	m.call = FT_RECVMSG;
	m.flags = FI_PEEK;
	do {
		op = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, op, &m));
		FT_CHECK(ft, !ft_wait(ft, op), "peek does not end");
		FT_CHECK(ft, !op->err || (op->err == FI_ENOMSG &&
					  ft_now() < end),
			 "peek: error %d", op->err);
	} while (op->err);
	FT_CHECK(ft, op->len == 100, "peek: %zu bytes", op->len);
	m.flags = 0;
	m.buf = in[0];
	op = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_DONE(ft, op);
	ft_barrier(ft);
	return FT_PASS;
}

/* The endpoint offers what the cores have. */
static int offer(struct ft *ft, const struct ft_case *c)
{
	struct fi_info *info;

	(void)c;
	FT_CALL(ft, ft_getinfo(ft, &ft->cfg, &info));
	FT_CHECK(ft, !(info->caps & FI_ATOMIC), "atomics are offered");
	fi_freeinfo(info);
	return FT_PASS;
}

/* Needs this many ranks; the other ranks pass this many barriers. */
#define NATIVE(text, function, ranks_, barriers) .name = text, .fn = only_native, \
	.body = function, .ranks = 3, .b = ranks_, .c = barriers

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ NATIVE("any-source", any_source, 2, 1) },
		{ NATIVE("bad-source", bad_source, 3, 0) },
		{ NATIVE("three-sources", sources, 3, 0) },
		{ NATIVE("self", self, 3, 0) },
		{ NATIVE("cancel-tagged", cancel, 2, 1), .a = 1 },
		{ NATIVE("cancel-untagged", cancel, 2, 1) },
		{ NATIVE("peek", peek, 2, 2) },
		{ NATIVE("offer", offer, 3, 0) },
	};

	return ft_main(argc, argv, "receives in the core providers' queues",
		       cases, sizeof(cases) / sizeof(cases[0]));
}
