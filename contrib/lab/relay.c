/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holds frames of one rail of a simulated node: delays and stalls, where the
 * kernel has no netem.  "lab fault" starts it in the hub and ends it.
 *
 * relay PORT TAP BRIDGE CONFIG
 *
 * Takes PORT out of BRIDGE and puts TAP there instead, a device of its own; all
 * frames of the rail then pass this process:
 *
 *	node <- rail <- PORT <= packet socket = relay = TAP <= BRIDGE	"in"
 *	node -> rail -> PORT => packet socket = relay = TAP => BRIDGE	"out"
 *
 * Segmented packets of 64 KB stay as they are, with the header that describes
 * them, so that a rail of 1 Gbit/s costs 2000 frames/s and not 85000.
 *
 * CONFIG has a line for each direction, read at the start and after SIGHUP:
 *
 *	in|out DELAY STALL PERIOD SERIAL RATE
 *
 * DELAY (us) is added to each frame.  For STALL (ms) no frame leaves; those held
 * follow after it, in order.  With PERIOD (ms) that happens once in each, else
 * once; STALL "-" has no end.  Stalls begin anew when SERIAL differs from that
 * before.  Held frames leave at RATE (bytes/s, 0: at once), as from the queue of
 * a NIC; otherwise the queue behind would drop most of them.
 *
 * SIGTERM: what is held leaves at once, PORT is in BRIDGE again.  After SIGKILL
 * TAP is gone, and "lab fault ... restore" puts PORT back.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define FRAME_MAX	(80 << 10)	/* segmented packet with its headers */
#define HELD_MAX	(256u << 20)	/* bytes in a direction; then frames are lost */
#define RCVBUF		(64 << 20)
#define TXQLEN		10000
#define BATCH		64		/* frames of a direction between polls */
#define BURST_NS	2000000		/* that may leave faster than RATE */
#define NEVER		UINT64_MAX

struct frame {
	struct frame *next;
	uint64_t at_ns;			/* when it came */
	size_t len;
	unsigned char data[];
};

struct dir {
	const char *name;
	int from, to;
	struct frame *first, **last;
	size_t held;			/* bytes */
	uint64_t delay_ns, stall_ns, period_ns, t0_ns, serial;
	double ns_per_byte;		/* of RATE */
	uint64_t free_ns;		/* when the next may leave, by RATE */
	bool full;			/* "to" takes no more: wait for POLLOUT */
	uint64_t passed, lost;		/* frames */
};

static struct dir in = { .name = "in" }, out = { .name = "out" };
static const char *port, *tap, *bridge, *config;
static int ctl = -1;			/* for ioctls */
static volatile sig_atomic_t ending, reread;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "relay: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, ": %s\n", strerror(err));
	va_end(ap);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void on_signal(int sig)
{
	if (sig == SIGHUP)
		reread = 1;
	else
		ending = 1;
}

/* ---- devices ---- */

static struct ifreq named(const char *name)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	if (strlen(name) >= sizeof(ifr.ifr_name)) {
		errno = ENAMETOOLONG;
		die("%s", name);
	}
	strcpy(ifr.ifr_name, name);
	return ifr;
}

static int index_of(const char *name)
{
	struct ifreq ifr = named(name);

	if (ioctl(ctl, SIOCGIFINDEX, &ifr))
		die("%s", name);
	return ifr.ifr_ifindex;
}

static int open_tap(void)
{
	struct ifreq ifr = named(tap), mtu = named(port), up = named(tap);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int len = sizeof(struct virtio_net_hdr);

	if (fd < 0)
		die("/dev/net/tun");
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(fd, TUNSETIFF, &ifr) ||
	    ioctl(fd, TUNSETVNETHDRSZ, &len) ||
	    ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 |
				     TUN_F_TSO_ECN))
		die("%s", tap);
	if (ioctl(ctl, SIOCGIFMTU, &mtu))
		die("%s", port);
	ifr = named(tap);
	ifr.ifr_mtu = mtu.ifr_mtu;
	if (ioctl(ctl, SIOCSIFMTU, &ifr))
		die("%s: MTU", tap);
	ifr.ifr_qlen = TXQLEN;
	if (ioctl(ctl, SIOCSIFTXQLEN, &ifr))
		die("%s: length of the queue", tap);
	if (ioctl(ctl, SIOCGIFFLAGS, &up))
		die("%s", tap);
	up.ifr_flags |= IFF_UP;
	if (ioctl(ctl, SIOCSIFFLAGS, &up))
		die("%s", tap);
	return fd;
}

