/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths that go DOWN while the core still has frames or reads of theirs: each
 * operation ends once, whatever happens first.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fail_world.h"

#define BOTH(name)	FAIL_BOTH(held, name)

/* ---- frames that the core still has ---- */

enum what { ACK, CORE_OK, CORE_ERR, CUT };

static void happen(enum what w)
{
	struct side *s = &side[0];
	unsigned i;

	switch (w) {
	case ACK:
		s->no_acks = s->no_pongs = false;
		s->acks_pending = true;
		/* The ack arrives over the other path, after any frames that
		 * are retransmitted there. */
		for (i = 0; i < 50 && !all_there(); i++)
			run_ms(1);
		break;
	case CORE_OK:
		f.core[0]->hold_sends = false;
		while (fake_held(f.core[0]))
			fake_finish(f.core[0], 0, 0);
		run_ms(1);
		break;
	case CORE_ERR:
		f.core[0]->hold_sends = false;
		while (fake_held(f.core[0]))
			fake_finish(f.core[0], 0, FI_EIO);
		run_ms(1);
		break;
	case CUT:
		f.core[0]->hold_sends = false;
		kernel_alive[0] = true;
		for (i = 0; i < 5000 && f.core[0]->nopen == 1; i++)
			run_ms(1);
		cr_assert_gt(f.core[0]->nopen, 1u);
	}
}

static void held_sends(enum lnx_rail_kind kind, enum what one, enum what two,
		       bool flush)
{
	struct side *s = &side[0];
	struct op *o[6];
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 1);
	f.core[0]->flush = flush;
	seq = view_next(inside(s));
	s->no_acks = true;
	f.core[0]->hold_sends = true;
	black_hole(0);
	for (i = 0; i < 6; i++) {
		o[i] = send_flags(s, i & 2 ? 5000 : 100,
				  i & 1 ? FI_TRANSMIT_COMPLETE : 0);
		cr_assert_not_null(o[i]);
	}
	cr_assert_eq(fake_held(f.core[0]), 6u);
	RUN_UNTIL(is_down(s, 0), 5000);
	/* Their PONG has acknowledged them, or will. */
	for (i = 0; i < 6; i++)
		cr_expect_leq(o[i]->ncomp, 1u);
	happen(one);
	for (i = 0; i < 6; i++)
		cr_expect_leq(o[i]->ncomp, 1u);
	happen(two);
	for (i = 0; i < 6; i++) {
		cr_expect_eq(o[i]->ncomp, 1u);
		cr_expect_geq(s->seen[seq + i], 1u);
	}
	close_clean();
}

BOTH(ack_then_core) { held_sends(kind, ACK, CORE_OK, false); }
BOTH(core_then_ack) { held_sends(kind, CORE_OK, ACK, false); }
BOTH(ack_then_error) { held_sends(kind, ACK, CORE_ERR, false); }
BOTH(error_then_ack) { held_sends(kind, CORE_ERR, ACK, false); }
BOTH(ack_then_reopen) { held_sends(kind, ACK, CUT, false); }
BOTH(reopen_then_ack) { held_sends(kind, CUT, ACK, false); }
BOTH(ack_then_reopen_with_errors) { held_sends(kind, ACK, CUT, true); }
BOTH(reopen_with_errors_then_ack) { held_sends(kind, CUT, ACK, true); }

/* A clone may be cloned again. */
BOTH(held_by_several_paths)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;
	uint32_t seq;

	open_met(kind, 3, 1);
	seq = view_next(inside(s));
	for (i = 0; i < 2; i++) {
		f.core[i]->hold_sends = true;
		black_hole(i);
	}
	o = send_flags(s, 200, FI_DELIVERY_COMPLETE);
	RUN_UNTIL(s->seen[seq], 5000);
	cr_expect_eq(s->seen[seq], 1u);
	RUN_UNTIL(o->ncomp, 100);
	cr_expect_gt(fake_held(f.core[0]), 0u);
	/* Their sends end at last, in the other order. */
	for (i = 2; i-- > 0; ) {
		f.core[i]->hold_sends = false;
		while (fake_held(f.core[i]))
			fake_finish(f.core[i], 0, i ? FI_EIO : 0);
		run_ms(1);
	}
	cr_expect_eq(o->ncomp, 1u);
	close_clean();
}

/* A payload that is not copied cannot be sent over two paths at once. */
static void not_copied(enum lnx_rail_kind kind, enum what w, bool flush)
{
	struct side *s = &side[0];
	struct op *o;
	uint32_t seq;
	unsigned i;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->flush = flush;
	seq = view_next(inside(s));
	f.core[0]->hold_sends = true;
	black_hole(0);
	o = send1(s, 8000);
	cr_assert_eq(fake_held(f.core[0]), 1u);
	for (i = 0; i < 5000 && !is_down(s, 0); i++)
		run_ms(1);
	cr_assert(is_down(s, 0));
	run_ms(10);
	cr_expect_eq(s->seen[seq], 0u);
	cr_expect_eq(o->ncomp, 0u);
	happen(w);
	/* If the core only says that it is sent, a copy may complete it first. */
	RUN_UNTIL(o->ncomp && s->seen[seq], 20000);
	cr_expect_geq(s->seen[seq], 1u);
	close_clean();
}

