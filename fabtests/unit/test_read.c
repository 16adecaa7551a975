/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small reads that the core does alone (rma/read.c), on a scripted core: when
 * they are used, that they keep the promised order, and what happens when the
 * core, the registration or the peer fails.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "fake_core.h"
#include "rma/rma.h"

#define KEY	5u
#define HDR	sizeof(struct lnx_wire_hdr)

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;
static uint8_t buf[4096], mem[4096];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(read_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(read_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static struct lnx_peer *inside(void)
{
	return lnx_peer_get(f.lnx, p.addr);
}

static void ack_all(void)
{
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_assert_eq(view_acked(inside()), view_posted(inside()));
}

static void open_introduced(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind },
				.caps = FI_RMA | FI_ATOMIC, .tx_size = 8 };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	memset(buf, 0xee, sizeof(buf));
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	ack_all();
}

static ssize_t rd(uint64_t addr, size_t len, void *context)
{
	return fi_read(f.ep, buf, len, NULL, p.addr, addr, KEY, context);
}

static void answer(uint64_t id, int err, const void *data, size_t len)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RESP,
		  .data = id, .tag = (uint64_t)err, .len = len }, data, len);
}

/* The next frame of that kind, without ACKs: its id for the answer. */
static uint64_t id_of(uint8_t kind)
{
	struct fake_sent *s;
	uint64_t id;

	while (core->sent && core->sent->h.kind == LNX_KIND_ACK)
		fake_expect_drop(&f, &p, LNX_KIND_ACK);
	s = fake_expect(&f, &p, kind);
	id = s->h.data;
	free(s);
	return id;
}

static void read_by_frame(uint64_t addr, size_t len)
{
	uint64_t id;

	cr_assert_eq(rd(addr, len, &a), 0);
	id = id_of(LNX_KIND_GET);
	answer(id, 0, mem + addr, len);
	fake_comp(&f, &a);
}

static void answer_keys(uint64_t id, size_t len, uint16_t access, uint16_t rail)
{
	struct lnx_keys k = { .len = len, .access = access, .nkey = 1 };
	uint8_t payload[256];

	k.key[0].rail = rail;
	k.key[0].key = 77;
	k.key[0].addr = 0x10000;
	lnx_wire_keys_put(payload, &k);
	if (!core->nregion)
		fake_region_rw(core, 77, 0x10000, mem, sizeof(mem));
	answer(id, 0, payload, lnx_wire_keys_size(1));
	fake_passes(&f, 2);
}

/* Use the same key repeatedly: it is requested.  Returns the id of the request. */
static uint64_t asked(void)
{
	for (unsigned i = 0; i < 4; i++)
		read_by_frame(i, 10);
	cr_assert_eq(rd(0, 10, &a), 0);
	return id_of(LNX_KIND_KEYS);
}

static void open_with_keys(enum lnx_rail_kind kind, uint16_t access)
{
	uint64_t keys;

	open_introduced(kind);
	keys = asked();
	answer(id_of(LNX_KIND_GET), 0, mem, 10);
	fake_comp(&f, &a);
	answer_keys(keys, 1000, access, 0);
	ack_all();
	memset(buf, 0xee, sizeof(buf));
}

static void close_clean(void)
{
	ack_all();
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	cr_expect_eq(view_rma_ops(f.lnx), 0u);
	cr_expect_eq(view_rma_segments(f.lnx), 0u);
	cr_expect_eq(view_segments(inside()), 0u);
	cr_expect_eq(view_core_reads(inside()), 0u);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(core_reads_what_is_read_often)
{
	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	for (uint64_t at = 0; at < 1000; at += 100) {
		cr_assert_eq(rd(at, 100, &b), 0);
		cr_expect_eq(fake_comp(&f, &b).flags, FI_RMA | FI_READ);
		cr_expect_arr_eq(buf, mem + at, 100);
	}
	fake_expect_none(&f);
	cr_expect_eq(core->nread, 10u);
	cr_expect_eq(f.lnx->stats.reads, 15u);
	close_clean();
}

/* Each key is used once: a request would only cost time. */
BOTH(keys_used_once_are_not_asked_for)
{
	open_introduced(kind);
	for (unsigned i = 0; i < 20; i++) {
		force_keys_known(inside());
		read_by_frame(i, 10);
	}
	fake_expect_none(&f);
	cr_expect_eq(core->nread, 0u);
	close_clean();
}

/* Frames until the keys are here, and also if the keys do not allow it. */
BOTH(frames_where_the_core_may_not)
{
	uint64_t keys;
	static const struct { uint16_t access, rail; } no[] = {
		{ LNX_WIRE_KEYS_WRITE, 0 },
		{ LNX_WIRE_KEYS_READ | LNX_WIRE_KEYS_TELL_READ, 0 },
		{ LNX_WIRE_KEYS_READ, 3 },
	};

	for (unsigned i = 0; i < LNX_ARRAY_SIZE(no); i++) {
		open_introduced(kind);
		keys = asked();
		answer(id_of(LNX_KIND_GET), 0, mem, 10);
		fake_comp(&f, &a);
		read_by_frame(1, 10);
		answer_keys(keys, 1000, no[i].access, no[i].rail);
		ack_all();
		read_by_frame(2, 10);
		cr_expect_eq(core->nread, 0u, "case %u", i);
		close_clean();
	}
	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	read_by_frame(991, 10);		/* beyond its end: the peer refuses */
	fake_quiet(&f);
	cr_expect_eq(core->nread, 0u);
	close_clean();
}

/* Frames also while a read could overtake a write; and writes wait for such reads. */
BOTH(order_with_writes_is_kept)
{
	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	cr_assert_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), 0);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	read_by_frame(0, 10);
	ack_all();
	core->hold_reads = true;
	cr_assert_eq(rd(5, 10, &b), 0);
	cr_assert_eq(core->nread, 1u);
	cr_expect_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), -FI_EAGAIN);
	cr_expect_eq(fi_inject_atomic(f.ep, "x", 1, p.addr, 0, KEY, FI_INT8,
				      FI_SUM), -FI_EAGAIN);
	cr_expect_eq(fi_read(f.ep, buf, 9, NULL, p.addr, 0, 9, &a), -FI_EAGAIN,
		     "a frame that reads");
	cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0, "no promise");
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_expect_none(&f);
	core->hold_reads = false;
	fake_finish_all(core);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf, mem + 5, 10);
	cr_expect_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), 0);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	close_clean();
}

