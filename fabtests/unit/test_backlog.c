/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of messages without a receive, and what peers may send (policy/backlog.c): single
 * steps; and senders at random, with acknowledgements that are late, lost and overtaken.
 */
#include <criterion/criterion.h>

#include "policy/backlog.h"
#include "seed.h"

#define FRAME		16384u
#define WINDOW		8u
#define FRAMES(n)	((uint64_t)(n) * FRAME)

static struct lnx_backlog sum;
static struct lnx_allowance a;

/* May the message begin in the frame with that number, if each frame before it is one? */
static bool allows(const struct lnx_allowance *w, uint32_t seq)
{
	return !lnx_backlog_allowance_throttles(w) || lnx_backlog_allowance_left(w, seq);
}

/* A look at a peer whose messages are all as long as a frame. */
static bool look(struct lnx_allowance *w, uint64_t used, uint32_t next, bool wanted)
{
	struct lnx_backlog_use use = { .bytes = used, .n = (uint32_t)(used / FRAME) };

	return lnx_backlog_look(&sum, w, &use, next, wanted);
}

static void limit_of(uint64_t frames)
{
	sum = (struct lnx_backlog) {
		.limit = FRAMES(frames), .reserve = FRAMES(WINDOW), .window = WINDOW,
	};
	a = (struct lnx_allowance) { 0 };
}

Test(backlog, none_is_throttled_while_there_is_room)
{
	limit_of(100);
	sum.used = FRAMES(50);
	cr_expect(!lnx_backlog_near(&sum, FRAMES(50)));
	cr_expect(!look(&a, FRAMES(50), 50, false));
	cr_expect(!lnx_backlog_allowance_throttles(&a));
	cr_expect_eq(a.change, 0u);
}

Test(backlog, a_peer_alone_uses_nearly_all)
{
	uint32_t seq;

	limit_of(100);
	for (seq = 0; allows(&a, seq); seq++) {
		sum.used += FRAME;
		look(&a, sum.used, seq + 1, false);
		cr_assert_lt(seq, 100u);
	}
	cr_expect_geq(seq, 80u, "%u of 100 frames", seq);
	cr_expect_leq(sum.used, sum.limit);
	cr_expect(lnx_backlog_allowance_throttles(&a));
}

/* All send as much as they may: all get the same, and what they are allowed together fits. */
Test(backlog, peers_get_equal_shares)
{
	struct lnx_allowance each[10] = { 0 };
	uint64_t used[10] = { 0 };
	uint32_t seq, i;

	limit_of(1000);
	for (seq = 0; seq < 1000; seq++)
		for (i = 0; i < 10; i++)
			if (allows(&each[i], (uint32_t)(used[i] / FRAME))) {
				used[i] += FRAME;
				sum.used += FRAME;
				look(&each[i], used[i],
						 (uint32_t)(used[i] / FRAME), false);
			}
	for (i = 0; i < 10; i++) {
		cr_expect_geq(used[i], FRAMES(90), "peer %u: %lu", i, used[i] / FRAME);
		cr_expect_leq(used[i], FRAMES(110), "peer %u: %lu", i, used[i] / FRAME);
	}
	/* And one message of each that shows that the limit is near. */
	cr_expect_leq(sum.used, sum.limit + FRAMES(10));
	cr_expect_eq(sum.n_throttled, 10u);
	for (i = 0; i < 10; i++)
		lnx_backlog_end(&sum, &each[i]);
	cr_expect_eq(sum.n_throttled, 0u);
	cr_expect_eq(sum.allowed, 0u);
}

Test(backlog, a_peer_with_nothing_may_send_one)
{
	limit_of(2);
	sum.used = FRAMES(2);
	cr_expect(look(&a, 0, 7, false));
	cr_expect(allows(&a, 7));
	cr_expect(!allows(&a, 8));
	sum.used += 1;
	cr_expect(!look(&a, 1, 8, false));
	cr_expect(!allows(&a, 8));
}

/* Throttled, with nothing left, at that number. */
static void spend(uint64_t used, uint32_t next)
{
	sum.used = FRAMES(100);
	cr_assert(look(&a, used, next, false));
	cr_assert(lnx_backlog_allowance_throttles(&a));
	cr_assert(!allows(&a, next));
}

Test(backlog, gives_way_by_one_frame_to_what_is_wanted)
{
	unsigned i;

	limit_of(100);
	spend(FRAMES(90), 90);
	cr_expect(!look(&a, FRAMES(90), 90, false));
	for (i = 0; i < 20; i++) {
		cr_expect(look(&a, FRAMES(90 + i), 90 + i, true));
		cr_expect(allows(&a, 90 + i));
		cr_expect(!allows(&a, 91 + i));
		/* Until that has come there is no more. */
		cr_expect(!look(&a, FRAMES(90 + i), 90 + i, true));
		sum.used += FRAME;
	}
}

