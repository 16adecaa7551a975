/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer behind a gateway, on a scripted core: what goes to the gateway and comes from it,
 * and what of that is trusted.
 */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/routes.h"
#include "ctl/request.h"
#include "fake_core.h"
#include "obj/gateway.h"
#include "os/ping.h"
#include "rel/detect.h"
#include "rel/gateway.h"
#include "rel/recovery.h"
#include "view.h"

#define GATEWAY		0x77u
#define UNIT		((size_t)LNX_PAYLOAD_MAX)
#define LONGEST		((uint32_t)(6 * UNIT))
#define BYTES		(5 * UNIT + 100)

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static uint8_t buf[BYTES], mem[BYTES];
static char a, b;
static const char *nets = "tcp1=127.0.0.0/8; tcp2=10.2.0.0/16";

/* Rails of the test are in net 1, the peer's one is in net 2. */
static void open_over(enum lnx_rail_kind kind, const char *routes)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind }, .caps = FI_RMA };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(5001),
				  .sin_addr.s_addr = htonl(0x0a020005) };
	size_t i;

	fake_conf.nets = nets;
	fake_conf.routes = routes;
	if (kind == LNX_RAIL_PEER) {
		fake_conf.nets = "rxm1=tcp;ofi_rxm/127.0.0.0/8; rxm2=tcp;ofi_rxm/10.2.0.0/16";
		fake_rxm_buffer = LNX_FRAME_LARGE;
		opt.inject_size = 1024;
	}
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.where.rail[0].group++;
	memcpy(p.where.rail[0].raw, &in, sizeof(in));
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_peer_insert(&f, &p);
	for (i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
}

static void open_kind(enum lnx_rail_kind kind)
{
	open_over(kind, kind == LNX_RAIL_PEER ? "rxm2 via 10.9.0.9@rxm1" :
						"tcp2 via 10.9.0.9@tcp1");
}

static void open_routed(void)
{
	open_kind(LNX_RAIL_PLAIN);
}

/* What gateways say of their rail in the peer's net, and whether that is in it. */
static bool far_up = true, far_elsewhere;
/* How many they grant. */
#define LARGE	32u
static uint32_t says_large = LARGE;
/* And what they say of long frames. */
#define SAYS_OLD { LNX_ROUTE_VERSION, LNX_FRAME_LARGE, 0 }
static struct says {
	uint8_t newest;
	uint32_t frame_max, behind;
} says = SAYS_OLD;

/* The gateway with that id answers the hello with that nonce, or says something new by it. */
static void inform_with(uint64_t id, uint32_t nonce, uint16_t account, uint8_t flags)
{
	struct lnx_gw_info info = {
		.gw = { .flags = flags, .oldest = LNX_ROUTE_VERSION,
			.newest = says.newest, .account = account, .id = id,
			.nonce = nonce },
		.large = says_large, .small = 64, .frame_max = says.frame_max,
		.behind = says.behind, .hops = 1,
		.state = { { true, 1000 }, { far_up, 1000 } },
	};
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(LNX_ROUTE_PORT),
				  .sin_addr.s_addr = htonl(0x0a090009) };
	uint8_t bytes[LNX_GW_INFO_BYTES_MAX];
	int len;

	/* One rail in our net, and one in the peer's. */
	info.gw.rails.n = 2;
	info.gw.rails.rail[0] = info.gw.rails.rail[1] = p.where.rail[p.where.nrail - 1];
	info.gw.rails.rail[0].group--;
	info.gw.rails.rail[1].group += far_elsewhere;
	memcpy(info.gw.rails.rail[0].raw, &in, sizeof(in));
	info.gw.rails.place[1] = 1;
	len = lnx_wire_gw_info_put(bytes, sizeof(bytes), &info);
	cr_assert_gt(len, 0);
	fake_arrive(core, bytes, (size_t)len);
	fake_pass(&f);
}

static void inform_of(uint64_t id, uint32_t nonce, uint16_t account)
{
	inform_with(id, nonce, account, LNX_GW_F_ROUTING);
}

/* The gateway answers the last hello. */
static void inform(uint32_t nonce, uint16_t account)
{
	inform_of(GATEWAY, nonce, account);
}

/* The session has begun, in both directions, over the gateway. */
static void meet_over(enum lnx_rail_kind kind)
{
	open_kind(kind);
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	fake_after_ms(&f, 1);
	inform(core->hello.nonce, 3);
	fake_via = GATEWAY;
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_hello(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_after_ms(&f, 1);
	fake_drop_all(&f, &p);
}

static void meet(void)
{
	meet_over(LNX_RAIL_PLAIN);
}

static void end(void)
{
	fake_via = 0;
	far_up = true;
	far_elsewhere = false;
	says_large = LARGE;
	says = (struct says)SAYS_OLD;
	fake_close(&f);
}

/* The first frame leaves with a hello, in an envelope with the peer's rail. */
Test(routed, frames_and_hello)
{
	struct fake_sent *s;

	open_routed();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_after_ms(&f, 1);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(s->h.dst, p.eid);
	cr_expect_eq(s->h.tag, 5);
	cr_expect_eq(memcmp(s->bytes + 64, mem, 8), 0);
	free(s);
	cr_expect_eq(core->nrouted, 2);
	cr_expect_eq(core->env.hops_done, 0);
	cr_expect_eq(core->env.via, 0);
	cr_expect_eq(core->env.account, 0);
	cr_expect_eq(memcmp(&core->env.rail, &p.where.rail[0], sizeof(core->env.rail)), 0);
	cr_expect_eq(core->nhellos, 1);
	cr_expect_eq(core->hello.id, f.lnx->eid);
	cr_expect_eq(core->hello.rails.n, 1);
	end();
}

/* What the gateway says is used; what others say in its name is not. */
Test(routed, infos)
{
	open_routed();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_after_ms(&f, 1);
	inform(core->hello.nonce + 2, 9);
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 6, &a), 0);
	fake_pass(&f);
	cr_expect_eq(core->env.account, 0);
	cr_expect_eq(f.lnx->stats.bad_frames, 1);
	inform(core->hello.nonce, 3);
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 7, &a), 0);
	fake_pass(&f);
	cr_expect_eq(core->env.account, 3);
	fake_drop_all(&f, &p);
	end();
}

/* It says something new by the nonce of the last hello, which only it knows: that, or the one
 * before if the last one has not come there yet. */
Test(routed, news)
{
	const struct lnx_gateway *state;
	uint32_t first;
	uint64_t heard_ns;

	meet();
	state = &view_gateways(f.lnx)->gw[0]->process->state;
	first = core->hello.nonce;
	heard_ns = state->heard_ns;
	inform_with(GATEWAY, first + 2, 3, 0);
	inform_with(GATEWAY, 1, 3, 0);
	cr_expect_eq(f.lnx->stats.bad_frames, 2);
	cr_expect(state->routing && state->heard_ns == heard_ns);
	inform_with(GATEWAY, first, 3, 0);
	cr_expect_not(state->routing);
	fake_after_ms(&f, 61000);
	cr_assert_neq(core->hello.nonce, first, "no other hello");
	inform_with(GATEWAY, first, 3, LNX_GW_F_ROUTING);
	cr_expect(state->routing);
	inform_with(GATEWAY, core->hello.nonce, 3, 0);
	cr_expect_not(state->routing);
	inform_with(GATEWAY, first, 3, LNX_GW_F_ROUTING);
	cr_expect_not(state->routing);
	cr_expect_eq(f.lnx->stats.bad_frames, 3);
	fake_drop_all(&f, &p);
	end();
}

/* ---- how long frames are ---- */

static void grant(uint64_t limit)
{
	struct lnx_wire_credit w;

	lnx_wire_credit_put(&w, limit);
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_ACK }, &w, sizeof(w));
	fake_pass(&f);
}

/* Bytes of the longest frame of a message of so many. */
static uint32_t longest_of(size_t len)
{
	struct fake_sent *s;
	uint32_t most = 0;
	size_t sum = 0;

	cr_assert_eq(fi_tsend(f.ep, mem, len, NULL, p.addr, 2, &a), 0);
	fake_pass(&f);
	while ((s = fake_receive(&f, &p))) {
		most = LNX_MAX(most, (uint32_t)s->len);
		sum += s->len - sizeof(struct lnx_wire_hdr);
		free(s);
	}
	cr_assert_eq(sum, len, "%zu bytes have left", sum);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	return most;
}

/* As long as our rail, the gateway, and what is behind it take. */
Test(routed, long_frames)
{
	static const struct {
		bool elsewhere;		/* the peer is in no net of the gateway */
		struct says says;
		uint32_t most;
	} row[] = {
		{ false, { 1, LNX_FRAME_LARGE, 0 }, LNX_FRAME_MAX },
		{ true, { 1, LNX_FRAME_LARGE, 0 }, LNX_FRAME_MAX },
		{ false, { 2, LNX_FRAME_LARGE, 0 }, 65536 + 64 },
		{ false, { 2, LNX_FRAME_LARGE, LNX_FRAME_MAX + 64 }, 65536 + 64 },
		{ false, { 2, LNX_FRAME_MAX + 64, 0 }, LNX_FRAME_MAX },
		{ true, { 2, LNX_FRAME_LARGE, 0 }, LNX_FRAME_MAX },
		{ true, { 2, LNX_FRAME_LARGE, LNX_FRAME_LARGE }, 65536 + 64 },
		{ true, { 2, LNX_FRAME_LARGE, LNX_FRAME_MAX + 64 }, LNX_FRAME_MAX },
		/* Several frames of one message are equal. */
		{ false, { 2, 40000, 0 }, 32768 + 64 },
		{ true, { 2, LNX_FRAME_LARGE, 64 + 70 * 512 }, 32768 + 64 },
		{ true, { 2, 64 + 70 * 512, LNX_FRAME_LARGE }, 32768 + 64 },
	};
	unsigned i;

	meet();
	grant(1 << 30);
	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		says = row[i].says;
		far_elsewhere = row[i].elsewhere;
		inform(core->hello.nonce, 3);
		cr_expect_eq(longest_of(65536), row[i].most, "row %u", i);
	}
	cr_expect_eq(f.lnx->stats.bad_frames, 0);
	end();
}

/* It says which version of infos it knows. */
Test(routed, hello_names_newest)
{
	meet();
	cr_expect_eq(core->hello.oldest, 1);
	cr_expect_eq(core->hello.newest, 2);
	end();
}

/* A message that fits one frame waits for credit, at the caller's; if none comes it is
 * announced, and so are those after it, until some comes. */
Test(routed, waits_for_credit)
{
	struct fake_sent *s;
	unsigned i;

	says.newest = LNX_ROUTE_NEWEST;
	meet();
	grant(70000);
	cr_expect_eq(longest_of(65536), 65536 + 64);
	/* Until it has granted more for the first time, it may compute, and none is awaited. */
	cr_expect_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_RTS_TAG);
	grant(140000);
	cr_expect_eq(longest_of(65536), 65536 + 64);
	cr_expect_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), -FI_EAGAIN);
	fake_after_ms(&f, 40);
	cr_expect_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), -FI_EAGAIN);
	fake_expect_none(&f);
	grant(210000);
	cr_expect_eq(longest_of(65536), 65536 + 64);
	/* Nothing more is granted. */
	cr_expect_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), -FI_EAGAIN);
	fake_after_ms(&f, 51);
	for (i = 0; i < 3; i++) {
		cr_expect_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), 0);
		s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
		free(s);
		fake_expect_none(&f);
	}
	grant(1 << 20);
	cr_expect_eq(longest_of(65536), 65536 + 64);
	fake_drop_all(&f, &p);
	end();
}

/* Each acknowledgement is a frame for the gateways: one is asked for when as much has left as
 * finds room once it is there. */
Test(routed, asks_for_acks)
{
	struct fake_sent *s;
	unsigned i;

	fake_conf.send_buffer = 4 * 65536;
	says.newest = LNX_ROUTE_NEWEST;
	meet();
	grant(1 << 30);
	for (i = 1; i <= 10; i++) {
		cr_assert_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), 0);
		s = fake_expect(&f, &p, LNX_KIND_TAG);
		cr_expect_eq((s->h.flags & LNX_WIRE_F_ACK_NOW) != 0, i % 5 == 0, "%u", i);
		free(s);
	}
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	end();
}

/* As many first bytes as credit allows leave with what is announced. */
Test(routed, announced_with_first_bytes)
{
	static const uint64_t left[] = { 0, UNIT - 1, UNIT, 3 * UNIT + 5, 4 * UNIT };
	uint64_t sent = 0;
	struct fake_sent *s;
	unsigned i;

	fake_conf.eager_limit = 100000;
	says.newest = LNX_ROUTE_NEWEST;
	meet();
	for (i = 1; i < LNX_ARRAY_SIZE(left); i++) {
		uint64_t head = left[i] / UNIT * UNIT, came = 0;

		grant(sent + left[i]);
		sent += head;
		fake_after_ms(&f, 60);
		if (fi_tsend(f.ep, mem, sizeof(mem), NULL, p.addr, 2, &a)) {
			fake_after_ms(&f, 60);
			cr_assert_eq(fi_tsend(f.ep, mem, sizeof(mem), NULL, p.addr, 2, &a), 0);
		}
		s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
		cr_expect_eq(s->h.key, head, "%u", i);
		free(s);
		while ((s = fake_receive(&f, &p))) {
			cr_expect_eq(s->h.kind, LNX_KIND_MORE);
			came += s->len - sizeof(struct lnx_wire_hdr);
			free(s);
		}
		cr_expect_eq(came, head, "%u", i);
		fake_ack(&f, &p);
		fake_passes(&f, 4);
	}
	end();
}

/* A peer that never grants as much as a message has is not waited for again and again: what it
 * grants after one was announced does not begin a new wait. */
