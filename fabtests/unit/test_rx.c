/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving on a scripted core.  The test is the sender: it numbers, repeats
 * and swaps frames, and its memory is what reads find.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_core.h"
#include "rx/rx.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p, q;
static char a, b, c;			/* contexts */
static uint8_t buf[1 << 20], mem[1 << 20];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(rx_plain, name) { name(LNX_RAIL_PLAIN); }			\
	Test(rx_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

/* ---- memory that runs out, with -Wl,--wrap ---- */

static volatile bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory && !fake_allocating ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory && !fake_allocating ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return no_memory && !fake_allocating ? NULL :
	       __real_aligned_alloc(align, size);
}

/* One pass during which there is none. */
static void starved_pass(void)
{
	no_memory = true;
	fake_pass(&f);
	no_memory = false;
}

/* ---- a sender that is known, and has said hello ---- */

static void fill(uint8_t *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m[i] = (uint8_t)(i * 7 + i / 251);
}

static void open_with(enum lnx_rail_kind kind, struct fake_opt opt)
{
	opt.nrail = 1;
	opt.kind[0] = kind;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &p);
	fill(mem, sizeof(mem));
}

static void open_met(enum lnx_rail_kind kind)
{
	open_with(kind, (struct fake_opt) { 0 });
	fake_hello(&f, &p);
	fake_pass(&f);
	fake_after_ms(&f, 1);
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
}

static struct lnx_peer *inside(const struct fake_peer *peer)
{
	return lnx_peer_by_eid(f.lnx, peer->eid);
}

static void recv_any(void *to, size_t len, void *context)
{
	cr_assert_eq(fi_trecv(f.ep, to, len, NULL, FI_ADDR_UNSPEC, 0, ~0ull,
			      context), 0);
}

/* What the application holds, and what it gave back, adds up. */
static void expect_no_entries(void)
{
	cr_expect_eq(f.lnx->rxe_pool.used, f.lnx->nreserve);
	cr_expect_eq(f.lnx->chunk_pool.used, 0);
	cr_expect_eq(f.lnx->rxbuf_pool.used,
		     f.lnx->nbuf_reserve + f.lnx->rail[0]->nposted);
}

BOTH(in_order)
{
	open_met(kind);
	for (uint64_t i = 0; i < 100; i++) {
		struct fi_cq_tagged_entry e;

		recv_any(buf, 100, &a);
		fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_TAG,
			  .flags = LNX_WIRE_F_DATA, .data = i << 40, .len = i,
			  .tag = ~i }, mem, i);
		e = fake_comp(&f, &a);
		cr_expect_eq(e.tag, ~i);
		cr_expect_eq(e.data, i << 40);
		cr_expect_eq(e.len, i);
		cr_expect_eq(e.buf, buf);
		cr_expect_eq(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		cr_expect_arr_eq(buf, mem, i);
	}
	cr_expect_eq(f.lnx->stats.matched, 100);
	cr_expect_eq(f.lnx->stats.recv_count, 100);
	expect_no_entries();
	fake_close(&f);
}

BOTH(into_pieces)
{
	struct iovec iov[4] = { { buf, 3 }, { buf + 10, 0 }, { buf + 20, 5 },
				{ buf + 30, 100 } };

	open_met(kind);
	cr_assert_eq(fi_recvv(f.ep, iov, NULL, 4, FI_ADDR_UNSPEC, &a), 0);
	fake_msg(&f, &p, mem, 50);
	cr_expect_eq(fake_comp(&f, &a).len, 50);
	cr_expect_arr_eq(buf, mem, 3);
	cr_expect_arr_eq(buf + 20, mem + 3, 5);
	cr_expect_arr_eq(buf + 30, mem + 8, 42);
	cr_expect_eq(buf[10], 0);
	fake_close(&f);
}

/* ---- the sequence ---- */

BOTH(early_frames_wait_for_their_turn)
{
	char to[4][8];

	open_met(kind);
	for (int i = 0; i < 4; i++)
		recv_any(to[i], 8, to[i]);
	p.seq = 2;
	fake_tag(&f, &p, 2, "2", 2);
	p.seq = 4;
	fake_tag(&f, &p, 4, "4", 2);
	p.seq = 3;
	fake_tag(&f, &p, 3, "3", 2);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.reorders, 3);
	/* A gap is told at once: the sender may be waiting. */
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	p.seq = 1;
	fake_tag(&f, &p, 1, "1", 2);
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(fake_comp(&f, to[i]).tag, (uint64_t)i + 1);
		cr_expect_eq(to[i][0], '1' + i);
	}
	fake_after_ms(&f, 1);
	cr_expect_eq(inside(&p)->seq.next, 5);
	expect_no_entries();
	fake_close(&f);
}

