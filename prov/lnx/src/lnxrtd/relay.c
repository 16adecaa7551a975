/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The relay of a gateway: from a frame that has come to its queue.  See relay.h. */
#include "lnxrtd/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lnxrtd/inside.h"

/* ---- reasons ---- */

static const struct {
	const char *name;
	uint8_t note;
} reasons[RTD_REASONS] = {
	[RTD_BAD_ENVELOPE] = { "bad_envelope", 0 },
	[RTD_VERSION] = { "version", 0 },
	[RTD_NOT_ALLOWED] = { "not_allowed", LNX_NOTE_FORBIDDEN },
	[RTD_ROUTING_OFF] = { "routing_off", LNX_NOTE_NOT_ROUTER },
	[RTD_TTL] = { "ttl", LNX_NOTE_TTL },
	[RTD_LOOP] = { "loop", LNX_NOTE_TTL },
	[RTD_NO_ROUTE] = { "no_route", LNX_NOTE_NO_ROUTE },
	[RTD_ARRIVAL_NET] = { "arrival_net", LNX_NOTE_UNKNOWN_DST },
	[RTD_OWN_ID] = { "own_id", LNX_NOTE_UNKNOWN_DST },
	[RTD_TOO_BIG] = { "too_big", LNX_NOTE_TOO_BIG },
	[RTD_QUOTA] = { "quota", LNX_NOTE_OVER_QUOTA },
	[RTD_POOL_EMPTY] = { "pool_empty", LNX_NOTE_OVER_QUOTA },
	[RTD_DEST_CAP] = { "dest_cap", LNX_NOTE_OVER_QUOTA },
	[RTD_REFUSED] = { "refused", LNX_NOTE_REFUSED },
	[RTD_UNREACHABLE] = { "unreachable", LNX_NOTE_UNREACHABLE },
	[RTD_BROKEN] = { "broken", LNX_NOTE_UNREACHABLE },
	[RTD_CORE_ERROR] = { "core_error", LNX_NOTE_UNREACHABLE },
};

const char *rtd_reason_name(enum rtd_reason reason)
{
	return reason < RTD_REASONS ? reasons[reason].name : "unknown";
}

unsigned rtd_reason_note(enum rtd_reason reason)
{
	return reason < RTD_REASONS ? reasons[reason].note : 0;
}

/* ---- drops ---- */

static void keep_example(struct rtd_relay *r, enum rtd_reason reason, const char *why,
			 const struct rtd_source *source, unsigned arrival,
			 const uint8_t *bytes, size_t len, uint64_t now)
{
	struct rtd_example *x = &r->example[reason];
	struct lnx_wire_route w;

	*x = (struct rtd_example){ .at_ns = now, .len = (uint32_t)len,
				   .arrival = (uint8_t)arrival, .why = why,
				   .source = source ? source->id : 0 };
	if (len < sizeof(w))
		return;
	memcpy(&w, bytes, sizeof(w));
	x->via = le64toh(w.via);
	if (lnx_route_rail_get(&x->to, w.rail))
		memset(&x->to, 0, sizeof(x->to));
}

/* How long frames to there will be dropped. */
static uint32_t wait_ms(const struct rtd_relay *r, enum rtd_reason reason)
{
	return reason == RTD_REFUSED || reason == RTD_UNREACHABLE ?
		(uint32_t)(r->s.refused_ns / LNX_NS_PER_MS) : 0;
}

void rtd_drop(struct rtd_relay *r, enum rtd_reason reason, const char *why,
	      struct rtd_source *source, unsigned arrival, const uint8_t *bytes, size_t len,
	      uint64_t now)
{
	r->counts.dropped[reason]++;
	r->counts.dropped_bytes += len;
	keep_example(r, reason, why, source, arrival, bytes, len, now);
	if (!source)
		return;
	source->dropped++;
	if (reasons[reason].note)
		rtd_note(r, source, reasons[reason].note, bytes, wait_ms(r, reason), now);
}

void rtd_free_buf(struct rtd_relay *r, struct rtd_buf *buf)
{
	if (buf->control) {
		r->control--;
	} else {
		r->held--;
		if (buf->source)
			rtd_source_release(buf->source, buf->class);
	}
	rtd_pool_put(&r->pool, buf);
}

void rtd_drop_buf(struct rtd_relay *r, enum rtd_reason reason, const char *why,
		  struct rtd_buf *buf, uint64_t now)
{
	struct rtd_source *source = buf->source;

