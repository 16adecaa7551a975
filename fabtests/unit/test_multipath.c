/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several paths to a peer, on scripted cores, one rail each.  The test is the
 * peer: it gets the frames of one path in order, those of different paths in
 * any order.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_core.h"
#include "fake_memory.h"
#include "obj/mr.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rel/backoff.h"
#include "rel/peer_path.h"

#define HDR	sizeof(struct lnx_wire_hdr)
#define BODY	4096u
#define FRAME	(BODY + HDR)
#define SPILL	LNX_PATH_INFLIGHT_FIRST	/* of a path whose speed is not known */
#define MANY	4096u			/* more frames than any test sends */
#define KEY	0x4b4559ull
#define BASE	0x1000000ull		/* of the peer's memory */
#define LARGE	(4ul << 20)

static struct fake f;
static struct fake_peer p;
static unsigned nrail;
static char a, b, c;			/* contexts */
static uint8_t buf[LARGE], buf2[LARGE], mem[LARGE];

/* What the peer has received of us. */
static unsigned seen[MANY];		/* times, by number */
static uint64_t tags[MANY];
static unsigned nseen[FAKE_RAILS];	/* sequenced frames, by rail */
static unsigned nacks[FAKE_RAILS];
static uint64_t bytes[LNX_WIRE_PATHS];	/* their bytes, by path */
static uint32_t acked;			/* the last of the peer's frames that we
					 * acknowledged */
