/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Probes the kernel at the other end of a path.  See ping.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/ping.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

#define DEVICE_NAME_MAX	16

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Make an aligned copy of a valid length; returns the length, or 0. */
static socklen_t take_address(union address *a, const void *from, size_t len)
{
	memset(a, 0, sizeof(*a));
	if (!from || len < sizeof(a->sa))
		return 0;
	memcpy(a, from, len < sizeof(*a) ? len : sizeof(*a));
	if (a->sa.sa_family == AF_INET && len >= sizeof(a->in))
		return sizeof(a->in);
	if (a->sa.sa_family == AF_INET6 && len >= sizeof(a->in6))
		return sizeof(a->in6);
	return 0;
}

static in_port_t *port_of(union address *a)
{
	return a->sa.sa_family == AF_INET ? &a->in.sin_port :
					    &a->in6.sin6_port;
}

/* Is it an address of this host?  No other host's could be bound. */
static bool is_local(const union address *a, socklen_t len)
{
	union address copy = *a;
	int fd, ret;

	*port_of(&copy) = 0;
	fd = socket(a->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;		/* unknown: let the kernel decide */
	ret = bind(fd, &copy.sa, len);
	close(fd);
	return !ret;
}

static enum lnx_ping_result result_of(int err)
{
	switch (err) {
	case 0:
	/* The connection was accepted and closed before we looked. */
	case ECONNRESET:
	case EPIPE:
		return LNX_PING_ALIVE;
	case ECONNREFUSED:
		return LNX_PING_REFUSED;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case ENONET:
	case ENODEV:
	case ENXIO:
	case ENOPROTOOPT:		/* ICMP: protocol unreachable */
	case ETIMEDOUT:
	case EACCES:			/* a route, or ICMP, that prohibits */
	case EINVAL:			/* a blackhole route */
		return LNX_PING_BROKEN;
	}
	return LNX_PING_UNKNOWN;
}

static enum lnx_ping_result settle(struct lnx_ping *p,
				   enum lnx_ping_result result, int err)
{
	if (p->result == LNX_PING_WAITING)
		close(p->fd);
	p->fd = -1;
	p->result = (uint8_t)result;
	p->err = err;
	return result;
}

/* No failure here matters, except that the device does not exist. */
static int prepare(struct lnx_ping *p, const union address *dst,
		   socklen_t dstlen, const char *device)
{
	static const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	static const int off = 0, on = 1;

	(void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	(void)setsockopt(p->fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
	/* The local port is reserved for this destination only. */
	(void)setsockopt(p->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
			 sizeof(on));
	if (!device || is_local(dst, dstlen))
		return 0;
	if (setsockopt(p->fd, SOL_SOCKET, SO_BINDTODEVICE, device,
		       (socklen_t)strnlen(device, DEVICE_NAME_MAX)))
		return errno == ENODEV ? ENODEV : 0;
	p->on_device = true;
	return 0;
}

enum lnx_ping_result lnx_ping_start(struct lnx_ping *p,
				    const void *src, size_t srclen,
				    const void *dst, size_t dstlen,
				    const char *device)
{
	union address from, to;
	socklen_t fromlen = 0, tolen = take_address(&to, dst, dstlen);
	int err;

	lnx_ping_stop(p);
	p->on_device = false;
	if (!tolen)
		return settle(p, LNX_PING_UNKNOWN, EAFNOSUPPORT);
	if (src) {
		fromlen = take_address(&from, src, srclen);
		if (!fromlen || from.sa.sa_family != to.sa.sa_family)
			return settle(p, LNX_PING_UNKNOWN, EAFNOSUPPORT);
		*port_of(&from) = 0;
	}
	if (!*port_of(&to))
		return settle(p, LNX_PING_UNKNOWN, EDESTADDRREQ);
	/* Without a scope the address could be on any link. */
	if (to.sa.sa_family == AF_INET6 && !to.in6.sin6_scope_id &&
	    IN6_IS_ADDR_LINKLOCAL(&to.in6.sin6_addr))
		return settle(p, LNX_PING_UNKNOWN, EDESTADDRREQ);

	p->fd = socket(to.sa.sa_family,
		       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return settle(p, LNX_PING_UNKNOWN, errno);
	p->result = LNX_PING_WAITING;
	p->err = 0;
	err = prepare(p, &to, tolen, device);
	if (err)
		return settle(p, LNX_PING_BROKEN, err);
	if (fromlen && bind(p->fd, &from.sa, fromlen)) {
		err = errno;
		/* The rail's address no longer belongs to this host. */
		return settle(p, err == EADDRNOTAVAIL || err == ENODEV ?
			      LNX_PING_BROKEN : LNX_PING_UNKNOWN, err);
	}
	if (!connect(p->fd, &to.sa, tolen))
		return settle(p, LNX_PING_ALIVE, 0);
	err = errno;
	/* An interrupted connect goes on. */
	if (err == EINPROGRESS || err == EINTR)
		return LNX_PING_WAITING;
	return settle(p, result_of(err), err);
}

enum lnx_ping_result lnx_ping_check(struct lnx_ping *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (p->result != LNX_PING_WAITING)
		return (enum lnx_ping_result)p->result;
	if (poll(&pfd, 1, 0) <= 0)
		return LNX_PING_WAITING;
	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	return settle(p, result_of(err), err);
}

void lnx_ping_stop(struct lnx_ping *p)
{
	if (p->result == LNX_PING_WAITING)
		settle(p, LNX_PING_UNKNOWN, ECANCELED);
}

bool lnx_ping_lacked(const struct lnx_ping *p)
{
	if (p->result != LNX_PING_UNKNOWN)
		return false;
	switch (p->err) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EAGAIN:			/* also of a core, or of ports in Linux */
	case EADDRINUSE:		/* ports */
	case EADDRNOTAVAIL:		/* ports, as connect reports them */
	case ECANCELED:
		return true;
	}
	return false;
}
