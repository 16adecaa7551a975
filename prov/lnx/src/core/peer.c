/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers of an endpoint: made from address blobs at first use, with the paths that
 * lead to them.  Slow path; declared in obj/ep.h.  Where they are found: peer_table.c;
 * those on this host: peer_shm.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "core/open.h"
#include "core/path_set.h"
#include "core/peer.h"
#include "core/policy.h"
#include "core/shm_registry.h"
#include "policy/pairs.h"

void lnx_peer_watch(struct lnx_peer *peer)
{
	if (!peer->awaited)
		lnx_loss_restart(&peer->loss, &peer->chan);
	peer->awaited = peer->watched = true;
	lnx_peer_look_by(peer, peer->ep->due.looked_ns +
			 (lnx_peer_detects(peer) ? LNX_LOOK_MIN_NS : LNX_LOOK_ONE_NS));
}

void lnx_peer_join_ack_list(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (!lnx_list_linked(&peer->ack_link)) {
		peer->chan.ack_since_ns = 0;
		peer->chan.ack_threshold = ep->ack_every;
		lnx_list_add_tail(&ep->ack_list, &peer->ack_link);
		ep->work |= LNX_WORK_ACK_PENDING;
	}
	/* Until then it may be piggybacked on an answer of the application. */
	if (peer->chan.acks_pending >= ep->ack_every)
		ep->work |= LNX_WORK_ACK;
}

static struct lnx_peer *peer_new(struct lnx_ep *ep, uint64_t eid)
{
	struct lnx_peer *p = lnx_lines_get(sizeof(*p));

	if (!p)
		return NULL;
	p->sid = lnx_host_random_id();
	if (!p->sid || lnx_timers_reserve(&ep->due.timers, LNX_PEER_TIMERS)) {
		free(p);
		return NULL;
	}
	lnx_timer_init(&p->look, ep->due.look);
	lnx_timer_init(&p->retry, ep->due.retry);
	p->session.stamp = lnx_clock_wall_ns();
	p->ep = ep;
	p->eid = eid;
	p->addr = FI_ADDR_NOTAVAIL;
	lnx_peer_clear_direct(p);
	p->shm_addr = FI_ADDR_NOTAVAIL;
	p->shm.core = FI_ADDR_NOTAVAIL;
	p->self = eid == ep->eid;
	lnx_chan_init(&p->chan);
	p->path[0] = p->cur = &p->first;
	p->shm.counts = &lnx_shm_registry_no_counts;
	lnx_list_init(&p->confirm.list);
	lnx_list_init(&p->stored);
	lnx_list_init(&p->pull.all);
	p->pull.line = &p->pull.all;
	lnx_list_init(&p->shm.queue);
	lnx_list_init(&p->shm.queue_link);
	lnx_list_init(&p->address.learn_link);
	lnx_list_init(&p->ack_link);
	lnx_list_init(&p->pump_link);
	lnx_list_init(&p->session.ended_link);
	lnx_list_add_tail(&ep->peers.all, &p->all_link);
	ep->work |= LNX_WORK_BUFS;	/* it may hold some: rail/posted.c */
	lnx_peer_hash(p);
	return p;
}

/* ---- paths to a peer ---- */

/*
 * The path over native rails.  A receive waits in the queue of the rail that its source
 * sends over, so both ends must choose the same pair: the one that the end with the
 * lower identity would choose.
 */
static void join_native(struct lnx_peer *peer, const struct lnx_addr *a)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_pair_rail rail[2][LNX_ADDR_RAILS];
	struct lnx_path *path = peer->path[0];
	struct lnx_pair pair;
	const struct lnx_addr *end[2];
	struct lnx_addr me;
	unsigned i, k, mine, theirs;
	bool first = ep->eid <= peer->eid;
	char why[64];

	if (lnx_addr_unpack(&me, ep->address.raw, sizeof(ep->address.raw), why, sizeof(why)))
		return;
	end[0] = first ? &me : a;
	end[1] = first ? a : &me;
	for (k = 0; k < 2; k++) {
		for (i = 0; i < end[k]->nrail; i++) {
			rail[k][i].prov = end[k]->rail[i].prov;
			rail[k][i].group = end[k]->rail[i].group;
		}
	}
	if (!lnx_pairs_find(rail[0], end[0]->nrail, rail[1], end[1]->nrail,
			      &pair, 1))
		return;
	mine = first ? pair.local : pair.remote;
	theirs = first ? pair.remote : pair.local;
	memset(path, 0, sizeof(*path));
	lnx_list_init(&path->reads);
	lnx_list_init(&path->gets);
	/* No failure of it will ever be known. */
	lnx_health_init(&path->detect.health);
	lnx_health_init(&path->own_remote.health);
	path->remote_rail = (uint16_t)theirs;
	path->remote = &path->own_remote;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i]->wire_index == mine)
			path->rail = ep->rail[i];
	if (path->rail && !lnx_rail_meet(path->rail, &a->rail[theirs],
					 &path->core_addr) &&
	    !lnx_peer_by_core_set(path->rail, path->core_addr, peer))
		peer->npath = peer->stripe = 1;
}

