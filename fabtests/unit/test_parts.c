/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving messages in several frames, on a scripted core: the test is the sender, also a
 * hostile one.  Sending them is in test_parts_send.c, and what lost paths make of both in
 * test_fail_random.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fake_core.h"
#include "view.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static uint8_t buf[1 << 20], mem[1 << 20];
static uint64_t granted, spent;		/* credit that the test has */

/* Frames of a message of LEN bytes; they differ in length. */
#define LEN	120000u
#define FIRST	50000u
#define SECOND	40001u
#define THIRD	(LEN - FIRST - SECOND)

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(parts_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(parts_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static void recv_any(void *to, size_t len, void *context)
{
	cr_assert_eq(fi_trecv(f.ep, to, len, NULL, FI_ADDR_UNSPEC, 0, ~0ull,
			      context), 0);
}

/* The FIN of a message that was read grants the first credit. */
static void open_met(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind[0] = kind };
	struct fake_sent *s;
	uint64_t len = 50000;

	fake_rxm_buffer = LNX_FRAME_LARGE;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	fake_meet(&f, &p);
	recv_any(buf, len, &b);
	fake_rts(&f, &p, true, 0, 77, mem, &len, 1);
	fake_comp(&f, &b);
	s = fake_expect(&f, &p, LNX_KIND_FIN);
	granted = s->h.key;
	spent = 0;
	free(s);
	fake_ack(&f, &p);
	core->nregion = 0;
	memset(buf, 0xee, sizeof(buf));
	cr_assert_geq(granted, 2 * LEN);
	cr_assert_eq(view_exposure(f.lnx), granted);
}

static void part(bool tagged, uint64_t tag, uint64_t len, size_t n)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = tagged ? LNX_KIND_PART_TAG :
		  LNX_KIND_PART_MSG, .flags = LNX_WIRE_F_DATA, .data = 99,
		  .tag = tag, .len = len }, mem, n);
	spent += n;
}

static void more(size_t at, size_t n)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_MORE, .tag = at,
		  .len = n }, mem + at, n);
	spent += n;
}

static void message(bool tagged, uint64_t tag)
{
	part(tagged, tag, LEN, FIRST);
	more(FIRST, SECOND);
	more(FIRST + SECOND, THIRD);
}

static void expect_whole(void *context, uint64_t tag)
{
	struct fi_cq_tagged_entry e = fake_comp(&f, context);

	cr_expect_eq(e.len, LEN);
	cr_expect_eq(e.tag, tag);
	cr_expect_eq(e.data, 99);
	cr_expect_eq(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	cr_expect(!memcmp(buf, mem, LEN), "altered");
	cr_expect_eq(buf[LEN], 0xee, "wrote behind it");
}

/* Nothing is left over; exposure is what was granted and has not come. */
static void expect_nothing_stored(void)
{
	struct fake_sent *s;

	fake_pass(&f);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	cr_expect_eq(view_rxbufs(f.lnx), (size_t)f.lnx->rail[0]->nposted);
	/* Acknowledgements may have granted more meanwhile. */
	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_ACK && s->len > sizeof(struct lnx_wire_hdr))
			granted = lnx_wire_credit_get(s->bytes + sizeof(struct lnx_wire_hdr),
						      s->len - sizeof(struct lnx_wire_hdr));
		free(s);
	}
	cr_expect_eq(view_exposure(f.lnx), granted - spent);
}

BOTH(into_a_receive)
{
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	part(true, 5, LEN, FIRST);
	fake_quiet(&f);
	more(FIRST, SECOND);
	fake_quiet(&f);
	cr_expect(!memcmp(buf, mem, FIRST + SECOND), "copied as it comes");
	/* Until then nothing else has the receive. */
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), -FI_ENOENT);
	more(FIRST + SECOND, THIRD);
	expect_whole(&a, 5);
	cr_expect_eq(f.lnx->stats.matched, 2u);
	expect_nothing_stored();
	fake_close(&f);
}

