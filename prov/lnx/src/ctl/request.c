/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Carries out control requests to an endpoint.  Called through api/ep.c by the
 * application; calls rail/faults.c and ctl/health.c.
 */
#include "ctl/request.h"

#include <inttypes.h>

#include "base/out.h"
#include "rail/faults.h"
#include "ctl/health.h"
#include "policy/request.h"

static int fault_add(struct lnx_ep *ep, const struct lnx_request *r,
		     struct lnx_out *o)
{
	uint64_t last = lnx_faults_last(ep);
	int ret = lnx_faults_add(ep, r->rules);

	switch (ret) {
	case 0:
		lnx_faults_list(ep, last, o);
		break;
	case -FI_EOPNOTSUPP:
		lnx_out(o, "\"fault add\": no rail of this endpoint carries "
			"frames; faults are for frames between nodes");
		break;
	case -FI_ENOSPC:
		lnx_out(o, "\"fault add\": there can be %d rules; take some "
			"out with \"fault del\"", LNX_FAULT_RULES);
		break;
	}
	return ret;
}

static int fault_del(struct lnx_ep *ep, const struct lnx_request *r,
		     struct lnx_out *o)
{
	if (r->all) {
		lnx_faults_del_all(ep);
		return 0;
	}
	if (lnx_faults_del(ep, r->number))
		return 0;
	lnx_out(o, "\"%" PRIu64 "\": there is no rule of that number; \"fault "
		"list\" shows those there are", r->number);
	return -FI_EINVAL;
}

static int stats(const struct lnx_ep *ep, struct lnx_out *o)
{
	unsigned i;

	for (i = 0; i < lnx_nstats; i++) {
		const char *at = (const char *)&ep->stats;

		lnx_out(o, "%s %" PRIu64 "\n", lnx_stat_rows[i].name,
			*(const uint64_t *)(at + lnx_stat_rows[i].offset));
	}
	return 0;
}

static int run(struct lnx_ep *ep, const char *text,
	       const struct lnx_request *r, struct lnx_out *o)
{
	switch (r->kind) {
	case LNX_REQUEST_FAULT_ADD:
		return fault_add(ep, r, o);
	case LNX_REQUEST_FAULT_LIST:
		lnx_faults_list(ep, 0, o);
		return 0;
	case LNX_REQUEST_FAULT_DEL:
		return fault_del(ep, r, o);
	case LNX_REQUEST_HEALTH_LIST:
		lnx_ctl_health_list(ep, o);
		return 0;
	case LNX_REQUEST_HEALTH_SET:
	case LNX_REQUEST_HEALTH_AUTO:
		return lnx_ctl_health_set(ep, text, r, o);
	default:
		return stats(ep, o);
	}
}

ssize_t lnx_ctl_request(struct lnx_ep *ep, const char *text, char *reply,
			size_t size)
{
	struct lnx_out o = { .buf = reply, .size = size };
	struct lnx_request r;
	char why[600];
	int ret;

	if (size)
		reply[0] = '\0';
	ret = lnx_request_parse(text, &r, why, sizeof(why));
	if (ret) {
		lnx_out(&o, "%s", ret == -EINVAL ? why : "out of memory");
		return ret;
	}
	lnx_lock(&ep->lock);
	if (ep->enabled) {
		ret = run(ep, text, &r, &o);
	} else {
		ret = -FI_EOPBADSTATE;
		lnx_out(&o, "the endpoint is not enabled; call fi_enable first");
	}
	lnx_unlock(&ep->lock);
	if (ret == -FI_ENOMEM)
		lnx_out(&o, "out of memory");
	return ret ? ret : (ssize_t)o.n;
}
