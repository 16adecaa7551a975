/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes of remote memory on a scripted core, on the initiator's
 * side; everything on both kinds of framed rail.  The test is the target: it
 * answers, or does not, or sends answers that were not requested.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "fake_core.h"
#include "msg/tx.h"
#include "rma/rkey.h"

#define HDR	sizeof(struct lnx_wire_hdr)
#define KEY	0x4b4559ull
#define BIG	(LNX_PUSH_MAX + 1ul)	/* long enough to be announced */
#define SEL	.tx_bind = FI_SELECTIVE_COMPLETION

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b, c;			/* contexts */
static uint8_t buf[1 << 20], mem[1 << 20];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(rma_plain, name) { name(LNX_RAIL_PLAIN); }			\
	Test(rma_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static void fill(uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(i * 7 + i / 251);
}

static void open_with(enum lnx_rail_kind kind, struct fake_opt opt)
{
	opt.nrail = 1;
	opt.kind[0] = kind;
	opt.caps |= FI_RMA;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fill(mem, sizeof(mem));
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_get(f.lnx, p.addr);
}

static void introduce(void)
{
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
	cr_assert_eq(view_acked(inside()), view_posted(inside()));
}

static void open_introduced(enum lnx_rail_kind kind)
{
	open_with(kind, (struct fake_opt) { 0 });
	introduce();
}

/* No operation is left over. */
static void all_gone(void)
{
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	cr_expect_eq(view_rma_ops(f.lnx), 0u);
	cr_expect_eq(view_rma_segments(f.lnx), 0u);
	cr_expect_eq(view_chunks(f.lnx), 0u);
	cr_expect(view_rma_idle(f.lnx));
	cr_expect_eq(view_segments(inside()), 0u);
	cr_expect_eq(view_announced(inside()), 0u);
	cr_expect_eq(view_frames(f.lnx), 0u);
}

static void close_clean(void)
{
	all_gone();
	fake_quiet(&f);
	fake_close(&f);
}

/* ---- calls of the application ---- */

static ssize_t op(bool read, const struct fi_rma_iov *rma, size_t nrma,
		  uint64_t flags, void *context)
{
	struct iovec iov = { buf, 0 };
	struct fi_msg_rma m = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.addr,
		.rma_iov = rma, .rma_iov_count = nrma, .context = context,
		.data = 0xdada,
	};

	for (size_t i = 0; i < nrma; i++)
		iov.iov_len += rma[i].len;
	return read ? fi_readmsg(f.ep, &m, flags) :
		      fi_writemsg(f.ep, &m, flags);
}

static ssize_t wr(size_t len, uint64_t flags, void *context)
{
	struct fi_rma_iov rma = { .addr = 64, .len = len, .key = KEY };

	return op(false, &rma, 1, flags, context);
}

static ssize_t rd(size_t len, void *context)
{
	return fi_read(f.ep, buf, len, NULL, p.addr, 64, KEY, context);
}

/* ---- answers of the peer ---- */

static void answer(uint64_t id, int err, const void *data, size_t len)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RESP,
		  .data = id, .tag = (uint64_t)err, .len = len }, data, len);
}

static void fin(uint64_t id, int err)
{
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
		  .data = id, .len = (uint64_t)err }, NULL, 0);
}

/* The next frame, without ACKs. */
static struct fake_sent *left(uint8_t kind)
{
	while (core->sent && core->sent->h.kind == LNX_KIND_ACK)
		fake_expect_drop(&f, &p, LNX_KIND_ACK);
	return fake_expect(&f, &p, kind);
}

/* Its id, which is in data for reads, or in the head of a PUT. */
static uint64_t id_of(uint8_t kind)
{
	struct fake_sent *s = left(kind);
	uint64_t id = s->h.data;

	if (kind == LNX_KIND_PUT) {
		struct lnx_wire_put w;

		cr_assert(s->h.flags & LNX_WIRE_F_PUT);
		memcpy(&w, s->bytes + HDR, sizeof(w));
		id = le64toh(w.op);
	}
	free(s);
	return id;
}

static uint64_t rndv_of(unsigned n_targets)
{
	struct fake_sent *s = left(LNX_KIND_PUT_RTS);
	struct lnx_rma_target place[LNX_RMA_TARGETS_MAX];
	struct lnx_rts rts;
	size_t head = n_targets * sizeof(struct lnx_wire_target);

	cr_assert_eq(s->h.tag, n_targets);
	cr_assert_eq(lnx_wire_targets_get(place, n_targets, s->bytes + HDR, s->h.len),
		     0);
	cr_assert_eq(lnx_wire_rts_get(&rts, s->bytes + HDR + head,
				      s->len - HDR - head, s->h.len), 0);
	cr_expect_eq(place[0].key, KEY);
	free(s);
	return rts.op;
}

#define RW	(LNX_WIRE_KEYS_READ | LNX_WIRE_KEYS_WRITE)

/* The registration KEY of the peer has len bytes, and the core finds mem there. */
static void answer_access(uint64_t id, size_t len, uint16_t access)
{
	struct lnx_keys k = { .len = len, .access = access, .nkey = 1 };
	uint8_t payload[256];

	k.key[0].key = 77;
	k.key[0].addr = 0x10000;
	lnx_wire_keys_put(payload, &k);
	if (!core->nregion)
		fake_region_rw(core, 77, 0x10000, mem, sizeof(mem));
	answer(id, 0, payload, lnx_wire_keys_size(1));
}

static void answer_keys(uint64_t id, size_t len)
{
	answer_access(id, len, RW);
}

/* ---- frames ---- */

BOTH(spellings)
{
	struct iovec iov[2] = { { buf, 3 }, { buf + 3, 4 } };
	struct fi_rma_iov rma = { .addr = 0x64, .len = 7, .key = KEY };
	struct fi_msg_rma m = { .msg_iov = iov, .iov_count = 2, .data = 9,
				.rma_iov = &rma, .rma_iov_count = 1,
				.context = &a };
	static const struct { uint8_t kind, flags; bool comp; } want[] = {
		{ LNX_KIND_PUT, LNX_WIRE_F_LAST, true },
		{ LNX_KIND_PUT, LNX_WIRE_F_LAST, true },
		{ LNX_KIND_PUT, LNX_WIRE_F_LAST | LNX_WIRE_F_DATA, true },
		{ LNX_KIND_PUT, LNX_WIRE_F_LAST, false },
		{ LNX_KIND_PUT, LNX_WIRE_F_LAST | LNX_WIRE_F_DATA, true },
		{ LNX_KIND_PUT, LNX_WIRE_F_LAST | LNX_WIRE_F_DATA, false },
		{ LNX_KIND_GET, LNX_WIRE_F_LAST, true },
		{ LNX_KIND_GET, LNX_WIRE_F_LAST, true },
		{ LNX_KIND_GET, LNX_WIRE_F_LAST, true },
	};
	uint64_t id[3];
	unsigned i;

	open_introduced(kind);
	m.addr = p.addr;
	memcpy(buf, "abcdefg", 7);
	fi_write(f.ep, buf, 7, NULL, p.addr, 0x64, KEY, &a);
	fi_writev(f.ep, iov, NULL, 2, p.addr, 0x64, KEY, &a);
	fi_writemsg(f.ep, &m, FI_REMOTE_CQ_DATA);
	fi_inject_write(f.ep, buf, 7, p.addr, 0x64, KEY);
	fi_writedata(f.ep, buf, 7, NULL, 9, p.addr, 0x64, KEY, &a);
	fi_inject_writedata(f.ep, buf, 7, 9, p.addr, 0x64, KEY);
	fi_read(f.ep, buf, 7, NULL, p.addr, 0x64, KEY, &a);
	fi_readv(f.ep, iov, NULL, 2, p.addr, 0x64, KEY, &a);
	fi_readmsg(f.ep, &m, 0);
	for (i = 0; i < LNX_ARRAY_SIZE(want); i++) {
		struct fake_sent *s = fake_expect(&f, &p, want[i].kind);

		cr_expect_eq(s->h.flags, want[i].flags, "call %u", i);
		cr_expect_eq(s->h.tag, 0x64);
		cr_expect_eq(s->h.key, KEY);
		cr_expect_eq(s->h.len, 7);
		if (want[i].flags & LNX_WIRE_F_DATA)
			cr_expect_eq(s->h.data, 9);
		if (want[i].kind == LNX_KIND_PUT) {
			cr_expect_arr_eq(s->bytes + HDR, "abcdefg", 7);
			if (want[i].comp)
				cr_expect_eq(fake_comp(&f, &a).flags,
					     FI_RMA | FI_WRITE);
		} else {
			cr_expect_eq(s->len, HDR);
			id[i - 6] = s->h.data;
		}
		free(s);
	}
	fake_quiet(&f);
	for (i = 0; i < 3; i++) {
		memset(buf, 0, 7);
		answer(id[i], 0, "tuvwxyz", 7);
		cr_expect_eq(fake_comp(&f, &a).flags, FI_RMA | FI_READ);
		cr_expect_arr_eq(buf, "tuvwxyz", 7);
	}
	close_clean();
}

