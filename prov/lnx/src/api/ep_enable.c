/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_enable(3): opens the rails and makes the address; from then on data calls
 * work.  Called by ep.c.
 */
#include <string.h>
#include <unistd.h>

#include "api/ep.h"
#include "comp/links.h"
#include "comp/rails.h"
#include "core/caps.h"
#include "core/exit_monitor.h"
#include "core/nic.h"
#include "core/open.h"
#include "core/policy.h"
#include "ctl/ctl.h"
#include "obj/mr.h"
#include "rail/gateways.h"
#include "prov.h"
#include "msg/rx.h"

/* ---- data calls ---- */

/* One table of each class. */
struct calls {
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;
	struct fi_ops_rma *rma;
	struct fi_ops_atomic *atomic;
};

static const struct calls calls_off = {
	.msg = &lnx_msg_off_ops,
	.tagged = &lnx_tagged_off_ops,
	.rma = &lnx_no_rma_ops,
	.atomic = &lnx_no_atomic_ops,
};

/* Receives are posted to a shared context. */
static const struct calls calls_shared = {
	.msg = &lnx_srx_user_msg_ops,
	.tagged = &lnx_srx_user_tagged_ops,
	.rma = &lnx_rma_ops,
	.atomic = &lnx_atomic_ops,
};

static const struct calls calls_bare = {
	.msg = &lnx_native_msg_ops,
	.tagged = &lnx_native_tagged_ops,
	.rma = &lnx_native_rma_ops,
	.atomic = &lnx_no_atomic_ops,
};

static const struct calls calls_on = {
	.msg = &lnx_msg_ops,
	.tagged = &lnx_tagged_ops,
	.rma = &lnx_rma_ops,
	.atomic = &lnx_atomic_ops,
};

void lnx_ep_set_ops(struct lnx_ep *ep, bool enabled)
{
	const struct calls *c = !enabled ? &calls_off :
				ep->native ? &calls_bare :
				ep->srx ? &calls_shared : &calls_on;

	ep->fid.msg = c->msg;
	ep->fid.tagged = c->tagged;
	ep->fid.rma = c->rma;
	ep->fid.atomic = c->atomic;
	if (enabled && ep->bound.inject)
		lnx_inject_set(ep);
}

/* ---- rails and the address ---- */

/* The core address that fi_setname requested for a rail, or NULL. */
static const struct lnx_addr_rail *wanted(const struct lnx_ep *ep,
					  const struct lnx_rail_spec *spec)
{
	unsigned i;

	for (i = 0; ep->address.want && i < ep->address.want->nrail; i++)
		if (ep->address.want->rail[i].prov == spec->prov_id &&
		    ep->address.want->rail[i].group == spec->group)
			return &ep->address.want->rail[i];
	return NULL;
}

static int open_rails(struct lnx_ep *ep)
{
	const struct lnx_link_rails *lr = ep->domain->rails;
	unsigned i;

	for (i = 0; i < lr->nrail; i++) {
		int ret = lnx_rails_add(ep, &lr->rail[i],
					wanted(ep, &lr->rail[i]));

		if (ret)
			return ret;
	}
	return 0;
}

void lnx_ep_close_rails(struct lnx_ep *ep)
{
	unsigned i;

	lnx_links_close(ep);
	lnx_exit_monitor_close(ep);
	/* All core endpoints first: then no more callbacks come. */
	for (i = 0; i < ep->nrail; i++)
		lnx_rail_stop(ep->rail[i]);
	for (i = 0; i < ep->nrail; i++)
		lnx_rail_close(ep->rail[i]);
	ep->nrail = ep->nnet = 0;
	ep->shm = NULL;
}

/*
 * Peers that were inserted before: cores must know some of them to name them as
 * sources.
 */
static void meet_peers(struct lnx_ep *ep)
{
	uint32_t i, n = __atomic_load_n(&ep->av->n, __ATOMIC_ACQUIRE);

	for (i = 0; (ep->shm || ep->meets_all) && i < n; i++) {
		struct lnx_av_entry *e = lnx_av_entry(ep->av, i);
		struct lnx_addr a;
		char why[64];

		if (e && !lnx_addr_unpack(&a, e->blob, sizeof(e->blob), why,
					  sizeof(why)))
			lnx_peer_av_inserted(ep, i, &a);
	}
}

