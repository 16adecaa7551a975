/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes of our memory by peers, on a scripted core; everything on
 * both kinds of framed rail.  The test is the peer, with valid requests or
 * invalid ones.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "fake_core.h"
#include "obj/mr.h"
#include "msg/rx.h"
#include "msg/tx.h"

#define HDR	sizeof(struct lnx_wire_hdr)
#define KEY	0x4b4559ull
#define LEN	100000ul		/* of the registration */
#define GUARD	4096ul			/* bytes around it that must not change */
#define RW	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define NO_ID	0ull

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static struct fid_mr *mr;
static uint8_t room[GUARD + LEN + GUARD], *ours = room + GUARD;
static uint8_t mem[1 << 20];		/* the peer's memory */

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(serve_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(serve_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static int try_reg(void *base, size_t len, uint64_t access, uint64_t key,
		   struct fid_mr **out)
{
	return fi_mr_reg(&f.domain.fid, base, len, access, 0, key, 0, out,
			 NULL);
}

static struct fid_mr *reg(void *base, size_t len, uint64_t access, uint64_t key)
{
	struct fid_mr *out;

	cr_assert_eq(try_reg(base, len, access, key, &out), 0);
	return out;
}

static void open_mode(enum lnx_rail_kind kind, bool mr_basic)
{
	struct fake_opt opt = {
		.nrail = 1, .kind = { kind }, .caps = FI_RMA,
		.mr_basic = mr_basic,
	};

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_hello(&f, &p);
	fake_pass(&f);
}

static void open_domain(enum lnx_rail_kind kind)
{
	open_mode(kind, false);
}

static void open_met(enum lnx_rail_kind kind)
{
	open_domain(kind);
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	memset(room, 0xee, sizeof(room));
	mr = reg(ours, LEN, RW, KEY);
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static void guarded(void)
{
	for (size_t i = 0; i < GUARD; i++)
		cr_assert(room[i] == 0xee && room[GUARD + LEN + i] == 0xee,
			  "written outside, at %zu", i);
}

static bool untouched(void)
{
	for (size_t i = 0; i < LEN; i++)
		if (ours[i] != 0xee)
			return false;
	return true;
}

static void close_clean(void)
{
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	guarded();
	cr_expect_eq(view_rxes(f.lnx), 0u);
	cr_expect_eq(view_chunks(f.lnx), 0u);
	cr_expect_eq(view_frames(f.lnx), 0u);
	cr_expect(view_rma_idle(f.lnx));
	cr_expect_eq(view_served(inside()), 0u);
	if (mr)
		cr_expect_eq(fi_close(&mr->fid), 0);
	fake_close(&f);
}

/* Close while operations of the peer are in progress, which use registrations. */
static void close_rough(void)
{
	cr_assert_eq(fi_close(&f.ep->fid), 0);
	f.ep = NULL;
	guarded();
	cr_expect_eq(fi_close(&mr->fid), 0);
	fake_close_quick(&f);
}

/* ---- requests of the peer ---- */

/* id: it wants an answer; total: the write has so many bytes and ends here. */
static void put(uint64_t key, uint64_t addr, const void *data, size_t len,
		uint64_t id, uint64_t total, uint8_t flags)
{
	static uint8_t payload[LNX_PAYLOAD_MAX];
	struct lnx_wire_put w = { .op = htole64(id), .total = htole64(total) };
	struct lnx_hdr h = {
		.kind = LNX_KIND_PUT, .tag = addr, .key = key, .len = len,
		.flags = flags, .data = 0xdada,
	};
	size_t head = 0;

	if (id || total) {
		memcpy(payload, &w, sizeof(w));
		head = sizeof(w);
		h.flags |= LNX_WIRE_F_PUT;
	}
	cr_assert_leq(head + len, sizeof(payload));
	if (len)
		memcpy(payload + head, data, len);
	fake_next(&f, &p, h, payload, head + len);
}

static void get(uint64_t key, uint64_t addr, size_t len, uint64_t id)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_GET, .tag = addr,
		  .key = key, .len = len, .data = id,
		  .flags = LNX_WIRE_F_LAST }, NULL, 0);
}

static void keys(uint64_t key, uint64_t id)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_KEYS, .key = key,
		  .data = id }, NULL, 0);
}

/* The data to pull is at mem, in pieces as rts describes. */
static void put_rts(const struct lnx_rma_target *place, unsigned n, uint64_t len,
		    uint64_t op, uint8_t flags)
{
	uint8_t payload[512];
	struct lnx_rts rts = { .op = op, .nseg = 1, .nkey = 1,
			       .seg_len[0] = len };
	size_t head = n * sizeof(struct lnx_wire_target);

	rts.key[0][0].key = 100;
	rts.key[0][0].addr = 0x1000000;
	if (!core->nregion)
		fake_region(core, 100, 0x1000000, mem, sizeof(mem));
	lnx_wire_targets_put(payload, place, n);
	lnx_wire_rts_put(payload + head, &rts);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_PUT_RTS,
		  .tag = n, .len = len, .flags = flags, .data = 0xdada },
		  payload, head + lnx_wire_rts_size(&rts));
}

