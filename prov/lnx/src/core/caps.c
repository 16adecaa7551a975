/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See caps.h.  The rule for everything here: offer what works over every rail of the
 * link, whichever a message takes; refuse what an application asks for beyond that,
 * never weaken it silently.
 */
#include "core/caps.h"

#include <string.h>

#include "base/compiler.h"
#include "obj/ep.h"
#include "prov.h"

/* Old spellings of mr_mode.  libfabric's own names warn when they are used. */
#define MR_BASIC	(1 << 0)
#define MR_SCALABLE	(1 << 1)

/* Alternating bits: each of the 64 may be used and masked on its own. */
#define TAG_64_BITS	0xaaaaaaaaaaaaaaaaULL

/*
 * One sequence orders messages, writes, reads and atomics to a peer.  Left out is what
 * large transfers, which are negotiated, do not keep between different kinds.
 */
#define MSG_ORDER	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | \
			 FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | \
			 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | \
			 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
			 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | \
			 FI_ORDER_ATOMIC_WAW)
/* Makes large writes slower: given only when asked for. */
#define ON_REQUEST	FI_ORDER_SAW

/*
 * The capabilities, one row each; a new one is a new row.
 *	PRIMARY		only given when asked for
 *	MODIFIER	narrows a primary; all of them when none is asked for
 *	FREE		given even if not asked for
 *	RAILS		the same, but only as far as the rails have it
 */
enum cap_class { PRIMARY, MODIFIER, FREE, RAILS };
#define TX	1
#define RX	2
#define DOMAIN	4
static const struct cap {
	uint64_t bit;
	enum cap_class class;
	unsigned where;			/* attributes that repeat it */
} caps[] = {
	{ FI_MSG, PRIMARY, TX | RX },
	{ FI_TAGGED, PRIMARY, TX | RX },
	{ FI_RMA, PRIMARY, TX | RX },
	{ FI_ATOMIC, PRIMARY, TX | RX },
	{ FI_RMA_EVENT, PRIMARY, RX },
	{ FI_HMEM, PRIMARY, TX | RX },
	/* Costs a check of each source, so only when it is wanted. */
	{ FI_DIRECTED_RECV, PRIMARY, RX },
	{ FI_SOURCE, PRIMARY, RX },
	{ FI_SEND, MODIFIER, TX },
	{ FI_RECV, MODIFIER, RX },
	{ FI_READ, MODIFIER, TX },
	{ FI_WRITE, MODIFIER, TX },
	{ FI_REMOTE_READ, MODIFIER, RX },
	{ FI_REMOTE_WRITE, MODIFIER, RX },
	{ FI_MULTI_RECV, FREE, RX },
	{ FI_LOCAL_COMM, RAILS, DOMAIN },
	{ FI_REMOTE_COMM, RAILS, DOMAIN },
};

static uint64_t caps_of(enum cap_class class)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < LNX_ARRAY_SIZE(caps); i++)
		if (caps[i].class == class)
			bits |= caps[i].bit;
	return bits;
}

static uint64_t caps_in(unsigned where)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < LNX_ARRAY_SIZE(caps); i++)
		if (caps[i].where & where)
			bits |= caps[i].bit;
	return bits;
}

/* Modifiers of the two families of primaries, and of the two halves. */
#define MSG_CAPS	(FI_MSG | FI_TAGGED)
#define MSG_MODIFIERS	(FI_SEND | FI_RECV)
#define RMA_CAPS	(FI_RMA | FI_ATOMIC)
#define RMA_MODIFIERS	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define TX_MODIFIERS	(FI_SEND | FI_READ | FI_WRITE)
#define RX_MODIFIERS	(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)

/*
 * Modifiers of a family count only with one of its primaries.  Naming none of them
 * means all.
 */
static uint64_t with_modifiers(uint64_t bits, uint64_t ask, uint64_t primaries,
			       uint64_t modifiers)
{
	bits &= ~modifiers;
	if (!(bits & primaries))	/* only it was asked for: return it */
		return bits | (ask & modifiers);
	return bits | (ask & modifiers ? ask & modifiers : modifiers);
}

