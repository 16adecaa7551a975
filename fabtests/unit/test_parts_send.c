/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending messages longer than one frame at once, on a scripted core: what leaves with and
 * without credit, and when the sends complete (rel/keep.c).
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fake_core.h"
#include "view.h"

#define HDR	sizeof(struct lnx_wire_hdr)

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b, c;			/* contexts */
static uint8_t text[(1 << 20) + 1];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(parts_send_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(parts_send_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void grant(uint64_t limit)
{
	struct lnx_wire_credit w;

	lnx_wire_credit_put(&w, limit);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_ACK }, &w, sizeof(w));
	fake_pass(&f);
}

static uint64_t link_bps;		/* of the rails; 0: unknown */
static bool same_host;			/* the peer is on ours */

/* A peer that grants so much; frames of the rails have up to `longest` bytes. */
static void open_rails(unsigned nrail, enum lnx_rail_kind kind, uint64_t limit, size_t longest)
{
	struct fake_opt opt = { .nrail = nrail, .kind = { kind, kind } };

	fake_rxm_buffer = longest;
	fake_open(&f, &opt);
	core = f.core[0];
	f.lnx->rail[0]->link_bps = link_bps;
	fake_peer_init(&f, &p, 0x1111);
	if (same_host)
		f.domain.host = p.where.host;
	fake_peer_insert(&f, &p);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 5 + i / 253);
	fake_meet(&f, &p);
	grant(limit);
}

static void open_granted(enum lnx_rail_kind kind, uint64_t limit, size_t longest)
{
	open_rails(1, kind, limit, longest);
}

static void send_len(size_t len, uint64_t flags, void *context)
{
	struct iovec iov = { text, len };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .addr = p.addr,
				   .tag = 9, .context = context };

	cr_assert_eq(fi_tsendmsg(f.ep, &m, flags | FI_COMPLETION), 0);
}

/* The frames of one message of len bytes; returns their number. */
static unsigned expect_parts(size_t len)
{
	struct fake_sent *s = fake_expect(&f, &p, LNX_KIND_PART_TAG);
	size_t at = s->len - HDR;
	unsigned n = 1;

	cr_expect_eq(s->h.len, len);
	cr_expect_eq(s->h.tag, 9);
	cr_expect(!memcmp(s->bytes + HDR, text, at));
	free(s);
	while (at < len) {
		s = fake_expect(&f, &p, LNX_KIND_MORE);
		cr_assert_eq(s->h.tag, at);
		cr_assert_leq(at + s->len - HDR, len);
		cr_expect(!memcmp(s->bytes + HDR, text + at, s->len - HDR));
		at += s->len - HDR;
		n++;
		free(s);
	}
	fake_expect_none(&f);
	return n;
}

/* Long frames over tcp are one packet each, and the last one has the rest. */
BOTH(long_frames_are_whole_packets)
{
	static const struct {
		size_t len, first, last;
		unsigned n;
	} t[] = {
		{ LNX_PAYLOAD_LARGE + 1, 65024, LNX_PAYLOAD_LARGE + 1 - 65024, 2 },
		{ 128 << 10, 65024, (128 << 10) - 65024, 2 },
		{ 65024 + LNX_PAYLOAD_LARGE, 65024, LNX_PAYLOAD_LARGE, 2 },
		{ 256 << 10, 65024, (256 << 10) - 3 * 65024, 4 },
		/* As many frames as there may be, and more than in those. */
		{ 10 * 65024 + LNX_PAYLOAD_LARGE, 65024, LNX_PAYLOAD_LARGE, 11 },
		{ 10 * 65024 + LNX_PAYLOAD_LARGE + 1, 93632, 93121, 8 },
	};
	unsigned i, n;

	fake_conf.eager_limit = 8 * LNX_PAYLOAD_LARGE;
	open_granted(kind, 1 << 30, LNX_FRAME_LARGE);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fake_sent *s;
		size_t at, bytes;

		send_len(t[i].len, 0, &a);
		s = fake_expect(&f, &p, LNX_KIND_PART_TAG);
		cr_expect_eq(s->len - HDR, t[i].first, "%zu bytes: %zu", t[i].len, s->len - HDR);
		for (at = bytes = s->len - HDR, n = 1; at < t[i].len; at += bytes, n++) {
			free(s);
			s = fake_expect(&f, &p, LNX_KIND_MORE);
			bytes = s->len - HDR;
			cr_expect(at + bytes == t[i].len || bytes == t[i].first,
				  "%zu bytes: %zu at %zu", t[i].len, bytes, at);
		}
		cr_expect_eq(bytes, t[i].last, "%zu bytes: %zu", t[i].len, bytes);
		cr_expect_eq(n, t[i].n, "%zu bytes: %u frames", t[i].len, n);
		free(s);
		fake_ack(&f, &p);
		fake_pass(&f);
	}
	fake_close(&f);
}

