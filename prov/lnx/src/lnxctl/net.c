/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl net: the rails of an endpoint, as LNet's nets and local NIs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lnxctl/lnxctl.h"

/* ---- show ---- */

/* Is the interface made of several?  Asked of this host, for processes of it. */
static bool bonded(const struct lnx_state_rail *r)
{
	char path[128];

	if (!r->interface[0] || strchr(r->interface, '/'))
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/bonding", r->interface);
	return !access(path, F_OK);
}

static void put_health(const struct lnx_snap *s, const struct lnx_snap_ep *e,
		       const struct lnx_state_rail *r, struct lnx_doc *map)
{
	static const struct {
		const char *name, *class;
	} rows[] = {
		{ "interrupts", "local_interrupt" }, { "dropped", "local_dropped" },
		{ "aborted", "local_aborted" }, { "no route", "local_no_route" },
		{ "timeouts", "local_timeout" }, { "error", "local_error" },
		{ "network timeout", "network_timeout" },
	};
	struct lnx_doc *m = lnx_doc_map(map, "health stats");
	struct lnxctl_pings pings;
	unsigned i;

	lnx_doc_bool(m, "fatal_error", (r->flags & (LNX_STATE_RAIL_LINK_DOWN |
						    LNX_STATE_RAIL_GONE)) != 0);
	lnx_doc_uint(m, "health value", r->health.value);
	for (i = 0; r->have & LNX_STATE_HAVE_CLASSES && i < LNX_ARRAY_SIZE(rows); i++)
		lnx_doc_uint(m, rows[i].name, lnxctl_failures(s, rows[i].class, r->failed,
							      r->failed_base));
	pings = lnxctl_rail_pings(e, r);
	lnxctl_put_pings(m, &pings);
}

static uint64_t param(const struct lnx_snap_ep *e, const char *name)
{
	const struct lnx_state_param *p = lnx_snap_param(e, name);
	uint64_t v;

	return p && lnxctl_number(p->value, UINT64_MAX, &v) ? v : 0;
}

/* Without a limit, which is 0, less than 0 is left: so many frames are under way. */
static void put_credits(const struct lnx_state_rail *r, struct lnx_doc *m)
{
	const int64_t max = r->credits_max;

	lnx_doc_uint(m, "max_tx_credits", r->credits_max);
	lnx_doc_int(m, "available_tx_credits", max - r->credits_used - r->credits_queued);
	lnx_doc_int(m, "min_tx_credits", max - r->credits_most);
	lnx_doc_uint(m, "tx_q_num_of_buf", r->credits_queued);
}

static void put_tunables(const struct lnx_snap_ep *e, const struct lnx_state_rail *r,
			 struct lnx_doc *map)
{
	struct lnx_doc *m = lnx_doc_map(map, "tunables");

	lnx_doc_uint(m, "peer_timeout", param(e, "transaction_timeout") / 1000);
	lnx_doc_uint(m, "peer_credits", r->peer_credits_max ? r->peer_credits_max :
		     param(e, "window"));
	lnx_doc_uint(m, "peer_buffer_credits", param(e, "rx_buffers"));
	lnx_doc_uint(m, "credits", r->credits_max);
	/* What its core has of ours. */
	lnx_doc_uint(m, "in use", r->busy);
	lnx_doc_uint(m, "receive buffers", r->nposted);
	lnx_doc_uint(m, "bandwidth_mbps", r->link_bps / 1000000);
}

static void put_detail(const struct lnx_state_rail *r, const struct lnx_state_header *h,
		       struct lnx_doc *m)
{
	lnx_doc_int(m, "dev cpt", r->numa_node);
	lnx_doc_int(m, "tcp bonding", bonded(r));
	lnx_doc_printf(m, "CPT", "[%s]", h->cpus);
}