BOTH(duplicates_are_dropped_and_acknowledged)
{
	struct fake_sent *s;

	open_met(kind);
	recv_any(buf, 8, &a);
	recv_any(buf, 8, &b);
	fake_tag(&f, &p, 1, "1", 2);
	fake_comp(&f, &a);
	fake_after_ms(&f, 1);
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	p.seq = 1;
	fake_tag(&f, &p, 1, "1", 2);
	p.seq = 0;
	fake_hello(&f, &p);
	fake_quiet(&f);
	s = fake_expect(&f, &p, LNX_KIND_ACK);
	cr_expect_eq(s->h.ack, 2);
	free(s);
	cr_expect_eq(f.lnx->stats.dup_drops, 2);
	/* Early ones as well. */
	p.seq = 3;
	fake_tag(&f, &p, 3, "3", 2);
	p.seq = 3;
	fake_tag(&f, &p, 3, "3", 2);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.dup_drops, 3);
	p.seq = 2;
	fake_tag(&f, &p, 2, "2", 2);
	cr_expect_eq(fake_comp(&f, &b).tag, 2);
	recv_any(buf, 8, &c);
	cr_expect_eq(fake_comp(&f, &c).tag, 3);
	recv_any(buf, 8, &c);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(beyond_the_window_is_dropped)
{
	open_met(kind);
	recv_any(buf, 8, &a);
	p.seq = 1 + LNX_SEQ_WINDOW;
	fake_tag(&f, &p, 1, "1", 2);
	p.seq = 0x80000000u;
	fake_tag(&f, &p, 1, "1", 2);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 2);
	cr_expect_eq(f.lnx->stats.reorders, 0);
	/* The last one inside is kept. */
	p.seq = LNX_SEQ_WINDOW;
	fake_tag(&f, &p, 1, "1", 2);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.reorders, 1);
	fake_close(&f);			/* and freed */
}

BOTH(over_the_wrap_around)
{
	open_met(kind);
	inside(&p)->seq.next = 0u - 50;
	for (uint32_t i = 0; i < 100; i += 2) {
		recv_any(buf, 8, &a);
		recv_any(buf, 8, &b);
		p.seq = 0u - 50 + i + 1;
		fake_tag(&f, &p, i + 1, "1", 2);
		p.seq = 0u - 50 + i;
		fake_tag(&f, &p, i, "1", 2);
		p.seq = 0u - 50 + i;
		fake_tag(&f, &p, i, "1", 2);
		cr_expect_eq(fake_comp(&f, &a).tag, i);
		cr_expect_eq(fake_comp(&f, &b).tag, i + 1);
	}
	fake_quiet(&f);
	cr_expect_eq(inside(&p)->seq.next, 50);
	expect_no_entries();
	fake_close(&f);
}

/* ---- unexpected ---- */

static void unexpected(enum lnx_rail_kind kind, size_t len)
{
	open_met(kind);
	memset(buf, 0, len);
	fake_tag(&f, &p, 5, mem, len);
	fake_msg(&f, &p, mem + 1, len);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.unexpected, 2);
	recv_any(buf, len, &a);
	cr_expect_eq(fake_comp(&f, &a).len, len);
	cr_expect_arr_eq(buf, mem, len);
	cr_assert_eq(fi_recv(f.ep, buf, len, NULL, FI_ADDR_UNSPEC, &b), 0);
	cr_expect_eq(fake_comp(&f, &b).len, len);
	cr_expect_arr_eq(buf, mem + 1, len);
	expect_no_entries();
	/* Some that stay for ever. */
	fake_tag(&f, &p, 5, mem, len);
	fake_msg(&f, &p, mem + 1, len);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(unexpected_empty) { unexpected(kind, 0); }
BOTH(unexpected_small) { unexpected(kind, 100); }
BOTH(unexpected_just_copied) { unexpected(kind, 4096); }
BOTH(unexpected_just_kept) { unexpected(kind, 4097); }
BOTH(unexpected_whole_frame) { unexpected(kind, LNX_PAYLOAD_MAX); }

/* More than there are posted buffers, kept in them: others take their place. */
BOTH(unexpected_more_than_buffers)
{
	open_met(kind);
	for (uint64_t i = 0; i < 100; i++)
		fake_tag(&f, &p, i, mem + i, 10000);
	fake_passes(&f, 20);
	cr_expect_eq(f.lnx->stats.unexpected, 100);
	for (uint64_t i = 100; i-- > 0;) {
		cr_assert_eq(fi_trecv(f.ep, buf, 10000, NULL, FI_ADDR_UNSPEC, i,
				      0, &a), 0);
		cr_expect_eq(fake_comp(&f, &a).tag, i);
		cr_expect_arr_eq(buf, mem + i, 10000);
	}
	expect_no_entries();
	fake_close(&f);
}

/* ---- truncation ---- */

static void truncated_end(size_t len, size_t room)
{
	struct fi_cq_err_entry e = fake_err(&f, &a, FI_ETRUNC);

	cr_expect_eq(e.len, room);
	cr_expect_eq(e.olen, len - room);
	cr_expect_eq(e.tag, 5);
	cr_expect_arr_eq(buf, mem, room);
	cr_expect_eq(buf[room], 0xee, "wrote behind the receive");
	fake_quiet(&f);
}

