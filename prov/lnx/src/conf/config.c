/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The configuration: its memory, and what is made of it.  See config.h. */
#include "conf/config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/out.h"

const char *const lnx_config_names[LNX_CONFIG_SECTIONS] = {
	[LNX_CONFIG_NET] = "net", [LNX_CONFIG_NETS] = "nets",
	[LNX_CONFIG_ROUTE] = "route", [LNX_CONFIG_PEER] = "peer",
	[LNX_CONFIG_ROUTING] = "routing", [LNX_CONFIG_BUFFERS] = "buffers",
	[LNX_CONFIG_NUMA] = "numa", [LNX_CONFIG_GLOBAL] = "global",
	[LNX_CONFIG_UDSP] = "udsp", [LNX_CONFIG_LIMITS_KEY] = "limits",
	[LNX_CONFIG_ALLOW] = "allow",
};

/* ---- memory ---- */

struct lnx_config_memory {
	struct lnx_config_memory *next;
	_Alignas(16) unsigned char bytes[];
};

void *lnx_config_get(struct lnx_config *c, size_t size)
{
	struct lnx_config_memory *m = calloc(1, sizeof(*m) + size);

	if (!m)
		return NULL;
	m->next = c->memory;
	c->memory = m;
	return m->bytes;
}

char *lnx_config_copy(struct lnx_config *c, const char *text, size_t len)
{
	char *copy = lnx_config_get(c, len + 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

void *lnx_config_more(struct lnx_config *c, void *list, unsigned *n, size_t size)
{
	void *more;

	/* Lists grow at powers of two, and old ones stay until the end. */
	if (!(*n & (*n - 1)) || !*n) {
		more = lnx_config_get(c, LNX_MAX(2u * *n, 1u) * size);
		if (!more)
			return NULL;
		memcpy(more, list ? list : more, *n * size);
		list = more;
	}
	++*n;
	return list;
}

struct lnx_config *lnx_config_create(void)
{
	struct lnx_config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->routing = c->port = c->tiny = c->small = c->large = LNX_CONFIG_UNSET;
	memset(c->limit, 0xff, sizeof(c->limit));	/* LNX_CONFIG_UNSET */
	c->global = lnx_config_get(c, lnx_nparams * sizeof(*c->global));
	if (c->global)
		return c;
	free(c);
	return NULL;
}

void lnx_config_destroy(struct lnx_config *c)
{
	struct lnx_config_memory *m;

	if (!c)
		return;
	while ((m = c->memory)) {
		c->memory = m->next;
		free(m);
	}
	free(c);
}

/* ---- parameters ---- */

/* lnetctl's names of parameters that have another one here. */
static const char *own_name(const char *name)
{
	if (!strcasecmp(name, "max_intf"))
		return "max_rails";
	if (!strcasecmp(name, "recovery_interval"))
		return "recovery_ping_interval";
	return name;
}

/* Parameters that would say of a file what only its environment can. */
static const char *not_in_a_file(const char *name)
{
	if (!strcasecmp(name, "job_key"))
		return "is a secret, and this file is none; FI_LNX_JOB_KEY_FILE "
		       "names a file for it";
	if (!strcasecmp(name, "config"))
		return "names this file";
	if (!strcasecmp(name, "nets"))
		return "is the key nets, beside global";
	if (!strcasecmp(name, "routes"))
		return "is the key route, beside global";
	if (!strcasecmp(name, "udsp"))
		return "is the key udsp, beside global";
	return NULL;
}

int lnx_config_param(const char *name, const char **why)
{
	const char *own = own_name(name), *not = not_in_a_file(own);
	size_t i;

	if (why)
		*why = not;
	for (i = 0; !not && i < lnx_nparams; i++)
		if (!strcasecmp(lnx_params[i].name, own))
			return (int)i;
	return -1;
}

int lnx_config_set_global(struct lnx_config *c, const char *name, const char *value)
{
	int i = lnx_config_param(name, NULL);
	const char *p;

	for (p = value; *p; p++)
		if (*p & 0x80)
			return -EINVAL;
	if (i < 0 || !*value || !lnx_conf_accepts(&lnx_params[i], value))
		return -EINVAL;
	c->global[i] = lnx_config_copy(c, value, strlen(value));
	c->has[!strcmp(lnx_params[i].name, "numa_range") ? LNX_CONFIG_NUMA :
							   LNX_CONFIG_GLOBAL] = true;
	return c->global[i] ? 0 : -ENOMEM;
}

static char *env_string(struct lnx_config *c, size_t row)
{
	const char *name = lnx_params[row].name, *value = c->global[row];
	size_t size = sizeof("FI_LNX_=") + strlen(name) + strlen(value);
	char *s = lnx_config_get(c, size), *p;

	if (!s)
		return NULL;
	snprintf(s, size, "FI_LNX_%s=%s", name, value);
	for (p = s; *p != '='; p++)
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p & ~0x20);
	return s;
}

int lnx_config_env(struct lnx_config *c, char **env, unsigned max)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < lnx_nparams && n < max; i++) {
		if (!c->global[i])
			continue;
		env[n] = env_string(c, i);
		if (!env[n++])
			return -ENOMEM;
	}
	return (int)n;
}

/* ---- nets and rules ---- */

int lnx_config_set_nets(struct lnx_config *c, const struct lnx_nets *nets)
{
	c->nets = *nets;
	c->has[LNX_CONFIG_NETS] = true;
	return 0;
}

