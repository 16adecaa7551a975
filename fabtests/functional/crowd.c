/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * More ranks than cores: four ranks on one CPU pass messages around a ring.
 * Each spins in fi_cq_read or fi_cntr_read and never yields the CPU itself.
 * All data is checked.  Prints how long a step takes; check-crowd compares that
 * with and without FI_LNX_YIELD.
 */
#include "../common/ft.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS		12

static struct fid_cntr *cntr;		/* of all sends and receives; or NULL */
static uint64_t counted;

/* Put all ranks on the first CPU that this one may use. */
static int share_cpu(struct ft *ft, cpu_set_t *before)
{
	cpu_set_t one;
	int cpu = 0;

	FT_CHECK(ft, !sched_getaffinity(0, sizeof(*before), before),
		 "sched_getaffinity failed");
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	FT_CHECK(ft, !sched_setaffinity(0, sizeof(one), &one),
		 "sched_setaffinity to CPU %d failed", cpu);
	return FT_PASS;
}

/* Waits as MPI_Send and MPI_Recv do; not with ft_wait, which yields. */
static int spin(struct ft *ft, struct ft_op *op, const char *what)
{
	double end = ft_now() + ft->run->timeout_s;
	unsigned n = 0;

	while (!op->done) {
		ft_progress(ft);
		if (!(++n % 1024) && ft_now() > end)
			return ft_fail(ft, "no completion of a %s", what);
	}
	FT_CHECK(ft, !op->err, "a %s ended with %s", what,
		 fi_strerror(op->err));
	return FT_PASS;
}

/* The same, until both operations of a step are counted. */
static int spin_counting(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	unsigned n = 0;

	counted += 2;
	while (fi_cntr_read(cntr) < counted)
		if (!(++n % 1024) && (ft_now() > end || fi_cntr_readerr(cntr)))
			return ft_fail(ft, "the operations were not counted");
	return FT_PASS;
}

static int step(struct ft *ft, unsigned char *in, unsigned char *out,
		size_t len, uint64_t seq)
{
	int next = (ft->rank + 1) % ft->n, prev = (ft->rank + ft->n - 1) % ft->n;
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[prev], .buf = in, .len = len,
		.tag = seq,
	};
	long long at;

	pattern_fill(out, len, ft->run->seed, (unsigned)ft->rank, seq);
	memset(in, 0, len);
	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.addr = ft->addr[next];
	m.buf = out;
	FT_CALL(ft, ft_send(ft, tx, &m));
	if (cntr)
		FT_TRY(spin_counting(ft));
	FT_TRY(spin(ft, tx, "send"));
	FT_TRY(spin(ft, rx, "receive"));
	at = pattern_check(in, len, ft->run->seed, (unsigned)prev, seq);
	FT_CHECK(ft, at < 0, "step %llu: wrong byte at %lld",
		 (unsigned long long)seq, at);
	return FT_PASS;
}

static int ring(struct ft *ft, size_t len, unsigned char *in, unsigned char *out)
{
	uint64_t seq;
	double t;

	FT_TRY(step(ft, in, out, len, 0));	/* opens the connections */
	FT_CALL(ft, ft_barrier(ft));
	t = ft_now();
	for (seq = 1; seq <= STEPS; seq++)
		FT_TRY(step(ft, in, out, len, seq));
	FT_CALL(ft, ft_barrier(ft));
	t = (ft_now() - t) / STEPS;
	if (!ft->rank)
		printf("# %s, %zu bytes: %.0f ns per step\n",
		       cntr ? "counter" : "queue", len, t * 1e9);
	return FT_PASS;
}

static int bind_cntr(struct ft *ft, struct ft_objs *o)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	int ret = fi_cntr_open(o->domain, &attr, &cntr, NULL);

	if (ret) {
		cntr = NULL;
		ft_fail(ft, "fi_cntr_open: %s", fi_strerror(-ret));
		return ret;
	}
	o->extra[o->nextra++] = &cntr->fid;
	ret = fi_ep_bind(o->ep, &cntr->fid, FI_SEND | FI_RECV);
	if (ret)
		ft_fail(ft, "fi_ep_bind: %s", fi_strerror(-ret));
	return ret;
}

static int crowd_of(struct ft *ft, const struct ft_case *c)
{
	unsigned char *in = malloc(c->a), *out = malloc(c->a);
	cpu_set_t before;
	int ret = FT_FAIL;

	if (!in || !out)
		ret = ft_fail(ft, "out of memory");
	else if (share_cpu(ft, &before) == FT_PASS) {
		ret = ring(ft, c->a, in, out);
		sched_setaffinity(0, sizeof(before), &before);
	}
	ft_ops_drop(ft);
	free(in);
	free(out);
	return ret;
}

static int crowd(struct ft *ft, const struct ft_case *c)
{
	cntr = NULL;
	return crowd_of(ft, c);
}

static int counting(struct ft *ft, const struct ft_case *c)
{
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "counters are only tested over lnx");
	counted = fi_cntr_read(cntr);
	return crowd_of(ft, c);
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "one-cpu-1000", .fn = crowd, .ranks = 4, .a = 1000 },
		{ .name = "one-cpu-32768", .fn = crowd, .ranks = 4,
		  .a = 32768 },
		{ .name = "counter-32768", .fn = counting, .ranks = 4,
		  .a = 32768, .cfg = { .bind = bind_cntr } },
	};

	return ft_main(argc, argv, "more ranks than CPUs", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
