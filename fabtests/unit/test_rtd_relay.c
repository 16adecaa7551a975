/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A gateway: what it forwards, and each reason for which it does not. */
#include "base/interval.h"
#include "rtd_world.h"
#include "seed.h"

TestSuite(rtd_relay, .init = world_begin, .fini = world_end);

/* ---- forwarding ---- */

Test(rtd_relay, forwards)
{
	struct frame f = frame(0x77, 2, 1);
	const struct end *b = end_at(2, 1);

	rx_frames(f, 0, 10);
	core_run();
	cr_assert_eq(got_of(b, 0x77), 10);
	for (unsigned i = 0; i < 10; i++) {
		const struct got *g = &w.log[i];

		cr_assert_eq(g->seq, i);
		cr_assert_eq(g->len, 136);
		cr_assert_eq(g->env.hops_left, 7);
		cr_assert_eq(g->env.hops_done, 1);
		cr_assert_eq(g->env.via, GW_ID);
		cr_assert_eq(g->env.len, 72);
		cr_assert_eq(memcmp(&g->env.rail, &f.env.rail, sizeof(f.env.rail)), 0);
		/* The frame itself is unchanged. */
		cr_assert_eq(g->bytes[128], i);
		cr_assert_eq(g->bytes[64], LNX_WIRE_MAGIC);
	}
	cr_assert_eq(dropped_all(), 0);
	cr_assert_eq(rtd_relay_counts(w.r)->frames_in, 10);
	cr_assert_eq(rtd_relay_counts(w.r)->frames_out, 10);
	cr_assert_eq(rtd_relay_counts(w.r)->bytes_out, 1360);
}

/* Each length lands in its pool; a large one is not copied. */
Test(rtd_relay, copies_short_ones)
{
	static const struct {
		uint32_t len;
		enum rtd_class class;
	} rows[] = {
		{ 128, RTD_TINY }, { 256, RTD_TINY }, { 257, RTD_SMALL },
		{ 4096, RTD_SMALL }, { 4097, RTD_LARGE }, { LNX_FRAME_LARGE, RTD_LARGE },
	};
	struct frame f = frame(1, 2, 1);

	end_at(2, 1)->does = STANDS;
	for (size_t i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		uint32_t before = rtd_pool_used(rtd_relay_pool(w.r), rows[i].class);

		f.env.len = rows[i].len - 64;
		rx_frame(&f);
		cr_expect_eq(rtd_pool_used(rtd_relay_pool(w.r), rows[i].class), before + 1,
			     "%u bytes", rows[i].len);
	}
	cr_assert_eq(rtd_relay_counts(w.r)->copied, 4);
	cr_assert_eq(rtd_relay_counts(w.r)->taken, 2);
	end_at(2, 1)->does = TAKES;
	core_run();
	cr_assert_eq(w.ngot, 6);
	cr_assert_eq(w.log[5].len, LNX_FRAME_LARGE);
}

/* ---- the reasons ---- */

static void expect_drop(const struct frame *f, enum rtd_reason reason, unsigned host,
			unsigned note, const char *why)
{
	const struct rtd_example *x = rtd_relay_example(w.r, reason);
	uint64_t before = dropped(reason), all = dropped_all();
	struct lnx_route_note n;
	unsigned ngot;

	later(100 * MS);
	ngot = w.ngot;
	rx_frame(f);
	core_run();
	cr_expect_eq(dropped(reason), before + 1, "%s", rtd_reason_name(reason));
	cr_expect_eq(dropped_all(), all + 1, "%s", rtd_reason_name(reason));
	cr_expect_eq(x->at_ns, w.now);
	cr_expect_eq(x->arrival, f->net - 1);
	cr_expect_eq(memcmp(&x->to, &f->env.rail, sizeof(x->to)), 0);
	cr_expect(!why || (x->why && strstr(x->why, why)), "%s: %s",
		  rtd_reason_name(reason), x->why ? x->why : "nothing");
	cr_expect_eq(w.ngot, ngot + (note != 0), "%s: %u notes", rtd_reason_name(reason),
		     w.ngot - ngot);
	cr_expect(!note || rtd_reason_note(reason) == note);
	if (!note || !note_to(host, &n))
		return;
	cr_expect_eq(n.reason, note, "%s: %s", rtd_reason_name(reason),
		     lnx_route_reason_name(n.reason));
	cr_expect_eq(n.id, GW_ID);
	cr_expect_eq(n.count, 1);
	cr_expect_eq(n.src, f->src);
	cr_expect_eq(n.seq, f->seq);
	cr_expect_eq(n.hops_done, f->env.hops_done);
	cr_expect_eq(memcmp(&n.rail, &f->env.rail, sizeof(n.rail)), 0);
}

Test(rtd_relay, reasons)
{
	struct frame good = frame(0x1005, 2, 1), f;
	struct rtd_settings s;
	uint8_t bytes[128] = { 0 };

	good.env.account = announce(5, NULL);
	good.seq = 3;
	cr_assert_neq(good.env.account, 0);

	f = good, f.env.hops_left = 0;
	expect_drop(&f, RTD_TTL, 5, LNX_NOTE_TTL, NULL);
	f = good, f.env.hops_done = 1, f.env.via = GW_ID;
	expect_drop(&f, RTD_LOOP, 5, LNX_NOTE_TTL, "last one");
	f = good, f.env.rail = at(4, 1, PORT);
	expect_drop(&f, RTD_NO_ROUTE, 5, LNX_NOTE_NO_ROUTE, NULL);
	f = good, f.env.rail = at(1, 9, PORT);
	expect_drop(&f, RTD_ARRIVAL_NET, 5, LNX_NOTE_UNKNOWN_DST, NULL);
	f = good, f.env.rail = at(2, 254, PORT);
	expect_drop(&f, RTD_OWN_ID, 5, LNX_NOTE_UNKNOWN_DST, NULL);
	f = good, f.env.rail = at(2, 1, 1023);
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "below 1024");
	f = good, f.env.rail = at(2, 1, 1024);
	rx_frame(&f);
	/* 127.0.0.1 and 169.254.0.1, whatever group they claim. */
	f = good;
	f.env.rail.raw[4] = 127;
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "loopback");
	f.env.rail.raw[4] = 169, f.env.rail.raw[5] = 254;
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "link-local");

	/* The key: no note, because its sender is not known. */
	f = good, f.env.key = 1;
	expect_drop(&f, RTD_NOT_ALLOWED, 5, 0, "route key");

	rtd_relay_rail_up(w.r, 1, false, w.now);
	later(2 * S);
	f = good;
	expect_drop(&f, RTD_UNREACHABLE, 5, LNX_NOTE_UNREACHABLE, "rail");
	rtd_relay_rail_up(w.r, 1, true, w.now);
	later(2 * S);

	/* Bytes that are no envelope, and one of another version. */
	rx(0, bytes, 1);
	rx(0, bytes, 128);
	bytes[0] = LNX_ROUTE_MAGIC;
	bytes[1] = LNX_ROUTE_VERSION;
	bytes[2] = LNX_ROUTE_FRAME;
	rx(0, bytes, 128);
	cr_assert_eq(dropped(RTD_BAD_ENVELOPE), 3);
	bytes[1]++;
	rx(0, bytes, 128);
	bytes[2] = LNX_ROUTE_NOTE;
	rx(0, bytes, 88);
	cr_assert_eq(dropped(RTD_VERSION), 2);

	/* Rules. */
	s = w.s;
	s.nrule = 1;
	s.rule[0] = (struct rtd_rule){ .deny = true };
	s.rule[0].from = (struct lnx_nid_part){ .net = "tcp", .prov = LNX_PROV_TCP,
						.number = lnx_expr_range(1, 1, 9) };
	s.rule[0].to = s.rule[0].from;
	s.rule[0].to.number = lnx_expr_range(3, 3, 9);
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	later(2 * S);
	f = good, f.env.rail = at(3, 1, PORT);
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "no rule");
	f.net = 2, f.env.account = 0;
	rx_frame(&f);
	core_run();
	cr_assert_eq(got_of(end_at(3, 1), 0), 1);
	s.id++;
	cr_assert_eq(rtd_relay_set(w.r, &s), -EINVAL);
}

/* A sender names the net and the address: the address must be in that net. */
Test(rtd_relay, led_out_of_its_nets)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = 1, .id = 0x1006, .nonce = 6,
				  .rails = { .n = 1 } };
	struct lnx_gw_ask ask = { .id = 0x1005, .nonce = 9 };
	struct lnx_addr_rail far = at(9, 1, PORT), mapped = { .prov = LNX_PROV_TCP, .group = 2 };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(PORT),
				    .sin6_addr.s6_addr = { 0x20, 1, [15] = 1 } };
	struct frame f = frame(0x1005, 2, 1);
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	unsigned opened;

	f.env.account = announce(5, NULL);
	opened = w.nopen;
	/* One that any kernel would find a way to, said to be in net 2. */
	far.group = 2;
	f.env.rail = far;
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "not in the net");
	/* Of net 3. */
	f.env.rail = at(3, 1, PORT);
	f.env.rail.group = 2;
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "not in the net");
	memcpy(mapped.raw, &in6, sizeof(in6));
	mapped.rawlen = sizeof(in6);
	f.env.rail = mapped;
	expect_drop(&f, RTD_NOT_ALLOWED, 5, LNX_NOTE_FORBIDDEN, "not in the net");
	/* Questions, and answers to a made-up address, go there neither. */
	ask.rail = far;
	cr_assert_eq(lnx_wire_gw_ask_put(buf, &ask), 64);
	rx(0, buf, 64);
	core_run();
	cr_expect_eq(w.asked.cookie, 0);
	far.group = 1;
	h.rails.rail[0] = far;
	w.ngot = 0;
	rx(0, buf, (size_t)lnx_wire_gw_hello_put(buf, sizeof(buf), &h));
	core_run();
	cr_expect_eq(w.ngot, 0);
	cr_expect_eq(w.nopen, opened);
	f.env.rail = at(2, 1, PORT);
	rx_frame(&f);
	core_run();
	cr_expect_eq(w.nopen, opened + 1);
}

