/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a gateway says and is told beside frames: notes, hellos and infos; questions are in ask.c.
 * Each has a limit of its own, and waits in the queue of its receiver before frames do.
 */
#include <errno.h>
#include <string.h>

#include "lnxrtd/inside.h"

#define NOTE_BURST	16u
#define HELLOS		500u			/* per second and rail, */
#define HELLOS_BURST	4096u			/* all nodes begin at once */
#define HOST_HELLOS	50u			/* of these, of one host, */
#define HOST_BURST	256u			/* all processes begin at once */
#define OWN_HELLOS	20u			/* of one that knows its account: others */
#define OWN_BURST	64u			/* cannot use these up */
#define GUESSES		1000u			/* notes with wrong accounts, per second */
#define CONTROL_MAX	4096u			/* that wait at a time */

struct rtd_buf *rtd_control_buf(struct rtd_relay *r, size_t len)
{
	struct rtd_buf *buf;

	if (r->control >= CONTROL_MAX)
		return NULL;
	buf = rtd_pool_get(&r->pool, rtd_class_of(len));
	if (buf)
		buf->control = 1;
	return buf;
}

bool rtd_control_queue(struct rtd_relay *r, struct rtd_buf *buf, struct rtd_source *s,
		     const struct lnx_addr_rail *to, uint64_t now)
{
	enum rtd_reason reason;
	const char *why;
	struct rtd_dest *d = rtd_target(r, to, s, &reason, &why, now);

	if (d && d->next)
		d = NULL;
	if (!d || now < d->failed_ns || !rtd_dest_queue(r, d, buf)) {
		rtd_pool_put(&r->pool, buf);
		return false;
	}
	r->control++;
	return true;
}

/* The rail of that place that it is sent to; the first one if possible. */
static const struct rtd_back *back_of(const struct rtd_relay *r, const struct rtd_place *place,
				      unsigned first)
{
	unsigned i;

	for (i = 0; i < place->n; i++) {
		const struct rtd_back *back = &place->back[(first + i) % place->n];

		if (r->out[back->rail].rail.up)
			return back;
	}
	return NULL;
}

const struct rtd_back *rtd_back_usual(const struct rtd_relay *r, const struct rtd_source *s)
{
	return back_of(r, &s->place, s->place.first);
}

/* ---- notes ---- */

/* Send n, which is about frames of s, unless that has had many of late: then the next one says
 * how many there were. */
static void send_note(struct rtd_relay *r, struct rtd_source *s, struct lnx_route_note *n,
		      uint64_t now)
{
	const struct rtd_back *back = rtd_back_usual(r, s);
	struct rtd_buf *buf;

	if (!s->account || !back)
		return;
	s->note[n->reason].count += n->count;
	if ((s->note[n->reason].at_ns &&
	     lnx_ns_since(now, s->note[n->reason].at_ns) < RTD_NOTE_GAP_NS) ||
	    !rtd_limit_take(&s->notes, r->s.notes, NOTE_BURST, now)) {
		r->counts.notes_held++;
		return;
	}
	buf = rtd_control_buf(r, LNX_ROUTE_NOTE_LEN);
	if (!buf) {
		r->counts.notes_held++;
		return;
	}
	n->account = s->account;
	n->id = r->s.id;
	n->key = r->s.key;
	n->count = s->note[n->reason].count;
	buf->len = (uint32_t)lnx_route_note_put(buf->bytes, n);
	if (!rtd_control_queue(r, buf, s, &back->to, now)) {
		r->counts.notes_held++;
		return;
	}
	s->note[n->reason].at_ns = now;
	s->note[n->reason].count = 0;
	r->counts.notes_sent++;
}

