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
#include <unistd.h>

#include "core/open.h"
#include "core/shm_registry.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE	0x100000
#endif

struct lnx_kept_region {
	struct lnx_kept_region *next;
	uint64_t eid;
	void *at;
	size_t len;
	int fd;
	unsigned n;
	uint64_t by[];			/* endpoints of this process that know it */
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lnx_ep *here;		/* endpoints of this process with a region */
static struct lnx_kept_region *all;
static pid_t owner;			/* of both; those of a parent are not ours */

void lnx_kept_region_opened(struct lnx_ep *ep)
{
	pthread_mutex_lock(&kept_lock);
	if (owner != ep->local.pid) {
		owner = ep->local.pid;
		here = NULL;
		all = NULL;
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

struct lnx_kept_region *lnx_kept_region_before(const struct lnx_ep *ep)
{
	struct lnx_kept_region *k;
	char path[LNX_SHM_PATH_BYTES];
	unsigned i;

	if (!ep->local.registry || ep->local.pid != getpid())
		return NULL;
	k = calloc(1, sizeof(*k) + LNX_SHM_SLOTS * sizeof(k->by[0]));
	if (!k)
		return NULL;
	k->eid = ep->eid;
	pthread_mutex_lock(&kept_lock);
	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t eid = lnx_shm_slot_peer(ep->local.registry, i);

		if (eid && eid != ep->eid && is_here(eid))
			k->by[k->n++] = eid;
	}
	pthread_mutex_unlock(&kept_lock);
	lnx_host_region_path(ep->eid, ep->local.turn, path);
	if (k->n && find(path, k)) {
		k->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (k->fd >= 0)
			return k;
	}
	free(k);
	return NULL;
}

void lnx_kept_region_after(struct lnx_kept_region *k)
{
	unsigned i, n = 0;
	void *at;

	if (!k)
		return;
	at = mmap(k->at, k->len, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED_NOREPLACE, k->fd, 0);
	close(k->fd);
	if (at != k->at) {
		/* A kernel before 4.17 takes the address for a wish. */
		if (at != MAP_FAILED)
			munmap(at, k->len);
		LNX_WARN(FI_LOG_EP_CTRL,
			 "endpoint %016" PRIx64 " is closed, and other endpoints of this process still refer to its shared memory: its place has been taken\n",
			 k->eid);
		free(k);
		return;
	}
	pthread_mutex_lock(&kept_lock);
	/* Some may have been closed meanwhile. */
	for (i = 0; i < k->n; i++)
		if (is_here(k->by[i]))
			k->by[n++] = k->by[i];
	k->n = n;
	if (n) {
		k->next = all;
		all = k;
	}
	pthread_mutex_unlock(&kept_lock);
	if (n)
		return;
	munmap(k->at, k->len);
	free(k);
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
