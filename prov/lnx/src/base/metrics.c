/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes endpoints as OpenMetrics text.  See metrics.h. */
#include "base/metrics.h"

#include <inttypes.h>
#include <stdio.h>
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

static int find(const struct lnx_metrics_ep *e, const char *name)
{
	const char *help;
	unsigned i;

	for (i = 0; i < e->ncounter; i++)
		if (!strcmp(e->name(e->names, i, &help), name))
			return (int)i;
	return -1;
}

static void put_counter(struct lnx_out *o, const char *name, const char *help,
			const struct lnx_metrics_ep *ep, unsigned n)
{
	char full[96];
	unsigned i;

	snprintf(full, sizeof(full), "lnx_%s", name);
	lnx_openmetrics_family(o, full, LNX_METRIC_COUNTER, help);
	for (i = 0; i < n; i++) {
		int at = find(&ep[i], name);
		struct labels l;

		if (at < 0)
			continue;
		set_labels(&l, &ep[i]);
		lnx_openmetrics_sample(o, full, LNX_METRIC_COUNTER, l.pair, ep[i].value[at]);
	}
}

/* Did an endpoint before this one have that counter?  Processes may be of different
 * releases. */
static bool is_new(const struct lnx_metrics_ep *ep, unsigned upto, const char *name)
{
	unsigned i;

	for (i = 0; i < upto; i++)
		if (find(&ep[i], name) >= 0)
			return false;
	return true;
}

/* May the k-th counter be shown?  Other users write these names: one that is no name, that is
 * there twice, or that is a family above would spoil the whole text. */
static bool may_show(const struct lnx_metrics_ep *e, unsigned k, const char *name)
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
	return find(e, name) == (int)k;
}

void lnx_metrics_print(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n)
{
	unsigned i, k;

	put_info(o, ep, n);
	put_missing_routes(o, ep, n);
	for (i = 0; i < LNX_ARRAY_SIZE(families); i++)
		put_family(o, &families[i], ep, n);
	for (i = 0; i < n; i++)
		for (k = 0; k < ep[i].ncounter; k++) {
			const char *help, *name = ep[i].name(ep[i].names, k, &help);

			if (may_show(&ep[i], k, name) && is_new(ep, i, name))
				put_counter(o, name, help, ep, n);
		}
	lnx_openmetrics_end(o);
}
