/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ends of the reliable channel (rel/chan.c) and a network that loses, repeats and
 * swaps what they send, compared with a model: what arrives is what was sent, once, in
 * order; nothing is acknowledged that did not arrive; each frame ends exactly once, also
 * when an end gives up or is started anew.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "rel/chan.h"

#define PATHS		3u
#define NET_MAX		300u		/* packets under way */
#define SENDS_MAX	120u		/* frames of one end, with those that wait */

/* A frame, as the owner of a channel has it. */
struct tf {
	struct lnx_frame f;
	uint64_t id;			/* what it carries; 0: this one is free */
};

struct packet {
	unsigned to;
	uint64_t session;
	bool data;
	uint32_t seq, ack;
	uint64_t id;
};

struct end {
	struct lnx_chan c;
	uint64_t session;
	struct tf tf[SENDS_MAX];
	uint64_t sent;			/* ids given to frames in this session */
	uint64_t ended;			/* of these, frames that were acknowledged */
	uint64_t delivered;		/* ids that came, in order */
	uint64_t nfailed, nacked, nsent; /* frames, in all sessions */
};

/* What came out of a run. */
struct tally {
	unsigned long events, delivered, lost, repeated, early, old, again, probes, forged,
		refused, sessions, grown;
};

static struct end end[2];
static struct packet net[NET_MAX];
static unsigned nnet;
static struct tally t;
static unsigned long seed;
static unsigned loss;			/* per cent */

static unsigned rnd(unsigned n)
{
	return (unsigned)(lrand48() % (long)n);
}

static void set_seed(void)
{
	const char *given = getenv("LNX_SEED");

	seed = given ? strtoul(given, NULL, 0) : (unsigned long)time(NULL);
	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", seed, seed);
	srand48((long)seed);
}

#define CHECK(what) cr_assert(what, "seed %lu, event %lu", seed, t.events)

static struct tf *tf_of(struct lnx_frame *f)
{
	return lnx_container_of(f, struct tf, f);
}

/* ---- the network ---- */

static void into_net(const struct packet *p)
{
	if (rnd(100) < loss || nnet == NET_MAX) {
		t.lost++;
		return;
	}
	net[nnet++] = *p;
	if (rnd(100) < 5 && nnet < NET_MAX) {
		net[nnet++] = *p;
		t.repeated++;
	}
}

static void emit(struct end *e, const struct tf *tf)
{
	struct packet p = {
		.to = e == &end[0], .session = e->session, .data = true,
		.seq = tf->f.seq, .ack = e->c.rx.next, .id = tf->id,
	};

	into_net(&p);
	lnx_chan_ack_sent(&e->c);
}

static void emit_ack(struct end *e)
{
	struct packet p = { .to = e == &end[0], .session = e->session,
			    .ack = e->c.rx.next };

	into_net(&p);
	lnx_chan_ack_sent(&e->c);
}

/* ---- what the owner of a channel does ---- */

/* Neither the channel nor the core has it any more. */
static void tf_ended(struct tf *tf)
{
	CHECK(tf->id != 0);
	tf->id = 0;
}

static void tf_acked(struct end *e, struct tf *tf)
{
	struct end *other = e == &end[0] ? &end[1] : &end[0];

	/* In order, and not before it arrived. */
	CHECK(tf->id == ++e->ended);
	CHECK(other->session != e->session || other->delivered >= tf->id);
	e->nacked++;
	tf->f.acked = true;
	if (!tf->f.in_core)
		tf_ended(tf);
}

static void take_ack(struct end *e, uint32_t ack)
{
	struct lnx_frame *f;
	uint32_t n;

	if (ack == e->c.una)
		return;
	f = lnx_chan_ack_one(&e->c, ack);
	if (f) {
		CHECK(!f->in_core);
		tf_acked(e, tf_of(f));
		return;
	}
	n = lnx_chan_ackable(&e->c, ack);
	if (!n)
		return;
	while (n--) {
		f = lnx_chan_pop_una(&e->c);
		CHECK(f != NULL);
		e->c.una_bytes -= f->len;
		tf_acked(e, tf_of(f));
	}
	lnx_chan_after_ack(&e->c);
}