BOTH(truncated_eager)
{
	static const struct { size_t len, room; } row[] = {
		{ 100, 99 }, { 100, 1 }, { 100, 0 }, { 1, 0 },
		{ 10000, 9999 }, { 10000, 0 },
	};

	open_met(kind);
	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		memset(buf, 0xee, sizeof(buf));
		recv_any(buf, row[i].room, &a);
		fake_tag(&f, &p, 5, mem, row[i].len);
		truncated_end(row[i].len, row[i].room);

		memset(buf, 0xee, sizeof(buf));
		fake_tag(&f, &p, 5, mem, row[i].len);
		fake_quiet(&f);
		recv_any(buf, row[i].room, &a);
		truncated_end(row[i].len, row[i].room);
	}
	cr_expect_eq(f.lnx->stats.truncated, 2 * LNX_ARRAY_SIZE(row));
	expect_no_entries();
	fake_close(&f);
}

BOTH(truncated_pull)
{
	static const size_t room[] = { 99999, 50000, 1, 0 };
	uint64_t len = 100000;

	open_met(kind);
	for (size_t i = 0; i < LNX_ARRAY_SIZE(room); i++) {
		memset(buf, 0xee, sizeof(buf));
		core->nread = core->nregion = 0;
		recv_any(buf, room[i], &a);
		fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
		fake_passes(&f, 5);
		truncated_end(len, room[i]);
		cr_expect_eq(core->nread, room[i] ? 1 : 0);
		cr_expect_gt(fake_drop_all(&f, &p), 0);
	}
	expect_no_entries();
	fake_close(&f);
}

/* ---- pulling ---- */

static struct fake_sent *expect_fin(uint64_t op, int err)
{
	struct fake_sent *s;

	/* The first frame to a peer brings our hello along. */
	while ((s = fake_take(core)) && s->h.kind != LNX_KIND_FIN)
		free(s);
	cr_assert(s, "no FIN left");
	cr_expect_eq(s->h.data, op);
	cr_expect_eq(s->h.len, (uint64_t)err);
	free(s);
	return NULL;
}

/* Pieces of the sender against pieces of the receive, and small reads. */
BOTH(pull_of_pieces_into_pieces)
{
	static const struct {
		uint64_t seg[4];
		size_t iov[4];
		uint64_t chunk;
	} row[] = {
		{ { 100000 }, { 100000 }, 1 << 20 },
		{ { 100000 }, { 100000 }, 4096 },
		{ { 50000, 50000 }, { 100000 }, 1 << 20 },
		{ { 100000 }, { 1, 0, 99998, 1 }, 1 << 20 },
		{ { 1, 2, 99996, 1 }, { 99999, 1 }, 4096 },
		{ { 30000, 30000, 30000, 10000 },
		  { 10000, 30000, 30000, 200000 }, 4096 },
		{ { 4096, 4096, 4096, 4096 }, { 8192, 8192 }, 4096 },
		{ { 20000, 20000 }, { 0, 0, 0, 60000 }, 5000 },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct iovec iov[4];
		uint8_t *at = buf;
		size_t len = 0, done = 0;
		unsigned nseg = 0;

		fake_conf.chunk = row[i].chunk;
		memset(buf, 0xee, sizeof(buf));
		for (unsigned k = 0; k < 4; k++) {
			len += row[i].seg[k];
			nseg += row[i].seg[k] != 0;
			iov[k].iov_base = at;
			iov[k].iov_len = row[i].iov[k];
			at += row[i].iov[k] + 64;	/* gaps stay */
		}
		open_met(kind);
		cr_assert_eq(fi_trecvv(f.ep, iov, NULL, 4, FI_ADDR_UNSPEC, 5, 0,
				       &a), 0);
		fake_rts(&f, &p, true, 5, 70 + i, mem, row[i].seg, nseg);
		fake_passes(&f, 200);
		cr_expect_eq(fake_comp(&f, &a).len, len, "row %zu", i);
		for (unsigned k = 0; k < 4; k++) {
			size_t n = LNX_MIN(row[i].iov[k], len - done);

			if (n)
				cr_expect_arr_eq(iov[k].iov_base, mem + done,
						 n, "row %zu iov %u", i, k);
			cr_expect_eq(((uint8_t *)iov[k].iov_base)[n], 0xee,
				     "row %zu: behind iov %u", i, k);
			done += n;
		}
		cr_expect_geq(core->nread, len / row[i].chunk);
		expect_fin(70 + i, 0);
		expect_no_entries();
		fake_close(&f);
	}
}

BOTH(reads_complete_in_any_order)
{
	uint64_t len = 100000;

	fake_conf.chunk = 10000;
	open_met(kind);
	core->hold_reads = true;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 3);
	for (int i = 0; i < 10; i++) {
		unsigned n = fake_held(core);

		cr_assert_gt(n, 0);
		cr_expect_leq(n, 4, "some are outstanding, not all");
		fake_finish(core, n - 1, 0);
		fake_passes(&f, 3);
		if (i < 9)
			fake_quiet(&f);
	}
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	cr_expect_eq(core->nread, 10);
	fake_close(&f);
}

