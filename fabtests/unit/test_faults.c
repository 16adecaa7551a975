/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_LNX_FAULT on a scripted core: what a rule does to a frame, and that
 * nothing else happens.  What becomes of the frame afterwards is tested
 * elsewhere; here only that it is retransmitted or delivered.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "comp/comp.h"
#include "rail/faults.h"
#include "fake_core.h"
#include "msg/tx.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static char buf[256];

/* The number of errors that cores reported. */
static uint64_t core_errors(void)
{
	return f.lnx->stats.core_errors;
}

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(faults_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(faults_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_with(enum lnx_rail_kind kind, const char *rules)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_conf.fault = rules;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_get(f.lnx, p.addr);
}

static struct lnx_rail *rail(void)
{
	return f.lnx->rail[0];
}

static void recv_any(void *context)
{
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 0,
			      ~0ULL, context), 0);
}

static void send1(void *context)
{
	uint64_t before = core_errors();

	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, context), 0);
	cr_assert_eq(core_errors(), before, "during the call");
}

/* Hello and one message have left and are acknowledged. */
static void introduce(void)
{
	send1(&a);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_assert_eq(view_acked(inside()), 2);
	cr_assert_eq(rail()->busy, 0);
}

/* Wait for the next frame of that kind. */
static void expect_again(uint8_t kind)
{
	int i;

	for (i = 0; i < 20 && !core->sent; i++)
		fake_after_ms(&f, 50);
	fake_expect_drop(&f, &p, kind);
}

/* ---- received frames ---- */

BOTH(a_dropped_frame_leaves_no_trace)
{
	struct lnx_stats before;
	uint32_t next;

	open_with(kind, "drop kind=tag count=1");
	fake_hello(&f, &p);
	recv_any(&a);
	fake_pass(&f);
	fake_after_ms(&f, 10);		/* everything is acknowledged */
	fake_drop_all(&f, &p);
	before = f.lnx->stats;
	next = view_rx_next(inside());
	fake_tag(&f, &p, 5, "lost", 4);
	fake_after_ms(&f, 10);
	fake_quiet(&f);
	fake_expect_none(&f);
	cr_expect_eq(memcmp(&before, &f.lnx->stats, sizeof(before)), 0);
	cr_expect_eq(view_rx_next(inside()), next);
	cr_expect_eq(view_acks_pending(inside()), 0);
	/* Its sender retransmits it. */
	p.seq--;
	fake_tag(&f, &p, 5, "here", 4);
	cr_expect_eq(fake_comp(&f, &a).len, 4);
	cr_expect(!memcmp(buf, "here", 4));
	fake_close(&f);
}

/* A dropped ack must not acknowledge frames of ours. */
BOTH(a_dropped_ack_acknowledges_nothing)
{
	open_with(kind, "drop kind=ack rate=2");
	send1(&a);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(view_acked(inside()), 0);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(view_acked(inside()), 2);
	fake_close(&f);
}

BOTH(a_delayed_frame_comes_later)
{
	open_with(kind, "delay=20 kind=tag");
	fake_hello(&f, &p);
	recv_any(&a);
	fake_tag(&f, &p, 5, "late", 4);
	fake_pass(&f);
	fake_after_ms(&f, 19);
	fake_quiet(&f);
	cr_expect(view_work(f.lnx, LNX_WORK_FAULT), "otherwise a sleeper is not woken");
	fake_after_ms(&f, 2);
	cr_expect_eq(fake_comp(&f, &a).len, 4);
	cr_expect(!memcmp(buf, "late", 4));
	fake_after_ms(&f, 20);
	fake_quiet(&f);			/* and once only */
	cr_expect(!view_work(f.lnx, LNX_WORK_FAULT));
	fake_close(&f);
}

BOTH(others_overtake_it)
{
	open_with(kind, "delay=50 kind=tag count=1; delay=20 kind=tag count=1");
	fake_hello(&f, &p);
	fake_tag(&f, &p, 1, "first", 5);	/* due after 50 ms */
	fake_tag(&f, &p, 2, "second", 6);	/* after 20 */
	fake_tag(&f, &p, 3, "third", 5);	/* now */
	recv_any(&a);
	fake_pass(&f);
	fake_after_ms(&f, 10);
	cr_expect_eq(view_ooo(inside()), 1);
	fake_after_ms(&f, 15);
	cr_expect_eq(view_ooo(inside()), 2);
	fake_quiet(&f);
	fake_after_ms(&f, 30);
	cr_expect_eq(view_ooo(inside()), 0);
	cr_expect_eq(fake_comp(&f, &a).tag, 1);
	recv_any(&a);
	cr_expect_eq(fake_comp(&f, &a).tag, 2);
	recv_any(&a);
	cr_expect_eq(fake_comp(&f, &a).tag, 3);
	fake_close(&f);
}