Test(backlog, gives_way_faster_to_what_finds_its_receive)
{
	uint32_t next = 90, told = 0;

	limit_of(100);
	spend(FRAMES(90), next);
	while (next < 90 + 40 * WINDOW) {
		told += look(&a, FRAMES(90), next, true);
		cr_assert(allows(&a, next));
		next++;
	}
	cr_expect_eq(a.step, WINDOW);
	cr_expect_leq(told, 3u + 2 * 40, "told %u times", told);
	/* One is stored: slowly again. */
	while (allows(&a, next))
		next++;
	cr_expect(look(&a, FRAMES(90) + 1, next, true));
	cr_expect(!allows(&a, next + 1));
}

/* As many short ones as are as long as one. */
Test(backlog, gives_way_by_several_short_messages)
{
	struct lnx_backlog_use use = { .bytes = FRAMES(90), .n = FRAMES(90) / 1024 };

	limit_of(100);
	spend(FRAMES(90), 90);
	cr_expect(lnx_backlog_look(&sum, &a, &use, 90, true));
	cr_expect_eq(a.n, LNX_BACKLOG_STEP / 1024);
	use.bytes += 4096;
	use.n += 4;
	cr_expect(!lnx_backlog_look(&sum, &a, &use, 91, true));
	cr_expect(lnx_backlog_look(&sum, &a, &use, 94, true));
	cr_expect_eq(a.n, LNX_BACKLOG_STEP / 1024);
}

Test(backlog, what_is_received_allows_more)
{
	limit_of(100);
	spend(FRAMES(100), 100);
	sum.used -= FRAMES(4);
	cr_expect(look(&a, FRAMES(20), 100, false));
	cr_expect(allows(&a, 103));
	cr_expect(!allows(&a, 104));
	/* Not for each message. */
	sum.used -= FRAMES(1);
	cr_expect(!look(&a, FRAMES(19), 100, false));
	sum.used = FRAMES(10);
	cr_expect(look(&a, FRAMES(10), 104, false));
	cr_expect(!lnx_backlog_allowance_throttles(&a));
	cr_expect(allows(&a, 1000000));
}

Test(backlog, of_two_changes_the_later_counts)
{
	struct lnx_allowed peer = { 0 };

	cr_expect(lnx_backlog_allowed_begin(&peer));
	cr_expect(!lnx_backlog_allowed_news(&peer, 0));
	cr_expect(lnx_backlog_allowed_news(&peer, 3));
	lnx_backlog_allowed_learn(&peer, 3, 5, 3);
	cr_expect(!lnx_backlog_allowed_news(&peer, 3));
	cr_expect(!lnx_backlog_allowed_news(&peer, 1));
	cr_expect(!lnx_backlog_allowed_news(&peer, 2));
	cr_expect(lnx_backlog_allowed_begin(&peer));
	cr_expect(lnx_backlog_allowed_begin(&peer));
	cr_expect(!lnx_backlog_allowed_begin(&peer), "three had left, and two have begun");
	lnx_backlog_allowed_learn(&peer, 5, 2, 3);
	cr_expect(!lnx_backlog_allowed_begin(&peer), "more have left than are allowed");
	lnx_backlog_allowed_learn(&peer, 6, 0, 3);
	cr_expect(lnx_backlog_allowed_begin(&peer));
	/* Numbers wrap. */
	peer.change = UINT32_MAX - 1;
	cr_expect(lnx_backlog_allowed_news(&peer, UINT32_MAX));
	cr_expect(lnx_backlog_allowed_news(&peer, 1));
	cr_expect(!lnx_backlog_allowed_news(&peer, UINT32_MAX - 3));
}

/* Frames that are no messages may come in any number: what is allowed is not lost. */
Test(backlog, other_frames_take_nothing)
{
	struct lnx_allowed peer = { 0 };
	uint32_t next = 90, told = 0;

	limit_of(100);
	spend(FRAMES(90), next);
	/* 50 accesses to memory are always under way. */
	for (; next < 1000; next += 50)
		if (look(&a, FRAMES(90), next, true)) {
			told++;
			lnx_backlog_allowed_learn(&peer, a.change,
						  lnx_backlog_allowance_left(&a, next), 0);
			cr_expect(lnx_backlog_allowed_begin(&peer));
		}
	cr_expect_gt(told, 10u);
}

