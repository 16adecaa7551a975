/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl peer: the peers of an endpoint, as LNet's peers and peer NIs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* ---- show ---- */

static const char *life_name(uint8_t life)
{
	switch (life) {
	case LNX_STATE_LIFE_OPEN:
		return "open";
	case LNX_STATE_LIFE_CLOSING:
		return "closing";
	case LNX_STATE_LIFE_CLOSED:
		return "closed";
	case LNX_STATE_LIFE_DEAD:
		return "dead";
	default:
		return "ended";
	}
}

static void put_health(const struct lnx_snap *s, const struct lnx_snap_peer *peer,
		       const struct lnxctl_remote *r, struct lnx_doc *map)
{
	static const struct {
		const char *name, *class;
	} rows[] = {
		{ "dropped", "remote_dropped" }, { "timeout", "remote_timeout" },
		{ "error", "remote_error" }, { "network timeout", "network_timeout" },
	};
	struct lnx_doc *m = lnx_doc_map(map, "health stats");
	struct lnxctl_pings pings;
	unsigned i;

	lnx_doc_uint(m, "health value", r->first->remote.value);
	for (i = 0; r->have & LNX_STATE_HAVE_CLASSES && i < LNX_ARRAY_SIZE(rows); i++)
		lnx_doc_uint(m, rows[i].name, lnxctl_failures(s, rows[i].class,
							      r->failed, NULL));
	pings = lnxctl_remote_pings(peer, r);
	lnxctl_put_pings(m, &pings);
}

/* Those of all paths to one of the peer's rails.  What is queued waits for the path in use.
 * Without a limit of their own all rails share the peer's window. */
static void put_credits(const struct lnx_snap_peer *peer, const struct lnxctl_remote *r,
			struct lnx_doc *m)
{
	int64_t max = peer->p.window, used = peer->p.in_flight, most = 0, limit = 0, own = 0;
	uint32_t queued = peer->p.queued;
	bool current = false;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_state_path *path = peer->path[i];

		if (path->remote_rail != r->index)
			continue;
		limit += path->credits_max;
		own += path->credits_used;
		most += path->credits_most;
		current |= (path->flags & LNX_STATE_PATH_CURRENT) != 0;
	}
	if (limit) {
		max = limit;
		used = own;
		queued = current ? queued : 0;
	}
	lnx_doc_int(m, "max_ni_tx_credits", max);
	lnx_doc_int(m, "available_tx_credits", max - used - queued);
	lnx_doc_int(m, "min_tx_credits", max - most);
	lnx_doc_uint(m, "tx_q_num_of_buf", queued);
}

static void put_rules(const struct lnx_snap_ep *e, const struct lnx_state_path *path,
		      struct lnx_doc *map)
{
	struct lnx_doc *m = lnxctl_put_udsp(map, path->net_priority, path->nid_priority);
	struct lnx_doc *list = NULL;
	unsigned i;

	for (i = 0; i < e->nrail; i++) {
		if (e->rail[i].index >= 32 || !(path->preferred >> e->rail[i].index & 1))
			continue;
		if (!list)
			list = lnx_doc_list(m, "Preferred source NIDs");
		lnx_doc_text(list, NULL, e->rail[i].nid);
	}
}

static void put_remote(struct lnxctl *c, const struct lnx_snap *s,
		       const struct lnx_snap_ep *e,
		       const struct lnx_snap_peer *peer, const struct lnxctl_remote *r,
		       struct lnx_doc *list)
{
	static const struct lnx_state_traffic none;
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_text(m, "nid", r->first->nid);
	lnx_doc_text(m, "state", r->up ? "up" : "down");
	if (c->verbose >= 1) {
		put_credits(peer, r, m);
		if (r->have & LNX_STATE_HAVE_COUNTS)
			lnxctl_put_traffic(m, &r->traffic, &none, r->have);
	}
	if (c->verbose >= 2) {
		if (r->have & LNX_STATE_HAVE_OPS)
			lnxctl_put_ops(m, &r->traffic, &none);
		put_health(s, peer, r, m);
	}
	if (c->verbose >= 4) {
		put_rules(e, r->first, m);
		lnx_doc_uint(m, "index", r->index);
		lnx_doc_bool(m, "pinned",
			     (r->first->remote.flags & LNX_STATE_HEALTH_PINNED) != 0);
		lnx_doc_bool(m, "drain",
			     (r->first->remote.flags & LNX_STATE_HEALTH_DRAIN) != 0);
	}
}

