/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random events between two ends of the reliable channel (chan_world.h), more than a
 * million in all.  In each session everything that was sent arrives once and in order;
 * what a give-up loses was not acknowledged, and fails once; nothing crosses sessions.
 * When the network works again all arrives, found by the loss detector alone, and both
 * ends come to one session.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "chan_world.h"

/* In each test, and in each of its worlds. */
#define EVENTS		400000u
#define WORLD_EVENTS	20000u
/* Virtual time after which everything has arrived: a peer that is silent for long is
 * asked every LNX_RTO_MAX_NS only. */
#define SETTLE_NS	(6 * LNX_RTO_MAX_NS)

struct world w;

static bool computes(unsigned at)
{
	return w.now < w.end[at].computes_ns;
}

static void check_all(void)
{
	struct session *s;
	unsigned at;

	for (at = 0; at < 2; at++)
		for (s = w.end[at].sessions; s; s = s->next)
			session_check(s);
}

/* ---- time ---- */

static void arrivals(unsigned at)
{
	struct packet p;

	while (!computes(at) && net_take(at, &p))
		end_arrive(at, &p);
}

static void step(uint64_t ns)
{
	unsigned at;

	w.now += ns;
	for (at = 0; at < 2; at++)
		arrivals(at);
	for (at = 0; at < 2; at++)
		if (!computes(at))
			end_pass(at);
}

/* ---- events ---- */

static void send_some(unsigned at)
{
	struct session *s = end_session(at);
	unsigned n = rnd(8) ? 1 : 1 + rnd(2 * w.mode.window);

	for (; s && n && s->c.nqueued < 64; n--)
		session_send(s, rnd(8) != 0);
}

static void core_done(unsigned at)
{
	struct session *s;
	unsigned n;

	for (s = w.end[at].sessions; s; s = s->next)
		for (n = rnd(8); n; n--)
			session_core_done(s, rnd(200) != 0);
}

/* An acknowledgement of what was never posted, or long ago. */
static void forge(unsigned at)
{
	struct packet p = { .kind = ACK, .to = at, .dst = w.end[at].eid };
	struct session *s = end_current(at);
	uint32_t beyond, queued;

	if (!s || !s->rx_sid || s->life != LNX_LIFE_OPEN)
		return;
	w.t.forged++;
	p.src = s->rx_sid;
	beyond = (uint32_t)s->posted + 1;
	queued = (uint32_t)(s->numbered - s->posted);
	switch (rnd(4)) {
	case 0:
		p.ack = beyond + (queued ? rnd(queued) : 0);
		break;
	case 1:
		p.ack = beyond + rnd(1u << 30);
		break;
	case 2:
		p.ack = (uint32_t)s->una - 1 - rnd(1u << 30);
		break;
	default:
		p.kind = rnd(2) ? DATA : PONG;
		p.ack = (uint32_t)s->una;
		/* Numbers that no sender may use, and answers to no question. */
		p.seq = (uint32_t)ledger[s->rx_sid].delivered + LNX_SEQ_WINDOW +
			rnd(1u << 30);
		p.latency = rnd(2);
		p.data = s->loss.last + 1 + rnd(1u << 30);
		p.path = p.about = rnd(w.mode.npath);
		/* An answer comes once more. */
		if (!s->question && p.latency && rnd(2)) {
			p.data = s->loss.last;
			p.path = p.about = s->loss.path;
		}
		break;
	}
	end_arrive(at, &p);
}

static void disturb_path(void)
{
	unsigned path = rnd(w.mode.npath);

	switch (rnd(4)) {
	case 0:
		if (!w.hole[path])
			net_break(path);
		break;
	case 1:
		net_hole(path);
		break;
	default:
		net_heal(path, rnd(2));
		break;
	}
}

/* Long enough for deadlines; looked at all the time, or not. */
static void long_time(void)
{
	unsigned n = 1 + rnd(120);

	if (!rnd(20)) {
		step(60 * LNX_NS_PER_S);
		return;
	}
	for (; n; n--) {
		step(rnd(2) ? 50 * MS : 10 * MS);
		check_all();
	}
}

/* Until those that wait for something have given up. */
static void dark(void)
{
	unsigned i;

	for (i = 0; i < w.mode.npath; i++)
		net_hole(i);
	for (i = 0; i < 120; i++)
		step(50 * MS);
	for (i = 0; i < w.mode.npath; i++)
		net_heal(i, rnd(2));
}

