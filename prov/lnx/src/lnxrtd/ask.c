/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Questions whether the host of an end answers: of endpoints that hear nothing from there, of
 * other gateways for these, and of this one.  The last gateway asks the kernel of the host; those
 * before it pass the question on, and the answer back.  One that hears that the next gateway does
 * not reach the host asks another one that leads there, and frames go over that as well.
 */
#include <string.h>

#include "lnxrtd/inside.h"

#define ASKS		100u			/* per second and source */

static void tell(struct rtd_relay *r, struct rtd_source *s, const struct lnx_gw_ask *ask,
		 enum lnx_route_tell what, uint64_t now)
{
	const struct rtd_back *back = rtd_back_usual(r, s);
	struct lnx_gw_ask a = *ask;
	struct rtd_buf *buf;
	int len;

	if (!back)
		return;
	buf = rtd_control_buf(r, sizeof(struct lnx_wire_gw_ask));
	if (!buf)
		return;
	a.tell = (uint8_t)what;
	a.hops_done = 0;
	a.id = r->s.id;
	a.key = r->s.key;
	a.account = s->account;
	len = lnx_wire_gw_ask_put(buf->bytes, &a);
	if (len < 0) {
		rtd_pool_put(&r->pool, buf);
		return;
	}
	buf->len = (uint32_t)len;
	rtd_control_queue(r, buf, s, &back->to, now);
}

/* One that nothing waits for, with a new cookie in *cookie. */
static struct rtd_ask *free_ask(struct rtd_relay *r, uint32_t *cookie, uint64_t now)
{
	unsigned i;

	for (i = 0; i < RTD_ASKS; i++)
		if (!r->ask[i].cookie || (r->ask[i].gateway && now >= r->ask[i].lost_ns))
			break;
	if (i == RTD_ASKS)
		return NULL;
	if (!++r->last_cookie)
		r->last_cookie++;
	*cookie = r->last_cookie;
	return &r->ask[i];
}

/* A question to a kernel is under way, for s (NULL: for this gateway).  False: it cannot be
 * asked. */
static bool ask_kernel(struct rtd_relay *r, unsigned rail, const struct lnx_addr_rail *to,
		       const struct rtd_source *s, uint32_t nonce, uint64_t now)
{
	uint32_t cookie;
	struct rtd_ask *slot = free_ask(r, &cookie, now);

	if (!slot)
		return false;
	*slot = (struct rtd_ask){ .cookie = cookie, .nonce = nonce, .to = *to,
				  .source = s ? s->id : 0, .account = s ? s->account : 0 };
	if (!r->ops.ask(r->ops.arg, rail, to, slot->cookie))
		return true;
	slot->cookie = 0;
	return false;
}

void rtd_ask_dest(struct rtd_relay *r, const struct rtd_dest *d, uint64_t now)
{
	ask_kernel(r, d->rail, &d->addr, NULL, 0, now);
}

/* So soon an answer of that gateway is due: half of the time after which it is dead, which follows
 * the time that its answers take. */
static uint64_t answer_ns(const struct rtd_relay *r, const struct rtd_gateway *gw)
{
	struct lnx_route_plan plan = r->plan;

	plan.least_ns = RTD_BUSY_DEAD_NS;
	return LNX_MAX(lnx_route_gateway_limit(&gw->g, &plan) / 2, RTD_ANSWER_NS);
}

/* A question of s, or of this gateway (NULL), about an end behind the gateway gw is on its way to
 * that, which asks for us, the first one or another one. */
static bool pass_on(struct rtd_relay *r, struct rtd_gateway *gw, const struct rtd_source *s,
		    const struct lnx_gw_ask *a, bool first, uint64_t now)
{
	struct lnx_gw_ask to = { .hops_done = (uint8_t)(a->hops_done + 1),
				 .account = gw->g.account, .id = r->s.id, .key = r->s.key,
				 .rail = a->rail };
	struct rtd_ask *slot;
	struct rtd_buf *buf;
	uint32_t cookie;

	/* It answers only to sources that it knows. */
	if (!gw->g.id || a->hops_done == LNX_ROUTE_HOPS_MAX || now < gw->dest->failed_ns)
		return false;
	slot = free_ask(r, &cookie, now);
	buf = slot ? rtd_control_buf(r, sizeof(struct lnx_wire_gw_ask)) : NULL;
	if (!buf)
		return false;
	to.nonce = rtd_nonce(r, now ^ (uint64_t)cookie << 32);
	buf->len = (uint32_t)lnx_wire_gw_ask_put(buf->bytes, &to);
	if (!rtd_dest_queue(r, gw->dest, buf)) {
		rtd_pool_put(&r->pool, buf);
		return false;
	}
	r->control++;
	*slot = (struct rtd_ask){ .cookie = cookie, .nonce = a->nonce, .source = s ? s->id : 0,
				  .account = s ? s->account : 0, .to = a->rail,
				  .hops_done = a->hops_done, .gateway = gw->g.id,
				  .passed = to.nonce, .first = first,
				  .late_ns = now + answer_ns(r, gw),
				  .lost_ns = now + RTD_PASSED_NS };
	if (!r->asks_ns || slot->late_ns < r->asks_ns)
		r->asks_ns = slot->late_ns;
	return true;
}