/*
 * The part of an endpoint's caps that its sending or receiving half has.  Without a
 * primary that has modifiers, no half is left out.
 */
static uint64_t half(uint64_t all, unsigned where, uint64_t modifiers)
{
	return (all & modifiers) || !(all & (MSG_CAPS | RMA_CAPS)) ?
	       all & caps_in(where) : 0;
}

/* One rail that has it is enough: peers are reached over that rail. */
static uint64_t rail_caps(const struct lnx_link_rails *lr)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < lr->nrail; i++)
		bits |= lr->rail[i].info->caps;
	return bits & caps_of(RAILS);
}

/*
 * The core limits only operations that are its own: larger payloads of framed rails are
 * read in pieces, small ones are copied into frames.
 */
static size_t direct_limit(const struct lnx_link_rails *lr, size_t limit,
			   size_t (*of)(const struct fi_info *))
{
	for (unsigned i = 0; i < lr->nrail; i++)
		if (lr->rail[i].kind == LNX_RAIL_DIRECT ||
		    lnx_rail_kind_native(lr->rail[i].kind))
			limit = LNX_MIN(limit, of(lr->rail[i].info));
	return limit;
}

static size_t max_msg_of(const struct fi_info *info)
{
	return info->ep_attr->max_msg_size;
}

static size_t inject_of(const struct fi_info *info)
{
	return info->tx_attr->inject_size;
}

static size_t tx_iov_of(const struct fi_info *info)
{
	return info->tx_attr->iov_limit;
}

static size_t rma_iov_of(const struct fi_info *info)
{
	return info->tx_attr->rma_iov_limit;
}

static size_t rx_iov_of(const struct fi_info *info)
{
	return info->rx_attr->iov_limit;
}

/* Every endpoint of ours opens a core endpoint on each rail. */
static size_t least_endpoints(const struct lnx_link_rails *lr)
{
	size_t n = 1024;

	for (unsigned i = 0; i < lr->nrail; i++)
		if (lr->rail[i].info->domain_attr->ep_cnt)
			n = LNX_MIN(n, lr->rail[i].info->domain_attr->ep_cnt);
	return n;
}

/* Native rails: an operation is the core's own, so offer only what each core has. */
static void narrow(struct fi_info *info, const struct lnx_rail_spec *rail)
{
	const struct fi_info *core = rail->info;
	uint64_t all = caps_of(PRIMARY) | FI_MULTI_RECV, caps = core->caps;
	struct fi_ep_attr *ep = info->ep_attr;

	info->domain_attr->max_ep_srx_ctx = 0;
	/* Their limits would have to be narrowed as well. */
	caps &= ~FI_ATOMIC;
	/*
	 * Cores count peers' operations on an endpoint's memory, not on a registration.
	 */
	caps &= ~FI_RMA_EVENT;
	info->caps &= caps | ~all;
	if (!(info->caps & RMA_CAPS))
		info->caps &= ~RMA_MODIFIERS;
	info->tx_attr->msg_order &= core->tx_attr->msg_order;
	info->rx_attr->msg_order &= core->rx_attr->msg_order;
	ep->max_order_raw_size = LNX_MIN(ep->max_order_raw_size,
					 core->ep_attr->max_order_raw_size);
	ep->max_order_war_size = LNX_MIN(ep->max_order_war_size,
					 core->ep_attr->max_order_war_size);
	ep->max_order_waw_size = LNX_MIN(ep->max_order_waw_size,
					 core->ep_attr->max_order_waw_size);
	info->domain_attr->cq_data_size =
		LNX_MIN(info->domain_attr->cq_data_size,
			core->domain_attr->cq_data_size);
	/* Only shm takes our keys and virtual addresses together. */
	if (!lnx_rail_kind_local(rail->kind))
		info->domain_attr->mr_mode &= ~MR_BASIC;
}

