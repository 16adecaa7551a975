/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * msg/hedge: a rail holds reads of a large message, and the others go on.  What the rail
 * holds is read again over these; the application gets its buffer when no read of it is
 * left, and the network under a read that hangs is cut.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fail_world.h"
#include "rel/latency.h"
#include "rel/recovery.h"

#define BOTH(name)	FAIL_BOTH(hedged, name)
#define PIECE		65536u

/* The speed of all rails is known, to all peers. */
static void open_peers(enum lnx_rail_kind kind, unsigned rails, unsigned peers)
{
	struct op *o;
	unsigned i;

	fake_conf.chunk = PIECE;
	open_met(kind, rails, peers);
	for (i = 0; i < 3 * peers; i++) {
		o = large_from(&side[i % peers]);
		RUN_UNTIL(o->ncomp, 100);
	}
	run_ms(300);			/* PROBEs were answered */
	cr_assert_eq(f.lnx->stats.hedges, 0u);
	cr_assert_gt(f.core[0]->nread, 0u);
}

static void open_used(enum lnx_rail_kind kind, unsigned rails)
{
	open_peers(kind, rails, 1);
}

/* A message of which the rail holds pieces, and the others bring the rest. */
static struct op *stuck_on(unsigned rail)
{
	struct op *o;
	unsigned i;

	f.core[rail]->hold_reads = true;
	for (i = 0; i < 3; i++) {
		o = large_from(&side[0]);
		run_ms(2);
		if (fake_held(f.core[rail]))
			return o;
	}
	cr_assert_fail("no piece went over rail %u", rail);
	return NULL;
}

static void finish_all(unsigned rail, int err)
{
	f.core[rail]->hold_reads = false;
	while (fake_held(f.core[rail]))
		fake_finish(f.core[rail], 0, err);
}

/* All is read, and the application has not got its buffer: a late read may write there. */
static void overtaken(const struct op *o, unsigned rail)
{
	unsigned n = fake_held(f.core[rail]);

	cr_assert_gt(n, 0u);
	RUN_UNTIL(f.lnx->stats.hedges_won == n, 50);
	cr_expect_eq(f.lnx->stats.hedges, n);
	cr_expect_eq(f.lnx->stats.late_reads, 1u);
	cr_expect_eq(memcmp(o->buf, mem, LARGE), 0);
	run_ms(500);
	cr_expect_eq(o->ncomp + o->nerr, 0u);
	cr_expect_eq(fake_held(f.core[rail]), n);
}

