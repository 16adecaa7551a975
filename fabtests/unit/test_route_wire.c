/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What endpoints and gateways exchange: which bytes are valid, and why others are not. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "seed.h"
#include "wire/route.h"

#define ID	0x1122334455667788ull
#define KEY	0xa1a2a3a4a5a6a7a8ull
#define INNER	100u

static uint8_t buf[LNX_GW_INFO_BYTES_MAX + 64];

static struct lnx_addr_rail ip4(const char *text, unsigned port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	struct lnx_addr_rail r = { .prov = LNX_PROV_TCP, .group = 0x0a0b,
				   .rawlen = sizeof(in) };

	inet_pton(AF_INET, text, &in.sin_addr);
	memcpy(r.raw, &in, sizeof(in));
	return r;
}

static struct lnx_addr_rail ip6(const char *text, unsigned port)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)port) };
	struct lnx_addr_rail r = { .prov = LNX_PROV_TCP_RXM, .group = 7,
				   .rawlen = sizeof(in) };

	inet_pton(AF_INET6, text, &in.sin6_addr);
	memcpy(r.raw, &in, sizeof(in));
	return r;
}

static struct lnx_addr_rail raw(unsigned len)
{
	struct lnx_addr_rail r = { .prov = LNX_PROV_CXI, .group = 0xffff,
				   .rawlen = (uint8_t)len };

	memset(r.raw, 0xab, len);
	return r;
}

static struct lnx_route_env env(void)
{
	return (struct lnx_route_env){
		.hops_left = 6, .hops_done = 2, .account = 0x0102, .via = ID,
		.key = KEY, .len = INNER, .rail = ip4("10.1.2.3", 4711),
	};
}

/* An envelope with its frame: the number of bytes. */
static size_t frame(const struct lnx_route_env *e)
{
	cr_assert_eq(lnx_route_put(buf, e), 64);
	memset(buf + 64, 0, e->len);
	buf[64] = LNX_WIRE_MAGIC;
	return 64 + e->len;
}

/* From a copy without a byte more, so that sanitizers see a read behind its end. */
static int get_env(struct lnx_route_env *e, size_t len, const char **why)
{
	uint8_t *exact = malloc(len ? len : 1);
	int ret;

	memcpy(exact, buf, len);
	ret = lnx_route_get(e, exact, len, why);
	free(exact);
	return ret;
}

/* ---- the envelope ---- */

/* The bytes themselves: a change of the layout is a new version. */
Test(route_wire, envelope_bytes)
{
	static const uint8_t want[] = {
		0x52, 1, 1, 0,			/* magic, version, kind, flags */
		6, 2, 0x02, 0x01,		/* hops left, done; account */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1,
		100, 0, 0, 0,
		2, 0x0b, 0x0a, 10, 1, 2, 3, 0x67, 0x12,
	};
	struct lnx_route_env e = env();

	frame(&e);
	cr_assert_eq(memcmp(buf, want, sizeof(want)), 0);
	for (size_t i = sizeof(want); i < 64; i++)
		cr_assert_eq(buf[i], 0, "byte %zu", i);
	cr_assert_eq(memcmp(lnx_route_rail(buf), want + 28, 9), 0);
	cr_assert_eq(lnx_route_kind(buf, 64), LNX_ROUTE_FRAME);
	cr_assert_eq(lnx_route_kind(buf, 3), 0);
	buf[0] = LNX_WIRE_MAGIC;
	cr_assert_eq(lnx_route_kind(buf, 64), 0);
}

Test(route_wire, envelope_returns)
{
	struct lnx_addr_rail rails[] = { ip4("10.1.2.3", 4711), ip6("fd00::1", 9),
					 raw(1), raw(32) };
	struct lnx_route_env e = env(), back;

	for (size_t i = 0; i < LNX_ARRAY_SIZE(rails); i++) {
		memset(&back, 0xff, sizeof(back));
		e.rail = rails[i];
		cr_assert_eq(get_env(&back, frame(&e), NULL), 0, "rail %zu", i);
		cr_assert_eq(back.hops_left, 6);
		cr_assert_eq(back.hops_done, 2);
		cr_assert_eq(back.account, 0x0102);
		cr_assert_eq(back.via, ID);
		cr_assert_eq(back.key, KEY);
		cr_assert_eq(back.len, INNER);
		cr_assert_eq(memcmp(&back.rail, &rails[i], sizeof(rails[i])), 0);
	}
}