/* ---- wait descriptors ---- */

static int add_wait_fds(struct lnx_ep *ep)
{
	int fd[LNX_FDS_MAX], ret = 0;
	unsigned i, nrail, n = lnx_rails_fds(ep, fd, &nrail);

	for (i = 0; i < nrail && !ret; i++)
		ret = lnx_rails_wait_add(ep, fd[i]);
	/* Without descriptors other than the rails' we check when there is work. */
	for (; i < n && !ret; i++)
		(void)lnx_rails_wait_add(ep, fd[i]);
	return ret;
}

void lnx_ep_del_wait_fds(struct lnx_ep *ep)
{
	int fd[LNX_FDS_MAX];
	unsigned i, nrail, n = lnx_rails_fds(ep, fd, &nrail);

	for (i = 0; i < n; i++)
		lnx_rails_wait_del(ep, fd[i]);
}

/* ---- enable ---- */

/* Can the endpoint do any of `what`, with its caps narrowed by `modifiers`? */
static bool does(uint64_t caps, uint64_t what, uint64_t modifiers,
		 uint64_t way)
{
	return (caps & what) && (!(caps & modifiers) || (caps & way));
}

static int check_bindings(const struct lnx_ep *ep)
{
	uint64_t caps = ep->info->caps, msg = FI_MSG | FI_TAGGED;
	uint64_t msg_ways = FI_SEND | FI_RECV;
	uint64_t rma = FI_RMA | FI_ATOMIC;
	uint64_t rma_ways = FI_READ | FI_WRITE | FI_REMOTE_READ |
			    FI_REMOTE_WRITE;
	bool tx = does(caps, msg, msg_ways, FI_SEND) ||
		  does(caps, rma, rma_ways, FI_READ | FI_WRITE);
	bool rx = does(caps, msg, msg_ways, FI_RECV);

	if (!ep->av) {
		LNX_WARN(FI_LOG_EP_CTRL, "fi_enable: no AV is bound\n");
		return -FI_ENOAV;
	}
	tx = tx && !ep->tx_cq && !ep->cntr[LNX_CNTR_SEND] &&
	     !ep->cntr[LNX_CNTR_WRITE] && !ep->cntr[LNX_CNTR_READ];
	rx = rx && !ep->rx_cq && !ep->cntr[LNX_CNTR_RECV];
	if (tx || rx) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_enable: neither a completion queue nor a counter is bound for %s\n",
			 tx ? "FI_TRANSMIT" : "FI_RECV");
		return -FI_ENOCQ;
	}
	return 0;
}

/*
 * A receive of a shared context names its source by an address, so there can be only
 * one AV.
 */
static int check_shared(const struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	if (!ep->srx && ep->info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_enable: the endpoint is for a shared receive context, and none is bound\n");
		return -FI_EINVAL;
	}
	if (!ep->srx)
		return 0;
	lnx_list_foreach(&ep->srx->shared.users, n, tmp) {
		const struct lnx_ep *other =
			lnx_list_entry(n, struct lnx_ep, shared.link);

		if (!other->enabled || other->av == ep->av)
			continue;
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_enable: endpoints of one shared receive context need one AV; this one has another\n");
		return -FI_EINVAL;
	}
	return 0;
}

/*
 * The flags of calls without a flags argument, and what selective completion leaves of
 * the flags of the others.
 */
static void fix_flags(struct lnx_ep *ep)
{
	uint64_t tx = ep->info->tx_attr ? ep->info->tx_attr->op_flags : 0;
	uint64_t rx = ep->info->rx_attr ? ep->info->rx_attr->op_flags : 0;

	/* FI_INJECT: api/inject.c. */
	ep->tx_flags = tx & (LNX_TX_LEVELS | FI_COMPLETION);
	ep->tx_msg_flags = 0;
	if (!(ep->bound.tx_flags & FI_SELECTIVE_COMPLETION)) {
		ep->tx_flags |= FI_COMPLETION;
		ep->tx_msg_flags |= FI_COMPLETION;
	}
	ep->rx_flags = rx & (FI_COMPLETION | FI_MULTI_RECV);
	ep->rx_msg_flags = 0;
	if (!(ep->bound.rx_flags & FI_SELECTIVE_COMPLETION)) {
		ep->rx_flags |= FI_COMPLETION;
		ep->rx_msg_flags |= FI_COMPLETION;
	}
}

