/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random messages and random receives between all ranks at once, checked
 * against the matching rule.  Everything is computed from the seed, so every
 * rank knows what every other one sends; the remote cq data of a message is its
 * number.  The rule does not depend on timing:
 *
 * A receive gets a message that it may match; and no message that the same rank
 * sent earlier and that it may match was given to a later receive or to none.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS		4
#define MAX_BYTES	200000
#define TAGS		4
#define MAX_MSGS	400		/* from one rank to one other */

struct message {
	uint64_t tag;
	size_t len;
	int call;
	int taken_by;			/* number of the receive, or -1 */
};

struct receive {
	int src;			/* rank or -1 */
	uint64_t tag, ignore;
	struct ft_op *op;
	unsigned char *buf;
	int from;			/* rank whose message it got */
	int seq;
	int cancelled;
};

/* Messages from one rank to this one, or from this one to another. */
static struct message msgs[RANKS][MAX_MSGS];
static struct message mine[RANKS][MAX_MSGS];
static struct receive recvs[RANKS * MAX_MSGS];

/*
 * Messages between two ranks.  Bare shm blocks for ever after a few messages to
 * itself that are not received yet.
 */
static int count(struct ft *ft, int from, int to, int n)
{
	return from == to && ft_is_bare(ft, "shm") ? 0 : n;
}

static int count_all(struct ft *ft, int n)
{
	return n * (RANKS - 1) + count(ft, 0, 0, n);
}

static size_t random_len(struct ft *ft, uint64_t *s)
{
	static const size_t edges[] = { 0, 1, 64, 65, 128, 129, 4096, 4097,
					16384, 16385, 65536, 131073 };
	uint64_t r = pattern_random(s);

	switch (r % 4) {
	case 0:
		return edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return (r >> 8) % 300;
	case 2:
		return (r >> 8) % 20000;
	default:
		return ft->run->quick ? (r >> 8) % 64 :
			(r >> 8) % MAX_BYTES;
	}
}

static void plan(struct ft *ft, uint64_t seed, int from, int to, int n,
		 struct message *m)
{
	uint64_t s = seed + (uint64_t)(from * RANKS + to) * 7919;
	size_t inject = ft->o.info->tx_attr->inject_size;
	int i;

	for (i = 0; i < n; i++, m++) {
		m->tag = pattern_random(&s) % TAGS;
		m->len = random_len(ft, &s);
		m->call = pattern_random(&s) % 2 && m->len <= inject ?
			  FT_INJECTDATA : FT_SENDDATA;
		m->taken_by = -1;
	}
}

static bool takes(const struct receive *r, int from, const struct message *m)
{
	return (r->src < 0 || r->src == from) &&
	       !((r->tag ^ m->tag) & ~r->ignore);
}

static int post_one(struct ft *ft, struct receive *r)
{
	struct ft_msg m = {
		.tagged = true, .len = MAX_BYTES, .tag = r->tag,
		.ignore = r->ignore,
		.addr = r->src < 0 ? FI_ADDR_UNSPEC : ft->addr[r->src],
	};

	r->from = r->seq = -1;
	r->cancelled = 0;
	r->buf = malloc(MAX_BYTES);
	FT_CHECK(ft, r->buf, "out of memory");
	m.buf = r->buf;
	r->op = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, r->op, &m));
	return FT_PASS;
}

static void random_receive(uint64_t *s, struct receive *r)
{
	uint64_t x = pattern_random(s);

	r->src = x % 3 ? (int)((x >> 8) % RANKS) : -1;
	r->tag = (x >> 16) % TAGS;
	switch ((x >> 24) % 4) {
	case 0: r->ignore = ~0ULL; break;	/* any tag */
	case 1: r->ignore = 1; break;		/* two tags */
	default: r->ignore = 0;
	}
}

