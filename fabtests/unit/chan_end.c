/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One session of an end: what tx/frame.c, tx/done.c, tx/control.c, tx/detect.c and
 * rx/arrive.c do with the pure channel.  See chan_world.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chan_world.h"

#define RAIL_TIMEOUT_NS	(50 * MS)
#define ACK_DELAY_NS	(50 * LNX_NS_PER_US)
#define RECOVERY_NS	(20 * MS)
#define CONNECT_NS	(20 * LNX_NS_PER_S)
#define TRANSACTION_NS	(5 * LNX_NS_PER_S)
#define PIECES_BYTES	1000u		/* of a frame with pieces outside of it */

static bool *due_of(struct session *s, uint64_t id)
{
	return &s->due[id % LNX_SEQ_WINDOW];
}

static struct frame *frame_of(struct lnx_frame *f)
{
	return lnx_container_of(f, struct frame, f);
}

static uint64_t bytes_of(const struct frame *f)
{
	return f->f.len + (f->f.niov ? PIECES_BYTES : 0);
}

/* The frame of the model with that number; it is in the window. */
static struct frame *frame_at(struct session *s, uint64_t id)
{
	struct lnx_frame *f = *lnx_chan_slot(&s->c, s->c.una +
					     (uint32_t)(id - s->una - 1));

	CHECK(f && frame_of(f)->s == s && frame_of(f)->id == id);
	return frame_of(f);
}

/* ---- frames ---- */

static struct frame *frame_get(struct session *s)
{
	struct frame *f = calloc(1, sizeof(*f));

	cr_assert(f);
	f->s = s;
	s->nframes++;
	lnx_list_init(&f->f.link);
	lnx_list_init(&f->core_link);
	return f;
}

void session_frame_put(struct frame *f)
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

/* The peer has it, and so has our core no more. */
static void settled(struct frame *f)
{
	if (!f->f.in_core)
		session_frame_put(f);
}

/* ---- paths ---- */

static bool takes_frames(const struct path *p)
{
	return p->state == LNX_PATH_UP || p->state == LNX_PATH_IDLE;
}

static bool may_try(const struct path *p)
{
	return takes_frames(p) || (p->state != LNX_PATH_DOWN && w.now >= p->retry_ns);
}

static void happens(struct path *p, enum lnx_path_event event)
{
	p->state = lnx_path_table[p->state][event];
}

static void took(struct path *p)
{
	happens(p, LNX_PATH_TOOK);
	if (p->state == LNX_PATH_UP)
		p->since_ns = 0;
}

static void blocked(struct path *p)
{
	if (p->state == LNX_PATH_DOWN)
		return;
	if (p->state != LNX_PATH_CONNECTING || !p->since_ns)
		p->since_ns = w.now;
	happens(p, LNX_PATH_REFUSED);
	p->retry_ns = w.now + MS;
}

/* The path of the next frame, or -1.  Until our HELLO is acknowledged: the HELLO's. */
static int next_path(struct session *s)
{
	unsigned i, at = rnd(4) ? s->cur : rnd(w.mode.npath);

	if (!lnx_chan_acked_any(&s->c) && s->posted)
		at = frame_at(s, 1)->f.path;
	if (w.mode.npath == 1)
		return 0;
	for (i = 0; i < w.mode.npath; i++) {
		unsigned p = (at + i) % w.mode.npath;

		if (may_try(&s->path[p]))
			return (int)p;
	}
	return -1;
}

/* One that works, for what is no frame. */
static unsigned live_path(const struct session *s)
{
	unsigned i;

	if (s->path[s->cur].state == LNX_PATH_UP)
		return s->cur;
	for (i = 0; i < w.mode.npath; i++)
		if (s->path[i].state == LNX_PATH_UP)
			return i;
	return rnd(w.mode.npath);
}

static bool none_for(const struct session *s, uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < w.mode.npath; i++)
		if (!s->path[i].since_ns ||
		    lnx_ns_since(w.now, s->path[i].since_ns) <= limit_ns)
			return false;
	return true;
}

static uint64_t in_flight(const struct session *s, const struct path *p)
{
	return LNX_MIN(p->sent - p->delivered, s->c.una_bytes);
}

