/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Health of paths and rails in use: every class of failure is charged where it belongs and
 * nowhere else, what works again counts up, and the numbers steer.
 */
#include <string.h>

#include "fail_world.h"
#include "fake_inside.h"
#include "policy/errclass.h"
#include "rel/detect.h"
#include "rel/piece.h"
#include "rel/sched.h"
#include "rel/recovery.h"
#include "view.h"

#define BOTH(name)	FAIL_BOTH(health_live, name)
#define FULL		LNX_HEALTH_MAX

static struct lnx_health *remote_of(struct side *s, unsigned rail)
{
	return view_remote_health(path_of(s, rail));
}

static bool all_well(void)
{
	unsigned i, r;

	for (r = 0; r < nrail; r++) {
		if (f.lnx->rail[r]->health.value != FULL)
			return false;
		for (i = 0; i < nside; i++)
			if (view_health(path_of(&side[i], r)) != FULL ||
			    remote_of(&side[i], r)->value != FULL)
				return false;
	}
	return true;
}

static void charge(struct side *s, unsigned rail, unsigned class)
{
	lnx_lock(&f.lnx->lock);
	lnx_detect_charge(inside(s), path_of(s, rail), class, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
}

/* Messages to all sides, until nothing is sick any more. */
static void until_well(void)
{
	unsigned i, n;

	for (n = 0; n < 400 && !all_well(); n++) {
		for (i = 0; i < nside; i++)
			send1(&side[i], 200);
		run_ms(60);
	}
	for (i = 0; i < nrail * nside; i++)
		cr_assert(all_well(), "%u: path %u, rail %u, remote %u", i,
			  view_health(path_of(&side[i / nrail], i % nrail)),
			  f.lnx->rail[i % nrail]->health.value,
			  remote_of(&side[i / nrail], i % nrail)->value);
}

static void one_class(enum lnx_rail_kind kind, unsigned rails, unsigned class)
{
	const char *name = lnx_class_name(class);
	unsigned charges, step, r;
	struct lnx_stats stats;

	open_met(kind, rails, 2);
	until_well();
	step = f.lnx->plan.step[class];
	charges = lnx_class_charges(class, rails, false);
	stats = f.lnx->stats;
	charge(&side[0], 0, class);
	/* The counter of the class, and no other. */
	lnx_class_count(&stats, class);
	cr_expect_eq(memcmp(&stats, &f.lnx->stats, sizeof(stats)), 0, "%s", name);
	cr_expect_eq(view_health(path_of(&side[0], 0)), FULL - step, "%s", name);
	cr_expect_eq(f.lnx->rail[0]->health.value,
		     FULL - (charges & LNX_CHARGE_LOCAL ? step : 0), "%s", name);
	cr_expect_eq(remote_of(&side[0], 0)->value,
		     FULL - (charges & LNX_CHARGE_REMOTE ? step : 0), "%s", name);
	/* The innocents. */
	for (r = 0; r < rails; r++) {
		cr_expect_eq(view_health(path_of(&side[1], r)), FULL);
		cr_expect_eq(remote_of(&side[1], r)->value, FULL);
		if (!r)
			continue;
		cr_expect_eq(view_health(path_of(&side[0], r)), FULL);
		cr_expect_eq(f.lnx->rail[r]->health.value, FULL);
		cr_expect_eq(remote_of(&side[0], r)->value, FULL);
	}
	until_well();
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

BOTH(every_class_of_one_path)
{
	unsigned class;

	for (class = 1; class < LNX_CLASS_COUNT; class++)
		one_class(kind, 1, class);
}

BOTH(every_class_of_several_paths)
{
	unsigned class;

	for (class = 1; class < LNX_CLASS_COUNT; class++)
		one_class(kind, 2, class);
}

/* Failures that take the number to 0, while other things still pass. */
BOTH(a_spent_path_goes_down)
{
	unsigned i;

	open_met(kind, 2, 2);
	until_well();
	for (i = 0; i < FULL; i++)
		charge(&side[0], 0, LNX_CLASS_REMOTE_ERROR);
	cr_expect_eq(view_health(path_of(&side[0], 0)), 0u);
	send1(&side[0], 200);
	RUN_UNTIL(is_down(&side[0], 0), 10);
	cr_expect(!is_down(&side[0], 1));
	cr_expect(!is_down(&side[1], 0));
	/* It is pinged, and answers. */
	RUN_UNTIL(!is_down(&side[0], 0), 5000);
	close_clean();
}

/* There is nothing better. */
BOTH(the_only_path_stays)
{
	struct op *o;
	unsigned i;

	open_met(kind, 1, 1);
	for (i = 0; i < FULL; i++)
		charge(&side[0], 0, LNX_CLASS_NETWORK_TIMEOUT);
	cr_expect_eq(view_health(path_of(&side[0], 0)), 0u);
	o = send1(&side[0], 200);
	RUN_UNTIL(o->ncomp, 100);
	cr_expect(!is_down(&side[0], 0));
	until_well();
	close_clean();
}

/* The last one that is left, too. */
BOTH(the_last_path_stays)
{
	struct op *o;
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 2 * FULL; i++)
		charge(&side[0], i & 1, LNX_CLASS_REMOTE_ERROR);
	o = send1(&side[0], 200);
	run_ms(10);
	cr_expect(o->ncomp);
	cr_expect(!is_down(&side[0], 0) || !is_down(&side[0], 1));
	close_clean();
}

/* The pieces of a large message, by path. */
static size_t piece(struct side *s, unsigned rail)
{
	struct lnx_peer *peer = inside(s);
	struct lnx_sched sched;
	size_t len;

	lnx_lock(&f.lnx->lock);
	force_pull_left(peer, 64 * LARGE);
	lnx_piece_facts(peer, 3, fake_now_ns, &sched);
	len = lnx_sched_piece_len(&sched, view_index(path_of(s, rail)), 64 * LARGE);
	force_pull_left(peer, 0);
	lnx_unlock(&f.lnx->lock);
	return len;
}

BOTH(a_sick_path_gets_less)
{
	struct side *s = &side[0];
	size_t well, less, other;
	unsigned i, r;

	fake_conf.chunk = 64 * LARGE;
	open_met(kind, 2, 1);
	until_well();
	for (r = 0; r < 2; r++)
		force_read_rate(path_of(s, r), 1000000000, false, fake_now_ns);
	well = piece(s, 0);
	cr_expect_geq(piece(s, 1), well - well / 10);
	cr_expect_leq(piece(s, 1), well + well / 10);
	for (i = 0; view_health(path_of(s, 0)) > 600; i++)
		charge(s, 0, LNX_CLASS_REMOTE_ERROR);
	less = piece(s, 0);
	other = piece(s, 1);
	cr_expect_lt(less, well * 9 / 10, "%zu of %zu", less, well);
	cr_expect_geq(other, well - well / 10, "%zu, was %zu", other, well);
	/* If all are sick, all are equal again. */
	for (i = 0; view_health(path_of(s, 1)) > 600; i++)
		charge(s, 1, LNX_CLASS_REMOTE_ERROR);
	cr_expect_geq(piece(s, 0), well - well / 10);
	close_clean();
}

/* The core refuses frames with an error: once for each time that it begins to. */
BOTH(refused_posts)
{
	struct fake_core *core;
	unsigned class, i, n;

	open_met(kind, 1, 1);
	until_well();
	core = f.core[0];
	class = lnx_errclass(f.lnx->rail[0]->prov, LNX_WHILE_POST, FI_EHOSTUNREACH, 0);
	cr_assert_neq(class, LNX_CLASS_OK);
	for (i = 1; i <= 2; i++) {
		struct lnx_stats want = f.lnx->stats;
		struct op *o;

		core->refuse_err = -FI_EHOSTUNREACH;
		core->inject_again = core->send_again = 5;
		o = send1(&side[0], 200);
		n = view_health(path_of(&side[0], 0));
		cr_expect_eq(n, FULL - f.lnx->plan.step[class]);
		RUN_UNTIL(o->ncomp && all_there(), 200);
		lnx_class_count(&want, class);
		cr_expect_eq(f.lnx->stats.local_no_route_count, want.local_no_route_count);
		cr_expect_eq(f.lnx->stats.remote_dropped_count, want.remote_dropped_count);
		cr_expect_eq(f.lnx->stats.local_error_count, want.local_error_count);
		cr_expect_eq(f.lnx->stats.network_timeout_count, want.network_timeout_count);
		core->inject_again = core->send_again = 0;
		core->refuse_err = 0;
		until_well();
	}
	close_clean();
}

/* What our own close cuts is no fault of a peer. */
BOTH(cut_by_our_own_close)
{
	const struct lnx_stats *stats;
	unsigned r, before;
	uint64_t silent;
	struct op *o;

	open_met(kind, 2, 1);
	until_well();
	stats = &f.lnx->stats;
	o = force_reopen(&side[0]);
	/* All the time, or it would be well again before it is looked at. */
	for (r = 0; r < 5000 && !o->ncomp; r++) {
		before = remote_of(&side[0], 0)->value;
		silent = stats->network_timeout_count;
		run_ms(1);
		/* The silence before that may come from either end, the close does not. */
		if (stats->network_timeout_count == silent)
			cr_assert_geq(remote_of(&side[0], 0)->value, before,
				      "the peer's rail");
		cr_assert_eq(remote_of(&side[0], 1)->value, FULL, "its other one");
		cr_assert_eq(view_health(path_of(&side[0], 1)), FULL, "the other path");
		cr_assert_eq(f.lnx->rail[1]->health.value, FULL, "our other rail");
	}
	cr_assert(o->ncomp);
	cr_expect_lt(view_health(path_of(&side[0], 0)), FULL);
	cr_expect_lt(f.lnx->rail[0]->health.value, remote_of(&side[0], 0)->value);
	cr_expect_eq(stats->local_aborted_count, 1u);
	cr_expect_eq(stats->network_timeout_count, 1u);
	for (r = 0; r < 2; r++)
		cr_expect_eq(f.lnx->rail[r]->health.down, false);
	close_clean();
}

/* No connection to it, until the deadline. */
BOTH(an_expired_connect)
{
	unsigned class, charges, step;
	struct lnx_stats want;
	struct op *o;

	open_n(kind, 1, 2);
	want = f.lnx->stats;
	class = lnx_errclass(f.lnx->rail[0]->prov, LNX_WHILE_CONNECT, FI_EAGAIN, 0);
	lnx_class_count(&want, class);
	f.core[0]->inject_again = f.core[0]->send_again = FAKE_ALWAYS;
	o = send1(&side[0], 200);
	RUN_UNTIL(o->nerr, 60000);
	cr_expect_eq(f.lnx->stats.network_timeout_count, want.network_timeout_count);
	cr_expect_eq(f.lnx->stats.remote_dropped_count, want.remote_dropped_count);
	/* Charged is what the table of classes says, and nothing else. */
	step = f.lnx->plan.step[class];
	charges = lnx_class_charges(class, 1, false);
	cr_assert_gt(step, 0u);
	cr_expect_eq(view_health(path_of(&side[0], 0)), FULL - step);
	cr_expect_eq(f.lnx->rail[0]->health.value,
		     FULL - (charges & LNX_CHARGE_LOCAL ? step : 0));
	cr_expect_eq(remote_of(&side[0], 0)->value,
		     FULL - (charges & LNX_CHARGE_REMOTE ? step : 0));
	f.core[0]->inject_again = f.core[0]->send_again = 0;
	close_now();
}

/* Frames, for which all else waits, go over a path that is well. */
BOTH(frames_leave_a_sick_path)
{
	struct side *s = &side[0];
	unsigned first, i;

	open_met(kind, 2, 1);
	run_ms(200);
	first = view_frame_path(inside(s));
	for (i = 0; i < 6; i++)
		charge(s, first, LNX_CLASS_REMOTE_ERROR);
	send1(s, 200);
	RUN_UNTIL(view_frame_path(inside(s)) != first, 10);
	until_well();
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

/* ---- FI_LNX_RECOVERY_LIMIT ---- */

/* answers: the kernel does, so that no answer is outstanding later. */
static void given_up_open(enum lnx_rail_kind kind, bool answers)
{
	open_met(kind, 2, 1);
	until_well();
	f.lnx->plan.limit_ns = 3 * LNX_NS_PER_S;
	kernel_refuses[0] = answers;
	path0_down();
}

static uint64_t last_ping(void)
{
	return view_last_ping(path_of(&side[0], 0));
}

static void expect_given_up(void)
{
	uint64_t last = last_ping();

	run_ms(2500);
	cr_expect_gt(last_ping(), last, "it is pinged before the limit");
	run_ms(2500);
	last = last_ping();
	run_ms(10000);
	cr_expect_eq(last_ping(), last, "and not any more");
	heal(0);
	kernel_refuses[0] = false;
	run_ms(3000);
	cr_expect(is_down(&side[0], 0));
}

BOTH(given_up_until_the_peer_asks)
{
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .tag = 1, .data = 1 };

	given_up_open(kind, true);
	expect_given_up();
	from(&side[0], 0, 0, h, NULL, 0);
	RUN_UNTIL(!is_down(&side[0], 0), 3000);
	close_clean();
}

BOTH(given_up_until_its_link_comes)
{
	given_up_open(kind, true);
	expect_given_up();
	link_is(0, false);
	run_ms(100);
	link_is(0, true);
	RUN_UNTIL(!is_down(&side[0], 0), 3000);
	close_clean();
}

/* If nothing else works it is pinged as long as something has to go over it. */
BOTH(not_given_up_while_it_is_needed)
{
	uint64_t last;
	struct op *o;

	given_up_open(kind, false);
	run_ms(6000);
	black_hole(1);
	kernel_alive[1] = true;
	last = last_ping();
	o = send1(&side[0], 200);
	run_ms(5000);
	cr_expect_gt(last_ping(), last);
	heal(0);
	RUN_UNTIL(o->ncomp, 5000);
	heal(1);
	close_clean();
}

/* Operations that end because we close a rail say nothing about the peers that they were
 * with, nor about paths. */
static void we_close_a_rail(enum lnx_rail_kind kind, bool flush)
{
	unsigned less, i;

	open_met(kind, 2, 2);
	until_well();
	less = f.lnx->plan.step[LNX_CLASS_LOCAL_ABORTED];
	f.core[0]->flush = flush;
	f.core[0]->hold_sends = f.core[0]->hold_reads = true;
	for (i = 0; i < nside; i++) {
		large_from(&side[i]);
		send1(&side[i], 4000);
	}
	step();
	cr_assert_gt(fake_held(f.core[0]), 3u);
	f.core[0]->hold_sends = f.core[0]->hold_reads = false;
	lnx_lock(&f.lnx->lock);
	lnx_reopen_rail(f.lnx->rail[0], fake_now_ns);
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(f.lnx->rail[0]->health.value, FULL - less);
	for (i = 0; i < nside; i++) {
		cr_expect_eq(view_health(path_of(&side[i], 0)), FULL, "side %u", i);
		cr_expect_eq(remote_of(&side[i], 0)->value, FULL, "side %u", i);
	}
	close_clean();
}

BOTH(closing_a_rail_charges_no_peer) { we_close_a_rail(kind, false); }
BOTH(closing_a_rail_that_reports_it_charges_no_peer) { we_close_a_rail(kind, true); }
