/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which receive gets which message: sources, tags, ignore masks, order.  Rank 0
 * receives, the others send; each message contains its number.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENDERS		3
#define MANY		64
#define SMALL		48u
#define LARGE		40000u

static unsigned char bufs[4 * MANY][LARGE];

static size_t size_of(uint64_t seq, bool mixed)
{
	return mixed && seq % 3 == 1 ? LARGE : SMALL + seq % 17;
}

static struct ft_op *post(struct ft *ft, int slot, fi_addr_t src, uint64_t tag,
			  uint64_t ignore)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = src, .buf = bufs[slot], .len = LARGE,
		.tag = tag, .ignore = ignore,
	};

	return ft_recv(ft, op, &m) ? NULL : op;
}

static int send_seq(struct ft *ft, uint64_t seq, uint64_t tag, size_t len,
		    struct ft_op **op)
{
	static unsigned char out[4 * MANY][LARGE];
	unsigned char *buf = out[seq % (4 * MANY)];
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[0], .buf = buf, .len = len,
		.tag = tag,
	};

	pattern_fill(buf, len, ft->run->seed, (unsigned)ft->rank, seq);
	*op = ft_op_new(ft);
	FT_CALL(ft, ft_send(ft, *op, &m));
	return FT_PASS;
}

static int check(struct ft *ft, struct ft_op *op, int slot, int sender,
		 uint64_t seq, size_t len, uint64_t tag)
{
	long long at;

	FT_DONE(ft, op);
	FT_CHECK(ft, op->src == ft->addr[sender], "slot %d: source %lld, not "
		 "rank %d", slot, (long long)op->src, sender);
	FT_CHECK(ft, op->tag == tag, "slot %d: tag %#llx, not %#llx", slot,
		 (unsigned long long)op->tag, (unsigned long long)tag);
	FT_CHECK(ft, op->len == len, "slot %d: %zu bytes, not %zu", slot,
		 op->len, len);
	at = pattern_check(bufs[slot], len, ft->run->seed, (unsigned)sender,
			   seq);
	FT_CHECK(ft, at < 0, "slot %d: not message %llu of rank %d (byte "
		 "%lld)", slot, (unsigned long long)seq, sender, at);
	return FT_PASS;
}

/* Each sender sends n messages with tag 7; late: before receives are posted. */
static int send_all(struct ft *ft, int n, bool late, bool mixed)
{
	struct ft_op *ops[MANY];
	int i;

	if (!ft->rank || ft->rank > SENDERS) {
		ft_barrier(ft);
		return FT_PASS;
	}
	if (!late)
		ft_barrier(ft);
	for (i = 0; i < n; i++)
		FT_TRY(send_seq(ft, (uint64_t)i, 7,
				size_of((uint64_t)i, mixed), &ops[i]));
	if (late)
		ft_barrier(ft);
	for (i = 0; i < n; i++)
		FT_DONE(ft, ops[i]);
	return FT_PASS;
}

/* Directed receives, the last sender's first: messages of others must not match. */
static int directed(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *ops[SENDERS][MANY / 4];
	bool late = c->a, mixed = c->b;
	int s, i, n = MANY / 4;

	if (ft->rank)
		return send_all(ft, n, late, mixed);
	if (late) {
		ft_barrier(ft);
		ft_linger(ft, 0.01);
	}
	for (s = SENDERS - 1; s >= 0; s--) {
		for (i = 0; i < n; i++) {
			ops[s][i] = post(ft, s * n + i, ft->addr[s + 1], 7, 0);
			FT_CHECK(ft, ops[s][i], "receive not posted");
		}
	}
	if (!late)
		ft_barrier(ft);
	for (s = 0; s < SENDERS; s++)
		for (i = 0; i < n; i++)
			FT_TRY(check(ft, ops[s][i], s * n + i, s + 1,
				     (uint64_t)i,
				     size_of((uint64_t)i, mixed), 7));
	return FT_PASS;
}