BOTH(a_late_piece_is_read_elsewhere)
{
	struct op *o;

	open_used(kind, 2);
	kernel_alive[0] = true;
	/* So that only hedges help: the failure detector takes a second. */
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = LNX_NS_PER_S;
	o = stuck_on(0);
	overtaken(o, 0);
	/* It comes at last, and the first time was enough. */
	finish_all(0, 0);
	run_ms(2);
	cr_expect_eq(o->ncomp, 1u);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

BOTH(an_overtaken_read_may_fail)
{
	struct op *o;

	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = LNX_NS_PER_S;
	o = stuck_on(0);
	overtaken(o, 0);
	finish_all(0, FI_EIO);
	run_ms(2);
	cr_expect_eq(o->ncomp, 1u);
	/* No message waited for it. */
	cr_expect_eq(view_health(path_of(&side[0], 0)), LNX_HEALTH_MAX);
	close_clean();
}

/* Nothing is read from then on into a buffer that is the application's again. */
BOTH(a_hanging_read_is_cut)
{
	struct op *o;
	unsigned ms;

	open_used(kind, 2);
	cuts_work = true;
	o = stuck_on(0);
	for (ms = 0; !o->ncomp && ms < 1000; ms++)
		run_ms(1);
	cr_expect_leq(ms, 40u, "%u ms", ms);
	cr_expect_eq(ncut[0], 1u);
	cr_expect_eq(ncut[1], 0u);
	cr_expect_eq(f.lnx->stats.cuts, 1u);
	cr_expect_eq(fake_held(f.core[0]), 0u);
	/* It is no failure of the path, and the path is used again. */
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	cr_expect_eq(view_health(path_of(&side[0], 0)), LNX_HEALTH_MAX);
	cr_expect_eq(f.lnx->stats.reopened, 0u);
	f.core[0]->hold_reads = false;
	close_clean();
}

/* Two peers on one host: what is cut for one is cut for the other, too, which is no failure
 * of its path, and not cut again for that one. */
BOTH(peers_of_one_host_are_cut_together)
{
	struct op *o[2] = { NULL, NULL };
	unsigned i, k;

	open_peers(kind, 2, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = 3600 * LNX_NS_PER_S;
	cuts_work = true;
	f.core[0]->hold_reads = true;
	for (k = 0; k < 3 && fake_held(f.core[0]) < 2; k++) {
		for (i = 0; i < 2; i++)
			o[i] = large_from(&side[i]);
		run_ms(2);
	}
	cr_assert_geq(view_nread(path_of(&side[0], 0)), 1u);
	cr_assert_geq(view_nread(path_of(&side[1], 0)), 1u);
	for (i = 0; i < 1000 && !(o[0]->ncomp && o[1]->ncomp); i++)
		run_ms(1);
	cr_expect_eq(o[0]->ncomp + o[1]->ncomp, 2u);
	cr_expect_leq(ncut[0], 1u + i / 50, "%u cuts in %u ms", ncut[0], i);
	cr_expect_gt(ncut[0], 0u);
	for (i = 0; i < 2; i++)
		cr_expect_eq(view_health(path_of(&side[i], 0)), LNX_HEALTH_MAX);
	f.core[0]->hold_reads = false;
	close_clean();
}

/* The connection of a rail that hangs again and again is not cut all the time. */
BOTH(cuts_are_rare)
{
	struct side *s = &side[0];
	unsigned i, n = 0;

	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = 3600 * LNX_NS_PER_S;
	cuts_work = true;
	f.core[0]->hold_reads = true;
	for (i = 0; i < 3000; i++) {
		static struct op *o;

		if (!i || o->ncomp) {
			o = large_from(s);
			n++;
		}
		run_ms(1);
	}
	cr_expect_gt(ncut[0], 3u);
	cr_expect_leq(ncut[0], 12u, "%u", ncut[0]);
	cr_expect_gt(n, 1000u, "only %u messages", n);
	close_clean();
}

/* The original comes first, and the hedge is late: the buffer is still in use. */
BOTH(the_original_may_come_first)
{
	struct op *o;
	unsigned n;

	open_used(kind, 2);
	o = stuck_on(0);
	n = fake_held(f.core[0]);
	f.core[1]->hold_reads = true;
	RUN_UNTIL(f.lnx->stats.hedges == n, 50);
	run_ms(1);
	finish_all(0, 0);
	run_ms(5);
	cr_expect_eq(o->ncomp, 0u);
	cr_expect_eq(memcmp(o->buf, mem, LARGE), 0);
	finish_all(1, 0);
	run_ms(5);
	cr_expect_eq(o->ncomp, 1u);
	cr_expect_eq(f.lnx->stats.hedges_won, 0u);
	close_clean();
}

BOTH(both_fail)
{
	struct op *o;
	unsigned n, i;

	for (i = 0; i < 2; i++) {
		open_used(kind, 2);
		o = stuck_on(0);
		n = fake_held(f.core[0]);
		f.core[1]->hold_reads = true;
		RUN_UNTIL(fake_held(f.core[1]) == n, 50);
		finish_all(i, FI_EIO);
		run_ms(1);
		cr_expect_eq(o->ncomp + o->nerr, 0u);
		finish_all(!i, FI_EIO);
		RUN_UNTIL(o->ncomp, 500);
		close_clean();
	}
}

/* The hedge is on a path that goes DOWN: what is left is the original. */
BOTH(the_other_path_dies)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned n;

	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = LNX_NS_PER_S;
	o = stuck_on(0);
	n = fake_held(f.core[0]);
	f.core[1]->hold_reads = true;
	RUN_UNTIL(fake_held(f.core[1]) == n, 50);
	lnx_detect_path_down(inside(s), path_of(s, 1), "test", fake_now_ns);
	finish_all(0, 0);
	run_ms(2);
	cr_expect_eq(o->ncomp, 0u);	/* the hedge may still write */
	finish_all(1, 0);
	RUN_UNTIL(o->ncomp, 10);
	close_clean();
}

/* The path of the original goes DOWN, when the hedge is under way. */
BOTH(the_late_path_dies)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned n;

	open_used(kind, 2);
	o = stuck_on(0);
	n = fake_held(f.core[0]);
	f.core[1]->hold_reads = true;
	RUN_UNTIL(fake_held(f.core[1]) == n, 50);
	lnx_detect_path_down(inside(s), path_of(s, 0), "test", fake_now_ns);
	run_ms(2);
	cr_expect_eq(fake_held(f.core[1]), n, "they are not read a third time");
	finish_all(1, 0);
	finish_all(0, FI_ECANCELED);
	RUN_UNTIL(o->ncomp, 10);
	close_clean();
}

