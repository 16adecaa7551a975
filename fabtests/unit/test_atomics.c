/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations on a scripted core, both sides: the test is first the peer
 * that requests, then the peer that executes.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "fake_core.h"
#include "fake_memory.h"
#include "rma/amo_exec.h"
#include "rma/amo.h"
#include "wire/atomic.h"

#define KEY	0x1234567890ULL
#define RO_KEY	7
#define WO_KEY	8

static struct fake f;
static struct fake_peer p, q;
static struct fid_mr *mr[3];
static uint64_t mem[4096];		/* the memory that every key names */
static char a, b;			/* contexts */

/* ---- helpers ---- */

static void share(int i, uint64_t key, uint64_t access)
{
	cr_assert_not(fi_mr_reg(&f.domain.fid, mem, sizeof(mem), access, 0, key,
				0, &mr[i], NULL));
}

static void meet(struct fake_peer *peer)
{
	fake_hello(&f, peer);
	fake_pass(&f);
	/* Sends our hello to it. */
	cr_assert_not(fi_inject(f.ep, "x", 1, peer->addr));
	fake_after_ms(&f, 1);
	fake_drop_all(&f, peer);
	fake_ack(&f, peer);
	fake_passes(&f, 2);
}

static void begin(void)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN } };
	unsigned i;

	fake_open(&f, &opt);
	f.domain.fid.mr = &lnx_mr_ops;
	f.domain.fid.fid.fclass = FI_CLASS_DOMAIN;
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &p);
	fake_peer_insert(&f, &q);
	for (i = 0; i < LNX_ARRAY_SIZE(mem); i++)
		mem[i] = 1000 + i;
	share(0, KEY, FI_REMOTE_READ | FI_REMOTE_WRITE);
	share(1, RO_KEY, FI_REMOTE_READ);
	share(2, WO_KEY, FI_REMOTE_WRITE);
	meet(&p);
	meet(&q);
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		cr_expect_not(fi_close(&mr[i]->fid));
	fake_drop_all(&f, &p);
	fake_close(&f);
}

TestSuite(atomics, .init = begin, .fini = end);

/* ---- as the target ---- */

/* A peer's request: u64 elements, in one piece unless the test changes it. */
static struct lnx_atomic ask(int op, int cls, uint64_t key, uint64_t addr,
			     unsigned count)
{
	return (struct lnx_atomic) {
		.op = (uint8_t)op, .type = FI_UINT64, .cls = (uint8_t)cls,
		.noperand = op == FI_ATOMIC_READ ? 0 : cls == 2 ? 2 : 1,
		.nseg = 1, .size = 8, .count = count,
		.seg = { { addr, key, count } },
	};
}

static void send_ask(const struct lnx_atomic *at, uint32_t seq, uint64_t op,
		     const uint64_t *operands)
{
	static uint8_t payload[LNX_PAYLOAD_MAX];
	size_t len = lnx_atomic_size(at), head = lnx_atomic_head(at);
	struct lnx_hdr h = {
		.kind = LNX_KIND_ATOMIC, .seq = seq, .data = op, .len = len,
	};

	lnx_atomic_put(payload, at);
	if (len > head)
		memcpy(payload + head, operands, len - head);
	fake_frame(&f, &p, h, payload, len);
}

/* The request in the next frame of p; its reply must have that error and length. */
static struct fake_sent *asked(const struct lnx_atomic *at,
			       const uint64_t *operands, int err, size_t len)
{
	static uint64_t op = 77;
	struct fake_sent *s;

	send_ask(at, p.seq++, ++op, operands);
	fake_passes(&f, 3);
	s = fake_expect(&f, &p, LNX_KIND_RESP);
	cr_expect_eq(s->h.data, op);
	cr_expect_eq(s->h.tag, (uint64_t)err, "answered %d, not %d",
		     (int)s->h.tag, err);
	cr_expect_eq(s->h.len, len);
	return s;
}

static uint64_t answer(const struct fake_sent *s, unsigned i)
{
	uint64_t v;

	memcpy(&v, s->bytes + sizeof(struct lnx_wire_hdr) + i * 8, 8);
	return v;
}

Test(atomics, base_is_done_and_answered)
{
	struct lnx_atomic at = ask(FI_SUM, LNX_AMO_BASE, KEY, 16, 2);
	uint64_t v[2] = { 10, 20 };

	free(asked(&at, v, 0, 0));
	cr_expect(mem[1] == 1001 && mem[2] == 1012 && mem[3] == 1023 &&
		  mem[4] == 1004);
}

