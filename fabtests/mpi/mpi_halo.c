/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A halo exchange with computation in between, as stencil codes do it: each rank of a ring
 * begins to exchange with both neighbours, computes for as long as an exchange takes, and
 * then waits.  All data is checked.  COUNT is the number of steps per slice.
 *
 * Prints "halo BYTES STEP EXCHANGE COMPUTE": ns per step, medians over the slices of each
 * size, of the whole and of each part alone.  If the network works while the program
 * computes, STEP is hardly more than the longer part; else it is the sum of both.
 */
#include "check.h"

#define SLICES		5
#define MAX_BYTES	(1 << 20)
#define CELLS		1024		/* doubles that a unit of work goes over */
#define UNITS_TRIED	2000

static const int sizes[] = { 1 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_BYTES };

struct halo {
	const struct mc *mc;
	int prev, next;
	char *out[2], *in[2];		/* to and from prev and next */
	double cell[CELLS];
	long units;			/* of work in a step */
	uint64_t seq;
};

static void compute(struct halo *h, long units)
{
	int i;

	while (units--)
		for (i = 1; i < CELLS - 1; i++)
			h->cell[i] += 0.1 * (h->cell[i - 1] - 2 * h->cell[i] +
					     h->cell[i + 1]);
	if (!(h->cell[CELLS / 2] <= 1.0))
		mc_fail(h->mc, "the computation went wrong");
}

/* bytes 0: compute only; units 0: exchange only. */
static void step(struct halo *h, int bytes, long units)
{
	const struct mc *mc = h->mc;
	MPI_Request req[4];
	int dir;

	if (!bytes) {
		compute(h, units);
		return;
	}
	for (dir = 0; dir < 2; dir++)
		mc_fill(mc, h->out[dir], (size_t)bytes, mc->rank * 2 + dir, h->seq);
	for (dir = 0; dir < 2; dir++)
		MPI_Irecv(h->in[dir], bytes, MPI_BYTE, dir ? h->next : h->prev, dir,
			  MPI_COMM_WORLD, &req[dir]);
	for (dir = 0; dir < 2; dir++)
		MPI_Isend(h->out[dir], bytes, MPI_BYTE, dir ? h->prev : h->next, dir,
			  MPI_COMM_WORLD, &req[2 + dir]);
	compute(h, units);
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	for (dir = 0; dir < 2; dir++)
		mc_check(mc, h->in[dir], (size_t)bytes,
			 (dir ? h->next : h->prev) * 2 + dir, h->seq, "halo");
	h->seq++;
}

/* ns per step, on all ranks the same. */
static double measure(struct halo *h, int bytes, long units)
{
	double ns[SLICES];
	int s;
	long i;

	for (s = 0; s < SLICES; s++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		for (i = 0; i < h->mc->count; i++)
			step(h, bytes, units);
		MPI_Barrier(MPI_COMM_WORLD);
		ns[s] = (MPI_Wtime() - start) * 1e9 / (double)h->mc->count;
	}
	mc_sort(ns, SLICES);
	MPI_Bcast(&ns[SLICES / 2], 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	return ns[SLICES / 2];
}

/* How much work takes so long? */
static long units_for(struct halo *h, double ns)
{
	double start = MPI_Wtime(), one;
	long units;

	compute(h, UNITS_TRIED);
	one = (MPI_Wtime() - start) * 1e9 / UNITS_TRIED;
	units = (long)(ns / (one > 1 ? one : 1)) + 1;
	MPI_Bcast(&units, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return units;
}

int main(int argc, char **argv)
{
	static struct halo h;
	struct mc mc;
	size_t i;
	int dir;

	mc_init(&mc, &argc, &argv, "mpi_halo", 20);
	if (mc.n < 2)
		mc_fail(&mc, "at least two ranks");
	h.mc = &mc;
	h.prev = (mc.rank + mc.n - 1) % mc.n;
	h.next = (mc.rank + 1) % mc.n;
	for (dir = 0; dir < 2; dir++) {
		h.in[dir] = mc_alloc(&mc, MAX_BYTES);
		h.out[dir] = mc_alloc(&mc, MAX_BYTES);
	}
	for (i = 0; i < CELLS; i++)
		h.cell[i] = (double)(i % 7) / 7;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double exchange, work, both;
		long units;

		step(&h, sizes[i], 0);		/* opens the connections */
		exchange = measure(&h, sizes[i], 0);
		units = units_for(&h, exchange);
		work = measure(&h, 0, units);
		both = measure(&h, sizes[i], units);
		if (!mc.rank)
			printf("halo %d %.1f %.1f %.1f\n", sizes[i], both, exchange, work);
		fflush(stdout);
	}
	for (dir = 0; dir < 2; dir++) {
		free(h.in[dir]);
		free(h.out[dir]);
	}
	return mc_fini(&mc);
}
