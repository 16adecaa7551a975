/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the sensors report of real faults, in network namespaces of our own:
 * "here", which this process enters, and "there", with a child in it.  Both
 * vanish when the two processes have ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "os/netwatch.h"
#include "os/ping.h"

/* No test depends on it: it only ends what hangs. */
#define HANG_NS		(30 * LNX_NS_PER_S)
#define BACKLOG		8

static int failures;
static pid_t there;
static int to_there = -1, from_there = -1;

#define CHECK(cond, ...) do { \
	if (!(cond)) { \
		printf("  %s:%d: %s: ", __FILE__, __LINE__, #cond); \
		printf("" __VA_ARGS__); \
		putchar('\n'); \
		failures++; \
	} \
} while (0)

/* ---- commands here and there ---- */

__attribute__((format(printf, 2, 0)))
static int vsh(const char *prefix, const char *fmt, va_list ap)
{
	char text[1024], all[1200];

	vsnprintf(text, sizeof(text), fmt, ap);
	snprintf(all, sizeof(all), "%s%s", prefix, text);
	return system(all);
}

/* A command that must work. */
__attribute__((format(printf, 1, 2)))
static void sh(const char *fmt, ...)
{
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = vsh("", fmt, ap);
	va_end(ap);
	CHECK(ret == 0, "%s: status %d", fmt, ret);
}

__attribute__((format(printf, 1, 2)))
static void sh_there(const char *fmt, ...)
{
	char prefix[64];
	va_list ap;
	int ret;

	snprintf(prefix, sizeof(prefix), "nsenter -t %d -n ", (int)there);
	va_start(ap, fmt);
	ret = vsh(prefix, fmt, ap);
	va_end(ap);
	CHECK(ret == 0, "%s: status %d", fmt, ret);
}

/* A command that may fail, for features that some kernels lack. */
static bool try_sh(const char *cmd)
{
	char text[512];

	snprintf(text, sizeof(text), "%s 2>/dev/null", cmd);
	return system(text) == 0;
}

/*
 * The child: listens on request and does nothing else.  "l" opens a listener on
 * any address and answers with its port, "c" closes it, "a" accepts the waiting
 * connections and answers with their number.
 */
