/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The socket for lnxctl.  The loop of the gateway must not wait for a connection, so nothing
 * blocks, and one that says nothing keeps its place only until another one needs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lnxrtd/lnxrtd.h"

#define CONNECTIONS	8u		/* that are held or wait at a time */

struct rtd_admin {
	int epoll, listener;
	int spare;			/* a descriptor for when there is no other, or -1 */
	struct sockaddr_un at;
	unsigned n;
	int fd[CONNECTIONS];		/* oldest first */
};

/* ---- requests ---- */

static int set_routing(struct rtd_relay *r, const char *value, char why[RTD_WHY], uint64_t now)
{
	int ret = 0;

	if (!strcmp(value, "0")) {
		rtd_relay_stop(r, now);
	} else if (!strcmp(value, "1")) {
		ret = rtd_relay_start(r, now);
	} else {
		snprintf(why, RTD_WHY, "routing \"%.20s\": must be 0 or 1", value);
		return -EINVAL;
	}
	if (ret)
		snprintf(why, RTD_WHY, "%s", ret == -EBUSY ?
			 "routing stops at present: it is not switched on" :
			 "memory is short for the buffers");
	return ret;
}

static int set(struct rtd_relay *r, char *words, char why[RTD_WHY], uint64_t now)
{
	char *value = strchr(words, ' ');
	struct rtd_settings s = *rtd_relay_settings(r);
	int ret;

	if (!value) {
		snprintf(why, RTD_WHY, "a name and a value must follow");
		return -EINVAL;
	}
	*value++ = '\0';
	if (!strcmp(words, "routing"))
		return set_routing(r, value, why, now);
	ret = rtd_setting_set(&s, words, value, why);
	if (ret)
		return ret;
	ret = rtd_relay_set(r, &s);
	if (ret)
		snprintf(why, RTD_WHY,
			 "memory is short for the buffers: they stay as they were");
	return ret;
}