Test(atomics, fetch_answers_with_what_was_there)
{
	struct lnx_atomic at = ask(FI_BXOR, LNX_AMO_FETCH, KEY, 8, 2);
	uint64_t v[2] = { ~0ULL, 1 };
	struct fake_sent *s;

	/* Two pieces, the second at a lower address than the first. */
	at.nseg = 2;
	at.seg[0].count = 1;
	at.seg[1] = at.seg[0];
	at.seg[1].addr = 0;
	s = asked(&at, v, 0, 16);
	cr_expect(answer(s, 0) == 1001 && answer(s, 1) == 1000);
	cr_expect(mem[1] == ~1001ULL && mem[0] == 1001 && mem[2] == 1002);
	free(s);
}

Test(atomics, compare_takes_both_operands)
{
	struct lnx_atomic at = ask(FI_CSWAP, LNX_AMO_COMPARE, KEY, 0, 2);
	uint64_t v[4] = { 5, 6, 1000, 1 };
	struct fake_sent *s = asked(&at, v, 0, 16);

	cr_expect(answer(s, 0) == 1000 && answer(s, 1) == 1001);
	cr_expect(mem[0] == 5 && mem[1] == 1001);
	free(s);
}

Test(atomics, what_comes_twice_is_done_once)
{
	struct lnx_atomic at = ask(FI_SUM, LNX_AMO_BASE, KEY, 0, 1);
	uint64_t one = 1;
	uint32_t seq = p.seq++;

	send_ask(&at, seq, 5, &one);
	send_ask(&at, seq, 5, &one);
	fake_passes(&f, 3);
	send_ask(&at, seq, 5, &one);
	fake_passes(&f, 3);
	cr_expect_eq(mem[0], 1001);
	fake_expect_drop(&f, &p, LNX_KIND_RESP);
	while (f.core[0]->sent)
		fake_expect_drop(&f, &p, LNX_KIND_ACK);
}

/* All or nothing: the first piece is valid. */
Test(atomics, refused_ones_change_nothing)
{
	static const struct {
		int op, cls;
		uint64_t key, addr;
		int err;
	} row[] = {
		{ FI_SUM, LNX_AMO_BASE, 99, 0, FI_ENOKEY },
		{ FI_SUM, LNX_AMO_BASE, RO_KEY, 0, FI_EACCES },
		{ FI_SUM, LNX_AMO_FETCH, RO_KEY, 0, FI_EACCES },
		{ FI_SUM, LNX_AMO_FETCH, WO_KEY, 0, FI_EACCES },
		{ FI_ATOMIC_READ, LNX_AMO_FETCH, WO_KEY, 0, FI_EACCES },
		{ FI_CSWAP, LNX_AMO_COMPARE, WO_KEY, 0, FI_EACCES },
		{ FI_CSWAP, LNX_AMO_COMPARE, RO_KEY, 0, FI_EACCES },
		{ FI_SUM, LNX_AMO_BASE, KEY, sizeof(mem), FI_EACCES },
		{ FI_SUM, LNX_AMO_BASE, KEY, sizeof(mem) - 7, FI_EACCES },
		{ FI_SUM, LNX_AMO_BASE, KEY, UINT64_MAX, FI_EACCES },
		{ FI_SUM, LNX_AMO_BASE, KEY, UINT64_MAX - 7, FI_EACCES },
	};
	uint64_t v[4] = { 1, 1, 1000, 1000 }, was[LNX_ARRAY_SIZE(mem)];
	size_t i;

	memcpy(was, mem, sizeof(mem));
	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct lnx_atomic at = ask(row[i].op, row[i].cls, KEY, 0, 2);

		at.nseg = 2;
		at.seg[0].count = 1;
		at.seg[1].key = row[i].key;
		at.seg[1].addr = row[i].addr;
		at.seg[1].count = 1;
		free(asked(&at, v, row[i].err, 0));
		cr_expect_arr_eq(mem, was, sizeof(mem), "row %zu", i);
	}
	cr_expect_eq(f.lnx->stats.rma_refused, LNX_ARRAY_SIZE(row));
}

