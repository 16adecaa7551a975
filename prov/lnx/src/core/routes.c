/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Routes of the user.  See routes.h. */
#include "core/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config.h"
#include "core/open.h"
#include "core/paths.h"
#include "core/policy.h"
#include "core/warn_once.h"
#include "obj/gateway.h"
#include "os/route_key.h"
#include "prov.h"

bool lnx_routes_wanted(const struct lnx_conf *conf)
{
	const struct lnx_config *config = lnx_global_config_file();

	return conf->routes || (config && config->n_route);
}

/* One warning, which says where the routes come from. */
static int refused(const struct lnx_conf *conf, const struct lnx_refusal *r)
{
	char shown[300];

	if (conf->routes)
		lnx_warn_once(true, "FI_LNX_ROUTES=\"%s\", character %zu: %s",
			      lnx_warn_printable(conf->routes, sizeof(shown), shown,
						 sizeof(shown)), r->at + 1, r->why);
	else
		lnx_warn_once(true, "FI_LNX_NETS and the routes of the configuration do "
			      "not fit together: %s", r->why);
	return -FI_EINVAL;
}

/* Hand each route of the user to `each`. */
static int read_all(const struct lnx_conf *conf, const struct lnx_nets *nets,
		    lnx_route_each *each, void *arg)
{
	const struct lnx_config *config = lnx_global_config_file();
	struct lnx_refusal r = { .text = conf->routes };
	unsigned i;
	int ret = 0;

	if (conf->routes)
		ret = lnx_routes_read(nets, conf->routes, each, arg, &r);
	else
		for (i = 0; config && i < config->n_route && !ret; i++)
			ret = lnx_config_route_each(&config->route[i], nets, each, arg, &r);
	if (!ret || ret == -ENOMEM)
		return ret ? -FI_ENOMEM : 0;
	return refused(conf, &r);
}

/* ---- without rails ---- */

static int add(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
	       struct lnx_refusal *r)
{
	(void)w;
	return lnx_routes_add(arg, spec, NULL, r);
}

int lnx_routes_user_key(const struct lnx_conf *conf, uint64_t *key)
{
	char why[LNX_REFUSAL_BYTES];

	*key = 0;
	if (!conf->route_key_file ||
	    !lnx_route_key_read(conf->route_key_file, key, why, sizeof(why)))
		return 0;
	lnx_warn_once(true, "FI_LNX_ROUTE_KEY_FILE: %s", why);
	return -FI_EINVAL;
}

int lnx_routes_user_check(const struct lnx_conf *conf, const struct lnx_nets *nets)
{
	struct lnx_routes t;
	uint64_t key;
	int ret;

	if (!lnx_routes_wanted(conf))
		return 0;
	lnx_routes_init(&t, 0);
	ret = read_all(conf, nets, add, &t);
	lnx_routes_fini(&t);
	if (!ret)
		ret = lnx_routes_user_key(conf, &key);
	if (!ret && lnx_conf_native(conf))
		lnx_warn_once(true, "with FI_LNX_USE_SRQ=0 or FI_LNX_PROTOCOL=direct routes "
			      "(FI_LNX_ROUTES, route) have no effect: gateways forward "
			      "frames only");
	return ret;
}

/* ---- paths ---- */

struct lnx_gw *lnx_routes_gateway(const struct lnx_ep *ep, const struct lnx_route *route)
{
	const struct lnx_gateways *all = ep->policy.gateways;
	unsigned i;

	for (i = 0; i < all->n; i++)
		if (!memcmp(&all->gw[i]->nid, &route->spec.gateway, sizeof(all->gw[i]->nid)))
			return all->gw[i];
	return NULL;
}

/* Does a leg to any NID of the gateway lead to that rail's net? */
static bool leads_to_net_of(const struct lnx_gateways *all, const struct lnx_gw_process *process,
			    const struct lnx_addr_rail *r)
{
	unsigned i, k;

	for (i = 0; i < all->n; i++)
		for (k = 0; all->gw[i]->process == process && k < all->gw[i]->nleg; k++)
			if (all->gw[i]->leg[k]->rail.prov == r->prov &&
			    all->gw[i]->leg[k]->rail.group == r->group)
				return true;
	return false;
}