/* Its host has more addresses than its rails have. */
Test(rtd_relay, other_addresses_of_its_host)
{
	struct frame f = frame(0x1005, 2, 1);

	f.env.account = announce(5, NULL);
	w.own = at(2, 9, 1);
	f.env.rail = at(2, 9, PORT);
	expect_drop(&f, RTD_OWN_ID, 5, LNX_NOTE_UNKNOWN_DST, NULL);
	w.own.prov = 0;
	later(2 * S);
	w.ngot = 0;
	rx_frame(&f);
	core_run();
	cr_assert_eq(w.ngot, 1);
}

Test(rtd_relay, too_big)
{
	struct rtd_rail rail = own_rail(4);
	struct frame f = frame(0x1005, 4, 1);

	rail.frame_max = LNX_FRAME_MAX;
	cr_assert_eq(rtd_relay_add_rail(w.r, &rail), 3);
	f.env.account = announce(5, NULL);
	f.env.len = LNX_FRAME_MAX - 64;
	rx_frame(&f);
	f.env.len++;
	expect_drop(&f, RTD_TOO_BIG, 5, LNX_NOTE_TOO_BIG, NULL);
	cr_assert_eq(got_of(end_at(4, 1), 0), 1);
}

Test(rtd_relay, names)
{
	for (unsigned i = 0; i < RTD_REASONS; i++)
		cr_assert(strlen(rtd_reason_name(i)) > 2);
	cr_assert_str_eq(rtd_reason_name(RTD_REASONS), "unknown");
	cr_assert_eq(rtd_reason_note(RTD_REASONS), 0);
}

/* ---- destinations that fail ---- */

Test(rtd_relay, refused)
{
	struct frame f = frame(0x1005, 2, 1);
	struct end *b = end_at(2, 1);
	struct lnx_route_note n;
	unsigned i;

	f.env.account = announce(5, NULL);
	b->does = REFUSES;
	rx_frames(f, 0, 20);
	core_run();
	cr_assert_eq(dropped(RTD_REFUSED), 20);
	cr_assert(note_to(5, &n));
	cr_assert_eq(n.reason, LNX_NOTE_REFUSED);
	cr_assert_eq(n.wait_ms, 1000);
	/* For a second nothing is tried; then it is, and the pause doubles. */
	b->calls = 0;
	for (i = 0; i < 9; i++) {
		w.now += 100 * MS;
		rx_frames(f, 0, 1);
		core_run();
	}
	cr_assert_eq(b->calls, 0);
	cr_assert_eq(dropped(RTD_REFUSED), 29);
	w.now += 100 * MS;
	rx_frames(f, 0, 1);
	core_run();
	cr_assert_eq(b->calls, 1);
	w.now += 1900 * MS;
	rx_frames(f, 0, 1);
	cr_assert_eq(b->calls, 1);
	/* Once it takes frames all is forgotten. */
	b->does = TAKES;
	w.now += 200 * MS;
	rx_frames(f, 0, 1);
	core_run();
	cr_assert_eq(got_of(b, 0), 1);
	b->does = REFUSES;
	rx_frames(f, 0, 1);
	core_run();
	b->does = TAKES;
	w.now += 1100 * MS;
	rx_frames(f, 0, 1);
	core_run();
	cr_assert_eq(got_of(b, 0), 2);
}

/* Its core says EAGAIN for ever: after connect_ns that is an answer, too, and until then
 * the core is not asked thousands of times. */
Test(rtd_relay, never_connected)
{
	struct frame f = frame(1, 2, 1);
	struct end *b = end_at(2, 1);
	unsigned i;

	b->does = SAYS_AGAIN;
	rx_frames(f, 0, 5);
	for (i = 0; i < 4900; i++)
		later(MS);
	cr_assert_eq(dropped_all(), 0);
	cr_assert_lt(b->calls, 120, "%u calls", b->calls);
	cr_assert_gt(b->calls, 20);
	for (i = 0; i < 300; i++)
		later(MS);
	cr_assert_eq(dropped(RTD_UNREACHABLE), 5);
	/* The same for one whose core takes frames and delivers none. */
	b = end_at(2, 2);
	b->does = STANDS;
	rx_frames(frame(1, 2, 2), 0, 60);
	later(0);
	later(4900 * MS);
	cr_assert_eq(dropped(RTD_UNREACHABLE), 5);
	later(200 * MS);
	rx_frames(frame(1, 2, 2), 60, 1);
	cr_assert_eq(b->nflying, 60);
	cr_assert_eq(dropped(RTD_UNREACHABLE), 5 + 1);
}

/* A table of two is full of an end on host 1, which has a frame, and of that on host 2: none is
 * left for the source on host 5, which is to be told what becomes of its frame. */
static void fill_table(struct frame *f, enum does does)
{
	struct rtd_settings s = w.s;

	f->env.account = announce(5, NULL);
	s.dests = 2;
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	later(0);
	end_at(2, 1)->does = does;
	rx_frame(f);
	later(0);
	cr_assert_eq(rtd_relay_ndests(w.r), 2);
	rx_frames(frame(0x77, 2, 2), 0, 1);
	later(0);
	cr_assert_eq(got_of(end_at(2, 2), 0x77), 1);
}

/* The note makes room in the table for its receiver: not by what has just failed, with which
 * there is more to do. */
Test(rtd_relay, stays_while_it_fails)
{
	static const enum does ways[] = { SAYS_AGAIN, REFUSES, BREAKS };
	unsigned i, k;

	for (k = 0; k < LNX_ARRAY_SIZE(ways); k++) {
		struct frame f = frame(0x1005, 2, 1);
		struct lnx_route_note n;

		world_end();
		world_begin();
		fill_table(&f, ways[k] == SAYS_AGAIN ? SAYS_AGAIN : STANDS);
		end_at(2, 1)->does = ways[k];
		for (i = 0; i < 52; i++)
			later(100 * MS);
		cr_assert_eq(dropped_all(), 1);
		cr_assert(note_to(5, &n), "%u", k);
		cr_assert_eq(n.reason, ways[k] == REFUSES ? LNX_NOTE_REFUSED :
			     LNX_NOTE_UNREACHABLE);
	}
}

/* The same where the core takes nothing at all. */
Test(rtd_relay, stays_while_its_core_fails)
{
	struct frame f = frame(0x1005, 2, 1);
	struct lnx_route_note n;

	fill_table(&f, SAYS_AGAIN);
	end_at(2, 1)->does = FAILS;
	later(100 * MS);
	cr_assert_eq(dropped(RTD_CORE_ERROR), 1);
	later(0);
	cr_assert(note_to(5, &n));
}

/* Frames wait for hosts 1 and 2 of net 2; what is used between these two is the way back to
 * their source, which a note of the first uses again. */
static void wait_around(struct frame *f)
{
	f->env.account = announce(5, NULL);
	end_at(2, 1)->does = end_at(2, 2)->does = SAYS_AGAIN;
	rx_frames(*f, 0, 3);
	announce(5, NULL);
	f->env.rail = at(2, 2, PORT);
	rx_frames(*f, 3, 4);
	later(0);
}

Test(rtd_relay, all_are_dropped_with_a_rail)
{
	struct frame f = frame(0x1005, 2, 1);

	wait_around(&f);
	cr_assert_eq(rtd_relay_held(w.r), 7);
	rtd_relay_rail_up(w.r, 1, false, w.now);
	cr_assert_eq(dropped(RTD_UNREACHABLE), 7);
	cr_assert_eq(rtd_relay_held(w.r), 0);
}

Test(rtd_relay, all_are_dropped_when_draining_ends)
{
	struct frame f = frame(0x1005, 2, 1);
	struct rtd_settings s = w.s;

	s.drain_ns = S;
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	/* It drains as long as something waits. */
	end_at(2, 1)->does = SAYS_AGAIN;
	rx_frames(frame(1, 2, 1), 0, 1);
	rtd_relay_stop(w.r, w.now);
	later(0);
	wait_around(&f);
	later(2 * S);
	cr_assert_eq(rtd_relay_state(w.r), RTD_OFF);
	cr_assert_eq(dropped(RTD_ROUTING_OFF), 8);
	cr_assert_eq(rtd_relay_held(w.r), 0);
}

/* One that has delivered once is waited for as long as it takes. */
Test(rtd_relay, computes)
{
	struct frame f = frame(1, 2, 1);
	struct end *b = end_at(2, 1);

	rx_frames(f, 0, 1);
	core_run();
	b->does = STANDS;
	rx_frames(f, 1, 30);
	for (unsigned i = 0; i < 600; i++)
		later(S);
	cr_assert_eq(dropped_all(), 0);
	b->does = TAKES;
	core_run();
	cr_assert_eq(got_of(b, 0), 31);
	/* The same with a core that takes nothing. */
	b->does = SAYS_AGAIN;
	rx_frames(f, 31, 30);
	for (unsigned i = 0; i < 60; i++)
		later(S);
	b->does = TAKES;
	later(100 * MS);
	cr_assert_eq(got_of(b, 0), 61);
	cr_assert_eq(dropped_all(), 0);
}

/* One that has worked, and whose core says EAGAIN from then on, is asked about: its kernel
 * knows whether it computes. */
