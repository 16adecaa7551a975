/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Framed sends on a scripted core; everything on both kinds of framed rail. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_core.h"
#include "core/peer.h"
#include "wire/shm_ctrl.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b, c, d, e;		/* contexts */

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(tx_plain, name) { name(LNX_RAIL_PLAIN); }			\
	Test(tx_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static void open_with(enum lnx_rail_kind kind, struct fake_opt opt)
{
	opt.nrail = 1;
	opt.kind[0] = kind;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_get(f.lnx, p.addr);
}

/* The hello and one message have left and are acknowledged. */
static void introduce(void)
{
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, &a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_assert_eq(view_acked(inside()), view_posted(inside()));
}

static void open_introduced(enum lnx_rail_kind kind)
{
	open_with(kind, (struct fake_opt) { 0 });
	introduce();
}

static size_t txes(void)
{
	return view_frames(f.lnx);
}

static ssize_t send1(uint64_t tag, void *context)
{
	return fi_tsend(f.ep, &tag, sizeof(tag), NULL, p.addr, tag, context);
}

static void expect_tag(uint64_t tag, uint32_t seq)
{
	struct fake_sent *s = fake_expect(&f, &p, LNX_KIND_TAG);

	cr_expect_eq(s->h.tag, tag, "tag %lu, not %lu", s->h.tag, tag);
	cr_expect_eq(s->h.seq, seq, "seq %u, not %u", s->h.seq, seq);
	cr_expect_eq(s->h.len, sizeof(tag));
	cr_expect_eq(memcmp(s->bytes + sizeof(struct lnx_wire_hdr), &tag,
			    sizeof(tag)), 0);
	free(s);
}

/* Frames left, some perhaps twice, that bring the peer up to `end`. */
static void expect_up_to(uint32_t end)
{
	struct fake_sent *s;

	while ((s = fake_take(core))) {
		cr_expect_lt((int32_t)(s->h.seq - end), 0);
		cr_expect_leq((int32_t)(s->h.seq - p.got), 0,
			      "seq %u before %u", s->h.seq, p.got);
		if (s->h.seq == p.got)
			p.got++;
		free(s);
	}
	cr_expect_eq(p.got, end, "%u, not %u", p.got, end);
}

BOTH(hello_goes_first)
{
	struct fake_sent *s;

	open_with(kind, (struct fake_opt) { 0 });
	cr_assert_eq(fi_tsenddata(f.ep, "hello", 5, NULL, 0xdddddddd12345678,
				  p.addr, 0xabcdef0123456789, &a), 0);
	s = fake_expect(&f, &p, LNX_KIND_HELLO);
	cr_expect_eq(s->h.seq, 0);
	cr_expect_eq(s->len, sizeof(struct lnx_wire_hdr) + LNX_ADDR_BYTES);
	cr_expect_eq(memcmp(s->bytes + sizeof(struct lnx_wire_hdr), view_address(f.lnx),
			    LNX_ADDR_BYTES), 0);
	free(s);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.seq, 1);
	cr_expect_eq(s->h.tag, 0xabcdef0123456789);
	cr_expect_eq(s->h.data, 0xdddddddd12345678);
	cr_expect_eq(s->h.flags, LNX_WIRE_F_DATA);
	cr_expect_eq(s->h.len, 5);
	free(s);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* Every form of call becomes the same frame. */
BOTH(spellings)
{
	struct iovec iov[2] = { { (void *)"abc", 3 }, { (void *)"defg", 4 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .context = &a,
			    .data = 9 };
	struct fi_msg_tagged t = { .msg_iov = iov, .iov_count = 2, .tag = 7,
				   .context = &a, .data = 9 };
	static const struct { uint8_t kind, flags; bool comp; } want[] = {
		{ LNX_KIND_MSG, 0, true }, { LNX_KIND_MSG, 0, true },
		{ LNX_KIND_MSG, LNX_WIRE_F_DATA, true },
		{ LNX_KIND_MSG, 0, false },
		{ LNX_KIND_MSG, LNX_WIRE_F_DATA, true },
		{ LNX_KIND_MSG, LNX_WIRE_F_DATA, false },
		{ LNX_KIND_TAG, 0, true }, { LNX_KIND_TAG, 0, true },
		{ LNX_KIND_TAG, LNX_WIRE_F_DATA, true },
		{ LNX_KIND_TAG, 0, false },
		{ LNX_KIND_TAG, LNX_WIRE_F_DATA, true },
		{ LNX_KIND_TAG, LNX_WIRE_F_DATA, false },
	};
	char all[] = "abcdefg";
	unsigned i;

	open_introduced(kind);
	m.addr = t.addr = p.addr;
	fi_send(f.ep, all, 7, NULL, p.addr, &a);
	fi_sendv(f.ep, iov, NULL, 2, p.addr, &a);
	fi_sendmsg(f.ep, &m, FI_REMOTE_CQ_DATA);
	fi_inject(f.ep, all, 7, p.addr);
	fi_senddata(f.ep, all, 7, NULL, 9, p.addr, &a);
	fi_injectdata(f.ep, all, 7, 9, p.addr);
	fi_tsend(f.ep, all, 7, NULL, p.addr, 7, &a);
	fi_tsendv(f.ep, iov, NULL, 2, p.addr, 7, &a);
	fi_tsendmsg(f.ep, &t, FI_REMOTE_CQ_DATA);
	fi_tinject(f.ep, all, 7, p.addr, 7);
	fi_tsenddata(f.ep, all, 7, NULL, 9, p.addr, 7, &a);
	fi_tinjectdata(f.ep, all, 7, 9, p.addr, 7);
	for (i = 0; i < LNX_ARRAY_SIZE(want); i++) {
		struct fake_sent *s = fake_expect(&f, &p, want[i].kind);

		cr_expect_eq(s->h.flags, want[i].flags, "call %u", i);
		cr_expect_eq(s->h.seq, i + 2);
		cr_expect_eq(s->h.tag, want[i].kind == LNX_KIND_TAG ? 7 : 0);
		if (want[i].flags)
			cr_expect_eq(s->h.data, 9);
		cr_expect_eq(memcmp(s->bytes + sizeof(struct lnx_wire_hdr),
				    all, 7), 0, "call %u", i);
		free(s);
		if (want[i].comp)
			cr_expect_eq(fake_comp(&f, &a).flags, FI_SEND |
				     (i < 6 ? FI_MSG : FI_TAGGED));
	}
	fake_quiet(&f);
	fake_close(&f);
}

/* ---- the path returns EAGAIN ---- */

BOTH(queued_in_order_while_the_path_is_closed)
{
	uint64_t i;

	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = FAKE_ALWAYS;
	for (i = 0; i < 20; i++)
		cr_assert_eq(send1(i, &a), 0);
	fake_quiet(&f);
	fake_after_ms(&f, 50);
	fake_expect_none(&f);
	core->send_again = 0;
	fake_after_ms(&f, 50);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	for (i = 0; i < 20; i++) {
		expect_tag(i, (uint32_t)i + 1);
		fake_comp(&f, &a);
	}
	fake_expect_none(&f);
	fake_quiet(&f);
	fake_close(&f);
}

/* Each frame that waits counts once, however often it is tried. */
BOTH(waiting_is_counted)
{
	uint64_t i;

	fake_conf.window = 4;
	open_with(kind, (struct fake_opt) { 0 });
	/* It waits for the path: so does the hello. */
	core->send_again = FAKE_ALWAYS;
	for (i = 0; i < 3; i++)
		cr_assert_eq(send1(i, &a), 0);
	cr_expect_eq(f.lnx->stats.queued, 4u);
	fake_after_ms(&f, 50);
	fake_after_ms(&f, 50);
	cr_expect_eq(f.lnx->stats.queued, 4u);
	core->send_again = 0;
	fake_after_ms(&f, 50);
	fake_drop_all(&f, &p);
	/* It waits for the window. */
	for (i = 3; i < 5; i++)
		cr_assert_eq(send1(i, &a), 0);
	cr_expect_eq(f.lnx->stats.queued, 6u);
	fake_passes(&f, 10);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	expect_tag(3, 4);
	expect_tag(4, 5);
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	/* It waits for nothing. */
	cr_assert_eq(send1(5, &a), 0);
	expect_tag(5, 6);
	cr_expect_eq(f.lnx->stats.queued, 6u);
	for (i = 0; i < 6; i++)
		fake_comp(&f, &a);
	fake_close(&f);
}

/* A FIN is trusted only for rails that exist, and for at most the bytes of the
 * message. */
BOTH(fin_says_which_rail_carried_it)
{
	static char big[20000];
	struct lnx_wire_moved moved[3] = {
		{ .rail = htole16(99), .bytes = htole64(5) },
		{ .bytes = htole64(7000) }, { .bytes = htole64(UINT64_MAX) },
	};
	struct lnx_rail_traffic *t;
	struct fake_sent *s;
	struct lnx_rts r;

	for (int summary = 0; summary < 2; summary++) {
		fake_conf.summary = summary;
		open_introduced(kind);
		t = &f.lnx->rail[0]->traffic;
		cr_expect_eq(t->sends, 1u);
		t->send_length = 0;
		cr_assert_eq(fi_tsend(f.ep, big, sizeof(big), NULL, p.addr, 1,
				      &a), 0);
		s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
		cr_assert_eq(lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64,
					      s->h.len), 0);
		free(s);
		cr_expect_eq(r.flags, summary ? LNX_RTS_F_MOVED : 0);
		cr_expect_eq(t->sends, 2u);
		cr_expect_eq(t->send_length, 0u, "nothing has moved yet");
		moved[1].rail = moved[2].rail = htole16(r.key[0][0].rail);
		fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
			  .data = r.op }, moved, sizeof(moved));
		fake_comp(&f, &a);
		cr_expect_eq(t->send_length, summary ? sizeof(big) : 0u, "%lu",
			     t->send_length);
		/* For an operation that has ended. */
		fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
			  .data = r.op }, moved, sizeof(moved));
		fake_quiet(&f);
		cr_expect_eq(t->send_length, summary ? sizeof(big) : 0u);
		fake_close(&f);
	}
}

/* A core that returns EAGAIN is tried again, with growing pauses. */
BOTH(closed_path_is_not_hammered)
{
	uint64_t begin;

	open_introduced(kind);
	begin = fake_now_ns;
	core->send_again = FAKE_ALWAYS;
	send1(1, &a);
	core->nrefused = 0;
	for (unsigned i = 0; i < 10000; i++) {
		fake_now_ns += 100 * LNX_NS_PER_US;
		fake_pass(&f);
	}
	cr_expect_geq(core->nrefused, 25, "%u tries in a second",
		      core->nrefused);
	cr_expect_leq(core->nrefused, 60, "%u tries in a second",
		      core->nrefused);
	/* From 10 to 12 s the pauses are the longest: a second each. */
	while (fake_now_ns - begin < 10 * LNX_NS_PER_S) {
		fake_now_ns += LNX_NS_PER_MS;
		fake_pass(&f);
	}
	core->nrefused = 0;
	while (fake_now_ns - begin < 12 * LNX_NS_PER_S) {
		fake_now_ns += 100 * LNX_NS_PER_US;
		fake_pass(&f);
	}
	cr_expect_geq(core->nrefused, 1, "none in two seconds");
	cr_expect_leq(core->nrefused, 3, "%u tries in two seconds", core->nrefused);
	/* What it costs to find out is an eighth of what has passed, and no more than that. */
	core->send_again = 0;
	fake_after_ms(&f, 1001);
	expect_tag(1, 2);
	fake_close(&f);
}

