/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's rtnetlink, without a library.  Only two kinds of messages and two
 * queries are needed, which is less code than finding out whether a library exists; and
 * every build has it.
 *
 * Events and answers have a socket each.  The second stays open although it is rarely
 * used: one opened later might belong to another network name space.
 */
#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/netmsg.h"

/* Events have 8 KiB at most, answers as much as there is room for. */
#define DATAGRAM_MAX	16384
/* Datagrams without an event that one call reads at most. */
#define SKIP_MAX	128
/* Queries repeated because the answer changed while it was given. */
#define AGAIN_MAX	16

struct rtwatch {
	struct lnx_netwatch base;
	int ask_fd;
	uint32_t seq;			/* of the last query */
	struct lnx_netmsgs rest;	/* of event[], not read yet */
	_Alignas(8) uint8_t event[DATAGRAM_MAX];
	_Alignas(8) uint8_t answer[DATAGRAM_MAX];
};

static struct rtwatch *rtwatch_of(struct lnx_netwatch *w)
{
	return lnx_container_of(w, struct rtwatch, base);
}

/*
 * A datagram of the kernel.  Its length; 0: one from another sender; -EAGAIN: none;
 * -ENOBUFS: some were lost, or this one was too long.
 */
static ssize_t receive(int fd, void *buf, size_t size)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { buf, size };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
	};
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (m.msg_namelen != sizeof(from) || from.nl_family != AF_NETLINK ||
	    from.nl_pid)
		return 0;
	if (m.msg_flags & MSG_TRUNC)
		return -ENOBUFS;
	return n;
}

/* ---- events ---- */

static int lost(struct rtwatch *w, struct lnx_net_event *ev)
{
	w->rest.left = 0;
	memset(ev, 0, sizeof(*ev));
	ev->what = LNX_NET_LOST;
	return 1;
}

static int rt_next(struct lnx_netwatch *base, struct lnx_net_event *ev)
{
	struct rtwatch *w = rtwatch_of(base);
	struct lnx_netmsg msg;
	unsigned i;
	ssize_t n;
	int ret;

	for (i = 0; i < SKIP_MAX; i++) {
		while ((ret = lnx_netmsg_next(&w->rest, &msg)) > 0) {
			ret = lnx_netmsg_event(&msg, ev);
			if (ret)
				break;
		}
		/* A message that cannot be read may have been important. */
		if (ret)
			return ret > 0 ? ret : lost(w, ev);
		n = receive(w->base.fd, w->event, sizeof(w->event));
		if (n == -EAGAIN)
			return 0;
		if (n == -ENOBUFS)
			return lost(w, ev);
		if (n < 0)
			return (int)n;
		w->rest = (struct lnx_netmsgs){ w->event, (size_t)n };
	}
	return 0;
}

/* ---- queries ---- */

struct question {
	struct nlmsghdr h;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg addr;
	};
	struct rtattr name_attr;
	char name[IFNAMSIZ];
};
static_assert(offsetof(struct question, name_attr) ==
	      NLMSG_LENGTH(sizeof(struct ifinfomsg)), "attributes follow it");

/*
 * Send a query, and take the first event of the answer that fits.  1: there was one; 0:
 * none; or a negative errno.  The answer is read to its end without waiting: the kernel
 * has given it, or its next part, before each call returns.
 */
