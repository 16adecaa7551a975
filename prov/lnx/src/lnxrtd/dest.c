/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Destinations of a gateway: the table, their queues, and what a core makes of them.
 *
 *	new --the first frame arrives--> open
 *	new, open --refused, unreachable, no connection in time--> failed
 *	failed --after a pause, which doubles--> new
 *
 * A destination is used first when a frame for it comes, and is forgotten when none has
 * come for a while.  While it is failed, frames for it are dropped at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lnxrtd/inside.h"

#define FAILS_MAX	5u		/* doublings of the pause */
#define RUN_FRAMES	512u		/* sent in one pass over a rail */

/* ---- the table ---- */

static void touch(struct rtd_relay *r, struct rtd_dest *d, uint64_t now)
{
	d->used_ns = now;
	lnx_list_del(&d->lru);
	lnx_list_add_tail(&r->dest_lru, &d->lru);
}

struct rtd_dest *rtd_dest_find(struct rtd_relay *r,
			       const uint8_t key[LNX_ROUTE_RAIL_BYTES], uint64_t now)
{
	struct rtd_dest *d = r->dests[rtd_hash(key, LNX_ROUTE_RAIL_BYTES)];

	while (d && memcmp(d->key, key, sizeof(d->key)))
		d = d->chain;
	if (d)
		touch(r, d, now);
	return d;
}

static bool unused(const struct rtd_dest *d)
{
	return !d->queued && !d->flying && !d->pins && !d->holds;
}

static void remove_dest(struct rtd_relay *r, struct rtd_dest *d)
{
	struct rtd_dest **p = &r->dests[rtd_hash(d->key, sizeof(d->key))];

	while (*p != d)
		p = &(*p)->chain;
	*p = d->chain;
	if (d->opened)
		r->ops.close(r->ops.arg, d->rail, d->handle);
	if (d->next)
		d->next->pins--;
	lnx_timer_cancel(&r->timers, &d->retry);
	lnx_timers_release(&r->timers, 1);
	lnx_list_del(&d->lru);
	lnx_list_del(&d->ready);
	r->ndest--;
	free(d);
}

/* Of the ones that were used longest ago, the first without frames. */
static bool make_room(struct rtd_relay *r)
{
	struct lnx_node *n, *tmp;
	unsigned tries = 0;

	if (r->ndest < LNX_MIN(r->s.dests, RTD_DESTS_MAX))
		return true;
	lnx_list_foreach(&r->dest_lru, n, tmp) {
		struct rtd_dest *d = lnx_list_entry(n, struct rtd_dest, lru);

		if (unused(d)) {
			remove_dest(r, d);
			return true;
		}
		if (++tries == 64)
			break;
	}
	return false;
}

static bool too_long(const struct rtd_dest *d, uint64_t now)
{
	return !d->proven && d->trying_ns &&
	       lnx_ns_since(now, d->trying_ns) >= d->relay->s.connect_ns;
}

static void again(struct lnx_timer *t, uint64_t now)
{
	struct rtd_dest *d = lnx_container_of(t, struct rtd_dest, retry);

	if (too_long(d, now))
		rtd_dest_fail(d->relay, d, RTD_UNREACHABLE, now);
	if (!d->queued)
		d->backoff_ns = 0;
	if (d->queued && !lnx_list_linked(&d->ready))
		lnx_list_add_tail(&d->relay->out[d->rail].ready, &d->ready);
}

struct rtd_dest *rtd_dest_make(struct rtd_relay *r,
			       const uint8_t key[LNX_ROUTE_RAIL_BYTES],
			       const struct lnx_addr_rail *addr, uint64_t now)
{
	uint32_t h = rtd_hash(key, LNX_ROUTE_RAIL_BYTES);
	struct rtd_dest *d;

	if (!make_room(r) || lnx_timers_reserve(&r->timers, 1))
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d) {
		lnx_timers_release(&r->timers, 1);
		return NULL;
	}
	memcpy(d->key, key, sizeof(d->key));
	d->addr = *addr;
	d->relay = r;
	d->retry.due = again;
	d->min_credits = INT64_MAX;
	lnx_list_init(&d->lru);
	lnx_list_init(&d->ready);
	lnx_list_init(&d->flows);
	d->chain = r->dests[h];
	r->dests[h] = d;
	r->ndest++;
	touch(r, d, now);
	return d;
}

