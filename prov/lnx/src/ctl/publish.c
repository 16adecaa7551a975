/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills the records of the state segment.  See publish.h.  Called by ctl/ctl.c. */
#include "ctl/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "core/open.h"
#include "core/policy.h"
#include "core/routes.h"
#include "core/warn_once.h"
#include "ctl/nid.h"
#include "ctl/settings.h"
#include "obj/counting.h"
#include "obj/gateway.h"
#include "policy/rules_block.h"
#include "rel/rel.h"
#include "rel/rel_view.h"
#include "wire/hdr.h"

static_assert(LNX_STATE_CLASSES == LNX_CLASS_COUNT - 1, "all classes but OK");
static_assert((int)LNX_STATE_PATH_IDLE == (int)LNX_PATH_IDLE &&
	      (int)LNX_STATE_PATH_CONNECTING == (int)LNX_PATH_CONNECTING &&
	      (int)LNX_STATE_PATH_UP == (int)LNX_PATH_UP &&
	      (int)LNX_STATE_PATH_DEAD == (int)LNX_PATH_DEAD &&
	      (int)LNX_STATE_PATH_DOWN == (int)LNX_PATH_DOWN, "states of a path");

static_assert((int)LNX_STATE_NWHY == (int)LNX_WHY_COUNT &&
	      (int)LNX_STATE_WHY_NET_RULE == (int)LNX_WHY_GROUP_RULE &&
	      (int)LNX_STATE_WHY_LINK_DOWN == (int)LNX_WHY_LINK_DOWN &&
	      (int)LNX_STATE_WHY_RAIL_RULE == (int)LNX_WHY_RAIL_RULE &&
	      (int)LNX_STATE_WHY_NUMA == (int)LNX_WHY_NUMA &&
	      (int)LNX_STATE_WHY_REMOTE_HEALTH == (int)LNX_WHY_REMOTE_HEALTH &&
	      (int)LNX_STATE_WHY_PAIR_RULE == (int)LNX_WHY_PAIR_RULE &&
	      (int)LNX_STATE_WHY_PATH_DOWN == (int)LNX_WHY_PATH_DOWN &&
	      (int)LNX_STATE_WHY_PATH_HEALTH == (int)LNX_WHY_PATH_HEALTH &&
	      (int)LNX_STATE_WHY_ORDER == (int)LNX_WHY_ORDER, "reasons of a ranking");
static_assert(LNX_STATE_PATTERN == LNX_POLICY_TEXT && LNX_STATE_RULES == LNX_RULES_MAX,
	      "rules");

/* ---- the endpoint ---- */

static void put_frames(const struct lnx_ep *ep, struct lnx_state_ep *s)
{
	unsigned i;

	s->msgs_alloc = s->msgs_max = 0;
	for (i = 0; i < LNX_ARRAY_SIZE(ep->txe_pool); i++) {
		s->msgs_alloc += ep->txe_pool[i].used;
		s->msgs_max += lnx_pool_max(&ep->txe_pool[i]);
	}
}

static uint64_t addresses(const struct lnx_ep *ep)
{
	return ep->av ? __atomic_load_n(&ep->av->used, __ATOMIC_RELAXED) : 0;
}

static void put_routes(const struct lnx_ep *ep, char *buf, size_t size)
{
	static const char more[] = "...";

	if (!ep->policy.gateways)
		buf[0] = '\0';
	else if (lnx_routes_print(&ep->policy.gateways->table, buf, size) >= size)
		memcpy(buf + size - sizeof(more), more, sizeof(more));
}