/* The change of one byte, and what becomes of it. */
struct change {
	unsigned at;
	uint8_t value;
	int err;
	const char *why;
};

Test(route_wire, envelope_refused)
{
	static const struct change changes[] = {
		{ 0, 0x4c, -EBADMSG, "0x52" },
		{ 1, 2, -EPROTONOSUPPORT, "version" },
		{ 1, 0, -EPROTONOSUPPORT, "version" },
		{ 2, 2, -EBADMSG, "kind" },
		{ 3, 1, -EBADMSG, "flags" },
		{ 4, 14, -EBADMSG, "hops" },		/* 14 and 2 */
		{ 4, 255, -EBADMSG, "hops" },
		{ 5, 10, -EBADMSG, "hops" },
		{ 5, 0, -EBADMSG, "last gateway" },	/* but via is not 0 */
		{ 24, 99, -EMSGSIZE, "length" },
		{ 24, 101, -EMSGSIZE, "length" },
		{ 24, 63, -EMSGSIZE, "length" },	/* less than a header */
		{ 26, 0xff, -EMSGSIZE, "length" },	/* longer than any frame */
		{ 28, 1, -EBADMSG, "destination" },	/* shm */
		{ 28, 0x42, -EBADMSG, "destination" },	/* IPv6: cut into zeros */
		{ 31, 224, -EBADMSG, "destination" },	/* multicast */
		{ 63, 1, -EBADMSG, "destination" },	/* behind the rail */
		{ 64, 0x52, -EBADMSG, "frame" },	/* an envelope in it */
	};
	struct lnx_route_env e = env(), back;
	size_t i, len;

	for (i = 0; i < LNX_ARRAY_SIZE(changes); i++) {
		const char *why = NULL;
		int ret;

		len = frame(&e);
		buf[changes[i].at] = changes[i].value;
		ret = get_env(&back, len, &why);
		cr_expect_eq(ret, changes[i].err, "change %zu: %d", i, ret);
		cr_expect(why && strstr(why, changes[i].why), "change %zu: %s", i,
			  why ? why : "nothing");
	}
	/* Port 0. */
	len = frame(&e);
	buf[35] = buf[36] = 0;
	cr_assert_eq(get_env(&back, len, NULL), -EBADMSG);
	/* Every other length. */
	len = frame(&e);
	for (i = 0; i < len; i++)
		cr_assert_eq(get_env(&back, i, NULL), -EMSGSIZE, "%zu bytes", i);
	cr_assert_eq(get_env(&back, len + 1, NULL), -EMSGSIZE);
}

Test(route_wire, envelope_not_put)
{
	struct lnx_route_env good = env(), e;

	e = good, e.hops_left = 14;
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	e = good, e.via = 0;
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	e = good, e.hops_done = 0;
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	e = good, e.len = 63;
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	e = good, e.len = LNX_ROUTE_INNER_MAX + 1;
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	e = good, e.rail.group = 0;
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	/* Link-local: useless on another host. */
	e = good, e.rail = ip6("fe80::1", 9);
	cr_expect_eq(lnx_route_put(buf, &e), -EINVAL);
	e = good, e.len = LNX_ROUTE_INNER_MAX;
	cr_expect_eq(lnx_route_put(buf, &e), 64);
	e = good, e.hops_left = 13;
	cr_expect_eq(lnx_route_put(buf, &e), 64);
}

Test(route_wire, forwarded)
{
	struct lnx_route_env e = env(), back;
	size_t len;
	unsigned i;

	e.via = 0;
	e.hops_done = 0;
	e.hops_left = 15;
	len = frame(&e);
	for (i = 1; i <= 15; i++) {
		lnx_route_forward(buf, ID + i, (uint16_t)i);
		cr_assert_eq(get_env(&back, len, NULL), 0);
		cr_assert_eq(back.hops_left, 15 - i);
		cr_assert_eq(back.hops_done, i);
		cr_assert_eq(back.via, ID + i);
		cr_assert_eq(back.account, i);
		cr_assert_eq(back.key, KEY);
		cr_assert_eq(memcmp(&back.rail, &e.rail, sizeof(e.rail)), 0);
	}
}

