/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations.  -m write (default): half a round trip of writes that
 * the other side waits for by reading its memory.  -m read: one read.  -m rate,
 * reads: time per write, or read, with a window of them under way.
 */
#include "../common/rma.h"
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES	BENCH_BUF_BYTES
#define POOL_BYTES	(16u << 20)
#define WINDOW		64u

static struct ft_mr local, target;
static unsigned char *sbuf, *tbuf, *want;
static void *desc;
/* After the data: a flag that the other side is done. */
#define STOP		POOL_BYTES
#define MEM_BYTES	(POOL_BYTES + 4096)

static void put(struct bench *b, unsigned char *buf, size_t len, uint64_t off,
		unsigned slot)
{
	const struct ft_target *t = &target.at[!b->ft->rank];
	ssize_t ret;

	do {
		ret = fi_write(b->ep, buf, len, desc, b->peer, t->base + off,
			       t->key, &bench_tx[slot]);
		if (ret == -FI_EAGAIN)
			bench_poll(b);
	} while (ret == -FI_EAGAIN);
	if (__builtin_expect(ret != 0, 0))
		ft_die(b->ft, "fi_write: %s", fi_strerror((int)-ret));
}

static void get(struct bench *b, unsigned char *buf, size_t len, uint64_t off,
		unsigned slot)
{
	const struct ft_target *t = &target.at[!b->ft->rank];
	ssize_t ret;

	do {
		ret = fi_read(b->ep, buf, len, desc, b->peer, t->base + off,
			      t->key, &bench_tx[slot]);
		if (ret == -FI_EAGAIN)
			bench_poll(b);
	} while (ret == -FI_EAGAIN);
	if (__builtin_expect(ret != 0, 0))
		ft_die(b->ft, "fi_read: %s", fi_strerror((int)-ret));
}

/* When this is complete, everything before it has arrived.  The other side
 * makes progress until it sees the flag, then it stops. */
static void stop(struct bench *b)
{
	const struct ft_target *t = &target.at[!b->ft->rank];
	struct iovec iov = { .iov_base = sbuf + STOP, .iov_len = 8 };
	struct fi_rma_iov rma = {
		.addr = t->base + STOP, .len = 8, .key = t->key,
	};
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1,
		.addr = b->peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = &bench_tx[BENCH_SLOTS - 1],
	};
	uint64_t want = b->tx_done + 1;
	ssize_t ret;

	sbuf[STOP] = 1;
	do {
		ret = fi_writemsg(b->ep, &msg, FI_DELIVERY_COMPLETE |
				  FI_COMPLETION);
		if (ret == -FI_EAGAIN)
			bench_poll(b);
	} while (ret == -FI_EAGAIN);
	if (ret)
		ft_die(b->ft, "fi_writemsg: %s", fi_strerror((int)-ret));
	while (b->tx_done < want)
		bench_poll(b);
}

static void keep_on(void *arg)
{
	bench_poll(arg);
}

static void serve(struct bench *b)
{
	volatile unsigned char *s = tbuf + STOP;

	while (!*s)
		bench_poll(b);
}

/*
 * The last byte of each block contains the round: bytes of one core operation
 * arrive in order, but over several rails the end may arrive before the middle.
 */
#define BLOCK	1024u

static void mark_all(unsigned char *buf, size_t size, unsigned char mark)
{
	size_t i;

	for (i = BLOCK - 1; i < size; i += BLOCK)
		buf[i] = mark;
	buf[size - 1] = mark;
}

static void await_all(struct bench *b, size_t size, unsigned char mark)
{
	volatile unsigned char *t = tbuf;
	size_t i;

	while (t[size - 1] != mark)
		bench_poll(b);
	for (i = BLOCK - 1; i < size; i += BLOCK)
		while (t[i] != mark)
			bench_poll(b);
}

static double write_pingpong(struct bench *b, size_t size, uint64_t iters)
{
	uint64_t i;
	double t0;

	b->tx_done = 0;
	memset(tbuf, 0, size);
	ft_barrier(b->ft);
	t0 = ft_now();
	for (i = 0; i < iters; i++) {
		unsigned char mark = (unsigned char)(i % 255 + 1);

		if (b->ft->rank)
			await_all(b, size, mark);
		mark_all(sbuf, size, mark);
		put(b, sbuf, size, 0, 0);
		if (!b->ft->rank)
			await_all(b, size, mark);
		while (b->tx_done <= i)
			bench_poll(b);
	}
	return (ft_now() - t0) / (double)iters / 2 * 1e9;
}

static double read_loop(struct bench *b, size_t size, uint64_t iters)
{
	uint64_t i;
	double t0;

	b->tx_done = 0;
	tbuf[STOP] = 0;
	ft_barrier(b->ft);
	if (b->ft->rank) {
		serve(b);
		return 0;
	}
	t0 = ft_now();
	for (i = 0; i < iters; i++) {
		get(b, sbuf, size, 0, 0);
		while (b->tx_done <= i)
			bench_poll(b);
	}
	t0 = (ft_now() - t0) / (double)iters * 1e9;
	stop(b);
	return t0;
}