Test(atomics, rights_that_suffice)
{
	struct lnx_atomic at = ask(FI_ATOMIC_READ, LNX_AMO_FETCH, RO_KEY, 0, 1);
	uint64_t one = 1;
	struct fake_sent *s = asked(&at, NULL, 0, 8);

	cr_expect_eq(answer(s, 0), 1000);
	free(s);
	at = ask(FI_SUM, LNX_AMO_BASE, WO_KEY, sizeof(mem) - 8, 1);
	free(asked(&at, &one, 0, 0));
	cr_expect_eq(mem[LNX_ARRAY_SIZE(mem) - 1],
		     1000 + LNX_ARRAY_SIZE(mem));
}

/* Every request gets a reply, so that no peer waits for ever. */
Test(atomics, nonsense_is_answered)
{
	uint64_t v[4] = { 1, 1, 1, 1 }, bad = f.lnx->stats.bad_frames;
	struct lnx_atomic at;

	at = ask(FI_CSWAP, LNX_AMO_BASE, KEY, 0, 1);
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at = ask(FI_SUM, LNX_AMO_COMPARE, KEY, 0, 1);
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at = ask(FI_SUM, 3, KEY, 0, 1);
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at = ask(200, LNX_AMO_BASE, KEY, 0, 1);
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at = ask(FI_SUM, LNX_AMO_BASE, KEY, 0, 1);
	at.type = 200;
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at.type = FI_UINT32;		/* but 8 bytes each */
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at = ask(FI_SUM, LNX_AMO_BASE, KEY, 0, 1);
	at.noperand = 2;
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at.noperand = 0;
	free(asked(&at, v, FI_EOPNOTSUPP, 0));
	at = ask(FI_SUM, LNX_AMO_BASE, KEY, 0, 1);
	at.seg[0].count = 2;
	free(asked(&at, v, FI_EINVAL, 0));
	cr_expect_eq(mem[0], 1000);
	cr_expect_eq(f.lnx->stats.bad_frames, bad + 9);
}

/* Without memory for the reply the request is not executed and not received; it
 * is executed when it is retransmitted. */
Test(atomics, without_memory_it_is_not_done)
{
	struct lnx_atomic at = ask(FI_SUM, LNX_AMO_FETCH, KEY, 0, 1500);
	static uint64_t v[1500];
	uint32_t seq = p.seq++;
	struct fake_sent *s;
	unsigned i;

	for (i = 0; i < 1500; i++)
		v[i] = i;
	no_aligned = true;
	send_ask(&at, seq, 9, v);
	fake_passes(&f, 3);
	no_aligned = false;
	fake_drop_all(&f, &p);
	cr_expect_eq(mem[1], 1001);
	cr_expect_eq(view_rx_next(lnx_peer_by_eid(f.lnx, p.eid)), seq);
	send_ask(&at, seq, 9, v);
	fake_passes(&f, 3);
	s = fake_expect(&f, &p, LNX_KIND_RESP);
	cr_expect_eq(s->h.len, 1500 * 8);
	for (i = 0; i < 1500; i++) {
		cr_assert_eq(answer(s, i), 1000 + i);
		cr_assert_eq(mem[i], 1000 + 2 * i);
	}
	free(s);
}

/* ---- as the initiator ---- */

/* An ATOMIC frame left: its description, and its id. */
static uint64_t left(struct lnx_atomic *at, uint64_t *operands)
{
	struct fake_sent *s = fake_expect(&f, &p, LNX_KIND_ATOMIC);
	const uint8_t *payload = s->bytes + sizeof(struct lnx_wire_hdr);
	uint64_t op = s->h.data;

	cr_assert_not(lnx_atomic_get(at, payload,
				     s->len - sizeof(struct lnx_wire_hdr)));
	if (operands)
		memcpy(operands, payload + lnx_atomic_head(at),
		       lnx_atomic_size(at) - lnx_atomic_head(at));
	free(s);
	return op;
}

static void respond(struct fake_peer *by, uint64_t op, int err,
		    const void *data, size_t len)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_RESP, .data = op, .tag = (uint64_t)err,
		.len = len,
	};

	fake_next(&f, by, h, data, len);
	fake_passes(&f, 3);
}

