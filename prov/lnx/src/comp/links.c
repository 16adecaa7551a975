/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "comp/links.h"

#include "core/netwatch.h"
#include "tx/guard.h"

#define EVENTS_MAX	64		/* in one pass; the rest has to wait */

/* How is it now?  Events may be old. */
static LNX_COLD void look_at(struct lnx_ep *ep, struct lnx_rail *rail,
			     uint64_t now)
{
	struct lnx_net_state s;
	int ret;

	if (lnx_kind_local(rail->kind) || !rail->ifindex)
		return;
	/* By its address: an interface that is made again has another index. */
	ret = lnx_netwatch_look(ep->netwatch, 0, NULL, rail->addr,
				rail->addrlen, &s);
	if (ret && ret != -ENODEV)
		return;			/* cannot be told */
	if (!ret)
		rail->ifindex = s.ifindex;
	lnx_guard_link(rail, !ret && s.up && s.has_addr, now);
}

void lnx_links_open(struct lnx_ep *ep)
{
	uint32_t i;
	int ret;

	if (ep->nnet < 2 || ep->bare || ep->netwatch ||
	    !ep->plan.step[LNX_CLASS_OK])
		return;
	ret = lnx_netwatch_open(&ep->netwatch);
	if (ret) {
		ep->netwatch = NULL;
		LNX_INFO(FI_LOG_EP_CTRL,
			 "links are not watched (%s): a rail that fails is found out by its silence\n",
			 fi_strerror(-ret));
		return;
	}
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];
		struct lnx_net_state s;

		if (!lnx_netwatch_look(ep->netwatch, 0, NULL, rail->addr,
				       rail->addrlen, &s))
			rail->ifindex = s.ifindex;
	}
}

void lnx_links_close(struct lnx_ep *ep)
{
	lnx_netwatch_close(ep->netwatch);
	ep->netwatch = NULL;
}

void lnx_links_poll(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_net_event ev;
	unsigned i, k;
	int ret = 0;

	for (k = 0; k < EVENTS_MAX; k++) {
		ret = lnx_netwatch_next(ep->netwatch, &ev);
		if (ret != 1)
			break;
		for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
			if (ev.what == LNX_NET_LOST || ep->rail[i]->link_down ||
			    ev.ifindex == ep->rail[i]->ifindex)
				look_at(ep, ep->rail[i], now);
	}
	if (ret < 0) {
		LNX_WARN(FI_LOG_EP_CTRL, "links are no longer watched: %s\n",
			 fi_strerror(-ret));
		lnx_links_close(ep);
	}
}