struct fi_info *lnx_caps_offer(const struct lnx_link_rails *lr)
{
	struct fi_info *info = fi_allocinfo();
	struct fi_domain_attr *dom;
	struct fi_ep_attr *ep;
	struct fi_tx_attr *tx;
	struct fi_rx_attr *rx;

	if (!info)
		return NULL;
	dom = info->domain_attr;
	ep = info->ep_attr;
	tx = info->tx_attr;
	rx = info->rx_attr;

	info->caps = caps_of(PRIMARY) | caps_of(MODIFIER) | caps_of(FREE) |
		     rail_caps(lr);
	info->addr_format = LNX_ADDR_FORMAT;

	tx->msg_order = MSG_ORDER | ON_REQUEST;
	tx->inject_size = direct_limit(lr, LNX_INJECT_MAX, inject_of);
	tx->size = LNX_QUEUE_SIZE;
	tx->iov_limit = direct_limit(lr, LNX_IOV_MAX, tx_iov_of);
	tx->rma_iov_limit = direct_limit(lr, LNX_RMA_IOV_MAX, rma_iov_of);

	rx->msg_order = MSG_ORDER | ON_REQUEST;
	rx->size = LNX_QUEUE_SIZE;
	rx->iov_limit = direct_limit(lr, LNX_IOV_MAX, rx_iov_of);

	ep->type = FI_EP_RDM;
	ep->protocol = LNX_PROTO;
	ep->protocol_version = LNX_PROTO_VERSION;
	ep->max_msg_size = direct_limit(lr, LNX_MSG_SIZE_MAX, max_msg_of);
	ep->mem_tag_format = TAG_64_BITS;
	/* A longer transfer is a negotiation that later ones overtake. */
	ep->max_order_raw_size = LNX_GET_MAX;
	ep->max_order_war_size = LNX_GET_MAX;
	ep->max_order_waw_size = LNX_PUT_MAX;
	ep->tx_ctx_cnt = 1;
	ep->rx_ctx_cnt = 1;

	dom->threading = FI_THREAD_SAFE;
	dom->control_progress = FI_PROGRESS_MANUAL;
	dom->data_progress = FI_PROGRESS_MANUAL;
	dom->resource_mgmt = FI_RM_ENABLED;
	dom->av_type = FI_AV_UNSPEC;
	dom->mr_mode = MR_BASIC | MR_SCALABLE;	/* possible; see fit_mr_mode */
	dom->mr_key_size = sizeof(uint64_t);
	dom->mr_iov_limit = 1;
	dom->cq_data_size = sizeof(uint64_t);
	dom->cq_cnt = LNX_QUEUE_SIZE_MAX;
	dom->cntr_cnt = LNX_QUEUE_SIZE_MAX;
	dom->ep_cnt = least_endpoints(lr);
	dom->tx_ctx_cnt = dom->ep_cnt;
	dom->rx_ctx_cnt = dom->ep_cnt;
	dom->max_ep_tx_ctx = 1;
	dom->max_ep_rx_ctx = 1;
	dom->max_ep_srx_ctx = dom->ep_cnt;
	for (unsigned i = 0; i < lr->nrail; i++)
		if (lnx_rail_kind_native(lr->rail[i].kind))
			narrow(info, &lr->rail[i]);
		else
			info->caps &= ~FI_HMEM;	/* we copy payloads there */
	tx->caps = half(info->caps, TX, TX_MODIFIERS);
	rx->caps = half(info->caps, RX, RX_MODIFIERS);
	dom->caps = info->caps & caps_in(DOMAIN);
	return info;
}

/* ---- hints ---- */

#define REFUSE(reason) do { *why = (reason); return -FI_ENODATA; } while (0)

