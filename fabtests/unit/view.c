/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See view.h. */
#include "view.h"

#include "obj/txe.h"

#include "core/open.h"
#include "msg/pull.h"
#include "msg/tx.h"
#include "os/ping.h"
#include "rel/rel.h"
#include "rma/rma.h"

/* ---- frames to the peer ---- */

uint32_t view_next(const struct lnx_peer *peer)
{
	return peer->chan.next;
}

uint32_t view_posted(const struct lnx_peer *peer)
{
	return peer->chan.posted;
}

uint32_t view_acked(const struct lnx_peer *peer)
{
	return peer->chan.una;
}

bool view_all_acked(const struct lnx_peer *peer)
{
	return peer->chan.una == peer->chan.next;
}

uint64_t view_kept(const struct lnx_peer *peer)
{
	return peer->eager ? peer->eager->kept : 0;
}

uint64_t view_unacked_bytes(const struct lnx_peer *peer)
{
	return peer->chan.una_bytes;
}

uint32_t view_queued(const struct lnx_peer *peer)
{
	return peer->chan.nqueued;
}

struct lnx_txe *view_oldest(const struct lnx_peer *peer)
{
	return lnx_txe_of(*lnx_chan_slot(&peer->chan, peer->chan.una));
}

uint32_t view_announced(const struct lnx_peer *peer)
{
	return peer->nrndv;
}

void force_first(struct lnx_peer *peer, uint32_t seq)
{
	peer->chan.next = peer->chan.posted = peer->chan.una = seq;
}

/* ---- frames from the peer ---- */

uint64_t view_exposure(const struct lnx_ep *ep)
{
	return ep->eager.pool.used;
}

uint32_t view_rx_next(const struct lnx_peer *peer)
{
	return peer->chan.rx.next;
}

uint32_t view_ooo(const struct lnx_peer *peer)
{
	return peer->chan.rx.n_ooo;
}

uint32_t view_acks_pending(const struct lnx_peer *peer)
{
	return peer->chan.acks_pending;
}

uint64_t view_rx_bytes(const struct lnx_peer *peer, unsigned path)
{
	return peer->rx.bytes[path];
}

unsigned view_ack_path(const struct lnx_peer *peer)
{
	return peer->rx.path_back;
}

uint64_t view_pull_left(const struct lnx_peer *peer)
{
	return peer->pull.left;
}

void force_rx_next(struct lnx_peer *peer, uint32_t seq)
{
	peer->chan.rx.next = seq;
}

uint64_t view_pulls(const struct lnx_ep *ep)
{
	const struct lnx_node *n;
	uint64_t pulls = 0;

	for (n = ep->peers.all.next; n != &ep->peers.all; n = n->next)
		pulls += lnx_container_of(n, struct lnx_peer, all_link)->pull.n;
	return pulls;
}

uint64_t view_pull_runs(const struct lnx_ep *ep)
{
	return ep->pulls.runs;
}

void force_pull_left(struct lnx_peer *peer, uint64_t bytes)
{
	peer->pull.left = bytes;
}

/* ---- session and address ---- */

uint64_t view_sid(const struct lnx_peer *peer)
{
	return peer->sid;
}

uint64_t view_rx_sid(const struct lnx_peer *peer)
{
	return peer->rx_sid;
}

uint64_t view_began(const struct lnx_peer *peer)
{
	return peer->session.stamp;
}

uint64_t view_address_epoch(const struct lnx_peer *peer)
{
	return peer->address.epoch;
}

/* ---- paths ---- */

const struct lnx_gateways *view_gateways(const struct lnx_ep *ep)
{
	return ep->policy.gateways;
}

unsigned view_npath(const struct lnx_peer *peer)
{
	return peer->npath;
}

unsigned view_stripe(const struct lnx_peer *peer)
{
	return peer->stripe;
}

struct lnx_path *view_path(const struct lnx_peer *peer, unsigned i)
{
	return peer->path[i];
}

struct lnx_path *view_path_over(const struct lnx_peer *peer,
				const struct lnx_rail *rail)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->rail == rail)
			return peer->path[i];
	return NULL;
}

unsigned view_frame_path(const struct lnx_peer *peer)
{
	return peer->cur->index;
}

