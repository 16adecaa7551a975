/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A path that delivers nothing any more is probed, goes DOWN, and is restored
 * when it answers; a path that is slow, or whose peer computes, stays UP.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fail_world.h"

#define BOTH(name)	FAIL_BOTH(silence, name)

BOTH(silent_path_goes_down)
{
	struct side *s = &side[0];
	struct op *o[5];
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 1);
	seq = view_next(inside(s));
	black_hole(0);
	for (i = 0; i < 5; i++) {
		o[i] = send1(s, 200);
		run_ms(1);
	}
	cr_expect_eq(s->nprobe[1], 0u);	/* not at once */
	for (i = 0; i < 5000 && !s->nprobe[1]; i++)
		run_ms(1);
	cr_assert_eq(s->nprobe[1], 1u);
	cr_expect_eq(s->nprobe[0], 0u);
	RUN_UNTIL(is_down(s, 0), 100);
	cr_expect_eq(f.lnx->stats.paths_down, 1u);
	cr_expect(!is_down(s, 1));
	run_ms(10);
	cr_expect_eq(s->nseen[1], 5u);
	for (i = 0; i < 5; i++) {
		cr_expect_eq(s->seen[seq + i], 1u);
		cr_expect_eq(o[i]->ncomp, 1u);
	}
	/* Later frames use the other path at once. */
	for (i = 0; i < 20; i++)
		send1(s, 200);
	step();
	cr_expect_eq(s->nseen[1], 25u);
	close_clean();
}

/* While packets pass, the path may be silent for longer: it is congested. */
BOTH(a_kernel_that_answers_gives_time)
{
	uint64_t ms[2];
	unsigned k;

	for (k = 0; k < 2; k++) {
		uint64_t t0;

		open_met(kind, 2, 1);
		kernel_alive[0] = k;
		black_hole(0);
		send1(&side[0], 200);
		t0 = fake_now_ns;
		RUN_UNTIL(is_down(&side[0], 0), 2000);
		ms[k] = (fake_now_ns - t0) / LNX_NS_PER_MS;
		kernel_alive[0] = false;
		close_clean();
	}
	cr_expect(ms[1] >= 3 * ms[0] && ms[1] <= 5 * ms[0],
		  "%llu ms, and %llu where the kernel answers",
		  (unsigned long long)ms[0], (unsigned long long)ms[1]);
}

/* A report that answers an older frame shows nothing about the silence. */
BOTH(stale_report)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	s->no_acks = true;
	send1(s, 200);
	fake_passes(&f, 2);
	world();
	black_hole(0);
	send1(s, 200);
	/* An ack on a data frame, without a report of paths. */
	receive(s, 8);
	say(s, 1, LNX_KIND_TAG, ++s->next_tag);
	run_ms(1);
	cr_assert_eq(view_acked(inside(s)) + 1, view_posted(inside(s)));
	for (i = 0; i < 60 && !s->nprobe[1]; i++)
		run_ms(1);
	cr_assert_eq(s->nprobe[1], 1u);
	RUN_UNTIL(is_down(s, 0), 30);
	cr_expect_eq(s->nprobe[1], 2u);
	close_clean();
}

/* A PROBE names the path that it asks about. */
BOTH(the_question)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 3, 1);
	s->no_pongs = true;
	black_hole(0);
	send1(s, 200);
	for (i = 0; i < 5000 && !s->nprobe[1]; i++)
		run_ms(1);
	cr_expect_eq(s->probe[1].tag, 1u);
	cr_expect_eq(s->nprobe[2], 1u);	/* one of them may be silent, too */
	cr_expect_eq(s->probe[2].tag, 1u);
	close_clean();
}

/* A slow path is not dead. */
BOTH(slow_path_stays_up)
{
	struct side *s = &side[0];
	unsigned i, k;

	open_met(kind, 2, 1);
	s->no_acks = true;
	lost_to[0] = false;
	for (i = 0; i < 30; i++)
		send1(s, 200);
	for (i = 0; i < 60; i++) {
		struct fake_sent *held = f.core[0]->sent, *one = held, **end;

		f.core[0]->sent = NULL;
		f.core[0]->sent_end = &f.core[0]->sent;
		/* One frame passes every 25 ms. */
		if (one) {
			held = one->next;
			look_at(s, 0, one);
			free(one);
		}
		for (k = 0; k < 25; k++) {
			run_ms(1);
		}
		/* Retransmitted frames were seen; the rest waits, before what left last. */
		for (end = &held; *end; end = &(*end)->next)
			;
		*end = f.core[0]->sent;
		f.core[0]->sent = held;
		f.core[0]->sent_end = &f.core[0]->sent;
		while (*f.core[0]->sent_end)
			f.core[0]->sent_end = &(*f.core[0]->sent_end)->next;
	}
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	/* But what is late there goes over the other one. */
	cr_expect_gt(f.lnx->stats.late_frames, 0u);
	close_clean();
}

