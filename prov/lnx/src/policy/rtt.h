/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long to wait for an answer over a path, from how long answers took before: the
 * estimator of RFC 6298, in ns.  Does no I/O.
 *
 * Callers must keep Karn's rule (section 3 there): what was sent more than once gives
 * no sample, because it is not known which of the sends was answered.  They also make a
 * wait longer that was too short (5.5): rel/loss.h does so for frames.
 */
#ifndef LNX_RTT_H
#define LNX_RTT_H

#include <stdint.h>

/* Zero-initialised: nothing known. */
struct lnx_rtt {
	uint64_t srtt_ns;		/* smoothed; 0: no sample yet */
	uint64_t var_ns;		/* deviation from it */
};

/* Something that was sent once over the path was answered after ns. */
void lnx_rtt_sample(struct lnx_rtt *rtt, uint64_t ns);

/* Between floor and ceil; ceil while nothing is known, or if floor is above ceil. */
uint64_t lnx_rtt_timeout(const struct lnx_rtt *rtt, uint64_t floor,
			 uint64_t ceil);

#endif
