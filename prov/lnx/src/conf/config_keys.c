/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keys of a configuration: numbers, parameters and rules; and all of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/config_reader.h"

#define BUFFERS_MAX	(1u << 24)

/* ---- routing, buffers ---- */

static int read_enable(struct config_reader *rd, config_node *value, void *obj)
{
	struct lnx_config *c = obj;
	bool on = false;
	int ret = lnx_config_bool(rd, value, &on);

	c->routing = on;
	return ret;
}

static int read_routing(struct config_reader *rd, config_node *value, void *obj)
{
	static const struct config_key keys[] = {
		{ "enable", read_enable }, { "port", lnx_config_read_port },
		{ "key", lnx_config_read_key_file }, { "state", lnx_config_read_state_file },
		{ "control", lnx_config_read_control_file },
	};

	rd->config->has[LNX_CONFIG_ROUTING] = true;
	return lnx_config_map(rd, value, CONFIG_KEYS(keys), obj);
}

#define BUFFERS(member) \
static int read_##member(struct config_reader *rd, config_node *value, void *obj) \
{ \
	struct lnx_config *c = obj; \
 \
	return lnx_config_uint(rd, value, 1, BUFFERS_MAX, &c->member); \
}
BUFFERS(tiny)
BUFFERS(small)
BUFFERS(large)

static int read_buffers(struct config_reader *rd, config_node *value, void *obj)
{
	static const struct config_key keys[] = {
		{ "tiny", read_tiny }, { "small", read_small },
		{ "large", read_large },
	};

	rd->config->has[LNX_CONFIG_BUFFERS] = true;
	return lnx_config_map(rd, value, CONFIG_KEYS(keys), obj);
}

/* ---- global, numa ---- */

static int set_param(struct config_reader *rd, config_node *value,
		     struct lnx_config *c, int row)
{
	const struct lnx_param *param = &lnx_params[row];
	char allowed[LNX_PARAM_ALLOWED_BYTES];
	const char *text;
	int ret = lnx_config_text(rd, value, &text);

	if (ret)
		return ret;
	if (c->global[row])
		return lnx_config_fail(rd, value, "FI_LNX parameter %s is set above "
				       "already, to \"%.40s\"; once is enough",
				       param->name, c->global[row]);
	if (!lnx_conf_accepts(param, text))
		return lnx_config_fail(rd, value, "found \"%.40s\", and it must be %s",
				       text, lnx_conf_allowed(param, allowed,
							      sizeof(allowed)));
	c->global[row] = text;
	return 0;
}

/* lnetctl's recovery_interval is in seconds, and the parameter in ms. */
static int set_seconds(struct config_reader *rd, config_node *value, struct lnx_config *c,
		       int row)
{
	struct lnx_yaml_node ms = *value;
	struct lnx_span w = { value->text, value->len };
	char text[24];
	uint64_t v;

	if (value->event != LNX_YAML_SCALAR || !lnx_span_uint(w, &v) || v > UINT32_MAX)
		return set_param(rd, value, c, row);
	ms.len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, v * 1000);
	ms.text = text;
	return set_param(rd, &ms, c, row);
}

static int global_pair(struct config_reader *rd, config_node *key,
		       const char *name, config_node *value, void *obj)
{
	const char *why;
	int row = lnx_config_param(name, &why);

	if (row >= 0 && !strcasecmp(name, "recovery_interval"))
		return set_seconds(rd, value, obj, row);
	if (row >= 0)
		return set_param(rd, value, obj, row);
	if (why)
		return lnx_config_fail(rd, key, "found \"%.40s\", which %s", name, why);
	return lnx_config_fail(rd, key, "found \"%.40s\", and there is no such "
			       "parameter; allowed are those of fi_lnx(7) in small "
			       "letters, without FI_LNX_, like retry_count", name);
}

static int read_global(struct config_reader *rd, config_node *value, void *obj)
{
	rd->config->has[LNX_CONFIG_GLOBAL] = true;
	return lnx_config_pairs(rd, value, "parameters, like retry_count: 3",
				global_pair, obj);
}

static int read_range(struct config_reader *rd, config_node *value, void *obj)
{
	return set_param(rd, value, obj, lnx_config_param("numa_range", NULL));
}

static int read_numa(struct config_reader *rd, config_node *value, void *obj)
{
	static const struct config_key keys[] = { { "range", read_range } };

	rd->config->has[LNX_CONFIG_NUMA] = true;
	return lnx_config_map(rd, value, CONFIG_KEYS(keys), obj);
}

struct fit {
	struct config_reader *rd;
	config_node *node;
	bool failed;
};