static void all_delivered(struct session *s)
{
	unsigned i;

	for (i = 0; i < w.mode.npath; i++) {
		struct path *p = &s->path[i];

		p->last_report += p->sent - p->delivered;
		p->delivered = p->sent;
	}
}

static void report(struct session *s, unsigned which, uint64_t total)
{
	struct path *p = &s->path[which];
	uint64_t more = total - p->last_report, flight = p->sent - p->delivered;

	if (!flight && lnx_chan_idle(&s->c)) {
		p->last_report = total;
		return;
	}
	if (more > INT64_MAX)
		return;
	p->last_report = total;
	p->progress += more;
	p->delivered += LNX_MIN(more, flight);
}

/* ---- what has to be retransmitted, by the model ---- */

static void model_retransmit(struct session *s, unsigned paths, uint64_t end)
{
	uint64_t id;

	if (s->una == s->posted)
		return;
	for (id = s->una + 1; id <= end; id++) {
		const struct frame *f = frame_at(s, id);

		if ((paths >> f->f.path & 1) && !f->f.in_core)
			*due_of(s, id) = true;
	}
	s->retx_paths |= paths;
	s->retx_end = LNX_MAX(s->retx_end, end);
	CHECK(lnx_chan_retransmits(&s->c));
}

void session_retransmit(struct session *s, unsigned paths)
{
	lnx_chan_retransmit(&s->c, paths);
	model_retransmit(s, paths, s->posted);
}

static void model_out(struct session *s, const struct frame *f, enum lnx_chan_what what)
{
	uint64_t id;

	CHECK(f->s == s && !f->f.acked);
	if (what == LNX_CHAN_OUT_PROBE) {
		CHECK(f->id == s->una + 1 && !f->f.in_core);
		w.t.probes++;
		return;
	}
	if (what == LNX_CHAN_OUT_AGAIN) {
		CHECK((s->retx_paths >> f->f.path & 1) && f->id <= s->retx_end);
		CHECK(f->id > s->una && f->id <= s->posted && !f->f.in_core);
		w.t.again++;
		return;
	}
	CHECK(f->id == s->posted + 1 && s->posted - s->una < s->c.window);
	/* Before new frames, all that is lost has left. */
	for (id = s->una + 1; s->retx_paths && id <= s->posted; id++)
		CHECK(!*due_of(s, id));
}

static void model_drained(struct session *s)
{
	uint64_t id;

	CHECK(!lnx_chan_retransmits(&s->c) && !(s->c.flags & LNX_CHAN_PROBE_DUE));
	for (id = s->una + 1; s->retx_paths && id <= s->posted; id++)
		CHECK(!*due_of(s, id));
	s->retx_paths = 0;
	s->retx_end = 0;
}

/* ---- sending ---- */

static struct packet packet_of(struct session *s, enum kind kind, unsigned path)
{
	return (struct packet){
		.kind = kind, .to = 1 - s->at, .path = path, .src = s->sid, .dst = s->eid,
		.from = w.end[s->at].eid, .seq = s->c.next, .ack = s->c.rx.next,
		.nack = s->rx_sid ? ledger[s->rx_sid].delivered : 0,
		.acks = s->rx_sid,
	};
}

static void acks_are_sent(struct session *s)
{
	lnx_chan_ack_sent(&s->c);
	s->acks = 0;
}

/* Of several paths only an ACK reports. */
static void piggybacked(struct session *s)
{
	if (!s->multipath)
		acks_are_sent(s);
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
	if (s->hello_done && s->life == LNX_LIFE_OPEN && s->c.nqueued < 50 && !rnd(8)) {
		struct frame *f = message(s);

		number(s, f);
		queue(s, f, false);
	}
}

/* The core takes it, or not; fresh: it is not in the window yet. */
static bool post(struct session *s, struct frame *f, unsigned path, bool fresh)
{
	struct packet p = packet_of(s, DATA, path);
	bool stays = f->f.niov || rnd(4) == 0, *due = due_of(s, f->id), was_due = *due;
	uint8_t before = f->f.path;

	p.seq = f->f.seq;
	p.id = f->id;
	p.hello = f->hello;
	p.stamp = f->stamp;
	p.answers = f->answers;
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
			settled(f);
			return true;
		}
		*due = was_due;
		return false;
	}
	s->path[path].sent += bytes_of(f);
	if (fresh)
		s->lost[f->id % LNX_SEQ_WINDOW] = 0;
	net_send(&p);
	if (f->f.in_core && !stays) {
		out_of_core(f);
		if (f->f.acked)
			settled(f);
	}
	if (p.ack == s->c.rx.next)
		piggybacked(s);
	return true;
}

