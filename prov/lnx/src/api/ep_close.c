/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_close(3) of an endpoint: lets frames in flight arrive, then takes everything back
 * from the cores and frees it.  Called through ep.c's table.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "api/ep.h"
#include "api/summary.h"
#include "base/interval.h"
#include "rail/faults.h"
#include "rail/gateways.h"
#include "core/open.h"
#include "core/policy.h"
#include "core/shm_registry.h"
#include "ctl/ctl.h"
#include "ctl/settings.h"
#include "ctl/stats_file.h"
#include "obj/mr.h"
#include "prov.h"
#include "msg/confirm_answer.h"
#include "msg/rx.h"
#include "msg/confirm.h"
#include "rel/rel.h"
#include "rma/rma.h"
#include "msg/tx.h"

static bool all_left(const struct lnx_ep *ep)
{
	const struct lnx_node *n;
	unsigned i;

	if (!lnx_list_empty(&ep->local.fetches) || !lnx_list_empty(&ep->local.answers) ||
	    ep->local.ntell_later)
		return false;
	for (n = ep->peers.all.next; n != &ep->peers.all; n = n->next) {
		const struct lnx_peer *p =
			lnx_container_of(n, struct lnx_peer, all_link);

		if (p->shm.nqueued)
			return false;
		if (lnx_peer_open(p) && (p->chan.nqueued || lnx_peer_nthrottled(p) || p->chan.ack_now ||
					    p->chan.una != p->chan.posted))
			return false;
	}
	for (i = 0; i < ep->nrail; i++)
		if (ep->rail[i]->busy)
			return false;
	return true;
}

/*
 * What the application was told has been sent must arrive: frames that are queued or
 * unacknowledged get some time.  Peers get their last acknowledgements and a BYE, so
 * that they need not wait for us.
 */
static void linger(struct lnx_ep *ep)
{
	uint64_t end = lnx_clock_ns() + ep->conf->linger * LNX_NS_PER_MS;
	unsigned i;

	if (lnx_list_empty(&ep->peers.all))
		return;
	while (!all_left(ep) && lnx_clock_ns() < end)
		lnx_ep_progress_all(ep);
	lnx_rel_bye(ep);
	for (i = 0; i < 16; i++)
		lnx_ep_progress_all(ep);
}

static void drop_stored(struct lnx_match *m)
{
	struct lnx_munex *u;

	/* The core frees the entries that it holds when it is closed. */
	while ((u = lnx_match_first_unex(m))) {
		struct lnx_unex *msg = lnx_unex_of(u);
		struct lnx_rxe *rxe;

		lnx_match_drop(m, u);
		lnx_list_del(&msg->of_peer);
		if (!msg->entry) {
			lnx_unex_free(msg);
			continue;
		}
		rxe = lnx_rxe_of_unex(msg);
		if (!rxe->starting)
			lnx_list_del(&rxe->link);
		if (rxe->payload_at == LNX_PAYLOAD_MEMORY)
			lnx_fetch_refuse(rxe);
		if (!rxe->core_done) {
			rxe->state = LNX_RXE_ACTIVE;
			rxe->discard = true;
			rxe->reported = true;
		} else {
			lnx_rxe_put(rxe);
		}
	}
}

static void dump_stats(const struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < lnx_nstats; i++) {
		const struct lnx_stat_row *row = &lnx_stat_rows[i];
		uint64_t v = *(const uint64_t *)((const char *)&ep->stats +
						 row->offset);

		if (v)
			FI_LOG(&lnx_prov, FI_LOG_WARN, FI_LOG_EP_CTRL,
			       "endpoint %016llx: %s %llu (%s)\n",
			       (unsigned long long)ep->eid, row->name,
			       (unsigned long long)v, row->help);
	}
	lnx_faults_log(ep);
}

/* From now on registrations are not announced to its rails. */
static void leave_domain(struct lnx_ep *ep)
{
	pthread_mutex_lock(&ep->domain->eps_lock);
	lnx_lock(&ep->lock);
	ep->leaving = true;
	lnx_mr_detach(ep);
	lnx_unlock(&ep->lock);
	pthread_mutex_unlock(&ep->domain->eps_lock);
}

static bool unpost(struct lnx_mrecv *r, void *arg)
{
	lnx_match_unpost(arg, r);
	return false;
}

static void free_posted(struct lnx_match *m)
{
	lnx_match_each_posted(m, unpost, m);
}

/* From then on no other thread may reach it: it leaves AV, CQs and counters. */
static void unbind(struct lnx_ep *ep)
{
	if (ep->av)
		lnx_av_detach(ep->av, ep);
	if (ep->bound.tx_link.ep)
		lnx_cq_detach(ep->tx_cq, &ep->bound.tx_link);
	if (ep->bound.rx_link.ep)
		lnx_cq_detach(ep->rx_cq, &ep->bound.rx_link);
	lnx_cntr_unbind(ep);
}

/*
 * A helper thread may have held it when the process was forked.  In the copy that thread
 * does not exist.
 */
static void free_mutex(pthread_mutex_t *mutex)
{
	uint64_t until_ns = lnx_clock_wall_ns() + LNX_LOCK_TRY_NS;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / LNX_NS_PER_S),
		.tv_nsec = (long)(until_ns % LNX_NS_PER_S),
	};

	if (pthread_mutex_timedlock(mutex, &until))
		pthread_mutex_init(mutex, NULL);
	else
		pthread_mutex_unlock(mutex);
}