BOTH(into_pieces)
{
	struct iovec iov[3] = { { buf, 10 }, { buf + 100, 60000 }, { buf + 70000, LEN } };

	open_met(kind);
	cr_assert_eq(fi_recvv(f.ep, iov, NULL, 3, FI_ADDR_UNSPEC, &a), 0);
	message(false, 0);
	cr_expect_eq(fake_comp(&f, &a).len, LEN);
	cr_expect(!memcmp(buf, mem, 10));
	cr_expect(!memcmp(buf + 100, mem + 10, 60000));
	cr_expect(!memcmp(buf + 70000, mem + 60010, LEN - 60010));
	expect_nothing_stored();
	fake_close(&f);
}

/* The receive comes after so many frames. */
BOTH(unexpected)
{
	for (unsigned n = 1; n <= 3; n++) {
		open_met(kind);
		part(true, 5, LEN, FIRST);
		if (n > 1)
			more(FIRST, SECOND);
		if (n > 2)
			more(FIRST + SECOND, THIRD);
		fake_quiet(&f);
		cr_expect_eq(f.lnx->stats.unexpected, 1u);
		recv_any(buf, sizeof(buf), &a);
		if (n < 2)
			more(FIRST, SECOND);
		if (n < 3) {
			fake_quiet(&f);
			more(FIRST + SECOND, THIRD);
		}
		expect_whole(&a, 5);
		expect_nothing_stored();
		fake_close_quick(&f);
	}
}

BOTH(order_of_messages)
{
	open_met(kind);
	message(true, 5);
	fake_tag(&f, &p, 5, mem, 8);
	fake_passes(&f, 4);
	recv_any(buf, sizeof(buf), &a);
	recv_any(buf + LEN + 1, 8, &b);
	expect_whole(&a, 5);
	cr_expect_eq(fake_comp(&f, &b).len, 8);
	expect_nothing_stored();
	fake_close(&f);
}

static void truncated(enum lnx_rail_kind kind, bool late, size_t room)
{
	struct fi_cq_err_entry e;

	open_met(kind);
	if (!late)
		recv_any(buf, room, &a);
	message(true, 5);
	if (late) {
		fake_quiet(&f);
		recv_any(buf, room, &a);
	}
	e = fake_err(&f, &a, FI_ETRUNC);
	cr_expect_eq(e.len, room);
	cr_expect_eq(e.olen, LEN - room);
	cr_expect(!memcmp(buf, mem, room));
	cr_expect_eq(buf[room], 0xee);
	expect_nothing_stored();
	fake_close(&f);
}

BOTH(truncated_in_the_first) { truncated(kind, false, 100); }
BOTH(truncated_in_the_second) { truncated(kind, false, FIRST + 1); }
BOTH(truncated_to_nothing) { truncated(kind, false, 0); }
BOTH(truncated_later) { truncated(kind, true, FIRST + 1); }

static ssize_t special(uint64_t flags, void *to, size_t len, struct fi_context *ctx)
{
	struct iovec iov = { to, len };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .ignore = ~0ull,
		.context = ctx,
	};

	return fi_trecvmsg(f.ep, &m, flags);
}

BOTH(claimed)
{
	struct fi_context ctx;

	for (unsigned n = 0; n < 2; n++) {
		open_met(kind);
		part(true, 5, LEN, FIRST);
		fake_passes(&f, 2);
		cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
		cr_expect_eq(fake_comp(&f, &ctx).len, LEN);
		more(FIRST, SECOND);
		if (n)
			more(FIRST + SECOND, THIRD);
		fake_quiet(&f);
		cr_assert_eq(special(FI_CLAIM, buf, sizeof(buf), &ctx), 0);
		if (!n) {
			fake_quiet(&f);
			more(FIRST + SECOND, THIRD);
		}
		expect_whole(&ctx, 5);
		expect_nothing_stored();
		fake_close_quick(&f);
	}
}

