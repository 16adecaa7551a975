/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lnxrtd: relays frames of lnx between fabrics.  One thread, which sleeps in epoll while
 * nothing is to be done.  The work is in relay.c, libfabric in port.c.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/out.h"
#include "lnxrtd/lnxrtd.h"
#include "tune.h"

#define SKIPPED_BYTES	(1u << 16)	/* of text about routes that are passed over */
#define BUSY_PASSES	64u		/* while it is busy, signals and links count after so many */

/* Else the number of a port. */
enum { WOKEN_BY_SIGNAL = RTD_RAILS, WOKEN_BY_LINK, WOKEN_BY_ADMIN, WOKEN_BY };

struct program {
	const char *file;
	bool check, loopback;
	struct rtd_conf conf;
	struct lnx_routes routes;
	struct rtd_ports ports;
	struct rtd_links links;
	struct rtd_silent silent;
	struct rtd_admin *admin;	/* NULL: the configuration names no socket */
	int epoll, signals;
	bool ending, unclean;
	struct rtd_reads reads;		/* of the ports */
	bool signalled;			/* signals have come */
	bool relinked;			/* something has changed about links */
	bool asked;			/* lnxctl wants something */
	bool changed;			/* since the state was written */
	uint64_t state_ns;		/* when it was written last */
	int state_err;			/* what was said of that */
};

static int usage(void)
{
	fprintf(stderr, "usage: lnxrtd [-c FILE] [-t] [--loopback]\n"
		"  -c FILE     configuration; else " RTD_CONF "\n"
		"  -t          check the configuration and exit\n"
		"  --loopback  forward to this host as well: for tests on one node\n");
	return 2;
}

static int fail(const char *why)
{
	fprintf(stderr, "lnxrtd: %s\n", why);
	return 1;
}

/* ---- set-up ---- */

/* As endpoints do, before libfabric reads it.  Without tcp;ofi_rxm it would change nothing. */
static void tune(const struct rtd_conf *c)
{
	unsigned i;

	for (i = 0; i < c->nport; i++) {
		if (strcmp(c->port[i].prov, lnx_addr_prov_name(LNX_PROV_TCP_RXM)))
			continue;
		lnx_tune_cores();
		lnx_tune_rxm();
	}
}

static int open_ports(struct program *m, char why[RTD_WHY])
{
	struct rtd_conf *c = &m->conf;
	unsigned i;

	for (i = 0; i < c->nport; i++) {
		if (rtd_port_open(&m->ports.port[i], &c->port[i], &c->config->nets, why))
			return -1;
		m->ports.n++;
	}
	return 0;
}

/* The routes of a node with these rails.  The file may be that of a cluster: those that are for
 * other nodes are named, and passed over. */
static int read_routes(struct program *m, const struct lnx_nid *rail, unsigned n,
		       char why[RTD_WHY])
{
	struct lnx_route_host host = { .rail = rail, .n = n };
	char text[SKIPPED_BYTES] = "", *line, *rest = text;
	struct lnx_out skipped = { .buf = text, .size = sizeof(text) };
	struct lnx_refusal r;

	lnx_routes_init(&m->routes, m->conf.settings.id);
	if (lnx_config_routes(m->conf.config, NULL, &m->routes, &host, &skipped, &r)) {
		snprintf(why, RTD_WHY, "%.500s", r.why);
		return -1;
	}
	while ((line = strsep(&rest, "\n")))
		if (*line)
			fprintf(stderr, "lnxrtd: passed over, route %s\n", line);
	if (skipped.n >= sizeof(text))
		fprintf(stderr, "lnxrtd: and more routes\n");
	return 0;
}

static int open_routes(struct program *m, char why[RTD_WHY])
{
	struct lnx_nid rail[RTD_RAILS];
	unsigned i;

	for (i = 0; i < m->ports.n; i++)
		rail[i] = rtd_port_rail(m->ports.port[i])->nid;
	return read_routes(m, rail, m->ports.n, why);
}

/* All that can be found out without opening anything. */
static int check(struct program *m, char why[RTD_WHY])
{
	const struct rtd_conf *c = &m->conf;
	struct lnx_nid rail[RTD_RAILS];
	unsigned i;

	for (i = 0; i < c->nport; i++)
		if (rtd_port_look(&c->port[i], &c->config->nets, &rail[i], why))
			return -1;
	return read_routes(m, rail, c->nport, why);
}

static int start_relay(struct program *m, char why[RTD_WHY])
{
	struct rtd_ops ops = rtd_port_ops;
	struct rtd_relay *r;
	unsigned i;

	m->conf.settings.loopback = m->loopback;
	ops.arg = &m->ports;
	rtd_own_read(&m->ports.own);
	r = rtd_relay_create(&m->conf.settings, &ops, &m->conf.config->nets, &m->routes);
	m->ports.relay = r;
	if (!r || (m->conf.enable && rtd_relay_start(r, lnx_clock_ns()))) {
		snprintf(why, RTD_WHY, "memory is short for the buffers: %u, %u and %u",
			 m->conf.settings.count[RTD_TINY],
			 m->conf.settings.count[RTD_SMALL],
			 m->conf.settings.count[RTD_LARGE]);
		return -1;
	}
	for (i = 0; i < m->ports.n; i++) {
		int rail = rtd_relay_add_rail(r, rtd_port_rail(m->ports.port[i]));

		rtd_port_bind(m->ports.port[i], r, (unsigned)rail);
		rtd_port_fill(m->ports.port[i]);
	}
	return 0;
}

