/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of what peers and cores can do to us, on a scripted core: contexts in
 * errors that are not ours, unsolicited peers, out-of-order frames; and how
 * much idle rails may slow down the others.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comp/comp.h"
#include "fake_core.h"
#include "msg/rx.h"
#include "msg/tx.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static uint8_t buf[1 << 20], mem[1 << 20];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(limits_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(limits_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_met(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	fake_meet(&f, &p);
}

/* ---- errors of cores ---- */

static void core_error(void *context, uint64_t flags)
{
	struct fi_cq_err_entry err = {
		.op_context = context, .flags = flags, .err = FI_EIO,
		.prov_errno = FI_EIO,
	};

	lnx_lock(&f.lnx->lock);
	lnx_rail_core_error(f.lnx->rail[0], &err);
	lnx_unlock(&f.lnx->lock);
}

/* A free object of a pool: it was used once, or never. */
static void *some_free(struct lnx_pool *pool)
{
	void *obj = lnx_pool_get(pool);

	cr_assert(obj);
	lnx_pool_put(pool, obj);
	cr_assert(lnx_pool_owns(pool, obj) && !lnx_pool_lent(pool, obj));
	return obj;
}

/* Contexts that an error of a core may have although they are no operation. */
BOTH(unknown_errors_change_nothing)
{
	struct lnx_ep *ep;
	uint64_t len = 100000;
	unsigned i;

	open_met(kind);
	ep = f.lnx;
	/* So that some chunks were used and freed. */
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 0,
			      ~0ull, &a), 0);
	fake_rts(&f, &p, true, 1, 7, mem, &len, 1);
	fake_passes(&f, 10);
	cr_expect_eq(fake_comp(&f, &a).len, len);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	cr_assert_eq(view_chunks(ep), 0);

	for (i = 0; i < VIEW_FRAME_SIZES; i++)
		core_error(some_free(view_frame_pool(ep, i)), FI_SEND);
	core_error(some_free(view_chunk_pool(ep)), FI_READ);
	core_error(some_free(view_rxbuf_pool(ep)), FI_RECV);
	core_error((char *)some_free(view_chunk_pool(ep)) + 64, FI_READ);
	core_error(&b, FI_SEND);
	core_error(NULL, FI_RECV);
	cr_expect_eq(core->nposted, kind == LNX_RAIL_PLAIN ?
		     ep->rail[0]->want_posted : 0);
	cr_expect_eq(ep->rail[0]->busy, 0);
	fake_quiet(&f);
	/* Everything still works. */
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 0,
			      ~0ull, &b), 0);
	fake_tag(&f, &p, 5, mem, 10);
	cr_expect_eq(fake_comp(&f, &b).len, 10);
	fake_close(&f);
}

/* A connection that breaks has many errors: all in one pass. */
BOTH(many_errors_in_one_pass)
{
	open_met(kind);
	core->hold_sends = true;
	for (uint64_t i = 0; i < 10; i++)
		cr_assert_eq(fi_tsend(f.ep, mem, 4000, NULL, p.addr, i, &a), 0);
	for (uint64_t i = 0; i < 10; i++)
		fake_comp(&f, &a);
	core->hold_sends = false;
	while (fake_held(core))
		fake_finish(core, 0, FI_EIO);
	fake_pass(&f);
	cr_expect_geq(f.lnx->stats.core_errors, 10);
	fake_close(&f);
}

/* ---- unsolicited peers ---- */

static unsigned received(void)
{
	struct fi_cq_tagged_entry e;
	unsigned n = 0;

	fake_pass(&f);
	while (fi_cq_read(f.cq, &e, 1) == 1)
		n++;
	return n;
}

static void post(unsigned n)
{
	while (n--)
		cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL,
				      FI_ADDR_UNSPEC, 0, ~0ull, &a), 0);
}

/* So many were told that there is no room. */
static void expect_full(unsigned n)
{
	struct fake_sent *s;

	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_NO_SESSION) {
			cr_expect_eq(s->h.tag, LNX_REFUSED_FULL);
			n--;
		}
		free(s);
	}
	cr_expect_eq(n, 0u);
}