BOTH(without_credit_it_is_announced)
{
	struct fake_sent *s;

	open_granted(kind, 0, LNX_FRAME_LARGE);
	send_len(100000, 0, &a);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	cr_expect_eq(s->h.key, 0u);
	free(s);
	fake_expect_none(&f);
	fake_close(&f);
}

/* What several rails share is read in pieces, with all the credit there is; what is too short
 * for that is not. */
BOTH(several_rails_share_it)
{
	struct fake_sent *s;

	open_rails(2, kind, 1 << 20, LNX_FRAME_LARGE);
	send_len((32 << 10) - 1, 0, &a);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.len, (32 << 10) - 1);
	free(s);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	send_len(32 << 10, 0, &b);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	cr_expect_eq(s->h.key, 0u);
	free(s);
	fake_expect_none(&f);
	fake_close(&f);
}

BOTH(one_large_frame)
{
	struct fake_sent *s;

	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(LNX_PAYLOAD_LARGE, 0, &a);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.len, LNX_PAYLOAD_LARGE);
	cr_expect(!memcmp(s->bytes + HDR, text, LNX_PAYLOAD_LARGE));
	free(s);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_close(&f);
}

BOTH(several_frames)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(384 << 10, 0, &a);
	cr_expect_eq(expect_parts(384 << 10), 6u);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_quiet(&f);
	send_len((384 << 10) + 1, 0, &b);
	fake_expect_drop(&f, &p, LNX_KIND_RTS_TAG);
	fake_close_quick(&f);
}

/* Where rails carry short frames only, up to LNX_PARTS_MAX of these. */
Test(parts_send_peer, short_frames)
{
	open_granted(LNX_RAIL_PEER, 1 << 20, 0);
	send_len(8 * LNX_PAYLOAD_MAX, 0, &a);
	cr_expect_eq(expect_parts(8 * LNX_PAYLOAD_MAX), 8u);
	send_len(8 * LNX_PAYLOAD_MAX + 1, 0, &b);
	fake_expect_drop(&f, &p, LNX_KIND_RTS_TAG);
	fake_close_quick(&f);
}

/* With those of a core that copies them as well, what is longer than 128 KiB is read. */
Test(parts_send_peer, longer_is_read)
{
	open_granted(LNX_RAIL_PEER, 1 << 20, (32 << 10) + HDR);
	send_len(128 << 10, 0, &a);
	cr_expect_eq(expect_parts(128 << 10), 4u);
	send_len((128 << 10) + 1, 0, &b);
	fake_expect_drop(&f, &p, LNX_KIND_RTS_TAG);
	fake_close_quick(&f);
}

/* Equal frames are no longer than the rails carry. */
Test(parts_send_peer, frames_of_an_odd_length)
{
	open_granted(LNX_RAIL_PEER, 1 << 20, 30000);
	send_len(2 * (30000 - HDR), 0, &a);
	cr_expect_eq(expect_parts(2 * (30000 - HDR)), 2u);
	send_len(2 * (30000 - HDR) + 1, 0, &b);
	cr_expect_eq(expect_parts(2 * (30000 - HDR) + 1), 3u);
	fake_close_quick(&f);
}

