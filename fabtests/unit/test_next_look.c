/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rel/silence and rel/loss say when to look next.  Two that are told the same things: one is
 * looked at every ms, the other only then.  Both must come to the same verdicts at the same
 * times, and the second with few looks.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/interval.h"
#include "base/timer.h"
#include "rel/loss.h"
#include "rel/silence.h"

#define MS	((uint64_t)LNX_NS_PER_MS)	/* for %lu */
#define BEGIN	((uint64_t)(1000 * LNX_NS_PER_S))

static uint32_t state;

static unsigned rnd(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static void seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) : (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	state = (uint32_t)s * 2654435761u | 1;
}

/* As rel/run.c. */
static uint64_t no_sooner(uint64_t next, uint64_t now)
{
	return LNX_MAX(next, now + LNX_LOOK_MIN_NS);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* ---- a path ---- */

/* When each verdict came first since the silence began; 0: it did not. */
struct story {
	struct lnx_silence s;
	uint64_t at_ns[LNX_SILENCE_DOWN + 1];
	uint64_t next;
	uint64_t answer_ns;		/* when the peer answers */
	unsigned looks, n[LNX_SILENCE_DOWN + 1];
};

static void look(struct story *t, const struct lnx_silence_view *v, uint64_t delay_ns,
		 uint64_t now)
{
	enum lnx_silence_verdict verdict = lnx_silence_look(&t->s, v, now);

	t->looks++;
	t->n[verdict]++;
	if (verdict == LNX_SILENCE_ASK && !t->at_ns[verdict])
		t->answer_ns = now + delay_ns;
	if (!t->at_ns[verdict])
		t->at_ns[verdict] = now;
	t->next = lnx_silence_next(&t->s, v, verdict, now);
	if (t->next != LNX_NEVER)
		t->next = no_sooner(t->next, now);
}

static void answer(struct story *t, uint64_t now)
{
	if (now != t->answer_ns)
		return;
	lnx_silence_answered(&t->s, false, true);
	t->next = now;			/* lnx_detect_pong */
}

static void restart(struct story *t)
{
	memset(t->at_ns, 0, sizeof(t->at_ns));
	memset(t->n, 0, sizeof(t->n));
	t->looks = 0;
	t->answer_ns = LNX_NEVER;
}

/* Traffic for a while, then silence, and perhaps an answer of the peer. */
static void one_path(void)
{
	static const uint64_t timeouts[] = { 20, 50, 100, 400 };
	struct lnx_silence_view v = {
		.timeout_ns = timeouts[rnd(4)] * MS, .acked = rnd(4) != 0,
		.kernel_answers = rnd(2), .frames = true, .reads = rnd(2),
	};
	uint64_t silent = BEGIN + (1 + rnd(500)) * MS, now, may;
	uint64_t delay_ns = rnd(2) ? (1 + rnd(3000)) * MS : 1000 * LNX_NS_PER_S;
	struct story every = { .answer_ns = LNX_NEVER }, due = { .answer_ns = LNX_NEVER };
	unsigned i;

	for (now = BEGIN; now < silent + 20 * v.timeout_ns + 4000 * MS; now += MS) {
		if (now == silent || (now < silent && rnd(3) == 0)) {
			v.progress++;
			/* What comes from the peer shortens a long wait: lnx_peer_watch. */
			if (due.next > now + LNX_LOOK_SEVERAL_NS)
				due.next = now + LNX_LOOK_MIN_NS;
		}
		if (now == silent) {
			restart(&every);
			restart(&due);
		}
		answer(&every, now);
		answer(&due, now);
		look(&every, &v, delay_ns, now);
		if (now >= due.next)
			look(&due, &v, delay_ns, now);
	}
	/* The second may not have known at once when the silence began. */
	may = LNX_MIN(v.timeout_ns / 8, LNX_LOOK_SEVERAL_NS) + LNX_LOOK_MIN_NS + MS;
	for (i = LNX_SILENCE_ASK_KERNEL; i <= LNX_SILENCE_DOWN; i++) {
		cr_expect(!every.n[i] == !due.n[i], "verdict %u: %u and %u times", i,
			  every.n[i], due.n[i]);
		cr_expect_leq(apart(every.at_ns[i], due.at_ns[i]), 2 * may,
			      "verdict %u: after %ld and %ld ms, timeout %lu", i,
			      (long)(every.at_ns[i] - silent) / (long)MS,
			      (long)(due.at_ns[i] - silent) / (long)MS, v.timeout_ns / MS);
	}
	cr_expect_geq(due.n[LNX_SILENCE_ELSEWHERE] * 5 / 4 + 2, every.n[LNX_SILENCE_ELSEWHERE]);
	cr_expect_geq(due.n[LNX_SILENCE_ASK] + 3, every.n[LNX_SILENCE_ASK]);
	/* 500 ms from one question to the next, at last. */
	if (!due.n[LNX_SILENCE_DOWN] && !due.n[LNX_SILENCE_ELSEWHERE])
		cr_expect_leq(due.looks, 20 + (now - silent) / (500 * MS), "%u looks",
			      due.looks);
}

Test(next_look, path)
{
	unsigned i;

	seed();
	for (i = 0; i < 300; i++)
		one_path();
}

/* Nothing is due: no look. */
Test(next_look, path_that_nothing_is_due_on)
{
	struct lnx_silence_view v = { .timeout_ns = 100 * MS, .acked = true };
	struct story t = { .next = 0 };

	look(&t, &v, MS, BEGIN);
	cr_expect_eq(t.next, LNX_NEVER);
	v.frames = true;
	look(&t, &v, MS, BEGIN + MS);
	cr_expect_lt(t.next, BEGIN + 100 * MS);
	v.frames = false;
	look(&t, &v, MS, BEGIN + 2 * MS);
	cr_expect_eq(t.next, LNX_NEVER);
}

/* ---- a peer ---- */

struct life {
	struct lnx_liveness l;
	uint64_t kernels_ns, ended_ns, next;
	unsigned looks, nasked;
};

/* Kernels answer so long after they were asked. */
static void look_at_life(struct life *t, struct lnx_liveness_view v, uint64_t delay_ns,
			 uint64_t now)
{
	enum lnx_liveness_verdict verdict = lnx_silence_peer_look(&t->l, now);

	t->looks++;
	if (now - t->kernels_ns < delay_ns)
		v.alive = v.refused = 0;
	if (verdict == LNX_LIVENESS_LOOK)
		verdict = lnx_silence_peer_judge(&t->l, &v, now);
	if (verdict == LNX_LIVENESS_ASK_KERNELS) {
		t->kernels_ns = now;
		t->nasked++;
		lnx_silence_peer_asked(&t->l, now);
	} else if (verdict == LNX_LIVENESS_REFUSED || verdict == LNX_LIVENESS_TIMED_OUT) {
		t->ended_ns = now;
	}
	t->next = no_sooner(lnx_silence_peer_next(&t->l, v.limit_ns, now), now);
}

static void one_peer(void)
{
	struct lnx_liveness_view v = {
		.limit_ns = (1000 + rnd(9000)) * MS,
		.stall_limit_ns = rnd(2) ? (2000 + rnd(20000)) * MS : 0,
		.unasked_limit_ns = rnd(15000) * MS, .npath = 1 + rnd(4),
	};
	uint64_t delay_ns = rnd(3) ? rnd(5) * MS : rnd(400) * MS, now, end;
	struct life every = { .next = 0 }, due = { .next = 0 };

	switch (rnd(4)) {
	case 0:
		v.alive = 1;
		break;
	case 1:
		v.refused = v.npath;
		break;
	case 2:
		v.unknown = rnd(2);
		v.unasked = rnd(2);
		break;
	}
	end = BEGIN + 60000 * MS;
	for (now = BEGIN; now < end && (!every.ended_ns || !due.ended_ns); now += MS) {
		if (!every.ended_ns)
			look_at_life(&every, v, delay_ns, now);
		if (!due.ended_ns && now >= due.next)
			look_at_life(&due, v, delay_ns, now);
	}
	cr_expect(!every.ended_ns == !due.ended_ns, "%lu and %lu", every.ended_ns / MS,
		  due.ended_ns / MS);
	/* An answer is looked for 50 ms after the question, and 150 and 300 later. */
	cr_expect_leq(apart(every.ended_ns, due.ended_ns),
		      v.alive ? (every.ended_ns - BEGIN) / 2 :
		      v.unknown || v.unasked ? LNX_LIVENESS_SILENT_NS + 5 * MS : 2 * MS,
		      "given up after %lu and %lu ms", (every.ended_ns - BEGIN) / MS,
		      (due.ended_ns - BEGIN) / MS);
	cr_expect_geq(due.nasked * 2 + 2, every.nasked);
	cr_expect_leq(due.looks, 10 + 6 * ((now - BEGIN) / (500 * MS)));
}

Test(next_look, peer)
{
	unsigned i;

	seed();
	for (i = 0; i < 60; i++)
		one_peer();
}

/* ---- frames ---- */

struct frames {
	struct lnx_loss l;
	struct lnx_chan c;
	uint64_t next;
	unsigned looks;
	uint64_t todo_ns[64];		/* when something was to be done */
	unsigned n;
};

static void look_at_frames(struct frames *t, uint64_t rto_ns, uint64_t now)
{
	enum lnx_loss_todo todo = lnx_loss_look(&t->l, &t->c, rto_ns, now);

	t->looks++;
	if ((todo == LNX_LOSS_ASK || todo == LNX_LOSS_INSIST) && t->n < 64)
		t->todo_ns[t->n++] = now;
	t->next = no_sooner(lnx_loss_next(&t->l, now), now);
}

static void one_loss(void)
{
	uint64_t rto_ns = (50 + rnd(450)) * MS, lost = BEGIN + rnd(1000) * MS, now;
	struct frames every = { .n = 0 }, due = { .n = 0 };
	unsigned i, before = 0;

	/* Frames that only count. */
	every.c.next = due.c.next = every.c.posted = due.c.posted = 1u << 20;
	every.c.flags = due.c.flags = rnd(4) ? 0 : LNX_CHAN_NO_ACK_YET;
	for (now = BEGIN; now < lost + 30000 * MS; now += MS) {
		if (now < lost && rnd(8) == 0) {
			every.c.una++;
			due.c.una++;
		} else if (now == lost) {
			every.n = due.n = 0;
			before = due.looks;
		}
		look_at_frames(&every, rto_ns, now);
		if (now >= due.next)
			look_at_frames(&due, rto_ns, now);
	}
	/* The last one may be still to come. */
	cr_expect(every.n == due.n || every.n == due.n + 1, "%u and %u timeouts", every.n,
		  due.n);
	for (i = 0; i < every.n && i < due.n; i++)
		cr_expect_leq(apart(every.todo_ns[i], due.todo_ns[i]),
			      LNX_LOOK_ONE_NS + (i + 1) * 2 * MS, "%u: after %lu and %lu ms", i,
			      (every.todo_ns[i] - lost) / MS, (due.todo_ns[i] - lost) / MS);
	cr_expect_leq(due.looks - before, 20 + due.n, "%u looks", due.looks - before);
}

Test(next_look, frames)
{
	unsigned i;

	seed();
	for (i = 0; i < 50; i++)
		one_loss();
}
