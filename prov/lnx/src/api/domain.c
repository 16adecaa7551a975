/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_domain(3): opens a link, with what belongs to all its endpoints. */
#include <stdlib.h>

#include "api/api.h"
#include "core/job_key.h"
#include "core/open.h"
#include "core/resolve.h"
#include "obj/mr.h"
#include "prov.h"

static int domain_close(struct fid *fid)
{
	struct lnx_domain *d =
		lnx_container_of(fid, struct lnx_domain, fid.fid);

	if (__atomic_load_n(&d->refs, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	lnx_resolve_rails_free(d->rails);
	fi_freeinfo(d->info);
	lnx_mrs_fini(d);
	lnx_job_key_free(d->job_key);
	free(d->amo);
	__atomic_sub_fetch(&d->fabric->refs, 1, __ATOMIC_RELEASE);
	free(d);
	return 0;
}

static int domain_scalable_ep(struct fid_domain *domain, struct fi_info *info,
			      struct fid_ep **sep, void *context)
{
	(void)domain, (void)info, (void)sep, (void)context;
	return -FI_ENOSYS;
}

static int domain_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
			  struct fid_stx **stx, void *context)
{
	(void)domain, (void)attr, (void)stx, (void)context;
	return -FI_ENOSYS;
}

static int domain_query_collective(struct fid_domain *domain,
				   enum fi_collective_op coll,
				   struct fi_collective_attr *attr,
				   uint64_t flags)
{
	(void)domain, (void)coll, (void)attr, (void)flags;
	return -FI_ENOSYS;
}

static int domain_endpoint2(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	if (flags)
		return -FI_EBADFLAGS;
	return lnx_ep_open(domain, info, ep, context);
}

/* A raw key is the key (api/mr.c): nothing has to be stored for it. */
static int map_raw(const struct fi_mr_map_raw *map)
{
	if (map->key_size != sizeof(*map->key)) {
		LNX_WARN(FI_LOG_DOMAIN,
			 "fi_mr_map_raw: a raw key of %zu bytes; those of fi_mr_raw_attr have %zu\n",
			 map->key_size, sizeof(*map->key));
		return -FI_EINVAL;
	}
	memcpy(map->key, map->raw_key, sizeof(*map->key));
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	switch (command) {
	case FI_MAP_RAW_MR:
		return map_raw(arg);
	case FI_UNMAP_KEY:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = lnx_nosys_bind,
	.control = domain_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = lnx_av_open,
	.cq_open = lnx_cq_open,
	.endpoint = lnx_ep_open,
	.scalable_ep = domain_scalable_ep,
	.cntr_open = lnx_cntr_open,
	.poll_open = lnx_poll_open,
	.stx_ctx = domain_stx_ctx,
	.srx_ctx = lnx_srx_open,
	.query_atomic = lnx_atomic_query,
	.query_collective = domain_query_collective,
	.endpoint2 = domain_endpoint2,
};

int lnx_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **out, void *context)
{
	struct lnx_domain *d;
	int ret;

	if (!info || !info->domain_attr || !info->domain_attr->name) {
		LNX_WARN(FI_LOG_DOMAIN,
			 "fi_domain needs a fi_info of fi_getinfo: its domain name says which link to open\n");
		return -FI_EINVAL;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	ret = lnx_job_key_load(lnx_global_config(), &d->job_key);
	if (ret)
		goto err;
	d->rails = lnx_resolve_name(info->domain_attr->name, &ret);
	if (!d->rails)
		goto err;
	if ((info->caps & FI_HMEM) && d->job_key) {
		LNX_WARN(FI_LOG_DOMAIN,
			 "fi_domain: %s: FI_HMEM leaves messages to the core providers, so a job key could not protect them\n",
			 info->domain_attr->name);
		ret = -FI_ENODATA;
		goto err_rails;
	}
	if (info->caps & FI_HMEM) {
		struct lnx_link_rails *hmem = lnx_resolve_rails_hmem(d->rails);

		lnx_resolve_rails_free(d->rails);
		d->rails = hmem;
		ret = -FI_ENODATA;
		if (!hmem) {
			LNX_WARN(FI_LOG_DOMAIN,
				 "fi_domain: %s: not every core provider has FI_HMEM; ask fi_getinfo for it\n",
				 info->domain_attr->name);
			goto err;
		}
		d->hmem = true;
	}
	/* Members that older API versions do not have must not be read. */
	d->new_mr_attr = info->fabric_attr &&
			 FI_VERSION_GE(info->fabric_attr->api_version,
				       FI_VERSION(1, 10));
	d->info = fi_dupinfo(info);
	ret = -FI_ENOMEM;
	if (!d->info)
		goto err_rails;
	d->fabric = lnx_container_of(fabric, struct lnx_fabric, fid);
	d->host = lnx_host_identity(lnx_global_config());
	/*
	 * Lower models allow a thread to send while another one reads the CQ or inserts
	 * into the AV, both of which use endpoints.
	 */
	d->threads = info->domain_attr->threading != FI_THREAD_DOMAIN;
	d->mr_basic = info->domain_attr->mr_mode == LNX_MR_BASIC;
	ret = lnx_mrs_init(d);
	if (ret)
		goto err_info;
	d->fid.fid.fclass = FI_CLASS_DOMAIN;
	d->fid.fid.context = context;
	d->fid.fid.ops = &domain_fid_ops;
	d->fid.ops = &domain_ops;
	d->fid.mr = &lnx_mr_ops;
	__atomic_add_fetch(&d->fabric->refs, 1, __ATOMIC_RELAXED);
	*out = &d->fid;
	return 0;
err_info:
	fi_freeinfo(d->info);
err_rails:
	lnx_resolve_rails_free(d->rails);
err:
	lnx_job_key_free(d->job_key);
	free(d);
	return ret;
}
