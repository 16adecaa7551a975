/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Storms from all sides, received from their ends: COUNT messages from each rank to each
 * other one are all sent before any is received, and then the last one is probed for and
 * received first.  With a small limit for messages that wait for a receive
 * (FI_LNX_UNEXPECTED_LIMIT), what a probe or a receive waits for must come all the same.
 * COUNT is less than what a provider queues for one peer: MPI libraries wait for room there.
 */
#include "check.h"

#define MAX_BYTES	40000

static size_t len_of(const struct mc *mc, int from, int to, long seq)
{
	uint64_t s = mc->seed + (uint64_t)seq * 131071u +
		     (uint64_t)from * 521u + (uint64_t)to;

	return mc_random_len(&s, MAX_BYTES);
}

static void send_all(const struct mc *mc, MPI_Request *req, char **buf)
{
	long i, n = 0;
	int to;

	for (i = 0; i < mc->count; i++) {
		for (to = 0; to < mc->n; to++, n++) {
			size_t len = len_of(mc, mc->rank, to, i);

			req[n] = MPI_REQUEST_NULL;
			buf[n] = mc_alloc(mc, len);
			if (to == mc->rank)
				continue;
			mc_fill(mc, buf[n], len, mc->rank, (uint64_t)i);
			MPI_Isend(buf[n], (int)len, MPI_BYTE, to, (int)i, MPI_COMM_WORLD,
				  &req[n]);
		}
	}
}

/* Message seq of one rank, or of any that has not sent it yet: returns which. */
static int receive_one(char *buf, int src, int seq, long turn, MPI_Status *st)
{
	MPI_Message msg;
	MPI_Request req;
	int flag = 0;

	switch (turn % 5) {
	case 0:
		MPI_Probe(src, seq, MPI_COMM_WORLD, st);
		src = st->MPI_SOURCE;
		MPI_Recv(buf, MAX_BYTES, MPI_BYTE, src, seq, MPI_COMM_WORLD, st);
		break;
	case 1:
		while (!flag)
			MPI_Iprobe(src, seq, MPI_COMM_WORLD, &flag, st);
		src = st->MPI_SOURCE;
		MPI_Recv(buf, MAX_BYTES, MPI_BYTE, src, seq, MPI_COMM_WORLD, st);
		break;
	case 2:
		MPI_Mprobe(src, seq, MPI_COMM_WORLD, &msg, st);
		MPI_Mrecv(buf, MAX_BYTES, MPI_BYTE, &msg, st);
		break;
	case 3:
		while (!flag)
			MPI_Improbe(src, seq, MPI_COMM_WORLD, &flag, &msg, st);
		MPI_Mrecv(buf, MAX_BYTES, MPI_BYTE, &msg, st);
		break;
	default:
		MPI_Irecv(buf, MAX_BYTES, MPI_BYTE, src, seq, MPI_COMM_WORLD, &req);
		MPI_Wait(&req, st);
	}
	return st->MPI_SOURCE;
}

int main(int argc, char **argv)
{
	MPI_Request *req;
	MPI_Status st;
	struct mc mc;
	char *buf, **out;
	long seq, turn = 0, i, n;
	bool *came;
	int k, from;

	mc_init(&mc, &argc, &argv, "mpi_backlog", 400);
	n = mc.count * mc.n;
	req = mc_alloc(&mc, sizeof(*req) * (size_t)n);
	out = mc_alloc(&mc, sizeof(*out) * (size_t)n);
	came = mc_alloc(&mc, sizeof(*came) * (size_t)mc.n);
	buf = mc_alloc(&mc, MAX_BYTES);
	send_all(&mc, req, out);
	for (seq = mc.count - 1; seq >= 0; seq--) {
		memset(came, 0, sizeof(*came) * (size_t)mc.n);
		for (k = 1; k < mc.n; k++, turn++) {
			bool any = seq % 3 == 0;

			from = receive_one(buf, any ? MPI_ANY_SOURCE :
					   (mc.rank + k) % mc.n, (int)seq, turn, &st);
			if (from == mc.rank || came[from])
				mc_fail(&mc, "message %ld came twice from %d", seq, from);
			came[from] = true;
			if (mc_count_of(&mc, &st) !=
			    (int)len_of(&mc, from, mc.rank, seq))
				mc_fail(&mc, "rank %d, message %ld: %d bytes", from, seq,
					mc_count_of(&mc, &st));
			mc_check(&mc, buf, (size_t)mc_count_of(&mc, &st), from,
				 (uint64_t)seq, "backlog");
		}
	}
	MPI_Waitall((int)n, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < n; i++)
		free(out[i]);
	free(out);
	free(req);
	free(came);
	free(buf);
	return mc_fini(&mc);
}
