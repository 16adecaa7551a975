/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_fabric(3): opens and closes fabrics. */
#include "api/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "rail/faults.h"
#include "core/job_key.h"
#include "core/policy.h"
#include "obj/peer_abi.h"
#include "prov.h"

static int fabric_close(struct fid *fid)
{
	struct lnx_fabric *fabric =
		lnx_container_of(fid, struct lnx_fabric, fid.fid);

	if (__atomic_load_n(&fabric->refs, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static int fabric_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			     struct fid_pep **pep, void *context)
{
	(void)fabric, (void)info, (void)pep, (void)context;
	return -FI_ENOSYS;
}

static int fabric_wait_open(struct fid_fabric *fabric,
			    struct fi_wait_attr *attr, struct fid_wait **wait)
{
	(void)fabric, (void)attr, (void)wait;
	return -FI_ENOSYS;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = lnx_nosys_bind,
	.control = lnx_nosys_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = lnx_domain_open,
	.passive_ep = fabric_passive_ep,
	.eq_open = lnx_eq_open,
	.wait_open = fabric_wait_open,
	.trywait = lnx_cq_trywait,
};

int lnx_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
	       void *context)
{
	struct lnx_fabric *fabric;
	int ret;

	(void)attr;
	ret = lnx_peer_abi_check();
	if (!ret)
		ret = lnx_faults_check(lnx_global_config());
	if (!ret)
		ret = lnx_policy_check(lnx_global_config());
	if (!ret)
		ret = lnx_job_key_check(lnx_global_config());
	if (ret)
		return ret;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*out = &fabric->fid;
	return 0;
}