BOTH(bad_calls)
{
	static struct iovec iov[LNX_IOV_MAX + 1];
	struct fi_rma_iov rma[LNX_RMA_IOV_MAX + 1] = {
		{ .len = 5, .key = KEY }, { .len = 5, .key = KEY } };
	struct fi_msg_rma m = { .msg_iov = iov, .iov_count = 1,
				.rma_iov = rma, .rma_iov_count = 2 };

	open_introduced(kind);
	m.addr = p.addr;
	iov[0] = (struct iovec) { buf, 9 };
	cr_expect_eq(fi_writemsg(f.ep, &m, 0), -FI_EINVAL, "lengths differ");
	iov[0].iov_len = 11;
	cr_expect_eq(fi_readmsg(f.ep, &m, 0), -FI_EINVAL, "lengths differ");
	iov[0].iov_len = 4;
	rma[1].len = (size_t)-1;
	cr_expect_eq(fi_writemsg(f.ep, &m, 0), -FI_EINVAL, "their sum is 4");
	m.rma_iov_count = 0;
	cr_expect_eq(fi_writemsg(f.ep, &m, 0), -FI_EINVAL);
	m.rma_iov_count = LNX_RMA_IOV_MAX + 1;
	cr_expect_eq(fi_readmsg(f.ep, &m, 0), -FI_EINVAL);
	cr_expect_eq(fi_writev(f.ep, iov, NULL, LNX_IOV_MAX + 1, p.addr, 0,
			       KEY, &a), -FI_EINVAL);
	cr_expect_eq(fi_inject_write(f.ep, buf, LNX_INJECT_MAX + 1, p.addr, 0,
				     KEY), -FI_EINVAL);
	cr_expect_eq(fi_write(f.ep, buf, 1, NULL, 99, 0, KEY, &a), -FI_EINVAL);
	cr_expect_eq(fi_read(f.ep, buf, view_max_msg_size(f.lnx) + 1, NULL, p.addr,
			     0, KEY, &a), -FI_EMSGSIZE);
	fake_expect_none(&f);
	close_clean();
}

/* One write in frames: each byte once; data and total are in the last frame. */
static void split(const struct fi_rma_iov *rma, size_t nrma, uint64_t flags,
		  unsigned want)
{
	bool reply = flags & FI_DELIVERY_COMPLETE;
	size_t done = 0, len = 0, at = 0, i = 0;
	struct iovec iov[3];
	struct fi_msg_rma m = { .msg_iov = iov, .iov_count = 3,
				.addr = p.addr, .rma_iov = rma,
				.rma_iov_count = nrma, .context = &a,
				.data = 0xdada };
	uint64_t id[16];
	unsigned n;

	for (i = 0; i < nrma; i++)
		len += rma[i].len;
	/* Local pieces that are independent of the remote ones. */
	iov[0] = (struct iovec) { mem, len / 3 };
	iov[1] = (struct iovec) { mem + 500000, 0 };
	iov[2] = (struct iovec) { mem + len / 3, len - len / 3 };
	cr_assert_eq(fi_writemsg(f.ep, &m, flags), 0);
	for (i = 0, n = 0; i < nrma; n++) {
		struct fake_sent *s = left(LNX_KIND_PUT);
		const uint8_t *data = s->bytes + HDR;
		struct lnx_wire_put w = { 0 };
		bool last = done + s->h.len == len &&
			    i + 1 == nrma;

		cr_assert_lt(n, LNX_ARRAY_SIZE(id));
		if (s->h.flags & LNX_WIRE_F_PUT) {
			memcpy(&w, data, sizeof(w));
			data += sizeof(w);
			cr_expect_eq(le64toh(w.total), len);
		}
		id[n] = le64toh(w.op);
		cr_expect_eq(!id[n], !reply);
		cr_expect_eq(!!(s->h.flags & LNX_WIRE_F_LAST), last,
			     "frame %u", n);
		cr_expect_eq(!!(s->h.flags & LNX_WIRE_F_DATA),
			     last && (flags & FI_REMOTE_CQ_DATA));
		if (s->h.flags & LNX_WIRE_F_DATA) {
			cr_expect_eq(s->h.data, 0xdada);
			cr_expect(s->h.len == len || w.total);
		}
		cr_expect_eq(s->h.key, rma[i].key);
		cr_expect_eq(s->h.tag, rma[i].addr + at);
		cr_assert_leq(s->h.len, rma[i].len - at);
		cr_expect_arr_eq(data, mem + done, s->h.len);
		done += s->h.len;
		at += s->h.len;
		if (at == rma[i].len) {
			i++;
			at = 0;
		}
		free(s);
	}
	fake_expect_none(&f);
	cr_expect_eq(n, want, "%u frames, not %u, of %zu bytes", n, want, len);
	cr_expect_eq(done, len);
	for (i = 0; reply && i < n; i++) {
		fake_quiet(&f);
		answer(id[n - 1 - i], 0, NULL, 0);
	}
	fake_comp(&f, &a);
	fake_quiet(&f);
	fake_drop_all(&f, &p);
}

BOTH(small_writes)
{
	static const uint64_t flags[] = {
		0, FI_REMOTE_CQ_DATA, FI_DELIVERY_COMPLETE,
		FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE,
		FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA,
	};
	struct fi_rma_iov one = { .addr = 8, .key = KEY };
	struct fi_rma_iov four[4] = {
		{ .addr = 1, .len = 3000, .key = 1 },
		{ .addr = 2, .len = 0, .key = 2 },
		{ .addr = 3, .len = 5000, .key = 3 },
		{ .addr = 4, .len = LNX_PUT_MAX - 8000, .key = 4 },
	};

	open_introduced(kind);
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(flags); i++) {
		one.len = 0;
		split(&one, 1, flags[i], 1);
		one.len = 1;
		split(&one, 1, flags[i], 1);
		one.len = LNX_PUT_MAX;
		split(&one, 1, flags[i], 1);
		split(four, 4, flags[i], 4);
		/* The last piece may be empty. */
		split(four, 2, flags[i], 2);
		split(four + 1, 1, flags[i], 1);
	}
	close_clean();
}

/* ---- writes that the core does ---- */

static void no_more(void)
{
	while (core->sent && core->sent->h.kind == LNX_KIND_ACK)
		fake_expect_drop(&f, &p, LNX_KIND_ACK);
	fake_expect_none(&f);
}

/* The notice to the target that `total` bytes are written; nothing else is sent. */
static void expect_notice(uint64_t total, bool data)
{
	struct fake_sent *s = left(LNX_KIND_PUT);
	struct lnx_wire_put w;

	memcpy(&w, s->bytes + HDR, sizeof(w));
	cr_expect_eq(s->h.len, 0);
	cr_expect_eq(s->h.flags, LNX_WIRE_F_LAST | LNX_WIRE_F_PUT |
		     (data ? LNX_WIRE_F_DATA : 0));
	cr_expect_eq(le64toh(w.op), 0);
	cr_expect_eq(le64toh(w.total), total);
	if (data)
		cr_expect_eq(s->h.data, 0xdada);
	free(s);
	no_more();
}

BOTH(writes_by_the_core)
{
	struct fi_rma_iov two[2] = {
		{ .addr = 100, .len = 50000, .key = KEY },
		{ .addr = 300000, .len = 60000, .key = KEY } };

	fake_conf.chunk = 16384;
	open_introduced(kind);
	fill(buf, 110000);
	memset(mem, 0xee, sizeof(mem));
	cr_assert_eq(op(false, two, 2, 0, &a), 0);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 30);
	cr_expect_eq(fake_comp(&f, &a).flags, FI_RMA | FI_WRITE);
	cr_expect_arr_eq(mem + 100, buf, 50000);
	cr_expect_arr_eq(mem + 300000, buf + 50000, 60000);
	cr_expect_eq(mem[99], 0xee);
	cr_expect_eq(mem[50100], 0xee);
	cr_expect_eq(mem[299999], 0xee);
	cr_expect_eq(mem[360000], 0xee);
	no_more();
	/* The keys are known now.  With remote data the target gets a notice,
	 * once and last. */
	core->hold_reads = true;
	cr_assert_eq(op(false, two, 2, FI_REMOTE_CQ_DATA, &b), 0);
	fake_passes(&f, 4);
	no_more();
	core->hold_reads = false;
	fake_finish_all(core);
	fake_passes(&f, 30);
	fake_comp(&f, &b);
	expect_notice(110000, true);
	cr_expect_eq(core->nread, 0);
	close_clean();
}

