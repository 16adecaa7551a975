/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes from an endpoint or a gateway are refused with a reason, or are something
 * that can be sent on.  The first byte says which reader gets the rest; with its highest
 * bit the first bytes are made right, so that what is behind them is reached quickly.
 *
 * Sources: wire/route.c wire/addr.c wire/rails.c wire/hdr.c
 */
#define LNX_FUZZ_NAME "route"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/route.h"

#define LONGEST		(LNX_ROUTE_HEAD + 4096)

static void refused(int ret, const char *why)
{
	FUZZ_CHECK(ret == -EBADMSG || ret == -EPROTONOSUPPORT || ret == -EMSGSIZE);
	FUZZ_CHECK(why && strlen(why) > 10);
}

static void envelope(uint8_t *p, size_t len)
{
	uint8_t out[LNX_ROUTE_HEAD];
	struct lnx_route_env e;
	const char *why = NULL;
	int ret = lnx_route_get(&e, p, len, &why);

	if (ret) {
		refused(ret, why);
		return;
	}
	FUZZ_CHECK(lnx_route_put(out, &e) == LNX_ROUTE_HEAD);
	FUZZ_CHECK(!memcmp(out, p, sizeof(out)));
	FUZZ_CHECK(len == LNX_ROUTE_HEAD + (size_t)e.len);
	if (!e.hops_left)
		return;
	lnx_route_forward(p, 1, 2);
	FUZZ_CHECK(!lnx_route_get(&e, p, len, NULL));
}

static void note(const uint8_t *p, size_t len)
{
	uint8_t out[LNX_ROUTE_NOTE_LEN];
	struct lnx_route_note n;
	const char *why = NULL;
	int ret = lnx_route_note_get(&n, p, len, &why);

	if (ret) {
		refused(ret, why);
		return;
	}
	FUZZ_CHECK(lnx_route_note_put(out, &n) == sizeof(out));
	FUZZ_CHECK(!memcmp(out, p, sizeof(out)));
	FUZZ_CHECK(strcmp(lnx_route_reason_name(n.reason), "unknown"));
}

static void gateway(const uint8_t *p, size_t len)
{
	uint8_t out[LNX_GW_INFO_BYTES_MAX];
	struct lnx_gw_hello h;
	struct lnx_gw_info i;
	const char *why = NULL;
	int ret = lnx_wire_gw_hello_get(&h, p, len, &why), n;

	if (!ret) {
		FUZZ_CHECK(h.rails.n && h.rails.n <= LNX_WIRE_RAILS_MAX);
		n = lnx_wire_gw_hello_put(out, sizeof(out), &h);
		FUZZ_CHECK(n > 0 && !lnx_wire_gw_hello_get(&h, out, (size_t)n, NULL));
		return;
	}
	refused(ret, why);
	ret = lnx_wire_gw_info_get(&i, p, len, &why);
	if (ret) {
		refused(ret, why);
		return;
	}
	FUZZ_CHECK(i.nnet <= LNX_GW_NETS_MAX);
	n = lnx_wire_gw_info_put(out, sizeof(out), &i);
	FUZZ_CHECK(n > 0 && !lnx_wire_gw_info_get(&i, out, (size_t)n, NULL));
}

static void ask(const uint8_t *p, size_t len)
{
	struct lnx_gw_ask a;
	const char *why = NULL;
	uint8_t out[64];
	int ret = lnx_wire_gw_ask_get(&a, p, len, &why);

	if (ret) {
		refused(ret, why);
		return;
	}
	FUZZ_CHECK(lnx_wire_gw_ask_put(out, &a) == sizeof(out));
	FUZZ_CHECK(!memcmp(out, p, sizeof(out)));
}

static void pull(const uint8_t *p, size_t len)
{
	struct lnx_route_pull a, b;
	const char *why = NULL;
	uint8_t out[64];
	int ret = lnx_route_pull_get(&a, p, len, &why);

	if (ret) {
		refused(ret, why);
		return;
	}
	FUZZ_CHECK(a.len && a.offset + a.len > a.offset);
	FUZZ_CHECK(lnx_route_pull_put(out, &a) == sizeof(out));
	if (!a.piece)
		FUZZ_CHECK(!lnx_route_pull_get(&b, out, sizeof(out), NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t kinds[] = { LNX_ROUTE_FRAME, LNX_ROUTE_NOTE,
					 LNX_ROUTE_GW_HELLO, LNX_ROUTE_GW_INFO,
					 LNX_ROUTE_GW_ASK, LNX_ROUTE_GW_TELL };
	unsigned what;
	uint8_t *p;

	if (!size || size > LONGEST)
		return 0;
	what = (data[0] & 0x7f) % 7;
	size--;
	/* Exactly as long as it says, for sanitizers. */
	p = malloc(size ? size : 1);
	FUZZ_CHECK(p);
	memcpy(p, data + 1, size);
	if (data[0] & 0x80 && size >= 4 && what < 6) {
		p[0] = LNX_ROUTE_MAGIC;
		p[1] = LNX_ROUTE_VERSION;
		p[2] = kinds[what];
		p[3] &= what == 2 || what == 3 ? LNX_GW_F_ALL : 0;
	}
	if (data[0] & 0x80 && what == 0 && size >= LNX_ROUTE_HEAD) {
		uint32_t len = htole32((uint32_t)(size - LNX_ROUTE_HEAD));

		memcpy(p + offsetof(struct lnx_wire_route, len), &len, sizeof(len));
	}
	if (what == 0)
		envelope(p, size);
	else if (what == 1)
		note(p, size);
	else if (what <= 3)
		gateway(p, size);
	else if (what <= 5)
		ask(p, size);
	else
		pull(p, size);
	free(p);
	return 0;
}
