/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks whether local peers' processes have ended, and ends what is outstanding to
 * them.  See local_exit.h.
 */
#include "msg/local_exit.h"

#include <errno.h>
#include <signal.h>

#include "base/interval.h"
#include "os/cma.h"
#include "os/pidwatch.h"
#include "core/exit_monitor.h"
#include "core/shm_registry.h"
#include "msg/parts.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/rail.h"
#include "rma/copy.h"

static LNX_COLD void died(struct lnx_peer *peer, const char *why)
{
	LNX_INFO(FI_LOG_EP_DATA, "peer %016llx: %s\n",
		 (unsigned long long)peer->eid, why);
	lnx_exit_monitor_forget(peer);
	lnx_peer_clear_direct(peer);
	peer->shm_addr = FI_ADDR_NOTAVAIL;
	peer->shm.unusable = true;
	peer->ep->stats.local_exits++;
	/* This is normal when a job ends: no warning. */
	lnx_peer_happens(peer, LNX_LIFE_FAILED);
	lnx_fetch_fail_peer(peer);
	lnx_parts_fail_peer(peer, FI_ECONNRESET);
	if (!peer->nrndv && !peer->shm.nqueued && !peer->rma.n_segments && !peer->rma.rkeys &&
	    !peer->npath && !peer->confirm.n && !peer->shm.nflight)
		return;
	lnx_rel_peer_failed(peer, FI_ECONNRESET);
	lnx_direct_fail(peer, FI_ECONNRESET);
	lnx_confirm_fail(peer, FI_ECONNRESET);
	lnx_rma_peer_died(peer, FI_ECONNRESET);
}

void lnx_local_exit_look(struct lnx_ep *ep)
{
	struct lnx_peer *peer;
	bool polled = false;

	while ((peer = lnx_exit_monitor_next(ep))) {
		/* Read its last messages: perhaps it has read what we sent. */
		if (!polled && !lnx_rxe_low(ep))
			lnx_rx_poll_direct(ep);
		polled = true;
		died(peer, "its process has ended");
	}
}

/* ---- peers without a descriptor ---- */

/* It was not found when we met it.  Does no process of its number exist, or a later one? */
static LNX_COLD bool has_ended(const struct lnx_peer *peer)
{
	const struct lnx_cma_owner *o = &peer->shm.where;
	uint64_t started;

	/* It may be a number of another name space. */
	if (peer->ep->conf->host_id || o->pid <= 0)
		return false;
	if (kill(o->pid, 0))
		return errno == ESRCH;
	started = lnx_pidwatch_started(o->pid);
	return o->started && started && started != o->started;
}

/* True also for a process that lives, and has closed its endpoint. */
static bool is_dead(const struct lnx_peer *peer)
{
	/* Another process has its name: lnx_peer_shm_renew. */
	if (lnx_life_detached(peer->life))
		return true;
	if (peer->shm.registry && !lnx_shm_registry_is_live(peer->shm.registry))
		return true;
	if (!peer->shm.sure)
		return has_ended(peer);
	switch (lnx_cma_ask(&peer->shm.where)) {
	case 0:
		return false;
	case ESRCH:
		return true;
	default:
		/* Its memory may not be read. */
		return kill(peer->shm.where.pid, 0) && errno == ESRCH;
	}
}

/* A peer whose last check was 256 rounds ago is checked in the next one. */
static bool seems_dead(struct lnx_peer *peer)
{
	if (peer->shm.round == peer->ep->local.round)
		return false;
	peer->shm.round = peer->ep->local.round;
	if (!is_dead(peer)) {
		peer->shm.miss = false;
		return false;
	}
	/* Its last message may be here, and not yet read. */
	if (!peer->shm.miss) {
		peer->shm.miss = true;
		return false;
	}
	return true;
}

/* Does the core have operations on memory that it may complete? */
static bool rma_due(const struct lnx_ep *ep)
{
	return ep->local.nrma_core > ep->local.lost.shm.nflight;
}

static struct lnx_peer *find_dead(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	ep->local.round++;
	lnx_list_foreach(&ep->rndv.announced, n, tmp) {
		struct lnx_rndv *rndv = lnx_list_entry(n, struct lnx_rndv, link);

		if (rndv->here && seems_dead(rndv->peer))
			return rndv->peer;
	}
	lnx_list_foreach(&ep->local.copies, n, tmp) {
		struct lnx_rxe *rxe = lnx_list_entry(n, struct lnx_rxe, link);

		if (seems_dead(rxe->peer))
			return rxe->peer;
	}
	lnx_list_foreach(&ep->local.queued_peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, shm.queue_link);

		/* Of other peers nothing is known. */
		if (peer->shm.ctrl && seems_dead(peer))
			return peer;
	}
	for (n = ep->peers.all.next; (ep->local.nconfirm || rma_due(ep) ||
				      ep->local.npushed) &&
	     n != &ep->peers.all; n = n->next) {
		struct lnx_peer *peer =
			lnx_container_of(n, struct lnx_peer, all_link);

		if ((peer->confirm.n || peer->shm.nflight ||
		     lnx_parts_expected(peer)) && seems_dead(peer))
			return peer;
	}
	return NULL;
}

static void probe(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_peer *peer = find_dead(ep);

	ep->local.probe_ns = peer ? 0 : now + LNX_EXIT_PROBE_NS;
	if (peer)
		died(peer, "its process has ended, or its endpoint is closed");
}

static bool any_due(const struct lnx_ep *ep)
{
	const struct lnx_node *n;

	if (!lnx_list_empty(&ep->local.queued_peers) ||
	    !lnx_list_empty(&ep->local.copies) || ep->local.npushed ||
	    ep->local.nconfirm || rma_due(ep))
		return true;
	for (n = ep->rndv.announced.next; n != &ep->rndv.announced; n = n->next)
		if (lnx_container_of(n, struct lnx_rndv, link)->here)
			return true;
	return false;
}

uint64_t lnx_local_exit_run(struct lnx_ep *ep, uint64_t now)
{
	ep->local.watch_ns = now + LNX_EXIT_LOOK_NS;
	lnx_local_exit_look(ep);
	if (now >= ep->local.probe_ns)
		probe(ep, now);
	return any_due(ep) ? ep->local.watch_ns : LNX_NEVER;
}
