/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gateways in a ring: each has a rail in the net of the one before it and in that of the one behind
 * it, and leads over that one to a net that there is not.  What is sent to a rail of another one
 * comes there, in the order in which it left.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lnxrtd/relay.h"

#define MS	1000000ull
#define S	1000000000ull
#define RING	4u
#define END_PORT 4711u

static struct ring {
	struct rtd_settings s[RING];
	struct rtd_relay *r[RING];
	struct rtd_buf *landing[RING][2];
	struct lnx_nets nets;
	struct lnx_routes routes[RING];
	struct lnx_addr_rail to[RING][16];	/* that each has opened */
	unsigned nto[RING];
	struct {
		unsigned from, to;
		struct rtd_buf *buf;
	} way[4096];
	unsigned nway;
	uint64_t now;
	bool dead[RING];
	struct lnx_gw_info info[RING];	/* the last one to an end of each */
} w;

/* Rail k of gateway i: 0 in the net of the one before, 1 in its own. */
static struct lnx_addr_rail at(unsigned net, unsigned host, unsigned port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(10u << 24 | net << 16 | host) };
	struct lnx_addr_rail a = { .prov = LNX_PROV_TCP, .group = (uint16_t)net,
				   .rawlen = sizeof(in) };

	memcpy(a.raw, &in, sizeof(in));
	return a;
}

static struct lnx_addr_rail rail_of(unsigned i, unsigned k)
{
	return at(1 + (i + RING - 1 + k) % RING, 200 + i, LNX_ROUTE_PORT);
}

/* ---- the core ---- */

static unsigned self(const void *arg)
{
	return (unsigned)((struct rtd_relay *const *)arg - w.r);
}

static int core_open(void *arg, unsigned rail, const struct lnx_addr_rail *to, uint64_t *handle)
{
	unsigned i = self(arg);

	(void)rail;
	cr_assert_lt(w.nto[i], 16);
	w.to[i][w.nto[i]] = *to;
	*handle = w.nto[i]++;
	return 0;
}

static void core_close(void *arg, unsigned rail, uint64_t handle)
{
	(void)arg, (void)rail, (void)handle;
}

static int core_send(void *arg, unsigned rail, uint64_t handle, struct rtd_buf *buf)
{
	(void)rail;
	cr_assert_lt(w.nway, 4096);
	w.way[w.nway].from = self(arg);
	w.way[w.nway].to = (unsigned)handle;
	w.way[w.nway++].buf = buf;
	return 0;
}

static void rx(unsigned i, unsigned k, const void *bytes, size_t len)
{
	struct rtd_buf *buf = w.landing[i][k];

	memcpy(buf->bytes, bytes, len);
	if (!rtd_relay_rx(w.r[i], k, buf, len, w.now))
		return;
	w.landing[i][k] = rtd_relay_landing(w.r[i]);
	cr_assert_not_null(w.landing[i][k]);
}

static void deliver(unsigned from, const struct lnx_addr_rail *to, const struct rtd_buf *buf)
{
	unsigned i, k;

	for (i = 0; i < RING; i++)
		for (k = 0; k < 2; k++) {
			struct lnx_addr_rail a = rail_of(i, k);

			if (!memcmp(&a, to, sizeof(a)) && !w.dead[i])
				rx(i, k, buf->bytes, buf->len);
		}
	if (to->raw[3] == (uint8_t)END_PORT && lnx_route_kind(buf->bytes, buf->len) ==
						       LNX_ROUTE_GW_INFO)
		cr_assert_eq(lnx_wire_gw_info_get(&w.info[from], buf->bytes, buf->len, NULL), 0);
}

/* Until nothing moves. */
static void run(void)
{
	unsigned i, steps = 0;

	do {
		for (i = 0; i < RING; i++)
			rtd_relay_run(w.r[i], w.now);
		for (i = 0; i < w.nway; i++) {
			struct rtd_buf *buf = w.way[i].buf;
			unsigned from = w.way[i].from;

			deliver(from, &w.to[from][w.way[i].to], buf);
			rtd_relay_sent(w.r[from], buf, 0, w.now);
		}
		steps += w.nway != 0;
		i = w.nway;
		w.nway = 0;
	} while (i && steps < 1000);
	cr_assert_lt(steps, 1000, "it never ends");
}

static void later(uint64_t ns)
{
	uint64_t end = w.now + ns;

	for (; w.now < end; w.now += 10 * MS)
		run();
}

/* ---- the ring ---- */

