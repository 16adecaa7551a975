/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that was given up, and the session that follows: each end still has to know
 * where the rails of the other one are.
 */
#include <criterion/criterion.h>

#include "comp/comp.h"
#include "fail_world.h"
#include "msg/pull.h"
#include "msg/tx.h"

#define BOTH(name)	FAIL_BOTH(given_up, name)

static void give_up(struct side *s, int err)
{
	lnx_lock(&f.lnx->lock);
	lnx_rel_peer_failed(inside(s), err);
	lnx_unlock(&f.lnx->lock);
}

/* So long does it last until a peer, whose hosts cannot be asked, is given up, in ms. */
static unsigned lives_unasked(struct side *s, unsigned most_ms)
{
	unsigned i, ms;

	for (i = 0; i < 2; i++)
		black_hole(i);
	send1(s, 8);
	for (ms = 0; ms < most_ms && !lnx_peer_dead(inside(s)); ms += 10)
		run_ms(10);
	return ms;
}

/* This process has no descriptors to ask hosts with.  A peer that is silent for long is given
 * up in the end. */
BOTH(without_descriptors_it_takes_longer)
{
	struct side *s = &side[0];
	unsigned ms;

	fake_conf.transaction_timeout = 2000;
	fake_conf.connect_timeout = 4000;
	open_met(kind, 2, 1);
	kernel_lacks = true;
	ms = lives_unasked(s, 60000);
	cr_expect_geq(ms, 3900, "given up after %u ms", ms);
	cr_expect_leq(ms, 5500, "given up after %u ms", ms);
	kernel_lacks = false;
	close_now();
}

/* It gets some, and its peer's hosts answer. */
BOTH(with_descriptors_again_it_is_asked)
{
	struct side *s = &side[0];
	unsigned ms;

	fake_conf.transaction_timeout = 2000;
	fake_conf.connect_timeout = 4000;
	open_met(kind, 2, 1);
	kernel_lacks = true;
	ms = lives_unasked(s, 3000);
	cr_expect_eq(ms, 3000, "given up after %u ms", ms);
	kernel_lacks = false;
	kernel_alive[0] = true;
	run_ms(10000);
	cr_expect_not(lnx_peer_dead(inside(s)));
	kernel_alive[0] = false;
	close_now();
}

/* A read of the peer hangs in a rail, and nothing else does.  The peer will look for it
 * where it was. */
BOTH(a_rail_keeps_the_port_that_the_peer_knows)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	black_hole(1);
	run_ms(10);
	give_up(s, FI_ETIMEDOUT);
	RUN_UNTIL(o->ncomp + o->nerr && f.core[0]->nopen == 2, 10000);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	for (i = 0; i < 2; i++)
		heal(i);
	close_now();
}

/* The peer's first rail moves, and we hear of it. */
static unsigned moved_away(enum lnx_rail_kind kind)
{
	struct side *s = &side[0];
	unsigned before;

	open_met(kind, 2, 1);
	before = port_used(s, 0);
	move(s, 0, 7001);
	say(s, 1, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 7001u);
	return before;
}

/* The next session with the peer, that it does not answer. */
static void next_session(struct side *s)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		black_hole(i);
	run_ms(1100);
	cr_assert(lnx_peer_dead(inside(s)));
	send1(s, 8);
	cr_assert(!lnx_peer_dead(inside(s)));
	run_ms(1);
}

/* Nothing says that its process has ended: it is where it was.  If it is not heard there, it
 * may be where the AV says, and so in turn. */
BOTH(a_silent_peer_is_looked_for_where_it_was)
{
	struct side *s = &side[0];
	unsigned before = moved_away(kind), i;

	give_up(s, FI_ETIMEDOUT);
	for (i = 0; i < 4; i++) {
		next_session(s);
		cr_expect_eq(port_used(s, 0), i % 2 ? before : 7001u, "session %u", i);
		give_up(s, FI_ETIMEDOUT);
	}
	close_now();
}

/* An address is removed from the AV: what is left of earlier sessions with it is found without
 * looking at all others that have ended. */
