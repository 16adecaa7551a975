/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A configuration as YAML.  See config.h. */
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/out.h"
#include "conf/config.h"

/* May a text stand in YAML as it is, and mean nothing but text? */
static bool plain(const char *s)
{
	static const char *const words[] = {
		"null", "~", "true", "false", "yes", "no", "on", "off", "y", "n",
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(words); i++)
		if (!strcasecmp(s, words[i]))
			return false;
	if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
	      (*s >= '0' && *s <= '9')))
		return false;
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		      (*s >= '0' && *s <= '9') || strchr("_./@;-+", *s)))
			return false;
	return true;
}

static void put_text(struct lnx_out *o, const char *s)
{
	if (plain(s)) {
		lnx_out(o, "%s", s);
		return;
	}
	lnx_out(o, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			lnx_out(o, "\\%c", *s);
		else if (*s == '\n')
			lnx_out(o, "\\n");
		else if ((unsigned char)*s < ' ' || *s == 0x7f)
			lnx_out(o, "\\x%02x", (unsigned char)*s);
		else
			lnx_out(o, "%c", *s);
	}
	lnx_out(o, "\"");
}

static void key_text(struct lnx_out *o, const char *before, const char *key,
		     const char *value)
{
	lnx_out(o, "%s%s: ", before, key);
	put_text(o, value);
	lnx_out(o, "\n");
}

static void key_number(struct lnx_out *o, const char *before, const char *key,
		       uint32_t value)
{
	if (value != LNX_CONFIG_UNSET)
		lnx_out(o, "%s%s: %u\n", before, key, value);
}

static void section(struct lnx_out *o, enum lnx_config_section s, bool list,
		    unsigned n)
{
	lnx_out(o, "%s:%s\n", lnx_config_names[s],
		n ? "" : list ? " []" : " {}");
}

static void put_ni(struct lnx_out *o, const struct lnx_config_ni *ni)
{
	unsigned i;

	lnx_out(o, "        - interfaces:\n");
	for (i = 0; i < ni->n; i++) {
		lnx_out(o, "              %u: ", i);
		put_text(o, ni->interface[i]);
		lnx_out(o, "\n");
	}
	if (ni->peer_timeout != LNX_CONFIG_UNSET ||
	    ni->peer_credits != LNX_CONFIG_UNSET ||
	    ni->peer_buffer_credits != LNX_CONFIG_UNSET ||
	    ni->credits != LNX_CONFIG_UNSET)
		lnx_out(o, "          tunables:\n");
	key_number(o, "              ", "peer_timeout", ni->peer_timeout);
	key_number(o, "              ", "peer_credits", ni->peer_credits);
	key_number(o, "              ", "peer_buffer_credits",
		   ni->peer_buffer_credits);
	key_number(o, "              ", "credits", ni->credits);
	if (ni->cpt)
		key_text(o, "          ", "CPT", ni->cpt);
}

static void put_net(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i, k;

	section(o, LNX_CONFIG_NET, true, c->n_net);
	for (i = 0; i < c->n_net; i++) {
		key_text(o, "    - ", "net type", c->net[i].net);
		lnx_out(o, "      local NI(s):\n");
		for (k = 0; k < c->net[i].n; k++)
			put_ni(o, &c->net[i].ni[k]);
	}
}

static void put_nets(struct lnx_out *o, const struct lnx_config *c)
{
	char value[LNX_NET_TEXT_MAX], name[LNX_NET_NAME_MAX + 8];
	unsigned i;

	section(o, LNX_CONFIG_NETS, false, c->nets.n);
	for (i = 0; i < c->nets.n; i++) {
		const struct lnx_net *net = &c->nets.net[i];

		snprintf(name, sizeof(name), net->number ? "%s%u" : "%s",
			 net->name, net->number);
		lnx_net_value(net, value, sizeof(value));
		lnx_out(o, "    ");
		put_text(o, name);
		key_text(o, "", "", value);
	}
}

static void put_routes(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i;

	section(o, LNX_CONFIG_ROUTE, true, c->n_route);
	for (i = 0; i < c->n_route; i++) {
		key_text(o, "    - ", "net", c->route[i].net);
		key_text(o, "      ", "gateway", c->route[i].gateway);
		key_number(o, "      ", "hop", c->route[i].hop);
		key_number(o, "      ", "priority", c->route[i].priority);
	}
}

static void put_peers(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i, k;

	section(o, LNX_CONFIG_PEER, true, c->n_peer);
	for (i = 0; i < c->n_peer; i++) {
		const struct lnx_config_peer *peer = &c->peer[i];

		key_text(o, "    - ", "primary nid", peer->primary);
		lnx_out(o, "      Multi-Rail: %s\n      peer ni:\n",
			peer->multi_rail ? "True" : "False");
		for (k = 0; k < peer->n; k++)
			key_text(o, "        - ", "nid", peer->nid[k]);
	}
}

