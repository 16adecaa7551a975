/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exports the configuration of an endpoint.  See export.h.  Called by ctl/request.c. */
#include "ctl/export.h"

#include <stdlib.h>
#include <string.h>

#include "conf/config.h"
#include "core/credits.h"
#include "core/policy.h"
#include "ctl/settings.h"
#include "obj/gateway.h"

/* The value of a parameter, for free(); NULL: no memory. */
static char *value_of(const struct lnx_conf *c, size_t row)
{
	size_t len = lnx_conf_print(c, row, NULL, 0);
	char *text = malloc(len + 1);

	if (text)
		lnx_conf_print(c, row, text, len + 1);
	return text;
}

static bool is_default(const struct lnx_conf *def, size_t row, const char *value)
{
	char *text = value_of(def, row);
	bool same = text && !strcmp(text, value);

	free(text);
	return same;
}

static int add_param(struct lnx_ep *ep, struct lnx_config *config, size_t row,
		     const struct lnx_conf *def, struct lnx_out *notes)
{
	const char *name = lnx_params[row].name, *text;
	char *value;
	int ret = 0;

	if (lnx_config_param(name, NULL) < 0)
		return 0;
	value = value_of(ep->conf, row);
	if (!value)
		return -ENOMEM;
	/* Without a word for it an import could not unset it again. */
	text = *value || !lnx_conf_live(row) ? value : "none";
	if (*text && (!def || lnx_conf_live(row) || !is_default(def, row, value)))
		ret = lnx_config_set_global(config, name, text);
	if (ret == -EINVAL) {
		lnx_out(notes, "# %s: its value is no text that a file can have\n", name);
		ret = 0;
	}
	free(value);
	return ret;
}

/* What the file or a request says of the rails, which counts more than parameters. */
static int add_rails(const struct lnx_ep *ep, struct lnx_config *config)
{
	int ret = 0;
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail && !ret; i++) {
		struct lnx_rail_credits own = lnx_credits_own(ep->rail[i]);
		char net[LNX_NAME_MAX];

		if ((own.credits != LNX_CONFIG_UNSET ||
		     own.peer_credits != LNX_CONFIG_UNSET) &&
		    lnx_policy_net(ep->rail[i], net, sizeof(net)))
			ret = lnx_config_set_ni(config, net,
						lnx_policy_interface(ep->rail[i]),
						own.credits, own.peer_credits);
	}
	return ret;
}

static int collect(struct lnx_ep *ep, struct lnx_config *config, bool all,
		   struct lnx_out *notes)
{
	struct lnx_conf def;
	size_t i;
	int ret = 0;

	lnx_conf_read(&def, NULL, NULL, NULL);
	for (i = 0; i < lnx_nparams && !ret; i++)
		ret = add_param(ep, config, i, all ? NULL : &def, notes);
	if (!ret && ep->policy.nets)
		ret = lnx_config_set_nets(config, ep->policy.nets);
	if (!ret)
		ret = add_rails(ep, config);
	/* Also empty lists: to import them is to delete what there is. */
	config->has[LNX_CONFIG_NET] = true;
	config->has[LNX_CONFIG_UDSP] = true;
	config->has[LNX_CONFIG_ROUTE] = !ep->native;
	if (!ret && ep->policy.rules)
		ret = lnx_config_set_rules(config, ep->policy.rules);
	if (!ret && ep->policy.gateways)
		ret = lnx_config_set_routes(config, &ep->policy.gateways->table);
	return ret;
}

static int print(const struct lnx_config *config, const char *notes, struct lnx_out *o)
{
	size_t len = lnx_config_print(config, NULL, 0);
	char *text = malloc(len + 1);

	if (!text)
		return -FI_ENOMEM;
	lnx_config_print(config, text, len + 1);
	lnx_out(o, "%s%s", text, notes);
	free(text);
	return 0;
}

int lnx_ctl_export(struct lnx_ep *ep, bool all, struct lnx_out *o)
{
	struct lnx_config *config = lnx_config_create();
	char notes[1024] = "";
	struct lnx_out n = { .buf = notes, .size = sizeof(notes) };
	int ret = config ? collect(ep, config, all, &n) : -ENOMEM;

	ret = ret ? -FI_ENOMEM : print(config, notes, o);
	lnx_config_destroy(config);
	return ret;
}
