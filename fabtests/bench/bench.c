/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Common parts of the measuring programs; see bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fi_context2 bench_tx[BENCH_SLOTS], bench_rx[BENCH_SLOTS];

size_t bench_sizes[] = {
	1, 8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10,
	1 << 20, BENCH_MAX_SIZE
};
int bench_nsizes = sizeof(bench_sizes) / sizeof(bench_sizes[0]);

void bench_open(struct bench *b, struct ft *ft, uint64_t caps)
{
	struct ft_cfg cfg = { .caps = caps };
	int ret;

	memset(b, 0, sizeof(*b));
	ret = ft_open(ft, &cfg);
	if (ret) {
		fprintf(stderr, "# rank %d: %s\n", ft->rank, ft->why);
		exit(ret == -FI_ENODATA ? 77 : 1);
	}
	/*
	 * At a barrier nothing is outstanding, and progress made there would
	 * take completions from the loop that counts them.
	 */
	ft->oob.idle = NULL;
	b->ft = ft;
	b->ep = ft->o.ep;
	b->cq = ft->o.cq;
	b->peer = ft->n > 1 ? ft->addr[!ft->rank] : ft->addr[0];
	b->tagged = strcmp(ft->run->mode, "msg") != 0;
	b->inject_size = ft->o.info->tx_attr->inject_size;
	b->repeats = ft->run->repeats ? (int)ft->run->repeats : 5;
	if (b->repeats > BENCH_MAX_REPEATS)
		b->repeats = BENCH_MAX_REPEATS;
	if (ft->run->size != UINT64_MAX) {
		if (ft->run->size > BENCH_BUF_BYTES)
			ft_die(ft, "-s: %u bytes are the most", BENCH_BUF_BYTES);
		bench_sizes[0] = ft->run->size;
		bench_nsizes = 1;
	}
	b->slice_s = ft->run->arg ? (double)ft->run->arg * 1e-3 : 0.02;
}

void bench_close(struct bench *b)
{
	struct ft *ft = b->ft;

	ft_barrier(ft);
	if (ft_close(ft))
		ft_die(ft, "%s", ft->why);
	/* There is nothing left to make progress with. */
	ft->oob.idle = NULL;
	ft_barrier(ft);
	ft_fini(ft);
}

void *bench_buf(struct ft *ft, size_t len)
{
	size_t size = (len + 4095) & ~(size_t)4095;
	void *p = aligned_alloc(4096, size ? size : 4096);

	if (!p)
		ft_die(ft, "out of memory");
	memset(p, 0, size);
	return p;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void bench_print(struct ft *ft, const char *name, size_t size, double *ns,
		 int n)
{
	double median;

	if (ft->rank)
		return;
	median = bench_median(ns, n);
	printf("%s %zu %.1f %.1f\n", name, size, median, ns[0]);
	fflush(stdout);
}

void bench_cq_error(struct bench *b, ssize_t ret)
{
	struct fi_cq_err_entry ee = { 0 };

	if (ret == -FI_EAVAIL && fi_cq_readerr(b->cq, &ee, 0) == 1)
		ft_die(b->ft, "error completion: %s, prov_errno %d",
		       fi_strerror(ee.err), ee.prov_errno);
	ft_die(b->ft, "fi_cq_read: %s", fi_strerror((int)-ret));
}
