/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the descriptors of a rail's core among those of this process.  See half_open.h.
 */
#include "core/half_open.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "obj/ep.h"
#include "wire/addr.h"

/* Same family, address and port? */
static bool same(const struct sockaddr_storage *a, const void *b, size_t blen)
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
	    !same(&sa, rail->addr, rail->addrlen))
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

/* Act on each descriptor of this process; returns for how many act was true. */
static unsigned each(const struct lnx_rail *rail,
		     bool (*act)(int fd, const struct lnx_rail *rail, const void *arg),
		     const void *arg)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *dir;

	if (rail->prov != LNX_PROV_TCP && rail->prov != LNX_PROV_TCP_RXM)
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

/* Does a path of the rail lead there? */
static bool leads_to(const struct lnx_rail *rail,
		     const struct sockaddr_storage *to)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_list_foreach(&rail->ep->peers.all, n, tmp) {
		const struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			const struct lnx_path *path = peer->path[i];
			_Alignas(struct sockaddr_in6) uint8_t raw[LNX_ADDR_RAW];
			size_t len = sizeof(raw);

			if (path->rail == rail &&
			    !fi_av_lookup(rail->av, path->core_addr, raw,
					  &len) &&
			    len <= sizeof(raw) && same(to, raw, len))
				return true;
		}
	}
	return false;
}

/* The same address, of any port? */
static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
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

/* tcpi_rto of a kernel that asks for a connection rarely by now: a new one is asked for at
 * once, and after a second. */
#define SYN_RARE_US	2000000u

/* What left so long ago (ms) was all, and nothing came: not even from the kernel, or not from
 * the core. */
static bool waits(const struct tcp_info *info, uint32_t so_long_ms)
{
	if (info->tcpi_state == SYN_SENT)
		return info->tcpi_rto >= SYN_RARE_US;
	return info->tcpi_state == ESTABLISHED && !info->tcpi_bytes_received &&
	       info->tcpi_last_data_sent >= so_long_ms;
}

/* Of connections that are not made yet, too: getpeername refuses those.  len: of an address
 * of the family, no more. */
static bool get_peer(int fd, struct sockaddr_storage *there, socklen_t len)
{
	return !getsockopt(fd, SOL_SOCKET, SO_PEERNAME, there, &len);
}

/* Made by the rail, to a peer of it, and it waits? */
static bool unanswered(int fd, const struct lnx_rail *rail, const void *so_long)
{
	struct sockaddr_storage here, there, own;
	socklen_t hlen = sizeof(here);
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	memset(&own, 0, sizeof(own));
	memcpy(&own, rail->addr, LNX_MIN(rail->addrlen, sizeof(own)));
	if (getsockname(fd, (void *)&here, &hlen) || !same_host(&here, &own) ||
	    same(&here, rail->addr, rail->addrlen) ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) +
		  sizeof(info.tcpi_bytes_received))
		return false;
	return waits(&info, *(const uint32_t *)so_long) && get_peer(fd, &there, hlen) &&
	       leads_to(rail, &there);
}

/* Another endpoint of the process may close it, and open something else: see cut(). */
static bool end_unanswered(int fd, const struct lnx_rail *rail, const void *arg)
{
	bool ok;

	if (!unanswered(fd, rail, arg))
		return false;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ok = unanswered(fd, rail, arg) && !shutdown(fd, SHUT_RDWR);
	close(fd);
	return ok;
}

LNX_COLD unsigned lnx_half_open_unanswered(const struct lnx_rail *rail, uint64_t so_long_ns)
{
	uint32_t ms = (uint32_t)(so_long_ns / LNX_NS_PER_MS);

	return each(rail, end_unanswered, &ms);
}

static bool half_open_end(int fd, const struct lnx_rail *rail, const void *arg)
{
	(void)arg;
	if (!half_open(fd, rail))
		return false;
	shutdown(fd, SHUT_RDWR);
	return true;
}

unsigned lnx_half_open_end(const struct lnx_rail *rail)
{
	return each(rail, half_open_end, NULL);
}