int lnx_ep_enable(struct lnx_ep *ep)
{
	struct fi_domain_attr *dom = ep->info->domain_attr;
	struct lnx_wait *wait[LNX_WAITS_MAX];
	bool thread;
	unsigned i;
	int ret;

	if (ep->enabled)
		return 0;
	ret = check_bindings(ep);
	if (ret)
		return ret;
	thread = dom && dom->data_progress == FI_PROGRESS_AUTO;
	ep->want_wait = lnx_rails_waits(ep, wait) || thread;
	/* The helper thread uses all of these, and so may that of another endpoint of
	 * the shared context. */
	if (ep->want_wait || ep->srx) {
		ep->lock.on = true;
		ep->domain->mr_lock.on = true;
		if (ep->tx_cq)
			ep->tx_cq->lock.on = true;
		if (ep->rx_cq)
			ep->rx_cq->lock.on = true;
		for (i = 0; i < LNX_CNTR_KINDS; i++)
			if (ep->cntr[i] && !ep->cntr[i]->threads)
				ep->cntr[i]->threads = true;
	}
	fix_flags(ep);
	ep->local.pid = getpid();
	if (ep->info->tx_attr->op_flags & FI_INJECT) {
		ret = lnx_inject_new(ep);
		if (ret)
			return ret;
	}
	if ((!ep->tx_cq || !ep->rx_cq) && !ep->bound.null_cq) {
		ret = lnx_cq_null_open(&ep->bound.null_cq);
		if (ret)
			return ret;
	}
	if (!ep->tx_cq)
		ep->tx_cq = ep->bound.null_cq;
	if (!ep->rx_cq)
		ep->rx_cq = ep->bound.null_cq;

	pthread_mutex_lock(&ep->domain->eps_lock);
	lnx_lock(&ep->lock);
	ret = check_shared(ep);
	if (!ret && !ep->native)
		ret = lnx_rxe_reserve(ep);
	if (!ret)
		ret = open_rails(ep);
	if (!ret) {
		lnx_nics_place(ep);
		lnx_links_open(ep);
		lnx_exit_monitor_open(ep);
	}
	if (!ret && !ep->native)
		ret = lnx_rxbuf_reserve(ep);
	if (!ret)
		ret = lnx_ep_address(ep);
	if (!ret)
		ret = lnx_policy_rails(ep);
	if (!ret)
		ret = lnx_gateways_open(ep);
	if (!ret)
		ret = lnx_mr_join(ep);
	if (!ret)
		ret = add_wait_fds(ep);
	if (ret) {
		lnx_mr_detach(ep);
		lnx_ep_del_wait_fds(ep);
		ep->closing = true;
		lnx_ep_close_rails(ep);
		lnx_gateways_close(ep);
		ep->closing = false;
		/*
		 * The shm core goes on finding the closed region by its name, in this
		 * process.
		 */
		if (!ep->address.want) {
			uint64_t eid = lnx_host_random_id();

			ep->eid = eid ? eid : ep->eid;
		}
		/* A CQ may be bound before the next attempt. */
		if (ep->tx_cq == ep->bound.null_cq)
			ep->tx_cq = NULL;
		if (ep->rx_cq == ep->bound.null_cq)
			ep->rx_cq = NULL;
		lnx_unlock(&ep->lock);
		pthread_mutex_unlock(&ep->domain->eps_lock);
		return ret;
	}
	ep->enabled = true;
	lnx_ep_set_ops(ep, true);
	meet_peers(ep);
	lnx_ctl_open(ep);
	lnx_unlock(&ep->lock);
	pthread_mutex_unlock(&ep->domain->eps_lock);
	if (ep->want_wait) {
		ret = lnx_thread_start(ep);
		if (ret && thread)
			return ret;
	}
	return 0;
}
