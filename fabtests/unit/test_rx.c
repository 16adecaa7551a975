/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving on a scripted core.  The test is the sender: it numbers, repeats
 * and swaps frames, and reads find its memory.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ep.h"
#include "base/interval.h"
#include "comp/comp.h"
#include "core/peer.h"
#include "fake_core.h"
#include "fake_memory.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/rail.h"

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

/* One pass without memory. */
static void low_pass(void)
{
	no_memory = true;
	fake_pass(&f);
	no_memory = false;
}

/* ---- a sender that is known and has sent its hello ---- */

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
	fake_meet(&f, &p);
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

/* The receives that the application holds and those that it freed add up. */
static void expect_no_entries(void)
{
	fake_pass(&f);			/* posts what was consumed */
	cr_expect_eq(view_rxes(f.lnx), 0u);
	cr_expect_eq(view_chunks(f.lnx), 0);
	cr_expect_eq(view_rxbufs(f.lnx), (size_t)f.lnx->rail[0]->nposted);
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

BOTH(ooo_frames_wait_for_their_turn)
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
	/* A gap is acknowledged at once: the sender may be waiting. */
	fake_expect_drop(&f, &p, LNX_KIND_ACK);
	p.seq = 1;
	fake_tag(&f, &p, 1, "1", 2);
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(fake_comp(&f, to[i]).tag, (uint64_t)i + 1);
		cr_expect_eq(to[i][0], '1' + i);
	}
	fake_after_ms(&f, 1);
	cr_expect_eq(view_rx_next(inside(&p)), 5);
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
	/* Out-of-order ones as well. */
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
	/* The last one inside the window is kept. */
	p.seq = LNX_SEQ_WINDOW;
	fake_tag(&f, &p, 1, "1", 2);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.reorders, 1);
	fake_close(&f);			/* and freed */
}

BOTH(over_the_wrap_around)
{
	open_met(kind);
	force_rx_next(inside(&p), 0u - 50);
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
	cr_expect_eq(view_rx_next(inside(&p)), 50);
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
	/* Some that stay until the end. */
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

/* More than there are posted buffers, kept in them: other buffers are posted. */
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

/* What does not stay in its buffer takes its size and little more, until it is received. */
BOTH(unexpected_takes_its_size)
{
	static const size_t len[] = { 1, 100, 4096, 5000, 16000 };
	size_t before = 0;

	open_met(kind);
	for (unsigned k = 0; k < LNX_ARRAY_SIZE(len); k++) {
		for (uint64_t i = 0; i < 100; i++) {
			fake_tag(&f, &p, i, mem + i, len[k]);
			fake_passes(&f, 2);
		}
		cr_expect_eq(view_unexpected(f.lnx), 100);
		cr_expect_eq(view_held_bufs(f.lnx), len[k] > 4096 ? 16 : 0);
		before = view_stored_bytes(f.lnx);
		cr_expect_geq(before, 84 * len[k]);
		cr_expect_leq(before, 100 * (len[k] > 4096 ? len[k] * 11 / 10 :
					     128 + len[k] * 9 / 8));
		cr_expect(len[k] > 1 || before <= 100 * 128);
		for (uint64_t i = 100; i-- > 0;) {
			cr_assert_eq(fi_trecv(f.ep, buf, len[k], NULL, FI_ADDR_UNSPEC, i,
					      0, &a), 0);
			cr_expect_eq(fake_comp(&f, &a).len, len[k]);
			cr_expect_arr_eq(buf, mem + i, len[k]);
		}
		cr_expect_eq(view_stored_bytes(f.lnx), 0);
		cr_expect_eq(view_held_bufs(f.lnx), 0);
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
	cr_expect_eq(buf[room], 0xee, "wrote after the receive");
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

static void expect_fin_at(struct fake_peer *at, uint64_t op, int err)
{
	struct fake_sent *s;

	/* The first frame to a peer comes after our hello. */
	while ((s = fake_receive(&f, at)) && s->h.kind != LNX_KIND_FIN)
		free(s);
	cr_assert(s, "no FIN left");
	cr_expect_eq(s->h.data, op);
	cr_expect_eq(s->h.len, (uint64_t)err);
	free(s);
}

static void expect_fin(uint64_t op, int err)
{
	expect_fin_at(&p, op, err);
}

/* Pieces of the sender and of the receive that do not match, and small reads. */
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
				     "row %zu: after iov %u", i, k);
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

/* It is read, but so late that the sender may have given us up meanwhile: the reads took long,
 * or the receive was posted late. */
static void read_late(enum lnx_rail_kind kind, uint64_t *len, bool posted_late)
{
	open_met(kind);
	core->hold_reads = !posted_late;
	if (!posted_late)
		recv_any(buf, *len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, len, 1);
	fake_passes(&f, 3);
	cr_assert_eq(fake_held(core) > 0, !posted_late);
	core->hold_reads = false;
	fake_after_ms(&f, 60);
	while (core->sent)
		free(fake_take(core));
	if (posted_late)
		recv_any(buf, *len, &a);
	while (fake_held(core))
		fake_finish(core, 0, 0);
	fake_passes(&f, 3);
	fake_quiet(&f);
}

/* What it acknowledges shows that it still held its buffer for us.  Its send ends after that:
 * not before it is known that the receive ends well. */
static void is_confirmed(enum lnx_rail_kind kind, bool posted_late)
{
	uint64_t len = 100000;
	struct fake_sent *s;

	read_late(kind, &len, posted_late);
	s = fake_expect(&f, &p, LNX_KIND_FIN);
	cr_expect(s->h.flags & LNX_WIRE_F_ACK_NOW);
	cr_expect_eq(s->h.data, 0u);
	free(s);
	fake_after_ms(&f, 5);
	fake_quiet(&f);
	/* A thread may sleep meanwhile. */
	cr_expect(!view_work(f.lnx, LNX_WORK_PULL));
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	expect_fin(77, 0);
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(what_took_long_is_confirmed)
{
	is_confirmed(kind, false);
}

BOTH(what_waited_long_is_confirmed)
{
	is_confirmed(kind, true);
}

/* It had ended the session: what was read is what was in the buffer by then. */
static void is_not_confirmed(enum lnx_rail_kind kind, bool posted_late)
{
	uint64_t len = 100000;

	read_late(kind, &len, posted_late);
	free(fake_expect(&f, &p, LNX_KIND_FIN));
	lnx_lock(&f.lnx->lock);
	lnx_rel_peer_failed(lnx_peer_get(f.lnx, p.addr), FI_ECONNRESET);
	lnx_unlock(&f.lnx->lock);
	fake_err(&f, &a, FI_ECONNRESET);
	cr_expect_null(core->sent, "its send does not end well");
	fake_quiet(&f);
	fake_close_quick(&f);
}

BOTH(what_took_long_and_is_not_confirmed_fails)
{
	is_not_confirmed(kind, false);
}

BOTH(what_waited_long_and_is_not_confirmed_fails)
{
	is_not_confirmed(kind, true);
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

/* The buffer is not released while a read may still write to it. */
BOTH(read_that_fails_for_good)
{
	uint64_t len = 100000;

	fake_conf.chunk = 10000;
	fake_conf.transaction_timeout = 200;
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
	for (int i = 0; i < 50; i++) {
		fake_ack(&f, &p);	/* it has arrived */
		fake_after_ms(&f, 10);
	}
	fake_quiet(&f);
	fake_finish(core, 0, 0);
	fake_passes(&f, 3);
	fake_err(&f, &a, FI_EIO);
	fake_quiet(&f);
	expect_fin(77, FI_EIO);
	expect_no_entries();
	fake_close(&f);
}

/* Cores say so of what a broken connection ends; to the application it means fi_cancel. */
BOTH(reads_that_are_cancelled)
{
	uint64_t len = 100000;

	fake_conf.transaction_timeout = 200;
	open_met(kind);
	core->hold_reads = true;
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	for (int i = 0; i < 80; i++) {
		fake_ack(&f, &p);
		fake_after_ms(&f, 10);
		while (fake_held(core))
			fake_finish(core, 0, FI_ECANCELED);
	}
	fake_err(&f, &a, FI_ECONNRESET);
	fake_quiet(&f);
	expect_fin(77, FI_ECONNRESET);
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
	lnx_wire_rts_put(payload, &rts);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
					     .len = 100000 }, payload,
		  lnx_wire_rts_size(&rts));
	fake_passes(&f, 3);
	fake_err(&f, &a, FI_ENOKEY);
	expect_fin(77, FI_ENOKEY);
	fake_close(&f);
}

/* The application may stop making calls once it has its message. */
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
	/* All data has arrived. */
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
	/* The others stay. */
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

/* The path back is not known when they are handled, but it is when it is needed. */
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

BOTH(hello_and_rts_of_an_unsolicited_peer_in_one_pass)
{
	uint64_t len = 100000;

	open_with(kind, (struct fake_opt) { 0 });
	recv_any(buf, len, &a);
	fake_hello(&f, &q);
	fake_rts(&f, &q, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 5);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf, mem, len);
	expect_fin_at(&q, 77, 0);
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

/* ---- unsolicited peers, and sources ---- */

BOTH(unknown_sender_without_hello)
{
	open_met(kind);
	recv_any(buf, 100, &a);
	fake_tag(&f, &q, 5, "x", 1);
	q.seq = 0;
	fake_tag(&f, &q, 5, "x", 1);
	fake_ack(&f, &q);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.stale_frames, 3);
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
	/* Its frames are acknowledged, */
	fake_after_ms(&f, 1);
	fake_expect_drop(&f, &q, LNX_KIND_HELLO);
	/* its large messages are pulled, */
	recv_any(buf, len, &b);
	fake_rts(&f, &q, true, 5, 77, mem, &len, 1);
	fake_passes(&f, 5);
	fake_comp(&f, &b);
	/* and when it is inserted into the AV its source is resolved. */
	fake_peer_insert(&f, &q);
	recv_any(buf, 100, &a);
	fake_tag(&f, &q, 5, "x", 1);
	fake_pass(&f);
	cr_assert_eq(fi_cq_readfrom(f.cq, &e, 1, &src), 1);
	cr_expect_eq(src, q.addr);
	fake_close(&f);
}

/* Stored messages of a sender whose source is resolved only now. */
BOTH(directed_receive_waits_for_the_source)
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
	/* In its session p cannot become q. */
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = 1 },
		  q.blob, LNX_ADDR_BYTES);
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
	/* Waiting messages go into the next buffer. */
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

	/* Too long for an empty buffer: truncated, as with any receive. */
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
	post_multi(110000);
	fake_rts(&f, &p, false, 0, 77, mem, &len, 1);
	fake_passes(&f, 3);
	core->nregion = 0;
	fake_rts(&f, &p, false, 0, 78, mem, &len, 1);
	fake_passes(&f, 3);
	/* What is left then takes no other message. */
	fake_msg(&f, &p, mem, 9990);
	expect_multi(2 * len, 9990, 0);
	cr_assert_eq(fake_held(core), 2);
	/* The buffer is released after its last message is complete. */
	fake_finish(core, 1, 0);
	fake_passes(&f, 3);
	e = fake_comp(&f, &a);
	cr_expect_eq(e.buf, buf + len);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG);
	fake_finish(core, 0, 0);
	fake_passes(&f, 3);
	expect_multi(0, len, FI_MULTI_RECV);
	fake_close(&f);
}

