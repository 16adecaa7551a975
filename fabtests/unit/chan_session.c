/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sessions of an end: how they begin and end, by the rules of rel/begin.c, and that
 * nothing of one gets into another.  As rel/session.c.  See chan_world.h.
 */
#include <stdlib.h>
#include <string.h>

#include "chan_inside.h"
#include "lnx_wire.h"
#include "rel/begin.h"

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
	s->stamp = w.now + w.end[at].clock_ns;
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
	if (!s->ended_ns)
		s->ended_ns = w.now;
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

/* ---- finding ---- */

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

static struct lnx_begin facts(const struct session *s)
{
	return (struct lnx_begin){
		.sid = s->sid, .stamp = s->stamp, .rx_sid = s->rx_sid, .named = s->named,
		.before_sid = s->before_sid, .rx_stamp = s->rx_stamp, .open = is_open(s), .sent = s->posted != 0,
		.acked = lnx_chan_acked_any(&s->c), .unanswered = s->unanswered,
	};
}

/* The next session with the endpoint of one that ends here. */
static struct session *session_next(struct session *before)
{
	struct lnx_begin known = facts(before);
	struct lnx_begin_before b = lnx_begin_follows(&known);
	struct session *s;

	detach(before);
	s = session_new(before->at, before->eid);
	s->before_sid = b.sid;
	s->stamp = LNX_MAX(s->stamp, b.stamp);
	s->rx_stamp = b.rx_stamp;
	s->unanswered = b.unanswered;
	w.t.uncertain += b.unanswered;
	return s;
}

struct session *end_current(unsigned at)
{
	return by_eid(at, peer_of(at)->eid);
}

struct session *end_session(unsigned at)
{
	struct session *s = end_current(at);

	if (!s)
		return session_new(at, peer_of(at)->eid);
	if (!lnx_life_dead(s->life))
		return s;
	/* As lnx_peer_may_begin. */
	if (!s->alive && lnx_ns_since(w.now, s->ended_ns) < LNX_SESSION_BEGIN_NS)
		return NULL;
	return session_next(s);
}

/* ---- refusals ---- */

/* As `note` in rel/session.c: the sender of that is told in the next pass. */
static void note(const struct packet *p, uint64_t why, uint64_t data)
{
	struct end *e = &w.end[p->to];

	w.t.stale++;
	net_lost(p);
	if (!p->hello && !(p->kind == PROBE && p->has_address))
		return;
	if (e->nrefusal == REFUSALS_MAX)
		return;
	e->refusal[e->nrefusal++] = (struct packet){
		.kind = NO_SESSION, .to = 1 - p->to, .path = p->path, .src = p->dst,
		.dst = p->src, .why = why, .data = data,
	};
}

static void say_refused(unsigned at)
{
	struct end *e = &w.end[at];
	unsigned i;

	for (i = 0; i < e->nrefusal; i++)
		/* Or its HELLO has come since. */
		if (e->refusal[i].why == LNX_REFUSED_ENDPOINT ||
		    !by_rx_sid(at, e->refusal[i].dst))
			net_send(&e->refusal[i]);
	e->nrefusal = 0;
}

/* As lnx_session_say_ended. */
static void say_ended(struct session *s)
{
	struct packet p = {
		.kind = NO_SESSION, .to = 1 - s->at, .path = s->back,
		.src = w.end[s->at].eid, .dst = s->rx_sid, .why = LNX_REFUSED_ENDED,
		.data = 1,
	};

	s->refuse = false;
	if (lnx_ns_since(w.now, s->refused_ns) < LNX_SESSION_REFUSE_NS)
		return;
	s->refused_ns = w.now;
	net_send(&p);
}

/* Our HELLO, while it may be changed and sent again; or NULL. */
static struct frame *first_hello(struct session *s)
{
	struct lnx_frame *f = NULL;

	if (lnx_chan_acked_any(&s->c))
		return NULL;
	if (s->posted)
		f = *lnx_chan_slot(&s->c, first_number(s->sid));
	else if (s->c.nqueued)
		f = lnx_list_entry(s->c.queue.next, struct lnx_frame, link);
	return f && !f->in_core ? lnx_container_of(f, struct frame, f) : NULL;
}

/* False: it does so already, or cannot be changed now. */
static bool name(struct session *s)
{
	uint64_t sid = s->rx_sid ? s->rx_sid : s->named;
	struct frame *f = first_hello(s);

	if (!f || f->names == sid)
		return false;
	CHECK(f->hello);
	f->names = sid;
	w.t.answers++;
	return true;
}

void session_answer(struct session *s)
{
	name(s);
}

static void later_stamp(struct session *s, uint64_t told)
{
	struct frame *f = first_hello(s);
	uint64_t stamp = lnx_begin_stamp(s->stamp, told);

	if (!f || !stamp)
		return;
	f->stamp = s->stamp = stamp;
	lnx_chan_probe(&s->c);
}