enum lnx_path_state view_state(const struct lnx_path *path)
{
	return path->state;
}

const struct lnx_rail *view_rail(const struct lnx_path *path)
{
	return path->rail;
}

unsigned view_index(const struct lnx_path *path)
{
	return path->index;
}

unsigned view_remote(const struct lnx_path *path)
{
	return path->remote_rail;
}

fi_addr_t view_core_addr(const struct lnx_path *path)
{
	return path->core_addr;
}

uint64_t view_sent(const struct lnx_path *path)
{
	return path->sent;
}

uint64_t view_delivered(const struct lnx_path *path)
{
	return path->delivered;
}

uint64_t view_reported(const struct lnx_path *path)
{
	return path->last_report;
}

uint64_t view_inflight_limit(const struct lnx_path *path)
{
	return path->inflight_limit;
}

unsigned view_nread(const struct lnx_path *path)
{
	return path->nread;
}

uint64_t view_read_bytes(const struct lnx_path *path)
{
	return path->read_bytes;
}

void view_add_piece(struct lnx_path *path, struct lnx_chunk *piece)
{
	lnx_list_add_tail(&path->reads, &piece->out);
}

bool view_no_reads(const struct lnx_path *path)
{
	return !path->nread && lnx_list_empty(&path->reads);
}

uint64_t view_read_window(const struct lnx_path *path)
{
	return path->speed->tail.window;
}

unsigned view_hedges(const struct lnx_peer *peer)
{
	return peer->path[0]->speed->hedge.n;
}

unsigned view_npings(const struct lnx_path *path)
{
	return path->detect.health.npings;
}

unsigned view_health(const struct lnx_path *path)
{
	return path->detect.health.value;
}

struct lnx_health *view_path_health(struct lnx_path *path)
{
	return &path->detect.health;
}

struct lnx_health *view_remote_health(const struct lnx_path *path)
{
	return &path->remote->health;
}

bool view_counts(const struct lnx_path *path)
{
	return path->counts != NULL;
}

uint64_t view_last_ping(const struct lnx_path *path)
{
	return path->detect.ping_ns;
}

unsigned view_credits(const struct lnx_path *path)
{
	return path->credits.used;
}

unsigned view_credits_most(const struct lnx_path *path)
{
	return lnx_tx_credits_most(&path->credits);
}

/* Frames in the window that were last posted over path, and those that are over, but which
 * the core has. */
static unsigned frames_over(const struct lnx_peer *peer, const struct lnx_path *path)
{
	const struct lnx_node *n;
	unsigned used = 0;
	uint32_t seq;

	for (seq = peer->chan.una; seq != peer->chan.posted; seq++) {
		const struct lnx_frame *frame = *lnx_chan_slot(&peer->chan, seq);

		used += frame && frame->path == path->index;
	}
	for (n = path->rail->clones.next; n != &path->rail->clones; n = n->next) {
		const struct lnx_txe *txe = lnx_list_entry(n, struct lnx_txe, f.link);

		used += txe->peer == peer && txe->f.path == path->index;
	}
	return used;
}

static unsigned delayed(const struct lnx_rail *rail)
{
	const struct lnx_node *n;
	unsigned frames = 0;

	for (n = rail->delayed.next; n != &rail->delayed; n = n->next)
		frames += lnx_list_entry(n, struct lnx_path, delayed)->delayed_peer->chan.nqueued;
	return frames;
}

bool view_credits_agree(const struct lnx_ep *ep)
{
	unsigned used[LNX_RAILS_MAX] = { 0 }, i, k;
	const struct lnx_node *n;

	for (n = ep->peers.all.next; n != &ep->peers.all; n = n->next) {
		const struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			if (frames_over(peer, peer->path[i]) != peer->path[i]->credits.used)
				return false;
			for (k = 0; k < ep->nrail && ep->rail[k] != peer->path[i]->rail;)
				k++;
			used[k] += peer->path[i]->credits.used;
		}
	}
	for (k = 0; k < ep->nrail; k++)
		if (used[k] != ep->rail[k]->credits.used ||
		    delayed(ep->rail[k]) != ep->rail[k]->n_delayed)
			return false;
	return true;
}

