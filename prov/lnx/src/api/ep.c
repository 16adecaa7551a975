/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_endpoint(3): binding, control, options and names.  Opening is in ep_open.c,
 * enabling in ep_enable.c, closing in ep_close.c.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "ctl/request.h"
#include "lnx_ext.h"
#include "prov.h"
#include "msg/rx.h"

/* ---- options, cancel ---- */

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);

	return ep->native ? lnx_rx_native_cancel(ep, context) :
			  lnx_rx_cancel(ep, context);
}

static int put_opt(void *val, size_t *len, const void *src, size_t size)
{
	size_t room = *len;

	*len = size;
	if (room < size)
		return -FI_ETOOSMALL;
	memcpy(val, src, size);
	return 0;
}

static int ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);
	size_t none = 0;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		return put_opt(val, len, &ep->min_multi_recv,
			       sizeof(ep->min_multi_recv));
	case FI_OPT_CM_DATA_SIZE:
		return put_opt(val, len, &none, sizeof(none));
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int ep_setopt(fid_t fid, int level, int name, const void *val,
		     size_t len)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);
	int ret = 0;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		if (len != sizeof(size_t))
			return -FI_EINVAL;
		lnx_lock(&ep->lock);
		memcpy(&ep->min_multi_recv, val, sizeof(size_t));
		if (ep->native)
			ret = lnx_rx_native_min_multi_recv(ep);
		lnx_unlock(&ep->lock);
		return ret;
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int ep_no_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx, void *context)
{
	(void)ep, (void)index, (void)attr, (void)tx, (void)context;
	return -FI_ENOSYS;
}

static int ep_no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr,
			struct fid_ep **rx, void *context)
{
	(void)ep, (void)index, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}

static ssize_t ep_no_size(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

struct fi_ops_ep lnx_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_no_ctx,
	.rx_ctx = ep_no_rx_ctx,
	.rx_size_left = ep_no_size,
	.tx_size_left = ep_no_size,
};

/* ---- names ---- */

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);
	size_t room = *addrlen;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	*addrlen = LNX_ADDR_BYTES;
	if (room < LNX_ADDR_BYTES) {
		if (room && addr)
			memcpy(addr, ep->address.raw, room);
		return -FI_ETOOSMALL;
	}
	memcpy(addr, ep->address.raw, LNX_ADDR_BYTES);
	return 0;
}

/* Take the identity and core addresses from a blob, before enabling. */
static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);
	struct lnx_addr a;
	char why[160];

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (lnx_addr_unpack(&a, addr, addrlen, why, sizeof(why))) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_setname: not an lnx address: %s\n", why);
		return -FI_EINVAL;
	}
	if (!ep->address.want) {
		ep->address.want = malloc(sizeof(*ep->address.want));
		if (!ep->address.want)
			return -FI_ENOMEM;
	}
	*ep->address.want = a;
	ep->eid = a.eid;
	return 0;
}

static int ep_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep, (void)addr, (void)addrlen;
	return -FI_ENOSYS;
}

static int ep_connect(struct fid_ep *ep, const void *addr, const void *param,
		      size_t paramlen)
{
	(void)ep, (void)addr, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int ep_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	(void)ep, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int ep_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static int ep_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		   struct fid_mc **mc, void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

struct fi_ops_cm lnx_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.accept = ep_accept,
	.shutdown = ep_shutdown,
	.join = ep_join,
};

/* ---- bind, control ---- */

static int bind_cq(struct lnx_ep *ep, struct fid *bfid, uint64_t flags)
{
	struct lnx_cq *cq = lnx_container_of(bfid, struct lnx_cq, fid.fid);

	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if (((flags & FI_TRANSMIT) && ep->tx_cq) ||
	    ((flags & FI_RECV) && ep->rx_cq))
		return -FI_EBUSY;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->bound.tx_flags = flags;
		lnx_cq_attach(cq, &ep->bound.tx_link, ep);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->bound.rx_flags = flags;
		lnx_cq_attach(cq, &ep->bound.rx_link, ep);
	}
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct lnx_ep *ep = lnx_ep_of_fid(fid);

	if (ep->enabled && bfid->fclass == FI_CLASS_CNTR)
		return lnx_cntr_bind_late(ep, bfid, flags);
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (flags && bfid->fclass != FI_CLASS_CQ &&
	    bfid->fclass != FI_CLASS_CNTR)
		return -FI_EBADFLAGS;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, bfid, flags);
	case FI_CLASS_CNTR:
		return lnx_cntr_bind(ep, bfid, flags);
	case FI_CLASS_AV: {
		struct lnx_av *av =
			lnx_container_of(bfid, struct lnx_av, fid.fid);

		if (ep->av)
			return -FI_EBUSY;
		if (av->domain != ep->domain)
			return -FI_EDOMAIN;
		ep->av = av;
		return lnx_av_attach(av, ep);
	}
	case FI_CLASS_SRX_CTX:
		return lnx_srx_bind(ep, bfid);
	case FI_CLASS_EQ:
		if (ep->bound.eq)
			return -FI_EBUSY;
		ep->bound.eq = lnx_eq_ref(bfid);
		return 0;
	default:
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_ep_bind: an object of class %zu cannot be bound; CQ, counter, AV, EQ and shared receive context can\n",
			 bfid->fclass);
		return -FI_ENOSYS;
	}
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	if (command == FI_ENABLE)
		return lnx_ep_enable(lnx_ep_of_fid(fid));
	return -FI_ENOSYS;
}

/* ---- lnx_ext.h ---- */

static ssize_t ep_request(struct fid *fid, const char *text, char *reply,
			  size_t size)
{
	return lnx_ctl_request(lnx_ep_of_fid(fid), text, reply, size);
}

static struct lnx_control_ops control_ops = {
	.size = sizeof(struct lnx_control_ops),
	.request = ep_request,
};

static int ep_ops_open(struct fid *fid, const char *name, uint64_t flags,
		       void **ops, void *context)
{
	(void)fid, (void)context;
	if (strcmp(name, LNX_CONTROL_OPS))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &control_ops;
	return 0;
}

struct fi_ops lnx_ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = lnx_ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = ep_ops_open,
};