static void post(struct end *e, struct tf *tf)
{
	tf->f.path = (uint8_t)rnd(PATHS);
	tf->f.in_core = rnd(4) == 0;
	emit(e, tf);
}

static void pump(struct end *e)
{
	enum lnx_chan_what what;
	struct lnx_frame *f;
	unsigned max = rnd(40);

	while (max-- && (f = lnx_chan_next_out(&e->c, &what))) {
		uint8_t before = f->path;

		CHECK(what == LNX_CHAN_OUT_NEW || !f->in_core);
		CHECK(what != LNX_CHAN_OUT_AGAIN || f->seq == e->c.retx_next);
		t.again += what == LNX_CHAN_OUT_AGAIN;
		t.probes += what == LNX_CHAN_OUT_PROBE;
		post(e, tf_of(f));
		lnx_chan_out(&e->c, what, f->seq, before);
		if (what == LNX_CHAN_OUT_NEW)
			lnx_chan_posted(&e->c, f, f->len);
	}
}

static struct tf *tf_get(struct end *e)
{
	unsigned i, at = rnd(SENDS_MAX);

	for (i = 0; i < SENDS_MAX; i++) {
		struct tf *tf = &e->tf[(at + i) % SENDS_MAX];

		if (!tf->id)
			return tf;
	}
	return NULL;
}

static void send_one(struct end *e)
{
	struct tf *tf = tf_get(e);
	uint32_t mask = e->c.mask;

	if (!tf)
		return;
	memset(tf, 0, sizeof(*tf));
	lnx_list_init(&tf->f.link);
	tf->f.len = 1 + rnd(1000);
	lnx_chan_number(&e->c, &tf->f);
	if (rnd(50) == 0) {
		/* The core did not take it, and it may not wait. */
		CHECK(lnx_chan_unnumber(&e->c, &tf->f));
		t.refused++;
		return;
	}
	tf->id = ++e->sent;
	e->nsent++;
	if ((e->c.flags & (LNX_CHAN_QUEUED | LNX_CHAN_RETRANSMIT)) ||
	    !lnx_chan_window_open(&e->c)) {
		lnx_chan_queue(&e->c, &tf->f, false);
	} else if (rnd(30) == 0) {
		lnx_chan_queue(&e->c, &tf->f, true);
	} else {
		post(e, tf);
		lnx_chan_posted(&e->c, &tf->f, tf->f.len);
	}
	t.grown += e->c.mask != mask;
}

static void core_done(struct end *e)
{
	struct tf *tf = &e->tf[rnd(SENDS_MAX)];

	if (!tf->id || !tf->f.in_core)
		return;
	tf->f.in_core = false;
	if (tf->f.acked)
		tf_ended(tf);
}

static void deliver(struct end *e, uint64_t id)
{
	CHECK(id == e->delivered + 1);
	e->delivered = id;
	t.delivered++;
}

static void arrive(struct packet p)
{
	struct end *e = &end[p.to];
	void *early;

	if (p.session != e->session)
		return;			/* refused: rel/session.c */
	take_ack(e, p.ack);
	if (!p.data)
		return;
	switch (lnx_seq_judge(&e->c.rx, p.seq)) {
	case LNX_SEQ_NEXT:
		deliver(e, p.id);
		lnx_seq_advance(&e->c.rx);
		while ((early = lnx_seq_pop(&e->c.rx))) {
			deliver(e, (uint64_t)(uintptr_t)early);
			lnx_seq_advance(&e->c.rx);
			lnx_chan_owe_ack(&e->c);
		}
		break;
	case LNX_SEQ_AHEAD:
		t.early++;
		lnx_seq_ooo_add(&e->c.rx, p.seq, (void *)(uintptr_t)p.id);
		break;
	case LNX_SEQ_OLD:
		CHECK(p.id <= e->delivered);
		t.old++;
		break;
	case LNX_SEQ_FAR:
		CHECK(!"beyond the window");
	}
	lnx_chan_owe_ack(&e->c);
}

