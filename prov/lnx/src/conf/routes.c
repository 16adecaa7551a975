/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of routes.  See routes.h; their text is in routes_text.c. */
#include "conf/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"

void lnx_routes_init(struct lnx_routes *t, uint64_t seed)
{
	*t = (struct lnx_routes){ .random = seed };
}

void lnx_routes_fini(struct lnx_routes *t)
{
	free(t->route);
	*t = (struct lnx_routes){ .random = t->random };
}

/* ---- comparisons ---- */

static bool same_nid(const struct lnx_nid *a, const struct lnx_nid *b)
{
	return a->prov == b->prov && a->number == b->number && a->port == b->port &&
	       a->len == b->len && !strcmp(a->net, b->net) &&
	       !memcmp(a->addr, b->addr, a->len);
}

static bool same_net(const struct lnx_nid_part *a, const struct lnx_nid_part *b)
{
	return a->prov == b->prov && !strcmp(a->net, b->net) &&
	       a->number.item[0].lo == b->number.item[0].lo;
}

bool lnx_route_same(const struct lnx_route_spec *a, const struct lnx_route_spec *b)
{
	return same_net(&a->net, &b->net) && same_nid(&a->gateway, &b->gateway);
}

/* Is it in the same net as one of our rails? */
static bool reachable(const struct lnx_nid *gateway, const struct lnx_route_host *host)
{
	unsigned i;

	for (i = 0; i < host->n; i++)
		if (host->rail[i].prov == gateway->prov &&
		    host->rail[i].number == gateway->number &&
		    !strcmp(host->rail[i].net, gateway->net))
			return true;
	return false;
}

static bool net_local(const struct lnx_nid_part *net, const struct lnx_route_host *host)
{
	unsigned i;

	for (i = 0; i < host->n; i++)
		if (lnx_nid_part_has(net, &host->rail[i]))
			return true;
	return false;
}

static bool is_own(const struct lnx_nid *gateway, const struct lnx_route_host *host)
{
	unsigned i;

	for (i = 0; i < host->n; i++)
		if (host->rail[i].prov == gateway->prov &&
		    host->rail[i].len == gateway->len &&
		    !memcmp(host->rail[i].addr, gateway->addr, gateway->len))
			return true;
	return false;
}

/* Unspecified, loopback, broadcast or multicast: no gateway has it. */
static bool unusable(const struct lnx_nid *n)
{
	static const uint8_t zero[16], one[16] = { [15] = 1 };

	if (!lnx_net_ip(n->prov))
		return !n->len;
	if (n->len == 4)
		return !n->addr[0] || n->addr[0] == 127 || n->addr[0] >= 224;
	return n->len != 16 || n->addr[0] == 0xff || !memcmp(n->addr, zero, 16) ||
	       !memcmp(n->addr, one, 16);
}

/* ---- checks ---- */

static int refuse(struct lnx_refusal *r, int err)
{
	r->text = NULL;
	r->at = 0;
	return err;
}

#define NET_TEXT	(LNX_NET_NAME_MAX + 8)

static const char *net_text(const struct lnx_nid_part *net, char buf[NET_TEXT])
{
	lnx_nid_pattern_print(net, 1, buf, NET_TEXT);
	return buf;
}

static const char *nid_text(const struct lnx_nid *nid, char buf[LNX_NID_TEXT_MAX])
{
	lnx_nid_print(nid, buf, LNX_NID_TEXT_MAX);
	return buf;
}

/* The nets of this node, for a sentence. */
static const char *local_nets(const struct lnx_route_host *host, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	unsigned i, k;

	buf[0] = '\0';
	for (i = 0; i < host->n; i++) {
		const struct lnx_nid *n = &host->rail[i];

		for (k = 0; k < i; k++)
			if (!strcmp(host->rail[k].net, n->net) &&
			    host->rail[k].number == n->number)
				break;
		if (k < i)
			continue;
		lnx_out(&o, "%s%s", o.n ? ", " : "", n->net);
		if (n->number)
			lnx_out(&o, "%u", n->number);
	}
	return o.n ? buf : "none";
}

