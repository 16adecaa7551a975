/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Subnets as text.  See cidr.h. */
#include "conf/cidr.h"

#include <arpa/inet.h>
#include <string.h>

/* Does x equal y in its first so many bits? */
static bool same_prefix(const uint8_t *x, const uint8_t *y, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	return !memcmp(x, y, whole) &&
	       (!rest || !((x[whole] ^ y[whole]) & mask));
}

static void mask(struct lnx_cidr *c)
{
	unsigned i;

	for (i = 0; i < c->len; i++) {
		unsigned first = i * 8;

		if (c->bits <= first)
			c->addr[i] = 0;
		else if (c->bits < first + 8)
			c->addr[i] &= (uint8_t)(0xff00u >> (c->bits - first));
	}
}

static int parse_addr(struct lnx_span w, struct lnx_span all, struct lnx_cidr *out,
		      struct lnx_refusal *r)
{
	char copy[INET6_ADDRSTRLEN] = "";
	bool v6 = memchr(w.s, ':', w.len);

	if (w.len && w.len < sizeof(copy) && !memchr(w.s, '\0', w.len)) {
		memcpy(copy, w.s, w.len);
		copy[w.len] = '\0';
		out->len = v6 ? 16 : 4;
		out->bits = (uint8_t)(8 * out->len);
		if (inet_pton(v6 ? AF_INET6 : AF_INET, copy, out->addr) == 1)
			return 0;
	}
	if (v6 && memchr(w.s, '%', w.len))
		return lnx_refuse(r, all.s, "\"%.*s\": a zone (%%) means an "
				  "interface of one host only, so that no rail "
				  "is named by it; leave it out", LNX_QUOTE(all));
	return lnx_refuse(r, all.s, "\"%.*s\" is no address or subnet; one is "
			  "written like 10.78.0.0/16 or fd00::/64",
			  LNX_QUOTE(all));
}

static int parse_bits(struct lnx_span w, struct lnx_span all, struct lnx_cidr *out,
		      struct lnx_refusal *r)
{
	struct lnx_cidr want = *out;
	struct lnx_out o = { .size = 0 };
	char subnet[64];
	uint64_t v;

	if (!lnx_span_uint(w, &v) || v > out->bits)
		return lnx_refuse(r, all.s, "\"%.*s\": behind '/' there must be "
				  "the length of the prefix, a number from 0 to "
				  "%u", LNX_QUOTE(all), out->bits);
	want.bits = (uint8_t)v;
	mask(&want);
	if (memcmp(want.addr, out->addr, out->len)) {
		o.buf = subnet;
		o.size = sizeof(subnet);
		lnx_cidr_print(&want, &o);
		return lnx_refuse(r, all.s, "\"%.*s\" has bits behind its "
				  "prefix; write %s for the subnet, or leave "
				  "the prefix out for one address",
				  LNX_QUOTE(all), subnet);
	}
	*out = want;
	return 0;
}

int lnx_cidr_parse(struct lnx_span w, struct lnx_cidr *out, struct lnx_refusal *r)
{
	struct lnx_span all = w, bits = { NULL, 0 };
	bool bracket = w.len && *w.s == '[';
	const char *c;
	int ret;

	memset(out, 0, sizeof(*out));
	if (bracket && w.s[w.len - 1] == ']') {
		w.s++;
		w.len -= 2;
		bracket = false;
	}
	c = memchr(w.s, '/', w.len);
	if (c) {
		bits = (struct lnx_span){ c + 1, w.len - (size_t)(c - w.s) - 1 };
		w.len = (size_t)(c - w.s);
	}
	if (bracket) {
		if (w.len < 2 || w.s[w.len - 1] != ']')
			return lnx_refuse(r, all.s, "\"%.*s\": ']' is missing",
					  LNX_QUOTE(all));
		w.s++;
		w.len -= 2;
	}
	if (w.s != all.s && !memchr(w.s, ':', w.len))
		return lnx_refuse(r, all.s, "\"%.*s\": what is in brackets must "
				  "be an IPv6 address or subnet, like [fd00::1] "
				  "or [fd00::/64]", LNX_QUOTE(all));
	ret = parse_addr(w, all, out, r);
	return ret || !c ? ret : parse_bits(bits, all, out, r);
}

void lnx_cidr_print(const struct lnx_cidr *c, struct lnx_out *o)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(c->len == 16 ? AF_INET6 : AF_INET, c->addr, text, sizeof(text));
	lnx_out(o, "%s", text);
	if (c->bits < 8 * c->len)
		lnx_out(o, "/%u", c->bits);
}

bool lnx_cidr_has(const struct lnx_cidr *c, const uint8_t *addr, unsigned len)
{
	return len == c->len && same_prefix(c->addr, addr, c->bits);
}

bool lnx_cidr_overlap(const struct lnx_cidr *a, const struct lnx_cidr *b)
{
	return a->len == b->len &&
	       same_prefix(a->addr, b->addr, LNX_MIN(a->bits, b->bits));
}