Test(atomics, every_part_of_a_call_is_in_the_frame)
{
	uint64_t v[3] = { 1, 2, 3 }, c[3] = { 4, 5, 6 }, r[3] = { 0 }, w[6];
	struct fi_ioc iov[2] = { { v, 1 }, { v + 1, 2 } };
	struct fi_ioc cmp[2] = { { c, 2 }, { c + 2, 1 } };
	struct fi_ioc res[3] = { { r + 2, 1 }, { r + 1, 1 }, { r, 1 } };
	struct fi_rma_ioc rma[2] = { { 100, 2, 8 }, { 200, 1, 9 } };
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 2, .addr = p.addr, .rma_iov = rma,
		.rma_iov_count = 2, .datatype = FI_UINT64, .op = FI_CSWAP_LT,
		.context = &a,
	};
	uint64_t found[3] = { 11, 12, 13 };
	struct fi_cq_tagged_entry e;
	struct lnx_atomic at;
	uint64_t op;

	cr_assert_not(fi_compare_atomicmsg(f.ep, &msg, cmp, NULL, 2, res, NULL,
					   3, FI_COMPLETION));
	op = left(&at, w);
	cr_expect(at.op == FI_CSWAP_LT && at.type == FI_UINT64 &&
		  at.cls == LNX_AMO_COMPARE && at.noperand == 2 &&
		  at.size == 8 && at.count == 3 && at.nseg == 2);
	cr_expect(at.seg[0].addr == 100 && at.seg[0].key == 8 &&
		  at.seg[0].count == 2 && at.seg[1].addr == 200 &&
		  at.seg[1].key == 9 && at.seg[1].count == 1);
	cr_expect(!memcmp(w, v, sizeof(v)) && !memcmp(w + 3, c, sizeof(c)));
	fake_quiet(&f);
	respond(&p, op, 0, found, sizeof(found));
	e = fake_comp(&f, &a);
	cr_expect_eq(e.flags, FI_ATOMIC | FI_READ);
	cr_expect(r[0] == 13 && r[1] == 12 && r[2] == 11);
}

Test(atomics, base_completes_with_its_answer)
{
	uint64_t one = 1;
	struct lnx_atomic at;
	struct fi_cq_tagged_entry e;
	uint64_t op;

	cr_assert_not(fi_atomic(f.ep, &one, 1, NULL, p.addr, 0, KEY, FI_UINT64,
				FI_SUM, &b));
	op = left(&at, NULL);
	fake_ack(&f, &p);
	fake_quiet(&f);
	respond(&p, op, 0, NULL, 0);
	e = fake_comp(&f, &b);
	cr_expect_eq(e.flags, FI_ATOMIC | FI_WRITE);
	/* A reply completes it once. */
	respond(&p, op, 0, NULL, 0);
	fake_quiet(&f);
}

Test(atomics, a_read_needs_no_operand)
{
	uint64_t r[2] = { 0 }, found[2] = { 3, 4 };
	struct fi_ioc res = { r, 2 };
	struct lnx_atomic at;
	uint64_t op;

	cr_assert_not(fi_fetch_atomicv(f.ep, NULL, NULL, 0, &res, NULL, 1,
				       p.addr, 0, KEY, FI_UINT64,
				       FI_ATOMIC_READ, &a));
	op = left(&at, NULL);
	cr_expect(at.noperand == 0 && at.count == 2);
	respond(&p, op, 0, found, sizeof(found));
	fake_comp(&f, &a);
	cr_expect(r[0] == 3 && r[1] == 4);
}

Test(atomics, errors_are_reported)
{
	uint64_t one = 1, r = 55;
	struct lnx_atomic at;

	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, p.addr, 0,
				      KEY, FI_UINT64, FI_SUM, &a));
	respond(&p, left(&at, NULL), FI_EACCES, NULL, 0);
	fake_err(&f, &a, FI_EACCES);
	/* A reply that is too short, and one that is too long. */
	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, p.addr, 0,
				      KEY, FI_UINT64, FI_SUM, &a));
	respond(&p, left(&at, NULL), 0, &one, 7);
	fake_err(&f, &a, FI_EIO);
	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, p.addr, 0,
				      KEY, FI_UINT64, FI_SUM, &a));
	respond(&p, left(&at, NULL), 0, mem, 16);
	fake_err(&f, &a, FI_EIO);
	cr_expect_eq(r, 55);
	/* Its success was not requested to be reported. */
	cr_assert_not(fi_inject_atomic(f.ep, &one, 1, p.addr, 0, KEY,
				       FI_UINT64, FI_SUM));
	respond(&p, left(&at, NULL), 0, NULL, 0);
	fake_quiet(&f);
	cr_assert_not(fi_inject_atomic(f.ep, &one, 1, p.addr, 0, KEY,
				       FI_UINT64, FI_SUM));
	respond(&p, left(&at, NULL), FI_ENOKEY, NULL, 0);
	fake_err(&f, NULL, FI_ENOKEY);
}