/* Frames of a path are sent again: all of them, or only the oldest. */
static void retransmit(unsigned at)
{
	struct session *s = end_current(at);
	uint64_t n;

	if (!s || s->life != LNX_LIFE_OPEN)
		return;
	n = s->posted - s->una;
	session_retransmit(s, 1u << rnd(w.mode.npath), rnd(2) ? n : rnd((unsigned)n + 1));
}

static void give_up(unsigned at)
{
	struct session *s = w.end[at].sessions;

	if (!s || s->life != LNX_LIFE_OPEN)
		return;
	w.t.given_up++;
	session_fail(s);
}

static void path_down(unsigned at)
{
	struct session *s = end_current(at);

	if (s)
		session_path_down(s, rnd(w.mode.npath));
}

static void rare(unsigned at)
{
	unsigned what = rnd(100);

	if (what < 50)
		disturb_path();
	else if (what < 65)
		w.end[at].computes_ns = w.now + rnd(2000) * MS;
	else if (what < 75)
		long_time();
	else if (what < 80)
		path_down(at);
	else if (what < 82)
		dark();
	else if (what < 86)
		give_up(at);
	else if (what < 89)
		give_up(0), give_up(1);
	else if (what < 93)
		w.end[at].clock_ns = 1 + rnd(1u << 30);
	else
		end_restart(at, rnd(2));
}

/* Sessions of which one end knows nothing, and frames of those that are no more. */
static void change_session(unsigned at)
{
	unsigned what = rnd(8);

	if (what < 3)
		disturb_path();
	else if (what < 5)
		give_up(at);
	else if (what < 6)
		step(LNX_SESSION_BEGIN_NS);
	else if (what < 7)
		send_some(at);
	else
		w.end[at].clock_ns = 1 + rnd(1u << 30);
}

static void event(void)
{
	unsigned at = rnd(2), what = rnd(1000);
	struct packet p;

	w.t.events++;
	if (what < 500)
		step(rnd(300) * LNX_NS_PER_US);
	else if (what < 520)
		step(rnd(20) * MS);
	else if (computes(at))
		return;
	else if (what < 700)
		send_some(at);
	else if (what < 850)
		core_done(at);
	else if (what < 950) {
		if (net_take_any(at, &p))
			end_arrive(at, &p);
	} else if (what < 980)
		forge(at);
	else if (what < 985)
		retransmit(at);
	else if (what < 990)
		rare(at);
	else if (w.mode.restless)
		change_session(at);
	end_reap(at, false);
}

/* ---- all is well again ---- */

static bool settled(void)
{
	struct session *s;
	unsigned at;

	for (at = 0; at < 2; at++)
		for (s = w.end[at].sessions; s; s = s->next)
			if (!lnx_life_dead(s->life) &&
			    (s->life != LNX_LIFE_OPEN || s->c.nqueued ||
			     !lnx_chan_idle(&s->c)))
				return false;
	return true;
}

/* Both ends of a session that goes on agree. */
static void compare(const struct session *s)
{
	const struct ledger *l = &ledger[s->sid];

	CHECK(l->acked + l->failed == l->sent);
	if (s->life != LNX_LIFE_OPEN)
		return;
	CHECK(l->acked == l->sent && l->delivered == l->sent && !l->failed);
}

static void show(void)
{
	struct session *s;
	unsigned at;

	for (at = 0; at < 2; at++)
		for (s = w.end[at].sessions; s; s = s->next)
			fprintf(stderr,
				"end %u: session %llu with %llu, life %u: %llu of %llu posted are acknowledged, %llu delivered, %u queued, flags %#x\n",
				at, (unsigned long long)s->sid,
				(unsigned long long)s->rx_sid, s->life,
				(unsigned long long)s->una, (unsigned long long)s->posted,
				(unsigned long long)ledger[s->sid].delivered,
				s->c.nqueued, s->c.flags);
}

/* Until all that was sent has arrived, or failed. */
static void come_to_rest(void)
{
	uint64_t begin = w.now;
	struct session *s;
	unsigned at;

	while (!settled()) {
		step(net_empty() ? 10 * MS : MS / 2);
		core_done(0);
		core_done(1);
		check_all();
		if (w.now - begin >= SETTLE_NS)
			show();
		CHECK(w.now - begin < SETTLE_NS);
	}
	for (at = 0; at < 2; at++)
		for (s = w.end[at].sessions; s; s = s->next)
			compare(s);
}