/* What it and other processes of this node tell each other of the rail. */
static void put_board(const struct lnx_state_rail *r, struct lnx_doc *map)
{
	struct lnx_doc *m;

	if (!r->heard_ns && !r->told_ns)
		return;
	m = lnx_doc_map(map, "health board");
	if (r->told_ns)
		lnx_doc_uint(m, "told", r->told);
	if (!r->heard_ns)
		return;
	lnx_doc_uint(m, "heard", r->heard);
	lnx_doc_uint(m, "from process", r->heard_pid);
	if (r->heard_speed)
		lnx_doc_uint(m, "speed_mbps", r->heard_speed / 125000);
	lnx_doc_bool(m, "trusted", (r->health.flags & LNX_STATE_HEALTH_HEARSAY) != 0);
}

/* -v 4: what only lnx has. */
static void put_own(const struct lnx_state_rail *r, struct lnx_doc *map)
{
	struct lnx_doc *m = lnx_doc_map(map, "lnx");
	const uint16_t f = r->health.flags;

	lnx_doc_text(m, "rail", r->name);
	lnx_doc_uint(m, "index", r->index);
	lnx_doc_int(m, "wire index", r->wire_index == UINT32_MAX ? -1 :
		    (int64_t)r->wire_index);
	lnx_doc_uint(m, "port", r->port);
	lnx_doc_uint(m, "numa distance", r->numa);
	lnx_doc_bool(m, "pinned", (f & LNX_STATE_HEALTH_PINNED) != 0);
	lnx_doc_bool(m, "closed", (r->flags & LNX_STATE_RAIL_CLOSED) != 0);
	lnx_doc_bool(m, "reopened", r->reopened_ns != 0);
	lnx_doc_uint(m, "flaps", r->health.flaps);
	put_board(r, m);
}

static void put_rail(struct lnxctl *c, const struct lnx_snap *s,
		     const struct lnx_snap_ep *e, const struct lnx_state_rail *r,
		     struct lnx_doc *list)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_text(m, "nid", r->nid);
	lnx_doc_text(m, "status", lnxctl_rail_up(r) ? "up" : "down");
	if (r->interface[0])
		lnx_doc_text(lnx_doc_map(m, "interfaces"), "0", r->interface);
	if (c->verbose >= 1 && (r->have & LNX_STATE_HAVE_COUNTS))
		lnxctl_put_traffic(m, &r->traffic, &r->base, r->have);
	if (c->verbose >= 2 && (r->have & LNX_STATE_HAVE_OPS))
		lnxctl_put_ops(m, &r->traffic, &r->base);
	if (c->verbose >= 2 && (r->flags & LNX_STATE_RAIL_HEALTH))
		put_health(s, e, r, m);
	if (c->verbose >= 1 && (r->flags & LNX_STATE_RAIL_HEALTH))
		put_credits(r, m);
	if (c->verbose >= 1) {
		put_tunables(e, r, m);
		put_detail(r, &s->h, m);
	}
	if (c->verbose >= 4 && (r->flags & LNX_STATE_RAIL_HEALTH))
		lnxctl_put_udsp(m, r->net_priority, r->nid_priority);
	if (c->verbose >= 4)
		put_own(r, m);
}

static bool wanted(const struct lnxctl *c, const struct lnx_state_rail *r)
{
	const char *net = lnxctl_value(c, "net"), *nid = lnxctl_value(c, "nid");

	return (!net || !strcmp(net, r->net)) && (!nid || lnxctl_rail_is(nid, r));
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	struct lnx_doc *nets = lnx_doc_list(map, "net"), *rails = NULL;
	unsigned i, k;

	for (i = 0; i < e->nrail; i++) {
		for (k = 0; k < i; k++)
			if (!strcmp(e->rail[k].net, e->rail[i].net))
				break;
		if (k < i)
			continue;
		rails = NULL;
		for (k = i; k < e->nrail; k++) {
			struct lnx_doc *m;

			if (strcmp(e->rail[k].net, e->rail[i].net) ||
			    !wanted(c, &e->rail[k]))
				continue;
			if (!rails) {
				m = lnx_doc_map(nets, NULL);
				lnx_doc_text(m, "net type", e->rail[i].net);
				rails = lnx_doc_list(m, "local NI(s)");
			}
			put_rail(c, p->snap, e, &e->rail[k], rails);
		}
	}
	if (!nets->child && (lnxctl_value(c, "net") || lnxctl_value(c, "nid")))
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "it has no such rail; \"net show\" "
			    "lists those it has");
}

