/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nets and their names.  See nets.h. */
#include "conf/nets.h"

#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/out.h"

#define NUMBER_MAX	UINT16_MAX

/* Names of the nets that providers have without others; IP: their addresses are. */
static const struct {
	const char *name;
	bool ip;
} provs[LNX_PROV_MAX] = {
	[LNX_PROV_TCP] = { "tcp", true },
	[LNX_PROV_TCP_RXM] = { "tcp;ofi_rxm", true },
	[LNX_PROV_VERBS_RXM] = { "verbs", true },
	[LNX_PROV_CXI] = { "cxi", false },
	[LNX_PROV_EFA] = { "efa", false },
	[LNX_PROV_PSM3] = { "psm3", false },
	[LNX_PROV_UDP_RXD] = { "udp", true },
	[LNX_PROV_OPX] = { "opx", false },
	[LNX_PROV_SOCKETS] = { "sockets", true },
};

const char *lnx_net_of_prov(uint8_t prov)
{
	return prov < LNX_PROV_MAX ? provs[prov].name : NULL;
}

bool lnx_net_ip(uint8_t prov)
{
	return prov < LNX_PROV_MAX && provs[prov].ip;
}

/* ---- names ---- */

static size_t begins(struct lnx_span w, const char *word)
{
	size_t len = strlen(word);

	return w.len >= len && !strncasecmp(w.s, word, len) ? len : 0;
}

/* The longest name of a provider at the start of w, in either spelling. */
static size_t prov_name(struct lnx_span w, uint8_t *prov)
{
	size_t len, best = 0;
	uint8_t i;

	for (i = LNX_PROV_NONE + 1; i < LNX_PROV_MAX; i++) {
		if (!provs[i].name)
			continue;
		len = LNX_MAX(begins(w, provs[i].name),
			      begins(w, lnx_addr_prov_name(i)));
		if (len > best) {
			best = len;
			*prov = i;
		}
	}
	return best;
}

/* What may follow a name: the end, a number or set of numbers, a fabric name. */
static bool name_ends(struct lnx_span w, size_t len)
{
	return w.len == len || lnx_is_digit(w.s[len]) ||
	       strchr("*[:", w.s[len]);
}

static void copy_name(char name[LNX_NET_NAME_MAX], const char *from)
{
	memset(name, 0, LNX_NET_NAME_MAX);
	memcpy(name, from, strnlen(from, LNX_NET_NAME_MAX - 1));
}

size_t lnx_nets_name(const struct lnx_nets *nets, struct lnx_span w,
		     char name[LNX_NET_NAME_MAX], uint8_t *prov)
{
	size_t len, best = 0;
	unsigned i;

	len = prov_name(w, prov);
	if (len && name_ends(w, len)) {
		copy_name(name, provs[*prov].name);
		best = len;
	}
	for (i = 0; nets && i < nets->n; i++) {
		len = begins(w, nets->net[i].name);
		if (len <= best || !name_ends(w, len))
			continue;
		copy_name(name, nets->net[i].name);
		*prov = nets->net[i].prov;
		best = len;
	}
	return best;
}

size_t lnx_nets_known(const struct lnx_nets *nets, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	unsigned i, j;

	for (i = 0; i < LNX_PROV_MAX; i++)
		if (provs[i].name)
			lnx_out(&o, "%s%s", o.n ? ", " : "", provs[i].name);
	for (i = 0; nets && i < nets->n; i++) {
		const char *name = nets->net[i].name;

		for (j = 0; j < i && strcmp(nets->net[j].name, name); j++)
			;
		if (j == i && strcmp(name, provs[nets->net[i].prov].name))
			lnx_out(&o, "%s%s", o.n ? ", " : "", name);
	}
	return o.n;
}

static bool name_letter(char c, bool first)
{
	c = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	return (c >= 'a' && c <= 'z') ||
	       (!first && (lnx_is_digit(c) || c == '_' || c == '-'));
}

static int refuse_shm(struct lnx_span w, struct lnx_refusal *r)
{
	return lnx_refuse(r, w.s, "\"%.*s\": shared memory is no net: it is "
			  "chosen before rails are, for all peers on this node",
			  LNX_QUOTE(w));
}

/* The letters of a name that is free to choose, without its number. */
static size_t free_name(struct lnx_span w)
{
	size_t i, len;

	for (i = 0; i < w.len && name_letter(w.s[i], !i); i++)
		;
	if (i < w.len || !w.len)
		return 0;
	for (len = w.len; lnx_is_digit(w.s[len - 1]); len--)
		;
	return len < LNX_NET_NAME_MAX ? len : 0;
}

/* *named: the provider that the name itself means; LNX_PROV_NONE: none. */
static int parse_name(struct lnx_span w, struct lnx_net *net, uint8_t *named,
		      struct lnx_refusal *r)
{
	struct lnx_span number;
	uint64_t v = 0;
	size_t len, i;