void lnx_publish_ep(const struct lnx_ep *ep, struct lnx_state_ep *s)
{
	struct lnx_addr a;
	char why[64];

	s->flags = (ep->native ? LNX_STATE_EP_NATIVE : 0) |
		   (ep->thread ? LNX_STATE_EP_THREAD : 0);
	s->eid = ep->eid;
	s->pass = ep->poll.pass;
	s->npeer = ep->peers.n;
	s->naddr = addresses(ep);
	s->rail_ns = ep->plan.rail_ns;
	s->nrail = ep->nrail;
	put_frames(ep, s);
	s->rst_alloc = ep->rma.segment_pool.used + ep->local.nconfirm;
	if (!s->link[0])
		snprintf(s->link, sizeof(s->link), "%s", ep->domain->rails->name);
	if (!lnx_addr_unpack(&a, ep->address.raw, sizeof(ep->address.raw), why, sizeof(why)))
		lnx_addr_print(&a, s->address, sizeof(s->address));
	put_routes(ep, s->routes, sizeof(s->routes));
	s->missing_route[0] = '\0';
	if (ep->policy.gateways)
		lnx_routes_missing(ep->policy.gateways, "", s->missing_route);
}

void lnx_publish_param(const struct lnx_ep *ep, size_t i, struct lnx_state_param *s)
{
	const struct lnx_conf *c = ep->conf;
	const uint8_t from = c->origin[i];
	char *text = NULL;
	size_t len;

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", lnx_params[i].name);
	snprintf(s->unit, sizeof(s->unit), "%s", lnx_params[i].unit);
	s->origin = from & LNX_CONF_LIVE ? LNX_STATE_SET :
		    from & LNX_CONF_DERIVED ? LNX_STATE_DERIVED :
		    from & LNX_CONF_IN_CONFIG ? LNX_STATE_CONFIG :
		    from & LNX_CONF_IN_FILE ? LNX_STATE_FILE :
		    from & LNX_CONF_GIVEN ? LNX_STATE_ENVIRONMENT : LNX_STATE_DEFAULT;
	if (lnx_conf_live(i))
		s->flags |= LNX_STATE_PARAM_LIVE;
	if (lnx_conf_secret(i)) {
		s->flags |= LNX_STATE_PARAM_SECRET;
		return;
	}
	len = lnx_conf_print(c, i, NULL, 0);
	text = malloc(len + 1);
	if (!text)
		return;
	lnx_conf_print(c, i, text, len + 1);
	lnx_warn_printable(text, len, s->value, sizeof(s->value));
	if (len >= sizeof(s->value))
		s->flags |= LNX_STATE_PARAM_CUT;
	free(text);
}

/* ---- health ---- */

static void health(const struct lnx_health *h, struct lnx_state_health *s)
{
	*s = (struct lnx_state_health){
		.value = h->value, .npings = h->npings, .flaps = h->flaps,
		.ready_ns = h->ready_ns,
		.flags = (uint16_t)((h->down ? LNX_STATE_HEALTH_DOWN : 0) |
				    (h->fatal ? LNX_STATE_HEALTH_FATAL : 0) |
				    (h->out ? LNX_STATE_HEALTH_OUT : 0) |
				    (h->pinging ? LNX_STATE_HEALTH_PINGING : 0) |
				    (h->hearsay ? LNX_STATE_HEALTH_HEARSAY : 0) |
				    (h->pinned ? LNX_STATE_HEALTH_PINNED : 0)),
	};
}

/* ---- rails ---- */

/* As far as the kernel tells it: of an interface, or of an RDMA device. */
static int numa_node(const char *interface)
{
	static const char *const places[] = {
		"/sys/class/net/%s/device/numa_node",
		"/sys/class/infiniband/%s/device/numa_node",
	};
	char path[160];
	int node = -1;
	unsigned i;

	if (!interface[0] || strchr(interface, '/'))
		return -1;
	for (i = 0; i < LNX_ARRAY_SIZE(places); i++) {
		FILE *f;

		snprintf(path, sizeof(path), places[i], interface);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%d", &node) != 1)
			node = -1;
		fclose(f);
		break;
	}
	return node;
}

