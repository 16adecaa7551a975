/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How lnx_policy_open_process makes an object of lnxctl/policy.c. */
#ifndef LNXCTL_POLICY_OPEN_H
#define LNXCTL_POLICY_OPEN_H

#include "lnx_policy.h"

/* lnx_policy_open; lnx_policy_close gives arg to release.  NULL: no memory, and arg is the
 * caller's still. */
struct lnx_policy *lnxctl_policy_make(lnx_policy_call call, void *arg,
				      void (*release)(void *arg));

#endif