static uint64_t reported[LNX_WIRE_PATHS];	/* the peer's bytes that our ACKs report */

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(spread_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(spread_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static void open_with(enum lnx_rail_kind kind, unsigned n, struct fake_opt opt)
{
	unsigned i;

	opt.nrail = nrail = n;
	for (i = 0; i < n; i++)
		opt.kind[i] = kind;
	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
}

static void open_n(enum lnx_rail_kind kind, unsigned n)
{
	open_with(kind, n, (struct fake_opt) { 0 });
}

/* ---- the peer ---- */

static void look_at(unsigned rail, const struct fake_sent *s)
{
	cr_assert_eq(s->h.src, view_sid(inside()));
	cr_assert_eq(s->h.rail, rail);
	cr_assert_eq(s->h.path, rail);
	if ((int32_t)(s->h.ack - acked) > 0)
		acked = s->h.ack;
	if (s->h.kind == LNX_KIND_ACK) {
		nacks[rail]++;
		cr_assert(s->h.tag <= LNX_WIRE_PATHS &&
			  s->h.len <= LNX_WIRE_PATHS);
		if (s->h.tag)
			reported[s->h.tag - 1] = s->h.data;
		if (s->h.len)
			reported[s->h.len - 1] = s->h.key;
	}
	if (!lnx_wire_kind_sequenced(s->h.kind))
		return;
	cr_assert_lt(s->h.seq, MANY);
	seen[s->h.seq]++;
	tags[s->h.seq] = s->h.kind == LNX_KIND_TAG ? s->h.tag : 0;
	nseen[rail]++;
	bytes[rail] += s->len;
}

/* Up to max frames that left on rail arrive at the peer; returns how many. */
static unsigned receive(unsigned rail, unsigned max)
{
	struct fake_sent *s;
	unsigned n;

	for (n = 0; n < max && (s = fake_take(f.core[rail])); n++) {
		look_at(rail, s);
		free(s);
	}
	while (seen[p.got])
		p.got++;
	return n;
}

static unsigned receive_all(void)
{
	unsigned i, n = 0;

	for (i = 0; i < nrail; i++)
		n += receive(i, UINT32_MAX);
	return n;
}

static struct lnx_hdr report(unsigned one, uint64_t got, unsigned two,
			     uint64_t got2)
{
	return (struct lnx_hdr) { .kind = LNX_KIND_ACK, .tag = one,
				  .data = got, .len = two, .key = got2 };
}

/* The peer acknowledges what it has, by path. */
static void ack(void)
{
	unsigned i;

	for (i = 0; i < nrail; i += 2)
		fake_frame(&f, &p, report(1 + i, bytes[i], i + 2 > nrail ? 0 :
					  2 + i, bytes[i + 1]), NULL, 0);
}

/* Run until everything is acknowledged. */
static void settle(void)
{
	unsigned i;

	for (i = 0; i < 200; i++) {
		fake_passes(&f, 2);
		if (!receive_all() && view_all_acked(inside()))
			return;
		ack();
		fake_after_ms(&f, i < 100 ? 1 : 100);
	}
	cr_assert_fail("frames stay unacknowledged: %u of %u",
		       view_next(inside()) - view_acked(inside()),
		       view_next(inside()));
}

static ssize_t send1(uint64_t tag, void *context)
{
	memset(buf, (int)tag, BODY);
	return fi_tsend(f.ep, buf, BODY, NULL, p.addr, tag, context);
}

/* The peer knows our hello. */
static void introduce(void)
{
	cr_assert_eq(send1(1000, &a), 0);
	fake_comp(&f, &a);
	settle();
	cr_assert(lnx_peer_acked(inside()));
	force_proven(inside());
	memset(nseen, 0, sizeof(nseen));
}

static void open_introduced(enum lnx_rail_kind kind, unsigned n)
{
	open_n(kind, n);
	introduce();
}

/* A frame from the peer over one of its paths. */
static void from(unsigned path, uint32_t seq, struct lnx_hdr h,
		 const void *payload, size_t len)
{
	h.seq = seq;
	h.path = (uint8_t)path;
	fake_frame_on(&f, &p, path, h, payload, len);
}

static void from_hello(void)
{
	from(0, p.seq++, (struct lnx_hdr) { .kind = LNX_KIND_HELLO }, p.blob,
	     sizeof(p.blob));
	fake_pass(&f);
}

static void tag_from(unsigned path, uint32_t seq, uint64_t tag)
{
	from(path, seq, (struct lnx_hdr) { .kind = LNX_KIND_TAG, .tag = tag,
					   .len = 8 }, &tag, 8);
}

/* An RTS for len bytes of mem, with keys for the rails whose bit is set; of these the sender
 * wants to be read from over some. */
static void rts_that_wants(uint64_t tag, uint64_t op, size_t len, unsigned rails,
			   unsigned wanted)
{
	struct lnx_rts rts = { .op = op, .nseg = 1, .seg_len[0] = len };
	struct lnx_hdr h = { .kind = LNX_KIND_RTS_TAG, .tag = tag, .len = len };
	uint8_t payload[512];
	unsigned i;

	for (i = 0; i < FAKE_RAILS + 1; i++) {
		if (!(rails >> i & 1))
			continue;
		rts.key[0][rts.nkey].rail = (uint16_t)i;
		rts.key[0][rts.nkey].from = wanted >> i & 1 ? 1u << i : 0;
		rts.key[0][rts.nkey].key = 100;
		rts.key[0][rts.nkey++].addr = BASE;
		if (i < nrail && !f.core[i]->nregion)
			fake_region(f.core[i], 100, BASE, mem, sizeof(mem));
	}
	lnx_wire_rts_put(payload, &rts);
	from(0, p.seq++, h, payload, lnx_wire_rts_size(&rts));
}

static void rts_from(uint64_t tag, uint64_t op, size_t len, unsigned rails)
{
	rts_that_wants(tag, op, len, rails, 0);
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251 + i / 65521);
	memset(buf, 0xee, sizeof(buf));
	memset(buf2, 0xee, sizeof(buf2));
}

static void open_met(enum lnx_rail_kind kind, unsigned n)
{
	open_with(kind, n, (struct fake_opt) { .caps = FI_RMA });
	fill();
	from_hello();
}

static ssize_t post_recv(void *to, size_t len, void *context)
{
	return fi_trecv(f.ep, to, len, NULL, p.addr, 0, ~0ull, context);
}

/* Close; nothing may be left over. */
static void close_clean(void)
{
	const struct lnx_peer *peer = inside();
	unsigned i;

	if (!lnx_peer_dead(peer))
		settle();
	cr_expect_eq(view_unacked_bytes(peer), 0u);
	cr_expect_eq(view_pull_left(peer), 0u);
	for (i = 0; i < view_npath(peer); i++) {
		cr_expect_eq(lnx_peer_path_in_flight(peer, view_path(peer, i)), 0u);
		cr_expect_eq(view_nread(view_path(peer, i)), 0u);
		cr_expect_eq(view_read_bytes(view_path(peer, i)), 0u);
	}
	for (i = 0; i < f.lnx->nrail; i++) {
		cr_expect_eq(f.lnx->rail[i]->busy, 0u);
		cr_expect_eq(f.lnx->rail[i]->credits.used, 0u);
	}
	cr_expect_eq(view_chunks(f.lnx), 0u);
	cr_expect_eq(view_frames(f.lnx), 0u);
	fake_quiet(&f);
	fake_close(&f);
}

/* ---- frames: which path ---- */

BOTH(nothing_is_spread_before_the_peer_knows_us)
{
	struct fake_sent *s;
	unsigned i;

	open_n(kind, 2);
	for (i = 0; i < 50; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_expect_eq(view_npath(inside()), 2);
	s = fake_take(f.core[0]);
	cr_assert_eq(s->h.kind, LNX_KIND_HELLO);
	look_at(0, s);
	free(s);
	cr_expect_eq(receive(0, UINT32_MAX), 50u);
	cr_expect_null(f.core[1]->sent);
	ack();
	fake_pass(&f);
	force_proven(inside());
	for (i = 0; i < 50; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_expect_not_null(f.core[1]->sent);
	close_clean();
}

/* Frames after a hello use its path until it is acknowledged. */
BOTH(hello_over_another_path)
{
	unsigned i;

	open_n(kind, 2);
	f.core[0]->send_again = 1;
	for (i = 0; i < 5; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
		fake_after_ms(&f, 20);
	}
	cr_expect_null(f.core[0]->sent);
	cr_expect_eq(receive(1, UINT32_MAX), 6u);
	ack();
	fake_pass(&f);
	/* Then the first path again. */
	cr_assert_eq(send1(5, &a), 0);
	fake_pass(&f);
	cr_expect_eq(receive(0, UINT32_MAX), 1u);
	ack();
	fake_comp(&f, &a);
	close_clean();
}

/* That path blocks after the hello: others wait for it, but not for ever. */
BOTH(hello_over_a_path_that_closes)
{
	unsigned i;

	open_n(kind, 2);
	cr_assert_eq(send1(0, &a), 0);
	fake_comp(&f, &a);
	f.core[0]->send_again = FAKE_ALWAYS;
	cr_assert_eq(send1(1, &b), 0);
	fake_quiet(&f);
	cr_expect_null(f.core[1]->sent);
	for (i = 0; i < 10; i++)
		fake_after_ms(&f, 100);
	cr_expect_not_null(f.core[1]->sent);
	fake_comp(&f, &b);
	close_clean();
}

BOTH(spill)
{
	unsigned i;

	open_introduced(kind, 2);
	/* The first path, until more than the in-flight limit is on its way. */
	for (i = 0; i < SPILL / FRAME + 1; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_expect_null(f.core[1]->sent);
	cr_assert_eq(send1(i, &a), 0);
	fake_comp(&f, &a);
	cr_expect_not_null(f.core[1]->sent);
	cr_expect_eq(receive(0, UINT32_MAX), SPILL / FRAME + 1);
	/* The peer has those, except the first by its ack. */
	p.got -= 1;
	ack();
	fake_pass(&f);
	cr_expect_eq(lnx_peer_path_in_flight(inside(), view_path(inside(), 0)), 0u);
	cr_expect_eq(lnx_peer_path_in_flight(inside(), view_path(inside(), 1)), FRAME);
	cr_assert_eq(send1(99, &a), 0);
	fake_comp(&f, &a);
	cr_expect_eq(receive(0, UINT32_MAX), 1u);
	close_clean();
}

/*
 * Another path begins with one frame.  The next one goes there when that is acknowledged, and
 * the application has its completion no sooner: if the core gives up the connection, the frame
 * is sent over another path, for which progress is needed.
 */
BOTH(another_path_opens)
{
	enum { FULL = SPILL / FRAME + 1 };
	unsigned i;

	open_n(kind, 2);
	cr_assert_eq(send1(1000, &a), 0);
	fake_comp(&f, &a);
	settle();
	memset(nseen, 0, sizeof(nseen));
	for (i = 0; i < FULL; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_assert_eq(send1(i, &b), 0);
	cr_expect_not_null(f.core[1]->sent);
	fake_quiet(&f);
	for (i = 0; i < 5; i++) {
		cr_assert_eq(send1(FULL + 1 + i, &a), 0);
		fake_comp(&f, &a);
	}
	fake_quiet(&f);
	receive_all();
	cr_expect_eq(nseen[0], FULL + 5);
	cr_expect_eq(nseen[1], 1u);
	ack();
	fake_comp(&f, &b);
	for (i = 0; i < 2 * FULL; i++) {
		cr_assert_eq(send1(100 + i, &a), 0);
		fake_comp(&f, &a);
	}
	receive_all();
	cr_expect_geq(nseen[1], FULL / 2);
	close_clean();
}

/* More is on one path than on the other: the other one is used. */
BOTH(four_paths)
{
	unsigned i;

	open_introduced(kind, 4);
	for (i = 0; i < 200; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	receive_all();
	for (i = 0; i < 4; i++)
		cr_expect(nseen[i] >= 48 && nseen[i] <= 52, "%u on path %u",
			  nseen[i], i);
	close_clean();
}

Test(multipath, one_at_most)
{
	unsigned i;

	fake_conf.max_rails = 1;
	open_introduced(LNX_RAIL_PLAIN, 3);
	cr_expect_eq(view_npath(inside()), 1);
	for (i = 0; i < 100; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_expect_null(f.core[1]->sent);
	cr_expect_null(f.core[2]->sent);
	close_clean();
}

/*
 * An ack that comes with a data frame acknowledges without reporting bytes.  A
 * later report counts these bytes, and they must not be taken for those now on
 * the way.
 */
BOTH(reports_of_what_is_known)
{
	const struct lnx_path *path;
	unsigned i;

	open_introduced(kind, 2);
	path = view_path(inside(), 0);
	from_hello();
	for (i = 0; i < 20; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
		receive_all();
		tag_from(0, p.seq++, i);
		cr_assert_eq(post_recv(buf2, 8, &b), 0);
		fake_comp(&f, &b);
	}
	cr_assert_eq(view_unacked_bytes(inside()), 0u);
	for (i = 0; i < 8; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_assert_eq(lnx_peer_path_in_flight(inside(), path), 8 * FRAME);
	receive(0, 1);			/* one of the frames may be an ACK of ours */
	while (f.core[0]->sent && !nseen[0])
		receive(0, 1);
	i = 8 - (unsigned)((bytes[0] - view_reported(path)) / FRAME);
	ack();
	fake_pass(&f);
	cr_expect_eq(lnx_peer_path_in_flight(inside(), path), i * FRAME);
	close_clean();
}

/* The peer answers the PROBE over the first path with that number of this endpoint, and has
 * all that left before. */
static void answer(unsigned n)
{
	const struct lnx_hdr *asked = &f.core[0]->latencies[n % FAKE_LATENCIES];

	fake_frame_on(&f, &p, 0, (struct lnx_hdr) { .kind = LNX_KIND_PONG, .tag = asked->tag,
		      .data = asked->data, .key = bytes[0] }, NULL, 0);
}

/*
 * The peer gets what was under way on the first path, and answers the PROBE behind it, or the
 * one `behind` PROBEs before that.  Meanwhile another frame leaves: something is always under
 * way.  In steps of so many ms.
 */
static void ask_and_answer(uint64_t tag, unsigned behind, unsigned ms)
{
	unsigned before = f.core[0]->nlatency, i;

	for (i = 0; f.core[0]->nlatency == before; i++) {
		cr_assert_lt(i, 1000u);
		fake_now_ns += ms * LNX_NS_PER_MS;
		fake_pass(&f);
	}
	receive(0, UINT32_MAX);
	cr_assert_eq(send1(tag, &a), 0);
	fake_comp(&f, &a);
	if (before >= behind)
		answer(before - behind);
	fake_pass(&f);
}

/* A frame fails once, and then all leave by calls that have no completion: the peer
 * acknowledges them, so it is not given up when the deadline for failures has passed. */
BOTH(what_is_acknowledged_has_not_failed)
{
	unsigned i;

	open_introduced(kind, 2);
	f.lnx->rail[1]->inject_size = 16384;
	f.core[0]->hold_sends = true;
	cr_assert_eq(send1(1, &a), 0);
	fake_comp(&f, &a);
	fake_finish(f.core[0], 0, FI_EIO);
	fake_passes(&f, 2);
	settle();
	for (i = 0; i < 80; i++) {
		cr_assert_eq(fi_tsend(f.ep, buf, 8, NULL, p.addr, i, &a), 0);
		settle();
		fake_comp(&f, &a);
		fake_after_ms(&f, 500);
	}
	f.core[0]->send_again = f.core[1]->inject_again = 1;
	cr_assert_eq(fi_tsend(f.ep, buf, 8, NULL, p.addr, i, &a), 0);
	fake_after_ms(&f, 100);
	receive_all();
	ack();
	fake_comp(&f, &a);
	cr_expect(!lnx_peer_dead(inside()));
	f.core[0]->hold_sends = false;
	for (i = 0; i < 3; i++) {
		fake_finish_all(f.core[0]);
		fake_pass(&f);
	}
	close_clean();
}

/* Bytes of the first path that were lost with a connection. */
static uint64_t lost;

/* No byte counts as delivered that is under way, and at most so many others do not. */
static void expect_delivered(uint64_t slack)
{
	const struct lnx_path *path = view_path(inside(), 0);

	cr_expect_leq(view_delivered(path), bytes[0] + lost);
	cr_expect_geq(view_delivered(path) + slack, bytes[0] + lost);
}

static void send_n(unsigned n)
{
	while (n--) {
		cr_assert_eq(send1(n, &a), 0);
		fake_comp(&f, &a);
	}
}

/* 8 frames leave, the peer gets all but the last n, and 6 of those that it gets come over
 * another path after their connection was lost. */
static void lose(unsigned n)
{
	lost = 6 * FRAME;
	send_n(8);
	receive(0, 8 - n);
	cr_assert_geq(bytes[0], 7 * FRAME);
	bytes[0] -= lost;
}

/*
 * What is lost with a connection is sent again over another path, and never reported.  It
 * counts as under way until a PROBE behind it is answered, no longer: else the path would
 * look busier for ever.
 */
static void lose_and_answer(unsigned behind, unsigned ms)
{
	unsigned i;

	lose(1);
	ack();
	fake_pass(&f);
	expect_delivered(6 * FRAME);
	for (i = 0; i < 6; i++)
		ask_and_answer(8 + i, behind, ms);
	expect_delivered(FRAME);
	close_clean();
}

BOTH(what_is_lost_is_not_in_flight)
{
	open_introduced(kind, 2);
	lose_and_answer(0, 1);
}

/* The next PROBE leaves before the last one is answered. */
BOTH(what_is_lost_on_a_long_way)
{
	open_introduced(kind, 2);
	lose_and_answer(1, 1);
}

/* Each answer comes after a time without a look. */
BOTH(what_is_lost_while_polls_are_rare)
{
	open_introduced(kind, 2);
	lose_and_answer(0, 30);
}

/* An answer tells how much came; the report behind it says the same once more. */
BOTH(reports_that_come_late)
{
	unsigned i;

	open_introduced(kind, 2);
	lost = 0;
	send_n(6);
	receive(0, 5);
	for (i = 0; i < 3; i++) {
		ask_and_answer(8 + i, 0, 1);
		expect_delivered(FRAME);
	}
	ack();
	fake_pass(&f);
	expect_delivered(0);
	send_n(2);
	expect_delivered(0);
	close_clean();
}

/* What was lost before all was acknowledged takes nothing off later reports. */
BOTH(reports_after_a_loss)
{
	unsigned i;

	open_introduced(kind, 2);
	lose(0);
	/* Acknowledged without a report. */
	tag_from(0, p.seq++, 1);
	fake_pass(&f);
	cr_assert_eq(view_unacked_bytes(inside()), 0u);
	expect_delivered(0);
	for (i = 0; i < 4; i++)
		ask_and_answer(20 + i, 0, 1);
	send_n(2);
	receive(0, 1);
	ack();
	fake_pass(&f);
	expect_delivered(FRAME);
	close_clean();
}

BOTH(hostile_reports)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 8, 9, 255, 1ull << 32, UINT64_MAX, INT64_MAX,
		1ull << 63,
	};
	const struct lnx_peer *peer;
	unsigned i, k, n = LNX_ARRAY_SIZE(odd);

	open_introduced(kind, 2);
	peer = inside();
	for (i = 0; i < n * n; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
		fake_frame(&f, &p, report((unsigned)odd[i % n], odd[i / n],
					  (unsigned)odd[(i + 1) % n],
					  odd[(i * 5 + 3) % n]), NULL, 0);
		/* The ACK as it is on the wire. */
		fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_ACK,
			   .tag = odd[i / n], .data = odd[i % n],
			   .len = odd[(i + 2) % n], .key = odd[i % 7] },
			   NULL, 0);
		fake_pass(&f);
		for (k = 0; k < view_npath(peer); k++)
			cr_assert_leq(view_delivered(view_path(peer, k)),
				      view_sent(view_path(peer, k)));
		if (i % 10 == 9) {
			receive_all();
			fake_ack(&f, &p);
			fake_pass(&f);
		}
	}
	for (k = 2; k < LNX_PATHS_MAX; k++)
		cr_expect_null(view_path(peer, k));
	settle();
	for (i = 0; i < view_next(peer); i++)
		cr_expect_eq(seen[i], 1u, "%u: %u times", i, seen[i]);
	close_clean();
}

/* ---- sent frames: paths that are closed ---- */

static void one_closed(enum lnx_rail_kind kind, unsigned closed)
{
	unsigned i;

	open_introduced(kind, 2);
	f.core[closed]->send_again = FAKE_ALWAYS;
	for (i = 0; i < 300; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
		cr_expect_null(f.core[closed]->sent);
		if (i % 50 == 49) {
			receive_all();
			ack();
			fake_after_ms(&f, 100);
		}
	}
	settle();
	cr_expect_eq(view_next(inside()), 302u);
	for (i = 0; i < view_next(inside()); i++) {
		cr_expect_eq(seen[i], 1u, "%u: %u times", i, seen[i]);
		if (i > 1)
			cr_expect_eq(tags[i], i - 2);
	}
	cr_expect_eq(nseen[closed], 0u);
	/* The path opens. */
	f.core[closed]->send_again = 0;
	fake_after_ms(&f, 100);
	force_proven(inside());
	for (i = 0; i < 100; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	cr_expect_not_null(f.core[closed]->sent);
	close_clean();
}

BOTH(first_path_closed) { one_closed(kind, 0); }
BOTH(second_path_closed) { one_closed(kind, 1); }

BOTH(all_closed)
{
	char ctx[5];
	unsigned i, n;
	struct fake_sent *out;
	uint64_t sid;
	int nerr = 0;

	fake_conf.connect_timeout = 1000;
	open_introduced(kind, 3);
	for (i = 0; i < 3; i++)
		f.core[i]->send_again = FAKE_ALWAYS;
	for (i = 0; i < 5; i++)
		cr_assert_eq(send1(i, &ctx[i]), 0);
	for (i = 0; i < 9; i++)
		fake_after_ms(&f, 100);
	fake_quiet(&f);
	for (i = 0; i < 20; i++)
		fake_after_ms(&f, 100);
	for (n = 0; n < 5; n++) {
		struct fi_cq_err_entry e = { 0 };

		cr_assert_eq(fi_cq_readerr(f.cq, &e, 0), 1);
		cr_expect_eq(e.op_context, &ctx[n]);
		nerr += e.err == FI_ETIMEDOUT;
	}
	cr_expect_eq(nerr, 5);
	fake_quiet(&f);
	/* Long ago by now: it is tried again, in another session. */
	for (i = 0; i < 3; i++)
		f.core[i]->send_again = 0;
	sid = view_sid(inside());
	cr_expect_eq(send1(9, &a), 0);
	cr_expect_neq(view_sid(inside()), sid);
	for (i = n = 0; i < 3; i++)
		while ((out = fake_take(f.core[i]))) {
			n += out->h.kind == LNX_KIND_HELLO &&
			     out->h.src == view_sid(inside());
			free(out);
		}
	cr_expect_eq(n, 1u);
	fake_close(&f);
}

/* One path is closed for good; the other refuses for a moment a frame that must
 * leave. */
BOTH(busy_is_not_dead)
{
	unsigned i;
	ssize_t ret;

	fake_conf.connect_timeout = 300;
	open_introduced(kind, 2);
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 6; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_after_ms(&f, 100);
		fake_comp(&f, &a);
		receive_all();
		ack();
	}
	from_hello();
	f.core[1]->inject_again = 1;	/* refuses our ACK */
	fake_after_ms(&f, 1);
	cr_expect_eq(f.core[1]->inject_again, 0u);
	cr_expect_neq(view_state(view_path(inside(), 1)), LNX_PATH_UP);
	fake_now_ns += 20 * LNX_NS_PER_MS;
	for (i = 0; i < 50; i++) {
		ret = fi_tinject(f.ep, buf, 100, p.addr, 7);
		if (!ret)
			break;
		cr_assert_eq(ret, -FI_EAGAIN, "%zd", ret);
		fake_after_ms(&f, 1);
	}
	cr_expect_eq(ret, 0);
	cr_expect(!lnx_peer_dead(inside()));
	close_clean();
}

BOTH(core_error)
{
	unsigned i;

	open_introduced(kind, 2);
	f.core[0]->hold_sends = true;
	for (i = 0; i < 5; i++)
		cr_assert_eq(send1(i, &a), 0);
	/* The connection breaks, and the peer has received none of them. */
	f.core[0]->send_again = FAKE_ALWAYS;
	while (f.core[0]->sent)
		free(fake_take(f.core[0]));
	for (i = 0; i < 5; i++)
		fake_finish(f.core[0], 0, FI_EIO);
	for (i = 0; i < 5; i++)
		fake_comp(&f, &a);
	fake_passes(&f, 4);
	cr_expect_eq(receive(1, UINT32_MAX), 5u);
	for (i = 2; i < 7; i++) {
		cr_expect_eq(seen[i], 1u);
		cr_expect_eq(tags[i], i - 2);
	}
	f.core[0]->send_again = 0;
	f.core[0]->hold_sends = false;
	close_clean();
}

/* A path that accepts all frames and sends none is avoided for longer each time. */
BOTH(path_that_fails_all)
{
	unsigned i;

	open_introduced(kind, 2);
	f.core[0]->send_fails = FAKE_ALWAYS;
	for (i = 0; i < 200; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_after_ms(&f, 10);
		while (f.core[0]->sent)
			free(fake_take(f.core[0]));
		receive(1, UINT32_MAX);
		ack();
		fake_comp(&f, &a);
	}
	cr_expect_eq(p.got, view_next(inside()));
	cr_expect_leq(f.core[0]->nsend, 20u, "%u", f.core[0]->nsend);
	f.core[0]->send_fails = 0;
	for (i = 0; i < 20; i++) {
		fake_after_ms(&f, 100);
		cr_assert_eq(send1(i, &a), 0);
		receive_all();
		ack();
		fake_comp(&f, &a);
	}
	cr_expect_gt(nseen[0], 5u);
	close_clean();
}

/* ---- frames acknowledged while they are posted again ---- */

static void ack_now(void)
{
	for (unsigned i = 0; i < nrail; i++)
		f.core[i]->in_inject = NULL;
	ack();
}

static void acked_in_inject(bool refuse)
{
	unsigned i;

	open_with(LNX_RAIL_PEER, 2, (struct fake_opt) { .inject_size = 8192 });
	introduce();
	cr_assert_eq(send1(7, &a), 0);
	fake_comp(&f, &a);
	receive_all();
	for (i = 0; i < 2; i++)
		f.core[i]->in_inject = ack_now;
	f.core[0]->inject_again = refuse;
	fake_after_ms(&f, 1);
	/* No PROBE is answered, so the oldest frame is sent again after 1.5 s. */
	for (i = 0; i < 20; i++)
		fake_after_ms(&f, 100);
	cr_expect_null(f.core[0]->in_inject);
	cr_expect_eq(view_acked(inside()), view_next(inside()));
	receive_all();
	cr_expect_eq(seen[2], refuse ? 1u : 2u, "%u", seen[2]);
	close_clean();
}

/* A core returns EAGAIN during a pass, so the noted time is later than that of
 * the pass. */
Test(multipath, blocked_just_now_is_not_for_long)
{
	struct lnx_peer *peer;
	unsigned i;

	open_n(LNX_RAIL_PLAIN, 2);
	cr_assert_eq(send1(0, &a), 0);
	fake_comp(&f, &a);
	peer = inside();
	for (i = 0; i < view_npath(peer); i++)
		force_since(view_path(peer, i), fake_now_ns + 1);
	cr_expect_not(lnx_backoff_all_for(peer, fake_now_ns, LNX_NS_PER_S));
	cr_expect(lnx_backoff_all_for(peer, fake_now_ns + 2 * LNX_NS_PER_S,
				    LNX_NS_PER_S));
	for (i = 0; i < view_npath(peer); i++)
		force_since(view_path(peer, i), 0);
	fake_close(&f);
}

/* A rail that is closed for now must not prevent a sleep. */
Test(multipath, closed_rail_wants_no_buffers)
{
	struct fid_ep *core;

	open_n(LNX_RAIL_PLAIN, 2);
	core = f.lnx->rail[0]->core_ep;
	f.lnx->rail[0]->core_ep = NULL;
	force_work(f.lnx, LNX_WORK_BUFS);
	fake_pass(&f);
	cr_expect_eq(view_work(f.lnx, LNX_WORK_BUFS), 0);
	f.lnx->rail[0]->core_ep = core;
	fake_close(&f);
}


Test(multipath, acked_in_a_call_that_posts) { acked_in_inject(false); }
Test(multipath, acked_in_a_call_that_refuses) { acked_in_inject(true); }

/* ---- received frames ---- */

BOTH(out_of_order)
{
	char ctx[10];
	uint64_t got[10];
	unsigned i;

	open_met(kind, 2);
	for (i = 0; i < 10; i++)
		cr_assert_eq(post_recv(&got[i], 8, &ctx[i]), 0);
	for (i = 0; i < 5; i++)
		tag_from(1, 2 + 2 * i, 2 * i + 1);
	fake_quiet(&f);
	for (i = 0; i < 5; i++)
		tag_from(0, 1 + 2 * i, 2 * i);
	p.seq += 10;
	for (i = 0; i < 10; i++) {
		cr_expect_eq(fake_comp(&f, &ctx[i]).tag, i);
		cr_expect_eq(got[i], i);
	}
	fake_quiet(&f);
	fake_after_ms(&f, 1);
	receive_all();
	cr_expect_eq(acked, 11u);
	cr_expect_eq(reported[0], 5 * (HDR + 8) + HDR + LNX_ADDR_BYTES);
	cr_expect_eq(reported[1], 5 * (HDR + 8));
	/* Data frames in the other direction carry acks; reports are sent all
	 * the same. */
	introduce();
	for (i = 0; i < 4; i++) {
		tag_from(i & 1, p.seq++, i);
		cr_assert_eq(post_recv(&got[i], 8, &b), 0);
		fake_comp(&f, &b);
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	fake_after_ms(&f, 1);
	receive_all();
	cr_expect_eq(reported[0], 7 * (HDR + 8) + HDR + LNX_ADDR_BYTES);
	cr_expect_eq(reported[1], 7 * (HDR + 8));
	close_clean();
}

/* A frame that asks for its acknowledgement comes before the one in front of it: it is asked
 * for all the same. */
BOTH(early_frame_wants_its_ack)
{
	char ctx[4];
	unsigned i;

	fake_conf.ack_delay = 1000000;
	open_met(kind, 2);
	for (i = 0; i < 4; i++)
		cr_assert_eq(post_recv(buf2, 8, &ctx[i]), 0);
	tag_from(0, 1, 0);
	tag_from(1, 2, 1);
	fake_comp(&f, &ctx[0]);
	fake_comp(&f, &ctx[1]);
	fake_passes(&f, 4);
	receive_all();
	cr_expect_lt(acked, 3u, "nothing asks for it");
	from(1, 4, (struct lnx_hdr) { .kind = LNX_KIND_TAG, .tag = 3, .len = 8,
				      .flags = LNX_WIRE_F_ACK_NOW }, mem, 8);
	fake_quiet(&f);
	tag_from(0, 3, 2);
	p.seq += 4;
	fake_pass(&f);
	receive_all();
	cr_expect_eq(acked, 5u);
	fake_comp(&f, &ctx[2]);
	fake_comp(&f, &ctx[3]);
	close_clean();
}

/* The path for acks is blocked: acks use the other path, even if no data is sent. */
BOTH(acks_take_what_is_open)
{
	unsigned i, n;

	open_met(kind, 2);
	f.core[0]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 10; i++) {
		cr_assert_eq(post_recv(buf2, 8, &b), 0);
		tag_from(0, p.seq++, i);
		fake_comp(&f, &b);
		for (n = 0; n < 4; n++)
			fake_after_ms(&f, 5);
		receive_all();
		cr_expect_eq(acked, p.seq);
	}
	cr_expect_eq(nacks[0], 0u);
	cr_expect_geq(nacks[1], 10u);
	f.core[0]->inject_again = 0;
	close_clean();
}

/* One path was blocked for a long time, and the other one refuses for a moment. */
BOTH(acks_are_not_given_up)
{
	unsigned i;

	open_met(kind, 2);
	introduce();
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 30; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_after_ms(&f, 100);
		fake_comp(&f, &a);
		receive_all();
		ack();
	}
	f.core[1]->inject_again = 1;
	cr_assert_eq(post_recv(buf2, 8, &b), 0);
	tag_from(0, p.seq++, 1);
	fake_comp(&f, &b);
	for (i = 0; i < 20; i++)
		fake_after_ms(&f, 5);
	receive_all();
	cr_expect_eq(acked, p.seq);
	f.core[0]->send_again = f.core[0]->inject_again = 0;
	close_clean();
}

/* An ACK that was refused has reported nothing. */
BOTH(acks_that_are_refused)
{
	unsigned i;

	open_met(kind, 2);
	fake_after_ms(&f, 1);
	receive_all();
	f.core[0]->inject_again = f.core[1]->inject_again = 2;
	for (i = 0; i < 4; i++) {
		cr_assert_eq(post_recv(buf2, 8, &b), 0);
		tag_from(i & 1, p.seq++, i);
		fake_comp(&f, &b);
	}
	for (i = 0; i < 10; i++)
		fake_after_ms(&f, 5);
	receive_all();
	cr_expect_eq(acked, p.seq);
	cr_expect_eq(reported[0], 2 * (HDR + 8) + HDR + LNX_ADDR_BYTES);
	cr_expect_eq(reported[1], 2 * (HDR + 8));
	close_clean();
}

/* ---- large messages ---- */

/* A large message is received, in so many passes at most. */
static void pulled(uint8_t *to, size_t len, void *context, unsigned passes)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = -FI_EAGAIN;

	while (passes-- && ret == -FI_EAGAIN) {
		fake_after_ms(&f, 1);
		ret = fi_cq_read(f.cq, &e, 1);
	}
	cr_assert_eq(ret, 1, "%zd", ret);
	cr_expect_eq(e.op_context, context);
	cr_expect_eq(e.len, len);
	cr_expect_eq(memcmp(to, mem, len), 0);
	if (len < LARGE)
		cr_expect_eq(to[len], 0xee);
}

BOTH(pieces_over_all_paths)
{
	unsigned i;

	for (i = 2; i <= 4; i++) {
		memset(seen, 0, sizeof(seen));
		memset(bytes, 0, sizeof(bytes));
		open_met(kind, i);
		cr_assert_eq(post_recv(buf, LARGE, &a), 0);
		rts_from(1, 5, LARGE - 3, 0xf);
		pulled(buf, LARGE - 3, &a, 1000);
		while (--nrail)
			cr_expect_gt(f.core[nrail]->nread, 2u);
		cr_expect_gt(f.core[0]->nread, 2u);
		nrail = i;
		close_clean();
	}
}

/* Rules of the sender leave one path: also while it takes nothing more. */
BOTH(sender_wants_one_path)
{
	open_met(kind, 3);
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_that_wants(1, 5, LARGE - 3, 7, 2);
	pulled(buf, LARGE - 3, &a, 1000);
	cr_expect_eq(f.core[0]->nread, 0u);
	cr_expect_eq(f.core[2]->nread, 0u);
	close_clean();
}

/* Another message, which may use all, is not kept from that. */
BOTH(sender_wants_one_path_for_one)
{
	struct fi_cq_tagged_entry e[3];

	open_met(kind, 2);
	f.core[0]->hold_reads = f.core[1]->hold_reads = true;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	cr_assert_eq(post_recv(buf2, LARGE, &b), 0);
	rts_that_wants(1, 5, 1000001, 3, 2);
	rts_from(1, 6, 1000001, 3);
	fake_passes(&f, 3);
	cr_expect_gt(f.core[0]->nread, 0u);
	cr_expect_gt(f.core[1]->nread, 0u);
	f.core[0]->hold_reads = f.core[1]->hold_reads = false;
	fake_finish_all(f.core[0]);
	fake_finish_all(f.core[1]);
	fake_passes(&f, 500);
	cr_expect_eq(fi_cq_read(f.cq, e, 3), 2);
	close_clean();
}

/* It does not work, or there is none: then another one is better than none. */
BOTH(sender_wants_a_path_that_fails)
{
	open_met(kind, 2);
	f.core[1]->read_fails = FAKE_ALWAYS;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_that_wants(1, 5, 1000001, 3, 2);
	pulled(buf, 1000001, &a, 1000);
	cr_expect_gt(f.core[0]->nread, 0u);
	f.core[1]->read_fails = 0;
	memset(buf, 0xee, sizeof(buf));
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_that_wants(1, 6, 1000001, 3, 1 << FAKE_RAILS);
	pulled(buf, 1000001, &a, 1000);
	close_clean();
}

BOTH(one_path_takes_no_reads)
{
	unsigned i;

	open_met(kind, 2);
	for (i = 0; i < 2; i++) {
		memset(buf, 0xee, sizeof(buf));
		f.core[i]->read_again = FAKE_ALWAYS;
		f.core[!i]->nread = 0;
		cr_assert_eq(post_recv(buf, LARGE, &a), 0);
		rts_from(1, 5, 1000001, 3);
		pulled(buf, 1000001, &a, 1000);
		f.core[i]->read_again = 0;
		cr_expect_gt(f.core[!i]->nread, 0u);
	}
	close_clean();
}

BOTH(one_path_fails_reads)
{
	unsigned i;

	open_met(kind, 2);
	for (i = 0; i < 2; i++) {
		memset(buf, 0xee, sizeof(buf));
		f.core[i]->read_fails = FAKE_ALWAYS;
		cr_assert_eq(post_recv(buf, LARGE, &a), 0);
		rts_from(1, 5, 1000001, 3);
		pulled(buf, 1000001, &a, 1000);
		f.core[i]->read_fails = 0;
		cr_expect_gt(f.lnx->stats.core_errors, 0u);
	}
	close_clean();
}

BOTH(key_for_one_path)
{
	open_met(kind, 3);
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, 1000001, 2);
	pulled(buf, 1000001, &a, 1000);
	cr_expect_eq(f.core[0]->nread, 0u);
	cr_expect_gt(f.core[1]->nread, 0u);
	cr_expect_eq(f.core[2]->nread, 0u);
	close_clean();
}

BOTH(key_for_no_path)
{
	open_met(kind, 2);
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, 1000001, 1 << FAKE_RAILS);
	fake_pass(&f);
	fake_err(&f, &a, FI_ENOKEY);
	cr_expect_eq(buf[0], 0xee);
	close_clean();
}