bool view_pings(const struct lnx_path *path, const struct lnx_ping *ping)
{
	return path->detect.ping == ping;
}

void force_ping_stopped(struct lnx_path *path)
{
	lnx_ping_stop(path->detect.ping);
}

void force_stripe(struct lnx_peer *peer, unsigned paths)
{
	peer->stripe = (uint8_t)paths;
}

void force_second(struct lnx_peer *peer, const struct lnx_path *path)
{
	peer->choice->rank.class[path->index] = 1;
	peer->stripe = (uint8_t)(((1u << peer->npath) - 1) & ~(1u << path->index));
}

void force_proven(const struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		peer->path[i]->proven = true;
}

void force_state(struct lnx_path *path, enum lnx_path_state state)
{
	path->state = (uint8_t)state;
}

void force_unacked(struct lnx_peer *peer, struct lnx_path *path, int64_t bytes)
{
	if (path)
		path->sent += (uint64_t)bytes;
	peer->chan.una_bytes += (uint64_t)bytes;
}

void force_kernel_asked(struct lnx_path *path, bool asked)
{
	path->detect.silence.kernel_asked = asked;
}

void force_silent(struct lnx_peer *peer, uint64_t since_ns, uint64_t kernels_ns)
{
	peer->liveness.since_ns = since_ns;
	peer->liveness.kernels_ns = kernels_ns;
}

void force_since(struct lnx_path *path, uint64_t ns)
{
	path->since_ns = ns;
}

void force_read_retry(struct lnx_path *path, uint64_t ns)
{
	path->read_retry_ns = ns;
}

void force_read_rate(struct lnx_path *path, uint64_t bps, bool best, uint64_t ended_ns)
{
	path->speed->read.rate = bps;
	path->speed->read.delay_ns = 0;
	if (best)
		path->speed->read.best = bps;
	path->read_done_ns = ended_ns;
}

/* ---- remote memory ---- */

uint32_t view_segments(const struct lnx_peer *peer)
{
	return peer->rma.n_segments;
}

uint32_t view_core_reads(const struct lnx_peer *peer)
{
	return peer->rma.n_reads;
}

uint32_t view_served(const struct lnx_peer *peer)
{
	return peer->rma.n_served;
}

void force_keys_known(struct lnx_peer *peer)
{
	peer->rma.n_unknown = 0;
}

/* ---- peers on this node ---- */

bool view_local(const struct lnx_peer *peer)
{
	return peer->shm_addr != FI_ADDR_NOTAVAIL;
}

uint32_t view_local_queued(const struct lnx_peer *peer)
{
	return peer->shm.nqueued;
}

bool view_watched(const struct lnx_peer *peer)
{
	return peer->shm.pidfd != 0;
}

struct lnx_cma_owner *view_process(struct lnx_peer *peer)
{
	return &peer->shm.where;
}

void force_process(struct lnx_peer *peer, pid_t pid, uint64_t id,
		   const uint64_t *cookie)
{
	peer->shm.ctrl = peer->shm.sure = true;
	peer->shm.where = (struct lnx_cma_owner){
		.pid = pid, .eid = id, .cookie = (uint64_t)(uintptr_t)cookie,
	};
}

/* ---- peers of an endpoint that was never opened ---- */

static void not_run(struct lnx_timer *t, uint64_t now)
{
	(void)t;
	(void)now;
	abort();
}

int make_timers(struct lnx_ep *ep)
{
	unsigned i;

	lnx_timers_init(&ep->due.timers);
	for (i = 0; i < LNX_DUE_N; i++)
		lnx_timer_init(&ep->due.own[i], not_run);
	return lnx_timers_reserve(&ep->due.timers, LNX_DUE_N);
}

void make_no_peers(struct lnx_ep *ep)
{
	lnx_list_init(&ep->peers.all);
}

unsigned view_shm_turn(const struct lnx_ep *ep)
{
	return ep->local.turn;
}

void force_pid(struct lnx_ep *ep, pid_t pid)
{
	ep->local.pid = pid;
}

void make_peer(struct lnx_peer *peer, struct lnx_ep *ep)
{
	peer->ep = ep;
	lnx_list_add_tail(&ep->peers.all, &peer->all_link);
}