static int open_port(void)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = index_of(port),
	};
	/* No protocol yet: otherwise frames of all interfaces would come. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, size = RCVBUF;

	if (fd < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
		       sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    bind(fd, (struct sockaddr *)&to, sizeof(to)))
		die("packet socket on %s", port);
	return fd;
}

static int bridge_port(const char *name, bool add)
{
	struct ifreq ifr = named(bridge);

	ifr.ifr_ifindex = index_of(name);
	return ioctl(ctl, add ? SIOCBRADDIF : SIOCBRDELIF, &ifr);
}

/*
 * The frames that come meanwhile are in the socket: nothing is lost, and some
 * of them are also forwarded by the bridge, once.
 */
static void into_the_path(void)
{
	if (bridge_port(tap, true))
		die("%s cannot be in %s", tap, bridge);
	/* It may be out because of another fault. */
	if (bridge_port(port, false) && errno != EINVAL)
		die("%s cannot leave %s", port, bridge);
}

static void out_of_the_path(void)
{
	bridge_port(tap, false);
	bridge_port(port, true);
}

/* ---- configuration ---- */

static void read_config(void)
{
	char line[256], name[8], stall[32];
	unsigned long long delay, period, serial, rate, ms;
	FILE *f = fopen(config, "re");
	struct dir *d;
	char *end;

	if (!f)
		die("%s", config);
	while (fgets(line, sizeof(line), f)) {
		errno = EINVAL;
		if (sscanf(line, "%7s %llu %31s %llu %llu %llu", name, &delay,
			   stall, &period, &serial, &rate) != 6)
			die("%s: %s", config, line);
		d = !strcmp(name, "in") ? &in : &out;
		ms = strtoull(stall, &end, 10);
		if (strcmp(name, d->name) || (*end && strcmp(stall, "-")))
			die("%s: %s", config, line);
		d->delay_ns = delay * 1000;
		d->stall_ns = *end ? NEVER : ms * 1000000;
		d->period_ns = period * 1000000;
		d->ns_per_byte = rate ? 1e9 / (double)rate : 0;
		if (d->serial != serial)
			d->t0_ns = now_ns();
		d->serial = serial;
	}
	fclose(f);
}

/* ---- frames ---- */

/* 0, or when the stall ends in which a direction is. */
static uint64_t stalled_until(const struct dir *d, uint64_t now)
{
	uint64_t t = now - d->t0_ns, start = d->t0_ns;

	if (d->stall_ns == NEVER)
		return NEVER;
	if (d->period_ns) {
		start += t - t % d->period_ns;
		t %= d->period_ns;
	}
	return t < d->stall_ns ? start + d->stall_ns : 0;
}

/* When the first frame may leave: not after "now", or later. */
static uint64_t due_ns(const struct dir *d, uint64_t now)
{
	uint64_t due, end;

	if (!d->first)
		return NEVER;
	if (ending)
		return now;
	due = d->first->at_ns + d->delay_ns;
	if (d->free_ns > due)
		due = d->free_ns;
	end = stalled_until(d, now);
	return end > due ? end : due;
}

static void hold(struct dir *d, uint64_t now, const unsigned char *data,
		 size_t len)
{
	struct frame *f = NULL;

	if (d->held + len <= HELD_MAX)
		f = malloc(sizeof(*f) + len);
	if (!f) {
		d->lost++;
		return;
	}
	f->next = NULL;
	f->at_ns = now;
	f->len = len;
	memcpy(f->data, data, len);
	*d->last = f;
	d->last = &f->next;
	d->held += len;
}

static void take(struct dir *d, uint64_t now)
{
	static unsigned char buf[FRAME_MAX];
	struct virtio_net_hdr *h = (struct virtio_net_hdr *)buf;
	ssize_t len;
	int n;

	for (n = 0; n < BATCH; n++) {
		len = read(d->from, buf, sizeof(buf));
		/* Also ENETDOWN: another fault has pulled the cable. */
		if (len < (ssize_t)sizeof(*h))
			return;
		/* What the receiver has verified is no order for a sender. */
		h->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
		hold(d, now, buf, (size_t)len);
	}
}