/* Rails of the gateway on our nets, and in the net of the route, as its info lists them. */
static void view_rails(const struct lnx_ep *ep, const struct lnx_gw *gw,
		       const struct lnx_route *route, struct lnx_route_view *v)
{
	const struct lnx_rails *rails = &gw->process->rails;
	struct lnx_nid nid;
	unsigned i;

	for (i = 0; i < rails->n; i++) {
		const struct lnx_addr_rail *r = &rails->rail[i];

		if (leads_to_net_of(gw->all, gw->process, r))
			v->local |= 1u << i;
		if (!lnx_policy_nid(ep, r, &nid) && lnx_nid_part_has(&route->spec.net, &nid))
			v->remote |= 1u << i;
	}
}

#define VIEWS	64u		/* routes to one net that are compared */

enum lnx_route_why lnx_routes_why(const struct lnx_ep *ep, const struct lnx_route *route,
				  uint64_t now)
{
	const struct lnx_gateways *all = ep->policy.gateways;
	struct lnx_route_view v[VIEWS];
	uint8_t why[VIEWS];
	unsigned i, n = 0, own = VIEWS;

	for (i = 0; i < all->table.n && n < VIEWS; i++) {
		const struct lnx_route *other = &all->table.route[i];
		const struct lnx_gw *gw = lnx_routes_gateway(ep, other);

		if (!gw || memcmp(&other->spec.net, &route->spec.net, sizeof(route->spec.net)))
			continue;
		if (other == route)
			own = n;
		v[n] = (struct lnx_route_view){ .gateway = &gw->process->state, .hop = other->spec.hop,
						.noted_ns = other->noted_ns };
		view_rails(ep, gw, other, &v[n++]);
	}
	if (own == VIEWS)
		return LNX_ROUTE_UNCHECKED;
	lnx_route_judge(v, n, &all->plan, now, why);
	return (enum lnx_route_why)why[own];
}

/* ---- choices ---- */

/* What is known of the way over a leg and that route to a rail of a peer, which is the one with
 * that place in its address; table: what rules say of the peer, or NULL. */
static struct lnx_route_choice choice_of(const struct lnx_leg *leg, const struct lnx_route *route,
					 const struct lnx_rule_peer *table, unsigned remote,
					 uint64_t now)
{
	const struct lnx_ep *ep = leg->rail.ep;
	enum lnx_route_why why = lnx_routes_why(ep, route, now);

	return (struct lnx_route_choice){
		.preferred = ep->policy.rules && table && remote < table->n &&
			     lnx_rules_gateway(ep->policy.rules, &table->remote[remote],
					       &leg->gw->nid),
		.priority = route->spec.priority, .hop = route->spec.hop,
		.state = !lnx_route_is_up(why) ? 2 : leg->gw->process->state.draining ? 1 : 0,
		.health = leg->rail.health.value,
		.used = leg->rail.traffic.sends,
	};
}

/* Of two routes over one gateway. */
static bool better(const struct lnx_route_spec *a, const struct lnx_route_spec *b)
{
	return a->priority != b->priority ? a->priority < b->priority :
	       lnx_route_hops(a) < lnx_route_hops(b);
}

/* The route that legs to that NID take to that rail; NULL: there is none over that NID any
 * more.  It is the best one over the gateway, whichever of its NIDs that names. */
static struct lnx_route *route_over(const struct lnx_gw *gw, const struct lnx_nid *to)
{
	struct lnx_routes *t = &gw->all->table;
	struct lnx_route *best = NULL;
	bool own = false;
	unsigned i;