/* ---- notes ---- */

static struct lnx_route_note note(void)
{
	return (struct lnx_route_note){
		.reason = LNX_NOTE_REFUSED, .hops_done = 1, .account = 3, .id = ID,
		.key = KEY, .count = 9, .rail = ip4("10.1.2.3", 4711),
		.src = 0x51, .dst = 0x52, .seq = 0x53, .wait_ms = 1000,
	};
}

Test(route_wire, notes)
{
	struct lnx_route_note n = note(), back = { 0 };
	const char *why;

	cr_assert_eq(lnx_route_note_put(buf, &n), LNX_ROUTE_NOTE_LEN);
	cr_assert_eq(lnx_route_note_get(&back, buf, 88, &why), 0);
	cr_assert_eq(memcmp(&n.rail, &back.rail, sizeof(n.rail)), 0);
	cr_assert(back.reason == n.reason && back.hops_done == 1 && back.account == 3 &&
		  back.id == ID && back.key == KEY && back.count == 9 &&
		  back.src == 0x51 && back.dst == 0x52 && back.seq == 0x53 &&
		  back.wait_ms == 1000);
	cr_assert_eq(buf[4], 2);
	cr_assert_eq(buf[64], 0x51);
	cr_assert_eq(buf[80], 0x53);
	cr_assert_eq(lnx_route_note_get(&back, buf, 87, &why), -EMSGSIZE);
	cr_assert_eq(lnx_route_note_get(&back, buf, 89, &why), -EMSGSIZE);
	buf[4] = 0;
	cr_assert_eq(lnx_route_note_get(&back, buf, 88, &why), -EBADMSG);
	cr_assert(strstr(why, "reason"));
	buf[4] = LNX_NOTE_MAX;
	cr_assert_eq(lnx_route_note_get(&back, buf, 88, &why), -EBADMSG);
	n.count = 0;
	cr_assert_eq(lnx_route_note_put(buf, &n), -EINVAL);
	n.count = 1, n.id = 0;
	cr_assert_eq(lnx_route_note_put(buf, &n), -EINVAL);
	cr_assert_str_eq(lnx_route_reason_name(LNX_NOTE_TTL), "ttl");
	for (unsigned i = 1; i < LNX_NOTE_MAX; i++)
		cr_assert_str_neq(lnx_route_reason_name(i), "unknown");
	cr_assert_str_eq(lnx_route_reason_name(0), "unknown");
	cr_assert_str_eq(lnx_route_reason_name(LNX_NOTE_MAX), "unknown");
}

/* ---- hello and info ---- */

static struct lnx_gw_hello hello(unsigned nrail)
{
	struct lnx_gw_hello h = {
		.flags = LNX_GW_F_GATEWAY, .oldest = 1, .newest = 1, .account = 4,
		.id = ID, .key = KEY, .nonce = 77, .host = 5, .rail = 0,
	};
	unsigned i;

	for (i = 0; i < nrail; i++) {
		h.rails.place[i] = (uint8_t)i;
		h.rails.rail[i] = i % 3 ? ip4("10.0.0.1", 1000 + i) : raw(32);
	}
	h.rails.n = nrail;
	return h;
}

static struct lnx_gw_info info(unsigned nrail, unsigned nnet)
{
	struct lnx_gw_info in = { .gw = hello(nrail), .large = 32, .small = 64,
				  .frame_max = LNX_FRAME_MAX, .hops = 3 };
	unsigned i;

	in.gw.flags = LNX_GW_F_ROUTING | LNX_GW_F_DRAINING;
	for (i = 0; i < nrail; i++) {
		in.state[i].up = i % 2;
		in.state[i].health = (uint16_t)(1000 - i);
	}
	for (i = 0; i < nnet; i++)
		in.net[i] = (struct lnx_wire_gw_net){ .prov = LNX_PROV_TCP, .hops = 1,
						      .group = (uint16_t)(i + 1) };
	in.nnet = nnet;
	return in;
}