/* Peers that are not there share few tries in a pass, and each has its turn. */
BOTH(many_closed_paths)
{
	static struct fake_peer many[100];
	unsigned i, before, worst = 0;

	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = core->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 100; i++) {
		fake_peer_init(&f, &many[i], 0x5000 + i);
		fake_peer_insert(&f, &many[i]);
		cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, many[i].addr, 1, &a), 0);
	}
	for (i = 0; i < 3000; i++) {
		before = core->nrefused;
		fake_now_ns += LNX_NS_PER_MS;
		fake_pass(&f);
		worst = LNX_MAX(worst, core->nrefused - before);
	}
	cr_expect_leq(worst, 8, "%u tries in one pass", worst);
	core->send_again = core->inject_again = 0;
	for (i = 0; i < 600; i++)
		fake_after_ms(&f, 1);
	for (i = 0; i < 100; i++)
		fake_comp(&f, &a);
	fake_close(&f);
}

/* Frames that fit are injected, without a completion of the core. */
BOTH(small_frames_are_injected)
{
	char big[256] = "";
	struct fake_sent *s;

	open_with(kind, (struct fake_opt) { .inject_size = 128 });
	introduce();
	cr_expect_eq(core->nsend, 0u, "hello and message fit");
	cr_expect_eq(core->ninject, 2u);
	cr_assert_eq(fi_tsend(f.ep, big, 64, NULL, p.addr, 1, &a), 0);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect(s->inject);
	cr_expect_eq(s->len, 128u);
	free(s);
	fake_comp(&f, &a);
	cr_assert_eq(fi_tsend(f.ep, big, 65, NULL, p.addr, 1, &b), 0);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect(!s->inject);
	free(s);
	fake_comp(&f, &b);
	cr_expect_eq(txes(), 2u, "kept until acknowledged");
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(txes(), 0u);
	fake_close(&f);
}

BOTH(injected_frame_waits_for_a_busy_core_and_for_its_ack)
{
	open_with(kind, (struct fake_opt) { .inject_size = 128 });
	introduce();
	core->inject_again = 3;
	cr_assert_eq(send1(1, &a), 0);
	fake_quiet(&f);
	fake_expect_none(&f);
	fake_after_ms(&f, 50);
	fake_after_ms(&f, 50);
	fake_after_ms(&f, 50);
	expect_tag(1, p.got);
	fake_comp(&f, &a);
	/* Lost on the way: it is kept and sent once more. */
	p.got--;
	fake_after_ms(&f, 1000);
	fake_after_ms(&f, 1000);
	fake_expect_none(&f);
	fake_answer(&f, &p);
	fake_pass(&f);
	expect_up_to(p.got + 1);
	cr_expect_gt(f.lnx->stats.resend_count, 0u);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(txes(), 0u);
	fake_close(&f);
}

/* After an inject the application may make no call for long: it is sent or refused. */
BOTH(inject_is_never_queued_while_connecting)
{
	open_with(kind, (struct fake_opt) { 0 });
	/* At first contact, */
	core->send_again = FAKE_ALWAYS;
	cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), -FI_EAGAIN);
	cr_expect_eq(fi_inject(f.ep, "x", 1, p.addr), -FI_EAGAIN);
	fake_after_ms(&f, 20);
	cr_expect_eq(fi_tinjectdata(f.ep, "x", 1, 1, p.addr, 1), -FI_EAGAIN);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_none(&f);
	cr_expect_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);

	/* after the connection broke, */
	core->send_fails = 1;
	cr_expect_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	core->send_again = FAKE_ALWAYS;
	fake_passes(&f, 2);
	cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), -FI_EAGAIN);
	/* and behind queued sends. */
	cr_expect_eq(send1(3, &a), 0);
	cr_expect_eq(fi_tinject(f.ep, "z", 1, p.addr, 4), -FI_EAGAIN);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	p.got = 2;
	expect_up_to(4);
	cr_expect_eq(fi_tinject(f.ep, "z", 1, p.addr, 4), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(p.got, 5, "no number was lost");
	fake_comp(&f, &a);
	fake_quiet(&f);
	fake_close(&f);
}

static ssize_t send_silent(uint64_t tag, uint64_t flags)
{
	struct iovec iov = { &tag, sizeof(tag) };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1,
				   .addr = p.addr, .tag = tag };

	return fi_tsendmsg(f.ep, &m, flags);
}

/* A program may send these from its completion handlers, where -FI_EAGAIN would
 * lead to nested calls.  (In Open MPI 4.1 the acks of synchronous sends do
 * this, and entries of its CQ got lost.) */
BOTH(sends_without_completion_are_queued)
{
	open_with(kind, (struct fake_opt) { .tx_size = 4,
			.tx_bind = FI_SELECTIVE_COMPLETION });
	core->send_again = FAKE_ALWAYS;
	cr_expect_eq(send_silent(1, FI_INJECT), -FI_EAGAIN);
	for (uint64_t i = 0; i < 3; i++)	/* behind the hello */
		cr_expect_eq(send_silent(i, 0), 0);
	cr_expect_eq(send_silent(9, FI_COMPLETION), -FI_EAGAIN, "full");
	for (uint64_t i = 3; i < 7; i++)
		cr_expect_eq(send_silent(i, 0), 0, "but not for these");
	cr_expect_eq(send_silent(7, 0), -FI_EAGAIN);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	for (uint64_t i = 0; i < 7; i++)
		expect_tag(i, (uint32_t)i + 1);
	fake_quiet(&f);
	fake_close(&f);
}

/* A core that is only busy is no reason to refuse; the payload is copied. */
BOTH(inject_to_a_busy_core_leaves_in_order)
{
	char buf[] = "first";
	struct fake_sent *s;

	fake_conf.copy_limit = 3;
	open_introduced(kind);
	core->send_again = 1;
	cr_expect_eq(fi_tinject(f.ep, buf, 6, p.addr, 5), 0);
	strcpy(buf, "xxxxx");
	fake_after_ms(&f, 20);
	cr_expect_eq(fi_tinject(f.ep, "then", 5, p.addr, 6), 0);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.seq, 2);
	cr_expect_eq(s->h.tag, 5);
	cr_expect_str_eq((char *)s->bytes + 64, "first");
	free(s);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.seq, 3);
	cr_expect_eq(s->h.tag, 6);
	free(s);
	fake_quiet(&f);
	fake_close(&f);
}

/* Also a short message may have to be announced, or to wait for its ack. */
BOTH(limits_of_short_messages)
{
	static char text[] = "ten bytes";
	struct fake_sent *s;
	struct lnx_rts r;

	fake_conf.copy_limit = 3;
	fake_conf.send_buffer = 0;
	open_with(kind, (struct fake_opt) { .inject_size = 256 });
	introduce();
	cr_assert_eq(fi_tsend(f.ep, text, 3, NULL, p.addr, 2, &b), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &b);
	cr_assert_eq(fi_tsend(f.ep, text, 4, NULL, p.addr, 3, &b), 0);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect(s->h.flags & LNX_WIRE_F_ACK_NOW);
	free(s);
	fake_quiet(&f);
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	fake_close(&f);

	fake_conf.copy_limit = fake_conf.eager_limit = 1;
	open_with(kind, (struct fake_opt) { .inject_size = 256 });
	introduce();
	cr_assert_eq(fi_tsend(f.ep, text, 2, NULL, p.addr, 2, &b), 0);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	cr_assert_eq(lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len), 0);
	free(s);
	fake_ack(&f, &p);
	fake_quiet(&f);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
		  .data = r.op }, NULL, 0);
	fake_comp(&f, &b);
	fake_close(&f);

	fake_conf.copy_limit = fake_conf.eager_limit = 4096;
	open_with(kind, (struct fake_opt) { .inject_size = 256 });
	introduce();
	force_max_msg_size(f.lnx, 5);
	cr_expect_eq(fi_tsend(f.ep, text, 6, NULL, p.addr, 2, &b), -FI_EMSGSIZE);
	cr_expect_eq(fi_tinject(f.ep, text, 6, p.addr, 2), -FI_EMSGSIZE);
	fake_quiet(&f);
	fake_close(&f);
}

/* It is not in a queue that is checked, so it has to check the deadline itself. */
BOTH(inject_gives_up_when_the_deadline_has_passed)
{
	ssize_t ret = -FI_EAGAIN;

	fake_conf.connect_timeout = 200;
	open_introduced(kind);
	core->send_fails = 1;
	cr_expect_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	fake_drop_all(&f, &p);
	core->send_again = FAKE_ALWAYS;
	fake_pass(&f);
	fake_ack(&f, &p);
	fake_pass(&f);
	for (int i = 0; i < 18; i++) {
		fake_now_ns += 10 * LNX_NS_PER_MS;
		cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), -FI_EAGAIN);
	}
	for (int i = 0; i < 20 && ret == -FI_EAGAIN; i++) {
		fake_now_ns += 10 * LNX_NS_PER_MS;
		ret = fi_tinject(f.ep, "x", 1, p.addr, 1);
	}
	cr_expect_eq(ret, -FI_EHOSTUNREACH);
	fake_close(&f);
}

BOTH(tx_size_is_the_limit_of_the_queue)
{
	open_with(kind, (struct fake_opt) { .tx_size = 4 });
	introduce();
	core->send_again = FAKE_ALWAYS;
	for (uint64_t i = 0; i < 4; i++)
		cr_assert_eq(send1(i, &b), 0);
	cr_expect_eq(send1(4, &b), -FI_EAGAIN);
	cr_expect_eq(fi_send(f.ep, "x", 1, NULL, p.addr, &b), -FI_EAGAIN);
	core->send_again = 0;
	fake_now_ns += 20 * LNX_NS_PER_MS;
	cr_expect_eq(send1(4, &b), 0, "the call itself makes progress");
	for (uint64_t i = 0; i < 5; i++) {
		expect_tag(i, (uint32_t)i + 2);
		fake_comp(&f, &b);
	}
	fake_close(&f);
}

/* A call that waits for room may find the end of its peer: then what waited has failed, and
 * there is room, but for nothing. */
BOTH(nothing_is_sent_to_a_peer_that_has_ended_meanwhile)
{
	open_with(kind, (struct fake_opt) { .tx_size = 4 });
	introduce();
	core->send_again = FAKE_ALWAYS;
	for (uint64_t i = 0; i < 4; i++)
		cr_assert_eq(send1(i, &b), 0);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = p.seq }, NULL, 0);
	cr_expect_eq(send1(4, &b), -FI_EAGAIN);
	for (uint64_t i = 0; i < 4; i++)
		fake_err(&f, &b, FI_ECONNRESET);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	cr_expect_eq(fi_cq_read(f.cq, &(struct fi_cq_tagged_entry) { 0 }, 1), -FI_EAGAIN);
	cr_expect_neq(send1(4, &b), -FI_EAGAIN, "the next call knows what is there");
	fake_close(&f);
}

