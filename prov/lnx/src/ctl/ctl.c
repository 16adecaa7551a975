/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Publishes an endpoint.  See ctl.h.  Uses ctl/state.c and ctl/publish.c. */
#include "ctl/ctl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/interval.h"
#include "ctl/mailbox.h"
#include "ctl/publish.h"
#include "ctl/settings.h"
#include "ctl/state.h"
#include "obj/counting.h"

/* Passes between two calls, while there are few a second, or much to do; and else. */
#define PASSES_MIN	LNX_SLOW_PASSES
#define PASSES_MAX	256u
/* Peers that are published without a reader; and with one. */
#define PEERS_QUIET	256u
#define PEERS_MAX	16384u
#define PATHS_MAX	65536u
#define PEERS_FIRST	32u
/* Peers of one pass without a reader. */
#define PEERS_STEP	16u

struct lnx_ctl {
	pid_t pid;			/* that made it; not the child of a fork */
	uint32_t number;
	/* Fixed tables. */
	struct lnx_state_area area;
	struct lnx_state_own ep_table, counters_table, base_table, param_table, rail_table;
	struct lnx_state_ep ep;		/* as it was written last */
	struct lnx_state_counters *counters, *base;	/* private */
	struct lnx_state_rail rail[LNX_RAILS_MAX];
	bool params;			/* they were published, and so many changes */
	uint32_t nset;
	struct lnx_mailbox_side mailbox;
	/* Rules: memory for them is made with the first one. */
	struct lnx_state_area rules;
	struct lnx_state_own rule_table;
	struct lnx_state_rule *rule;	/* as they were written last, rule_table.t.capacity */
	uint32_t rules_seen;		/* generation of those; 0: none */
	/* Peers and paths. */
	struct lnx_state_area peers, paths;
	struct lnx_state_own peer_table, path_table;
	struct walk {
		bool on;
		uint64_t number, began_ns;
		uint32_t bucket, mask;	/* next one of ep->by_eid, and its size */
		uint32_t npeer, npath;	/* written so far */
		uint32_t nrecovery;
	} walk;
	bool reader;			/* one was there lately */
	uint64_t reader_ns;
	uint64_t look_ns;		/* when counters are published next */
	uint64_t walk_ns;		/* when a walk begins without a reader */
	uint64_t call_ns;		/* the last call, in pass */
	uint32_t call_pass;
};

static size_t counters_size(void)
{
	return sizeof(struct lnx_state_counters) + lnx_nstats * sizeof(uint64_t);
}

static void *record(const struct lnx_state_area *area, const struct lnx_state_own *table,
		    size_t i)
{
	const struct lnx_state_table *t = &table->t;

	return (char *)area->mem + (t->offset - area->offset) + i * t->record_size;
}

/* ---- tables of fixed size ---- */

struct plan {
	struct lnx_state_own *table;
	enum lnx_state_kind kind;
	size_t record_size;
	uint32_t capacity;
};

static bool make_tables(struct lnx_ctl *c)
{
	const struct plan plan[] = {
		{ &c->ep_table, LNX_STATE_EP, sizeof(struct lnx_state_ep), 1 },
		{ &c->counters_table, LNX_STATE_COUNTERS, counters_size(), 1 },
		{ &c->base_table, LNX_STATE_BASE, counters_size(), 1 },
		{ &c->param_table, LNX_STATE_PARAM, sizeof(struct lnx_state_param),
		  (uint32_t)lnx_nparams },
		{ &c->rail_table, LNX_STATE_RAIL, sizeof(struct lnx_state_rail),
		  LNX_RAILS_MAX },
	};
	size_t len = 0, i;

	for (i = 0; i < LNX_ARRAY_SIZE(plan); i++)
		len += plan[i].record_size * plan[i].capacity;
	if (!lnx_state_area_get(&c->area, len))
		return false;
	for (i = 0, len = 0; i < LNX_ARRAY_SIZE(plan); i++) {
		plan[i].table->t = (struct lnx_state_table){
			.kind = (uint16_t)plan[i].kind, .owner = c->number,
			.record_size = (uint32_t)plan[i].record_size,
			.capacity = plan[i].capacity,
			.offset = c->area.offset + len,
		};

		if (!lnx_state_table_add(plan[i].table))
			return false;
		len += plan[i].record_size * plan[i].capacity;
	}
	return true;
}

