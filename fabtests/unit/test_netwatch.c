/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watches without privileges: what the kernel reports of lo, scripted events,
 * and a scripted RDMA device.  sensors.c has real faults.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/ibwatch.h"
#include "fake_watch.h"

static bool readable(const struct lnx_netwatch *w)
{
	struct pollfd p = { lnx_netwatch_fd(w), POLLIN, 0 };

	return poll(&p, 1, 0) == 1;
}

static struct sockaddr_in ipv4(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	cr_assert_eq(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

/* ---- the kernel's events ---- */

Test(netwatch, lo)
{
	struct sockaddr_in a = ipv4("127.0.0.1"), b = ipv4("192.0.2.1");
	unsigned index = if_nametoindex("lo");
	struct lnx_net_state s;
	struct lnx_netwatch *w;

	if (!index)
		cr_skip_test("there is no interface lo");
	cr_assert_eq(lnx_netwatch_open(&w), 0);
	cr_assert_geq(lnx_netwatch_fd(w), 0);
	cr_assert(fcntl(lnx_netwatch_fd(w), F_GETFD) & FD_CLOEXEC);
	cr_assert(fcntl(lnx_netwatch_fd(w), F_GETFL) & O_NONBLOCK);
	cr_assert_eq(lnx_netwatch_look(w, index, NULL, NULL, 0, &s), 0);
	cr_assert_str_eq(s.name, "lo");
	cr_assert_eq(s.ifindex, index);
	cr_assert_not(s.has_addr);
	cr_assert_eq(lnx_netwatch_look(w, 0, "lo", &b, sizeof(b), &s), 0);
	cr_assert_eq(s.ifindex, index);
	cr_assert_not(s.has_addr);
	if (s.up) {
		cr_assert_eq(lnx_netwatch_look(w, 0, NULL, &a, sizeof(a), &s),
			     0);
		cr_assert_eq(s.ifindex, index);
		cr_assert(s.has_addr);
	}
	cr_assert_eq(lnx_netwatch_look(w, 0, NULL, &b, sizeof(b), &s), -ENODEV);
	lnx_netwatch_close(w);
	lnx_netwatch_close(NULL);
}

Test(netwatch, no_descriptor_left)
{
	struct lnx_netwatch *w = NULL;
	int fd, last = -1;

	while ((fd = dup(0)) >= 0)
		last = fd;
	cr_assert_eq(lnx_netwatch_open(&w), -EMFILE);
	/* One descriptor is not enough. */
	close(last);
	cr_assert_eq(lnx_netwatch_open(&w), -EMFILE);
	cr_assert_null(w);
	cr_assert_eq(dup(0), last, "a descriptor was kept");
}

/* ---- scripted events ---- */

Test(netwatch, script)
{
	struct sockaddr_in a = ipv4("10.1.2.3");
	struct lnx_netwatch *w = fake_watch_open();
	struct lnx_net_addr addr = lnx_netmsg_addr_of(&a, sizeof(a), NULL);
	struct lnx_net_event ev;
	struct lnx_net_state s;

	cr_assert_not(readable(w));
	cr_assert_eq(lnx_netwatch_next(w, &ev), 0);
	fake_watch_link(w, 3, "eth0", true);
	fake_watch_addr(w, 3, &a, sizeof(a), true);
	cr_assert(readable(w));
	cr_assert_eq(lnx_netwatch_look(w, 0, NULL, &a, sizeof(a), &s), 0);
	cr_assert(s.up && s.has_addr && s.ifindex == 3);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert(ev.what == LNX_NET_LINK && ev.up && ev.ifindex == 3);
	cr_assert_str_eq(ev.name, "eth0");
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert(ev.what == LNX_NET_ADDR && ev.up);
	cr_assert(lnx_netmsg_addr_equal(&ev.addr, &addr));
	cr_assert_not(readable(w));
	/* A change without an event. */
	fake_watch_quiet(w, true);
	fake_watch_link(w, 3, "eth1", false);
	fake_watch_addr(w, 3, &a, sizeof(a), false);
	fake_watch_quiet(w, false);
	fake_watch_lost(w);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_LOST);
	cr_assert_eq(lnx_netwatch_look(w, 3, NULL, &a, sizeof(a), &s), 0);
	cr_assert(!s.up && !s.has_addr);
	cr_assert_str_eq(s.name, "eth1");
	fake_watch_gone(w, 3);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_GONE);
	cr_assert_eq(lnx_netwatch_look(w, 3, NULL, NULL, 0, &s), -ENODEV);
	fake_watch_break(w, -EIO);
	cr_assert_eq(lnx_netwatch_next(w, &ev), -EIO);
	lnx_netwatch_close(w);
}

/* ---- a scripted RDMA device ---- */

#ifdef HAVE_IBVERBS

#undef ibv_get_device_list

#define PORTS	2
#define GIDS	3