static void posted_first(struct session *s, struct frame *f)
{
	bool idle = lnx_chan_idle(&s->c);

	lnx_chan_posted(&s->c, &f->f, bytes_of(f));
	s->posted++;
	CHECK(f->id == s->posted);
	if (!s->on_retx_list) {
		CHECK(idle);
		lnx_loss_restart(&s->loss, &s->c);
		s->on_retx_list = true;
	}
}

static bool send_frame(struct session *s, struct frame *f, bool may_queue)
{
	int path = next_path(s);
	uint32_t mask = s->c.mask;

	if (path >= 0 && !(s->c.flags & (LNX_CHAN_QUEUED | LNX_CHAN_RETRANSMIT)) &&
	    takes_frames(&s->path[path]) && lnx_chan_window_open(&s->c)) {
		w.t.grown += s->c.mask != mask;
		number(s, f);
		if (post(s, f, (unsigned)path, true)) {
			took(&s->path[path]);
			posted_first(s, f);
			return true;
		}
		blocked(&s->path[path]);
		if (!may_queue && lnx_chan_unnumber(&s->c, &f->f)) {
			CHECK(f->id == s->numbered);
			s->numbered--;
			ledger[s->sid].sent--;
			w.t.refused++;
			session_frame_put(f);
			return false;
		}
		/* Only because a callback has queued one behind it. */
		CHECK(may_queue || f->id < s->numbered);
		queue(s, f, true);
		return true;
	}
	if (!may_queue) {
		session_frame_put(f);
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
	f->answers = s->rx_sid;
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
			took(p);
			return true;
		}
		blocked(p);
	}
	return false;
}

/* False: something could not leave. */
static bool pump(struct session *s)
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

/* ---- what comes back ---- */

static void acked(struct session *s, struct frame *f)
{
	struct ledger *l = &ledger[s->sid];

	/* In order, once, and not before it has arrived. */
	CHECK(f->s == s && f->id == ++s->una && f->id <= s->posted);
	CHECK(l->delivered >= f->id && !f->f.acked);
	l->acked++;
	w.t.acked++;
	*due_of(s, f->id) = false;
	f->f.acked = true;
	settled(f);
}

void session_ack(struct session *s, const struct packet *p)
{
	struct lnx_frame *f;
	uint64_t want = p->nack > s->una ? p->nack - s->una : 0;
	uint32_t n;

	/* Only a peer that knows this session acknowledges. */
	if (!p->acks)
		return;
	if (p->ack == s->c.una) {
		CHECK(!want);
		return;
	}
	f = lnx_chan_ack_one(&s->c, p->ack);
	if (f) {
		CHECK(want == 1 && !f->slow_ack);
		acked(s, frame_of(f));
	} else {
		n = lnx_chan_ackable(&s->c, p->ack);
		CHECK(n == want);
		if (!n)
			return;
		while (n--) {
			f = lnx_chan_pop_una(&s->c);
			CHECK(f != NULL);
			s->c.una_bytes -= bytes_of(frame_of(f));
			acked(s, frame_of(f));
		}
		lnx_chan_after_ack(&s->c);
		if (s->probed)
			model_retransmit(s, 1u << s->probed_path, s->posted);
		s->probed = false;
	}
	if (lnx_chan_idle(&s->c))
		all_delivered(s);
}

static void owe_ack(struct session *s)
{
	s->acks++;
	if (!lnx_chan_owe_ack(&s->c)) {
		CHECK(s->on_ack_list && s->acks < ACK_EVERY);
		return;
	}
	if (!s->on_ack_list) {
		s->c.ack_since_ns = 0;
		s->c.ack_threshold = ACK_EVERY;
		s->on_ack_list = true;
	}
}

static void ack_at_once(struct session *s)
{
	owe_ack(s);
	s->c.ack_now = true;
}