static void set_count(struct lnx_state_own *table, uint32_t count, uint64_t total)
{
	table->t.count = count;
	table->t.total = total;
	lnx_state_table_put(table);
}

static void put_params(struct lnx_ctl *c, const struct lnx_ep *ep)
{
	struct lnx_state_param p;
	size_t i;

	if (c->params && c->nset == ep->ctl.nset)
		return;
	for (i = 0; i < lnx_nparams; i++) {
		lnx_publish_param(ep, i, &p);
		lnx_state_put(record(&c->area, &c->param_table, i), &p, sizeof(p));
	}
	set_count(&c->param_table, (uint32_t)lnx_nparams, lnx_nparams);
	c->params = true;
	c->nset = ep->ctl.nset;
}

static void put_counters(struct lnx_ctl *c, const struct lnx_ep *ep, uint64_t now)
{
	unsigned i;

	c->counters->when_ns = now;
	for (i = 0; i < lnx_nstats; i++)
		c->counters->value[i] = *(const uint64_t *)
			((const char *)&ep->stats + lnx_stat_rows[i].offset);
	lnx_state_put(record(&c->area, &c->counters_table, 0), c->counters,
		      counters_size());
}

static void put_rails(struct lnx_ctl *c, const struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < ep->nrail; i++) {
		lnx_publish_rail(ep, i, &c->rail[i]);
		lnx_state_put(record(&c->area, &c->rail_table, i), &c->rail[i],
			      sizeof(c->rail[i]));
	}
	if (c->rail_table.t.count != ep->nrail)
		set_count(&c->rail_table, ep->nrail, ep->nrail);
}

/* ---- tables that grow ---- */

static bool grow(struct lnx_state_area *area, struct lnx_state_own *table, uint32_t need)
{
	struct lnx_state_table *t = &table->t;
	struct lnx_state_area more;
	uint32_t n = LNX_MAX(t->capacity, PEERS_FIRST);

	if (need <= t->capacity)
		return true;
	while (n < need)
		n *= 2;
	if (!lnx_state_area_get(&more, (size_t)n * t->record_size))
		return false;
	/* Also those of the walk under way, which do not count yet. */
	if (area->mem)
		memcpy(more.mem, area->mem, (size_t)t->capacity * t->record_size);
	t->offset = more.offset;
	t->capacity = n;
	lnx_state_table_put(table);
	lnx_state_area_put(area, true);
	*area = more;
	return true;
}

/* ---- rules ---- */

/* Room for need rules, here and in the segment. */
static bool room_for_rules(struct lnx_ctl *c, uint32_t need)
{
	struct lnx_state_rule *rule;

	if (need <= c->rule_table.t.capacity)
		return true;
	if (!grow(&c->rules, &c->rule_table, need))
		return false;
	rule = realloc(c->rule, c->rule_table.t.capacity * sizeof(*rule));
	if (!rule) {
		/* What is there stays as it is. */
		c->rule_table.t.capacity = 0;
		return false;
	}
	c->rule = rule;
	return true;
}

/* Texts are made when rules or our rails have changed, and else only numbers are compared. */
static void put_rules(struct lnx_ctl *c, const struct lnx_ep *ep)
{
	uint32_t now = ep->policy.rules ? lnx_rules_generation(ep->policy.rules) : 0;
	bool changed = now != c->rules_seen;
	uint32_t i, n = ep->policy.rules ? lnx_rules_count(ep->policy.rules) : 0;

	if ((!changed && !n) || !room_for_rules(c, n))
		return;
	c->rule_table.t.walk += changed;
	for (i = 0; i < n; i++) {
		if (!lnx_publish_rule(ep, i, changed, &c->rule[i]))
			continue;
		c->rule[i].rec.walk = (uint32_t)c->rule_table.t.walk;
		lnx_state_put(record(&c->rules, &c->rule_table, i), &c->rule[i],
			      sizeof(c->rule[i]));
	}
	if (changed)
		set_count(&c->rule_table, n, n);
	c->rules_seen = now;
}

