/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys of a configuration: names of nets, their rails, and text that names either.  See
 * config.h.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/config_reader.h"
#include "conf/links.h"		/* LNX_NAME_MAX */

/* ---- text that names nets and rails ---- */

/* Parse the text of node as a pattern. */
static int parse_pattern(struct config_reader *rd, config_node *node,
			 struct lnx_pattern *p)
{
	struct lnx_span w = { NULL, node->len };
	int ret = lnx_config_text(rd, node, &w.s);

	if (ret)
		return ret;
	rd->r.text = w.s;
	rd->r.at = 0;
	if (lnx_nid_pattern_parse(&rd->nets, w, p, &rd->r))
		return lnx_config_refuse(rd, node);
	return 0;
}

static int put_pattern(struct config_reader *rd, config_node *node,
		       const struct lnx_pattern *p, const char **out)
{
	char text[LNX_PATTERN_TEXT_MAX];
	size_t len = lnx_nid_pattern_print(p->part, p->n, text, sizeof(text));

	*out = lnx_config_copy(rd->config, text, len);
	if (*out)
		return 0;
	return lnx_config_no_memory(rd, node);
}

/* One net by its name: tcp1. */
int lnx_config_net_name(struct config_reader *rd, config_node *node, const char **out)
{
	struct lnx_pattern p;
	int ret = parse_pattern(rd, node, &p);

	if (ret)
		return ret;
	if (!lnx_nid_pattern_nets(&p) || p.n != 1 || p.part[0].group ||
	    !lnx_expr_one(&p.part[0].number))
		return lnx_config_fail(rd, node, "found \"%.*s\" where the name of one "
				       "net must be, like tcp1",
				       LNX_QUOTE(((struct lnx_span){ node->text,
								 node->len })));
	return put_pattern(rd, node, &p, out);
}

/* A pattern for NIDs; one: for a single one. */
int lnx_config_nids(struct config_reader *rd, config_node *node, bool one, const char **out)
{
	struct lnx_pattern p;
	struct lnx_nid nid;
	int ret = parse_pattern(rd, node, &p);

	if (ret)
		return ret;
	if (one ? !lnx_nid_pattern_one(&p, &nid) : lnx_nid_pattern_nets(&p))
		return lnx_config_fail(rd, node, "found \"%.*s\" where %s must be, like "
				       "10.0.0.1@tcp",
				       LNX_QUOTE(((struct lnx_span){ node->text,
								 node->len })),
				       one ? "one NID" : "a NID or a pattern for NIDs");
	return put_pattern(rd, node, &p, out);
}

int lnx_config_missing(struct config_reader *rd, config_node *node, const char *key)
{
	return lnx_config_fail(rd, node, "found no key \"%s\", and it must be there",
			       key);
}

/* ---- nets ---- */

static int nets_pair(struct config_reader *rd, config_node *key, const char *name,
		     config_node *value, void *obj)
{
	struct lnx_nets *nets = obj;
	size_t len = strlen(name);
	const char *text;
	char *both;
	int ret = lnx_config_text(rd, value, &text);

	if (ret)
		return ret;
	/* One text, so that an error has an offset in one of its two sides. */
	both = lnx_config_get(rd->config, len + strlen(text) + 2);
	if (!both)
		return lnx_config_no_memory(rd, value);
	sprintf(both, "%s=%s", name, text);
	rd->r.text = both;
	rd->r.at = 0;
	if (!lnx_nets_add(nets, (struct lnx_span){ both, len },
			  (struct lnx_span){ both + len + 1, strlen(text) },
			  &rd->r))
		return 0;
	if (rd->r.at <= len)
		return lnx_config_refuse(rd, key);
	rd->r.at -= len + 1;
	return lnx_config_refuse(rd, value);
}

static int read_nets_into(struct config_reader *rd, config_node *value, void *obj)
{
	return lnx_config_pairs(rd, value, "names and nets, like tcp1: 10.78.0.0/16",
				nets_pair, obj);
}

int lnx_config_read_nets_key(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config *c = obj;

	c->has[LNX_CONFIG_NETS] = true;
	return read_nets_into(rd, value, &c->nets);
}

int lnx_config_read_nets(struct config_reader *rd)
{
	struct lnx_yaml_node k;
	int ret = lnx_config_next(rd, &k);

	/* What else is wrong is found in the next pass, which knows more. */
	if (ret || k.event != LNX_YAML_MAP)
		return ret;
	while (!(ret = lnx_config_next(rd, &k)) && k.event != LNX_YAML_MAP_END) {
		bool nets = k.event == LNX_YAML_SCALAR && !strcasecmp(k.text, "nets");

		if (k.event != LNX_YAML_SCALAR)
			ret = lnx_config_skip(rd, &k);
		if (!ret)
			ret = lnx_config_next(rd, &k);
		if (!ret && nets) {
			snprintf(rd->path, sizeof(rd->path), "nets");
			rd->nets.n = 0;
			ret = read_nets_into(rd, &k, &rd->nets);
			rd->path[0] = '\0';
		} else if (!ret) {
			ret = lnx_config_skip(rd, &k);
		}
		if (ret)
			break;
	}
	return ret;
}

/* ---- net ---- */

static int add_interface(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_ni *ni = obj;
	const char *p;
	int ret;

	if (ni->n == LNX_CONFIG_NIDS)
		return lnx_config_fail(rd, value, "this is one too many, there can be "
				       "%d", LNX_CONFIG_NIDS);
	ret = lnx_config_text(rd, value, &ni->interface[ni->n]);
	if (ret)
		return ret;
	for (p = ni->interface[ni->n]; *p; p++)
		if (*p <= ' ' || *p > '~' || strchr(",|+:", *p))
			break;
	if (*p || p - ni->interface[ni->n] >= LNX_NAME_MAX)
		return lnx_config_fail(rd, value, "found \"%.40s\" where the name of an "
				       "interface must be, as fi_info lists domains",
				       ni->interface[ni->n]);
	ni->n++;
	return 0;
}