BOTH(unsolicited_peers_are_limited)
{
	static struct fake_peer s[5];

	fake_conf.unsolicited_peers = 3;
	open_met(kind);
	post(10);
	for (unsigned i = 0; i < 5; i++) {
		fake_peer_init(&f, &s[i], 0x3000 + i);
		fake_hello(&f, &s[i]);
		fake_tag(&f, &s[i], i, mem, 10);
	}
	cr_expect_eq(received(), 3);
	cr_expect_eq(view_unsolicited(f.lnx), 3);
	cr_expect_eq(view_peers(f.lnx), 4);
	cr_expect_eq(f.lnx->stats.unsolicited_drops, 2);
	fake_after_ms(&f, 3);
	expect_full(2);
	/* A peer in the address vector is not limited, ... */
	fake_tag(&f, &p, 1, mem, 10);
	cr_expect_eq(received(), 1);
	/* ... nor one that is inserted now; its frames are retransmitted. */
	fake_peer_insert(&f, &s[3]);
	s[3].seq = 0;
	fake_hello(&f, &s[3]);
	fake_tag(&f, &s[3], 3, mem, 10);
	cr_expect_eq(received(), 1);
	cr_expect_eq(view_unsolicited(f.lnx), 3);
	/* One unsolicited peer fewer makes room for another. */
	fake_peer_insert(&f, &s[0]);
	cr_expect_eq(view_unsolicited(f.lnx), 2);
	s[4].seq = 0;
	fake_hello(&f, &s[4]);
	fake_tag(&f, &s[4], 4, mem, 10);
	cr_expect_eq(received(), 1);
	cr_expect_eq(view_unsolicited(f.lnx), 3);
	cr_expect_eq(f.lnx->stats.unsolicited_drops, 2);
	fake_close(&f);
}

BOTH(no_unsolicited_peers)
{
	struct fake_peer s;

	fake_conf.unsolicited_peers = 0;
	open_met(kind);
	post(1);
	fake_peer_init(&f, &s, 0x3000);
	fake_hello(&f, &s);
	fake_tag(&f, &s, 0, mem, 10);
	cr_expect_eq(received(), 0);
	cr_expect_eq(view_peers(f.lnx), 1);
	cr_expect_eq(f.lnx->stats.unsolicited_drops, 1);
	fake_close(&f);
}

/* ---- out-of-order frames ---- */

static void tag_at(struct fake_peer *from, uint32_t seq)
{
	fake_frame(&f, from, (struct lnx_hdr) { .kind = LNX_KIND_TAG,
		   .seq = seq, .tag = seq, .len = 10 }, mem, 10);
}

/* Of a frame of up to LNX_FRAME_MAX bytes that waits. */
#define BUF_BYTES	(sizeof(struct lnx_rxbuf) + LNX_FRAME_MAX)

BOTH(ooo_frames_of_one_peer)
{
	const unsigned room = 15, n = 40;
	struct fi_cq_tagged_entry e;

	fake_conf.reorder_limit = 16 * (room * BUF_BYTES + 100);
	open_met(kind);
	post(n + 1);
	for (uint32_t i = 1; i <= n; i++)
		tag_at(&p, p.seq + i);
	fake_passes(&f, 4);
	cr_expect_eq(f.lnx->stats.reorders, room);
	cr_expect_eq(f.lnx->stats.ooo_drops, n - room);
	cr_expect_eq(f.lnx->stats.dup_drops, 0);
	cr_expect_eq(view_ooo_bytes(f.lnx), room * BUF_BYTES +
		     LNX_SEQ_OOO_BYTES);
	cr_expect_eq(received(), 0);
	/* A frame that fills the gap is always accepted. */
	tag_at(&p, p.seq);
	cr_expect_eq(received(), 1 + room);
	cr_expect_eq(view_ooo_bytes(f.lnx), LNX_SEQ_OOO_BYTES);
	/* Then the rest, which its sender retransmits. */
	for (uint32_t i = n; i > room; i--)
		tag_at(&p, p.seq + i);
	fake_passes(&f, 4);
	tag_at(&p, p.seq + room + 1);
	for (uint32_t i = room + 2; i <= n; i++)
		tag_at(&p, p.seq + i);
	for (uint32_t i = room + 1; i <= n; i++) {
		e = fake_comp(&f, &a);
		cr_expect_eq(e.tag, p.seq + i);
	}
	cr_expect_eq(view_ooo_bytes(f.lnx), LNX_SEQ_OOO_BYTES);
	fake_drop_all(&f, &p);
	fake_close(&f);
}

