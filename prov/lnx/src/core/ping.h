/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Is there anybody at the other end of a path?  Asked of the peer's kernel and not of
 * its process, which may compute for minutes or be stopped: the first two packets of a
 * TCP connection to where the peer's core endpoint listens.  For cores that listen
 * with TCP (tcp, tcp;ofi_rxm); of others the kernel answers "refused", which says at
 * least that the host is there.
 *
 * The third packet is withheld: the kernel delays it by up to 200 ms where it expects
 * data to go with it, and the probe is reset before.  So the listener's queue never
 * has it, the process behind is not woken, and one that is stopped does not run out of
 * places for probes, as it does after some thousand full connections.  Who asks
 * lnx_ping_check more rarely than that takes such a place with each probe until the
 * process accepts it; that is all it costs.
 *
 * No allocation, no waiting, no signal.  A probe that is zeroed is at rest.  One user
 * at a time: callers serialise.
 */
#ifndef LNX_PING_H
#define LNX_PING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lnx_ping_result {
	/*
	 * At rest, or it cannot be told in this way: an address that is neither IPv4
	 * nor IPv6, no port, or this process lacks descriptors, memory or ports.  Says
	 * nothing about the path: find out by other means.
	 */
	LNX_PING_UNKNOWN = 0,
	/* No answer yet.  How long is too long is the caller's to say. */
	LNX_PING_WAITING,
	/*
	 * Path, host and listener are there.  The process may be busy, or stopped; or
	 * dead, if one that it has started inherited the listener (PEERS.md).
	 */
	LNX_PING_ALIVE,
	/*
	 * The host answers that nobody listens there.  A firewall on the way can say
	 * so in its name.
	 */
	LNX_PING_REFUSED,
	/* This host or one on the way knows that there is no way now; see err. */
	LNX_PING_BROKEN,
};

struct lnx_ping {
	uint8_t result;			/* enum lnx_ping_result */
	bool on_device;			/* it leaves by the device asked for */
	int fd;				/* only while LNX_PING_WAITING */
	int err;			/* errno behind the result; 0: none */
};

/*
 * Send a probe from an address of this host to one of a core endpoint, both
 * sockaddr_in or sockaddr_in6; the port of src is not used.  src may be NULL: any.
 * One that is under way is stopped.  Returns what is known already: WAITING mostly.
 *
 * device: the interface that it must leave by, or NULL.  With NULL the kernel chooses
 * by destination and source, as it does for what the tcp cores send; a probe of their
 * paths must not know better.  It is for cores that talk to a device.  If it is not
 * permitted to choose (kernels before 5.7 without CAP_NET_RAW), or the destination is
 * on this host, where packets go through none, the kernel chooses too, and on_device
 * stays false.
 *
 * A packet may be lost, and the kernel repeats it only after 1 s: a deadline shorter
 * than that needs a second probe before the path may be called silent.
 */
enum lnx_ping_result lnx_ping_start(struct lnx_ping *p,
				    const void *src, size_t srclen,
				    const void *dst, size_t dstlen,
				    const char *device);

/*
 * What has become of it; asked while WAITING it costs one poll(2).  Any other answer
 * is final until the next start, and has given the descriptor back.
 */
enum lnx_ping_result lnx_ping_check(struct lnx_ping *p);

/* Give up, if it is under way.  What was found stays. */
void lnx_ping_stop(struct lnx_ping *p);

/* "alive", for logs. */
const char *lnx_ping_result_name(enum lnx_ping_result result);

#endif