void rtd_note(struct rtd_relay *r, struct rtd_source *s, unsigned reason,
	      const uint8_t *bytes, uint32_t wait_ms, uint64_t now)
{
	struct lnx_route_note n = { .reason = (uint8_t)reason, .count = 1, .wait_ms = wait_ms };
	struct lnx_wire_route env;
	struct lnx_wire_hdr h;

	memcpy(&h, bytes + LNX_ROUTE_HEAD, sizeof(h));
	memcpy(&env, bytes, sizeof(env));
	/* Once it is queued the envelope says that this gateway has forwarded it. */
	n.hops_done = (uint8_t)(env.hops_done - (reason != LNX_NOTE_TTL &&
						le64toh(env.via) == r->s.id));
	n.src = le64toh(h.src);
	n.dst = le64toh(h.dst);
	n.seq = le32toh(h.seq);
	if (!lnx_route_rail_get(&n.rail, lnx_route_rail(bytes)))
		send_note(r, s, &n, now);
}

/* Of the sources of frames to there the last one has most likely sent this one. */
static void pass_note(struct rtd_relay *r, const struct rtd_dest *d, struct lnx_route_note *n,
		      uint64_t now)
{
	struct rtd_source *s = r->by_account[d->from];

	if (!n->hops_done || !d->from || !s)
		return;
	n->hops_done--;
	send_note(r, s, n, now);
}

/* A note from the next gateway: if no other one leads to that end, frames to it are dropped here
 * as well for a time.  Where this one came from is told, so that it comes again. */
static void note_rx(struct rtd_relay *r, const uint8_t *bytes, size_t len, uint64_t now)
{
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct rtd_gateway *gw = NULL;
	struct lnx_route_note n;
	bool another = false;
	struct rtd_dest *d;
	unsigned i;

	if (lnx_route_note_get(&n, bytes, len, NULL) || !rtd_key_fits(r, n.key)) {
		r->counts.bad_control++;
		return;
	}
	/* The id is known to all that it forwards to, the account to it and to us. */
	for (i = 0; i < r->ngateway && !gw; i++)
		if (r->gateway[i].g.id == n.id && r->gateway[i].g.account == n.account)
			gw = &r->gateway[i];
	/* It must not be found by trying: then none counts for a moment, and ends find out. */
	if (!gw || now < r->guess_ns) {
		if (!gw && !rtd_limit_take(&r->guesses, GUESSES, GUESSES, now))
			r->guess_ns = now + RTD_GUESS_NS;
		r->counts.bad_control++;
		return;
	}
	r->counts.notes_received++;
	lnx_route_gateway_note(&gw->g, n.reason, n.count, now);
	if (lnx_route_rail_put(key, &n.rail))
		return;
	d = rtd_dest_find(r, key, now);
	if (!d || d->next != gw->dest)
		return;
	switch (n.reason) {
	case LNX_NOTE_REFUSED:
		rtd_dest_fail(r, d, RTD_REFUSED, now);
		break;
	case LNX_NOTE_UNREACHABLE:
		another = rtd_dest_detour(r, d, now);
		if (!another)
			rtd_dest_fail(r, d, RTD_UNREACHABLE, now);
		break;
	case LNX_NOTE_NO_ROUTE:
		another = rtd_dest_detour(r, d, now);
		if (!another)
			rtd_dest_fail(r, d, RTD_NO_ROUTE, now);
		break;
	case LNX_NOTE_NOT_ROUTER:
	case LNX_NOTE_DRAINING:
		/* The next frame finds out whether there is one. */
		another = true;
		break;
	case LNX_NOTE_TTL:
		rtd_dest_fail(r, d, RTD_LOOP, now);
		break;
	case LNX_NOTE_FORBIDDEN:
		rtd_dest_fail(r, d, RTD_NOT_ALLOWED, now);
		break;
	default:
		break;
	}
	/* That one does not, and this one may still. */
	if (another) {
		n.reason = LNX_NOTE_UNREACHABLE;
		n.wait_ms = 0;
	}
	pass_note(r, d, &n, now);
}

/* ---- hello and info ---- */

static void own_rails(const struct rtd_relay *r, struct lnx_rails *rails)
{
	unsigned i;

	for (i = 0; i < r->nout; i++) {
		rails->place[i] = (uint8_t)i;
		rails->rail[i] = r->out[i].rail.addr;
	}
	rails->n = r->nout;
}