Test(routed, small_credit)
{
	uint64_t spent = 0;
	struct fake_sent *s;
	unsigned i, waits = 0;

	says.newest = LNX_ROUTE_NEWEST;
	meet();
	for (i = 0; i < 5; i++) {
		grant(spent + 2 * UNIT + 100);
		if (fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a)) {
			waits++;
			fake_after_ms(&f, 51);
			cr_assert_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), 0);
		}
		s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
		spent += s->h.key;
		cr_expect_eq(s->h.key, 2 * UNIT, "%u", i);
		free(s);
		fake_drop_all(&f, &p);
		fake_ack(&f, &p);
		fake_passes(&f, 4);
	}
	cr_expect_eq(waits, 1, "%u waits", waits);
	/* When there is enough it is as before. */
	grant(spent + 70000);
	cr_expect_eq(longest_of(65536), 65536 + 64);
	cr_expect_eq(fi_tsend(f.ep, mem, 65536, NULL, p.addr, 2, &a), -FI_EAGAIN);
	end();
}

/* ---- routes that change ---- */

static ssize_t request(const char *text)
{
	static char reply[1000];

	return lnx_ctl_request(f.lnx, text, reply, sizeof(reply));
}

/* What lnxctl explain says of the paths to the peer has that text. */
static bool explained(const char *text)
{
	static char reply[4000];

	cr_assert_geq(lnx_ctl_request(f.lnx, "explain 0", reply, sizeof(reply)), 0);
	return strstr(reply, text);
}

/* A frame leaves now, to another place than `other`: to which? */
static fi_addr_t leaves(fi_addr_t other)
{
	struct fake_sent *s;
	fi_addr_t dest;

	fake_drop_all(&f, &p);
	cr_assert_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	s = fake_expect(&f, &p, LNX_KIND_TAG);
	dest = s->dest;
	free(s);
	cr_assert_neq(dest, other);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	return dest;
}

/* Another gateway takes over with the next frame; a worse one is standby. */
Test(routed, routes_change)
{
	fi_addr_t first, second;
	unsigned hellos, i;

	meet();
	first = leaves(FI_ADDR_NOTAVAIL);
	hellos = core->nhellos;
	cr_assert_eq(request("route add tcp2 priority=3 via 10.9.0.8@tcp1"), 0);
	fake_after_ms(&f, 1);
	cr_expect_eq(core->nhellos, hellos + 1, "it is asked at once");
	cr_expect_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 2, "it has a path at once, too");
	for (i = 0; i < 8; i++)
		cr_expect_eq(leaves(FI_ADDR_NOTAVAIL), first, "a worse route was used");
	cr_expect(explained("another route, over path 0, comes before its own: priority of the route\n"));
	cr_assert_eq(request("route put tcp2 priority=3 via 10.9.0.9@tcp1; "
			     "tcp2 via 10.9.0.8@tcp1"), 0);
	cr_expect_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 2);
	second = leaves(first);
	cr_assert_eq(request("route del tcp2 via 10.9.0.9@tcp1"), 0);
	cr_expect_eq(leaves(first), second);
	cr_assert_eq(request("route add tcp2 via 10.9.0.9@tcp1"), 0);
	cr_assert_eq(request("route del tcp2 via 10.9.0.8@tcp1"), 0);
	fake_after_ms(&f, 1);
	fake_drop_all(&f, &p);
	cr_expect_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 2, "paths are used again");
	end();
}

/* A gateway says that its rail there is down: the next frame leaves over another one, until
 * it is up again. */
Test(routed, far_rail_down)
{
	fi_addr_t first;
	unsigned i;

	meet();
	first = leaves(FI_ADDR_NOTAVAIL);
	cr_assert_eq(request("route add tcp2 priority=3 via 10.9.0.8@tcp1"), 0);
	fake_after_ms(&f, 1);
	cr_expect_eq(leaves(FI_ADDR_NOTAVAIL), first);
	for (i = 0; i < 3; i++) {
		far_up = false;
		inform(core->nonce[first], 3);
		leaves(first);
		far_up = true;
		inform(core->nonce[first], 3);
		cr_expect_eq(leaves(FI_ADDR_NOTAVAIL), first, "%u: it is not used again", i);
	}
	end();
}

/* Without a route a message waits, and leaves when there is one. */
Test(routed, routes_go_and_come)
{
	meet();
	cr_assert_eq(request("route del all"), 0);
	fake_after_ms(&f, 5);
	fake_drop_all(&f, &p);
	cr_assert_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	fake_after_ms(&f, 50);
	fake_expect_none(&f);
	cr_assert_eq(request("route add tcp2 via 10.9.0.9@tcp1"), 0);
	fake_passes(&f, 2);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	cr_expect_eq(f.lnx->stats.failed, 0);
	end();
}

/* What is refused changes nothing. */
Test(routed, changes_refused)
{
	static const struct {
		const char *text;
		int err;
	} rows[] = {
		{ "route add tcp2 via 10.9.0.9@tcp1", -EEXIST },
		{ "route add tcp2 via 10.9.0.7@tcp1,10.9.0.9@tcp1", -EEXIST },
		{ "route add tcp1 via 10.2.0.9@tcp2", -EEXIST },
		{ "route add tcp3 via 10.2.0.9@tcp2", -FI_EHOSTUNREACH },
		{ "route add tcp2 via 10.2.0.9@tcp2", -FI_EINVAL },
		{ "route put tcp2 via 10.9.0.7@tcp1; tcp2 via 10.2.0.9@tcp2", -FI_EINVAL },
		{ "route add tcp2 hop=256 via 10.9.0.7@tcp1", -FI_EINVAL },
		{ "route del tcp3", -FI_ENOENT },
		{ "route del tcp2 via 10.9.0.7@tcp1", -FI_ENOENT },
		{ "route del tcp2 via 10.9.0.9@tcp1,10.9.0.7@tcp1", -FI_ENOENT },
	};
	size_t i;

	meet();
	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		char shown[400] = "";

		cr_expect_eq(request(rows[i].text), rows[i].err, "%s", rows[i].text);
		cr_assert_gt(lnx_ctl_request(f.lnx, "route show", shown, sizeof(shown)), 0);
		cr_expect(strstr(shown, "route tcp2 via 10.9.0.9@tcp1: ") == shown &&
			  !strstr(strchr(shown, '\n'), "route"), "%s: %s", rows[i].text, shown);
	}
	leaves(FI_ADDR_NOTAVAIL);
	end();
}

/* Messages come in, and are acknowledged over the gateway. */
Test(routed, receives)
{
	unsigned routed;

	meet();
	routed = core->nrouted;
	cr_assert_eq(fi_trecv(f.ep, buf, 100, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_tag(&f, &p, 9, mem, 100);
	cr_expect_eq(fake_comp(&f, &b).len, 100);
	cr_expect_eq(memcmp(buf, mem, 100), 0);
	fake_after_ms(&f, 1);
	cr_expect_gt(core->nrouted, routed, "no acknowledgement left");
	fake_drop_all(&f, &p);
	end();
}

/* Fewer acknowledgements leave over gateways: one waits for more frames, and not longer than four
 * times FI_LNX_ACK_DELAY, or until eight have come. */
Test(routed, acks_wait)
{
	unsigned routed, i;

	fake_conf.ack_delay = 10000;
	meet();
	fake_after_ms(&f, 100);
	routed = core->nrouted;
	fake_tag(&f, &p, 9, mem, 100);
	fake_after_ms(&f, 1);
	fake_after_ms(&f, 35);
	cr_expect_eq(core->nrouted, routed);
	fake_after_ms(&f, 6);
	fake_pass(&f);
	cr_expect_eq(core->nrouted, routed + 1);
	for (i = 0; i < 7; i++) {
		fake_tag(&f, &p, 9, mem, 100);
		fake_pass(&f);
	}
	cr_expect_eq(core->nrouted, routed + 1);
	fake_tag(&f, &p, 9, mem, 100);
	fake_pass(&f);
	cr_expect_eq(core->nrouted, routed + 2);
	fake_drop_all(&f, &p);
	end();
}

/* Envelopes that no gateway of ours may send. */
Test(routed, hostile)
{
	static const struct lnx_wire_hdr none;
	uint8_t bytes[LNX_ROUTE_HEAD + sizeof(none)];
	struct lnx_hdr h = { .kind = LNX_KIND_ACK, .src = 1, .dst = 2 };
	struct lnx_route_env env = { .hops_left = 7, .hops_done = 1, .via = GATEWAY,
				     .len = sizeof(none) };
	uint64_t bad;
	size_t len;

	meet();
	env.rail = p.where.rail[0];
	bad = f.lnx->stats.bad_frames;
	lnx_hdr_put((struct lnx_wire_hdr *)(bytes + LNX_ROUTE_HEAD), &h);
	/* Another key; and one that came over no gateway. */
	env.key = 5;
	cr_assert_gt(lnx_route_put(bytes, &env), 0);
	fake_arrive(core, bytes, sizeof(bytes));
	env.key = 0;
	env.hops_done = 0;
	env.via = 0;
	cr_assert_gt(lnx_route_put(bytes, &env), 0);
	fake_arrive(core, bytes, sizeof(bytes));
	fake_pass(&f);
	cr_expect_eq(f.lnx->stats.bad_frames, bad + 2);
	/* Cut anywhere, of any kind. */
	for (len = 4; len < sizeof(bytes); len++) {
		bytes[2] = (uint8_t)len;
		fake_arrive(core, bytes, len);
		fake_pass(&f);
	}
	cr_expect_eq(f.lnx->stats.bad_frames, bad + 2 + sizeof(bytes) - 4);
	fake_drop_all(&f, &p);
	end();
}

/* A peer from which nothing comes: the gateway is asked whether its host answers, and while
 * it does, the peer computes. */
Test(routed, asks_the_gateway)
{
	struct lnx_wire_gw_ask w;
	struct lnx_gw_ask a;
	unsigned i, told = 0;

	fake_conf.transaction_timeout = 2000;
	meet();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	for (i = 0; i < 100; i++) {
		fake_after_ms(&f, 100);
		fake_drop_all(&f, &p);
		if (core->nasks == told)
			continue;
		told = core->nasks;
		a = core->ask;
		a.tell = LNX_TELL_ALIVE;
		a.id = GATEWAY;
		cr_assert_geq(lnx_wire_gw_ask_put(&w, &a), 0);
		fake_arrive(core, &w, sizeof(w));
	}
	cr_expect_gt(told, 0, "the gateway was not asked");
	cr_expect(lnx_peer_open(lnx_peer_get(f.lnx, p.addr)), "it was given up");
	/* Its process is not there any more. */
	for (i = 0; i < 100 && lnx_peer_open(lnx_peer_get(f.lnx, p.addr)); i++) {
		fake_after_ms(&f, 100);
		fake_drop_all(&f, &p);
		a = core->ask;
		a.tell = LNX_TELL_REFUSED;
		a.id = GATEWAY;
		cr_assert_geq(lnx_wire_gw_ask_put(&w, &a), 0);
		fake_arrive(core, &w, sizeof(w));
	}
	cr_expect_not(lnx_peer_open(lnx_peer_get(f.lnx, p.addr)), "it was not given up");
	end();
}

/* The gateway with that id tells that of the host that it was asked about last, if it was since
 * `told`. */
static void tell(unsigned *told, uint64_t id, unsigned what)
{
	struct lnx_gw_ask answer = core->ask;
	struct lnx_wire_gw_ask w;

	if (core->nasks == *told)
		return;
	*told = core->nasks;
	answer.tell = (uint8_t)what;
	answer.id = id;
	cr_assert_geq(lnx_wire_gw_ask_put(&w, &answer), 0);
	fake_arrive(core, &w, sizeof(w));
}

/* A peer is silent, and no question to the gateway can leave.  For how many ms is it not given
 * up, if they can after so many, and the gateway then tells that? */
static unsigned lives_unasked(unsigned after_ms, unsigned what)
{
	unsigned ms, told = 0;

	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	core->ask_again = FAKE_ALWAYS;
	for (ms = 0; ms < 60000 && lnx_peer_open(lnx_peer_get(f.lnx, p.addr)); ms += 20) {
		if (ms >= after_ms)
			core->ask_again = 0;
		fake_after_ms(&f, 20);
		fake_drop_all(&f, &p);
		tell(&told, GATEWAY, what);
	}
	core->ask_again = 0;
	return ms;
}

/* Questions for which the core has no room end nothing for a time, but not for ever. */
Test(routed, asks_that_cannot_leave)
{
	unsigned ms;

	fake_conf.transaction_timeout = 2000;
	fake_conf.connect_timeout = 5000;
	meet();
	ms = lives_unasked(60000, 0);
	cr_expect_geq(ms, 5000, "given up after %u ms", ms);
	cr_expect_leq(ms, 6500, "given up after %u ms", ms);
	end();
}

/* They leave as soon as they can: they need not wait for the next ones. */
Test(routed, asks_that_leave_late)
{
	unsigned ms;

	fake_conf.transaction_timeout = 2000;
	fake_conf.connect_timeout = 3600000;
	meet();
	ms = lives_unasked(2700, LNX_TELL_REFUSED);
	cr_expect_geq(ms, 2700, "given up after %u ms", ms);
	cr_expect_leq(ms, 3600, "given up after %u ms", ms);
	end();
	meet();
	ms = lives_unasked(2700, LNX_TELL_ALIVE);
	cr_expect_eq(ms, 60000, "given up after %u ms", ms);
	end();
}

/* A host that a gateway cannot ask, as one behind another gateway: FI_LNX_STALL_TIMEOUT. */
Test(routed, asks_without_a_way_to)
{
	unsigned ms;

	fake_conf.transaction_timeout = 2000;
	fake_conf.connect_timeout = 3000;
	fake_conf.stall_timeout = 20;
	meet();
	ms = lives_unasked(0, LNX_TELL_UNKNOWN);
	cr_expect_geq(ms, 20000, "given up after %u ms", ms);
	cr_expect_leq(ms, 22000, "given up after %u ms", ms);
	end();
}

/* A PIECE of the pull that was asked for last, n bytes of mem at offset at. */
static void piece(const struct lnx_hdr *pull, size_t at, size_t n)
{
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PIECE, .data = pull->data,
					     .tag = at, .len = n },
		   mem + (at + n <= BYTES ? at : 0), n);
}