	rtd_drop(r, reason, why, source, buf->arrival, buf->bytes, buf->len, now);
	rtd_free_buf(r, buf);
}

/* ---- what comes ---- */

/* A frame on its way through the checks. */
struct arrival {
	struct rtd_relay *r;
	unsigned rail;
	const uint8_t *bytes;
	size_t len;
	uint64_t now;
	struct lnx_route_env env;
	struct rtd_source *source;
	struct rtd_dest *final, *next;	/* where it goes at last, and next */
};

static bool drop(struct arrival *a, enum rtd_reason reason, const char *why)
{
	rtd_drop(a->r, reason, why, a->source, a->rail, a->bytes, a->len, a->now);
	return false;
}

/* What the envelope alone decides. */
static bool check_envelope(struct arrival *a)
{
	struct rtd_relay *r = a->r;
	const char *why = NULL;
	int ret = lnx_route_get(&a->env, a->bytes, a->len, &why);

	if (ret)
		return drop(a, ret == -EPROTONOSUPPORT ? RTD_VERSION : RTD_BAD_ENVELOPE,
			    why);
	if (a->env.key != r->s.key)
		return drop(a, RTD_NOT_ALLOWED, "it has another route key");
	a->source = rtd_source_of(r, a->rail, a->env.account, a->now);
	a->source->frames++;
	a->source->bytes += a->len;
	rtd_stream_came(&r->stream, a->rail, a->source, a->len, a->now);
	if (r->state == RTD_OFF)
		return drop(a, RTD_ROUTING_OFF, NULL);
	if (!a->env.hops_left)
		return drop(a, RTD_TTL, NULL);
	if (a->env.via == r->s.id)
		return drop(a, RTD_LOOP, "this gateway was its last one");
	return true;
}

static bool on_arrival_net(const struct arrival *a)
{
	const struct lnx_addr_rail *from = &a->r->out[a->rail].rail.addr;

	return from->prov == a->final->addr.prov && from->group == a->final->addr.group;
}

/* Where it goes. */
static bool check_way(struct arrival *a)
{
	struct rtd_relay *r = a->r;
	enum rtd_reason reason = RTD_NO_ROUTE;
	const char *why = NULL;
	struct rtd_gateway *gw;

	a->final = rtd_target(r, &a->env.rail, a->source, &reason, &why, a->now);
	if (!a->final)
		return drop(a, reason, why);
	a->next = a->final->next ? a->final->next : a->final;
	if (!(a->final->allowed >> a->rail & 1))
		return drop(a, RTD_NOT_ALLOWED, "no rule allows it between these nets");
	if (!a->final->next && on_arrival_net(a))
		return drop(a, RTD_ARRIVAL_NET, NULL);
	gw = a->final->next ? rtd_gateway_of(r, a->next) : NULL;
	if (gw && gw->g.id && gw->g.id == a->env.via)
		return drop(a, RTD_LOOP, "the next gateway was its last one");
	if (!r->out[a->next->rail].rail.up)
		return drop(a, RTD_UNREACHABLE, "the rail there is down");
	if (a->now < a->final->failed_ns)
		return drop(a, a->final->failed, "it was found so a moment ago");
	if (a->now < a->next->failed_ns)
		return drop(a, a->next->failed, "it was found so a moment ago");
	if (a->len > r->out[a->next->rail].rail.frame_max)
		return drop(a, RTD_TOO_BIG, NULL);
	return true;
}

/* The buffer that it waits in: the landing itself if it is large, else a copy. */
static struct rtd_buf *keep(struct arrival *a, struct rtd_buf *landing)
{
	struct rtd_relay *r = a->r;
	enum rtd_class class = rtd_class_of(a->len);
	struct rtd_buf *buf;

	if (class == RTD_LARGE) {
		/* Another one takes its place. */
		if (!r->pool.class[RTD_LARGE].nfree) {
			r->pool.class[RTD_LARGE].empty++;
			return NULL;
		}
		r->counts.taken++;
		r->landings--;
		return landing;
	}
	buf = rtd_pool_get(&r->pool, class);
	if (!buf)
		return NULL;
	memcpy(buf->bytes, a->bytes, a->len);
	r->counts.copied++;
	return buf;
}

/* What is told if the next gateway drops it?  In a ring gateways send it as well. */
static void remember_source(struct rtd_dest *d, const struct rtd_source *s, uint64_t now)
{
	if (s->gateway && lnx_ns_since(now, d->from_ns) < RTD_FROM_NS)
		return;
	d->from = s->account;
	if (!s->gateway)
		d->from_ns = now;
}

