/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which path to a peer the next frame takes; rel/piece.c chooses for pieces of large
 * transfers.  policy/stripe decides from numbers that are collected here.
 *
 * Frames stay on peer->cur, which has the best latency, until the frames in flight on
 * it would need longer than FI_LNX_SPILL: then each frame takes the path over which it
 * arrives first.  The bytes in flight and the speed of a path are known from the peer's
 * acknowledgements, which report how much came over which path.  A sender that is
 * slower than its path never has so much in flight.
 *
 * All functions: owner lock held.
 */
#ifndef LNX_SCHED_H
#define LNX_SCHED_H

#include "obj/ep.h"
#include "os/ping.h"
#include "rel/tx_credits.h"

struct lnx_hdr;

/* Bytes of frames that the peer is not known to have. */
LNX_INLINE uint64_t lnx_sched_in_flight(const struct lnx_peer *peer,
				       const struct lnx_path *path)
{
	return LNX_MIN(path->sent - path->delivered, peer->chan.una_bytes);
}

/* The path in use, if it works and there is no choice to make; else NULL. */
LNX_INLINE struct lnx_path *lnx_sched_usual(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->cur;

	if (lnx_unlikely(path->state != LNX_PATH_UP))
		return NULL;
	if (lnx_likely(peer->npath == 1) ||
	    (!peer->rr && lnx_sched_in_flight(peer, path) <= path->inflight_limit))
		return path;
	return NULL;
}

/* Slow half of lnx_sched_next: several paths, and the one in use is not good enough. */
struct lnx_path *lnx_sched_choose(struct lnx_peer *peer, size_t len);

/* The path in use is not connected, and may take no frame until it is: the path of the next
 * one then.  NULL: it is connected, or there is no other. */
LNX_COLD struct lnx_path *lnx_sched_instead(struct lnx_peer *peer, uint64_t now);

/*
 * The path of the next frame, of len bytes.  NULL: there is none, or there are several,
 * and all must pause for a while.  A single path is returned even if it must pause.  If none
 * that is as good has credits left, one without is returned: it is for the caller to wait.
 */
LNX_INLINE struct lnx_path *lnx_sched_next(struct lnx_peer *peer, size_t len)
{
	struct lnx_path *path = peer->cur;

	if (lnx_likely(peer->npath == 1))
		return path;
	if (lnx_likely(path->state == LNX_PATH_UP && !peer->rr &&
		       lnx_sched_in_flight(peer, path) <= path->inflight_limit &&
		       lnx_path_credits_left(path)))
		return path;
	return lnx_sched_choose(peer, len);
}

/*
 * What health leaves of each path's share, in thousandths of the best one's: a sick path
 * gets less, and one that was down gets more and more for a while.  Equal shares if no path
 * has any: then nothing else works.  share has room for LNX_PATHS_MAX.
 */
void lnx_sched_shares(const struct lnx_peer *peer, unsigned *share);

/* The path for frames that need no choice: the one in use, or else one that works;
 * NULL: there is none. */
struct lnx_path *lnx_sched_find_live(struct lnx_peer *peer);

LNX_INLINE struct lnx_path *lnx_sched_live(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->cur;

	if (lnx_likely(peer->npath == 1 || path->state == LNX_PATH_UP))
		return path;
	return lnx_sched_find_live(peer);
}

/* Has no path taken anything for longer than that? */
bool lnx_sched_none_for(const struct lnx_peer *peer, uint64_t now,
		       uint64_t limit_ns);

/*
 * May path be asked to take something now?  Not in its pause; and if that may be a try to
 * connect, only if this pass has one left, which it counts.  A call of the application
 * that may not wait need not ask: it tries one path, after its pause.
 */
LNX_COLD bool lnx_sched_may_try(struct lnx_ep *ep, const struct lnx_path *path,
				uint64_t now);

/* The core did not take a frame: wait a little, longer each time. */
LNX_COLD void lnx_sched_blocked(struct lnx_path *path, uint64_t now);