static void own_nets(const struct rtd_relay *r, struct lnx_gw_info *info)
{
	unsigned i, k;

	for (i = 0; i < r->nout; i++) {
		const struct lnx_addr_rail *a = &r->out[i].rail.addr;

		for (k = 0; k < info->nnet; k++)
			if (info->net[k].prov == a->prov && info->net[k].group == a->group)
				break;
		if (k == info->nnet)
			info->net[info->nnet++] = (struct lnx_wire_gw_net){
				.prov = a->prov, .hops = 1, .group = a->group };
	}
}

/* The longest frame that shall come, and that all rails take. */
static uint32_t frame_max(const struct rtd_relay *r)
{
	uint32_t max = r->s.frame_max;
	unsigned i;

	for (i = 0; i < r->nout; i++)
		max = LNX_MIN(max, r->out[i].rail.frame_max);
	return max;
}

/* The longest frame that all gateways behind this one take that have told, but for the source
 * itself; 0: none has.  What has not told yet is behind none that works.  With a rail here that
 * takes no frame of an end there is nothing to say of those behind: frame_max tells it.  *hops:
 * gateways from here to the one that it is that of. */
static uint32_t behind(const struct rtd_relay *r, const struct rtd_source *s, uint8_t *hops)
{
	uint32_t max = 0, own = frame_max(r);
	unsigned i;

	for (i = 0; i < r->ngateway; i++) {
		const struct rtd_gateway *gw = &r->gateway[i];

		if (!gw->way || (s->gateway && gw->g.id == s->id) || (max && gw->way > max) ||
		    (gw->way == max && gw->way_hops >= *hops))
			continue;
		max = gw->way;
		*hops = gw->way_hops;
	}
	if (!max || LNX_MIN(max, own) < LNX_ROUTE_HEAD + LNX_FRAME_MAX)
		return 0;
	if (own <= max)
		*hops = 1;		/* the least that is not 0: not known */
	return LNX_MIN(max, own);
}

/* With that nonce, if possible to that rail of the source. */
static bool send_info(struct rtd_relay *r, struct rtd_source *s, uint32_t nonce, unsigned first,
		      uint64_t now)
{
	const struct rtd_back *back = back_of(r, &s->place, first);
	struct lnx_gw_info info = { .hops = r->routes->n ? LNX_ROUTE_HOPS_MAX : 1 };
	struct rtd_buf *buf;
	unsigned i;
	int len;

	if (!back)
		return false;
	buf = rtd_control_buf(r, LNX_GW_INFO_BYTES_MAX);
	if (!buf)
		return false;
	info.gw = (struct lnx_gw_hello){
		.flags = r->state == RTD_ON ? LNX_GW_F_ROUTING :
			 r->state == RTD_DRAINING ? LNX_GW_F_ROUTING | LNX_GW_F_DRAINING : 0,
		.oldest = LNX_ROUTE_VERSION, .newest = LNX_ROUTE_NEWEST,
		.account = s->account, .id = r->s.id, .key = r->s.key, .nonce = nonce,
		.host = r->s.host,
	};
	own_rails(r, &info.gw.rails);
	own_nets(r, &info);
	rtd_grants_renew(r);
	info.large = rtd_grant(r, s, RTD_GRANT_LARGE);
	info.small = rtd_grant(r, s, RTD_GRANT_SMALL);
	info.frame_max = frame_max(r);
	if (s->knows_behind)
		info.behind = behind(r, s, &info.hops);
	for (i = 0; i < r->nout; i++) {
		info.state[i].up = r->out[i].rail.up;
		info.state[i].health = LNX_HEALTH_MAX;
	}
	len = lnx_wire_gw_info_put(buf->bytes, RTD_SMALL_BYTES, &info);
	if (len < 0) {
		rtd_pool_put(&r->pool, buf);
		return false;
	}
	buf->len = (uint32_t)len;
	buf->account = s->account;
	if (!rtd_control_queue(r, buf, s, &back->to, now))
		return false;
	s->told[RTD_GRANT_LARGE] = info.large;
	s->told[RTD_GRANT_SMALL] = info.small;
	s->told_epoch = r->epoch;
	r->counts.infos++;
	return true;
}