Test(rtd_relay, asked_about)
{
	struct frame f = frame(1, 2, 1);
	struct end *b = end_at(2, 1);
	unsigned i;

	rx_frames(f, 0, 1);
	core_run();
	b->does = SAYS_AGAIN;
	rx_frames(f, 1, 10);
	for (i = 0; i < 4900; i++)
		later(MS);
	cr_assert_eq(w.asked.cookie, 0);
	for (i = 0; i < 200; i++)
		later(MS);
	cr_assert_neq(w.asked.cookie, 0);
	cr_assert_eq(memcmp(&w.asked.to, &b->addr, sizeof(b->addr)), 0);
	rtd_relay_told(w.r, w.asked.cookie, LNX_TELL_ALIVE, w.now);
	w.asked.cookie = 0;
	later(MS);
	cr_assert_eq(dropped_all(), 0);
	for (i = 0; i < 5200; i++)
		later(MS);
	cr_assert_neq(w.asked.cookie, 0);
	rtd_relay_told(w.r, w.asked.cookie, LNX_TELL_REFUSED, w.now);
	cr_assert_eq(dropped(RTD_REFUSED), 10);
	/* An answer that comes when it works again has no effect. */
	b->does = TAKES;
	later(2 * S);
	rx_frames(f, 11, 1);
	core_run();
	b->does = SAYS_AGAIN;
	rx_frames(f, 12, 1);
	w.asked.cookie = 0;
	for (i = 0; i < 5200; i++)
		later(MS);
	b->does = TAKES;
	later(100 * MS);
	cr_assert_neq(w.asked.cookie, 0);
	rtd_relay_told(w.r, w.asked.cookie, LNX_TELL_REFUSED, w.now);
	rx_frames(f, 13, 1);
	core_run();
	cr_assert_eq(got_of(b, 0), 4);
}

/* A connection that breaks loses what the core had; the next frame makes another one. */
Test(rtd_relay, broken)
{
	struct frame f = frame(1, 2, 1);
	struct end *b = end_at(2, 1);

	rx_frames(f, 0, 1);
	core_run();
	b->does = STANDS;
	rx_frames(f, 1, 10);
	core_run();
	cr_assert_eq(b->nflying, 10);
	b->does = BREAKS;
	core_step((unsigned)(b - w.end), 4);
	later(MS);
	b->does = TAKES;
	rx_frames(f, 11, 5);
	core_run();
	cr_assert_eq(dropped(RTD_BROKEN), 10);
	cr_assert_eq(got_of(b, 0), 6);
	/* But one that breaks again and again is no way. */
	b->does = BREAKS;
	rx_frames(f, 16, 1);
	core_run();
	rx_frames(f, 17, 1);
	core_run();
	rx_frames(f, 18, 1);
	core_run();
	cr_assert_eq(dropped(RTD_UNREACHABLE), 1);
	b->does = FAILS;
	w.now += 2 * S;
	rx_frames(f, 19, 2);
	core_run();
	cr_assert_eq(dropped(RTD_CORE_ERROR), 2);
}

/* ---- the table of destinations ---- */

Test(rtd_relay, table_full)
{
	struct rtd_settings s = w.s;
	struct frame f;
	unsigned i;

	s.dests = 4;
	rtd_relay_set(w.r, &s);
	for (i = 1; i <= 4; i++) {
		f = frame(1, 2, i);
		end_at(2, i)->does = i == 1 ? STANDS : TAKES;
		rx_frames(f, 0, 1);
		later(MS);
	}
	/* 1 has a frame: 2 goes for 5. */
	rx_frames(frame(1, 2, 5), 0, 1);
	core_run();
	cr_assert_eq(rtd_relay_ndests(w.r), 4);
	cr_assert(end_at(2, 1)->open);
	cr_assert(!end_at(2, 2)->open);
	cr_assert_eq(got_of(end_at(2, 5), 0), 1);
	/* All have frames. */
	for (i = 3; i <= 5; i++) {
		end_at(2, i)->does = STANDS;
		rx_frames(frame(1, 2, i), 1, 1);
	}
	rtd_relay_run(w.r, w.now);
	rx_frames(frame(1, 2, 6), 0, 1);
	cr_assert_eq(dropped(RTD_DEST_CAP), 1);
	/* Unused ones go by themselves. */
	for (i = 1; i <= 6; i++)
		end_at(2, i)->does = TAKES;
	core_run();
	later(59 * S);
	cr_assert_eq(rtd_relay_ndests(w.r), 4);
	later(2 * S);
	cr_assert_eq(rtd_relay_ndests(w.r), 0);
	cr_assert_eq(w.nopen, w.nclose);
}

/* A source may begin 100 destinations in a second; one with more delays only itself. */
Test(rtd_relay, connects_limited)
{
	struct frame f;
	unsigned i;

	w.by_default = TAKES;
	f = frame(1, 2, 0);
	f.env.account = announce(5, NULL);
	for (i = 0; i < 150; i++) {
		f.env.rail = at(2, 100 + i, PORT);
		rx_frame(&f);
		core_run();
	}
	/* One of its 100 was for the info. */
	cr_assert_eq(dropped(RTD_QUOTA), 51, "%lu", (unsigned long)dropped(RTD_QUOTA));
	cr_assert_eq(rtd_relay_counts(w.r)->connect_limited, 51);
	f = frame(2, 2, 1);
	f.env.account = announce(6, NULL);
	rx_frame(&f);
	core_run();
	cr_assert_eq(got_of(end_at(2, 1), 2), 1);
}

/* ---- notes ---- */

Test(rtd_relay, notes_are_few)
{
	struct frame f = frame(0x1005, 4, 1);
	struct lnx_route_note n;
	unsigned i, notes = 0, told = 0;

	f.env.account = announce(5, NULL);
	w.ngot = 0;
	for (i = 0; i < 20000; i++) {
		rx_frame(&f);
		if (i % 20 == 19)
			later(MS);
	}
	for (i = 0; i < w.ngot; i++) {
		cr_assert_eq(lnx_route_note_get(&n, w.log[i].bytes, w.log[i].len, NULL),
			     0);
		cr_assert_eq(n.reason, LNX_NOTE_NO_ROUTE);
		notes++;
		told += n.count;
	}
	/* A second: 100, and those that may come at once. */
	cr_assert(notes >= 90 && notes <= 120, "%u notes", notes);
	cr_assert(told > 19000 && told <= 20000, "%u told", told);
	cr_assert_eq(dropped(RTD_NO_ROUTE), 20000);
	cr_assert_eq(rtd_relay_counts(w.r)->notes_sent, notes);
	cr_assert_eq(rtd_relay_counts(w.r)->notes_held, 20000 - notes);
	/* After a pause the next one comes at once. */
	later(S);
	w.ngot = 0;
	rx_frame(&f);
	core_run();
	cr_assert_eq(w.ngot, 1);
}

/* ---- hello, info, ask ---- */

Test(rtd_relay, info)
{
	struct lnx_gw_info info;
	uint16_t account = announce(5, &info);

	cr_assert_neq(account, 0);
	cr_assert_eq(info.gw.id, GW_ID);
	cr_assert_eq(info.gw.flags, LNX_GW_F_ROUTING);
	cr_assert_eq(info.gw.rails.n, 3);
	cr_assert_eq(info.nnet, 3);
	cr_assert_eq(info.net[1].group, 2);
	cr_assert_eq(info.net[1].hops, 1);
	cr_assert_eq(info.frame_max, LNX_FRAME_LARGE);
	cr_assert(info.state[0].up && info.state[1].up && info.state[2].up);
	/* The same again, not another account. */
	cr_assert_eq(announce(5, &info), account);
	cr_assert_eq(rtd_relay_nsources(w.r), 1);
	/* A rail that goes down is told without a question. */
	w.ngot = 0;
	rtd_relay_rail_up(w.r, 2, false, w.now);
	core_run();
	cr_assert_eq(w.ngot, 1);
	cr_assert_eq(lnx_wire_gw_info_get(&info, w.log[0].bytes, w.log[0].len, NULL), 0);
	cr_assert(info.state[1].up && !info.state[2].up);
	/* Its receiver knows by that from where it comes. */
	cr_assert_eq(info.gw.nonce, 0x1005);
	/* A source that says nothing for long is forgotten. */
	later(61 * S);
	cr_assert_eq(rtd_relay_nsources(w.r), 0);
}

/* What a source is told of long frames: 0 by a version that does not know of those behind. */
static struct lnx_gw_info told(uint64_t id, uint8_t newest, uint8_t flags)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = newest, .id = id, .flags = flags,
				  .nonce = (uint32_t)id + newest,
				  .rails = { .n = 1, .rail = { at(1, 9, PORT) } } };
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	struct lnx_gw_info info;
	unsigned i;

	w.ngot = 0;
	rx(0, buf, (size_t)lnx_wire_gw_hello_put(buf, sizeof(buf), &h));
	core_run();
	for (i = 0; i < w.ngot && w.log[i].kind != LNX_ROUTE_GW_INFO; i++)
		;
	cr_assert_lt(i, w.ngot);
	cr_assert_eq(lnx_wire_gw_info_get(&info, w.log[i].bytes, w.log[i].len, NULL), 0);
	return info;
}

Test(rtd_relay, frame_max)
{
	struct rtd_settings s = w.s;
	struct lnx_gw_info info = told(0x1009, 2, 0);
	struct frame f = frame(0x1009, 2, 1);

	cr_expect_eq(info.frame_max, LNX_FRAME_LARGE);
	cr_expect_eq(info.behind, 0, "without gateways behind it");
	cr_expect_geq(info.gw.newest, 2);
	s.frame_max = 20000;
	w.ngot = 0;
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	later(2 * S);
	cr_assert_eq(w.ngot, 1, "sources are told");
	cr_assert_eq(lnx_wire_gw_info_get(&info, w.log[0].bytes, w.log[0].len, NULL), 0);
	cr_expect_eq(info.frame_max, 20000);
	/* One that is longer was made before that was said. */
	f.env.account = info.gw.account;
	f.env.len = 60000;
	w.ngot = 0;
	rx_frame(&f);
	core_run();
	cr_expect_eq(got_of(end_at(2, 1), 0x1009), 1);
}