static void log_unreachable(struct lnx_peer *peer, const struct lnx_addr *a)
{
	char text[256];

	lnx_addr_print(a, text, sizeof(text));
	LNX_WARN(FI_LOG_AV,
		 "no rail of this link (%s) leads to %s: they need a provider in common, or shared memory on one host and one user\n",
		 peer->ep->domain->rails->name, text);
}

static void log_other_way(const struct lnx_addr *a)
{
	char text[256];

	lnx_addr_print(a, text, sizeof(text));
	LNX_WARN(FI_LOG_AV,
		 "%s takes messages %s; FI_LNX_PROTOCOL and FI_LNX_USE_SRQ have to be the same at both ends\n",
		 text, a->native ? "as core providers send them, while we send frames" :
				 "in frames, which we do not send");
}

/* Which host it is on, its address says. */
static void learn_host(struct lnx_peer *peer, const struct lnx_addr *a)
{
	peer->same_host = a->host && a->host == peer->ep->domain->host;
}

static void join(struct lnx_peer *peer, const struct lnx_addr *a)
{
	struct lnx_rails rails;

	if (lnx_unlikely(a->native != peer->ep->native)) {
		log_other_way(a);
		return;
	}
	if (peer->shm_addr != FI_ADDR_NOTAVAIL || lnx_peer_shm_join(peer, a) ||
	    peer->npath)
		return;
	if (peer->self && !peer->ep->native)
		return;
	learn_host(peer, a);
	lnx_rails_of_addr(&rails, a);
	if (peer->ep->native)
		join_native(peer, a);
	else
		lnx_path_set_join(peer, peer->address.rails ? peer->address.rails : &rails);
	if (!peer->npath)
		log_unreachable(peer, a);
}

/* Update stored messages of a sender that now has an address, or no longer has one. */
static void source_changed(struct lnx_peer *peer)
{
	peer->ep->up->source_changed(peer);
}

/* ---- obj/ep.h ---- */

LNX_COLD struct lnx_peer *lnx_peer_make(struct lnx_ep *ep, fi_addr_t addr,
					int *err)
{
	struct lnx_av_entry *e = ep->av ? lnx_av_entry(ep->av, addr) : NULL;
	struct lnx_peer *peer;
	struct lnx_addr a;
	char why[128];

	lnx_assert_held(&ep->lock);
	*err = -FI_EINVAL;
	if (!e || lnx_addr_unpack(&a, e->blob, sizeof(e->blob), why,
				  sizeof(why)))
		return NULL;
	*err = -FI_ENOMEM;
	if (lnx_peer_tab_set(ep, addr, lnx_peer_get(ep, addr)))
		return NULL;
	peer = lnx_peer_known(ep, a.eid);
	if (!peer) {
		peer = peer_new(ep, a.eid);
		if (!peer)
			return NULL;
	}
	if (lnx_peer_tab_set(ep, addr, peer))
		return NULL;
	if (peer->unsolicited) {
		peer->unsolicited = false;
		ep->peers.n_unsolicited--;
	}
	if (peer->addr != addr) {
		peer->addr = addr;
		source_changed(peer);
	}
	join(peer, &a);
	*err = 0;
	return peer;
}

/* The ports of ours that the peer knows. */
static void inherit_ports(struct lnx_peer *peer, const struct lnx_peer *before)
{
	unsigned i, k;

	for (i = 0; i < peer->npath; i++)
		for (k = 0; k < before->npath; k++)
			if (peer->path[i]->rail == before->path[k]->rail &&
			    peer->path[i]->remote_rail == before->path[k]->remote_rail)
				peer->path[i]->detect.acked_port =
					before->path[k]->detect.acked_port;
}

/*
 * Its rails may have moved since it was inserted in the AV, and if each end forgot where the
 * other one is, neither would find it.  But a process that was started anew under the same
 * name is where the AV says.  A session that heard nothing is followed by one that looks at
 * the other place.
 */
