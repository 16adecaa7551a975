/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics in every form of call, with every pair of operation and datatype that
 * the provider offers, compared with a plain model of them.
 */
#include "../common/rma.h"
#include "atomic_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEM_BYTES	(4 << 20)
#define CANARY		0x5a
#define SLOT_BYTES	(16 << 10)	/* for one operation, with a gap */
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, MEM_BYTES);
}

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static int valid(struct ft *ft, int call, enum fi_datatype type,
		 enum fi_op op, size_t *count)
{
	*count = 0;
	if (ft_atomic_compares(call))
		return fi_compare_atomicvalid(ft->o.ep, type, op, count);
	if (ft_atomic_fetches(call))
		return fi_fetch_atomicvalid(ft->o.ep, type, op, count);
	return fi_atomicvalid(ft->o.ep, type, op, count);
}

/* One operation of a batch, and the slot that it uses. */
struct job {
	const struct atomic_type *type;
	enum fi_op op;
	size_t count, off;
	struct ft_op *ftop;
};

#define MAX_JOBS	(MEM_BYTES / SLOT_BYTES)

/* Local memory of a job: operands, compare values, results. */
#define PART		(SLOT_BYTES / 4)

static unsigned char *part(const struct job *j, int which)
{
	return ft_mem.local + j->off + (size_t)which * PART;
}

static int value(uint64_t seed, size_t i)
{
	return (int)(pattern_mix(seed * 1000003 + i) % 12);
}

/* The same operands on all ranks: each can compute what the other one did. */
static void fill(struct ft *ft, struct job *j, uint64_t n)
{
	const struct atomic_type *t = j->type;
	uint64_t seed = ft->run->seed + n * 3;
	size_t i;

	memset(ft_mem.target + j->off, CANARY, SLOT_BYTES);
	memset(ft_mem.local + j->off, CANARY, SLOT_BYTES);
	for (i = 0; i < j->count; i++) {
		t->put(part(j, 0) + i * t->size, value(seed, i));
		/* Half of the comparisons succeed. */
		t->put(part(j, 1) + i * t->size, i % 2 ? value(seed + 2, i) :
		       value(seed + 1, i));
		t->put(ft_mem.target + j->off + i * t->size,
		       value(seed + 2, i));
	}
}

/* What the target should contain now, computed from what it contained before. */
static bool target_done(struct ft *ft, struct job *j, uint64_t n, size_t *at)
{
	const struct atomic_type *t = j->type;
	uint64_t seed = ft->run->seed + n * 3;
	unsigned char x[32];
	size_t i;

	__asm__ volatile("" ::: "memory");
	for (i = 0; i < j->count; i++) {
		t->put(x, value(seed + 2, i));
		t->apply(j->op, x, part(j, 0) + i * t->size,
			 part(j, 1) + i * t->size);
		*at = i;
		if (!t->same(x, ft_mem.target + j->off + i * t->size))
			return false;
	}
	return true;
}

static int check_job(struct ft *ft, const char *call, bool fetches,
		     struct job *j, uint64_t n)
{
	double end = ft_now() + ft->run->timeout_s / 6;
	const struct atomic_type *t = j->type;
	uint64_t seed = ft->run->seed + n * 3;
	size_t i, len = j->count * t->size;
	unsigned char x[32];
	long long bad;

