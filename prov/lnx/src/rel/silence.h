/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What no sign of life means: of one path, and of a whole peer.  Verdicts only; the caller
 * sends the PROBEs, asks the kernels and has the clock.
 *
 * A path.  Something is due over it, and it makes no progress.  After half of its timeout
 * the kernel at its other end is asked; after all of it the peer is asked over the other
 * paths what it received by this one.  Only if the peer answers, and nothing more had come,
 * the path is DOWN: a peer that computes is as silent as a dead one.  A path whose kernel
 * answers may be congested, or wait until TCP sends a packet again: it has more time.
 *
 *	 progress        timeout/2          timeout               4 x timeout
 *	|---------------|-----------------|---------------------|
 *	      WAIT         ASK_KERNEL        ASK ... DOWN           DOWN, kernel answers
 *
 * A peer.  Something is due from it, and nothing comes over any path.  Its kernels are asked.
 * While one of them answers, the peer counts as computing, but not for ever: what a kernel
 * knows is that a process has the sockets, and that may be a child that inherited them.
 * If none answers it is given up after the transaction timeout.  What is not known gives it
 * more time, but not for ever either: the stall timeout, if kernels cannot be asked; the
 * connect timeout, if only this node could not ask them, for want of descriptors or room in a
 * connection, or since its link is down.
 *
 * Time without a look does not count: a process that computes or was suspended has
 * not seen a peer fail.  Under the owner lock.
 */
#ifndef LNX_SILENCE_H
#define LNX_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- of a path ---- */

/* Zero-initialised: nothing is due. */
struct lnx_silence {
	uint64_t progress;		/* of the path, at since_ns */
	uint64_t since_ns;		/* no progress since; 0: nothing is due */
	uint64_t probe_sent_ns;		/* the peer was asked over other paths; 0: not yet */
	uint32_t una;			/* of the channel, at since_ns */
	bool answered;			/* by the peer, and nothing more had come */
	bool kernel_asked;		/* since since_ns */
	bool stale_report;		/* the report of progress is older than the silence */
};

struct lnx_silence_view {
	uint64_t progress;		/* grows with everything that is delivered */
	uint64_t timeout_ns;
	uint32_t una;			/* oldest frame that is not acknowledged */
	bool frames;			/* some are in flight over the path */
	bool reads;			/* outstanding over the path */
	bool acked;			/* the peer has ever acknowledged anything */
	bool kernel_answers;		/* if it was asked */
};

enum lnx_silence_verdict {
	LNX_SILENCE_NOTHING,		/* nothing is due */
	LNX_SILENCE_PROGRESS,		/* something came since the last look: the path works */
	LNX_SILENCE_BEGINS,		/* the first look at what is due */
	LNX_SILENCE_WAIT,
	LNX_SILENCE_ASK_KERNEL,
	LNX_SILENCE_ASK,		/* ask the peer over the other paths */
	LNX_SILENCE_ELSEWHERE,		/* a peer that does not know us cannot be asked: try
					 * another path */
	LNX_SILENCE_DOWN,
};

enum lnx_silence_verdict lnx_silence_look(struct lnx_silence *s,
					  const struct lnx_silence_view *v, uint64_t now);

/* When to look next, after a look at `now` with that verdict; LNX_NEVER: not before
 * something is due, or the peer answers. */
uint64_t lnx_silence_next(const struct lnx_silence *s, const struct lnx_silence_view *v,
			  enum lnx_silence_verdict verdict, uint64_t now);

/* The peer answered.  moved: its answer reports progress; about_this: it answers the last
 * question about this path. */
void lnx_silence_answered(struct lnx_silence *s, bool moved, bool about_this);

/* ---- of a peer ---- */

/* Zero-initialised: nothing is due. */
struct lnx_liveness {
	uint64_t since_ns;		/* nothing came since; 0: something did */
	uint64_t kernels_ns;		/* when its kernels were asked last; the answers count
					 * if that is after since_ns */
	uint64_t stalled_ns;		/* for so long only its kernels have answered */
};

/* Nothing is due, or something came. */
static inline void lnx_silence_peer_seen(struct lnx_liveness *l)
{
	l->since_ns = 0;
}

/* Were its kernels asked since it is silent? */
static inline bool lnx_silence_peer_waits(const struct lnx_liveness *l)
{
	return l->since_ns && l->kernels_ns > l->since_ns;
}

/* What is known of its paths. */
struct lnx_liveness_view {
	uint64_t limit_ns;		/* FI_LNX_TRANSACTION_TIMEOUT */
	uint64_t stall_limit_ns;	/* FI_LNX_STALL_TIMEOUT; 0: none */
	uint64_t unasked_limit_ns;	/* FI_LNX_CONNECT_TIMEOUT */
	unsigned npath;
	/* Kernels by answer; the rest have not answered. */
	unsigned alive, refused;
	unsigned unknown;		/* they cannot be asked */
	unsigned unasked;		/* nor these, for now */
};

enum lnx_liveness_verdict {
	LNX_LIVENESS_WAIT,
	LNX_LIVENESS_ASK_KERNELS,
	LNX_LIVENESS_LOOK,		/* call lnx_silence_peer_judge with what they say */
	LNX_LIVENESS_REFUSED,		/* given up: no process is there */
	LNX_LIVENESS_TIMED_OUT,		/* given up */
};

/* To be called again and again while something is due. */
enum lnx_liveness_verdict lnx_silence_peer_look(struct lnx_liveness *l, uint64_t now);
enum lnx_liveness_verdict lnx_silence_peer_judge(struct lnx_liveness *l,
						 const struct lnx_liveness_view *v,
						 uint64_t now);
/* When to do so next, after one of these at `now`.  limit_ns: that of the view. */
uint64_t lnx_silence_peer_next(const struct lnx_liveness *l, uint64_t limit_ns, uint64_t now);
/* They are asked. */
void lnx_silence_peer_asked(struct lnx_liveness *l, uint64_t now);
/* One that could not be asked is asked now: it has time to answer, too, if it is before the
 * limit of the view. */
void lnx_silence_peer_asked_late(struct lnx_liveness *l, const struct lnx_liveness_view *v,
				 uint64_t now);

#endif