/* Is it the rail's listener, a connection accepted by it, or one made to a peer of it;
 * and new to us?  Once the address is found to be the rail's, the descriptor belongs to
 * its core, which opens and closes under the owner lock only: it cannot change
 * meanwhile. */
static bool close_on_exec(int fd, const struct lnx_rail *rail, const void *arg)
{
	struct sockaddr_storage here, there;
	socklen_t hlen = sizeof(here), tlen = sizeof(there);
	int flags = fcntl(fd, F_GETFD);

	(void)arg;
	if (flags < 0 || (flags & FD_CLOEXEC))
		return false;
	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	/* A descriptor that is no socket is refused here. */
	if (getsockname(fd, (void *)&here, &hlen) ||
	    (!same(&here, rail->addr, rail->addrlen) &&
	     (getpeername(fd, (void *)&there, &tlen) ||
	      !leads_to(rail, &there))))
		return false;
	return !fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

unsigned lnx_half_open_cloexec(const struct lnx_rail *rail)
{
	return each(rail, close_on_exec, NULL);
}

static bool reset_on_close(int fd)
{
	static const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	return !setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

/* Accepted by the rail, or made to a peer of it? */
static bool reset_when_closed(int fd, const struct lnx_rail *rail, const void *arg)
{
	struct sockaddr_storage here, there;
	socklen_t hlen = sizeof(here), tlen = sizeof(there);

	(void)arg;
	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	/*
	 * A descriptor that is no socket has no name, and listeners have no other end.
	 */
	if (getsockname(fd, (void *)&here, &hlen) ||
	    getpeername(fd, (void *)&there, &tlen) ||
	    (!same(&here, rail->addr, rail->addrlen) &&
	     !leads_to(rail, &there)))
		return false;
	return reset_on_close(fd);
}

unsigned lnx_half_open_reset(const struct lnx_rail *rail)
{
	return each(rail, reset_when_closed, NULL);
}

/* Made by the rail to that address, or accepted by it from that host? */
static bool between(int fd, const struct lnx_rail *rail, const struct sockaddr_storage *to)
{
	struct sockaddr_storage here, there, own;
	socklen_t hlen = sizeof(here), tlen = sizeof(there);

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	memset(&own, 0, sizeof(own));
	memcpy(&own, rail->addr, LNX_MIN(rail->addrlen, sizeof(own)));
	if (getsockname(fd, (void *)&here, &hlen) ||
	    getpeername(fd, (void *)&there, &tlen) || !same_host(&there, to))
		return false;
	return same(&here, rail->addr, rail->addrlen) ||
	       (same_host(&here, &own) && same(&there, to, sizeof(*to)));
}

/*
 * A connection that the rail has made may as well be another endpoint's, whose lock we do
 * not have: a second descriptor keeps it the one that was looked at.
 */
static bool cut(int fd, const struct lnx_rail *rail, const void *to)
{
	bool ok;

	if (!between(fd, rail, to))
		return false;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ok = between(fd, rail, to) && reset_on_close(fd) && !shutdown(fd, SHUT_RDWR);
	close(fd);
	return ok;
}

static bool look_up(const struct lnx_rail *rail, fi_addr_t addr, struct sockaddr_storage *sa)
{
	size_t len = sizeof(*sa);

	memset(sa, 0, sizeof(*sa));
	return !fi_av_lookup(rail->av, addr, sa, &len) && len <= sizeof(*sa);
}

unsigned lnx_half_open_cut(const struct lnx_rail *rail, fi_addr_t to)
{
	struct sockaddr_storage sa;

	if (!rail->core_ep || !look_up(rail, to, &sa))
		return 0;
	return each(rail, cut, &sa);
}

bool lnx_half_open_same_host(const struct lnx_rail *rail, fi_addr_t a, fi_addr_t b)
{
	struct sockaddr_storage sa, sb;

	return look_up(rail, a, &sa) && look_up(rail, b, &sb) && same_host(&sa, &sb);
}
