/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes endpoints as OpenMetrics text.  See metrics.h. */
#include "base/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS	16			/* names, values, NULL */

/* False: there is no such value.  i counts rails, of families of rails. */
typedef bool value_of(const struct lnx_metrics_ep *e, unsigned i, uint64_t *v);

struct labels {
	char pid[16], id[24];
	const char *pair[LABELS];
	unsigned n;
};

static void set_labels(struct labels *l, const struct lnx_metrics_ep *e)
{
	const char *const pairs[] = {
		"pid", l->pid, "program", e->program, "job", e->job, "rank", e->rank,
		"endpoint", l->id,
	};

	snprintf(l->pid, sizeof(l->pid), "%d", e->pid);
	snprintf(l->id, sizeof(l->id), "%016" PRIx64, e->ep->eid);
	memcpy(l->pair, pairs, sizeof(pairs));
	l->n = LNX_ARRAY_SIZE(pairs);
	l->pair[l->n] = NULL;
}

static void add_label(struct labels *l, const char *name, const char *value)
{
	l->pair[l->n++] = name;
	l->pair[l->n++] = value;
	l->pair[l->n] = NULL;
}

/* ---- values ---- */

static bool endpoint_up(const struct lnx_metrics_ep *e, unsigned i, uint64_t *v)
{
	(void)i;
	*v = e->life == LNX_METRICS_LIVES;
	return e->life != LNX_METRICS_UNKNOWN;
}

static bool peers(const struct lnx_metrics_ep *e, unsigned i, uint64_t *v)
{
	(void)i;
	*v = e->ep->npeer;
	return true;
}

static bool recovering(const struct lnx_metrics_ep *e, unsigned i, uint64_t *v)
{
	(void)i;
	*v = e->ep->nrecovery;
	return true;
}

#define RAIL_VALUE(fn, expr, needs)						\
	static bool fn(const struct lnx_metrics_ep *e, unsigned i, uint64_t *v)	\
	{									\
		const struct lnx_state_rail *r = &e->rail[i];			\
										\
		*v = (expr);							\
		return (needs);							\
	}

RAIL_VALUE(sends, r->traffic.send_count, r->have & LNX_STATE_HAVE_COUNTS)
RAIL_VALUE(send_bytes, r->traffic.send_length, r->have & LNX_STATE_HAVE_COUNTS)
RAIL_VALUE(recvs, r->traffic.recv_count, r->have & LNX_STATE_HAVE_COUNTS)
RAIL_VALUE(recv_bytes, r->traffic.recv_length, r->have & LNX_STATE_HAVE_COUNTS)
RAIL_VALUE(health, r->health.value, r->flags & LNX_STATE_RAIL_HEALTH)
RAIL_VALUE(up, lnx_metrics_rail_up(r), true)
/* No limit is no value. */
RAIL_VALUE(credits_max, r->credits_max, r->credits_max)
RAIL_VALUE(peer_credits_max, r->peer_credits_max, r->peer_credits_max)
RAIL_VALUE(credits_used, r->credits_used, r->flags & LNX_STATE_RAIL_HEALTH)
RAIL_VALUE(credits_most, r->credits_most, r->flags & LNX_STATE_RAIL_HEALTH)
RAIL_VALUE(credits_queued, r->credits_queued, r->flags & LNX_STATE_RAIL_HEALTH)

