/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/halfway.h"

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

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
/* The kernel's count of what came includes the end. */
#define END_BYTES	1

/*
 * Connected to us, and its owner has not read a byte of it: none has come, or those
 * that have are still to be looked at.
 */
static bool halfway(int fd, const struct lnx_rail *rail)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tcp_info info;
	int listens = 0, unread = 0;
	struct stat st;

	if (fstat(fd, &st) || !S_ISSOCK(st.st_mode) ||
	    getsockname(fd, (void *)&sa, &len) ||
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
	/* In this order: what comes in between is unread, too. */
	return !ioctl(fd, FIONREAD, &unread) && unread >= 0 &&
	       (uint64_t)unread + (info.tcpi_state == ESTABLISHED ? 0 :
				   END_BYTES) >= info.tcpi_bytes_received;
}

unsigned lnx_halfway_end(const struct lnx_rail *rail)
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

		if (end == e->d_name || *end || !halfway((int)fd, rail))
			continue;
		shutdown((int)fd, SHUT_RDWR);
		n++;
	}
	closedir(dir);
	return n;
}
