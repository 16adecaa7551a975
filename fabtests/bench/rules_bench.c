/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a change of the rules costs while many peers are in use.
 *
 * Each peer has two rails.  The rules are pairs, of which each one matches the rails of
 * some peers, and one net.  Each round replaces all of them, and then renews the tables of
 * all peers in calls of lnx_rules_sweep, of which a progress pass makes one.  Prints
 *
 *	rules RULES peers PEERS: change US, calls N, longest US, all US
 *
 * in CPU time, with medians of the rounds, but for the longest call, which is the least of
 * the rounds' longest: what an interrupt adds to one is not the library's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/nets.h"
#include "policy/rules.h"

#define RAILS		2
#define RULES_MAX	128
#define ROUNDS		9
#define TEXT_MAX	96

struct peer {
	struct lnx_nid nid[RAILS];
	struct lnx_rule_peer *table;
	unsigned renewed;		/* times */
};

struct bench {
	struct lnx_rules *rules;
	struct peer *peer;
	size_t n;
};

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static struct lnx_nid nid_of(unsigned rail, unsigned number)
{
	struct lnx_nid nid = { .net = "tcp", .number = (uint16_t)rail, .len = 4 };

	nid.addr[0] = 10;
	nid.addr[1] = (uint8_t)(77 + rail);
	nid.addr[2] = (uint8_t)(number >> 8);
	nid.addr[3] = (uint8_t)number;
	return nid;
}

/* ---- the peers, as a sweep sees them ---- */

static void *next(void *arg, void *at)
{
	struct bench *b = arg;
	struct peer *p = at ? (struct peer *)at + 1 : b->peer;

	return p == b->peer + b->n ? NULL : p;
}

static unsigned nids(void *arg, void *at, struct lnx_nid *nid, unsigned max)
{
	const struct peer *p = at;

	(void)arg;
	if (max < RAILS)
		return 0;
	memcpy(nid, p->nid, sizeof(p->nid));
	return RAILS;
}

static struct lnx_rule_peer **table(void *arg, void *at)
{
	(void)arg;
	return &((struct peer *)at)->table;
}

static void renewed(void *arg, void *at)
{
	(void)arg;
	((struct peer *)at)->renewed++;
}

/* ---- a round ---- */

/* Another set of rules in each round. */
static int change(struct bench *b, unsigned n, unsigned round)
{
	static char text[RULES_MAX][2][TEXT_MAX];
	static struct lnx_rule_spec spec[RULES_MAX];
	struct lnx_refusal r = { 0 };
	unsigned i;

	memset(spec, 0, sizeof(spec));
	spec[0].side[LNX_RULE_SRC] = round & 1 ? "tcp1" : "tcp";
	for (i = 1; i < n; i++) {
		snprintf(text[i][0], TEXT_MAX, "10.%u.0.1@tcp%s", 77 + (i & 1),
			 i & 1 ? "1" : "");
		snprintf(text[i][1], TEXT_MAX, "10.%u.%u.[0-255/%u]@tcp%s", 77 + (i & 1),
			 i % 40, 1 + (round + i) % 7, i & 1 ? "1" : "");
		spec[i].side[LNX_RULE_SRC] = text[i][0];
		spec[i].side[LNX_RULE_DST] = text[i][1];
	}
	if (!lnx_rules_replace(b->rules, spec, n, NULL, &r))
		return 0;
	fprintf(stderr, "rules_bench: %s\n", r.why);
	return -1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One round; *longest becomes less if none of its calls takes so long. */
static int run(struct bench *b, unsigned n, unsigned round, double *changing, double *all,
	       double *longest, unsigned *calls)
{
	const struct lnx_rules_peers peers = {
		.arg = b, .next = next, .nids = nids, .table = table,
		.renewed = renewed,
	};
	struct lnx_rules_sweep sweep = { 0 };
	double start = now_us(), most = 0;
	bool done = false;
	size_t i;

	if (change(b, n, round))
		return -1;
	*changing = now_us() - start;
	*all = 0;
	for (*calls = 0; !done; ++*calls) {
		double took = now_us();

		done = lnx_rules_sweep(b->rules, &sweep, &peers, LNX_RULES_SWEEP);
		took = now_us() - took;
		*all += took;
		most = took > most ? took : most;
	}
	if (!round || most < *longest)
		*longest = most;
	for (i = 0; i < b->n; i++) {
		if (b->peer[i].renewed != round + 1 ||
		    lnx_rules_stale(b->rules, b->peer[i].table)) {
			fprintf(stderr, "rules_bench: peer %zu was renewed %u times\n", i,
				b->peer[i].renewed);
			return -1;
		}
	}
	return 0;
}

static int measure(unsigned n, size_t peers)
{
	struct lnx_nid ours[RAILS] = { nid_of(0, 1), nid_of(1, 1) };
	static const struct lnx_nets no_nets;
	double changing[ROUNDS], all[ROUNDS], longest = 0;
	struct bench b = { .n = peers };
	unsigned round, calls = 0;
	int ret = -1;
	size_t i;

	b.rules = lnx_rules_create(&no_nets);
	b.peer = calloc(peers, sizeof(*b.peer));
	if (!b.rules || !b.peer) {
		fprintf(stderr, "rules_bench: no memory\n");
		goto out;
	}
	lnx_rules_rails(b.rules, ours, RAILS);
	for (i = 0; i < peers; i++) {
		b.peer[i].nid[0] = nid_of(0, (unsigned)i + 2);
		b.peer[i].nid[1] = nid_of(1, (unsigned)i + 2);
	}
	for (round = 0; round < ROUNDS; round++)
		if (run(&b, n, round, &changing[round], &all[round], &longest, &calls))
			goto out;
	qsort(changing, ROUNDS, sizeof(*changing), by_value);
	qsort(all, ROUNDS, sizeof(*all), by_value);
	printf("rules %u peers %zu: change %.0f us, calls %u, longest %.0f us, all %.0f us\n",
	       n, peers, changing[ROUNDS / 2], calls, longest, all[ROUNDS / 2]);
	ret = 0;
out:
	for (i = 0; b.peer && i < peers; i++)
		lnx_rules_leave(b.rules, b.peer[i].table);
	free(b.peer);
	lnx_rules_destroy(b.rules);
	return ret;
}

int main(void)
{
	static const unsigned rules[] = { 1, 8, 64, RULES_MAX };
	static const size_t peers[] = { 100, 10000 };
	size_t i, k;

	for (k = 0; k < sizeof(peers) / sizeof(peers[0]); k++)
		for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
			if (measure(rules[i], peers[k]))
				return 1;
	return 0;
}