static uint32_t rail_flags(const struct lnx_ep *ep, const struct lnx_rail *rail)
{
	bool local = lnx_rail_kind_local(rail->kind);

	return (local ? LNX_STATE_RAIL_LOCAL : 0) |
	       (rail->link_down ? LNX_STATE_RAIL_LINK_DOWN : 0) |
	       (rail->closed ? LNX_STATE_RAIL_CLOSED : 0) |
	       (rail->devgone ? LNX_STATE_RAIL_GONE : 0) |
	       (local || ep->native ? 0 : LNX_STATE_RAIL_HEALTH);
}

/* What a frame is for LNet. */
static const uint8_t op_of[LNX_KIND_MAX] = {
	[0] = LNX_STATE_HELLO,
	[LNX_KIND_HELLO] = LNX_STATE_HELLO,
	[LNX_KIND_MSG] = LNX_STATE_PUT,
	[LNX_KIND_TAG] = LNX_STATE_PUT,
	[LNX_KIND_RTS_MSG] = LNX_STATE_PUT,
	[LNX_KIND_RTS_TAG] = LNX_STATE_PUT,
	[LNX_KIND_FIN] = LNX_STATE_ACK,
	[LNX_KIND_ACK] = LNX_STATE_ACK,
	[LNX_KIND_PROBE] = LNX_STATE_HELLO,
	[LNX_KIND_BYE] = LNX_STATE_HELLO,
	[LNX_KIND_NO_SESSION] = LNX_STATE_HELLO,
	[LNX_KIND_PONG] = LNX_STATE_HELLO,
	[LNX_KIND_RAIL] = LNX_STATE_HELLO,
	[LNX_KIND_PUT] = LNX_STATE_PUT,
	[LNX_KIND_PUT_RTS] = LNX_STATE_PUT,
	[LNX_KIND_GET] = LNX_STATE_GET,
	[LNX_KIND_KEYS] = LNX_STATE_GET,
	[LNX_KIND_ATOMIC] = LNX_STATE_PUT,
	[LNX_KIND_RESP] = LNX_STATE_REPLY_OP,
};

/* t->sent and received have the messages already. */
static void counts(const struct lnx_counts *c, struct lnx_state_traffic *t)
{
	unsigned i;

	for (i = 0; i < LNX_KIND_MAX; i++) {
		t->sent[op_of[i]] += c->sent[i];
		t->received[op_of[i]] += c->received[i];
		t->dropped[op_of[i]] += c->dropped[i];
		t->drop_count += c->dropped[i];
	}
	t->drop_length = c->drop_length;
	t->sent[LNX_STATE_GET] += c->reads;
	t->sent[LNX_STATE_PUT] += c->writes;
	t->received[LNX_STATE_REPLY_OP] += c->reads_done;
}

/* All classes but OK. */
static void failures(const struct lnx_counts *c, uint64_t failed[LNX_STATE_CLASSES])
{
	memcpy(failed, &c->failed[1], LNX_STATE_CLASSES * sizeof(*failed));
}

void lnx_publish_traffic(const struct lnx_rail *rail, struct lnx_state_traffic *t)
{
	memset(t, 0, sizeof(*t));
	counts(&rail->counts, t);
	/* Operations, not frames. */
	t->sent[LNX_STATE_PUT] = rail->traffic.sends;
	t->received[LNX_STATE_PUT] = rail->traffic.recvs;
	t->send_count = rail->traffic.sends;
	t->send_length = rail->traffic.send_length;
	t->recv_count = rail->traffic.recvs + rail->traffic.reads;
	t->recv_length = rail->traffic.recv_length;
}

static void sum(uint64_t *to, const uint64_t *add, size_t n)
{
	while (n--)
		to[n] += add[n];
}

/* What goes over a gateway is counted by the leg to it.  The rail that the leg begins with has
 * carried it, too. */