static void does_not_fit(void *arg, const char *sentence)
{
	struct fit *f = arg;

	if (!f->failed)
		lnx_config_fail(f->rd, f->node, "%s", sentence);
	f->failed = true;
}

/* Each is allowed alone: do they fit together? */
static int check_params(struct config_reader *rd, config_node *node)
{
	struct fit f = { .rd = rd, .node = node };
	char **env = calloc(lnx_nparams + 1, sizeof(*env));
	struct lnx_conf conf;

	if (!env || lnx_config_env(rd->config, env, (unsigned)lnx_nparams) < 0) {
		free(env);
		return lnx_config_no_memory(rd, node);
	}
	snprintf(rd->path, sizeof(rd->path), "global");
	lnx_conf_read(&conf, env, does_not_fit, &f);
	free(env);
	rd->path[0] = '\0';
	return f.failed ? -EINVAL : 0;
}

/* ---- udsp ---- */

struct rule_in {
	struct lnx_rule_spec spec;
	struct lnx_yaml_node at[LNX_RULE_SIDES];
	bool has_index;
	uint32_t index;
	bool no_priority;		/* it says -1, here: */
	struct lnx_yaml_node none;
};

static int read_side(struct config_reader *rd, config_node *value,
		     struct rule_in *in, unsigned side)
{
	in->at[side] = *value;
	return lnx_config_text(rd, value, &in->spec.side[side]);
}

static int read_src(struct config_reader *rd, config_node *value, void *obj)
{
	return read_side(rd, value, obj, LNX_RULE_SRC);
}

static int read_dst(struct config_reader *rd, config_node *value, void *obj)
{
	return read_side(rd, value, obj, LNX_RULE_DST);
}

static int read_rte(struct config_reader *rd, config_node *value, void *obj)
{
	return read_side(rd, value, obj, LNX_RULE_RTE);
}

static int read_priority(struct config_reader *rd, config_node *value, void *obj)
{
	struct rule_in *in = obj;

	if (in->spec.has_priority || in->no_priority)
		return lnx_config_fail(rd, value, "the priority of the rule is there "
				       "already; once is enough");
	/* lnetctl writes -1 where none is. */
	if (value->event == LNX_YAML_SCALAR && !strcmp(value->text, "-1")) {
		in->no_priority = true;
		in->none = *value;
		return 0;
	}
	in->spec.has_priority = true;
	return lnx_config_uint(rd, value, 0, LNX_RULE_PRIORITY_MAX, &in->spec.priority);
}

static int read_action(struct config_reader *rd, config_node *value, void *obj)
{
	static const struct config_key keys[] = { { "priority", read_priority } };

	return lnx_config_map(rd, value, CONFIG_KEYS(keys), obj);
}

static int read_idx(struct config_reader *rd, config_node *value, void *obj)
{
	struct rule_in *in = obj;

	in->has_index = true;
	return lnx_config_uint(rd, value, 0, UINT32_MAX - 1, &in->index);
}

/* Find where the error of a rule is, which names the text it is about. */
static int refuse_rule(struct config_reader *rd, config_node *node,
		       const struct rule_in *in)
{
	size_t len = strlen(rd->path);
	struct lnx_yaml_node at;
	unsigned i;

	for (i = 0; i < LNX_RULE_SIDES; i++) {
		const char *name = lnx_rule_side_name(i);

		if (!rd->r.text || rd->r.text != in->spec.side[i])
			continue;
		at = in->at[i];
		snprintf(rd->path + len, sizeof(rd->path) - len, ".%s", name);
		/* The sentence begins with the name, which is the last key now. */
		memmove(rd->r.why, rd->r.why + strlen(name) + 2,
			strlen(rd->r.why) - strlen(name) - 1);
		return lnx_config_refuse(rd, &at);
	}
	return lnx_config_fail(rd, node, "%s", rd->r.why);
}

static int make_rule(struct config_reader *rd, config_node *node,
		     const struct rule_in *in, unsigned n)
{
	unsigned i;
	int ret = lnx_rule_make(&rd->nets, &in->spec, &rd->rule[n], &rd->r);

	if (ret)
		return ret == -ENOMEM ? lnx_config_no_memory(rd, node) :
					refuse_rule(rd, node, in);
	/* As if nothing was said it would be 0, the best. */
	if (in->no_priority && rd->rule[n]->priority != LNX_RULE_NONE)
		return lnx_config_fail(rd, &in->none, "found the priority -1, which is none, "
				       "and a rule for nets or rails has one; 0, the best, to "
				       "%u must be, or leave it out for 0",
				       LNX_RULE_PRIORITY_MAX);
	for (i = 0; i < n; i++)
		if (lnx_rule_same(rd->rule[i], rd->rule[n]))
			return lnx_config_fail(rd, node, "found the same patterns as in "
					       "udsp[%u]; a list of rules has each "
					       "once", i);
	return 0;
}

