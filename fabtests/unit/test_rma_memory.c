/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access while allocations fail, on a scripted core.  An endpoint
 * reads and writes its peer's memory and serves that peer, in every possible
 * way; the peer retransmits what was not received, and the application repeats
 * calls that return -FI_EAGAIN.  Nothing else may differ: each operation ends
 * once and without error, every request is answered once, nothing leaks.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "fake_core.h"
#include "fake_memory.h"
#include "obj/mr.h"

#define HDR	sizeof(struct lnx_wire_hdr)
#define LEN	100000ul
#define NFRAME	64
#define NOPS	16
#define RW	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static struct fid_mr *mr;
static uint8_t ours[LEN], mem[LEN];
static uint8_t theirs[LEN];		/* changed by our writes */
static uint8_t into[NOPS][600000];

/* ---- the peer ---- */

static struct {
	struct lnx_hdr h;
	uint8_t payload[20000];
	size_t len;
} frame[NFRAME];
static unsigned nframe;
static unsigned nanswers[NFRAME];		/* answers to each of its requests */

static unsigned says(struct lnx_hdr h, const void *payload, size_t len)
{
	cr_assert_lt(nframe, NFRAME);
	h.seq = nframe;
	frame[nframe].h = h;
	frame[nframe].len = len;
	if (len)
		memcpy(frame[nframe].payload, payload, len);
	return nframe++;
}

static void answers(uint64_t id, const void *data, size_t len)
{
	says((struct lnx_hdr) { .kind = LNX_KIND_RESP, .data = id, .len = len },
	     data, len);
}

static void serves(const struct fake_sent *s)
{
	const uint8_t *payload = s->bytes + HDR;
	struct lnx_keys k = { .len = LEN, .nkey = 1, .access =
			      LNX_WIRE_KEYS_READ | LNX_WIRE_KEYS_WRITE |
			      LNX_WIRE_KEYS_TELL | LNX_WIRE_KEYS_TELL_READ };
	struct lnx_wire_put w;
	struct lnx_rts rts;
	uint8_t out[256];

	switch (s->h.kind) {
	case LNX_KIND_PUT:
		if (!(s->h.flags & LNX_WIRE_F_PUT))
			break;
		memcpy(&w, payload, sizeof(w));
		if (w.op)
			answers(le64toh(w.op), NULL, 0);
		break;
	case LNX_KIND_GET:
		answers(s->h.data, mem + s->h.tag, s->h.len);
		break;
	case LNX_KIND_KEYS:
		k.key[0].key = 77;
		k.key[0].addr = 0x10000;
		lnx_wire_keys_put(out, &k);
		answers(s->h.data, out, lnx_wire_keys_size(1));
		break;
	case LNX_KIND_PUT_RTS:
		payload += s->h.tag * sizeof(struct lnx_wire_target);
		cr_assert_eq(lnx_wire_rts_get(&rts, payload,
					      s->len - (size_t)(payload - s->bytes),
					      s->h.len), 0);
		says((struct lnx_hdr) { .kind = LNX_KIND_FIN,
		     .data = rts.op }, NULL, 0);
		break;
	case LNX_KIND_RESP:
	case LNX_KIND_FIN:
		cr_assert_lt(s->h.data, NFRAME, "an answer without a request");
		cr_expect_eq(s->h.kind == LNX_KIND_FIN ? s->h.len : s->h.tag, 0,
			     "request %lu failed: %lu", s->h.data,
			     s->h.kind == LNX_KIND_FIN ? s->h.len : s->h.tag);
		nanswers[s->h.data]++;
		break;
	default:
		break;
	}
}

static void listens(void)
{
	struct fake_sent *s;

	while ((s = fake_take(core))) {
		if (lnx_wire_kind_sequenced(s->h.kind) && s->h.seq == p.got) {
			p.got++;
			serves(s);
		}
		free(s);
	}
}

static uint32_t received(void)
{
	struct lnx_peer *peer = lnx_peer_by_eid(f.lnx, p.eid);

	return peer ? view_rx_next(peer) : 0;
}

