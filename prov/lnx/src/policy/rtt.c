/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The RTT estimator of RFC 6298.  See rtt.h. */
#include "policy/rtt.h"

#include "base/compiler.h"
#include "base/interval.h"

void lnx_rtt_sample(struct lnx_rtt *rtt, uint64_t ns)
{
	uint64_t err;

	ns = LNX_MIN(LNX_MAX(ns, 1ull), LNX_RTT_SAMPLE_MAX_NS);
	if (!rtt->srtt_ns) {				/* 2.2 */
		rtt->srtt_ns = ns;
		rtt->var_ns = ns / 2;
		return;
	}
	/* 2.3: alpha 1/8, beta 1/4, the variation first. */
	err = ns > rtt->srtt_ns ? ns - rtt->srtt_ns : rtt->srtt_ns - ns;
	rtt->var_ns = (3 * rtt->var_ns + err) / 4;
	rtt->srtt_ns = LNX_MAX((7 * rtt->srtt_ns + ns) / 8, 1ull);
}

uint64_t lnx_rtt_timeout(const struct lnx_rtt *rtt, uint64_t floor,
			 uint64_t ceil)
{
	uint64_t ns;

	if (!rtt->srtt_ns)
		return ceil;
	/* The granularity of the clock, G there, is 1 ns. */
	ns = rtt->srtt_ns + LNX_MAX(4 * rtt->var_ns, 1ull);
	return LNX_MIN(LNX_MAX(ns, floor), ceil);
}
