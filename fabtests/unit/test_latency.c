/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rel/latency.c: frames stay on the path over which the peer answers soon enough.  The
 * tests answer the PROBEs about that, each rail with its own delay.
 */
#include "fail_world.h"

#include "rel/latency.h"
#include "rel/recovery.h"

#define BOTH(name)	FAIL_BOTH(latency, name)
#define NEVER		100000u

static unsigned delay_ms[FAKE_RAILS];	/* of an answer */
static unsigned answered[FAKE_RAILS];
static unsigned waited_ms[FAKE_RAILS];
static bool odd;
static unsigned gap = 1;

/* A message every 1 + gap ms. */
static void run(unsigned ms)
{
	struct side *s = &side[0];
	static unsigned n;
	unsigned r;

	while (ms--) {
		if (odd)
			send1(s, 200);
		odd = !odd && !(++n % gap);
		run_ms(1);
		for (r = 0; r < nrail; r++) {
			struct fake_core *core = f.core[r];

			if (core->nlatency == answered[r]) {
				waited_ms[r] = 0;
			} else if (waited_ms[r]++ >= delay_ms[r]) {
				answered[r] = core->nlatency;
				pong(s, r, core->latency.tag, core->latency.data);
			}
		}
	}
}

static unsigned cur(void)
{
	return view_frame_path(inside(&side[0]));
}

static void open_with(enum lnx_rail_kind kind, unsigned first, unsigned second)
{
	unsigned r;

	open_met(kind, 2, 1);
	side[0].test_answers = true;
	delay_ms[0] = first;
	delay_ms[1] = second;
	for (r = 0; r < 2; r++)
		answered[r] = waited_ms[r] = 0;
	run(300);
}