/* ---- window ---- */

BOTH(full_window_waits_for_an_ack)
{
	fake_conf.window = 8;
	open_introduced(kind);
	for (uint64_t i = 0; i < 12; i++)
		cr_assert_eq(send1(i, &a), 0);
	for (uint32_t i = 0; i < 8; i++) {
		expect_tag(i, i + 2);
		fake_comp(&f, &a);
	}
	fake_after_ms(&f, 20);
	fake_expect_none(&f);
	fake_quiet(&f);

	p.got = 4;			/* 2 of 8 */
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	p.got = 10;
	expect_tag(8, 10);
	expect_tag(9, 11);
	fake_expect_none(&f);
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	expect_tag(10, 12);
	expect_tag(11, 13);
	for (int i = 0; i < 4; i++)
		fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_quiet(&f);
	cr_expect_eq(txes(), 0);
	fake_close(&f);
}

BOTH(window_over_the_wrap_around)
{
	struct lnx_peer *peer;
	uint32_t start = 0u - 700, seq = start;

	fake_conf.window = 16;
	open_introduced(kind);
	peer = inside();
	force_first(peer, start);
	p.got = start;
	for (uint64_t i = 0; i < 1400; i++, seq++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
		expect_tag(i, seq);
		if (i == 698) {
			/* A loss at the edge of the window: everything that is
			 * not acked is retransmitted. */
			uint32_t una = view_acked(peer);

			core->hold_sends = true;
			cr_assert_eq(send1(5000, &a), 0);
			cr_assert_eq(send1(5001, &a), 0);
			fake_comp(&f, &a);
			fake_comp(&f, &a);
			core->hold_sends = false;
			fake_drop_all(&f, &p);
			fake_finish(core, 0, FI_EIO);
			fake_finish(core, 0, FI_EIO);
			fake_passes(&f, 3);
			p.got = una;
			seq += 2;
			expect_up_to(seq + 1);
		}
		if (i % 7 == 0) {
			fake_ack(&f, &p);
			fake_pass(&f);
			cr_assert_eq(view_acked(peer), p.got);
		}
	}
	cr_expect_gt(700, p.got - 600);
	fake_close(&f);
}

/* ---- completion levels ---- */

static void levels(enum lnx_rail_kind kind, uint64_t flag, bool at_ack)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg_tagged t = { .msg_iov = &iov, .iov_count = 1, .tag = 7,
				   .context = &b };
	struct fake_sent *s;

	open_introduced(kind);
	t.addr = p.addr;
	cr_assert_eq(fi_tsendmsg(f.ep, &t, flag), 0);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(!!(s->h.flags & LNX_WIRE_F_ACK_NOW), at_ack);
	free(s);
	if (at_ack) {
		fake_quiet(&f);
		fake_ack(&f, &p);
	}
	fake_comp(&f, &b);
	fake_ack(&f, &p);
	fake_quiet(&f);
	cr_expect_eq(txes(), 0);
	fake_close(&f);
}

BOTH(default_completes_when_posted)
{
	levels(kind, 0, false);
}

BOTH(inject_complete_completes_when_posted)
{
	levels(kind, FI_INJECT_COMPLETE, false);
}

BOTH(injected_msg_completes_when_posted)
{
	levels(kind, FI_INJECT, false);
}

BOTH(transmit_complete_waits_for_the_ack)
{
	levels(kind, FI_TRANSMIT_COMPLETE, true);
}

BOTH(delivery_complete_waits_for_the_ack)
{
	levels(kind, FI_DELIVERY_COMPLETE, true);
}

BOTH(level_of_the_endpoint)
{
	open_with(kind, (struct fake_opt) { .tx_op_flags =
					    FI_DELIVERY_COMPLETE });
	cr_assert_eq(send1(1, &a), 0);
	fake_drop_all(&f, &p);
	fake_quiet(&f);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_close(&f);
}

BOTH(selective_completion)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };

	open_with(kind, (struct fake_opt) { .tx_bind =
					    FI_SELECTIVE_COMPLETION });
	m.addr = p.addr;
	cr_assert_eq(send1(1, &a), 0);
	cr_assert_eq(fi_sendmsg(f.ep, &m, 0), 0);
	fake_quiet(&f);
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_COMPLETION), 0);
	fake_comp(&f, &b);
	core->send_again = FAKE_ALWAYS;
	cr_expect_eq(fi_sendmsg(f.ep, &m, FI_COMPLETION), 0);
	cr_expect_eq(fi_sendmsg(f.ep, &m, FI_INJECT), -FI_EAGAIN, "else it is lost");
	cr_expect_eq(send1(1, &a), 0);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_comp(&f, &b);
	fake_quiet(&f);
	fake_drop_all(&f, &p);
	fake_close(&f);
}

/*
 * Success is not reported, but failure is; injects have no context to report it
 * with.
 */
BOTH(silent_sends_that_fail_are_reported)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };
	static char big[4096];

	fake_conf.window = 4;
	fake_conf.copy_limit = 1024;
	fake_conf.send_buffer = 0;
	open_with(kind, (struct fake_opt) { .tx_bind =
					    FI_SELECTIVE_COMPLETION });
	m.addr = p.addr;
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_COMPLETION), 0);
	fake_comp(&f, &b);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
	/* These are sent, and complete for the application; but not the one
	 * whose payload is not copied, until its ack. */
	cr_assert_eq(send1(1, &a), 0);
	cr_assert_eq(send1(2, &a), 0);
	cr_assert_eq(send1(3, &a), 0);
	cr_assert_eq(fi_send(f.ep, big, sizeof(big), NULL, p.addr, &d), 0);
	/* The window is full. */
	cr_assert_eq(send1(4, &a), 0);
	cr_assert_eq(fi_inject(f.ep, big, 10, p.addr), 0);
	cr_assert_eq(fi_sendmsg(f.ep, &m, 0), 0);
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_COMPLETION), 0);
	fake_quiet(&f);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE }, NULL, 0);
	fake_pass(&f);
	fake_err(&f, &d, FI_ECONNRESET);
	fake_err(&f, &a, FI_ECONNRESET);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_quiet(&f);
	cr_expect_eq(txes(), 0);
	fake_close(&f);
}

/* Above the copy limit the payload stays in the application's buffer until the ack, if it
 * may not be copied later. */
BOTH(uncopied_payload_completes_at_the_ack)
{
	char buf[1000], part[300];
	struct iovec iov[2] = { { buf, 1000 }, { part, 300 } };
	struct fake_sent *s;

	fake_conf.copy_limit = 500;
	fake_conf.send_buffer = 0;
	memset(buf, 'a', sizeof(buf));
	memset(part, 'b', sizeof(part));
	open_introduced(kind);
	cr_assert_eq(fi_sendv(f.ep, iov, NULL, 2, p.addr, &b), 0);
	s = fake_expect(&f, &p, LNX_KIND_MSG);
	cr_expect_eq(s->h.len, 1300);
	cr_expect_eq(memcmp(s->bytes + 64, buf, 1000), 0);
	cr_expect_eq(memcmp(s->bytes + 1064, part, 300), 0);
	cr_expect(s->h.flags & LNX_WIRE_F_ACK_NOW);
	free(s);
	fake_quiet(&f);

	/* An inject is copied all the same. */
	cr_assert_eq(fi_inject(f.ep, buf, 1000, p.addr), 0);
	memset(buf, 'c', sizeof(buf));
	fake_expect_drop(&f, &p, LNX_KIND_MSG);
	fake_quiet(&f);
	/* Both are retransmitted: one from the application's buffer, one from
	 * the copy. */
	p.got -= 1;
	fake_after_ms(&f, 600);
	fake_after_ms(&f, 600);
	p.got -= 1;
	fake_answer(&f, &p);
	fake_pass(&f);
	s = fake_expect(&f, &p, LNX_KIND_MSG);
	cr_expect_eq(s->h.seq, 2);
	cr_expect_eq(s->bytes[64], 'c');
	free(s);
	s = fake_expect(&f, &p, LNX_KIND_MSG);
	cr_expect_eq(s->h.seq, 3);
	cr_expect_eq(s->bytes[64], 'a');
	free(s);
	fake_quiet(&f);
	fake_ack(&f, &p);
	fake_pass(&f);
	fake_comp(&f, &b);
	fake_quiet(&f);
	cr_expect_eq(txes(), 0);
	fake_close(&f);
}

BOTH(inject_has_a_limit)
{
	static char buf[LNX_INJECT_MAX + 1];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };

	open_introduced(kind);
	m.addr = p.addr;
	cr_expect_eq(fi_inject(f.ep, buf, sizeof(buf), p.addr), -FI_EINVAL);
	cr_expect_eq(fi_sendmsg(f.ep, &m, FI_INJECT), -FI_EINVAL);
	iov.iov_len--;
	cr_expect_eq(fi_inject(f.ep, buf, sizeof(buf) - 1, p.addr), 0);
	cr_expect_eq(fi_sendmsg(f.ep, &m, FI_INJECT), 0);
	fake_comp(&f, &b);
	fake_drop_all(&f, &p);
	fake_close(&f);
}

/* ---- which event ends a frame first ---- */

BOTH(core_and_ack_in_any_order)
{
	open_introduced(kind);
	core->hold_sends = true;
	for (uint64_t i = 0; i < 8; i++)
		cr_assert_eq(send1(i, &a), 0);
	for (int i = 0; i < 8; i++)
		fake_comp(&f, &a);
	cr_expect_eq(txes(), 8);
	/* The core completes in reverse order. */
	for (unsigned i = 8; i-- > 4;)
		fake_finish(core, i, 0);
	fake_pass(&f);
	cr_expect_eq(txes(), 8, "kept until they are acknowledged");
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(txes(), 4, "kept while the core reads them");
	cr_expect_eq(fake_held(core), 4);
	fake_finish(core, 3, 0);
	fake_finish(core, 1, FI_EIO);	/* acknowledged, so the error is ignored */
	fake_finish_all(core);
	fake_passes(&f, 3);
	cr_expect_eq(txes(), 0);
	fake_expect_none(&f);
	fake_quiet(&f);
	fake_close(&f);
}

/* ---- failures ---- */