static struct {
	struct ibv_device device[2];
	struct ibv_device *list[3];
	struct ibv_context ctx;
	int pipe[2];			/* enum ibv_event_type, port */
	int opened, lists, acks;
	bool fails;
	enum ibv_port_state state[PORTS + 1];
	union ibv_gid gid[PORTS + 1][GIDS];
} ib;

static struct ibv_device **list_devices(int *n)
{
	ib.list[0] = &ib.device[0];
	ib.list[1] = &ib.device[1];
	ib.lists++;
	*n = 2;
	return ib.list;
}

static void free_list(struct ibv_device **list)
{
	cr_assert_eq(list, ib.list);
	ib.lists--;
}

static const char *name_of(struct ibv_device *d)
{
	return d->name;
}

static struct ibv_context *open_it(struct ibv_device *d)
{
	cr_assert_eq(d, &ib.device[1]);
	if (ib.fails) {
		errno = EACCES;
		return NULL;
	}
	cr_assert_eq(pipe(ib.pipe), 0);
	ib.ctx.async_fd = ib.pipe[0];
	ib.opened++;
	return &ib.ctx;
}

static int close_it(struct ibv_context *ctx)
{
	cr_assert_eq(ctx, &ib.ctx);
	cr_assert_eq(ib.acks, 0, "%d events not acknowledged", ib.acks);
	close(ib.pipe[0]);
	close(ib.pipe[1]);
	ib.opened--;
	return 0;
}

static int get_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	int from[2];
	ssize_t n = read(ctx->async_fd, from, sizeof(from));

	if (n != sizeof(from)) {
		if (!n)
			errno = EIO;
		return -1;
	}
	memset(ev, 0, sizeof(*ev));
	ev->event_type = (enum ibv_event_type)from[0];
	ev->element.port_num = from[1];
	ib.acks++;
	return 0;
}

static void ack(struct ibv_async_event *ev)
{
	(void)ev;
	ib.acks--;
}

static int query_port(struct ibv_context *ctx, uint8_t port,
		      struct _compat_ibv_port_attr *attr)
{
	(void)ctx;
	if (port < 1 || port > PORTS)
		return EINVAL;
	((struct ibv_port_attr *)attr)->state = ib.state[port];
	return 0;
}

static int query_gid(struct ibv_context *ctx, uint8_t port, int i,
		     union ibv_gid *gid)
{
	(void)ctx;
	if (i >= GIDS)
		return EINVAL;
	*gid = ib.gid[port][i];
	return 0;
}

static const struct lnx_ibcalls calls = {
	.get_device_list = list_devices, .free_device_list = free_list,
	.get_device_name = name_of, .open_device = open_it,
	.close_device = close_it, .get_async_event = get_event,
	.ack_async_event = ack, .query_port = query_port,
	.query_gid = query_gid,
};

static void happens(int type, int port)
{
	int event[2] = { type, port };

	cr_assert_eq(write(ib.pipe[1], event, sizeof(event)), sizeof(event));
}

static struct lnx_netwatch *device(uint8_t port)
{
	struct lnx_netwatch *w;
	int ret;

	strcpy(ib.device[0].name, "mlx5_0");
	strcpy(ib.device[1].name, "mlx5_1");
	ret = lnx_ibwatch_open_with(&calls, "mlx5_1", port, &w);
	cr_assert_eq(ret, 0, "%d", ret);
	cr_assert_eq(ib.lists, 0);
	return w;
}

Test(ibwatch, ports)
{
	struct lnx_netwatch *w = device(0);
	struct lnx_net_event ev;

	cr_assert_eq(lnx_netwatch_fd(w), ib.pipe[0]);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 0);
	happens(IBV_EVENT_PORT_ERR, 2);
	cr_assert(readable(w));
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert(ev.what == LNX_NET_LINK && !ev.up && ev.port == 2);
	cr_assert_eq(ev.ifindex, 0);
	cr_assert_str_eq(ev.name, "mlx5_1");
	happens(IBV_EVENT_PORT_ACTIVE, 2);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert(ev.what == LNX_NET_LINK && ev.up && ev.port == 2);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 0);
	lnx_netwatch_close(w);
	cr_assert_eq(ib.opened, 0);
}

Test(ibwatch, one_port)
{
	struct lnx_netwatch *w = device(1);
	struct lnx_net_event ev;

	happens(IBV_EVENT_PORT_ERR, 2);
	happens(IBV_EVENT_GID_CHANGE, 2);
	happens(IBV_EVENT_PORT_ERR, 1);
	happens(IBV_EVENT_GID_CHANGE, 1);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert(ev.what == LNX_NET_LINK && ev.port == 1);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_LOST);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 0);
	lnx_netwatch_close(w);
}