	*named = LNX_PROV_NONE;
	if (!w.len)
		return lnx_refuse(r, w.s, "the name of a net is missing before "
				  "'='; a net is written like "
				  "tcp1=10.78.0.0/16");
	if (begins(w, "shm") && name_ends(w, 3))
		return refuse_shm(w, r);
	len = prov_name(w, named);
	if (len && name_ends(w, len)) {
		copy_name(net->name, provs[*named].name);
	} else {
		*named = LNX_PROV_NONE;
		len = free_name(w);
		for (i = 0; i < len; i++)
			net->name[i] = (char)(w.s[i] >= 'A' && w.s[i] <= 'Z' ?
					      w.s[i] | 0x20 : w.s[i]);
	}
	number = (struct lnx_span){ w.s + len, w.len - len };
	if (!len || (number.len && (!lnx_span_uint(number, &v) || v > NUMBER_MAX)))
		return lnx_refuse(r, w.s, "\"%.*s\" cannot name a net; a name is "
				  "up to %d letters, digits, '_' and '-', a "
				  "letter first, then a number up to %u, like "
				  "tcp1 or ib0", LNX_QUOTE(w),
				  LNX_NET_NAME_MAX - 1, NUMBER_MAX);
	net->number = (uint16_t)v;
	return 0;
}

/* ---- what is in a net ---- */

static int parse_subnets(struct lnx_span w, struct lnx_net *net,
			 struct lnx_refusal *r)
{
	const char *end = w.s + w.len, *comma;
	int ret;

	for (;; w.s = comma + 1) {
		struct lnx_span one;

		comma = memchr(w.s, ',', (size_t)(end - w.s));
		one = (struct lnx_span){ w.s, (size_t)((comma ? comma : end) - w.s) };
		one = lnx_span_trim(one);
		if (net->nsubnet == LNX_NET_SUBNETS)
			return lnx_refuse(r, one.s, "\"%.*s\" is one too many, a "
					  "net can have %d subnets",
					  LNX_QUOTE(one), LNX_NET_SUBNETS);
		ret = lnx_cidr_parse(one, &net->subnet[net->nsubnet], r);
		if (ret || !comma)
			break;
		net->nsubnet++;
	}
	net->nsubnet += !ret;
	return ret;
}

static int parse_fabric(struct lnx_span w, struct lnx_net *net,
			struct lnx_refusal *r)
{
	size_t i;

	for (i = 0; i < w.len && w.s[i] > ' ' && w.s[i] <= '~' &&
	     !strchr(",;@\"'=", w.s[i]); i++)
		;
	if (!w.len || i < w.len || w.len >= LNX_NET_FABRIC_MAX)
		return lnx_refuse(r, w.s, "\"%.*s\" is no fabric name; write it "
				  "as fi_info lists it, or%s leave it out for "
				  "all rails of %s", LNX_QUOTE(w),
				  lnx_net_ip(net->prov) ? " subnets like "
				  "10.78.0.0/16, or" : "",
				  lnx_addr_prov_name(net->prov));
	memcpy(net->fabric, w.s, w.len);
	net->fabric[w.len] = '\0';
	net->group = lnx_addr_group(net->prov, net->fabric);
	return 0;
}

/* Text that begins with an address is meant as subnets, also if it has mistakes. */
static bool is_subnet(struct lnx_span w)
{
	struct lnx_refusal ignored = { .text = w.s };
	struct lnx_span first = w;
	struct lnx_cidr c;

	for (first.len = 0; first.len < w.len && !strchr(",/", w.s[first.len]);)
		first.len++;
	return w.len && (lnx_is_digit(*w.s) || *w.s == '[' ||
			 !lnx_cidr_parse(lnx_span_trim(first), &c, &ignored));
}

static int parse_value(struct lnx_span w, uint8_t named, struct lnx_net *net,
		       struct lnx_refusal *r)
{
	const char *slash = memchr(w.s, '/', w.len);
	struct lnx_span first = w, what = w;
	char known[200];
	uint8_t prov = LNX_PROV_NONE;