	for (i = 0; i < t->n; i++) {
		struct lnx_route *r = &t->route[i];
		const struct lnx_gw *over;

		if (!lnx_nid_part_has(&r->spec.net, to))
			continue;
		over = lnx_routes_gateway(gw->all->ep, r);
		own |= over == gw;
		if (over && over->process == gw->process &&
		    (!best || better(&r->spec, &best->spec)))
			best = r;
	}
	return own ? best : NULL;
}

struct lnx_route *lnx_routes_of_path(const struct lnx_path *path)
{
	const struct lnx_leg *leg = lnx_container_of(path->rail, struct lnx_leg, rail);
	struct lnx_nid nid;

	if (path->core_addr >= leg->nend ||
	    lnx_policy_nid(leg->rail.ep, &leg->end[path->core_addr].to, &nid))
		return NULL;
	return route_over(leg->gw, &nid);
}

/* ---- routes from frames ---- */

bool lnx_routes_lead_back(const struct lnx_gw *gw, const struct lnx_addr_rail *from)
{
	struct lnx_nid nid;

	return lnx_policy_nid(gw->all->ep, from, &nid) || route_over(gw, &nid);
}

/* Behind all that the user has set. */
#define LEARNED_PRIORITY	(UINT32_MAX - 1)

LNX_COLD bool lnx_routes_missing(const struct lnx_gateways *all, const char *words,
				 char text[LNX_ROUTE_TEXT_MAX])
{
	char over[LNX_NID_TEXT_MAX], number[8] = "";
	struct lnx_nid nid;

	if (!all->asym || lnx_policy_nid(all->ep, &all->asym_from, &nid) ||
	    route_over(all->asym, &nid))
		return false;
	lnx_nid_print(&all->asym->nid, over, sizeof(over));
	if (nid.number)
		snprintf(number, sizeof(number), "%u", nid.number);
	snprintf(text, LNX_ROUTE_TEXT_MAX, "%s%s%s via %s", nid.net, number, words, over);
	return true;
}

LNX_COLD bool lnx_routes_learn(struct lnx_gateways *all)
{
	char words[48], text[LNX_ROUTE_TEXT_MAX];
	struct lnx_routes *t = &all->table;
	struct lnx_ep *ep = all->ep;
	struct lnx_routes_own own;
	struct lnx_refusal r;
	unsigned i;

	snprintf(words, sizeof(words), " hop=%u priority=%u", all->asym_hops, LEARNED_PRIORITY);
	if (!lnx_routes_missing(all, words, text))
		return false;
	lnx_routes_own(ep, &own);
	if (lnx_routes_parse(t, ep->policy.nets, text, &own.host, &r)) {
		LNX_INFO(FI_LOG_EP_CTRL, "the route \"%s\" is not learned: %s\n", text, r.why);
		return false;
	}
	for (i = 0; i < t->n; i++)
		t->route[i].learned |= t->route[i].id == t->last_id;
	LNX_INFO(FI_LOG_EP_CTRL, "the route \"%s\" is learned\n", text);
	return true;
}

bool lnx_routes_look(const struct lnx_path *path, const struct lnx_rule_peer *table,
		     uint64_t now, struct lnx_route_choice *out)
{
	const struct lnx_route *route = lnx_routes_of_path(path);

	if (route)
		*out = choice_of(lnx_container_of(path->rail, struct lnx_leg, rail), route,
				 table, path->remote_rail, now);
	else
		*out = (struct lnx_route_choice){ .priority = UINT32_MAX, .state = 2 };
	return route;
}

#define CHOICES	64u		/* ways to one rail of a peer that are compared */

struct choices {
	unsigned n;
	struct lnx_route_choice c[CHOICES];
	struct lnx_leg *leg[CHOICES];
};

/* All legs of gateways to that rail of peer, which has that place in its address, over routes
 * that are up, or over the others.  Of equal ones those that it has a path over come first. */
