/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of peers: their sessions end, the next ones take their ids and addresses, and
 * they are freed when nothing refers to them.  rel/life.h has the states.  Declared in
 * obj/ep.h.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/interval.h"
#include "core/exit_monitor.h"
#include "core/open.h"
#include "os/ping.h"
#include "core/policy.h"
#include "core/shm_registry.h"
#include "obj/ep.h"
#include "obj/gateway.h"

void lnx_peer_ended(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (!lnx_list_linked(&peer->session.ended_link))
		lnx_list_add_tail(&ep->peers.ended, &peer->session.ended_link);
	if (!peer->session.ended_ms)
		peer->session.ended_ms = lnx_stamp_ms(lnx_clock_ns());
	lnx_ep_due(ep, LNX_DUE_REAP, ep->due.reap_ns);
}

bool lnx_peer_may_begin(const struct lnx_peer *peer, uint64_t now)
{
	/* Over shared memory only the next process begins it: lnx_peer_shm_renew. */
	return !peer->self && peer->shm.core == FI_ADDR_NOTAVAIL &&
	       (peer->session.alive ||
		lnx_ns_since_stamp(now, peer->session.ended_ms) >= LNX_SESSION_BEGIN_NS);
}

LNX_COLD void lnx_peer_detach(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	fi_addr_t addr = peer->addr;

	if (lnx_life_detached(peer->life))
		return;
	lnx_peer_unhash(peer);
	/* HELLOs from before now are old, and nothing else would show it. */
	if (peer->rx_sid)
		ep->refusals.hello_nonce = 0;
	ep->peers.n--;
	if (ep->last_from == peer)
		ep->last_from = NULL;
	if (addr != FI_ADDR_NOTAVAIL && lnx_peer_get(ep, addr) == peer)
		ep->peer_tab[addr >> LNX_AV_CHUNK_BITS]
			    [addr & (LNX_AV_CHUNK - 1)] = NULL;
	if (peer->unsolicited) {
		peer->unsolicited = false;
		ep->peers.n_unsolicited--;
	}
	lnx_list_del(&peer->address.learn_link);
	lnx_peer_happens(peer, LNX_LIFE_DETACH);
	lnx_peer_ended(peer);
	lnx_list_del(&peer->session.ended_link);
	lnx_list_add_head(&ep->peers.ended, &peer->session.ended_link);
}

/* Does anything refer to it? */
static bool unused(const struct lnx_peer *p)
{
	unsigned i;

	if (!lnx_peer_dead(p) || p->nheld || p->n_clones || p->nrndv || p->rma.n_segments ||
	    p->pull.n || p->rma.n_served || p->rma.n_reads || p->chan.nqueued || lnx_peer_nthrottled(p) || p->shm.nqueued ||
	    p->confirm.n || p->shm.nflight || p->confirm.n_answers || !lnx_list_empty(&p->stored) ||
	    p->shm.core != FI_ADDR_NOTAVAIL ||
	    lnx_list_linked(&p->pump_link) || lnx_list_linked(&p->ack_link) ||
	    lnx_list_linked(&p->shm.queue_link))
		return false;
	for (i = 0; i < p->npath; i++)
		if (p->path[i]->nread || !lnx_list_empty(&p->path[i]->reads) ||
		    !lnx_list_empty(&p->path[i]->gets))
			return false;
	return true;
}

static void forget_ping(const struct lnx_path *path)
{
	struct lnx_host_ask *ask;

	if (!path->detect.ping)
		return;
	ask = lnx_container_of(path->detect.ping, struct lnx_host_ask, ping);
	lnx_ping_stop(&ask->ping);
	lnx_list_del(&ask->link);
	free(ask);
}

static void peer_free(struct lnx_peer *p)
{
	struct lnx_node *q;
	unsigned i;

	lnx_timer_cancel(&p->ep->due.timers, &p->look);
	lnx_timer_cancel(&p->ep->due.timers, &p->retry);
	lnx_timers_release(&p->ep->due.timers, LNX_PEER_TIMERS);
	/* Buffers that it holds still go with the endpoint: lnx_recv_ooo_free. */
	while (lnx_seq_drain(&p->chan.rx))
		;
	lnx_chan_fini(&p->chan);
	free(p->rma.put_keys);
	/* Of a push that was coming, and whose receive has gone, nothing else is left. */
	if (p->eager)
		p->ep->local.npushed -= p->eager->pushed;
	free(p->eager);
	/* Queued direct sends are plain heap memory, link first. */
	while ((q = lnx_list_pop(&p->shm.queue)))
		free(q);
	lnx_shm_registry_close(p->shm.registry);
	lnx_exit_monitor_forget(p);
	for (i = 0; i < p->npath; i++)
		forget_ping(p->path[i]);
	free(p->first.speed);
	free(p->first.counts);
	/* One may be here that no core took. */
	for (i = 1; i < LNX_PATHS_MAX; i++) {
		if (p->path[i]) {
			free(p->path[i]->speed);
			free(p->path[i]->counts);
		}
		free(p->path[i]);
	}
	free(p->address.rails);
	free(p);
}