/* With three rails: one is dying, too, and not known to. */
BOTH(a_late_hedge)
{
	struct op *o;

	open_used(kind, 3);
	f.core[1]->hold_reads = true;
	o = stuck_on(0);
	cr_assert_gt(fake_held(f.core[1]), 0u);
	/* What both hold comes over the third. */
	RUN_UNTIL(!memcmp(o->buf, mem, LARGE), 100);
	cr_expect_eq(o->ncomp, 0u);
	finish_all(0, 0);
	finish_all(1, 0);
	RUN_UNTIL(o->ncomp, 10);
	close_clean();
}

/* A receive that has its message cannot be cancelled, hedged or not. */
BOTH(cancel_meanwhile)
{
	struct op *o;

	open_used(kind, 2);
	o = stuck_on(0);
	RUN_UNTIL(f.lnx->stats.hedges_won, 50);
	cr_expect_neq(fi_cancel(&f.ep->fid, o), 0);
	finish_all(0, 0);
	RUN_UNTIL(o->ncomp, 10);
	close_clean();
}

/* The peer ends its session: one error, and not before the reads have ended. */
BOTH(the_peer_leaves)
{
	struct side *s = &side[0];
	struct op *o;

	open_used(kind, 2);
	o = stuck_on(0);
	f.core[1]->hold_reads = true;
	RUN_UNTIL(f.lnx->stats.hedges && fake_held(f.core[1]), 50);
	from(s, 1, s->p.seq, (struct lnx_hdr) { .kind = LNX_KIND_BYE }, NULL, 0);
	run_ms(5);
	cr_expect_eq(o->ncomp + o->nerr, 0u);
	finish_all(1, 0);
	run_ms(5);
	cr_expect_eq(o->ncomp + o->nerr, 0u);
	finish_all(0, 0);
	run_ms(5);
	cr_expect_eq(o->ncomp, 0u);
	cr_expect_eq(o->nerr, 1u);
	cr_expect_eq(view_chunks(f.lnx), 0u);
	close_now();
}

BOTH(closing_with_hedges_under_way)
{
	open_used(kind, 2);
	stuck_on(0);
	f.core[1]->hold_reads = true;
	RUN_UNTIL(f.lnx->stats.hedges && fake_held(f.core[1]), 50);
	close_now();
}

/* The whole peer stands still: that is no rail's fault. */
BOTH(a_peer_without_cpu)
{
	struct side *s = &side[0];
	struct op *o;

	open_used(kind, 2);
	f.core[1]->hold_reads = true;
	o = stuck_on(0);
	s->mute = true;
	run_ms(2000);
	cr_expect_eq(f.lnx->stats.hedges, 0u);
	cr_expect_eq(f.lnx->stats.late_reads, 0u);
	s->mute = false;
	finish_all(0, 0);
	finish_all(1, 0);
	RUN_UNTIL(o->ncomp, 100);
	close_clean();
}

/* What the user put last is not used because others are late: that they fail is needed. */
BOTH(hedges_keep_the_order_of_the_user)
{
	struct side *s = &side[0];
	struct op *o;

	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = LNX_NS_PER_S;
	force_second(inside(s), path_of(s, 1));
	o = stuck_on(0);
	run_ms(200);
	cr_expect_eq(f.lnx->stats.hedges, 0u);
	cr_expect_eq(o->ncomp, 0u);
	finish_all(0, 0);
	RUN_UNTIL(o->ncomp, 100);
	close_clean();
}