/* A target with a counter gets a notice of each transfer, also of reads. */
BOTH(transfers_by_the_core_with_notices)
{
	struct fi_rma_iov two[2] = { { .addr = 64, .len = 20000, .key = 3 },
				     { .addr = 64, .len = 20000, .key = 4 } };
	struct fake_sent *s;
	uint64_t id;

	open_introduced(kind);
	cr_assert_eq(wr(20000, 0, &a), 0);
	answer_access(id_of(LNX_KIND_KEYS), sizeof(mem), RW |
		      LNX_WIRE_KEYS_TELL | LNX_WIRE_KEYS_TELL_READ);
	fake_passes(&f, 20);
	fake_comp(&f, &a);
	expect_notice(20000, false);
	cr_assert_eq(rd(20000, &b), 0);
	fake_passes(&f, 20);
	fake_quiet(&f);
	s = left(LNX_KIND_GET);
	cr_expect_eq(s->h.len, 0);
	cr_expect_eq(s->h.flags, LNX_WIRE_F_LAST);
	id = s->h.data;
	free(s);
	answer(id, 0, NULL, 0);
	fake_comp(&f, &b);
	no_more();
	/* One piece of two needs a notice: there is one for the operation, at
	 * its end. */
	cr_assert_eq(op(false, two, 2, 0, &a), 0);
	fake_pass(&f);
	for (unsigned i = 0; i < 2; i++) {
		s = left(LNX_KIND_KEYS);
		answer_access(s->h.data, sizeof(mem), RW |
			      (s->h.key == 3 ? LNX_WIRE_KEYS_TELL : 0));
		free(s);
	}
	fake_passes(&f, 20);
	fake_comp(&f, &a);
	expect_notice(40000, false);
	close_clean();
}

BOTH(transfers_by_the_core_not_allowed)
{
	open_introduced(kind);
	cr_assert_eq(wr(20000, FI_REMOTE_CQ_DATA, &a), 0);
	answer_access(id_of(LNX_KIND_KEYS), 100000, LNX_WIRE_KEYS_READ |
		      LNX_WIRE_KEYS_TELL);
	fake_err(&f, &a, FI_EACCES);
	cr_assert_eq(rd(20000, &a), 0);
	fake_passes(&f, 10);
	fake_comp(&f, &a);
	cr_expect_eq(core->nwrite, 0);
	cr_assert_eq(fi_write(f.ep, buf, 20000, NULL, p.addr, 0, 5, &b), 0);
	answer_access(id_of(LNX_KIND_KEYS), 100000, LNX_WIRE_KEYS_WRITE);
	fake_passes(&f, 10);
	fake_comp(&f, &b);
	cr_expect_eq(core->nwrite, 1);
	/* Cached keys are no reason to refuse: the peer is asked once more. */
	cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, 0, 5, &b), 0);
	answer_access(id_of(LNX_KIND_KEYS), 100000, LNX_WIRE_KEYS_WRITE);
	fake_err(&f, &b, FI_EACCES);
	/* Out of bounds. */
	cr_assert_eq(fi_write(f.ep, buf, 20000, NULL, p.addr, 80001, 5, &b), 0);
	answer_access(id_of(LNX_KIND_KEYS), 100000, LNX_WIRE_KEYS_WRITE);
	fake_err(&f, &b, FI_EACCES);
	cr_assert_eq(fi_write(f.ep, buf, 20000, NULL, p.addr, UINT64_MAX, 5,
			      &b), 0);
	answer_access(id_of(LNX_KIND_KEYS), 100000, LNX_WIRE_KEYS_WRITE);
	fake_err(&f, &b, FI_EACCES);
	cr_expect_eq(core->nwrite, 1);
	no_more();
	close_clean();
}

/* The same key is registered again with more memory and rights. */
BOTH(keys_that_were_registered_again)
{
	struct fi_cq_tagged_entry e[3];

	open_introduced(kind);
	cr_assert_eq(rd(20000, &a), 0);
	answer_access(id_of(LNX_KIND_KEYS), 50000, LNX_WIRE_KEYS_READ);
	fake_passes(&f, 10);
	fake_comp(&f, &a);
	/* Three at once: each that finds the cached keys insufficient requests
	 * new ones, or waits for a request. */
	cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, 60000, KEY, &a),
		     0);
	cr_assert_eq(fi_write(f.ep, buf, 20000, NULL, p.addr, 70000, KEY, &b),
		     0);
	cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, 20000, KEY, &c),
		     0);
	answer_access(id_of(LNX_KIND_KEYS), sizeof(mem), RW);
	fake_passes(&f, 20);
	cr_assert_eq(fi_cq_read(f.cq, e, 3), 3);
	no_more();
	/* Refused only by the answer to a request of its own. */
	cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, sizeof(mem), KEY,
			     &a), 0);
	cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, sizeof(mem), KEY,
			     &b), 0);
	answer_access(id_of(LNX_KIND_KEYS), sizeof(mem), RW);
	fake_err(&f, &a, FI_EACCES);
	answer_access(id_of(LNX_KIND_KEYS), sizeof(mem), RW);
	fake_err(&f, &b, FI_EACCES);
	no_more();
	/* Small reads that the core does: the next one asks the peer. */
	cr_assert_eq(fi_read(f.ep, buf, 64, NULL, p.addr, sizeof(mem), KEY, &a),
		     0);
	answer(id_of(LNX_KIND_GET), 0, mem, 64);
	fake_passes(&f, 4);
	fake_comp(&f, &a);
	close_clean();
}

/* A connection breaks: the same bytes are written again, with one notice. */
BOTH(write_by_the_core_that_fails)
{
	fake_conf.chunk = 16384;
	open_introduced(kind);
	fill(buf, 200000);
	memset(mem, 0xee, sizeof(mem));
	cr_assert_eq(wr(200000, FI_REMOTE_CQ_DATA, &a), 0);
	core->read_fails = 1;
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 4);
	fake_quiet(&f);
	fake_after_ms(&f, 30);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 30);
	fake_comp(&f, &a);
	cr_expect_arr_eq(mem + 64, buf, 200000);
	expect_notice(200000, true);
	/* The registration does not exist any more: there is no notice. */
	core->read_fails = 1;
	cr_assert_eq(wr(20000, FI_REMOTE_CQ_DATA, &b), 0);
	fake_passes(&f, 4);
	fake_after_ms(&f, 30);
	answer(id_of(LNX_KIND_KEYS), FI_ENOKEY, NULL, 0);
	fake_err(&f, &b, FI_ENOKEY);
	no_more();
	close_clean();
}

/* ---- writes that are announced ---- */

BOTH(large_writes_are_announced)
{
	struct fi_rma_iov two[2] = {
		{ .addr = 10, .len = LNX_PUSH_MAX, .key = KEY },
		{ .addr = 20, .len = 1, .key = 5 } };
	uint64_t id;

	open_introduced(kind);
	cr_assert_eq(op(false, two, 2, 0, &a), 0);
	id = rndv_of(2);
	cr_expect_eq(core->nmr_open, 1u);
	fake_quiet(&f);
	/* That is not the end of this write. */
	answer(id, 0, NULL, 0);
	fin(id + 1, 0);
	fin(0, 0);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 2u);
	fin(id, 0);
	cr_expect_eq(fake_comp(&f, &a).flags, FI_RMA | FI_WRITE);
	fin(id, 0);
	fake_quiet(&f);
	cr_expect_eq(core->nmr_open, 0u);

	cr_assert_eq(wr(BIG, 0, &b), 0);
	fin(rndv_of(1), FI_EACCES);
	cr_expect_eq(fake_err(&f, &b, FI_EACCES).flags, FI_RMA | FI_WRITE);
	close_clean();
}

/* If the buffer cannot be registered, the call fails and nothing is left over. */
BOTH(large_write_that_cannot_be_announced)
{
	open_introduced(kind);
	core->mr_fails = 1;
	cr_expect_eq(wr(BIG, 0, &a), -FI_ENOMEM);
	fake_expect_none(&f);
	close_clean();
}

/* ---- completions ---- */

