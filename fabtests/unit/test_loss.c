/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rel/loss: what is lost is found soon, and nothing else is sent again.  A sender, and a
 * receiver behind connections that keep the order and lose what they hold when they break.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "rel/loss.h"

#define MS		1000000ull
#define NFRAMES		4096u
#define PATHS		2u
#define PIPE		1024u
#define RTO		(50 * MS)

/* What is on its way over a path, in order.  A question has about. */
struct item {
	uint32_t seq, number;
	bool question;
	uint64_t due_ns;
};

static struct {
	struct lnx_chan c;
	struct lnx_loss l;
	struct lnx_frame frame[NFRAMES];
	uint32_t nposted;		/* frames so far */
	uint64_t now, delay_ns;
	/* The receiver. */
	struct item pipe[PATHS][PIPE];
	unsigned nin[PATHS];
	bool got[NFRAMES];
	uint32_t next;
	bool computes, deaf;		/* it reads nothing; its answers are lost */
	uint32_t ack;			/* answers on their way back */
	/* Figures. */
	unsigned lost, copies, duplicates, questions, insisted;
} w;

static void open_world(uint64_t delay_ns)
{
	memset(&w, 0, sizeof(w));
	lnx_chan_init(&w.c);
	cr_assert_eq(lnx_chan_open(&w.c, 512), 0);
	w.now = 1000 * MS;
	w.delay_ns = delay_ns;
}

static void close_world(void)
{
	while (!lnx_chan_idle(&w.c))
		lnx_chan_pop_una(&w.c);
	lnx_chan_fini(&w.c);
}

static void put(unsigned path, struct item it)
{
	cr_assert_lt(w.nin[path], PIPE);
	it.due_ns = w.now + w.delay_ns;
	w.pipe[path][w.nin[path]++] = it;
}

static void send_on(unsigned path)
{
	struct lnx_frame *f = &w.frame[w.nposted++];

	cr_assert_leq(w.nposted, NFRAMES);
	cr_assert(lnx_chan_window_open(&w.c));
	f->len = 64;
	f->path = (uint8_t)path;
	lnx_chan_number(&w.c, f);
	lnx_chan_posted(&w.c, f, f->len);
	put(path, (struct item){ .seq = f->seq });
}

/* The connection breaks: what it holds is lost, and it is made again. */
static void breaks(unsigned path)
{
	unsigned i;

	for (i = 0; i < w.nin[path]; i++)
		w.lost += !w.pipe[path][i].question;
	w.nin[path] = 0;
}

static void acked(void)
{
	uint32_t n = lnx_chan_ackable(&w.c, w.next);

	while (n--)
		lnx_chan_pop_una(&w.c);
	lnx_chan_after_ack(&w.c);
}

static void ask(unsigned path)
{
	uint32_t number = w.l.last + 1;

	w.questions++;
	put(path, (struct item){ .question = true, .number = number });
	lnx_loss_asked(&w.l, &w.c, path, number, w.now);
}

static void receive(unsigned path)
{
	struct item *p = w.pipe[path];
	unsigned i;

	for (i = 0; i < w.nin[path] && p[i].due_ns <= w.now; i++) {
		struct item it = p[i];

		if (it.question) {
			/* What comes back acknowledges, too. */
			if (w.deaf)
				continue;
			acked();
			lnx_loss_answered(&w.l, &w.c, path, it.number, w.now);
			continue;
		}
		w.duplicates += w.got[it.seq];
		w.got[it.seq] = true;
		while (w.next < NFRAMES && w.got[w.next])
			w.next++;
	}
	memmove(p, p + i, (w.nin[path] - i) * sizeof(*p));
	w.nin[path] -= i;
}

/* One ms.  The receiver acknowledges what it has read. */
static void tick(void)
{
	enum lnx_chan_what what;
	struct lnx_frame *f;
	unsigned p;
	int path;

	w.now += MS;
	for (p = 0; p < PATHS && !w.computes; p++)
		receive(p);
	if (!w.computes && !w.deaf && w.next != w.ack) {
		w.ack = w.next;
		acked();
	}
	switch (lnx_loss_look(&w.l, &w.c, RTO, w.now)) {
	case LNX_LOSS_INSIST:
		w.insisted++;
		/* fall through */
	case LNX_LOSS_ASK:
		path = lnx_loss_path(&w.c);
		if (path >= 0)
			ask((unsigned)path);
		break;
	default:
		break;
	}
	while ((f = lnx_chan_next_out(&w.c, &what))) {
		cr_assert_neq(what, LNX_CHAN_OUT_NEW);
		w.copies++;
		put(f->path, (struct item){ .seq = f->seq });
		lnx_chan_out(&w.c, what, f->seq, f->path);
	}
}