BOTH(it_may_be_kept_as_unexpected)
{
	static uint8_t big[10000] = { 1, 2, 3 }, to[10000];

	open_with(kind, "delay=20");
	fake_hello(&f, &p);
	fake_tag(&f, &p, 1, big, sizeof(big));
	fake_pass(&f);
	fake_after_ms(&f, 30);
	cr_assert_eq(f.lnx->stats.unexpected, 1);
	cr_assert_eq(fi_trecv(f.ep, to, sizeof(to), NULL, FI_ADDR_UNSPEC, 1, 0,
			      &a), 0);
	fake_comp(&f, &a);
	cr_expect_arr_eq(to, big, sizeof(big));
	fake_close(&f);
}

/* All rules of the endpoint, as a request is answered. */
static void list(char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	buf[0] = '\0';
	lnx_faults_list(f.lnx, 0, &o);
	cr_assert_lt(o.n, size);
}

/* The memory for delayed frames is limited. */
BOTH(too_many_are_not_delayed)
{
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE };
	char text[200];
	unsigned i;

	open_with(kind, "delay=1000 kind=probe");
	fake_hello(&f, &p);
	fake_pass(&f);
	for (i = 0; i < LNX_FAULTS_HELD_MAX + 3; i++) {
		fake_frame(&f, &p, h, NULL, 0);
		if (i % 8 == 0)
			fake_pass(&f);
	}
	fake_pass(&f);
	list(text, sizeof(text));
	cr_expect_str_eq(text, "fault 1 delay=1s kind=probe: matched 4099, "
			 "hit 4096, missed 3\n");
	fake_close(&f);
}

BOTH(closing_drops_what_is_held)
{
	open_with(kind, "delay=1000; fail=random");
	fake_hello(&f, &p);
	fake_tag(&f, &p, 1, "x", 1);
	fake_pass(&f);
	send1(&a);
	fake_close(&f);
}

/* ---- sent frames ---- */

BOTH(a_failed_send_does_not_leave)
{
	unsigned left;

	open_with(kind, "fail=remote_dropped kind=tag after=1 count=1");
	introduce();
	left = core->nsend + core->ninject;
	send1(&a);
	/* As if the core had accepted and copied it. */
	cr_expect_eq(core->nsend + core->ninject, left);
	cr_expect_eq(rail()->busy, 1);
	fake_comp(&f, &a);
	cr_expect_eq(core_errors(), 1);
	/* It is retransmitted. */
	expect_again(LNX_KIND_TAG);
	cr_expect_eq(p.got, 3);
	fake_ack(&f, &p);
	fake_quiet(&f);
	cr_expect_eq(view_acked(inside()), 3);
	cr_expect_eq(core_errors(), 1);
	cr_expect_eq(rail()->busy, 0);
	fake_close(&f);
}

/* Small frames have no completion in a core, but do have an error when they
 * fail here. */
Test(faults, a_failed_inject)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN },
				.inject_size = 512 };

	fake_conf.fault = "fail=local_dropped kind=msg count=1";
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	introduce();
	cr_assert_eq(fi_inject(f.ep, "x", 1, p.addr), 0);
	cr_expect_eq(core_errors(), 0);
	cr_expect_eq(rail()->busy, 1);
	fake_quiet(&f);
	cr_expect_eq(core_errors(), 1);
	cr_expect_eq(rail()->busy, 0);
	expect_again(LNX_KIND_MSG);
	fake_close(&f);
}

/* Frames without a completion must not fail. */
BOTH(control_frames_leave)
{
	open_with(kind, "fail=random kind=^hello");
	fake_meet(&f, &p);
	fake_tag(&f, &p, 5, "x", 1);
	expect_again(LNX_KIND_ACK);
	cr_expect_eq(core_errors(), 0);
	fake_close(&f);
}

BOTH(a_failed_piece_is_read_again)
{
	static uint8_t mem[30000], to[30000];
	uint64_t len = sizeof(mem);
	unsigned i;

	for (i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7);
	fake_conf.chunk = 10000;
	open_with(kind, "fail=network_timeout kind=read rate=2 count=2");
	fake_hello(&f, &p);
	cr_assert_eq(fi_trecv(f.ep, to, sizeof(to), NULL, FI_ADDR_UNSPEC, 5, 0,
			      &a), 0);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	for (i = 0; i < 20; i++)
		fake_after_ms(&f, 10);
	fake_comp(&f, &a);
	cr_expect_arr_eq(to, mem, len);
	/* Reads that failed never reached the core. */
	cr_expect_eq(core->nread, 3);
	cr_expect_eq(core_errors(), 2);
	cr_expect_eq(rail()->busy, 0);
	fake_close(&f);
}