void rtd_dests_expire(struct rtd_relay *r, uint64_t now)
{
	unsigned tries;

	for (tries = 0; tries < 64 && !lnx_list_empty(&r->dest_lru); tries++) {
		struct rtd_dest *d = lnx_list_entry(r->dest_lru.next, struct rtd_dest,
						    lru);

		if (lnx_ns_since(now, d->used_ns) < r->s.idle_ns)
			return;
		if (unused(d))
			remove_dest(r, d);
		else
			touch(r, d, now);
	}
}

/* ---- queues ---- */

uint32_t rtd_dest_share(const struct rtd_relay *r, unsigned class)
{
	return LNX_MAX(r->pool.class[class].nfree, RTD_SHARE_MIN);
}

static uint32_t flow_hash(const struct rtd_source *s, const struct rtd_dest *d)
{
	return rtd_hash64((uintptr_t)s * 31 + (uintptr_t)d);
}

static struct rtd_flow *flow_get(struct rtd_relay *r, struct rtd_dest *d,
				 struct rtd_source *s)
{
	uint32_t h = flow_hash(s, d);
	struct rtd_flow *f = r->flows[h];

	while (f && (f->source != s || f->dest != d))
		f = f->chain;
	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->source = s;
	f->dest = d;
	f->chain = r->flows[h];
	r->flows[h] = f;
	lnx_list_init(&f->frames);
	/* Control goes first; others when it is their turn. */
	if (s)
		lnx_list_add_tail(&d->flows, &f->link);
	else
		lnx_list_add_head(&d->flows, &f->link);
	return f;
}

static void flow_put(struct rtd_relay *r, struct rtd_flow *f)
{
	struct rtd_flow **p = &r->flows[flow_hash(f->source, f->dest)];

	while (*p != f)
		p = &(*p)->chain;
	*p = f->chain;
	lnx_list_del(&f->link);
	free(f);
}

/* A negative number is the length of the queue. */
static int64_t credits(const struct rtd_dest *d)
{
	return (int64_t)(RTD_WINDOW_BYTES / LNX_FRAME_MAX) - d->flying - d->queued;
}

bool rtd_dest_queue(struct rtd_relay *r, struct rtd_dest *d, struct rtd_buf *buf)
{
	struct rtd_flow *f = flow_get(r, d, buf->source);

	if (!f)
		return false;
	buf->dest = d;
	lnx_list_add_tail(&f->frames, &buf->link);
	d->queued++;
	d->held[buf->class]++;
	d->min_credits = LNX_MIN(d->min_credits, credits(d));
	if (!lnx_list_linked(&d->ready) && !d->backoff_ns)
		lnx_list_add_tail(&r->out[d->rail].ready, &d->ready);
	return true;
}

static struct rtd_buf *first(struct rtd_flow *f)
{
	return lnx_list_entry(lnx_list_pop(&f->frames), struct rtd_buf, link);
}

/* Its first frame is out: the flow goes, if that was the last one. */
static void taken(struct rtd_relay *r, struct rtd_flow *f)
{
	f->dest->queued--;
	if (lnx_list_empty(&f->frames))
		flow_put(r, f);
}

static uint32_t first_len(const struct rtd_flow *f)
{
	return lnx_list_entry(f->frames.next, struct rtd_buf, link)->len;
}

/* The flow whose turn it is.  Control comes before all others. */
static struct rtd_flow *next_flow(struct rtd_dest *d)
{
	struct rtd_flow *f = lnx_list_entry(d->flows.next, struct rtd_flow, link);

	while (f->source && !rtd_turn_allows(&f->turn, first_len(f))) {
		lnx_list_del(&f->link);
		lnx_list_add_tail(&d->flows, &f->link);
		f = lnx_list_entry(d->flows.next, struct rtd_flow, link);
	}
	return f;
}

static struct rtd_buf *take(struct rtd_relay *r, struct rtd_flow *f)
{
	struct rtd_buf *buf = first(f);

	taken(r, f);
	return buf;
}

void rtd_dest_purge(struct rtd_relay *r, struct rtd_dest *d, enum rtd_reason reason,
		    const char *why, uint64_t now)
{
	/* A note may need room in the table. */
	d->holds++;
	while (!lnx_list_empty(&d->flows)) {
		struct rtd_buf *buf = take(r, lnx_list_entry(d->flows.next,
							     struct rtd_flow, link));

		d->held[buf->class]--;
		if (buf->control)
			rtd_free_buf(r, buf);
		else
			rtd_drop_buf(r, reason, why, buf, now);
	}
	d->holds--;
	lnx_list_del(&d->ready);
	lnx_timer_cancel(&r->timers, &d->retry);
	d->backoff_ns = 0;
}

