/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pauses of paths that take nothing.  See backoff.h.  Called by rel/send.c, rel/pump.c,
 * rel/control.c, rel/done.c, rel/latency.c and rel/link_notice.c. */
#include "rel/backoff.h"

#include "core/fd_limit.h"
#include "core/half_open.h"
#include "rail/rail.h"

/* End connections of the path's rail that waited longer than that. */
static LNX_COLD void end_hanging(const struct lnx_path *path, uint64_t wait_ns, bool began,
				 uint64_t so_long_ns, uint64_t now)
{
	struct lnx_ep_due *due = &path->rail->ep->due;
	uint64_t cost_ns;
	unsigned n;

	/* All descriptors of the process are looked at. */
	if (so_long_ns < LNX_CONNECT_HANGS_NS || now < due->unanswered_ns ||
	    lnx_rail_is_leg(path->rail) || !path->rail->core_ep)
		return;
	cost_ns = lnx_clock_thread_ns();
	n = lnx_half_open_unanswered(path->rail, LNX_MAX(LNX_CONNECT_HANGS_NS, wait_ns), began);
	cost_ns = lnx_half_open_pause_short(lnx_clock_thread_ns() - cost_ns);
	due->unanswered_ns = now + LNX_MAX(LNX_CONNECT_HANGS_NS / 2, cost_ns);
	if (n)
		LNX_INFO(FI_LOG_EP_DATA,
			 "rail %s: a connection that was not answered for %u ms is ended\n",
			 path->rail->name, (unsigned)(so_long_ns / LNX_NS_PER_MS));
}

LNX_COLD void lnx_backoff_hangs(const struct lnx_path *path, uint64_t so_long_ns, uint64_t now)
{
	/* A peer that computes answers late: it is not asked again and again. */
	end_hanging(path, so_long_ns / 4, true, so_long_ns, now);
}

/*
 * A peer that has never answered may not be there yet, or compute while all others want to
 * meet it: it finds all connections that were begun meanwhile.  So it is given longer, and
 * each time twice as long; and what no kernel has answered is left alone.
 */
static LNX_COLD void first_hangs(const struct lnx_path *path, uint64_t so_long_ns, uint64_t now)
{
	uint64_t give_up_ns = path->rail->ep->conf->connect_timeout * LNX_NS_PER_MS;

	if (so_long_ns >= LNX_MIN(LNX_CONNECT_FIRST_NS, give_up_ns / 4))
		end_hanging(path, so_long_ns / 2, false, so_long_ns, now);
}

LNX_COLD void lnx_backoff_refused(struct lnx_path *path, uint64_t now)
{
	if (path->state == LNX_PATH_DOWN)
		return;			/* only an answer of its peer ends that */
	if (path->state != LNX_PATH_CONNECTING || !path->since_ns) {
		lnx_path_happens(path, LNX_PATH_REFUSED);
		path->since_ns = now;
		path->backoff_ns = LNX_BACKOFF_MIN_NS;
	} else {
		/* The backoff may have been reset because the peer's address changed. */
		uint64_t so_long_ns = lnx_ns_since(now, path->since_ns);
		uint64_t max = lnx_backoff_pause_ns(so_long_ns);

		path->backoff_ns = LNX_MAX(LNX_BACKOFF_MIN_NS, path->backoff_ns +
					   path->backoff_ns / 2);
		path->backoff_ns = LNX_MIN(path->backoff_ns,
					   LNX_MAX(max, LNX_BACKOFF_MAX_NS));
		if (path->backoff_ns >= LNX_UNUSUAL_NS)
			lnx_fd_limit_look(path->rail->ep, path->rail->name);
		if (path->n_sent || path->was_there)
			lnx_backoff_hangs(path, so_long_ns, now);
		else
			first_hangs(path, so_long_ns, now);
	}
	path->retry_ns = now + path->backoff_ns;
}

LNX_COLD bool lnx_backoff_may_try(struct lnx_ep *ep, const struct lnx_path *path,
				uint64_t now)
{
	if (path->state == LNX_PATH_UP)
		return true;
	if (now < path->retry_ns)
		return false;
	/* Nothing was refused yet. */
	if (path->state != LNX_PATH_CONNECTING || !path->backoff_ns)
		return true;
	if (!ep->due.connects)
		return false;
	ep->due.connects--;
	return true;
}

LNX_COLD void lnx_backoff_failed(struct lnx_path *path, uint64_t now)
{
	/* All frames in the core fail together: that counts once. */
	if (path->fail_backoff_ns && now < path->retry_ns)
		return;
	path->fail_backoff_ns = LNX_MAX(LNX_FAIL_BACKOFF_MIN_NS,
				     LNX_MIN(path->fail_backoff_ns * 2,
					     LNX_FAIL_BACKOFF_MAX_NS));
	path->retry_ns = now + path->fail_backoff_ns;
	lnx_fd_limit_look(path->rail->ep, path->rail->name);
}

bool lnx_backoff_all_for(const struct lnx_peer *peer, uint64_t now,
		       uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i]->since_ns ||
		    lnx_ns_since(now, peer->path[i]->since_ns) <= limit_ns)
			return false;
	/* It may be about to get its first one. */
	return peer->npath != 0;
}