static const struct family {
	const char *name, *help;
	enum lnx_metric_type type;
	value_of *value;
	bool of_rail;
} families[] = {
	{ "lnx_endpoint_up", "Whether the process of an endpoint lives: 0 or 1",
	  LNX_METRIC_GAUGE, endpoint_up, false },
	{ "lnx_peers", "Peers with a session", LNX_METRIC_GAUGE, peers, false },
	{ "lnx_recovering", "Rails and paths with a health below 1000",
	  LNX_METRIC_GAUGE, recovering, false },
	{ "lnx_rail_sent_messages", "Messages, writes and atomics sent over a rail", LNX_METRIC_COUNTER,
	  sends, true },
	{ "lnx_rail_sent_bytes", "Payload bytes sent over a rail", LNX_METRIC_COUNTER,
	  send_bytes, true },
	{ "lnx_rail_received_messages", "Messages, writes and atomics received over a rail, and reads",
	  LNX_METRIC_COUNTER, recvs, true },
	{ "lnx_rail_received_bytes", "Payload bytes received over a rail",
	  LNX_METRIC_COUNTER, recv_bytes, true },
	{ "lnx_rail_health", "Health of a rail, 0 to 1000", LNX_METRIC_GAUGE, health,
	  true },
	{ "lnx_rail_up", "Whether a rail is up: 0 or 1", LNX_METRIC_GAUGE, up, true },
	{ "lnx_rail_tx_credits_limit", "Frames that may be under way over a rail, "
	  "FI_LNX_CREDITS; without a limit there is no sample", LNX_METRIC_GAUGE, credits_max,
	  true },
	{ "lnx_rail_peer_tx_credits_limit", "Frames that may be under way over a rail to one "
	  "rail of a peer, FI_LNX_PEER_CREDITS; without a limit there is no sample",
	  LNX_METRIC_GAUGE, peer_credits_max, true },
	{ "lnx_rail_tx_credits_used", "Frames under way over a rail", LNX_METRIC_GAUGE,
	  credits_used, true },
	{ "lnx_rail_tx_credits_used_highest", "The most frames that were under way over a rail "
	  "or waited for its credits at one time", LNX_METRIC_GAUGE, credits_most, true },
	{ "lnx_rail_tx_credits_queued", "Frames that wait for credits of a rail",
	  LNX_METRIC_GAUGE, credits_queued, true },
};

/* ---- samples ---- */

static void put_rails(struct lnx_out *o, const struct family *f,
		      const struct lnx_metrics_ep *e)
{
	unsigned i;

	for (i = 0; i < e->nrail; i++) {
		struct labels l;
		uint64_t v;

		if (!f->value(e, i, &v))
			continue;
		set_labels(&l, e);
		add_label(&l, "rail", e->rail[i].name);
		lnx_openmetrics_sample(o, f->name, f->type, l.pair, v);
	}
}

static void put_family(struct lnx_out *o, const struct family *f,
		       const struct lnx_metrics_ep *ep, unsigned n)
{
	unsigned i;

	lnx_openmetrics_family(o, f->name, f->type, f->help);
	for (i = 0; i < n; i++) {
		struct labels l;
		uint64_t v;

		if (f->of_rail) {
			put_rails(o, f, &ep[i]);
		} else if (f->value(&ep[i], 0, &v)) {
			set_labels(&l, &ep[i]);
			lnx_openmetrics_sample(o, f->name, f->type, l.pair, v);
		}
	}
}

/* Which link it uses: a label, as usual for what is no number. */
static void put_info(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n)
{
	unsigned i;

	lnx_openmetrics_family(o, "lnx_endpoint", LNX_METRIC_GAUGE, "1 for each endpoint");
	for (i = 0; i < n; i++) {
		struct labels l;

		set_labels(&l, &ep[i]);
		add_label(&l, "link", ep[i].ep->link);
		lnx_openmetrics_sample(o, "lnx_endpoint", LNX_METRIC_GAUGE, l.pair, 1);
	}
}

static void put_missing_routes(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n)
{
	unsigned i;

	lnx_openmetrics_family(
		o, "lnx_missing_route", LNX_METRIC_GAUGE,
		"1 for an endpoint to which frames come that no route leads back for");
	for (i = 0; i < n; i++) {
		struct labels l;

		if (!ep[i].ep->missing_route[0])
			continue;
		set_labels(&l, &ep[i]);
		add_label(&l, "route", ep[i].ep->missing_route);
		lnx_openmetrics_sample(o, "lnx_missing_route", LNX_METRIC_GAUGE, l.pair, 1);
	}
}

/* ---- counters ---- */

/* Processes may be of different releases, and other users write these names: so they are
 * looked up, each in the same time. */
struct counter {			/* of an endpoint */
	unsigned ep, k;
	unsigned next;			/* index of the next one of that name, + 1; or 0 */
};

