/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One peer that makes no progress, or does not receive what is sent to it:
 * traffic between the other peers must go on.  prov/lnx/PEERS.md has what the
 * cores do.
 */
#include "hazard.h"

#include <stdlib.h>

/* ---- a peer that makes progress and does not receive ---- */

/* Rank 1 does not receive its large messages; rank 0 continues with rank 2. */
static int unreceived(struct ft *ft, const struct ft_case *c)
{
	enum { FRONT = 3, N = 60, MAX = 70000 };
	static const size_t sizes[] = { 8, 5000, 65536, 0, 20000, 4097 };
	struct ft_op *a[FRONT], *op[N];
	int i, left = 0;

	(void)c;
	ft_known(ft, NULL, "a message that is not received blocks later ones");
	prepare(ft, (size_t)N * MAX);
	for (i = 0; i < N && ft->rank == 2; i++) {
		op[i] = post(ft, true, 0, (uint64_t)i, ins + (size_t)i * MAX,
			     MAX);
		FT_CHECK(ft, op[i], "receive not posted");
	}
	ft_barrier(ft);
	if (!ft->rank) {
		for (i = 0; i < FRONT; i++) {
			a[i] = put(ft, true, 1, 99, (uint64_t)i, 65536);
			FT_CHECK(ft, a[i], "unexpected send not taken");
		}
		ft_linger(ft, 0.005);
		for (i = 0; i < N; i++) {
			op[i] = put(ft, true, 2, (uint64_t)i, (uint64_t)i,
				    sizes[i % 6]);
			FT_CHECK(ft, op[i], "send not taken");
		}
	}
	if (ft->rank != 1)
		left = missing(ft, op, N, time_limit(ft));
	ft_barrier(ft);
	for (i = 0; i < FRONT && ft->rank == 1; i++) {
		a[i] = post(ft, true, 0, 99, ins, 65536);
		FT_CHECK(ft, a[i], "receive not posted");
		FT_TRY(all_done(ft, &a[i], 1, "late receives"));
		FT_TRY(check(ft, a[i], ins, 65536, 0, (uint64_t)i));
	}
	if (!ft->rank)
		FT_TRY(all_done(ft, a, FRONT, "unexpected sends"));
	if (ft->rank != 1)
		FT_TRY(all_done(ft, op, N, "operations"));
	for (i = 0; i < N && ft->rank == 2; i++)
		FT_TRY(check(ft, op[i], ins + (size_t)i * MAX, sizes[i % 6], 0,
			     (uint64_t)i));
	FT_CHECK(ft, !left, "%d of %d operations with another peer did not "
		 "complete", left, N);
	return FT_PASS;
}

/* ---- a peer that makes no progress ---- */

#define DEAF_MAX	3000

/* Rank 2 sleeps.  Messages that rank 0 sends to it must not delay traffic with
 * rank 1, and must all arrive in the end. */
static int deaf_sender(struct ft *ft, size_t len, int *taken)
{
	int i, n = 0, left, max = len > 50000 ? DEAF_MAX / 8 : DEAF_MAX;
	struct ft_op *op[200], **sent;

	sent = need(calloc(DEAF_MAX, sizeof(*sent)));
	while (n < max) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[2], .len = len,
			.buf = outs[n % SLOTS], .tag = 9,
		};
		ssize_t ret;

		sent[n] = ft_op_new(ft);
		sent[n]->posted = true;
		ret = ft_try_send(ft->o.ep, sent[n], &m);
		if (ret == -FI_EAGAIN)
			break;
		FT_CALL(ft, ret);
		n++;
	}
	*taken = n;
	for (i = 0; i < 200; i++) {
		op[i] = i % 2 ? put(ft, true, 1, 7, (uint64_t)i / 2, len) :
			post(ft, true, 1, 8, ins, len);
		if (!op[i])
			break;
	}
	left = i < 200 ? 200 : missing(ft, op, 200, time_limit(ft));
	oob_barrier(&ft->oob);		/* now rank 2 wakes up */
	FT_CHECK(ft, !oob_bcast(&ft->oob, taken, sizeof(*taken)), "lost a "
		 "rank");
	FT_TRY(all_done(ft, sent, n, "sends to the sleeping peer"));
	for (i = 0; i < n; i++)
		FT_CHECK(ft, !sent[i]->err, "send %d to the sleeping peer: %s", i,
			 fi_strerror(sent[i]->err));
	free(sent);
	FT_CHECK(ft, !left, "%d of 200 operations with another peer did not "
		 "complete while one slept and had %d messages", left, n);
	return FT_PASS;
}