/* ---- the endpoint ---- */

static void put_ep(struct lnx_ctl *c, const struct lnx_ep *ep, uint64_t now)
{
	struct lnx_state_front *front = lnx_state_front_of();

	lnx_publish_ep(ep, &c->ep);
	c->ep.seen_ns = now;
	c->ep.look = ep->ctl.seen;
	c->ep.wanted_ns = c->reader_ns;
	lnx_state_put(record(&c->area, &c->ep_table, 0), &c->ep, sizeof(c->ep));
	if (front)
		__atomic_store_n(&front->header.seen_ns, now, __ATOMIC_RELAXED);
}

static void put_fixed(struct lnx_ctl *c, const struct lnx_ep *ep, uint64_t now)
{
	put_counters(c, ep, now);
	put_rails(c, ep);
	put_rules(c, ep);
	put_params(c, ep);
	put_ep(c, ep, now);
}

/* ---- peers and paths ---- */

static bool make_growing_tables(struct lnx_ctl *c)
{
	c->peer_table.t = (struct lnx_state_table){
		.kind = LNX_STATE_PEER, .owner = c->number,
		.record_size = sizeof(struct lnx_state_peer),
	};
	c->path_table.t = (struct lnx_state_table){
		.kind = LNX_STATE_PATH, .owner = c->number,
		.record_size = sizeof(struct lnx_state_path),
	};
	c->rule_table.t = (struct lnx_state_table){
		.kind = LNX_STATE_RULE, .owner = c->number,
		.record_size = sizeof(struct lnx_state_rule),
	};
	return lnx_state_table_add(&c->peer_table) && lnx_state_table_add(&c->path_table) &&
	       lnx_state_table_add(&c->rule_table);
}

static void begin_walk(struct lnx_ctl *c, const struct lnx_ep *ep, uint64_t now)
{
	c->walk = (struct walk){
		.on = true, .number = c->walk.number + 1, .began_ns = now,
		.mask = ep->by_eid_mask,
	};
	c->walk_ns = now + LNX_STATE_WALK_NS;
}

static void end_table(struct lnx_state_own *table, const struct walk *w, uint32_t count,
		      uint64_t total)
{
	table->t.walk = w->number;
	table->t.walk_ns = w->began_ns;
	set_count(table, count, total);
}

static void end_walk(struct lnx_ctl *c, const struct lnx_ep *ep)
{
	struct walk *w = &c->walk;
	unsigned i;

	w->on = false;
	/* The paths first: peers refer to them. */
	end_table(&c->path_table, w, w->npath, w->npath);
	end_table(&c->peer_table, w, w->npeer, LNX_MAX(ep->peers.n, w->npeer));
	for (i = 0; i < ep->nrail; i++)
		w->nrecovery += ep->rail[i]->health.value < LNX_HEALTH_MAX;
	c->ep.nrecovery = w->nrecovery;
}

static bool put_paths(struct lnx_ctl *c, struct lnx_peer *peer, uint64_t now)
{
	struct walk *w = &c->walk;
	struct lnx_state_path p;
	unsigned i;

	if (!grow(&c->paths, &c->path_table, w->npath + peer->npath))
		return false;
	for (i = 0; i < peer->npath; i++) {
		/* From now on there is more to see. */
		if (c->reader)
			(void)lnx_path_counts_get(peer, peer->path[i]);
		lnx_publish_path(peer, i, now, &p);
		p.rec.walk = (uint32_t)w->number;
		w->nrecovery += (p.health.flags & LNX_STATE_HEALTH_RECOVERY) != 0;
		lnx_state_put(record(&c->paths, &c->path_table, w->npath++), &p,
			      sizeof(p));
	}
	return true;
}

