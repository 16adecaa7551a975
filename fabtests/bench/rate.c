/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-way message rate: time per message while a window of them is under way.
 *
 * The receiver keeps `ahead` receives posted and reports each quarter of them
 * to the sender.  So messages are never unexpected, and the sender never waits
 * for a whole round trip.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#define CREDIT_TAG	0x18ULL
#define MAX_AHEAD	256u
#define POOL_BYTES	(4 * BENCH_BUF_BYTES)

static unsigned char *pool, *credit_buf;

static unsigned ahead_of(size_t size)
{
	size_t n = size ? POOL_BYTES / size : MAX_AHEAD;

	return n > MAX_AHEAD ? MAX_AHEAD : (unsigned)n;
}

static void *slot_of(size_t size, unsigned slot)
{
	return pool + (size_t)slot * size;
}

/* Credits are messages too, with their own range of slots. */
static double send_side(struct bench *b, size_t size, uint64_t total)
{
	unsigned ahead = ahead_of(size), step = ahead / 4;
	uint64_t i, want_tx = 0, granted = ahead, credits = 0;
	double t0;

	b->rx_done = b->tx_done = 0;
	bench_recv(b, credit_buf, 8, CREDIT_TAG, 0);
	ft_barrier(b->ft);
	t0 = ft_now();
	for (i = 0; i < total; i++) {
		while (i >= granted) {
			bench_poll(b);
			while (credits < b->rx_done) {
				credits++;
				granted += step;
				bench_recv(b, credit_buf, 8, CREDIT_TAG, 0);
			}
		}
		want_tx += bench_send(b, slot_of(size, (unsigned)(i % ahead)),
				      size, BENCH_TAG, (unsigned)(i % ahead));
		/* Small sends complete meanwhile; never let completions accumulate. */
		while (want_tx - b->tx_done >= ahead)
			bench_poll(b);
	}
	/* The last credit says that everything has arrived. */
	while (b->tx_done < want_tx || credits < total / step) {
		bench_poll(b);
		while (credits < b->rx_done) {
			credits++;
			if (credits < total / step)
				bench_recv(b, credit_buf, 8, CREDIT_TAG, 0);
		}
	}
	return (ft_now() - t0) / (double)total * 1e9;
}

static void recv_side(struct bench *b, size_t size, uint64_t total)
{
	unsigned ahead = ahead_of(size), step = ahead / 4;
	uint64_t posted, seen = 0, want_tx = 0;

	b->rx_done = b->tx_done = 0;
	for (posted = 0; posted < ahead; posted++)
		bench_recv(b, slot_of(size, (unsigned)posted), size, BENCH_TAG,
			   (unsigned)posted);
	ft_barrier(b->ft);
	while (seen < total) {
		bench_poll(b);
		while (seen < b->rx_done) {
			seen++;
			if (posted < total) {
				unsigned s = (unsigned)(posted % ahead);

				bench_recv(b, slot_of(size, s), size,
					   BENCH_TAG, s);
				posted++;
			}
			if (seen % step)
				continue;
			want_tx += bench_send(b, credit_buf, 8, CREDIT_TAG,
					      BENCH_SLOTS - 1);
		}
	}
	while (b->tx_done < want_tx)
		bench_poll(b);
}

/* total is a multiple of the window, so that all receives are used. */
static double stream(struct bench *b, size_t size, uint64_t total)
{
	unsigned ahead = ahead_of(size);

	total = (total + ahead - 1) / ahead * ahead;
	if (!b->ft->rank)
		return send_side(b, size, total);
	recv_side(b, size, total);
	return 0;
}

static uint64_t warm_up(struct bench *b, size_t size)
{
	struct ft *ft = b->ft;
	unsigned i, ahead = ahead_of(size);
	uint64_t n = 1;
	double ns;

	for (i = 0; i < ahead; i++)
		pattern_fill(slot_of(size, i), size,
			     ft->run->seed + (uint64_t)ft->rank, 0, i);
	stream(b, size, ahead);
	for (i = 0; i < ahead && ft->rank && ft->run->verify; i++)
		if (pattern_check(slot_of(size, i), size, ft->run->seed, 0,
				  i) >= 0)
			ft_die(ft, "wrong data at size %zu", size);
	ns = stream(b, size, ft->run->warmup ? ft->run->warmup :
		    size <= 65536 ? 2000 : 8);
	if (ft->run->iters)
		n = ft->run->iters;
	else if (!ft->rank)
		n = (uint64_t)(b->slice_s * 1e9 / ns) + 1;
	if (oob_bcast(&ft->oob, &n, sizeof(n)))
		ft_die(ft, "lost the other rank");
	return n;
}

int main(int argc, char **argv)
{
	double ns[BENCH_MAX_REPEATS];
	static struct ft ft;
	struct bench b;
	uint64_t total;
	int i, r;

	ft_init(&ft, argc, argv, "one-way rate (-m tagged or msg, -r repeats, "
		"-N ms per repeat)", 2);
	bench_open(&b, &ft, FI_MSG | FI_TAGGED);
	pool = bench_buf(&ft, POOL_BYTES);
	credit_buf = bench_buf(&ft, 8);
	for (i = 0; i < bench_nsizes; i++) {
		size_t size = bench_sizes[i];

		ft_guard(&ft, "rate");
		total = warm_up(&b, size);
		for (r = 0; r < b.repeats; r++)
			ns[r] = stream(&b, size, total);
		bench_print(&ft, "rate", size, ns, b.repeats);
	}
	bench_close(&b);
	free(pool);
	free(credit_buf);
	return 0;
}