/* Sends and receives in random order, as fast as they are accepted. */
static int traffic(struct ft *ft, uint64_t seed, int n, int nrecv)
{
	uint64_t s = seed ^ pattern_mix((uint64_t)ft->rank + 1);
	int next[RANKS] = { 0 }, posted = 0, ntx = 0, i;
	int all = count_all(ft, n), left = all;
	static struct ft_op *tx[RANKS * MAX_MSGS];
	static unsigned char *out[RANKS * MAX_MSGS];

	while (left || posted < nrecv) {
		uint64_t x = pattern_random(&s);

		if (left && (x % 2 || posted == nrecv)) {
			int to = (int)((x >> 8) % RANKS);
			struct message *m;
			struct ft_msg f;

			while (next[to] == count(ft, ft->rank, to, n))
				to = (to + 1) % RANKS;
			m = &mine[to][next[to]];
			out[ntx] = malloc(m->len + 1);
			FT_CHECK(ft, out[ntx], "out of memory");
			pattern_fill(out[ntx], m->len, seed,
				     (unsigned)ft->rank,
				     (uint64_t)(to * MAX_MSGS + next[to]));
			f = (struct ft_msg) {
				.tagged = true, .call = m->call,
				.addr = ft->addr[to], .buf = out[ntx],
				.len = m->len, .tag = m->tag,
				.data = (uint64_t)next[to],
			};
			tx[ntx] = m->call == FT_SENDDATA ? ft_op_new(ft) :
				  NULL;
			FT_CALL(ft, ft_send(ft, tx[ntx], &f));
			ntx++;
			next[to]++;
			left--;
		} else {
			random_receive(&s, &recvs[posted]);
			FT_TRY(post_one(ft, &recvs[posted++]));
		}
		if (!(x >> 60))
			ft_progress(ft);
		if (x >> 32 & 1)
			ft_progress(ft);
	}
	/*
	 * All is sent, or will be when it is received: what the random receives
	 * left is received by receives that match anything.
	 */
	for (i = 0; i < all; i++) {
		struct receive *r = &recvs[nrecv + i];

		r->src = -1;
		r->tag = 0;
		r->ignore = ~0ULL;
		FT_TRY(post_one(ft, r));
	}
	for (i = 0; i < ntx; i++) {
		if (tx[i])
			FT_DONE(ft, tx[i]);
		free(out[i]);
	}
	return FT_PASS;
}

/* Wait until every message has arrived; cancel the receives that got none. */
static int collect(struct ft *ft, int n, int nrecv)
{
	int all = count_all(ft, n), total = nrecv + all;
	int i, got = 0, before = -1;
	double end = ft_now() + ft->run->timeout_s;

	while (got < all) {
		ft_progress(ft);
		for (got = 0, i = 0; i < total; i++)
			got += recvs[i].op->done != 0;
		if (got != before)
			end = ft_now() + ft->run->timeout_s;
		before = got;
		FT_CHECK(ft, ft_now() < end, "%d of %d messages came", got,
			 all);
	}
	for (i = 0; i < total; i++) {
		if (recvs[i].op->done)
			continue;
		FT_CALL(ft, fi_cancel(&ft->o.ep->fid, recvs[i].op));
		FT_CHECK(ft, !ft_wait(ft, recvs[i].op), "receive %d cannot be "
			 "cancelled", i);
		FT_CHECK(ft, recvs[i].op->err == FI_ECANCELED, "receive %d "
			 "got a message after all had arrived", i);
		recvs[i].cancelled = 1;
	}
	return FT_PASS;
}