/* Frames that may leave at any time and that no test is about. */
static bool aside(uint8_t kind)
{
	return kind == LNX_KIND_ACK || kind == LNX_KIND_HELLO ||
	       kind == LNX_KIND_PROBE;
}

static struct fake_sent *left(uint8_t kind)
{
	struct fake_sent *s;

	fake_passes(&f, 2);
	while (core->sent && aside(core->sent->h.kind)) {
		s = fake_expect(&f, &p, core->sent->h.kind);
		free(s);
	}
	s = fake_expect(&f, &p, kind);
	return s;
}

static void answered(uint64_t id, int err)
{
	struct fake_sent *s = left(LNX_KIND_RESP);

	cr_assert_eq(s->h.data, id, "answer to %lx, not %lx", s->h.data, id);
	cr_assert_eq(s->h.tag, (uint64_t)err, "%lu, not %d", s->h.tag, err);
	cr_expect_eq(s->h.len, 0);
	free(s);
}

static void silent(void)
{
	fake_passes(&f, 4);
	while (core->sent && aside(core->sent->h.kind))
		free(fake_expect(&f, &p, core->sent->h.kind));
	fake_expect_none(&f);
}

static void ended(uint64_t op, int err)
{
	struct fake_sent *s;

	fake_passes(&f, 40);
	s = left(LNX_KIND_FIN);
	cr_assert_eq(s->h.data, op);
	cr_assert_eq(s->h.len, (uint64_t)err, "%lu, not %d", s->h.len, err);
	free(s);
}

static void event(uint64_t len)
{
	struct fi_cq_tagged_entry e = fake_comp(&f, NULL);

	cr_expect_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	cr_expect_eq(e.data, 0xdada);
	cr_expect_eq(e.len, len, "%zu, not %lu", e.len, len);
	fake_quiet(&f);
}

/* ---- answers that wait ---- */

/* An answer is created inside a core and leaves in the same pass: it does not
 * count as queued. */
BOTH(answers_do_not_count_as_waiting)
{
	struct fake_sent *s;

	open_met(kind);
	silent();
	for (uint64_t id = 1; id <= 5; id++)
		get(KEY, 0, 8, id);
	for (uint64_t id = 1; id <= 5; id++) {
		s = left(LNX_KIND_RESP);
		cr_expect_eq(s->h.data, id);
		free(s);
	}
	cr_expect_eq(f.lnx->stats.queued, 0u);
	/* Unless the core is too busy to accept it, both then and later. */
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	core->send_again = core->inject_again = FAKE_ALWAYS;
	get(KEY, 0, 8, 6);
	get(KEY, 0, 8, 7);
	fake_after_ms(&f, 20);
	fake_after_ms(&f, 20);
	cr_expect_eq(f.lnx->stats.queued, 2u);
	core->send_again = core->inject_again = 0;
	fake_after_ms(&f, 50);
	for (uint64_t id = 6; id <= 7; id++) {
		s = left(LNX_KIND_RESP);
		cr_expect_eq(s->h.data, id);
		free(s);
	}
	cr_expect_eq(f.lnx->stats.queued, 2u);
	close_clean();
}

/* ---- access rights ---- */

static const struct {
	uint64_t key, addr;
	size_t len;
	int err;
} access_row[] = {
	{ KEY, 0, 10, 0 }, { KEY, LEN - 10, 10, 0 }, { KEY, LEN, 0, 0 },
	{ KEY, 0, 0, 0 }, { KEY, LEN - 9, 10, FI_EACCES },
	{ KEY, LEN, 1, FI_EACCES }, { KEY, LEN + 1, 0, FI_EACCES },
	{ KEY, UINT64_MAX, 1, FI_EACCES }, { KEY, UINT64_MAX, 0, FI_EACCES },
	{ KEY, UINT64_MAX - 9, 10, FI_EACCES },
	{ KEY, UINT64_MAX - 4, 10, FI_EACCES },
	{ KEY, 1ull << 63, 10, FI_EACCES }, { KEY + 1, 0, 10, FI_ENOKEY },
	{ 0, 0, 0, FI_ENOKEY }, { UINT64_MAX, 0, 10, FI_ENOKEY },
	{ 7, 0, 10, FI_EACCES },	/* another right than requested */
	{ 8, 0, 10, FI_EACCES },	/* no right at all */
	{ 9, 0, 0, 0 }, { 9, 0, 1, FI_EACCES },	/* 0 bytes */
};