/* A message that waits for a path does not keep another from using the other paths. */
BOTH(others_have_other_keys)
{
	struct fi_cq_tagged_entry e[3];

	open_met(kind, 2);
	f.core[0]->hold_reads = f.core[1]->hold_reads = true;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	cr_assert_eq(post_recv(buf2, LARGE, &b), 0);
	rts_from(1, 5, 1000001, 2);
	rts_from(1, 6, 1000001, 3);
	fake_passes(&f, 3);
	cr_expect_gt(f.core[0]->nread, 0u);
	cr_expect_gt(f.core[1]->nread, 0u);
	f.core[0]->hold_reads = f.core[1]->hold_reads = false;
	fake_finish_all(f.core[0]);
	fake_finish_all(f.core[1]);
	fake_passes(&f, 500);
	cr_expect_eq(fi_cq_read(f.cq, e, 3), 2);
	cr_expect_eq(memcmp(buf, mem, 1000001), 0);
	cr_expect_eq(memcmp(buf2, mem, 1000001), 0);
	close_clean();
}

BOTH(no_memory_for_pieces)
{
	unsigned i;

	open_met(kind, 2);
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, 1000001, 3);
	no_aligned = true;
	for (i = 0; i < 20; i++)
		fake_quiet(&f);
	no_aligned = false;
	pulled(buf, 1000001, &a, 1000);
	close_clean();
}

