/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of rtnetlink.  Nothing here calls the kernel, so tests and fuzzers can pass
 * their own bytes.  Any bytes are safe: lengths are checked, nothing needs to be
 * aligned.
 */
#ifndef LNX_NETMSG_H
#define LNX_NETMSG_H

#include "os/netwatch.h"

/* What is left of a datagram. */
struct lnx_netmsgs {
	const uint8_t *p;
	size_t left;
};

/* One message of it. */
struct lnx_netmsg {
	uint16_t type, flags;
	uint32_t seq;
	const uint8_t *body;
	size_t len;
};

/* 1: a message; 0: no more; -EBADMSG: the rest is no message. */
int lnx_netmsg_next(struct lnx_netmsgs *rest, struct lnx_netmsg *msg);

/*
 * 1: an event of an interface or address; 0: of something else; -EBADMSG: it should be
 * one, and lacks something that it must have.
 */
int lnx_netmsg_event(const struct lnx_netmsg *msg, struct lnx_net_event *ev);

#endif
