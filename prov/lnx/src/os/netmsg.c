/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses rtnetlink messages.  See netmsg.h. */
#include <errno.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/compiler.h"
#include "os/netmsg.h"

/* ---- addresses ---- */

struct lnx_net_addr lnx_netmsg_addr_of(const void *sockaddr, size_t len,
				       uint32_t *scope)
{
	struct lnx_net_addr a = { 0 };
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family = AF_UNSPEC;

	if (scope)
		*scope = 0;
	if (sockaddr && len >= sizeof(struct sockaddr))
		memcpy(&family, (const uint8_t *)sockaddr +
		       offsetof(struct sockaddr, sa_family), sizeof(family));
	if (family == AF_INET && len >= sizeof(in)) {
		memcpy(&in, sockaddr, sizeof(in));
		a.family = AF_INET;
		memcpy(a.bytes, &in.sin_addr, sizeof(in.sin_addr));
	} else if (family == AF_INET6 && len >= sizeof(in6)) {
		memcpy(&in6, sockaddr, sizeof(in6));
		a.family = AF_INET6;
		memcpy(a.bytes, &in6.sin6_addr, sizeof(in6.sin6_addr));
		if (scope)
			*scope = in6.sin6_scope_id;
	}
	return a;
}

bool lnx_netmsg_addr_equal(const struct lnx_net_addr *a,
			   const struct lnx_net_addr *b)
{
	return a->family && a->family == b->family &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* ---- messages and what is in them ---- */

int lnx_netmsg_next(struct lnx_netmsgs *rest, struct lnx_netmsg *msg)
{
	struct nlmsghdr h;
	size_t step;

	if (!rest->left)
		return 0;
	if (rest->left < sizeof(h))
		return -EBADMSG;
	memcpy(&h, rest->p, sizeof(h));
	if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > rest->left)
		return -EBADMSG;
	msg->type = h.nlmsg_type;
	msg->flags = h.nlmsg_flags;
	msg->seq = h.nlmsg_seq;
	msg->body = rest->p + NLMSG_HDRLEN;
	msg->len = h.nlmsg_len - NLMSG_HDRLEN;
	/* The last one need not be padded. */
	step = LNX_MIN((size_t)NLMSG_ALIGN(h.nlmsg_len), rest->left);
	rest->p += step;
	rest->left -= step;
	return 1;
}

/* An attribute behind the first `skip` bytes; NULL if there is none of that type. */
static const uint8_t *attribute(const struct lnx_netmsg *msg, size_t skip,
				unsigned type, size_t *len)
{
	const uint8_t *p;
	struct rtattr a;
	size_t left, step;

	skip = NLMSG_ALIGN(skip);
	if (msg->len < skip)
		return NULL;
	p = msg->body + skip;
	for (left = msg->len - skip; left >= sizeof(a); left -= step, p += step) {
		memcpy(&a, p, sizeof(a));
		if (a.rta_len < sizeof(a) || a.rta_len > left)
			return NULL;
		if ((a.rta_type & NLA_TYPE_MASK) == type) {
			*len = a.rta_len - RTA_LENGTH(0);
			return p + RTA_LENGTH(0);
		}
		step = LNX_MIN((size_t)RTA_ALIGN(a.rta_len), left);
	}
	return NULL;
}

/*
 * RUNNING means that the interface is operational; it changes a moment after the
 * carrier is lost.
 */
static bool carries(uint32_t flags)
{
	uint32_t want = IFF_UP | IFF_RUNNING | IFF_LOWER_UP;

	return (flags & want) == want;
}

static int link_event(const struct lnx_netmsg *msg, struct lnx_net_event *ev)
{
	const uint8_t *name;
	struct ifinfomsg m;
	size_t len;

	if (msg->len < sizeof(m))
		return -EBADMSG;
	memcpy(&m, msg->body, sizeof(m));
	/*
	 * When a bridge loses a port, it sends a message with the port's name, as
	 * "removed".
	 */
	if (m.ifi_family != AF_UNSPEC)
		return 0;
	if (m.ifi_index <= 0)
		return -EBADMSG;
	ev->ifindex = (uint32_t)m.ifi_index;
	ev->what = msg->type == RTM_DELLINK ? LNX_NET_GONE : LNX_NET_LINK;
	ev->up = ev->what == LNX_NET_LINK && carries(m.ifi_flags);
	name = attribute(msg, sizeof(m), IFLA_IFNAME, &len);
	if (name)
		memcpy(ev->name, name, strnlen((const char *)name,
				LNX_MIN(len, sizeof(ev->name) - 1)));
	return 1;
}

static int addr_event(const struct lnx_netmsg *msg, struct lnx_net_event *ev)
{
	const uint8_t *p;
	struct ifaddrmsg m;
	uint32_t flags;
	size_t len;

	if (msg->len < sizeof(m))
		return -EBADMSG;
	memcpy(&m, msg->body, sizeof(m));
	if (m.ifa_family != AF_INET && m.ifa_family != AF_INET6)
		return 0;
	/* For a point-to-point interface IFA_ADDRESS is the other end's. */
	p = attribute(msg, sizeof(m), IFA_LOCAL, &len);
	if (!p)
		p = attribute(msg, sizeof(m), IFA_ADDRESS, &len);
	if (!m.ifa_index || !p || len != (m.ifa_family == AF_INET ? 4 : 16))
		return -EBADMSG;
	ev->what = LNX_NET_ADDR;
	ev->ifindex = m.ifa_index;
	ev->addr.family = m.ifa_family;
	memcpy(ev->addr.bytes, p, len);
	flags = m.ifa_flags;
	p = attribute(msg, sizeof(m), IFA_FLAGS, &len);
	if (p && len == sizeof(flags))
		memcpy(&flags, p, sizeof(flags));
	ev->up = msg->type == RTM_NEWADDR && !(flags & IFA_F_DADFAILED) &&
		 (!(flags & IFA_F_TENTATIVE) || (flags & IFA_F_OPTIMISTIC));
	return 1;
}

int lnx_netmsg_event(const struct lnx_netmsg *msg, struct lnx_net_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	switch (msg->type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return link_event(msg, ev);
	case RTM_NEWADDR:
	case RTM_DELADDR:
		return addr_event(msg, ev);
	}
	return 0;
}
