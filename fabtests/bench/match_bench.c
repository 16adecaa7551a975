/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a match costs at different depths of the queues.
 *
 * In every case N entries are queued, and one operation takes one of them and
 * queues it again, so that N stays:
 *	pair		N = 0: post, then take; always the same receive
 *	pair_cold	the same with receives picked at random from 100000:
 *			what it costs to touch them, with nothing to search
 *	posted		receives of different tags, taken in the order posted
 *	posted_random	the same in random order: nearly every one is out of
 *			the processor's caches, see pair_cold
 *	posted_same	receives of one tag
 *	posted_two	tags as posted, and as many receives that name no
 *			source and match none of the messages
 *	unex, unex_random, unex_same	the same with unexpected messages
 * Each entry sits at the head of a 128-byte object, as it would in a real
 * receive.  Prints "match CASE N ns" with the median of the runs; --json
 * prints a list of objects that relate each depth to depth 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "match/match.h"

#define MAX_N		100000
#define MAX_RUNS	101
#define SRC		3

union object {
	struct lnx_mrecv r;
	char size[128];
};

union uobject {
	struct lnx_munex u;
	char size[256];
};

struct bench {
	struct lnx_match m;
	union object *recv;
	union object *other;
	union uobject *unex;
	uint32_t *order;		/* a permutation of 0 .. n - 1 */
	size_t n;
	size_t ops;
	unsigned int failures;
};

struct bench_case {
	const char *name;
	void (*fill)(struct bench *b);
	void (*run)(struct bench *b);
	bool shuffled;
	size_t only_depth;		/* 0: all depths */
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void post(struct bench *b, size_t i, uint64_t tag)
{
	b->recv[i].r.src = SRC;
	b->recv[i].r.tag = tag;
	b->recv[i].r.ignore = 0;
	lnx_match_post(&b->m, &b->recv[i].r);
}

static void store(struct bench *b, size_t i, uint64_t tag)
{
	b->unex[i].u.src = SRC;
	b->unex[i].u.tag = tag;
	lnx_match_store(&b->m, &b->unex[i].u);
}

static void fill_none(struct bench *b)
{
	post(b, 0, 0);
	if (!lnx_match_take(&b->m, SRC, 0))
		b->failures++;
}

static void fill_posted(struct bench *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		post(b, i, i);
}

static void fill_posted_same(struct bench *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		post(b, i, 0);
}

static void fill_posted_two(struct bench *b)
{
	size_t i;

	for (i = 0; i < b->n; i++) {
		b->other[i].r.src = LNX_ANY_SRC;
		b->other[i].r.tag = MAX_N + i;
		b->other[i].r.ignore = 0;
		lnx_match_post(&b->m, &b->other[i].r);
	}
	fill_posted(b);
}

static void fill_unex(struct bench *b)
{
	size_t i;

	fill_none(b);		/* so that the shape is known */
	for (i = 0; i < b->n; i++)
		store(b, i, i);
}

static void fill_unex_same(struct bench *b)
{
	size_t i;

	fill_none(b);
	for (i = 0; i < b->n; i++)
		store(b, i, 0);
}

static void run_pair(struct bench *b)
{
	size_t k;

	for (k = 0; k < b->ops; k++) {
		post(b, 0, k);
		if (!lnx_match_take(&b->m, SRC, k))
			b->failures++;
	}
}

static void run_pair_cold(struct bench *b)
{
	size_t k, at = 0;

	for (k = 0; k < b->ops; k++) {
		post(b, b->order[at], k);
		if (++at == b->n)
			at = 0;
		if (!lnx_match_take(&b->m, SRC, k))
			b->failures++;
	}
}

static void run_posted(struct bench *b)
{
	struct lnx_mrecv *r;
	size_t k, at = 0;

	for (k = 0; k < b->ops; k++) {
		r = lnx_match_take(&b->m, SRC, b->order[at]);
		if (++at == b->n)
			at = 0;
		if (r)
			lnx_match_post(&b->m, r);
		else
			b->failures++;
	}
}

static void run_posted_same(struct bench *b)
{
	struct lnx_mrecv *r;
	size_t k;

	for (k = 0; k < b->ops; k++) {
		r = lnx_match_take(&b->m, SRC, 0);
		if (r)
			lnx_match_post(&b->m, r);
		else
			b->failures++;
	}
}

static struct lnx_munex *claim(struct bench *b, uint64_t tag)
{
	struct lnx_munex *u = lnx_match_peek(&b->m, SRC, tag, 0);