static void begin(void)
{
	struct rtd_ops ops = { .open = core_open, .close = core_close, .send = core_send };
	struct lnx_refusal why;
	unsigned i, k;

	memset(&w, 0, sizeof(w));
	w.now = 1000 * S;
	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16;tcp2=10.2.0.0/16;tcp3=10.3.0.0/16;"
				    "tcp4=10.4.0.0/16;tcp9=10.9.0.0/16", &w.nets, &why), 0);
	for (i = 0; i < RING; i++) {
		char text[64];

		lnx_routes_init(&w.routes[i], 1);
		snprintf(text, sizeof(text), "tcp9 hop=4 via 10.%u.0.%u@tcp%u", 1 + i,
			 200 + (i + 1) % RING, 1 + i);
		cr_assert_eq(lnx_routes_parse(&w.routes[i], &w.nets, text, NULL, &why), 0, "%s",
			     why.why);
		rtd_settings_default(&w.s[i]);
		w.s[i].id = 0x100 + i;
		w.s[i].secret = i;
		ops.arg = &w.r[i];
		w.r[i] = rtd_relay_create(&w.s[i], &ops, &w.nets, &w.routes[i]);
		cr_assert_not_null(w.r[i]);
		for (k = 0; k < 2; k++) {
			struct rtd_rail rail = { .addr = rail_of(i, k), .up = true,
						 .frame_max = LNX_FRAME_LARGE, .tx_max = 64 };

			cr_assert_eq(lnx_nid_of(&w.nets, &rail.addr, &rail.nid), 0);
			cr_assert_eq(rtd_relay_add_rail(w.r[i], &rail), (int)k);
			w.landing[i][k] = rtd_relay_landing(w.r[i]);
		}
		cr_assert_eq(rtd_relay_start(w.r[i], w.now), 0);
	}
}

static void end(void)
{
	unsigned i, k;

	run();
	for (i = 0; i < RING; i++) {
		for (k = 0; k < 2; k++)
			rtd_relay_landing_back(w.r[i], w.landing[i][k]);
		rtd_relay_destroy(w.r[i]);
		lnx_routes_fini(&w.routes[i]);
	}
}

TestSuite(rtd_ring, .init = begin, .fini = end);

/* A frame to the net that there is not: it goes round, and gateways ask each other. */
static void frame(unsigned i)
{
	struct lnx_route_env env = { .hops_left = 8, .len = 72, .rail = at(9, 1, END_PORT) };
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .src = 1, .dst = 2, .len = 8 };
	struct lnx_wire_hdr wire;
	uint8_t buf[136] = { 0 };

	cr_assert_eq(lnx_route_put(buf, &env), 64);
	lnx_hdr_put(&wire, &h);
	memcpy(buf + 64, &wire, sizeof(wire));
	rx(i, 1, buf, sizeof(buf));
}

/* An end of each gateway's own net: how long may its frames be that go on? */
static uint32_t behind(unsigned i)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = 2, .id = 0x500 + i, .nonce = 1 + i,
				  .rails = { .n = 1, .rail = { at(1 + i, 5, END_PORT) } } };
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];

	rx(i, 1, buf, (size_t)lnx_wire_gw_hello_put(buf, sizeof(buf), &h));
	run();
	return w.info[i].behind;
}

static void limit(unsigned i, uint32_t frame_max)
{
	w.s[i].frame_max = frame_max;
	cr_assert_eq(rtd_relay_set(w.r[i], &w.s[i]), 0);
}

/* One gateway of a ring takes shorter frames for a time: all hear that, and that it is over. */
Test(rtd_ring, shorter_for_a_time)
{
	const uint32_t less = LNX_ROUTE_HEAD + 60 * LNX_GW_BEHIND_UNIT;
	unsigned i, one;

	for (i = 0; i < RING; i++)
		frame(i);
	later(2 * S);
	for (i = 0; i < RING; i++)
		cr_assert_eq(behind(i), LNX_FRAME_LARGE, "gateway %u", i);
	for (one = 0; one < RING; one++) {
		limit(one, less);
		later(3 * S);
		for (i = 0; i < RING; i++)
			cr_expect_eq(behind(i), less, "gateway %u while %u takes less: %u", i,
				     one, behind(i));
		limit(one, LNX_FRAME_LARGE);
		later(3 * S);
		for (i = 0; i < RING; i++)
			cr_expect_eq(behind(i), LNX_FRAME_LARGE, "gateway %u after %u: %u", i,
				     one, behind(i));
	}
}

/* Two of them: the shorter one counts, whichever is nearer. */
Test(rtd_ring, two_shorter_ones)
{
	const uint32_t less = LNX_ROUTE_HEAD + 60 * LNX_GW_BEHIND_UNIT;
	const uint32_t least = LNX_ROUTE_HEAD + 50 * LNX_GW_BEHIND_UNIT;
	unsigned i;

	for (i = 0; i < RING; i++)
		frame(i);
	limit(1, less);
	limit(2, least);
	later(3 * S);
	for (i = 0; i < RING; i++)
		cr_expect_eq(behind(i), least, "gateway %u", i);
	limit(2, LNX_FRAME_LARGE);
	later(3 * S);
	for (i = 0; i < RING; i++)
		cr_expect_eq(behind(i), less, "gateway %u", i);
}

/* One that takes shorter frames dies: after some time what it said is over, too. */
Test(rtd_ring, shorter_one_dies)
{
	const uint32_t less = LNX_ROUTE_HEAD + 60 * LNX_GW_BEHIND_UNIT;
	unsigned i;

	for (i = 0; i < RING; i++)
		frame(i);
	limit(2, less);
	later(3 * S);
	w.dead[2] = true;
	later(20 * S);
	cr_expect_eq(behind(0), less, "it may be back soon");
	for (i = 0; i < 8; i++) {
		later(10 * S);
		behind(0);
		frame(0);
	}
	cr_expect_eq(behind(0), LNX_FRAME_LARGE);
	cr_expect_eq(behind(3), LNX_FRAME_LARGE);
	w.dead[2] = false;
	frame(1);
	later(3 * S);
	cr_expect_eq(behind(0), less);
}