BOTH(selective_completion)
{
	open_with(kind, (struct fake_opt) { SEL });
	introduce();
	cr_assert_eq(wr(10, 0, &a), 0);
	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &a), 0);
	cr_assert_eq(rd(10, &a), 0);
	cr_assert_eq(wr(BIG, 0, &a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	answer(id_of(LNX_KIND_PUT), 0, NULL, 0);
	answer(id_of(LNX_KIND_GET), 0, mem, 10);
	fin(rndv_of(1), 0);
	fake_quiet(&f);
	cr_assert_eq(wr(10, FI_COMPLETION, &b), 0);
	fake_comp(&f, &b);
	/* Errors are always reported. */
	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	answer(id_of(LNX_KIND_PUT), FI_ENOKEY, NULL, 0);
	fake_err(&f, &a, FI_ENOKEY);
	cr_assert_eq(rd(10, &a), 0);
	answer(id_of(LNX_KIND_GET), FI_EACCES, NULL, 0);
	fake_err(&f, &a, FI_EACCES);
	cr_assert_eq(wr(BIG, 0, &a), 0);
	fin(rndv_of(1), FI_EACCES);
	fake_err(&f, &a, FI_EACCES);
	close_clean();
}

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

static void counted_at(int line, uint64_t wok, uint64_t werr, uint64_t rok,
		       uint64_t rerr)
{
	uint64_t v[4] = { fi_cntr_read(cntr[LNX_CNTR_WRITE]),
			  fi_cntr_readerr(cntr[LNX_CNTR_WRITE]),
			  fi_cntr_read(cntr[LNX_CNTR_READ]),
			  fi_cntr_readerr(cntr[LNX_CNTR_READ]) };

	cr_assert(v[0] == wok && v[1] == werr && v[2] == rok && v[3] == rerr,
		  "line %d: writes %lu/%lu, reads %lu/%lu; not %lu/%lu, %lu/%lu",
		  line, v[0], v[1], v[2], v[3], wok, werr, rok, rerr);
	cr_assert_eq(fi_cntr_readerr(cntr[LNX_CNTR_SEND]), 0, "line %d", line);
	cr_assert_eq(fi_cntr_read(cntr[LNX_CNTR_SEND]), 1, "line %d", line);
	cr_assert_eq(fi_cntr_read(cntr[LNX_CNTR_RECV]), 0, "line %d", line);
}
#define counted(wok, werr, rok, rerr) counted_at(__LINE__, wok, werr, rok, rerr)

/* Each operation counts once, whether or not it is reported. */
BOTH(counters)
{
	uint64_t id;

	open_with(kind, (struct fake_opt) { SEL });
	bind_counters();
	introduce();
	counted(0, 0, 0, 0);
	cr_assert_eq(wr(10, 0, &a), 0);
	counted(1, 0, 0, 0);
	cr_assert_eq(wr(LNX_PUT_MAX, FI_COMPLETION, &a), 0);
	fake_comp(&f, &a);
	counted(2, 0, 0, 0);
	cr_assert_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), 0);
	counted(3, 0, 0, 0);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
	counted(3, 0, 0, 0);

	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &a), 0);
	id = id_of(LNX_KIND_PUT);
	counted(3, 0, 0, 0);
	answer(id, 0, NULL, 0);
	fake_quiet(&f);
	counted(4, 0, 0, 0);
	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &a), 0);
	fake_drop_all(&f, &p);
	answer(id + (1ull << 32), FI_EACCES, NULL, 0);
	fake_err(&f, &a, FI_EACCES);
	counted(4, 1, 0, 0);

	cr_assert_eq(wr(BIG, 0, &a), 0);
	id = rndv_of(1);
	counted(4, 1, 0, 0);
	fin(id, 0);
	fake_quiet(&f);
	counted(5, 1, 0, 0);
	cr_assert_eq(wr(BIG, 0, &a), 0);
	fin(rndv_of(1), FI_EIO);
	fake_err(&f, &a, FI_EIO);
	counted(5, 2, 0, 0);

	cr_assert_eq(wr(20000, 0, &a), 0);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 20);
	counted(6, 2, 0, 0);
	cr_assert_eq(rd(20000, &a), 0);
	fake_passes(&f, 20);
	counted(6, 2, 1, 0);
	cr_assert_eq(fi_write(f.ep, buf, 20000, NULL, p.addr, 0, 9, &a), 0);
	answer(id_of(LNX_KIND_KEYS), FI_ENOKEY, NULL, 0);
	fake_err(&f, &a, FI_ENOKEY);
	counted(6, 3, 1, 0);
	cr_assert_eq(rd(10, &a), 0);	/* the core does it, because it has the keys */
	fake_passes(&f, 2);
	fake_quiet(&f);
	counted(6, 3, 2, 0);
	cr_assert_eq(fi_read(f.ep, buf, 10, NULL, p.addr, 0, 9, &a), 0);
	answer(id_of(LNX_KIND_GET), FI_ENOKEY, NULL, 0);
	fake_err(&f, &a, FI_ENOKEY);
	counted(6, 3, 2, 1);
	all_gone();
	close_counters();
	fake_close(&f);
}

/* ---- cores that refuse ---- */

BOTH(inject_while_connecting)
{
	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = FAKE_ALWAYS;
	cr_expect_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), -FI_EAGAIN);
	cr_expect_eq(fi_inject_writedata(f.ep, "x", 1, 2, p.addr, 0, KEY),
		     -FI_EAGAIN);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_none(&f);
	cr_expect_eq(fi_inject_write(f.ep, "y", 1, p.addr, 0, KEY), 0);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	close_clean();
}

BOTH(queued_in_order)
{
	struct fi_rma_iov three[3] = { { .len = 2000, .key = KEY },
				       { .len = 2000, .key = KEY },
				       { .len = 4000, .key = KEY } };

	open_with(kind, (struct fake_opt) { 0 });
	core->send_again = FAKE_ALWAYS;
	cr_assert_eq(op(false, three, 3, 0, &a), 0);
	cr_assert_eq(rd(10, &b), 0);
	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &c), 0);
	cr_assert_eq(wr(BIG, 0, &a), 0);
	fake_after_ms(&f, 50);
	fake_quiet(&f);
	fake_expect_none(&f);
	core->send_again = 0;
	fake_after_ms(&f, 50);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	for (int i = 0; i < 3; i++)
		fake_expect_drop(&f, &p, LNX_KIND_PUT);
	fake_comp(&f, &a);
	answer(id_of(LNX_KIND_GET), 0, mem, 10);
	fake_comp(&f, &b);
	answer(id_of(LNX_KIND_PUT), 0, NULL, 0);
	fake_comp(&f, &c);
	fin(rndv_of(1), 0);
	fake_comp(&f, &a);
	close_clean();
}

BOTH(full_window)
{
	struct fi_rma_iov four[4] = { { .len = 1, .key = KEY },
				      { .len = 2, .key = KEY },
				      { .len = 3, .key = KEY },
				      { .len = 4, .key = KEY } };
	uint64_t id;

	fake_conf.window = 4;
	open_introduced(kind);
	cr_assert_eq(wr(10, 0, &c), 0);
	fake_comp(&f, &c);
	cr_assert_eq(op(false, four, 4, 0, &a), 0);
	cr_assert_eq(rd(10, &b), 0);
	fake_quiet(&f);
	for (int i = 0; i < 4; i++)
		fake_expect_drop(&f, &p, LNX_KIND_PUT);
	fake_expect_none(&f);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	id = id_of(LNX_KIND_GET);
	answer(id, 0, mem, 10);
	fake_comp(&f, &b);
	close_clean();
}

/* The number of unanswered reads is limited. */
BOTH(many_outstanding)
{
	enum { MANY = 20000 };
	static uint64_t id[MANY];
	unsigned n, got = 0;
	ssize_t ret = 0;

	open_introduced(kind);
	for (n = 0; n < MANY; n++) {
		struct fake_sent *s;

		ret = rd(8, &a);
		if (ret)
			break;
		while ((s = fake_take(core))) {
			if (s->h.seq == p.got) {
				p.got++;
				if (s->h.kind == LNX_KIND_GET)
					id[got++] = s->h.data;
			}
			free(s);
		}
		fake_ack(&f, &p);
		fake_pass(&f);
	}
	cr_expect_eq(ret, -FI_EAGAIN, "%u reads outstanding", n);
	cr_expect_geq(n, view_tx_size(f.lnx));
	cr_expect_eq(got, n);
	for (unsigned i = 0; i < got; i++) {
		answer(id[i], 0, mem, 8);
		fake_comp(&f, &a);
		fake_drop_all(&f, &p);
	}
	cr_expect_eq(rd(8, &b), 0);
	answer(id_of(LNX_KIND_GET), 0, mem, 8);
	fake_comp(&f, &b);
	close_clean();
}

/* ---- invalid answers ---- */

BOTH(answers_not_waited_for)
{
	uint64_t bad = 0, get, put;

	open_introduced(kind);
	memset(buf, 0xee, 100);
	cr_assert_eq(rd(10, &a), 0);
	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &b), 0);
	get = id_of(LNX_KIND_GET);
	put = id_of(LNX_KIND_PUT);
	/* Invented ids. */
	for (uint64_t id = 0; id < 200; id++) {
		answer(id, 0, mem, 10);
		answer(id << 32, 0, mem, 10);
		answer(UINT64_MAX - id, 0, mem, 10);
		answer((get & UINT32_MAX) | (id + 2) << 32, 0, mem, 10);
		bad += 4;
		fake_passes(&f, 2);
	}
	fake_quiet(&f);
	cr_expect_eq(buf[0], 0xee);
	cr_expect_eq(f.lnx->stats.bad_frames, bad);
	/* The real answer, and the same again. */
	answer(get, 0, mem, 10);
	fake_comp(&f, &a);
	memset(buf, 0xee, 100);
	answer(get, 0, mem, 10);
	answer(put, 0, NULL, 0);
	answer(put, 0, NULL, 0);
	fake_comp(&f, &b);
	fake_quiet(&f);
	cr_expect_eq(buf[0], 0xee);
	cr_expect_eq(f.lnx->stats.bad_frames, bad + 2);
	/* A late answer, when the slots are used again. */
	cr_assert_eq(rd(10, &c), 0);
	answer(get, 0, mem, 10);
	answer(put, 0, mem, 10);
	fake_quiet(&f);
	cr_expect_eq(buf[0], 0xee);
	answer(id_of(LNX_KIND_GET), 0, mem, 10);
	fake_comp(&f, &c);
	close_clean();
}

