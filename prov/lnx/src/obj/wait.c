/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects: how a thread of the application sleeps until there is a completion.
 * See wait.h.
 */
#include "obj/wait.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timer.h"

struct lnx_wait {
	int epfd;
	int evfd;
	int clockfd;			/* -1 until it is needed; atomic */
	int armed;			/* a thread is about to sleep; atomic */
	int kicked;			/* atomic */
};

int lnx_wait_open(enum fi_wait_obj obj, struct lnx_wait **out)
{
	struct lnx_wait *w;
	int ret;

	*out = NULL;
	if (obj == FI_WAIT_NONE)
		return 0;
	if (obj != FI_WAIT_UNSPEC && obj != FI_WAIT_FD) {
		LNX_WARN(FI_LOG_CORE,
			 "wait object %d is not supported: FI_WAIT_NONE, FI_WAIT_UNSPEC and FI_WAIT_FD are\n",
			 (int)obj);
		return -FI_ENOSYS;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -FI_ENOMEM;
	w->clockfd = -1;
	w->evfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->evfd < 0) {
		ret = -errno;
		goto err;
	}
	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epfd < 0) {
		ret = -errno;
		goto err_ev;
	}
	ret = lnx_wait_add_fd(w, w->evfd);
	if (ret)
		goto err_ep;
	*out = w;
	return 0;
err_ep:
	close(w->epfd);
err_ev:
	close(w->evfd);
err:
	free(w);
	return ret;
}

void lnx_wait_close(struct lnx_wait *w)
{
	if (!w)
		return;
	close(w->epfd);
	close(w->evfd);
	if (w->clockfd >= 0)
		close(w->clockfd);
	free(w);
}

int lnx_wait_control(const struct lnx_wait *w, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (!w)
			return -FI_ENODATA;
		*(int *)arg = w->epfd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = w ? FI_WAIT_FD : FI_WAIT_NONE;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

void lnx_wait_signal(struct lnx_wait *w)
{
	uint64_t one = 1;

	/*
	 * The writer adds its entry and then reads armed; the sleeper sets armed and
	 * then looks for entries.  So at least one of the two sees the other.
	 */
	if (__atomic_exchange_n(&w->armed, 0, __ATOMIC_SEQ_CST) &&
	    write(w->evfd, &one, sizeof(one)) != sizeof(one))
		__atomic_store_n(&w->armed, 1, __ATOMIC_SEQ_CST);
}

void lnx_wait_wake(struct lnx_wait *w)
{
	__atomic_store_n(&w->armed, 1, __ATOMIC_SEQ_CST);
	lnx_wait_signal(w);
}

void lnx_wait_kick(struct lnx_wait *w)
{
	__atomic_store_n(&w->kicked, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&w->armed, 1, __ATOMIC_SEQ_CST);
	lnx_wait_signal(w);
}

bool lnx_wait_signalled(struct lnx_wait *w)
{
	return __atomic_load_n(&w->kicked, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&w->kicked, 0, __ATOMIC_SEQ_CST);
}

bool lnx_wait_kicked(const struct lnx_wait *w)
{
	return __atomic_load_n(&w->kicked, __ATOMIC_SEQ_CST) != 0;
}

/* The clock's descriptor, or a negative errno. */
static int clock_of(struct lnx_wait *w)
{
	int fd = __atomic_load_n(&w->clockfd, __ATOMIC_ACQUIRE), none = -1, ret;

	if (fd >= 0)
		return fd;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = lnx_wait_add_fd(w, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	if (__atomic_compare_exchange_n(&w->clockfd, &none, fd, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fd;
	/* Another thread was faster. */
	lnx_wait_del_fd(w, fd);
	close(fd);
	return none;
}

int lnx_wait_until(struct lnx_wait *w, uint64_t at_ns)
{
	struct itimerspec when = {
		.it_value.tv_sec = (time_t)(at_ns / LNX_NS_PER_S),
		.it_value.tv_nsec = (long)(at_ns % LNX_NS_PER_S),
	};
	int fd;

	if (at_ns == LNX_NEVER)
		return 0;
	fd = clock_of(w);
	if (fd < 0)
		return fd;
	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) ? -errno : 0;
}

void lnx_wait_arm(struct lnx_wait *w)
{
	int fd = __atomic_load_n(&w->clockfd, __ATOMIC_ACQUIRE);
	uint64_t n;
	ssize_t ret = read(w->evfd, &n, sizeof(n));

	/* That is over.  One that is to come may be another thread's. */
	if (fd >= 0)
		ret = read(fd, &n, sizeof(n));
	(void)ret;			/* empty, or emptied just now */
	__atomic_store_n(&w->armed, 1, __ATOMIC_SEQ_CST);
}

int lnx_wait_add_fd(struct lnx_wait *w, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &e) && errno != EEXIST)
		return -errno;
	return 0;
}

void lnx_wait_del_fd(struct lnx_wait *w, int fd)
{
	epoll_ctl(w->epfd, EPOLL_CTL_DEL, fd, NULL);
}

void lnx_wait_block(struct lnx_wait *w, int max_ms)
{
	struct epoll_event e;

	epoll_wait(w->epfd, &e, 1, max_ms);
}