/* A large message is pulled: pieces in any order, twice, and wrong ones. */
Test(routed, pulls)
{
	const uint64_t seg = BYTES;
	struct fake_sent *s;
	struct lnx_hdr pull;
	size_t at, asked = 0;

	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_PULL) {
			pull = s->h;
			cr_expect_eq(pull.key, 44);
			cr_expect_eq(pull.tag, asked);
			asked += pull.len;
		}
		free(s);
	}
	cr_assert_eq(asked, BYTES);
	cr_expect_eq(core->nread, 0, "no core may read");
	piece(&pull, UNIT, UNIT - 1);
	piece(&pull, UNIT + 1, UNIT);
	piece(&pull, 6 * UNIT, UNIT);
	pull.data++;
	piece(&pull, UNIT, UNIT);
	pull.data--;
	fake_quiet(&f);
	for (at = 5 * UNIT; at; at -= UNIT)
		piece(&pull, at, at == 5 * UNIT ? 100 : UNIT);
	piece(&pull, UNIT, UNIT);
	fake_quiet(&f);
	piece(&pull, 0, UNIT);
	cr_expect_eq(fake_comp(&f, &b).len, BYTES);
	cr_expect_eq(memcmp(buf, mem, BYTES), 0);
	/* It has ended: nothing is written any more. */
	memset(buf, 0, BYTES);
	piece(&pull, 0, UNIT);
	fake_passes(&f, 4);
	cr_expect_eq(buf[1], 0);
	fake_drop_all(&f, &p);
	end();
}

/* The sender announces a message, and then computes for longer than any timeout: what it does not
 * send meanwhile is waited for while a gateway tells that its host is there. */
Test(routed, waits_for_a_sender_that_computes)
{
	const uint64_t seg = BYTES;
	unsigned i, pulls = 0, told;
	struct fake_sent *s;
	struct lnx_hdr pull;
	size_t at;

	fake_conf.transaction_timeout = 2000;
	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	told = core->nasks;
	for (i = 0; i < 6000; i++) {
		fake_after_ms(&f, 20);
		tell(&told, GATEWAY, LNX_TELL_ALIVE);
		while ((s = fake_take(core))) {
			cr_assert_neq(s->h.kind, LNX_KIND_FIN, "it failed after %u ms", i * 20);
			if (s->h.kind == LNX_KIND_PULL) {
				pull = s->h;
				pulls++;
			}
			free(s);
		}
	}
	cr_expect(lnx_peer_open(lnx_peer_get(f.lnx, p.addr)));
	fake_quiet(&f);
	/* What was asked for may have been lost. */
	cr_assert_gt(pulls, 30, "it was asked for %u times in two minutes", pulls);
	for (at = 0; at < BYTES; at += UNIT)
		piece(&pull, at, LNX_MIN(UNIT, BYTES - at));
	fake_after_ms(&f, 1);
	/* After so long it asks whether the sender has waited, too. */
	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_FIN)
			p.got = s->h.seq + 1;
		free(s);
	}
	fake_ack(&f, &p);
	cr_expect_eq(fake_comp(&f, &b).len, BYTES);
	cr_expect_eq(memcmp(buf, mem, BYTES), 0);
	fake_drop_all(&f, &p);
	end();
}

/* Of the ack of a PULL: bytes of the longest piece. */
#define MOST	((1u << LNX_PULL_WAY_SHIFT) - 1)

/* The last PULL that has left, and how many. */
static unsigned pulls_of(struct lnx_hdr *pull)
{
	struct fake_sent *s;
	unsigned n = 0;

	for (; (s = fake_take(core)); free(s))
		if (s->h.kind == LNX_KIND_PULL) {
			*pull = s->h;
			n++;
		}
	return n;
}

/* Where frames are long, several units come in one piece; what has come already, and comes
 * once more in a longer one, counts once. */
Test(routed, long_pieces)
{
	const uint64_t seg = BYTES;
	struct lnx_hdr pull;

	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull), 1);
	cr_expect_eq(pull.ack, LONGEST);
	cr_expect_eq(pull.len, BYTES);
	/* No whole units, and more than there is. */
	piece(&pull, 0, 2 * UNIT - 1);
	piece(&pull, 4 * UNIT, UNIT);
	piece(&pull, 4 * UNIT, 2 * UNIT);
	piece(&pull, UNIT, UNIT);
	piece(&pull, 3 * UNIT, 2 * UNIT + 100);
	piece(&pull, 3 * UNIT, 2 * UNIT + 100);
	fake_quiet(&f);
	piece(&pull, 0, 3 * UNIT);
	cr_expect_eq(fake_comp(&f, &b).len, BYTES);
	cr_expect_eq(memcmp(buf, mem, BYTES), 0);
	fake_drop_all(&f, &p);
	end();
}

/* Takes what has left; how many messages were among that. */
static unsigned messages_left(void)
{
	struct fake_sent *s;
	unsigned n = 0;

	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_TAG) {
			p.got = s->h.seq + 1;
			n++;
		}
		free(s);
	}
	return n;
}

/* A gateway drops what is more than its grant: part of it is for frames of messages, the rest for
 * pieces.  It may change at any time, and one that grants nothing still takes one frame. */
Test(routed, keeps_to_the_grant)
{
	static const struct {
		uint32_t large;
		unsigned frames;
	} row[] = { { 32, 20 }, { 16, 10 }, { 0, 1 }, { 64, 32 } };
	unsigned i, k, left;
	uint32_t nonce;

	meet();
	nonce = core->hello.nonce;
	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		says_large = row[i].large;
		inform(nonce, 3);
		for (k = 0; k < 40; k++)
			cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
		fake_passes(&f, 4);
		cr_expect_eq(left = messages_left(), row[i].frames, "grant %u: %u left",
			     row[i].large, left);
		for (k = 0; k < 60 && left < 40; k++) {
			fake_ack(&f, &p);
			fake_passes(&f, 4);
			left += messages_left();
		}
		cr_expect_eq(left, 40u);
		fake_ack(&f, &p);
		fake_passes(&f, 4);
	}
	end();
}

/* Of what is read so many pieces are asked for at a time as the rest of the grant has room for. */
Test(routed, asks_within_the_grant)
{
	static const struct {
		uint32_t large;
		unsigned pieces;
	} row[] = { { 32, 10 }, { 64, 22 }, { 16, 4 }, { 1, 1 } };
	const uint64_t seg = 40 * LONGEST;
	uint8_t *to = malloc(seg);
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct fake_sent *s;
		uint64_t asked = 0;

		meet();
		says_large = row[i].large;
		inform(core->hello.nonce, 3);
		cr_assert_eq(fi_trecv(f.ep, to, seg, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
		fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
		fake_passes(&f, 40);
		while ((s = fake_receive(&f, &p))) {
			if (s->h.kind == LNX_KIND_PULL)
				asked += s->h.len;
			free(s);
		}
		/* Of each read the last piece may be shorter. */
		cr_expect_eq((asked + LONGEST - 1) / LONGEST, row[i].pieces, "grant %u: %g pieces",
			     row[i].large, (double)asked / LONGEST);
		end();
	}
	free(to);
}

/* Each PULL is a frame for the gateways as well: one asks for as much as may be under way. */
Test(routed, long_pulls)
{
	enum { N = 40 };
	const uint64_t seg = N * UNIT;
	uint8_t *to = malloc(seg);
	struct lnx_hdr pull;

	meet();
	cr_assert_eq(fi_trecv(f.ep, to, seg, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_expect_eq(pulls_of(&pull), 1);
	cr_expect_eq(pull.len, seg);
	fake_drop_all(&f, &p);
	end();
	free(to);
}

/* Behind the gateway there are perhaps rails that carry no long frames: then short pieces are
 * asked for, and from then on at once. */
Test(routed, long_pieces_that_get_lost)
{
	const uint64_t seg = 2 * UNIT;
	struct lnx_hdr pull = { .ack = 0 };
	unsigned i;

	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull), 1);
	cr_assert_eq(pull.ack, LONGEST);
	for (i = 0; i < 100 && pull.ack; i++) {
		fake_after_ms(&f, 50);
		if (pulls_of(&pull))
			pull.ack &= MOST;
	}
	cr_assert_eq(pull.ack, 0);
	piece(&pull, 0, UNIT);
	piece(&pull, UNIT, UNIT);
	/* It took long: the sender has to confirm. */
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	cr_expect_eq(fake_comp(&f, &b).len, 2 * UNIT);
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 10, 0, &b), 0);
	fake_rts(&f, &p, true, 10, 45, mem, &seg, 1);
	fake_passes(&f, 40);
	pull.ack = 1;
	cr_assert_geq(pulls_of(&pull), 1);
	cr_expect_eq(pull.ack & MOST, 0);
	piece(&pull, 0, UNIT);
	piece(&pull, UNIT, UNIT);
	cr_expect_eq(fake_comp(&f, &b).len, 2 * UNIT);
	fake_drop_all(&f, &p);
	/* A gateway may have been away: a minute later long ones are tried again. */
	fake_after_ms(&f, 60000);
	fake_drop_all(&f, &p);
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 11, 0, &b), 0);
	fake_rts(&f, &p, true, 11, 46, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull), 1);
	cr_expect_eq(pull.ack & MOST, LONGEST);
	piece(&pull, 0, UNIT);
	piece(&pull, UNIT, UNIT);
	cr_expect_eq(fake_comp(&f, &b).len, 2 * UNIT);
	fake_drop_all(&f, &p);
	end();
}

/* What does not come is asked for again: twice within 0.4 s, since the first time may be before a
 * gateway has found that the next one is dead; then less and less often. */
Test(routed, pulls_again)
{
	const uint64_t seg = UNIT;
	struct lnx_hdr pull;
	unsigned i, n = 0, soon = 0;

	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull), 1);
	for (i = 0; i < 400; i++) {
		fake_after_ms(&f, 5);
		fake_passes(&f, 2);
		n += pulls_of(&pull);
		if (i == 35)
			cr_expect_eq(n, 0, "it may be on its way");
		if (i == 80)
			soon = n;
	}
	cr_expect_eq(soon, 2);
	cr_expect_leq(n, 5);
	cr_expect_geq(n, 4);
	end();
}

/* A core receives while it sends: what is late comes inside the call that asks for it again,
 * and once more after that. */
static struct lnx_hdr late;

/* The peer has all that left.  What took long ends only then. */
static void acked(void)
{
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 2);
}

/* What came while the program computed has not been received yet: it is not asked for again at
 * once. */
Test(routed, a_pause_is_no_loss)
{
	const uint64_t seg = UNIT;
	struct lnx_hdr pull, more;
	unsigned i, n = 0;

	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull), 1);
	for (i = 0; i < 3; i++) {
		fake_after_ms(&f, 300);
		cr_expect_eq(pulls_of(&more), 0, "asked for again after a pause");
	}
	/* It is lost. */
	for (i = 0; i < 60 && !n; i++) {
		fake_after_ms(&f, 5);
		fake_passes(&f, 2);
		n = pulls_of(&more);
	}
	cr_expect_eq(n, 1);
	piece(&more, 0, UNIT);
	acked();
	cr_expect_eq(fake_comp(&f, &b).len, UNIT);
	end();
}

static void comes_late(void)
{
	core->in_inject = NULL;
	piece(&late, 0, UNIT);
}

