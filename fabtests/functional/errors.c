/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations that must end with an error: cancelled and truncated receives. */
#include "../common/ft.h"

#include <stdio.h>
#include <string.h>

#define MAX_BYTES	(1 << 20)
#define CANARY		0x5a

static unsigned char buf[MAX_BYTES + 4096];

static struct ft_op *recv_posted(struct ft *ft, bool tagged, fi_addr_t src,
				 uint64_t tag, void *at, size_t len)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = tagged, .addr = src, .buf = at, .len = len,
		.tag = tag,
	};

	return ft_recv(ft, op, &m) ? NULL : op;
}

/* Cancel the middle one of three: only it ends, the others still work. */
static int cancel(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[3];
	bool tagged = c->a;
	int i;

	if (!tagged && c->b && (ft_is_bare(ft, "shm") ||
				ft_is_bare(ft, "tcp;ofi_rxm")))
		return ft_skip(ft, "bare %s dies with SIGSEGV in fi_cancel",
			       ft->opts.prov);
	if (ft->rank) {
		ft_barrier(ft);
		for (i = 0; i < 3; i += 2) {
			struct ft_msg m = {
				.tagged = tagged, .addr = ft->addr[0],
				.buf = buf, .len = 100, .tag = (uint64_t)i,
			};

			op[i] = ft_op_new(ft);
			pattern_fill(buf, 100, ft->run->seed, 1, (uint64_t)i);
			FT_CALL(ft, ft_send(ft, op[i], &m));
			FT_DONE(ft, op[i]);
		}
		return FT_PASS;
	}
	for (i = 0; i < 3; i++) {
		op[i] = recv_posted(ft, tagged, c->b ? ft->addr[1] :
				    FI_ADDR_UNSPEC, (uint64_t)i,
				    buf + i * 1000, 1000);
		FT_CHECK(ft, op[i], "receive not posted");
	}
	FT_CALL(ft, fi_cancel(&ft->o.ep->fid, op[1]));
	FT_CHECK(ft, !ft_wait(ft, op[1]), "no completion of the cancelled "
		 "receive");
	FT_CHECK(ft, op[1]->err == FI_ECANCELED, "error %d, not "
		 "FI_ECANCELED", op[1]->err);
	FT_CHECK(ft, op[1]->flags & FI_RECV, "flags %#llx without FI_RECV",
		 (unsigned long long)op[1]->flags);
	ft_barrier(ft);
	for (i = 0; i < 3; i += 2) {
		FT_DONE(ft, op[i]);
		FT_CHECK(ft, op[i]->len == 100 &&
			 pattern_check(buf + i * 1000, 100, ft->run->seed, 1,
				       (uint64_t)i) < 0,
			 "receive %d got something else", i);
	}
	return FT_PASS;
}

/* Cancelling a context that is not outstanding must not affect other operations. */
static int cancel_unknown(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op, *done;
	int dummy;

	(void)c;
	if (ft->rank)
		return FT_PASS;
	op = recv_posted(ft, true, FI_ADDR_UNSPEC, 9, buf, 1000);
	FT_CHECK(ft, op, "receive not posted");
	/* The return value is not defined for these; there must be no effect. */
	fi_cancel(&ft->o.ep->fid, &dummy);
	fi_cancel(&ft->o.ep->fid, NULL);
	ft_linger(ft, 0.01);
	FT_CHECK(ft, !op->done, "another receive was cancelled");
	FT_CALL(ft, fi_cancel(&ft->o.ep->fid, op));
	FT_CHECK(ft, !ft_wait(ft, op), "no completion of the cancelled "
		 "receive");
	done = op;
	fi_cancel(&ft->o.ep->fid, done);
	ft_linger(ft, 0.01);
	FT_CHECK(ft, done->done == 1, "a second completion");
	return FT_PASS;
}

/* Many receives, cancelled in another order than posted. */
static int cancel_many(struct ft *ft, const struct ft_case *c)
{
	enum { N = 200 };
	struct ft_op *op[N];
	int i;

	(void)c;
	if (ft->rank)
		return FT_PASS;
	for (i = 0; i < N; i++) {
		op[i] = recv_posted(ft, true, i % 2 ? FI_ADDR_UNSPEC :
				    ft->addr[1], (uint64_t)(i % 10), buf, 64);
		FT_CHECK(ft, op[i], "receive %d not posted", i);
	}
	for (i = 0; i < N; i++)
		FT_CALL(ft, fi_cancel(&ft->o.ep->fid, op[(i * 7) % N]));
	for (i = 0; i < N; i++) {
		FT_CHECK(ft, !ft_wait(ft, op[i]), "no completion of %d", i);
		FT_CHECK(ft, op[i]->err == FI_ECANCELED, "error %d",
			 op[i]->err);
	}
	return FT_PASS;
}

/* The message after a truncated one must arrive whole. */
static int follow_up(struct ft *ft, bool tagged)
{
	struct ft_op *op;

	if (ft->rank) {
		struct ft_msg m = {
			.tagged = tagged, .addr = ft->addr[0], .buf = buf,
			.len = 5000, .tag = 78,
		};

		pattern_fill(buf, 5000, ft->run->seed, 1, 78);
		op = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, op, &m));
		FT_DONE(ft, op);
		return FT_PASS;
	}
	op = recv_posted(ft, tagged, FI_ADDR_UNSPEC, 78, buf, 8000);
	FT_CHECK(ft, op, "receive not posted");
	FT_DONE(ft, op);
	FT_CHECK(ft, op->len == 5000 && pattern_check(buf, 5000, ft->run->seed,
						      1, 78) < 0,
		 "the message after the truncated one is wrong (len %zu)", op->len);
	return FT_PASS;
}