/* There is a way: is there room? */
static bool enqueue(struct arrival *a, struct rtd_buf *landing)
{
	struct rtd_relay *r = a->r;
	enum rtd_class class = rtd_class_of(a->len);
	struct rtd_gateway *gw;
	struct rtd_buf *buf;

	if (!rtd_source_charge(r, a->source, class))
		return drop(a, RTD_QUOTA, NULL);
	if (a->next->held[class] >= rtd_dest_share(r, class)) {
		rtd_source_release(a->source, class);
		return drop(a, RTD_DEST_CAP, NULL);
	}
	buf = keep(a, landing);
	if (!buf) {
		rtd_source_release(a->source, class);
		return drop(a, RTD_POOL_EMPTY, rtd_class_name(class));
	}
	gw = a->final->next ? rtd_gateway_of(r, a->next) : NULL;
	if (gw)
		remember_source(a->final, a->source, a->now);
	lnx_route_forward(buf->bytes, r->s.id, gw ? gw->g.account : 0);
	buf->len = (uint32_t)a->len;
	buf->source = a->source;
	buf->arrival = (uint8_t)a->rail;
	buf->control = 0;
	r->held++;
	r->came_ns = a->now;
	if (rtd_dest_queue(r, a->next, buf))
		return buf == landing;
	if (buf == landing) {
		/* Without memory for its queue it is not kept: the landing goes back. */
		r->held--;
		r->landings++;
		r->counts.taken--;
		rtd_source_release(a->source, class);
		return drop(a, RTD_POOL_EMPTY, "memory is short");
	}
	rtd_drop_buf(r, RTD_POOL_EMPTY, "memory is short", buf, a->now);
	return false;
}

bool rtd_relay_rx(struct rtd_relay *r, unsigned rail, struct rtd_buf *buf, size_t len,
		  uint64_t now)
{
	struct arrival a = { .r = r, .rail = rail, .bytes = buf->bytes, .len = len,
			     .now = now };
	unsigned kind = lnx_route_kind(buf->bytes, len);

	if (kind > LNX_ROUTE_FRAME && buf->bytes[1] == LNX_ROUTE_VERSION) {
		rtd_control_rx(r, rail, buf->bytes, len, now);
		return false;
	}
	r->counts.frames_in++;
	r->counts.bytes_in += len;
	return check_envelope(&a) && check_way(&a) && enqueue(&a, buf);
}

unsigned rtd_relay_landings(const struct rtd_relay *r)
{
	uint32_t most = r->s.count[RTD_LARGE] / 2 / LNX_MAX(r->nout, 1u);

	if (r->state == RTD_OFF)
		return RTD_LANDINGS;
	return LNX_MAX(LNX_MIN(RTD_LANDINGS + r->nsource, most), RTD_LANDINGS);
}

struct rtd_buf *rtd_relay_landing(struct rtd_relay *r)
{
	struct rtd_buf *buf = rtd_pool_get(&r->pool, RTD_LARGE);

	r->landings += buf != NULL;
	return buf;
}

void rtd_relay_landing_back(struct rtd_relay *r, struct rtd_buf *buf)
{
	r->landings--;
	rtd_pool_put(&r->pool, buf);
}

/* ---- on, off, settings ---- */

void rtd_settings_default(struct rtd_settings *s)
{
	*s = (struct rtd_settings){
		.count = { RTD_TINY_COUNT, RTD_SMALL_COUNT, RTD_LARGE_COUNT },
		.grant_large = 64, .grant_small = 64, .dests = RTD_DESTS_MAX,
		.sources = RTD_SOURCES_MAX, .frame_max = LNX_FRAME_LARGE,
		.connects = 100, .notes = 100,
		.idle_ns = RTD_IDLE_NS, .refused_ns = RTD_REFUSED_NS,
		.connect_ns = RTD_CONNECT_NS, .drain_ns = RTD_DRAIN_NS,
	};
}

/* While routing is off: enough to receive, and to say so. */
static const uint32_t off[RTD_CLASSES] = { 64, 64, 64 };

static int resize(struct rtd_relay *r, const uint32_t count[RTD_CLASSES])
{
	unsigned i;
	int ret = 0;

	for (i = 0; !ret && i < RTD_CLASSES; i++)
		ret = rtd_pool_resize(&r->pool, i, count[i]);
	return ret;
}

