/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections to a rail's core endpoint that were accepted and have not yet said who
 * they are.  tcp cores of libfabric 2.1 forget them when the endpoint is closed, and
 * crash when they do say (PEERS.md).  And those that hang, and all that other programs
 * are not to inherit.
 */
#ifndef LNX_HALF_OPEN_H
#define LNX_HALF_OPEN_H

#include "obj/rail.h"

/*
 * Have those end.  Returns how many there were: the core is to be polled, to notice,
 * and this to be called again, until there are none; then nothing may poll it before it
 * is closed.  0 too where nothing can be found out.
 */
unsigned lnx_half_open_end(const struct lnx_rail *rail);

/*
 * Connections of the rail, whoever made them, are to be reset when its core closes them,
 * which their other end notices at once, and not shut down in order, which waits behind
 * all that the network has not taken.  Returns how many there are.
 */
unsigned lnx_half_open_reset(const struct lnx_rail *rail);

/*
 * The rail's listener and connections, whoever made them, are to be closed in programs
 * that this process starts.  Returns how many were not.  Of descriptors that were it
 * costs one system call each.
 */
unsigned lnx_half_open_cloexec(const struct lnx_rail *rail);

#endif