	first.len = slash ? (size_t)(slash - w.s) : w.len;
	first = lnx_span_trim(first);
	if (lnx_span_is(first, "shm"))
		return refuse_shm(w, r);
	if (first.len && prov_name(first, &prov) == first.len) {
		what = (struct lnx_span){ first.s + first.len, 0 };
		if (slash)
			what = lnx_span_trim((struct lnx_span){
				slash + 1, (size_t)(w.s + w.len - slash - 1) });
	} else {
		prov = named;
		slash = w.s;	/* there is no provider to stand alone */
	}
	if (!prov) {
		lnx_nets_known(NULL, known, sizeof(known));
		return lnx_refuse(r, w.s, "\"%.*s\" does not begin with a "
				  "provider, and the net has no provider's "
				  "name; put one before a '/': %s",
				  LNX_QUOTE(w), known);
	}
	if (named && named != prov)
		return lnx_refuse(r, w.s, "\"%.*s\" is of %s, but a net whose "
				  "name begins with %s has rails of that "
				  "provider; choose another name",
				  LNX_QUOTE(w), lnx_addr_prov_name(prov),
				  provs[named].name);
	net->prov = prov;
	if (!what.len && !slash)
		return 0;
	return lnx_net_ip(prov) && is_subnet(what) ?
	       parse_subnets(what, net, r) : parse_fabric(what, net, r);
}

/* ---- nets together ---- */

static bool share_subnet(const struct lnx_net *a, const struct lnx_net *b)
{
	unsigned i, j;

	for (i = 0; i < a->nsubnet; i++)
		for (j = 0; j < b->nsubnet; j++)
			if (lnx_cidr_overlap(&a->subnet[i], &b->subnet[j]))
				return true;
	return false;
}

static bool whole(const struct lnx_net *net)
{
	return !net->nsubnet && !net->group;
}

/* The fabric name of an IP provider is often a subnet: then it can be compared. */
static bool share_fabric(const struct lnx_net *a, const struct lnx_net *b)
{
	struct lnx_span w = { a->fabric, strlen(a->fabric) };
	struct lnx_refusal ignored = { .text = a->fabric };
	struct lnx_net as_subnet = { .nsubnet = 1 };

	return w.len && b->nsubnet && lnx_net_ip(a->prov) &&
	       !lnx_cidr_parse(w, as_subnet.subnet, &ignored) &&
	       share_subnet(&as_subnet, b);
}

static bool share_rails(const struct lnx_net *a, const struct lnx_net *b)
{
	if (a->prov != b->prov)
		return false;
	if (whole(a) || whole(b) || (a->group && a->group == b->group))
		return true;
	return share_subnet(a, b) || share_fabric(a, b) || share_fabric(b, a);
}

static int fits(const struct lnx_nets *nets, const struct lnx_net *net,
		struct lnx_span name, struct lnx_refusal *r)
{
	char other[64];
	unsigned i;

	if (!net->number && !strcmp(net->name, provs[net->prov].name))
		return lnx_refuse(r, name.s, "\"%.*s\": without a number, or with "
				  "0, %s is the net of all its rails that have "
				  "no other; give this one a number, like %s1",
				  LNX_QUOTE(name), net->name, net->name);
	for (i = 0; i < nets->n; i++) {
		const struct lnx_net *o = &nets->net[i];
		bool same = !strcmp(o->name, net->name);

		snprintf(other, sizeof(other), "%s%u", o->name, o->number);
		if (same && o->number == net->number)
			return lnx_refuse(r, name.s, "\"%.*s\" is there already; "
					  "put all its subnets behind one '=', "
					  "separated by ','", LNX_QUOTE(name));
		if (same && o->prov != net->prov)
			return lnx_refuse(r, name.s, "\"%.*s\" is of %s and %s "
					  "of %s; nets of two providers need "
					  "names that differ in more than the "
					  "number", LNX_QUOTE(name),
					  lnx_addr_prov_name(net->prov), other,
					  lnx_addr_prov_name(o->prov));
		if (share_rails(o, net))
			return lnx_refuse(r, name.s, "\"%.*s\" and %s would be two "
					  "names for the same rails; a rail is "
					  "in one net", LNX_QUOTE(name), other);
	}
	return 0;
}

int lnx_nets_add(struct lnx_nets *out, struct lnx_span name, struct lnx_span value,
		 struct lnx_refusal *r)
{
	struct lnx_net net = { .number = 0 };
	uint8_t named;
	int ret;

	name = lnx_span_trim(name);
	value = lnx_span_trim(value);
	if (out->n == LNX_NETS_MAX)
		return lnx_refuse(r, name.s, "\"%.*s\" is one net too many, there "
				  "can be %d", LNX_QUOTE(name), LNX_NETS_MAX);
	ret = parse_name(name, &net, &named, r);
	if (!ret)
		ret = parse_value(value, named, &net, r);
	if (!ret)
		ret = fits(out, &net, name, r);
	if (!ret)
		out->net[out->n++] = net;
	return ret;
}

/* The next net: up to a ';' that is not part of a provider's name, or the end. */
static struct lnx_span next_net(const char *s)
{
	struct lnx_span w = { s, 0 };

	while (w.s[w.len] && (w.s[w.len] != ';' || lnx_joins_layers(w.s + w.len)))
		w.len++;
	return w;
}