/* What still comes is dropped, and the next message is whole. */
BOTH(discarded)
{
	struct fi_context ctx;

	open_met(kind);
	part(true, 5, LEN, FIRST);
	fake_passes(&f, 2);
	cr_assert_eq(special(FI_PEEK | FI_DISCARD, NULL, 0, &ctx), 0);
	cr_expect_eq(fake_comp(&f, &ctx).len, LEN);
	more(FIRST, SECOND);
	more(FIRST + SECOND, THIRD);
	fake_passes(&f, 3);
	recv_any(buf, sizeof(buf), &a);
	message(true, 6);
	expect_whole(&a, 6);
	expect_nothing_stored();
	fake_close(&f);
}

BOTH(multi_receive)
{
	struct iovec iov = { buf, 2 * LEN };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
			    .context = &a };
	struct fi_cq_tagged_entry e;

	open_met(kind);
	cr_assert_eq(fi_recvmsg(f.ep, &m, FI_MULTI_RECV), 0);
	message(false, 0);
	cr_expect_eq(fake_comp(&f, &a).buf, buf);
	part(false, 0, LEN, FIRST);
	fake_quiet(&f);
	more(FIRST, SECOND);
	more(FIRST + SECOND, THIRD);
	e = fake_comp(&f, &a);
	cr_expect_eq(e.buf, buf + LEN);
	cr_expect(e.flags & FI_MULTI_RECV);
	cr_expect(!memcmp(buf, mem, LEN));
	cr_expect(!memcmp(buf + LEN, mem, LEN));
	expect_nothing_stored();
	fake_close(&f);
}

/* ---- hostile senders ---- */

/* A MORE that does not fit is ignored, wherever it points; the right one still fits. */
BOTH(more_that_does_not_fit)
{
	static const struct { size_t at, n; } wrong[] = {
		{ 0, 100 }, { FIRST - 1, 100 }, { FIRST + 1, 100 }, { LEN, 100 },
		{ FIRST, LEN - FIRST + 1 }, { LEN - 100, 101 }, { 1 << 19, 100 },
	};

	for (unsigned late = 0; late < 2; late++) {
		open_met(kind);
		if (!late)
			recv_any(buf, sizeof(buf), &a);
		part(true, 5, LEN, FIRST);
		for (size_t i = 0; i < LNX_ARRAY_SIZE(wrong); i++) {
			more(wrong[i].at, wrong[i].n);
			spent -= wrong[i].n;
		}
		fake_quiet(&f);
		cr_expect_eq(f.lnx->stats.bad_frames, LNX_ARRAY_SIZE(wrong));
		more(FIRST, SECOND);
		more(FIRST + SECOND, THIRD);
		if (late)
			recv_any(buf, sizeof(buf), &a);
		expect_whole(&a, 5);
		/* After the last one none fits. */
		more(LEN, 1);
		spent--;
		fake_quiet(&f);
		cr_expect_eq(f.lnx->stats.bad_frames, LNX_ARRAY_SIZE(wrong) + 1);
		expect_nothing_stored();
		fake_close_quick(&f);
	}
}

BOTH(more_of_nothing)
{
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	more(0, 100);
	spent -= 100;
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 1u);
	message(true, 5);
	expect_whole(&a, 5);
	fake_close(&f);
}

/* A message begins within another one. */
BOTH(part_within_another)
{
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	recv_any(buf, sizeof(buf), &b);
	part(true, 5, LEN, FIRST);
	part(true, 6, LEN, FIRST);
	spent -= FIRST;
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 1u);
	more(FIRST, SECOND);
	more(FIRST + SECOND, THIRD);
	expect_whole(&a, 5);
	fake_close(&f);
}

/* More than was granted is never taken, however it is sent; it is as if it was lost. */
static void beyond_credit(enum lnx_rail_kind kind, uint8_t what)
{
	struct lnx_hdr h = { .kind = what, .tag = 5, .len = granted + 1 };
	uint32_t seq;

	open_met(kind);
	seq = view_rx_next(lnx_peer_by_eid(f.lnx, p.eid));
	while (what == LNX_KIND_TAG && granted - spent >= LNX_PAYLOAD_LARGE) {
		fake_tag(&f, &p, 5, mem, LNX_PAYLOAD_LARGE);
		fake_passes(&f, 2);
		spent += LNX_PAYLOAD_LARGE;
		seq++;
	}
	h.len = what == LNX_KIND_TAG ? LNX_PAYLOAD_LARGE : granted + 1;
	fake_next(&f, &p, h, mem, LNX_PAYLOAD_LARGE);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 1u);
	cr_expect_eq(view_rx_next(lnx_peer_by_eid(f.lnx, p.eid)), seq);
	cr_expect_leq(view_exposure(f.lnx), granted);
	fake_close(&f);
}