static void answer(int fd, int result, const char *text, size_t len)
{
	char first[16];
	struct iovec iov[] = {
		{ first, (size_t)snprintf(first, sizeof(first), "%d\n", result) },
		{ (void *)(uintptr_t)text, len },
	};
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

	/* One that does not fit is lost, and lnxctl finds the connection closed. */
	sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void show(int fd, const struct rtd_relay *r, uint64_t now)
{
	static const char short_of[] = "memory is short";
	size_t len = rtd_state_print(r, NULL, 0, now);
	char *text = malloc(len + 1);

	if (!text) {
		answer(fd, -ENOMEM, short_of, sizeof(short_of) - 1);
		return;
	}
	rtd_state_print(r, text, len + 1, now);
	answer(fd, 0, text, len);
	free(text);
}

/* True: it was a setting.  request ends with NUL. */
static bool handle(int fd, struct rtd_relay *r, char *request, size_t len, uint64_t now)
{
	char why[RTD_WHY] = "";
	int ret = -EINVAL;

	if (len < RTD_REQUEST && strlen(request) == len) {
		if (!strcmp(request, "show")) {
			show(fd, r, now);
			return false;
		}
		if (!strncmp(request, "set ", 4))
			ret = set(r, request + 4, why, now);
	}
	if (ret && !why[0])
		snprintf(why, sizeof(why), "there is no such request");
	answer(fd, ret, why, strlen(why));
	return !ret;
}

/* ---- connections ---- */

/* May the process at the other end ask?  The mode of the socket says so, but not everywhere. */
static bool may_ask(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (!cred.uid || cred.uid == geteuid());
}

/* Keep a descriptor back: without one a connection waits that wakes nothing again. */
static void keep_spare(struct rtd_admin *a)
{
	if (a->spare < 0)
		a->spare = fcntl(a->epoll, F_DUPFD_CLOEXEC, 0);
}

static void forget(struct rtd_admin *a, unsigned i)
{
	close(a->fd[i]);
	keep_spare(a);
	a->n--;
	memmove(&a->fd[i], &a->fd[i + 1], (a->n - i) * sizeof(a->fd[0]));
}

static int wake_for(const struct rtd_admin *a, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* Descriptors are short: can one be had for the next connection?  It gets the spare one, or
 * that of the oldest connection.  accept() wants one even if no connection waits. */
static bool make_room(struct rtd_admin *a)
{
	struct pollfd p = { .fd = a->listener, .events = POLLIN };

	if (poll(&p, 1, 0) <= 0)
		return false;
	if (a->spare < 0 && a->n)
		forget(a, 0);
	if (a->spare < 0)
		return false;
	close(a->spare);
	a->spare = -1;
	return true;
}

static void take(struct rtd_admin *a)
{
	unsigned i;

	/* All that can wait, and some that come meanwhile. */
	for (i = 0; i < 2 * CONNECTIONS; i++) {
		int fd = accept4(a->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (fd < 0 && errno != EAGAIN && make_room(a))
			continue;
		if (fd < 0)
			return;
		if (!may_ask(fd) || wake_for(a, fd, EPOLLIN)) {
			close(fd);
			keep_spare(a);
			continue;
		}
		if (a->n == CONNECTIONS)
			forget(a, 0);
		a->fd[a->n++] = fd;
	}
}

bool rtd_admin_run(struct rtd_admin *a, struct rtd_relay *r, uint64_t now)
{
	struct epoll_event e[CONNECTIONS + 1];
	char request[RTD_REQUEST + 1];
	bool changed = false;
	unsigned i = 0;

	if (!a)
		return false;
	epoll_wait(a->epoll, e, CONNECTIONS + 1, 0);
	keep_spare(a);
	take(a);
	while (i < a->n) {
		ssize_t n = recv(a->fd[i], request, RTD_REQUEST, MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			i++;
			continue;
		}
		if (n > 0) {
			request[LNX_MIN((size_t)n, (size_t)RTD_REQUEST)] = '\0';
			changed |= handle(a->fd[i], r, request, (size_t)n, now);
		}
		forget(a, i);
	}
	return changed;
}

/* ---- set-up ---- */

/* Is the name that of a socket at which no process listens any more? */
static bool left_over(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat st;
	bool left;

	left = fd >= 0 && !lstat(at->sun_path, &st) && S_ISSOCK(st.st_mode) &&
	       connect(fd, (const struct sockaddr *)at, sizeof(*at)) && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return left;
}

static int listen_at(struct rtd_admin *a)
{
	const struct sockaddr *at = (const struct sockaddr *)&a->at;
	mode_t mask;
	int ret;

	a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (a->listener < 0)
		return -1;
	/* Never open to others, not even for a moment. */
	mask = umask(0177);
	ret = bind(a->listener, at, sizeof(a->at));
	if (ret && errno == EADDRINUSE) {
		if (left_over(&a->at) && !unlink(a->at.sun_path))
			ret = bind(a->listener, at, sizeof(a->at));
		else
			errno = EADDRINUSE;
	}
	umask(mask);
	if (ret)
		return -1;
	/* Each connection wakes it once: one that cannot be taken must not keep it awake. */
	if (!listen(a->listener, (int)CONNECTIONS) &&
	    !wake_for(a, a->listener, EPOLLIN | EPOLLET))
		return 0;
	unlink(a->at.sun_path);
	return -1;
}

int rtd_admin_open(struct rtd_admin **out, const char *file, char why[RTD_WHY])
{
	struct rtd_admin *a;

	a = calloc(1, sizeof(*a));
	if (!a) {
		snprintf(why, RTD_WHY, "memory is short");
		return -1;
	}
	a->listener = a->spare = -1;
	a->at.sun_family = AF_UNIX;
	snprintf(a->at.sun_path, sizeof(a->at.sun_path), "%s", file);
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll >= 0 && !listen_at(a)) {
		keep_spare(a);
		*out = a;
		return 0;
	}
	snprintf(why, RTD_WHY, "%.200s: %s", file, strerror(errno));
	if (a->listener >= 0)
		close(a->listener);
	if (a->epoll >= 0)
		close(a->epoll);
	free(a);
	return -1;
}

void rtd_admin_close(struct rtd_admin *a)
{
	if (!a)
		return;
	while (a->n)
		forget(a, 0);
	if (a->spare >= 0)
		close(a->spare);
	unlink(a->at.sun_path);
	close(a->listener);
	close(a->epoll);
	free(a);
}

int rtd_admin_fd(const struct rtd_admin *a)
{
	return a ? a->epoll : -1;
}