static int fit_caps(struct fi_info *info, const struct fi_info *hints,
		    const char **why)
{
	uint64_t ask = hints->caps, modifiers = caps_of(MODIFIER);

	if (ask & ~info->caps)
		REFUSE("caps");
	if (ask) {
		info->caps &= (ask & (caps_of(PRIMARY) | modifiers)) |
			      caps_of(FREE) | caps_of(RAILS);
		info->caps = with_modifiers(info->caps, ask, MSG_CAPS,
					    MSG_MODIFIERS);
		info->caps = with_modifiers(info->caps, ask, RMA_CAPS,
					    RMA_MODIFIERS);
		if (!(info->caps & FI_RECV) && !(ask & FI_MULTI_RECV))
			info->caps &= ~FI_MULTI_RECV;
	}
	info->tx_attr->caps = half(info->caps, TX, TX_MODIFIERS);
	info->rx_attr->caps = half(info->caps, RX, RX_MODIFIERS);
	info->domain_attr->caps = info->caps & caps_in(DOMAIN);
	return 0;
}

/* Caps of one half: a subset of what the endpoint has, or 0 for all of it. */
static int fit_half(uint64_t *have, uint64_t ask, uint64_t modifier)
{
	if (!ask)
		return 0;
	if (ask & ~*have)
		return -FI_ENODATA;
	*have &= ask | modifier | caps_of(FREE);
	return 0;
}

static int fit_size(size_t *have, size_t ask)
{
	if (!ask)
		return 0;
	if (ask > LNX_QUEUE_SIZE_MAX)
		return -FI_ENODATA;
	*have = ask;
	return 0;
}

static int fit_tx(struct fi_info *info, const struct fi_tx_attr *ask,
		  const char **why)
{
	struct fi_tx_attr *tx = info->tx_attr;

	if (fit_half(&tx->caps, ask->caps, TX_MODIFIERS))
		REFUSE("tx_attr->caps");
	if (ask->op_flags & ~LNX_TX_OP_FLAGS)
		REFUSE("tx_attr->op_flags");
	if (ask->msg_order & ~tx->msg_order)
		REFUSE("tx_attr->msg_order");
	if (ask->comp_order & ~tx->comp_order)
		REFUSE("tx_attr->comp_order");
	if (ask->inject_size > tx->inject_size)
		REFUSE("tx_attr->inject_size");
	if (fit_size(&tx->size, ask->size))
		REFUSE("tx_attr->size");
	if (ask->iov_limit > tx->iov_limit)
		REFUSE("tx_attr->iov_limit");
	if (ask->rma_iov_limit > tx->rma_iov_limit)
		REFUSE("tx_attr->rma_iov_limit");
	/* Labels are hints; a DSCP is a number on the wire, which we do not set. */
	if (ask->tclass & FI_TC_DSCP)
		REFUSE("tx_attr->tclass");
	tx->op_flags = ask->op_flags;
	return 0;
}

static int fit_rx(struct fi_info *info, const struct fi_rx_attr *ask,
		  const char **why)
{
	struct fi_rx_attr *rx = info->rx_attr;

	if (fit_half(&rx->caps, ask->caps, RX_MODIFIERS))
		REFUSE("rx_attr->caps");
	if (ask->op_flags & ~LNX_RX_OP_FLAGS)
		REFUSE("rx_attr->op_flags");
	if (ask->msg_order & ~rx->msg_order)
		REFUSE("rx_attr->msg_order");
	if (ask->comp_order & ~rx->comp_order)
		REFUSE("rx_attr->comp_order");
	if (fit_size(&rx->size, ask->size))
		REFUSE("rx_attr->size");
	if (ask->iov_limit > rx->iov_limit)
		REFUSE("rx_attr->iov_limit");
	rx->op_flags = ask->op_flags;
	return 0;
}

