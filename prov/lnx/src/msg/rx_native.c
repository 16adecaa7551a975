/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives over native rails (FI_LNX_USE_SRQ=0): each goes to the core that its source
 * sends to, and stays there.  Called by api/native_*.c and api/ep.c; completions come
 * through rail/native.c.
 *
 * A receive from any source would have to be in the queues of all rails at once, and
 * the first message would have to cancel it in the others.  Cores cannot do that
 * without a race: so it needs a link of one rail.
 */
#include "msg/iov.h"
#include "msg/native.h"
#include "msg/rx.h"
#include "rail/direct.h"

#define FLAGS	(FI_COMPLETION | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD)

static LNX_COLD ssize_t any_source(const struct lnx_ep *ep)
{
	FI_WARN_ONCE(&lnx_prov, FI_LOG_EP_DATA,
		     "a receive from any source over %u rails (%s): with FI_LNX_USE_SRQ=0 or FI_LNX_PROTOCOL=direct it needs a link of one rail, or a source (and FI_DIRECTED_RECV)\n",
		     ep->nrail, ep->domain->rails->name);
	return -FI_EOPNOTSUPP;
}

/* The rail whose queue a receive belongs in.  0, or what fi_recv returns. */
static ssize_t queue_of(struct lnx_ep *ep, fi_addr_t src,
			struct lnx_rail **rail, fi_addr_t *core_src)
{
	if (!ep->directed || src == FI_ADDR_UNSPEC) {
		*rail = ep->rail[0];
		*core_src = FI_ADDR_UNSPEC;
		return lnx_likely(ep->nrail == 1) ? 0 : any_source(ep);
	}
	return lnx_native_find(ep, src, rail, core_src);
}

/*
 * libfabric's own receive queue, which shm and ofi_rxm use, crashes when an untagged
 * receive with a source is cancelled.  The context alone does not tell which receive it
 * is.
 */
static bool may_crash(const struct lnx_rail *rail)
{
	return rail->prov == LNX_PROV_SHM || rail->prov == LNX_PROV_TCP_RXM ||
	       rail->prov == LNX_PROV_VERBS_RXM;
}

ssize_t lnx_rx_native_post(struct lnx_ep *ep, const struct lnx_recv *r)
{
	void *core_desc[LNX_IOV_MAX], **desc;
	struct lnx_rail *rail = NULL;
	fi_addr_t core_src;
	ssize_t ret;

	if (lnx_unlikely(r->niov > 1) && lnx_iov_check("receive", r->iov, r->niov))
		return -FI_EINVAL;
	lnx_lock(&ep->lock);
	ret = queue_of(ep, r->src, &rail, &core_src);
	if (lnx_unlikely(ret))
		goto out;
	desc = lnx_native_desc(rail, r->desc, r->niov, core_desc);
	if (lnx_unlikely(r->flags & FI_PEEK))
		lnx_obj_progress(ep);	/* callers loop on FI_PEEK alone */
	ret = lnx_direct_post_recv(rail->core_ep, core_src, r, desc, r->flags & FLAGS);
	if (!r->tagged && core_src != FI_ADDR_UNSPEC && may_crash(rail))
		rail->no_cancel = true;
	lnx_native_busy(rail);
out:
	lnx_unlock(&ep->lock);
	return ret;
}

/*
 * It is not known which queue the receive is in.  -FI_ENOENT if none has it;
 * -FI_EOPNOTSUPP if asking is not safe.
 */
ssize_t lnx_rx_native_cancel(struct lnx_ep *ep, void *context)
{
	ssize_t ret = -FI_ENOENT;
	uint32_t i;

	lnx_lock(&ep->lock);
	for (i = 0; i < ep->nrail; i++) {
		if (!ep->rail[i]->no_cancel)
			continue;
		lnx_unlock(&ep->lock);
		FI_WARN_ONCE(&lnx_prov, FI_LOG_EP_DATA,
			     "fi_cancel: refused, because %s crashes if it is to cancel an untagged receive with a source, and such were posted\n",
			     ep->rail[i]->name);
		return -FI_EOPNOTSUPP;
	}
	for (i = 0; i < ep->nrail; i++) {
		lnx_native_busy(ep->rail[i]);
		if (!fi_cancel(&ep->rail[i]->core_ep->fid, context))
			ret = 0;
	}
	lnx_unlock(&ep->lock);
	return ret;
}

int lnx_rx_native_min_multi_recv(struct lnx_ep *ep)
{
	uint32_t i;
	int ret = 0, one;

	for (i = 0; i < ep->nrail; i++) {
		one = fi_setopt(&ep->rail[i]->core_ep->fid, FI_OPT_ENDPOINT,
				FI_OPT_MIN_MULTI_RECV, &ep->min_multi_recv,
				sizeof(ep->min_multi_recv));
		ret = ret ? ret : one;
	}
	return ret;
}