static void same_hello(const struct lnx_gw_hello *a, const struct lnx_gw_hello *b)
{
	unsigned i;

	cr_assert(a->flags == b->flags && a->oldest == b->oldest &&
		  a->newest == b->newest && a->account == b->account &&
		  a->id == b->id && a->key == b->key && a->nonce == b->nonce &&
		  a->rail == b->rail && a->host == b->host);
	cr_assert_eq(a->rails.n, b->rails.n);
	for (i = 0; i < a->rails.n; i++) {
		cr_assert_eq(a->rails.place[i], b->rails.place[i]);
		cr_assert_eq(memcmp(&a->rails.rail[i], &b->rails.rail[i],
				    sizeof(a->rails.rail[i])), 0);
	}
}

/* From one rail, which the blob has, to as many as there can be. */
Test(route_wire, hellos)
{
	unsigned n;

	for (n = 1; n <= LNX_WIRE_RAILS_MAX; n++) {
		struct lnx_gw_hello h = hello(n), back;
		int len = lnx_wire_gw_hello_put(buf, sizeof(buf), &h), i;

		cr_assert_geq(len, LNX_GW_HELLO_BYTES, "%u rails: %d", n, len);
		cr_assert_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len, NULL), 0);
		same_hello(&h, &back);
		for (i = 0; i < len; i++)
			cr_assert_neq(lnx_wire_gw_hello_get(&back, buf, (size_t)i, NULL), 0,
				      "%u rails, %d of %d bytes", n, i, len);
		cr_assert_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len + 1, NULL),
			     -EMSGSIZE);
		cr_assert_eq(lnx_wire_gw_hello_put(buf, (size_t)len - 1, &h), -EINVAL);
	}
}

Test(route_wire, hellos_refused)
{
	struct lnx_gw_hello good = hello(2), h, back;
	const char *why = NULL;
	int len;

	h = good, h.id = 0;
	cr_expect_eq(lnx_wire_gw_hello_put(buf, sizeof(buf), &h), -EINVAL);
	h = good, h.nonce = 0;
	cr_expect_eq(lnx_wire_gw_hello_put(buf, sizeof(buf), &h), -EINVAL);
	h = good, h.rails.n = 0;
	cr_expect_eq(lnx_wire_gw_hello_put(buf, sizeof(buf), &h), -EINVAL);
	h = good, h.rail = 2;
	cr_expect_eq(lnx_wire_gw_hello_put(buf, sizeof(buf), &h), -EINVAL);
	h = good, h.oldest = 2;
	cr_expect_eq(lnx_wire_gw_hello_put(buf, sizeof(buf), &h), -EINVAL);
	h = good, h.flags = LNX_GW_F_ROUTING;
	cr_expect_eq(lnx_wire_gw_hello_put(buf, sizeof(buf), &h), -EINVAL);

	len = lnx_wire_gw_hello_put(buf, sizeof(buf), &good);
	buf[32 + 8] ^= 1;		/* the id in the address is another one */
	cr_expect_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len, &why), -EBADMSG);
	cr_expect(strstr(why, "address"));
	len = lnx_wire_gw_hello_put(buf, sizeof(buf), &good);
	buf[32 + 5] |= LNX_WIRE_ADDR_F_SHM;
	cr_expect_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len, &why), -EBADMSG);
	len = lnx_wire_gw_hello_put(buf, sizeof(buf), &good);
	buf[31] = 1;			/* a list that is longer than all of it */
	cr_expect_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len, &why), -EMSGSIZE);
	len = lnx_wire_gw_hello_put(buf, sizeof(buf), &good);
	buf[28] = 9;
	cr_expect_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len, &why), -EBADMSG);
	cr_expect(strstr(why, "rail"));
	/* An info is no hello, and a hello none. */
	len = lnx_wire_gw_hello_put(buf, sizeof(buf), &good);
	buf[2] = LNX_ROUTE_GW_INFO;
	cr_expect_eq(lnx_wire_gw_hello_get(&back, buf, (size_t)len, &why), -EBADMSG);
}