BOTH(core_error_sends_all_again_that_is_not_acked)
{
	open_introduced(kind);
	core->hold_sends = true;
	for (uint64_t i = 0; i < 6; i++)
		cr_assert_eq(send1(i, &a), 0);
	for (uint64_t i = 0; i < 6; i++) {
		fake_comp(&f, &a);
		expect_tag(i, (uint32_t)i + 2);
	}
	p.got = 4;			/* 0 and 1 came through */
	fake_ack(&f, &p);
	fake_pass(&f);
	core->hold_sends = false;
	fake_finish(core, 0, 0);
	fake_finish(core, 0, 0);
	fake_finish(core, 0, 0);	/* 2: reported as sent, but lost */
	fake_finish(core, 0, FI_EIO);	/* 3 */
	fake_finish(core, 0, FI_EIO);
	fake_finish(core, 0, FI_EIO);
	fake_passes(&f, 4);
	expect_up_to(8);
	fake_quiet(&f);			/* completed once, not again */
	cr_expect_geq(f.lnx->stats.resend_count, 4);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(txes(), 0);
	/* Sending works again. */
	send1(9, &b);
	expect_tag(9, 8);
	fake_comp(&f, &b);
	fake_close(&f);
}

/* New frames do not overtake retransmitted ones. */
BOTH(resend_goes_before_new_frames)
{
	open_introduced(kind);
	core->hold_sends = true;
	send1(0, &a);
	send1(1, &a);
	fake_comp(&f, &a);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	p.got = 2;
	core->send_again = FAKE_ALWAYS;
	fake_finish(core, 0, FI_EIO);
	fake_finish(core, 0, FI_EIO);
	fake_passes(&f, 3);
	send1(2, &a);
	send1(3, &a);
	cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 3), -FI_EAGAIN);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	for (uint64_t i = 0; i < 4; i++)
		expect_tag(i, (uint32_t)i + 2);
	fake_expect_none(&f);
	fake_close(&f);
}

/* Two endpoints; the test is the network, which loses, repeats and fails frames. */
BOTH(receiver_drops_what_comes_twice)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };
	uint64_t got[40] = { 0 };
	struct fake_sent *s;
	struct fake g;
	fi_addr_t to;

	fake_open(&f, &opt);
	fake_open(&g, &opt);
	core = f.core[0];
	cr_assert_eq(fi_av_insert(f.av, view_address(g.lnx), 1, &to, 0, NULL), 1);
	for (int i = 0; i < 40; i++)
		cr_assert_eq(fi_trecv(g.ep, &got[i], 8, NULL, FI_ADDR_UNSPEC,
				      0, ~0ull, &got[i]), 0);
	for (uint64_t i = 0; i < 40; i++) {
		if (i == 10 || i == 20)
			core->send_fails = 5;
		cr_assert_eq(fi_tsend(f.ep, &i, 8, NULL, to, i, &a), 0);
		if (i % 3 == 0)
			fake_pass(&f);
		/* Every fourth frame is lost, some come twice. */
		while (i % 5 == 0 && (s = fake_take(core))) {
			if (s->h.seq % 4 || f.lnx->stats.resend_count > 60)
				fake_arrive(g.core[0], s->bytes, s->len);
			if (s->h.seq % 6 == 0)
				fake_arrive(g.core[0], s->bytes, s->len);
			free(s);
		}
	}
	for (int round = 0; round < 400; round++) {
		fake_after_ms(&f, 100);
		fake_after_ms(&g, 1);
		while ((s = fake_take(core))) {
			fake_arrive(g.core[0], s->bytes, s->len);
			free(s);
		}
		fake_after_ms(&g, 1);
		while ((s = fake_take(g.core[0]))) {
			fake_arrive(core, s->bytes, s->len);
			free(s);
		}
	}
	for (uint64_t i = 0; i < 40; i++) {
		fake_comp(&f, &a);
		cr_expect_eq(fake_comp(&g, &got[i]).tag, i);
		cr_expect_eq(got[i], i);
	}
	fake_quiet(&f);
	fake_quiet(&g);
	cr_expect_gt(g.lnx->stats.dup_drops, 3);
	cr_expect_gt(g.lnx->stats.reorders, 3);
	cr_expect_eq(txes(), 0);
	fake_close_quick(&g);
	fake_close(&f);
}

/* Five frames left and were lost; an answer says so. */
static void five_lost(enum lnx_rail_kind kind)
{
	open_introduced(kind);
	for (uint64_t i = 0; i < 5; i++)
		send1(i, &a);
	fake_drop_all(&f, &p);
	p.got = 2;
	fake_after_ms(&f, 99);
	fake_expect_none(&f);		/* the peer may only be computing */
}

BOTH(lost_frames_are_asked_for)
{
	five_lost(kind);
	cr_expect_eq(core->nlatency, 0u);
	fake_after_ms(&f, 100);
	cr_assert_eq(core->nlatency, 1u);
	fake_expect_none(&f);
	fake_answer(&f, &p);
	fake_pass(&f);
	for (uint64_t i = 0; i < 5; i++)
		expect_tag(i, (uint32_t)i + 2);
	fake_expect_none(&f);
	cr_expect_eq(f.lnx->stats.losses, 1u);
	/* What was sent again is not asked for at once. */
	fake_answer(&f, &p);
	fake_passes(&f, 2);
	fake_expect_none(&f);
	fake_close(&f);
}

/* What left after the question may still be on its way. */
BOTH(later_frames_are_not_lost)
{
	five_lost(kind);
	fake_after_ms(&f, 100);
	for (uint64_t i = 5; i < 9; i++)
		send1(i, &a);
	fake_drop_all(&f, &p);
	p.got = 2;
	fake_answer(&f, &p);
	fake_pass(&f);
	for (uint64_t i = 0; i < 5; i++)
		expect_tag(i, (uint32_t)i + 2);
	fake_expect_none(&f);
	fake_close(&f);
}

/* Another connection has this number, or none has. */
BOTH(answers_to_no_question)
{
	struct lnx_hdr odd = { .kind = LNX_KIND_PONG, .tag = 1 };

	five_lost(kind);
	for (uint64_t i = 0; i < 64; i++) {
		odd.data = LNX_WIRE_PROBE_LATENCY | 1ull << i;
		fake_frame(&f, &p, odd, NULL, 0);
	}
	fake_passes(&f, 2);
	fake_expect_none(&f);
	cr_expect_eq(f.lnx->stats.losses, 0u);
	fake_close(&f);
}

BOTH(a_peer_that_computes_is_asked_ever_more_rarely)
{
	struct fake_sent *s;
	unsigned n = 0;

	five_lost(kind);
	for (int i = 0; i < 8; i++)
		fake_after_ms(&f, 100);
	fake_expect_none(&f);
	cr_expect(core->nlatency >= 2 && core->nlatency <= 4, "%u", core->nlatency);
	for (int i = 0; i < 100; i++)
		fake_after_ms(&f, 100);
	cr_expect(core->nlatency >= 5 && core->nlatency <= 8, "%u", core->nlatency);
	/* At last the oldest frame goes again, for a path without answers. */
	while ((s = fake_take(core))) {
		cr_expect_eq(s->h.seq, 2);
		free(s);
		n++;
	}
	cr_expect(n >= 2 && n <= 4, "%u", n);
	/* Its acknowledgement shows what else is missing. */
	p.got = 3;
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	for (uint64_t i = 1; i < 5; i++)
		expect_tag(i, (uint32_t)i + 2);
	fake_expect_none(&f);
	fake_close(&f);
}

/* ---- acks that must not be trusted ---- */

BOTH(ack_of_frames_never_sent_is_ignored)
{
	static const int32_t off[] = { 1, 2, 100, 5000, INT32_MAX, INT32_MIN,
				       -5000, -10, -4, -1 - 3 };
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };
	uint32_t posted;

	open_introduced(kind);
	m.addr = p.addr;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	posted = view_posted(inside());
	for (size_t i = 0; i < LNX_ARRAY_SIZE(off); i++) {
		p.got = posted + (uint32_t)off[i];
		fake_ack(&f, &p);
		fake_quiet(&f);
		cr_expect_eq(view_acked(inside()), posted - 3, "off %d", off[i]);
	}
	/* Frames that wait are not sent either. */
	core->send_again = FAKE_ALWAYS;
	send1(1, &a);
	p.got = posted + 1;
	fake_ack(&f, &p);
	fake_quiet(&f);
	p.got = posted;
	fake_ack(&f, &p);
	for (int i = 0; i < 3; i++)
		fake_comp(&f, &b);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(ack_before_anything_was_sent)
{
	open_with(kind, (struct fake_opt) { 0 });
	p.got = 5;
	fake_hello(&f, &p);
	fake_passes(&f, 3);
	cr_assert_eq(send1(1, &a), 0);
	fake_comp(&f, &a);
	cr_expect_eq(view_acked(inside()), 0);
	fake_close(&f);
}

BOTH(stale_id_is_dropped)
{
	char buf[8];

	open_introduced(kind);
	fi_trecv(f.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &b);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_TAG, .dst = 77,
					     .len = 1 }, "x", 1);
	send1(1, &a);
	p.got = 3;
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_ACK, .dst = 77 },
		   NULL, 0);
	fake_comp(&f, &a);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.stale_frames, 2);
	cr_expect_eq(view_acked(inside()), 2, "its ack counts as little");
	cr_expect_eq(view_rx_next(inside()), 0);
	fake_close(&f);
}

/* ---- the deadline ---- */

BOTH(deadline_ends_every_operation_with_one_error)
{
	static char big[100000];

	fake_conf.connect_timeout = 200;
	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = FAKE_ALWAYS;
	cr_assert_eq(send1(1, &a), 0);
	cr_assert_eq(fi_send(f.ep, big, 100, NULL, p.addr, &b), 0);
	cr_assert_eq(fi_send(f.ep, big, sizeof(big), NULL, p.addr, &c), 0);
	cr_assert_eq(send1(4, &d), 0);
	cr_expect_eq(core->nmr_open, 1);
	fake_after_ms(&f, 150);
	fake_quiet(&f);
	fake_after_ms(&f, 100);
	fake_err(&f, &a, FI_ETIMEDOUT);
	fake_err(&f, &b, FI_ETIMEDOUT);
	fake_err(&f, &d, FI_ETIMEDOUT);
	fake_err(&f, &c, FI_ETIMEDOUT);
	fake_quiet(&f);
	cr_expect_eq(core->nmr_open, 0);
	cr_expect_eq(txes(), 0);
	cr_expect_eq(send1(1, &a), -FI_EHOSTUNREACH);
	cr_expect_eq(fi_inject(f.ep, big, 1, p.addr), -FI_EHOSTUNREACH);
	cr_expect_eq(fi_send(f.ep, big, sizeof(big), NULL, p.addr, &c),
		     -FI_EHOSTUNREACH);
	core->send_again = 0;
	fake_after_ms(&f, 100);
	fake_expect_none(&f);
	fake_close(&f);
}

/* A process that computes has not seen a peer fail; one that calls now and then
 * has, in the end. */
BOTH(deadline_does_not_run_unseen)
{
	unsigned i;

	fake_conf.connect_timeout = 30000;
	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = FAKE_ALWAYS;
	cr_assert_eq(send1(1, &a), 0);
	fake_after_ms(&f, 10);
	for (i = 0; i < 5; i++) {
		fake_after_ms(&f, 100000);
		fake_quiet(&f);
	}
	core->send_again = 0;
	fake_after_ms(&f, 100);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	core->send_again = FAKE_ALWAYS;
	cr_assert_eq(send1(2, &b), 0);
	for (i = 0; i < 40 && !lnx_peer_dead(inside()); i++)
		fake_after_ms(&f, 100000);
	cr_expect_geq(i, 29u);
	cr_expect_leq(i, 32u);
	fake_err(&f, &b, FI_ETIMEDOUT);
	fake_close(&f);
}