struct rtd_relay *rtd_relay_create(const struct rtd_settings *s, const struct rtd_ops *ops,
				   const struct lnx_nets *nets,
				   const struct lnx_routes *routes)
{
	struct rtd_relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->s = *s;
	r->ops = *ops;
	r->nets = nets;
	r->routes = routes;
	r->plan = (struct lnx_route_plan){
		.alive_ns = RTD_ALIVE_NS, .dead_ns = RTD_DEAD_NS,
		.ping_timeout_ns = RTD_ROUTER_PING_NS,
	};
	rtd_pool_init(&r->pool);
	lnx_list_init(&r->sources);
	lnx_list_init(&r->fresh);
	r->level_stale = true;
	lnx_list_init(&r->dest_lru);
	lnx_timers_init(&r->timers);
	if (resize(r, off)) {
		rtd_relay_destroy(r);
		return NULL;
	}
	return r;
}

void rtd_relay_destroy(struct rtd_relay *r)
{
	if (!r)
		return;
	rtd_dests_free(r);
	rtd_sources_free(r);
	lnx_timers_fini(&r->timers);
	rtd_pool_fini(&r->pool);
	free(r);
}

int rtd_relay_add_rail(struct rtd_relay *r, const struct rtd_rail *rail)
{
	struct rtd_out *o = &r->out[r->nout];

	if (r->nout == RTD_RAILS)
		return -ENOSPC;
	o->rail = *rail;
	lnx_list_init(&o->ready);
	lnx_list_init(&o->unannounced.lru);
	r->level_stale = true;
	o->unannounced.min_credits = INT64_MAX;
	r->epoch++;
	return (int)r->nout++;
}

static void tell_all(struct rtd_relay *r, uint64_t now)
{
	r->epoch++;
	r->sweep_ns = now ? now : 1;
}

void rtd_relay_rail_up(struct rtd_relay *r, unsigned rail, bool up, uint64_t now)
{
	if (r->out[rail].rail.up == up)
		return;
	r->out[rail].rail.up = up;
	tell_all(r, now);
	/* The ends send it again, over another gateway. */
	if (!up)
		rtd_dests_purge(r, rail, RTD_UNREACHABLE, "the rail there is down", now);
}

int rtd_relay_set(struct rtd_relay *r, const struct rtd_settings *s)
{
	if (s->id != r->s.id || s->key != r->s.key)
		return -EINVAL;
	if (r->state != RTD_OFF && resize(r, s->count)) {
		resize(r, r->s.count);
		return -ENOMEM;
	}
	r->s = *s;
	rtd_rules_apply(r);
	r->level_stale = true;
	r->epoch++;
	r->sweep_ns = 1;
	return 0;
}

const struct rtd_settings *rtd_relay_settings(const struct rtd_relay *r)
{
	return &r->s;
}

int rtd_relay_start(struct rtd_relay *r, uint64_t now)
{
	if (r->state == RTD_DRAINING)
		return -EBUSY;
	if (r->state == RTD_ON)
		return 0;
	if (resize(r, r->s.count)) {
		resize(r, off);
		return -ENOMEM;
	}
	r->state = RTD_ON;
	tell_all(r, now);
	return 0;
}

void rtd_relay_stop(struct rtd_relay *r, uint64_t now)
{
	if (r->state != RTD_ON)
		return;
	r->state = RTD_DRAINING;
	r->drain_began_ns = now;
	r->drain_until_ns = now + r->s.drain_ns;
	tell_all(r, now);
}

enum rtd_state rtd_relay_state(const struct rtd_relay *r)
{
	return r->state;
}

/* Draining is over then, if no frame waits and none comes: sources that were told have sent some
 * before they were, and those without another gateway go on. */
static uint64_t drained_ns(const struct rtd_relay *r)
{
	uint64_t quiet_ns = LNX_MAX(r->came_ns, r->drain_began_ns) + RTD_DRAIN_QUIET_NS;

	return LNX_MIN(LNX_MIN(quiet_ns, r->drain_began_ns + RTD_DRAIN_QUIET_MAX_NS),
		       r->drain_until_ns);
}

/* All is gone, or it took too long. */
static void drain(struct rtd_relay *r, uint64_t now)
{
	uint32_t count[RTD_CLASSES];

	if (r->state != RTD_DRAINING || now < (r->held ? r->drain_until_ns : drained_ns(r)))
		return;
	r->state = RTD_OFF;
	rtd_dests_purge(r, RTD_RAILS, RTD_ROUTING_OFF, "it waited when draining ended", now);
	memcpy(count, off, sizeof(count));
	count[RTD_LARGE] = LNX_MAX(r->landings, off[RTD_LARGE]);
	resize(r, count);
	tell_all(r, now);
}