Test(route_wire, infos)
{
	unsigned n, k;

	for (n = 1; n <= LNX_WIRE_RAILS_MAX; n += 5) {
		for (k = 0; k <= LNX_GW_NETS_MAX; k += 32) {
			struct lnx_gw_info in = info(n, k), back;
			int len = lnx_wire_gw_info_put(buf, sizeof(buf), &in), i;

			cr_assert_gt(len, 0, "%u rails, %u nets: %d", n, k, len);
			cr_assert_leq(len, LNX_GW_INFO_BYTES_MAX);
			cr_assert_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, NULL), 0);
			same_hello(&in.gw, &back.gw);
			cr_assert(in.large == back.large && in.small == back.small &&
				  in.frame_max == back.frame_max &&
				  in.hops == back.hops && in.nnet == back.nnet);
			cr_assert_eq(memcmp(in.net, back.net, sizeof(in.net)), 0);
			for (i = 0; i < (int)n; i++)
				cr_assert(in.state[i].up == back.state[i].up &&
					  in.state[i].health == back.state[i].health);
			for (i = 0; i < len; i++)
				cr_assert_neq(lnx_wire_gw_info_get(&back, buf, (size_t)i,
								   NULL), 0);
			cr_assert_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len + 1, NULL),
				     -EMSGSIZE);
		}
	}
}

/* How long frames may be that go on, in units. */
Test(route_wire, infos_behind)
{
	struct lnx_gw_info in = info(2, 2), back;
	size_t at;
	unsigned i;
	int len;

	in.behind = 20000;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in.gw.newest = LNX_ROUTE_NEWEST;
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &in);
	cr_assert_gt(len, 0);
	cr_assert_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, NULL), 0);
	cr_expect_eq(back.behind, 20000 - (20000 - 64) % 512);
	in.behind = LNX_ROUTE_HEAD + LNX_FRAME_MAX - 1;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in.behind = LNX_FRAME_LARGE + 1;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	at = (size_t)len - 2 * 4 - 2 * 4 - 1;
	for (i = 0; i < 256; i++) {
		bool good = !i || (i >= LNX_GW_BEHIND_MIN && i <= LNX_GW_BEHIND_MAX);

		buf[at] = (uint8_t)i;
		cr_assert_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, NULL),
			     good ? 0 : -EBADMSG, "%u", i);
		if (good)
			cr_assert_eq(back.behind, i ? 64 + i * 512 : 0, "%u", i);
	}
	/* The longest and the shortest are none in between. */
	for (i = 0; i < 2; i++) {
		in.behind = i ? LNX_FRAME_LARGE : LNX_ROUTE_HEAD + LNX_FRAME_MAX;
		len = lnx_wire_gw_info_put(buf, sizeof(buf), &in);
		cr_assert_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, NULL), 0);
		cr_expect_eq(back.behind, in.behind);
	}
}

Test(route_wire, infos_refused)
{
	struct lnx_gw_info good = info(2, 2), in, back;
	const char *why = NULL;
	int len, rest;

	in = good, in.gw.account = 0;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.hops = 16;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.frame_max = 127;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.frame_max = LNX_FRAME_LARGE + 1;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.state[1].health = 1001;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.net[1].group = 0;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.net[0].prov = LNX_PROV_SHM;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.nnet = LNX_GW_NETS_MAX + 1;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.gw.flags = LNX_GW_F_GATEWAY;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);
	in = good, in.gw.nonce = 0;
	cr_expect_eq(lnx_wire_gw_info_put(buf, sizeof(buf), &in), -EINVAL);

	len = lnx_wire_gw_info_put(buf, sizeof(buf), &good);
	rest = len - 16 - 2 * 4 - 2 * 4;
	buf[rest + 15] = 64;		/* what is behind it, of a version that has no such byte */
	cr_expect_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, &why), -EBADMSG);
	cr_expect(strstr(why, "behind"));
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &good);
	buf[rest + 14] = 3;		/* three nets, but there are two */
	cr_expect_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, &why), -EMSGSIZE);
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &good);
	buf[rest + 13] = 1;		/* one rail, but there are two */
	cr_expect_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, &why), -EBADMSG);
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &good);
	buf[rest + 16] = 1;		/* the state of rail 1, twice */
	cr_expect_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, &why), -EBADMSG);
	len = lnx_wire_gw_info_put(buf, sizeof(buf), &good);
	buf[rest + 17] = 2;		/* a state that there is not */
	cr_expect_eq(lnx_wire_gw_info_get(&back, buf, (size_t)len, &why), -EBADMSG);
}