	if (u)
		lnx_match_drop(&b->m, u);
	return u;
}

static void run_unex(struct bench *b)
{
	struct lnx_munex *u;
	size_t k, at = 0;

	for (k = 0; k < b->ops; k++) {
		u = claim(b, b->order[at]);
		if (++at == b->n)
			at = 0;
		if (u)
			lnx_match_store(&b->m, u);
		else
			b->failures++;
	}
}

static void run_unex_same(struct bench *b)
{
	struct lnx_munex *u;
	size_t k;

	for (k = 0; k < b->ops; k++) {
		u = claim(b, 0);
		if (u)
			lnx_match_store(&b->m, u);
		else
			b->failures++;
	}
}

static const struct bench_case cases[] = {
	{ "pair", fill_none, run_pair, false, 1 },
	{ "pair_cold", fill_none, run_pair_cold, true, MAX_N },
	{ "posted", fill_posted, run_posted, false, 0 },
	{ "posted_random", fill_posted, run_posted, true, 0 },
	{ "posted_same", fill_posted_same, run_posted_same, false, 0 },
	{ "posted_two", fill_posted_two, run_posted, false, 0 },
	{ "unex", fill_unex, run_unex, false, 0 },
	{ "unex_random", fill_unex, run_unex, true, 0 },
	{ "unex_same", fill_unex_same, run_unex_same, false, 0 },
};

static void set_order(struct bench *b, bool shuffled)
{
	uint64_t x = 88172645463325252ULL;
	uint32_t t;
	size_t i, j;

	for (i = 0; i < b->n; i++)
		b->order[i] = (uint32_t)i;
	for (i = b->n - 1; shuffled && i > 0; i--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		j = x % (i + 1);
		t = b->order[i];
		b->order[i] = b->order[j];
		b->order[j] = t;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median ns of one operation; negative if there is no memory. */
static double measure(struct bench *b, const struct bench_case *c, size_t n,
		      int runs)
{
	double ns[MAX_RUNS], t;
	int i;

	if (lnx_match_init(&b->m))
		return -1;
	b->n = n;
	set_order(b, c->shuffled);
	c->fill(b);
	c->run(b);
	for (i = 0; i < runs; i++) {
		t = now_ns();
		c->run(b);
		ns[i] = (now_ns() - t) / (double)b->ops;
	}
	lnx_match_fini(&b->m);
	qsort(ns, (size_t)runs, sizeof(ns[0]), by_value);
	return ns[runs / 2];
}

static void report(const struct bench_case *c, size_t n, double ns,
		   double base_ns, int runs, bool json, bool *first)
{
	if (!json) {
		printf("match %s %zu %.2f\n", c->name, n, ns);
		fflush(stdout);
		return;
	}
	printf("%s\n  {\"name\": \"match\", \"size\": %zu, \"subject\": "
	       "\"%s %zu\", \"reference\": \"%s %zu\", \"subject_ns\": %.2f, "
	       "\"reference_ns\": %.2f, \"ratio\": %.3f, \"runs\": %d}",
	       *first ? "" : ",", n, c->name, n, c->name,
	       c->only_depth ? n : 1, ns, base_ns,
	       ns / base_ns, runs);
	*first = false;
}

static void *zeroed(size_t size)
{
	size_t round = (size + 4095) / 4096 * 4096;
	void *p = aligned_alloc(4096, round);

	return p ? memset(p, 0, round) : NULL;
}

static int usage(FILE *out)
{
	fprintf(out, "usage: match_bench [--json] [--only CASE] [--runs N] "
		"[--ops N]\n"
		"Prints \"match CASE N ns\": nanoseconds of taking one of N "
		"entries and queueing it again.\n");
	return out == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const size_t depths[] = { 1, 10, 100, 1000, 10000, MAX_N };
	static struct bench b;
	const char *only = NULL;
	bool json = false, first = true, found = false;
	double ns, base_ns;
	size_t i, d;
	int runs = 9, a;

	b.ops = 2 * MAX_N;
	for (a = 1; a < argc; a++) {
		if (!strcmp(argv[a], "--json"))
			json = true;
		else if (!strcmp(argv[a], "--only") && a + 1 < argc)
			only = argv[++a];
		else if (!strcmp(argv[a], "--runs") && a + 1 < argc)
			runs = atoi(argv[++a]);
		else if (!strcmp(argv[a], "--ops") && a + 1 < argc)
			b.ops = strtoul(argv[++a], NULL, 0);
		else
			return usage(strcmp(argv[a], "--help") ? stderr :
				     stdout);
	}
	if (runs < 1 || runs > MAX_RUNS || !b.ops)
		return usage(stderr);
	b.recv = zeroed(MAX_N * sizeof(*b.recv));
	b.other = zeroed(MAX_N * sizeof(*b.other));
	b.unex = zeroed(MAX_N * sizeof(*b.unex));
	b.order = zeroed(MAX_N * sizeof(*b.order));
	if (!b.recv || !b.other || !b.unex || !b.order) {
		fprintf(stderr, "match_bench: no memory\n");
		return 1;
	}
	if (json)
		printf("[");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (only && strcmp(only, cases[i].name))
			continue;
		found = true;
		base_ns = 0;
		for (d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
			if (cases[i].only_depth &&
			    cases[i].only_depth != depths[d])
				continue;
			ns = measure(&b, &cases[i], depths[d], runs);
			if (ns < 0) {
				fprintf(stderr, "match_bench: no memory\n");
				return 1;
			}
			if (!d || cases[i].only_depth)
				base_ns = ns;
			report(&cases[i], depths[d], ns, base_ns, runs, json,
			       &first);
		}
	}
	if (json)
		printf("\n]\n");
	free(b.recv);
	free(b.other);
	free(b.unex);
	free(b.order);
	if (!found) {
		fprintf(stderr, "match_bench: no case '%s', see the head of "
			"match_bench.c for their names\n", only);
		return 2;
	}
	if (b.failures) {
		fprintf(stderr, "match_bench: %u operations found nothing\n",
			b.failures);
		return 1;
	}
	return 0;
}
