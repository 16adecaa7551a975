/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* NIDs and patterns for them.  See nid.h. */
#include "conf/nid.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/out.h"

#define OCTET_MAX	255
#define KNOWN_BYTES	240	/* of known names in a sentence */

_Static_assert(LNX_ADDR_RAW >= 16, "room for IPv6");

/* ---- NIDs ---- */

int lnx_nid_of(const struct lnx_nets *nets, const struct lnx_addr_rail *rail,
	       struct lnx_nid *out)
{
	const char *name = lnx_net_of_prov(rail->prov);
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	int net;

	if (!name || !rail->rawlen || rail->rawlen > sizeof(rail->raw))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	out->prov = rail->prov;
	out->group = rail->group;
	if (!lnx_net_ip(rail->prov)) {
		out->len = rail->rawlen;
		memcpy(out->addr, rail->raw, rail->rawlen);
	} else if (rail->rawlen == sizeof(in)) {
		memcpy(&in, rail->raw, sizeof(in));
		out->len = 4;
		out->port = ntohs(in.sin_port);
		memcpy(out->addr, &in.sin_addr, 4);
	} else if (rail->rawlen == sizeof(in6)) {
		memcpy(&in6, rail->raw, sizeof(in6));
		out->len = 16;
		out->port = ntohs(in6.sin6_port);
		memcpy(out->addr, &in6.sin6_addr, 16);
	} else {
		return -EINVAL;
	}
	net = lnx_nets_find(nets, rail);
	if (net >= 0) {
		name = nets->net[net].name;
		out->number = nets->net[net].number;
	}
	memcpy(out->net, name, strlen(name));
	return 0;
}

void lnx_nid_where(const struct lnx_nid *nid, uint16_t group, uint16_t port,
		  struct lnx_addr_rail *out)
{
	uint16_t at = htons(nid->port ? nid->port : port);
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = at };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = at };

	memset(out, 0, sizeof(*out));
	out->prov = nid->prov;
	out->group = group;
	if (!lnx_net_ip(nid->prov)) {
		out->rawlen = nid->len;
		memcpy(out->raw, nid->addr, nid->len);
	} else if (nid->len == 4) {
		memcpy(&in.sin_addr, nid->addr, 4);
		memcpy(out->raw, &in, sizeof(in));
		out->rawlen = sizeof(in);
	} else {
		memcpy(&in6.sin6_addr, nid->addr, 16);
		memcpy(out->raw, &in6, sizeof(in6));
		out->rawlen = sizeof(in6);
	}
}

static void print_bytes(const uint8_t *addr, unsigned len, struct lnx_out *o)
{
	unsigned i;

	lnx_out(o, "0x");
	for (i = 0; i < len; i++)
		lnx_out(o, "%02x", addr[i]);
}

size_t lnx_nid_print(const struct lnx_nid *nid, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	struct lnx_cidr c = { .len = nid->len, .bits = (uint8_t)(8 * nid->len) };

	if (!lnx_net_ip(nid->prov)) {
		print_bytes(nid->addr, nid->len, &o);
	} else {
		memcpy(c.addr, nid->addr, sizeof(c.addr));
		lnx_out(&o, nid->len == 16 ? "[" : "");
		lnx_cidr_print(&c, &o);
		lnx_out(&o, nid->len == 16 ? "]" : "");
	}
	if (nid->port)
		lnx_out(&o, ":%u", nid->port);
	lnx_out(&o, "@%s", nid->net);
	if (nid->number)
		lnx_out(&o, "%u", nid->number);
	return o.n;
}

/* ---- matching ---- */

static bool has_prefix(const uint8_t *addr, const uint8_t *prefix, unsigned bits)
{
	struct lnx_cidr c = { .len = 16, .bits = (uint8_t)bits };

	memcpy(c.addr, prefix, 16);
	return lnx_cidr_has(&c, addr, 16);
}

