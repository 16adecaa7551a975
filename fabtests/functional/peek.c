/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD on tagged messages, as MPI_Probe and
 * MPI_Mprobe use them.  Rank 1 sends, rank 0 peeks.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <string.h>

#define MAX_BYTES	(1 << 20)
#define TAG		0x55ULL

static unsigned char buf[2][MAX_BYTES];

static int sender(struct ft *ft, int n, size_t len, const uint64_t *tags)
{
	struct ft_op *ops[4];
	int i;

	for (i = 0; i < n; i++) {
		struct ft_msg m = {
			.tagged = true, .call = FT_SENDDATA,
			.addr = ft->addr[0], .buf = buf[i], .len = len,
			.tag = tags[i], .data = 0x1000u + (unsigned)i,
		};

		pattern_fill(buf[i], len, ft->run->seed, 1, (uint64_t)i);
		ops[i] = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, ops[i], &m));
	}
	for (i = 0; i < n; i++)
		FT_DONE(ft, ops[i]);
	return FT_PASS;
}

static struct ft_msg peek_msg(fi_addr_t src, uint64_t tag, uint64_t ignore,
			      uint64_t flags)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_RECVMSG, .addr = src, .tag = tag,
		.ignore = ignore, .flags = flags,
	};

	return m;
}

/* The context given with FI_CLAIM belongs to the provider until it is used. */
static void reuse(struct ft_op *op)
{
	op->done = 0;
	op->err = 0;
	op->posted = false;
}

static int peek_once(struct ft *ft, struct ft_op *op, const struct ft_msg *m,
		     bool *found)
{
	FT_CALL(ft, ft_recv(ft, op, m));
	FT_CHECK(ft, !ft_wait(ft, op), "no completion of a peek");
	FT_CHECK(ft, !op->err || op->err == FI_ENOMSG, "peek: error %s, not "
		 "FI_ENOMSG", fi_strerror(op->err));
	*found = !op->err;
	return FT_PASS;
}

/* Peek until the message is found. */
static int peek_until(struct ft *ft, struct ft_op *op, const struct ft_msg *m)
{
	double end = ft_now() + ft->run->timeout_s;
	bool found;

	for (;;) {
		reuse(op);
		FT_TRY(peek_once(ft, op, m, &found));
		if (found)
			return FT_PASS;
		FT_CHECK(ft, ft_now() < end, "message never seen by FI_PEEK");
	}
}

static int check_seen(struct ft *ft, struct ft_op *op, size_t len, uint64_t tag,
		      uint64_t data)
{
	FT_CHECK(ft, op->len == len, "length %zu, not %zu", op->len, len);
	FT_CHECK(ft, op->tag == tag, "tag %#llx, not %#llx",
		 (unsigned long long)op->tag, (unsigned long long)tag);
	FT_CHECK(ft, op->flags & FI_REMOTE_CQ_DATA, "flags %#llx without "
		 "FI_REMOTE_CQ_DATA", (unsigned long long)op->flags);
	FT_CHECK(ft, op->data == data, "cq data %#llx, not %#llx",
		 (unsigned long long)op->data, (unsigned long long)data);
	return FT_PASS;
}

/* Called last: with most providers a peek does not report the source. */
static int check_source(struct ft *ft, struct ft_op *op)
{
	ft_known(ft, NULL, "a peek does not report the source");
	FT_CHECK(ft, op->src == ft->addr[1], "source %lld, not rank 1",
		 (long long)op->src);
	return FT_PASS;
}

static int check_content(struct ft *ft, size_t len, uint64_t seq)
{
	long long at = pattern_check(buf[0], len, ft->run->seed, 1, seq);

	FT_CHECK(ft, at < 0, "wrong byte at %lld", at);
	return FT_PASS;
}

static int recv_rest(struct ft *ft, size_t len, uint64_t tag, uint64_t seq)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .buf = buf[0],
		.len = MAX_BYTES, .tag = tag,
	};

	memset(buf[0], 0, len);
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_DONE(ft, op);
	FT_TRY(check_seen(ft, op, len, tag, 0x1000u + seq));
	return check_content(ft, len, seq);
}

static int miss(struct ft *ft, const struct ft_case *c)
{
	struct ft_msg m = peek_msg(FI_ADDR_UNSPEC, TAG, 0, FI_PEEK | c->a);
	struct ft_op *op;
	bool found;
	int i;

	if (ft->rank)
		return FT_PASS;
	for (i = 0; i < 4; i++) {
		if (i & 1)
			m.addr = ft->addr[1];
		m.ignore = i & 2 ? ~0ULL : 0;
		op = ft_op_new(ft);
		FT_TRY(peek_once(ft, op, &m, &found));
		FT_CHECK(ft, !found, "a message was found although none was sent");
		FT_CHECK(ft, op->err == FI_ENOMSG, "error %d", op->err);
	}
	return FT_PASS;
}

/* Peek twice (the second finds the same), then receive it. */
static int hit(struct ft *ft, const struct ft_case *c)
{
	static const uint64_t tags[] = { TAG };
	struct ft_op *op;
	struct ft_msg m;
	int i;

	if (ft->rank)
		return sender(ft, 1, c->a, tags);
	m = peek_msg(c->b ? ft->addr[1] : FI_ADDR_UNSPEC, c->b ? 0 : TAG,
		     c->b ? ~0ULL : 0, FI_PEEK);
	for (i = 0; i < 2; i++) {
		op = ft_op_new(ft);
		FT_TRY(peek_until(ft, op, &m));
		FT_TRY(check_seen(ft, op, c->a, TAG, 0x1000));
	}
	FT_TRY(recv_rest(ft, c->a, TAG, 0));
	return check_source(ft, op);
}

