/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One session of an end: acknowledgements, timers, and paths that fail.  As
 * rel/control.c, rel/liveness.c, rel/detect.c and rel/failover.c do it.  See chan_world.h.
 */
#include <string.h>

#include "chan_inside.h"

#define RAIL_TIMEOUT_NS	(50 * MS)
#define ACK_DELAY_NS	(50 * LNX_NS_PER_US)
#define RECOVERY_NS	(20 * MS)
#define CONNECT_NS	(20 * LNX_NS_PER_S)
#define TRANSACTION_NS	(5 * LNX_NS_PER_S)

/* ---- frames outside the sequence ---- */

static bool session_control(struct session *s, unsigned path, struct packet *p)
{
	if (!w.quiet && rnd(1000) < w.mode.busy)
		return false;
	net_send(p);
	path_took(&s->path[path]);
	return true;
}

static bool send_pong(struct session *s, unsigned path, unsigned about,
		      uint64_t nonce, bool latency)
{
	struct packet p = session_packet(s, PONG, path);

	p.about = about;
	p.data = nonce;
	p.latency = latency;
	p.bytes[about] = s->rx_bytes[about];
	return session_control(s, path, &p);
}

static void send_pongs(struct session *s)
{
	unsigned i, k;

	for (i = 0; i < w.mode.npath; i++) {
		struct path *p = &s->path[i];

		if (p->other_due)
			send_pong(s, i, p->other_about, p->other_data, true);
		p->other_due = false;
		for (k = 0; k < w.mode.npath; k++) {
			if (p->pong_due[k])
				send_pong(s, i, k, p->pong_data[k], false);
			p->pong_due[k] = false;
		}
	}
}

static void off_ack_list(struct session *s)
{
	s->on_ack_list = false;
	s->c.ack_threshold = 0;
}

static void acks(struct session *s)
{
	struct packet p;
	unsigned path;

	if (!s->on_ack_list)
		return;
	send_pongs(s);
	if (!s->c.acks_pending) {
		off_ack_list(s);
		return;
	}
	if (!s->c.ack_since_ns)
		s->c.ack_since_ns = w.now;
	if (!s->c.ack_now && s->c.acks_pending < ACK_EVERY &&
	    lnx_ns_since(w.now, s->c.ack_since_ns) < ACK_DELAY_NS)
		return;
	if (!s->hello_done)
		session_hello(s);
	path = s->path[s->back].state == LNX_PATH_UP && lnx_chan_acked_any(&s->c) ?
	       s->back : session_live_path(s);
	p = session_packet(s, ACK, path);
	memcpy(p.bytes, s->rx_bytes, sizeof(p.bytes));
	if (!session_control(s, path, &p)) {
		path_blocked(&s->path[path]);
		return;
	}
	s->multipath = false;
	session_acks_sent(s);
	off_ack_list(s);
}

static bool send_probe(struct session *s, unsigned path, unsigned about, uint64_t nonce,
		       bool latency)
{
	struct packet p = session_packet(s, PROBE, path);

	p.about = about;
	p.data = nonce;
	p.latency = latency;
	w.t.questions++;
	return session_control(s, path, &p);
}

/* ---- passes ---- */

static uint64_t path_in_flight(const struct session *s, const struct path *p)
{
	return LNX_MIN(p->sent - p->delivered, s->c.una_bytes);
}

void session_pass(struct session *s)
{
	if (!session_pump(s) && session_none_for(s, CONNECT_NS)) {
		w.t.timed_out++;
		session_fail(s);
		return;
	}
	acks(s);
}

static uint64_t first_rto(const struct session *s, bool idle)
{
	const struct lnx_rtt *rtt = &s->path[s->cur].rtt;

	if (idle || !lnx_chan_acked_any(&s->c))
		return LNX_ALIVE_NS;
	return rtt->srtt_ns ? lnx_rtt_timeout(rtt, LNX_RTO_MIN_NS, LNX_ALIVE_NS) :
	       LNX_RTO_FIRST_NS;
}

static void asked_for_frame(struct session *s, unsigned path, uint32_t number)
{
	lnx_loss_asked(&s->loss, &s->c, path, number, w.now);
	s->question |= s->loss.last == number && s->loss.probe_sent_ns == w.now;
}

static void ask_for_frame(struct session *s)
{
	int path = lnx_loss_path(&s->c);

	/* Of several paths each one is asked about its latency anyway. */
	if (path < 0 || w.mode.npath > 1)
		return;
	if (send_probe(s, (unsigned)path, (unsigned)path, s->loss.last + 1u, true))
		asked_for_frame(s, (unsigned)path, s->loss.last + 1u);
	else
		path_blocked(&s->path[path]);
}

