/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is counted of rails and paths beside the application's messages: frames by kind,
 * drops, failures, answers.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/publish.h"
#include "fake_core.h"
#include "fake_inside.h"
#include "obj/counting.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "view.h"

static struct fake f;
static struct fake_peer p;
static char a;				/* a context */
static struct lnx_peer *peer;
static struct lnx_state_rail rail;
static struct lnx_state_path path;

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(counts_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(counts_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_met(enum lnx_rail_kind kind, unsigned nrail)
{
	struct fake_opt opt = { .nrail = nrail };
	unsigned i;

	for (i = 0; i < nrail; i++)
		opt.kind[i] = kind;
	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	peer = lnx_peer_get(f.lnx, p.addr);
	cr_assert(peer);
}

/* What readers would see. */
static void look(unsigned r, unsigned i)
{
	memset(&rail, 0, sizeof(rail));
	lnx_lock(&f.lnx->lock);
	lnx_publish_rail(f.lnx, r, &rail);
	lnx_publish_path(peer, i, fake_now_ns, &path);
	lnx_unlock(&f.lnx->lock);
}

static void reader_looks(void)
{
	lnx_lock(&f.lnx->lock);
	cr_assert(lnx_path_counts_get(peer, view_path(peer, 0)));
	lnx_unlock(&f.lnx->lock);
}

static void send1(void)
{
	cr_assert_eq(fi_tsend(f.ep, "hello", 5, NULL, p.addr, 1, &a), 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
}

static void receive1(void)
{
	static char buf[8];

	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 7, 0, &a), 0);
	fake_tag(&f, &p, 7, "x", 1);
	fake_passes(&f, 4);
	fake_comp(&f, &a);
}

BOTH(frames_by_kind)
{
	struct lnx_state_traffic before;

	open_met(kind, 1);
	look(0, 0);
	cr_expect_eq(rail.traffic.sent[LNX_STATE_HELLO], 1u);
	cr_expect_eq(rail.traffic.received[LNX_STATE_HELLO], 1u);
	reader_looks();
	before = rail.traffic;
	send1();
	receive1();
	receive1();
	fake_after_ms(&f, 10);
	look(0, 0);
	cr_expect_eq(rail.traffic.send_count, 1u);
	cr_expect_eq(rail.traffic.sent[LNX_STATE_PUT], 1u);
	cr_expect_eq(rail.traffic.received[LNX_STATE_PUT], 2u);
	cr_expect_eq(rail.traffic.received[LNX_STATE_ACK],
		     before.received[LNX_STATE_ACK] + 1);
	cr_expect_eq(rail.traffic.sent[LNX_STATE_ACK], before.sent[LNX_STATE_ACK] + 1);
	cr_expect_eq(rail.traffic.drop_count, 0u);
	/* The path counts frames: the HELLO too. */
	cr_expect_eq(path.traffic.send_count, 2u);
	cr_expect_eq(path.traffic.recv_count, 3u);
	cr_expect_eq(path.traffic.send_length, view_sent(view_path(peer, 0)));
	cr_expect_eq(path.traffic.recv_length, view_rx_bytes(peer, 0));
	cr_expect_eq(path.traffic.received[LNX_STATE_ACK], 1u);
	fake_close(&f);
}

BOTH(a_peer_needs_none_until_a_reader_looks)
{
	open_met(kind, 1);
	send1();
	cr_expect_not(view_counts(view_path(peer, 0)));
	look(0, 0);
	cr_expect_eq(path.have, (uint32_t)LNX_STATE_HAVE_COUNTS);
	cr_expect_eq(path.traffic.send_count, 2u);
	reader_looks();
	look(0, 0);
	cr_expect(path.have & LNX_STATE_HAVE_OPS);
	cr_expect_eq(path.traffic.send_count, 2u, "all since the beginning");
	fake_close(&f);
}

BOTH(drops)
{
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .tag = 7, .len = 1 };
	static const uint8_t rubbish[80] = { 1 };

	open_met(kind, 1);
	receive1();
	/* The same again, and something that is no frame. */
	h.seq = p.seq - 1;
	fake_frame(&f, &p, h, "x", 1);
	fake_arrive(f.core[0], rubbish, sizeof(rubbish));
	fake_passes(&f, 4);
	look(0, 0);
	cr_expect_eq(f.lnx->stats.dup_drops, 1u);
	cr_expect_eq(f.lnx->stats.bad_frames, 1u);
	cr_expect_eq(rail.traffic.drop_count, 2u);
	cr_expect_eq(rail.traffic.dropped[LNX_STATE_PUT], 1u);
	cr_expect_eq(rail.traffic.dropped[LNX_STATE_HELLO], 1u);
	cr_expect_eq(rail.traffic.drop_length, sizeof(struct lnx_wire_hdr) + 1 + 80);
	/* Only one of them is known to be the peer's. */
	cr_expect(path.have & LNX_STATE_HAVE_DROPS);
	cr_expect_eq(path.traffic.drop_count, 1u);
	cr_expect_eq(path.traffic.dropped[LNX_STATE_PUT], 1u);
	fake_close(&f);
}

