/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The gateway, and what others send in the name of a source: what they cannot know is its
 * account, which is told to its address alone.
 */
#include "rtd_world.h"

TestSuite(rtd_hostile, .init = world_begin, .fini = world_end);

#define VICTIM	0x1005u			/* host 5 of net 1 */

/* The info that was sent last to the process at that host and port of net 1; false: none. */
static bool info_to(unsigned host, unsigned port, struct lnx_gw_info *info)
{
	struct lnx_addr_rail a = at(1, host, port);
	unsigned i;

	for (i = w.ngot; i--;)
		if (w.log[i].kind == LNX_ROUTE_GW_INFO &&
		    !memcmp(&w.end[w.log[i].end].addr, &a, sizeof(a))) {
			cr_assert_eq(lnx_wire_gw_info_get(info, w.log[i].bytes, w.log[i].len,
							  NULL), 0);
			return true;
		}
	return false;
}

/* How many infos with that nonce were sent there. */
static unsigned infos_to(unsigned host, uint32_t nonce)
{
	struct lnx_addr_rail a = at(1, host, PORT);
	struct lnx_gw_info info;
	unsigned i, n = 0;

	for (i = 0; i < w.ngot; i++)
		n += w.log[i].kind == LNX_ROUTE_GW_INFO &&
		     !memcmp(&w.end[w.log[i].end].addr, &a, sizeof(a)) &&
		     !lnx_wire_gw_info_get(&info, w.log[i].bytes, w.log[i].len, NULL) &&
		     info.gw.nonce == nonce;
	return n;
}

struct said {
	uint64_t id;
	uint16_t account;
	uint32_t nonce;
	uint8_t flags;
	unsigned rail;			/* that it was sent from */
	unsigned host[3], nhost;	/* where its rails are */
};

static void say(const struct said *x)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = 2, .id = x->id, .nonce = x->nonce,
				  .account = x->account, .flags = x->flags,
				  .rail = (uint16_t)x->rail, .rails.n = x->nhost };
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	unsigned i;
	int len;

	for (i = 0; i < x->nhost; i++) {
		h.rails.place[i] = (uint8_t)i;
		h.rails.rail[i] = at(1, x->host[i], PORT);
	}
	len = lnx_wire_gw_hello_put(buf, sizeof(buf), &h);
	cr_assert_gt(len, 0);
	rx(0, buf, (size_t)len);
	core_run();
}

/* Something that sources are told unasked. */
static void news(void)
{
	static bool up = true;

	w.ngot = 0;
	up = !up;
	rtd_relay_rail_up(w.r, 2, up, w.now);
	later(2 * S);
}

/* One that knows the id of a source, says a hello with an address of its own: notes, news and
 * answers for the source go on to where that is. */
Test(rtd_hostile, hello_from_elsewhere)
{
	uint16_t account = announce(5, NULL), guess;
	struct said own = { .id = VICTIM, .account = account, .nonce = 7, .host = { 5 },
			    .nhost = 1 };
	struct lnx_gw_info info;
	struct frame f = frame(VICTIM, 2, 1);
	struct lnx_gw_ask a = { .id = VICTIM, .account = account, .nonce = 9,
				.rail = at(2, 1, PORT) };
	struct lnx_route_note n;
	uint8_t buf[64];
	unsigned i;

	say(&own);
	for (i = 0; i < 3; i++) {
		struct said forged = { .id = VICTIM, .nonce = 666, .flags = LNX_GW_F_GATEWAY,
				       .host = { 6 }, .nhost = 1 };

		/* In front of the source's own address, behind it, and alone. */
		if (i) {
			forged.nhost = 2;
			forged.host[i == 1] = 5;
			forged.host[i == 2] = 6;
			forged.rail = i == 2;
		}
		for (guess = 0; guess < 3; guess++) {
			forged.account = guess == 2 ? account : guess;
			say(&forged);
		}
	}
	news();
	cr_expect_geq(infos_to(5, 7), 1, "its news do not come");
	cr_assert(info_to(5, PORT, &info));
	cr_expect_eq(info.gw.account, account);
	for (i = 0; i < w.ngot; i++)
		if (w.log[i].kind == LNX_ROUTE_GW_INFO &&
		    !lnx_wire_gw_info_get(&info, w.log[i].bytes, w.log[i].len, NULL))
			cr_expect_eq(info.gw.account == account, info.gw.nonce == 7);
	w.ngot = 0;
	f.env.account = account;
	f.env.hops_left = 0;
	rx_frame(&f);
	core_run();
	cr_expect(note_to(5, &n), "its note does not come");
	cr_expect_not(note_to(6, &n));
	w.ngot = 0;
	lnx_wire_gw_ask_put(buf, &a);
	rx(0, buf, 64);
	rtd_relay_told(w.r, w.asked.cookie, LNX_TELL_ALIVE, w.now);
	core_run();
	cr_assert_eq(w.ngot, 1);
	cr_expect_eq(&w.end[w.log[0].end], end_at(1, 5), "its answer goes elsewhere");
	/* The account is not that of the id at another place. */
	a.account++;
	lnx_wire_gw_ask_put(buf, &a);
	w.asked.cookie = 0;
	rx(0, buf, 64);
	cr_expect_eq(w.asked.cookie, 0, "asked with another account");
}