/* ---- shared receive contexts ---- */

/* A context of f.ep and of another endpoint, which is idle. */
static struct fid_ep *shared, *standby;

static void open_shared(enum lnx_rail_kind kind)
{
	open_met(kind);
	cr_assert_eq(lnx_srx_open(&f.domain.fid, NULL, &shared, NULL), 0);
	cr_assert_eq(lnx_srx_bind(f.lnx, &shared->fid), 0);
	cr_assert_eq(lnx_ep_open(&f.domain.fid, f.info, &standby, NULL), 0);
	cr_assert_eq(fi_ep_bind(standby, &f.cq->fid, FI_RECV), 0);
	cr_assert_eq(fi_ep_bind(standby, &shared->fid, 0), 0);
	core->hold_reads = true;
}

/* f.ep is closed; the context has lost only what was posted. */
static void close_shared(size_t posted)
{
	struct lnx_ep *srx = lnx_container_of(shared, struct lnx_ep, fid);

	cr_assert_eq(fi_close(&f.ep->fid), 0);
	f.ep = NULL;
	cr_expect_eq(fi_close(&shared->fid), -FI_EBUSY);
	cr_expect_eq(view_rxes(srx), posted);
	cr_expect_eq(view_unexpected(srx), 0);
}

static void end_shared(void)
{
	cr_assert_eq(fi_close(&standby->fid), 0);
	cr_assert_eq(fi_close(&shared->fid), 0);
	fake_close(&f);
}

BOTH(shared_receives_return_from_a_pull)
{
	uint64_t len = 100000;

	open_shared(kind);
	/* Matched, posted and stored; operations in progress end with their
	 * endpoint. */
	cr_assert_eq(fi_trecv(shared, buf, len, NULL, FI_ADDR_UNSPEC, 5, 0,
			      &a), 0);
	cr_assert_eq(fi_trecv(shared, buf, len, NULL, FI_ADDR_UNSPEC, 6, 0,
			      &b), 0);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_rts(&f, &p, true, 7, 78, mem, &len, 1);
	fake_tag(&f, &p, 7, "x", 1);
	fake_passes(&f, 3);
	cr_expect(fake_held(core));
	close_shared(1);
	end_shared();
}

BOTH(shared_multi_receive_comes_back)
{
	struct iovec iov = { buf, 50000 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = &a,
	};
	struct fi_cq_tagged_entry e;
	uint64_t len = 50000;

	open_shared(kind);
	cr_assert_eq(fi_recvmsg(shared, &msg, FI_MULTI_RECV), 0);
	fake_rts(&f, &p, false, 0, 77, mem, &len, 1);
	fake_passes(&f, 3);
	cr_expect(fake_held(core));
	close_shared(0);
	/* The other endpoint releases the buffer. */
	cr_assert_eq(fi_cq_read(f.cq, &e, 1), 1);
	cr_expect_eq(e.op_context, &a);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	cr_expect_eq(e.len, 0);
	end_shared();
}

BOTH(shared_receives_without_memory)
{
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = &a,
	};
	unsigned i, n = 0;

	open_shared(kind);
	cr_assert_eq(fi_recvmsg(shared, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < 2000; i++) {
		fake_msg(&f, &p, mem, 8);
		if (i % 8 == 7)
			low_pass();
	}
	/* A dropped frame would be retransmitted: here it is not. */
	fake_passes(&f, 4);
	while (n < 2000) {
		struct fi_cq_tagged_entry e;

		if (fi_cq_read(f.cq, &e, 1) != 1)
			break;
		cr_expect_eq(e.op_context, &a);
		n++;
	}
	cr_expect_gt(n, 0);
	cr_expect_eq(view_unexpected(lnx_container_of(shared, struct lnx_ep, fid)), 0);
	close_shared(1);
	end_shared();
}

