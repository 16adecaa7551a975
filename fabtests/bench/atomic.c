/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 64-bit atomics on the other rank's memory.  -m fetch (default): one fetch-add.
 * -m rate: time per addition with a window of them under way.
 */
#include "../common/rma.h"
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW		64u
#define MEM_BYTES	8192

/* At the target: the sum, and a flag that all is done. */
#define STOP		4096

static struct ft_mr local, target;
static uint64_t *mine;			/* operand, then results */
static unsigned char *tbuf;
static void *desc;
static uint64_t total;			/* additions so far */

static void add(struct bench *b, uint64_t off, uint64_t *result, unsigned slot)
{
	const struct ft_target *t = &target.at[!b->ft->rank];
	ssize_t ret;

	do {
		ret = result ?
			fi_fetch_atomic(b->ep, mine, 1, desc, result, desc,
					b->peer, t->base + off, t->key,
					FI_UINT64, FI_SUM, &bench_tx[slot]) :
			fi_atomic(b->ep, mine, 1, desc, b->peer,
				  t->base + off, t->key, FI_UINT64, FI_SUM,
				  &bench_tx[slot]);
		if (ret == -FI_EAGAIN)
			bench_poll(b);
	} while (ret == -FI_EAGAIN);
	if (__builtin_expect(ret != 0, 0))
		ft_die(b->ft, "atomic: %s", fi_strerror((int)-ret));
}

/* A fetch: when it completes, everything before it has been done. */
static void stop(struct bench *b)
{
	uint64_t want = b->tx_done + 1;

	add(b, STOP, &mine[2], BENCH_SLOTS - 1);
	while (b->tx_done < want)
		bench_poll(b);
}

static void serve(struct bench *b)
{
	volatile uint64_t *s = (void *)(tbuf + STOP);

	while (!*s)
		bench_poll(b);
	*s = 0;
}

static double fetch_loop(struct bench *b, uint64_t iters)
{
	uint64_t i;
	double t0;

	b->tx_done = 0;
	ft_barrier(b->ft);
	if (b->ft->rank) {
		serve(b);
		return 0;
	}
	t0 = ft_now();
	for (i = 0; i < iters; i++) {
		add(b, 0, &mine[1], 0);
		while (b->tx_done <= i)
			bench_poll(b);
		if (mine[1] != total + i)
			ft_die(b->ft, "fetched %llu, not %llu",
			       (unsigned long long)mine[1],
			       (unsigned long long)(total + i));
	}
	t0 = (ft_now() - t0) / (double)iters * 1e9;
	total += iters;
	stop(b);
	return t0;
}

static double add_stream(struct bench *b, uint64_t iters)
{
	uint64_t i;
	double t0;

	b->tx_done = 0;
	ft_barrier(b->ft);
	if (b->ft->rank) {
		serve(b);
		return 0;
	}
	t0 = ft_now();
	for (i = 0; i < iters; i++) {
		add(b, 0, NULL, (unsigned)(i % WINDOW));
		while (i + 1 - b->tx_done >= WINDOW)
			bench_poll(b);
	}
	while (b->tx_done < iters)
		bench_poll(b);
	total += iters;
	stop(b);
	return (ft_now() - t0) / (double)iters * 1e9;
}

int main(int argc, char **argv)
{
	double ns[BENCH_MAX_REPEATS], t;
	double (*run)(struct bench *b, uint64_t iters);
	const char *name;
	static struct ft ft;
	struct bench b;
	uint64_t n;
	int r;

	ft_init(&ft, argc, argv, "atomics (-m fetch or rate, -r repeats, -N ms "
		"per repeat)", 2);
	run = strcmp(ft.run->mode, "rate") ? fetch_loop : add_stream;
	name = run == fetch_loop ? "atomic_latency" : "atomic_rate";
	bench_open(&b, &ft, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
	mine = bench_buf(&ft, MEM_BYTES);
	tbuf = bench_buf(&ft, MEM_BYTES);
	if (ft_mr_reg(&ft, &local, mine, MEM_BYTES, FT_MR_ACCESS) ||
	    ft_mr_reg(&ft, &target, tbuf, MEM_BYTES, FT_MR_ACCESS) ||
	    ft_mr_share(&ft, &target))
		ft_die(&ft, "%s", ft.why);
	desc = ft_mr_desc(&ft, &local);
	mine[0] = 1;
	ft_guard(&ft, name);
	if (ft.run->size == UINT64_MAX || ft.run->size == 8) {
		t = run(&b, ft.run->warmup ? ft.run->warmup : 500);
		n = ft.run->iters;
		if (!n && !ft.rank)
			n = (uint64_t)(b.slice_s * 1e9 / t) + 10;
		if (oob_bcast(&ft.oob, &n, sizeof(n)))
			ft_die(&ft, "lost the other rank");
		for (r = 0; r < b.repeats; r++)
			ns[r] = run(&b, n);
		/* Both ranks must agree on the sum. */
		if (oob_bcast(&ft.oob, &total, sizeof(total)))
			ft_die(&ft, "lost the other rank");
		if (ft.rank && *(volatile uint64_t *)tbuf != total)
			ft_die(&ft, "the sum is %llu, not %llu",
			       (unsigned long long)*(uint64_t *)tbuf,
			       (unsigned long long)total);
		bench_print(&ft, name, 8, ns, b.repeats);
	}
	ft_barrier(&ft);
	ft_mr_close(&ft, &target);
	ft_mr_close(&ft, &local);
	bench_close(&b);
	free(mine);
	free(tbuf);
	return 0;
}