Test(rtd_relay, asks)
{
	struct lnx_gw_ask a = { .id = 0x1005, .nonce = 9, .rail = at(2, 1, PORT) };
	uint8_t buf[64];

	lnx_wire_gw_ask_put(buf, &a);
	/* From a source that it does not know. */
	rx(0, buf, 64);
	cr_assert_eq(rtd_relay_counts(w.r)->bad_control, 1);
	announce(5, NULL);
	w.ngot = 0;
	rx(0, buf, 64);
	core_run();
	cr_assert_eq(w.ngot, 0);
	cr_assert_neq(w.asked.cookie, 0);
	cr_assert_eq(memcmp(&w.asked.to, &a.rail, sizeof(a.rail)), 0);
	rtd_relay_told(w.r, w.asked.cookie + 1, LNX_TELL_ALIVE, w.now);
	rtd_relay_told(w.r, w.asked.cookie, LNX_TELL_REFUSED, w.now);
	rtd_relay_told(w.r, w.asked.cookie, LNX_TELL_ALIVE, w.now);
	core_run();
	cr_assert_eq(w.ngot, 1);
	cr_assert_eq(lnx_wire_gw_ask_get(&a, w.log[0].bytes, w.log[0].len, NULL), 0);
	cr_assert_eq(a.tell, LNX_TELL_REFUSED);
	cr_assert_eq(a.nonce, 9);
	cr_assert_eq(a.id, GW_ID);
	/* What it knows itself. */
	rtd_relay_rail_up(w.r, 1, false, w.now);
	later(2 * S);
	w.ngot = 0;
	rx(0, buf, 64);
	core_run();
	cr_assert_eq(w.ngot, 1);
	cr_assert_eq(lnx_wire_gw_ask_get(&a, w.log[0].bytes, w.log[0].len, NULL), 0);
	cr_assert_eq(a.tell, LNX_TELL_RAIL_DOWN);
	a = (struct lnx_gw_ask){ .id = 0x1005, .nonce = 9, .rail = at(4, 1, PORT) };
	lnx_wire_gw_ask_put(buf, &a);
	rx(0, buf, 64);
	core_run();
	cr_assert_eq(lnx_wire_gw_ask_get(&a, w.log[w.ngot - 1].bytes, 64, NULL), 0);
	cr_assert_eq(a.tell, LNX_TELL_NO_ROUTE);
}

/* ---- over another gateway ---- */

static void add_routes(const char *text)
{
	struct lnx_refusal why;

	cr_assert_eq(lnx_routes_parse(&w.routes, &w.nets, text, NULL, &why), 0, "%s",
		     why.why);
}

/* The next gateway, host 200 of net 2, answers the hello that it got. */
static uint16_t answer_hello(bool routing)
{
	struct lnx_gw_info info = { .large = 5, .small = 5, .frame_max = 9000, .hops = 1 };
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	struct lnx_gw_hello h;
	unsigned i;
	int len;

	for (i = w.ngot; i-- && w.log[i].kind != LNX_ROUTE_GW_HELLO;)
		;
	cr_assert_lt(i, w.ngot, "no hello");
	cr_assert_eq(lnx_wire_gw_hello_get(&h, w.log[i].bytes, w.log[i].len, NULL), 0);
	cr_assert_eq(h.id, GW_ID);
	cr_assert(h.flags & LNX_GW_F_GATEWAY);
	info.gw = (struct lnx_gw_hello){ .flags = routing ? LNX_GW_F_ROUTING : 0,
					 .oldest = 1, .newest = 1, .account = 77,
					 .id = 0x200, .nonce = h.nonce };
	info.gw.rails.n = 1;
	info.gw.rails.rail[0] = at(2, 200, 7988);
	info.state[0].up = true;
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &info);
	cr_assert_gt(len, 0);
	rx(1, buf, (size_t)len);
	return 77;
}

Test(rtd_relay, two_hops)
{
	struct frame f = frame(0x1005, 4, 1);
	struct lnx_route_note n = { .reason = LNX_NOTE_REFUSED, .id = 0x200, .account = 77,
				    .count = 1,
				    .rail = f.env.rail, .wait_ms = 1000 };
	uint8_t buf[LNX_ROUTE_NOTE_LEN];
	unsigned i;

	add_routes("tcp4 via 10.2.0.200@tcp2");
	f.env.account = announce(5, NULL);
	w.ngot = 0;
	rx_frame(&f);
	core_run();
	/* The hello and the frame leave together. */
	cr_assert_eq(w.ngot, 2);
	for (i = 0; i < 2 && w.log[i].kind != LNX_ROUTE_FRAME; i++)
		;
	cr_assert_eq(memcmp(&w.end[w.log[i].end].addr, (struct lnx_addr_rail[1]){
			at(2, 200, 7988) }, sizeof(struct lnx_addr_rail)), 0);
	/* The destination in the envelope is still the end. */
	cr_assert_eq(memcmp(&w.log[i].env.rail, &f.env.rail, sizeof(f.env.rail)), 0);
	cr_assert_eq(w.log[i].env.account, 0);
	answer_hello(true);
	rx_frame(&f);
	core_run();
	cr_assert_eq(w.log[w.ngot - 1].env.account, 77);

	/* It came from there: a loop. */
	f.env.via = 0x200;
	f.env.hops_done = 1;
	expect_drop(&f, RTD_LOOP, 5, LNX_NOTE_TTL, "last one");
	f.env.via = f.env.hops_done = 0;

	/* A note of its about the end: frames to that end are refused here, others not. */
	n.rail = f.env.rail;
	lnx_route_note_put(buf, &n);
	rx(1, buf, sizeof(buf));
	expect_drop(&f, RTD_REFUSED, 5, LNX_NOTE_REFUSED, NULL);
	f.env.rail = at(4, 2, PORT);
	w.ngot = 0;
	rx_frame(&f);
	core_run();
	cr_assert_eq(w.ngot, 1);
	/* A note from an id that is no gateway of ours has no effect. */
	n.id = 0x201;
	n.rail = f.env.rail;
	lnx_route_note_put(buf, &n);
	rx(1, buf, sizeof(buf));
	w.ngot = 0;
	rx_frame(&f);
	core_run();
	cr_assert_eq(w.ngot, 1);
}

/* Other rules count for destinations that are in use, also behind another gateway, which itself
 * is never an end. */
Test(rtd_relay, rules_change)
{
	struct frame f[] = { frame(0x77, 2, 1), frame(0x77, 4, 1), frame(0x77, 2, 200) };
	struct rtd_settings s = w.s;
	unsigned i, k;

	f[2].env.rail = at(2, 200, 7988);
	s.rule[0] = (struct rtd_rule){ .deny = true };
	add_routes("tcp4 via 10.2.0.200@tcp2");
	rx_frame(&f[1]);
	core_run();
	for (i = 0; i < 4; i++) {
		if (i) {
			s.nrule = i % 2;
			cr_assert_eq(rtd_relay_set(w.r, &s), 0);
		}
		for (k = 0; k < 3; k++) {
			uint64_t before = dropped(RTD_NOT_ALLOWED);

			rx_frame(&f[k]);
			core_run();
			cr_expect_eq(dropped(RTD_NOT_ALLOWED) - before, k == 2 || i % 2,
				     "settings %u, frame %u", i, k);
		}
	}
}

/* What it asks the next gateway about the end, as an answer of that; false: it asks nothing. */
static bool passed_on(struct lnx_gw_ask *a)
{
	unsigned i;

	for (i = w.ngot; i-- && w.log[i].kind != LNX_ROUTE_GW_ASK;)
		;
	if (i >= w.ngot)
		return false;
	cr_assert_eq(lnx_wire_gw_ask_get(a, w.log[i].bytes, w.log[i].len, NULL), 0);
	cr_assert_eq(a->id, GW_ID);
	return true;
}

/* The record a comes over the rail to the next gateway. */
static void rx_ask(unsigned rail, const struct lnx_gw_ask *a)
{
	uint8_t buf[64];

	w.ngot = 0;
	cr_assert_eq(lnx_wire_gw_ask_put(buf, a), 64);
	rx(rail, buf, 64);
	core_run();
}

/* A host behind another gateway: that one is asked, and its answer passed back. */
Test(rtd_relay, asks_over_gateway)
{
	struct lnx_gw_ask a = { .id = 0x1005, .nonce = 9, .rail = at(4, 1, PORT) }, q, t;
	struct frame f = frame(0x1005, 4, 1);
	uint64_t bad;

	add_routes("tcp4 via 10.2.0.200@tcp2");
	f.env.account = announce(5, NULL);
	/* It does not know the next one yet. */
	rx_ask(0, &a);
	cr_assert_eq(w.log[0].kind, LNX_ROUTE_GW_TELL);
	cr_assert_eq(lnx_wire_gw_ask_get(&t, w.log[0].bytes, 64, NULL), 0);
	cr_assert_eq(t.tell, LNX_TELL_UNKNOWN);
	rx_frame(&f);
	core_run();
	answer_hello(true);
	rx_ask(0, &a);
	cr_assert_eq(w.asked.cookie, 0, "its own kernel cannot know");
	cr_assert(passed_on(&q));
	cr_assert(q.account == 77 && q.hops_done == 1 && q.nonce != 9 && !q.tell);
	cr_assert_eq(memcmp(&q.rail, &a.rail, sizeof(a.rail)), 0);
	/* Not from another one, and not to another question. */
	bad = rtd_relay_counts(w.r)->bad_control;
	q.tell = LNX_TELL_REFUSED;
	q.hops_done = 0;
	q.id = 0x201;
	rx_ask(1, &q);
	q.id = 0x200;
	q.nonce += 2;
	rx_ask(1, &q);
	cr_assert_eq(rtd_relay_counts(w.r)->bad_control, bad + 2);
	cr_assert_eq(w.ngot, 0);
	q.nonce -= 2;
	rx_ask(1, &q);
	cr_assert_eq(w.ngot, 1);
	cr_assert_eq(lnx_wire_gw_ask_get(&t, w.log[0].bytes, 64, NULL), 0);
	cr_assert(t.tell == LNX_TELL_REFUSED && t.nonce == 9 && t.id == GW_ID);
	/* Once. */
	rx_ask(1, &q);
	cr_assert_eq(w.ngot, 0);
	/* Not round and round. */
	a.hops_done = LNX_ROUTE_HOPS_MAX;
	rx_ask(0, &a);
	cr_assert_not(passed_on(&q));
	cr_assert_eq(lnx_wire_gw_ask_get(&t, w.log[0].bytes, 64, NULL), 0);
	cr_assert_eq(t.tell, LNX_TELL_UNKNOWN);
}