Test(atomics, only_the_process_asked_answers)
{
	uint64_t one = 1, r = 55, found = 8;
	struct lnx_atomic at;
	uint64_t op;

	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, p.addr, 0,
				      KEY, FI_UINT64, FI_SUM, &a));
	op = left(&at, NULL);
	respond(&q, op, 0, &found, 8);
	respond(&p, op + 1, 0, &found, 8);
	respond(&p, op ^ 1ULL << 32, 0, &found, 8);
	respond(&p, 0, 0, &found, 8);
	fake_quiet(&f);
	cr_expect_eq(r, 55);
	fake_drop_all(&f, &q);
	respond(&p, op, 0, &found, 8);
	fake_comp(&f, &a);
	cr_expect_eq(r, 8);
}

/* Cores would crash, so an invalid call is never passed to one. */
Test(atomics, what_cannot_be_is_refused)
{
	static uint64_t v[4096], r[4096];
	struct fi_ioc iov[5] = { { v, 1 }, { v, 1 }, { v, 1 }, { v, 1 },
				 { v, 1 } };
	struct fi_ioc res = { r, 1 };
	struct fi_rma_ioc rma[5] = { { 0, 1, KEY }, { 0, 1, KEY },
				     { 0, 1, KEY }, { 0, 1, KEY },
				     { 0, 1, KEY } };
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 1, .addr = p.addr, .rma_iov = rma,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
	};
	size_t max = 0;

#define WRITE(n, type, op) \
	fi_atomic(f.ep, v, n, NULL, p.addr, 0, KEY, type, op, NULL)
	cr_expect_eq(WRITE(1, FI_UINT64, FI_CSWAP), -FI_EOPNOTSUPP);
	cr_expect_eq(WRITE(1, FI_UINT64, FI_ATOMIC_READ), -FI_EOPNOTSUPP);
	cr_expect_eq(WRITE(1, FI_DOUBLE, FI_BOR), -FI_EOPNOTSUPP);
	cr_expect_eq(WRITE(1, FI_FLOAT16, FI_SUM), -FI_EOPNOTSUPP);
	cr_expect_eq(WRITE(1, (enum fi_datatype)200, FI_SUM), -FI_EOPNOTSUPP);
	cr_expect_eq(WRITE(1, FI_UINT64, (enum fi_op)200), -FI_EOPNOTSUPP);
	cr_assert_not(fi_atomicvalid(f.ep, FI_UINT64, FI_SUM, &max));
	cr_expect_eq(max, LNX_ATOMIC_BYTES_MAX / 8);
	cr_expect_eq(WRITE(max + 1, FI_UINT64, FI_SUM), -FI_EMSGSIZE);
	cr_expect_eq(WRITE(SIZE_MAX, FI_UINT64, FI_SUM), -FI_EMSGSIZE);
	cr_expect_eq(fi_inject_atomic(f.ep, v, LNX_INJECT_MAX / 8 + 1, p.addr,
				      0, KEY, FI_UINT64, FI_SUM), -FI_EINVAL);
	cr_expect_eq(fi_atomicv(f.ep, iov, NULL, 5, p.addr, 0, KEY, FI_UINT64,
				FI_SUM, NULL), -FI_EINVAL);
	msg.rma_iov_count = 2;
	cr_expect_eq(fi_atomicmsg(f.ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 0;
	cr_expect_eq(fi_atomicmsg(f.ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 5;
	cr_expect_eq(fi_atomicmsg(f.ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 1;
	res.count = 2;
	cr_expect_eq(fi_fetch_atomicmsg(f.ep, &msg, &res, NULL, 1, 0),
		     -FI_EINVAL);
	rma[0].count = iov[0].count = max;
	msg.rma_iov_count = msg.iov_count = 2;
	cr_expect_eq(fi_atomicmsg(f.ep, &msg, 0), -FI_EMSGSIZE);
	rma[1].count = SIZE_MAX;
	cr_expect_eq(fi_atomicmsg(f.ep, &msg, 0), -FI_EMSGSIZE);
	fake_expect_none(&f);
}

Test(atomics, an_endpoint_can_ask_itself)
{
	uint8_t name[LNX_ADDR_BYTES];
	size_t len = sizeof(name);
	uint64_t one = 1, r = 0;
	fi_addr_t self;

	cr_assert_not(fi_getname(&f.ep->fid, name, &len));
	cr_assert_eq(fi_av_insert(f.av, name, 1, &self, 0, NULL), 1);
	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, self, 8,
				      KEY, FI_UINT64, FI_SUM, &a));
	fake_comp(&f, &a);
	cr_expect(r == 1001 && mem[1] == 1002);
	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, self, 8,
				      99, FI_UINT64, FI_SUM, &a));
	fake_err(&f, &a, FI_ENOKEY);
	cr_assert_not(fi_inject_atomic(f.ep, &one, 1, self, 8, KEY, FI_UINT64,
				       FI_SUM));
	fake_quiet(&f);
	cr_expect_eq(mem[1], 1003);
	fake_expect_none(&f);
}

/* For example a process that tries to get a lock in its own memory, which a
 * peer holds. */
Test(atomics, asking_itself_for_ever_keeps_no_peer_waiting)
{
	uint8_t name[LNX_ADDR_BYTES];
	size_t len = sizeof(name);
	uint64_t one = 1, r, buf = 0;
	struct fi_cq_tagged_entry e;
	fi_addr_t self;
	unsigned i;

	cr_assert_not(fi_getname(&f.ep->fid, name, &len));
	cr_assert_eq(fi_av_insert(f.av, name, 1, &self, 0, NULL), 1);
	cr_assert_not(fi_trecv(f.ep, &buf, sizeof(buf), NULL, FI_ADDR_UNSPEC,
			       7, 0, &buf));
	fake_tag(&f, &p, 7, &one, sizeof(one));
	for (i = 0; i < 8192; i++) {
		cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL,
					      self, 8, KEY, FI_UINT64, FI_SUM,
					      &a));
		/* Each read finds an entry: the only one of this operation. */
		cr_assert_eq(fi_cq_read(f.cq, &e, 1), 1);
		if (e.op_context == &buf)
			break;
	}
	cr_expect_eq(e.op_context, &buf, "not received in %u reads", i);
	fake_comp(&f, &a);
	fake_expect_none(&f);
}

