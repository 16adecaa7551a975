/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One session of an end: its frames, and how they leave.  As rel/send.c and rel/done.c do
 * it.  See chan_world.h.
 */
#include <stdlib.h>

#include "chan_inside.h"

/* ---- frames ---- */

struct frame *frame_get(struct session *s)
{
	struct frame *f = calloc(1, sizeof(*f));

	cr_assert(f);
	f->s = s;
	s->nframes++;
	lnx_list_init(&f->f.link);
	lnx_list_init(&f->core_link);
	return f;
}

void frame_put(struct frame *f)
{
	CHECK(!f->f.in_core && f->s->nframes);
	CHECK(!lnx_list_linked(&f->core_link) && !lnx_list_linked(&f->f.link));
	f->s->nframes--;
	free(f);
}

static void into_core(struct frame *f)
{
	f->f.in_core = true;
	lnx_list_add_tail(&f->s->in_core, &f->core_link);
}

static void out_of_core(struct frame *f)
{
	f->f.in_core = false;
	lnx_list_del(&f->core_link);
}

void frame_settled(struct frame *f)
{
	if (!f->f.in_core)
		frame_put(f);
}

/* ---- paths ---- */

static bool path_takes(const struct path *p)
{
	return p->state == LNX_PATH_UP || p->state == LNX_PATH_IDLE;
}

bool path_may_try(const struct path *p)
{
	return path_takes(p) || (p->state != LNX_PATH_DOWN && w.now >= p->retry_ns);
}

void path_happens(struct path *p, enum lnx_path_event event)
{
	p->state = lnx_path_table[p->state][event];
}

void path_took(struct path *p)
{
	path_happens(p, LNX_PATH_TOOK);
	if (p->state == LNX_PATH_UP)
		p->since_ns = 0;
}

void path_blocked(struct path *p)
{
	if (p->state == LNX_PATH_DOWN)
		return;
	if (p->state != LNX_PATH_CONNECTING || !p->since_ns)
		p->since_ns = w.now;
	path_happens(p, LNX_PATH_REFUSED);
	p->retry_ns = w.now + MS;
}

/* The path of the next frame, or -1.  Until our HELLO is acknowledged: the HELLO's. */
static int next_path(struct session *s)
{
	unsigned i, at = rnd(4) ? s->cur : rnd(w.mode.npath);

	if (!lnx_chan_acked_any(&s->c) && s->posted)
		at = session_frame(s, 1)->f.path;
	if (w.mode.npath == 1)
		return 0;
	for (i = 0; i < w.mode.npath; i++) {
		unsigned p = (at + i) % w.mode.npath;

		if (path_may_try(&s->path[p]))
			return (int)p;
	}
	return -1;
}

/* One that works, for what is no frame. */
unsigned session_live_path(const struct session *s)
{
	unsigned i;

	if (s->path[s->cur].state == LNX_PATH_UP)
		return s->cur;
	for (i = 0; i < w.mode.npath; i++)
		if (s->path[i].state == LNX_PATH_UP)
			return i;
	return rnd(w.mode.npath);
}

bool session_none_for(const struct session *s, uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < w.mode.npath; i++)
		if (!s->path[i].since_ns ||
		    lnx_ns_since(w.now, s->path[i].since_ns) <= limit_ns)
			return false;
	return true;
}

/* ---- sending ---- */

struct packet session_packet(struct session *s, enum kind kind, unsigned path)
{
	return (struct packet){
		.kind = kind, .to = 1 - s->at, .path = path, .src = s->sid, .dst = s->eid,
		.from = w.end[s->at].eid,
		.seq = s->c.next - first_number(s->sid), .ack = wire_ack(s),
		.nack = s->rx_sid ? ledger[s->rx_sid].delivered : 0,
	};
}

void session_acks_sent(struct session *s)
{
	lnx_chan_ack_sent(&s->c);
	s->acks = 0;
}

/* Of several paths only an ACK reports. */
static void piggybacked(struct session *s)
{
	if (!s->multipath)
		session_acks_sent(s);
}

static void number(struct session *s, struct frame *f)
{
	f->id = ++s->numbered;
	ledger[s->sid].sent++;
	lnx_chan_number(&s->c, &f->f);
	w.t.wrapped += f->f.seq == UINT32_MAX;
}

static void queue(struct session *s, struct frame *f, bool first)
{
	lnx_chan_queue(&s->c, &f->f, first);
}

static struct frame *message(struct session *s)
{
	struct frame *f = frame_get(s);

	f->f.len = 64 + rnd(1000);
	f->f.comp_at_ack = rnd(8) == 0;
	f->f.niov = rnd(16) == 0;
	return f;
}

/* A core may call back while it takes a frame: frames arrive, and others are queued. */
static void callbacks(struct session *s)
{
	struct packet p;

	if (w.quiet || rnd(8))
		return;
	if (net_take(s->at, &p))
		end_arrive(s->at, &p);
	/* Not of the frame that is just being posted, which is the last one. */
	if (s->in_core.next != s->in_core.prev)
		session_core_done(s, rnd(4) != 0);
	if (s->hello_done && s->life == LNX_LIFE_OPEN && s->c.nqueued < 50 && !rnd(8)) {
		struct frame *f = message(s);

		number(s, f);
		queue(s, f, false);
	}
}

