/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The addresses of the host of a gateway.  Nothing is forwarded to them: what listens beside
 * the gateway is for those that reach it without a gateway.
 */
#include <ifaddrs.h>
#include <stdlib.h>

#include "lnxrtd/lnxrtd.h"

static size_t length(const struct sockaddr *sa)
{
	return !sa ? 0 : sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
	       sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

void rtd_own_read(struct rtd_own *own)
{
	struct ifaddrs *list, *i;
	struct lnx_net_addr *addr;
	unsigned n = 0;

	if (getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next)
		n += length(i->ifa_addr) != 0;
	addr = calloc(n ? n : 1, sizeof(*addr));
	if (addr) {
		free(own->addr);
		own->addr = addr;
		own->n = 0;
		for (i = list; i; i = i->ifa_next)
			if (length(i->ifa_addr))
				addr[own->n++] = lnx_netmsg_addr_of(i->ifa_addr,
								    length(i->ifa_addr), NULL);
	}
	freeifaddrs(list);
}

void rtd_own_free(struct rtd_own *own)
{
	free(own->addr);
	*own = (struct rtd_own){ .n = 0 };
}

bool rtd_own_has(const struct rtd_own *own, const void *sockaddr, size_t len)
{
	struct lnx_net_addr a = lnx_netmsg_addr_of(sockaddr, len, NULL);
	unsigned i;

	for (i = 0; i < own->n; i++)
		if (lnx_netmsg_addr_equal(&own->addr[i], &a))
			return true;
	return false;
}
