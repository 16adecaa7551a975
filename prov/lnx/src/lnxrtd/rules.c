/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a gateway sends a frame: may it, which of its rails is on that net, and if none is,
 * which other gateway is nearer.  What is found is kept in the destination, so that all
 * but its first frame cost a look-up.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lnxrtd/inside.h"

#define PORT_MIN	1024u

int rtd_rail_to(const struct rtd_relay *r, const struct lnx_addr_rail *to)
{
	int best = -1;
	unsigned i;

	for (i = 0; i < r->nout; i++) {
		const struct rtd_rail *rail = &r->out[i].rail;

		if (rail->addr.prov != to->prov || rail->addr.group != to->group)
			continue;
		/* Of several the one that is up, and then the one with less to do. */
		if (best < 0 || rail->up > r->out[best].rail.up ||
		    (rail->up == r->out[best].rail.up &&
		     r->out[i].flying < r->out[best].flying))
			best = (int)i;
	}
	return best;
}

/* ---- addresses that are no destination ---- */

static bool same_host(const struct lnx_addr_rail *a, const struct lnx_nid *b)
{
	static const struct lnx_nets none;
	struct lnx_nid nid;

	return !lnx_nid_of(&none, a, &nid) && nid.prov && nid.len == b->len &&
	       !memcmp(nid.addr, b->addr, b->len);
}

/* Of this host, whatever port: a gateway must not be led to services beside it. */
static bool own_host(const struct rtd_relay *r, const struct lnx_addr_rail *to)
{
	unsigned i;

	for (i = 0; i < r->nout; i++)
		if (same_host(to, &r->out[i].rail.nid))
			return true;
	return r->ops.own && r->ops.own(r->ops.arg, to);
}

static bool own_rail(const struct rtd_relay *r, const struct lnx_addr_rail *to)
{
	unsigned i;

	for (i = 0; i < r->nout; i++)
		if (r->out[i].rail.addr.prov == to->prov &&
		    r->out[i].rail.addr.rawlen == to->rawlen &&
		    !memcmp(r->out[i].rail.addr.raw, to->raw, to->rawlen))
			return true;
	return false;
}

/* A source may name any net beside any address: a gateway must not be led out of its nets. */
static bool in_net(const struct rtd_rail *rail, const struct lnx_nid *nid)
{
	return !rail->subnet.len || lnx_cidr_has(&rail->subnet, nid->addr, nid->len);
}

/* Multicast, unspecified and link-local IPv6 addresses never come out of the decoder. */
static const char *forbidden(const struct lnx_addr_rail *to, bool loopback)
{
	static const struct lnx_nets none;
	struct lnx_nid n;

	if (lnx_nid_of(&none, to, &n))
		return "its address is malformed";
	if (!lnx_net_ip(to->prov))
		return NULL;
	if (n.port < PORT_MIN)
		return "its port is below 1024";
	if (loopback)
		return NULL;
	if (n.len == 4 && n.addr[0] == 127)
		return "it is a loopback address";
	if (n.len == 4 && n.addr[0] == 169 && n.addr[1] == 254)
		return "it is a link-local address";
	if (n.len == 16 && !memcmp(n.addr, &in6addr_loopback, 16))
		return "it is a loopback address";
	if (n.len == 16 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)n.addr))
		return "it is an IPv4 address as IPv6";
	return NULL;
}

/* ---- rules ---- */

static bool net_fits(const struct lnx_nid_part *net, const struct lnx_nid *nid)
{
	return !net->prov || lnx_nid_part_has(net, nid);
}

/* From which of our rails frames may go there. */
static uint16_t allowed_from(const struct rtd_relay *r, const struct lnx_nid *to)
{
	uint16_t bits = 0;
	unsigned i, k;

	for (i = 0; i < r->nout; i++) {
		for (k = 0; k < r->s.nrule; k++)
			if (net_fits(&r->s.rule[k].from, &r->out[i].rail.nid) &&
			    net_fits(&r->s.rule[k].to, to))
				break;
		if (k == r->s.nrule || !r->s.rule[k].deny)
			bits |= (uint16_t)(1u << i);
	}
	return bits;
}

