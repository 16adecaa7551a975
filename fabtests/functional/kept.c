/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of messages that no receive matches yet: how much one takes, by its size, and
 * that it goes back to the system when they have been received.  Measured as resident
 * memory of the process, with everything that the libraries allocate.
 */
#include "hazard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB		(1024.0 * 1024)
#define STORED		7		/* tag of the messages that wait */
#define LAST		1		/* and of the one that comes after them */
#define MANY		100000
#define BURST		(64 << 20)	/* bytes of the larger ones */
#define LEFT		(12 * MIB)	/* may stay: spare slabs and frame buffers */
#define BATCH		64

/* Bytes of memory, of which one message of `size` may take at most `limit`. */
static const struct { size_t size, limit; } sizes[] = {
	{ 1, 128 }, { 8, 128 }, { 64, 192 }, { 100, 240 }, { 1024, 1024 + 256 },
	{ 4096, 4096 + 512 }, { 4097, 4097 * 11 / 10 }, { 5000, 5000 * 11 / 10 },
	{ 8193, 8193 * 11 / 10 }, { 12289, 12289 * 11 / 10 },
	{ 16320, 16320 * 11 / 10 }, { 16384, 16384 * 11 / 10 },
	{ 65536, 65536 * 11 / 10 },
};
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))

/*
 * Each frame that comes over tcp;ofi_rxm takes a buffer until that has let go of it.  Their
 * number is what a burst needed at most, and so these many bytes are no part of a message.
 */
#define LENT		(16 * MIB)

/* Several kinds of receives are posted, for each of which messages are in a table. */
#define INDEXED		384

static int number(const struct ft *ft, size_t size)
{
	int n = (int)(BURST / size);

	if (ft->run->quick)
		n /= 2;
	return n > MANY || size <= 8 ? MANY : n;
}

static uint64_t tag_of(bool apart, int i)
{
	return apart ? 1000 + (uint64_t)i : STORED;
}

/* Rank 1: n messages, and then one that rank 0 waits for. */
static int send_all(struct ft *ft, int n, size_t size, bool apart)
{
	struct ft_op **op = need(malloc(((size_t)n + 1) * sizeof(*op)));
	bool inject = size <= ft->o.info->tx_attr->inject_size;
	int i, k = 0, ret;

	for (i = 0; i < n; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[0], .len = size,
			.buf = outs[i % SLOTS], .tag = tag_of(apart, i),
			.call = inject ? FT_INJECT : FT_SEND,
		};

		op[k] = inject ? NULL : ft_op_new(ft);
		FT_CHECK(ft, !ft_send(ft, op[k], &m), "send %d not taken", i);
		k += !inject;
	}
	op[k] = put(ft, true, 0, LAST, 0, 8);
	FT_CHECK(ft, op[k], "the last send is refused");
	ret = all_done(ft, op, k + 1, "sends");
	free(op);
	ft_ops_drop(ft);
	return ret;
}

/* Rank 0: receive what waits, and check it. */
static int receive_all(struct ft *ft, int n, size_t size, bool apart)
{
	struct ft_op *op[BATCH];
	int i, k, some;

	for (i = 0; i < n; i += some) {
		some = n - i < BATCH ? n - i : BATCH;
		for (k = 0; k < some; k++) {
			op[k] = post(ft, true, 1, tag_of(apart, i + k),
				     ins + (size_t)k * size, size);
			FT_CHECK(ft, op[k], "receive %d not taken", i + k);
		}
		FT_TRY(all_done(ft, op, some, "receives of messages that waited"));
		for (k = 0; k < some; k++)
			FT_TRY(check(ft, op[k], ins + (size_t)k * size, size, 1,
				     (uint64_t)(i + k)));
		ft_ops_drop(ft);
	}
	return FT_PASS;
}

/* What one message of n takes, in bytes; all are received then. */
static int measure(struct ft *ft, int n, size_t size, bool apart, double *each)
{
	double before = resident_bytes();
	struct ft_op *op;

	if (ft->rank) {
		FT_TRY(send_all(ft, n, size, apart));
		ft_barrier(ft);
		return FT_PASS;
	}
	op = post(ft, true, 1, LAST, ins, 8);
	FT_CHECK(ft, op, "no receive");
	FT_TRY(all_done(ft, &op, 1, "receives"));
	*each = (resident_bytes() - before) / n;
	FT_TRY(receive_all(ft, n, size, apart));
	ft_barrier(ft);
	return FT_PASS;
}

static double lent(void)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");

	return links && strstr(links, "ofi_rxm") ? LENT : 0;
}

/*
 * Buffers of lnx and of the core provider, and the tables of this program.  As few messages
 * as that needs: memory that they take and that does not go back would hide what later ones
 * take.
 */
static int warm_up(struct ft *ft)
{
	double each;

	if (lent() > 0) {
		FT_TRY(measure(ft, MANY, 8, false, &each));
		FT_TRY(measure(ft, number(ft, 16384), 16384, false, &each));
	}
	return measure(ft, 1000, 4096, false, &each);
}

static int bytes_each(struct ft *ft, const struct ft_case *c)
{
	bool shm = ft_lnx_over_shm(ft);
	double begin, each = 0;
	int i, n;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	if (ft_sanitized())
		return ft_skip(ft, "a sanitizer's memory is not what is measured");
	prepare(ft, BATCH * sizes[NSIZES - 1].size);
	FT_TRY(warm_up(ft));
	begin = resident_bytes();
	for (i = 0; i < NSIZES; i++) {
		n = number(ft, sizes[i].size);
		FT_TRY(measure(ft, n, sizes[i].size, false, &each));
		if (ft->rank)
			continue;
		printf("# %zu bytes: a message that waits takes %.0f\n", sizes[i].size,
		       each);
		/* Larger ones stay with their senders there, or are read. */
		FT_CHECK(ft, (shm && sizes[i].size > 4096) ||
			 each <= (double)sizes[i].limit + lent() / n,
			 "%zu bytes take %.0f, not %zu at most", sizes[i].size, each,
			 sizes[i].limit);
		FT_CHECK(ft, shm || resident_bytes() - begin <= LEFT + 4 * lent(),
			 "%.1f MiB stay after messages of %zu bytes were received",
			 (resident_bytes() - begin) / MIB, sizes[i].size);
	}
	return FT_PASS;
}

/* Receives that stay posted: some name the source, some do not. */
static int indexed(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[16];
	double each = 0;
	int i;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	if (ft->run->directed)
		return ft_skip(ft, "receives must name their source here");
	if (ft_lnx_over_shm(ft))
		return ft_skip(ft, "the shm provider keeps these messages");
	prepare(ft, BATCH * 16384);
	FT_TRY(warm_up(ft));
	for (i = 0; i < 16 && !ft->rank; i++) {
		op[i] = post(ft, true, i % 2 ? 1 : -1, (1ull << 40) + (uint64_t)i, ins, 8);
		FT_CHECK(ft, op[i], "no receive");
	}
	FT_TRY(measure(ft, MANY, 1, true, &each));
	if (!ft->rank) {
		printf("# 1 byte, with different tags and two kinds of receives: "
		       "a message that waits takes %.0f\n", each);
		FT_CHECK(ft, each <= INDEXED + lent() / MANY, "1 byte takes %.0f, not %d at most", each,
			 INDEXED);
	}
	ft->spoiled = true;		/* receives stay posted */
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "kept-bytes-each", .fn = bytes_each },
		{ .name = "kept-indexed", .fn = indexed },
	};

	count_each_page();
	return ft_main(argc, argv, "memory of messages that wait for a receive", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