static bool has_addr(const struct lnx_nid_part *part, const struct lnx_nid *nid)
{
	unsigned i;

	switch (part->form) {
	case LNX_NID_IPV4:
		for (i = 0; i < 4; i++)
			if (!lnx_expr_has(&part->octet[i], nid->addr[i]))
				return false;
		return nid->len == 4;
	case LNX_NID_IPV6:
		return nid->len == 16 &&
		       has_prefix(nid->addr, part->addr, part->len);
	case LNX_NID_BYTES:
		return nid->len == part->len &&
		       !memcmp(nid->addr, part->addr, part->len);
	case LNX_NID_BYTES_PREFIX:
		return nid->len >= part->len &&
		       !memcmp(nid->addr, part->addr, part->len);
	default:
		return true;
	}
}

bool lnx_nid_part_has(const struct lnx_nid_part *part, const struct lnx_nid *nid)
{
	if (part->prov != nid->prov)
		return false;
	if (part->group ? part->group != nid->group :
	    strcmp(part->net, nid->net) ||
	    !lnx_expr_has(&part->number, nid->number))
		return false;
	return has_addr(part, nid) && lnx_expr_has(&part->port, nid->port);
}

bool lnx_nid_part_defined(const struct lnx_nets *nets, const struct lnx_nid_part *part)
{
	unsigned i;

	/* What is in no other net has the name of its provider, and the number 0. */
	if (part->group || (!strcmp(part->net, lnx_net_of_prov(part->prov)) &&
			    lnx_expr_has(&part->number, 0)))
		return true;
	for (i = 0; i < nets->n; i++)
		if (!strcmp(part->net, nets->net[i].name) &&
		    lnx_expr_has(&part->number, nets->net[i].number))
			return true;
	return false;
}

bool lnx_nid_pattern_one(const struct lnx_pattern *p, struct lnx_nid *nid)
{
	const struct lnx_nid_part *part = &p->part[0];
	unsigned i;

	memset(nid, 0, sizeof(*nid));
	if (p->n != 1 || part->group || !lnx_expr_one(&part->number) ||
	    (!lnx_expr_any(&part->port) && !lnx_expr_one(&part->port)))
		return false;
	memcpy(nid->net, part->net, sizeof(nid->net));
	nid->number = part->number.item[0].lo;
	nid->prov = part->prov;
	nid->port = part->port.item[0].lo;
	switch (part->form) {
	case LNX_NID_IPV4:
		nid->len = 4;
		for (i = 0; i < 4; i++) {
			if (!lnx_expr_one(&part->octet[i]))
				return false;
			nid->addr[i] = (uint8_t)part->octet[i].item[0].lo;
		}
		return true;
	case LNX_NID_IPV6:
		nid->len = 16;
		memcpy(nid->addr, part->addr, 16);
		return part->len == 128;
	case LNX_NID_BYTES:
		nid->len = part->len;
		memcpy(nid->addr, part->addr, sizeof(nid->addr));
		return true;
	default:
		return false;
	}
}

/* ---- parsing: nets ---- */

static bool is_word(struct lnx_span w, const char *word)
{
	size_t len = strlen(word);

	return w.len >= len && !strncasecmp(w.s, word, len) &&
	       (w.len == len || lnx_is_digit(w.s[len]) ||
		strchr("*[:", w.s[len]));
}

static int unknown(const struct lnx_nets *nets, struct lnx_span w,
		   struct lnx_refusal *r)
{
	char known[KNOWN_BYTES];

	if (is_word(w, "shm"))
		return lnx_refuse(r, w.s, "\"%.*s\": shared memory is no net: it "
				  "is chosen before rails are, for all peers on "
				  "this node, so that no rule can apply to it",
				  LNX_QUOTE(w));
	lnx_nets_known(nets, known, sizeof(known));
	if (!w.len)
		return lnx_refuse(r, w.s, "the name of a net is missing; the "
				  "known ones are %s", known);
	if (w.len >= 4 && (lnx_is_digit(*w.s) || *w.s == '['))
		return lnx_refuse(r, w.s, "\"%.*s\": behind an address there "
				  "must be '@' and a net, like 10.0.0.1@tcp; "
				  "the known ones are %s", LNX_QUOTE(w), known);
	return lnx_refuse(r, w.s, "\"%.*s\" is no known net; those are %s, and "
			  "FI_LNX_NETS can name others", LNX_QUOTE(w), known);
}

