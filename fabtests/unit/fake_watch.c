/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A network watch whose events the test writes; see fake_watch.h. */
#include "fake_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/compiler.h"

#define EVENTS_MAX	256
#define LINKS_MAX	16
#define ADDRS_MAX	8

struct fake_link {
	struct lnx_net_state state;	/* ifindex 0: free */
	struct lnx_net_addr addr[ADDRS_MAX];
};

struct fake_watch {
	struct lnx_netwatch base;
	unsigned head, tail;
	int broken;
	bool quiet;
	struct lnx_net_event event[EVENTS_MAX];
	struct fake_link link[LINKS_MAX];
};

static struct fake_watch *fake_of(struct lnx_netwatch *w)
{
	return lnx_container_of(w, struct fake_watch, base);
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static struct fake_link *find(struct fake_watch *f, uint32_t ifindex)
{
	unsigned i;

	for (i = 0; i < LINKS_MAX; i++)
		if (f->link[i].state.ifindex == ifindex)
			return &f->link[i];
	return NULL;
}

static struct lnx_net_addr *find_addr(struct fake_link *l,
				      const struct lnx_net_addr *a)
{
	unsigned i;

	for (i = 0; i < ADDRS_MAX; i++)
		if (lnx_netmsg_addr_equal(&l->addr[i], a))
			return &l->addr[i];
	return NULL;
}

/* ---- the functions that its user calls ---- */

static int fake_next(struct lnx_netwatch *w, struct lnx_net_event *ev)
{
	struct fake_watch *f = fake_of(w);
	uint64_t n;

	if (f->broken)
		return f->broken;
	if (f->tail == f->head)
		return 0;
	*ev = f->event[f->tail++ % EVENTS_MAX];
	if (read(w->fd, &n, sizeof(n)) != sizeof(n))
		abort();
	return 1;
}

static int fake_look(struct lnx_netwatch *w, uint32_t ifindex, const char *name,
		     const void *addr, size_t addrlen,
		     struct lnx_net_state *now)
{
	struct lnx_net_addr a = lnx_netmsg_addr_of(addr, addrlen, NULL);
	struct fake_watch *f = fake_of(w);
	unsigned i;

	for (i = 0; i < LINKS_MAX; i++) {
		struct fake_link *l = &f->link[i];

		if (!l->state.ifindex ||
		    (ifindex ? l->state.ifindex != ifindex :
		     name ? strcmp(l->state.name, name) : !find_addr(l, &a)))
			continue;
		*now = l->state;
		now->has_addr = find_addr(l, &a) != NULL;
		return 0;
	}
	return -ENODEV;
}

static void fake_close(struct lnx_netwatch *w)
{
	close(w->fd);
	free(fake_of(w));
}

/* ---- the functions that the test calls ---- */

struct lnx_netwatch *fake_watch_open(void)
{
	static const struct lnx_netwatch_ops ops = {
		.next = fake_next, .look = fake_look, .close = fake_close,
	};
	struct fake_watch *f = must(calloc(1, sizeof(*f)));

	f->base.ops = &ops;
	f->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	if (f->base.fd < 0)
		abort();
	return &f->base;
}

void fake_watch_event(struct lnx_netwatch *w, const struct lnx_net_event *ev)
{
	struct fake_watch *f = fake_of(w);
	uint64_t one = 1;

	if (f->quiet)
		return;
	if (f->head - f->tail == EVENTS_MAX)
		abort();
	f->event[f->head++ % EVENTS_MAX] = *ev;
	if (write(w->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

void fake_watch_link(struct lnx_netwatch *w, uint32_t ifindex, const char *name,
		     bool up)
{
	struct lnx_net_event ev = { .what = LNX_NET_LINK, .up = up,
				    .ifindex = ifindex };
	struct fake_watch *f = fake_of(w);
	struct fake_link *l = find(f, ifindex);

	if (!l)
		l = must(find(f, 0));
	l->state.ifindex = ifindex;
	l->state.up = up;
	strncpy(l->state.name, name, sizeof(l->state.name) - 1);
	memcpy(ev.name, l->state.name, sizeof(ev.name));
	fake_watch_event(w, &ev);
}

void fake_watch_gone(struct lnx_netwatch *w, uint32_t ifindex)
{
	struct lnx_net_event ev = { .what = LNX_NET_GONE, .ifindex = ifindex };
	struct fake_link *l = must(find(fake_of(w), ifindex));

	memcpy(ev.name, l->state.name, sizeof(ev.name));
	memset(l, 0, sizeof(*l));
	fake_watch_event(w, &ev);
}

void fake_watch_addr(struct lnx_netwatch *w, uint32_t ifindex, const void *addr,
		     size_t len, bool there)
{
	struct lnx_net_event ev = { .what = LNX_NET_ADDR, .up = there,
				    .ifindex = ifindex,
				    .addr = lnx_netmsg_addr_of(addr, len, NULL) };
	struct fake_link *l = must(find(fake_of(w), ifindex));
	struct lnx_net_addr *a = find_addr(l, &ev.addr);
	unsigned i;

	for (i = 0; i < ADDRS_MAX && !a; i++)
		if (!l->addr[i].family)
			a = &l->addr[i];
	must(a);
	if (there)
		*a = ev.addr;
	else
		memset(a, 0, sizeof(*a));
	fake_watch_event(w, &ev);
}

void fake_watch_lost(struct lnx_netwatch *w)
{
	struct lnx_net_event ev = { .what = LNX_NET_LOST };

	fake_watch_event(w, &ev);
}

void fake_watch_break(struct lnx_netwatch *w, int err)
{
	fake_of(w)->broken = err;
}

void fake_watch_quiet(struct lnx_netwatch *w, bool quiet)
{
	fake_of(w)->quiet = quiet;
}
