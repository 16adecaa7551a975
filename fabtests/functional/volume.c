/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A known volume of messages in all forms and sizes between two ranks, some before
 * their receives are posted.  Each rank prints what it sent and received, for
 * check-summary to compare with what lnx says (FI_LNX_SUMMARY):
 *	# volume: pid PID sent N messages B bytes received M messages C bytes
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES	(3u << 20)
#define ROUND		((int)(sizeof(sizes) / sizeof(sizes[0])))
#define AT_ONCE		4	/* receives of this rank, and sends of the other */

/* Both sides of every limit in lnx. */
static const size_t sizes[] = {
	0, 1, 64, 192, 193, 1984, 4096, 4097, 16320, 16321, 65536, 1 << 20,
	MAX_BYTES, 8,
};

static unsigned char *buf[2 * AT_ONCE];

/* The size of rank's i-th message: the two ranks differ. */
static size_t size_of(int rank, int i)
{
	return sizes[(i + 5 * rank) % ROUND];
}

static int number_of(const struct ft *ft, int rank)
{
	int rounds = ft->run->iters ? (int)ft->run->iters : 2;

	return rounds * ROUND - 3 * rank;
}

static int call_of(int i, size_t len)
{
	static const int calls[] = { FT_SEND, FT_SENDV, FT_SENDMSG,
				     FT_SENDDATA, FT_INJECT, FT_INJECTDATA };
	int call = calls[i % 6];

	return len > 64 && call >= FT_INJECT ? FT_SEND : call;
}

static int send_one(struct ft *ft, struct ft_op **op, int i)
{
	struct ft_msg m = {
		.tagged = i & 1, .addr = ft->addr[!ft->rank],
		.len = size_of(ft->rank, i), .tag = (uint64_t)i, .data = 7,
		.buf = buf[i % AT_ONCE],
	};

	m.call = call_of(i, m.len);
	*op = ft_op_new(ft);
	pattern_fill(m.buf, m.len, ft->run->seed, (unsigned)ft->rank,
		     (uint64_t)i);
	FT_CALL(ft, ft_send(ft, *op, &m));
	/* Injects have no completion. */
	if (m.call == FT_INJECT || m.call == FT_INJECTDATA)
		*op = NULL;
	return FT_PASS;
}

static int recv_one(struct ft *ft, struct ft_op **op, int i)
{
	struct ft_msg m = {
		.tagged = i & 1, .call = FT_RECV, .addr = ft->addr[!ft->rank],
		.len = MAX_BYTES, .tag = (uint64_t)i,
		.buf = buf[AT_ONCE + i % AT_ONCE],
	};

	*op = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, *op, &m));
	return FT_PASS;
}

static int check_one(struct ft *ft, struct ft_op *op, int i)
{
	size_t len = size_of(!ft->rank, i);
	long long bad;

	FT_DONE(ft, op);
	FT_CHECK(ft, op->len == len, "message %d: length %zu, not %zu", i,
		 op->len, len);
	bad = pattern_check(buf[AT_ONCE + i % AT_ONCE], len, ft->run->seed,
			    (unsigned)!ft->rank, (uint64_t)i);
	FT_CHECK(ft, bad < 0, "message %d: wrong byte at %lld", i, bad);
	return FT_PASS;
}

static int batch(struct ft *ft, int first, bool late)
{
	struct ft_op *in[AT_ONCE] = { 0 }, *out[AT_ONCE] = { 0 };
	int i;

	for (i = first; !late && i < first + AT_ONCE; i++)
		if (i < number_of(ft, !ft->rank))
			FT_TRY(recv_one(ft, &in[i - first], i));
	FT_CHECK(ft, !ft_barrier(ft), "the other rank left the case");
	for (i = first; i < first + AT_ONCE; i++)
		if (i < number_of(ft, ft->rank))
			FT_TRY(send_one(ft, &out[i - first], i));
	if (late)
		ft_linger(ft, 0.005);
	for (i = first; late && i < first + AT_ONCE; i++)
		if (i < number_of(ft, !ft->rank))
			FT_TRY(recv_one(ft, &in[i - first], i));
	for (i = first; i < first + AT_ONCE; i++)
		if (in[i - first])
			FT_TRY(check_one(ft, in[i - first], i));
	for (i = 0; i < AT_ONCE; i++)
		if (out[i])
			FT_DONE(ft, out[i]);
	return FT_PASS;
}

static int volume(struct ft *ft, const struct ft_case *c)
{
	uint64_t bytes[2] = { 0 };
	int i, r, most = 0;

	(void)c;
	for (i = 0; i < 2 * AT_ONCE; i++) {
		buf[i] = malloc(MAX_BYTES);
		FT_CHECK(ft, buf[i], "no memory");
	}
	for (r = 0; r < 2; r++) {
		for (i = 0; i < number_of(ft, r); i++)
			bytes[r] += size_of(r, i);
		most = i > most ? i : most;
	}
	for (i = 0; i < most; i += AT_ONCE)
		FT_TRY(batch(ft, i, i / AT_ONCE % 3 == 1));
	printf("# volume: pid %d sent %d messages %llu bytes received %d messages %llu bytes\n",
	       (int)getpid(), number_of(ft, ft->rank),
	       (unsigned long long)bytes[ft->rank], number_of(ft, !ft->rank),
	       (unsigned long long)bytes[!ft->rank]);
	fflush(stdout);
	for (i = 0; i < 2 * AT_ONCE; i++)
		free(buf[i]);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "volume", .fn = volume },
	};

	return ft_main(argc, argv, "a known volume of messages", cases, 1);
}
