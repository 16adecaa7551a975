/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All rails fail, so no rail can carry news of another.  Both ends find each
 * other again, from the kernels' answers and by the paths themselves.
 */
#include <criterion/criterion.h>

#include "fail_world.h"

#define BOTH(name)	FAIL_BOTH(all_silent, name)

/* All paths stay DOWN when there is none to fail over to. */
BOTH(all_down)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 2; i++)
		black_hole(i);
	send1(s, 200);
	for (i = 0; i < 2; i++)
		link_is(i, false);
	/* An acknowledgement is due, and no core accepts it. */
	lost_from[1] = false;
	say(s, 1, LNX_KIND_TAG, ++s->next_tag);
	receive(s, 8);
	f.core[0]->inject_again = f.core[1]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 20; i++) {
		run_ms(100);
		cr_assert(is_down(s, 0));
		cr_assert(is_down(s, 1));
	}
	cr_expect_eq(s->nseen[0] + s->nseen[1], 0u);
	for (i = 0; i < 2; i++) {
		f.core[i]->inject_again = 0;
		heal(i);
		link_is(i, true);
	}
	close_clean();
}

/* All networks are silent for so long that connections retry only after a long
 * pause. */
static struct op *all_silent(struct side *s)
{
	struct op *o;
	unsigned i;

	for (i = 0; i < 2; i++)
		black_hole(i);
	o = send1(s, 200);
	RUN_UNTIL(is_down(s, 0) && is_down(s, 1), 2000);
	run_ms(2000);
	return o;
}

/*
 * Connections hang, and kernels answer.  Rails are reopened on the port that
 * the peer knows: without another path it could not learn of a new one, and the
 * peer may move as well.
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
	RUN_UNTIL(!is_down(s, 0) && !is_down(s, 1), 2000);
	RUN_UNTIL(o->ncomp, 100);
	close_clean();
}

/* A rail has moved, and the path over which that was announced has failed, too. */
static void move_unannounced(struct side *s, bool announced)
{
	struct op *o = force_reopen(s);
	uint32_t seq = view_next(inside(s));

	/* A new port is allowed while there is another path. */
	f.core[0]->hold_reads = false;
	RUN_UNTIL(is_down(s, 0), 1000);
	kernel_alive[0] = true;
	lost_to[1] = !announced;
	RUN_UNTIL(f.core[0]->port == OLD_PORT + 1, 1000);
	kernel_alive[0] = false;
	/* It took long, so that the peer has to confirm it. */
	if (announced) {
		RUN_UNTIL(o->ncomp, 1000);
		RUN_UNTIL(port_known(s, 0) == OLD_PORT + 1, 100);
		RUN_UNTIL((int32_t)(view_acked(inside(s)) - seq) > 0, 100);
		run_ms(10);
	}
}

/* The peer never learns of the move: the rail returns to the port that the peer
 * uses. */
BOTH(all_silent_before_the_peer_knows)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_unannounced(s, false);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->port == OLD_PORT, 1500);
	run_ms(500);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* It also returns when the host reports that the peer is gone: the peer has
 * moved as well. */
BOTH(all_silent_and_both_have_moved)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_unannounced(s, false);
	kernel_refuses[0] = true;
	all_silent(s);
	RUN_UNTIL(f.core[0]->port == OLD_PORT, 1500);
	/* It stays there, because the peer comes there. */
	run_ms(1200);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	kernel_refuses[0] = false;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* A peer that knows the new port uses it. */
BOTH(all_silent_after_the_peer_knows)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_unannounced(s, true);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->nopen == 3, 1500);
	cr_expect_eq(f.core[0]->port, OLD_PORT + 1u);
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* The peer may not have moved and may trust an old connection: other ports are
 * tried as well, but not for long. */
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
	/* There the rail itself tells the peer its address. */
	RUN_UNTIL(f.core[0]->port != OLD_PORT, 5000);
	s->probe[0] = (struct lnx_hdr) { .kind = 0 };
	for (i = 0; i < 2; i++)
		heal(i);
	RUN_UNTIL(!is_down(s, 0), 1000);
	cr_expect_eq(port_known(s, 0), f.core[0]->port);
	close_clean();
}

/* The peer is not on the port that it announced: it may have returned to the
 * old one. */
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
	RUN_UNTIL(!is_down(s, 0), 1000);
	cr_expect_eq(port_used(s, 0), before);
	close_clean();
}

/* Kernels' answers are used even if the process rarely gets a CPU. */
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

/* A peer that was silent while we were stopped is not given up. */
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
	cr_expect(!lnx_peer_dead(inside(s)));
	kernel_alive[0] = kernel_alive[1] = true;
	kernel_takes_ms = 0;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* The peer has reset a connection, and our PROBE with it; the peer probes over
 * the new one. */
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
	/* A PROBE is not an answer. */
	cr_expect(is_down(s, 0));
	s->no_pongs = false;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* A peer that computes differs from one whose networks are silent. */
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