BOTH(ooo_frames_of_all)
{
	enum { PEERS = 40 };
	static struct fake_peer s[PEERS];
	const size_t limit = 1 << 20;

	fake_conf.reorder_limit = limit;
	open_met(kind);
	post(PEERS * 5);
	for (unsigned i = 0; i < PEERS; i++) {
		fake_peer_init(&f, &s[i], 0x3000 + i);
		fake_hello(&f, &s[i]);
		for (uint32_t k = 1; k < 5; k++)
			tag_at(&s[i], s[i].seq + k);
		fake_passes(&f, 2);
		cr_assert_leq(view_ooo_bytes(f.lnx), limit);
	}
	cr_expect_gt(view_ooo_bytes(f.lnx), limit / 2);
	cr_expect_gt(f.lnx->stats.reorders, 8);
	cr_expect_eq(f.lnx->stats.reorders + f.lnx->stats.ooo_drops,
		     4 * PEERS);
	/* No peer is locked out: with frames in order all of them advance. */
	for (unsigned i = 0; i < PEERS; i++)
		for (uint32_t k = 0; k < 5; k++)
			tag_at(&s[i], s[i].seq + k);
	fake_passes(&f, 100);
	cr_expect_eq(received(), PEERS * 5);
	cr_expect_eq(view_ooo_bytes(f.lnx) % LNX_SEQ_OOO_BYTES, 0,
		     "tables are left, no frames");
	fake_close(&f);
}

/* Closing an endpoint frees the frames that it still keeps. */
BOTH(ooo_frames_at_close)
{
	open_met(kind);
	for (uint32_t i = 1; i <= 20; i++)
		tag_at(&p, p.seq + i);
	fake_passes(&f, 4);
	cr_expect_eq(f.lnx->stats.reorders, 20);
	fake_close(&f);
}

/* ---- what an idle network costs shared memory ---- */

/* How often the network rail is polled in so many passes of pass_ns each, with
 * a message over shared memory in every message_every-th of them (0: none). */
static unsigned polls_of(uint64_t poll_idle, unsigned passes, uint64_t pass_ns,
			 unsigned message_every)
{
	struct fake_opt opt = {
		.nrail = 2, .kind = { LNX_RAIL_DIRECT, LNX_RAIL_PLAIN },
	};
	unsigned before, n, i;

	fake_conf.poll_idle = poll_idle;
	fake_open(&f, &opt);
	lnx_lock(&f.lnx->lock);
	/* Use up the poll credits from opening. */
	for (i = 0; i < fake_conf.poll_credits + 2; i++)
		lnx_ep_progress(f.lnx);
	before = f.core[1]->npolls;
	n = f.core[0]->npolls;
	for (i = 0; i < passes; i++) {
		fake_now_ns += pass_ns;
		if (message_every && !(i % message_every))
			f.lnx->stats.direct_sends++;
		lnx_ep_progress(f.lnx);
	}
	cr_expect_eq(f.core[0]->npolls - n, passes);
	n = f.core[1]->npolls - before;
	lnx_unlock(&f.lnx->lock);
	fake_close_quick(&f);
	return n;
}

Test(limits, idle_rails_are_polled_now_and_then)
{
	static const struct { uint64_t asked; unsigned every; } row[] = {
		{ 1, 1 }, { 2, 2 }, { 3, 4 }, { 5, 8 }, { 64, 64 }, { 65, 128 },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++)
		cr_expect_eq(polls_of(row[i].asked, 1024, 100, 0),
			     1024 / row[i].every, "%lu",
			     (unsigned long)row[i].asked);
}

