/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes as a datagram of rtnetlink.  Messages are inside it and use all of it; an
 * event has an interface, a name that is terminated, and an address of its family.
 *
 * Sources: os/netmsg.c
 */
#define LNX_FUZZ_NAME "netmsg"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "os/netmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lnx_netmsgs rest = { data, size };
	struct lnx_netmsg msg;
	struct lnx_net_event ev;
	size_t left = size;
	int ret;

	while ((ret = lnx_netmsg_next(&rest, &msg)) == 1) {
		FUZZ_CHECK(rest.left < left);
		FUZZ_CHECK(rest.p + rest.left == data + size);
		left = rest.left;
		FUZZ_CHECK(msg.body >= data &&
			   msg.body + msg.len <= data + size);
		ret = lnx_netmsg_event(&msg, &ev);
		if (ret != 1) {
			FUZZ_CHECK(!ret || ret == -EBADMSG);
			continue;
		}
		FUZZ_CHECK(ev.ifindex);
		FUZZ_CHECK(memchr(ev.name, 0, sizeof(ev.name)));
		FUZZ_CHECK(!ev.port);
		switch (ev.what) {
		case LNX_NET_LINK:
			FUZZ_CHECK(!ev.addr.family);
			break;
		case LNX_NET_GONE:
			FUZZ_CHECK(!ev.up);
			break;
		case LNX_NET_ADDR:
			FUZZ_CHECK(ev.addr.family == AF_INET ||
				   ev.addr.family == AF_INET6);
			FUZZ_CHECK(lnx_netmsg_addr_equal(&ev.addr, &ev.addr));
			break;
		default:
			FUZZ_CHECK(0);
		}
	}
	FUZZ_CHECK(!ret || ret == -EBADMSG);
	FUZZ_CHECK(ret || !rest.left);
	return 0;
}
