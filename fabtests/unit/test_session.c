/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions on a scripted core: how one begins, what belongs to none, how both ends
 * learn that one has ended, and what is freed then.  The test is the peer.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "comp/comp.h"
#include "fake_core.h"
#include "msg/tx.h"
#include "wire/atomic.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static uint8_t buf[1 << 12];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(session_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(session_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_with(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	fake_peer_insert(&f, &p);
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static ssize_t send1(void *context)
{
	return fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, context);
}

static void recv1(void *context)
{
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0,
			      context), 0);
}

/* p's next hello: of another session than before, if its id or stamp differ. */
static void hello(uint64_t sid, uint64_t stamp, uint64_t data)
{
	/* It has nothing of ours yet. */
	if (sid != p.sid)
		p.got = 0;
	p.sid = sid;
	p.seq = 0;
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = stamp,
					     .data = data },
		  p.blob, sizeof(p.blob));
	fake_passes(&f, 4);
}

/* Both know each other, and a message has gone each way. */
static void open_met(enum lnx_rail_kind kind)
{
	open_with(kind);
	hello(0x51, 100, 0);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_ack(&f, &p);
	recv1(&a);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &a);
	cr_assert_eq(send1(&a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	cr_assert_eq(view_rx_sid(inside()), 0x51u);
}

/* A send that is complete only when p has it. */
static void send_acked(void *context)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = p.addr,
			    .context = context };

	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
}

static void expect_refusal(uint64_t why, uint64_t to)
{
	struct fake_sent *s;

	fake_after_ms(&f, 3);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION);
	cr_expect_eq(s->h.tag, why);
	cr_expect_eq(s->h.dst, to);
	cr_expect_eq(s->h.src, f.lnx->eid);
	free(s);
}

/* Until the session of p, whose object that was, is freed. */
static void reap(void)
{
	int i;

	for (i = 0; i < 40; i++)
		fake_after_ms(&f, 500);
}

/* ---- beginning ---- */

/* What comes before the hello is not taken, and comes again after it. */
BOTH(nothing_before_the_hello)
{
	open_with(kind);
	recv1(&a);
	p.seq = 1;
	p.sid = 0x51;
	fake_tag(&f, &p, 1, "x", 1);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.stale_frames, 1);
	hello(0x51, 100, 0);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* Its hello may answer ours, which it names; one of an earlier session of ours not. */