/* ---- other gateways ---- */

/* Another number: ways over gateways have to be looked for anew. */
static uint32_t ways(const struct rtd_relay *r)
{
	return r->routes->changes + r->news;
}

static bool same_nid(const struct lnx_nid *a, const struct lnx_nid *b)
{
	return a->prov == b->prov && a->port == b->port && a->len == b->len &&
	       !memcmp(a->addr, b->addr, a->len);
}

/* The rail of ours in the gateway's net. */
static int rail_in_net(const struct rtd_relay *r, const struct lnx_nid *nid)
{
	unsigned i;

	for (i = 0; i < r->nout; i++)
		if (r->out[i].rail.nid.prov == nid->prov &&
		    r->out[i].rail.nid.number == nid->number &&
		    !strcmp(r->out[i].rail.nid.net, nid->net))
			return (int)i;
	return -1;
}

static struct rtd_gateway *gateway_get(struct rtd_relay *r, const struct lnx_nid *nid,
				       uint64_t now)
{
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct rtd_gateway *gw;
	struct lnx_addr_rail addr;
	struct rtd_dest *d;
	unsigned i;
	int rail;

	for (i = 0; i < r->ngateway; i++)
		if (same_nid(&r->gateway[i].nid, nid))
			return &r->gateway[i];
	rail = rail_in_net(r, nid);
	if (r->ngateway == RTD_GATEWAYS || rail < 0)
		return NULL;
	lnx_nid_where(nid, r->out[rail].rail.addr.group, LNX_ROUTE_PORT, &addr);
	if (lnx_route_rail_put(key, &addr))
		return NULL;
	d = rtd_dest_find(r, key, now);
	if (!d)
		d = rtd_dest_make(r, key, &addr, now);
	if (!d)
		return NULL;
	d->rail = (uint8_t)rail;
	d->routes = ways(r);
	d->allowed = 0;		/* not as an end of frames */
	d->pins++;
	gw = &r->gateway[r->ngateway++];
	*gw = (struct rtd_gateway){ .nid = *nid, .dest = d };
	lnx_route_gateway_init(&gw->g);
	return gw;
}

struct rtd_gateway *rtd_gateway_of(struct rtd_relay *r, const struct rtd_dest *dest)
{
	unsigned i;

	for (i = 0; i < r->ngateway; i++)
		if (r->gateway[i].dest == dest)
			return &r->gateway[i];
	return NULL;
}

void rtd_rules_apply(struct rtd_relay *r)
{
	struct lnx_node *n;

	for (n = r->dest_lru.next; n != &r->dest_lru; n = n->next) {
		struct rtd_dest *d = lnx_list_entry(n, struct rtd_dest, lru);
		struct lnx_nid nid;

		d->allowed = rtd_gateway_of(r, d) || lnx_nid_of(r->nets, &d->addr, &nid) ? 0 :
			     allowed_from(r, &nid);
	}
}

bool rtd_gateway_leads_on(const struct rtd_relay *r, const struct rtd_gateway *gw)
{
	unsigned i;

	for (i = 0; i < r->routes->n; i++)
		if (r->routes->route[i].spec.hop != 1 &&
		    same_nid(&r->routes->route[i].spec.gateway, &gw->nid))
			return true;
	return false;
}

struct usable {
	struct rtd_relay *r;
	uint64_t now;
	bool stopping;			/* also those that will end soon */
	bool dead;			/* and those that do not answer */
	uint64_t paused;		/* these not: bits */
};

/* One that does not answer, does not forward, or could not be reached a moment ago is passed
 * over. */