LNX_COLD void lnx_peer_inherit(struct lnx_peer *peer, const struct lnx_peer *before)
{
	const struct lnx_rails *known = before->address.rails;

	if (peer->rx_sid || peer->address.rails || peer->ep->native)
		return;
	inherit_ports(peer, before);
	if (!known)
		return;
	peer->session.av_first = before->rx_sid ?
		before->session.err != FI_ETIMEDOUT && !before->session.alive :
		!before->session.av_first;
	peer->address.rails = malloc(sizeof(*known));
	if (!peer->address.rails)
		return;
	*peer->address.rails = *known;
	if (!peer->session.av_first)
		lnx_path_set_readdress(peer, known);
}

LNX_COLD struct lnx_peer *lnx_peer_unsolicited(struct lnx_ep *ep,
					    const struct lnx_addr *a)
{
	struct lnx_peer *peer;

	/* It is in the AV: there was no memory for its peer. */
	if (ep->av && lnx_av_find(ep->av, a->eid) != FI_ADDR_NOTAVAIL)
		return NULL;
	if (ep->peers.n_unsolicited >= ep->conf->unsolicited_peers) {
		FI_WARN_ONCE(&lnx_prov, FI_LOG_AV,
			     "%u senders are in no address vector; frames of further ones are dropped (FI_LNX_UNSOLICITED_PEERS)\n",
			     ep->peers.n_unsolicited);
		lnx_ep_due(ep, LNX_DUE_KEEPALIVE, 0);
		return NULL;
	}
	/* Its paths are made when its hello is handled: not in a core's callback. */
	peer = peer_new(ep, a->eid);
	if (peer) {
		peer->unsolicited = true;
		ep->peers.n_unsolicited++;
		lnx_ep_due(ep, LNX_DUE_KEEPALIVE, ep->due.looked_ns + LNX_KEEPALIVE_NS);
	}
	return peer;
}

/*
 * A hello may arrive inside a core's callback, where the core's AV must not be used.
 * What it says is kept until progress can handle it.
 */
int lnx_peer_learn(struct lnx_peer *peer, const struct lnx_addr *a,
		   const struct lnx_rails *all)
{
	struct lnx_ep *ep = peer->ep;

	if (peer->self || a->native || ep->native)
		return 0;
	learn_host(peer, a);
	if (!peer->address.rails)
		peer->address.rails = calloc(1, sizeof(*all));
	if (!peer->address.rails)
		return -FI_ENOMEM;
	/* The newest hello counts; rails that it does not list stay as they were. */
	lnx_rails_merge(peer->address.rails, all);
	if (lnx_list_linked(&peer->address.learn_link))
		return 0;
	lnx_list_add_tail(&ep->learn_peers, &peer->address.learn_link);
	ep->work |= LNX_WORK_LEARN;
	return 0;
}

bool lnx_peer_av_rails(const struct lnx_peer *peer, struct lnx_rails *r)
{
	struct lnx_av_entry *e = NULL;
	struct lnx_addr a;
	char why[64];

	if (peer->ep->av && peer->addr != FI_ADDR_NOTAVAIL)
		e = lnx_av_entry(peer->ep->av, peer->addr);
	if (!e || lnx_addr_unpack(&a, e->blob, sizeof(e->blob), why,
				  sizeof(why)))
		return false;
	lnx_rails_of_addr(r, &a);
	return true;
}

bool lnx_peer_rails(const struct lnx_peer *peer, struct lnx_rails *r)
{
	if (!peer->address.rails)
		return lnx_peer_av_rails(peer, r);
	*r = *peer->address.rails;
	return true;
}

static bool same_rails(const struct lnx_rails *a, const struct lnx_rails *b)
{
	return a->n == b->n && !memcmp(a->place, b->place, a->n) &&
	       !memcmp(a->rail, b->rail, a->n * sizeof(a->rail[0]));
}

/* Add paths for rails that have none.  Without discovery that is for those in the AV
 * only, which may have other addresses now. */
static void extend(struct lnx_peer *peer, const struct lnx_rails *av)
{
	const struct lnx_rails *hello = peer->address.rails;
	bool narrow = av && !peer->ep->conf->discovery;

	lnx_path_set_extend(peer, hello && !narrow ? hello : av);
	if (hello && narrow)
		lnx_path_set_readdress(peer, hello);
}

