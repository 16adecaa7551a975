/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Routes of the user.  See routes.h. */
#include "core/routes.h"

#include <errno.h>
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
	const struct lnx_config *config = lnx_config_file();

	return conf->routes || (config && config->n_route);
}

/* One warning, which says where the routes come from. */
static int refused(const struct lnx_conf *conf, const struct lnx_refusal *r)
{
	char shown[300];

	if (conf->routes)
		lnx_warn_once(true, "FI_LNX_ROUTES=\"%s\", character %zu: %s",
			      lnx_printable(conf->routes, sizeof(shown), shown,
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
	const struct lnx_config *config = lnx_config_file();
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

/* Rails of the gateway on our nets, and in the net of the route, as its info lists them. */
static void view_rails(const struct lnx_ep *ep, const struct lnx_gw *gw,
		       const struct lnx_route *route, struct lnx_route_view *v)
{
	struct lnx_nid nid;
	unsigned i, k;

	for (i = 0; i < gw->rails.n; i++) {
		const struct lnx_addr_rail *r = &gw->rails.rail[i];

		for (k = 0; k < gw->nleg; k++)
			if (gw->leg[k]->rail.prov == r->prov &&
			    gw->leg[k]->rail.group == r->group)
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
		v[n] = (struct lnx_route_view){ .gateway = &gw->state, .hop = other->spec.hop };
		view_rails(ep, gw, other, &v[n++]);
	}
	if (own == VIEWS)
		return LNX_ROUTE_UNCHECKED;
	lnx_route_judge(v, n, &all->plan, now, why);
	return (enum lnx_route_why)why[own];
}

struct asking {
	struct lnx_ep *ep;
	uint64_t now;
};

static bool is_up(void *arg, const struct lnx_route *route)
{
	const struct asking *a = arg;

	return lnx_route_is_up(lnx_routes_why(a->ep, route, a->now));
}

/* Legs to one rail of a peer. */
static unsigned to_rail(struct lnx_gateways *all, const struct lnx_rails *r, unsigned at,
			struct lnx_path_choice *out, unsigned max)
{
	const struct lnx_route *best[LNX_PATHS_MAX];
	struct asking asking = { .ep = all->ep, .now = lnx_clock_ns() };
	unsigned i, k, nbest, n = 0;
	struct lnx_nid nid;

	if (lnx_policy_nid(all->ep, &r->rail[at], &nid))
		return 0;
	nbest = lnx_routes_best(&all->table, &nid, is_up, &asking, best, LNX_PATHS_MAX);
	if (!nbest)
		nbest = lnx_routes_best(&all->table, &nid, NULL, NULL, best, LNX_PATHS_MAX);
	for (i = 0; i < nbest; i++) {
		const struct lnx_gw *gw = lnx_routes_gateway(all->ep, best[i]);

		for (k = 0; gw && k < gw->nleg && n < max; k++)
			out[n++] = (struct lnx_path_choice){
				.rail = &gw->leg[k]->rail, .to = &r->rail[at],
				.remote = r->place[at],
			};
	}
	return n;
}

unsigned lnx_routes_choose(struct lnx_ep *ep, const struct lnx_rails *r,
			   struct lnx_path_choice *out, unsigned max)
{
	struct lnx_gateways *all = ep->policy.gateways;
	unsigned i, n = 0;

	for (i = 0; all && i < r->n; i++)
		n += to_rail(all, r, i, out + n, max - n);
	return n;
}

bool lnx_routes_lead(const struct lnx_rail *leg, const struct lnx_addr_rail *to)
{
	const struct lnx_gw *gw = lnx_container_of(leg, struct lnx_leg, rail)->gw;
	const struct lnx_routes *table = &gw->all->table;
	struct lnx_nid nid;
	unsigned i;

	if (lnx_policy_nid(leg->ep, to, &nid))
		return false;
	for (i = 0; i < table->n; i++)
		if (lnx_routes_gateway(leg->ep, &table->route[i]) == gw &&
		    lnx_nid_part_has(&table->route[i].spec.net, &nid))
			return true;
	return false;
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