void rtd_ask_gateway(struct rtd_relay *r, struct rtd_gateway *gw, const struct rtd_dest *d,
		     uint64_t now)
{
	struct lnx_gw_ask a = { .rail = d->addr };

	pass_on(r, gw, NULL, &a, false, now);
}

/* One of that question, which other gateways may have been asked as well, or NULL. */
static struct rtd_ask *same_question(struct rtd_relay *r, const struct rtd_ask *ask)
{
	unsigned i;

	for (i = 0; i < RTD_ASKS; i++) {
		struct rtd_ask *other = &r->ask[i];

		if (other->cookie && other->gateway && other->nonce == ask->nonce &&
		    other->source == ask->source && other->account == ask->account)
			return other;
	}
	return NULL;
}

/* The gateway that was asked does not reach the host, or not soon: frames go over another one that
 * leads there, and that is asked as well.  Only once for a question: the host may answer none. */
static bool ask_another(struct rtd_relay *r, const struct rtd_ask *ask, uint64_t now)
{
	struct lnx_gw_ask a = { .nonce = ask->nonce, .hops_done = ask->hops_done,
				.rail = ask->to };
	struct rtd_source *s = rtd_source_find(r, ask->source, ask->account);
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct rtd_gateway *gw;
	struct rtd_dest *d;

	if (!s || !ask->first || lnx_route_rail_put(key, &ask->to))
		return false;
	d = rtd_dest_find(r, key, now);
	gw = d && d->next ? rtd_gateway_of(r, d->next) : NULL;
	if (gw && gw->g.id == ask->gateway) {
		if (!rtd_dest_late(r, d, now))
			return false;
		gw = rtd_gateway_of(r, d->next);
	}
	return gw && pass_on(r, gw, s, &a, false, now);
}

uint64_t rtd_asks_run(struct rtd_relay *r, uint64_t now)
{
	unsigned i;

	if (!r->asks_ns || now < r->asks_ns)
		return r->asks_ns ? r->asks_ns : UINT64_MAX;
	r->asks_ns = 0;
	for (i = 0; i < RTD_ASKS; i++) {
		struct rtd_ask *ask = &r->ask[i];

		if (!ask->cookie || !ask->late_ns)
			continue;
		if (now >= ask->late_ns) {
			ask->late_ns = 0;
			if (ask_another(r, ask, now))
				ask->first = false;
		} else if (!r->asks_ns || ask->late_ns < r->asks_ns) {
			r->asks_ns = ask->late_ns;
		}
	}
	return r->asks_ns ? r->asks_ns : UINT64_MAX;
}

/* The answer to that. */
static void dest_told(struct rtd_relay *r, const struct lnx_addr_rail *to,
		      enum lnx_route_tell what, uint64_t now)
{
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct rtd_dest *d;

	if (lnx_route_rail_put(key, to))
		return;
	d = rtd_dest_find(r, key, now);
	/* Something may have arrived meanwhile. */
	if (!d || !d->trying_ns || now < d->failed_ns)
		return;
	if (what == LNX_TELL_REFUSED)
		rtd_dest_fail(r, d, RTD_REFUSED, now);
	else if (what == LNX_TELL_UNREACHABLE || what == LNX_TELL_SILENT)
		rtd_dest_fail(r, d, RTD_UNREACHABLE, now);
}

/* What can be said at once; 0: the answer comes later. */
static enum lnx_route_tell find_answer(struct rtd_relay *r, const struct lnx_gw_ask *a,
				       struct rtd_source *s, uint64_t now)
{
	enum rtd_reason reason;
	const char *why;
	struct rtd_dest *d = rtd_target(r, &a->rail, s, &reason, &why, now);
	struct rtd_gateway *gw;