/* A HELLO from before a reader looked is no message. */
BOTH(kinds_begin_when_a_reader_looks)
{
	open_met(kind, 1);
	send1();
	receive1();
	reader_looks();
	look(0, 0);
	cr_expect_eq(path.traffic.send_count, 2u);
	cr_expect_eq(path.traffic.recv_count, 2u);
	cr_expect_eq(path.traffic.sent[LNX_STATE_PUT], 0u);
	cr_expect_eq(path.traffic.received[LNX_STATE_PUT], 0u);
	send1();
	receive1();
	receive1();
	look(0, 0);
	cr_expect_eq(path.traffic.sent[LNX_STATE_PUT], 1u);
	cr_expect_eq(path.traffic.received[LNX_STATE_PUT], 2u);
	fake_close(&f);
}

/* A frame that comes twice has come twice, and was taken once. */
BOTH(duplicates_came)
{
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .tag = 7, .len = 1 };
	unsigned i;

	open_met(kind, 1);
	reader_looks();
	receive1();
	for (i = 0; i < 3; i++) {
		h.seq = p.seq - 1;
		fake_frame(&f, &p, h, "x", 1);
		fake_passes(&f, 4);
	}
	look(0, 0);
	cr_expect_eq(path.traffic.recv_count, 1u + 1 + 3, "the HELLO, and all others");
	cr_expect_eq(path.traffic.recv_length, view_rx_bytes(peer, 0));
	cr_expect_eq(path.traffic.received[LNX_STATE_PUT], 1u);
	cr_expect_eq(path.traffic.dropped[LNX_STATE_PUT], 3u);
	cr_expect_eq(path.traffic.drop_length, 3 * (sizeof(struct lnx_wire_hdr) + 1));
	lnx_lock(&f.lnx->lock);
	lnx_publish_reset(peer);
	lnx_unlock(&f.lnx->lock);
	look(0, 0);
	cr_expect_eq(path.traffic.recv_count, 0u, "after a reset");
	receive1();
	look(0, 0);
	cr_expect_eq(path.traffic.recv_count, 1u);
	cr_expect_eq(path.traffic.received[LNX_STATE_PUT], 1u);
	fake_close(&f);
}

/* Writes are operations of the rail. */
BOTH(writes)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind }, .caps = FI_RMA };
	struct lnx_hdr h = {
		.kind = LNX_KIND_PUT, .key = 5, .flags = LNX_WIRE_F_LAST, .len = 20,
	};
	static uint8_t mem[100], from[64];
	struct fid_mr *mr;

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	peer = lnx_peer_get(f.lnx, p.addr);
	cr_assert_eq(fi_mr_reg(&f.domain.fid, mem, sizeof(mem), FI_REMOTE_WRITE, 0, 5, 0,
			       &mr, NULL), 0);
	cr_assert_eq(fi_write(f.ep, from, sizeof(from), NULL, p.addr, 0, 9, &a), 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	/* Two pieces of one write. */
	h.flags = 0;
	fake_next(&f, &p, h, from, 20);
	h.flags = LNX_WIRE_F_LAST;
	fake_next(&f, &p, h, from, 20);
	fake_passes(&f, 4);
	look(0, 0);
	cr_expect_eq(rail.traffic.send_count, 1u);
	cr_expect_eq(rail.traffic.send_length, 64u);
	cr_expect_eq(rail.traffic.sent[LNX_STATE_PUT], 1u);
	cr_expect_eq(rail.traffic.recv_count, 1u);
	cr_expect_eq(rail.traffic.recv_length, 40u);
	cr_expect_eq(rail.traffic.received[LNX_STATE_PUT], 1u);
	cr_expect_eq(fi_close(&mr->fid), 0);
	fake_close_quick(&f);
}