/* The canonical text of the rule, as if it was shown. */
static int put_rule(struct config_reader *rd, config_node *node,
		    struct lnx_config_rule *out, const struct lnx_rule *rule)
{
	char text[LNX_PATTERN_TEXT_MAX];
	unsigned i;

	out->at = (struct lnx_config_at){ node->line, node->column };
	out->spec = (struct lnx_rule_spec){
		.has_priority = rule->priority != LNX_RULE_NONE,
		.priority = rule->priority,
	};
	for (i = 0; i < LNX_RULE_SIDES; i++) {
		size_t len = lnx_rule_print_side(rule, i, text, sizeof(text));

		if (!len)
			continue;
		out->spec.side[i] = lnx_config_copy(rd->config, text, len);
		if (!out->spec.side[i])
			return lnx_config_no_memory(rd, node);
	}
	return 0;
}

struct rules_in {
	struct lnx_config *c;
	uint32_t next;			/* the least idx that may follow */
};

static int udsp_item(struct config_reader *rd, config_node *node, void *obj)
{
	static const struct config_key keys[] = {
		{ "idx", read_idx }, { "src", read_src }, { "dst", read_dst },
		{ "rte", read_rte }, { "priority", read_priority },
		{ "action", read_action },
	};
	struct rules_in *all = obj;
	struct lnx_config *c = all->c;
	struct rule_in in = { .has_index = false };
	int ret;

	if (c->n_rule == LNX_RULES_MAX)
		return lnx_config_fail(rd, node, "this is one too many, there can be "
				       "%d", LNX_RULES_MAX);
	ret = lnx_config_map(rd, node, CONFIG_KEYS(keys), &in);
	if (ret)
		return ret;
	if (in.has_index && in.index < all->next)
		return lnx_config_fail(rd, node, "found idx %u behind %u; rules count in "
				       "the order in which they stand, so let idx grow, "
				       "or leave it out", in.index, all->next - 1);
	all->next = in.has_index ? in.index + 1 : all->next;
	ret = make_rule(rd, node, &in, c->n_rule);
	if (!ret)
		ret = lnx_config_read_more(rd, node, &c->rule, &c->n_rule,
					   sizeof(*c->rule));
	if (!ret)
		ret = put_rule(rd, node, &c->rule[c->n_rule - 1],
			       rd->rule[c->n_rule - 1]);
	return ret;
}

static int read_udsp(struct config_reader *rd, config_node *value, void *obj)
{
	struct rules_in all = { .c = obj };

	rd->config->has[LNX_CONFIG_UDSP] = true;
	return lnx_config_seq(rd, value, udsp_item, &all);
}

/* ---- all of it ---- */

int lnx_config_read_all(struct config_reader *rd)
{
	static const struct config_key keys[LNX_CONFIG_SECTIONS] = {
		[LNX_CONFIG_NET] = { "net", lnx_config_read_net_key },
		[LNX_CONFIG_NETS] = { "nets", lnx_config_read_nets_key },
		[LNX_CONFIG_ROUTE] = { "route", lnx_config_read_route_key },
		[LNX_CONFIG_PEER] = { "peer", lnx_config_read_peer_key },
		[LNX_CONFIG_ROUTING] = { "routing", read_routing },
		[LNX_CONFIG_BUFFERS] = { "buffers", read_buffers },
		[LNX_CONFIG_NUMA] = { "numa", read_numa },
		[LNX_CONFIG_GLOBAL] = { "global", read_global },
		[LNX_CONFIG_UDSP] = { "udsp", read_udsp },
		[LNX_CONFIG_LIMITS_KEY] = { "limits", lnx_config_read_limits_key },
		[LNX_CONFIG_ALLOW] = { "allow", lnx_config_read_allow_key },
	};
	struct lnx_yaml_node node, end;
	int ret = lnx_config_next(rd, &node);

	/* An empty text gives nothing, and neither does an empty document, such as "---". */
	if (ret || node.event == LNX_YAML_END)
		return ret;
	if (node.event == LNX_YAML_SCALAR && !node.len && !node.quoted)
		return lnx_config_next(rd, &end);
	ret = lnx_config_map(rd, &node, CONFIG_KEYS(keys), rd->config);
	if (!ret)
		ret = lnx_config_next(rd, &end);
	return ret ? ret : check_params(rd, &node);
}