BOTH(removed_while_an_earlier_session_is_left)
{
	struct side *s = &side[1];
	struct lnx_peer *before;
	unsigned i;

	fake_conf.copy_limit = 1000;
	open_met(kind, 1, SIDES);
	before = inside(s);
	f.core[0]->hold_sends = true;
	/* The core keeps it, and the peer with it. */
	send1(s, 8000);
	for (i = 0; i < SIDES; i++)
		give_up(&side[i], FI_ETIMEDOUT);
	next_session(s);
	cr_assert_neq(inside(s), before);
	cr_expect_eq(view_first_ended(f.lnx), before);
	cr_expect_eq(view_addr(before), s->p.addr);
	cr_expect_eq(fi_av_remove(f.av, &s->p.addr, 1, 0), 0);
	cr_expect_eq(view_addr(before), FI_ADDR_NOTAVAIL);
	f.core[0]->hold_sends = false;
	while (fake_held(f.core[0]))
		fake_finish(f.core[0], 0, FI_ECANCELED);
	close_now();
}

/* Its process has ended.  Another one with its name is where the AV says. */
BOTH(one_that_has_ended_is_looked_for_where_the_av_says)
{
	struct side *s = &side[0];
	unsigned before = moved_away(kind);

	give_up(s, FI_ECONNREFUSED);
	next_session(s);
	cr_expect_eq(port_used(s, 0), before);
	close_now();
}

/* The peer has moved twice; and then its host says that nothing listens, and the other rail is
 * silent: its process may have ended, and another one with its name be where the AV says. */
static unsigned moved_twice(enum lnx_rail_kind kind)
{
	struct side *s = &side[0];
	unsigned before = moved_away(kind), i;

	move(s, 0, 7002);
	say(s, 1, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 7002u);
	for (i = 0; i < 2; i++)
		black_hole(i);
	kernel_refuses[0] = true;
	return before;
}

BOTH(where_nothing_listens_it_is_looked_for_elsewhere)
{
	struct side *s = &side[0];
	unsigned before = moved_twice(kind);

	send1(s, 8);
	RUN_UNTIL(port_used(s, 0) == 7001, 4000);
	RUN_UNTIL(port_used(s, 0) == before, 4000);
	RUN_UNTIL(port_used(s, 0) == 7002, 4000);
	close_now();
}

/* The same in a session that has not reached it yet. */
BOTH(what_is_not_reached_is_looked_for_elsewhere)
{
	struct side *s = &side[0];
	unsigned before = moved_twice(kind);

	give_up(s, FI_ETIMEDOUT);
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	next_session(s);
	cr_expect_eq(port_used(s, 0), 7002u);
	RUN_UNTIL(port_used(s, 0) == before, 4000);
	RUN_UNTIL(port_used(s, 0) == 7002, 4000);
	close_now();
}

/* The one that follows begins at the place where the last one was looked for. */
BOTH(the_place_is_remembered)
{
	struct side *s = &side[0];
	unsigned before = moved_twice(kind);

	send1(s, 8);
	RUN_UNTIL(port_used(s, 0) == before, 8000);
	kernel_refuses[0] = false;
	give_up(s, FI_ETIMEDOUT);
	next_session(s);
	cr_expect_eq(port_used(s, 0), before);
	close_now();
}

/* The connection of the next session hangs: the peer was there before, so it is ended, and
 * asked for again.  A peer that was never there may not have begun yet. */
BOTH(the_connection_of_the_next_session_hangs)
{
	struct side *s = &side[0];

	open_met(kind, 1, 1);
	give_up(s, FI_ECONNRESET);
	run_ms(1100);
	nunanswered = 0;
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	send1(s, 8);
	run_ms(400);
	cr_expect_eq(nunanswered, 0u, "it may come");
	run_ms(2000);
	cr_expect_geq(nunanswered, 1u);
	close_now();
}

/* The first connection to a peer hangs.  It may be about to begin, or compute: that is ended
 * later, and more and more rarely. */
BOTH(the_first_connection_hangs)
{
	struct side *s = &side[0];

	fake_conf.connect_timeout = 60000;
	open_n(kind, 1, 1);
	nunanswered = 0;
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	send1(s, 8);
	run_ms(4500);
	cr_expect_eq(nunanswered, 0u, "it may come");
	run_ms(2000);
	cr_expect_geq(nunanswered, 1u);
	cr_expect_geq(unanswered_ns, 2500 * LNX_NS_PER_MS);
	cr_expect_not(unanswered_began);
	run_ms(14000);
	cr_expect_geq(unanswered_ns, 8000 * LNX_NS_PER_MS);
	close_now();
}

