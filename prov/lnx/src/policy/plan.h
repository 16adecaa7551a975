/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of health, retries and timeouts, made of the parameters.  Pure.
 */
#ifndef LNX_PLAN_H
#define LNX_PLAN_H

#include <stddef.h>

#include "conf/conf.h"
#include "policy/health.h"

/*
 * The longest wait for an answer to one try, as LNet derives it: what is left of the
 * transaction's timeout but one unit (1 ms here, 1 s there), divided by the tries, and
 * no less than the shortest.  All in ms; 0 for a timeout of 0.
 */
uint64_t lnx_plan_rail_ms(uint64_t transaction_ms, uint64_t retries,
			  uint64_t min_ms);

/*
 * Read FI_LNX_HEALTH_SENSITIVITY_CLASSES, "class=step,...", into step[], whose other
 * members stay.  0; or -EINVAL, step as it was and why[] half a sentence that says what
 * is wrong with which word and what would be right, printable whatever text holds.
 */
int lnx_plan_classes(const char *text, uint16_t step[LNX_CLASS_COUNT],
		     char *why, size_t why_size);

/*
 * Do the parameters fit together?  0, or -EINVAL and why[] one sentence: which of them,
 * what is wrong, what would be right.
 */
int lnx_plan_check(const struct lnx_conf *c, char *why, size_t why_size);

/*
 * Change what does not fit, and tell of each change through warn, unless NULL, as
 * lnx_conf_read does, which calls this.  retry_given: FI_LNX_RETRY_COUNT was set; its
 * default is 0 without further words where health is off.  Returns how many.
 */
int lnx_plan_mend(struct lnx_conf *c, bool retry_given,
		  void (*warn)(void *arg, const char *sentence), void *arg);

/* c as lnx_conf_read left it. */
void lnx_plan_make(struct lnx_health_plan *plan, const struct lnx_conf *c);

#endif