static int check_alone(const struct lnx_route_spec *s, struct lnx_refusal *r)
{
	char net[NET_TEXT], nid[LNX_NID_TEXT_MAX];

	if (s->net.form != LNX_NID_NET || !lnx_net_of_prov(s->net.prov) ||
	    s->net.group || !lnx_expr_one(&s->net.number)) {
		lnx_refuse(r, NULL, "a route leads to one net that has a name, like "
			   "tcp1");
		return refuse(r, -EINVAL);
	}
	if (!lnx_net_of_prov(s->gateway.prov) || unusable(&s->gateway)) {
		lnx_refuse(r, NULL, "the gateway %s is not the address of one other "
			   "node, like 10.0.0.1@tcp", nid_text(&s->gateway, nid));
		return refuse(r, -EINVAL);
	}
	if (s->priority == UINT32_MAX) {
		lnx_refuse(r, NULL, "the priority of a route is from 0, the best, to %u",
			   UINT32_MAX - 1);
		return refuse(r, -EINVAL);
	}
	if (lnx_nid_part_has(&s->net, &s->gateway)) {
		lnx_refuse(r, NULL, "the gateway %s is in the net %s itself; a route "
			   "leads to another net than that of its gateway",
			   nid_text(&s->gateway, nid), net_text(&s->net, net));
		return refuse(r, -EINVAL);
	}
	return 0;
}

int lnx_route_check(const struct lnx_route_spec *s, const struct lnx_route_host *host,
		    struct lnx_refusal *r)
{
	char net[NET_TEXT], nid[LNX_NID_TEXT_MAX], known[128];
	int ret = check_alone(s, r);

	if (ret || !host)
		return ret;
	if (is_own(&s->gateway, host)) {
		lnx_refuse(r, NULL, "the gateway %s is this node itself; a route leads "
			   "over another node", nid_text(&s->gateway, nid));
		return refuse(r, -EINVAL);
	}
	if (net_local(&s->net, host)) {
		lnx_refuse(r, NULL, "the net %s is local: a rail of this node is in it, "
			   "so that no route to it is needed", net_text(&s->net, net));
		return refuse(r, -EEXIST);
	}
	if (!reachable(&s->gateway, host)) {
		lnx_refuse(r, NULL, "the gateway %s is on no local net; those of this "
			   "node are %s", nid_text(&s->gateway, nid),
			   local_nets(host, known, sizeof(known)));
		return refuse(r, -EHOSTUNREACH);
	}
	return 0;
}

/* ---- changes ---- */

/* xorshift64*: the same on every machine. */
static uint64_t next_random(struct lnx_routes *t)
{
	uint64_t x = t->random ? t->random : 0x9e3779b97f4a7c15ull;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	t->random = x;
	return (x * 0x2545f4914f6cdd1dull) >> 32;
}