	for (i = 0; fetches && i < j->count; i++) {
		t->put(x, value(seed + 2, i));
		FT_CHECK(ft, t->same(x, part(j, 2) + i * t->size), "fi_%s "
			 "%s %s, %zu elements: result %zu is not what was "
			 "there", call, atomic_op_names[j->op], t->name,
			 j->count, i);
	}
	if (fetches) {
		bad = pattern_is_filled(part(j, 2) + len, PART - len, CANARY);
		FT_CHECK(ft, bad < 0, "fi_%s %s %s: the result is too long",
			 call, atomic_op_names[j->op], t->name);
	}
	while (!target_done(ft, j, n, &i)) {
		ft_progress(ft);
		FT_CHECK(ft, !ft->abandoned && ft_now() < end, "fi_%s %s %s, "
			 "%zu elements: element %zu of the target is wrong",
			 call, atomic_op_names[j->op], t->name, j->count, i);
	}
	bad = pattern_is_filled(ft_mem.target + j->off + len,
				SLOT_BYTES - len, CANARY);
	FT_CHECK(ft, bad < 0, "fi_%s %s %s: byte %lld after the target was "
		 "written", call, atomic_op_names[j->op], t->name, bad);
	return FT_PASS;
}

/* Start all of them, then check all. */
static int run_jobs(struct ft *ft, int call, struct job *jobs, int n,
		    int peer, uint64_t flags)
{
	struct ft_atomic a;
	int i, ret;

	for (i = 0; i < n; i++)
		fill(ft, &jobs[i], (uint64_t)i);
	FT_TRY(meet(ft));
	for (i = 0; i < n; i++) {
		struct job *j = &jobs[i];

		ft_atomic_set(ft, &a, call, j->type->type, j->op,
			      j->type->size, j->op == FI_ATOMIC_READ ? NULL :
			      part(j, 0), part(j, 1), part(j, 2), j->count,
			      &ft_mem.lmr, &ft_mem.tmr, peer, j->off);
		a.flags = flags;
		j->ftop = call == FT_INJECT_ATOMIC ? NULL : ft_op_new(ft);
		ret = ft_atomic(ft, j->ftop, &a);
		FT_CHECK(ft, !ret, "fi_%s %s %s, %zu elements: %s (%d)",
			 ft_atomic_names[call], atomic_op_names[j->op],
			 j->type->name, j->count, fi_strerror(-ret), ret);
	}
	for (i = 0; i < n; i++) {
		uint64_t want = FI_ATOMIC |
			(ft_atomic_fetches(call) ? FI_READ : FI_WRITE);

		if (!jobs[i].ftop)
			continue;
		FT_DONE(ft, jobs[i].ftop);
		FT_CHECK(ft, (jobs[i].ftop->flags & want) == want, "flags "
			 "%#llx of a completed fi_%s", (unsigned long long)
			 jobs[i].ftop->flags, ft_atomic_names[call]);
	}
	/* Results are valid when the operation is complete; the target, when
	 * both ranks are. */
	FT_TRY(meet(ft));
	for (i = 0; i < n; i++)
		FT_TRY(check_job(ft, ft_atomic_names[call],
				 ft_atomic_fetches(call), &jobs[i],
				 (uint64_t)i));
	return meet(ft);
}

/* As many elements as the provider allows and the call can carry. */
static size_t most(struct ft *ft, int call, size_t count, size_t size)
{
	size_t room = PART - 64;

	if (call == FT_INJECT_ATOMIC &&
	    ft->o.info->tx_attr->inject_size < room)
		room = ft->o.info->tx_attr->inject_size;
	return count * size > room ? room / size : count;
}

static int add_jobs(struct ft *ft, int call, const struct atomic_type *t,
		    struct job *jobs, int n, int *off)
{
	size_t count, max, counts[4];
	int op, i;

	for (op = 0; op < ATOMIC_NOPS; op++) {
		/* A read without a result buffer makes no sense. */
		if (op == FI_ATOMIC_READ && !ft_atomic_fetches(call))
			continue;
		if (!atomic_defined(t, op) || valid(ft, call, t->type, op,
						    &count) || !count)
			continue;
		max = most(ft, call, count, t->size);
		counts[0] = 1;
		counts[1] = 2;
		counts[2] = max / 2 | 1;
		counts[3] = max;
		for (i = 0; i < 4; i++) {
			if (!counts[i] || counts[i] > max ||
			    (i && counts[i] <= counts[i - 1]) ||
			    n == MAX_JOBS)
				continue;
			jobs[n].type = t;
			jobs[n].op = op;
			jobs[n].count = counts[i];
			jobs[n++].off = (size_t)(*off)++ * SLOT_BYTES;
		}
	}
	return n;
}