static void live_there(int in, int out)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(any);
	int fd = -1, c, n;
	char cmd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET))
		_exit(1);
	n = 0;
	if (write(out, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	while (read(in, &cmd, 1) == 1) {
		n = -1;
		if (cmd == 'l') {
			any.sin6_port = 0;
			fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
			if (fd >= 0 &&
			    !bind(fd, (struct sockaddr *)&any, sizeof(any)) &&
			    !listen(fd, BACKLOG) &&
			    !getsockname(fd, (struct sockaddr *)&any, &len))
				n = ntohs(any.sin6_port);
		} else if (cmd == 'c') {
			n = close(fd);
		} else if (cmd == 'a') {
			n = 0;
			while ((c = accept(fd, NULL, NULL)) >= 0) {
				close(c);
				n++;
			}
		}
		if (write(out, &n, sizeof(n)) != sizeof(n))
			break;
	}
	_exit(0);
}

static int tell_there(char cmd)
{
	int n = -1;

	if (write(to_there, &cmd, 1) != 1 ||
	    read(from_there, &n, sizeof(n)) != sizeof(n))
		n = -1;
	CHECK(n >= 0, "the other side does not answer to '%c'", cmd);
	return n;
}

static int start_there(void)
{
	int in[2], out[2], n = -1;

	if (pipe(in) || pipe(out))
		return -errno;
	fflush(stdout);
	there = fork();
	if (!there) {
		close(in[1]);
		close(out[0]);
		live_there(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	to_there = in[1];
	from_there = out[0];
	return read(from_there, &n, sizeof(n)) == sizeof(n) ? n : -1;
}

static void stop_there(void)
{
	if (there <= 0)
		return;
	kill(there, SIGKILL);
	waitpid(there, NULL, 0);
	there = 0;
}

/* ---- watching ---- */

static unsigned index_of(const char *name)
{
	unsigned i = if_nametoindex(name);

	CHECK(i, "no interface %s", name);
	return i;
}

static bool is_it(const struct lnx_net_event *ev, int what, uint32_t ifindex,
		  int up)
{
	return ev->what == what && ev->ifindex == ifindex &&
	       (up < 0 || ev->up == (up != 0));
}

/* Wait for this event and ignore others before it.  up < 0: either. */
static bool expect(struct lnx_netwatch *w, int what, uint32_t ifindex, int up,
		   struct lnx_net_event *ev)
{
	uint64_t end = lnx_clock_ns() + HANG_NS;
	struct pollfd p = { lnx_netwatch_fd(w), POLLIN, 0 };
	int ret;

	do {
		while ((ret = lnx_netwatch_next(w, ev)) == 1)
			if (is_it(ev, what, ifindex, up))
				return true;
		CHECK(ret == 0, "next: %d", ret);
		if (ret)
			return false;
		poll(&p, 1, 100);
	} while (lnx_clock_ns() < end);
	CHECK(false, "no event %d of %u, up %d", what, ifindex, up);
	return false;
}

/* Read all events that are there now; returns how many were of that kind. */
static unsigned drain(struct lnx_netwatch *w, int what, uint32_t ifindex)
{
	struct lnx_net_event ev;
	unsigned n = 0;
	int ret;

	while ((ret = lnx_netwatch_next(w, &ev)) == 1)
		n += is_it(&ev, what, ifindex, -1);
	CHECK(ret == 0, "next: %d", ret);
	return n;
}

/* Wait for a state, because the kernel takes some time. */
static bool becomes(struct lnx_netwatch *w, uint32_t ifindex, bool up)
{
	uint64_t end = lnx_clock_ns() + HANG_NS;
	struct lnx_net_state s;

	do {
		if (!lnx_netwatch_look(w, ifindex, NULL, NULL, 0, &s) &&
		    s.up == up)
			return true;
		usleep(1000);
	} while (lnx_clock_ns() < end);
	return false;
}

static struct sockaddr_in v4(const char *text, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_port = htons((uint16_t)port);
	CHECK(inet_pton(AF_INET, text, &a.sin_addr) == 1, "%s", text);
	return a;
}

static struct sockaddr_in6 v6(const char *text, int port, unsigned scope)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_scope_id = scope };

	a.sin6_port = htons((uint16_t)port);
	CHECK(inet_pton(AF_INET6, text, &a.sin6_addr) == 1, "%s", text);
	return a;
}

/* An interface without a partner.  Not all kernels have all kinds. */
static bool add_alone(const char *name)
{
	static const char *const kinds[] = { "dummy", "ifb", "bridge" };
	char cmd[128];
	unsigned i;

	for (i = 0; i < 3; i++) {
		snprintf(cmd, sizeof(cmd), "ip link add %s type %s", name,
			 kinds[i]);
		if (try_sh(cmd))
			return true;
	}
	return false;
}

/* ---- cases: links and addresses ---- */

static struct lnx_netwatch *open_watch(void)
{
	struct lnx_netwatch *w = NULL;
	int ret = lnx_netwatch_open(&w);

	CHECK(!ret, "open: %s", strerror(-ret));
	return w;
}

static void link_down_and_up(void)
{
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_event ev;
	struct lnx_net_state s;
	unsigned i;

	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	expect(w, LNX_NET_LINK, i, 0, &ev);
	sh("ip link set vb up");
	sh("ip link set va up");
	expect(w, LNX_NET_LINK, i, 1, &ev);
	CHECK(!strcmp(ev.name, "va"), "'%s'", ev.name);
	CHECK(becomes(w, i, true), "look");

	/* First the interface itself, then its partner: the carrier is lost. */
	sh("ip link set va down");
	expect(w, LNX_NET_LINK, i, 0, &ev);
	CHECK(becomes(w, i, false), "look");
	sh("ip link set va up");
	expect(w, LNX_NET_LINK, i, 1, &ev);
	sh("ip link set vb down");
	expect(w, LNX_NET_LINK, i, 0, &ev);
	CHECK(becomes(w, i, false), "look");
	sh("ip link set vb up");
	expect(w, LNX_NET_LINK, i, 1, &ev);

	/* By name, and things that do not exist. */
	CHECK(!lnx_netwatch_look(w, 0, "va", NULL, 0, &s) && s.ifindex == i &&
	      !strcmp(s.name, "va") && !s.has_addr, "index %u", s.ifindex);
	CHECK(lnx_netwatch_look(w, 0, "vz", NULL, 0, &s) == -ENODEV, "vz");
	CHECK(lnx_netwatch_look(w, 0, "", NULL, 0, &s) == -ENODEV, "''");
	CHECK(lnx_netwatch_look(w, 0, "much-too-long-a-name", NULL, 0, &s) ==
	      -ENODEV, "long name");
	CHECK(lnx_netwatch_look(w, 9999, NULL, NULL, 0, &s) == -ENODEV, "9999");
	CHECK(lnx_netwatch_look(w, UINT32_MAX, NULL, NULL, 0, &s) == -ENODEV,
	      "all ones");
	CHECK(lnx_netwatch_look(w, 0, NULL, NULL, 0, &s) == -ENODEV, "nothing");
	sh("ip link del va");
	lnx_netwatch_close(w);
}

static void alone(void)
{
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_event ev;
	unsigned i;

	if (!add_alone("du")) {
		printf("  no kind of interface without a partner: left out\n");
		lnx_netwatch_close(w);
		return;
	}
	i = index_of("du");
	sh("ip link set du up");
	/* A bridge without ports has no carrier: then only "down" is reported. */
	expect(w, LNX_NET_LINK, i, -1, &ev);
	sh("ip link set du down");
	expect(w, LNX_NET_LINK, i, 0, &ev);
	sh("ip link del du");
	expect(w, LNX_NET_GONE, i, 0, &ev);
	lnx_netwatch_close(w);
}

static void addresses(void)
{
	struct sockaddr_in a = v4("10.99.0.1", 7), b = v4("10.99.0.2", 0);
	struct sockaddr_in6 a6 = v6("fd99::1", 7, 0);
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_addr want;
	struct lnx_net_event ev;
	struct lnx_net_state s;
	unsigned i;

	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("ip link set va up; ip link set vb up");
	sh("ip addr add 10.99.0.1/24 dev va");
	want = lnx_netmsg_addr_of(&a, sizeof(a), NULL);
	expect(w, LNX_NET_ADDR, i, 1, &ev);
	CHECK(lnx_netmsg_addr_equal(&ev.addr, &want) || ev.addr.family == AF_INET6,
	      "family %u", ev.addr.family);
	CHECK(!lnx_netwatch_look(w, i, NULL, &a, sizeof(a), &s) && s.has_addr,
	      "has it");
	CHECK(!lnx_netwatch_look(w, i, NULL, &b, sizeof(b), &s) && !s.has_addr,
	      "has not");
	CHECK(!lnx_netwatch_look(w, 0, NULL, &a, sizeof(a), &s) &&
	      s.ifindex == i && s.has_addr, "by address");
	CHECK(lnx_netwatch_look(w, 0, NULL, &b, sizeof(b), &s) == -ENODEV,
	      "by an address that no interface has");
	sh("ip addr del 10.99.0.1/24 dev va");
	do
		if (!expect(w, LNX_NET_ADDR, i, 0, &ev))
			break;
	while (!lnx_netmsg_addr_equal(&ev.addr, &want));
	CHECK(!lnx_netwatch_look(w, i, NULL, &a, sizeof(a), &s) && !s.has_addr,
	      "the address is removed");

	/* IPv6: usable only after duplicate address detection. */
	want = lnx_netmsg_addr_of(&a6, sizeof(a6), NULL);
	sh("ip -6 addr add fd99::1/64 dev va");
	do
		if (!expect(w, LNX_NET_ADDR, i, 1, &ev))
			break;
	while (!lnx_netmsg_addr_equal(&ev.addr, &want));
	CHECK(!lnx_netwatch_look(w, i, NULL, &a6, sizeof(a6), &s) && s.has_addr,
	      "IPv6");
	a6.sin6_scope_id = i + 1;
	CHECK(!lnx_netwatch_look(w, i, NULL, &a6, sizeof(a6), &s) &&
	      !s.has_addr, "another scope");
	sh("ip -6 addr del fd99::1/64 dev va");
	do
		if (!expect(w, LNX_NET_ADDR, i, 0, &ev))
			break;
	while (!lnx_netmsg_addr_equal(&ev.addr, &want));

	/* On a point-to-point link with two addresses, only our own counts. */
	sh("ip addr add 10.99.0.1 peer 10.99.0.2 dev va");
	CHECK(!lnx_netwatch_look(w, i, NULL, &a, sizeof(a), &s) && s.has_addr,
	      "ours");
	CHECK(!lnx_netwatch_look(w, i, NULL, &b, sizeof(b), &s) && !s.has_addr,
	      "the peer's");
	sh("ip link del va");
	lnx_netwatch_close(w);
}

/* More addresses than one answer of the kernel holds. */
static void many_addresses(void)
{
	struct sockaddr_in a = v4("10.98.3.200", 0), b = v4("10.98.9.1", 0);
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_state s;
	unsigned i;

	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("for i in 0 1 2 3; do for k in $(seq 1 200); do "
	   "echo addr add 10.98.$i.$k/16 dev va; done; done | ip -batch -");
	CHECK(!lnx_netwatch_look(w, i, NULL, &a, sizeof(a), &s) && s.has_addr,
	      "the last");
	CHECK(!lnx_netwatch_look(w, i, NULL, &b, sizeof(b), &s) && !s.has_addr,
	      "none");
	CHECK(!lnx_netwatch_look(w, 0, NULL, &a, sizeof(a), &s) &&
	      s.ifindex == i, "by address");
	sh("ip link del va");
	lnx_netwatch_close(w);
}

static void removed_and_renamed(void)
{
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_event ev;
	struct lnx_net_state s;
	unsigned i;

	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("ip link set va name vc");
	do
		if (!expect(w, LNX_NET_LINK, i, -1, &ev))
			break;
	while (strcmp(ev.name, "vc"));
	CHECK(lnx_netwatch_look(w, 0, "va", NULL, 0, &s) == -ENODEV, "va");
	CHECK(!lnx_netwatch_look(w, i, NULL, NULL, 0, &s) &&
	      !strcmp(s.name, "vc"), "%s", s.name);
	sh("ip link del vc");
	expect(w, LNX_NET_GONE, i, 0, &ev);
	CHECK(lnx_netwatch_look(w, i, NULL, NULL, 0, &s) == -ENODEV, "gone");

	/* It still exists, but not in this namespace. */
	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("ip link set va netns %d", (int)there);
	expect(w, LNX_NET_GONE, i, 0, &ev);
	sh("ip link del vb");
	lnx_netwatch_close(w);
}

/* A bridge reports a port that it loses with the message for a removed link. */
static void port_of_a_bridge(void)
{
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_event ev;
	unsigned i;

	if (!try_sh("ip link add name brg type bridge")) {
		printf("  no bridges here: left out\n");
		lnx_netwatch_close(w);
		return;
	}
	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("ip link set va up; ip link set vb up");
	sh("ip link set va master brg");
	sh("ip link set va nomaster");
	sh("ip link set va mtu 1400");
	CHECK(drain(w, LNX_NET_GONE, i) == 0, "taken for removed");
	sh("ip link del va");
	expect(w, LNX_NET_GONE, i, 0, &ev);
	sh("ip link del brg");
	lnx_netwatch_close(w);
}

static void flaps(void)
{
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_event ev;
	struct lnx_net_state s;
	unsigned i, n[LNX_NET_LOST + 1] = { 0 };
	int small = 4096, ret;

	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("ip link set vb up");
	drain(w, 0, 0);
	setsockopt(lnx_netwatch_fd(w), SOL_SOCKET, SO_RCVBUF, &small,
		   sizeof(small));
	sh("for i in $(seq 1000); do echo link set va up; "
	   "echo link set va down; done | ip -batch -");
	while ((ret = lnx_netwatch_next(w, &ev)) == 1)
		n[ev.what]++;
	CHECK(ret == 0, "next: %d", ret);
	CHECK(n[LNX_NET_LOST] >= 1, "nothing was lost: %u events",
	      n[LNX_NET_LINK]);
	CHECK(n[LNX_NET_LINK] < 2000, "%u events", n[LNX_NET_LINK]);
	CHECK(!lnx_netwatch_look(w, i, NULL, NULL, 0, &s) && !s.up, "look");
	/* The watch still works. */
	sh("ip link set va up");
	expect(w, LNX_NET_LINK, i, 1, &ev);

	/* A watcher that lags still sees the last state, whatever events it misses. */
	lnx_netwatch_close(w);
	w = open_watch();
	sh("for i in $(seq 1000); do echo link set va down; "
	   "echo link set va up; done | ip -batch - & wait");
	drain(w, 0, 0);
	CHECK(becomes(w, i, true), "look");
	sh("ip link del va");
	lnx_netwatch_close(w);
}

/* Only messages from the kernel are trusted, though root can write to our socket. */
static void not_the_kernel(void)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg m;
	} forged = {
		.h = { .nlmsg_len = sizeof(forged),
		       .nlmsg_type = RTM_DELLINK },
		.m = { .ifi_index = 4711 },
	};
	struct lnx_netwatch *w = open_watch();
	struct sockaddr_nl to = { 0 };
	socklen_t len = sizeof(to);
	struct lnx_net_event ev;
	unsigned i, n;
	int fd;

	getsockname(lnx_netwatch_fd(w), (struct sockaddr *)&to, &len);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	for (i = n = 0; i < 1000; i++)
		n += sendto(fd, &forged, sizeof(forged), MSG_DONTWAIT,
			    (struct sockaddr *)&to, len) == sizeof(forged);
	if (!n)
		printf("  the kernel delivers no such message: %s\n",
		       strerror(errno));
	/* So many that reading them takes several calls, none of which returns
	 * an event. */
	for (i = 0; i <= n / 100; i++)
		CHECK(lnx_netwatch_next(w, &ev) != 1 || ev.what == LNX_NET_LOST,
		      "trusted");
	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	expect(w, LNX_NET_LINK, i, 0, &ev);
	sh("ip link del va");
	close(fd);
	lnx_netwatch_close(w);
}

