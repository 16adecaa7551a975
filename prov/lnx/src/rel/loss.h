/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which frames of a channel are lost.  Cores deliver what they accept, in order, unless a
 * connection breaks: then frames that a core has reported as sent are gone, and nothing
 * says so.  An acknowledgement that does not come proves little, because a peer
 * acknowledges only while its program calls the library.
 *
 * So a wait that is too long does not retransmit, it asks: a PROBE goes out over the path
 * that the oldest unacknowledged frame took.  The PROBE cannot overtake the frame there.
 * If the PROBE is answered and the frame is still not acknowledged, the frame is lost, and
 * with it perhaps more that left over that path before the PROBE: these are retransmitted.
 * The receiver drops duplicates.
 *
 * How long is too long: the retransmission timeout of RFC 6298 (policy/rtt.h), doubled at
 * each expiry until something is acknowledged, as there (5.5).  It may be shorter than the
 * RFC's second, because a question costs one small frame and repeats nothing.  So:
 *
 *  - A peer that computes does not answer.  Nothing is retransmitted for a long time, and
 *    then one frame each time.
 *  - A process that was stopped, or its machine suspended, finds all timeouts expired.  It
 *    asks, and the answer tells whether anything was lost meanwhile.
 *  - Before its first acknowledgement a peer may not know the session, and can answer no
 *    PROBE.  Then the oldest frame, which is the HELLO, is sent again instead.
 *  - Answers may not be able to come back.  Once the timeout has grown to
 *    LNX_RTO_INSIST_NS, the oldest frame is sent again after all.
 *
 * A frame may be late, too: its connection waits until a packet is sent again, for a second
 * or more, while the other paths to the peer work.  All that follows waits for it.  So if
 * the oldest frame waits much longer than answers over its path take, the peer is asked over
 * all paths.  If it answers over another one that it still lacks the frame, what left over
 * that path is sent again over a better one (rel/latency.c).
 *
 * State only, like rel/chan.h: the caller has the clock and posts frames.  One per peer,
 * under the owner lock.
 */
#ifndef LNX_LOSS_H
#define LNX_LOSS_H

#include "rel/chan.h"

struct lnx_loss {
	uint64_t since_ns;		/* the current timeout began; 0: the next look sets
					 * it */
	uint64_t rto_ns;		/* of that timeout; 0: the first one */
	uint64_t probe_sent_ns;		/* time of the last PROBE */
	uint32_t oldest;		/* the frame: chan.una at the last look */
	uint32_t last;			/* number of the last PROBE */
	/* The question. */
	uint32_t number;		/* of its first PROBE; answers to later ones count */
	uint32_t about;			/* chan.una then */
	uint32_t end;			/* frames before this number had left by then */
	uint8_t path;			/* that it went over */
	bool asked;			/* there is one */
	bool paused;			/* until the timeout ends no more is said to be lost */
};

/* Of one path of several; zero-initialised. */
struct lnx_late {
	uint64_t since_ns;		/* the frame has been the oldest since; 0: the next look
					 * sets it */
	uint32_t seq;			/* the frame: chan.una at the last look */
};

enum lnx_loss_todo {
	LNX_LOSS_NOTHING,
	LNX_LOSS_MOVED,			/* something was acknowledged since the last look */
	LNX_LOSS_ASK,			/* send a PROBE, then lnx_loss_asked */
	LNX_LOSS_INSIST,		/* the same, and lnx_chan_probe was called */
	LNX_LOSS_LATE,			/* leave the path; lnx_loss_late_again over another */
};

/* The channel has nothing unacknowledged, or begins to have. */
LNX_INLINE void lnx_loss_restart(struct lnx_loss *l, const struct lnx_chan *c)
{
	l->oldest = c->una;
	l->since_ns = l->rto_ns = 0;
	l->paused = false;
}

/*
 * A look at a channel with frames that are not acknowledged, or from whose peer something
 * else is due.  rto_ns: by RFC 6298, for the first timeout.
 */
enum lnx_loss_todo lnx_loss_look(struct lnx_loss *l, struct lnx_chan *c,
				 uint64_t rto_ns, uint64_t now);

/* When to look next, after a look at `now`. */
uint64_t lnx_loss_next(const struct lnx_loss *l, uint64_t now);

/*
 * Is the oldest frame, which lnx_loss_path says left over the path of l, late?  limit_ns: how
 * long it may take; answered_ns: when the peer last answered over another path.  LNX_LOSS_ASK:
 * it would be, if the peer answers over another path; ask over all.  LNX_LOSS_LATE: it is.
 * Else LNX_LOSS_NOTHING.
 */
enum lnx_loss_todo lnx_loss_late(struct lnx_late *l, const struct lnx_chan *c,
				 uint64_t limit_ns, uint64_t answered_ns, uint64_t now);

/* When to look next, after a look at `now`, if no answer comes before. */
uint64_t lnx_loss_late_next(const struct lnx_late *l, uint64_t limit_ns, uint64_t now);

/* So many at a time: a whole window would be much more than the peer lacks. */
#define LNX_LATE_AGAIN_MAX	64u
/* The oldest frames that left over path are to be retransmitted, over another one. */
void lnx_loss_late_again(struct lnx_late *l, struct lnx_chan *c, unsigned path);

/* The path that the oldest frame took; -1: there is nothing to ask, or the frame is about to
 * leave again. */
int lnx_loss_path(const struct lnx_chan *c);

/* A PROBE with that number left over that path; for the caller's own reasons, or because
 * of LNX_LOSS_ASK.  Numbers of a path grow, and wrap. */
void lnx_loss_asked(struct lnx_loss *l, const struct lnx_chan *c, unsigned path,
		    uint32_t number, uint64_t now);

/*
 * The PROBE with that number was answered over that path; what the answer acknowledges was
 * taken into account before.  True: frames are lost, and are to be retransmitted now.
 */
bool lnx_loss_answered(struct lnx_loss *l, struct lnx_chan *c, unsigned path,
		       uint32_t number, uint64_t now);

#endif