BOTH(a_far_path_is_left_and_comes_back)
{
	struct side *s = &side[0];
	unsigned n;

	open_with(kind, 1, 1);
	cr_assert_eq(cur(), 0u);
	delay_ms[0] = 50;
	run(400);
	cr_assert_eq(cur(), 1u);
	n = s->nseen[0];
	run(500);
	cr_expect_eq(s->nseen[0], n);
	delay_ms[0] = 1;
	run(900);
	cr_assert_eq(cur(), 0u);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

/* Before an answer comes, the time without it counts. */
BOTH(a_path_without_answers_is_left)
{
	open_with(kind, 1, 1);
	delay_ms[0] = NEVER;
	run(300);
	cr_expect_eq(cur(), 1u);
	delay_ms[0] = 1;
	run(900);
	cr_expect_eq(cur(), 0u);
	close_clean();
}

/* Both are far: that is how far the peer is, or it computes. */
BOTH(a_far_peer_changes_nothing)
{
	open_with(kind, 60, 60);
	cr_expect_eq(cur(), 0u);
	delay_ms[0] = delay_ms[1] = NEVER;
	run(500);
	cr_expect_eq(cur(), 0u);
	close_clean();
}

/* Its core takes no question, and each may be a connect that the other end refuses: it is asked
 * less and less often, and does not stop. */
BOTH(refused_questions_become_rare)
{
	struct fake_core *core;
	unsigned soon, taken;

	open_with(kind, 1, 1);
	core = f.core[1];
	nunanswered = 0;
	core->latency_again = FAKE_ALWAYS;
	run(1000);
	soon = core->nrefused_latency;
	cr_expect_geq(soon, 10u);
	cr_expect_leq(soon, 60u, "%u questions in 1 s", soon);
	run(1000);
	soon = core->nrefused_latency - soon;
	cr_expect_geq(soon, 3u);
	cr_expect_leq(soon, 10u, "%u questions in the next s", soon);
	/* What may hang is looked for, and not with each of them. */
	cr_expect_geq(nunanswered, 2u);
	cr_expect_leq(nunanswered, 7u, "%u times", nunanswered);
	core->latency_again = 0;
	taken = core->nlatency;
	run(500);
	cr_expect_gt(core->nlatency, taken);
	close_clean();
}

/* To look for it takes 40 ms of CPU time: a fiftieth of the time it may take. */
BOTH(what_hangs_is_looked_for_at_a_price)
{
	open_with(kind, 1, 1);
	nunanswered = 0;
	fake_cost_ns = 40 * LNX_NS_PER_MS;
	f.core[1]->latency_again = FAKE_ALWAYS;
	run(2000);
	cr_expect_eq(nunanswered, 1u, "%u times", nunanswered);
	run(3000);
	cr_expect_geq(nunanswered, 2u);
	cr_expect_leq(nunanswered, 3u, "%u times", nunanswered);
	f.core[1]->latency_again = 0;
	close_clean();
}

/* That it was not asked for long is no reason to ask it rarely. */
BOTH(refused_questions_after_a_pause)
{
	open_with(kind, 1, 1);
	fake_now_ns += 60 * LNX_NS_PER_S;
	f.core[1]->latency_again = FAKE_ALWAYS;
	run(200);
	cr_expect_geq(f.core[1]->nrefused_latency, 10u, "%u questions",
		      f.core[1]->nrefused_latency);
	f.core[1]->latency_again = 0;
	run(300);
	close_clean();
}

/* A time in which nothing was looked at is no time that an answer took. */
BOTH(computing_is_no_latency)
{
	struct side *s = &side[0];
	unsigned i, k;

	open_with(kind, 1, 1);
	for (i = 0; i < 10; i++) {
		/* Until a PROBE is under way over the first path only. */
		answered[0] = f.core[0]->nlatency;
		for (k = 0; k < 500 && f.core[0]->nlatency == answered[0]; k++)
			run(1);
		fake_now_ns += 500 * LNX_NS_PER_MS;
		pong(s, 0, f.core[0]->latency.tag, f.core[0]->latency.data);
		answered[0] = f.core[0]->nlatency;
		run(20);
		cr_assert_eq(cur(), 0u);
	}
	close_clean();
}

/* A peer with one path is never asked, whatever it answers. */
BOTH(answers_of_a_single_path)
{
	static const uint64_t odd[] = {
		0, 1, 2, LNX_WIRE_PROBE_LATENCY, LNX_WIRE_PROBE_LATENCY | 1,
		UINT64_MAX,
	};
	unsigned i, k;

	open_met(kind, 1, 1);
	for (i = 0; i < LNX_ARRAY_SIZE(odd); i++) {
		for (k = 0; k < LNX_ARRAY_SIZE(odd); k++) {
			pong(&side[0], 0, odd[i], odd[k]);
			run_ms(1);
		}
	}
	cr_expect_eq(f.core[0]->nlatency, 0u);
	close_clean();
}

/* Numbers that were not asked for, answers by another rail, no such path. */
BOTH(wrong_answers)
{
	struct side *s = &side[0];
	unsigned i;

	open_with(kind, 1, 1);
	for (i = 0; i < 500; i++) {
		uint64_t data = f.core[0]->latency.data;

		pong(s, 1, 1, data);
		pong(s, 0, 1, data + 1 + i);
		pong(s, 0, 7 + i, LNX_WIRE_PROBE_LATENCY | i);
		pong(s, 0, 0, UINT64_MAX);
		run(1);
	}
	cr_expect_eq(cur(), 0u);
	cr_expect_lt(lnx_latency_of(path_of(s, 0), fake_now_ns), 10 * LNX_NS_PER_MS);
	/* About ten a second over each path, and none without traffic. */
	i = f.core[0]->nlatency;
	cr_expect_gt(i, 4u);
	cr_expect_lt(i, 15u);
	run_ms(2000);
	cr_expect_leq(f.core[0]->nlatency, i + 1);
	close_clean();
}

/* 24 frames of 4000 bytes, more than one path takes at once; how long until all are
 * acknowledged. */
static unsigned burst_ms(void)
{
	struct side *s = &side[0];
	unsigned i, ms;

	for (i = 0; i < 24; i++)
		send1(s, 4000);
	step();
	for (ms = 0; ms < 5000; ms++) {
		if (view_all_acked(inside(s)))
			break;
		odd = false;
		run(1);
		step();
	}
	return ms;
}

/* Frames leave a black hole at once, so that little is missed there; it is found all the
 * same, and what is sent meanwhile does not spill there. */
BOTH(a_black_hole_is_found)
{
	struct side *s = &side[0];
	unsigned i, ms;

	open_with(kind, 1, 1);
	for (i = 0; i < 5; i++)
		cr_expect_leq(burst_ms(), 5u);
	black_hole(0);
	delay_ms[0] = NEVER;
	for (i = 0; i < 3000 && !is_down(s, 0); i++)
		run(1);
	cr_expect(is_down(s, 0), "after %u ms", i);
	for (i = ms = 0; i < 20; i++)
		ms += burst_ms();
	cr_expect_leq(ms, 200u);
	close_now();
}

/*
 * A connection is lost with nothing under way, and the network has gone: the core takes neither
 * frames nor questions while it connects.  Nothing is late, and still the path does not pass for
 * one that works.
 */
BOTH(a_connection_that_is_not_made_anew)
{
	struct side *s = &side[0];
	struct fake_core *core;
	unsigned i;

	open_with(kind, 1, 1);
	core = f.core[1];
	black_hole(1);
	delay_ms[1] = NEVER;
	core->send_again = core->inject_again = core->latency_again = FAKE_ALWAYS;
	for (i = 0; i < 5000 && !is_down(s, 1); i++)
		run(1);
	cr_expect(is_down(s, 1), "after %u ms", i);
	run(3000);
	cr_expect(is_down(s, 1));
	cr_expect_geq(view_npings(path_of(s, 1)), 2u);
	cr_expect(!is_down(s, 0));
	core->send_again = core->inject_again = core->latency_again = 0;
	heal(1);
	delay_ms[1] = 1;
	for (i = 0; i < 20000 && is_down(s, 1); i++)
		run(1);
	cr_expect(!is_down(s, 1));
	close_clean();
}

/* Until what is sent now is acknowledged, in ms. */
static unsigned acked_after_ms(void)
{
	struct side *s = &side[0];
	uint32_t end;
	unsigned ms;

	send1(s, 200);
	end = view_next(inside(s));
	for (ms = 0; (int32_t)(view_acked(inside(s)) - end) < 0; ms++) {
		cr_assert_lt(ms, 1000u);
		run(1);
	}
	return ms;
}

static void rail0_works(bool works)
{
	lost_to[0] = !works;
	delay_ms[0] = works ? 1 : NEVER;
}

/* The other path tells that it is late, long before the next PROBE is due. */
BOTH(a_late_frame_goes_elsewhere)
{
	unsigned i, most = 0, n = 0;

	open_with(kind, 1, 1);
	for (i = 0; i < 40; i++) {
		unsigned ms;

		/* At any time between two PROBEs. */
		run(7 * i % 100);
		if (cur())
			continue;
		cr_expect_leq(acked_after_ms(), 3u);
		rail0_works(false);
		ms = acked_after_ms();
		n++;
		most = LNX_MAX(most, ms);
		cr_expect_eq(cur(), 1u);
		cr_expect_eq(f.lnx->stats.late_frames, n);
		rail0_works(true);
		cr_expect_leq(acked_after_ms(), 3u);
	}
	cr_expect_gt(n, 1u);
	/* 10 until it is seen, 6 until it is late, and the answers. */
	cr_expect_leq(most, 20u, "%u ms", most);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

/* How long frames stay away from the first path, in ms. */
static unsigned away_ms(void)
{
	unsigned ms;

	rail0_works(false);
	acked_after_ms();
	cr_assert_eq(cur(), 1u);
	rail0_works(true);
	for (ms = 0; cur(); ms++) {
		cr_assert_lt(ms, 20000u);
		run(1);
	}
	return ms;
}

BOTH(frames_stay_away_longer_each_time)
{
	unsigned i, ms, before = 0;

	open_with(kind, 1, 1);
	gap = 40;
	for (i = 0; i < 6; i++) {
		ms = away_ms();
		cr_expect_geq(ms, 450u << LNX_MIN(i, 4u));
		cr_expect_gt(ms, before + (i > 4 ? 0 : before / 2), "%u ms after %u", ms,
			     before);
		cr_expect_lt(ms, 10000u);
		before = i > 3 ? 0 : ms;
	}
	/* All was well for long. */
	run(60000);
	cr_expect_eq(cur(), 0u);
	cr_expect_lt(away_ms(), 1000u);
	close_clean();
}

/* If the other one is far, frames come back at once. */
BOTH(no_path_is_left_for_a_worse_one)
{
	unsigned i;

	open_with(kind, 1, 1);
	rail0_works(false);
	acked_after_ms();
	cr_assert_eq(cur(), 1u);
	rail0_works(true);
	delay_ms[1] = 60;
	for (i = 0; i < 300 && cur(); i++)
		run(1);
	cr_expect_eq(cur(), 0u, "after %u ms", i);
	cr_expect_lt(i, 250u);
	close_clean();
}

/* A peer that does not acknowledge has the frame, or has no CPU. */
BOTH(a_frame_is_not_late_because_no_answer_comes)
{
	struct side *s = &side[0];

	open_with(kind, 1, 1);
	s->mute = true;
	delay_ms[0] = delay_ms[1] = NEVER;
	run(400);
	cr_expect_eq(f.lnx->stats.late_frames, 0u);
	s->mute = false;
	delay_ms[0] = delay_ms[1] = 1;
	close_clean();
}

/* Not all of a full window at once: the peer has most of it. */
BOTH(few_late_frames_at_a_time)
{
	struct side *s = &side[0];
	uint64_t n;
	unsigned i;

	open_with(kind, 1, 1);
	n = f.lnx->stats.resend_count;
	rail0_works(false);
	for (i = 0; i < 150; i++)
		send1(s, 64);
	for (i = 0; i < 50 && !f.lnx->stats.late_frames; i++)
		run(1);
	cr_assert_eq(f.lnx->stats.late_frames, 1u);
	run(1);
	cr_expect_leq(f.lnx->stats.resend_count - n, 64u, "%lu",
		      f.lnx->stats.resend_count - n);
	rail0_works(true);
	close_clean();
}

/* What the best path has no room for does not go where it takes 50 ms longer. */
BOTH(nothing_spills_to_a_far_path)
{
	struct side *s = &side[0];
	unsigned i, n;

	open_with(kind, 1, 50);
	run(600);
	n = s->nseen[1];
	s->no_acks = true;
	for (i = 0; i < 30; i++)
		send1(s, 4000);
	step();
	cr_expect_leq(s->nseen[1] - n, 1u, "%u of 30", s->nseen[1] - n);
	s->no_acks = false;
	close_now();
}

/* Nor to one where frames were late, while it may be so again. */
BOTH(nothing_spills_to_a_path_that_was_left)
{
	struct side *s = &side[0];
	unsigned i, n;

	open_with(kind, 1, 1);
	rail0_works(false);
	acked_after_ms();
	cr_assert_eq(cur(), 1u);
	rail0_works(true);
	run(150);
	cr_assert_eq(cur(), 1u);
	n = s->nseen[0];
	s->no_acks = true;
	for (i = 0; i < 30; i++)
		send1(s, 4000);
	step();
	cr_expect_eq(s->nseen[0], n, "%u of 30", s->nseen[0] - n);
	s->no_acks = false;
	run(50);
	/* If the other one does not work it is used all the same. */
	black_hole(1);
	delay_ms[1] = NEVER;
	n = s->nseen[0];
	RUN_UNTIL((send1(s, 200), s->nseen[0] > n), 200);
	heal(1);
	close_now();
}

/* A PROBE that was under way when the path went DOWN says nothing about it later. */
BOTH(a_restored_path_is_near)
{
	struct side *s = &side[0];
	unsigned i;

	open_with(kind, 1, 1);
	delay_ms[0] = NEVER;
	i = f.core[0]->nlatency;
	while (f.core[0]->nlatency == i)
		run(1);
	black_hole(0);
	lnx_detect_path_down(inside(s), path_of(s, 0), "test", fake_now_ns);
	run(5000);
	delay_ms[0] = 1;
	answered[0] = f.core[0]->nlatency;
	heal(0);
	for (i = 0; i < 5000 && is_down(s, 0); i++)
		run(1);
	cr_assert(!is_down(s, 0));
	for (i = 0; i < 400; i++) {
		cr_assert_leq(lnx_latency_of(path_of(s, 0), fake_now_ns),
			      20 * LNX_NS_PER_MS, "after %u ms", i);
		run(1);
	}
	close_now();
}

/* How many answers about path 0 and path 1 have left over rail. */
static void count_pongs(unsigned rail, unsigned n[2], const uint64_t data[2])
{
	struct fake_sent *m;

	n[0] = n[1] = 0;
	while ((m = fake_take(f.core[rail]))) {
		if (m->h.kind == LNX_KIND_PONG && m->h.tag - 1 < 2) {
			n[m->h.tag - 1]++;
			cr_expect_eq(m->h.data, data[m->h.tag - 1]);
		}
		free(m);
	}
}

/* They come together over one rail: about both paths, or about latency, too. */
BOTH(each_of_several_probes_is_answered)
{
	static const uint64_t late = LNX_WIRE_PROBE_LATENCY | 5;
	static const uint64_t data[][2] = { { 77, 78 }, { 77, late }, { late, 78 } };
	struct side *s = &side[0];
	unsigned i, k, n[2];

	open_with(kind, 1, 1);
	for (i = 0; i < LNX_ARRAY_SIZE(data); i++) {
		fake_passes(&f, 3);
		count_pongs(1, n, data[i]);
		for (k = 0; k < 2; k++)
			from(s, 1, 0, (struct lnx_hdr) {
				.kind = LNX_KIND_PROBE, .tag = 1 + k,
				.data = data[i][k],
			}, NULL, 0);
		fake_passes(&f, 3);
		count_pongs(1, n, data[i]);
		cr_expect(n[0] == 1 && n[1] == 1, "%u: %u, %u", i, n[0], n[1]);
	}
	/* About no path that there can be: no answer, and no harm. */
	from(s, 1, 0, (struct lnx_hdr) {
		.kind = LNX_KIND_PROBE, .tag = LNX_PATHS_MAX + 1, .data = 7,
	}, NULL, 0);
	from(s, 1, 0, (struct lnx_hdr) {
		.kind = LNX_KIND_PROBE, .tag = UINT64_MAX, .data = 7,
	}, NULL, 0);
	fake_passes(&f, 3);
	count_pongs(1, n, data[0]);
	cr_expect(!n[0] && !n[1]);
	close_now();
}