/* A kernel answers at once, unless its path is a black hole. */
static bool check_liveness(struct session *s)
{
	enum lnx_liveness_verdict verdict = lnx_silence_peer_look(&s->liveness, w.now);
	struct lnx_liveness_view v = {
		.limit_ns = TRANSACTION_NS, .npath = w.mode.npath,
	};
	struct packet p;
	unsigned i;

	if (verdict == LNX_LIVENESS_LOOK) {
		for (i = 0; i < w.mode.npath; i++) {
			v.alive += !w.hole[i];
			if (w.hole[i])
				continue;
			p = session_packet(s, PROBE, i);
			p.has_address = true;
			session_control(s, i, &p);
		}
		verdict = lnx_silence_peer_judge(&s->liveness, &v, w.now);
	}
	if (verdict == LNX_LIVENESS_ASK_KERNELS)
		lnx_silence_peer_asked(&s->liveness, w.now);
	CHECK(verdict != LNX_LIVENESS_REFUSED);
	return verdict != LNX_LIVENESS_TIMED_OUT;
}

static uint64_t look_gap(void)
{
	return w.mode.npath > 1 ? LNX_LOOK_SEVERAL_NS : LNX_LOOK_ONE_NS;
}

/* As lnx_control_look. */
static uint64_t look_at_frames(struct session *s)
{
	bool idle = lnx_chan_idle(&s->c), moved;
	enum lnx_loss_todo todo;

	if (idle) {
		moved = s->loss.oldest != s->c.una;
		lnx_silence_peer_seen(&s->liveness);
		lnx_loss_restart(&s->loss, &s->c);
		s->awaited = moved;
		return moved ? w.now + look_gap() : LNX_NEVER;
	}
	todo = lnx_loss_look(&s->loss, &s->c, first_rto(s, idle), w.now);
	if (todo == LNX_LOSS_MOVED)
		lnx_silence_peer_seen(&s->liveness);
	if (!check_liveness(s)) {
		w.t.timed_out++;
		session_fail(s);
		return LNX_NEVER;
	}
	w.t.insisted += todo == LNX_LOSS_INSIST;
	if (todo == LNX_LOSS_INSIST)
		session_answer(s);
	if (todo == LNX_LOSS_ASK || todo == LNX_LOSS_INSIST)
		ask_for_frame(s);
	return lnx_sooner(lnx_loss_next(&s->loss, w.now),
			  lnx_silence_peer_next(&s->liveness, TRANSACTION_NS, w.now));
}

/* A core holds a frame of a path that is DOWN: a clone takes its place. */
static void clone_frame(struct session *s, struct frame *f)
{
	struct frame *clone;

	if (f->f.niov)
		return;
	clone = frame_get(s);
	clone->f.comp_at_ack = f->f.comp_at_ack;
	clone->f.path = f->f.path;
	clone->f.len = f->f.len;
	clone->f.seq = f->f.seq;
	clone->id = f->id;
	clone->hello = f->hello;
	clone->stamp = f->stamp;
	clone->names = f->names;
	*lnx_chan_slot(&s->c, f->f.seq) = &clone->f;
	f->f.acked = true;
	w.t.clones++;
}

static void fail_over(struct session *s, unsigned path)
{
	uint64_t id;

	for (id = s->una + 1; id <= s->posted; id++) {
		struct frame *f = session_frame(s, id);

		if (f->f.path == path && f->f.in_core)
			clone_frame(s, f);
	}
	s->path[path].delivered = s->path[path].sent;
	session_retransmit(s, 1u << path, s->posted - s->una);
}

void session_path_down(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];
	unsigned i;

	if (p->state == LNX_PATH_DOWN || w.mode.npath < 2 || lnx_life_dead(s->life))
		return;
	path_happens(p, LNX_PATH_LOST);
	CHECK(p->state == LNX_PATH_DOWN);
	w.t.downs++;
	p->since_ns = s->look_ns = w.now;
	p->silence.stale_report = p->pinged = false;
	p->probe_ns = 0;
	for (i = 0; i < w.mode.npath && s->path[s->cur].state == LNX_PATH_DOWN; i++)
		if (s->path[i].state != LNX_PATH_DOWN)
			s->cur = i;
	fail_over(s, which);
}

static void ask_elsewhere(struct session *s, unsigned about)
{
	unsigned i;

	for (i = 0; i < w.mode.npath; i++)
		if (i != about && path_may_try(&s->path[i]))
			send_probe(s, i, about, s->path[about].nonce, false);
}

static uint64_t silence_timeout(const struct path *p)
{
	return p->rtt.srtt_ns ? lnx_rtt_timeout(&p->rtt, RAIL_TIMEOUT_NS,
						8 * RAIL_TIMEOUT_NS) : RAIL_TIMEOUT_NS;
}

