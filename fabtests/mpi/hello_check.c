/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first MPI program to try: every pair of ranks exchanges buffers of many
 * sizes in both directions at once, and every byte that arrives is checked.  It
 * prints where each rank runs, which shows the pairs that share a node.
 *
 * Usage: hello_check [ROUNDS]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int sizes[] = {
	0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 1000, 1024, 2047, 4000, 4095,
	4096, 4097, 8192, 10000, 16383, 16384, 16385, 32768, 65535, 65536,
	65537, 131072, 262145, 1 << 20, (1 << 20) + 1, 4 << 20,
};

#define NSIZES	((int)(sizeof(sizes) / sizeof(sizes[0])))
#define MAX_SIZE (4 << 20)
#define GUARD	64
#define GUARD_BYTE 0xa5

struct message {
	int src;
	int dst;
	int size;
	int round;
};

/*
 * The content depends on everything that could be mixed up: sender, receiver,
 * message and position.
 */
static uint64_t word_at(const struct message *m, uint64_t index)
{
	uint64_t x = index + 1;

	x ^= (uint64_t)m->src << 48 ^ (uint64_t)m->dst << 36 ^
	     (uint64_t)m->round << 28 ^ (uint64_t)m->size << 3;
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static void fill(unsigned char *buf, const struct message *m)
{
	int off;

	for (off = 0; off < m->size; off += 8) {
		uint64_t w = word_at(m, off / 8);
		int n = m->size - off < 8 ? m->size - off : 8;

		memcpy(buf + off, &w, n);
	}
}

/* 0, or 1 after printing what is wrong. */
static int check(const unsigned char *buf, const struct message *m)
{
	int off, i;

	for (off = 0; off < m->size; off += 8) {
		uint64_t w = word_at(m, off / 8);
		int n = m->size - off < 8 ? m->size - off : 8;

		if (!memcmp(buf + off, &w, n))
			continue;
		fprintf(stderr, "hello_check: rank %d: %d bytes from rank %d "
			"are wrong from byte %d on\n", m->dst, m->size,
			m->src, off);
		return 1;
	}
	for (i = 0; i < GUARD; i++) {
		if (buf[m->size + i] == GUARD_BYTE)
			continue;
		fprintf(stderr, "hello_check: rank %d: %d bytes from rank %d "
			"wrote past the end of the buffer\n", m->dst, m->size,
			m->src);
		return 1;
	}
	return 0;
}

static int check_status(const MPI_Status *st, const struct message *m, int tag)
{
	int count = -1;

	MPI_Get_count(st, MPI_BYTE, &count);
	if (st->MPI_SOURCE == m->src && st->MPI_TAG == tag && count == m->size)
		return 0;
	fprintf(stderr, "hello_check: rank %d: received %d bytes, tag %d, of "
		"rank %d where rank %d sent %d bytes, tag %d\n", m->dst, count,
		st->MPI_TAG, st->MPI_SOURCE, m->src, m->size, tag);
	return 1;
}

static int exchange(int rank, int other, int round, unsigned char *out,
		    unsigned char *in)
{
	int i, errors = 0;

	for (i = 0; i < NSIZES; i++) {
		struct message tx = { rank, other, sizes[i], round };
		struct message rx = { other, rank, sizes[i], round };
		int tag = round * NSIZES + i;
		MPI_Status st;

		fill(out, &tx);
		memset(in, 0, rx.size);
		memset(in + rx.size, GUARD_BYTE, GUARD);
		MPI_Sendrecv(out, tx.size, MPI_BYTE, other, tag,
			     in, rx.size, MPI_BYTE, other, tag,
			     MPI_COMM_WORLD, &st);
		errors += check_status(&st, &rx, tag) || check(in, &rx);
	}
	return errors;
}

/* Each step pairs the ranks differently; after the last one all pairs have met. */
static int all_pairs(int rank, int nranks, int round, unsigned char *out,
		     unsigned char *in, long *messages)
{
	int step, errors = 0;

	for (step = 0; step < nranks; step++) {
		int other = (step - rank + nranks) % nranks;

		if (other == rank)
			continue;
		errors += exchange(rank, other, round, out, in);
		*messages += NSIZES;
	}
	return errors;
}

static void say_hosts(int rank, int nranks)
{
	char host[MPI_MAX_PROCESSOR_NAME] = "";
	char *all = NULL;
	int len, i;

	MPI_Get_processor_name(host, &len);
	if (rank == 0)
		all = malloc((size_t)nranks * sizeof(host));
	if (rank == 0 && !all)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Gather(host, sizeof(host), MPI_CHAR, all, sizeof(host), MPI_CHAR,
		   0, MPI_COMM_WORLD);
	for (i = 0; rank == 0 && i < nranks; i++)
		printf("hello_check: rank %d runs on %s\n", i,
		       all + (size_t)i * sizeof(host));
	free(all);
}

int main(int argc, char **argv)
{
	long sums[2] = { 0, 0 }, total[2] = { 0, 0 };
	int rank, nranks, round, rounds;
	unsigned char *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	rounds = argc > 1 ? atoi(argv[1]) : 1;
	if (rounds < 1 || rounds > 255) {
		if (rank == 0)
			fprintf(stderr, "hello_check: '%s' rounds; use 1 to "
				"255\n", argv[1]);
		MPI_Finalize();
		return 2;
	}
	if (nranks < 2) {
		fprintf(stderr, "hello_check: needs 2 ranks or more\n");
		MPI_Finalize();
		return 2;
	}
	out = malloc(MAX_SIZE + GUARD);
	in = malloc(MAX_SIZE + GUARD);
	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 2);

	say_hosts(rank, nranks);
	for (round = 0; round < rounds; round++)
		sums[1] += all_pairs(rank, nranks, round, out, in, &sums[0]);
	MPI_Allreduce(sums, total, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);

	if (rank == 0 && total[1])
		printf("hello_check: %d ranks, %ld messages, %ld WRONG\n",
		       nranks, total[0], total[1]);
	else if (rank == 0)
		printf("hello_check: %d ranks, %ld messages, all data "
		       "correct\n", nranks, total[0]);
	free(out);
	free(in);
	MPI_Finalize();
	return total[1] != 0;
}