/* False: there is no room for it. */
static bool put_peer(struct lnx_ctl *c, struct lnx_peer *peer, uint64_t now)
{
	struct walk *w = &c->walk;
	struct lnx_state_peer p;
	uint32_t first = w->npath;

	if (w->npath + peer->npath > PATHS_MAX ||
	    !grow(&c->peers, &c->peer_table, w->npeer + 1) ||
	    !put_paths(c, peer, now))
		return false;
	lnx_publish_peer(peer, &p);
	p.first_path = first;
	p.rec.walk = (uint32_t)w->number;
	lnx_state_put(record(&c->peers, &c->peer_table, w->npeer++), &p, sizeof(p));
	return true;
}

/* Publish some of the peers.  They are found by the place in the hash of ids, which stays
 * valid between passes, as no pointer to a peer would. */
static void walk_some(struct lnx_ctl *c, struct lnx_ep *ep, uint64_t now)
{
	struct walk *w = &c->walk;
	uint32_t max = c->reader ? PEERS_MAX : PEERS_QUIET, n = 0;
	struct lnx_peer *p;

	if (w->mask != ep->by_eid_mask)
		begin_walk(c, ep, now);
	for (; w->bucket <= w->mask; w->bucket++) {
		for (p = ep->by_eid[w->bucket]; p; p = p->hash_next, n++)
			if (w->npeer >= max || !put_peer(c, p, now)) {
				end_walk(c, ep);
				return;
			}
		if (n >= PEERS_STEP &&
		    (!c->reader || lnx_ns_since(lnx_clock_ns(), now) > LNX_STATE_PASS_NS)) {
			w->bucket++;
			break;
		}
	}
	if (w->bucket > w->mask)
		end_walk(c, ep);
}

/* ---- calls ---- */

/*
 * When to be called next.  A call without anything to do costs a look at the clock, so
 * an endpoint with many passes a second is looked at in each 256th one; also because it
 * may have far fewer the next moment.
 */
static void schedule(struct lnx_ctl *c, struct lnx_ep *ep, uint64_t now)
{
	uint64_t passes = ep->poll.pass - c->call_pass, took = lnx_ns_since(now, c->call_ns);
	bool slow = took * PASSES_MAX > LNX_STATE_LOOK_NS / 4 * LNX_MAX(passes, 1u);
	bool soon = c->walk.on || lnx_mailbox_busy(&c->mailbox);

	c->call_ns = now;
	c->call_pass = ep->poll.pass;
	ep->ctl.pass = ep->poll.pass + (slow || soon ? PASSES_MIN : PASSES_MAX);
}

/* A child of a fork: the segment is its parent's. */
static void disown(struct lnx_ep *ep)
{
	ep->ctl.look = NULL;
}

static void see_reader(struct lnx_ctl *c, struct lnx_ep *ep, uint64_t now)
{
	uint32_t look = __atomic_load_n(ep->ctl.look, __ATOMIC_ACQUIRE);

	if (look != ep->ctl.seen) {
		ep->ctl.seen = look;
		c->reader = true;
		c->reader_ns = now;
		c->look_ns = now;
		/* One that is under way began before the reader came. */
		begin_walk(c, ep, now);
	} else if (c->reader && lnx_ns_since(now, c->reader_ns) > LNX_STATE_READER_NS) {
		c->reader = false;
	}
}