static void add_leg(const struct lnx_rail *leg, struct lnx_state_rail *s)
{
	uint64_t failed[LNX_STATE_CLASSES];
	struct lnx_state_traffic t;

	lnx_publish_traffic(leg, &t);
	failures(&leg->counts, failed);
	sum(s->failed, failed, LNX_STATE_CLASSES);
	/* All its members are uint64_t. */
	sum(&s->traffic.send_count, &t.send_count, sizeof(t) / sizeof(uint64_t));
}

static void add_legs(const struct lnx_rail *rail, struct lnx_state_rail *s)
{
	const struct lnx_gateways *all = rail->ep->policy.gateways;
	unsigned i, k;

	for (i = 0; all && i < all->n; i++)
		for (k = 0; k < all->gw[i]->nleg; k++)
			if (all->gw[i]->leg[k]->rail.below == rail)
				add_leg(&all->gw[i]->leg[k]->rail, s);
}

static void shm_traffic(const struct lnx_stats *s, struct lnx_state_traffic *t)
{
	memset(t, 0, sizeof(*t));
	t->send_count = s->direct_sends;
	t->send_length = s->direct_send_length;
	t->recv_count = s->direct_recvs;
	t->recv_length = s->direct_recv_length;
}

static uint32_t rail_have(const struct lnx_ep *ep, const struct lnx_rail *rail)
{
	return ep->native ? 0 : lnx_rail_kind_local(rail->kind) ? LNX_STATE_HAVE_COUNTS :
	       LNX_STATE_HAVE_COUNTS | LNX_STATE_HAVE_DROPS | LNX_STATE_HAVE_OPS |
	       LNX_STATE_HAVE_CLASSES;
}

static_assert(LNX_RULE_NONE + 1u == 0, "no priority is published as 0");

static void rail_rules(const struct lnx_ep *ep, const struct lnx_rail *rail,
		       struct lnx_state_rail *s)
{
	const struct lnx_rule_local *l;

	if (!ep->policy.rules || lnx_rail_kind_local(rail->kind))
		return;
	l = lnx_rules_local(ep->policy.rules, lnx_policy_index(ep, rail));
	s->net_priority = l->net + 1;
	s->nid_priority = l->rail + 1;
}

static void path_rules(const struct lnx_peer *peer, const struct lnx_path *path,
		       struct lnx_state_path *s)
{
	const struct lnx_rule_peer *table = lnx_policy_table(peer);
	const struct lnx_rule_remote *r;

	if (!table || path->remote_rail >= table->n)
		return;
	r = &table->remote[path->remote_rail];
	s->net_priority = r->net + 1;
	s->nid_priority = r->remote + 1;
	/* Rules know the network rails only. */
	s->preferred = r->preferred << (peer->ep->nrail - peer->ep->nnet);
}

void lnx_publish_rail(const struct lnx_ep *ep, unsigned i, struct lnx_state_rail *s)
{
	const struct lnx_rail *rail = ep->rail[i];

	if (!s->name[0]) {
		snprintf(s->name, sizeof(s->name), "%s", rail->name);
		snprintf(s->interface, sizeof(s->interface), "%s",
			 lnx_nid_interface(rail));
		s->numa_node = numa_node(s->interface);
		s->index = i;
	}
	lnx_nid_net(rail, s->net, sizeof(s->net));
	lnx_nid_rail(rail, s->nid, sizeof(s->nid));
	s->flags = rail_flags(ep, rail);
	s->have = rail_have(ep, rail);
	s->wire_index = lnx_rail_kind_local(rail->kind) ||
			rail->wire_index == LNX_WIRE_INDEX_NONE ? UINT32_MAX :
			rail->wire_index;
	health(&rail->health, &s->health);
	if (rail->health.value < LNX_HEALTH_MAX)
		s->health.flags |= LNX_STATE_HEALTH_RECOVERY;
	s->link_bps = rail->link_bps;
	s->numa = rail->numa;
	s->busy = rail->busy;
	s->nposted = (uint32_t)rail->nposted + rail->held;
	s->reopened_ns = rail->reopened_ns;
	s->port = lnx_rail_kind_local(rail->kind) ? 0 : lnx_rail_port(rail);
	s->heard_ns = rail->board.heard_ns;
	s->heard_speed = rail->board.heard_speed;
	s->heard_pid = rail->board.heard_pid;
	s->heard = rail->board.heard;
	s->told_ns = rail->board.told_ns;
	s->told = rail->board.told;
	s->credits_max = rail->credits_max;
	s->peer_credits_max = rail->peer_credits_max;
	s->credits_used = rail->credits.used;
	s->credits_most = lnx_tx_credits_most(&rail->credits);
	s->credits_queued = rail->n_delayed;
	rail_rules(ep, rail, s);
	failures(&rail->counts, s->failed);
	if (rail == ep->shm) {
		shm_traffic(&ep->stats, &s->traffic);
		return;
	}
	lnx_publish_traffic(rail, &s->traffic);
	add_legs(rail, s);
}

