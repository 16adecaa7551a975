/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All rails fail: nothing can be told by another.  Both ends find each other again, by
 * what kernels say and by the paths themselves.
 */
#include <criterion/criterion.h>

#include "fail_world.h"

#define BOTH(name)	FAIL_BOTH(all_silent, name)

/* With nowhere to go there is no going. */
BOTH(all_left)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 2; i++)
		black_hole(i);
	send1(s, 200);
	for (i = 0; i < 2; i++)
		link_is(i, false);
	/* Something has to be acknowledged, and no core takes it. */
	lost_from[1] = false;
	say(s, 1, LNX_KIND_TAG, ++s->next_tag);
	receive(s, 8);
	f.core[0]->inject_again = f.core[1]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 20; i++) {
		run_ms(100);
		cr_assert(left(s, 0));
		cr_assert(left(s, 1));
	}
	cr_expect_eq(s->nseen[0] + s->nseen[1], 0u);
	for (i = 0; i < 2; i++) {
		f.core[i]->inject_again = 0;
		heal(i);
		link_is(i, true);
	}
	close_clean();
}

/* All networks are silent, so long that connections try again only later. */
static struct op *all_silent(struct side *s)
{
	struct op *o;
	unsigned i;

	for (i = 0; i < 2; i++)
		black_hole(i);
	o = send1(s, 200);
	RUN_UNTIL(left(s, 0) && left(s, 1), 2000);
	run_ms(2000);
	return o;
}

/*
 * They hang, and kernels answer.  Rails are opened anew where the peer knows them: with
 * no other path nobody could tell him of another place, and he may move as well.
 */
BOTH(all_silent_and_connections_hang)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	o = all_silent(s);
	cr_expect_eq(f.core[0]->nopen + f.core[1]->nopen, 2u);
	kernel_alive[0] = kernel_alive[1] = true;
	RUN_UNTIL(f.core[0]->nopen == 2 && f.core[1]->nopen == 2, 500);
	for (i = 0; i < 2; i++) {
		cr_expect_eq(f.core[i]->port, (unsigned)OLD_PORT);
		heal(i);
	}
	RUN_UNTIL(!left(s, 0) && !left(s, 1), 2000);
	RUN_UNTIL(o->ncomp, 100);
	close_clean();
}

/* A rail has moved, and the path over which that was told has failed, too. */
static void move_untold(struct side *s, bool heard)
{
	struct op *o = force_reopen(s);
	uint32_t seq = inside(s)->tx_next;

	/* While there is another path there is nothing against that. */
	f.core[0]->hold_reads = false;
	RUN_UNTIL(left(s, 0), 1000);
	kernel_alive[0] = true;
	lost_to[1] = !heard;
	RUN_UNTIL(f.core[0]->port == OLD_PORT + 1, 1000);
	kernel_alive[0] = false;
	RUN_UNTIL(o->ncomp, 1000);
	if (heard) {
		RUN_UNTIL(port_told(s, 0) == OLD_PORT + 1, 100);
		RUN_UNTIL((int32_t)(inside(s)->tx_una - seq) > 0, 100);
		run_ms(10);
	}
}

/* The peer never hears of it: it goes back to where he looks for it. */
BOTH(all_silent_before_the_peer_is_told)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_untold(s, false);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->port == OLD_PORT, 1500);
	run_ms(500);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* So it does where its host says that the peer is not there: it has moved as well. */
BOTH(all_silent_and_both_have_moved)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_untold(s, false);
	kernel_refuses[0] = true;
	all_silent(s);
	RUN_UNTIL(f.core[0]->port == OLD_PORT, 1500);
	/* And stays: the peer comes there. */
	run_ms(1200);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	kernel_refuses[0] = false;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* Who knows the new place looks for it there. */
BOTH(all_silent_after_the_peer_was_told)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_untold(s, true);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->nopen == 3, 1500);
	cr_expect_eq(f.core[0]->port, OLD_PORT + 1u);
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* He may not have moved, and believe in a connection of before: other places do, too,
 * but not for long. */
BOTH(all_silent_and_the_peer_does_not_move)
{
	struct side *s = &side[0];
	unsigned i, other = 0, old = 0, ms;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_alive[0] = true;
	for (ms = 0; ms < 12000; ms++) {
		other += f.core[0]->port != OLD_PORT;
		old += f.core[0]->port == OLD_PORT;
		run_ms(1);
	}
	cr_expect_gt(other, 1000u);
	cr_expect_gt(old, 4000u);
	/* There the peer is told by the rail itself. */
	RUN_UNTIL(f.core[0]->port != OLD_PORT, 5000);
	s->probe[0] = (struct lnx_hdr) { .kind = 0 };
	for (i = 0; i < 2; i++)
		heal(i);
	RUN_UNTIL(!left(s, 0), 1000);
	cr_expect_eq(port_told(s, 0), f.core[0]->port);
	close_clean();
}

/* The peer is not where he said that he moved to: perhaps he went back. */
BOTH(all_silent_and_the_peer_is_back)
{
	struct side *s = &side[0];
	unsigned before, i, nopen;

	open_met(kind, 2, 1);
	before = port_used(s, 0);
	move(s, 0, 7001);
	say(s, 1, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 7001u);
	all_silent(s);
	nopen = f.core[0]->nopen;
	kernel_refuses[0] = true;
	RUN_UNTIL(port_used(s, 0) == before, 500);
	RUN_UNTIL(port_used(s, 0) == 7001u, 500);
	RUN_UNTIL(port_used(s, 0) == before, 500);
	cr_expect_eq(f.core[0]->nav_in, 1u);
	cr_expect_eq(f.core[0]->nopen, nopen);
	kernel_refuses[0] = false;
	kernel_alive[0] = true;
	for (i = 0; i < 2; i++)
		heal(i);
	RUN_UNTIL(!left(s, 0), 1000);
	cr_expect_eq(port_used(s, 0), before);
	close_clean();
}

/* Who gets a processor rarely sees nevertheless what kernels say. */
BOTH(all_silent_and_we_are_slow)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_alive[0] = kernel_alive[1] = true;
	kernel_takes_ms = 1;
	for (i = 0; i < 20 && f.core[0]->nopen == 1; i++) {
		fake_now_ns += 150 * LNX_NS_PER_MS;
		step();
	}
	cr_expect_eq(f.core[0]->nopen, 2u);
	kernel_takes_ms = 0;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* Nor is a peer given up who was silent while we were. */
BOTH(all_silent_and_we_are_stopped)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_takes_ms = 1;
	fake_now_ns += 10 * LNX_NS_PER_S;
	run_ms(100);
	cr_expect(!inside(s)->dead);
	kernel_alive[0] = kernel_alive[1] = true;
	kernel_takes_ms = 0;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* The peer has reset a connection, and our PROBE with it; he asks by the new one. */
BOTH(probe_of_the_peer)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .tag = 1, .data = 1 };
	unsigned i, n;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->nopen == 2, 500);
	run_ms(20);
	n = s->nprobe[0];
	s->no_pongs = true;
	heal(0);
	from(s, 0, 0, h, NULL, 0);
	run_ms(8);
	cr_expect_gt(s->nprobe[0], n);
	/* That is no answer. */
	cr_expect(left(s, 0));
	s->no_pongs = false;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* A peer that computes is not one whose networks are silent. */
BOTH(silent_peer_whose_kernels_answer)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	s->mute = true;
	send1(s, 200);
	run_ms(4000);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	close_clean();
}