/* ---- ask and tell ---- */

Test(route_wire, asks)
{
	struct lnx_gw_ask a = { .id = ID, .key = KEY, .account = 8, .nonce = 5,
				.rail = ip6("fd00::2", 4711) }, back;
	const char *why = NULL;
	unsigned i;

	for (i = 0; i < LNX_TELL_MAX; i++) {
		a.tell = (uint8_t)i;
		cr_assert_eq(lnx_wire_gw_ask_put(buf, &a), 64);
		cr_assert_eq(buf[2], i ? LNX_ROUTE_GW_TELL : LNX_ROUTE_GW_ASK);
		cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, NULL), 0);
		cr_assert(back.tell == i && back.id == ID && back.key == KEY &&
			  back.account == 8 && back.nonce == 5);
		cr_assert_eq(memcmp(&back.rail, &a.rail, sizeof(a.rail)), 0);
	}
	/* The kind and the answer must fit. */
	buf[4] = 0;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, &why), -EBADMSG);
	buf[2] = LNX_ROUTE_GW_ASK;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, &why), 0);
	buf[4] = LNX_TELL_ALIVE;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, &why), -EBADMSG);
	cr_assert(strstr(why, "contradict"));
	buf[4] = 0;
	buf[5] = LNX_ROUTE_HOPS_MAX;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, &why), 0);
	cr_assert_eq(back.hops_done, LNX_ROUTE_HOPS_MAX);
	buf[5]++;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, &why), -EBADMSG);
	buf[5] = 0;
	buf[3] = 1;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 64, &why), -EBADMSG);
	buf[3] = 0;
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 63, &why), -EMSGSIZE);
	cr_assert_eq(lnx_wire_gw_ask_get(&back, buf, 65, &why), -EMSGSIZE);
	a.tell = LNX_TELL_MAX;
	cr_assert_eq(lnx_wire_gw_ask_put(buf, &a), -EINVAL);
	a.tell = LNX_TELL_ALIVE, a.hops_done = 1;
	cr_assert_eq(lnx_wire_gw_ask_put(buf, &a), -EINVAL, "an answer goes over no gateway");
	a.tell = 0, a.hops_done = 0, a.nonce = 0;
	cr_assert_eq(lnx_wire_gw_ask_put(buf, &a), -EINVAL);
	cr_assert_str_eq(lnx_route_tell_name(LNX_TELL_RAIL_DOWN), "rail_down");
	cr_assert_str_eq(lnx_route_tell_name(LNX_TELL_MAX), "unknown");
}

/* ---- pull and piece ---- */

static bool same_pull(const struct lnx_route_pull *a, const struct lnx_route_pull *b)
{
	return a->src == b->src && a->dst == b->dst && a->most == b->most &&
	       a->id == b->id && a->key == b->key && a->segment == b->segment &&
	       a->offset == b->offset && a->len == b->len && a->piece == b->piece;
}

Test(route_wire, pulls)
{
	struct lnx_route_pull good = { .src = 1, .dst = 2, .most = 3, .id = 4, .key = 5,
				 .segment = 3, .offset = 6, .len = LNX_PULL_MAX };
	struct lnx_route_pull p = good, back;
	struct lnx_hdr h;

	cr_assert_eq(lnx_route_pull_put(buf, &p), 64);
	cr_assert_eq(lnx_route_pull_get(&back, buf, 64, NULL), 0);
	cr_assert(same_pull(&p, &back));
	cr_assert_eq(lnx_route_pull_get(&back, buf, 65, NULL), -EMSGSIZE);
	cr_assert_eq(lnx_route_pull_get(&back, buf, 63, NULL), -EMSGSIZE);
	/* An endpoint without routed paths refuses it. */
	cr_assert_eq(lnx_hdr_get(&h, buf, 64), -EBADMSG);
	p = good, p.len++;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	p = good, p.len = 0;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	p = good, p.segment = LNX_PULL_MEMORY;
	cr_expect_eq(lnx_route_pull_put(buf, &p), 64);
	p = good, p.segment = LNX_PULL_MEMORY + 1;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	p = good, p.offset = UINT64_MAX - p.len + 1;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	p = good, p.id = 0;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	p = good, p.src = 0;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
}