/* Questions that the next gateway does not answer keep nothing for ever. */
Test(rtd_relay, asks_over_a_silent_gateway)
{
	struct lnx_gw_ask a = { .id = 0x1005, .nonce = 9, .rail = at(4, 1, PORT) }, q;
	struct frame f = frame(0x1005, 4, 1);
	unsigned i, n = 0;

	add_routes("tcp4 via 10.2.0.200@tcp2");
	f.env.account = announce(5, NULL);
	rx_frame(&f);
	core_run();
	answer_hello(true);
	for (i = 0; i < 3 * RTD_ASKS; i++) {
		w.now += 10 * MS;
		rx_ask(0, &a);
		n += passed_on(&q);
	}
	cr_assert_gt(n, RTD_ASKS);
	w.now += 10 * S;
	rx_ask(0, &a);
	cr_assert(passed_on(&q));
}

/* Of two equal gateways the one that dies is passed over. */
Test(rtd_relay, other_gateway)
{
	struct frame f = frame(1, 4, 1);
	struct lnx_addr_rail g[2] = { at(2, 200, 7988), at(3, 200, 7988) };
	unsigned i, k, used[2] = { 0 };

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	for (k = 1; k <= 40; k++) {
		f.env.rail = at(4, k, PORT);
		rx_frame(&f);
	}
	core_run();
	for (i = 0; i < w.ngot; i++)
		for (k = 0; k < 2; k++)
			used[k] += w.log[i].kind == LNX_ROUTE_FRAME &&
				   !memcmp(&w.end[w.log[i].end].addr, &g[k],
					   sizeof(g[k]));
	cr_assert_eq(used[0] + used[1], 40);
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
	for (i = 0; i < w.nend; i++)
		if (!memcmp(&w.end[i].addr, &g[0], sizeof(g[0])))
			w.end[i].does = REFUSES;
	for (k = 1; k <= 40; k++) {
		f.env.rail = at(4, k, PORT);
		rx_frame(&f);
	}
	core_run();
	w.ngot = 0;
	for (k = 1; k <= 40; k++) {
		f.env.rail = at(4, k, PORT);
		rx_frame(&f);
	}
	core_run();
	for (i = used[1] = 0; i < w.ngot; i++)
		used[1] += w.log[i].kind == LNX_ROUTE_FRAME &&
			   !memcmp(&w.end[w.log[i].end].addr, &g[1], sizeof(g[1]));
	cr_assert_eq(used[1], 40);
}

static struct end *gateway_end(unsigned net)
{
	struct lnx_addr_rail g = at(net, 200, 7988);
	unsigned i;

	for (i = 0; i < w.nend && memcmp(&w.end[i].addr, &g, sizeof(g)); i++)
		;
	cr_assert_lt(i, w.nend);
	return &w.end[i];
}

/* What the gateway of each net said last, and the nonce of the last hello that it has answered. */
static struct {
	uint32_t nonce;
	uint8_t flags;
	bool said, down;
} gateway_of_net[4];

/* The gateways of these nets, which are bits, answer hellos. */
static unsigned answering;

/* The gateway of that net says how it is: in an answer, or with nonce 0 unasked. */
static void inform(unsigned net, uint32_t nonce, uint8_t flags, bool up)
{
	struct lnx_gw_info info = { .large = 5, .small = 5, .frame_max = 9000, .hops = 1 };
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];

	nonce = nonce ? nonce : gateway_of_net[net].nonce;
	gateway_of_net[net].nonce = nonce;
	gateway_of_net[net].flags = flags;
	gateway_of_net[net].down = !up;
	gateway_of_net[net].said = true;
	info.gw = (struct lnx_gw_hello){ .flags = flags, .oldest = 1, .newest = 1,
					 .account = 77, .id = 0x200 + net, .nonce = nonce };
	info.gw.rails.n = 2;
	info.gw.rails.rail[0] = at(net, 200, 7988);
	info.gw.rails.rail[1] = at(4, 200, 7988);
	info.gw.rails.place[1] = 1;
	info.state[0].up = true;
	info.state[1].up = up;
	rx(net - 1, buf, (size_t)lnx_wire_gw_info_put(buf, sizeof(buf), &info));
}

/* Of the last hello to the gateway of that net. */
static uint32_t nonce_of(unsigned net)
{
	struct lnx_gw_hello h;
	unsigned i;

	for (i = w.ngot; i--;)
		if (w.log[i].kind == LNX_ROUTE_GW_HELLO && &w.end[w.log[i].end] == gateway_end(net))
			break;
	cr_assert_lt(i, w.ngot, "no hello");
	cr_assert_eq(lnx_wire_gw_hello_get(&h, w.log[i].bytes, w.log[i].len, NULL), 0);
	return h.nonce;
}

/* Those that answer do so, as they said last. */
static void answer_hellos(void)
{
	struct lnx_gw_hello h;
	unsigned i, net;

	for (i = 0; i < w.ngot; i++)
		for (net = 2; w.log[i].kind == LNX_ROUTE_GW_HELLO && net <= 3; net++) {
			if (!(answering >> net & 1) ||
			    &w.end[w.log[i].end] != gateway_end(net))
				continue;
			cr_assert_eq(lnx_wire_gw_hello_get(&h, w.log[i].bytes, w.log[i].len,
							   NULL), 0);
			inform(net, h.nonce, gateway_of_net[net].said ?
			       gateway_of_net[net].flags : LNX_GW_F_ROUTING,
			       !gateway_of_net[net].down);
		}
}

/* The gateway of that net says which frames it takes, and those behind it. */
static void inform_long(unsigned net, uint8_t newest, uint32_t frame_max, uint32_t behind)
{
	struct lnx_gw_info info = { .large = 5, .small = 5, .frame_max = frame_max, .hops = 1,
				    .behind = behind };
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	int len;

	info.gw = (struct lnx_gw_hello){ .flags = LNX_GW_F_ROUTING, .oldest = 1,
					 .newest = newest, .account = 77, .id = 0x200 + net,
					 .nonce = gateway_of_net[net].nonce };
	info.gw.rails.n = 1;
	info.gw.rails.rail[0] = at(net, 200, 7988);
	info.state[0].up = true;
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &info);
	cr_assert_gt(len, 0);
	rx(net - 1, buf, (size_t)len);
}

/* Sources hear how long frames may be that go on over other gateways: as long as all of these
 * take that have told.  One of an older version hears nothing. */
static void frames_behind(const char *routes, bool leads_on)
{
	struct frame f = frame(0x1005, 4, 1);
	uint32_t middle = LNX_ROUTE_HEAD + 100 * LNX_GW_BEHIND_UNIT;
	uint32_t least = LNX_ROUTE_HEAD + LNX_FRAME_MAX;

	add_routes(routes);
	rx_frame(&f);
	core_run();
	gateway_of_net[2].nonce = nonce_of(2);
	gateway_of_net[3].nonce = nonce_of(2);
	cr_expect_eq(told(0x1009, 2, 0).behind, 0);
	inform_long(2, 1, LNX_FRAME_LARGE, 0);
	cr_expect_eq(told(0x1009, 2, 0).behind, least, "an old one");
	inform_long(2, 2, LNX_FRAME_LARGE, 0);
	cr_expect_eq(told(0x1009, 2, 0).behind, LNX_FRAME_LARGE);
	cr_expect_eq(told(0x1008, 1, 0).behind, 0, "to an old source");
	inform_long(2, 2, middle, 0);
	cr_expect_eq(told(0x1009, 2, 0).behind, middle);
	cr_expect_eq(told(0x202, 2, LNX_GW_F_GATEWAY).behind, 0, "to itself");
	inform_long(2, 2, 9000, LNX_FRAME_LARGE);
	cr_expect_eq(told(0x1009, 2, 0).behind, least);
	inform_long(2, 2, LNX_FRAME_LARGE, middle);
	cr_expect_eq(told(0x1009, 2, 0).behind, leads_on ? middle : LNX_FRAME_LARGE);
	/* That something has changed is told unasked. */
	w.ngot = 0;
	inform_long(2, 2, least, 0);
	later(2 * S);
	cr_expect_gt(w.ngot, 0);
}

Test(rtd_relay, frames_behind)
{
	frames_behind("tcp4 hop=3 via 10.2.0.200@tcp2", true);
}

/* The net is one of that gateway. */
Test(rtd_relay, frames_behind_one_hop)
{
	frames_behind("tcp4 hop=1 via 10.2.0.200@tcp2", false);
}

/* With a rail that takes no frame of an end it is heard as well, and the end says why it does not
 * use it. */
Test(rtd_relay, frames_behind_short_rail)
{
	struct frame f = frame(0x1005, 4, 1);
	struct rtd_rail rail = own_rail(4);

	add_routes("tcp4 hop=1 via 10.2.0.200@tcp2");
	rx_frame(&f);
	core_run();
	gateway_of_net[2].nonce = nonce_of(2);
	inform_long(2, 2, LNX_FRAME_LARGE, 0);
	cr_expect_eq(told(0x1009, 2, 0).behind, LNX_FRAME_LARGE);
	rail.frame_max = LNX_FRAME_MAX;
	cr_assert_eq(rtd_relay_add_rail(w.r, &rail), 3);
	cr_expect_eq(told(0x1009, 2, 0).frame_max, LNX_FRAME_MAX);
	cr_expect_eq(told(0x1009, 2, 0).behind, 0);
}

#define MANY	40u

/* A frame to each of many ends behind gateways, of which the first is host 200 of net 2, and the
 * second that of net 3: how many left over which? */
static void send_many(unsigned used[2])
{
	struct lnx_addr_rail g[2] = { at(2, 200, 7988), at(3, 200, 7988) };
	struct frame f = frame(1, 4, 1);
	unsigned i, k;

	w.ngot = used[0] = used[1] = 0;
	for (k = 1; k <= MANY; k++) {
		f.env.rail = at(4, k, PORT);
		rx_frame(&f);
	}
	core_run();
	for (i = 0; i < w.ngot; i++)
		for (k = 0; k < 2; k++)
			used[k] += w.log[i].kind == LNX_ROUTE_FRAME &&
				   !memcmp(&w.end[w.log[i].end].addr, &g[k], sizeof(g[k]));
	answer_hellos();
}

