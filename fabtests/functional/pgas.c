/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Use as in a partitioned global address space: a symmetric heap that all ranks
 * address by offset; put, get, put with a flag, atomics, wait-until; and quiet
 * and barriers made of these.  Quiet waits for completions or, in the -counter
 * cases, for counters.
 */
#include "../common/rma.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define HEAP_BYTES	(4 << 20)
#define MAX_RANKS	4

/* Offsets in the heap.  Cells that a rank waits for are in cache lines of their own. */
enum {
	AT_BARRIER = 0,			/* arrivals at rank 0; then releases */
	AT_FLAG = 4096,			/* [writer] */
	AT_LOCK = 8192,
	AT_SHARED = 8256,		/* guarded by the lock */
	AT_SUM = 8320,
	AT_TICKET = 8384,
	AT_INBOX = 16384,		/* [writer] of INBOX_BYTES */
};

#define INBOX_BYTES	(512 << 10)

static struct fid_cntr *writes, *reads;	/* NULL: by completions */
static uint64_t put_started, get_started;
static struct ft_op *pending[4096];
static int npending;
static uint64_t epoch;			/* barriers so far */

static int bind_counters(struct ft *ft, struct ft_objs *o)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr **c[] = { &writes, &reads };
	const uint64_t flags[] = { FI_WRITE, FI_READ };
	int i, ret;

	for (i = 0; i < 2; i++) {
		ret = fi_cntr_open(o->domain, &attr, c[i], NULL);
		if (!ret) {
			o->extra[o->nextra++] = &(*c[i])->fid;
			ret = fi_ep_bind(o->ep, &(*c[i])->fid, flags[i]);
		}
		if (ret) {
			ft_fail(ft, "counter: %s", fi_strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static volatile uint64_t *cell(uint64_t off)
{
	return (volatile uint64_t *)(ft_mem.target + off);
}

/* Local memory that operations under way may use. */
static uint64_t *scratch(void)
{
	static unsigned next;

	return (uint64_t *)(ft_mem.local + HEAP_BYTES - 65536) +
	       next++ % 8192;
}

/* All operations that were started are complete.  What was put has arrived,
 * because every put asks for FI_DELIVERY_COMPLETE. */
static int quiet(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	int i;

	if (writes) {
		while (fi_cntr_read(writes) < put_started ||
		       fi_cntr_read(reads) < get_started) {
			ft_progress(ft);
			FT_CHECK(ft, !fi_cntr_readerr(writes) &&
				 !fi_cntr_readerr(reads), "an error was "
				 "counted");
			FT_CHECK(ft, ft_now() < end, "quiet: %llu of %llu "
				 "puts, %llu of %llu gets",
				 (unsigned long long)fi_cntr_read(writes),
				 (unsigned long long)put_started,
				 (unsigned long long)fi_cntr_read(reads),
				 (unsigned long long)get_started);
		}
		return FT_PASS;
	}
	for (i = 0; i < npending; i++)
		FT_DONE(ft, pending[i]);
	npending = 0;
	ft_ops_drop(ft);
	return FT_PASS;
}

static int op_for(struct ft *ft, struct ft_op **op)
{
	*op = NULL;
	if (writes)
		return FT_PASS;		/* no completion is requested */
	if (npending == (int)(sizeof(pending) / sizeof(pending[0])))
		FT_TRY(quiet(ft));
	*op = pending[npending++] = ft_op_new(ft);
	return FT_PASS;
}

static int put(struct ft *ft, int rank, uint64_t off, void *from, size_t len,
	       uint64_t flags)
{
	struct ft_op *op;
	struct ft_rma r;

	FT_TRY(op_for(ft, &op));
	ft_rma_set(ft, &r, FT_WRITEMSG, from, len, &ft_mem.lmr, &ft_mem.tmr,
		   rank, off);
	r.flags = FI_DELIVERY_COMPLETE | flags;
	if (op)
		r.flags |= FI_COMPLETION;
	put_started++;
	FT_CALL(ft, ft_rma(ft, op, &r));
	return FT_PASS;
}

static int get(struct ft *ft, int rank, uint64_t off, void *to, size_t len)
{
	struct ft_op *op;
	struct ft_rma r;

	FT_TRY(op_for(ft, &op));
	ft_rma_set(ft, &r, FT_READ, to, len, &ft_mem.lmr, &ft_mem.tmr, rank,
		   off);
	get_started++;
	FT_CALL(ft, ft_rma(ft, op, &r));
	return FT_PASS;
}

static int put_cell(struct ft *ft, int rank, uint64_t off, uint64_t v)
{
	uint64_t *s = scratch();

	*s = v;
	return put(ft, rank, off, s, 8, 0);
}

/* call is FT_FETCH or FT_COMPARE; *result is valid only after quiet */
static int amo(struct ft *ft, int call, enum fi_op what, int rank,
	       uint64_t off, uint64_t v, uint64_t compare, uint64_t **result)
{
	uint64_t *a = scratch(), *b = scratch();
	struct ft_atomic at;
	struct ft_op *op;

	*result = scratch();
	*a = v;
	*b = compare;
	FT_TRY(op_for(ft, &op));
	ft_atomic_set(ft, &at, call, FI_UINT64, what, 8, a, b, *result, 1,
		      &ft_mem.lmr, &ft_mem.tmr, rank, off);
	get_started++;
	FT_CALL(ft, ft_atomic(ft, op, &at));
	return FT_PASS;
}

static int wait_until(struct ft *ft, uint64_t off, uint64_t v)
{
	double end = ft_now() + ft->run->timeout_s;
	unsigned n = 0;

	while (__atomic_load_n(cell(off), __ATOMIC_ACQUIRE) < v) {
		ft_progress(ft);
		if (writes)
			fi_cntr_read(writes);
		if (++n % 256)
			continue;
		sched_yield();
		FT_CHECK(ft, ft_now() < end, "cell %llu stays at %llu, not "
			 "%llu", (unsigned long long)off,
			 (unsigned long long)*cell(off),
			 (unsigned long long)v);
	}
	return FT_PASS;
}

/* Each rank has a cell in rank 0; rank 0 has one in each rank. */
static int barrier(struct ft *ft)
{
	int i;

	epoch++;
	FT_TRY(quiet(ft));
	if (ft->rank) {
		FT_TRY(put_cell(ft, 0, AT_BARRIER + 64 * (uint64_t)ft->rank,
				epoch));
		FT_TRY(wait_until(ft, AT_BARRIER, epoch));
	} else {
		for (i = 1; i < ft->n; i++)
			FT_TRY(wait_until(ft, AT_BARRIER + 64 * (uint64_t)i,
					  epoch));
		for (i = 1; i < ft->n; i++)
			FT_TRY(put_cell(ft, i, AT_BARRIER, epoch));
	}
	return quiet(ft);
}

/* Every rank puts to every rank and gets the data back from it. */
static int all_to_all(struct ft *ft)
{
	static const size_t sizes[] = { 8, 100, 5000, 70000 };
	size_t len;
	int round, i;

	for (round = 0; round < (ft->run->quick ? 8 : 40); round++) {
		uint64_t seq = (uint64_t)round;

		len = sizes[round % 4];
		for (i = 0; i < ft->n; i++) {
			unsigned char *from = ft_mem.local +
					      (size_t)i * INBOX_BYTES;

			pattern_fill(from, len, ft->run->seed,
				     (unsigned)(ft->rank * 16 + i), seq);
			FT_TRY(put(ft, i, AT_INBOX + (uint64_t)ft->rank *
				   INBOX_BYTES, from, len, 0));
		}
		FT_TRY(barrier(ft));
		for (i = 0; i < ft->n; i++)
			FT_CHECK(ft, pattern_check(ft_mem.target + AT_INBOX +
						   (size_t)i * INBOX_BYTES,
						   len, ft->run->seed,
						   (unsigned)(i * 16 +
							      ft->rank),
						   seq) < 0,
				 "round %d: what rank %d put is wrong", round,
				 i);
		for (i = 0; i < ft->n; i++)
			FT_TRY(get(ft, i, AT_INBOX + (uint64_t)ft->rank *
				   INBOX_BYTES, ft_mem.local + (size_t)i *
				   INBOX_BYTES + INBOX_BYTES / 2, len));
		FT_TRY(quiet(ft));
		for (i = 0; i < ft->n; i++)
			FT_CHECK(ft, pattern_check(ft_mem.local + (size_t)i *
						   INBOX_BYTES + INBOX_BYTES /
						   2, len, ft->run->seed,
						   (unsigned)(ft->rank * 16 +
							      i), seq) < 0,
				 "round %d: got wrong data from rank %d",
				 round, i);
		FT_TRY(barrier(ft));
	}
	return FT_PASS;
}

/* Data, then a flag, around a ring of ranks.  how: 0: quiet between the two, or
 * the flag of the call that keeps them in order */
static int signals(struct ft *ft, uint64_t how)
{
	int next = (ft->rank + 1) % ft->n, prev = (ft->rank + ft->n - 1) %
		   ft->n;
	uint64_t inbox = AT_INBOX + (uint64_t)ft->rank * INBOX_BYTES;
	uint64_t from = AT_INBOX + (uint64_t)prev * INBOX_BYTES;
	uint64_t flag = AT_FLAG + 64 * (uint64_t)ft->rank;
	uint64_t *s;
	size_t len;
	uint64_t i;

	*cell(AT_FLAG + 64 * (uint64_t)prev) = 0;
	FT_TRY(barrier(ft));
	for (i = 1; i <= (ft->run->quick ? 50 : 1000); i++) {
		len = i % 7 ? 500 : 60000;
		/* Rank 0 starts the next round. */
		if (ft->rank || i > 1)
			FT_TRY(wait_until(ft, AT_FLAG + 64 * (uint64_t)prev,
					  ft->rank ? i : i - 1));
		if (ft->rank || i > 1)
			FT_CHECK(ft, pattern_check(ft_mem.target + from,
						   (ft->rank ? i : i - 1) % 7 ?
						   500 : 60000, ft->run->seed,
						   (unsigned)prev, ft->rank ?
						   i : i - 1) < 0,
				 "round %llu: the flag came before the data",
				 (unsigned long long)i);
		pattern_fill(ft_mem.local, len, ft->run->seed,
			     (unsigned)ft->rank, i);
		FT_TRY(put(ft, next, inbox, ft_mem.local, len, 0));
		if (!how)
			FT_TRY(quiet(ft));
		s = scratch();
		*s = i;
		FT_TRY(put(ft, next, flag, s, 8, how));
		FT_TRY(quiet(ft));
	}
	FT_TRY(barrier(ft));
	return FT_PASS;
}

/* Tickets are unique, sums are exact, and a lock excludes other ranks. */
static int counting(struct ft *ft)
{
	int i, n = ft->run->quick ? 50 : 600, target;
	static unsigned char taken[MAX_RANKS * 600];
	uint64_t *r, *v = scratch();

	memset(taken, 0, sizeof(taken));
	*cell(AT_TICKET) = *cell(AT_SUM) = 0;
	*cell(AT_LOCK) = *cell(AT_SHARED) = 0;
	FT_TRY(barrier(ft));
	for (i = 0; i < n; i++) {
		FT_TRY(amo(ft, FT_FETCH, FI_SUM, 0, AT_TICKET, 1, 0, &r));
		FT_TRY(quiet(ft));
		FT_CHECK(ft, *r < (uint64_t)(ft->n * n) && !taken[*r],
			 "ticket %llu", (unsigned long long)*r);
		taken[*r] = 1;
		for (target = 0; target < ft->n; target++)
			FT_TRY(amo(ft, FT_FETCH, FI_SUM, target, AT_SUM,
				   (uint64_t)ft->rank + 1, 0, &r));
	}
	FT_TRY(barrier(ft));
	FT_CHECK(ft, *cell(AT_SUM) == (uint64_t)n * (uint64_t)(ft->n *
		 (ft->n + 1) / 2), "the sum is %llu",
		 (unsigned long long)*cell(AT_SUM));
	/* A lock in rank 0 protects a value in the last rank. */
	for (i = 0; i < n / 10; i++) {
		for (;;) {
			FT_TRY(amo(ft, FT_COMPARE, FI_CSWAP, 0, AT_LOCK,
				   (uint64_t)ft->rank + 1, 0, &r));
			FT_TRY(quiet(ft));
			if (!*r)
				break;
			sched_yield();
		}
		FT_TRY(get(ft, ft->n - 1, AT_SHARED, v, 8));
		FT_TRY(quiet(ft));
		++*v;
		FT_TRY(put(ft, ft->n - 1, AT_SHARED, v, 8, 0));
		FT_TRY(quiet(ft));
		FT_TRY(amo(ft, FT_FETCH, FI_ATOMIC_WRITE, 0, AT_LOCK, 0, 0,
			   &r));
		FT_TRY(quiet(ft));
		FT_CHECK(ft, *r == (uint64_t)ft->rank + 1, "the lock was "
			 "rank %lld's", (long long)*r - 1);
	}
	FT_TRY(barrier(ft));
	if (ft->rank == ft->n - 1)
		FT_CHECK(ft, *cell(AT_SHARED) == (uint64_t)ft->n *
			 (uint64_t)(n / 10), "%llu under the lock",
			 (unsigned long long)*cell(AT_SHARED));
	return barrier(ft);
}

static int many_barriers(struct ft *ft)
{
	int i;

	for (i = 0; i < (ft->run->quick ? 50 : 1000); i++)
		FT_TRY(barrier(ft));
	return FT_PASS;
}

/* a: what; b: how a signal is kept after its data */
static int run(struct ft *ft, const struct ft_case *c)
{
	int ret;

	if (!c->cfg.bind)
		writes = reads = NULL;
	if (writes) {
		fi_cntr_set(writes, 0);
		fi_cntr_set(reads, 0);
	}
	put_started = get_started = epoch = 0;
	npending = 0;
	memset(ft_mem.target, 0, AT_INBOX);
	if (ft->n > MAX_RANKS)
		return ft_skip(ft, "made for %d ranks", MAX_RANKS);
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	switch (c->a) {
	case 0: ret = many_barriers(ft); break;
	case 1: ret = all_to_all(ft); break;
	case 2: ret = signals(ft, c->b); break;
	default: ret = counting(ft);
	}
	return ret;
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, HEAP_BYTES);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "barriers", "all-to-all",
		"put-with-signal", "atomics-and-lock" };
	static struct ft_case cases[32];
	struct ft_case *c = cases;
	int counters, i;

	for (counters = 0; counters < 2; counters++)
	for (i = 0; i < 4; i++, c++) {
		snprintf(c->name, sizeof(c->name), "%s%s", names[i],
			 counters ? "-counter" : "");
		c->fn = with_mem;
		c->body = run;
		c->a = (uint64_t)i;
		c->cfg.caps = i == 3 ? FT_ATOMIC_CAPS : FT_RMA_CAPS;
		c->cfg.selective = counters;
		c->cfg.bind = counters ? bind_counters : NULL;
	}
	snprintf(c->name, sizeof(c->name), "put-with-fenced-signal");
	c->fn = with_mem;
	c->body = run;
	c->a = 2;
	c->b = FI_FENCE;
	c->cfg.caps = FT_RMA_CAPS | FI_FENCE;
	c++;
	/* The other cases need fewer; --fork starts as many as this one needs. */
	c[-1].ranks = MAX_RANKS;
	return ft_main(argc, argv, "a partitioned global address space", cases,
		       (int)(c - cases));
}