Test(route_wire, pieces)
{
	struct lnx_route_pull good = { .src = 1, .dst = 2, .id = 4, .offset = 6,
				 .len = 10, .piece = true };
	struct lnx_route_pull p = good, back;

	cr_assert_eq(lnx_route_pull_put(buf, &p), 64);
	cr_assert_eq(lnx_route_pull_get(&back, buf, 74, NULL), 0);
	cr_assert(same_pull(&p, &back));
	cr_assert_eq(lnx_route_pull_get(&back, buf, 73, NULL), -EMSGSIZE);
	cr_assert_eq(lnx_route_pull_get(&back, buf, 75, NULL), -EMSGSIZE);
	p = good, p.key = 1;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	p = good, p.segment = 1;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
	/* With its envelope it fits a frame. */
	p = good, p.len = LNX_PAYLOAD_LARGE - 64;
	cr_expect_eq(lnx_route_pull_put(buf, &p), 64);
	p.len++;
	cr_expect_eq(lnx_route_pull_put(buf, &p), -EINVAL);
}

/* ---- any bytes ---- */

/* What get accepts has one form: it packs to the same bytes.  Infos and hellos may list
 * rails twice, so there the struct is compared. */
static bool one(const uint8_t *bytes, size_t len)
{
	uint8_t out[LNX_GW_INFO_BYTES_MAX];
	struct lnx_gw_info in, in2;
	struct lnx_route_note n;
	struct lnx_route_env e;
	struct lnx_gw_ask a;
	int got;

	switch (lnx_route_kind(bytes, len)) {
	case LNX_ROUTE_FRAME:
		if (lnx_route_get(&e, bytes, len, NULL))
			return false;
		cr_assert_eq(lnx_route_put(out, &e), 64);
		cr_assert_eq(memcmp(out, bytes, 64), 0);
		return true;
	case LNX_ROUTE_NOTE:
		if (lnx_route_note_get(&n, bytes, len, NULL))
			return false;
		cr_assert_eq(lnx_route_note_put(out, &n), 88);
		cr_assert_eq(memcmp(out, bytes, 88), 0);
		return true;
	case LNX_ROUTE_GW_ASK:
	case LNX_ROUTE_GW_TELL:
		if (lnx_wire_gw_ask_get(&a, bytes, len, NULL))
			return false;
		cr_assert_eq(lnx_wire_gw_ask_put(out, &a), 64);
		cr_assert_eq(memcmp(out, bytes, 64), 0);
		return true;
	case LNX_ROUTE_GW_INFO:
		if (lnx_wire_gw_info_get(&in, bytes, len, NULL))
			return false;
		got = lnx_wire_gw_info_put(out, sizeof(out), &in);
		cr_assert_gt(got, 0);
		cr_assert_eq(lnx_wire_gw_info_get(&in2, out, (size_t)got, NULL), 0);
		same_hello(&in.gw, &in2.gw);
		return true;
	default:
		return false;
	}
}

Test(route_wire, random_changes)
{
	struct lnx_gw_ask a = { .id = ID, .nonce = 5, .rail = ip4("10.0.0.9", 99) };
	struct lnx_gw_info in = info(6, 3);
	struct lnx_route_note n = note();
	struct lnx_route_env e = env();
	unsigned i, k, kind, taken[4] = { 0 };

	rnd_begin();
	for (i = 0; i < 40000; i++) {
		size_t len;

		kind = i % 4;
		len = kind == 0 ? frame(&e) :
		      kind == 1 ? (size_t)lnx_route_note_put(buf, &n) :
		      kind == 2 ? (size_t)lnx_wire_gw_ask_put(buf, &a) :
				  (size_t)lnx_wire_gw_info_put(buf, sizeof(buf), &in);
		for (k = 0; k <= rnd(2); k++)
			buf[rnd(len)] ^= (uint8_t)(1u << rnd(8));
		taken[kind] += one(buf, len);
	}
	/* Most bits of ids and keys may be anything. */
	for (kind = 0; kind < 4; kind++)
		cr_assert(taken[kind] > 100 && taken[kind] < 9900, "%u: %u", kind,
			  taken[kind]);
}
