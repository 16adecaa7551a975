/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The difference of two configurations.  See config.h.
 *
 * Each becomes a text with a line for each thing that it says, which begins with the
 * name of that thing and not with its position in a list.  Rules, whose position
 * counts, are compared by policy/rules_replace.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "conf/config.h"

static void number(struct lnx_out *o, const char *prefix, const char *key, uint32_t v)
{
	if (v != LNX_CONFIG_UNSET)
		lnx_out(o, "%s.%s: %u\n", prefix, key, v);
}

static void flat_ni(struct lnx_out *o, const char *net,
		    const struct lnx_config_ni *ni)
{
	char prefix[160];
	unsigned i;

	for (i = 0; i < ni->n; i++) {
		snprintf(prefix, sizeof(prefix), "net.%s.%s", net,
			 ni->interface[i]);
		lnx_out(o, "%s: used\n", prefix);
		number(o, prefix, "peer_timeout", ni->peer_timeout);
		number(o, prefix, "peer_credits", ni->peer_credits);
		number(o, prefix, "peer_buffer_credits", ni->peer_buffer_credits);
		number(o, prefix, "credits", ni->credits);
		if (ni->cpt)
			lnx_out(o, "%s.CPT: %s\n", prefix, ni->cpt);
	}
}

static void flat_nets(struct lnx_out *o, const struct lnx_config *c)
{
	char text[LNX_NET_TEXT_MAX];
	unsigned i;

	for (i = 0; i < c->nets.n; i++) {
		const struct lnx_net *net = &c->nets.net[i];

		lnx_net_value(net, text, sizeof(text));
		lnx_out(o, "nets.%s%u: %s\n", net->name, net->number, text);
	}
}

static void flat_routes(struct lnx_out *o, const struct lnx_config *c)
{
	char prefix[2 * LNX_PATTERN_TEXT_MAX + 16];
	unsigned i;

	for (i = 0; i < c->n_route; i++) {
		snprintf(prefix, sizeof(prefix), "route.%s by %s", c->route[i].net,
			 c->route[i].gateway);
		number(o, prefix, "priority", c->route[i].priority);
		number(o, prefix, "hop", c->route[i].hop);
	}
}

static void flat_peers(struct lnx_out *o, const struct lnx_config *c)
{
	unsigned i, k;

	for (i = 0; i < c->n_peer; i++) {
		const struct lnx_config_peer *peer = &c->peer[i];

		lnx_out(o, "peer.%s.Multi-Rail: %s\n", peer->primary,
			peer->multi_rail ? "True" : "False");
		for (k = 0; k < peer->n; k++)
			lnx_out(o, "peer.%s.nid: %s\n", peer->primary,
				peer->nid[k]);
	}
}

static void flat_params(struct lnx_out *o, const struct lnx_config *c)
{
	size_t i;

	for (i = 0; i < lnx_nparams; i++)
		if (c->global[i])
			lnx_out(o, "global.%s: %s\n", lnx_params[i].name,
				c->global[i]);
}

/* One section of a configuration. */
static void flat_section(struct lnx_out *o, const struct lnx_config *c,
			 enum lnx_config_section s)
{
	unsigned i, k;

	switch (s) {
	case LNX_CONFIG_NET:
		for (i = 0; i < c->n_net; i++)
			for (k = 0; k < c->net[i].n; k++)
				flat_ni(o, c->net[i].net, &c->net[i].ni[k]);
		break;
	case LNX_CONFIG_NETS:
		flat_nets(o, c);
		break;
	case LNX_CONFIG_ROUTE:
		flat_routes(o, c);
		break;
	case LNX_CONFIG_PEER:
		flat_peers(o, c);
		break;
	case LNX_CONFIG_ROUTING:
		number(o, "routing", "enable", c->routing);
		number(o, "routing", "port", c->port);
		if (c->key_file)
			lnx_out(o, "routing.key: %s\n", c->key_file);
		if (c->state_file)
			lnx_out(o, "routing.state: %s\n", c->state_file);
		if (c->control_file)
			lnx_out(o, "routing.control: %s\n", c->control_file);
		break;
	case LNX_CONFIG_LIMITS_KEY:
		for (i = 0; i < LNX_CONFIG_LIMITS; i++)
			number(o, "limits", lnx_config_limits[i].name, c->limit[i]);
		break;
	case LNX_CONFIG_ALLOW:
		for (i = 0; i < c->n_allow; i++)
			lnx_out(o, "allow[%u]: %s from %s to %s\n", i,
				c->allow[i].deny ? "deny" : "allow",
				c->allow[i].from ? c->allow[i].from : "any",
				c->allow[i].to ? c->allow[i].to : "any");
		break;
	case LNX_CONFIG_BUFFERS:
		number(o, "buffers", "tiny", c->tiny);
		number(o, "buffers", "small", c->small);
		number(o, "buffers", "large", c->large);
		break;
	case LNX_CONFIG_GLOBAL:
		flat_params(o, c);
		break;
	default:
		break;
	}
}