/* Apply what peer's hello and the AV say; what is in the AV need not be stored. */
static void hello_apply(struct lnx_peer *peer)
{
	struct lnx_rails av;
	bool known = lnx_peer_av_rails(peer, &av);

	if (peer->npath)
		lnx_policy_peer(peer, peer->address.rails, true);
	/* A hello may be forged; the AV comes from the application. */
	if (!peer->npath)
		lnx_path_set_join(peer, known ? &av : peer->address.rails);
	lnx_path_set_readdress(peer, peer->address.rails);
	extend(peer, known ? &av : NULL);
	if (known && same_rails(&av, peer->address.rails)) {
		free(peer->address.rails);
		peer->address.rails = NULL;
	}
}

void lnx_peers_join(struct lnx_ep *ep, void (*greet)(struct lnx_peer *peer))
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->learn_peers))) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer,
						       address.learn_link);

		hello_apply(peer);
		greet(peer);
	}
	if (ep->local.unknown_source)
		lnx_peer_shm_registered(ep);
	ep->work &= ~LNX_WORK_LEARN;
}

struct lnx_peer *lnx_peer_by_eid(struct lnx_ep *ep, uint64_t eid)
{
	struct lnx_peer *peer = lnx_peer_known(ep, eid);
	fi_addr_t addr;

	if (lnx_likely(peer != NULL))
		return peer;
	addr = ep->av ? lnx_av_find(ep->av, eid) : FI_ADDR_NOTAVAIL;
	/*
	 * The table entry first: a peer that is made but not in the table would never
	 * be found.
	 */
	if (addr == FI_ADDR_NOTAVAIL || lnx_peer_tab_set(ep, addr, NULL))
		return NULL;
	peer = peer_new(ep, eid);
	if (!peer || lnx_peer_tab_set(ep, addr, peer))
		return NULL;
	/* Paths to it are made by its hello, or by our first send. */
	peer->addr = addr;
	return peer;
}

void lnx_peer_av_removed(struct lnx_ep *ep, fi_addr_t addr)
{
	struct lnx_peer *peer = lnx_peer_get(ep, addr);
	struct lnx_node *n, *tmp;

	/* Messages of an earlier session may be stored still.  Such peers are the first ones: the
	 * others, which may be all of a job that has ended, are found by address. */
	lnx_list_foreach(&ep->peers.ended, n, tmp) {
		struct lnx_peer *p = lnx_list_entry(n, struct lnx_peer,
						    session.ended_link);

		if (!lnx_life_detached(p->life))
			break;
		if (p != peer && p->addr == addr) {
			p->addr = FI_ADDR_NOTAVAIL;
			source_changed(p);
		}
	}
	if (!peer)
		return;
	ep->peer_tab[addr >> LNX_AV_CHUNK_BITS][addr & (LNX_AV_CHUNK - 1)] =
		NULL;
	peer->addr = FI_ADDR_NOTAVAIL;
	source_changed(peer);
	if (!lnx_peer_open(peer))
		lnx_peer_ended(peer);
	lnx_ep_due(ep, LNX_DUE_KEEPALIVE, ep->due.looked_ns + LNX_KEEPALIVE_NS);
	/*
	 * It stays in the core while it may send to us (registry_reclaim); else its
	 * messages in the core would have no source.
	 */
	lnx_peer_clear_direct(peer);
	peer->shm_addr = FI_ADDR_NOTAVAIL;
	if (!ep->local.registry && peer->shm.core != FI_ADDR_NOTAVAIL)
		lnx_peer_shm_forget(peer);
}

int lnx_peer_av_inserted(struct lnx_ep *ep, fi_addr_t addr,
			 const struct lnx_addr *a)
{
	int err;

	/*
	 * Remote peers are made with the first message, in either direction.  So are
	 * those whose address says that they are local, and which are not here.
	 */
	if (!ep->meets_all && !lnx_peer_known(ep, a->eid) &&
	    (!lnx_peer_shm_local(ep, a) || lnx_host_meet(ep, a->eid) != LNX_HOST_MEETS))
		return 0;
	return lnx_peer_make(ep, addr, &err) ? 0 : err;
}

void lnx_peers_extend(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);
		struct lnx_rails av;
		bool known;

		if (peer->self || !lnx_peer_open(peer) ||
		    (!peer->npath && !peer->hello_done && !peer->address.rails))
			continue;
		known = lnx_peer_av_rails(peer, &av);
		if (known || peer->address.rails)
			extend(peer, known ? &av : NULL);
	}
}
