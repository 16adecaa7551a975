/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sessions of an end: which HELLO begins one, what is refused, what ends one, and
 * that nothing of one gets into another.  As rel/session.c.  See chan_world.h.
 */
#include <stdlib.h>
#include <string.h>

#include "chan_world.h"

struct ledger ledger[SESSIONS_MAX];

/* Names of sessions, and of endpoints, are never used again. */
static uint64_t last_sid, last_eid = 1000;

static struct end *peer_of(unsigned at)
{
	return &w.end[1 - at];
}

static struct session *session_new(unsigned at, uint64_t eid)
{
	struct session *s = calloc(1, sizeof(*s));

	cr_assert(s && last_sid + 1 < SESSIONS_MAX);
	s->at = at;
	s->sid = ++last_sid;
	s->eid = eid;
	s->stamp = s->sid;		/* later ones are larger */
	lnx_list_init(&s->in_core);
	lnx_chan_init(&s->c);
	cr_assert_eq(lnx_chan_open(&s->c, w.mode.window), 0);
	s->c.next = s->c.posted = s->c.una = first_number(s->sid);
	s->next = w.end[at].sessions;
	w.end[at].sessions = s;
	ledger[s->sid].s = s;
	w.t.sessions++;
	return s;
}

/* ---- its life ---- */

static void happens(struct session *s, enum lnx_life_event event)
{
	s->life = lnx_life_table[s->life][event];
	s->ended |= event == LNX_LIFE_ENDED;
	s->failed |= event == LNX_LIFE_FAILED;
	s->detached |= event == LNX_LIFE_DETACH;
}

static void failed(struct session *s, struct frame *f)
{
	struct ledger *l = &ledger[s->sid];

	/* Once, in order, and nothing that was acknowledged. */
	CHECK(f->s == s && f->id == l->acked + l->failed + 1 && !f->f.acked);
	l->failed++;
	w.t.failed++;
	f->f.acked = true;
	if (!f->f.in_core)
		frame_put(f);
}

/* What came early is dropped, all of it. */
static void drop_early(struct session *s)
{
	uint32_t n = s->c.rx.n_ooo;

	for (; lnx_seq_drain(&s->c.rx); n--)
		;
	CHECK(!n && !s->c.rx.n_ooo);
	lnx_seq_fini(&s->c.rx);
}

void session_fail(struct session *s)
{
	struct ledger *l = &ledger[s->sid];
	struct lnx_frame *f;

	happens(s, LNX_LIFE_FAILED);
	while (!lnx_chan_idle(&s->c)) {
		f = lnx_chan_pop_una(&s->c);
		CHECK(f != NULL);
		failed(s, lnx_container_of(f, struct frame, f));
	}
	while ((f = lnx_chan_unqueue(&s->c)))
		failed(s, lnx_container_of(f, struct frame, f));
	CHECK(l->acked + l->failed == l->sent && l->acked == s->una);
	lnx_chan_end(&s->c);
	CHECK(!lnx_chan_next_out(&s->c, &(enum lnx_chan_what){ 0 }));
	s->awaited = s->on_ack_list = false;
	s->c.ack_threshold = 0;
	drop_early(s);
	session_check(s);
}

/* The peer has ended it.  What is outstanding fails in the next pass. */
void session_bye(struct session *s)
{
	happens(s, LNX_LIFE_ENDED);
}

static void detach(struct session *s)
{
	if (!lnx_life_detached(s->life))
		happens(s, LNX_LIFE_DETACH);
}

static bool is_open(const struct session *s)
{
	return s->life == LNX_LIFE_OPEN;
}

static void session_free(struct session **at)
{
	struct session *s = *at;
	struct ledger *l = &ledger[s->sid];

	CHECK(l->killed || (s->life == LNX_LIFE_GONE && !s->nframes));
	CHECK(l->killed || l->acked + l->failed == l->sent);
	*at = s->next;
	l->s = NULL;
	lnx_chan_fini(&s->c);
	free(s);
}

/* ---- finding and beginning ---- */

static struct session *by_rx_sid(unsigned at, uint64_t sid)
{
	struct session *s;

	for (s = w.end[at].sessions; s; s = s->next)
		if (s->rx_sid == sid && !lnx_life_detached(s->life))
			return s;
	return NULL;
}

static struct session *by_eid(unsigned at, uint64_t eid)
{
	struct session *s, *found = NULL;

	for (s = w.end[at].sessions; s; s = s->next)
		if (s->eid == eid && !lnx_life_detached(s->life)) {
			CHECK(!found);
			found = s;
		}
	return found;
}

struct session *end_session(unsigned at)
{
	struct session *s = by_eid(at, peer_of(at)->eid);

	if (s && lnx_life_dead(s->life)) {
		detach(s);
		s = NULL;
	}
	return s ? s : session_new(at, peer_of(at)->eid);
}

static void refuse(const struct packet *p, enum why why)
{
	struct packet back = {
		.kind = NO_SESSION, .to = 1 - p->to, .path = p->path, .dst = p->src,
		.why = why,
	};

	w.t.stale++;
	net_lost(p);
	if (p->kind != BYE && p->kind != NO_SESSION)
		net_send(&back);
}

