/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl stats: counters of an endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* LNet's, in its order; those of lnx follow. */
static const char *const lnet[] = {
	"msgs_alloc", "msgs_max", "rst_alloc", "errors", "send_count", "resend_count",
	"response_timeout_count", "local_interrupt_count", "local_dropped_count",
	"local_aborted_count", "local_no_route_count", "local_timeout_count",
	"local_error_count", "remote_dropped_count", "remote_error_count",
	"remote_timeout_count", "network_timeout_count", "recv_count", "route_count",
	"drop_count", "send_length", "recv_length", "route_length", "drop_length",
};

static bool is_lnet(const char *name)
{
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(lnet); i++)
		if (!strcmp(lnet[i], name))
			return true;
	return false;
}

/* Frames that were dropped for whatever reason. */
static uint64_t drops(const struct lnx_snap *s, const struct lnx_snap_ep *e)
{
	static const char *const names[] = {
		"dup_drops", "ooo_drops", "unsolicited_drops", "key_drops", "bad_frames",
		"stale_frames", "mem_drops",
	};
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(names); i++)
		n += lnx_snap_value(s, e, names[i]);
	return n;
}

/* And their bytes, which are counted by rail. */
static uint64_t drop_bytes(const struct lnx_snap_ep *e)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < e->nrail; i++)
		n += e->rail[i].traffic.drop_length - e->rail[i].base.drop_length;
	return n;
}

/* LNet counts all messages, whatever they take. */
static uint64_t sum(const struct lnx_snap *s, const struct lnx_snap_ep *e, const char *a,
		    const char *b)
{
	return lnx_snap_value(s, e, a) + lnx_snap_value(s, e, b);
}

static uint64_t value(const struct lnx_snap *s, const struct lnx_snap_ep *e,
		      const char *name)
{
	if (!strcmp(name, "msgs_alloc"))
		return e->ep.msgs_alloc;
	if (!strcmp(name, "msgs_max"))
		return e->ep.msgs_max;
	if (!strcmp(name, "rst_alloc"))
		return e->ep.rst_alloc;
	if (!strcmp(name, "errors"))
		return lnx_snap_value(s, e, "failed");
	if (!strcmp(name, "drop_count"))
		return drops(s, e);
	if (!strcmp(name, "drop_length"))
		return drop_bytes(e);
	if (!strcmp(name, "send_count"))
		return sum(s, e, name, "direct_sends");
	if (!strcmp(name, "recv_count"))
		return sum(s, e, name, "direct_recvs");
	if (!strcmp(name, "send_length"))
		return sum(s, e, name, "direct_send_length");
	if (!strcmp(name, "recv_length"))
		return sum(s, e, name, "direct_recv_length");
	return lnx_snap_value(s, e, name);
}

static void put_own(const struct lnx_snap *s, const struct lnx_snap_ep *e, bool all,
		    struct lnx_doc *map)
{
	struct lnx_doc *m = lnx_doc_map(map, "lnx statistics");
	unsigned i;

	for (i = 0; i < s->ncounter; i++) {
		uint64_t v = e->now.value[i] - e->base.value[i];

		/* Sums above have a part of these. */
		if (!is_lnet(s->counter[i].name) ||
		    !strncmp(s->counter[i].name, "send_", 5) ||
		    !strncmp(s->counter[i].name, "recv_", 5)) {
			if (v || all)
				lnx_doc_uint(m, s->counter[i].name, v);
		}
	}
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_doc *m = lnx_doc_map(map, "statistics");
	uint64_t now = lnxctl_now();
	char text[32];
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(lnet); i++)
		lnx_doc_uint(m, lnet[i], value(p->snap, e, lnet[i]));
	put_own(p->snap, e, c->verbose > 0, map);
	if (e->base.when_ns) {
		lnxctl_age(text, sizeof(text), now - LNX_MIN(now, e->base.when_ns));
		lnx_doc_printf(map, "since", "a reset %s ago", text);
	}
}

static int run_show(struct lnxctl *c)
{
	return lnxctl_each(c, false, show);
}

static void reset(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		  struct lnx_doc *map)
{
	char *reply;

	(void)map;
	if (lnxctl_request(c, p, e, 0, &reply, "stats reset"))
		free(reply);
}

static int run_reset(struct lnxctl *c)
{
	return lnxctl_each(c, false, reset);
}

const struct lnxctl_verb lnxctl_stats_show = {
	.name = "stats show", .args = "[-v]",
	.help = "counters; with -v also those of lnx that are 0",
	.dates = true, .run = run_show,
};

const struct lnxctl_verb lnxctl_stats_reset = {
	.name = "stats reset", .args = "",
	.help = "show counters and latencies from now on; health stays",
	.asks = true, .run = run_reset,
};
