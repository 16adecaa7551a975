/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the descriptors of a rail's core among those of this process.  See half_open.h.
 */
#include "core/half_open_inside.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/interval.h"
#include "obj/ep.h"
#include "os/polled.h"
#include "wire/addr.h"

/* Of the time that passes, looking through descriptors takes at most one part in so many: by one
 * endpoint, and by all of the process.  First where nothing hurries. */
#define COST_OF_ONE	1000u
#define COST_OF_ALL	100u
#define COST_SOON_ONE	50u
#define COST_SOON_ALL	10u

/* Those that look through them. */
static atomic_uint endpoints;

void lnx_half_open_joins(void)
{
	atomic_fetch_add_explicit(&endpoints, 1, memory_order_relaxed);
}

void lnx_half_open_leaves(void)
{
	atomic_fetch_sub_explicit(&endpoints, 1, memory_order_relaxed);
}

static uint64_t pause_ns(uint64_t cost_ns, uint64_t one, uint64_t all)
{
	uint64_t n = atomic_load_explicit(&endpoints, memory_order_relaxed);

	return cost_ns * LNX_MAX(one, n * all);
}

uint64_t lnx_half_open_pause(uint64_t cost_ns)
{
	return pause_ns(cost_ns, COST_OF_ONE, COST_OF_ALL);
}

uint64_t lnx_half_open_pause_short(uint64_t cost_ns)
{
	return pause_ns(cost_ns, COST_SOON_ONE, COST_SOON_ALL);
}

bool lnx_half_open_same(const struct sockaddr_storage *a, const void *b, size_t blen)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = b;

	if (blen < sizeof(*b4) || a->ss_family != b4->sin_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_port == b4->sin_port &&
		       a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->ss_family == AF_INET6 && blen >= sizeof(*b6) &&
	       a6->sin6_port == b6->sin6_port &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* tcpi_state; the header that names it does not go with linux/tcp.h. */
#define ESTABLISHED	1
#define SYN_SENT	2
#define CLOSE_WAIT	8
/* The kernel's count of what came includes the end. */
#define END_BYTES	1

/*
 * Is fd connected to us, and has its owner not read a byte?  Either none has come, or
 * those that came are not yet read.
 */
static bool half_open(int fd, const struct lnx_rail *rail)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tcp_info info;
	int listens = 0, unread = 0;

	if (getsockname(fd, (void *)&sa, &len) ||
	    !lnx_half_open_same(&sa, rail->addr, rail->addrlen))
		return false;
	len = sizeof(listens);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) ||
	    listens)
		return false;
	memset(&info, 0, sizeof(info));
	len = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) +
		  sizeof(info.tcpi_bytes_received))
		return false;
	/* In this order: what comes in between counts as unread. */
	return !ioctl(fd, FIONREAD, &unread) && unread >= 0 &&
	       (uint64_t)unread + (info.tcpi_state == ESTABLISHED ? 0 :
				   END_BYTES) >= info.tcpi_bytes_received;
}

unsigned lnx_half_open_each(const struct lnx_rail *rail,
			    bool (*act)(int fd, const struct lnx_rail *rail, void *arg), void *arg)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *dir;

	if (!lnx_half_open_listens(rail))
		return 0;
	dir = opendir("/proc/self/fd");
	if (!dir)
		return 0;
	while ((e = readdir(dir))) {
		char *end;
		long fd = strtol(e->d_name, &end, 10);

		if (end != e->d_name && !*end)
			n += act((int)fd, rail, arg);
	}
	closedir(dir);
	return n;
}

/* A descriptor that may be a connection of a rail to one of its peers. */
struct made {
	struct sockaddr_storage to;
	int fd;
};

struct all_made {
	struct made *made;
	unsigned n, room;
};