/* Does anything wait for it there; with RTD_RAILS, a frame, wherever? */
static bool waits(const struct rtd_dest *d, unsigned rail)
{
	if (rail != RTD_RAILS)
		return d->queued && d->rail == rail;
	return !lnx_list_empty(&d->flows) &&
	       lnx_list_entry(d->flows.prev, struct rtd_flow, link)->source;
}

void rtd_dests_purge(struct rtd_relay *r, unsigned rail, enum rtd_reason reason,
		     const char *why, uint64_t now)
{
	struct lnx_node *n;
	bool any;

	/* The receiver of a note becomes the last one. */
	do {
		for (n = r->dest_lru.next, any = false; n != &r->dest_lru; n = n->next) {
			struct rtd_dest *d = lnx_list_entry(n, struct rtd_dest, lru);

			if (!waits(d, rail))
				continue;
			rtd_dest_purge(r, d, reason, why, now);
			any = true;
		}
	} while (any);
}

void rtd_dest_fail(struct rtd_relay *r, struct rtd_dest *d, enum rtd_reason reason,
		   uint64_t now)
{
	d->failures++;
	d->failed = (uint8_t)reason;
	/* A gateway is asked soon whether it is back. */
	d->failed_ns = now + (r->s.refused_ns << (d->pins ? 0 : LNX_MIN(d->fails, FAILS_MAX)));
	d->fails = (uint8_t)LNX_MIN(d->fails + 1u, FAILS_MAX);
	d->proven = false;
	d->trying_ns = 0;
	rtd_dest_purge(r, d, reason, NULL, now);
}

/* ---- sending ---- */

/* Its core does not take it now.  Trying again costs a core a connection: not too often. */
static void blocked(struct rtd_relay *r, struct rtd_dest *d, uint64_t now)
{
	if (!d->trying_ns)
		d->trying_ns = now;
	/* What waits for a gateway need not, if there is another one. */
	if (too_long(d, now) || (d->pins && lnx_ns_since(now, d->trying_ns) >= RTD_GATEWAY_NS &&
				 rtd_gateway_replaced(r, d, now))) {
		rtd_dest_fail(r, d, RTD_UNREACHABLE, now);
		return;
	}
	/* It computes, or its connection broke and cannot be made again: some cores say
	 * no more than that. */
	if (d->proven && !d->flying && lnx_ns_since(now, d->trying_ns) >= r->s.connect_ns) {
		d->trying_ns = now;
		rtd_ask_dest(r, d, now);
	}
	d->backoff_ns = d->proven && d->flying ? RTD_BACKOFF_MIN_NS :
			LNX_MIN(LNX_MAX(2 * d->backoff_ns, RTD_BACKOFF_MIN_NS),
				RTD_BACKOFF_MAX_NS);
	lnx_timer_arm(&r->timers, &d->retry, now + d->backoff_ns);
}

static int open_dest(struct rtd_relay *r, struct rtd_dest *d)
{
	int ret;

	if (d->opened)
		return 0;
	ret = r->ops.open(r->ops.arg, d->rail, &d->addr, &d->handle);
	d->opened = !ret;
	r->counts.connects += !ret;
	return ret;
}

/* The first frame of that flow.  False: none more now. */
static bool send_one(struct rtd_relay *r, struct rtd_out *o, struct rtd_flow *f, uint64_t now)
{
	struct rtd_dest *d = f->dest;
	struct rtd_buf *buf = first(f);
	int ret = open_dest(r, d);

	if (!ret)
		ret = r->ops.send(r->ops.arg, d->rail, d->handle, buf);
	if (ret == -EAGAIN) {
		lnx_list_add_head(&f->frames, &buf->link);
		blocked(r, d, now);
		return false;
	}
	if (f->source) {
		f->turn.left -= buf->len;
		d->turn.left -= LNX_MIN(buf->len, d->turn.left);
	}
	taken(r, f);
	if (ret) {
		d->held[buf->class]--;
		d->failures++;
		d->holds++;
		if (buf->control)
			rtd_free_buf(r, buf);
		else
			rtd_drop_buf(r, RTD_CORE_ERROR, NULL, buf, now);
		d->holds--;
		return d->queued > 0;
	}
	d->flying++;
	d->flying_bytes += buf->len;
	o->flying++;
	d->backoff_ns = 0;
	/* A core may hold it until the kernel gives up, minutes later. */
	if (!d->proven) {
		if (!d->trying_ns)
			d->trying_ns = now;
		lnx_timer_arm(&r->timers, &d->retry, d->trying_ns + r->s.connect_ns);
	}
	return d->queued && d->flying_bytes < RTD_WINDOW_BYTES;
}

