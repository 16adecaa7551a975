/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which frames begin and end sessions.  See begin.h. */
#include "rel/begin.h"

#include <stddef.h>

#include "lnx_wire.h"

static struct lnx_begin_verdict refuse(uint64_t why, uint64_t data)
{
	return (struct lnx_begin_verdict){
		.what = LNX_BEGIN_REFUSE, .why = why, .data = data,
	};
}

/* Has the peer had a later session?  Then this was repeated on the way, or is late. */
static bool late(const struct lnx_begin *s, const struct lnx_begin_frame *f)
{
	if (!s->rx_sid && !s->before_sid && !s->named)
		return false;
	return f->stamp <= s->rx_stamp && !(f->stamp == s->rx_stamp && f->src == s->named);
}

/* Is it of an ended session, or of one whose HELLO is yet to come by another path?  If it
 * acknowledges what our session has sent, it is the latter. */
static struct lnx_begin_verdict no_hello(const struct lnx_begin *s,
					 const struct lnx_begin_frame *f)
{
	bool behind = s && s->open && s->sent && !s->rx_sid;

	return refuse(LNX_REFUSED_ENDED, f->acks && !behind);
}

/* It comes from a later session of the peer than any that we know. */
static struct lnx_begin_verdict begins(const struct lnx_begin *s,
				       const struct lnx_begin_frame *f)
{
	/* The peer has left the session in which s was; or s was given up before. */
	bool next = s->rx_sid || !s->open;
	bool sent = !next && s->sent;
	bool doubt = next ? lnx_begin_follows(s).unanswered : s->unanswered || s->named;

	/* A peer may pair with our session while its HELLO is on its way again; else it is
	 * paired with one that has ended. */
	if (f->acks && !f->names && !sent)
		return refuse(LNX_REFUSED_ENDED, 1);
	return (struct lnx_begin_verdict){
		.what = f->names || doubt ? LNX_BEGIN_NAME : LNX_BEGIN_PAIR,
		.next = next,
	};
}

struct lnx_begin_verdict lnx_begin_judge(const struct lnx_begin *s,
					 const struct lnx_begin_frame *f)
{
	const struct lnx_begin_verdict v = { .what = LNX_BEGIN_PAIR };

	if (!f->begins)
		return no_hello(s, f);
	if (!s)
		return f->names || f->acks || f->given_up ? refuse(LNX_REFUSED_ENDED, 1) : v;
	/* It goes on in a session that we have given up: all in that has failed here, or
	 * was delivered. */
	if (f->src == s->before_sid)
		return refuse(LNX_REFUSED_ENDED, 1);
	if (late(s, f))
		return refuse(LNX_REFUSED_OLD, s->rx_stamp);
	if (s->open && !s->rx_sid && f->names == s->sid)
		return v;
	return begins(s, f);
}

struct lnx_begin_before lnx_begin_follows(const struct lnx_begin *before)
{
	return (struct lnx_begin_before){
		.sid = before->rx_sid ? before->rx_sid : before->before_sid,
		.stamp = before->stamp + 1,
		.rx_stamp = before->rx_stamp,
		.unanswered = !before->rx_sid && !before->key_refused &&
			      (before->sent || before->unanswered),
	};
}

enum lnx_begin_refusal lnx_begin_refused(const struct lnx_begin *s, uint64_t about,
					 uint64_t why, uint64_t data)
{
	bool begun = s->acked || s->rx_sid;

	/* Only what received a frame of this session knows its id. */
	if (!s->open || about != s->sid)
		return LNX_BEGIN_GOES_ON;
	switch (why) {
	case LNX_REFUSED_ENDPOINT:
		return LNX_BEGIN_NOT_THERE;
	case LNX_REFUSED_ENDED:
		/* Our HELLO was lost, and goes out again; or it came after the frame that is
		 * refused, and the peer has answered it. */
		return !data && (!s->acked || s->rx_sid) ? LNX_BEGIN_GOES_ON :
							   LNX_BEGIN_ENDED;
	case LNX_REFUSED_OLD:
		return LNX_BEGIN_LATER_STAMP;
	case LNX_REFUSED_NONCE:
		return LNX_BEGIN_ADD_NONCE;
	case LNX_REFUSED_FULL:
		return begun ? LNX_BEGIN_GOES_ON : LNX_BEGIN_ASK_AGAIN;
	case LNX_REFUSED_KEY:
		return begun ? LNX_BEGIN_GOES_ON : LNX_BEGIN_OTHER_KEY;
	default:
		return LNX_BEGIN_GOES_ON;
	}
}

uint64_t lnx_begin_stamp(uint64_t stamp, uint64_t told)
{
	return told < stamp || told == UINT64_MAX ? 0 : told + 1;
}