/* By the address that it leads to. */
static int by_address(const void *x, const void *y)
{
	const struct sockaddr_storage *a = x, *b = y;
	const struct sockaddr_in *a4 = x, *b4 = y;
	const struct sockaddr_in6 *a6 = x, *b6 = y;

	if (a->ss_family != b->ss_family)
		return a->ss_family < b->ss_family ? -1 : 1;
	/* Both families have the port in the same place. */
	if (a4->sin_port != b4->sin_port)
		return a4->sin_port < b4->sin_port ? -1 : 1;
	if (a->ss_family == AF_INET)
		return memcmp(&a4->sin_addr, &b4->sin_addr, sizeof(a4->sin_addr));
	return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* Where there is no memory, a connection is left for the next time. */
static void add_made(struct all_made *all, int fd, const struct sockaddr_storage *to)
{
	if (all->n == all->room) {
		unsigned room = all->room ? 2 * all->room : 16;
		struct made *more = realloc(all->made, room * sizeof(*more));

		if (!more)
			return;
		all->made = more;
		all->room = room;
	}
	all->made[all->n++] = (struct made){ .to = *to, .fd = fd };
}

bool lnx_half_open_look_up(const struct lnx_rail *rail, fi_addr_t addr, struct sockaddr_storage *sa)
{
	size_t len = sizeof(*sa);

	memset(sa, 0, sizeof(*sa));
	return !fi_av_lookup(rail->av, addr, sa, &len) && len <= sizeof(*sa);
}

typedef bool act_on_made(int fd, const struct lnx_rail *rail, const struct sockaddr_storage *to,
			 const void *arg);

/* Act on those that lead where the path does; returns for how many act was true. */
static unsigned each_of_path(const struct lnx_path *path, struct all_made *all,
			     act_on_made *act, const void *arg)
{
	struct made *m, *end = all->made + all->n;
	struct sockaddr_storage to;
	unsigned n = 0;

	if (!lnx_half_open_look_up(path->rail, path->core_addr, &to))
		return 0;
	m = bsearch(&to, all->made, all->n, sizeof(*m), by_address);
	while (m && m > all->made && !by_address(&m[-1], &to))
		m--;
	for (; m && m < end && !by_address(m, &to); m++)
		n += act(m->fd, path->rail, &m->to, arg);
	return n;
}

/*
 * Act on those that lead to a peer of the rail.  There may be thousands, of both: each path
 * is looked up once, whatever the number of connections.
 */
static unsigned each_made(const struct lnx_rail *rail, struct all_made *all, act_on_made *act,
			  const void *arg)
{
	struct lnx_node *node, *tmp;
	unsigned i, n = 0;

	if (all->n) {
		qsort(all->made, all->n, sizeof(*all->made), by_address);
		lnx_list_foreach(&rail->ep->peers.all, node, tmp) {
			const struct lnx_peer *peer =
				lnx_list_entry(node, struct lnx_peer, all_link);

			for (i = 0; i < peer->npath; i++)
				if (peer->path[i]->rail == rail)
					n += each_of_path(peer->path[i], all, act, arg);
		}
	}
	free(all->made);
	return n;
}

bool lnx_half_open_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->ss_family == AF_INET6 &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* What left so long ago (ms) was all, and nothing came: not even from the kernel, or not from
 * the core. */
static bool waits(const struct tcp_info *info, uint32_t so_long_ms, bool began)
{
	if (info->tcpi_state == SYN_SENT)
		return began && info->tcpi_rto >= LNX_SYN_RARE_NS / LNX_NS_PER_US;
	return info->tcpi_state == ESTABLISHED && !info->tcpi_bytes_received &&
	       info->tcpi_last_data_sent >= so_long_ms;
}

/* Of connections that are not made yet, too: getpeername refuses those.  len: of an address
 * of the family, no more. */
static bool get_peer(int fd, struct sockaddr_storage *there, socklen_t len)
{
	return !getsockopt(fd, SOL_SOCKET, SO_PEERNAME, there, &len);
}

/* Made by the rail, and it waits?  *there: where it leads. */
static bool unanswered(int fd, const struct lnx_rail *rail, uint32_t so_long_ms,
		       bool began, struct sockaddr_storage *there)
{
	struct sockaddr_storage here, own;
	socklen_t hlen = sizeof(here);
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&here, 0, sizeof(here));
	memset(&own, 0, sizeof(own));
	memset(there, 0, sizeof(*there));
	memcpy(&own, rail->addr, LNX_MIN(rail->addrlen, sizeof(own)));
	if (getsockname(fd, (void *)&here, &hlen) || !lnx_half_open_same_ip(&here, &own) ||
	    lnx_half_open_same(&here, rail->addr, rail->addrlen) ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) +
		  sizeof(info.tcpi_bytes_received))
		return false;
	return waits(&info, so_long_ms, began) && get_peer(fd, there, hlen);
}

struct unanswered {
	uint32_t so_long_ms;
	bool began;
	struct all_made all;
};