/* Wildcard receives: sources are reported, and each sender's order is kept. */
static int any_source(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *ops[SENDERS * MANY];
	bool late = c->a, mixed = c->b;
	int i, s, next[SENDERS + 1] = { 0 };

	if (ft->run->directed)
		return ft_skip(ft, "--directed");
	if (ft->rank)
		return send_all(ft, MANY, late, mixed);
	if (late) {
		ft_barrier(ft);
		ft_linger(ft, 0.01);
	}
	for (i = 0; i < SENDERS * MANY; i++) {
		ops[i] = post(ft, i, FI_ADDR_UNSPEC, 7, 0);
		FT_CHECK(ft, ops[i], "receive not posted");
	}
	if (!late)
		ft_barrier(ft);
	for (i = 0; i < SENDERS * MANY; i++) {
		FT_DONE(ft, ops[i]);
		for (s = 1; s <= SENDERS && ops[i]->src != ft->addr[s]; s++)
			;
		FT_CHECK(ft, s <= SENDERS, "source %lld is not a sender",
			 (long long)ops[i]->src);
		FT_TRY(check(ft, ops[i], i, s, (uint64_t)next[s],
			     size_of((uint64_t)next[s], mixed), 7));
		next[s]++;
	}
	return FT_PASS;
}

/*
 * Directed receives for rank 1 between wildcard ones.  Only rank 1 sends, so
 * that the result is known: receives are used in the order posted.
 */
static int mixed_source(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *ops[MANY];
	bool late = c->a, mixed = c->b;
	int i;

	if (ft->rank > 1) {
		ft_barrier(ft);
		return FT_PASS;
	}
	if (ft->rank)
		return send_all(ft, MANY, late, mixed);
	if (late) {
		ft_barrier(ft);
		ft_linger(ft, 0.01);
	}
	for (i = 0; i < MANY; i++) {
		ops[i] = post(ft, i, i % 3 == 2 ? ft_any(ft, 1) : ft->addr[1],
			      7, i % 2 ? 0xf0 : 0);
		FT_CHECK(ft, ops[i], "receive not posted");
	}
	if (!late)
		ft_barrier(ft);
	for (i = 0; i < MANY; i++)
		FT_TRY(check(ft, ops[i], i, 1, (uint64_t)i,
			     size_of((uint64_t)i, mixed), 7));
	return FT_PASS;
}

/* Messages and receives by tag, and the result that MPI's rule requires. */
struct rule {
	uint64_t tag, ignore;
	int gets;			/* index into sent[]: the message that it gets */
};

static const uint64_t sent[] = {
	0, 1, 0x8000000000000001ULL, 5, 5, 0xffffffffffffffffULL, 6, 1
};
static const struct rule rules[] = {
	{ 5, 0, 3 },				/* exact */
	{ 0x8000000000000000ULL, 0x7fffffffffffffffULL, 2 }, /* top bit set */
	{ 1, 0, 1 },
	{ 4, 3, 4 },				/* 4..7: the second 5 */
	{ 0, ~0ULL, 0 },			/* any tag: the oldest that is left */
	{ 0xffffffffffffffffULL, 0, 5 },
	{ 0x1234, ~0ULL, 6 },			/* tag bits under ignore */
	{ 1, 0, 7 },
};
#define NRULES	(int)(sizeof(rules) / sizeof(rules[0]))

static int tags(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *ops[NRULES];
	bool late = c->a, mixed = c->b;
	int i;

	if (ft->rank == 1) {
		if (!late)
			ft_barrier(ft);
		for (i = 0; i < NRULES; i++)
			FT_TRY(send_seq(ft, (uint64_t)i, sent[i],
					size_of((uint64_t)i, mixed), &ops[i]));
		if (late)
			ft_barrier(ft);
		for (i = 0; i < NRULES; i++)
			FT_DONE(ft, ops[i]);
		return FT_PASS;
	}
	if (ft->rank) {
		ft_barrier(ft);
		return FT_PASS;
	}
	if (late) {
		ft_barrier(ft);
		ft_linger(ft, 0.01);
	}
	for (i = 0; i < NRULES; i++) {
		ops[i] = post(ft, i, i % 2 ? ft->addr[1] : ft_any(ft, 1),
			      rules[i].tag, rules[i].ignore);
		FT_CHECK(ft, ops[i], "receive not posted");
	}
	if (!late)
		ft_barrier(ft);
	for (i = 0; i < NRULES; i++) {
		uint64_t seq = (uint64_t)rules[i].gets;

		FT_TRY(check(ft, ops[i], i, 1, seq, size_of(seq, mixed),
			     sent[seq]));
	}
	return FT_PASS;
}