/* The core failed a frame that it had taken: back off, longer each time until the path
 * is known to have delivered something.  For peers with several paths. */
LNX_COLD void lnx_sched_failed(struct lnx_path *path, uint64_t now);

/*
 * A pause for what a core has refused for so long (ns).  Each try may be a connect that the
 * other end refuses, so it grows with the time that it has taken so far, and adds little to
 * that.
 */
LNX_INLINE uint64_t lnx_sched_pause_ns(uint64_t so_long_ns)
{
	return LNX_MIN(so_long_ns / LNX_REFUSED_SHARE, LNX_REFUSED_MAX_NS);
}

/*
 * The core has refused what it was given for path for so long (ns).  If it waits for the
 * answer to a connection that hangs, that is ended, and the next try begins another one.
 */
LNX_COLD void lnx_sched_hangs(const struct lnx_path *path, uint64_t so_long_ns, uint64_t now);

LNX_INLINE void lnx_sched_up(const struct lnx_peer *peer, struct lnx_path *path)
{
	if (lnx_likely(path->state == LNX_PATH_UP))
		return;
	lnx_path_happens(path, LNX_PATH_TOOK);
	if (path->state != LNX_PATH_UP)
		return;
	path->since_ns = 0;
	if (path->read_refused_ms) {
		path->read_refused_ms = 0;
		path->read_retry_ns = 0;
	}
	/* That a core, or a gateway, takes frames says nothing of a peer that is silent. */
	if (path->detect.ping && !lnx_silence_peer_waits(&peer->liveness))
		lnx_ping_stop(path->detect.ping);
}

/* The path from our rail back to the peer's rail, or the one in use. */
struct lnx_path *lnx_sched_back(struct lnx_peer *peer,
			       const struct lnx_rail *rail, uint16_t remote);

/* The peer has received so many bytes of frames over one of our paths. */
void lnx_sched_report_one(struct lnx_peer *peer, unsigned which, uint64_t total);
/* Read the report about paths in an ACK of the peer; and write one. */
void lnx_sched_report(struct lnx_peer *peer, const struct lnx_hdr *ack);
void lnx_sched_report_put(const struct lnx_peer *peer, struct lnx_hdr *ack);
/* The ACK with the report has left. */
void lnx_sched_report_sent(struct lnx_peer *peer, const struct lnx_hdr *ack);
/* The peer has all that was ever sent to it.  Not needed for a single path. */
LNX_INLINE void lnx_sched_all_delivered(struct lnx_peer *peer)
{
	unsigned i, n = peer->npath;

	for (i = 0; n > 1 && i < n; i++) {
		struct lnx_path *path = peer->path[i];

		/* Its next report includes these, and says nothing new about them. */
		path->last_report += path->sent - path->delivered;
		path->delivered = path->sent;
	}
	peer->chan.una_bytes = 0;
}

/* ---- shared with rel/piece.c ---- */

/* Length of the piece that path takes, of several: rest bytes of the transfer are not yet
 * requested, and may go over the paths in able (bits). */
size_t lnx_piece_len(struct lnx_peer *peer, const struct lnx_path *path, size_t rest,
		     unsigned able, uint64_t now);

struct lnx_stripe_path;

/* Fill in what is known of a path's rate, of which health leaves it that share. */
void lnx_sched_rate(const struct lnx_path *path, const struct lnx_rate *r, unsigned share,
		    struct lnx_stripe_path *view);
/* The least time that an answer takes over any path; 0: not known. */
uint64_t lnx_sched_least_latency(const struct lnx_peer *peer, uint64_t now);
/* Does an answer take far longer over path than that? */
bool lnx_sched_far(const struct lnx_path *path, uint64_t least, uint64_t now);
/* Leave the paths whose bit is set in mask. */
void lnx_sched_only(const struct lnx_peer *peer, const struct lnx_stripe_path *view,
		    unsigned mask, struct lnx_stripe_path out[LNX_PATHS_MAX]);

#endif
