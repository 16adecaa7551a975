/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of other processes about rules: blocks of records (lnx_policy.h) in and out.
 * Does no I/O.  A request is hostile until it has been checked.
 */
#ifndef LNX_RULES_BLOCK_H
#define LNX_RULES_BLOCK_H

#include "lnx_policy.h"
#include "policy/rules.h"

/*
 * Carry out a request of len bytes, and write the reply into size bytes.  Neither needs
 * alignment.  Returns the length of the reply; 0: there is no room even for a block
 * without records, and nothing was done.  What is wrong with a request is said in the
 * reply, and then nothing was done.  Owner lock held.
 */
size_t lnx_rules_request(struct lnx_rules *rules, const void *request, size_t len,
			 void *reply, size_t size);

/* The record of a rule, as replies to SHOW have it. */
void lnx_rules_record(const struct lnx_rule_info *info, struct lnx_policy_rule *rec);

/* Is it such a request, and not text?  Tells by the first bytes. */
bool lnx_rules_is_request(const void *request, size_t len);

#endif
