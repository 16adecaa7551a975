/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A gateway on a scripted core: nothing moves but what a test moves.  Three nets: rails 0,
 * 1 and 2 are 10.N.0.254 in tcpN, N = 1 to 3.  Sources and ends are hosts of these nets; an
 * end is told what to do with what is sent to it.
 */
#ifndef RTD_WORLD_H
#define RTD_WORLD_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxrtd/relay.h"

#define MS		1000000ull
#define S		1000000000ull
#define GW_ID		0xbeefull
#define PORT		4711u
#define ENDS		256
#define LOG		32768

enum does {
	TAKES,				/* everything, when core_run() is called */
	SAYS_AGAIN,			/* -EAGAIN */
	STANDS,				/* takes into the core, and delivers nothing */
	REFUSES, UNREACHABLE, BREAKS,	/* the operation fails */
	FAILS,				/* the call fails */
};

/* An address that the relay has opened. */
struct end {
	struct lnx_addr_rail addr;
	unsigned rail;
	bool open;
	enum does does;
	unsigned calls;			/* of send */
	struct rtd_buf *flying[1024];
	unsigned nflying;
};

/* What was delivered. */
struct got {
	unsigned end;
	uint32_t len;
	uint8_t kind;			/* enum lnx_route_kind */
	struct lnx_route_env env;
	uint64_t src;
	uint32_t seq;
	uint8_t bytes[LNX_GW_INFO_BYTES_MAX];	/* the first ones */
};

struct world {
	struct rtd_settings s;
	struct rtd_relay *r;
	struct lnx_nets nets;
	struct lnx_routes routes;
	uint64_t now;
	struct end end[ENDS];
	unsigned nend;
	struct got *log;		/* of LOG; not static: the leak checker reads that */
	unsigned ngot;
	unsigned nopen, nclose;
	struct rtd_buf *landing[3];
	struct {
		uint32_t cookie;
		struct lnx_addr_rail to;
	} asked;
	enum does by_default;
	struct lnx_addr_rail own;	/* an address of the host that no rail has */
};

static struct world w;

/* Buffers in use. */
static inline uint32_t rtd_pool_used(const struct rtd_pool *p, enum rtd_class class)
{
	return p->class[class].total - p->class[class].nfree;
}

static inline struct lnx_addr_rail at(unsigned net, unsigned host, unsigned port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	struct lnx_addr_rail a = { .prov = LNX_PROV_TCP, .group = (uint16_t)net,
				   .rawlen = sizeof(in) };

	in.sin_addr.s_addr = htonl(10u << 24 | net << 16 | host);
	memcpy(a.raw, &in, sizeof(in));
	return a;
}

/* ---- the core ---- */

static inline int core_open(void *arg, unsigned rail, const struct lnx_addr_rail *to,
			    uint64_t *handle)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < w.nend; i++)
		if (!memcmp(&w.end[i].addr, to, sizeof(*to)))
			break;
	cr_assert_lt(i, ENDS);
	if (i == w.nend) {
		w.nend++;
		w.end[i] = (struct end){ .addr = *to, .does = w.by_default };
	}
	cr_assert(!w.end[i].open, "it is open already");
	w.end[i].rail = rail;
	w.end[i].open = true;
	w.nopen++;
	*handle = i;
	return 0;
}

static inline void core_close(void *arg, unsigned rail, uint64_t handle)
{
	(void)arg, (void)rail;
	cr_assert(w.end[handle].open && !w.end[handle].nflying);
	w.end[handle].open = false;
	w.nclose++;
}

static inline int core_send(void *arg, unsigned rail, uint64_t handle,
			    struct rtd_buf *buf)
{
	struct end *e = &w.end[handle];

	(void)arg;
	cr_assert(e->open);
	cr_assert_eq(rail, e->rail);
	e->calls++;
	if (e->does == SAYS_AGAIN)
		return -EAGAIN;
	if (e->does == FAILS)
		return -EIO;
	cr_assert_lt(e->nflying, 1024);
	e->flying[e->nflying++] = buf;
	return 0;
}

static inline int core_ask(void *arg, unsigned rail, const struct lnx_addr_rail *to,
			   uint32_t cookie)
{
	(void)arg, (void)rail;
	w.asked.cookie = cookie;
	w.asked.to = *to;
	return 0;
}

static inline bool core_own(void *arg, const struct lnx_addr_rail *to)
{
	const struct sockaddr_in *x = (const void *)to->raw, *y = (const void *)w.own.raw;

	(void)arg;
	return w.own.prov && x->sin_addr.s_addr == y->sin_addr.s_addr;
}

/* ---- the world ---- */

/* The end with that address, known to the core or not yet. */
static inline struct end *end_at(unsigned net, unsigned host)
{
	struct lnx_addr_rail a = at(net, host, PORT);
	unsigned i;

	for (i = 0; i < w.nend; i++)
		if (!memcmp(&w.end[i].addr, &a, sizeof(a)))
			return &w.end[i];
	cr_assert_lt(w.nend, ENDS);
	w.end[i] = (struct end){ .addr = a };
	w.nend++;
	return &w.end[i];
}