BOTH(failed_read_is_repeated)
{
	uint64_t len = 100000;

	fake_conf.chunk = 10000;
	open_met(kind);
	core->read_fails = 3;
	core->read_again = 2;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	for (int i = 0; i < 20; i++)
		fake_after_ms(&f, 10);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	cr_expect_eq(core->nread, 13);
	expect_fin(77, 0);
	fake_quiet(&f);
	expect_no_entries();
	fake_close(&f);
}

/* It is not given back while a read may still write into it. */
BOTH(read_that_fails_for_good)
{
	uint64_t len = 100000;

	fake_conf.chunk = 10000;
	fake_conf.connect_timeout = 200;
	open_met(kind);
	core->hold_reads = true;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 3);
	cr_assert_eq(fake_held(core), 4);
	core->hold_reads = false;
	core->read_fails = FAKE_ALWAYS;
	fake_finish(core, 1, FI_EIO);
	fake_finish(core, 1, FI_EIO);
	fake_finish(core, 1, FI_EIO);
	for (int i = 0; i < 50; i++)
		fake_after_ms(&f, 10);
	fake_quiet(&f);
	fake_finish(core, 0, 0);
	fake_passes(&f, 3);
	fake_err(&f, &a, FI_EIO);
	fake_quiet(&f);
	expect_fin(77, FI_EIO);
	expect_no_entries();
	fake_close(&f);
}

BOTH(read_that_cannot_start)
{
	uint64_t len = 100000;

	fake_conf.connect_timeout = 200;
	open_met(kind);
	core->read_again = FAKE_ALWAYS;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_pass(&f);
	fake_after_ms(&f, 150);
	fake_quiet(&f);
	fake_after_ms(&f, 100);
	fake_err(&f, &a, FI_ETIMEDOUT);
	expect_fin(77, FI_ETIMEDOUT);
	expect_no_entries();
	fake_close(&f);
}

BOTH(key_for_another_rail)
{
	struct lnx_rts rts = { .op = 77, .nseg = 1, .nkey = 1,
			       .seg_len[0] = 100000, .key[0][0].rail = 9 };
	uint8_t payload[64];

	open_met(kind);
	recv_any(buf, 100000, &a);
	lnx_rts_put(payload, &rts);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
					     .len = 100000 }, payload,
		  lnx_rts_size(&rts));
	fake_passes(&f, 3);
	fake_err(&f, &a, FI_ENOKEY);
	expect_fin(77, FI_ENOKEY);
	fake_close(&f);
}

/* The application may stop calling us once it has its message. */
BOTH(receive_completes_only_when_the_fin_has_left)
{
	uint64_t len = 100000;

	open_met(kind);
	core->send_again = FAKE_ALWAYS;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_after_ms(&f, 20);
	fake_quiet(&f);
	cr_expect_eq(core->nread, 1);
	core->send_again = 0;
	fake_after_ms(&f, 20);
	fake_comp(&f, &a);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	expect_fin(77, 0);
	fake_close(&f);
}

BOTH(fin_that_never_leaves)
{
	uint64_t len = 100000;

	fake_conf.connect_timeout = 200;
	open_met(kind);
	core->send_again = FAKE_ALWAYS;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_after_ms(&f, 20);
	fake_quiet(&f);
	fake_after_ms(&f, 300);
	/* The data is all here. */
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	expect_no_entries();
	fake_close(&f);
}

BOTH(unexpected_large_is_pulled_when_wanted)
{
	uint64_t seg[2] = { 60000, 40000 };

	open_met(kind);
	fake_rts(&f, &p, true, 5, 77, mem, seg, 2);
	fake_rts(&f, &p, false, 0, 78, mem, seg, 2);
	fake_quiet(&f);
	cr_expect_eq(core->nread, 0);
	recv_any(buf, 100000, &a);
	fake_passes(&f, 5);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, 100000);
	expect_fin(77, 0);
	cr_assert_eq(fi_recv(f.ep, buf + 7, 100000, NULL, FI_ADDR_UNSPEC, &b),
		     0);
	fake_passes(&f, 5);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf + 7, mem, 100000);
	expect_fin(78, 0);
	/* Others stay. */
	fake_rts(&f, &p, true, 5, 79, mem, seg, 2);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(malformed_rts_is_dropped)
{
	uint8_t payload[64] = { 1 };

	open_met(kind);
	recv_any(buf, 100, &a);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
					     .len = 100000 }, payload, 16);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
					     .len = 100000 }, payload, 64);
	fake_tag(&f, &p, 5, "x", 1);
	fake_comp(&f, &a);
	cr_expect_eq(f.lnx->stats.bad_frames, 2);
	fake_close(&f);
}

