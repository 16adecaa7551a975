/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A gateway that gets any bytes, in any order with completions, failures, time, rails that
 * go down and pools that change: afterwards every buffer is free again, and nothing is
 * held.
 *
 * The input is a list of records.  The low three bits of the first byte say what it is; a
 * frame has two bytes of length, and with the highest bit of the first one a good start.
 *
 * Sources: lnxrtd/ask.c lnxrtd/control.c lnxrtd/dest.c lnxrtd/host.c lnxrtd/pool.c lnxrtd/relay.c
 * Sources: lnxrtd/rules.c lnxrtd/source.c lnxrtd/stream.c
 * Sources: wire/route.c wire/addr.c wire/rails.c wire/hdr.c
 * Sources: conf/nets.c conf/nid.c conf/routes_text.c conf/cidr.c conf/expr.c conf/routes.c
 * Sources: policy/route.c policy/rtt.c base/timer.c policy/rule.c policy/rule_text.c
 * Runs: 4000
 */
#define LNX_FUZZ_NAME "relay"
#define FUZZ_CHANGES	100	/* each makes a gateway, which takes long */
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"
#include "lnxrtd/relay.h"

#define RAILS		2
#define ENDS		64
#define OPS		512		/* that cores have */
#define FRAME_MAX	20000u

static struct rtd_relay *relay;
static struct rtd_buf *landing[RAILS];
static struct rtd_buf *op[OPS];
static unsigned nop;
static bool open_at[ENDS];
static bool says_again;
static uint32_t cookie;
static uint64_t now;

/* ---- the core ---- */

static int core_open(void *arg, unsigned rail, const struct lnx_addr_rail *to,
		     uint64_t *handle)
{
	unsigned i;

	(void)arg, (void)to;
	FUZZ_CHECK(rail < RAILS);
	for (i = 0; i < ENDS && open_at[i]; i++)
		;
	if (i == ENDS)
		return -EADDRNOTAVAIL;
	open_at[i] = true;
	*handle = i;
	return 0;
}

static void core_close(void *arg, unsigned rail, uint64_t handle)
{
	(void)arg, (void)rail;
	FUZZ_CHECK(handle < ENDS && open_at[handle]);
	open_at[handle] = false;
}

static int core_send(void *arg, unsigned rail, uint64_t handle, struct rtd_buf *buf)
{
	(void)arg;
	FUZZ_CHECK(rail < RAILS && handle < ENDS && open_at[handle]);
	FUZZ_CHECK(buf->len && buf->len <= rtd_class_bytes(buf->class));
	if (says_again || nop == OPS)
		return -EAGAIN;
	op[nop++] = buf;
	return 0;
}

static int core_ask(void *arg, unsigned rail, const struct lnx_addr_rail *to,
		    uint32_t which)
{
	(void)arg, (void)to;
	FUZZ_CHECK(rail < RAILS);
	cookie = which;
	return 0;
}

static void ended(unsigned i, int err)
{
	struct rtd_buf *buf = op[i];

	op[i] = op[--nop];
	rtd_relay_sent(relay, buf, err, now);
}

/* ---- the gateway ---- */

static struct lnx_addr_rail address(unsigned net, unsigned port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	struct lnx_addr_rail a = { .prov = LNX_PROV_TCP, .group = (uint16_t)net,
				   .rawlen = sizeof(in) };

	in.sin_addr.s_addr = htonl(10u << 24 | net << 16 | 254);
	memcpy(a.raw, &in, sizeof(in));
	return a;
}

static void small_pools(struct rtd_settings *s, unsigned n)
{
	s->count[RTD_TINY] = 1 + n % 32;
	s->count[RTD_SMALL] = 1 + n % 16;
	s->count[RTD_LARGE] = RAILS + 1 + n % 8;
	s->sources = 1 + n % 8;
	s->dests = 4 + n % 16;
}

static void frame(unsigned what, const uint8_t *data, size_t len)
{
	unsigned rail = what >> 3 & 1;
	struct rtd_buf *buf = landing[rail];

	if (!buf)
		return;
	memcpy(buf->bytes, data, len);
	if (what & 0x80 && len >= 3) {
		buf->bytes[0] = LNX_ROUTE_MAGIC;
		buf->bytes[1] = LNX_ROUTE_VERSION;
		buf->bytes[2] = (uint8_t)(1 + (what >> 4 & 7) % 6);
	}
	if (rtd_relay_rx(relay, rail, buf, len, now))
		landing[rail] = rtd_relay_landing(relay);
	FUZZ_CHECK(landing[rail]);
}

