/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes the routes of an endpoint those of a configuration.  What is missing is added before
 * what has to go is deleted, so that a peer is never without the routes that stay or come.
 */
#include <stdlib.h>
#include <string.h>

#include "lnxctl/import.h"

#define BATCH_BYTES	7000u		/* routes in one request, but for the last one */

struct list {
	struct lnx_route_spec *spec;	/* owned */
	unsigned n;
};

static int take(void *arg, const struct lnx_route_spec *spec, struct lnx_span w,
		struct lnx_refusal *r)
{
	struct list *l = arg;

	(void)w, (void)r;
	l->spec = lnx_must(realloc(l->spec, (l->n + 1ul) * sizeof(*l->spec)));
	l->spec[l->n++] = *spec;
	return 0;
}

/* Each route by itself.  The configuration was checked when it was read. */
static void expand(const struct lnx_config *config, const struct lnx_nets *nets,
		   struct list *l)
{
	struct lnx_refusal r;
	unsigned i;

	*l = (struct list){ 0 };
	for (i = 0; i < config->n_route; i++)
		lnx_config_route_each(&config->route[i], nets, take, l, &r);
}

static const struct lnx_route_spec *find(const struct list *l,
					 const struct lnx_route_spec *spec)
{
	unsigned i;

	for (i = 0; i < l->n; i++)
		if (lnx_route_same(&l->spec[i], spec))
			return &l->spec[i];
	return NULL;
}

static bool differs(const struct list *l, const struct lnx_route_spec *spec)
{
	const struct lnx_route_spec *other = find(l, spec);

	return !other || other->hop != spec->hop || other->priority != spec->priority;
}

struct sending {
	struct lnxctl *c;
	struct lnx_proc *p;
	const struct lnx_snap_ep *e;
	struct lnx_doc *map;		/* what was passed over; NULL: is not said */
	const char *verb;
	char text[BATCH_BYTES + LNX_ROUTE_TEXT_MAX];
	size_t n;
};

static bool flush(struct sending *s)
{
	char *reply, *line, *save = NULL;
	struct lnx_doc *list = NULL;

	if (!s->n)
		return true;
	s->n = 0;
	if (!lnxctl_request(s->c, s->p, s->e, 0, &reply, "route %s %s", s->verb, s->text))
		return false;
	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (s->map && !list)
			list = lnx_doc_list(s->map, "routes passed over");
		if (list)
			lnx_doc_text(list, NULL, line);
	}
	free(reply);
	return true;
}

static bool put(struct sending *s, const struct lnx_route_spec *spec)
{
	if (s->n)
		s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, "; ");
	s->n += lnx_route_print(spec, s->text + s->n, sizeof(s->text) - s->n);
	return s->n < BATCH_BYTES || flush(s);
}

static bool change(struct sending *s, const struct list *from, const struct list *to)
{
	bool good = true;
	unsigned i;

	s->verb = "put";
	for (i = 0; good && i < to->n; i++)
		if (differs(from, &to->spec[i]))
			good = put(s, &to->spec[i]);
	good = good && flush(s);
	s->verb = "del";
	for (i = 0; good && i < from->n; i++)
		if (!find(to, &from->spec[i]))
			good = put(s, &from->spec[i]);
	return good && flush(s);
}

bool lnxctl_import_routes(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
			  const struct lnx_config *old, const struct lnx_config *new,
			  struct lnx_doc *map)
{
	const struct lnx_nets *nets = &old->nets;
	struct sending *s = lnx_must(calloc(1, sizeof(*s)));
	struct list from, to;
	bool good;

	*s = (struct sending){ .c = c, .p = p, .e = e, .map = map };
	expand(old, nets, &from);
	expand(new, new->has[LNX_CONFIG_NETS] ? &new->nets : nets, &to);
	good = change(s, &from, &to);
	free(from.spec);
	free(to.spec);
	free(s);
	return good;
}
