/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cuts connections of a rail's core: those of one path, or of many with one look through the
 * descriptors.  See half_open.h.
 */
#include "core/half_open_inside.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "obj/ep.h"

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
	    getpeername(fd, (void *)&there, &tlen) || !lnx_half_open_same_ip(&there, to))
		return false;
	return lnx_half_open_same(&here, rail->addr, rail->addrlen) ||
	       (lnx_half_open_same_ip(&here, &own) && lnx_half_open_same(&there, to, sizeof(*to)));
}

/*
 * A connection that the rail has made may as well be another endpoint's, whose lock we do
 * not have: a second descriptor keeps it the one that was looked at.
 */
static bool cut_one(int fd, const struct lnx_rail *rail, const struct sockaddr_storage *to)
{
	bool ok;

	if (!between(fd, rail, to))
		return false;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ok = between(fd, rail, to) && lnx_half_open_reset_on_close(fd) && !shutdown(fd, SHUT_RDWR);
	close(fd);
	return ok;
}

/* All ports of a host are the same here. */
static int by_host(const void *x, const void *y)
{
	const struct sockaddr_storage *a = x, *b = y;
	const struct sockaddr_in *a4 = x, *b4 = y;
	const struct sockaddr_in6 *a6 = x, *b6 = y;

	if (a->ss_family != b->ss_family)
		return a->ss_family < b->ss_family ? -1 : 1;
	if (a->ss_family == AF_INET)
		return memcmp(&a4->sin_addr, &b4->sin_addr, sizeof(a4->sin_addr));
	if (a->ss_family == AF_INET6)
		return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
	return 0;
}

static int cuts_by_host(const void *x, const void *y)
{
	const struct lnx_cut *a = x, *b = y;

	return by_host(&a->to, &b->to);
}

static bool has_host(const struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET || sa->ss_family == AF_INET6;
}

LNX_COLD void lnx_half_open_sort(struct lnx_cut *cut, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!lnx_half_open_look_up(cut[i].path->rail, cut[i].path->core_addr, &cut[i].to) ||
		    !has_host(&cut[i].to))
			cut[i].to.ss_family = AF_UNSPEC;
	qsort(cut, n, sizeof(*cut), cuts_by_host);
	for (i = 0; i < n; i++)
		cut[i].first = i && has_host(&cut[i].to) &&
			       lnx_half_open_same_ip(&cut[i - 1].to, &cut[i].to) ?
			       cut[i - 1].first : &cut[i];
}

static struct lnx_cut *to_host(struct lnx_cut *cut, unsigned n, const struct sockaddr_storage *to)
{
	unsigned low = 0, high = n;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		int cmp = by_host(&cut[mid].to, to);

		if (!cmp)
			return has_host(to) ? cut[mid].first : NULL;
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

LNX_COLD struct lnx_cut *lnx_half_open_beside(struct lnx_cut *cut, unsigned n,
					      const struct lnx_path *path)
{
	struct sockaddr_storage to;

	return lnx_half_open_look_up(path->rail, path->core_addr, &to) ? to_host(cut, n, &to) :
									 NULL;
}

struct cuts {
	struct lnx_cut *cut;
	unsigned n;
};

/* A connection in which something waits, and over which nothing came for so long (ms); -1:
 * nothing waits. */
static int64_t still_ms(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int unsent = 0;

	if (ioctl(fd, TIOCOUTQ, &unsent) || !unsent)
		return -1;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? 0 : info.tcpi_last_data_recv;
}

/* Is that connection one of those that are to be cut for c?  Of accepted ones it cannot be told
 * which process they are of. */
static bool is_of(const struct lnx_cut *c, const struct sockaddr_storage *there, bool accepted,
		  int64_t still)
{
	if (lnx_half_open_same(there, &c->to, sizeof(c->to)))
		return true;
	return accepted && (!c->reads || still >= (int64_t)(c->silent_ns / LNX_NS_PER_MS));
}

static bool cut_one_of(int fd, const struct lnx_rail *rail, void *arg)
{
	const struct cuts *all = arg;
	struct sockaddr_storage here, there;
	socklen_t hlen = sizeof(here), tlen = sizeof(there);
	struct lnx_cut *c, *first, *end = all->cut + all->n;
	bool accepted, done = false;
	int64_t still = 0;

	memset(&here, 0, sizeof(here));
	memset(&there, 0, sizeof(there));
	if (getsockname(fd, (void *)&here, &hlen) || getpeername(fd, (void *)&there, &tlen))
		return false;
	first = to_host(all->cut, all->n, &there);
	accepted = lnx_half_open_same(&here, rail->addr, rail->addrlen);
	if (first && accepted)
		still = still_ms(fd);
	for (c = first; c && c < end && c->first == first; c++) {
		if (!is_of(c, &there, accepted, still))
			continue;
		if (!done && !cut_one(fd, rail, &c->to))
			return false;
		done = true;
		c->ncut++;
	}
	return done;
}

LNX_COLD void lnx_half_open_cut_all(const struct lnx_rail *rail, struct lnx_cut *cut, unsigned n)
{
	struct cuts all = { .cut = cut, .n = n };

	if (rail->core_ep)
		lnx_half_open_each(rail, cut_one_of, &all);
}

static bool cut(int fd, const struct lnx_rail *rail, void *arg)
{
	const struct sockaddr_storage *to = arg;

	return cut_one(fd, rail, to);
}

unsigned lnx_half_open_cut(const struct lnx_rail *rail, fi_addr_t to)
{
	struct sockaddr_storage sa;

	return rail->core_ep && lnx_half_open_look_up(rail, to, &sa) ?
	       lnx_half_open_each(rail, cut, &sa) : 0;
}

bool lnx_half_open_same_host(const struct lnx_rail *rail, fi_addr_t a, fi_addr_t b)
{
	struct sockaddr_storage sa, sb;

	return lnx_half_open_look_up(rail, a, &sa) && lnx_half_open_look_up(rail, b, &sb) &&
	       lnx_half_open_same_ip(&sa, &sb);
}
