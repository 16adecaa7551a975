/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers that are throttled, or that throttle us.  See throttle.h. */
#include "obj/throttle.h"

#include <stdlib.h>

LNX_COLD struct lnx_peer_throttle *lnx_peer_throttle(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = peer->backlog.throttle;

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->peer = peer;
	lnx_list_init(&t->link);
	lnx_list_init(&t->queue);
	peer->backlog.throttle = t;
	return t;
}

LNX_COLD void lnx_peer_unthrottle(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = peer->backlog.throttle;

	if (!t || !lnx_list_linked(&t->link))
		return;
	lnx_list_del(&t->link);
	lnx_backlog_end(&peer->ep->backlog.sum, &t->its);
}