BOTH(answers_of_another_peer)
{
	struct fake_peer q;
	uint64_t get, put, keys, rndv;

	open_introduced(kind);
	fake_peer_init(&f, &q, 0x2222);
	fake_hello(&f, &q);
	memset(buf, 0xee, 100);
	cr_assert_eq(rd(10, &a), 0);
	cr_assert_eq(wr(10, FI_DELIVERY_COMPLETE, &b), 0);
	cr_assert_eq(rd(100000, &c), 0);
	cr_assert_eq(wr(BIG, 0, &c), 0);
	get = id_of(LNX_KIND_GET);
	put = id_of(LNX_KIND_PUT);
	keys = id_of(LNX_KIND_KEYS);
	rndv = rndv_of(1);
	{
		struct lnx_keys k = { .len = 1 << 20, .access = RW,
				      .nkey = 1 };
		uint8_t payload[256];
		struct lnx_hdr h = { .kind = LNX_KIND_RESP, .len = 10 };

		h.data = get;
		fake_next(&f, &q, h, mem, 10);
		h.data = put;
		fake_next(&f, &q, h, mem, 10);
		h.data = keys;
		h.len = lnx_wire_keys_size(1);
		lnx_wire_keys_put(payload, &k);
		fake_next(&f, &q, h, payload, h.len);
		h.tag = FI_ENOKEY;
		fake_next(&f, &q, h, payload, h.len);
		h.kind = LNX_KIND_FIN;
		h.data = rndv;
		h.tag = h.len = 0;
		fake_next(&f, &q, h, NULL, 0);
	}
	fake_passes(&f, 4);
	fake_quiet(&f);
	cr_expect_eq(buf[0], 0xee);
	cr_expect_eq(core->nread, 0);
	cr_expect_eq(f.lnx->stats.bad_frames, 5u);
	for (struct fake_sent *s; (s = fake_take(core));)
		free(s);
	answer(get, 0, mem, 10);
	fake_comp(&f, &a);
	answer(put, 0, mem, 10);
	fake_comp(&f, &b);
	fin(rndv, 0);
	fake_comp(&f, &c);
	answer_keys(keys, sizeof(mem));
	fake_passes(&f, 20);
	fake_comp(&f, &c);
	cr_expect_arr_eq(buf, mem + 64, 100000);
	fake_close(&f);
}

BOTH(answers_of_the_wrong_length)
{
	struct fi_rma_iov two[2] = { { .addr = 1, .len = 10, .key = KEY },
				     { .addr = 2, .len = 20, .key = KEY } };
	uint64_t one, other;

	open_introduced(kind);
	memset(buf, 0xee, 100);
	for (size_t len = 0; len < 30; len++) {
		if (len == 10)
			continue;
		force_keys_known(inside());	/* no request for keys is among them */
		cr_assert_eq(rd(10, &a), 0);
		answer(id_of(LNX_KIND_GET), 0, mem, len);
		fake_err(&f, &a, FI_EIO);
		fake_drop_all(&f, &p);
	}
	cr_expect_eq(buf[0], 0xee);
	/* The other half comes before the end is reported. */
	cr_assert_eq(op(true, two, 2, FI_COMPLETION, &b), 0);
	one = id_of(LNX_KIND_GET);
	other = id_of(LNX_KIND_GET);
	answer(other, 0, mem, 10);
	fake_quiet(&f);
	answer(one, 0, mem, 10);
	fake_err(&f, &b, FI_EIO);
	/* One or both are refused; data of a refusal is ignored. */
	cr_assert_eq(op(true, two, 2, FI_COMPLETION, &b), 0);
	answer(id_of(LNX_KIND_GET), FI_EACCES, mem, 10);
	answer(id_of(LNX_KIND_GET), FI_ENOKEY, NULL, 0);
	fake_err(&f, &b, FI_EACCES);
	cr_expect_arr_eq(buf, mem, 10, "of the one that succeeded");
	cr_expect_eq(buf[10], 0xee);
	close_clean();
}

/* Error numbers come from the peer: any are allowed, but not success or absurd ones. */
BOTH(errors_of_peers)
{
	struct fi_cq_err_entry e = { 0 };

	open_introduced(kind);
	cr_assert_eq(rd(10, &a), 0);
	answer(id_of(LNX_KIND_GET), INT32_MAX, NULL, 0);
	fake_pass(&f);
	cr_assert_eq(fi_cq_readerr(f.cq, &e, 0), 1);
	cr_expect_gt(e.err, 0);
	cr_expect_leq(e.err, 4096);
	/* A write that ended long ago. */
	answer(0, FI_EACCES, NULL, 0);
	answer(0, INT32_MAX, NULL, 0);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.rma_refused, 2u);
	answer(0, 0, NULL, 0);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.rma_refused, 2u);
	cr_expect_eq(f.lnx->stats.bad_frames, 1u);
	close_clean();
}

BOTH(flood_of_answers)
{
	open_introduced(kind);
	cr_assert_eq(rd(10, &a), 0);
	for (unsigned i = 0; i < 20000; i++) {
		answer(i * 77777ull << (i % 40), i % 3, mem, i % 200);
		if (!(i % 16))
			fake_pass(&f);
		fake_drop_all(&f, &p);
	}
	fake_passes(&f, 10);
	fake_drop_all(&f, &p);
	cr_expect_leq(view_rma_segments(f.lnx), 1u);
	cr_expect_leq(view_frames_of(f.lnx, 0), 1u);
	cr_expect_eq(view_frames_of(f.lnx, 1) + view_frames_of(f.lnx, 2), 0u);
	fake_close(&f);
}

/* ---- the peer dies ---- */

static void say_bye(void)
{
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE,
		   .seq = p.seq }, NULL, 0);
}

/* Each context in `ctx` gets one error, and there is no other completion. */
static void each_fails_once(char *const *ctx, unsigned n, int err)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry ee = { 0 };
	unsigned seen[16] = { 0 }, i, total = 0;

	fake_passes(&f, 10);
	while (fi_cq_read(f.cq, &e, 1) == -FI_EAVAIL) {
		cr_assert_eq(fi_cq_readerr(f.cq, &ee, 0), 1);
		cr_expect_eq(ee.err, err);
		for (i = 0; i < n && ctx[i] != ee.op_context; i++)
			;
		cr_assert_lt(i, n);
		seen[i]++;
		total++;
	}
	for (i = 0; i < n; i++)
		cr_expect_eq(seen[i], 1, "operation %u: %u errors", i, seen[i]);
	cr_expect_eq(total, n);
	fake_quiet(&f);
}

static void outstanding_fail(enum lnx_rail_kind kind, uint64_t bind,
			     uint64_t flags)
{
	static char x[9];
	char *ctx[9] = { x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7,
			 x + 8 };
	struct fi_rma_iov two[2] = { { .addr = 1, .len = 100, .key = KEY },
				     { .addr = 2, .len = 200, .key = KEY } };
	struct fi_rma_iov big[2] = { { .addr = 1, .len = 50000, .key = 1 },
				     { .addr = 2, .len = 60000, .key = 2 } };

	fake_conf.window = 64;
	open_with(kind, (struct fake_opt) { .tx_bind = bind });
	introduce();
	/* The keys of one registration are known, and a read is in progress. */
	core->hold_reads = true;
	cr_assert_eq(op(true, big, 1, flags, ctx[0]), 0);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 4);
	cr_assert_gt(fake_held(core), 0);
	cr_assert_eq(op(false, two, 2, flags | FI_DELIVERY_COMPLETE, ctx[1]),
		     0);
	cr_assert_eq(op(true, two, 2, flags, ctx[2]), 0);
	cr_assert_eq(op(true, big, 2, flags, ctx[3]), 0);
	cr_assert_eq(wr(BIG, flags, ctx[4]), 0);
	/* These never leave. */
	core->send_again = FAKE_ALWAYS;
	fake_pass(&f);
	cr_assert_eq(wr(5000, flags | FI_COMPLETION | FI_DELIVERY_COMPLETE,
			ctx[5]), 0);
	cr_assert_eq(op(true, two, 2, flags | FI_COMPLETION, ctx[6]), 0);
	cr_assert_eq(wr(5000, flags | FI_COMPLETION, ctx[7]), 0);
	cr_assert_eq(wr(50000, flags | FI_COMPLETION, ctx[8]), 0);
	fake_quiet(&f);
	core->hold_reads = false;
	say_bye();
	fake_pass(&f);
	while (fake_held(core))
		fake_finish(core, 0, FI_EIO);
	each_fails_once(ctx, 9, FI_ECONNRESET);
	cr_expect_eq(wr(10, flags, &a), -FI_EHOSTUNREACH);
	cr_expect_eq(op(true, two, 2, flags, &a), -FI_EHOSTUNREACH);
	cr_expect_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY),
		     -FI_EHOSTUNREACH);
	close_clean();
}