static int interface_pair(struct config_reader *rd, config_node *key,
			  const char *name, config_node *value, void *obj)
{
	struct lnx_config_ni *ni = obj;
	uint64_t v;

	if (!lnx_span_uint((struct lnx_span){ name, strlen(name) }, &v) ||
	    v != ni->n)
		return lnx_config_fail(rd, key, "found \"%.40s\" where the number %u "
				       "must be: interfaces are numbered from 0",
				       name, ni->n);
	return add_interface(rd, value, obj);
}

/* lnetctl numbers them; a list is as good. */
static int read_interfaces(struct config_reader *rd, config_node *value, void *obj)
{
	if (value->event == LNX_YAML_SEQ)
		return lnx_config_seq(rd, value, add_interface, obj);
	return lnx_config_pairs(rd, value, "numbers and interfaces, like 0: eth1",
				interface_pair, obj);
}

/* Seconds, and credits; CPT_MAX: of CPU numbers. */
#define SECONDS_MAX	86400u
#define CREDITS_MAX	65535u
#define CPT_MAX		4095u

#define NI_NUMBER(member, max) \
static int read_##member(struct config_reader *rd, config_node *value, void *obj) \
{ \
	struct lnx_config_ni *ni = obj; \
 \
	return lnx_config_uint(rd, value, 0, max, &ni->member); \
}
NI_NUMBER(peer_timeout, SECONDS_MAX)
NI_NUMBER(peer_credits, CREDITS_MAX)
NI_NUMBER(peer_buffer_credits, CREDITS_MAX)
NI_NUMBER(credits, CREDITS_MAX)

static int read_tunables(struct config_reader *rd, config_node *value, void *obj)
{
	static const struct config_key keys[] = {
		{ "peer_timeout", read_peer_timeout },
		{ "peer_credits", read_peer_credits },
		{ "peer_buffer_credits", read_peer_buffer_credits },
		{ "credits", read_credits },
	};

	return lnx_config_map(rd, value, CONFIG_KEYS(keys), obj);
}

static int read_cpt(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_ni *ni = obj;
	struct lnx_out o;
	char text[LNX_PATTERN_TEXT_MAX];
	struct lnx_expr set;
	int ret = lnx_config_text(rd, value, &ni->cpt);

	if (ret)
		return ret;
	rd->r.text = ni->cpt;
	rd->r.at = 0;
	if (lnx_expr_parse((struct lnx_span){ ni->cpt, strlen(ni->cpt) }, CPT_MAX,
			   "a set of CPUs", &set, &rd->r))
		return lnx_config_refuse(rd, value);
	o = (struct lnx_out){ .buf = text, .size = sizeof(text) };
	lnx_expr_print(&set, &o);
	ni->cpt = lnx_config_copy(rd->config, text, o.n);
	return ni->cpt ? 0 : lnx_config_no_memory(rd, value);
}

static int read_ni(struct config_reader *rd, config_node *value, void *obj)
{
	static const struct config_key keys[] = {
		{ "interfaces", read_interfaces },
		{ "tunables", read_tunables },
		{ "CPT", read_cpt },
	};
	struct lnx_config_net *net = obj;
	struct lnx_config_ni *ni;
	int ret = lnx_config_read_more(rd, value, &net->ni, &net->n, sizeof(*ni));

	if (ret)
		return ret;
	ni = &net->ni[net->n - 1];
	ni->peer_timeout = ni->peer_credits = LNX_CONFIG_UNSET;
	ni->peer_buffer_credits = ni->credits = LNX_CONFIG_UNSET;
	ret = lnx_config_map(rd, value, CONFIG_KEYS(keys), ni);
	if (!ret && !ni->n)
		ret = lnx_config_fail(rd, value, "found no interfaces, and there must "
				      "be one at least");
	return ret;
}

static int read_net_type(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config_net *net = obj;

	return lnx_config_net_name(rd, value, &net->net);
}

static int read_nis(struct config_reader *rd, config_node *value, void *obj)
{
	return lnx_config_seq(rd, value, read_ni, obj);
}

static int net_item(struct config_reader *rd, config_node *node, void *obj)
{
	static const struct config_key keys[] = {
		{ "net type", read_net_type },
		{ "local NI(s)", read_nis },
	};
	struct lnx_config *c = obj;
	struct lnx_config_net *net;
	unsigned i;
	int ret = lnx_config_read_more(rd, node, &c->net, &c->n_net, sizeof(*net));

	if (ret)
		return ret;
	net = &c->net[c->n_net - 1];
	net->at = (struct lnx_config_at){ node->line, node->column };
	ret = lnx_config_map(rd, node, CONFIG_KEYS(keys), net);
	if (ret)
		return ret;
	if (!net->net)
		return lnx_config_missing(rd, node, "net type");
	if (!net->n)
		return lnx_config_missing(rd, node, "local NI(s)");
	for (i = 0; i + 1 < c->n_net; i++)
		if (!strcmp(c->net[i].net, net->net))
			return lnx_config_fail(rd, node, "found the net %s again, which "
					       "is net[%u]; put all its interfaces "
					       "there", net->net, i);
	return 0;
}

int lnx_config_read_net_key(struct config_reader *rd, config_node *value, void *obj)
{
	rd->config->has[LNX_CONFIG_NET] = true;
	return lnx_config_seq(rd, value, net_item, obj);
}

