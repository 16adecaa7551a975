/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * COUNT messages from every rank to the next one, without a pause, with mixed
 * sizes, tags and wildcards: the i-th message must match the i-th receive.
 *
 * The matching rule requires this: receive i matches message i (by its tag or
 * by any tag), and all earlier receives match the earlier messages.
 */
#include "check.h"

#define WINDOW		64
#define MAX_BYTES	50000

static size_t len_of(const struct mc *mc, int from, long seq)
{
	uint64_t s = mc->seed + (uint64_t)seq * 48271u + (uint64_t)from;
	uint64_t r = pattern_random(&s);

	if (r % 1000 == 0)
		return (r >> 16) % MAX_BYTES;
	if (r % 50 == 0)
		return (r >> 16) % 5000;
	return (r >> 16) % 65;
}

static int tag_of(const struct mc *mc, int from, long seq)
{
	uint64_t s = mc->seed ^ ((uint64_t)seq * 69621u + (uint64_t)from);

	return (int)(pattern_random(&s) % 3);
}

int main(int argc, char **argv)
{
	MPI_Request rx[WINDOW], tx[WINDOW];
	static char in[WINDOW][MAX_BYTES], out[WINDOW][MAX_BYTES];
	long posted = 0, got = 0, sent = 0;
	MPI_Status st;
	int i, to, from, done;
	struct mc mc;

	mc_init(&mc, &argc, &argv, "mpi_order", 1000000);
	to = (mc.rank + 1) % mc.n;
	from = (mc.rank + mc.n - 1) % mc.n;
	for (i = 0; i < WINDOW; i++)
		tx[i] = MPI_REQUEST_NULL;
	while (got < mc.count || sent < mc.count) {
		/* Receives are posted before the messages arrive, or after. */
		long ahead = got / 1000 % 3 ? WINDOW : 1 + got % 7;

		for (; posted < mc.count && posted < got + ahead; posted++) {
			int tag = tag_of(&mc, from, posted);

			MPI_Irecv(in[posted % WINDOW], MAX_BYTES, MPI_BYTE,
				  posted % 5 < 2 ? MPI_ANY_SOURCE : from,
				  posted % 7 < 2 ? MPI_ANY_TAG : tag,
				  MPI_COMM_WORLD, &rx[posted % WINDOW]);
		}
		for (i = 0; i < 8 && sent < mc.count; i++) {
			size_t len = len_of(&mc, mc.rank, sent);
			char *buf = out[sent % WINDOW];

			MPI_Test(&tx[sent % WINDOW], &done,
				 MPI_STATUS_IGNORE);
			if (!done)
				break;
			mc_fill(&mc, buf, len, mc.rank, (uint64_t)sent);
			MPI_Isend(buf, (int)len, MPI_BYTE, to,
				  tag_of(&mc, mc.rank, sent), MPI_COMM_WORLD,
				  &tx[sent % WINDOW]);
			sent++;
		}
		while (got < posted) {
			size_t len = len_of(&mc, from, got);

			MPI_Test(&rx[got % WINDOW], &done, &st);
			if (!done)
				break;
			if (st.MPI_SOURCE != from ||
			    st.MPI_TAG != tag_of(&mc, from, got) ||
			    mc_count_of(&mc, &st) != (int)len)
				mc_fail(&mc, "receive %ld: rank %d tag %d, %d "
					"bytes; not rank %d tag %d, %zu "
					"bytes", got, st.MPI_SOURCE,
					st.MPI_TAG, mc_count_of(&mc, &st),
					from, tag_of(&mc, from, got), len);
			mc_check(&mc, in[got % WINDOW], len, from,
				 (uint64_t)got, "order");
			got++;
		}
	}
	MPI_Waitall(WINDOW, tx, MPI_STATUSES_IGNORE);
	return mc_fini(&mc);
}