/* The frames of one message are in one credit: all or none. */
BOTH(credit_is_used_up)
{
	struct fake_sent *s;

	open_granted(kind, 150000, LNX_FRAME_LARGE);
	send_len(100000, 0, &a);
	expect_parts(100000);
	send_len(50001, 0, &b);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	cr_expect_eq(s->h.key, 0u);
	free(s);
	/* An old number changes nothing. */
	grant(100);
	send_len(50000, 0, &c);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_close_quick(&f);
}

/* Once it has waited in vain, it does not wait again for so little that nothing can be sent
 * with it. */
BOTH(credit_that_is_of_no_use)
{
	unsigned npolls;

	open_granted(kind, 20000, LNX_FRAME_LARGE);
	send_len(20000, 0, &a);
	npolls = core->npolls;
	send_len(20000, 0, &b);
	cr_expect_geq(core->npolls - npolls, 64u, "it waits");
	grant(20000 + LNX_PAYLOAD_MAX);
	npolls = core->npolls;
	send_len(20000, 0, &c);
	cr_expect_lt(core->npolls - npolls, 64u);
	grant(40000);
	fake_drop_all(&f, &p);
	send_len(20000, 0, &c);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_close_quick(&f);
}

/* The RTS of a message announces a head, and MOREs bring it: their number. */
static unsigned expect_head(uint64_t head)
{
	struct fake_sent *s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	uint64_t got = 0;
	unsigned n = 0;

	cr_expect_eq(s->h.key, head, "a head of %llu bytes",
		     (unsigned long long)s->h.key);
	free(s);
	for (; got < head; n++) {
		s = fake_expect(&f, &p, LNX_KIND_MORE);
		cr_assert_eq(s->h.tag, got);
		cr_expect(!memcmp(s->bytes + HDR, text + got, s->h.len));
		got += s->h.len;
		free(s);
	}
	cr_expect_eq(got, head);
	return n;
}

/* What is too long to be sent at once has frames that leave with the RTS: all of it, as many as
 * there may be, or four times the limit. */
BOTH(head_of_an_announced_one)
{
	open_granted(kind, 8 << 20, LNX_FRAME_LARGE);
	send_len(512 << 10, 0, &a);
	cr_expect_eq(expect_head(512 << 10), 8u);
	fake_expect_none(&f);
	/* It ends when its FIN has come and the frames are acknowledged. */
	fake_ack(&f, &p);
	fake_quiet(&f);
	send_len(sizeof(text), 0, &b);
	cr_expect_eq(expect_head(sizeof(text)), 11u);
	fake_conf.eager_limit = 128 << 10;
	send_len(sizeof(text), 0, &b);
	cr_expect_eq(expect_head(512 << 10), 8u);
	fake_close_quick(&f);
}

/* The last credit is left for those that are sent at once. */
BOTH(head_leaves_credit)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(1 << 20, 0, &a);
	expect_head(640 << 10);
	/* One frame. */
	send_len(1 << 20, 0, &b);
	expect_head(LNX_PAYLOAD_LARGE);
	send_len(128 << 10, 0, &c);
	expect_parts(128 << 10);
	send_len(1 << 20, 0, &b);
	expect_head(LNX_PAYLOAD_LARGE);
	send_len(1 << 20, 0, &c);
	expect_head(0);
	fake_close_quick(&f);
}

/* Where frames come as fast as they are copied, one. */
BOTH(head_within_a_host)
{
	same_host = true;
	open_granted(kind, 8 << 20, LNX_FRAME_LARGE);
	send_len(1 << 20, 0, &a);
	cr_expect_eq(expect_head(LNX_PAYLOAD_LARGE), 1u);
	fake_close_quick(&f);
}

BOTH(head_over_a_fast_link)
{
	link_bps = 10000000001;
	open_granted(kind, 8 << 20, LNX_FRAME_LARGE);
	send_len(1 << 20, 0, &a);
	cr_expect_eq(expect_head(LNX_PAYLOAD_LARGE), 1u);
	fake_close_quick(&f);
}