/* The next frame reaches the application; false: no memory for it. */
static bool handle(struct session *s, uint64_t id)
{
	struct ledger *l = &ledger[s->rx_sid];

	if (!w.quiet && !rnd(500)) {
		w.t.dropped++;
		if (l->s)
			l->s->lost[id % LNX_SEQ_WINDOW] = UINT8_MAX;
		return false;
	}
	CHECK(id == ++l->delivered && !lnx_life_dead(s->life));
	CHECK(!l->s || id <= l->s->posted);
	w.t.delivered++;
	return true;
}

static void drain_ooo(struct session *s)
{
	void *early;

	while ((early = lnx_seq_pop(&s->c.rx))) {
		if (!handle(s, (uint64_t)(uintptr_t)early))
			return;
		lnx_seq_advance(&s->c.rx);
		owe_ack(s);
	}
}

static void ahead(struct session *s, const struct packet *p)
{
	int ret;

	w.t.early++;
	if (s->multipath)
		owe_ack(s);
	else
		ack_at_once(s);
	if (!w.quiet && !rnd(500)) {
		w.t.dropped++;
		net_lost(p);
		return;
	}
	ret = lnx_seq_ooo_add(&s->c.rx, p->seq, (void *)(uintptr_t)p->id);
	CHECK(!ret || ret == -EEXIST);
}

static void data(struct session *s, const struct packet *p)
{
	uint64_t delivered = ledger[s->rx_sid].delivered;

	s->rx_bytes[p->path] += 64;
	if (p->path != s->last_path) {
		s->last_path = p->path;
		s->multipath = w.mode.npath > 1;
		s->back = p->path;
	}
	switch (lnx_seq_judge(&s->c.rx, p->seq)) {
	case LNX_SEQ_NEXT:
		CHECK(p->id == delivered + 1);
		if (!handle(s, p->id))
			return;
		lnx_seq_advance(&s->c.rx);
		owe_ack(s);
		drain_ooo(s);
		break;
	case LNX_SEQ_AHEAD:
		CHECK(p->id > delivered + 1);
		ahead(s, p);
		break;
	case LNX_SEQ_OLD:
		CHECK(p->id <= delivered);
		w.t.old++;
		ack_at_once(s);
		break;
	case LNX_SEQ_FAR:
		/* Only what is forged. */
		CHECK(!p->id);
		break;
	}
}

static void asked(struct session *s, const struct packet *p)
{
	struct path *back = &s->path[p->path];

	if (p->latency) {
		back->other_due = true;
		back->other_about = p->about;
		back->other_data = p->data;
	} else {
		back->pong_due[p->about] = true;
		back->pong_data[p->about] = p->data;
	}
	ack_at_once(s);
}

static void answered(struct session *s, const struct packet *p)
{
	uint64_t end = s->loss.end - s->c.una + s->una;
	struct path *path = &s->path[p->about];
	uint32_t number = (uint32_t)p->data;

	if (w.mode.npath == 1 && number == s->loss.last && s->loss.probe_sent_ns) {
		lnx_rtt_sample(&path->rtt, lnx_ns_since(w.now, s->loss.probe_sent_ns));
		s->loss.probe_sent_ns = 0;
	}
	if (!lnx_loss_answered(&s->loss, &s->c, p->path, number, w.now))
		return;
	w.t.found_lost++;
	/* It is not said of what is only late, unless paths do not keep the order. */
	CHECK(!w.mode.in_order ||
	      (s->lost[(s->una + 1) % LNX_SEQ_WINDOW] >> p->path & 1));
	model_retransmit(s, 1u << p->path, end);
}

static void pong(struct session *s, const struct packet *p)
{
	struct path *path = &s->path[p->about];
	uint64_t moved = path->progress;

	if (p->latency) {
		if (w.mode.npath > 1 && p->path == p->about)
			lnx_rtt_sample(&path->rtt, lnx_ns_since(w.now, path->latency_ns));
		if (p->path == p->about)
			answered(s, p);
		return;
	}
	s->pong_ns = w.now;
	report(s, p->about, p->bytes[p->about]);
	if (path->state != LNX_PATH_DOWN) {
		lnx_silence_answered(&path->silence, path->progress != moved,
				     p->data == path->nonce);
		return;
	}
	if (p->path != p->about || !path->pinged || p->data != path->nonce)
		return;
	happens(path, LNX_PATH_ANSWERED);
	CHECK(path->state == LNX_PATH_UP);
	w.t.restored++;
	path->pinged = false;
	path->since_ns = path->retry_ns = 0;
	path->silence = (struct lnx_silence){ 0 };
}