/* Nor is it one that this process did not look for long. */
BOTH(computing_makes_nothing_late)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_used(kind, 2);
	for (i = 0; i < 20; i++) {
		f.core[0]->hold_reads = f.core[1]->hold_reads = true;
		o = large_from(s);
		fake_passes(&f, 2);
		fake_now_ns += 100 * LNX_NS_PER_MS;
		/* One rail is polled before the other. */
		finish_all(1, 0);
		fake_pass(&f);
		finish_all(0, 0);
		RUN_UNTIL(o->ncomp, 20);
	}
	cr_expect_eq(f.lnx->stats.hedges, 0u);
	close_clean();
}

/* No more than a few at a time, and a share of all. */
BOTH(hedges_are_few)
{
	struct side *s = &side[0];
	struct op *o[8];
	uint64_t read = 0;
	unsigned i, k;

	fake_conf.chunk = 16384;
	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = 3600 * LNX_NS_PER_S;
	fake_conf.chunk = PIECE;
	f.core[0]->hold_reads = true;
	for (i = 0; i < 20; i++) {
		for (k = 0; k < LNX_ARRAY_SIZE(o); k++, read += LARGE)
			o[k] = large_from(s);
		for (k = 0; k < 100; k++) {
			run_ms(1);
			cr_assert_leq(view_hedges(inside(s)), LNX_HEDGE_MAX);
		}
		/* What was late comes at last; the next are late again. */
		fake_finish_all(f.core[0]);
		for (k = 0; k < LNX_ARRAY_SIZE(o); k++) {
			unsigned ms;

			for (ms = 0; ms < 1000 && !o[k]->ncomp; ms++) {
				run_ms(1);
				fake_finish_all(f.core[0]);
			}
			cr_assert_eq(o[k]->ncomp, 1u);
		}
	}
	cr_expect_gt(f.lnx->stats.hedges, 0u);
	cr_expect_leq(f.lnx->stats.hedge_length,
		      read / LNX_HEDGE_SHARE + LNX_HEDGE_AHEAD + PIECE);
	close_clean();
}

/* The rail is well again: it carries its share soon. */
BOTH(a_path_recovers)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i, n, ms;

	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = 3600 * LNX_NS_PER_S;
	cuts_work = true;
	f.core[0]->hold_reads = true;
	/* Sick for 5 s. */
	for (i = 0; i < 100; i++) {
		o = large_from(s);
		for (ms = 0; ms < 50 || !o->ncomp; ms++)
			run_ms(1);
	}
	n = f.core[0]->nread;
	f.core[0]->hold_reads = false;
	for (ms = 0; f.core[0]->nread < n + 40; ms++) {
		o = large_from(s);
		run_ms(1);
		cr_assert_lt(ms, 2000u);
	}
	run_ms(10);
	cr_expect_eq(view_read_window(path_of(s, 0)), 0u);
	close_clean();
}

/* If both rails are late in turn, neither makes the other one wait. */
BOTH(pieces_are_never_without_a_path)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i, ms;

	open_used(kind, 2);
	f.lnx->plan.rail_min_ns = f.lnx->plan.rail_ns = 3600 * LNX_NS_PER_S;
	cuts_work = true;
	for (i = 0; i < 100; i++) {
		f.core[i & 1]->hold_reads = true;
		o = large_from(s);
		for (ms = 0; !o->ncomp; ms++) {
			run_ms(1);
			cr_assert_leq(ms, 200u, "message %u", i);
		}
		f.core[i & 1]->hold_reads = false;
	}
	close_clean();
}

/* A path that is only late answers PROBEs; one that does not is dead. */
BOTH(a_dead_path_is_found_without_reads)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_used(kind, 2);
	cuts_work = true;
	o = stuck_on(0);
	black_hole(0);
	RUN_UNTIL(o->ncomp, 100);
	/* Nothing is under way there any more. */
	cr_expect_eq(view_nread(path_of(s, 0)), 0u);
	for (i = 0; i < 500 && !is_down(s, 0); i++) {
		send1(s, 200);
		run_ms(1);
	}
	cr_expect(is_down(s, 0));
	heal(0);
	f.core[0]->hold_reads = false;
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}