/* The way back is not known when they are handled, but when it is needed. */
BOTH(hello_and_rts_in_one_pass)
{
	uint64_t len = 100000;

	open_with(kind, (struct fake_opt) { 0 });
	recv_any(buf, len, &a);
	fake_hello(&f, &p);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 5);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	expect_fin(77, 0);
	fake_close(&f);
}

BOTH(hello_and_rts_of_a_stranger_in_one_pass)
{
	uint64_t len = 100000;

	open_with(kind, (struct fake_opt) { 0 });
	recv_any(buf, len, &a);
	fake_hello(&f, &q);
	fake_rts(&f, &q, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 5);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	expect_fin(77, 0);
	fake_close(&f);
}

BOTH(close_in_the_middle_of_a_pull)
{
	uint64_t len = 100000;

	fake_conf.chunk = 10000;
	open_met(kind);
	core->hold_reads = true;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 3);
	fake_close(&f);
}

/* ---- who sends ---- */

BOTH(unknown_sender_without_hello)
{
	open_met(kind);
	recv_any(buf, 100, &a);
	fake_tag(&f, &q, 5, "x", 1);
	q.seq = 0;
	fake_tag(&f, &q, 5, "x", 1);
	fake_ack(&f, &q);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 3);
	fake_expect_none(&f);
	fake_close(&f);
}

BOTH(unknown_sender_with_hello)
{
	fi_addr_t src;
	struct fi_cq_tagged_entry e;
	uint64_t len = 100000;

	open_met(kind);
	recv_any(buf, 100, &a);
	fake_hello(&f, &q);
	fake_tag(&f, &q, 5, "x", 1);
	fake_pass(&f);
	cr_assert_eq(fi_cq_readfrom(f.cq, &e, 1, &src), 1);
	cr_expect_eq(src, FI_ADDR_NOTAVAIL);
	/* It is acknowledged, */
	fake_after_ms(&f, 1);
	fake_expect_drop(&f, &q, LNX_KIND_ACK);
	/* its large messages are pulled, */
	recv_any(buf, len, &b);
	fake_rts(&f, &q, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 5);
	fake_comp(&f, &b);
	/* and once it is in the AV it has a name. */
	fake_peer_insert(&f, &q);
	recv_any(buf, 100, &a);
	fake_tag(&f, &q, 5, "x", 1);
	fake_pass(&f);
	cr_assert_eq(fi_cq_readfrom(f.cq, &e, 1, &src), 1);
	cr_expect_eq(src, q.addr);
	fake_close(&f);
}

/* Stored messages of a sender that gets its name only now. */
BOTH(directed_receive_waits_for_the_name)
{
	open_with(kind, (struct fake_opt) { .caps = FI_DIRECTED_RECV |
					    FI_SOURCE });
	fake_hello(&f, &q);
	fake_tag(&f, &q, 5, "q", 2);
	fake_hello(&f, &p);
	fake_tag(&f, &p, 5, "p", 2);
	fake_quiet(&f);
	cr_assert_eq(fi_trecv(f.ep, buf, 8, NULL, p.addr, 5, 0, &a), 0);
	fake_comp(&f, &a);
	cr_expect_eq(buf[0], 'p');
	cr_assert_eq(fi_trecv(f.ep, buf, 8, NULL, p.addr + 1, 5, 0, &b), 0);
	fake_quiet(&f);
	fake_peer_insert(&f, &q);
	cr_assert_eq(q.addr, p.addr + 1);
	fake_comp(&f, &b);
	cr_expect_eq(buf[0], 'q');
	fake_close(&f);
}

BOTH(hello_of_another_name)
{
	open_met(kind);
	/* Says it is q in the header, and p in the address. */
	fake_next(&f, &q, (struct lnx_hdr) { .kind = LNX_KIND_HELLO }, p.blob,
		  LNX_ADDR_BYTES);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 1);
	cr_expect_null(lnx_peer_by_eid(f.lnx, q.eid));
	fake_close(&f);
}

BOTH(other_version_and_no_frame_at_all)
{
	_Alignas(64) uint8_t junk[256] = { 0x4c, 2 };

	open_met(kind);
	fake_arrive(core, junk, 64);
	fake_arrive(core, junk, 1);
	fake_arrive(core, junk, 0);
	memset(junk, 0xff, sizeof(junk));
	fake_arrive(core, junk, sizeof(junk));
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 4);
	recv_any(buf, 100, &a);
	fake_tag(&f, &p, 5, "x", 1);
	fake_comp(&f, &a);
	expect_no_entries();
	fake_close(&f);
}

/* Longer than any frame: dropped, and the buffer is used again. */
BOTH(too_long_for_a_frame)
{
	open_met(kind);
	recv_any(buf, 100, &a);
	for (int i = 0; i < 40; i++)
		fake_arrive(core, mem, 20000);
	fake_passes(&f, 50);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 40);
	fake_tag(&f, &p, 5, "x", 1);
	fake_comp(&f, &a);
	expect_no_entries();
	fake_close(&f);
}

/* ---- multi-receive ---- */

