/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What tests do to rules (policy/rules.h) in one step. */
#ifndef RULES_VIEW_H
#define RULES_VIEW_H

#include <errno.h>

#include "policy/rules.h"

static inline unsigned rules_count(const struct lnx_rules *rules)
{
	struct lnx_rule_info info;
	unsigned n = 0;

	while (!lnx_rules_info(rules, n, &info))
		n++;
	return n;
}

/* Delete a rule, or all, as lnx_rules_edit_del does. */
static inline int rules_del(struct lnx_rules *rules, const struct lnx_rules_which *which,
			    unsigned *n, struct lnx_refusal *r)
{
	struct lnx_rules_edit *edit = lnx_rules_edit(rules);
	int ret;

	if (!edit)
		return -ENOMEM;
	ret = lnx_rules_edit_del(edit, which, n, r);
	if (ret)
		lnx_rules_abort(edit);
	else
		lnx_rules_commit(edit);
	return ret;
}

#endif
