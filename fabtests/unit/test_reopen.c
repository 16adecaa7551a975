/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rail whose core endpoint hangs is closed and reopened on another port; and
 * peers that do so.
 */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "fail_world.h"
#include "msg/tx.h"

#define BOTH(name)	FAIL_BOTH(reopen, name)

/* ---- reopening ---- */

static void reopen_fails(enum lnx_rail_kind kind, uint32_t *script,
			 uint32_t times)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	*(uint32_t *)((char *)f.core[0] + (uintptr_t)script) = times;
	RUN_UNTIL(o->ncomp, 3000);
	if (times == FAKE_ALWAYS) {
		cr_expect(!f.core[0]->enabled);
		cr_expect_null(f.lnx->rail[0]->core_ep);
	}
	/* Traffic with other peers goes on. */
	for (i = 0; i < 200; i++) {
		send1(s, 200);
		receive(s, 8);
		say(s, 1, LNX_KIND_TAG, ++s->next_tag);
		run_ms(20);
	}
	if (times == FAKE_ALWAYS)
		cr_expect(!f.core[0]->enabled);
	*(uint32_t *)((char *)f.core[0] + (uintptr_t)script) = 0;
	heal(0);
	f.core[0]->hold_reads = false;
	RUN_UNTIL(!is_down(s, 0), 5000);
	cr_expect(f.core[0]->enabled);
	close_clean();
}

#define SCRIPT(member)	((uint32_t *)offsetof(struct fake_core, member))

BOTH(fi_endpoint_fails_once) { reopen_fails(kind, SCRIPT(ep_fails), 1); }
BOTH(fi_enable_fails_once) { reopen_fails(kind, SCRIPT(enable_fails), 1); }
BOTH(fi_endpoint_fails) { reopen_fails(kind, SCRIPT(ep_fails), FAKE_ALWAYS); }
BOTH(fi_enable_fails) { reopen_fails(kind, SCRIPT(enable_fails), FAKE_ALWAYS); }

/* While a rail cannot be opened: */
static void without_core(enum lnx_rail_kind kind, unsigned sides)
{
	struct op *o;

	open_met(kind, 2, sides);
	o = force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(o->ncomp, 3000);
	/* The FIN is acknowledged. */
	run_ms(10);
	cr_assert_null(f.lnx->rail[0]->core_ep);
}

/* ... a new peer comes, to which it would lead; */
BOTH(newcomer_while_closed)
{
	unsigned i;

	without_core(kind, 1);
	start_side(1);
	start_side(2);
	for (i = 0; i < 20; i++) {
		send1(&side[1], 4000);
		send1(&side[2], 4000);
		if (i % 10 == 0)
			run_ms(10);
	}
	RUN_UNTIL(all_there(), 3000);
	cr_expect_eq(side[1].nseen[0] + side[2].nseen[0], 0u);
	close_clean();
}

/* ... a peer announces that its rail has moved; */
BOTH(hello_while_closed)
{
	struct side *s = &side[1];
	unsigned i;

	without_core(kind, 2);
	move(s, 0, 7777);
	say(s, 1, LNX_KIND_HELLO, 0);
	run_ms(1);
	for (i = 0; i < 50; i++)
		send1(s, 4000);
	RUN_UNTIL(all_there(), 3000);
	cr_expect_eq(s->nseen[0], 0u);
	cr_expect_eq(port_used(s, 0), 7777u);
	close_clean();
}

/* ... another peer has frames for it, */
BOTH(another_while_closed)
{
	unsigned i;

	open_met(kind, 2, 2);
	force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(!f.core[0]->enabled, 3000);
	for (i = 0; i < 50; i++) {
		send1(&side[1], 4000);
		run_ms(5);
	}
	cr_expect(all_there());
	close_clean();
}

/* ... the peer that it was closed for has died, */
BOTH(none_while_closed)
{
	without_core(kind, 2);
	lnx_lock(&f.lnx->lock);
	lnx_rel_peer_failed(inside(&side[0]), FI_ETIMEDOUT);
	lnx_unlock(&f.lnx->lock);
	run_ms(2000);
	f.core[0]->ep_fails = 0;
	heal(0);
	RUN_UNTIL(f.core[0]->enabled, 3000);
	send1(&side[1], 100);
	RUN_UNTIL(all_there_of(&side[1]), 1000);
	cr_expect_eq(port_known(&side[1], 0), OLD_PORT + 1);
	close_now();
}

