/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Time from a send to its completion, while the receiver, which has posted its receive,
 * computes for BUSY_S and makes no progress. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#define BUSY_S		0.1
#define WARM_S		0.002
/* Longer messages need not complete before the receiver looks. */
#define MAX_BYTES	(256u << 10)

static unsigned char *buf;

static void compute(double seconds)
{
	double end = ft_now() + seconds;

	while (ft_now() < end)
		;
}

/* In ns, at rank 0. */
static double one_send(struct bench *b, size_t size)
{
	double start, ns = 0;
	unsigned n;

	b->rx_done = b->tx_done = 0;
	if (b->ft->rank)
		bench_recv(b, buf, size, BENCH_TAG, 0);
	ft_barrier(b->ft);
	if (!b->ft->rank) {
		/* What is left of the last one, and code that is not in the caches. */
		for (start = ft_now(); ft_now() < start + WARM_S;)
			bench_poll(b);
		start = ft_now();
		n = bench_send(b, buf, size, BENCH_TAG, 0);
		while (b->tx_done < n)
			bench_poll(b);
		ns = (ft_now() - start) * 1e9;
	} else {
		compute(BUSY_S);
		while (!b->rx_done)
			bench_poll(b);
		if (b->ft->run->verify &&
		    pattern_check(buf, size, b->ft->run->seed, 0, size) >= 0)
			ft_die(b->ft, "wrong data at size %zu", size);
	}
	ft_barrier(b->ft);
	return ns;
}

int main(int argc, char **argv)
{
	double ns[BENCH_MAX_REPEATS];
	static struct ft ft;
	struct bench b;
	int i, r;

	ft_init(&ft, argc, argv, "send to a receiver that computes (-m tagged or msg, "
		"-r repeats)", 2);
	bench_open(&b, &ft, FI_MSG | FI_TAGGED);
	buf = bench_buf(&ft, BENCH_BUF_BYTES);
	for (i = 0; i < bench_nsizes; i++) {
		size_t size = bench_sizes[i];

		if (size > MAX_BYTES)
			continue;
		ft_guard(&ft, "busy");
		if (!ft.rank)
			pattern_fill(buf, size, ft.run->seed, 0, size);
		/* The connection, and credit. */
		for (r = 0; r < 3; r++)
			one_send(&b, size);
		for (r = 0; r < b.repeats; r++)
			ns[r] = one_send(&b, size);
		bench_print(&ft, "busy", size, ns, b.repeats);
	}
	bench_close(&b);
	free(buf);
	return 0;
}
