/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long to wait for an answer over a path, by how long answers took before: the
 * estimator of RFC 6298, in ns.  Pure.
 *
 * Callers keep Karn's rule (section 3 there): what was sent more than once gives no
 * sample, because nobody knows which of the sends was answered.  And a wait that was
 * too short stays doubled until a sample says how long it takes (5.5, 5.7): tell
 * lnx_rtt_late of each, once per expiry and not once per frame that waits.
 */
#ifndef LNX_RTT_H
#define LNX_RTT_H

#include <stdint.h>

/* Zero-initialised: nothing known. */
struct lnx_rtt {
	uint64_t srtt_ns;		/* smoothed; 0: no sample yet */
	uint64_t var_ns;		/* of the deviation from it */
	uint8_t late;			/* expiries since the last sample */
};

/* What went over the path once was answered after ns. */
void lnx_rtt_sample(struct lnx_rtt *rtt, uint64_t ns);

/* Nothing came within lnx_rtt_timeout. */
void lnx_rtt_late(struct lnx_rtt *rtt);

/*
 * From floor to ceil; ceil while nothing is known.  Where floor is above ceil, ceil.
 */
uint64_t lnx_rtt_timeout(const struct lnx_rtt *rtt, uint64_t floor,
			 uint64_t ceil);

#endif