void session_arrive(struct session *s, const struct packet *p)
{
	unsigned i;

	session_ack(s, p);
	if (p->kind == DATA) {
		data(s, p);
		return;
	}
	lnx_liveness_seen(&s->liveness);
	switch (p->kind) {
	case ACK:
		for (i = 0; i < w.mode.npath; i++)
			report(s, i, p->bytes[i]);
		break;
	case PROBE:
		asked(s, p);
		break;
	case PONG:
		pong(s, p);
		break;
	case BYE:
		if (p->seq == s->c.rx.next)
			session_bye(s);
		break;
	default:
		CHECK(!"a kind without a session");
	}
}

/* ---- frames outside the sequence ---- */

static bool control(struct session *s, unsigned path, struct packet *p)
{
	if (!w.quiet && rnd(1000) < w.mode.busy)
		return false;
	net_send(p);
	took(&s->path[path]);
	return true;
}

static bool send_pong(struct session *s, unsigned path, unsigned about, uint64_t about_data,
		      bool latency)
{
	struct packet p = packet_of(s, PONG, path);

	p.about = about;
	p.data = about_data;
	p.latency = latency;
	p.bytes[about] = s->rx_bytes[about];
	return control(s, path, &p);
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
	       s->back : live_path(s);
	p = packet_of(s, ACK, path);
	memcpy(p.bytes, s->rx_bytes, sizeof(p.bytes));
	if (!control(s, path, &p)) {
		blocked(&s->path[path]);
		return;
	}
	s->multipath = false;
	acks_are_sent(s);
	off_ack_list(s);
}

static bool send_probe(struct session *s, unsigned path, unsigned about, uint64_t nonce,
		       bool latency)
{
	struct packet p = packet_of(s, PROBE, path);

	p.about = about;
	p.data = nonce;
	p.latency = latency;
	w.t.questions++;
	return control(s, path, &p);
}

/* ---- passes ---- */

void session_pass(struct session *s)
{
	if (!pump(s) && none_for(s, CONNECT_NS)) {
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

static void ask_for_frame(struct session *s)
{
	int path = lnx_loss_path(&s->c);

	/* Of several paths each one is asked about its latency anyway. */
	if (path < 0 || w.mode.npath > 1)
		return;
	if (send_probe(s, (unsigned)path, (unsigned)path, s->loss.last + 1u, true))
		lnx_loss_asked(&s->loss, &s->c, (unsigned)path, s->loss.last + 1u, w.now);
	else
		blocked(&s->path[path]);
}

/* A kernel answers at once, unless its path is a black hole. */
static bool check_liveness(struct session *s)
{
	enum lnx_liveness_verdict verdict = lnx_liveness_look(&s->liveness, w.now);
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
			p = packet_of(s, PROBE, i);
			p.has_address = true;
			control(s, i, &p);
		}
		verdict = lnx_liveness_judge(&s->liveness, &v, w.now);
	}
	if (verdict == LNX_LIVENESS_ASK_KERNELS)
		lnx_liveness_asked(&s->liveness, w.now);
	CHECK(verdict != LNX_LIVENESS_REFUSED);
	return verdict != LNX_LIVENESS_TIMED_OUT;
}

void session_timers(struct session *s)
{
	bool idle = lnx_chan_idle(&s->c);
	enum lnx_loss_todo todo;

	if (!s->on_retx_list)
		return;
	if (idle) {
		lnx_liveness_seen(&s->liveness);
		s->on_retx_list = false;
		return;
	}
	todo = lnx_loss_look(&s->loss, &s->c, first_rto(s, idle), w.now);
	if (todo == LNX_LOSS_MOVED)
		lnx_liveness_seen(&s->liveness);
	if (!check_liveness(s)) {
		w.t.timed_out++;
		session_fail(s);
		return;
	}
	w.t.insisted += todo == LNX_LOSS_INSIST;
	if (todo == LNX_LOSS_ASK || todo == LNX_LOSS_INSIST)
		ask_for_frame(s);
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
	clone->answers = f->answers;
	*lnx_chan_slot(&s->c, f->f.seq) = &clone->f;
	f->f.acked = true;
	w.t.clones++;
}