static void find_choices(const struct lnx_peer *peer, const struct lnx_nid *to, unsigned place,
			 bool up, struct choices *out)
{
	const struct lnx_gateways *all = peer->ep->policy.gateways;
	uint64_t now = lnx_clock_ns();
	unsigned i, k;

	for (i = 0; i < all->n; i++) {
		const struct lnx_route *route = route_over(all->gw[i], to);

		for (k = 0; route && k < all->gw[i]->nleg && out->n < CHOICES; k++) {
			struct lnx_leg *leg = all->gw[i]->leg[k];
			struct lnx_route_choice c = choice_of(leg, route, lnx_policy_table(peer),
							      place, now);

			if ((c.state < 2) != up)
				continue;
			c.used = lnx_peer_has_path(peer, &leg->rail, place) ? 0 : c.used + 1;
			out->leg[out->n] = leg;
			out->c[out->n++] = c;
		}
	}
}

/* Take the best one out. */
static struct lnx_leg *take(struct choices *from)
{
	unsigned best = (unsigned)lnx_route_pick(from->c, from->n, NULL);
	struct lnx_leg *leg = from->leg[best];

	from->n--;
	memmove(&from->c[best], &from->c[best + 1], (from->n - best) * sizeof(from->c[0]));
	memmove(&from->leg[best], &from->leg[best + 1],
		(from->n - best) * sizeof(from->leg[0]));
	return leg;
}

/* Legs to one rail of peer, at most max. */
static unsigned to_rail(const struct lnx_peer *peer, const struct lnx_rails *r, unsigned at,
			struct lnx_path_choice *out, unsigned max)
{
	struct choices *from = calloc(1, sizeof(*from));
	struct lnx_nid nid;
	unsigned n = 0;
	int up;

	if (!from || lnx_policy_nid(peer->ep, &r->rail[at], &nid)) {
		free(from);
		return 0;
	}
	for (up = 1; up >= 0; up--) {
		from->n = 0;
		find_choices(peer, &nid, r->place[at], up, from);
		while (from->n && n < max)
			out[n++] = (struct lnx_path_choice){
				.rail = &take(from)->rail, .to = &r->rail[at],
				.remote = r->place[at],
			};
	}
	free(from);
	return n;
}

unsigned lnx_routes_choose(const struct lnx_peer *peer, const struct lnx_rails *r,
			   struct lnx_path_choice *out, unsigned max)
{
	unsigned i, n = 0, share = LNX_MAX(max / LNX_MAX(r->n, 1u), 1u);

	for (i = 0; peer->ep->policy.gateways && i < r->n; i++)
		n += to_rail(peer, r, i, out + n, LNX_MIN(share, max - n));
	return n;
}

/* ---- for the rails of an endpoint ---- */

void lnx_routes_own(const struct lnx_ep *ep, struct lnx_routes_own *own)
{
	struct lnx_addr_rail r;
	unsigned i;

	own->host = (struct lnx_route_host){ .rail = own->nid };
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (lnx_rail_describe(ep->rail[i], &r) &&
		    !lnx_policy_nid(ep, &r, &own->nid[own->host.n]))
			own->host.n++;
}

struct reading {
	struct lnx_routes *to;
	struct lnx_routes_own own;
};

static int add_fitting(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		       struct lnx_refusal *r)
{
	struct reading *reading = arg;
	char text[LNX_ROUTE_TEXT_MAX];

	(void)w;
	/* By itself it is right: lnx_routes_user_check. */
	if (lnx_route_check(spec, &reading->own.host, r)) {
		lnx_route_print(spec, text, sizeof(text));
		LNX_INFO(FI_LOG_EP_CTRL, "the route \"%s\" is passed over: %s\n", text, r->why);
		return 0;
	}
	return lnx_routes_add(reading->to, spec, &reading->own.host, r);
}

int lnx_routes_user_read(const struct lnx_ep *ep, struct lnx_routes *t)
{
	struct reading reading = { .to = t };

	lnx_routes_own(ep, &reading.own);
	return read_all(ep->conf, ep->policy.nets, add_fitting, &reading);
}