static void stays_in_its_name_space(void)
{
	struct lnx_netwatch *w = open_watch();
	struct lnx_net_event ev;
	struct lnx_net_state s;
	int status;
	unsigned i;
	pid_t pid;

	sh("ip link add name va type veth peer name vb");
	i = index_of("va");
	sh("ip link set vb up");
	drain(w, 0, 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failures = 0;
		/* In another namespace: lookups are made in the one where the
		 * watch was opened. */
		if (unshare(CLONE_NEWNET))
			_exit(2);
		CHECK(!lnx_netwatch_look(w, 0, "va", NULL, 0, &s) &&
		      s.ifindex == i, "look from elsewhere");
		system("ip link add name vx type veth peer name vy");
		CHECK(lnx_netwatch_look(w, 0, "vx", NULL, 0, &s) == -ENODEV,
		      "sees elsewhere");
		CHECK(lnx_netwatch_next(w, &ev) == 0, "event of elsewhere");
		fflush(stdout);
		_exit(failures ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(!status, "status %x", status);
	sh("ip link set va up");
	expect(w, LNX_NET_LINK, i, 1, &ev);
	sh("ip link del va");
	lnx_netwatch_close(w);
}

/* ---- cases: pings ---- */

static enum lnx_ping_result answer_within(struct lnx_ping *p, uint64_t ns)
{
	uint64_t end = lnx_clock_ns() + ns;
	enum lnx_ping_result r;
	struct pollfd pfd;

	while ((r = lnx_ping_check(p)) == LNX_PING_WAITING &&
	       lnx_clock_ns() < end) {
		pfd = (struct pollfd){ p->fd, POLLOUT, 0 };
		poll(&pfd, 1, 1);
	}
	return r;
}

static enum lnx_ping_result ping(const void *src, size_t srclen,
				 const void *dst, size_t dstlen,
				 const char *device, int *err)
{
	struct lnx_ping p = { 0 };
	enum lnx_ping_result r;

	lnx_ping_start(&p, src, srclen, dst, dstlen, device);
	r = answer_within(&p, HANG_NS);
	if (err)
		*err = p.err;
	lnx_ping_stop(&p);
	return r;
}

static const char *name_of(enum lnx_ping_result r)
{
	static const char *const name[] = {
		[LNX_PING_UNKNOWN] = "unknown", [LNX_PING_WAITING] = "waiting",
		[LNX_PING_ALIVE] = "alive", [LNX_PING_REFUSED] = "refused",
		[LNX_PING_BROKEN] = "broken",
	};

	return (unsigned)r < LNX_ARRAY_SIZE(name) ? name[r] : "?";
}

#define EXPECT(r, want, ...) do { \
	enum lnx_ping_result r_ = (r); \
	CHECK(r_ == (want), __VA_ARGS__); \
	if (r_ != (want)) \
		printf("    it is %s\n", name_of(r_)); \
} while (0)

static void wire_up(void)
{
	sh("ip link add name va type veth peer name vb");
	sh("ip link set vb netns %d", (int)there);
	sh("ip addr add 10.97.0.1/24 dev va; ip link set va up");
	sh("ip addr add 10.97.0.3/24 dev va");
	sh("ip -6 addr add fd97::1/64 dev va nodad; ip link set lo up");
	sh_there("sh -c 'ip addr add 10.97.0.2/24 dev vb; ip link set vb up; "
		 "ip -6 addr add fd97::2/64 dev vb nodad; ip link set lo up'");
}

static void wire_down(void)
{
	sh("ip link del va");
}

static void alive_and_refused(void)
{
	struct sockaddr_in src = v4("10.97.0.1", 999), dst;
	struct sockaddr_in6 src6 = v6("fd97::1", 0, 0), dst6;
	struct lnx_ping p = { 0 };
	int port, err, i;

	wire_up();
	port = tell_there('l');
	dst = v4("10.97.0.2", port);
	dst6 = v6("fd97::2", port, 0);
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
	       LNX_PING_ALIVE, "%s", strerror(err));
	EXPECT(ping(NULL, 0, &dst, sizeof(dst), NULL, &err),
	       LNX_PING_ALIVE, "any source: %s", strerror(err));
	EXPECT(ping(&src6, sizeof(src6), &dst6, sizeof(dst6), NULL, &err),
	       LNX_PING_ALIVE, "IPv6: %s", strerror(err));

	/* By a device; by another one, where nothing answers; without one. */
	lnx_ping_start(&p, &src, sizeof(src), &dst, sizeof(dst), "va");
	EXPECT(answer_within(&p, HANG_NS), LNX_PING_ALIVE, "by va");
	CHECK(p.on_device, "permission missing?");
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), "nosuch", &err),
	       LNX_PING_BROKEN, "by nosuch");
	CHECK(err == ENODEV, "%s", strerror(err));

	/* The listener's queue contained only pings that were slow. */
	tell_there('a');
	for (i = 0; i < 20 * BACKLOG; i++)
		EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
		       LNX_PING_ALIVE, "ping %d: %s", i, strerror(err));
	i = tell_there('a');
	CHECK(i < BACKLOG, "%d of %d pings were connections", i, 20 * BACKLOG);

	/* A stopped process answers as well: its kernel does. */
	kill(there, SIGSTOP);
	for (i = 0; i < 20 * BACKLOG; i++)
		EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
		       LNX_PING_ALIVE, "stopped, ping %d: %s", i, strerror(err));
	kill(there, SIGCONT);

	tell_there('c');
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
	       LNX_PING_REFUSED, "%s", strerror(err));
	EXPECT(ping(&src6, sizeof(src6), &dst6, sizeof(dst6), NULL, &err),
	       LNX_PING_REFUSED, "IPv6: %s", strerror(err));
	wire_down();
}

