/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A gateway under load: no source and no destination takes what others need, whatever it
 * does; buffers and credits balance after any sequence of events.
 */
#include "rtd_world.h"
#include "seed.h"

TestSuite(rtd_fair, .init = world_begin, .fini = world_end);

/* ---- grants ---- */

Test(rtd_fair, quota)
{
	struct frame f = frame(0x1005, 2, 1), g = frame(0x1006, 2, 1);
	struct rtd_source_view v = { 0 };
	struct lnx_route_note n;
	unsigned i;

	f.env.account = announce(5, NULL);
	g.env.account = announce(6, NULL);
	end_at(2, 1)->does = STANDS;
	/* 64 of the others; not one more, until some have left. */
	rx_frames(f, 0, 64);
	cr_assert_eq(dropped_all(), 0);
	rx_frames(f, 64, 5);
	cr_assert_eq(dropped(RTD_QUOTA), 5);
	core_run();
	cr_assert(note_to(5, &n));
	cr_assert_eq(n.reason, LNX_NOTE_OVER_QUOTA);
	/* The grant for large ones is another. */
	f.env.len = 9000;
	rx_frames(f, 69, 24);
	cr_assert_eq(dropped(RTD_QUOTA), 5);
	/* Another source has its own. */
	rx_frames(g, 0, 64);
	cr_assert_eq(dropped(RTD_QUOTA), 5);
	for (i = 0; rtd_relay_source(w.r, i, &v) && v.account != f.env.account; i++)
		;
	cr_assert_eq(v.used_small, 64);
	cr_assert_eq(v.used_large, 24);
	cr_assert_eq(v.min_credits, -1);
	cr_assert_eq(v.dropped, 5);
	end_at(2, 1)->does = TAKES;
	core_run();
	f.env.len = 72;
	rx_frames(f, 0, 64);
	cr_assert_eq(dropped(RTD_QUOTA), 5);
}

/* The sum of the grants stays within the pools; sources are told when theirs shrinks. */
Test(rtd_fair, grants_shrink)
{
	struct rtd_source_view v;
	struct lnx_gw_info info;
	uint32_t sum_large, sum_small;
	unsigned n, i;

	for (n = 1; n <= 100; n++) {
		cr_assert_neq(announce(n, &info), 0);
		sum_large = sum_small = 0;
		for (i = 0; rtd_relay_source(w.r, i, &v); i++) {
			sum_large += v.large;
			sum_small += v.small;
		}
		cr_assert_leq(sum_large, 125, "%u: %u", n, sum_large);
		cr_assert_leq(sum_small, 512);
		cr_assert_geq(info.large, 1);
		if (n == 1) {
			/* 125 large ones for it and three rails. */
			cr_assert_eq(info.large, 31);
			cr_assert_eq(info.small, 64);
		}
	}
	cr_assert_eq(info.large, 125 / 103);
	w.ngot = 0;
	later(1100 * MS);
	/* All but the last ones did not know it yet. */
	cr_assert_gt(w.ngot, 50);
	w.ngot = 0;
	later(5 * S);
	cr_assert_eq(w.ngot, 0);
}

/* A connection holds a landing while a frame comes: those of slow sources must not take all. */
Test(rtd_fair, landings)
{
	struct rtd_settings s = w.s;
	unsigned n;

	cr_expect_eq(rtd_relay_landings(w.r), RTD_LANDINGS);
	s.count[RTD_LARGE] = 300;
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	for (n = 1; n <= 60; n++) {
		cr_assert_neq(announce(n, NULL), 0);
		/* Three rails share half of the large buffers. */
		cr_expect_eq(rtd_relay_landings(w.r), n < 34 ? RTD_LANDINGS + n : 50, "%u", n);
	}
	rtd_relay_stop(w.r, w.now);
	later(100 * MS);
	cr_expect_eq(rtd_relay_landings(w.r), RTD_LANDINGS);
}

/* ---- streams ---- */

/* So many frames of f come, one after the other.  Does the gateway sleep then, whatever comes? */
static bool naps_after(struct frame *f, unsigned n)
{
	while (n--) {
		f->seq++;
		rx_frame(f);
		later(50000);
	}
	return rtd_relay_nap(w.r, w.now) != 0;
}