/* The peer closes while pieces are outstanding. */
BOTH(peer_goes)
{
	unsigned i;

	open_met(kind, 2);
	f.core[0]->hold_reads = f.core[1]->hold_reads = true;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE, 3);
	fake_passes(&f, 4);
	cr_assert(fake_held(f.core[0]) && fake_held(f.core[1]));
	cr_assert_eq(fi_av_remove(f.av, &p.addr, 1, 0), 0);
	cr_assert_eq(view_npath(inside()), 2);
	lnx_lock(&f.lnx->lock);
	lnx_rel_peer_failed(inside(), FI_ECONNRESET);
	lnx_unlock(&f.lnx->lock);
	fake_quiet(&f);			/* the core may still write there */
	for (i = 0; i < 2; i++)
		while (fake_held(f.core[i]))
			fake_finish(f.core[i], 0, i ? FI_EIO : 0);
	fake_passes(&f, 2);
	fake_err(&f, &a, FI_ECONNRESET);
	close_clean();
}

BOTH(endpoint_goes)
{
	open_met(kind, 2);
	f.core[0]->hold_reads = f.core[1]->hold_reads = true;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE, 3);
	fake_passes(&f, 4);
	cr_assert(fake_held(f.core[0]) && fake_held(f.core[1]));
	fake_close(&f);
}