/* Wake up for that descriptor, if it is one. */
static int wake_for(const struct program *m, int fd, uint32_t what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = what };

	return fd < 0 ? 0 : epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int watch(struct program *m, char why[RTD_WHY])
{
	sigset_t set;
	unsigned i;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	m->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	rtd_links_open(&m->links);
	if (m->conf.control_file[0] && rtd_admin_open(&m->admin, m->conf.control_file, why))
		return -1;
	if (m->signals < 0 || m->epoll < 0 || wake_for(m, m->signals, WOKEN_BY_SIGNAL) ||
	    wake_for(m, rtd_links_fd(&m->links), WOKEN_BY_LINK) ||
	    wake_for(m, rtd_admin_fd(m->admin), WOKEN_BY_ADMIN))
		goto failed;
	for (i = 0; i < m->ports.n; i++)
		if (wake_for(m, rtd_port_fd(m->ports.port[i]), i))
			goto failed;
	return 0;
failed:
	snprintf(why, RTD_WHY, "epoll: %s", strerror(errno));
	return -1;
}

/* ---- while it runs ---- */

static void write_state(struct program *m, uint64_t now)
{
	int ret;

	m->state_ns = now;
	m->changed = false;
	ret = m->conf.state_file[0] ?
	      rtd_state_write(m->ports.relay, m->conf.state_file, now) : 0;
	if (ret && ret != m->state_err)
		fprintf(stderr, "lnxrtd: routing.state: %s: %s\n", m->conf.state_file,
			strerror(-ret));
	m->state_err = ret;
}

/* What can change without opening rails again: settings, and whether it forwards. */
static void reload(struct program *m, uint64_t now)
{
	struct rtd_conf new;
	char why[RTD_WHY];

	if (rtd_conf_read(&new, m->file, why)) {
		fail(why);
		return;
	}
	new.settings.id = m->conf.settings.id;
	new.settings.secret = m->conf.settings.secret;
	new.settings.key = m->conf.settings.key;
	new.settings.loopback = m->loopback;
	if (rtd_relay_set(m->ports.relay, &new.settings)) {
		fail("memory is short for the buffers: they stay as they were");
		memcpy(new.settings.count, rtd_relay_settings(m->ports.relay)->count,
		       sizeof(new.settings.count));
		/* What is allowed counts nevertheless. */
		rtd_relay_set(m->ports.relay, &new.settings);
	}
	if (new.enable && rtd_relay_start(m->ports.relay, now))
		fail("routing stops at present: it is not switched on");
	if (!new.enable)
		rtd_relay_stop(m->ports.relay, now);
	rtd_conf_free(&new);
}

static void take_signals(struct program *m, uint64_t now)
{
	struct signalfd_siginfo s;

	while (read(m->signals, &s, sizeof(s)) == sizeof(s)) {
		switch (s.ssi_signo) {
		case SIGHUP:
			reload(m, now);
			break;
		case SIGUSR1:
			write_state(m, now);
			break;
		default:
			/* The second one does not wait. */
			m->unclean = m->ending;
			m->ending = true;
			rtd_relay_stop(m->ports.relay, now);
		}
	}
}

/* It ends now.  Nothing may begin again then. */
static bool over(const struct program *m)
{
	return m->unclean || (m->ending && rtd_relay_state(m->ports.relay) == RTD_OFF);
}

/* What woke it, but for ports. */
static void attend(struct program *m, uint64_t now)
{
	if (m->signalled)
		take_signals(m, now);
	if (m->relinked)
		rtd_links_look(&m->links, &m->ports, now);
	m->changed |= m->relinked;
	if (m->asked && !over(m))
		m->changed |= rtd_admin_run(m->admin, m->ports.relay, now);
	m->signalled = m->relinked = m->asked = false;
}

static int wait_ms(const struct program *m, uint64_t next, uint64_t now, bool asking)
{
	uint64_t ms = next == UINT64_MAX ? RTD_WAIT_MAX_MS :
		      lnx_ms_up(lnx_ns_since(next, now));
	unsigned i;

	for (i = 0; i < m->ports.n; i++) {
		if (asking || rtd_port_fd(m->ports.port[i]) < 0)
			ms = LNX_MIN(ms, (uint64_t)RTD_POLL_MS);
		else if (rtd_port_rail(m->ports.port[i])->addr.prov != LNX_PROV_TCP)
			ms = LNX_MIN(ms, (uint64_t)RTD_CONNECT_LOOK_MS);
	}
	return (int)LNX_MIN(ms, (uint64_t)RTD_WAIT_MAX_MS);
}