/* Frames that the core of a rail takes at a time. */
static uint32_t rail_tx_max = 256;

static inline struct rtd_rail own_rail(unsigned net)
{
	struct rtd_rail rail = { .addr = at(net, 254, 7988), .up = true,
				 .frame_max = LNX_FRAME_LARGE, .tx_max = rail_tx_max,
				 .subnet = { 4, 16, { 10, (uint8_t)net } } };

	cr_assert_eq(lnx_nid_of(&w.nets, &rail.addr, &rail.nid), 0);
	return rail;
}

static inline void world_begin(void)
{
	static const struct rtd_ops ops = { .open = core_open, .close = core_close,
					    .send = core_send, .ask = core_ask,
					    .own = core_own };
	struct lnx_refusal why;
	unsigned i;

	memset(&w, 0, sizeof(w));
	w.log = calloc(LOG, sizeof(*w.log));
	cr_assert_not_null(w.log);
	w.now = 1000 * S;
	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16;tcp2=10.2.0.0/16;tcp3=10.3.0.0/16;"
				    "tcp4=10.4.0.0/16", &w.nets, &why), 0);
	lnx_routes_init(&w.routes, 1);
	rtd_settings_default(&w.s);
	w.s.id = GW_ID;
	w.s.count[RTD_TINY] = 256;
	w.s.count[RTD_SMALL] = 256;
	w.s.count[RTD_LARGE] = 128;
	w.r = rtd_relay_create(&w.s, &ops, &w.nets, &w.routes);
	for (i = 0; i < 3; i++) {
		struct rtd_rail rail = own_rail(i + 1);

		cr_assert_eq(rtd_relay_add_rail(w.r, &rail), (int)i);
		w.landing[i] = rtd_relay_landing(w.r);
		cr_assert_not_null(w.landing[i]);
	}
	cr_assert_eq(rtd_relay_start(w.r, w.now), 0);
}

/* What every test ends with: nothing is lost, and nothing is left. */
static inline void core_run(void);

static inline void world_end(void)
{
	const struct rtd_pool *p = rtd_relay_pool(w.r);
	struct rtd_source_view v;
	unsigned i;

	for (i = 0; i < w.nend; i++)
		w.end[i].does = TAKES;
	for (i = 0; i < 200; i++) {
		w.now += 100 * MS;
		rtd_relay_run(w.r, w.now);
		core_run();
		w.ngot = 0;
	}
	cr_assert_eq(rtd_relay_held(w.r), 0, "%u frames are left", rtd_relay_held(w.r));
	for (i = 0; rtd_relay_source(w.r, i, &v); i++)
		cr_assert(!v.used_large && !v.used_small, "source %u", v.account);
	for (i = 0; i < RTD_CLASSES; i++)
		cr_assert_eq(rtd_pool_used(p, i), i == RTD_LARGE ? 3 : 0, "%s: %u",
			     rtd_class_name(i), rtd_pool_used(p, i));
	for (i = 0; i < 3; i++)
		rtd_relay_landing_back(w.r, w.landing[i]);
	rtd_relay_destroy(w.r);
	lnx_routes_fini(&w.routes);
	free(w.log);
}

static inline void deliver(unsigned end, struct rtd_buf *buf)
{
	struct got *g = &w.log[w.ngot];
	struct lnx_wire_hdr h;

	cr_assert_lt(w.ngot, LOG);
	memset(g, 0, sizeof(*g));
	g->end = end;
	g->len = buf->len;
	g->kind = lnx_route_kind(buf->bytes, buf->len);
	memcpy(g->bytes, buf->bytes, LNX_MIN(buf->len, sizeof(g->bytes)));
	if (g->kind == LNX_ROUTE_FRAME) {
		cr_assert_eq(lnx_route_get(&g->env, buf->bytes, buf->len, NULL), 0);
		memcpy(&h, buf->bytes + 64, sizeof(h));
		g->src = h.src;
		g->seq = h.seq;
	}
	w.ngot++;
}

/* Up to max operations of one end end as it is told. */
static inline unsigned core_step(unsigned i, unsigned max)
{
	struct end *e = &w.end[i];
	unsigned n = 0;

	while (e->nflying && n < max && e->does != STANDS && e->does != SAYS_AGAIN) {
		struct rtd_buf *buf = e->flying[0];

		memmove(e->flying, e->flying + 1, --e->nflying * sizeof(buf));
		n++;
		if (e->does == TAKES)
			deliver(i, buf);
		rtd_relay_sent(w.r, buf, e->does == TAKES ? 0 :
			       e->does == REFUSES ? -ECONNREFUSED :
			       e->does == UNREACHABLE ? -EHOSTUNREACH : -ECONNRESET,
			       w.now);
	}
	return n;
}