static void fail_over(struct session *s, unsigned path)
{
	uint64_t id;

	for (id = s->una + 1; id <= s->posted; id++) {
		struct frame *f = frame_at(s, id);

		if (f->f.path == path && f->f.in_core)
			clone_frame(s, f);
	}
	s->path[path].delivered = s->path[path].sent;
	session_retransmit(s, 1u << path);
}

void session_path_down(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];
	unsigned i;

	if (p->state == LNX_PATH_DOWN || w.mode.npath < 2 || lnx_life_dead(s->life))
		return;
	happens(p, LNX_PATH_LOST);
	CHECK(p->state == LNX_PATH_DOWN);
	w.t.downs++;
	p->since_ns = w.now;
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
		if (i != about && may_try(&s->path[i]))
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
	/* As tx/failover.c: the others follow on the path of this one. */
	*due_of(s, s->una + 1) = false;
	frame_at(s, s->una + 1)->f.path = (uint8_t)next;
	session_retransmit(s, 1u << next);
}

static void look(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];
	bool probed = p->silence.probe_sent_ns;
	struct lnx_silence_view v = {
		.progress = p->progress, .una = s->c.una, .timeout_ns = silence_timeout(p),
		.frames = !lnx_chan_idle(&s->c) && in_flight(s, p),
		.acked = lnx_chan_acked_any(&s->c),
		.kernel_answers = p->silence.kernel_asked && !w.hole[which],
	};

	switch (lnx_silence_look(&p->silence, &v, w.now)) {
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
}

static void recover(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];

	if (w.now < p->probe_ns)
		return;
	p->probe_ns = w.now + RECOVERY_NS;
	if (send_probe(s, which, which, p->nonce + 1, false)) {
		p->nonce++;
		p->pinged = true;
	}
}

static void ask_latency(struct session *s, unsigned which)
{
	struct path *p = &s->path[which];

	if (p->state == LNX_PATH_DOWN ||
	    lnx_ns_since(w.now, p->latency_ns) < LNX_LATENCY_ASK_NS ||
	    !send_probe(s, which, which, p->latency + 1u, true))
		return;
	p->latency++;
	p->latency_ns = w.now;
	lnx_loss_asked(&s->loss, &s->c, which, p->latency, w.now);
}

static void look_for_late(struct session *s)
{
	int which = lnx_loss_path(&s->c);
	struct path *p;

	if (which < 0)
		return;
	p = &s->path[which];
	switch (lnx_loss_late(&p->late, &s->c, silence_timeout(p), s->pong_ns, w.now)) {
	case LNX_LOSS_ASK:
		if (lnx_ns_since(w.now, p->silence.probe_sent_ns) <= RAIL_TIMEOUT_NS)
			break;
		p->nonce += !p->silence.probe_sent_ns;
		p->silence.probe_sent_ns = w.now;
		ask_elsewhere(s, (unsigned)which);
		break;
	case LNX_LOSS_INSIST:
		w.t.late++;
		CHECK(s->c.flags & LNX_CHAN_PROBE_DUE);
		break;
	default:
		break;
	}
}

void session_detect(struct session *s)
{
	unsigned i;

	if (w.mode.npath < 2)
		return;
	for (i = 0; i < w.mode.npath && !lnx_life_dead(s->life); i++) {
		if (s->path[i].state == LNX_PATH_DOWN)
			recover(s, i);
		else
			look(s, i);
	}
	for (i = 0; i < w.mode.npath && lnx_chan_acked_any(&s->c); i++)
		ask_latency(s, i);
	look_for_late(s);
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
		session_frame_put(f);
		return;
	}
	if (ok || lnx_life_dead(s->life))
		return;
	p = &s->path[f->f.path];
	if (p->state == LNX_PATH_UP) {
		happens(p, LNX_PATH_BROKE);
		p->since_ns = p->retry_ns = 0;
	}
	session_retransmit(s, 1u << f->f.path);
}

/* ---- what has to be true at any time ---- */