static bool note_unanswered(int fd, const struct lnx_rail *rail, void *arg)
{
	struct unanswered *u = arg;
	struct sockaddr_storage there;

	if (unanswered(fd, rail, u->so_long_ms, u->began, &there))
		add_made(&u->all, fd, &there);
	return false;
}

/* Another endpoint of the process may close it, and open something else: see cut(). */
static bool end_unanswered(int fd, const struct lnx_rail *rail,
			   const struct sockaddr_storage *to, const void *arg)
{
	const struct unanswered *u = arg;
	struct sockaddr_storage there;
	bool ok;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ok = unanswered(fd, rail, u->so_long_ms, u->began, &there) && !by_address(&there, to) &&
	     !shutdown(fd, SHUT_RDWR);
	close(fd);
	return ok;
}

LNX_COLD unsigned lnx_half_open_unanswered(const struct lnx_rail *rail, uint64_t so_long_ns,
					   bool began)
{
	struct unanswered u = {
		.so_long_ms = (uint32_t)(so_long_ns / LNX_NS_PER_MS), .began = began,
	};

	lnx_half_open_each(rail, note_unanswered, &u);
	return each_made(rail, &u.all, end_unanswered, &u);
}

static bool half_open_end(int fd, const struct lnx_rail *rail, void *arg)
{
	(void)arg;
	if (!half_open(fd, rail))
		return false;
	shutdown(fd, SHUT_RDWR);
	return true;
}

unsigned lnx_half_open_end(const struct lnx_rail *rail)
{
	return lnx_half_open_each(rail, half_open_end, NULL);
}

/* Of the rail for certain, or does it depend on where it leads?  The latter are noted. */
static bool accepted(int fd, const struct lnx_rail *rail, struct all_made *all)
{
	struct sockaddr_storage here, there;
	socklen_t hlen = sizeof(here), tlen = sizeof(there);

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	/* A descriptor that is no socket is refused here. */
	if (getsockname(fd, (void *)&here, &hlen))
		return false;
	if (lnx_half_open_same(&here, rail->addr, rail->addrlen))
		return true;
	/* Most are not, where there are many endpoints: their cores have pairs of local ones. */
	if (here.ss_family == ((const struct sockaddr *)rail->addr)->sa_family &&
	    !getpeername(fd, (void *)&there, &tlen))
		add_made(all, fd, &there);
	return false;
}

static bool set_cloexec(int fd, const struct lnx_rail *rail, const struct sockaddr_storage *to,
			const void *arg)
{
	int flags = fcntl(fd, F_GETFD);

	(void)rail;
	(void)to;
	(void)arg;
	return flags >= 0 && !(flags & FD_CLOEXEC) &&
	       !fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* Names a socket for as long as the kernel runs: a number that is used again differs. */
static bool get_cookie(int fd, uint64_t *cookie)
{
	socklen_t len = sizeof(*cookie);

	return !getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &len) &&
	       len == sizeof(*cookie);
}

/* Where there is no memory it is not remembered. */
static void remember(struct lnx_rail *rail, int fd)
{
	struct lnx_half_open *h = &rail->half_open;
	uint64_t cookie;

	if (!get_cookie(fd, &cookie))
		return;
	if (h->n == h->room) {
		unsigned room = h->room ? 2 * h->room : 16;
		struct lnx_half_open_fd *more = realloc(h->at, room * sizeof(*more));

		if (!more)
			return;
		h->at = more;
		h->room = room;
	}
	h->at[h->n++] = (struct lnx_half_open_fd){ .fd = fd, .cookie = cookie };
}

struct closing {
	struct all_made all;
	struct lnx_rail *rail;
};

/* Is it the rail's listener, a connection accepted by it, or one made to a peer of it;
 * and new to us?  Once the address is found to be the rail's, the descriptor belongs to
 * its core, which opens and closes under the owner lock only: it cannot change
 * meanwhile. */
static bool close_on_exec(int fd, const struct lnx_rail *rail, void *arg)
{
	struct closing *c = arg;
	int flags = fcntl(fd, F_GETFD);

	if (flags < 0 || flags & FD_CLOEXEC || !accepted(fd, rail, &c->all) ||
	    !set_cloexec(fd, rail, NULL, NULL))
		return false;
	remember(c->rail, fd);
	return true;
}