Test(routed, comes_while_it_is_asked_for)
{
	const uint64_t seg = BYTES;
	struct fake_sent *s;
	size_t at;

	meet_over(LNX_RAIL_PEER);
	for (unsigned whole = 0; whole < 2; whole++) {
		memset(buf, 0, BYTES);
		cr_assert_eq(fi_trecv(f.ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
		fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
		fake_passes(&f, 40);
		while ((s = fake_receive(&f, &p))) {
			if (s->h.kind == LNX_KIND_PULL)
				late = s->h;
			free(s);
		}
		for (at = 5 * UNIT; at > UNIT; at -= UNIT)
			piece(&late, at, at == 5 * UNIT ? 100 : UNIT);
		if (whole)
			piece(&late, UNIT, UNIT);
		fake_quiet(&f);
		/* The first unit, and one time the second, are asked for again. */
		for (at = 0; at < 3; at++)
			fake_after_ms(&f, 50);
		core->in_inject = comes_late;
		for (at = 0; at < 100 && core->in_inject; at++)
			fake_after_ms(&f, 50);
		cr_assert_null(core->in_inject);
		if (!whole) {
			piece(&late, 0, UNIT);
			acked();
			fake_quiet(&f);
			piece(&late, UNIT, UNIT);
		}
		/* It took long: the sender has to confirm. */
		acked();
		cr_expect_eq(fake_comp(&f, &b).len, BYTES);
		cr_expect_eq(memcmp(buf, mem, BYTES), 0);
	}
	end();
}

/* What was asked for and does not come shall come another way: that of a second read, too, and of
 * the next ones.  When two find it out at once, that is one loss. */
Test(routed, pulls_another_way)
{
	const uint64_t seg = UNIT;
	struct lnx_hdr pull[2], next;
	unsigned i, n = 0;

	meet();
	cr_assert_eq(fi_trecv(f.ep, buf, UNIT, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	cr_assert_eq(fi_trecv(f.ep, buf + UNIT, UNIT, NULL, FI_ADDR_UNSPEC, 9, 0, &a), 0);
	fake_rts(&f, &p, true, 9, 44, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull[0]), 1);
	fake_rts(&f, &p, true, 9, 45, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&pull[1]), 1);
	cr_expect_eq(pull[0].ack >> LNX_PULL_WAY_SHIFT, 0);
	cr_expect_eq(pull[1].ack >> LNX_PULL_WAY_SHIFT, 0);
	for (i = 0; i < 60 && !n; i++) {
		fake_after_ms(&f, 5);
		fake_passes(&f, 2);
		n = pulls_of(&next);
	}
	cr_assert_eq(n, 2);
	cr_expect_eq(next.ack >> LNX_PULL_WAY_SHIFT, 1);
	piece(&pull[0], 0, UNIT);
	acked();
	cr_expect_eq(fake_comp(&f, &b).len, UNIT);
	piece(&pull[1], 0, UNIT);
	acked();
	cr_expect_eq(fake_comp(&f, &a).len, UNIT);
	/* That way they came. */
	cr_assert_eq(fi_trecv(f.ep, buf, UNIT, NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 46, mem, &seg, 1);
	fake_passes(&f, 40);
	cr_assert_eq(pulls_of(&next), 1);
	cr_expect_eq(next.ack >> LNX_PULL_WAY_SHIFT, 1);
	piece(&next, 0, UNIT);
	cr_expect_eq(fake_comp(&f, &b).len, UNIT);
	end();
}

/* Our side of that: memory goes to the peer that it was announced to, and to no other. */
Test(routed, answers)
{
	struct lnx_hdr pull = { .kind = LNX_KIND_PULL, .data = 9, .len = UNIT };
	const uint32_t most[] = { 0, 1, 2 * UNIT + 1, LONGEST, UINT32_MAX };
	uint8_t got[BYTES] = { 0 };
	struct fake_sent *s;
	uint64_t longest;
	unsigned i;
	size_t n;

	meet();
	cr_assert_eq(fi_tsend(f.ep, mem, BYTES, NULL, p.addr, 5, &a), 0);
	fake_passes(&f, 4);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	/* The number of the operation is the first word of the announcement. */
	memcpy(&pull.key, s->bytes + 64, 8);
	free(s);
	/* Behind its end, of another segment, another operation. */
	pull.tag = BYTES - UNIT + 1;
	fake_frame(&f, &p, pull, NULL, 0);
	pull.tag = 0;
	pull.seq = 1;
	fake_frame(&f, &p, pull, NULL, 0);
	pull.seq = 0;
	pull.key++;
	fake_frame(&f, &p, pull, NULL, 0);
	pull.key--;
	fake_passes(&f, 40);
	while ((s = fake_take(core))) {
		cr_expect_neq(s->h.kind, LNX_KIND_PIECE);
		free(s);
	}
	pull.len = BYTES;
	for (i = 0; i < LNX_ARRAY_SIZE(most); i++) {
		memset(got, 0, BYTES);
		n = 0;
		longest = 0;
		pull.data++;
		pull.ack = most[i];
		fake_frame(&f, &p, pull, NULL, 0);
		fake_passes(&f, 200);
		while ((s = fake_take(core))) {
			if (s->h.kind == LNX_KIND_PIECE) {
				cr_assert_leq(s->h.tag + s->h.len, BYTES);
				memcpy(got + s->h.tag, s->bytes + 64, s->h.len);
				n += s->h.len;
				longest = LNX_MAX(longest, s->h.len);
			}
			free(s);
		}
		cr_expect_eq(n, BYTES);
		cr_expect_eq(memcmp(got, mem, BYTES), 0);
		/* As long as it was asked for, in whole units, and as frames are. */
		cr_expect_eq(longest, most[i] < 2 * UNIT ? UNIT :
			     most[i] < LONGEST ? 2 * UNIT : BYTES);
	}
	end();
}

/* ---- two gateways ---- */

/* Ids of gateways, by their place in the AV. */
static uint64_t id_of(fi_addr_t dest)
{
	return GATEWAY + dest;
}

/* The session has begun over one of the gateways, whose place this returns. */
static fi_addr_t meet_gateways(const char *routes)
{
	fi_addr_t first, other;

	open_over(LNX_RAIL_PLAIN, routes);
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	fake_after_ms(&f, 1);
	cr_assert_eq(core->nhellos, 1);
	first = core->nonce[0] ? 0 : 1;
	other = !first;
	inform_of(id_of(first), core->nonce[first], 3);
	fake_via = id_of(first);
	fake_drop_all(&f, &p);
	fake_hello(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	/* Something comes over the other one, which has not said anything yet. */
	if (!core->nonce[other]) {
		fake_via = id_of(other);
		fake_ack(&f, &p);
		fake_after_ms(&f, 1);
	}
	cr_assert_neq(core->nonce[other], 0, "no hello to the gateway that a frame came over");
	inform_of(id_of(other), core->nonce[other], 4);
	fake_after_ms(&f, 1);
	fake_drop_all(&f, &p);
	return first;
}

static fi_addr_t meet_two(void)
{
	return meet_gateways("tcp2 via 10.9.0.8@tcp1,10.9.0.9@tcp1");
}

/* The last number of the address of that gateway. */
static unsigned address_of(fi_addr_t dest)
{
	struct sockaddr_in in = { 0 };
	size_t len = sizeof(in);

	cr_assert_eq(fi_av_lookup(f.lnx->rail[0]->av, dest, &in, &len), 0);
	return ntohl(in.sin_addr.s_addr) & 0xff;
}

/* Where the frame of that kind went that left first; the others are dropped. */
static fi_addr_t went(uint8_t kind, struct lnx_hdr *h)
{
	fi_addr_t dest = FI_ADDR_NOTAVAIL;
	struct fake_sent *s;

	while ((s = fake_take(core))) {
		if (s->h.kind == kind && dest == FI_ADDR_NOTAVAIL) {
			dest = s->dest;
			*h = s->h;
		}
		free(s);
	}
	return dest;
}

/* A question about a path is answered over that path, whichever gateway it leads over. */
Test(routed, answers_by_the_same_gateway)
{
	struct lnx_hdr h;
	fi_addr_t to;

	meet_two();
	for (to = 0; to < 2; to++) {
		fake_via = id_of(to);
		fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 1,
						     .data = LNX_WIRE_PROBE_LATENCY | 5 },
			   NULL, 0);
		fake_after_ms(&f, 1);
		cr_expect_eq(went(LNX_KIND_PONG, &h), to, "PROBE over gateway %d", (int)to);
		cr_expect_eq(h.data, LNX_WIRE_PROBE_LATENCY | 5);
	}
	end();
}

/* Pieces go back over the gateway that the PULL came over, or over the other one if they shall
 * come another way. */
Test(routed, answers_another_way)
{
	struct lnx_hdr pull = { .kind = LNX_KIND_PULL, .data = 9, .len = UNIT }, h;
	struct fake_sent *s;
	unsigned way;
	fi_addr_t to;

	meet_two();
	cr_assert_eq(fi_tsend(f.ep, mem, BYTES, NULL, p.addr, 5, &a), 0);
	fake_passes(&f, 4);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	memcpy(&pull.key, s->bytes + 64, 8);
	free(s);
	for (to = 0; to < 2; to++)
		for (way = 0; way < 5; way++) {
			fake_via = id_of(to);
			pull.data++;
			pull.ack = way << LNX_PULL_WAY_SHIFT;
			fake_frame(&f, &p, pull, NULL, 0);
			fake_after_ms(&f, 1);
			cr_expect_eq(went(LNX_KIND_PIECE, &h), (to + way) % 2,
				     "PULL over gateway %d, way %u", (int)to, way);
		}
	end();
}

/* The peer asks what has arrived: what we sent may be lost behind a gateway.  All are asked about its
 * host, not too often; not for a question about latency, which comes all the time. */
Test(routed, asks_when_the_peer_hears_nothing)
{
	unsigned before;

	meet_two();
	fake_via = id_of(0);
	before = core->nasks;
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 1,
					     .data = LNX_WIRE_PROBE_LATENCY | 5 }, NULL, 0);
	fake_after_ms(&f, 1);
	cr_assert_eq(core->nasks, before, "only latency");
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 1, .data = 6 },
		   NULL, 0);
	fake_after_ms(&f, 1);
	cr_assert_eq(core->nasks, before + 2);
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 2, .data = 7 },
		   NULL, 0);
	fake_after_ms(&f, LNX_GATEWAY_ASK_NS / LNX_NS_PER_MS - 10);
	cr_assert_eq(core->nasks, before + 2, "so soon");
	fake_after_ms(&f, 20);
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 2, .data = 8 },
		   NULL, 0);
	fake_after_ms(&f, 1);
	cr_assert_eq(core->nasks, before + 4);
	fake_drop_all(&f, &p);
	end();
}

/* One of two gateways begins anew, with another id: those are asked, and from then on questions
 * that come over it are answered over it. */
Test(routed, restarted_gateway)
{
	static const uint64_t anew = GATEWAY + 7;
	fi_addr_t other, first;
	struct lnx_hdr h;
	unsigned i, to;

	for (to = 0; to < 2; to++) {
		first = meet_two();
		other = !to;
		/* Both hear that we have their accounts. */
		fake_after_ms(&f, 600);
		for (i = 0; i < 2; i++)
			inform_of(id_of(i), core->nonce[i], i == first ? 3 : 4);
		fake_after_ms(&f, 600);
		fake_drop_all(&f, &p);
		core->nonce[0] = core->nonce[1] = 0;
		for (i = 0; i < 2; i++) {
			fake_via = anew;
			fake_frame(&f, &p, (struct lnx_hdr){
				.kind = LNX_KIND_PROBE, .tag = 1,
				.data = LNX_WIRE_PROBE_LATENCY | (5 + i) }, NULL, 0);
			fake_after_ms(&f, 1);
			if (i)
				break;
			cr_assert(core->nonce[0] && core->nonce[1], "not all are asked");
			inform_of(anew, core->nonce[to], 3);
			inform_of(id_of(other), core->nonce[other], 4);
			fake_after_ms(&f, 1);
			fake_drop_all(&f, &p);
		}
		cr_expect_eq(went(LNX_KIND_PONG, &h), to, "PROBE over gateway %u", to);
		cr_expect_eq(h.data, LNX_WIRE_PROBE_LATENCY | 6);
		/* What stays unknown is asked for once in a while. */
		core->nhellos = 0;
		for (i = 0; i < 20; i++) {
			fake_via = anew + 1;
			fake_frame(&f, &p, (struct lnx_hdr){
				.kind = LNX_KIND_PROBE, .tag = 1,
				.data = LNX_WIRE_PROBE_LATENCY | (9 + i) }, NULL, 0);
			fake_after_ms(&f, 200);
			fake_drop_all(&f, &p);
			inform_of(to ? id_of(other) : anew, core->nonce[0],
				  to ? 4 : 3);
			inform_of(to ? anew : id_of(other), core->nonce[1], to ? 3 : 4);
		}
		cr_expect_geq(core->nhellos, 2);
		cr_expect_leq(core->nhellos, 6);
		end();
	}
}

/* A message has left over one of two gateways, which is returned.  What comes from now on comes over
 * the other one. */
static fi_addr_t send_over_one(void)
{
	struct lnx_hdr h;
	fi_addr_t one;

	meet_two();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	one = went(LNX_KIND_TAG, &h);
	fake_via = id_of(!one);
	return one;
}

static void answer_probe(const struct fake_sent *s)
{
	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PONG, .tag = s->h.tag,
					     .data = s->h.data }, NULL, 0);
}

/* A gateway takes everything and forwards nothing: its path goes DOWN as soon as the peer
 * says so over the other one, and what it had leaves again over that. */
Test(routed, silent_gateway)
{
	fi_addr_t first = send_over_one(), again = FI_ADDR_NOTAVAIL;
	struct fake_sent *s;
	unsigned i;

	for (i = 0; i < 400 && again == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 5);
		while ((s = fake_take(core))) {
			if (s->h.kind == LNX_KIND_TAG)
				again = s->dest;
			if (s->h.kind == LNX_KIND_PROBE && s->dest != first)
				answer_probe(s);
			free(s);
		}
	}
	cr_expect_eq(again, !first);
	cr_expect_eq(f.lnx->stats.paths_down, 1);
	end();
}

/* Behind several gateways others decide over which of ours an answer comes back: the path is back
 * when the PROBE went through by it. */
Test(routed, silent_gateway_answers_by_the_other)
{
	fi_addr_t first = send_over_one();
	struct fake_sent *s;
	unsigned i;

	for (i = 0; i < 1000 && !f.lnx->stats.paths_restored; i++) {
		fake_after_ms(&f, 5);
		while ((s = fake_take(core))) {
			if (s->h.kind == LNX_KIND_PROBE &&
			    (s->dest != first || f.lnx->stats.paths_down))
				answer_probe(s);
			free(s);
		}
	}
	cr_expect_eq(f.lnx->stats.paths_down, 1);
	cr_expect_eq(f.lnx->stats.paths_restored, 1);
	end();
}

/* Two messages are announced, and asked for over one gateway each: those PULLs, and of which
 * gateway the first one is. */