/* ---- remote memory ---- */

/* A write of the peer to our memory, which we pull. */
BOTH(announced_writes)
{
	struct lnx_rma_target place = { .addr = 0, .key = KEY, .len = 1000001 };
	struct lnx_rts rts = { .op = 9, .nseg = 1, .nkey = 2,
			       .seg_len[0] = 1000001 };
	size_t head = sizeof(struct lnx_wire_target);
	uint8_t payload[512];
	struct fid_mr *mr;
	unsigned i;

	open_met(kind, 2);
	cr_assert_eq(fi_mr_reg(&f.domain.fid, buf, LARGE, FI_REMOTE_WRITE, 0,
			       KEY, 0, &mr, NULL), 0);
	for (i = 0; i < 2; i++) {
		rts.key[0][i].rail = (uint16_t)i;
		rts.key[0][i].key = 100;
		rts.key[0][i].addr = BASE;
		fake_region(f.core[i], 100, BASE, mem, sizeof(mem));
	}
	lnx_wire_targets_put(payload, &place, 1);
	lnx_wire_rts_put(payload + head, &rts);
	from(1, p.seq++, (struct lnx_hdr) { .kind = LNX_KIND_PUT_RTS,
	     .tag = 1, .len = 1000001 }, payload, head + lnx_wire_rts_size(&rts));
	fake_passes(&f, 500);
	cr_expect_eq(memcmp(buf, mem, 1000001), 0);
	cr_expect_eq(buf[1000001], 0xee);
	cr_expect_gt(f.core[0]->nread, 1u);
	cr_expect_gt(f.core[1]->nread, 1u);
	settle();
	cr_expect_eq(fi_close(&mr->fid), 0);
	close_clean();
}