/* As many as tx size allows to wait for replies. */
Test(atomics, many_outstanding)
{
	enum { MANY = 20000 };
	static uint64_t op[MANY];
	uint64_t one = 1;
	unsigned n, i, got = 0;
	ssize_t ret = 0;

	for (n = 0; n < MANY; n++) {
		struct fake_sent *s;

		ret = fi_atomic(f.ep, &one, 1, NULL, p.addr, 0, KEY, FI_UINT64,
				FI_SUM, &a);
		if (ret)
			break;
		while ((s = fake_take(f.core[0]))) {
			if (s->h.seq == p.got) {
				p.got++;
				if (s->h.kind == LNX_KIND_ATOMIC)
					op[got++] = s->h.data;
			}
			free(s);
		}
		fake_ack(&f, &p);
		fake_pass(&f);
	}
	cr_expect_eq(ret, -FI_EAGAIN, "%u atomics outstanding", n);
	cr_expect_geq(n, view_tx_size(f.lnx));
	cr_assert_eq(got, n);
	for (i = 0; i < got; i++) {
		respond(&p, op[i], 0, NULL, 0);
		fake_comp(&f, &a);
		fake_drop_all(&f, &p);
	}
	cr_expect_eq(fi_inject_atomic(f.ep, &one, 1, p.addr, 0, KEY, FI_UINT64,
				      FI_SUM), 0);
	respond(&p, left(&(struct lnx_atomic) { 0 }, NULL), 0, NULL, 0);
	fake_quiet(&f);
}

/* The peer announces that it closes, and has not replied. */
Test(atomics, a_peer_that_goes_is_an_error)
{
	uint64_t one = 1, r;
	struct lnx_atomic at;
	struct lnx_hdr bye = { .kind = LNX_KIND_BYE, .seq = p.seq };

	cr_assert_not(fi_fetch_atomic(f.ep, &one, 1, NULL, &r, NULL, p.addr, 0,
				      KEY, FI_UINT64, FI_SUM, &a));
	left(&at, NULL);
	fake_frame(&f, &p, bye, NULL, 0);
	fake_after_ms(&f, 1);
	fake_err(&f, &a, FI_ECONNRESET);
}