/* A connection breaks: what was reported is not reported again. */
BOTH(deadline_after_the_connection_broke)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };

	fake_conf.connect_timeout = 200;
	open_introduced(kind);
	m.addr = p.addr;
	core->hold_sends = true;
	send1(1, &a);
	fake_comp(&f, &a);
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	fi_tinject(f.ep, "x", 1, p.addr, 1);
	core->send_again = FAKE_ALWAYS;
	fake_finish(core, 0, FI_ECONNRESET);
	fake_finish(core, 0, FI_ECONNRESET);
	fake_passes(&f, 2);
	send1(2, &d);
	fake_after_ms(&f, 150);
	fake_quiet(&f);
	fake_after_ms(&f, 100);
	fake_err(&f, &b, FI_ETIMEDOUT);
	fake_err(&f, &d, FI_ETIMEDOUT);
	fake_quiet(&f);
	cr_expect_eq(txes(), 1, "the core has one still");
	fake_finish_all(core);
	fake_pass(&f);
	cr_expect_eq(txes(), 0);
	fake_close(&f);
}

BOTH(in_time_nothing_fails)
{
	fake_conf.connect_timeout = 200;
	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = FAKE_ALWAYS;
	send1(1, &a);
	fake_after_ms(&f, 190);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_after_ms(&f, 1000);
	/* A new outage has its own deadline. */
	core->send_again = FAKE_ALWAYS;
	send1(2, &b);
	fake_after_ms(&f, 150);
	fake_quiet(&f);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_comp(&f, &b);
	fake_close(&f);
}

/* Only retransmissions succeeded: a later outage is still a new one. */
BOTH(deadline_starts_anew_after_resends)
{
	fake_conf.connect_timeout = 200;
	open_introduced(kind);
	core->send_fails = 1;
	send1(1, &a);
	fake_drop_all(&f, &p);
	p.got = 2;
	core->send_again = 2;
	fake_comp(&f, &a);
	fake_after_ms(&f, 20);
	fake_after_ms(&f, 20);
	expect_tag(1, 2);
	fake_ack(&f, &p);
	fake_pass(&f);

	fake_after_ms(&f, 1000);
	core->send_again = FAKE_ALWAYS;
	cr_assert_eq(send1(2, &b), 0);
	fake_after_ms(&f, 20);
	fake_quiet(&f);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_comp(&f, &b);
	expect_tag(2, 3);
	fake_close(&f);
}

/* ---- large sends ---- */

BOTH(large_send_is_announced_and_ends_with_the_fin)
{
	static char big[50000];
	struct fake_sent *s;
	struct lnx_rts r;

	open_introduced(kind);
	cr_assert_eq(fi_tsenddata(f.ep, big, sizeof(big), NULL, 5, p.addr, 6,
				  &b), 0);
	cr_expect_eq(core->nmr_open, 1);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	cr_expect_eq(s->h.len, sizeof(big));
	cr_expect_eq(s->h.tag, 6);
	cr_expect_eq(s->h.data, 5);
	cr_expect(s->h.flags & LNX_WIRE_F_DATA);
	cr_assert_eq(lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len), 0);
	cr_expect_eq(r.nseg, 1);
	cr_expect_eq(r.nkey, 1);
	cr_expect_eq(r.key[0][0].rail, 0);
	cr_expect_eq(r.key[0][0].addr, (uintptr_t)big);
	cr_expect_neq(r.key[0][0].key, 0);
	free(s);
	fake_ack(&f, &p);
	fake_quiet(&f);			/* the ack does not complete it */
	cr_expect_eq(core->nmr_open, 1);

	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO }, p.blob,
		  64);
	/* For another operation: ignored. */
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
					     .data = r.op + 1 }, NULL, 0);
	fake_quiet(&f);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
					     .data = r.op }, NULL, 0);
	cr_expect_eq(fake_comp(&f, &b).flags, FI_SEND | FI_TAGGED);
	cr_expect_eq(core->nmr_open, 0);
	/* A second one finds no operation. */
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
					     .data = r.op }, NULL, 0);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 2);
	cr_expect_eq(core->nmr, 1);
	fake_close(&f);
}

BOTH(large_send_that_the_peer_refuses)
{
	static char big[50000];
	struct fake_sent *s;
	struct lnx_rts r;

	open_introduced(kind);
	fi_send(f.ep, big, sizeof(big), NULL, p.addr, &b);
	s = fake_expect(&f, &p, LNX_KIND_RTS_MSG);
	lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len);
	free(s);
	fake_hello(&f, &p);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
					     .data = r.op, .len = FI_EIO },
		  NULL, 0);
	fake_err(&f, &b, FI_EIO);
	fake_quiet(&f);
	cr_expect_eq(core->nmr_open, 0);
	fake_close(&f);
}

/* A peer cannot end an operation of another peer. */
BOTH(fin_of_another_peer)
{
	static char big[50000];
	struct fake_peer q;
	struct fake_sent *s;
	struct lnx_rts r;

	open_introduced(kind);
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &q);
	fi_send(f.ep, big, sizeof(big), NULL, p.addr, &b);
	s = fake_expect(&f, &p, LNX_KIND_RTS_MSG);
	lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len);
	free(s);
	fake_hello(&f, &q);
	fake_next(&f, &q, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
					     .data = r.op }, NULL, 0);
	fake_quiet(&f);
	cr_expect_eq(core->nmr_open, 1);
	fake_close(&f);
}

BOTH(large_send_of_pieces)
{
	static char buf[4][20000];
	struct iovec iov[4] = {
		{ buf[0], 20000 }, { buf[1], 0 }, { buf[2], 1 },
		{ buf[3], 10000 },
	};
	struct fake_sent *s;
	struct lnx_rts r;

	open_introduced(kind);
	cr_assert_eq(fi_tsendv(f.ep, iov, NULL, 4, p.addr, 1, &b), 0);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	cr_expect_eq(s->h.len, 30001);
	cr_assert_eq(lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len), 0);
	cr_assert_eq(r.nseg, 3, "an empty piece does not count");
	cr_expect_eq(core->nmr_open, 3);
	cr_expect_eq(r.seg_len[0], 20000);
	cr_expect_eq(r.seg_len[1], 1);
	cr_expect_eq(r.seg_len[2], 10000);
	cr_expect_eq(r.key[2][0].addr, (uintptr_t)buf[3]);
	cr_expect_neq(r.key[0][0].key, r.key[1][0].key);
	free(s);
	fake_close(&f);			/* closes the registrations as well */
}

BOTH(buffer_that_cannot_be_registered)
{
	static char buf[2][20000];
	struct iovec iov[2] = { { buf[0], 20000 }, { buf[1], 20000 } };

	open_introduced(kind);
	core->mr_fails = 1;
	cr_expect_eq(fi_sendv(f.ep, iov, NULL, 2, p.addr, &b), -FI_ENOMEM);
	cr_expect_eq(core->nmr_open, 0);
	cr_expect_eq(fi_sendv(f.ep, iov, NULL, 2, p.addr, &b), 0);
	cr_expect_eq(core->nmr_open, 2);
	fake_expect_drop(&f, &p, LNX_KIND_RTS_MSG);
	fake_expect_none(&f);
	fake_close(&f);
}

BOTH(more_pieces_than_there_may_be)
{
	char x[8];
	struct iovec iov[5] = { { x, 1 }, { x, 1 }, { x, 1 }, { x, 1 },
				{ x, 1 } };

	open_introduced(kind);
	cr_expect_eq(fi_sendv(f.ep, iov, NULL, 5, p.addr, &b), -FI_EINVAL);
	cr_expect_eq(fi_tsendv(f.ep, iov, NULL, 5, p.addr, 1, &b), -FI_EINVAL);
	cr_expect_eq(fi_sendv(f.ep, iov, NULL, 4, p.addr, &b), 0);
	fake_close(&f);
}

/* ---- acks_pending: acks that are due ---- */

BOTH(acks_ride_or_go_alone_after_a_while)
{
	struct fake_sent *s;
	char buf[4][8];

	open_introduced(kind);
	for (int i = 0; i < 4; i++)
		fi_trecv(f.ep, buf[i], 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &b);
	fake_hello(&f, &p);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &b);
	send1(1, &a);
	fake_comp(&f, &a);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.ack, 2);
	free(s);
	fake_after_ms(&f, 10);
	fake_expect_none(&f);		/* piggybacked */

	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &b);
	fake_after_ms(&f, 10);
	s = fake_expect(&f, &p, LNX_KIND_ACK);
	cr_expect_eq(s->h.ack, 3);
	cr_expect(s->inject);
	free(s);

	/* At once if the sender waits for it. */
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_TAG, .len = 1,
					     .flags = LNX_WIRE_F_ACK_NOW },
		  "x", 1);
	fake_comp(&f, &b);
	s = fake_expect(&f, &p, LNX_KIND_ACK);
	cr_expect_eq(s->h.ack, 4);
	free(s);

	/* An ACK that the core refuses is sent later. */
	core->inject_again = 2;
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &b);
	fake_after_ms(&f, 10);
	fake_after_ms(&f, 10);
	fake_after_ms(&f, 10);
	s = fake_expect(&f, &p, LNX_KIND_ACK);
	cr_expect_eq(s->h.ack, 5);
	free(s);
	fake_expect_none(&f);

	/* A PROBE is answered. */
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_PROBE }, NULL,
		   0);
	fake_passes(&f, 2);
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	fake_close(&f);
}

/* It is not lost with the frame that was to carry it. */
BOTH(refused_frame_does_not_lose_the_ack)
{
	char buf[8];

	open_introduced(kind);
	fake_hello(&f, &p);
	fake_pass(&f);
	fake_after_ms(&f, 1);
	fake_drop_all(&f, &p);
	core->send_fails = 1;
	fi_tinject(f.ep, "x", 1, p.addr, 1);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	core->send_again = FAKE_ALWAYS;
	fake_pass(&f);
	fi_trecv(f.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &b);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &b);
	fake_now_ns += 20 * LNX_NS_PER_MS;
	cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), -FI_EAGAIN);
	core->send_again = 0;
	fake_after_ms(&f, 1);
	fake_after_ms(&f, 1);
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	fake_close(&f);
}

BOTH(ack_after_so_many_frames)
{
	static char buf[100][8];

	fake_conf.ack_delay = 1000000;
	fake_conf.ack_every = 10;
	open_introduced(kind);
	fake_hello(&f, &p);
	for (int i = 0; i < 25; i++) {
		fi_trecv(f.ep, buf[i], 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &b);
		fake_tag(&f, &p, 1, "x", 1);
		fake_comp(&f, &b);
	}
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	fake_expect_none(&f);
	fake_close(&f);
}

/* ---- another endpoint at a peer's address ---- */

