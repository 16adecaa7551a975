/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changes of the interfaces and devices below rails: links that go down and up,
 * addresses that come and go, interfaces that are removed.  The kernel reports within
 * microseconds what silence on a path would show only after many milliseconds.
 *
 * A watch is a file descriptor that becomes readable, and events to read from it.
 * There are several kinds behind one interface: the kernel's rtnetlink (here), RDMA
 * devices (os/ibwatch.h), and scripts in unit tests.
 *
 * An event says that something has changed and what it was then; in a burst it may be
 * out of date.  So before acting on one, call lnx_netwatch_look for the present state.
 *
 * Of the kernel's: reading an event is one system call if there is none, a look four to
 * six (5 us).  An interface that is taken down, or loses its carrier, is reported some
 * 100 us later; repeated changes of a carrier may be held back for up to 1 s.
 *
 * A watch has one user at a time: callers serialise.  Nothing here waits, except that
 * lnx_netwatch_look may wait for the kernel's own lock while another process
 * reconfigures the network: never in the path of a message.
 */
#ifndef LNX_NETWATCH_H
#define LNX_NETWATCH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LNX_NETWATCH_NAME_MAX	64	/* interfaces have 16, RDMA devices 64 */

enum lnx_net_what {
	/* An interface or port appeared, changed or was renamed: see up. */
	LNX_NET_LINK = 1,
	/* It does not exist any more, or not in this network name space. */
	LNX_NET_GONE,
	/* An address of an interface: up: it can be used now, else it was removed. */
	LNX_NET_ADDR,
	/* More events than could be kept: look at everything again. */
	LNX_NET_LOST,
};

/* An address without a port; family 0: none. */
struct lnx_net_addr {
	uint16_t family;		/* AF_INET or AF_INET6 */
	uint8_t bytes[16];
};

struct lnx_net_event {
	uint8_t what;			/* enum lnx_net_what */
	uint8_t port;			/* of an RDMA device; else 0 */
	bool up;			/* carries traffic; LNX_NET_ADDR: is there */
	uint32_t ifindex;		/* 0: an RDMA device, or LNX_NET_LOST */
	struct lnx_net_addr addr;	/* LNX_NET_ADDR */
	char name[LNX_NETWATCH_NAME_MAX];	/* empty for LNX_NET_ADDR and _LOST */
};

/* The present state. */
struct lnx_net_state {
	bool up;			/* carries traffic */
	bool has_addr;			/* has the address that was asked for */
	uint32_t ifindex;		/* 0: an RDMA device */
	char name[LNX_NETWATCH_NAME_MAX];
};

struct lnx_netwatch;

/* Operations of a kind of watch; the comments are at the functions below. */
struct lnx_netwatch_ops {
	int (*next)(struct lnx_netwatch *w, struct lnx_net_event *ev);
	int (*look)(struct lnx_netwatch *w, uint32_t ifindex, const char *name,
		    const void *addr, size_t addrlen, struct lnx_net_state *now);
	void (*close)(struct lnx_netwatch *w);
};

/* First member of each kind of watch. */
struct lnx_netwatch {
	const struct lnx_netwatch_ops *ops;
	int fd;				/* -1: must be polled from time to time */
};

/*
 * Watch the interfaces of the calling thread's network name space.  The watch stays
 * with that name space, whatever the thread enters later, and does not see others; so
 * open it where the rails are.  0, or a negative errno: there is no such sensor, the
 * rest works without.
 */
int lnx_netwatch_open(struct lnx_netwatch **w);

static inline void lnx_netwatch_close(struct lnx_netwatch *w)
{
	if (w)
		w->ops->close(w);
}

/* Readable when there is an event.  Belongs to the watch. */
static inline int lnx_netwatch_fd(const struct lnx_netwatch *w)
{
	return w->fd;
}

/*
 * The next event: 1; none now: 0; never again: a negative errno, and the watch is
 * useless from then on.  It is also 0 after some hundred irrelevant messages, while the
 * descriptor stays readable, so that a flood of them cannot hold up the caller.
 */
static inline int lnx_netwatch_next(struct lnx_netwatch *w,
				    struct lnx_net_event *ev)
{
	return w->ops->next(w, ev);
}

/*
 * The present state of an interface: the one of that index; if it is 0, of that name;
 * if that is NULL, the one with that address (sockaddr_in, sockaddr_in6; the port does
 * not matter, a scope must fit if there is one).  Without an address has_addr is false.
 * 0; -ENODEV: there is no such interface, or none with such an address; or another
 * negative errno: it cannot be told now.
 */
static inline int lnx_netwatch_look(struct lnx_netwatch *w, uint32_t ifindex,
				    const char *name, const void *addr,
				    size_t addrlen, struct lnx_net_state *now)
{
	return w->ops->look(w, ifindex, name, addr, addrlen, now);
}

/*
 * The address in a sockaddr; family 0 if it has none that identifies a host.  The scope
 * goes to *scope (0: none) unless that is NULL.
 */
struct lnx_net_addr lnx_netmsg_addr_of(const void *sockaddr, size_t len,
				       uint32_t *scope);
/* Are both the same, and not none? */
bool lnx_netmsg_addr_equal(const struct lnx_net_addr *a,
			   const struct lnx_net_addr *b);

#endif