/* Of several paths, each frame counts for the one over which it came. */
BOTH(frames_by_path)
{
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .tag = 9, .len = 1 };
	unsigned i, n[2] = { 0, 0 }, r;
	uint64_t first;

	open_met(kind, 2);
	cr_assert_eq(view_npath(peer), 2u);
	look(0, 0);
	first = path.traffic.recv_count;
	cr_expect_eq(first, (uint64_t)view_rx_next(peer));
	for (i = 0; i < 12; i++) {
		r = i % 4 == 3;
		h.rail = h.path = (uint8_t)r;
		h.seq = p.seq++;
		fake_frame_on(&f, &p, r, h, "x", 1);
		fake_passes(&f, 2);
		n[r]++;
	}
	look(0, 0);
	cr_expect_eq(path.traffic.recv_count, first + n[0]);
	look(1, 1);
	cr_expect_eq(path.traffic.recv_count, n[1]);
	cr_expect_eq(path.traffic.recv_length, n[1] * (sizeof(struct lnx_wire_hdr) + 1));
	fake_close_quick(&f);
}

/* And still does when it comes over another path after a while, and back. */
BOTH(frames_by_changing_paths)
{
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .tag = 9, .len = 1 };
	unsigned i, k, n[2] = { 0, 0 };
	uint64_t first;

	open_met(kind, 2);
	look(0, 0);
	first = path.traffic.recv_count;
	for (k = 0; k < 6; k++) {
		for (i = 0; i < 3 + k; i++) {
			h.rail = h.path = k % 2;
			h.seq = p.seq++;
			fake_frame_on(&f, &p, k % 2, h, "x", 1);
			fake_passes(&f, 2);
		}
		n[k % 2] += 3 + k;
		/* Acknowledged, with reports of both paths. */
		fake_after_ms(&f, 10);
		fake_drop_all(&f, &p);
		if (k == 3) {
			lnx_lock(&f.lnx->lock);
			lnx_publish_reset(peer);
			lnx_unlock(&f.lnx->lock);
			first = n[0] = n[1] = 0;
		}
		for (i = 0; i < 2; i++) {
			look(i, i);
			cr_expect_eq(path.traffic.recv_count, (i ? 0 : first) + n[i],
				     "turn %u, path %u: %u", k, i,
				     (unsigned)path.traffic.recv_count);
		}
	}
	fake_close_quick(&f);
}

/* Numbers on the wire have 32 bits, counts have not. */
BOTH(more_than_32_bits)
{
	const uint64_t before = UINT32_MAX - 2u;
	unsigned i;

	open_met(kind, 1);
	lnx_lock(&f.lnx->lock);
	force_rx_next(peer, (uint32_t)before);
	lnx_unlock(&f.lnx->lock);
	p.seq = (uint32_t)before;
	look(0, 0);
	cr_expect_eq(path.traffic.recv_count, before);
	for (i = 1; i < 7; i++) {
		receive1();
		look(0, 0);
		cr_expect_eq(path.traffic.recv_count, before + i, "%u: %lx", i,
			     (unsigned long)path.traffic.recv_count);
	}
	/* With counts by kind. */
	reader_looks();
	receive1();
	look(0, 0);
	cr_expect_eq(path.traffic.recv_count, before + 7);
	fake_close_quick(&f);
}