/* It does in a stream of large frames between two ends, in which the other end sends small ones;
 * and not when others send as well, or both ends large ones. */
Test(rtd_fair, stream)
{
	struct frame f = frame(0x1005, 2, 1), back = frame(0x1006, 1, 5), other = f, more;

	f.env.account = announce(5, NULL);
	back.env.account = announce(6, NULL);
	back.net = 2;
	other.env.account = announce(7, NULL);
	f.env.len = 65600;
	more = back;
	more.env.len = 65600;
	cr_expect(!naps_after(&f, 31));
	cr_expect(naps_after(&f, 1));
	cr_expect(naps_after(&f, 1));
	cr_expect(naps_after(&back, 1) == false, "it was over");
	cr_expect(!naps_after(&f, 31));
	cr_expect(!naps_after(&back, 3));
	cr_expect(naps_after(&f, 1));
	/* Nothing came meanwhile. */
	cr_expect(!naps_after(&f, 0));
	cr_expect(!naps_after(&f, 31));
	cr_expect(!naps_after(&more, 1));
	cr_expect(!naps_after(&f, 31));
	cr_expect(naps_after(&f, 1));
	/* Another source. */
	cr_expect(!naps_after(&other, 1));
	cr_expect(!naps_after(&f, 100));
	cr_expect(naps_after(&f, 200));
	/* It takes the place of the end that has sent nothing for long. */
	cr_expect(!naps_after(&other, 1));
	cr_expect(naps_after(&f, 32));
	cr_expect(!naps_after(&back, 1));
	cr_expect(!naps_after(&f, 32));
}

/* One cannot tell for how many another gateway speaks, nor which source has no account. */
Test(rtd_fair, no_stream)
{
	struct frame f = frame(0x1005, 2, 1), none = f;

	f.env.len = none.env.len = 65600;
	f.env.account = announce_with(LNX_GW_F_GATEWAY, 0x1005, 5, PORT, NULL);
	cr_assert_neq(f.env.account, 0);
	cr_expect(!naps_after(&f, 100));
	later(1 * S);
	cr_expect(!naps_after(&none, 100));
}

/* A process that announces many sources shrinks the grants of its own host only. */
Test(rtd_fair, many_ids)
{
	struct frame f = frame(0x1005, 2, 1), g = frame(0x1006, 2, 2);
	uint16_t good = announce(5, NULL), bad[200];
	unsigned i;

	/* 125 large ones for it and three rails. */
	cr_assert_eq(source_view(good).large, 31);
	for (i = 0; i < 200; i++) {
		bad[i] = announce_as(0x2000 + i, 6, 2000 + i, NULL);
		cr_assert_neq(bad[i], 0);
	}
	cr_assert_eq(source_view(good).large, 25);
	cr_assert_eq(source_view(good).small, 64);
	cr_assert_eq(source_view(bad[0]).large, 1);
	/* It has them, too, while the others fill all that they can. */
	end_at(2, 1)->does = end_at(2, 2)->does = STANDS;
	f.env.account = good;
	f.env.len = g.env.len = 9000;
	for (i = 0; i < 200; i++) {
		g.env.account = bad[i];
		rx_frames(g, 0, 2);
	}
	rx_frames(f, 0, 25);
	cr_assert_eq(source_view(good).used_large, 25);
	cr_assert_eq(source_view(good).dropped, 0);
}

/* One host that announces more sources than it may have each second keeps none from others. */
Test(rtd_fair, hellos_of_one_host)
{
	unsigned i, n = 0;

	for (i = 0; i < 5000; i++) {
		n += announce_as(0x2000 + i, 6, 2000, NULL) != 0;
		w.ngot = 0;
	}
	cr_expect_eq(n, 256);
	cr_expect_neq(announce(5, NULL), 0);
	later(S);
	n = 0;
	for (i = 5000; i < 6000; i++) {
		n += announce_as(0x2000 + i, 6, 2000, NULL) != 0;
		w.ngot = 0;
	}
	cr_expect_eq(n, 50);
}

