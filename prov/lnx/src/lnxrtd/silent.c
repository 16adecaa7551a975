/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that a rail of the gateway has accepted, and over which nothing comes.  Cores wait
 * for ever for the first bytes, which an endpoint sends at once; each takes a descriptor, and
 * without one left no endpoint could connect.  So those are ended: the core finds out.  Those that
 * have ended, and that no core polls any more after as long again, it has forgotten (PEERS.md,
 * connection that ends without data), and they are closed.  Time alone does not tell: this process
 * may have been stopped.
 */
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/interval.h"
#include "lnxrtd/lnxrtd.h"
#include "os/polled.h"

#define SLICE		256u		/* descriptors in one call */
#define ESTABLISHED	1		/* tcpi_state; its names are in another header */
#define LISTEN		10
#define END_BYTES	1u		/* the kernel's count of what came includes the end */

/* Has a rail accepted it? */
static bool accepted(const struct rtd_ports *ports, int fd)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	unsigned i;

	if (getsockname(fd, (void *)&sa, &len))
		return false;
	for (i = 0; i < ports->n; i++) {
		const struct lnx_addr_rail *own = &rtd_port_rail(ports->port[i])->addr;

		if (lnx_net_ip(own->prov) && own->rawlen == len &&
		    !memcmp(&sa, own->raw, len))
			return true;
	}
	return false;
}

/* What the kernel knows of it, if it is accepted and nothing came over it. */
static bool is_silent(const struct rtd_ports *ports, int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return accepted(ports, fd) && !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) &&
	       len >= offsetof(struct tcp_info, tcpi_bytes_received) +
		      sizeof(info->tcpi_bytes_received) &&
	       info->tcpi_state != LISTEN &&
	       info->tcpi_bytes_received <= (info->tcpi_state == ESTABLISHED ? 0 : END_BYTES);
}

static uint64_t most_ms(const struct rtd_ports *ports)
{
	return rtd_relay_settings(ports->relay)->connect_ns / LNX_NS_PER_MS;
}

/* Of one that has received nothing this counts from its beginning. */
static bool ended_long_ago(const struct rtd_ports *ports, const struct tcp_info *info)
{
	return info->tcpi_state != ESTABLISHED && info->tcpi_last_data_recv >= 2 * most_ms(ports);
}

/* Where there is no memory it is left for the next time. */
static void add_ended(struct rtd_silent *s, int fd)
{
	if (s->n_ended == s->room) {
		unsigned room = s->room ? 2 * s->room : 16;
		int *more = realloc(s->ended, room * sizeof(*more));

		if (!more)
			return;
		s->ended = more;
		s->room = room;
	}
	s->ended[s->n_ended++] = fd;
}

/* Is it one of these?  Then it is ended if it is old enough. */
static bool look_at(struct rtd_silent *s, const struct rtd_ports *ports, int fd)
{
	struct tcp_info info;

	if (!is_silent(ports, fd, &info))
		return false;
	if (ended_long_ago(ports, &info))
		add_ended(s, fd);
	else if (info.tcpi_state == ESTABLISHED && info.tcpi_last_data_recv >= most_ms(ports))
		shutdown(fd, SHUT_RDWR);
	return true;
}

/* What is polled takes long to find out: once for all of them.  Since they were noted a core may
 * have closed one, and its number may be another connection's. */
static void close_forgotten(struct rtd_silent *s, const struct rtd_ports *ports)
{
	unsigned char *polled;
	struct tcp_info info;
	unsigned i;
	int end = 0;

	for (i = 0; i < s->n_ended; i++)
		end = LNX_MAX(end, s->ended[i] + 1);
	polled = end ? lnx_polled(end) : NULL;
	for (i = 0; polled && i < s->n_ended; i++)
		if (!polled[s->ended[i]] && is_silent(ports, s->ended[i], &info) &&
		    ended_long_ago(ports, &info))
			close(s->ended[i]);
	free(polled);
	s->n_ended = 0;
}

uint64_t rtd_silent_look(struct rtd_silent *s, const struct rtd_ports *ports, uint64_t now)
{
	struct dirent *e = NULL;
	unsigned n;

	if (now < s->next_ns)
		return s->any ? s->next_ns : UINT64_MAX;
	if (!s->dir) {
		s->dir = opendir("/proc/self/fd");
		s->any = false;
	}
	for (n = 0; s->dir && n < SLICE && (e = readdir(s->dir)); n++)
		s->any |= e->d_name[0] != '.' && look_at(s, ports, atoi(e->d_name));
	if (e) {
		s->next_ns = now + RTD_SILENT_REST_NS;
		return s->next_ns;
	}
	close_forgotten(s, ports);
	rtd_silent_close(s);
	s->next_ns = now + rtd_relay_settings(ports->relay)->connect_ns;
	return s->any ? s->next_ns : UINT64_MAX;
}

void rtd_silent_close(struct rtd_silent *s)
{
	if (s->dir)
		closedir(s->dir);
	s->dir = NULL;
	free(s->ended);
	s->ended = NULL;
	s->n_ended = s->room = 0;
}