static int parse_fabric(struct lnx_span w, struct lnx_nid_part *part,
			struct lnx_refusal *r)
{
	size_t i;

	if (strcmp(part->net, lnx_net_of_prov(part->prov)))
		return lnx_refuse(r, w.s, "\"%.*s\": a fabric name follows the "
				  "name of a provider only, like tcp:10.0.0.0/8",
				  LNX_QUOTE(w));
	for (i = 0; i < w.len && w.s[i] > ' ' && w.s[i] <= '~' &&
	     !strchr(",;@\"'=", w.s[i]); i++)
		;
	if (!w.len || i < w.len || w.len >= LNX_NET_FABRIC_MAX)
		return lnx_refuse(r, w.s, "\"%.*s\": behind ':' there must be a "
				  "fabric name as fi_info lists it, of up to %d "
				  "letters", LNX_QUOTE(w), LNX_NET_FABRIC_MAX - 1);
	memcpy(part->fabric, w.s, w.len);
	part->group = lnx_addr_group(part->prov, part->fabric);
	return 0;
}

static int parse_net(const struct lnx_nets *nets, struct lnx_span w,
		     struct lnx_nid_part *part, struct lnx_refusal *r)
{
	size_t len = lnx_nets_name(nets, w, part->net, &part->prov);
	struct lnx_span rest = { w.s + len, w.len - len };

	if (!len)
		return unknown(nets, w, r);
	if (rest.len && *rest.s == ':')
		return parse_fabric((struct lnx_span){ rest.s + 1, rest.len - 1 },
				    part, r);
	if (!rest.len) {
		part->number = (struct lnx_expr){ .n = 1,
						  .item = { { 0, 0, 1 } } };
		return 0;
	}
	return lnx_expr_parse(rest, UINT16_MAX, "the number of a net",
			      &part->number, r);
}

/* ---- parsing: addresses ---- */

/* Cut w at the first c outside of brackets; as in expr.c. */
static bool cut(struct lnx_span *w, char c, struct lnx_span *first)
{
	unsigned depth = 0;
	size_t i;

	*first = *w;
	for (i = 0; i < w->len; i++) {
		if (w->s[i] == '[')
			depth++;
		else if (w->s[i] == ']' && depth)
			depth--;
		else if (w->s[i] == c && !depth)
			break;
	}
	if (i == w->len)
		return false;
	first->len = i;
	w->s += i + 1;
	w->len -= i + 1;
	return true;
}

static int parse_octets(struct lnx_span w, struct lnx_nid_part *part,
			struct lnx_refusal *r)
{
	struct lnx_span rest = w, one;
	unsigned n = 0;
	bool more;
	int ret;

	do {
		more = cut(&rest, '.', &one);
		ret = n == 4 ? 0 : lnx_expr_parse(one, OCTET_MAX, "an octet",
						  &part->octet[n], r);
		if (ret)
			return ret;
	} while (++n <= 4 && more);
	if (n != 4)
		return lnx_refuse(r, w.s, "\"%.*s\": an IPv4 address has four "
				  "numbers, like 10.0.0.1 or 10.0.*.[1-4]",
				  LNX_QUOTE(w));
	part->form = LNX_NID_IPV4;
	return 0;
}

/* A subnet of IPv4 becomes a range for each octet. */
static void octets_of(const struct lnx_cidr *c, struct lnx_nid_part *part)
{
	unsigned i;

	for (i = 0; i < 4; i++) {
		unsigned used = LNX_MIN(LNX_MAX(c->bits, 8 * i) - 8 * i, 8u);
		uint16_t lo = c->addr[i];

		part->octet[i] = lnx_expr_range(lo,
			(uint16_t)(lo + (OCTET_MAX >> used)), OCTET_MAX);
	}
	part->form = LNX_NID_IPV4;
}