BOTH(part_beyond_credit) { beyond_credit(kind, LNX_KIND_PART_TAG); }
BOTH(message_beyond_credit) { beyond_credit(kind, LNX_KIND_TAG); }

/* A peer that was granted nothing. */
BOTH(stranger_without_credit)
{
	struct fake_opt opt = { .nrail = 1, .kind[0] = kind };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	recv_any(buf, sizeof(buf), &a);
	part(true, 5, LEN, FIRST);
	fake_quiet(&f);
	fake_tag(&f, &p, 5, mem, LNX_PAYLOAD_MAX + 1);
	fake_quiet(&f);
	cr_expect_geq(f.lnx->stats.bad_frames, 1u);
	cr_expect_eq(view_exposure(f.lnx), 0u);
	fake_close(&f);
}

/* ---- the end of the session ---- */

static void bye(void)
{
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = p.seq }, NULL, 0);
	fake_passes(&f, 4);
}

BOTH(peer_ends_within_a_receive)
{
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	part(true, 5, LEN, FIRST);
	fake_quiet(&f);
	bye();
	fake_err(&f, &a, FI_ECONNRESET);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	cr_expect_eq(view_exposure(f.lnx), 0u);
	fake_close(&f);
}

/* What is stored of a message that never will be whole is not a message. */
BOTH(peer_ends_within_an_unexpected)
{
	open_met(kind);
	part(true, 5, LEN, FIRST);
	fake_quiet(&f);
	bye();
	recv_any(buf, sizeof(buf), &a);
	fake_quiet(&f);
	cr_expect_eq(view_exposure(f.lnx), 0u);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), 0);
	fake_err(&f, &a, FI_ECANCELED);
	fake_close(&f);
}

/* But a whole one is. */
BOTH(peer_ends_after_an_unexpected)
{
	open_met(kind);
	message(true, 5);
	fake_passes(&f, 4);
	bye();
	recv_any(buf, sizeof(buf), &a);
	expect_whole(&a, 5);
	cr_expect_eq(view_exposure(f.lnx), 0u);
	fake_close(&f);
}

BOTH(peer_ends_within_a_claimed)
{
	struct fi_context ctx;

	open_met(kind);
	part(true, 5, LEN, FIRST);
	fake_passes(&f, 2);
	cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
	fake_comp(&f, &ctx);
	bye();
	cr_assert_eq(special(FI_CLAIM, buf, sizeof(buf), &ctx), 0);
	fake_err(&f, &ctx, FI_EIO);
	cr_expect_eq(view_exposure(f.lnx), 0u);
	fake_close(&f);
}

/* It is gone without a word: nothing answers, not even its kernel. */
static void peer_vanishes(void)
{
	struct lnx_peer *peer = lnx_peer_by_eid(f.lnx, p.eid);

	for (unsigned i = 0; i < 100 && !lnx_peer_dead(peer); i++)
		fake_after_ms(&f, 1000);
	cr_assert(lnx_peer_dead(peer), "it is not given up");
	cr_expect_eq(view_exposure(f.lnx), 0u);
}

BOTH(peer_vanishes_within_a_receive)
{
	fake_conf.transaction_timeout = 5000;
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	part(true, 5, LEN, FIRST);
	fake_quiet(&f);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), -FI_ENOENT);
	peer_vanishes();
	fake_err(&f, &a, FI_ECONNREFUSED);
	fake_quiet(&f);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* What is stored of its message captures no receive any more. */
BOTH(peer_vanishes_within_an_unexpected)
{
	fake_conf.transaction_timeout = 5000;
	open_met(kind);
	part(true, 5, LEN, FIRST);
	fake_quiet(&f);
	peer_vanishes();
	recv_any(buf, sizeof(buf), &a);
	fake_quiet(&f);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), 0);
	fake_err(&f, &a, FI_ECANCELED);
	fake_close(&f);
}