/* ---- sessions ---- */

static void start(struct end *e, uint64_t session, uint32_t window, uint32_t tx,
		  uint32_t rx)
{
	lnx_chan_init(&e->c);
	cr_assert_eq(lnx_chan_open(&e->c, window), 0);
	e->c.next = e->c.posted = e->c.una = tx;
	e->c.rx.next = rx;
	e->session = session;
	e->sent = e->ended = e->delivered = 0;
}

/* Everything fails, once. */
static void stop(struct end *e)
{
	struct lnx_frame *f;
	unsigned i;

	while (!lnx_chan_idle(&e->c)) {
		f = lnx_chan_pop_una(&e->c);
		CHECK(f != NULL && tf_of(f)->id == ++e->ended);
		e->nfailed++;
	}
	while ((f = lnx_chan_unqueue(&e->c))) {
		CHECK(tf_of(f)->id == ++e->ended);
		e->nfailed++;
	}
	CHECK(e->ended == e->sent);
	lnx_chan_end(&e->c);
	CHECK(!lnx_chan_next_out(&e->c, &(enum lnx_chan_what){ 0 }));
	while (lnx_seq_drain(&e->c.rx))
		;
	lnx_chan_fini(&e->c);
	for (i = 0; i < SENDS_MAX; i++)
		e->tf[i].id = 0;
	e->session = 0;
}

static void begin(void)
{
	static uint64_t session;
	/* Also across the end of the numbers. */
	uint32_t a = rnd(2) ? 0 : 0u - rnd(200), b = rnd(2) ? 0 : 0u - rnd(200);
	uint32_t window = 1u << rnd(8);

	session++;
	start(&end[0], session, window, a, b);
	start(&end[1], session, window, b, a);
	t.sessions++;
}

/* e, whose peer has ended the session, hears it. */
static void both_begin(struct end *e)
{
	stop(e);
	begin();
}

/* ---- events ---- */

static void check(struct end *e)
{
	uint32_t seq, in = e->c.posted - e->c.una;
	uint64_t bytes = 0;

	CHECK(in <= e->c.window);
	CHECK(e->c.next - e->c.posted == e->c.nqueued);
	CHECK(!e->c.nqueued == !(e->c.flags & LNX_CHAN_QUEUED));
	for (seq = e->c.una; seq != e->c.posted; seq++) {
		struct lnx_frame *f = *lnx_chan_slot(&e->c, seq);

		CHECK(f && f->seq == seq && !f->acked);
		bytes += f->len;
	}
	CHECK(bytes == e->c.una_bytes);
}

static void event(void)
{
	struct end *e = &end[rnd(2)], *other = e == &end[0] ? &end[1] : &end[0];
	unsigned i, what = rnd(1000);

	t.events++;
	if (!e->session) {
		/* The other sends on, until it hears of the end. */
		if (rnd(20) == 0)
			both_begin(other);
		return;
	}
	if (what < 300) {
		send_one(e);
	} else if (what < 750) {
		if (nnet) {
			struct packet p;

			/* Mostly the oldest ones. */
			i = rnd(rnd(3) ? LNX_MIN(nnet, 4u) : nnet);
			p = net[i];
			memmove(&net[i], &net[i + 1], (--nnet - i) * sizeof(p));
			arrive(p);
		}
	} else if (what < 850) {
		pump(e);
	} else if (what < 900) {
		core_done(e);
	} else if (what < 950) {
		if (e->c.acks_pending)
			emit_ack(e);
	} else if (what < 970) {
		if (!lnx_chan_idle(&e->c))
			lnx_chan_probe(&e->c);
	} else if (what < 985) {
		lnx_chan_retransmit(&e->c, 1u << rnd(PATHS));
	} else if (what < 999) {
		/* Of frames that were never posted, or long acknowledged. */
		uint32_t bad = rnd(2) ? e->c.posted + 1 + rnd(1u << 30) :
				        e->c.una - 1 - rnd(1u << 30);

		CHECK(!lnx_chan_ackable(&e->c, bad));
		CHECK(!lnx_chan_ack_one(&e->c, bad) || bad == e->c.una);
		t.forged++;
	} else if (other->session) {
		/* It gives up, or is started anew. */
		stop(e);
		return;
	}
	check(e);
}