/* The time on the wire of a frame, added to what went before. */
static void meter(struct dir *d, uint64_t now, size_t len)
{
	if (d->free_ns + BURST_NS < now)
		d->free_ns = now - BURST_NS;
	/* A bit more, so that nothing is held because of rounding. */
	d->free_ns += (uint64_t)((double)len * d->ns_per_byte / 1.05);
}

static void give(struct dir *d, uint64_t now)
{
	struct frame *f;
	int n;

	d->full = false;
	for (n = 0; n < BATCH && due_ns(d, now) <= now; n++) {
		f = d->first;
		if (write(d->to, f->data, f->len) >= 0) {
			d->passed++;
		} else if (errno == EAGAIN) {
			d->full = true;
			return;
		} else if (errno != EINTR) {
			/* The queue behind is full, or there is no carrier. */
			d->lost++;
		} else {
			continue;
		}
		meter(d, now, f->len);
		d->first = f->next;
		if (!d->first)
			d->last = &d->first;
		d->held -= f->len;
		free(f);
	}
}

/* Until both directions wait for a frame, for time or for room. */
static void wait_for_more(const sigset_t *during)
{
	struct pollfd p[2] = {
		{ .fd = in.from, .events = POLLIN },
		{ .fd = out.from, .events = POLLIN },
	};
	uint64_t now = now_ns(), due = NEVER;
	struct dir *d[2] = { &in, &out };
	struct timespec ts = { 0 };
	int i;

	for (i = 0; i < 2; i++) {
		/* Written to where the other direction reads from. */
		if (d[i]->full)
			p[!i].events |= POLLOUT;
		else if (due_ns(d[i], now) < due)
			due = due_ns(d[i], now);
	}
	if (due != NEVER && due > now) {
		ts.tv_sec = (time_t)((due - now) / 1000000000);
		ts.tv_nsec = (long)((due - now) % 1000000000);
	}
	ppoll(p, 2, due == NEVER ? NULL : &ts, during);
	/* An error is shown until it is read. */
	for (i = 0; i < 2; i++)
		if (p[i].revents & POLLERR)
			usleep(1000);
}

static void run(const sigset_t *during)
{
	struct dir *d[2] = { &in, &out };
	uint64_t now;
	int i;

	while (!ending) {
		if (reread) {
			reread = 0;
			read_config();
		}
		wait_for_more(during);
		for (i = 0; i < 2; i++) {
			now = now_ns();
			take(d[i], now);
			give(d[i], now);
		}
	}
}

/* What is held goes first, so that the order stays. */
static void finish(void)
{
	struct dir *d[2] = { &in, &out };
	uint64_t end = now_ns() + 1000000000;
	int i;

	for (i = 0; i < 2; i++)
		take(d[i], now_ns());
	while ((in.first || out.first) && now_ns() < end) {
		for (i = 0; i < 2; i++)
			give(d[i], now_ns());
		if (in.full || out.full)
			usleep(100);
	}
	out_of_the_path();
	for (i = 0; i < 2; i++)
		printf("%s: %" PRIu64 " frames passed, %" PRIu64 " lost\n",
		       d[i]->name, d[i]->passed, d[i]->lost);
}

/* Delays must be right also when programs that poll use all CPUs. */
static void be_on_time(void)
{
	struct sched_param p = { .sched_priority = 1 };

	prctl(PR_SET_TIMERSLACK, 1000UL);
	if (sched_setscheduler(0, SCHED_RR, &p) && nice(-10) == -1)
		fprintf(stderr, "relay: no priority, delays may be longer\n");
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t set, during;

	if (argc != 5) {
		fprintf(stderr, "usage: relay PORT TAP BRIDGE CONFIG\n"
				"\"lab fault\" calls it; see relay.c\n");
		return 2;
	}
	port = argv[1];
	tap = argv[2];
	bridge = argv[3];
	config = argv[4];
	/* Signals come only while we wait, so that none is missed. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &during);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	/* Memory that was used stays: page faults would cost more than the copy. */
	mallopt(M_TRIM_THRESHOLD, HELD_MAX);
	ctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ctl < 0)
		die("socket");
	in.last = &in.first;
	out.last = &out.first;
	read_config();
	in.from = out.to = open_tap();
	out.from = in.to = open_port();
	be_on_time();
	into_the_path();
	printf("ready\n");
	fflush(stdout);
	run(&during);
	finish();
	return 0;
}
