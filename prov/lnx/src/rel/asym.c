/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames that no route leads back for, and gateways that are not known.  See asym.h. */
#include "rel/asym.h"

#include "base/interval.h"
#include "core/routes.h"
#include "wire/hdr.h"

/* ---- from which net ---- */

static bool has_path_over(const struct lnx_peer *peer, const struct lnx_gw *gw)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (lnx_rail_is_leg(peer->path[i]->rail) && !peer->path[i]->detect.withdrawn &&
		    lnx_container_of(peer->path[i]->rail, struct lnx_leg,
				     rail)->gw->process == gw->process)
			return true;
	return false;
}

/* The rail of its sender that a frame left by.  peer: NULL, not known.  False: only a HELLO
 * says that then. */
static LNX_COLD bool origin(const struct lnx_peer *peer, const struct lnx_hdr *h,
			    const uint8_t *frame, size_t len, struct lnx_addr_rail *from)
{
	const struct lnx_addr_rail *rail;
	struct lnx_rails rails;
	struct lnx_addr a;

	if (peer) {
		if (!lnx_peer_rails(peer, &rails))
			return false;
	} else {
		if (h->kind != LNX_KIND_HELLO ||
		    len < sizeof(struct lnx_wire_hdr) + LNX_ADDR_BYTES ||
		    lnx_addr_unpack(&a, frame + sizeof(struct lnx_wire_hdr), LNX_ADDR_BYTES,
				    NULL, 0))
			return false;
		lnx_rails_of_addr(&rails, &a);
	}
	rail = lnx_rails_find(&rails, h->rail);
	if (rail)
		*from = *rail;
	return rail;
}

/* The sender has no path over the gateway.  True: the frame is dropped. */
static LNX_COLD bool asymmetric(struct lnx_leg *leg, const struct lnx_route_env *env,
				const struct lnx_addr_rail *from)
{
	struct lnx_gateways *all = leg->gw->all;
	struct lnx_ep *ep = all->ep;

	if (lnx_routes_lead_back(leg->gw, from))
		return false;
	ep->stats.asym_frames++;
	leg->asym_frames++;
	all->asym = leg->gw;
	all->asym_from = *from;
	all->asym_hops = env->hops_done;
	if (ep->conf->learn_routes) {
		all->learn = true;
		lnx_ep_due(ep, LNX_DUE_GATEWAYS, 0);
		return false;
	}
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: frames come over this gateway from a network that no route over it leads to%s\n",
		       leg->rail.name, ep->conf->drop_asym_route ? "; dropped" : "");
	return ep->conf->drop_asym_route;
}

bool lnx_asym_may_come(struct lnx_leg *leg, const struct lnx_route_env *env,
		       const uint8_t *frame)
{
	const struct lnx_peer *peer;
	struct lnx_addr_rail from;
	struct lnx_hdr h;

	if (lnx_hdr_get(&h, frame, env->len))
		return true;
	peer = lnx_peer_by_sid(leg->rail.ep, h.src);
	return (peer && has_path_over(peer, leg->gw)) ||
	       !origin(peer, &h, frame, env->len, &from) || !asymmetric(leg, env, &from);
}

/* ---- over which gateway ---- */

/*
 * Something came over a gateway that is not known: ask which of ours it is, so that answers go
 * back over the same one.  If all have said their ids, one of them may have begun anew.
 */
static LNX_COLD void ask_ids(struct lnx_gateways *all, uint64_t id, uint64_t now)
{
	bool any = false;
	unsigned i;

	if (id != all->unknown)
		all->unknown_pause_ns = 0;
	else if (lnx_ns_since(now, all->unknown_ns) < all->unknown_pause_ns)
		return;
	all->unknown = id;
	all->unknown_ns = now;
	all->unknown_pause_ns = LNX_MIN(LNX_MAX(2 * all->unknown_pause_ns, LNX_GATEWAY_UNKNOWN_NS),
					LNX_GATEWAY_UNKNOWN_MAX_NS);
	for (i = 0; i < all->n; i++) {
		any |= !all->gw[i]->wanted;
		all->gw[i]->wanted = true;
	}
	for (i = 0; !any && i < all->n; i++)
		lnx_route_gateway_maybe_anew(&all->gw[i]->process->state, now);
	lnx_ep_due(all->ep, LNX_DUE_GATEWAYS, 0);
}

LNX_COLD bool lnx_asym_foreign(struct lnx_gateways *all, uint64_t id, uint64_t now)
{
	bool drop = all->ep->conf->drop_asym_route;

	ask_ids(all, id, now);
	/* What is dropped comes again; by then ours have answered. */
	all->ep->stats.asym_frames += drop || all->unknown_pause_ns > LNX_GATEWAY_UNKNOWN_NS;
	return drop;
}