static void run_rail(struct rtd_relay *r, struct rtd_out *o, uint64_t now)
{
	unsigned n = RUN_FRAMES;
	struct lnx_node *node;

	while (n-- && o->rail.up && o->flying < o->rail.tx_max &&
	       (node = lnx_list_pop(&o->ready))) {
		struct rtd_dest *d = lnx_list_entry(node, struct rtd_dest, ready);
		struct rtd_flow *f;
		bool more = true, stays;

		if (!d->queued)
			continue;
		f = next_flow(d);
		stays = f->source && rtd_turn_allows(&d->turn, first_len(f));
		if (stays || !f->source)
			more = send_one(r, o, f, now);
		if (more && stays)
			lnx_list_add_head(&o->ready, &d->ready);
		else if (more)
			lnx_list_add_tail(&o->ready, &d->ready);
		if (!d->queued)
			d->turn = (struct rtd_turn){ .left = 0 };
	}
}

void rtd_dests_run(struct rtd_relay *r, uint64_t now)
{
	unsigned i;

	lnx_timers_run(&r->timers, now, UINT32_MAX);
	for (i = 0; i < r->nout; i++)
		run_rail(r, &r->out[i], now);
}

static enum rtd_reason reason_of(int err)
{
	switch (err) {
	case -ECONNREFUSED:
		return RTD_REFUSED;
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -EHOSTDOWN:
	case -ENETDOWN:
	case -ETIMEDOUT:
		return RTD_UNREACHABLE;
	default:
		return RTD_BROKEN;
	}
}

static void sent_ok(struct rtd_relay *r, struct rtd_dest *d, const struct rtd_buf *buf)
{
	r->news += d->pins && d->fails;
	d->proven = true;
	d->breaking = 0;
	d->fails = 0;
	d->failed_ns = 0;
	d->trying_ns = 0;
	d->backoff_ns = 0;
	if (buf->control) {
		rtd_source_arrived(r, buf->account);
		return;
	}
	d->frames++;
	d->bytes += buf->len;
	r->counts.frames_out++;
	r->counts.bytes_out += buf->len;
}

/*
 * All that the core has for it fails together: the first one counts.  A connection that
 * has worked and broke is made again by the next frame; that to a gateway, if there is no
 * other one.
 */
static void failed(struct rtd_relay *r, struct rtd_dest *d, enum rtd_reason reason,
		   uint64_t now)
{
	if (now < d->failed_ns)
		return;
	if (reason == RTD_BROKEN && d->pins && rtd_gateway_replaced(r, d, now))
		reason = RTD_UNREACHABLE;
	if (reason != RTD_BROKEN) {
		rtd_dest_fail(r, d, reason, now);
	} else if (d->proven) {
		d->failures++;
		d->proven = false;
		d->trying_ns = 0;
		d->breaking = d->flying;
	} else if (d->breaking) {
		d->breaking--;
	} else {
		rtd_dest_fail(r, d, RTD_UNREACHABLE, now);
	}
}

void rtd_relay_sent(struct rtd_relay *r, struct rtd_buf *buf, int err, uint64_t now)
{
	struct rtd_dest *d = buf->dest;

	d->flying--;
	d->flying_bytes -= buf->len;
	d->held[buf->class]--;
	r->out[d->rail].flying--;
	if (!err) {
		sent_ok(r, d, buf);
		rtd_free_buf(r, buf);
	} else {
		enum rtd_reason reason = reason_of(err);

		d->holds++;
		if (buf->control)
			rtd_free_buf(r, buf);
		else
			rtd_drop_buf(r, reason, NULL, buf, now);
		d->holds--;
		failed(r, d, reason, now);
	}
	if (d->proven)
		lnx_timer_cancel(&r->timers, &d->retry);
	if (d->queued && !lnx_list_linked(&d->ready))
		lnx_list_add_tail(&r->out[d->rail].ready, &d->ready);
}

void rtd_dests_free(struct rtd_relay *r)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&r->dest_lru, n, tmp) {
		struct rtd_dest *d = lnx_list_entry(n, struct rtd_dest, lru);

		while (!lnx_list_empty(&d->flows))
			rtd_free_buf(r, take(r, lnx_list_entry(d->flows.next,
							       struct rtd_flow, link)));
		d->next = NULL;
	}
	while (!lnx_list_empty(&r->dest_lru))
		remove_dest(r, lnx_list_entry(r->dest_lru.next, struct rtd_dest, lru));
}