/* For a closed registration or a broken connection a GET is sent instead. */
BOTH(what_the_core_cannot_read_a_frame_does)
{
	uint64_t id;

	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	core->read_fails = 1;
	cr_assert_eq(rd(7, 10, &b), 0);
	fake_passes(&f, 2);
	id = id_of(LNX_KIND_GET);
	fake_quiet(&f);
	answer(id, 0, mem + 7, 10);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf, mem + 7, 10);
	/* The keys are dropped. */
	read_by_frame(8, 10);
	cr_expect_eq(core->nread, 1u);
	close_clean();
}

BOTH(busy_cores_and_full_queues)
{
	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	/* If nothing else is outstanding, the frame has its own deadline. */
	core->read_again = 1;
	read_by_frame(7, 10);
	ack_all();
	core->hold_reads = true;
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(rd(i, 10, &b), 0);
	core->read_again = 1;
	cr_expect_eq(rd(7, 10, &b), -FI_EAGAIN);
	for (unsigned i = 4; i < 8; i++)
		cr_assert_eq(rd(i, 10, &b), 0);
	cr_expect_eq(rd(9, 10, &b), -FI_EAGAIN, "as many as tx_attr->size");
	core->hold_reads = false;
	fake_finish_all(core);
	for (unsigned i = 0; i < 8; i++)
		fake_comp(&f, &b);
	cr_expect_eq(core->nread, 8u);
	close_clean();
}

/* The peer does not exist, and the core never gets beyond its attempts. */
BOTH(peer_that_cannot_be_reached_is_given_up)
{
	ssize_t ret = -FI_EAGAIN;

	fake_conf.connect_timeout = 200;
	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	core->read_again = core->send_again = core->inject_again = FAKE_ALWAYS;
	for (unsigned i = 0; i < 3000 && ret != -FI_EHOSTUNREACH; i++) {
		ret = rd(7, 10, &b);
		fake_after_ms(&f, 100);
	}
	cr_expect_eq(ret, -FI_EHOSTUNREACH);
	cr_expect(lnx_peer_dead(inside()));
	fake_close_quick(&f);
}

/* A read that the core failed keeps its position before later writes, also when
 * the failure is found inside a send. */
Test(read_peer, failed_reads_keep_their_place)
{
	uint64_t id;

	open_with_keys(LNX_RAIL_PEER, LNX_WIRE_KEYS_READ);
	core->hold_reads = true;
	cr_assert_eq(rd(5, 10, &b), 0);
	core->poll_in_send = true;
	fake_finish(core, 0, FI_EIO);
	cr_expect_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), 0);
	id = id_of(LNX_KIND_GET);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	answer(id, 0, mem + 5, 10);
	fake_comp(&f, &b);
	core->poll_in_send = false;
	close_clean();
}

/* Its core endpoint is closed and reopened. */
BOTH(reads_of_a_closed_core_go_out_as_frames)
{
	uint64_t id;

	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	core->hold_reads = true;
	cr_assert_eq(rd(7, 10, &b), 0);
	lnx_read_cut(view_path(inside(), 0));
	fake_passes(&f, 2);
	id = id_of(LNX_KIND_GET);
	answer(id, 0, mem + 7, 10);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf, mem + 7, 10);
	/* Its later completion is ignored. */
	fake_finish(core, 0, FI_EIO);
	fake_quiet(&f);
	close_clean();
}

/* The buffer belongs to the core until the read ends. */
BOTH(peer_that_goes)
{
	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	core->hold_reads = true;
	cr_assert_eq(rd(7, 10, &b), 0);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE,
		   .seq = p.seq }, NULL, 0);
	fake_quiet(&f);
	cr_expect_eq(rd(7, 10, &a), -FI_EHOSTUNREACH);
	fake_finish(core, 0, FI_ECONNRESET);
	fake_err(&f, &b, FI_ECONNRESET);
	fake_drop_all(&f, &p);
	cr_expect_eq(view_rma_segments(f.lnx), 0u);
	cr_expect_eq(view_core_reads(inside()), 0u);
	fake_quiet(&f);
	fake_close(&f);
}

/* A RESP for a read of the core matches no operation. */
BOTH(hostile_answers)
{
	struct lnx_rma_segment *part;

	open_with_keys(kind, LNX_WIRE_KEYS_READ);
	core->hold_reads = true;
	cr_assert_eq(rd(7, 10, &b), 0);
	part = view_last_segment(f.lnx);
	answer(part->id, 0, mem, 10);
	answer(part->id, FI_EIO, NULL, 0);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 2u);
	cr_expect_eq(buf[0], 0xee);
	core->hold_reads = false;
	fake_finish_all(core);
	fake_comp(&f, &b);
	close_clean();
}