/* c->a: kind, c->b: message size, c->c: late */
static int truncate_recv(struct ft *ft, const struct ft_case *c)
{
	size_t room = c->b / 2 + 3, size = c->b;
	bool tagged = c->a, late = c->c;
	struct ft_op *op;
	long long at;

	if (ft_is_bare(ft, "shm") && (size > 4096 || (late && size > 192)))
		return ft_skip(ft, "bare shm %s", size > 4096 ?
			       "loops for ever inside progress" :
			       "dies with SIGSEGV");
	if (ft_is_bare(ft, "tcp;ofi_rxm") && size > 16384 && size <= 131072)
		return ft_skip(ft, "bare tcp;ofi_rxm delivers the rest as new "
			       "messages and dies at close");
	if (ft->rank) {
		struct ft_msg m = {
			.tagged = tagged, .addr = ft->addr[0], .buf = buf,
			.len = size, .tag = 77,
		};

		pattern_fill(buf, size, ft->run->seed, 1, 77);
		if (!late)
			ft_barrier(ft);
		op = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, op, &m));
		if (late)
			ft_barrier(ft);
		/* The sender did nothing wrong; it may or may not get an error. */
		FT_CHECK(ft, !ft_wait(ft, op), "no completion of the send");
		return follow_up(ft, tagged);
	}
	if (late) {
		ft_barrier(ft);
		ft_linger(ft, 0.01);
	}
	memset(buf, CANARY, room + 4096);
	op = recv_posted(ft, tagged, FI_ADDR_UNSPEC, 77, buf, room);
	FT_CHECK(ft, op, "receive not posted");
	if (!late)
		ft_barrier(ft);
	FT_CHECK(ft, !ft_wait(ft, op), "no completion of the receive");
	FT_CHECK(ft, op->err == FI_ETRUNC, "error %d, not FI_ETRUNC", op->err);
	at = pattern_is_filled(buf + room, 4096, CANARY);
	FT_CHECK(ft, at < 0, "byte %lld after the buffer was written", at);
	FT_CHECK(ft, op->flags & FI_RECV, "flags %#llx",
		 (unsigned long long)op->flags);
	FT_TRY(follow_up(ft, tagged));
	ft_known(ft, NULL, "wrong len and olen in the error entry");
	FT_CHECK(ft, op->ee.len == room && op->ee.olen == size - room,
		 "len %zu and olen %zu, not %zu and %zu", op->ee.len,
		 op->ee.olen, room, size - room);
	FT_CHECK(ft, !tagged || op->ee.tag == 77, "tag %llu",
		 (unsigned long long)op->ee.tag);
	return FT_PASS;
}

/* A receive of 0 bytes truncates every message. */
static int truncate_to_nothing(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op;

	(void)c;
	if (ft_is_bare(ft, "tcp"))
		return ft_skip(ft, "bare tcp loses such a receive at times");
	if (ft->rank) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[0], .buf = buf,
			.len = 8, .tag = 77,
		};

		ft_barrier(ft);
		op = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, op, &m));
		FT_DONE(ft, op);
		return follow_up(ft, true);
	}
	op = recv_posted(ft, true, FI_ADDR_UNSPEC, 77, NULL, 0);
	FT_CHECK(ft, op, "receive not posted");
	ft_barrier(ft);
	FT_CHECK(ft, !ft_wait(ft, op), "no completion of the receive");
	FT_CHECK(ft, op->err == FI_ETRUNC, "error %d, not FI_ETRUNC", op->err);
	FT_TRY(follow_up(ft, true));
	ft_known(ft, NULL, "wrong olen in the error entry");
	FT_CHECK(ft, op->ee.olen == 8, "olen %zu", op->ee.olen);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 100, 4000, 16000, 50000, 300000,
					MAX_BYTES };
	static struct ft_case cases[48];
	struct ft_case *c = cases;
	int kind, i, late;

	for (kind = 0; kind < 2; kind++) {
		for (i = 0; i < 2; i++, c++) {
			snprintf(c->name, sizeof(c->name), "%scancel-%s",
				 kind ? "t" : "", i ? "directed" :
				 "any-source");
			c->fn = cancel;
			c->a = (uint64_t)kind;
			c->b = (uint64_t)i;
		}
	}
	strcpy(c->name, "cancel-unknown-context");
	(c++)->fn = cancel_unknown;
	strcpy(c->name, "cancel-many");
	(c++)->fn = cancel_many;
	strcpy(c->name, "truncate-to-nothing");
	(c++)->fn = truncate_to_nothing;
	for (kind = 0; kind < 2; kind++)
	for (late = 0; late < 2; late++)
	for (i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++, c++) {
		snprintf(c->name, sizeof(c->name), "%struncate-%zu-%s",
			 kind ? "t" : "", sizes[i],
			 late ? "unexpected" : "expected");
		c->fn = truncate_recv;
		c->a = (uint64_t)kind;
		c->b = sizes[i];
		c->c = (uint64_t)late;
	}
	return ft_main(argc, argv, "cancelled and truncated receives", cases,
		       (int)(c - cases));
}
