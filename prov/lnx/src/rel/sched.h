/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path to a peer the next frame takes, and which one the next piece of a large
 * transfer.  Pure: facts and the time go in, the index of a path comes out.
 * rel/peer_path.c knows the facts for frames, rel/piece.c those for pieces; policy/rank has
 * made the order of the paths, and policy/stripe compares their rates.
 *
 * Frames stay on the path in use, which has the best latency, until the frames in flight on
 * it would need longer than FI_LNX_SPILL: then each frame takes the path over which it
 * arrives first.  The bytes in flight and the speed of a path are known from the peer's
 * acknowledgements, which report how much came over which path (rel/report.h).  A sender that
 * is slower than its path never has so much in flight.
 *
 * Pieces are as in policy/stripe.h; paths with late ones have fewer (rel/hedge.h).
 *
 * A sick path has the share that health leaves it (lnx_sched_shares) while a better one of
 * the same class works: it takes so many of its turns, and so many bytes of pieces for those
 * that better paths take, as in Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit
 * Round Robin".  A lower rate in the comparison alone would not do: what ends soon makes room
 * for the next piece.
 */
#ifndef LNX_SCHED_H
#define LNX_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/rank.h"
#include "policy/stripe.h"
#include "rel/hedge.h"
#include "rel/path.h"
#include "rel/rate.h"

/* One path.  All frames, or all pieces: a caller fills in what it asks for. */
struct lnx_sched_path {
	uint8_t state;			/* enum lnx_path_state */
	uint16_t share;			/* lnx_sched_shares */
	uint64_t retry_ns;		/* it pauses until then; for frames, not if it is UP or
					 * IDLE */
	const struct lnx_rate *rate;
	uint64_t link_bps;		/* nominal, of our end; 0: unknown */
	uint64_t latency_ns;		/* how long an answer over it takes; 0: not known */
	uint64_t out_bytes;		/* that the peer is not known to have; of pieces:
					 * requested */
	/* Frames. */
	uint64_t inflight_limit;	/* with more than that in flight it is backed up */
	uint64_t since_ns;		/* its core has taken nothing since; 0: it takes */
	bool credits;			/* some are left (rel/tx_credits.h) */
	bool opens;			/* it has taken a frame, and it is not proven that it
					 * delivers */
	bool away;			/* frames were late there, and stay away for a while */
	bool hearsay;			/* another process has said that its rail is dead */
	uint32_t turns;			/* that a sick one has had; if any is sick */
	/* Pieces. */
	bool able;			/* it may be asked for this transfer */
	bool failed;			/* the last one did */
	uint32_t out;			/* requested */
	uint64_t done_ns;		/* when the last one ended */
	const struct lnx_tail *tail;	/* how late they are */
	int64_t credit;			/* bytes that a sick one may take for those that
					 * others took; if any is sick */
};

/* A peer with several paths. */
struct lnx_sched {
	uint64_t now;
	const struct lnx_ranking *rank;	/* of all n; NULL: not made yet */
	uint8_t n;
	uint8_t cur;			/* the path in use */
	uint8_t stripe;			/* paths, as bits, that share the traffic */
	uint8_t rr;			/* those that messages use in turn; 0: they do not */
	bool sick;			/* some are, or less is wanted of them */
	/* Frames. */
	uint8_t rr_index;		/* the path of the last message, of these */
	bool acked;			/* the peer has acknowledged our HELLO */
	bool posted;			/* the HELLO has left, */
	int8_t hello;			/* over this path; -1: that is not known any more, or
					 * it is acknowledged */
	uint64_t hearsay_ns;		/* so long a path is waited for that nothing is said
					 * of, before one with hearsay */
	struct lnx_rank_path *lnet;	/* what LNet's tables compare, in which paths that take
					 * nothing become DOWN; NULL: they do not choose */
	const struct lnx_rank_how *how;
	/* Pieces. */
	uint64_t left;			/* bytes of all transfers that are not yet requested */
	size_t chunk;			/* the longest piece */
	size_t threshold;		/* a shorter transfer is one piece */
	struct lnx_sched_path path[LNX_WIRE_PATHS];
};

enum lnx_sched_why {
	LNX_SCHED_USUAL,		/* the path in use */
	LNX_SCHED_TURN,			/* round robin: it was its turn */
	LNX_SCHED_LNET,			/* LNet's tables */
	LNX_SCHED_SHORTEST,		/* the frame arrives first over it */
	LNX_SCHED_NONE,			/* all pause */
	LNX_SCHED_HELLO,		/* none: the path of the HELLO is waited for */
	LNX_SCHED_HEARSAY,		/* none: another one may connect that is better */
};

struct lnx_sched_choice {
	int path;			/* -1: none, now */
	enum lnx_sched_why why;
	uint8_t turned;			/* sick paths whose turn it was, taken or not: bits */
};

/* The path of the next frame, of len bytes. */
struct lnx_sched_choice lnx_sched_frame(const struct lnx_sched *s, size_t len);

/* The path of the next frame if the one in use takes none; -1: there is none. */
int lnx_sched_instead(const struct lnx_sched *s);

/* The path for frames that need no choice: it works, or is to be tried first.  Of s only n,
 * cur, rank, and of the paths state and retry_ns are needed. */
unsigned lnx_sched_live(const struct lnx_sched *s);

/* The path of the next piece; -1: none now, *line: because all have enough, so that the end of
 * a piece allows the next one. */
int lnx_sched_piece(const struct lnx_sched *s, bool *line);

/* Length of the piece that path takes, which lnx_sched_piece has chosen, of a transfer of which
 * rest bytes are not yet requested. */
size_t lnx_sched_piece_len(const struct lnx_sched *s, unsigned path, size_t rest);

/* Some paths are sick, and the one `took` takes a piece of len bytes: the credit of path then. */
int64_t lnx_sched_credit(const struct lnx_sched *s, unsigned path, unsigned took, size_t len);

/*
 * What health leaves of each path's share, in thousandths of the best one's: a sick path
 * gets less, and one that was down gets more and more for a while.  share: their weights
 * (lnx_health_weight_of_path) become that.  Equal shares if no path has any: then nothing
 * else works.
 */
void lnx_sched_shares(unsigned *share, unsigned n);

#endif