/* ---- rules ---- */

static void rule_texts(const struct lnx_rule_info *info, struct lnx_state_rule *s)
{
	struct lnx_policy_rule rec;

	lnx_rules_record(info, &rec);
	*s = (struct lnx_state_rule){ .id = rec.id, .index = rec.index,
				      .priority = rec.priority, .type = rec.type };
	memcpy(s->src, rec.src, sizeof(s->src));
	memcpy(s->dst, rec.dst, sizeof(s->dst));
	memcpy(s->rte, rec.rte, sizeof(s->rte));
}

bool lnx_publish_rule(const struct lnx_ep *ep, uint32_t index, bool all,
		      struct lnx_state_rule *s)
{
	struct lnx_rule_info info;

	if (lnx_rules_info(ep->policy.rules, index, &info))
		return false;
	if (all)
		rule_texts(&info, s);
	else if (s->state == info.state && s->rails == info.rails &&
		 s->remote == info.remote && s->matched == info.matched &&
		 s->decides == info.decides)
		return false;
	s->state = info.state;
	s->rails = info.rails;
	s->remote = info.remote;
	s->matched = info.matched;
	s->decides = info.decides;
	return true;
}

/* ---- peers ---- */

static uint8_t life(const struct lnx_peer *peer)
{
	switch (peer->life) {
	case LNX_LIFE_OPEN:
		return LNX_STATE_LIFE_OPEN;
	case LNX_LIFE_CLOSING:
		return LNX_STATE_LIFE_CLOSING;
	case LNX_LIFE_CLOSED:
		return LNX_STATE_LIFE_CLOSED;
	case LNX_LIFE_DEAD:
		return LNX_STATE_LIFE_DEAD;
	default:
		return LNX_STATE_LIFE_OTHER;
	}
}

void lnx_publish_peer(const struct lnx_peer *peer, struct lnx_state_peer *s)
{
	const struct lnx_chan *c = &peer->chan;
	bool local = peer->shm_addr != FI_ADDR_NOTAVAIL;

	*s = (struct lnx_state_peer){
		.eid = peer->eid, .addr = peer->addr, .life = life(peer),
		.npath = peer->npath, .n_stripe = (uint8_t)lnx_bits(peer->stripe),
		.n_rr = (uint8_t)lnx_bits(peer->rr), .current = peer->npath ? peer->cur->index : 0,
		.flags = (local ? LNX_STATE_PEER_LOCAL : 0) |
			 (peer->self ? LNX_STATE_PEER_SELF : 0) |
			 (peer->unsolicited ? LNX_STATE_PEER_UNSOLICITED : 0) |
			 (peer->session.key_refused ? LNX_STATE_PEER_KEY : 0) |
			 (local || lnx_peer_acked(peer) ? LNX_STATE_PEER_MET : 0),
		.pid = local ? (uint32_t)peer->shm.where.pid : 0,
		.window = peer->npath ? peer->ep->limits.window : 0,
		.in_flight = c->posted - c->una, .queued = c->nqueued + lnx_peer_nthrottled(peer),
		.large = peer->nrndv + peer->pull.n + peer->rma.n_served,
		.in_flight_bytes = c->una_bytes,
		.next = c->next, .expected = c->rx.next,
		.began_wall_ns = peer->session.stamp, .silent_ns = peer->liveness.since_ns,
	};
}