static int fit_ep(struct fi_info *info, const struct fi_ep_attr *ask,
		  const char **why)
{
	struct fi_ep_attr *ep = info->ep_attr;

	if (ask->type != FI_EP_UNSPEC && ask->type != ep->type)
		REFUSE("ep_attr->type");
	if (ask->protocol && ask->protocol != ep->protocol)
		REFUSE("ep_attr->protocol");
	if (ask->protocol_version > ep->protocol_version)
		REFUSE("ep_attr->protocol_version");
	if (ask->max_msg_size > ep->max_msg_size)
		REFUSE("ep_attr->max_msg_size");
	if (ask->max_order_raw_size > ep->max_order_raw_size ||
	    ask->max_order_war_size > ep->max_order_war_size ||
	    ask->max_order_waw_size > ep->max_order_waw_size)
		REFUSE("ep_attr->max_order_*_size");
	/* Shared contexts are requested with the largest possible number. */
	if (ask->tx_ctx_cnt > 1)
		REFUSE("ep_attr->tx_ctx_cnt");
	if (ask->rx_ctx_cnt == FI_SHARED_CONTEXT &&
	    info->domain_attr->max_ep_srx_ctx)
		ep->rx_ctx_cnt = ask->rx_ctx_cnt;
	else if (ask->rx_ctx_cnt > 1)
		REFUSE("ep_attr->rx_ctx_cnt");
	if (ask->auth_key_size)
		REFUSE("ep_attr->auth_key_size");
	/* Every tag format is a restriction of all 64 bits. */
	return 0;
}

static int fit_threading(struct fi_domain_attr *dom, enum fi_threading ask)
{
	switch (ask) {
	case FI_THREAD_UNSPEC:
		return 0;
	case FI_THREAD_SAFE:
	case FI_THREAD_FID:
	case FI_THREAD_DOMAIN:
	case FI_THREAD_COMPLETION:
	case FI_THREAD_ENDPOINT:
		dom->threading = ask;
		return 0;
	}
	return -FI_ENODATA;
}

static int fit_progress(enum fi_progress *have, enum fi_progress ask)
{
	switch (ask) {
	case FI_PROGRESS_UNSPEC:
		return 0;
	case FI_PROGRESS_AUTO:
		if (!lnx_global_config()->thread)
			return -FI_ENODATA;
		*have = ask;
		return 0;
	case FI_PROGRESS_MANUAL:
	case FI_PROGRESS_CONTROL_UNIFIED:
		*have = ask;
		return 0;
	}
	return -FI_ENODATA;
}

/*
 * Nothing has to be registered, so every set of modern mode bits is fine, and none is
 * needed.  Only the old BASIC promises keys that we pick and virtual addresses:
 * applications that ask for it get them; so do those of an API version before there
 * were bits, if they say nothing.
 */
static int fit_mr_mode(struct fi_domain_attr *dom, uint32_t version, int ask)
{
	int can = dom->mr_mode;

	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) && ask != MR_BASIC)
		ask = !ask && (can & MR_BASIC) ? MR_BASIC : MR_SCALABLE;
	dom->mr_mode = 0;
	if (ask != MR_BASIC && ask != MR_SCALABLE)
		return 0;
	dom->mr_mode = ask & can;
	return dom->mr_mode ? 0 : -FI_ENODATA;
}