/* A peer that computes is as silent as one that is dead. */
BOTH(none_is_charged)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 10; i++)
		send1(s, 200);
	s->mute = true;
	for (i = 0; i < 600; i++) {
		fake_now_ns += 100 * LNX_NS_PER_MS;
		step();
	}
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	cr_expect(!lnx_peer_dead(inside(s)));
	/* It continues, and reads the frames from its buffers. */
	s->mute = false;
	run_ms(1000);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

/* We compute as well: after that, no peer had time to answer. */
BOTH(not_looked_at)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	kernel_takes_ms = 3;
	for (i = 0; i < 10; i++)
		send1(s, 200);
	s->mute = true;
	run_ms(20);
	for (i = 0; i < 10; i++) {
		fake_now_ns += 7000 * LNX_NS_PER_MS;
		step();
		run_ms(i);
		cr_assert(!lnx_peer_dead(inside(s)), "%u", i);
	}
	s->mute = false;
	run_ms(1000);
	close_clean();
}

/* ... and dead peers are still given up. */
BOTH(dead_one_is_not_looked_for)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_met(kind, 2, 1);
	kernel_takes_ms = 3;
	o = send_flags(s, 200, FI_DELIVERY_COMPLETE);
	black_hole(0);
	black_hole(1);
	for (i = 0; i < 20 && !lnx_peer_dead(inside(s)); i++) {
		fake_now_ns += 2000 * LNX_NS_PER_MS;
		step();
	}
	cr_assert(lnx_peer_dead(inside(s)));
	cr_expect_geq(i, 3u);
	cr_expect_eq(o->nerr, 1u);
	cr_expect_eq(o->err, FI_ETIMEDOUT);
	close_now();
}

/* Answers to questions about an earlier silence do not count for this one. */
BOTH(late_answer)
{
	struct side *s = &side[0];
	struct lnx_hdr old;
	unsigned i;

	open_met(kind, 2, 1);
	s->no_pongs = s->no_acks = true;
	send1(s, 200);
	for (i = 0; i < 5000 && !s->nprobe[1]; i++)
		run_ms(1);
	old = s->probe[1];
	cr_assert_eq(old.kind, LNX_KIND_PROBE);
	/* The frame has arrived, as its ack shows; its PONG takes another moment. */
	ack_on(s, 1);
	run_ms(5);
	cr_assert(all_there());
	/* Now a frame that is late because the peer computes. */
	s->nprobe[1] = 0;
	send1(s, 200);
	fake_passes(&f, 2);
	s->mute = true;
	for (i = 0; i < 200; i++) {
		run_ms(1);
		pong(s, 1, old.tag, old.data);
	}
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}

/* ---- restoring paths ---- */

BOTH(path_that_answers_is_used_again)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	path0_down();
	run_ms(50);
	cr_expect_eq(s->nprobe[0], 0u);
	heal(0);
	RUN_UNTIL(!is_down(s, 0), 5000);
	cr_expect_gt(s->nprobe[0], 0u);
	cr_expect_eq(f.lnx->stats.paths_restored, 1u);
	/* Frames were late on it, and stay away a little longer. */
	run_ms(600);
	memset(s->nseen, 0, sizeof(s->nseen));
	for (i = 0; i < 100; i++)
		send1(s, 4000);
	step();
	cr_expect_gt(s->nseen[0], 0u);
	cr_expect_gt(s->nseen[1], 0u);
	close_clean();
}

BOTH(wrong_answers)
{
	struct side *s = &side[0];
	uint64_t last = 0;
	unsigned i, k;

	open_met(kind, 3, 1);
	path0_down();
	s->no_pongs = true;
	heal(0);
	for (i = 0; i < 5; i++) {
		RUN_UNTIL(s->probe[0].tag && s->probe[0].data != last, 3000);
		/* Late PONGs. */
		if (last)
			pong(s, 0, 1, last);
		last = s->probe[0].data;
		/* Over other paths. */
		for (k = 1; k < 3; k++)
			pong(s, k, 1, last);
		/* For other paths. */
		pong(s, 0, 2, last);
		pong(s, 0, 3, last);
		/* Wrong, and almost right. */
		pong(s, 0, 1, 0);
		pong(s, 0, 1, last + 1);
		pong(s, 0, 1, last | 1ull << 32);
		pong(s, 0, 1ull << 32 | 1, last);
		fake_passes(&f, 3);
		cr_expect(is_down(s, 0));
	}
	pong(s, 0, 1, last);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

BOTH(hostile_values)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 8, 9, 255, 256, 257, 1ull << 32, UINT64_MAX,
		INT64_MAX, 1ull << 63,
	};
	struct side *s = &side[0];
	unsigned i, k, r, n = LNX_ARRAY_SIZE(odd);

	open_met(kind, 2, 1);
	s->test_answers = true;	/* frames stay on path 0 */
	for (r = 0; r < 2; r++) {
		for (i = 0; i < n; i++) {
			for (k = 0; k < n; k++) {
				struct lnx_hdr h = {
					.kind = LNX_KIND_PROBE,
					.tag = odd[i], .data = odd[k],
					.key = odd[(i + k) % n],
				};

				from(s, k & 1, (uint32_t)odd[k], h, NULL, 0);
				h.kind = LNX_KIND_PONG;
				/* False reports may only harm the peer itself. */
				h.key = 0;
				from(s, i & 1, (uint32_t)odd[k], h, NULL, 0);
				fake_pass(&f);
			}
			run_ms(1);
		}
		cr_expect_eq(f.lnx->stats.paths_down, r);
		cr_expect_eq(f.lnx->stats.paths_restored, 0u);
		if (!r) {
			path0_down();
			s->no_pongs = true;
		}
	}
	cr_expect(is_down(s, 0));
	close_clean();
}