/* While messages go over shared memory, idle rails are polled by time: but not
 * if every pass was requested, and only as long as there are such messages. */
Test(limits, busy_shared_memory_has_idle_rails_polled_less)
{
	unsigned n = polls_of(64, 100000, 100, 4);

	/* The test clock advances a little with each reading. */
	cr_expect(n >= 150 && n <= 250, "%u polls in 10 ms", n);
	cr_expect_eq(polls_of(64, 6400, 100, 0), 100);
	n = polls_of(64, 6400, 100, 128);
	cr_expect(n >= 8 && n <= 20, "%u: each message takes two looks", n);
	cr_expect_geq(polls_of(64, 6400, 100, 1600), 50, "so few that most of the time "
		      "there are none");
	cr_expect_eq(polls_of(64, 6400, 1000, 4), 100, "slow passes");
	cr_expect_eq(polls_of(1, 1000, 100, 1), 1000);
}

/* ---- sockets ---- */

#define MANY_NEW	100u

static uint64_t next_sweep(void)
{
	return view_own_due(f.lnx, LNX_DUE_SWEEP);
}

/* Anything may connect at any time, and end at once: no traffic tells. */
static void looked_at_in_each_second(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };
	uint64_t before = 0;
	unsigned i, looks = 0;

	fake_open(&f, &opt);
	for (i = 0; i < 10000; i++) {
		fake_now_ns += 10 * LNX_NS_PER_MS;
		fake_passes(&f, 256);
		looks += next_sweep() != before;
		before = next_sweep();
	}
	cr_expect(looks >= 95 && looks <= 120, "%u looks in 100 s", looks);
	fake_close_quick(&f);
}

Test(limits_plain, sockets_at_rest) { looked_at_in_each_second(LNX_RAIL_PLAIN); }
Test(limits_peer, sockets_at_rest) { looked_at_in_each_second(LNX_RAIL_PEER); }

/* What it costs is the processor's time: the thread may have lost its core in between. */
Test(limits, sockets_after_a_pause)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PEER } };
	uint64_t now;
	unsigned i;

	fake_open(&f, &opt);
	lnx_lock(&f.lnx->lock);
	for (i = 0; i < 20; i++) {
		now = fake_now_ns;
		fake_now_ns += LNX_NS_PER_S / 10;
		cr_expect_leq(lnx_ep_sweep(f.lnx, now), now + 2 * LNX_NS_PER_S);
	}
	lnx_unlock(&f.lnx->lock);
	fake_close_quick(&f);
}

/* All descriptors of the process are looked at: not for each of many peers that come at once. */
Test(limits, sockets_of_many_new_peers)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN } };
	static struct fake_peer s[MANY_NEW];
	unsigned i, looks = 0;

	fake_open(&f, &opt);
	fake_cost_ns = 20 * LNX_NS_PER_MS;
	for (i = 0; i < MANY_NEW; i++) {
		fake_peer_init(&f, &s[i], 0x3000 + i);
		fake_hello(&f, &s[i]);
		fake_passes(&f, 256);
		looks += !view_new_sockets(f.lnx);
	}
	cr_expect_leq(looks, 1u, "%u looks for %u peers", looks, MANY_NEW);
	for (i = 0; i < 1000 && view_new_sockets(f.lnx); i++) {
		fake_now_ns += 10 * LNX_NS_PER_MS;
		fake_passes(&f, 256);
	}
	cr_expect_not(view_new_sockets(f.lnx), "none looks at them");
	fake_close_quick(&f);
}

/* ---- many large messages ---- */

#define MANY_LARGE	300u
#define PIECES		8u

