/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Foreign connections to the ports where core endpoints listen: probes of lnx
 * (os/ping.h) and less polite ones.  Thousands of them must not disturb
 * traffic, leave descriptors open or make progress slower, whether the process
 * makes progress, computes or is stopped meanwhile.  prov/lnx/PEERS.md has the
 * figures that it prints.
 */
#include "hazard.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/ping.h"

enum kind {
	PING,				/* reset before the third packet */
	FIN,				/* closed as usual */
	RST,				/* closed with a reset */
	JUNK,				/* sends some bytes, then closes */
	HELD,				/* sends nothing and stays open */
};

enum when { POLLING, DEAF, STOPPED, TRAFFIC };

#define LISTENERS_MAX	16

struct connect_counts {
	int sent, alive, refused, other;
};

static struct sockaddr_in6 listener[LISTENERS_MAX];
static int nlisteners;
static int unaccepted;			/* waiting in the queues of listeners */

/* ---- the listening sockets ---- */

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static bool is_ours(unsigned long inode)
{
	struct stat st;
	int fd;

	for (fd = 0; fd < 4096; fd++)
		if (!fstat(fd, &st) && S_ISSOCK(st.st_mode) &&
		    st.st_ino == inode)
			return true;
	return false;
}

/* Listening sockets of this process, and the connections that they have not
 * accepted. */
static void find_listeners(void)
{
	unsigned addr, port, state, queue;
	unsigned long inode;
	char line[512];
	FILE *f = fopen("/proc/self/net/tcp", "re");

	nlisteners = unaccepted = 0;
	while (f && fgets(line, sizeof(line), f) &&
	       nlisteners < LISTENERS_MAX) {
		struct sockaddr_in *in = (void *)&listener[nlisteners];

		if (sscanf(line, "%*d: %x:%x %*x:%*x %x %*x:%x %*s %*s %*d %*d %lu",
			   &addr, &port, &state, &queue, &inode) != 5 ||
		    state != 0x0a || !is_ours(inode))
			continue;
		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		in->sin_addr.s_addr = addr ? addr : htonl(INADDR_LOOPBACK);
		nlisteners++;
		unaccepted += (int)queue;
	}
	if (f)
		fclose(f);
}

/* ---- connecting, in a process of its own ---- */

static volatile sig_atomic_t told_to_stop;

static void on_term(int sig)
{
	(void)sig;
	told_to_stop = 1;
}