int lnx_nets_parse(const char *text, struct lnx_nets *out, struct lnx_refusal *r)
{
	struct lnx_span w;
	int ret = 0;

	out->n = 0;
	r->text = text ? text : "";
	if (!r->text[lnx_blanks(r->text)])
		return 0;
	for (w = next_net(r->text); !ret; w = next_net(w.s + w.len + 1)) {
		const char *eq = memchr(w.s, '=', w.len);
		struct lnx_span one = lnx_span_trim(w);

		if (!eq)
			return lnx_refuse(r, one.s, "\"%.*s\": a net is written "
					  "like tcp1=10.78.0.0/16 or "
					  "ib0=verbs/10.80.0.0/16; ';' begins "
					  "the next", LNX_QUOTE(one));
		ret = lnx_nets_add(out,
			(struct lnx_span){ w.s, (size_t)(eq - w.s) },
			(struct lnx_span){ eq + 1,
				(size_t)(w.s + w.len - eq - 1) }, r);
		if (!w.s[w.len])
			break;
	}
	return ret;
}

/* ---- text ---- */

static void print_value(const struct lnx_net *net, struct lnx_out *o)
{
	unsigned i;

	lnx_out(o, "%s", lnx_addr_prov_name(net->prov));
	if (net->group)
		lnx_out(o, "/%s", net->fabric);
	for (i = 0; i < net->nsubnet; i++) {
		lnx_out(o, i ? "," : "/");
		lnx_cidr_print(&net->subnet[i], o);
	}
}

size_t lnx_net_value(const struct lnx_net *net, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	print_value(net, &o);
	return o.n;
}

size_t lnx_net_print(const struct lnx_net *net, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	lnx_out(&o, "%s", net->name);
	if (net->number)
		lnx_out(&o, "%u", net->number);
	lnx_out(&o, "=");
	print_value(net, &o);
	return o.n;
}

/* ---- rails ---- */

static bool has_addr(const struct lnx_net *net, const struct lnx_addr_rail *rail)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	unsigned i;

	memcpy(&in, rail->raw, sizeof(in));
	memcpy(&in6, rail->raw, sizeof(in6));
	for (i = 0; i < net->nsubnet; i++) {
		if (rail->rawlen == sizeof(in) &&
		    lnx_cidr_has(&net->subnet[i],
				 (const uint8_t *)&in.sin_addr, 4))
			return true;
		if (rail->rawlen == sizeof(in6) &&
		    lnx_cidr_has(&net->subnet[i], in6.sin6_addr.s6_addr, 16))
			return true;
	}
	return false;
}

static bool has_rail(const struct lnx_net *net, const struct lnx_addr_rail *rail)
{
	return net->prov == rail->prov &&
	       (whole(net) || (net->group ? net->group == rail->group :
					    has_addr(net, rail)));
}

static int find_from(const struct lnx_nets *nets, unsigned from,
		     const struct lnx_addr_rail *rail)
{
	unsigned i;

	for (i = from; i < nets->n; i++)
		if (has_rail(&nets->net[i], rail))
			return (int)i;
	return -1;
}

int lnx_nets_find(const struct lnx_nets *nets, const struct lnx_addr_rail *rail)
{
	return find_from(nets, 0, rail);
}

static const char *name_of(const struct lnx_nets *nets, int i, uint8_t prov,
			   char buf[32])
{
	if (i < 0)
		snprintf(buf, 32, "%s", provs[prov].name);
	else
		snprintf(buf, 32, "%s%u", nets->net[i].name, nets->net[i].number);
	return buf;
}

int lnx_nets_check(const struct lnx_nets *nets, const struct lnx_addr_rail *rail,
		   unsigned n, struct lnx_refusal *r)
{
	char one[32], two[32];
	unsigned i, j;

	for (i = 0; i < n; i++) {
		int net = lnx_nets_find(nets, &rail[i]);
		int other = net < 0 ? -1 :
			    find_from(nets, (unsigned)net + 1, &rail[i]);

		if (other >= 0)
			return lnx_refuse(r, NULL, "the nets %s and %s both have "
					  "the rail %u; a rail is in one net",
					  name_of(nets, net, rail[i].prov, one),
					  name_of(nets, other, rail[i].prov, two),
					  i);
		for (j = 0; j < i; j++) {
			if (rail[j].prov != rail[i].prov ||
			    rail[j].group != rail[i].group)
				continue;
			other = lnx_nets_find(nets, &rail[j]);
			if (other == net)
				continue;
			return lnx_refuse(r, NULL, "the rails %u and %u reach "
					  "each other, but the first is in the "
					  "net %s and the other in %s; give "
					  "both to one net", j, i,
					  name_of(nets, other, rail[j].prov, one),
					  name_of(nets, net, rail[i].prov, two));
		}
	}
	return 0;
}