void drop_peer(struct lnx_peer *peer)
{
	lnx_list_del(&peer->all_link);
}

void make_path(struct lnx_peer *peer, struct lnx_rail *rail, fi_addr_t core_addr)
{
	peer->npath = 1;
	peer->path[0] = &peer->first;
	peer->first.rail = rail;
	peer->first.core_addr = core_addr;
}

/* ---- the endpoint ---- */

uint32_t view_peers(const struct lnx_ep *ep)
{
	return ep->peers.n;
}

uint32_t view_unsolicited(const struct lnx_ep *ep)
{
	return ep->peers.n_unsolicited;
}

const struct lnx_peer *view_first_ended(const struct lnx_ep *ep)
{
	return lnx_list_entry(ep->peers.ended.next, struct lnx_peer, session.ended_link);
}

fi_addr_t view_addr(const struct lnx_peer *peer)
{
	return peer->addr;
}

bool view_none_ended(const struct lnx_ep *ep)
{
	return lnx_list_empty(&ep->peers.ended);
}

const uint8_t *view_address(const struct lnx_ep *ep)
{
	return ep->address.raw;
}

bool view_address_is_short(const struct lnx_ep *ep)
{
	return ep->address.more;
}

uint64_t view_hello_nonce(const struct lnx_ep *ep)
{
	return ep->refusals.hello_nonce;
}

unsigned view_misdirected(const struct lnx_ep *ep)
{
	return ep->refusals.n;
}

size_t view_rxes(const struct lnx_ep *ep)
{
	return ep->rxe_pool.used - ep->nreserve;
}

unsigned view_rail_bufs(const struct lnx_rail *rail)
{
	struct lnx_node *node, *tmp;
	unsigned n = 0;

	lnx_list_foreach(&rail->bufs, node, tmp)
		n++;
	return n;
}

uint64_t view_posted_look(const struct lnx_ep *ep)
{
	return lnx_timer_at(&ep->due.timers, &ep->due.own[LNX_DUE_POSTED]);
}

size_t view_rxbufs(const struct lnx_ep *ep)
{
	return ep->rxbuf_pool.used - ep->nbuf_reserve;
}

size_t view_frames(const struct lnx_ep *ep)
{
	size_t n = 0;
	unsigned i;

	static_assert(LNX_ARRAY_SIZE(ep->txe_pool) == VIEW_FRAME_SIZES, "of each size");
	for (i = 0; i < VIEW_FRAME_SIZES; i++)
		n += view_frames_of(ep, i);
	return n;
}

size_t view_frames_of(const struct lnx_ep *ep, unsigned size)
{
	return ep->txe_pool[size].used;
}

size_t view_chunks(const struct lnx_ep *ep)
{
	return ep->chunk_pool.used;
}

struct lnx_pool *view_rxbuf_pool(struct lnx_ep *ep)
{
	return &ep->rxbuf_pool;
}

struct lnx_pool *view_frame_pool(struct lnx_ep *ep, unsigned size)
{
	return &ep->txe_pool[size];
}

struct lnx_pool *view_chunk_pool(struct lnx_ep *ep)
{
	return &ep->chunk_pool;
}

size_t view_ooo_bytes(const struct lnx_ep *ep)
{
	return ep->ooo_bytes;
}

bool view_work(const struct lnx_ep *ep, uint32_t bit)
{
	return (ep->work & bit) != 0;
}

bool view_new_sockets(const struct lnx_ep *ep)
{
	return !ep->due.sweep_gap_ns;
}

uint64_t view_due(const struct lnx_ep *ep)
{
	return ep->due.timers.n ? ep->due.timers.next_ns : LNX_NEVER;
}

uint64_t view_own_due(struct lnx_ep *ep, unsigned which)
{
	return lnx_timer_at(&ep->due.timers, &ep->due.own[which]);
}

bool view_watches_local(const struct lnx_ep *ep)
{
	return ep->poll.watch_idle;
}

void force_work(struct lnx_ep *ep, uint32_t bit)
{
	ep->work |= bit;
}

size_t view_rma_ops(const struct lnx_ep *ep)
{
	return ep->rma.rma_op_pool.used;
}