BOTH(outstanding_when_the_peer_goes) { outstanding_fail(kind, 0, 0); }
BOTH(selective_when_the_peer_goes)
{
	outstanding_fail(kind, FI_SELECTIVE_COMPLETION, 0);
}

/* Without a completion or a counter a failure is still reported. */
BOTH(silent_writes_when_the_peer_goes)
{
	static char x[3];
	char *ctx[3] = { x, x + 1, x + 2 };

	fake_conf.window = 4;
	open_with(kind, (struct fake_opt) { SEL });
	introduce();
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(wr(10, 0, &a), 0);
	cr_assert_eq(wr(10, 0, ctx[0]), 0);
	cr_assert_eq(wr(8000, 0, ctx[1]), 0);
	cr_assert_eq(wr(8000, FI_INJECT_COMPLETE, ctx[2]), 0);
	cr_assert_eq(fi_inject_write(f.ep, "x", 1, p.addr, 0, KEY), 0);
	fake_quiet(&f);
	say_bye();
	each_fails_once(ctx, 3, FI_ECONNRESET);
	close_clean();
}

/* Injects, and calls that behave like one, are not queued; all others are, even
 * if their success is not reported. */
BOTH(silent_while_connecting)
{
	struct fi_rma_iov two[2] = { { .len = 5, .key = KEY },
				     { .len = 5, .key = KEY } };

	open_with(kind, (struct fake_opt) { SEL });
	core->send_again = FAKE_ALWAYS;
	cr_expect_eq(wr(10, FI_INJECT, &a), -FI_EAGAIN);
	cr_expect_eq(op(false, two, 2, FI_INJECT, &a), -FI_EAGAIN);
	cr_expect_eq(wr(10, 0, &a), 0);
	cr_expect_eq(op(false, two, 2, FI_DELIVERY_COMPLETE, &a), 0);
	cr_expect_eq(op(true, two, 2, 0, &a), 0);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	fake_expect_drop(&f, &p, LNX_KIND_PUT);
	fake_drop_all(&f, &p);
	fake_quiet(&f);
	say_bye();
	fake_err(&f, &a, FI_ECONNRESET);
	fake_err(&f, &a, FI_ECONNRESET);
	close_clean();
}

BOTH(peer_given_up_by_what_must_leave)
{
	struct fi_rma_iov two[2] = { { .len = 5, .key = KEY },
				     { .len = 5, .key = KEY } };
	char *ctx[1] = { &a };
	ssize_t ret;

	open_with(kind, (struct fake_opt) { SEL });
	introduce();
	cr_assert_eq(op(true, two, 2, 0, &a), 0);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
	/* As after a long pause: connecting, and nothing is queued. */
	force_state(view_path(inside(), 0), LNX_PATH_IDLE);
	core->send_again = FAKE_ALWAYS;
	for (unsigned i = 0; i < 100; i++) {
		ret = op(false, two, 2, FI_INJECT, &b);
		if (ret != -FI_EAGAIN)
			break;
		fake_now_ns += LNX_NS_PER_S;
	}
	cr_expect_eq(ret, -FI_EHOSTUNREACH);
	each_fails_once(ctx, 1, FI_ETIMEDOUT);
	close_clean();
}

/* ---- small reads ---- */

BOTH(small_reads)
{
	struct fi_rma_iov four[4] = {
		{ .addr = 1, .len = 10, .key = 1 }, { .addr = 2, .key = 2 },
		{ .addr = 3, .len = 300, .key = 3 },
		{ .addr = 4, .len = 40, .key = 4 } };
	struct iovec iov[4] = { { buf, 100 }, { buf + 1000, 0 },
				{ buf + 2000, 200 }, { buf + 3000, 50 } };
	struct fi_msg_rma m = { .msg_iov = iov, .iov_count = 4,
				.rma_iov = four, .rma_iov_count = 4,
				.context = &a };
	uint64_t id[4];

	open_introduced(kind);
	m.addr = p.addr;
	memset(buf, 0xee, 4000);
	cr_assert_eq(fi_readmsg(f.ep, &m, 0), 0);
	/* The last piece ends it, at a target that counts; the pieces may leave
	 * in any order. */
	for (unsigned i = 4; i-- > 0;) {
		struct fake_sent *s = left(LNX_KIND_GET);

		cr_expect_eq(s->h.flags, i == 3 ? LNX_WIRE_F_LAST : 0);
		cr_expect_eq(s->h.tag, four[i].addr);
		cr_expect_eq(s->h.key, four[i].key);
		cr_expect_eq(s->h.len, four[i].len);
		id[i] = s->h.data;
		free(s);
	}
	/* Answers in any order. */
	answer(id[3], 0, mem + 310, 40);
	answer(id[1], 0, NULL, 0);
	answer(id[2], 0, mem + 10, 300);
	fake_quiet(&f);
	answer(id[0], 0, mem, 10);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, 100);
	cr_expect_arr_eq(buf + 2000, mem + 100, 200);
	cr_expect_arr_eq(buf + 3000, mem + 300, 50);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(*((uint8_t *)iov[i].iov_base + iov[i].iov_len),
			     0xee);
	/* The largest that needs one frame in each direction. */
	cr_assert_eq(rd(LNX_GET_MAX, &b), 0);
	answer(id_of(LNX_KIND_GET), 0, mem, LNX_GET_MAX);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf, mem, LNX_GET_MAX);
	close_clean();
}

/* ---- large reads ---- */

BOTH(large_reads)
{
	struct fi_rma_iov two[2] = {
		{ .addr = 100, .len = 50000, .key = KEY },
		{ .addr = 300000, .len = 60000, .key = KEY } };

	fake_conf.chunk = 16384;
	open_introduced(kind);
	memset(buf, 0xee, sizeof(buf));
	cr_assert_eq(rd(LNX_GET_MAX + 1, &a), 0);
	cr_assert_eq(op(true, two, 2, 0, &b), 0);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_expect_none(&f);	/* keys are requested once */
	fake_passes(&f, 30);
	{
		struct fi_cq_tagged_entry e[3];

		cr_assert_eq(fi_cq_read(f.cq, e, 3), 2);
		cr_expect_eq(e[0].flags, FI_RMA | FI_READ);
	}
	cr_expect_arr_eq(buf, mem + 100, 50000);
	cr_expect_arr_eq(buf + 50000, mem + 300000, 60000);
	cr_expect_eq(buf[110000], 0xee);
	/* And not again. */
	cr_assert_eq(rd(sizeof(mem) - 64, &c), 0);
	fake_passes(&f, 100);
	fake_comp(&f, &c);
	cr_expect_arr_eq(buf, mem + 64, sizeof(mem) - 64);
	{
		struct fake_sent *s;

		while ((s = fake_take(core))) {
			cr_expect_neq(s->h.kind, LNX_KIND_KEYS);
			free(s);
		}
	}
	close_clean();
}

/* Large reads of three registrations of a peer: these keys (bits) are requested, and known then. */
static void read_three(struct fake_peer *of, unsigned requested)
{
	struct fake_peer was = p;
	unsigned i;

	p = *of;
	for (i = 0; i < 3; i++) {
		cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, 64, KEY + i, &a), 0);
		fake_pass(&f);
		if (requested & 1u << i)
			answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
		fake_expect_none(&f);
		fake_passes(&f, 20);
		fake_comp(&f, &a);
		fake_drop_all(&f, &p);
	}
	*of = p;
	if (of != &p)
		p = was;
}

/* The keys of one peer end, or are out of date, and those of another are not. */
BOTH(keys_of_two_peers)
{
	struct fake_peer q;

	open_introduced(kind);
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &q);
	cr_assert_eq(fi_tinject(f.ep, "x", 1, q.addr, 1), 0);
	fake_drop_all(&f, &q);
	fake_ack(&f, &q);
	fake_pass(&f);
	read_three(&p, 7);
	read_three(&q, 7);
	read_three(&p, 0);
	/* One in the middle of them, and then the others. */
	lnx_rkey_forget(inside(), KEY + 1);
	read_three(&p, 2);
	read_three(&q, 0);
	lnx_rkeys_outdate(inside());
	read_three(&p, 7);
	read_three(&q, 0);
	lnx_rkeys_forget(inside());
	lnx_rkeys_forget(inside());
	read_three(&q, 0);
	read_three(&p, 7);
	close_clean();
}

