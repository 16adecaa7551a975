/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of unknown length from unknown senders, found with MPI_Probe,
 * MPI_Iprobe, MPI_Mprobe and MPI_Improbe.  COUNT messages from each rank to
 * each; what a probe reports must be what is then received.
 */
#include "check.h"

#define MAX_BYTES	200000
#define TAGS		3

static size_t len_of(const struct mc *mc, int from, int to, long seq)
{
	uint64_t s = mc->seed + (uint64_t)seq * 131071u +
		     (uint64_t)from * 521u + (uint64_t)to;

	return mc_random_len(&s, MAX_BYTES);
}

struct out {
	MPI_Request *req;
	char **buf;
	long n;
};

static void send_all(const struct mc *mc, struct out *o)
{
	long i;
	int to;

	o->n = 0;
	o->req = mc_alloc(mc, sizeof(*o->req) * (size_t)(mc->count * mc->n));
	o->buf = mc_alloc(mc, sizeof(*o->buf) * (size_t)(mc->count * mc->n));
	for (i = 0; i < mc->count; i++) {
		for (to = 0; to < mc->n; to++, o->n++) {
			size_t len = len_of(mc, mc->rank, to, i);

			o->buf[o->n] = mc_alloc(mc, len);
			mc_fill(mc, o->buf[o->n], len, mc->rank, (uint64_t)i);
			MPI_Isend(o->buf[o->n], (int)len, MPI_BYTE, to,
				  (int)(i % TAGS), MPI_COMM_WORLD,
				  &o->req[o->n]);
		}
	}
}

/* One message, found by the kind of probe of this turn and received into buf. */
static void receive_one(const struct mc *mc, char *buf, long turn,
			MPI_Status *found)
{
	int flag = 0, src = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
	MPI_Message msg = MPI_MESSAGE_NULL;
	MPI_Request req;
	MPI_Status st;

	switch (turn % 4) {
	case 0:
		MPI_Probe(src, tag, MPI_COMM_WORLD, found);
		break;
	case 1:
		while (!flag)
			MPI_Iprobe(src, tag, MPI_COMM_WORLD, &flag, found);
		break;
	case 2:
		MPI_Mprobe(src, tag, MPI_COMM_WORLD, &msg, found);
		break;
	default:
		while (!flag)
			MPI_Improbe(src, tag, MPI_COMM_WORLD, &flag, &msg,
				    found);
	}
	if (found->MPI_SOURCE < 0 || found->MPI_SOURCE >= mc->n)
		mc_fail(mc, "a probe found rank %d", found->MPI_SOURCE);
	if (mc_count_of(mc, found) > MAX_BYTES)
		mc_fail(mc, "a probe found %d bytes", mc_count_of(mc, found));
	if (msg == MPI_MESSAGE_NULL) {
		MPI_Recv(buf, mc_count_of(mc, found), MPI_BYTE,
			 found->MPI_SOURCE, found->MPI_TAG, MPI_COMM_WORLD,
			 &st);
	} else if (turn % 8 < 4) {
		MPI_Mrecv(buf, mc_count_of(mc, found), MPI_BYTE, &msg, &st);
	} else {
		MPI_Imrecv(buf, mc_count_of(mc, found), MPI_BYTE, &msg, &req);
		MPI_Wait(&req, &st);
	}
	if (st.MPI_SOURCE != found->MPI_SOURCE ||
	    st.MPI_TAG != found->MPI_TAG ||
	    mc_count_of(mc, &st) != mc_count_of(mc, found))
		mc_fail(mc, "found %d bytes from %d with tag %d, received %d "
			"from %d with %d", mc_count_of(mc, found),
			found->MPI_SOURCE, found->MPI_TAG,
			mc_count_of(mc, &st), st.MPI_SOURCE, st.MPI_TAG);
}

/* No message was sent: none may be found. */
static void nothing(const struct mc *mc)
{
	MPI_Message msg;
	MPI_Status st;
	int flag, i;

	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < 100; i++) {
		MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, &st);
		if (flag)
			mc_fail(mc, "MPI_Iprobe found a message that was not sent");
		MPI_Improbe(mc->n - 1, 12345, MPI_COMM_WORLD, &flag, &msg,
			    &st);
		if (flag)
			mc_fail(mc, "MPI_Improbe found a message that was not sent");
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct out out;
	MPI_Status st;
	struct mc mc;
	long i, *next;
	char *buf;

	mc_init(&mc, &argc, &argv, "mpi_probe", 300);
	next = mc_alloc(&mc, sizeof(*next) * (size_t)mc.n);
	memset(next, 0, sizeof(*next) * (size_t)mc.n);
	buf = mc_alloc(&mc, MAX_BYTES);
	nothing(&mc);
	send_all(&mc, &out);
	for (i = 0; i < mc.count * mc.n; i++) {
		long seq;
		int from;

		receive_one(&mc, buf, i, &st);
		from = st.MPI_SOURCE;
		seq = next[from]++;
		if (st.MPI_TAG != seq % TAGS)
			mc_fail(&mc, "rank %d: tag %d of message %ld", from,
				st.MPI_TAG, seq);
		if (mc_count_of(&mc, &st) !=
		    (int)len_of(&mc, from, mc.rank, seq))
			mc_fail(&mc, "rank %d, message %ld: %d bytes", from,
				seq, mc_count_of(&mc, &st));
		mc_check(&mc, buf, (size_t)mc_count_of(&mc, &st), from,
			 (uint64_t)seq, "probe");
	}
	MPI_Waitall((int)out.n, out.req, MPI_STATUSES_IGNORE);
	nothing(&mc);
	for (i = 0; i < out.n; i++)
		free(out.buf[i]);
	free(out.buf);
	free(out.req);
	free(buf);
	free(next);
	return mc_fini(&mc);
}