static int open_to(const struct sockaddr_in6 *at, struct connect_counts *k)
{
	struct timeval tv = { .tv_sec = 5 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	k->sent++;
	if (fd < 0) {
		k->other++;
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (!connect(fd, (const struct sockaddr *)at,
		     sizeof(struct sockaddr_in))) {
		k->alive++;
		return fd;
	}
	if (told_to_stop)
		k->sent--;		/* interrupted */
	else
		*(errno == ECONNREFUSED ? &k->refused : &k->other) += 1;
	close(fd);
	return -1;
}

/* Connect once to each listening socket.  Connections of HELD end with the process. */
static void try_connect_at(enum kind kind, const struct sockaddr_in6 *at,
		       struct connect_counts *k)
{
	struct linger reset = { .l_onoff = 1 };
	struct lnx_ping p = { 0 };
	char junk[128];
	int fd;

	if (kind == PING) {
		k->sent++;
		lnx_ping_start(&p, NULL, 0, at, sizeof(struct sockaddr_in),
			       NULL);
		while (lnx_ping_check(&p) == LNX_PING_WAITING) {
			struct pollfd pfd = { p.fd, POLLOUT, 0 };

			if (poll(&pfd, 1, 5000) <= 0)
				break;
		}
		*(p.result == LNX_PING_ALIVE ? &k->alive :
		  p.result == LNX_PING_REFUSED ? &k->refused : &k->other) += 1;
		lnx_ping_stop(&p);
		return;
	}
	fd = open_to(at, k);
	if (fd < 0)
		return;
	memset(junk, 0xa5, sizeof(junk));
	if (kind == HELD)
		return;
	if (kind == RST)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	else if (kind == JUNK && send(fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
		k->other++;
	close(fd);
}

struct connector {
	pid_t pid;
	int from;
};

/* Without the parent's descriptors, some of which are listening sockets. */
static int start_connector(struct connector *kn, enum kind kind, enum when when,
			 int n)
{
	struct connect_counts k = { 0 };
	int out[2], fd, i;
	pid_t parent = getpid();

	if (pipe(out))
		return -errno;
	fflush(NULL);
	kn->pid = fork();
	if (kn->pid < 0)
		return -errno;
	if (kn->pid) {
		close(out[1]);
		kn->from = out[0];
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (fd = 3; fd < 4096; fd++)
		if (fd != out[1])
			close(fd);
	signal(SIGTERM, on_term);
	if (when == STOPPED)
		kill(parent, SIGSTOP);
	for (i = 0; i < n && !told_to_stop; i++)
		for (fd = 0; fd < nlisteners; fd++)
			try_connect_at(kind, &listener[fd], &k);
	if (when == STOPPED)
		kill(parent, SIGCONT);
	while (when == TRAFFIC && !told_to_stop)
		usleep(1000);
	i = write(out[1], &k, sizeof(k)) != sizeof(k);
	_exit(i);
}

/* Wait until it has ended, with progress or without. */
static int end_connector(struct ft *ft, struct connector *kn, bool progress,
		       struct connect_counts *k)
{
	struct pollfd p = { kn->from, POLLIN, 0 };
	int status = 0;
	ssize_t n;

	while (poll(&p, 1, progress ? 0 : -1) <= 0)
		if (progress)
			ft_progress(ft);
	n = read(kn->from, k, sizeof(*k));
	close(kn->from);
	waitpid(kn->pid, &status, 0);
	kn->pid = 0;
	FT_CHECK(ft, n == sizeof(*k) && !status, "the connecting process ended with %x",
		 status);
	return FT_PASS;
}

/* ---- what must not change ---- */

/* Time in ns of a call for progress that has nothing to do: the best of some. */
static double idle_cost(struct ft *ft)
{
	double best = 1e9;
	int i, k;

	for (i = 0; i < 20; i++) {
		double t = ft_now();

		for (k = 0; k < 1000; k++)
			ft_progress(ft);
		t = (ft_now() - t) * 1e6;
		if (t < best)
			best = t;
	}
	return best;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* There and back, n times, in several sizes; every byte is checked. */
static int talk(struct ft *ft, int n, double seconds)
{
	static const size_t sizes[] = { 8, 3000, 16000, 0, 64 };
	double start = ft_now();
	int i, ends[2], go = 1;

	for (i = 0; go; i++) {
		size_t len = sizes[i % 5];
		struct ft_op *rx, *tx;

		ft->nops = 0;
		rx = post(ft, true, !ft->rank, (uint64_t)i, ins, len);
		FT_CHECK(ft, rx, "receive %d not taken", i);
		tx = put(ft, true, !ft->rank, (uint64_t)i, (uint64_t)i, len);
		FT_CHECK(ft, tx, "send %d not taken", i);
		FT_TRY(all_done(ft, &tx, 1, "sends"));
		FT_TRY(all_done(ft, &rx, 1, "receives"));
		FT_TRY(check(ft, rx, ins, len, !ft->rank, (uint64_t)i));
		go = i + 1 < n || (seconds > 0 && ft_now() < start + seconds);
		if (seconds > 0 && i % 16 == 0) {
			FT_CHECK(ft, !oob_allgather(&ft->oob, &go, ends,
						    sizeof(go)), "lost a rank");
			go = ends[0] && ends[1];
		} else if (seconds > 0) {
			go = 1;
		}
	}
	return FT_PASS;
}

/* Accepted connections are closed by progress; those in the queue must be
 * accepted first. */
static int fds_after(struct ft *ft, int before)
{
	double end = ft_now() + ft->run->timeout_s;
	int now;

	do {
		ft_linger(ft, 0.01);
		now = count_fds();
		find_listeners();
	} while ((now > before || unaccepted) && ft_now() < end);
	return now;
}

/* ---- the cases ---- */

static int set_out(struct ft *ft)
{
	int n;

	ft->spoiled = true;		/* endpoints of its own for each case */
	ft->stale_errno = 0;
	prepare(ft, SLOT);
	find_listeners();
	n = nlisteners;
	FT_CHECK(ft, !oob_bcast(&ft->oob, &n, sizeof(n)), "lost a rank");
	return n ? FT_PASS : ft_skip(ft, "no provider here listens with TCP");
}

static int how_many(const struct ft *ft, enum kind kind)
{
	if (ft->run->arg)
		return (int)ft->run->arg;
	/* ofi_rxm takes 10 ms or more to accept a connection. */
	if (kind != PING)
		return ft->run->quick ? 20 : 200;
	return ft->run->quick ? 300 : 20000;
}

static int connect_storm(struct ft *ft, const struct ft_case *c)
{
	enum kind kind = (enum kind)c->a;
	enum when when = (enum when)c->b;
	struct connector kn = { 0, -1 };
	double cost, later, cpu, seconds, drained;
	struct connect_counts k = { 0 };
	int fds, left, waiting, tries, ret;

	FT_TRY(set_out(ft));
	ft->stale_errno = (int)c->c;
	/* The core asks errno why a connection ended that only ended. */
	if (c->c)
		ft_known(ft, "tcp", "connections that end without data stay");
	FT_TRY(talk(ft, 20, 0));	/* open the connections first */
	ft_barrier(ft);
	/* At rest, sockets are looked at once in a second: not only while peers are new. */
	ft_linger(ft, c->c ? 3 : 0.05);
	fds = count_fds();
	cost = idle_cost(ft);
	cpu = cpu_seconds();
	seconds = ft_now();
	FT_CHECK(ft, !start_connector(&kn, kind, when, how_many(ft, kind)), "%s",
		 strerror(errno));
	if (when == TRAFFIC) {
		ret = talk(ft, 100, ft->run->quick ? 0.3 : 2);
		kill(kn.pid, SIGTERM);
		if (ret != FT_PASS)
			return ret;
	}
	FT_TRY(end_connector(ft, &kn, when == POLLING || when == TRAFFIC, &k));
	seconds = ft_now() - seconds;
	cpu = cpu_seconds() - cpu;
	find_listeners();
	waiting = unaccepted;
	FT_TRY(talk(ft, 100, 0));
	drained = ft_now();
	left = fds_after(ft, fds);
	drained = ft_now() - drained;
	later = idle_cost(ft);
	FT_CHECK(ft, k.sent && k.alive == k.sent,
		 "of %d connections %d were answered, %d refused", k.sent, k.alive,
		 k.refused);
	FT_CHECK(ft, kind != PING || waiting < k.sent / 10 + 1,
		 "%d of %d pings were connections", waiting, k.sent);
	FT_CHECK(ft, left <= fds && !unaccepted,
		 "%d descriptors before, %d after; %d connections not accepted",
		 fds, left, unaccepted);
	/* A process that polls more sockets for ever would take far longer,
	 * also long after it has handled what the last messages left behind. */
	for (tries = 0; tries < 20 && later >= 10 * cost; tries++) {
		ft_linger(ft, 0.05);
		later = idle_cost(ft);
	}
	FT_CHECK(ft, later < 10 * cost, "progress took %.0f ns before, %.0f "
		 "after", cost, later);
	if (!ft->rank)
		printf("# %s: %d connections in %.2f s, %.2f s of CPU; progress %.0f ns, then %.0f; %d not accepted, none %.2f s later\n",
		       c->name, k.sent, seconds, cpu, cost, later, waiting,
		       drained);
	ft_barrier(ft);
	return FT_PASS;
}

/* Peers that come while a foreign connection is open and sends nothing. */
static int newcomers(struct ft *ft, const struct ft_case *c)
{
	struct connector kn = { 0, -1 };
	struct connect_counts k;
	double seconds;
	int ret;

	FT_TRY(set_out(ft));
	ft_barrier(ft);
	FT_CHECK(ft, !start_connector(&kn, HELD, TRAFFIC, (int)c->a), "%s",
		 strerror(errno));
	ft_linger(ft, 0.2);
	seconds = ft_now();
	ret = talk(ft, 20, 0);
	seconds = ft_now() - seconds;
	kill(kn.pid, SIGTERM);
	FT_TRY(end_connector(ft, &kn, true, &k));
	if (!ft->rank)
		printf("# %s: first messages after %.3f s\n", c->name, seconds);
	return ret;
}

int main(int argc, char **argv)
{
#define CASE(name_, kind, when, slow_) \
	{ .name = name_, .fn = connect_storm, .a = kind, .b = when, .slow = slow_ }
#define CASES(name_, kind, slow_) \
	CASE(name_ "-polling", kind, POLLING, slow_), \
	CASE(name_ "-deaf", kind, DEAF, slow_), \
	CASE(name_ "-stopped", kind, STOPPED, slow_), \
	CASE(name_ "-traffic", kind, TRAFFIC, slow_)

	static const struct ft_case cases[] = {
		CASES("ping", PING, false),
		CASES("fin", FIN, false),
		CASES("rst", RST, true),
		CASES("junk", JUNK, true),
		/* What another call has left there, such as the one for another rail. */
		{ .name = "fin-stale-errno", .fn = connect_storm, .a = FIN, .b = POLLING,
		  .c = EAGAIN },
		{ .name = "newcomers", .fn = newcomers, .a = 0 },
		{ .name = "newcomers-held-1", .fn = newcomers, .a = 1 },
		{ .name = "newcomers-held-5", .fn = newcomers, .a = 5 },
	};

	/* On crowded cores reads give the core to others, which costs 1.5 us each:
	 * 50 times what progress costs. */
	setenv("FI_LNX_YIELD", "0", 0);
	return ft_main(argc, argv, "foreign connections to listening ports", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