/* The network loses nothing any more: all that was sent arrives. */
static void settle(void)
{
	unsigned i, k;

	for (k = 0; k < 2; k++)
		if (!end[k].session)
			both_begin(&end[1 - k]);
	loss = 0;
	for (i = 0; i < 400; i++) {
		while (nnet)
			arrive(net[--nnet]);
		for (k = 0; k < 2; k++) {
			struct end *e = &end[k];
			unsigned n;

			for (n = 0; n < SENDS_MAX; n++)
				if (e->tf[n].id && e->tf[n].f.in_core) {
					e->tf[n].f.in_core = false;
					if (e->tf[n].f.acked)
						tf_ended(&e->tf[n]);
				}
			if (!lnx_chan_idle(&e->c))
				lnx_chan_probe(&e->c);
			pump(e);
			emit_ack(e);
		}
	}
	for (k = 0; k < 2; k++) {
		CHECK(lnx_chan_idle(&end[k].c) && !end[k].c.nqueued);
		CHECK(end[k].ended == end[k].sent);
		CHECK(end[1 - k].delivered == end[k].sent);
		CHECK(end[k].nacked + end[k].nfailed == end[k].nsent);
	}
}

Test(chan, a_million_events)
{
	unsigned long i;

	set_seed();
	begin();
	for (i = 0; i < 1000000; i++) {
		if (i % 1000 == 0)
			loss = rnd(4) ? rnd(30) : 0;
		event();
		if (i % 50000 == 49999)
			settle();
	}
	settle();
	/* It was a bad network. */
	cr_expect_gt(t.delivered, 30000, "seed %lu", seed);
	cr_expect_gt(t.lost, 1000, "seed %lu", seed);
	cr_expect_gt(t.repeated, 1000, "seed %lu", seed);
	cr_expect_gt(t.early, 1000, "seed %lu", seed);
	cr_expect_gt(t.old, 1000, "seed %lu", seed);
	cr_expect_gt(t.again, 1000, "seed %lu", seed);
	cr_expect_gt(t.probes, 1000, "seed %lu", seed);
	cr_expect_gt(t.forged, 1000, "seed %lu", seed);
	cr_expect_gt(t.refused, 100, "seed %lu", seed);
	cr_expect_gt(t.sessions, 100, "seed %lu", seed);
	cr_expect_gt(t.grown, 10, "seed %lu", seed);
	stop(&end[0]);
	stop(&end[1]);
}

/* ---- single steps ---- */

static struct lnx_chan c;
static struct lnx_frame f[8];

static void open_with(uint32_t window)
{
	unsigned i;

	lnx_chan_init(&c);
	cr_assert_eq(lnx_chan_open(&c, window), 0);
	c.flags = 0;
	for (i = 0; i < LNX_ARRAY_SIZE(f); i++) {
		memset(&f[i], 0, sizeof(f[i]));
		lnx_list_init(&f[i].link);
		f[i].len = 10;
	}
}

static void posted(struct lnx_frame *one, uint8_t path)
{
	lnx_chan_number(&c, one);
	one->path = path;
	lnx_chan_posted(&c, one, one->len);
}

static struct lnx_frame *out(enum lnx_chan_what want)
{
	enum lnx_chan_what what;
	struct lnx_frame *one = lnx_chan_next_out(&c, &what);

	if (one) {
		cr_expect_eq(what, want);
		lnx_chan_out(&c, what, one->seq, one->path);
		if (what == LNX_CHAN_OUT_NEW)
			lnx_chan_posted(&c, one, one->len);
	}
	return one;
}

static void acked(uint32_t ack)
{
	uint32_t n = lnx_chan_ackable(&c, ack);

	while (n--)
		lnx_chan_pop_una(&c);
	lnx_chan_after_ack(&c);
}

