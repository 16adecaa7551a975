/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links of the rails of a gateway.  A rail without one takes no frames, and sources are told
 * at once, so that they send over another gateway before anything is lost.
 */
#include <errno.h>

#include "lnxrtd/lnxrtd.h"
#include "os/netwatch.h"

/* Events say only that there is something to look at. */
static void forget_events(struct rtd_links *l)
{
	struct lnx_net_event ev;
	int ret;

	do {
		ret = lnx_netwatch_next(l->watch, &ev);
	} while (ret > 0);
	if (ret < 0)
		rtd_links_close(l);
}

static void look_at(struct rtd_links *l, const struct rtd_ports *ports, unsigned i,
		    uint64_t now)
{
	const struct rtd_port *p = ports->port[i];
	const struct lnx_addr_rail *a = &rtd_port_rail(p)->addr;
	struct lnx_net_state s;
	int ret = lnx_netwatch_look(l->watch, 0, rtd_port_interface(p), a->raw, a->rawlen,
				    &s);

	/* The name of an RDMA device is that of no interface. */
	if (!ret)
		l->known[i] = true;
	if (l->known[i] && (!ret || ret == -ENODEV))
		rtd_relay_rail_up(ports->relay, i, !ret && s.up && s.has_addr, now);
}

void rtd_links_look(struct rtd_links *l, struct rtd_ports *ports, uint64_t now)
{
	unsigned i;

	if (l->watch)
		forget_events(l);
	rtd_own_read(&ports->own);
	for (i = 0; l->watch && i < ports->n; i++)
		look_at(l, ports, i, now);
}

void rtd_links_open(struct rtd_links *l)
{
	if (lnx_netwatch_open(&l->watch))
		l->watch = NULL;
}

int rtd_links_fd(const struct rtd_links *l)
{
	return l->watch ? lnx_netwatch_fd(l->watch) : -1;
}

void rtd_links_close(struct rtd_links *l)
{
	lnx_netwatch_close(l->watch);
	l->watch = NULL;
}