/* Progress reports errors; errors that follow from them are handled in later passes. */
BOTH(all_sends_fail)
{
	uint64_t before;
	unsigned i;

	open_with(kind, "fail=random kind=tag count=40");
	send1(&a);
	for (i = 0; i < 400 && core_errors() < 40; i++) {
		before = core_errors();
		fake_now_ns += 50 * LNX_NS_PER_MS;
		fake_pass(&f);
		cr_assert_leq(core_errors(), before + 1);
	}
	cr_expect_eq(core_errors(), 40);
	fake_close(&f);
}

/* ---- selection by rule ---- */

Test(faults, rails_and_peers_are_told_apart)
{
	struct fake_opt opt = {
		.nrail = 2, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PEER },
	};
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE };
	struct fake_peer q;
	char text[400];

	fake_conf.fault = "drop rail=peer:* kind=probe; "
			  "drop peer=1 kind=probe; "
			  "drop peer=0000000000001111 rrail=3 kind=probe; "
			  "drop kind=probe rrail=0";
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &q);
	cr_assert_eq(q.addr, 1);
	fake_hello(&f, &p);
	fake_hello(&f, &q);
	fake_pass(&f);
	fake_frame_on(&f, &p, 1, h, NULL, 0);	/* 1st rule */
	fake_frame_on(&f, &q, 0, h, NULL, 0);	/* 2nd */
	fake_frame_on(&f, &q, 0, h, NULL, 0);
	h.rail = 3;
	fake_frame_on(&f, &p, 0, h, NULL, 0);	/* 3rd */
	h.rail = 1;
	fake_frame_on(&f, &p, 0, h, NULL, 0);	/* none */
	h.rail = 0;
	fake_frame_on(&f, &p, 0, h, NULL, 0);	/* 4th */
	fake_passes(&f, 2);
	list(text, sizeof(text));
	cr_expect_str_eq(text,
		"fault 1 drop rail=peer:* kind=probe: matched 1, hit 1\n"
		"fault 2 drop peer=1 kind=probe: matched 2, hit 2\n"
		"fault 3 drop rrail=3 peer=0000000000001111 kind=probe: "
		"matched 1, hit 1\n"
		"fault 4 drop rrail=0 kind=probe: matched 1, hit 1\n");
	fake_close(&f);
}

/* ---- a rail that is closed while the endpoint stays open ---- */

BOTH(forgetting_a_rail)
{
	open_with(kind, "delay=20 kind=tag; fail=random kind=tag");
	fake_hello(&f, &p);
	fake_tag(&f, &p, 5, "late", 4);
	fake_pass(&f);
	recv_any(&b);
	send1(&a);
	lnx_lock(&f.lnx->lock);
	lnx_faults_forget_rail(rail());
	rail()->busy = 0;		/* its owner takes back its operations */
	lnx_unlock(&f.lnx->lock);
	fake_comp(&f, &a);
	fake_after_ms(&f, 30);
	fake_quiet(&f);
	cr_expect_eq(core_errors(), 0);
	cr_expect(!view_work(f.lnx, LNX_WORK_FAULT));
	fake_close(&f);
}

/* ---- text ---- */

Test(faults, without_rules)
{
	fake_conf.fault = NULL;
	cr_expect_eq(lnx_faults_check(&fake_conf), 0);
	fake_open(&f, NULL);
	cr_expect_not(view_injects(f.lnx));
	list(buf, sizeof(buf));
	cr_expect_str_eq(buf, "");
	lnx_faults_forget_rail(f.lnx->rail[0]);
	fake_close(&f);
}

Test(faults, text_that_is_refused)
{
	fake_conf.fault = "drop kind=ack";
	cr_expect_eq(lnx_faults_check(&fake_conf), 0);
	fake_conf.use_srq = false;
	cr_expect_eq(lnx_faults_check(&fake_conf), -FI_EINVAL);
	fake_conf.use_srq = true;
	fake_conf.protocol = LNX_PROTOCOL_DIRECT;
	cr_expect_eq(lnx_faults_check(&fake_conf), -FI_EINVAL);
	fake_conf.protocol = LNX_PROTOCOL_FRAMED;
	fake_conf.fault = "drop kind=acks";
	cr_expect_eq(lnx_faults_check(&fake_conf), -FI_EINVAL);
	fake_conf.fault = NULL;
}

/* Shared memory has no frames, so the rules are unused. */
Test(faults, of_no_use_without_a_network)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_DIRECT } };

	fake_conf.fault = "drop";
	fake_open(&f, &opt);
	cr_expect_not(view_injects(f.lnx));
	fake_close(&f);
}