size_t view_rma_segments(const struct lnx_ep *ep)
{
	return ep->rma.segment_pool.used;
}

void view_count_in(struct lnx_ep *ep, enum lnx_cntr_kind kind, struct lnx_cntr *cntr)
{
	ep->cntr[kind] = cntr;
}

bool view_rma_idle(const struct lnx_ep *ep)
{
	return lnx_list_empty(&ep->rma.segments) && lnx_list_empty(&ep->rma.waiting) &&
	       lnx_list_empty(&ep->rma.asks) && !view_pulls(ep);
}

struct lnx_rma_segment *view_last_segment(const struct lnx_ep *ep)
{
	return lnx_list_entry(ep->rma.segments.prev, struct lnx_rma_segment, all);
}

size_t view_rma_numbers(const struct lnx_ep *ep)
{
	return ep->rma.ops.n;
}

bool view_none_announced(const struct lnx_ep *ep)
{
	return lnx_list_empty(&ep->rndv.announced);
}

unsigned view_pushes(const struct lnx_ep *ep)
{
	return ep->local.npushed;
}

size_t view_unexpected(const struct lnx_ep *ep)
{
	return lnx_match_nunex(&ep->tag) + lnx_match_nunex(&ep->msg);
}

size_t view_stored_bytes(const struct lnx_ep *ep)
{
	return ep->backlog.kept.used;
}

unsigned view_held_bufs(const struct lnx_ep *ep)
{
	return ep->eager.n_held_bufs;
}

bool view_injects(const struct lnx_ep *ep)
{
	return ep->fault != NULL;
}

bool view_published(const struct lnx_ep *ep)
{
	return ep->ctl.look != NULL;
}

bool view_asked_ping(const struct lnx_ep *ep)
{
	return ep->ctl.ping != NULL;
}

uint32_t view_ack_every(const struct lnx_ep *ep)
{
	return ep->ack_every;
}

uint32_t view_poll_idle_mask(const struct lnx_ep *ep)
{
	return ep->poll.idle_mask;
}

const uint64_t *view_cookie(const struct lnx_ep *ep)
{
	return &ep->local.cookie;
}

uint32_t view_dealt(const struct lnx_ep *ep)
{
	return ep->peers.rr_seed;
}

size_t view_tx_size(const struct lnx_ep *ep)
{
	return ep->limits.tx_size;
}

size_t view_max_msg_size(const struct lnx_ep *ep)
{
	return ep->limits.max_msg_size;
}

void force_dealt(struct lnx_ep *ep, uint32_t n)
{
	ep->peers.rr_seed = n;
}

void force_max_msg_size(struct lnx_ep *ep, size_t n)
{
	ep->limits.max_msg_size = n;
	ep->limits.short_max = LNX_MIN(ep->limits.short_max, (uint32_t)n);
	for (uint32_t i = 0; i < ep->nrail; i++)
		ep->rail[i]->short_frame = lnx_rail_short_frame(ep->rail[i]);
}

void force_peer_timers(struct lnx_ep *ep, peer_timer **look, peer_timer **retry)
{
	peer_timer *looked = ep->due.look, *retried = ep->due.retry;

	ep->due.look = *look;
	ep->due.retry = *retry;
	*look = looked;
	*retry = retried;
}

void force_settings_changed(struct lnx_ep *ep)
{
	ep->ctl.nset++;
}

void force_enabled(struct lnx_ep *ep, bool enabled)
{
	ep->enabled = enabled;
}

void force_leaving(struct lnx_ep *ep, bool leaving)
{
	ep->leaving = leaving;
}

void force_netwatch(struct lnx_ep *ep, struct lnx_netwatch *w)
{
	ep->links.netwatch = w;
}

void force_sleeper(struct lnx_ep *ep, struct lnx_wait *wait)
{
	ep->rx_cq->wait = wait;
	ep->thread = (struct lnx_thread *)wait;	/* it only has to be there */
}

void force_locks(struct lnx_ep *ep)
{
	ep->lock.on = ep->tx_cq->lock.on = ep->rx_cq->lock.on = true;
}

void force_board_look(struct lnx_ep *ep)
{
	ep->due.board_ns = 0;
}