static void post_multi(size_t len)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC, .context = &a };

	cr_assert_eq(fi_recvmsg(f.ep, &m, FI_MULTI_RECV), 0);
}

static void expect_multi(size_t at, size_t len, uint64_t more)
{
	struct fi_cq_tagged_entry e = fake_comp(&f, &a);

	cr_expect_eq(e.buf, buf + at, "at %td", (uint8_t *)e.buf - buf);
	cr_expect_eq(e.len, len);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG | more);
	cr_expect_arr_eq(buf + at, mem, len);
}

BOTH(multi_receive_is_carved)
{
	open_met(kind);
	post_multi(1000);
	fake_msg(&f, &p, mem, 100);
	expect_multi(0, 100, 0);
	fake_msg(&f, &p, mem, 0);
	expect_multi(100, 0, 0);
	fake_msg(&f, &p, mem, 300);
	expect_multi(100, 300, 0);
	/* 600 left, then 50: less than FI_OPT_MIN_MULTI_RECV. */
	fake_msg(&f, &p, mem, 550);
	expect_multi(400, 550, FI_MULTI_RECV);
	fake_msg(&f, &p, mem, 10);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.unexpected, 1);
	/* Waiting messages go into the next one. */
	fake_msg(&f, &p, mem, 20);
	fake_quiet(&f);
	post_multi(100);
	expect_multi(0, 10, 0);
	expect_multi(10, 20, 0);
	fake_msg(&f, &p, mem, 70);
	expect_multi(30, 70, FI_MULTI_RECV);
	expect_no_entries();
	fake_close(&f);
}

BOTH(multi_receive_retires_for_what_does_not_fit)
{
	struct fi_cq_tagged_entry e;

	open_met(kind);
	post_multi(1000);
	cr_assert_eq(fi_recv(f.ep, buf + 2000, 2000, NULL, FI_ADDR_UNSPEC, &b),
		     0);
	fake_msg(&f, &p, mem, 500);
	expect_multi(0, 500, 0);
	fake_msg(&f, &p, mem, 501);
	e = fake_comp(&f, &a);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	cr_expect_eq(e.len, 0);
	e = fake_comp(&f, &b);
	cr_expect_eq(e.len, 501);
	cr_expect_arr_eq(buf + 2000, mem, 501);
	expect_no_entries();

	/* Too long for an empty one: truncated, as with any receive. */
	post_multi(100);
	fake_msg(&f, &p, mem, 101);
	cr_expect(fake_err(&f, &a, FI_ETRUNC).flags & FI_MULTI_RECV);
	fake_quiet(&f);
	expect_no_entries();
	fake_close(&f);
}

BOTH(multi_receive_and_pulls)
{
	uint64_t len = 50000;
	struct fi_cq_tagged_entry e;

	open_met(kind);
	core->hold_reads = true;
	post_multi(150000);
	fake_rts(&f, &p, false, 0, 77, mem, &len, 1);
	fake_passes(&f, 3);
	core->nregion = 0;
	fake_rts(&f, &p, false, 0, 78, mem, &len, 1);
	fake_passes(&f, 3);
	fake_msg(&f, &p, mem, 49990);
	fake_passes(&f, 3);
	cr_assert_eq(fake_held(core), 2);
	/* The buffer is ours until the last message is in it. */
	fake_finish(core, 1, 0);
	fake_passes(&f, 3);
	e = fake_comp(&f, &a);
	cr_expect_eq(e.buf, buf + len);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG);
	fake_finish(core, 0, 0);
	fake_passes(&f, 3);
	expect_multi(0, len, 0);
	fake_close(&f);
}

BOTH(close_with_multi_receive_under_way)
{
	uint64_t len = 50000;

	open_met(kind);
	core->hold_reads = true;
	post_multi(150000);
	fake_rts(&f, &p, false, 0, 77, mem, &len, 1);
	fake_passes(&f, 3);
	fake_close(&f);
}

BOTH(multi_receive_cancelled)
{
	open_met(kind);
	post_multi(1000);
	fake_msg(&f, &p, mem, 100);
	expect_multi(0, 100, 0);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), 0);
	cr_expect(fake_err(&f, &a, FI_ECANCELED).flags & FI_MULTI_RECV);
	fake_msg(&f, &p, mem, 100);
	fake_quiet(&f);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), -FI_ENOENT);
	fake_close(&f);
}

/* ---- peek, claim, discard ---- */

static ssize_t special(uint64_t flags, void *to, size_t len,
		       struct fi_context *ctx)
{
	struct iovec iov = { to, len };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = to ? 1 : 0,
		.addr = FI_ADDR_UNSPEC, .tag = 5, .context = ctx,
	};

	return fi_trecvmsg(f.ep, &t, flags);
}