static bool usable(void *arg, const struct lnx_route *route)
{
	struct usable *u = arg;
	struct rtd_gateway *gw = gateway_get(u->r, &route->spec.gateway, u->now);

	return gw && !(u->paused >> (gw - u->r->gateway) & 1) &&
	       (u->dead || gw->g.state != LNX_GATEWAY_DEAD) && gw->g.routing &&
	       (u->stopping || !gw->g.draining) &&
	       u->now >= gw->dest->failed_ns && u->r->out[gw->dest->rail].rail.up;
}

bool rtd_gateway_replaced(struct rtd_relay *r, const struct rtd_dest *dest, uint64_t now)
{
	const struct rtd_gateway *gw = rtd_gateway_of(r, dest);
	const struct lnx_routes *t = r->routes;
	struct usable u = { .r = r, .now = now, .stopping = true };
	unsigned i, k;

	for (i = 0; gw && i < t->n; i++)
		for (k = 0; same_nid(&t->route[i].spec.gateway, &gw->nid) && k < t->n; k++)
			if (!same_nid(&t->route[k].spec.gateway, &gw->nid) &&
			    !memcmp(&t->route[k].spec.net, &t->route[i].spec.net,
				    sizeof(t->route[i].spec.net)) &&
			    usable(&u, &t->route[k]))
				return true;
	return false;
}

/* Of two gateways side by side, which mostly have addresses one behind the other, one is odd: to
 * one end each takes another next gateway then, so that one that is lost on the way cuts not
 * both. */
static unsigned oddness(const struct rtd_relay *r)
{
	const struct lnx_nid *nid = &r->out[0].rail.nid;

	return r->nout && nid->len ? nid->addr[nid->len - 1] : 0;
}

/* The one at place `at` of n routes in the order of their gateways, since that of the table is
 * another one in each gateway. */
static const struct lnx_route *in_order(const struct lnx_route *const *route, unsigned n,
					unsigned at)
{
	unsigned i, k, before;

	for (i = 0; i < n; i++) {
		for (k = before = 0; k < n; k++)
			before += memcmp(&route[k]->spec.gateway, &route[i]->spec.gateway,
					 sizeof(route[i]->spec.gateway)) < 0;
		if (before == at)
			return route[i];
	}
	return route[0];
}

/* The next gateway on the way there, none of paused; among equal ones always the same for one
 * end, so that its frames stay together. */
static struct rtd_gateway *next_gateway(struct rtd_relay *r, const struct lnx_nid *to,
					const uint8_t key[LNX_ROUTE_RAIL_BYTES],
					uint64_t paused, uint64_t now)
{
	const struct lnx_route *route[RTD_GATEWAYS];
	struct usable u = { .r = r, .now = now, .paused = paused };
	unsigned n = lnx_routes_best(r->routes, to, usable, &u, route, RTD_GATEWAYS), at;

	/* One that will end soon forwards still; one that does not answer may only be slow, if
	 * there is no other. */
	u.stopping = true;
	if (!n)
		n = lnx_routes_best(r->routes, to, usable, &u, route, RTD_GATEWAYS);
	u.dead = true;
	if (!n)
		n = lnx_routes_best(r->routes, to, usable, &u, route, RTD_GATEWAYS);
	if (!n)
		return NULL;
	at = (rtd_hash(key, LNX_ROUTE_RAIL_BYTES) + oddness(r)) % n;
	return gateway_get(r, &in_order(route, n, at)->spec.gateway, now);
}

/* ---- all of it ---- */

static bool connects(struct rtd_relay *r, struct rtd_source *s, uint64_t now)
{
	if (!s || rtd_limit_take(&s->connects, r->s.connects, r->s.connects, now))
		return true;
	r->counts.connect_limited++;
	return false;
}

static struct rtd_dest *none(enum rtd_reason *reason, const char **why,
			     enum rtd_reason which, const char *text)
{
	*reason = which;
	*why = text;
	return NULL;
}

/* Has it ended, and not been looked at yet? */
static bool pause_over(const struct rtd_pause *p, uint64_t now)
{
	return p->gateways && now >= p->until_ns;
}