static int deaf(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[200], *hello[2];
	size_t len = c->a;
	void (*idle)(void *) = ft->oob.idle;
	int i, taken = 0;

	ft_known(ft, NULL, "one peer without progress stops the others");
	if (ft_lnx_over_shm(ft) && len > 4096 && !all_read_memory(ft))
		ft_known(ft, "lnx", "without reading each other's memory, "
			 "large sends end in order, also to different peers");
	prepare(ft, 200 * len);
	/* Open the connections first: a peer without progress accepts none. */
	for (i = 1; i < 3; i++) {
		if (ft->rank && ft->rank != i)
			continue;
		hello[0] = post(ft, true, ft->rank ? 0 : i, 1, NULL, 0);
		hello[1] = put(ft, true, ft->rank ? 0 : i, 1, 0, 0);
		FT_CHECK(ft, hello[0] && hello[1], "no contact");
		FT_TRY(all_done(ft, hello, 2, "first messages"));
	}
	for (i = 0; i < 200 && ft->rank == 1; i++) {
		op[i] = i % 2 ? put(ft, true, 0, 8, (uint64_t)i / 2, len) :
			post(ft, true, 0, 7, ins + (size_t)i * len, len);
		FT_CHECK(ft, op[i], "operation %d not started", i);
	}
	ft_barrier(ft);
	if (!ft->rank) {
		FT_TRY(deaf_sender(ft, len, &taken));
		return FT_PASS;
	}
	if (ft->rank == 2)
		ft->oob.idle = NULL;
	i = oob_barrier(&ft->oob);
	ft->oob.idle = idle;
	FT_CHECK(ft, !i && !oob_bcast(&ft->oob, &taken, sizeof(taken)),
		 "lost a rank");
	if (ft->rank == 1) {
		FT_TRY(all_done(ft, op, 200, "operations"));
		for (i = 0; i < 200; i += 2)
			FT_TRY(check(ft, op[i], ins + (size_t)i * len, len, 0,
				     (uint64_t)i / 2));
		return FT_PASS;
	}
	for (i = 0; i < taken; i++) {
		hello[0] = post(ft, true, 0, 9, ins, len);
		FT_CHECK(ft, hello[0], "receive not posted");
		FT_TRY(all_done(ft, hello, 1, "receives"));
		FT_TRY(check(ft, hello[0], ins, len, 0, (uint64_t)i));
		ft_op_reset(hello[0]);
		ft->nops = 0;
	}
	return FT_PASS;
}

/* ---- a peer that computes ---- */

/*
 * Rank 1 has received messages and posted more receives, and computes.  Sends of rank 0
 * complete all the same, as bare tcp's do, whose socket buffers take as much: two rounds,
 * with what rank 1 has read between them.
 */
static int computes(struct ft *ft, const struct ft_case *c)
{
	enum { SENDS = 2 };
	void (*idle)(void *) = ft->oob.idle;
	struct ft_op *op[SENDS], *rx;
	size_t len = c->a;
	int i, round, left = 0;

	if (ft_lnx_over_shm(ft))
		return ft_skip(ft, "shared memory has no such buffers");
	ft_known(ft, NULL, "a receiver that computes holds up its sender");
	prepare(ft, SENDS * len);
	for (i = 0; i < 4 && ft->rank < 2; i++) {
		rx = ft->rank ? post(ft, true, 0, 1, ins, len) :
		     put(ft, true, 1, 1, 0, len);
		FT_CHECK(ft, rx, "no contact");
		FT_TRY(all_done(ft, &rx, 1, "first messages"));
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < SENDS && ft->rank == 1; i++) {
			op[i] = post(ft, true, 0, (uint64_t)i + 2, ins + (size_t)i * len,
				     len);
			FT_CHECK(ft, op[i], "receive not posted");
		}
		ft_barrier(ft);
		if (!ft->rank) {
			for (i = 0; i < SENDS; i++) {
				op[i] = put(ft, true, 1, (uint64_t)i + 2, (uint64_t)i, len);
				FT_CHECK(ft, op[i], "send not taken");
			}
			left += missing(ft, op, SENDS, time_limit(ft));
		} else if (ft->rank == 1) {
			ft->oob.idle = NULL;
		}
		i = oob_barrier(&ft->oob);
		ft->oob.idle = idle;
		FT_CHECK(ft, !i, "lost the other rank");
		if (ft->rank < 2)
			FT_TRY(all_done(ft, op, SENDS, "operations"));
		for (i = 0; i < SENDS && ft->rank == 1; i++)
			FT_TRY(check(ft, op[i], ins + (size_t)i * len, len, 0, (uint64_t)i));
		ft_barrier(ft);
	}
	FT_CHECK(ft, !left, "%d sends did not complete while their receiver computed",
		 left);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "unreceived-65536", .fn = unreceived, .ranks = 3 },
		{ .name = "deaf-64", .fn = deaf, .a = 64, .ranks = 3 },
		{ .name = "deaf-4000", .fn = deaf, .a = 4000, .ranks = 3 },
		{ .name = "deaf-10000", .fn = deaf, .a = 10000, .ranks = 3 },
		{ .name = "deaf-100000", .fn = deaf, .a = 100000, .ranks = 3 },
		{ .name = "computes-20000", .fn = computes, .a = 20000, .ranks = 3 },
		{ .name = "computes-65536", .fn = computes, .a = 65536, .ranks = 3 },
	};

	return ft_main(argc, argv, "a peer that does not answer", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