/* FI_MR_BASIC: keys are ours, whatever was requested, and addresses are virtual. */
BOTH(virtual_addresses)
{
	uint64_t at = (uintptr_t)ours, key, refused = 0;
	static const struct {
		int64_t off;
		size_t len;
		int err;
	} row[] = {
		{ 0, 10, 0 }, { LEN - 10, 10, 0 }, { LEN, 0, 0 }, { 0, 0, 0 },
		{ -1, 1, FI_EACCES }, { -1, 0, FI_EACCES },
		{ -10, 20, FI_EACCES }, { LEN - 9, 10, FI_EACCES },
		{ LEN, 1, FI_EACCES }, { LEN + 1, 0, FI_EACCES },
		{ INT64_MIN, 10, FI_EACCES }, { INT64_MAX, 10, FI_EACCES },
	};
	struct fid_mr *other, *null;
	struct lnx_rma_target place;
	struct fake_sent *s;
	struct lnx_keys k;
	uint64_t base;
	size_t size = sizeof(key);

	open_mode(kind, true);
	memset(room, 0xee, sizeof(room));
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	mr = reg(ours, LEN, RW, KEY);
	other = reg(ours + 100, 100, RW, KEY);
	null = reg(NULL, 0, RW, KEY);
	cr_expect_neq(fi_mr_key(mr), fi_mr_key(other));
	cr_expect_neq(fi_mr_key(null), fi_mr_key(other));
	cr_expect_eq(fi_mr_raw_attr(mr, &base, (uint8_t *)&key, &size, 0), 0);
	cr_expect_eq(base, at);
	cr_expect_eq(key, fi_mr_key(mr));
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		uint64_t addr = at + (uint64_t)row[i].off;
		size_t len = row[i].len;

		memset(ours, 0xee, LEN);
		put(key, addr, mem, len, 55 + i, len, LNX_WIRE_F_LAST);
		answered(55 + i, row[i].err);
		refused += !!row[i].err;
		if (row[i].err)
			cr_assert(untouched(), "row %u", i);
		else if (len)
			cr_assert_arr_eq(ours + row[i].off, mem, len);
		guarded();
		get(key, addr, len, i);
		refused += !!row[i].err;
		if (row[i].err) {
			answered(i, row[i].err);
		} else {
			s = left(LNX_KIND_RESP);
			cr_expect_eq(s->h.data, i);
			cr_expect_eq(s->h.tag, 0);
			if (len)
				cr_expect_arr_eq(s->bytes + HDR, mem, len);
			free(s);
		}
		place = (struct lnx_rma_target) { .addr = addr, .key = key,
					     .len = len };
		if (!len)
			continue;
		memset(ours, 0xee, LEN);
		put_rts(&place, 1, len, 99 + i, 0);
		ended(99 + i, row[i].err);
		refused += !!row[i].err;
		if (row[i].err)
			cr_assert(untouched(), "row %u", i);
		else
			cr_assert_arr_eq(ours + row[i].off, mem, len);
	}
	cr_expect_eq(f.lnx->stats.rma_refused, refused);
	/* Offsets from 0 are out of bounds. */
	put(key, 0, mem, 10, 7, 10, LNX_WIRE_F_LAST);
	answered(7, FI_EACCES);
	/* Inside the other registration, but at another address. */
	put(fi_mr_key(other), at + 99, mem, 1, 8, 1, LNX_WIRE_F_LAST);
	answered(8, FI_EACCES);
	put(fi_mr_key(other), at + 199, mem, 1, 8, 1, LNX_WIRE_F_LAST);
	answered(8, 0);
	cr_expect_eq(ours[199], mem[0]);
	keys(key, 9);
	s = left(LNX_KIND_RESP);
	cr_assert_eq(lnx_wire_keys_get(&k, s->bytes + HDR, s->h.len), 0);
	cr_expect_eq(k.len, LEN);
	cr_expect_eq(k.origin, at);
	free(s);
	cr_expect_eq(fi_close(&other->fid), 0);
	cr_expect_eq(fi_close(&null->fid), 0);
	/* A key that was used is not used again. */
	other = reg(ours, LEN, RW, KEY);
	cr_expect_neq(fi_mr_key(other), KEY);
	cr_expect_neq(fi_mr_key(other), key);
	cr_expect_eq(fi_close(&other->fid), 0);
	close_clean();
}

BOTH(small_writes)
{
	struct fid_mr *ro, *none, *null;
	uint64_t refused = 0;

	open_met(kind);
	ro = reg(ours, LEN, FI_REMOTE_READ, 7);
	none = reg(ours, LEN, FI_READ | FI_WRITE, 8);
	null = reg(NULL, 0, RW, 9);
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(access_row); i++) {
		uint64_t key = access_row[i].key, addr = access_row[i].addr;
		size_t len = access_row[i].len;
		int err = access_row[i].err;

		memset(ours, 0xee, LEN);
		/* With an answer, */
		put(key, addr, mem, len, 55 + i, len, LNX_WIRE_F_LAST);
		answered(55 + i, err);
		refused += !!err;
		cr_expect_eq(f.lnx->stats.rma_refused, refused);
		if (err)
			cr_assert(untouched(), "row %u", i);
		else if (len)
			cr_assert_arr_eq(ours + addr, mem, len);
		guarded();
		/* or without, and with an event. */
		put(key, addr, mem + 1, len, NO_ID, 0,
		    LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
		fake_pass(&f);
		refused += !!err;
		if (err) {
			answered(0, err);
			fake_quiet(&f);
			cr_assert(untouched(), "row %u", i);
		} else {
			event(len);
			silent();
		}
	}
	cr_expect_eq(fi_close(&ro->fid), 0);
	cr_expect_eq(fi_close(&none->fid), 0);
	cr_expect_eq(fi_close(&null->fid), 0);
	close_clean();
}

