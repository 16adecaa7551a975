/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The out-of-band channel of test programs: connections to rank 0, what goes over them,
 * and barriers.  See oob.h.
 */
#include "oob.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int resolve(const char *host, int port, struct sockaddr_in *sin)
{
	struct addrinfo hints = {
		.ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *ai;

	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_ANY);
	if (host) {
		if (getaddrinfo(host, NULL, &hints, &ai))
			return -EADDRNOTAVAIL;
		memcpy(sin, ai->ai_addr, sizeof(*sin));
		freeaddrinfo(ai);
	}
	sin->sin_port = htons((uint16_t)port);
	return 0;
}

static void tune(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int oob_listen(const char *host, int *port)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	int fd, ret, one = 1;

	ret = resolve(host, *port, &sin);
	if (ret)
		return ret;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (void *)&sin, sizeof(sin)) ||
	    listen(fd, OOB_MAX_RANKS) ||
	    getsockname(fd, (void *)&sin, &len)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	*port = ntohs(sin.sin_port);
	return fd;
}

/*
 * Waits without blocking while there is an idle function: we may have to make
 * progress before the peer can come to the barrier that we wait at.
 */
static int wait_for(struct oob *o, int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int ret;

	for (;;) {
		ret = poll(&pfd, 1, o->idle ? 0 : 1000);
		if (ret > 0)
			return 0;
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (o->idle)
			o->idle(o->idle_arg);
	}
}

int oob_send(struct oob *o, int rank, const void *buf, size_t len)
{
	const char *p = buf;
	ssize_t n;
	int fd = o->fd[rank], ret;

	while (len) {
		n = send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return errno == EPIPE ? -ECONNRESET : -errno;
		ret = wait_for(o, fd, POLLOUT);
		if (ret)
			return ret;
	}
	return 0;
}

int oob_recv(struct oob *o, int rank, void *buf, size_t len)
{
	char *p = buf;
	ssize_t n;
	int fd = o->fd[rank], ret;

	while (len) {
		ret = wait_for(o, fd, POLLIN);
		if (ret)
			return ret;
		n = recv(fd, p, len, MSG_DONTWAIT);
		if (!n)
			return -ECONNRESET;
		if (n < 0) {
			if (errno == EAGAIN || errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int oob_serve(struct oob *o, int lfd, int n)
{
	int32_t hello[2];
	int i, ret;

	if (n < 1 || n > OOB_MAX_RANKS)
		return -EINVAL;
	o->rank = 0;
	o->n = n;
	for (i = 0; i < OOB_MAX_RANKS; i++)
		o->fd[i] = -1;
	for (i = 1; i < n; i++) {
		do {
			o->fd[i] = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
		} while (o->fd[i] < 0 && errno == EINTR);
		if (o->fd[i] < 0)
			return -errno;
		tune(o->fd[i]);
		hello[0] = i;
		hello[1] = n;
		ret = oob_send(o, i, hello, sizeof(hello));
		if (ret)
			return ret;
	}
	return 0;
}

int oob_join(struct oob *o, const char *host, int port, double timeout_s)
{
	struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	struct sockaddr_in sin;
	int32_t hello[2];
	int i, fd, ret;

	for (i = 0; i < OOB_MAX_RANKS; i++)
		o->fd[i] = -1;
	ret = resolve(host, port, &sin);
	if (ret)
		return ret;
	for (;;) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return -errno;
		if (!connect(fd, (void *)&sin, sizeof(sin)))
			break;
		ret = -errno;
		close(fd);
		timeout_s -= 0.02;
		if (timeout_s <= 0)
			return ret;
		nanosleep(&nap, NULL);
	}
	tune(fd);
	o->fd[0] = fd;
	ret = oob_recv(o, 0, hello, sizeof(hello));
	if (ret)
		return ret;
	if (hello[1] < 2 || hello[1] > OOB_MAX_RANKS || hello[0] < 1 ||
	    hello[0] >= hello[1])
		return -EPROTO;
	o->rank = hello[0];
	o->n = hello[1];
	return 0;
}

void oob_close(struct oob *o)
{
	int i;

	for (i = 0; i < OOB_MAX_RANKS; i++) {
		if (o->fd[i] >= 0)
			close(o->fd[i]);
		o->fd[i] = -1;
	}
}

struct gather_head {
	uint32_t kind;
	uint32_t len;
};

/* Discards what a rank sent that is in another call than we are. */
static int drain(struct oob *o, int rank, size_t len)
{
	char buf[4096];
	size_t n;
	int ret;

	for (; len; len -= n) {
		n = len < sizeof(buf) ? len : sizeof(buf);
		ret = oob_recv(o, rank, buf, n);
		if (ret)
			return ret;
	}
	return 0;
}

static int gather_root(struct oob *o, struct gather_head head, char *all)
{
	struct gather_head h;
	uint32_t same = 1;
	int i, ret;

	for (i = 1; i < o->n; i++) {
		ret = oob_recv(o, i, &h, sizeof(h));
		if (ret)
			return ret;
		if (h.kind == head.kind && h.len == head.len) {
			ret = oob_recv(o, i, all + (size_t)i * h.len, h.len);
		} else {
			same = 0;
			ret = drain(o, i, h.len);
		}
		if (ret)
			return ret;
	}
	for (i = 1; i < o->n; i++) {
		ret = oob_send(o, i, &same, sizeof(same));
		if (!ret && same)
			ret = oob_send(o, i, all, (size_t)o->n * head.len);
		if (ret)
			return ret;
	}
	return same ? 0 : -ECANCELED;
}

int oob_gather_kind(struct oob *o, unsigned kind, const void *mine, void *all,
		    size_t len)
{
	struct gather_head head = { .kind = kind, .len = (uint32_t)len };
	uint32_t same;
	int ret;

	if (!o->rank) {
		memcpy(all, mine, len);
		return gather_root(o, head, all);
	}
	ret = oob_send(o, 0, &head, sizeof(head));
	if (!ret)
		ret = oob_send(o, 0, mine, len);
	if (!ret)
		ret = oob_recv(o, 0, &same, sizeof(same));
	if (ret)
		return ret;
	return same ? oob_recv(o, 0, all, len * (size_t)o->n) : -ECANCELED;
}

int oob_allgather(struct oob *o, const void *mine, void *all, size_t len)
{
	return oob_gather_kind(o, 0, mine, all, len);
}

int oob_bcast(struct oob *o, void *buf, size_t len)
{
	int i, ret;

	if (o->rank)
		return oob_recv(o, 0, buf, len);
	for (i = 1; i < o->n; i++) {
		ret = oob_send(o, i, buf, len);
		if (ret)
			return ret;
	}
	return 0;
}

int oob_barrier(struct oob *o)
{
	char mine = 0, all[OOB_MAX_RANKS];

	return oob_allgather(o, &mine, all, 1);
}
