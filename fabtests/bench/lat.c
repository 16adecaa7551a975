/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Half round-trip time of a ping-pong. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned char *sbuf, *rbuf;

/*
 * iters round trips.  The receive for the answer is posted before the question
 * is sent; rank 1 posts its first one before rank 0 may start.
 */
static double pingpong(struct bench *b, size_t size, uint64_t iters)
{
	uint64_t i;
	double t0;

	b->rx_done = b->tx_done = 0;
	if (b->ft->rank)
		bench_recv(b, rbuf, size, BENCH_TAG, 0);
	ft_barrier(b->ft);
	t0 = ft_now();
	if (!b->ft->rank) {
		for (i = 0; i < iters; i++) {
			unsigned n;

			bench_recv(b, rbuf, size, BENCH_TAG, 0);
			n = bench_send(b, sbuf, size, BENCH_TAG, 0);
			while (b->rx_done <= i || (n && b->tx_done <= i))
				bench_poll(b);
		}
		return (ft_now() - t0) / (double)iters / 2 * 1e9;
	}
	for (i = 0; i < iters; i++) {
		unsigned n;

		while (b->rx_done <= i)
			bench_poll(b);
		if (i + 1 < iters)
			bench_recv(b, rbuf, size, BENCH_TAG, 0);
		n = bench_send(b, sbuf, size, BENCH_TAG, 0);
		while (n && b->tx_done <= i)
			bench_poll(b);
	}
	return 0;
}

/* One checked exchange; returns how many of them fill a slice. */
static uint64_t warm_up(struct bench *b, size_t size)
{
	struct ft *ft = b->ft;
	uint64_t n = size <= 65536 ? 50 : 5;
	double ns;

	pattern_fill(sbuf, size, ft->run->seed, (unsigned)ft->rank, size);
	pingpong(b, size, 1);
	if (ft->run->verify && pattern_check(rbuf, size, ft->run->seed,
					     !ft->rank, size) >= 0)
		ft_die(ft, "wrong data at size %zu", size);
	ns = pingpong(b, size, ft->run->warmup ? ft->run->warmup : n);
	if (ft->run->iters)
		n = ft->run->iters;
	else if (!ft->rank)
		n = (uint64_t)(b->slice_s * 1e9 / (ns * 2)) + 10;
	if (oob_bcast(&ft->oob, &n, sizeof(n)))
		ft_die(ft, "lost the other rank");
	return n;
}

int main(int argc, char **argv)
{
	double ns[BENCH_MAX_REPEATS];
	static struct ft ft;
	struct bench b;
	uint64_t iters;
	int i, r;

	ft_init(&ft, argc, argv, "latency (-m tagged or msg, -r repeats, "
		"-N ms per repeat)", 2);
	bench_open(&b, &ft, FI_MSG | FI_TAGGED);
	sbuf = bench_buf(&ft, BENCH_BUF_BYTES);
	rbuf = bench_buf(&ft, BENCH_BUF_BYTES);
	for (i = 0; i < bench_nsizes; i++) {
		size_t size = bench_sizes[i];

		ft_guard(&ft, "latency");
		iters = warm_up(&b, size);
		for (r = 0; r < b.repeats; r++)
			ns[r] = pingpong(&b, size, iters);
		bench_print(&ft, "latency", size, ns, b.repeats);
	}
	bench_close(&b);
	free(sbuf);
	free(rbuf);
	return 0;
}
