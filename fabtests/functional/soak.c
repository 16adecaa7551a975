/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Everything at once for as long as you like: random messages, reads, writes and
 * atomics, both directions, hundreds under way, all data checked.  --seconds N
 * says how long each case takes; otherwise -I rounds.  The seed is printed, -S repeats a run.
 * soak_round.h says what a round is.
 */
#include "soak_round.h"

#include <stdio.h>
#include <string.h>

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static int run(struct ft *ft, const struct ft_case *c)
{
	uint64_t rounds = ft->run->iters ? ft->run->iters :
			  ft->run->quick ? 40 : 400;
	double t0 = ft_now(), last = t0;
	int32_t more = 1;

	(void)c;
	memset(&soak, 0, sizeof(soak));
	soak.meet = meet;
	FT_TRY(soak_begin(ft));
	while (more) {
		FT_TRY(soak_round(ft));
		ft_guard(ft, c->name);
		if (ft->run->seconds > 0)
			more = ft_now() - t0 < ft->run->seconds;
		else
			more = soak.done.rounds < rounds;
		/* The time is measured by rank 0. */
		if (oob_bcast(&ft->oob, &more, sizeof(more)))
			return ft_fail(ft, "lost the other rank");
		if (!ft->rank && ft_now() - last > 30) {
			last = ft_now();
			printf("# %.0f s, %llu rounds, %.1f GB\n", last - t0,
			       (unsigned long long)soak.done.rounds,
			       (double)soak.done.bytes * 1e-9);
			fflush(stdout);
		}
	}
	FT_TRY(soak_nothing_left(ft));
	if (!ft->rank)
		printf("# seed %llu: %llu rounds, %llu messages, %llu writes, "
		       "%llu reads, %llu atomics, %.2f GB, in %.1f s\n",
		       (unsigned long long)ft->run->seed,
		       (unsigned long long)soak.done.rounds,
		       (unsigned long long)soak.done.of[SOAK_MESSAGE],
		       (unsigned long long)soak.done.of[SOAK_WRITE],
		       (unsigned long long)soak.done.of[SOAK_READ],
		       (unsigned long long)(soak.done.of[SOAK_ADD] +
					    soak.done.of[SOAK_FETCH]),
		       (double)soak.done.bytes * 1e-9, ft_now() - t0);
	return FT_PASS;
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, SOAK_BYTES);
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "messages-and-rma", .fn = with_mem, .body = run,
		  .cfg.caps = FT_RMA_CAPS },
		{ .name = "messages-rma-atomics", .fn = with_mem, .body = run,
		  .cfg.caps = FT_ATOMIC_CAPS },
		{ .name = "any-mr-mode", .fn = with_mem, .body = run,
		  .cfg.caps = FT_ATOMIC_CAPS, .cfg.mr_mode = FT_MR_ALL },
	};

	return ft_main(argc, argv, "random mixed operations (--seconds N, or "
		       "-I rounds)", cases,
		       (int)(sizeof(cases) / sizeof(cases[0])));
}
