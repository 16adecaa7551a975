/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has to be true of a session: its channel compared with the model.  See
 * chan_world.h.
 */
#include "chan_inside.h"

struct frame *session_frame(struct session *s, uint64_t id)
{
	struct lnx_frame *f = *lnx_chan_slot(&s->c, s->c.una +
					     (uint32_t)(id - s->una - 1));

	CHECK(f && frame_of(f)->s == s && frame_of(f)->id == id);
	return frame_of(f);
}

/* ---- what has to be retransmitted ---- */

void model_retransmit(struct session *s, unsigned paths, uint64_t end)
{
	uint64_t id;

	if (s->una == s->posted)
		return;
	for (id = s->una + 1; id <= end; id++) {
		const struct frame *f = session_frame(s, id);

		if ((paths >> f->f.path & 1) && !f->f.in_core)
			*session_due(s, id) = true;
	}
	s->retx_paths |= paths;
	s->retx_end = LNX_MAX(s->retx_end, end);
	CHECK(lnx_chan_retransmits(&s->c));
}

void session_retransmit(struct session *s, unsigned paths, uint64_t n)
{
	if (n == s->posted - s->una)
		lnx_chan_retransmit(&s->c, paths);
	else
		lnx_chan_retransmit_before(&s->c, paths, s->c.una + (uint32_t)n);
	if (n)
		model_retransmit(s, paths, s->una + n);
}

void model_out(struct session *s, const struct frame *f, enum lnx_chan_what what)
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
		CHECK(!*session_due(s, id));
}

void model_drained(struct session *s)
{
	uint64_t id;

	CHECK(!lnx_chan_retransmits(&s->c) && !(s->c.flags & LNX_CHAN_PROBE_DUE));
	for (id = s->una + 1; s->retx_paths && id <= s->posted; id++)
		CHECK(!*session_due(s, id));
	s->retx_paths = 0;
	s->retx_end = 0;
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
		const struct frame *f = session_frame(s, id);

		CHECK(f->f.seq == first_number(s->sid) + (uint32_t)(id - 1));
		CHECK(!f->f.acked && !lnx_list_linked(&f->f.link));
		bytes += frame_bytes(f);
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
		const struct frame *f =
			frame_of(lnx_list_entry(at, struct lnx_frame, link));

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
	uint64_t id, delivered = ledger[s->rx_sid].delivered;
	const struct lnx_seq *rx = &s->c.rx;
	uint32_t i, n = 0;

	CHECK(s->acks == s->c.acks_pending);
	CHECK(!s->acks || s->on_ack_list);
	CHECK(s->c.ack_threshold == (s->on_ack_list ? ACK_EVERY : 0));
	if (!s->rx_sid)
		return;
	CHECK(rx->next == first_number(s->rx_sid) + (uint32_t)delivered);
	if (!rx->ooo) {
		CHECK(!rx->n_ooo);
		return;
	}
	for (i = 0; i < LNX_SEQ_WINDOW && n < rx->n_ooo; i++) {
		id = (uint64_t)(uintptr_t)rx->ooo[(rx->next + i) % LNX_SEQ_WINDOW];
		CHECK(!id || id == delivered + 1 + i);
		n += id != 0;
	}
	CHECK(n == rx->n_ooo);
	/* No other slot is used: a look at all takes longer. */
	for (i = n = 0; w.t.events % 64 == 0 && i < LNX_SEQ_WINDOW; i++)
		n += rx->ooo[i] != NULL;
	CHECK(w.t.events % 64 || n == rx->n_ooo);
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