/* An answer costs the most of what a stranger can ask for. */
static bool may_say_hello(struct rtd_relay *r, unsigned rail, struct rtd_source *s,
			  const struct lnx_gw_hello *h, uint64_t now)
{
	if (s && s->account == h->account)
		return rtd_limit_take(&s->hellos, OWN_HELLOS, OWN_BURST, now);
	return rtd_limit_take(rtd_host_hellos(r, rail, h), HOST_HELLOS, HOST_BURST, now) &&
	       rtd_limit_take(&r->out[rail].hellos, HELLOS, HELLOS_BURST, now);
}

static void hello_rx(struct rtd_relay *r, unsigned rail, const uint8_t *bytes, size_t len,
		     uint64_t now)
{
	struct rtd_place place;
	struct lnx_gw_hello h;
	struct rtd_source *s;

	if (lnx_wire_gw_hello_get(&h, bytes, len, NULL) || !rtd_key_fits(r, h.key) ||
	    h.id == r->s.id) {
		r->counts.bad_control++;
		return;
	}
	s = rtd_source_at(r, &h, &place);
	if (!may_say_hello(r, rail, s, &h, now)) {
		r->counts.bad_control++;
		return;
	}
	r->counts.hellos++;
	s = rtd_source_hello(r, s, &h, &place, now);
	if (s)
		send_info(r, s, h.nonce, place.first, now);
	/* With one more source the others may fill less. */
	if (s && !r->sweep_ns)
		r->sweep_ns = now + RTD_INFO_NS;
}

/* What is new is told with each nonce that may be the one that the source knows. */
static bool send_news(struct rtd_relay *r, struct rtd_source *s, uint64_t now)
{
	bool sent = send_info(r, s, s->nonce, s->place.first, now);

	return s->claimed ? send_info(r, s, s->claimed, s->place.first, now) || sent : sent;
}

/* Few sources in one call, each told only what it does not know. */
void rtd_sweep(struct rtd_relay *r, uint64_t now)
{
	struct lnx_node *n, *tmp;
	bool more = false;

	if (!r->sweep_ns || now < r->sweep_ns)
		return;
	rtd_grants_renew(r);
	lnx_list_foreach(&r->sources, n, tmp) {
		struct rtd_source *s = lnx_list_entry(n, struct rtd_source, lru);

		if (s->told_epoch == r->epoch &&
		    s->told[RTD_GRANT_LARGE] == rtd_grant(r, s, RTD_GRANT_LARGE) &&
		    s->told[RTD_GRANT_SMALL] == rtd_grant(r, s, RTD_GRANT_SMALL))
			continue;
		if (r->control >= CONTROL_MAX / 2) {
			more = true;
			break;
		}
		/* One that cannot be told has to ask. */
		if (!send_news(r, s, now))
			s->told_epoch = r->epoch;
	}
	r->sweep_ns = more ? now + RTD_INFO_REST_NS : 0;
}

/* A gateway forwards, one of its rails is up, or it stays, which was not so before. */
static bool can_more(const struct lnx_gateway *g, const struct lnx_gateway_facts *f)
{
	unsigned i;

	if ((f->routing && !g->routing) || (!f->draining && g->draining))
		return true;
	for (i = 0; i < LNX_MIN(g->nrail, f->nrail); i++)
		if (g->rail[i].told_down && g->rail[i].place == f->rail[i].place && f->rail[i].up)
			return true;
	return false;
}

/*
 * What that gateway says of long frames is told on.  In a ring a gateway hears so what it has said
 * itself, which would stay for ever: but over one gateway more each time, until these are more
 * than a frame goes over.
 */
static void note_way(struct rtd_relay *r, struct rtd_gateway *gw,
		     const struct lnx_gw_info *info)
{
	uint32_t way = LNX_ROUTE_HEAD + LNX_FRAME_MAX;
	/* Without a number it is of a gateway that counts none. */
	uint8_t hops = 1, more = info->hops < LNX_ROUTE_HOPS_MAX ? info->hops : 0;

	if (info->gw.newest >= LNX_ROUTE_NEWEST)
		way = LNX_MAX(way, info->frame_max);
	if (info->behind && info->behind < way && more + 1u < LNX_ROUTE_HOPS_MAX &&
	    rtd_gateway_leads_on(r, gw)) {
		way = info->behind;
		hops = (uint8_t)(more + 1);
	}
	if (way == gw->way && hops == gw->way_hops)
		return;
	gw->way = way;
	gw->way_hops = hops;
	r->epoch++;
	r->sweep_ns = 1;
}

