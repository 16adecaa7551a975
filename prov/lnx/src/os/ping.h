/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does anything answer at the other end of a path?  The question goes to the peer's
 * kernel and not to its process, which may compute for minutes or be stopped: the first
 * two packets of a TCP connection to the port where the peer's core endpoint listens.
 * For cores that listen with TCP (tcp, tcp;ofi_rxm); for others the kernel answers
 * "refused", which still shows that the host is there.
 *
 * The third packet is withheld: the kernel delays it by up to 200 ms when it expects
 * data to go with it, and the probe is reset before.  So the probe never enters the
 * listener's queue and does not wake the process; and the queue of a stopped process
 * does not fill up with probes, as it would after some thousand full connections.  If
 * lnx_ping_check is called less often than every 200 ms, each probe takes a place in
 * the queue until the process accepts it; that is the only cost.
 *
 * No allocation, no waiting, no signal.  A zeroed probe is at rest.  One user at a
 * time: callers serialise.
 */
#ifndef LNX_PING_H
#define LNX_PING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lnx_ping_result {
	/*
	 * At rest, or no answer is possible by this method: an address that is neither
	 * IPv4 nor IPv6, no port, or this process lacks descriptors, memory or ports.
	 * Tells nothing about the path: use other means.
	 */
	LNX_PING_UNKNOWN = 0,
	/* No answer yet.  The caller decides how long is too long. */
	LNX_PING_WAITING,
	/*
	 * Path, host and listener are there.  The process may be busy, or stopped; or
	 * dead, if a process that it started inherited the listener (PEERS.md).
	 */
	LNX_PING_ALIVE,
	/*
	 * The host answers that nothing listens there.  A firewall on the way can send
	 * that answer too.
	 */
	LNX_PING_REFUSED,
	/* This host or one on the way knows that there is no route now; see err. */
	LNX_PING_BROKEN,
};

struct lnx_ping {
	uint8_t result;			/* enum lnx_ping_result */
	bool on_device;			/* it leaves by the requested device */
	uint8_t told;			/* what a gateway that was asked instead has told
					 * (enum lnx_route_tell); 0: nothing */
	int fd;				/* only while LNX_PING_WAITING */
	int err;			/* errno behind the result; 0: none */
};

/*
 * Send a probe from an address of this host to one of a core endpoint, both sockaddr_in
 * or sockaddr_in6; the port of src is not used.  src may be NULL: any.  A probe that is
 * under way is stopped.  Returns what is known already, mostly WAITING.
 *
 * device: the interface that it must leave by, or NULL.  With NULL the kernel chooses
 * by destination and source, as it does for what the tcp cores send; a probe of their
 * paths must do the same.  A device is for cores that are bound to one.  If we are not
 * permitted to choose (kernels before 5.7 without CAP_NET_RAW), or the destination is
 * on this host, where packets go through no device, the kernel chooses too, and
 * on_device stays false.
 *
 * A packet may be lost, and the kernel repeats it only after 1 s: a deadline shorter
 * than that needs a second probe before the path may be called silent.
 */
enum lnx_ping_result lnx_ping_start(struct lnx_ping *p,
				    const void *src, size_t srclen,
				    const void *dst, size_t dstlen,
				    const char *device);

/*
 * The result so far; while WAITING this costs one poll(2).  Any other result is final
 * until the next start, and the descriptor is closed.
 */
enum lnx_ping_result lnx_ping_check(struct lnx_ping *p);

/* Stop it, if it is under way.  The result stays. */
void lnx_ping_stop(struct lnx_ping *p);

/* Is the result UNKNOWN only for now, so that the next probe may tell more?  This process
 * lacked something for it, or it was stopped before there was an answer. */
bool lnx_ping_lacked(const struct lnx_ping *p);

#endif
