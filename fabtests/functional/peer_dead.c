/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that close their endpoint or die while messages are under way, in both
 * directions.  The process that remains must not crash, hang or receive wrong
 * data; it must be able to close, and must continue with other peers.
 * prov/lnx/PEERS.md has what the cores do.
 */
#include "hazard.h"
#include "victim.h"

#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = { 8, 5000, 65536, 0, 16320, 300000, 4096, 4097,
				200000 };
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))
#define N		(4 * NSIZES)
#define ROOM		300000

static int start_all(struct ft *ft, int peer, struct ft_op **tx)
{
	int i;

	for (i = 0; i < N; i++) {
		tx[i] = put(ft, true, peer, (uint64_t)i, (uint64_t)i,
			    sizes[i % NSIZES]);
		FT_CHECK(ft, tx[i], "send %d not taken", i);
	}
	return FT_PASS;
}

/* New endpoints on both sides exchange messages as if nothing had happened. */
static int afresh(struct ft *ft, const struct ft_cfg *cfg)
{
	struct ft_op *tx[N], *rx[N];
	int i;

	if (ft_open(ft, cfg))
		return FT_FAIL;
	prepare(ft, (size_t)N * ROOM);
	for (i = 0; i < N; i++) {
		rx[i] = post(ft, true, !ft->rank, (uint64_t)i,
			     ins + (size_t)i * ROOM, ROOM);
		FT_CHECK(ft, rx[i], "receive not posted");
	}
	FT_TRY(start_all(ft, !ft->rank, tx));
	FT_TRY(all_done(ft, tx, N, "sends afterwards"));
	FT_TRY(all_done(ft, rx, N, "receives afterwards"));
	for (i = 0; i < N; i++)
		FT_TRY(check(ft, rx[i], ins + (size_t)i * ROOM,
			     sizes[i % NSIZES], !ft->rank, (uint64_t)i));
	ft_barrier(ft);
	return ft_close(ft) ? FT_FAIL : FT_PASS;
}

/* ---- closed in the middle ---- */

enum { KNOWN, DEAF, POSTED };

/*
 * Rank 0 closes while it has messages of rank 1: as unexpected ones (KNOWN),
 * not read from the network (DEAF), or being received (POSTED).  Rank 1 closes
 * right after.
 */
static int closed(struct ft *ft, const struct ft_case *c)
{
	struct ft_cfg cfg = c->cfg;
	void (*idle)(void *) = ft->oob.idle;
	struct ft_op *tx[N], *hello[2];
	int i, n = 0;

	if (ft_is_bare(ft, "tcp;ofi_rxm"))
		return ft_skip(ft, "bare tcp;ofi_rxm loses sends, and may die");
	cfg.alone = false;
	if (ft_open(ft, &cfg))
		return FT_FAIL;
	prepare(ft, (size_t)N * ROOM);
	hello[0] = post(ft, true, !ft->rank, 99, NULL, 0);
	hello[1] = put(ft, true, !ft->rank, 99, 0, 0);
	FT_CHECK(ft, hello[0] && hello[1], "no contact");
	FT_TRY(all_done(ft, hello, 2, "first messages"));
	for (i = 0; i < N && !ft->rank && c->a == POSTED; i++)
		FT_CHECK(ft, post(ft, true, 1, (uint64_t)i,
				  ins + (size_t)i * ROOM, ROOM), "receive not "
			 "posted");
	ft_barrier(ft);
	/* POSTED: the other may have closed before the last ones, or before all. */
	for (; n < N && ft->rank; n++) {
		tx[n] = put(ft, true, 0, (uint64_t)n, (uint64_t)n,
			    sizes[n % NSIZES]);
		if (!tx[n] && c->a == POSTED)
			break;
		FT_CHECK(ft, tx[n], "send %d not taken", n);
	}
	if (c->a == DEAF && !ft->rank)
		ft->oob.idle = NULL;
	/* POSTED: no wait, so that the messages are still being moved. */
	i = c->a == POSTED ? 0 : ft_barrier(ft);
	ft->oob.idle = idle;
	FT_CHECK(ft, !i, "lost the other rank");
	if (c->a == POSTED)
		ft_linger(ft, 0.001);
	if (c->a == KNOWN)
		ft_linger(ft, 0.01);
	if (ft->rank)
		missing(ft, tx, n, 0.05);
	ft->open = false;
	if (ft_objs_close(ft, &ft->o))
		return FT_FAIL;
	ft_ops_drop(ft);
	ft_barrier(ft);
	FT_TRY(afresh(ft, &cfg));
	ft->cfg = c->cfg;
	return FT_PASS;
}

/* ---- killed ---- */

static int sends_all(struct ft *ft)
{
	struct ft_op *tx[N];
	int ret = start_all(ft, 0, tx);

	ft_linger(ft, 0.05);
	return ret;
}

/*
 * All receives of a dead sender's messages that had left its memory must end, with the
 * right message or with an error.
 */
static int dead_sender(struct ft *ft, const struct ft_case *c,
		       struct victim *v)
{
	bool known = c->a == KNOWN;
	struct ft_cfg cfg = { 0 };
	struct ft_op *rx[N];
	int i, good = 0, left;