/* What is stored in each of the three ways. */
static void arrive_as(int how, uint64_t op)
{
	uint64_t seg[2] = { 60000, 40000 };

	core->nregion = 0;
	if (how == 0)
		fake_tag(&f, &p, 5, mem, 100);
	else if (how == 1)
		fake_tag(&f, &p, 5, mem, 10000);
	else
		fake_rts(&f, &p, true, 5, op, mem, seg, 2);
	fake_quiet(&f);
}

static const size_t arrive_len[3] = { 100, 10000, 100000 };

BOTH(peek)
{
	struct fi_context ctx = { { 0 } };

	open_met(kind);
	cr_assert_eq(special(FI_PEEK, NULL, 0, &ctx), 0);
	cr_expect_eq(fake_err(&f, &ctx, FI_ENOMSG).tag, 5);
	for (int how = 0; how < 3; how++) {
		arrive_as(how, 77);
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(special(FI_PEEK, NULL, 0, &ctx), 0);
			cr_expect_eq(fake_comp(&f, &ctx).len, arrive_len[how]);
		}
		recv_any(buf, sizeof(buf), &a);
		fake_passes(&f, 5);
		cr_expect_eq(fake_comp(&f, &a).len, arrive_len[how]);
		cr_expect_arr_eq(buf, mem, arrive_len[how]);
	}
	expect_no_entries();
	fake_close(&f);
}

BOTH(claim)
{
	open_met(kind);
	for (int how = 0; how < 3; how++) {
		struct fi_context ctx = { { 0 } };

		arrive_as(how, 77);
		cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
		cr_expect_eq(fake_comp(&f, &ctx).len, arrive_len[how]);
		/* It is nobody else's. */
		recv_any(buf, sizeof(buf), &a);
		fake_quiet(&f);
		memset(buf, 0, 100000);
		cr_assert_eq(special(FI_CLAIM, buf, sizeof(buf), &ctx), 0);
		fake_passes(&f, 5);
		cr_expect_eq(fake_comp(&f, &ctx).len, arrive_len[how]);
		cr_expect_arr_eq(buf, mem, arrive_len[how]);
		if (how == 2)
			expect_fin(77, 0);
		cr_expect_eq(special(FI_CLAIM, buf, sizeof(buf), &ctx),
			     -FI_EINVAL, "only once");
		cr_expect_eq(fi_cancel(&f.ep->fid, &a), 0);
		fake_err(&f, &a, FI_ECANCELED);
	}
	expect_no_entries();
	fake_close(&f);
}

BOTH(discard)
{
	open_met(kind);
	for (int how = 0; how < 3; how++) {
		struct fi_context ctx = { { 0 } };

		arrive_as(how, 77);
		cr_assert_eq(special(FI_PEEK | FI_DISCARD, NULL, 0, &ctx), 0);
		cr_expect_eq(fake_comp(&f, &ctx).len, arrive_len[how]);
		fake_passes(&f, 3);
		if (how == 2)
			expect_fin(77, 0);	/* its buffer is free */
		arrive_as(how, 78);
		cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
		fake_comp(&f, &ctx);
		cr_assert_eq(special(FI_CLAIM | FI_DISCARD, NULL, 0, &ctx), 0);
		fake_passes(&f, 3);
		fake_comp(&f, &ctx);
		if (how == 2)
			expect_fin(78, 0);
		fake_quiet(&f);
		cr_expect_eq(core->nread, 0);
		expect_no_entries();
	}
	fake_close(&f);
}

BOTH(claim_of_nothing)
{
	struct fi_context ctx = { { 0 } }, wild = { { buf } };

	open_met(kind);
	cr_expect_eq(special(FI_CLAIM, buf, 10, &ctx), -FI_EINVAL);
	cr_expect_eq(special(FI_CLAIM, buf, 10, &wild), -FI_EINVAL);
	cr_expect_eq(special(FI_CLAIM, buf, 10, NULL), -FI_EINVAL);
	cr_expect_eq(special(FI_PEEK | FI_CLAIM, buf, 10, NULL), -FI_EINVAL);
	fake_close(&f);
}

/* ---- memory ---- */

/* A frame that cannot be stored counts as lost: the sender has it still. */
BOTH(short_of_memory)
{
	open_met(kind);
	for (int how = 0; how < 3; how++) {
		uint32_t next = inside(&p)->seq.next, nth;

		/* Everything that lies ready is used up. */
		for (nth = 0; nth < 3000; nth++)
			recv_any(buf, 8, &a);
		core->nregion = 0;
		fake_quiet(&f);
		for (nth = 0; nth < 3000; nth++)
			cr_assert_eq(fi_cancel(&f.ep->fid, &a), 0);
		for (nth = 0; nth < 3000; nth++)
			fake_err(&f, &a, FI_ECANCELED);
		if (how == 0)
			fake_tag(&f, &p, 5, mem, 100);
		else if (how == 1)
			fake_tag(&f, &p, 5, mem, 10000);
		else
			fake_rts(&f, &p, true, 5, 77, mem,
				 &(uint64_t) { 100000 }, 1);
		starved_pass();
		/* Only a payload that stays in its buffer needs none. */
		cr_expect_eq(inside(&p)->seq.next, next + (how == 1));
		if (inside(&p)->seq.next == next) {
			/* Sent again, it is taken. */
			p.seq--;
			core->nregion = 0;
			if (how == 0)
				fake_tag(&f, &p, 5, mem, 100);
			else
				fake_rts(&f, &p, true, 5, 77, mem,
					 &(uint64_t) { 100000 }, 1);
		}
		fake_pass(&f);
		cr_expect_eq(inside(&p)->seq.next, next + 1);
		recv_any(buf, sizeof(buf), &b);
		fake_passes(&f, 5);
		cr_expect_eq(fake_comp(&f, &b).len, arrive_len[how]);
		cr_expect_arr_eq(buf, mem, arrive_len[how]);
		fake_quiet(&f);
	}
	expect_no_entries();
	fake_close(&f);
}

