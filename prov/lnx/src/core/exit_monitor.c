/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells which processes of local peers have ended.  See exit_monitor.h. */
#include "core/exit_monitor.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "os/cma.h"
#include "os/pidwatch.h"

struct lnx_exit_monitor {
	int epfd;
	unsigned n;			/* peers watched */
};

void lnx_exit_monitor_open(struct lnx_ep *ep)
{
	struct lnx_exit_monitor *l;

	if (!ep->shm || ep->native || ep->local.exit_monitor)
		return;
	l = calloc(1, sizeof(*l));
	if (!l)
		return;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0) {
		free(l);
		return;
	}
	ep->local.exit_monitor = l;
}

void lnx_exit_monitor_close(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	if (!ep->local.exit_monitor)
		return;
	lnx_list_foreach(&ep->peers.all, n, tmp)
		lnx_exit_monitor_forget(lnx_list_entry(n, struct lnx_peer, all_link));
	close(ep->local.exit_monitor->epfd);
	free(ep->local.exit_monitor);
	ep->local.exit_monitor = NULL;
}

static void add(struct lnx_exit_monitor *l, struct lnx_peer *peer, int pidfd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = peer };

	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, pidfd, &e))
		return;
	peer->shm.pidfd = 1 + pidfd;
	l->n++;
	peer->ep->poll.watch_idle = true;
	/* Where no network rail is idle now and then: descriptors of others that have ended
	 * must not stay as long as nothing goes to them. */
	lnx_ep_watch_local(peer->ep);
}

static bool is_meant(const struct lnx_peer *peer)
{
	const struct lnx_cma_owner *o = &peer->shm.where;

	if (lnx_cma_probe(o))
		return true;
	/* In another name space, a process may have been started in the same tick. */
	return !peer->ep->conf->host_id && o->started &&
	       lnx_pidwatch_started(o->pid) == o->started;
}

bool lnx_exit_monitor_watch(struct lnx_peer *peer)
{
	struct lnx_exit_monitor *l = peer->ep->local.exit_monitor;
	int pidfd = -1;
	bool sure;

	/* Our own process need not be watched. */
	if (l && !peer->shm.pidfd && peer->shm.where.pid != peer->ep->local.pid)
		pidfd = lnx_pidwatch_open(peer->shm.where.pid);
	/*
	 * Checked after opening: so the answer is about the process that is held, or
	 * about none.
	 */
	sure = is_meant(peer);
	if (sure && pidfd >= 0)
		add(l, peer, pidfd);
	if (pidfd >= 0 && peer->shm.pidfd != 1 + pidfd)
		close(pidfd);
	return sure;
}

void lnx_exit_monitor_forget(struct lnx_peer *peer)
{
	struct lnx_exit_monitor *l = peer->ep->local.exit_monitor;

	if (!peer->shm.pidfd)
		return;
	/* A forked child may still have it open. */
	epoll_ctl(l->epfd, EPOLL_CTL_DEL, peer->shm.pidfd - 1, NULL);
	close(peer->shm.pidfd - 1);
	peer->shm.pidfd = 0;
	if (!--l->n)
		peer->ep->poll.watch_idle = false;
}

struct lnx_peer *lnx_exit_monitor_next(struct lnx_ep *ep)
{
	struct lnx_peer *peer;
	struct epoll_event e;

	if (!ep->local.exit_monitor || !ep->local.exit_monitor->n ||
	    epoll_wait(ep->local.exit_monitor->epfd, &e, 1, 0) != 1)
		return NULL;
	peer = e.data.ptr;
	lnx_exit_monitor_forget(peer);
	return peer;
}

int lnx_exit_monitor_fd(const struct lnx_ep *ep)
{
	return ep->local.exit_monitor ? ep->local.exit_monitor->epfd : -1;
}