BOTH(small_reads)
{
	struct fid_mr *wo, *none, *null;

	open_met(kind);
	wo = reg(ours, LEN, FI_REMOTE_WRITE, 7);
	none = reg(ours, LEN, FI_READ | FI_WRITE, 8);
	null = reg(NULL, 0, RW, 9);
	memcpy(ours, mem, LEN);
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(access_row); i++) {
		struct fake_sent *s;

		get(access_row[i].key, access_row[i].addr, access_row[i].len,
		    i);
		if (access_row[i].err) {
			answered(i, access_row[i].err);
			continue;
		}
		s = left(LNX_KIND_RESP);
		cr_expect_eq(s->h.data, i);
		cr_expect_eq(s->h.tag, 0);
		cr_expect_eq(s->h.len, access_row[i].len);
		if (s->h.len)
			cr_expect_arr_eq(s->bytes + HDR,
					 mem + access_row[i].addr, s->h.len);
		free(s);
	}
	cr_expect_eq(fi_close(&wo->fid), 0);
	cr_expect_eq(fi_close(&none->fid), 0);
	cr_expect_eq(fi_close(&null->fid), 0);
	close_clean();
}

BOTH(keys_are_told)
{
	struct fid_mr *wo;
	struct fake_sent *s;
	struct lnx_keys k;

	open_met(kind);
	wo = reg(mem, LEN, FI_READ | FI_WRITE, 7);
	cr_expect_eq(core->nmr, 0u, "not before a request");
	for (unsigned i = 1; i < 4; i++) {
		keys(KEY, i);
		s = left(LNX_KIND_RESP);
		cr_expect_eq(s->h.data, i);
		cr_expect_eq(s->h.tag, 0);
		cr_assert_eq(lnx_wire_keys_get(&k, s->bytes + HDR, s->h.len), 0);
		cr_expect_eq(k.len, LEN);
		cr_expect_eq(k.access, LNX_WIRE_KEYS_READ |
			     LNX_WIRE_KEYS_WRITE);
		cr_expect_eq(k.nkey, 1);
		cr_expect_eq(k.key[0].rail, 0);
		cr_expect_eq(k.key[0].addr, (uint64_t)(uintptr_t)ours);
		cr_expect_eq(core->nmr, 1u, "once for all");
		free(s);
	}
	keys(7, 5);
	answered(5, FI_EACCES);
	keys(99, 6);
	answered(6, FI_ENOKEY);
	cr_expect_eq(f.lnx->stats.rma_refused, 2u);
	/* A pending request for keys does not delay closing. */
	keys(KEY, 8);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(core->nmr_open, 0u);
	answered(8, FI_ENOKEY);
	mr = reg(ours, LEN, RW, KEY);
	core->mr_fails = 1;
	keys(KEY, 9);
	answered(9, FI_ENOMEM);
	cr_expect_eq(fi_close(&wo->fid), 0);
	close_clean();
}

BOTH(close_between_question_and_answer)
{
	open_met(kind);
	keys(KEY, 8);
	/* The request was received, and progress has not answered yet. */
	lnx_lock(&f.lnx->lock);
	if (kind == LNX_RAIL_PEER)
		fi_cq_read(f.lnx->rail[0]->core_cq, NULL, 0);
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	answered(8, FI_ENOKEY);
	close_clean();
}

/* ---- large writes ---- */

BOTH(large_writes)
{
	struct lnx_rma_target two[4] = {
		{ .addr = 10, .key = KEY, .len = 30000 },
		{ .addr = 0, .key = KEY, .len = 0 },
		{ .addr = 50000, .key = KEY, .len = 50000 },
		{ .addr = LEN, .key = KEY, .len = 0 },
	};

	fake_conf.chunk = 16384;
	open_met(kind);
	put_rts(two, 4, 80000, 5, LNX_WIRE_F_DATA);
	fake_passes(&f, 40);
	event(80000);
	ended(5, 0);
	cr_expect_arr_eq(ours + 10, mem, 30000);
	cr_expect_arr_eq(ours + 50000, mem + 30000, 50000);
	cr_expect_eq(ours[9], 0xee);
	cr_expect_eq(ours[30010], 0xee);
	put_rts(two, 1, 30000, 6, 0);
	ended(6, 0);
	fake_quiet(&f);
	close_clean();
}

