/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * More ranks than cores: ranks in a ring compute a little, then exchange halos
 * with both neighbours in blocking calls, as molecular dynamics or stencil
 * codes do.  All data is checked.  COUNT is the number of steps per slice.
 *
 * Like the benchmarks of two ranks it prints "halo BYTES MEDIAN MINIMUM": ns
 * per step, over the slices of each size.
 */
#include "check.h"

#define SLICES		5
#define MAX_BYTES	(64 << 10)
#define CELLS		4096		/* doubles that a step computes on */

static const int sizes[] = { 20 << 10, 32 << 10, MAX_BYTES };

struct halo {
	const struct mc *mc;
	int prev, next;
	char *out[2], *in[2];		/* to and from prev and next */
	double cell[CELLS];
};

/* Some tens of microseconds of work, whose result is used. */
static void compute(struct halo *h)
{
	int i, pass;

	for (pass = 0; pass < 4; pass++)
		for (i = 1; i < CELLS - 1; i++)
			h->cell[i] += 0.1 * (h->cell[i - 1] - 2 * h->cell[i] +
					     h->cell[i + 1]);
	if (!(h->cell[CELLS / 2] <= 1.0))
		mc_fail(h->mc, "the computation went wrong");
}

/* Post a receive, then send in a blocking call. */
static void exchange(struct halo *h, int len, int dir)
{
	int to = dir ? h->prev : h->next, from = dir ? h->next : h->prev;
	MPI_Request req;

	MPI_Irecv(h->in[dir], len, MPI_BYTE, from, dir, MPI_COMM_WORLD, &req);
	MPI_Send(h->out[dir], len, MPI_BYTE, to, dir, MPI_COMM_WORLD);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void sendrecv(struct halo *h, int len, int dir)
{
	int to = dir ? h->prev : h->next, from = dir ? h->next : h->prev;

	MPI_Sendrecv(h->out[dir], len, MPI_BYTE, to, dir, h->in[dir], len,
		     MPI_BYTE, from, dir, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Blocking sends before the receive is posted: every other rank receives first. */
static void round_robin(struct halo *h, int len, int dir)
{
	int to = dir ? h->prev : h->next, from = dir ? h->next : h->prev;
	bool first = !(h->mc->rank & 1);

	if (first)
		MPI_Send(h->out[dir], len, MPI_BYTE, to, dir, MPI_COMM_WORLD);
	MPI_Recv(h->in[dir], len, MPI_BYTE, from, dir, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	if (!first)
		MPI_Send(h->out[dir], len, MPI_BYTE, to, dir, MPI_COMM_WORLD);
}

static void step(struct halo *h, int len, uint64_t seq)
{
	const struct mc *mc = h->mc;
	int dir;

	compute(h);
	for (dir = 0; dir < 2; dir++)
		mc_fill(mc, h->out[dir], (size_t)len, mc->rank * 2 + dir, seq);
	for (dir = 0; dir < 2; dir++) {
		switch (seq % 3) {
		case 0:
			exchange(h, len, dir);
			break;
		case 1:
			sendrecv(h, len, dir);
			break;
		default:
			round_robin(h, len, dir);
		}
	}
	for (dir = 0; dir < 2; dir++)
		mc_check(mc, h->in[dir], (size_t)len,
			 (dir ? h->next : h->prev) * 2 + dir, seq, "halo");
}

static void measure(struct halo *h, int len, uint64_t *seq)
{
	const struct mc *mc = h->mc;
	double ns[SLICES];
	int s;
	long i;

	step(h, len, (*seq)++);			/* opens the connections */
	for (s = 0; s < SLICES; s++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		for (i = 0; i < mc->count; i++)
			step(h, len, (*seq)++);
		MPI_Barrier(MPI_COMM_WORLD);
		ns[s] = (MPI_Wtime() - start) * 1e9 / (double)mc->count;
	}
	mc_sort(ns, SLICES);
	if (!mc->rank)
		printf("halo %d %.1f %.1f\n", len, ns[SLICES / 2], ns[0]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct halo h;
	uint64_t seq = 0;
	struct mc mc;
	size_t i;
	int dir;

	mc_init(&mc, &argc, &argv, "mpi_crowd", 60);
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
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure(&h, sizes[i], &seq);
	for (dir = 0; dir < 2; dir++) {
		free(h.in[dir]);
		free(h.out[dir]);
	}
	return mc_fini(&mc);
}
