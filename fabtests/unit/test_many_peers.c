/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ten thousand peers that wait, or that nothing is due from: what a pass costs must not
 * depend on them.  Counted are steps, looks at peers, and not time.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/interval.h"
#include "comp/comp.h"
#include "fail_world.h"
#include "view.h"

#define N		10000u
#define PASS_NS		(100 * LNX_NS_PER_US)
#define LOOKS_PER_PASS	64u
#define CONNECTS_PER_PASS 4u

/* Over both kinds of rail. */
#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(many_peers_plain, name, .timeout = 300) { name(LNX_RAIL_PLAIN); } \
	Test(many_peers_peer, name, .timeout = 300) { name(LNX_RAIL_PEER); } \
	static void name(enum lnx_rail_kind kind)

static struct fake_peer peer[N];
static unsigned nlooks, nretries;
/* The largest numbers of one pass. */
static unsigned most_looks, most_retries, most_refused;

static peer_timer *look, *retry;

static void count_look(struct lnx_timer *t, uint64_t now)
{
	nlooks++;
	look(t, now);
}

static void count_retry(struct lnx_timer *t, uint64_t now)
{
	nretries++;
	retry(t, now);
}

static void open_many(enum lnx_rail_kind kind, unsigned nrails)
{
	struct fake_opt opt = { .nrail = nrails };
	unsigned i;

	for (i = 0; i < nrails; i++)
		opt.kind[i] = kind;
	/* No kernel tells that a peer lives, nor that it does not. */
	kernel_unknown = true;
	fake_conf.transaction_timeout = 5000;
	fake_open(&f, &opt);
	look = count_look;
	retry = count_retry;
	force_peer_timers(f.lnx, &look, &retry);
	for (i = 0; i < N; i++) {
		fake_peer_init(&f, &peer[i], 100 + i);
		fake_peer_insert(&f, &peer[i]);
	}
}

static unsigned nrefused(void)
{
	unsigned i, n = 0;

	for (i = 0; i < f.rails.nrail; i++)
		n += f.core[i]->nrefused;
	return n;
}

/* Passes for so long; what leaves arrives nowhere. */
static void pass_ms(unsigned ms)
{
	uint64_t end = fake_now_ns + ms * LNX_NS_PER_MS;
	struct fake_sent *s;
	unsigned i;

	while (fake_now_ns < end) {
		unsigned looks = nlooks, retries = nretries, before = nrefused();

		fake_now_ns += PASS_NS;
		fake_pass(&f);
		most_looks = LNX_MAX(most_looks, nlooks - looks);
		most_retries = LNX_MAX(most_retries, nretries - retries);
		most_refused = LNX_MAX(most_refused, nrefused() - before);
		for (i = 0; i < f.rails.nrail; i++)
			while ((s = fake_take(f.core[i])))
				free(s);
	}
}

static void send_all(void)
{
	static char text[8] = "waiting";
	unsigned i;

	for (i = 0; i < N; i++)
		cr_assert_eq(fi_tsend(f.ep, text, sizeof(text), NULL, peer[i].addr, 1,
				      NULL), 0);
}

/* Each acknowledges what was sent to it. */
static void ack_all(void)
{
	unsigned i;

	for (i = 0; i < N; i++) {
		peer[i].got = view_posted(lnx_peer_by_eid(f.lnx, peer[i].eid));
		cr_assert_gt(peer[i].got, 0u);
		fake_ack(&f, &peer[i]);
	}
	while (f.core[0]->in)
		pass_ms(1);
}

/* They say hello, and have ours. */
static void meet_all(void)
{
	unsigned i;

	for (i = 0; i < N; i++)
		fake_hello(&f, &peer[i]);
	while (f.core[0]->in)
		pass_ms(1);
	pass_ms(10);
	ack_all();
	/* The last of them are looked at, and new sockets. */
	pass_ms(3000);
}

/* But for a look at what is posted, if the rails are plain, and at sockets, once in a second. */
static void expect_nothing_due(void)
{
	unsigned before = nlooks;

	cr_expect_eq(view_due(f.lnx), LNX_MIN(view_posted_look(f.lnx),
					      view_own_due(f.lnx, LNX_DUE_SWEEP)));
	cr_expect_gt(view_due(f.lnx), fake_now_ns + LNX_POSTED_LOOK_NS);
	cr_expect_not(view_work(f.lnx, ~0u), "a pass would pay for it");
	pass_ms(1000);
	cr_expect_eq(nlooks, before);
}

static unsigned unacked(void)
{
	unsigned i, n = 0;

	for (i = 0; i < N; i++) {
		const struct lnx_peer *q = lnx_peer_by_eid(f.lnx, peer[i].eid);

		n += !view_all_acked(q);
		cr_assert(lnx_peer_open(q));
	}
	return n;
}

