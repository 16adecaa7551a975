/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The path to a peer that the next frame takes: what rel/sched.h decides from is collected
 * here, and the usual path is found without asking it.
 *
 * All functions: owner lock held.  None calls a core.
 */
#ifndef LNX_PEER_PATH_H
#define LNX_PEER_PATH_H

#include "obj/ep.h"
#include "rel/tx_credits.h"

struct lnx_sched;

/* Bytes of frames that the peer is not known to have. */
LNX_INLINE uint64_t lnx_peer_path_in_flight(const struct lnx_peer *peer,
					    const struct lnx_path *path)
{
	return LNX_MIN(path->sent - path->delivered, peer->chan.una_bytes);
}

/*
 * Does it remain to be seen that path delivers, while another one does?  A core may take frames
 * that it then has to give up: when both ends connect at once, the tcp provider may end the
 * connection that one of them already uses.
 */
LNX_INLINE bool lnx_peer_path_opens(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return peer->npath > 1 && !path->proven && lnx_chan_acked_any(&peer->chan);
}

/* The path in use, if it works, is proven, and there is no choice to make; else NULL. */
LNX_INLINE struct lnx_path *lnx_peer_path_usual(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->cur;

	if (lnx_unlikely(path->state != LNX_PATH_UP))
		return NULL;
	if (lnx_likely(peer->npath == 1) ||
	    (!peer->rr && path->proven &&
	     lnx_peer_path_in_flight(peer, path) <= path->inflight_limit))
		return path;
	return NULL;
}

/* Slow half of lnx_peer_path_next: several paths, and the one in use is not good enough. */
struct lnx_path *lnx_peer_path_choose(struct lnx_peer *peer, size_t len);

/*
 * The path of the next frame, of len bytes.  NULL: there is none, or there are several,
 * and all must pause for a while.  A single path is returned even if it must pause.  If none
 * that is as good has credits left, one without is returned: it is for the caller to wait.
 */
LNX_INLINE struct lnx_path *lnx_peer_path_next(struct lnx_peer *peer, size_t len)
{
	struct lnx_path *path = peer->cur;

	if (lnx_likely(peer->npath == 1))
		return path;
	if (lnx_likely(path->state == LNX_PATH_UP && !peer->rr &&
		       lnx_peer_path_in_flight(peer, path) <= path->inflight_limit &&
		       lnx_path_credits_left(path)))
		return path;
	return lnx_peer_path_choose(peer, len);
}

/* The path in use is not connected, and may take no frame until it is: the path of the next
 * one then.  NULL: it is connected, or there is no other. */
LNX_COLD struct lnx_path *lnx_peer_path_instead(struct lnx_peer *peer, uint64_t now);

/* Slow half of lnx_peer_path_live: the one in use does not work. */
struct lnx_path *lnx_peer_path_find_live(struct lnx_peer *peer);

/* The path for frames that need no choice: the one in use, or else one that works;
 * NULL: there is none. */
LNX_INLINE struct lnx_path *lnx_peer_path_live(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->cur;

	if (lnx_likely(peer->npath == 1 || path->state == LNX_PATH_UP))
		return path;
	return lnx_peer_path_find_live(peer);
}

/* The path from our rail back to the peer's rail, or the one in use. */
struct lnx_path *lnx_peer_path_back(struct lnx_peer *peer,
				    const struct lnx_rail *rail, uint16_t remote);

/* What health leaves of each path's share (lnx_sched_shares).  share has room for
 * LNX_PATHS_MAX. */
void lnx_peer_path_shares(const struct lnx_peer *peer, uint64_t now, unsigned *share);

/* Fill in what frames and pieces have in common, but for the path's own rate, retry_ns and
 * out_bytes. */
void lnx_peer_path_facts(const struct lnx_peer *peer, uint64_t now, struct lnx_sched *s);

#endif