/* An address that nothing can be sent to takes no share, and displaces no source. */
Test(rtd_fair, made_up_addresses)
{
	struct rtd_settings s = w.s;
	struct frame f = frame(0x1005, 2, 1);
	uint16_t good = announce(5, NULL);
	unsigned i;

	s.sources = 32;
	cr_assert_eq(rtd_relay_set(w.r, &s), 0);
	w.by_default = STANDS;
	for (i = 0; i < 200; i++)
		cr_assert_eq(announce_as(0x2000 + i, 100 + i, 2000, NULL), 0);
	cr_assert_eq(source_view(good).large, 31);
	cr_assert_leq(rtd_relay_nsources(w.r), 32);
	/* Frames with an account that was not told yet are those of a stranger. */
	f.env.len = 9000;
	end_at(2, 1)->does = STANDS;
	for (i = 1; i < 65536; i++) {
		if (i == good)
			continue;
		f.env.account = (uint16_t)i;
		rx_frame(&f);
	}
	cr_assert_eq(rtd_relay_held(w.r), 31);
	f.env.account = good;
	rx_frames(f, 0, 31);
	cr_assert_eq(source_view(good).dropped, 0);
}

/* What hosts with few sources cannot use is for those with many. */
Test(rtd_fair, crowded_host)
{
	uint16_t alone = announce(5, NULL), crowd[8];
	unsigned i;

	for (i = 0; i < 8; i++)
		crowd[i] = announce_as(0x2000 + i, 6, 2000 + i, NULL);
	/* 512 in all; four have 64, and eight the rest. */
	cr_assert_eq(source_view(alone).small, 64);
	for (i = 0; i < 8; i++)
		cr_assert_eq(source_view(crowd[i]).small, 32);
}

/* ---- turns ---- */

/* Sources of one destination take turns, and each keeps its order. */
Test(rtd_fair, sources_alternate)
{
	unsigned i, k, seen[4] = { 0 };
	struct frame f[4];

	for (k = 0; k < 4; k++) {
		f[k] = frame(0x1000 + k, 2, 1);
		f[k].env.account = announce(k, NULL);
		f[k].env.len = LNX_FRAME_MAX - 64;
	}
	w.ngot = 0;
	/* One has 16 in the queue before the others have 8 each. */
	for (k = 0; k < 4; k++)
		rx_frames(f[k], 0, k ? 8 : 16);
	core_run();
	cr_assert_eq(w.ngot, 40);
	for (i = 0; i < w.ngot; i++) {
		k = (unsigned)(w.log[i].src - 0x1000);
		cr_assert_eq(w.log[i].seq, seen[k], "source %u", k);
		seen[k]++;
		for (k = 1; k < 4; k++)
			cr_assert(seen[k] == 8 || seen[0] <= seen[k] + 1,
				  "%u of the first, %u of source %u", seen[0], seen[k], k);
	}
	cr_assert(seen[0] == 16 && seen[1] == 8 && seen[2] == 8 && seen[3] == 8);
}

/* Bytes of frames that end got. */
static uint64_t bytes_of(const struct end *e, uint64_t src)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < w.ngot; i++)
		if (w.log[i].kind == LNX_ROUTE_FRAME && &w.end[w.log[i].end] == e &&
		    w.log[i].src == src)
			n += w.log[i].len;
	return n;
}

/* Sources with frames of any length get as many bytes, as long as all have some that wait. */
Test(rtd_fair, sources_of_long_frames)
{
	static const uint32_t len[3] = { 1000, LNX_FRAME_MAX, LNX_FRAME_LARGE - 64 };
	static const unsigned n[3] = { 60, 20, 20 };
	struct end *b = end_at(2, 1);
	struct frame f[3];
	unsigned k, last = 0;
	uint64_t sum[3];

	for (k = 0; k < 3; k++) {
		f[k] = frame(0x1000 + k, 2, 1);
		f[k].env.account = announce(k, NULL);
		f[k].env.len = len[k];
	}
	w.ngot = 0;
	b->does = STANDS;
	for (k = 0; k < 3; k++)
		rx_frames(f[k], 0, n[k]);
	cr_assert_eq(dropped_all(), 0);
	b->does = TAKES;
	core_run();
	cr_assert_eq(w.ngot, 100);
	/* Until the first one has no more. */
	for (k = 0; k < w.ngot; k++)
		if (w.log[k].src == 0x1000)
			last = k;
	w.ngot = last + 1;
	for (k = 0; k < 3; k++)
		sum[k] = bytes_of(b, 0x1000 + k);
	w.ngot = 100;
	cr_expect_eq(sum[0], 60u * 1064);
	cr_expect_leq(sum[1], sum[0] + 2 * LNX_FRAME_MAX, "%lu", (unsigned long)sum[1]);
	cr_expect_leq(sum[2], sum[0] + LNX_FRAME_LARGE, "%lu", (unsigned long)sum[2]);
	cr_expect_geq(sum[1] + 2 * LNX_FRAME_MAX, sum[0], "%lu", (unsigned long)sum[1]);
}