/* So much time passes; from now on the gateways of these nets, which are bits, answer hellos. */
static void pass_answered(uint64_t ns, unsigned nets)
{
	uint64_t end = w.now + ns;

	answering = nets;
	while (w.now < end) {
		w.ngot = 0;
		later(20 * MS);
		answer_hellos();
	}
}

/* One of two gateways takes nothing any more: what waits for it is dropped, so that it comes
 * again over the other. */
Test(rtd_relay, gateway_that_blocks)
{
	unsigned used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	send_many(used);
	cr_assert(used[0] > 5 && used[0] + used[1] == MANY, "%u and %u", used[0], used[1]);
	pass_answered(MS, 1u << 2 | 1u << 3);
	gateway_end(2)->does = SAYS_AGAIN;
	send_many(used);
	cr_assert(!used[0] && used[1] > 5 && used[1] < MANY);
	cr_assert_eq(dropped_all(), 0);
	pass_answered(500 * MS, 1u << 3);
	cr_assert_eq(dropped(RTD_UNREACHABLE), MANY - used[1]);
	send_many(used);
	cr_assert_eq(used[1], MANY);
}

/* Over which net a frame to that end leaves; 0: none. */
static unsigned leaves_by(struct frame *f, unsigned host)
{
	unsigned i;

	f->env.rail = at(4, host, PORT);
	w.ngot = 0;
	rx_frame(f);
	core_run();
	answer_hellos();
	for (i = 0; i < w.ngot; i++)
		if (w.log[i].kind == LNX_ROUTE_FRAME)
			return &w.end[w.log[i].end] == gateway_end(2) ? 2 : 3;
	return 0;
}

/* The gateway in that net says so of that end. */
static void noted(unsigned net, unsigned host, unsigned reason)
{
	struct lnx_route_note n = { .reason = (uint8_t)reason, .id = 0x200 + net,
				    .account = 77, .count = 1,
				    .rail = at(4, host, PORT) };
	uint8_t buf[LNX_ROUTE_NOTE_LEN];

	lnx_route_note_put(buf, &n);
	rx(net - 1, buf, sizeof(buf));
}

/* One of two gateways has no way to an end: the other one is asked, and the end fails only when
 * that has none either. */
Test(rtd_relay, gateway_without_a_way)
{
	static const struct {
		unsigned note;
		enum rtd_reason reason;
	} says[] = { { LNX_NOTE_NO_ROUTE, RTD_NO_ROUTE }, { LNX_NOTE_UNREACHABLE, RTD_UNREACHABLE } };
	struct frame f = frame(0x1005, 4, 1);
	unsigned used[2], i, host, other;

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	f.env.account = announce(5, NULL);
	send_many(used);
	pass_answered(2 * S, 1u << 2 | 1u << 3);
	for (i = 0, host = 1; i < 2; i++, host++) {
		while (leaves_by(&f, host) != 2)
			host++;
		for (other = host + 1; leaves_by(&f, other) != 2;)
			other++;
		noted(2, host, says[i].note);
		cr_assert_eq(leaves_by(&f, host), 3, "%s", rtd_reason_name(says[i].reason));
		cr_assert_eq(leaves_by(&f, other), 2, "an end that nothing was said of");
		cr_assert_eq(dropped_all(), i);
		/* It stays there. */
		pass_answered(2 * S, 1u << 2 | 1u << 3);
		cr_assert_eq(leaves_by(&f, host), 3);
		noted(3, host, says[i].note);
		expect_drop(&f, says[i].reason, 5, says[i].note, NULL);
		pass_answered(2 * S, 1u << 2 | 1u << 3);
		/* All are tried again. */
		cr_assert_neq(leaves_by(&f, host), 0);
	}
	/* What was said long ago does not count. */
	while (leaves_by(&f, host) != 2)
		host++;
	noted(2, host, LNX_NOTE_NO_ROUTE);
	cr_assert_eq(leaves_by(&f, host), 3);
	pass_answered(RTD_NO_WAY_NS, 1u << 2 | 1u << 3);
	noted(3, host, LNX_NOTE_NO_ROUTE);
	cr_assert_eq(leaves_by(&f, host), 2);
}

/* The last question to the gateway of that net, as an answer of it; false: there is none. */
static bool asked_of(unsigned net, struct lnx_gw_ask *a)
{
	unsigned i;

	for (i = w.ngot; i--;) {
		if (w.log[i].kind != LNX_ROUTE_GW_ASK ||
		    &w.end[w.log[i].end] != gateway_end(net))
			continue;
		cr_assert_eq(lnx_wire_gw_ask_get(a, w.log[i].bytes, w.log[i].len, NULL), 0);
		a->id = 0x200 + net;
		a->hops_done = 0;
		return true;
	}
	return false;
}

/* What the source is told in answer to its question; 0: nothing. */
static unsigned told_source(void)
{
	struct lnx_gw_ask t;
	unsigned i;

	for (i = 0; i < w.ngot; i++) {
		if (w.log[i].kind != LNX_ROUTE_GW_TELL)
			continue;
		cr_assert_eq(lnx_wire_gw_ask_get(&t, w.log[i].bytes, w.log[i].len, NULL), 0);
		cr_assert(t.nonce == 9 && t.id == GW_ID);
		return t.tell;
	}
	return 0;
}

/* The same, within that time, in which both gateways answer hellos. */
static bool asked_within(unsigned net, uint64_t ns, struct lnx_gw_ask *a)
{
	uint64_t end = w.now + ns;

	answering = 1u << 2 | 1u << 3;
	while (w.now < end) {
		w.ngot = 0;
		later(20 * MS);
		if (asked_of(net, a))
			return true;
		answer_hellos();
	}
	return false;
}

/* One of two gateways does not reach a host any more, and answers itself: only the ends find out.
 * What it tells when it is asked, or that it does not tell it soon, moves frames to the other one,
 * whose answer the source has. */
Test(rtd_relay, gateway_that_is_cut_off)
{
	static const unsigned says[] = {
		LNX_TELL_SILENT, LNX_TELL_UNREACHABLE, LNX_TELL_RAIL_DOWN, LNX_TELL_UNKNOWN, 0,
	};
	struct lnx_gw_ask a = { .id = 0x1005, .nonce = 9 }, q, other;
	struct frame f = frame(0x1005, 4, 1);
	unsigned i, host = 1, used[2];
	uint64_t bad;

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	f.env.account = a.account = announce(5, NULL);
	send_many(used);
	pass_answered(2 * S, 1u << 2 | 1u << 3);
	for (i = 0; i < LNX_ARRAY_SIZE(says); i++, host++) {
		while (leaves_by(&f, host) != 2)
			host++;
		a.rail = at(4, host, PORT);
		rx_ask(0, &a);
		cr_assert(asked_of(2, &q));
		cr_assert_not(asked_of(3, &other));
		if (says[i]) {
			q.tell = (uint8_t)says[i];
			rx_ask(1, &q);
		} else {
			later(RTD_ANSWER_NS - MS);
			cr_assert_not(asked_of(3, &other), "too soon");
			w.ngot = 0;
			later(2 * MS);
		}
		cr_assert(asked_of(3, &other), "row %u", i);
		cr_assert_eq(told_source(), 0, "before any has answered that may reach it");
		other.tell = LNX_TELL_ALIVE;
		rx_ask(2, &other);
		cr_assert_eq(told_source(), LNX_TELL_ALIVE);
		cr_assert_eq(leaves_by(&f, host), 3);
		/* What comes after the answer. */
		bad = rtd_relay_counts(w.r)->bad_control;
		q.tell = LNX_TELL_SILENT;
		rx_ask(1, &q);
		cr_assert_eq(told_source(), 0);
		cr_assert_eq(rtd_relay_counts(w.r)->bad_control, bad + 1);
		pass_answered(RTD_LATE_NS / 2, 1u << 2 | 1u << 3);
		/* The other one was slow only, and this one is cut off now. */
		rx_ask(0, &a);
		cr_assert(asked_of(3, &other));
		cr_assert_not(asked_of(2, &q));
		cr_assert(asked_within(2, 2 * RTD_ANSWER_NS, &q), "row %u", i);
		/* None reaches it: it goes once to and fro for a question. */
		q.tell = LNX_TELL_SILENT;
		rx_ask(1, &q);
		cr_assert_eq(told_source(), 0, "the first one may answer yet");
		other.tell = LNX_TELL_SILENT;
		rx_ask(2, &other);
		cr_assert_eq(told_source(), LNX_TELL_SILENT);
		cr_assert_eq(leaves_by(&f, host), 2);
		/* The other one is asked again, later each time, until it says that it reaches it. */
		cr_assert_not(asked_within(3, RTD_LATE_NS - 100 * MS, &other));
		cr_assert_eq(leaves_by(&f, host), 2);
		pass_answered(120 * MS, 1u << 2 | 1u << 3);
		w.ngot = 0;
		cr_assert_eq(leaves_by(&f, host), 2);
		cr_assert(asked_of(3, &other));
		other.tell = LNX_TELL_SILENT;
		rx_ask(2, &other);
		cr_assert_eq(leaves_by(&f, host), 2);
		pass_answered(2 * RTD_LATE_NS, 1u << 2 | 1u << 3);
		w.ngot = 0;
		cr_assert_eq(leaves_by(&f, host), 2);
		cr_assert(asked_of(3, &other));
		/* The first one, which frames to this end take, is cut off, and no longer is. */
		rx_ask(0, &a);
		cr_assert(asked_of(2, &q));
		q.tell = LNX_TELL_UNREACHABLE;
		rx_ask(1, &q);
		cr_assert(asked_of(3, &other));
		other.tell = LNX_TELL_ALIVE;
		rx_ask(2, &other);
		cr_assert_eq(leaves_by(&f, host), 3);
		pass_answered(16 * RTD_LATE_NS, 1u << 2 | 1u << 3);
		w.ngot = 0;
		cr_assert_eq(leaves_by(&f, host), 3);
		cr_assert(asked_of(2, &q));
		q.tell = LNX_TELL_ALIVE;
		rx_ask(1, &q);
		cr_assert_eq(leaves_by(&f, host), 2);
	}
	/* One that answers that the host lives, or refuses, keeps the frames. */
	while (leaves_by(&f, host) != 2)
		host++;
	a.rail = at(4, host, PORT);
	for (i = LNX_TELL_ALIVE; i <= LNX_TELL_REFUSED; i++) {
		rx_ask(0, &a);
		cr_assert(asked_of(2, &q));
		q.tell = (uint8_t)i;
		rx_ask(1, &q);
		cr_assert_eq(told_source(), i);
		pass_answered(S, 1u << 2 | 1u << 3);
		cr_assert_eq(leaves_by(&f, host), 2);
	}
}