/* Is each end in the session that the other one is in? */
static bool together(void)
{
	const struct session *a = end_current(0), *b = end_current(1);

	return a && b && a->life == LNX_LIFE_OPEN && b->life == LNX_LIFE_OPEN &&
	       a->rx_sid == b->sid && b->rx_sid == a->sid;
}

/* That the session has ended may be found out only when something is sent; but then it
 * is. */
static void talk(void)
{
	struct session *s;
	unsigned i, at;

	for (i = 0; i < 8 && !together(); i++) {
		for (at = 0; at < 2; at++) {
			s = end_session(at);
			if (s)
				session_send(s, true);
		}
		come_to_rest();
		step(LNX_SESSION_BEGIN_NS);
	}
	if (!together())
		show();
	CHECK(together());
}

static void settle(void)
{
	unsigned i;

	w.quiet = true;
	for (i = 0; i < w.mode.npath; i++)
		net_heal(i, rnd(2));
	w.end[0].computes_ns = w.end[1].computes_ns = 0;
	come_to_rest();
	talk();
	w.quiet = false;
}

static void new_mode(unsigned npath)
{
	unsigned i;

	w.mode = (struct world_mode){
		.npath = npath,
		.in_order = rnd(2), .restless = !rnd(3),
		.loss = rnd(3) ? rnd(100) : 0,
		.repeat = rnd(3) ? rnd(50) : 0,
		.busy = rnd(3) ? rnd(30) : 0,
		.window = rnd(8) ? 1u << rnd(8) : 1024,
	};
	for (i = 0; i < PATHS; i++)
		w.mode.delay_ns[i] = LNX_NS_PER_US *
				     (rnd(4) ? 20 + rnd(500) : rnd(30000));
}

/* It was a bad network: each kind of event has come often enough to mean something.
 * Returns how many have not.  say: these are errors. */
static unsigned too_few(unsigned npath, bool say)
{
	const struct {
		const char *name;
		unsigned long n, least;
	} row[] = {
#define ROW(what, least)	{ #what, w.t.what, least }
		ROW(arrived, 50000), ROW(delivered, 20000),
		ROW(acked, 20000), ROW(failed, 5000), ROW(lost, 10000),
		ROW(repeated, 500), ROW(early, 10000), ROW(old, 1000), ROW(again, 10000),
		ROW(probes, 50), ROW(questions, 100), ROW(found_lost, 30),
		ROW(insisted, 20), ROW(forged, 1000), ROW(refused, 5), ROW(dropped, 30),
		ROW(grown, 50), ROW(wrapped, 10), ROW(stale, 1000), ROW(sessions, 200),
		ROW(restarts, 20), ROW(given_up, 20), ROW(timed_out, 5), ROW(closed, 5),
		ROW(ended, 20), ROW(misdirected, 5), ROW(begun_again, 20),
		ROW(uncertain, 3), ROW(doubts, 5), ROW(answers, 50),
		/* Of several paths one can fail. */
		ROW(downs, npath > 1 ? 20 : 0), ROW(silences, npath > 1 ? 10 : 0),
		ROW(restored, npath > 1 ? 10 : 0), ROW(clones, npath > 1 ? 50 : 0),
		ROW(late, npath > 1 ? 10 : 0),
#undef ROW
	};
	unsigned i, n = 0;

	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		n += row[i].n < row[i].least;
		cr_expect(!say || row[i].n >= row[i].least,
			  "LNX_SEED=%llu: %s only %lu times",
			  (unsigned long long)w.seed, row[i].name, row[i].n);
	}
	return n;
}

static void run(unsigned npath)
{
	unsigned k;

	set_seed();
	w.now = LNX_NS_PER_S;
	/* Chance may leave one out: then some more. */
	while (w.t.events < EVENTS ||
	       (w.t.events < 4 * EVENTS && too_few(npath, false))) {
		new_mode(npath);
		net_open();
		end_open(0);
		end_open(1);
		for (k = 1; k <= WORLD_EVENTS; k++) {
			event();
			check_all();
			if (k % (WORLD_EVENTS / 4) == 0)
				settle();
		}
		end_reap(0, true);
		end_reap(1, true);
		/* Each frame ended, and none is left. */
		CHECK(!w.end[0].sessions && !w.end[1].sessions);
	}
	too_few(npath, true);
}

Test(chan_random, one_path)
{
	run(1);
}

Test(chan_random, two_paths)
{
	run(2);
}

Test(chan_random, three_paths)
{
	run(3);
}
