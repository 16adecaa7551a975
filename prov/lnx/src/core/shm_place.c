/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Places of peers in the shm core.  See shm_place.h. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/open.h"
#include "core/shm_place.h"
#include "obj/rail.h"

#define REGION_VERSION	8u		/* of regions, of cores since 2.0 */
#define NAME_BYTES	256u
#define HEAD_WORDS	64u
#define MAP_WORDS	32u		/* the peers of the address vector begin here at last */

/* The core writes these one after another, each 8 bytes. */
enum word { MAP, TOTAL, CMD, RESP, INJECT, SAR, PEERS, NAME, WORDS };

/* A peer in the address vector. */
struct known {
	char name[NAME_BYTES];
	int64_t id;			/* its place; -1: none is there */
	uint64_t addr;
	void *region;
	int pid_fd;
};

/* A peer in the region. */
struct entry {
	char name[NAME_BYTES];
	int64_t id;			/* -1: not connected */
	uint32_t sar_status;
	uint16_t name_sent;
};

struct head {
	char *base;			/* where the core has the region */
	const char *map;
	size_t stride;			/* of its entries */
	uint64_t peers;
};

static const char *plain(const char *name)
{
	const char *p = strstr(name, "://");

	return p ? p + 3 : name;
}

/* Is w where these words begin, in a region of at most that size? */
static bool ordered(const uint64_t *w, uint64_t size)
{
	unsigned i;

	if (w[TOTAL] > size || w[TOTAL] & (w[TOTAL] - 1) || w[CMD] < WORDS * sizeof(*w))
		return false;
	for (i = CMD; i < NAME; i++)
		if (w[i] >= w[i + 1])
			return false;
	return w[NAME] + NAME_BYTES <= w[TOTAL] &&
	       !((w[NAME] - w[PEERS]) % LNX_SHM_PLACES) &&
	       (w[NAME] - w[PEERS]) / LNX_SHM_PLACES >= sizeof(struct entry);
}

static bool read_head(const struct lnx_ep *ep, int fd, struct head *h)
{
	char name[LNX_SHM_NAME_BYTES], there[LNX_SHM_NAME_BYTES];
	uint64_t word[HEAD_WORDS];
	struct stat st;
	unsigned i;

	if (fstat(fd, &st) || pread(fd, word, sizeof(word), 0) != (ssize_t)sizeof(word) ||
	    (word[0] & 0xff) != REGION_VERSION || (int)(word[0] >> 32) != ep->local.pid)
		return false;
	lnx_addr_shm_name(ep->eid, ep->local.turn, name);
	/* Before them are a lock, and where it is mapped. */
	for (i = 2; i + WORDS <= HEAD_WORDS; i++) {
		const uint64_t *w = &word[i];
		size_t len = strlen(plain(name)) + 1;

		if (!ordered(w, (uint64_t)st.st_size) ||
		    pread(fd, there, len, (off_t)w[NAME]) != (ssize_t)len ||
		    memcmp(there, plain(name), len))
			continue;
		h->base = (char *)(uintptr_t)w[-2];
		h->map = (const char *)(uintptr_t)w[MAP];
		h->peers = w[PEERS];
		h->stride = (w[NAME] - w[PEERS]) / LNX_SHM_PLACES;
		return h->base && h->map;
	}
	return false;
}

static bool all_known(const struct known *k)
{
	int64_t i;

	for (i = 0; i < (int64_t)LNX_SHM_PLACES; i++)
		if (k[i].id != -1 && k[i].id != i)
			return false;
	return true;
}

static const struct known *find_known(const char *map)
{
	unsigned at;

	for (at = 1; at < MAP_WORDS; at++) {
		const struct known *k = (const void *)(map + at * sizeof(uint64_t));

		if (all_known(k))
			return k;
	}
	return NULL;
}

static const struct known *find(const struct lnx_ep *ep, struct head *h)
{
	char path[LNX_SHM_PATH_BYTES];
	bool found;
	int fd;

	/* A child of a fork has a copy of the vector. */
	if (ep->local.pid != getpid())
		return NULL;
	lnx_host_region_path(ep->eid, ep->local.turn, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	found = read_head(ep, fd, h);
	close(fd);
	return found ? find_known(h->map) : NULL;
}

bool lnx_shm_places_found(const struct lnx_ep *ep)
{
	struct head h;

	return find(ep, &h) != NULL;
}

struct lnx_shm_place lnx_shm_place_of(const struct lnx_ep *ep, fi_addr_t core)
{
	struct lnx_shm_place place = { NULL };
	char name[NAME_BYTES] = "";
	size_t len = sizeof(name) - 1;
	const struct known *k;
	struct head h;
	unsigned i;

	k = find(ep, &h);
	if (!k || fi_av_lookup(ep->shm->av, core, name, &len))
		return place;
	for (i = 0; i < LNX_SHM_PLACES; i++)
		if (k[i].id >= 0 && !strncmp(k[i].name, plain(name), NAME_BYTES))
			place.entry = h.base + h.peers + i * h.stride;
	return place;
}

void lnx_shm_place_vacate(struct lnx_shm_place place)
{
	struct entry *e = (void *)place.entry;

	if (!e)
		return;
	e->sar_status = 0;
	e->name_sent = 0;
	__atomic_store_n(&e->id, -1, __ATOMIC_RELEASE);
}
