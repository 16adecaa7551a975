/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A message of every size goes around the ring, forwarded with all kinds of
 * send.  COUNT is the number of rounds for each size.
 */
#include "check.h"

#define MAX_BYTES	(8 << 20)

static const int sizes[] = {
	0, 1, 8, 63, 64, 65, 128, 129, 1000, 4095, 4096, 4097, 16320, 16384,
	16385, 65536, 131072, 131073, 1 << 20, MAX_BYTES
};

static void pass_on(const struct mc *mc, char *buf, int len, int to, int tag,
		    long round)
{
	MPI_Request req;

	switch (round % 3) {
	case 0:
		MPI_Send(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD);
		break;
	case 1:
		MPI_Ssend(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD);
		break;
	default:
		MPI_Isend(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	(void)mc;
}

/* One token: rank 0 sends it and gets it back. */
static void token(const struct mc *mc, char *buf, int len, long round)
{
	int to = (mc->rank + 1) % mc->n, from = (mc->rank + mc->n - 1) % mc->n;
	uint64_t seq = (uint64_t)round * 1000 + (uint64_t)len;
	MPI_Status st;

	if (!mc->rank) {
		mc_fill(mc, buf, (size_t)len, 0, seq);
		pass_on(mc, buf, len, to, 7, round);
		memset(buf, 0, (size_t)len);
	}
	MPI_Recv(buf, MAX_BYTES, MPI_BYTE, from, 7, MPI_COMM_WORLD, &st);
	if (mc_count_of(mc, &st) != len)
		mc_fail(mc, "%d bytes came, not %d", mc_count_of(mc, &st),
			len);
	mc_check(mc, buf, (size_t)len, 0, seq, "token");
	if (mc->rank)
		pass_on(mc, buf, len, to, 7, round);
}

/* All ranks at once, in both directions. */
static void shift(const struct mc *mc, char *in, char *out, int len, long round)
{
	int next = (mc->rank + 1) % mc->n;
	int prev = (mc->rank + mc->n - 1) % mc->n;
	uint64_t seq = (uint64_t)round * 1000 + (uint64_t)len + 500;
	MPI_Status st;
	int dir;

	for (dir = 0; dir < 2; dir++) {
		int to = dir ? prev : next, from = dir ? next : prev;

		mc_fill(mc, out, (size_t)len, mc->rank, seq);
		memset(in, 0, (size_t)len);
		MPI_Sendrecv(out, len, MPI_BYTE, to, dir, in, MAX_BYTES,
			     MPI_BYTE, from, dir, MPI_COMM_WORLD, &st);
		if (mc_count_of(mc, &st) != len)
			mc_fail(mc, "%d bytes came, not %d",
				mc_count_of(mc, &st), len);
		mc_check(mc, in, (size_t)len, from, seq, "shift");
	}
}

int main(int argc, char **argv)
{
	char *in, *out;
	struct mc mc;
	size_t i;
	long r;

	mc_init(&mc, &argc, &argv, "mpi_ring", 6);
	in = mc_alloc(&mc, MAX_BYTES);
	out = mc_alloc(&mc, MAX_BYTES);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (r = 0; r < mc.count; r++) {
			/* A ring of one would wait for itself in Ssend. */
			if (mc.n > 1)
				token(&mc, in, sizes[i], r);
			shift(&mc, in, out, sizes[i], r);
		}
	}
	free(in);
	free(out);
	return mc_fini(&mc);
}
