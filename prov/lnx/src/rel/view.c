/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the channel thinks of a path.  Called by ctl/, which shows and explains it. */
#include "base/interval.h"
#include "rel/admin.h"
#include "rel/hedge.h"
#include "rel/latency.h"
#include "rel/order.h"
#include "rel/peer_path.h"
#include "rel/recovery.h"
#include "rel/rel.h"
#include "rel/rel_view.h"

static uint64_t next_ping(const struct lnx_peer *peer, const struct lnx_path *path,
			  uint64_t now)
{
	uint64_t next;

	if (path->state != LNX_PATH_DOWN || lnx_recovery_given_up(peer, path, false, now))
		return 0;
	next = lnx_health_next(&path->detect.health, &peer->ep->plan,
			       lnx_path_alternative(peer, path, now), LNX_PING_LOST_NS);
	return next == UINT64_MAX ? 0 : next;
}

void lnx_rel_view(struct lnx_peer *peer, const struct lnx_path *path, uint64_t now,
		  struct lnx_path_view *v)
{
	unsigned share[LNX_PATHS_MAX];
	const struct lnx_path *instead;

	lnx_order_fresh(peer, now);
	lnx_peer_path_shares(peer, now, share);
	instead = lnx_peer_path_instead(peer, now);
	*v = (struct lnx_path_view){
		.share = share[path->index],
		.weight = lnx_admin_worth(path, now),
		.remote_weight = lnx_admin_remote_weight(path, now),
		.away = path->speed && !lnx_hedge_pause_over(&path->speed->away, now),
		.instead = (uint8_t)(instead ? 1 + instead->index : 0),
		.in_flight = peer->npath > 1 ? lnx_peer_path_in_flight(peer, path) :
					       peer->chan.una_bytes,
		.latency_ns = path->speed ? lnx_latency_of(path, now) : 0,
		.next_ping_ns = next_ping(peer, path, now),
	};
}