/* The gateways that are passed over: bits.  What one has said since counts more. */
static uint64_t paused(const struct rtd_relay *r, const struct rtd_pause *p, uint64_t now)
{
	uint64_t bits = 0;
	unsigned i;

	for (i = 0; now < p->until_ns && i < r->ngateway; i++)
		if (r->gateway[i].better_ns <= p->until_ns - p->length_ns)
			bits |= p->gateways & 1ull << i;
	return bits;
}

/* For so long, from first_ns to most_ns. */
static void pause_gateway(const struct rtd_relay *r, struct rtd_pause *p,
			  const struct rtd_gateway *gw, uint64_t first_ns, uint64_t most_ns,
			  uint64_t now)
{
	/* Soon after the pause before: longer. */
	if (lnx_ns_since(now, p->until_ns) < first_ns && now >= p->until_ns)
		p->length_ns = LNX_MIN(2 * p->length_ns, most_ns);
	else if (now >= p->until_ns)
		p->length_ns = first_ns;
	p->gateways = paused(r, p, now) | 1ull << (gw - r->gateway);
	p->until_ns = now + p->length_ns;
}

/* Lead d, which is on none of our nets, over another gateway. */
static bool lead(struct rtd_relay *r, struct rtd_dest *d, const struct lnx_nid *nid,
		 uint64_t now)
{
	struct rtd_gateway *gw;

	d->no_way.gateways = paused(r, &d->no_way, now);
	d->late.gateways = paused(r, &d->late, now);
	/* A gateway that is met first needs room in the table. */
	d->holds++;
	gw = next_gateway(r, nid, d->key, d->no_way.gateways | d->late.gateways, now);
	/* One that did not answer may be slow only. */
	if (!gw && d->late.gateways)
		gw = next_gateway(r, nid, d->key, d->no_way.gateways, now);
	d->holds--;
	if (d->next)
		d->next->pins--;
	d->next = gw ? gw->dest : NULL;
	d->routes = ways(r);
	if (!gw)
		return false;
	gw->dest->pins++;
	d->rail = gw->dest->rail;
	return true;
}

bool rtd_dest_detour(struct rtd_relay *r, struct rtd_dest *d, uint64_t now)
{
	const struct rtd_gateway *gw = d->next ? rtd_gateway_of(r, d->next) : NULL;
	struct lnx_nid nid;

	if (!gw || lnx_nid_of(r->nets, &d->addr, &nid))
		return false;
	pause_gateway(r, &d->no_way, gw, RTD_NO_WAY_NS, RTD_NO_WAY_MAX_NS, now);
	if (lead(r, d, &nid, now))
		return true;
	/* After the pause that follows all are tried again. */
	d->no_way = (struct rtd_pause){ 0 };
	return false;
}

bool rtd_dest_late(struct rtd_relay *r, struct rtd_dest *d, uint64_t now)
{
	const struct rtd_gateway *gw = d->next ? rtd_gateway_of(r, d->next) : NULL;
	struct lnx_nid nid;

	if (!gw || !rtd_gateway_replaced(r, d->next, now) || lnx_nid_of(r->nets, &d->addr, &nid))
		return false;
	pause_gateway(r, &d->late, gw, RTD_LATE_NS, RTD_LATE_MAX_NS, now);
	if (!next_gateway(r, &nid, d->key, paused(r, &d->no_way, now) | d->late.gateways, now))
		d->late.gateways = 1ull << (gw - r->gateway);
	return lead(r, d, &nid, now) && d->next != gw->dest;
}

/* Do the gateways that were asked in vain about d reach it now?  Frames go over them again when
 * they say so. */
static void ask_late(struct rtd_relay *r, struct rtd_dest *d, uint64_t now)
{
	unsigned i;

	d->late.length_ns = LNX_MIN(2 * d->late.length_ns, RTD_LATE_MAX_NS);
	d->late.until_ns = now + d->late.length_ns;
	for (i = 0; i < r->ngateway; i++)
		if (d->late.gateways >> i & 1)
			rtd_ask_gateway(r, &r->gateway[i], d, now);
}