/* n large messages are under way, each of another peer or all of one. */
static void pull_many(enum lnx_rail_kind kind, struct fake_peer *s, unsigned n, bool of_one_peer)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };
	uint64_t len = sizeof(mem), before;
	unsigned i, from;

	fake_conf.chunk = sizeof(mem) / PIECES;
	fake_open(&f, &opt);
	core = f.core[0];
	core->hold_reads = true;
	for (i = 0; i < n; i++) {
		from = of_one_peer ? 0 : i;
		if (from == i) {
			fake_peer_init(&f, &s[i], 0x4000 + i);
			fake_peer_insert(&f, &s[i]);
			fake_hello(&f, &s[i]);
		}
		post(1);
		fake_rts(&f, &s[from], true, 1, 1 + i, mem, &len, 1);
		fake_passes(&f, 2);
	}
	fake_passes(&f, 4);
	cr_assert_eq(view_pulls(f.lnx), n);
	before = view_pull_runs(f.lnx);
	fake_passes(&f, 16);
	cr_expect_eq(view_pull_runs(f.lnx), before, "none has anything to do");
}

/* All of it comes. */
static void pull_rest(unsigned n)
{
	unsigned i;

	core->hold_reads = false;
	for (i = 0; i < 100 && view_pulls(f.lnx); i++) {
		fake_finish_all(core);
		fake_passes(&f, 4);
	}
	cr_expect_eq(view_pulls(f.lnx), 0u);
	cr_expect_eq(received(), n);
	fake_close_quick(&f);
}

/* A piece of one ends.  Returns how many of them were run for that. */
static unsigned runs_for_a_piece(enum lnx_rail_kind kind, unsigned n, bool of_one_peer)
{
	static struct fake_peer s[MANY_LARGE];
	uint64_t before;

	pull_many(kind, s, n, of_one_peer);
	before = view_pull_runs(f.lnx);
	fake_finish(core, 0, 0);
	fake_passes(&f, 4);
	before = view_pull_runs(f.lnx) - before;
	pull_rest(n);
	return (unsigned)before;
}

/* The others have nothing to do with that. */
BOTH(a_piece_costs_its_own_message_only)
{
	static const unsigned n[] = { 1, 30, MANY_LARGE };
	unsigned i, runs;

	for (i = 0; i < LNX_ARRAY_SIZE(n); i++) {
		runs = runs_for_a_piece(kind, n[i], false);
		cr_expect_eq(runs, 1u, "%u runs, of %u peers", runs, n[i]);
		runs = runs_for_a_piece(kind, n[i], true);
		cr_expect_eq(runs, 1u, "%u runs, of %u messages", runs, n[i]);
	}
}

BOTH(a_peer_that_goes_costs_its_own_messages_only)
{
	static struct fake_peer s[MANY_LARGE];
	struct fi_cq_err_entry e = { 0 };
	uint64_t before;
	unsigned runs;

	pull_many(kind, s, MANY_LARGE, false);
	before = view_pull_runs(f.lnx);
	fake_frame(&f, &s[7], (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = s[7].seq }, NULL, 0);
	fake_passes(&f, 16);
	runs = (unsigned)(view_pull_runs(f.lnx) - before);
	cr_expect(runs >= 1 && runs <= 4, "%u runs", runs);
	fake_finish_all(core);
	fake_passes(&f, 4);
	cr_expect_eq(fi_cq_readerr(f.cq, &e, 0), 1);
	pull_rest(MANY_LARGE - 1);
}

/* Those whose core is busy are tried in each pass, and only those. */
BOTH(only_refused_reads_are_tried_again)
{
	uint64_t len = sizeof(mem), before;
	struct fake_peer q;

	open_met(kind);
	fake_peer_init(&f, &q, 0x2222);
	fake_peer_insert(&f, &q);
	fake_hello(&f, &q);
	core->hold_reads = true;
	post(2);
	fake_rts(&f, &p, true, 1, 1, mem, &len, 1);
	fake_passes(&f, 4);
	core->read_again = FAKE_ALWAYS;
	fake_rts(&f, &q, true, 1, 2, mem, &len, 1);
	fake_passes(&f, 4);
	before = view_pull_runs(f.lnx);
	fake_passes(&f, 20);
	cr_expect_eq(view_pull_runs(f.lnx) - before, 20u);
	core->read_again = 0;
	pull_rest(2);
}