static uint16_t path_flags(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return (uint16_t)((path->detect.drained ? LNX_STATE_PATH_DRAINED : 0) |
			  (path->rail->link_down ? LNX_STATE_PATH_LINK_DOWN : 0) |
			  (path->detect.remote_down ?
			   LNX_STATE_PATH_REMOTE_DOWN : 0) |
			  (peer->cur == path ? LNX_STATE_PATH_CURRENT : 0) |
			  (path->detect.withdrawn ? LNX_STATE_PATH_WITHDRAWN : 0) |
			  (peer->stripe >> path->index & 1 ?
			   LNX_STATE_PATH_STRIPES : 0));
}

/* Frames in the sequence that came by path, also those that were dropped, and their bytes. */
static uint64_t received(const struct lnx_peer *peer, const struct lnx_path *path,
			 uint64_t *bytes)
{
	const struct lnx_path_counts *c = path->counts;
	uint64_t n = 0;

	*bytes = 0;
	if (path->index == peer->rx.path_back)
		n = lnx_count_lately(peer, bytes);
	*bytes += c ? c->received_bytes : 0;
	return n + (c ? c->received : 0);
}

/* Of n such frames those that were taken, and not dropped or still kept. */
static uint64_t taken(const struct lnx_peer *peer, const struct lnx_path *path, uint64_t n)
{
	uint64_t less = lnx_count_dropped(path->counts);

	less += path->index == peer->rx.path_back ? peer->chan.rx.n_ooo : 0;
	return n - LNX_MIN(n, less);
}

/* Frames in the sequence that are no messages, and counted as such. */
static uint64_t in_sequence(const uint64_t n[LNX_KIND_MAX])
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 1; i < LNX_KIND_MAX; i++)
		sum += lnx_wire_kind_sequenced((uint8_t)i) ? n[i] : 0;
	return sum;
}

/* Messages and their parts: what is no other kind. */
static uint64_t messages(uint64_t n, uint64_t before, const uint64_t kinds[LNX_KIND_MAX])
{
	before += in_sequence(kinds);
	return n - LNX_MIN(n, before);
}

static void latency(const struct lnx_latency_counts *l, struct lnx_state_latency *s)
{
	s->samples = l->samples;
	s->min_ns = l->min_ns;
	s->max_ns = l->max_ns;
	s->sum_ns = l->sum_ns;
	memcpy(s->bucket, l->bucket, sizeof(s->bucket));
}

static void path_traffic(const struct lnx_peer *peer, const struct lnx_path *path,
			 struct lnx_state_path *s)
{
	const struct lnx_path_counts *c = path->counts;
	struct lnx_state_traffic *t = &s->traffic;
	uint64_t n, bytes;

	n = received(peer, path, &bytes);
	s->have = LNX_STATE_HAVE_COUNTS;
	t->send_count = path->n_sent - (c ? c->sent_base : 0);
	t->send_length = path->sent - (c ? c->sent_bytes_base : 0);
	t->recv_count = n - (c ? LNX_MIN(n, c->received_base) : 0);
	t->recv_length = bytes - (c ? LNX_MIN(bytes, c->received_bytes_base) : 0);
	if (!c)
		return;
	s->have |= LNX_STATE_HAVE_DROPS | LNX_STATE_HAVE_OPS | LNX_STATE_HAVE_CLASSES |
		   LNX_STATE_HAVE_LATENCY;
	t->sent[LNX_STATE_PUT] = messages(path->n_sent, c->kinds_sent, c->c.sent);
	t->received[LNX_STATE_PUT] = messages(taken(peer, path, n), c->kinds_received,
					      c->c.received);
	counts(&c->c, t);
	failures(&c->c, s->failed);
	latency(&c->ack, &s->ack);
	latency(&c->reply, &s->reply);
}