/* Memory for free(); NULL: there is none. */
static char *flat(const struct lnx_config *c, const struct lnx_config *sections)
{
	struct lnx_out o = { .size = 0 };
	char *text = NULL;
	unsigned s, pass;

	for (pass = 0; pass < 2; pass++) {
		for (s = 0; s < LNX_CONFIG_SECTIONS; s++)
			if (sections->has[s] || (s == LNX_CONFIG_GLOBAL &&
						 sections->has[LNX_CONFIG_NUMA]))
				flat_section(&o, c, s);
		if (pass)
			break;
		text = malloc(o.n + 1);
		if (!text)
			return NULL;
		text[0] = '\0';
		o = (struct lnx_out){ .buf = text, .size = o.n + 1 };
	}
	return text;
}

static bool has_line(const char *text, const char *line, size_t len)
{
	for (; *text; text = strchr(text, '\n') + 1)
		if (!strncmp(text, line, len) && text[len] == '\n')
			return true;
	return false;
}

/* The lines of one text that are not in the other. */
static void beside(struct lnx_out *o, char sign, const char *text, const char *other)
{
	const char *end;

	for (; *text; text = end + 1) {
		end = strchr(text, '\n');
		if (!has_line(other, text, (size_t)(end - text)))
			lnx_out(o, "%c %.*s\n", sign, (int)(end - text), text);
	}
}

/* ---- rules ---- */

static void gone(struct lnx_out *o, const struct lnx_rule_spec *spec)
{
	const char *between = "- udsp: ";
	unsigned i;

	for (i = 0; i < LNX_RULE_SIDES; i++) {
		if (!spec->side[i])
			continue;
		lnx_out(o, "%s%s: %s", between, lnx_rule_side_name(i),
			spec->side[i]);
		between = ", ";
	}
	if (spec->has_priority)
		lnx_out(o, ", priority: %u", spec->priority);
	lnx_out(o, "\n");
}

static int diff_rules(const struct lnx_config *old, const struct lnx_config *new,
		      struct lnx_out *o)
{
	const struct lnx_nets *nets = new->has[LNX_CONFIG_NETS] ? &new->nets :
								  &old->nets;
	struct lnx_rules *rules = lnx_rules_create(nets);
	struct lnx_rule_spec *spec = calloc(LNX_MAX(new->n_rule, 1u), sizeof(*spec));
	struct lnx_refusal r;
	char *text = NULL, *line, *end;
	size_t len = 0;
	unsigned i;
	int ret = rules && spec ? 0 : -ENOMEM;

	for (i = 0; !ret && i < old->n_rule; i++) {
		ret = lnx_rules_add(rules, &old->rule[i].spec, NULL, &r);
		if (ret != -EINVAL)
			continue;
		/* A net of it has no name any more, so that it goes. */
		gone(o, &old->rule[i].spec);
		ret = 0;
	}
	for (i = 0; !ret && i < new->n_rule; i++)
		spec[i] = new->rule[i].spec;
	if (!ret)
		ret = lnx_rules_diff(rules, spec, new->n_rule, NULL, 0, &len, NULL,
				     &r);
	text = ret ? NULL : malloc(len + 1);
	if (text) {
		ret = lnx_rules_diff(rules, spec, new->n_rule, text, len + 1, &len,
				     NULL, &r);
		for (line = text; !ret && *line; line = end + 1) {
			end = strchr(line, '\n');
			lnx_out(o, "%c udsp: %.*s\n", line[0],
				(int)(end - line - 2), line + 2);
		}
	}
	free(text);
	free(spec);
	lnx_rules_destroy(rules);
	return text || ret ? ret : -ENOMEM;
}

int lnx_config_diff(const struct lnx_config *old, const struct lnx_config *new,
		    char *buf, size_t size, size_t *len)
{
	struct lnx_out o = { .buf = buf, .size = size };
	char *before = flat(old, new), *after = flat(new, new);
	int ret = before && after ? 0 : -ENOMEM;

	if (size)
		buf[0] = '\0';
	if (!ret) {
		beside(&o, '-', before, after);
		beside(&o, '+', after, before);
	}
	if (!ret && new->has[LNX_CONFIG_UDSP])
		ret = diff_rules(old, new, &o);
	free(before);
	free(after);
	*len = o.n;
	return ret;
}
