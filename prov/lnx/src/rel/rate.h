/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How fast a path delivers, and how much must be outstanding to keep it busy.  Does no
 * I/O; the time is passed in.  One for each direction of a path, under the owner lock.
 *
 * Time is cut into rounds, as in BBR (Cardwell et al., draft-ietf-ccwg-bbr): a round
 * ends when something that was posted in it has been delivered.  What was delivered in
 * it, divided by its time, is less than the path can do if little was outstanding, if a
 * process waited for a CPU, or if the peer computed.  So the best round of a window of
 * time is the rate of the path, and the shortest round is its delay.  A rate is replaced
 * by a lower one only if enough was outstanding to show it.
 *
 * After a process has waited for its CPU it finds at once what came meanwhile: that
 * belongs to the time of the round before as well (send_elapsed there).
 *
 * What may be outstanding is twice rate x delay: a path that could deliver more shows
 * that in the next round.  The bytes that are too many wait in a queue on the way, and
 * then the delay contains that queue.  So each window ends with rounds of half of rate x
 * delay, until the delay gets no shorter by that.
 */
#ifndef LNX_RATE_H
#define LNX_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* May be outstanding on a path of unknown rate. */
#define LNX_RATE_FIRST	65536u

/* Zero-initialised: nothing known. */
struct lnx_rate {
	uint64_t rate;			/* bytes per second; 0: not known */
	uint64_t delay_ns;		/* of the shortest round; 0: not known */
	uint64_t delay_bytes;		/* bytes that ended it */
	/* The present round. */
	uint64_t round_ns;		/* when it began; 0: nothing is outstanding */
	uint64_t due;			/* bytes whose delivery ends it */
	uint64_t got;			/* bytes delivered in it */
	uint64_t most;			/* largest number of bytes outstanding in it */
	uint64_t before_ns;		/* time of the round just before; 0: none */
	/* The present window. */
	uint64_t window_ns;		/* when it began */
	uint64_t best;			/* rate of its best round */
	uint64_t low_ns;		/* and of its shortest one, time; 0: none */
	uint64_t low_bytes;		/* and bytes */
	/* Bytes delivered in LNX_STRIPE_DEEP_NS, the most of this window and the last; 0: it has not
	 * been busy for so long yet. */
	uint64_t deep;
	uint64_t deep_best;		/* of this window; 0: none */
	uint64_t deep_ns, deep_got;	/* of rounds since then */
	uint32_t rounds;		/* that have shown what the path delivers */
	uint8_t slow;			/* rounds in a row that were far too slow */
	bool drain;			/* its last rounds have begun */
};

/* Something was posted; out bytes are outstanding with it.  Need not be called for each
 * post, but then rounds begin only with deliveries. */
void lnx_rate_posted(struct lnx_rate *r, uint64_t out, uint64_t now);

/*
 * Bytes were delivered; out are still outstanding.  Returns how long something has taken
 * that was posted in the round, in ns, if that has ended; else 0.
 */
uint64_t lnx_rate_delivered(struct lnx_rate *r, uint64_t bytes, uint64_t out,
			    uint64_t now);

/* Nothing is outstanding any more, and it is not known when that was delivered. */
void lnx_rate_forget(struct lnx_rate *r);

/* For a while now little is given to the path on purpose: that the few rounds it has take long,
 * because the end of each waits for other work, does not mean that it has become slower. */
static inline void lnx_rate_spare(struct lnx_rate *r)
{
	r->slow = 0;
}

/* How long a byte takes that waits for no other, in ns; about. */
uint64_t lnx_rate_latency(const struct lnx_rate *r);

/* How long so many bytes take that wait for no others, in ns; 0: not known. */
uint64_t lnx_rate_expect(const struct lnx_rate *r, uint64_t bytes);

/* How many bytes may be outstanding, for the sake of the path. */
uint64_t lnx_rate_room(const struct lnx_rate *r);

/*
 * And so that it has something to do for LNX_STRIPE_DEEP_NS, whatever happens.  The best round may
 * have been a burst, which a policer or a buffer let pass: no more than twice of what came in so
 * long a time.
 */
uint64_t lnx_rate_deep(const struct lnx_rate *r);

#endif
