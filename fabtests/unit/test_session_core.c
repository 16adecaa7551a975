/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer begins another session while a core reads and writes memory for the one before.
 * The application's buffers stay the core's until it lets go of them; then each operation
 * fails once, and what the core did after the end counts for no session.  On a scripted
 * core; the test is the peer.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fake_core.h"
#include "rma/rma.h"

#define KEY	5u
#define BYTES	60000u

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts: of what is not due to fail, */
static char due[3];			/* and of a read, a write and a receive that are */
static uint8_t buf[3][BYTES], mem[BYTES], far[BYTES];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(session_core_plain, name) { name(LNX_RAIL_PLAIN); }	\
	Test(session_core_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static void hello(uint64_t sid, uint64_t stamp)
{
	p.sid = sid;
	p.seq = p.got = 0;
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = stamp },
		  p.blob, sizeof(p.blob));
	fake_passes(&f, 4);
	cr_assert_eq(view_rx_sid(inside()), sid);
}

/* p has everything that left. */
static void ack_all(void)
{
	fake_drop_all(&f, &p);
	p.got = view_next(inside());
	fake_ack(&f, &p);
	fake_passes(&f, 2);
}

static uint64_t id_of(uint8_t kind)
{
	struct fake_sent *s = fake_take(core);
	uint64_t id;

	while (s && s->h.kind != kind) {
		free(s);
		s = fake_take(core);
	}
	cr_assert_not_null(s);
	id = s->h.data;
	free(s);
	return id;
}

/* p's registration KEY is all of mem. */
static void tell_keys(void)
{
	struct lnx_keys k = {
		.len = sizeof(mem), .nkey = 1,
		.access = LNX_WIRE_KEYS_READ | LNX_WIRE_KEYS_WRITE,
	};
	uint8_t payload[256];
	uint64_t id = id_of(LNX_KIND_KEYS);

	k.key[0].key = 77;
	k.key[0].addr = 0x10000;
	lnx_wire_keys_put(payload, &k);
	if (!core->nregion)
		fake_region_rw(core, 77, 0x10000, mem, sizeof(mem));
	fake_next(&f, &p, (struct lnx_hdr) {
		  .kind = LNX_KIND_RESP, .data = id, .len = lnx_wire_keys_size(1) },
		  payload, lnx_wire_keys_size(1));
	fake_passes(&f, 4);
}

static void rd(uint8_t *to, void *context)
{
	cr_assert_eq(fi_read(f.ep, to, BYTES, NULL, p.addr, 0, KEY, context), 0);
}

/* Both have met, and know KEY. */
static void open_met(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind }, .caps = FI_RMA };

	fake_conf.chunk = 16384;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	fake_peer_insert(&f, &p);
	hello(0x51, 100);
	rd(buf[0], &a);
	tell_keys();
	fake_passes(&f, 20);
	fake_comp(&f, &a);
	ack_all();
}

/* A read, a write and a large message, all of them in the core. */
static void begin_all(void)
{
	static const uint64_t seg[1] = { BYTES };

	core->hold_reads = true;
	rd(buf[0], &due[0]);
	cr_assert_eq(fi_write(f.ep, buf[1], BYTES, NULL, p.addr, 0, KEY, &due[1]), 0);
	cr_assert_eq(fi_trecv(f.ep, buf[2], BYTES, NULL, FI_ADDR_UNSPEC, 5, 0, &due[2]), 0);
	memset(far, 7, sizeof(far));
	fake_rts(&f, &p, true, 5, 99, far, seg, 1);
	fake_passes(&f, 10);
	core->hold_reads = false;
	cr_assert_geq(core->nwrite, 1u);
	cr_assert_geq(core->nread, 2u);
	cr_assert_geq(fake_held(core), 3u);
	ack_all();
}

/* The session of p works, in both directions, as if there had been none before. */
static void works(void)
{
	uint8_t got;

	cr_assert_eq(fi_trecv(f.ep, &got, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &a), 0);
	fake_tag(&f, &p, 1, "n", 1);
	fake_comp(&f, &a);
	cr_expect_eq(got, 'n');
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, &b), 0);
	fake_comp(&f, &b);
	ack_all();
	cr_expect(view_all_acked(inside()));
	cr_expect(lnx_peer_open(inside()));
}

/* Nothing of the peer that there is now is outstanding. */
static void untouched(void)
{
	const struct lnx_path *path = view_path(inside(), 0);

	cr_expect_eq(view_health(path), LNX_HEALTH_MAX);
	cr_expect_eq(view_segments(inside()), 0u);
	cr_expect_eq(view_core_reads(inside()), 0u);
	cr_expect_eq(view_pull_left(inside()), 0u);
	cr_expect_eq(view_nread(path), 0u);
	cr_expect_eq(view_read_bytes(path), 0u);
	cr_expect(view_no_reads(path));
}

