/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_srx_context: receives for messages that come to any of several endpoints.
 * Called by domain.c and ep.c; posting is in msg/rx_post.c, matching in msg/shared.c.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "core/caps.h"
#include "prov.h"
#include "msg/rx.h"

/*
 * A shared context receives and an endpoint bound to one sends; the other calls of both
 * are those of an endpoint that is not enabled.  Filled in once.
 */
static struct fi_ops_msg recv_msg_ops;
static struct fi_ops_tagged recv_tagged_ops;
struct fi_ops_msg lnx_srx_user_msg_ops;
struct fi_ops_tagged lnx_srx_user_tagged_ops;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
	recv_msg_ops = lnx_msg_off_ops;
	recv_msg_ops.recv = lnx_msg_ops.recv;
	recv_msg_ops.recvv = lnx_msg_ops.recvv;
	recv_msg_ops.recvmsg = lnx_msg_ops.recvmsg;
	recv_tagged_ops = lnx_tagged_off_ops;
	recv_tagged_ops.recv = lnx_tagged_ops.recv;
	recv_tagged_ops.recvv = lnx_tagged_ops.recvv;
	recv_tagged_ops.recvmsg = lnx_tagged_ops.recvmsg;

	lnx_srx_user_msg_ops = lnx_msg_ops;
	lnx_srx_user_msg_ops.recv = lnx_msg_off_ops.recv;
	lnx_srx_user_msg_ops.recvv = lnx_msg_off_ops.recvv;
	lnx_srx_user_msg_ops.recvmsg = lnx_msg_off_ops.recvmsg;
	lnx_srx_user_tagged_ops = lnx_tagged_ops;
	lnx_srx_user_tagged_ops.recv = lnx_tagged_off_ops.recv;
	lnx_srx_user_tagged_ops.recvv = lnx_tagged_off_ops.recvv;
	lnx_srx_user_tagged_ops.recvmsg = lnx_tagged_off_ops.recvmsg;
}

static bool forget(struct lnx_mrecv *r, void *arg)
{
	lnx_match_unpost(arg, r);
	return false;
}

/* Receives that still wait end without a completion, as those of an endpoint do. */
static int srx_close(struct fid *fid)
{
	struct lnx_ep *srx = lnx_ep_of_fid(fid);
	bool busy;

	lnx_lock(&srx->lock);
	busy = srx->shared.n_users;
	lnx_unlock(&srx->lock);
	if (busy)
		return -FI_EBUSY;
	lnx_match_each_posted(&srx->tag, forget, &srx->tag);
	lnx_match_each_posted(&srx->msg, forget, &srx->msg);
	lnx_match_fini(&srx->tag);
	lnx_match_fini(&srx->msg);
	lnx_pool_fini(&srx->rxe_pool);
	lnx_lock_fini(&srx->lock);
	__atomic_sub_fetch(&srx->domain->refs, 1, __ATOMIC_RELEASE);
	free(srx);
	return 0;
}

/* Nothing to do for fi_enable: receives may be posted from the start. */
static int srx_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = lnx_nosys_bind,
	.control = srx_control,
	.ops_open = lnx_nosys_ops_open,
};

static int check(const struct lnx_domain *d, const struct fi_rx_attr *attr)
{
	if (d->rails->nrail && lnx_rail_kind_native(d->rails->rail[0].kind)) {
		LNX_WARN(FI_LOG_DOMAIN,
			 "fi_srx_context: %s: with FI_LNX_USE_SRQ=0, FI_LNX_PROTOCOL=direct or FI_HMEM receives are in the queues of core providers, and cannot be shared\n",
			 d->rails->name);
		return -FI_ENOSYS;
	}
	if (!attr || !d->info->rx_attr)
		return -FI_EINVAL;
	/* FI_PEER is refused too: lnx does not lend its matching to other providers. */
	if (attr->op_flags & ~LNX_RX_OP_FLAGS)
		return -FI_EBADFLAGS;
	if (attr->iov_limit > LNX_IOV_MAX ||
	    attr->caps & ~d->info->rx_attr->caps)
		return -FI_EINVAL;
	return 0;
}

int lnx_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		 struct fid_ep **out, void *context)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	const struct fi_rx_attr *a = attr ? attr : d->info->rx_attr;
	struct lnx_ep *srx;
	int ret = check(d, a);

	if (ret)
		return ret;
	srx = lnx_lines_get(sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	ret = lnx_ep_init_rx(srx);
	if (ret) {
		free(srx);
		return ret;
	}
	lnx_ep_init_lists(srx);
	pthread_once(&tables_once, fill_tables);
	srx->conf = lnx_global_config();
	srx->domain = d;
	srx->directed = (a->caps ? a->caps : d->info->caps) & FI_DIRECTED_RECV;
	srx->rx_flags = a->op_flags & (FI_COMPLETION | FI_MULTI_RECV);
	/* Helper threads of its endpoints use it, whatever the threading model. */
	lnx_lock_init(&srx->lock, true);
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.context = context;
	srx->fid.fid.ops = &srx_fid_ops;
	srx->fid.ops = &lnx_ep_ops;
	srx->fid.msg = &recv_msg_ops;
	srx->fid.tagged = &recv_tagged_ops;
	srx->fid.rma = &lnx_no_rma_ops;
	srx->fid.atomic = &lnx_no_atomic_ops;
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &srx->fid;
	return 0;
}

/* ---- binding ---- */

/*
 * Another thread may be reading what ep is bound to, or inserting into it, and that
 * takes the lock of ep.  So while the lock changes, no thread may find ep.
 */
static void hide(struct lnx_ep *ep)
{
	if (ep->av) {
		lnx_lock(&ep->av->lock);
		lnx_list_del(&ep->bound.av_link);
		lnx_unlock(&ep->av->lock);
	}
	if (ep->tx_cq)
		lnx_eps_del(&ep->tx_cq->eps, &ep->bound.tx_link);
	if (ep->rx_cq)
		lnx_eps_del(&ep->rx_cq->eps, &ep->bound.rx_link);
	lnx_cntr_unbind(ep);
}

static void show(struct lnx_ep *ep)
{
	unsigned i;

	if (ep->av) {
		lnx_lock(&ep->av->lock);
		lnx_list_add_tail(&ep->av->eps, &ep->bound.av_link);
		lnx_unlock(&ep->av->lock);
	}
	if (ep->tx_cq)
		lnx_eps_add(&ep->tx_cq->eps, &ep->bound.tx_link, ep);
	if (ep->rx_cq)
		lnx_eps_add(&ep->rx_cq->eps, &ep->bound.rx_link, ep);
	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (ep->cntr[i])
			lnx_eps_add(&ep->cntr[i]->eps, &ep->bound.cntr_link[i], ep);
}

int lnx_srx_bind(struct lnx_ep *ep, struct fid *fid)
{
	struct lnx_ep *srx = lnx_ep_of_fid(fid);

	if (srx->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->srx)
		return -FI_EBUSY;
	hide(ep);
	lnx_lock_join(&ep->lock, &srx->lock);
	lnx_lock(&ep->lock);
	ep->srx = ep->shared.owner = srx;
	ep->directed = srx->directed;
	lnx_list_add_tail(&srx->shared.users, &ep->shared.link);
	srx->shared.n_users++;
	lnx_unlock(&ep->lock);
	show(ep);
	return 0;
}