/* What it says is of the session that it is about, or of none. */
static void refused(unsigned at, const struct packet *p)
{
	struct session *s = p->dst < SESSIONS_MAX ? ledger[p->dst].s : NULL;

	if (!s || s->at != at)
		return;
	/* Our HELLO was lost, and goes out again. */
	if (p->why == UNKNOWN && !lnx_chan_acked_any(&s->c) && !s->rx_sid)
		return;
	session_bye(s);
}

static void pair(struct session *s, const struct packet *p)
{
	struct ledger *l = &ledger[p->src];
	struct end *e = &w.end[s->at];

	/* Not again, after it has ended here. */
	CHECK(!l->received && !l->delivered && !s->rx_sid);
	l->received = true;
	s->rx_sid = p->src;
	s->rx_stamp = e->stamp_floor = p->stamp;
	e->stamp_eid = p->from;
	s->c.rx.next = first_number(p->src);
}

/* A frame that belongs to no session here.  NULL: it begins none. */
static struct session *begin(unsigned at, const struct packet *p)
{
	struct end *e = &w.end[at];
	struct session *s;

	if (p->kind != DATA || !p->hello) {
		refuse(p, UNKNOWN);
		return NULL;
	}
	s = by_eid(at, p->from);
	if (p->answers && (!s || p->answers != s->sid || s->rx_sid)) {
		refuse(p, UNKNOWN);
		return NULL;
	}
	/* It was repeated on the way, or is late, or this end has given up its session. */
	if (p->from == e->stamp_eid ? p->stamp <= e->stamp_floor :
				      p->from < e->stamp_eid) {
		refuse(p, ENDED);
		return NULL;
	}
	if (s && (s->rx_sid || !is_open(s))) {
		if (!lnx_life_dead(s->life))
			session_bye(s);
		detach(s);
		s = NULL;
	}
	if (!s)
		s = session_new(at, p->from);
	pair(s, p);
	return s;
}

void end_arrive(unsigned at, const struct packet *p)
{
	struct session *s;

	w.t.arrived++;
	if (p->kind == NO_SESSION) {
		refused(at, p);
		return;
	}
	if (p->dst != w.end[at].eid) {
		if (p->hello || p->has_address)
			refuse(p, ENDPOINT);
		return;
	}
	s = by_rx_sid(at, p->src);
	if (!s)
		s = begin(at, p);
	if (!s)
		return;
	CHECK(s->at == at && s->rx_sid == p->src);
	/* Both have begun, and then one of them again: neither session is whole. */
	if (p->acks && p->acks != s->sid && is_open(s))
		session_bye(s);
	if (!is_open(s)) {
		refuse(p, ENDED);
		return;
	}
	session_arrive(s, p);
}

/* ---- passes, processes ---- */

void end_open(unsigned at)
{
	w.end[at] = (struct end){ .eid = ++last_eid };
}

void end_pass(unsigned at)
{
	struct end *e = &w.end[at];
	struct session *s;

	for (s = e->sessions; s; s = s->next) {
		if (!is_open(s) && !lnx_life_dead(s->life))
			session_fail(s);
		if (is_open(s))
			session_look(s);
		if (is_open(s))
			session_pass(s);
	}
}

/* Frames that its cores hold are gone with the process. */
static void kill_session(struct session *s)
{
	struct lnx_node *n, *tmp;
	struct lnx_frame *f;

	ledger[s->sid].killed = true;
	while (!lnx_chan_idle(&s->c)) {
		f = lnx_chan_pop_una(&s->c);
		f->acked = true;
		if (!f->in_core)
			frame_put(lnx_container_of(f, struct frame, f));
	}
	while ((f = lnx_chan_unqueue(&s->c)))
		frame_put(lnx_container_of(f, struct frame, f));
	lnx_list_foreach(&s->in_core, n, tmp)
		session_core_done(s, true);
	CHECK(!s->nframes);
	drop_early(s);
}

void end_restart(unsigned at)
{
	struct end *e = &w.end[at];
	struct session *s;

	for (s = e->sessions; s; s = s->next)
		kill_session(s);
	while (e->sessions)
		session_free(&e->sessions);
	end_open(at);
	w.t.restarts++;
}

void end_close(unsigned at)
{
	struct session *s = by_eid(at, peer_of(at)->eid);
	struct packet p;

	if (!s || !is_open(s) || !s->rx_sid)
		return;
	session_fail(s);
	p = (struct packet){
		.kind = BYE, .to = 1 - at, .path = s->cur, .src = s->sid, .dst = s->eid,
		.from = w.end[at].eid, .seq = s->c.next, .ack = s->c.rx.next,
		.nack = ledger[s->rx_sid].delivered, .acks = s->rx_sid,
	};
	net_send(&p);
	detach(s);
}

void end_reap(unsigned at, bool all)
{
	struct session **p = &w.end[at].sessions;

	while (*p) {
		struct session *s = *p;

		if (all || (s->eid != peer_of(at)->eid && lnx_chan_idle(&s->c) &&
			    !s->c.nqueued)) {
			if (!lnx_life_dead(s->life))
				session_fail(s);
			detach(s);
			while (all && !lnx_list_empty(&s->in_core))
				session_core_done(s, true);
		}
		if (s->life == LNX_LIFE_GONE && !s->nframes)
			session_free(p);
		else
			p = &s->next;
	}
}
