/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl debug recovery: what is being recovered.  Nothing is a good result. */
#include <inttypes.h>

#include "lnxctl/lnxctl.h"

static void put_health(struct lnx_doc *m, const struct lnx_state_health *h,
		       struct lnxctl_pings pings)
{
	lnx_doc_uint(m, "health value", h->value);
	lnx_doc_text(m, "status", h->flags & LNX_STATE_HEALTH_DOWN ? "down" : "up");
	lnxctl_put_pings(m, &pings);
}

static void put_local(const struct lnx_snap_ep *e, struct lnx_doc *list)
{
	unsigned i;

	for (i = 0; i < e->nrail; i++) {
		struct lnx_doc *m;

		if (!(e->rail[i].flags & LNX_STATE_RAIL_HEALTH) ||
		    !(e->rail[i].health.flags & LNX_STATE_HEALTH_RECOVERY))
			continue;
		m = lnx_doc_map(list, NULL);
		lnx_doc_text(m, "nid", e->rail[i].nid);
		put_health(m, &e->rail[i].health, lnxctl_rail_pings(e, &e->rail[i]));
	}
}

static void put_remote(const struct lnx_snap_peer *peer, struct lnx_doc *list)
{
	struct lnxctl_remote r[LNXCTL_REMOTES];
	unsigned n = lnxctl_remotes(peer, r, LNXCTL_REMOTES), i;

	for (i = 0; i < n; i++) {
		struct lnx_doc *m;

		if (!(r[i].first->remote.flags & LNX_STATE_HEALTH_RECOVERY))
			continue;
		m = lnx_doc_map(list, NULL);
		lnx_doc_text(m, "nid", r[i].first->nid);
		put_health(m, &r[i].first->remote, lnxctl_remote_pings(peer, &r[i]));
	}
}

static void put_paths(const struct lnx_snap_ep *e, const struct lnx_snap_peer *peer,
		      struct lnx_doc *list)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_state_path *p = peer->path[i];
		struct lnxctl_pings pings = { 0 };
		struct lnx_doc *m;

		if (!(p->health.flags & LNX_STATE_HEALTH_RECOVERY))
			continue;
		m = lnx_doc_map(list, NULL);
		lnx_doc_text(m, "rail", p->rail < e->nrail ? e->rail[p->rail].name : "?");
		lnx_doc_text(m, "nid", p->nid);
		lnx_doc_text(m, "state", lnxctl_path_state(p));
		lnxctl_add_pings(&pings, p);
		put_health(m, &p->health, pings);
	}
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	bool local = lnxctl_value(c, "local") != NULL;
	bool peer = lnxctl_value(c, "peer") != NULL;
	struct lnx_doc *remotes, *paths;
	unsigned i;

	(void)p;
	if (local || !peer)
		put_local(e, lnx_doc_list(map, "local NI recovery"));
	if (local && !peer)
		return;
	remotes = lnx_doc_list(map, "peer NI recovery");
	paths = lnx_doc_list(map, "path recovery");
	for (i = 0; i < e->npeer; i++) {
		put_remote(&e->peer[i], remotes);
		put_paths(e, &e->peer[i], paths);
	}
}

static int run(struct lnxctl *c)
{
	return lnxctl_each(c, true, show);
}

const struct lnxctl_verb lnxctl_debug_recovery = {
	.name = "debug recovery", .args = "[--local] [--peer]",
	.help = "rails and paths whose health is below 1000, and their pings",
	.option = {
		{ "local", NULL, "only rails of the endpoint" },
		{ "peer", NULL, "only rails of peers, and paths" },
	},
	.run = run,
};
