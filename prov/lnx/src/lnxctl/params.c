/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lnxctl params: parameters of an endpoint, their values and where these come from.
 * Without a process: of this environment, as a process that is started in it has them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "conf/conf.h"
#include "lnxctl/lnxctl.h"

const char *lnxctl_origin(unsigned origin)
{
	switch (origin) {
	case LNX_STATE_DEFAULT:
		return "default";
	case LNX_STATE_ENVIRONMENT:
		return "environment";
	case LNX_STATE_CONFIG:
		return "libfabric.conf";
	case LNX_STATE_DERIVED:
		return "derived";
	case LNX_STATE_SET:
		return "set";
	case LNX_STATE_FILE:
		return "configuration file";
	default:
		return "unknown";
	}
}

/* Names are taken as "set" takes them, in either case; and patterns. */
static bool names(const char *word, const char *name)
{
	char lower[64];
	unsigned divide;
	size_t i;

	word = lnxctl_param_name(word, &divide);
	for (i = 0; word[i] && i < sizeof(lower) - 1; i++)
		lower[i] = (char)tolower((unsigned char)word[i]);
	lower[i] = '\0';
	return !word[i] && lnx_glob(lower, name);
}

static bool wanted(const struct lnxctl *c, const char *name)
{
	unsigned i;

	for (i = 0; i < c->narg; i++)
		if (names(c->arg[i], name))
			return true;
	return !c->narg;
}

static bool is_kind(const struct lnxctl *c, const struct lnx_state_param *p)
{
	return !lnxctl_value(c, "live") || (p->flags & LNX_STATE_PARAM_LIVE);
}

static void put_more(struct lnx_doc *m, const char *name)
{
	int row = lnx_conf_find(name, strlen(name));
	char allowed[LNX_PARAM_ALLOWED_BYTES];

	if (row < 0)
		return;			/* of another release */
	lnx_doc_text(m, "default", lnx_params[row].def);
	lnx_doc_text(m, "allowed", lnx_conf_allowed(&lnx_params[row], allowed,
						    sizeof(allowed)));
	lnx_doc_text(m, "help", lnx_params[row].help);
}

static void put(struct lnxctl *c, struct lnx_doc *list, const struct lnx_state_param *p)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_text(m, "name", p->name);
	lnx_doc_printf(m, "value", "%s%s", p->flags & LNX_STATE_PARAM_SECRET ?
		       "(not shown)" : p->value,
		       p->flags & LNX_STATE_PARAM_CUT ? "..." : "");
	lnx_doc_text(m, "unit", p->unit);
	lnx_doc_text(m, "origin", lnxctl_origin(p->origin));
	lnx_doc_text(m, "set", p->flags & LNX_STATE_PARAM_LIVE ? "any time" : "at start");
	if (c->verbose)
		put_more(m, p->name);
}

/* Names that are asked for and are none, in a sentence; "": there are none. */
static const char *not_there(const struct lnxctl *c, const struct lnx_snap_ep *e, char *buf,
			     size_t size)
{
	unsigned i, k, n = e ? e->nparam : (unsigned)lnx_nparams;
	const char *known;

	buf[0] = '\0';
	for (i = 0; i < c->narg && !buf[0]; i++) {
		for (k = 0; k < n && !names(c->arg[i], e ? e->param[k].name :
							lnx_params[k].name); k++)
			;
		if (k < n)
			continue;
		known = lnx_conf_nearest(c->arg[i], strlen(c->arg[i]));
		snprintf(buf, size, "\"%.40s\": there is no such parameter%s%s", c->arg[i],
			 known ? "; the nearest one is " : "", known ? known : "");
	}
	return buf;
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_doc *list = lnx_doc_list(map, "params");
	char why[160];
	unsigned i;

	for (i = 0; i < e->nparam; i++)
		if (wanted(c, e->param[i].name) && is_kind(c, &e->param[i]))
			put(c, list, &e->param[i]);
	if (*not_there(c, e, why, sizeof(why)))
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "%s", why);
}

/* ---- of this environment ---- */

static void warn(void *arg, const char *sentence)
{
	(void)arg;
	fprintf(stderr, "lnxctl: %s\n", sentence);
}

static int show_environment(struct lnxctl *c)
{
	struct lnx_conf conf;
	struct lnx_doc *list;
	char why[160];
	size_t i;
	int warnings = lnxctl_environment(c, &conf, warn, NULL);

	c->doc = lnx_doc_new();
	list = lnx_doc_list(c->doc, "params");
	for (i = 0; i < lnx_nparams; i++) {
		struct lnx_state_param p = { 0 };

		if (!wanted(c, lnx_params[i].name))
			continue;
		snprintf(p.name, sizeof(p.name), "%s", lnx_params[i].name);
		snprintf(p.unit, sizeof(p.unit), "%s", lnx_params[i].unit);
		lnx_conf_print(&conf, i, p.value, sizeof(p.value));
		p.origin = conf.origin[i] & LNX_CONF_DERIVED ? LNX_STATE_DERIVED :
			   conf.origin[i] & LNX_CONF_IN_FILE ? LNX_STATE_FILE :
			   conf.origin[i] & LNX_CONF_GIVEN ? LNX_STATE_ENVIRONMENT :
							     LNX_STATE_DEFAULT;
		p.flags = (lnx_conf_secret(i) ? LNX_STATE_PARAM_SECRET : 0) |
			  (lnx_conf_live(i) ? LNX_STATE_PARAM_LIVE : 0);
		if (is_kind(c, &p))
			put(c, list, &p);
	}
	if (*not_there(c, NULL, why, sizeof(why)))
		return lnxctl_refuse(c, -ENOENT, "%s", why);
	errno = 0;
	if (!lnx_render(c->doc, c->format, lnxctl_width(c), stdout))
		return lnxctl_write_failed(c);
	return warnings ? LNXCTL_REFUSED : LNXCTL_OK;
}

static int run(struct lnxctl *c)
{
	if (lnxctl_value(c, "env"))
		return show_environment(c);
	return lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_params = {
	.name = "params", .args = "[-v] [--env] [--live] [NAME...]",
	.help = "parameters, their values, and where these come from",
	.option = {
		{ "env", NULL, "as a process has them that is started in this "
		  "environment" },
		{ "live", NULL, "only those that \"set\" can change at any time" },
	},
	.max_args = 64, .run = run,
};