Test(ibwatch, fatal)
{
	struct lnx_netwatch *w = device(1);
	struct lnx_net_event ev;

	happens(IBV_EVENT_DEVICE_FATAL, 0);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert(ev.what == LNX_NET_GONE && !ev.up);
	cr_assert_str_eq(ev.name, "mlx5_1");
	lnx_netwatch_close(w);
}

Test(ibwatch, pulled_out)
{
	struct lnx_netwatch *w = device(1);
	struct lnx_net_event ev;
	struct lnx_net_state s;

	close(ib.pipe[1]);
	cr_assert_eq(lnx_netwatch_next(w, &ev), 1);
	cr_assert_eq(ev.what, LNX_NET_GONE);
	cr_assert_eq(lnx_netwatch_next(w, &ev), -ENODEV);
	cr_assert_eq(lnx_netwatch_look(w, 0, NULL, NULL, 0, &s), -ENODEV);
	lnx_netwatch_close(w);
}

Test(ibwatch, what_is_not_for_us)
{
	static const int types[] = {
		IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL, IBV_EVENT_COMM_EST,
		IBV_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER, 9999,
	};
	struct lnx_netwatch *w = device(0);
	struct lnx_net_event ev;
	unsigned i;

	for (i = 0; i < 1400; i++)
		happens(types[i % 7], 1);
	happens(IBV_EVENT_PORT_ERR, 1);
	/* A flood needs several calls. */
	for (i = 0; !lnx_netwatch_next(w, &ev); i++)
		cr_assert_lt(i, 1400);
	cr_assert_gt(i, 1);
	cr_assert(ev.what == LNX_NET_LINK && !ev.up);
	lnx_netwatch_close(w);
}

Test(ibwatch, look)
{
	struct sockaddr_in a = ipv4("10.0.0.2"), b = ipv4("10.0.0.3");
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
	struct lnx_netwatch *w = device(0), *second;
	struct lnx_net_state s;

	inet_pton(AF_INET6, "::ffff:10.0.0.2", ib.gid[2][1].raw);
	inet_pton(AF_INET6, "fe80::5", ib.gid[2][2].raw);
	inet_pton(AF_INET6, "fe80::5", &a6.sin6_addr);
	ib.state[1] = IBV_PORT_DOWN;
	ib.state[2] = IBV_PORT_ACTIVE;
	cr_assert_eq(lnx_netwatch_look(w, 0, "mlx5_1", &a, sizeof(a), &s), 0);
	cr_assert(s.up && s.has_addr && !s.ifindex);
	cr_assert_str_eq(s.name, "mlx5_1");
	cr_assert_eq(lnx_netwatch_look(w, 0, NULL, &a6, sizeof(a6), &s), 0);
	cr_assert(s.has_addr);
	cr_assert_eq(lnx_netwatch_look(w, 0, "mlx5_1", &b, sizeof(b), &s), 0);
	cr_assert_not(s.has_addr);
	cr_assert_eq(lnx_netwatch_look(w, 0, NULL, &b, sizeof(b), &s), -ENODEV);
	cr_assert_eq(lnx_netwatch_look(w, 0, "mlx5_0", NULL, 0, &s), -ENODEV);
	cr_assert_eq(lnx_netwatch_look(w, 7, NULL, NULL, 0, &s), -ENODEV);
	ib.state[2] = IBV_PORT_INIT;
	cr_assert_eq(lnx_netwatch_look(w, 0, NULL, NULL, 0, &s), 0);
	cr_assert_not(s.up);
	lnx_netwatch_close(w);
	ib.state[2] = IBV_PORT_ACTIVE;
	second = device(1);
	cr_assert_eq(lnx_netwatch_look(second, 0, NULL, NULL, 0, &s), 0);
	cr_assert_not(s.up, "the other port is up");
	lnx_netwatch_close(second);
	second = device(3);
	cr_assert_eq(lnx_netwatch_look(second, 0, NULL, NULL, 0, &s), -ENODEV);
	lnx_netwatch_close(second);
}

Test(ibwatch, not_there)
{
	struct lnx_netwatch *w = NULL;
	char name[200];

	lnx_netwatch_close(device(0));
	cr_assert_eq(lnx_ibwatch_open_with(&calls, "mlx5_9", 0, &w), -ENODEV);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_assert_eq(lnx_ibwatch_open_with(&calls, name, 0, &w), -ENODEV);
	ib.fails = true;
	cr_assert_eq(lnx_ibwatch_open_with(&calls, "mlx5_1", 0, &w), -EACCES);
	cr_assert_eq(ib.opened, 0);
	cr_assert_eq(ib.lists, 0);
	cr_assert_null(w);
}
#endif

/* The real library, and a device that does not exist. */
Test(ibwatch, of_this_machine)
{
	struct lnx_netwatch *w = NULL;
	int ret = lnx_ibwatch_open("no such device", 1, &w);

	cr_assert_lt(ret, 0);
	cr_assert_null(w);
}