/* Wait for our KEYS request and answer it: its id, or 0. */
static uint64_t answer_keys(void)
{
	struct lnx_keys k = { .len = LARGE, .nkey = 2, .access =
			      LNX_WIRE_KEYS_READ | LNX_WIRE_KEYS_WRITE };
	uint8_t payload[256];
	uint64_t id = 0;
	struct fake_sent *s;
	unsigned i;

	for (i = 0; i < 2; i++) {
		k.key[i].rail = (uint16_t)i;
		k.key[i].key = 77;
		k.key[i].addr = BASE;
		if (!f.core[i]->nregion)
			fake_region_rw(f.core[i], 77, BASE, mem, sizeof(mem));
		while ((s = fake_take(f.core[i]))) {
			look_at(i, s);
			if (s->h.kind == LNX_KIND_KEYS)
				id = s->h.data;
			free(s);
		}
	}
	while (seen[p.got])
		p.got++;
	if (!id)
		return 0;
	lnx_wire_keys_put(payload, &k);
	from(0, p.seq++, (struct lnx_hdr) { .kind = LNX_KIND_RESP, .data = id,
	     .len = lnx_wire_keys_size(2) }, payload, lnx_wire_keys_size(2));
	return id;
}

/* Our reads, over two paths, one of which may fail all of them. */
static void remote_reads(enum lnx_rail_kind kind, unsigned failing)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = -FI_EAGAIN;
	size_t len = 3000000;
	unsigned i, k;

	open_met(kind, 2);
	introduce();
	if (failing) {
		/* The other path is slow. */
		fake_conf.chunk = 16384;
		f.core[2 - failing]->hold_reads = true;
		f.core[failing - 1]->read_fails = FAKE_ALWAYS;
	}
	cr_assert_eq(fi_read(f.ep, buf, len, NULL, p.addr, 0, KEY, &c), 0);
	for (i = 0; i < 1000 && ret == -FI_EAGAIN; i++) {
		fake_after_ms(&f, failing ? 20 : 5);
		answer_keys();
		ack();
		for (k = 0; failing && k < 2; k++)
			if (fake_held(f.core[2 - failing]))
				fake_finish(f.core[2 - failing], 0, 0);
		ret = fi_cq_read(f.cq, &e, 1);
	}
	cr_assert_eq(ret, 1, "%zd", ret);
	cr_expect_eq(e.op_context, &c);
	cr_expect_eq(memcmp(buf, mem, len), 0);
	for (i = 0; i < 2; i++)
		cr_expect_gt(f.core[i]->nread, 0u);
	close_clean();
}

/*
 * A core may write to the peer's memory over a path that is DOWN, much later,
 * and overwrite what others wrote meanwhile.  So with several paths the peer
 * reads the data of a write.
 */
BOTH(writes_over_several_paths_are_read)
{
	struct fake_sent *s;
	unsigned i, n = 0;

	open_met(kind, 2);
	introduce();
	cr_assert_eq(fi_write(f.ep, buf, 65536, NULL, p.addr, 0, KEY, &c), 0);
	fake_after_ms(&f, 1);
	for (i = 0; i < 2; i++) {
		while ((s = fake_take(f.core[i]))) {
			look_at(i, s);
			n += s->h.kind == LNX_KIND_PUT_RTS;
			free(s);
		}
		cr_expect_eq(f.core[i]->nwrite, 0u);
	}
	cr_expect_eq(n, 1u);
	fake_close(&f);
}
BOTH(reads_of_remote_memory) { remote_reads(kind, 0); }
BOTH(one_path_fails_remote_reads) { remote_reads(kind, 2); }

/* ---- random events ---- */

static uint64_t rnd_state;

static unsigned rnd(unsigned n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((rnd_state >> 33) % n);
}

static uint64_t take_seed(void)
{
	const char *given = getenv("LNX_SEED");
	uint64_t seed = 0;
	int fd;

	if (given)
		return strtoull(given, NULL, 0);
	fd = open("/dev/urandom", O_RDONLY);
	cr_assert(fd >= 0 && read(fd, &seed, sizeof(seed)) == sizeof(seed));
	close(fd);
	return seed;
}

#define ROUNDS	2000u

static uint32_t sent_n, recv_n, arrived_n;
static uint32_t order[MANY];

/* The core accepts, refuses, fails, and completes. */
static void disturb(void)
{
	unsigned i = rnd(nrail), k;
	struct fake_core *core = f.core[i];

	switch (rnd(8)) {
	case 0:
		core->send_again = rnd(4);
		break;
	case 1:
		core->inject_again = rnd(3);
		break;
	case 2:
		core->hold_sends = !core->hold_sends;
		break;
	case 3:
		/* The connection breaks: what the core holds fails, and may
		 * have arrived. */
		if (fake_held(core) && rnd(2))
			while (core->sent)
				free(fake_take(core));
		for (k = rnd(4); k && fake_held(core); k--)
			fake_finish(core, 0, FI_EIO);
		break;
	case 4:
		core->send_fails = rnd(2);
		break;
	default:
		for (k = rnd(8); k && fake_held(core); k--)
			fake_finish(core, rnd(fake_held(core)), 0);
	}
}

/* Frames of the peer arrive, numbered in order[], in order on each path. */
static void come(unsigned n)
{
	for (; n && arrived_n < recv_n; n--) {
		unsigned k = arrived_n + rnd(LNX_MIN(recv_n - arrived_n, 8u));
		uint32_t seq = order[k];

		order[k] = order[arrived_n];
		order[arrived_n++] = seq;
		tag_from(rnd(nrail), seq, seq);
		if (!rnd(20))
			tag_from(rnd(nrail), seq, seq);
	}
}