uint64_t rtd_relay_run(struct rtd_relay *r, uint64_t now)
{
	uint64_t next;
	unsigned i;

	rtd_sweep(r, now);
	next = rtd_gateways_run(r, now);
	next = LNX_MIN(next, rtd_asks_run(r, now));
	rtd_dests_run(r, now);
	drain(r, now);
	rtd_dests_expire(r, now);
	rtd_sources_expire(r, now);

	for (i = 0; i < r->nout; i++)
		if (!lnx_list_empty(&r->out[i].ready) && r->out[i].rail.up &&
		    r->out[i].flying < r->out[i].rail.tx_max)
			return now;
	next = LNX_MIN(next, r->timers.next_ns);
	if (r->sweep_ns)
		next = LNX_MIN(next, r->sweep_ns);
	if (r->state == RTD_DRAINING)
		next = LNX_MIN(next, r->held ? r->drain_until_ns : drained_ns(r));
	if (!lnx_list_empty(&r->dest_lru) || r->nsource)
		next = LNX_MIN(next, now + LNX_MAX(r->s.idle_ns / 4, RTD_IDLE_LOOK_NS));
	return next;
}

/* ---- views ---- */

unsigned rtd_relay_held(const struct rtd_relay *r)
{
	return r->held;
}

const struct rtd_counts *rtd_relay_counts(const struct rtd_relay *r)
{
	return &r->counts;
}

const struct rtd_example *rtd_relay_example(const struct rtd_relay *r,
					    enum rtd_reason reason)
{
	return &r->example[reason];
}

const struct rtd_pool *rtd_relay_pool(const struct rtd_relay *r)
{
	return &r->pool;
}

unsigned rtd_relay_rails(const struct rtd_relay *r, const struct rtd_rail **rail)
{
	unsigned i;

	for (i = 0; i < r->nout; i++)
		rail[i] = &r->out[i].rail;
	return r->nout;
}

unsigned rtd_relay_nsources(const struct rtd_relay *r)
{
	return r->nsource;
}

unsigned rtd_relay_ndests(const struct rtd_relay *r)
{
	return r->ndest;
}

static void view_source(const struct rtd_relay *r, const struct rtd_source *s,
			struct rtd_source_view *v)
{
	*v = (struct rtd_source_view){
		.account = s->account, .id = s->id, .gateway = s->gateway,
		.large = rtd_grant(r, s, RTD_GRANT_LARGE),
		.small = rtd_grant(r, s, RTD_GRANT_SMALL),
		.used_large = s->used[RTD_GRANT_LARGE],
		.used_small = s->used[RTD_GRANT_SMALL],
		.min_credits = s->min_credits, .frames = s->frames, .bytes = s->bytes,
		.dropped = s->dropped,
	};
}

bool rtd_relay_source(const struct rtd_relay *r, unsigned at, struct rtd_source_view *v)
{
	const struct lnx_node *n;

	if (at < r->nout) {
		view_source(r, &r->out[at].unannounced, v);
		return true;
	}
	at -= r->nout;
	for (n = r->sources.next; n != &r->sources; n = n->next) {
		if (at--)
			continue;
		view_source(r, lnx_list_entry(n, struct rtd_source, lru), v);
		return true;
	}
	return false;
}

bool rtd_relay_dest(const struct rtd_relay *r, unsigned at, struct rtd_dest_view *v)
{
	const struct lnx_node *n;

	for (n = r->dest_lru.next; n != &r->dest_lru; n = n->next) {
		const struct rtd_dest *d = lnx_list_entry(n, struct rtd_dest, lru);

		if (at--)
			continue;
		*v = (struct rtd_dest_view){
			.to = d->addr, .rail = d->rail,
			.state = d->fails ? "failed" : d->proven ? "open" : "new",
			.routed = d->next != NULL, .queued = d->queued,
			.flying = d->flying, .min_credits = d->min_credits,
			.credits = (int64_t)(RTD_WINDOW_BYTES / LNX_FRAME_MAX) -
				   d->flying - d->queued,
			.frames = d->frames, .bytes = d->bytes, .failures = d->failures,
		};
		return true;
	}
	return false;
}