static void link_local(void)
{
	unsigned i;
	struct sockaddr_in6 src, dst;
	int port, err;

	wire_up();
	i = index_of("va");
	sh("ip -6 addr add fe80::97:1/64 dev va nodad");
	sh_there("ip -6 addr add fe80::97:2/64 dev vb nodad");
	port = tell_there('l');
	src = v6("fe80::97:1", 0, i);
	dst = v6("fe80::97:2", port, i);
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
	       LNX_PING_ALIVE, "%s", strerror(err));
	dst.sin6_scope_id = 0;
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
	       LNX_PING_UNKNOWN, "no scope: %s", strerror(err));
	tell_there('c');
	wire_down();
}

static void broken(void)
{
	static const struct {
		const char *route;
		int err;
	} routes[] = {
		{ "unreachable", EHOSTUNREACH }, { "prohibit", EACCES },
		{ "blackhole", EINVAL }, { "throw", ENETUNREACH },
	};
	struct sockaddr_in src = v4("10.97.0.1", 0), dst = v4("10.96.0.2", 9);
	struct sockaddr_in other = v4("10.95.0.1", 0), near;
	unsigned i;
	int err;

	wire_up();
	near = v4("10.97.0.2", tell_there('l'));
	for (i = 0; i < 4; i++) {
		sh("ip route add %s 10.96.0.0/16", routes[i].route);
		EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
		       LNX_PING_BROKEN, "%s", routes[i].route);
		CHECK(err == routes[i].err, "%s: %s", routes[i].route,
		      strerror(err));
		sh("ip route del %s 10.96.0.0/16", routes[i].route);
	}
	/* An address that is not ours, or no longer. */
	EXPECT(ping(&other, sizeof(other), &near, sizeof(near), NULL, &err),
	       LNX_PING_BROKEN, "%s", strerror(err));
	CHECK(err == EADDRNOTAVAIL, "%s", strerror(err));
	/* No host has that address: the kernel looks for it in vain. */
	sh("sysctl -qw net.ipv4.neigh.va.retrans_time_ms=20");
	dst = v4("10.97.0.77", 9);
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, &err),
	       LNX_PING_BROKEN, "%s", strerror(err));
	CHECK(err == EHOSTUNREACH, "%s", strerror(err));
	/* The link is down, and so is the route. */
	sh("ip link set va down");
	EXPECT(ping(&src, sizeof(src), &near, sizeof(near), NULL, &err),
	       LNX_PING_BROKEN, "%s", strerror(err));
	sh("ip link set va up");
	EXPECT(ping(&src, sizeof(src), &near, sizeof(near), NULL, &err),
	       LNX_PING_ALIVE, "up again: %s", strerror(err));
	tell_there('c');
	wire_down();
}

