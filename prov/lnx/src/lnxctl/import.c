/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lnxctl import: gives running processes the configuration of a file, as lnx.conf(5)
 * describes it.
 *
 * The process exports what it has, so that names of nets in the file are read as it
 * knows them, and so that what is as it should be is left alone.  Everything is checked
 * before anything is changed.
 */
#include "lnxctl/import.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/plan.h"

#define FILE_BYTES	(1u << 20)	/* as the provider reads */
#define LATE_BYTES	600

/* The file; for all processes. */
static char *text;
static size_t text_len;

struct import {
	struct lnxctl *c;
	struct lnx_proc *p;
	const struct lnx_snap_ep *e;
	struct lnx_config *old, *new;
	char late[LATE_BYTES];		/* keys that count at the start only */
};

static bool refuse(const struct import *im, const char *why)
{
	lnxctl_fail(im->c, im->p, LNXCTL_REFUSED, -EINVAL, "%s", why);
	return false;
}

/* ---- the file ---- */

static int read_file(const struct lnxctl *c, const char *name)
{
	FILE *f = strcmp(name, "-") ? fopen(name, "re") : stdin;
	int err = errno;

	if (!f)
		return lnxctl_refuse(c, -err, "%s: it cannot be read: %s", name,
				     strerror(err));
	text = lnx_must(malloc(FILE_BYTES + 1));
	errno = 0;
	text_len = fread(text, 1, FILE_BYTES + 1, f);
	err = ferror(f) ? errno : 0;
	if (f != stdin)
		fclose(f);
	if (err)
		return lnxctl_refuse(c, -err, "%s: it cannot be read: %s", name,
				     strerror(err));
	if (text_len > FILE_BYTES)
		return lnxctl_refuse(c, -EFBIG, "%s: it is longer than 1 MiB", name);
	return LNXCTL_OK;
}

/* ---- what there is, and what there is to be ---- */

static bool read_old(struct import *im)
{
	struct lnx_config_error e = { 0 };
	char *reply, why[700];
	int ret;

	if (!lnxctl_request(im->c, im->p, im->e, 0, &reply, "export all"))
		return false;
	ret = lnx_config_read(reply, strlen(reply), NULL, &im->old, &e);
	free(reply);
	if (!ret)
		return true;
	lnx_config_error_print(&e, "what the process exports", why, sizeof(why));
	return refuse(im, why);
}

/* Values as the process writes them: "1k" as "1024". */
static bool canonical(struct import *im)
{
	struct lnx_conf conf;
	char why[600];
	size_t i, len;

	lnx_conf_read(&conf, NULL, NULL, NULL);
	for (i = 0; i < lnx_nparams; i++) {
		char *value;

		if (!im->new->global[i])
			continue;
		if (lnx_conf_set(&conf, i, im->new->global[i], why, sizeof(why)))
			return refuse(im, why);
		len = lnx_conf_print(&conf, i, NULL, 0);
		value = lnx_must(malloc(len + 1));
		lnx_conf_print(&conf, i, value, len + 1);
		im->new->global[i] = lnx_must(lnx_config_copy(im->new, value, len));
		free(value);
	}
	return true;
}

static bool read_new(struct import *im)
{
	struct lnx_config_error e = { 0 };
	char why[900];

	if (!lnx_config_read(text, text_len, &im->old->nets, &im->new, &e))
		return canonical(im);
	lnx_config_error_print(&e, strcmp(im->c->arg[0], "-") ? im->c->arg[0] :
			       "standard input", why, sizeof(why));
	lnx_client_printable(why, strlen(why));
	return refuse(im, why);
}

/* ---- what can change now ---- */

static void add_late(struct import *im, const char *section, const char *name)
{
	size_t n = strlen(im->late);

	snprintf(im->late + n, sizeof(im->late) - n, "%s%s%s%s", n ? ", " : "", section,
		 *name ? "." : "", name);
}

static bool differs(const struct import *im, size_t row)
{
	const char *value = im->new->global[row], *has = im->old->global[row];

	return value && strcmp(value, has ? has : "");
}

static bool live(const struct import *im, size_t row)
{
	const struct lnx_state_param *p = lnx_snap_param(im->e, lnx_params[row].name);

	return p && (p->flags & LNX_STATE_PARAM_LIVE);
}

