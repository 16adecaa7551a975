/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Adds rails to an endpoint: see rails.h.  Called by api/ep_enable.c and comp/links.c;
 * calls core/open.c.
 */
#include "comp/rails.h"

#include "comp/comp.h"
#include "core/exit_monitor.h"
#include "os/netwatch.h"
#include "core/open.h"
#include "msg/rx.h"

static struct lnx_rail_owner owner_of(const struct lnx_ep *ep,
				      const struct lnx_addr_rail *src)
{
	return (struct lnx_rail_owner) {
		.direct_cq_ops = &lnx_direct_cq_ops,
		.framed_cq_ops = &lnx_framed_cq_ops,
		.direct_srx_ops = &lnx_direct_srx_ops,
		.framed_srx_ops = &lnx_framed_srx_ops,
		.direct_cntr_ops = &lnx_direct_cntr_ops,
		.fid_ops = &lnx_peer_fid_ops,
		.wait = ep->want_wait,
		.src_addr = src ? src->raw : NULL,
		.src_addrlen = src ? src->rawlen : 0,
	};
}

int lnx_rails_add(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
		  const struct lnx_addr_rail *src)
{
	struct lnx_rail_owner owner = owner_of(ep, src);
	struct lnx_rail *rail;
	int ret;

	if (ep->nrail == LNX_RAILS_MAX)
		return -FI_ENOSPC;
	ret = lnx_rail_open(ep, spec, &owner, &rail);
	if (ret)
		return ret;
	rail->driver = lnx_rail_driver(rail->kind);
	ret = lnx_rail_init(rail);
	if (ret) {
		lnx_rail_stop(rail);
		lnx_rail_close(rail);
		return ret;
	}
	ep->rail[ep->nrail++] = rail;
	if (lnx_rail_kind_local(rail->kind)) {
		ep->shm = rail;
		/*
		 * A native shm rail is polled with the network rails, and in every
		 * pass.
		 */
		ep->nnet += ep->native;
		return 0;
	}
	ep->nnet++;
	ret = rail->driver->refill(rail);
	if (ret && ep->enabled)
		ep->work |= LNX_WORK_BUFS;
	return ret == -FI_EAGAIN || ep->enabled ? 0 : ret;
}

int lnx_rails_lend(struct lnx_ep *ep)
{
	struct lnx_rail_owner owner = owner_of(ep, NULL);

	return ep->shm ? lnx_rail_lend(ep, ep->shm, &owner) : 0;
}

int lnx_rails_wake(struct lnx_ep *ep, struct lnx_wait *wait)
{
	int fd[LNX_FDS_MAX], ret = 0;
	unsigned i, nrail, n = lnx_rails_fds(ep, fd, &nrail);

	/* Rails that were opened while no thread would sleep have no descriptors. */
	if (!ep->want_wait)
		ep->look_soon = true;
	for (i = 0; i < n && (!ret || i >= nrail); i++) {
		int one = lnx_wait_add_fd(wait, fd[i]);

		if (i < nrail)
			ret = one;
	}
	return ret;
}

unsigned lnx_rails_fds(const struct lnx_ep *ep, int fd[LNX_FDS_MAX],
		       unsigned *nrail)
{
	unsigned i, n = 0;

	for (i = 0; i < ep->nrail; i++)
		if (ep->rail[i]->wait_fd >= 0)
			fd[n++] = ep->rail[i]->wait_fd;
	*nrail = n;
	if (ep->links.netwatch && lnx_netwatch_fd(ep->links.netwatch) >= 0)
		fd[n++] = lnx_netwatch_fd(ep->links.netwatch);
	for (i = 0; i < ep->nrail; i++)
		if (ep->rail[i]->devwatch && !ep->rail[i]->devgone)
			fd[n++] = lnx_netwatch_fd(ep->rail[i]->devwatch);
	if (lnx_exit_monitor_fd(ep) >= 0)
		fd[n++] = lnx_exit_monitor_fd(ep);
	return n;
}

unsigned lnx_rails_waits(const struct lnx_ep *ep, struct lnx_wait **wait)
{
	struct lnx_cq *cq[2] = { ep->tx_cq, ep->rx_cq };
	unsigned i, n = 0;

	for (i = 0; i < 2; i++)
		if (cq[i] && cq[i]->wait)
			wait[n++] = cq[i]->wait;
	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (ep->cntr[i] && ep->cntr[i]->wait)
			wait[n++] = ep->cntr[i]->wait;
	return n;
}

int lnx_rails_wait_add(const struct lnx_ep *ep, int fd)
{
	struct lnx_wait *wait[LNX_WAITS_MAX];
	unsigned i, n = lnx_rails_waits(ep, wait);
	int ret = 0;

	for (i = 0; i < n && fd >= 0 && !ret; i++)
		ret = lnx_wait_add_fd(wait[i], fd);
	if (ep->thread && fd >= 0 && !ret)
		ret = lnx_thread_watch(ep->thread, fd);
	return ret;
}

void lnx_rails_wait_del(const struct lnx_ep *ep, int fd)
{
	struct lnx_wait *wait[LNX_WAITS_MAX];
	unsigned i, n = lnx_rails_waits(ep, wait);

	for (i = 0; i < n && fd >= 0; i++)
		lnx_wait_del_fd(wait[i], fd);
	if (ep->thread && fd >= 0)
		lnx_thread_unwatch(ep->thread, fd);
}
