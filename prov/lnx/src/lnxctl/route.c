/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl route: gateways and the nets that they lead to (ROUTES in fi_lnx(7)). */
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* "route tcp2 via 10.77.0.9@tcp1: up; gateway alive, id 0123456789abcdef" */
static void put_route(struct lnx_doc *list, char *line)
{
	static const char gateway[] = "; gateway ", id[] = ", id ";
	struct lnx_doc *m = lnx_doc_map(list, NULL);
	char *route = line + strcspn(line, " "), *why = strstr(line, ": ");
	char *state = why ? strstr(why, gateway) : NULL;
	char *eid = state ? strstr(state, id) : NULL;

	if (!eid)
		return;
	*why = *state = *eid = '\0';
	lnx_doc_text(m, "route", *route ? route + 1 : "");
	lnx_doc_text(m, "state", strncmp(why + 2, "up", 2) ? "down" : "up");
	lnx_doc_text(m, "reason", why + 2);
	lnx_doc_text(m, "gateway", state + sizeof(gateway) - 1);
	lnx_doc_text(m, "gateway id", eid + sizeof(id) - 1);
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_doc *list;
	char *line, *save = NULL, *reply;

	if (!lnxctl_request(c, p, e, 0, &reply, "route show"))
		return;
	list = lnx_doc_list(map, "route");
	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_route(list, line);
	free(reply);
}

static int run_show(struct lnxctl *c)
{
	return lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_route_show = {
	.name = "route show", .args = "",
	.help = "routes, whether they are up, and the state of their gateways",
	.run = run_show,
};
