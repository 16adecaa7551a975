/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl info: what a process is, and what its endpoints use. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "conf/routes.h"
#include "lnxctl/lnxctl.h"

static void put_time(struct lnx_doc *map, const char *key, uint64_t wall_ns)
{
	time_t t = (time_t)(wall_ns / 1000000000u);
	struct tm tm;
	char text[64];

	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		lnx_doc_text(map, key, text);
}

static void put_process(struct lnxctl *c, struct lnx_proc *p, struct lnx_doc *map)
{
	const struct lnx_state_header *h = &p->snap->h;
	struct lnx_doc *m = lnx_doc_map(map, "info");

	(void)c;
	lnx_doc_int(m, "pid", p->file.pid);
	lnx_doc_text(m, "program", h->program);
	lnx_doc_text(m, "host", h->host);
	lnx_doc_uint(m, "uid", h->uid);
	if (h->rank[0])
		lnx_doc_text(m, "rank", h->rank);
	if (h->job[0])
		lnx_doc_text(m, "job", h->job);
	lnx_doc_text(m, "lnx", h->lnx);
	if (h->module[0])
		lnx_doc_text(m, "file", h->module);
	lnx_doc_printf(m, "libfabric", "%" PRIu32 ".%" PRIu32, h->fi_version >> 16,
		       h->fi_version & 0xffff);
	lnx_doc_text(m, "cpus", h->cpus);
	put_time(m, "first endpoint", h->opened_wall_ns);
	lnx_doc_text(m, "segment", p->path);
	if (p->snap->torn)
		lnx_doc_uint(m, "torn records", p->snap->torn);
}

static const char *progress(const struct lnx_state_ep *e)
{
	return e->flags & LNX_STATE_EP_THREAD ? "by a helper thread" :
						"by the application";
}

/* A route each, of those that "; " is between. */
static void put_routes(struct lnx_doc *map, const char *text)
{
	struct lnx_doc *list;
	char route[LNX_ROUTE_TEXT_MAX];

	if (!*text)
		return;
	list = lnx_doc_list(map, "routes");
	while (*text) {
		const char *end = strstr(text, "; ");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		snprintf(route, sizeof(route), "%.*s", (int)len, text);
		lnx_doc_text(list, NULL, route);
		text += len + (end ? 2 : 0);
	}
}

/* Those that are not as by default, and where that comes from; "params" has all. */
static void put_params(const struct lnx_snap_ep *e, struct lnx_doc *m)
{
	struct lnx_doc *list = NULL;
	unsigned i;

	for (i = 0; i < e->nparam; i++) {
		const struct lnx_state_param *p = &e->param[i];

		if (p->origin == LNX_STATE_DEFAULT)
			continue;
		if (!list)
			list = lnx_doc_map(m, "parameters");
		lnx_doc_printf(list, p->name, "%s%s (%s)", p->flags & LNX_STATE_PARAM_SECRET ?
			       "not shown" : p->value, p->flags & LNX_STATE_PARAM_CUT ? "..." : "",
			       lnxctl_origin(p->origin));
	}
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_doc *m, *list;
	uint64_t now = lnxctl_now();
	char text[32];
	unsigned i;

	(void)c, (void)p;
	m = lnx_doc_map(map, "endpoint info");
	lnx_doc_printf(m, "id", "%016" PRIx64, e->ep.eid);
	lnx_doc_uint(m, "number", e->ep.number);
	lnx_doc_text(m, "link", e->ep.link);
	lnx_doc_text(m, "address", e->ep.address);
	lnx_doc_text(m, "operations", e->ep.flags & LNX_STATE_EP_NATIVE ?
		     "of the core providers" : "of lnx");
	lnx_doc_text(m, "progress", progress(&e->ep));
	put_time(m, "enabled", e->ep.enabled_wall_ns);
	lnxctl_age(text, sizeof(text), now - LNX_MIN(now, e->ep.seen_ns));
	lnx_doc_text(m, "last progress", text);
	lnx_doc_uint(m, "peers", e->ep.npeer);
	lnx_doc_uint(m, "addresses", e->ep.naddr);
	list = lnx_doc_list(m, "rails");
	for (i = 0; i < e->nrail; i++)
		lnx_doc_text(list, NULL, e->rail[i].name);
	put_params(e, m);
	put_routes(m, e->ep.routes);
	if (e->ep.missing_route[0])
		lnx_doc_text(m, "missing route", e->ep.missing_route);
}

static int run(struct lnxctl *c)
{
	c->process = put_process;
	return lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_info = {
	.name = "info", .args = "",
	.help = "versions, link, address and rails of a process",
	.run = run,
};