/* ... a peer has no other rail, */
BOTH(no_other_while_closed)
{
	struct side *s = NULL;
	struct op *o;
	unsigned i;

	fake_conf.connect_timeout = 1000;
	open_met(kind, 2, 1);
	fake_conf.max_rails = 1;
	for (i = 1; i < 3; i++) {
		start_side(i);
		send1(&side[i], 100);
		RUN_UNTIL(side[i].p.got == 2, 1000);
		/* Peers get rails in turn. */
		if (view_rail(view_path(inside(&side[i]), 0)) == f.lnx->rail[0])
			s = &side[i];
	}
	fake_conf.max_rails = 8;
	cr_assert_not_null(s);
	cr_assert_eq(view_npath(inside(s)), 1u);
	force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(!f.core[0]->enabled, 3000);
	o = send_flags(s, 100, FI_DELIVERY_COMPLETE);
	RUN_UNTIL(o->nerr, 5000);
	cr_expect(!lnx_peer_dead(inside(&side[0])));
	close_now();
}

/* ... or reads. */
BOTH(reads_while_closed)
{
	struct op *o;

	open_met(kind, 2, 2);
	force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(!f.core[0]->enabled, 3000);
	o = large_from(&side[1]);
	RUN_UNTIL(o->ncomp, 1000);
	close_clean();
}

/* All operations of other peers on the rail are completed. */
static void several_peers(enum lnx_rail_kind kind, bool flush)
{
	struct op *o;
	unsigned i, k;

	open_met(kind, 2, 3);
	f.core[0]->flush = flush;
	f.core[0]->hold_sends = true;
	o = force_reopen(&side[0]);
	for (i = 1; i < 3; i++)
		side[i].no_pongs = true;	/* so that no path goes DOWN */
	for (k = 0; k < 30; k++)
		for (i = 1; i < 3; i++)
			cr_assert_not_null(send_flags(&side[i], 100 + k * 100,
				k & 1 ? FI_DELIVERY_COMPLETE : 0));
	RUN_UNTIL(f.core[0]->nopen == 2, 3000);
	f.core[0]->hold_sends = f.core[0]->hold_reads = false;
	heal(0);
	/* The frames were passed to the new core endpoint at once. */
	fake_finish_all(f.core[0]);
	RUN_UNTIL(o->ncomp && all_there(), 3000);
	for (i = 0; i < 3; i++)
		cr_expect_eq(port_known(&side[i], 0), OLD_PORT + 1);
	close_clean();
}

BOTH(several_peers_cut_off) { several_peers(kind, false); }
BOTH(several_peers_cut_off_with_errors) { several_peers(kind, true); }

/* ---- peers whose rails were reopened ---- */

BOTH(moved)
{
	struct side *s = &side[0];
	fi_addr_t first, second;
	unsigned i;

	open_met(kind, 2, 2);
	first = view_core_addr(path_of(s, 0));
	second = view_core_addr(path_of(s, 1));
	move(s, 1, 7001);
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(view_core_addr(path_of(s, 0)), first);
	cr_expect_neq(view_core_addr(path_of(s, 1)), second);
	cr_expect_eq(port_used(s, 1), 7001u);
	cr_expect(f.core[1]->av_gone[second]);
	cr_expect_eq(f.core[1]->nav_in, 2u);
	/* The core asserts that nothing is sent to the old address. */
	for (i = 0; i < 100; i++)
		send1(s, 4000);
	run_ms(10);
	cr_expect_gt(s->nseen[1], 0u);
	cr_expect_eq(s->dest[1], view_core_addr(path_of(s, 1)));
	/* The other peer has not moved. */
	cr_expect_eq(port_used(&side[1], 1), 5000 + 0x2222u);
	close_clean();
}

/* While frames cannot be sent to the old address, nor to the new one. */
BOTH(moves_while_connecting)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 2; i++)
		f.core[i]->send_again = FAKE_ALWAYS;
	for (i = 0; i < 10; i++) {
		send1(s, 200);
		run_ms(1);
	}
	for (i = 0; i < 2; i++)
		move(s, i, 7000 + i);
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(20);
	for (i = 0; i < 2; i++)
		f.core[i]->send_again = 0;
	close_clean();
}

BOTH(moves_all_the_time)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 300; i++) {
		move(s, i & 1, 6000 + i);
		if (i % 3 == 2)
			move(s, !(i & 1), 9000 + i);
		say(s, i & 1, LNX_KIND_HELLO, 0);
		if (i % 5 == 0)
			say(s, i & 1, LNX_KIND_HELLO, 0);	/* the same address */
		run_ms(1);
		cr_assert_eq(f.core[0]->nav_in, 1u);
		cr_assert_eq(f.core[1]->nav_in, 1u);
		send1(s, 300);
	}
	close_clean();
}

