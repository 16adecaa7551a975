/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The helper thread of an endpoint.  It makes progress for an application that does not
 * call libfabric (FI_PROGRESS_AUTO), or that sleeps on a descriptor, which reports no
 * shared memory.  Without shm it sleeps in epoll over the rails' descriptors, until the
 * next deadline; with shm it polls every 100 us while there is traffic, backing off to 2
 * ms when there is none.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/interval.h"
#include "comp/comp.h"
#include "comp/rails.h"

struct lnx_thread {
	struct lnx_node link;		/* in `running`; under running_lock */
	pthread_t thread;
	struct lnx_ep *ep;
	int epfd;
	int evfd;
	int stop;			/* atomic */
	uint64_t until_ns;		/* it sleeps until then; 0: it looks soon; owner
					 * lock */
};

/*
 * All threads, in case libfabric unloads us while an endpoint is open: at exit it
 * unmaps our code.
 */
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lnx_node running = { &running, &running };

static uint64_t traffic(const struct lnx_ep *ep)
{
	return ep->stats.matched + ep->stats.unexpected +
	       ep->stats.direct_sends + ep->stats.recv_count +
	       ep->stats.send_count + ep->stats.confirms;
}

/* Read the eventfd: the wake-up has been received. */
static void awake(struct lnx_thread *t)
{
	uint64_t n;
	ssize_t ret = read(t->evfd, &n, sizeof(n));

	(void)ret;
}

void lnx_thread_wake(struct lnx_thread *t, uint64_t at_ns)
{
	uint64_t one = 1;
	ssize_t ret;

	if (t->until_ns <= at_ns)
		return;
	t->until_ns = 0;
	ret = write(t->evfd, &one, sizeof(one));
	(void)ret;			/* the thread wakes by itself, a little later */
}

static void *run(void *arg)
{
	struct lnx_thread *t = arg;
	struct lnx_ep *ep = t->ep;
	uint64_t look_ns = LNX_THREAD_MIN_NS, last = 0;

	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
		uint64_t now, count, until_ns, ns;
		struct epoll_event e;

		lnx_lock(&ep->lock);
		until_ns = lnx_ep_sleep_until(ep);
		if (ep->shm)
			until_ns = 0;
		now = lnx_clock_ns();
		if (until_ns)
			until_ns = LNX_MIN(until_ns, now + LNX_THREAD_SLEEP_NS);
		t->until_ns = until_ns;
		count = traffic(ep);
		lnx_unlock(&ep->lock);
		look_ns = count != last ? LNX_THREAD_MIN_NS :
			  LNX_MIN(look_ns * 2, LNX_THREAD_MAX_NS);
		last = count;
		ns = until_ns ? lnx_ns_since(until_ns, now) : look_ns;
		/* epoll_wait knows no shorter time. */
		if (!until_ns && !(ns / LNX_NS_PER_MS)) {
			struct timespec ts = { .tv_nsec = (long)ns };

			nanosleep(&ts, NULL);
		} else if (epoll_wait(t->epfd, &e, 1, (int)lnx_ms_up(ns)) == 1 &&
			   e.data.fd == t->evfd) {
			awake(t);
		}
	}
	return NULL;
}

static int watch(int epfd, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e) && errno != EEXIST ?
	       -errno : 0;
}

int lnx_thread_watch(struct lnx_thread *t, int fd)
{
	return watch(t->epfd, fd);
}

void lnx_thread_unwatch(struct lnx_thread *t, int fd)
{
	epoll_ctl(t->epfd, EPOLL_CTL_DEL, fd, NULL);
}

int lnx_thread_start(struct lnx_ep *ep)
{
	struct lnx_thread *t;
	unsigned i, n, nrail;
	int fd[LNX_FDS_MAX], ret;
	sigset_t all, old;

	if (!ep->conf->thread) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "FI_LNX_THREAD=0 forbids the helper thread that automatic progress needs\n");
		return -FI_ENOSYS;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -FI_ENOMEM;
	t->ep = ep;
	t->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (t->evfd < 0 || t->epfd < 0) {
		ret = -errno;
		goto err;
	}
	ret = watch(t->epfd, t->evfd);
	/* Other threads may be making progress already, and find more rails. */
	lnx_lock(&ep->lock);
	n = lnx_rails_fds(ep, fd, &nrail);
	/* Without descriptors other than the rails' it checks when there is work. */
	for (i = 0; i < n && (!ret || i >= nrail); i++) {
		int one = watch(t->epfd, fd[i]);

		if (i < nrail)
			ret = one;
	}
	if (!ret)
		ep->thread = t;		/* it checks there too */
	lnx_unlock(&ep->lock);
	if (ret)
		goto err;
	/* Signals of the application are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		goto err;
	pthread_mutex_lock(&running_lock);
	lnx_list_add_tail(&running, &t->link);
	pthread_mutex_unlock(&running_lock);
	return 0;
err:
	ep->thread = NULL;
	if (t->evfd >= 0)
		close(t->evfd);
	if (t->epfd >= 0)
		close(t->epfd);
	free(t);
	LNX_WARN(FI_LOG_EP_CTRL, "the helper thread cannot be started: %s\n",
		 fi_strerror(-ret));
	return ret;
}

/* The thread has ended when this returns. */
static void end(struct lnx_thread *t)
{
	uint64_t one = 1;

	__atomic_store_n(&t->stop, 1, __ATOMIC_RELEASE);
	if (write(t->evfd, &one, sizeof(one)) != sizeof(one))
		LNX_INFO(FI_LOG_EP_CTRL, "waking the helper thread failed\n");
	pthread_join(t->thread, NULL);
	close(t->evfd);
	close(t->epfd);
	t->ep->thread = NULL;
	free(t);
}

void lnx_thread_stop(struct lnx_ep *ep)
{
	struct lnx_thread *t = ep->thread;

	if (!t)
		return;
	pthread_mutex_lock(&running_lock);
	lnx_list_del(&t->link);
	pthread_mutex_unlock(&running_lock);
	end(t);
}

void lnx_threads_stop(void)
{
	struct lnx_node *n;

	pthread_mutex_lock(&running_lock);
	while ((n = lnx_list_pop(&running)))
		end(lnx_list_entry(n, struct lnx_thread, link));
	pthread_mutex_unlock(&running_lock);
}