static void ask_for(uint64_t eid, uint8_t kind, size_t len)
{
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = kind, .dst = eid },
		   p.blob, len);
	fake_after_ms(&f, 3);
}

/* The hello came over a rail that only the list after its address has. */
BOTH(wrong_endpoint_over_more_rails)
{
	struct lnx_rails all = { .n = 1, .place = { 5 } };
	uint8_t hello[LNX_ADDR_BYTES + LNX_WIRE_RAILS_BYTES];
	struct fake_sent *s;
	int n;

	open_introduced(kind);
	fake_drop_all(&f, &p);
	all.rail[0] = p.where.rail[0];
	memcpy(hello, p.blob, LNX_ADDR_BYTES);
	n = lnx_rails_pack(&all, hello + LNX_ADDR_BYTES);
	cr_assert_gt(n, 0);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO,
					      .dst = 77, .rail = 5 },
		   hello, LNX_ADDR_BYTES + (size_t)n);
	fake_after_ms(&f, 3);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION);
	cr_expect_eq(s->h.src, 77u);
	free(s);
	/* An index that is not in the list. */
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO,
					      .dst = 78, .rail = 6 },
		   hello, LNX_ADDR_BYTES + (size_t)n);
	fake_after_ms(&f, 3);
	fake_expect_none(&f);
	fake_close(&f);
}

BOTH(wrong_endpoint_is_reported)
{
	struct fake_sent *s;

	open_introduced(kind);
	fake_drop_all(&f, &p);
	ask_for(77, LNX_KIND_PROBE, LNX_ADDR_BYTES);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION);
	cr_expect_eq(s->h.tag, LNX_REFUSED_ENDPOINT);
	/* It learns nothing of us: only what it said itself. */
	cr_expect_eq(s->h.src, 77u);
	cr_expect_eq(s->h.dst, p.sid);
	free(s);
	fake_expect_none(&f);
	/* A sender that gives no address cannot be told. */
	ask_for(77, LNX_KIND_PROBE, 0);
	fake_expect_none(&f);
	fake_close(&f);
}

/* Only a limited number are remembered while the core is busy. */
BOTH(many_misdirected_at_once)
{
	unsigned i, n = 0;

	open_introduced(kind);
	fake_drop_all(&f, &p);
	core->inject_again = core->send_again = FAKE_ALWAYS;
	for (i = 0; i < 50; i++) {
		fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO,
						      .dst = 100 + i },
			   p.blob, LNX_ADDR_BYTES);
		fake_pass(&f);
	}
	cr_expect_eq(view_misdirected(f.lnx), LNX_MISDIRECTED_MAX, "%u",
		     view_misdirected(f.lnx));
	fake_after_ms(&f, 20);
	core->inject_again = core->send_again = 0;
	for (i = 0; i < 20; i++)
		fake_after_ms(&f, 20);
	cr_expect_eq(view_misdirected(f.lnx), 0u);
	while (core->sent) {
		struct fake_sent *s = fake_take(core);

		n += s->h.kind == LNX_KIND_NO_SESSION;
		free(s);
	}
	cr_expect_eq(n, LNX_MISDIRECTED_MAX);
	fake_close(&f);
}

static void refuse(uint64_t eid, uint64_t sid, uint64_t why)
{
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_NO_SESSION,
					      .src = eid, .dst = sid,
					      .tag = why }, NULL, 0);
}

BOTH(next_session_ends_what_is_outstanding)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };

	open_introduced(kind);
	m.addr = p.addr;
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	fake_quiet(&f);
	p.sid ^= 1;
	p.got = 0;
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO,
					      .tag = 2 }, p.blob,
		   sizeof(p.blob));
	fake_pass(&f);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(a_peer_whose_place_is_taken)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };
	uint64_t sid;

	open_introduced(kind);
	m.addr = p.addr;
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	sid = view_sid(lnx_peer_by_eid(f.lnx, p.eid));
	/* Of no peer; by a process that never got a frame of this session; for an
	 * unknown reason: nothing happens. */
	refuse(99, sid, LNX_REFUSED_ENDPOINT);
	refuse(p.eid, sid ^ 1, LNX_REFUSED_ENDPOINT);
	refuse(p.eid, f.lnx->eid, LNX_REFUSED_ENDED);
	refuse(p.eid, sid, 4711);
	fake_pass(&f);
	fake_quiet(&f);
	refuse(p.eid, sid, LNX_REFUSED_ENDPOINT);
	fake_pass(&f);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_quiet(&f);
	cr_expect_eq(send1(1, &a), -FI_EHOSTUNREACH);
	fake_close(&f);
}

/* ---- closing ---- */

/* What the peer has not acknowledged by then it never will. */
BOTH(bye_ends_what_waits_for_acks)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };

	open_introduced(kind);
	m.addr = p.addr;
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE }, NULL, 0);
	fake_pass(&f);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_quiet(&f);
	cr_expect_eq(send1(1, &a), -FI_EHOSTUNREACH);
	fake_close(&f);
}

BOTH(close_says_goodbye)
{
	open_introduced(kind);
	fake_close(&f);
	cr_expect_eq(fake_last_kind, LNX_KIND_BYE);
}

BOTH(close_waits_for_the_acks)
{
	uint64_t start;

	fake_conf.linger = 1;
	open_introduced(kind);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE }, NULL, 0);
	fake_pass(&f);
	cr_expect(!lnx_peer_open(inside()));
	/* Not for the acks of a peer that closes as well. */
	send1(1, &a);
	fake_conf.linger = 60000;
	start = fake_now_ns;
	fake_close(&f);
	cr_expect_lt(fake_now_ns - start, LNX_NS_PER_S);
}

BOTH(close_with_everything_under_way)
{
	static char big[50000];

	open_introduced(kind);
	core->hold_sends = true;
	for (uint64_t i = 0; i < 5; i++)
		send1(i, &a);
	fi_send(f.ep, big, sizeof(big), NULL, p.addr, &c);
	core->send_again = FAKE_ALWAYS;
	for (uint64_t i = 0; i < 5; i++)
		send1(i, &e);
	fi_send(f.ep, big, sizeof(big), NULL, p.addr, &c);
	fake_close(&f);
}

/* ---- direct rail: one call of the application is one call of the core ---- */

static void shm_file(uint64_t eid, bool make)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/lnx-%016llx",
		 (unsigned long long)eid);
	unlink(path);
	if (!make)
		return;
	fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
	cr_assert_geq(fd, 0, "%s", path);
	close(fd);
}

static fi_addr_t open_direct(size_t tx_size)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_DIRECT,
						      LNX_RAIL_PLAIN },
				.tx_size = tx_size };

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x5151515100000000 + (unsigned)getpid());
	p.where.has_shm = true;
	p.where.host = f.domain.host;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	shm_file(p.eid, true);
	fake_peer_insert(&f, &p);
	shm_file(p.eid, false);
	cr_assert(view_local(inside()));
	return p.addr;
}

/* The peer would take our frames for messages of the application. */
Test(tx_direct, no_frames_for_a_peer_without_them)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN } };

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1234);
	p.where.native = true;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_peer_insert(&f, &p);
	cr_assert_eq(fi_send(f.ep, "x", 1, NULL, p.addr, &a), -FI_EHOSTUNREACH);
	cr_assert_eq(fi_inject(f.ep, "x", 1, p.addr), -FI_EHOSTUNREACH);
	fake_passes(&f, 300);
	cr_assert_eq(f.core[0]->nsend + f.core[0]->ninject, 0);
	fake_close(&f);
}