/* ms until all is acknowledged. */
static unsigned until_idle(unsigned most)
{
	unsigned ms;

	for (ms = 0; ms < most && !lnx_chan_idle(&w.c); ms++)
		tick();
	cr_assert(lnx_chan_idle(&w.c), "%u of %u acknowledged", w.c.una, w.c.posted);
	return ms;
}

static void first_frame(void)
{
	unsigned i;

	for (i = 0; i < 16; i++)
		send_on(0);
	until_idle(50);
}

Test(loss, the_last_frame_of_all)
{
	open_world(MS);
	first_frame();
	send_on(0);
	breaks(0);
	/* One timeout, one question and one retransmission. */
	cr_expect_leq(until_idle(500), 50u * 3 + 10);
	cr_expect_eq(w.copies, 1u);
	cr_expect_eq(w.duplicates, 0u);
	close_world();
}

/* Frames of the broken connection are lost, those behind them are not. */
Test(loss, behind_it_more_arrives)
{
	unsigned i;

	open_world(MS);
	first_frame();
	for (i = 0; i < 5; i++)
		send_on(0);
	breaks(0);
	for (i = 0; i < 200; i++) {
		send_on(0);
		tick();
		if (w.c.posted - w.c.una > 400)
			break;
	}
	until_idle(1000);
	cr_expect_geq(w.copies, 5u);
	/* What left before the question, and not what left after it. */
	cr_expect_leq(w.copies, 70u);
	close_world();
}

/* The path that lost nothing has nothing to send again. */
Test(loss, only_on_its_path)
{
	unsigned i;

	open_world(MS);
	first_frame();
	send_on(1);
	breaks(1);
	for (i = 0; i < 20; i++)
		send_on(0);
	until_idle(500);
	cr_expect_eq(w.copies, 1u);
	cr_expect_eq(w.duplicates, 0u);
	close_world();
}

/* It reads nothing for a while: then all is there, and little was repeated. */
Test(loss, a_peer_that_computes)
{
	unsigned i;

	open_world(MS);
	first_frame();
	for (i = 0; i < 100; i++)
		send_on(0);
	w.computes = true;
	for (i = 0; i < 700; i++)
		tick();
	cr_expect_eq(w.copies, 0u);
	cr_expect_leq(w.questions, 4u);
	for (i = 0; i < 20000; i++)
		tick();
	cr_expect_leq(w.copies, 8u);
	w.computes = false;
	until_idle(100);
	close_world();
}

/* This process was stopped for a minute, the peer was not. */
Test(loss, a_stopped_process)
{
	unsigned i;

	open_world(MS);
	first_frame();
	for (i = 0; i < 15; i++)
		send_on(0);
	tick();
	w.now += 60000 * MS;
	until_idle(100);
	cr_expect_eq(w.copies, 0u);
	cr_expect_leq(w.questions, 2u);
	close_world();
}

/* It is far away: the question is on its way for longer than the timeout. */
Test(loss, a_far_peer)
{
	unsigned i;

	open_world(300 * MS);
	for (i = 0; i < 16; i++)
		send_on(0);
	until_idle(1000);
	w.copies = w.insisted = 0;
	for (i = 0; i < 5; i++)
		send_on(0);
	until_idle(1000);
	cr_expect_eq(w.copies, 0u);
	for (i = 0; i < 5; i++)
		send_on(0);
	breaks(0);
	until_idle(3000);
	cr_expect_leq(w.duplicates, 5u);
	close_world();
}

/* Before the first acknowledgement no peer can be asked: the oldest goes again. */
Test(loss, the_hello)
{
	open_world(MS);
	send_on(0);
	breaks(0);
	cr_expect_eq(lnx_loss_path(&w.c), -1);
	tick();
	while (!w.copies && w.now < 5000 * MS)
		tick();
	cr_expect_eq(w.copies, 1u);
	cr_expect_eq(w.questions, 0u);
	cr_expect_eq(w.insisted, 1u);
	close_world();
}

/* Answers cannot come back, acknowledgements can (over another path). */
Test(loss, no_answers)
{
	unsigned i;

	open_world(MS);
	first_frame();
	w.deaf = true;
	send_on(0);
	breaks(0);
	for (i = 0; i < 5000 && !w.insisted; i++)
		tick();
	cr_expect_eq(w.insisted, 1u);
	cr_expect_eq(w.copies, 1u);
	w.deaf = false;
	until_idle(5000);
	close_world();
}

/* A receiver without memory drops a frame again and again: not more often each time. */
Test(loss, a_receiver_that_drops)
{
	unsigned i;

	open_world(MS);
	first_frame();
	send_on(0);
	breaks(0);
	for (i = 0; i < 3000; i++) {
		tick();
		/* Drop each copy, not the questions. */
		if (w.nin[0] && !w.pipe[0][0].question) {
			memmove(w.pipe[0], w.pipe[0] + 1,
				--w.nin[0] * sizeof(w.pipe[0][0]));
		}
	}
	cr_expect_leq(w.copies, 8u, "%u copies", w.copies);
	until_idle(9000);
	close_world();
}

