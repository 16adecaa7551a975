/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_endpoint(3): checks the request and makes the object, without rails. */
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "rail/faults.h"
#include "core/caps.h"
#include "core/open.h"
#include "core/policy.h"
#include "core/routes.h"
#include "policy/plan.h"
#include "prov.h"
#include "msg/rx.h"
#include "msg/confirm.h"
#include "rma/rma.h"
#include "msg/tx.h"

#define SLAB_BUF		64
#define SLAB_HUGE		8

static uint32_t pow2_up(uint64_t v)
{
	uint32_t p = 1;

	while (p < v)
		p *= 2;
	return p;
}

void lnx_ep_init_lists(struct lnx_ep *ep)
{
	struct lnx_node *heads[] = {
		&ep->ack_list, &ep->pump_peers, &ep->learn_peers, &ep->local.queued_peers, &ep->pulls.due, &ep->deferred,
		&ep->local.fetches, &ep->local.copies, &ep->local.copied, &ep->local.nameless,
		&ep->local.answers,
		&ep->peers.all, &ep->peers.ended, &ep->reserve, &ep->buf_reserve, &ep->rndv.announced,
		&ep->rndv.dead, &ep->rndv.revoked, &ep->eager.keep, &ep->bound.av_link, &ep->owned,
		&ep->bound.domain_link, &ep->shared.link, &ep->shared.users,
		&ep->backlog.throttled,
	};
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(heads); i++)
		lnx_list_init(heads[i]);
}

int lnx_ep_init_rx(struct lnx_ep *ep)
{
	int ret = lnx_match_init(&ep->tag);

	if (ret)
		return ret;
	ret = lnx_match_init(&ep->msg);
	if (ret) {
		lnx_match_fini(&ep->tag);
		return ret;
	}
	lnx_pool_init(&ep->rxe_pool, sizeof(struct lnx_rxe), LNX_SLAB_RXE);
	ep->rxe_pool.make = lnx_rxe_make;
	lnx_arena_init(&ep->backlog.kept);
	ep->min_multi_recv = LNX_MIN_MULTI_RECV;
	return 0;
}

static int check_info(const struct fi_info *info)
{
	if (!info || !info->ep_attr || !info->domain_attr || !info->tx_attr ||
	    !info->rx_attr)
		return -FI_EINVAL;
	if (info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_endpoint: only FI_EP_RDM is supported\n");
		return -FI_EINVAL;
	}
	if ((info->tx_attr->op_flags & ~LNX_TX_OP_FLAGS) ||
	    (info->rx_attr->op_flags & ~LNX_RX_OP_FLAGS)) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_endpoint: op_flags 0x%llx to send and 0x%llx to receive; supported are 0x%llx and 0x%llx\n",
			 (unsigned long long)info->tx_attr->op_flags,
			 (unsigned long long)info->rx_attr->op_flags,
			 (unsigned long long)LNX_TX_OP_FLAGS,
			 (unsigned long long)LNX_RX_OP_FLAGS);
		return -FI_EBADFLAGS;
	}
	return 0;
}

/* A source address with an identity: the same as fi_setname. */
static int take_source(struct lnx_ep *ep, const struct fi_info *info)
{
	struct lnx_addr a;
	char why[160];

	if (!info->src_addr)
		return 0;
	if (lnx_addr_source_unpack(&a, info->src_addr, info->src_addrlen, why,
				   sizeof(why))) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_endpoint: src_addr is not of fi_getinfo or fi_getname: %s\n",
			 why);
		return -FI_EINVAL;
	}
	if (!a.eid)
		return 0;
	ep->address.want = malloc(sizeof(*ep->address.want));
	if (!ep->address.want)
		return -FI_ENOMEM;
	*ep->address.want = a;
	ep->eid = a.eid;
	return 0;
}

/* What is granted to peers for large frames, and room for these. */
static void set_eager(struct lnx_ep *ep)
{
	const struct lnx_link_rails *rails = ep->domain->rails;
	unsigned i;

	ep->eager.pool.peer = ep->conf->eager_peer;
	ep->eager.pool.total = ep->conf->eager_total;
	ep->eager.pool.least = LNX_PAYLOAD_MAX + 1;
	ep->limits.rx_frame = LNX_FRAME_MAX;
	for (i = 0; ep->eager.pool.peer && i < rails->nrail; i++)
		if (rails->rail[i].prov_id == LNX_PROV_TCP ||
		    rails->rail[i].prov_id == LNX_PROV_TCP_RXM)
			ep->limits.rx_frame = LNX_FRAME_LARGE;
	/* Gateways send envelopes with them. */
	if (lnx_routes_wanted(ep->conf))
		ep->limits.rx_frame = LNX_FRAME_LARGE;
}

/* What messages without a receive may take. */
static void set_backlog(struct lnx_ep *ep)
{
	struct lnx_backlog *b = &ep->backlog.sum;
	uint64_t limit = ep->conf->unexpected_limit;

	b->limit = limit ? LNX_MIN(limit, LNX_BACKLOG_NONE) : LNX_BACKLOG_NONE;
	b->window = ep->limits.window;
	b->reserve = (uint64_t)b->window * LNX_FRAME_MAX;
}