	prepare(ft, (size_t)N * ROOM);	/* before the fork, so that addresses are the
					 * same */
	FT_TRY(victim_start(ft, v, &cfg, sends_all));
	if (ft_lnx_over_shm(ft) && !reads_memory(v->pid, outs[0]))
		ft_known(ft, "lnx", "without reading the sender's memory, "
			 "a transfer that a dead sender began never ends");
	FT_TRY(victim_ready(ft, v, !known));
	if (known)
		ft_linger(ft, 0.01);
	victim_kill(v);
	for (i = 0; i < N; i++) {
		rx[i] = post(ft, true, 1, (uint64_t)i, ins + (size_t)i * ROOM,
			     ROOM);
		FT_CHECK(ft, rx[i], "receive %d not posted", i);
	}
	left = missing(ft, rx, N, time_limit(ft));
	for (i = 0; i < N; i++) {
		if (!rx[i]->done || rx[i]->err)
			continue;
		FT_TRY(check(ft, rx[i], ins + (size_t)i * ROOM,
			     sizes[i % NSIZES], 1, (uint64_t)i));
		good++;
	}
	/*
	 * A receiver that reads nothing stops its sender when the kernels are full.  Then the last
	 * messages are still in the sender's memory, and die with it: their receives wait, as for
	 * all that is never sent.  None behind them can have come.
	 */
	for (i = 0; i < N && rx[i]->done; i++)
		;
	FT_CHECK(ft, left == N - i && (!left || (!known && !ft_lnx_over_shm(ft))),
		 "%d of %d receives from a dead sender did not end, from number %d on (%d are good)",
		 left, N, i, good);
	FT_CHECK(ft, good, "no message of the dead sender arrived");
	if (known && ft_lnx_over_shm(ft))
		FT_CHECK(ft, good == N, "only %d of %d messages that were here "
			 "before their sender died", good, N);
	return FT_PASS;
}

/* Sends to a dead receiver end, and a full queue does not block the close. */
static int dead_receiver(struct ft *ft, struct victim *v)
{
	struct ft_cfg cfg = { 0 };
	struct ft_op *tx[N];
	int i, n = 0, left;

	prepare(ft, 0);			/* before the fork, so that addresses are the
					 * same */
	FT_TRY(victim_start(ft, v, &cfg, NULL));
	FT_TRY(victim_ready(ft, v, false));
	if (ft_lnx_over_shm(ft) && !reads_memory(v->pid, outs[0]))
		ft_known(ft, "lnx", "without reading the receiver's memory, "
			 "its death is not noticed");
	victim_kill(v);
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[1], .tag = 1,
			.buf = outs[0], .len = sizes[i % NSIZES],
		};
		ssize_t ret;

		tx[n] = ft_op_new(ft);
		tx[n]->posted = true;
		ret = ft_try_send(ft->o.ep, tx[n], &m);
		if (!ret)
			n++;
		else
			tx[n]->posted = false;
		ft_progress(ft);
	}
	ft_known(ft, NULL, "sends to a dead peer may never end");
	left = missing(ft, tx, n, time_limit(ft));
	FT_CHECK(ft, !left, "%d of %d sends to a dead receiver did not end",
		 left, n);
	return FT_PASS;
}

static int killed(struct ft *ft, const struct ft_case *c)
{
	struct victim v = { .fd = -1 };
	int ret = FT_PASS, all[OOB_MAX_RANKS];
	struct ft_cfg cfg = { 0 };

	if (ft_is_bare(ft, "tcp;ofi_rxm") || ft_is_bare(ft, "shm"))
		return ft_skip(ft, "bare %s loses operations of a dead peer, "
			       "or dies too", ft->opts.prov);
	if (!ft->rank) {
		ret = c->b ? dead_receiver(ft, &v) : dead_sender(ft, c, &v);
		victim_kill(&v);
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_ops_drop(ft);
	}
	/* Rank 1 does not take part in that; it waits here. */
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a "
		 "rank");
	if (all[0] == FT_PASS)
		ret = afresh(ft, &cfg);
	ft->cfg = c->cfg;
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "close-unexpected", .fn = closed, .a = KNOWN },
		{ .name = "close-deaf", .fn = closed, .a = DEAF },
		{ .name = "close-under-way", .fn = closed, .a = POSTED },
		{ .name = "sender-dies", .fn = killed, .a = KNOWN },
		{ .name = "sender-dies-unseen", .fn = killed, .a = DEAF },
		{ .name = "receiver-dies", .fn = killed, .b = 1 },
	};
	struct ft_case alone[sizeof(cases) / sizeof(cases[0])];
	size_t i;

	memcpy(alone, cases, sizeof(cases));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		alone[i].cfg.alone = true;
	/* How long lnx waits for a dead peer, unless the variable is set. */
	setenv("FI_LNX_CONNECT_TIMEOUT", "3000", 0);
	return ft_main(argc, argv, "peers that close or die", alone,
		       sizeof(cases) / sizeof(cases[0]));
}
