/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watches an RDMA device through libibverbs.  See ibwatch.h. */
#include <errno.h>

#include "os/ibwatch.h"

#ifdef HAVE_IBVERBS
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#define IBVERBS_FILE	"libibverbs.so.1"
#define PORTS_MAX	16
#define GIDS_MAX	1024
/* Irrelevant events that one call reads at most. */
#define SKIP_MAX	128

struct ibwatch {
	struct lnx_netwatch base;
	struct lnx_ibcalls ib;
	struct ibv_context *ctx;
	uint8_t port;			/* 0: all */
	int broken;			/* negative errno: no more events */
	char name[LNX_NETWATCH_NAME_MAX];
};

static struct ibwatch *ibwatch_of(struct lnx_netwatch *w)
{
	return lnx_container_of(w, struct ibwatch, base);
}

/* ---- events ---- */

/* 1: relevant; 0: not for us. */
static int translate(struct ibwatch *w, const struct ibv_async_event *from,
		     struct lnx_net_event *ev)
{
	bool on_port = false;

	memset(ev, 0, sizeof(*ev));
	switch (from->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		ev->what = LNX_NET_GONE;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		ev->what = LNX_NET_LINK;
		ev->up = from->event_type == IBV_EVENT_PORT_ACTIVE;
		on_port = true;
		break;
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		ev->what = LNX_NET_LOST;
		on_port = true;
		break;
	default:
		return 0;
	}
	if (on_port && w->port && from->element.port_num != w->port)
		return 0;
	if (ev->what == LNX_NET_LOST)
		return 1;
	ev->port = on_port ? (uint8_t)from->element.port_num : 0;
	memcpy(ev->name, w->name, sizeof(ev->name));
	return 1;
}