BOTH(hostile_hellos)
{
	struct side *s = &side[0];
	struct lnx_addr good;
	fi_addr_t at[2];
	unsigned i;

	open_met(kind, 2, 1);
	good = s->p.where;
	for (i = 0; i < 2; i++)
		at[i] = view_core_addr(path_of(s, i));
	for (i = 0; i < 4; i++) {
		s->p.where = good;
		move(s, 0, 7000 + i);
		move(s, 1, 7000 + i);
		switch (i) {
		case 0:
			s->p.where.nrail = 0;
			break;
		case 1:
			s->p.where.rail[0].prov = s->p.where.rail[1].prov =
				LNX_PROV_SOCKETS;
			break;
		case 2:
			s->p.where.native = true;
			break;
		default:
			s->p.where.eid = 77;
		}
		cr_assert_eq(lnx_addr_pack(&s->p.where, s->p.blob), 0);
		say(s, 0, LNX_KIND_HELLO, 0);
		run_ms(2);
		cr_expect_eq(view_core_addr(path_of(s, 0)), at[0], "%u", i);
		cr_expect_eq(view_core_addr(path_of(s, 1)), at[1], "%u", i);
	}
	/* Fewer rails: those that exist are used. */
	s->p.where = good;
	move(s, 0, 8000);
	s->p.where.nrail = 1;
	cr_assert_eq(lnx_addr_pack(&s->p.where, s->p.blob), 0);
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 8000u);
	cr_expect_eq(view_core_addr(path_of(s, 1)), at[1]);
	/* An index out of range. */
	s->p.where = good;
	move(s, 0, 8001);
	f.core[0]->av_fails = 1;
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 8000u);
	close_clean();
}

/* A PROBE announces a new address over the path itself; an old epoch is ignored. */
BOTH(probes_with_addresses)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .key = 3 };

	open_met(kind, 2, 1);
	move(s, 1, 7001);
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7001u);
	move(s, 1, 7002);
	h.key = 2;
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7001u);
	/* An epoch without an address. */
	h.key = 9;
	from(s, 1, 0, h, NULL, 0);
	run_ms(2);
	/* An address without an epoch is not used. */
	h.key = 0;
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7001u);
	h.key = 4;
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7002u);
	close_clean();
}

/* ---- closing, in all of these states ---- */

static void close_in(enum lnx_rail_kind kind, unsigned state, bool flush)
{
	struct side *s = &side[0];
	struct op *o;

	fake_conf.copy_limit = state & 1 ? 1000 : 16320;
	fake_conf.chunk = 65536;
	open_met(kind, 2, 2);
	f.core[0]->flush = f.core[1]->flush = flush;
	f.core[0]->hold_sends = true;
	o = force_reopen(s);
	send1(s, 8000);
	send1(s, 100);
	send1(&side[1], 8000);
	receive(&side[1], 8);
	if (state >= 2)
		RUN_UNTIL(is_down(s, 0), 5000);
	if (state >= 4) {
		f.core[0]->ep_fails = state >= 6 ? FAKE_ALWAYS : 0;
		RUN_UNTIL(f.core[0]->enabled == (state < 6) &&
			  (f.core[0]->nopen == 2 || state >= 6), 2000);
	}
	if (state == 8) {
		lnx_lock(&f.lnx->lock);
		lnx_rel_peer_failed(inside(s), FI_ETIMEDOUT);
		lnx_unlock(&f.lnx->lock);
		run_ms(10);
	}
	(void)o;
	close_now();
	heal(0);
}

BOTH(close_in_all_states)
{
	unsigned i;

	for (i = 0; i < 10; i++) {
		close_in(kind, i, false);
		close_in(kind, i, true);
	}
}

BOTH(cancel)
{
	struct side *s = &side[0];
	struct op *o, *c;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	c = receive(s, 8);
	RUN_UNTIL(is_down(s, 0), 5000);
	/* The first receive is in progress and cannot be cancelled; the second
	 * one can. */
	fi_cancel(&f.ep->fid, o);
	fi_cancel(&f.ep->fid, c);
	run_ms(1);
	cr_expect_eq(o->ncomp + o->nerr, 0u);
	cr_expect_eq(c->nerr, 1u);
	cr_expect_eq(c->err, FI_ECANCELED);
	c->nerr = 0;
	c->ncomp = 1;
	RUN_UNTIL(o->ncomp, 2000);
	close_clean();
}

/* The peer has died; the buffers of its reads return to the application in the end. */
static void reader_of_one_that_goes(enum lnx_rail_kind kind, bool bye)
{
	struct side *s = &side[0];
	struct op *o;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	RUN_UNTIL(is_down(s, 0), 5000);
	if (bye) {
		from(s, 1, s->p.seq, (struct lnx_hdr) { .kind = LNX_KIND_BYE },
		     NULL, 0);
	} else {
		lnx_lock(&f.lnx->lock);
		lnx_rel_peer_failed(inside(s), FI_ETIMEDOUT);
		lnx_unlock(&f.lnx->lock);
	}
	RUN_UNTIL(o->ncomp + o->nerr, 5000);
	cr_expect_eq(fake_held(f.core[0]), 0u);
	close_now();
}

BOTH(reads_of_one_that_says_goodbye) { reader_of_one_that_goes(kind, true); }
BOTH(reads_of_one_that_failed) { reader_of_one_that_goes(kind, false); }