/* Run the relay and the core until nothing moves. */
static inline void core_run(void)
{
	unsigned i, moved;

	do {
		rtd_relay_run(w.r, w.now);
		for (i = moved = 0; i < w.nend; i++)
			moved += core_step(i, UINT32_MAX);
	} while (moved);
}

static inline void later(uint64_t ns)
{
	w.now += ns;
	core_run();
}

/* ---- what comes ---- */

static inline void rx(unsigned rail, const void *bytes, size_t len)
{
	struct rtd_buf *buf = w.landing[rail];

	memcpy(buf->bytes, bytes, len);
	if (!rtd_relay_rx(w.r, rail, buf, len, w.now))
		return;
	w.landing[rail] = rtd_relay_landing(w.r);
	cr_assert_not_null(w.landing[rail], "a kept landing has a successor");
}

struct frame {
	struct lnx_route_env env;
	uint64_t src;
	uint32_t seq;
	unsigned net;			/* that it comes from */
};

/* From the host src of net 1 to a host of another net, 136 bytes long. */
static inline struct frame frame(uint64_t src, unsigned net, unsigned host)
{
	return (struct frame){
		.env = { .hops_left = 8, .len = 72, .rail = at(net, host, PORT) },
		.src = src, .net = 1,
	};
}

static inline void rx_frame(const struct frame *f)
{
	static uint8_t buf[LNX_FRAME_LARGE];
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .src = f->src, .dst = 2,
			     .seq = f->seq, .len = f->env.len - 64 };
	struct lnx_wire_hdr wire;

	cr_assert_eq(lnx_route_put(buf, &f->env), 64);
	lnx_hdr_put(&wire, &h);
	memcpy(buf + 64, &wire, sizeof(wire));
	memset(buf + 128, (int)(f->seq & 0xff), f->env.len - 64);
	rx(f->net - 1, buf, 64 + f->env.len);
}

/* Send n frames with the numbers from seq on. */
static inline void rx_frames(struct frame f, uint32_t seq, unsigned n)
{
	while (n--) {
		f.seq = seq++;
		rx_frame(&f);
	}
}

/* A process of a host of net 1 announces itself: its account, from the info that it gets;
 * 0: it gets none. */
static inline uint16_t announce_with(uint8_t flags, uint64_t id, unsigned host, unsigned port,
				     struct lnx_gw_info *info)
{
	struct lnx_gw_hello h = { .flags = flags, .oldest = 1, .newest = 1, .id = id,
				  .key = w.s.key, .nonce = (uint32_t)id,
				  .rails = { .n = 1, .rail = { at(1, host, port) } } };
	struct lnx_gw_info own;
	uint8_t buf[LNX_GW_INFO_BYTES_MAX];
	unsigned i;
	int len = lnx_wire_gw_hello_put(buf, sizeof(buf), &h);

	cr_assert_gt(len, 0);
	rx(0, buf, (size_t)len);
	core_run();
	for (i = w.ngot; i--;) {
		if (w.log[i].kind != LNX_ROUTE_GW_INFO)
			continue;
		info = info ? info : &own;
		cr_assert_eq(lnx_wire_gw_info_get(info, w.log[i].bytes, w.log[i].len, NULL),
			     0);
		if (info->gw.nonce == h.nonce)
			return info->gw.account;
	}
	return 0;
}

static inline uint16_t announce_as(uint64_t id, unsigned host, unsigned port,
				   struct lnx_gw_info *info)
{
	return announce_with(0, id, host, port, info);
}

static inline uint16_t announce(unsigned host, struct lnx_gw_info *info)
{
	return announce_as(0x1000 + host, host, PORT, info);
}

/* Frames from src that end got. */
static inline unsigned got_of(const struct end *e, uint64_t src)
{
	unsigned i, n = 0;

	for (i = 0; i < w.ngot; i++)
		n += w.log[i].kind == LNX_ROUTE_FRAME && &w.end[w.log[i].end] == e &&
		     (!src || w.log[i].src == src);
	return n;
}

/* The last note to a host of net 1; false: there is none. */
static inline bool note_to(unsigned host, struct lnx_route_note *n)
{
	const struct end *e = end_at(1, host);
	unsigned i;

	for (i = w.ngot; i--;)
		if (w.log[i].kind == LNX_ROUTE_NOTE && &w.end[w.log[i].end] == e) {
			cr_assert_eq(lnx_route_note_get(n, w.log[i].bytes, w.log[i].len,
							NULL), 0);
			return true;
		}
	return false;
}

/* What the gateway has of that source. */
static inline struct rtd_source_view source_view(uint16_t account)
{
	struct rtd_source_view v;
	unsigned i;

	for (i = 0; rtd_relay_source(w.r, i, &v); i++)
		if (v.account == account)
			return v;
	cr_assert(false, "no source has account %u", account);
	return v;
}

static inline uint64_t dropped(enum rtd_reason reason)
{
	return rtd_relay_counts(w.r)->dropped[reason];
}

static inline uint64_t dropped_all(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < RTD_REASONS; i++)
		n += dropped(i);
	return n;
}

#endif
