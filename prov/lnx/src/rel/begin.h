/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decisions about sessions: which HELLO begins one, what is refused, and what a refusal
 * means to its receiver.  This is what rel/session.c asks; session.h has the rest.  State
 * and verdicts only: no I/O, no clock.  Job keys are not known here.
 *
 * A session pairs when it takes a HELLO, once.  Only a HELLO names the session of its
 * receiver; all other frames acknowledge frames of whatever session their sender is
 * paired with.  If that were another one than ours, frames that never arrived would
 * count as acknowledged.  So of two sessions none may pair with the other one unless that one is
 * free, or paired with it:
 *
 *  - A HELLO that names our session comes from one that is free or paired with ours.
 *  - One that names none comes from a free one, unless a session of ours has sent a HELLO
 *    to that endpoint, ended, and never heard whether it was taken.
 *  - In doubt a session does not pair, but names the other one in its own HELLO.  That one
 *    takes it, if it is free, and then names ours.  If it is not free, it is paired with
 *    one that has ended; by our HELLO it learns that, and ends.
 *
 * The stamps of sessions of one endpoint with another grow.  A HELLO with a stamp that is
 * not above all that were heard of was late on its way, and begins nothing.
 *
 * fabtests/unit/test_chan_random.c drives two ends by these rules over a network that
 * loses, repeats and delays frames.
 */
#ifndef LNX_BEGIN_H
#define LNX_BEGIN_H

#include <stdbool.h>
#include <stdint.h>

/* What one end knows of a session of its own. */
struct lnx_begin {
	uint64_t sid;			/* its name for it */
	uint64_t stamp;			/* when it began, by our clock */
	uint64_t rx_sid;		/* the peer's; 0: no HELLO was taken, it is free */
	uint64_t named;			/* the peer's that our HELLO names in doubt; or 0 */
	uint64_t before_sid;		/* rx_sid of the session before, which this end has
					 * ended; 0: there was none */
	uint64_t rx_stamp;		/* the last stamp of the peer that was heard of */
	bool open;			/* it has not ended here */
	bool sent;			/* its HELLO has left */
	bool acked;			/* something that it sent was acknowledged */
	bool unanswered;		/* lnx_begin_follows said so */
	bool key_refused;		/* the peer has another job key, or none */
};

/* A frame whose session is not known. */
struct lnx_begin_frame {
	bool begins;			/* it is a HELLO with number 0 */
	bool acks;			/* it acknowledges anything */
	bool given_up;			/* its session is one that this end gave up, and
					 * nothing else is known of its sender */
	uint64_t src;			/* the sender's name of the session */
	/* Of such a HELLO: */
	uint64_t stamp;			/* when the session began, by the sender's clock */
	uint64_t names;			/* our session that it names, or 0 */
};

enum lnx_begin_what {
	LNX_BEGIN_PAIR,			/* the session begins */
	LNX_BEGIN_NAME,			/* in doubt: our HELLO names it, lnx_begin.named */
	LNX_BEGIN_REFUSE,		/* its sender is told `why` and `data` */
};

struct lnx_begin_verdict {
	enum lnx_begin_what what;
	bool next;			/* not s does so, but the one after it; s ends if it
					 * has not */
	uint64_t why, data;		/* of a NO_SESSION: LNX_REFUSED_* */
};

/* s: our session with the sender, or our last one; NULL: there was none, or the frame does
 * not say which endpoint the sender is. */
struct lnx_begin_verdict lnx_begin_judge(const struct lnx_begin *s,
					 const struct lnx_begin_frame *f);

/* What the next session with the same endpoint takes over. */
struct lnx_begin_before {
	uint64_t sid;			/* lnx_begin.before_sid */
	uint64_t stamp;			/* its own, at least */
	uint64_t rx_stamp;
	bool unanswered;		/* a session before has sent a HELLO and got none: the
					 * peer may be in it */
};
struct lnx_begin_before lnx_begin_follows(const struct lnx_begin *before);

/* What a refusal of a frame of session s means; `about` is the session that it names. */
enum lnx_begin_refusal {
	LNX_BEGIN_GOES_ON,		/* nothing */
	LNX_BEGIN_ENDED,		/* the peer has ended it: it lives */
	LNX_BEGIN_NOT_THERE,		/* another endpoint is where that came from */
	LNX_BEGIN_OTHER_KEY,		/* it ends: the job keys differ */
	LNX_BEGIN_LATER_STAMP,		/* see lnx_begin_stamp */
	LNX_BEGIN_ADD_NONCE,		/* `data` goes into our HELLO, if it can be changed */
	LNX_BEGIN_ASK_AGAIN,		/* the peer lives, and has no room yet */
};
enum lnx_begin_refusal lnx_begin_refused(const struct lnx_begin *s, uint64_t about,
					 uint64_t why, uint64_t data);

/* Our HELLO has that stamp, and the peer had one with stamp `told` before: the stamp with
 * which it is sent again; 0: it stays. */
uint64_t lnx_begin_stamp(uint64_t stamp, uint64_t told);

#endif
