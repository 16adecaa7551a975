/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One session of an end: what comes from the other one.  As rel/recv.c, rel/done.c and
 * rel/detect.c do it.  See chan_world.h.
 */
#include <errno.h>

#include "chan_inside.h"

/* ---- acknowledgements ---- */

static void session_all_delivered(struct session *s)
{
	unsigned i;

	for (i = 0; i < w.mode.npath; i++) {
		struct path *p = &s->path[i];

		p->last_report += p->sent - p->delivered;
		p->delivered = p->sent;
	}
}

static void path_report(struct session *s, unsigned which, uint64_t total)
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

static void acked(struct session *s, struct frame *f)
{
	struct ledger *l = &ledger[s->sid];

	/* In order, once, and not before it has arrived. */
	CHECK(f->s == s && f->id == ++s->una && f->id <= s->posted);
	CHECK(l->delivered >= f->id && !f->f.acked);
	l->acked++;
	w.t.acked++;
	*session_due(s, f->id) = false;
	f->f.acked = true;
	frame_settled(f);
}

void session_ack(struct session *s, const struct packet *p)
{
	uint32_t n, ack = p->ack + first_number(s->sid);
	uint64_t want = p->nack > s->una && p->nack <= s->posted ? p->nack - s->una : 0;
	struct lnx_frame *f;

	if (ack == s->c.una) {
		CHECK(!want);
		return;
	}
	f = lnx_chan_ack_one(&s->c, ack);
	if (f) {
		CHECK(want == 1 && !f->slow_ack);
		acked(s, frame_of(f));
	} else {
		n = lnx_chan_ackable(&s->c, ack);
		CHECK(n == want);
		if (!n)
			return;
		while (n--) {
			f = lnx_chan_pop_una(&s->c);
			CHECK(f != NULL);
			s->c.una_bytes -= frame_bytes(frame_of(f));
			acked(s, frame_of(f));
		}
		lnx_chan_after_ack(&s->c);
		if (s->probed)
			model_retransmit(s, 1u << s->probed_path, s->posted);
		s->probed = false;
		session_watch(s);
	}
	if (lnx_chan_idle(&s->c))
		session_all_delivered(s);
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
	ret = lnx_seq_ooo_add(&s->c.rx, p->seq + first_number(s->rx_sid),
			      (void *)(uintptr_t)p->id);
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
	switch (lnx_seq_judge(&s->c.rx, p->seq + first_number(s->rx_sid))) {
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
	/* One question is answered once. */
	CHECK(s->question);
	s->question = false;
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
	s->pong_ns = s->look_ns = w.now;
	path_report(s, p->about, p->bytes[p->about]);
	if (path->state != LNX_PATH_DOWN) {
		lnx_silence_answered(&path->silence, path->progress != moved,
				     p->data == path->nonce);
		return;
	}
	if (p->path != p->about || !path->pinged || p->data != path->nonce)
		return;
	path_happens(path, LNX_PATH_ANSWERED);
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
	lnx_silence_peer_seen(&s->liveness);
	session_watch(s);
	switch (p->kind) {
	case ACK:
		for (i = 0; i < w.mode.npath; i++)
			path_report(s, i, p->bytes[i]);
		break;
	case PROBE:
		asked(s, p);
		break;
	case PONG:
		pong(s, p);
		break;
	case BYE:
		if (p->seq == wire_ack(s))
			session_bye(s);
		break;
	default:
		CHECK(!"a kind without a session");
	}
}