static bool nets_differ(const struct import *im)
{
	const struct lnx_nets *a = &im->old->nets, *b = &im->new->nets;
	char of_a[LNX_NET_TEXT_MAX + LNX_NET_NAME_MAX + 16];
	char of_b[LNX_NET_TEXT_MAX + LNX_NET_NAME_MAX + 16];
	unsigned i;

	for (i = 0; i < a->n && i < b->n; i++) {
		lnx_net_print(&a->net[i], of_a, sizeof(of_a));
		lnx_net_print(&b->net[i], of_b, sizeof(of_b));
		if (strcmp(of_a, of_b))
			return true;
	}
	return a->n != b->n;
}

/* Of the sections that a process reads when it starts, those that have something. */
static void find_late(struct import *im)
{
	const struct lnx_config *n = im->new;
	size_t i;

	if (n->has[LNX_CONFIG_NETS] && nets_differ(im))
		add_late(im, lnx_config_names[LNX_CONFIG_NETS], "");
	for (i = 0; i < lnx_nparams; i++)
		if (differs(im, i) && !live(im, i))
			add_late(im, lnx_config_names[LNX_CONFIG_GLOBAL],
				 lnx_params[i].name);
}

/* Would the parameters fit together? */
static bool check_fit(const struct import *im)
{
	struct lnx_conf conf;
	char why[600];
	size_t i;

	lnx_conf_read(&conf, NULL, NULL, NULL);
	for (i = 0; i < lnx_nparams; i++) {
		const char *value = differs(im, i) && live(im, i) ? im->new->global[i] :
								    im->old->global[i];

		if (value && lnx_conf_set(&conf, i, value, why, sizeof(why)))
			return refuse(im, why);
	}
	return !lnx_plan_check(&conf, why, sizeof(why)) || refuse(im, why);
}

static bool check(struct import *im)
{
	char why[LATE_BYTES + 200];

	find_late(im);
	if (*im->late && !lnxctl_value(im->c, "live")) {
		snprintf(why, sizeof(why), "%s: only the start of a process can change "
			 "that; nothing was changed; --live leaves it out",
			 im->late);
		return refuse(im, why);
	}
	return check_fit(im);
}

/* ---- settings ---- */

/* 0; a refusal, with its sentence in *a; or no answer, after lnxctl_fail. */
static int set(const struct import *im, size_t row, const char *value,
	       struct lnx_answer *a)
{
	unsigned wait_ms = im->c->wait_ms ? im->c->wait_ms : LNXCTL_REQUEST_WAIT_MS;
	char *request;
	int ret = asprintf(&request, "set %s %s", lnx_params[row].name, value);

	lnx_must(ret < 0 ? NULL : request);
	ret = lnx_client_ask(im->p, im->e->ep.eid, request, wait_ms, wait_ms, a);
	free(request);
	if (ret)
		lnxctl_fail(im->c, im->p, LNXCTL_NO_ANSWER, ret, "%s",
			    lnx_client_error(ret));
	return ret ? ret : a->result;
}

/* Give the parameters back what they had, so far as the process takes it. */
static void undo(const struct import *im, const bool *done)
{
	struct lnx_answer a;
	size_t i;

	for (i = 0; i < lnx_nparams; i++)
		if (done[i] && im->old->global[i] &&
		    !set(im, i, im->old->global[i], &a))
			lnx_answer_free(&a);
}

/*
 * Set all that differ.  While one is refused because of another that has its old value
 * still, the others go on, and it is tried again.
 */
static bool set_all(const struct import *im)
{
	bool *done = lnx_must(calloc(lnx_nparams, sizeof(*done)));
	char why[600] = "";
	unsigned left = UINT_MAX, before = 0;
	size_t i;
	int ret;

	while (left && left != before) {
		before = left;
		left = 0;
		for (i = 0; i < lnx_nparams; i++) {
			struct lnx_answer a = { 0 };

			if (done[i] || !differs(im, i) || !live(im, i))
				continue;
			ret = set(im, i, im->new->global[i], &a);
			if (ret && !a.result) {
				free(done);
				return false;
			}
			if (ret)
				snprintf(why, sizeof(why), "%s", a.text);
			left += ret != 0;
			done[i] = !ret;
			lnx_answer_free(&a);
		}
	}
	if (left) {
		undo(im, done);
		refuse(im, why);
	}
	free(done);
	return !left;
}

/* ---- tunables of interfaces ---- */

/* What a configuration says of the interface of a rail, in its net, or that it says nothing. */
static struct lnx_config_ni tunables(const struct lnx_config *c, const struct lnx_state_rail *r)
{
	unsigned i, k, at;