static void world_of_one(void)
{
	rail_tx_max = 1;
	world_begin();
}

TestSuite(rtd_turns, .init = world_of_one, .fini = world_end);

/* So do destinations of one rail, whose core takes one frame at a time. */
Test(rtd_turns, destinations)
{
	struct frame f[2] = { frame(0x1000, 2, 1), frame(0x1001, 2, 2) };
	unsigned k, first = 0;

	for (k = 0; k < 2; k++) {
		f[k].env.account = announce(k, NULL);
		f[k].env.len = k ? LNX_FRAME_LARGE - 64 : LNX_FRAME_MAX;
	}
	w.ngot = 0;
	for (k = 0; k < 2; k++)
		rx_frames(f[k], 0, 20);
	core_run();
	cr_assert_eq(w.ngot, 40);
	/* Of long ones not more than one for six of the others, and not less. */
	for (k = 0; first < 18; k++)
		first += w.log[k].src == 0x1000;
	cr_expect(k - first >= 2 && k - first <= 4, "%u", k - first);
}

/*
 * 64 sources send all they can to one slow sink; one pair wants to move as much as it can.
 * A round is a millisecond: the sink takes one frame, the others all that they get.
 */
static void slow_sink(unsigned hogs, unsigned sinks, uint32_t len, unsigned pair_frames,
		      double least)
{
	struct frame hog[64], fast = frame(0x1100, 3, 9);
	struct end *b = end_at(3, 9);
	unsigned i, k, round, sent = 0, slow = 0;

	fast.env.len = len;
	fast.env.account = announce(0x100, NULL);
	for (i = 0; i < hogs; i++) {
		hog[i] = frame(0x1000 + i, 2, 1 + i % sinks);
		hog[i].env.len = len;
		hog[i].env.account = announce(i, NULL);
		end_at(2, 1 + i % sinks)->does = STANDS;
	}
	w.ngot = 0;
	for (round = 0; round < 400; round++) {
		for (i = 0; i < hogs; i++)
			rx_frames(hog[i], round, 4);
		for (k = 0; k < pair_frames; k++) {
			fast.seq = sent++;
			rx_frame(&fast);
		}
		rtd_relay_run(w.r, w.now);
		for (i = 0; i < sinks; i++) {
			struct end *e = end_at(2, 1 + i);

			e->does = TAKES;
			slow += core_step((unsigned)(e - w.end), 1);
			e->does = STANDS;
		}
		core_step((unsigned)(b - w.end), UINT32_MAX);
		w.now += MS;
		rtd_relay_run(w.r, w.now);
		/* Notes and infos. */
		for (i = 0; i < w.nend; i++)
			if (w.end[i].does == TAKES && &w.end[i] != b)
				core_step(i, UINT32_MAX);
	}
	cr_assert_geq((double)got_of(b, 0x1100), least * sent, "%u of %u",
		      got_of(b, 0x1100), sent);
	/* The slow ones work all the time, too. */
	cr_assert_geq(slow, 390u * sinks, "%u", slow);
	cr_assert_gt(dropped(RTD_QUOTA) + dropped(RTD_DEST_CAP) + dropped(RTD_POOL_EMPTY),
		     1000);
}

Test(rtd_fair, slow_sink_small)
{
	slow_sink(64, 1, 1000, 3, 1.0);
}

Test(rtd_fair, slow_sink_large)
{
	/* 128 large buffers for 65 sources: a grant of one. */
	slow_sink(64, 1, 9000, 1, 1.0);
}

Test(rtd_fair, many_slow_sinks)
{
	slow_sink(32, 16, 1000, 3, 0.9);
}

/* ---- pools ---- */

