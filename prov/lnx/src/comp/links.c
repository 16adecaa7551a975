/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watches the links of an endpoint's rails, and adds rails for new interfaces: see
 * links.h.
 */
#include "comp/links.h"

#include "base/interval.h"
#include "comp/rails.h"
#include "core/hotplug.h"
#include "os/ibwatch.h"
#include "os/netwatch.h"
#include "core/nic.h"
#include "core/open.h"
#include "core/policy.h"
#include "rel/rel.h"
#include "rma/rkey.h"
#include "msg/tx.h"

#define EVENTS_MAX	64		/* in one pass; the rest waits */

/* What is the state now?  Events may be out of date. */
static LNX_COLD void look_at(struct lnx_ep *ep, struct lnx_rail *rail,
			     uint64_t now)
{
	bool told = false, unsure = false, up = true;
	struct lnx_net_state s;
	int ret;

	if (lnx_rail_kind_local(rail->kind))
		return;
	if (rail->ifindex) {
		/* Looked up by address: an interface that is made again has another
		 * index. */
		ret = lnx_netwatch_look(ep->links.netwatch, 0, NULL, rail->addr,
					rail->addrlen, &s);
		unsure = ret && ret != -ENODEV;
		told = !unsure;
		if (!ret)
			rail->ifindex = s.ifindex;
		if (told)
			up = !ret && s.up && s.has_addr;
	}
	if (rail->devwatch) {
		ret = lnx_netwatch_look(rail->devwatch, 0, NULL, NULL, 0, &s);
		unsure |= ret && ret != -ENODEV;
		if (!ret || ret == -ENODEV) {
			told = true;
			up &= !ret && s.up;
		}
	}
	/* If one of the two says that it is down, it is down. */
	if (told && !(up && unsure))
		lnx_rel_link(rail, up ? LNX_REL_LINK_UP : LNX_REL_LINK_DOWN, now);
}

/* ---- RDMA devices ---- */

/*
 * The interface of the same hardware may not see its failure, or there may be no
 * interface.
 */
static LNX_COLD void watch_device(struct lnx_rail *rail)
{
	const struct fid_nic *nic = rail->info->nic;

	if (!nic || !nic->device_attr || !nic->device_attr->name)
		return;
	if (lnx_ibwatch_open(nic->device_attr->name, 0, &rail->devwatch)) {
		rail->devwatch = NULL;
		return;
	}
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: device %s is watched\n", rail->name,
		 nic->device_attr->name);
}

static void poll_device(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_net_event ev;
	unsigned k;
	int ret = 0;

	if (lnx_likely(!rail->devwatch) || rail->devgone)
		return;
	for (k = 0; k < EVENTS_MAX; k++) {
		ret = lnx_netwatch_next(rail->devwatch, &ev);
		if (ret != 1)
			break;
		look_at(rail->ep, rail, now);
	}
	if (ret >= 0)
		return;
	/* Its descriptor would wake every sleeper for ever.  A query still answers that
	 * there is no such device. */
	rail->devgone = true;
	lnx_rails_wait_del(rail->ep, lnx_netwatch_fd(rail->devwatch));
	LNX_WARN(FI_LOG_EP_CTRL, "rail %s: its device is gone: %s\n",
		 rail->name, fi_strerror(-ret));
	look_at(rail->ep, rail, now);
}

/* ---- new interfaces ---- */

static void find_link(struct lnx_rail *rail)
{
	struct lnx_net_state s;

	if (!lnx_netwatch_look(rail->ep->links.netwatch, 0, NULL, rail->addr,
			       rail->addrlen, &s))
		rail->ifindex = s.ifindex;
}

static LNX_COLD bool add(struct lnx_ep *ep, const struct lnx_rail_spec *spec)
{
	struct lnx_rail *rail;

	if (ep->nrail == LNX_RAILS_MAX) {
		FI_WARN_ONCE(&lnx_prov, FI_LOG_EP_CTRL,
			     "interface %s is not used: there are %u rails already\n",
			     spec->dom, ep->nrail);
		return false;
	}
	if (lnx_rails_add(ep, spec, NULL))
		return false;
	rail = ep->rail[ep->nrail - 1];
	if (lnx_rails_wait_add(ep, rail->wait_fd))
		LNX_INFO(FI_LOG_EP_CTRL,
			 "rail %s: a sleeping thread is not woken for it\n", rail->name);
	find_link(rail);
	watch_device(rail);
	if (rail->devwatch)
		(void)lnx_rails_wait_add(ep, lnx_netwatch_fd(rail->devwatch));
	ep->stats.rails_added++;
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: added\n", rail->name);
	return true;
}

/* The interface of a rail has a new address. */
static LNX_COLD void move(struct lnx_rail *rail, struct lnx_rail_spec *spec,
			  uint64_t now)
{
	struct fi_info *old = rail->info;

	rail->info = spec->info;
	spec->info = old;
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: has another address\n", rail->name);
	lnx_rel_link(rail, LNX_REL_LINK_MOVED, now);
	find_link(rail);
	look_at(rail->ep, rail, now);
}