/* Retransmits what was not received; one pass. */
static void goes_on(void)
{
	uint32_t i;

	for (i = received(); i < nframe; i++)
		fake_frame(&f, &p, frame[i].h, frame[i].payload, frame[i].len);
	if (received() == nframe)
		fake_ack(&f, &p);
	fail_armed = true;
	fake_pass(&f);
	fail_armed = false;
	fake_now_ns += LNX_NS_PER_MS;
	listens();
}

/* ---- the application ---- */

static unsigned ended[NOPS], nevent;

static void looks(void)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;
	size_t i;

	for (;;) {
		fail_armed = true;
		ret = fi_cq_read(f.cq, &e, 1);
		fail_armed = false;
		if (ret == -FI_EAVAIL)
			fi_cq_readerr(f.cq, &err, 0);
		cr_assert_neq(ret, -FI_EAVAIL, "error %d of %p", err.err,
			      err.op_context);
		if (ret != 1)
			return;
		if (!e.op_context) {
			cr_expect_eq(e.data, 0xdada);
			nevent++;
			continue;
		}
		i = (size_t)((uint8_t (*)[600000])e.op_context - into);
		cr_assert_lt(i, NOPS);
		ended[i]++;
	}
}

static void does(unsigned i, bool read, const struct fi_rma_iov *rma,
		 size_t nrma, uint64_t flags)
{
	struct iovec iov = { into[i], 0 };
	struct fi_msg_rma m = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.addr,
		.rma_iov = rma, .rma_iov_count = nrma, .context = into[i],
	};
	ssize_t ret;
	int n;

	for (size_t k = 0; k < nrma; k++)
		iov.iov_len += rma[k].len;
	for (n = 0; n < 2000; n++) {
		fail_armed = true;
		ret = read ? fi_readmsg(f.ep, &m, flags) :
			     fi_writemsg(f.ep, &m, flags);
		fail_armed = false;
		if (ret != -FI_EAGAIN)
			break;
		goes_on();
		looks();
	}
	cr_assert_eq(ret, 0, "operation %u: %zd", i, ret);
}

/* Wait until the first nops have ended. */
static void waits(unsigned nops)
{
	unsigned i, n;

	for (i = 0; i < nops; i++)
		for (n = 0; !ended[i]; n++) {
			cr_assert_lt(n, 3000, "operation %u does not end", i);
			goes_on();
			looks();
		}
}

static bool all_done(unsigned nops)
{
	unsigned i;

	for (i = 0; i < nops; i++)
		if (!ended[i])
			return false;
	for (i = 1; i < nframe; i++) {
		uint8_t kind = frame[i].h.kind;

		if (kind != LNX_KIND_RESP && kind != LNX_KIND_FIN && !nanswers[i])
			return false;
	}
	return received() == nframe && nevent == 2;
}

