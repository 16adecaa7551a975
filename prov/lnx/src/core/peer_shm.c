/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers on this host: whether both may use shared memory, and the slots that each has in
 * the other's registry.  Called by core/peer.c.
 */
#include <stdlib.h>

#include "core/exit_monitor.h"
#include "core/kept_region.h"
#include "core/open.h"
#include "core/peer.h"
#include "core/shm_place.h"
#include "core/shm_registry.h"

bool lnx_peer_shm_local(const struct lnx_ep *ep, const struct lnx_addr *a)
{
	return ep->shm && a->has_shm && a->host &&
	       a->host == ep->domain->host;
}

/* ---- names in the core (core/open.h) ---- */

/* The core would count one that is inserted again twice. */
static int insert_turn(struct lnx_ep *ep, uint64_t eid, fi_addr_t *core_addr)
{
	unsigned turn = lnx_host_shm_turn(eid);
	char name[LNX_SHM_NAME_BYTES];
	struct lnx_shm_turn *t;
	int ret;

	for (t = ep->local.turns; t; t = t->next) {
		if (t->eid != eid || t->turn != turn)
			continue;
		*core_addr = t->core;
		return 0;
	}
	t = turn ? calloc(1, sizeof(*t)) : NULL;
	if (turn && !t)
		return -FI_ENOMEM;
	lnx_addr_shm_name(eid, turn, name);
	ret = lnx_rail_insert(ep->shm, name, core_addr);
	if (ret || !turn) {
		free(t);
		return ret;
	}
	*t = (struct lnx_shm_turn) {
		.next = ep->local.turns, .eid = eid, .turn = turn, .core = *core_addr,
	};
	ep->local.turns = t;
	return 0;
}

/* False: the core keeps it, because the next peer at its place would be taken for it
 * (core/shm_place.h). */
static bool remove_turn(struct lnx_ep *ep, fi_addr_t core_addr)
{
	struct lnx_shm_place place = lnx_shm_place_of(ep, core_addr);
	struct lnx_shm_turn **at, *t;

	if (place.fd < 0)
		return false;
	lnx_rail_remove(ep->shm, core_addr);
	lnx_shm_place_vacate(place);
	for (at = &ep->local.turns; (t = *at); at = &t->next) {
		if (t->core != core_addr)
			continue;
		*at = t->next;
		free(t);
		break;
	}
	return true;
}

/* Those of processes that had the name before.  False: the core keeps one. */
static bool remove_turns(struct lnx_ep *ep, uint64_t eid)
{
	struct lnx_shm_turn *t, *next;
	bool removed = true;

	for (t = ep->local.turns; t; t = next) {
		next = t->next;
		if (t->eid == eid)
			removed &= remove_turn(ep, t->core);
	}
	return removed;
}

/* Insert peer into the shm core, which then names it as the source of its messages. */
static bool know_shm(struct lnx_peer *peer)
{
	struct lnx_rail *rail = peer->ep->shm;
	fi_addr_t core_addr;

	if (peer->shm.core != FI_ADDR_NOTAVAIL)
		return true;
	if (insert_turn(peer->ep, peer->eid, &core_addr) ||
	    lnx_peer_by_core_set(rail, core_addr, peer))
		return false;
	peer->shm.core = core_addr;
	/* The core had messages of it before we could name their source. */
	peer->ep->up->source_changed(peer);
	return true;
}

bool lnx_peer_shm_forget(struct lnx_peer *peer)
{
	struct lnx_rail *rail = peer->ep->shm;
	bool removed;

	rail->by_core[peer->shm.core] = NULL;
	removed = remove_turn(peer->ep, peer->shm.core);
	lnx_kept_region_forget(peer->ep, peer->eid);
	lnx_peer_clear_direct(peer);
	peer->shm_addr = peer->shm.core = FI_ADDR_NOTAVAIL;
	peer->shm.counts = &lnx_shm_registry_no_counts;
	peer->shm.unsettled = NULL;
	peer->shm.reach = NULL;
	lnx_shm_registry_close(peer->shm.registry);
	peer->shm.registry = NULL;
	lnx_exit_monitor_forget(peer);
	return removed;
}

/* Remove from the core a peer that it knows only because that peer sent something. */
static bool forget_registered(struct lnx_ep *ep, uint64_t eid)
{
	fi_addr_t core_addr;

	return !insert_turn(ep, eid, &core_addr) && remove_turn(ep, core_addr);
}

/* With fewer free slots than this, look for more: new peers that get no slot are told
 * so before we know of them. */
#define SLOTS_LOW	32
/* And after so many more were taken: the region of each dead peer, of some 4 MiB, takes
 * memory of the node until no process maps it. */
#define SLOTS_MORE	32