/* What firewalls do: nothing, reset in the host's name, or report that it is
 * forbidden. */
static void firewalls(void)
{
	static const struct {
		const char *with;
		enum lnx_ping_result want;
	} kinds[] = {
		{ "tcp reset", LNX_PING_REFUSED },
		{ "icmp type port-unreachable", LNX_PING_REFUSED },
		{ "icmp type host-unreachable", LNX_PING_BROKEN },
		{ "icmp type net-unreachable", LNX_PING_BROKEN },
		{ "icmp type admin-prohibited", LNX_PING_BROKEN },
	};
	struct sockaddr_in src = v4("10.97.0.1", 0), dst;
	struct lnx_ping p = { 0 };
	unsigned i;

	if (!try_sh("nft add table ip probe && nft delete table ip probe")) {
		printf("  no nft here: left out\n");
		return;
	}
	wire_up();
	dst = v4("10.97.0.2", tell_there('l'));
	sh_there("nft 'add table ip f; add chain ip f in { type filter hook "
		 "input priority 0; }; add rule ip f in tcp flags syn drop'");
	lnx_ping_start(&p, &src, sizeof(src), &dst, sizeof(dst), NULL);
	EXPECT(answer_within(&p, LNX_NS_PER_S / 2), LNX_PING_WAITING,
	       "dropped: %s", strerror(p.err));
	/* It passes when the kernel repeats the packet. */
	sh_there("nft flush chain ip f in");
	EXPECT(answer_within(&p, HANG_NS), LNX_PING_ALIVE, "%s",
	       strerror(p.err));
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		sh_there("nft 'flush chain ip f in; add rule ip f in tcp flags "
			 "syn reject with %s'", kinds[i].with);
		EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), NULL, NULL),
		       kinds[i].want, "reject with %s", kinds[i].with);
	}
	sh_there("nft delete table ip f");
	tell_there('c');
	wire_down();
}

