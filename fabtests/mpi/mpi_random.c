/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random messages, receives, probes and cancels between all ranks over two
 * communicators, checked against the matching rule.  COUNT rounds; a failure
 * prints the seed, which repeats it with a COUNT of 1.
 *
 * The rule, for each communicator and independent of timing: a receive gets a
 * message that it may match; and no message that the same rank sent earlier and
 * that it may match was given to a later receive or to none.
 */
#include "check.h"

#define COMMS		2
#define TAGS		3
#define PER_PAIR	24		/* messages, of each communicator */
#define MAX_BYTES	150000
#define HEAD		16		/* identifies the message */

struct head {
	int32_t from;
	int32_t comm;
	int64_t seq;
};

struct sent {
	int tag;
	size_t len;
	int by;			/* the receive that got it, -1: none */
};

struct recv {
	int comm, src, tag;	/* as the receive specified */
	MPI_Request req;
	char *buf;
	bool done, cancelled;
	int from;
	long seq;
};

static MPI_Comm comms[COMMS];

/* What rank a sends to rank b; every rank can compute it. */
static struct sent plan(const struct mc *mc, int a, int b, int comm, long seq)
{
	uint64_t s = mc->seed + ((uint64_t)a * 1009u + (uint64_t)b) * 65537u +
		     (uint64_t)comm * 31u + (uint64_t)seq * 1000003u;
	struct sent m = { .by = -1 };

	m.tag = (int)(pattern_random(&s) % TAGS);
	m.len = HEAD + mc_random_len(&s, MAX_BYTES - HEAD);
	return m;
}

static bool takes(const struct recv *r, int comm, int from, int tag)
{
	return r->comm == comm &&
	       (r->src == MPI_ANY_SOURCE || r->src == from) &&
	       (r->tag == MPI_ANY_TAG || r->tag == tag);
}

struct round {
	struct mc mc;		/* with the round's own seed */
	/* Probes or synchronous sends, not both: Open MPI 4.1 over libfabric
	 * never acknowledges a synchronous send that a matched probe received. */
	bool probes;
	uint64_t rnd;
	struct recv *r;
	int nr;
	struct sent *m;		/* to us: [comm][from][seq] */
	MPI_Request *tx;
	char **out;
	int ntx;
};

static struct sent *msg_at(struct round *rd, int comm, int from, long seq)
{
	return &rd->m[((long)comm * rd->mc.n + from) * PER_PAIR + seq];
}

static void send_one(struct round *rd, int comm, int to, long seq)
{
	struct sent m = plan(&rd->mc, rd->mc.rank, to, comm, seq);
	struct head h = { rd->mc.rank, comm, seq };
	char *buf = mc_alloc(&rd->mc, m.len);
	uint64_t kind = pattern_random(&rd->rnd);

	memcpy(buf, &h, sizeof(h));
	mc_fill(&rd->mc, buf + HEAD, m.len - HEAD, rd->mc.rank,
		(uint64_t)seq * COMMS + (uint64_t)comm);
	rd->out[rd->ntx] = buf;
	if (kind % 5 || rd->probes)
		MPI_Isend(buf, (int)m.len, MPI_BYTE, to, m.tag, comms[comm],
			  &rd->tx[rd->ntx]);
	else
		MPI_Issend(buf, (int)m.len, MPI_BYTE, to, m.tag, comms[comm],
			   &rd->tx[rd->ntx]);
	rd->ntx++;
}