/* Each of `due` has one error, and nothing else came. */
static void each_failed_once_with(int with)
{
	unsigned seen[3] = { 0 }, i;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(f.cq, &e, 1)) == -FI_EAVAIL) {
		cr_assert_eq(fi_cq_readerr(f.cq, &err, 0), 1);
		cr_expect_eq(err.err, with, "%s", fi_strerror(err.err));
		for (i = 0; i < 3 && err.op_context != &due[i]; i++)
			;
		cr_assert_lt(i, 3u);
		seen[i]++;
	}
	cr_expect_eq(ret, -FI_EAGAIN);
	for (i = 0; i < 3; i++)
		cr_expect_eq(seen[i], 1, "operation %u: %u errors", i, seen[i]);
}

static void each_failed_once(void)
{
	each_failed_once_with(FI_ECONNRESET);
}

/* The core ends what it has; i-th by that, or all by turns. */
static void core_ends(int err, bool by_turns)
{
	unsigned i;

	for (i = 0; fake_held(core); i++) {
		fake_finish(core, i % fake_held(core), by_turns && i % 2 ? 0 : err);
		if (i % 2)
			fake_pass(&f);
	}
	fake_passes(&f, 10);
}

static void next_session(enum lnx_rail_kind kind, int err, bool by_turns)
{
	unsigned nread, nwrite, held, i;
	uint64_t sid;

	open_met(kind);
	sid = view_sid(inside());
	begin_all();
	nread = core->nread;
	nwrite = core->nwrite;
	held = fake_held(core);
	hello(0x52, 200);
	cr_expect_neq(view_sid(inside()), sid);
	for (i = 0; i < 4; i++)
		fake_after_ms(&f, 300);
	cr_expect_eq(fake_held(core), held, "nothing more is given to the core");
	works();
	untouched();
	core_ends(err, by_turns);
	each_failed_once();
	cr_expect_eq(core->nread, nread);
	cr_expect_eq(core->nwrite, nwrite);
	cr_expect_eq(f.lnx->rail[0]->busy, 0u);
	cr_expect_eq(view_rma_ops(f.lnx), 0u);
	cr_expect_eq(view_rma_segments(f.lnx), 0u);
	cr_expect_eq(view_chunks(f.lnx), 0u);
	untouched();
	works();
	/* The same memory, in the session of now, once it has told its keys. */
	memset(buf[0], 0, BYTES);
	rd(buf[0], &a);
	tell_keys();
	fake_passes(&f, 20);
	fake_comp(&f, &a);
	cr_expect_arr_eq(buf[0], mem, BYTES);
	ack_all();
	for (i = 0; i < 40; i++)
		fake_after_ms(&f, 500);
	cr_expect_eq(view_peers(f.lnx), 1u);
	cr_expect(view_none_ended(f.lnx));
	fake_quiet(&f);
	fake_close(&f);
}

BOTH(the_core_had_done_it) { next_session(kind, 0, false); }
BOTH(the_core_fails) { next_session(kind, FI_EIO, false); }
BOTH(the_core_does_some_of_it) { next_session(kind, FI_EIO, true); }

/* The buffers are the application's again only when the core has let go of them. */
BOTH(not_before_the_core_lets_go)
{
	open_met(kind);
	begin_all();
	hello(0x52, 200);
	fake_passes(&f, 10);
	fake_quiet(&f);
	core_ends(FI_EIO, false);
	each_failed_once();
	fake_close(&f);
}

/* The peer is silent and given up; then its connection is cut, which the core reports in its
 * own words.  A short read is the core's own operation, a long one is not. */
static void give_up(void)
{
	lnx_lock(&f.lnx->lock);
	lnx_rel_peer_failed(inside(), FI_ETIMEDOUT);
	lnx_unlock(&f.lnx->lock);
	fake_passes(&f, 10);
	core_ends(FI_ECANCELED, false);
}

BOTH(given_up_with_long_operations)
{
	open_met(kind);
	begin_all();
	give_up();
	each_failed_once_with(FI_ETIMEDOUT);
	fake_close(&f);
}

BOTH(given_up_with_a_short_read)
{
	open_met(kind);
	core->hold_reads = true;
	cr_assert_eq(fi_read(f.ep, buf[0], 200, NULL, p.addr, 0, KEY, &due[0]), 0);
	core->hold_reads = false;
	cr_assert_eq(fake_held(core), 1u);
	give_up();
	fake_err(&f, &due[0], FI_ETIMEDOUT);
	fake_quiet(&f);
	fake_close(&f);
}

/* Two sessions later, what the core does is still of the first one. */
BOTH(two_sessions_later)
{
	open_met(kind);
	begin_all();
	hello(0x52, 200);
	works();
	hello(0x53, 300);
	works();
	untouched();
	core_ends(0, false);
	each_failed_once();
	untouched();
	works();
	fake_close(&f);
}
