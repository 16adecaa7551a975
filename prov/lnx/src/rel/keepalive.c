/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asks idle peers that are in no address vector for a sign of life.  See keepalive.h.  Called
 * by rel/run.c, when its time has come, and by rel/control.c for the peer that it looks at.
 */
#include "rel/keepalive.h"

#include "base/interval.h"
#include "rel/rel.h"

/* Peers in one run: so many questions at most leave at a time. */
#define PEERS_PER_RUN	64u

/* Or no longer. */
static bool in_no_av(const struct lnx_peer *peer)
{
	return peer->addr == FI_ADDR_NOTAVAIL && !peer->self &&
	       peer->shm.core == FI_ADDR_NOTAVAIL;
}

static bool is_asked(const struct lnx_peer *peer)
{
	return in_no_av(peer) && lnx_peer_open(peer) && peer->npath && !peer->awaited;
}

static void ask(struct lnx_peer *peer, uint64_t now)
{
	peer->session.keepalive = true;
	/* Silent from now on, unless something comes. */
	peer->liveness = (struct lnx_liveness){ .since_ns = now };
	lnx_peer_watch(peer);
}

LNX_COLD uint64_t lnx_keepalive_run(struct lnx_ep *ep, uint64_t now)
{
	uint32_t all = ep->peers.n, n = LNX_MIN(all, PEERS_PER_RUN), i;

	if (!n)
		return LNX_NEVER;
	/* Those at the head were asked longest ago. */
	for (i = 0; i < n; i++) {
		struct lnx_node *first = lnx_list_pop(&ep->peers.all);
		struct lnx_peer *peer = lnx_list_entry(first, struct lnx_peer, all_link);

		lnx_list_add_tail(&ep->peers.all, first);
		ep->peers.n_in_av = in_no_av(peer) ? 0 : ep->peers.n_in_av + 1;
		if (is_asked(peer))
			ask(peer, now);
	}
	/* All are in an address vector. */
	if (ep->peers.n_in_av >= all && !ep->peers.n_unsolicited) {
		ep->peers.n_in_av = 0;
		return LNX_NEVER;
	}
	/* Others wait for the room of those that are dead. */
	return now + (ep->peers.n_unsolicited >= ep->conf->unsolicited_peers ?
		      LNX_KEEPALIVE_FULL_NS : LNX_KEEPALIVE_NS) * n / all;
}

bool lnx_keepalive_due(struct lnx_peer *peer)
{
	const struct lnx_liveness *l = &peer->liveness;

	if (lnx_likely(!peer->session.keepalive))
		return false;
	/* Something came; or its kernel says that its process has the socket, which it may
	 * do for hours.  Whether it is another process, the PROBE shows (rel/session.c). */
	if (!l->since_ns || l->stalled_ns) {
		peer->session.keepalive = false;
		peer->session.mute = 0;
	}
	return peer->session.keepalive;
}

LNX_COLD bool lnx_keepalive_stays(struct lnx_peer *peer, bool idle, int err)
{
	bool stays = idle && err == FI_ETIMEDOUT &&
		     ++peer->session.mute < LNX_KEEPALIVE_TRIES;

	/* It stays set if its process is gone: see lnx_peers_reap. */
	if (stays || !idle)
		peer->session.keepalive = false;
	return stays;
}