/* Tagged receives never match untagged messages, nor untagged receives tagged ones. */
static int kinds_apart(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[2];
	int i;

	(void)c;
	if (ft->rank == 1) {
		struct ft_msg m = { .addr = ft->addr[0], .len = SMALL };

		ft_barrier(ft);
		for (i = 0; i < 2; i++) {	/* untagged first */
			m.tagged = i;
			m.buf = bufs[i];
			pattern_fill(bufs[i], SMALL, ft->run->seed, 1,
				     (uint64_t)i);
			op[i] = ft_op_new(ft);
			FT_CALL(ft, ft_send(ft, op[i], &m));
		}
		FT_DONE(ft, op[0]);
		FT_DONE(ft, op[1]);
		return FT_PASS;
	}
	if (ft->rank) {
		ft_barrier(ft);
		return FT_PASS;
	}
	/* Posted in the other order, the tagged one with any tag. */
	for (i = 1; i >= 0; i--) {
		struct ft_msg m = {
			.tagged = i, .addr = ft_any(ft, 1), .buf = bufs[i],
			.len = LARGE, .ignore = ~0ULL,
		};

		op[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, op[i], &m));
	}
	ft_barrier(ft);
	for (i = 0; i < 2; i++) {
		FT_DONE(ft, op[i]);
		FT_CHECK(ft, op[i]->len == SMALL &&
			 pattern_check(bufs[i], SMALL, ft->run->seed, 1,
				       (uint64_t)i) < 0,
			 "%s receive got the wrong message",
			 i ? "tagged" : "untagged");
	}
	return FT_PASS;
}

/*
 * Small messages directly behind large ones with the same tag, received with
 * exact and wildcard receives: they must not overtake the large ones.
 */
static int order(struct ft *ft, const struct ft_case *c)
{
	static const size_t len[] = { 8, 40000, 0, 40000, 64, 16385, 1, 4097 };
	int i, round, rounds = ft->run->quick ? 20 : 200;
	bool late = c->a;

	for (round = 0; round < rounds; round++) {
		struct ft_op *ops[MANY];

		ft_ops_drop(ft);
		if (ft->rank > 1) {
			ft_barrier(ft);
			continue;
		}
		if (ft->rank == !late)		/* this rank goes second */
			ft_barrier(ft);
		for (i = 0; i < 16; i++) {
			if (ft->rank) {
				FT_TRY(send_seq(ft, (uint64_t)i, 7,
						len[(i + round) % 8],
						&ops[i]));
				continue;
			}
			ops[i] = post(ft, i, (i + round) % 3 ? ft->addr[1] :
				      ft_any(ft, 1), 7,
				      (i * 7 + round) % 5 ? 0 : ~0ULL);
			FT_CHECK(ft, ops[i], "receive not posted");
		}
		if (ft->rank != !late)
			ft_barrier(ft);
		for (i = 0; i < 16; i++) {
			if (ft->rank)
				FT_DONE(ft, ops[i]);
			else
				FT_TRY(check(ft, ops[i], i, 1, (uint64_t)i,
					     len[(i + round) % 8], 7));
		}
		/* The contexts are used again in the next round. */
	}
	return FT_PASS;
}

static void add(struct ft_case **c, const char *name,
		int (*fn)(struct ft *, const struct ft_case *), int late,
		int mixed)
{
	snprintf((*c)->name, sizeof((*c)->name), "%s-%s%s", name,
		 late ? "unexpected" : "expected", mixed ? "-mixed-sizes" : "");
	(*c)->fn = fn;
	(*c)->a = (uint64_t)late;
	(*c)->b = (uint64_t)mixed;
	(*c)->ranks = SENDERS + 1;
	(*c)++;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[32];
	struct ft_case *c = cases;
	int late, mixed;

	for (mixed = 0; mixed < 2; mixed++) {
		for (late = 0; late < 2; late++) {
			add(&c, "directed", directed, late, mixed);
			add(&c, "any-source", any_source, late, mixed);
			add(&c, "mixed-source", mixed_source, late, mixed);
			add(&c, "tags", tags, late, mixed);
		}
	}
	for (late = 0; late < 2; late++)
		add(&c, "order", order, late, 1);
	strcpy(c->name, "tagged-and-untagged-apart");
	c->fn = kinds_apart;
	c->ranks = 2;
	c++;
	return ft_main(argc, argv, "matching by source and tag, and order",
		       cases, (int)(c - cases));
}