static void check_numbers(struct session *s)
{
	const struct lnx_chan *c = &s->c;
	uint32_t first = first_number(s->sid);

	CHECK(s->una <= s->posted && s->posted <= s->numbered);
	CHECK(c->una == first + (uint32_t)s->una);
	CHECK(c->posted == first + (uint32_t)s->posted);
	CHECK(c->next == first + (uint32_t)s->numbered);
	if (!c->slot) {
		CHECK(!s->numbered);
		return;
	}
	CHECK(s->posted - s->una <= c->mask + 1ull && c->mask < c->window);
	CHECK(!(c->window & (c->window - 1)) && c->window <= LNX_SEQ_WINDOW);
	CHECK(!lnx_chan_acked_any(c) == !s->una);
}

static void check_window(struct session *s)
{
	uint64_t id, bytes = 0;
	uint32_t i, empty = 0;

	for (id = s->una + 1; id <= s->posted; id++) {
		const struct frame *f = frame_at(s, id);

		CHECK(f->f.seq == first_number(s->sid) + (uint32_t)(id - 1));
		CHECK(!f->f.acked && !lnx_list_linked(&f->f.link));
		bytes += bytes_of(f);
	}
	CHECK(bytes == s->c.una_bytes);
	/* Slots of frames that were acknowledged are empty. */
	for (i = 0; s->c.slot && i <= s->c.mask; i++)
		empty += !s->c.slot[i];
	CHECK(!s->c.slot || empty == s->c.mask + 1 - (s->posted - s->una));
}

static void check_queue(struct session *s)
{
	uint64_t id = s->posted, n = 0;
	struct lnx_node *at, *tmp;

	lnx_list_foreach(&s->c.queue, at, tmp) {
		const struct frame *f = frame_of(lnx_list_entry(at, struct lnx_frame, link));

		CHECK(f->s == s && f->id == ++id && !f->f.in_core && !f->f.acked);
		n++;
	}
	CHECK(n == s->c.nqueued && n == s->numbered - s->posted);
	CHECK(!n == !(s->c.flags & LNX_CHAN_QUEUED));
	/* Frames are there, in the queue, or acknowledged and in the core. */
	n += s->posted - s->una;
	lnx_list_foreach(&s->in_core, at, tmp) {
		const struct frame *f = lnx_container_of(at, struct frame, core_link);

		CHECK(f->s == s && f->f.in_core);
		n += f->f.acked;
	}
	CHECK(n == s->nframes);
}

static void check_receiving(struct session *s)
{
	const struct lnx_seq *rx = &s->c.rx;
	uint32_t i, n = 0;

	CHECK(s->acks == s->c.acks_pending);
	CHECK(!s->acks || s->on_ack_list);
	CHECK(s->c.ack_threshold == (s->on_ack_list ? ACK_EVERY : 0));
	if (!s->rx_sid)
		return;
	CHECK(rx->next == first_number(s->rx_sid) + (uint32_t)ledger[s->rx_sid].delivered);
	if (!rx->ooo) {
		CHECK(!rx->n_ooo);
		return;
	}
	for (i = 0; i < LNX_SEQ_WINDOW && n < rx->n_ooo; i++) {
		uint64_t id = (uint64_t)(uintptr_t)rx->ooo[(rx->next + i) % LNX_SEQ_WINDOW];

		CHECK(!id || id == ledger[s->rx_sid].delivered + 1 + i);
		n += id != 0;
	}
	CHECK(n == rx->n_ooo);
}

static void check_life(const struct session *s)
{
	CHECK((s->life == LNX_LIFE_OPEN) == (!s->ended && !s->failed && !s->detached));
	CHECK(lnx_life_dead(s->life) == s->failed);
	CHECK(lnx_life_detached(s->life) == s->detached);
	CHECK(lnx_life_given_up(s->life) == (s->failed && !s->ended && !s->detached));
	CHECK(!s->failed || (lnx_chan_idle(&s->c) && !s->c.nqueued));
}

void session_check(struct session *s)
{
	check_life(s);
	if (s->failed) {
		CHECK(!(s->c.flags & ~LNX_CHAN_NO_ACK_YET));
		return;
	}
	check_numbers(s);
	check_window(s);
	check_queue(s);
	check_receiving(s);
}