BOTH(close_with_multi_receive_under_way)
{
	uint64_t len = 50000;

	open_met(kind);
	core->hold_reads = true;
	post_multi(110000);
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

/* A stored message, in each of the three ways. */
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
		/* It matches no other receive. */
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

/* A frame that cannot be stored counts as lost: its sender still has it. */
BOTH(short_of_memory)
{
	open_met(kind);
	for (int how = 0; how < 3; how++) {
		uint32_t next = view_rx_next(inside(&p)), nth;

		/* Use up everything that is already allocated. */
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
		low_pass();
		/* Only a payload that stays in its buffer needs no memory. */
		cr_expect_eq(view_rx_next(inside(&p)), next + (how == 1));
		if (view_rx_next(inside(&p)) == next) {
			/* Retransmitted, it is accepted. */
			p.seq--;
			core->nregion = 0;
			if (how == 0)
				fake_tag(&f, &p, 5, mem, 100);
			else
				fake_rts(&f, &p, true, 5, 77, mem,
					 &(uint64_t) { 100000 }, 1);
		}
		fake_pass(&f);
		cr_expect_eq(view_rx_next(inside(&p)), next + 1);
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
			fake_after_ms(&f, 10);	/* was received */
		memset(buf, 0, len[i]);
		recv_any(buf, len[i], &a);
		e = fake_comp(&f, &a);
		cr_expect_eq(e.data, 9);
		cr_expect_arr_eq(buf, mem, len[i]);
		cr_assert_eq(fi_recv(f.ep, buf, len[i], NULL, FI_ADDR_UNSPEC,
				     &b), 0);
		cr_expect_eq(fake_comp(&f, &b).len, len[i]);
	}
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_direct(core, true, 0, 5, NULL, mem, 10);
	fake_direct(core, true, 0, 5, NULL, mem, 10000);
	fake_quiet(&f);
	fake_close(&f);
}

/* A core must never truncate: the fake one ends the test if it has to. */
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
	cr_expect_eq(view_rxes(f.lnx), 0u);
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
	cr_expect_eq(view_rxes(f.lnx), 0u);
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

/* ---- direct rail: large messages that a control message announces ---- */

static uint64_t cookie;			/* p's liveness cookie: its eid while it is
					 * open */

static const char *region(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/shm/lnx-%016llx", (unsigned long long)p.eid);
	return path;
}

static void make_region(void)
{
	int fd;

	unlink(region());
	fd = open(region(), O_CREAT | O_RDWR | O_EXCL, 0600);
	cr_assert_geq(fd, 0, "%s", region());
	close(fd);
}

static void remove_region(void)
{
	unlink(region());
}

/* p is on this host, and known. */
static void open_local(void)
{
	open_direct();
	fake_peer_init(&f, &p, 0x5252525200000000 + (unsigned)getpid());
	p.where.has_shm = true;
	p.where.host = f.domain.host;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	make_region();
	fake_peer_insert(&f, &p);
	remove_region();
}

static struct lnx_wire_shm_ctrl ctrl(uint64_t tag, size_t len)
{
	cookie = p.eid;
	return (struct lnx_wire_shm_ctrl) {
		.src = p.eid, .dst = f.lnx->eid, .kind = LNX_KIND_RTS_TAG,
		.npiece = 2, .flags = LNX_WIRE_F_DATA, .pid = getpid(),
		.cookie = (uintptr_t)&cookie, .op = 4711, .tag = tag, .data = 9,
		.len = len,
		.piece = { { (uintptr_t)mem, 100 },
			   { (uintptr_t)mem + 100, len - 100 } },
	};
}

static void ctrl_arrives(const struct lnx_wire_shm_ctrl *n)
{
	uint8_t bytes[LNX_SHM_CTRL_BYTES];

	lnx_shm_ctrl_put(bytes, n);
	fake_direct(core, true, 0, LNX_SHM_CTRL_TAG, NULL, bytes, sizeof(bytes));
}

/* The answer to ctrl() has left, and nothing else. */
static void fin_left(int err)
{
	struct fake_sent *s = fake_take(core);
	struct lnx_wire_shm_ctrl n;

	cr_assert_not_null(s, "no answer");
	cr_expect_str_eq(s->call, "fi_tinject");
	cr_expect_eq(s->tag, LNX_SHM_CTRL_TAG);
	cr_assert_eq(s->len, LNX_SHM_CTRL_BYTES);
	cr_assert_eq(lnx_shm_ctrl_get(&n, s->bytes, p.eid), 0);
	cr_expect_eq(n.kind, LNX_KIND_FIN);
	cr_expect_eq(n.src, f.lnx->eid);
	cr_expect_eq(n.op, 4711);
	cr_expect_eq(n.len, (uint64_t)err);
	free(s);
	cr_expect_null(fake_take(core), "one answer");
}

static void ctrl_end(size_t len)
{
	struct fi_cq_tagged_entry e = fake_comp(&f, &a);

	cr_expect_eq(e.len, len);
	cr_expect_eq(e.data, 9);
	cr_expect_eq(e.tag, 5);
	cr_expect_eq(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	cr_expect_arr_eq(buf, mem, len);
	memset(buf, 0, len);
}

Test(rx_direct, announced)
{
	struct fi_context ctx = { { 0 } };
	struct lnx_wire_shm_ctrl n;

	open_local();
	n = ctrl(5, 50000);
	recv_any(buf, 50000, &a);
	ctrl_arrives(&n);
	ctrl_end(50000);
	fin_left(0);
	/* Unexpected: the data stays with its sender, ... */
	ctrl_arrives(&n);
	fake_quiet(&f);
	cr_expect_null(core->sent);
	recv_any(buf, 50000, &a);
	ctrl_end(50000);
	fin_left(0);
	/* ... but not for long: then it is copied, and the sender may change it. */
	ctrl_arrives(&n);
	fake_quiet(&f);
	fake_after_ms(&f, 10);
	fin_left(0);
	cookie = 0;
	recv_any(buf, 50000, &a);
	ctrl_end(50000);
	cookie = p.eid;
	/* Claimed, discarded, truncated. */
	ctrl_arrives(&n);
	fake_quiet(&f);
	cr_assert_eq(special(FI_PEEK | FI_CLAIM, NULL, 0, &ctx), 0);
	cr_expect_eq(fake_comp(&f, &ctx).len, 50000);
	fake_after_ms(&f, 10);
	cr_assert_eq(special(FI_CLAIM, buf, 50000, &ctx), 0);
	cr_expect_eq(fake_comp(&f, &ctx).len, 50000);
	cr_expect_arr_eq(buf, mem, 50000);
	fin_left(0);
	ctrl_arrives(&n);
	fake_quiet(&f);
	cr_assert_eq(special(FI_PEEK | FI_DISCARD, NULL, 0, &ctx), 0);
	fake_comp(&f, &ctx);
	fin_left(0);
	memset(buf, 0xee, sizeof(buf));
	recv_any(buf, 150, &a);
	ctrl_arrives(&n);
	truncated_end(50000, 150);
	fin_left(0);
	fake_quiet(&f);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	/* One that is never received. */
	ctrl_arrives(&n);
	fake_close(&f);
}

Test(rx_direct, announced_by_a_dead_peer)
{
	struct lnx_wire_shm_ctrl n;

	open_local();
	n = ctrl(5, 50000);
	cookie = 0;
	recv_any(buf, 50000, &a);
	ctrl_arrives(&n);
	fake_err(&f, &a, FI_EIO);
	fin_left(ESRCH);
	/* The same, found before there is a receive. */
	ctrl_arrives(&n);
	fake_quiet(&f);
	fake_after_ms(&f, 10);
	cr_expect_null(core->sent);
	recv_any(buf, 50000, &a);
	fake_err(&f, &a, FI_EIO);
	fin_left(ESRCH);
	n = ctrl(5, 50000);
	n.piece[1].addr = 16;
	recv_any(buf, 50000, &a);
	ctrl_arrives(&n);
	fake_err(&f, &a, FI_EIO);
	fin_left(EFAULT);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* The receive completes only when the sender can be answered. */
Test(rx_direct, answer_waits_for_a_busy_core)
{
	struct lnx_wire_shm_ctrl n;

	open_local();
	n = ctrl(5, 50000);
	core->inject_again = FAKE_ALWAYS;
	recv_any(buf, 50000, &a);
	ctrl_arrives(&n);
	fake_passes(&f, 10);
	fake_quiet(&f);
	core->inject_again = 0;
	ctrl_end(50000);
	fin_left(0);
	/* Copied after the delay, but only once the answer can be sent. */
	core->inject_again = FAKE_ALWAYS;
	ctrl_arrives(&n);
	fake_after_ms(&f, 10);
	fake_after_ms(&f, 10);
	core->inject_again = 0;
	fake_after_ms(&f, 10);
	fake_after_ms(&f, 10);
	fin_left(0);
	recv_any(buf, 50000, &a);
	ctrl_end(50000);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* It was for the process that had our name before.  The send has failed, or will: what is in
 * its buffer is not read, no receive is taken for it, and its sender is told. */
Test(rx_direct, announced_to_another_process)
{
	uint16_t before, own = lnx_shm_ctrl_process(getpid());
	struct lnx_wire_shm_ctrl n;

	open_local();
	recv_any(buf, 50000, &a);
	for (int pid = getpid() - 3; pid < getpid(); pid++) {
		before = lnx_shm_ctrl_process(pid);
		n = ctrl(5, 50000);
		n.to_low = (uint8_t)before;
		n.to_high = (uint8_t)(before >> 8);
		ctrl_arrives(&n);
		fake_quiet(&f);
		fin_left(FI_ECONNRESET);
	}
	cr_expect_eq(f.lnx->stats.stale_frames, 3);
	n.to_low = (uint8_t)own;
	n.to_high = (uint8_t)(own >> 8);
	ctrl_arrives(&n);
	ctrl_end(50000);
	fin_left(0);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* Another process has the name of the sender now.  The core would take our answer there, and
 * its operations have the same numbers. */
Test(rx_direct, no_answer_to_the_next_process)
{
	struct lnx_wire_shm_ctrl n;
	struct lnx_peer *peer;

	open_local();
	n = ctrl(5, 50000);
	recv_any(buf, 50000, &a);
	core->inject_again = FAKE_ALWAYS;
	ctrl_arrives(&n);
	fake_passes(&f, 3);
	fake_quiet(&f);
	make_region();
	lnx_lock(&f.lnx->lock);
	peer = inside(&p);
	lnx_peer_shm_forget(peer);
	lnx_peer_detach(peer);
	lnx_unlock(&f.lnx->lock);
	core->inject_again = 0;
	fake_after_ms(&f, 10);
	remove_region();
	cr_expect_null(core->sent, "its answer leaves");
	ctrl_end(50000);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* The core takes the next peer at a place for the one that it has removed there.  Where its
 * places are not found, as in this one, it keeps all addresses. */
Test(rx_direct, a_place_that_is_not_found_is_kept)
{
	unsigned had;
	bool removed;

	open_local();
	had = core->nav_in;
	lnx_lock(&f.lnx->lock);
	removed = lnx_peer_shm_forget(inside(&p));
	lnx_unlock(&f.lnx->lock);
	cr_expect(!removed);
	cr_expect_eq(core->nav_in, had);
	fake_close(&f);
}

/* A message of the tag and length of a control message, without being one, is the
 * application's. */
Test(rx_direct, looks_like_a_control_message)
{
	struct lnx_wire_shm_ctrl n;
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct fi_cq_tagged_entry e;

	open_local();
	n = ctrl(5, 50000);
	n.dst++;
	lnx_shm_ctrl_put(bytes, &n);
	for (int k = 0; k < 2; k++) {
		if (k) {
			ctrl_arrives(&n);
			fake_quiet(&f);
		}
		cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC,
				      LNX_SHM_CTRL_TAG, 0, &a), 0);
		if (!k)
			ctrl_arrives(&n);
		e = fake_comp(&f, &a);
		cr_expect_eq(e.len, sizeof(bytes));
		cr_expect_eq(e.tag, LNX_SHM_CTRL_TAG);
		cr_expect_eq(e.flags, FI_RECV | FI_TAGGED);
		cr_expect_arr_eq(buf, bytes, sizeof(bytes));
	}
	cr_expect_null(core->sent);
	/* An answer to a request that was never made. */
	n.dst--;
	n.kind = LNX_KIND_FIN;
	n.npiece = 0;
	ctrl_arrives(&n);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, 1);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* The core does not name the source of a control message, and progress has to find out whether
 * earlier messages are of the same: so nothing that comes behind it is handled before. */
Test(rx_direct, a_control_message_of_an_unknown_source_keeps_its_place)
{
	struct lnx_wire_shm_ctrl n;
	uint8_t bytes[LNX_SHM_CTRL_BYTES];

	open_local();
	recv_any(buf, 50000, &b);
	recv_any(buf, 50000, &a);
	recv_any(buf, 50000, &b);
	n = ctrl(5, 50000);
	lnx_shm_ctrl_put(bytes, &n);
	fake_direct(core, true, FI_ADDR_NOTAVAIL, 5, NULL, mem, 10);
	fake_direct(core, true, FI_ADDR_NOTAVAIL, LNX_SHM_CTRL_TAG, NULL, bytes, sizeof(bytes));
	fake_direct(core, true, FI_ADDR_NOTAVAIL, 5, NULL, mem, 20);
	fake_passes(&f, 1);
	cr_expect_not_null(core->in, "the last one is still in the core");
	cr_expect_eq(fake_comp(&f, &b).len, 10);
	ctrl_end(50000);
	cr_expect_eq(fake_comp(&f, &b).len, 20);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* Control messages use reserved entries, which must suffice until the pass ends. */
Test(rx_direct, many_control_messages_in_one_poll_without_memory)
{
	struct lnx_wire_shm_ctrl n;

	open_local();
	for (uint64_t i = 0; i < 1000; i++) {
		n = ctrl(i, 5000);
		n.op = i + 1;
		ctrl_arrives(&n);
		fake_direct(core, true, 0, i, NULL, mem, 10);
	}
	no_memory = true;
	fake_passes(&f, 2000);
	cr_expect_not_null(core->in, "the rest waits in the core");
	for (uint64_t i = 0; i < 1000; i++) {
		if (i == 20)
			no_memory = false;
		for (int k = 0; k < 2; k++) {
			cr_assert_eq(fi_trecv(f.ep, buf, 5000, NULL,
					      FI_ADDR_UNSPEC, i, 0, &a), 0);
			cr_expect_eq(fake_comp(&f, &a).len, k ? 10 : 5000,
				     "message %lu", i);
		}
	}
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.lost, 0);
	cr_expect_null(core->kept);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* ---- more arrives than there is memory for ---- */

/* Post receives that match nothing, until there is no free entry. */
static unsigned use_up_entries(void)
{
	unsigned n = 0;

	no_memory = true;
	while (!fi_trecv(f.ep, buf, 8, NULL, FI_ADDR_UNSPEC, ~0ull, 0, &c))
		n++;
	no_memory = false;
	return n;
}

static void give_back_entries(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(fi_cancel(&f.ep->fid, &c), 0);
		fake_err(&f, &c, FI_ECANCELED);
	}
}

/* Errors are reported all the same, with all fields that an application reads. */
Test(rx_plain, errors_without_memory)
{
	struct fi_cq_err_entry e;

	open_met(LNX_RAIL_PLAIN);
	memset(buf, 0xee, sizeof(buf));
	recv_any(buf, 60, &a);
	recv_any(buf, 60, &b);
	fake_tag(&f, &p, 5, mem, 100);
	no_memory = true;
	fake_pass(&f);
	truncated_end(100, 60);
	cr_assert_eq(fi_cancel(&f.ep->fid, &b), 0);
	e = fake_err(&f, &b, FI_ECANCELED);
	cr_expect_eq(e.prov_errno, FI_ECANCELED);
	cr_expect_eq(e.flags, FI_RECV | FI_TAGGED);
	fake_quiet(&f);
	/* Some are never read. */
	recv_any(buf, 60, &b);
	cr_assert_eq(fi_cancel(&f.ep->fid, &b), 0);
	no_memory = false;
	fake_close(&f);
}

/* As many buffers are posted as bursts use, and fewer when there are no bursts. */
Test(rx_plain, posted_follow_the_bursts)
{
	unsigned i, n, burst, max = 128;

	fake_conf.rx_buffers = max;
	open_met(LNX_RAIL_PLAIN);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	/* Buffers are posted when there is nothing else to do, not before an answer. */
	recv_any(buf, 60, &a);
	fake_tag(&f, &p, 5, mem, 8);
	lnx_lock(&f.lnx->lock);
	lnx_ep_progress(f.lnx);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED - 1);
	lnx_ep_progress(f.lnx);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	lnx_unlock(&f.lnx->lock);
	fake_comp(&f, &a);
	/* A burst that uses all of them, however few. */
	for (i = 0; i < LNX_PLAIN_POSTED; i++) {
		recv_any(buf, 60, &a);
		fake_tag(&f, &p, 5, mem, 8);
	}
	fake_pass(&f);
	for (i = 0; i < LNX_PLAIN_POSTED; i++)
		fake_comp(&f, &a);
	fake_pass(&f);
	cr_expect_eq(core->nposted, 2 * LNX_PLAIN_POSTED);
	/* Never fewer than half of the minimum, whatever arrives; those that
	 * wait to be read count. */
	for (burst = n = 0; burst < 20; burst++) {
		for (i = 0; i < 2 * max; i++, n++) {
			recv_any(buf, 60, &a);
			fake_tag(&f, &p, n, mem, 8);
		}
		lnx_lock(&f.lnx->lock);
		while (core->in) {
			lnx_ep_progress(f.lnx);
			cr_assert_geq(2 * (uint32_t)f.lnx->rail[0]->nposted,
				      LNX_PLAIN_POSTED);
			cr_assert_leq((uint32_t)f.lnx->rail[0]->nposted, max);
		}
		lnx_unlock(&f.lnx->lock);
		fake_passes(&f, 40);
		for (i = 2 * max; i > 0; i--)
			cr_assert_eq(fake_comp(&f, &a).tag, n - i);
	}
	burst = core->nposted;
	cr_expect_geq(burst, 4 * LNX_PLAIN_POSTED);
	for (i = 0; i < LNX_PLAIN_IDLE_POLLS; i++) {
		recv_any(buf, 60, &a);
		fake_tag(&f, &p, i, mem, 8);
		cr_assert_eq(fake_comp(&f, &a).tag, i);
		fake_drop_all(&f, &p);
	}
	for (i = 0; i < max; i++) {
		recv_any(buf, 60, &a);
		fake_tag(&f, &p, i, mem, 8);
		fake_comp(&f, &a);
	}
	fake_pass(&f);
	cr_expect_eq(core->nposted, burst / 2);
	fake_close(&f);
}

/* Many peers begin at once: each poll finds something, and each of them may call for more
 * buffers.  Those that were read are posted again first. */
Test(rx_plain, many_hellos_take_no_more_buffers)
{
	static struct fake_peer more[2000];
	const unsigned max = 64;
	unsigned i, most = 0;

	fake_conf.rx_buffers = max;
	open_met(LNX_RAIL_PLAIN);
	for (i = 0; i < LNX_ARRAY_SIZE(more); i++) {
		fake_peer_init(&f, &more[i], 100 + i);
		fake_peer_insert(&f, &more[i]);
		fake_hello(&f, &more[i]);
	}
	while (core->in) {
		fake_pass(&f);
		most = LNX_MAX(most, view_rail_bufs(f.lnx->rail[0]));
	}
	cr_expect_geq(most, 16);
	cr_expect_leq(most, 2 * max, "%u buffers", most);
	fake_close_quick(&f);
}

/* Each peer may have stopped in the middle of a frame, which keeps a buffer. */
Test(rx_plain, more_are_posted_for_many_peers)
{
	struct fake_peer more[LNX_PLAIN_PEERS];
	unsigned i;

	fake_conf.rx_buffers = 128;
	open_met(LNX_RAIL_PLAIN);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	for (i = 0; i < LNX_PLAIN_PEERS; i++) {
		fake_peer_init(&f, &more[i], 100 + i);
		fake_peer_insert(&f, &more[i]);
		fake_hello(&f, &more[i]);
		fake_passes(&f, 4);
		cr_expect_geq(core->nposted, LNX_MIN(2 * (i + 1), 16u));
	}
	cr_expect_eq(core->nposted, 2 * LNX_PLAIN_PEERS);
	fake_close_quick(&f);
}

/* A core without buffers does not read: no sleep before it has all of them. */
Test(rx_plain, no_sleep_on_buffers)
{
	open_met(LNX_RAIL_PLAIN);
	fake_passes(&f, 4);
	lnx_lock(&f.lnx->lock);
	cr_expect_neq(lnx_ep_sleep_until(f.lnx), 0);
	lnx_unlock(&f.lnx->lock);
	fake_tag(&f, &p, 5, mem, 8);
	core->late = 1;
	lnx_lock(&f.lnx->lock);
	cr_expect_eq(lnx_ep_sleep_until(f.lnx), 0);
	cr_expect_eq(core->in, NULL);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED - 1);
	cr_expect_neq(lnx_ep_sleep_until(f.lnx), 0);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	lnx_unlock(&f.lnx->lock);
	fake_close_quick(&f);
}

/* No more than FI_LNX_RX_BUFFERS. */
Test(rx_plain, few_buffers)
{
	unsigned i;

	fake_conf.rx_buffers = 8;
	open_met(LNX_RAIL_PLAIN);
	for (i = 0; i < 100; i++) {
		recv_any(buf, 60, &a);
		fake_tag(&f, &p, i, mem, 8);
		cr_assert_leq(core->nposted, 8);
	}
	for (i = 0; i < 100; i++)
		cr_assert_eq(fake_comp(&f, &a).tag, i);
	fake_pass(&f);
	cr_expect_eq(core->nposted, 8);
	fake_close(&f);
}

/* A message of p comes and is received. */
static void comes(uint64_t tag)
{
	recv_any(buf, 60, &a);
	fake_tag(&f, &p, tag, mem, 8);
	cr_assert_eq(fake_comp(&f, &a).tag, tag);
	fake_drop_all(&f, &p);
}

/* Are they looked at often? */
static bool watched(void)
{
	return view_posted_look(f.lnx) <= fake_now_ns + LNX_POSTED_LOOK_NS;
}

/* So many looks at what is posted. */
static void looks(unsigned n)
{
	while (n--)
		fake_after_ms(&f, LNX_POSTED_LOOK_NS / LNX_NS_PER_MS + 1);
	fake_drop_all(&f, &p);
}

/* Messages that do not end keep all buffers: more are posted. */
Test(rx_plain, stalled_messages_do_not_make_it_deaf)
{
	const unsigned max = 128, stalled = 40;
	unsigned i, waits = 0;

	fake_conf.rx_buffers = max;
	open_met(LNX_RAIL_PLAIN);
	core->stall = stalled;
	/* With frames it is found which are held: then the others come without a look. */
	for (i = 0; i < 4 * max; i++) {
		recv_any(buf, 60, &a);
		fake_tag(&f, &p, i, mem, 8);
		fake_pass(&f);
		for (; core->in && waits < 10; waits++)
			looks(1);
		cr_assert_eq(fake_comp(&f, &a).tag, i);
		if (i % 16 == 15)
			looks(1);
	}
	cr_assert_eq(core->nstalled, stalled);
	cr_expect_gt(waits, 0);
	cr_expect_eq(f.lnx->rail[0]->held, stalled);
	for (i = 0; i < 4 * max; i++)
		comes(i);
	fake_pass(&f);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	cr_expect_eq(f.lnx->rail[0]->want_posted, LNX_PLAIN_POSTED);
	/* They end after all. */
	for (i = 0; i < stalled; i++) {
		recv_any(buf, 60, &a);
		fake_stall_end(core, mem, 8);
		fake_pass(&f);
		cr_assert_leq(core->nposted + core->nstalled, max);
		cr_assert_eq((uint32_t)f.lnx->rail[0]->nposted + f.lnx->rail[0]->held,
			     core->nposted + core->nstalled);
	}
	for (i = 0; i < 4; i++) {
		comes(i);
		looks(1);
	}
	cr_expect_eq(f.lnx->rail[0]->held, 0);
	for (i = 0; i < 4 * max; i++)
		comes(i);
	fake_pass(&f);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	fake_close_quick(&f);
}

/* Connections of a rail, while there is something that its core does not read. */
static unsigned unread;

unsigned __wrap_lnx_half_open_unread(const struct lnx_rail *rail);

unsigned __wrap_lnx_half_open_unread(const struct lnx_rail *rail)
{
	(void)rail;
	return unread;
}

/* As many messages as may be posted begin, and do not end.  That looks as if nothing were
 * sent, but that the kernel has something. */
Test(rx_plain, more_are_posted_than_there_are_connections)
{
	const unsigned max = 16, connections = 40;
	unsigned i;

	fake_conf.rx_buffers = max;
	open_met(LNX_RAIL_PLAIN);
	core->stall = connections;
	for (i = 0; i < connections; i++)
		fake_tag(&f, &p, i, mem, 8);
	fake_passes(&f, 4);
	looks(20);
	cr_expect_eq(core->nposted, 0);
	cr_expect_eq(core->nstalled, max);
	cr_expect(!watched());
	cr_expect_leq(view_posted_look(f.lnx), fake_now_ns + LNX_POSTED_REST_NS);
	unread = connections;
	looks(LNX_POSTED_REST_NS / LNX_POSTED_LOOK_NS + 10);
	cr_expect_eq(core->nstalled, connections);
	cr_expect_gt(core->nposted, 0);
	cr_expect_leq(core->nposted + core->nstalled, connections + LNX_PLAIN_POSTED);
	p.seq -= connections;
	for (i = 0; i < connections; i++) {
		comes(i);
		if (i % 4 == 3)
			looks(1);
	}
	/* The connections are closed, and what was begun in them ends: as few as ever will do. */
	unread = 0;
	for (i = 0; i < connections; i++) {
		recv_any(buf, 60, &a);
		fake_stall_end(core, mem, 8);
		fake_pass(&f);
	}
	for (i = 0; i < 4 * connections; i++) {
		comes(i);
		if (i % 4 == 3)
			looks(1);
	}
	looks(20);
	for (i = 0; i < 4 * connections; i++)
		comes(i);
	looks(20);
	cr_expect_eq(core->nposted, max);
	fake_close_quick(&f);
}

/* While nothing comes more are posted, up to the most; then it is looked at rarely.  With
 * frames they are as few again as before. */
Test(rx_plain, idle_rail_posts_all_and_rests)
{
	const unsigned max = 128;
	unsigned i, before;

	fake_conf.rx_buffers = max;
	open_met(LNX_RAIL_PLAIN);
	cr_expect(watched());
	for (i = 0; watched() && i < 20; i++) {
		before = core->nposted;
		looks(1);
		cr_expect_leq(core->nposted, 2 * before);
	}
	cr_expect(!watched());
	cr_expect_eq(core->nposted, max);
	cr_expect_eq(f.lnx->rail[0]->want_posted, LNX_PLAIN_POSTED);
	for (i = 0; i < max; i++)
		comes(i);
	fake_pass(&f);
	cr_expect_eq(core->nposted, LNX_PLAIN_POSTED);
	cr_expect(watched());
	fake_close(&f);
}

/* A thread that sleeps wakes up for that. */
Test(rx_plain, sleepers_look_at_what_is_posted)
{
	open_met(LNX_RAIL_PLAIN);
	fake_passes(&f, 4);
	lnx_lock(&f.lnx->lock);
	cr_expect_leq(lnx_ep_sleep_until(f.lnx), fake_now_ns + LNX_POSTED_LOOK_NS);
	lnx_unlock(&f.lnx->lock);
	fake_close_quick(&f);
}

/* p retransmits what the endpoint dropped or refused, as a sender does. */
BOTH(many_arrivals_in_one_poll_without_memory)
{
	uint32_t i;

	open_met(kind);
	for (i = 0; i < 600; i++)
		fake_tag(&f, &p, i, mem + i, 10000);
	no_memory = true;
	fake_passes(&f, 10);
	no_memory = false;
	cr_expect_lt(view_rx_next(inside(&p)), 601);
	while ((i = view_rx_next(inside(&p))) < 601) {
		p.seq = i;
		fake_tag(&f, &p, i - 1, mem + i - 1, 10000);
		fake_pass(&f);
	}
	for (i = 0; i < 600; i++) {
		recv_any(buf, 10000, &a);
		cr_expect_eq(fake_comp(&f, &a).tag, i);
		cr_expect_arr_eq(buf, mem + i, 10000);
	}
	expect_no_entries();
	fake_close(&f);
}

/* What needs no memory works, whatever else is stored. */
BOTH(posted_receives_complete_without_memory)
{
	open_met(kind);
	for (int i = 0; i < 64; i++)
		recv_any(buf, 10000, &b);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(fi_cancel(&f.ep->fid, &b), 0);
	for (int i = 0; i < 64; i++)
		fake_err(&f, &b, FI_ECANCELED);
	no_memory = true;
	for (unsigned i = 0; i < 600; i++) {
		p.seq = view_rx_next(inside(&p));
		fake_tag(&f, &p, 6, mem, 10000);
		/* And some out of order. */
		p.seq += i % 100;
		fake_tag(&f, &p, 6, mem, 10000);
		fake_passes(&f, 2);
	}
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(fi_trecv(f.ep, buf, 10000, NULL, FI_ADDR_UNSPEC,
				      7, 0, &a), 0);
		p.seq = view_rx_next(inside(&p));
		fake_tag(&f, &p, 7, mem, 10000);
		cr_expect_eq(fake_comp(&f, &a).tag, 7);
	}
	no_memory = false;
	fake_close(&f);
}

/* Longer than a frame, with no memory for it: the core must not have to truncate. */
Test(rx_peer, too_long_for_a_frame_without_memory)
{
	open_met(LNX_RAIL_PEER);
	for (int i = 0; i < 300; i++)
		fake_arrive(core, mem, i % 2 ? 20000 : 100000);
	low_pass();
	fake_passes(&f, 50);
	recv_any(buf, 100, &a);
	fake_tag(&f, &p, 5, "x", 1);
	fake_comp(&f, &a);
	expect_no_entries();
	fake_close(&f);
}

/* What a pull takes is there once its message is: also what its end is told with. */
BOTH(pull_goes_on_without_memory)
{
	uint64_t len = 100000;

	open_met(kind);
	recv_any(buf, len, &a);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_rts(&f, &p, true, 5, 78, mem, &len, 1);
	core->read_again = 1;
	fake_quiet(&f);
	no_memory = true;
	recv_any(buf + len, len, &b);
	for (int i = 0; i < 10; i++)
		fake_after_ms(&f, 100);
	no_memory = false;
	/* It took long. */
	expect_fin(0, 0);
	expect_fin(0, 0);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_comp(&f, &b);
	cr_expect_arr_eq(buf, mem, len);
	cr_expect_arr_eq(buf + len, mem, len);
	expect_fin(77, 0);
	expect_fin(78, 0);
	expect_no_entries();
	fake_close(&f);
}

BOTH(discard_of_a_large_message_without_memory)
{
	uint64_t len = 100000;
	struct fi_context ctx = { { 0 } };

	open_met(kind);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_quiet(&f);
	no_memory = true;
	cr_assert_eq(special(FI_PEEK | FI_DISCARD, NULL, 0, &ctx), 0);
	fake_comp(&f, &ctx);
	fake_quiet(&f);
	no_memory = false;
	fake_passes(&f, 5);
	fake_quiet(&f);
	expect_fin(77, 0);
	expect_no_entries();
	fake_close(&f);
}

BOTH(close_with_a_pull_that_waits_for_memory)
{
	uint64_t len = 100000;

	open_met(kind);
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	fake_quiet(&f);
	no_memory = true;
	recv_any(buf, len, &a);
	fake_pass(&f);
	no_memory = false;
	core->send_again = core->inject_again = core->read_again = FAKE_ALWAYS;
	fake_close(&f);
}

/* A message takes a piece of the buffer, and needs an entry of its own. */
BOTH(multi_receive_without_memory)
{
	uint64_t len = 50000;
	unsigned n;

	open_met(kind);
	post_multi(200000);
	n = use_up_entries();
	fake_msg(&f, &p, mem, 100);
	fake_rts(&f, &p, false, 0, 77, mem, &len, 1);
	low_pass();
	fake_quiet(&f);
	give_back_entries(n);
	/* Send it again if it was dropped; in any case in the original order. */
	if (view_rx_next(inside(&p)) == 1) {
		p.seq = 1;
		core->nregion = 0;
		fake_msg(&f, &p, mem, 100);
		fake_rts(&f, &p, false, 0, 77, mem, &len, 1);
	}
	fake_msg(&f, &p, mem, 300);
	fake_passes(&f, 5);
	for (int i = 0; i < 3; i++) {
		struct fi_cq_tagged_entry e = fake_comp(&f, &a);

		/* A pull takes time, but has its position in the buffer at once. */
		cr_expect_eq((uint8_t *)e.buf - buf, e.len == 100 ? 0 :
			     e.len == len ? 100 : 100 + (ptrdiff_t)len);
		cr_expect_arr_eq(e.buf, mem, e.len);
	}
	fake_quiet(&f);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), 0);
	fake_err(&f, &a, FI_ECANCELED);
	expect_no_entries();
	fake_close(&f);
}

