/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of netlink: parsing, and refusal of every malformed one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/netmsg.h"

/* ---- building a datagram ---- */

struct datagram {
	size_t len, last;		/* last: where the last message in it begins */
	uint8_t bytes[4096];
};

static void *grow(struct datagram *d, size_t n)
{
	void *p = d->bytes + d->len;

	cr_assert_leq(d->len + n, sizeof(d->bytes));
	d->len += (n + 3) & ~(size_t)3;
	return p;
}

static void set_len(struct datagram *d)
{
	uint32_t len = (uint32_t)(d->len - d->last);

	memcpy(d->bytes + d->last, &len, sizeof(len));
}

static void begin(struct datagram *d, uint16_t type, const void *body, size_t n)
{
	struct nlmsghdr h = { .nlmsg_type = type };

	d->last = d->len;
	memcpy(grow(d, sizeof(h)), &h, sizeof(h));
	memcpy(grow(d, n), body, n);
	set_len(d);
}

static void attr(struct datagram *d, uint16_t type, const void *value, size_t n)
{
	struct rtattr a = { .rta_type = type,
			    .rta_len = (uint16_t)RTA_LENGTH(n) };
	uint8_t *p = grow(d, RTA_LENGTH(n));

	memcpy(p, &a, sizeof(a));
	memcpy(p + RTA_LENGTH(0), value, n);
	set_len(d);
}

#define CARRIES	(IFF_UP | IFF_RUNNING | IFF_LOWER_UP)

static void link_msg(struct datagram *d, uint16_t type, int index, unsigned flags,
		     const char *name)
{
	struct ifinfomsg m = { .ifi_index = index, .ifi_flags = flags };

	begin(d, type, &m, sizeof(m));
	attr(d, IFLA_MTU, "\1\2\3\4", 4);
	if (name)
		attr(d, IFLA_IFNAME, name, strlen(name) + 1);
}

static void addr_msg(struct datagram *d, uint16_t type, unsigned index,
		     uint8_t flags, const char *bytes4)
{
	struct ifaddrmsg m = { .ifa_family = AF_INET, .ifa_index = index,
			       .ifa_flags = flags };

	begin(d, type, &m, sizeof(m));
	attr(d, IFA_LOCAL, bytes4, 4);
}

/* The next event in it; messages without an event are skipped. */
static int next(struct lnx_netmsgs *rest, struct lnx_net_event *ev)
{
	struct lnx_netmsg msg;
	int ret;

	while ((ret = lnx_netmsg_next(rest, &msg)) > 0) {
		ret = lnx_netmsg_event(&msg, ev);
		if (ret)
			return ret;
	}
	return ret;
}

static int only(const struct datagram *d, struct lnx_net_event *ev)
{
	struct lnx_netmsgs rest = { d->bytes, d->len };

	return next(&rest, ev);
}

/* ---- links ---- */

Test(netmsg, link_flags)
{
	static const struct {
		unsigned flags;
		bool up;
	} cases[] = {
		{ CARRIES, true },
		{ CARRIES | IFF_LOOPBACK | IFF_PROMISC, true },
		{ CARRIES & ~IFF_UP, false },
		{ CARRIES & ~IFF_RUNNING, false },
		{ CARRIES & ~IFF_LOWER_UP, false },
		{ 0, false },
	};
	struct lnx_net_event ev;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct datagram d = { 0 };

		link_msg(&d, RTM_NEWLINK, 3, cases[i].flags, "eth0");
		cr_assert_eq(only(&d, &ev), 1);
		cr_assert_eq(ev.what, LNX_NET_LINK);
		cr_assert_eq(ev.ifindex, 3);
		cr_assert_eq(ev.up, cases[i].up, "case %u", i);
		cr_assert_str_eq(ev.name, "eth0");
		cr_assert_eq(ev.port, 0);
		cr_assert_eq(ev.addr.family, 0);
	}
}

