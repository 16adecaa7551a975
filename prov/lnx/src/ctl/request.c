/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Carries out control requests to an endpoint.  Called through api/ep.c by the
 * application, and by ctl/mailbox.c; calls rail/faults.c and the rest of ctl/.
 */
#include "ctl/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/explain.h"
#include "ctl/export.h"
#include "rail/faults.h"
#include "ctl/health.h"
#include "ctl/route.h"
#include "ctl/settings.h"
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
		"show\" shows those there are", r->number);
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

static int set_param(struct lnx_ep *ep, const char *text,
		     const struct lnx_request *r, struct lnx_out *o)
{
	char *value = strndup(text + r->value_at, r->value_len);
	int ret;

	if (!value)
		return -FI_ENOMEM;
	ret = lnx_settings_set(ep, text + r->name_at, r->name_len, value, o);
	free(value);
	return ret;
}

static int run(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
	       struct lnx_ctl_job *job, uint64_t now, struct lnx_out *o)
{
	switch (r->kind) {
	case LNX_REQUEST_FAULT_ADD:
		return fault_add(ep, r, o);
	case LNX_REQUEST_FAULT_LIST:
		lnx_faults_list(ep, 0, o);
		return 0;
	case LNX_REQUEST_FAULT_DEL:
		return fault_del(ep, r, o);
	case LNX_REQUEST_FAULT_RESET:
		lnx_faults_reset(ep);
		return 0;
	case LNX_REQUEST_HEALTH_LIST:
		lnx_ctl_health_list(ep, o);
		return 0;
	case LNX_REQUEST_HEALTH_SET:
	case LNX_REQUEST_HEALTH_ONCE:
	case LNX_REQUEST_HEALTH_AUTO:
		return lnx_ctl_health_set(ep, text, r, o);
	case LNX_REQUEST_SET:
		return set_param(ep, text, r, o);
	case LNX_REQUEST_TUNE:
		return lnx_settings_tune(ep, text, r, o);
	case LNX_REQUEST_STATS_RESET:
		return lnx_ctl_reset(ep, now, o);
	case LNX_REQUEST_PING:
	case LNX_REQUEST_DISCOVER:
		return lnx_ctl_ask(ep, text, r, job, now, o);
	case LNX_REQUEST_EXPLAIN:
		return lnx_ctl_explain(ep, text, r, now, o);
	case LNX_REQUEST_EXPORT:
		return lnx_ctl_export(ep, r->all, o);
	case LNX_REQUEST_ROUTE_SHOW:
		lnx_ctl_routes(ep, now, o);
		return 0;
	case LNX_REQUEST_ROUTE_ADD:
	case LNX_REQUEST_ROUTE_PUT:
	case LNX_REQUEST_ROUTE_DEL:
		return lnx_ctl_route_change(ep, r, now, o);
	case LNX_REQUEST_STATS:
		return stats(ep, o);
	}
	return -FI_EINVAL;
}

int lnx_ctl_carry_out(struct lnx_ep *ep, const char *text, struct lnx_ctl_job *job,
		      uint64_t now, struct lnx_out *o)
{
	struct lnx_request r;
	char why[600];
	int ret;

	ret = lnx_request_parse(text, &r, why, sizeof(why));
	if (ret == -EINVAL)
		lnx_out(o, "%s", why);
	if (!ret)
		ret = run(ep, text, &r, job, now, o);
	if (ret == -FI_ENOMEM)
		lnx_out(o, "out of memory");
	return ret;
}

ssize_t lnx_ctl_request(struct lnx_ep *ep, const char *text, char *reply,
			size_t size)
{
	struct lnx_out o = { .buf = reply, .size = size };
	char why[600];
	struct lnx_request r;
	int ret;

	if (size)
		reply[0] = '\0';
	lnx_lock(&ep->lock);
	if (ep->enabled) {
		ret = lnx_ctl_carry_out(ep, text, NULL, lnx_clock_ns(), &o);
	} else {
		/* A mistake in the text is the same before and after. */
		ret = lnx_request_parse(text, &r, why, sizeof(why));
		lnx_out(&o, "%s", ret ? why : "the endpoint is not enabled; call "
			"fi_enable first");
		ret = ret ? ret : -FI_EOPBADSTATE;
	}
	lnx_unlock(&ep->lock);
	return ret ? ret : (ssize_t)o.n;
}