/* The HELLO and what follows it try another path. */
static void elsewhere(struct session *s, unsigned which)
{
	unsigned next = (which + 1) % w.mode.npath;

	if (s->path[next].state == LNX_PATH_DOWN)
		return;
	fail_over(s, which);
	s->cur = next;
	/* As rel/failover.c: the others follow on the path of this one. */
	*session_due(s, s->una + 1) = false;
	session_frame(s, s->una + 1)->f.path = (uint8_t)next;
	session_retransmit(s, 1u << next, s->posted - s->una);
}

static uint64_t look(struct session *s, unsigned which)
{
	enum lnx_silence_verdict verdict;
	struct path *p = &s->path[which];
	bool probed = p->silence.probe_sent_ns;
	struct lnx_silence_view v = {
		.progress = p->progress, .una = s->c.una,
		.timeout_ns = silence_timeout(p),
		.frames = !lnx_chan_idle(&s->c) && path_in_flight(s, p),
		.acked = lnx_chan_acked_any(&s->c),
		.kernel_answers = p->silence.kernel_asked && !w.hole[which],
	};

	verdict = lnx_silence_look(&p->silence, &v, w.now);
	switch (verdict) {
	case LNX_SILENCE_ASK:
		p->nonce += !probed;
		ask_elsewhere(s, which);
		break;
	case LNX_SILENCE_ELSEWHERE:
		elsewhere(s, which);
		break;
	case LNX_SILENCE_DOWN:
		w.t.silences++;
		session_path_down(s, which);
		break;
	default:
		break;
	}
	return lnx_silence_next(&p->silence, &v, verdict, w.now);
}

static uint64_t recover(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];

	if (w.now < p->probe_ns)
		return p->probe_ns;
	p->probe_ns = w.now + RECOVERY_NS;
	if (send_probe(s, which, which, p->nonce + 1, false)) {
		p->nonce++;
		p->pinged = true;
	}
	return p->probe_ns;
}

static uint64_t ask_latency(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];

	if (p->state == LNX_PATH_DOWN)
		return LNX_NEVER;
	if (lnx_ns_since(w.now, p->latency_ns) >= LNX_LATENCY_ASK_NS &&
	    send_probe(s, which, which, p->latency + 1u, true)) {
		p->latency++;
		p->latency_ns = w.now;
		asked_for_frame(s, which, p->latency);
	}
	return LNX_MAX(p->latency_ns + LNX_LATENCY_ASK_NS, w.now);
}

static uint64_t look_for_late(struct session *s)
{
	int which = lnx_loss_path(&s->c);
	struct path *p;

	if (which < 0)
		return LNX_NEVER;
	p = &s->path[which];
	switch (lnx_loss_late(&p->late, &s->c, silence_timeout(p), s->pong_ns, w.now)) {
	case LNX_LOSS_ASK:
		if (lnx_ns_since(w.now, p->silence.probe_sent_ns) > RAIL_TIMEOUT_NS) {
			p->nonce += !p->silence.probe_sent_ns;
			p->silence.probe_sent_ns = w.now;
			ask_elsewhere(s, (unsigned)which);
		}
		return p->silence.probe_sent_ns + RAIL_TIMEOUT_NS + 1;
	case LNX_LOSS_LATE:
		w.t.late++;
		lnx_loss_late_again(&p->late, &s->c, (unsigned)which);
		model_retransmit(s, 1u << which, s->una +
				 LNX_MIN(s->posted - s->una, LNX_LATE_AGAIN_MAX));
		break;
	default:
		break;
	}
	return lnx_loss_late_next(&p->late, silence_timeout(p), w.now);
}

/* As lnx_detect_look. */
static uint64_t look_at_paths(struct session *s)
{
	uint64_t next = LNX_NEVER;
	unsigned i;

	if (w.mode.npath < 2)
		return LNX_NEVER;
	for (i = 0; i < w.mode.npath && !lnx_life_dead(s->life); i++)
		next = lnx_sooner(next, s->path[i].state == LNX_PATH_DOWN ?
				  recover(s, i) : look(s, i));
	if (!s->awaited)
		return next;
	for (i = 0; i < w.mode.npath && lnx_chan_acked_any(&s->c); i++)
		next = lnx_sooner(next, ask_latency(s, i));
	return lnx_sooner(next, look_for_late(s));
}

void session_look(struct session *s)
{
	uint64_t next;

	if (w.now < s->look_ns)
		return;
	s->look_ns = LNX_NEVER;
	next = look_at_paths(s);
	if (s->awaited)
		next = lnx_sooner(next, look_at_frames(s));
	next = lnx_sooner(next, s->look_ns);
	s->look_ns = next == LNX_NEVER ? next : LNX_MAX(next, w.now + LNX_LOOK_MIN_NS);
}

void session_watch(struct session *s)
{
	if (s->awaited && s->look_ns > w.now + look_gap())
		s->look_ns = w.now + (w.mode.npath > 1 ? LNX_LOOK_MIN_NS : LNX_LOOK_ONE_NS);
}