static void free_cq(struct lnx_cq *cq)
{
	free_mutex(&cq->eps.lock);
	free_mutex(&cq->lock.use->mutex);
}

static void free_locks(struct lnx_ep *ep)
{
	unsigned i;

	free_mutex(&ep->av->lock.use->mutex);
	free_mutex(&ep->av->hash_lock);
	if (ep->bound.tx_link.ep)
		free_cq(ep->tx_cq);
	if (ep->bound.rx_link.ep)
		free_cq(ep->rx_cq);
	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (ep->cntr[i])
			free_mutex(&ep->cntr[i]->eps.lock);
	free_mutex(&ep->domain->eps_lock);
	free_mutex(&ep->domain->mr_lock.use->mutex);
	free_mutex(&ep->lock.use->mutex);
}

/*
 * A forked process has a copy of an endpoint, but its connections, shared memory,
 * descriptors and helper thread are those of the process that enabled it.  Nothing is
 * sent, and no core endpoint closed, which would end the connections and remove the
 * region of the other process.  The objects that it is bound to can be closed.  What
 * the cores may refer to stays until this process ends.
 */
static void close_inherited(struct lnx_ep *ep)
{
	free_locks(ep);
	unbind(ep);
	pthread_mutex_lock(&ep->domain->eps_lock);
	lnx_lock(&ep->lock);
	ep->leaving = ep->closing = true;
	lnx_list_del(&ep->bound.domain_link);
	lnx_rx_detach(ep);
	lnx_rx_give_back(ep);
	lnx_shm_registry_close(ep->local.registry);
	ep->local.registry = NULL;
	lnx_ctl_close(ep);
	lnx_unlock(&ep->lock);
	pthread_mutex_unlock(&ep->domain->eps_lock);

	lnx_cntr_release(ep);
	lnx_cq_null_close(ep->bound.null_cq);
	if (ep->bound.eq)
		lnx_eq_unref(ep->bound.eq);
	lnx_settings_free(ep);
	fi_freeinfo(ep->info);
	free(ep->address.want);
	free(ep->bound.inject);
	__atomic_sub_fetch(&ep->domain->refs, 1, __ATOMIC_RELEASE);
}

int lnx_ep_close(struct fid *fid)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);
	struct lnx_node *n;
	unsigned i;

	if (ep->enabled && ep->local.pid != getpid()) {
		close_inherited(ep);
		return 0;
	}
	lnx_thread_stop(ep);
	unbind(ep);
	lnx_lock(&ep->lock);
	lnx_rx_detach(ep);
	if (ep->enabled) {
		lnx_confirm_settle(ep);
		linger(ep);
		if (ep->conf->summary)
			lnx_summary_say(ep);
		lnx_ctl_close(ep);
		lnx_stats_file_add(ep);
		lnx_unlock(&ep->lock);
		leave_domain(ep);
		lnx_lock(&ep->lock);
		ep->closing = true;
		drop_stored(&ep->tag);
		drop_stored(&ep->msg);
		free_posted(&ep->tag);
		free_posted(&ep->msg);
		lnx_ep_del_wait_fds(ep);
		while ((n = lnx_list_pop(&ep->rndv.announced)) ||
		       (n = lnx_list_pop(&ep->rndv.revoked)))
			lnx_list_add_tail(&ep->rndv.dead, n);
		for (i = 0; i < ep->nrail; i++)
			lnx_rail_stop(ep->rail[i]);
		lnx_rndv_reap(ep);
		/* Before the rails are closed: frame buffers belong to a rail. */
		lnx_rel_close(ep);
		lnx_rxe_free_owned(ep);
		lnx_ep_close_rails(ep);
		lnx_pulls_destroy(ep);
		lnx_fetch_destroy_all(ep);
	}
	lnx_rx_give_back(ep);
	if (ep->conf->dump_stats)
		dump_stats(ep);
	lnx_confirm_answers_drop(ep);
	lnx_peers_destroy(ep);
	lnx_gateways_close(ep);
	lnx_ep_policy_close(ep);
	lnx_ep_timers_close(ep);
	lnx_unlock(&ep->lock);

	lnx_faults_close(ep);
	lnx_cntr_release(ep);
	lnx_cq_null_close(ep->bound.null_cq);
	lnx_match_fini(&ep->tag);
	lnx_match_fini(&ep->msg);
	lnx_rxe_free_owned(ep);
	lnx_pool_fini(&ep->rxe_pool);
	lnx_arena_fini(&ep->backlog.kept);
	for (i = 0; i < LNX_ARRAY_SIZE(ep->txe_pool); i++)
		lnx_pool_fini(&ep->txe_pool[i]);
	lnx_pool_fini(&ep->rxbuf_pool);
	lnx_pool_fini(&ep->eager.small_bufs);
	lnx_pool_fini(&ep->eager.sends);
	lnx_pool_fini(&ep->chunk_pool);
	free(ep->local.spare_rndv);
	lnx_rma_fini(ep);
	lnx_confirm_fini(ep);
	lnx_optab_fini(&ep->rndv.ops);
	lnx_optab_fini(&ep->local.copy_ops);
	if (ep->bound.eq)
		lnx_eq_unref(ep->bound.eq);
	lnx_lock_fini(&ep->lock);
	lnx_settings_free(ep);
	fi_freeinfo(ep->info);
	free(ep->address.want);
	free(ep->bound.inject);
	__atomic_sub_fetch(&ep->domain->refs, 1, __ATOMIC_RELEASE);
	free(ep);
	return 0;
}