static void set_counts(uint32_t tiny, uint32_t small, uint32_t large, int want)
{
	struct rtd_settings s = w.s;

	s.count[RTD_TINY] = tiny;
	s.count[RTD_SMALL] = small;
	s.count[RTD_LARGE] = large;
	cr_assert_eq(rtd_relay_set(w.r, &s), want);
}

Test(rtd_fair, pools_empty)
{
	struct frame f = frame(0x1005, 2, 1);
	unsigned i;

	f.env.account = announce(5, NULL);
	set_counts(2, 8, 5, 0);
	end_at(2, 1)->does = end_at(2, 2)->does = end_at(2, 3)->does = STANDS;
	f.env.len = 1000;
	/* Share by share: three destinations fill all 8. */
	for (i = 1; i <= 3; i++) {
		f.env.rail = at(2, i, PORT);
		rx_frames(f, 0, 4);
	}
	cr_assert_eq(rtd_pool_used(rtd_relay_pool(w.r), RTD_SMALL), 2);
	cr_assert_eq(dropped(RTD_QUOTA), 10);
	/* Large: three are lent, two are free. */
	f.env.len = 9000;
	f.env.account = 0;
	f.net = 3;
	rx_frames(f, 0, 2);
	cr_assert_eq(dropped(RTD_QUOTA), 11);
	end_at(2, 1)->does = end_at(2, 2)->does = end_at(2, 3)->does = TAKES;
	core_run();
	cr_assert_eq(got_of(end_at(2, 1), 0), 2);
	cr_assert_eq(got_of(end_at(2, 3), 0), 1);
}

/* With none left a large frame is dropped, and the landing is there for the next one. */
Test(rtd_fair, no_large)
{
	struct frame f = frame(1, 2, 1);

	set_counts(8, 8, 3, 0);
	f.env.len = 9000;
	rx_frames(f, 0, 3);
	cr_assert_eq(dropped(RTD_POOL_EMPTY), 3);
	cr_assert_str_eq(rtd_relay_example(w.r, RTD_POOL_EMPTY)->why, "large");
	cr_assert_eq(rtd_relay_pool(w.r)->class[RTD_LARGE].empty, 3);
	f.env.len = 72;
	rx_frames(f, 0, 1);
	core_run();
	cr_assert_eq(got_of(end_at(2, 1), 0), 1);
}

/* Pools change while they are in use: nothing is lost. */
Test(rtd_fair, pools_resized)
{
	struct frame f = frame(1, 2, 1);
	struct end *b = end_at(2, 1);
	const struct rtd_pool *p = rtd_relay_pool(w.r);

	b->does = STANDS;
	rx_frames(f, 0, 50);
	set_counts(4, 256, 128, 0);
	cr_assert_eq(p->class[RTD_TINY].total, 50);
	b->does = TAKES;
	core_run();
	cr_assert_eq(got_of(b, 0), 50);
	cr_assert_eq(p->class[RTD_TINY].total, 4);
	cr_assert_eq(p->class[RTD_TINY].nfree, 4);
	set_counts(512, 256, 128, 0);
	cr_assert_eq(p->class[RTD_TINY].total, 512);
	b->does = STANDS;
	rx_frames(f, 50, 64);
	cr_assert_eq(dropped_all(), 0);
	b->does = TAKES;
	core_run();
	cr_assert_eq(got_of(b, 0), 114);
}

/* ---- hostile ones ---- */