static int judge_one(struct ft *ft, uint64_t seed, int i, int n)
{
	struct receive *r = &recvs[i];
	struct message *m;
	long long at;
	int from;

	if (r->cancelled)
		return FT_PASS;
	FT_DONE(ft, r->op);
	for (from = 0; from < RANKS && r->op->src != ft->addr[from]; from++)
		;
	FT_CHECK(ft, from < RANKS, "receive %d: source %lld is not a rank", i,
		 (long long)r->op->src);
	FT_CHECK(ft, r->op->data < (uint64_t)n, "receive %d: cq data %#llx",
		 i, (unsigned long long)r->op->data);
	r->from = from;
	r->seq = (int)r->op->data;
	m = &msgs[from][r->seq];
	FT_CHECK(ft, takes(r, from, m) && r->op->tag == m->tag, "receive %d "
		 "(source %d tag %llu ignore %#llx) got message %d of rank "
		 "%d with tag %llu", i, r->src, (unsigned long long)r->tag,
		 (unsigned long long)r->ignore, r->seq, from,
		 (unsigned long long)m->tag);
	FT_CHECK(ft, m->taken_by < 0, "message %d of rank %d was received "
		 "twice: %d and %d", r->seq, from, m->taken_by, i);
	m->taken_by = i;
	FT_CHECK(ft, r->op->len == m->len, "message %d of rank %d: length "
		 "%zu, not %zu", r->seq, from, r->op->len, m->len);
	at = pattern_check(r->buf, m->len, seed, (unsigned)from,
			   (uint64_t)(ft->rank * MAX_MSGS + r->seq));
	FT_CHECK(ft, at < 0, "message %d of rank %d (%zu bytes): wrong byte "
		 "at %lld", r->seq, from, m->len, at);
	return FT_PASS;
}

static int judge(struct ft *ft, uint64_t seed, int n, int nrecv)
{
	int total = nrecv + count_all(ft, n), i, s, k;

	for (i = 0; i < total; i++)
		FT_TRY(judge_one(ft, seed, i, n));
	for (i = 0; i < total; i++) {
		struct receive *r = &recvs[i];

		/* A receive that got nothing could have matched any of them. */
		for (s = 0; s < RANKS; s++) {
			int upto = r->cancelled ? count(ft, s, ft->rank, n) :
				   r->from == s ? r->seq : 0;

			for (k = 0; k < upto; k++)
				FT_CHECK(ft, !takes(r, s, &msgs[s][k]) ||
					 (msgs[s][k].taken_by >= 0 &&
					  msgs[s][k].taken_by < i),
					 "receive %d took message %d of rank "
					 "%d and left message %d to receive "
					 "%d", i, r->seq, s, k,
					 msgs[s][k].taken_by);
		}
	}
	return FT_PASS;
}

static int round_of(struct ft *ft, uint64_t seed, int n)
{
	int i, ret, nrecv = n * RANKS / 2;

	for (i = 0; i < RANKS; i++) {
		plan(ft, seed, i, ft->rank, n, msgs[i]);
		plan(ft, seed, ft->rank, i, n, mine[i]);
	}
	ft_ops_drop(ft);
	ft_barrier(ft);
	ret = traffic(ft, seed, n, nrecv);
	if (ret == FT_PASS)
		ret = collect(ft, n, nrecv);
	if (ret == FT_PASS)
		ret = judge(ft, seed, n, nrecv);
	if (ret != FT_PASS)
		return ret;		/* buffers may still be in use */
	for (i = 0; i < nrecv + count_all(ft, n); i++)
		free(recvs[i].buf);
	return FT_PASS;
}

static int run(struct ft *ft, const struct ft_case *c)
{
	uint64_t rounds = ft->run->iters ? ft->run->iters :
			  ft->run->quick ? 3 : c->b;
	uint64_t i;
	char why[FT_WHY_MAX];

	if (ft->n != RANKS)
		return ft_skip(ft, "needs exactly %d ranks", RANKS);
	for (i = 0; i < rounds; i++) {
		ft_guard(ft, c->name);
		if (round_of(ft, ft->run->seed + i, (int)c->a) == FT_PASS &&
		    !ft->unexpected[0])
			continue;
		snprintf(why, sizeof(why), "%s", ft->unexpected[0] ? ft->unexpected :
			 ft->why);
		return ft_fail(ft, "seed %llu: %.200s",
			       (unsigned long long)(ft->run->seed + i), why);
	}
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "few", .fn = run, .ranks = RANKS, .a = 12, .b = 40 },
		{ .name = "many", .fn = run, .ranks = RANKS, .a = 150,
		  .b = 10, .slow = true },
	};

	return ft_main(argc, argv, "random matching against its rule (-I "
		       "rounds)", cases, sizeof(cases) / sizeof(cases[0]));
}
