/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Closed regions that are still mapped.  See kept_region.h. */
#include "core/kept_region.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/open.h"
#include "core/shm_registry.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE	0x100000
#endif

struct lnx_kept_region {
	struct lnx_kept_region *next;
	struct lnx_ep *ep;		/* that is being closed */
	uint64_t eid;
	void *at;
	size_t len;
	int fd;				/* -1: it is not kept */
	unsigned nheld;
	struct lnx_lock **held;		/* of other endpoints, while it is unmapped */
	unsigned n;
	uint64_t by[];			/* endpoints of this process that know it */
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lnx_process_lock close_lock = LNX_PROCESS_LOCK_INIT;
static struct lnx_ep *here;		/* endpoints of this process with a region */
static struct lnx_kept_region *all;
static struct lnx_kept_region *closing;	/* those of endpoints that are being closed */
static pid_t owner;			/* of these; those of a parent are not ours */

void lnx_kept_region_opened(struct lnx_ep *ep)
{
	pthread_mutex_lock(&kept_lock);
	if (owner != ep->local.pid) {
		owner = ep->local.pid;
		here = NULL;
		all = NULL;
		closing = NULL;
	}
	ep->local.next_here = here;
	here = ep;
	pthread_mutex_unlock(&kept_lock);
}

static bool is_here(uint64_t eid)
{
	const struct lnx_ep *ep;

	for (ep = here; ep; ep = ep->local.next_here)
		if (ep->eid == eid)
			return true;
	return false;
}

/* Where the core has mapped it: the longest mapping of the file from its beginning. */
static bool find(const char *file, struct lnx_kept_region *k)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	k->len = 0;
	while (f && fgets(line, sizeof(line), f)) {
		uintptr_t from, to;
		uint64_t off;
		char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (!path || strcmp(path, file) ||
		    sscanf(line, "%" SCNxPTR "-%" SCNxPTR " rw-s %" SCNx64, &from, &to,
			   &off) != 3 || off || to - from <= k->len)
			continue;
		k->at = (void *)from;
		k->len = to - from;
	}
	if (f)
		fclose(f);
	return k->len != 0;
}

/* ---- other threads ---- */

static bool is_closing(const struct lnx_ep *ep)
{
	const struct lnx_kept_region *k;

	for (k = closing; k; k = k->next)
		if (k->ep == ep)
			return true;
	return false;
}

static bool holds(const struct lnx_kept_region *k, const struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < k->nheld; i++)
		if (k->held[i]->use == ep->lock.use)
			return true;
	return ep == k->ep || ep->lock.use == k->ep->lock.use;
}

/* An endpoint that another thread may be inside of, or NULL.  One that is being closed waits for
 * close_lock, outside of its core. */
static struct lnx_ep *busy_one(const struct lnx_kept_region *k)
{
	struct lnx_ep *ep;

	for (ep = here; ep; ep = ep->local.next_here)
		if (ep->lock.on && !holds(k, ep) && !is_closing(ep))
			return ep;
	return NULL;
}

/*
 * No other thread is inside of a core that may use the region.  k->ep's lock is held, and a thread
 * that holds another endpoint's may be about to close that, and want ours.  So each is tried for
 * again and again, until it is free or its endpoint is being closed as well.
 */
static void keep_others_out(struct lnx_kept_region *k)
{
	static const struct timespec pause = { .tv_nsec = 20000 };
	unsigned n = 0;
	struct lnx_ep *ep;

	pthread_mutex_lock(&kept_lock);
	for (ep = here; ep; ep = ep->local.next_here)
		n++;
	k->held = calloc(n, sizeof(*k->held));
	/* One that is opened meanwhile cannot find this region any more. */
	while (k->held && k->nheld < n && (ep = busy_one(k))) {
		if (lnx_trylock(&ep->lock)) {
			k->held[k->nheld++] = &ep->lock;
			continue;
		}
		pthread_mutex_unlock(&kept_lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&kept_lock);
	}
	pthread_mutex_unlock(&kept_lock);
}

static void let_others_in(struct lnx_kept_region *k)
{
	while (k->nheld)
		lnx_unlock(k->held[--k->nheld]);
	free(k->held);
	k->held = NULL;
}

/* ---- closing ---- */