static bool reclaim_due(const struct lnx_ep *ep, unsigned taken)
{
	return taken > LNX_SHM_SLOTS - SLOTS_LOW || taken >= ep->local.slots_taken + SLOTS_MORE;
}

static unsigned slots_taken(const struct lnx_ep *ep)
{
	return LNX_SHM_SLOTS - lnx_shm_slots_free(ep->local.registry);
}

/*
 * Free the slots of dead endpoints.  A peer that the application still has in the AV
 * keeps its slot.  So does a peer whose large messages the core may have in part (one
 * without a registry): the core would look for the rest at the wrong place.
 */
static LNX_COLD void registry_reclaim(struct lnx_ep *ep)
{
	unsigned i, taken = slots_taken(ep);
	bool polled = false;

	if (!reclaim_due(ep, taken))
		return;
	ep->local.slots_taken = taken;
	if (!lnx_shm_places_found(ep))
		return;
	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t eid = lnx_shm_slot_peer(ep->local.registry, i);
		struct lnx_peer *peer;
		bool removed;

		if (!eid || eid == ep->eid ||
		    (ep->av && lnx_av_find(ep->av, eid) != FI_ADDR_NOTAVAIL) ||
		    !lnx_shm_registry_dead(eid))
			continue;
		/* Read what it sent before it ended. */
		if (!polled)
			ep->up->poll_direct(ep);
		polled = true;
		peer = lnx_peer_known(ep, eid);
		if (peer && !peer->shm.ctrl)
			continue;
		if (peer && peer->shm.core != FI_ADDR_NOTAVAIL)
			removed = lnx_peer_shm_forget(peer);
		else
			removed = forget_registered(ep, eid);
		/* Its process has ended, and it is not in the AV: it is freed. */
		if (peer)
			lnx_peer_detach(peer);
		removed &= remove_turns(ep, eid);
		lnx_kept_region_forget(ep, eid);
		/* A place of the core for each slot. */
		if (removed)
			lnx_shm_slot_release(ep->local.registry, i);
	}
	ep->local.slots_taken = slots_taken(ep);
}

static LNX_COLD bool foreign(struct lnx_peer *peer)
{
	FI_WARN_ONCE(&lnx_prov, FI_LOG_AV,
		     "peer %016llx, on this host, is of another user (we are user %u): shared memory is used by processes of one user, others are reached over the network rails of the link\n",
		     (unsigned long long)peer->eid, peer->ep->local.user);
	/* This is final: a message must not overtake one on the network. */
	peer->shm.unusable = true;
	return false;
}

/* Is peer on this host, and may each of us open the other's memory? */
static bool meets(struct lnx_peer *peer)
{
	switch (lnx_host_meet(peer->ep, peer->eid)) {
	case LNX_HOST_MEETS:
		return true;
	case LNX_HOST_FOREIGN:
		return foreign(peer);
	default:
		return false;
	}
}

/*
 * Take a slot in peer's registry, and watch its process.  False: there is no slot, or
 * the process no longer belongs to our user.
 */
static bool claim_slot(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_shm_registry *registry;

	if (peer->shm.registry || lnx_shm_registry_find(peer->eid, &registry))
		return true;		/* a peer without a registry */
	lnx_shm_registry_owner(registry, &peer->shm.where);
	if (!lnx_host_same_user(ep, peer->shm.where.pid)) {
		lnx_shm_registry_close(registry);
		return foreign(peer);
	}
	if (lnx_shm_slot_claim(registry, ep->eid)) {
		lnx_shm_registry_close(registry);
		return false;
	}
	peer->shm.registry = registry;
	peer->shm.counts = lnx_shm_registry_counts(registry);
	peer->shm.unsettled = lnx_shm_slot_unsettled(registry, ep->eid);
	/* Otherwise lnx copies: the core would move all data through its own buffers, and
	 * while it cannot complete that, it takes nothing else for the peer. */
	if (!peer->self && !ep->conf->disable_cma)
		peer->shm.reach = lnx_shm_slot_reach(registry, ep->eid);
	peer->shm.ctrl = true;
	peer->shm.sure = lnx_exit_monitor_watch(peer);
	return true;
}

/*
 * May we and peer use shared memory?  Each needs a slot in the other's registry.  An
 * endpoint that has no slot to give says so first, so that none is taken in vain.
 */
static bool agree(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (!ep->local.registry)
		return true;
	registry_reclaim(ep);
	return lnx_shm_slot_available(ep->local.registry, peer->eid) && claim_slot(peer) &&
	       !lnx_shm_slot_claim(ep->local.registry, peer->eid);
}

