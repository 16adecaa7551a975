/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads routes from text.  See routes.h. */
#include <string.h>

#include "base/compiler.h"
#include "conf/routes.h"
#include "policy/rule.h"

#define OCTET_MAX	255

struct reader {
	const struct lnx_nets *nets;
	struct lnx_refusal *r;
	lnx_route_each *each;
	void *arg;
	struct lnx_route_spec spec;	/* of the present route */
};

/* ---- words ---- */

/* The first part of w up to one of stop, outside of brackets; w becomes the rest, without
 * that letter.  False: the text ended. */
static bool cut(struct lnx_span *w, const char *stop, struct lnx_span *first)
{
	unsigned depth = 0;
	size_t i;

	*first = *w;
	for (i = 0; i < w->len; i++) {
		if (w->s[i] == '[')
			depth++;
		else if (w->s[i] == ']' && depth)
			depth--;
		else if (!depth && strchr(stop, w->s[i]) &&
			 !(w->s[i] == ';' && lnx_joins_layers(w->s + i)))
			break;
	}
	first->len = i;
	if (i == w->len) {
		*w = (struct lnx_span){ w->s + i, 0 };
		return false;
	}
	w->s += i + 1;
	w->len -= i + 1;
	return true;
}

/* The next word; empty at the end. */
static struct lnx_span word(struct lnx_span *w)
{
	struct lnx_span first;

	*w = lnx_span_trim(*w);
	cut(w, " \t\r\n", &first);
	*w = lnx_span_trim(*w);
	return first;
}

static bool begins(struct lnx_span w, const char *text)
{
	return w.len >= strlen(text) && !strncasecmp(w.s, text, strlen(text));
}

/* ---- the net ---- */

/* LNet's names for "any net" and "this node". */
static bool any_or_lo(struct lnx_span w)
{
	return lnx_span_is(w, "*") || lnx_span_is(w, "any") || lnx_span_is(w, "lo") ||
	       lnx_span_is(w, "lo0");
}

static int read_net(struct reader *rd, struct lnx_span w)
{
	struct lnx_pattern p;
	int ret;

	if (any_or_lo(w))
		return lnx_refuse(rd->r, w.s, "\"%.*s\": a route leads to one net that "
				  "has a name, like tcp1; not to any, and not to this "
				  "node", LNX_QUOTE(w));
	ret = lnx_nid_pattern_parse(rd->nets, w, &p, rd->r);
	if (ret)
		return ret;
	if (!lnx_nid_pattern_nets(&p) || p.n != 1 || p.part[0].group ||
	    !lnx_expr_one(&p.part[0].number))
		return lnx_refuse(rd->r, w.s, "\"%.*s\": a route begins with the name of "
				  "one net, like tcp1; FI_LNX_NETS gives names",
				  LNX_QUOTE(w));
	rd->spec.net = p.part[0];
	return 0;
}

/* ---- gateways ---- */

static int give(struct reader *rd, struct lnx_span w)
{
	/* An error of the check is about this word; what is passed over leaves the text
	 * to the next one. */
	const char *text = rd->r->text;
	int ret = rd->each(rd->arg, &rd->spec, w, rd->r);

	rd->r->text = text;
	if (ret)
		rd->r->at = (size_t)(w.s - text);
	return ret;
}

static unsigned octets(const struct lnx_expr *e, uint8_t value[OCTET_MAX + 1])
{
	unsigned v, n = 0;

	for (v = 0; v <= OCTET_MAX; v++)
		if (lnx_expr_has(e, (uint16_t)v))
			value[n++] = (uint8_t)v;
	return n;
}

/* Sets of numbers in an IPv4 address stand for all addresses that they make. */
static int expand_ipv4(struct reader *rd, const struct lnx_nid_part *part,
		       struct lnx_span w)
{
	uint8_t value[4][OCTET_MAX + 1], *addr = rd->spec.gateway.addr;
	unsigned n[4], i, at[4] = { 0 }, all = 1;
	int ret;

	for (i = 0; i < 4; i++) {
		n[i] = octets(&part->octet[i], value[i]);
		all *= n[i];
		if (all > LNX_ROUTE_EXPAND || lnx_expr_any(&part->octet[i]))
			return lnx_refuse(rd->r, w.s, "\"%.*s\" stands for more than %d "
					  "gateways; name them, as in 10.0.0.[1-4]@tcp",
					  LNX_QUOTE(w), LNX_ROUTE_EXPAND);
	}
	do {
		for (i = 0; i < 4; i++)
			addr[i] = value[i][at[i]];
		ret = give(rd, w);
		for (i = 4; i-- && ++at[i] == n[i];)
			at[i] = 0;
	} while (!ret && i < 4);
	return ret;
}

