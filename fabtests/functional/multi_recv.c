/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_MULTI_RECV: one posted buffer receives many untagged messages.  Rank 1
 * sends; rank 0 receives and checks where each message is and when the buffer
 * is released.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_BYTES	65536
#define NBUFS		4
#define MAX_MSGS	8192

static unsigned char bufs[NBUFS][BUF_BYTES];

/* What the completion hook of the buffers has seen. */
struct state {
	int msgs;
	int released;			/* FI_MULTI_RECV completions */
	struct {
		unsigned char *buf;
		size_t len;
		uint64_t seq;		/* sent as remote cq data */
	} msg[MAX_MSGS];
	bool gone[NBUFS];
	char bad[128];
} st;

static size_t len_of(uint64_t i, uint64_t mode)
{
	switch (mode) {
	case 0: return 64;
	case 1: return (i * 37) % 300;		/* zero-length too */
	default: return i % 7 == 3 ? 20000 : 500;
	}
}

static void hook(struct ft *ft, struct ft_op *op)
{
	int slot = (int)(uintptr_t)op->arg;
	unsigned char *at = op->buf;

	(void)ft;
	if (op->err) {
		snprintf(st.bad, sizeof(st.bad), "error completion: %s",
			 fi_strerror(op->err));
		return;
	}
	if (st.gone[slot])
		snprintf(st.bad, sizeof(st.bad), "message %d: a completion for "
			 "buffer %d after it was released", st.msgs, slot);
	if (op->flags & FI_MULTI_RECV) {
		st.gone[slot] = true;
		st.released++;
	}
	/*
	 * A provider may release the buffer with a completion of its own,
	 * without a message.
	 */
	if (!(op->flags & FI_RECV) || (!op->len && !op->buf))
		return;
	if (at < bufs[slot] || at + op->len > bufs[slot] + BUF_BYTES)
		snprintf(st.bad, sizeof(st.bad), "message %d: buf outside of "
			 "buffer %d", st.msgs, slot);
	if (st.msgs == MAX_MSGS)
		return;
	st.msg[st.msgs].buf = at;
	st.msg[st.msgs].len = op->len;
	st.msg[st.msgs++].seq = op->data;
}

static int post(struct ft *ft, struct ft_op *op, int slot)
{
	struct ft_msg m = {
		.call = FT_RECVMSG, .addr = FI_ADDR_UNSPEC, .buf = bufs[slot],
		.len = BUF_BYTES, .flags = FI_MULTI_RECV,
	};
	struct iovec iov = { .iov_base = bufs[slot], .iov_len = BUF_BYTES };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = m.addr, .context = op,
	};

	ft_op_reset(op);
	op->want = 0;
	op->hook = hook;
	op->arg = (void *)(uintptr_t)slot;
	op->posted = true;
	st.gone[slot] = false;
	return (int)fi_recvmsg(ft->o.ep, &msg, FI_MULTI_RECV);
}

static int send_side(struct ft *ft, uint64_t n, uint64_t mode)
{
	static unsigned char out[64][32768];
	struct ft_op *ops[64] = { NULL };
	uint64_t i;

	for (i = 0; i < 64; i++)
		ops[i] = ft_op_new(ft);
	for (i = 0; i < n; i++) {
		struct ft_op *op = ops[i % 64];
		struct ft_msg m = {
			.call = FT_SENDDATA, .addr = ft->addr[0],
			.buf = out[i % 64], .len = len_of(i, mode), .data = i,
		};

		if (i >= 64)
			FT_DONE(ft, op);
		ft_op_reset(op);
		pattern_fill(m.buf, m.len, ft->run->seed, 1, i);
		FT_CALL(ft, ft_send(ft, op, &m));
	}
	for (i = 0; i < 64 && i < n; i++)
		FT_DONE(ft, ops[i]);
	return FT_PASS;
}

static int recv_side(struct ft *ft, uint64_t n, uint64_t mode)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *ops[NBUFS];
	static bool got[MAX_MSGS];
	uint64_t seen = 0;
	long long at;
	int i;

	memset(got, 0, sizeof(got));
	memset(&st, 0, sizeof(st));
	for (i = 0; i < NBUFS; i++) {
		ops[i] = ft_op_new(ft);
		FT_CALL(ft, post(ft, ops[i], i));
	}
	while (seen < n) {
		ft_progress(ft);
		FT_CHECK(ft, !st.bad[0], "%s", st.bad);
		FT_CHECK(ft, ft_now() < end, "%llu of %llu messages came",
			 (unsigned long long)seen, (unsigned long long)n);
		for (; seen < (uint64_t)st.msgs; seen++) {
			/* Large messages may complete after small ones that
			 * were sent later. */
			uint64_t seq = st.msg[seen].seq;

			FT_CHECK(ft, seq < n && !got[seq], "message %llu came "
				 "twice", (unsigned long long)seq);
			got[seq] = true;
			FT_CHECK(ft, mode > 1 || seq == seen, "message %llu "
				 "came as number %llu",
				 (unsigned long long)seq,
				 (unsigned long long)seen);
			FT_CHECK(ft, st.msg[seen].len == len_of(seq, mode),
				 "message %llu: length %zu",
				 (unsigned long long)seq, st.msg[seen].len);
			at = pattern_check(st.msg[seen].buf, st.msg[seen].len,
					   ft->run->seed, 1, seq);
			FT_CHECK(ft, at < 0, "message %llu: wrong byte at "
				 "%lld", (unsigned long long)seq, at);
		}
		/* All of its messages are checked: post it again. */
		for (i = 0; i < NBUFS; i++)
			if (st.gone[i])
				FT_CALL(ft, post(ft, ops[i], i));
	}
	FT_CHECK(ft, st.released > 0, "no buffer was ever released");
	return FT_PASS;
}