bool lnx_peer_shm_join(struct lnx_peer *peer, const struct lnx_addr *a)
{
	if (peer->shm.unusable || !lnx_peer_shm_local(peer->ep, a) || !meets(peer))
		return false;
	if (!agree(peer) || !know_shm(peer)) {
		if (peer->shm.unusable)
			return false;	/* a warning was given */
		FI_WARN_ONCE(&lnx_prov, FI_LOG_AV,
			     "shm takes no more local peers: this endpoint or the other knows %u already; such peers are reached over the network rails\n",
			     LNX_SHM_SLOTS);
		/* This is final: a message must not overtake one on the network. */
		peer->shm.unusable = true;
		return false;
	}
	peer->shm_addr = peer->shm.core;
	/* It may know an endpoint of our name whose process has ended. */
	if (peer->ep->address.want && peer->shm.ctrl && !peer->self)
		peer->ep->up->greet_local(peer);
	peer->shm.reaches = !peer->shm.ctrl;
	lnx_peer_set_direct(peer);
	return true;
}

/* The source is in our registry, and so is every other possible one: insert all of them. */
LNX_COLD void lnx_peer_shm_sources(struct lnx_ep *ep)
{
	unsigned i;

	ep->local.unknown_source = false;
	for (i = 0; ep->local.registry && i < LNX_SHM_SLOTS; i++) {
		uint64_t eid = lnx_shm_slot_peer(ep->local.registry, i);
		struct lnx_addr a = { .eid = eid };
		struct lnx_peer *peer;

		if (!eid)
			continue;
		peer = lnx_peer_by_eid(ep, eid);
		if (!peer && lnx_host_meet(ep, eid) == LNX_HOST_MEETS)
			peer = lnx_peer_unsolicited(ep, &a);
		/* A peer that took a slot in our registry gave us one in its own. */
		if (peer && peer->shm.core == FI_ADDR_NOTAVAIL &&
		    !peer->shm.unusable && meets(peer) && claim_slot(peer))
			know_shm(peer);
	}
}

LNX_COLD void lnx_peer_shm_registered(struct lnx_ep *ep)
{
	lnx_peer_shm_sources(ep);
	if (ep->local.registry)
		registry_reclaim(ep);
}

/* ---- another endpoint has the name of a peer ---- */

static bool has_heir(const struct lnx_peer *peer)
{
	const struct lnx_cma_owner *was = &peer->shm.where;
	struct lnx_shm_registry *registry;
	struct lnx_cma_owner is;

	if (!peer->shm.registry || peer->self || lnx_shm_registry_find(peer->eid, &registry))
		return false;
	lnx_shm_registry_owner(registry, &is);
	lnx_shm_registry_close(registry);
	/* Opened again in the same process it may have all of these in common. */
	return is.cookie && (is.pid != was->pid || is.started != was->started ||
			     is.cookie != was->cookie ||
			     !lnx_shm_registry_is_live(peer->shm.registry));
}

/* The core knows the new endpoint by another name, and keeps that of the old one. */
LNX_COLD void lnx_peer_shm_renew(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	fi_addr_t core = peer->shm.core;
	bool unsolicited = peer->unsolicited || peer->addr == FI_ADDR_NOTAVAIL;
	struct lnx_addr a = { .eid = peer->eid };
	struct lnx_peer *next;
	uint8_t *reach;

	if (core == FI_ADDR_NOTAVAIL || !has_heir(peer))
		return;
	LNX_INFO(FI_LOG_EP_DATA, "peer %016llx: another endpoint has its name now\n",
		 (unsigned long long)peer->eid);
	/* What is outstanding to the old process fails in a pass: msg/local_exit.c. */
	lnx_peer_happens(peer, LNX_LIFE_ENDED);
	lnx_peer_clear_direct(peer);
	peer->shm_addr = peer->shm.core = FI_ADDR_NOTAVAIL;
	peer->shm.unusable = true;
	ep->shm->by_core[core] = NULL;
	lnx_peer_detach(peer);
	lnx_ep_watch_local(ep);
	reach = ep->local.registry ? lnx_shm_slot_reach(ep->local.registry, a.eid) : NULL;
	if (reach)
		__atomic_store_n(reach, 0, __ATOMIC_RELAXED);
	next = unsolicited ? lnx_peer_unsolicited(ep, &a) : lnx_peer_by_eid(ep, a.eid);
	/* Without memory its next message makes it. */
	if (!next)
		return;
	if (next->shm.core == FI_ADDR_NOTAVAIL && claim_slot(next))
		know_shm(next);
}

bool lnx_peer_meet(struct lnx_peer *peer)
{
	if (peer->shm.core != FI_ADDR_NOTAVAIL)
		return true;
	/* Its name leads to the process that has it now, whose operations have the same
	 * numbers: an answer would end one of these. */
	return !lnx_life_detached(peer->life) && meets(peer) && claim_slot(peer) &&
	       know_shm(peer);
}