/* One says a hello with the address of the source itself: news come with the nonce that the source
 * knows still, over the rail that it has named. */
Test(rtd_hostile, hello_from_its_place)
{
	struct said own = { .id = VICTIM, .nonce = 7, .host = { 5, 15 }, .nhost = 2 };
	struct said forged = own;
	struct lnx_gw_info info;

	say(&own);
	cr_assert(info_to(5, PORT, &info));
	forged.nonce = 666;
	forged.rail = 1;
	say(&forged);
	cr_expect_eq(infos_to(15, 666), 1, "it is answered");
	forged.account = (uint16_t)(info.gw.account + 1);
	say(&forged);
	news();
	cr_expect_eq(infos_to(5, 7), 1);
	/* Without an account yet it may have been the source. */
	cr_expect_eq(infos_to(5, 666), 1);
	/* The source itself. */
	own.account = info.gw.account;
	own.nonce = 8;
	own.rail = 1;
	say(&own);
	news();
	cr_expect_eq(infos_to(15, 8), 1);
	cr_expect_eq(w.ngot, 1);
}

/* Hellos in many names with the address of a process: what it and others of its host may fill
 * shrinks by half at most, and its host has room for another process. */
Test(rtd_hostile, many_at_its_address)
{
	struct said own = { .id = VICTIM, .nonce = 7, .host = { 5 }, .nhost = 1,
			    .account = announce(5, NULL) };
	uint16_t other;
	unsigned i;

	say(&own);
	cr_assert_eq(source_view(own.account).large, 31);
	for (i = 0; i < 1100; i++) {
		if (i % 40 == 0) {
			later(S);
			say(&own);
		}
		announce_as(0x20000 + i, 5, PORT, NULL);
		w.ngot = 0;
	}
	cr_expect_geq(source_view(own.account).large, 15, "%u", source_view(own.account).large);
	cr_expect_geq(source_view(own.account).small, 64, "%u", source_view(own.account).small);
	later(S);
	other = announce_as(0x1007, 5, PORT + 1, NULL);
	cr_assert_neq(other, 0, "no room for another process");
	cr_expect_geq(source_view(own.account).large, 15, "%u", source_view(own.account).large);
	cr_expect_leq(rtd_relay_nsources(w.r), 1024);
}

/* An endpoint that has opened a rail anew is at another place. */
Test(rtd_hostile, another_port)
{
	struct lnx_gw_info info;
	uint16_t before = announce_as(VICTIM, 5, PORT, NULL);
	uint16_t after = announce_as(VICTIM, 5, PORT + 1, &info);
	struct frame f = frame(VICTIM, 2, 1);

	cr_assert(before && after);
	f.env.account = after;
	rx_frame(&f);
	core_run();
	cr_expect_eq(got_of(end_at(2, 1), 0), 1);
	later(61 * S);
	cr_expect_eq(rtd_relay_nsources(w.r), 0);
}

/* Hellos in the names of many keep none from those that are known. */
Test(rtd_hostile, hellos_in_many_names)
{
	struct said own = { .id = VICTIM, .nonce = 7, .host = { 5 }, .nhost = 1,
			    .account = announce(5, NULL) }, many = { .nhost = 1, .nonce = 1 };
	unsigned i;

	for (i = 0; i < 20000; i++) {
		many.id = 0x10000 + i;
		many.host[0] = i % 3 ? 1000 + i % 50000 : 5;
		if (many.host[0] % 256 == 0 || many.host[0] == 254)
			continue;
		w.by_default = STANDS;
		say(&many);
		w.ngot = 0;
		if (w.nend > ENDS - 8)
			break;
	}
	/* All that may come in this second has come. */
	for (i = 0; i < 6000; i++) {
		many.id = 0x20000 + i;
		many.host[0] = 5;
		say(&many);
		w.ngot = 0;
	}
	say(&own);
	cr_expect_eq(infos_to(5, 7), 1, "one that is known has no answer");
	cr_expect_leq(rtd_relay_nsources(w.r), w.s.sources);
}

/* Accounts stand in frames: they are not to be counted up. */
Test(rtd_hostile, accounts)
{
	unsigned i, near = 0;
	uint16_t last = 0;

	for (i = 0; i < 100; i++) {
		uint16_t account = announce_as(0x2000 + i, 5, 2000 + i, NULL);

		near += (uint16_t)(account - last) < 16;
		last = account;
	}
	cr_expect_lt(near, 3);
}