	for (i = 0; i < c->n_net; i++)
		for (k = 0; !strcmp(c->net[i].net, r->net) && k < c->net[i].n; k++)
			for (at = 0; at < c->net[i].ni[k].n; at++)
				if (!strcmp(c->net[i].ni[k].interface[at], r->interface))
					return c->net[i].ni[k];
	return (struct lnx_config_ni){ .credits = LNX_CONFIG_UNSET,
				       .peer_credits = LNX_CONFIG_UNSET };
}

static const char *credits_text(uint32_t v, char buf[16])
{
	if (v == LNX_CONFIG_UNSET)
		return "default";
	snprintf(buf, 16, "%" PRIu32, v);
	return buf;
}

/* Give rails the credits of `to` that are others in `from`.  False after lnxctl_fail. */
static bool tune_all(const struct import *im, const struct lnx_config *from,
		     const struct lnx_config *to)
{
	char a[16], b[16], *reply;
	unsigned i;

	for (i = 0; i < im->e->nrail; i++) {
		const struct lnx_state_rail *r = &im->e->rail[i];
		struct lnx_config_ni has = tunables(from, r), ni = tunables(to, r);

		if (!r->interface[0] || (has.credits == ni.credits &&
					 has.peer_credits == ni.peer_credits))
			continue;
		if (!lnxctl_request(im->c, im->p, im->e, 0, &reply,
				    "tune %s credits %s peer_credits %s", r->name,
				    credits_text(ni.credits, a),
				    credits_text(ni.peer_credits, b)))
			return false;
		free(reply);
	}
	return true;
}

/* ---- the command ---- */

static void put_diff(const struct import *im, struct lnx_doc *map)
{
	struct lnx_doc *list = lnx_doc_list(map, "changes");
	char *lines, *line, *save = NULL;
	size_t len = 0, i;

	/* Parameters that the file does not have stay. */
	for (i = 0; i < lnx_nparams; i++)
		if (!im->new->global[i])
			im->new->global[i] = im->old->global[i];
	if (lnx_config_diff(im->old, im->new, NULL, 0, &len))
		lnx_must(NULL);
	lines = lnx_must(malloc(len + 1));
	if (lnx_config_diff(im->old, im->new, lines, len + 1, &len))
		lnx_must(NULL);
	for (line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		lnx_doc_text(list, NULL, line);
	free(lines);
}

static void change(struct import *im, struct lnx_doc *map)
{
	bool routes = im->new->has[LNX_CONFIG_ROUTE];

	if (routes && !lnxctl_import_routes(im->c, im->p, im->e, im->old, im->new, map))
		return;
	if (!set_all(im)) {
		if (routes)
			lnxctl_import_routes(im->c, im->p, im->e, im->new, im->old, NULL);
		return;
	}
	if (im->new->has[LNX_CONFIG_NET] && !tune_all(im, im->old, im->new))
		return;
	if (im->new->has[LNX_CONFIG_UDSP])
		lnxctl_import_rules(im->c, im->p, im->e, im->new);
}

static void one(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	struct import im = { .c = c, .p = p, .e = e };
	char unused[200];

	if (read_old(&im) && read_new(&im) && check(&im)) {
		if (lnxctl_value(c, "diff"))
			put_diff(&im, map);
		if (*im.late)
			lnx_doc_text(map, "at start only", im.late);
		if (lnx_config_unused(im.new, unused, sizeof(unused)))
			lnx_doc_text(map, "not used", unused);
		if (!lnxctl_value(c, "dry-run"))
			change(&im, map);
	}
	lnx_config_destroy(im.new);
	lnx_config_destroy(im.old);
}

static int run(struct lnxctl *c)
{
	int ret = read_file(c, c->arg[0]);

	if (!ret)
		ret = lnxctl_each(c, false, one);
	free(text);
	return ret;
}

const struct lnxctl_verb lnxctl_import = {
	.name = "import", .args = "[--dry-run] [--diff] [--live] FILE",
	.help = "give running processes the settings and rules of a file (lnx.conf)",
	.option = {
		{ "dry-run", NULL, "check everything, change nothing" },
		{ "diff", NULL, "print what changes: - goes, + comes, ~ another priority, > "
		  "another place" },
		{ "live", NULL, "leave out what only the start of a process can change, "
		  "instead of refusing it" },
	},
	.min_args = 1, .max_args = 1, .asks = true, .run = run,
};