Test(tx_direct, each_spelling_is_one_core_call)
{
	static const char *const want[] = {
		"fi_send", "fi_sendv", "fi_sendmsg", "fi_inject",
		"fi_senddata", "fi_injectdata", "fi_tsend", "fi_tsendv",
		"fi_tsendmsg", "fi_tinject", "fi_tsenddata", "fi_tinjectdata",
	};
	struct iovec iov[2] = { { (void *)"abc", 3 }, { (void *)"defg", 4 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .context = &a,
			    .data = 9 };
	struct fi_msg_tagged t = { .msg_iov = iov, .iov_count = 2, .tag = 7,
				   .context = &a, .data = 9 };
	char all[] = "abcdefg";
	fi_addr_t to = open_direct(0);

	m.addr = t.addr = to;
	fi_send(f.ep, all, 7, NULL, to, &a);
	fi_sendv(f.ep, iov, NULL, 2, to, &a);
	fi_sendmsg(f.ep, &m, FI_REMOTE_CQ_DATA);
	fi_inject(f.ep, all, 7, to);
	fi_senddata(f.ep, all, 7, NULL, 9, to, &a);
	fi_injectdata(f.ep, all, 7, 9, to);
	fi_tsend(f.ep, all, 7, NULL, to, 7, &a);
	fi_tsendv(f.ep, iov, NULL, 2, to, 7, &a);
	fi_tsendmsg(f.ep, &t, FI_REMOTE_CQ_DATA);
	fi_tinject(f.ep, all, 7, to, 7);
	fi_tsenddata(f.ep, all, 7, NULL, 9, to, 7, &a);
	fi_tinjectdata(f.ep, all, 7, 9, to, 7);
	for (size_t i = 0; i < LNX_ARRAY_SIZE(want); i++) {
		struct fake_sent *s = fake_take(f.core[0]);
		bool inject = strstr(want[i], "inject") != NULL;

		cr_assert_not_null(s);
		cr_expect_str_eq(s->call, want[i]);
		cr_expect_eq(s->len, 7);
		cr_expect_eq(memcmp(s->bytes, all, 7), 0);
		cr_expect_eq(s->tag, i < 6 ? 0 : 7);
		cr_expect_eq(s->context, inject ? NULL : &a);
		if (strstr(want[i], "data") || strstr(want[i], "sendmsg"))
			cr_expect_eq(s->data, 9);
		free(s);
		if (!inject)
			fake_comp(&f, &a);
	}
	fake_quiet(&f);
	fake_expect_none(&f);		/* nothing on the network */
	f.core[0]->send_fails = 1;
	cr_expect_eq(fi_tsend(f.ep, all, 7, NULL, to, 7, &b), 0);
	fake_err(&f, &b, FI_EIO);
	cr_expect_eq(f.lnx->stats.direct_sends, 13);
	fake_close(&f);
}

/* ---- direct rail: large messages are announced by control messages ---- */

static uint64_t cookie;

/* Longer than what is pushed. */
#define LARGE	40000

/* p's process is this one, which may read our memory. */
static fi_addr_t open_readable(size_t tx_size)
{
	fi_addr_t to = open_direct(tx_size);

	cookie = p.eid;
	force_process(inside(), getpid(), p.eid, &cookie);
	return to;
}

static struct lnx_wire_shm_ctrl take_ctrl(uint8_t kind)
{
	struct fake_sent *s = fake_take(f.core[0]);
	struct lnx_wire_shm_ctrl n;

	cr_assert_not_null(s);
	cr_assert_str_eq(s->call, "fi_tinject");
	cr_assert_eq(s->tag, LNX_SHM_CTRL_TAG);
	cr_assert_eq(s->len, LNX_SHM_CTRL_BYTES);
	cr_assert_eq(lnx_shm_ctrl_get(&n, s->bytes, p.eid), 0);
	cr_assert_eq(n.kind, kind);
	cr_assert_eq(n.src, f.lnx->eid);
	free(s);
	return n;
}

static void answer(const struct lnx_wire_shm_ctrl *n, int err)
{
	struct lnx_wire_shm_ctrl fin = {
		.src = p.eid, .dst = f.lnx->eid, .kind = LNX_KIND_FIN,
		.op = n->op, .len = (uint64_t)err,
		.to_low = n->to_low, .to_high = n->to_high, /* here both are this process */
	};
	uint8_t bytes[LNX_SHM_CTRL_BYTES];

	lnx_shm_ctrl_put(bytes, &fin);
	fake_direct(f.core[0], true, 0, LNX_SHM_CTRL_TAG, NULL, bytes, sizeof(bytes));
}

Test(tx_direct, large_sends_are_announced)
{
	static char big[LARGE + 10000];
	struct iovec iov[4] = { { big, LARGE - 1097 }, { big, 0 }, { big + 5, 1000 },
				{ big + 9, 97 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 4, .context = &a,
			    .data = 9 };
	fi_addr_t to = open_readable(0);
	struct lnx_wire_shm_ctrl n, two, stale;
	struct fake_sent *s;

	cr_assert_eq(fi_tsend(f.ep, big, 4096, NULL, to, 7, &a), 0);
	s = fake_take(f.core[0]);
	cr_expect_str_eq(s->call, "fi_tsend");
	free(s);
	fake_comp(&f, &a);

	cr_assert_eq(fi_tsend(f.ep, big, LARGE, NULL, to, 7, &a), 0);
	n = take_ctrl(LNX_KIND_RTS_TAG);
	cr_expect_eq(n.tag, 7);
	cr_expect_eq(n.len, LARGE);
	cr_expect_eq(n.flags, 0);
	cr_expect_eq(n.npiece, 1);
	cr_expect_eq(n.piece[0].addr, (uintptr_t)big);
	cr_expect_eq(n.pid, getpid());
	cr_expect_eq(n.to_low | n.to_high << 8, lnx_shm_ctrl_process(getpid()),
		     "the peer's process, which is this one");
	cr_expect_eq(*(uint64_t *)(uintptr_t)n.cookie, f.lnx->eid);
	m.addr = to;
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_REMOTE_CQ_DATA), 0);
	two = take_ctrl(LNX_KIND_RTS_MSG);
	cr_expect_eq(two.len, LARGE);
	cr_expect_eq(two.npiece, 3);
	cr_expect_eq(two.piece[1].addr, (uintptr_t)big + 5);
	cr_expect_eq(two.piece[2].len, 97);
	cr_expect_eq(two.flags, LNX_WIRE_F_DATA);
	cr_expect_eq(two.data, 9);
	/* The peer decides when and in which order they end. */
	fake_after_ms(&f, 1000);
	fake_quiet(&f);
	answer(&two, 0);
	cr_expect_eq(fake_comp(&f, &a).flags, FI_SEND | FI_MSG);
	answer(&two, 0);		/* again: no operation has that id */
	fake_quiet(&f);
	/* Of the process that had our name before: it had such a number, too. */
	stale = n;
	stale.to_low = (uint8_t)(stale.to_low + 1);
	answer(&stale, 0);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.stale_frames, 1);
	answer(&n, FI_ENOMEM);
	fake_err(&f, &a, FI_ENOMEM);
	fake_expect_none(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 1);
	cr_expect(view_none_announced(f.lnx));
	/* One that never ends: closing cancels it. */
	cr_assert_eq(fi_tsend(f.ep, big, LARGE, NULL, to, 7, &a), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	fake_close(&f);
}

/* One piece of a push, of size bytes, which begins at off. */
static struct lnx_wire_push take_push(size_t size, uint32_t off, const char *from)
{
	struct fake_sent *s = fake_take(f.core[0]);
	size_t room = lnx_wire_push_room(size, off);
	struct lnx_wire_push w = { 0 };

	cr_assert_not_null(s);
	cr_expect_str_eq(s->call, "fi_tsendmsg");
	cr_expect_eq(s->tag, LNX_SHM_CTRL_TAG);
	cr_expect(s->flags & FI_INJECT, "the core copies it");
	cr_assert_eq(s->len, size);
	cr_assert_eq(lnx_wire_push_get(&w, s->bytes, size, p.eid), 0);
	cr_expect_eq(w.src, f.lnx->eid);
	cr_expect_eq(w.off, off);
	cr_expect_eq(memcmp(s->bytes + size - room, from + off, LNX_MIN(room, 90u)), 0);
	free(s);
	return w;
}

Test(tx_direct, some_kib_are_pushed)
{
	static char big[9000];
	struct iovec iov[3] = { { big, 4100 }, { big + 4100, 0 }, { big + 4100, 4092 } };
	fi_addr_t to = open_readable(0);
	struct fi_msg m = { .msg_iov = iov, .iov_count = 3, .addr = to, .context = &b,
			    .data = 9 };
	struct fi_msg_tagged level = { .msg_iov = iov, .iov_count = 1, .addr = to,
				       .context = &b };
	struct lnx_wire_push one, two;

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 + i / 251);
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	one = take_push(LNX_PUSH_BYTES, 0, big);
	cr_expect_eq(one.kind, LNX_KIND_PART_TAG);
	cr_expect_eq(one.tag, 7);
	cr_expect_eq(one.len, 9000);
	cr_expect_eq(one.flags, 0);
	cr_expect_eq(one.to_low | one.to_high << 8, lnx_shm_ctrl_process(getpid()));
	cr_expect_eq(take_push(LNX_PUSH_BYTES, 4039, big).op, one.op);
	take_push(LNX_PUSH_BYTES, 8102, big);
	cr_expect_eq(fake_comp(&f, &a).flags, FI_SEND | FI_TAGGED, "it has left");
	fake_quiet(&f);
	/* A short rest; pieces of the application that do not end where ours do. */
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_REMOTE_CQ_DATA), 0);
	two = take_push(LNX_PUSH_BYTES, 0, big);
	cr_expect_eq(two.kind, LNX_KIND_PART_MSG);
	cr_expect_eq(two.data, 9);
	cr_expect_eq(two.flags, LNX_WIRE_F_DATA);
	cr_expect_eq(two.len, 8192);
	cr_expect_neq(two.op, one.op);
	take_push(LNX_PUSH_BYTES, 4039, big);
	take_push(LNX_PUSH_REST_BYTES, 8102, big);
	cr_expect_eq(fake_comp(&f, &b).flags, FI_SEND | FI_MSG);
	cr_expect_eq(f.lnx->stats.pushed_sends, 2);
	/* That it has left says too little. */
	cr_assert_eq(fi_tsendmsg(f.ep, &level, FI_COMPLETION | FI_TRANSMIT_COMPLETE), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	fake_close(&f);
}

Test(tx_direct, a_push_that_the_core_refuses_goes_on)
{
	static char big[9000];
	fi_addr_t to = open_readable(0);

	f.core[0]->send_again = FAKE_ALWAYS;
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	f.core[0]->send_again = 0;
	cr_expect_eq(f.lnx->stats.pushed_sends, 0);
	fake_close(&f);
}

/* The core takes one send, and then none. */
static void takes_one(void)
{
	static bool taken;

	if (taken)
		f.core[0]->send_again = FAKE_ALWAYS;
	taken = true;
}

/* Two that come at the same time could not be told apart. */
Test(tx_direct, nothing_is_pushed_while_part_of_a_push_waits)
{
	static char big[9000];
	fi_addr_t to = open_readable(0);
	struct lnx_wire_shm_ctrl n;

	f.core[0]->in_send = takes_one;
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	take_push(LNX_PUSH_BYTES, 0, big);
	fake_quiet(&f);			/* its buffer is in use */
	f.core[0]->in_send = NULL;
	f.core[0]->send_again = 0;
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 8, &b), 0);
	n = take_ctrl(LNX_KIND_RTS_TAG);
	cr_expect_eq(n.tag, 8);
	fake_pass(&f);
	take_push(LNX_PUSH_BYTES, 4039, big);
	take_push(LNX_PUSH_BYTES, 8102, big);
	cr_expect_eq(fake_comp(&f, &a).flags, FI_SEND | FI_TAGGED);
	answer(&n, 0);
	fake_comp(&f, &b);
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 9, &a), 0);
	take_push(LNX_PUSH_BYTES, 0, big);
	fake_close(&f);
}

Test(tx_direct, no_push_overtakes_what_waits)
{
	static char big[9000];
	fi_addr_t to = open_readable(0);
	struct fake_sent *s;

	f.core[0]->send_again = FAKE_ALWAYS;
	cr_assert_eq(fi_tsend(f.ep, "abc", 4, NULL, to, 1, &a), 0);
	f.core[0]->send_again = 0;
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 2, &b), 0);
	fake_comp(&f, &a);
	s = fake_take(f.core[0]);
	cr_assert_not_null(s);
	cr_expect_eq(s->tag, 1);
	free(s);
	take_ctrl(LNX_KIND_RTS_TAG);
	fake_close(&f);
}

static void push_one(const char *big, fi_addr_t to)
{
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	take_push(LNX_PUSH_BYTES, 0, big);
	take_push(LNX_PUSH_BYTES, 4039, big);
	take_push(LNX_PUSH_BYTES, 8102, big);
	fake_comp(&f, &a);
}

/* The limits are those of the manual: half of 128 KiB, and then all of it. */
Test(tx_direct, a_peer_that_does_not_answer_is_not_pushed_to)
{
	static char big[9000];
	fi_addr_t to = open_readable(0);
	struct lnx_wire_shm_ctrl asks;
	unsigned i;

	for (i = 0; i < 8; i++)
		push_one(big, to);
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &b), 0);
	asks = take_ctrl(LNX_KIND_RTS_TAG);
	for (; (i + 1) * 9000 <= 131072; i++)
		push_one(big, to);
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	cr_expect_eq(f.lnx->stats.pushed_sends, 14);
	/* The second half of them may not have come. */
	answer(&asks, 0);
	fake_comp(&f, &b);
	for (; (i + 1) * 9000 <= 8 * 9000 + 65536 + 9000; i++)
		push_one(big, to);
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	fake_close(&f);
}

static void drop_sent(void)
{
	struct fake_sent *s;

	while ((s = fake_take(f.core[0])))
		free(s);
}

/* So much was pushed that the next message asks whether it came; that it cannot be announced
 * says nothing of it. */
Test(tx_direct, an_announcement_that_fails_is_no_answer)
{
	static char big[9000];
	fi_addr_t to = open_readable(0);
	unsigned i;

	for (i = 0; i < 8; i++) {
		cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
		fake_comp(&f, &a);
	}
	cr_assert_eq(f.lnx->stats.pushed_sends, 8);
	drop_sent();
	f.core[0]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 100000 && !fi_tinject(f.ep, big, 8, to, 7); i++)
		;
	cr_assert_lt(i, 100000, "any number waits");
	cr_expect_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), -FI_EAGAIN);
	f.core[0]->inject_again = 0;
	fake_passes(&f, 10);
	drop_sent();
	cr_assert_eq(fi_tsend(f.ep, big, 9000, NULL, to, 7, &a), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	cr_expect_eq(f.lnx->stats.pushed_sends, 8);
	fake_close(&f);
}