/* ---- direct rail: upcalls of a peer core ---- */

static void open_direct(void)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_DIRECT,
						      LNX_RAIL_PLAIN } };

	fake_open(&f, &opt);
	core = f.core[0];
	fill(mem, sizeof(mem));
}

Test(rx_direct, expected_and_unexpected)
{
	static const size_t len[] = { 0, 100, 4096, 4097, 100000 };

	open_direct();
	for (size_t i = 0; i < LNX_ARRAY_SIZE(len); i++) {
		struct fi_cq_tagged_entry e;

		recv_any(buf, len[i], &a);
		fake_direct(core, true, 0, 5, &(uint64_t) { 9 }, mem, len[i]);
		e = fake_comp(&f, &a);
		cr_expect_eq(e.len, len[i]);
		cr_expect_eq(e.tag, 5);
		cr_expect_eq(e.data, 9);
		cr_expect_eq(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		cr_expect_arr_eq(buf, mem, len[i]);

		fake_direct(core, true, 0, 5, &(uint64_t) { 9 }, mem, len[i]);
		fake_direct(core, false, 0, 0, NULL, mem, len[i]);
		fake_quiet(&f);
		if (i % 2)
			fake_after_ms(&f, 10);	/* taken out */
		memset(buf, 0, len[i]);
		recv_any(buf, len[i], &a);
		e = fake_comp(&f, &a);
		cr_expect_eq(e.data, 9);
		cr_expect_arr_eq(buf, mem, len[i]);
		cr_assert_eq(fi_recv(f.ep, buf, len[i], NULL, FI_ADDR_UNSPEC,
				     &b), 0);
		cr_expect_eq(fake_comp(&f, &b).len, len[i]);
	}
	cr_expect_eq(f.lnx->rxe_pool.used, f.lnx->nreserve);
	fake_direct(core, true, 0, 5, NULL, mem, 10);
	fake_direct(core, true, 0, 5, NULL, mem, 10000);
	fake_quiet(&f);
	fake_close(&f);
}

/* The core itself never truncates: the fake one ends the test if it has to. */
Test(rx_direct, truncated)
{
	open_direct();
	for (size_t len = 100; len <= 100000; len *= 1000) {
		memset(buf, 0xee, sizeof(buf));
		recv_any(buf, len - 1, &a);
		fake_direct(core, true, 0, 5, NULL, mem, len);
		truncated_end(len, len - 1);
		memset(buf, 0xee, sizeof(buf));
		fake_direct(core, true, 0, 5, NULL, mem, len);
		fake_quiet(&f);
		recv_any(buf, 1, &a);
		truncated_end(len, 1);
	}
	cr_expect_eq(f.lnx->rxe_pool.used, f.lnx->nreserve);
	fake_close(&f);
}

Test(rx_direct, peek_claim_discard)
{
	open_direct();
	for (size_t len = 100; len <= 100000; len *= 1000) {
		struct fi_context ctx = { { 0 } };

		fake_direct(core, true, 0, 5, NULL, mem, len);
		fake_quiet(&f);
		cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
		cr_expect_eq(fake_comp(&f, &ctx).len, len);
		cr_assert_eq(special(FI_CLAIM, buf, len, &ctx), 0);
		cr_expect_eq(fake_comp(&f, &ctx).len, len);
		cr_expect_arr_eq(buf, mem, len);

		fake_direct(core, true, 0, 5, NULL, mem, len);
		fake_quiet(&f);
		cr_assert_eq(special(FI_PEEK | FI_DISCARD, NULL, 0, &ctx), 0);
		fake_comp(&f, &ctx);
		fake_after_ms(&f, 10);
		fake_quiet(&f);
		cr_expect_null(core->kept, "nothing stays in the core");
	}
	cr_expect_eq(f.lnx->rxe_pool.used, f.lnx->nreserve);
	fake_close(&f);
}

Test(rx_direct, claimed_while_closing)
{
	struct fi_context ctx = { { 0 } };

	open_direct();
	fake_direct(core, true, 0, 5, NULL, mem, 100);
	fake_quiet(&f);
	cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
	fake_comp(&f, &ctx);
	fake_close(&f);
}