static int parse_subnet(struct lnx_span w, struct lnx_nid_part *part,
			struct lnx_refusal *r)
{
	struct lnx_cidr c;
	int ret = lnx_cidr_parse(w, &c, r);

	if (ret)
		return ret;
	if (c.len == 4) {
		octets_of(&c, part);
		return 0;
	}
	part->form = LNX_NID_IPV6;
	part->len = c.bits;
	memcpy(part->addr, c.addr, sizeof(c.addr));
	return 0;
}

/* Does it begin with brackets around IPv6, not around numbers of IPv4? */
static bool is_ipv6(struct lnx_span w)
{
	const char *end = memchr(w.s, ']', w.len);

	return w.len && *w.s == '[' && end &&
	       memchr(w.s, ':', (size_t)(end - w.s));
}

static int parse_ip(struct lnx_span w, struct lnx_nid_part *part,
		    struct lnx_refusal *r)
{
	struct lnx_span port = w, addr, rest, ip;
	bool ported = cut(&port, ':', &addr);

	if (ported && memchr(port.s, ':', port.len))
		return lnx_refuse(r, w.s, "\"%.*s\": an IPv6 address stands in "
				  "brackets, like [fe80::1] or [fd00::/64]",
				  LNX_QUOTE(w));
	if (ported) {
		int ret = lnx_expr_parse(port, UINT16_MAX, "a port",
					 &part->port, r);

		if (ret)
			return ret;
	}
	rest = addr;
	if (addr.len == 1 && *addr.s == '*')
		return lnx_refuse(r, w.s, "\"%.*s\": addresses of this net have "
				  "several numbers: *.*.*.* is any of IPv4, "
				  "[::/0] of IPv6; without address and '@', the "
				  "net itself is meant", LNX_QUOTE(addr));
	/* A '/' in brackets is that of a stride. */
	if (is_ipv6(addr) || cut(&rest, '/', &ip))
		return parse_subnet(addr, part, r);
	return parse_octets(addr, part, r);
}

