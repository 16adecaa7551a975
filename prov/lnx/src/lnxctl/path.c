/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl path show: the paths to peers, which LNet has no word for. */
#include <errno.h>
#include <inttypes.h>

#include "lnxctl/lnxctl.h"

static void put_health(struct lnx_doc *m, const struct lnx_state_health *h)
{
	uint64_t now = lnxctl_now();

	lnx_doc_uint(m, "health", h->value);
	if (h->flags & LNX_STATE_HEALTH_PINNED)
		lnx_doc_bool(m, "pinned", true);
	if (h->flags & LNX_STATE_HEALTH_RECOVERY)
		lnx_doc_uint(m, "ping_count", h->npings);
	if (h->next_ns > now)
		lnx_doc_uint(m, "next_ping_ms", (h->next_ns - now) / 1000000);
}

static void put_numbers(const struct lnx_state_path *p, struct lnx_doc *m)
{
	lnx_doc_uint(m, "rank", p->rank);
	lnx_doc_uint(m, "share", p->share);
	lnx_doc_uint(m, "sent_bytes", p->sent_bytes);
	lnx_doc_uint(m, "delivered_bytes", p->delivered_bytes);
	lnx_doc_uint(m, "received_bytes", p->received_bytes);
	lnx_doc_uint(m, "reading_bytes", p->read_bytes);
	lnx_doc_uint(m, "link_mbps", p->link_bps / 1000000);
	lnx_doc_uint(m, "send_rate_mbps", p->send_rate / 125000);
	lnx_doc_uint(m, "read_rate_mbps", p->read_rate / 125000);
	lnx_doc_uint(m, "srtt_us", p->srtt_ns / 1000);
	lnx_doc_uint(m, "answer_us", p->answer_ns / 1000);
}

static void put_path(struct lnxctl *c, const struct lnx_snap_ep *e,
		     const struct lnx_snap_peer *peer, const struct lnx_state_path *p,
		     struct lnx_doc *list)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_printf(m, "peer", "%016" PRIx64, peer->p.eid);
	lnx_doc_uint(m, "path", p->index);
	lnx_doc_text(m, "rail", p->rail < e->nrail ? e->rail[p->rail].name : "?");
	lnx_doc_text(m, "nid", p->nid);
	lnx_doc_text(m, "state", lnxctl_path_state(p));
	put_health(m, &p->health);
	lnx_doc_bool(m, "current", (p->flags & LNX_STATE_PATH_CURRENT) != 0);
	if (p->down_ns) {
		uint64_t now = lnxctl_now();

		lnx_doc_uint(m, "down_ms", (now - LNX_MIN(now, p->down_ns)) / 1000000);
	}
	if (c->verbose >= 1)
		put_numbers(p, m);
	if (c->verbose >= 2 && (p->have & LNX_STATE_HAVE_LATENCY)) {
		lnxctl_put_latency(m, "latency of answers", &p->ack);
		lnxctl_put_latency(m, "latency of replies", &p->reply);
	}
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	const char *nid = lnxctl_value(c, "nid");
	struct lnx_doc *list = lnx_doc_list(map, "path");
	bool any = false;
	unsigned i, k;

	for (i = 0; i < e->npeer; i++) {
		if (nid && !lnxctl_peer_is(nid, &e->peer[i]))
			continue;
		any = true;
		for (k = 0; k < e->peer[i].npath; k++)
			put_path(c, e, &e->peer[i], e->peer[i].path[k], list);
	}
	if (nid && !any)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it has met no such peer; "
			    "\"peer show\" lists those it has", nid);
}

static int run(struct lnxctl *c)
{
	return lnxctl_each(c, true, show);
}

const struct lnxctl_verb lnxctl_path_show = {
	.name = "path show", .args = "[--nid PEER] [-v [0..2]]",
	.help = "the paths to peers: pairs of a local and a remote rail",
	.option = {
		{ "nid", "PEER", "only to peers with that NID ('*' and '?' in it), "
		  "endpoint id, or number in the address vector" },
	},
	.dates = true, .run = run,
};