Test(netmsg, removed_is_not_up)
{
	struct datagram d = { 0 };
	struct lnx_net_event ev;

	link_msg(&d, RTM_DELLINK, 9, CARRIES, "eth9");
	cr_assert_eq(only(&d, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_GONE);
	cr_assert_eq(ev.ifindex, 9);
	cr_assert_not(ev.up);
}

Test(netmsg, bridges_speak_of_ports)
{
	struct ifinfomsg m = { .ifi_family = AF_BRIDGE, .ifi_index = 4 };
	struct datagram d = { 0 };
	struct lnx_net_event ev;

	begin(&d, RTM_DELLINK, &m, sizeof(m));
	cr_assert_eq(only(&d, &ev), 0);
}

Test(netmsg, names_end)
{
	char name[200];
	struct ifinfomsg m = { .ifi_index = 1 };
	struct lnx_net_event ev;
	struct datagram d = { 0 };

	memset(name, 'x', sizeof(name));
	begin(&d, RTM_NEWLINK, &m, sizeof(m));
	attr(&d, IFLA_IFNAME, name, sizeof(name));
	cr_assert_eq(only(&d, &ev), 1);
	cr_assert_eq(strlen(ev.name), LNX_NETWATCH_NAME_MAX - 1);
	d.len = 0;
	begin(&d, RTM_NEWLINK, &m, sizeof(m));
	attr(&d, IFLA_IFNAME, name, 0);
	cr_assert_eq(only(&d, &ev), 1);
	cr_assert_str_eq(ev.name, "");
}

/* ---- addresses ---- */

Test(netmsg, addresses)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = 7 };
	struct datagram d = { 0 };
	struct lnx_netmsgs rest;
	struct lnx_net_event ev;
	struct lnx_net_addr a;

	memcpy(&in.sin_addr, "\12\1\2\3", 4);
	a = lnx_netmsg_addr_of(&in, sizeof(in), NULL);
	addr_msg(&d, RTM_NEWADDR, 5, 0, "\12\1\2\3");
	addr_msg(&d, RTM_DELADDR, 5, 0, "\12\1\2\3");
	addr_msg(&d, RTM_NEWADDR, 5, 0, "\12\1\2\4");
	rest = (struct lnx_netmsgs){ d.bytes, d.len };
	cr_assert_eq(next(&rest, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_ADDR);
	cr_assert_eq(ev.ifindex, 5);
	cr_assert(ev.up);
	cr_assert(lnx_netmsg_addr_equal(&ev.addr, &a));
	cr_assert_eq(next(&rest, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_ADDR);
	cr_assert_not(ev.up);
	cr_assert(lnx_netmsg_addr_equal(&ev.addr, &a));
	cr_assert_eq(next(&rest, &ev), 1);
	cr_assert(ev.up);
	cr_assert_not(lnx_netmsg_addr_equal(&ev.addr, &a));
	cr_assert_eq(next(&rest, &ev), 0);
}

Test(netmsg, address_that_is_being_checked)
{
	static const struct {
		uint32_t flags;
		bool up;
	} cases[] = {
		{ 0, true }, { IFA_F_PERMANENT, true },
		{ IFA_F_TENTATIVE, false },
		{ IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, true },
		{ IFA_F_DADFAILED, false },
		{ IFA_F_DADFAILED | IFA_F_TENTATIVE, false },
		{ IFA_F_NOPREFIXROUTE, true },
	};
	struct ifaddrmsg m = { .ifa_family = AF_INET6, .ifa_index = 5,
			       .ifa_flags = 0 };
	struct lnx_net_event ev;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct datagram d = { 0 };

		/* The attribute is used if there is one. */
		m.ifa_flags = IFA_F_TENTATIVE;
		begin(&d, RTM_NEWADDR, &m, sizeof(m));
		attr(&d, IFA_ADDRESS, "0123456789abcdef", 16);
		attr(&d, IFA_FLAGS, &cases[i].flags, 4);
		cr_assert_eq(only(&d, &ev), 1);
		cr_assert_eq(ev.up, cases[i].up, "case %u", i);
		cr_assert_arr_eq(ev.addr.bytes, "0123456789abcdef", 16);
	}
}

Test(netmsg, ends_of_a_wire)
{
	struct ifaddrmsg m = { .ifa_family = AF_INET, .ifa_index = 5 };
	struct datagram d = { 0 };
	struct lnx_net_event ev;

	begin(&d, RTM_NEWADDR, &m, sizeof(m));
	attr(&d, IFA_ADDRESS, "peer", 4);
	attr(&d, IFA_LOCAL, "ours", 4);
	cr_assert_eq(only(&d, &ev), 1);
	cr_assert_arr_eq(ev.addr.bytes, "ours", 4);
}

Test(netmsg, sockaddrs)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_scope_id = 3 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in none = { .sin_family = 77 };
	struct lnx_net_addr a, b;
	uint32_t scope = 9;

	a = lnx_netmsg_addr_of(&in6, sizeof(in6), &scope);
	cr_assert_eq(a.family, AF_INET6);
	cr_assert_eq(scope, 3);
	b = lnx_netmsg_addr_of(&in, sizeof(in), &scope);
	cr_assert_eq(b.family, AF_INET);
	cr_assert_eq(scope, 0);
	cr_assert_not(lnx_netmsg_addr_equal(&a, &b), "both all zeros");
	cr_assert_eq(lnx_netmsg_addr_of(&in, sizeof(in) - 1, NULL).family, 0);
	cr_assert_eq(lnx_netmsg_addr_of(&in6, sizeof(in6) - 1, NULL).family, 0);
	cr_assert_eq(lnx_netmsg_addr_of(&in6, 0, NULL).family, 0);
	cr_assert_eq(lnx_netmsg_addr_of(NULL, 99, NULL).family, 0);
	a = lnx_netmsg_addr_of(&none, sizeof(none), NULL);
	cr_assert_eq(a.family, 0);
	cr_assert_not(lnx_netmsg_addr_equal(&a, &a), "none equals nothing");
}