BOTH(at_random)
{
	static uint8_t comp[MANY];
	static char ctx[MANY];
	struct fi_cq_tagged_entry e;
	uint32_t next_tag = 1;
	unsigned i, r;

	rnd_state = take_seed();
	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", rnd_state,
		rnd_state);
	fake_conf.window = 64;
	fake_conf.connect_timeout = 1000000;
	open_with(kind, 2 + rnd(3), (struct fake_opt) {
		  .inject_size = rnd(2) ? 256 : 0 });
	from_hello();
	recv_n = arrived_n = 1;
	memset(comp, 0, sizeof(comp));
	for (r = 0; r < ROUNDS; r++) {
		switch (rnd(6)) {
		case 0:
			for (i = rnd(12); i; i--) {
				uint64_t tag = sent_n + 1;
				ssize_t ret;

				ret = fi_tsend(f.ep, buf, rnd(3) ? rnd(200) :
					       rnd(16000), NULL, p.addr, tag,
					       &ctx[sent_n]);
				cr_assert(!ret || ret == -FI_EAGAIN);
				sent_n += !ret;
			}
			break;
		case 1:
			for (i = rnd(12); i; i--) {
				cr_assert_eq(post_recv(buf2, 8, ctx), 0);
				order[recv_n] = recv_n;
				recv_n++;
			}
			break;
		case 2:
			come(rnd(8));
			break;
		case 3:
			receive(rnd(nrail), rnd(20));
			break;
		case 4:
			rnd(2) ? ack() : fake_ack(&f, &p);
			break;
		default:
			disturb();
		}
		if (rnd(2))
			fake_pass(&f);
		else if (!rnd(10))
			fake_after_ms(&f, rnd(100));
		cr_assert_lt(sent_n + 100, MANY);
		cr_assert_lt(recv_n + 100, MANY);
		while (fi_cq_read(f.cq, &e, 1) == 1) {
			if (e.flags & FI_RECV)
				cr_assert_eq(e.tag, next_tag++);
			else
				comp[(char *)e.op_context - ctx]++;
		}
		if (sent_n > MANY - 200 || recv_n > MANY - 200)
			break;
	}
	for (i = 0; i < nrail; i++) {
		f.core[i]->send_again = f.core[i]->inject_again = 0;
		f.core[i]->send_fails = 0;
		f.core[i]->hold_sends = false;
		fake_finish_all(f.core[i]);
	}
	while (arrived_n < recv_n) {
		come(8);
		fake_pass(&f);
	}
	fake_after_ms(&f, 100);
	settle();
	fake_after_ms(&f, 100);
	while (fi_cq_read(f.cq, &e, 1) == 1) {
		if (e.flags & FI_RECV)
			cr_assert_eq(e.tag, next_tag++);
		else
			comp[(char *)e.op_context - ctx]++;
	}
	cr_expect_eq(next_tag, recv_n);
	cr_expect_eq(view_next(inside()), sent_n + !!sent_n);
	for (i = 0; i < sent_n; i++) {
		cr_assert_eq(comp[i], 1, "%u: %u completions", i, comp[i]);
		cr_assert_eq(tags[i + 1], i + 1, "%u is another", i);
	}
	fake_after_ms(&f, 1);
	settle();
	cr_expect_eq(acked, recv_n);
	close_clean();
}

/* A path of known speed is used for FI_LNX_SPILL of time before the next one. */
BOTH(spill_by_time)
{
	struct lnx_path *path;
	unsigned i;

	open_introduced(kind, 2);
	path = view_path(inside(), 0);
	cr_expect_eq(view_inflight_limit(path), SPILL);
	/* Busy without a pause, 20 frames in 10 ms. */
	for (i = 0; i < 60; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
		fake_now_ns += LNX_NS_PER_MS / 2;
		if (i % 20 != 10)
			continue;
		receive(0, UINT32_MAX);
		p.got -= 1;
		ack();
		fake_pass(&f);
		p.got += 1;
	}
	cr_expect_lt(view_inflight_limit(path), SPILL);
	cr_expect_geq(view_inflight_limit(path), 4096u);
	close_clean();
}

/* FI_LNX_MULTI_RAIL_SELECTION=PER_MSG. */
BOTH(round_robin)
{
	unsigned i;

	fake_conf.multi_rail_selection = LNX_SELECTION_PER_MSG;
	open_introduced(kind, 4);
	for (i = 0; i < 100; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	receive_all();
	for (i = 0; i < 4; i++)
		cr_expect(nseen[i] >= 24 && nseen[i] <= 28, "%u on path %u",
			  nseen[i], i);
	close_clean();
}

/* LNET: the rail with the most credits left, also if other peers have them; equal ones in turn. */
BOTH(most_credits_left)
{
	unsigned i;

	fake_conf.multi_rail_selection = LNX_SELECTION_LNET;
	open_introduced(kind, 3);
	f.lnx->rail[1]->credits.used += 100;
	for (i = 0; i < 40; i++) {
		cr_assert_eq(send1(i, &a), 0);
		fake_comp(&f, &a);
	}
	receive_all();
	cr_expect_leq(nseen[1], 1u);
	cr_expect(nseen[0] >= 18 && nseen[2] >= 18, "%u and %u", nseen[0],
		  nseen[2]);
	f.lnx->rail[1]->credits.used -= 100;
	close_clean();
}

/* A rail that cannot register the buffer is left out; without any rail it is an
 * error. */
/* The rail whose registration fails is left out, and all pieces are announced. */
static void cannot_register(unsigned rail)
{
	static char big[2][20000];
	struct iovec iov[2] = { { big[0], 20000 }, { big[1], 20000 } };
	struct fake_sent *s;
	struct lnx_rts r;

	f.core[rail]->mr_fails = 1;
	cr_assert_eq(fi_sendv(f.ep, iov, NULL, 2, p.addr, &b), 0);
	cr_expect_eq(f.core[rail]->nmr_open, 0);
	cr_expect_eq(f.core[!rail]->nmr_open, 2);
	while ((s = fake_take(f.core[0])) && s->h.kind != LNX_KIND_RTS_MSG)
		free(s);
	cr_assert_not_null(s);
	cr_assert_eq(lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len), 0);
	cr_expect_eq(r.nseg, 2);
	cr_expect_eq(r.nkey, 1);
	cr_expect_eq(r.key[0][0].rail, !rail);
	cr_expect_eq(r.key[1][0].addr, (uintptr_t)big[1]);
	free(s);
	f.core[0]->mr_fails = f.core[1]->mr_fails = FAKE_ALWAYS;
	cr_expect_eq(fi_sendv(f.ep, iov, NULL, 2, p.addr, &b), -FI_ENOMEM);
	cr_expect_eq(f.core[!rail]->nmr_open, 2);
	fake_close(&f);			/* closes the registrations as well */
}

BOTH(the_first_rail_cannot_register)
{
	open_introduced(kind, 2);
	cannot_register(0);
}

BOTH(the_last_rail_cannot_register)
{
	open_introduced(kind, 2);
	cannot_register(1);
}

/* A core takes no read, for another reason than that it is busy: the other one reads. */
BOTH(a_read_that_is_rejected_goes_elsewhere)
{
	open_met(kind, 2);
	f.core[0]->read_again = FAKE_ALWAYS;
	f.core[0]->refuse_err = -FI_ENETUNREACH;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE - 3, 3);
	fake_passes(&f, 400);
	fake_comp(&f, &a);
	cr_expect(!memcmp(buf, mem, LARGE - 3));
	cr_expect_gt(f.core[1]->nread, 0u);
	cr_expect_lt(view_health(view_path(inside(), 0)), LNX_HEALTH_MAX);
	cr_expect_eq(view_health(view_path(inside(), 1)), LNX_HEALTH_MAX);
	f.core[0]->read_again = 0;
	f.core[0]->refuse_err = 0;
	close_clean();
}

/* The message has been read.  It took long: the sender has to confirm. */
static void confirmed(void)
{
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	cr_expect(!memcmp(buf, mem, LARGE - 3));
}

/* With one path it is tried again, for as long as reads may fail. */
BOTH(a_read_that_is_rejected_is_tried_again)
{
	unsigned i;

	open_met(kind, 1);
	f.core[0]->read_again = 3;
	f.core[0]->refuse_err = -FI_ENETUNREACH;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE - 3, 1);
	for (i = 0; i < 4; i++)
		fake_after_ms(&f, 100);
	fake_passes(&f, 400);
	confirmed();
	close_clean();
}

/* A large message is read over two paths; only the first one's reads end, at once. */
static void read_over_one(unsigned rounds)
{
	f.core[0]->hold_reads = f.core[1]->hold_reads = true;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE - 3, 3);
	fake_passes(&f, 4);
	while (rounds--) {
		fake_finish_all(f.core[0]);
		fake_now_ns += 100 * LNX_NS_PER_US;
		fake_passes(&f, 2);
	}
}