/* Which message arrived?  Checks everything about it, except the rule itself. */
static void arrived(struct round *rd, int i, MPI_Status *st)
{
	struct recv *r = &rd->r[i];
	const struct mc *mc = &rd->mc;
	struct sent *m;
	struct head h;

	if (mc_count_of(mc, st) < HEAD)
		mc_fail(mc, "receive %d: %d bytes", i, mc_count_of(mc, st));
	memcpy(&h, r->buf, sizeof(h));
	if (h.from < 0 || h.from >= mc->n || h.comm != r->comm || h.seq < 0 ||
	    h.seq >= PER_PAIR || h.from != st->MPI_SOURCE)
		mc_fail(mc, "receive %d: message %lld of rank %d in "
			"communicator %d, status says rank %d", i,
			(long long)h.seq, h.from, h.comm, st->MPI_SOURCE);
	m = msg_at(rd, h.comm, h.from, h.seq);
	if (m->by >= 0)
		mc_fail(mc, "message %lld of rank %d was received twice",
			(long long)h.seq, h.from);
	if (m->tag != st->MPI_TAG || (int)m->len != mc_count_of(mc, st) ||
	    !takes(r, h.comm, h.from, m->tag))
		mc_fail(mc, "receive %d (rank %d tag %d) got message %lld of "
			"rank %d with tag %d, %d bytes; sent: tag %d, %zu "
			"bytes", i, r->src, r->tag, (long long)h.seq, h.from,
			st->MPI_TAG, mc_count_of(mc, st), m->tag, m->len);
	mc_check(mc, r->buf + HEAD, m->len - HEAD, h.from,
		 (uint64_t)h.seq * COMMS + (uint64_t)h.comm, "random");
	m->by = i;
	r->from = h.from;
	r->seq = h.seq;
	r->done = true;
}

static struct recv *new_recv(struct round *rd)
{
	struct recv *r = &rd->r[rd->nr++];
	uint64_t x = pattern_random(&rd->rnd);

	memset(r, 0, sizeof(*r));
	r->comm = (int)(x % COMMS);
	r->src = (x >> 8) % 3 ? (int)((x >> 16) % (uint64_t)rd->mc.n) :
		 MPI_ANY_SOURCE;
	r->tag = (x >> 32) % 3 ? (int)((x >> 40) % TAGS) : MPI_ANY_TAG;
	r->buf = mc_alloc(&rd->mc, MAX_BYTES);
	r->req = MPI_REQUEST_NULL;
	return r;
}

static void post(struct recv *r)
{
	MPI_Irecv(r->buf, MAX_BYTES, MPI_BYTE, r->src, r->tag, comms[r->comm],
		  &r->req);
}

/* A matched probe counts as a receive that must find its message at once. */
static void probe(struct round *rd)
{
	struct recv *r = new_recv(rd);
	MPI_Message msg;
	MPI_Status st;
	int flag;

	MPI_Improbe(r->src, r->tag, comms[r->comm], &flag, &msg, &st);
	if (!flag) {
		free(r->buf);
		rd->nr--;
		return;
	}
	MPI_Mrecv(r->buf, MAX_BYTES, MPI_BYTE, &msg, &st);
	arrived(rd, rd->nr - 1, &st);
}

/* Each is cancelled or complete, never both and never neither. */
static void cancel_some(struct round *rd, bool all)
{
	MPI_Status st;
	int i, flag;

	for (i = 0; i < rd->nr; i++) {
		struct recv *r = &rd->r[i];

		if (r->done || r->cancelled ||
		    (!all && pattern_random(&rd->rnd) % 20))
			continue;
		MPI_Cancel(&r->req);
		MPI_Wait(&r->req, &st);
		MPI_Test_cancelled(&st, &flag);
		if (flag)
			r->cancelled = true;
		else
			arrived(rd, i, &st);
		if (!all)
			return;
	}
}

static void poll_all(struct round *rd)
{
	MPI_Status st;
	int i, flag;

	for (i = 0; i < rd->nr; i++) {
		if (rd->r[i].done || rd->r[i].cancelled)
			continue;
		MPI_Test(&rd->r[i].req, &flag, &st);
		if (flag)
			arrived(rd, i, &st);
	}
}

static int missing(struct round *rd)
{
	int i, n = COMMS * rd->mc.n * PER_PAIR;

	for (i = 0; i < rd->nr; i++)
		n -= rd->r[i].done;
	return n;
}

/* The moment of a cancel is not known to the other ranks, so cancelled receives
 * are not checked; all others are. */
static void judge(struct round *rd)
{
	const struct mc *mc = &rd->mc;
	int i, from;
	long k;

	for (i = 0; i < rd->nr; i++) {
		struct recv *r = &rd->r[i];

		for (from = 0; r->done && from < mc->n; from++) {
			long upto = from == r->from ? r->seq : 0;

			for (k = 0; k < upto; k++) {
				struct sent *m = msg_at(rd, r->comm, from, k);

				if (takes(r, r->comm, from, m->tag) &&
				    m->by > i)
					mc_fail(mc, "receive %d took message "
						"%ld of rank %d, receive %d "
						"the earlier message %ld", i,
						r->seq, from, m->by, k);
			}
		}
	}
}