static void every_sort(enum lnx_rail_kind kind)
{
	struct fake_opt opt = {
		.nrail = 1, .kind = { kind }, .caps = FI_RMA,
	};
	struct fi_rma_iov small[2] = { { .addr = 5, .len = 100, .key = 1 },
				       { .addr = 500, .len = 200, .key = 2 } };
	struct fi_rma_iov large[2] = { { .addr = 7, .len = 20000, .key = 3 },
				       { .addr = 70000, .len = 20001,
					 .key = 4 } };
	struct fi_rma_iov big = { .addr = 9, .len = 40000, .key = 5 };
	struct lnx_rma_target place = { .addr = 60000, .key = 9, .len = 30000 };
	struct lnx_rts rts = { .nseg = 1, .nkey = 1, .seg_len[0] = 30000,
			       .key[0][0].key = 78, .key[0][0].addr = 4096 };
	uint8_t payload[512];
	unsigned n = 0, i;

	memset(ended, 0, sizeof(ended));
	memset(nanswers, 0, sizeof(nanswers));
	memset(ours, 0xee, sizeof(ours));
	memcpy(theirs, mem, LEN);
	nframe = nevent = 0;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	cr_assert_eq(fi_mr_reg(&f.domain.fid, ours, LEN, RW, 0, 9, 0, &mr,
			       NULL), 0);
	fake_region_rw(core, 77, 0x10000, theirs, LEN);
	fake_region(core, 78, 4096, mem, LEN);

	says((struct lnx_hdr) { .kind = LNX_KIND_HELLO }, p.blob,
	     sizeof(p.blob));
	does(n++, false, small, 2, 0);
	does(n++, false, small, 2, FI_DELIVERY_COMPLETE);
	does(n++, true, small, 2, 0);
	goes_on();

	says((struct lnx_hdr) { .kind = LNX_KIND_GET, .data = nframe, .key = 9,
	     .tag = 3, .len = 9000 }, NULL, 0);
	memset(payload, 0, sizeof(payload));
	((struct lnx_wire_put *)payload)->op = htole64(nframe);
	((struct lnx_wire_put *)payload)->total = htole64(20);
	memcpy(payload + 16, mem, 20);
	says((struct lnx_hdr) { .kind = LNX_KIND_PUT, .key = 9, .tag = 100,
	     .len = 20, .data = 0xdada, .flags = LNX_WIRE_F_PUT |
	     LNX_WIRE_F_LAST | LNX_WIRE_F_DATA }, payload, 36);
	says((struct lnx_hdr) { .kind = LNX_KIND_KEYS, .data = nframe,
	     .key = 9 }, NULL, 0);
	rts.op = nframe;
	lnx_wire_targets_put(payload, &place, 1);
	lnx_wire_rts_put(payload + sizeof(struct lnx_wire_target), &rts);
	says((struct lnx_hdr) { .kind = LNX_KIND_PUT_RTS, .tag = 1,
	     .len = 30000, .data = 0xdada, .flags = LNX_WIRE_F_DATA }, payload,
	     sizeof(struct lnx_wire_target) + lnx_wire_rts_size(&rts));
	goes_on();

	/* Reads first, because later writes change what is read. */
	does(n++, true, large, 2, 0);
	does(n++, true, &big, 1, 0);
	waits(n);
	memset(into[n], 0xaa, sizeof(into[n]));
	does(n++, false, large, 2, 0);
	waits(n);		/* until here they have no order */
	memset(into[n], 0xbb, sizeof(into[n]));
	does(n++, false, &big, 1, FI_DELIVERY_COMPLETE);
	memset(into[n], 0xcc, sizeof(into[n]));
	large[0].addr = large[1].addr = 0;
	large[0].len = large[1].len = LNX_PUSH_MAX / 2 + 1;
	does(n++, false, large, 2, 0);

	for (i = 0; !all_done(n); i++) {
		if (i == 3000) {
			for (i = 0; i < n; i++)
				fprintf(stderr, "operation %u: %u ends\n", i,
					ended[i]);
			for (i = 0; i < nframe; i++)
				fprintf(stderr, "frame %u %s: answers %u\n", i,
					lnx_wire_kind_name(frame[i].h.kind),
					nanswers[i]);
			fprintf(stderr, "received %u of %u, %u events, refused [%lu, %lu) of %lu\n",
				received(), nframe, nevent, fail_from, fail_to,
				nalloc);
			cr_assert_fail("something does not end");
		}
		goes_on();
		looks();
	}
	fail_from = fail_to = 0;
	for (i = 0; i < 20; i++) {
		goes_on();
		looks();
	}
	for (i = 0; i < n; i++)
		cr_expect_eq(ended[i], 1, "operation %u", i);
	for (i = 1; i < nframe; i++)
		cr_expect_leq(nanswers[i], 1, "frame %u", i);
	cr_expect_eq(nevent, 2);
	cr_expect_arr_eq(into[2], mem + 5, 100);
	cr_expect_arr_eq(into[2] + 100, mem + 500, 200);
	cr_expect_arr_eq(into[3], mem + 7, 20000);
	cr_expect_arr_eq(into[3] + 20000, mem + 70000, 20001);
	cr_expect_arr_eq(into[4], mem + 9, 40000);
	cr_expect_eq(theirs[6], mem[6]);
	cr_expect_eq(theirs[7], 0xaa);
	cr_expect_eq(theirs[9], 0xbb, "the later one");
	cr_expect_eq(theirs[9 + 39999], 0xbb);
	cr_expect_eq(theirs[9 + 40000], mem[9 + 40000]);
	cr_expect_eq(theirs[70000], 0xaa);
	cr_expect_eq(theirs[90000], 0xaa);
	cr_expect_eq(theirs[90001], mem[90001]);
	cr_expect_arr_eq(ours + 100, mem, 20);
	cr_expect_arr_eq(ours + 60000, mem, 30000);
	cr_expect_eq(ours[99], 0xee);
	cr_expect_eq(ours[90000], 0xee);
	cr_expect_eq(view_rma_ops(f.lnx), 0u);
	cr_expect_eq(view_rma_segments(f.lnx), 0u);
	cr_expect_eq(view_chunks(f.lnx), 0u);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	cr_expect_eq(core->nmr_open, 1u);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

static void each_fails(enum lnx_rail_kind kind, unsigned long many)
{
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned long i = 0;; i++) {
		nalloc = 0;
		fail_from = i;
		fail_to = i + many;
		every_sort(kind);
		if (nalloc <= i) {
			cr_log_info("%lu allocations", i);
			cr_expect_gt(i, 15, "allocations are not counted");
			fake_close(&f);	/* checks for leaks */
			return;
		}
		fake_close_quick(&f);
	}
}

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(rma_memory_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(rma_memory_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

BOTH(each_allocation_fails_once) { each_fails(kind, 1); }
BOTH(some_allocations_fail_in_a_row) { each_fails(kind, 3); }
BOTH(no_memory_for_a_while) { each_fails(kind, 100); }

/*
 * A CQ that cannot grow: everything that it had accepted is read, then one
 * error, for ever, whatever comes later.
 */
Test(cq_memory, overrun)
{
	enum { MANY = 5000 };
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN } };
	struct fi_cq_tagged_entry e[64];
	struct fi_cq_err_entry err = { 0 };
	struct lnx_cq *cq;
	uintptr_t i, got = 0;
	ssize_t n, k;

	fake_open(&f, &opt);
	cq = lnx_container_of(f.cq, struct lnx_cq, fid);
	nalloc = 0;
	fail_from = 0;
	fail_to = ~0ul;
	fail_armed = true;
	for (i = 0; i < MANY; i++)
		lnx_cq_write(cq, (void *)(i + 1), FI_SEND, 0, NULL, 0, 0, 0);
	fail_armed = false;
	/* Some entries are read, so it has room again: new ones must not overtake. */
	for (i = 0; i < 3; i++) {
		n = fi_cq_read(f.cq, e, 64);
		cr_assert_eq(n, 64);
		for (k = 0; k < n; k++)
			cr_assert_eq(e[k].op_context, (void *)++got);
		lnx_cq_write(cq, (void *)(uintptr_t)MANY, FI_SEND, 0, NULL, 0,
			     0, 0);
	}
	err.err = FI_EIO;
	lnx_cq_write_err(cq, &err);
	while ((n = fi_cq_read(f.cq, e, 64)) > 0)
		for (k = 0; k < n; k++)
			cr_assert_eq(e[k].op_context, (void *)++got);
	cr_expect_geq(got, 1023u);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(fi_cq_read(f.cq, e, 1), -FI_EAVAIL);
		memset(&err, 0, sizeof(err));
		cr_assert_eq(fi_cq_readerr(f.cq, &err, 0), 1);
		cr_expect_eq(err.err, FI_EOVERRUN);
		cr_expect_null(err.op_context);
	}
	for (i = 0; i < MANY; i++)
		lnx_cq_write(cq, (void *)(i + 1), FI_SEND, 0, NULL, 0, 0, 0);
	for (i = 0; i < MANY; i++)
		lnx_cq_write_err(cq, &err);
	cr_assert_eq(fi_cq_read(f.cq, e, 1), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(f.cq, &err, 0), 1);
	cr_expect_eq(err.err, FI_EOVERRUN);
	fake_close(&f);
}
