/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mr(3).  The application picks keys and remote addresses count from the first byte
 * of a registration; with FI_MR_BASIC keys are ours and addresses virtual.  core/mr.c
 * registers with the rails.
 */
#include <stdlib.h>

#include "api/api.h"
#include "core/key_pool.h"
#include "obj/mr.h"
#include "msg/confirm_answer.h"

#define ACCESS	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | \
		 FI_REMOTE_WRITE | FI_COLLECTIVE)

static struct lnx_mr *mr_of(struct fid *fid)
{
	return lnx_container_of(fid, struct lnx_mr, fid.fid);
}

/*
 * A peer that asks what became of a write, which our application may have seen already,
 * has to get its answer from the registration.
 */
static void settle(struct lnx_domain *d)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&d->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		lnx_lock(&ep->lock);
		lnx_confirm_settle(ep);
		lnx_unlock(&ep->lock);
	}
}

static int mr_close(struct fid *fid)
{
	struct lnx_mr *mr = mr_of(fid);
	struct lnx_domain *d = mr->domain;
	int ret;

	pthread_mutex_lock(&d->eps_lock);
	settle(d);
	/* From here on frames with the key find nothing. */
	ret = lnx_mr_del(mr);
	if (!ret) {
		lnx_mr_quiesce(d);
		lnx_mr_withdraw(mr);
	}
	pthread_mutex_unlock(&d->eps_lock);
	if (ret)
		return ret;
	if (mr->cntr) {
		__atomic_sub_fetch(&d->ncounted, 1, __ATOMIC_RELEASE);
		lnx_cntr_unref_mr(mr->cntr);
	}
	__atomic_sub_fetch(&d->refs, 1, __ATOMIC_RELEASE);
	free(mr);
	return 0;
}

static bool is_bare(const struct lnx_domain *d)
{
	unsigned i;

	for (i = 0; i < d->rails->nrail; i++)
		if (lnx_rail_kind_native(d->rails->rail[i].kind))
			return true;
	return false;
}

static int bind_cntr(struct lnx_mr *mr, struct fid *bfid, uint64_t flags)
{
	struct lnx_domain *d = mr->domain;
	int ret;

	if (flags != FI_REMOTE_WRITE) {
		LNX_WARN(FI_LOG_MR,
			 "fi_mr_bind: flags 0x%llx: a counter of a registration counts FI_REMOTE_WRITE\n",
			 (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	if (lnx_container_of(bfid, struct lnx_cntr, fid.fid)->domain != d)
		return -FI_EDOMAIN;
	if (is_bare(d)) {
		LNX_WARN(FI_LOG_MR,
			 "fi_mr_bind: core providers do not count writes to a registration, and FI_LNX_USE_SRQ=0 leaves writes to them\n");
		return -FI_ENOSYS;
	}
	pthread_mutex_lock(&d->eps_lock);
	ret = lnx_mr_bind_cntr(mr, bfid);
	pthread_mutex_unlock(&d->eps_lock);
	if (ret == -FI_EOPBADSTATE)
		LNX_WARN(FI_LOG_MR,
			 "fi_mr_bind: peers write to this registration already; bind its counter before they know its key\n");
	return ret;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_EP:
		/* All endpoints of the domain know it already. */
		return flags ? -FI_EBADFLAGS : 0;
	case FI_CLASS_CNTR:
		return bind_cntr(mr_of(fid), bfid, flags);
	default:
		return -FI_ENOSYS;
	}
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct lnx_mr *mr = mr_of(fid);
	struct fi_mr_raw_attr *raw;

	switch (command) {
	case FI_ENABLE:
		return 0;		/* it is enabled from the start */
	case FI_GET_RAW_MR:
		raw = arg;
		if (*raw->key_size < sizeof(mr->fid.key)) {
			*raw->key_size = sizeof(mr->fid.key);
			return -FI_ETOOSMALL;
		}
		*raw->key_size = sizeof(mr->fid.key);
		memcpy(raw->raw_key, &mr->fid.key, sizeof(mr->fid.key));
		*raw->base_addr = mr->origin;
		return 0;
	case FI_REFRESH:
		return 0;		/* no pages are cached here */
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = lnx_nosys_ops_open,
};

/* A key that is not in use, and that those in use do not tell; eps_lock held.  0, or
 * -FI_EIO: no random numbers. */
static int new_key(struct lnx_domain *d, uint64_t *key)
{
	int ret;

	do
		ret = lnx_key_random(key);
	while (!ret && (lnx_mr_find(d, *key) || *key == FI_KEY_NOTAVAIL));
	return ret;
}

/* Other flags for device memory. */
#define HMEM_FLAGS	(FI_HMEM_HOST_ALLOC | FI_HMEM_DEVICE_ONLY)

static int check(const struct lnx_domain *d, const struct fi_mr_attr *attr,
		 uint64_t flags)
{
	if (flags & ~(FI_RMA_EVENT | FI_RMA_PMEM | (d->hmem ? HMEM_FLAGS : 0)))
		return -FI_EBADFLAGS;
	if (!d->hmem && d->new_mr_attr && attr->iface != FI_HMEM_SYSTEM) {
		LNX_WARN(FI_LOG_MR,
			 "fi_mr_regattr: iface %d is memory of a device; the domain was opened without FI_HMEM and would take it for the host's\n",
			 (int)attr->iface);
		return -FI_ENOSYS;
	}
	if (attr->access & ~ACCESS)
		return -FI_EINVAL;
	if (attr->iov_count != 1 || !attr->mr_iov) {
		LNX_WARN(FI_LOG_MR,
			 "fi_mr_reg: %zu pieces in one registration; mr_iov_limit is 1\n",
			 attr->iov_count);
		return -FI_EINVAL;
	}
	if (!attr->mr_iov->iov_base && attr->mr_iov->iov_len)
		return -FI_EINVAL;
	return 0;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **out)
{
	struct lnx_domain *d =
		lnx_container_of(fid, struct lnx_domain, fid.fid);
	struct lnx_mr *mr;
	int ret;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr)
		return -FI_EINVAL;
	ret = check(d, attr, flags);
	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = mr;
	mr->domain = d;
	mr->base = attr->mr_iov->iov_base;
	mr->len = attr->mr_iov->iov_len;
	mr->access = attr->access;
	if (d->hmem) {
		mr->iface = attr->iface;
		mr->device = attr->device.reserved;
		mr->flags = flags & HMEM_FLAGS;
	}
	if (d->mr_basic)
		mr->origin = (uintptr_t)mr->base;
	lnx_list_init(&mr->regs);
	pthread_mutex_lock(&d->eps_lock);
	mr->fid.key = attr->requested_key;
	ret = d->mr_basic ? new_key(d, &mr->fid.key) :
	      lnx_mr_find(d, mr->fid.key) ? -FI_ENOKEY : 0;
	/*
	 * Peers can find it only when all is done: what they use is never taken back.
	 */
	if (!ret)
		ret = lnx_mr_announce(mr);
	if (ret)
		lnx_mr_withdraw(mr);
	else
		ret = lnx_mr_add(mr);
	pthread_mutex_unlock(&d->eps_lock);
	if (ret) {
		free(mr);
		return ret;
	}
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		   uint64_t access, uint64_t offset, uint64_t key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = count, .access = access,
		.offset = offset, .requested_key = key, .context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len,
		  uint64_t access, uint64_t offset, uint64_t key,
		  uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr lnx_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
