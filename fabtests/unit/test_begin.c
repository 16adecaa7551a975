/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rel/begin: what a HELLO does to a session of ours, by what we know of both.  Above all:
 * never may a session pair with one whose acknowledgements are about another one.  Random
 * lives of two ends are in test_chan_random.c.
 */
#include <criterion/criterion.h>

#include "base/compiler.h"
#include "lnx_wire.h"
#include "rel/begin.h"

/* Our sessions 1, 2, ..., and those of the peer. */
#define THEIRS		0x50

/* One that has sent its HELLO. */
#define OPEN		.sid = 2, .stamp = 200, .open = true, .sent = true

struct row {
	const char *what;
	struct lnx_begin s;
	struct lnx_begin_frame f;
	struct lnx_begin_verdict want;
};

#define HELLO		.begins = true, .src = THEIRS, .stamp = 100
#define REFUSED(reason, with) \
	{ .what = LNX_BEGIN_REFUSE, .why = LNX_REFUSED_ ## reason, .data = with }

static const struct row rows[] = {
	{ "a new one", { .sid = 1, .open = true }, { HELLO }, { .what = LNX_BEGIN_PAIR } },
	{ "both begin at once", { OPEN }, { HELLO }, { .what = LNX_BEGIN_PAIR } },
	{ "it answers", { OPEN }, { HELLO, .names = 2, .acks = true },
	  { .what = LNX_BEGIN_PAIR } },
	{ "it learned of ours on its way", { OPEN }, { HELLO, .acks = true },
	  { .what = LNX_BEGIN_PAIR } },
	{ "it was in one that we have forgotten", { .sid = 1, .open = true },
	  { HELLO, .acks = true }, REFUSED(ENDED, 1) },

	/* Our session before was not heard of again: is the peer in that? */
	{ "in doubt", { OPEN, .unanswered = true }, { HELLO },
	  { .what = LNX_BEGIN_NAME } },
	{ "in doubt, by its acknowledgement", { OPEN, .unanswered = true },
	  { HELLO, .acks = true }, { .what = LNX_BEGIN_NAME } },
	{ "no longer in doubt", { OPEN, .unanswered = true, .named = THEIRS,
				  .rx_stamp = 100 },
	  { HELLO, .names = 2 }, { .what = LNX_BEGIN_PAIR } },
	{ "in doubt still", { OPEN, .unanswered = true, .named = THEIRS, .rx_stamp = 100 },
	  { HELLO }, { .what = LNX_BEGIN_NAME } },
	{ "another than the one that we named, and older",
	  { OPEN, .unanswered = true, .named = THEIRS + 1, .rx_stamp = 150 },
	  { HELLO, .names = 2 }, REFUSED(OLD, 150) },
	{ "it names one of before", { OPEN, .before_sid = THEIRS + 1 },
	  { HELLO, .names = 1 }, { .what = LNX_BEGIN_NAME } },

	/* Ours was given up. */
	{ "given up without an answer", { .sid = 2, .sent = true }, { HELLO },
	  { .what = LNX_BEGIN_NAME, .next = true } },
	{ "given up before it said anything", { .sid = 2 }, { HELLO },
	  { .what = LNX_BEGIN_PAIR, .next = true } },
	{ "it answers what we gave up", { .sid = 2, .sent = true },
	  { HELLO, .names = 2, .acks = true },
	  { .what = LNX_BEGIN_NAME, .next = true } },
	{ "it is in what we gave up", { .sid = 2, .sent = true },
	  { HELLO, .acks = true }, REFUSED(ENDED, 1) },

	/* Ours is with another session of the peer. */
	{ "it begins again", { OPEN, .rx_sid = THEIRS - 1, .rx_stamp = 90 }, { HELLO },
	  { .what = LNX_BEGIN_PAIR, .next = true } },
	{ "it began again, and had our HELLO", { OPEN, .rx_sid = THEIRS - 1, .rx_stamp = 90 },
	  { HELLO, .acks = true }, REFUSED(ENDED, 1) },
	{ "it began again, and answers", { OPEN, .rx_sid = THEIRS - 1, .rx_stamp = 90 },
	  { HELLO, .names = 2, .acks = true },
	  { .what = LNX_BEGIN_NAME, .next = true } },
	{ "late", { OPEN, .rx_sid = THEIRS + 1, .rx_stamp = 110 }, { HELLO },
	  REFUSED(OLD, 110) },
	{ "late, and names ours", { OPEN, .rx_sid = THEIRS + 1, .rx_stamp = 110 },
	  { HELLO, .names = 2 }, REFUSED(OLD, 110) },
	{ "late, of a session that we have ended", { OPEN, .before_sid = THEIRS },
	  { HELLO, .names = 2 }, REFUSED(ENDED, 1) },

	/* No HELLO. */
	{ "behind its HELLO", { OPEN }, { .acks = true }, REFUSED(ENDED, 0) },
	{ "of none", { OPEN, .rx_sid = 7 }, { .acks = true }, REFUSED(ENDED, 1) },
	{ "of none, and it has nothing", { OPEN, .rx_sid = 7 }, { .acks = false },
	  REFUSED(ENDED, 0) },
};

Test(begin, verdicts)
{
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		struct lnx_begin_verdict v = lnx_begin_judge(&rows[i].s, &rows[i].f);

		cr_expect(v.what == rows[i].want.what && v.next == rows[i].want.next &&
			  v.why == rows[i].want.why && v.data == rows[i].want.data,
			  "%s: %d, next %d, why %u, data %u", rows[i].what, v.what, v.next,
			  (unsigned)v.why, (unsigned)v.data);
	}
}