BOTH(an_answer_names_our_session)
{
	open_with(kind);
	cr_assert_eq(send1(&a), 0);
	fake_comp(&f, &a);
	hello(0x51, 100, view_sid(inside()) ^ 1);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	fake_drop_all(&f, &p);
	hello(0x51, 100, view_sid(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	fake_close(&f);
}

static unsigned port_used(void)
{
	struct sockaddr_in in;

	memcpy(&in, core->av_name[view_core_addr(view_path(inside(), 0))], sizeof(in));
	return ntohs(in.sin_port);
}

/* p's rail moves; its next hellos say so. */
static void move(unsigned port)
{
	struct sockaddr_in in;

	memcpy(&in, p.where.rail[0].raw, sizeof(in));
	in.sin_port = htons((uint16_t)port);
	memcpy(p.where.rail[0].raw, &in, sizeof(in));
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
}

/* Which end of a session it is may be in doubt: not, where it is.  Our hello would not reach
 * it elsewhere, and so its own would be in doubt for ever. */
BOTH(a_hello_in_doubt_says_where_it_is)
{
	open_with(kind);
	cr_assert_eq(send1(&a), 0);
	fake_comp(&f, &a);
	move(7001);
	hello(0x51, 100, view_sid(inside()) ^ 1);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	cr_expect_eq(port_used(), 7001u);
	hello(0x51, 100, view_sid(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	fake_close(&f);
}

/* The receiver of our acknowledgements has to know whose they are. */
BOTH(our_hello_comes_before_the_first_ack)
{
	open_with(kind);
	recv1(&a);
	hello(0x51, 100, 0);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &a);
	fake_after_ms(&f, 5);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	fake_close(&f);
}

/* ---- another session ---- */

/* It was started again under its name: what it had not acknowledged fails, once, and
 * both directions begin at 0. */
BOTH(a_peer_that_begins_again)
{
	uint64_t sid;

	open_met(kind);
	sid = view_sid(inside());
	send_acked(&b);
	fake_expect_drop(&f, &p, LNX_KIND_MSG);
	hello(0x52, 200, 0);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_quiet(&f);
	cr_expect_neq(view_sid(inside()), sid);
	cr_expect_eq(view_rx_sid(inside()), 0x52u);
	recv1(&a);
	fake_tag(&f, &p, 1, "y", 1);
	fake_comp(&f, &a);
	cr_expect_eq(buf[0], 'y');
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	cr_assert_eq(send1(&a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	reap();
	cr_expect_eq(view_peers(f.lnx), 1u);
	cr_expect(view_none_ended(f.lnx));
	fake_close(&f);
}

/* Frames of the session before, which were long under way. */
BOTH(late_frames_are_of_no_session)
{
	open_met(kind);
	hello(0x52, 200, 0);
	fake_drop_all(&f, &p);
	recv1(&a);
	p.sid = 0x51;
	p.seq = 1;
	fake_tag(&f, &p, 1, "o", 1);
	p.seq = 2;
	fake_tag(&f, &p, 1, "o", 1);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = 1 },
		   NULL, 0);
	fake_quiet(&f);
	p.sid = 0x52;
	p.seq = 1;
	fake_tag(&f, &p, 1, "n", 1);
	fake_comp(&f, &a);
	cr_expect_eq(buf[0], 'n');
	fake_close(&f);
}

/* A hello that comes late, or again, ends nothing; and its sender, whose clock may have
 * gone back, hears what is later. */
BOTH(an_older_hello_ends_nothing)
{
	uint64_t sid;

	open_met(kind);
	sid = view_sid(inside());
	send_acked(&b);
	fake_drop_all(&f, &p);
	hello(0x50, 99, 0);
	expect_refusal(LNX_REFUSED_OLD, 0x50);
	hello(0x50, 100, 0);
	expect_refusal(LNX_REFUSED_OLD, 0x50);
	cr_expect_eq(view_sid(inside()), sid);
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	p.sid = 0x51;
	p.got = view_next(inside());
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	cr_expect(lnx_peer_open(inside()));
	fake_close(&f);
}

/* ... and takes a later stamp for its own. */
BOTH(our_clock_went_back)
{
	struct fake_sent *s;
	uint64_t stamp, sid;

	open_with(kind);
	cr_assert_eq(send1(&a), 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	stamp = view_began(inside());
	sid = view_sid(inside());
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .dst = sid,
		   .tag = LNX_REFUSED_OLD, .data = stamp + 1000 }, NULL, 0);
	fake_passes(&f, 2);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_HELLO);
	cr_expect_eq(s->h.src, sid);
	cr_expect_eq(s->h.tag, stamp + 1001);
	free(s);
	fake_close(&f);
}

/* ---- end ---- */

/* What a process sends that has no part in the session ends nothing. */
BOTH(forged_ends)
{
	static const uint8_t kind_of[] = {
		LNX_KIND_BYE, LNX_KIND_ACK, LNX_KIND_PROBE, LNX_KIND_FIN,
		LNX_KIND_RAIL, LNX_KIND_PONG,
	};
	unsigned i, k;

	open_met(kind);
	send_acked(&b);
	fake_drop_all(&f, &p);
	for (i = 0; i < LNX_ARRAY_SIZE(kind_of); i++)
		for (k = 0; k < 4; k++) {
			struct lnx_hdr h = {
				.kind = kind_of[i], .seq = k < 2 ? p.seq : k,
				.src = k % 2 ? p.eid : 0x51 ^ k ^ 1,
				.ack = 1000,
			};

			fake_frame(&f, &p, h, NULL, 0);
		}
	for (i = 0; i < 5; i++)
		fake_frame(&f, &p, (struct lnx_hdr) {
			   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .tag = i,
			   .dst = i % 2 ? f.lnx->eid : 0x51 }, NULL, 0);
	fake_quiet(&f);
	cr_expect(lnx_peer_open(inside()));
	fake_drop_all(&f, &p);
	p.got = view_next(inside());
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	fake_close(&f);
}

/* The peer has ended the session: what is due fails once; the next send begins another
 * at once, since it lives. */
BOTH(refused_by_the_peer)
{
	uint64_t sid;

	open_met(kind);
	sid = view_sid(inside());
	send_acked(&b);
	fake_drop_all(&f, &p);
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .dst = sid,
		   .tag = LNX_REFUSED_ENDED, .data = 1 }, NULL, 0);
	fake_pass(&f);
	fake_err(&f, &b, FI_ECONNRESET);
	cr_assert_eq(send1(&a), 0);
	cr_expect_neq(view_sid(inside()), sid);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	hello(0x52, 200, view_sid(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x52u);
	fake_close(&f);
}