/* Only what left over that path goes out again, and what the core has does not. */
Test(chan, retransmits_one_path)
{
	open_with(64);
	posted(&f[0], 0);
	posted(&f[1], 1);
	posted(&f[2], 1);
	posted(&f[3], 0);
	f[2].in_core = true;
	lnx_chan_retransmit(&c, 1u << 1);
	cr_expect_eq(out(LNX_CHAN_OUT_AGAIN), &f[1]);
	cr_expect_null(out(LNX_CHAN_OUT_AGAIN));
	cr_expect_eq(c.flags, 0);
	cr_expect(f[1].retransmitted && !f[0].retransmitted);
	lnx_chan_fini(&c);
}

/* A frame that cannot be posted again now is the next one later. */
Test(chan, retransmits_later)
{
	enum lnx_chan_what what;

	open_with(64);
	posted(&f[0], 0);
	posted(&f[1], 0);
	lnx_chan_retransmit(&c, 1u << 0);
	cr_expect_eq(lnx_chan_next_out(&c, &what), &f[0]);
	cr_expect_eq(lnx_chan_next_out(&c, &what), &f[0]);
	/* It is acknowledged meanwhile. */
	acked(1);
	cr_expect_eq(out(LNX_CHAN_OUT_AGAIN), &f[1]);
	cr_expect_null(out(LNX_CHAN_OUT_AGAIN));
	lnx_chan_fini(&c);
}

/* The answer to a probe shows that the rest was lost too. */
Test(chan, probe_first)
{
	open_with(64);
	posted(&f[0], 1);
	posted(&f[1], 1);
	posted(&f[2], 0);
	lnx_chan_probe(&c);
	cr_expect_eq(out(LNX_CHAN_OUT_PROBE), &f[0]);
	cr_expect_null(out(LNX_CHAN_OUT_PROBE));
	acked(1);
	cr_expect_eq(out(LNX_CHAN_OUT_AGAIN), &f[1]);
	cr_expect_null(out(LNX_CHAN_OUT_AGAIN));
	/* Nothing is left to be asked for. */
	acked(3);
	lnx_chan_probe(&c);
	cr_expect_null(out(LNX_CHAN_OUT_PROBE));
	cr_expect_eq(c.flags, 0);
	lnx_chan_fini(&c);
}

/* What waits leaves in order, as far as the window reaches. */
Test(chan, queue_waits_for_the_window)
{
	open_with(2);
	posted(&f[0], 0);
	posted(&f[1], 0);
	cr_expect_not(lnx_chan_window_open(&c));
	lnx_chan_number(&c, &f[2]);
	lnx_chan_queue(&c, &f[2], false);
	lnx_chan_number(&c, &f[3]);
	lnx_chan_queue(&c, &f[3], false);
	cr_expect_null(out(LNX_CHAN_OUT_NEW));
	acked(1);
	cr_expect_eq(out(LNX_CHAN_OUT_NEW), &f[2]);
	cr_expect_null(out(LNX_CHAN_OUT_NEW));
	acked(3);
	cr_expect_eq(out(LNX_CHAN_OUT_NEW), &f[3]);
	cr_expect_eq(c.nqueued, 0);
	cr_expect_eq(c.flags, 0);
	lnx_chan_fini(&c);
}

/* A peer with a few frames in flight costs a few slots, one with many gets them. */
Test(chan, grows_with_the_window)
{
	static struct lnx_frame many[1024];
	unsigned i;

	open_with(1024);
	cr_expect_lt(c.mask, 32);
	c.next = c.posted = c.una = 0u - 500;
	for (i = 0; i < 1024; i++) {
		cr_assert(lnx_chan_window_open(&c));
		lnx_chan_number(&c, &many[i]);
		many[i].len = 1;
		lnx_chan_posted(&c, &many[i], 1);
	}
	cr_expect_not(lnx_chan_window_open(&c));
	for (i = 0; i < 1024; i++)
		cr_assert_eq(lnx_chan_pop_una(&c), &many[i]);
	lnx_chan_fini(&c);
}
