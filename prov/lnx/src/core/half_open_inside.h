/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What core/half_open.c, which finds connections of a rail's core, and core/half_open_cut.c, which
 * cuts them, share.
 */
#ifndef LNX_HALF_OPEN_INSIDE_H
#define LNX_HALF_OPEN_INSIDE_H

#include "core/half_open.h"

/* Act on each descriptor of this process; returns for how many act was true. */
unsigned lnx_half_open_each(const struct lnx_rail *rail,
			    bool (*act)(int fd, const struct lnx_rail *rail, void *arg), void *arg);

/* Same family, address and port?  b has blen bytes. */
bool lnx_half_open_same(const struct sockaddr_storage *a, const void *b, size_t blen);
/* The same address, of any port? */
bool lnx_half_open_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Where that address of the rail's core leads.  False: it has no such. */
bool lnx_half_open_look_up(const struct lnx_rail *rail, fi_addr_t addr,
			   struct sockaddr_storage *sa);

/* Have it end with a reset, as soon as it is closed. */
bool lnx_half_open_reset_on_close(int fd);

#endif