/* The same with nothing due: there is nothing to fail. */
BOTH(refused_with_nothing_due)
{
	uint64_t sid;

	open_met(kind);
	sid = view_sid(inside());
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .dst = sid,
		   .tag = LNX_REFUSED_ENDED, .data = 1 }, NULL, 0);
	fake_passes(&f, 2);
	fake_quiet(&f);
	cr_assert_eq(send1(&a), 0);
	cr_expect_neq(view_sid(inside()), sid);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* It refused a frame that left before our HELLO, had that meanwhile, and has answered it. */
BOTH(a_refusal_that_is_late_ends_nothing)
{
	open_met(kind);
	send_acked(&b);
	fake_drop_all(&f, &p);
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .dst = view_sid(inside()),
		   .tag = LNX_REFUSED_ENDED }, NULL, 0);
	fake_quiet(&f);
	cr_expect(lnx_peer_open(inside()));
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	fake_close(&f);
}

/* ... and what we would have refused, but for the HELLO right behind it, we do not. */
BOTH(a_hello_right_behind_a_probe)
{
	open_with(kind);
	p.sid = 0x51;
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_PROBE, .tag = 1 },
		   p.blob, sizeof(p.blob));
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = 100 },
		  p.blob, sizeof(p.blob));
	fake_after_ms(&f, 30);
	fake_after_ms(&f, 30);
	cr_expect_eq(f.lnx->stats.stale_frames, 1u);
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_none(&f);
	fake_close(&f);
}

/* A stranger's HELLO, which is not applied yet, and a request right behind it. */
static void stranger_asks(void)
{
	struct lnx_atomic at = {
		.op = FI_ATOMIC_READ, .type = FI_UINT64, .cls = 1, .nseg = 1, .size = 8,
		.count = 1, .seg = { { 0, 7, 1 } },
	};
	static uint8_t payload[LNX_PAYLOAD_MAX];

	core->in_inject = NULL;
	lnx_atomic_put(payload, &at);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = 100 },
		  p.blob, sizeof(p.blob));
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_ATOMIC, .data = 78,
					     .len = lnx_atomic_size(&at) },
		  payload, lnx_atomic_size(&at));
}

/* They come while the first of two frames for other peers is posted. That the stranger has no path so far
 * does not mean that none works. */
