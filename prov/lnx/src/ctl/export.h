/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The configuration of an open endpoint as YAML, which lnx.conf(5) describes. */
#ifndef LNX_EXPORT_H
#define LNX_EXPORT_H

#include <stdbool.h>

#include "base/out.h"
#include "obj/ep.h"

/*
 * Write the names of nets that the user gave, the rules, the parameters that may be set
 * at any time, and those others that are not as by default; all: all parameters.  What
 * is no parameter of a file is left out, such as the job key; a value that a file cannot
 * have becomes a comment.  0 or -FI_ENOMEM.  Owner lock held.
 */
int lnx_ctl_export(struct lnx_ep *ep, bool all, struct lnx_out *o);

#endif