static void info_rx(struct rtd_relay *r, const uint8_t *bytes, size_t len, uint64_t now)
{
	struct lnx_gateway_facts f;
	struct rtd_gateway *gw = NULL;
	struct lnx_gw_info info;
	bool more, stops;
	unsigned i;

	if (lnx_wire_gw_info_get(&info, bytes, len, NULL) || !rtd_key_fits(r, info.gw.key))
		goto bad;
	for (i = 0; i < r->ngateway && !gw; i++) {
		struct rtd_gateway *one = &r->gateway[i];

		/* An answer to our last hello, or news: the one before may be the last that it
		 * has. */
		if (info.gw.nonce == one->nonce || info.gw.nonce == one->again_nonce ||
		    info.gw.nonce == one->answered_nonce)
			gw = one;
	}
	if (!gw)
		goto bad;
	if (!gw->answered && info.gw.nonce != gw->answered_nonce) {
		gw->answered = true;
		lnx_route_gateway_answered(&gw->g, info.gw.nonce == gw->again_nonce, now);
	}
	gw->answered_nonce = info.gw.nonce;
	lnx_route_gateway_facts(&f, &info);
	more = can_more(&gw->g, &f);
	stops = f.draining && !gw->g.draining;
	more |= (lnx_route_gateway_info(&gw->g, &f, now) &
		 (LNX_GATEWAY_CAME_UP | LNX_GATEWAY_RESTARTED)) != 0;
	if (more)
		gw->better_ns = now;
	note_way(r, gw, &info);
	/* What leads over it, or past it, is looked at again. */
	r->news += more || stops;
	return;
bad:
	r->counts.bad_control++;
}

uint32_t rtd_nonce(const struct rtd_relay *r, uint64_t of)
{
	/* Accounts are numbered from 1 on. */
	return (uint32_t)rtd_secret(r, ~of) | 1u;
}

/* How often it is asked, and how soon it is dead.  Only this tells of one that is silent: a core
 * takes megabytes for one that has stopped. */
static struct lnx_route_plan plan_of(struct rtd_relay *r, struct rtd_gateway *gw, uint64_t now)
{
	struct lnx_route_plan plan = r->plan;
	struct rtd_dest *d = gw->dest;
	bool used = d->pins > 1;

	if (now >= gw->look_ns) {
		/* A silent one soon takes no frames: that must not end it. */
		gw->busy = (gw->busy && gw->g.asked) ||
			   (used && d->frames != gw->frames && rtd_gateway_replaced(r, d, now));
		gw->frames = d->frames;
		gw->look_ns = now + RTD_BUSY_NS;
	}
	if (gw->busy)
		plan.least_ns = RTD_BUSY_DEAD_NS;
	if (used)
		plan.alive_ns = gw->busy ? RTD_BUSY_NS : RTD_USED_NS;
	return plan;
}

/* What its core was given, and what has come from it. */
static void note_traffic(struct rtd_relay *r, struct rtd_gateway *gw,
			 const struct lnx_route_plan *plan, uint64_t now)
{
	const struct rtd_source *s = NULL;

	if (gw->g.asked && now >= lnx_route_gateway_next(&gw->g, plan))
		s = rtd_source_find(r, gw->g.id, 0);
	lnx_route_gateway_traffic(&gw->g, gw->dest->bytes + gw->dest->flying_bytes,
				  s ? s->heard_ns : gw->g.wait.came_ns);
}

/* False: it could not be sent.  To one that could not be reached a moment ago none is: that is as
 * one without an answer. */
