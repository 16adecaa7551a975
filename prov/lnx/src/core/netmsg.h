/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of rtnetlink.  Bytes in, facts out; nothing here asks the kernel, so tests
 * and fuzzers can bring bytes of their own.  Any bytes will do: lengths are checked,
 * nothing needs to be aligned.
 */
#ifndef LNX_NETMSG_H
#define LNX_NETMSG_H

#include "core/netwatch.h"

/* What is left of a datagram. */
struct lnx_netmsgs {
	const uint8_t *p;
	size_t left;
};

/* A message in it. */
struct lnx_netmsg {
	uint16_t type, flags;
	uint32_t seq;
	const uint8_t *body;
	size_t len;
};

/* 1: a message; 0: that was all; -EBADMSG: what is left is none. */
int lnx_netmsg_next(struct lnx_netmsgs *rest, struct lnx_netmsg *msg);

/*
 * 1: it is news of an interface or address; 0: of something else; -EBADMSG: it should
 * be, and does not hold what it must.
 */
int lnx_netmsg_event(const struct lnx_netmsg *msg, struct lnx_net_event *ev);

#endif