void rtd_dest_in_time(struct rtd_relay *r, struct rtd_dest *d, const struct rtd_gateway *gw,
		      uint64_t now)
{
	struct lnx_nid nid;

	d->late.gateways &= ~(1ull << (gw - r->gateway));
	if (d->next && !lnx_nid_of(r->nets, &d->addr, &nid))
		lead(r, d, &nid, now);
}

/* Another rail of ours on that net is up, and that of d is not. */
static void move(struct rtd_relay *r, struct rtd_dest *d, int rail)
{
	if (rail == d->rail || r->out[d->rail].rail.up || !r->out[rail].rail.up ||
	    d->queued || d->flying)
		return;
	if (d->opened)
		r->ops.close(r->ops.arg, d->rail, d->handle);
	d->opened = false;
	d->proven = false;
	d->rail = (uint8_t)rail;
}

/* A known destination: is the way there still what it was? */
static struct rtd_dest *known(struct rtd_relay *r, struct rtd_dest *d,
			      enum rtd_reason *reason, const char **why, uint64_t now)
{
	struct rtd_gateway *gw = d->next ? rtd_gateway_of(r, d->next) : NULL;
	struct lnx_nid nid;
	int rail = d->next ? -1 : rtd_rail_to(r, &d->addr);

	if (rail >= 0) {
		move(r, d, rail);
		return d;
	}
	if (pause_over(&d->late, now))
		ask_late(r, d, now);
	if (gw && d->routes == ways(r) && now >= d->next->failed_ns &&
	    gw->g.state != LNX_GATEWAY_DEAD && gw->g.routing && !pause_over(&d->no_way, now))
		return d;
	if (lnx_nid_of(r->nets, &d->addr, &nid) || !lead(r, d, &nid, now))
		return none(reason, why, RTD_NO_ROUTE, NULL);
	return d;
}

struct rtd_dest *rtd_target(struct rtd_relay *r, const struct lnx_addr_rail *to,
			    struct rtd_source *source, enum rtd_reason *reason,
			    const char **why, uint64_t now)
{
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct rtd_dest *d;
	struct lnx_nid nid;
	const char *text;
	int rail;

	*why = NULL;
	if (lnx_route_rail_put(key, to))
		return none(reason, why, RTD_BAD_ENVELOPE, "its destination is malformed");
	d = rtd_dest_find(r, key, now);
	if (d)
		return known(r, d, reason, why, now);
	text = forbidden(to, r->s.loopback);
	if (text)
		return none(reason, why, RTD_NOT_ALLOWED, text);
	if (r->s.loopback ? own_rail(r, to) : own_host(r, to))
		return none(reason, why, RTD_OWN_ID, NULL);
	if (lnx_nid_of(r->nets, to, &nid))
		return none(reason, why, RTD_NO_ROUTE, NULL);
	rail = rtd_rail_to(r, to);
	if (rail >= 0 && !in_net(&r->out[rail].rail, &nid))
		return none(reason, why, RTD_NOT_ALLOWED,
			    "its address is not in the net that it names");
	if (rail < 0 && !next_gateway(r, &nid, key, 0, now))
		return none(reason, why, RTD_NO_ROUTE, NULL);
	if (!connects(r, source, now))
		return none(reason, why, RTD_QUOTA, "too many new destinations at once");
	d = rtd_dest_make(r, key, to, now);
	if (!d)
		return none(reason, why, RTD_DEST_CAP, "there are too many destinations");
	d->allowed = allowed_from(r, &nid);
	if (rail >= 0) {
		d->rail = (uint8_t)rail;
		d->routes = ways(r);
	} else if (!lead(r, d, &nid, now)) {
		return none(reason, why, RTD_NO_ROUTE, NULL);
	}
	return d;
}