static void refused(unsigned at, const struct packet *p)
{
	struct session *s = by_eid(at, p->src);
	struct lnx_begin known;

	if (!s)
		return;
	known = facts(s);
	switch (lnx_begin_refused(&known, p->dst, p->why, p->data)) {
	case LNX_BEGIN_NOT_THERE:
		s->wrong_endpoint |= (uint8_t)(1u << p->path);
		if (s->wrong_endpoint != (1u << w.mode.npath) - 1)
			return;
		w.t.misdirected++;
		break;
	case LNX_BEGIN_ENDED:
		s->alive = true;
		w.t.ended++;
		break;
	case LNX_BEGIN_LATER_STAMP:
		later_stamp(s, p->data);
		return;
	case LNX_BEGIN_GOES_ON:
		return;
	default:
		CHECK(!"job keys and full endpoints are not part of this");
	}
	session_bye(s);
}

/* ---- beginning ---- */

static void pair(struct session *s, const struct packet *p)
{
	struct ledger *l = &ledger[p->src];

	/* Not again, after it has ended here. */
	CHECK(!l->received && !l->delivered && !s->rx_sid);
	l->received = true;
	s->rx_sid = p->src;
	s->rx_stamp = p->stamp;
	s->c.rx.next = first_number(p->src);
	session_answer(s);
}

static void name_in_doubt(struct session *s, const struct packet *p)
{
	s->named = p->src;
	s->rx_stamp = p->stamp;
	s->greet = !s->hello_done;
	if (s->hello_done && name(s))
		lnx_chan_probe(&s->c);
	w.t.doubts++;
}

/* A frame whose session is not known: as lnx_session_open.  NULL: it begins none. */
static struct session *begin(unsigned at, const struct packet *p)
{
	struct lnx_begin_frame frame = {
		.begins = p->hello, .acks = p->ack != 0, .src = p->src,
		.stamp = p->stamp, .names = p->names,
	};
	struct session *s = p->hello || p->has_address ? by_eid(at, p->from) : NULL;
	struct lnx_begin known = s ? facts(s) : (struct lnx_begin){ 0 };
	struct lnx_begin_verdict v = lnx_begin_judge(s ? &known : NULL, &frame);

	if (v.what == LNX_BEGIN_REFUSE) {
		note(p, v.why, v.data);
		return NULL;
	}
	if (v.next) {
		w.t.begun_again++;
		if (!lnx_life_dead(s->life))
			session_bye(s);
		s = session_next(s);
	}
	if (!s)
		s = session_new(at, p->from);
	if (v.what == LNX_BEGIN_NAME) {
		w.t.stale++;
		net_lost(p);
		name_in_doubt(s, p);
		return NULL;
	}
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
		note(p, LNX_REFUSED_ENDPOINT, 0);
		return;
	}
	s = by_rx_sid(at, p->src);
	if (!s)
		s = begin(at, p);
	if (!s)
		return;
	CHECK(s->at == at && s->rx_sid == p->src);
	if (lnx_life_dead(s->life)) {
		w.t.stale++;
		net_lost(p);
		s->refuse |= p->kind != BYE;
		return;
	}
	session_arrive(s, p);
}

/* ---- passes, processes ---- */

void end_open(unsigned at)
{
	w.end[at] = (struct end){ .eid = ++last_eid, .clock_ns = 1 + rnd(1u << 30) };
}

void end_pass(unsigned at)
{
	struct end *e = &w.end[at];
	struct session *s;

	for (s = e->sessions; s; s = s->next) {
		if (!is_open(s) && !lnx_life_dead(s->life))
			session_fail(s);
		if (s->refuse)
			say_ended(s);
		if (is_open(s) && s->greet && !s->hello_done)
			session_hello(s);
		if (is_open(s))
			session_look(s);
		if (is_open(s))
			session_pass(s);
	}
	say_refused(at);
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

static void say_bye(struct session *s)
{
	struct packet p = {
		.kind = BYE, .to = 1 - s->at, .path = s->cur, .src = s->sid, .dst = s->eid,
		.seq = s->c.next - first_number(s->sid), .ack = wire_ack(s),
		.nack = s->rx_sid ? ledger[s->rx_sid].delivered : 0,
	};

	net_send(&p);
	w.t.closed++;
}

void end_restart(unsigned at, bool close)
{
	struct end *e = &w.end[at];
	struct session *s;

	for (s = e->sessions; s; s = s->next) {
		if (close && is_open(s) && s->hello_done)
			say_bye(s);
		kill_session(s);
	}
	while (e->sessions)
		session_free(&e->sessions);
	end_open(at);
	w.t.restarts++;
}

/* Its endpoint is no more.  It is remembered, as for LNX_SESSION_TELL_NS, until nothing of
 * that is under way any more. */
static bool may_forget(const struct session *s)
{
	return s->eid != peer_of(s->at)->eid && lnx_chan_idle(&s->c) && !s->c.nqueued &&
	       w.t.events % 16 == 0 && !net_has(s->at, s->eid);
}

void end_reap(unsigned at, bool all)
{
	struct session **p = &w.end[at].sessions;

	while (*p) {
		struct session *s = *p;

		if (all || may_forget(s)) {
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