static void put_routing(struct lnx_out *o, const struct lnx_config *c)
{
	section(o, LNX_CONFIG_ROUTING, false, c->routing != LNX_CONFIG_UNSET ||
		c->port != LNX_CONFIG_UNSET || c->key_file || c->state_file ||
		c->control_file);
	key_number(o, "    ", "enable", c->routing);
	key_number(o, "    ", "port", c->port);
	if (c->key_file)
		key_text(o, "    ", "key", c->key_file);
	if (c->state_file)
		key_text(o, "    ", "state", c->state_file);
	if (c->control_file)
		key_text(o, "    ", "control", c->control_file);
}

static void put_limits(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i, n = 0;

	for (i = 0; i < LNX_CONFIG_LIMITS; i++)
		n += c->limit[i] != LNX_CONFIG_UNSET;
	section(o, LNX_CONFIG_LIMITS_KEY, false, n);
	for (i = 0; i < LNX_CONFIG_LIMITS; i++)
		key_number(o, "    ", lnx_config_limits[i].name, c->limit[i]);
}

static void put_allow(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i;

	section(o, LNX_CONFIG_ALLOW, true, c->n_allow);
	for (i = 0; i < c->n_allow; i++) {
		lnx_out(o, "    - deny: %s\n", c->allow[i].deny ? "True" : "False");
		if (c->allow[i].from)
			key_text(o, "      ", "from", c->allow[i].from);
		if (c->allow[i].to)
			key_text(o, "      ", "to", c->allow[i].to);
	}
}

static void put_buffers(struct lnx_out *o, const struct lnx_config *c)
{
	section(o, LNX_CONFIG_BUFFERS, false, c->tiny != LNX_CONFIG_UNSET ||
		c->small != LNX_CONFIG_UNSET || c->large != LNX_CONFIG_UNSET);
	key_number(o, "    ", "tiny", c->tiny);
	key_number(o, "    ", "small", c->small);
	key_number(o, "    ", "large", c->large);
}

/* numa_range is a parameter with a key of its own. */
static bool is_numa(size_t row)
{
	return !strcmp(lnx_params[row].name, "numa_range");
}

static void put_params(struct lnx_out *o, const struct lnx_config *c, bool numa)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < lnx_nparams; i++)
		n += c->global[i] && is_numa(i) == numa;
	section(o, numa ? LNX_CONFIG_NUMA : LNX_CONFIG_GLOBAL, false, n);
	for (i = 0; i < lnx_nparams; i++)
		if (c->global[i] && is_numa(i) == numa)
			key_text(o, "    ", numa ? "range" : lnx_params[i].name,
				 c->global[i]);
}

static void put_rules(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i, k;

	section(o, LNX_CONFIG_UDSP, true, c->n_rule);
	for (i = 0; i < c->n_rule; i++) {
		const struct lnx_rule_spec *spec = &c->rule[i].spec;

		lnx_out(o, "    - idx: %u\n", i);
		for (k = 0; k < LNX_RULE_SIDES; k++)
			if (spec->side[k])
				key_text(o, "      ", lnx_rule_side_name(k),
					 spec->side[k]);
		if (spec->has_priority)
			lnx_out(o, "      action:\n          priority: %u\n",
				spec->priority);
	}
}

size_t lnx_config_print(const struct lnx_config *c, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	bool numa = c->global[lnx_config_param("numa_range", NULL)];

	if (size)
		buf[0] = '\0';
	if (c->has[LNX_CONFIG_NET])
		put_net(&o, c);
	if (c->has[LNX_CONFIG_NETS])
		put_nets(&o, c);
	if (c->has[LNX_CONFIG_ROUTE])
		put_routes(&o, c);
	if (c->has[LNX_CONFIG_PEER])
		put_peers(&o, c);
	if (c->has[LNX_CONFIG_ROUTING])
		put_routing(&o, c);
	if (c->has[LNX_CONFIG_BUFFERS])
		put_buffers(&o, c);
	if (c->has[LNX_CONFIG_NUMA] || numa)
		put_params(&o, c, true);
	if (c->has[LNX_CONFIG_GLOBAL])
		put_params(&o, c, false);
	if (c->has[LNX_CONFIG_UDSP])
		put_rules(&o, c);
	if (c->has[LNX_CONFIG_LIMITS_KEY])
		put_limits(&o, c);
	if (c->has[LNX_CONFIG_ALLOW])
		put_allow(&o, c);
	return o.n;
}