/* The peer addresses its registration from that address on. */
BOTH(virtual_addresses)
{
	uint64_t at = 0xfffff000, far = at + sizeof(mem);
	static const struct { int64_t off; size_t len; bool ok; } row[] = {
		{ 0, LNX_GET_MAX + 1, true }, { 100, LNX_GET_MAX + 1, true },
		{ -1, LNX_GET_MAX + 1, false }, { INT64_MIN, 50000, false },
	};
	struct fi_rma_iov rma = { .key = KEY };
	struct lnx_keys k = { .len = sizeof(mem), .origin = at, .access = RW,
			      .nkey = 1, .key[0] = { .key = 77,
						     .addr = 0x10000 } };
	uint8_t payload[256];

	open_introduced(kind);
	fake_region_rw(core, 77, 0x10000, mem, sizeof(mem));
	lnx_wire_keys_put(payload, &k);
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		rma.addr = at + (uint64_t)row[i].off;
		rma.len = row[i].len;
		memset(buf, 0xee, sizeof(buf));
		cr_assert_eq(op(true, &rma, 1, 0, &a), 0);
		/* Not allowed by the cached keys: the peer is asked once more. */
		if (!i || !row[i].ok)
			answer(id_of(LNX_KIND_KEYS), 0, payload,
			       lnx_wire_keys_size(1));
		fake_passes(&f, 30);
		if (!row[i].ok) {
			fake_err(&f, &a, FI_EACCES);
			continue;
		}
		fake_comp(&f, &a);
		cr_expect_arr_eq(buf, mem + row[i].off, row[i].len);
	}
	/* Its last byte, and one more. */
	rma.len = LNX_GET_MAX + 1;
	rma.addr = far - rma.len;
	cr_assert_eq(op(true, &rma, 1, 0, &b), 0);
	fake_passes(&f, 30);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf, mem + sizeof(mem) - rma.len, rma.len);
	rma.addr++;
	cr_assert_eq(op(true, &rma, 1, 0, &b), 0);
	answer(id_of(LNX_KIND_KEYS), 0, payload, lnx_wire_keys_size(1));
	fake_passes(&f, 30);
	fake_err(&f, &b, FI_EACCES);
	rma.addr = at + 7;
	rma.len = LNX_PUT_MAX + 1;
	memset(buf, 0x3c, rma.len);
	cr_assert_eq(op(false, &rma, 1, 0, &c), 0);
	fake_passes(&f, 30);
	fake_comp(&f, &c);
	cr_expect_arr_eq(mem + 7, buf, rma.len);
	close_clean();
}

/* A read out of bounds is not passed to a core. */
BOTH(large_reads_outside)
{
	static const struct { uint64_t addr; size_t len; bool in; } row[] = {
		{ 0, 200000, true }, { 0, 200001, false }, { 1, 200000, false },
		{ 180000, 20000, true }, { 180001, 20000, false },
		{ 200000, 20000, false }, { UINT64_MAX, 20000, false },
		{ UINT64_MAX - 19999, 20000, false },
		{ 1ull << 63, 20000, false },
	};
	unsigned nread;

	open_introduced(kind);
	cr_assert_eq(rd(20000, &a), 0);
	answer_keys(id_of(LNX_KIND_KEYS), 200000);
	fake_passes(&f, 4);
	fake_comp(&f, &a);
	for (unsigned i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		nread = core->nread;
		cr_assert_eq(fi_read(f.ep, buf, row[i].len, NULL, p.addr,
				     row[i].addr, KEY, &b), 0);
		fake_passes(&f, 30);
		if (row[i].in) {
			fake_comp(&f, &b);
			continue;
		}
		answer_keys(id_of(LNX_KIND_KEYS), 200000);
		fake_err(&f, &b, FI_EACCES);
		cr_expect_eq(core->nread, nread, "row %u", i);
	}
	close_clean();
}

BOTH(keys_that_are_none)
{
	struct lnx_keys k = { .len = 100000, .access = RW, .nkey = 1 };
	uint8_t payload[1024];

	open_introduced(kind);
	lnx_wire_keys_put(payload, &k);
	for (size_t len = 0; len < 100; len++) {
		if (len == lnx_wire_keys_size(1))
			continue;
		cr_assert_eq(rd(20000, &a), 0);
		answer(id_of(LNX_KIND_KEYS), 0, payload, len);
		fake_err(&f, &a, FI_EIO);
		fake_drop_all(&f, &p);
	}
	/* No key for the rail of the path: they are requested again, but not
	 * for ever. */
	k.key[0].rail = 9;
	lnx_wire_keys_put(payload, &k);
	cr_assert_eq(rd(20000, &a), 0);
	for (unsigned i = 0; i < 4000; i++) {
		struct fake_sent *s;

		while ((s = fake_take(core))) {
			if (s->h.seq == p.got && lnx_wire_kind_sequenced(s->h.kind))
				p.got++;
			if (s->h.kind == LNX_KIND_KEYS)
				answer(s->h.data, 0, payload, lnx_wire_keys_size(1));
			free(s);
		}
		fake_after_ms(&f, 50);
	}
	fake_err(&f, &a, FI_ENOKEY);
	cr_expect_eq(core->nread, 0);
	/* The peer refuses. */
	cr_assert_eq(rd(20000, &b), 0);
	cr_assert_eq(rd(30000, &b), 0);
	fake_passes(&f, 2);
	answer(id_of(LNX_KIND_KEYS), FI_ENOKEY, NULL, 0);
	fake_err(&f, &b, FI_ENOKEY);
	fake_err(&f, &b, FI_ENOKEY);
	close_clean();
}

/* The connection breaks: keys are requested again, and everything is read again. */
BOTH(read_that_fails)
{
	fake_conf.chunk = 16384;
	open_introduced(kind);
	cr_assert_eq(rd(200000, &a), 0);
	core->read_fails = 1;
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 4);
	fake_quiet(&f);
	fake_after_ms(&f, 30);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 30);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem + 64, 200000);
	close_clean();
}

/* Nothing is written to a buffer that is the application's again. */
BOTH(read_that_fails_half_way)
{
	uint64_t id;

	fake_conf.chunk = 16384;
	open_introduced(kind);
	core->hold_reads = true;
	cr_assert_eq(rd(200000, &a), 0);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 4);
	cr_assert_eq(fake_held(core), 4);
	fake_finish(core, 1, FI_EIO);
	fake_after_ms(&f, 100);
	id = id_of(LNX_KIND_KEYS);
	cr_expect_eq(fake_held(core), 3);	/* no new read before the answer */
	/* The registration does not exist any more. */
	answer(id, FI_ENOKEY, NULL, 0);
	fake_passes(&f, 4);
	fake_quiet(&f);		/* not while reads are outstanding */
	core->hold_reads = false;
	fake_finish_all(core);
	fake_passes(&f, 4);
	fake_err(&f, &a, FI_ENOKEY);
	/* Nothing is cached for it now. */
	cr_assert_eq(rd(20000, &b), 0);
	answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
	fake_passes(&f, 20);
	fake_comp(&f, &b);
	close_clean();
}

BOTH(read_that_fails_for_good)
{
	fake_conf.transaction_timeout = 5000;
	open_introduced(kind);
	core->read_fails = FAKE_ALWAYS;
	cr_assert_eq(rd(20000, &a), 0);
	for (unsigned i = 0; i < 4000; i++) {
		struct fake_sent *s;

		while ((s = fake_take(core))) {
			if (s->h.seq == p.got && lnx_wire_kind_sequenced(s->h.kind))
				p.got++;
			if (s->h.kind == LNX_KIND_KEYS)
				answer_keys(s->h.data, sizeof(mem));
			free(s);
		}
		fake_after_ms(&f, 20);
	}
	fake_err(&f, &a, FI_EIO);
	close_clean();
}

/* ---- pieces that fail now and then, over one path or two ---- */

/* As many keys as the peer has rails; the core of each rail finds mem there. */
static void answer_keys_of(uint64_t id, unsigned nrail)
{
	struct lnx_keys k = { .len = sizeof(mem), .access = RW, .nkey = nrail };
	uint8_t payload[256];

	for (unsigned i = 0; i < nrail; i++) {
		k.key[i].rail = (uint8_t)i;
		k.key[i].key = 77;
		k.key[i].addr = 0x10000;
		if (!f.core[i]->nregion)
			fake_region_rw(f.core[i], 77, 0x10000, mem,
				       sizeof(mem));
	}
	lnx_wire_keys_put(payload, &k);
	answer(id, 0, payload, lnx_wire_keys_size(nrail));
}

/* The peer's part while ms pass: everything that the cores hold ends, one of
 * every `one_of` with an error. */