BOTH(head_over_a_link_of_10_gbit)
{
	link_bps = 10000000000;
	open_granted(kind, 8 << 20, LNX_FRAME_LARGE);
	send_len(512 << 10, 0, &a);
	cr_expect_eq(expect_head(512 << 10), 8u);
	fake_close_quick(&f);
}

/* Where frames are short, one. */
Test(parts_send_peer, head_of_short_frames)
{
	open_granted(LNX_RAIL_PEER, 8 << 20, 0);
	send_len(512 << 10, 0, &a);
	cr_expect_eq(expect_head(LNX_PAYLOAD_MAX), 1u);
	fake_close_quick(&f);
}

/* The peer tells of its second rail, which carries short frames only, while long ones wait
 * for the first: they are not for the second (the core checks that). */
Test(parts_send_peer, rail_of_short_frames_comes_later)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PEER } };
	struct fake_sent *s;
	unsigned i;

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.where.nrail = 1;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	grant(1 << 20);
	core->send_again = FAKE_ALWAYS;
	send_len(LNX_PAYLOAD_LARGE, 0, &a);
	send_len(LNX_PAYLOAD_LARGE, 0, &b);
	p.where.nrail = 2;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .key = 2 }, p.blob,
		  sizeof(p.blob));
	for (i = 0; i < 100; i++)
		fake_after_ms(&f, 10);
	cr_assert_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 2u);
	fake_expect_none(&f);
	while ((s = fake_take(f.core[1]))) {
		cr_expect(!lnx_wire_kind_sequenced(s->h.kind));
		free(s);
	}
	core->send_again = 0;
	fake_after_ms(&f, 1000);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	/* From now on frames are for both. */
	send_len(LNX_PAYLOAD_MAX + 1, 0, &c);
	while ((s = fake_take(core))) {
		cr_expect_leq(s->len, LNX_FRAME_MAX);
		free(s);
	}
	fake_close_quick(&f);
}

/* ---- completion ---- */

/* The peer's program does nothing: no acknowledgement comes. */
BOTH(completes_without_the_peer)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(64 << 10, 0, &a);
	send_len(128 << 10, 0, &b);
	fake_passes(&f, 200);
	fake_comp(&f, &a);
	fake_comp(&f, &b);
	cr_expect_eq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 192u << 10);
	/* The buffer is the application's again; what is sent again is the copy. */
	memset(text, 0, sizeof(text));
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_quiet(&f);
	cr_expect_eq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 0u);
	fake_close(&f);
}

/* The core fails to send it, and takes nothing more: the buffer is copied all the same. */
BOTH(completes_after_the_core_failed)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	core->hold_sends = true;
	send_len(64 << 10, 0, &a);
	fake_quiet(&f);
	core->send_again = FAKE_ALWAYS;
	fake_finish(core, 0, FI_EIO);
	fake_passes(&f, 200);
	fake_comp(&f, &a);
	cr_expect_eq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 64u << 10);
	core->send_again = 0;
	fake_drop_all(&f, &p);
	fake_close_quick(&f);
}

/* FI_LNX_SEND_BUFFER is full: those behind it wait for the peer. */
BOTH(send_buffer_is_full)
{
	fake_conf.send_buffer = 256 << 10;
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(LNX_PAYLOAD_LARGE, 0, &a);
	send_len(256 << 10, 0, &b);
	fake_passes(&f, 400);
	fake_comp(&f, &a);
	fake_quiet(&f);
	cr_expect_leq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 256u << 10);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	cr_expect_eq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 0u);
	fake_close(&f);
}

