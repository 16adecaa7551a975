/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A watch (os/netwatch.h) of one RDMA device: ports that fail and come back, and the
 * device's own failure.  The events come from libibverbs, which is not linked, but
 * loaded when a device is watched.
 *
 * A port is up when it is active.  When a device has failed for good the event is
 * LNX_NET_GONE: it has to be closed and opened anew.  Other changes (addresses, for
 * example) are LNX_NET_LOST: look again.
 */
#ifndef LNX_IBWATCH_H
#define LNX_IBWATCH_H

#include "os/netwatch.h"

/*
 * Watch a device by its name ("mlx5_0"), one port of it or, with 0, all.
 * lnx_netwatch_look of it takes no index, and that name or NULL; it is up if the port,
 * or any of them, is active; has_addr says whether the address is one of its GIDs,
 * which is so for RoCE and not for IPoIB.
 * 0; -ENOSYS: built without libibverbs, or there is none; -ENODEV: no such device; or
 * another negative errno.
 */
int lnx_ibwatch_open(const char *device, uint8_t port,
		     struct lnx_netwatch **w);

/* The calls into libibverbs, for tests that script them. */
struct lnx_ibcalls;
int lnx_ibwatch_open_with(const struct lnx_ibcalls *calls, const char *device,
			  uint8_t port, struct lnx_netwatch **w);

#ifdef HAVE_IBVERBS
#include <infiniband/verbs.h>

#define LNX_IBCALLS(call) \
	call(get_device_list) \
	call(free_device_list) \
	call(get_device_name) \
	call(open_device) \
	call(close_device) \
	call(get_async_event) \
	call(ack_async_event) \
	call(query_port) \
	call(query_gid)

struct lnx_ibcalls {
	void *file;			/* NULL: scripted */
#define CALL(name) __typeof__(&ibv_##name) name;
	LNX_IBCALLS(CALL)
#undef CALL
};
#endif

#endif
