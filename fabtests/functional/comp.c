/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completions: their formats, which operations have one, and what each promises. */
#include "../common/ft.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAG		0xabcULL
#define MAX_BYTES	(1 << 20)

static unsigned char buf[MAX_BYTES];

static struct ft_op *post(struct ft *ft, uint64_t tag, size_t len,
			  uint64_t flags, bool expect)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .call = FT_RECVMSG, .addr = FI_ADDR_UNSPEC,
		.buf = buf, .len = len, .tag = tag, .flags = flags,
	};

	if (ft_recv(ft, op, &m))
		return NULL;
	op->posted = expect;
	return op;
}

static int send_flags(struct ft *ft, struct ft_op **op, uint64_t tag,
		      size_t len, uint64_t flags, bool expect)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_SENDMSG, .addr = ft->addr[!ft->rank],
		.buf = buf, .len = len, .tag = tag, .data = 0x77,
		.flags = flags,
	};

	*op = ft_op_new(ft);
	FT_CALL(ft, ft_send(ft, *op, &m));
	(*op)->posted = expect;
	return FT_PASS;
}

/* An entry has every field of its format, and nothing else is written. */
static int format(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op;

	if (ft->rank) {
		ft_barrier(ft);
		FT_TRY(send_flags(ft, &op, TAG, 100, FI_REMOTE_CQ_DATA |
				  FI_COMPLETION, true));
		FT_DONE(ft, op);
		return FT_PASS;
	}
	op = post(ft, TAG, 200, FI_COMPLETION, true);
	FT_CHECK(ft, op, "receive not posted");
	ft_barrier(ft);
	FT_DONE(ft, op);
	FT_CHECK(ft, op->src == ft->addr[1], "source %lld",
		 (long long)op->src);
	if (c->cfg.format >= FI_CQ_FORMAT_MSG) {
		FT_CHECK(ft, op->len == 100, "len %zu", op->len);
		FT_CHECK(ft, (op->flags & (FI_TAGGED | FI_RECV |
					   FI_REMOTE_CQ_DATA)) ==
			 (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA),
			 "flags %#llx", (unsigned long long)op->flags);
	}
	if (c->cfg.format >= FI_CQ_FORMAT_DATA)
		FT_CHECK(ft, op->data == 0x77, "data %#llx",
			 (unsigned long long)op->data);
	if (c->cfg.format >= FI_CQ_FORMAT_TAGGED)
		FT_CHECK(ft, op->tag == TAG, "tag %#llx",
			 (unsigned long long)op->tag);
	return FT_PASS;
}

/*
 * With FI_SELECTIVE_COMPLETION only operations that ask for a completion get
 * one.  A completion of another operation is reported as one that was not
 * started.
 */
static int selective(struct ft *ft, const struct ft_case *c)
{
	size_t len = c->a;
	struct ft_op *op;
	int i;

	for (i = 0; i < 4; i++) {
		bool ask = i == 1 || i == 3;
		uint64_t flags = ask ? FI_COMPLETION : 0;

		if (ft->rank) {
			ft_barrier(ft);
			FT_TRY(send_flags(ft, &op, TAG + (uint64_t)i, len,
					  flags, ask));
		} else {
			op = post(ft, TAG + (uint64_t)i, len, flags, ask);
			FT_CHECK(ft, op, "receive not posted");
			ft_barrier(ft);
		}
		if (ask)
			FT_DONE(ft, op);
		/* The buffers are used again at once, so all operations must
		 * have ended. */
		ft_barrier(ft);
		ft_linger(ft, 0.01);
		ft_barrier(ft);
	}
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

/* Then calls without flags never complete, unless op_flags request it. */
static int selective_plain(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[!ft->rank], .buf = buf,
		.len = 64, .tag = TAG,
	};

	(void)c;
	if (ft->rank) {
		ft_barrier(ft);
		FT_CALL(ft, ft_send(ft, op, &m));
	} else {
		FT_CALL(ft, ft_recv(ft, op, &m));
		ft_barrier(ft);
	}
	op->posted = false;
	ft_barrier(ft);
	ft_linger(ft, 0.02);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

static int level(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 0, 8, 4097, 20000, MAX_BYTES };
	struct ft_op *op;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (ft->rank) {
			ft_barrier(ft);
			FT_TRY(send_flags(ft, &op, TAG, sizes[i], c->a |
					  FI_COMPLETION, true));
		} else {
			op = post(ft, TAG, sizes[i], FI_COMPLETION, true);
			FT_CHECK(ft, op, "receive not posted");
			ft_barrier(ft);
		}
		FT_DONE(ft, op);
	}
	return FT_PASS;
}

/*
 * FI_DELIVERY_COMPLETE promises that the destination has processed the message:
 * while the destination makes no progress, there can be no completion.
 */
static int delivery_needs_peer(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op;

	ft_known(ft, "tcp;ofi_rxm", "FI_DELIVERY_COMPLETE is ignored");
	/* Open the connection first. */
	if (ft->rank) {
		ft_barrier(ft);
		FT_TRY(send_flags(ft, &op, TAG, 8, FI_COMPLETION, true));
	} else {
		op = post(ft, TAG, 8, FI_COMPLETION, true);
		FT_CHECK(ft, op, "receive not posted");
		ft_barrier(ft);
	}
	FT_DONE(ft, op);
	if (!ft->rank) {
		op = post(ft, TAG + 1, c->a, FI_COMPLETION, true);
		FT_CHECK(ft, op, "receive not posted");
		ft_barrier(ft);
		usleep(300 * 1000);		/* no progress */
		FT_DONE(ft, op);
		return FT_PASS;
	}
	ft_barrier(ft);
	FT_TRY(send_flags(ft, &op, TAG + 1, c->a, FI_DELIVERY_COMPLETE |
			  FI_COMPLETION, true));
	ft_linger(ft, 0.1);
	if (op->done)
		return ft_fail(ft, "complete while the destination slept");
	FT_DONE(ft, op);
	return FT_PASS;
}

