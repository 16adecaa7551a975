/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collectives with equal and unequal parts, small to large.  COUNT rounds. */
#include "check.h"

#define MAX_BYTES	(1 << 20)	/* to each rank */

static const int sizes[] = {
	1, 7, 64, 1000, 4096, 16384, 20000, 65536, 262144, MAX_BYTES
};

static uint64_t seq_of(const struct mc *mc, int to, int size, long round)
{
	return ((uint64_t)round * 64 + (uint64_t)to) * 4194304u +
	       (uint64_t)size + (uint64_t)mc->n;
}

static void equal(const struct mc *mc, char *out, char *in, int size,
		  long round)
{
	int i;

	for (i = 0; i < mc->n; i++)
		mc_fill(mc, out + (size_t)i * (size_t)size, (size_t)size,
			mc->rank, seq_of(mc, i, size, round));
	memset(in, 0, (size_t)size * (size_t)mc->n);
	MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < mc->n; i++)
		mc_check(mc, in + (size_t)i * (size_t)size, (size_t)size, i,
			 seq_of(mc, mc->rank, size, round), "alltoall");
}

/* From rank a to rank b: size / (1 + (a + b) % 5) bytes. */
static int part(int size, int a, int b)
{
	return size / (1 + (a + b) % 5);
}

static void uneven(const struct mc *mc, char *out, char *in, int size,
		   long round)
{
	int *v = mc_alloc(mc, sizeof(*v) * 4 * (size_t)mc->n);
	int *sc = v, *sd = v + mc->n, *rc = v + 2 * mc->n, *rd = v + 3 * mc->n;
	int i;

	for (i = 0; i < mc->n; i++) {
		sc[i] = part(size, mc->rank, i);
		rc[i] = part(size, i, mc->rank);
		sd[i] = rd[i] = i * size;
		mc_fill(mc, out + sd[i], (size_t)sc[i], mc->rank,
			seq_of(mc, i, size, round));
	}
	memset(in, 0x3c, (size_t)size * (size_t)mc->n);
	MPI_Alltoallv(out, sc, sd, MPI_BYTE, in, rc, rd, MPI_BYTE,
		      MPI_COMM_WORLD);
	for (i = 0; i < mc->n; i++) {
		mc_check(mc, in + rd[i], (size_t)rc[i], i,
			 seq_of(mc, mc->rank, size, round), "alltoallv");
		if (pattern_is_filled(in + rd[i] + rc[i],
				      (size_t)(size - rc[i]), 0x3c) >= 0)
			mc_fail(mc, "alltoallv wrote after the part of rank "
				"%d", i);
	}
	free(v);
}

static void others(const struct mc *mc, char *out, char *in, int size,
		   long round)
{
	long sum, mine = mc->rank + round, want = 0;
	int i, root = (int)(round % mc->n);

	for (i = 0; i < mc->n; i++)
		want += i + round;
	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != want)
		mc_fail(mc, "allreduce: %ld, not %ld", sum, want);
	if (mc->rank == root)
		mc_fill(mc, out, (size_t)size, root, 3);
	MPI_Bcast(out, size, MPI_BYTE, root, MPI_COMM_WORLD);
	mc_check(mc, out, (size_t)size, root, 3, "bcast");
	mc_fill(mc, out, (size_t)size, mc->rank, 4);
	MPI_Allgather(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < mc->n; i++)
		mc_check(mc, in + (size_t)i * (size_t)size, (size_t)size, i, 4,
			 "allgather");
}

int main(int argc, char **argv)
{
	char *in, *out;
	struct mc mc;
	size_t i;
	long r;

	mc_init(&mc, &argc, &argv, "mpi_alltoall", 5);
	in = mc_alloc(&mc, (size_t)mc.n * MAX_BYTES);
	out = mc_alloc(&mc, (size_t)mc.n * MAX_BYTES);
	for (r = 0; mc_more(&mc, r); r++) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			equal(&mc, out, in, sizes[i], r);
			uneven(&mc, out, in, sizes[i], r);
			others(&mc, out, in, sizes[i], r);
		}
	}
	free(in);
	free(out);
	return mc_fini(&mc);
}