static void put_own(const struct lnx_snap_peer *peer, struct lnx_doc *map)
{
	const struct lnx_state_peer *p = &peer->p;
	struct lnx_doc *m = lnx_doc_map(map, "lnx");

	lnx_doc_printf(m, "id", "%016" PRIx64, p->eid);
	if (p->addr == UINT64_MAX)
		lnx_doc_text(m, "addr", "none");
	else
		lnx_doc_uint(m, "addr", p->addr);
	lnx_doc_text(m, "way", p->flags & LNX_STATE_PEER_LOCAL ? "direct" :
		     p->npath ? "framed" : "none");
	if (p->flags & LNX_STATE_PEER_LOCAL)
		lnx_doc_uint(m, "pid", p->pid);
	lnx_doc_bool(m, "answered", (p->flags & LNX_STATE_PEER_MET) != 0);
	lnx_doc_bool(m, "unsolicited", (p->flags & LNX_STATE_PEER_UNSOLICITED) != 0);
	lnx_doc_uint(m, "frames in flight", p->in_flight);
	lnx_doc_uint(m, "bytes in flight", p->in_flight_bytes);
	lnx_doc_uint(m, "frames queued", p->queued);
	lnx_doc_uint(m, "large messages", p->large);
	lnx_doc_uint(m, "next frame", p->next);
	lnx_doc_uint(m, "expected frame", p->expected);
	lnx_doc_uint(m, "paths", p->npath);
}

static void put_peer(struct lnxctl *c, const struct lnx_snap *s,
		     const struct lnx_snap_ep *e,
		     const struct lnx_snap_peer *peer, struct lnx_doc *list)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL), *remotes;
	struct lnxctl_remote r[LNXCTL_REMOTES];
	char nid[LNX_STATE_NAME];
	unsigned n = lnxctl_remotes(peer, r, LNXCTL_REMOTES), i;

	lnxctl_peer_nid(peer, nid, sizeof(nid));
	lnx_doc_text(m, "primary nid", nid);
	lnx_doc_bool(m, "Multi-Rail", n > 1);
	if (c->verbose >= 3)
		lnx_doc_text(m, "peer state", life_name(peer->p.life));
	remotes = lnx_doc_list(m, "peer ni");
	for (i = 0; i < n; i++)
		put_remote(c, s, e, peer, &r[i], remotes);
	if (c->verbose >= 3)
		put_own(peer, m);
}

static void put_rest(const struct lnx_snap_ep *e, struct lnx_doc *map)
{
	if (e->npeer_total > e->npeer)
		lnx_doc_uint(map, "peers not shown", e->npeer_total - e->npeer);
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	const char *nid = lnxctl_value(c, "nid");
	struct lnx_doc *list = lnx_doc_list(map, "peer");
	unsigned i;

	for (i = 0; i < e->npeer; i++)
		if (!nid || lnxctl_peer_is(nid, &e->peer[i]))
			put_peer(c, p->snap, e, &e->peer[i], list);
	if (nid && !list->child)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it has met no such peer; "
			    "\"peer show\" lists those it has", nid);
	put_rest(e, map);
}

static int run_show(struct lnxctl *c)
{
	return lnxctl_each(c, true, show);
}

const struct lnxctl_verb lnxctl_peer_show = {
	.name = "peer show", .args = "[--nid PEER] [-v [0..4]]",
	.help = "the peers that an endpoint has met, and their rails",
	.option = {
		{ "nid", "PEER", "only peers with that NID ('*' and '?' in it), endpoint "
		  "id, or number in the address vector" },
	},
	.dates = true, .run = run_show,
};

/* ---- set ---- */

/* Its rail of that NID, or all, if it was named by another name.  False: an error. */
static bool set_peer(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		     const struct lnx_snap_peer *peer, const char *nid, unsigned *n)
{
	struct lnxctl_remote r[LNXCTL_REMOTES];
	unsigned count = lnxctl_remotes(peer, r, LNXCTL_REMOTES), i;
	bool by_nid = strchr(nid, '@') != NULL || strchr(nid, '*') != NULL;
	char words[64], *reply;

	for (i = 0; i < count; i++) {
		if (by_nid && !lnxctl_nid_is(nid, r[i].first->nid))
			continue;
		(*n)++;
		if (!lnxctl_request(c, p, e, 0, &reply,
				    "health %s %" PRIu32 "@%016" PRIx64 "%s",
				    lnxctl_health_verb(c), r[i].index, peer->p.eid,
				    lnxctl_health_value(c, words, sizeof(words))))
			return false;
		free(reply);
	}
	return true;
}

static void set(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	const char *nid = lnxctl_value(c, "nid");
	unsigned i, n = 0;

	(void)map;
	for (i = 0; i < e->npeer; i++)
		if (lnxctl_peer_is(nid, &e->peer[i]) &&
		    !set_peer(c, p, e, &e->peer[i], nid, &n))
			return;
	if (!n)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it has met no peer with such "
			    "a rail; \"peer show\" lists them", nid);
}

static int run_set(struct lnxctl *c)
{
	int ret = lnxctl_health_options(c);

	return ret ? ret : lnxctl_each(c, true, set);
}

const struct lnxctl_verb lnxctl_peer_set = {
	.name = "peer set",
	.args = "--nid PEER {--health N|--pin N|--auto|--state up|down}",
	.help = "set the health of peers' rails",
	.option = {
		{ "nid", "PEER", "rails of peers with that NID ('*' and '?' in it), or all "
		  "rails of the peer with that endpoint id or number" },
		{ "health", "N", "as of \"net set\"" },
		{ "pin", "N", "as of \"net set\"" },
		{ "auto", NULL, "as of \"net set\"" },
		{ "state", "STATE", "as of \"net set\"" },
	},
	.asks = true, .run = run_set,
};