/* The endpoints that know it. */
static void find_users(struct lnx_kept_region *k)
{
	const struct lnx_ep *ep = k->ep;
	unsigned i;

	pthread_mutex_lock(&kept_lock);
	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t eid = lnx_shm_slot_peer(ep->local.registry, i);

		if (eid && eid != ep->eid && is_here(eid))
			k->by[k->n++] = eid;
	}
	pthread_mutex_unlock(&kept_lock);
}

struct lnx_kept_region *lnx_kept_region_before(struct lnx_ep *ep)
{
	struct lnx_kept_region *k;
	char path[LNX_SHM_PATH_BYTES];

	if (!ep->local.registry || ep->local.pid != getpid())
		return NULL;
	k = calloc(1, sizeof(*k) + LNX_SHM_SLOTS * sizeof(k->by[0]));
	if (!k)
		return NULL;
	k->ep = ep;
	k->eid = ep->eid;
	k->fd = -1;
	pthread_mutex_lock(&kept_lock);
	k->next = closing;
	closing = k;
	pthread_mutex_unlock(&kept_lock);
	lnx_process_lock(&close_lock);
	find_users(k);
	if (!k->n)
		return k;
	keep_others_out(k);
	lnx_host_region_path(ep->eid, ep->local.turn, path);
	if (find(path, k))
		k->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return k;
}

/* Map it again where it was.  False: it is not kept. */
static bool map_again(struct lnx_kept_region *k)
{
	void *at;

	if (k->fd < 0)
		return false;
	at = mmap(k->at, k->len, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED_NOREPLACE, k->fd, 0);
	close(k->fd);
	if (at == k->at)
		return true;
	/* A kernel before 4.17 takes the address for a wish. */
	if (at != MAP_FAILED)
		munmap(at, k->len);
	LNX_WARN(FI_LOG_EP_CTRL,
		 "endpoint %016" PRIx64 " is closed, and other endpoints of this process still refer to its shared memory: its place has been taken\n",
		 k->eid);
	return false;
}

/* From now on those that know it keep it; false: none does any more. */
static bool keep(struct lnx_kept_region *k, bool mapped)
{
	struct lnx_kept_region **at;
	unsigned i, n = 0;

	pthread_mutex_lock(&kept_lock);
	for (at = &closing; *at && *at != k;)
		at = &(*at)->next;
	if (*at)
		*at = k->next;
	/* Some may have been closed meanwhile. */
	for (i = 0; i < k->n; i++)
		if (is_here(k->by[i]))
			k->by[n++] = k->by[i];
	k->n = n;
	if (mapped && n) {
		k->next = all;
		all = k;
	}
	pthread_mutex_unlock(&kept_lock);
	return mapped && n;
}

void lnx_kept_region_after(struct lnx_ep *ep, struct lnx_kept_region *k)
{
	bool mapped = k && map_again(k);

	if (k)
		let_others_in(k);
	/* Those that wait for close_lock must not find ep any more. */
	lnx_kept_region_forget(ep, ep->eid);
	if (!k)
		return;
	if (!keep(k, mapped)) {
		if (mapped)
			munmap(k->at, k->len);
		free(k);
	}
	lnx_process_unlock(&close_lock);
}

/* Then k is of no use to ep any more. */
static void release(struct lnx_kept_region *k, uint64_t by)
{
	unsigned i;

	for (i = 0; i < k->n; i++)
		if (k->by[i] == by)
			k->by[i--] = k->by[--k->n];
}

void lnx_kept_region_forget(struct lnx_ep *ep, uint64_t eid)
{
	bool closed = eid == ep->eid;
	struct lnx_kept_region *k, **at;
	struct lnx_ep **e;

	pthread_mutex_lock(&kept_lock);
	if (owner != getpid()) {
		pthread_mutex_unlock(&kept_lock);
		return;
	}
	for (e = &here; closed && *e; e = &(*e)->local.next_here)
		if (*e == ep) {
			*e = ep->local.next_here;
			break;
		}
	for (at = &all; (k = *at);) {
		if (closed || k->eid == eid)
			release(k, ep->eid);
		if (k->n) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		munmap(k->at, k->len);
		free(k);
	}
	pthread_mutex_unlock(&kept_lock);
}