static int one_gateway(struct reader *rd, struct lnx_span w)
{
	const char *sign = memchr(w.s, '@', w.len);
	struct lnx_nid *gw = &rd->spec.gateway;
	struct lnx_nid_part *part;
	struct lnx_pattern p;
	int ret;

	if (sign && any_or_lo((struct lnx_span){ sign + 1,
						 w.len - (size_t)(sign + 1 - w.s) }))
		return lnx_refuse(rd->r, w.s, "\"%.*s\": a gateway is another node, with "
				  "an address in one net, like 10.0.0.1@tcp",
				  LNX_QUOTE(w));
	ret = lnx_nid_pattern_parse(rd->nets, w, &p, rd->r);
	if (ret)
		return ret;
	part = &p.part[0];
	memset(gw, 0, sizeof(*gw));
	gw->prov = part->prov;
	memcpy(gw->net, part->net, sizeof(gw->net));
	gw->len = part->form == LNX_NID_IPV4 ? 4 : part->form == LNX_NID_IPV6 ? 16 :
		  part->len;
	if (part->form != LNX_NID_IPV4)
		memcpy(gw->addr, part->addr, gw->len);
	if (part->form == LNX_NID_NET || part->form == LNX_NID_ANY ||
	    part->form == LNX_NID_BYTES_PREFIX ||
	    (part->form == LNX_NID_IPV6 && part->len != 128))
		return lnx_refuse(rd->r, w.s, "\"%.*s\": a gateway is the address of one "
				  "node, like 10.0.0.1@tcp, or a few of them, like "
				  "10.0.0.[1-4]@tcp", LNX_QUOTE(w));
	if (part->group || !lnx_expr_one(&part->number))
		return lnx_refuse(rd->r, w.s, "\"%.*s\": a gateway is in one net that has "
				  "a name, like 10.0.0.1@tcp1", LNX_QUOTE(w));
	if (!lnx_expr_any(&part->port) && !lnx_expr_one(&part->port))
		return lnx_refuse(rd->r, w.s, "\"%.*s\": a gateway has one port; without "
				  "any it is %d", LNX_QUOTE(w), LNX_ROUTE_PORT);
	gw->number = part->number.item[0].lo;
	gw->port = part->port.item[0].lo;
	if (!lnx_expr_any(&part->port) && !gw->port)
		return lnx_refuse(rd->r, w.s, "\"%.*s\": no gateway has port 0; without "
				  "any it is %d", LNX_QUOTE(w), LNX_ROUTE_PORT);
	if (gw->port == LNX_ROUTE_PORT)
		gw->port = 0;
	return part->form == LNX_NID_IPV4 ? expand_ipv4(rd, part, w) : give(rd, w);
}

static int gateways(struct reader *rd, struct lnx_span w)
{
	struct lnx_span one;
	bool more;
	int ret;

	do {
		more = cut(&w, ",", &one);
		one = lnx_span_trim(one);
		if (!one.len)
			return lnx_refuse(rd->r, one.s, "a gateway is missing here, like "
					  "10.0.0.1@tcp");
		ret = one_gateway(rd, one);
	} while (!ret && more);
	return ret;
}

/* ---- routes ---- */

static int hops(struct reader *rd, struct lnx_span w)
{
	uint64_t v;

	/* What lnetctl prints where none was given. */
	if (lnx_span_is(w, "-1")) {
		rd->spec.hop = 0;
		return 0;
	}
	if (!lnx_span_uint(w, &v) || !v || v > LNX_ROUTE_HOP_MAX)
		return lnx_refuse(rd->r, w.s, "hop: \"%.*s\": must be a whole number from "
				  "1 to %d", LNX_QUOTE(w), LNX_ROUTE_HOP_MAX);
	rd->spec.hop = (uint8_t)v;
	return 0;
}