/* The same of a frame with that number, which so many gateways had forwarded. */
static void noted_of(unsigned host, unsigned reason, uint32_t seq, unsigned hops)
{
	struct lnx_route_note n = { .reason = (uint8_t)reason, .id = 0x202,
				    .account = 77, .count = 3,
				    .hops_done = (uint8_t)hops, .rail = at(4, host, PORT),
				    .src = 0x1005, .dst = 2, .seq = seq, .wait_ms = 900 };
	uint8_t buf[LNX_ROUTE_NOTE_LEN];

	w.ngot = 0;
	lnx_route_note_put(buf, &n);
	rx(1, buf, sizeof(buf));
	core_run();
}

/* What the next gateway says of a frame is passed back to where that came from. */
Test(rtd_relay, notes_are_passed_back)
{
	static const struct {
		unsigned reason, passed, wait_ms;
	} rows[] = {
		{ LNX_NOTE_REFUSED, LNX_NOTE_REFUSED, 900 },
		{ LNX_NOTE_FORBIDDEN, LNX_NOTE_FORBIDDEN, 900 },
		{ LNX_NOTE_TTL, LNX_NOTE_TTL, 900 },
		{ LNX_NOTE_NO_ROUTE, LNX_NOTE_NO_ROUTE, 900 },
		{ LNX_NOTE_OVER_QUOTA, LNX_NOTE_OVER_QUOTA, 900 },
		/* Of that gateway, not of this one. */
		{ LNX_NOTE_NOT_ROUTER, LNX_NOTE_UNREACHABLE, 0 },
	};
	struct frame f = frame(0x1005, 4, 1);
	struct lnx_route_note n;
	unsigned i, used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2");
	f.env.account = announce(5, NULL);
	cr_assert_eq(leaves_by(&f, 1), 2);
	pass_answered(2 * S, 1u << 2);
	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		cr_assert_eq(leaves_by(&f, 1 + i), 2);
		later(100 * MS);
		noted_of(1 + i, rows[i].reason, 70 + i, 2);
		cr_assert(note_to(5, &n), "%s", lnx_route_reason_name(rows[i].reason));
		cr_expect_eq(n.reason, rows[i].passed, "%s as %s",
			     lnx_route_reason_name(rows[i].reason),
			     lnx_route_reason_name(n.reason));
		cr_expect_eq(n.wait_ms, rows[i].wait_ms);
		cr_expect(n.id == GW_ID && n.account == f.env.account && n.seq == 70 + i &&
			  n.src == 0x1005 && n.dst == 2 && n.count == 3 && n.hops_done == 1);
	}
	/* This one does not say so itself, and not of an end that nothing was sent to. */
	cr_assert_eq(dropped_all(), 0);
	later(S);
	noted_of(90, LNX_NOTE_REFUSED, 1, 2);
	cr_expect_not(note_to(5, &n));
	/* No gateway had forwarded it. */
	cr_assert_eq(leaves_by(&f, 80), 0);
	pass_answered(2 * S, 1u << 2);
	cr_assert_eq(leaves_by(&f, 80), 2);
	noted_of(80, LNX_NOTE_REFUSED, 1, 0);
	cr_expect_not(note_to(5, &n));
	/* There is another gateway: this one has a way. */
	add_routes("tcp4 via 10.3.0.200@tcp3");
	send_many(used);
	pass_answered(2 * S, 1u << 2 | 1u << 3);
	for (i = 100; leaves_by(&f, i) != 2;)
		i++;
	noted_of(i, LNX_NOTE_NO_ROUTE, 5, 1);
	cr_assert(note_to(5, &n));
	cr_expect(n.reason == LNX_NOTE_UNREACHABLE && n.seq == 5 && !n.wait_ms && !n.hops_done);
	cr_expect_eq(leaves_by(&f, i), 3);
}

/* A note in the name of the next gateway, whose id all know that it forwards to: only with our
 * account there, and not after many without. */
Test(rtd_relay, notes_in_the_name_of_a_gateway)
{
	struct lnx_route_note n = { .reason = LNX_NOTE_REFUSED, .id = 0x202, .count = 1,
				    .hops_done = 2, .rail = at(4, 1, PORT), .src = 0x1005,
				    .dst = 2, .seq = 1 };
	uint8_t buf[LNX_ROUTE_NOTE_LEN];
	struct frame f = frame(0x1005, 4, 1);
	unsigned i;

	add_routes("tcp4 via 10.2.0.200@tcp2");
	f.env.account = announce(5, NULL);
	cr_assert_eq(leaves_by(&f, 1), 2);
	pass_answered(2 * S, 1u << 2);
	cr_assert_eq(leaves_by(&f, 1), 2);
	for (i = 0; i < 65536; i++) {
		n.account = (uint16_t)i;
		lnx_route_note_put(buf, &n);
		if (i != 77)
			rx(1, buf, sizeof(buf));
	}
	/* It was found too late. */
	n.account = 77;
	lnx_route_note_put(buf, &n);
	rx(1, buf, sizeof(buf));
	cr_expect_eq(leaves_by(&f, 1), 2);
	later(2 * S);
	noted_of(1, LNX_NOTE_REFUSED, 1, 2);
	cr_expect_eq(leaves_by(&f, 1), 0);
}

/* In a ring the frame comes again from a gateway: its sender is told, not that. */
Test(rtd_relay, notes_leave_a_ring)
{
	struct lnx_gw_hello h = { .flags = LNX_GW_F_GATEWAY, .oldest = 1, .newest = 1,
				  .id = 0x300, .nonce = 6,
				  .rails = { .n = 1, .rail = { at(1, 6, PORT) } } };
	struct frame f = frame(0x1005, 4, 1), again;
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	struct lnx_gw_info info;
	struct lnx_route_note n;
	unsigned i;

	add_routes("tcp4 via 10.2.0.200@tcp2");
	f.env.account = announce(5, NULL);
	w.ngot = 0;
	rx(0, buf, (size_t)lnx_wire_gw_hello_put(buf, sizeof(buf), &h));
	core_run();
	for (i = 0; i < w.ngot && w.log[i].kind != LNX_ROUTE_GW_INFO; i++)
		;
	cr_assert_eq(lnx_wire_gw_info_get(&info, w.log[i].bytes, w.log[i].len, NULL), 0);
	again = f;
	again.env.account = info.gw.account;
	again.env.via = 0x300;
	again.env.hops_done = 3;
	cr_assert_eq(leaves_by(&f, 1), 2);
	pass_answered(2 * S, 1u << 2);
	cr_assert_eq(leaves_by(&f, 1), 2);
	cr_assert_eq(leaves_by(&again, 1), 2);
	noted_of(1, LNX_NOTE_TTL, 7, 7);
	cr_expect(note_to(5, &n) && n.hops_done == 6 && n.seq == 7);
	cr_expect_not(note_to(6, &n));
	/* It sends nothing any more. */
	pass_answered(2 * S, 1u << 2);
	cr_assert_eq(leaves_by(&again, 1), 2);
	noted_of(1, LNX_NOTE_TTL, 8, 7);
	cr_expect(note_to(6, &n) && n.hops_done == 6 && n.seq == 8);
}

#define BOTH	(1u << 2 | 1u << 3)

/* A gateway had no way to an end: when it says that it can do more than before, or after a pause,
 * its part leads over it again. */
Test(rtd_relay, gateway_with_a_way_again)
{
	struct frame f = frame(0x1005, 4, 1);
	unsigned used[2], i, host = 1;

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	f.env.account = announce(5, NULL);
	send_many(used);
	pass_answered(2 * S, BOTH);
	while (leaves_by(&f, host) != 2)
		host++;
	inform(2, 0, LNX_GW_F_ROUTING, false);
	noted(2, host, LNX_NOTE_UNREACHABLE);
	cr_assert_eq(leaves_by(&f, host), 3);
	later(MS);
	inform(2, 0, LNX_GW_F_ROUTING, false);
	cr_assert_eq(leaves_by(&f, host), 3, "it has said nothing new");
	inform(2, 0, LNX_GW_F_ROUTING, true);
	cr_assert_eq(leaves_by(&f, host), 2, "its rail is up again");
	/* Without such news after a pause, which doubles while it has none. */
	for (i = 0; i < 3; i++) {
		noted(2, host, LNX_NOTE_UNREACHABLE);
		cr_assert_eq(leaves_by(&f, host), 3);
		pass_answered((RTD_NO_WAY_NS << i) - S, BOTH);
		cr_assert_eq(leaves_by(&f, host), 3, "after %u s", (10u << i) - 1);
		pass_answered(S, BOTH);
		cr_assert_eq(leaves_by(&f, host), 2, "after %u s", 10u << i);
	}
	cr_assert_eq(dropped_all(), 0);
}

/* One that will stop soon is used no more if there is another one. */
Test(rtd_relay, gateway_that_drains)
{
	const uint8_t stops = LNX_GW_F_ROUTING | LNX_GW_F_DRAINING;
	unsigned used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	send_many(used);
	pass_answered(2 * S, BOTH);
	send_many(used);
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
	inform(2, 0, stops, true);
	send_many(used);
	cr_assert_eq(used[1], MANY, "%u over the one that drains", used[0]);
	inform(3, 0, stops, true);
	send_many(used);
	cr_assert_eq(used[0] + used[1], MANY);
	inform(2, 0, LNX_GW_F_ROUTING, true);
	send_many(used);
	cr_assert_eq(used[0], MANY, "%u over the one that drains", used[1]);
	cr_assert_eq(dropped_all(), 0);
}

