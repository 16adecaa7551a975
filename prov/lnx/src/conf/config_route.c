/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Routes of a configuration, to and from a table.  See config.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config.h"

int lnx_config_route_each(const struct lnx_config_route *route,
			  const struct lnx_nets *nets, lnx_route_each *each, void *arg,
			  struct lnx_refusal *r)
{
	struct lnx_span net = { route->net, strlen(route->net) };
	struct lnx_span gateway = { route->gateway, strlen(route->gateway) };

	/* Both texts are canonical: no error is in them that has a position. */
	r->text = route->gateway;
	r->at = 0;
	return lnx_routes_expand(nets, net, gateway,
				 route->hop == LNX_CONFIG_UNSET ? 0 :
				 (uint8_t)route->hop,
				 route->priority, each, arg, r);
}

int lnx_config_routes(const struct lnx_config *c, const struct lnx_nets *nets,
		      struct lnx_routes *t, const struct lnx_route_host *host,
		      struct lnx_out *skipped, struct lnx_refusal *r)
{
	char why[LNX_REFUSAL_BYTES];
	struct lnx_routes new;
	struct lnx_routes_adding a = { .to = &new, .host = host,
				       .skipped = skipped };
	unsigned i;
	int ret = 0;

	if (!c->has[LNX_CONFIG_ROUTE])
		return 0;
	if (c->has[LNX_CONFIG_NETS])
		nets = &c->nets;
	lnx_routes_init(&new, t->random);
	new.last_id = t->last_id;
	new.changes = t->changes + 1;
	for (i = 0; !ret && i < c->n_route; i++) {
		ret = lnx_config_route_each(&c->route[i], nets, lnx_routes_add_one,
					    &a, r);
		if (!ret)
			continue;
		memcpy(why, r->why, sizeof(why));
		lnx_refuse(r, NULL, "route[%u]: %s", i, why);
		r->text = NULL;
		r->at = 0;
	}
	if (ret) {
		lnx_routes_fini(&new);
		return ret;
	}
	lnx_routes_fini(t);
	*t = new;
	return 0;
}

static int set_one(struct lnx_config *c, const struct lnx_route_spec *spec)
{
	void *list = lnx_config_more(c, c->route, &c->n_route, sizeof(*c->route));
	char net[LNX_PATTERN_TEXT_MAX], nid[LNX_NID_TEXT_MAX];
	struct lnx_config_route *out;

	if (!list)
		return -ENOMEM;
	c->route = list;
	out = &c->route[c->n_route - 1];
	memset(out, 0, sizeof(*out));
	lnx_nid_pattern_print(&spec->net, 1, net, sizeof(net));
	lnx_nid_print(&spec->gateway, nid, sizeof(nid));
	out->net = lnx_config_copy(c, net, strlen(net));
	out->gateway = lnx_config_copy(c, nid, strlen(nid));
	out->hop = spec->hop ? spec->hop : LNX_CONFIG_UNSET;
	out->priority = spec->priority;
	return out->net && out->gateway ? 0 : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	const struct lnx_config_route *x = a, *y = b;
	int ret = strcmp(x->net, y->net);

	return ret ? ret : strcmp(x->gateway, y->gateway);
}

/* Their order means nothing, and changes when some are made again: so it is that of names. */
int lnx_config_set_routes(struct lnx_config *c, const struct lnx_routes *t)
{
	unsigned i;
	int ret = 0;

	c->n_route = 0;
	c->route = NULL;
	c->has[LNX_CONFIG_ROUTE] = true;
	for (i = 0; !ret && i < t->n; i++)
		if (!t->route[i].learned)
			ret = set_one(c, &t->route[i].spec);
	if (!ret && c->n_route)
		qsort(c->route, c->n_route, sizeof(*c->route), by_name);
	return ret;
}