Test(session_peer, asked_before_its_hello_is_applied)
{
	struct fake_opt opt = {
		.nrail = 1, .kind = { LNX_RAIL_PEER }, .inject_size = 8192,
	};
	struct fake_peer q, r;
	struct fake_sent *s;
	unsigned i;

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	p.sid = 0x51;
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &q);
	fake_meet(&f, &q);
	fake_peer_init(&f, &r, 0x3333);
	fake_peer_insert(&f, &r);
	fake_meet(&f, &r);
	core->inject_again = 2;
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, q.addr, 1, &a), 0);
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, r.addr, 1, &b), 0);
	core->in_inject = stranger_asks;
	for (i = 0; i < 20 && core->in_inject; i++)
		fake_after_ms(&f, 1);
	cr_assert_null(core->in_inject);
	fake_comp(&f, &a);
	fake_comp(&f, &b);
	fake_expect_drop(&f, &q, LNX_KIND_TAG);
	fake_expect_drop(&f, &r, LNX_KIND_TAG);
	fake_after_ms(&f, 20);
	fake_after_ms(&f, 20);
	cr_assert(lnx_peer_open(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	s = fake_expect(&f, &p, LNX_KIND_RESP);
	cr_expect_eq(s->h.data, 78u);
	free(s);
	fake_ack(&f, &p);
	fake_ack(&f, &q);
	fake_ack(&f, &r);
	fake_close(&f);
}

/* There is no room for us there: we ask again and again, and not more and more rarely. */
BOTH(no_room_yet)
{
	unsigned i, n = 0;

	open_with(kind);
	send_acked(&b);
	for (i = 0; i < 600; i++) {
		struct fake_sent *s;

		fake_after_ms(&f, 100);
		while ((s = fake_take(core))) {
			if (s->h.kind == LNX_KIND_HELLO) {
				n++;
				fake_frame(&f, &p, (struct lnx_hdr) {
					.kind = LNX_KIND_NO_SESSION, .src = p.eid,
					.dst = s->h.src, .tag = LNX_REFUSED_FULL },
					NULL, 0);
			}
			free(s);
		}
	}
	cr_expect(lnx_peer_open(inside()));
	cr_expect_geq(n, 50u);
	cr_expect_leq(n, 130u);
	fake_close(&f);
}

/* We gave the peer up.  Whatever it sends, it hears that; it may begin again. */
BOTH(given_up)
{
	uint64_t sid;
	unsigned i;

	fake_conf.connect_timeout = 200;
	open_met(kind);
	sid = view_sid(inside());
	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(&b);
	for (i = 0; i < 10; i++)
		fake_after_ms(&f, 100);
	fake_err(&f, &b, FI_ETIMEDOUT);
	core->send_again = core->inject_again = 0;
	fake_drop_all(&f, &p);
	recv1(&a);
	fake_tag(&f, &p, 1, "x", 1);
	fake_quiet(&f);
	expect_refusal(LNX_REFUSED_ENDED, 0x51);
	fake_after_ms(&f, 20);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_PROBE, .tag = 1 },
		   NULL, 0);
	expect_refusal(LNX_REFUSED_ENDED, 0x51);
	/* It does so. */
	hello(0x52, 200, 0);
	cr_expect_neq(view_sid(inside()), sid);
	fake_tag(&f, &p, 1, "y", 1);
	fake_comp(&f, &a);
	cr_expect_eq(buf[0], 'y');
	fake_close(&f);
}