static int digit(char c)
{
	if (lnx_is_digit(c))
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_bytes(struct lnx_span w, struct lnx_nid_part *part,
		       struct lnx_refusal *r)
{
	struct lnx_span d = { w.s + 2, w.len - 2 };
	bool star;
	size_t i;

	if (w.len == 1 && *w.s == '*') {
		part->form = LNX_NID_ANY;
		return 0;
	}
	if (w.len < 3 || w.s[0] != '0' || (w.s[1] | 0x20) != 'x')
		goto bad;
	star = d.s[d.len - 1] == '*';
	d.len -= star;
	part->form = star ? LNX_NID_BYTES_PREFIX : LNX_NID_BYTES;
	if (!d.len || d.len % 2 || d.len > 2 * sizeof(part->addr))
		goto bad;
	part->len = (uint8_t)(d.len / 2);
	for (i = 0; i < d.len; i++) {
		if (digit(d.s[i]) < 0)
			goto bad;
		part->addr[i / 2] = (uint8_t)(part->addr[i / 2] << 4 |
					      digit(d.s[i]));
	}
	return 0;
bad:
	return lnx_refuse(r, w.s, "\"%.*s\": addresses of this net are bytes: 0x "
			  "and up to %zu pairs of hex digits as lnx prints them, "
			  "0x01* for all that begin so, or * for any",
			  LNX_QUOTE(w), sizeof(part->addr));
}

static int parse_part(const struct lnx_nets *nets, struct lnx_span w,
		      struct lnx_nid_part *part, struct lnx_refusal *r)
{
	struct lnx_span net = w, addr;
	int ret;

	memset(part, 0, sizeof(*part));
	if (!cut(&net, '@', &addr))
		return parse_net(nets, w, part, r);
	ret = parse_net(nets, net, part, r);
	if (ret)
		return ret;
	return lnx_net_ip(part->prov) ? parse_ip(addr, part, r) :
					parse_bytes(addr, part, r);
}

/* Leave out parts that are there already. */
static void add_part(struct lnx_pattern *out)
{
	unsigned i;

	for (i = 0; i < out->n; i++)
		if (!memcmp(&out->part[i], &out->part[out->n],
			    sizeof(out->part[0])))
			return;
	out->n++;
}

int lnx_nid_pattern_parse(const struct lnx_nets *nets, struct lnx_span w,
			  struct lnx_pattern *out, struct lnx_refusal *r)
{
	struct lnx_span rest = w, one;
	bool more;
	int ret;

	memset(out, 0, sizeof(*out));
	do {
		more = cut(&rest, ',', &one);
		one = lnx_span_trim(one);
		if (out->n == LNX_PATTERN_PARTS)
			return lnx_refuse(r, one.s, "\"%.*s\" is one too many, a "
					  "pattern can have %d parts; write "
					  "another rule", LNX_QUOTE(one),
					  LNX_PATTERN_PARTS);
		ret = parse_part(nets, one, &out->part[out->n], r);
		if (ret)
			return ret;
		if ((out->part[out->n].form == LNX_NID_NET) !=
		    lnx_nid_pattern_nets(out))
			return lnx_refuse(r, one.s, "\"%.*s\": a pattern is for "
					  "nets or for NIDs, not for both; "
					  "write two rules", LNX_QUOTE(one));
		add_part(out);
	} while (more);
	/* A part that was left out stands behind the others. */
	memset(out->part + out->n, 0,
	       (LNX_PATTERN_PARTS - out->n) * sizeof(out->part[0]));
	if (lnx_nid_pattern_print(out->part, out->n, NULL, 0) >= LNX_PATTERN_TEXT_MAX)
		return lnx_refuse(r, w.s, "\"%.*s...\": the pattern has more than "
				  "%d letters; write two rules", LNX_QUOTE(w),
				  LNX_PATTERN_TEXT_MAX - 1);
	return 0;
}

/* ---- text ---- */

static void print_addr(const struct lnx_nid_part *part, struct lnx_out *o)
{
	struct lnx_cidr c = { .len = 16, .bits = part->len };
	unsigned i;

	switch (part->form) {
	case LNX_NID_ANY:
		lnx_out(o, "*");
		break;
	case LNX_NID_IPV4:
		for (i = 0; i < 4; i++) {
			lnx_out(o, i ? "." : "");
			lnx_expr_print(&part->octet[i], o);
		}
		break;
	case LNX_NID_IPV6:
		memcpy(c.addr, part->addr, sizeof(c.addr));
		lnx_out(o, "[");
		lnx_cidr_print(&c, o);
		lnx_out(o, "]");
		break;
	default:
		print_bytes(part->addr, part->len, o);
		lnx_out(o, part->form == LNX_NID_BYTES_PREFIX ? "*" : "");
	}
}

static void print_net(const struct lnx_nid_part *part, struct lnx_out *o)
{
	lnx_out(o, "%s", part->net);
	if (part->group)
		lnx_out(o, ":%s", part->fabric);
	else if (!lnx_expr_one(&part->number) || part->number.item[0].lo)
		lnx_expr_print(&part->number, o);
}

size_t lnx_nid_pattern_print(const struct lnx_nid_part *part, unsigned n, char *buf,
			     size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	unsigned i;

	for (i = 0; i < n; i++) {
		lnx_out(&o, i ? "," : "");
		if (part[i].form != LNX_NID_NET) {
			print_addr(&part[i], &o);
			if (!lnx_expr_any(&part[i].port)) {
				lnx_out(&o, ":");
				lnx_expr_print(&part[i].port, &o);
			}
			lnx_out(&o, "@");
		}
		print_net(&part[i], &o);
	}
	return o.n;
}
