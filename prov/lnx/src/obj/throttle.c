/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers that are throttled, or that throttle us.  See throttle.h. */
#include "obj/throttle.h"

#include "obj/eager.h"

LNX_COLD struct lnx_peer_throttle *lnx_peer_throttle(struct lnx_peer *peer)
{
	return lnx_peer_eager(peer) ? lnx_peer_throttle_of(peer) : NULL;
}

LNX_COLD void lnx_peer_unthrottle(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);

	if (!t || !lnx_list_linked(&t->link))
		return;
	lnx_list_del(&t->link);
	lnx_backlog_end(&peer->ep->backlog.sum, &t->its);
}