/* The messages wait when the buffer is posted, and there is no free entry. */
BOTH(waiting_messages_meet_a_multi_receive_without_memory)
{
	struct iovec iov = { buf, 1000 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC, .context = &a };
	unsigned n;

	open_met(kind);
	fake_msg(&f, &p, mem, 100);
	fake_msg(&f, &p, mem, 200);
	fake_msg(&f, &p, mem, 300);
	fake_quiet(&f);
	n = use_up_entries();
	/* Free one entry for the buffer, none for the messages. */
	cr_assert_eq(fi_cancel(&f.ep->fid, &c), 0);
	fake_err(&f, &c, FI_ECANCELED);
	no_memory = true;
	cr_assert_eq(fi_recvmsg(f.ep, &m, FI_MULTI_RECV), 0);
	fake_quiet(&f);
	/* Later receives do not overtake. */
	cr_expect_eq(fi_recv(f.ep, buf + 5000, 1000, NULL, FI_ADDR_UNSPEC, &b),
		     -FI_EAGAIN);
	no_memory = false;
	/* Nor do later messages. */
	fake_msg(&f, &p, mem, 50);
	fake_pass(&f);
	expect_multi(0, 100, 0);
	expect_multi(100, 200, 0);
	expect_multi(300, 300, 0);
	expect_multi(600, 50, 0);
	fake_quiet(&f);
	give_back_entries(n - 1);
	cr_expect_eq(fi_cancel(&f.ep->fid, &a), 0);
	fake_err(&f, &a, FI_ECANCELED);
	expect_no_entries();
	fake_close(&f);
}