/* The net of that name, made if needed; NULL: no memory. */
static struct lnx_config_net *net_of(struct lnx_config *c, const char *name)
{
	void *list;
	unsigned i;

	for (i = 0; i < c->n_net; i++)
		if (!strcmp(c->net[i].net, name))
			return &c->net[i];
	list = lnx_config_more(c, c->net, &c->n_net, sizeof(*c->net));
	if (!list)
		return NULL;
	c->net = list;
	c->net[i] = (struct lnx_config_net){ .net = lnx_config_copy(c, name, strlen(name)) };
	return c->net[i].net ? &c->net[i] : NULL;
}

int lnx_config_set_ni(struct lnx_config *c, const char *name, const char *interface,
		      uint32_t credits, uint32_t peer_credits)
{
	struct lnx_config_net *net = net_of(c, name);
	void *list = net ? lnx_config_more(c, net->ni, &net->n, sizeof(*net->ni)) : NULL;
	struct lnx_config_ni *ni;

	if (!list)
		return -ENOMEM;
	net->ni = list;
	ni = &net->ni[net->n - 1];
	*ni = (struct lnx_config_ni){
		.n = 1, .interface[0] = lnx_config_copy(c, interface, strlen(interface)),
		.peer_timeout = LNX_CONFIG_UNSET, .peer_buffer_credits = LNX_CONFIG_UNSET,
		.credits = credits, .peer_credits = peer_credits,
	};
	c->has[LNX_CONFIG_NET] = true;
	return ni->interface[0] ? 0 : -ENOMEM;
}

static int add_rule(struct lnx_config *c, const struct lnx_rule *rule)
{
	void *list = lnx_config_more(c, c->rule, &c->n_rule, sizeof(*c->rule));
	char text[LNX_PATTERN_TEXT_MAX];
	struct lnx_config_rule *out;
	unsigned i;

	if (!list)
		return -ENOMEM;
	c->rule = list;
	out = &c->rule[c->n_rule - 1];
	memset(out, 0, sizeof(*out));
	out->spec.priority = rule->priority;
	out->spec.has_priority = rule->priority != LNX_RULE_NONE;
	for (i = 0; i < LNX_RULE_SIDES; i++) {
		size_t len = lnx_rule_print_side(rule, i, text, sizeof(text));

		if (!len)
			continue;
		out->spec.side[i] = lnx_config_copy(c, text, len);
		if (!out->spec.side[i])
			return -ENOMEM;
	}
	return 0;
}

int lnx_config_set_rules(struct lnx_config *c, const struct lnx_rules *rules)
{
	struct lnx_rule_info info;
	uint32_t i;
	int ret = 0;

	c->n_rule = 0;
	c->rule = NULL;
	c->has[LNX_CONFIG_UDSP] = true;
	for (i = 0; !ret && !lnx_rules_info(rules, i, &info); i++)
		ret = add_rule(c, info.rule);
	return ret;
}

int lnx_config_rules(const struct lnx_config *c, struct lnx_rules *rules,
		     struct lnx_refusal *r)
{
	struct lnx_rule_spec *spec;
	unsigned i;
	int ret;

	if (!c->has[LNX_CONFIG_UDSP])
		return 0;
	spec = calloc(LNX_MAX(c->n_rule, 1u), sizeof(*spec));
	if (!spec) {
		lnx_refuse(r, NULL, "memory is short; nothing was changed");
		return -ENOMEM;
	}
	for (i = 0; i < c->n_rule; i++)
		spec[i] = c->rule[i].spec;
	ret = lnx_rules_replace(rules, spec, c->n_rule, NULL, r);
	free(spec);
	return ret;
}

/* ---- what no endpoint uses ---- */

static void unused(struct lnx_out *o, bool is, const char *section, const char *key)
{
	if (is)
		lnx_out(o, "%s%s%s%s", o->n ? ", " : "", section, *key ? "." : "", key);
}

size_t lnx_config_unused(const struct lnx_config *c, char *buf, size_t size)
{
	static const enum lnx_config_section whole[] = {
		LNX_CONFIG_PEER, LNX_CONFIG_ROUTING, LNX_CONFIG_BUFFERS,
		LNX_CONFIG_LIMITS_KEY, LNX_CONFIG_ALLOW,
	};
	struct lnx_out o = { .buf = buf, .size = size };
	const char *net = lnx_config_names[LNX_CONFIG_NET];
	bool timeout = false, buffers = false, cpt = false;
	unsigned i, k;

	if (size)
		buf[0] = '\0';
	for (i = 0; i < LNX_ARRAY_SIZE(whole); i++)
		unused(&o, c->has[whole[i]], lnx_config_names[whole[i]], "");
	for (i = 0; i < c->n_net; i++) {
		for (k = 0; k < c->net[i].n; k++) {
			const struct lnx_config_ni *ni = &c->net[i].ni[k];

			timeout |= ni->peer_timeout != LNX_CONFIG_UNSET;
			buffers |= ni->peer_buffer_credits != LNX_CONFIG_UNSET;
			cpt |= ni->cpt != NULL;
		}
	}
	unused(&o, timeout, net, "peer_timeout");
	unused(&o, buffers, net, "peer_buffer_credits");
	unused(&o, cpt, net, "CPT");
	return o.n;
}