BOTH(large_writes_refused)
{
	static const uint64_t len[] = { 1, 50000, 1ull << 32, 1ull << 62,
					1ull << 63, UINT64_MAX };
	struct fid_mr *ro;
	struct lnx_rma_target bad[] = {
		{ .addr = LEN - 1, .key = KEY, .len = 2 },
		{ .addr = UINT64_MAX, .key = KEY, .len = 1 },
		{ .addr = 0, .key = 99, .len = 1 },
		{ .addr = 0, .key = 7, .len = 1 },
	};
	struct lnx_rma_target two[2] = { { .addr = 0, .key = KEY, .len = 10 } };
	uint64_t op = 10;

	open_met(kind);
	ro = reg(ours, LEN, FI_REMOTE_READ, 7);
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(bad); i++) {
		put_rts(&bad[i], 1, bad[i].len, ++op, LNX_WIRE_F_DATA);
		ended(op, bad[i].key == 99 ? FI_ENOKEY : FI_EACCES);
		/* One valid piece does not help. */
		two[1] = bad[i];
		put_rts(two, 2, 10 + bad[i].len, ++op, LNX_WIRE_F_DATA);
		ended(op, bad[i].key == 99 ? FI_ENOKEY : FI_EACCES);
	}
	/* Absurd lengths. */
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(len); i++) {
		bad[0] = (struct lnx_rma_target) { .addr = LEN - 1 + !i,
					      .key = KEY, .len = len[i] };
		put_rts(bad, 1, len[i], ++op, LNX_WIRE_F_DATA);
		ended(op, FI_EACCES);
		two[1] = bad[0];
		two[1].len = len[i] - 10;
		if (len[i] < 10)
			continue;
		put_rts(two, 2, len[i], ++op, LNX_WIRE_F_DATA);
		ended(op, FI_EACCES);
	}
	cr_expect_eq(core->nread, 0);
	cr_expect(untouched());
	fake_quiet(&f);
	/* Lengths with a wrong sum make the request invalid. */
	put_rts(two, 2, 9, ++op, 0);
	two[1].len = UINT64_MAX;
	put_rts(two, 2, 9, ++op, 0);
	silent();
	cr_expect_eq(f.lnx->stats.bad_frames, 2u);
	cr_expect_eq(fi_close(&ro->fid), 0);
	close_clean();
}

BOTH(close_in_the_middle_of_a_pull)
{
	struct lnx_rma_target one = { .addr = 10, .key = KEY, .len = 50000 };

	open_met(kind);
	core->hold_reads = true;
	put_rts(&one, 1, 50000, 5, 0);
	fake_passes(&f, 4);
	cr_assert_gt(fake_held(core), 0);
	cr_expect_eq(fi_close(&mr->fid), -FI_EBUSY);
	/* Its memory has not changed. */
	put(KEY, 0, mem, 10, 77, 10, LNX_WIRE_F_LAST);
	answered(77, 0);
	core->hold_reads = false;
	fake_finish_all(core);
	ended(5, 0);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	cr_expect_eq(fi_close(&mr->fid), 0);
	put(KEY, 0, mem, 10, 78, 10, LNX_WIRE_F_LAST);
	answered(78, FI_ENOKEY);
	mr = NULL;
	close_clean();
}

BOTH(pull_that_fails)
{
	struct lnx_rma_target one = { .addr = 10, .key = KEY, .len = 50000 };

	open_met(kind);
	core->read_fails = FAKE_ALWAYS;
	put_rts(&one, 1, 50000, 5, LNX_WIRE_F_DATA);
	for (unsigned i = 0; i < 4000; i++)
		fake_after_ms(&f, 20);
	ended(5, FI_EIO);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.failed, 0u, "no operation of the application");
	close_clean();
}

BOTH(peer_goes_in_the_middle_of_a_pull)
{
	struct lnx_rma_target one = { .addr = 10, .key = KEY, .len = 50000 };

	open_met(kind);
	core->hold_reads = true;
	put_rts(&one, 1, 50000, 5, LNX_WIRE_F_DATA);
	get(KEY, 0, 10, 6);
	keys(KEY, 7);
	core->send_again = FAKE_ALWAYS;
	fake_passes(&f, 4);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE,
		   .seq = p.seq }, NULL, 0);
	fake_passes(&f, 4);
	cr_expect_eq(fi_close(&mr->fid), -FI_EBUSY, "a read is in progress");
	while (fake_held(core))
		fake_finish(core, 0, FI_EIO);
	fake_passes(&f, 4);
	fake_quiet(&f);
	cr_expect_eq(view_served(inside()), 0u);
	close_clean();
}

/* ---- repeated frames ---- */

static struct fid_cntr *cntr[LNX_CNTR_KINDS];