/* What it has counted is forgotten. */
static void reset(const struct lnx_path *path, struct lnx_path_counts *c)
{
	memset(&c->c, 0, sizeof(c->c));
	memset(&c->ack, 0, sizeof(c->ack));
	memset(&c->reply, 0, sizeof(c->reply));
	c->sent_base = c->kinds_sent = path->n_sent;
	c->sent_bytes_base = path->sent;
	c->received = c->received_bytes = 0;
}

void lnx_publish_reset(const struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path_counts *c = lnx_path_counts_get(peer, peer->path[i]);

		if (c)
			reset(peer->path[i], c);
	}
	/* All frames so far came by one path now. */
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		struct lnx_path_counts *c = path->counts;
		uint64_t n;

		if (!c)
			continue;
		n = received(peer, path, &c->received_bytes_base);
		c->received_base = n;
		c->kinds_received = taken(peer, path, n);
	}
}

static void ranked(const struct lnx_peer *peer, unsigned i, struct lnx_state_path *s)
{
	const struct lnx_ranking *r = peer->choice ? &peer->choice->rank : NULL;

	s->rank = r && i < r->n ? r->class[i] : 0;
	s->why = r && i < r->n ? r->why[i] : LNX_STATE_WHY_BEST;
}

void lnx_publish_path(struct lnx_peer *peer, unsigned i, uint64_t now,
		      struct lnx_state_path *s)
{
	const struct lnx_path *path = peer->path[i];
	const struct lnx_path_detect *d = &path->detect;
	struct lnx_path_view view;
	unsigned rail = 0;

	while (rail < peer->ep->nrail && peer->ep->rail[rail] != path->rail->below)
		rail++;
	lnx_rel_view(peer, path, now, &view);
	*s = (struct lnx_state_path){
		.eid = peer->eid, .index = i, .rail = rail,
		.remote_rail = path->remote_rail, .state = path->state,
		.flags = path_flags(peer, path),
		.share = (uint16_t)view.share,
		.sent_bytes = path->sent,
		/* With one path nothing is reported. */
		.delivered_bytes = peer->npath > 1 ? path->delivered :
				   path->sent - LNX_MIN(path->sent,
							peer->chan.una_bytes),
		.received_bytes = peer->rx.bytes[i],
		.inflight_limit = path->inflight_limit,
		.link_bps = path->link_bps,
		.srtt_ns = d->rtt.srtt_ns, .rttvar_ns = d->rtt.var_ns,
		.read_bytes = path->read_bytes,
		.down_ns = path->state == LNX_PATH_DOWN ? d->down_ns : 0,
		.retry_ns = path->retry_ns,
		.credits_max = path->rail->peer_credits_max,
		.credits_used = path->credits.used,
		.credits_most = lnx_tx_credits_most(&path->credits),
	};
	if (path->speed) {
		s->send_rate = path->speed->send.rate;
		s->read_rate = path->speed->read.rate;
		s->answer_ns = view.latency_ns;
	}
	ranked(peer, i, s);
	path_rules(peer, path, s);
	path_traffic(peer, path, s);
	lnx_nid_remote(path, s->nid, sizeof(s->nid));
	health(&d->health, &s->health);
	s->health.next_ns = view.next_ping_ns;
	if (d->health.value < LNX_HEALTH_MAX || path->state == LNX_PATH_DOWN)
		s->health.flags |= LNX_STATE_HEALTH_RECOVERY;
	health(&path->remote->health, &s->remote);
	if (s->remote.value < LNX_HEALTH_MAX)
		s->remote.flags |= LNX_STATE_HEALTH_RECOVERY;
	if (!view.remote_weight)
		s->remote.flags |= LNX_STATE_HEALTH_DRAIN;
}