/* Without the hello there would be no path back to its sender. */
BOTH(hello_without_memory)
{
	uint64_t len = 100000;

	open_with(kind, (struct fake_opt) { .caps = FI_DIRECTED_RECV });
	for (unsigned long n = 0; n < 8; n++) {
		p.seq = 0;
		nalloc = 0;
		fail_from = n;
		fail_to = n + 1;
		fail_armed = true;
		fake_hello(&f, &p);
		fake_pass(&f);
		fail_armed = false;
		if (inside(&p) && view_rx_next(inside(&p)))
			break;
	}
	if (!inside(&p) || !view_rx_next(inside(&p))) {
		p.seq = 0;
		fake_hello(&f, &p);
	}
	p.seq = 1;
	fake_rts(&f, &p, true, 5, 77, mem, &len, 1);
	cr_assert_eq(fi_trecv(f.ep, buf, len, NULL, p.addr, 5, 0, &a), 0);
	fake_passes(&f, 5);
	fake_comp(&f, &a);
	expect_fin(77, 0);
	fake_close(&f);
}

/* All buffers are with a core that has not ended with them, and there is no memory for more:
 * a message of any length gets the drop buffer, and no more than there is of it. */
Test(rx_peer, longer_than_the_drop_buffer)
{
	struct lnx_rxbuf *taken[1024], *drop;
	struct lnx_rail *rail;
	unsigned n = 0;

	open_met(LNX_RAIL_PEER);
	rail = f.lnx->rail[0];
	drop = rail->drop_buf;
	no_memory = true;
	while ((taken[n] = lnx_rxbuf_get(rail)) != drop)
		cr_assert_lt(++n, LNX_ARRAY_SIZE(taken));
	core->may_truncate = true;
	core->buffer_max = 0;
	fake_arrive(core, mem, 200000);
	fake_arrive(core, mem, 100);
	fake_arrive(core, mem, 128 << 10);
	fake_pass(&f);
	no_memory = false;
	cr_expect_eq(core->buffer_max, 128u << 10);
	cr_expect_eq(f.lnx->stats.mem_drops, 3u);
	while (n)
		lnx_rxbuf_put(taken[--n]);
	recv_any(buf, 100, &a);
	fake_tag(&f, &p, 1, mem, 100);
	fake_comp(&f, &a);
	expect_no_entries();
	fake_close(&f);
}

