/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of health, retries and timeouts, made from the parameters.  Does no I/O.
 */
#ifndef LNX_PLAN_H
#define LNX_PLAN_H

#include <stddef.h>

#include "conf/conf.h"
#include "policy/health.h"

/*
 * The longest wait for an answer to one try, derived as in LNet: the transaction's
 * timeout less one unit (1 ms here, 1 s there), divided by the number of tries, and no
 * less than the shortest wait.  All in ms; 0 for a timeout of 0.
 */
uint64_t lnx_plan_rail_ms(uint64_t transaction_ms, uint64_t retries,
			  uint64_t min_ms);

/*
 * Read FI_LNX_HEALTH_SENSITIVITY_CLASSES, "class=step,...", into step[]; other members
 * of that stay.  0; or -EINVAL, step unchanged and why[] half a sentence that tells
 * which word is wrong and what would be right, printable whatever text contains.
 */
int lnx_plan_classes(const char *text, uint16_t step[LNX_CLASS_COUNT],
		     char *why, size_t why_size);

/*
 * Do the parameters fit together?  0, or -EINVAL and why[] one sentence: which of them
 * are wrong, why, and what would be right.
 */
int lnx_plan_check(const struct lnx_conf *c, char *why, size_t why_size);

/*
 * Change what does not fit, and report each change through warn, unless NULL, as does
 * lnx_conf_read, which calls this.  retry_given: FI_LNX_RETRY_COUNT was set; without
 * that it is 0, without a warning, when health is off.  Returns the number of changes.
 */
int lnx_plan_mend(struct lnx_conf *c, bool retry_given,
		  void (*warn)(void *arg, const char *sentence), void *arg);

/* c as lnx_conf_read left it. */
void lnx_plan_make(struct lnx_health_plan *plan, const struct lnx_conf *c);

#endif