BOTH(failures)
{
	unsigned class, i;

	open_met(kind, 2);
	for (class = 1; class < LNX_CLASS_COUNT; class++) {
		lnx_lock(&f.lnx->lock);
		for (i = 0; i < class; i++)
			lnx_detect_charge(peer, view_path(peer, 0), class, fake_now_ns);
		lnx_unlock(&f.lnx->lock);
	}
	look(0, 0);
	for (class = 1; class < LNX_CLASS_COUNT; class++) {
		cr_expect_eq(rail.failed[class - 1], class, "%s", lnx_class_name(class));
		cr_expect_eq(path.failed[class - 1], class, "%s", lnx_class_name(class));
	}
	/* The innocents. */
	look(1, 1);
	for (class = 1; class < LNX_CLASS_COUNT; class++) {
		cr_expect_eq(rail.failed[class - 1], 0u);
		cr_expect_eq(path.failed[class - 1], 0u);
	}
	fake_close_quick(&f);
}

BOTH(large_messages)
{
	static uint8_t mem[100000], buf[100000];
	const uint64_t seg[] = { sizeof(mem) };
	uint64_t n;

	open_met(kind, 1);
	reader_looks();
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 3, 0, &a), 0);
	fake_rts(&f, &p, true, 3, 1, mem, seg, 1);
	fake_passes(&f, 8);
	fake_comp(&f, &a);
	look(0, 0);
	n = rail.traffic.sent[LNX_STATE_GET];
	cr_expect_geq(n, 1u);
	cr_expect_eq(rail.traffic.received[LNX_STATE_REPLY_OP], n);
	cr_expect_eq(path.traffic.sent[LNX_STATE_GET], n);
	cr_expect_eq(path.reply.samples, n);
	/* The FIN. */
	cr_expect_geq(path.traffic.sent[LNX_STATE_ACK], 1u);
	fake_close_quick(&f);
}

BOTH(reset)
{
	struct lnx_state_traffic *t = &path.traffic;
	unsigned i;

	open_met(kind, 1);
	send1();
	receive1();
	lnx_lock(&f.lnx->lock);
	lnx_detect_charge(peer, view_path(peer, 0), LNX_CLASS_REMOTE_ERROR, fake_now_ns);
	lnx_publish_reset(peer);
	lnx_unlock(&f.lnx->lock);
	look(0, 0);
	cr_expect_eq(t->send_count + t->recv_count + t->send_length + t->recv_length, 0u);
	for (i = 0; i < LNX_STATE_NOPS; i++)
		cr_expect_eq(t->sent[i] + t->received[i], 0u);
	for (i = 0; i < LNX_STATE_CLASSES; i++)
		cr_expect_eq(path.failed[i], 0u);
	cr_expect_lt(path.health.value, 1000u, "health stays");
	send1();
	look(0, 0);
	cr_expect_eq(t->send_count, 1u);
	cr_expect_eq(t->sent[LNX_STATE_PUT], 1u);
	fake_close_quick(&f);
}

/* ---- times ---- */