/* Nothing that shm has accepted may be lost: it is not retransmitted. */
Test(rx_direct, many_arrivals_in_one_poll_without_memory)
{
	open_direct();
	for (uint64_t i = 0; i < 2000; i++)
		fake_direct(core, i % 2, 0, i, &i, mem + i,
			    i % 10 ? 10 : 5000);
	no_memory = true;
	fake_passes(&f, 2000);
	cr_expect_not_null(core->in, "the rest waits in the core");
	for (uint64_t i = 0; i < 2000; i++) {
		struct fi_cq_tagged_entry e;
		size_t len = i % 10 ? 10 : 5000;
		ssize_t ret = -FI_EAGAIN;

		if (i == 100)
			no_memory = false;
		ret = i % 2 ? fi_trecv(f.ep, buf, len, NULL, FI_ADDR_UNSPEC, i,
				       0, &a) :
			      fi_recv(f.ep, buf, len, NULL, FI_ADDR_UNSPEC, &a);
		cr_assert_eq(ret, 0, "%zd for message %lu", ret, i);
		e = fake_comp(&f, &a);
		cr_expect_eq(e.data, i);
		cr_expect_eq(e.len, len);
		cr_expect_arr_eq(buf, mem + i, len);
	}
	fake_quiet(&f);
	cr_expect_null(core->kept);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* They stay, some of them received at the very end. */
Test(rx_direct, close_with_arrivals_without_memory)
{
	open_direct();
	for (uint64_t i = 0; i < 2000; i++)
		fake_direct(core, true, 0, i, NULL, mem, i % 10 ? 10 : 5000);
	no_memory = true;
	fake_passes(&f, 300);
	no_memory = false;
	fake_close(&f);
}

/* The core is out of memory: it returns the entry, and the message is lost. */
Test(rx_direct, core_without_memory)
{
	open_direct();
	for (int tagged = 0; tagged < 2; tagged++) {
		core->keep_fails = 1;
		fake_direct(core, tagged, 0, 5, NULL, mem, 10);
		fake_direct(core, tagged, 0, 6, NULL, mem, 20);
		fake_quiet(&f);
		fake_quiet(&f);
		if (tagged)
			recv_any(buf, 100, &a);
		else
			cr_assert_eq(fi_recv(f.ep, buf, 100, NULL,
					     FI_ADDR_UNSPEC, &a), 0);
		cr_expect_eq(fake_comp(&f, &a).len, 20);
	}
	/* It had a receive, which was too short, and there is no memory for the
	 * rest. */
	recv_any(buf, 50, &a);
	core->keep_fails = 1;
	fake_direct(core, true, 0, 5, NULL, mem, 100);
	low_pass();
	fake_err(&f, &a, FI_ENOMEM);
	cr_expect_eq(f.lnx->stats.lost, 3);
	fake_quiet(&f);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

Test(rx_direct, truncated_without_memory)
{
	open_direct();
	memset(buf, 0xee, sizeof(buf));
	recv_any(buf, 99, &a);
	fake_direct(core, true, 0, 5, NULL, mem, 100);
	low_pass();
	fake_direct(core, true, 0, 5, NULL, mem, 10000);
	low_pass();
	truncated_end(100, 99);
	memset(buf, 0xee, sizeof(buf));
	no_memory = true;
	recv_any(buf, 1000, &a);
	no_memory = false;
	fake_after_ms(&f, 10);
	truncated_end(10000, 1000);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	fake_close(&f);
}

/* ---- every allocation fails ---- */

/*
 * One endpoint with a direct and a framed rail receives messages of every kind
 * while allocations fail.  The sender of frames retransmits what was not
 * received; the application repeats calls that return -FI_EAGAIN.  Nothing else
 * may differ: every message arrives once and whole, and every large one ends
 * with one FIN.
 */
#define NFRAME	16
#define NWANT	32

static struct {
	struct lnx_hdr h;
	const uint8_t *at;
	size_t len;
} frame[NFRAME];
static struct fake_core *net;
static unsigned nframe, nfin[NFRAME];

static struct {
	size_t len;			/* len of the message; room in the buffer */
	size_t room;
	bool done;
} want[NWANT];
static uint8_t into[NWANT][20000];
static size_t multi_used;
static unsigned nmulti;

static void sender_adds(uint8_t kind, uint64_t tag, size_t len)
{
	cr_assert_lt(nframe, NFRAME);
	frame[nframe].h = (struct lnx_hdr) {
		.kind = kind, .seq = nframe, .tag = tag, .len = len,
	};
	frame[nframe].at = kind == LNX_KIND_HELLO ? p.blob : mem + tag;
	frame[nframe++].len = kind == LNX_KIND_HELLO ? sizeof(p.blob) : len;
}

/* The other side reads it from mem + tag. */
static void sender_announces(bool tagged, uint64_t tag, size_t len)
{
	static uint8_t payload[NFRAME][256];
	struct lnx_rts rts = {
		.op = nframe, .nseg = 1, .nkey = 1, .seg_len[0] = len,
		.key[0][0].key = 100 + nframe, .key[0][0].addr = 4096,
	};
	unsigned i = nframe;

	fake_region(net, 100 + i, 4096, mem + tag, len);
	lnx_wire_rts_put(payload[i], &rts);
	sender_adds(tagged ? LNX_KIND_RTS_TAG : LNX_KIND_RTS_MSG, tag, len);
	frame[i].at = payload[i];
	frame[i].len = lnx_wire_rts_size(&rts);
}

static void sender_looks(void)
{
	struct fake_sent *s;

	while ((s = fake_take(net))) {
		if (lnx_wire_kind_sequenced(s->h.kind) && s->h.seq == p.got) {
			p.got++;
			if (s->h.kind == LNX_KIND_FIN) {
				cr_assert_lt(s->h.data, NFRAME);
				cr_expect_eq(s->h.len, 0, "a FIN with error");
				nfin[s->h.data]++;
			}
		}
		free(s);
	}
}

static uint32_t received(void)
{
	struct lnx_peer *peer = inside(&p);

	return peer ? view_rx_next(peer) : 0;
}

static void armed_pass(void)
{
	fail_armed = true;
	fake_pass(&f);
	fail_armed = false;
	sender_looks();
}

/* Run until the endpoint has received all that the sender has. */
static void sender_goes_on(void)
{
	for (int n = 0; received() < nframe || f.core[0]->in; n++) {
		cr_assert_lt(n, 2000, "frame %u does not get in", received());
		for (uint32_t i = received(); i < nframe; i++)
			fake_frame(&f, &p, frame[i].h, frame[i].at,
				   frame[i].len);
		armed_pass();
		armed_pass();
	}
}

static void direct_message(bool tagged, uint64_t tag, size_t len)
{
	fake_direct(f.core[0], tagged, 0, tag, NULL, mem + tag, len);
}

/* Post a receive for message i, with tag i. */
static void wants(unsigned i, size_t len, size_t room)
{
	ssize_t ret;

	want[i].len = len;
	want[i].room = room;
	for (int n = 0;; n++) {
		fail_armed = true;
		ret = fi_trecv(f.ep, into[i], room, NULL, FI_ADDR_UNSPEC, i, 0,
			       &want[i]);
		fail_armed = false;
		if (ret != -FI_EAGAIN)
			break;
		cr_assert_lt(n, 2000);
		armed_pass();
	}
	cr_assert_eq(ret, 0);
}

static void completed(const struct fi_cq_tagged_entry *e)
{
	unsigned i = (unsigned)((char *)e->op_context - (char *)want) /
		     sizeof(want[0]);

	if (e->op_context == &c) {
		/* The multi-receive: pieces of its buffer for messages 20 to 23. */
		cr_expect_eq((uint8_t *)e->buf - into[20] >= 0, true);
		cr_expect_arr_eq(e->buf, mem, 16, "in a multi-receive");
		multi_used += e->len;
		nmulti++;
		return;
	}
	cr_assert_lt(i, NWANT, "completion of nothing");
	cr_expect_not(want[i].done, "twice");
	cr_expect_eq(e->len, want[i].len, "message %u", i);
	cr_expect_arr_eq(into[i], mem + i, e->len, "message %u", i);
	want[i].done = true;
}

/* Read the CQ; for a peek or claim: 1 found, 0 not found, -1 no completion. */
static int look(void *special)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry ee = { 0 };
	ssize_t ret;
	int found = -1;

	for (;;) {
		fail_armed = true;
		ret = fi_cq_read(f.cq, &e, 1);
		fail_armed = false;
		sender_looks();
		if (ret == -FI_EAGAIN)
			return found;
		if (ret == 1) {
			if (special && e.op_context == special)
				found = 1;
			else
				completed(&e);
			continue;
		}
		cr_assert_eq(ret, -FI_EAVAIL);
		cr_assert_eq(fi_cq_readerr(f.cq, &ee, 0), 1);
		if (special && ee.op_context == special) {
			cr_expect_eq(ee.err, FI_ENOMSG);
			found = 0;
		} else {
			unsigned i = (unsigned)((char *)ee.op_context -
						(char *)want) / sizeof(want[0]);

			cr_assert_lt(i, NWANT);
			cr_assert_eq(ee.err, FI_ETRUNC, "message %u: %d", i,
				     ee.err);
			cr_expect_not(want[i].done, "twice");
			cr_expect_eq(ee.len, want[i].room);
			cr_expect_eq(ee.olen, want[i].len - want[i].room);
			cr_expect_arr_eq(into[i], mem + i, want[i].room);
			want[i].done = true;
		}
	}
}

/* Peek at message i with flags; it must be found. */
static void peeks(unsigned i, uint64_t flags, struct fi_context *ctx)
{
	struct fi_msg_tagged t = {
		.addr = FI_ADDR_UNSPEC, .tag = i, .context = ctx,
	};

	for (int n = 0;; n++) {
		ssize_t ret;

		cr_assert_lt(n, 2000, "message %u is not found", i);
		fail_armed = true;
		ret = fi_trecvmsg(f.ep, &t, FI_PEEK | flags);
		fail_armed = false;
		cr_assert_eq(ret, 0);
		ret = look(ctx);
		cr_assert_neq(ret, -1, "no answer to a peek");
		if (ret == 1 || i >= NWANT)
			return;
	}
}

static void claims(unsigned i, size_t len, uint64_t flags,
		   struct fi_context *ctx)
{
	struct iovec iov = { into[i], sizeof(into[i]) };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1,
		.addr = FI_ADDR_UNSPEC, .tag = i, .context = ctx,
	};
	ssize_t ret;

	fail_armed = true;
	ret = fi_trecvmsg(f.ep, &t, FI_CLAIM | flags);
	fail_armed = false;
	cr_assert_eq(ret, 0);
	for (int n = 0; look(ctx) != 1; n++) {
		cr_assert_lt(n, 2000, "message %u is not claimed", i);
		armed_pass();
	}
	if (!flags)
		cr_expect_arr_eq(into[i], mem + i, len);
}