static int run_show(struct lnxctl *c)
{
	return lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_net_show = {
	.name = "net show", .args = "[--net NET] [--nid NID] [-v [0..4]]",
	.help = "rails: LNet's nets and local NIs",
	.option = {
		{ "net", "NET", "only this net, such as tcp" },
		{ "nid", "NID", "only rails of that NID or name, '*' and '?' in it" },
	},
	.dates = true, .run = run_show,
};

/* ---- set ---- */

#define CREDITS_MAX	65535u

static bool tunes(const struct lnxctl *c)
{
	return lnxctl_value(c, "credits") || lnxctl_value(c, "peer-credits");
}

static bool set_rail(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		     const char *rail)
{
	const char *credits = lnxctl_value(c, "credits");
	const char *peer = lnxctl_value(c, "peer-credits");
	char words[64], *reply;
	bool good;

	if (tunes(c))
		good = lnxctl_request(c, p, e, 0, &reply, "tune %s%s%s%s%s", rail,
				      credits ? " credits " : "", credits ? credits : "",
				      peer ? " peer_credits " : "", peer ? peer : "");
	else
		good = lnxctl_request(c, p, e, 0, &reply, "health %s %s%s",
				      lnxctl_health_verb(c), rail,
				      lnxctl_health_value(c, words, sizeof(words)));
	if (good)
		free(reply);
	return good;
}

static void set(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	const char *nid = lnxctl_value(c, "nid");
	unsigned i, n = 0;

	(void)map;
	for (i = 0; i < e->nrail; i++) {
		const struct lnx_state_rail *r = &e->rail[i];

		if (!(r->flags & LNX_STATE_RAIL_HEALTH) || !lnxctl_rail_is(nid, r))
			continue;
		n++;
		if (!set_rail(c, p, e, r->name))
			return;
	}
	if (!n)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": no rail with a health has "
			    "that NID or name; \"net show\" lists the rails", nid);
}

static int check_credits(const struct lnxctl *c, const char *name)
{
	const char *text = lnxctl_value(c, name);
	uint64_t v;

	if (!text || !strcmp(text, "default") || lnxctl_number(text, CREDITS_MAX, &v))
		return LNXCTL_OK;
	return lnxctl_usage(c, "--%s \"%s\": must be a whole number from 0, which is no limit, "
			    "to %u, or default", name, text, CREDITS_MAX);
}

static int run_set(struct lnxctl *c)
{
	int ret;

	if (!tunes(c)) {
		ret = lnxctl_health_options(c);
		return ret ? ret : lnxctl_each(c, false, set);
	}
	if (!lnxctl_value(c, "nid"))
		return lnxctl_usage(c, "\"net set\" needs --nid, which says what is set");
	if (lnxctl_value(c, "health") || lnxctl_value(c, "pin") || lnxctl_value(c, "auto") ||
	    lnxctl_value(c, "state"))
		return lnxctl_usage(c, "credits and health are set one after the other");
	ret = check_credits(c, "credits");
	if (!ret)
		ret = check_credits(c, "peer-credits");
	return ret ? ret : lnxctl_each(c, false, set);
}

const struct lnxctl_verb lnxctl_net_set = {
	.name = "net set",
	.args = "--nid NID {--health N|--pin N|--auto|--state up|down|"
		"[--credits N|default] [--peer-credits N|default]}",
	.help = "set the health or the credits of rails",
	.option = {
		{ "nid", "NID", "rails of that NID or name, '*' and '?' in it" },
		{ "health", "N", "the health, 0 to 1000; failures and proofs of life "
		  "change it from there" },
		{ "pin", "N", "the health, and nothing changes it until --auto: an "
		  "administrative weight" },
		{ "auto", NULL, "undo --pin" },
		{ "state", "STATE", "down: --pin 0, which drains the rail; up: --auto" },
		{ "credits", "N", "frames that may be under way over the rail, 0: no limit; "
		  "default: FI_LNX_CREDITS" },
		{ "peer-credits", "N", "the same to one rail of a peer; default: "
		  "FI_LNX_PEER_CREDITS" },
	},
	.asks = true, .run = run_set,
};