/* Or we do, but not at once: each send would wait for its connection. */
BOTH(given_up_and_tried_again)
{
	uint64_t sid;
	unsigned i;

	fake_conf.connect_timeout = 200;
	open_met(kind);
	sid = view_sid(inside());
	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(&b);
	for (i = 0; i < 100 && !lnx_peer_dead(inside()); i++)
		fake_after_ms(&f, 10);
	fake_err(&f, &b, FI_ETIMEDOUT);
	core->send_again = core->inject_again = 0;
	cr_expect_eq(send1(&a), -FI_EHOSTUNREACH);
	fake_after_ms(&f, 1100);
	cr_assert_eq(send1(&a), 0);
	cr_expect_neq(view_sid(inside()), sid);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* ---- memory ---- */

/*
 * A peer that was used and is idle.  Everything is counted that is allocated for it, but
 * for the fake core's own memory.
 */
BOTH(an_idle_peer_is_small)
{
	enum { PEERS = 256 };
	static struct fake_peer q[PEERS];
	struct mallinfo2 before, after;
	unsigned i, made = 0;

	/* A sanitizer's allocator does not count. */
	free(malloc(100));
	if (!mallinfo2().uordblks)
		cr_skip("this allocator does not count");
	open_met(kind);
	for (i = 0; i < PEERS; i++) {
		fake_peer_init(&f, &q[i], 0x10000 + i);
		fake_peer_insert(&f, &q[i]);
	}
	before = mallinfo2();
	for (i = 0; i < PEERS; i++) {
		fake_hello(&f, &q[i]);
		cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, q[i].addr, 1, &a), 0);
		fake_comp(&f, &a);
		q[i].got = view_next(lnx_peer_by_eid(f.lnx, q[i].eid));
		fake_ack(&f, &q[i]);
		fake_passes(&f, 2);
		while (core->sent)
			free(fake_take(core));
		made += view_acked(lnx_peer_by_eid(f.lnx, q[i].eid)) == 2;
	}
	after = mallinfo2();
	cr_expect_eq(made, PEERS);
	cr_expect_leq((after.uordblks - before.uordblks) / PEERS, 1536u,
		      "%zu bytes a peer",
		      (after.uordblks - before.uordblks) / PEERS);
	fake_close(&f);
}

/* Senders that come, say something and go: one by one any number. */
BOTH(many_lifetimes)
{
	struct fake_peer q;
	unsigned i;

	fake_conf.unsolicited_peers = 8;
	open_with(kind);
	for (i = 0; i < 200; i++) {
		fake_peer_init(&f, &q, 0x10000 + i);
		q.must_greet = true;
		recv1(&a);
		fake_hello(&f, &q);
		fake_tag(&f, &q, 1, "x", 1);
		fake_comp(&f, &a);
		fake_passes(&f, 2);
		fake_frame(&f, &q, (struct lnx_hdr) { .kind = LNX_KIND_BYE,
						      .seq = q.seq }, NULL, 0);
		fake_after_ms(&f, 600);
		fake_after_ms(&f, 600);
		while (core->sent)
			free(fake_take(core));
	}
	reap();
	cr_expect_eq(view_unsolicited(f.lnx), 0u);
	cr_expect_eq(f.lnx->stats.unsolicited_drops, 0u);
	cr_expect_leq(view_peers(f.lnx), 1u);
	cr_expect(view_none_ended(f.lnx));
	fake_close(&f);
}

/* What came early of a session that ended: its buffers and its share of the limit come
 * back, so that no later peer runs out of them. */
BOTH(early_frames_of_ended_sessions)
{
	struct fake_peer q;
	unsigned i, k;

	open_met(kind);
	for (i = 0; i < 200; i++) {
		fake_peer_init(&f, &q, 0x10000 + i);
		q.must_greet = true;
		fake_hello(&f, &q);
		for (k = 1; k <= 10; k++)
			fake_frame(&f, &q, (struct lnx_hdr) {
				   .kind = LNX_KIND_TAG, .seq = q.seq + k,
				   .tag = 9, .len = 1 }, "x", 1);
		fake_passes(&f, 4);
		cr_assert_gt(view_ooo_bytes(f.lnx), 0);
		fake_frame(&f, &q, (struct lnx_hdr) { .kind = LNX_KIND_BYE,
						      .seq = q.seq }, NULL, 0);
		fake_passes(&f, 2);
		cr_assert_eq(view_ooo_bytes(f.lnx), 0);
		fake_drop_all(&f, &q);
	}
	reap();
	cr_expect_eq(f.lnx->stats.ooo_drops, 0u);
	recv1(&a);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &a);
	while (core->sent)
		free(fake_take(core));
	fake_close(&f);
}