static LNX_COLD void grow(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_hotplug_rail come[LNX_RAILS_MAX];
	struct lnx_node *n, *tmp;
	unsigned i, count;
	bool more = false;

	ep->links.hotplug = false;
	ep->links.hotplug_ns = now + LNX_HOTPLUG_LOOK_NS;
	count = lnx_hotplug_find(ep, come, LNX_RAILS_MAX);
	for (i = 0; i < count; i++) {
		if (come[i].was)
			move(come[i].was, &come[i].spec, now);
		else
			more |= add(ep, &come[i].spec);
		fi_freeinfo(come[i].spec.info);
	}
	if (!more)
		return;
	lnx_nics_place(ep);
	if (lnx_ep_address(ep))
		return;
	lnx_policy_rails(ep);
	lnx_peers_extend(ep);
	lnx_list_foreach(&ep->peers.all, n, tmp)
		lnx_rel_hello(lnx_list_entry(n, struct lnx_peer, all_link), true);
}

/* ---- watching ---- */

void lnx_links_open(struct lnx_ep *ep)
{
	uint32_t i;
	int ret;

	if ((ep->nnet < 2 && !ep->domain->rails->nopen) || !ep->nnet ||
	    ep->native || ep->links.netwatch || !ep->plan.step[LNX_CLASS_OK])
		return;
	ret = lnx_netwatch_open(&ep->links.netwatch);
	if (ret) {
		ep->links.netwatch = NULL;
		LNX_INFO(FI_LOG_EP_CTRL,
			 "links are not watched (%s): a rail that fails is detected only by its silence\n",
			 fi_strerror(-ret));
		return;
	}
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		find_link(ep->rail[i]);
		watch_device(ep->rail[i]);
	}
}

void lnx_links_close(struct lnx_ep *ep)
{
	uint32_t i;

	for (i = 0; i < ep->nrail; i++) {
		lnx_netwatch_close(ep->rail[i]->devwatch);
		ep->rail[i]->devwatch = NULL;
	}
	lnx_netwatch_close(ep->links.netwatch);
	ep->links.netwatch = NULL;
}

void lnx_links_poll(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_net_event ev;
	unsigned i, k;
	int ret = 0;

	for (k = 0; k < EVENTS_MAX; k++) {
		ret = lnx_netwatch_next(ep->links.netwatch, &ev);
		if (ret != 1)
			break;
		ep->links.hotplug |= ev.up || ev.what == LNX_NET_LOST;
		for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
			if (ev.what == LNX_NET_LOST || ep->rail[i]->link_down ||
			    ev.ifindex == ep->rail[i]->ifindex)
				look_at(ep, ep->rail[i], now);
	}
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		poll_device(ep->rail[i], now);
	if (ep->links.hotplug && now >= ep->links.hotplug_ns && !ep->closing)
		grow(ep, now);
	if (ret < 0) {
		LNX_WARN(FI_LOG_EP_CTRL, "links are no longer watched: %s\n",
			 fi_strerror(-ret));
		/*
		 * A forked child may have copies of them, which would wake us for ever.
		 */
		lnx_rails_wait_del(ep, lnx_netwatch_fd(ep->links.netwatch));
		for (i = 0; i < ep->nrail; i++)
			if (ep->rail[i]->devwatch && !ep->rail[i]->devgone)
				lnx_rails_wait_del(ep, lnx_netwatch_fd(
						   ep->rail[i]->devwatch));
		lnx_links_close(ep);
	}
}

/* Is anything of interest now that a link does? */
static bool matters(const struct lnx_ep *ep, uint64_t now)
{
	uint32_t own = 0, i;

	for (i = 0; i < LNX_DUE_N; i++)
		own += lnx_timer_armed(&ep->due.own[i]);
	/* Any peer is looked at, or an acknowledgement has just left, or interfaces that
	 * came are still to be looked for. */
	if (ep->due.timers.n > own || now < ep->links.watch_until_ns ||
	    (ep->links.hotplug && !ep->closing))
		return true;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i]->link_down)
			return true;
	return false;
}

uint64_t lnx_links_look(struct lnx_ep *ep, uint64_t now)
{
	if (ep->links.netwatch)
		lnx_links_poll(ep, now);
	if (!ep->links.netwatch || !matters(ep, now))
		return LNX_NEVER;
	return now + (ep->links.several ? LNX_LINKS_SEVERAL_NS : LNX_LINKS_ONE_NS);
}

/* Our hello names our session.  Without it the peer takes nothing from us, not even an
 * acknowledgement. */
static LNX_COLD void greet(struct lnx_peer *peer)
{
	lnx_rkeys_outdate(peer);
	if (!peer->hello_done && peer->npath && !lnx_peer_dead(peer))
		lnx_rel_hello(peer, false);
}

LNX_COLD void lnx_links_learn(struct lnx_ep *ep)
{
	/* When a peer gets a new rail, we may have one too. */
	if (ep->links.netwatch)
		lnx_links_poll(ep, lnx_clock_ns());
	lnx_peers_join(ep, greet);
}
