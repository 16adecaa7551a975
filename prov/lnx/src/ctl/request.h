/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control requests to an endpoint, as text (lnx_ext.h, policy/request.h): for programs
 * through fi_open_ops, and for other sources of a request line.
 */
#ifndef LNX_CTL_REQUEST_H
#define LNX_CTL_REQUEST_H

#include <sys/types.h>

#include "obj/ep.h"

/* As lnx_control_ops.request.  Takes the owner lock; calls cores: peers may be told. */
ssize_t lnx_ctl_request(struct lnx_ep *ep, const char *text, char *reply,
			size_t size);

#endif