/* A message of an ended session is still there for its receive. */
BOTH(stored_messages_outlive_their_session)
{
	open_met(kind);
	fake_tag(&f, &p, 1, "o", 1);
	fake_passes(&f, 2);
	hello(0x52, 200, 0);
	fake_tag(&f, &p, 1, "n", 1);
	reap();
	recv1(&a);
	fake_comp(&f, &a);
	cr_expect_eq(buf[0], 'o');
	recv1(&b);
	fake_comp(&f, &b);
	cr_expect_eq(buf[0], 'n');
	reap();
	cr_expect(view_none_ended(f.lnx));
	fake_close(&f);
}

/*
 * A process that is in no AV stops after its first messages, and no acknowledgement reaches
 * it.  When it goes on, this end has given it up and forgotten it long ago.  What it sends
 * again must not be delivered again; it hears that the session has ended.
 */
BOTH(a_forgotten_session_does_not_begin_again)
{
	struct fake_peer q;
	unsigned i;

	open_met(kind);
	fake_drop_all(&f, &p);
	fake_peer_init(&f, &q, 0x2222);
	q.must_greet = true;
	q.sid = 0x77;
	for (i = 0; i < 2; i++) {
		q.seq = 0;
		recv1(&b);
		fake_hello(&f, &q);
		fake_tag(&f, &q, 1, "x", 1);
		if (i)
			break;
		fake_comp(&f, &b);
		lnx_lock(&f.lnx->lock);
		lnx_rel_peer_failed(lnx_peer_by_eid(f.lnx, q.eid), FI_ETIMEDOUT);
		lnx_unlock(&f.lnx->lock);
		reap();
		cr_assert_null(lnx_peer_by_eid(f.lnx, q.eid));
		while (core->sent)
			free(fake_take(core));
	}
	expect_refusal(LNX_REFUSED_ENDED, 0x77);
	fake_quiet(&f);
	/* A later session of the same process does. */
	q.sid = 0x78;
	q.seq = 0;
	fake_next(&f, &q, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = 2 },
		  q.blob, sizeof(q.blob));
	fake_tag(&f, &q, 1, "y", 1);
	fake_comp(&f, &b);
	cr_expect_eq(buf[0], 'y');
	fake_close(&f);
}

/* Another endpoint has the address of one of its rails, and the peer lives at the other. */
static void refuse_path(unsigned path)
{
	fake_frame(&f, &p, (struct lnx_hdr) {
		.kind = LNX_KIND_NO_SESSION, .tag = LNX_REFUSED_ENDPOINT,
		.src = p.eid, .dst = view_sid(inside()), .key = path,
	}, NULL, 0);
	fake_passes(&f, 4);
}

static void meet_two_rails(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	p.where.rail[1] = p.where.rail[0];
	p.where.rail[1].raw[3] ^= 1;		/* port */
	p.where.nrail = 2;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_peer_insert(&f, &p);
	hello(0x51, 100, 0);
	fake_drop_all(&f, &p);
	p.got = view_next(inside());
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	cr_assert_eq(view_npath(inside()), 2u);
}

BOTH(one_of_two_remote_rails_is_another_endpoint)
{
	meet_two_rails(kind);
	refuse_path(1);
	cr_expect(!lnx_peer_dead(inside()));
	/* Over a path that there is not. */
	refuse_path(3);
	cr_expect(!lnx_peer_dead(inside()));
	refuse_path(2);
	fake_passes(&f, 4);
	cr_expect(lnx_peer_dead(inside()));
	fake_close(&f);
}

/* What was told of one path long ago, perhaps about an address that it had before, does not count
 * any more when the peer has answered there. */