/*
 * Enough messages to use each buffer several times.  Buffers that are still
 * posted at the end are closed with the endpoint.
 */
static int consume(struct ft *ft, const struct ft_case *c)
{
	uint64_t n = c->a == 2 ? 400 : 6000;
	size_t min = c->a == 2 ? 20000 : 512;
	int ret;

	if (c->a == 2 && (ft_is_bare(ft, "shm") ||
			  ft_is_bare(ft, "tcp;ofi_rxm")))
		return ft_skip(ft, "bare %s ignores FI_OPT_MIN_MULTI_RECV and "
			       "dies of messages that do not fit",
			       ft->opts.prov);
	FT_CALL(ft, fi_setopt(&ft->o.ep->fid, FI_OPT_ENDPOINT,
			      FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	ret = ft->rank ? send_side(ft, n, c->a) : recv_side(ft, n, c->a);
	/* Posted buffers must not affect the next case. */
	ft_barrier(ft);
	if (ft_close(ft) && ret == FT_PASS)
		return FT_FAIL;
	return ret;
}

/* The buffer is released when less than min_multi_recv is left. */
static int threshold(struct ft *ft, const struct ft_case *c)
{
	size_t min = c->a, got = 0, len = sizeof(got);
	size_t each = 1024, fits;
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op;
	uint64_t i;

	ft_known(ft, "shm", "FI_OPT_MIN_MULTI_RECV is ignored");
	ft_known(ft, "tcp;ofi_rxm", "FI_OPT_MIN_MULTI_RECV is ignored");
	FT_CALL(ft, fi_setopt(&ft->o.ep->fid, FI_OPT_ENDPOINT,
			      FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	FT_CALL(ft, fi_getopt(&ft->o.ep->fid, FI_OPT_ENDPOINT,
			      FI_OPT_MIN_MULTI_RECV, &got, &len));
	FT_CHECK(ft, got == min && len == sizeof(got), "set %zu, got %zu",
		 min, got);
	/* The number of messages after which less than min is left. */
	fits = (BUF_BYTES - min) / each + 1;
	if (fits > BUF_BYTES / each)
		fits = BUF_BYTES / each;
	if (ft->rank) {
		static unsigned char out[1024];

		ft_barrier(ft);
		for (i = 0; i < fits; i++) {
			struct ft_msg m = {
				.addr = ft->addr[0], .buf = out, .len = each,
			};

			op = ft_op_new(ft);
			FT_CALL(ft, ft_send(ft, op, &m));
			FT_DONE(ft, op);
		}
	} else {
		memset(&st, 0, sizeof(st));
		op = ft_op_new(ft);
		FT_CALL(ft, post(ft, op, 0));
		ft_barrier(ft);
		while (st.msgs < (int)fits || !st.released) {
			ft_progress(ft);
			FT_CHECK(ft, !st.bad[0], "%s", st.bad);
			FT_CHECK(ft, !st.released || st.msgs == (int)fits,
				 "released after %d messages of %zu bytes, "
				 "not %zu", st.msgs, each, fits);
			FT_CHECK(ft, ft_now() < end, "%d of %zu messages, "
				 "given back: %d", st.msgs, fits, st.released);
		}
	}
	ft_barrier(ft);
	return ft_close(ft) ? FT_FAIL : FT_PASS;
}

/* fi_cancel of a multi-receive buffer gives exactly one last completion. */
static int cancel(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op;
	double end = ft_now() + ft->run->timeout_s;

	(void)c;
	if (ft->rank)
		return FT_PASS;
	memset(&st, 0, sizeof(st));
	op = ft_op_new(ft);
	FT_CALL(ft, post(ft, op, 0));
	op->hook = NULL;
	FT_CALL(ft, fi_cancel(&ft->o.ep->fid, op));
	while (!op->done) {
		ft_progress(ft);
		FT_CHECK(ft, ft_now() < end, "no completion");
	}
	FT_CHECK(ft, op->err == FI_ECANCELED, "error %d, not FI_ECANCELED",
		 op->err);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "equal", "varied", "large" };
	static struct ft_case cases[16];
	struct ft_case *c = cases;
	int i;

	for (i = 0; i < 3; i++, c++) {
		snprintf(c->name, sizeof(c->name), "consume-%s", modes[i]);
		c->fn = consume;
		c->a = (uint64_t)i;
	}
	for (i = 0; i < 2; i++, c++) {
		snprintf(c->name, sizeof(c->name), "min-multi-recv-%d",
			 i ? 30000 : 64);
		c->fn = threshold;
		c->a = i ? 30000 : 64;
	}
	strcpy(c->name, "cancel");
	(c++)->fn = cancel;
	return ft_main(argc, argv, "FI_MULTI_RECV", cases, (int)(c - cases));
}