/* A core of the peer may be reading what we send.  First it can begin no other read, then its
 * connections end, and only then the sends do. */
BOTH(what_the_peer_reads_ends_with_its_connection)
{
	struct side *s = &side[0];
	struct op *o[2];
	unsigned i, before[2];

	open_met(kind, 2, 1);
	for (i = 0; i < 2; i++) {
		before[i] = f.core[i]->nmr_open;
		nread_cuts[i] = 0;
	}
	s->mute = true;
	silent_at_cut_ns = 1;
	for (i = 0; i < 2; i++)
		o[i] = send1(s, SEND_MAX);
	run_ms(50);
	cr_assert_eq(view_announced(inside(s)), 2u);
	for (i = 0; i < 2; i++)
		cr_assert_eq(f.core[i]->nmr_open, before[i] + 2);
	give_up(s, FI_ETIMEDOUT);
	run_ms(50);
	for (i = 0; i < 2; i++) {
		cr_expect_eq(nread_cuts[i], 1u);
		cr_expect_eq(mrs_at_cut[i], before[i]);
		cr_expect_eq(o[i]->ncomp, 0u);
		cr_expect_eq(o[i]->nerr, 1u);
		cr_expect_eq(o[i]->err, FI_ETIMEDOUT);
	}
	cr_expect_eq(announced_at_cut, 2u);
	cr_expect_eq(silent_at_cut_ns, 0u, "nothing is written");
	cr_expect_eq(view_announced(inside(s)), 0u);
	close_now();
}

/* All processes of a node die: the connections are looked through once, not once for each. */
BOTH(what_many_peers_read_ends_with_one_look)
{
	unsigned i;

	open_met(kind, 2, SIDES);
	for (i = 0; i < 2; i++)
		nread_cuts[i] = npaths_cut[i] = 0;
	for (i = 0; i < SIDES; i++) {
		side[i].mute = true;
		send1(&side[i], SEND_MAX);
		send1(&side[i], SEND_MAX);
	}
	run_ms(50);
	for (i = 0; i < SIDES; i++)
		give_up(&side[i], FI_ETIMEDOUT);
	run_ms(50);
	for (i = 0; i < 2; i++) {
		cr_expect_eq(nread_cuts[i], 1u);
		cr_expect_eq(npaths_cut[i], SIDES);
	}
	cr_expect_eq(view_announced(inside(&side[0])), 0u);
	close_now();
}

/* The same while a write is under way over one of these connections: only those end over which
 * nothing came since the peer is silent. */
BOTH(what_it_reads_ends_beside_writes)
{
	struct side *s = &side[0];
	struct lnx_pull pull = { .push = true };
	struct lnx_chunk write = { .pull = &pull };

	open_met(kind, 1, 1);
	s->mute = true;
	send1(s, SEND_MAX);
	run_ms(50);
	black_hole(0);
	run_ms(100);
	view_add_piece(path_of(s, 0), &write);
	give_up(s, FI_ETIMEDOUT);
	lnx_lock(&f.lnx->lock);
	lnx_ep_progress(f.lnx);
	lnx_list_del(&write.out);
	lnx_unlock(&f.lnx->lock);
	/* It may have been seen a few ms after the black hole. */
	cr_expect_gt(silent_at_cut_ns, 40 * LNX_NS_PER_MS);
	cr_expect_lt(silent_at_cut_ns, 60 * LNX_NS_PER_MS);
	heal(0);
	close_now();
}

/* It has nothing to read. */
BOTH(without_reads_nothing_is_cut)
{
	struct side *s = &side[0];

	open_met(kind, 1, 1);
	nread_cuts[0] = 0;
	black_hole(0);
	send1(s, 200);
	run_ms(50);
	give_up(s, FI_ETIMEDOUT);
	run_ms(50);
	cr_expect_eq(nread_cuts[0], 0u);
	close_now();
}

/* The endpoint is closed before the sends could end: its cores want no registration to be left. */
BOTH(closed_before_the_reads_end)
{
	struct side *s = &side[0];
	unsigned before;

	open_met(kind, 1, 1);
	before = f.core[0]->nmr_open;
	s->mute = true;
	send1(s, SEND_MAX);
	run_ms(50);
	cr_assert_eq(view_announced(inside(s)), 1u);
	give_up(s, FI_ETIMEDOUT);
	cr_expect_eq(f.core[0]->nmr_open, before + 1);
	close_now();
}