static fi_addr_t two_pulls(uint64_t op, struct lnx_hdr pull[2])
{
	const uint64_t seg = UNIT;
	struct fake_sent *s;
	fi_addr_t to[2];
	unsigned n = 0;

	cr_assert_eq(fi_trecv(f.ep, buf, UNIT, NULL, FI_ADDR_UNSPEC, 9, 0, &a), 0);
	cr_assert_eq(fi_trecv(f.ep, buf + UNIT, UNIT, NULL, FI_ADDR_UNSPEC, 9, 0, &a), 0);
	fake_rts(&f, &p, true, 9, op, mem, &seg, 1);
	fake_rts(&f, &p, true, 9, op + 1, mem, &seg, 1);
	fake_passes(&f, 40);
	for (; (s = fake_receive(&f, &p)); free(s)) {
		if (s->h.kind != LNX_KIND_PULL)
			continue;
		cr_assert_lt(n, 2);
		to[n] = s->dest;
		pull[n++] = s->h;
	}
	cr_assert_eq(n, 2);
	cr_assert_neq(to[0], to[1]);
	return to[0];
}

static void pieces_of(const struct lnx_hdr pull[2])
{
	piece(&pull[0], 0, UNIT);
	piece(&pull[1], 0, UNIT);
	acked();
	cr_expect_eq(fake_comp(&f, &a).len, UNIT);
	cr_expect_eq(fake_comp(&f, &a).len, UNIT);
}

/* Which way shall PIECEs come that are asked for over that gateway? */
static unsigned way_over(fi_addr_t gateway, uint64_t op)
{
	struct lnx_hdr pull[2];
	fi_addr_t first = two_pulls(op, pull);

	pieces_of(pull);
	return pull[first != gateway].ack >> LNX_PULL_WAY_SHIFT;
}

/* What was asked for over the first gateway does not come. */
static void late_over(fi_addr_t gateway, uint64_t op)
{
	struct lnx_hdr pull[2], again;
	fi_addr_t first = two_pulls(op, pull);
	unsigned i, n = 0, late = first != gateway;

	piece(&pull[!late], 0, UNIT);
	acked();
	cr_expect_eq(fake_comp(&f, &a).len, UNIT);
	for (i = 0; i < 60 && !n; i++) {
		fake_after_ms(&f, 5);
		fake_passes(&f, 2);
		n = pulls_of(&again);
	}
	cr_assert_eq(n, 1);
	piece(&pull[late], 0, UNIT);
	acked();
	cr_expect_eq(fake_comp(&f, &a).len, UNIT);
}

/* Messages go to the peer for some time, and PROBEs are answered over the gateway that they went
 * over. */
static void all_answer(unsigned ms)
{
	struct fake_sent *s;

	for (; ms; ms -= 5) {
		cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
		fake_after_ms(&f, 5);
		for (; (s = fake_receive(&f, &p)); free(s)) {
			fake_via = id_of(s->dest);
			if (s->h.kind == LNX_KIND_PROBE)
				answer_probe(s);
		}
		fake_ack(&f, &p);
	}
}

/* PIECEs that were late once come the usual way again when that works: otherwise all of them would
 * come over one of two gateways from then on.  If it does not, it is tried ever more rarely. */
Test(routed, pulls_the_usual_way_again)
{
	fi_addr_t gateway = meet_two();

	all_answer(300);
	cr_expect_eq(way_over(gateway, 44), 0);
	late_over(gateway, 46);
	cr_expect_eq(way_over(gateway, 48), 1);
	cr_expect_eq(way_over(!gateway, 50), 0);
	all_answer(350);
	cr_expect_eq(way_over(gateway, 52), 0);
	late_over(gateway, 54);
	all_answer(300);
	cr_expect_eq(way_over(gateway, 56), 1);
	all_answer(300);
	cr_expect_eq(way_over(gateway, 58), 0);
	end();
}

/* ---- what is charged for a path that delivers nothing ---- */

enum { LEG = 1, BELOW = 2, REMOTE = 4, ROUTE = 8 };

struct charge_row {
	const char *row;
	bool heard;			/* the gateway, by this NID */
	bool asked;			/* a hello to it has no answer */
	bool dead;			/* none had for long */
	bool silent;			/* the peer, on all paths */
	unsigned tell;			/* what the gateway tells of the peer's host; 0: nothing */
	unsigned charged;		/* beside the path */
};

static bool any_route_noted(const struct lnx_gateways *all)
{
	unsigned i, n = 0;

	for (i = 0; i < all->table.n; i++)
		n += all->table.route[i].noted_ns != 0;
	return n;
}

static struct lnx_leg *leg_of(const struct lnx_path *path)
{
	const struct lnx_gateways *all = view_gateways(f.lnx);
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (all->gw[i]->nleg && &all->gw[i]->leg[0]->rail == view_rail(path))
			return all->gw[i]->leg[0];
	cr_assert_fail("the path leads over no gateway");
	return NULL;
}

/* The gateway of the path is asked about the peer's host, and tells that. */
static void asked_and_told(struct lnx_path *path, unsigned what)
{
	unsigned asks = core->nasks;

	lnx_recovery_ping(lnx_peer_get(f.lnx, p.addr), path);
	cr_assert_gt(core->nasks, asks);
	tell(&asks, leg_of(path)->gw->process->state.id, what);
}

/* What is charged beside the path: bits. */
static unsigned charged(const struct charge_row *row)
{
	struct lnx_peer *peer = lnx_peer_get(f.lnx, p.addr);
	struct lnx_path *path = view_path(peer, 0);
	const struct lnx_leg *other = leg_of(view_path(peer, 1));
	struct lnx_leg *leg = leg_of(path);
	struct lnx_gateway *state = &leg->gw->process->state;
	uint64_t now, long_ns = 2 * f.lnx->plan.rail_ns;

	if (row->tell)
		asked_and_told(path, row->tell);
	fake_after_ms(&f, (unsigned)(2 * long_ns / LNX_NS_PER_MS));
	now = lnx_clock_ns();
	force_kernel_asked(path, row->tell);
	force_silent(peer, row->silent ? now - long_ns : 0, now - 1);
	leg->answered_ns = leg->gw->heard_ns = state->heard_ns = row->heard ? now : 1;
	leg->hello_ns = row->asked ? now - long_ns : 0;
	state->state = row->dead ? LNX_GATEWAY_DEAD : LNX_GATEWAY_ALIVE;
	lnx_detect_charge(peer, path, LNX_CLASS_NETWORK_TIMEOUT, now);
	cr_expect_lt(view_health(path), LNX_HEALTH_MAX, "%s: not the path", row->row);
	cr_expect_eq(other->rail.health.value, LNX_HEALTH_MAX, "%s: the other gateway",
		     row->row);
	return (leg->rail.health.value < LNX_HEALTH_MAX ? LEG : 0u) |
	       (leg->rail.below->health.value < LNX_HEALTH_MAX ? BELOW : 0u) |
	       (view_remote_health(path)->value < LNX_HEALTH_MAX ? REMOTE : 0u) |
	       (any_route_noted(leg->gw->all) ? ROUTE : 0u);
}

Test(routed, charges)
{
	static const struct charge_row rows[] = {
		{ .row = "a gateway that was asked, and the peer answers by another one",
		  .asked = true, .charged = LEG },
		{ .row = "a dead one, likewise", .dead = true, .charged = LEG },
		{ .row = "all is silent: it may be our own switch", .asked = true,
		  .silent = true },
		{ .row = "a gateway that has nothing to forward from a dead peer",
		  .silent = true },
		{ .row = "one that was not asked" },
		{ .row = "the leg behind a gateway, which tells nothing yet", .heard = true },
		{ .row = "its far rail is down", .heard = true, .tell = LNX_TELL_RAIL_DOWN,
		  .charged = ROUTE },
		{ .row = "it has no route", .heard = true, .silent = true,
		  .tell = LNX_TELL_NO_ROUTE, .charged = ROUTE },
		{ .row = "the peer's host is silent to it only", .heard = true,
		  .tell = LNX_TELL_SILENT },
		/* The only rail of a peer is not charged. */
		{ .row = "the peer is gone", .heard = true, .silent = true,
		  .tell = LNX_TELL_REFUSED },
		{ .row = "it computes", .heard = true, .silent = true,
		  .tell = LNX_TELL_ALIVE },
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		unsigned got;

		meet_two();
		got = charged(&rows[i]);
		cr_expect_eq(got, rows[i].charged, "%s: %#x, not %#x", rows[i].row, got,
			     rows[i].charged);
		end();
	}
}

/* The peer asks for n times the message with that number of its operation, over gateway 0, and
 * once over gateway 1.  How many pieces of the last one left over gateway 1? */
static unsigned answered(uint64_t number, unsigned n)
{
	struct lnx_hdr pull = {
		.kind = LNX_KIND_PULL, .data = 9, .len = BYTES, .key = number,
	};
	struct fake_sent *s;
	unsigned came = 0;

	fake_via = id_of(0);
	for (; n; n--, pull.data++)
		fake_frame(&f, &p, pull, NULL, 0);
	fake_passes(&f, 40);
	fake_via = id_of(1);
	fake_frame(&f, &p, pull, NULL, 0);
	fake_after_ms(&f, 1);
	fake_passes(&f, 40);
	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_PIECE && s->dest == 1) {
			cr_expect_eq(s->h.data, pull.data);
			came++;
		}
		free(s);
	}
	return came;
}

/* Pieces for a gateway that takes nothing, or in whose connection they hang, do not delay those
 * for another one. */
Test(routed, pieces_past_a_gateway_that_hangs)
{
	struct fake_sent *s;
	uint64_t number;
	unsigned hangs;

	for (hangs = 0; hangs < 2; hangs++) {
		meet_two();
		cr_assert_eq(fi_tsend(f.ep, mem, BYTES, NULL, p.addr, 5, &a), 0);
		fake_passes(&f, 4);
		s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
		memcpy(&number, s->bytes + 64, 8);
		free(s);
		core->deaf = !hangs;
		core->hold_sends = hangs;
		cr_expect_eq(answered(number, 8), (BYTES + UNIT - 1) / UNIT, "%u", hangs);
		core->hold_sends = false;
		fake_finish_all(core);
		end();
	}
}

/* ---- notes ---- */

/* Our account at that gateway. */
static uint16_t account_at(uint64_t id)
{
	const struct lnx_gateways *all = view_gateways(f.lnx);
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (all->gw[i]->process->state.id == id)
			return all->gw[i]->process->state.account;
	return 0;
}

/* The gateway says why it dropped that frame, and that for so long it will be the same. */
static void note_for(fi_addr_t gateway, unsigned reason, const struct lnx_hdr *frame,
		     uint32_t wait_ms)
{
	struct lnx_route_note n = {
		.reason = (uint8_t)reason, .account = account_at(id_of(gateway)),
		.id = id_of(gateway), .count = 1,
		.rail = p.where.rail[0], .src = frame->src, .dst = frame->dst,
		.seq = frame->seq, .wait_ms = wait_ms,
	};
	uint8_t bytes[LNX_ROUTE_NOTE_LEN];

	cr_assert_gt(lnx_route_note_put(bytes, &n), 0);
	fake_arrive(core, bytes, sizeof(bytes));
}

static void note(fi_addr_t gateway, unsigned reason, const struct lnx_hdr *frame)
{
	note_for(gateway, reason, frame, 0);
}

/* Send a message; the gateway that it goes to, *first, drops it and says so.  Returns where it
 * goes then, and *frame becomes it. */
static fi_addr_t noted(unsigned reason, fi_addr_t *first, struct lnx_hdr *frame)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	unsigned i;

	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	*first = went(LNX_KIND_TAG, frame);
	cr_assert_neq(*first, FI_ADDR_NOTAVAIL);
	note(*first, reason, frame);
	/* At once, and not when the frame is missed. */
	for (i = 0; i < 20 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, frame);
	}
	return to;
}

/* Whatever the reason, the frame leaves again over the other gateway. */
Test(routed, notes_send_again)
{
	static const uint8_t reasons[] = {
		LNX_NOTE_NO_ROUTE, LNX_NOTE_REFUSED, LNX_NOTE_UNREACHABLE,
		LNX_NOTE_UNKNOWN_DST, LNX_NOTE_TTL, LNX_NOTE_FORBIDDEN, LNX_NOTE_OVER_QUOTA,
		LNX_NOTE_DRAINING, LNX_NOTE_NOT_ROUTER,
	};
	fi_addr_t first, to;
	struct lnx_hdr h;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(reasons); i++) {
		meet_two();
		to = noted(reasons[i], &first, &h);
		cr_expect_eq(to, !first, "%s", lnx_route_reason_name(reasons[i]));
		cr_expect_eq(h.tag, 5);
		end();
	}
}

/* Frames fit both gateways; but one that left when both took long ones leaves over the one that
 * takes shorter ones by now, when the other one is lost. */