static void push(uint32_t op, uint32_t off, uint32_t len, char fill)
{
	struct lnx_wire_push w = {
		.src = p.eid, .dst = f.lnx->eid, .op = op, .off = off, .tag = 5,
		.len = len, .kind = LNX_KIND_PART_TAG,
	};
	uint8_t bytes[LNX_PUSH_BYTES];
	size_t head = lnx_wire_push_put(bytes, &w);

	memset(bytes + head, fill, sizeof(bytes) - head);
	fake_direct(f.core[0], true, 0, LNX_SHM_CTRL_TAG, NULL, bytes, sizeof(bytes));
	fake_pass(&f);
}

/* It had been given up, and sent again: the first part of a message came and was discarded, so
 * that nothing refers to its sender, which may be freed before its end is noticed. */
Test(tx_direct, the_end_of_a_peer_ends_what_it_pushes)
{
	struct fi_msg_tagged m = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = &a };
	struct lnx_peer *peer;

	open_readable(0);
	peer = inside();
	lnx_lock(&f.lnx->lock);
	lnx_peer_happens(peer, LNX_LIFE_FAILED);
	lnx_unlock(&f.lnx->lock);
	push(1, 0, 9000, 'a');
	cr_assert_eq(fi_trecvmsg(f.ep, &m, FI_PEEK | FI_DISCARD), 0);
	fake_comp(&f, &a);
	cr_assert_eq(view_pushes(f.lnx), 1u);
	lnx_lock(&f.lnx->lock);
	lnx_peer_shm_forget(peer);
	lnx_peer_detach(peer);
	lnx_peers_reap(f.lnx, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(view_pushes(f.lnx), 0u, "it is looked for without end");
	fake_close(&f);
}

/* Only what comes next of the message that has begun is taken. */
Test(tx_direct, pushes_that_do_not_fit_are_dropped)
{
	static char in[9000];
	unsigned bad = 0;

	open_readable(0);
	cr_assert_eq(fi_trecv(f.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, &a), 0);
	push(1, 4039, 0, 'x');
	cr_expect_eq(f.lnx->stats.bad_frames, ++bad, "none has begun");
	fake_quiet(&f);
	push(1, 0, 9000, 'a');
	push(2, 4039, 0, 'x');
	cr_expect_eq(f.lnx->stats.bad_frames, ++bad, "another one's");
	push(1, 8102, 0, 'x');
	cr_expect_eq(f.lnx->stats.bad_frames, ++bad, "not yet");
	push(1, 4039, 0, 'b');
	push(1, 4039, 0, 'x');
	cr_expect_eq(f.lnx->stats.bad_frames, ++bad, "twice");
	fake_quiet(&f);
	push(1, 8102, 0, 'c');
	cr_expect_eq(fake_comp(&f, &a).len, 9000);
	cr_expect(in[0] == 'a' && in[4038] == 'a' && in[4039] == 'b' && in[8101] == 'b' &&
		  in[8102] == 'c' && in[8999] == 'c');
	push(1, 8102, 0, 'x');
	cr_expect_eq(f.lnx->stats.bad_frames, ++bad, "it is over");
	fake_quiet(&f);
	fake_close(&f);
}

/* Its sender could not go on; or has ended, and the next endpoint of its name counts from 1
 * again. */
Test(tx_direct, a_push_ends_one_that_was_given_up)
{
	static char in[9000];
	uint32_t op;

	open_readable(0);
	for (op = 1; op < 3; op++) {
		cr_assert_eq(fi_trecv(f.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, &a), 0);
		cr_assert_eq(fi_trecv(f.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, &b), 0);
		push(op, 0, 9000, 'x');
		push(1, 0, 9000, 'a');
		fake_err(&f, &a, FI_ECONNRESET);
		push(1, 4039, 0, 'b');
		push(1, 8102, 0, 'c');
		cr_expect_eq(fake_comp(&f, &b).len, 9000);
		cr_expect(in[0] == 'a' && in[4038] == 'a' && in[4039] == 'b' &&
			  in[8102] == 'c');
	}
	/* One that waits for its receive is forgotten. */
	push(1, 0, 9000, 'x');
	push(2, 0, 9000, 'a');
	push(2, 4039, 0, 'b');
	push(2, 8102, 0, 'x');
	cr_assert_eq(fi_trecv(f.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, &a), 0);
	cr_expect_eq(fake_comp(&f, &a).len, 9000);
	cr_expect(in[0] == 'a');
	cr_expect_eq(f.lnx->stats.bad_frames, 0);
	fake_quiet(&f);
	fake_close(&f);
}

Test(tx_direct, announcements_wait_in_order)
{
	static char big[5000];
	fi_addr_t to = open_readable(3);
	struct lnx_wire_shm_ctrl n;
	struct fake_sent *s;

	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	cr_assert_eq(fi_tsend(f.ep, "abc", 4, NULL, to, 1, &a), 0);
	cr_assert_eq(fi_tsend(f.ep, big, 5000, NULL, to, 2, &b), 0);
	f.core[0]->inject_again = 0;
	cr_assert_eq(fi_tinject(f.ep, "def", 4, to, 3), 0);
	cr_expect_eq(fi_tsend(f.ep, big, 5000, NULL, to, 4, &b), -FI_EAGAIN);
	cr_expect_null(f.core[0]->sent, "none overtakes");
	cr_expect_eq(view_announced(inside()), 1, "a refused send leaves nothing");
	f.core[0]->send_again = 0;
	fake_comp(&f, &a);
	s = fake_take(f.core[0]);
	cr_expect_eq(s->tag, 1);
	free(s);
	n = take_ctrl(LNX_KIND_RTS_TAG);
	cr_expect_eq(n.tag, 2);
	s = fake_take(f.core[0]);
	cr_expect_eq(s->tag, 3);
	free(s);
	answer(&n, 0);
	fake_comp(&f, &b);
	fake_quiet(&f);
	fake_close(&f);
}

Test(tx_direct, dead_receivers_are_noticed)
{
	static char big[LARGE];
	fi_addr_t to = open_readable(3);

	cr_assert_eq(fi_tsend(f.ep, big, LARGE, NULL, to, 2, &a), 0);
	take_ctrl(LNX_KIND_RTS_TAG);
	for (int i = 0; i < 10; i++)
		fake_after_ms(&f, 100);
	fake_quiet(&f);			/* it is only slow */
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	cr_assert_eq(fi_tsend(f.ep, big, 5000, NULL, to, 2, &b), 0);
	cookie = 0;
	fake_after_ms(&f, 150);
	fake_quiet(&f);			/* its last message may be on its way */
	for (int i = 0; i < 20; i++)
		fake_after_ms(&f, 20);
	fake_err(&f, &a, FI_ECONNRESET);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_quiet(&f);
	cr_expect_eq(view_announced(inside()), 0);
	cr_expect_eq(view_local_queued(inside()), 0);
	fake_close(&f);
}

Test(tx_direct, busy_core_queues_in_order)
{
	fi_addr_t to = open_direct(5);
	struct fake_sent *s;
	char buf[] = "abc";

	/* A short EAGAIN is waited for. */
	f.core[0]->send_again = 3;
	cr_expect_eq(fi_tsend(f.ep, buf, 4, NULL, to, 0, &a), 0);
	s = fake_take(f.core[0]);
	cr_assert_not_null(s);
	free(s);
	fake_comp(&f, &a);

	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	cr_expect_eq(fi_tsend(f.ep, "def", 4, NULL, to, 1, &a), 0);
	cr_expect_eq(fi_tinject(f.ep, buf, 4, to, 2), 0);
	strcpy(buf, "xyz");		/* it was copied */
	cr_expect_eq(fi_tinjectdata(f.ep, "ghi", 4, 9, to, 3), 0);
	f.core[0]->inject_again = 0;
	cr_expect_eq(fi_tinject(f.ep, "jkl", 4, to, 4), 0);
	cr_expect_null(f.core[0]->sent, "none overtakes");
	cr_expect_eq(fi_tsend(f.ep, "mno", 4, NULL, to, 5, &b), 0);
	cr_expect_eq(fi_tsend(f.ep, "pqr", 4, NULL, to, 6, &b), -FI_EAGAIN);
	cr_expect_eq(f.lnx->stats.direct_queued, 5u);
	cr_expect_eq(f.lnx->stats.queued, 0u, "no frames");
	fake_quiet(&f);
	f.core[0]->send_again = 0;
	fake_comp(&f, &a);
	fake_comp(&f, &b);
	for (uint64_t i = 1; i <= 5; i++) {
		static const char *const want[] = { "def", "abc", "ghi", "jkl",
						    "mno" };

		s = fake_take(f.core[0]);
		cr_assert_not_null(s);
		cr_expect_eq(s->tag, i);
		cr_expect_str_eq((char *)s->bytes, want[i - 1]);
		free(s);
	}
	cr_expect_eq(fi_tsend(f.ep, "stu", 4, NULL, to, 7, &b), 0);
	cr_expect_not_null(f.core[0]->sent, "sent directly again");
	fake_close(&f);
}

/* The peer dies while sends to it are queued: each ends with an error. */
Test(tx_direct, queued_for_a_peer_that_goes)
{
	fi_addr_t to = open_direct(5);

	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	cr_expect_eq(fi_tsend(f.ep, "abc", 4, NULL, to, 1, &a), 0);
	cr_expect_eq(fi_tinject(f.ep, "abc", 4, to, 1), 0);
	cr_expect_eq(fi_send(f.ep, "abc", 4, NULL, to, &b), 0);
	cr_expect_eq(fi_av_remove(f.av, &to, 1, 0), 0);
	fake_err(&f, &a, FI_EHOSTUNREACH);
	fake_err(&f, &b, FI_EHOSTUNREACH);
	fake_quiet(&f);
	fake_close(&f);
}

Test(tx_direct, close_with_sends_queued)
{
	fi_addr_t to = open_direct(5);

	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	cr_expect_eq(fi_tsend(f.ep, "abc", 4, NULL, to, 1, &a), 0);
	cr_expect_eq(fi_tinject(f.ep, "abc", 4, to, 1), 0);
	fake_close(&f);
}

/* The core accepts frames, and every one of them fails. */
BOTH(deadline_where_every_send_fails)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = &b };

	fake_conf.connect_timeout = 200;
	open_introduced(kind);
	m.addr = p.addr;
	core->send_fails = FAKE_ALWAYS;
	core->nsend = 0;
	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	for (int i = 0; i < 100; i++)
		fake_after_ms(&f, 10);
	fake_err(&f, &b, FI_ETIMEDOUT);
	fake_quiet(&f);
	cr_expect_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE),
		     -FI_EHOSTUNREACH);
	fake_close(&f);
}