static int ib_next(struct lnx_netwatch *base, struct lnx_net_event *ev)
{
	struct ibwatch *w = ibwatch_of(base);
	struct ibv_async_event event;
	unsigned i;
	int ret;

	if (w->broken)
		return w->broken;
	for (i = 0; i < SKIP_MAX; i++) {
		if (w->ib.get_async_event(w->ctx, &event)) {
			if (errno == EAGAIN || errno == EINTR)
				return 0;
			/* The device was removed. */
			w->broken = -ENODEV;
			memset(ev, 0, sizeof(*ev));
			ev->what = LNX_NET_GONE;
			memcpy(ev->name, w->name, sizeof(ev->name));
			return 1;
		}
		ret = translate(w, &event, ev);
		/* Closing the device waits for this. */
		w->ib.ack_async_event(&event);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- questions ---- */

/* IPv4 addresses are written as IPv6 there. */
static bool gid_is(const union ibv_gid *gid, const struct lnx_net_addr *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (addr->family == AF_INET6)
		return !memcmp(gid->raw, addr->bytes, 16);
	return !memcmp(gid->raw, mapped, sizeof(mapped)) &&
	       !memcmp(gid->raw + sizeof(mapped), addr->bytes, 4);
}

static bool port_has(struct ibwatch *w, uint8_t port,
		     const struct lnx_net_addr *addr)
{
	union ibv_gid gid;
	int i;

	/*
	 * The table ends at the first index without an answer; empty entries are zero.
	 */
	for (i = 0; i < GIDS_MAX; i++) {
		if (w->ib.query_gid(w->ctx, port, i, &gid))
			return false;
		if (gid_is(&gid, addr))
			return true;
	}
	return false;
}

static int ib_look(struct lnx_netwatch *base, uint32_t ifindex,
		   const char *name, const void *addr, size_t addrlen,
		   struct lnx_net_state *now)
{
	struct ibwatch *w = ibwatch_of(base);
	struct lnx_net_addr a = lnx_netmsg_addr_of(addr, addrlen, NULL);
	uint8_t first = w->port ? w->port : 1;
	uint8_t last = w->port ? w->port : PORTS_MAX, port;
	/*
	 * The function of the library that fits all versions fills only the first
	 * members.
	 */
	struct ibv_port_attr attr = { 0 };
	struct lnx_net_state s = { 0 };

	if (w->broken || ifindex || (name && strcmp(name, w->name)))
		return -ENODEV;
	for (port = first; port <= last; port++) {
		if (w->ib.query_port(w->ctx, port, (void *)&attr))
			break;
		s.up |= attr.state == IBV_PORT_ACTIVE;
		s.has_addr |= a.family && port_has(w, port, &a);
	}
	if (port == first)
		return -ENODEV;
	if (!name && a.family && !s.has_addr)
		return -ENODEV;
	memcpy(s.name, w->name, sizeof(s.name));
	*now = s;
	return 0;
}

/* ---- open, close ---- */

static void ib_close(struct lnx_netwatch *base)
{
	struct ibwatch *w = ibwatch_of(base);

	if (w->ctx)
		w->ib.close_device(w->ctx);
	/*
	 * The library stays loaded: providers that it has loaded do not survive
	 * unloading, and the core that uses the device has it open anyway.
	 */
	free(w);
}

static const struct lnx_netwatch_ops ib_ops = {
	.next = ib_next,
	.look = ib_look,
	.close = ib_close,
};

static int open_device(struct ibwatch *w, const char *name)
{
	struct ibv_device **list;
	int i, n = 0, ret = -ENODEV;

	errno = 0;
	list = w->ib.get_device_list(&n);
	if (!list)
		return errno ? -errno : -ENODEV;
	for (i = 0; i < n; i++) {
		if (strcmp(w->ib.get_device_name(list[i]), name))
			continue;
		errno = 0;
		w->ctx = w->ib.open_device(list[i]);
		ret = w->ctx ? 0 : errno ? -errno : -EIO;
		break;
	}
	w->ib.free_device_list(list);
	return ret;
}

int lnx_ibwatch_open_with(const struct lnx_ibcalls *calls, const char *device,
			  uint8_t port, struct lnx_netwatch **out)
{
	struct ibwatch *w;
	int ret, flags;

	if (strlen(device) >= LNX_NETWATCH_NAME_MAX)
		return -ENODEV;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->base.ops = &ib_ops;
	w->ib = *calls;
	w->port = port;
	strcpy(w->name, device);
	ret = open_device(w, device);
	if (!ret) {
		w->base.fd = w->ctx->async_fd;
		flags = fcntl(w->base.fd, F_GETFL);
		if (flags < 0 ||
		    fcntl(w->base.fd, F_SETFL, flags | O_NONBLOCK) ||
		    fcntl(w->base.fd, F_SETFD, FD_CLOEXEC))
			ret = -errno;
	}
	if (ret) {
		ib_close(&w->base);
		return ret;
	}
	*out = &w->base;
	return 0;
}

int lnx_ibwatch_open(const char *device, uint8_t port,
		     struct lnx_netwatch **w)
{
	char path[64 + LNX_NETWATCH_NAME_MAX];
	struct lnx_ibcalls ib;
	int ret;

	/* Without such a device there is no need to load the library. */
	if (!*device || strchr(device, '/') ||
	    strlen(device) >= LNX_NETWATCH_NAME_MAX)
		return -ENODEV;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", device);
	if (access(path, F_OK))
		return -ENODEV;
	ib.file = dlopen(IBVERBS_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!ib.file)
		return -ENOSYS;
#define CALL(name) \
	ib.name = (__typeof__(&ibv_##name))dlsym(ib.file, "ibv_" #name); \
	if (!ib.name) \
		goto missing;
	LNX_IBCALLS(CALL)
#undef CALL
	ret = lnx_ibwatch_open_with(&ib, device, port, w);
	if (ret)
		dlclose(ib.file);
	return ret;
missing:
	dlclose(ib.file);
	return -ENOSYS;
}

#else
int lnx_ibwatch_open(const char *device, uint8_t port, struct lnx_netwatch **w)
{
	(void)device, (void)port, (void)w;
	return -ENOSYS;
}
#endif