static bool all_done(void)
{
	for (unsigned i = 0; i < NWANT; i++)
		if (want[i].len && !want[i].done)
			return false;
	for (unsigned i = 0; i < nframe; i++)
		if ((frame[i].h.kind == LNX_KIND_RTS_TAG ||
		     frame[i].h.kind == LNX_KIND_RTS_MSG) && !nfin[i])
			return false;
	return nmulti == 4;
}

/* Help to find the reason of a failure. */
static void say_what_misses(void)
{
	for (unsigned i = 0; i < NWANT; i++)
		if (want[i].len && !want[i].done)
			fprintf(stderr, "message %u is missing\n", i);
	for (unsigned i = 0; i < nframe; i++)
		fprintf(stderr, "frame %u kind %u: %u FINs\n", i,
			frame[i].h.kind, nfin[i]);
	fprintf(stderr, "%u of 4 messages in the multi-receive, refused [%lu, %lu) of %lu\n",
		nmulti, fail_from, fail_to, nalloc);
}

static void every_sort(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_DIRECT, kind } };
	struct iovec iov = { into[20], 4 * sizeof(into[0]) };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC, .context = &c };
	struct fi_context ctx[6] = { 0 };
	ssize_t ret;
	int n;

	memset(want, 0, sizeof(want));
	memset(nfin, 0, sizeof(nfin));
	nframe = nmulti = 0;
	multi_used = 0;
	fake_open(&f, &opt);
	core = net = f.core[1];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);

	/* Receives first. */
	wants(0, 100, 20000);
	wants(1, 20000, 20000);
	wants(2, 200, 20000);
	wants(3, 9000, 100);
	sender_adds(LNX_KIND_HELLO, 0, 0);
	sender_adds(LNX_KIND_TAG, 0, 100);
	sender_announces(true, 1, 20000);
	direct_message(true, 2, 200);
	direct_message(true, 3, 9000);
	peeks(99, 0, &ctx[0]);
	sender_goes_on();

	/* Messages first. */
	sender_adds(LNX_KIND_TAG, 4, 100);
	sender_adds(LNX_KIND_TAG, 5, 10000);
	sender_announces(true, 6, 20000);
	direct_message(true, 7, 300);
	direct_message(true, 8, 8000);
	direct_message(true, 9, 7000);
	sender_goes_on();
	wants(7, 300, 20000);
	wants(9, 7000, 200);
	wants(4, 100, 20000);
	fake_now_ns += 10 * LNX_NS_PER_MS;
	armed_pass();
	wants(8, 8000, 20000);
	wants(5, 10000, 20000);
	wants(6, 20000, 20000);

	/* Peeked at, claimed, discarded. */
	sender_adds(LNX_KIND_TAG, 10, 100);
	sender_adds(LNX_KIND_TAG, 11, 100);
	sender_announces(true, 12, 20000);
	sender_announces(true, 13, 20000);
	direct_message(true, 14, 5000);
	direct_message(true, 15, 5000);
	sender_goes_on();
	peeks(10, FI_CLAIM, &ctx[0]);
	peeks(11, FI_DISCARD, &ctx[1]);
	peeks(12, FI_CLAIM, &ctx[2]);
	peeks(13, FI_DISCARD, &ctx[3]);
	peeks(14, FI_CLAIM, &ctx[4]);
	peeks(15, FI_CLAIM, &ctx[5]);
	claims(14, 5000, 0, &ctx[4]);
	claims(15, 5000, FI_DISCARD | FI_COMPLETION, &ctx[5]);
	claims(12, 20000, 0, &ctx[2]);
	claims(10, 100, 0, &ctx[0]);

	/* Into one buffer, before and after it is posted. */
	sender_adds(LNX_KIND_MSG, 0, 100);
	direct_message(false, 0, 200);
	sender_goes_on();
	for (n = 0; n < 2000; n++) {
		fail_armed = true;
		ret = fi_recvmsg(f.ep, &m, FI_MULTI_RECV);
		fail_armed = false;
		if (ret != -FI_EAGAIN)
			break;
		armed_pass();
	}
	cr_assert_eq(ret, 0);
	sender_announces(false, 0, 20000);
	direct_message(false, 0, 5000);
	sender_goes_on();

	for (n = 0; !all_done(); n++) {
		if (n == 2000)
			say_what_misses();
		cr_assert_lt(n, 2000, "something does not come");
		look(NULL);
		fake_now_ns += LNX_NS_PER_MS;
		for (uint32_t i = received(); i < nframe; i++)
			fake_frame(&f, &p, frame[i].h, frame[i].at,
				   frame[i].len);
	}
	fail_from = fail_to = 0;
	cr_expect_eq(multi_used, 25300);
	cr_assert_eq(fi_cancel(&f.ep->fid, &c), 0);
	fake_err(&f, &c, FI_ECANCELED);
	fake_quiet(&f);
	for (unsigned i = 0; i < nframe; i++)
		cr_expect_leq(nfin[i], 1);
	cr_expect_eq(f.lnx->stats.lost, 0);
	cr_expect_eq(view_rxes(f.lnx), 0u);
	cr_expect_eq(view_chunks(f.lnx), 0);
	cr_expect_eq(view_rxbufs(f.lnx), (size_t)f.lnx->rail[1]->nposted);
	cr_expect_null(f.core[0]->kept);
}

static void each_fails(enum lnx_rail_kind kind, unsigned long many)
{
	fill(mem, sizeof(mem));
	for (unsigned long i = 0;; i++) {
		nalloc = 0;
		fail_from = i;
		fail_to = i + many;
		every_sort(kind);
		if (nalloc <= i) {
			cr_log_info("%lu allocations", i);
			cr_expect_gt(i, 20, "allocations are not counted");
			fake_close(&f);	/* checks for leaks */
			return;
		}
		fake_close_quick(&f);
	}
}

BOTH(each_allocation_fails_once) { each_fails(kind, 1); }
BOTH(some_allocations_fail_in_a_row) { each_fails(kind, 3); }
BOTH(no_memory_for_a_while) { each_fails(kind, 100); }