static int ask_once(struct rtwatch *w, struct question *q,
		    bool (*fits)(const struct lnx_net_event *, const void *),
		    const void *what, struct lnx_net_event *found)
{
	bool dump = (q->h.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct lnx_net_event ev;
	struct lnx_netmsgs rest;
	struct lnx_netmsg msg;
	int ret, err = 0;
	bool got = false;
	unsigned i;
	ssize_t n;

	/* The rest of an answer that was given up would be in the way. */
	for (i = 0; i < SKIP_MAX; i++)
		if (receive(w->ask_fd, w->answer, sizeof(w->answer)) == -EAGAIN)
			break;
	q->h.nlmsg_seq = ++w->seq;
	do
		n = sendto(w->ask_fd, q, q->h.nlmsg_len, MSG_DONTWAIT,
			   (struct sockaddr *)&kernel, sizeof(kernel));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (;;) {
		n = receive(w->ask_fd, w->answer, sizeof(w->answer));
		if (n < 0)
			return (int)n;
		rest = (struct lnx_netmsgs){ w->answer, (size_t)n };
		while ((ret = lnx_netmsg_next(&rest, &msg)) > 0) {
			/* The end of an answer that was given up. */
			if (msg.seq != w->seq)
				continue;
			if (msg.flags & NLM_F_DUMP_INTR)
				err = -EINTR;
			if (msg.type == NLMSG_DONE)
				return err ? err : got;
			if (msg.type == NLMSG_ERROR) {
				if (msg.len < sizeof(err))
					return -EBADMSG;
				memcpy(&err, msg.body, sizeof(err));
				return err < 0 ? err : -EBADMSG;
			}
			ret = lnx_netmsg_event(&msg, &ev);
			if (ret < 0)
				return ret;
			if (ret && !got && fits(&ev, what)) {
				*found = ev;
				got = true;
			}
			if (!dump)
				return got;
		}
		if (ret < 0)
			return ret;
	}
}

static int ask(struct rtwatch *w, struct question *q,
	       bool (*fits)(const struct lnx_net_event *, const void *),
	       const void *what, struct lnx_net_event *found)
{
	unsigned i;
	int ret = -EINTR;

	for (i = 0; i < AGAIN_MAX && ret == -EINTR; i++)
		ret = ask_once(w, q, fits, what, found);
	return ret == -EINTR ? -EAGAIN : ret;
}

static bool is_link(const struct lnx_net_event *ev, const void *what)
{
	(void)what;
	return ev->what == LNX_NET_LINK;
}

/* The interface of that index, or if it is 0, of that name. */
static int ask_link(struct rtwatch *w, uint32_t ifindex, const char *name,
		    struct lnx_net_event *found)
{
	struct question q = {
		.h = {
			.nlmsg_len = offsetof(struct question, name_attr),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.link.ifi_index = (int)ifindex,
	};
	size_t len;
	int ret;

	if (ifindex > INT32_MAX)
		return -ENODEV;
	if (!ifindex) {
		len = strnlen(name, IFNAMSIZ);
		if (!len || len == IFNAMSIZ)
			return -ENODEV;
		memcpy(q.name, name, len);
		q.name_attr.rta_type = IFLA_IFNAME;
		q.name_attr.rta_len = (uint16_t)RTA_LENGTH(len + 1);
		q.h.nlmsg_len += (uint32_t)RTA_ALIGN(q.name_attr.rta_len);
	}
	ret = ask(w, &q, is_link, NULL, found);
	return ret > 0 ? 0 : ret ? ret : -EBADMSG;
}

struct holder {
	struct lnx_net_addr addr;
	uint32_t ifindex;		/* 0: any */
};

static bool is_holder(const struct lnx_net_event *ev, const void *what)
{
	const struct holder *h = what;

	return ev->what == LNX_NET_ADDR && ev->up &&
	       lnx_netmsg_addr_equal(&ev->addr, &h->addr) &&
	       (!h->ifindex || ev->ifindex == h->ifindex);
}

/* 1: there is such an address, and *found has its interface; 0: there is none. */
static int ask_addr(struct rtwatch *w, const struct holder *h,
		    struct lnx_net_event *found)
{
	struct question q = {
		.h = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(q.addr)),
			.nlmsg_type = RTM_GETADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.addr.ifa_family = (uint8_t)h->addr.family,
		/* Kernels that ignore this report all interfaces. */
		.addr.ifa_index = h->ifindex,
	};
	int ret = ask(w, &q, is_holder, h, found);

	/* The interface was removed during the query, or just before. */
	return ret == -ENODEV ? 0 : ret;
}

static int rt_look(struct lnx_netwatch *base, uint32_t ifindex,
		   const char *name, const void *addr, size_t addrlen,
		   struct lnx_net_state *now)
{
	struct rtwatch *w = rtwatch_of(base);
	struct lnx_net_event link, holder;
	struct holder h = { .ifindex = ifindex };
	uint32_t scope;
	int ret;

	h.addr = lnx_netmsg_addr_of(addr, addrlen, &scope);
	if (!ifindex && !name) {
		if (!h.addr.family)
			return -ENODEV;
		h.ifindex = scope;
		ret = ask_addr(w, &h, &holder);
		if (ret <= 0)
			return ret ? ret : -ENODEV;
		ifindex = holder.ifindex;
	}
	ret = ask_link(w, ifindex, name, &link);
	if (ret)
		return ret;
	h.ifindex = link.ifindex;
	ret = 0;
	if (h.addr.family && (!scope || scope == link.ifindex))
		ret = ask_addr(w, &h, &holder);
	if (ret < 0)
		return ret;
	memset(now, 0, sizeof(*now));
	now->up = link.up;
	now->has_addr = ret > 0;
	now->ifindex = link.ifindex;
	memcpy(now->name, link.name, sizeof(now->name));
	return 0;
}

/* ---- open, close ---- */

static void rt_close(struct lnx_netwatch *base)
{
	struct rtwatch *w = rtwatch_of(base);

	if (w->base.fd >= 0)
		close(w->base.fd);
	if (w->ask_fd >= 0)
		close(w->ask_fd);
	free(w);
}

static const struct lnx_netwatch_ops rt_ops = {
	.next = rt_next,
	.look = rt_look,
	.close = rt_close,
};

static int open_socket(uint32_t groups)
{
	struct sockaddr_nl self = {
		.nl_family = AF_NETLINK, .nl_groups = groups,
	};
	int fd, one = 1, err;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&self, sizeof(self))) {
		err = errno;
		close(fd);
		return -err;
	}
	/* Addresses of one interface only; older kernels give all of them. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one,
			 sizeof(one));
	return fd;
}

int lnx_netwatch_open(struct lnx_netwatch **out)
{
	struct rtwatch *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->base.ops = &rt_ops;
	w->ask_fd = -1;
	ret = w->base.fd = open_socket(RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
				       RTMGRP_IPV6_IFADDR);
	if (ret >= 0)
		ret = w->ask_fd = open_socket(0);
	if (ret < 0) {
		rt_close(&w->base);
		return ret;
	}
	*out = &w->base;
	return 0;
}