/* What others say in the name of a gateway, which knows the last hello, does not count. */
Test(rtd_relay, news_of_others)
{
	const uint8_t stops = LNX_GW_F_ROUTING | LNX_GW_F_DRAINING;
	unsigned used[2], i;
	uint32_t known;
	uint64_t bad;

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	send_many(used);
	cr_assert_neq(nonce_of(2), nonce_of(3), "two that are asked at once");
	inform(2, nonce_of(2), LNX_GW_F_ROUTING, true);
	inform(3, nonce_of(3), LNX_GW_F_ROUTING, true);
	known = gateway_of_net[2].nonce;
	bad = rtd_relay_counts(w.r)->bad_control;
	inform(2, known ^ 2, stops, true);
	inform(2, 1, 0, true);
	cr_expect_eq(rtd_relay_counts(w.r)->bad_control, bad + 2);
	send_many(used);
	cr_expect(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
	/* It has not got the hello after the one that it has answered; and it has. */
	for (i = 0; i < 2; i++) {
		w.ngot = 0;
		later(2 * S);
		inform(2, i ? nonce_of(2) : known, stops, true);
		inform(3, nonce_of(3), LNX_GW_F_ROUTING, true);
		send_many(used);
		cr_expect_eq(used[1], MANY, "%u over the one that drains", used[0]);
		inform(2, 0, LNX_GW_F_ROUTING, true);
		send_many(used);
		cr_expect(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
	}
	/* Now that is too old. */
	inform(2, known, stops, true);
	cr_expect_eq(rtd_relay_counts(w.r)->bad_control, bad + 3);
}

/* The table is full, and the way of a destination leads over a gateway that is met first: that
 * does not get the place of the destination. */
Test(rtd_relay, table_full_of_ways)
{
	struct rtd_settings s = w.s;
	struct frame f = frame(1, 4, 1);

	s.dests = 2;
	rtd_relay_set(w.r, &s);
	add_routes("tcp4 via 10.2.0.200@tcp2");
	cr_assert_eq(leaves_by(&f, 1), 2);
	cr_assert_eq(rtd_relay_ndests(w.r), 2);
	add_routes("tcp4 via 10.3.0.200@tcp3");
	cr_expect_eq(leaves_by(&f, 1), 2);
	cr_expect_eq(dropped_all(), 0);
	cr_expect_eq(rtd_relay_ndests(w.r), 2);
	/* With room it is one of two. */
	s.dests = 100;
	rtd_relay_set(w.r, &s);
	add_routes("tcp5 via 10.3.0.200@tcp3");
	for (f.seq = 1; f.seq < 40 && leaves_by(&f, f.seq) != 3; f.seq++)
		;
	cr_expect_lt(f.seq, 40);
	cr_expect_eq(dropped_all(), 0);
}

/* Its connection breaks: the other one takes all at once, and it takes its part again soon after
 * it is back. */
Test(rtd_relay, gateway_that_breaks)
{
	unsigned used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	send_many(used);
	pass_answered(MS, 1u << 2 | 1u << 3);
	gateway_end(2)->does = BREAKS;
	send_many(used);
	cr_assert_eq(used[0], 0);
	send_many(used);
	cr_assert_eq(used[1], MANY);
	pass_answered(20 * S, 1u << 3);
	gateway_end(2)->does = TAKES;
	pass_answered(2500 * MS, 1u << 2 | 1u << 3);
	send_many(used);
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
}

/* If there is no other one, it waits. */
Test(rtd_relay, only_gateway_blocks)
{
	unsigned used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2");
	send_many(used);
	cr_assert_eq(used[0], MANY);
	gateway_end(2)->does = SAYS_AGAIN;
	send_many(used);
	pass_answered(3 * S, 0);
	cr_assert_eq(dropped_all(), 0);
	gateway_end(2)->does = TAKES;
	w.ngot = 0;
	later(100 * MS);
	cr_assert_eq(got_of(gateway_end(2), 0), MANY);
}

/* One of two gateways takes all and says nothing: it is not used until it answers. */
Test(rtd_relay, gateway_that_is_silent)
{
	unsigned used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	send_many(used);
	pass_answered(3 * S, 1u << 3);
	send_many(used);
	cr_assert_eq(used[1], MANY, "%u over the silent one", used[0]);
	pass_answered(3 * S, 1u << 2 | 1u << 3);
	send_many(used);
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
	/* Both are silent: it may be due to this one. */
	pass_answered(4 * S, 0);
	send_many(used);
	cr_assert_eq(used[0] + used[1], MANY);
}

/* The same while frames go to it: that is found out within a fraction of a second. */
Test(rtd_relay, busy_gateway_that_is_silent)
{
	unsigned used[2], i;

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	for (i = 0; i < 30; i++) {
		send_many(used);
		pass_answered(60 * MS, BOTH);
	}
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
	for (i = 0; i < 5; i++) {
		send_many(used);
		pass_answered(60 * MS, 1u << 3);
	}
	send_many(used);
	cr_assert_eq(used[1], MANY, "%u over the silent one", used[0]);
	pass_answered(2 * S, BOTH);
	send_many(used);
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
}

/* Without a buffer for a hello it was not asked, and is not dead. */
Test(rtd_relay, gateway_that_is_not_asked)
{
	struct rtd_settings s = w.s;
	unsigned used[2];

	add_routes("tcp4 via 10.2.0.200@tcp2,10.3.0.200@tcp3");
	send_many(used);
	pass_answered(2 * S, BOTH);
	s.count[RTD_SMALL] = 0;
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	pass_answered(5 * S, BOTH);
	cr_assert_eq(rtd_relay_set(w.r, &w.s), 0);
	/* One is alive in any case, so that the other need not be. */
	inform(3, 0, LNX_GW_F_ROUTING, true);
	send_many(used);
	cr_assert(used[0] > 5 && used[1] > 5, "%u and %u", used[0], used[1]);
}

/* ---- on, off ---- */

Test(rtd_relay, drained)
{
	struct frame f = frame(0x1005, 2, 1);
	struct end *b = end_at(2, 1);
	struct lnx_gw_info info;

	f.env.account = announce(5, NULL);
	b->does = STANDS;
	rx_frames(f, 0, 10);
	rtd_relay_stop(w.r, w.now);
	w.ngot = 0;
	later(MS);
	cr_assert_eq(rtd_relay_state(w.r), RTD_DRAINING);
	/* Its sources are told, and what they send meanwhile is forwarded. */
	cr_assert_eq(w.ngot, 1);
	cr_assert_eq(lnx_wire_gw_info_get(&info, w.log[0].bytes, w.log[0].len, NULL), 0);
	cr_assert_eq(info.gw.flags, LNX_GW_F_ROUTING | LNX_GW_F_DRAINING);
	cr_assert_eq(rtd_relay_start(w.r, w.now), -EBUSY);
	rx_frames(f, 10, 10);
	later(3 * S);
	b->does = TAKES;
	later(MS);
	cr_assert_eq(got_of(b, 0), 20);
	later(MS);
	cr_assert_eq(rtd_relay_state(w.r), RTD_OFF);
	cr_assert_eq(dropped_all(), 0);
	cr_assert_leq(rtd_relay_pool(w.r)->class[RTD_LARGE].total, 64);
	expect_drop(&f, RTD_ROUTING_OFF, 5, LNX_NOTE_NOT_ROUTER, NULL);
	/* And on again. */
	cr_assert_eq(rtd_relay_start(w.r, w.now), 0);
	rx_frames(f, 20, 1);
	core_run();
	cr_assert_eq(got_of(b, 0), 21);
	cr_assert_eq(rtd_relay_pool(w.r)->class[RTD_LARGE].total, 128);
}

/* What is on its way when sources are told is still forwarded; one that goes on is not waited
 * for. */
Test(rtd_relay, drained_when_nothing_comes)
{
	struct frame f = frame(0x1005, 2, 1);
	unsigned ms;

	f.env.account = announce(5, NULL);
	rtd_relay_stop(w.r, w.now);
	later(RTD_DRAIN_QUIET_NS - MS);
	rx_frames(f, 0, 1);
	later(RTD_DRAIN_QUIET_NS - MS);
	cr_assert_eq(rtd_relay_state(w.r), RTD_DRAINING);
	later(2 * MS);
	cr_assert_eq(rtd_relay_state(w.r), RTD_OFF);
	cr_assert_eq(dropped_all(), 0);
	cr_assert_eq(rtd_relay_start(w.r, w.now), 0);
	rtd_relay_stop(w.r, w.now);
	for (ms = 0; rtd_relay_state(w.r) == RTD_DRAINING && ms < 5000; ms += 10) {
		rx_frames(f, 1 + ms, 1);
		later(10 * MS);
	}
	cr_assert_eq(ms, RTD_DRAIN_QUIET_MAX_NS / MS);
	cr_assert_eq(dropped_all(), 0);
}

/* What cannot be sent within drain_ns is dropped. */
Test(rtd_relay, drained_by_force)
{
	struct frame f = frame(1, 2, 1);
	struct end *b = end_at(2, 1);

	rx_frames(f, 0, 1);
	core_run();
	b->does = SAYS_AGAIN;
	rx_frames(f, 0, 10);
	rtd_relay_stop(w.r, w.now);
	later(29 * S);
	cr_assert_eq(rtd_relay_state(w.r), RTD_DRAINING);
	cr_assert_eq(rtd_relay_held(w.r), 10);
	later(2 * S);
	cr_assert_eq(rtd_relay_state(w.r), RTD_OFF);
	cr_assert_eq(dropped(RTD_ROUTING_OFF), 10);
	cr_assert_eq(rtd_relay_held(w.r), 0);
}