/* Answers to what was never asked, or asked about something else. */
Test(loss, forged_answers)
{
	static const uint32_t odd[] = { 0, 1, 2, 3, 100, UINT32_MAX, UINT32_MAX - 1,
					INT32_MAX, (uint32_t)INT32_MIN };
	unsigned i, p;

	open_world(MS);
	first_frame();
	send_on(0);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (p = 0; p < 9; p++)
			cr_expect(!lnx_loss_answered(&w.l, &w.c, p, odd[i], w.now));
	w.l.last = 7;
	ask(0);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (p = 0; p < 9; p++)
			cr_expect(!lnx_loss_answered(&w.l, &w.c, p, odd[i], w.now));
	cr_expect(!lnx_chan_retransmits(&w.c));
	until_idle(500);
	cr_expect_eq(w.copies, 0u);
	close_world();
}

/* A frame that the core still has is the core's business. */
Test(loss, in_the_core)
{
	open_world(MS);
	first_frame();
	send_on(0);
	w.frame[w.nposted - 1].in_core = true;
	breaks(0);
	while (w.now < 3000 * MS)
		tick();
	cr_expect_eq(w.copies, 0u);
	w.frame[w.nposted - 1].in_core = false;
	until_idle(9000);
	close_world();
}

/* The marks of two retransmissions that overlap. */
Test(loss, retransmissions_overlap)
{
	enum lnx_chan_what what;
	struct lnx_frame *f;
	unsigned i, n = 0;

	open_world(MS);
	first_frame();
	for (i = 0; i < 10; i++)
		send_on(i % 2);
	lnx_chan_retransmit_before(&w.c, 1u << 0, w.c.una + 8);
	lnx_chan_retransmit_before(&w.c, 1u << 1, w.c.una + 4);
	lnx_chan_retransmit_before(&w.c, 1u << 1, w.c.una);
	lnx_chan_retransmit_before(&w.c, 1u << 1, w.c.posted + 1);
	lnx_chan_retransmit_before(&w.c, 1u << 1, w.c.una - 1);
	while ((f = lnx_chan_next_out(&w.c, &what))) {
		cr_assert_eq(what, LNX_CHAN_OUT_AGAIN);
		cr_expect_eq(f->seq, w.c.una + n);
		n++;
		lnx_chan_out(&w.c, what, f->seq, f->path);
	}
	cr_expect_eq(n, 8u);
	close_world();
}

/* The oldest frame is late on one path, and the peer answers over others. */
Test(loss, a_late_frame)
{
	struct lnx_late l = { 0 };
	uint64_t heard = 0, next;
	unsigned i;

	open_world(MS);
	first_frame();
	send_on(0);
	for (i = 0; i < 20; i++, w.now += MS) {
		cr_expect_eq(lnx_loss_late(&l, &w.c, 20 * MS, heard, w.now),
			     LNX_LOSS_NOTHING);
		next = lnx_loss_late_next(&l, 20 * MS, w.now);
		cr_expect_eq(next, l.since_ns + 20 * MS);
	}
	cr_expect_eq(lnx_loss_late(&l, &w.c, 20 * MS, heard, w.now), LNX_LOSS_ASK);
	/* While no answer comes it is looked at less and less often. */
	cr_expect_eq(lnx_loss_late_next(&l, 20 * MS, w.now), w.now + 10 * MS);
	/* An answer from before that time says nothing. */
	heard = w.now - 1;
	cr_expect_eq(lnx_loss_late(&l, &w.c, 20 * MS, heard, w.now), LNX_LOSS_ASK);
	heard = w.now;
	cr_expect_eq(lnx_loss_late(&l, &w.c, 20 * MS, heard, w.now), LNX_LOSS_LATE);
	cr_expect(!lnx_chan_retransmits(&w.c));
	lnx_loss_late_again(&l, &w.c, 0);
	cr_expect(lnx_chan_retransmits(&w.c));
	/* Then it has as long again; another oldest frame, too. */
	w.now += 19 * MS;
	heard = w.now;
	cr_expect_eq(lnx_loss_late(&l, &w.c, 20 * MS, heard, w.now), LNX_LOSS_NOTHING);
	send_on(1);
	w.next = w.c.una + 1;
	acked();
	w.now += 19 * MS;
	cr_expect_eq(lnx_loss_late(&l, &w.c, 20 * MS, heard, w.now), LNX_LOSS_NOTHING);
	cr_expect_eq(l.seq, w.c.una);
	close_world();
}