/* Reports of more than was ever sent. */
BOTH(invented_reports)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 64; i++) {
		send1(s, 200);
		from(s, 1, 0, (struct lnx_hdr) { .kind = LNX_KIND_PONG,
		     .tag = 1 + (i & 1), .key = 1ull << i }, NULL, 0);
		run_ms(1);
	}
	cr_expect(!lnx_peer_dead(inside(s)));
	close_clean();
}

/* A PROBE is answered over the path that it came by, and only over that path. */
BOTH(answers)
{
	struct side *s = &side[0];
	struct fake_sent *m;
	unsigned i, n = 0;

	open_met(kind, 3, 1);
	from(s, 2, 0, (struct lnx_hdr) { .kind = LNX_KIND_PROBE, .tag = 1,
	     .data = 0x1234567890 }, NULL, 0);
	fake_passes(&f, 4);
	for (i = 0; i < 3; i++) {
		while ((m = fake_take(f.core[i]))) {
			if (m->h.kind == LNX_KIND_PONG) {
				n++;
				cr_expect_eq(i, 2u);
				cr_expect_eq(m->h.tag, 1u);
				cr_expect_eq(m->h.data, 0x1234567890u);
				cr_expect_eq(m->h.key, view_rx_bytes(inside(s), 0));
			}
			free(m);
		}
	}
	cr_expect_eq(n, 1u);
	close_clean();
}

static void asks_for_a_pong(void)
{
	unsigned rail = view_frame_path(inside(&side[0]));

	f.core[0]->in_inject = f.core[1]->in_inject = NULL;
	from(&side[0], rail, 0, (struct lnx_hdr) { .kind = LNX_KIND_PROBE,
	     .tag = 1, .data = 77 }, NULL, 0);
}

/* Also when it comes during the send of a frame that acknowledges everything. */
Test(silence_peer, answers_what_came_in_a_send)
{
	struct side *s = &side[0];
	struct fake_sent *m;
	unsigned i, n = 0;

	inject_size = 256;
	open_met(LNX_RAIL_PEER, 2, 1);
	f.core[0]->in_inject = f.core[1]->in_inject = asks_for_a_pong;
	send1(s, 8);
	cr_assert_null(f.core[0]->in_inject);
	fake_passes(&f, 4);
	for (i = 0; i < 2; i++) {
		while ((m = fake_take(f.core[i]))) {
			n += m->h.kind == LNX_KIND_PONG && m->h.data == 77;
			look_at(s, i, m);
			free(m);
		}
	}
	cr_expect_eq(n, 1u);
	close_clean();
}

static void says_more(void)
{
	unsigned rail = view_ack_path(inside(&side[0]));

	f.core[0]->in_inject = f.core[1]->in_inject = NULL;
	say(&side[0], rail, LNX_KIND_TAG, ++side[0].next_tag);
	asks_for_a_pong();
}

/* Frames that come during the send of an ACK are acknowledged, too. */
Test(silence_peer, comes_while_an_ack_leaves)
{
	struct side *s = &side[0];
	struct fake_sent *m;
	unsigned i, pongs = 0;
	uint32_t acked = 0;

	inject_size = 256;
	open_met(LNX_RAIL_PEER, 2, 1);
	f.core[0]->in_inject = f.core[1]->in_inject = says_more;
	receive(s, 8);
	receive(s, 8);
	say(s, 0, LNX_KIND_TAG, ++s->next_tag);
	for (i = 0; i < 300 && f.core[0]->in_inject; i++) {
		fake_now_ns += LNX_NS_PER_MS;
		fake_passes(&f, 1);
	}
	cr_assert_null(f.core[0]->in_inject);
	/* Far less than the time after which peers retransmit. */
	for (i = 0; i < 20; i++) {
		fake_now_ns += LNX_NS_PER_MS;
		fake_passes(&f, 1);
	}
	for (i = 0; i < 2; i++) {
		while ((m = fake_take(f.core[i]))) {
			pongs += m->h.kind == LNX_KIND_PONG;
			acked = LNX_MAX(acked, m->h.ack);
			look_at(s, i, m);
			free(m);
		}
	}
	cr_expect_eq(acked, s->p.seq);
	cr_expect_eq(pongs, 1u);
	close_clean();
}