/*
 * Completions are not read while sends are accepted.  With FI_RM_ENABLED none
 * of them may be lost.
 */
static int burst(struct ft *ft, const struct ft_case *c)
{
	enum { N = 5000 };
	static struct ft_op *ops[N];
	int i;

	(void)c;
	if (!ft->rank) {
		for (i = 0; i < N; i++) {
			struct ft_msg m = {
				.tagged = true, .addr = FI_ADDR_UNSPEC,
				.buf = buf, .len = 8, .tag = TAG,
			};

			ops[i] = ft_op_new(ft);
			FT_CALL(ft, ft_recv(ft, ops[i], &m));
		}
		ft_barrier(ft);
		for (i = 0; i < N; i++)
			FT_DONE(ft, ops[i]);
		return FT_PASS;
	}
	ft_barrier(ft);
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[0], .buf = buf,
			.len = 8, .tag = TAG,
		};
		ssize_t ret;

		ops[i] = ft_op_new(ft);
		ops[i]->posted = true;
		ret = ft_try_send(ft->o.ep, ops[i], &m);
		if (ret == -FI_EAGAIN) {
			FT_CALL(ft, ft_send(ft, ops[i], &m));
		} else {
			FT_CALL(ft, ret);
		}
	}
	for (i = 0; i < N; i++)
		FT_DONE(ft, ops[i]);
	return FT_PASS;
}

/* Reading 0 entries makes progress (FI_PROGRESS_MANUAL) and must not remove an
 * entry. */
static int read_nothing(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op;
	ssize_t ret;
	int i;

	(void)c;
	if (ft->rank) {
		ft_barrier(ft);
		FT_TRY(send_flags(ft, &op, TAG, 8, FI_COMPLETION, true));
		FT_DONE(ft, op);
		return FT_PASS;
	}
	op = post(ft, TAG, 8, FI_COMPLETION, true);
	FT_CHECK(ft, op, "receive not posted");
	oob_barrier(&ft->oob);
	for (i = 0; i < 2000; i++) {
		ret = fi_cq_read(ft->o.cq, NULL, 0);
		FT_CHECK(ft, ret == 0 || ret == -FI_EAGAIN, "fi_cq_read(cq, "
			 "NULL, 0) returned %zd", ret);
	}
	FT_DONE(ft, op);
	return FT_PASS;
}

/* fi_cq_readerr while there is no error. */
static int no_error(struct ft *ft, const struct ft_case *c)
{
	struct fi_cq_err_entry ee = { 0 };
	ssize_t ret = fi_cq_readerr(ft->o.cq, &ee, 0);

	(void)c;
	FT_CHECK(ft, ret == -FI_EAGAIN, "fi_cq_readerr on an empty queue "
		 "returned %zd", ret);
	FT_CHECK(ft, fi_cq_strerror(ft->o.cq, 5, NULL, NULL, 0) != NULL,
		 "fi_cq_strerror gave NULL");
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "format-context", .fn = format,
		  .cfg.format = FI_CQ_FORMAT_CONTEXT },
		{ .name = "format-msg", .fn = format,
		  .cfg.format = FI_CQ_FORMAT_MSG },
		{ .name = "format-data", .fn = format,
		  .cfg.format = FI_CQ_FORMAT_DATA },
		{ .name = "format-tagged", .fn = format,
		  .cfg.format = FI_CQ_FORMAT_TAGGED },
		{ .name = "selective-8", .fn = selective, .a = 8,
		  .cfg.selective = true },
		{ .name = "selective-5000", .fn = selective, .a = 5000,
		  .cfg.selective = true },
		{ .name = "selective-100000", .fn = selective, .a = 100000,
		  .cfg.selective = true },
		{ .name = "selective-plain-calls", .fn = selective_plain,
		  .cfg.selective = true },
		{ .name = "inject-complete", .fn = level,
		  .a = FI_INJECT_COMPLETE },
		{ .name = "transmit-complete", .fn = level,
		  .a = FI_TRANSMIT_COMPLETE },
		{ .name = "delivery-complete", .fn = level,
		  .a = FI_DELIVERY_COMPLETE },
		{ .name = "default-inject-complete", .fn = level,
		  .cfg.tx_op_flags = FI_INJECT_COMPLETE },
		{ .name = "default-transmit-complete", .fn = level,
		  .cfg.tx_op_flags = FI_TRANSMIT_COMPLETE },
		{ .name = "default-delivery-complete", .fn = level,
		  .cfg.tx_op_flags = FI_DELIVERY_COMPLETE },
		{ .name = "delivery-needs-peer-8", .fn = delivery_needs_peer,
		  .a = 8 },
		{ .name = "delivery-needs-peer-10000",
		  .fn = delivery_needs_peer, .a = 10000 },
		{ .name = "burst-of-unread-completions", .fn = burst },
		{ .name = "read-nothing", .fn = read_nothing },
		{ .name = "no-error", .fn = no_error },
	};

	return ft_main(argc, argv, "completions", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