struct named {
	const char *name, *help;
	unsigned first, last;		/* index in counter[], + 1 */
};

struct counters {
	struct counter *counter;
	struct named *named;		/* in the order in which they were found */
	unsigned *slot;			/* by hash: index in named[], + 1; 0: none */
	unsigned n, nnamed, mask;
};

/* May a counter be shown?  One that is no name, or that is a family above, would spoil the
 * whole text. */
static bool may_show(const char *name)
{
	static const char *const others[] = { "endpoint", "missing_route" };
	unsigned i;

	if (!*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		return false;
	for (i = 0; i < LNX_ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i]))
			return false;
	for (i = 0; i < LNX_ARRAY_SIZE(families); i++)
		if (!strcmp(families[i].name + strlen("lnx_"), name))
			return false;
	return true;
}

static uint64_t hash(const char *s)
{
	uint64_t h = 0;

	for (; *s; s++)
		h = lnx_mix64(h ^ (uint8_t)*s);
	return h;
}

static struct named *find(struct counters *c, const char *name, const char *help)
{
	unsigned at = (unsigned)hash(name) & c->mask;

	for (; c->slot[at]; at = (at + 1) & c->mask)
		if (!strcmp(c->named[c->slot[at] - 1].name, name))
			return &c->named[c->slot[at] - 1];
	c->named[c->nnamed] = (struct named){ .name = name, .help = help };
	c->slot[at] = ++c->nnamed;
	return &c->named[c->nnamed - 1];
}

static void add(struct counters *c, const struct lnx_metrics_ep *ep, unsigned i, unsigned k)
{
	const char *help, *name = ep[i].name(ep[i].names, k, &help);
	struct named *f = find(c, name, help);

	/* There twice in one endpoint: the first counts. */
	if (f->last && c->counter[f->last - 1].ep == i)
		return;
	c->counter[c->n++] = (struct counter){ .ep = i, .k = k };
	if (f->last)
		c->counter[f->last - 1].next = c->n;
	else
		f->first = c->n;
	f->last = c->n;
}

static void put_counter(struct lnx_out *o, const struct counters *c, const struct named *f,
			const struct lnx_metrics_ep *ep)
{
	char full[96];
	unsigned at;

	snprintf(full, sizeof(full), "lnx_%s", f->name);
	lnx_openmetrics_family(o, full, LNX_METRIC_COUNTER, f->help);
	for (at = f->first; at; at = c->counter[at - 1].next) {
		const struct lnx_metrics_ep *e = &ep[c->counter[at - 1].ep];
		struct labels l;

		set_labels(&l, e);
		lnx_openmetrics_sample(o, full, LNX_METRIC_COUNTER, l.pair,
				       e->value[c->counter[at - 1].k]);
	}
}

static bool put_counters(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n)
{
	struct counters c = { .mask = 1 };
	unsigned i, k, all = 1;

	for (i = 0; i < n; i++)
		all += ep[i].ncounter;
	while (c.mask < 2 * all)
		c.mask = c.mask * 2 + 1;
	c.counter = calloc(all, sizeof(*c.counter));
	c.named = calloc(all, sizeof(*c.named));
	c.slot = calloc(c.mask + 1u, sizeof(*c.slot));
	if (c.counter && c.named && c.slot) {
		for (i = 0; i < n; i++)
			for (k = 0; k < ep[i].ncounter; k++)
				add(&c, ep, i, k);
		for (i = 0; i < c.nnamed; i++)
			if (may_show(c.named[i].name))
				put_counter(o, &c, &c.named[i], ep);
	}
	all = c.counter && c.named && c.slot;
	free(c.counter);
	free(c.named);
	free(c.slot);
	return all;
}

bool lnx_metrics_print(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n)
{
	unsigned i;
	bool ok;

	put_info(o, ep, n);
	put_missing_routes(o, ep, n);
	for (i = 0; i < LNX_ARRAY_SIZE(families); i++)
		put_family(o, &families[i], ep, n);
	ok = put_counters(o, ep, n);
	lnx_openmetrics_end(o);
	return ok;
}