/* The core takes it, or not; fresh: it is not in the window yet. */
static bool post(struct session *s, struct frame *f, unsigned path, bool fresh)
{
	struct packet p = session_packet(s, DATA, path);
	bool stays = f->f.niov || rnd(4) == 0;
	bool *due = session_due(s, f->id), was_due = *due;
	uint8_t before = f->f.path;

	p.seq = f->f.seq - first_number(s->sid);
	p.id = f->id;
	p.hello = f->hello;
	p.stamp = f->stamp;
	p.names = f->names;
	f->f.path = (uint8_t)path;
	/* A frame that is acknowledged inside the call stays until that returns. */
	if (!fresh || stays)
		into_core(f);
	*due = false;
	callbacks(s);
	if (!w.quiet && rnd(1000) < w.mode.busy) {
		if (f->f.in_core)
			out_of_core(f);
		f->f.path = before;
		if (f->f.acked) {
			frame_settled(f);
			return true;
		}
		*due = was_due;
		return false;
	}
	s->path[path].sent += frame_bytes(f);
	if (fresh)
		s->lost[f->id % LNX_SEQ_WINDOW] = 0;
	net_send(&p);
	if (f->f.in_core && !stays) {
		out_of_core(f);
		if (f->f.acked)
			frame_settled(f);
	}
	if (p.ack == wire_ack(s))
		piggybacked(s);
	return true;
}

static void posted_first(struct session *s, struct frame *f)
{
	bool idle = lnx_chan_idle(&s->c);

	lnx_chan_posted(&s->c, &f->f, frame_bytes(f));
	s->posted++;
	CHECK(f->id == s->posted);
	if (!s->awaited) {
		CHECK(idle);
		lnx_loss_restart(&s->loss, &s->c);
		s->awaited = true;
	}
	session_watch(s);
}

static bool send_frame(struct session *s, struct frame *f, bool may_queue)
{
	int path = next_path(s);
	uint32_t mask = s->c.mask;

	if (path >= 0 && !(s->c.flags & (LNX_CHAN_QUEUED | LNX_CHAN_RETRANSMIT)) &&
	    path_takes(&s->path[path]) && lnx_chan_window_open(&s->c)) {
		w.t.grown += s->c.mask != mask;
		number(s, f);
		if (post(s, f, (unsigned)path, true)) {
			path_took(&s->path[path]);
			posted_first(s, f);
			return true;
		}
		path_blocked(&s->path[path]);
		if (!may_queue && lnx_chan_unnumber(&s->c, &f->f)) {
			CHECK(f->id == s->numbered);
			s->numbered--;
			ledger[s->sid].sent--;
			w.t.refused++;
			frame_put(f);
			return false;
		}
		/* Only because a callback has queued one behind it. */
		CHECK(may_queue || f->id < s->numbered);
		queue(s, f, true);
		return true;
	}
	if (!may_queue) {
		frame_put(f);
		return false;
	}
	number(s, f);
	queue(s, f, false);
	return true;
}

void session_hello(struct session *s)
{
	struct frame *f = frame_get(s);

	s->hello_done = true;
	f->f.len = 200;
	f->hello = true;
	f->stamp = s->stamp;
	f->names = s->rx_sid ? s->rx_sid : s->named;
	send_frame(s, f, true);
}

bool session_send(struct session *s, bool may_queue)
{
	if (!s->hello_done)
		session_hello(s);
	return send_frame(s, message(s), may_queue);
}

/* False: all paths are blocked. */
static bool post_next(struct session *s, struct frame *f, enum lnx_chan_what what)
{
	unsigned tries = w.mode.npath;
	int path;

	while (tries-- && (path = next_path(s)) >= 0) {
		struct path *p = &s->path[path];

		if (p->state != LNX_PATH_UP && w.now < p->retry_ns)
			return false;
		if (post(s, f, (unsigned)path, what == LNX_CHAN_OUT_NEW)) {
			path_took(p);
			return true;
		}
		path_blocked(p);
	}
	return false;
}

/* False: something could not leave. */
bool session_pump(struct session *s)
{
	uint32_t mask = s->c.mask;
	enum lnx_chan_what what;
	struct lnx_frame *f;

	while ((f = lnx_chan_next_out(&s->c, &what))) {
		struct frame *one = frame_of(f);
		uint32_t seq = f->seq;
		uint8_t before = f->path;

		model_out(s, one, what);
		if (!post_next(s, one, what))
			return false;
		lnx_chan_out(&s->c, what, seq, before);
		if (what == LNX_CHAN_OUT_NEW)
			posted_first(s, one);
		if (what == LNX_CHAN_OUT_PROBE) {
			s->probed = true;
			s->probed_path = before;
		}
	}
	model_drained(s);
	w.t.grown += s->c.mask != mask;
	return true;
}

/* ---- the core ---- */

void session_core_done(struct session *s, bool ok)
{
	struct lnx_node *n = s->in_core.next;
	struct path *p;
	struct frame *f;

	if (lnx_list_empty(&s->in_core))
		return;
	f = lnx_container_of(n, struct frame, core_link);
	out_of_core(f);
	if (f->f.acked) {
		frame_put(f);
		return;
	}
	if (ok || lnx_life_dead(s->life))
		return;
	p = &s->path[f->f.path];
	if (p->state == LNX_PATH_UP) {
		path_happens(p, LNX_PATH_BROKE);
		p->since_ns = p->retry_ns = 0;
	}
	session_retransmit(s, 1u << f->f.path, s->posted - s->una);
}
