/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that fail because this process can open no descriptor.  Cores do not
 * report that: they answer -FI_EAGAIN until the peer is given up.
 */
#ifndef LNX_FD_LIMIT_H
#define LNX_FD_LIMIT_H

#include "obj/ep.h"

/*
 * A core of ep is trying to connect for longer than usual, or has failed.  If no
 * descriptor can be opened, give a warning: one per process.  A few system calls, until
 * it was given.
 */
LNX_COLD void lnx_fd_limit_look(const struct lnx_ep *ep, const char *rail);

#endif