static int make_room(struct lnx_routes *t)
{
	unsigned room = t->room ? 2 * t->room : 16;
	struct lnx_route *list;

	if (t->n < t->room)
		return 0;
	list = realloc(t->route, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	t->route = list;
	t->room = room;
	return 0;
}

static struct lnx_route *find_same(const struct lnx_routes *t,
				   const struct lnx_route_spec *spec)
{
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (lnx_route_same(&t->route[i].spec, spec))
			return &t->route[i];
	return NULL;
}

int lnx_routes_add(struct lnx_routes *t, const struct lnx_route_spec *spec,
		   const struct lnx_route_host *host, struct lnx_refusal *r)
{
	char net[NET_TEXT], nid[LNX_NID_TEXT_MAX];
	struct lnx_route *other;
	int ret = lnx_route_check(spec, host, r);
	unsigned at;

	if (ret)
		return ret;
	other = find_same(t, spec);
	if (other && other->learned) {
		other->spec = *spec;
		other->learned = false;
		t->changes++;
		return 0;
	}
	if (other) {
		lnx_refuse(r, NULL, "there is a route to %s over %s already; delete it "
			   "to change it", net_text(&spec->net, net),
			   nid_text(&other->spec.gateway, nid));
		return refuse(r, -EEXIST);
	}
	if (t->n == LNX_ROUTES_MAX) {
		lnx_refuse(r, NULL, "there are %d routes already, the most there can be",
			   LNX_ROUTES_MAX);
		return refuse(r, -ENOSPC);
	}
	if (make_room(t)) {
		lnx_refuse(r, NULL, "memory is short; nothing was changed");
		return refuse(r, -ENOMEM);
	}
	at = (unsigned)(next_random(t) % (t->n + 1));
	memmove(t->route + at + 1, t->route + at, (t->n - at) * sizeof(*t->route));
	t->route[at] = (struct lnx_route){ .spec = *spec, .id = ++t->last_id };
	t->n++;
	t->changes++;
	return 0;
}

/* Is it a route for other nodes only?  Then it has a line in skipped. */
static bool for_others(const struct lnx_route_spec *spec, const struct lnx_route_host *host,
		       struct lnx_out *skipped, struct lnx_refusal *r)
{
	char text[LNX_ROUTE_TEXT_MAX];

	if (check_alone(spec, r) || !lnx_route_check(spec, host, r))
		return false;
	lnx_route_print(spec, text, sizeof(text));
	lnx_out(skipped, "%s: %s\n", text, r->why);
	return true;
}

int lnx_routes_add_one(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		       struct lnx_refusal *r)
{
	struct lnx_routes_adding *a = arg;

	(void)w;
	return a->skipped && for_others(spec, a->host, a->skipped, r) ? 0 :
	       lnx_routes_add(a->to, spec, a->host, r);
}

static int copy(struct lnx_routes *to, const struct lnx_routes *t)
{
	*to = *t;
	to->room = t->n;
	to->route = malloc(LNX_MAX(t->n, 1u) * sizeof(*to->route));
	if (!to->route)
		return -ENOMEM;
	if (t->n)
		memcpy(to->route, t->route, t->n * sizeof(*to->route));
	return 0;
}

static int no_memory(struct lnx_refusal *r)
{
	lnx_refuse(r, NULL, "memory is short; nothing was changed");
	return -ENOMEM;
}

int lnx_routes_parse(struct lnx_routes *t, const struct lnx_nets *nets, const char *text,
		     const struct lnx_route_host *host, struct lnx_refusal *r)
{
	struct lnx_routes new;
	struct lnx_routes_adding a = { .to = &new, .host = host };
	int ret;

	if (copy(&new, t))
		return no_memory(r);
	ret = lnx_routes_read(nets, text, lnx_routes_add_one, &a, r);
	free(ret ? new.route : t->route);
	if (!ret)
		*t = new;
	return ret;
}

/* An lnx_route_each for lnx_routes_put. */
struct putting {
	struct lnx_routes *to;
	const struct lnx_route_host *host;
	struct lnx_out *skipped;
};

static int put_one(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		   struct lnx_refusal *r)
{
	struct putting *p = arg;
	struct lnx_route *at;
	unsigned i;

	(void)w;
	if (check_alone(spec, r))
		return -EINVAL;
	if (for_others(spec, p->host, p->skipped, r))
		return 0;
	for (i = 0; i < p->to->n && !lnx_route_same(&p->to->route[i].spec, spec); i++)
		;
	if (i == p->to->n)
		return lnx_routes_add(p->to, spec, p->host, r);
	at = &p->to->route[i];
	if (at->spec.hop != spec->hop || at->spec.priority != spec->priority) {
		at->spec = *spec;
		p->to->changes++;
	}
	return 0;
}

int lnx_routes_put(struct lnx_routes *t, const struct lnx_nets *nets, const char *text,
		   const struct lnx_route_host *host, struct lnx_out *skipped,
		   struct lnx_refusal *r)
{
	struct lnx_routes new;
	struct putting p = { .to = &new, .host = host, .skipped = skipped };
	int ret;

	if (copy(&new, t))
		return no_memory(r);
	ret = lnx_routes_read(nets, text, put_one, &p, r);
	free(ret ? new.route : t->route);
	if (!ret)
		*t = new;
	return ret;
}

static void remove_at(struct lnx_routes *t, unsigned at)
{
	t->n--;
	memmove(t->route + at, t->route + at + 1, (t->n - at) * sizeof(*t->route));
	t->changes++;
}

/* Delete what the text names: a gateway, or all to a net, if gateway is empty. */
static int del_one(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		   struct lnx_refusal *r)
{
	char net[NET_TEXT], nid[LNX_NID_TEXT_MAX];
	struct lnx_routes *t = arg;
	unsigned i, n = 0;

	for (i = t->n; i--;) {
		if (spec->gateway.prov ? !lnx_route_same(&t->route[i].spec, spec) :
					 !same_net(&t->route[i].spec.net, &spec->net))
			continue;
		remove_at(t, i);
		n++;
	}
	if (n)
		return 0;
	if (spec->gateway.prov)
		lnx_refuse(r, w.s, "there is no route to %s over %s",
			   net_text(&spec->net, net), nid_text(&spec->gateway, nid));
	else
		lnx_refuse(r, w.s, "there is no route to %s",
			   net_text(&spec->net, net));
	return -ENOENT;
}

int lnx_routes_del(struct lnx_routes *t, const struct lnx_nets *nets, const char *text,
		   struct lnx_refusal *r)
{
	struct lnx_routes new;
	struct lnx_pattern p;
	struct lnx_span all = lnx_span_trim((struct lnx_span){ text, strlen(text) });
	int ret;

	if (copy(&new, t))
		return no_memory(r);
	r->text = text;
	if (all.len && !memchr(all.s, ' ', all.len) && !memchr(all.s, '\t', all.len)) {
		ret = lnx_nid_pattern_parse(nets, all, &p, r);
		if (!ret && (!lnx_nid_pattern_nets(&p) || p.n != 1 || p.part[0].group ||
			     !lnx_expr_one(&p.part[0].number)))
			ret = lnx_refuse(r, all.s, "\"%.*s\": the name of one net must "
					 "be there, like tcp1", LNX_QUOTE(all));
		if (!ret) {
			struct lnx_route_spec spec = { .net = p.part[0] };

			ret = del_one(&new, &spec, all, r);
		}
	} else if (all.len) {
		ret = lnx_routes_read(nets, text, del_one, &new, r);
	} else {
		ret = lnx_refuse(r, text, "a net must be there, as in \"tcp1\" or "
				 "\"tcp1 via 10.0.0.1@tcp\"");
	}
	free(ret ? new.route : t->route);
	if (!ret)
		*t = new;
	return ret;
}

void lnx_routes_clear(struct lnx_routes *t)
{
	t->changes += t->n != 0;
	t->n = 0;
}

/* ---- the best ones ---- */

static bool better(const struct lnx_route_spec *a, const struct lnx_route_spec *b)
{
	return a->priority != b->priority ? a->priority < b->priority :
	       lnx_route_hops(a) < lnx_route_hops(b);
}

unsigned lnx_routes_best(const struct lnx_routes *t, const struct lnx_nid *to,
			 bool (*usable)(void *arg, const struct lnx_route *route),
			 void *arg, const struct lnx_route **out, unsigned max)
{
	const struct lnx_route *best = NULL;
	unsigned i, n = 0;

	for (i = 0; i < t->n; i++) {
		const struct lnx_route *route = &t->route[i];

		if (!lnx_nid_part_has(&route->spec.net, to) ||
		    (usable && !usable(arg, route)))
			continue;
		if (!best || better(&route->spec, &best->spec)) {
			best = route;
			n = 0;
		} else if (better(&best->spec, &route->spec)) {
			continue;
		}
		if (n < max)
			out[n++] = route;
	}
	return n;
}

/* ---- text ---- */

static void print(const struct lnx_route_spec *s, struct lnx_out *o)
{
	char net[NET_TEXT], nid[LNX_NID_TEXT_MAX];

	lnx_out(o, "%s", net_text(&s->net, net));
	if (s->hop)
		lnx_out(o, " hop=%u", s->hop);
	if (s->priority)
		lnx_out(o, " priority=%u", s->priority);
	lnx_out(o, " via %s", nid_text(&s->gateway, nid));
}

size_t lnx_route_print(const struct lnx_route_spec *spec, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	print(spec, &o);
	return o.n;
}

size_t lnx_routes_print(const struct lnx_routes *t, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	const struct lnx_route *next;
	uint32_t last = 0;
	unsigned i;

	if (size)
		buf[0] = '\0';
	do {
		next = NULL;
		for (i = 0; i < t->n; i++)
			if (t->route[i].id > last &&
			    (!next || t->route[i].id < next->id))
				next = &t->route[i];
		if (!next)
			break;
		lnx_out(&o, o.n ? "; " : "");
		print(&next->spec, &o);
		last = next->id;
	} while (next);
	return o.n;
}
