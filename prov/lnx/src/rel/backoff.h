/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A path that takes nothing, or whose core failed what it took, backs off: it is tried again
 * after a pause, longer each time.  Each try may be a connect, so that these are counted.
 *
 * All functions: owner lock held.
 */
#ifndef LNX_BACKOFF_H
#define LNX_BACKOFF_H

#include "base/interval.h"
#include "obj/ep.h"
#include "os/ping.h"

/* The core did not take a frame: wait a little, longer each time. */
LNX_COLD void lnx_backoff_refused(struct lnx_path *path, uint64_t now);

/* The core failed a frame that it had taken: back off, longer each time until the path
 * is known to have delivered something.  For peers with several paths. */
LNX_COLD void lnx_backoff_failed(struct lnx_path *path, uint64_t now);

/*
 * May path be asked to take something now?  Not in its pause; and if that may be a try to
 * connect, only if this pass has one left, which it counts.  A call of the application
 * that may not wait need not ask: it tries one path, after its pause.
 */
LNX_COLD bool lnx_backoff_may_try(struct lnx_ep *ep, const struct lnx_path *path,
				  uint64_t now);

/* Has no path taken anything for longer than that? */
bool lnx_backoff_all_for(const struct lnx_peer *peer, uint64_t now, uint64_t limit_ns);

/*
 * A pause for what a core has refused for so long (ns).  Each try may be a connect that the
 * other end refuses, so it grows with the time that it has taken so far, and adds little to
 * that.
 */
LNX_INLINE uint64_t lnx_backoff_pause_ns(uint64_t so_long_ns)
{
	return LNX_MIN(so_long_ns / LNX_REFUSED_SHARE, LNX_REFUSED_MAX_NS);
}

/*
 * The core has refused what it was given for path for so long (ns).  If it waits for the
 * answer to a connection that hangs, that is ended, and the next try begins another one.
 */
LNX_COLD void lnx_backoff_hangs(const struct lnx_path *path, uint64_t so_long_ns, uint64_t now);

/* The core took a frame. */
LNX_INLINE void lnx_backoff_over(const struct lnx_peer *peer, struct lnx_path *path)
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

#endif