/* "hop=2" and the like, up to "via"; w becomes what is behind it. */
static int words(struct reader *rd, struct lnx_span *w)
{
	bool hop = false, priority = false;
	struct lnx_span one, value;
	int ret = 0;

	while (!ret) {
		one = word(w);
		value = one;
		if (lnx_span_is(one, "via"))
			return 0;
		if (begins(one, "hop=") && !hop) {
			value.s += 4, value.len -= 4;
			hop = true;
			ret = hops(rd, value);
		} else if (begins(one, "priority=") && !priority) {
			value.s += 9, value.len -= 9;
			priority = true;
			ret = lnx_rule_priority(value, "priority", &rd->spec.priority,
						rd->r);
		} else if (begins(one, "hop=") || begins(one, "priority=")) {
			ret = lnx_refuse(rd->r, one.s, "\"%.*s\": once is enough",
					 LNX_QUOTE(one));
		} else {
			ret = lnx_refuse(rd->r, one.s, one.len ?
					 "\"%.*s\": there can be hop=N, priority=N, and "
					 "then via with the gateways" :
					 "%.*sbehind the net there must be gateways, as "
					 "in \"tcp1 via 10.0.0.1@tcp\"", LNX_QUOTE(one));
		}
	}
	return ret;
}

/* A priority behind a NID: the digits behind the last ':' that is behind its '@'. */
static int nid_priority(struct reader *rd, struct lnx_span *w)
{
	const char *sign = memchr(w->s, '@', w->len);
	struct lnx_span value;
	size_t i = w->len;

	rd->spec.priority = 0;
	while (sign && i && w->s[i - 1] != ':')
		i--;
	if (!sign || !i || w->s + i <= sign)
		return 0;
	value = (struct lnx_span){ w->s + i, w->len - i };
	w->len = i - 1;
	if (!value.len || lnx_is_digit(*value.s))
		return lnx_rule_priority(value, "priority", &rd->spec.priority, rd->r);
	w->len = i + value.len;		/* a fabric name */
	return 0;
}

/* LNet's form: NIDs with blanks between, each with a priority of its own. */
static int lnet_gateways(struct reader *rd, struct lnx_span w)
{
	struct lnx_span one;
	int ret;

	do {
		one = word(&w);
		if (memchr(one.s, '=', one.len) || lnx_span_is(one, "via"))
			return lnx_refuse(rd->r, one.s, "\"%.*s\": hop=N, priority=N and "
					  "via stand in front of the gateways, as in "
					  "\"tcp1 hop=1 via 10.0.0.1@tcp\"",
					  LNX_QUOTE(one));
		ret = nid_priority(rd, &one);
		if (!ret)
			ret = gateways(rd, one);
	} while (!ret && w.len);
	return ret;
}

static bool has_sign(struct lnx_span w)
{
	return memchr(w.s, '@', w.len) != NULL;
}

static int route(struct reader *rd, struct lnx_span w)
{
	struct lnx_span rest = w, next, behind;
	int ret;

	memset(&rd->spec, 0, sizeof(rd->spec));
	ret = read_net(rd, word(&rest));
	if (ret)
		return ret;
	behind = rest;
	next = word(&behind);
	if (next.len && (lnx_is_digit(*next.s) || *next.s == '-') && !has_sign(next)) {
		ret = hops(rd, next);
		if (ret)
			return ret;
		rest = behind;
		if (!rest.len)
			return lnx_refuse(rd->r, rest.s, "behind the hops there must be "
					  "gateways, like 10.0.0.1@tcp");
		return lnet_gateways(rd, rest);
	}
	if (has_sign(next) && !memchr(next.s, '=', next.len))
		return lnet_gateways(rd, rest);
	ret = words(rd, &rest);
	return ret ? ret : gateways(rd, rest);
}

int lnx_routes_read(const struct lnx_nets *nets, const char *text, lnx_route_each *each,
		    void *arg, struct lnx_refusal *r)
{
	struct reader rd = { .nets = nets, .r = r, .each = each, .arg = arg };
	struct lnx_span rest = { text ? text : "", text ? strlen(text) : 0 }, one;
	bool more;
	int ret = 0;

	r->text = rest.s;
	r->at = 0;
	do {
		more = cut(&rest, ";", &one);
		one = lnx_span_trim(one);
		if (one.len)
			ret = route(&rd, one);
	} while (!ret && more);
	return ret;
}

int lnx_routes_expand(const struct lnx_nets *nets, struct lnx_span net,
		      struct lnx_span list, uint8_t hop, uint32_t priority,
		      lnx_route_each *each, void *arg, struct lnx_refusal *r)
{
	struct reader rd = { .nets = nets, .r = r, .each = each, .arg = arg };
	int ret = read_net(&rd, net);

	rd.spec.hop = hop;
	rd.spec.priority = priority;
	return ret ? ret : gateways(&rd, list);
}