static void traffic(struct round *rd)
{
	int n = rd->mc.n, left = COMMS * n * PER_PAIR, want = left / 2;
	long *next = mc_alloc(&rd->mc, sizeof(long) * (size_t)(COMMS * n));

	memset(next, 0, sizeof(long) * (size_t)(COMMS * n));
	while (left || rd->nr < want) {
		uint64_t x = pattern_random(&rd->rnd);
		int at = (int)((x >> 8) % (uint64_t)(COMMS * n));

		if (left && (x % 2 || rd->nr >= want)) {
			while (next[at] == PER_PAIR)
				at = (at + 1) % (COMMS * n);
			send_one(rd, at / n, at % n, next[at]++);
			left--;
		} else if (!rd->probes || x >> 32 & 3) {
			post(new_recv(rd));
		} else {
			probe(rd);
			want -= want > 0;	/* it may find nothing */
		}
		if (!(x >> 40 & 31))
			poll_all(rd);
		if (!(x >> 48 & 63))
			cancel_some(rd, false);
	}
	free(next);
}

/* The remaining messages are received by receives that match anything. */
static void collect(struct round *rd)
{
	int c, left[COMMS], i;

	while (missing(rd)) {
		for (c = 0; c < COMMS; c++)
			left[c] = rd->mc.n * PER_PAIR;
		for (i = 0; i < rd->nr; i++)
			left[rd->r[i].comm] -= rd->r[i].done;
		for (i = 0; i < rd->nr; i++)
			if (!rd->r[i].done && !rd->r[i].cancelled &&
			    rd->r[i].src == MPI_ANY_SOURCE &&
			    rd->r[i].tag == MPI_ANY_TAG)
				left[rd->r[i].comm]--;
		for (c = 0; c < COMMS; c++) {
			for (; left[c] > 0; left[c]--) {
				struct recv *r = new_recv(rd);

				r->comm = c;
				r->src = MPI_ANY_SOURCE;
				r->tag = MPI_ANY_TAG;
				post(r);
			}
		}
		poll_all(rd);
	}
	cancel_some(rd, true);
}

static void one_round(const struct mc *job, long number)
{
	int i, c, total = COMMS * job->n * PER_PAIR;
	struct round rd = { .mc = *job };
	long k;

	rd.mc.seed = job->seed + (uint64_t)number;
	rd.probes = rd.mc.seed % 2;
	rd.rnd = rd.mc.seed ^ pattern_mix((uint64_t)job->rank + 77);
	/* The random receives, and as many again for the messages that remain. */
	rd.r = mc_alloc(job, sizeof(*rd.r) * (size_t)(total * 4));
	rd.m = mc_alloc(job, sizeof(*rd.m) * (size_t)total);
	rd.tx = mc_alloc(job, sizeof(*rd.tx) * (size_t)total);
	rd.out = mc_alloc(job, sizeof(*rd.out) * (size_t)total);
	for (c = 0; c < COMMS; c++)
		for (i = 0; i < job->n; i++)
			for (k = 0; k < PER_PAIR; k++)
				*msg_at(&rd, c, i, k) =
					plan(&rd.mc, i, job->rank, c, k);
	traffic(&rd);
	collect(&rd);
	MPI_Waitall(rd.ntx, rd.tx, MPI_STATUSES_IGNORE);
	judge(&rd);
	for (i = 0; i < rd.nr; i++)
		free(rd.r[i].buf);
	for (i = 0; i < rd.ntx; i++)
		free(rd.out[i]);
	free(rd.r);
	free(rd.m);
	free(rd.tx);
	free(rd.out);
	/* A message of the next round must not match a receive of this one. */
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct mc mc;
	long i;
	int c;

	mc_init(&mc, &argc, &argv, "mpi_random", 50);
	for (c = 0; c < COMMS; c++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
	for (i = 0; i < mc.count; i++)
		one_round(&mc, i);
	for (c = 0; c < COMMS; c++)
		MPI_Comm_free(&comms[c]);
	return mc_fini(&mc);
}