BOTH(the_peer_is_where_it_answers)
{
	unsigned i, k, answered = 0;

	meet_two_rails(kind);
	refuse_path(1);
	for (i = 0; i < 200 && !answered; i++) {
		core->nlatency = 0;
		cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
		fake_after_ms(&f, 5);
		fake_drop_all(&f, &p);
		fake_ack(&f, &p);
		for (k = 0; k < core->nlatency && core->latencies[k].tag != 1; k++)
			;
		if (k == core->nlatency)
			continue;
		fake_frame(&f, &p, (struct lnx_hdr) {
			.kind = LNX_KIND_PONG, .tag = 1, .data = core->latencies[k].data,
		}, NULL, 0);
		answered++;
	}
	cr_assert(answered);
	fake_passes(&f, 4);
	refuse_path(2);
	cr_expect(!lnx_peer_dead(inside()));
	refuse_path(1);
	cr_expect(lnx_peer_dead(inside()));
	fake_close(&f);
}

/* Its rail has moved, and then comes what was said of the old address: it lives at the new one.
 * Only what is said of that, or does not say of which, counts. */
static void refuse_port(unsigned port)
{
	fake_frame(&f, &p, (struct lnx_hdr) {
		.kind = LNX_KIND_NO_SESSION, .tag = LNX_REFUSED_ENDPOINT,
		.src = p.eid, .dst = view_sid(inside()), .key = 1, .data = port,
	}, NULL, 0);
	fake_passes(&f, 4);
}

BOTH(a_refusal_of_the_old_address_comes_late)
{
	unsigned before;

	open_met(kind);
	before = port_used();
	move(7001);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .key = 2 }, p.blob,
		  sizeof(p.blob));
	fake_passes(&f, 4);
	cr_assert_eq(port_used(), 7001u);
	cr_assert_neq(before, 7001u);
	refuse_port(before);
	cr_expect(!lnx_peer_dead(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	refuse_port(7001);
	cr_expect(lnx_peer_dead(inside()));
	fake_close(&f);
}

/*
 * A process asks over all its paths at once, and must hear of each that there is another
 * endpoint: until then it waits.  So too when it cannot show a job key; but then it is not told
 * as often as it asks.
 */
static void asks_everywhere(enum lnx_rail_kind kind, unsigned told)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .src = 0x51, .dst = 0x999,
	};
	unsigned n, paths = 0;
	struct fake_sent *s;

	open_with(kind);
	for (n = 0; n < LNX_PATHS_MAX; n++) {
		h.path = (uint8_t)n;
		fake_frame(&f, &p, h, p.blob, sizeof(p.blob));
	}
	fake_after_ms(&f, 3);
	while ((s = core->sent ? fake_take(core) : NULL)) {
		cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION);
		cr_expect_eq(s->h.tag, LNX_REFUSED_ENDPOINT);
		paths |= 1u << (s->h.key - 1);
		free(s);
	}
	cr_expect_eq(paths, (1u << LNX_PATHS_MAX) - 1);
	/* Again, at once. */
	for (n = 0; n < LNX_PATHS_MAX; n++) {
		h.path = (uint8_t)n;
		fake_frame(&f, &p, h, p.blob, sizeof(p.blob));
	}
	fake_after_ms(&f, 3);
	for (n = 0; core->sent; n++)
		free(fake_take(core));
	cr_expect_leq(n, told);
	fake_close(&f);
}

BOTH(all_paths_are_refused)
{
	asks_everywhere(kind, LNX_PATHS_MAX);
}

BOTH(all_paths_are_refused_with_a_job_key)
{
#ifndef HAVE_SODIUM
	cr_skip("built without libsodium");
#endif
	fake_conf.job_key = "a key that is long enough";
	asks_everywhere(kind, 1);
	fake_conf.job_key = NULL;
}

/* A refusal says which path the refused frame took, and which port it was sent to. */
BOTH(the_refusal_names_the_path)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_HELLO, .tag = 5, .path = 3, .dst = 0x999,
	};
	struct fake_sent *s;

	open_with(kind);
	fake_frame(&f, &p, h, p.blob, sizeof(p.blob));
	fake_after_ms(&f, 3);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION);
	cr_expect_eq(s->h.tag, LNX_REFUSED_ENDPOINT);
	cr_expect_eq(s->h.key, 4u);
	cr_expect_eq(s->h.data, core->port);
	free(s);
	fake_close(&f);
}