/* A message with another tag or from another source must not be found. */
static int not_mine(struct ft *ft, const struct ft_case *c)
{
	static const uint64_t tags[] = { TAG };
	struct ft_op *op;
	struct ft_msg m;
	bool found;

	(void)c;
	if (ft->rank)
		return sender(ft, 1, 100, tags);
	m = peek_msg(FI_ADDR_UNSPEC, TAG, 0, FI_PEEK);
	FT_TRY(peek_until(ft, ft_op_new(ft), &m));
	m = peek_msg(FI_ADDR_UNSPEC, TAG + 1, 0, FI_PEEK);
	op = ft_op_new(ft);
	FT_TRY(peek_once(ft, op, &m, &found));
	FT_CHECK(ft, !found, "peek for another tag found it");
	m = peek_msg(ft->addr[0], TAG, 0, FI_PEEK);
	op = ft_op_new(ft);
	FT_TRY(peek_once(ft, op, &m, &found));
	FT_CHECK(ft, !found, "peek for another source found it");
	return recv_rest(ft, 100, TAG, 0);
}

/*
 * Claim the first of two messages.  A plain receive then gets the second, and
 * the claimed one is received with the same context.
 */
static int claim(struct ft *ft, const struct ft_case *c)
{
	static const uint64_t tags[] = { TAG, TAG };
	struct ft_op *op, peeked;
	struct ft_msg m;

	if (ft->rank)
		return sender(ft, 2, c->a, tags);
	m = peek_msg(FI_ADDR_UNSPEC, TAG, 0, FI_PEEK | FI_CLAIM);
	op = ft_op_new(ft);
	FT_TRY(peek_until(ft, op, &m));
	FT_TRY(check_seen(ft, op, c->a, TAG, 0x1000));
	peeked = *op;
	FT_TRY(recv_rest(ft, c->a, TAG, 1));
	m.flags = FI_CLAIM;
	m.buf = buf[0];
	m.len = c->a;
	memset(buf[0], 0, c->a);
	reuse(op);
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_DONE(ft, op);
	FT_TRY(check_seen(ft, op, c->a, TAG, 0x1000));
	FT_TRY(check_content(ft, c->a, 0));
	FT_CHECK(ft, op->src == ft->addr[1], "claimed: source %lld",
		 (long long)op->src);
	return check_source(ft, &peeked);
}

/* Discard the first, by peek or by claim; the second is still there. */
static int discard(struct ft *ft, const struct ft_case *c)
{
	static const uint64_t tags[] = { TAG, TAG };
	struct ft_op *op = NULL;
	struct ft_msg m;

	if (ft_is_bare(ft, "shm"))
		return ft_skip(ft, "bare shm writes to a wrong place in the "
			       "peer's memory");
	if (ft_is_bare(ft, "tcp;ofi_rxm") && c->a > 16384)
		return ft_skip(ft, "bare tcp;ofi_rxm never completes the send "
			       "of a discarded rendezvous");
	if (ft->rank)
		return sender(ft, 2, c->a, tags);
	op = ft_op_new(ft);
	if (c->b) {
		m = peek_msg(FI_ADDR_UNSPEC, TAG, 0, FI_PEEK | FI_CLAIM);
		FT_TRY(peek_until(ft, op, &m));
		m.flags = FI_CLAIM | FI_DISCARD;
		reuse(op);
		FT_CALL(ft, ft_recv(ft, op, &m));
		FT_DONE(ft, op);
	} else {
		m = peek_msg(FI_ADDR_UNSPEC, TAG, 0, FI_PEEK | FI_DISCARD);
		FT_TRY(peek_until(ft, op, &m));
	}
	return recv_rest(ft, c->a, TAG, 1);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 0, 8, 4096, 16384, 65536, MAX_BYTES };
	static struct ft_case cases[48];
	struct ft_case *c = cases;
	size_t i;
	int b;

	strcpy(c->name, "peek-miss");
	(c++)->fn = miss;
	strcpy(c->name, "peek-claim-miss");
	c->a = FI_CLAIM;
	(c++)->fn = miss;
	strcpy(c->name, "peek-other-tag-or-source");
	(c++)->fn = not_mine;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (b = 0; b < 2; b++, c++) {
			snprintf(c->name, sizeof(c->name), "peek-hit-%s-%zu",
				 b ? "directed-any-tag" : "any-source",
				 sizes[i]);
			c->fn = hit;
			c->a = sizes[i];
			c->b = (uint64_t)b;
		}
		snprintf(c->name, sizeof(c->name), "claim-%zu", sizes[i]);
		c->fn = claim;
		(c++)->a = sizes[i];
		for (b = 0; b < 2; b++, c++) {
			snprintf(c->name, sizeof(c->name), "%s-discard-%zu",
				 b ? "claim" : "peek", sizes[i]);
			c->fn = discard;
			c->a = sizes[i];
			c->b = (uint64_t)b;
		}
	}
	return ft_main(argc, argv, "FI_PEEK, FI_CLAIM, FI_DISCARD", cases,
		       (int)(c - cases));
}