static int fit_domain(struct fi_info *info, uint32_t version,
		      const struct fi_domain_attr *ask, const char **why)
{
	struct fi_domain_attr *dom = info->domain_attr;

	if (ask->caps & ~dom->caps)
		REFUSE("domain_attr->caps");
	if (fit_threading(dom, ask->threading))
		REFUSE("domain_attr->threading");
	if (fit_progress(&dom->control_progress, ask->control_progress))
		REFUSE("domain_attr->control_progress");
	if (fit_progress(&dom->data_progress, ask->data_progress))
		REFUSE("domain_attr->data_progress");
	if (ask->resource_mgmt != FI_RM_UNSPEC &&
	    ask->resource_mgmt != FI_RM_DISABLED &&
	    ask->resource_mgmt != FI_RM_ENABLED)
		REFUSE("domain_attr->resource_mgmt");
	if (ask->av_type != FI_AV_UNSPEC && ask->av_type != FI_AV_MAP &&
	    ask->av_type != FI_AV_TABLE)
		REFUSE("domain_attr->av_type");
	if (fit_mr_mode(dom, version, ask->mr_mode))
		REFUSE("domain_attr->mr_mode");
	if (ask->mr_key_size > dom->mr_key_size)
		REFUSE("domain_attr->mr_key_size");
	if (ask->cq_data_size > dom->cq_data_size)
		REFUSE("domain_attr->cq_data_size");
	if (ask->cq_cnt > dom->cq_cnt || ask->cntr_cnt > dom->cntr_cnt ||
	    ask->ep_cnt > dom->ep_cnt || ask->tx_ctx_cnt > dom->tx_ctx_cnt ||
	    ask->rx_ctx_cnt > dom->rx_ctx_cnt)
		REFUSE("domain_attr->*_cnt");
	if (ask->max_ep_tx_ctx > dom->max_ep_tx_ctx ||
	    ask->max_ep_rx_ctx > dom->max_ep_rx_ctx ||
	    ask->max_ep_stx_ctx > dom->max_ep_stx_ctx ||
	    ask->max_ep_srx_ctx > dom->max_ep_srx_ctx)
		REFUSE("domain_attr->max_ep_*_ctx");
	if (ask->mr_iov_limit > dom->mr_iov_limit)
		REFUSE("domain_attr->mr_iov_limit");
	if (ask->auth_key_size)
		REFUSE("domain_attr->auth_key_size");
	if (ask->tclass & FI_TC_DSCP)
		REFUSE("domain_attr->tclass");
	dom->av_type = ask->av_type;
	return 0;
}

/* Attributes that libfabric knows only since API version 1.20. */
static int fit_new(const struct fi_domain_attr *ask, uint32_t version,
		   const char **why)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 20)))
		return 0;
	if (ask->max_ep_auth_key)
		REFUSE("domain_attr->max_ep_auth_key");
	if (ask->max_group_id)
		REFUSE("domain_attr->max_group_id");
	return 0;
}

/* Only its descriptor tells cores the kind of a buffer's memory. */
static int fit_hmem(struct fi_domain_attr *dom,
		    const struct fi_domain_attr *ask, const char **why)
{
	if (!ask || !(ask->mr_mode & FI_MR_HMEM))
		REFUSE("domain_attr->mr_mode: FI_HMEM needs FI_MR_HMEM");
	dom->mr_mode |= FI_MR_HMEM;
	return 0;
}

int lnx_caps_fit(struct fi_info *info, uint32_t version,
		 const struct fi_info *hints, const char **why)
{
	int ret;

	if (!hints || !hints->tx_attr || !hints->rx_attr ||
	    !((hints->tx_attr->msg_order | hints->rx_attr->msg_order) &
	      ON_REQUEST)) {
		info->tx_attr->msg_order &= ~ON_REQUEST;
		info->rx_attr->msg_order &= ~ON_REQUEST;
	}
	if (!hints)
		return fit_mr_mode(info->domain_attr, version, 0);

	if (hints->addr_format != FI_FORMAT_UNSPEC &&
	    hints->addr_format != LNX_ADDR_FORMAT)
		REFUSE("addr_format");
	ret = fit_caps(info, hints, why);
	if (!ret && hints->ep_attr)
		ret = fit_ep(info, hints->ep_attr, why);
	if (!ret && hints->tx_attr)
		ret = fit_tx(info, hints->tx_attr, why);
	if (!ret && hints->rx_attr)
		ret = fit_rx(info, hints->rx_attr, why);
	if (!ret && hints->domain_attr)
		ret = fit_domain(info, version, hints->domain_attr, why);
	else if (!ret)
		ret = fit_mr_mode(info->domain_attr, version, 0);
	if (!ret && hints->domain_attr)
		ret = fit_new(hints->domain_attr, version, why);
	if (!ret && (info->caps & FI_HMEM))
		ret = fit_hmem(info->domain_attr, hints->domain_attr, why);
	return ret;
}