/* ---- malformed bytes ---- */

Test(netmsg, other_messages_mean_nothing)
{
	static const uint16_t types[] = {
		NLMSG_NOOP, NLMSG_ERROR, NLMSG_DONE, NLMSG_OVERRUN, RTM_NEWROUTE,
		RTM_NEWNEIGH, RTM_SETLINK, RTM_GETLINK, 0xffff,
	};
	struct datagram d = { 0 };
	struct lnx_net_event ev;
	unsigned i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		begin(&d, types[i], "abcdefgh", 8);
	link_msg(&d, RTM_NEWLINK, 3, CARRIES, "eth0");
	cr_assert_eq(only(&d, &ev), 1);
	cr_assert_eq(ev.ifindex, 3);
}

Test(netmsg, messages_that_lie)
{
	struct ifaddrmsg a = { .ifa_family = AF_INET, .ifa_index = 5 };
	struct datagram d = { 0 };
	struct lnx_net_event ev;

	/* No index; a negative one. */
	link_msg(&d, RTM_NEWLINK, 0, CARRIES, "eth0");
	cr_assert_eq(only(&d, &ev), -EBADMSG);
	d.len = 0;
	link_msg(&d, RTM_NEWLINK, -3, CARRIES, "eth0");
	cr_assert_eq(only(&d, &ev), -EBADMSG);
	/* No address; one of another family; one without an interface. */
	d.len = 0;
	begin(&d, RTM_NEWADDR, &a, sizeof(a));
	cr_assert_eq(only(&d, &ev), -EBADMSG);
	attr(&d, IFA_LOCAL, "0123456789abcdef", 16);
	cr_assert_eq(only(&d, &ev), -EBADMSG);
	d.len = 0;
	addr_msg(&d, RTM_NEWADDR, 0, 0, "\1\2\3\4");
	cr_assert_eq(only(&d, &ev), -EBADMSG);
	/* Address families that rails do not have. */
	d.len = 0;
	a.ifa_family = 77;
	begin(&d, RTM_NEWADDR, &a, sizeof(a));
	cr_assert_eq(only(&d, &ev), 0);
}

/* Every shorter length, in memory that ends there. */
Test(netmsg, cut_short)
{
	struct datagram d = { 0 };
	struct lnx_net_event ev;
	size_t n, ends[3];
	int events, ret;

	link_msg(&d, RTM_NEWLINK, 3, CARRIES, "eth0");
	ends[0] = d.len;
	addr_msg(&d, RTM_NEWADDR, 5, 0, "\1\2\3\4");
	ends[1] = d.len;
	link_msg(&d, RTM_DELLINK, 3, 0, NULL);
	ends[2] = d.len;
	for (n = 0; n <= d.len; n++) {
		uint8_t *copy = malloc(n ? n : 1);
		struct lnx_netmsgs rest = { copy, n };

		cr_assert(copy);
		memcpy(copy, d.bytes, n);
		for (events = 0; (ret = next(&rest, &ev)) == 1; events++)
			;
		cr_assert_eq(events, (n >= ends[0]) + (n >= ends[1]) +
			     (n >= ends[2]));
		cr_assert_eq(ret == 0, !n || n == ends[0] || n == ends[1] ||
			     n == ends[2], "%zu bytes: %d", n, ret);
		free(copy);
	}
}

Test(netmsg, noise)
{
	const char *given = getenv("LNX_SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 0) :
				(unsigned)time(NULL);
	struct datagram d = { 0 };
	size_t keep;
	int i, k;

	fprintf(stderr, "seed %u (repeat with LNX_SEED=%u)\n", seed, seed);
	srandom(seed);
	link_msg(&d, RTM_NEWLINK, 3, CARRIES, "eth0");
	addr_msg(&d, RTM_NEWADDR, 5, 0, "\1\2\3\4");
	keep = d.len;
	for (i = 0; i < 100000; i++) {
		uint8_t *copy = malloc(keep);
		struct lnx_netmsgs rest = { copy, keep };
		struct lnx_net_event ev;
		int ret, n = 0;

		memcpy(copy, d.bytes, keep);
		for (k = 0; k < 4; k++)
			copy[(size_t)random() % keep] = (uint8_t)random();
		while ((ret = next(&rest, &ev)) == 1) {
			cr_assert_lt(++n, (int)keep, "seed %u", seed);
			cr_assert(memchr(ev.name, 0, sizeof(ev.name)),
				  "seed %u", seed);
			cr_assert_neq(ev.ifindex, 0, "seed %u", seed);
		}
		free(copy);
	}
}