/* Anything but what it should send, as fast as it can; another pair notices nothing. */
Test(rtd_fair, hostile_source)
{
	struct frame good = frame(0x1005, 2, 1), bad = frame(0x1006, 2, 2);
	uint8_t bytes[512];
	unsigned i, k, len;

	rnd_begin();
	w.by_default = STANDS;
	end_at(2, 1)->does = end_at(1, 5)->does = end_at(1, 6)->does = TAKES;
	good.env.account = announce(5, NULL);
	bad.env.account = announce(6, NULL);
	w.ngot = 0;
	for (i = 0; i < 20000; i++) {
		switch (rnd(4)) {
		case 0:			/* any bytes, some with a good start */
			len = (unsigned)rnd(sizeof(bytes));
			for (k = 0; k < len; k++)
				bytes[k] = (uint8_t)rnd(256);
			if (len > 4 && rnd(2)) {
				bytes[0] = LNX_ROUTE_MAGIC;
				bytes[1] = LNX_ROUTE_VERSION;
				bytes[2] = (uint8_t)rnd(8);
			}
			rx(0, bytes, len);
			break;
		case 1:			/* new destinations */
			bad.env.rail = at(2, 3 + (unsigned)rnd(50), PORT);
			rx_frame(&bad);
			break;
		case 2:			/* nets that there are not */
			bad.env.rail = at(4 + (unsigned)rnd(100), 1, PORT);
			rx_frame(&bad);
			break;
		default:		/* long frames to one that stands */
			bad.env.rail = at(2, 2, PORT);
			bad.env.len = 72 + (uint32_t)rnd(20000);
			rx_frame(&bad);
			bad.env.len = 72;
		}
		if (i % 10 == 0) {
			good.seq = i / 10;
			rx_frame(&good);
			core_run();
		}
		if (i % 100 == 0)
			later(MS);
	}
	cr_assert_eq(got_of(end_at(2, 1), 0x1005), 2000, "%u",
		     got_of(end_at(2, 1), 0x1005));
	cr_assert_leq(rtd_relay_ndests(w.r), 110);
}

/* ---- everything at random ---- */

Test(rtd_fair, random)
{
	uint32_t next[8][8] = { { 0 } }, last[8][8] = { { 0 } };
	uint64_t in = 0, out = 0;
	uint16_t account[8];
	unsigned i, k;

	rnd_begin();
	for (k = 0; k < 8; k++)
		account[k] = announce(k, NULL);
	w.ngot = 0;
	for (i = 0; i < 30000; i++) {
		unsigned s = (unsigned)rnd(8), d = (unsigned)rnd(8);
		struct frame f = frame(0x1000 + s, 2 + d % 2, 20 + d);

		switch (rnd(16)) {
		case 0:
			end_at(2 + d % 2, 20 + d)->does = (enum does)rnd(FAILS + 1);
			break;
		case 1:
			later(rnd(3 * S));
			break;
		case 2:
			set_counts(3 + (uint32_t)rnd(64), 3 + (uint32_t)rnd(64),
				   4 + (uint32_t)rnd(64), 0);
			break;
		case 3:
			rtd_relay_rail_up(w.r, 1 + (unsigned)rnd(2), rnd(4) > 0, w.now);
			break;
		case 4:
			if (!rnd(4))
				rtd_relay_stop(w.r, w.now);
			else if (rtd_relay_state(w.r) != RTD_ON)
				rtd_relay_start(w.r, w.now);
			break;
		case 5:
			/* Without a buffer there is no answer.  Another account is
			 * another queue: order holds within one. */
			if (announce(s, NULL) && !rtd_relay_held(w.r))
				account[s] = announce(s, NULL);
			break;
		default:
			f.env.account = account[s];
			f.env.len = 72 + (uint32_t)(rnd(3) ? rnd(200) : rnd(9000));
			f.seq = ++next[s][d];
			rx_frame(&f);
			in++;
		}
		if (rnd(3))
			core_run();
		for (k = 0; k < w.ngot; k++) {
			const struct got *g = &w.log[k];
			struct sockaddr_in to;

			if (g->kind != LNX_ROUTE_FRAME)
				continue;
			memcpy(&to, g->env.rail.raw, sizeof(to));
			s = (unsigned)(g->src - 0x1000);
			d = (ntohl(to.sin_addr.s_addr) & 0xffff) - 20;
			/* Each pair in order, and nothing twice. */
			cr_assert_gt(g->seq, last[s][d], "round %u: %u behind %u", i,
				     g->seq, last[s][d]);
			last[s][d] = g->seq;
			out++;
		}
		w.ngot = 0;
		/* What came was sent, dropped, or is there. */
		cr_assert_eq(in, rtd_relay_counts(w.r)->frames_out + dropped_all() +
				 rtd_relay_held(w.r), "round %u", i);
	}
	for (k = 1; k < 3; k++)
		rtd_relay_rail_up(w.r, k, true, w.now);
	cr_assert_gt(out, 200);
	cr_assert_eq(out, rtd_relay_counts(w.r)->frames_out);
}