unsigned lnx_half_open_cloexec(struct lnx_rail *rail)
{
	struct closing c = { .rail = rail };
	unsigned n = lnx_half_open_each(rail, close_on_exec, &c);

	return n + each_made(rail, &c.all, set_cloexec, NULL);
}

enum silent { SILENT_NOT, SILENT_OPEN, SILENT_ENDED };

/* Is it still the connection that it was, and has no byte come? */
static enum silent silent(const struct lnx_half_open_fd *h)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	uint64_t cookie;

	if (!get_cookie(h->fd, &cookie) || cookie != h->cookie ||
	    getsockopt(h->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) +
		  sizeof(info.tcpi_bytes_received))
		return SILENT_NOT;
	if (info.tcpi_state == ESTABLISHED && !info.tcpi_bytes_received)
		return SILENT_OPEN;
	return info.tcpi_state == CLOSE_WAIT && info.tcpi_bytes_received <= END_BYTES ?
		SILENT_ENDED : SILENT_NOT;
}

LNX_COLD unsigned lnx_half_open_ended(struct lnx_rail *rail)
{
	struct lnx_half_open *h = &rail->half_open;
	unsigned i, n = 0, ended = 0;

	for (i = 0; i < h->n; i++) {
		enum silent now = silent(&h->at[i]);

		if (now == SILENT_NOT)
			continue;
		h->at[i].ended += now == SILENT_ENDED;
		ended += now == SILENT_ENDED;
		h->at[n++] = h->at[i];
	}
	h->n = n;
	return ended;
}

LNX_COLD unsigned lnx_half_open_close_ended(struct lnx_rail *rail)
{
	struct lnx_half_open *h = &rail->half_open;
	unsigned i, n = 0, closed = 0;
	unsigned char *polled;
	int end = 0;

	for (i = 0; i < h->n; i++)
		if (h->at[i].ended >= 2)
			end = LNX_MAX(end, h->at[i].fd + 1);
	polled = end ? lnx_polled(end) : NULL;
	if (!polled)
		return 0;
	for (i = 0; i < h->n; i++) {
		if (h->at[i].ended >= 2 && !polled[h->at[i].fd] &&
		    silent(&h->at[i]) == SILENT_ENDED)
			closed += !close(h->at[i].fd);
		else
			h->at[n++] = h->at[i];
	}
	h->n = n;
	free(polled);
	return closed;
}

/* Connections of a rail; and the number of those with bytes that its core has not read. */
struct counted {
	struct all_made all;
	unsigned unread;
};

static bool has_unread(int fd)
{
	int n = 0;

	return !ioctl(fd, FIONREAD, &n) && n > 0;
}

static bool count_accepted(int fd, const struct lnx_rail *rail, void *arg)
{
	struct counted *c = arg;

	if (!accepted(fd, rail, &c->all))
		return false;
	c->unread += has_unread(fd);
	return true;
}

static bool count_made(int fd, const struct lnx_rail *rail, const struct sockaddr_storage *to,
		       const void *arg)
{
	unsigned *const *unread = arg;

	(void)rail;
	(void)to;
	**unread += has_unread(fd);
	return true;
}

LNX_COLD unsigned lnx_half_open_unread(const struct lnx_rail *rail)
{
	struct counted c = { .unread = 0 };
	unsigned n = lnx_half_open_each(rail, count_accepted, &c), *unread = &c.unread;

	n += each_made(rail, &c.all, count_made, &unread);
	return c.unread ? n : 0;
}

bool lnx_half_open_reset_on_close(int fd)
{
	static const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	return !setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

static bool reset_made(int fd, const struct lnx_rail *rail, const struct sockaddr_storage *to,
		       const void *arg)
{
	(void)rail;
	(void)to;
	(void)arg;
	return lnx_half_open_reset_on_close(fd);
}

/* Accepted by the rail, or made to a peer of it?  Listeners have no other end. */
static bool reset_when_closed(int fd, const struct lnx_rail *rail, void *all)
{
	struct sockaddr_storage there;
	socklen_t len = sizeof(there);

	return accepted(fd, rail, all) &&
	       !getpeername(fd, (void *)&there, &len) && lnx_half_open_reset_on_close(fd);
}

unsigned lnx_half_open_reset(const struct lnx_rail *rail)
{
	struct all_made all = { 0 };
	unsigned n = lnx_half_open_each(rail, reset_when_closed, &all);

	return n + each_made(rail, &all, reset_made, NULL);
}