	if (!d)
		return reason == RTD_NO_ROUTE ? LNX_TELL_NO_ROUTE : LNX_TELL_UNKNOWN;
	if (!r->out[d->rail].rail.up)
		return LNX_TELL_RAIL_DOWN;
	if (!d->next)
		return ask_kernel(r, d->rail, &a->rail, s, a->nonce, now) ?
		       0 : LNX_TELL_UNKNOWN;
	gw = rtd_gateway_of(r, d->next);
	return gw && pass_on(r, gw, s, a, true, now) ? 0 : LNX_TELL_UNKNOWN;
}

void rtd_ask_rx(struct rtd_relay *r, const uint8_t *bytes, size_t len, uint64_t now)
{
	enum lnx_route_tell what;
	struct rtd_source *s;
	struct lnx_gw_ask a;

	if (lnx_wire_gw_ask_get(&a, bytes, len, NULL) || !rtd_key_fits(r, a.key)) {
		r->counts.bad_control++;
		return;
	}
	s = rtd_source_find(r, a.id, a.account);
	if (!s || !rtd_limit_take(&s->asks, ASKS, ASKS, now)) {
		r->counts.bad_control++;
		return;
	}
	r->counts.asks++;
	what = find_answer(r, &a, s, now);
	if (what)
		tell(r, s, &a, what, now);
}

/* The source that waits for that has its answer. */
static void pass_back(struct rtd_relay *r, const struct rtd_ask *ask, enum lnx_route_tell what,
		      uint64_t now)
{
	struct lnx_gw_ask a = { .nonce = ask->nonce, .rail = ask->to };
	struct rtd_source *s = rtd_source_find(r, ask->source, ask->account);

	if (s)
		tell(r, s, &a, what, now);
}

/* That gateway was asked in vain before. */
static void reaches(struct rtd_relay *r, const struct rtd_ask *ask, enum lnx_route_tell what,
		    uint64_t now)
{
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct rtd_dest *d;
	unsigned i;

	if ((what != LNX_TELL_ALIVE && what != LNX_TELL_REFUSED) ||
	    lnx_route_rail_put(key, &ask->to))
		return;
	d = rtd_dest_find(r, key, now);
	for (i = 0; d && i < r->ngateway; i++)
		if (r->gateway[i].g.id == ask->gateway)
			rtd_dest_in_time(r, d, &r->gateway[i], now);
}

/* The gateway that was asked tells what.  That it does not reach the host is passed back only when
 * no other one may; what others tell after the answer is not. */
static void gateway_told(struct rtd_relay *r, const struct rtd_ask *ask,
			 enum lnx_route_tell what, uint64_t now)
{
	struct rtd_ask *other;

	if (!ask->source) {
		reaches(r, ask, what, now);
		return;
	}
	if (what != LNX_TELL_ALIVE && what != LNX_TELL_REFUSED &&
	    (same_question(r, ask) || ask_another(r, ask, now)))
		return;
	while ((other = same_question(r, ask)))
		other->cookie = 0;
	pass_back(r, ask, what, now);
}

/* The next gateway answers what was passed on to it. */
void rtd_tell_rx(struct rtd_relay *r, const uint8_t *bytes, size_t len, uint64_t now)
{
	struct lnx_gw_ask a;
	struct rtd_ask ask;
	unsigned i = RTD_ASKS;

	if (!lnx_wire_gw_ask_get(&a, bytes, len, NULL) && rtd_key_fits(r, a.key))
		for (i = 0; i < RTD_ASKS; i++)
			if (r->ask[i].cookie && r->ask[i].gateway == a.id &&
			    r->ask[i].passed == a.nonce)
				break;
	if (i == RTD_ASKS) {
		r->counts.bad_control++;
		return;
	}
	ask = r->ask[i];
	r->ask[i].cookie = 0;
	gateway_told(r, &ask, a.tell, now);
}

void rtd_relay_told(struct rtd_relay *r, uint32_t cookie, enum lnx_route_tell what,
		    uint64_t now)
{
	unsigned i;

	for (i = 0; i < RTD_ASKS && (!cookie || r->ask[i].cookie != cookie); i++)
		;
	if (i == RTD_ASKS)
		return;
	r->ask[i].cookie = 0;
	if (r->ask[i].source)
		pass_back(r, &r->ask[i], what, now);
	else
		dest_told(r, &r->ask[i].to, what, now);
}