/* a: call, b: type, or all of them, c: to itself, or flags of the msg call */
static int pairs(struct ft *ft, const struct ft_case *c)
{
	bool all = c->b == (uint64_t)atomic_ntypes;
	static struct job jobs[MAX_JOBS];
	int i, n, off, any = 0, call = (int)c->a;
	int peer = c->c == 1 ? ft->rank : !ft->rank;

	for (i = all ? 0 : (int)c->b; i < (all ? atomic_ntypes : (int)c->b + 1);
	     i++) {
		off = 0;
		n = add_jobs(ft, call, &atomic_types[i], jobs, 0, &off);
		any += n;
		if (n)
			FT_TRY(run_jobs(ft, call, jobs, n, peer,
					c->c == 1 ? 0 : c->c));
	}
	return any ? FT_PASS : ft_skip(ft, "the provider has no such pair");
}

/*
 * Run twice, because damage by the first run shows in the second: bare shm
 * frees the buffer of such an operation on both sides.
 */
static int delivered(struct ft *ft, const struct ft_case *c)
{
	ft->spoiled = true;
	FT_TRY(pairs(ft, c));
	ft_known(ft, "shm", "two operations share a buffer");
	return pairs(ft, c);
}

/* The valid and query calls agree with each other and with what calls then do. */
static int queries(struct ft *ft, const struct ft_case *c)
{
	static const struct { int call; uint64_t flags; } kinds[] = {
		{ FT_ATOMIC, 0 }, { FT_FETCH, FI_FETCH_ATOMIC },
		{ FT_COMPARE, FI_COMPARE_ATOMIC },
	};
	int k, i, op, yes = 0;

	(void)c;
	for (k = 0; k < COUNT(kinds); k++)
	for (i = 0; i < atomic_ntypes; i++)
	for (op = 0; op < ATOMIC_NOPS; op++) {
		const struct atomic_type *t = &atomic_types[i];
		struct fi_atomic_attr attr = { 0 };
		size_t count = 0;
		int v, q;

		v = valid(ft, kinds[k].call, t->type, op, &count);
		q = fi_query_atomic(ft->o.domain, t->type, op, &attr,
				    kinds[k].flags);
		FT_CHECK(ft, !v == !q, "%s %s: valid says %d, query %d",
			 atomic_op_names[op], t->name, v, q);
		if (v)
			continue;
		yes++;
		FT_CHECK(ft, count > 0 && attr.count > 0, "%s %s: valid, but "
			 "no element", atomic_op_names[op], t->name);
		ft_known(ft, NULL, "query and valid disagree on the count");
		FT_CHECK(ft, count <= attr.count, "%s %s: endpoint takes %zu, "
			 "domain %zu", atomic_op_names[op], t->name, count,
			 attr.count);
		ft->todo[0] = '\0';
		FT_CHECK(ft, attr.size == t->size, "%s has %zu bytes, not %zu",
			 t->name, attr.size, t->size);
		ft_known(ft, NULL, "some valid pairs make no sense");
		FT_CHECK(ft, atomic_is_compare(op) ==
			 (kinds[k].call == FT_COMPARE), "%s is valid in the "
			 "wrong kind of call", atomic_op_names[op]);
		FT_CHECK(ft, atomic_defined(t, op), "%s of %s is valid",
			 atomic_op_names[op], t->name);
		ft->todo[0] = '\0';
	}
	FT_CHECK(ft, yes, "nothing is valid");
	return FT_PASS;
}