static void shaky(unsigned nrail, unsigned ms, unsigned one_of)
{
	static unsigned n;

	while (ms--) {
		for (unsigned i = 0; i < nrail; i++) {
			struct fake_sent *s;

			while ((s = fake_take(f.core[i]))) {
				if (s->h.seq == p.got &&
				    lnx_wire_kind_sequenced(s->h.kind))
					p.got++;
				if (s->h.kind == LNX_KIND_KEYS)
					answer_keys_of(s->h.data, nrail);
				free(s);
			}
			while (fake_held(f.core[i]))
				fake_finish(f.core[i], 0, ++n % one_of ? 0 :
					    FI_EREMOTEIO);
		}
		fake_ack(&f, &p);
		fake_after_ms(&f, 1);
	}
}

static void open_shaky(enum lnx_rail_kind kind, unsigned nrail)
{
	struct fake_opt opt = { .nrail = nrail, .kind = { kind, kind },
				.caps = FI_RMA };

	fake_conf.chunk = 4096;
	fake_conf.transaction_timeout = 5000;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fill(mem, sizeof(mem));
	introduce();
	for (unsigned i = 0; i < nrail; i++)
		f.core[i]->hold_reads = true;
}

static void close_shaky(unsigned nrail)
{
	for (unsigned i = 1; i < nrail; i++) {
		struct fake_sent *s;

		while ((s = fake_take(f.core[i])))
			free(s);
	}
	close_clean();
}

/* Pieces that arrived are kept; in minutes each piece gets enough attempts. */
static void fails_at_times(enum lnx_rail_kind kind, unsigned nrail, bool read)
{
	open_shaky(kind, nrail);
	fill(buf, sizeof(buf));
	memset(read ? buf : mem, 0xee, 200000);
	cr_assert_eq(read ? rd(200000, &a) :
			    wr(LNX_PUSH_MAX, FI_DELIVERY_COMPLETE, &a), 0);
	shaky(nrail, 35000, 3);
	fake_comp(&f, &a);
	if (read)
		cr_expect_arr_eq(buf, mem + 64, 200000);
	else
		cr_expect_arr_eq(mem + 64, buf, LNX_PUSH_MAX);
	cr_expect_gt(f.lnx->stats.core_errors, 5u);
	close_shaky(nrail);
}

BOTH(read_over_one_that_fails_at_times) { fails_at_times(kind, 1, true); }
BOTH(read_over_two_that_fail_at_times) { fails_at_times(kind, 2, true); }
BOTH(write_over_one_that_fails_at_times) { fails_at_times(kind, 1, false); }

/* Nothing succeeds: the operation ends at FI_LNX_TRANSACTION_TIMEOUT, not much
 * earlier or later; and not each failure sends a frame. */
static void fails_always(enum lnx_rail_kind kind, unsigned nrail)
{
	struct lnx_stats *st;
	struct fi_cq_err_entry e;

	open_shaky(kind, nrail);
	st = &f.lnx->stats;
	cr_assert_eq(rd(200000, &a), 0);
	shaky(nrail, 4900, 1);
	fake_quiet(&f);
	shaky(nrail, 1000, 1);
	e = fake_err(&f, &a, FI_EREMOTEIO);
	cr_expect_eq(e.flags, FI_RMA | FI_READ);
	cr_expect_lt(st->core_errors, 400u * nrail);
	/* The next read works. */
	cr_assert_eq(rd(200000, &b), 0);
	shaky(nrail, 2000, 1000000);
	fake_comp(&f, &b);
	close_shaky(nrail);
}

BOTH(read_over_one_that_always_fails) { fails_always(kind, 1); }
BOTH(read_over_two_that_always_fail) { fails_always(kind, 2); }

/* These keys will never work: others are requested, once. */
BOTH(read_that_cannot_get_better)
{
	uint64_t t0;

	open_shaky(kind, 2);
	cr_assert_eq(rd(20000, &a), 0);
	answer_keys_of(id_of(LNX_KIND_KEYS), 2);
	fake_passes(&f, 4);
	t0 = fake_now_ns;
	for (unsigned i = 0; i < 500 && (fake_held(f.core[0]) ||
					 fake_held(f.core[1]) ||
					 view_rma_segments(f.lnx)); i++) {
		for (unsigned k = 0; k < 2; k++)
			while (fake_held(f.core[k]))
				fake_finish(f.core[k], 0, FI_ENOKEY);
		shaky(2, 1, 1);
	}
	fake_err(&f, &a, FI_ENOKEY);
	cr_expect_lt(fake_now_ns - t0, 500 * LNX_NS_PER_MS);
	close_shaky(2);
}

/*
 * Ids of operations can be guessed, and cores poll while they send: here keys
 * arrive before the request has left.
 */
static void guessed(bool yes)
{
	struct lnx_keys k = { .len = sizeof(mem), .access = RW, .nkey = 1 };
	uint8_t payload[256];
	uint64_t id;

	open_introduced(LNX_RAIL_PEER);
	cr_assert_eq(rd(20000, &a), 0);
	id = id_of(LNX_KIND_KEYS);
	answer(id, FI_ENOKEY, NULL, 0);
	fake_err(&f, &a, FI_ENOKEY);
	fake_drop_all(&f, &p);
	lnx_wire_keys_put(payload, &k);
	k.key[0].key = 77;
	k.key[0].addr = 0x10000;
	lnx_wire_keys_put(payload, &k);
	fake_region(core, 77, 0x10000, mem, sizeof(mem));
	/* The last freed slot is used first: a segment takes it, then the
	 * request for keys. */
	for (uint64_t i = 0; i < 70; i++)
		answer(2ull << 32 | i, yes ? 0 : FI_ENOKEY, payload,
		       yes ? lnx_wire_keys_size(1) : 0);
	for (uint64_t i = 0; i < 70; i++)
		answer(1ull << 32 | i, yes ? 0 : FI_ENOKEY, payload,
		       yes ? lnx_wire_keys_size(1) : 0);
	core->poll_in_send = true;
	cr_assert_eq(rd(20000, &b), 0);
	core->poll_in_send = false;
	fake_passes(&f, 20);
	if (yes)
		fake_comp(&f, &b);
	else
		fake_err(&f, &b, FI_ENOKEY);
	close_clean();
}

Test(rma_peer, keys_before_they_are_asked_for) { guessed(true); }
Test(rma_peer, refusal_before_it_is_asked_for) { guessed(false); }

/* Applications may open and close registrations without end. */
BOTH(keys_of_many_registrations)
{
	open_introduced(kind);
	for (uint64_t i = 0; i < 10000; i++) {
		cr_assert_eq(fi_read(f.ep, buf, 20000, NULL, p.addr, 64, i,
				     &a), 0);
		fake_pass(&f);
		answer_keys(id_of(LNX_KIND_KEYS), sizeof(mem));
		fake_passes(&f, 3);
		fake_comp(&f, &a);
		fake_drop_all(&f, &p);
		fake_ack(&f, &p);
	}
	cr_expect_leq(view_rma_numbers(f.lnx), 64u);
	close_clean();
}

/* ---- closing ---- */

/* Close after any number of steps. */
static void close_after(enum lnx_rail_kind kind, unsigned steps)
{
	struct fi_rma_iov two[2] = { { .addr = 1, .len = 50000, .key = 1 },
				     { .addr = 2, .len = 60000, .key = 2 } };
	uint64_t id = 0;

	fake_conf.window = 16;
	open_with(kind, (struct fake_opt) { 0 });
	for (unsigned i = 0; i < steps; i++) {
		switch (i) {
		case 0: wr(10, 0, &a); break;
		case 1: wr(8000, FI_DELIVERY_COMPLETE, &a); break;
		case 2: rd(10, &a); break;
		case 3: op(true, two, 2, 0, &a); break;
		case 4: wr(BIG, 0, &a); wr(60000, 0, &a); break;
		case 5: core->hold_sends = true; break;
		case 6: rd(20000, &a); break;
		case 7: core->hold_sends = false; fake_finish_all(core); break;
		case 8:
			for (struct fake_sent *s; (s = fake_take(core));) {
				if (s->h.kind == LNX_KIND_KEYS)
					id = s->h.data;
				p.got++;
				free(s);
			}
			break;
		case 9: core->hold_reads = true; break;
		case 10: answer_keys(id, sizeof(mem)); break;
		case 11: fake_passes(&f, 4); break;
		case 12: fake_finish(core, 0, FI_EIO); break;
		case 13: core->hold_reads = false; fake_finish_all(core); break;
		case 14: fake_passes(&f, 4); break;
		case 15: core->send_again = FAKE_ALWAYS; break;
		case 16: rd(10, &a); wr(10, 0, &a); rd(30000, &a); break;
		case 17: fake_after_ms(&f, 40); break;
		default: break;
		}
	}
	fake_close(&f);
}

BOTH(close_in_every_state)
{
	for (unsigned i = 0; i <= 18; i++)
		close_after(kind, i);
}
