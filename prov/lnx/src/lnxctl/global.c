/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl global show, set: parameters by LNet's names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/conf.h"
#include "lnxctl/lnxctl.h"

/* LNet's name, and ours.  divide: LNet counts seconds where we count ms.  only_set: "global
 * show" has it by another name. */
struct alias {
	const char *lnet, *own;
	unsigned divide;
	bool only_set;
};

static const struct alias aliases[] = {
	{ "numa_range", "numa_range", 1, false },
	{ "max_intf", "max_rails", 1, false },
	{ "max_interfaces", "max_rails", 1, true },
	{ "discovery", "discovery", 1, false },
	{ "retry_count", "retry_count", 1, false },
	{ "transaction_timeout", "transaction_timeout", 1000, false },
	{ "health_sensitivity", "health_sensitivity", 1, false },
	{ "recovery_interval", "recovery_ping_interval", 1000, false },
	{ "recovery_limit", "recovery_limit", 1, false },
};

static void put(struct lnx_doc *m, const struct alias *a, const struct lnx_snap_ep *e)
{
	const struct lnx_state_param *p = lnx_snap_param(e, a->own);
	uint64_t v;

	if (!p)
		return;			/* another release has no such parameter */
	if (!lnxctl_number(p->value, UINT64_MAX, &v))
		lnx_doc_text(m, a->lnet, p->value);
	else if (v % a->divide)
		lnx_doc_real(m, a->lnet, (double)v / a->divide);
	else
		lnx_doc_uint(m, a->lnet, v / a->divide);
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_doc *m = lnx_doc_map(map, "global");
	unsigned i;

	(void)c, (void)p;
	for (i = 0; i < LNX_ARRAY_SIZE(aliases); i++)
		if (!aliases[i].only_set)
			put(m, &aliases[i], e);
	lnx_doc_real(m, "lnd_timeout", (double)e->ep.rail_ns / 1e9);
}

static int run_show(struct lnxctl *c)
{
	return lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_global_show = {
	.name = "global show", .args = "",
	.help = "LNet's global settings, in its units (s), and the derived timeout",
	.dates = true, .run = run_show,
};

/* ---- set ---- */

/* Milliseconds of "5", "5s" or "500ms", if the number has such a unit; per: what a bare
 * number means.  False: it is for the process to judge. */
static bool in_ms(const char *value, uint64_t per, uint64_t *ms)
{
	size_t digits = strspn(value, "0123456789");
	char number[24];

	if (!digits || digits >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)digits, value);
	if (!lnxctl_number(number, UINT32_MAX, ms))
		return false;
	if (!strcmp(value + digits, "s"))
		per = 1000;
	else if (!strcmp(value + digits, "ms"))
		per = 1;
	else if (value[digits])
		return false;
	*ms *= per;
	return true;
}

const char *lnxctl_param_name(const char *name, unsigned *divide)
{
	unsigned i;

	*divide = 1;
	if (!strncasecmp(name, "FI_LNX_", 7))
		name += 7;
	for (i = 0; i < LNX_ARRAY_SIZE(aliases); i++)
		if (!strcasecmp(aliases[i].lnet, name) && strcasecmp(name, aliases[i].own)) {
			*divide = aliases[i].divide;
			return aliases[i].own;
		}
	return name;
}

/* Our name, and the value in our unit. */
static void translate(const char *name, const char *value, char *buf, size_t size)
{
	const char *unit = "";
	unsigned per;
	uint64_t ms;
	int row;

	name = lnxctl_param_name(name, &per);
	row = lnx_conf_find(name, strlen(name));
	if (row >= 0)
		unit = lnx_params[row].unit;
	if (!strcmp(unit, "ms") && in_ms(value, per, &ms))
		snprintf(buf, size, "%s %" PRIu64, name, ms);
	else if (!strcmp(unit, "s") && in_ms(value, 1000, &ms) && !(ms % 1000))
		snprintf(buf, size, "%s %" PRIu64, name, ms / 1000);
	else
		snprintf(buf, size, "%s %s", name, value);
}

static void set(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	char text[LNX_STATE_REQUEST], *reply;

	(void)map;
	translate(c->arg[0], c->arg[1], text, sizeof(text));
	if (lnxctl_request(c, p, e, 0, &reply, "set %s", text))
		free(reply);
}

static int run_set(struct lnxctl *c)
{
	if (!*c->arg[0] || strpbrk(c->arg[0], " \t\n"))
		return lnxctl_usage(c, "\"%s\": must be the name of a parameter",
				    c->arg[0]);
	if (!*c->arg[1] || strpbrk(c->arg[1], "\n"))
		return lnxctl_usage(c, "\"%s\": must be a value", c->arg[1]);
	return lnxctl_each(c, false, set);
}

const struct lnxctl_verb lnxctl_set = {
	.name = "set", .args = "NAME VALUE",
	.help = "set a parameter that may be set at any time (\"params\" says which)",
	.min_args = 2, .max_args = 2, .asks = true, .run = run_set,
};
