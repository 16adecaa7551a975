/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of matching one exact receive while many others wait: a ping-pong of 8
 * bytes, with -N receives of other tags posted on both sides.  With -m
 * unexpected the same number of messages wait unreceived instead.  Prints half
 * the round-trip time; bench/run compares depths.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_TAGS	(1ULL << 32)

static unsigned char *sbuf, *rbuf, *waste;
static struct fi_context2 *others;

/* All tags differ, also from the one of the ping-pong. */
static void post_others(struct bench *b, uint64_t depth)
{
	uint64_t i;
	ssize_t ret;

	others = calloc(depth ? depth : 1, sizeof(*others));
	if (!others)
		ft_die(b->ft, "out of memory");
	for (i = 0; i < depth; i++) {
		do {
			ret = fi_trecv(b->ep, waste, 8, NULL, b->peer,
				       OTHER_TAGS + i, 0, &others[i]);
			if (ret == -FI_EAGAIN)
				bench_poll(b);
		} while (ret == -FI_EAGAIN);
		if (ret)
			ft_die(b->ft, "receive %llu of %llu: %s",
			       (unsigned long long)i,
			       (unsigned long long)depth,
			       fi_strerror((int)-ret));
	}
}

static void send_others(struct bench *b, uint64_t depth)
{
	uint64_t i;

	for (i = 0; i < depth; i++) {
		bench_send(b, sbuf, 8, OTHER_TAGS + i, 1);
		if (!(i % 64))
			bench_poll(b);
	}
}

static void progress(void *arg)
{
	bench_poll(arg);
}

/* Receives what the other side still sends. */
static void meet(struct bench *b)
{
	b->ft->oob.idle = progress;
	b->ft->oob.idle_arg = b;
	ft_barrier(b->ft);
	b->ft->oob.idle = NULL;
}

static double pingpong(struct bench *b, uint64_t iters)
{
	int first = !b->ft->rank;
	uint64_t i;
	double t0;

	b->rx_done = 0;
	bench_recv(b, rbuf, 8, BENCH_TAG, 0);
	ft_barrier(b->ft);
	t0 = ft_now();
	for (i = 0; i < iters; i++) {
		if (first)
			bench_send(b, sbuf, 8, BENCH_TAG, 0);
		while (b->rx_done <= i)
			bench_poll(b);
		if (i + 1 < iters)
			bench_recv(b, rbuf, 8, BENCH_TAG, 0);
		if (!first)
			bench_send(b, sbuf, 8, BENCH_TAG, 0);
	}
	return (ft_now() - t0) / (double)iters / 2 * 1e9;
}

int main(int argc, char **argv)
{
	double ns[BENCH_MAX_REPEATS];
	uint64_t depth, iters;
	static struct ft ft;
	struct bench b;
	int r;

	ft_init(&ft, argc, argv, "matching cost against queue depth (-N depth,"
		" -m posted or unexpected)", 2);
	depth = ft.run->arg;
	ft.run->arg = 0;
	bench_open(&b, &ft, FI_MSG | FI_TAGGED | FI_DIRECTED_RECV);
	sbuf = bench_buf(&ft, 8);
	rbuf = bench_buf(&ft, 8);
	waste = bench_buf(&ft, 8);
	iters = ft.run->iters ? ft.run->iters : 2000;
	pingpong(&b, 100);
	ft_guard(&ft, "filling the queue");
	if (!strcmp(ft.run->mode, "unexpected"))
		send_others(&b, depth);
	else
		post_others(&b, depth);
	meet(&b);
	pingpong(&b, 100);
	for (r = 0; r < b.repeats; r++) {
		ft_guard(&ft, "matching");
		ns[r] = pingpong(&b, iters);
	}
	bench_print(&ft, "depth", depth, ns, b.repeats);
	/* What is still queued is freed with the endpoint. */
	bench_close(&b);
	free(others);
	return 0;
}