static double stream(struct bench *b, size_t size, uint64_t iters, bool read)
{
	unsigned n = size * WINDOW > POOL_BYTES ?
		     (unsigned)(POOL_BYTES / size) : WINDOW;
	uint64_t i;
	double t0;

	b->tx_done = 0;
	tbuf[STOP] = 0;
	ft_barrier(b->ft);
	if (b->ft->rank) {
		serve(b);
		return 0;
	}
	t0 = ft_now();
	for (i = 0; i < iters; i++) {
		unsigned slot = (unsigned)(i % n);

		if (read)
			get(b, sbuf + slot * size, size, slot * size, slot);
		else
			put(b, sbuf + slot * size, size, slot * size, slot);
		while (i + 1 - b->tx_done >= n)
			bench_poll(b);
	}
	while (b->tx_done < iters)
		bench_poll(b);
	stop(b);
	return (ft_now() - t0) / (double)iters * 1e9;
}

static double write_stream(struct bench *b, size_t size, uint64_t iters)
{
	return stream(b, size, iters, false);
}

static double read_stream(struct bench *b, size_t size, uint64_t iters)
{
	return stream(b, size, iters, true);
}

static const struct mode {
	const char *word, *name;
	double (*run)(struct bench *b, size_t size, uint64_t iters);
	int ways;			/* directions of one round */
} modes[] = {
	{ "write", "rma_latency", write_pingpong, 2 },
	{ "read", "read_latency", read_loop, 1 },
	{ "rate", "put_rate", write_stream, 1 },
	{ "reads", "get_rate", read_stream, 1 },
};

/* One checked round; returns how many of them fill a slice. */
static uint64_t warm_up(struct bench *b, const struct mode *m, size_t size)
{
	struct ft *ft = b->ft;
	uint64_t n = size <= 65536 ? 200 : 10;
	bool read = m->run == read_loop || m->run == read_stream;
	unsigned from = (unsigned)!ft->rank;
	unsigned char *got = read ? sbuf : tbuf;
	double ns;

	pattern_fill(read ? tbuf : sbuf, size, ft->run->seed,
		     (unsigned)ft->rank, size);
	m->run(b, size, 1);
	/* The expected content, with the marks of the first round in both buffers. */
	pattern_fill(want, size, ft->run->seed, from, size);
	mark_all(want, size, 1);
	if (ft->run->verify && (ft->rank != 0) == !read) {
		mark_all(got, size, 1);
		if (memcmp(got, want, size))
			ft_die(ft, "wrong data at size %zu", size);
	}
	ft_barrier(ft);
	ns = m->run(b, size, ft->run->warmup ? ft->run->warmup : n);
	if (ft->run->iters)
		n = ft->run->iters;
	else if (!ft->rank)
		n = (uint64_t)(b->slice_s * 1e9 / (ns * m->ways)) + 10;
	if (oob_bcast(&ft->oob, &n, sizeof(n)))
		ft_die(ft, "lost the other rank");
	return n;
}

int main(int argc, char **argv)
{
	const struct mode *m = &modes[0];
	double ns[BENCH_MAX_REPEATS];
	static struct ft ft;
	struct bench b;
	uint64_t iters;
	int i, r;

	ft_init(&ft, argc, argv, "one-sided operations (-m write, read, rate "
		"or reads, -r repeats, -N ms per repeat)", 2);
	for (i = 0; i < (int)(sizeof(modes) / sizeof(*modes)); i++)
		if (!strcmp(ft.run->mode, modes[i].word))
			m = &modes[i];
	bench_open(&b, &ft, FI_MSG | FI_TAGGED | FI_RMA);
	sbuf = bench_buf(&ft, MEM_BYTES);
	tbuf = bench_buf(&ft, MEM_BYTES);
	want = bench_buf(&ft, MAX_BYTES);
	if (ft_mr_reg(&ft, &local, sbuf, MEM_BYTES, FT_MR_ACCESS) ||
	    ft_mr_reg(&ft, &target, tbuf, MEM_BYTES, FT_MR_ACCESS) ||
	    ft_mr_share(&ft, &target))
		ft_die(&ft, "%s", ft.why);
	desc = ft_mr_desc(&ft, &local);
	/* A rank that is done may still have to make progress, so that the
	 * other one can end. */
	ft.oob.idle = keep_on;
	ft.oob.idle_arg = &b;
	for (i = 0; i < bench_nsizes; i++) {
		size_t size = bench_sizes[i];

		ft_guard(&ft, m->name);
		iters = warm_up(&b, m, size);
		for (r = 0; r < b.repeats; r++)
			ns[r] = m->run(&b, size, iters);
		bench_print(&ft, m->name, size, ns, b.repeats);
	}
	ft_barrier(&ft);
	ft_mr_close(&ft, &target);
	ft_mr_close(&ft, &local);
	bench_close(&b);
	free(sbuf);
	free(tbuf);
	free(want);
	return 0;
}