/* Two links, one of them dead: the device decides which one is used. */
static void two_wires(void)
{
	struct sockaddr_in src, dst, self;
	struct lnx_ping p = { 0 };
	int port;

	wire_up();
	sh("ip link add name vc type veth peer name vd");
	sh("ip link set vd netns %d", (int)there);
	sh("ip addr add 10.94.0.1/24 dev vc; ip link set vc up");
	sh_there("sh -c 'ip addr add 10.94.0.2/24 dev vd; ip link set vd up'");
	port = tell_there('l');
	src = v4("10.94.0.1", 0);
	dst = v4("10.94.0.2", port);
	EXPECT(ping(&src, sizeof(src), &dst, sizeof(dst), "vc", NULL),
	       LNX_PING_ALIVE, "by vc");
	/* The host there does not answer for the other link's address on this one. */
	sh_there("sysctl -qw net.ipv4.conf.all.arp_ignore=1");
	lnx_ping_start(&p, &src, sizeof(src), &dst, sizeof(dst), "va");
	CHECK(answer_within(&p, LNX_NS_PER_S / 2) != LNX_PING_ALIVE, "by va");
	lnx_ping_stop(&p);
	/* The own host is not reached through a device. */
	self = v4("10.97.0.3", port);
	lnx_ping_start(&p, &src, sizeof(src), &self, sizeof(self), "vc");
	EXPECT(answer_within(&p, HANG_NS), LNX_PING_REFUSED, "this host");
	CHECK(!p.on_device, "this host");
	tell_there('c');
	sh("ip link del vc");
	wire_down();
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "link-down-and-up", link_down_and_up },
	{ "interface-alone", alone },
	{ "addresses", addresses },
	{ "many-addresses", many_addresses },
	{ "removed-and-renamed", removed_and_renamed },
	{ "port-of-a-bridge", port_of_a_bridge },
	{ "flaps-with-overrun", flaps },
	{ "not-the-kernel", not_the_kernel },
	{ "stays-in-its-name-space", stays_in_its_name_space },
	{ "ping-alive-and-refused", alive_and_refused },
	{ "ping-link-local", link_local },
	{ "ping-broken", broken },
	{ "ping-firewalls", firewalls },
	{ "ping-two-wires", two_wires },
};
#define NCASES	((int)(sizeof(cases) / sizeof(cases[0])))

static int skip(const char *why)
{
	printf("sensors: skipped: %s\n", why);
	return 77;
}

int main(int argc, char **argv)
{
	int i, ran = 0, bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid())
		return skip("needs root, for network name spaces");
	if (!try_sh("ip -V >/dev/null && nsenter -V >/dev/null"))
		return skip("needs ip and nsenter (iproute2, util-linux)");
	if (unshare(CLONE_NEWNET))
		return skip("no network name space may be made here");
	if (!try_sh("ip link add name va type veth peer name vb && "
		    "ip link del va"))
		return skip("this kernel has no veth");
	if (start_there())
		return skip("no second network name space");
	atexit(stop_there);
	for (i = 0; i < NCASES; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		failures = 0;
		cases[i].run();
		printf("%s: %s\n", cases[i].name, failures ? "FAILED" : "ok");
		bad += failures != 0;
		ran++;
	}
	printf("sensors: %d cases, %d failed\n", ran, bad);
	return bad || !ran;
}