/* An unsupported pair gives an error at once and changes nothing. */
static int unsupported(struct ft *ft, const struct ft_case *c)
{
	static const int calls[] = { FT_ATOMIC, FT_FETCH, FT_COMPARE,
				     FT_INJECT_ATOMIC };
	int k, i, op, tried = 0;
	struct ft_atomic a;
	size_t count;
	ssize_t ret;

	(void)c;
	memset(ft_mem.target, CANARY, SLOT_BYTES);
	FT_TRY(meet(ft));
	ft_known(ft, NULL, "invalid pairs are accepted");
	for (k = 0; k < COUNT(calls); k++)
	for (i = 0; i < atomic_ntypes; i++)
	for (op = 0; op < ATOMIC_NOPS; op++) {
		const struct atomic_type *t = &atomic_types[i];
		struct ft_op *ftop = ft_op_new(ft);

		if (!valid(ft, calls[k], t->type, op, &count))
			continue;
		tried++;
		ft_atomic_set(ft, &a, calls[k], t->type, op, t->size,
			      ft_mem.local, ft_mem.local + 64,
			      ft_mem.local + 128, 1, &ft_mem.lmr, &ft_mem.tmr,
			      !ft->rank, 0);
		ret = ft_try_atomic(ft->o.ep, ftop, &a);
		FT_CHECK(ft, ret < 0 && ret != -FI_EAGAIN, "fi_%s %s %s is not "
			 "valid, and gave %zd", ft_atomic_names[calls[k]],
			 atomic_op_names[op], t->name, ret);
	}
	FT_TRY(meet(ft));
	FT_CHECK(ft, pattern_is_filled(ft_mem.target, SLOT_BYTES, CANARY) < 0,
		 "the target was written");
	return tried ? FT_PASS : ft_skip(ft, "everything is valid");
}

/* One element more than the limit. */
static int too_many(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_atomic a;
	size_t count;
	ssize_t ret;

	if (valid(ft, (int)c->a, FI_UINT64, (enum fi_op)c->b, &count))
		return ft_skip(ft, "not offered");
	if ((count + 1) * 8 > MEM_BYTES / 4)
		return ft_skip(ft, "takes %zu elements", count);
	ft_known(ft, NULL, "more elements than the limit are accepted");
	FT_TRY(meet(ft));
	ft_atomic_set(ft, &a, (int)c->a, FI_UINT64, (enum fi_op)c->b, 8,
		      ft_mem.local, ft_mem.local + MEM_BYTES / 4,
		      ft_mem.local + MEM_BYTES / 2, count + 1, &ft_mem.lmr,
		      &ft_mem.tmr, !ft->rank, 0);
	ret = ft_atomic(ft, op, &a);
	ft->spoiled = !ret;
	FT_CHECK(ft, ret < 0, "%zu of at most %zu elements gave %zd",
		 count + 1, count, ret);
	return meet(ft);
}

/*
 * All ranks add to one counter of rank 0, several operations at a time.  No
 * addition is lost, and no two fetches return the same value.  a: call
 */