static bool send_hello(struct rtd_relay *r, struct rtd_gateway *gw, uint64_t now)
{
	struct lnx_gw_hello h = {
		.flags = LNX_GW_F_GATEWAY, .oldest = LNX_ROUTE_VERSION,
		.newest = LNX_ROUTE_NEWEST, .account = gw->g.account,
		.id = r->s.id, .key = r->s.key, .host = r->s.host,
		.nonce = gw->again_nonce ? gw->again_nonce : gw->nonce,
		.rail = gw->dest->rail,
	};
	struct rtd_buf *buf;
	int len;

	if (now < gw->dest->failed_ns)
		return true;
	buf = rtd_control_buf(r, LNX_GW_INFO_BYTES_MAX);
	if (!buf)
		return false;
	own_rails(r, &h.rails);
	len = lnx_wire_gw_hello_put(buf->bytes, RTD_SMALL_BYTES, &h);
	buf->len = (uint32_t)len;
	if (len < 0 || !rtd_dest_queue(r, gw->dest, buf)) {
		rtd_pool_put(&r->pool, buf);
		return false;
	}
	r->control++;
	return true;
}

/* Ask it what is due. */
static void run_gateway(struct rtd_relay *r, struct rtd_gateway *gw,
			const struct lnx_route_plan *plan, uint64_t now)
{
	enum lnx_gateway_todo todo;

	note_traffic(r, gw, plan, now);
	while ((todo = lnx_route_gateway_poll(&gw->g, plan, gw->dest->pins > 1, now)) !=
	       LNX_GATEWAY_NOTHING) {
		if (todo == LNX_GATEWAY_LOST) {
			if (rtd_gateway_replaced(r, gw->dest, now))
				rtd_dest_purge(r, gw->dest, RTD_UNREACHABLE,
					       "the next gateway does not answer", now);
			continue;
		}
		/* Two that are asked in one pass get two nonces. */
		gw->again_nonce = rtd_nonce(r, now ^ (uint64_t)(gw - r->gateway) << 48);
		if (todo == LNX_GATEWAY_HELLO) {
			gw->nonce = gw->again_nonce;
			gw->again_nonce = 0;
			gw->answered = false;
		}
		if (!send_hello(r, gw, now)) {
			lnx_route_gateway_unsent(&gw->g, now);
			break;
		}
	}
}

/* What one that has been dead for long said of long frames is not told on any more: nothing goes over
 * it, and when it is back it says that first. */
static void forget_way(struct rtd_relay *r, struct rtd_gateway *gw, uint64_t now)
{
	if (!gw->way || gw->g.state != LNX_GATEWAY_DEAD ||
	    lnx_ns_since(now, gw->g.heard_ns) < RTD_IDLE_NS)
		return;
	gw->way = 0;
	r->epoch++;
	r->sweep_ns = 1;
}

uint64_t rtd_gateways_run(struct rtd_relay *r, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	unsigned i;

	for (i = 0; i < r->ngateway; i++) {
		struct rtd_gateway *gw = &r->gateway[i];
		struct lnx_route_plan plan = plan_of(r, gw, now);

		run_gateway(r, gw, &plan, now);
		forget_way(r, gw, now);
		next = LNX_MIN(next, lnx_route_gateway_next(&gw->g, &plan));
		/* It may be busy. */
		if (gw->dest->frames != gw->frames)
			next = LNX_MIN(next, gw->look_ns);
	}
	return next;
}

void rtd_control_rx(struct rtd_relay *r, unsigned rail, const uint8_t *bytes, size_t len,
		    uint64_t now)
{
	switch (lnx_route_kind(bytes, len)) {
	case LNX_ROUTE_NOTE:
		note_rx(r, bytes, len, now);
		break;
	case LNX_ROUTE_GW_HELLO:
		hello_rx(r, rail, bytes, len, now);
		break;
	case LNX_ROUTE_GW_INFO:
		info_rx(r, bytes, len, now);
		break;
	case LNX_ROUTE_GW_ASK:
		rtd_ask_rx(r, bytes, len, now);
		break;
	case LNX_ROUTE_GW_TELL:
		rtd_tell_rx(r, bytes, len, now);
		break;
	default:
		r->counts.bad_control++;
		break;
	}
}