int lnx_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **out, void *context)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	static const size_t frame[] = {
		LNX_TXE_SMALL, LNX_TXE_MEDIUM, LNX_TXE_LARGE, LNX_TXE_HUGE,
	};
	struct lnx_ep *ep;
	unsigned i;
	int ret = check_info(info);

	if (ret)
		return ret;
	ep = lnx_lines_get(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ret = -FI_ENOMEM;
	ep->conf = lnx_global_config();
	lnx_plan_make(&ep->plan, ep->conf);
	ep->domain = d;
	ep->native = d->rails->nrail && lnx_rail_kind_native(d->rails->rail[0].kind);
	ep->info = fi_dupinfo(info);
	ep->by_eid_mask = 15;
	ep->by_eid = calloc(ep->by_eid_mask + 1, sizeof(*ep->by_eid));
	ep->by_sid = calloc(ep->by_eid_mask + 1, sizeof(*ep->by_sid));
	if (!ep->info || !ep->by_eid || !ep->by_sid)
		goto err;
	ep->eid = lnx_host_random_id();
	if (!ep->eid) {
		ret = -FI_EIO;
		goto err;
	}
	ret = take_source(ep, info);
	if (ret)
		goto err;
	ret = lnx_ep_init_rx(ep);
	if (ret)
		goto err;
	ret = lnx_faults_open(ep);
	if (!ret)
		ret = lnx_ep_timers_open(ep);
	if (!ret) {
		ret = lnx_ep_policy_open(ep);
		if (ret)
			lnx_ep_timers_close(ep);
	}
	if (ret) {
		lnx_faults_close(ep);
		lnx_match_fini(&ep->tag);
		lnx_match_fini(&ep->msg);
		goto err;
	}
	lnx_ep_init_lists(ep);
	lnx_rma_init(ep);
	static_assert(LNX_ARRAY_SIZE(frame) == LNX_ARRAY_SIZE(ep->txe_pool), "all");
	for (i = 0; i < LNX_ARRAY_SIZE(frame); i++)
		lnx_pool_init(&ep->txe_pool[i], sizeof(struct lnx_txe) +
			      sizeof(struct lnx_wire_hdr) + frame[i],
			      frame[i] < LNX_TXE_HUGE ? SLAB_BUF : SLAB_HUGE);
	set_eager(ep);
	lnx_pool_init(&ep->rxbuf_pool, sizeof(struct lnx_rxbuf) + ep->limits.rx_frame,
		      SLAB_BUF);
	lnx_pool_init(&ep->eager.small_bufs, sizeof(struct lnx_rxbuf) + LNX_FRAME_MAX,
		      SLAB_BUF);
	lnx_pool_init(&ep->eager.sends, lnx_parts_send_size, SLAB_BUF);
	lnx_pool_init(&ep->chunk_pool, lnx_chunk_size, SLAB_BUF);
	lnx_confirm_init(ep);
	ep->limits.window = pow2_up(ep->conf->window);
	set_backlog(ep);
	ep->poll.idle_mask = pow2_up(ep->conf->poll_idle) - 1;
	ep->poll_credits = (uint32_t)ep->conf->poll_credits;
	ep->ack_every = (uint32_t)ep->conf->ack_every;
	ep->limits.eager = (uint32_t)LNX_MIN(ep->conf->eager_limit, LNX_PAYLOAD_MAX);
	ep->limits.max_msg_size = info->ep_attr->max_msg_size ?
			   LNX_MIN(info->ep_attr->max_msg_size,
				   LNX_MSG_SIZE_MAX) : LNX_MSG_SIZE_MAX;
	ep->limits.copy = LNX_MIN((uint32_t)ep->conf->copy_limit,
				 ep->limits.eager);
	ep->limits.short_max = (uint32_t)LNX_MIN(LNX_MIN(ep->limits.copy,
						  ep->limits.max_msg_size),
					  LNX_TXE_SMALL);
	ep->limits.tx_size = info->tx_attr->size ? (uint32_t)info->tx_attr->size : 1024;
	ep->saw = (info->tx_attr->msg_order & FI_ORDER_SAW) != 0;
	ep->inject_size = info->tx_attr->inject_size ?
			  LNX_MIN(info->tx_attr->inject_size, LNX_INJECT_MAX) :
			  LNX_INJECT_MAX;
	ep->directed = (info->caps & FI_DIRECTED_RECV) != 0;
	/* Only the core can tell the source of a message. */
	ep->meets_all = ep->native && (info->caps & FI_SOURCE);
	ep->up = &lnx_up;
	lnx_lock_init(&ep->lock, d->threads ||
		      info->domain_attr->data_progress == FI_PROGRESS_AUTO);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &lnx_ep_fid_ops;
	ep->fid.ops = &lnx_ep_ops;
	ep->fid.cm = &lnx_ep_cm_ops;
	lnx_ep_set_ops(ep, false);
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &ep->fid;
	return 0;
err:
	fi_freeinfo(ep->info);
	free(ep->by_eid);
	free(ep->address.want);
	free(ep->by_sid);
	free(ep);
	return ret;
}