static unsigned read_port(void *arg, unsigned i, unsigned *frames)
{
	struct program *m = arg;

	return rtd_port_poll(m->ports.port[i], frames);
}

/* May one sleep?  Not while a port has something. */
static bool quiet(struct program *m)
{
	bool all = true;
	unsigned i;

	for (i = 0; i < m->ports.n; i++) {
		m->reads.ready[i] = m->reads.ready[i] || !rtd_port_quiet(m->ports.port[i]);
		all &= !m->reads.ready[i];
	}
	return all;
}

/* Sleep until something comes, or ms are over. */
static void sleep_ms(struct program *m, int ms)
{
	struct epoll_event e[WOKEN_BY];
	int i, n = epoll_wait(m->epoll, e, WOKEN_BY, ms);

	for (i = 0; i < n; i++) {
		if (e[i].data.u32 == WOKEN_BY_SIGNAL)
			m->signalled = true;
		else if (e[i].data.u32 == WOKEN_BY_LINK)
			m->relinked = true;
		else if (e[i].data.u32 == WOKEN_BY_ADMIN)
			m->asked = true;
		else
			m->reads.ready[e[i].data.u32] = true;
	}
	/* Cores without a descriptor, and those that do something at times. */
	for (i = 0; i < (int)m->ports.n; i++)
		m->reads.ready[i] |= n <= 0 || rtd_port_fd(m->ports.port[i]) < 0;
}

/* Sleep for so long, whatever comes. */
static void nap(struct program *m, uint64_t ns)
{
	struct timespec t = { .tv_nsec = (long)ns };

	nanosleep(&t, NULL);
	memset(m->reads.ready, true, sizeof(m->reads.ready));
}

/* Each source and each destination takes descriptors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void run(struct program *m)
{
	unsigned passes = 0;

	m->signalled = m->relinked = true;
	memset(m->reads.ready, true, sizeof(m->reads.ready));
	while (!over(m)) {
		unsigned i, n = rtd_reads_pass(&m->reads, m->ports.n, read_port, m), asking = 0;
		uint64_t now = lnx_clock_ns(), next = rtd_relay_run(m->ports.relay, now), nap_ns;

		if (over(m))
			break;
		for (i = 0; i < m->ports.n; i++) {
			rtd_port_fill(m->ports.port[i]);
			asking += rtd_port_asking(m->ports.port[i], now);
		}
		next = LNX_MIN(next, rtd_silent_look(&m->silent, &m->ports, now));
		m->changed |= n || !m->state_ns;
		if (m->changed && lnx_ns_since(now, m->state_ns) >= RTD_STATE_NS)
			write_state(m, now);
		if (m->changed)
			next = LNX_MIN(next, m->state_ns + RTD_STATE_NS);
		if (m->signalled || m->relinked || m->asked)
			attend(m, now);
		else if (++passes % BUSY_PASSES == 0)
			sleep_ms(m, 0);
		else if (quiet(m) && next > now) {
			nap_ns = rtd_relay_nap(m->ports.relay, now);
			if (nap_ns)
				nap(m, LNX_MIN(nap_ns, next - now));
			else
				sleep_ms(m, wait_ms(m, next, now, asking));
		}
	}
}

static void finish(struct program *m)
{
	unsigned i;

	for (i = 0; i < m->ports.n; i++)
		rtd_port_stop(m->ports.port[i]);
	rtd_relay_destroy(m->ports.relay);
	for (i = 0; i < m->ports.n; i++)
		rtd_port_close(m->ports.port[i]);
	rtd_own_free(&m->ports.own);
	rtd_silent_close(&m->silent);
	lnx_routes_fini(&m->routes);
	rtd_links_close(&m->links);
	rtd_admin_close(m->admin);
	rtd_conf_free(&m->conf);
	if (m->epoll > 0)
		close(m->epoll);
	if (m->signals > 0)
		close(m->signals);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "loopback", no_argument, NULL, 'l' }, { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct program m = { .file = RTD_CONF };
	char why[RTD_WHY];
	int opt;

	while ((opt = getopt_long(argc, argv, "c:th", options, NULL)) != -1) {
		if (opt == 'c')
			m.file = optarg;
		else if (opt == 't')
			m.check = true;
		else if (opt == 'l')
			m.loopback = true;
		else
			return usage();
	}
	if (optind < argc)
		return usage();
	if (rtd_conf_read(&m.conf, m.file, why))
		return fail(why);
	tune(&m.conf);
	raise_limit();
	prctl(PR_SET_TIMERSLACK, RTD_STREAM_SLACK_NS);
	if (m.check ? check(&m, why) :
	    open_ports(&m, why) || open_routes(&m, why) || start_relay(&m, why) ||
	    watch(&m, why)) {
		finish(&m);
		return fail(why);
	}
	if (m.check) {
		finish(&m);
		return 0;
	}
	run(&m);
	write_state(&m, lnx_clock_ns());
	finish(&m);
	return m.unclean;
}