/* Once the message is whole nothing is due from its sender. */
BOTH(peer_vanishes_after_a_message)
{
	fake_conf.transaction_timeout = 5000;
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	message(true, 5);
	expect_whole(&a, 5);
	for (unsigned i = 0; i < 30; i++)
		fake_after_ms(&f, 1000);
	cr_expect(!lnx_peer_dead(lnx_peer_by_eid(f.lnx, p.eid)));
	fake_close(&f);
}

BOTH(close_within_a_message)
{
	open_met(kind);
	part(true, 5, LEN, FIRST);
	fake_passes(&f, 2);
	fake_close(&f);
}

/* ---- the first bytes of a message that is read ---- */

static void announce(size_t head)
{
	struct lnx_rts rts = {
		.op = 88, .nseg = 1, .nkey = 1, .seg_len[0] = LEN,
		.key[0][0] = { .key = 100, .addr = 0x1000000 },
	};
	uint8_t payload[512];

	fake_region(core, 100, 0x1000000, mem, LEN);
	lnx_wire_rts_put(payload, &rts);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
		  .flags = LNX_WIRE_F_DATA, .data = 99, .tag = 5, .len = LEN, .key = head },
		  payload, lnx_wire_rts_size(&rts));
}

BOTH(head_then_the_rest)
{
	for (unsigned late = 0; late < 3; late++) {
		open_met(kind);
		if (!late)
			recv_any(buf, sizeof(buf), &a);
		core->hold_reads = true;
		announce(FIRST);
		if (late == 2) {
			more(0, FIRST);
			fake_quiet(&f);
		}
		if (late)
			recv_any(buf, sizeof(buf), &a);
		fake_passes(&f, 3);
		if (late == 1) {
			/* What is read comes first. */
			fake_finish_all(core);
			fake_quiet(&f);
			more(0, FIRST);
		} else if (!late) {
			more(0, FIRST);
			fake_quiet(&f);
			fake_finish_all(core);
		} else {
			fake_finish_all(core);
		}
		expect_whole(&a, 5);
		fake_close_quick(&f);
	}
}

/* All of it comes by itself: nothing is read, and a FIN ends it. */
BOTH(head_is_all)
{
	for (unsigned late = 0; late < 2; late++) {
		open_met(kind);
		if (!late)
			recv_any(buf, sizeof(buf), &a);
		core->hold_reads = true;
		announce(LEN);
		more(0, FIRST);
		more(FIRST, SECOND);
		fake_quiet(&f);
		if (late)
			recv_any(buf, sizeof(buf), &a);
		fake_passes(&f, 2);
		fake_quiet(&f);
		more(FIRST + SECOND, THIRD);
		expect_whole(&a, 5);
		cr_expect_eq(fake_held(core), 0u);
		fake_expect_drop(&f, &p, LNX_KIND_FIN);
		fake_close_quick(&f);
	}
}

/* The receive takes less than what comes by itself: nothing is read. */
BOTH(head_is_more_than_the_receive)
{
	struct fi_cq_err_entry e;

	open_met(kind);
	recv_any(buf, 1000, &a);
	core->hold_reads = true;
	announce(FIRST);
	fake_quiet(&f);
	cr_expect_eq(fake_held(core), 0u);
	more(0, FIRST);
	e = fake_err(&f, &a, FI_ETRUNC);
	cr_expect_eq(e.len, 1000u);
	cr_expect(!memcmp(buf, mem, 1000));
	cr_expect_eq(buf[1000], 0xee);
	fake_close(&f);
}

/* It does not come, and the peer ends. */
BOTH(peer_ends_before_the_head)
{
	open_met(kind);
	recv_any(buf, sizeof(buf), &a);
	announce(FIRST);
	fake_quiet(&f);
	bye();
	fake_err(&f, &a, FI_ECONNRESET);
	cr_expect_eq(view_exposure(f.lnx), 0u);
	fake_close(&f);
}