Test(routed, long_frame_over_the_other)
{
	fi_addr_t first, to = FI_ADDR_NOTAVAIL;
	struct lnx_hdr h;
	unsigned i;

	says.newest = LNX_ROUTE_NEWEST;
	meet_two();
	grant(1 << 20);
	cr_assert_eq(fi_tsend(f.ep, mem, 30000, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	first = went(LNX_KIND_TAG, &h);
	cr_assert_neq(first, FI_ADDR_NOTAVAIL);
	cr_assert_eq(h.len, 30000);
	says.frame_max = LNX_ROUTE_HEAD + LNX_FRAME_MAX;
	inform_of(id_of(!first), core->nonce[!first], 4);
	note(first, LNX_NOTE_UNREACHABLE, &h);
	for (i = 0; i < 20 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, &h);
	}
	cr_expect_eq(to, !first);
	cr_expect_eq(h.len, 30000);
	p.got++;
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	cr_expect_eq(longest_of(30000), LNX_FRAME_MAX);
	end();
}

/* Of one that has never said anything the rails may be short, and all frames may have to leave over
 * it: what is lost with the other one does. */
Test(routed, long_frames_beside_a_silent_gateway)
{
	fi_addr_t other;
	struct lnx_hdr h;
	uint32_t most = 0;
	unsigned i, n = 0;

	says.newest = LNX_ROUTE_NEWEST;
	meet();
	grant(1 << 30);
	cr_expect_eq(longest_of(30000), 30000 + 64);
	cr_assert_eq(request("route add tcp2 priority=3 via 10.9.0.8@tcp1"), 0);
	fake_after_ms(&f, 1);
	cr_assert_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 2);
	fake_drop_all(&f, &p);
	cr_expect_eq(longest_of(30000), LNX_FRAME_MAX);
	/* The other one is lost now, and this one has just come. */
	cr_assert_eq(fi_tsend(f.ep, mem, 30000, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	cr_assert_eq(went(LNX_KIND_PART_TAG, &h), 0);
	fake_drop_all(&f, &p);
	note(0, LNX_NOTE_UNREACHABLE, &h);
	other = core->nonce[1] ? 1 : 0;
	cr_assert_eq(other, 1);
	says.frame_max = LNX_ROUTE_HEAD + LNX_FRAME_MAX;
	inform_of(id_of(1), core->nonce[1], 4);
	for (i = 0; i < 200; i++) {
		struct fake_sent *s;

		fake_after_ms(&f, 1);
		while ((s = fake_receive(&f, &p))) {
			n += s->dest == 1 && s->h.kind == LNX_KIND_PART_TAG;
			most = LNX_MAX(most, (uint32_t)s->len);
			free(s);
		}
	}
	cr_expect_geq(n, 1, "it does not leave over the other one");
	cr_expect_leq(most, LNX_FRAME_MAX, "too long a frame: %u", most);
	/* When it has said that it takes long ones, frames are long. */
	p.got += 2;
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_drop_all(&f, &p);
	says.frame_max = LNX_FRAME_LARGE;
	inform_of(id_of(1), core->nonce[1], 4);
	cr_expect_eq(longest_of(30000), 30000 + 64);
	end();
}

/* Those that say that the gateway has no way there, or will end, keep others away from it; until
 * it says that it forwards. */
Test(routed, notes_keep_away)
{
	static const uint8_t reasons[] = {
		LNX_NOTE_NO_ROUTE, LNX_NOTE_DRAINING, LNX_NOTE_NOT_ROUTER,
	};
	fi_addr_t first, to;
	struct lnx_hdr h;
	unsigned n;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(reasons); i++) {
		meet_two();
		noted(reasons[i], &first, &h);
		for (n = 0; n < 8; n++) {
			cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 6 + n, &a), 0);
			fake_after_ms(&f, 1);
			to = went(LNX_KIND_TAG, &h);
			cr_expect_eq(to, !first, "%s: %d, tag %d", lnx_route_reason_name(reasons[i]),
				     (int)to, (int)h.tag);
		}
		end();
	}
}

/* Over the only gateway it leaves again as well. */
Test(routed, quota_of_the_only_gateway)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct lnx_hdr h;
	unsigned i;

	meet();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	cr_assert_neq(went(LNX_KIND_TAG, &h), FI_ADDR_NOTAVAIL);
	note(0, LNX_NOTE_OVER_QUOTA, &h);
	for (i = 0; i < 20 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, &h);
	}
	cr_expect_eq(to, 0);
	cr_expect(lnx_peer_open(lnx_peer_get(f.lnx, p.addr)));
	end();
}

/* A gateway that drops all for a time is not sent the same again and again; soon after that time
 * it is. */
Test(routed, notes_one_after_the_other)
{
	unsigned i, n = 0, last = 0;
	struct lnx_hdr h;

	meet();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	for (i = 0; i < 1000; i++) {
		fake_after_ms(&f, 1);
		if (went(LNX_KIND_TAG, &h) == FI_ADDR_NOTAVAIL)
			continue;
		n++;
		last = i;
		note_for(0, LNX_NOTE_UNREACHABLE, &h, 1000);
	}
	cr_expect_leq(n, 14, "%u times", n);
	cr_expect_gt(last, 700);
	/* Then it is short again. */
	for (i = 0; i < 210 && went(LNX_KIND_TAG, &h) == FI_ADDR_NOTAVAIL; i++)
		fake_after_ms(&f, 1);
	cr_expect_lt(i, 210);
	fake_ack(&f, &p);
	fake_after_ms(&f, 900);
	fake_drop_all(&f, &p);
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	cr_assert_neq(went(LNX_KIND_TAG, &h), FI_ADDR_NOTAVAIL);
	note_for(0, LNX_NOTE_UNREACHABLE, &h, 1000);
	for (i = 0; i < 20 && went(LNX_KIND_TAG, &h) == FI_ADDR_NOTAVAIL; i++)
		fake_after_ms(&f, 1);
	cr_expect_lt(i, 5);
	end();
}

/* Both gateways say again and again that they drop what is for a peer, so that its frames go to
 * and fro, and neither hears of its host.  It is given up all the same. */
Test(routed, notes_about_a_dead_peer)
{
	unsigned gap_ms, ms;
	fi_addr_t to;
	struct lnx_hdr h;

	fake_conf.transaction_timeout = 2000;
	fake_conf.connect_timeout = 3600000;
	for (gap_ms = 20; gap_ms <= 500; gap_ms += 60) {
		meet_two();
		cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
		for (ms = 0; ms < 60000 && lnx_peer_open(lnx_peer_get(f.lnx, p.addr));
		     ms += gap_ms) {
			fake_after_ms(&f, gap_ms);
			to = went(LNX_KIND_TAG, &h);
			if (to != FI_ADDR_NOTAVAIL)
				note_for(to, LNX_NOTE_UNREACHABLE, &h, 1000);
		}
		cr_expect_leq(ms, 5000, "every %u ms: given up after %u ms", gap_ms, ms);
		end();
	}
}

/* Notes of others than the gateway, and about frames of others, mean nothing. */
Test(routed, notes_that_are_not_trusted)
{
	struct lnx_hdr h, wrong;
	fi_addr_t first;

	meet_two();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	first = went(LNX_KIND_TAG, &h);
	wrong = h;
	wrong.src++;
	note(first, LNX_NOTE_NO_ROUTE, &wrong);
	wrong = h;
	wrong.dst++;
	note(first, LNX_NOTE_NO_ROUTE, &wrong);
	note(2, LNX_NOTE_NO_ROUTE, &h);
	fake_after_ms(&f, 1);
	fake_after_ms(&f, 1);
	cr_expect_eq(went(LNX_KIND_TAG, &wrong), FI_ADDR_NOTAVAIL);
	end();
}

/* They say nothing of the gateway either. */
Test(routed, notes_of_others_about_a_gateway)
{
	static const uint8_t reasons[] = {
		LNX_NOTE_NO_ROUTE, LNX_NOTE_OVER_QUOTA, LNX_NOTE_DRAINING, LNX_NOTE_NOT_ROUTER,
	};
	const struct lnx_gateway *g = NULL;
	struct lnx_hdr h, wrong;
	fi_addr_t first;
	unsigned i;

	meet_two();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	first = went(LNX_KIND_TAG, &h);
	for (i = 0; i < view_gateways(f.lnx)->n; i++)
		if (view_gateways(f.lnx)->gw[i]->process->state.id == id_of(first))
			g = &view_gateways(f.lnx)->gw[i]->process->state;
	cr_assert_not_null(g);
	wrong = h;
	wrong.src++;
	for (i = 0; i < LNX_ARRAY_SIZE(reasons); i++)
		note(first, reasons[i], &wrong);
	fake_after_ms(&f, 1);
	cr_expect(g->routing && !g->draining && !g->slow_ns && !g->notes[LNX_NOTE_NO_ROUTE]);
	for (i = 0; i < LNX_ARRAY_SIZE(reasons); i++)
		note(first, reasons[i], &h);
	fake_after_ms(&f, 1);
	cr_expect(!g->routing && g->draining && g->slow_ns && g->notes[LNX_NOTE_NO_ROUTE]);
	end();
}

/* Nor does an answer to a question that was not asked. */
Test(routed, tells_that_are_not_trusted)
{
	struct lnx_gateway *state;
	struct lnx_path *path;
	struct lnx_gw *gw;
	unsigned asks;

	meet_two();
	path = view_path(lnx_peer_get(f.lnx, p.addr), 0);
	gw = leg_of(path)->gw;
	state = &gw->process->state;
	asks = core->nasks;
	lnx_recovery_ping(lnx_peer_get(f.lnx, p.addr), path);
	cr_assert_gt(core->nasks, asks);
	state->state = LNX_GATEWAY_DEAD;
	state->heard_ns = gw->heard_ns = 1;
	core->ask.nonce += 2;
	tell(&asks, state->id, LNX_TELL_ALIVE);
	fake_pass(&f);
	cr_expect_eq(state->state, LNX_GATEWAY_DEAD);
	cr_expect(state->heard_ns == 1 && gw->heard_ns == 1);
	cr_expect_eq(f.lnx->stats.stale_frames, 1);
	core->ask.nonce -= 2;
	asks--;
	tell(&asks, state->id, LNX_TELL_ALIVE);
	fake_pass(&f);
	cr_expect_eq(state->state, LNX_GATEWAY_ALIVE);
	cr_expect(state->heard_ns > 1 && gw->heard_ns > 1);
	cr_expect_eq(f.lnx->stats.stale_frames, 1);
	/* The same answer again, to another question. */
	asks = core->ask.nonce;
	lnx_recovery_ping(lnx_peer_get(f.lnx, p.addr), path);
	cr_assert_neq(core->ask.nonce, asks, "one nonce for two questions");
	state->state = LNX_GATEWAY_DEAD;
	core->ask.nonce = asks;
	asks = core->nasks - 1;
	tell(&asks, state->id, LNX_TELL_ALIVE);
	fake_pass(&f);
	cr_expect_eq(state->state, LNX_GATEWAY_DEAD);
	cr_expect_eq(lnx_recovery_kernel(path), LNX_PING_WAITING);
	cr_expect_eq(f.lnx->stats.stale_frames, 2);
	end();
}

/* What the peer says in the name of the gateway of frames of its own session, since it does not
 * know our account there. */
Test(routed, notes_of_the_peer)
{
	const struct lnx_gateway *g;
	struct lnx_hdr h;
	unsigned i;

	meet();
	g = &view_gateways(f.lnx)->gw[0]->process->state;
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	cr_assert_neq(went(LNX_KIND_TAG, &h), FI_ADDR_NOTAVAIL);
	for (i = 0; i < 2000; i++) {
		struct lnx_route_note n = {
			.reason = LNX_NOTE_NOT_ROUTER, .account = (uint16_t)(4 + i),
			.id = GATEWAY, .count = 1, .rail = p.where.rail[0], .src = h.src,
			.dst = h.dst, .seq = h.seq,
		};
		uint8_t bytes[LNX_ROUTE_NOTE_LEN];

		/* At last it finds it. */
		if (i == 1999)
			n.account = 3;
		cr_assert_gt(lnx_route_note_put(bytes, &n), 0);
		fake_arrive(core, bytes, sizeof(bytes));
		fake_pass(&f);
	}
	cr_expect(g->routing && !g->notes[LNX_NOTE_NOT_ROUTER]);
	fake_after_ms(&f, 1100);
	note(0, LNX_NOTE_NOT_ROUTER, &h);
	fake_pass(&f);
	cr_expect_not(g->routing);
	end();
}

/* Frames in the name of a gateway, whose id each of its peers knows, do not keep it alive, and do
 * not bring it back: they make it be asked. */
Test(routed, frames_in_the_name_of_a_gateway)
{
	struct lnx_gateway *g;
	unsigned i, hellos;

	meet();
	g = &view_gateways(f.lnx)->gw[0]->process->state;
	fake_after_ms(&f, 600);
	inform(core->hello.nonce, 3);
	/* The next hello has no answer. */
	for (i = 0; i < 70; i++) {
		fake_after_ms(&f, 1000);
		fake_ack(&f, &p);
		fake_drop_all(&f, &p);
	}
	cr_assert_eq(g->state, LNX_GATEWAY_DEAD, "they keep it alive");
	hellos = core->nhellos;
	for (i = 0; i < 20; i++) {
		fake_ack(&f, &p);
		fake_after_ms(&f, 1000);
		fake_drop_all(&f, &p);
		cr_assert_eq(g->state, LNX_GATEWAY_DEAD, "they bring it back");
	}
	cr_expect_geq(core->nhellos, hellos + 2, "it is not asked");
	cr_expect_leq(core->nhellos, hellos + 40);
	inform(core->hello.nonce, 3);
	cr_expect_eq(g->state, LNX_GATEWAY_ALIVE);
	end();
}

/* ---- which gateway ---- */

/* The route with the better priority is used, whatever the order of the gateways; when its
 * gateway says that it ends, the other one. */
Test(routed, priority)
{
	fi_addr_t first, to;
	struct lnx_hdr h;
	unsigned i;

	for (i = 0; i < 8; i++) {
		meet_gateways("tcp2 priority=1 via 10.9.0.8@tcp1; tcp2 via 10.9.0.9@tcp1");
		to = noted(LNX_NOTE_DRAINING, &first, &h);
		cr_expect_eq(address_of(first), 9);
		cr_expect_eq(address_of(to), 8);
		end();
	}
}

/* So is the one over fewer gateways. */
Test(routed, hops)
{
	unsigned i;

	for (i = 0; i < 8; i++) {
		cr_expect_eq(address_of(meet_gateways("tcp2 hop=1 via 10.9.0.8@tcp1; "
						      "tcp2 hop=2 via 10.9.0.9@tcp1")), 8);
		end();
	}
}

/* A rule prefers a gateway to that net, against the priority. */
Test(routed, preferred_by_rule)
{
	unsigned i;

	for (i = 0; i < 8; i++) {
		fake_conf.udsp = "dst:tcp2,rte:10.9.0.8@tcp1";
		cr_expect_eq(address_of(meet_gateways("tcp2 priority=1 via 10.9.0.8@tcp1; "
						      "tcp2 via 10.9.0.9@tcp1")), 8);
		fake_conf.udsp = NULL;
		end();
	}
}

