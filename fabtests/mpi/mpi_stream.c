/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A steady stream from each rank of the first half to one of the second half: rounds of
 * large messages, some of them always under way, with every byte checked.  COUNT is the
 * number of rounds.  contrib/lab/tour shows what networks do with it.
 */
#include "check.h"

#define BYTES		(1 << 18)
#define UNDER_WAY	8
#define MESSAGES	16		/* in a round */

struct stream {
	const struct mc *mc;
	int other;			/* rank of the other end; -1: it has none */
	bool sends;
	char *buf[UNDER_WAY];
	MPI_Request req[UNDER_WAY];
	uint64_t begun, ended;
};

static void begin(struct stream *s)
{
	int k = (int)(s->begun % UNDER_WAY);

	if (s->sends) {
		mc_fill(s->mc, s->buf[k], BYTES, s->mc->rank, s->begun);
		MPI_Isend(s->buf[k], BYTES, MPI_BYTE, s->other, 1, MPI_COMM_WORLD,
			  &s->req[k]);
	} else {
		MPI_Irecv(s->buf[k], BYTES, MPI_BYTE, s->other, 1, MPI_COMM_WORLD,
			  &s->req[k]);
	}
	s->begun++;
}

/* They arrive in order. */
static void end(struct stream *s)
{
	int k = (int)(s->ended % UNDER_WAY);
	MPI_Status st;

	MPI_Wait(&s->req[k], &st);
	if (!s->sends) {
		if (mc_count_of(s->mc, &st) != BYTES)
			mc_fail(s->mc, "message %llu: %d bytes",
				(unsigned long long)s->ended, mc_count_of(s->mc, &st));
		mc_check(s->mc, s->buf[k], BYTES, s->other, s->ended, "stream");
	}
	s->ended++;
}

int main(int argc, char **argv)
{
	struct stream s = { .other = -1 };
	uint64_t bytes = 0, all;
	struct mc mc;
	double start;
	int i, half;
	long r;

	mc_init(&mc, &argc, &argv, "mpi_stream", 100);
	s.mc = &mc;
	half = mc.n / 2;
	s.sends = mc.rank < half;
	if (s.sends)
		s.other = mc.rank + half;
	else if (mc.rank < 2 * half)
		s.other = mc.rank - half;
	for (i = 0; i < UNDER_WAY; i++)
		s.buf[i] = mc_alloc(&mc, BYTES);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (r = 0; mc_more(&mc, r); r++) {
		for (i = 0; s.other >= 0 && i < MESSAGES; i++) {
			if (s.begun - s.ended == UNDER_WAY)
				end(&s);
			begin(&s);
		}
	}
	while (s.ended < s.begun)
		end(&s);
	if (s.sends)
		bytes = s.ended * BYTES;
	MPI_Reduce(&bytes, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!mc.rank)
		printf("%llu messages, %.1f MB/s, every byte right, in order\n",
		       (unsigned long long)(all / BYTES),
		       (double)all / 1e6 / (MPI_Wtime() - start));
	for (i = 0; i < UNDER_WAY; i++)
		free(s.buf[i]);
	return mc_fini(&mc);
}