static int sum(struct ft *ft, const struct ft_case *c)
{
	enum { N = 4000, WINDOW = 32 };
	static struct ft_op *op[WINDOW];
	uint64_t *counter = (void *)ft_mem.target;
	uint64_t *one = (void *)ft_mem.local, total;
	uint64_t *res = (void *)(ft_mem.local + 4096);
	static uint64_t mine[N];
	struct ft_atomic a;
	double end;
	int i;

	*counter = 1000;
	*one = 1;
	FT_TRY(meet(ft));
	for (i = 0; i < N + WINDOW; i++) {
		int s = i % WINDOW;

		if (i >= WINDOW && op[s]) {
			FT_DONE(ft, op[s]);
			mine[i - WINDOW] = res[s];
		}
		if (i >= N)
			continue;
		ft_atomic_set(ft, &a, (int)c->a, FI_UINT64, FI_SUM, 8, one,
			      NULL, &res[s], 1, &ft_mem.lmr, &ft_mem.tmr, 0,
			      0);
		if (c->a == FT_INJECT_ATOMIC) {
			op[s] = NULL;
		} else {
			if (i < WINDOW)
				op[s] = ft_op_new(ft);
			else
				ft_op_reset(op[s]);
		}
		FT_CALL(ft, ft_atomic(ft, op[s], &a));
	}
	for (i = 1; i < N && ft_atomic_fetches((int)c->a); i++)
		FT_CHECK(ft, mine[i] != mine[i - 1], "two operations fetched "
			 "%llu", (unsigned long long)mine[i]);
	FT_TRY(meet(ft));
	total = 1000 + (uint64_t)ft->n * N;
	end = ft_now() + ft->run->timeout_s;
	while (!ft->rank && __atomic_load_n(counter, __ATOMIC_ACQUIRE) !=
	       total) {
		ft_progress(ft);
		FT_CHECK(ft, ft_now() < end, "%llu after %llu additions",
			 (unsigned long long)*counter,
			 (unsigned long long)total - 1000);
	}
	FT_TRY(meet(ft));
	return ft->rank || *counter == total ? FT_PASS :
	       ft_fail(ft, FT_AT "something was added twice");
}

/* The same with compare-and-swap: read, try, try again until it succeeds. */
static int swap_sum(struct ft *ft, const struct ft_case *c)
{
	enum { N = 500 };
	uint64_t *counter = (void *)ft_mem.target;
	uint64_t *v = (void *)ft_mem.local, seen = 0;
	struct ft_atomic a;
	size_t count;
	int i;

	(void)c;
	if (valid(ft, FT_COMPARE, FI_UINT64, FI_CSWAP, &count))
		return ft_skip(ft, "not offered");
	*counter = 0;
	FT_TRY(meet(ft));
	for (i = 0; i < N;) {
		v[0] = seen + 1;
		v[1] = seen;
		ft_atomic_set(ft, &a, FT_COMPARE, FI_UINT64, FI_CSWAP, 8, v,
			      v + 1, v + 2, 1, &ft_mem.lmr, &ft_mem.tmr, 0, 0);
		FT_TRY(ft_atomic_now(ft, &a, FT_AT));
		if (v[2] == seen) {
			i++;
			seen++;
		} else {
			seen = v[2];
		}
	}
	FT_TRY(meet(ft));
	if (!ft->rank)
		FT_CHECK(ft, *counter == (uint64_t)ft->n * N, "%llu after %d "
			 "swaps", (unsigned long long)*counter, ft->n * N);
	return meet(ft);
}

/* A pure fetch needs no operand, in any form of call. */
static int read_only(struct ft *ft, const struct ft_case *c)
{
	uint64_t *at = (void *)ft_mem.target, *res = (void *)ft_mem.local;
	struct ft_atomic a;
	size_t count;

	if (valid(ft, (int)c->a, FI_UINT64, FI_ATOMIC_READ, &count))
		return ft_skip(ft, "not offered");
	at[0] = 0x1111111111111111ULL * (uint64_t)(ft->rank + 1);
	at[1] = ~at[0];
	res[0] = res[1] = 0;
	FT_TRY(meet(ft));
	ft_atomic_set(ft, &a, (int)c->a, FI_UINT64, FI_ATOMIC_READ, 8, NULL,
		      NULL, res, count > 1 ? 2 : 1, &ft_mem.lmr, &ft_mem.tmr,
		      !ft->rank, 0);
	FT_TRY(ft_atomic_now(ft, &a, FT_AT));
	FT_CHECK(ft, res[0] == 0x1111111111111111ULL *
		 (uint64_t)(!ft->rank + 1), "read %#llx",
		 (unsigned long long)res[0]);
	FT_CHECK(ft, count < 2 || res[1] == ~res[0], "second element %#llx",
		 (unsigned long long)res[1]);
	return meet(ft);
}