/* What fits exactly into the room that an acknowledgement makes is copied then. */
BOTH(send_buffer_is_full_again)
{
	fake_conf.send_buffer = 128 << 10;
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(64 << 10, 0, &a);
	send_len(64 << 10, 0, &b);
	send_len(64 << 10, 0, &c);
	fake_passes(&f, 400);
	fake_comp(&f, &a);
	fake_comp(&f, &b);
	fake_quiet(&f);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_ack(&f, &p);
	fake_passes(&f, 400);
	fake_comp(&f, &c);
	cr_expect_eq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 128u << 10);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(no_send_buffer)
{
	fake_conf.send_buffer = 0;
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(20000, 0, &a);
	fake_passes(&f, 400);
	fake_quiet(&f);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* These mean that the peer has it. */
static void levels(enum lnx_rail_kind kind, uint64_t level, size_t len)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(len, level, &a);
	fake_passes(&f, 400);
	fake_quiet(&f);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(transmit_complete) { levels(kind, FI_TRANSMIT_COMPLETE, 64 << 10); }
BOTH(delivery_complete) { levels(kind, FI_DELIVERY_COMPLETE, 256 << 10); }
/* Its last frame is so short that it is copied. */
BOTH(delivery_complete_of_a_short_end)
{
	levels(kind, FI_DELIVERY_COMPLETE, 3 * LNX_PAYLOAD_LARGE - 50000);
}

/* Successes and errors of a send so far. */
static void count_ends(unsigned ends[2], const void *context)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry ee = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(f.cq, &e, 1)) != -FI_EAGAIN) {
		if (ret == 1) {
			ends[0] += e.op_context == context;
			continue;
		}
		cr_assert_eq(ret, -FI_EAVAIL);
		cr_assert_eq(fi_cq_readerr(f.cq, &ee, 0), 1);
		cr_expect_eq(ee.err, FI_ECONNRESET);
		ends[1] += ee.op_context == context;
	}
}

/* One end of each send, however many frames it has, also when some were copied. */
static void peer_ends(enum lnx_rail_kind kind, uint64_t level)
{
	unsigned passes;

	for (passes = 0; passes < 60; passes += 3) {
		unsigned ends[2] = { 0 };

		open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
		send_len(256 << 10, level, &a);
		fake_passes(&f, passes);
		fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = p.seq },
			   NULL, 0);
		fake_passes(&f, 4);
		count_ends(ends, &a);
		cr_expect_eq(ends[0] + ends[1], 1u, "%u passes: %u, %u", passes, ends[0],
			     ends[1]);
		if (level || !passes)
			cr_expect_eq(ends[1], 1u);
		else if (passes > 40)
			cr_expect_eq(ends[0], 1u);
		cr_expect_eq(view_kept(lnx_peer_by_eid(f.lnx, p.eid)), 0u);
		fake_close_quick(&f);
	}
}

BOTH(peer_ends_after_a_while) { peer_ends(kind, 0); }
BOTH(peer_ends_before_delivery) { peer_ends(kind, FI_DELIVERY_COMPLETE); }

/* Posted again, the core keeps it, and the peer ends: whether the first copy was acknowledged
 * before that says how the send ends. */
static void held_again(enum lnx_rail_kind kind, bool acked)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(64 << 10, FI_DELIVERY_COMPLETE, &a);
	fake_quiet(&f);
	core->hold_sends = true;
	for (unsigned i = 0; i < 100 && !fake_held(core); i++)
		fake_after_ms(&f, 1000);
	cr_assert_eq(fake_held(core), 1u);
	if (acked) {
		fake_drop_all(&f, &p);
		fake_ack(&f, &p);
		fake_quiet(&f);
	}
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = p.seq }, NULL, 0);
	fake_passes(&f, 4);
	fake_quiet(&f);
	fake_finish(core, 0, FI_EIO);
	if (acked)
		fake_comp(&f, &a);
	else
		fake_err(&f, &a, FI_ECONNRESET);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(peer_ends_after_the_first_copy) { held_again(kind, true); }
BOTH(peer_ends_before_the_first_copy) { held_again(kind, false); }

BOTH(close_before_the_end)
{
	open_granted(kind, 1 << 20, LNX_FRAME_LARGE);
	send_len(256 << 10, 0, &a);
	send_len(100000, FI_DELIVERY_COMPLETE, &b);
	fake_close(&f);
}
