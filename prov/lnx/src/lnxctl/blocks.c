/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocks that several verbs print, with LNet's names.  See lnxctl.h. */
#include <stdio.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

void lnxctl_put_traffic(struct lnx_doc *map, const struct lnx_state_traffic *now,
			const struct lnx_state_traffic *base, uint32_t have)
{
	struct lnx_doc *m = lnx_doc_map(map, "statistics");

	lnx_doc_uint(m, "send_count", now->send_count - base->send_count);
	lnx_doc_uint(m, "recv_count", now->recv_count - base->recv_count);
	if (have & LNX_STATE_HAVE_DROPS)
		lnx_doc_uint(m, "drop_count", now->drop_count - base->drop_count);
	lnx_doc_uint(m, "send_length", now->send_length - base->send_length);
	lnx_doc_uint(m, "recv_length", now->recv_length - base->recv_length);
	if (have & LNX_STATE_HAVE_DROPS)
		lnx_doc_uint(m, "drop_length", now->drop_length - base->drop_length);
}

static void put_one(struct lnx_doc *map, const char *key, const uint64_t *now,
		    const uint64_t *base)
{
	static const char *const names[] = { "put", "get", "reply", "ack", "hello" };
	struct lnx_doc *m = lnx_doc_map(map, key);
	unsigned i;

	for (i = 0; i < LNX_STATE_NOPS; i++)
		lnx_doc_uint(m, names[i], now[i] - base[i]);
}

void lnxctl_put_ops(struct lnx_doc *map, const struct lnx_state_traffic *now,
		    const struct lnx_state_traffic *base)
{
	put_one(map, "sent_stats", now->sent, base->sent);
	put_one(map, "received_stats", now->received, base->received);
	put_one(map, "dropped_stats", now->dropped, base->dropped);
}

struct lnx_doc *lnxctl_put_udsp(struct lnx_doc *map, uint32_t net_priority,
				uint32_t nid_priority)
{
	struct lnx_doc *m = lnx_doc_map(map, "udsp info");

	lnx_doc_int(m, "net priority", (int64_t)net_priority - 1);
	lnx_doc_int(m, "nid priority", (int64_t)nid_priority - 1);
	return m;
}

void lnxctl_add_pings(struct lnxctl_pings *sum, const struct lnx_state_path *path)
{
	const struct lnx_state_health *h = &path->health;

	sum->count = LNX_MAX(sum->count, h->npings);
	if (h->next_ns && (!sum->next_ns || h->next_ns < sum->next_ns))
		sum->next_ns = h->next_ns;
}

void lnxctl_put_pings(struct lnx_doc *map, const struct lnxctl_pings *pings)
{
	uint64_t now = lnxctl_now();

	lnx_doc_uint(map, "ping_count", pings->count);
	if (pings->next_ns)
		lnx_doc_uint(map, "next_ping_ms", pings->next_ns > now ?
			     (pings->next_ns - now) / 1000000 : 0);
}

struct lnxctl_pings lnxctl_rail_pings(const struct lnx_snap_ep *e,
				      const struct lnx_state_rail *r)
{
	struct lnxctl_pings sum = { 0 };
	unsigned i, k;

	for (i = 0; i < e->npeer; i++)
		for (k = 0; k < e->peer[i].npath; k++)
			if (e->peer[i].path[k]->rail == r->index)
				lnxctl_add_pings(&sum, e->peer[i].path[k]);
	return sum;
}

struct lnxctl_pings lnxctl_remote_pings(const struct lnx_snap_peer *peer,
					const struct lnxctl_remote *r)
{
	struct lnxctl_pings sum = { 0 };
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->remote_rail == r->index)
			lnxctl_add_pings(&sum, peer->path[i]);
	return sum;
}

void lnxctl_put_latency(struct lnx_doc *map, const char *key,
			const struct lnx_state_latency *l)
{
	struct lnx_doc *m, *h;
	unsigned i;
	char below[32];

	if (!l->samples)
		return;
	m = lnx_doc_map(map, key);
	lnx_doc_uint(m, "samples", l->samples);
	lnx_doc_real(m, "min_us", (double)l->min_ns / 1e3);
	lnx_doc_real(m, "avg_us", (double)l->sum_ns / (double)l->samples / 1e3);
	lnx_doc_real(m, "max_us", (double)l->max_ns / 1e3);
	h = lnx_doc_map(m, "histogram_us");
	for (i = 0; i < LNX_STATE_BUCKETS; i++) {
		if (!l->bucket[i])
			continue;
		snprintf(below, sizeof(below), i + 1 < LNX_STATE_BUCKETS ?
			 "below %u" : "from %u",
			 1u << (i + 1 < LNX_STATE_BUCKETS ? i : i - 1));
		lnx_doc_uint(h, below, l->bucket[i]);
	}
}

void lnxctl_add_traffic(struct lnx_state_traffic *sum, const struct lnx_state_traffic *t)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)t;
	size_t i;

	for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

uint64_t lnxctl_failures(const struct lnx_snap *snap, const char *class,
			 const uint64_t *now, const uint64_t *base)
{
	int i = lnx_snap_class(snap, class);

	return i < 0 ? 0 : now[i] - (base ? base[i] : 0);
}

unsigned lnxctl_remotes(const struct lnx_snap_peer *peer, struct lnxctl_remote *out,
			unsigned max)
{
	unsigned i, k, j, n = 0;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_state_path *p = peer->path[i];

		for (k = 0; k < n && out[k].index != p->remote_rail; k++)
			;
		if (k == n && n == max)
			break;
		if (k == n)
			out[n++] = (struct lnxctl_remote){
				.index = p->remote_rail, .first = p, .have = p->have,
			};
		lnxctl_add_traffic(&out[k].traffic, &p->traffic);
		for (j = 0; j < LNX_STATE_CLASSES; j++)
			out[k].failed[j] += p->failed[j];
		out[k].up |= (p->state == LNX_STATE_PATH_UP ||
			      p->state == LNX_STATE_PATH_IDLE) &&
			     !(p->flags & (LNX_STATE_PATH_LINK_DOWN |
					   LNX_STATE_PATH_REMOTE_DOWN));
	}
	return n;
}