/* Whatever is no frame. */
static void event(unsigned what, uint8_t how, struct rtd_settings *s)
{
	static const int errors[] = { 0, 0, -ECONNREFUSED, -EHOSTUNREACH, -ECONNRESET, -EIO };

	switch (what & 7) {
	case 4:
		if (nop)
			ended(how % nop, errors[how / 16 % 6]);
		break;
	case 5:
		now += (uint64_t)how * how * 1000000;
		rtd_relay_run(relay, now);
		break;
	case 6:
		if (how & 1)
			rtd_relay_rail_up(relay, how >> 1 & 1, how >> 2 & 1, now);
		else if (how & 8)
			rtd_relay_stop(relay, now);
		else if (how & 16)
			rtd_relay_start(relay, now);
		else
			says_again = how >> 5 & 1;
		break;
	default:
		if (how & 1 && cookie)
			rtd_relay_told(relay, cookie, 1 + how % (LNX_TELL_MAX - 1), now);
		small_pools(s, how >> 1);
		s->frame_max = how & 0x80 ? LNX_ROUTE_HEAD + LNX_FRAME_MAX : LNX_FRAME_LARGE;
		rtd_relay_set(relay, s);
	}
}

static void begin(struct rtd_settings *s, struct lnx_nets *nets, struct lnx_routes *routes)
{
	static const struct rtd_ops ops = { .open = core_open, .close = core_close,
					    .send = core_send, .ask = core_ask };
	struct lnx_refusal why;
	unsigned i;

	memset(open_at, 0, sizeof(open_at));
	says_again = false;
	now = 1000 * LNX_NS_PER_S;
	rtd_settings_default(s);
	small_pools(s, 7);
	s->id = 0xbeef;
	FUZZ_CHECK(!lnx_nets_parse("tcp1=10.1.0.0/16;tcp2=10.2.0.0/16", nets, &why));
	lnx_routes_init(routes, 1);
	relay = rtd_relay_create(s, &ops, nets, routes);
	FUZZ_CHECK(relay);
	for (i = 0; i < RAILS; i++) {
		struct rtd_rail rail = { .addr = address(i + 1, 7988), .up = true,
					 .frame_max = FRAME_MAX, .tx_max = 64 };

		FUZZ_CHECK(!lnx_nid_of(nets, &rail.addr, &rail.nid));
		FUZZ_CHECK(rtd_relay_add_rail(relay, &rail) == (int)i);
		landing[i] = rtd_relay_landing(relay);
	}
	FUZZ_CHECK(!rtd_relay_start(relay, now));
}

static void end(struct lnx_routes *routes)
{
	const struct rtd_pool *p;
	unsigned i;

	says_again = false;
	for (i = 0; i < RAILS; i++)
		rtd_relay_rail_up(relay, i, true, now);
	for (i = 0; i < 100; i++) {
		now += LNX_NS_PER_S;
		rtd_relay_run(relay, now);
		while (nop)
			ended(0, 0);
	}
	FUZZ_CHECK(!rtd_relay_held(relay));
	p = rtd_relay_pool(relay);
	for (i = 0; i < RTD_CLASSES; i++)
		FUZZ_CHECK(p->class[i].total - p->class[i].nfree ==
			   (i == RTD_LARGE ? RAILS : 0));
	for (i = 0; i < RAILS; i++)
		rtd_relay_landing_back(relay, landing[i]);
	rtd_relay_destroy(relay);
	for (i = 0; i < ENDS; i++)
		FUZZ_CHECK(!open_at[i]);
	lnx_routes_fini(routes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lnx_routes routes;
	static struct lnx_nets nets;
	struct rtd_settings s;

	begin(&s, &nets, &routes);
	while (size >= 3) {
		unsigned what = data[0];
		size_t len = (data[1] | (size_t)data[2] << 8) % (FRAME_MAX + 200);

		if ((what & 7) >= 4) {
			event(what, data[1], &s);
			data += 2;
			size -= 2;
			continue;
		}
		data += 3;
		size -= 3;
		len = len < size ? len : size;
		frame(what, data, len);
		data += len;
		size -= len;
	}
	end(&routes);
	return 0;
}