BOTH(not_copied_core) { not_copied(kind, CORE_OK, false); }
BOTH(not_copied_error) { not_copied(kind, CORE_ERR, false); }
BOTH(not_copied_reopen) { not_copied(kind, CUT, false); }
BOTH(not_copied_reopen_with_errors) { not_copied(kind, CUT, true); }

/* The core is closed, and the other one takes nothing: the buffer is copied all the same. */
BOTH(not_copied_reopen_without_another)
{
	struct side *s = &side[0];
	struct op *o;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->hold_sends = true;
	black_hole(0);
	o = send1(s, 8000);
	RUN_UNTIL(is_down(s, 0), 5000);
	f.core[1]->send_again = FAKE_ALWAYS;
	cr_expect_eq(o->ncomp, 0u);
	RUN_UNTIL(!f.core[0]->enabled, 1000);
	run_ms(100);
	cr_expect_eq(o->ncomp, 1u);
	f.core[1]->send_again = 0;
	close_clean();
}

/* Frames after it cannot be delivered either: the core endpoint is closed,
 * although the network never comes back. */
BOTH(not_copied_in_a_black_hole)
{
	struct side *s = &side[0];
	struct op *o, *o2;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->hold_sends = true;
	black_hole(0);
	o = send1(s, 8000);
	o2 = send_flags(s, 100, FI_DELIVERY_COMPLETE);
	RUN_UNTIL(o->ncomp && o2->ncomp, 5000);
	cr_expect(!f.core[0]->enabled);
	close_clean();
}

/* Acknowledged while the core still has it, then the core endpoint closes: the
 * send ends. */
static void acked_in_core(enum lnx_rail_kind kind, bool flush)
{
	struct side *s = &side[0];
	struct op *o, *o2;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->flush = flush;
	f.core[0]->hold_sends = true;
	o = send1(s, 8000);
	o2 = send_flags(s, 100, FI_TRANSMIT_COMPLETE);
	run_ms(5);			/* the peer has them and acknowledges */
	cr_assert_eq(view_acked(inside(s)), view_next(inside(s)));
	cr_expect_eq(o->ncomp, 0u);	/* the core may still read the buffer */
	cr_expect_eq(o2->ncomp, 1u);
	path0_down();
	happen(CUT);
	run_ms(5);
	cr_expect_eq(o->ncomp, 1u);
	cr_expect_eq(o2->ncomp, 1u);
	close_clean();
}

BOTH(acked_in_core_that_closes) { acked_in_core(kind, false); }
BOTH(acked_in_core_with_errors) { acked_in_core(kind, true); }

/* The host is gone, but another path works: the kernel that does not answer is no reason to
 * wait. */
BOTH(acked_in_core_in_a_black_hole)
{
	struct side *s = &side[0];
	struct op *o;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->hold_sends = true;
	o = send1(s, 8000);
	run_ms(5);
	cr_assert_eq(view_acked(inside(s)), view_next(inside(s)));
	cr_expect_eq(o->ncomp, 0u);
	f.core[0]->hold_sends = false;
	path0_down();
	RUN_UNTIL(o->ncomp, 2000);
	close_clean();
}

/* ---- of a peer that is given up ---- */

/* A send from the application's buffer ends soon after its peer, however long the core
 * would keep it.  Nothing else is disturbed if it is the only path. */
static void held_of_dead(enum lnx_rail_kind kind, unsigned rails, bool cut)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	fake_conf.copy_limit = 1000;
	cuts_work = cut;
	open_met(kind, rails, 1);
	for (i = 0; i < rails; i++) {
		f.core[i]->hold_sends = true;
		black_hole(i);
	}
	o = send1(s, 8000);
	RUN_UNTIL(lnx_peer_dead(inside(s)), 20000);
	cr_assert_eq(o->ncomp, 0u);
	RUN_UNTIL(o->nerr, 3000);
	run_ms(3000);
	cr_expect_eq(o->nerr, 1u);
	cr_expect_eq(o->ncomp, 0u);
	cr_expect_eq(o->err, FI_ETIMEDOUT);
	if (rails == 1) {
		cr_expect_eq(ncut[0], 1u);
		cr_expect_eq(f.core[0]->nopen, 1u);
	}
	close_now();
}