/* Until the path has a read again.  Nothing happens meanwhile, but that time passes. */
static unsigned idle_ms(void)
{
	unsigned ms;

	for (ms = 0; ms < 200 && !fake_held(f.core[0]); ms++) {
		fake_now_ns += LNX_NS_PER_MS;
		fake_passes(&f, 2);
	}
	return ms;
}

static void read_rest(void)
{
	f.core[0]->hold_reads = f.core[1]->hold_reads = false;
	fake_finish_all(f.core[0]);
	fake_finish_all(f.core[1]);
	pulled(buf, LARGE - 3, &a, 1000);
	close_clean();
}

/* The end of the message is left to a path that is thought to be as fast, and hangs. */
BOTH(reads_of_a_path_that_hangs_are_not_waited_for)
{
	open_met(kind, 2);
	read_over_one(20);
	cr_assert(view_pull_left(inside()));
	cr_expect_leq(idle_ms(), 20u);
	read_rest();
}

/* Its core takes no read for a moment: it is asked again though no other read ends. */
BOTH(a_refused_read_is_asked_for_again)
{
	open_met(kind, 2);
	read_over_one(3);
	f.core[0]->read_again = 1;
	fake_now_ns += 100 * LNX_NS_PER_US;
	fake_finish_all(f.core[0]);
	fake_passes(&f, 2);
	/* Reads of another peer may have kept it busy: it is known when it is asked again. */
	cr_expect_leq(idle_ms(), 1u);
	read_rest();
}

/* Scripted time, in which the peer gives signs of life, but nothing else happens. */
static void seconds_pass(unsigned seconds)
{
	unsigned ms;

	for (ms = 0; ms < 1000 * seconds; ms++) {
		fake_now_ns += LNX_NS_PER_MS;
		if (ms % 50 == 0)
			fake_ack(&f, &p);
		fake_passes(&f, 2);
	}
}

/* Each try may be a connection that the other end refuses. */
static void refused_reads_become_rare(enum lnx_rail_kind kind, unsigned paths)
{
	unsigned i, before;

	open_met(kind, paths);
	for (i = 0; i < paths; i++)
		f.core[i]->read_again = FAKE_ALWAYS;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE - 3, paths == 1 ? 1 : 3);
	seconds_pass(4);
	before = f.core[0]->nrefused_reads;
	cr_expect_geq(before, 40u);
	cr_expect_leq(before, 120u, "%u tries in 4 s", before);
	seconds_pass(4);
	before = f.core[0]->nrefused_reads - before;
	cr_expect_geq(before, 3u);
	cr_expect_leq(before, 9u, "%u tries in the next 4 s", before);
	/* They do not stop. */
	for (i = 0; i < paths; i++)
		f.core[i]->read_again = 0;
	seconds_pass(2);
	confirmed();
	close_clean();
}

BOTH(refused_reads_become_rare_with_one_path)
{
	refused_reads_become_rare(kind, 1);
}

BOTH(refused_reads_become_rare_with_two_paths)
{
	refused_reads_become_rare(kind, 2);
}

/* The best paths fail their reads: the others read as much at once as they would. */
BOTH(second_class_paths_read_as_much)
{
	unsigned i, most = 0;

	open_met(kind, 2);
	fake_passes(&f, 2);
	force_stripe(inside(), 1);
	force_read_retry(view_path(inside(), 0), fake_now_ns + 100 * LNX_NS_PER_S);
	f.core[1]->hold_reads = true;
	cr_assert_eq(post_recv(buf, LARGE, &a), 0);
	rts_from(1, 5, LARGE - 3, 3);
	for (i = 0; i < 200; i++) {
		fake_passes(&f, 3);
		most = LNX_MAX(most, fake_held(f.core[1]));
		fake_now_ns += 100 * LNX_NS_PER_US;
		fake_finish_all(f.core[1]);
	}
	cr_expect_geq(most, 2u);
	force_read_retry(view_path(inside(), 0), 0);
	f.core[1]->hold_reads = false;
	pulled(buf, LARGE - 3, &a, 1000);
	close_clean();
}

/* A path at 20 KB/s is tried again: a piece that keeps its message for 0.8 s, each 16 s. */
BOTH(a_very_slow_path_is_tried_rarely)
{
	static const unsigned rest_s[] = { 2, 10, 20 };
	struct lnx_path *slow;
	unsigned i, n;

	open_met(kind, 2);
	for (i = 0; i < LNX_ARRAY_SIZE(rest_s); i++) {
		read_over_one(3);
		f.core[0]->hold_reads = f.core[1]->hold_reads = false;
		fake_finish_all(f.core[0]);
		fake_finish_all(f.core[1]);
		pulled(buf, LARGE - 3, &a, 1000);
		slow = view_path(inside(), 1);
		force_read_rate(slow, 20000, true, fake_now_ns);
		fake_now_ns += rest_s[i] * LNX_NS_PER_S;
		n = f.core[1]->nread;
		read_over_one(1);
		cr_expect_eq(f.core[1]->nread - n > 0, rest_s[i] > 16, "after %u s: %u",
			     rest_s[i], f.core[1]->nread - n);
		f.core[0]->hold_reads = f.core[1]->hold_reads = false;
		fake_finish_all(f.core[0]);
		fake_finish_all(f.core[1]);
		pulled(buf, LARGE - 3, &a, 1000);
	}
	close_clean();
}

/* ---- many large messages ---- */

#define LINE	60u
#define LINE_BYTES	300000u

/* Many are in line for all paths. */
static void line_up(enum lnx_rail_kind kind, char context[LINE], size_t bytes)
{
	unsigned i;

	open_met(kind, 2);
	f.core[0]->hold_reads = f.core[1]->hold_reads = true;
	for (i = 0; i < LINE; i++) {
		cr_assert_eq(post_recv(buf, bytes, &context[i]), 0);
		rts_from(1, 5 + i, bytes, 3);
		fake_passes(&f, 2);
	}
	cr_assert_eq(view_pulls(f.lnx), LINE);
}

/* All of them come, piece by piece; so many pieces. */
static unsigned line_ends(size_t bytes)
{
	struct fi_cq_tagged_entry e[LINE];
	unsigned i, n = 0, ends = 0;
	ssize_t got;

	for (i = 0; i < 5000 && n < LINE; i++) {
		unsigned rail = i & 1;

		if (!fake_held(f.core[rail]))
			rail = !rail;
		if (fake_held(f.core[rail])) {
			fake_finish(f.core[rail], 0, 0);
			ends++;
		}
		if (!(i % 32)) {
			receive_all();
			ack();
		}
		fake_now_ns += 100 * LNX_NS_PER_US;
		fake_passes(&f, 2);
		got = fi_cq_read(f.cq, e, LINE);
		if (got > 0)
			n += (unsigned)got;
	}
	cr_expect_eq(n, LINE);
	cr_expect_eq(memcmp(buf, mem, bytes), 0);
	return ends;
}

/* When the only piece of one ends, the next one in line is read at once: not when the paths are
 * looked at, which is 2 ms later. */
BOTH(the_end_of_a_piece_is_room_for_others)
{
	enum { BYTES = 60000 };
	static char context[LINE];
	unsigned i, held = 0;

	line_up(kind, context, BYTES);
	for (i = 0; i < 16; i++) {
		/* The first ones show how much is to be under way. */
		if (i == 8)
			held = fake_held(f.core[0]) + fake_held(f.core[1]);
		fake_now_ns += 50 * LNX_NS_PER_US;
		fake_finish(f.core[i & 1], 0, 0);
		fake_passes(&f, 1);
		if (i >= 8)
			cr_expect_eq(fake_held(f.core[0]) + fake_held(f.core[1]), held);
	}
	line_ends(BYTES);
	close_clean();
}

/* Pieces end: what is behind the first that finds no room is not even looked at, and all come in
 * turn. */
BOTH(messages_in_line_cost_nothing)
{
	static char context[LINE];
	uint64_t before;
	unsigned ends;

	line_up(kind, context, LINE_BYTES);
	before = view_pull_runs(f.lnx);
	ends = line_ends(LINE_BYTES);
	before = view_pull_runs(f.lnx) - before;
	cr_expect_lt(before, 5 * (uint64_t)ends, "%llu runs for %u pieces",
		     (unsigned long long)before, ends);
	close_clean();
}