LNX_COLD void lnx_ctl_pass(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_ctl *c = ep->ctl.ctl;

	lnx_assert_held(&ep->lock);
	if (!c || !ep->ctl.look)
		return;
	if (c->pid != getpid()) {
		disown(ep);
		return;
	}
	/* What it does is published then. */
	if (lnx_mailbox_run(&c->mailbox, ep, &lnx_state_front_of()->mailbox, now))
		now = lnx_clock_ns();
	see_reader(c, ep, now);
	if (now >= c->walk_ns && !c->walk.on)
		begin_walk(c, ep, now);
	if (c->walk.on)
		walk_some(c, ep, now);
	if (now >= c->look_ns) {
		c->look_ns = now + LNX_STATE_LOOK_NS;
		put_fixed(c, ep, now);
	} else if (!c->walk.on && c->ep.look != ep->ctl.seen) {
		put_ep(c, ep, now);
	}
	schedule(c, ep, now);
}

int lnx_ctl_reset(struct lnx_ep *ep, uint64_t now, struct lnx_out *o)
{
	struct lnx_ctl *c = ep->ctl.ctl;
	struct lnx_node *node, *tmp;
	unsigned i, n = 0;

	if (!c) {
		lnx_out(o, "\"stats reset\": the endpoint has no state segment, "
			"whose readers this is for; its own counters are never "
			"set back");
		return -FI_EOPNOTSUPP;
	}
	put_counters(c, ep, now);
	memcpy(c->base, c->counters, counters_size());
	lnx_state_put(record(&c->area, &c->base_table, 0), c->base, counters_size());
	for (i = 0; i < ep->nrail; i++) {
		lnx_publish_rail(ep, i, &c->rail[i]);
		c->rail[i].base = c->rail[i].traffic;
		memcpy(c->rail[i].failed_base, c->rail[i].failed,
		       sizeof(c->rail[i].failed));
	}
	put_rails(c, ep);
	lnx_list_foreach(&ep->peers.all, node, tmp)
		if (n++ < PEERS_MAX)
			lnx_publish_reset(lnx_list_entry(node, struct lnx_peer,
							 all_link));
	return 0;
}

/* ---- opening and closing ---- */

static void release(struct lnx_ctl *c, bool ours)
{
	if (ours)
		lnx_state_detach(c->number);
	lnx_state_area_put(&c->area, ours);
	lnx_state_area_put(&c->peers, ours);
	lnx_state_area_put(&c->paths, ours);
	lnx_state_area_put(&c->rules, ours);
	lnx_mailbox_fini(&c->mailbox);
	free(c->counters);
	free(c->base);
	free(c->rule);
	free(c);
}

void lnx_ctl_open(struct lnx_ep *ep)
{
	uint64_t now = lnx_clock_ns();
	struct lnx_ctl *c;

	ep->ctl.look = NULL;
	if (!ep->conf->state)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->counters = calloc(1, counters_size());
	c->base = calloc(1, counters_size());
	c->pid = getpid();
	if (c->counters && c->base)
		c->number = lnx_state_attach();
	if (!c->number || !make_tables(c) || !make_growing_tables(c)) {
		release(c, c->number != 0);
		return;
	}
	c->ep.number = c->number;
	c->ep.enabled_ns = now;
	c->ep.enabled_wall_ns = lnx_clock_wall_ns();
	ep->ctl.ctl = c;
	ep->ctl.look = &lnx_state_front_of()->mailbox.look;
	ep->ctl.seen = __atomic_load_n(ep->ctl.look, __ATOMIC_ACQUIRE);
	ep->ctl.run = lnx_ctl_pass;
	put_fixed(c, ep, now);
	set_count(&c->counters_table, 1, 1);
	set_count(&c->base_table, 1, 1);
	/* Last: then there is an endpoint. */
	set_count(&c->ep_table, 1, 1);
	c->look_ns = now + LNX_STATE_LOOK_NS;
	c->call_ns = now;
	c->call_pass = ep->poll.pass;
	ep->ctl.pass = ep->poll.pass + PASSES_MIN;
}

void lnx_ctl_close(struct lnx_ep *ep)
{
	struct lnx_ctl *c = ep->ctl.ctl;

	if (!c)
		return;
	ep->ctl.ctl = NULL;
	ep->ctl.look = NULL;
	ep->ctl.ping = NULL;
	release(c, c->pid == getpid());
}