Test(backlog, no_limit)
{
	limit_of(0);
	sum.limit = LNX_BACKLOG_NONE;
	sum.used = (uint64_t)1 << 50;
	cr_expect(!lnx_backlog_near(&sum, sum.used));
	cr_expect(!look(&a, sum.used, 5, false));
}

/* ---- at random ---- */

#define PEERS		6
#define MESSAGES	400

struct sender {
	struct lnx_allowance told;	/* as we have told it */
	struct lnx_allowed ours;	/* as it knows */
	/* Acknowledgements under way: any may come next. */
	struct { uint32_t change, n, ack; } way[3];
	uint32_t sent, came;		/* [came, sent) are under way */
	uint32_t acked;			/* as it knows */
	uint32_t stored, received;	/* all that came are the one or the other */
	uint32_t want;			/* a receive waits for that one; MESSAGES: none does */
	uint64_t used;
	bool took[MESSAGES];
};

static struct sender peer[PEERS];

static void store(struct sender *s, int n)
{
	s->used += (uint64_t)n * FRAME;
	sum.used += (uint64_t)n * FRAME;
}

static void tell(struct sender *s)
{
	unsigned i = (unsigned)rnd(3);

	s->way[i].change = s->told.change;
	s->way[i].n = lnx_backlog_allowance_left(&s->told, s->came);
	s->way[i].ack = s->came;
}

static void arrives(struct sender *s)
{
	if (s->came == s->sent)
		return;
	if (s->came == s->want) {
		s->took[s->came] = true;
		s->want = MESSAGES;
		s->received++;
	} else {
		store(s, 1);
		s->stored++;
	}
	s->came++;
	if (look(&s->told, s->used, s->came, s->want < MESSAGES) ||
	    !rnd(3))
		tell(s);
}

/* A receive for any message that was not received yet, stored or not. */
static void receives(struct sender *s)
{
	uint32_t i, n = (uint32_t)rnd(MESSAGES);

	if (s->want < MESSAGES)
		return;
	for (i = 0; i < MESSAGES && s->took[(n + i) % MESSAGES]; i++)
		;
	if (i == MESSAGES)
		return;
	n = (n + i) % MESSAGES;
	if (n >= s->came) {
		s->want = n;
		return;
	}
	s->took[n] = true;
	s->received++;
	s->stored--;
	store(s, -1);
}

static void step(struct sender *s, bool receive)
{
	unsigned i;

	switch (rnd(receive ? 5 : 4)) {
	case 0:
		if (s->sent < MESSAGES && s->sent - s->acked < WINDOW &&
		    lnx_backlog_allowed_begin(&s->ours))
			s->sent++;
		break;
	case 1:
		arrives(s);
		break;
	case 2:
		i = (unsigned)rnd(3);
		s->acked = LNX_MAX(s->acked, s->way[i].ack);
		if (lnx_backlog_allowed_news(&s->ours, s->way[i].change))
			lnx_backlog_allowed_learn(&s->ours, s->way[i].change, s->way[i].n,
						  s->sent - s->way[i].ack);
		break;
	case 3:
		if (lnx_backlog_allowance_throttles(&s->told) &&
		    look(&s->told, s->used, s->came, s->want < MESSAGES))
			tell(s);
		else if (!rnd(20))
			tell(s);	/* it asks */
		break;
	default:
		receives(s);
	}
}

/*
 * While nothing is received, what is stored stays below the limit, but for a window of each
 * peer.  And when receives come, in any order, all messages do.
 */
Test(backlog, storms_of_all_sides_end)
{
	unsigned round, i, k;

	rnd_begin();
	for (round = 0; round < 200; round++) {
		uint64_t limit = 1 + rnd(200), left = 1;

		limit_of(limit);
		memset(peer, 0, sizeof(peer));
		for (i = 0; i < PEERS; i++)
			peer[i].want = MESSAGES;
		for (k = 0; k < 20000; k++)
			step(&peer[rnd(PEERS)], false);
		cr_assert_leq(sum.used, sum.limit + FRAMES(PEERS * (WINDOW + 1)),
			      "round %u: limit %lu, %lu are stored", round, limit,
			      sum.used / FRAME);
		for (k = 0; k < 4000000 && left; k++) {
			step(&peer[rnd(PEERS)], true);
			if (k % 1000)
				continue;
			for (i = 0, left = 0; i < PEERS; i++)
				left += MESSAGES - peer[i].received;
		}
		cr_assert_eq(left, 0u, "round %u: limit %lu, %lu messages do not come", round,
			     limit, left);
		cr_assert_eq(sum.used, 0u);
	}
}