/* Atomics mixed with messages and RMA. */
static int mixed(struct ft *ft, const struct ft_case *c)
{
	enum { N = 200 };
	static struct ft_op *s[N], *v[N], *w[N], *f[N];
	uint64_t *one = (void *)ft_mem.local;
	uint64_t *res = (void *)(ft_mem.local + 4096);
	unsigned char *out = ft_mem.local + 65536, *in = out + N * 600;
	struct ft_atomic a;
	struct ft_rma r;
	uint64_t at;
	int i;

	(void)c;
	*one = 3;
	memset(ft_mem.target, 0, 4096);
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 1,
			.buf = in + i * 600, .len = 600,
		};

		v[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, v[i], &m));
		pattern_fill(out + i * 600, 600, ft->run->seed,
			     (unsigned)ft->rank, (uint64_t)i);
	}
	FT_TRY(meet(ft));
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank], .tag = 1,
			.buf = out + i * 600, .len = 600,
		};

		ft_atomic_set(ft, &a, FT_FETCH, FI_UINT64, FI_SUM, 8, one,
			      NULL, &res[i], 1, &ft_mem.lmr, &ft_mem.tmr,
			      !ft->rank, 0);
		f[i] = ft_op_new(ft);
		FT_CALL(ft, ft_atomic(ft, f[i], &a));
		ft_rma_set(ft, &r, FT_WRITE, out + i * 600, 600, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, 4096 + (uint64_t)i * 600);
		w[i] = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, w[i], &r));
		s[i] = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, s[i], &m));
	}
	for (i = 0; i < N; i++) {
		FT_DONE(ft, f[i]);
		FT_DONE(ft, w[i]);
		FT_DONE(ft, s[i]);
		FT_DONE(ft, v[i]);
		FT_CHECK(ft, res[i] % 3 == 0 && res[i] < N * 3, "fetched %llu",
			 (unsigned long long)res[i]);
		FT_CHECK(ft, pattern_check(in + i * 600, 600, ft->run->seed,
					   (unsigned)!ft->rank,
					   (uint64_t)i) < 0,
			 "message %d is wrong", i);
		FT_TRY(ft_await_pattern(ft, ft_mem.target + 4096 + i * 600,
					600, (unsigned)!ft->rank, (uint64_t)i,
					FT_AT));
	}
	FT_TRY(meet(ft));
	memcpy(&at, ft_mem.target, 8);
	FT_CHECK(ft, at == N * 3, "%llu after %d additions of 3",
		 (unsigned long long)at, N);
	return meet(ft);
}

/* An invalid key gives an error, and later operations succeed.  a: call */
static int wrong_key(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_atomic a;
	int ret, result = FT_PASS;

	ft->spoiled = true;
	FT_TRY(meet(ft));
	memset(ft_mem.target, CANARY, 4096);
	/* Open the connection. */
	ft_atomic_set(ft, &a, (int)c->a, FI_UINT64, FI_SUM, 8, ft_mem.local,
		      NULL, ft_mem.local + 64, 1, &ft_mem.lmr, &ft_mem.tmr,
		      !ft->rank, 4096);
	FT_TRY(ft_atomic_now(ft, &a, FT_AT));
	FT_TRY(meet(ft));
	ft_known(ft, NULL, "an invalid key gives no error");
	if (ft->rank) {
		a.rma[0].key ^= 0x40000;
		a.rma[0].addr -= 4096;
		a.flags = FI_DELIVERY_COMPLETE;
		ret = ft_atomic(ft, op, &a);
		/* Where the model knows that none will come, wait only shortly. */
		if (!ret && ft_wait_for(ft, op, ft->todo[0] ? 0.3 :
					ft->run->timeout_s))
			result = ft_fail(ft, "it never completes");
		else if (!ret && !op->err)
			result = ft_fail(ft, "it completes with success");
	}
	if (result == FT_PASS)
		result = meet(ft);
	if (result == FT_PASS &&
	    pattern_is_filled(ft_mem.target, 4096, CANARY) >= 0)
		result = ft_fail(ft, "memory was written");
	if (result == FT_PASS) {
		ft_atomic_set(ft, &a, (int)c->a, FI_UINT64, FI_SUM, 8,
			      ft_mem.local, NULL, ft_mem.local + 64, 1,
			      &ft_mem.lmr, &ft_mem.tmr, !ft->rank, 4096);
		result = ft_atomic_now(ft, &a, FT_AT);
	}
	return result;
}