/* A frame leaves after a pause, and is acknowledged ms later. */
static void timed(unsigned ms)
{
	fake_passes(&f, 300);
	fake_after_ms(&f, 500);
	cr_assert_eq(fi_tsend(f.ep, "hello", 5, NULL, p.addr, 1, &a), 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	fake_now_ns += ms * LNX_NS_PER_MS;
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	look(0, 0);
}

/* What left once tells how long an acknowledgement takes, as soon as that is counted. */
Test(counts, acknowledgements_are_timed)
{
	open_met(LNX_RAIL_PLAIN, 1);
	timed(3);
	cr_expect_eq(path.ack.samples, 0u, "it was not asked for");
	reader_looks();
	timed(3);
	cr_expect_eq(path.ack.samples, 1u);
	cr_expect_geq(path.ack.min_ns, 3 * LNX_NS_PER_MS);
	cr_expect_lt(path.ack.max_ns, 4 * LNX_NS_PER_MS);
	timed(5);
	cr_expect_eq(path.ack.samples, 2u);
	cr_expect_geq(path.ack.max_ns, 5 * LNX_NS_PER_MS);
	fake_close_quick(&f);
}

/* A frame leaves, and all but the last `under_way` are acknowledged. */
static void one_more(unsigned under_way)
{
	uint32_t all;

	cr_assert_eq(fi_tsend(f.ep, "hello", 5, NULL, p.addr, 1, &a), 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	all = p.got;
	p.got -= under_way;
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	p.got = all;
}

/* Where acknowledgements take longer than it is from one look to the next. */
Test(counts, a_long_way_is_timed)
{
	unsigned i;

	open_met(LNX_RAIL_PLAIN, 1);
	reader_looks();
	for (i = 0; i < 40; i++) {
		one_more(LNX_MIN(i, 4u));
		fake_after_ms(&f, 30);
	}
	look(0, 0);
	cr_expect_geq(path.ack.samples, 3u);
	cr_expect_geq(path.ack.min_ns, 100 * LNX_NS_PER_MS);
	fake_close_quick(&f);
}

/* Where the first that happens after a look is that an acknowledgement comes. */
Test(counts, a_full_window_is_timed)
{
	unsigned i;

	open_met(LNX_RAIL_PLAIN, 1);
	reader_looks();
	one_more(1);
	for (i = 0; i < 10; i++) {
		fake_after_ms(&f, 60);
		fake_ack(&f, &p);
		fake_passes(&f, 4);
		one_more(1);
	}
	look(0, 0);
	cr_expect_geq(path.ack.samples, 5u);
	fake_close_quick(&f);
}

/* Nor is a piece that is read again. */
Test(counts, what_is_read_twice_is_not_timed)
{
	static uint8_t mem[100000], buf[100000];
	const uint64_t seg[] = { sizeof(mem) };
	uint64_t n;
	unsigned i;

	fake_conf.chunk = 10000;
	open_met(LNX_RAIL_PLAIN, 1);
	reader_looks();
	f.core[0]->read_fails = 1;
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 3, 0, &a), 0);
	fake_rts(&f, &p, true, 3, 1, mem, seg, 1);
	for (i = 0; i < 20; i++)
		fake_after_ms(&f, 10);
	fake_comp(&f, &a);
	look(0, 0);
	n = path.traffic.received[LNX_STATE_REPLY_OP];
	cr_expect_geq(n, 1u);
	cr_expect_eq(path.reply.samples, n - 1);
	fake_close_quick(&f);
}

/* Which of two equal frames is acknowledged cannot be told. */
Test(counts, what_left_twice_is_not_timed)
{
	open_met(LNX_RAIL_PLAIN, 1);
	reader_looks();
	fake_passes(&f, 300);
	fake_after_ms(&f, 500);
	cr_assert_eq(fi_tsend(f.ep, "hello", 5, NULL, p.addr, 1, &a), 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	lnx_lock(&f.lnx->lock);
	lnx_pump_retransmit(peer, 1);
	lnx_unlock(&f.lnx->lock);
	fake_passes(&f, 300);
	cr_expect_gt(fake_drop_all(&f, &p), 0u, "it has left again");
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	look(0, 0);
	cr_expect_eq(path.ack.samples, 0u);
	fake_close_quick(&f);
}

Test(counts, buckets)
{
	struct lnx_latency_counts l = { 0 };
	unsigned i;

	lnx_counts_latency(&l, 0);
	lnx_counts_latency(&l, UINT64_MAX / 4);
	cr_expect_eq(l.bucket[0], 1u, "below 1 us");
	cr_expect_eq(l.bucket[LNX_LATENCY_BUCKETS - 1], 1u, "all others");
	cr_expect_eq(l.samples, 2u);
	cr_expect_eq(l.min_ns, 0u);
	cr_expect_eq(l.max_ns, UINT64_MAX / 4);
	/* The border of each. */
	for (i = 0; i < LNX_LATENCY_BUCKETS - 1; i++) {
		memset(&l, 0, sizeof(l));
		lnx_counts_latency(&l, (1000ull << i) - 1);
		lnx_counts_latency(&l, 1000ull << i);
		cr_expect_eq(l.bucket[i], 1u, "bucket %u", i);
		cr_expect_eq(l.bucket[i + 1], 1u, "bucket %u", i + 1);
	}
}