BOTH(dead_over_one_that_is_cut) { held_of_dead(kind, 1, true); }
BOTH(dead_over_two_that_are_cut) { held_of_dead(kind, 2, true); }
BOTH(dead_over_two_that_are_closed) { held_of_dead(kind, 2, false); }

/* Those of many peers that die together end with one look through the connections; and where
 * that finds none, all are looked at again. */
static void held_of_many(enum lnx_rail_kind kind, unsigned rails, bool cut)
{
	struct op *o[SIDES];
	unsigned i;

	fake_conf.copy_limit = 1000;
	cuts_work = cut;
	open_met(kind, rails, SIDES);
	for (i = 0; i < rails; i++) {
		f.core[i]->hold_sends = true;
		black_hole(i);
	}
	for (i = 0; i < SIDES; i++)
		o[i] = send1(&side[i], 8000);
	for (i = 0; i < SIDES; i++)
		RUN_UNTIL(lnx_peer_dead(inside(&side[i])), 20000);
	for (i = 0; i < SIDES; i++)
		RUN_UNTIL(o[i]->nerr, 4000);
	cr_expect_eq(ncut[0], cut);
	cr_expect_geq(npaths_cut[0], 2u);
	for (i = 0; i < SIDES; i++) {
		cr_expect_eq(o[i]->nerr, 1u);
		cr_expect_eq(o[i]->ncomp, 0u);
	}
	close_now();
}

BOTH(many_dead_over_one_that_is_cut) { held_of_many(kind, 1, true); }
BOTH(many_dead_over_two_that_are_closed) { held_of_many(kind, 2, false); }

BOTH(dead_with_a_read_over_one)
{
	struct side *s = &side[0];
	struct op *o;

	cuts_work = true;
	open_met(kind, 1, 1);
	f.core[0]->hold_reads = true;
	o = receive(s, LARGE);
	say(s, 0, LNX_KIND_RTS_TAG, ++s->next_tag);
	step();
	cr_assert_gt(fake_held(f.core[0]), 0u);
	black_hole(0);
	RUN_UNTIL(lnx_peer_dead(inside(s)), 20000);
	RUN_UNTIL(o->nerr, 3000);
	run_ms(1000);
	cr_expect_eq(o->nerr, 1u);
	cr_expect_eq(ncut[0], 1u);
	close_now();
}

/* ---- reads ---- */

static void held_reads(enum lnx_rail_kind kind, bool flush, bool by_itself)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i, nhello;

	fake_conf.chunk = 65536;
	open_met(kind, 2, 1);
	nhello = s->nhello;
	f.core[0]->flush = flush;
	f.core[0]->hold_reads = true;
	o = large_from(s);
	step();
	cr_assert_gt(fake_held(f.core[0]), 0u);
	black_hole(0);
	for (i = 0; i < 5000 && !is_down(s, 0); i++)
		run_ms(1);
	cr_assert(is_down(s, 0));
	/* Everything has arrived except the held reads. */
	run_ms(10);
	cr_expect_eq(o->ncomp, 0u);
	cr_expect_eq(memcmp(o->buf, mem, LARGE), 0);
	cr_expect_eq(s->nhello, nhello);
	if (by_itself) {
		while (fake_held(f.core[0]))
			fake_finish(f.core[0], 0, i & 1 ? FI_EIO : 0);
		run_ms(5);
		cr_expect_eq(o->ncomp, 1u);
		cr_expect_eq(f.core[0]->nopen, 1u);
		close_clean();
		return;
	}
	RUN_UNTIL(o->ncomp, 2000);
	cr_expect_eq(fake_held(f.core[0]), 0u);
	/* The rail is not opened again before a peer can be reached. */
	run_ms(3000);
	cr_expect(!f.core[0]->enabled);
	cr_expect_eq(f.core[0]->nopen, 1u);
	cr_expect_eq(s->nhello, nhello);
	heal(0);
	RUN_UNTIL(f.core[0]->enabled, 1000);
	cr_expect_eq(f.core[0]->nopen, 2u);
	cr_expect_eq(f.core[1]->nopen, 1u);
	run_ms(5);
	cr_expect_eq(s->nhello, nhello + 1);
	cr_expect_eq(s->us.nrail, 2u);
	cr_expect_eq(port_known(s, 0), OLD_PORT + 1);
	cr_expect_eq(port_known(s, 1), OLD_PORT);
	/* A new peer gets the new port at once. */
	start_side(1);
	send1(&side[1], 100);
	RUN_UNTIL(side[1].nhello, 1000);
	cr_expect_eq(port_known(&side[1], 0), OLD_PORT + 1);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

BOTH(held_reads_end_with_the_core) { held_reads(kind, false, false); }
BOTH(held_reads_end_with_errors) { held_reads(kind, true, false); }
BOTH(held_reads_end_by_themselves) { held_reads(kind, false, true); }