static void bind_counters(void)
{
	static const uint64_t flag[LNX_CNTR_KINDS] = {
		[LNX_CNTR_RECV] = FI_RECV, [LNX_CNTR_SEND] = FI_SEND,
		[LNX_CNTR_WRITE] = FI_WRITE, [LNX_CNTR_READ] = FI_READ,
		[LNX_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
		[LNX_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	};
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };

	for (unsigned i = 0; i < LNX_CNTR_KINDS; i++) {
		cr_assert_eq(lnx_cntr_open(&f.domain.fid, &attr, &cntr[i],
					   NULL), 0);
		cr_assert_eq(lnx_cntr_bind(f.lnx, &cntr[i]->fid, flag[i]), 0);
	}
}

static void close_counters(void)
{
	lnx_cntr_unbind(f.lnx);
	lnx_cntr_release(f.lnx);
	for (unsigned i = 0; i < LNX_CNTR_KINDS; i++)
		cr_assert_eq(fi_close(&cntr[i]->fid), 0);
}

static void counted(uint64_t writes, uint64_t reads)
{
	fake_pass(&f);
	cr_assert_eq(fi_cntr_read(cntr[LNX_CNTR_REMOTE_WRITE]), writes);
	cr_assert_eq(fi_cntr_read(cntr[LNX_CNTR_REMOTE_READ]), reads);
	for (unsigned i = 0; i < LNX_CNTR_KINDS; i++) {
		cr_assert_eq(fi_cntr_readerr(cntr[i]), 0);
		if (i != LNX_CNTR_REMOTE_WRITE && i != LNX_CNTR_REMOTE_READ)
			cr_assert_eq(fi_cntr_read(cntr[i]), 0, "counter %u", i);
	}
}

BOTH(counters)
{
	struct lnx_rma_target one = { .addr = 10, .key = KEY, .len = 50000 };

	open_met(kind);
	bind_counters();
	put(KEY, 0, mem, 10, NO_ID, 0, LNX_WIRE_F_LAST);
	counted(1, 0);
	put(KEY, 0, mem, 10, NO_ID, 0, 0);
	counted(1, 0);
	put(KEY, 0, mem, 10, 9, 20, LNX_WIRE_F_LAST);
	counted(2, 0);
	put(KEY + 1, 0, mem, 10, 9, 10, LNX_WIRE_F_LAST);
	counted(2, 0);
	get(KEY, 0, 10, 3);
	counted(2, 1);
	get(KEY + 1, 0, 10, 3);
	counted(2, 1);
	put_rts(&one, 1, 50000, 5, 0);
	fake_passes(&f, 40);
	counted(3, 1);
	one.key++;
	put_rts(&one, 1, 50000, 5, 0);
	fake_passes(&f, 40);
	counted(3, 1);
	close_counters();
	close_clean();
}

/* One event for the whole write, with its length; none when a piece is refused. */
BOTH(write_of_many_frames)
{
	open_met(kind);
	put(KEY, 0, mem, 1000, 1, 3000, 0);
	put(KEY, 1000, mem + 1000, 1000, 2, 3000, 0);
	fake_quiet(&f);
	put(KEY, 2000, mem + 2000, 1000, 3, 3000,
	    LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
	event(3000);
	cr_expect_arr_eq(ours, mem, 3000);
	answered(1, 0);
	answered(2, 0);
	answered(3, 0);
	put(KEY, 0, mem, 10, 4, 30, 0);
	put(KEY + 1, 1000, mem + 1000, 10, 5, 30, 0);
	put(KEY, 2000, mem + 2000, 10, 6, 30,
	    LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
	fake_quiet(&f);
	answered(4, 0);
	answered(5, FI_ENOKEY);
	answered(6, 0);
	/* The next write is separate. */
	put(KEY, 2000, mem + 2000, 10, 7, 30,
	    LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
	event(30);
	answered(7, 0);
	close_clean();
}

/* Frames that come twice, late or out of order: executed once, in order. */
BOTH(repeated_frames)
{
	struct lnx_rma_target one = { .addr = 0, .key = KEY, .len = 20000 };
	uint32_t seq;

	open_met(kind);
	bind_counters();
	fake_pass(&f);
	seq = p.seq;
	for (unsigned i = 0; i < 10; i++) {
		p.seq = seq + 1;
		put(KEY, 0, mem + 1, 10, NO_ID, 0,
		    LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
		get(KEY, 0, 10, 3);
		p.seq = seq;
		if (i < 5)
			put(KEY, 0, mem, 10, NO_ID, 0, LNX_WIRE_F_LAST);
		fake_passes(&f, 2);
		p.seq = seq;
		put(KEY, 0, mem, 10, NO_ID, 0, LNX_WIRE_F_LAST);
	}
	fake_passes(&f, 2);
	cr_expect_arr_eq(ours, mem + 1, 10);
	counted(2, 1);
	event(10);
	{
		struct fake_sent *s = left(LNX_KIND_RESP);

		cr_expect_arr_eq(s->bytes + HDR, mem + 1, 10);
		free(s);
	}
	silent();
	p.seq = seq + 3;
	for (unsigned i = 0; i < 10; i++) {
		p.seq = seq + 3;
		put_rts(&one, 1, 20000, 5, LNX_WIRE_F_DATA);
		fake_pass(&f);
	}
	fake_passes(&f, 40);
	event(20000);
	ended(5, 0);
	silent();
	counted(3, 1);
	close_counters();
	close_clean();
}

/* ---- peers that accept no answers ---- */

static size_t txes(void)
{
	return view_frames(f.lnx);
}

/* It goes on after the last frame that was received, as if the others were lost. */
static unsigned flood(unsigned n, void (*one)(unsigned i))
{
	unsigned i, got = 0;

	for (i = 0; i < n; i++) {
		uint32_t next;

		fake_pass(&f);
		next = view_rx_next(inside());
		p.seq = next;
		one(i);
		fake_pass(&f);
		got += view_rx_next(inside()) != next;
		for (struct fake_sent *s; (s = fake_take(core));)
			free(s);
	}
	return got;
}

static void one_get(unsigned i) { get(KEY, 0, 10, i); }
static void one_big_get(unsigned i) { get(KEY, 0, LNX_PAYLOAD_MAX, i); }
static void one_bad_get(unsigned i) { get(KEY + 1, 0, 10, i); }
static void one_keys(unsigned i) { keys(KEY, i); }
static void one_bad_keys(unsigned i) { keys(KEY + 1, i); }
static void one_bad_put(unsigned i)
{
	(void)i;
	put(KEY + 1, 0, mem, 10, NO_ID, 0, LNX_WIRE_F_LAST);
}
static void one_put(unsigned i)
{
	put(KEY, 0, mem, 10, i + 1, 10, LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
}
static void one_rts(unsigned i)
{
	struct lnx_rma_target one = { .addr = 0, .key = KEY, .len = 10 };

	put_rts(&one, 1, 10, i, 0);
}
static void one_bad_rts(unsigned i)
{
	struct lnx_rma_target one = { .addr = 0, .key = KEY + 1, .len = 10 };

	put_rts(&one, 1, 10, i, 0);
}

static void bounded_at(enum lnx_rail_kind kind, void (*one)(unsigned i),
		       bool hold)
{
	size_t high;

	open_met(kind);
	core->hold_reads = hold;
	flood(6000, one);
	high = txes() + view_served(inside());
	flood(2000, one);
	cr_expect_eq(txes() + view_served(inside()), high,
		     "%zu and then %zu", high, txes() + view_served(inside()));
	cr_expect_leq(high, 6000u);
	cr_expect_leq(view_rxes(f.lnx), 6000u);
	close_rough();
}

#define FLOOD(what)						\
	BOTH(flood_of_##what) { bounded_at(kind, one_##what, false); }
FLOOD(get)
FLOOD(big_get)
FLOOD(bad_get)
FLOOD(keys)
FLOOD(bad_keys)
FLOOD(bad_put)
FLOOD(rts)
FLOOD(bad_rts)
BOTH(flood_of_pulls) { bounded_at(kind, one_rts, true); }

/* A write that is not answered is retransmitted: it must not be executed twice. */
BOTH(flood_of_put)
{
	struct fi_cq_tagged_entry e;
	unsigned got, events = 0;

	open_met(kind);
	got = flood(6000, one_put);
	cr_expect_lt(got, 6000);
	while (fi_cq_read(f.cq, &e, 1) == 1)
		events++;
	cr_expect_eq(events, got, "%u events of %u writes", events, got);
	close_rough();
}

/* ---- registering ---- */

BOTH(registering)
{
	struct fid_mr *many[1000], *other;

	open_met(kind);
	cr_expect_eq(try_reg(mem, 10, RW, KEY, &other), -FI_ENOKEY);
	cr_expect_eq(try_reg(NULL, 10, RW, KEY + 1, &other), -FI_EINVAL);
	cr_expect_eq(try_reg(mem, 10, 1ull << 63, KEY + 1, &other),
		     -FI_EINVAL);
	/* Many, opened and closed in any order. */
	for (uint64_t i = 0; i < 1000; i++)
		many[i] = reg(mem + i, 1000, RW, lnx_mix64(i));
	for (unsigned i = 0; i < 1000; i++) {
		struct fake_sent *s;

		get(lnx_mix64(i), 0, 1000, i);
		s = left(LNX_KIND_RESP);
		cr_assert_eq(s->h.len, 1000);
		cr_assert_arr_eq(s->bytes + HDR, mem + i, 1000);
		free(s);
		fake_ack(&f, &p);
	}
	for (unsigned i = 0; i < 1000; i += 2)
		cr_assert_eq(fi_close(&many[i]->fid), 0);
	for (unsigned i = 0; i < 1000; i++) {
		get(lnx_mix64(i), 0, 1, i);
		if (i % 2)
			free(left(LNX_KIND_RESP));
		else
			answered(i, FI_ENOKEY);
		fake_ack(&f, &p);
	}
	for (unsigned i = 1; i < 1000; i += 2)
		cr_assert_eq(fi_close(&many[i]->fid), 0);
	close_clean();
}

/*
 * A registration that fails at the second of two rails: peers might have used
 * it through the first one, and must not.
 */
Test(serve_peer, failed_registration_is_not_in_use)
{
	struct lnx_rma_target one = { .addr = 0, .key = 5, .len = 50000 };
	struct fid_mr *other;

	fake_conf.mr_eager = true;
	open_met(LNX_RAIL_PEER);
	core->hold_reads = true;
	put_rts(&one, 1, 50000, 5, 0);
	core->poll_in_mr = true;
	core->mr_fails = 1;
	cr_assert_eq(try_reg(mem, LEN, RW, 5, &other), -FI_ENOMEM);
	core->poll_in_mr = false;
	ended(5, FI_ENOKEY);
	cr_expect_eq(fake_held(core), 0);
	close_clean();
}

/* A key that is in use: the call fails, and its owner is not affected. */
BOTH(key_that_is_taken)
{
	struct fid_mr *other;

	fake_conf.mr_eager = true;
	open_met(kind);
	cr_assert_eq(core->nmr_open, 1u);
	cr_expect_eq(try_reg(mem, LEN, RW, KEY, &other), -FI_ENOKEY);
	cr_expect_eq(core->nmr_open, 1u);
	get(KEY, 0, 10, 4);
	free(left(LNX_KIND_RESP));
	close_clean();
}

/* Registrations may be closed after endpoints, and endpoints after registrations. */
BOTH(endpoint_goes_first)
{
	struct lnx_rma_target one = { .addr = 10, .key = KEY, .len = 50000 };

	fake_conf.mr_eager = true;
	open_met(kind);
	core->hold_reads = true;
	put_rts(&one, 1, 50000, 5, 0);
	get(KEY, 0, 10, 4);
	keys(KEY, 4);
	fake_pass(&f);
	keys(KEY, 5);
	cr_expect_eq(fi_close(&mr->fid), -FI_EBUSY);
	close_rough();
}

/* Requests that arrive while the endpoint closes find no registration. */
BOTH(late_requests)
{
	open_met(kind);
	lnx_lock(&f.lnx->lock);
	force_leaving(f.lnx, true);
	lnx_unlock(&f.lnx->lock);
	put(KEY, 0, mem, 10, 5, 10, LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
	fake_quiet(&f);
	cr_expect(untouched());
	cr_expect_eq(view_rx_next(inside()), p.seq - 1);
	force_leaving(f.lnx, false);
	p.seq--;
	put(KEY, 0, mem, 10, 5, 10, LNX_WIRE_F_LAST | LNX_WIRE_F_DATA);
	event(10);
	answered(5, 0);
	close_clean();
}

/* ---- requests that come during a send ---- */

static void asks_meanwhile(void)
{
	core->in_inject = NULL;
	get(KEY, 0, 8, 77);
}

/* Queued frames leave in the order of their numbers, and no number is missing. */
static void expect_message_then_answer(void)
{
	struct fake_sent *s;
	uint32_t seq;

	fake_after_ms(&f, 20);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	seq = s->h.seq;
	free(s);
	s = fake_expect(&f, &p, LNX_KIND_RESP);
	cr_expect_eq(s->h.seq, seq + 1);
	free(s);
	fake_expect_none(&f);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_expect_eq(view_acked(inside()), view_next(inside()));
}

/*
 * A core receives a request while it sends, and then refuses the frame: the
 * answer to the request gets the next number after that frame.
 */
Test(serve_peer, asked_in_an_inject_that_is_refused)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PEER },
				.caps = FI_RMA, .inject_size = 256 };
	static char ctx;
	struct iovec iov = { mem, 10 };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .tag = 3,
				   .context = &ctx };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	m.addr = p.addr;
	fake_hello(&f, &p);
	fake_pass(&f);
	memset(room, 0xee, sizeof(room));
	mr = reg(ours, LEN, RW, KEY);
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, &ctx), 0);
	fake_comp(&f, &ctx);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);

	/* For a peer without an exceptional send state the frame is queued, */
	core->in_inject = asks_meanwhile;
	core->inject_again = 1;
	cr_expect_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	cr_assert_null(core->in_inject);
	expect_message_then_answer();

	/* also a frame with a delivery completion, */
	core->in_inject = asks_meanwhile;
	core->inject_again = 1;
	cr_expect_eq(fi_tsendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	expect_message_then_answer();
	fake_comp(&f, &ctx);

	/* and, because of the answer, also for a path that is connecting. */
	force_state(view_path(inside(), 0), LNX_PATH_CONNECTING);
	core->in_inject = asks_meanwhile;
	core->inject_again = 1;
	cr_expect_eq(fi_tinject(f.ep, "z", 1, p.addr, 4), 0);
	expect_message_then_answer();
	force_state(view_path(inside(), 0), LNX_PATH_CONNECTING);
	core->inject_again = 1;
	cr_expect_eq(fi_tinject(f.ep, "z", 1, p.addr, 5), -FI_EAGAIN);
	fake_after_ms(&f, 20);
	fake_expect_none(&f);
	close_clean();
}