/* ---- without a route back ---- */

/* The gateway leads to another net than that of the peer, whose HELLO comes over it. */
static void comes_from_elsewhere(void)
{
	nets = "tcp1=127.0.0.0/8; tcp2=10.2.0.0/16; tcp3=10.3.0.0/16";
	fake_conf.check_routers_before_use = true;
	open_over(LNX_RAIL_PLAIN, "tcp3 via 10.9.0.9@tcp1");
	fake_after_ms(&f, 1);
	cr_assert_neq(core->nonce[0], 0, "the gateway is not asked before it is used");
	inform_of(id_of(0), core->nonce[0], 3);
	fake_via = id_of(0);
	fake_hello(&f, &p);
	fake_after_ms(&f, 1);
}

static const char *routes_shown(void)
{
	static char reply[1000];

	memset(reply, 0, sizeof(reply));
	cr_assert_geq(lnx_ctl_request(f.lnx, "route show", reply, sizeof(reply)), 0);
	return reply;
}

/* Which route leads back is known: NULL, or its text. */
static const char *missing(void)
{
	static char text[LNX_ROUTE_TEXT_MAX];

	return lnx_routes_missing(view_gateways(f.lnx), "", text) ? text : NULL;
}

/* It is taken, and counted. */
Test(routed, no_route_back)
{
	comes_from_elsewhere();
	cr_expect_eq(f.lnx->stats.asym_frames, 1);
	cr_expect(strstr(routes_shown(), " asym_frames=1 "));
	cr_expect_str_eq(missing(), "tcp2 via 10.9.0.9@tcp1");
	cr_expect_neq(lnx_peer_by_sid(f.lnx, p.eid), NULL);
	cr_expect_null(strstr(routes_shown(), "tcp2"));
	end();
}

/* It is dropped; what comes over a gateway that leads back is not. */
Test(routed, no_route_back_drops)
{
	fake_conf.drop_asym_route = true;
	comes_from_elsewhere();
	cr_expect_eq(f.lnx->stats.asym_frames, 1);
	cr_expect_null(lnx_peer_by_sid(f.lnx, p.eid));
	cr_expect_not_null(missing());
	cr_assert_eq(request("route add tcp2 via 10.9.0.9@tcp1"), 0);
	cr_expect_null(missing());
	p.seq = 0;
	fake_hello(&f, &p);
	fake_after_ms(&f, 1);
	cr_expect_eq(f.lnx->stats.asym_frames, 1);
	cr_expect_neq(lnx_peer_by_sid(f.lnx, p.eid), NULL);
	end();
}

/* So is what comes over a gateway that none of ours says to be. */
Test(routed, foreign_gateway_drops)
{
	unsigned i;

	fake_conf.drop_asym_route = true;
	meet();
	for (i = 0; i < 20; i++) {
		fake_via = GATEWAY + 3;
		fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 1,
						     .data = LNX_WIRE_PROBE_LATENCY | (5 + i) },
			   NULL, 0);
		fake_after_ms(&f, 200);
		if (core->nonce[0])
			inform(core->nonce[0], 3);
		core->nonce[0] = 0;
		fake_drop_all(&f, &p);
	}
	cr_expect_eq(f.lnx->stats.asym_frames, 20);
	end();
}

/* A route is learned, and used; it is behind those of the user, and not exported. */
Test(routed, route_back_is_learned)
{
	static char reply[8000];
	struct lnx_hdr h;

	fake_conf.learn_routes = true;
	comes_from_elsewhere();
	cr_expect_eq(f.lnx->stats.asym_frames, 1);
	cr_expect(strstr(routes_shown(), "route tcp2 hop=1 priority=4294967294 via 10.9.0.9@tcp1"),
		  "%s", routes_shown());
	cr_expect(strstr(routes_shown(), "single-hop, learned"));
	fake_drop_all(&f, &p);
	cr_assert_eq(fi_tinject(f.ep, "y", 1, p.addr, 2), 0);
	fake_after_ms(&f, 1);
	cr_expect_eq(address_of(went(LNX_KIND_TAG, &h)), 9);
	cr_assert_geq(lnx_ctl_request(f.lnx, "export", reply, sizeof(reply)), 0);
	cr_expect(strstr(reply, "tcp3") && !strstr(reply, "net: tcp2\n"), "%s", reply);
	/* The user's own takes its place. */
	cr_assert_eq(request("route add tcp2 priority=2 via 10.9.0.9@tcp1"), 0);
	cr_expect(strstr(routes_shown(), "route tcp2 priority=2 via 10.9.0.9@tcp1"));
	cr_expect_null(strstr(routes_shown(), "learned"));
	end();
}

/* ---- gateways with several NIDs ---- */

#define OTHER_GATEWAY	0x99u
#define NIDS		3u

/* Of the last hello that each has answered, by the last number of its address. */
static uint32_t known_nonce[10];

/* Where frames to that address go. */
static fi_addr_t place_of(unsigned address)
{
	fi_addr_t i;

	for (i = 0; i < NIDS && address_of(i) != address; i++)
		;
	cr_assert_lt(i, NIDS);
	return i;
}

/* The NIDs that end with 7 and 8 answer hellos, if there are some, with these ids (0: not), and
 * the one that ends with 9 as another gateway. */
static void answer_hellos(uint64_t seven, uint64_t eight, uint8_t flags)
{
	const struct {
		unsigned address;
		uint64_t id;
		uint16_t account;
	} of[NIDS] = { { 7, seven, 7 }, { 8, eight, 7 }, { 9, OTHER_GATEWAY, 9 } };
	unsigned i;

	for (i = 0; i < NIDS; i++) {
		fi_addr_t at = place_of(of[i].address);

		if (core->nonce[at] && of[i].id) {
			known_nonce[of[i].address] = core->nonce[at];
			inform_with(of[i].id, core->nonce[at], of[i].account,
				    of[i].address == 9 ? LNX_GW_F_ROUTING : flags);
		}
		core->nonce[at] = 0;
	}
}

static void meet_nids(const char *routes)
{
	open_over(LNX_RAIL_PLAIN, routes);
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	fake_after_ms(&f, 1);
	answer_hellos(GATEWAY, GATEWAY, LNX_GW_F_ROUTING);
	/* By an id that is not known the others are asked. */
	fake_via = GATEWAY + 1;
	fake_drop_all(&f, &p);
	fake_hello(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_after_ms(&f, 1);
	answer_hellos(GATEWAY, GATEWAY, LNX_GW_F_ROUTING);
	fake_via = OTHER_GATEWAY;
	fake_after_ms(&f, 1);
	fake_drop_all(&f, &p);
}

/* The next messages go to NIDs with these addresses only, which are bits. */
static void expect_only(unsigned addresses, const char *what)
{
	struct lnx_hdr h;
	fi_addr_t to;
	unsigned n;

	for (n = 0; n < 8; n++) {
		cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 6 + n), 0);
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, &h);
		cr_assert_neq(to, FI_ADDR_NOTAVAIL);
		cr_expect(addresses >> address_of(to) & 1, "%s: to %u", what, address_of(to));
		fake_ack(&f, &p);
		fake_passes(&f, 4);
	}
}

/* What a gateway says counts for all its NIDs. */
Test(routed, news_for_all_nids)
{
	unsigned i;

	for (i = 0; i < 4; i++) {
		meet_nids("tcp2 via 10.9.0.[7-9]@tcp1");
		inform_with(GATEWAY, known_nonce[7 + i % 2], 7,
			    LNX_GW_F_ROUTING | LNX_GW_F_DRAINING);
		fake_after_ms(&f, 1);
		expect_only(1u << 9, "it drains");
		inform_with(GATEWAY, known_nonce[7], 7, LNX_GW_F_ROUTING);
		inform_with(OTHER_GATEWAY, known_nonce[9], 9, 0);
		fake_after_ms(&f, 1);
		expect_only(1u << 7 | 1u << 8, "the other one does not forward");
		end();
	}
}

/* The gateway with the two NIDs says why it dropped that frame. */
static void note_of_two(unsigned reason, const struct lnx_hdr *frame)
{
	struct lnx_route_note n = {
		.reason = (uint8_t)reason, .account = 7, .id = GATEWAY, .count = 1,
		.rail = p.where.rail[0], .src = frame->src, .dst = frame->dst,
		.seq = frame->seq,
	};
	uint8_t bytes[LNX_ROUTE_NOTE_LEN];

	cr_assert_gt(lnx_route_note_put(bytes, &n), 0);
	fake_arrive(core, bytes, sizeof(bytes));
}

/* Send a message over the gateway with the two NIDs, which drops it n times for that reason: to
 * which addresses does it go? */
static void dropped(unsigned reason, unsigned n, unsigned *address)
{
	struct lnx_hdr h;
	fi_addr_t to;
	unsigned i;

	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 5), 0);
	fake_after_ms(&f, 1);
	*address = address_of(went(LNX_KIND_TAG, &h));
	for (; n; n--) {
		cr_assert_neq(*address, 9);
		note_of_two(reason, &h);
		to = FI_ADDR_NOTAVAIL;
		for (i = 0; i < 20 && to == FI_ADDR_NOTAVAIL; i++) {
			fake_after_ms(&f, 1);
			to = went(LNX_KIND_TAG, &h);
		}
		cr_assert_neq(to, FI_ADDR_NOTAVAIL);
		*++address = address_of(to);
	}
	fake_ack(&f, &p);
	fake_passes(&f, 4);
}

/* So do its notes. */
Test(routed, notes_for_all_nids)
{
	static char reply[1000];
	const char *at = reply;
	unsigned i, to[2], n;

	for (i = 0; i < 4; i++) {
		meet_nids("tcp2 via 10.9.0.[7-8]@tcp1; tcp2 priority=1 via 10.9.0.9@tcp1");
		dropped(LNX_NOTE_NO_ROUTE, 1, to);
		cr_expect_eq(to[1], 9);
		expect_only(1u << 9, "it has no way");
		memset(reply, 0, sizeof(reply));
		cr_assert_gt(lnx_ctl_request(f.lnx, "route show", reply, sizeof(reply)), 0);
		for (n = 0, at = reply; (at = strstr(at, "gateway says it has no way")); at++)
			n++;
		cr_expect_eq(n, 2, "%s", reply);
		end();
	}
}

/* The better priority of two routes over one gateway counts for both of its NIDs, as long as a
 * route leads over them. */
Test(routed, priority_of_all_nids)
{
	unsigned i, to[3];

	for (i = 0; i < 6; i++) {
		meet_nids("tcp2 via 10.9.0.7@tcp1; tcp2 priority=2 via 10.9.0.8@tcp1; "
			  "tcp2 priority=1 via 10.9.0.9@tcp1");
		/* What it takes not over one NID goes over the other, and then elsewhere. */
		dropped(LNX_NOTE_UNREACHABLE, 2, to);
		cr_expect_eq(to[0] + to[1], 7 + 8);
		cr_expect_neq(to[2], to[1]);
		end();
		meet_nids("tcp2 via 10.9.0.7@tcp1; tcp2 priority=2 via 10.9.0.8@tcp1; "
			  "tcp2 priority=1 via 10.9.0.9@tcp1");
		cr_assert_eq(request("route del tcp2 via 10.9.0.8@tcp1"), 0);
		fake_after_ms(&f, 1);
		dropped(LNX_NOTE_UNREACHABLE, 1, to);
		cr_expect_eq(to[0], 7);
		cr_expect_eq(to[1], 9);
		cr_assert_eq(request("route add tcp2 priority=2 via 10.9.0.8@tcp1"), 0);
		cr_assert_eq(request("route del tcp2 via 10.9.0.7@tcp1"), 0);
		fake_after_ms(&f, 1);
		expect_only(1u << 9, "the priority is that of the routes there are");
		end();
	}
}

/* NIDs that turn out to be of two gateways are two from then on. */
Test(routed, nids_that_part)
{
	unsigned i;

	for (i = 0; i < 4; i++) {
		meet_nids("tcp2 via 10.9.0.[7-8]@tcp1; tcp2 priority=1 via 10.9.0.9@tcp1");
		fake_after_ms(&f, 61000);
		cr_assert_neq(core->nonce[place_of(7)], 0);
		cr_assert_neq(core->nonce[place_of(8)], 0);
		answer_hellos(i & 1 ? GATEWAY : GATEWAY + 5, i & 1 ? GATEWAY + 5 : GATEWAY,
			      LNX_GW_F_ROUTING);
		fake_after_ms(&f, 1);
		fake_drop_all(&f, &p);
		/* Each is told something else. */
		inform_with(GATEWAY + 5, known_nonce[i & 1 ? 8 : 7], 5,
			    LNX_GW_F_ROUTING | LNX_GW_F_DRAINING);
		fake_after_ms(&f, 1);
		expect_only(i & 1 ? 1u << 7 : 1u << 8, "one of the two drains");
		end();
	}
}

/* The path over the NID with that address. */
static struct lnx_path *path_over(unsigned address)
{
	struct lnx_peer *peer = lnx_peer_get(f.lnx, p.addr);
	unsigned i;

	for (i = 0; i < view_npath(peer); i++)
		if (address_of(leg_of(view_path(peer, i))->gateway) == address)
			return view_path(peer, i);
	cr_assert_fail("no path leads over %u", address);
	return NULL;
}

static unsigned health_of_nid(unsigned address)
{
	return leg_of(path_over(address))->rail.health.value;
}

/* One NID of a gateway answers nothing any more: it is charged, and neither the other NID nor
 * our rail, which leads to both, nor another gateway. */
