/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keys of a configuration: routes and peers.  See config.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/config_reader.h"
#include "conf/routes.h"

/* ---- route ---- */

static int read_route_net(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_route *route = obj;

	return lnx_config_net_name(rd, value, &route->net);
}

static int read_gateway(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_route *route = obj;

	return lnx_config_nids(rd, value, false, &route->gateway);
}

static int read_hop(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_route *route = obj;

	/* lnetctl writes -1 where none was given. */
	if (value->event == LNX_YAML_SCALAR && !strcmp(value->text, "-1")) {
		route->hop = LNX_CONFIG_UNSET;
		return 0;
	}
	return lnx_config_uint(rd, value, 1, 255, &route->hop);
}

static int read_route_priority(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_route *route = obj;

	return lnx_config_uint(rd, value, 0, LNX_RULE_PRIORITY_MAX, &route->priority);
}

/* The gateways of all routes that were read: the same one twice is an error. */
struct routes_in {
	struct lnx_config *config;
	struct lnx_routes table;
};

static int add_route(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		     struct lnx_refusal *r)
{
	(void)w;
	return lnx_routes_add(arg, spec, NULL, r);
}

static int check_route(struct config_reader *rd, config_node *node, struct routes_in *in)
{
	const struct lnx_config *c = in->config;
	const struct lnx_config_route *route = &c->route[c->n_route - 1];
	unsigned i;
	int ret;

	if (!route->net)
		return lnx_config_missing(rd, node, "net");
	if (!route->gateway)
		return lnx_config_missing(rd, node, "gateway");
	for (i = 0; i + 1 < c->n_route; i++)
		if (!strcmp(c->route[i].net, route->net) &&
		    !strcmp(c->route[i].gateway, route->gateway))
			return lnx_config_fail(rd, node, "found the same net and "
					       "gateway as in route[%u]", i);
	ret = lnx_config_route_each(route, &rd->nets, add_route, &in->table, &rd->r);
	if (ret == -ENOMEM)
		return lnx_config_no_memory(rd, node);
	return ret ? lnx_config_fail(rd, node, "%s", rd->r.why) : 0;
}

static int route_item(struct config_reader *rd, config_node *node, void *obj)
{
	static const struct config_key keys[] = {
		{ "net", read_route_net },
		{ "gateway", read_gateway },
		{ "hop", read_hop },
		{ "priority", read_route_priority },
	};
	struct routes_in *in = obj;
	struct lnx_config *c = in->config;
	struct lnx_config_route *route;
	int ret = lnx_config_read_more(rd, node, &c->route, &c->n_route, sizeof(*route));

	if (ret)
		return ret;
	route = &c->route[c->n_route - 1];
	route->at = (struct lnx_config_at){ node->line, node->column };
	route->hop = LNX_CONFIG_UNSET;
	ret = lnx_config_map(rd, node, CONFIG_KEYS(keys), route);
	return ret ? ret : check_route(rd, node, in);
}

int lnx_config_read_route_key(struct config_reader *rd, config_node *value, void *obj)
{
	struct routes_in in = { .config = obj };
	int ret;

	lnx_routes_init(&in.table, 0);
	rd->config->has[LNX_CONFIG_ROUTE] = true;
	ret = lnx_config_seq(rd, value, route_item, &in);
	lnx_routes_fini(&in.table);
	return ret;
}

/* ---- peer ---- */

static int read_nid(struct config_reader *rd, config_node *value, void *obj)
{
	return lnx_config_nids(rd, value, true, obj);
}

static int peer_nid(struct config_reader *rd, config_node *node, void *obj)
{
	static const struct config_key keys[] = { { "nid", read_nid } };
	struct lnx_config_peer *peer = obj;
	const char **nid = &peer->nid[peer->n];
	unsigned i;
	int ret;

	if (peer->n == LNX_CONFIG_NIDS)
		return lnx_config_fail(rd, node, "this is one too many, there can be "
				       "%d", LNX_CONFIG_NIDS);
	ret = lnx_config_map(rd, node, CONFIG_KEYS(keys), nid);
	if (!ret && !*nid)
		ret = lnx_config_missing(rd, node, "nid");
	for (i = 0; !ret && i < peer->n; i++)
		if (!strcmp(peer->nid[i], *nid))
			ret = lnx_config_fail(rd, node, "found the NID %s again", *nid);
	peer->n += !ret;
	return ret;
}

static int read_primary(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_peer *peer = obj;

	return lnx_config_nids(rd, value, true, &peer->primary);
}

static int read_multi_rail(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_peer *peer = obj;

	return lnx_config_bool(rd, value, &peer->multi_rail);
}

static int read_peer_nis(struct config_reader *rd, config_node *value, void *obj)
{
	return lnx_config_seq(rd, value, peer_nid, obj);
}

static bool peer_has(const struct lnx_config_peer *peer, const char *nid)
{
	unsigned i;

	for (i = 0; i < peer->n; i++)
		if (!strcmp(peer->nid[i], nid))
			return true;
	return !strcmp(peer->primary, nid);
}

static int check_peer(struct config_reader *rd, config_node *node, struct lnx_config *c)
{
	struct lnx_config_peer *peer = &c->peer[c->n_peer - 1];
	unsigned i, k;

	if (!peer->primary)
		return lnx_config_missing(rd, node, "primary nid");
	if (!peer->n)
		peer->nid[peer->n++] = peer->primary;
	for (k = 0; k < peer->n && strcmp(peer->nid[k], peer->primary); k++)
		;
	if (k == peer->n)
		return lnx_config_fail(rd, node, "found the primary NID %s, which is not "
				       "in \"peer ni\"", peer->primary);
	if (!peer->multi_rail && peer->n > 1)
		return lnx_config_fail(rd, node, "found %u NIDs of a peer that is not "
				       "Multi-Rail, which has one", peer->n);
	for (i = 0; i + 1 < c->n_peer; i++)
		for (k = 0; k < peer->n; k++)
			if (peer_has(&c->peer[i], peer->nid[k]))
				return lnx_config_fail(rd, node, "found the NID %s, "
						       "which is one of peer[%u]",
						       peer->nid[k], i);
	return 0;
}

static int peer_item(struct config_reader *rd, config_node *node, void *obj)
{
	static const struct config_key keys[] = {
		{ "primary nid", read_primary },
		{ "Multi-Rail", read_multi_rail },
		{ "peer ni", read_peer_nis },
	};
	struct lnx_config *c = obj;
	struct lnx_config_peer *peer;
	int ret = lnx_config_read_more(rd, node, &c->peer, &c->n_peer, sizeof(*peer));

	if (ret)
		return ret;
	peer = &c->peer[c->n_peer - 1];
	peer->at = (struct lnx_config_at){ node->line, node->column };
	peer->multi_rail = true;
	ret = lnx_config_map(rd, node, CONFIG_KEYS(keys), peer);
	return ret ? ret : check_peer(rd, node, c);
}

int lnx_config_read_peer_key(struct config_reader *rd, config_node *value, void *obj)
{
	rd->config->has[LNX_CONFIG_PEER] = true;
	return lnx_config_seq(rd, value, peer_item, obj);
}

