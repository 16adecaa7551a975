/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where peers are found: by AV index, by endpoint id, by session id, and by the address
 * that a rail's core has for them.  Declared in core/peer.h and obj/ep.h.
 */
#include "core/peer.h"

#include <stdlib.h>
#include <string.h>

int lnx_peer_tab_set(struct lnx_ep *ep, fi_addr_t addr, struct lnx_peer *peer)
{
	uint64_t chunk = addr >> LNX_AV_CHUNK_BITS;

	if (chunk >= ep->npeer_chunk) {
		uint32_t n = (uint32_t)chunk + 1;
		struct lnx_peer ***tab;

		tab = realloc(ep->peer_tab, n * sizeof(*tab));
		if (!tab)
			return -FI_ENOMEM;
		memset(tab + ep->npeer_chunk, 0,
		       (n - ep->npeer_chunk) * sizeof(*tab));
		ep->peer_tab = tab;
		ep->npeer_chunk = n;
	}
	if (!ep->peer_tab[chunk]) {
		ep->peer_tab[chunk] = calloc(LNX_AV_CHUNK,
					     sizeof(**ep->peer_tab));
		if (!ep->peer_tab[chunk])
			return -FI_ENOMEM;
	}
	ep->peer_tab[chunk][addr & (LNX_AV_CHUNK - 1)] = peer;
	return 0;
}

static void hash_eid(struct lnx_peer *p, struct lnx_peer **tab, uint32_t mask)
{
	uint32_t i = (uint32_t)lnx_mix64(p->eid) & mask;

	p->hash_next = tab[i];
	tab[i] = p;
}

static void hash_sid(struct lnx_peer *p, struct lnx_peer **tab, uint32_t mask)
{
	uint32_t i = (uint32_t)lnx_mix64(p->rx_sid) & mask;

	p->session.hash_next = tab[i];
	tab[i] = p;
}

static void hash_grow(struct lnx_ep *ep)
{
	uint32_t mask = ep->by_eid_mask * 2 + 1;
	struct lnx_peer **eid = calloc(mask + 1ul, sizeof(*eid));
	struct lnx_peer **sid = calloc(mask + 1ul, sizeof(*sid));
	struct lnx_node *n, *tmp;

	if (!eid || !sid) {
		free(eid);
		free(sid);
		return;			/* longer chains, still correct */
	}
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *p = lnx_list_entry(n, struct lnx_peer,
						    all_link);

		if (lnx_life_detached(p->life))
			continue;
		hash_eid(p, eid, mask);
		if (p->rx_sid)
			hash_sid(p, sid, mask);
	}
	free(ep->by_eid);
	free(ep->by_sid);
	ep->by_eid = eid;
	ep->by_sid = sid;
	ep->by_eid_mask = mask;
}

LNX_COLD void lnx_peer_unhash(struct lnx_peer *p)
{
	struct lnx_ep *ep = p->ep;
	struct lnx_peer **at;

	at = &ep->by_eid[(uint32_t)lnx_mix64(p->eid) & ep->by_eid_mask];
	while (*at != p)
		at = &(*at)->hash_next;
	*at = p->hash_next;
	if (!p->rx_sid)
		return;
	at = &ep->by_sid[(uint32_t)lnx_mix64(p->rx_sid) & ep->by_eid_mask];
	while (*at != p)
		at = &(*at)->session.hash_next;
	*at = p->session.hash_next;
}

struct lnx_peer *lnx_peer_known(const struct lnx_ep *ep, uint64_t eid)
{
	struct lnx_peer *p;

	p = ep->by_eid[(uint32_t)lnx_mix64(eid) & ep->by_eid_mask];
	while (p && p->eid != eid)
		p = p->hash_next;
	return p;
}

void lnx_peer_hash(struct lnx_peer *p)
{
	struct lnx_ep *ep = p->ep;

	if (++ep->peers.n > ep->by_eid_mask)
		hash_grow(ep);		/* links p as well */
	if (lnx_peer_known(ep, p->eid) != p)
		hash_eid(p, ep->by_eid, ep->by_eid_mask);
}

LNX_HOT
struct lnx_peer *lnx_peer_by_sid(const struct lnx_ep *ep, uint64_t sid)
{
	struct lnx_peer *p;

	p = ep->by_sid[(uint32_t)lnx_mix64(sid) & ep->by_eid_mask];
	while (p && p->rx_sid != sid)
		p = p->session.hash_next;
	return p;
}

void lnx_peer_pair(struct lnx_peer *peer, uint64_t sid, uint64_t stamp)
{
	struct lnx_ep *ep = peer->ep;

	peer->rx_sid = sid;
	peer->session.rx_stamp = stamp;
	hash_sid(peer, ep->by_sid, ep->by_eid_mask);
}

int lnx_peer_by_core_set(struct lnx_rail *rail, fi_addr_t core_addr,
			 struct lnx_peer *peer)
{
	if (core_addr >= rail->nby_core) {
		size_t n = (core_addr + 64) & ~(size_t)63;
		struct lnx_peer **tab = realloc(rail->by_core, n * sizeof(*tab));

		if (!tab)
			return -FI_ENOMEM;
		memset(tab + rail->nby_core, 0,
		       (n - rail->nby_core) * sizeof(*tab));
		rail->by_core = tab;
		rail->nby_core = n;
	}
	rail->by_core[core_addr] = peer;
	return 0;
}
