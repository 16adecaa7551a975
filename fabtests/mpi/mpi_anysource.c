/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Storms: all ranks send COUNT messages to one rank, then every rank to every
 * rank; received with MPI_ANY_SOURCE and MPI_ANY_TAG.  The tag of a message is
 * its number, so that each sender's order can be checked.
 */
#include "check.h"

#define WINDOW		32
#define MAX_BYTES	70000

static size_t len_of(const struct mc *mc, int from, int to, long seq)
{
	uint64_t s = mc->seed + (uint64_t)seq * 65537u +
		     (uint64_t)from * 257u + (uint64_t)to;

	return mc_random_len(&s, MAX_BYTES);
}

struct sender {
	MPI_Request req[WINDOW];
	char *buf[WINDOW];
	long started;
};

static void sender_init(const struct mc *mc, struct sender *s)
{
	int i;

	for (i = 0; i < WINDOW; i++) {
		s->req[i] = MPI_REQUEST_NULL;
		s->buf[i] = mc_alloc(mc, MAX_BYTES);
	}
	s->started = 0;
}

/* Start one if a slot is free. */
static void sender_step(const struct mc *mc, struct sender *s, int to, long seq)
{
	int i = (int)(s->started % WINDOW);
	size_t len = len_of(mc, mc->rank, to, seq);

	mc_fill(mc, s->buf[i], len, mc->rank, (uint64_t)seq);
	MPI_Isend(s->buf[i], (int)len, MPI_BYTE, to, (int)seq, MPI_COMM_WORLD,
		  &s->req[i]);
	s->started++;
}

static bool sender_free(struct sender *s)
{
	int done;

	MPI_Test(&s->req[s->started % WINDOW], &done, MPI_STATUS_IGNORE);
	return done;
}

static void sender_fini(struct sender *s)
{
	int i;

	MPI_Waitall(WINDOW, s->req, MPI_STATUSES_IGNORE);
	for (i = 0; i < WINDOW; i++)
		free(s->buf[i]);
}

static void take(const struct mc *mc, const char *buf, MPI_Status *st,
		 long *next)
{
	int from = st->MPI_SOURCE;
	size_t len;

	if (from < 0 || from >= mc->n)
		mc_fail(mc, "a message from rank %d", from);
	if (st->MPI_TAG != next[from])
		mc_fail(mc, "rank %d: message %d came before message %ld",
			from, st->MPI_TAG, next[from]);
	len = len_of(mc, from, mc->rank, next[from]);
	if (mc_count_of(mc, st) != (int)len)
		mc_fail(mc, "rank %d, message %ld: %d bytes, not %zu", from,
			next[from], mc_count_of(mc, st), len);
	mc_check(mc, buf, len, from, (uint64_t)next[from], "storm");
	next[from]++;
}

/* All ranks to root. */
static void storm_one(const struct mc *mc, int root)
{
	long i, *next = mc_alloc(mc, sizeof(*next) * (size_t)mc->n);
	char *buf = mc_alloc(mc, MAX_BYTES);
	struct sender s;
	MPI_Status st;

	memset(next, 0, sizeof(*next) * (size_t)mc->n);
	if (mc->rank != root) {
		sender_init(mc, &s);
		for (i = 0; i < mc->count; i++) {
			while (!sender_free(&s))
				;
			sender_step(mc, &s, root, i);
		}
		sender_fini(&s);
	} else {
		for (i = 0; i < mc->count * (mc->n - 1); i++) {
			MPI_Recv(buf, MAX_BYTES, MPI_BYTE, MPI_ANY_SOURCE,
				 MPI_ANY_TAG, MPI_COMM_WORLD, &st);
			take(mc, buf, &st, next);
		}
	}
	free(buf);
	free(next);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank to every rank, with receives posted ahead. */
static void storm_all(const struct mc *mc)
{
	long total = mc->count * mc->n, sent = 0, got = 0, posted = 0;
	long *next = mc_alloc(mc, sizeof(*next) * (size_t)mc->n);
	MPI_Request req[WINDOW];
	char *buf[WINDOW];
	struct sender s;
	MPI_Status st;
	int i, done;

	memset(next, 0, sizeof(*next) * (size_t)mc->n);
	sender_init(mc, &s);
	for (i = 0; i < WINDOW; i++)
		buf[i] = mc_alloc(mc, MAX_BYTES);
	while (sent < total || got < total) {
		for (; posted < total && posted < got + WINDOW; posted++)
			MPI_Irecv(buf[posted % WINDOW], MAX_BYTES, MPI_BYTE,
				  MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
				  &req[posted % WINDOW]);
		if (sent < total && sender_free(&s)) {
			sender_step(mc, &s, (int)(sent % mc->n),
				    sent / mc->n);
			sent++;
		}
		/* In the order posted, which is the order of matching. */
		while (got < posted) {
			MPI_Test(&req[got % WINDOW], &done, &st);
			if (!done)
				break;
			take(mc, buf[got % WINDOW], &st, next);
			got++;
		}
	}
	sender_fini(&s);
	for (i = 0; i < WINDOW; i++)
		free(buf[i]);
	free(next);
}

int main(int argc, char **argv)
{
	struct mc mc;
	int root;

	mc_init(&mc, &argc, &argv, "mpi_anysource", 2000);
	for (root = 0; root < mc.n && root < 2; root++)
		storm_one(&mc, root);
	storm_all(&mc);
	return mc_fini(&mc);
}
