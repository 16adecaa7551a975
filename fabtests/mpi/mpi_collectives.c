/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Times of collective operations: barriers, sums of one number over all ranks, and
 * exchanges of all with all.  All data is checked.  COUNT is the number of operations per
 * slice.
 *
 * Prints "NAME BYTES MEDIAN": ns per operation, the median over the slices.
 */
#include "check.h"

#define SLICES		5
#define MAX_BYTES	(256 << 10)

static const int sizes[] = { 8, 1 << 10, 16 << 10, 64 << 10, MAX_BYTES };

struct job {
	const struct mc *mc;
	char *out, *in;			/* MAX_BYTES for each rank */
	uint64_t seq;
};

static void barrier(struct job *j, int bytes)
{
	(void)j;
	(void)bytes;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void sum(struct job *j, int bytes)
{
	const struct mc *mc = j->mc;
	double mine = (double)(mc->rank + 1) + (double)(j->seq % 1000), all = 0;

	(void)bytes;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (all != mc->n * (mc->n + 1) / 2.0 + mc->n * (double)(j->seq % 1000))
		mc_fail(mc, "the sum %llu is %g", (unsigned long long)j->seq, all);
}

static void all_to_all(struct job *j, int bytes)
{
	const struct mc *mc = j->mc;
	int r;

	for (r = 0; r < mc->n; r++)
		mc_fill(mc, j->out + (size_t)r * (size_t)bytes, (size_t)bytes,
			mc->rank * mc->n + r, j->seq);
	MPI_Alltoall(j->out, bytes, MPI_BYTE, j->in, bytes, MPI_BYTE, MPI_COMM_WORLD);
	for (r = 0; r < mc->n; r++)
		mc_check(mc, j->in + (size_t)r * (size_t)bytes, (size_t)bytes,
			 r * mc->n + mc->rank, j->seq, "all to all");
}

static void measure(struct job *j, const char *name, int bytes,
		    void (*op)(struct job *j, int bytes))
{
	double ns[SLICES];
	int s;
	long i;

	op(j, bytes);				/* opens the connections */
	j->seq++;
	for (s = 0; s < SLICES; s++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		for (i = 0; i < j->mc->count; i++, j->seq++)
			op(j, bytes);
		ns[s] = (MPI_Wtime() - start) * 1e9 / (double)j->mc->count;
	}
	mc_sort(ns, SLICES);
	if (!j->mc->rank)
		printf("%s %d %.1f\n", name, bytes, ns[SLICES / 2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct job j = { 0 };
	struct mc mc;
	size_t i;

	mc_init(&mc, &argc, &argv, "mpi_collectives", 20);
	j.mc = &mc;
	j.out = mc_alloc(&mc, (size_t)mc.n * MAX_BYTES);
	j.in = mc_alloc(&mc, (size_t)mc.n * MAX_BYTES);
	measure(&j, "barrier", 0, barrier);
	measure(&j, "sum", 8, sum);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure(&j, "alltoall", sizes[i], all_to_all);
	free(j.out);
	free(j.in);
	return mc_fini(&mc);
}