int main(int argc, char **argv)
{
	static const int by_type[] = { FT_ATOMIC, FT_FETCH, FT_COMPARE };
	static struct ft_case cases[128];
	struct ft_case *c = cases;
	uint64_t all = (uint64_t)atomic_ntypes;
	int i, call;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_mem;						\
	c->body = (body_);						\
	c->cfg.caps = FT_ATOMIC_CAPS;					\
	c++;								\
} while (0)

	CASE(queries, "queries-agree");
	for (call = 0; call < COUNT(by_type); call++)
	for (i = 0; i < atomic_ntypes; i++) {
		c->a = (uint64_t)by_type[call];
		c->b = (uint64_t)i;
		CASE(pairs, "%s-%s", ft_atomic_names[by_type[call]],
		     atomic_types[i].name);
	}
	for (call = 0; call < FT_ATOMIC_CALLS; call++) {
		if (call == FT_ATOMIC || call == FT_FETCH || call == FT_COMPARE)
			continue;
		c->a = (uint64_t)call;
		c->b = all;
		CASE(pairs, "%s-all-types", ft_atomic_names[call]);
	}
	for (call = 0; call < FT_ATOMIC_CALLS; call++) {
		c->a = (uint64_t)call;
		c->b = all;
		c->c = 1;
		CASE(pairs, "self-%s", ft_atomic_names[call]);
	}
	c->a = FT_ATOMICMSG;
	c->b = 7;
	c->c = FI_DELIVERY_COMPLETE;
	CASE(delivered, "atomicmsg-delivery-complete");
	c->a = FT_ATOMICMSG;
	c->b = 7;
	c->c = FI_TRANSMIT_COMPLETE;
	CASE(pairs, "atomicmsg-transmit-complete");
	for (call = 0; call < FT_ATOMIC_CALLS; call++) {
		c->a = (uint64_t)call;
		c->b = all;
		c->cfg.mr_mode = FT_MR_ALL;
		CASE(pairs, "any-mr-mode-%s", ft_atomic_names[call]);
	}
	c->a = FT_FETCH;
	CASE(read_only, "read-without-operand");
	c->a = FT_FETCHV;
	CASE(read_only, "readv-without-operand");
	c->a = FT_FETCHMSG;
	CASE(read_only, "readmsg-without-operand");
	c->a = FT_FETCH;
	CASE(sum, "concurrent-fetch-add");
	c->a = FT_ATOMIC;
	CASE(sum, "concurrent-add");
	c->a = FT_INJECT_ATOMIC;
	CASE(sum, "concurrent-inject-add");
	CASE(swap_sum, "concurrent-compare-swap");
	CASE(mixed, "beside-messages-and-rma");
	CASE(unsupported, "unsupported-pairs");
	c->a = FT_ATOMIC;
	c->b = FI_SUM;
	CASE(too_many, "too-many-elements");
	c->a = FT_FETCH;
	c->b = FI_SUM;
	CASE(too_many, "too-many-elements-fetch");
	c->a = FT_COMPARE;
	c->b = FI_CSWAP;
	CASE(too_many, "too-many-elements-compare");
	c->guard_s = 60;
	c->a = FT_ATOMICMSG;
	CASE(wrong_key, "wrong-key");
	c->guard_s = 60;
	c->a = FT_FETCHMSG;
	CASE(wrong_key, "wrong-key-fetch");
	return ft_main(argc, argv, "atomics", cases, (int)(c - cases));
}
