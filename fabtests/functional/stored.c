/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handling one peer (its first message, the removal of its address) must not
 * take longer because many messages of other peers wait for a receive.
 */
#include "hazard.h"

#include <stdlib.h>

#define N		40000		/* messages that wait */
#define PEERS		16		/* of one batch */
#define BATCHES		8
#define RATIO		20		/* looking at all of them would take a hundred
					 * times as long or more */

/* The shortest time of a batch: first sends to peers, and the removal of the peers. */
static double batch(struct ft *ft, uint64_t *next)
{
	unsigned char name[FT_NAME_MAX];
	fi_addr_t addr[PEERS];
	double best = 1e9;
	int i, k;

	for (k = 0; k < BATCHES; k++) {
		double start, took = 0;

		for (i = 0; i < PEERS; i++) {
			if (ft_fake_name(ft, ++*next, false, name) ||
			    fi_av_insert(ft->o.av, name, 1, &addr[i], 0, NULL) !=
			    1)
				return -1;
		}
		start = ft_now();
		for (i = 0; i < PEERS; i++)
			fi_av_remove(ft->o.av, &addr[i], 1, 0);
		took = ft_now() - start;
		for (i = 0; i < PEERS; i++) {
			struct ft_op *op = ft_op_new(ft);
			struct ft_msg m = {
				.tagged = true, .len = 8, .buf = outs[0],
			};

			if (ft_fake_name(ft, ++*next, false, name) ||
			    fi_av_insert(ft->o.av, name, 1, &addr[i], 0, NULL) !=
			    1)
				return -1;
			m.addr = addr[i];
			start = ft_now();
			op->posted = true;
			op->posted = !ft_try_send(ft->o.ep, op, &m);
			fi_av_remove(ft->o.av, &addr[i], 1, 0);
			took += ft_now() - start;
		}
		best = took < best ? took : best;
	}
	return best;
}

static int stored(struct ft *ft, const struct ft_case *c)
{
	double few, many;
	struct ft_op *op;
	uint64_t next = 0;
	int i;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	prepare(ft, 64);
	few = ft->rank ? 0 : batch(ft, &next);
	FT_CHECK(ft, few >= 0, "cannot make addresses of peers that do not exist");
	ft_barrier(ft);
	for (i = 0; i < N && ft->rank; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[0], .len = 8,
			.buf = outs[0], .tag = 1000 + (uint64_t)i,
			.call = FT_INJECT,
		};

		FT_CHECK(ft, !ft_send(ft, NULL, &m), "send %d not taken", i);
	}
	if (ft->rank) {
		op = put(ft, true, 0, 1, 0, 8);
		FT_CHECK(ft, op, "the last send is refused");
		FT_TRY(all_done(ft, &op, 1, "sends"));
	} else {
		op = post(ft, true, 1, 1, ins, 8);
		FT_CHECK(ft, op, "no receive");
		FT_TRY(all_done(ft, &op, 1, "receives"));
		many = batch(ft, &next);
		FT_CHECK(ft, many < few * RATIO, "%d first sends and removals "
			 "take %.1f us with %d messages of another peer that "
			 "wait, %.1f us without", PEERS, many * 1e6, N,
			 few * 1e6);
	}
	ft_barrier(ft);
	/* None of the messages is lost. */
	for (i = 0; i < N; i++) {
		if (ft->rank)
			break;
		op = post(ft, true, 1, 1000 + (uint64_t)i, ins, 8);
		FT_CHECK(ft, op, "no receive");
		FT_TRY(all_done(ft, &op, 1, "receives of the messages that waited"));
		ft_ops_drop(ft);
	}
	ft_barrier(ft);
	ft->spoiled = true;		/* leaves peers that do not exist */
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "stored-by-another", .fn = stored },
	};

	return ft_main(argc, argv, "messages that wait, and other peers", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
