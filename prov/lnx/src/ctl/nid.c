/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes NIDs.  See nid.h.  Called by ctl/publish.c and ctl/explain.c. */
#include "ctl/nid.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "core/open.h"

void lnx_nid_net(const struct lnx_rail *rail, char *buf, size_t size)
{
	/* Domains may contain a colon, providers do not. */
	snprintf(buf, size, "%.*s", (int)strcspn(rail->name, ":"), rail->name);
}

const char *lnx_nid_interface(const struct lnx_rail *rail)
{
	const char *domain = strchr(rail->name, ':');

	return domain && !lnx_kind_local(rail->kind) ? domain + 1 : "";
}

/* False: it is no address of IP. */
static bool ip_text(struct lnx_out *o, const uint8_t *addr, size_t len, bool port)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	char text[INET6_ADDRSTRLEN];
	unsigned number;

	if (len < sizeof(in))
		return false;
	memcpy(&in, addr, sizeof(in));
	if (in.sin_family == AF_INET) {
		inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
		lnx_out(o, "%s", text);
		number = ntohs(in.sin_port);
	} else if (in.sin_family == AF_INET6 && len >= sizeof(in6)) {
		memcpy(&in6, addr, sizeof(in6));
		inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
		lnx_out(o, "[%s]", text);
		number = ntohs(in6.sin6_port);
	} else {
		return false;
	}
	if (port && number)
		lnx_out(o, ":%u", number);
	return true;
}

static bool is_ip(const struct lnx_rail *rail)
{
	uint32_t format = rail->info ? rail->info->addr_format : 0;

	return format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
	       format == FI_SOCKADDR_IN6;
}

static void nid(const struct lnx_rail *rail, const uint8_t *addr, size_t len,
		bool port, char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	char net[LNX_NAME_MAX];
	size_t i;

	lnx_nid_net(rail, net, sizeof(net));
	if (!is_ip(rail) || !ip_text(&o, addr, len, port)) {
		lnx_out(&o, "0x");
		for (i = 0; i < len; i++)
			lnx_out(&o, "%02x", addr[i]);
	}
	lnx_out(&o, "@%s", net);
}

void lnx_nid_rail(const struct lnx_rail *rail, char *buf, size_t size)
{
	/* Shared memory has no address that tells a user anything. */
	if (lnx_kind_local(rail->kind))
		snprintf(buf, size, "%016llx@shm", (unsigned long long)rail->ep->eid);
	else
		nid(rail, rail->addr, rail->addrlen, false, buf, size);
}

void lnx_nid_remote(const struct lnx_path *path, char *buf, size_t size)
{
	uint8_t addr[LNX_ADDR_RAW];
	size_t len = sizeof(addr);

	if (!path->rail->av ||
	    fi_av_lookup(path->rail->av, path->core_addr, addr, &len) ||
	    len > sizeof(addr))
		len = 0;
	nid(path->rail, addr, len, true, buf, size);
}