/* All of them wait for so long; each is looked at no more often than that. */
static void wait_s(unsigned seconds, unsigned looks)
{
	unsigned before = nlooks;

	most_looks = 0;
	pass_ms(seconds * 1000);
	cr_expect_eq(unacked(), N);
	cr_expect_leq(most_looks, LOOKS_PER_PASS);
	cr_expect_geq(nlooks - before, N * seconds, "each is looked at");
	cr_expect_leq(nlooks - before, N * looks, "%u looks at each in %u s",
		      (nlooks - before) / N, seconds);
}

static void wait_for_acks(enum lnx_rail_kind kind, unsigned nrails, unsigned at_first,
			  unsigned later)
{
	open_many(kind, nrails);
	meet_all();
	expect_nothing_due();
	send_all();
	wait_s(2, at_first);
	pass_ms(10000);
	wait_s(2, later);
	/* All is acknowledged: soon there is nothing to do. */
	ack_all();
	pass_ms(3000);
	cr_expect_eq(unacked(), 0u);
	expect_nothing_due();
	fake_close_quick(&f);
}

BOTH(one_path) { wait_for_acks(kind, 1, 30, 12); }
BOTH(two_paths) { wait_for_acks(kind, 2, 50, 24); }

/* They have never said anything. */
BOTH(never_there)
{
	open_many(kind, 2);
	send_all();
	wait_s(2, 100);
	fake_close_quick(&f);
}

/* Cores that take nothing: a few peers are tried in each pass, in turn; and each one more
 * and more rarely, at last once a second. */
BOTH(refused)
{
	unsigned i, ms, before;

	fake_conf.connect_timeout = 60000;
	open_many(kind, 1);
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	send_all();
	most_looks = most_retries = most_refused = 0;
	before = nrefused();
	pass_ms(2000);
	cr_expect_leq(nrefused() - before, CONNECTS_PER_PASS * (2000 * LNX_NS_PER_MS / PASS_NS));
	cr_expect_leq(most_retries, LOOKS_PER_PASS);
	cr_expect_leq(most_looks, LOOKS_PER_PASS);
	cr_expect_leq(most_refused, CONNECTS_PER_PASS);
	before = nrefused();
	cr_expect_gt(before, N, "each was tried again");
	pass_ms(18000);
	before = nrefused();
	pass_ms(4000);
	cr_expect_leq(nrefused() - before, 4 * N * 3 / 2);
	cr_expect_geq(nrefused() - before, 4 * N / 2);
	/* They were not looked at: that is not their fault. */
	fake_now_ns += 2 * fake_conf.connect_timeout * LNX_NS_PER_MS;
	pass_ms(100);
	cr_expect_eq(f.lnx->stats.failed, 0u);
	/* They are there. */
	f.core[0]->send_again = f.core[0]->inject_again = 0;
	for (ms = 0; ms < 20000; ms += 100) {
		pass_ms(100);
		for (i = 0; i < N; i++)
			if (view_queued(lnx_peer_by_eid(f.lnx, peer[i].eid)))
				break;
		if (i == N)
			break;
	}
	cr_expect_eq(i, N, "frames to %u wait still", i);
	cr_expect_eq(f.lnx->stats.failed, 0u);
	fake_close_quick(&f);
}

/* The same for what is no message: acknowledgements that are due to all of them. */
BOTH(refused_acks)
{
	unsigned i, before;

	open_many(kind, 1);
	meet_all();
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < N; i++)
		fake_tag(&f, &peer[i], 1, "x", 1);
	while (f.core[0]->in)
		pass_ms(1);
	/* Each has been refused once: from now on these are tries to connect. */
	most_refused = 0;
	before = nrefused();
	pass_ms(500);
	cr_expect_gt(nrefused(), before, "they are tried again");
	cr_expect_leq(most_refused, CONNECTS_PER_PASS);
	fake_close_quick(&f);
}

#define TRY_NS		(50 * LNX_NS_PER_US)

/* The same, and each try takes time: most of it is left for other work.  No peer is looked
 * at in vain. */
BOTH(refused_slowly)
{
	unsigned before, tries;
	uint64_t start_ns;

	open_many(kind, 1);
	f.core[0]->send_again = f.core[0]->inject_again = FAKE_ALWAYS;
	send_all();
	f.core[0]->refuse_ns = TRY_NS;
	start_ns = fake_now_ns;
	before = nrefused();
	nretries = most_retries = 0;
	pass_ms(4000);
	tries = nrefused() - before;
	cr_expect_leq(tries * TRY_NS, (fake_now_ns - start_ns) / 12);
	cr_expect_geq(tries * TRY_NS, (fake_now_ns - start_ns) / 24, "the time is used");
	cr_expect_leq(most_retries, LOOKS_PER_PASS);
	cr_expect_leq(nretries, tries + N, "%u looks for %u tries", nretries, tries);
	cr_expect_eq(f.lnx->stats.failed, 0u);
	fake_close_quick(&f);
}