/* It may come back and use the session that was given up.  The keepalive gives up only
 * those whose processes are gone. */
static bool is_told(const struct lnx_peer *p)
{
	return lnx_life_given_up(p->life) && !p->session.keepalive;
}

/* The session must not begin again if its first frames come again.  False: memory is short. */
static bool remember(struct lnx_ep *ep, uint64_t sid)
{
	struct lnx_ep_refusals *r = &ep->refusals;

	if (!r->given_up)
		r->given_up = calloc(LNX_GIVEN_UP_MAX, sizeof(*r->given_up));
	if (!r->given_up)
		return false;
	r->given_up[r->n_given_up++ % LNX_GIVEN_UP_MAX] = sid;
	return true;
}

LNX_COLD bool lnx_peer_was_given_up(const struct lnx_ep *ep, uint64_t sid)
{
	const struct lnx_ep_refusals *r = &ep->refusals;
	uint32_t i;

	for (i = 0; i < LNX_MIN(r->n_given_up, LNX_GIVEN_UP_MAX); i++)
		if (r->given_up[i] == sid)
			return true;
	return false;
}

/* Peers that stay, because they are in the AV, need no descriptors. */
static void stop_pings(struct lnx_peer *p)
{
	unsigned i;

	for (i = 0; i < p->npath; i++)
		if (p->path[i]->detect.ping)
			lnx_ping_stop(p->path[i]->detect.ping);
}

LNX_COLD uint64_t lnx_peers_reap(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;
	bool more = false;
	unsigned i;

	ep->due.reap_ns = now + LNX_REAP_LOOK_NS;
	lnx_list_foreach(&ep->peers.ended, n, tmp) {
		struct lnx_peer *p = lnx_list_entry(n, struct lnx_peer,
						    session.ended_link);

		/* In the AV it waits for the next send, or the next session. */
		if (!lnx_life_detached(p->life) && p->addr == FI_ADDR_NOTAVAIL &&
		    p->shm.core == FI_ADDR_NOTAVAIL && !p->self &&
		    lnx_ns_since_stamp(now, p->session.ended_ms) >=
			    (is_told(p) ? LNX_SESSION_TELL_NS : LNX_REAP_LOOK_NS) &&
		    (!lnx_life_given_up(p->life) || !p->rx_sid || remember(ep, p->rx_sid)))
			lnx_peer_detach(p);
		if (!lnx_life_detached(p->life)) {
			if (lnx_ns_since_stamp(now, p->session.ended_ms) >= LNX_SESSION_TELL_NS)
				stop_pings(p);
			more |= p->addr == FI_ADDR_NOTAVAIL &&
				p->shm.core == FI_ADDR_NOTAVAIL;
			continue;
		}
		/* What it still has fails by progress (rel/pump.c). */
		if (!lnx_peer_dead(p))
			lnx_peer_pump(p);
		if (!unused(p)) {
			more = true;
			continue;
		}
		for (i = 0; i < p->npath; i++)
			lnx_rail_remove(p->path[i]->rail, p->path[i]->core_addr);
		lnx_list_del(&p->session.ended_link);
		lnx_policy_leave(p);
		lnx_list_del(&p->all_link);
		/* They would write into it when they end. */
		assert(!p->rma.rkeys);
		peer_free(p);
	}
	return more ? ep->due.reap_ns : LNX_NEVER;
}

void lnx_peers_destroy(struct lnx_ep *ep)
{
	struct lnx_shm_turn *t;
	uint32_t i;

	while ((t = ep->local.turns)) {
		ep->local.turns = t->next;
		free(t);
	}
	while (!lnx_list_empty(&ep->peers.all)) {
		struct lnx_peer *p = lnx_list_entry(ep->peers.all.next, struct lnx_peer,
						    all_link);

		lnx_policy_leave(p);
		lnx_list_del(&p->all_link);
		peer_free(p);
	}
	for (i = 0; i < ep->npeer_chunk; i++)
		free(ep->peer_tab[i]);
	free(ep->peer_tab);
	free(ep->by_eid);
	free(ep->by_sid);
	free(ep->refusals.given_up);
	ep->refusals.given_up = NULL;
	ep->refusals.n_given_up = 0;
	ep->peer_tab = NULL;
	ep->by_eid = NULL;
	ep->by_sid = NULL;
	ep->npeer_chunk = 0;
}