/* Whose peer is not known: nothing can be checked but what the frame says. */
Test(begin, of_an_unknown_peer)
{
	struct lnx_begin_frame f = { HELLO };

	cr_expect_eq(lnx_begin_judge(NULL, &f).what, LNX_BEGIN_PAIR);
	f.names = 1;
	cr_expect_eq(lnx_begin_judge(NULL, &f).what, LNX_BEGIN_REFUSE);
	cr_expect_eq(lnx_begin_judge(NULL, &f).data, 1u);
	f.names = 0;
	f.acks = true;
	cr_expect_eq(lnx_begin_judge(NULL, &f).what, LNX_BEGIN_REFUSE);
	cr_expect_eq(lnx_begin_judge(NULL, &f).data, 1u);
}

Test(begin, what_the_next_session_knows)
{
	struct lnx_begin s = { OPEN, .rx_sid = 7, .rx_stamp = 70, .before_sid = 6 };
	struct lnx_begin_before b = lnx_begin_follows(&s);

	cr_expect(b.sid == 7 && b.rx_stamp == 70 && b.stamp == 201 && !b.unanswered);
	s.rx_sid = 0;
	b = lnx_begin_follows(&s);
	cr_expect(b.sid == 6 && b.rx_stamp == 70 && b.unanswered);
	/* Nor has the one before that been heard of, if this one has not left. */
	s.sent = false;
	cr_expect(!lnx_begin_follows(&s).unanswered);
	s.unanswered = true;
	cr_expect(lnx_begin_follows(&s).unanswered);
	s.key_refused = true;
	cr_expect(!lnx_begin_follows(&s).unanswered);
}

Test(begin, refusals)
{
	struct lnx_begin s = { OPEN };

	/* Of another session; or this one has ended. */
	cr_expect_eq(lnx_begin_refused(&s, 1, LNX_REFUSED_ENDED, 1), LNX_BEGIN_GOES_ON);
	s.open = false;
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_ENDED, 1), LNX_BEGIN_GOES_ON);
	s.open = true;
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_ENDED, 1), LNX_BEGIN_ENDED);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_ENDED, 0), LNX_BEGIN_GOES_ON);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_FULL, 0), LNX_BEGIN_ASK_AGAIN);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_KEY, 0), LNX_BEGIN_OTHER_KEY);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_NONCE, 5), LNX_BEGIN_ADD_NONCE);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_OLD, 5), LNX_BEGIN_LATER_STAMP);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_ENDPOINT, 0),
		     LNX_BEGIN_NOT_THERE);
	cr_expect_eq(lnx_begin_refused(&s, 2, 4711, 1), LNX_BEGIN_GOES_ON);
	/* What is only true of a session that has not begun. */
	s.rx_sid = THEIRS;
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_FULL, 0), LNX_BEGIN_GOES_ON);
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_KEY, 0), LNX_BEGIN_GOES_ON);
	s.rx_sid = 0;
	s.acked = true;
	cr_expect_eq(lnx_begin_refused(&s, 2, LNX_REFUSED_ENDED, 0), LNX_BEGIN_ENDED);
}

Test(begin, stamps)
{
	cr_expect_eq(lnx_begin_stamp(100, 100), 101u);
	cr_expect_eq(lnx_begin_stamp(100, 500), 501u);
	cr_expect_eq(lnx_begin_stamp(100, 99), 0u);
	cr_expect_eq(lnx_begin_stamp(100, UINT64_MAX), 0u);
}