Test(routed, nid_that_is_dead)
{
	unsigned dead, ms;

	for (dead = 7; dead <= 8; dead++) {
		struct lnx_peer *peer;

		fake_conf.transaction_timeout = 6000;
		meet_nids("tcp2 via 10.9.0.[7-9]@tcp1");
		peer = lnx_peer_get(f.lnx, p.addr);
		ms = (unsigned)(2 * f.lnx->plan.rail_ns / LNX_NS_PER_MS);
		fake_after_ms(&f, ms);
		answer_hellos(GATEWAY, GATEWAY, LNX_GW_F_ROUTING);
		fake_after_ms(&f, ms);
		lnx_gateway_doubted(path_over(dead), lnx_clock_ns());
		fake_after_ms(&f, 500);
		cr_assert_neq(core->nonce[place_of(dead)], 0, "it is not asked");
		answer_hellos(dead == 7 ? 0 : GATEWAY, dead == 8 ? 0 : GATEWAY,
			      LNX_GW_F_ROUTING);
		fake_after_ms(&f, ms);
		fake_drop_all(&f, &p);
		lnx_detect_charge(peer, path_over(dead), LNX_CLASS_NETWORK_TIMEOUT,
				  lnx_clock_ns());
		cr_expect_lt(health_of_nid(dead), LNX_HEALTH_MAX, "the dead one");
		cr_expect_eq(health_of_nid(dead == 7 ? 8 : 7), LNX_HEALTH_MAX);
		cr_expect_eq(health_of_nid(9), LNX_HEALTH_MAX);
		cr_expect_eq(leg_of(path_over(dead))->rail.below->health.value, LNX_HEALTH_MAX);
		end();
	}
}

/* What a gateway tells counts for the path over which it was asked, whichever NID that is. */
Test(routed, told_for_all_nids)
{
	unsigned nid;

	for (nid = 7; nid <= 8; nid++) {
		struct lnx_path *path;

		meet_nids("tcp2 via 10.9.0.[7-9]@tcp1");
		path = path_over(nid);
		asked_and_told(path, LNX_TELL_REFUSED);
		fake_pass(&f);
		cr_expect_eq(lnx_recovery_kernel(path), LNX_PING_REFUSED, "asked over %u", nid);
		end();
	}
}

static unsigned nasked(void)
{
	struct lnx_node *n, *tmp;
	unsigned count = 0;

	lnx_list_foreach(&view_gateways(f.lnx)->asked, n, tmp)
		count++;
	return count;
}

/* An answer is looked for among questions that wait for one, and not among all peers. */
Test(routed, told_where_it_was_asked)
{
	struct lnx_peer *peer;
	struct lnx_path *path;
	unsigned asks;

	meet_nids("tcp2 via 10.9.0.[7-9]@tcp1");
	peer = lnx_peer_get(f.lnx, p.addr);
	path = path_over(7);
	cr_expect_eq(nasked(), 0u);
	asks = core->nasks;
	lnx_recovery_ping(peer, path);
	lnx_recovery_ping(peer, path);
	cr_expect_eq(nasked(), 1u, "one that is asked twice is there once");
	lnx_recovery_ping(peer, path_over(9));
	cr_expect_eq(nasked(), 2u);
	force_ping_stopped(path);
	tell(&asks, leg_of(path_over(9))->gw->process->state.id, LNX_TELL_SILENT);
	fake_pass(&f);
	cr_expect_eq(nasked(), 0u, "one is stopped, and one has its answer");
	lnx_recovery_ping(peer, path);
	cr_expect_eq(nasked(), 1u);
	end();
}

/* How many of the next messages go to NIDs with these addresses, which are bits? */
static unsigned taken_by(unsigned addresses)
{
	struct lnx_hdr h;
	unsigned i, n = 0;
	fi_addr_t to;

	for (i = 0; i < 8; i++) {
		cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 6 + i), 0);
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, &h);
		cr_assert_neq(to, FI_ADDR_NOTAVAIL);
		n += addresses >> address_of(to) & 1;
		p.got = h.seq + 1;
		fake_ack(&f, &p);
		fake_passes(&f, 4);
	}
	return n;
}

/* That NID was asked and does not answer, and the peer answers over another gateway. */
static void fail_nid(unsigned address)
{
	struct lnx_leg *leg = leg_of(path_over(address));
	uint64_t now = lnx_clock_ns();

	leg->hello_ns = now - 2 * f.lnx->plan.rail_ns;
	leg->answered_ns = 0;
	core->nonce[place_of(address)] = 0;
	lnx_detect_charge(lnx_peer_get(f.lnx, p.addr), path_over(address),
			  LNX_CLASS_NETWORK_TIMEOUT, now);
	cr_expect_lt(health_of_nid(address), LNX_HEALTH_MAX);
	fake_after_ms(&f, 1);
	fake_drop_all(&f, &p);
}

/* If none of its NIDs is well the routes of a gateway are down, unless the sensitivity is 0; it is
 * asked soon and often until it is well. */
Test(routed, sensitivity)
{
	const unsigned both = 1u << 7 | 1u << 8;
	unsigned sensitivity, ms;

	for (sensitivity = 0; sensitivity <= 100; sensitivity += 100) {
		fake_conf.transaction_timeout = 6000;
		fake_conf.router_sensitivity = sensitivity;
		meet_nids("tcp2 via 10.9.0.[7-8]@tcp1; tcp2 priority=1 via 10.9.0.9@tcp1");
		cr_expect_eq(taken_by(both), 8);
		fail_nid(7);
		cr_expect_eq(taken_by(both), 8, "one NID is well");
		fail_nid(8);
		cr_expect_eq(!!strstr(routes_shown(), "below the sensitivity"),
			     sensitivity == 100, "%s", routes_shown());
		cr_expect_eq(taken_by(both), sensitivity ? 0 : 8, "%u %%", sensitivity);
		for (ms = 0; ms < 2000 && (health_of_nid(7) < LNX_HEALTH_MAX ||
					   health_of_nid(8) < LNX_HEALTH_MAX); ms += 20) {
			fake_after_ms(&f, 20);
			fake_drop_all(&f, &p);
			answer_hellos(GATEWAY, GATEWAY, LNX_GW_F_ROUTING);
		}
		cr_expect_leq(ms, 400, "it is asked after %u ms", ms);
		fake_after_ms(&f, 3000);
		fake_drop_all(&f, &p);
		cr_expect_eq(taken_by(both), 8, "it is not used again");
		end();
	}
}

/* A peer with a rail in our net and one in another; the session has begun. */
static void open_direct(void)
{
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN }, .caps = FI_RMA };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(5001),
				  .sin_addr.s_addr = htonl(0x0a020005) };

	fake_conf.nets = "tcp1=127.0.0.0/8; tcp2=10.2.0.0/16";
	fake_conf.routes = "tcp2 via 10.9.0.9@tcp1";
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.where.nrail = 2;
	p.where.rail[1] = p.where.rail[0];
	p.where.rail[1].group++;
	memcpy(p.where.rail[1].raw, &in, sizeof(in));
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
}

/* A message leaves directly; returns where to. */
static fi_addr_t send_direct(void)
{
	struct lnx_hdr h;
	fi_addr_t direct;

	open_direct();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	direct = went(LNX_KIND_TAG, &h);
	cr_expect_neq(direct, 0);
	cr_expect_eq(core->nrouted, 0);
	cr_expect_eq(core->nhellos, 0);
	return direct;
}

/* Where messages have gone that did not go directly.  The gateway answers, and the peer over it. */
static fi_addr_t went_elsewhere(fi_addr_t direct)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct fake_sent *s;

	if (core->nonce[0] && !fake_via) {
		inform_of(id_of(0), core->nonce[0], 3);
		fake_via = id_of(0);
	}
	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_TAG && s->dest != direct)
			to = s->dest;
		if (s->h.kind == LNX_KIND_PROBE && s->dest == 0)
			fake_frame(&f, &p, (struct lnx_hdr){
				.kind = LNX_KIND_PONG, .tag = s->h.tag,
				.data = s->h.data, .rail = 1 }, NULL, 0);
		free(s);
	}
	return to;
}

/* The gateway is used when nothing comes over the direct path, and not before.  It is used
 * now. */
static void meet_standby(void)
{
	fi_addr_t direct = send_direct(), to = FI_ADDR_NOTAVAIL;
	unsigned i;

	for (i = 0; i < 400 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 10);
		to = went_elsewhere(direct);
	}
	cr_assert_eq(to, 0, "the gateway was not used");
	cr_expect(lnx_peer_open(lnx_peer_get(f.lnx, p.addr)));
}

/* The peer tells that its link there is down: at once. */
Test(routed, standby_when_a_link_of_the_peer_is_down)
{
	fi_addr_t direct = send_direct(), to = FI_ADDR_NOTAVAIL;
	unsigned i;

	fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_RAIL, .tag = 0,
					     .data = LNX_WIRE_RAIL_DOWN }, NULL, 0);
	for (i = 0; i < 10 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 5);
		to = went_elsewhere(direct);
	}
	cr_expect_eq(to, 0, "the gateway was not used");
	end();
}

/* It is heard all the time, perhaps over a gateway, and acknowledges nothing. */
Test(routed, standby_for_what_we_send)
{
	fi_addr_t direct = send_direct(), to = FI_ADDR_NOTAVAIL;
	unsigned i;

	for (i = 0; i < 300 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 10);
		fake_frame(&f, &p, (struct lnx_hdr){ .kind = LNX_KIND_PROBE, .tag = 1,
						     .data = 77 }, NULL, 0);
		to = went_elsewhere(direct);
	}
	cr_expect_eq(to, 0, "the gateway was not used");
	end();
}

Test(routed, standby_of_a_direct_path)
{
	meet_standby();
	end();
}

/* The route over it is deleted, and another one comes: frames go there. */
Test(routed, standby_over_another_route)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct lnx_hdr h;
	unsigned i;

	meet_standby();
	cr_assert_eq(request("route del tcp2 via 10.9.0.9@tcp1"), 0);
	fake_after_ms(&f, 1);
	while (went(LNX_KIND_TAG, &h) != FI_ADDR_NOTAVAIL)
		;
	cr_assert_eq(request("route add tcp2 via 10.9.0.8@tcp1"), 0);
	for (i = 0; i < 20 && to == FI_ADDR_NOTAVAIL; i++) {
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, &h);
	}
	cr_assert_neq(to, FI_ADDR_NOTAVAIL, "nothing leaves over the new route");
	cr_expect_eq(address_of(to), 8);
	cr_expect(lnx_peer_open(lnx_peer_get(f.lnx, p.addr)));
	end();
}

/* Direct paths that work stay alone when routes come. */
Test(routed, direct_paths_need_no_route)
{
	struct lnx_hdr h;
	fi_addr_t direct;

	open_direct();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	direct = went(LNX_KIND_TAG, &h);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	cr_assert_eq(request("route add tcp2 via 10.9.0.8@tcp1"), 0);
	cr_expect_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 1);
	cr_expect_eq(leaves(FI_ADDR_NOTAVAIL), direct);
	end();
}

/* With one path for each peer, an equal route changes nothing; one that is better does. */
Test(routed, one_path_over_routes_that_come)
{
	fi_addr_t first;

	fake_conf.multi_rail_selection = LNX_SELECTION_PER_PEER;
	meet();
	first = leaves(FI_ADDR_NOTAVAIL);
	cr_assert_eq(request("route add tcp2 via 10.9.0.8@tcp1"), 0);
	cr_expect_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 1);
	cr_expect_eq(leaves(FI_ADDR_NOTAVAIL), first);
	cr_assert_eq(request("route put tcp2 priority=1 via 10.9.0.9@tcp1; "
			     "tcp2 via 10.9.0.8@tcp1"), 0);
	cr_expect_eq(view_npath(lnx_peer_by_eid(f.lnx, p.eid)), 2);
	cr_expect_eq(address_of(leaves(first)), 8);
	end();
}

/* A worse route is used while the better one is down. */
Test(routed, one_path_over_a_route_that_is_up)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct lnx_hdr h;
	unsigned i;

	fake_conf.multi_rail_selection = LNX_SELECTION_PER_PEER;
	meet();
	cr_assert_eq(fi_tsend(f.ep, mem, 8, NULL, p.addr, 5, &a), 0);
	fake_pass(&f);
	cr_assert_neq(went(LNX_KIND_TAG, &h), FI_ADDR_NOTAVAIL);
	note(0, LNX_NOTE_NO_ROUTE, &h);
	fake_pass(&f);
	cr_assert_eq(request("route add tcp2 priority=3 via 10.9.0.8@tcp1"), 0);
	for (i = 0; i < 20 && (to == FI_ADDR_NOTAVAIL || address_of(to) != 8); i++) {
		fake_after_ms(&f, 1);
		to = went(LNX_KIND_TAG, &h);
	}
	cr_assert_neq(to, FI_ADDR_NOTAVAIL);
	cr_expect_eq(address_of(to), 8);
	cr_expect(explained("because its route is down, or its gateway ends soon\n"));
	end();
}

/* Rules about gateways are for those that come while the program runs, too. */
Test(routed, preferred_by_rule_when_routes_come)
{
	struct lnx_hdr h;
	unsigned i;

	fake_conf.udsp = "dst:tcp2,rte:10.9.0.8@tcp1";
	for (i = 0; i < 8; i++) {
		open_over(LNX_RAIL_PLAIN, NULL);
		cr_assert_eq(request("route add tcp2 priority=1 via 10.9.0.8@tcp1"), 0);
		cr_assert_eq(request("route add tcp2 via 10.9.0.9@tcp1"), 0);
		cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
		fake_after_ms(&f, 1);
		cr_expect_eq(address_of(went(LNX_KIND_TAG, &h)), 8);
		end();
	}
	fake_conf.udsp = NULL;
}
