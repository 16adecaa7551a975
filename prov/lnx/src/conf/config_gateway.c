/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keys of a configuration that only a gateway (lnxrtd) uses.  See config.h. */
#include <stddef.h>
#include <string.h>

#include "conf/config_reader.h"
#include "lnx_wire_route.h"

/* ---- limits ---- */

const struct lnx_config_limit lnx_config_limits[LNX_CONFIG_LIMITS] = {
	[LNX_CONFIG_GRANT_LARGE] = { "grant_large", 1, 1u << 20 },
	[LNX_CONFIG_GRANT_SMALL] = { "grant_small", 1, 1u << 20 },
	[LNX_CONFIG_FRAME_MAX] = { "frame_max", LNX_ROUTE_HEAD + LNX_FRAME_MAX,
				   LNX_FRAME_LARGE },
	[LNX_CONFIG_DESTINATIONS] = { "destinations", 1, 65536 },
	[LNX_CONFIG_SOURCES] = { "sources", 1, 16384 },
	[LNX_CONFIG_CONNECTS] = { "connects", 1, 1000000 },
	[LNX_CONFIG_NOTES] = { "notes", 1, 1000000 },
	[LNX_CONFIG_IDLE] = { "idle", 1, 86400 },
	[LNX_CONFIG_CONNECT_TIMEOUT] = { "connect_timeout", 1, 3600 },
	[LNX_CONFIG_DRAIN] = { "drain", 0, 86400 },
};

static int limit_pair(struct config_reader *rd, config_node *key, const char *name,
		      config_node *value, void *obj)
{
	struct lnx_config *c = obj;
	unsigned i;

	for (i = 0; i < LNX_CONFIG_LIMITS; i++)
		if (!strcmp(lnx_config_limits[i].name, name))
			break;
	if (i == LNX_CONFIG_LIMITS)
		return lnx_config_fail(rd, key, "found \"%.40s\", and there is no such "
				       "limit; allowed are grant_large, grant_small, "
				       "frame_max, destinations, sources, connects, notes, idle, "
				       "connect_timeout, drain", name);
	if (c->limit[i] != LNX_CONFIG_UNSET)
		return lnx_config_fail(rd, key, "\"%.40s\" is there already; once is "
				       "enough", name);
	return lnx_config_uint(rd, value, lnx_config_limits[i].min,
			       lnx_config_limits[i].max, &c->limit[i]);
}

int lnx_config_read_limits_key(struct config_reader *rd, config_node *value, void *obj)
{
	rd->config->has[LNX_CONFIG_LIMITS_KEY] = true;
	return lnx_config_pairs(rd, value, "limits, like connects: 100", limit_pair, obj);
}

/* ---- allow ---- */

static int read_from(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_allow *a = obj;

	return lnx_config_net_name(rd, value, &a->from);
}

static int read_to(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_allow *a = obj;

	return lnx_config_net_name(rd, value, &a->to);
}

static int read_deny(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_allow *a = obj;

	return lnx_config_bool(rd, value, &a->deny);
}

static int allow_item(struct config_reader *rd, config_node *node, void *obj)
{
	static const struct config_key keys[] = {
		{ "from", read_from }, { "to", read_to }, { "deny", read_deny },
	};
	struct lnx_config *c = obj;
	struct lnx_config_allow *a;
	int ret;

	if (c->n_allow == LNX_CONFIG_ALLOW_MAX)
		return lnx_config_fail(rd, node, "this is one too many, there can be %d",
				       LNX_CONFIG_ALLOW_MAX);
	ret = lnx_config_read_more(rd, node, &c->allow, &c->n_allow, sizeof(*a));
	if (ret)
		return ret;
	a = &c->allow[c->n_allow - 1];
	a->at = (struct lnx_config_at){ node->line, node->column };
	return lnx_config_map(rd, node, CONFIG_KEYS(keys), a);
}

int lnx_config_read_allow_key(struct config_reader *rd, config_node *value, void *obj)
{
	rd->config->has[LNX_CONFIG_ALLOW] = true;
	return lnx_config_seq(rd, value, allow_item, obj);
}

/* ---- routing ---- */

int lnx_config_read_port(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config *c = obj;

	return lnx_config_uint(rd, value, 1024, UINT16_MAX, &c->port);
}

/* A file by its whole name, since a daemon has no directory of its own. */
static int read_file(struct config_reader *rd, config_node *value, const char **out)
{
	int ret = lnx_config_text(rd, value, out);

	if (!ret && (*out)[0] != '/')
		return lnx_config_fail(rd, value, "found \"%.60s\" where the name of a file "
				       "must be that begins with '/'", *out);
	return ret;
}

int lnx_config_read_key_file(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config *c = obj;

	return read_file(rd, value, &c->key_file);
}

int lnx_config_read_state_file(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config *c = obj;

	return read_file(rd, value, &c->state_file);
}

int lnx_config_read_control_file(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config *c = obj;

	return read_file(rd, value, &c->control_file);
}
